/* test_feed_memory.c - memory= bounds everything a feed holds, and the least that is enough is named
 *
 * The bytes that come out never depend on it. What the process holds in fact is looked at
 * by tests/rss.sh. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/size.h"
#include "base/threads.h"
#include "format/example.h"
#include "feed/feed.h"
#include "format/index.h"
#include "support/data.h"
#include "support/trace.h"

static const size_t counts[] = {40, 25, 60};
static struct data data;

static enum data_kind
some_large(size_t sample)
{
	return sample == 77 ? DATA_LARGE : DATA_GOOD;
}

DATA_FIXTURE(some_large)

static const char *const pipelines[] = {
	" | shuffle | batch(8)",
	" | example(image=bytes, label=int64, tokens=int64[], box=float[4]) | batch(8)",
	" | take(77) | example(image=bytes, label=int64) | decode | batch(8)",
	" | take(77) | example(image=bytes, label=int64) | decode | resize(40, 40) | rotate(10deg) | batch(8) | "
	"prefetch(3)",
	(" | take(20) | example(image=bytes, label=int64) | decode | resize(400, 300) | rotate(10deg) | scale(2) | "
         "cast(float64) | cast(float16) | batch(3)"),
	" | take(20) | example(x=float[300, 400](default=1)) | cast(float16) | cast(float64) | batch(3)",
	/* Ops that need more beside their result than there would be otherwise. */
	(" | take(3) | example(image=bytes) | decode | resize(1800, 9, mode=torch) | "
         "resize(2, 1700, bilinear, torch, antialias=true) | batch(2)"),
	" | take(3) | example(image=bytes) | decode | resize(31, 17000, nearest) | gaussian_blur(31) | batch(2)",
	(" | take(2) | example(image=bytes, label=int64) | decode | resize(1500, 1600, nearest) | "
         "rand_augment(ops=6) | adjust_sharpness(2) | select(image) | batch(2)"),
};

static void
run_with(const char *spec, const struct leat_options *options, struct trace *trace)
{
	struct leat_feed *feed = trace_open(spec, options);
	struct leat_stats stats;

	*trace = (struct trace){0};
	trace_take(trace, feed, 0);
	if (trace->status != LEAT_DONE)
		fail_msg("%s with %zu bytes: %s", spec, options->memory, trace->err.text);
	leat_stats(feed, &stats);
	assert_true(stats.memory_peak > 0);
	assert_true(stats.memory <= stats.memory_peak);
	if (stats.memory_peak > options->memory)
		fail_msg("%s: held %zu bytes of %zu", spec, stats.memory_peak, options->memory);
	leat_close(feed);
}

static void
the_least_memory_is_enough_for_the_same_bytes(void **state)
{
	struct leat_options options;

	(void)state;
	trace_options(&options);
	for (size_t i = 0; i < sizeof pipelines / sizeof *pipelines; i++) {
		struct trace whole;
		char spec[800];

		snprintf(spec, sizeof spec, "%s%s", data_source(&data), pipelines[i]);
		options.threads = 2;
		options.memory = (size_t)256 << 20;
		run_with(spec, &options, &whole);
		for (options.threads = 1; options.threads <= 7; options.threads += 3)
			for (int cold = 0; cold < 2; cold++) {
				struct trace trace;

				if (cold) /* making the index may need more than the feed; the next start will not */
					data_forget_indexes(&data);
				options.memory = trace_least_memory(spec, &options);
				run_with(spec, &options, &trace);
				trace_compare(&whole, &trace, spec);
				trace_free(&trace);
			}
		trace_free(&whole);
	}
}

static void
less_than_the_least_is_refused_in_words(void **state)
{
	struct leat_options options;
	struct leat_feed *feed;
	struct leat_err err;
	char spec[800], expected[200], size[32];
	size_t least;

	(void)state;
	trace_options(&options);
	options.threads = 3;
	snprintf(spec, sizeof spec, "%s%s", data_source(&data), pipelines[3]);
	least = trace_least_memory(spec, &options);
	options.memory = least - 1025; /* the minimum is named in KiB */
	assert_int_equal(leat_open(spec, &options, &feed, &err), LEAT_LIMIT);
	assert_null(feed);
	snprintf(expected, sizeof expected,
	         " is too little: with 3 threads this pipeline needs at least %s (%zu KiB); raise memory= to that or "
	         "more, or use fewer "
	         "threads or a smaller batch",
	         leat_format_size_up(size, sizeof size, least), least / 1024);
	assert_non_null(strstr(err.text, expected));
}

