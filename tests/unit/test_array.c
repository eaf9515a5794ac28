/* test_array.c - arrays that grow */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>

#include "base/array.h"
#include "base/mem.h"

struct item {
	char text[24];
};

static struct leat_mem mem;
static struct leat_err err;
static struct item *array;
static size_t cap;

static int
set_up(void **state)
{
	(void)state;
	leat_mem_init(&mem, SIZE_MAX);
	leat_err_clear(&err);
	array = NULL;
	cap = 0;
	return 0;
}

static int
tear_down(void **state)
{
	(void)state;
	leat_free(&mem, array);
	return mem.used == 0 ? 0 : -1;
}

static enum leat_status
grow(size_t need, size_t max)
{
	return LEAT_GROW(&mem, array, cap, need, max, "the list", &err);
}

static void
items_stay_new_ones_are_zero_and_the_capacity_doubles(void **state)
{
	size_t times = 0, before;

	(void)state;
	for (size_t count = 0; count < 1000; count++) {
		before = cap;
		assert_int_equal(grow(count + 1, SIZE_MAX), LEAT_OK);
		assert_true(cap > count);
		times += cap != before;
		assert_string_equal(array[count].text, "");
		assert_string_equal(array[cap - 1].text, "");
		memcpy(array[count].text, &count, sizeof(count));
	}
	for (size_t i = 0; i < 1000; i++)
		assert_memory_equal(array[i].text, &i, sizeof(i));
	assert_true(times < 12);
	before = cap;
	assert_int_equal(grow(5000, SIZE_MAX), LEAT_OK);
	assert_int_equal(cap, 5000);
	assert_int_equal(grow(1, SIZE_MAX), LEAT_OK); /* never shrinks */
	assert_int_equal(cap, 5000);
}

static void
an_array_never_grows_beyond_its_maximum(void **state)
{
	(void)state;
	assert_int_equal(grow(60, 100), LEAT_OK);
	assert_int_equal(grow(61, 100), LEAT_OK);
	assert_int_equal(cap, 100);
	assert_int_equal(grow(101, 100), LEAT_LIMIT);
	assert_string_equal(err.text, "the list cannot hold more than 100 entries");
	assert_int_equal(cap, 100);
}

static void
without_memory_the_array_stays_as_it_was(void **state)
{
	struct item *old;
	size_t full;

	(void)state;
	assert_int_equal(grow(3, SIZE_MAX), LEAT_OK);
	old = array;
	full = cap;
	mem.fail_after = 0;
	assert_int_equal(grow(full + 1, SIZE_MAX), LEAT_NOMEM);
	assert_ptr_equal(array, old);
	assert_int_equal(cap, full);
	mem.fail_after = -1;
	leat_err_clear(&err);
	assert_int_equal(grow(SIZE_MAX / 2, SIZE_MAX), LEAT_NOMEM); /* as bytes it would overflow */
	assert_ptr_equal(array, old);
	leat_err_clear(&err);
	mem.limit = mem.used;
	assert_int_equal(grow(full + 1, SIZE_MAX), LEAT_LIMIT);
	assert_non_null(strstr(err.text, "the list needs"));
}

int
main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(items_stay_new_ones_are_zero_and_the_capacity_doubles, set_up,
	                                        tear_down),
		cmocka_unit_test_setup_teardown(an_array_never_grows_beyond_its_maximum, set_up, tear_down),
		cmocka_unit_test_setup_teardown(without_memory_the_array_stays_as_it_was, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
