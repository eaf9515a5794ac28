/* test_feed_alloc.c - when memory runs out, at whatever moment, there is an error: never a crash, a leak or a hang
 *
 * Every request from the n-th on fails, for all n, until n is so large that nothing fails
 * any more. Sanitizers look for what is lost on the way. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "feed/feed.h"
#include "support/data.h"
#include "support/trace.h"

static const size_t counts[] = {20, 0, 17};
static struct data data, damaged;

static enum data_kind
some_cut(size_t sample)
{
	return sample % 5 == 2 ? DATA_CUT : DATA_GOOD;
}

static int
setup(void **state)
{
	(void)state;
	data_make(&data, 3, counts, NULL);
	data_make(&damaged, 3, counts, some_cut);
	data_flip_payload(&damaged, 4);
	data_flip_header(&damaged, 9);
	return 0;
}

static int
teardown(void **state)
{
	(void)state;
	data_remove(&data);
	data_remove(&damaged);
	return 0;
}

static void
check_error(enum leat_status status, const struct leat_err *err)
{
	if (status != LEAT_NOMEM && status != LEAT_LIMIT)
		fail_msg("%s: %s", leat_status_name(status), err->text);
	assert_int_equal(err->status, status);
	assert_true(err->text[0] != '\0');
}

/* Three batches, or an error. */
static bool
take_some(struct leat_feed *feed)
{
	for (int i = 0; i < 3; i++) {
		struct leat_batch *batch;
		struct leat_err err;
		enum leat_status status = leat_next(feed, &batch, &err);

		if (status != LEAT_OK) {
			check_error(status, &err);
			return false;
		}
		leat_release(batch);
	}
	return true;
}

/* True: nothing failed, because fewer than n requests were made. */
static bool
try_with(const char *spec, const struct leat_options *options, long n)
{
	struct leat_feed *feed;
	struct leat_err err;
	enum leat_status status = leat_feed_open(spec, options, LEAT_BATCH_REQUIRED, n, &feed, &err);
	bool all, spared;

	if (status != LEAT_OK) {
		assert_null(feed);
		check_error(status, &err);
		return false;
	}
	all = take_some(feed);
	leat_engine_stop(feed); /* nobody asks for memory any more */
	spared = atomic_load(&feed->mem.fail_after) > 0;
	assert_true(all || !spared);
	leat_close(feed);
	return all && spared;
}

static void
fails_well(const struct data *from, const char *rest, const struct leat_options *options,
           void (*before)(const struct data *))
{
	long n = 0;
	char spec[800];

	do {
		if (before)
			before(from);
		snprintf(spec, sizeof spec, "%s%s", data_source(from), rest);
		assert_in_range(n, 0, 100000);
	} while (!try_with(spec, options, n++));
	assert_true(n > 20);
}

static void
every_request_may_fail(void **state)
{
	static const char *const rests[] = {
		" | shuffle(5) | batch(4)",
		" | interleave(2) | shuffle(block=3, window=2) | repeat(2) | skip(1) | take(30) | shard(2, 1) | "
		"batch(4)",
		(" | example(image=bytes, label=int64, tokens=int64[], box=float[4](default=[1, 2, 3, 4])) | decode | "
	         "resize(10, 10) | normalize([1, 2, 3], [4, 5, 6], field=image) | cast(float16, field=[image, label]) "
	         "| batch(4)"),
	};
	struct leat_options options;

	(void)state;
	trace_options(&options);
	for (size_t i = 0; i < sizeof rests / sizeof *rests; i++)
		fails_well(&data, rests[i], &options, NULL);
}

static void
every_request_may_fail_on_the_way_to_another_error(void **state)
{
	static const char *const rests[] = {
		" | example(image=bytes, label=int64(default=[1, 2]), tokens=int64[]) | batch(4)",
		" | example(image=bytes, box=float[4](default=[1, 2, 3, 4])) | resize(3, 3)",
		" | example(image=bytes) | decode | resize(3, 3) | normalize([1, 2], [1]) | batch(3)",
		" | shuffle(3) | take(5) | batch(3, tail=drop, per_rank=3)",
	};

	(void)state;
	for (size_t i = 0; i < sizeof rests / sizeof *rests; i++) {
		enum leat_status status;
		long n = 0;

		do {
			struct leat_feed *feed;
			struct leat_err err;
			char spec[800];

			snprintf(spec, sizeof spec, "%s%s", data_source(&data), rests[i]);
			status = leat_feed_open(spec, NULL, LEAT_BATCH_REQUIRED, n++, &feed, &err);
			assert_null(feed);
			if (status != LEAT_SPEC)
				check_error(status, &err);
		} while (status != LEAT_SPEC);
	}
}

static void
every_request_may_fail_while_the_index_is_made(void **state)
{
	struct leat_options options;

	(void)state;
	trace_options(&options);
	fails_well(&data, " | batch(4)", &options, data_forget_indexes);
	fails_well(&damaged, " | skip(10) | example(label=int64) | batch(4)", &options, data_forget_indexes);
}

