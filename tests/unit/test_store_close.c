/* test_store_close.c - a feed stops at once while its reads are in flight
 *
 * Reads that are held complete only when they are cancelled: a feed that waited for one of them
 * would never close, and the test would end by its time limit. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "support/data.h"
#include "support/sources.h"
#include "support/store_mem.h"
#include "support/trace.h"

static const char *const rests[] = {
	" | batch(16)",
	" | shuffle | batch(16)",
	" | shuffle | batch(16) | prefetch(0)",
	" | shuffle | example(image=bytes, label=int64) | decode | resize(20, 20) | random_flip | batch(16)",
};

enum { RESTS = sizeof(rests) / sizeof(*rests) };

static const size_t counts[] = {150, 100, 0, 150};
static struct data data;
static struct sources sources;

static int
setup(void **state)
{
	(void)state;
	data_make(&data, 4, counts, NULL);
	sources_make(&sources);
	sources_leave_local(&sources);
	return 0;
}

static int
teardown(void **state)
{
	(void)state;
	store_mem_reset();
	data_remove(&data);
	sources_remove(&sources);
	return 0;
}

static int
mirror(void **state)
{
	(void)state;
	store_mem_reset();
	store_mem_mirror(data.folder);
	store_mem_mirror(sources.folder);
	return 0;
}

static const char *
spec_on_data(const char *rest)
{
	static char spec[800];
	char local[800];

	snprintf(local, sizeof(local), "%s%s", data_source(&data), rest);
	store_mem_spec(data.folder, local, spec, sizeof(spec));
	return spec;
}

/* Takes what was prefetched, until the feed waits for reads and nothing else; false: after `most` batches it does not.
 */
static bool
take_until_it_waits(struct leat_feed *feed, int most)
{
	struct leat_batch *batch;
	enum leat_status status;

	do {
		status = leat_next_within(feed, 1000000, &batch, NULL);
		most -= status == LEAT_OK;
		leat_release(batch);
		assert_true(status == LEAT_OK || status == LEAT_END || status == LEAT_TIMEOUT);
	} while (most && (status != LEAT_TIMEOUT || store_mem_counts().in_flight == 0));
	return most;
}

static struct leat_feed *
open_and_hold(const char *rest, struct leat_options *options)
{
	struct leat_feed *feed;

	options->epochs = 0;
	store_mem_hold(false);
	feed = trace_open(spec_on_data(rest), options);
	store_mem_hold(true);
	assert_true(take_until_it_waits(feed, 10000));
	return feed;
}

static void
closing_cancels_the_reads_in_flight(void **state)
{
	struct leat_options options;

	(void)state;
	trace_options(&options);
	for (size_t i = 0; i < RESTS; i++)
		for (options.threads = 1; options.threads <= 7; options.threads += 3) {
			uint64_t before = store_mem_counts().cancelled;
			struct leat_feed *feed = open_and_hold(rests[i], &options);

			leat_close(feed);
			assert_int_equal(store_mem_counts().in_flight, 0);
			assert_true(store_mem_counts().cancelled > before);
		}
}

static void
closing_does_not_wait_for_the_latency(void **state)
{
	struct leat_options options;

	(void)state;
	trace_options(&options);
	options.epochs = 0;
	for (size_t i = 0; i < RESTS; i++) {
		struct leat_feed *feed;

		store_mem_set(&(struct store_mem_settings){0});
		feed = trace_open(spec_on_data(rests[i]), &options);
		store_mem_set(&(struct store_mem_settings){.latency_ns = UINT64_C(3600000000000), .shuffle = i});
		assert_true(take_until_it_waits(feed, 10000));
		leat_close(feed);
		assert_int_equal(store_mem_counts().in_flight, 0);
	}
}

/* Samples that fail are read once more, alone: whichever read gets stuck, it is given up. */
static void
closing_gives_up_what_is_read_again(void **state)
{
	struct leat_options options;

	(void)state;
	trace_options(&options);
	options.on_error = LEAT_ON_ERROR_REPLACE;
	leat_close(trace_open(spec_on_data(rests[0]), &options));
	for (size_t i = 0; i < data.records; i += 3) {
		char uri[400];

		snprintf(uri, sizeof(uri), "mem://%s", data_path(&data, data.place[i].file));
		store_mem_fail(uri, data.place[i].offset + 20, data.place[i].offset + 21, STORE_MEM_ALWAYS, LEAT_DATA);
	}
	for (size_t i = 0; i < RESTS; i++)
		for (uint64_t reads = 1; reads < 40; reads++) {
			struct leat_feed *feed;

			options.threads = 1 + (unsigned)reads % 3;
			store_mem_set(&(struct store_mem_settings){0});
			feed = trace_open(spec_on_data(rests[i]), &options);
			store_mem_set(&(struct store_mem_settings){.stuck_from = store_mem_counts().submitted + reads});
			assert_true(take_until_it_waits(feed, 10000));
			leat_close(feed);
			assert_int_equal(store_mem_counts().in_flight, 0);
		}
}

/* Compressed files are read by whoever inflates them. What is read at open, such as CSV and Parquet tables, or only once,
 * comes without end. */
