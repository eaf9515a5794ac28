/* test_store_stretch.c - samples that follow one another on a server share long requests, and gaps are read over if
 * that is cheaper than another request */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "feed/feed.h"
#include "feed/stretch.h"
#include "format/example.h"
#include "support/data.h"
#include "support/store_mem.h"
#include "support/temp.h"
#include "support/trace.h"

/* Samples of 8 KiB: eight of them are as long as the gap that costs a request. */
enum { TOKENS = 4096, LENGTH = TOKENS * 2, SAMPLES = 720, FILES = 3, SAMPLES_ALL = SAMPLES * FILES };

extern const struct leat_store_kind leat_store_mem;

static struct temp temp;

static int
setup(void **state)
{
	uint16_t *tokens = malloc((size_t)SAMPLES * LENGTH + 2);
	char name[64];

	(void)state;
	temp_make(&temp);
	store_mem_reset();
	for (int file = 0; file < FILES; file++) {
		for (size_t i = 0; i <= (size_t)SAMPLES * TOKENS; i++)
			tokens[i] = (uint16_t)(i * 7919 + i / TOKENS + (size_t)file);
		snprintf(name, sizeof(name), "%d.bin", file);
		temp_write(&temp, name, tokens, (size_t)SAMPLES * LENGTH + 2);
	}
	store_mem_mirror(temp.folder);
	free(tokens);
	return 0;
}

static int
teardown(void **state)
{
	(void)state;
	store_mem_reset();
	temp_remove(&temp);
	return 0;
}

/* What an epoch reads, and what it gives, which must be the same as from local files. */
static struct store_mem_counts
read_epoch(const char *arguments, const char *rest, struct leat_options *options)
{
	struct store_mem_counts before, after;
	struct trace local, remote;
	char here[400], there[400];

	snprintf(here, sizeof(here), "tokens('%s/*.bin'%s) | %s", temp.folder, arguments, rest);
	store_mem_spec(temp.folder, here, there, sizeof(there));
	before = store_mem_counts();
	trace_run(&remote, there, options);
	after = store_mem_counts();
	assert_int_equal(remote.status, LEAT_DONE);
	trace_run(&local, here, options);
	trace_compare(&local, &remote, there);
	trace_free(&local);
	trace_free(&remote);
	after.submitted -= before.submitted;
	after.bytes -= before.bytes;
	return after;
}

static void
samples_in_order_share_requests_of_more_than_1_mib(void **state)
{
	static const char *const batches[] = {"batch(1)", "batch(7)", "batch(64)", "batch(1000)"};
	struct leat_options options;

	(void)state;
	trace_options(&options);
	options.epochs = 1;
	for (size_t i = 0; i < 4; i++) {
		struct store_mem_counts counts;

		options.threads = 1 + (unsigned)i % 3;
		store_mem_set(&(struct store_mem_settings){.shuffle = i});
		counts = read_epoch(", length=4096", batches[i], &options);
		assert_int_equal(counts.bytes, (uint64_t)SAMPLES_ALL * LENGTH);
		assert_in_range(counts.submitted, 1, counts.bytes / (1 << 20) + FILES);
	}
}

/* Counts the samples that come before one that precedes them. */
static enum leat_status
note_order(void *arg, const struct leat_map_call *call, struct leat_err *err)
{
	uint64_t *order = arg; /* the next position, and how often it was another */
	static const struct leat_field field = {.name = "at", .dtype = LEAT_I64, .ndim = 0};
	int64_t *at = leat_map_output(call, 0, field.shape, err);

	if (!at)
		return err->status;
	*at = (int64_t)call->position;
	order[1] += call->position != order[0];
	order[0] = call->position + 1;
	return LEAT_OK;
}

/* Many runs wait for the same stretch. What the consumer needs first must not wait for all others. */
static void
what_waits_for_a_stretch_is_processed_in_order(void **state)
{
	static const struct leat_field at = {.name = "at", .dtype = LEAT_I64, .ndim = 0};
	uint64_t order[2] = {0};
	struct leat_function function = {
		.name = "note", .run = note_order, .arg = order, .gives = &at, .give_count = 1, .drops = true};
	char here[400], there[400];
	struct leat_options options;
	struct trace trace;

	(void)state;
	trace_options(&options);
	options.epochs = 1;
	options.threads = 1;
	options.functions = &function;
	options.function_count = 1;
	store_mem_set(&(struct store_mem_settings){.shuffle = 0});
	snprintf(here, sizeof(here), "tokens('%s/0.bin', length=4096) | map(note) | batch(4)", temp.folder);
	store_mem_spec(temp.folder, here, there, sizeof(there));
	trace_run(&trace, there, &options);
	assert_int_equal(trace.status, LEAT_DONE);
	trace_free(&trace);
	assert_in_range(order[1], 0, SAMPLES / 100); /* two stretches may arrive in any order */
}

