/* plan_run.c - which samples come next, where their bytes go, and which rows they fill
 *
 * All under the feed's lock: it is cheap arithmetic over a few positions. Workers, stores' threads and the consumer
 * call it, whichever has nothing older to do. */
#include "feed/feed.h"

/* Rows whose samples are chosen at once: cheaper than one by one, and the slots of a cache can be prefetched. */
enum { CHOOSE_AHEAD = 32 };

bool
leat_may_begin_batch(const struct leat_feed *feed)
{
	int limit = feed->tune.depth > 0 ? feed->tune.depth : feed->wanted;

	return feed->free_batches && feed->flight_count < limit;
}

/* Prefers the batch that this worker filled last: it may still be in this CPU's cache, and fetching one from
 * another CPU's cache is slow. */
static struct leat_batch **
free_batch(struct leat_feed *feed, const struct leat_worker *w)
{
	struct leat_batch **first = &feed->free_batches;

	for (struct leat_batch **at = first; *at && w; at = &(*at)->next)
		if ((*at)->begun_by == w)
			return at;
	return first;
}

static bool
begin_batch(struct leat_feed *feed, const struct leat_worker *w)
{
	struct leat_batch **from, *batch;

	if (!leat_may_begin_batch(feed)) {
		if (feed->free_batches)
			leat_tune_holds_back(&feed->tune);
		return false;
	}
	if (!leat_plan_next_batch(feed, &feed->plan_epoch, &feed->plan_position))
		return false;
	from = free_batch(feed, w);
	batch = *from;
	*from = batch->next;
	batch->begun_by = w;
	leat_batch_reset(batch);
	batch->assigning = batch->form->ragged && !batch->form->shares && leat_caches_finished(feed);
	leat_ranks_begin(feed, batch, feed->plan_epoch, feed->plan_position);
	feed->plan_position = batch->end;
	feed->flight[(feed->flight_head + feed->flight_count++) % feed->budget.buffers] = batch;
	feed->filling = batch;
	return true;
}

/* Until a row is planned, the array of positions holds its sample number. */
static void
choose(struct leat_feed *feed, struct leat_batch *batch, int64_t rows)
{
	uint64_t *chosen = leat_batch_positions(batch) + batch->chosen;

	for (int64_t i = 0; i < rows; i++)
		chosen[i] = leat_row_position(feed, batch, batch->chosen + i);
	leat_plan_many(&feed->pipeline.plan, batch->epoch, chosen, (size_t)rows);
	batch->chosen += rows;
}

/* Chooses the samples of a few more rows. The slots of a cache and, unless samples come in order, the entries of an
 * index are prefetched, so that lookups don't stall. */
static __attribute__((noinline)) void
choose_ahead(struct leat_feed *feed, struct leat_batch *batch)
{
	const struct leat_source *source = &feed->pipeline.source;
	const uint64_t *chosen = leat_batch_positions(batch) + batch->chosen;
	int64_t left = batch->good_rows - batch->chosen, rows = left < CHOOSE_AHEAD ? left : CHOOSE_AHEAD;

	choose(feed, batch, rows);
	for (int64_t i = 0; feed->cache && i < rows; i++)
		leat_cache_prefetch_slot(feed->cache, chosen[i]);
	if (feed->budget.scattered)
		source->kind->prefetch(source, chosen, (size_t)rows);
}

/* The sample of the batch's next row. */
static inline uint64_t
next_sample(struct leat_feed *feed, struct leat_batch *batch)
{
	if (batch->chosen == batch->planned)
		choose_ahead(feed, batch);
	return leat_batch_positions(batch)[batch->planned];
}

/* Adds the sample of the batch's next row to the run. False: the run is full. */
static bool
plan_item(struct leat_feed *feed, struct leat_run *run)
{
	struct leat_batch *batch = run->batch;
	struct leat_run_item *item = &run->item[run->items];

	item->raw.index = next_sample(feed, batch);
	item->cached = feed->cache && leat_cache_has(feed->cache, item->raw.index);
	item->merged = item->unread = false;
	item->to = NULL;
	if (!item->cached && !leat_fetch_plan(feed, run, item, batch->planned))
		return false;
	leat_batch_positions(batch)[batch->planned] = leat_row_position(feed, batch, batch->planned);
	batch->planned++;
	run->items++;
	return true;
}

