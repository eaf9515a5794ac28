/* test_example_rows.c - rows of tables as tf.train.Examples, against the writer of single ones */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>

#include "base/rng.h"
#include "format/example_rows.h"
#include "format/record.h"

static struct leat_mem mem;
static struct leat_err err;
static struct leat_example example;

static int
set_up(void **state)
{
	(void)state;
	leat_mem_init(&mem, SIZE_MAX);
	leat_err_clear(&err);
	leat_example_init(&example, &mem, SIZE_MAX);
	leat_example_begin(&example);
	return 0;
}

static int
tear_down(void **state)
{
	(void)state;
	leat_example_free(&example);
	return mem.used != 0;
}

/* The record that ends at `to` has the features that were added to `example`, in a valid frame. */
static void
assert_same(unsigned char *buffer, unsigned char *to)
{
	const void *want;
	unsigned char *record;
	size_t want_len, len;
	uint64_t data_len;

	assert_int_equal(leat_example_finish(&example, &want, &want_len, &err), LEAT_OK);
	record = leat_row_end(buffer, to, &len);
	assert_true(record >= buffer);
	assert_int_equal(len, want_len + LEAT_TFRECORD_FRAME);
	assert_null(leat_tfrecord_header_fault(record, len, &data_len));
	assert_int_equal(data_len, want_len);
	assert_memory_equal(record + LEAT_TFRECORD_HEAD, want, want_len);
	assert_int_equal(leat_load32(record + len - LEAT_TFRECORD_TAIL), leat_tfrecord_crc(want, want_len));
	leat_example_begin(&example);
}

static void
open_entry(struct leat_row_feature *entry, const char *key, enum leat_feature_kind kind)
{
	assert_int_equal(leat_row_feature_init(entry, key, kind, &mem, &err), LEAT_OK);
}

static void
numbers_of_every_length_are_written_as_the_other_writer_does(void **state)
{
	static unsigned char buffer[1024];
	struct leat_row_feature user, amount;

	(void)state;
	open_entry(&user, "user", LEAT_FEATURE_INT64);
	open_entry(&amount, "amount", LEAT_FEATURE_FLOAT);
	for (int bits = 0; bits <= 64; bits++) {
		for (int below = 0; below < 2; below++) {
			int64_t value = (int64_t)((bits == 64 ? 0 : (uint64_t)1 << bits) - (uint64_t)below);
			float number = (float)value / 3;
			unsigned char *to = leat_row_begin(buffer);

			assert_true(LEAT_ROW_ROOM + leat_row_feature_room(&user, 1, 0) +
			                    leat_row_feature_room(&amount, 1, 0) <
			            sizeof(buffer));
			to = leat_row_put_int64(&user, to, value);
			to = leat_row_put_float(&amount, to, number);
			leat_example_add_int64s(&example, "user", &value, 1);
			leat_example_add_floats(&example, "amount", &number, 1);
			assert_same(buffer, to);
		}
	}
	leat_row_feature_free(&user);
	leat_row_feature_free(&amount);
}

static void
texts_and_lists_of_any_length_are_written_as_the_other_writer_does(void **state)
{
	static const size_t lengths[] = {0, 1, 9, 100, 127, 128, 1000, 16383, 16384, 70000};
	enum { LONGEST = 70000 };
	static unsigned char buffer[25 * LONGEST];
	static int64_t ints[LONGEST];
	static float floats[LONGEST];
	struct leat_row_feature text, many_ints, many_floats;
	struct leat_rng rng;

	(void)state;
	leat_rng_init(&rng, 1, 0, 0, 0);
	open_entry(&text, "text", LEAT_FEATURE_BYTES);
	open_entry(&many_ints, "a name that is a little longer, with spaces and \xc3\xa4", LEAT_FEATURE_INT64);
	open_entry(&many_floats, "f", LEAT_FEATURE_FLOAT);
	for (size_t i = 0; i < LONGEST; i++) {
		ints[i] = (int64_t)(leat_rng_u64(&rng) >> leat_rng_below(&rng, 64));
		floats[i] = leat_rng_uniform(&rng, -5, 5);
	}
	for (size_t i = 0; i < sizeof(lengths) / sizeof(*lengths); i++) {
		size_t n = lengths[i];
		unsigned char *to = leat_row_begin(buffer);

		assert_true(LEAT_ROW_ROOM + leat_row_feature_room(&text, 1, n) +
		                    leat_row_feature_room(&many_ints, n, 0) +
		                    leat_row_feature_room(&many_floats, n, 0) <=
		            sizeof(buffer));
		to = leat_row_put_bytes(&text, to, ints, n);
		to = leat_row_put_int64s(&many_ints, to, ints, n);
		to = leat_row_put_floats(&many_floats, to, floats, n);
		leat_example_add_bytes(&example, "text", ints, n);
		leat_example_add_int64s(&example, many_ints.key, ints, n);
		leat_example_add_floats(&example, "f", floats, n);
		assert_same(buffer, to);
	}
	leat_row_feature_free(&text);
	leat_row_feature_free(&many_ints);
	leat_row_feature_free(&many_floats);
}