/* The value in "raise memory= to 12 MiB, or ...". */
static size_t
advised_memory(const char *text)
{
	static const char before[] = "raise memory= to ";
	const char *number = strstr(text, before);
	char size[64];
	uint64_t bytes;

	if (!number)
		fail_msg("no memory is advised: %s", text);
	number += sizeof before - 1;
	snprintf(size, sizeof size, "%.*s", (int)strcspn(number, ","), number);
	assert_int_equal(leat_parse_size(size, &bytes, NULL), LEAT_OK);
	return (size_t)bytes;
}

/* The default allows a quarter of the RAM, which large batches may need. */
static void
large_batches_open_with_the_default_memory(void **state)
{
	struct leat_options options;
	struct leat_feed *feed;
	struct leat_err err;
	char spec[800];
	size_t least;

	(void)state;
	trace_options(&options);
	options.threads = 2;
	snprintf(spec, sizeof spec,
	         "%s | take(3) | example(image=bytes) | decode | resize(224, 224) | cast(float32) | batch(1024)",
	         data_source(&data));
	least = trace_least_memory(spec, &options);
	assert_true(least > (size_t)1 << 30);
	options.memory = 0;
	if (leat_ram("") / 4 >= least) {
		leat_close(trace_open(spec, &options));
		return;
	}
	assert_int_equal(leat_open(spec, &options, &feed, &err), LEAT_LIMIT);
	assert_non_null(strstr(err.text, "the default of memory="));
}

/* A larger limit that nobody asked for does not make a feed take more. */
static void
the_default_prefetches_no_more_than_1_gib_would(void **state)
{
	size_t gib = (size_t)1 << 30;
	struct leat_options options;
	struct leat_feed *feed[2];
	char spec[800];

	(void)state;
	trace_options(&options);
	options.threads = 2;
	if (leat_ram("") / 4 < gib)
		skip();
	for (size_t i = 0; i < sizeof pipelines / sizeof *pipelines; i++) {
		snprintf(spec, sizeof spec, "%s%s", data_source(&data), pipelines[i]);
		for (size_t k = 0; k < 2; k++) {
			options.memory = k ? gib : 0;
			feed[k] = trace_open(spec, &options);
		}
		assert_int_equal(feed[0]->budget.buffers, feed[1]->budget.buffers);
		assert_int_equal(feed[0]->budget.depth, feed[1]->budget.depth);
		assert_int_equal(feed[0]->budget.runs, feed[1]->budget.runs);
		assert_true(feed[0]->budget.window <= feed[1]->budget.window);
		assert_true(feed[0]->budget.scratch <= feed[1]->budget.scratch);
		leat_close(feed[0]);
		leat_close(feed[1]);
	}
}

static void
ranks_on_one_machine_share_the_default_memory(void **state)
{
	static const struct {
		const char *name, *value;
		size_t ranks;
	} cases[] = {
		{"LOCAL_WORLD_SIZE", "8", 8},      {"OMPI_COMM_WORLD_LOCAL_SIZE", "3", 3},
		{"MPI_LOCALNRANKS", "2", 2},       {"SLURM_STEP_TASKS_PER_NODE", "2(x3),4", 4},
		{"SLURM_NTASKS_PER_NODE", "5", 5}, {"LOCAL_WORLD_SIZE", "many", 1},
		{"LOCAL_WORLD_SIZE", "0", 1},
	};
	struct leat_options given, resolved;
	struct leat_err err;

	(void)state;
	leat_options_init(&given);
	given.rank = 0;
	given.world = 1;
	assert_int_equal(setenv("SLURM_PROCID", "0", 1), 0);
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		assert_int_equal(setenv(cases[i].name, cases[i].value, 1), 0);
		assert_int_equal(leat_options_resolve(&resolved, &given, &err), LEAT_OK);
		assert_int_equal(resolved.memory, leat_ram("") / 4 / cases[i].ranks);
		assert_int_equal(unsetenv(cases[i].name), 0);
	}
	assert_int_equal(unsetenv("SLURM_PROCID"), 0);
	/* A shell in an allocation is not one of its tasks. */
	assert_int_equal(setenv("SLURM_NTASKS_PER_NODE", "5", 1), 0);
	assert_int_equal(leat_options_resolve(&resolved, &given, &err), LEAT_OK);
	assert_int_equal(resolved.memory, leat_ram("") / 4);
	assert_int_equal(unsetenv("SLURM_NTASKS_PER_NODE"), 0);
}

