/* interrupt.c - see interrupt.h */
#include "cli/interrupt.h"

#include <signal.h>
#include <time.h>
#include <unistd.h>

static sigset_t
both_signals(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	return set;
}

static void *
watch(void *arg)
{
	struct leat_interrupt *interrupt = arg;
	sigset_t set = both_signals();
	siginfo_t info;

	while (sigwaitinfo(&set, &info) < 0)
		;
	/* Sent by leat_interrupt_end; an outside signal may still be pending. */
	if (info.si_pid == getpid())
		interrupt->signalled = sigtimedwait(&set, NULL, &(struct timespec){0}) > 0;
	else
		interrupt->signalled = true;
	if (interrupt->signalled)
		interrupt->act(interrupt->arg);
	return NULL;
}

void
leat_interrupt_begin(struct leat_interrupt *interrupt, void (*act)(void *arg), void *arg)
{
	sigset_t set = both_signals();

	*interrupt = (struct leat_interrupt){.act = act, .arg = arg};
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	interrupt->watching = pthread_create(&interrupt->watcher, NULL, watch, interrupt) == 0;
	if (!interrupt->watching)
		pthread_sigmask(SIG_UNBLOCK, &set, NULL);
}

bool
leat_interrupt_end(struct leat_interrupt *interrupt)
{
	if (!interrupt->watching)
		return false;
	pthread_kill(interrupt->watcher, SIGTERM);
	pthread_join(interrupt->watcher, NULL);
	interrupt->watching = false;
	return interrupt->signalled;
}
