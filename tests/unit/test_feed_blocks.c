/* test_feed_blocks.c - blocks that are shuffled are read whole, and give what samples give that are read alone
 *
 * The reference is the same feed with the least memory it opens with: there is no room for blocks then, and each sample
 * is read by itself. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "feed/blocks.h"
#include "feed/feed.h"
#include "format/example.h"
#include "support/data.h"
#include "support/source.h"
#include "support/trace.h"

/* Blocks end in the middle of files, and files in the middle of blocks. */
static const size_t counts[] = {300, 7, 0, 500, 1, 260};
enum { RECORDS = 1068, MEMORY = 256 << 20 };

static struct data data;

DATA_FIXTURE(NULL)

static struct leat_feed *
open_feed(const char *spec, const struct leat_options *options, bool in_blocks)
{
	struct leat_options o = *options;
	struct leat_feed *feed;

	o.memory = in_blocks ? MEMORY : trace_least_memory(spec, options);
	feed = trace_open(spec, &o);
	if ((feed->budget.block_groups > 0) != in_blocks)
		fail_msg("%s: %s", in_blocks ? "not in blocks" : "in blocks", spec);
	return feed;
}

static void
run(const char *spec, const struct leat_options *options, bool in_blocks, struct trace *trace)
{
	struct leat_feed *feed = open_feed(spec, options, in_blocks);
	struct leat_stats stats;

	*trace = (struct trace){0};
	trace_take(trace, feed, 0);
	leat_stats(feed, &stats);
	assert_true(stats.memory_peak <= MEMORY);
	leat_close(feed);
}

static void
compare(const char *spec, const struct leat_options *options)
{
	struct trace blocks, alone;

	run(spec, options, true, &blocks);
	run(spec, options, false, &alone);
	if (options->on_error != LEAT_ON_ERROR_FAIL)
		assert_int_equal(blocks.status, LEAT_DONE);
	assert_int_equal(blocks.status, alone.status);
	assert_string_equal(blocks.err.text, alone.err.text);
	trace_compare(&blocks, &alone, spec);
	trace_free(&blocks);
	trace_free(&alone);
}

static const char *
spec_of(const struct data *of, const char *rest)
{
	static char spec[1000];

	snprintf(spec, sizeof spec, "%s | %s", data_source(of), rest);
	return spec;
}

/* ---- the plan ---- */

/* Each position is in the group that is found for it, and in no other one before the group's end. */
static void
samples_are_in_the_blocks_of_their_group(void **state)
{
	static const char *const rests[] = {
		"shuffle(block=64, window=4) | batch(5)",
		"shuffle(block=200, window=1) | batch(5)",
		"shuffle(block=300, window=9) | batch(5)",
		"shuffle(block=5000, window=2) | batch(5)",
		"skip(17) | take(900) | shuffle(block=64, window=4) | batch(5)",
		"split(train, folds=5) | shuffle(block=32, window=8) | batch(5)",
		"shuffle(block=30, window=6) | skip(11) | take(700) | repeat(3) | shard(2, 1) | batch(5)",
		"shard(2, 1) | shuffle(block=64, window=5) | repeat(2) | batch(5)",
	};
	struct leat_options options;

	(void)state;
	trace_options(&options);
	for (size_t i = 0; i < sizeof rests / sizeof *rests; i++) {
		struct leat_feed *feed = open_feed(spec_of(&data, rests[i]), &options, true);
		struct leat_plan *plan = &feed->pipeline.plan;
		struct leat_plan_group group = {0};
		uint64_t end = 0;

		pthread_mutex_lock(&feed->lock); /* the engine plans, too */
		for (uint64_t at = 0; at < 2 * plan->size; at++) {
			uint64_t epoch = at / plan->size, position = at % plan->size, first = 0, last = 0, k = 0;
			uint64_t sample = leat_plan_at(plan, epoch, position);

			if (position == 0 || position == end)
				leat_plan_group_at(plan, &feed->budget.blocks, epoch, position, &group, &end);
			assert_true(position < end && end <= plan->size);
			assert_true(group.blocks <= feed->budget.blocks.blocks);
			do
				leat_plan_block(plan, &feed->budget.blocks, &group, k, &first, &last);
			while ((sample < first || sample > last) && ++k < group.blocks);
			assert_true(k < group.blocks);
		}
		pthread_mutex_unlock(&feed->lock);
		leat_close(feed);
	}
}