/* Only decoding tells how large an image is, and a rotation needs all of it. One that needs more than there is ends the
 * feed, whatever on_error says: what comes out must not depend on the memory. With more it is worked on, one at a time.
 */
static void
a_sample_too_large_for_the_memory_is_never_skipped(void **state)
{
	struct leat_options options;
	struct trace trace, whole;
	char spec[800];

	(void)state;
	trace_options(&options);
	options.on_error = LEAT_ON_ERROR_SKIP;
	snprintf(spec, sizeof spec, "%s | example(image=bytes) | decode | rotate(10deg) | resize(30, 30) | batch(8)",
	         data_source(&data));
	options.memory = trace_least_memory(spec, &options);
	trace_run(&trace, spec, &options);
	assert_int_equal(trace.status, LEAT_LIMIT);
	assert_int_equal(trace.batches, 9);
	options.memory = advised_memory(trace.err.text);
	trace_free(&trace);

	run_with(spec, &options, &trace);
	options.memory = (size_t)512 << 20;
	run_with(spec, &options, &whole);
	trace_compare(&whole, &trace, spec);
	trace_free(&whole);
	trace_free(&trace);
}

/* Every size between the least and plenty opens. */
/* Nothing bounds decoded images beforehand: batches get a share, and the error names a limit with which it is enough.
 */
static void
a_batch_of_unknown_size_names_the_memory_it_takes(void **state)
{
	static const char *const ops[] = {
		"example(image=bytes) | decode | batch(64)",
		"take(77) | repeat(20) | example(image=bytes) | decode | batch(1500)",
	};
	struct leat_options options;
	struct trace trace;
	char spec[800];

	(void)state;
	trace_options(&options);
	for (size_t i = 0; i < sizeof ops / sizeof *ops; i++) {
		snprintf(spec, sizeof spec, "%s | %s", data_source(&data), ops[i]);
		options.memory = trace_least_memory(spec, &options);
		trace_run(&trace, spec, &options);
		assert_int_equal(trace.status, LEAT_LIMIT);
		options.memory = advised_memory(trace.err.text);
		trace_free(&trace);
		run_with(spec, &options, &trace);
		trace_free(&trace);
	}
}

static void
every_memory_above_the_least_opens(void **state)
{
	struct leat_options options;
	char spec[800];

	(void)state;
	trace_options(&options);
	for (size_t i = 0; i < sizeof pipelines / sizeof *pipelines; i++) {
		size_t least;

		snprintf(spec, sizeof spec, "%s%s", data_source(&data), pipelines[i]);
		least = trace_least_memory(spec, &options);
		for (int k = 0; k < (TEST_SLOW ? 8 : 40); k++) {
			options.memory = least + (size_t)k * (k % 2 ? 1021 : 130003);
			leat_close(trace_open(spec, &options));
		}
	}
}

/* Of very many very small batches the bookkeeping counts. */
static void
deep_prefetch_fits_too(void **state)
{
	struct leat_options options;
	char spec[800];

	(void)state;
	trace_options(&options);
	snprintf(spec, sizeof spec, "%s | example(label=int64) | batch(1) | prefetch(60000)", data_source(&data));
	for (size_t k = 0; k < 4; k++) {
		struct leat_stats stats;
		struct leat_feed *feed;

		options.memory = ((size_t)60 << 20) + 40001 * k;
		feed = trace_open(spec, &options);
		leat_stats(feed, &stats);
		assert_true(stats.memory_peak <= options.memory);
		leat_close(feed);
	}
}

