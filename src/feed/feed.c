/* feed.c - public API of a feed: open, next, release, close
 *
 * The consumer's side. Batches are delivered in plan order. Bad samples, errors and the end of
 * an epoch surface exactly at their position in the plan, however far ahead the workers are. */
#include "feed/feed.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/array.h"
#include "base/clock.h"
#include "feed/spans.h"

/* ---- open and close ---- */

static enum leat_status
divide(struct leat_feed *feed, int64_t rows, struct leat_err *err)
{
	size_t columns = (size_t)feed->pipeline.schema.count;

	if (!feed->budget.form.column)
		feed->budget.form.column = leat_alloc_array(&feed->mem, columns, sizeof(struct leat_column_form));
	if (!feed->budget.form.column)
		return leat_fail_mem(err, &feed->mem, columns * sizeof(struct leat_column_form),
		                     "the fields of a batch");
	return leat_budget_make(&feed->budget, &feed->pipeline, &feed->options, rows, leat_mem_counted(&feed->mem),
	                        atomic_load(&feed->mem.peak), &feed->log, err);
}

static bool
has_sized_cache(const struct leat_pipeline *p)
{
	const struct leat_cache_params *params = p->cache ? p->cache->params : NULL;

	return params && (params->size > 0 || params->where == LEAT_CACHE_DISK);
}

/* Compiles the spec and divides the memory. */
static enum leat_status
prepare(struct leat_feed *feed, const char *spec, enum leat_batching batching, struct leat_err *err)
{
	const struct leat_options *o = &feed->options;
	const struct leat_functions functions = {o->functions, o->function_count, o->arrow};
	const struct leat_limits limits = {o->max_pixels, o->max_bytes};
	enum leat_status status;
	int64_t rows = 0;

	/* Only when the pipeline is known can the error name the minimum, so opening goes on beyond the limit, but not
	 * in memory. */
	feed->mem.limit = o->memory;
	feed->mem.lends = true;
	status = leat_pipeline_open(&feed->pipeline, spec, batching, o->seed, o->threads, &limits, &functions,
	                            &feed->storage, &feed->mem, &feed->log, err);
	feed->source_ns = leat_now();
	if (status == LEAT_OK && feed->pipeline.in_processes && batching != LEAT_BATCH_EXPLAINED)
		status = leat_processes_check(o, err);
	if (status == LEAT_OK)
		status = leat_ranks_open(feed, &rows, err);
	/* A cache of a given size counts toward the minimum; otherwise it gets what is left. */
	if (status == LEAT_OK && has_sized_cache(&feed->pipeline))
		status = leat_feed_open_cache(feed, 0, err);
	if (status == LEAT_OK)
		status = divide(feed, rows, err);
	if (status == LEAT_OK && feed->pipeline.cache && !has_sized_cache(&feed->pipeline)) {
		status = leat_feed_open_cache(feed, o->memory - feed->budget.least, err);
		if (status == LEAT_OK)
			status = divide(feed, rows, err);
	}
	if (status == LEAT_OK)
		feed->mem.lends = false;
	return status;
}

static enum leat_status
open_inside(struct leat_feed *feed, const char *spec, enum leat_batching batching, struct leat_err *err)
{
	enum leat_status status = prepare(feed, spec, batching, err);

	if (status != LEAT_OK || batching == LEAT_BATCH_EXPLAINED)
		return status;
	feed->contents = leat_alloc(&feed->mem, LEAT_SHA256_HEX);
	if (!feed->contents)
		return leat_fail_mem(err, &feed->mem, LEAT_SHA256_HEX, "the fingerprint of the data");
	status = leat_bad_open(feed, err);
	if (status == LEAT_OK)
		status = leat_engine_open(feed, err);
	return status == LEAT_OK ? leat_engine_start(feed, err) : status;
}

/* leat_next_within needs a clock that does not jump. */
static void
init_ready(pthread_cond_t *ready)
{
	pthread_condattr_t attr;

	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(ready, &attr);
	pthread_condattr_destroy(&attr);
}

enum leat_status
leat_feed_open(const char *spec, const struct leat_options *options, enum leat_batching batching, long fail_after,
               struct leat_feed **out, struct leat_err *err)
{
	struct leat_feed *feed;
	enum leat_status status;

