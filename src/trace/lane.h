/* lane.h - per-thread counters
 *
 * Each thread of a feed has a lane: every worker, every I/O thread, and the consumer (whichever thread calls
 * leat_next). Only its own thread writes to a lane; any thread may read it at any time. Counters are relaxed
 * atomics, so counting is a load, an add and a store. Lanes are aligned to LEAT_APART bytes to avoid false sharing.
 *
 * The counters are listed in LEAT_STATS in leat.h. A new line there adds the counter to lanes, totals,
 * struct leat_stats, JSON, Python and the reference page; only the counting itself has to be written. */
#ifndef LEAT_TRACE_LANE_H
#define LEAT_TRACE_LANE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/mem.h"

enum {
	LEAT_TRACE_STAGES = 64,
	LEAT_TRACE_EVERY = 8,        /* stages are timed for one sample in this many, a power of two */
	LEAT_TRACE_EVERY_PLAIN = 64, /* the same without ops, where a sample costs as much as reading the clock */
	LEAT_APART = 128,            /* alignment of data written by different threads */
};

/* Expands X(name, unit, doc) for each counter in LEAT_STATS, skipping gauges and names. */
#define LEAT_COUNTERS(X) LEAT_STATS(X, LEAT_STATS_SKIP, LEAT_STATS_SKIP)
#define LEAT_STATS_SKIP(...)

enum leat_lane_kind { LEAT_LANE_CONSUMER, LEAT_LANE_WORKER, LEAT_LANE_IO };

struct leat_counters {
#define LEAT_COUNTER(name, unit, doc) _Atomic uint64_t name;
	LEAT_COUNTERS(LEAT_COUNTER)
#undef LEAT_COUNTER
};

/* Counters of lanes that no struct shows: the figures of a run are made from them (feed/figures.h). */
#define LEAT_LANE_COUNTERS(X)                                                                                          \
	X(made)       /* workers: samples made, repeats included */                                                    \
	X(from_cache) /* workers: those of them that were in the cache */                                              \
	X(gathered)   /* workers: those that were gathered (feed/gather.h) */                                          \
	X(made_ns)    /* workers: making them, in op_ns or read_ns */                                                  \
	X(unpack_ns)  /* workers: of the samples that are timed, as are the next two */                                \
	X(cache_ns)                                                                                                    \
	X(store_ns)                                                                                                    \
	X(collate_ns)   /* workers: completing batches */                                                              \
	X(units_ns)     /* workers: decoding units, also in read_ns */                                                 \
	X(blocked_ns)   /* workers: the part of idle_ns without a batch to fill */                                     \
	X(asleep_ns)    /* consumer: the part of wait_ns spent waiting for a batch */                                  \
	X(idle_since)   /* workers: when the worker became idle; 0: it is not */                                       \
	X(idle_blocked) /* ... and whether that will be blocked_ns */

struct leat_lane {
	_Alignas(LEAT_APART) enum leat_lane_kind kind;
	unsigned index; /* among lanes of its kind */
	char name[24];  /* for display: "worker 3" */
	struct leat_counters count;
#define LEAT_COUNTER(name) _Atomic uint64_t name;
	LEAT_LANE_COUNTERS(LEAT_COUNTER)
#undef LEAT_COUNTER
	_Atomic uint64_t stage_ns[LEAT_TRACE_STAGES]; /* of one sample in LEAT_TRACE_EVERY */
};

/* All lanes of a feed. */
struct leat_trace {
	struct leat_lane *consumer, *worker, *io; /* one, `workers` and `io_threads` of them */
	unsigned workers, io_threads;
};

/* The sum over all lanes. Not a snapshot: threads keep counting while the lanes are read. */
struct leat_totals {
#define LEAT_COUNTER(name, unit, doc) uint64_t name;
	LEAT_COUNTERS(LEAT_COUNTER)
#undef LEAT_COUNTER
#define LEAT_COUNTER(name) uint64_t name;
	LEAT_LANE_COUNTERS(LEAT_COUNTER)
#undef LEAT_COUNTER
	uint64_t stage_ns[LEAT_TRACE_STAGES];
};

/* Memory needed for the lanes, before rounding up to whole pages. */
size_t leat_trace_bytes(unsigned workers, unsigned io_threads);
enum leat_status leat_trace_open(struct leat_trace *trace, unsigned workers, unsigned io_threads, struct leat_mem *mem,
                                 struct leat_err *err);
void leat_trace_close(struct leat_trace *trace, struct leat_mem *mem); /* accepts a zeroed trace */
void leat_trace_total(const struct leat_trace *trace, struct leat_totals *totals);

static inline uint64_t
leat_counted(const _Atomic uint64_t *counter)
{
	return atomic_load_explicit(counter, memory_order_relaxed);
}

/* Called only by the thread that owns the lane. */
static inline void
leat_count(_Atomic uint64_t *counter, uint64_t n)
{
	atomic_store_explicit(counter, leat_counted(counter) + n, memory_order_relaxed);
}

#endif
