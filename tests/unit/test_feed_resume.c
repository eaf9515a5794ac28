/* test_feed_resume.c - a checkpoint brings a feed back to any batch, elsewhere and with other settings */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "support/data.h"
#include "support/specs.h"
#include "support/trace.h"

enum { SPECS = TEST_SLOW ? 10 : 60 };

static const size_t counts[] = {11, 0, 19, 16};
static struct data data, copy; /* the same in another place */
static struct sources sources, sources_copy;

static int
setup(void **state)
{
	(void)state;
	data_make(&data, sizeof counts / sizeof *counts, counts, NULL);
	sources_make(&sources);
	sources_make(&sources_copy);
	data_copy(&copy, &data);
	return 0;
}

static int
teardown(void **state)
{
	(void)state;
	data_remove(&data);
	sources_remove(&sources);
	sources_remove(&sources_copy);
	data_remove(&copy);
	return 0;
}

static char *
save(const struct leat_feed *feed)
{
	struct leat_err err;
	char *json;

	if (leat_save(feed, &json, &err) != LEAT_OK)
		fail_msg("%s", err.text);
	return json;
}

#define LOOSE "; to resume at the same sample anyway, use strict=False in Python or --force with leat feed"

static void
restore(struct leat_feed *feed, const char *json)
{
	struct leat_err err;

	if (leat_restore(feed, json, &err) != LEAT_OK)
		fail_msg("%s\n%s", json, err.text);
}

/* The spec, on the data's copy. */
static void
elsewhere(const char *spec, char *out, size_t cap)
{
	if (strstr(spec, data.folder))
		snprintf(out, cap, "%s%s", data_source(&copy), strchr(spec, ')') + 1);
	else
		sources_elsewhere(&sources, &sources_copy, spec, out, cap);
}

/* Takes `batches` and gives the checkpoint then. */
static char *
run_until(struct trace *trace, const char *spec, const struct leat_options *options, size_t batches)
{
	struct leat_feed *feed = trace_open(spec, options);
	char *json;

	*trace = (struct trace){0};
	if (batches > 0)
		trace_take(trace, feed, batches);
	json = save(feed);
	leat_close(feed);
	return json;
}

static void
run_on(struct trace *trace, const char *spec, const struct leat_options *options, const char *json)
{
	struct leat_feed *feed = trace_open(spec, options);

	restore(feed, json);
	*trace = (struct trace){0};
	trace_take(trace, feed, 0);
	leat_close(feed);
}

/* Stops after `batches`, goes on in another feed: together it has to be `whole`. */
static void
stop_and_go_on(const char *spec, const struct leat_options *options, const struct trace *whole, size_t batches)
{
	struct leat_options o = *options;
	char other[5000], what[5100];
	struct trace begin, rest;
	char *json = run_until(&begin, spec, options, batches);

	elsewhere(spec, other, sizeof other);
	o.threads = 1 + (unsigned)batches % 3;
	o.seed = 99; /* the checkpoint's counts */
	run_on(&rest, other, &o, json);
	trace_append(&begin, &rest);
	snprintf(what, sizeof what, "%s, stopped after %zu batches", spec, batches);
	trace_compare(whole, &begin, what);
	trace_free(&begin);
	trace_free(&rest);
	free(json);
}

static void
drawn_pipelines_go_on_where_they_stopped(void **state)
{
	static struct specs specs;
	struct leat_options options;

	(void)state;
	trace_options(&options);
	options.epochs = 2;
	specs_init(&specs, &sources, 5, 150);
	for (int i = 0; i < SPECS; i++) {
		char spec[sizeof specs.text + 64];
		struct trace whole;

		specs_draw(&specs);
		specs_batch(&specs, 1 + specs_below(&specs, 13));
		snprintf(spec, sizeof spec, "%s", specs.text);
		options.seed = leat_rng_u64(&specs.rng);
		trace_run(&whole, spec, &options);
		if (i % 4 == 0)
			sources_forget_indexes(&sources_copy);
		stop_and_go_on(spec, &options, &whole, specs_below(&specs, (unsigned)whole.batches + 1));
		trace_free(&whole);
	}
}

