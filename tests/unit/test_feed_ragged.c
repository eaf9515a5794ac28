/* test_feed_ragged.c - many ragged fields take no more memory than the records they are made of */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "feed/feed.h"
#include "format/example.h"
#include "support/data.h"
#include "support/trace.h"

enum { FIELDS = 60, RECORDS = 300, ROWS = 64, LONGEST = 4000, MAX_SPEC = 6000 };

static struct data data, damaged;

/* Lengths vary: a record is mostly one or two of its features, and its neighbour's are others. */
static size_t
length_of(size_t record, int field)
{
	struct leat_rng rng;

	leat_rng_init(&rng, 7, record, (uint64_t)field, 1);
	switch (leat_rng_below(&rng, 20)) {
	case 0:
		return (size_t)leat_rng_below(&rng, LONGEST);
	case 1:
		return 0;
	default:
		return (size_t)leat_rng_below(&rng, 30);
	}
}

static unsigned
value_of(size_t record, int field, size_t i)
{
	return (unsigned)(record * 31 + (size_t)field * 7 + i) % 128; /* as a varint: a byte */
}

static void
add_feature(struct leat_example *example, size_t record, int field)
{
	size_t length = length_of(record, field);
	static unsigned char bytes[LONGEST];
	static int64_t numbers[LONGEST];
	static float floats[LONGEST];
	char name[16];

	for (size_t i = 0; i < length; i++) {
		bytes[i] = (unsigned char)value_of(record, field, i);
		numbers[i] = bytes[i];
		floats[i] = bytes[i];
	}
	snprintf(name, sizeof name, "f%d", field);
	if (field % 3 == 0)
		leat_example_add_bytes(example, name, bytes, length);
	else if (field % 3 == 1)
		leat_example_add_int64s(example, name, numbers, length);
	else
		leat_example_add_floats(example, name, floats, length);
}

static void
make_record(struct leat_example *example, size_t record)
{
	for (int field = 0; field < FIELDS; field++)
		add_feature(example, record, field);
}

/* In every third record, the last field is missing: a sample that is bad after most of it has been made. */
static void
make_damaged(struct leat_example *example, size_t record)
{
	for (int field = 0; field < FIELDS - (record % 3 == 0); field++)
		add_feature(example, record, field);
}

static int
setup(void **state)
{
	(void)state;
	data_make_file(&data, RECORDS, make_record);
	data_make_file(&damaged, RECORDS, make_damaged);
	return 0;
}

static int
teardown(void **state)
{
	(void)state;
	data_remove(&data);
	data_remove(&damaged);
	return 0;
}

static const char *
spec_of(const struct data *from, const char *rest)
{
	static const char *const type[] = {"bytes", "int64[]", "float[]"};
	static char spec[MAX_SPEC];
	size_t len = (size_t)snprintf(spec, sizeof spec, "%s | example(", data_source(from));

	for (int field = 0; field < FIELDS; field++)
		len += (size_t)snprintf(spec + len, sizeof spec - len, "%sf%d=%s", field ? ", " : "", field,
		                        type[field % 3]);
	snprintf(spec + len, sizeof spec - len, ")%s", rest);
	return spec;
}

/* ---- what is in a batch ---- */

static double
number_at(const struct leat_tensor *tensor, int64_t i)
{
	if (tensor->dtype == LEAT_U8)
		return ((const uint8_t *)tensor->data)[i];
	return tensor->dtype == LEAT_I64 ? (double)((const int64_t *)tensor->data)[i]
	                                 : (double)((const float *)tensor->data)[i];
}

static void
check_field(const struct leat_batch *batch, int field, size_t first, int64_t rows)
{
	struct leat_tensor tensor;
	char name[8];

	snprintf(name, sizeof name, "f%d", field);
	assert_int_equal(leat_batch_field(batch, name, &tensor, NULL), LEAT_OK);
	assert_int_equal((uintptr_t)tensor.data % 64, 0);
	assert_int_equal(tensor.offsets[0], 0);
	for (int64_t row = 0; row < rows; row++) {
		size_t record = first + (size_t)row, length = (size_t)(tensor.offsets[row + 1] - tensor.offsets[row]);

		assert_int_equal(length, length_of(record, field));
		for (size_t i = 0; i < length; i++)
			assert_true(number_at(&tensor, tensor.offsets[row] + (int64_t)i) == value_of(record, field, i));
	}
}

