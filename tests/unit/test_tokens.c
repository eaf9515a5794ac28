/* test_tokens.c - the source tokens: windows of flat files */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "support/source.h"
#include "support/trace.h"
#include "support/temp.h"

static struct temp temp;
static char text[1000];

static const char *
spec(const char *rest)
{
	snprintf(text, sizeof text, "tokens('%s/%s", temp.folder, rest);
	return text;
}

/* a.bin: 0 1 2 ... 24; b.bin: 3 tokens; c.bin: 1000 1001 ... 1009; each u16. */
static int
setup(void **state)
{
	uint16_t a[25], b[] = {7, 8, 9}, c[10];

	(void)state;
	temp_make(&temp);
	for (int i = 0; i < 25; i++)
		a[i] = (uint16_t)i;
	for (int i = 0; i < 10; i++)
		c[i] = (uint16_t)(1000 + i);
	temp_write(&temp, "a.bin", a, sizeof a);
	temp_write(&temp, "b.bin", b, sizeof b);
	temp_write(&temp, "c.bin", c, sizeof c);
	return 0;
}

static int
teardown(void **state)
{
	(void)state;
	temp_remove(&temp);
	return 0;
}

/* The first token of each sample, and that the others follow it one by one. */
static void
expect_begins(const char *rest, const char *field, int64_t length, const int32_t *begin, int64_t count)
{
	struct whole whole;
	struct leat_tensor tensor;
	const int32_t *token;

	whole_open(&whole, spec(rest), NULL);
	tensor = whole_field(&whole, field);
	token = tensor.data;
	assert_int_equal(whole.count, count);
	assert_int_equal(tensor.dtype, LEAT_I32);
	assert_int_equal(tensor.ndim, 2);
	assert_int_equal(tensor.shape[1], length);
	for (int64_t i = 0; i < count; i++)
		for (int64_t k = 0; k < length; k++)
			assert_int_equal(token[i * length + k], begin[i] + k);
	whole_close(&whole);
}

static void
windows_stay_in_their_files_and_leave_out_the_rest(void **state)
{
	static const int32_t begin[] = {0, 5, 10, 15, 20, 1000, 1005}, four[] = {0, 4, 8, 12, 16, 20, 1000, 1004};
	static const int32_t whole_file[] = {0}, three[] = {7};

	(void)state;
	expect_begins("*.bin', length=5)", "tokens", 5, begin, 7);
	expect_begins("*.bin', length=4)", "tokens", 4, four, 8);
	expect_begins("*.bin', length=25)", "tokens", 25, whole_file, 1);
	expect_begins("b.bin', length=3)", "tokens", 3, three, 1);
}

static void
a_stride_lets_windows_overlap_or_leaves_gaps(void **state)
{
	static const int32_t overlap[] = {0, 7, 14, 1000}, gaps[] = {0, 11, 22, 7, 1000}, far[] = {0, 7, 1000};

	(void)state;
	expect_begins("*.bin', length=10, stride=7)", "tokens", 10, overlap, 4);
	expect_begins("*.bin', length=3, stride=11)", "tokens", 3, gaps, 5);
	expect_begins("*.bin', length=3, stride=9000000000000000000)", "tokens", 3, far, 3);
}

static void
targets_are_the_tokens_further_on(void **state)
{
	static const int32_t begin[] = {0, 5, 10, 15, 1000}, next[] = {1, 6, 11, 16, 1001},
			     third[] = {3, 8, 13, 18, 1003};

	(void)state;
	/* The window at 20 has no next token, and that at 1005 none either. */
	expect_begins("*.bin', length=5, shift=1)", "tokens", 5, begin, 5);
	expect_begins("*.bin', length=5, shift=1)", "targets", 5, next, 5);
	expect_begins("*.bin', length=5, shift=3)", "targets", 5, third, 5);
}

/* Both fields are windows on the same memory. */
static void
an_op_on_one_field_leaves_the_other_alone(void **state)
{
	static const int32_t next[] = {1, 6, 11, 16, 1001};
	struct leat_tensor tensor;
	struct whole whole;

	(void)state;
	whole_open(&whole, spec("*.bin', length=5, shift=1) | cast(float32, field=tokens) | scale(2, field=tokens)"),
	           NULL);
	tensor = whole_field(&whole, "tokens");
	for (int i = 0; i < 5; i++)
		assert_float_equal(((const float *)tensor.data)[5 * i], 2.0f * (float)(next[i] - 1), 0);
	tensor = whole_field(&whole, "targets");
	for (int i = 0; i < 5; i++)
		assert_int_equal(((const int32_t *)tensor.data)[5 * i], next[i]);
	whole_close(&whole);
}

static void
a_header_is_skipped(void **state)
{
	static const int32_t begin[] = {3, 8, 13, 18};

	(void)state;
	expect_begins("a.bin', length=5, header_bytes=6)", "tokens", 5, begin, 4);
	expect_refused(spec("*.bin', length=1, header_bytes=8)"), LEAT_DATA, "fewer than header_bytes=8");
	expect_refused(spec("a.bin', length=1, header_bytes=50)"), LEAT_DATA, "no file has the 1 tokens");
}

static void
wider_tokens_keep_their_values(void **state)
{
	static const int32_t narrow[] = {0, -1, INT32_MIN, INT32_MAX, 70000};
	static const int64_t wide[] = {0, -1, INT64_MIN, INT64_MAX, 1};
	struct leat_tensor tensor;
	struct whole whole;

	(void)state;
	temp_write(&temp, "narrow", narrow, sizeof narrow);
	temp_write(&temp, "wide", wide, sizeof wide);
	whole_open(&whole, spec("narrow', length=5, dtype=int32)"), NULL);
	tensor = whole_field(&whole, "tokens");
	assert_int_equal(tensor.dtype, LEAT_I32);
	assert_memory_equal(tensor.data, narrow, sizeof narrow);
	whole_close(&whole);
	whole_open(&whole, spec("wide', length=4, dtype=int64, shift=1)"), NULL);
	tensor = whole_field(&whole, "tokens");
	assert_int_equal(tensor.dtype, LEAT_I64);
	assert_memory_equal(tensor.data, wide, 4 * sizeof *wide);
	assert_memory_equal(whole_field(&whole, "targets").data, wide + 1, 4 * sizeof *wide);
	whole_close(&whole);
}

