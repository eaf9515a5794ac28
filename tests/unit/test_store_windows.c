/* test_store_windows.c - windows of remote recordings: fetched as one range, or piece by piece */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "format/npy_write.h"
#include "support/source.h"
#include "support/store_mem.h"
#include "support/trace.h"

enum { CHANNELS = 20, STEPS = 40000 }; /* more channels than reads are in flight, and too large to be read at once */

/* Element k is base + k. */
static void
put(const char *uri, int ndim, const int64_t *shape, int32_t base)
{
	char head[LEAT_NPY_HEAD];
	size_t at = leat_npy_head(head, LEAT_I32, ndim, shape, shape[0]), elements = 1;
	unsigned char *file;

	for (int d = 0; d < ndim; d++)
		elements *= (size_t)shape[d];
	file = malloc(at + 4 * elements);
	memcpy(file, head, at);
	for (size_t k = 0; k < elements; k++)
		memcpy(file + at + 4 * k, &(int32_t){base + (int32_t)k}, 4);
	store_mem_put(uri, file, at + 4 * elements);
	free(file);
}

static int
setup(void **state)
{
	(void)state;
	store_mem_reset();
	put("mem://eeg.npy", 2, (int64_t[]){CHANNELS, STEPS}, 0);
	put("mem://sensor.npy", 2, (int64_t[]){STEPS, CHANNELS}, 0);
	put("mem://label.npy", 1, (int64_t[]){STEPS}, 0);
	put("mem://part-0.npy", 1, (int64_t[]){7}, 0);
	put("mem://part-1.npy", 1, (int64_t[]){8}, 7);
	return 0;
}

/* Reads all windows of `spec`, which begin where their labels say, with so many reads. */
static void
expect_windows(const char *spec, bool channels_first, int64_t length, uint64_t fewest, uint64_t most)
{
	uint64_t before, reads;
	struct leat_options options;
	struct leat_batch *batch;
	struct leat_feed *feed;
	struct leat_err err;

	trace_options(&options);
	before = store_mem_counts().submitted + 3; /* two headers and the labels; feeds read ahead once they are open */
	feed = trace_open(spec, &options);
	while (leat_next(feed, &batch, &err) == LEAT_OK) {
		struct leat_tensor x, label;

		assert_int_equal(leat_batch_field(batch, "x", &x, &err), LEAT_OK);
		assert_int_equal(leat_batch_field(batch, "label", &label, &err), LEAT_OK);
		for (int64_t i = 0; i < leat_batch_count(batch); i++) {
			const int32_t *window = (const int32_t *)x.data + i * CHANNELS * length;
			int64_t begin = ((const int32_t *)label.data)[i];

			for (int64_t k = 0; k < CHANNELS * length; k++)
				if (window[k] !=
				    (channels_first ? k / length * STEPS + begin + k % length : begin * CHANNELS + k))
					fail_msg("element %lld of the window at %lld", (long long)k, (long long)begin);
		}
		leat_release(batch);
	}
	reads = store_mem_counts().submitted - before;
	leat_close(feed);
	if (reads < fewest || reads > most)
		fail_msg("%s: %llu reads", spec, (unsigned long long)reads);
}

static void
windows_along_the_first_axis_are_one_range(void **state)
{
	enum { WINDOWS = (STEPS - 100) / 1000 + 1 };

	(void)state;
	expect_windows("windows('mem://sensor.npy', length=100, stride=1000, labels='mem://label.npy', label=first) | "
	               "shuffle | batch(8)",
	               false, 100, 1, WINDOWS);
	expect_windows("windows('mem://sensor.npy', length=100, stride=10, labels='mem://label.npy', label=first) | "
	               "take(500) | batch(8)",
	               false, 100, 1, 500);
}

static void
windows_along_another_axis_are_a_range_for_each_channel(void **state)
{
	enum { WINDOWS = (STEPS - 100) / 1000 + 1 };

	(void)state;
	expect_windows("windows('mem://eeg.npy', length=100, stride=1000, axis=1, labels='mem://label.npy', "
	               "label=first) | shuffle | batch(8)",
	               true, 100, WINDOWS * CHANNELS, WINDOWS * CHANNELS);
}

