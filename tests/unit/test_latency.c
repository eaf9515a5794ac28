/* test_latency.c - the histogram of latencies */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <pthread.h>
#include <string.h>

#include "store/latency.h"

static const uint64_t ms = 1000000;

static void
a_percentile_is_at_most_an_eighth_too_high(void **state)
{
	(void)state;
	for (uint64_t ns = 20000; ns < 30 * 1000 * ms; ns += ns / 7) {
		struct leat_latency latency = {0};

		for (int i = 0; i < 100; i++)
			leat_latency_add(&latency, i < 50 ? ns : 2 * ns);
		assert_in_range(leat_latency_percentile(&latency, 50, 100), ns, ns + ns / 8 + 1);
		assert_in_range(leat_latency_percentile(&latency, 51, 100), 2 * ns, 2 * (ns + ns / 8 + 1));
	}
}

static void
one_in_a_hundred_is_past_the_99th(void **state)
{
	struct leat_latency latency = {0};

	(void)state;
	for (int i = 0; i < 1000; i++)
		leat_latency_add(&latency, i % 100 == 7 ? 500 * ms : 10 * ms);
	assert_in_range(leat_latency_percentile(&latency, 99, 100), 10 * ms, 12 * ms);
	assert_in_range(leat_latency_percentile(&latency, 100, 100), 500 * ms, 570 * ms);
}

static void
with_few_values_nothing_is_known(void **state)
{
	struct leat_latency latency = {0};

	(void)state;
	assert_int_equal(leat_latency_percentile(&latency, 99, 0), 0);
	for (int i = 0; i < 99; i++)
		leat_latency_add(&latency, ms);
	assert_int_equal(leat_latency_percentile(&latency, 99, 100), 0);
	leat_latency_add(&latency, ms);
	assert_true(leat_latency_percentile(&latency, 99, 100) >= ms);
}

static void
any_value_has_a_place(void **state)
{
	struct leat_latency latency = {0};

	(void)state;
	leat_latency_add(&latency, 0);
	assert_in_range(leat_latency_percentile(&latency, 100, 1), 1, 20000);
	leat_latency_add(&latency, UINT64_MAX);
	assert_in_range(leat_latency_percentile(&latency, 100, 1), 60 * 1000 * ms, 80 * 1000 * ms);
}

static void
what_was_long_ago_is_forgotten(void **state)
{
	struct leat_latency latency = {0};

	(void)state;
	for (int i = 0; i < LEAT_LATENCY_WINDOW; i++)
		leat_latency_add(&latency, 900 * ms);
	for (int i = 0; i < 8 * LEAT_LATENCY_WINDOW; i++)
		leat_latency_add(&latency, 5 * ms);
	assert_in_range(leat_latency_percentile(&latency, 99, 100), 5 * ms, 6 * ms);
}

static void *
add_many(void *arg)
{
	for (int i = 0; i < 50000; i++)
		leat_latency_add(arg, 10 * ms);
	return NULL;
}

static void
threads_may_add_at_the_same_time(void **state)
{
	struct leat_latency latency = {0};
	pthread_t thread[4];

	(void)state;
	for (int i = 0; i < 4; i++)
		assert_int_equal(pthread_create(&thread[i], NULL, add_many, &latency), 0);
	for (int i = 0; i < 4; i++)
		pthread_join(thread[i], NULL);
	assert_in_range(leat_latency_percentile(&latency, 99, 100), 10 * ms, 12 * ms);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_percentile_is_at_most_an_eighth_too_high),
		cmocka_unit_test(one_in_a_hundred_is_past_the_99th),
		cmocka_unit_test(with_few_values_nothing_is_known),
		cmocka_unit_test(any_value_has_a_place),
		cmocka_unit_test(what_was_long_ago_is_forgotten),
		cmocka_unit_test(threads_may_add_at_the_same_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
