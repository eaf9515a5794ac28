/* test_store_window.c - the number of reads in flight follows the window, in requests and in bytes */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "feed/feed.h"
#include "support/store_mem.h"
#include "support/trace.h"

/* Samples of 8 KiB, more than any window has. */
enum { TOKENS = 4096, SAMPLES = 4000, BATCH = 32 };

#define SPEC "tokens('mem://tokens', length=4096) | shuffle | batch(32)"

extern const struct leat_store_kind leat_store_mem;

static int
setup(void **state)
{
	uint16_t *tokens = malloc((size_t)SAMPLES * TOKENS * sizeof *tokens);

	(void)state;
	for (size_t i = 0; i < (size_t)SAMPLES * TOKENS; i++)
		tokens[i] = (uint16_t)(i / TOKENS);
	store_mem_reset();
	store_mem_put("mem://tokens", tokens, (size_t)SAMPLES * TOKENS * sizeof *tokens);
	free(tokens);
	return 0;
}

static int
teardown(void **state)
{
	(void)state;
	store_mem_reset();
	return 0;
}

/* Waits until `count` reads are in flight; a feed that never gets there is stopped by the test's time limit. */
static void
wait_for_flight(uint64_t count)
{
	while (store_mem_counts().in_flight < count)
		sched_yield();
}

/* Long enough for a read too many to be submitted, if there were one. */
static void
settle(void)
{
	usleep(50 * 1000);
}

static void
take_all(struct leat_feed *feed)
{
	struct leat_batch *batch;
	struct leat_err err;
	int64_t samples = 0;

	while (leat_next(feed, &batch, &err) == LEAT_OK) {
		struct leat_tensor tensor;

		assert_int_equal(leat_batch_field(batch, "tokens", &tensor, &err), LEAT_OK);
		for (int64_t i = 0; i < leat_batch_count(batch); i++, samples++) {
			const int32_t *row = (const int32_t *)tensor.data + i * TOKENS;

			assert_int_equal(row[0], row[TOKENS - 1]);
		}
		leat_release(batch);
	}
	assert_int_equal(samples, SAMPLES);
}

static void
as_many_reads_are_in_flight_as_the_store_likes(void **state)
{
	struct leat_options options;
	struct leat_feed *feed;

	(void)state;
	for (unsigned threads = 1; threads <= 3; threads += 2) {
		trace_options(&options);
		options.threads = threads;
		options.memory = (size_t)256 << 20;
		store_mem_hold(true);
		feed = trace_open(SPEC, &options);
		wait_for_flight(leat_store_mem.in_flight);
		settle();
		assert_int_equal(store_mem_counts().in_flight, leat_store_mem.in_flight);
		store_mem_hold(false);
		take_all(feed);
		assert_int_equal(store_mem_counts().most_in_flight, leat_store_mem.in_flight);
		leat_close(feed);
	}
}

/* A run holds at most LEAT_RUN_BYTES, so it has fewer reads the longer the samples are, and there are more runs. */
static void
long_samples_do_not_make_the_window_smaller(void **state)
{
	enum { LONG = 90000, LONG_SAMPLES = SAMPLES * TOKENS / LONG };
	struct leat_options options;
	struct leat_feed *feed;

	(void)state;
	assert_true(LONG * sizeof(uint16_t) * 2 > LEAT_RUN_BYTES && LONG_SAMPLES < leat_store_mem.in_flight);
	trace_options(&options);
	options.threads = 1;
	options.memory = (size_t)1 << 30;
	store_mem_hold(true);
	feed = trace_open("tokens('mem://tokens', length=90000) | shuffle | batch(32)", &options);
	wait_for_flight(LONG_SAMPLES);
	store_mem_hold(false);
	leat_close(feed);
}

static void
little_memory_makes_a_small_window_that_works(void **state)
{
	struct leat_options options;
	struct leat_feed *feed;
	uint64_t in_flight;

	(void)state;
	trace_options(&options);
	options.threads = 2;
	options.memory = trace_least_memory(SPEC, &options);
	store_mem_hold(true);
	feed = trace_open(SPEC, &options);
	wait_for_flight(1);
	settle();
	in_flight = store_mem_counts().in_flight;
	assert_in_range(in_flight, 1, feed->budget.window / (TOKENS * sizeof(uint16_t)));
	store_mem_hold(false);
	take_all(feed);
	leat_close(feed);
}

/* Nobody asks for a batch: completions alone start what the batches ahead have room for. */
static void
the_window_is_refilled_by_completions(void **state)
{
	struct leat_options options;
	struct leat_feed *feed;
	uint64_t submitted;

	(void)state;
	trace_options(&options);
	options.threads = 1;
	options.memory = (size_t)256 << 20;
	store_mem_hold(true);
	feed = trace_open(SPEC, &options);
	wait_for_flight(leat_store_mem.in_flight);
	submitted = store_mem_counts().submitted;
	store_mem_hold(false);
	while (store_mem_counts().submitted < submitted + BATCH)
		sched_yield();
	take_all(feed);
	leat_close(feed);
}

/* One sample of 20 MB among small ones costs its size once, whatever the number of threads. */
static void
one_large_sample_costs_its_size_once(void **state)
{
	enum { LARGE = 20 << 20, FILES = 100 };
	char *bytes = calloc(1, LARGE), csv[FILES * 16] = "path\n", line[32];
	struct leat_options options;
	struct leat_feed *feed;
	struct leat_batch *batch;
	struct leat_err err;
	int64_t samples = 0;

	(void)state;
	for (int i = 0; i < FILES; i++) {
		snprintf(line, sizeof line, "mem://f/%d", i);
		store_mem_put(line, bytes, i == 50 ? LARGE : 1000);
		snprintf(line, sizeof line, "%d\n", i);
		strcat(csv, line);
	}
	store_mem_put("mem://f/list.csv", csv, strlen(csv));
	trace_options(&options);
	options.threads = 8;
	options.memory = trace_least_memory("list('mem://f/list.csv', path=path) | batch(1)", &options);
	feed = trace_open("list('mem://f/list.csv', path=path) | batch(1)", &options);
	assert_in_range(feed->budget.window, LARGE, LARGE + LARGE / 4);
	while (leat_next(feed, &batch, &err) == LEAT_OK) {
		samples += leat_batch_count(batch);
		leat_release(batch);
	}
	assert_int_equal(samples, FILES);
	leat_close(feed);
	free(bytes);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(as_many_reads_are_in_flight_as_the_store_likes, setup, teardown),
		cmocka_unit_test_setup_teardown(long_samples_do_not_make_the_window_smaller, setup, teardown),
		cmocka_unit_test_setup_teardown(little_memory_makes_a_small_window_that_works, setup, teardown),
		cmocka_unit_test_setup_teardown(the_window_is_refilled_by_completions, setup, teardown),
		cmocka_unit_test_setup_teardown(one_large_sample_costs_its_size_once, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
