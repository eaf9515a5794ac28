/* work.c - worker threads: take a run under the lock, process it without the lock
 *
 * A worker with nothing else to do plans the next run (plan_run.c). Runs whose reads have completed come first, because
 * they are older. The worker that finishes a batch's last row completes the batch. */
#include "base/clock.h"
#include "base/copy.h"
#include "feed/blocks.h"
#include "feed/bulk.h"
#include "feed/ready.h"
#include "feed/spans.h"

#include <string.h>

/* Longest delay, in ns, before a waiting consumer is woken. Fast batches are handed over several at a time;
 * otherwise waking the consumer would cost as much as making a batch. */
enum { PATIENCE = 200 * 1000 };

/* How many samples ahead an entry of a cache, or a sample of a block, is prefetched: at most so many bytes. */
enum { PREFETCH_AHEAD = 2, PREFETCH_BYTES = 1088, CACHE_LINE = 64 };

void
leat_feed_wake(struct leat_feed *feed)
{
	if (feed->idle > 0)
		pthread_cond_signal(&feed->work);
}

/* ---- taking a run: under the lock ---- */

static struct leat_run *
take_run(struct leat_worker *w)
{
	struct leat_feed *feed = w->feed;

	return feed->ready_count > 0 ? leat_ready_pop(feed) : leat_plan_run(feed, w);
}

/* Each worker wakes the next one while there is work. */
static void
wake_for_more(struct leat_feed *feed)
{
	if (feed->ready_count || feed->fetch.fetched ||
	    (feed->free_runs && (feed->filling || leat_may_begin_batch(feed))))
		leat_feed_wake(feed);
}

/* ---- work: without the lock ---- */

/* Gives leat_work_out the final location of a result, if this stage writes it. */
static void *
output_slot(struct leat_work *work, int field, size_t bytes)
{
	struct leat_worker *w = work->output_slot_arg;
	int column = w->feed->pipeline.stage[work->stage].output_slot[field];

	return column < 0 ? NULL : leat_batch_output_slot(w->batch, column, w->row, bytes);
}

static enum leat_status
run_in_process(struct leat_work *work, const struct leat_map_call *call, struct leat_err *err)
{
	struct leat_worker *w = work->output_slot_arg;

	return leat_processes_call(w->feed->processes, call, work->large, err);
}

/* ---- one sample; `timed` is a constant in each of its uses, so that most samples pay nothing for it ---- */

static inline __attribute__((always_inline)) enum leat_status
run_chain(struct leat_worker *w, int from, int to, const struct leat_sample_id *id, bool timed, struct leat_err *err)
{
	const struct leat_pipeline *p = &w->feed->pipeline;
	uint64_t stage_ns[LEAT_TRACE_STAGES];
	enum leat_status status;

	if (from == to)
		return LEAT_OK;
	if (!timed)
		return leat_chain_run(p, from, to, &w->work, id, NULL, err);
	memset(stage_ns, 0, sizeof stage_ns);
	status = leat_chain_run(p, from, to, &w->work, id, stage_ns, err);
	for (int s = from; s < to; s++)
		leat_count(&w->lane->stage_ns[s], stage_ns[s]);
	return status;
}

/* Counts the time since *mark, and moves the mark. */
static inline __attribute__((always_inline)) void
lap(_Atomic uint64_t *counter, uint64_t *mark, bool timed)
{
	uint64_t now;

	if (!timed)
		return;
	now = leat_now();
	leat_count(counter, now - *mark);
	*mark = now;
}

/* Unpacks an item and runs the stages before the cache. */
static inline __attribute__((always_inline)) enum leat_status
make_first(struct leat_worker *w, const struct leat_run_item *item, const struct leat_sample_id *id, bool timed,
           struct leat_err *err)
{
	const struct leat_pipeline *p = &w->feed->pipeline;
	uint64_t mark = timed ? leat_now() : 0;
	enum leat_status status = leat_source_unpack(&p->source, &item->raw, w->work.scratch, w->sample, err);

