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
leat_limit(const struct leat_totals *totals, int stages, const struct leat_waits *waits)
{
	/* The consumer is served nearly always at once: it sets the pace. */
	if (waits->wait_ns <= (waits->wait_ns + waits->run_ns) / 20)
		return LEAT_LIMIT_STEP;
	if (!waits->ahead)
		return LEAT_LIMIT_PREFETCH;
	if (waits->disk_ns > waits->wait_ns / 2)
		return LEAT_LIMIT_DISK;
	if (stages == 0 || totals->read_ns > totals->op_ns)
		return LEAT_LIMIT_READ;
	return slowest_stage(totals, stages);
}
