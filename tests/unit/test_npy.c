/* test_npy.c - the source npy, on arrays that NumPy saved (tests/golden/make_npy.py) and on others */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <sys/mman.h>

#include "format/npy_header.h"
#include "support/source.h"
#include "support/temp.h"
#include "support/trace.h"

#define NPY GOLDEN "npy/"
#define TYPES GOLDEN "npy_types/"

#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22
#endif

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

static double
value(const struct leat_tensor *tensor, int64_t i)
{
	switch (tensor->dtype) {
	case LEAT_U8:
		return ((const uint8_t *)tensor->data)[i];
	case LEAT_I32:
		return ((const int32_t *)tensor->data)[i];
	case LEAT_I64:
		return (double)((const int64_t *)tensor->data)[i];
	case LEAT_F32:
		return (double)((const float *)tensor->data)[i];
	case LEAT_F64:
		return ((const double *)tensor->data)[i];
	case LEAT_I16:
		return ((const int16_t *)tensor->data)[i];
	default:
		fail();
	}
	return 0;
}

/* Element k is k. */
static void
expect_counted(const char *name, enum leat_dtype dtype, int ndim, const int64_t *shape)
{
	struct leat_tensor tensor;
	struct whole whole;
	int64_t elements = 1;

	snprintf(text, sizeof text, "npy(x='" GOLDEN "%s.npy')", name);
	whole_open(&whole, text, NULL);
	tensor = whole_field(&whole, "x");
	assert_int_equal(tensor.dtype, dtype);
	assert_int_equal(tensor.ndim, ndim);
	for (int d = 0; d < ndim; d++) {
		assert_int_equal(tensor.shape[d], shape[d]);
		elements *= shape[d];
	}
	for (int64_t k = 0; k < elements; k++)
		if (value(&tensor, k) != (double)k)
			fail_msg("element %lld of %s is %g", (long long)k, name, value(&tensor, k));
	whole_close(&whole);
}

static void
arrays_of_all_types_and_shapes_are_read(void **state)
{
	static const int64_t five_by_three[] = {5, 3}, deep[] = {5, 1, 2, 1, 3}, planes[] = {5, 3, 6, 5},
			     pairs[] = {5, 3, 2};

	(void)state;
	expect_counted("npy/f4", LEAT_F32, 2, five_by_three);
	expect_counted("npy/f8", LEAT_F64, 2, five_by_three);
	expect_counted("npy/i4", LEAT_I32, 2, five_by_three);
	expect_counted("npy/i8", LEAT_I64, 2, five_by_three);
	expect_counted("npy/u1", LEAT_U8, 2, five_by_three);
	expect_counted("npy/vector", LEAT_F32, 1, five_by_three);
	expect_counted("npy/int16", LEAT_I16, 1, five_by_three);
	expect_counted("npy/deep", LEAT_I32, 5, deep);
	expect_counted("npy/planes", LEAT_F32, 4, planes);
	expect_counted("npy/v2", LEAT_F32, 2, five_by_three);
	expect_counted("npy/v3", LEAT_F32, 2, five_by_three);
	expect_counted("npy_types/c8", LEAT_F32, 3, pairs);
	expect_counted("npy_types/c16", LEAT_F64, 3, pairs);
}

static void
halves_and_bools_keep_their_bits(void **state)
{
	static const uint16_t halves[] = {0x0000, 0x3c00, 0x4000, 0x4200}; /* 0 1 2 3 */
	struct leat_tensor tensor;
	struct whole whole;

	(void)state;
	whole_open(&whole, "npy(half='" NPY "f2.npy', odd='" NPY "b1.npy')", NULL);
	tensor = whole_field(&whole, "half");
	assert_int_equal(tensor.dtype, LEAT_F16);
	assert_memory_equal(tensor.data, halves, sizeof halves);
	tensor = whole_field(&whole, "odd");
	assert_int_equal(tensor.dtype, LEAT_U8);
	for (int k = 0; k < 15; k++)
		assert_int_equal(((const uint8_t *)tensor.data)[k], k % 2);
	whole_close(&whole);
}

