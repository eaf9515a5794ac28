/* test_feed_shutdown.c - a feed stops at once, whatever it is doing, and batches outlive it */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "feed/feed.h"
#include "support/data.h"
#include "support/trace.h"

/* Processor time, because the machine may be busy with other things. Sanitizers make everything slow. */
enum { AT_ONCE_MS = TEST_SLOW ? 3000 : 300 };

static uint64_t
processor_ms(void)
{
	struct timespec used;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
	return (uint64_t)used.tv_sec * 1000 + (uint64_t)used.tv_nsec / 1000000;
}

#define DECODED " | example(image=bytes, label=int64) | decode | resize(32, 32) | batch(8)"

static const size_t counts[] = {64, 64}, few[] = {40};
static struct data data, large; /* large: the first image is */

static enum data_kind
first_large(size_t sample)
{
	return sample == 0 ? DATA_LARGE : DATA_GOOD;
}

static int
setup(void **state)
{
	(void)state;
	data_make(&data, 2, counts, NULL);
	data_make(&large, 1, few, first_large);
	return 0;
}

static int
teardown(void **state)
{
	(void)state;
	data_remove(&data);
	data_remove(&large);
	return 0;
}

static const char *
spec_on(const struct data *from, const char *rest)
{
	static char spec[800];

	snprintf(spec, sizeof spec, "%s%s", data_source(from), rest);
	return spec;
}

static void
sleep_ms(long ms)
{
	nanosleep(&(struct timespec){.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000}, NULL);
}

static void
close_at_once(struct leat_feed *feed, const char *when)
{
	uint64_t begin = processor_ms(), ms;

	leat_close(feed);
	ms = processor_ms() - begin;
	if (ms > AT_ONCE_MS)
		fail_msg("closing %s took %d ms", when, (int)ms);
}

/* ---- close ---- */

static void
closing_takes_no_time_in_any_state(void **state)
{
	static const char *const rests[] = {" | shuffle | batch(8)", DECODED, (DECODED " | prefetch(0)"),
	                                    (" | repeat(100000000)" DECODED)};
	struct leat_options options;

	(void)state;
	trace_options(&options);
	for (size_t i = 0; i < sizeof rests / sizeof *rests; i++)
		for (int after_ms = 0; after_ms < 12; after_ms += 4)
			for (size_t batches = 0; batches < 40; batches += 13) {
				struct leat_feed *feed;
				struct trace trace = {0};

				options.threads = 1 + (unsigned)after_ms;
				options.epochs = batches == 26 ? 1 : 0;
				feed = trace_open(spec_on(&data, rests[i]), &options);
				if (batches)
					trace_take(&trace, feed, batches);
				sleep_ms(after_ms); /* the consumer stopped asking */
				close_at_once(feed, rests[i]);
				trace_free(&trace);
			}
}

static void
closing_does_not_wait_for_the_rest_of_a_batch(void **state)
{
	struct leat_options options;

	(void)state;
	trace_options(&options);
	options.memory = (size_t)512 << 20;
	close_at_once(
		trace_open(spec_on(&large, " | example(image=bytes) | take(1) | repeat(1000) | decode | resize(8, 8) | "
	                                   "batch(1000)"),
	                   &options),
		"in the middle of a batch");
}

static void
a_failed_feed_is_closed_like_any_other(void **state)
{
	struct leat_options options;
	struct trace trace = {0};
	struct leat_feed *feed;

	(void)state;
	trace_options(&options);
	feed = trace_open(spec_on(&data, " | example(nothing=bytes) | batch(8)"), &options);
	trace_take(&trace, feed, 0);
	assert_int_equal(trace.status, LEAT_DATA);
	close_at_once(feed, "after a failure");
	leat_close(NULL);
	leat_release(NULL);
}

/* ---- batches that are held ---- */

static void
held_batches_stay_readable_after_close(void **state)
{
	struct leat_options options;
	struct trace before = {0}, after = {0};
	struct leat_batch *held[3];
	struct leat_feed *feed, *same;

	(void)state;
	trace_options(&options);
	feed = trace_open(spec_on(&data, DECODED), &options);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(leat_next(feed, &held[i], NULL), LEAT_OK);
		trace_add(&before, feed, held[i]);
	}
	leat_release(held[1]);
	close_at_once(feed, "with batches held");
	same = trace_open(spec_on(&data, DECODED), &options); /* another one's memory, and the names of the fields */
	trace_add(&after, same, held[0]);
	leat_release(held[0]);
	trace_add(&after, same, held[2]);
	leat_release(held[2]);
	assert_int_equal(after.samples, 16);
	assert_memory_equal(after.sample[0].hash, before.sample[0].hash, 32);
	assert_memory_equal(after.sample[15].hash, before.sample[23].hash, 32);
	leat_close(same);
	trace_free(&before);
	trace_free(&after);
}

static void *
release_all(void *arg)
{
	struct leat_batch **held = arg;

	for (; *held; held++)
		leat_release(*held);
	return NULL;
}

