/* test_progress_tree.c - what the tree of a running build says about the time left */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "base/clock.h"
#include "cli/progress.h"
#include "step/runner.h"

enum { EXPECTED_S = 36000, RAN_S = 17955 }; /* 5 hours and 45 seconds are left */

/* Two actions of one step, which run, on 8 CPUs. */
static void
draw(unsigned cpus, struct leat_mem *mem, struct leat_str *tree)
{
	size_t order[] = {0};
	char slice[2][4] = {"i=1", "i=2"};
	struct leat_running running[2];
	struct leat_step step = {.name = "fit", .cpus = cpus};
	struct leat_project project = {.mem = mem, .step = &step, .steps = 1, .order = order};
	struct leat_progress_step counts = {.actions = 2, .running = 2, .expected_s = 2.0 * EXPECTED_S, .timed = true};
	struct leat_progress_action action[2];
	struct leat_build_progress p = {
		.mem = mem, .project = &project, .step = &counts, .action = action, .actions = 2, .jobs = 8};

	for (int i = 0; i < 2; i++) {
		leat_running_init(&running[i]);
		action[i] = (struct leat_progress_action){.step = &step,
		                                          .slice = slice[i],
		                                          .begun_ns = leat_now() - RAN_S * (uint64_t)1000000000,
		                                          .expected_s = EXPECTED_S,
		                                          .running = &running[i]};
	}
	leat_str_init(tree, mem, 1 << 16);
	assert_int_equal(leat_progress_tree(&p, tree, 0, 0), 4);
	for (int i = 0; i < 2; i++)
		leat_running_end(&running[i]);
}

static void
says(unsigned cpus, const char *left)
{
	struct leat_mem mem;
	struct leat_str tree;

	leat_mem_init(&mem, SIZE_MAX);
	draw(cpus, &mem, &tree);
	if (!strstr(leat_str_text(&tree), left))
		fail_msg("%s", leat_str_text(&tree));
	leat_str_free(&tree);
}

static void
actions_that_use_all_cpus_together_end_together(void **state)
{
	(void)state;
	says(4, "about 5 h 0 min left");
}

static void
the_longest_action_is_the_least_that_is_left(void **state)
{
	(void)state;
	says(1, "about 5 h 0 min left");
}

static void
actions_that_share_cpus_take_longer(void **state)
{
	(void)state;
	says(8, "about 10 h 1 min left");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(actions_that_use_all_cpus_together_end_together),
		cmocka_unit_test(the_longest_action_is_the_least_that_is_left),
		cmocka_unit_test(actions_that_share_cpus_take_longer),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
