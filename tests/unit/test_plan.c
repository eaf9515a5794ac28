/* test_plan.c - the chain of plan ops: edges, errors, caches and memory
 *
 * That orders are right is what tests/plan_oracle.py shows, on random specs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <time.h>
#include <cmocka.h>

#include "support/plan_bench.h"
#include "base/hash.h"
#include "op/batch.h"

static struct plan_bench bench;

/* One file of n samples. */
static const uint64_t *
one_file(uint64_t n)
{
	static uint64_t first[2];

	first[1] = n;
	return first;
}

static struct leat_plan *
open_plan(uint64_t n, const char *ops, uint64_t seed)
{
	struct leat_err err = {0};

	leat_mem_init(&bench.mem, SIZE_MAX);
	if (bench_open(&bench, one_file(n), 1, ops, seed, &err) != LEAT_OK)
		fail_msg("%s: %s", ops, err.text);
	return &bench.plan;
}

static void
close_plan(void)
{
	bench_close(&bench);
	assert_int_equal(bench.mem.used, 0);
}

static void
expect_error(uint64_t n, const char *ops, enum leat_status status, const char *part)
{
	struct leat_err err = {0};

	leat_mem_init(&bench.mem, SIZE_MAX);
	assert_int_equal(bench_open(&bench, one_file(n), 1, ops, 0, &err), status);
	if (!strstr(err.text, part))
		fail_msg("%s: \"%s\" does not say \"%s\"", ops, err.text, part);
	close_plan();
}

static void
expect_order(struct leat_plan *plan, uint64_t epoch, const uint64_t *order, uint64_t n)
{
	assert_int_equal(plan->size, n);
	for (uint64_t p = 0; p < n; p++)
		assert_int_equal(leat_plan_at(plan, epoch, p), order[p]);
}

/* All of 0 .. n - 1, each once. */
static void
expect_permutation(struct leat_plan *plan, uint64_t epoch, uint64_t n)
{
	static uint8_t seen[4096];

	assert_true(n <= sizeof(seen));
	assert_int_equal(plan->size, n);
	memset(seen, 0, sizeof(seen));
	for (uint64_t p = 0; p < n; p++) {
		uint64_t i = leat_plan_at(plan, epoch, p);

		assert_true(i < n);
		assert_int_equal(seen[i]++, 0);
	}
}

static void
without_ops_positions_are_samples(void **state)
{
	(void)state;
	expect_order(open_plan(3, "", 1), 9, (uint64_t[]){0, 1, 2}, 3);
	close_plan();
}

static void
take_skip_and_shard_choose_by_position(void **state)
{
	(void)state;
	expect_order(open_plan(5, "take(2)", 1), 0, (uint64_t[]){0, 1}, 2);
	close_plan();
	expect_order(open_plan(2, "take(1000000000000000000)", 1), 0, (uint64_t[]){0, 1}, 2);
	close_plan();
	expect_order(open_plan(5, "skip(3)", 1), 0, (uint64_t[]){3, 4}, 2);
	close_plan();
	expect_order(open_plan(7, "shard(3, 0)", 1), 0, (uint64_t[]){0, 3, 6}, 3);
	close_plan();
	expect_order(open_plan(7, "shard(count=3, index=2)", 1), 0, (uint64_t[]){2, 5}, 2);
	close_plan();
	expect_order(open_plan(9, "skip(1) | shard(2, 1) | take(2)", 1), 0, (uint64_t[]){2, 4}, 2);
	close_plan();
}

/* Every sample is in the training part or in the validation part, and in the validation part of one fold only. */
static void
split_divides_the_samples(void **state)
{
	(void)state;
	for (uint64_t count = 5; count < 23; count++) {
		unsigned validations[23] = {0};

		for (int fold = 0; fold < 5; fold++) {
			unsigned seen[23] = {0};

			for (int part = 0; part < 2; part++) {
				char spec[64];
				struct leat_plan *plan;
				uint64_t last = 0;

				snprintf(spec, sizeof(spec), "split(%s, 5, %d)", part ? "validation" : "train", fold);
				plan = open_plan(count, spec,
				                 (uint64_t)(fold + part)); /* the feed's seed plays no role */
				for (uint64_t p = 0; p < plan->size; p++) {
					uint64_t sample = leat_plan_at(plan, p, p);

					assert_true(p == 0 || sample > last);
					seen[sample]++;
					validations[sample] += (unsigned)part;
					last = sample;
				}
				assert_true(!part || plan->size == count / 5 || plan->size == count / 5 + 1);
				close_plan();
			}
			for (uint64_t i = 0; i < count; i++)
				assert_int_equal(seen[i], 1);
		}
		for (uint64_t i = 0; i < count; i++)
			assert_int_equal(validations[i], 1);
	}
}

