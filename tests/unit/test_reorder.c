/* test_reorder.c - records in another order, in memory and by way of a file */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <dirent.h>
#include <string.h>

#include "base/hash.h"
#include "base/rng.h"
#include "base/threads.h"
#include "format/reorder.h"
#include "support/temp.h"

static struct leat_mem mem;
static struct leat_err err;
static struct temp temp;

static int
set_up(void **state)
{
	(void)state;
	leat_mem_init(&mem, SIZE_MAX);
	leat_err_clear(&err);
	temp_make(&temp);
	return 0;
}

static int
tear_down(void **state)
{
	(void)state;
	temp_remove(&temp);
	return mem.used != 0;
}

static size_t
files_left(void)
{
	DIR *dir = opendir(temp.folder);
	size_t count = 0;

	assert_non_null(dir);
	while (readdir(dir))
		count++;
	closedir(dir);
	return count - 2;
}

/* ---- records that tell their position ---- */

/* How long records are; each is `most` bytes at most, one in `rare` has `large` more. */
struct shape {
	size_t most, large, rare;
};

static size_t
make_record(const struct shape *shape, uint64_t position, unsigned char *bytes)
{
	struct leat_rng rng;
	size_t len;

	leat_rng_init(&rng, 7, 0, position, 1);
	len = 8 + (size_t)leat_rng_below(&rng, shape->most);
	if (shape->rare && leat_rng_below(&rng, shape->rare) == 0)
		len += shape->large;
	memset(bytes, (int)(position & 0xff), len);
	leat_store64(bytes, position);
	return len;
}

struct check {
	const struct shape *shape;
	uint64_t next;
	unsigned char *want;
	struct leat_reorder *reorder;
	const struct leat_reorder_options *options;
};

static enum leat_status
check_record(void *arg, const void *record, size_t len, struct leat_err *why)
{
	struct check *check = arg;
	size_t want = make_record(check->shape, check->next++, check->want);

	if (len != want || memcmp(record, check->want, len) != 0)
		return leat_fail(why, LEAT_DATA, "position %llu is wrong", (unsigned long long)check->next - 1);
	return LEAT_OK;
}

static enum leat_status
check_group(void *arg, size_t group, struct leat_err *why)
{
	const struct check *all = arg;
	struct check check = *all;
	uint64_t end = leat_group_begin(all->options->count, all->options->groups, group + 1);
	enum leat_status status;

	check.want = malloc(all->shape->most + all->shape->large + 8);
	check.next = leat_group_begin(all->options->count, all->options->groups, group);
	status = leat_reorder_read(all->reorder, group, check_record, &check, why);
	free(check.want);
	return status == LEAT_OK && check.next != end ? leat_fail(why, LEAT_DATA, "group %zu ends early", group)
	                                              : status;
}

static enum leat_status
add_all(struct leat_reorder *reorder, const struct leat_reorder_options *options, const struct shape *shape)
{
	unsigned char *record = malloc(shape->most + shape->large + 8);
	enum leat_status status = LEAT_OK;
	struct leat_perm perm;

	leat_perm_init(&perm, options->count, 3, 0, 0);
	for (uint64_t i = 0; i < options->count && status == LEAT_OK; i++) {
		uint64_t position = leat_perm_at(&perm, i);
		size_t len = make_record(shape, position, record);

		status = leat_reorder_add(reorder, position, record, len, &err);
	}
	free(record);
	return status;
}

/* Returns the bytes that were spilled. */
static uint64_t
check_order(const struct leat_reorder_options *given, const struct shape *shape)
{
	struct leat_reorder_options options = *given;
	struct leat_reorder *reorder;
	struct check check = {.shape = shape, .options = &options};
	uint64_t spilled;

	options.mem = &mem;
	options.folder = temp.folder;
	assert_int_equal(leat_reorder_open(&reorder, &options, &err), LEAT_OK);
	assert_int_equal(add_all(reorder, &options, shape), LEAT_OK);
	check.reorder = reorder;
	if (leat_parallel(&mem, options.threads, options.groups, check_group, &check, &err) != LEAT_OK)
		fail_msg("%s", err.text);
	assert_int_equal(files_left(), 0);
	spilled = leat_reorder_spilled(reorder);
	leat_reorder_close(reorder);
	return spilled;
}

