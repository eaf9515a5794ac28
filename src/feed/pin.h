/* pin.h - batches in memory that the CUDA runtime has registered ("pinned")
 *
 * The GPU copies straight from such memory, while the CPU goes on; from other memory it copies by way of a buffer of
 * the driver's, and the call waits. A slot is registered when it is delivered for the first time after leat_pin, and
 * unregistered before it is unmapped. Copies for consumers that keep batches (batch_copy.c) are never pinned.
 *
 * The runtime is the one that the program uses, or else the system's, loaded at run time; LEAT_CUDART names another. */
#ifndef LEAT_FEED_PIN_H
#define LEAT_FEED_PIN_H

#include "feed/batch.h"

/* CUDA's functions; 0 is success. */
struct leat_cudart {
	int (*host_register)(void *at, size_t bytes, unsigned flags);
	int (*host_unregister)(void *at);
	int (*get_last_error)(void); /* also resets it */
	const char *(*error_string)(int error);
};

/* Consumer only. */
struct leat_pin {
	bool on;
	bool failed;               /* slots delivered from now on stay as they are */
	struct leat_cudart cudart; /* stays loaded */
};

/* LEAT_UNSUPPORTED: there is no CUDA runtime. */
enum leat_status leat_cudart_load(struct leat_cudart *cudart, struct leat_err *err);

/* A slot is about to be delivered: registers it or, if pinning is off, unregisters it. Consumer, without the lock. */
void leat_pin_slot(struct leat_feed *feed, struct leat_batch *slot);
/* Before the slot is unmapped; any thread. */
void leat_unpin_slot(struct leat_batch *slot);

#endif
