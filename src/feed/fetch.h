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
	LEAT_RUN_UNITS = 4,          /* most units of a run */
	LEAT_LOCAL_REQUESTS = 64,    /* window of a store that does not say what it likes */
};

/* A part of the window, and its neighbours there. */
struct leat_window_part {
	unsigned char *bytes;
	size_t size;
	struct leat_window_part *below, *above;
};

/* One sample of a run. */
struct leat_run_item {
	struct leat_raw raw;
	unsigned char *to; /* direct: where the payload goes as it is unpacked; NULL: it stays where it is */
	bool cached;       /* no bytes are needed: the cache has it; of the above only raw.index is set then */
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

	struct leat_window_part part; /* of the window */
	struct leat_unit_slot *unit[LEAT_RUN_UNITS];
	struct leat_unit_wait {
		struct leat_run *run;
		struct leat_unit_wait *next;
	} wait[LEAT_RUN_UNITS]; /* for those units that are not there yet */
	int units;

	struct leat_request *request; /* room for budget.run_reads */
	int requests;                 /* planned; under the lock: not done yet */
	int submitted;                /* of them, those that had to wait */
	atomic_int pending;           /* reads not done, units not there, and one while it is being started */
};

/* Items of a run that are read together. */
struct leat_request {
	struct leat_read read;
	struct leat_feed *feed;
	struct leat_run *run;
	int first, end; /* items */
	bool under_way;
};

/* Room for a unit, and what becomes of it. */
struct leat_unit_slot {
	struct leat_unit unit;
	enum leat_unit_state {
		LEAT_UNIT_NONE,
		LEAT_UNIT_PLANNED, /* to be fetched by whoever starts something next */
		LEAT_UNIT_FETCHING,
		LEAT_UNIT_FETCHED, /* to be decoded by a worker */
		LEAT_UNIT_DECODING,
		LEAT_UNIT_THERE,
		LEAT_UNIT_LOST, /* it could not be had: each of its samples tries once more, and says why */
	} state;
	struct leat_extent extent;
	struct leat_window_part part; /* of the window, while it is not decoded */
	struct leat_request request;
	bool unread;
	unsigned users; /* runs */
	uint64_t last;  /* when it was asked for */
	struct leat_unit_wait *waiting;
	struct leat_unit_slot *next; /* of those that are planned, or fetched */
};

/* Of a feed. All but `cold` and `waiting` under the feed's lock. */
struct leat_fetch {
	unsigned char *window;
	size_t size;
	struct leat_window_part *lowest; /* part with the lowest address */
	int limit, requests;             /* most requests of the window; planned or in flight */
	int under_way;                   /* reads that a store has, and threads that refill */
	struct leat_request *request;
	struct leat_unit_slot *slot; /* budget.units */
	struct leat_unit_slot *planned, *fetched, **fetched_tail;
	uint64_t clock;
	atomic_bool cold;       /* the run started last had to wait: plan ahead of the workers */
	atomic_int waiting;     /* runs whose bytes are on their way */
	pthread_cond_t drained; /* nothing is under way any more */
};

/* How many bytes have to be read for it. */
static inline size_t
leat_item_bytes(const struct leat_run_item *item)
{
	return item->cached || item->raw.extent.damaged ? 0 : (size_t)item->raw.extent.length;
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

/* ---- units (units.c) ---- */

enum leat_status leat_units_open(struct leat_feed *feed, struct leat_err *err);
void leat_units_close(struct leat_feed *feed);
void leat_units_reset(struct leat_feed *feed);
/* Under the lock: the run needs the item's unit. False: there is no room for it now. */
bool leat_units_pin(struct leat_feed *feed, struct leat_run *run, struct leat_run_item *item);
void leat_units_unpin(struct leat_feed *feed, struct leat_run *run);
/* Starts to fetch what is planned. True: something has to be waited for. */
bool leat_units_start(struct leat_feed *feed);
/* Under the lock: a unit to be decoded, or NULL. */
struct leat_unit_slot *leat_units_take(struct leat_feed *feed);
/* Decodes it, without the lock. */
void leat_units_decode(struct leat_feed *feed, struct leat_unit_slot *slot, struct leat_scratch *scratch);
/* The item's unit for it alone, in the scratch's memory. */
enum leat_status leat_units_read(struct leat_feed *feed, struct leat_run_item *item, struct leat_unit *unit,
                                 struct leat_scratch *scratch, struct leat_err *err);

/* ---- shared with units.c ---- */

/* Under the lock. */
bool leat_window_take(struct leat_fetch *fetch, struct leat_window_part *part, size_t bytes);
void leat_window_give(struct leat_fetch *fetch, struct leat_window_part *part);
/* Under the lock: one thing less that the run waits for. */
void leat_run_progress(struct leat_feed *feed, struct leat_run *run);
/* Registers the request and hands it to the store. LEAT_AGAIN: the store cannot, read yourself; LEAT_CANCELLED: the
 * feed stops. */
enum leat_status leat_request_submit(struct leat_feed *feed, struct leat_request *request);

#endif
