/* lane.h - what each thread of a feed counts
 *
 * Every thread has a lane: each worker, each I/O thread, and the consumer (whichever thread calls leat_next).
 * A lane has one writer, and any thread may read it at any time. Its counters are relaxed atomics, so counting
 * is a load, an addition and a store. Lanes are LEAT_APART bytes apart: no thread slows another one down by
 * counting.
 *
 * The counters are those of LEAT_STATS in leat.h. Adding a line there adds the counter to lanes, totals,
 * struct leat_stats, JSON, Python and the reference page; what is left to do is to count. */
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
	LEAT_TRACE_EVERY = 8, /* stages are timed for one sample in so many */
	LEAT_APART = 128,     /* bytes between what one thread writes and what others use meanwhile */
};

/* Expands X(name, unit, doc) for each counter, without the gauges and names of LEAT_STATS. */
#define LEAT_COUNTERS(X) LEAT_STATS(X, LEAT_STATS_SKIP, LEAT_STATS_SKIP)
#define LEAT_STATS_SKIP(...)

enum leat_lane_kind { LEAT_LANE_CONSUMER, LEAT_LANE_WORKER, LEAT_LANE_IO };

struct leat_counters {
#define LEAT_COUNTER(name, unit, doc) _Atomic uint64_t name;
	LEAT_COUNTERS(LEAT_COUNTER)
#undef LEAT_COUNTER
};

struct leat_lane {
	_Alignas(LEAT_APART) enum leat_lane_kind kind;
	unsigned index; /* among the lanes of its kind */
	char name[24];  /* for people: "worker 3" */
	struct leat_counters count;
	_Atomic uint64_t stage_ns[LEAT_TRACE_STAGES]; /* of one sample in LEAT_TRACE_EVERY */
};

/* All lanes of a feed. */
struct leat_trace {
	struct leat_lane *consumer, *worker, *io; /* one, `workers` and `io_threads` of them */
	unsigned workers, io_threads;
};

/* The sum over all lanes. Lanes are read one after the other while threads go on counting. */
struct leat_totals {
#define LEAT_COUNTER(name, unit, doc) uint64_t name;
	LEAT_COUNTERS(LEAT_COUNTER)
#undef LEAT_COUNTER
	uint64_t stage_ns[LEAT_TRACE_STAGES];
};

/* What the lanes take of the memory limit, before rounding up to whole pages. */
size_t leat_trace_bytes(unsigned workers, unsigned io_threads);
enum leat_status leat_trace_open(struct leat_trace *trace, unsigned workers, unsigned io_threads, struct leat_mem *mem,
                                 struct leat_err *err);
void leat_trace_close(struct leat_trace *trace, struct leat_mem *mem); /* takes one that was never opened */
void leat_trace_total(const struct leat_trace *trace, struct leat_totals *totals);

static inline uint64_t
leat_counted(const _Atomic uint64_t *counter)
{
	return atomic_load_explicit(counter, memory_order_relaxed);
}

/* Only by the thread whose lane it is. */
static inline void
leat_count(_Atomic uint64_t *counter, uint64_t n)
{
	atomic_store_explicit(counter, leat_counted(counter) + n, memory_order_relaxed);
}

#endif