static void
uint64_holds_more_than_int64(void **state)
{
	struct leat_tensor tensor;
	struct whole whole;

	(void)state;
	whole_open(&whole, "npy(x='" TYPES "u8.npy')", NULL);
	tensor = whole_field(&whole, "x");
	assert_int_equal(tensor.dtype, LEAT_U64);
	for (unsigned k = 0; k < 15; k++)
		assert_true(((const uint64_t *)tensor.data)[k] == (UINT64_C(1) << 63) + k);
	whole_close(&whole);
}

static void
rows_of_several_arrays_stay_together(void **state)
{
	struct leat_tensor x, y;
	struct whole whole;
	bool moved = false;

	(void)state;
	whole_open(&whole, "npy(x='" NPY "f4.npy', y='" NPY "vector.npy') | shuffle", NULL);
	x = whole_field(&whole, "x");
	y = whole_field(&whole, "y");
	for (int i = 0; i < 5; i++) {
		moved |= value(&y, i) != i;
		for (int k = 0; k < 3; k++)
			assert_true(value(&x, 3 * i + k) == 3 * value(&y, i) + k);
	}
	assert_true(moved);
	whole_close(&whole);
}

static void
rows_of_three_dimensions_are_images_and_files_stay_as_they_are(void **state)
{
	struct leat_tensor tensor;
	struct whole whole;

	(void)state;
	for (int again = 0; again < 2; again++) {
		whole_open(&whole, "npy(image='" NPY "image.npy') | flip", NULL);
		tensor = whole_field(&whole, "image");
		for (int k = 0; k < 9; k++) /* the first line of the first image, its pixels from right to left */
			assert_int_equal(((const uint8_t *)tensor.data)[k], 6 - 3 * (k / 3) + k % 3);
		whole_close(&whole);
	}
	whole_open(&whole, "npy(image='" NPY "planes.npy') | layout(hwc)", NULL);
	tensor = whole_field(&whole, "image");
	assert_int_equal(tensor.shape[3], 3);
	assert_true(value(&tensor, 1) == 30); /* the first pixel's second channel */
	whole_close(&whole);
}

