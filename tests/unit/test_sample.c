/* test_sample.c - types, fields, schemas and data of samples */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "format/sample.h"

static void
every_dtype_has_a_name_and_a_size(void **state)
{
	static const struct {
		enum leat_dtype dtype;
		const char *name;
		size_t size;
	} known[] = {
		{LEAT_U8, "uint8", 1},    {LEAT_I32, "int32", 4},     {LEAT_I64, "int64", 8},
		{LEAT_F16, "float16", 2}, {LEAT_BF16, "bfloat16", 2}, {LEAT_F32, "float32", 4},
		{LEAT_F64, "float64", 8}, {LEAT_BOOL, "bool", 1},     {LEAT_I8, "int8", 1},
		{LEAT_I16, "int16", 2},   {LEAT_U16, "uint16", 2},    {LEAT_U32, "uint32", 4},
		{LEAT_U64, "uint64", 8},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		assert_int_equal(known[i].dtype, i);
		assert_string_equal(leat_dtype_name(known[i].dtype), known[i].name);
		assert_int_equal(leat_dtype_size(known[i].dtype), known[i].size);
	}
	assert_string_equal(leat_dtype_name((enum leat_dtype)99), "unknown");
	assert_int_equal(leat_dtype_size((enum leat_dtype)99), 0);
}

static void
fields_are_added_found_and_removed(void **state)
{
	static struct leat_schema_entry entries[LEAT_MAX_FIELDS];
	struct leat_schema schema = {.capacity = LEAT_MAX_FIELDS, .entry = entries};
	struct leat_field *field;

	(void)state;
	memset(entries, 0, sizeof(entries));
	assert_int_equal(leat_schema_find(&schema, "image"), -1);
	field = leat_schema_add(&schema, "image", LEAT_U8);
	assert_non_null(field);
	field->ndim = 3;
	schema.entry[0].layout = LEAT_HWC;
	assert_non_null(leat_schema_add(&schema, "label", LEAT_I64));
	assert_non_null(leat_schema_add(&schema, "id", LEAT_I32));
	assert_int_equal(leat_schema_find(&schema, "label"), 1);

	leat_schema_remove(&schema, 0);
	assert_int_equal(schema.count, 2);
	assert_int_equal(leat_schema_find(&schema, "image"), -1);
	assert_int_equal(leat_schema_find(&schema, "label"), 0);
	assert_int_equal(schema.entry[0].layout, LEAT_LAYOUT_NONE);
	assert_int_equal(schema.entry[1].field.dtype, LEAT_I32);
	leat_schema_remove(&schema, -1);
	leat_schema_remove(&schema, 2);
	assert_int_equal(schema.count, 2);

	/* A place that was in use before begins afresh. */
	schema.entry[2].layout = LEAT_CHW;
	field = leat_schema_add(&schema, "mask", LEAT_U8);
	assert_int_equal(field->ndim, 0);
	assert_int_equal(schema.entry[2].layout, LEAT_LAYOUT_NONE);
}

static void
names_that_do_not_fit_are_refused(void **state)
{
	static struct leat_schema_entry entries[LEAT_MAX_FIELDS];
	struct leat_schema schema = {.capacity = LEAT_MAX_FIELDS, .entry = entries};
	char name[LEAT_MAX_NAME + 2];

	(void)state;
	memset(entries, 0, sizeof(entries));
	memset(name, 'n', sizeof(name));
	name[LEAT_MAX_NAME + 1] = '\0';
	assert_null(leat_schema_add(&schema, name, LEAT_U8));
	name[LEAT_MAX_NAME] = '\0';
	assert_non_null(leat_schema_add(&schema, name, LEAT_U8));
	assert_null(leat_schema_add(&schema, name, LEAT_U8));
	assert_null(leat_schema_add(&schema, "", LEAT_U8));
	for (int i = 1; i < LEAT_MAX_FIELDS; i++) {
		snprintf(name, sizeof(name), "f%d", i);
		assert_non_null(leat_schema_add(&schema, name, LEAT_U8));
	}
	assert_null(leat_schema_add(&schema, "one_too_many", LEAT_U8));
	assert_int_equal(schema.count, LEAT_MAX_FIELDS);
}

