/* engine.c - a feed's buffers and threads: allocated once, stopped and restarted at any position
 *
 * Stopping is cooperative: workers check between samples and every few rows of an image that
 * is decoded, reads in flight are cancelled, and all waiters are woken. */
#include "feed/ready.h"
#include "feed/spans.h"

#include <string.h>

#include "base/clock.h"

/* ---- buffers ---- */

static enum leat_status
open_batches(struct leat_feed *feed, struct leat_err *err)
{
	int buffers = feed->budget.buffers;

	feed->flight = leat_alloc_array(&feed->mem, (size_t)buffers, sizeof(struct leat_batch *));
	if (!feed->flight)
		return leat_fail_mem(err, &feed->mem, (size_t)buffers * sizeof(struct leat_batch *), "the batches");
	for (int i = 0; i < buffers; i++) {
		struct leat_batch *batch = leat_batch_new(feed, &feed->budget.form, &feed->mem);

		if (!batch)
			return leat_fail_mem(err, &feed->mem, feed->budget.form.bytes, "a batch");
		batch->next = feed->free_batches;
		feed->free_batches = batch;
		feed->slots++;
	}
	return LEAT_OK;
}

static enum leat_status
open_runs(struct leat_feed *feed, struct leat_err *err)
{
	feed->run = leat_alloc_array(&feed->mem, (size_t)feed->budget.runs, sizeof *feed->run);
	if (!feed->run)
		return leat_fail_mem(err, &feed->mem, (size_t)feed->budget.runs * sizeof *feed->run,
		                     "the reads in flight");
	feed->run_items = leat_alloc_array(&feed->mem, (size_t)(feed->budget.runs * feed->budget.run_rows),
	                                   sizeof *feed->run_items);
	if (!feed->run_items)
		return leat_fail_mem(err, &feed->mem,
		                     (size_t)(feed->budget.runs * feed->budget.run_rows) * sizeof *feed->run_items,
		                     "the reads in flight");
	for (int i = 0; i < feed->budget.runs; i++)
		feed->run[i].item = feed->run_items + i * feed->budget.run_rows;
	return leat_fetch_open(feed, err);
}

static enum leat_status
open_workers(struct leat_feed *feed, struct leat_err *err)
{
	feed->worker = leat_alloc_array(&feed->mem, feed->budget.threads, sizeof *feed->worker);
	if (!feed->worker)
		return leat_fail_mem(err, &feed->mem, feed->budget.threads * sizeof *feed->worker, "the workers");
	for (unsigned i = 0; i < feed->budget.threads; i++) {
		feed->worker[i].feed = feed;
		feed->worker[i].lane = &feed->trace.worker[i];
		feed->worker[i].work.max_pixels = feed->pipeline.limits.pixels;
		feed->worker[i].work.warnings = &feed->warnings;
		if (leat_scratch_open(&feed->worker[i].scratch, &feed->mem, feed->budget.scratch) != 0)
			return leat_fail_mem(err, &feed->mem, feed->budget.scratch, "a worker's scratch");
		feed->worker[i].scratch.stop = &feed->stop;
		feed->worker[i].sample = leat_alloc(&feed->mem, feed->budget.sample_bytes);
		if (!feed->worker[i].sample)
			return leat_fail_mem(err, &feed->mem, feed->budget.sample_bytes, "a worker's sample");
	}
	if (leat_scratch_open(&feed->jumbo, &feed->mem, feed->budget.jumbo) != 0)
		return leat_fail_mem(err, &feed->mem, feed->budget.jumbo, "scratch for large samples");
	feed->jumbo.stop = &feed->stop;
	return LEAT_OK;
}

enum leat_status
leat_engine_open(struct leat_feed *feed, struct leat_err *err)
{
	enum leat_status status =
		leat_trace_open(&feed->trace, feed->budget.threads, feed->budget.io_threads, &feed->mem, err);

	if (status == LEAT_OK)
		status = leat_spans_open(feed, err);
	if (status == LEAT_OK)
		status = open_batches(feed, err);
	if (status == LEAT_OK)
		status = open_runs(feed, err);
	if (status == LEAT_OK)
		status = open_workers(feed, err);
	if (status == LEAT_OK && feed->pipeline.in_processes)
		status = leat_processes_open(&feed->processes, &feed->options, feed->budget.exchange,
		                             feed->budget.exchange_large, &feed->mem, err);
	leat_tuning_open(feed);
	if (status == LEAT_OK)
		leat_engine_seek(feed, 0, 0);
	return status;
}

/* From now on, releasing a batch frees it. */
static struct leat_batch *
take_free_batches(struct leat_feed *feed)
{
	struct leat_batch *batches;

	pthread_mutex_lock(&feed->lock);
	feed->closed = true;
	batches = feed->free_batches;
	feed->free_batches = NULL;
	pthread_mutex_unlock(&feed->lock);
	return batches;
}