/* ---- tests ---- */

static void
groups_differ_by_one_at_most_and_cover_everything(void **state)
{
	static const uint64_t counts[] = {1, 2, 7, 100, 101, 9999, (uint64_t)1 << 62};

	(void)state;
	for (size_t c = 0; c < sizeof(counts) / sizeof(*counts); c++) {
		for (size_t groups = 1; groups <= 100 && groups <= counts[c]; groups++) {
			assert_int_equal(leat_group_begin(counts[c], groups, 0), 0);
			assert_int_equal(leat_group_begin(counts[c], groups, groups), counts[c]);
			for (size_t g = 0; g < groups; g++) {
				uint64_t size = leat_group_begin(counts[c], groups, g + 1) -
				                leat_group_begin(counts[c], groups, g);

				assert_true(size == counts[c] / groups || size == counts[c] / groups + 1);
			}
		}
	}
}

static void
what_fits_in_memory_touches_no_file(void **state)
{
	static const struct shape shape = {.most = 200};

	(void)state;
	for (uint64_t count = 1; count < 3000; count = count * 3 + 1)
		for (size_t groups = 1; groups <= count; groups = groups * 2 + 1)
			assert_int_equal(check_order(&(struct leat_reorder_options){.count = count,
			                                                            .groups = groups,
			                                                            .bytes = 100 * count,
			                                                            .memory = 64 << 20,
			                                                            .read_memory = 1 << 20,
			                                                            .threads = 2},
			                             &shape),
			                 0);
}

static void
what_does_not_fit_goes_to_a_file_that_nobody_sees(void **state)
{
	static const struct shape shape = {.most = 400};
	struct leat_reorder_options options = {.count = 40000,
	                                       .groups = 5,
	                                       .bytes = 40000 * 200,
	                                       .memory = 1 << 20,
	                                       .read_memory = 1 << 20,
	                                       .threads = 2};
	uint64_t spilled = check_order(&options, &shape);

	(void)state;
	assert_true(spilled > 5000000);
	assert_true(spilled < 40000 * 220);
}

static void
a_wrong_estimate_costs_time_only(void **state)
{
	static const struct shape shape = {.most = 400};

	(void)state;
	for (uint64_t bytes = 1; bytes < (uint64_t)1 << 50; bytes = bytes * 1000)
		assert_true(check_order(&(struct leat_reorder_options){.count = 20000,
		                                                       .groups = 3,
		                                                       .bytes = bytes,
		                                                       .memory = 600000,
		                                                       .read_memory = 100000,
		                                                       .threads = 1},
		                        &shape) > 0);
}

static void
records_larger_than_blocks_or_memory_are_kept(void **state)
{
	static const struct shape some = {.most = 100, .large = 300000, .rare = 100};
	static const struct shape all = {.most = 100, .large = 300000, .rare = 1};

	(void)state;
	assert_true(check_order(&(struct leat_reorder_options){.count = 3000,
	                                                       .groups = 4,
	                                                       .bytes = 3000 * 3000,
	                                                       .memory = 1 << 20,
	                                                       .read_memory = 1 << 20,
	                                                       .threads = 2},
	                        &some) > 5000000);
	assert_true(check_order(&(struct leat_reorder_options){.count = 30,
	                                                       .groups = 30,
	                                                       .bytes = 1,
	                                                       .memory = 1 << 16,
	                                                       .read_memory = 1 << 16,
	                                                       .threads = 1},
	                        &all) > 5000000);
}

