/* test_tune_threads.c - how many threads per action are fastest, measured with commands whose times are known
 *
 * Commands sleep, so the times do not depend on how busy the machine is: differences are large. */
#include <jansson.h>

#include "step/tune_threads.h"
#include "support/runner.h"

static void
set_slices(struct trial *t)
{
	static const char *values[] = {"1", "2"};
	static struct leat_variable variable = {.name = "part", .value = values, .values = 2};
	static size_t length = 2;

	t->step.slices =
		(struct leat_slices){.variable = &variable, .variables = 1, .length = &length, .axes = 1, .count = 2};
}

static struct leat_tune
tune_for(struct trial *t, const char *command, unsigned cpus)
{
	t->step.text = command;
	return (struct leat_tune){.runner = &t->runner, .action = &t->action, .cpus = cpus};
}

static void
test_threads_that_only_cost_are_advised_against(void **state)
{
	struct trial *t = *state;
	struct leat_tune tune;

	set_slices(t);
	/* No faster with more threads: then more actions at a time are better. */
	tune = tune_for(t, "sleep 1; : > $out", 4);
	assert_int_equal(leat_tune_threads(&tune, &t->err), LEAT_OK);
	assert_int_equal(tune.rows, 3);
	assert_int_equal(tune.row[0].threads, 1);
	assert_int_equal(tune.row[0].copies, 4);
	assert_int_equal(tune.row[1].copies, 2);
	assert_int_equal(tune.row[2].threads, 4);
	assert_int_equal(tune.row[2].copies, 1);
	assert_int_equal(tune.best, 0);
	assert_non_null(strstr(tune.advice, "`cpus: 1` is fastest"));
	assert_non_null(strstr(tune.advice, "`cpus: 4`"));
}

static void
test_threads_that_help_are_advised(void **state)
{
	struct trial *t = *state;
	struct leat_tune tune = tune_for(t, "test $OMP_NUM_THREADS = 3 || sleep 2; : > $out", 3);

	/* The step has no slices: it is alone, so all cpus are its. */
	assert_int_equal(leat_tune_threads(&tune, &t->err), LEAT_OK);
	assert_int_equal(tune.rows, 3);
	assert_int_equal(tune.row[1].threads, 2);
	assert_int_equal(tune.row[1].copies, 1);
	assert_int_equal(tune.best, 2);
	assert_non_null(strstr(tune.advice, "`cpus: 3` is fastest"));
}

static void
test_a_command_that_fails_is_an_error(void **state)
{
	struct trial *t = *state;
	struct leat_tune tune = tune_for(t, "echo broken; exit 4", 2);

	assert_int_equal(leat_tune_threads(&tune, &t->err), LEAT_FUNCTION);
	assert_string_equal(t->err.text, "decode with 1 thread exited with 4; its last lines: broken");
	leat_err_clear(&t->err);
	tune = tune_for(t, "sleep 90000", 2);
	atomic_store(&t->stop, true);
	assert_int_equal(leat_tune_threads(&tune, &t->err), LEAT_END);
	atomic_store(&t->stop, false);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, trial_open, trial_close)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_threads_that_only_cost_are_advised_against),
		TEST(test_threads_that_help_are_advised),
		TEST(test_a_command_that_fails_is_an_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