/* Every batch of two epochs, the first, the last and those at the end of an epoch among them. */
static void
every_batch_is_a_place_to_stop(void **state)
{
	static const char *const tails[] = {"short", "drop", "pad", "wrap", "exact"};
	struct leat_options options;

	(void)state;
	trace_options(&options);
	options.epochs = 2;
	options.seed = 12;
	for (size_t t = 0; t < 5; t++) {
		char spec[600];
		struct trace whole;

		snprintf(
			spec, sizeof spec,
			"%s | interleave(2) | example(image=bytes, label=int64) | decode | random_flip | shuffle(13) | "
			"batch(9, tail=%s)",
			data_source(&data), tails[t]);
		trace_run(&whole, spec, &options);
		assert_int_equal(whole.batches, t == 1 ? 10 : 12);
		for (size_t b = 0; b <= whole.batches; b++)
			stop_and_go_on(spec, &options, &whole, b);
		trace_free(&whole);
	}
}

static void
a_feed_that_ran_ahead_goes_back(void **state)
{
	struct leat_options options;
	struct trace whole, trace = {0}, ahead = {0};
	struct leat_feed *feed;
	char spec[600], *json;

	(void)state;
	trace_options(&options);
	options.epochs = 3;
	snprintf(spec, sizeof spec, "%s | shuffle | batch(4) | prefetch(5)", data_source(&data));
	trace_run(&whole, spec, &options);
	feed = trace_open(spec, &options);
	trace_take(&trace, feed, 14); /* in the second epoch */
	json = save(feed);
	trace_take(&ahead, feed, 15); /* in the third */
	restore(feed, json);
	assert_int_equal(leat_epoch(feed), 1);
	assert_int_equal(leat_position(feed), 8);
	trace_take(&trace, feed, 0);
	trace_compare(&whole, &trace, "a feed that went back");
	/* And once more, from the very end. */
	restore(feed, json);
	trace_free(&ahead);
	trace_take(&ahead, feed, 1);
	assert_int_equal(ahead.sample[0].position, 8);
	leat_close(feed);
	free(json);
	trace_free(&whole);
	trace_free(&trace);
	trace_free(&ahead);
}

/* Batches that are held while a feed goes back stay what they are. */
static void
batches_held_survive_going_back(void **state)
{
	struct leat_options options;
	struct trace before = {0}, after = {0};
	struct leat_batch *held;
	struct leat_feed *feed;
	char spec[600], *json;

	(void)state;
	trace_options(&options);
	snprintf(spec, sizeof spec, "%s | batch(4) | prefetch(1)", data_source(&data));
	feed = trace_open(spec, &options);
	json = save(feed);
	assert_int_equal(leat_next(feed, &held, NULL), LEAT_OK);
	trace_add(&before, feed, held);
	for (int i = 0; i < 3; i++) {
		struct trace again = {0};

		restore(feed, json);
		trace_take(&again, feed, 3);
		assert_int_equal(again.status, LEAT_OK);
		trace_free(&again);
	}
	trace_add(&after, feed, held);
	trace_compare(&before, &after, "a batch that was held");
	leat_release(held);
	leat_close(feed);
	free(json);
	trace_free(&before);
	trace_free(&after);
}

/* Stopped with `before` ranks, on with `after`. */
static void
change_world(const char *spec, int before, int after, size_t batches, const struct trace *whole)
{
	struct leat_options options;
	struct trace begin, rest, joined = {0};
	char *json = NULL, what[100];

	trace_options(&options);
	options.world = before;
	for (options.rank = 0; options.rank < before; options.rank++) {
		char *mine = run_until(&begin, spec, &options, batches);

		if (json)
			assert_string_equal(mine, json); /* any rank's will do */
		free(json);
		json = mine;
		trace_join(&joined, &begin);
		trace_free(&begin);
	}
	options.world = after;
	for (options.rank = 0; options.rank < after; options.rank++) {
		run_on(&rest, spec, &options, json);
		trace_join(&joined, &rest);
		trace_free(&rest);
	}
	snprintf(what, sizeof what, "from %d ranks to %d after batch %zu", before, after, batches);
	trace_compare_samples(whole, &joined, what);
	trace_free(&joined);
	free(json);
}

static void
another_number_of_ranks_goes_on(void **state)
{
	static const int worlds[] = {1, 2, 3, 4};
	struct leat_options options;
	struct trace whole;
	char spec[600];

	(void)state;
	trace_options(&options);
	snprintf(spec, sizeof spec,
	         "%s | shuffle | example(image=bytes, label=int64) | decode | random_flip | batch(12)",
	         data_source(&data));
	trace_run(&whole, spec, &options);
	for (int i = 0; i < 4; i++)
		for (int k = 0; k < 4; k++)
			change_world(spec, worlds[i], worlds[k], (size_t)(i + k) % 4, &whole);
	trace_free(&whole);
}