static void
closing_gives_up_the_reads_of_every_source(void **state)
{
	struct leat_options options;
	size_t stuck = 0;

	(void)state;
	trace_options(&options);
	options.epochs = 0;
	for (size_t i = 0; i < sources.count; i++)
		for (uint64_t reads = 0; reads < 6; reads++) {
			struct leat_feed *feed;
			char local[800], spec[800];

			snprintf(local, sizeof(local), "%s | batch(7) | prefetch(0)", sources.one[i].spec);
			store_mem_spec(sources.folder, local, spec, sizeof(spec));
			options.threads = 1 + (unsigned)reads % 3;
			store_mem_set(&(struct store_mem_settings){0});
			feed = trace_open(spec, &options);
			store_mem_set(
				&(struct store_mem_settings){.stuck_from = store_mem_counts().submitted + 1 + reads});
			stuck += take_until_it_waits(feed, 30);
			leat_close(feed);
			assert_int_equal(store_mem_counts().in_flight, 0);
		}
	assert_true(stuck > 5 * (sources.count - 3));
}

static void *
cancel(void *feed)
{
	leat_cancel(feed);
	return NULL;
}

static void
cancelling_ends_a_wait_for_reads(void **state)
{
	struct leat_options options;

	(void)state;
	trace_options(&options);
	for (size_t i = 0; i < RESTS; i++) {
		struct leat_feed *feed = open_and_hold(rests[i], &options);
		struct leat_batch *batch;
		pthread_t other;

		assert_int_equal(pthread_create(&other, NULL, cancel, feed), 0);
		assert_int_equal(leat_next(feed, &batch, NULL), LEAT_CANCELLED);
		pthread_join(other, NULL);
		leat_close(feed);
		assert_int_equal(store_mem_counts().in_flight, 0);
	}
}

static void
going_back_gives_up_reads_and_loses_nothing(void **state)
{
	struct leat_options options;

	(void)state;
	trace_options(&options);
	for (size_t i = 0; i < RESTS; i++) {
		struct trace all, resumed = {0};
		struct leat_feed *feed;
		char *json;

		store_mem_hold(false);
		options.epochs = 1;
		trace_run(&all, spec_on_data(rests[i]), &options);
		feed = trace_open(spec_on_data(rests[i]), &options);
		trace_take(&resumed, feed, 2);
		assert_int_equal(leat_save(feed, &json, NULL), LEAT_OK);
		leat_close(feed);
		feed = open_and_hold(rests[i], &options);
		assert_int_equal(leat_restore(feed, json, NULL), LEAT_OK);
		store_mem_hold(false);
		trace_take(&resumed, feed, all.batches - 2);
		leat_close(feed);
		trace_compare_samples(&all, &resumed, rests[i]);
		trace_free(&all);
		trace_free(&resumed);
		free(json);
	}
}

enum { HELD = 12 };

static void *
release_held(void *arg)
{
	struct leat_batch **held = arg;

	for (int i = 0; i < HELD; i++) {
		leat_release(held[i]);
		usleep((useconds_t)(i * 20)); /* some of them while the feed moves */
	}
	return NULL;
}

/* Whoever releases a batch starts reads for the next ones, but not while the feed moves. */
static void
batches_may_be_released_while_a_feed_seeks(void **state)
{
	struct leat_options options;
	struct leat_feed *feed;

	(void)state;
	trace_options(&options);
	options.epochs = 0;
	options.threads = 2;
	store_mem_set(&(struct store_mem_settings){.latency_ns = 50000});
	feed = trace_open(spec_on_data(" | shuffle | batch(16)"), &options);
	for (int i = 0; i < (TEST_SLOW ? 20 : 100); i++) {
		struct leat_batch *held[HELD], *next;
		pthread_t thread;

		for (int k = 0; k < HELD; k++)
			assert_int_equal(leat_next(feed, &held[k], NULL), LEAT_OK);
		assert_int_equal(pthread_create(&thread, NULL, release_held, held), 0);
		assert_int_equal(leat_seek(feed, 0, 64, NULL), LEAT_OK);
		assert_int_equal(pthread_join(thread, NULL), 0);
		assert_int_equal(leat_next(feed, &next, NULL), LEAT_OK);
		assert_int_equal(leat_position(feed), 80);
		leat_release(next);
	}
	leat_close(feed);
	assert_int_equal(store_mem_counts().in_flight, 0);
}

/* After any number of reads, with some done, some under way, some not begun. */
static void
a_feed_closes_at_any_moment(void **state)
{
	struct leat_options options;

	(void)state;
	trace_options(&options);
	options.epochs = 0;
	for (uint64_t i = 0; i < (TEST_SLOW ? 40 : 200); i++) {
		struct leat_feed *feed;
		uint64_t until;

		store_mem_set(&(struct store_mem_settings){.latency_ns = i % 3 * 50000, .shuffle = i});
		options.threads = 1 + (unsigned)i % 5;
		feed = trace_open(spec_on_data(rests[i % 2]), &options);
		until = store_mem_counts().submitted + i % 7;
		for (int tries = 0; tries < 100 && store_mem_counts().submitted < until; tries++)
			usleep(50); /* it may have all it needs */
		leat_close(feed);
		assert_int_equal(store_mem_counts().in_flight, 0);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(closing_cancels_the_reads_in_flight, mirror),
		cmocka_unit_test_setup(closing_does_not_wait_for_the_latency, mirror),
		cmocka_unit_test_setup(closing_gives_up_what_is_read_again, mirror),
		cmocka_unit_test_setup(closing_gives_up_the_reads_of_every_source, mirror),
		cmocka_unit_test_setup(cancelling_ends_a_wait_for_reads, mirror),
		cmocka_unit_test_setup(going_back_gives_up_reads_and_loses_nothing, mirror),
		cmocka_unit_test_setup(batches_may_be_released_while_a_feed_seeks, mirror),
		cmocka_unit_test_setup(a_feed_closes_at_any_moment, mirror),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