static void
samples_that_overlap_are_read_once(void **state)
{
	struct leat_options options;
	struct store_mem_counts counts;

	(void)state;
	trace_options(&options);
	options.epochs = 1;
	options.threads = 2;
	counts = read_epoch(", length=4096, shift=1", "batch(7)", &options);
	assert_in_range(counts.submitted, 1, counts.bytes / (1 << 20) + FILES);
	assert_in_range(counts.bytes, (uint64_t)SAMPLES_ALL * LENGTH,
	                (uint64_t)SAMPLES_ALL * LENGTH + 2 * counts.submitted);
}

/* Gaps of 7, 8 and 9 samples: 56, 64 and 72 KiB. A request costs 64 KiB. */
static void
gaps_are_read_over_if_they_cost_less_than_a_request(void **state)
{
	struct leat_options options;
	struct store_mem_counts counts;

	(void)state;
	assert_int_equal(leat_store_mem.request_cost, 8 * LENGTH);
	trace_options(&options);
	options.epochs = 1;
	options.threads = 2;
	counts = read_epoch(", length=4096", "shard(8, 3) | batch(7)", &options);
	assert_in_range(counts.submitted, 1, (uint64_t)SAMPLES_ALL * LENGTH / (1 << 20) + FILES);
	counts = read_epoch(", length=4096", "shard(9, 3) | batch(7)", &options);
	assert_in_range(counts.submitted, 1, (uint64_t)SAMPLES_ALL * LENGTH / (1 << 20) + FILES);
	counts = read_epoch(", length=4096", "shard(10, 3) | batch(7)", &options);
	assert_int_equal(counts.submitted, SAMPLES_ALL / 10);
	assert_int_equal(counts.bytes, (uint64_t)SAMPLES_ALL / 10 * LENGTH);
}

/* A rank has half of the rows of each batch: what the other has is a gap. */
static void
the_rows_of_other_ranks_are_gaps(void **state)
{
	struct leat_options options;
	struct store_mem_counts counts;

	(void)state;
	trace_options(&options);
	options.epochs = 1;
	options.world = 2;
	options.rank = 1;
	options.threads = 1;
	counts = read_epoch(", length=4096", "batch(16)", &options);
	assert_in_range(counts.submitted, 1, (uint64_t)SAMPLES_ALL * LENGTH / (1 << 20) + FILES);
	counts = read_epoch(", length=4096", "batch(18)", &options);
	assert_in_range(counts.submitted, SAMPLES_ALL / 18, SAMPLES_ALL / 18 + FILES);
}

/* Each block is read once, with one or two requests: two if it is in two files. Blocks next to each other that are
 * shuffled together may share one. */
static void
blocks_that_are_shuffled_are_read_once(void **state)
{
	static const char *const rests[] = {"shuffle(block=64, window=4) | batch(7)",
	                                    "shuffle(block=30, window=8) | batch(64)",
	                                    "shard(2, 1) | shuffle(block=100, window=2) | batch(1)"};
	static const uint64_t blocks[] = {SAMPLES_ALL / 64 + 1, SAMPLES_ALL / 30, SAMPLES_ALL / 200 + 1};
	struct leat_options options;

	(void)state;
	trace_options(&options);
	options.epochs = 1;
	options.memory = (size_t)256 << 20;
	for (size_t i = 0; i < 9; i++) {
		struct store_mem_counts counts;

		options.threads = 1 + (unsigned)i % 4;
		options.seed = i;
		store_mem_set(&(struct store_mem_settings){.shuffle = i});
		counts = read_epoch(i < 3 ? ", length=4096" : ", length=4096, shift=1", rests[i % 3], &options);
		assert_in_range(counts.submitted, 1, blocks[i % 3] + FILES);
		assert_in_range(counts.bytes, 1, (uint64_t)SAMPLES_ALL * LENGTH + 2 * counts.submitted);
	}
}

static void
shuffled_samples_are_read_alone(void **state)
{
	struct leat_options options;
	struct store_mem_counts counts;

	(void)state;
	trace_options(&options);
	options.epochs = 1;
	counts = read_epoch(", length=4096", "shuffle | take(500) | batch(7)", &options);
	assert_in_range(counts.submitted, 490, 500);
	assert_int_equal(counts.bytes, (uint64_t)500 * LENGTH);
}