/* ---- where a batch holds more than the data seems to ---- */

/* The first is large, the others are not. */
static void
make_uneven(struct leat_example *example, size_t i)
{
	static char bytes[2 << 20];

	leat_example_add_bytes(example, "blob", bytes, i == 0 ? sizeof bytes : 3);
}

/* Each number takes one byte. */
static void
make_tokens(struct leat_example *example, size_t i)
{
	int64_t tokens[300];

	for (size_t k = 0; k < 300; k++)
		tokens[k] = (int64_t)(i + k) % 128;
	leat_example_add_int64s(example, "t", tokens, 300);
}

static void
make_label(struct leat_example *example, size_t i)
{
	int64_t label = (int64_t)i;

	leat_example_add_int64s(example, "l", &label, 1);
}

/* An index takes memory, while it is made and afterwards: what is said to be enough is. */
static void
making_an_index_counts_too(void **state)
{
	struct leat_options options;
	struct leat_feed *feed;
	struct leat_stats stats;
	struct data many;
	size_t cold, warm;
	char spec[800];

	(void)state;
	data_make_file(&many, 60000, make_label);
	trace_options(&options);
	options.threads = 1;
	snprintf(spec, sizeof spec, "%s | batch(2)", data_source(&many));
	cold = trace_least_memory(spec, &options);
	warm = trace_least_memory(spec, &options);
	assert_true(warm <= cold && warm > 60000 * sizeof(uint64_t));
	for (int made = 0; made < 2; made++) {
		if (made)
			data_forget_indexes(&many);
		options.memory = made ? cold : warm;
		feed = trace_open(spec, &options);
		leat_stats(feed, &stats);
		assert_in_range(stats.memory_peak, 60000 * sizeof(uint64_t), options.memory);
		leat_close(feed);
	}
	data_remove(&many);
}

/* The largest record may come many times, though there is only one of it. */
static void
repeated_samples_have_room(void **state)
{
	struct leat_options options;
	struct trace trace;
	struct data uneven;
	char spec[800];

	(void)state;
	data_make_file(&uneven, 51, make_uneven);
	trace_options(&options);
	options.memory = (size_t)200 << 20;
	snprintf(spec, sizeof spec, "%s | take(1) | repeat(10) | batch(10)", data_source(&uneven));
	run_with(spec, &options, &trace);
	assert_int_equal(trace.samples, 10);
	trace_free(&trace);
	snprintf(spec, sizeof spec, "%s | repeat(3) | shuffle | take(40) | batch(10)", data_source(&uneven));
	run_with(spec, &options, &trace);
	assert_int_equal(trace.samples, 40);
	trace_free(&trace);
	data_remove(&uneven);
}

/* Indexes are in memory: what is written to their files while they are used changes nothing. */
static void
an_index_that_changes_under_a_feed_does_no_harm(void **state)
{
	struct leat_options options;
	struct leat_feed *feed;
	struct trace trace = {0};
	struct data uneven;
	char spec[800], path[300];

	(void)state;
	data_make_file(&uneven, 10000, make_uneven);
	trace_options(&options);
	snprintf(spec, sizeof spec, "%s | take(64) | batch(64) | prefetch(0)", data_source(&uneven));
	leat_close(trace_open(spec, &options)); /* makes the index; the next one loads it */
	feed = trace_open(spec, &options);
	snprintf(path, sizeof path, "%s/.part-00.tfrecord.leatidx", uneven.folder);
	assert_int_equal(truncate(path, 1000), 0);
	trace_take(&trace, feed, 0);
	assert_int_equal(trace.status, LEAT_DONE);
	assert_int_equal(trace.samples, 64);
	leat_close(feed);
	trace_free(&trace);
	data_remove(&uneven);
}

