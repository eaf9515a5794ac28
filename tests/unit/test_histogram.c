/* test_histogram.c - times are kept in buckets of an eighth of a doubling, and nothing is lost */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <pthread.h>
#include <stdlib.h>

#include "base/rng.h"
#include "trace/histogram.h"

static void
the_end_of_a_bucket_belongs_to_it(void **state)
{
	(void)state;
	for (unsigned i = 0; i + 1 < LEAT_HISTOGRAM_BUCKETS; i++) {
		struct leat_histogram h = {0};
		struct leat_distribution d;
		uint64_t end = leat_histogram_end(i);

		leat_histogram_add(&h, end);
		leat_histogram_add(&h, end + 1);
		leat_histogram_read(&h, &d);
		assert_int_equal(d.bucket[i], 1);
		assert_int_equal(d.bucket[i + 1], 1);
		assert_true(leat_histogram_end(i + 1) > end);
		assert_true((double)leat_histogram_end(i + 1) <= (double)end * 1.126);
	}
	assert_int_equal(leat_histogram_end(7), 2048);
	assert_true(leat_histogram_end(LEAT_HISTOGRAM_BUCKETS - 1) > 4000ull * 1000000000);
}

static void
every_time_has_a_bucket(void **state)
{
	const uint64_t times[] = {0, 1, 1024, 1025, (uint64_t)1 << 42, ((uint64_t)1 << 42) + 1, UINT64_MAX};
	struct leat_histogram h = {0};
	struct leat_distribution d;

	(void)state;
	for (size_t i = 0; i < sizeof times / sizeof *times; i++)
		leat_histogram_add(&h, times[i]);
	leat_histogram_read(&h, &d);
	assert_int_equal(d.count, 7);
	assert_int_equal(d.bucket[0], 4);
	assert_int_equal(d.bucket[LEAT_HISTOGRAM_BUCKETS - 1], 3);
	assert_true(d.max_ns == UINT64_MAX);
}

static void
an_empty_histogram_has_no_quantiles(void **state)
{
	struct leat_histogram h = {0};
	struct leat_distribution d;

	(void)state;
	leat_histogram_read(&h, &d);
	assert_int_equal(d.count, 0);
	assert_true(leat_distribution_quantile(&d, 0.5) == 0);
}

static int
compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

static void
quantiles_are_right_within_an_eighth(void **state)
{
	enum { VALUES = 20000 };
	const double qs[] = {0.01, 0.1, 0.5, 0.9, 0.99, 0.999};
	uint64_t *value = malloc(VALUES * sizeof *value), sum = 0;
	struct leat_histogram h = {0};
	struct leat_distribution d;
	struct leat_rng rng;

	(void)state;
	leat_rng_init(&rng, 1, 2, 3, 4);
	for (int i = 0; i < VALUES; i++) {
		value[i] = (uint64_t)1 << (10 + leat_rng_below(&rng, 20));
		value[i] += leat_rng_below(&rng, value[i]);
		sum += value[i];
		leat_histogram_add(&h, value[i]);
	}
	qsort(value, VALUES, sizeof *value, compare);
	leat_histogram_read(&h, &d);
	assert_int_equal(d.count, VALUES);
	assert_true(d.sum_ns == sum);
	assert_true(d.max_ns == value[VALUES - 1]);
	for (size_t i = 0; i < sizeof qs / sizeof *qs; i++) {
		double is = (double)value[(int)(qs[i] * VALUES)], found = leat_distribution_quantile(&d, qs[i]);

		assert_true(found > is / 1.13 && found < is * 1.13);
	}
	assert_true(leat_distribution_quantile(&d, 1) == (double)value[VALUES - 1]);
	free(value);
}

static void
no_quantile_exceeds_the_longest_time(void **state)
{
	struct leat_histogram h = {0};
	struct leat_distribution d;

	(void)state;
	leat_histogram_add(&h, 1030); /* its bucket ends at 1152 */
	leat_histogram_read(&h, &d);
	assert_true(leat_distribution_quantile(&d, 0.99) <= 1030);
}

enum { THREADS = 4, EACH = 20000 };

static void *
add_many(void *arg)
{
	for (unsigned i = 0; i < EACH; i++)
		leat_histogram_add(arg, 1000 * (1 + i));
	return NULL;
}

static void
threads_add_at_once(void **state)
{
	struct leat_histogram h = {0};
	struct leat_distribution d;
	pthread_t thread[THREADS];

	(void)state;
	for (int i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&thread[i], NULL, add_many, &h), 0);
	for (int i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
	leat_histogram_read(&h, &d);
	assert_int_equal(d.count, THREADS * EACH);
	assert_int_equal(d.max_ns, 1000 * EACH);
	assert_int_equal(d.sum_ns, (uint64_t)THREADS * 1000 * EACH * (EACH + 1) / 2);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_end_of_a_bucket_belongs_to_it),
		cmocka_unit_test(every_time_has_a_bucket),
		cmocka_unit_test(an_empty_histogram_has_no_quantiles),
		cmocka_unit_test(quantiles_are_right_within_an_eighth),
		cmocka_unit_test(no_quantile_exceeds_the_longest_time),
		cmocka_unit_test(threads_add_at_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
