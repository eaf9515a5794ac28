/* interrupt.h - ^C and SIGTERM as a wish to stop in good order
 *
 * The library's threads block all signals; from begin on the main thread blocks these
 * two, so that only a watcher takes them. Main thread, but for `act`, which the watcher calls. */
#ifndef LEAT_CLI_INTERRUPT_H
#define LEAT_CLI_INTERRUPT_H

#include <pthread.h>
#include <stdbool.h>

struct leat_interrupt {
	void (*act)(void *arg); /* at the first signal; from another thread */
	void *arg;
	pthread_t watcher;
	bool watching, came;
};

/* Without a thread to watch, signals end the process again. */
void leat_interrupt_begin(struct leat_interrupt *interrupt, void (*act)(void *arg), void *arg);
/* True: a signal came before this call, be it that nobody has acted on it yet. Takes a zeroed one; signals stay
 * blocked. */
bool leat_interrupt_end(struct leat_interrupt *interrupt);

#endif