/* The lengths of cached final samples are known now. Runs after the whole run is planned, when the prefetches have had
 * time to complete. */
static void
assign_ragged_rows(struct leat_feed *feed, const struct leat_run *run)
{
	for (int i = 0; i < run->items && run->batch->assigning; i++) {
		const struct leat_run_item *item = &run->item[i];

		if (item->cached && leat_cache_peek(feed->cache, item->raw.index, &feed->plan_sample))
			leat_batch_assign_ragged_row(run->batch, run->first_row + i, &feed->plan_sample);
		else
			leat_batch_stop_assigning(run->batch);
	}
}

/* How many of the chosen rows from the next one on have their samples in the cache. */
static int64_t
count_cached(const struct leat_feed *feed, const struct leat_batch *batch, int64_t rows)
{
	const uint64_t *chosen = leat_batch_positions(batch) + batch->planned;
	int64_t i = 0;

	for (int64_t k = 0; k < rows; k++)
		leat_cache_prefetch_slot(feed->cache, chosen[k]);
	while (i < rows && leat_cache_has(feed->cache, chosen[i]))
		i++;
	return i;
}

/* Chooses the rows of a run in bulk; 0: the samples are made one by one. Those in a cache are worth it if they are as
 * many as another run has. */
static int64_t
choose_bulk(struct leat_feed *feed, struct leat_batch *batch)
{
	int64_t left = batch->good_rows - batch->planned,
		rows = left < feed->budget.bulk_rows ? left : feed->budget.bulk_rows, cached;

	if (rows == 0 || (feed->pipeline.cache && !feed->cache))
		return 0;
	if (feed->cache && !leat_cache_has(feed->cache, next_sample(feed, batch)))
		return 0;
	if (batch->chosen < batch->planned + rows)
		choose(feed, batch, batch->planned + rows - batch->chosen);
	if (!feed->cache)
		return rows;
	cached = count_cached(feed, batch, rows);
	return cached == rows || cached >= feed->budget.run_rows ? cached : 0;
}

/* The run has no items, only samples: see choose. The first item stands for all of them where one is asked for. */
static void
plan_bulk(struct leat_run *run, int64_t rows)
{
	struct leat_batch *batch = run->batch;

	run->item[0] = (struct leat_run_item){0};
	run->items = (int)rows;
	batch->planned += rows;
}

struct leat_run *
leat_plan_run(struct leat_feed *feed, const struct leat_worker *w)
{
	struct leat_run *run = feed->free_runs;
	struct leat_batch *batch;
	uint64_t first = 0;
	int64_t rows;

	if (!run || (!feed->filling && !begin_batch(feed, w)))
		return NULL;
	batch = feed->filling;
	run->batch = batch;
	run->first_row = batch->planned;
	run->items = 0;
	rows = choose_bulk(feed, batch);
	run->bulk = rows > 0;
	if (feed->budget.outliers && !run->bulk && batch->planned < batch->good_rows)
		first = next_sample(feed, batch);
	if (!leat_fetch_reserve(feed, run, first,
	                        batch->planned == batch->good_rows ||
	                                (feed->cache &&
	                                 (run->bulk || !feed->budget.outliers || leat_cache_has(feed->cache, first)))))
		return NULL;
	if (run->bulk)
		plan_bulk(run, rows);
	while (!run->bulk && batch->planned < batch->good_rows && run->items < feed->budget.run_rows &&
	       run->bytes < LEAT_RUN_BYTES)
		if (!plan_item(feed, run))
			break;
	leat_fetch_planned(feed, run);
	if (run->items == 0 && batch->planned < batch->good_rows) { /* no room for the first sample's unit */
		leat_fetch_release(feed, run);
		return NULL;
	}
	feed->free_runs = run->next;
	assign_ragged_rows(feed, run);
	if (batch->planned == batch->good_rows)
		feed->filling = NULL;
	return run;
}