static void
a_token_that_int32_cannot_hold_is_a_bad_sample(void **state)
{
	static const uint32_t token[] = {1, 2, 0x7fffffff, 0x80000000, 5, 6};
	struct leat_options options;
	struct whole whole;

	(void)state;
	temp_write(&temp, "unsigned", token, sizeof token);
	trace_options(&options);
	options.on_error = LEAT_ON_ERROR_SKIP;
	whole_open(&whole, spec("unsigned', length=2, dtype=uint32)"), &options);
	assert_int_equal(whole.count, 2);
	assert_int_equal(((const int32_t *)whole_field(&whole, "tokens").data)[2], 5);
	assert_int_equal(leat_bad_count(whole.feed), 1);
	assert_int_equal(leat_bad_at(whole.feed, 0)->sample, 1);
	assert_non_null(strstr(leat_bad_at(whole.feed, 0)->reason, "offset 12: token 2147483648 does not fit int32"));
	whole_close(&whole);
}

static void
files_that_cannot_be_right_are_refused(void **state)
{
	(void)state;
	temp_write(&temp, "odd", "12345", 5);
	temp_write(&temp, "empty", "", 0);
	expect_refused(spec("odd', length=1)"), LEAT_DATA, "5 bytes, not a multiple of the token size 2");
	expect_refused(spec("odd', length=1, dtype=int64, header_bytes=1)"), LEAT_DATA, "4 bytes after the header");
	expect_refused(spec("empty', length=1)"), LEAT_DATA, "no file has the 1 tokens needed for a sample");
	expect_refused(spec("[ab].bin', length=25, shift=1)"), LEAT_DATA,
	               "26 tokens needed for a sample; the first is");
	expect_refused(spec("none-*', length=1)"), LEAT_IO, "no file matches");
	expect_refused(spec("a.bin')"), LEAT_SPEC, "needs the option 'length'");
	expect_refused(spec("a.bin', length=0)"), LEAT_SPEC, "length");
}

static void
samples_of_a_file_that_changes_are_bad(void **state)
{
	uint16_t token[20] = {0};
	struct leat_options options;
	struct leat_batch *batch;
	struct leat_feed *feed;
	struct leat_err err;

	(void)state;
	temp_write(&temp, "shrinks", token, sizeof token);
	trace_options(&options);
	options.on_error = LEAT_ON_ERROR_SKIP;
	feed = trace_open(spec("shrinks', length=5) | batch(4) | prefetch(0)"), &options);
	assert_int_equal(truncate(temp_path(&temp, "shrinks"), 22), 0);
	assert_int_equal(leat_next(feed, &batch, &err), LEAT_OK);
	assert_int_equal(leat_batch_count(batch), 0);
	assert_int_equal(leat_bad_count(feed), 4);
	assert_non_null(strstr(leat_bad_at(feed, 0)->reason, "it had 40 bytes and now has 22"));
	leat_release(batch);
	leat_close(feed);
}

/* Windows that are too large for a worker's scratch take the large one. */
static void
large_windows_come_through(void **state)
{
	enum { TOKENS = 1 << 20 };
	uint16_t *token = malloc(TOKENS * sizeof *token);
	struct leat_tensor tensor;
	struct whole whole;

	(void)state;
	for (int i = 0; i < TOKENS; i++)
		token[i] = (uint16_t)(i * 7);
	snprintf(text, sizeof text, "%s/large", temp.folder);
	FILE *file = fopen(text, "wb");
	assert_int_equal(fwrite(token, sizeof *token, TOKENS, file), TOKENS);
	fclose(file);
	whole_open(&whole, spec("large', length=524288) | batch(2)"), NULL);
	tensor = whole_field(&whole, "tokens");
	for (int i = 0; i < TOKENS; i++)
		if (((const int32_t *)tensor.data)[i] != token[i])
			fail_msg("token %d", i);
	whole_close(&whole);
	free(token);
}

static void
the_same_for_any_threads_ranks_and_stops(void **state)
{
	(void)state;
	promise_same(spec("*.bin', length=2, shift=1)"));
	promise_same(spec("*.bin', length=3, stride=1) | interleave(2)"));
}

static void
no_memory_is_an_error(void **state)
{
	(void)state;
	promise_memory_errors(spec("*.bin', length=2, shift=1) | batch(4)"), NULL);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(windows_stay_in_their_files_and_leave_out_the_rest),
		cmocka_unit_test(a_stride_lets_windows_overlap_or_leaves_gaps),
		cmocka_unit_test(targets_are_the_tokens_further_on),
		cmocka_unit_test(an_op_on_one_field_leaves_the_other_alone),
		cmocka_unit_test(a_header_is_skipped),
		cmocka_unit_test(wider_tokens_keep_their_values),
		cmocka_unit_test(a_token_that_int32_cannot_hold_is_a_bad_sample),
		cmocka_unit_test(files_that_cannot_be_right_are_refused),
		cmocka_unit_test(samples_of_a_file_that_changes_are_bad),
		cmocka_unit_test(large_windows_come_through),
		cmocka_unit_test(the_same_for_any_threads_ranks_and_stops),
		cmocka_unit_test(no_memory_is_an_error),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
