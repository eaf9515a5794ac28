/* What limits a feed, told from what was counted. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "trace/counters.h"

static const struct leat_totals busy = {.read_ns = 10, .op_ns = 100, .stage_ns = {5, 70, 25}};

static void
a_consumer_that_is_served_at_once_sets_the_pace(void **state)
{
	struct leat_waits waits = {.wait_ns = 4, .run_ns = 96, .ahead = true};

	(void)state;
	assert_int_equal(leat_limit(&busy, 3, &waits), LEAT_LIMIT_STEP);
}

static void
a_feed_that_makes_nothing_ahead_lacks_prefetch(void **state)
{
	struct leat_waits waits = {.wait_ns = 50, .run_ns = 50, .ahead = false};

	(void)state;
	assert_int_equal(leat_limit(&busy, 3, &waits), LEAT_LIMIT_PREFETCH);
}

static void
waiting_while_all_wait_for_a_device_is_the_disk(void **state)
{
	struct leat_waits waits = {.wait_ns = 50, .run_ns = 50, .disk_ns = 30, .ahead = true};

	(void)state;
	assert_int_equal(leat_limit(&busy, 3, &waits), LEAT_LIMIT_DISK);
	waits.disk_ns = 20;
	assert_int_equal(leat_limit(&busy, 3, &waits), 1);
}

static void
otherwise_the_slowest_stage_or_reading_is_it(void **state)
{
	struct leat_waits waits = {.wait_ns = 50, .run_ns = 50, .ahead = true};
	struct leat_totals reading = {.read_ns = 100, .op_ns = 10, .stage_ns = {10}};

	(void)state;
	assert_int_equal(leat_limit(&busy, 3, &waits), 1);
	assert_int_equal(leat_limit(&reading, 1, &waits), LEAT_LIMIT_READ);
	assert_int_equal(leat_limit(&busy, 0, &waits), LEAT_LIMIT_READ);
}

static void
totals_add_up_over_workers(void **state)
{
	struct leat_counters a = {0}, b = {0};
	struct leat_totals totals = {0};

	(void)state;
	leat_count(&a.read_ns, 3);
	leat_count(&b.read_ns, 4);
	leat_count(&a.stage_ns[2], 5);
	leat_count(&b.stage_ns[2], 6);
	leat_totals_add(&totals, &a);
	leat_totals_add(&totals, &b);
	assert_int_equal(totals.read_ns, 7);
	assert_int_equal(totals.stage_ns[2], 11);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_consumer_that_is_served_at_once_sets_the_pace),
		cmocka_unit_test(a_feed_that_makes_nothing_ahead_lacks_prefetch),
		cmocka_unit_test(waiting_while_all_wait_for_a_device_is_the_disk),
		cmocka_unit_test(otherwise_the_slowest_stage_or_reading_is_it),
		cmocka_unit_test(totals_add_up_over_workers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