static void
one_epoch_of_repeat_is_ordered_like_several_epochs(void **state)
{
	uint64_t order[3 * 40];
	struct leat_plan *plan = open_plan(40, "shuffle", 5);

	(void)state;
	for (uint64_t p = 0; p < 3 * 40; p++)
		order[p] = leat_plan_at(plan, 6 + p / 40, p % 40);
	assert_memory_not_equal(order, order + 40, 40 * sizeof(*order));
	close_plan();
	expect_order(open_plan(40, "shuffle | repeat(3)", 5), 2, order, 3 * 40);
	close_plan();
}

static void
an_epoch_may_be_empty(void **state)
{
	static const char *const ops[] = {
		"",
		"skip(3)",
		"take(0)",
		"take(1) | shard(4, 3)",
		"skip(5) | shuffle | shuffle(4) | shuffle(block=2, window=2) | repeat(3) | take(1) | shard(2, 0)",
	};

	(void)state;
	for (size_t i = 0; i < sizeof ops / sizeof *ops; i++) {
		assert_int_equal(open_plan(i > 0 ? 3 : 0, ops[i], 1)->size, 0);
		close_plan();
	}
}

static void
options_that_contradict_each_other_are_refused(void **state)
{
	(void)state;
	expect_error(9, "shard(3, 3)", LEAT_SPEC, "expected 0 to 2");
	expect_error(9, "shuffle(block=4)", LEAT_SPEC, "shuffle(block=4, window=16)");
	expect_error(9, "take(5) | interleave(2)", LEAT_SPEC, "interleave must come right after the source");
	expect_error(9, "repeat(4000000000000000000)", LEAT_SPEC, "must be at most 1e+18, not 4000000000000000000");
	expect_error(9, "repeat(0)", LEAT_SPEC, "must be at least 1, not 0");
	expect_error(9, "split(train, 3, 3)", LEAT_SPEC, "expected 0 to 2");
	expect_error(9, "shuffle | split(train)", LEAT_SPEC, "split must come before shuffle");
	expect_error(9, "repeat(2) | take(9) | split(train)", LEAT_SPEC, "split must come before shuffle");
	expect_error(9, "batch", LEAT_SPEC, "batch(32)");
	expect_error(9, "batch(0)", LEAT_SPEC, "1 or more");
	expect_error(9, "batch(8, per_rank=4)", LEAT_SPEC, "not both");
	expect_error(9, "batch(8, 4)", LEAT_SPEC, "batch");
	expect_error(9, "repeat", LEAT_SPEC, "times");
	expect_error(9, "repeat(0)", LEAT_SPEC, "times");
}

static void
batch_and_prefetch_have_defaults(void **state)
{
	const struct leat_batch_params *batch;
	const struct leat_prefetch_params *prefetch;

	(void)state;
	open_plan(9, "batch(32) | prefetch | batch(per_rank=4, tail=pad) | prefetch(0)", 0);
	batch = bench.params[0];
	assert_int_equal(batch->size, 32);
	assert_int_equal(batch->per_rank, 0);
	assert_int_equal(batch->tail, LEAT_TAIL_AUTO);
	prefetch = bench.params[1];
	assert_int_equal(prefetch->batches, -1);
	batch = bench.params[2];
	assert_int_equal(batch->size, 0);
	assert_int_equal(batch->per_rank, 4);
	assert_int_equal(batch->tail, LEAT_TAIL_PAD);
	prefetch = bench.params[3];
	assert_int_equal(prefetch->batches, 0);
	close_plan();
}

