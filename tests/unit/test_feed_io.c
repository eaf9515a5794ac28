/* test_feed_io.c - what is not in the page cache is read by other threads, and comes out the same */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/data.h"
#include "support/trace.h"

static const size_t counts[] = {100, 3, 150, 90};
static struct data data;

DATA_FIXTURE(NULL)

static const char *const rests[] = {
	" | batch(16)",
	" | shuffle | batch(16)",
	" | interleave(3, 2) | example(image=bytes, label=int64) | decode | resize(20, 20) | random_flip | batch(16)",
};

/* False: this file system keeps everything in memory. */
static bool
run_cold(const char *rest, const struct leat_options *options, struct trace *trace, uint64_t *waited)
{
	struct leat_feed *feed;
	struct leat_stats stats;
	char spec[800];
	bool dropped = data_drop_cache(&data);

	snprintf(spec, sizeof spec, "%s%s", data_source(&data), rest);
	feed = trace_open(spec, options);
	*trace = (struct trace){0};
	trace_take(trace, feed, 0);
	leat_stats(feed, &stats);
	*waited = stats.read_wait_ns;
	leat_close(feed);
	return dropped;
}

static void
reads_that_block_give_the_same_bytes(void **state)
{
	struct leat_options options;
	uint64_t waited = 0, all_waited = 0;
	bool dropped = true;

	(void)state;
	trace_options(&options);
	for (size_t i = 0; i < sizeof rests / sizeof *rests; i++)
		for (options.threads = 1; options.threads <= 7; options.threads += 3) {
			struct trace warm, cold;
			char spec[800];

			snprintf(spec, sizeof spec, "%s%s", data_source(&data), rests[i]);
			trace_run(&warm, spec, &options);
			dropped &= run_cold(rests[i], &options, &cold, &waited);
			all_waited += waited;
			trace_compare(&warm, &cold, rests[i]);
			trace_free(&warm);
			trace_free(&cold);
		}
	if (!dropped)
		print_message("the page cache could not be emptied here\n");
	else
		assert_true(all_waited > 0);
}

/* With one run more than workers there is one I/O thread, which every run has to pass. */
static void
the_least_memory_reads_from_the_disk_too(void **state)
{
	struct leat_options options;

	(void)state;
	trace_options(&options);
	for (options.threads = 1; options.threads <= 7; options.threads += 3) {
		struct trace warm, cold;
		uint64_t waited;
		char spec[800];

		snprintf(spec, sizeof spec, "%s%s", data_source(&data), rests[1]);
		options.memory = (size_t)64 << 20;
		trace_run(&warm, spec, &options);
		options.memory = trace_least_memory(spec, &options);
		run_cold(rests[1], &options, &cold, &waited);
		trace_compare(&warm, &cold, spec);
		trace_free(&warm);
		trace_free(&cold);
	}
}

/* Closed, and gone back, while reads are under way. */
static void
stopping_in_the_middle_of_reads_loses_nothing(void **state)
{
	struct leat_options options;
	char spec[800];

	(void)state;
	trace_options(&options);
	options.epochs = 0;
	snprintf(spec, sizeof spec, "%s%s", data_source(&data), rests[1]);
	for (int i = 0; i < (TEST_SLOW ? 10 : 40); i++) {
		struct leat_feed *feed;
		struct trace trace = {0};
		char *json;

		data_drop_cache(&data);
		options.threads = 1 + (unsigned)i % 4;
		feed = trace_open(spec, &options);
		if (i % 2) {
			assert_int_equal(leat_save(feed, &json, NULL), LEAT_OK);
			trace_take(&trace, feed, 1);
			data_drop_cache(&data);
			assert_int_equal(leat_restore(feed, json, NULL), LEAT_OK);
			trace_take(&trace, feed, 1);
			assert_int_equal(trace.batches, 2);
			assert_memory_equal(trace.sample[0].hash, trace.sample[16].hash, 32);
			free(json);
		}
		leat_close(feed);
		trace_free(&trace);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reads_that_block_give_the_same_bytes),
		cmocka_unit_test(the_least_memory_reads_from_the_disk_too),
		cmocka_unit_test(stopping_in_the_middle_of_reads_loses_nothing),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