static void
epoch_and_position_say_where_a_feed_stands(void **state)
{
	static const struct {
		uint64_t epoch, position;
	} expected[] = {{0, 20}, {0, 40}, {1, 0}, {1, 20}, {1, 40}, {2, 0}};
	struct leat_options options;
	struct leat_feed *feed;
	char spec[600];

	(void)state;
	trace_options(&options);
	options.epochs = 2;
	snprintf(spec, sizeof spec, "%s | batch(20)", data_source(&data));
	feed = trace_open(spec, &options);
	assert_int_equal(leat_samples(feed), 46);
	assert_int_equal(leat_batches(feed), 3);
	assert_int_equal(leat_epoch(feed), 0);
	assert_int_equal(leat_position(feed), 0);
	for (size_t i = 0; i < 6; i++) {
		struct trace trace = {0};

		trace_take(&trace, feed, 1);
		assert_int_equal(leat_epoch(feed), expected[i].epoch);
		assert_int_equal(leat_position(feed), expected[i].position);
		trace_free(&trace);
	}
	leat_close(feed);
}

/* ---- what is refused ---- */

static void
refused(const char *before, const char *after, const char *expected)
{
	struct leat_options options;
	struct trace whole, begin = {0};
	struct leat_feed *feed;
	struct leat_err err;
	char spec[600], *json;

	trace_options(&options);
	snprintf(spec, sizeof spec, "%s%s", data_source(&data), before);
	json = run_until(&begin, spec, &options, 1);
	trace_free(&begin);
	snprintf(spec, sizeof spec, "%s%s", data_source(&data), after);
	trace_run(&whole, spec, &options);
	feed = trace_open(spec, &options);
	trace_take(&begin, feed, 2);
	assert_int_equal(leat_restore(feed, json, &err), LEAT_MISMATCH);
	assert_string_equal(err.text, expected);
	/* Refused, the feed goes on as if nothing had been. */
	trace_take(&begin, feed, 0);
	trace_compare(&whole, &begin, after);
	leat_close(feed);
	trace_free(&begin);
	trace_free(&whole);
	free(json);
}

static void
another_pipeline_is_refused_with_the_op_that_differs(void **state)
{
	(void)state;
	refused(" | take(30) | batch(4)", " | take(31) | batch(4)",
	        "the checkpoint is from another pipeline: it has take@1(count=30) where this one has take@1(count=31)");
	refused(" | batch(4)", " | shuffle | batch(4)",
	        "the checkpoint is from another pipeline: it has batch@1(size=4, per_rank=0, tail=auto) where this one "
	        "has "
	        "shuffle@1(window=0, block=0)");
	refused(" | example(box=float[4]) | batch(4)",
	        " | example(box=float[4]) | batch(4) | mixup(image=box, label=box)",
	        "the checkpoint is from another pipeline: it has nothing where this one has mixup@1(alpha=0.2, "
	        "image='box', label='box')" LOOSE);
	refused(" | example(box=float[4]) | batch(4) | mixup(image=box, label=box)",
	        " | example(box=float[4]) | batch(4)",
	        "the checkpoint is from another pipeline: it has mixup@1(alpha=0.2, image='box', label='box') where "
	        "this "
	        "one has nothing" LOOSE);
}

/* ---- what is accepted if the order is the same ---- */

static void
restore_loose(const char *before, const char *after, size_t batches, const char *changes)
{
	struct leat_options options;
	struct trace begin, whole, rest = {0};
	struct leat_feed *feed;
	struct leat_err err;
	char spec[600], *json, *found = NULL;

	trace_options(&options);
	options.epochs = 2;
	options.seed = 5;
	snprintf(spec, sizeof spec, "%s%s", data_source(&data), before);
	json = run_until(&begin, spec, &options, batches);
	options.seed = 6; /* the checkpoint's counts */
	snprintf(spec, sizeof spec, "%s%s", data_source(&copy), after);
	feed = trace_open(spec, &options);
	if (leat_restore_loose(feed, json, &found, &err) != LEAT_OK)
		fail_msg("%s", err.text);
	if (changes)
		assert_string_equal(found, changes);
	else
		assert_null(found);
	trace_take(&rest, feed, 0);
	leat_close(feed);
	options.seed = 5;
	trace_run(&whole, spec, &options);
	/* The same samples follow, made as the new pipeline makes them. */
	assert_int_equal(begin.samples + rest.samples, whole.samples);
	for (size_t i = 0; i < rest.samples; i++) {
		const struct trace_sample *is = &rest.sample[i], *was = &whole.sample[begin.samples + i];

		assert_int_equal(is->epoch, was->epoch);
		assert_int_equal(is->position, was->position);
		assert_memory_equal(is->hash, was->hash, sizeof is->hash);
	}
	free(found);
	free(json);
	trace_free(&begin);
	trace_free(&rest);
	trace_free(&whole);
}

