/* fetch.h - read the bytes of planned samples
 *
 * Fetch owns everything about reading: where a sample's bytes are, which adjacent samples are
 * read together, what is in flight, and the memory for it. That memory is one *window*, limited
 * in bytes and requests. A run of samples reserves a part when it is planned and returns it when
 * its samples are done, so a large sample takes its size only once.
 *
 * Starting a run reads what is in the page cache on the caller's thread and submits all other
 * reads to their store at once. The last one to complete makes the run ready for a worker. Every
 * completion, and every batch that the consumer releases, plans and starts more runs while the
 * window has room, so it stays full while all workers are busy.
 *
 * Threads: planning happens under the feed's lock, starting on the thread that planned,
 * completion on the store's threads. No reads and no page faults under the lock. */
#ifndef LEAT_FEED_FETCH_H
#define LEAT_FEED_FETCH_H

#include <pthread.h>
#include <stdatomic.h>

#include "format/source.h"

struct leat_feed;
struct leat_batch;
struct leat_stretch;
struct leat_near;
struct leat_block_group;

enum {
	LEAT_RUN_ROWS = 64,          /* max samples per run */
	LEAT_RUN_ROWS_DIRECT = 256,  /* max samples per run that are only copied */
	LEAT_RUN_READS = 32,         /* max requests per run */
	LEAT_RUN_BYTES = 320 * 1024, /* max bytes per run; a single sample may exceed it */
	LEAT_RUN_UNITS = 4,          /* max units per run */
	LEAT_RUN_STRETCHES = 16,     /* max stretches per run */
	LEAT_LOCAL_REQUESTS = 64,    /* max requests in flight if the store has no preference */
};

/* A part of the window, linked to its neighbours. */
struct leat_window_part {
	unsigned char *bytes;
	size_t size;
	struct leat_window_part *below, *above;
};

/* One sample of a run. */
struct leat_run_item {
	struct leat_raw raw;
	unsigned char *to; /* direct: destination of the unpacked payload; NULL: not copied */
	bool cached;       /* in the cache, so nothing is read; of the above only raw.index is set */
	bool merged;       /* adjacent to the previous item in the file: one request reads both */
	bool unread;       /* read failed: retried alone, so that the error names the right sample */
};

/* Runs that wait for the same bytes, in the order in which they were planned: what is needed first comes first. */
struct leat_wait {
	struct leat_run *run;
	struct leat_wait *next;
};
struct leat_waits {
	struct leat_wait *first, *last;
};

static inline void
leat_waits_add(struct leat_waits *waits, struct leat_wait *wait, struct leat_run *run)
{
	*wait = (struct leat_wait){.run = run};
	if (waits->first)
		waits->last->next = wait;
	else
		waits->first = wait;
	waits->last = wait;
}

/* NULL: none is left. */
static inline struct leat_run *
leat_waits_take(struct leat_waits *waits)
{
	struct leat_wait *wait = waits->first;

	if (!wait)
		return NULL;
	waits->first = wait->next;
	return wait->run;
}

/* A few consecutive samples of a batch, processed by one worker. */
struct leat_run {
	struct leat_run *next;      /* in the free list */
	struct leat_run *heap_slot; /* not of this run: a slot of the ready runs, see ready.h */
	struct leat_batch *batch;
	int64_t first_row;
	int items;
	struct leat_run_item *item; /* room for budget.run_rows */
	size_t bytes;               /* sum over all items but those in blocks */
	bool started;               /* all reads have completed or failed */
	bool bulk;                  /* it is filled field by field (bulk.h), and has samples instead of items */
	bool unread;                /* in bulk: some rows are not in memory, for which there is a reason */

	struct leat_window_part part;
	struct leat_unit_slot *unit[LEAT_RUN_UNITS];
	struct leat_wait wait[LEAT_RUN_UNITS]; /* for units not decoded yet */
	int units;
	struct leat_stretch *stretch[LEAT_RUN_STRETCHES];
	struct leat_wait stretch_wait[LEAT_RUN_STRETCHES]; /* for stretches not read yet */
	int stretches;
	struct leat_block_group *blocks; /* that have samples of it (blocks.h); NULL: none */
	struct leat_wait blocks_wait;    /* if they were not read yet */
	size_t block_bytes;              /* of its samples there; not in `bytes` */

