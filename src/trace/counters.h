/* counters.h - what each worker counts, and what limits the rate
 *
 * A worker adds to its own counters, anyone reads them at any time: relaxed atomics,
 * one writer each, so counting costs an addition. */
#ifndef LEAT_TRACE_COUNTERS_H
#define LEAT_TRACE_COUNTERS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum { LEAT_TRACE_STAGES = 64 };

struct leat_counters {
	_Atomic uint64_t read_ns;      /* reading what is in memory already, checking it */
	_Atomic uint64_t read_wait_ns; /* I/O threads: waiting for a device */
	_Atomic uint64_t op_ns;        /* all stages */
	_Atomic uint64_t idle_ns;      /* nothing to do: batches are full, or everything waits for a device */
	_Atomic uint64_t bytes_read;
	_Atomic uint64_t stage_ns[LEAT_TRACE_STAGES]; /* of every LEAT_TRACE_EVERY-th sample */
};

enum { LEAT_TRACE_EVERY = 8 };

static inline void
leat_count(_Atomic uint64_t *counter, uint64_t n)
{
	atomic_store_explicit(counter, atomic_load_explicit(counter, memory_order_relaxed) + n, memory_order_relaxed);
}

/* The sum over all workers at one moment. */
struct leat_totals {
	uint64_t read_ns, read_wait_ns, op_ns, idle_ns, bytes_read;
	uint64_t stage_ns[LEAT_TRACE_STAGES];
};

void leat_totals_add(struct leat_totals *totals, const struct leat_counters *counters);

/* The consumer's time: inside `next` and between two calls of it. */
struct leat_waits {
	uint64_t wait_ns, run_ns;
	uint64_t disk_ns; /* of wait_ns: all workers were waiting for a device */
	bool ahead;       /* batches are made before they are asked for */
};

/* What limits: LEAT_LIMIT_STEP the consumer, _DISK a device, _READ reading and checking, _PREFETCH that
 * nothing is made ahead, 0 and up the stage with that number. */
enum { LEAT_LIMIT_STEP = -1, LEAT_LIMIT_DISK = -2, LEAT_LIMIT_READ = -3, LEAT_LIMIT_PREFETCH = -4 };

int leat_limit(const struct leat_totals *totals, int stages, const struct leat_waits *waits);

#endif
