/* stats.c - a feed's counters and its bottleneck. Callable from any thread. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "feed/feed.h"
#include "store/remote.h"
#include "trace/limit.h"
#include "trace/stats.h"

enum { MAX_STATS = 1 << 22 };

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

	if (feed->pid != getpid()) /* the servers' locks may be held for ever */
		return false;
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
const char *
leat_way_of_reading(const struct leat_feed *feed)
{
	const struct leat_source *source = &feed->pipeline.source;

	if (feed->budget.stretches && feed->budget.spread == 1)
		return "streaming";
	if (source->table)
		return "objects";
	return source->units || feed->budget.stretches || feed->budget.block_groups ||
	                       leat_plan_spread(&feed->pipeline.plan) == 1
	               ? "merged ranges"
	               : "ranges";
}

void
leat_feed_stats(const struct leat_feed *feed, const struct leat_totals *totals, const char *limit,
                struct leat_stats *stats)
{
	*stats = (struct leat_stats){
#define COPY(name, unit, doc) .name = totals->name,
		LEAT_COUNTERS(COPY)
#undef COPY
			.memory = atomic_load(&feed->mem.used),
		.memory_peak = atomic_load(&feed->mem.peak),
		.threads = feed->budget.threads,
		.held = leat_held(feed),
		.pinned = atomic_load(&feed->pinned),
	};
	if (count_requests(feed, stats) && stats->samples)
		strcpy(stats->reads, leat_way_of_reading(feed));
	strcpy(stats->limit, limit);
}

static void
collect(const struct leat_feed *feed, struct leat_stats *stats)
{
	struct leat_stage_list stages;
	struct leat_totals totals;
	struct leat_limit limit;

	leat_trace_total(&feed->trace, &totals);
	leat_feed_stages(feed, &totals, &stages);
	leat_limit_find(&stages, &limit);
	leat_feed_stats(feed, &totals, limit.name, stats);
}

void
leat_stats_sized(const struct leat_feed *feed, struct leat_stats *stats, size_t size)
{
	struct leat_stats all;

	collect(feed, &all);
	memset(stats, 0, size);
	memcpy(stats, &all, size < sizeof all ? size : sizeof all);
}

/* Besides the members of struct leat_stats, what `leat feed --json` has above its own `stats`. */
static void
add_headline(const struct leat_figures *f, struct leat_str *out)
{
	const struct leat_stats *st = &f->stats;
	double time = (double)(st->wait_ns + st->run_ns) / 1e9;

	leat_str_add(out, "\"seconds\": ");
	leat_figures_add_number(out, time, 6);
	leat_str_add(out, ", \"samples_per_s\": ");
	leat_figures_add_number(out, time > 0 ? (double)st->samples / time : 0, 1);
	leat_str_add(out, ", \"mb_per_s\": ");
	leat_figures_add_number(out, time > 0 ? (double)st->bytes / 1e6 / time : 0, 3);
	leat_str_add(out, ", \"wait_share\": ");
	leat_figures_add_number(out, time > 0 ? (double)st->wait_ns / 1e9 / time : 0, 5);
	leat_str_add(out, ", \"first_batch_ms\": ");
	leat_figures_add_number(out, (double)st->first_batch_ns / 1e6, 3);
	leat_str_addf(out, ", \"bad_count\": %llu, ", (unsigned long long)st->bad);
}

static void
add_all(const struct leat_figures *f, struct leat_str *out)
{
	leat_stats_add_json(&f->stats, out);
	if (out->failed)
		return;
	out->text[--out->len] = '\0'; /* the brace */
	leat_str_add(out, ",\n ");
	add_headline(f, out);
	leat_figures_add_json(f, out);
	leat_str_add(out, "}");
}

static char *
text_of(const struct leat_feed *feed, void (*add)(const struct leat_figures *f, struct leat_str *out))
{
	struct leat_figures *figures;
	struct leat_mem mem;
	struct leat_str out;
	char *text = NULL;

	leat_mem_init(&mem, SIZE_MAX);
	figures = leat_alloc(&mem, sizeof *figures);
	if (!figures)
		return NULL;
	leat_feed_figures(feed, false, figures);
	leat_str_init(&out, &mem, MAX_STATS);
	add(figures, &out);
	if (!out.failed)
		text = strdup(leat_str_text(&out)); /* the caller uses free(), not leat_free */
	leat_str_free(&out);
	leat_free(&mem, figures);
	return text;
}

char *
leat_stats_json(const struct leat_feed *feed)
{
	return text_of(feed, add_all);
}

char *
leat_stats_prometheus(const struct leat_feed *feed)
{
	return text_of(feed, leat_figures_add_prometheus);
}