	lap(&w->lane->unpack_ns, &mark, timed);
	if (status != LEAT_OK || w->batch->form->direct)
		return status;
	w->in_chain = true;
	status = run_chain(w, 0, p->cached, id, timed, err);
	if (status == LEAT_OK && w->feed->cache) {
		mark = timed ? leat_now() : 0;
		leat_cache_put(w->feed->cache, item->raw.index, w->sample);
		lap(&w->lane->cache_ns, &mark, timed);
	}
	return status;
}

static bool
get_cached(struct leat_worker *w, const struct leat_run_item *item, bool timed)
{
	uint64_t mark = timed ? leat_now() : 0;
	bool there = leat_cache_get(w->feed->cache, item->raw.index, w->sample);

	lap(&w->lane->cache_ns, &mark, timed);
	leat_count(&w->lane->from_cache, there);
	return there;
}

/* run_chain with a span for each stage, which begin at *at. */
static enum leat_status
run_recorded_chain(struct leat_worker *w, int from, int to, const struct leat_sample_id *id, uint64_t *at,
                   struct leat_err *err)
{
	uint64_t stage_ns[LEAT_TRACE_STAGES];
	enum leat_status status;

	if (from == to)
		return LEAT_OK;
	memset(stage_ns, 0, sizeof stage_ns);
	status = leat_chain_run(&w->feed->pipeline, from, to, &w->work, id, stage_ns, err);
	for (int s = from; s < to; s++)
		leat_count(&w->lane->stage_ns[s], stage_ns[s]);
	*at = leat_spans_add_stages(w, from, to, stage_ns, *at, id->position);
	return status;
}

/* make_sample with spans for all its parts, one after the other. */
static enum leat_status
make_recorded_sample(struct leat_worker *w, const struct leat_run_item *item, const struct leat_sample_id *id,
                     struct leat_err *err)
{
	struct leat_feed *feed = w->feed;
	const struct leat_pipeline *p = &feed->pipeline;
	enum leat_status status = LEAT_OK;
	uint64_t at = leat_now(), mark = at;

	if (!item->cached) {
		status = leat_source_unpack(&p->source, &item->raw, w->work.scratch, w->sample, err);
		at = leat_spans_add(w, LEAT_TAG_DECODE, feed->spans->unpack, at, id->position);
		leat_count(&w->lane->unpack_ns, at - mark);
		if (status != LEAT_OK || w->batch->form->direct)
			return status;
		w->in_chain = true;
		status = run_recorded_chain(w, 0, p->cached, id, &at, err);
		mark = at;
		if (status == LEAT_OK && feed->cache)
			leat_cache_put(feed->cache, item->raw.index, w->sample);
	} else if (!get_cached(w, item, false)) {
		status = LEAT_AGAIN;
	}
	if (feed->cache) {
		at = leat_spans_add(w, LEAT_TAG_CACHE, 0, at, id->position);
		leat_count(&w->lane->cache_ns, at - mark);
	}
	if (status == LEAT_OK)
		status = run_recorded_chain(w, p->cached, p->stages, id, &at, err);
	if (status == LEAT_OK) {
		mark = at;
		status = leat_batch_store(w->batch, w->row, w->sample, err);
		at = leat_spans_add(w, LEAT_TAG_COLLATE, 0, at, id->position);
		leat_count(&w->lane->store_ns, at - mark);
	}
	return status;
}

static inline __attribute__((always_inline)) enum leat_status
make_and_store(struct leat_worker *w, const struct leat_run_item *item, bool timed, struct leat_err *err)
{
	const struct leat_pipeline *p = &w->feed->pipeline;
	struct leat_sample_id id = {w->feed->seed, w->batch->epoch, leat_row_position(w->feed, w->batch, w->row),
	                            item->raw.index};
	enum leat_status status = LEAT_OK;
	uint64_t mark;

	if (timed && w->untimed == 0)
		return make_recorded_sample(w, item, &id, err);
	if (!item->cached)
		status = make_first(w, item, &id, timed, err);
	else if (!get_cached(w, item, timed))
		status = LEAT_AGAIN;
	if (status != LEAT_OK || w->batch->form->direct)
		return status;
	status = run_chain(w, p->cached, p->stages, &id, timed, err);
	mark = timed ? leat_now() : 0;
	if (status == LEAT_OK)
		status = leat_batch_store(w->batch, w->row, w->sample, err);
	lap(&w->lane->store_ns, &mark, timed);
	return status;
}

