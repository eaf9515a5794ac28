/* interrupt.h - handle ^C and SIGTERM as a request for a clean stop
 *
 * The library's threads block all signals. From begin on, the main thread blocks these two, so only a watcher
 * thread receives them. Call from the main thread; `act` is called by the watcher. */
#ifndef LEAT_CLI_INTERRUPT_H
#define LEAT_CLI_INTERRUPT_H

#include <pthread.h>
#include <stdbool.h>

struct leat_interrupt {
	void (*act)(void *arg); /* called at the first signal, by the watcher */
	void *arg;
	pthread_t watcher;
	bool watching, signalled;
};

/* If the watcher cannot be started, signals end the process as usual. */
void leat_interrupt_begin(struct leat_interrupt *interrupt, void (*act)(void *arg), void *arg);
/* Returns true if a signal arrived before this call. No-op on a zeroed struct. Signals stay blocked. */
bool leat_interrupt_end(struct leat_interrupt *interrupt);

#endif
