/* feed.h - engine internals: plan -> fetch -> work -> deliver
 *
 * Threads
 *  - The consumer calls leat_next and friends (feed.c, checkpoint.c).
 *  - Workers (work.c) process runs of samples. A worker takes a run whose bytes have arrived; if
 *    there is none, it plans the next few samples of the batch being filled and starts reading
 *    them. It runs the chain on each sample and stores the result in its row.
 *  - Store threads complete reads, then plan and start more (fetch.c).
 *
 * One lock guards the fields marked below. It is never held during I/O or ops. While holding it,
 * never take the jumbo lock, nor a store's lock except to cancel reads. Batches are planned in
 * order, finished in any order, and delivered in order. */
#ifndef LEAT_FEED_FEED_H
#define LEAT_FEED_FEED_H

#include <pthread.h>
#include <sys/types.h>

#include "base/log.h"
#include "base/threads.h"
#include "feed/batch.h"
#include "feed/cache.h"
#include "feed/fetch.h"
#include "feed/figures.h"
#include "feed/pin.h"
#include "feed/pipeline.h"
#include "feed/process.h"
#include "feed/tune.h"
#include "trace/figures.h"
#include "trace/histogram.h"
#include "trace/lane.h"
#include "trace/ring.h"

enum {
	LEAT_MAX_PREFETCH = 16,       /* most batches prefetched when the engine chooses */
	LEAT_MAX_PREFETCH_FAR = 1024, /* same, for stores that want many reads in flight */
	LEAT_REPLACE_TRIES = 8,
	LEAT_BAD_LISTED = 1000,
	LEAT_BAD_BYTES = 160 * 1024,
	LEAT_ERRORS_READ = 0, /* in leat_feed.errors: reading and unpacking, then each stage */
	LEAT_ERRORS_STAGE = 1,
};

/* How the feed divides its memory. Computed once, at open (budget.c). */
struct leat_budget {
	bool threads_set; /* by the user: not tuned */
	bool frugal;      /* memory= is the default: prefetch as if it were ENOUGH, unless the pipeline needs more */
	unsigned threads, io_threads;
	int depth;   /* batches prefetched */
	int buffers; /* batches allocated */
	int runs, run_rows, run_reads;
	int bulk_rows;                  /* most of a run in bulk; 0: there are none */
	size_t run_bytes;               /* limit per run; a run of one sample may exceed it */
	bool scattered;                 /* samples are far apart, and the source can prefetch where they are */
	bool outliers;                  /* some samples exceed run_bytes */
	size_t window;                  /* byte limit for runs and units in flight */
	int requests;                   /* limit on requests in flight */
	int units;                      /* units decoded or being read at a time */
	int stretches;                  /* stretches read at a time (stretch.h); 0: samples are read by runs alone */
	size_t stretch_bytes;           /* limit per stretch */
	uint64_t spread;                /* leat_plan_spread, if there are stretches */
	int block_groups;               /* groups of shuffled blocks in memory (blocks.h); 0: they are not read whole */
	size_t block_bytes;             /* limit per group */
	size_t block_pieces;            /* the same, */
	size_t block_reads;             /* and of reads */
	struct leat_plan_blocks blocks; /* if there are groups */
	bool gathers;                   /* small samples far apart are gathered from the page cache (gather.h) */
	size_t scratch;                 /* bytes per worker */
	size_t exchange, exchange_large; /* shared with each worker's process, and with all of them */
	size_t jumbo;                    /* bytes of the shared scratch for samples too large for a worker's own */
	size_t sample_bytes;             /* size of a struct leat_sample with the most fields of any stage */
	struct leat_batch_form form;
	size_t used;    /* already allocated when the budget was made */
	size_t least;   /* minimum memory */
	size_t divided; /* memory=, or as much of a default as is used */
};

struct leat_spans;

struct leat_worker {
	struct leat_feed *feed;
	struct leat_scratch scratch;
	struct leat_work work;
	struct leat_sample *sample; /* budget.sample_bytes */
	struct leat_batch *batch;   /* batch of the current row */
	int64_t row;
	bool in_chain;                /* past reading and unpacking, whose errors already name the file and offset */
	uint64_t run_ended, run_took; /* end and duration of the last run, in ns */
	unsigned seen;                /* samples so far */
	unsigned untimed; /* stages are timed if seen & untimed is 0: one sample in a power of two, or all */
	struct leat_lane *lane;
	struct leat_ring *ring;          /* for the spans of the current run; NULL: not recorded */
	uint16_t every;                  /* runs, of which one is recorded */
	unsigned char apart[LEAT_APART]; /* no cache line shared with the next worker */
};