/* ---- the same samples ---- */

static void
blocks_give_what_samples_give_that_are_read_alone(void **state)
{
	static const char *const orders[] = {
		"shuffle(block=64, window=4)",
		"shuffle(block=100, window=3)",
		"shuffle(block=2, window=100)",
		"shuffle(block=2000, window=2)",
		"skip(33) | take(1000) | shuffle(block=40, window=5)",
		"split(train, folds=4) | shuffle(block=40, window=5) | repeat(2)",
		"shuffle(block=50, window=6) | skip(100) | take(600) | shard(2, 1)",
	};
	static const char *const rests[] = {
		"batch(7)",
		"batch(300)",
		"batch(64, tail=wrap)",
		"example(image=bytes, label=int64) | batch(31)",
		"example(image=bytes, label=int64) | decode | resize(8, 8) | batch(32) | prefetch(0)",
		"batch(100, tail=drop) | prefetch(1)",
	};
	struct leat_options options;
	char rest[400];

	(void)state;
	trace_options(&options);
	options.epochs = 2;
	for (size_t i = 0; i < sizeof orders / sizeof *orders; i++)
		for (size_t k = 0; k < sizeof rests / sizeof *rests; k++) {
			if (TEST_SLOW && (i + k) % 3 > 0)
				continue;
			options.threads = 1 + (unsigned)(i + k) % 4;
			options.seed = i;
			snprintf(rest, sizeof rest, "%s | %s", orders[i], rests[k]);
			compare(spec_of(&data, rest), &options);
		}
}

/* In another order, of which nothing is in blocks, or not worth it. */
static void
other_plans_are_read_alone(void **state)
{
	static const char *const rests[] = {
		"batch(5)",
		"shuffle | batch(5)",
		"shuffle(window=200) | batch(5)",
		"shuffle(block=1, window=500) | batch(5)",
		"shuffle(block=20, window=5) | batch(5)", /* small groups */
		"shuffle(block=64, window=4) | shuffle | batch(5)",
		"shuffle | shuffle(block=64, window=4) | batch(5)",
		"repeat(2) | shuffle(block=64, window=4) | batch(5)",
		"interleave(2) | shuffle(block=64, window=4) | batch(5)",
		"cache(memory) | shuffle(block=64, window=4) | batch(5)",
		"shuffle(block=64, window=4) | take(3) | batch(5)",
		"shuffle(block=64, window=4) | shard(60, 1) | batch(5)",
	};
	struct leat_options options;

	(void)state;
	trace_options(&options);
	options.memory = MEMORY;
	for (size_t i = 0; i < sizeof rests / sizeof *rests; i++) {
		struct leat_feed *feed = trace_open(spec_of(&data, rests[i]), &options);

		if (feed->budget.block_groups > 0)
			fail_msg("in blocks: %s", rests[i]);
		leat_close(feed);
	}
}

static void
blocks_keep_the_promises_of_sources(void **state)
{
	char source[400];

	(void)state;
	snprintf(source, sizeof source, "%s | skip(7) | take(400)", data_source(&data));
	promise_same_with(source, "shuffle(block=32, window=4)");
	snprintf(source, sizeof source, "%s | shuffle(block=64, window=4) | batch(9)", data_source(&data));
	promise_memory_errors(source, NULL);
}

/* Most of the time, ranks have other rows of the same groups. */
static void
ranks_share_the_samples_of_a_group(void **state)
{
	struct leat_options options;

	(void)state;
	trace_options(&options);
	options.epochs = 2;
	options.world = 2;
	for (options.rank = 0; options.rank < options.world; options.rank++) {
		compare(spec_of(&data, "shuffle(block=64, window=4) | batch(30)"), &options);
		compare(spec_of(&data, "shuffle(block=64, window=2) | batch(400, tail=exact)"), &options);
	}
}

