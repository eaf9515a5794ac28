/* test_batch.c - rows of a ragged column: laid beforehand, stored as they come, or gone */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>

#include "feed/batch.h"

enum { ROWS = 6, CAPACITY = 1024 };

struct fixture {
	struct leat_mem mem;
	struct leat_batch_form form;
	struct leat_column_form column[1];
	struct leat_batch *batch;
	unsigned char bytes[ROWS][CAPACITY];
};

static struct fixture f;

static int
setup(void **state)
{
	struct leat_schema_entry entry[1];
	struct leat_schema schema = {.capacity = 1, .entry = entry};
	struct leat_batch_room room = {.capacity = {CAPACITY}};
	struct leat_field *field = leat_schema_add(&schema, "x", LEAT_U8);

	(void)state;
	field->ndim = 1;
	field->shape[0] = -1;
	leat_mem_init(&f.mem, SIZE_MAX);
	f.form.column = f.column;
	leat_batch_form_make(&f.form, &schema, ROWS, false, &room);
	f.batch = leat_batch_new(NULL, &f.form, &f.mem);
	assert_non_null(f.batch);
	leat_batch_reset(f.batch);
	f.batch->rows = f.batch->own_rows = f.batch->good_rows = ROWS;
	memset(leat_batch_states(f.batch), LEAT_ROW_GOOD, ROWS);
	for (int i = 0; i < ROWS; i++)
		memset(f.bytes[i], 'a' + i, CAPACITY);
	return 0;
}

static int
teardown(void **state)
{
	(void)state;
	leat_batch_free(f.batch);
	assert_int_equal(f.mem.used, 0);
	return 0;
}

/* A sample of `length` bytes, all of them the row's letter. */
static struct leat_sample
sample_of(int row, int64_t length)
{
	struct leat_sample sample = {.count = 1};

	sample.field[0] = (struct leat_datum){.data = f.bytes[row], .dtype = LEAT_U8, .ndim = 1, .shape = {length}};
	return sample;
}

static void
lay(int row, int64_t length)
{
	struct leat_sample sample = sample_of(row, length);

	leat_batch_assign_ragged_row(f.batch, row, &sample);
}

static enum leat_status
store(int row, int64_t length)
{
	struct leat_sample sample = sample_of(row, length);

	return leat_batch_store(f.batch, row, &sample, NULL);
}

static void
assert_text(const char *text)
{
	const char *values = (const char *)leat_batch_values(f.batch, 0);

	assert_int_equal(leat_batch_offsets(f.batch, 0)[f.batch->count], strlen(text));
	assert_memory_equal(values, text, strlen(text));
}

/* Whichever way a row came, and whenever. */
static void
rows_stand_in_order(void **state)
{
	(void)state;
	for (int laid = 0; laid <= ROWS; laid++) {
		leat_batch_reset(f.batch);
		f.batch->assigning = true;
		for (int row = 0; row < laid; row++)
			lay(row, row);
		leat_batch_stop_assigning(f.batch);
		assert_false(f.batch->assigning);
		for (int row = ROWS; row-- > 0;)
			assert_int_equal(store(row, row), LEAT_OK);
		leat_batch_complete(f.batch, false);
		assert_text("bccdddeeeefffff");
	}
}

static void
rows_that_are_gone_leave_no_gap(void **state)
{
	(void)state;
	for (int laid = 0; laid <= ROWS; laid++)
		for (unsigned bad = 0; bad < 1u << ROWS; bad++) {
			char text[32];
			size_t len = 0;

			leat_batch_reset(f.batch);
			for (int row = 0; row < laid; row++)
				lay(row, row);
			leat_batch_stop_assigning(f.batch);
			for (int row = 0; row < ROWS; row++) {
				bool gone = bad >> row & 1;

				leat_batch_states(f.batch)[row] = gone ? LEAT_ROW_BAD : LEAT_ROW_GOOD;
				if (gone)
					continue;
				assert_int_equal(store(row, row), LEAT_OK);
				memset(text + len, 'a' + row, (size_t)row);
				len += (size_t)row;
			}
			text[len] = '\0';
			leat_batch_complete(f.batch, false);
			assert_int_equal(f.batch->count, ROWS - __builtin_popcount(bad));
			assert_text(text);
		}
}

static void
what_is_laid_and_what_comes_share_the_capacity(void **state)
{
	(void)state;
	f.batch->assigning = true;
	lay(0, CAPACITY / 2 + 1);
	leat_batch_stop_assigning(f.batch);
	assert_int_equal(store(0, CAPACITY / 2 + 1), LEAT_OK);
	assert_int_equal(store(1, CAPACITY / 2 - 64), LEAT_OK);
	assert_int_equal(store(2, 1), LEAT_LIMIT);
}

static void
a_row_that_has_no_room_ends_assigning(void **state)
{
	(void)state;
	f.batch->assigning = true;
	lay(0, CAPACITY - 1);
	assert_true(f.batch->assigning);
	lay(1, 2);
	assert_false(f.batch->assigning);
	assert_int_equal(store(0, CAPACITY - 1), LEAT_OK);
	assert_int_equal(store(1, 2), LEAT_LIMIT);
}

/* It would push the others out of their places. */
static void
a_row_longer_than_it_was_laid_is_refused(void **state)
{
	(void)state;
	lay(0, 3);
	lay(1, 4);
	assert_int_equal(store(0, 4), LEAT_DATA);
	assert_int_equal(store(0, 2), LEAT_OK);
	assert_int_equal(store(1, 4), LEAT_OK);
	f.batch->rows = f.batch->own_rows = 2;
	leat_batch_complete(f.batch, false);
	assert_text("aabbbb");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(rows_stand_in_order, setup, teardown),
		cmocka_unit_test_setup_teardown(rows_that_are_gone_leave_no_gap, setup, teardown),
		cmocka_unit_test_setup_teardown(what_is_laid_and_what_comes_share_the_capacity, setup, teardown),
		cmocka_unit_test_setup_teardown(a_row_that_has_no_room_ends_assigning, setup, teardown),
		cmocka_unit_test_setup_teardown(a_row_longer_than_it_was_laid_is_refused, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
