/* stretch.h - stretches: long parts of a file on a server, each read with one request for many samples
 *
 * A request to a server costs as much as reading tens of KiB more, and its connection is slow until
 * it is well under way. So if a plan keeps neighbours together, the samples that follow one another
 * share requests of up to LEAT_STRETCH_BYTES, whatever the batches and runs are: planning looks ahead
 * and reads over gaps that cost less than a request (leat_store_kind.request_cost). Runs stay short,
 * so that workers have equal shares; each waits for the stretches that its samples are in.
 *
 * A stretch has a part of the window from when it is planned until no run needs it and it is not
 * *open*: samples that are planned next may still be in it. In order, one is open at most; if a sample
 * is not in it, it closes before room is looked for, so that nothing waits for memory that it keeps.
 * Blocks that are shuffled (leat_plan_spread) have many, each until all of its samples were planned.
 * If nothing but open ones is in the window and there is no room, the oldest one closes, and what is
 * left of it is read again.
 *
 * A run has samples in stretches, or a single one that is too long for that and read by itself.
 *
 * Threads: see fetch.h. */
#ifndef LEAT_FEED_STRETCH_H
#define LEAT_FEED_STRETCH_H

#include "feed/fetch.h"

enum {
	LEAT_STRETCH_BYTES = 2 << 20, /* longest */
	LEAT_STRETCH_LEAST = 1 << 19, /* not worth it below */
	LEAT_STRETCHES = 64,          /* most at a time, memory permitting */
	LEAT_STRETCH_LOOK = 8192,     /* max samples to look ahead for one */
};

struct leat_stretch {
	enum leat_stretch_state {
		LEAT_STRETCH_NONE,
		LEAT_STRETCH_PLANNED, /* to be read by the next thread that starts a run */
		LEAT_STRETCH_READING,
		LEAT_STRETCH_THERE,
		LEAT_STRETCH_LOST, /* failed: its samples are read one by one */
	} state;
	uint32_t file;
	uint64_t begin, end; /* in the file */
	uint64_t next;       /* in order: where the next sample may begin; those before are in use */
	uint64_t left;       /* not in order: samples that were not planned yet */
	bool open;
	struct leat_stretch *older; /* in the open list */
	uint64_t epoch;
	unsigned users; /* runs */
	struct leat_window_part part;
	struct leat_request request;
	struct leat_waits waiting;
	struct leat_stretch *after; /* in the planned list */
};

/* A sample found by looking ahead. */
struct leat_near {
	uint64_t begin, end;
};

enum leat_status leat_stretches_open(struct leat_feed *feed, struct leat_err *err);
void leat_stretches_close(struct leat_feed *feed);
void leat_stretches_reset(struct leat_feed *feed);

/* ---- under the lock ---- */

/* Finds or plans the stretch for the next item of a run. */
enum leat_shared leat_stretch_plan(struct leat_feed *feed, struct leat_run *run, struct leat_run_item *item,
                                   int64_t row);
void leat_stretches_unpin(struct leat_feed *feed, struct leat_run *run);
void leat_stretches_cancel(struct leat_feed *feed);

/* ---- without the lock ---- */

/* Starts reading planned stretches. */
void leat_stretches_start(struct leat_feed *feed);

#endif