static void
what_cannot_be_read_is_refused_by_name(void **state)
{
	static const struct {
		const char *name;
		enum leat_status status;
		const char *part;
	} cases[] = {
		{"hollow", LEAT_DATA, "has no samples: it has no elements"},
		{"scalar", LEAT_DATA, "it is a scalar"},
		{"fortran", LEAT_UNSUPPORTED, "Fortran order"},
		{"big-endian", LEAT_UNSUPPORTED, "big-endian, dtype '>f4'; save a.astype(a.dtype.newbyteorder('<'))"},
		{"text", LEAT_UNSUPPORTED, "dtype '<U2'"},
		{"structure", LEAT_UNSUPPORTED, "structured array"},
		{"dims", LEAT_UNSUPPORTED, "more than 5 dimensions"},
		{"missing", LEAT_IO, "No such file"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		char part[200];

		snprintf(text, sizeof text, "npy(x='" NPY "%s.npy')", cases[i].name);
		snprintf(part, sizeof part, "%s.npy'", cases[i].name);
		expect_refused(text, cases[i].status, part);
		expect_refused(text, cases[i].status, cases[i].part);
	}
	expect_refused("npy(x='" TYPES "complex-dims.npy')", LEAT_UNSUPPORTED,
	               "counting one for real and imaginary parts");
	expect_refused("npy(x='" NPY "f4.npy', y='" NPY "short.npy')", LEAT_DATA, "has 4 rows, but");
	expect_refused("npy(x='" NPY "f?.npy')", LEAT_DATA, "f4.npy' has rows of float32[3], but '");
	expect_refused("npy(x='" NPY "f?.npy')", LEAT_DATA, "all files of field 'x' need the same type and shape");
	expect_refused("npy(x='" NPY "nothing-*.npy')", LEAT_IO, "no file matches");
	expect_refused("npy(x='" NPY "v?.npy', y='" NPY "f4.npy')", LEAT_DATA,
	               "has 5 rows, but field 'x' in 2 files has 10");
}

static void
arguments_are_fields_and_files(void **state)
{
	(void)state;
	expect_refused("npy", LEAT_SPEC, "at least one file");
	expect_refused("npy('x.npy')", LEAT_SPEC, "takes named arguments");
	expect_refused("npy(x=3)", LEAT_SPEC, "expected the file of field 'x'");
	expect_refused("npy(x='')", LEAT_SPEC, "expected the file of field 'x'");
	expect_refused("npy(x=['a', 'b'])", LEAT_SPEC, "expected the file of field 'x'");
	expect_refused("npy(x='a', x='b')", LEAT_SPEC, "given twice");
	expect_refused("npy(x123456789012345678901234567890123456789012345678901234567890123='a')", LEAT_SPEC,
	               "at most 63 characters");
}

/* A header with this text, format 1.0, and `bytes` of data behind it. */
static enum leat_status
parse(const char *header, size_t bytes, struct leat_npy *npy, struct leat_err *err)
{
	unsigned char file[600] = "\x93NUMPY\x01";
	size_t len = strlen(header);

	assert_true(10 + len + bytes <= sizeof file);
	file[8] = (unsigned char)len;
	memcpy(file + 10, header, len);
	leat_err_clear(err);
	return leat_npy_parse(file, 10 + len + bytes, 10 + len + bytes, npy, err);
}

static void
headers_may_be_written_in_other_ways(void **state)
{
	static const char *const same[] = {
		"{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }  \n",
		"{'shape':(2,3),'fortran_order':False,'descr':'<f4'}",
		"{\"shape\" : ( 2L , 3L, ) , \"descr\":\n\"<f4\" , \"fortran_order\" :\tFalse,}",
	};
	struct leat_npy npy;
	struct leat_err err;

	(void)state;
	for (size_t i = 0; i < sizeof same / sizeof *same; i++) {
		if (parse(same[i], 24, &npy, &err) != LEAT_OK)
			fail_msg("%s: %s", same[i], err.text);
		assert_int_equal(npy.dtype, LEAT_F32);
		assert_int_equal(npy.ndim, 2);
		assert_int_equal(npy.shape[0], 2);
		assert_int_equal(npy.shape[1], 3);
		assert_int_equal(npy.row_bytes, 12);
		assert_int_equal(npy.data_at, 10 + strlen(same[i]));
		assert_int_equal(parse(same[i], 25, &npy, &err), LEAT_OK);
		assert_int_equal(parse(same[i], 23, &npy, &err), LEAT_DATA);
		assert_non_null(strstr(err.text, "truncated: its shape needs 24 bytes, but only 23 follow"));
	}
}

static void
expect_type_refused(const char *descr, const char *part)
{
	struct leat_npy npy;
	struct leat_err err;
	char header[100];

	snprintf(header, sizeof header, "{'descr': '%s', 'fortran_order': False, 'shape': (2,)}", descr);
	assert_int_equal(parse(header, 32, &npy, &err), LEAT_UNSUPPORTED);
	if (!strstr(err.text, part))
		fail_msg("%s: %s", descr, err.text);
}

static void
headers_tell_the_type(void **state)
{
	static const struct {
		const char *descr;
		enum leat_dtype dtype;
		bool is_bool, is_complex;
	} known[] = {
		{"|b1", LEAT_U8, true, false},   {"|u1", LEAT_U8, false, false},  {"|i1", LEAT_I8, false, false},
		{"<i2", LEAT_I16, false, false}, {"<u2", LEAT_U16, false, false}, {"<i4", LEAT_I32, false, false},
		{"<u4", LEAT_U32, false, false}, {"<i8", LEAT_I64, false, false}, {"<u8", LEAT_U64, false, false},
		{"<f2", LEAT_F16, false, false}, {"<c8", LEAT_F32, false, true},  {"<c16", LEAT_F64, false, true},
	};
	struct leat_npy npy;
	struct leat_err err;
	char header[100];
	size_t bytes;

	(void)state;
	for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
		snprintf(header, sizeof header, "{'descr': '%s', 'fortran_order': False, 'shape': (2,)}",
		         known[i].descr);
		bytes = (known[i].is_complex ? 4 : 2) * leat_dtype_size(known[i].dtype);
		assert_int_equal(parse(header, bytes - 1, &npy, &err), LEAT_DATA);
		assert_int_equal(parse(header, bytes, &npy, &err), LEAT_OK);
		assert_int_equal(npy.dtype, known[i].dtype);
		assert_int_equal(npy.is_bool, known[i].is_bool);
		assert_int_equal(npy.ndim, known[i].is_complex ? 2 : 1);
		assert_int_equal(npy.bytes, bytes);
	}
	expect_type_refused("<f3", "dtype '<f3' is not supported; save it as");
	expect_type_refused("<c4", "not supported");
	expect_type_refused("|c16", "not supported");
	expect_type_refused("=f4", "not supported");
	expect_type_refused(">", "not supported");
	expect_type_refused("", "not supported");
	expect_type_refused(">c16", "big-endian");
}