	leat_err_clear(err);
	*out = NULL;
	feed = aligned_alloc(_Alignof(struct leat_feed), sizeof *feed);
	if (!feed)
		return leat_fail(err, LEAT_NOMEM, "no memory for a feed");
	memset(feed, 0, sizeof *feed);
	leat_mem_init(&feed->mem, SIZE_MAX);
	leat_mem_init(&feed->beyond, SIZE_MAX);
	atomic_store(&feed->mem.fail_after, fail_after);
	feed->pid = getpid();
	feed->opened_ns = leat_now();
	feed->cpu_opened = leat_process_seconds();
	feed->cpus = leat_cpu_limit("");
	atomic_store(&feed->refs, 1);
	pthread_mutex_init(&feed->lock, NULL);
	pthread_mutex_init(&feed->jumbo_lock, NULL);
	pthread_cond_init(&feed->work, NULL);
	pthread_cond_init(&feed->parked, NULL);
	pthread_cond_init(&feed->fetch.drained, NULL);
	init_ready(&feed->ready);
	status = leat_options_resolve(&feed->options, options, err);
	if (status == LEAT_OK)
		status = leat_spans_check(&feed->options, err);
	if (status == LEAT_OK)
		status = leat_storage_parse(&feed->storage, feed->options.storage, &feed->mem, err);
	feed->options.storage = NULL; /* the caller's, until leat_open returns */
	feed->log = (struct leat_log){feed->options.log, feed->options.log_arg};
	feed->warnings.log = &feed->log;
	feed->seed = feed->options.seed;
	feed->budget.frugal = !options || options->memory == 0;
	feed->budget.threads_set = options && options->threads > 0;
	if (status == LEAT_OK)
		status = open_inside(feed, spec, batching, err);
	if (status == LEAT_OK)
		*out = feed;
	else
		leat_close(feed);
	return status;
}

enum leat_status
leat_open(const char *spec, const struct leat_options *options, struct leat_feed **feed, struct leat_err *err)
{
	return leat_feed_open(spec, options, LEAT_BATCH_REQUIRED, -1, feed, err);
}

void
leat_feed_unref(struct leat_feed *feed)
{
	if (atomic_fetch_sub(&feed->refs, 1) != 1)
		return;
	leat_free(&feed->mem, feed->budget.form.column); /* used by batches that outlive leat_close */
	pthread_cond_destroy(&feed->ready);
	pthread_cond_destroy(&feed->work);
	pthread_cond_destroy(&feed->parked);
	pthread_cond_destroy(&feed->fetch.drained);
	pthread_mutex_destroy(&feed->jumbo_lock);
	pthread_mutex_destroy(&feed->lock);
	free(feed);
}

void
leat_close(struct leat_feed *feed)
{
	if (!feed || feed->pid != getpid())
		return;
	leat_engine_close(feed);
	leat_cache_close(feed->cache);
	leat_free(&feed->mem, feed->cache_dir);
	leat_pipeline_close(&feed->pipeline);
	leat_bad_close(feed);
	leat_free(&feed->mem, feed->contents);
	leat_feed_unref(feed);
}

/* ---- next and release ---- */

/* Under the lock: the consumer no longer holds the slot. True: the caller frees it, because the feed is closed or has a
 * slot too many. */
static bool
recycle(struct leat_feed *feed, struct leat_batch *batch)
{
	feed->held--;
	if (feed->closed)
		return true;
	if (feed->spare) {
		/* The spare one may be in use. Slots are alike: it becomes a regular one. */
		feed->spare->mem = &feed->mem;
		batch->mem = &feed->beyond;
		feed->spare = NULL;
		feed->slots--;
		return true;
	}
	batch->next = feed->free_batches;
	feed->free_batches = batch;
	leat_feed_wake(feed);
	return false;
}

/* Gives a slot back. Takes no lock but the feed's and the stores', and nobody calls out of the library with one of
 * those held: a Python thread may get here with the GIL. */
static void
release_slot(struct leat_feed *feed, struct leat_batch *batch)
{
	bool surplus, refill;

	pthread_mutex_lock(&feed->lock);
	surplus = recycle(feed, batch);
	refill = !feed->closed && feed->idle == 0 && leat_fetch_enter(feed);
	pthread_mutex_unlock(&feed->lock);
	if (surplus)
		leat_batch_free(batch);
	if (refill) {
		leat_fetch_refill(feed);
		leat_fetch_leave(feed);
	}
}

static void
unref_batch(struct leat_batch *batch)
{
	struct leat_feed *feed = batch->feed;

	if (atomic_fetch_sub(&batch->refs, 1) != 1)
		return;
	if (batch->block)
		leat_batch_free_copy(batch);
	else
		release_slot(feed, batch);
	leat_feed_unref(feed);
}