/* Samples of more than half a stretch, and whatever else a plan in order can do. */
static void
any_order_and_length_gives_the_bytes_of_local_files(void **state)
{
	static const char *const rests[] = {"batch(3)",
	                                    "repeat(3) | batch(50)",
	                                    "take(5) | repeat(4) | batch(7, tail=wrap)",
	                                    "skip(100) | split(train, folds=7) | batch(5)",
	                                    "cache | batch(9)",
	                                    "shuffle(block=9, window=5) | batch(11, tail=wrap)",
	                                    "shuffle(block=90, window=3) | repeat(2) | batch(5)"};
	static const char *const arguments[] = {", length=4096", ", length=600000", ", length=1000, shift=17"};
	struct leat_options options;

	(void)state;
	trace_options(&options);
	options.epochs = 2;
	for (size_t i = 0; i < 7; i++)
		for (size_t k = 0; k < 3; k++) {
			options.threads = 1 + (unsigned)(i + k) % 4;
			options.memory = (size_t)(i % 2 ? 400 : 64) << 20;
			store_mem_set(&(struct store_mem_settings){.shuffle = i + 1});
			read_epoch(arguments[k], rests[i], &options);
		}
}

static void
stretches_shrink_with_the_memory_and_end(void **state)
{
	struct leat_options options;
	char here[400], spec[400];
	size_t least, last = 0;
	bool none = false;

	(void)state;
	trace_options(&options);
	options.threads = 2;
	options.epochs = 1;
	snprintf(here, sizeof(here), "tokens('%s/0.bin', length=4096) | batch(16)", temp.folder);
	store_mem_spec(temp.folder, here, spec, sizeof(spec));
	least = trace_least_memory(spec, &options);
	for (size_t more = 0; more <= (size_t)256 << 20; more = more ? 2 * more : 1 << 20) {
		struct trace trace = {0};
		struct leat_stats stats;
		struct leat_feed *feed;

		options.memory = least + more;
		feed = trace_open(spec, &options);
		assert_true(feed->budget.stretch_bytes >= last || feed->budget.stretches == 0);
		last = feed->budget.stretches ? feed->budget.stretch_bytes : 0;
		none |= feed->budget.stretches == 0;
		trace_take(&trace, feed, 0);
		assert_int_equal(trace.samples, SAMPLES);
		leat_stats(feed, &stats);
		assert_true(stats.memory_peak <= options.memory);
		leat_close(feed);
		trace_free(&trace);
	}
	assert_true(none);
	assert_int_equal(last, LEAT_STRETCH_BYTES);
}

/* The first of an epoch waits for one request, so closing must not wait for it. */
static void
a_feed_closes_and_seeks_while_stretches_are_read(void **state)
{
	struct leat_options options;
	char here[400], spec[400];
	struct leat_feed *feed;

	(void)state;
	trace_options(&options);
	options.threads = 2;
	snprintf(here, sizeof(here), "tokens('%s/*.bin', length=4096) | batch(16)", temp.folder);
	store_mem_spec(temp.folder, here, spec, sizeof(spec));
	store_mem_set(&(struct store_mem_settings){.stuck_from = 3});
	feed = trace_open(spec, &options);
	while (store_mem_counts().in_flight < 3)
		sched_yield();
	leat_close(feed);
	assert_int_equal(store_mem_counts().in_flight, 0);
}

/* What looks short when memory is divided, every tenth sample, is not like the others, which are 20 KB and now and then
 * longer than a stretch takes. */
static void
make_uneven(struct leat_example *example, size_t i)
{
	static unsigned char bytes[3 << 20];

	bytes[0] = (unsigned char)i;
	leat_example_add_bytes(example, "image", bytes, i % 10 == 0 ? 100 : i % 700 == 345 ? sizeof(bytes) : 20000);
}