static void
sizes_beyond_2_to_62_are_refused(void **state)
{
	struct leat_plan *plan = open_plan((uint64_t)1 << 61, "repeat(2)", 0);

	(void)state;
	assert_int_equal(plan->size, LEAT_MAX_POSITIONS);
	assert_int_equal(leat_plan_at(plan, 0, plan->size - 1), ((uint64_t)1 << 61) - 1);
	close_plan();
	expect_error((uint64_t)1 << 61, "repeat(3)", LEAT_SPEC, "at most 2 times");
	expect_error((uint64_t)1 << 61, "repeat(9)", LEAT_SPEC, "at most 2 times"); /* 9 * 2^61 is 2^61 in 64 bits */
	expect_error(LEAT_MAX_POSITIONS + 1, "take(1)", LEAT_DATA, "2^62");
}

static void
at_most_32_ops_change_the_order(void **state)
{
	char ops[1024] = "skip(0)";

	(void)state;
	for (int i = 1; i < LEAT_MAX_PLAN_OPS; i++)
		strcat(ops, "|skip(1)");
	assert_int_equal(open_plan(100, ops, 0)->size, 100 - 31);
	close_plan();
	strcat(ops, "|take(1)");
	expect_error(100, ops, LEAT_SPEC, "take is one too many");
}

static void
block_shuffle_is_a_permutation_for_every_small_size(void **state)
{
	char ops[64];

	(void)state;
	for (uint64_t n = 1; n <= 23; n++) {
		for (int block = 1; block <= 25; block += block < 8 ? 1 : 5) {
			for (int window = 1; window <= 25; window += window < 6 ? 1 : 7) {
				snprintf(ops, sizeof(ops), "shuffle(block=%d, window=%d)", block, window);
				expect_permutation(open_plan(n, ops, n), 3, n);
				close_plan();
			}
		}
	}
}

static void
block_shuffle_reads_whole_blocks_together(void **state)
{
	struct leat_plan *plan = open_plan(1000, "shuffle(block=50, window=2)", 7);

	(void)state;
	for (uint64_t group = 0; group < 10; group++) {
		uint64_t blocks = 0; /* as bits */

		for (uint64_t p = 0; p < 100; p++)
			blocks |= (uint64_t)1 << leat_plan_at(plan, 0, group * 100 + p) / 50;
		assert_int_equal(__builtin_popcountll(blocks), 2);
	}
	close_plan();
}

static void
sizes_that_meet_the_limit_are_permuted(void **state)
{
	static const char *const specs[] = {
		"shuffle",
		"shuffle(block=1000000000000000000, window=1000000000000000000)",
		"shuffle(block=1, window=1)",
		"shuffle(block=999999999999999999, window=4)",
		"shuffle(block=3, window=1000000000000000000)",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(specs) / sizeof(*specs); i++) {
		struct leat_plan *plan = open_plan(LEAT_MAX_POSITIONS, specs[i], 1);

		for (uint64_t k = 0; k < 200; k++)
			assert_true(leat_plan_at(plan, 0, LEAT_MAX_POSITIONS - 1 - k * k * 1000003) <
			            LEAT_MAX_POSITIONS);
		close_plan();
	}
}

/* A shuffle buffer as anybody would write it, for one epoch. */
static void
play_window(uint64_t *order, uint64_t n, uint64_t window, uint64_t seed, uint64_t epoch)
{
	uint64_t buffer[512], p = 0, stream = leat_stream("shuffle", 0);
	struct leat_perm perm;
	struct leat_rng rng;

	assert_true(window <= 512 && window <= n);
	for (uint64_t i = 0; i < window; i++)
		buffer[i] = i;
	for (; p + window < n; p++) {
		uint64_t slot;

		leat_rng_init(&rng, seed, epoch, p, stream);
		slot = leat_rng_below(&rng, window);
		order[p] = buffer[slot];
		buffer[slot] = window + p;
	}
	leat_perm_init(&perm, window, seed, epoch, leat_mix64(stream + 1));
	for (uint64_t i = 0; i < window; i++)
		order[p + i] = buffer[leat_perm_at(&perm, i)];
}

enum { LONG = 20000, WINDOW = 300 };

