/* test_windows.c - the source windows: every window is where a slice of the recording is */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <sys/mman.h>

#include "format/npy_write.h"
#include "support/source.h"
#include "support/temp.h"
#include "support/trace.h"

static struct temp temp;
static char text[2000];

static int
setup(void **state)
{
	(void)state;
	temp_make(&temp);
	return 0;
}

static int
teardown(void **state)
{
	(void)state;
	temp_remove(&temp);
	return 0;
}

/* ---- recordings ---- */

/* An array whose element k is base + k, without its last `missing` bytes. */
static void
write_array(const char *name, enum leat_dtype dtype, int ndim, const int64_t *shape, int64_t base, size_t missing)
{
	char head[LEAT_NPY_HEAD];
	size_t size = leat_dtype_size(dtype), at = leat_npy_head(head, dtype, ndim, shape, shape[0]), elements = 1;
	unsigned char *file;

	for (int d = 0; d < ndim; d++)
		elements *= (size_t)shape[d];
	file = malloc(at + elements * size);
	memcpy(file, head, at);
	for (size_t k = 0; k < elements; k++) {
		int64_t whole = base + (int64_t)k;
		float single = (float)whole;

		memcpy(file + at + k * size, dtype == LEAT_F32 ? (void *)&single : (void *)&whole, size);
	}
	temp_write(&temp, name, file, at + elements * size - missing);
	free(file);
}

static void
write_labels(const char *name, const int32_t *label, int64_t count)
{
	char file[LEAT_NPY_HEAD + 4096];
	size_t at = leat_npy_head(file, LEAT_I32, 1, &count, count);

	memcpy(file + at, label, (size_t)count * sizeof *label);
	temp_write(&temp, name, file, at + (size_t)count * sizeof *label);
}

static const char *
spec(const char *format, ...)
{
	va_list args;

	snprintf(text, sizeof text, "windows('%s/", temp.folder);
	va_start(args, format);
	vsnprintf(text + strlen(text), sizeof text - strlen(text), format, args);
	va_end(args);
	return text;
}

static const char *
with(const char *option, const char *name)
{
	static char argument[2][600];
	static int turn;

	turn = !turn;
	snprintf(argument[turn], sizeof argument[turn], ", %s='%s/%s'", option, temp.folder, name);
	return argument[turn];
}

static double
value(const struct leat_tensor *tensor, int64_t i)
{
	switch (tensor->dtype) {
	case LEAT_I16:
		return ((const int16_t *)tensor->data)[i];
	case LEAT_I32:
		return ((const int32_t *)tensor->data)[i];
	case LEAT_I64:
		return (double)((const int64_t *)tensor->data)[i];
	case LEAT_F32:
		return (double)((const float *)tensor->data)[i];
	default:
		fail();
	}
	return 0;
}

static void
expect_values(const struct whole *whole, const char *field, const double *wanted, int64_t count)
{
	struct leat_tensor tensor = whole_field(whole, field);
	int64_t elements = 1;

	for (int d = 0; d < tensor.ndim; d++)
		elements *= tensor.shape[d];
	assert_int_equal(elements, count);
	for (int64_t i = 0; i < count; i++)
		if (value(&tensor, i) != wanted[i])
			fail_msg("element %lld of %s is %g, not %g", (long long)i, field, value(&tensor, i), wanted[i]);
}

#define EXPECT(whole, field, ...)                                                                                      \
	expect_values(whole, field, (const double[]){__VA_ARGS__},                                                     \
	              sizeof((const double[]){__VA_ARGS__}) / sizeof(double))

/* ---- windows ---- */

static void
windows_of_one_dimension_overlap_and_leave_the_rest(void **state)
{
	struct whole whole;

	(void)state;
	write_array("audio.npy", LEAT_I16, 1, (int64_t[]){11}, 0, 0);
	whole_open(&whole, spec("audio.npy', length=4, stride=3)"), NULL);
	EXPECT(&whole, "x", 0, 1, 2, 3, 3, 4, 5, 6, 6, 7, 8, 9);
	whole_close(&whole);
	whole_open(&whole, spec("audio.npy', length=4)"), NULL);
	EXPECT(&whole, "x", 0, 1, 2, 3, 4, 5, 6, 7);
	whole_close(&whole);
	whole_open(&whole, spec("audio.npy', length=2, stride=9)"), NULL);
	EXPECT(&whole, "x", 0, 1, 9, 10);
	whole_close(&whole);
	whole_open(&whole, spec("audio.npy', length=11)"), NULL);
	assert_int_equal(whole.count, 1);
	whole_close(&whole);
}

