/* test_example.c - tf.train.Example, read in place and written */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "format/record.h"
#include "support/proto.h"
#include "support/temp.h"

static struct leat_mem mem;
static struct leat_err err;

static int
set_up(void **state)
{
	(void)state;
	leat_mem_init(&mem, SIZE_MAX);
	leat_err_clear(&err);
	return 0;
}

static int
tear_down(void **state)
{
	(void)state;
	return mem.used != 0;
}

/* An Example of one feature `x`. */
static struct bytes
example_of(struct bytes feature)
{
	return field(1, entry("x", feature));
}

static enum leat_status
find_x(const struct bytes *record, struct leat_feature *feature)
{
	static struct leat_example_order order;
	struct leat_feature_key key = {"x", 1};

	leat_err_clear(&err);
	return leat_example_find(record->data, record->len, &key, 1, &order, feature, &err);
}

static void
check_int64s(struct bytes list, const int64_t *want, size_t count)
{
	struct bytes record = example_of(field(LEAT_FEATURE_INT64, list));
	struct leat_feature feature;
	int64_t values[8];
	size_t n;

	assert_int_equal(find_x(&record, &feature), LEAT_OK);
	assert_int_equal(feature.kind, LEAT_FEATURE_INT64);
	assert_int_equal(leat_feature_count(&feature, &n, &err), LEAT_OK);
	assert_int_equal(n, count);
	assert_int_equal(leat_feature_int64s(&feature, values, n, &err), LEAT_OK);
	assert_memory_equal(values, want, n * sizeof(*want));
}

static void
check_floats(struct bytes list, const float *want, size_t count)
{
	struct bytes record = example_of(field(LEAT_FEATURE_FLOAT, list));
	struct leat_feature feature;
	float values[8];
	size_t n;

	assert_int_equal(find_x(&record, &feature), LEAT_OK);
	assert_int_equal(leat_feature_count(&feature, &n, &err), LEAT_OK);
	assert_int_equal(n, count);
	assert_int_equal(leat_feature_floats(&feature, values, n, &err), LEAT_OK);
	assert_memory_equal(values, want, n * sizeof(*want));
}

static void
numbers_are_read_packed_and_not(void **state)
{
	static const int64_t ints[] = {1, 300, -1, INT64_MIN, INT64_MAX};
	static const float floats[] = {1.0f, -2.5f};
#define MINUS_ONE "\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"
#define LEAST "\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01"
#define MOST "\xff\xff\xff\xff\xff\xff\xff\xff\x7f"
#define ONE_F "\x00\x00\x80\x3f"
#define OTHER_F "\x00\x00\x20\xc0"

	(void)state;
	check_int64s(field(1, RAW("\x01\xac\x02" MINUS_ONE LEAST MOST)), ints, 5);
	check_int64s(RAW("\x08\x01\x08\xac\x02\x08" MINUS_ONE "\x08" LEAST "\x08" MOST), ints, 5);
	check_int64s(join(RAW("\x08\x01"), field(1, RAW("\xac\x02"))), ints, 2); /* both in one list */
	check_int64s(RAW(""), NULL, 0);
	check_int64s(field(1, RAW("")), NULL, 0);
	check_floats(field(1, RAW(ONE_F OTHER_F)), floats, 2);
	check_floats(RAW("\x0d" ONE_F "\x0d" OTHER_F), floats, 2);
	check_floats(join(field(1, RAW(ONE_F)), RAW("\x0d" OTHER_F)), floats, 2);
	check_floats(RAW(""), NULL, 0);
}

static void
byte_strings_stay_in_the_record(void **state)
{
	struct bytes record = example_of(field(LEAT_FEATURE_BYTES, join(field(1, RAW("abc")), field(1, RAW("")))));
	const unsigned char *bytes;
	struct leat_feature feature;
	size_t n, len;

	(void)state;
	assert_int_equal(find_x(&record, &feature), LEAT_OK);
	assert_int_equal(feature.kind, LEAT_FEATURE_BYTES);
	assert_int_equal(leat_feature_count(&feature, &n, &err), LEAT_OK);
	assert_int_equal(n, 2);
	assert_int_equal(leat_feature_bytes(&feature, &bytes, &len, &err), LEAT_OK);
	assert_int_equal(len, 3);
	assert_memory_equal(bytes, "abc", 3);
	assert_true(bytes > record.data && bytes < record.data + record.len);
	record = example_of(field(LEAT_FEATURE_BYTES, RAW("")));
	assert_int_equal(find_x(&record, &feature), LEAT_OK);
	assert_int_equal(leat_feature_bytes(&feature, &bytes, &len, &err), LEAT_DATA);
}

