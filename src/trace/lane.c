/* lane.c - see lane.h
 *
 * All lanes share one mapping: first the consumer's, then the workers', then the I/O threads'. */
#include "trace/lane.h"

#include <stdio.h>

#include "base/clock.h"

static unsigned
lane_count(unsigned workers, unsigned io_threads)
{
	return 1 + workers + io_threads;
}

size_t
leat_trace_bytes(unsigned workers, unsigned io_threads)
{
	return lane_count(workers, io_threads) * sizeof(struct leat_lane);
}

static void
name_lanes(struct leat_lane *lane, unsigned count, enum leat_lane_kind kind, const char *name)
{
	for (unsigned i = 0; i < count; i++) {
		lane[i].kind = kind;
		lane[i].index = i;
		snprintf(lane[i].name, sizeof lane[i].name, "%s %u", name, i);
	}
}

enum leat_status
leat_trace_open(struct leat_trace *trace, unsigned workers, unsigned io_threads, struct leat_mem *mem,
                struct leat_err *err)
{
	size_t bytes = leat_trace_bytes(workers, io_threads);
	struct leat_lane *lane = leat_map(mem, bytes);

	if (!lane)
		return leat_fail_mem(err, mem, bytes, "the counters");
	*trace = (struct leat_trace){
		.consumer = lane,
		.worker = lane + 1,
		.io = lane + 1 + workers,
		.workers = workers,
		.io_threads = io_threads,
	};
	*trace->consumer = (struct leat_lane){.kind = LEAT_LANE_CONSUMER, .name = "consumer"};
	name_lanes(trace->worker, workers, LEAT_LANE_WORKER, "worker");
	name_lanes(trace->io, io_threads, LEAT_LANE_IO, "I/O");
	return LEAT_OK;
}

void
leat_trace_close(struct leat_trace *trace, struct leat_mem *mem)
{
	leat_unmap(mem, trace->consumer, leat_trace_bytes(trace->workers, trace->io_threads));
	*trace = (struct leat_trace){0};
}

static void
add_lane(struct leat_totals *totals, const struct leat_lane *lane)
{
#define ADD(name, unit, doc) totals->name += leat_counted(&lane->count.name);
	LEAT_COUNTERS(ADD)
#undef ADD
#define ADD(name) totals->name += leat_counted(&lane->name);
	LEAT_LANE_COUNTERS(ADD)
#undef ADD
	for (int s = 0; s < LEAT_TRACE_STAGES; s++)
		totals->stage_ns[s] += leat_counted(&lane->stage_ns[s]);
}

/* A worker counts its idle time when it wakes up, which may be much later. */
static void
add_idle(struct leat_totals *totals, const struct leat_lane *lane, uint64_t now)
{
	uint64_t since = leat_counted(&lane->idle_since);

	if (since == 0 || since >= now)
		return;
	totals->idle_ns += now - since;
	if (leat_counted(&lane->idle_blocked))
		totals->blocked_ns += now - since;
}

void
leat_trace_total(const struct leat_trace *trace, struct leat_totals *totals)
{
	uint64_t now = leat_now();

	*totals = (struct leat_totals){0};
	for (unsigned i = 0; i < lane_count(trace->workers, trace->io_threads); i++)
		add_lane(totals, &trace->consumer[i]);
	for (unsigned i = 0; i < trace->workers; i++)
		add_idle(totals, &trace->worker[i], now);
}