struct leat_feed {
	struct leat_mem mem;
	struct leat_mem beyond; /* not limited: batches that the consumer keeps although memory= has no room for them */
	pid_t pid;              /* of the process that opened it; a forked child has its memory, but not its threads */
	struct leat_log log;
	struct leat_warnings warnings;
	struct leat_options options;
	struct leat_storage storage;
	struct leat_pipeline pipeline;
	struct leat_budget budget;
	struct leat_processes *processes; /* NULL: none */
	struct leat_cache *cache;         /* NULL: none */
	uint64_t cache_size;
	char *cache_dir;     /* NULL: in memory */
	int64_t global_rows; /* rows of a batch, over all ranks */
	int tail;            /* enum leat_tail, never AUTO */
	uint64_t started_at; /* position at which the first batch began after opening or restoring a checkpoint */
	struct leat_trace trace;
	struct leat_spans *spans; /* NULL: there is no recorder (spans.h) */
	char *contents;           /* of LEAT_SHA256_HEX: the hash of all data, once it is known; else "" (contents.c) */
	uint64_t opened_ns;
	uint64_t source_ns;            /* when the source was open */
	_Atomic uint64_t started_ns;   /* when the workers were last started; 0: they are stopped */
	_Atomic uint64_t ran_ns;       /* how long they ran before that */
	_Atomic uint64_t first_run_ns; /* when the first bytes were there */
	double cpus;                   /* that the process may use */
	double cpu_opened;             /* CPU seconds of the process when the feed was opened */
	_Atomic uint64_t errors[LEAT_ERRORS_STAGE + LEAT_TRACE_STAGES]; /* samples that failed, by where */
	uint64_t seed;                                                  /* changes only while workers are stopped */
	struct leat_worker *worker;
	struct leat_run *run;
	struct leat_run_item *run_items; /* storage for all runs */
	atomic_bool stop;                /* checked by workers between samples, and by decoders (struct leat_scratch) */

	_Alignas(LEAT_APART) pthread_mutex_t lock;
	pthread_cond_t work, ready; /* signal work to workers; a batch to the consumer */
	pthread_cond_t parked;      /* wakes workers that sleep because fewer suffice */

	/* Under the lock: */
	bool running, cancelled, closed;
	uint64_t waits_since;  /* when the consumer began waiting for the head of `flight`; 0: not waiting, or woken */
	bool wanted;           /* the consumer is inside leat_next */
	unsigned idle;         /* workers waiting on `work` */
	struct leat_tune tune; /* workers from tune.threads on are parked; at most tune.depth batches are made ahead */
	uint64_t plan_epoch, plan_position; /* start of the next batch */
	struct leat_batch *filling;         /* batch only partly planned */
	struct leat_batch **flight;         /* planned but not delivered, in plan order: a ring of `buffers` */
	int flight_head, flight_count;
	struct leat_batch *free_batches; /* a stack: the most recently used is still in the CPU cache */
	int slots;                       /* budget.buffers, or one more: see wait_for_head */
	int held;                        /* slots the consumer holds */
	struct leat_batch *spare;        /* slot beyond budget.buffers; NULL: none */
	struct leat_run *free_runs;
	int ready_count;                    /* runs whose bytes are there (ready.h) */
	int complete;                       /* batches of `flight` that are complete */
	_Atomic uint64_t first_complete_ns; /* when the first batch ever was; 0: not yet */
	struct leat_fetch fetch;
	struct leat_sample plan_sample; /* for the planner's cache lookups */