/* In a forked child, locks may be held by threads that it does not have. */
static bool
is_foreign(const struct leat_batch *batch)
{
	return batch->feed->pid != getpid();
}

void
leat_batch_hold_field(struct leat_batch *batch, int column)
{
	if (batch->block)
		atomic_fetch_add(&batch->block[column].refs, 1);
	atomic_fetch_add(&batch->refs, 1);
}

void
leat_batch_release_field(struct leat_batch *batch, int column)
{
	if (is_foreign(batch))
		return;
	if (batch->block)
		leat_batch_drop_block(batch, column);
	unref_batch(batch);
}

void
leat_release(struct leat_batch *batch)
{
	if (!batch || is_foreign(batch))
		return;
	for (int i = 0; batch->block && i < batch->form->columns; i++) {
		leat_batch_drop_block(batch, i);
		atomic_fetch_sub(&batch->refs, 1); /* not the last one */
	}
	unref_batch(batch);
}

/* Under the lock. The wait counts as disk time if all workers were waiting for reads when it began. */
static void
wait_ready(struct leat_feed *feed, uint64_t deadline)
{
	struct timespec until = {
		.tv_sec = (time_t)(deadline / 1000000000u),
		.tv_nsec = (long)(deadline % 1000000000u),
	};
	bool disk = atomic_load_explicit(&feed->fetch.waiting, memory_order_relaxed) > 0 &&
	            feed->idle == feed->tune.threads;
	uint64_t begin = leat_now(), took;

	feed->waits_since = begin;
	if (deadline == UINT64_MAX)
		pthread_cond_wait(&feed->ready, &feed->lock);
	else
		pthread_cond_timedwait(&feed->ready, &feed->lock, &until);
	feed->waits_since = 0;
	took = leat_now() - begin;
	leat_count(&feed->trace.consumer->asleep_ns, took);
	if (disk)
		leat_count(&feed->trace.consumer->count.disk_ns, took);
}

/* Under the lock. Does the consumer get the slot itself? A loop still holds the previous batch when it asks for the
 * next one, so one held slot is normal, even if there are only two and the engine has none for a moment. A consumer
 * that holds more keeps them, and gets copies as soon as fewer than two slots would be left to the engine. */
static bool
lends_slot(const struct leat_feed *feed)
{
	return feed->held <= 1 || feed->slots - feed->held - 1 >= 2;
}

static enum leat_status
fail_held(const struct leat_feed *feed, size_t bytes, struct leat_err *err)
{
	return leat_fail(err, LEAT_AGAIN,
	                 "no memory for a batch of %zu bytes: the program holds %d batches of the feed's and %zu bytes "
	                 "of copies; release some",
	                 bytes, feed->held, leat_held(feed));
}

/* Under the lock: the consumer holds all slots, so that no batch can be made. Happens only if memory= has room for no
 * more than two. */
static bool
add_spare_slot(struct leat_feed *feed)
{
	struct leat_batch *batch = leat_batch_new(feed, &feed->budget.form, &feed->beyond);

	if (!batch)
		return false;
	feed->spare = batch;
	feed->slots++;
	batch->next = feed->free_batches;
	feed->free_batches = batch;
	return true;
}

/* Under the lock: waits until the next batch in order, which stays the first of `flight`, is complete. */
static enum leat_status
wait_for_head(struct leat_feed *feed, uint64_t deadline, struct leat_batch **batch, struct leat_err *err)
{
	while (!feed->cancelled) {
		struct leat_batch *head = feed->flight_count ? feed->flight[feed->flight_head] : NULL;

		if (head && head->complete) {
			*batch = head;
			return LEAT_OK;
		}
		if (feed->held == feed->slots && !add_spare_slot(feed))
			return fail_held(feed, feed->budget.form.bytes, err);
		leat_tuning_waits(feed);
		leat_feed_wake(feed);
		if (deadline != UINT64_MAX && leat_now() >= deadline)
			return leat_fail(err, LEAT_TIMEOUT, "the next batch is not ready yet");
		wait_ready(feed, deadline);
	}
	return leat_fail(err, LEAT_CANCELLED, "the feed was cancelled");
}

static uint64_t
batch_bytes(const struct leat_batch *batch)
{
	uint64_t bytes = 0;

	for (int i = 0; i < batch->form->columns; i++)
		bytes += leat_batch_value_bytes(batch, i);
	return bytes;
}

static void
count_batch(struct leat_feed *feed, const struct leat_batch *batch)
{
	struct leat_counters *count = &feed->trace.consumer->count;

	feed->position = batch->end;
	feed->epoch_over = batch->last;
	leat_count(&count->samples, (uint64_t)batch->samples);
	leat_count(&count->batches, 1);
	leat_count(&count->bytes, batch_bytes(batch));
}