/* Elements of one dimension are in the same order either way. */
static void
fortran_order_needs_a_second_dimension(void **state)
{
	struct leat_npy npy;
	struct leat_err err;

	(void)state;
	assert_int_equal(parse("{'descr': '<f4', 'fortran_order': True, 'shape': (6,)}", 24, &npy, &err), LEAT_OK);
	assert_int_equal(parse("{'descr': '<c8', 'shape': (3,), 'fortran_order': True}", 24, &npy, &err), LEAT_OK);
	assert_int_equal(parse("{'fortran_order': True, 'descr': '<f4', 'shape': (6, 1)}", 24, &npy, &err),
	                 LEAT_UNSUPPORTED);
	assert_non_null(strstr(err.text, "save numpy.ascontiguousarray of it"));
}

static void
headers_that_make_no_sense_are_refused(void **state)
{
	static const char *const bad[] = {
		"",
		"{",
		"{}",
		"{'descr': '<f4', 'fortran_order': False}",
		"{'descr': '<f4', 'fortran_order': False, 'shape': (2,), 'shape': (2,)}",
		"{'descr': '<f4', 'fortran_order': False, 'shape': (2,), 'more': 1}",
		"{'descr': '<f4' 'fortran_order': False, 'shape': (2,)}",
		"{'descr': '<f4', 'fortran_order': False, 'shape': (2)}",
		"{'descr': '<f4', 'fortran_order': False, 'shape': (2, -3)}",
		"{'descr': '<f4', 'fortran_order': False, 'shape': (2 3)}",
		"{'descr': '<f4', 'fortran_order': False, 'shape': [2, 3]}",
		"{'descr': '<f4', 'fortran_order': 0, 'shape': (2, 3)}",
		"{'descr': '<f4\\'', 'fortran_order': False, 'shape': (2, 3)}",
		"{'descr': 4, 'fortran_order': False, 'shape': (2, 3)}",
		"{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3)} x",
		"{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999, 3)}",
		"{'descr': '<f4', 'fortran_order': False, 'shape': (4611686018427387904, 4)}",
		"{'descr': '<f4', 'fortran_order': False, 'shape': (2, 4611686018427387904)}",
		"{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3",
	};
	struct leat_npy npy;
	struct leat_err err;

	(void)state;
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		if (parse(bad[i], 24, &npy, &err) != LEAT_DATA)
			fail_msg("%s: %s", bad[i], err.text);
}

/* Elements that do not lie where their type can be loaded from. Sanitizers would see a load from there. */
static void
arrays_may_lie_at_any_offset(void **state)
{
	static const char header[] = "{'descr': '<f4', 'fortran_order': False, 'shape': (5, 3)}";
	unsigned char file[200] = "\x93NUMPY\x01";
	size_t at = 10 + strlen(header);
	struct leat_tensor tensor;
	struct whole whole;

	(void)state;
	assert_true(at % 4 != 0);
	file[8] = (unsigned char)strlen(header);
	memcpy(file + 10, header, strlen(header));
	for (int k = 0; k < 15; k++)
		memcpy(file + at + 4 * (size_t)k, &(float){(float)k}, 4);
	temp_write(&temp, "odd.npy", file, at + 60);
	snprintf(text, sizeof text, "npy(x='%s') | scale(2)", temp_path(&temp, "odd.npy"));
	whole_open(&whole, text, NULL);
	tensor = whole_field(&whole, "x");
	for (int k = 0; k < 15; k++)
		assert_true(value(&tensor, k) == 2 * k);
	whole_close(&whole);
}