static int64_t
value_of_x(struct bytes record)
{
	struct leat_feature feature;
	int64_t value = -1;

	assert_int_equal(find_x(&record, &feature), LEAT_OK);
	if (feature.kind == LEAT_FEATURE_INT64)
		assert_int_equal(leat_feature_int64s(&feature, &value, 1, &err), LEAT_OK);
	return value;
}

static void
protobuf_is_read_as_protobuf_says(void **state)
{
	/* Unknown fields of all types, before, between and behind. */
	struct bytes unknown = RAW("\x20\x96\x01"
	                           "\x2a\x03"
	                           "abc"
	                           "\x35"
	                           "1234"
	                           "\x39"
	                           "12345678");
	struct bytes two = join(entry("x", one_int64(1)), entry("x", one_int64(2)));
	struct bytes parts = join(field(1, entry("x", one_int64(3))), field(1, entry("y", one_int64(4))));
	struct bytes turned = field(1, field(1, join(field(2, one_int64(5)), field(1, RAW("x")))));
	struct bytes deep = field(LEAT_FEATURE_INT64, join(unknown, field(1, RAW("\x06"))));

	(void)state;
	assert_int_equal(value_of_x(field(1, two)), 2); /* of a key that comes twice the last one counts */
	assert_int_equal(value_of_x(parts), 3);         /* a message in two parts is joined */
	assert_int_equal(value_of_x(turned), 5);        /* fields come in any order */
	assert_int_equal(
		value_of_x(join(unknown, field(1, join(unknown, entry("x", join(unknown, join(deep, unknown))))))), 6);
	assert_int_equal(value_of_x(RAW("")), -1); /* nothing at all is an Example */
	assert_int_equal(value_of_x(field(1, RAW(""))), -1);
	assert_int_equal(value_of_x(field(1, entry("x", RAW("")))), -1); /* a feature without a list is none */
	assert_int_equal(value_of_x(field(1, join(entry("x", one_int64(1)), entry("x", RAW(""))))), -1);
	assert_int_equal(value_of_x(field(1, field(1, RAW("")))), -1); /* an entry without key and feature */
	assert_int_equal(value_of_x(field(1, join(entry("xy", one_int64(1)), entry("", one_int64(1))))), -1);
	/* Lengths need not be written in the fewest bytes. */
	assert_int_equal(value_of_x(RAW("\x0a\x8c\x80\x00"
	                                "\x0a\x0a"
	                                "\x0a\x01x"
	                                "\x12\x05"
	                                "\x1a\x03"
	                                "\x0a\x01\x07")),
	                 7);
}

static void
check_damaged(struct bytes record, const char *part)
{
	struct leat_feature feature;
	int64_t ints[8];
	float floats[8];
	const unsigned char *bytes;
	size_t n = 0, len;
	enum leat_status status = find_x(&record, &feature);

	if (status == LEAT_OK && feature.kind != LEAT_FEATURE_NONE)
		status = leat_feature_count(&feature, &n, &err);
	if (status == LEAT_OK && feature.kind == LEAT_FEATURE_INT64)
		status = leat_feature_int64s(&feature, ints, n, &err);
	if (status == LEAT_OK && feature.kind == LEAT_FEATURE_FLOAT)
		status = leat_feature_floats(&feature, floats, n, &err);
	if (status == LEAT_OK && feature.kind == LEAT_FEATURE_BYTES)
		status = leat_feature_bytes(&feature, &bytes, &len, &err);
	assert_int_equal(status, LEAT_DATA);
	if (!strstr(err.text, "the record is not a tf.train.Example") || !strstr(err.text, part))
		fail_msg("'%s' does not say '%s'", err.text, part);
}

