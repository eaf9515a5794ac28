/* test_feed_tails.c - the last batch of an epoch: each way to complete it, for any number of ranks */
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

enum { MAX_WORLD = 5, PER_RANK = 4 };

static const size_t counts[] = {20, 7, 0, 26};
static struct data data;

DATA_FIXTURE(NULL)

/* A pipeline with images of many sizes, ragged fields, random ops and an order of its own in each epoch. */
static char *
spec_of(char spec[800], int take, const char *rest)
{
	snprintf(spec, 800,
	         "%s | shuffle | take(%d) | example(image=bytes, label=int64, tokens=int64[]) | decode | random_flip | "
	         "%s",
	         data_source(&data), take, rest);
	return spec;
}

/* All ranks, from a checkpoint on if one is given, joined. `batches`: of each rank, if not NULL. */
static void
run_world(struct trace *joined, const char *spec, struct leat_options options, int world, const char *json,
          size_t batches[MAX_WORLD])
{
	*joined = (struct trace){0};
	options.world = world;
	for (options.rank = 0; options.rank < world; options.rank++) {
		struct leat_feed *feed = trace_open(spec, &options);
		struct trace trace = {0};
		struct leat_stats stats;

		if (json)
			assert_int_equal(leat_restore(feed, json, NULL), LEAT_OK);
		trace_take(&trace, feed, 0);
		assert_int_equal(trace.status, LEAT_DONE);
		leat_stats(feed, &stats);
		assert_int_equal(stats.samples, trace.samples);
		if (!json)
			assert_int_equal(trace.batches, leat_batches(feed) * options.epochs);
		if (batches)
			batches[options.rank] = trace.batches;
		leat_close(feed);
		trace_join(joined, &trace);
		trace_free(&trace);
	}
}

/* Every repeat has the bytes of the sample it repeats. */
static void
check_repeats(const struct trace *joined, const struct trace *one, const char *what)
{
	for (size_t i = 0; i < joined->repeats; i++) {
		const struct trace_sample *repeat = &joined->repeat[i];
		size_t k = 0;

		while (k < one->samples &&
		       (one->sample[k].epoch != repeat->epoch || one->sample[k].position != repeat->position))
			k++;
		if (k == one->samples || memcmp(one->sample[k].hash, repeat->hash, sizeof repeat->hash) != 0)
			fail_msg("%s: the repeat of position %llu has other bytes", what,
			         (unsigned long long)repeat->position);
	}
}

/* What `tail` does to `size` samples in batches of PER_RANK for each of `world` ranks, on all ranks together. */
static void
expected_counts(const char *tail, int size, int world, size_t *samples, size_t *fill)
{
	int global = PER_RANK * world, rest = size % global;
	bool fills = strcmp(tail, "wrap") == 0 || strcmp(tail, "pad") == 0;

	*samples = (size_t)(strcmp(tail, "drop") == 0 ? size - rest : size);
	*fill = fills && rest > 0 ? (size_t)(global - rest) : 0;
}

static void
check_tail(const char *tail, int size, int world)
{
	struct leat_options options;
	struct trace one, many;
	size_t batches[MAX_WORLD], samples, fill, rows = 0;
	char spec[800], batch[100], what[200];

	trace_options(&options);
	options.epochs = 2;
	options.threads = 1 + (unsigned)world % 3;
	snprintf(what, sizeof what, "tail=%s, %d samples, %d ranks", tail, size, world);
	run_world(&one, spec_of(spec, size, "batch(1)"), options, 1, NULL, NULL);
	snprintf(batch, sizeof batch, "batch(per_rank=%d, tail=%s)", PER_RANK, tail);
	run_world(&many, spec_of(spec, size, batch), options, world, NULL, batches);
	expected_counts(tail, size, world, &samples, &fill);
	if (samples == (size_t)size)
		trace_compare_samples(&one, &many, what);
	assert_int_equal(many.samples, 2 * samples);
	assert_int_equal(many.repeats, strcmp(tail, "wrap") == 0 ? 2 * fill : 0);
	check_repeats(&many, &one, what);
	for (int r = 0; r < world && strcmp(tail, "exact") != 0; r++)
		assert_int_equal(batches[r], 2 * (samples + fill) / (size_t)(PER_RANK * world));
	for (int r = 0; r < world && strcmp(tail, "exact") == 0; r++) {
		rows = (size_t)(size % (PER_RANK * world));
		assert_int_equal(batches[r],
		                 2 * ((size_t)(size / (PER_RANK * world)) + (rows > 0 && (size_t)r < rows)));
	}
	trace_free(&one);
	trace_free(&many);
}