	/* Consumer only: */
	_Alignas(LEAT_APART) uint64_t epoch, position;
	bool epoch_over; /* the last batch was delivered, LEAT_END was not */
	struct leat_err failure;
	uint64_t last_out_ns;
	uint64_t delivered_ns; /* when the last batch was, or when the first of an epoch was asked for; 0: none yet */
	bool asks_again;       /* the last call gave no batch, only because it was not ready */
	struct leat_histogram batch_times; /* from one delivery to the next */
	struct leat_epochs epochs;
	struct leat_depths depths; /* of the queues, each time a batch is taken */
	struct leat_bad *bad;      /* the list, LEAT_BAD_BYTES with its texts (bad.c); NULL: on_error=fail */
	uint64_t bad_listed;
	size_t bad_room; /* where the texts begin */
	bool bad_full;
	uint64_t bad_of_epoch;
	struct leat_pin pin;

	atomic_size_t pinned; /* bytes */
	atomic_int refs;      /* the feed itself and each batch in use */
	struct leat_threads workers;

	pthread_mutex_t jumbo_lock;
	struct leat_scratch jumbo; /* under jumbo_lock */
};

/* stats.c: "objects" (one request per sample), "ranges" (the same), "merged ranges" or "streaming". */
const char *leat_way_of_reading(const struct leat_feed *feed);

/* budget.c: divides `memory`. The error for too little memory names the minimum. `used` is already allocated;
 * `peak` was the most while the source was opened. */
enum leat_status leat_budget_make(struct leat_budget *budget, const struct leat_pipeline *pipeline,
                                  const struct leat_options *options, int64_t rows, size_t used, size_t peak,
                                  const struct leat_log *log, struct leat_err *err);

/* budget.c: what the memory is divided into, in the order shown. Their sum is what the feed reserves. */
struct leat_budget_part {
	const char *what;
	uint64_t count;
	size_t each;
};
enum { LEAT_BUDGET_PARTS = 12 };
int leat_budget_parts(const struct leat_budget *budget, const struct leat_pipeline *pipeline,
                      struct leat_budget_part part[LEAT_BUDGET_PARTS]);

/* budget.c: a sample did not fit, even into `scratch`, the large one: appends the memory= that should do to the error.
 * Workers, without the lock. */
void leat_advise_memory(struct leat_worker *worker, const struct leat_scratch *scratch, struct leat_err *err);

/* open_cache.c: opens the cache if the spec has one; `room` is what memory= leaves for it. Call again after the seed
 * changes: results of random ops before the cache depend on it. */
enum leat_status leat_feed_open_cache(struct leat_feed *feed, size_t room, struct leat_err *err);

/* ranks.c: sets the size of a global batch, its tail mode, and this rank's rows. */
enum leat_status leat_ranks_open(struct leat_feed *feed, int64_t *rows, struct leat_err *err);
/* Moves to the next epoch if this one has no batch left for this rank. False: no batches left. */
bool leat_plan_next_batch(const struct leat_feed *feed, uint64_t *epoch, uint64_t *position);
/* Sets this rank's rows of the global batch that starts at position `begin`. */
void leat_ranks_begin(const struct leat_feed *feed, struct leat_batch *batch, uint64_t epoch, uint64_t begin);
/* The same without a batch: its first position and, returned, the one after the last. */
uint64_t leat_ranks_share(const struct leat_feed *feed, uint64_t begin, uint64_t *first);
/* Batches of an epoch on the rank that has the most. */
uint64_t leat_ranks_batches(const struct leat_feed *feed);
/* Does a skipped sample leave a row of padding, so that batches keep their size? */
bool leat_ranks_keep_bad(const struct leat_feed *feed);
/* Position of the sample that a row after own_rows repeats. */
uint64_t leat_ranks_repeated(const struct leat_feed *feed, const struct leat_batch *batch, int64_t row);

/* Position of a row (< good_rows) in the epoch. */
static inline uint64_t
leat_row_position(const struct leat_feed *feed, const struct leat_batch *batch, int64_t row)
{
	return row < batch->own_rows ? batch->first + (uint64_t)row : leat_ranks_repeated(feed, batch, row);
}

/* Are cached samples final, with no ops left to run? */
static inline bool
leat_caches_finished(const struct leat_feed *feed)
{
	return feed->cache && feed->pipeline.cached == feed->pipeline.stages;
}

/* work.c */
void leat_worker_body(void *feed, unsigned i);
/* Under the lock: wakes an idle worker, if any. */
void leat_feed_wake(struct leat_feed *feed);

