/* test_one_hot.c - the op one_hot */
#include "support/bench.h"

static struct bench bench;

static const float *
run(const char *spec, int64_t label)
{
	bench_put(&bench, &label, LEAT_I64, 0, (const int64_t[]){0}, LEAT_LAYOUT_NONE);
	if (bench_run(&bench, spec) != LEAT_OK)
		fail_msg("%s: %s", spec, bench.err.text);
	return bench.sample.field[0].data;
}

static void
the_class_is_on_and_the_others_are_off(void **state)
{
	const float first[] = {1, 0, 0}, last[] = {-2, -2, 8.5f}, only[] = {1};

	(void)state;
	assert_memory_equal(run("one_hot(3)", 0), first, sizeof(first));
	assert_memory_equal(run("one_hot(3, on=8.5, off=-2)", 2), last, sizeof(last));
	assert_memory_equal(run("one_hot(1)", 0), only, sizeof(only));
}

static void
int32_is_as_good_as_int64(void **state)
{
	const int32_t label = 1;
	const float want[] = {0, 1};

	(void)state;
	bench_put(&bench, &label, LEAT_I32, 0, (const int64_t[]){0}, LEAT_LAYOUT_NONE);
	assert_int_equal(bench_run(&bench, "one_hot(2)"), LEAT_OK);
	assert_memory_equal(bench.sample.field[0].data, want, sizeof(want));
}

static void
smoothing_spreads_a_share_over_all(void **state)
{
	const float some[] = {0.025f, 0.925f, 0.025f, 0.025f}, all[] = {0.25f, 0.25f, 0.25f, 0.25f};
	const float scaled[] = {0.5f, -0.5f}; /* from -1 and 1, half way to their mean */

	(void)state;
	assert_memory_equal(run("one_hot(4, smoothing=0.1)", 1), some, sizeof(some));
	assert_memory_equal(run("one_hot(4, smoothing=1)", 1), all, sizeof(all));
	assert_memory_equal(run("one_hot(2, on=1, off=-1, smoothing=0.5)", 0), scaled, sizeof(scaled));
	assert_memory_equal(run("one_hot(1, smoothing=0.5)", 0), (const float[]){1}, sizeof(float));
}

static void
a_number_that_is_no_class_is_bad_data(void **state)
{
	const int64_t wrong[] = {-1, 10, INT64_MIN, INT64_MAX, (int64_t)1 << 32};

	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		char want[100];

		bench_put(&bench, &wrong[i], LEAT_I64, 0, (const int64_t[]){0}, LEAT_LAYOUT_NONE);
		assert_int_equal(bench_run(&bench, "one_hot(10)"), LEAT_DATA);
		snprintf(want, sizeof(want), "the class is %lld, expected 0 to 9", (long long)wrong[i]);
		assert_string_equal(bench.err.text, want);
	}
}

static void
only_one_whole_number_is_taken(void **state)
{
	const int64_t list[] = {1};
	const float number = 1;

	(void)state;
	bench_put(&bench, list, LEAT_I64, 1, (const int64_t[]){1}, LEAT_LAYOUT_NONE);
	assert_int_equal(bench_run(&bench, "one_hot(10)"), LEAT_SPEC);
	assert_string_equal(bench.err.text, "one_hot wants one int64 or int32 number, such as a label");
	bench_put(&bench, &number, LEAT_F32, 0, (const int64_t[]){0}, LEAT_LAYOUT_NONE);
	assert_int_equal(bench_run(&bench, "one_hot(10)"), LEAT_SPEC);
}

static void
options_out_of_range_are_refused(void **state)
{
	static const char *const specs[] = {"one_hot", "one_hot(0)", "one_hot(20000000)", "one_hot(2, smoothing=1.5)",
	                                    "one_hot(2, smoothing=-0.1)"};

	(void)state;
	for (size_t i = 0; i < sizeof(specs) / sizeof(*specs); i++) {
		bench_put(&bench, &(const int64_t){0}, LEAT_I64, 0, (const int64_t[]){0}, LEAT_LAYOUT_NONE);
		assert_int_equal(bench_run(&bench, specs[i]), LEAT_SPEC);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_class_is_on_and_the_others_are_off),
		cmocka_unit_test(int32_is_as_good_as_int64),
		cmocka_unit_test(smoothing_spreads_a_share_over_all),
		cmocka_unit_test(a_number_that_is_no_class_is_bad_data),
		cmocka_unit_test(only_one_whole_number_is_taken),
		cmocka_unit_test(options_out_of_range_are_refused),
	};
	int failed;

	bench_open(&bench);
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	bench_close(&bench);
	return failed;
}