static void
every_tail_delivers_the_samples_it_promises(void **state)
{
	static const char *const tails[] = {"wrap", "exact", "pad", "drop"};

	(void)state;
	for (size_t t = 0; t < 4; t++)
		for (int world = 1; world <= MAX_WORLD; world++)
			for (int around = 1; around <= 2; around++)
				for (int d = -2; d <= 2; d++)
					if (!TEST_SLOW || (around + d + world) % 2 == 0)
						check_tail(tails[t], around * PER_RANK * world + d, world);
}

/* An epoch of three samples goes around in a batch several times. */
static void
a_small_epoch_wraps_more_than_once(void **state)
{
	(void)state;
	for (int world = 1; world <= MAX_WORLD; world++)
		for (int size = 1; size <= 3; size++) {
			check_tail("wrap", size, world);
			check_tail("exact", size, world);
		}
}

/* ---- which row is where ---- */

/* What a feed says of a batch before it delivers it. */
static void
expect_samples(const struct leat_feed *feed, const struct leat_batch *batch, uint64_t number)
{
	uint64_t first, count = leat_batch_samples(feed, number, &first), valid = 0;

	for (int64_t i = 0; i < leat_batch_count(batch); i++)
		if (leat_batch_valid(batch)[i])
			assert_int_equal(leat_batch_position(batch, i), first + valid++);
	assert_int_equal(valid, count);
}

/* Positions of the last batch of a rank, with '-' before repeats, and '.' for padding. */
static void
last_batch(const char *batch, int size, int rank, int world, char *out)
{
	struct leat_options options;
	struct leat_feed *feed;
	struct leat_batch *last = NULL, *next;
	uint64_t number = 0, first;
	char spec[800];

	trace_options(&options);
	options.rank = rank;
	options.world = world;
	feed = trace_open(spec_of(spec, size, batch), &options);
	while (leat_next(feed, &next, NULL) == LEAT_OK) {
		expect_samples(feed, next, number++);
		leat_release(last);
		last = next;
	}
	assert_int_equal(leat_batch_samples(feed, number, &first), 0);
	*out = '\0';
	for (int64_t i = 0; last && i < leat_batch_count(last); i++) {
		uint64_t position = leat_batch_position(last, i);

		if (position == UINT64_MAX)
			out += sprintf(out, "%s.", i ? " " : "");
		else
			out += sprintf(out, "%s%s%llu", i ? " " : "", leat_batch_valid(last)[i] ? "" : "-",
			               (unsigned long long)position);
	}
	leat_release(last);
	leat_close(feed);
}

static void
expect_last(const char *batch, int size, int world, const char *const ranks[])
{
	char found[400];

	for (int rank = 0; rank < world; rank++) {
		last_batch(batch, size, rank, world, found);
		if (strcmp(found, ranks[rank]) != 0)
			fail_msg("%s, rank %d of %d: %s, expected %s", batch, rank, world, found, ranks[rank]);
	}
}

static void
the_rows_of_the_last_batch_are_where_the_plan_says(void **state)
{
	static const char *const wrapped[] = {"24 25 26", "27 -0 -1", "-2 -3 -4", "-5 -6 -7"};
	static const char *const around[] = {"0 1 2", "3 4 -0", "-1 -2 -3", "-4 -0 -1"};
	static const char *const exact[] = {"12 13", "14 15", "16", "17"};
	static const char *const few[] = {"12", "13", "6 7 8", "9 10 11"};
	static const char *const padded[] = {"12 13 14", "15 16 17", ". . .", ". . ."};
	static const char *const alone[] = {"8 9 10 11 12 13 -0 -1"};

	(void)state;
	expect_last("batch(12)", 28, 4, wrapped);
	expect_last("batch(per_rank=3, tail=wrap)", 5, 4, around);
	expect_last("batch(12, tail=exact)", 18, 4, exact);
	expect_last("batch(12, tail=exact)", 14, 4, few);
	expect_last("batch(12, tail=pad)", 18, 4, padded);
	expect_last("skip(4) | batch(8, tail=wrap)", 18, 1, alone);
}