static void
windows_along_each_axis_are_slices(void **state)
{
	struct leat_tensor x;
	struct whole whole;

	(void)state;
	write_array("grid.npy", LEAT_F32, 3, (int64_t[]){4, 5, 6}, 0, 0);
	for (int axis = 0; axis < 3; axis++) {
		int64_t shape[3] = {4, 5, 6}, steps = shape[axis], windows = steps - 2 + 1, k = 0;

		shape[axis] = 2;
		whole_open(&whole, spec("grid.npy', length=2, stride=1, axis=%d)", axis), NULL);
		x = whole_field(&whole, "x");
		assert_int_equal(whole.count, windows);
		for (int64_t w = 0; w < windows; w++)
			for (int64_t a = 0; a < shape[0]; a++)
				for (int64_t b = 0; b < shape[1]; b++)
					for (int64_t c = 0; c < shape[2]; c++, k++)
						assert_true(value(&x, k) == (double)((a + (axis == 0 ? w : 0)) * 30 +
						                                     (b + (axis == 1 ? w : 0)) * 6 + c +
						                                     (axis == 2 ? w : 0)));
		whole_close(&whole);
	}
}

static void
windows_cross_files_only_if_they_are_one_series(void **state)
{
	struct whole whole;

	(void)state;
	write_array("s-0.npy", LEAT_I32, 2, (int64_t[]){2, 3}, 0, 0);   /* 0 1 2 | 3 4 5 */
	write_array("s-1.npy", LEAT_I32, 2, (int64_t[]){2, 0}, 0, 0);   /* nothing */
	write_array("s-2.npy", LEAT_I32, 2, (int64_t[]){2, 2}, 100, 0); /* 100 101 | 102 103 */
	write_array("s-3.npy", LEAT_I32, 2, (int64_t[]){2, 1}, 200, 0); /* 200 | 201 */
	whole_open(&whole, spec("s-*.npy', length=2, stride=1, axis=1)"), NULL);
	EXPECT(&whole, "x", 0, 1, 3, 4, 1, 2, 4, 5, 100, 101, 102, 103);
	whole_close(&whole);
	whole_open(&whole, spec("s-*.npy', length=4, stride=1, axis=1, across=true)"), NULL);
	EXPECT(&whole, "x", 0, 1, 2, 100, 3, 4, 5, 102, 1, 2, 100, 101, 4, 5, 102, 103, 2, 100, 101, 200, 5, 102, 103,
	       201);
	whole_close(&whole);
}

static void
complex_recordings_keep_their_pairs_together(void **state)
{
	char file[200] = "\x93NUMPY\x01";
	struct leat_tensor x;
	struct whole whole;

	(void)state;
	file[8] = 118;
	memset(file + 10, ' ', 118);
	memcpy(file + 10, "{'descr': '<c8', 'fortran_order': False, 'shape': (3,)}", 55);
	for (int k = 0; k < 6; k++)
		memcpy(file + 128 + 4 * k, &(float){(float)k}, 4);
	temp_write(&temp, "iq.npy", file, 128 + 24);
	whole_open(&whole, spec("iq.npy', length=2, stride=1)"), NULL);
	x = whole_field(&whole, "x");
	assert_int_equal(x.ndim, 3);
	EXPECT(&whole, "x", 0, 1, 2, 3, 2, 3, 4, 5);
	whole_close(&whole);
	expect_refused(spec("iq.npy', length=1, axis=1)"), LEAT_INVALID, "has 1 dimension, so axis is at most 0");
}

/* ---- labels ---- */