	int gathers;        /* most samples, if they are gathered (gather.h); 0: they are read */
	bool gathered;      /* and they were, */
	uint64_t waited_ns; /* time spent waiting for the device, if some were not in the page cache; else 0 */
	bool unsupported;   /* nothing can be gathered here */

	struct leat_request *request; /* room for budget.run_reads */
	int requests;                 /* planned and not completed; under the lock */
	int submitted;                /* requests handed to a store */
	atomic_int pending;           /* outstanding reads, units and stretches, plus one while starting */
};

/* Items of a run read with one request. */
struct leat_request {
	struct leat_read read;
	struct leat_feed *feed;
	struct leat_run *run;
	int first, end;        /* items */
	uint64_t submitted_ns; /* if the feed has a recorder */
	bool under_way;
};

/* Memory and state of a unit. */
struct leat_unit_slot {
	struct leat_unit unit;
	enum leat_unit_state {
		LEAT_UNIT_NONE,
		LEAT_UNIT_PLANNED, /* to be read by the next thread that starts a run */
		LEAT_UNIT_FETCHING,
		LEAT_UNIT_FETCHED, /* waiting for a worker to decode it */
		LEAT_UNIT_DECODING,
		LEAT_UNIT_THERE,
		LEAT_UNIT_LOST, /* failed: each of its samples retries and reports its own error */
	} state;
	struct leat_extent extent;
	struct leat_window_part part; /* until decoded */
	struct leat_request request;
	bool unread;
	unsigned users; /* runs */
	uint64_t last;  /* time of last use, in ticks of fetch.clock */
	struct leat_waits waiting;
	struct leat_unit_slot *next; /* in the planned or fetched list */
};

/* Reader state of a feed. Under the feed's lock, except `cold`, `waiting` and `unchecked_until`. */
struct leat_fetch {
	unsigned char *window;
	size_t size;
	struct leat_window_part *lowest; /* first part by address */
	int limit, requests;             /* max requests; requests planned or in flight */
	int under_way;                   /* reads submitted to stores, plus threads refilling the window */
	int in_flight;                   /* the former alone */
	_Atomic uint64_t busy_ns;        /* time with a read in flight, until the last one ended */
	_Atomic uint64_t busy_since;     /* since when there is one; 0: there is none */
	bool shares;                     /* runs share stretches or blocks; set at open */
	struct leat_request *request;
	struct leat_unit_slot *slot; /* budget.units */
	struct leat_unit_slot *planned, *fetched, **fetched_tail;
	uint64_t clock;
	struct leat_stretch *stretch;          /* budget.stretches (stretch.h) */
	struct leat_stretch *unstarted, *open; /* lists; the latest comes first */
	struct leat_near *near;                /* LEAT_STRETCH_LOOK, if samples are spread */
	struct leat_block_group *group;        /* budget.block_groups (blocks.h) */
	struct leat_block_group *group_now;    /* where planning is; NULL: not known, */
	struct leat_block_group *group_next;   /* and where it will be; NULL: not begun */
	int64_t group_owed;                    /* bytes of the next group to read by now */
	struct leat_gathering {
		int most;                 /* samples of a run; 0: paused */
		int64_t credit_ns;        /* that workers may wait */
		bool off;                 /* for good */
		uint64_t opened_ns;       /* when the last pause ended, */
		uint64_t until_ns;        /* when this one does, */
		uint64_t pause_ns;        /* and how long it is */
	} gathering;                      /* gather.h */
	atomic_bool cold;                 /* the last run had to wait for reads: plan ahead of the workers */
	atomic_int waiting;               /* runs with reads in flight */
	_Atomic uint64_t unchecked_until; /* when to check mapped files again, a time in ns */
	pthread_cond_t drained;           /* under_way is 0 */
};

/* Bytes to read for this item. */
static inline size_t
leat_item_bytes(const struct leat_run_item *item)
{
	return item->cached || item->raw.extent.damaged ? 0 : (size_t)item->raw.extent.length;
}