/* ---- ops on pairs ---- */

static char *
pairs_of(char spec[800], int take, const char *batch)
{
	snprintf(spec, 800,
	         "%s | shuffle | take(%d) | example(box=float[4], tokens=int64[]) | %s | mixup(image=box, label=box)",
	         data_source(&data), take, batch);
	return spec;
}

/* With mixup, a repeat is mixed as the sample it repeats was, and ranks do not matter. */
static void
pairs_are_never_split(void **state)
{
	struct leat_options options;
	struct trace one, many;
	char spec[800], batch[100];

	(void)state;
	trace_options(&options);
	options.epochs = 2;
	for (int world = 1; world <= MAX_WORLD; world++)
		for (int size = 1; size <= 2 * PER_RANK * world + 3; size += 1 + TEST_SLOW) {
			static const char *const tails[] = {"wrap", "exact", "pad"};

			for (size_t t = 0; t < 3; t++) {
				snprintf(batch, sizeof batch, "batch(%d)", PER_RANK * world);
				run_world(&one, pairs_of(spec, size, batch), options, 1, NULL, NULL);
				snprintf(batch, sizeof batch, "batch(per_rank=%d, tail=%s)", PER_RANK, tails[t]);
				run_world(&many, pairs_of(spec, size, batch), options, world, NULL, NULL);
				trace_compare_samples(&one, &many, spec);
				check_repeats(&many, &one, spec);
				trace_free(&one);
				trace_free(&many);
			}
		}
}

static void
pairs_share_the_last_batch_by_pairs(void **state)
{
	(void)state;
	expect_last("scale(1/255) | resize(4, 4) | one_hot(53) | batch(16, tail=exact) | mixup", 21, 4,
	            (const char *const[]){"16 17", "18 19", "20", "12 13 14 15"});
	expect_last("scale(1/255) | resize(4, 4) | one_hot(53) | batch(16) | mixup", 21, 4,
	            (const char *const[]){"16 17 18 19", "20 -20 -0 -1", "-2 -3 -4 -5", "-6 -7 -8 -9"});
}

/* ---- checkpoints ---- */

static char *
save_after(const char *spec, struct leat_options options, int world, size_t batches, struct trace *joined)
{
	char *json = NULL;

	*joined = (struct trace){0};
	options.world = world;
	for (options.rank = 0; options.rank < world; options.rank++) {
		struct leat_feed *feed = trace_open(spec, &options);
		struct trace trace = {0};
		char *other;

		if (batches > 0)
			trace_take(&trace, feed, batches);
		assert_int_equal(leat_save(feed, &other, NULL), LEAT_OK);
		leat_close(feed);
		if (options.rank == 0)
			json = other;
		else
			free(other);
		trace_join(joined, &trace);
		trace_free(&trace);
	}
	return json;
}

/* Stopped after any number of batches, and resumed by another number of ranks, an epoch is still the same. */
static void
ranks_change_at_every_batch(void **state)
{
	static const char *const tails[] = {"auto", "wrap", "exact", "pad"};
	static const int worlds[] = {1, 2, 4};
	enum { SIZE = 45, BATCHES = 4, GLOBAL = 12 };
	struct leat_options options;
	struct trace whole, begin, rest;
	char spec[800], batch[100];

	(void)state;
	trace_options(&options);
	options.seed = 3;
	for (size_t t = 0; t < 4; t++) {
		snprintf(batch, sizeof batch, "batch(%d, tail=%s)", GLOBAL, tails[t]);
		spec_of(spec, SIZE, batch);
		run_world(&whole, spec, options, 1, NULL, NULL);
		assert_int_equal(whole.samples, SIZE);
		for (size_t i = 0; i < 9 * (BATCHES + 1); i++) {
			size_t batches = i / 9;
			char *json = save_after(spec, options, worlds[i % 3], batches, &begin);

			run_world(&rest, spec, options, worlds[i / 3 % 3], json, NULL);
			trace_join(&begin, &rest);
			trace_compare_samples(&whole, &begin, spec);
			check_repeats(&begin, &whole, spec);
			trace_free(&begin);
			trace_free(&rest);
			free(json);
		}
		trace_free(&whole);
	}
}

