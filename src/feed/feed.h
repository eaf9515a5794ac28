/* feed.h - the engine's inside: plan -> fetch -> work -> deliver
 *
 * Threads
 *  - the consumer calls leat_next and friends (feed.c, checkpoint.c);
 *  - `threads` workers (work.c) take runs: those whose bytes have come, else they plan the
 *    next few samples of the batch being filled and start to fetch them; they run the chain on
 *    each sample and store it in its row;
 *  - threads of the stores complete reads, and plan and start others (fetch.c).
 *
 * One lock guards everything marked so below; nobody holds it while reading or working, nor
 * takes the jumbo lock or one of a store's under it (but for cancelling reads). Batches are
 * planned in order, finished in any order, delivered in order. */
#ifndef LEAT_FEED_FEED_H
#define LEAT_FEED_FEED_H

#include <pthread.h>

#include "base/log.h"
#include "base/threads.h"
#include "feed/batch.h"
#include "feed/cache.h"
#include "feed/fetch.h"
#include "feed/pipeline.h"
#include "trace/lane.h"

enum {
	LEAT_MAX_PREFETCH = 16,       /* batches ahead when the engine chooses, */
	LEAT_MAX_PREFETCH_FAR = 1024, /* and when a store wants many reads in flight */
	LEAT_REPLACE_TRIES = 8,
	LEAT_FEED_RESERVE =
		96 * 1024, /* that the list of bad samples leaves: going back to a checkpoint takes memory */
};

/* How the feed's memory is divided, once, at open (budget.c). */
struct leat_budget {
	unsigned threads, io_threads;
	int depth;   /* batches planned ahead of the consumer */
	int buffers; /* batches there are */
	int runs, run_rows, run_reads;
	size_t run_bytes;    /* of a run, unless it is one sample that has more */
	bool outliers;       /* there are such samples */
	size_t window;       /* bytes of all runs and units in flight, */
	int requests;        /* and requests */
	int units;           /* that are decoded, or being fetched, at a time */
	size_t scratch;      /* of each worker */
	size_t jumbo;        /* of the one that samples too large for a worker's scratch share */
	size_t sample_bytes; /* of a struct leat_sample with as many fields as any stage has */
	struct leat_batch_form form;
	size_t least; /* memory that it cannot be done without */
};

struct leat_worker {
	struct leat_feed *feed;
	struct leat_scratch scratch;
	struct leat_work work;
	struct leat_sample *sample; /* budget.sample_bytes */
	struct leat_batch *batch;   /* of the row that is worked on */
	int64_t row;
	bool in_chain;                /* past reading and unpacking, whose errors say where the sample lies */
	uint64_t run_ended, run_took; /* the last run, in ns */
	uint64_t seen;                /* samples, to time every so many */
	struct leat_lane *lane;
	unsigned char apart[LEAT_APART]; /* from the next worker */
};

struct leat_feed {
	struct leat_mem mem;
	struct leat_log log;
	struct leat_options options;
	struct leat_pipeline pipeline;
	struct leat_budget budget;
	struct leat_cache *cache; /* NULL: none */
	uint64_t cache_size;
	int64_t global_rows; /* of a batch over all ranks */
	int tail;            /* enum leat_tail, never AUTO */
	struct leat_trace trace;
	uint64_t opened_ns;
	uint64_t seed; /* changes only while no worker runs */
	struct leat_worker *worker;
	struct leat_run *run;
	struct leat_run_item *run_items; /* of all runs */
	atomic_bool stop;                /* workers look between two samples */

	_Alignas(LEAT_APART) pthread_mutex_t lock;
	pthread_cond_t work, ready; /* something to do for workers; for the consumer */

	/* Under the lock: */
	bool running, cancelled, closed;
	uint64_t waits_since; /* the consumer waits for the head of the flight; 0: it does not, or was woken */
	bool wanted;          /* the consumer waits inside leat_next */
	unsigned idle;        /* workers waiting for `work` */
	uint64_t plan_epoch, plan_position; /* where the next batch begins */
	struct leat_batch *filling;         /* planned, but not to its end */
	struct leat_batch **flight;         /* planned and not delivered, in plan order: a ring of `buffers` */
	int flight_head, flight_count;
	struct leat_batch *free_batches; /* the one used last first: it is still in the cache */
	int held;                        /* by the consumer */
	struct leat_run *free_runs, *ready_runs, **ready_tail;
	struct leat_fetch fetch;
	struct leat_sample plan_sample; /* that planning looks at in the cache */

	/* The consumer's: */
	_Alignas(LEAT_APART) uint64_t epoch, position;
	bool epoch_over; /* its last batch was delivered, LEAT_END not yet */
	struct leat_err failure;
	uint64_t last_out_ns;
	struct leat_bad *bad; /* delivered with their batches, in plan order */
	uint64_t bad_listed;
	size_t bad_cap;
	uint64_t bad_of_epoch;

	atomic_int refs; /* the feed itself and each batch held */
	struct leat_threads workers;

	pthread_mutex_t jumbo_lock;
	struct leat_scratch jumbo; /* under jumbo_lock */
};

/* budget.c: divides `memory`; fails with the minimum when it is too little. `used` is held already, and
 * `peak` was while the source was opened. */
enum leat_status leat_budget_make(struct leat_budget *budget, const struct leat_pipeline *pipeline,
                                  const struct leat_options *options, int64_t rows, size_t used, size_t peak,
                                  const struct leat_log *log, struct leat_err *err);

/* open_cache.c: opens the cache that the spec asks for, if it does; `room` is what memory= leaves for it. Again after
 * the seed changed: what random ops before a cache made is of the old one. */
enum leat_status leat_feed_open_cache(struct leat_feed *feed, size_t room, struct leat_err *err);

/* work.c */
void leat_worker_body(void *feed, unsigned i);
/* Under the lock: how far the planner may go from here. False: nothing is left to plan. */
bool leat_plan_next_batch(const struct leat_feed *feed, uint64_t *epoch, uint64_t *position);
/* Under the lock: wakes a worker when one waits. */
void leat_feed_wake(struct leat_feed *feed);
/* Under the lock: the next few samples of the batch that is being filled; NULL: nothing is left to plan now. `worker`
 * (NULL: another thread) is who plans. */
struct leat_run *leat_plan_run(struct leat_feed *feed, const struct leat_worker *worker);

/* engine.c: buffers and threads. */
enum leat_status leat_engine_open(struct leat_feed *feed, struct leat_err *err);
enum leat_status leat_engine_start(struct leat_feed *feed, struct leat_err *err);
void leat_engine_stop(struct leat_feed *feed); /* when no thread runs it does nothing */
/* Stopped: everything that was prefetched is forgotten, the next batch is the one at this place. */
void leat_engine_seek(struct leat_feed *feed, uint64_t epoch, uint64_t position);
void leat_engine_close(struct leat_feed *feed); /* leaves only what batches that are held need */

/* options.c: fills in what was left to the environment, and checks. */
enum leat_status leat_options_resolve(struct leat_options *to, const struct leat_options *from, struct leat_err *err);

/* feed.c: leat_open, for specs that need no batch as well, and with the hook that makes memory fail (-1: never). */
enum leat_status leat_feed_open(const char *spec, const struct leat_options *options, enum leat_batching batching,
                                long fail_after, struct leat_feed **feed, struct leat_err *err);
void leat_feed_unref(struct leat_feed *feed);

#endif
