/* stats.c - a feed's counters and its bottleneck. Callable from any thread. */
#include <stdlib.h>
#include <string.h>

#include "feed/feed.h"
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

static void
collect(const struct leat_feed *feed, struct leat_stats *stats)
{
	struct leat_totals totals;
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
	};
	limit = leat_limit(&totals, feed->pipeline.stages, feed->budget.depth > 0);
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