static void
a_pick_keeps_all_that_is_known_of_a_field(void **state)
{
	static struct leat_schema_entry entries[LEAT_MAX_FIELDS];
	struct leat_schema schema = {.capacity = LEAT_MAX_FIELDS, .entry = entries};
	const struct leat_pick pick = {.count = 2, .from = {2, 0}};
	struct leat_schema_entry before[3];

	(void)state;
	memset(entries, 0, sizeof(entries));
	leat_schema_add(&schema, "image", LEAT_U8)->ndim = 3;
	leat_schema_add(&schema, "label", LEAT_I64);
	leat_schema_add(&schema, "path", LEAT_U8)->ndim = 1;
	schema.entry[0].layout = LEAT_HWC;
	schema.entry[2].extra_elements = 40;
	schema.entry[2].outside_payload = true;
	memcpy(before, schema.entry, sizeof(before));

	leat_schema_pick(&schema, &pick);
	assert_int_equal(schema.count, 2);
	assert_memory_equal(&schema.entry[0], &before[2], sizeof(before[0]));
	assert_memory_equal(&schema.entry[1], &before[0], sizeof(before[0]));
}

/* Every choice of fields in every order, of five. */
static void
any_fields_can_be_picked_in_any_order(void **state)
{
	static struct leat_schema_entry entries[5];
	static const char *const names[] = {"a", "b", "c", "d", "e"};
	int picks = 0;

	(void)state;
	for (int code = 0; code < 6 * 6 * 6 * 6 * 6; code++) {
		struct leat_schema schema = {.capacity = 5, .entry = entries};
		struct leat_pick pick = {0};
		unsigned seen = 0;
		bool once = true;

		for (int rest = code; rest % 6 != 5 && pick.count < 5; rest /= 6) {
			once &= !(seen >> (rest % 6) & 1);
			seen |= 1u << (rest % 6);
			pick.from[pick.count++] = rest % 6;
		}
		if (!once)
			continue;
		for (int i = 0; i < 5; i++)
			leat_schema_add(&schema, names[i], LEAT_U8);
		leat_schema_pick(&schema, &pick);
		assert_int_equal(schema.count, pick.count);
		for (int i = 0; i < pick.count; i++)
			assert_string_equal(schema.entry[i].field.name, names[pick.from[i]]);
		picks++;
	}
	assert_true(picks >= 326); /* 1 + 5 + 20 + 60 + 120 + 120 */
}

static void
schemas_are_copied_trimmed_and_freed(void **state)
{
	struct leat_schema schema, copy;
	struct leat_mem mem;

	(void)state;
	leat_mem_init(&mem, SIZE_MAX);
	assert_int_equal(leat_schema_init(&schema, 3, &mem, NULL), LEAT_OK);
	leat_schema_add(&schema, "a", LEAT_U8);
	leat_schema_add(&schema, "b", LEAT_F32);
	assert_int_equal(leat_schema_copy(&copy, &schema, 0, &mem, NULL), LEAT_OK);
	leat_schema_trim(&schema, &mem);
	assert_non_null(schema.entry);
	assert_null(leat_schema_add(&schema, "c", LEAT_U8));
	assert_null(leat_schema_add(&copy, "c", LEAT_U8));
	assert_int_equal(leat_schema_find(&copy, "b"), 1);
	leat_schema_free(&schema, &mem);
	leat_schema_free(&copy, &mem);
	assert_int_equal(mem.used, 0);
	leat_mem_init(&mem, 100);
	assert_int_equal(leat_schema_init(&schema, LEAT_MAX_FIELDS, &mem, NULL), LEAT_LIMIT);
}

