/* fetch.h - from planned samples to their bytes
 *
 * Fetch owns everything about reading: where a sample's bytes are, which neighbours are
 * read together, what is in flight, and the memory for it. That memory is one *window*,
 * limited in bytes and in requests. A run of samples gets a part of it when it is planned
 * and gives it back when its samples are done, so one large sample costs its size once.
 *
 * Starting a run copies what can be had without waiting (the page cache) on the caller's
 * thread, and submits all other reads of the run to their store at once. The last one that
 * completes makes the run ready for a worker. Every completion, and every batch that the
 * consumer gives back, plans and starts further runs as long as the window has room: it
 * stays full while all workers are busy.
 *
 * Threads: planning under the feed's lock; starting by the thread that planned; completions
 * by the store's threads. No read and no page fault happens under the lock. */
#ifndef LEAT_FEED_FETCH_H
#define LEAT_FEED_FETCH_H

#include <pthread.h>
#include <stdatomic.h>

#include "format/source.h"

struct leat_feed;
struct leat_batch;

enum {
	LEAT_RUN_ROWS = 64,          /* most samples of a run, */
	LEAT_RUN_ROWS_DIRECT = 256,  /* and when nothing is done with them but copying */
	LEAT_RUN_READS = 32,         /* most requests of a run */
	LEAT_RUN_BYTES = 320 * 1024, /* a run ends before it has more, but a single sample may */
	LEAT_LOCAL_REQUESTS = 64,    /* window of a store that does not say what it likes */
};

/* One sample of a run. */
struct leat_run_item {
	uint64_t sample;
	struct leat_extent extent;
	unsigned char *head, *payload, *tail;
	unsigned char *to; /* direct: where the payload goes as it is unpacked; NULL: it stays where it is */
	bool cached;       /* no bytes are needed: the cache has it; of all above only `sample` is set then */
	bool merged;       /* follows the item before it in the file: one request reads both */
	bool unread;       /* its bytes did not come: to be read alone, so that the error is its own */
};

/* A few samples, neighbours in a batch, that one worker takes care of. */
struct leat_run {
	struct leat_run *next; /* free, or ready */
	struct leat_batch *batch;
	int64_t first_row;
	int items;
	struct leat_run_item *item; /* room for budget.run_rows */
	size_t bytes;               /* of all items */
	bool started;               /* its bytes have come, or failed to */

	/* Its part of the window, and its neighbours there by address. */
	unsigned char *buffer;
	size_t room;
	struct leat_run *below, *above;

	struct leat_request *request; /* room for budget.run_reads */
	int requests;                 /* planned; under the lock: not done yet */
	int submitted;                /* of them, those that had to wait */
	atomic_int pending;           /* submitted and not done, and one while it is being started */
};

/* Items of a run that are read together. */
struct leat_request {
	struct leat_read read;
	struct leat_run *run;
	int first, end; /* items */
	bool under_way;
};

/* Of a feed. All but `cold` and `waiting` under the feed's lock. */
struct leat_fetch {
	unsigned char *window;
	size_t size;
	struct leat_run *lowest; /* run whose part has the lowest address */
	int limit, requests;     /* most requests of the window; planned or in flight */
	int under_way;           /* reads that a store has, and threads that refill */
	struct leat_request *request;
	atomic_bool cold;       /* the run started last had to wait: plan ahead of the workers */
	atomic_int waiting;     /* runs whose bytes are on their way */
	pthread_cond_t drained; /* nothing is under way any more */
};

/* How many bytes have to be read for it. */
static inline size_t
leat_item_bytes(const struct leat_run_item *item)
{
	return item->cached || item->extent.damaged ? 0 : (size_t)item->extent.length;
}

enum leat_status leat_fetch_open(struct leat_feed *feed, struct leat_err *err);
void leat_fetch_close(struct leat_feed *feed);
/* Stopped and drained: the window is empty. */
void leat_fetch_reset(struct leat_feed *feed);

/* ---- under the lock ---- */

/* Gives a run its part of the window: enough for `sample`, its first. False: there is no room now. */
bool leat_fetch_reserve(struct leat_feed *feed, struct leat_run *run, uint64_t sample, bool cached);
/* Adds an item, whose sample is set and not cached, for row `row` of the batch. False: the run is full without it. */
bool leat_fetch_plan(struct leat_feed *feed, struct leat_run *run, struct leat_run_item *item, int64_t row);
/* The run is planned: what it does not need of its part is for the next. */
void leat_fetch_planned(struct leat_feed *feed, struct leat_run *run);
/* The run is done. */
void leat_fetch_release(struct leat_feed *feed, struct leat_run *run);

/* ---- without the lock ---- */

/* Reads what is there, submits the rest. True: all of it is there; false: it comes back as a ready run. */
bool leat_fetch_start(struct leat_feed *feed, struct leat_run *run);
/* Plans and starts runs while the window has room and their bytes have to be waited for. Between enter (under the
 * lock; false: there is no need) and leave, so that stopping waits for it. */
void leat_fetch_refill(struct leat_feed *feed);
bool leat_fetch_enter(struct leat_feed *feed);
void leat_fetch_leave(struct leat_feed *feed);
/* Workers are gone: cancels what is in flight, and waits until no store writes to the window. */
void leat_fetch_drain(struct leat_feed *feed);
/* One item, waiting for it. */
enum leat_status leat_item_read(struct leat_feed *feed, const struct leat_run_item *item, struct leat_err *err);

#endif