static void
a_window_gives_the_same_however_it_is_asked(void **state)
{
	static uint64_t order[2][LONG];
	struct leat_plan *plan = open_plan(LONG, "shuffle(window=300)", 11);
	struct leat_rng rng;

	(void)state;
	play_window(order[0], LONG, WINDOW, 11, 0);
	play_window(order[1], LONG, WINDOW, 11, 1);
	expect_order(plan, 0, order[0], LONG);
	expect_order(plan, 1, order[1], LONG);

	/* resume, also within the last window, and go on into the next epoch */
	for (uint64_t from = 1; from < LONG; from += 3331) {
		for (uint64_t p = from; p < LONG && p < from + 1000; p++)
			assert_int_equal(leat_plan_at(plan, 0, p), order[0][p]);
	}
	for (uint64_t p = LONG - 20; p < LONG; p++)
		assert_int_equal(leat_plan_at(plan, 0, p), order[0][p]);
	for (uint64_t p = 0; p < 20; p++)
		assert_int_equal(leat_plan_at(plan, 1, p), order[1][p]);

	/* the same again and again */
	for (uint64_t p = 500; p < 2000; p++)
		assert_int_equal(leat_plan_at(plan, 0, p - p % 3), order[0][p - p % 3]);

	/* strides of ranks, and random places of two epochs in turns */
	for (uint64_t p = 17; p < LONG; p += 7)
		assert_int_equal(leat_plan_at(plan, 0, p), order[0][p]);
	leat_rng_init(&rng, 1, 2, 3, 4);
	for (int i = 0; i < 3000; i++) {
		uint64_t epoch = leat_rng_below(&rng, 2), p = leat_rng_below(&rng, i % 2 ? LONG : 2 * WINDOW);

		assert_int_equal(leat_plan_at(plan, epoch, p), order[epoch][p]);
	}
	close_plan();
}

/* Seconds that this thread has worked. */
static double
cpu_time(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* Were any of these ways to ask taken for jumps, they would cost 10^9 draws and more. */
static void
after_one_jump_a_window_goes_on_without_jumps(void **state)
{
	static const uint64_t strides[] = {1, 4};
	struct leat_plan *plan = open_plan(10000000, "shuffle(200000)", 1);
	double begin = cpu_time();

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		for (uint64_t p = 5000000; p < 5000000 + 20000 * strides[i]; p += strides[i])
			assert_int_equal(leat_plan_at(plan, i, p), leat_plan_at(plan, i, p));
	}
	for (uint64_t p = plan->size - 20000; p < plan->size; p++) /* while the slots are emptied */
		leat_plan_at(plan, 0, p);
	for (uint64_t p = 0; p < 20000; p++) /* the next epoch */
		leat_plan_at(plan, 1, p);
	assert_true(cpu_time() - begin < 5);
	close_plan();
}

static void
a_window_of_one_keeps_the_order_and_a_large_one_mixes_all(void **state)
{
	struct leat_plan *plan = open_plan(500, "shuffle(1)", 3);

	(void)state;
	for (uint64_t p = 0; p < 500; p++)
		assert_int_equal(leat_plan_at(plan, 0, p), p);
	close_plan();
	expect_permutation(open_plan(500, "shuffle(500)", 3), 0, 500);
	close_plan();
	plan = open_plan(500, "shuffle(1000000000000000000)", 3);
	assert_true(atomic_load(&bench.mem.used) < 8192); /* no table */
	expect_permutation(plan, 0, 500);
	close_plan();
}

static void
after_reseed_a_plan_is_as_if_opened_with_that_seed(void **state)
{
	static const char *const specs[] = {"shuffle", "shuffle(20)", "shuffle(block=7, window=3)",
	                                    "shuffle(20) | repeat(2) | shuffle(9) | shuffle"};

	(void)state;
	for (size_t i = 0; i < sizeof(specs) / sizeof(*specs); i++) {
		uint64_t order[2][200], n;
		struct leat_plan *plan = open_plan(100, specs[i], 1);

		n = plan->size;
		for (uint64_t p = 0; p < n; p++)
			order[0][p] = leat_plan_at(plan, 0, p);
		close_plan();
		plan = open_plan(100, specs[i], 2);
		for (uint64_t p = 0; p < n; p++)
			order[1][p] = leat_plan_at(plan, 0, p);
		assert_memory_not_equal(order[0], order[1], n * sizeof(order[0][0]));
		leat_plan_reseed(plan, 1);
		expect_order(plan, 0, order[0], n);
		leat_plan_reseed(plan, 2);
		expect_order(plan, 0, order[1], n);
		close_plan();
	}
}