void
leat_engine_close(struct leat_feed *feed)
{
	struct leat_batch *batch;

	leat_engine_stop(feed);
	batch = take_free_batches(feed);
	for (int i = 0; i < feed->flight_count; i++)
		leat_batch_free(feed->flight[(feed->flight_head + i) % feed->budget.buffers]);
	feed->flight_count = 0;
	while (batch) {
		struct leat_batch *next = batch->next;

		leat_batch_free(batch);
		batch = next;
	}
	leat_free(&feed->mem, feed->flight);
	leat_fetch_close(feed);
	leat_free(&feed->mem, feed->run);
	leat_free(&feed->mem, feed->run_items);
	for (unsigned i = 0; feed->worker && i < feed->budget.threads; i++) {
		leat_scratch_close(&feed->worker[i].scratch, &feed->mem);
		leat_free(&feed->mem, feed->worker[i].sample);
	}
	leat_free(&feed->mem, feed->worker);
	leat_scratch_close(&feed->jumbo, &feed->mem);
	leat_processes_close(feed->processes);
	leat_spans_close(feed);
	leat_trace_close(&feed->trace, &feed->mem);
	feed->flight = NULL;
	feed->run = NULL;
	feed->run_items = NULL;
	feed->worker = NULL;
	feed->processes = NULL;
}

/* ---- threads ---- */

/* Another thread may release a batch meanwhile, which looks whether reads are to be started. */
static void
set_running(struct leat_feed *feed, bool running)
{
	pthread_mutex_lock(&feed->lock);
	feed->running = running;
	pthread_mutex_unlock(&feed->lock);
}

enum leat_status
leat_engine_start(struct leat_feed *feed, struct leat_err *err)
{
	enum leat_status status;

	atomic_store(&feed->stop, false);
	leat_stores_interrupt(&feed->pipeline.source.stores, false);
	leat_processes_interrupt(feed->processes, false);
	set_running(feed, true);
	atomic_store_explicit(&feed->started_ns, leat_now(), memory_order_relaxed);
	status = leat_threads_start(&feed->workers, &feed->mem, feed->budget.threads, "leat-work", leat_worker_body,
	                            feed, err);
	if (status != LEAT_OK)
		leat_engine_stop(feed);
	return status;
}

void
leat_engine_stop(struct leat_feed *feed)
{
	if (!feed->running)
		return;
	pthread_mutex_lock(&feed->lock);
	atomic_store(&feed->stop, true);
	pthread_cond_broadcast(&feed->work);
	pthread_cond_broadcast(&feed->parked);
	pthread_mutex_unlock(&feed->lock);
	leat_stores_interrupt(&feed->pipeline.source.stores, true); /* ends blocking reads of workers */
	leat_processes_interrupt(feed->processes, true);
	leat_threads_join(&feed->workers);
	leat_fetch_drain(feed); /* after the join: workers submit reads until they exit */
	leat_count(&feed->ran_ns, leat_now() - leat_counted(&feed->started_ns));
	atomic_store_explicit(&feed->started_ns, 0, memory_order_relaxed);
	set_running(feed, false);
}

/* The consumer keeps the batches it holds; all others become free. */
void
leat_engine_seek(struct leat_feed *feed, uint64_t epoch, uint64_t position)
{
	pthread_mutex_lock(
		&feed->lock); /* workers are stopped, but other threads of the consumer may release batches */
	for (; feed->flight_count > 0; feed->flight_count--) {
		struct leat_batch *batch = feed->flight[feed->flight_head];

		batch->next = feed->free_batches;
		feed->free_batches = batch;
		feed->flight_head = (feed->flight_head + 1) % feed->budget.buffers;
	}
	feed->filling = NULL;
	leat_tune_start(&feed->tune);
	leat_fetch_reset(feed);
	feed->free_runs = NULL;
	leat_ready_clear(feed);
	feed->complete = 0;
	for (int i = 0; i < feed->budget.runs; i++) {
		feed->run[i].next = feed->free_runs;
		feed->free_runs = &feed->run[i];
	}
	feed->plan_epoch = feed->epoch = epoch;
	feed->plan_position = feed->position = position;
	leat_plan_next_batch(feed, &feed->plan_epoch, &feed->plan_position);
	/* If nothing is left of this epoch, the consumer still gets LEAT_END. If no epoch has a batch, it always does.
	 */
	feed->epoch_over = feed->plan_epoch != epoch && leat_batches(feed) > 0;
	feed->started_at = position;
	pthread_mutex_unlock(&feed->lock);
}