static void
assert_field(int ndim, int64_t a, int64_t b, int64_t c, int64_t elements, const char *text)
{
	struct leat_field field = {.dtype = LEAT_U8, .ndim = ndim, .shape = {a, b, c}};
	char buf[128];

	assert_true(leat_field_elements(&field) == elements);
	assert_string_equal(leat_field_format(&field, buf, sizeof(buf)), text);
}

static void
fields_know_their_elements_and_are_written_for_people(void **state)
{
	(void)state;
	assert_field(0, 9, 9, 9, 1, "uint8");
	assert_field(1, 7, 9, 9, 7, "uint8[7]");
	assert_field(1, -1, 9, 9, -1, "uint8[?]");
	assert_field(3, 100, 200, 3, 60000, "uint8[100, 200, 3]");
	assert_field(3, -1, -1, 3, -1, "uint8[?, ?, 3]");
	assert_field(2, 0, 5, 9, 0, "uint8[0, 5]");
	assert_field(2, 0, -1, 9, -1, "uint8[0, ?]");
	assert_field(3, INT64_MAX, 2, 0, 0, "uint8[9223372036854775807, 2, 0]");
	assert_field(2, INT64_MAX, 2, 0, -1, "uint8[9223372036854775807, 2]");
}

static void
the_longest_field_fits_and_short_buffers_are_terminated(void **state)
{
	struct leat_field field = {.dtype = LEAT_BF16, .ndim = LEAT_MAX_DIMS};
	char buf[128], tiny[6];

	(void)state;
	for (int i = 0; i < LEAT_MAX_DIMS; i++)
		field.shape[i] = INT64_MAX;
	assert_string_equal(leat_field_format(&field, buf, sizeof(buf)),
	                    "bfloat16[9223372036854775807, 9223372036854775807, 9223372036854775807, "
	                    "9223372036854775807]");
	assert_string_equal(leat_field_format(&field, tiny, sizeof(tiny)), "bfloa");
}

static void
a_field_is_static_when_every_dimension_is_known(void **state)
{
	struct leat_field field = {.ndim = 2, .shape = {3, 0, -1}};

	(void)state;
	assert_true(leat_field_is_static(&field));
	field.ndim = 3;
	assert_false(leat_field_is_static(&field));
	field.ndim = 0;
	assert_true(leat_field_is_static(&field));
}

static void
data_know_their_size(void **state)
{
	struct leat_datum datum = {.dtype = LEAT_F32, .ndim = 2, .shape = {3, 5}};

	(void)state;
	assert_int_equal(leat_datum_elements(&datum), 15);
	assert_int_equal(leat_datum_bytes(&datum), 60);
	datum.ndim = 0;
	assert_int_equal(leat_datum_elements(&datum), 1);
	assert_int_equal(leat_datum_bytes(&datum), 4);
	datum.ndim = 1;
	datum.shape[0] = INT64_MAX;
	assert_true(leat_datum_bytes(&datum) == SIZE_MAX); /* four times that is more than there can be */
	datum.ndim = 2;
	datum.shape[1] = 2;
	assert_int_equal(leat_datum_elements(&datum), -1);
	assert_true(leat_datum_bytes(&datum) == SIZE_MAX);
}

int
main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_dtype_has_a_name_and_a_size),
		cmocka_unit_test(fields_are_added_found_and_removed),
		cmocka_unit_test(names_that_do_not_fit_are_refused),
		cmocka_unit_test(a_pick_keeps_all_that_is_known_of_a_field),
		cmocka_unit_test(any_fields_can_be_picked_in_any_order),
		cmocka_unit_test(schemas_are_copied_trimmed_and_freed),
		cmocka_unit_test(fields_know_their_elements_and_are_written_for_people),
		cmocka_unit_test(the_longest_field_fits_and_short_buffers_are_terminated),
		cmocka_unit_test(a_field_is_static_when_every_dimension_is_known),
		cmocka_unit_test(data_know_their_size),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