/* Resuming in the middle of a batch leaves an incomplete one at the end, even if the epoch has only whole ones. */
static void
a_checkpoint_between_batches_can_bring_fill(void **state)
{
	struct leat_options options;
	struct leat_feed *feed;
	struct leat_batch *batch;
	char spec[800], *json, *at;

	(void)state;
	trace_options(&options);
	feed = trace_open(spec_of(spec, 16, "batch(8, tail=wrap)"), &options);
	assert_false(leat_has_fill(feed));
	assert_int_equal(leat_next(feed, &batch, NULL), LEAT_OK);
	leat_release(batch);
	assert_int_equal(leat_save(feed, &json, NULL), LEAT_OK);
	at = strstr(json, "\"position\": 8");
	assert_non_null(at);
	memcpy(at, "\"position\": 9", 13);
	assert_int_equal(leat_restore(feed, json, NULL), LEAT_OK);
	assert_true(leat_has_fill(feed));
	assert_int_equal(leat_next(feed, &batch, NULL), LEAT_OK);
	assert_int_equal(leat_batch_count(batch), 8);
	assert_int_equal(leat_batch_position(batch, 6), 15);
	assert_int_equal(leat_batch_position(batch, 7), 0);
	assert_int_equal(leat_batch_valid(batch)[7], 0);
	leat_release(batch);
	leat_close(feed);
	free(json);
}

/* After the last batch, the position in a checkpoint is the size of the epoch. */
static void
the_last_batch_ends_the_epoch(void **state)
{
	static const char *const tails[] = {"wrap", "exact", "pad"};
	struct leat_options options;
	char spec[800], batch[100];

	(void)state;
	trace_options(&options);
	options.epochs = 2;
	for (size_t t = 0; t < 3; t++) {
		struct trace trace;
		char *json;

		snprintf(batch, sizeof batch, "batch(8, tail=%s)", tails[t]);
		json = save_after(spec_of(spec, 19, batch), options, 2, 3, &trace);
		assert_non_null(strstr(json, "\"epoch\": 0, \"position\": 19"));
		assert_int_equal(trace.samples, 19);
		trace_free(&trace);
		free(json);
	}
}

/* ---- fill ---- */

static bool
fills(const char *batch, int size, int world, enum leat_on_error on_error)
{
	struct leat_options options;
	struct leat_feed *feed;
	char spec[800];
	bool has;

	trace_options(&options);
	options.world = world;
	options.on_error = on_error;
	feed = trace_open(spec_of(spec, size, batch), &options);
	has = leat_has_fill(feed);
	leat_close(feed);
	return has;
}

static void
a_feed_tells_whether_rows_can_be_fill(void **state)
{
	(void)state;
	assert_true(fills("batch(8)", 17, 2, LEAT_ON_ERROR_FAIL));
	assert_false(fills("batch(8)", 16, 2, LEAT_ON_ERROR_FAIL));
	assert_false(fills("batch(8)", 17, 1, LEAT_ON_ERROR_FAIL));
	assert_true(fills("batch(8, tail=pad)", 17, 1, LEAT_ON_ERROR_FAIL));
	assert_true(fills("batch(8, tail=wrap)", 17, 1, LEAT_ON_ERROR_REPLACE));
	assert_false(fills("batch(8, tail=exact)", 17, 2, LEAT_ON_ERROR_FAIL));
	assert_false(fills("batch(8, tail=drop)", 17, 2, LEAT_ON_ERROR_REPLACE));
	assert_true(fills("batch(8)", 16, 2, LEAT_ON_ERROR_SKIP));
	assert_true(fills("batch(8, tail=exact)", 16, 2, LEAT_ON_ERROR_SKIP));
	assert_true(fills("batch(8, tail=wrap)", 16, 1, LEAT_ON_ERROR_SKIP));
	assert_false(fills("batch(8)", 17, 1, LEAT_ON_ERROR_SKIP));
}