static __attribute__((noinline)) enum leat_status
make_timed_sample(struct leat_worker *w, const struct leat_run_item *item, struct leat_err *err)
{
	return make_and_store(w, item, true, err);
}

/* Makes a sample from its bytes or the cache and stores it in its row. LEAT_AGAIN: no longer in the cache. */
static enum leat_status
make_sample(struct leat_worker *w, const struct leat_run_item *item, struct leat_scratch *scratch, struct leat_err *err)
{
	w->work.scratch = scratch;
	w->work.large = scratch == &w->feed->jumbo;
	w->in_chain = item->cached;
	if ((w->seen++ & w->untimed) == 0)
		return make_timed_sample(w, item, err);
	return make_and_store(w, item, false, err);
}

/* Retries a sample that overflowed the worker's scratch in the shared large one, one sample at a time. */
static enum leat_status
make_jumbo_sample(struct leat_worker *w, const struct leat_run_item *item, struct leat_err *err)
{
	struct leat_feed *feed = w->feed;
	enum leat_status status;

	leat_err_clear(err);
	pthread_mutex_lock(&feed->jumbo_lock);
	leat_scratch_reset(&feed->jumbo);
	status = make_sample(w, item, &feed->jumbo, err);
	if (status == LEAT_LIMIT)
		leat_advise_memory(w, &feed->jumbo, err);
	pthread_mutex_unlock(&feed->jumbo_lock);
	return status;
}

static enum leat_status
read_to_jumbo(struct leat_feed *feed, struct leat_run_item *item, struct leat_err *err)
{
	const struct leat_extent *extent = &item->raw.extent;
	unsigned char *bytes = leat_scratch_alloc(&feed->jumbo, (size_t)extent->length);

	if (!bytes)
		return leat_fail(err, LEAT_INTERNAL, "a sample does not fit the memory reserved for it");
	item->raw.head = bytes;
	item->raw.payload = bytes + extent->head;
	item->raw.tail = bytes + extent->length - extent->tail;
	return leat_item_read(feed, item, err);
}

/* Slow path for the few samples not read with their run: one at a time, into the large scratch. */
static enum leat_status
read_and_make(struct leat_worker *w, struct leat_run_item *item, struct leat_err *err)
{
	struct leat_feed *feed = w->feed;
	enum leat_status status = LEAT_OK;
	struct leat_unit unit;

	pthread_mutex_lock(&feed->jumbo_lock);
	leat_scratch_reset(&feed->jumbo);
	if (item->raw.extent.in_unit && !item->raw.extent.damaged)
		status = leat_units_read(feed, item, &unit, &feed->jumbo, err);
	else if (!item->raw.extent.damaged)
		status = read_to_jumbo(feed, item, err);
	if (status == LEAT_OK)
		status = make_sample(w, item, &feed->jumbo, err);
	if (status == LEAT_LIMIT)
		leat_advise_memory(w, &feed->jumbo, err);
	pthread_mutex_unlock(&feed->jumbo_lock);
	return status;
}

/* Locates a sample that was expected in the cache. */
static void
locate(struct leat_feed *feed, struct leat_run_item *item)
{
	const struct leat_source *source = &feed->pipeline.source;

	pthread_mutex_lock(&feed->lock); /* locate is not thread-safe */
	leat_source_locate(source, item->raw.index, &item->raw.extent);
	pthread_mutex_unlock(&feed->lock);
}

/* Copies a final sample from the cache to its row. LEAT_AGAIN: no longer in the cache. */
static enum leat_status
store_cached(struct leat_worker *w, const struct leat_run_item *item, struct leat_err *err)
{
	bool timed = (w->seen++ & w->untimed) == 0;
	enum leat_status status;
	uint64_t mark;

	w->in_chain = true;
	if (!get_cached(w, item, timed))
		return LEAT_AGAIN;
	mark = timed ? leat_now() : 0;
	status = leat_batch_store(w->batch, w->row, w->sample, err);
	lap(&w->lane->store_ns, &mark, timed);
	return status;
}

