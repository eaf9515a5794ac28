/* test_stored.c - numbers of every type come out of a file with their values, wherever they lie */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "format/stored.h"

static const struct leat_stored *
find(const char *name)
{
	const struct leat_stored *type = leat_stored_find(name, strlen(name));

	assert_non_null(type);
	return type;
}

/* From an odd address, as files have them. */
static void
check_copy(const char *name, const char *bytes, size_t count, enum leat_dtype dtype, const void *want)
{
	const struct leat_stored *type = find(name);
	unsigned char from[1 + 64];
	_Alignas(8) unsigned char to[64];

	assert_int_equal(type->dtype, dtype);
	memcpy(from + 1, bytes, count * type->width);
	assert_true(leat_stored_copy(type, to, from + 1, count));
	assert_memory_equal(to, want, count * leat_dtype_size(dtype));
}

static void
values_stay_and_types_widen(void **state)
{
	(void)state;
	check_copy("bool", "\0\1", 2, LEAT_U8, (uint8_t[]){0, 1});
	check_copy("uint8", "\0\377", 2, LEAT_U8, (uint8_t[]){0, 255});
	check_copy("int8", "\200\177\377", 3, LEAT_I32, (int32_t[]){-128, 127, -1});
	check_copy("uint16", "\1\2\377\377", 2, LEAT_I32, (int32_t[]){0x201, 65535});
	check_copy("int16", "\0\200\377\377", 2, LEAT_I32, (int32_t[]){-32768, -1});
	check_copy("int32", "\1\2\3\4\377\377\377\377", 2, LEAT_I32, (int32_t[]){0x4030201, -1});
	check_copy("uint32", "\1\0\0\0\377\377\377\377", 2, LEAT_I64, (int64_t[]){1, UINT32_MAX});
	check_copy("int64", "\0\0\0\0\0\0\0\200\1\0\0\0\0\0\0\0", 2, LEAT_I64, (int64_t[]){INT64_MIN, 1});
	check_copy("uint64", "\377\377\377\377\377\377\377\177", 1, LEAT_I64, (int64_t[]){INT64_MAX});
	check_copy("float16", "\0\74\0\300", 2, LEAT_F16, (uint16_t[]){0x3c00, 0xc000});
	check_copy("bfloat16", "\200\77", 1, LEAT_BF16, (uint16_t[]){0x3f80});
	check_copy("float32", "\0\0\200\277", 1, LEAT_F32, (float[]){-1});
	check_copy("float64", "\0\0\0\0\0\0\360\277", 1, LEAT_F64, (double[]){-1});
}

static void
a_uint64_beyond_int64_does_not_fit(void **state)
{
	static const unsigned char bytes[] = {1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x80};
	int64_t to[2];

	(void)state;
	assert_true(leat_stored_copy(find("uint64"), to, bytes, 1));
	assert_false(leat_stored_copy(find("uint64"), to, bytes, 2));
	assert_true(leat_stored_copy(find("int64"), to, bytes, 2));
	assert_true(leat_stored_copy(find("float64"), to, bytes, 2)); /* -0.0 */
}

static void
whole_numbers_have_the_range_of_their_type(void **state)
{
	static const struct {
		const char *name;
		int64_t min, max;
	} cases[] = {
		{"bool", 0, 1},
		{"uint8", 0, 255},
		{"int8", -128, 127},
		{"uint16", 0, 65535},
		{"int16", -32768, 32767},
		{"int32", INT32_MIN, INT32_MAX},
		{"uint32", 0, UINT32_MAX},
	};
	int64_t to[3];

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		const struct leat_stored *type = find(cases[i].name);
		const int64_t good[] = {cases[i].min, cases[i].max, 1};

		assert_true(leat_stored_narrow(type, to, good, 3));
		if (type->dtype == LEAT_U8)
			assert_int_equal(((uint8_t *)to)[1], cases[i].max);
		else if (type->dtype == LEAT_I32)
			assert_int_equal(((int32_t *)to)[1], cases[i].max);
		else
			assert_int_equal(to[1], cases[i].max);
		assert_false(leat_stored_narrow(type, to, (int64_t[]){0, cases[i].min - 1}, 2));
		assert_false(leat_stored_narrow(type, to, (int64_t[]){cases[i].max + 1, 0}, 2));
	}
	assert_true(leat_stored_narrow(find("int64"), to, (int64_t[]){INT64_MIN, INT64_MAX}, 2));
	assert_false(leat_stored_narrow(find("uint64"), to, (int64_t[]){-1}, 1));
}

static void
other_names_are_no_types(void **state)
{
	(void)state;
	assert_null(leat_stored_find("int", 3));
	assert_null(leat_stored_find("int640", 6));
	assert_null(leat_stored_find("", 0));
	assert_null(leat_stored_find("complex64", 9));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(values_stay_and_types_widen),
		cmocka_unit_test(a_uint64_beyond_int64_does_not_fit),
		cmocka_unit_test(whole_numbers_have_the_range_of_their_type),
		cmocka_unit_test(other_names_are_no_types),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