static void
blocks_that_do_not_fit_in_memory_are_read_again(void **state)
{
	static const char *const rests[] = {" | shuffle(block=640, window=4) | example(image=bytes) | batch(5)",
	                                    " | example(image=bytes) | batch(50)",
	                                    " | shuffle(block=64, window=4) | batch(2)"};
	struct leat_options options;
	struct data data;
	char spec[400], local[400];

	(void)state;
	data_make_file(&data, 2560, make_uneven);
	store_mem_mirror(data.folder);
	trace_options(&options);
	options.epochs = 1;
	for (int i = 0; i < 6; i++) {
		struct trace here, there = {0};
		struct leat_stats stats;
		struct leat_feed *feed;

		options.threads = 1 + (unsigned)i / 3;
		options.memory = (size_t)256 << 20;
		snprintf(local, sizeof(local), "%s%s", data_source(&data), rests[i % 3]);
		trace_run(&here, local, &options);
		store_mem_spec(data.folder, local, spec, sizeof(spec));
		options.memory = trace_least_memory(spec, &options) + ((size_t)128 << 20);
		feed = trace_open(spec, &options);
		assert_true(feed->budget.stretches > 0);
		assert_in_range(feed->budget.window, 1, 2560 * 18000 / 2); /* less than half of it */
		trace_take(&there, feed, 0);
		leat_stats(feed, &stats);
		assert_true(stats.memory_peak <= options.memory);
		leat_close(feed);
		trace_compare(&here, &there, spec);
		trace_free(&here);
		trace_free(&there);
	}
	data_remove(&data);
}

/* ---- failures ---- */

/* Direct samples and others: only those are bad that cannot be read, although a request has many. */
static void
a_failing_request_costs_only_the_samples_it_fails_for(void **state)
{
	static const size_t counts[] = {300, 100}, failing[] = {0, 17, 299, 300};
	static const char *const rests[] = {" | batch(16)", " | example(label=int64) | batch(16)",
	                                    " | shuffle(block=20, window=4) | example(label=int64) | batch(16)"};
	struct leat_options options;
	struct data data;
	char uri[400], spec[400], local[400];

	(void)state;
	data_make(&data, 2, counts, NULL);
	store_mem_mirror(data.folder);
	trace_options(&options);
	options.epochs = 1;
	for (int rest = 0; rest < 3; rest++) {
		struct trace trace = {0};
		struct leat_feed *feed;

		snprintf(local, sizeof(local), "%s%s", data_source(&data), rests[rest]);
		store_mem_spec(data.folder, local, spec, sizeof(spec));
		options.on_error = LEAT_ON_ERROR_FAIL;
		leat_close(trace_open(spec, &options)); /* indexes */
		for (size_t i = 0; i < 4; i++) {
			const struct data_place *place = &data.place[failing[i]];

			snprintf(uri, sizeof(uri), "mem://%s", data_path(&data, place->file));
			store_mem_fail(uri, place->offset + 20, place->offset + 21, STORE_MEM_ALWAYS, LEAT_DATA);
		}
		options.on_error = LEAT_ON_ERROR_SKIP;
		options.threads = 3;
		feed = trace_open(spec, &options);
		assert_true(feed->budget.stretches > 0);
		trace_take(&trace, feed, 0);
		assert_int_equal(trace.samples, 400 - 4);
		assert_int_equal(leat_bad_count(feed), 4);
		for (size_t i = 0; i < 4 && rest < 2; i++)
			assert_int_equal(leat_bad_at(feed, i)->sample, failing[i]);
		leat_close(feed);
		trace_free(&trace);
	}
	data_remove(&data);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(samples_in_order_share_requests_of_more_than_1_mib, setup, teardown),
		cmocka_unit_test_setup_teardown(what_waits_for_a_stretch_is_processed_in_order, setup, teardown),
		cmocka_unit_test_setup_teardown(samples_that_overlap_are_read_once, setup, teardown),
		cmocka_unit_test_setup_teardown(gaps_are_read_over_if_they_cost_less_than_a_request, setup, teardown),
		cmocka_unit_test_setup_teardown(the_rows_of_other_ranks_are_gaps, setup, teardown),
		cmocka_unit_test_setup_teardown(blocks_that_are_shuffled_are_read_once, setup, teardown),
		cmocka_unit_test_setup_teardown(shuffled_samples_are_read_alone, setup, teardown),
		cmocka_unit_test_setup_teardown(any_order_and_length_gives_the_bytes_of_local_files, setup, teardown),
		cmocka_unit_test_setup_teardown(stretches_shrink_with_the_memory_and_end, setup, teardown),
		cmocka_unit_test_setup_teardown(a_feed_closes_and_seeks_while_stretches_are_read, setup, teardown),
		cmocka_unit_test_setup_teardown(blocks_that_do_not_fit_in_memory_are_read_again, setup, teardown),
		cmocka_unit_test_setup_teardown(a_failing_request_costs_only_the_samples_it_fails_for, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