static enum leat_status
try_item(struct leat_worker *w, struct leat_run_item *item, struct leat_err *err)
{
	const struct leat_source *source = &w->feed->pipeline.source;
	enum leat_status status = item->unread ? leat_item_read(w->feed, item, err) : LEAT_OK;

	w->in_chain = false;
	if (status != LEAT_OK)
		return status;
	if (item->to && !item->raw.extent.oversized)
		return source->kind->unpack_to(source, &item->raw, item->to, w->batch->form->large, err);
	if (item->raw.unit && item->raw.unit->lost)
		return read_and_make(w, item, err);
	if (item->cached && leat_caches_finished(w->feed)) {
		status = store_cached(w, item, err);
	} else {
		leat_err_clear(err);
		leat_scratch_reset(&w->scratch);
		status = make_sample(w, item, &w->scratch, err);
	}
	if (status == LEAT_LIMIT)
		status = make_jumbo_sample(w, item, err);
	if (status == LEAT_AGAIN) {
		locate(w->feed, item);
		item->cached = false;
		status = read_and_make(w, item, err);
	}
	return status;
}

/* ---- bad samples ---- */

/* Is it a data error, which on_error handles? All other errors end the feed: a disk that fails or a lack of
 * descriptors would make other samples bad in every run. */
static bool
is_bad_sample(enum leat_status status)
{
	return status == LEAT_DATA || status == LEAT_UNSUPPORTED || status == LEAT_FUNCTION;
}

/* Reports the failure that is first in plan order, not in time. */
static void
fail_row(struct leat_worker *w, const struct leat_run_item *item, struct leat_err *err)
{
	struct leat_feed *feed = w->feed;
	struct leat_batch *batch = w->batch;
	char buf[LEAT_URI];

	if (w->in_chain && err->status == LEAT_FUNCTION)
		leat_err_in(err, "position %llu of epoch %llu", (unsigned long long)(batch->first + (uint64_t)w->row),
		            (unsigned long long)batch->epoch);
	if (w->in_chain)
		leat_err_in(err, "%s at offset %llu (sample %llu)",
		            leat_source_uri(&feed->pipeline.source, item->raw.extent.file, buf),
		            (unsigned long long)item->raw.extent.offset, (unsigned long long)item->raw.index);
	pthread_mutex_lock(&feed->lock);
	if (batch->err_row < 0 || w->row < batch->err_row) {
		batch->err_row = w->row;
		batch->err = *err;
	}
	pthread_mutex_unlock(&feed->lock);
}

/* Candidates depend only on seed, epoch and position, so every run picks the same ones. They come from the plan,
 * not the source, so that samples excluded by take, skip or shard stay excluded. */
static enum leat_status
replace(struct leat_worker *w, struct leat_err *err)
{
	struct leat_feed *feed = w->feed;
	const struct leat_source *source = &feed->pipeline.source;
	enum leat_status status = LEAT_DATA;

	for (unsigned j = 0; j < LEAT_REPLACE_TRIES && is_bad_sample(status); j++) {
		struct leat_run_item item = {0};
		struct leat_rng rng;

		leat_rng_init(&rng, feed->seed, w->batch->epoch, leat_row_position(feed, w->batch, w->row),
		              leat_stream("replace", j));
		pthread_mutex_lock(&feed->lock); /* plan and locate are not thread-safe */
		item.raw.index = leat_plan_at(&feed->pipeline.plan, w->batch->epoch,
		                              leat_rng_below(&rng, feed->pipeline.plan.size));
		leat_source_locate(source, item.raw.index, &item.raw.extent);
		pthread_mutex_unlock(&feed->lock);
		leat_err_clear(err);
		leat_batch_clear_row(w->batch, w->row);
		status = read_and_make(w, &item, err);
	}
	w->in_chain = true; /* the error names a replacement's file, not the original's: add it */
	if (is_bad_sample(status))
		leat_err_in(err, "bad, and so were all %d replacements tried; the last", LEAT_REPLACE_TRIES);
	return status;
}

/* Where the sample failed: at the stage that ran last, or while it was read and unpacked. */
static void
count_error(struct leat_worker *w)
{
	atomic_fetch_add_explicit(&w->feed->errors[w->in_chain ? LEAT_ERRORS_STAGE + w->work.stage : LEAT_ERRORS_READ],
	                          1, memory_order_relaxed);
}

