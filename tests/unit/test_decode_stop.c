/* test_decode_stop.c - decoding a large image ends within a strip after a stop
 *
 * The flag that stops it is a pixel of the result, so it is set when that pixel is decoded. Rows after it are counted.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jpeglib.h>

#include "image/image.h"

enum { SIDE = 2000, AT = 500, STRIP = 32 };

static struct leat_mem mem;
static struct leat_scratch scratch;
static uint8_t *out;

/* Gray, all pixels 1. */
static unsigned char *
make_jpeg(bool progressive, unsigned long *size)
{
	struct jpeg_compress_struct cinfo;
	struct jpeg_error_mgr errors;
	unsigned char *bytes = NULL, *row = malloc(SIDE);

	memset(row, 1, SIDE);
	cinfo.err = jpeg_std_error(&errors);
	jpeg_create_compress(&cinfo);
	jpeg_mem_dest(&cinfo, &bytes, size);
	cinfo.image_width = cinfo.image_height = SIDE;
	cinfo.input_components = 1;
	cinfo.in_color_space = JCS_GRAYSCALE;
	jpeg_set_defaults(&cinfo);
	jpeg_set_quality(&cinfo, 100, TRUE);
	if (progressive)
		jpeg_simple_progression(&cinfo);
	jpeg_start_compress(&cinfo, TRUE);
	while (cinfo.next_scanline < SIDE)
		jpeg_write_scanlines(&cinfo, &row, 1);
	jpeg_finish_compress(&cinfo);
	jpeg_destroy_compress(&cinfo);
	free(row);
	return bytes;
}

static int
setup(void **state)
{
	(void)state;
	leat_mem_init(&mem, SIZE_MAX);
	out = malloc((size_t)SIDE * SIDE);
	return leat_scratch_open(&scratch, &mem, (size_t)64 << 20);
}

static int
teardown(void **state)
{
	(void)state;
	leat_scratch_close(&scratch, &mem);
	free(out);
	return 0;
}

static int64_t
rows_decoded(void)
{
	int64_t rows = 0;

	while (rows < SIDE && out[rows * SIDE + SIDE - 1] == 1)
		rows++;
	return rows;
}

static void
decoding_ends_within_a_strip(void **state)
{
	const struct leat_window whole = {0, 0, SIDE, SIDE};

	(void)state;
	for (int progressive = 0; progressive < 2; progressive++)
		for (int at = 0; at < 2; at++) {
			atomic_bool now;
			unsigned long size = 0;
			unsigned char *bytes = make_jpeg(progressive, &size);
			struct leat_decoding how = {0};
			struct leat_decode decode;
			struct leat_err err = {0};

			atomic_init(&now, true);
			memset(out, 0, (size_t)SIDE * SIDE);
			leat_scratch_reset(&scratch);
			scratch.stop = NULL;
			assert_int_equal(leat_decode_begin(&decode, bytes, size, &how, SIZE_MAX, &scratch, &err),
			                 LEAT_OK);
			scratch.stop = at ? (atomic_bool *)(void *)(out + AT * SIDE) : &now;
			assert_int_equal(leat_decode_region(&decode, &whole, out, SIDE, &err), LEAT_CANCELLED);
			assert_int_equal(err.status, LEAT_CANCELLED);
			leat_decode_end(&decode);
			assert_in_range(rows_decoded(), at ? AT : 0, at ? AT + STRIP : 0);
			free(bytes);
		}
}

static void
rows_on_demand_end_at_once(void **state)
{
	const struct leat_window whole = {0, 0, SIDE, SIDE};
	struct leat_decoding how = {0};
	struct leat_decode decode;
	struct leat_err err = {0};
	struct leat_scan rows;
	unsigned long size = 0;
	unsigned char *bytes = make_jpeg(false, &size);
	atomic_bool stop;

	(void)state;
	atomic_init(&stop, false);
	leat_scratch_reset(&scratch);
	scratch.stop = &stop;
	assert_int_equal(leat_decode_begin(&decode, bytes, size, &how, SIZE_MAX, &scratch, &err), LEAT_OK);
	assert_true(leat_decode_scan(&decode, 0, &whole, 2, 0, &rows));
	leat_scan_row(&rows, 0);
	assert_in_range(rows.done, 1, STRIP);
	atomic_store(&stop, true);
	leat_scan_row(&rows, STRIP);
	assert_int_equal(rows.done, -1);
	assert_false(leat_scan_end(&rows));
	leat_decode_end(&decode);
	free(bytes);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(decoding_ends_within_a_strip),
		cmocka_unit_test(rows_on_demand_end_at_once),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