/* Bad samples are listed with memory that workers ask for; what cannot be listed is counted. */
static void
every_request_may_fail_while_bad_samples_are_noted(void **state)
{
	struct leat_options options;

	(void)state;
	trace_options(&options);
	for (options.on_error = LEAT_ON_ERROR_SKIP; options.on_error <= LEAT_ON_ERROR_REPLACE; options.on_error++) {
		options.threads = options.on_error == LEAT_ON_ERROR_SKIP ? 3 : 1;
		fails_well(&damaged, " | example(image=bytes) | decode | resize(4, 4) | batch(5)", &options, NULL);
	}
}

static void
bad_samples_take_no_memory_when_they_come(void **state)
{
	struct leat_options options;
	struct leat_stats stats;
	struct leat_feed *feed;
	struct trace trace = {0};
	char spec[800];

	(void)state;
	trace_options(&options);
	options.on_error = LEAT_ON_ERROR_SKIP;
	snprintf(spec, sizeof spec, "%s | example(image=bytes) | decode | resize(4, 4) | batch(5) | prefetch(0)",
	         data_source(&damaged));
	feed = trace_open(spec, &options);
	atomic_store(&feed->mem.fail_after, 0);
	trace_take(&trace, feed, 0);
	assert_int_equal(trace.status, LEAT_DONE);
	leat_stats(feed, &stats);
	assert_int_equal(trace.samples, 37 - 9);
	assert_int_equal(stats.bad, 9);
	assert_int_equal(leat_bad_count(feed), 9);
	leat_close(feed);
	trace_free(&trace);
}

static void
drop_cache(const struct data *from)
{
	data_drop_cache(from);
}

/* Without memory for I/O threads the workers wait for the disk themselves. */
static void
every_request_may_fail_when_reads_block(void **state)
{
	struct leat_options options;

	(void)state;
	trace_options(&options);
	for (options.threads = 1; options.threads <= 4; options.threads += 3)
		for (int i = 0; i < 3; i++)
			fails_well(&data, " | shuffle | batch(4)", &options, drop_cache);
}

static void
without_io_threads_nothing_hangs(void **state)
{
	struct leat_options options;
	char spec[800];

	(void)state;
	trace_options(&options);
	snprintf(spec, sizeof spec, "%s | shuffle | batch(4) | prefetch(0)", data_source(&data));
	for (int i = 0; i < (TEST_SLOW ? 20 : 100); i++) {
		struct leat_feed *feed;
		struct trace trace = {0};

		options.threads = 2 + (unsigned)i % 6;
		feed = trace_open(spec, &options);
		atomic_store(&feed->mem.fail_after, 0);
		data_drop_cache(&data);
		alarm(60); /* a test that hangs is killed */
		trace_take(&trace, feed, 0);
		alarm(0);
		assert_int_equal(trace.status, LEAT_DONE);
		assert_int_equal(trace.samples, 37);
		leat_close(feed);
		trace_free(&trace);
	}
}

/* A feed that cannot go on after going back says so, at once and at every call, until it is restored with more luck. */
static void
a_restore_that_fails_leaves_a_feed_that_says_so(void **state)
{
	struct leat_options options;
	struct leat_feed *feed;
	struct trace trace = {0};
	char spec[800], *json;
	long n = 0;

	(void)state;
	trace_options(&options);
	snprintf(spec, sizeof spec, "%s | shuffle | batch(4)", data_source(&data));
	feed = trace_open(spec, &options);
	trace_take(&trace, feed, 3);
	assert_int_equal(leat_save(feed, &json, NULL), LEAT_OK);
	for (;; n++) {
		struct leat_batch *batch;
		struct leat_err err;
		enum leat_status status;

		atomic_store(&feed->mem.fail_after, n);
		status = leat_restore(feed, json, n % 2 ? &err : NULL);
		if (status == LEAT_OK)
			break;
		if (n % 2)
			check_error(status, &err);
		status = leat_next(feed, &batch, &err);
		check_error(status, &err);
		assert_int_equal(leat_next(feed, &batch, &err), status);
	}
	assert_true(n > 0);
	trace_take(&trace, feed, 1);
	assert_int_equal(trace.sample[12].position, 12);
	leat_close(feed);
	trace_free(&trace);
	free(json);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_request_may_fail),
		cmocka_unit_test(every_request_may_fail_on_the_way_to_another_error),
		cmocka_unit_test(every_request_may_fail_while_the_index_is_made),
		cmocka_unit_test(every_request_may_fail_while_bad_samples_are_noted),
		cmocka_unit_test(bad_samples_take_no_memory_when_they_come),
		cmocka_unit_test(every_request_may_fail_when_reads_block),
		cmocka_unit_test(without_io_threads_nothing_hangs),
		cmocka_unit_test(a_restore_that_fails_leaves_a_feed_that_says_so),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
