/* test_write.c - what is written for other programs: tar members and .npy heads
 *
 * (tests/cli/convert.sh has Python read whole files of both.) */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "format/npy_write.h"
#include "format/tar_write.h"
#include "support/temp.h"

static struct leat_mem mem;

static void
heads_of_arrays_say_type_and_shape(void **state)
{
	static const struct {
		enum leat_dtype dtype;
		int ndim;
		int64_t shape[5];
		const char *text;
	} cases[] = {
		{LEAT_U8, 0, {0}, "{'descr': '|u1', 'fortran_order': False, 'shape': (), }"},
		{LEAT_I32, 1, {3}, "{'descr': '<i4', 'fortran_order': False, 'shape': (3,), }"},
		{LEAT_I64, 2, {0, 4}, "{'descr': '<i8', 'fortran_order': False, 'shape': (0, 4), }"},
		{LEAT_F16, 1, {7}, "{'descr': '<f2', 'fortran_order': False, 'shape': (7,), }"},
		{LEAT_F32, 4, {1, 2, 3, 4}, "{'descr': '<f4', 'fortran_order': False, 'shape': (1, 2, 3, 4), }"},
		{LEAT_F64, 1, {1}, "{'descr': '<f8', 'fortran_order': False, 'shape': (1,), }"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		char head[LEAT_NPY_HEAD];
		size_t len = leat_npy_head(head, cases[i].dtype, cases[i].ndim, cases[i].shape, cases[i].shape[0]);

		assert_true(leat_npy_has(cases[i].dtype));
		assert_int_equal(len, 128 - (strlen(cases[i].text) + 11 <= 64) * 64);
		assert_memory_equal(head, "\x93NUMPY\x01\0", 8);
		assert_int_equal((uint8_t)head[8] + 256 * (uint8_t)head[9], len - 10);
		assert_memory_equal(head + 10, cases[i].text, strlen(cases[i].text));
		for (size_t k = 10 + strlen(cases[i].text); k + 1 < len; k++)
			assert_int_equal(head[k], ' ');
		assert_int_equal(head[len - 1], '\n');
	}
	assert_false(leat_npy_has(LEAT_BF16));
}

static void
a_head_leaves_room_for_the_rows_that_will_be_there(void **state)
{
	const int64_t most[] = {INT64_MAX, INT64_MAX, INT64_MAX, INT64_MAX, INT64_MAX};
	char head[LEAT_NPY_HEAD];

	(void)state;
	for (int64_t rows = 1; rows > 0 && rows < INT64_MAX / 10; rows *= 10) {
		int64_t shape[] = {rows, 1000, 1000, 1000, 100};

		assert_int_equal(leat_npy_head(head, LEAT_F32, 5, shape, INT64_MAX),
		                 leat_npy_head(head, LEAT_F32, 5, (int64_t[]){0, 1000, 1000, 1000, 100}, INT64_MAX));
	}
	assert_true(leat_npy_head(head, LEAT_F32, 5, most, INT64_MAX) <= LEAT_NPY_HEAD);
	assert_non_null(memmem(head, sizeof head, "9223372036854775807), }", 23));
}

static void
members_that_no_tar_file_can_hold_are_refused(void **state)
{
	struct iovec large = {NULL, (size_t)1 << 33};
	char name[102] = "";
	struct leat_stores stores;
	struct leat_writer *out;
	unsigned char *bytes;
	size_t len;
	struct leat_err err;
	struct temp temp;

	(void)state;
	temp_make(&temp);
	leat_mem_init(&mem, SIZE_MAX);
	leat_err_clear(&err);
	leat_stores_init(&stores, &mem);
	assert_int_equal(leat_write_begin(&out, &stores, temp_path(&temp, "x"), &err), LEAT_OK);
	memset(name, 'n', 101);
	assert_int_equal(leat_tar_write(out, name, NULL, 0, &err), LEAT_INVALID);
	assert_non_null(strstr(err.text, "too long"));
	leat_err_clear(&err);
	assert_int_equal(leat_tar_write(out, "x", &large, 1, &err), LEAT_LIMIT);
	assert_non_null(strstr(err.text, "exceeds 8 GiB"));
	assert_int_equal(out->size, 0);
	leat_err_clear(&err);
	name[100] = '\0';
	assert_int_equal(leat_tar_write(out, name, NULL, 0, &err), LEAT_OK); /* needs no NUL in the header */
	assert_int_equal(out->size, 512);
	assert_int_equal(leat_write_commit(out, NULL, 0, &err), LEAT_OK);
	bytes = temp_read(temp_path(&temp, "x"), &len);
	assert_memory_equal(bytes, name, 100);
	assert_int_equal(bytes[100], '0');
	free(bytes);
	leat_stores_close(&stores);
	assert_int_equal(mem.used, 0);
	temp_remove(&temp);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(heads_of_arrays_say_type_and_shape),
		cmocka_unit_test(a_head_leaves_room_for_the_rows_that_will_be_there),
		cmocka_unit_test(members_that_no_tar_file_can_hold_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
