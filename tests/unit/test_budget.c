/* test_budget.c - the sum of cpus that actions use never exceeds the budget, and nobody waits for ever */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/threads.h"
#include "step/budget.h"

static void
test_no_more_cpus_than_the_process_may_use(void **state)
{
	unsigned cpus = leat_cpus("");

	(void)state;
	assert_int_equal(leat_budget_cpus(0), cpus);
	assert_int_equal(leat_budget_cpus(cpus + 7), cpus);
	assert_int_equal(leat_budget_cpus(1), 1);
}

static void
test_what_does_not_fit_is_refused(void **state)
{
	struct leat_budget budget;

	(void)state;
	leat_budget_init(&budget, 4);
	assert_true(leat_budget_try(&budget, 3));
	assert_false(leat_budget_try(&budget, 2));
	assert_true(leat_budget_try(&budget, 1));
	assert_false(leat_budget_try(&budget, 1));
	leat_budget_give(&budget, 3);
	assert_true(leat_budget_try(&budget, 2));
	leat_budget_end(&budget);
}

static void
test_an_action_gets_at_most_all_cpus(void **state)
{
	struct leat_budget budget;

	(void)state;
	leat_budget_init(&budget, 4);
	assert_int_equal(leat_budget_grant(&budget, 64), 4);
	assert_int_equal(leat_budget_grant(&budget, 0), 4);
	assert_true(leat_budget_try(&budget, 64));
	assert_false(leat_budget_try(&budget, 1));
	leat_budget_give(&budget, 64);
	assert_int_equal(budget.used, 0);
	leat_budget_end(&budget);
}

struct crowd {
	struct leat_budget budget;
	atomic_uint used, most, served;
};

enum { TOTAL = 5, THREADS = 8, ROUNDS = 500 };

static void
work(void *arg, unsigned i)
{
	struct crowd *crowd = arg;
	unsigned cpus = i == 0 ? TOTAL : 1 + i % 3; /* the first needs all of them */

	for (int round = 0; round < ROUNDS; round++) {
		unsigned used, most;

		leat_budget_take(&crowd->budget, cpus);
		used = atomic_fetch_add(&crowd->used, cpus) + cpus;
		most = atomic_load(&crowd->most);
		while (used > most && !atomic_compare_exchange_weak(&crowd->most, &most, used))
			;
		atomic_fetch_sub(&crowd->used, cpus);
		leat_budget_give(&crowd->budget, cpus);
		atomic_fetch_add(&crowd->served, 1);
	}
}

static void
test_the_sum_never_exceeds_the_total_and_all_are_served(void **state)
{
	struct leat_threads threads = {0};
	struct crowd *crowd = calloc(1, sizeof(*crowd));
	struct leat_mem mem;

	(void)state;
	leat_mem_init(&mem, SIZE_MAX);
	leat_budget_init(&crowd->budget, TOTAL);
	assert_int_equal(leat_threads_start(&threads, &mem, THREADS, "work", work, crowd, NULL), LEAT_OK);
	leat_threads_join(&threads);
	assert_int_equal(atomic_load(&crowd->served), THREADS * ROUNDS);
	assert_true(atomic_load(&crowd->most) <= TOTAL);
	assert_int_equal(crowd->budget.used, 0);
	leat_budget_end(&crowd->budget);
	free(crowd);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_no_more_cpus_than_the_process_may_use),
		cmocka_unit_test(test_what_does_not_fit_is_refused),
		cmocka_unit_test(test_an_action_gets_at_most_all_cpus),
		cmocka_unit_test(test_the_sum_never_exceeds_the_total_and_all_are_served),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