static void
a_position_without_a_record_or_with_two_is_found(void **state)
{
	struct leat_reorder_options options = {.count = 10,
	                                       .groups = 2,
	                                       .bytes = 100,
	                                       .memory = 1 << 20,
	                                       .read_memory = 1 << 20,
	                                       .threads = 1,
	                                       .mem = &mem,
	                                       .folder = temp.folder};
	static const struct shape shape = {.most = 1};
	struct check check = {.shape = &shape, .options = &options};

	(void)state;
	for (int twice = 0; twice < 2; twice++) {
		unsigned char record[16];

		assert_int_equal(leat_reorder_open(&check.reorder, &options, &err), LEAT_OK);
		for (uint64_t i = 0; i < 10; i++) {
			size_t len = make_record(&shape, i, record);

			if (i != 7)
				assert_int_equal(leat_reorder_add(check.reorder, i, record, len, &err), LEAT_OK);
			if (i == 7 && twice)
				assert_int_equal(leat_reorder_add(check.reorder, 6, record, len, &err), LEAT_OK);
		}
		assert_int_equal(check_group(&check, 0, &err), LEAT_OK);
		assert_int_equal(check_group(&check, 1, &err), LEAT_INTERNAL);
		leat_err_clear(&err);
		leat_reorder_close(check.reorder);
	}
}

static void
a_folder_that_is_gone_is_an_error_that_names_it(void **state)
{
	struct leat_reorder_options options = {.count = 5000,
	                                       .groups = 2,
	                                       .bytes = 1000000,
	                                       .memory = 1 << 14,
	                                       .read_memory = 1 << 14,
	                                       .threads = 1,
	                                       .mem = &mem,
	                                       .folder = "/nonexistent/folder"};
	static const struct shape shape = {.most = 400};
	struct leat_reorder *reorder;

	(void)state;
	assert_int_equal(leat_reorder_open(&reorder, &options, &err), LEAT_OK);
	assert_int_equal(add_all(reorder, &options, &shape), LEAT_IO);
	assert_non_null(strstr(err.text, "/nonexistent/folder"));
	leat_reorder_close(reorder);
}

static void
every_failed_allocation_is_an_error_and_leaves_nothing(void **state)
{
	static const struct shape shape = {.most = 400, .large = 300000, .rare = 1000};
	struct leat_reorder_options options = {.count = 3000,
	                                       .groups = 2,
	                                       .bytes = 600000,
	                                       .memory = 1 << 17,
	                                       .read_memory = 1 << 17,
	                                       .threads = 1,
	                                       .mem = &mem,
	                                       .folder = temp.folder};
	enum leat_status status = LEAT_NOMEM;

	(void)state;
	for (long n = 0; status != LEAT_OK; n++) {
		struct leat_reorder *reorder;
		struct check check = {.shape = &shape, .options = &options};

		leat_err_clear(&err);
		mem.fail_after = n;
		status = leat_reorder_open(&reorder, &options, &err);
		if (status == LEAT_OK)
			status = add_all(reorder, &options, &shape);
		check.reorder = reorder;
		for (size_t g = 0; g < 2 && status == LEAT_OK; g++)
			status = check_group(&check, g, &err);
		assert_true(status == LEAT_OK || status == LEAT_NOMEM);
		leat_reorder_close(reorder);
		assert_int_equal(mem.used, 0);
		assert_true(n < 10000);
	}
	mem.fail_after = -1;
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(groups_differ_by_one_at_most_and_cover_everything, set_up, tear_down),
		cmocka_unit_test_setup_teardown(what_fits_in_memory_touches_no_file, set_up, tear_down),
		cmocka_unit_test_setup_teardown(what_does_not_fit_goes_to_a_file_that_nobody_sees, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_wrong_estimate_costs_time_only, set_up, tear_down),
		cmocka_unit_test_setup_teardown(records_larger_than_blocks_or_memory_are_kept, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_position_without_a_record_or_with_two_is_found, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_folder_that_is_gone_is_an_error_that_names_it, set_up, tear_down),
		cmocka_unit_test_setup_teardown(every_failed_allocation_is_an_error_and_leaves_nothing, set_up,
	                                        tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