/* ---- large files ---- */

enum { ROWS = 1000, COLUMNS = 1024 }; /* a row is a page, though it does not begin with one */

static void
write_large(const char *name)
{
	static const char header[] = "{'descr': '<i4', 'fortran_order': False, 'shape': (1000, 1024)}";
	size_t at = 128, len = at + (size_t)ROWS * COLUMNS * 4;
	unsigned char *file = calloc(1, len);
	int fd;

	memcpy(file, "\x93NUMPY\x01", 8);
	memset(file + 10, ' ', at - 10);
	memcpy(file + 10, header, strlen(header));
	file[8] = (unsigned char)(at - 10);
	for (int k = 0; k < ROWS * COLUMNS; k++)
		memcpy(file + at + 4 * (size_t)k, &k, 4);
	fd = open(temp_write(&temp, name, file, len), O_RDONLY);
	assert_int_equal(fsync(fd), 0);
	assert_int_equal(posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED), 0);
	close(fd);
	free(file);
}

/* How many pages of it are in memory. */
static size_t
pages_in_memory(const char *path)
{
	static unsigned char in[ROWS + 2];
	size_t pages = 0, len = 128 + (size_t)ROWS * COLUMNS * 4;
	int fd = open(path, O_RDONLY);
	void *map = mmap(NULL, len, PROT_READ, MAP_SHARED, fd, 0);

	assert_ptr_not_equal(map, MAP_FAILED);
	assert_int_equal(mincore(map, len, in), 0);
	for (size_t i = 0; i < len / 4096 + 1; i++)
		pages += in[i] & 1;
	munmap(map, len);
	close(fd);
	return pages;
}

static void
take_large(const char *ops, struct leat_stats *stats)
{
	struct leat_options options;
	struct leat_batch *batch;
	struct leat_feed *feed;
	struct leat_err err;
	int64_t rows = 0;

	trace_options(&options);
	snprintf(text, sizeof text, "npy(x='%s')%s | batch(50)", temp_path(&temp, "large.npy"), ops);
	feed = trace_open(text, &options);
	while (leat_next(feed, &batch, &err) == LEAT_OK) {
		struct leat_tensor tensor;

		assert_int_equal(leat_batch_field(batch, "x", &tensor, &err), LEAT_OK);
		for (int64_t i = 0; i < leat_batch_count(batch); i++, rows++) {
			const int32_t *row = (const int32_t *)tensor.data + i * COLUMNS;

			if (!*ops)
				assert_int_equal(row[0], rows * COLUMNS);
			for (int32_t k = 0; k < COLUMNS; k++)
				if (row[k] != row[0] + k)
					fail_msg("row %d", row[0] / COLUMNS);
		}
		leat_release(batch);
	}
	assert_int_equal(rows, ROWS);
	leat_stats(feed, stats);
	leat_close(feed);
}

static void
what_is_not_in_memory_is_brought_by_io_threads(void **state)
{
	struct leat_stats stats;

	(void)state;
	for (int shuffled = 0; shuffled < 2; shuffled++) {
		write_large("large.npy");
		if (pages_in_memory(temp_path(&temp, "large.npy")) > ROWS / 2)
			skip(); /* this file system keeps it */
		take_large(shuffled ? " | shuffle" : "", &stats);
		if (shuffled) /* in order, the system may have read far enough ahead */
			assert_true(stats.read_wait_ns > 0);
		take_large(shuffled ? " | shuffle" : "", &stats);
		assert_int_equal(stats.read_wait_ns, 0);
	}
}