static void
fields_are_contiguous_aligned_and_right(void **state)
{
	struct leat_options options;
	struct leat_batch *batch;
	struct leat_feed *feed;
	struct leat_err err;
	size_t first = 0;

	(void)state;
	trace_options(&options);
	options.threads = 3;
	feed = trace_open(spec_of(&data, " | batch(64)"), &options);
	assert_true(feed->budget.form.shares);
	while (leat_next(feed, &batch, &err) == LEAT_OK) {
		int64_t rows = leat_batch_count(batch);

		for (int field = 0; field < FIELDS; field++)
			check_field(batch, field, first, rows);
		first += (size_t)rows;
		leat_release(batch);
	}
	assert_int_equal(first, RECORDS);
	leat_close(feed);
}

/* ---- memory ---- */

#define NUMBERS "field=[f1, f2, f4, f5, f7, f8, f10, f11, f13, f14, f16, f17, f19, f20]"

static const char *const chains[] = {
	" | shuffle | batch(64)",
	" | cast(float64, field=[f1, f4, f7, f10]) | shuffle | batch(64)",
	" | cast(float32, " NUMBERS ") | cast(float64, " NUMBERS ") | cast(float32, " NUMBERS ") | shuffle | batch(64)",
	" | drop(f3, f4, f5) | rename(g1=f1) | shuffle(window=50) | batch(64)",
	" | repeat(2) | shuffle | batch(64)",
	" | cache(size=16MiB) | shuffle | batch(64)",
	" | cast(float64, field=[f1, f4]) | cache(size=24MiB) | shuffle | batch(64)",
};

static void
compare_memories(const struct data *from, const char *chain, struct leat_options *options, size_t most)
{
	const char *spec = spec_of(from, chain);
	struct trace plenty, least;

	options->epochs = 2;
	options->threads = 2;
	options->memory = (size_t)1 << 30;
	trace_run(&plenty, spec, options);
	assert_int_equal(plenty.status, LEAT_DONE);
	for (options->threads = 1; options->threads <= 4; options->threads += 3) {
		options->memory = trace_least_memory(spec, options);
		if (options->memory > most)
			fail_msg("%s needs %zu MiB", chain, options->memory >> 20);
		trace_run(&least, spec, options);
		if (least.status != LEAT_DONE)
			fail_msg("%s with %zu bytes: %s", chain, options->memory, least.err.text);
		trace_compare(&plenty, &least, chain);
		trace_free(&least);
	}
	trace_free(&plenty);
}

static void
the_least_memory_is_small_and_enough(void **state)
{
	struct leat_options options;

	(void)state;
	trace_options(&options);
	for (size_t i = 0; i < sizeof chains / sizeof *chains; i++)
		compare_memories(&data, chains[i], &options, (size_t)(i == 0 ? 64 : 128) << 20);
}

/* A replacement takes the room of what it replaces, whatever the lengths of both. */
static void
bad_samples_leave_room_for_others(void **state)
{
	static const enum leat_on_error modes[] = {LEAT_ON_ERROR_SKIP, LEAT_ON_ERROR_REPLACE};
	struct leat_options options;

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		trace_options(&options);
		options.on_error = modes[i];
		compare_memories(&damaged, " | shuffle | batch(64)", &options, (size_t)128 << 20);
		compare_memories(&damaged, " | cast(float32, " NUMBERS ") | shuffle | batch(64)", &options,
		                 (size_t)128 << 20);
		compare_memories(&damaged, " | cache(size=8MiB) | shuffle | batch(16)", &options, (size_t)128 << 20);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(fields_are_contiguous_aligned_and_right),
		cmocka_unit_test(the_least_memory_is_small_and_enough),
		cmocka_unit_test(bad_samples_leave_room_for_others),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