static void
labels_are_those_of_the_steps(void **state)
{
	static const int32_t label[] = {5, 5, 7, 7, 7, 2, 2};
	struct leat_tensor tensor;
	struct whole whole;

	(void)state;
	write_array("l.npy", LEAT_F32, 2, (int64_t[]){7, 2}, 0, 0);
	write_labels("y.npy", label, 7);
	whole_open(&whole, spec("l.npy', length=4, stride=3%s)", with("labels", "y.npy")), NULL);
	tensor = whole_field(&whole, "label");
	assert_int_equal(tensor.dtype, LEAT_I32);
	assert_int_equal(tensor.ndim, 1);
	EXPECT(&whole, "label", 7, 2);
	whole_close(&whole);
	whole_open(&whole, spec("l.npy', length=4, stride=3, label=first%s)", with("labels", "y.npy")), NULL);
	EXPECT(&whole, "label", 5, 7);
	whole_close(&whole);
	whole_open(&whole, spec("l.npy', length=5, stride=2, label=center%s)", with("labels", "y.npy")), NULL);
	EXPECT(&whole, "label", 7, 7);
	whole_close(&whole);
	whole_open(&whole, spec("l.npy', length=4, stride=3, label=all%s)", with("labels", "y.npy")), NULL);
	EXPECT(&whole, "label", 5, 5, 7, 7, 7, 7, 2, 2);
	whole_close(&whole);
	/* 5 5 7 7 and 7 7 2 2: of several, the smallest */
	whole_open(&whole, spec("l.npy', length=4, stride=3, label=majority%s)", with("labels", "y.npy")), NULL);
	EXPECT(&whole, "label", 5, 2);
	whole_close(&whole);
	whole_open(&whole, spec("l.npy', length=5, stride=1, label=majority%s)", with("labels", "y.npy")), NULL);
	EXPECT(&whole, "label", 7, 7, 7);
	whole_close(&whole);
}

static void
labels_of_windows_across_files_are_joined(void **state)
{
	struct whole whole;

	(void)state;
	write_array("j-0.npy", LEAT_I32, 1, (int64_t[]){3}, 0, 0);
	write_array("j-1.npy", LEAT_I32, 1, (int64_t[]){2}, 3, 0);
	write_labels("k-0.npy", (int32_t[]){1, 1, 9}, 3);
	write_labels("k-1.npy", (int32_t[]){9, 9}, 2);
	whole_open(&whole, spec("j-*.npy', length=4, stride=1, across=true, label=all%s)", with("labels", "k-*.npy")),
	           NULL);
	EXPECT(&whole, "x", 0, 1, 2, 3, 1, 2, 3, 4);
	EXPECT(&whole, "label", 1, 1, 9, 9, 1, 9, 9, 9);
	whole_close(&whole);
	whole_open(&whole,
	           spec("j-*.npy', length=4, stride=1, across=true, label=majority%s)", with("labels", "k-*.npy")),
	           NULL);
	EXPECT(&whole, "label", 1, 9);
	whole_close(&whole);
	whole_open(&whole, spec("j-*.npy', length=4, stride=1, across=true%s)", with("labels", "k-*.npy")), NULL);
	EXPECT(&whole, "label", 9, 9);
	whole_close(&whole);
}

/* ---- events ---- */

static void
write_text(const char *name, const char *content)
{
	temp_write(&temp, name, content, strlen(content));
}

static void
each_event_has_a_window(void **state)
{
	static const char *const lists[] = {
		"start,label\n4,1\n2,0\n4,7\n",
		"label,note,start\n1,a,4\n0,b,2\n7,c,4\n",
		"4,1\r\n2,0\r\n4,7\r\n",
		"\357\273\2774,0,1\n2,9,0\n4,9,7",
	};
	struct leat_tensor tensor;
	struct whole whole;

	(void)state;
	write_array("e.npy", LEAT_I32, 2, (int64_t[]){2, 10}, 0, 0);
	for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
		write_text("e.csv", lists[i]);
		whole_open(&whole, spec("e.npy', length=3, axis=1, offset=-1%s)", with("events", "e.csv")), NULL);
		EXPECT(&whole, "x", 3, 4, 5, 13, 14, 15, 1, 2, 3, 11, 12, 13, 3, 4, 5, 13, 14, 15);
		EXPECT(&whole, "label", 1, 0, 7);
		tensor = whole_field(&whole, "label");
		assert_int_equal(tensor.dtype, LEAT_I64);
		whole_close(&whole);
	}
	write_array("events.npy", LEAT_I32, 2, (int64_t[]){2, 3}, 0, 0); /* 0 1 2 | 3 4 5 */
	whole_open(&whole, spec("e.npy', length=1, axis=1%s)", with("events", "events.npy")), NULL);
	EXPECT(&whole, "x", 0, 10, 3, 13);
	EXPECT(&whole, "label", 2, 5);
	whole_close(&whole);
	write_array("starts.npy", LEAT_I64, 1, (int64_t[]){3}, 7, 0);
	whole_open(&whole, spec("e.npy', length=1, axis=1%s)", with("events", "starts.npy")), NULL);
	EXPECT(&whole, "x", 7, 17, 8, 18, 9, 19);
	assert_int_equal(leat_field_count(whole.feed), 1);
	whole_close(&whole);
}

