/* test_feed_ranks.c - ranks split every batch: joined again they are what one rank would have got */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/data.h"
#include "support/specs.h"
#include "support/trace.h"

enum { SPECS = TEST_SLOW ? 8 : 40 };

static const size_t counts[] = {20, 7, 0, 26};
static struct data data;
static struct sources sources;

static int
setup(void **state)
{
	(void)state;
	data_make(&data, sizeof counts / sizeof *counts, counts, NULL);
	sources_make(&sources);
	return 0;
}

static int
teardown(void **state)
{
	(void)state;
	data_remove(&data);
	sources_remove(&sources);
	return 0;
}

static void
forget_launchers(void)
{
	static const char *const names[] = {"RANK",       "OMPI_COMM_WORLD_RANK", "SLURM_PROCID",
	                                    "WORLD_SIZE", "OMPI_COMM_WORLD_SIZE", "SLURM_NTASKS"};

	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		unsetenv(names[i]);
}

/* All ranks of `world`, joined. Every rank has as many batches, all of its share. */
static void
run_ranks(const char *spec, const struct leat_options *options, int world, int64_t share, struct trace *joined)
{
	struct leat_options o = *options;
	size_t batches = 0, ends = 0;

	*joined = (struct trace){0};
	for (o.rank = 0, o.world = world; o.rank < world; o.rank++) {
		struct trace trace;

		o.threads = 1 + (unsigned)o.rank % 3;
		trace_run(&trace, spec, &o);
		assert_int_equal(trace.status, LEAT_DONE);
		if (o.rank > 0 && (trace.batches != batches || trace.ends != ends))
			fail_msg("%s: rank %d has %zu batches, rank 0 %zu", spec, o.rank, trace.batches, batches);
		batches = trace.batches;
		ends = trace.ends;
		for (size_t i = 0; i < trace.batches && world > 1; i++)
			assert_int_equal(trace.batch[i].count, share);
		trace_join(joined, &trace);
		joined->batches = batches;
		trace_free(&trace);
	}
}

static void
compare_worlds(const char *spec, const struct leat_options *options, int64_t global)
{
	static const int worlds[] = {2, 3, 4};
	struct trace one, many;

	run_ranks(spec, options, 1, global, &one);
	for (size_t i = 0; i < 3; i++) {
		if (global % worlds[i] != 0)
			continue;
		run_ranks(spec, options, worlds[i], global / worlds[i], &many);
		assert_int_equal(many.batches, one.batches);
		trace_compare_samples(&one, &many, spec);
		trace_free(&many);
	}
	trace_free(&one);
}

static void
ranks_joined_are_one_rank(void **state)
{
	static const char *const tails[] = {"auto", "pad", "wrap", "drop"};
	static struct specs specs;
	struct leat_options options;

	(void)state;
	trace_options(&options);
	options.epochs = 2;
	specs_init(&specs, &sources, 7, 200);
	for (int i = 0; i < SPECS; i++) {
		char spec[sizeof specs.text + 64];
		unsigned size = 12 * (1 + specs_below(&specs, 2));
		const char *tail = tails[specs_below(&specs, 4)];

		specs_draw(&specs);
		snprintf(spec, sizeof spec, "%s | batch(%u, tail=%s)", specs.text, size, tail);
		options.seed = leat_rng_u64(&specs.rng);
		compare_worlds(spec, &options, size);
	}
}

/* With per_rank the global batch grows with the world: k per rank of w is batch(k * w). */
static void
per_rank_is_a_batch_of_as_many_times_the_world(void **state)
{
	struct leat_options options;
	struct trace whole, parts;
	char spec[600];

	(void)state;
	trace_options(&options);
	for (int world = 1; world <= 4; world++) {
		snprintf(spec, sizeof spec, "%s | shuffle | batch(%d, tail=pad)", data_source(&data), 5 * world);
		run_ranks(spec, &options, 1, 5 * world, &whole);
		snprintf(spec, sizeof spec, "%s | shuffle | batch(per_rank=5, tail=pad)", data_source(&data));
		run_ranks(spec, &options, world, 5, &parts);
		assert_int_equal(whole.batches, parts.batches);
		trace_compare_samples(&whole, &parts, spec);
		trace_free(&whole);
		trace_free(&parts);
	}
}

static void
padding_fills_the_last_batch_of_every_rank(void **state)
{
	static const int64_t valid[4][2] = {{6, 1}, {6, 0}, {6, 0}, {6, 0}}; /* 49 samples, 24 at a time: one is left */
	struct leat_options options;
	char spec[600];

	(void)state;
	trace_options(&options);
	options.world = 4;
	snprintf(spec, sizeof spec, "%s | take(49) | batch(24, tail=pad)", data_source(&data));
	for (options.rank = 0; options.rank < 4; options.rank++) {
		struct trace trace;

		trace_run(&trace, spec, &options);
		assert_int_equal(trace.batches, 3);
		assert_int_equal(trace.batch[1].valid, valid[options.rank][0]);
		assert_int_equal(trace.batch[2].valid, valid[options.rank][1]);
		assert_int_equal(trace.batch[2].count, 6);
		trace_free(&trace);
	}
}

static void
refused(const char *batch, int world, const char *expected)
{
	struct leat_options options;
	struct leat_feed *feed;
	struct leat_err err;
	char spec[600];

	trace_options(&options);
	options.world = world;
	snprintf(spec, sizeof spec, "%s | %s", data_source(&data), batch);
	assert_int_equal(leat_open(spec, &options, &feed, &err), LEAT_INVALID);
	assert_null(feed);
	assert_string_equal(err.text, expected);
}

