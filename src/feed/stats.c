/* stats.c - a feed's counters and its bottleneck. Callable from any thread. */
#include <stdlib.h>
#include <string.h>

#include "feed/feed.h"
#include "store/remote.h"
#include "trace/limit.h"
#include "trace/stats.h"

enum { MAX_STATS = 1 << 16 };

static const char *
limit_name(const struct leat_feed *feed, int limit)
{
	switch (limit) {
	case LEAT_LIMIT_STEP:
		return "step";
	case LEAT_LIMIT_DISK:
		return "disk";
	case LEAT_LIMIT_NETWORK:
		return "network";
	case LEAT_LIMIT_READ:
		return "read";
	case LEAT_LIMIT_PREFETCH:
		return "prefetch";
	default:
		return feed->pipeline.stage[limit].op[0]->op->name;
	}
}

size_t
leat_held(const struct leat_feed *feed)
{
	return atomic_load(&feed->beyond.used);
}

/* Adds up what the stores have asked servers. False: there are none. */
static bool
count_requests(const struct leat_feed *feed, struct leat_stats *stats)
{
	const struct leat_stores *stores = &feed->pipeline.source.stores;
	bool remote = false;

	for (size_t i = 0; i < sizeof(stores->store) / sizeof(*stores->store); i++) {
		struct leat_origin_counts counts;

		if (!stores->store[i] || !leat_remote_counts(stores->store[i], &counts))
			continue;
		remote = true;
		stats->requests += counts.requests;
		stats->retries += counts.retries;
	}
	return remote;
}

/* As planned: neighbours share requests if their order is kept, or if they are in a unit. */
static const char *
way_of_reading(const struct leat_feed *feed)
{
	const struct leat_source *source = &feed->pipeline.source;

	if (feed->budget.stretches && feed->budget.spread == 1)
		return "streaming";
	if (source->table)
		return "objects";
	return source->units || feed->budget.stretches || leat_plan_spread(&feed->pipeline.plan) == 1 ? "merged ranges"
	                                                                                              : "ranges";
}

static void
collect(const struct leat_feed *feed, struct leat_stats *stats)
{
	struct leat_totals totals;
	bool remote;
	int limit;

	leat_trace_total(&feed->trace, &totals);
	*stats = (struct leat_stats){
#define COPY(name, unit, doc) .name = totals.name,
		LEAT_COUNTERS(COPY)
#undef COPY
			.memory = atomic_load(&feed->mem.used),
		.memory_peak = atomic_load(&feed->mem.peak),
		.threads = feed->budget.threads,
		.held = leat_held(feed),
		.pinned = atomic_load(&feed->pinned),
	};
	remote = count_requests(feed, stats);
	if (remote && stats->samples)
		strcpy(stats->reads, way_of_reading(feed));
	limit = leat_limit(&totals, feed->pipeline.stages, feed->budget.depth > 0, remote);
	strcpy(stats->limit, limit_name(feed, limit));
}

void
leat_stats_sized(const struct leat_feed *feed, struct leat_stats *stats, size_t size)
{
	struct leat_stats all;

	collect(feed, &all);
	memset(stats, 0, size);
	memcpy(stats, &all, size < sizeof all ? size : sizeof all);
}

char *
leat_stats_json(const struct leat_feed *feed)
{
	struct leat_stats stats;
	struct leat_mem mem;
	struct leat_str out;
	char *text = NULL;

	collect(feed, &stats);
	leat_mem_init(&mem, SIZE_MAX);
	leat_str_init(&out, &mem, MAX_STATS);
	leat_stats_add_json(&stats, &out);
	if (!out.failed)
		text = strdup(leat_str_text(&out)); /* the caller uses free(), not leat_free */
	leat_str_free(&out);
	return text;
}
