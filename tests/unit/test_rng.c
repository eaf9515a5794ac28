/* test_rng.c - Philox against its published values, streams, and permutations */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/rng.h"

/* The known-answer tests that the authors of Philox publish with it (Random123). */
static void
philox_gives_the_published_values(void **state)
{
	static const struct {
		uint32_t counter[4], key[2], out[4];
	} known[] = {
		{{0, 0, 0, 0}, {0, 0}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
		{{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff},
	         {0xffffffff, 0xffffffff},
	         {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
		{{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
	         {0xa4093822, 0x299f31d0},
	         {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		uint32_t out[4];

		leat_philox(known[i].counter, known[i].key, out);
		assert_memory_equal(out, known[i].out, sizeof(out));
	}
}

/* From another implementation of what rng.h says. */
static void
a_stream_is_what_its_layout_says(void **state)
{
	static const uint32_t expected[] = {0xe172f9f4, 0x2def3353, 0x357beef8, 0xab951c58, 0x04f0da10, 0x842274d9};
	struct leat_rng rng;

	(void)state;
	assert_true(leat_stream("shuffle", 0) == 0x5c40e6eca54fd4aeu);
	assert_true(leat_stream("shuffle", 1) == 0xb5db78af969f1068u);
	leat_rng_init(&rng, 1, 2, 3, leat_stream("random_flip", 1));
	for (size_t i = 0; i < sizeof(expected) / sizeof(expected[0]); i++)
		assert_int_equal(leat_rng_u32(&rng), expected[i]);
	leat_rng_init(&rng, 1, 2, (uint64_t)5 << 32 | 3, leat_stream("random_flip", 1));
	assert_true(leat_rng_u64(&rng) == 0x65696e1ef17551d9u);
	assert_true(leat_rng_u64(&rng) == 0xa35868f6b58bd073u);
}

static uint64_t
first_number(uint64_t seed, uint64_t epoch, uint64_t position, uint64_t stream)
{
	struct leat_rng rng;

	leat_rng_init(&rng, seed, epoch, position, stream);
	return leat_rng_u64(&rng);
}

static void
every_part_of_a_streams_name_matters(void **state)
{
	uint64_t base = first_number(1, 2, 3, 4);

	(void)state;
	assert_true(base == first_number(1, 2, 3, 4));
	assert_true(base != first_number(0, 2, 3, 4));
	assert_true(base != first_number(1, 0, 3, 4));
	assert_true(base != first_number(1, 2, 0, 4));
	assert_true(base != first_number(1, 2, 3 + ((uint64_t)1 << 32), 4));
	assert_true(base != first_number(1, 2, 3, 0));
	assert_true(base != first_number(1, 2, 3, 4 + ((uint64_t)1 << 32)));
}

static void
below_is_in_range_and_reaches_every_value(void **state)
{
	struct leat_rng rng;
	unsigned seen[7] = {0};

	(void)state;
	leat_rng_init(&rng, 1, 0, 0, 0);
	for (int i = 0; i < 7000; i++)
		seen[leat_rng_below(&rng, 7)]++;
	for (int i = 0; i < 7; i++)
		assert_in_range(seen[i], 850, 1150);
	assert_true(leat_rng_below(&rng, 1) == 0);
	for (int i = 0; i < 100; i++)
		assert_true(leat_rng_below(&rng, UINT64_MAX) < UINT64_MAX);
}

static void
uniform_follows_its_formula(void **state)
{
	struct leat_rng rng, again;

	(void)state;
	leat_rng_init(&rng, 1, 0, 0, 0);
	again = rng;
	for (int i = 0; i < 1000; i++) {
		float x = leat_rng_uniform(&rng, -2, 3);
		float share = (float)(leat_rng_u32(&again) >> 8) / 16777216.0f;

		assert_true(x == -2 + 5 * share);
		assert_true(x >= -2 && x < 3);
	}
}

/* Ranges of two neighbouring floats: every draw above the middle rounds up to the end. */
static void
uniform_never_gives_its_upper_end(void **state)
{
	struct leat_rng rng;

	(void)state;
	leat_rng_init(&rng, 1, 0, 0, 0);
	for (int i = 0; i < 100; i++) {
		assert_true(leat_rng_uniform(&rng, 1, nextafterf(1, 2)) == 1.0f);
		assert_true(leat_rng_uniform(&rng, -nextafterf(1, 2), -1) == -nextafterf(1, 2));
		assert_true(leat_rng_uniform(&rng, 5, 5) == 5.0f);
	}
}

/* ---- permutations ---- */

#define SHUFFLE 0x5c40e6eca54fd4aeu /* leat_stream("shuffle", 0) */

static void
assert_is_permutation(uint64_t n, uint64_t seed)
{
	struct leat_perm perm;
	bool *seen = calloc(n + 1, sizeof(*seen));

	assert_non_null(seen);
	leat_perm_init(&perm, n, seed, 0, SHUFFLE);
	for (uint64_t i = 0; i < n; i++) {
		uint64_t at = leat_perm_at(&perm, i);

		assert_true(at < n);
		assert_false(seen[at]);
		seen[at] = true;
		assert_true(leat_perm_inverse(&perm, at) == i);
	}
	free(seen);
}

static void
every_number_comes_once_and_the_inverse_finds_it(void **state)
{
	(void)state;
	for (uint64_t n = 0; n <= 300; n++)
		for (uint64_t seed = 0; seed < 5; seed++)
			assert_is_permutation(n, seed);
	assert_is_permutation(1023, 1);
	assert_is_permutation(1024, 1);
	assert_is_permutation(1025, 1);
	assert_is_permutation(99999, 1);
}

static void
many_numbers_are_permuted_as_one_is(void **state)
{
	(void)state;
	for (uint64_t n = 0; n < 3000; n += n < 40 ? 1 : 97) {
		struct leat_perm perm;
		uint64_t at[61];

		leat_perm_init(&perm, n, n, 1, SHUFFLE);
		for (size_t count = 0; count <= 61 && n > 0; count++) {
			for (size_t i = 0; i < count; i++)
				at[i] = (i * 37 + count) % n;
			leat_perm_many(&perm, at, count);
			for (size_t i = 0; i < count; i++)
				assert_true(at[i] == leat_perm_at(&perm, (i * 37 + count) % n));
		}
	}
}

static void
large_permutations_are_inverted_exactly(void **state)
{
	static const uint64_t sizes[] = {((uint64_t)1 << 32) - 1, ((uint64_t)1 << 40) + 7, ((uint64_t)1 << 62) - 1,
	                                 (uint64_t)1 << 62};
	struct leat_perm perm;

	(void)state;
	for (size_t s = 0; s < sizeof(sizes) / sizeof(sizes[0]); s++) {
		leat_perm_init(&perm, sizes[s], s, s, SHUFFLE);
		for (uint64_t i = 0; i < 1000; i++) {
			uint64_t from = i < 500 ? i : sizes[s] - 1 - i, to = leat_perm_at(&perm, from);

			assert_true(to < sizes[s]);
			assert_true(leat_perm_inverse(&perm, to) == from);
		}
	}
}

/* The table of docs/PLAN.md, made by another implementation. */
static void
permutations_are_those_of_the_documented_formula(void **state)
{
	static const struct {
		uint64_t n, rows, cols, at[4];
	} known[] = {
		{10, 3, 4, {4, 5, 0, 9}},
		{1023, 32, 32, {732, 474, 199, 170}},
		{1024, 32, 32, {343, 156, 843, 641}},
		{1000000, 1000, 1000, {950798, 588156, 656099, 979781}},
		{1099511627783, 1048575, 1048578, {359229585687, 638295310514, 1027721657966, 493814376299}},
		{4611686018427387904,
	         2147483648,
	         2147483648,
	         {4484744827263099189, 3919779902422698045, 1626170528568489224, 160548736219431196}},
	};

	(void)state;
	for (size_t k = 0; k < sizeof(known) / sizeof(known[0]); k++) {
		const uint64_t n = known[k].n, asked[4] = {0, 1, n / 2, n - 1};
		struct leat_perm perm;

		leat_perm_init(&perm, n, 1, 2, SHUFFLE);
		assert_true(perm.rows == known[k].rows && perm.cols == known[k].cols);
		for (int i = 0; i < 4; i++)
			assert_true(leat_perm_at(&perm, asked[i]) == known[k].at[i]);
	}
}

static uint64_t
factorial(uint64_t n)
{
	return n < 2 ? 1 : n * factorial(n - 1);
}

/* The permutation's number among all of its length, and whether it is odd. */
static uint64_t
permutation_number(const struct leat_perm *perm, bool *odd)
{
	uint64_t at[16], number = 0, inversions = 0;

	for (uint64_t i = 0; i < perm->n; i++)
		at[i] = leat_perm_at(perm, i);
	for (uint64_t i = 0; i < perm->n; i++) {
		uint64_t smaller = 0;

		for (uint64_t j = i + 1; j < perm->n; j++)
			smaller += at[j] < at[i];
		number = number * (perm->n - i) + smaller;
		inversions += smaller;
	}
	*odd = inversions % 2 == 1;
	return number;
}

/* Chi-square has mean df and deviation sqrt(2 df): four of these above the mean is chance once in 10,000 times. */
static void
assert_all_equally_likely(uint64_t n, uint64_t seeds)
{
	uint64_t kinds = factorial(n);
	uint32_t *seen = calloc(kinds, sizeof(*seen));
	double expected = (double)seeds / (double)kinds, df = (double)(kinds - 1), chi = 0;
	bool odd;

	assert_non_null(seen);
	for (uint64_t seed = 0; seed < seeds; seed++) {
		struct leat_perm perm;

		leat_perm_init(&perm, n, seed, 0, SHUFFLE);
		seen[permutation_number(&perm, &odd)]++;
	}
	for (uint64_t k = 0; k < kinds; k++)
		chi += ((double)seen[k] - expected) * ((double)seen[k] - expected) / expected;
	free(seen);
	assert_true(chi < df + 4 * sqrt(2 * df));
}

static void
all_orders_of_few_samples_are_equally_likely(void **state)
{
	(void)state;
	for (uint64_t n = 2; n <= 5; n++)
		assert_all_equally_likely(n, 60000);
	assert_all_equally_likely(6, 100000);
	assert_all_equally_likely(7, 200000);
}

/* A rectangle of two odd sides would give even permutations only. */
static void
odd_and_even_orders_are_equally_likely(void **state)
{
	(void)state;
	for (uint64_t n = 2; n <= 16; n++) {
		int odds = 0;

		for (uint64_t seed = 0; seed < 4000; seed++) {
			struct leat_perm perm;
			bool odd;

			leat_perm_init(&perm, n, seed, 0, SHUFFLE);
			permutation_number(&perm, &odd);
			odds += odd;
		}
		assert_in_range(odds, 2000 - 150, 2000 + 150);
	}
}

/* Where the network has 8 rounds: the distance of two samples that begin side by side, and of two that begin
 * in one column, is as likely to be any as any other. */
static void
neighbours_are_scattered_evenly(void **state)
{
	enum { N = 1024, CELLS = 64, SEEDS = 100000 };
	static uint32_t side[CELLS], column[CELLS];
	double chi_side = 0, chi_column = 0, expected = (double)SEEDS / CELLS, most;

	(void)state;
	for (uint64_t seed = 0; seed < SEEDS; seed++) {
		struct leat_perm perm;
		uint64_t at;

		leat_perm_init(&perm, N, seed, 0, SHUFFLE);
		at = leat_perm_at(&perm, 0);
		side[(leat_perm_at(&perm, 1) + N - at) % N * CELLS / N]++;
		column[(leat_perm_at(&perm, perm.cols) + N - at) % N * CELLS / N]++;
	}
	for (int i = 0; i < CELLS; i++) {
		chi_side += ((double)side[i] - expected) * ((double)side[i] - expected) / expected;
		chi_column += ((double)column[i] - expected) * ((double)column[i] - expected) / expected;
	}
	most = CELLS - 1 + 4 * sqrt(2.0 * (CELLS - 1));
	assert_true(chi_side < most);
	assert_true(chi_column < most);
}

static void
seed_epoch_and_stream_change_the_order(void **state)
{
	struct leat_perm base, other;
	const uint64_t n = 1000000;

	(void)state;
	leat_perm_init(&base, n, 1, 2, 3);
	leat_perm_init(&other, n, 1, 2, 3);
	assert_true(leat_perm_at(&base, 17) == leat_perm_at(&other, 17));
	leat_perm_init(&other, n, 2, 2, 3);
	assert_true(leat_perm_at(&base, 17) != leat_perm_at(&other, 17));
	leat_perm_init(&other, n, 1, 3, 3);
	assert_true(leat_perm_at(&base, 17) != leat_perm_at(&other, 17));
	leat_perm_init(&other, n, 1, 2, 4);
	assert_true(leat_perm_at(&base, 17) != leat_perm_at(&other, 17));
}

static void
normals_have_the_moments_and_the_tails_of_their_distribution(void **state)
{
	enum { COUNT = 200000 };
	static float x[COUNT + 1];
	double sum = 0, squares = 0, cubes = 0, product = 0;
	int beyond[3] = {0};
	struct leat_rng rng, again;

	(void)state;
	leat_rng_init(&rng, 1, 2, 3, 4);
	leat_rng_init(&again, 1, 2, 3, 4);
	x[COUNT] = 77;
	leat_rng_normals(&rng, x, COUNT);
	for (int i = 0; i < COUNT; i++) {
		assert_true(isfinite(x[i]));
		sum += (double)x[i];
		squares += (double)x[i] * (double)x[i];
		cubes += pow((double)x[i], 3);
		product += i ? (double)x[i] * (double)x[i - 1] : 0;
		for (int k = 0; k < 3; k++)
			beyond[k] += fabsf(x[i]) > (float)(k + 1);
	}
	/* Five standard deviations each. */
	assert_true(fabs(sum / COUNT) < 0.0112 && fabs(squares / COUNT - 1) < 0.0159 && fabs(cubes / COUNT) < 0.044);
	assert_true(fabs(product / COUNT) < 0.0112);
	assert_in_range(beyond[0], 63462 - 1042, 63462 + 1042);
	assert_in_range(beyond[1], 9100 - 467, 9100 + 467);
	assert_in_range(beyond[2], 540 - 117, 540 + 117);
	/* An odd number of them: the last stands alone, and nothing behind it is touched. */
	leat_rng_normals(&again, x + COUNT - 3, 3);
	assert_true(x[COUNT] == 77);
	assert_true(x[COUNT - 3] == x[0] && x[COUNT - 2] == x[1] && x[COUNT - 1] == x[2]);
}

int
main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(philox_gives_the_published_values),
		cmocka_unit_test(a_stream_is_what_its_layout_says),
		cmocka_unit_test(every_part_of_a_streams_name_matters),
		cmocka_unit_test(below_is_in_range_and_reaches_every_value),
		cmocka_unit_test(uniform_follows_its_formula),
		cmocka_unit_test(uniform_never_gives_its_upper_end),
		cmocka_unit_test(normals_have_the_moments_and_the_tails_of_their_distribution),
		cmocka_unit_test(every_number_comes_once_and_the_inverse_finds_it),
		cmocka_unit_test(many_numbers_are_permuted_as_one_is),
		cmocka_unit_test(large_permutations_are_inverted_exactly),
		cmocka_unit_test(permutations_are_those_of_the_documented_formula),
		cmocka_unit_test(all_orders_of_few_samples_are_equally_likely),
		cmocka_unit_test(odd_and_even_orders_are_equally_likely),
		cmocka_unit_test(neighbours_are_scattered_evenly),
		cmocka_unit_test(seed_epoch_and_stream_change_the_order),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