static void
expect_bad(const char *what, uint64_t bad, const char *reason, const double *good, int64_t count)
{
	struct leat_options options;
	struct whole whole;

	trace_options(&options);
	options.on_error = LEAT_ON_ERROR_SKIP;
	whole_open(&whole, what, &options);
	expect_values(&whole, "x", good, count);
	assert_int_equal(leat_bad_count(whole.feed), bad);
	if (!strstr(leat_bad_at(whole.feed, 0)->reason, reason))
		fail_msg("%s", leat_bad_at(whole.feed, 0)->reason);
	whole_close(&whole);
}

static void
events_outside_their_recording_are_bad_samples(void **state)
{
	(void)state;
	write_array("o.npy", LEAT_I32, 1, (int64_t[]){10}, 0, 0);
	write_text("o.csv", "1\n3\n8\n9\n-9223372036854775808\n9223372036854775807\n");
	expect_bad(spec("o.npy', length=3, offset=-2%s)", with("events", "o.csv")), 3, "event 0 of '",
	           (double[]){1, 2, 3, 6, 7, 8, 7, 8, 9}, 9);
	expect_bad(spec("o.npy', length=3, offset=-2%s)", with("events", "o.csv")), 3,
	           "at step 1 with offset -2: its window is not within the 10 steps of '",
	           (double[]){1, 2, 3, 6, 7, 8, 7, 8, 9}, 9);
	expect_bad(spec("o.npy', length=1, offset=1%s)", with("events", "o.csv")), 3, "event 3 of", (double[]){2, 4, 9},
	           3);
}

static void
windows_that_a_truncated_file_lacks_are_bad_samples(void **state)
{
	(void)state;
	write_array("t-0.npy", LEAT_I32, 1, (int64_t[]){10}, 0, 9);
	write_array("t-1.npy", LEAT_I32, 1, (int64_t[]){4}, 100, 0);
	expect_bad(spec("t-*.npy', length=2)"), 2, "t-0.npy' is truncated: it lacks a part of the window at step 6",
	           (double[]){0, 1, 2, 3, 4, 5, 100, 101, 102, 103}, 10);
	expect_bad(spec("t-*.npy', length=4, across=true)"), 2, "t-0.npy' is truncated", (double[]){0, 1, 2, 3}, 4);
	write_array("c.npy", LEAT_I32, 2, (int64_t[]){2, 4}, 0, 4); /* the last step of the second channel */
	expect_bad(spec("c.npy', length=2, axis=1)"), 1, "window at step 2", (double[]){0, 1, 4, 5}, 4);
}

/* ---- errors ---- */

