/* test_meter.c - the current rate of a run, and the time left */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "trace/meter.h"

static const uint64_t s = 1000000000;

static void
mark(struct leat_meter *meter, double at, double samples, double done)
{
	leat_meter_add(meter, &(struct leat_meter_mark){(uint64_t)(at * (double)s), samples, samples * 10, done});
}

static void
the_rate_is_that_of_the_last_second(void **state)
{
	struct leat_meter meter = {0};
	double samples, bytes;

	(void)state;
	leat_meter_rate(&meter, &samples, &bytes);
	assert_true(samples == 0 && bytes == 0);
	mark(&meter, 0, 0, 0);
	leat_meter_rate(&meter, &samples, &bytes);
	assert_true(samples == 0);
	for (int i = 1; i <= 20; i++) /* 4 s at 1000/s, then 2 s at 100/s */
		mark(&meter, 0.2 * i, 200 * i, 0);
	leat_meter_rate(&meter, &samples, &bytes);
	assert_true(samples > 999 && samples < 1001 && bytes > 9990 && bytes < 10010);
	for (int i = 1; i <= 10; i++)
		mark(&meter, 4 + 0.2 * i, 4000 + 20 * i, 0);
	leat_meter_rate(&meter, &samples, &bytes);
	assert_true(samples > 99 && samples < 101);
}

static void
time_left_follows_the_last_few_seconds(void **state)
{
	struct leat_meter meter = {0};

	(void)state;
	assert_true(leat_meter_left(&meter) < 0);
	mark(&meter, 0, 0, 0);
	assert_true(leat_meter_left(&meter) < 0);
	mark(&meter, 1, 100, 0.1);
	assert_true(leat_meter_left(&meter) > 8.9 && leat_meter_left(&meter) < 9.1);
	for (int i = 1; i <= 100; i++) /* now at a tenth of that */
		mark(&meter, 1 + 0.2 * i, 100, 0.1 + 0.002 * i);
	assert_true(leat_meter_left(&meter) > 69 && leat_meter_left(&meter) < 71);
	for (int i = 1; i <= 100; i++) /* and now at no pace at all */
		mark(&meter, 100 + 0.2 * i, 100, 0.3);
	assert_true(leat_meter_left(&meter) < 0);
}

static void
times_are_written_as_on_a_clock(void **state)
{
	char buf[32];

	(void)state;
	assert_string_equal(leat_meter_text(buf, sizeof buf, 0.2), "1 s");
	assert_string_equal(leat_meter_text(buf, sizeof buf, 59), "59 s");
	assert_string_equal(leat_meter_text(buf, sizeof buf, 60), "1:00");
	assert_string_equal(leat_meter_text(buf, sizeof buf, 151), "2:31");
	assert_string_equal(leat_meter_text(buf, sizeof buf, 11050), "3:04:10");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_rate_is_that_of_the_last_second),
		cmocka_unit_test(time_left_follows_the_last_few_seconds),
		cmocka_unit_test(times_are_written_as_on_a_clock),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