static void
blocks_that_are_not_in_the_page_cache_are_the_same(void **state)
{
	struct leat_options options;
	struct trace warm, cold;

	(void)state;
	trace_options(&options);
	options.epochs = 1;
	for (options.threads = 1; options.threads <= 3; options.threads++) {
		const char *spec = spec_of(&data, "shuffle(block=64, window=4) | batch(9)");

		run(spec, &options, true, &warm);
		if (!data_drop_cache(&data))
			print_message("the file system keeps its pages: all reads were from memory\n");
		run(spec, &options, true, &cold);
		trace_compare(&warm, &cold, spec);
		trace_free(&warm);
		trace_free(&cold);
	}
}

/* ---- reads ---- */

/* Read calls of this process so far; 0: the kernel does not tell. */
static unsigned long long
read_calls(void)
{
	FILE *io = fopen("/proc/self/io", "r");
	unsigned long long calls = 0;
	char line[200];

	while (io && fgets(line, sizeof line, io))
		sscanf(line, "syscr: %llu", &calls);
	if (io)
		fclose(io);
	return calls;
}

static void
a_block_takes_few_reads(void **state)
{
	const char *spec = spec_of(&data, "shuffle(block=100, window=2) | batch(20)");
	struct leat_options options;
	unsigned long long before;
	struct leat_feed *feed;
	struct trace trace = {0};

	(void)state;
	trace_options(&options);
	options.epochs = 10;
	feed = open_feed(spec, &options, true);
	before = read_calls();
	if (!before)
		skip();
	trace_take(&trace, feed, 0);
	assert_int_equal(trace.samples, 10 * RECORDS);
	/* About 16 an epoch. What is not in the page cache takes a few more. */
	assert_in_range(read_calls() - before, 1, 10 * RECORDS / 8);
	trace_free(&trace);
	leat_close(feed);
}

/* ---- long samples ---- */

/* A few of the last 500 are longer than a group has room for. */
static void
make_uneven(struct leat_example *example, size_t i)
{
	static unsigned char bytes[300000];

	bytes[0] = (unsigned char)i;
	leat_example_add_bytes(example, "image", bytes, i >= 1500 && i % 100 == 50 ? sizeof bytes : i % 60);
}

static void
what_does_not_fit_is_read_alone(void **state)
{
	static const char *const rests[] = {"shuffle(block=50, window=4) | batch(11)",
	                                    "shuffle(block=50, window=4) | example(image=bytes) | batch(50)",
	                                    "shuffle(block=10, window=40) | batch(100, tail=wrap)"};
	struct leat_options options;
	struct data uneven;

	(void)state;
	data_make_file(&uneven, 2000, make_uneven);
	trace_options(&options);
	options.epochs = 2;
	for (size_t i = 0; i < sizeof rests / sizeof *rests; i++) {
		options.threads = 1 + (unsigned)i;
		options.max_bytes = i == 1 ? 1000 : 1 << 30;
		options.on_error = i == 1 ? LEAT_ON_ERROR_SKIP : LEAT_ON_ERROR_FAIL;
		options.max_bad = UINT64_MAX;
		compare(spec_of(&uneven, rests[i]), &options);
	}
	data_remove(&uneven);
}

/* ---- failures ---- */

static void
bad_samples_are_those_that_are_bad_alone(void **state)
{
	static const enum leat_on_error ways[] = {LEAT_ON_ERROR_FAIL, LEAT_ON_ERROR_SKIP, LEAT_ON_ERROR_REPLACE};
	static const size_t payloads[] = {0, 17, 299, 300, 555, RECORDS - 1}, headers[] = {64, 420};
	struct leat_options options;
	struct data bad;

	(void)state;
	data_copy(&bad, &data);
	trace_options(&options);
	options.epochs = 2;
	leat_close(open_feed(spec_of(&bad, "shuffle(block=64, window=4) | batch(5)"), &options, true)); /* indexes */
	for (size_t i = 0; i < sizeof payloads / sizeof *payloads; i++)
		data_flip_payload(&bad, payloads[i]);
	for (size_t i = 0; i < sizeof headers / sizeof *headers; i++)
		data_flip_header(&bad, headers[i]);
	for (int forgotten = 0; forgotten < 2; forgotten++) {
		for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
			options.on_error = ways[i];
			options.threads = 1 + (unsigned)i;
			compare(spec_of(&bad, "shuffle(block=64, window=4) | batch(16)"), &options);
			compare(spec_of(&bad, "shuffle(block=30, window=8) | example(label=int64) | batch(16)"),
			        &options);
		}
		data_forget_indexes(&bad); /* the next ones have damaged regions */
	}
	data_remove(&bad);
}