static enum leat_status
end_epoch(struct leat_feed *feed, struct leat_err *err)
{
	feed->epoch_over = false;
	feed->epoch++;
	feed->position = 0;
	feed->bad_of_epoch = 0;
	if (feed->options.epochs > 0 && feed->epoch >= feed->options.epochs)
		return leat_fail(err, LEAT_DONE, "all %llu epochs were delivered",
		                 (unsigned long long)feed->options.epochs);
	return leat_fail(err, LEAT_END, "epoch %llu has ended", (unsigned long long)feed->epoch - 1);
}

/* Under the lock: takes the first batch of `flight`. The consumer holds its slot. */
static void
take_head(struct leat_feed *feed)
{
	feed->flight_head = (feed->flight_head + 1) % feed->budget.buffers;
	feed->flight_count--;
	leat_tuning_takes(feed);
	if (leat_may_begin_batch(feed)) /* fewer batches ahead than buffers: there is room for one more now */
		leat_feed_wake(feed);
	feed->complete--;
	feed->held++;
}

/* Counts a batch as delivered, unless it fails the feed. */
static enum leat_status
count_delivered(struct leat_feed *feed, struct leat_batch *batch, struct leat_err *err)
{
	enum leat_status status;

	if (batch->err_row >= 0)
		return leat_fail_as(err, &batch->err);
	status = leat_bad_deliver(feed, batch, err);
	if (status == LEAT_OK)
		count_batch(feed, batch);
	return status;
}

static enum leat_status
deliver(struct leat_feed *feed, struct leat_batch *batch, struct leat_batch **out, struct leat_err *err)
{
	enum leat_status status = count_delivered(feed, batch, err);

	atomic_store(&batch->refs, 1);
	atomic_fetch_add(&feed->refs, 1);
	if (status == LEAT_OK) {
		leat_pin_slot(feed, batch);
		*out = batch;
	} else {
		leat_release(batch);
	}
	return status;
}

/* The batch stays in `flight` until there is a copy: if there is no memory for one, the next call delivers it. */
static enum leat_status
deliver_copy(struct leat_feed *feed, struct leat_batch *batch, struct leat_batch **out, struct leat_err *err)
{
	struct leat_batch *copy = leat_batch_copy(batch, &feed->beyond);
	enum leat_status status = copy ? count_delivered(feed, batch, err) : LEAT_AGAIN;

	pthread_mutex_lock(&feed->lock);
	if (copy)
		take_head(feed);
	else
		fail_held(feed, batch_bytes(batch), err);
	pthread_mutex_unlock(&feed->lock);
	if (!copy)
		return LEAT_AGAIN;
	release_slot(feed, batch);
	atomic_fetch_add(&feed->refs, 1);
	leat_count(&feed->trace.consumer->count.copied, status == LEAT_OK);
	if (status == LEAT_OK)
		*out = copy;
	else
		leat_release(copy);
	return status;
}

static enum leat_status
next_batch(struct leat_feed *feed, uint64_t deadline, struct leat_batch **out, struct leat_err *err)
{
	struct leat_batch *batch = NULL;
	enum leat_status status;
	bool copies = false;

	pthread_mutex_lock(&feed->lock);
	feed->wanted = true;
	if (!feed->asks_again)
		leat_feed_note_depths(feed);
	status = wait_for_head(feed, deadline, &batch, err);
	feed->wanted = false;
	if (batch) {
		copies = batch->err_row < 0 && !lends_slot(feed);
		if (!copies)
			take_head(feed);
	}
	pthread_mutex_unlock(&feed->lock);
	if (!batch)
		return status;
	return copies ? deliver_copy(feed, batch, out, err) : deliver(feed, batch, out, err);
}

static bool
is_cancelled(struct leat_feed *feed)
{
	bool cancelled;

	pthread_mutex_lock(&feed->lock);
	cancelled = feed->cancelled;
	pthread_mutex_unlock(&feed->lock);
	return cancelled;
}

static bool
is_recoverable(enum leat_status status)
{
	return status == LEAT_OK || status == LEAT_END || status == LEAT_AGAIN || status == LEAT_TIMEOUT;
}