static void
samples_of_a_mapped_file_that_changes_are_bad(void **state)
{
	struct leat_options options;
	struct leat_batch *batch;
	struct leat_feed *feed;
	struct leat_err err;
	void *page = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	bool can = madvise(page, 4096, MADV_POPULATE_READ) == 0;

	(void)state;
	munmap(page, 4096);
	if (!can)
		skip();
	write_large("shrinks.npy");
	trace_options(&options);
	options.on_error = LEAT_ON_ERROR_SKIP;
	snprintf(text, sizeof text, "npy(x='%s') | batch(1000) | prefetch(0)", temp_path(&temp, "shrinks.npy"));
	feed = trace_open(text, &options);
	assert_int_equal(truncate(temp_path(&temp, "shrinks.npy"), 4096 * 100), 0);
	assert_int_equal(leat_next(feed, &batch, &err), LEAT_OK);
	assert_int_equal(leat_batch_count(batch), 0);
	assert_int_equal(leat_bad_count(feed), 1000);
	assert_non_null(strstr(leat_bad_at(feed, 0)->reason, "has changed: it had"));
	leat_release(batch);
	leat_close(feed);
}

/* ---- promises ---- */

static void
save_and_restore(const char *spec, const char *other, enum leat_status expected)
{
	struct leat_options options;
	struct leat_feed *feed;
	struct leat_err err;
	char *json;

	trace_options(&options);
	feed = trace_open(spec, &options);
	assert_int_equal(leat_save(feed, &json, &err), LEAT_OK);
	leat_close(feed);
	feed = trace_open(other, &options);
	assert_int_equal(leat_restore(feed, json, &err), expected);
	leat_close(feed);
	free(json);
}

static void
checkpoints_belong_to_shapes_and_names_wherever_files_lie(void **state)
{
	static const char *const shapes[] = {"(4, 6)", "(4, 2)", "(4, 6)"};
	static const char *const dtypes[] = {"|u1", "<i4", "|b1"};
	char spec[3][600];

	(void)state;
	for (int i = 0; i < 3; i++) {
		char file[200] = "\x93NUMPY\x01";
		char name[20];

		snprintf(name, sizeof name, "%d", i);
		assert_int_equal(mkdir(temp_path(&temp, name), 0777), 0);
		file[8] = (char)snprintf(file + 10, 90, "{'descr': '%s', 'fortran_order': False, 'shape': %s}",
		                         dtypes[i], shapes[i]);
		snprintf(name, sizeof name, "%d/x.npy", i);
		temp_write(&temp, name, file, 120);
		snprintf(spec[i], sizeof spec[i], "npy(x='%s') | batch(1)", temp_path(&temp, name));
	}
	save_and_restore(spec[0], spec[2], LEAT_OK);
	save_and_restore(spec[0], spec[1], LEAT_MISMATCH);
	snprintf(text, sizeof text, "npy(z='%s/0/x.npy') | batch(1)", temp.folder);
	save_and_restore(spec[0], text, LEAT_MISMATCH);
}

static void
the_same_for_any_threads_ranks_and_stops(void **state)
{
	(void)state;
	promise_same("npy(x='" NPY "f4.npy', y='" NPY "vector.npy') | repeat(3)");
	promise_same("npy(image='" NPY "image.npy') | repeat(3) | random_flip | cache");
}

static void
no_memory_is_an_error(void **state)
{
	(void)state;
	promise_memory_errors("npy(x='" NPY "f4.npy', y='" NPY "vector.npy') | scale(2, field=x) | batch(2)", NULL);
}

/* ---- several files ---- */

/* NAME-NNN.npy for each count of rows: row i of all of them is i and i + 0.5. */
static void
write_parts(const char *name, const int *rows, int files)
{
	int row = 0;

	for (int f = 0; f < files; f++) {
		char file[4096] = "\x93NUMPY\x01", path[40];
		int len =
			snprintf(file + 10, 118, "{'descr': '<f4', 'fortran_order': False, 'shape': (%d, 2)}", rows[f]);

		file[8] = 118;
		memset(file + 10 + len, ' ', (size_t)(118 - len));
		assert_true(128 + 8 * rows[f] <= (int)sizeof file);
		for (int i = 0; i < rows[f]; i++, row++)
			memcpy(file + 128 + 8 * i, ((float[]){(float)row, (float)row + 0.5f}), 8);
		snprintf(path, sizeof path, "%s-%03d.npy", name, f);
		temp_write(&temp, path, file, (size_t)(128 + 8 * rows[f]));
	}
}

enum { PARTS = 300 };

static int
write_many(void)
{
	static int rows[PARTS];
	int sum = 0;

	for (int f = 0; f < PARTS; f++)
		sum += rows[f] = f % 4; /* every fourth file is empty */
	write_parts("x", rows, PARTS);
	write_parts("y", (int[]){sum - 200, 0, 200}, 3);
	return sum;
}