static void
another_batch_size_or_augmentation_goes_on_at_the_same_sample(void **state)
{
	(void)state;
	restore_loose(" | shuffle | batch(4)", " | shuffle | batch(4)", 3, NULL);
	restore_loose(" | shuffle | batch(4)", " | shuffle | batch(7)", 3,
	              "batch(size=4, per_rank=0, tail=auto) became batch(size=7, per_rank=0, tail=auto)");
	restore_loose(" | shuffle | batch(7)", " | shuffle | batch(4)", 8,
	              "batch(size=7, per_rank=0, tail=auto) became batch(size=4, per_rank=0, tail=auto)");
	restore_loose(" | shuffle | example(image=bytes) | decode | resize(9, 9) | batch(4)",
	              " | example(image=bytes) | decode | shuffle | resize(9, 9) | random_flip | batch(4)", 3,
	              "shuffle(window=0, block=0) is gone; new: shuffle(window=0, block=0); new: "
	              "random_flip(direction=horizontal, probability=0.5)");
}

static void
another_order_is_refused_in_any_case(void **state)
{
	static const struct {
		const char *before, *after, *expected;
	} cases[] = {
		{" | take(30) | batch(4)", " | take(31) | batch(8)",
	         "the checkpoint is from a pipeline with another order of samples: it has take@1(count=30) where this "
	         "one has take@1(count=31)"},
		{" | batch(4)", " | shuffle | batch(4)",
	         "the checkpoint is from a pipeline with another order of samples: it has nothing where this one has "
	         "shuffle@1(window=0, block=0)"},
	};
	struct leat_options options;

	(void)state;
	trace_options(&options);
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct trace begin;
		struct leat_feed *feed;
		struct leat_err err;
		char spec[600], *json, *changes;

		snprintf(spec, sizeof spec, "%s%s", data_source(&data), cases[i].before);
		json = run_until(&begin, spec, &options, 1);
		snprintf(spec, sizeof spec, "%s%s", data_source(&data), cases[i].after);
		feed = trace_open(spec, &options);
		assert_int_equal(leat_restore_loose(feed, json, &changes, &err), LEAT_MISMATCH);
		assert_string_equal(err.text, cases[i].expected);
		assert_null(changes);
		leat_close(feed);
		free(json);
		trace_free(&begin);
	}
}

static void
hints_and_places_may_differ(void **state)
{
	struct leat_options options;
	struct trace begin, rest;
	char spec[600], *json;

	(void)state;
	trace_options(&options);
	snprintf(spec, sizeof spec, "%s | batch(4) | prefetch(3)", data_source(&data));
	json = run_until(&begin, spec, &options, 2);
	snprintf(spec, sizeof spec, "%s | batch(4)", data_source(&copy));
	run_on(&rest, spec, &options, json);
	assert_int_equal(rest.sample[0].position, 8);
	trace_free(&begin);
	trace_free(&rest);
	free(json);
}

static void
refused_with_data(const struct data *other, const char *expected)
{
	struct leat_options options;
	struct trace begin;
	struct leat_feed *feed;
	struct leat_err err;
	char spec[600], *json;

	trace_options(&options);
	snprintf(spec, sizeof spec, "%s | batch(4)", data_source(&data));
	json = run_until(&begin, spec, &options, 1);
	snprintf(spec, sizeof spec, "%s | batch(4)", data_source(other));
	feed = trace_open(spec, &options);
	assert_int_equal(leat_restore(feed, json, &err), LEAT_MISMATCH);
	assert_string_equal(err.text, expected);
	leat_close(feed);
	free(json);
	trace_free(&begin);
}

static void
other_data_is_refused_with_what_differs(void **state)
{
	static const size_t fewer[] = {11, 0, 19, 15}, moved[] = {12, 0, 18, 16};
	struct data other;

	(void)state;
	data_make(&other, 4, fewer, NULL);
	refused_with_data(&other,
	                  "the checkpoint is from other data: it has 46 samples in 4 files, this feed has 45 in 4");
	data_remove(&other);
	data_make(&other, 4, moved, NULL);
	refused_with_data(&other,
	                  "the checkpoint is from other data: as many files and samples, but some file names, sizes or "
	                  "sample counts differ");
	data_remove(&other);
}

/* ---- damage ---- */