/* From one delivery to the next, without what the program does between two epochs. */
static void
time_batch(struct leat_feed *feed, enum leat_status status, uint64_t begin, uint64_t end)
{
	feed->asks_again = status == LEAT_TIMEOUT || status == LEAT_AGAIN;
	if (feed->delivered_ns == 0 && leat_counted(&feed->trace.consumer->count.batches) > (status == LEAT_OK))
		feed->delivered_ns = begin;
	if (status == LEAT_END)
		feed->delivered_ns = 0;
	if (status != LEAT_OK)
		return;
	if (feed->delivered_ns)
		leat_histogram_add(&feed->batch_times, end - feed->delivered_ns);
	feed->delivered_ns = end;
}

enum leat_status
leat_next(struct leat_feed *feed, struct leat_batch **batch, struct leat_err *err)
{
	return leat_next_within(feed, UINT64_MAX, batch, err);
}

enum leat_status
leat_next_within(struct leat_feed *feed, uint64_t timeout_ns, struct leat_batch **batch, struct leat_err *err)
{
	struct leat_counters *count = &feed->trace.consumer->count;
	uint64_t begin = leat_now(), end;
	uint64_t deadline = timeout_ns < UINT64_MAX - begin ? begin + timeout_ns : UINT64_MAX;
	uint64_t ran = 0, epoch = feed->epoch;
	struct leat_err why;
	enum leat_status status;

	leat_err_clear(&why);
	leat_err_clear(err);
	*batch = NULL;
	if (feed->pid != getpid()) /* it has no threads here, and its locks may be held for ever */
		return leat_fail(err, LEAT_INVALID,
		                 "the feed was opened in another process; open it after the fork, in the process that "
		                 "uses it");
	if (is_cancelled(feed))
		return leat_fail(err, LEAT_CANCELLED, "the feed was cancelled");
	if (feed->failure.status != LEAT_OK)
		return leat_fail_as(err, &feed->failure);
	if (feed->last_out_ns)
		ran = begin - feed->last_out_ns;
	leat_count(&count->run_ns, ran);
	if (feed->options.epochs > 0 && feed->epoch >= feed->options.epochs && !feed->epoch_over)
		status = leat_fail(&why, LEAT_DONE, "all %llu epochs were delivered",
		                   (unsigned long long)feed->options.epochs);
	else if (feed->epoch_over || leat_batches(feed) == 0)
		status = end_epoch(feed, &why);
	else
		status = next_batch(feed, deadline, batch, &why);
	end = leat_now();
	leat_count(&count->wait_ns, end - begin);
	leat_epochs_add(&feed->epochs, epoch, status == LEAT_OK ? (uint64_t)(*batch)->samples : 0, end - begin, ran);
	time_batch(feed, status, begin, end);
	if (status == LEAT_OK && leat_counted(&count->batches) == 1)
		leat_count(&count->first_batch_ns, end - feed->opened_ns);
	feed->last_out_ns = end;
	if (feed->spans)
		leat_spans_next(feed, begin, end, status, *batch);
	if (!is_recoverable(status))
		feed->failure = why;
	if (status != LEAT_OK)
		leat_fail_as(err, &why);
	return status;
}

void
leat_cancel(struct leat_feed *feed)
{
	pthread_mutex_lock(&feed->lock);
	feed->cancelled = true;
	pthread_cond_broadcast(&feed->ready);
	pthread_mutex_unlock(&feed->lock);
}

/* ---- properties ---- */

uint64_t
leat_samples(const struct leat_feed *feed)
{
	return feed->pipeline.plan.size;
}

int
leat_rank(const struct leat_feed *feed)
{
	return feed->options.rank;
}

int
leat_world(const struct leat_feed *feed)
{
	return feed->options.world;
}

uint64_t
leat_epoch(const struct leat_feed *feed)
{
	return feed->epoch + feed->epoch_over;
}

uint64_t
leat_position(const struct leat_feed *feed)
{
	return feed->epoch_over ? 0 : feed->position; /* matches leat_epoch */
}

const char *
leat_canonical(const struct leat_feed *feed)
{
	return feed->pipeline.canonical;
}

int
leat_field_count(const struct leat_feed *feed)
{
	return feed->pipeline.schema.count;
}

const struct leat_field *
leat_field_at(const struct leat_feed *feed, int i)
{
	return i >= 0 && i < feed->pipeline.schema.count ? &feed->pipeline.schema.entry[i].field : NULL;
}

size_t
leat_class_count(const struct leat_feed *feed)
{
	return feed->pipeline.source.class_count;
}

const char *
leat_class_name(const struct leat_feed *feed, size_t label)
{
	const struct leat_source *source = &feed->pipeline.source;

	return label < source->class_count ? source->class_name[label] : NULL;
}