static enum leat_row_state
handle_bad_sample(struct leat_worker *w, const struct leat_run_item *item, enum leat_status status,
                  struct leat_err *err)
{
	enum leat_on_error on_error = w->feed->options.on_error;

	count_error(w);
	if (!is_bad_sample(status) || on_error == LEAT_ON_ERROR_FAIL) {
		fail_row(w, item, err);
		return LEAT_ROW_BAD;
	}
	if (w->row < w->batch->own_rows) /* a repeat was counted before */
		leat_bad_note(w->batch, w->row, item->raw.index, err);
	if (on_error == LEAT_ON_ERROR_SKIP)
		return LEAT_ROW_BAD;
	if (replace(w, err) == LEAT_OK)
		return LEAT_ROW_GOOD;
	fail_row(w, item, err);
	return LEAT_ROW_BAD;
}

/* ---- the loop ---- */

/* Takes the samples of a run from where the planner left them, and puts their positions there. */
static void
take_samples(const struct leat_feed *feed, const struct leat_run *run, uint64_t *sample)
{
	uint64_t *position = leat_batch_positions(run->batch) + run->first_row;

	for (int i = 0; i < run->items; i++) {
		sample[i] = position[i];
		position[i] = leat_row_position(feed, run->batch, run->first_row + i);
	}
}

/* False: some rows cannot be read. The samples become items, so that each gets its own error. */
static bool
do_bulk(struct leat_worker *w, struct leat_run *run)
{
	const struct leat_pipeline *p = &w->feed->pipeline;
	uint64_t sample[LEAT_RUN_ROWS_DIRECT];
	struct leat_bulk_samples from = {&p->source, w->feed->cache, sample, (size_t)run->items};

	take_samples(w->feed, run, sample);
	if (!run->unread) {
		leat_bulk_fill(p->bulk, &from, run->batch, run->first_row, w->lane, from.cache ? w->untimed + 1 : 1);
		leat_count(&w->lane->from_cache, from.cache ? from.count : 0);
		memset(leat_batch_states(run->batch) + run->first_row, LEAT_ROW_GOOD, (size_t)run->items);
		return true;
	}
	for (int i = 0; i < run->items; i++) {
		run->item[i] = (struct leat_run_item){.raw.index = sample[i], .unread = true};
		locate(w->feed, &run->item[i]);
	}
	return false;
}

/* Asks for a sample that is in memory, but most likely not in the CPU's cache. Not inlined: few feeds need it. */
static __attribute__((noinline)) void
prefetch(const struct leat_worker *w, const struct leat_run *run, int i)
{
	const struct leat_run_item *item = &run->item[i];
	size_t bytes;

	if (i >= run->items)
		return;
	bytes = leat_item_bytes(item);
	if (item->cached)
		leat_cache_prefetch_sample(w->feed->cache, item->raw.index);
	bytes = bytes < PREFETCH_BYTES ? bytes : PREFETCH_BYTES;
	for (size_t at = 0; run->blocks && at < bytes; at += CACHE_LINE)
		__builtin_prefetch(item->raw.head + at, 0, 0); /* it is used once */
}

static void
do_items(struct leat_worker *w, struct leat_run *run)
{
	uint8_t *states = leat_batch_states(run->batch) + run->first_row;
	bool prefetches = run->blocks || w->feed->cache;
	struct leat_err err;

	w->batch = run->batch;
	leat_err_clear(&err);
	if (run->blocks && run->blocks->lost)
		leat_blocks_mark_lost(w->feed, run);
	for (int i = 0; i < run->items && !atomic_load_explicit(&w->feed->stop, memory_order_relaxed); i++) {
		enum leat_status status;

		w->row = run->first_row + i;
		if (prefetches)
			prefetch(w, run, i + PREFETCH_AHEAD);
		status = try_item(w, &run->item[i], &err);
		states[i] = LEAT_ROW_GOOD;
		if (status != LEAT_OK) {
			if (run->item[i].cached)
				locate(w->feed, &run->item[i]);
			states[i] = (uint8_t)handle_bad_sample(w, &run->item[i], status, &err);
			leat_err_clear(&err);
		}
	}
}