/* Lengths of all kinds of varints, with names around those that no longer fit. */
static void
texts_of_every_length_with_names_of_every_length(void **state)
{
	static unsigned char buffer[2048];
	static char text[400];

	(void)state;
	memset(text, 'x', sizeof(text));
	for (size_t name = 1; name < 200; name += name < 30 ? 1 : 13) {
		struct leat_row_feature feature;
		char key[200] = "";

		memset(key, 'k', name);
		open_entry(&feature, key, LEAT_FEATURE_BYTES);
		for (size_t len = 0; len < sizeof(text); len++) {
			unsigned char *to = leat_row_put_bytes(&feature, leat_row_begin(buffer), text, len);

			leat_example_add_bytes(&example, key, text, len);
			assert_same(buffer, to);
		}
		leat_row_feature_free(&feature);
	}
}

static void
lists_of_texts_are_read_back(void **state)
{
	static const void *const texts[] = {"one", "", "three"};
	static const size_t lengths[] = {3, 0, 5};
	static const unsigned char want[] = "\x0a\x03one\x0a\x00\x0a\x05three";
	unsigned char buffer[256], *to, *record;
	struct leat_example_order order = {0};
	struct leat_feature_key key = {"t", 1};
	struct leat_feature found;
	struct leat_row_feature entry;
	size_t len, count;

	(void)state;
	open_entry(&entry, "t", LEAT_FEATURE_BYTES);
	to = leat_row_put_texts(&entry, leat_row_begin(buffer), texts, lengths, 3);
	record = leat_row_end(buffer, to, &len);
	assert_int_equal(leat_example_find(record + LEAT_TFRECORD_HEAD, len - LEAT_TFRECORD_FRAME, &key, 1, &order,
	                                   &found, &err),
	                 LEAT_OK);
	assert_int_equal(found.kind, LEAT_FEATURE_BYTES);
	assert_int_equal(leat_feature_count(&found, &count, &err), LEAT_OK);
	assert_int_equal(count, 3);
	assert_int_equal(found.len, sizeof(want) - 1);
	assert_memory_equal(found.list, want, sizeof(want) - 1);
	leat_row_feature_free(&entry);
}

static void
an_entry_without_memory_fails_and_leaves_nothing(void **state)
{
	struct leat_row_feature entry;

	(void)state;
	for (long n = 0; n < 2; n++) {
		mem.fail_after = n;
		leat_err_clear(&err);
		assert_int_equal(leat_row_feature_init(&entry, "x", LEAT_FEATURE_INT64, &mem, &err), LEAT_NOMEM);
	}
	mem.fail_after = -1;
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(numbers_of_every_length_are_written_as_the_other_writer_does, set_up,
	                                        tear_down),
		cmocka_unit_test_setup_teardown(texts_and_lists_of_any_length_are_written_as_the_other_writer_does,
	                                        set_up, tear_down),
		cmocka_unit_test_setup_teardown(texts_of_every_length_with_names_of_every_length, set_up, tear_down),
		cmocka_unit_test_setup_teardown(lists_of_texts_are_read_back, set_up, tear_down),
		cmocka_unit_test_setup_teardown(an_entry_without_memory_fails_and_leaves_nothing, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