static void
rows_of_many_files_follow_each_other(void **state)
{
	int rows = write_many();
	struct leat_tensor x, y;
	struct whole whole;

	(void)state;
	snprintf(text, sizeof text, "npy(x='%s/x-*.npy', y='%s/y-*.npy')", temp.folder, temp.folder);
	whole_open(&whole, text, NULL);
	x = whole_field(&whole, "x");
	y = whole_field(&whole, "y");
	assert_int_equal(whole.count, rows);
	for (int k = 0; k < 2 * rows; k++) {
		assert_true(value(&x, k) == (double)k / 2);
		assert_true(value(&y, k) == (double)k / 2);
	}
	whole_close(&whole);
	promise_same(text);
}

static void
interleave_alternates_between_the_files_of_the_first_field(void **state)
{
	static const int order[] = {0, 3, 1, 4, 2};
	struct leat_tensor x;
	struct whole whole;

	(void)state;
	write_parts("a", (int[]){3, 2}, 2);
	write_parts("b", (int[]){1, 4}, 2);
	snprintf(text, sizeof text, "npy(x='%s/a-*.npy', y='%s/b-*.npy') | interleave(2)", temp.folder, temp.folder);
	whole_open(&whole, text, NULL);
	for (int field = 0; field < 2; field++) {
		x = whole_field(&whole, field ? "y" : "x");
		for (int i = 0; i < 5; i++)
			assert_true(value(&x, 2 * i) == order[i]);
	}
	whole_close(&whole);
}

static void
checkpoints_know_how_rows_are_divided_into_files(void **state)
{
	char other[600];

	(void)state;
	write_parts("c", (int[]){3, 2}, 2);
	write_parts("d", (int[]){3, 2, 0}, 3);
	snprintf(text, sizeof text, "npy(x='%s/c-*.npy') | batch(1)", temp.folder);
	snprintf(other, sizeof other, "npy(x='%s/d-*.npy') | batch(1)", temp.folder);
	save_and_restore(text, text, LEAT_OK);
	save_and_restore(text, other, LEAT_MISMATCH);
}

static void
no_memory_for_several_files_is_an_error(void **state)
{
	(void)state;
	write_parts("e", (int[]){3, 2, 1}, 3);
	snprintf(text, sizeof text, "npy(x='%s/e-*.npy', y='%s/e-*.npy') | batch(2)", temp.folder, temp.folder);
	promise_memory_errors(text, NULL);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(arrays_of_all_types_and_shapes_are_read),
		cmocka_unit_test(halves_and_bools_keep_their_bits),
		cmocka_unit_test(rows_of_several_arrays_stay_together),
		cmocka_unit_test(rows_of_three_dimensions_are_images_and_files_stay_as_they_are),
		cmocka_unit_test(what_cannot_be_read_is_refused_by_name),
		cmocka_unit_test(arguments_are_fields_and_files),
		cmocka_unit_test(headers_may_be_written_in_other_ways),
		cmocka_unit_test(headers_tell_the_type),
		cmocka_unit_test(fortran_order_needs_a_second_dimension),
		cmocka_unit_test(uint64_holds_more_than_int64),
		cmocka_unit_test(headers_that_make_no_sense_are_refused),
		cmocka_unit_test(arrays_may_lie_at_any_offset),
		cmocka_unit_test(what_is_not_in_memory_is_brought_by_io_threads),
		cmocka_unit_test(samples_of_a_mapped_file_that_changes_are_bad),
		cmocka_unit_test(checkpoints_belong_to_shapes_and_names_wherever_files_lie),
		cmocka_unit_test(the_same_for_any_threads_ranks_and_stops),
		cmocka_unit_test(no_memory_is_an_error),
		cmocka_unit_test(rows_of_many_files_follow_each_other),
		cmocka_unit_test(interleave_alternates_between_the_files_of_the_first_field),
		cmocka_unit_test(checkpoints_know_how_rows_are_divided_into_files),
		cmocka_unit_test(no_memory_for_several_files_is_an_error),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