/* A number of one byte becomes one of eight, and a default comes from the spec, not from the record. */
static void
values_larger_than_their_records_have_room(void **state)
{
	static const char *const ops[] = {
		"example(t=int64[])",
		"example(t=int64[]) | cast(float64)",
		"example(t=int64[]) | cast(float32)",
		"example(t=int64[]) | cast(float32) | scale(2)",
		"example(t=int64[]) | cast(int32)",
		"example(t=int64[]) | cast(float16)",
		"example(t=int64[]) | cast(uint8)",
		"example(t=int64[], none=int64[](default=[%s]))",
		"example(t=int64[], none=float[](default=[%s]))",
		"example(t=int64[], none=int64[](default=[%s])) | cast(float32, field=none)",
		"example(t=int64[], none=bytes(default='%s'))",
	};
	struct leat_options options;
	struct data tokens;
	char ones[2000] = "1";

	(void)state;
	for (int i = 1; i < 900; i++)
		strcat(ones, ",1");
	data_make_file(&tokens, 120, make_tokens);
	trace_options(&options);
	for (size_t i = 0; i < sizeof ops / sizeof *ops; i++) {
		const char *hole = strstr(ops[i], "%s");
		struct trace trace;
		char spec[3000];

		snprintf(spec, sizeof spec, "%s | %.*s%s%s | batch(60)", data_source(&tokens),
		         (int)(hole ? hole - ops[i] : (ptrdiff_t)strlen(ops[i])), ops[i], hole ? ones : "",
		         hole ? hole + 2 : "");
		options.memory = trace_least_memory(spec, &options);
		run_with(spec, &options, &trace);
		assert_int_equal(trace.samples, 120);
		trace_free(&trace);
	}
	data_remove(&tokens);
}

/* A number of rows whose bytes are just above 2^64, `*over` of them. */
static size_t
rows_that_wrap(size_t side, size_t *over)
{
	size_t row = side * 65500 * 3 * sizeof(float), rows = SIZE_MAX / row + 1;

	*over = row * rows;
	return rows;
}

static void
sizes_beyond_64_bits_are_refused(void **state)
{
	struct leat_options options;
	size_t side = 65500, over, rows;
	char batch[200];
	const char *specs[] = {
		batch,
		"example(image=bytes) | decode | resize(65500, 65500) | batch(1000000000)",
		"example(x=float[16000, 16000](default=1)) | batch(1000000000)",
		"example(image=bytes) | decode | batch(1000000000)",
		"batch(1000000000)",
	};

	(void)state;
	while ((rows = rows_that_wrap(side, &over)), over > (size_t)1 << 28)
		side--;
	snprintf(batch, sizeof batch, "example(image=bytes) | decode | resize(%zu, 65500) | batch(%zu)", side, rows);
	trace_options(&options);
	for (size_t i = 0; i < sizeof specs / sizeof *specs; i++) {
		struct leat_feed *feed;
		struct leat_err err;
		char spec[800];

		options.memory = i == 0 ? (size_t)1 << 40 : (size_t)1 << 30;
		snprintf(spec, sizeof spec, "%s | %s", data_source(&data), specs[i]);
		if (leat_open(spec, &options, &feed, &err) == LEAT_OK)
			fail_msg("%s opens", spec);
		assert_int_equal(err.status, LEAT_LIMIT);
		assert_non_null(strstr(err.text, "needs at least"));
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_least_memory_is_enough_for_the_same_bytes),
		cmocka_unit_test(less_than_the_least_is_refused_in_words),
		cmocka_unit_test(a_sample_too_large_for_the_memory_is_never_skipped),
		cmocka_unit_test(a_batch_of_unknown_size_names_the_memory_it_takes),
		cmocka_unit_test(large_batches_open_with_the_default_memory),
		cmocka_unit_test(the_default_prefetches_no_more_than_1_gib_would),
		cmocka_unit_test(ranks_on_one_machine_share_the_default_memory),
		cmocka_unit_test(every_memory_above_the_least_opens),
		cmocka_unit_test(deep_prefetch_fits_too),
		cmocka_unit_test(making_an_index_counts_too),
		cmocka_unit_test(repeated_samples_have_room),
		cmocka_unit_test(an_index_that_changes_under_a_feed_does_no_harm),
		cmocka_unit_test(values_larger_than_their_records_have_room),
		cmocka_unit_test(sizes_beyond_64_bits_are_refused),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