/* Tensors are given back by whichever thread collects garbage, at any time. */
static void
batches_are_released_by_other_threads_while_a_feed_closes(void **state)
{
	struct leat_options options;

	(void)state;
	trace_options(&options);
	for (int i = 0; i < (TEST_SLOW ? 100 : 400); i++) {
		struct leat_feed *feed = trace_open(spec_on(&data, " | batch(2) | prefetch(6)"), &options);
		struct leat_batch *held[6] = {NULL};
		pthread_t other;

		for (int k = 0; k < 5; k++)
			assert_int_equal(leat_next(feed, &held[k], NULL), LEAT_OK);
		assert_int_equal(pthread_create(&other, NULL, release_all, held), 0);
		leat_close(feed);
		pthread_join(other, NULL);
	}
}

static void
batches_are_released_by_other_threads_while_a_feed_goes_back(void **state)
{
	struct leat_options options;
	struct leat_feed *feed;
	char *json;

	(void)state;
	trace_options(&options);
	options.epochs = 0;
	feed = trace_open(spec_on(&data, " | batch(2) | prefetch(6)"), &options);
	assert_int_equal(leat_save(feed, &json, NULL), LEAT_OK);
	for (int i = 0; i < (TEST_SLOW ? 50 : 200); i++) {
		struct leat_batch *held[6] = {NULL};
		struct trace trace = {0};
		pthread_t other;

		for (int k = 0; k < 5; k++)
			assert_int_equal(leat_next(feed, &held[k], NULL), LEAT_OK);
		assert_int_equal(pthread_create(&other, NULL, release_all, held), 0);
		assert_int_equal(leat_restore(feed, json, NULL), LEAT_OK);
		trace_take(&trace, feed, 9); /* all buffers are there again */
		assert_int_equal(trace.batches, 9);
		assert_int_equal(trace.sample[0].position, 0);
		pthread_join(other, NULL);
		trace_free(&trace);
		assert_int_equal(leat_restore(feed, json, NULL), LEAT_OK);
	}
	free(json);
	leat_close(feed);
}

/* ---- waiting for a while ---- */

static void
a_wait_ends_when_its_time_is_over_and_can_go_on(void **state)
{
	struct leat_options options;
	struct trace all = {0}, pieces = {0};
	struct leat_batch *batch;
	struct leat_feed *feed;
	struct leat_err err;
	enum leat_status status;
	uint64_t begin;

	(void)state;
	trace_options(&options);
	options.memory = (size_t)512 << 20;
	feed = trace_open(spec_on(&large, " | example(image=bytes) | take(1) | repeat(1000) | decode | resize(8, 8) | "
	                                  "batch(1000) | prefetch(0)"),
	                  &options);
	begin = leat_now();
	for (int i = 0; i < 3; i++) {
		assert_int_equal(leat_next_within(feed, 1000000, &batch, &err), LEAT_TIMEOUT);
		assert_null(batch);
	}
	assert_int_equal(leat_next_within(feed, 0, &batch, &err), LEAT_TIMEOUT);
	assert_string_equal(err.text, "the next batch is not ready yet");
	assert_true((leat_now() - begin) / 1000000 >= 3);
	close_at_once(feed, "while a batch is waited for");

	options.epochs = 1;
	feed = trace_open(spec_on(&data, DECODED), &options);
	trace_take(&all, feed, 0);
	leat_close(feed);
	feed = trace_open(spec_on(&data, (DECODED " | prefetch(0)")), &options);
	while ((status = leat_next_within(feed, 10000, &batch, &err)) == LEAT_OK || status == LEAT_TIMEOUT) {
		if (status == LEAT_OK)
			trace_add(&pieces, feed, batch);
		leat_release(batch);
	}
	assert_int_equal(status, LEAT_DONE);
	assert_int_equal(pieces.samples, all.samples);
	for (size_t i = 0; i < all.samples; i++)
		assert_memory_equal(pieces.sample[i].hash, all.sample[i].hash, 32);
	leat_close(feed);
	trace_free(&all);
	trace_free(&pieces);
}

/* ---- cancel ---- */

static void *
cancel_soon(void *feed)
{
	sleep_ms(20);
	leat_cancel(feed);
	return NULL;
}

static void
cancelling_ends_a_wait(void **state)
{
	struct leat_options options;
	struct leat_batch *batch;
	struct leat_feed *feed;
	struct leat_err err;
	pthread_t other;

	(void)state;
	trace_options(&options);
	options.memory = (size_t)512 << 20;
	feed = trace_open(spec_on(&large, " | example(image=bytes) | take(1) | repeat(1000) | decode | resize(8, 8) | "
	                                  "batch(1000) | prefetch(0)"),
	                  &options);
	assert_int_equal(pthread_create(&other, NULL, cancel_soon, feed), 0);
	assert_int_equal(leat_next(feed, &batch, &err), LEAT_CANCELLED); /* and not the batch */
	assert_null(batch);
	assert_string_equal(err.text, "the feed was cancelled");
	assert_int_equal(leat_next(feed, &batch, NULL), LEAT_CANCELLED);
	pthread_join(other, NULL);
	close_at_once(feed, "after it was cancelled");
}