/* Runs the ops on whole batches, in spec order. */
static void
mix(const struct leat_feed *feed, struct leat_batch *batch)
{
	const struct leat_pipeline *p = &feed->pipeline;
	struct leat_rows rows = {
		.schema = &p->schema,
		.count = batch->count,
		.position = leat_batch_positions(batch),
		.batch = (uint64_t)feed->global_rows,
		.seed = feed->seed,
		.epoch = batch->epoch,
	};

	for (int i = 0; i < batch->form->columns; i++) {
		rows.column[i] = leat_batch_values(batch, i);
		rows.row_bytes[i] = batch->form->column[i].row_bytes;
	}
	for (int i = 0; i < p->mixes; i++) {
		rows.stream = p->mix[i]->stream;
		p->mix[i]->op->on_batch.run(p->mix[i]->params, &rows);
	}
}

/* Without the lock. Returns the time when it is done. */
static uint64_t
complete(struct leat_worker *w, struct leat_batch *batch)
{
	struct leat_feed *feed = w->feed;
	uint64_t begin = leat_now(), at = begin, end;

	leat_batch_complete(batch, leat_ranks_keep_bad(feed));
	if (feed->spans)
		at = leat_spans_add_batch(w, LEAT_TAG_COLLATE, 0, at, batch);
	if (feed->pipeline.mixes > 0)
		mix(feed, batch);
	if (feed->spans && feed->pipeline.mixes > 0)
		leat_spans_add_batch(w, LEAT_TAG_TRANSFORM, feed->spans->mix, at, batch);
	end = leat_now();
	leat_count(&w->lane->collate_ns, end - begin);
	return end;
}

/* Under the lock, released while a batch is completed. */
static void
finish_run(struct leat_worker *w, struct leat_run *run)
{
	struct leat_feed *feed = w->feed;
	struct leat_batch *batch = run->batch;
	uint64_t end;

	batch->done += run->items;
	leat_fetch_release(feed, run);
	run->next = feed->free_runs;
	feed->free_runs = run;
	if (batch->done < batch->good_rows)
		return;
	pthread_mutex_unlock(&feed->lock);
	end = complete(w, batch);
	pthread_mutex_lock(&feed->lock);
	batch->complete = true;
	feed->complete++;
	if (leat_counted(&feed->first_complete_ns) == 0)
		atomic_store_explicit(&feed->first_complete_ns, end, memory_order_relaxed);
}

/* Processes a run, starting its reads if needed. False: its reads are in flight. */
static bool
do_run(struct leat_worker *w, struct leat_run *run)
{
	struct leat_feed *feed = w->feed;
	uint64_t begin = leat_now(), middle;
	bool there = run->started || leat_fetch_start(feed, run);

	middle = leat_now();
	leat_count(&w->lane->count.read_ns, middle - begin);
	if (!there)
		return false;
	if (feed->spans)
		leat_spans_begin_run(w, run);
	if (leat_counted(&feed->first_run_ns) == 0)
		atomic_store_explicit(&feed->first_run_ns, middle, memory_order_relaxed);
	leat_count(&w->lane->count.bytes_read, run->bytes + run->block_bytes);
	leat_count(&w->lane->made, (uint64_t)run->items);
	leat_count(&w->lane->gathered, run->gathered ? (uint64_t)run->items : 0);
	if (!run->bulk || !do_bulk(w, run))
		do_items(w, run);
	if (run->batch->form->large)
		leat_copy_fence();
	w->run_ended = leat_now();
	w->run_took = w->run_ended - begin;
	leat_count(&w->lane->made_ns, w->run_ended - middle);
	leat_count(feed->pipeline.stages ? &w->lane->count.op_ns : &w->lane->count.read_ns, w->run_ended - middle);
	if (feed->spans)
		leat_spans_end_run(w, run, begin, middle);
	return true;
}

