/* limit.c - see limit.h */
#include "trace/limit.h"

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
leat_limit(const struct leat_totals *totals, int stages, bool ahead, bool remote)
{
	/* The consumer waits less than 5 % of the time, so it is the bottleneck. */
	if (totals->wait_ns <= (totals->wait_ns + totals->run_ns) / 20)
		return LEAT_LIMIT_STEP;
	if (!ahead)
		return LEAT_LIMIT_PREFETCH;
	/* Reads from servers end one by one, so that hardly ever all workers wait at once. But workers that are idle
	 * for a quarter of the time are not the bottleneck. */
	if (remote && totals->idle_ns > (totals->read_ns + totals->op_ns) / 3)
		return LEAT_LIMIT_NETWORK;
	if (totals->disk_ns > totals->wait_ns / 2)
		return remote ? LEAT_LIMIT_NETWORK : LEAT_LIMIT_DISK;
	if (stages == 0 || totals->read_ns > totals->op_ns)
		return LEAT_LIMIT_READ;
	return slowest_stage(totals, stages);
}