enum leat_status leat_fetch_open(struct leat_feed *feed, struct leat_err *err);
void leat_fetch_close(struct leat_feed *feed);
/* Empties the window. Only when stopped and drained. */
void leat_fetch_reset(struct leat_feed *feed);

/* ---- under the lock ---- */

/* Reserves a part of the window for a run, enough for its first sample. False: no room now. */
bool leat_fetch_reserve(struct leat_feed *feed, struct leat_run *run, uint64_t sample, bool cached);
/* Plans the reads of an uncached item whose raw.index is set. False: the run is full. */
bool leat_fetch_plan(struct leat_feed *feed, struct leat_run *run, struct leat_run_item *item, int64_t row);
/* Call when the run is planned: returns the unused rest of its part. */
void leat_fetch_planned(struct leat_feed *feed, struct leat_run *run);
/* Call when the run is done. */
void leat_fetch_release(struct leat_feed *feed, struct leat_run *run);

/* ---- without the lock ---- */

/* Reads what is in the page cache and submits the rest. True: all read. False: the run becomes ready later. */
bool leat_fetch_start(struct leat_feed *feed, struct leat_run *run);
/* Plans and starts runs while the window has room and reads have to wait. Call between enter (under the lock; false:
 * not needed) and leave, so that stopping waits for it. */
void leat_fetch_refill(struct leat_feed *feed);
bool leat_fetch_enter(struct leat_feed *feed);
void leat_fetch_leave(struct leat_feed *feed);
/* After the workers have exited: cancels reads in flight and waits until no store writes to the window. */
void leat_fetch_drain(struct leat_feed *feed);
/* Reads one item, blocking. */
enum leat_status leat_item_read(struct leat_feed *feed, const struct leat_run_item *item, struct leat_err *err);

/* ---- units (units.c) ---- */

enum leat_status leat_units_open(struct leat_feed *feed, struct leat_err *err);
void leat_units_close(struct leat_feed *feed);
void leat_units_reset(struct leat_feed *feed);
/* Under the lock: pins the item's unit for the run. False: no room now. */
bool leat_units_pin(struct leat_feed *feed, struct leat_run *run, struct leat_run_item *item);
void leat_units_unpin(struct leat_feed *feed, struct leat_run *run);
/* Starts reading planned units. True: some reads are in flight. */
bool leat_units_start(struct leat_feed *feed);
/* Under the lock: takes a unit to decode, or NULL. */
struct leat_unit_slot *leat_units_take(struct leat_feed *feed);
/* Decodes a unit; call without the lock. */
void leat_units_decode(struct leat_feed *feed, struct leat_unit_slot *slot, struct leat_scratch *scratch);
/* Reads and decodes the item's unit into scratch, for this item alone. */
enum leat_status leat_units_read(struct leat_feed *feed, struct leat_run_item *item, struct leat_unit *unit,
                                 struct leat_scratch *scratch, struct leat_err *err);

/* ---- shared with units.c, stretch.c and blocks.c ---- */

/* An item that may be in memory that runs share: */
enum leat_shared {
	LEAT_SHARED_TAKEN, /* its bytes will be there */
	LEAT_SHARED_FULL,  /* no room now, or the run is full */
	LEAT_SHARED_UNFIT, /* the run reads it, and has memory for it, if there is anything to read */
};

/* Under the lock. */
bool leat_window_take(struct leat_fetch *fetch, struct leat_window_part *part, size_t bytes);
void leat_window_give(struct leat_fetch *fetch, struct leat_window_part *part);
/* Under the lock: one read or unit of the run is done. */
void leat_run_progress(struct leat_feed *feed, struct leat_run *run);
/* A store's thread, without the lock: counts how long a read took. Under the lock: it is no longer under way. */
void leat_request_count(struct leat_feed *feed, const struct leat_read *read);
void leat_request_ended(struct leat_feed *feed, struct leat_request *request);
/* Submits the request to its store. LEAT_AGAIN: the store cannot take it, so the caller reads. LEAT_CANCELLED: the feed
 * is stopping. */
enum leat_status leat_request_submit(struct leat_feed *feed, struct leat_request *request);

#endif