static void
a_batch_that_cannot_be_split_is_refused_with_the_nearest_sizes(void **state)
{
	(void)state;
	refused("batch(32)", 3, "batch(32) cannot be split over 3 ranks; use 30 or 33");
	refused("batch(2)", 3, "batch(2) cannot be split over 3 ranks; use 3");
	refused("batch(9)", 4, "batch(9) cannot be split over 4 ranks; use 8 or 12");
}

static void
a_short_batch_is_refused_with_several_ranks(void **state)
{
	(void)state;
	refused("batch(4, tail=short)", 2,
	        "tail=short works with one rank only; use tail=wrap (batches of equal size), or tail=exact (every "
	        "sample exactly once)");
}

/* ---- launchers ---- */

static void
opens_as(int expected_rank, int expected_world)
{
	struct leat_options options;
	struct leat_feed *feed;
	struct leat_batch *batch;
	char spec[600];

	leat_options_init(&options);
	options.threads = 1;
	options.memory = 8 << 20;
	snprintf(spec, sizeof spec, "%s | batch(12)", data_source(&data));
	feed = trace_open(spec, &options);
	assert_int_equal(leat_next(feed, &batch, NULL), LEAT_OK);
	assert_int_equal(leat_batch_count(batch), 12 / expected_world);
	assert_int_equal(leat_batch_position(batch, 0), 12 / expected_world * expected_rank);
	leat_release(batch);
	leat_close(feed);
}

static void
ranks_come_from_the_launcher(void **state)
{
	(void)state;
	forget_launchers();
	opens_as(0, 1);
	setenv("SLURM_PROCID", "1", 1);
	setenv("SLURM_NTASKS", "2", 1);
	opens_as(1, 2);
	setenv("OMPI_COMM_WORLD_RANK", "2", 1);
	setenv("OMPI_COMM_WORLD_SIZE", "3", 1);
	opens_as(2, 3);
	setenv("RANK", "3", 1);
	setenv("WORLD_SIZE", "4", 1);
	opens_as(3, 4);
	forget_launchers();
}

/* In a shell inside an allocation the number of tasks is set, but the shell is none of them. */
static void
a_launcher_that_says_half_does_not_count(void **state)
{
	(void)state;
	forget_launchers();
	setenv("SLURM_NTASKS", "4", 1);
	opens_as(0, 1);
	setenv("RANK", "3", 1);
	opens_as(0, 1);
	setenv("SLURM_PROCID", "1", 1);
	opens_as(1, 4); /* never a rank of one launcher and a world of another */
	forget_launchers();
}

static void
refused_from_environment(int rank, int world, const char *expected)
{
	struct leat_options options;
	struct leat_feed *feed;
	struct leat_err err;
	char spec[600];

	leat_options_init(&options);
	options.rank = rank;
	options.world = world;
	snprintf(spec, sizeof spec, "%s | batch(12)", data_source(&data));
	assert_int_equal(leat_open(spec, &options, &feed, &err), LEAT_INVALID);
	assert_string_equal(err.text, expected);
}

static void
ranks_that_do_not_exist_are_refused(void **state)
{
	(void)state;
	forget_launchers();
	refused_from_environment(3, 3, "rank 3 of world 3 is out of range: ranks go from 0 to world - 1");
	refused_from_environment(1, 0, "rank 1 of world 1 is out of range: ranks go from 0 to world - 1");
	setenv("WORLD_SIZE", "4", 1);
	setenv("RANK", "two", 1);
	refused_from_environment(-1, 0, "RANK=two in the environment is not a valid rank or number of ranks");
	setenv("RANK", "-1", 1);
	refused_from_environment(-1, 0, "RANK=-1 in the environment is not a valid rank or number of ranks");
	setenv("RANK", "0", 1);
	setenv("WORLD_SIZE", "0", 1);
	refused_from_environment(-1, 0, "rank 0 of world 0 is out of range: ranks go from 0 to world - 1");
	setenv("RANK", "1", 1);
	setenv("WORLD_SIZE", "6", 1);
	refused_from_environment(-1, 3,
	                         "world=3 needs a rank: set rank=, or start with a launcher of that many processes");
	forget_launchers();
	refused_from_environment(-1, 2,
	                         "world=2 needs a rank: set rank=, or start with a launcher of that many processes");
	forget_launchers();
}

static void
what_the_caller_says_comes_before_the_launcher(void **state)
{
	struct leat_options options;
	struct trace trace;
	char spec[600];

	(void)state;
	setenv("RANK", "7", 1);
	setenv("WORLD_SIZE", "8", 1);
	trace_options(&options);
	snprintf(spec, sizeof spec, "%s | batch(12)", data_source(&data));
	trace_run(&trace, spec, &options);
	assert_int_equal(trace.samples, 53);
	trace_free(&trace);
	forget_launchers();
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ranks_joined_are_one_rank),
		cmocka_unit_test(per_rank_is_a_batch_of_as_many_times_the_world),
		cmocka_unit_test(padding_fills_the_last_batch_of_every_rank),
		cmocka_unit_test(a_batch_that_cannot_be_split_is_refused_with_the_nearest_sizes),
		cmocka_unit_test(a_short_batch_is_refused_with_several_ranks),
		cmocka_unit_test(ranks_come_from_the_launcher),
		cmocka_unit_test(a_launcher_that_says_half_does_not_count),
		cmocka_unit_test(ranks_that_do_not_exist_are_refused),
		cmocka_unit_test(what_the_caller_says_comes_before_the_launcher),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