static void
what_does_not_fit_is_refused_by_name(void **state)
{
	(void)state;
	write_array("a-0.npy", LEAT_I32, 2, (int64_t[]){6, 2}, 0, 0);
	write_array("a-1.npy", LEAT_I32, 2, (int64_t[]){5, 3}, 0, 0);
	write_array("b.npy", LEAT_F32, 1, (int64_t[]){6}, 0, 0);
	write_array("none.npy", LEAT_F32, 2, (int64_t[]){6, 0}, 0, 0);
	write_text("bad.csv", "start,label\n1,cat\n");
	write_text("odd.csv", "onset,label\n1,2\n");
	write_text("empty.csv", "start\n");
	write_text("half.csv", "1.5,2\n");
	expect_refused(spec("a-*.npy', length=2)"), LEAT_DATA, "a-1.npy' is int32[?, 3], but '");
	expect_refused(spec("a-*.npy', length=2, axis=1)"), LEAT_DATA, "a-1.npy' is int32[5, ?], but '");
	expect_refused(spec("b.npy', length=7)"), LEAT_DATA, "no recording has the 7 steps of a window; the first, '");
	expect_refused(spec("b.npy', length=2, axis=1)"), LEAT_INVALID, "has 1 dimension, so axis is at most 0");
	expect_refused(spec("none.npy', length=2)"), LEAT_DATA, "it has no elements");
	expect_refused(spec("b.npy')"), LEAT_SPEC, "length");
	expect_refused(spec("b.npy', length=2%s)", with("labels", "a-0.npy', label='majority")), LEAT_DATA,
	               "needs one integer, up to int64, for each step");
	expect_refused(spec("b.npy', length=2, label=majority%s)", with("labels", "b.npy")), LEAT_DATA,
	               "needs one integer");
	expect_refused(spec("b.npy', length=2%s)", with("labels", "a-1.npy")), LEAT_DATA, "has 5 labels, but '");
	expect_refused(spec("b.npy', length=2%s)", with("labels", "a-*.npy")), LEAT_INVALID,
	               "there are 1 recordings and 2 files of labels");
	expect_refused(spec("b.npy', length=2%s%s)", with("labels", "b.npy"), with("events", "b.npy")), LEAT_INVALID,
	               "labels or events, not both");
	expect_refused(spec("b.npy', length=2, offset=3)"), LEAT_INVALID, "offset is for windows of events");
	expect_refused(spec("b.npy', length=2, stride=2%s)", with("events", "b.npy")), LEAT_INVALID, "no stride");
	expect_refused(spec("b.npy', length=2, across=true%s)", with("events", "b.npy")), LEAT_INVALID, "across=true");
	expect_refused(spec("b.npy', length=2%s)", with("events", "b.npy")), LEAT_DATA, "save an int64 array");
	expect_refused(spec("b.npy', length=2%s)", with("events", "bad.csv")), LEAT_DATA,
	               "line 2: the label of an event is an integer");
	expect_refused(spec("b.npy', length=2%s)", with("events", "odd.csv")), LEAT_DATA, "has no column 'start'");
	expect_refused(spec("b.npy', length=2%s)", with("events", "empty.csv")), LEAT_DATA, "there are no events");
	expect_refused(spec("b.npy', length=2%s)", with("events", "half.csv")), LEAT_DATA, "half.csv'");
}

/* ---- large files ---- */

enum { CHANNELS = 3, STEPS = 200000 };

static void
mapped_recordings_give_the_same_windows(void **state)
{
	struct leat_options options;
	struct leat_batch *batch;
	struct leat_feed *feed;
	struct leat_err err;
	int64_t seen = 0;

	(void)state;
	write_array("large.npy", LEAT_I32, 2, (int64_t[]){CHANNELS, STEPS}, 0, 0);
	write_array("large-y.npy", LEAT_I64, 1, (int64_t[]){STEPS}, 0, 0);
	trace_options(&options);
	feed = trace_open(spec("large.npy', length=1000, stride=700, axis=1%s) | shuffle | batch(16)",
	                       with("labels", "large-y.npy")),
	                  &options);
	while (leat_next(feed, &batch, &err) == LEAT_OK) {
		struct leat_tensor x, label;

		assert_int_equal(leat_batch_field(batch, "x", &x, &err), LEAT_OK);
		assert_int_equal(leat_batch_field(batch, "label", &label, &err), LEAT_OK);
		for (int64_t i = 0; i < leat_batch_count(batch); i++, seen++) {
			int64_t begin = ((const int64_t *)label.data)[i] - 999;
			const int32_t *window = (const int32_t *)x.data + i * CHANNELS * 1000;

			for (int64_t k = 0; k < CHANNELS * 1000; k++)
				if (window[k] != k / 1000 * STEPS + begin + k % 1000)
					fail_msg("element %lld of the window at %lld", (long long)k, (long long)begin);
		}
		leat_release(batch);
	}
	leat_close(feed);
	assert_int_equal(seen, (STEPS - 1000) / 700 + 1);
}

/* ---- promises ---- */

