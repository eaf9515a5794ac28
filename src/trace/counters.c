/* counters.c - see counters.h */
#include "trace/counters.h"

static uint64_t
load(const _Atomic uint64_t *counter)
{
	return atomic_load_explicit(counter, memory_order_relaxed);
}

void
leat_totals_add(struct leat_totals *totals, const struct leat_counters *counters)
{
	totals->read_ns += load(&counters->read_ns);
	totals->read_wait_ns += load(&counters->read_wait_ns);
	totals->op_ns += load(&counters->op_ns);
	totals->idle_ns += load(&counters->idle_ns);
	totals->bytes_read += load(&counters->bytes_read);
	for (int s = 0; s < LEAT_TRACE_STAGES; s++)
		totals->stage_ns[s] += load(&counters->stage_ns[s]);
}

static int
slowest_stage(const struct leat_totals *totals, int stages)
{
	int slowest = 0;

	for (int s = 1; s < stages && s < LEAT_TRACE_STAGES; s++)
		if (totals->stage_ns[s] > totals->stage_ns[slowest])
			slowest = s;
	return slowest;
}

int
leat_limit(const struct leat_totals *totals, int stages, uint64_t wait_ns, uint64_t run_ns)
{
	uint64_t busy = totals->read_ns + totals->op_ns;

	/* The consumer is served nearly always at once: it sets the pace. */
	if (wait_ns < (wait_ns + run_ns) / 20)
		return LEAT_LIMIT_STEP;
	/* Workers that idle while the consumer waits lack bytes, or room to work ahead. */
	if (totals->idle_ns > busy)
		return totals->read_wait_ns > totals->idle_ns / 4 ? LEAT_LIMIT_DISK : LEAT_LIMIT_PREFETCH;
	if (stages == 0 || totals->read_ns > totals->op_ns)
		return LEAT_LIMIT_READ;
	return slowest_stage(totals, stages);
}