static void
what_is_no_example_is_refused_with_the_reason(void **state)
{
	struct bytes long_number = field(1, RAW("\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02"));
	struct bytes longer_number = field(1, RAW("\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x00"));

	(void)state;
	check_damaged(RAW("\xff\xd8\xff\xe0\x00\x10JFIF"), "a ");
	check_damaged(RAW("\x0a"), "a number is truncated");
	check_damaged(RAW("\x0a\x05"), "a length exceeds the message");
	check_damaged(RAW("\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"), "a length exceeds the message");
	check_damaged(RAW("\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02"), "more than 64 bits");
	check_damaged(RAW("\x02\x00"), "no valid number");
	check_damaged(RAW("\x82\x80\x80\x80\x80\x80\x01\x00"), "no valid number");
	check_damaged(RAW("\x0b\x0c"), "no valid type");
	check_damaged(RAW("\x0e"), "no valid type");
	check_damaged(RAW("\x11"
	                  "1234"),
	              "a length exceeds the message");
	check_damaged(RAW("\x08\x01"), "its features have the wrong type");
	check_damaged(field(1, RAW("\x08\x01")), "a feature has the wrong type");
	check_damaged(field(1, field(1, RAW("\x08\x01"))), "a key or feature has the wrong type");
	check_damaged(field(1, field(1, join(field(1, RAW("x")), field(1, RAW("x"))))), "two keys");
	check_damaged(example_of(RAW("\x18\x01")), "a list has the wrong type");
	check_damaged(example_of(join(one_int64(1), one_int64(2))), "two lists");
	check_damaged(example_of(field(LEAT_FEATURE_INT64, long_number)), "more than 64 bits");
	check_damaged(example_of(field(LEAT_FEATURE_INT64, longer_number)), "more than 64 bits");
	check_damaged(example_of(field(LEAT_FEATURE_INT64, field(1, RAW("\x01\x80")))),
	              "a list of integers is truncated");
	check_damaged(example_of(field(LEAT_FEATURE_INT64, RAW("\x0d"
	                                                       "1234"))),
	              "a value has the wrong type");
	check_damaged(example_of(field(LEAT_FEATURE_FLOAT, field(1, RAW("12345")))), "a list of floats is truncated");
	check_damaged(example_of(field(LEAT_FEATURE_FLOAT, RAW("\x08\x01"))), "a value has the wrong type");
	check_damaged(example_of(field(LEAT_FEATURE_BYTES, RAW("\x08\x01"))), "a value has the wrong type");
	check_damaged(example_of(field(LEAT_FEATURE_BYTES, RAW(""))), "is empty");
}

/* ---- written and read, and the same by another program ---- */

static void
python_reads_what_we_write_and_wrote_the_same(void **state)
{
	struct leat_tfrecord_writer writer;
	struct leat_example example;
	struct temp temp;
	unsigned char *ours, *theirs;
	char one[200], two[200], out[200];
	size_t ours_len, theirs_len;

	(void)state;
	temp_make(&temp);
	strcpy(one, temp_path(&temp, "ours"));
	strcpy(two, temp_path(&temp, "theirs"));
	leat_example_init(&example, &mem, 1 << 20);
	assert_int_equal(leat_tfrecord_writer_open(&writer, one, &mem, &err), LEAT_OK);
	for (int64_t i = 0; i < 40; i++) {
		const void *record;
		size_t len;

		add_known(&example, i);
		assert_int_equal(leat_example_finish(&example, &record, &len, &err), LEAT_OK);
		assert_int_equal(leat_tfrecord_writer_append(&writer, record, len, &err), LEAT_OK);
	}
	leat_example_free(&example);
	assert_int_equal(leat_tfrecord_writer_close(&writer, &err), LEAT_OK);
	run_oracle("write", two, "/dev/null");
	strcpy(out, temp_path(&temp, "ours.txt"));
	run_oracle("dump", one, out);
	ours = temp_read(out, &ours_len);
	strcpy(out, temp_path(&temp, "theirs.txt"));
	run_oracle("dump", two, out);
	theirs = temp_read(out, &theirs_len);
	assert_int_equal(ours_len, theirs_len);
	assert_memory_equal(ours, theirs, ours_len);
	assert_true(ours_len > 5000);
	free(ours);
	free(theirs);
	temp_remove(&temp);
}

static void
an_example_that_is_too_long_is_refused(void **state)
{
	struct leat_example example;
	const void *record;
	size_t len;
	char big[200] = {0};

	(void)state;
	leat_example_init(&example, &mem, 100);
	leat_example_begin(&example);
	leat_example_add_bytes(&example, "x", big, sizeof(big));
	assert_int_equal(leat_example_finish(&example, &record, &len, &err), LEAT_LIMIT);
	leat_example_begin(&example); /* and can be used again */
	leat_example_add_bytes(&example, "x", big, 1);
	assert_int_equal(leat_example_finish(&example, &record, &len, &err), LEAT_OK);
	leat_example_free(&example);
}

int
main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		CASE(numbers_are_read_packed_and_not),
		CASE(byte_strings_stay_in_the_record),
		CASE(protobuf_is_read_as_protobuf_says),
		CASE(what_is_no_example_is_refused_with_the_reason),
		CASE(python_reads_what_we_write_and_wrote_the_same),
		CASE(an_example_that_is_too_long_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