static void
each_shuffle_of_a_spec_draws_its_own_numbers(void **state)
{
	struct leat_plan *plan = open_plan(1000, "shuffle", 1);
	uint64_t once[1000], same = 0;

	(void)state;
	for (uint64_t p = 0; p < 1000; p++)
		once[p] = leat_plan_at(plan, 0, p);
	close_plan();
	plan = open_plan(1000, "shuffle | shuffle", 1);
	for (uint64_t p = 0; p < 1000; p++)
		same += leat_plan_at(plan, 0, p) == once[once[p]];
	assert_true(same < 10);
	close_plan();
}

static void
tables_take_memory_in_proportion(void **state)
{
	static uint64_t first[10001];
	struct leat_err err = {0};

	(void)state;
	open_plan(100000, "shuffle(10000)", 0);
	assert_in_range(atomic_load(&bench.mem.peak), 80000, 80000 + 8192);
	close_plan();
	for (size_t i = 0; i < 10000; i++)
		first[i + 1] = first[i] + i * 7919 % 1000;
	leat_mem_init(&bench.mem, SIZE_MAX);
	assert_int_equal(bench_open(&bench, first, 10000, "interleave(64, 3)", 0, &err), LEAT_OK);
	assert_in_range(atomic_load(&bench.mem.peak), 1, 10000 * 150);
	close_plan();
}

static void
a_window_beyond_the_memory_limit_is_refused(void **state)
{
	struct leat_err err = {0};

	(void)state;
	leat_mem_init(&bench.mem, 100000);
	assert_int_not_equal(bench_open(&bench, one_file(1000000), 1, "shuffle(50000)", 0, &err), LEAT_OK);
	assert_non_null(strstr(err.text, "window"));
	close_plan();
}

static void
every_failed_allocation_is_an_error_and_leaks_nothing(void **state)
{
	static const uint64_t first[] = {0, 3, 3, 50, 60, 61, 300};
	long n = 0;

	(void)state;
	for (;; n++) {
		struct leat_err err = {0};
		enum leat_status status;

		leat_mem_init(&bench.mem, SIZE_MAX);
		atomic_store(&bench.mem.fail_after, n);
		status = bench_open(&bench, first, 6,
		                    "interleave(3, 2) | shuffle(9) | shuffle | shuffle(block=4, window=2)", 0, &err);
		close_plan();
		if (status == LEAT_OK)
			break;
		assert_int_equal(status, LEAT_NOMEM);
		assert_true(err.text[0] != '\0');
	}
	assert_true(n > 12);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(without_ops_positions_are_samples),
		cmocka_unit_test(take_skip_and_shard_choose_by_position),
		cmocka_unit_test(split_divides_the_samples),
		cmocka_unit_test(one_epoch_of_repeat_is_ordered_like_several_epochs),
		cmocka_unit_test(an_epoch_may_be_empty),
		cmocka_unit_test(options_that_contradict_each_other_are_refused),
		cmocka_unit_test(batch_and_prefetch_have_defaults),
		cmocka_unit_test(sizes_beyond_2_to_62_are_refused),
		cmocka_unit_test(at_most_32_ops_change_the_order),
		cmocka_unit_test(block_shuffle_is_a_permutation_for_every_small_size),
		cmocka_unit_test(block_shuffle_reads_whole_blocks_together),
		cmocka_unit_test(sizes_that_meet_the_limit_are_permuted),
		cmocka_unit_test(a_window_gives_the_same_however_it_is_asked),
		cmocka_unit_test(after_one_jump_a_window_goes_on_without_jumps),
		cmocka_unit_test(a_window_of_one_keeps_the_order_and_a_large_one_mixes_all),
		cmocka_unit_test(after_reseed_a_plan_is_as_if_opened_with_that_seed),
		cmocka_unit_test(each_shuffle_of_a_spec_draws_its_own_numbers),
		cmocka_unit_test(tables_take_memory_in_proportion),
		cmocka_unit_test(a_window_beyond_the_memory_limit_is_refused),
		cmocka_unit_test(every_failed_allocation_is_an_error_and_leaks_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
