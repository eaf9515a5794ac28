/* test_groups.c - slices grouped by shared variables */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "step/groups.h"

static struct leat_mem mem;
static struct leat_err err;

static const char *numbers[] = {"1", "2", "3", "4", "5", "6", "7", "8", "9", "10", "11", "12"};

/* A product of variables with values numbers[first] ... */
static struct leat_variable down_variable[3], up_variable[3];
static size_t down_length[3], up_length[3];

static struct leat_slices
product(struct leat_variable *variable, size_t *length, size_t count, const char *const *name, const size_t *values,
        const size_t *first)
{
	struct leat_slices slices = {
		.variable = variable, .variables = count, .length = length, .axes = count, .count = 1};

	for (size_t i = 0; i < count; i++) {
		variable[i] = (struct leat_variable){
			.name = name[i], .value = numbers + first[i], .values = values[i], .axis = i};
		length[i] = values[i];
		slices.count *= values[i];
	}
	return slices;
}

static int
set_up(void **state)
{
	(void)state;
	leat_mem_init(&mem, SIZE_MAX);
	leat_err_clear(&err);
	return 0;
}

static int
nothing_is_left(void **state)
{
	(void)state;
	return mem.used == 0 ? 0 : -1;
}

/* Groups by what the definition says, pair by pair. */
static void
check_against_pairs(const struct leat_groups *groups, const struct leat_slices *down, const bool *by,
                    const struct leat_slices *up)
{
	for (size_t d = 0; d < down->count; d++)
		for (size_t u = 0; u < up->count; u++) {
			bool equal = true;

			for (size_t v = 0; v < down->variables; v++)
				if (by[v])
					equal &= strcmp(leat_slice_value(down, d, v),
					                leat_slice_value(
								up, u,
								leat_slice_variable(up, down->variable[v].name))) == 0;
			assert_int_equal(equal, leat_group_of(groups->down, d) == leat_group_of(groups->up, u));
		}
}

static void
groups_join_slices_with_equal_values_of_shared_variables(void **state)
{
	struct leat_slices down = product(down_variable, down_length, 2, (const char *[]){"bin", "subject"},
	                                  (size_t[]){3, 4}, (size_t[]){0, 2});
	struct leat_slices up = product(up_variable, up_length, 3, (const char *[]){"subject", "fold", "bin"},
	                                (size_t[]){9, 2, 4}, (size_t[]){0, 0, 0});
	static const bool cases[][2] = {{false, false}, {true, false}, {false, true}, {true, true}};
	static const uint32_t counts[] = {1, 3, 4, 12};

	(void)state;
	for (size_t i = 0; i < 4; i++) {
		struct leat_groups groups;

		assert_int_equal(leat_groups_open(&groups, &mem, &down, cases[i], &up, &err), LEAT_OK);
		assert_int_equal(groups.count, counts[i]);
		check_against_pairs(&groups, &down, cases[i], &up);
		leat_groups_close(&groups);
	}
}

static void
variables_of_one_table_change_together(void **state)
{
	const char *site[] = {"a", "b", "a", "b", "a"};
	struct leat_variable rows[] = {{.name = "subject", .value = numbers, .values = 5},
	                               {.name = "site", .value = site, .values = 5}};
	size_t length = 5;
	struct leat_slices down = {.variable = rows, .variables = 2, .length = &length, .axes = 1, .count = 5};
	struct leat_groups groups;

	(void)state;
	assert_int_equal(leat_groups_open(&groups, &mem, &down, (bool[]){false, true}, &down, &err), LEAT_OK);
	assert_int_equal(groups.count, 2);
	check_against_pairs(&groups, &down, (bool[]){false, true}, &down);
	leat_groups_close(&groups);
}

static void
slices_in_the_same_order_need_no_list(void **state)
{
	struct leat_slices down =
		product(down_variable, down_length, 2, (const char *[]){"a", "b"}, (size_t[]){3, 4}, (size_t[]){0, 0});
	struct leat_groups groups;
	struct leat_members members;

	(void)state;
	assert_int_equal(leat_groups_open(&groups, &mem, &down, (bool[]){true, true}, &down, &err), LEAT_OK);
	assert_null(groups.down);
	assert_null(groups.up);
	assert_int_equal(leat_members_open(&members, &mem, groups.up, down.count, groups.count, &err), LEAT_OK);
	assert_int_equal(leat_members_count(&members, 7), 1);
	assert_int_equal(leat_members_at(&members, 7, 0), 7);
	leat_members_close(&members, &mem);
	leat_groups_close(&groups);
}

static void
members_are_all_slices_of_a_group_in_order(void **state)
{
	uint32_t of[] = {2, 0, LEAT_NO_GROUP, 2, 0, 2}, got[3];
	struct leat_members members;

	(void)state;
	assert_int_equal(leat_members_open(&members, &mem, of, 6, 3, &err), LEAT_OK);
	assert_int_equal(leat_members_count(&members, 0), 2);
	assert_int_equal(leat_members_count(&members, 1), 0);
	assert_int_equal(leat_members_count(&members, 2), 3);
	for (uint32_t i = 0; i < 3; i++)
		got[i] = leat_members_at(&members, 2, i);
	assert_memory_equal(got, ((uint32_t[]){0, 3, 5}), sizeof(got));
	leat_members_close(&members, &mem);
}

static void
each_allocation_may_fail(void **state)
{
	struct leat_slices slices =
		product(down_variable, down_length, 2, (const char *[]){"a", "b"}, (size_t[]){3, 4}, (size_t[]){0, 0});
	enum leat_status status = LEAT_NOMEM;

	(void)state;
	for (long n = 0; status != LEAT_OK; n++) {
		struct leat_groups groups;

		leat_err_clear(&err);
		atomic_store(&mem.fail_after, n);
		status = leat_groups_open(&groups, &mem, &slices, (bool[]){true, true}, &slices, &err);
		atomic_store(&mem.fail_after, -1);
		if (status == LEAT_OK)
			leat_groups_close(&groups);
		else
			assert_int_equal(status, LEAT_NOMEM);
		assert_int_equal(mem.used, 0);
		assert_true(n < 100);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(groups_join_slices_with_equal_values_of_shared_variables, set_up,
	                                        nothing_is_left),
		cmocka_unit_test_setup_teardown(variables_of_one_table_change_together, set_up, nothing_is_left),
		cmocka_unit_test_setup_teardown(slices_in_the_same_order_need_no_list, set_up, nothing_is_left),
		cmocka_unit_test_setup_teardown(members_are_all_slices_of_a_group_in_order, set_up, nothing_is_left),
		cmocka_unit_test_setup_teardown(each_allocation_may_fail, set_up, nothing_is_left),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