static void
expect_tail(const char *batch, int world, const char *name)
{
	struct leat_options options;
	struct leat_feed *feed;
	char spec[800];

	trace_options(&options);
	options.world = world;
	feed = trace_open(spec_of(spec, 17, batch), &options);
	assert_string_equal(leat_tail_name(feed), name);
	leat_close(feed);
}

static void
a_feed_names_its_tail(void **state)
{
	(void)state;
	expect_tail("batch(8)", 1, "short");
	expect_tail("batch(8)", 2, "wrap");
	expect_tail("batch(8, tail=exact)", 2, "exact");
	expect_tail("batch(8, tail=drop)", 2, "drop");
	expect_tail("batch(8, tail=pad)", 1, "pad");
}

/* ---- bad samples ---- */

/* A bad sample counts once, however often it is repeated, and a repeat of it is what it was. */
static void
bad_samples_count_once(void **state)
{
	struct leat_options options;
	char spec[800];

	(void)state;
	trace_options(&options);
	for (int on_error = LEAT_ON_ERROR_SKIP; on_error <= LEAT_ON_ERROR_REPLACE; on_error++) {
		struct trace one, many;
		struct data damaged;
		uint64_t bad = 0;

		data_make(&damaged, 1, (const size_t[]){9}, NULL);
		data_flip_payload(&damaged, 1);
		options.on_error = (enum leat_on_error)on_error;
		snprintf(spec, sizeof spec, "%s | example(image=bytes) | decode | random_flip | batch(12)",
		         data_source(&damaged));
		run_world(&one, spec, options, 1, NULL, NULL);
		run_world(&many, spec, options, 4, NULL, NULL);
		trace_compare_samples(&one, &many, spec);
		check_repeats(&many, &one, spec);
		assert_int_equal(many.repeats, on_error == LEAT_ON_ERROR_SKIP ? 2 : 3);
		trace_free(&one);
		trace_free(&many);
		options.world = 4;
		for (options.rank = 0; options.rank < 4; options.rank++) {
			struct leat_feed *feed = trace_open(spec, &options);
			struct trace trace = {0};

			trace_take(&trace, feed, 0);
			bad += leat_bad_count(feed);
			trace_free(&trace);
			leat_close(feed);
		}
		assert_int_equal(bad, 1);
		options.rank = 0;
		data_remove(&damaged);
	}
}

/* ---- the same bytes ---- */

/* `size` samples of rank 1 of 2: 6 rows of a batch of 12. */
static void
compare_settings(int size, size_t repeats)
{
	static const char *const batches[] = {
		"batch(12, tail=wrap) | prefetch(0)",
		"batch(12, tail=wrap) | prefetch(5)",
		"cache | batch(12, tail=wrap)",
		"batch(12, tail=wrap)",
	};
	struct leat_options options;
	struct trace first, trace;
	char spec[800];

	trace_options(&options);
	options.epochs = 3;
	options.rank = 1;
	options.world = 2;
	snprintf(spec, sizeof spec, "%s | shuffle | take(%d) | batch(12, tail=wrap)", data_source(&data), size);
	trace_run(&first, spec, &options);
	assert_int_equal(first.repeats, 3 * repeats);
	for (size_t i = 0; i < 8; i++) {
		options.threads = 1 + (unsigned)i % 4;
		snprintf(spec, sizeof spec, "%s | shuffle | take(%d) | %s", data_source(&data), size, batches[i % 4]);
		options.memory = (size_t)64 << 20;
		if (i == 3 || i == 7)
			options.memory = trace_least_memory(spec, &options);
		trace_run(&trace, spec, &options);
		trace_compare(&first, &trace, spec);
		trace_free(&trace);
	}
	trace_free(&first);
}