static void
write_promised(void)
{
	write_array("p-0.npy", LEAT_F32, 2, (int64_t[]){2, 40}, 0, 0);
	write_array("p-1.npy", LEAT_F32, 2, (int64_t[]){2, 31}, 500, 0);
	write_array("q-0.npy", LEAT_I64, 1, (int64_t[]){40}, 0, 0);
	write_array("q-1.npy", LEAT_I64, 1, (int64_t[]){31}, 40, 0);
	write_text("r-0.csv", "3,1\n1,2\n20,3\n");
	write_text("r-1.csv", "3,1\n1,2\n20,3\n7,7\n");
}

static void
the_same_for_any_threads_ranks_and_stops(void **state)
{
	(void)state;
	write_promised();
	promise_same(spec("p-*.npy', length=5, stride=2, axis=1%s)", with("labels", "q-*.npy")));
	promise_same(spec("p-*.npy', length=9, stride=2, axis=1, across=true, label=majority%s)",
	                  with("labels", "q-*.npy")));
	promise_same(spec("p-*.npy', length=5, axis=1%s) | repeat(5)", with("events", "r-*.csv")));
}

static void
no_memory_is_an_error(void **state)
{
	(void)state;
	write_promised();
	promise_memory_errors(spec("p-*.npy', length=9, stride=5, axis=1, across=true, label=majority%s) | batch(2)",
	                           with("labels", "q-*.npy")),
	                      NULL);
	promise_memory_errors(spec("p-*.npy', length=5, axis=1%s) | batch(2)", with("events", "r-*.csv")), NULL);
}

static void
save_and_restore(const char *before, const char *after, enum leat_status expected)
{
	struct leat_options options;
	struct leat_feed *feed;
	struct leat_err err;
	char *json;

	trace_options(&options);
	feed = trace_open(before, &options);
	assert_int_equal(leat_save(feed, &json, &err), LEAT_OK);
	leat_close(feed);
	feed = trace_open(after, &options);
	assert_int_equal(leat_restore(feed, json, &err), expected);
	leat_close(feed);
	free(json);
}

static void
checkpoints_belong_to_windows_and_labels(void **state)
{
	char before[2000];

	(void)state;
	write_promised();
	strcpy(before, spec("p-*.npy', length=5, stride=2, axis=1%s) | batch(1)", with("labels", "q-*.npy")));
	save_and_restore(before, before, LEAT_OK);
	save_and_restore(before, spec("p-*.npy', length=5, stride=3, axis=1%s) | batch(1)", with("labels", "q-*.npy")),
	                 LEAT_MISMATCH);
	save_and_restore(before, spec("p-*.npy', length=5, stride=2, axis=1) | batch(1)"), LEAT_MISMATCH);
	strcpy(before, spec("p-*.npy', length=5, axis=1%s) | batch(1)", with("events", "r-*.csv")));
	write_text("r-1.csv", "3,1\n1,2\n20,3\n");
	save_and_restore(before, before, LEAT_OK);
	strcpy(before, spec("p-0.npy', length=5, axis=1%s) | batch(1)", with("events", "r-0.csv")));
	save_and_restore(before, spec("p-0.npy', length=5, axis=1%s) | batch(1)", with("events", "r-1.csv")),
	                 LEAT_MISMATCH);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(windows_of_one_dimension_overlap_and_leave_the_rest),
		cmocka_unit_test(windows_along_each_axis_are_slices),
		cmocka_unit_test(windows_cross_files_only_if_they_are_one_series),
		cmocka_unit_test(complex_recordings_keep_their_pairs_together),
		cmocka_unit_test(labels_are_those_of_the_steps),
		cmocka_unit_test(labels_of_windows_across_files_are_joined),
		cmocka_unit_test(each_event_has_a_window),
		cmocka_unit_test(events_outside_their_recording_are_bad_samples),
		cmocka_unit_test(windows_that_a_truncated_file_lacks_are_bad_samples),
		cmocka_unit_test(what_does_not_fit_is_refused_by_name),
		cmocka_unit_test(mapped_recordings_give_the_same_windows),
		cmocka_unit_test(the_same_for_any_threads_ranks_and_stops),
		cmocka_unit_test(no_memory_is_an_error),
		cmocka_unit_test(checkpoints_belong_to_windows_and_labels),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