/* A file that loses its end while the feed is open: what was read before is good, the rest is bad, one by one. */
static void
a_truncated_file_costs_only_its_own_samples(void **state)
{
	struct leat_options options;
	struct leat_feed *feed;
	struct trace trace = {0};
	struct leat_stats stats;
	struct data cut;

	(void)state;
	data_copy(&cut, &data);
	trace_options(&options);
	options.epochs = 3;
	options.threads = 2;
	options.on_error = LEAT_ON_ERROR_SKIP;
	options.max_bad = UINT64_MAX;
	feed = open_feed(spec_of(&cut, "shuffle(block=32, window=4) | batch(16)"), &options, true);
	trace_take(&trace, feed, 5);
	assert_int_equal(truncate(data_path(&cut, 3), (off_t)cut.place[500].offset), 0);
	trace_take(&trace, feed, 0);
	assert_int_equal(trace.status, LEAT_DONE);
	leat_stats(feed, &stats);
	assert_int_equal(trace.samples + stats.bad, 3 * RECORDS);
	assert_true(stats.bad > 0);
	for (uint64_t i = 0; i < leat_bad_count(feed); i++)              /* the list is limited */
		assert_in_range(leat_bad_at(feed, i)->sample, 307, 806); /* of that file */
	leat_close(feed);
	trace_free(&trace);
	data_remove(&cut);
}

/* ---- stopping ---- */

static void
a_feed_stops_and_seeks_in_a_group(void **state)
{
	const char *spec = spec_of(&data, "shuffle(block=64, window=4) | batch(10)");
	struct leat_options options;
	struct trace all;

	(void)state;
	trace_options(&options);
	options.epochs = 3;
	options.threads = 3;
	run(spec, &options, false, &all);
	for (size_t before = 0; before < 320; before += TEST_SLOW ? 61 : 7) {
		struct leat_feed *feed = open_feed(spec, &options, true);
		struct trace first = {0}, rest = {0};
		struct leat_err err;
		char *json;

		trace_take(&first, feed, before + 1);
		assert_int_equal(leat_save(feed, &json, &err), LEAT_OK);
		trace_take(&rest, feed, 3); /* is dropped */
		trace_free(&rest);
		if (before % 2)
			data_drop_cache(&data);
		assert_int_equal(leat_restore(feed, json, &err), LEAT_OK);
		rest = (struct trace){0};
		trace_take(&rest, feed, 0);
		trace_append(&first, &rest);
		trace_compare_samples(&all, &first, spec);
		free(json);
		leat_close(feed);
		trace_free(&first);
		trace_free(&rest);
	}
	trace_free(&all);
}

static void
closing_does_not_wait_for_a_group(void **state)
{
	struct leat_options options;

	(void)state;
	trace_options(&options);
	for (int i = 0; i < 20; i++) {
		struct leat_feed *feed;
		struct trace trace = {0};

		options.threads = 1 + (unsigned)i % 3;
		data_drop_cache(&data);
		feed = open_feed(spec_of(&data, "shuffle(block=128, window=8) | batch(10)"), &options, true);
		trace_take(&trace, feed, 1 + (size_t)i % 2);
		leat_close(feed);
		trace_free(&trace);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(samples_are_in_the_blocks_of_their_group),
		cmocka_unit_test(blocks_give_what_samples_give_that_are_read_alone),
		cmocka_unit_test(other_plans_are_read_alone),
		cmocka_unit_test(blocks_keep_the_promises_of_sources),
		cmocka_unit_test(ranks_share_the_samples_of_a_group),
		cmocka_unit_test(blocks_that_are_not_in_the_page_cache_are_the_same),
		cmocka_unit_test(a_block_takes_few_reads),
		cmocka_unit_test(what_does_not_fit_is_read_alone),
		cmocka_unit_test(bad_samples_are_those_that_are_bad_alone),
		cmocka_unit_test(a_truncated_file_costs_only_its_own_samples),
		cmocka_unit_test(a_feed_stops_and_seeks_in_a_group),
		cmocka_unit_test(closing_does_not_wait_for_a_group),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