static void
threads_memory_prefetch_and_caches_change_nothing(void **state)
{
	(void)state;
	compare_settings(2, 6);
	compare_settings(7, 5);
	compare_settings(29, 6);
}

/* ---- empty epochs ---- */

static void
expect_empty(const char *spec, const struct leat_options *options)
{
	struct leat_feed *feed = trace_open(spec, options);
	struct leat_batch *batch;
	char *json;

	assert_int_equal(leat_batches(feed), 0);
	for (uint64_t epoch = 0; epoch < 2; epoch++) {
		assert_int_equal(leat_epoch(feed), epoch);
		assert_int_equal(leat_position(feed), 0);
		assert_int_equal(leat_save(feed, &json, NULL), LEAT_OK);
		assert_int_equal(leat_next(feed, &batch, NULL), epoch == 0 ? LEAT_END : LEAT_DONE);
		assert_null(batch);
		if (epoch == 0)
			assert_int_equal(leat_restore(feed, json, NULL), LEAT_OK);
		if (epoch == 0)
			assert_int_equal(leat_next(feed, &batch, NULL), LEAT_END);
		free(json);
	}
	assert_int_equal(leat_next(feed, &batch, NULL), LEAT_DONE);
	leat_close(feed);
}

static void
an_empty_epoch_has_no_batches(void **state)
{
	static const char *const ops[] = {
		"take(0) | batch(4)",
		"skip(60) | batch(4, tail=wrap)",
		"take(0) | shuffle | repeat(3) | batch(4, tail=pad)",
		"take(0) | shuffle(8) | batch(4, tail=exact)",
		"shuffle | take(3) | batch(4, tail=drop)",
		"take(0) | cache | batch(4) | prefetch(3)",
		"take(0) | example(box=float[4]) | batch(4, tail=wrap) | mixup(image=box, label=box)",
	};
	static const size_t none[] = {0, 0};
	struct leat_options options;
	struct data empty;
	char spec[800];

	(void)state;
	trace_options(&options);
	options.epochs = 2;
	data_make(&empty, 2, none, NULL);
	for (options.world = 1; options.world <= 2; options.world++) {
		for (size_t i = 0; i < sizeof ops / sizeof *ops; i++) {
			snprintf(spec, sizeof spec, "%s | %s", data_source(&data), ops[i]);
			expect_empty(spec, &options);
		}
		snprintf(spec, sizeof spec, "%s | interleave(2) | shuffle | batch(4)", data_source(&empty));
		expect_empty(spec, &options);
		snprintf(spec, sizeof spec, "%s | example(image=bytes) | decode | batch(4)", data_source(&empty));
		expect_empty(spec, &options);
	}
	data_remove(&empty);
}

/* A rank without a row in the only batch of an epoch. */
static void
a_rank_may_have_no_batches(void **state)
{
	struct leat_options options;
	char spec[800];

	(void)state;
	trace_options(&options);
	options.epochs = 2;
	options.world = 4;
	options.rank = 3;
	expect_empty(spec_of(spec, 3, "batch(8, tail=exact)"), &options);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_tail_delivers_the_samples_it_promises),
		cmocka_unit_test(a_small_epoch_wraps_more_than_once),
		cmocka_unit_test(the_rows_of_the_last_batch_are_where_the_plan_says),
		cmocka_unit_test(pairs_are_never_split),
		cmocka_unit_test(pairs_share_the_last_batch_by_pairs),
		cmocka_unit_test(ranks_change_at_every_batch),
		cmocka_unit_test(a_checkpoint_between_batches_can_bring_fill),
		cmocka_unit_test(the_last_batch_ends_the_epoch),
		cmocka_unit_test(a_feed_tells_whether_rows_can_be_fill),
		cmocka_unit_test(a_feed_names_its_tail),
		cmocka_unit_test(bad_samples_count_once),
		cmocka_unit_test(threads_memory_prefetch_and_caches_change_nothing),
		cmocka_unit_test(an_empty_epoch_has_no_batches),
		cmocka_unit_test(a_rank_may_have_no_batches),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