static void
a_damaged_checkpoint_is_refused_or_harmless(void **state)
{
	struct leat_options options;
	struct leat_feed *feed;
	struct trace trace;
	char spec[600], *json, *damaged;
	size_t len;

	(void)state;
	trace_options(&options);
	options.threads = 1;
	snprintf(spec, sizeof spec, "%s | shuffle(7) | batch(4)", data_source(&data));
	json = run_until(&trace, spec, &options, 3);
	trace_free(&trace);
	len = strlen(json);
	damaged = malloc(len + 1);
	assert_non_null(damaged);
	feed = trace_open(spec, &options);
	for (size_t i = 0; i < len; i++) {
		struct leat_err err;

		memcpy(damaged, json, i);
		damaged[i] = '\0';
		assert_int_equal(leat_restore(feed, damaged, &err), LEAT_DATA);
		assert_true(err.text[0] != '\0');
	}
	for (size_t i = 0; i < len * (TEST_SLOW ? 1 : 8); i++) {
		struct leat_err err;

		memcpy(damaged, json, len + 1);
		damaged[i % len] ^= (char)(1 << i / len);
		if (leat_restore(feed, damaged, &err) != LEAT_OK)
			assert_true(err.text[0] != '\0');
	}
	restore(feed, json); /* after all that it still works */
	trace_take(&trace, feed, 1);
	assert_int_equal(trace.sample[0].position, 12);
	trace_free(&trace);
	leat_close(feed);
	free(damaged);
	free(json);
}

static void
nonsense_is_refused_in_words(void **state)
{
	static const struct {
		const char *json, *expected;
	} cases[] = {
		{"[]", "this is not a leat checkpoint"},
		{"{}", "this is not a leat checkpoint"},
		{"{\"leat_checkpoint\": 2}", "the checkpoint has version 2; this leat reads version 1"},
		{"{\"leat_checkpoint\": -1}",
	         "the checkpoint is damaged: \"leat_checkpoint\" is not a non-negative integer"},
		{"{\"leat_checkpoint\": 1}", "the checkpoint is damaged: it has no string \"pipeline\""},
		{"", "this is not a leat checkpoint: line 1, column 0: '[' or '{' expected near end of file"},
	};
	struct leat_options options;
	struct leat_feed *feed;
	char spec[600];

	(void)state;
	trace_options(&options);
	snprintf(spec, sizeof spec, "%s | batch(4)", data_source(&data));
	feed = trace_open(spec, &options);
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct leat_err err;

		assert_int_equal(leat_restore(feed, cases[i].json, &err), LEAT_DATA);
		assert_string_equal(err.text, cases[i].expected);
	}
	leat_close(feed);
}

static void
numbers_out_of_range_are_damage(void **state)
{
	struct leat_options options;
	struct leat_feed *feed;
	struct leat_err err;
	char spec[600], *json, *at;

	(void)state;
	trace_options(&options);
	snprintf(spec, sizeof spec, "%s | batch(4)", data_source(&data));
	feed = trace_open(spec, &options);
	json = save(feed);
	at = strstr(json, "\"position\": 0");
	assert_non_null(at);
	json = realloc(json, strlen(json) + 10);
	assert_non_null(json);
	at = strstr(json, "\"position\": 0");
	memmove(at + 14, at + 13, strlen(at + 13) + 1);
	memcpy(at + 12, "47", 2);
	assert_int_equal(leat_restore(feed, json, &err), LEAT_DATA);
	assert_string_equal(err.text, "the checkpoint is damaged: position 47 of 46 samples");
	free(json);
	leat_close(feed);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(drawn_pipelines_go_on_where_they_stopped),
		cmocka_unit_test(every_batch_is_a_place_to_stop),
		cmocka_unit_test(a_feed_that_ran_ahead_goes_back),
		cmocka_unit_test(batches_held_survive_going_back),
		cmocka_unit_test(another_number_of_ranks_goes_on),
		cmocka_unit_test(epoch_and_position_say_where_a_feed_stands),
		cmocka_unit_test(another_pipeline_is_refused_with_the_op_that_differs),
		cmocka_unit_test(another_batch_size_or_augmentation_goes_on_at_the_same_sample),
		cmocka_unit_test(another_order_is_refused_in_any_case),
		cmocka_unit_test(hints_and_places_may_differ),
		cmocka_unit_test(other_data_is_refused_with_what_differs),
		cmocka_unit_test(a_damaged_checkpoint_is_refused_or_harmless),
		cmocka_unit_test(nonsense_is_refused_in_words),
		cmocka_unit_test(numbers_out_of_range_are_damage),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