static void
windows_cross_remote_files(void **state)
{
	struct leat_tensor x;
	struct whole whole;

	(void)state;
	whole_open(&whole, "windows('mem://part-*.npy', length=5, across=true)", NULL);
	x = whole_field(&whole, "x");
	assert_int_equal(whole.count, 3);
	for (int32_t k = 0; k < 15; k++)
		assert_int_equal(((const int32_t *)x.data)[k], k);
	whole_close(&whole);
}

/* Byte of the array that holds an element of channel `channel` at `step`. */
static uint64_t
byte_of(bool channels_first, uint64_t channel, uint64_t step)
{
	return 128 + 4 * (channels_first ? channel * STEPS + step : step * CHANNELS + channel);
}

static void
what_cannot_be_read_is_bad_or_ends_the_feed(void **state)
{
	static const char *const uris[] = {"mem://sensor.npy", "mem://eeg.npy"};

	(void)state;
	for (int channels_first = 0; channels_first < 2; channels_first++) {
		uint64_t damaged = byte_of(channels_first, 3, 4100), failing = byte_of(channels_first, 7, 8100);
		const char *uri = uris[channels_first];
		struct leat_options options;
		struct whole whole;
		struct trace trace;
		char spec[200];

		trace_options(&options);
		options.on_error = LEAT_ON_ERROR_SKIP;
		snprintf(spec, sizeof spec, "windows('%s', length=400, stride=4000, axis=%d) | batch(100)", uri,
		         channels_first);
		store_mem_fail(uri, damaged, damaged + 1, STORE_MEM_ALWAYS, LEAT_DATA);
		whole_open(&whole, spec, &options);
		assert_int_equal(whole.count, 9);
		assert_int_equal(leat_bad_count(whole.feed), 1);
		assert_int_equal(leat_bad_at(whole.feed, 0)->sample, 1);
		assert_non_null(strstr(leat_bad_at(whole.feed, 0)->reason, uri));
		whole_close(&whole);
		store_mem_fail(uri, failing, failing + 1, STORE_MEM_ALWAYS, LEAT_IO);
		trace_run(&trace, spec, &options);
		assert_int_equal(trace.status, LEAT_IO);
		trace_free(&trace);
	}
}

/* Closing ends reads that a worker waits for. */
static void
a_feed_closes_while_a_server_does_not_answer(void **state)
{
	struct leat_options options;
	struct leat_batch *batch;
	struct leat_feed *feed;
	struct leat_err err;
	uint64_t before;

	(void)state;
	trace_options(&options);
	before = store_mem_counts().submitted;
	store_mem_set(&(struct store_mem_settings){.stuck_from = before + 10});
	feed = trace_open("windows('mem://eeg.npy', length=100, axis=1) | batch(4)", &options);
	while (store_mem_counts().submitted < before + 12)
		assert_int_equal(leat_next_within(feed, 1000000, &batch, &err), LEAT_TIMEOUT);
	leat_close(feed);
	store_mem_set(&(struct store_mem_settings){0});
}

static void
the_same_for_any_threads_ranks_and_stops(void **state)
{
	(void)state;
	promise_same("windows('mem://eeg.npy', length=100, stride=900, axis=1, labels='mem://label.npy')");
	promise_same("windows('mem://sensor.npy', length=100, stride=900, labels='mem://label.npy', label=all)");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(windows_along_the_first_axis_are_one_range, setup),
		cmocka_unit_test_setup(windows_along_another_axis_are_a_range_for_each_channel, setup),
		cmocka_unit_test_setup(windows_cross_remote_files, setup),
		cmocka_unit_test_setup(what_cannot_be_read_is_bad_or_ends_the_feed, setup),
		cmocka_unit_test_setup(a_feed_closes_while_a_server_does_not_answer, setup),
		cmocka_unit_test_setup(the_same_for_any_threads_ranks_and_stops, setup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