static void
decode_unit(struct leat_worker *w, struct leat_unit_slot *unit)
{
	uint64_t begin = leat_now(), number = unit->unit.number, took;

	leat_count(&w->lane->count.bytes_read, unit->extent.length);
	leat_units_decode(w->feed, unit, &w->scratch);
	if (w->feed->spans)
		leat_spans_add_unit(w, begin, number);
	took = leat_now() - begin;
	leat_count(&w->lane->count.read_ns, took);
	leat_count(&w->lane->units_ns, took);
}

/* Under the lock: is a worker idle because the batches ahead, or all there are, are made or being made, and not for
 * want of data? */
static bool
is_blocked(const struct leat_feed *feed)
{
	uint64_t epoch = feed->plan_epoch, position = feed->plan_position;

	if (feed->filling || atomic_load_explicit(&feed->fetch.waiting, memory_order_relaxed) > 0)
		return false;
	return !leat_may_begin_batch(feed) || !leat_plan_next_batch(feed, &epoch, &position);
}

/* Sleeps, and counts it as idle time. */
static void
sleep_on(struct leat_worker *w, pthread_cond_t *wakes, bool blocked)
{
	struct leat_lane *lane = w->lane;
	uint64_t begin = leat_now(), took;

	atomic_store_explicit(&lane->idle_blocked, blocked, memory_order_relaxed);
	atomic_store_explicit(&lane->idle_since, begin, memory_order_relaxed);
	pthread_cond_wait(wakes, &w->feed->lock);
	took = leat_now() - begin;
	atomic_store_explicit(&lane->idle_since, 0, memory_order_relaxed);
	leat_count(&lane->count.idle_ns, took);
	if (blocked)
		leat_count(&lane->blocked_ns, took);
}

static void
idle(struct leat_worker *w)
{
	w->feed->idle++;
	sleep_on(w, &w->feed->work, is_blocked(w->feed));
	w->feed->idle--;
}

/* Under the lock: is it time to wake the consumer? Not if it just began to wait and the next run, after which we
 * ask again, is expected to be short. Only runs without ops, or in bulk, have predictable durations. */
static bool
consumer_is_due(const struct leat_worker *w, const struct leat_run *next)
{
	struct leat_feed *feed = w->feed;

	if (!feed->waits_since || feed->flight_count == 0 || !feed->flight[feed->flight_head]->complete)
		return false;
	if (next && (!feed->pipeline.stages || next->bulk) && w->run_ended - feed->waits_since < PATIENCE &&
	    w->run_took < PATIENCE)
		return false;
	feed->waits_since = 0;
	return true;
}

/* Sleeps until more threads are wanted (tune.h). Others do what this one would have done next. */
static void
park(struct leat_worker *w)
{
	struct leat_feed *feed = w->feed;

	if (consumer_is_due(w, NULL))
		pthread_cond_signal(&feed->ready);
	wake_for_more(feed);
	sleep_on(w, &feed->parked, true);
}

void
leat_worker_body(void *arg, unsigned i)
{
	struct leat_feed *feed = arg;
	struct leat_worker *w = &feed->worker[i];

	w->work.sample = w->sample;
	w->work.output_slot = output_slot;
	w->work.output_slot_arg = w;
	w->work.run_in_process = run_in_process;
	w->work.thread = i;
	w->untimed = leat_feed_untimed(feed);
	pthread_mutex_lock(&feed->lock);
	while (!atomic_load(&feed->stop)) {
		struct leat_unit_slot *unit;
		struct leat_run *run;
		bool tell, done;

		if (__builtin_expect(i >= feed->tune.threads, 0)) {
			park(w);
			continue;
		}
		unit = leat_units_take(feed);
		run = unit ? NULL : take_run(w);
		tell = consumer_is_due(w, run);
		if (!run && !unit && !tell) {
			idle(w);
			continue;
		}
		if (run || unit)
			wake_for_more(feed);
		pthread_mutex_unlock(&feed->lock);
		/* After unlocking, so that the consumer does not wake up only to wait for the lock. */
		if (tell)
			pthread_cond_signal(&feed->ready);
		if (unit)
			decode_unit(w, unit);
		done = run && do_run(w, run);
		pthread_mutex_lock(&feed->lock);
		if (done)
			finish_run(w, run);
	}
	pthread_mutex_unlock(&feed->lock);
}