static void
a_cancelled_feed_gives_nothing_ever_after(void **state)
{
	struct leat_options options;

	(void)state;
	trace_options(&options);
	for (size_t batches = 0; batches <= 16; batches += 8) { /* before the first, in between, at the epoch's end */
		struct leat_feed *feed = trace_open(spec_on(&data, " | batch(8)"), &options);
		struct leat_batch *batch;
		struct trace trace = {0};
		char *json;

		if (batches)
			trace_take(&trace, feed, batches);
		assert_int_equal(leat_save(feed, &json, NULL), LEAT_OK);
		leat_cancel(feed);
		leat_cancel(feed);
		for (int i = 0; i < 3; i++)
			assert_int_equal(leat_next(feed, &batch, NULL), LEAT_CANCELLED);
		assert_int_equal(leat_restore(feed, json, NULL), LEAT_OK);
		assert_int_equal(leat_next(feed, &batch, NULL), LEAT_CANCELLED);
		leat_close(feed);
		trace_free(&trace);
		free(json);
	}
}

/* ---- from other threads ---- */

struct watcher {
	struct leat_feed *feed;
	atomic_bool stop;
	uint64_t looks;
};

static void *
watch(void *arg)
{
	struct watcher *w = arg;
	struct leat_stats last = {0}, stats;

	for (; !atomic_load(&w->stop); w->looks++) {
		leat_stats(w->feed, &stats);
		assert_true(stats.samples >= last.samples && stats.bytes >= last.bytes &&
		            stats.wait_ns >= last.wait_ns);
		last = stats;
	}
	return NULL;
}

static void
stats_can_be_asked_at_any_time(void **state)
{
	struct leat_options options;
	struct leat_stats stats;
	struct watcher watcher;
	struct trace trace = {0};
	pthread_t other;
	char *json;

	(void)state;
	trace_options(&options);
	options.epochs = 4;
	watcher = (struct watcher){.feed = trace_open(spec_on(&data, DECODED), &options)};
	assert_int_equal(leat_save(watcher.feed, &json, NULL), LEAT_OK);
	assert_int_equal(pthread_create(&other, NULL, watch, &watcher), 0);
	trace_take(&trace, watcher.feed, 20);
	assert_int_equal(leat_restore(watcher.feed, json, NULL), LEAT_OK);
	trace_take(&trace, watcher.feed, 0);
	atomic_store(&watcher.stop, true);
	pthread_join(other, NULL);
	assert_true(watcher.looks > 0);
	leat_stats(watcher.feed, &stats);
	assert_int_equal(stats.batches, 20 + 64);
	assert_int_equal(stats.samples, 8 * stats.batches);
	assert_int_equal(stats.bytes, stats.samples * (32 * 32 * 3 * 4 + 8));
	assert_true(stats.bytes_read > 0 && stats.first_batch_ns > 0 && stats.op_ns > 0);
	assert_int_equal(stats.threads, 2);
	leat_close(watcher.feed);
	free(json);
	trace_free(&trace);
}

/* ---- one slow sample ---- */

static int
complete_batches(struct leat_feed *feed)
{
	int n = 0;

	pthread_mutex_lock(&feed->lock);
	for (int i = 0; i < feed->flight_count; i++)
		n += feed->flight[(feed->flight_head + i) % feed->budget.buffers]->complete;
	pthread_mutex_unlock(&feed->lock);
	return n;
}

static void
one_slow_sample_does_not_hold_up_later_batches(void **state)
{
	struct leat_options options;
	struct leat_batch *batch;
	struct leat_feed *feed;

	(void)state;
	trace_options(&options);
	options.memory = (size_t)256 << 20;
	feed = trace_open(spec_on(&large, " | example(image=bytes) | decode | resize(8, 8) | batch(4) | prefetch(10)"),
	                  &options);
	assert_int_equal(leat_next(feed, &batch, NULL), LEAT_OK);
	assert_in_range(complete_batches(feed), 3, 9);
	leat_release(batch);
	leat_close(feed);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(closing_takes_no_time_in_any_state),
		cmocka_unit_test(closing_does_not_wait_for_the_rest_of_a_batch),
		cmocka_unit_test(a_failed_feed_is_closed_like_any_other),
		cmocka_unit_test(held_batches_stay_readable_after_close),
		cmocka_unit_test(batches_are_released_by_other_threads_while_a_feed_closes),
		cmocka_unit_test(batches_are_released_by_other_threads_while_a_feed_goes_back),
		cmocka_unit_test(a_wait_ends_when_its_time_is_over_and_can_go_on),
		cmocka_unit_test(cancelling_ends_a_wait),
		cmocka_unit_test(a_cancelled_feed_gives_nothing_ever_after),
		cmocka_unit_test(stats_can_be_asked_at_any_time),
		cmocka_unit_test(one_slow_sample_does_not_hold_up_later_batches),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