/* plan_run.c: may the next batch begin? Without prefetch, only when the consumer waits for it. */
bool leat_may_begin_batch(const struct leat_feed *feed);
/* Under the lock: plans the next few samples of the batch being filled. NULL: nothing can be planned now. `worker` is
 * the calling worker; NULL on other threads. */
struct leat_run *leat_plan_run(struct leat_feed *feed, const struct leat_worker *worker);

/* tune_feed.c: applies what tune.h decides. Under the lock, except where said. */
void leat_tuning_open(struct leat_feed *feed); /* once, while nobody else uses the feed */
/* The consumer begins to wait, or takes the first batch of `flight`. */
void leat_tuning_waits(struct leat_feed *feed);
void leat_tuning_takes(struct leat_feed *feed);
/* Any thread, without the lock: sets what is in use from now on, for tests. */
void leat_tuning_set(struct leat_feed *feed, unsigned threads, int depth);
/* Any thread, without the lock: what was chosen, and why. Returns how many there are. */
struct leat_tuning_choice {
	const char *what; /* "threads", "prefetch" (batches ahead), "requests", "window" and "stretch" (bytes) */
	uint64_t value;
	bool set; /* by the user */
	char why[LEAT_TUNE_TEXT];
};
enum { LEAT_TUNING_CHOICES = 5 };
int leat_tuning_list(const struct leat_feed *feed, struct leat_tuning_choice choice[LEAT_TUNING_CHOICES]);
/* The same for struct leat_figures, */
void leat_tuning_read(const struct leat_feed *feed, struct leat_figures *figures);
/* and in one line: "2 of 8 threads (why), 4 batches ahead (why)". */
void leat_tuning_add_text(const struct leat_feed *feed, struct leat_str *out);

/* bad.c: the list of bad samples. */
enum leat_status leat_bad_open(struct leat_feed *feed, struct leat_err *err);
void leat_bad_close(struct leat_feed *feed);
/* Workers, without the lock: notes why a row's sample is bad. */
void leat_bad_note(struct leat_batch *batch, int64_t row, uint64_t sample, const struct leat_err *err);
/* The consumer: counts and lists the bad samples of a batch. LEAT_LIMIT: there are more than max_bad. */
enum leat_status leat_bad_deliver(struct leat_feed *feed, const struct leat_batch *batch, struct leat_err *err);

/* leat_worker.untimed, if not all samples are to be timed. */
static inline unsigned
leat_feed_untimed(const struct leat_feed *feed)
{
	return (feed->pipeline.stages ? LEAT_TRACE_EVERY : LEAT_TRACE_EVERY_PLAIN) - 1;
}

/* figures.c: the consumer, under the lock: how full the queues are. */
void leat_feed_note_depths(struct leat_feed *feed);

/* engine.c: buffers and threads. */
enum leat_status leat_engine_open(struct leat_feed *feed, struct leat_err *err);
enum leat_status leat_engine_start(struct leat_feed *feed, struct leat_err *err);
void leat_engine_stop(struct leat_feed *feed); /* no-op if not running */
/* While stopped: drops all prefetched batches; the next batch starts at this position. */
void leat_engine_seek(struct leat_feed *feed, uint64_t epoch, uint64_t position);
void leat_engine_close(struct leat_feed *feed); /* keeps only what batches still in use need */

/* options.c: fills in defaults from the environment and checks all options. */
enum leat_status leat_options_resolve(struct leat_options *to, const struct leat_options *from, struct leat_err *err);

/* feed.c: leat_open with optional batching, and a test hook: allocations fail after `fail_after` (-1: never). With
 * LEAT_BATCH_EXPLAINED, only compiles the spec and divides the memory: the feed has no buffers and no threads. */
enum leat_status leat_feed_open(const char *spec, const struct leat_options *options, enum leat_batching batching,
                                long fail_after, struct leat_feed **feed, struct leat_err *err);
void leat_feed_unref(struct leat_feed *feed);
/* feed.c, any thread: takes and drops a reference that a DLPack tensor or Arrow array has to a field. */
void leat_batch_hold_field(struct leat_batch *batch, int column);
void leat_batch_release_field(struct leat_batch *batch, int column);
/* batch_arrow.c: leat_capsule_free for capsules of Arrow. */
void leat_arrow_capsule_free(void *capsule);

#endif
