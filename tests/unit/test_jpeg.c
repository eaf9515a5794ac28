/* test_jpeg.c - the JPEG decoder of image/jpeg.h gives what libjpeg-turbo gives, for any region and any damage */
#include "support/jpegs.h"

#include "image/jpeg.h"
#include "support/image.h"

enum { MAX_PIXELS = 1 << 16 };

/* ---- the two ways ---- */

static const struct leat_decoding color = {.channels = 3};
static const struct leat_decoding slow_color = {.channels = 3, .mode = LEAT_DECODE_TORCH};

/* All pixels by libjpeg-turbo, to be freed; NULL: it fails. */
static uint8_t *
by_library(const struct file *file, const struct leat_decoding *how, struct leat_decode *image)
{
	uint8_t *out = NULL;
	struct leat_window all;

	leat_scratch_reset(&scratch);
	*image = (struct leat_decode){.scratch = &scratch, .max_pixels = MAX_PIXELS};
	if (leat_codec_jpeg_turbo.begin(image, file->bytes, file->size, how, &err) != LEAT_OK)
		return NULL;
	all = (struct leat_window){.height = image->height, .width = image->width};
	out = malloc((size_t)(image->height * image->width * image->channels));
	if (leat_codec_jpeg_turbo.region(image, &all, out, (size_t)(image->width * image->channels), &err) != LEAT_OK) {
		free(out);
		out = NULL;
	}
	leat_codec_jpeg_turbo.end(image);
	return out;
}

/* In memory of its very size, so that a sanitizer sees each byte too many. */
static void
assert_part(const struct file *file, const struct leat_decoding *how, const uint8_t *want, struct leat_window part,
            const struct leat_jpeg_kernels *kernels)
{
	const size_t channels = (size_t)how->channels, bytes = (size_t)part.width * channels,
		     stride = bytes + (size_t)draw(3);
	const size_t size = stride * (size_t)(part.height - 1) + bytes;
	uint8_t *got = malloc(size), *copy = malloc(file->size);
	struct leat_jpeg_header header;

	memcpy(copy, file->bytes, file->size);
	memset(got, 0, size);
	leat_scratch_reset(&scratch);
	assert_true(leat_jpeg_header_read(&header, copy, file->size));
	assert_int_equal(leat_jpeg_baseline(&header, how, 0, &part, got, stride, kernels, &scratch), LEAT_JPEG_DONE);
	assert_int_equal(scratch.used, 0);
	for (int64_t y = 0; y < part.height; y++)
		if (memcmp(got + (size_t)y * stride,
		           want + (size_t)((part.top + y) * file->width + part.left) * channels, bytes) != 0)
			fail_msg("row %d of %dx%d at (%d, %d) of %dx%d differs, %d channels, mode %d", (int)y,
			         (int)part.height, (int)part.width, (int)part.top, (int)part.left, file->height,
			         file->width, how->channels, how->mode);
	free(copy);
	free(got);
}

static void
assert_same(const struct file *file, int parts)
{
	const struct leat_window all = {.height = file->height, .width = file->width};

	for (int way = 0; way < 6; way++) {
		const struct leat_decoding how = {.channels = (const int[]){1, 3, 4}[way % 3], .mode = way / 3};
		struct leat_decode image;
		uint8_t *want;

		want = by_library(file, &how, &image);
		assert_non_null(want);
		assert_part(file, &how, want, all, leat_jpeg_fastest());
		assert_part(file, &how, want, all, &leat_jpeg_plain);
		for (int i = 0; i < parts; i++)
			assert_part(file, &how, want, draw_part(file->height, file->width),
			            i % 2 ? &leat_jpeg_plain : leat_jpeg_fastest());
		free(want);
	}
}

/* ---- tests ---- */

/* Images of 1 to 4 pixels' width whose chroma is coarser across are left to the library. */
static bool
is_too_narrow(const struct file *file)
{
	struct leat_jpeg_header header;

	return file->width <= 4 && !file->gray && !leat_jpeg_header_read(&header, file->bytes, file->size);
}

static void
pixels_are_those_of_the_library(void **state)
{
	(void)state;
	for (int i = 0; i < 2000; i++) {
		struct file file = encode_any(i);

		if (!is_too_narrow(&file))
			assert_same(&file, 6);
		free(file.bytes);
	}
}

static void
wide_and_high_images_too(void **state)
{
	(void)state;
	for (int i = 0; i < 60; i++) {
		struct file file = encode(100 + draw(101), 60 + draw(200), i % 6 == 5, 1 + i % 2, 1 + i / 2 % 2);

		assert_same(&file, 10);
		free(file.bytes);
	}
}

/* Coefficients that no image has: sums wrap around, samples are far out of bounds. In some files there is only the DC,
 * or only a first row. */
static struct file
encode_coefficients(int width, int height, int h, int v)
{
	struct file file = encode(width, height, false, h, v), wild = {.width = width, .height = height};
	struct jpeg_decompress_struct in;
	struct jpeg_compress_struct out;
	struct jpeg_error_mgr errors;
	jvirt_barray_ptr *arrays;
	int most = 1 << (1 + draw(10)), some = 1 + draw(8), count = draw(3) ? 64 : 1 + draw(9);

	in.err = out.err = jpeg_std_error(&errors);
	jpeg_create_decompress(&in);
	jpeg_create_compress(&out);
	jpeg_mem_src(&in, file.bytes, file.size);
	jpeg_read_header(&in, TRUE);
	arrays = jpeg_read_coefficients(&in);
	for (int c = 0; c < 3; c++)
		for (JDIMENSION y = 0; y < in.comp_info[c].height_in_blocks; y++) {
			JBLOCKARRAY rows = in.mem->access_virt_barray((j_common_ptr)&in, arrays[c], y, 1, TRUE);

			for (JDIMENSION x = 0; x < in.comp_info[c].width_in_blocks; x++)
				for (int k = 0; k < 64; k++)
					rows[0][x][k] =
						(JCOEF)(k >= count || draw(some) ? 0 : draw(2 * most - 1) - most + 1);
		}
	jpeg_mem_dest(&out, &wild.bytes, &wild.size);
	jpeg_copy_critical_parameters(&in, &out);
	for (int k = 0; k < 128; k++)
		out.quant_tbl_ptrs[k / 64]->quantval[k % 64] = (UINT16)(1 + draw(255));
	out.optimize_coding = TRUE;
	jpeg_write_coefficients(&out, arrays);
	jpeg_finish_compress(&out);
	jpeg_destroy_compress(&out);
	jpeg_destroy_decompress(&in);
	free(file.bytes);
	return wild;
}

static void
wild_coefficients_wrap_around_as_in_the_library(void **state)
{
	(void)state;
	for (int i = 0; i < 1000; i++) {
		struct file file = encode_coefficients(5 + draw(60), 1 + draw(60), 1 + i % 2, 1 + i / 2 % 2);

		assert_same(&file, 1);
		free(file.bytes);
	}
}

/* Rows of a part as they are asked for, some of them not at all; of a damaged file, what they are when all is said to
 * be right. Returns if it is. */
static bool
assert_rows(const struct file *file, const struct leat_decoding *how, const uint8_t *want, struct leat_window part)
{
	const size_t bytes = (size_t)part.width * (size_t)how->channels, padding = (size_t)draw(40);
	const int64_t keep = 1 + draw(5), most = 1 + draw(20);
	struct leat_decode image;
	struct leat_scan scan;
	bool same = true, right;

	leat_scratch_reset(&scratch);
	assert_int_equal(leat_decode_begin(&image, file->bytes, file->size, how, MAX_PIXELS, &scratch, &err), LEAT_OK);
	right = leat_decode_scan(&image, 0, &part, keep, padding, &scan);
	for (int64_t y = 0; right && y < part.height; y += 1 + draw((int)most)) {
		const uint8_t *last = leat_scan_row(&scan, y);

		for (int64_t k = 0; k < keep && k <= y; k++) {
			const uint8_t *row = k ? leat_scan_row(&scan, y - k) : last;

			same = same &&
			       memcmp(row,
			              want + (size_t)(part.top + y - k) * (size_t)image.width * (size_t)how->channels +
			                      (size_t)part.left * (size_t)how->channels,
			              bytes) == 0;
		}
	}
	right = right && leat_scan_end(&scan);
	leat_decode_end(&image);
	assert_true(same || !right);
	return right;
}

static void
rows_that_are_asked_for_are_those_of_the_whole(void **state)
{
	(void)state;
	for (int i = 0; i < 600; i++) {
		struct file file = encode_any(i);
		const struct leat_decoding how = {.channels = (const int[]){1, 3, 4}[i % 3], .mode = i / 3 % 2};
		struct leat_decode image;
		uint8_t *want = by_library(&file, &how, &image);

		assert_non_null(want);
		if (!is_too_narrow(&file))
			for (int k = 0; k < 4; k++)
				assert_true(assert_rows(&file, &how, want, draw_part(file.height, file.width)));
		free(want);
		free(file.bytes);
	}
}

/* By the codec, which may ask the library: same verdict, same pixels. */
static void
assert_same_verdict(const struct file *file, const struct leat_decoding *how)
{
	struct leat_decode image, own;
	uint8_t *want = by_library(file, how, &image), *got = NULL;
	struct leat_err want_err = err;
	enum leat_status status;

	leat_scratch_reset(&scratch);
	leat_err_clear(&err);
	status = leat_decode_begin(&own, file->bytes, file->size, how, MAX_PIXELS, &scratch, &err);
	if (status == LEAT_OK) {
		got = malloc((size_t)(own.height * own.width * own.channels));
		status = decode_image(&own, got, &err);
		leat_decode_end(&own);
	}
	assert_int_equal(status == LEAT_OK, want != NULL);
	if (want) {
		assert_int_equal(own.height, image.height);
		assert_int_equal(own.width, image.width);
		assert_int_equal(own.channels, image.channels);
		assert_memory_equal(got, want, (size_t)(own.height * own.width * own.channels));
		assert_rows(file, &(struct leat_decoding){(int)own.channels, how->mode}, want,
		            draw_part((int)own.height, (int)own.width));
	} else {
		assert_string_equal(err.text, want_err.text);
	}
	leat_err_clear(&err);
	free(got);
	free(want);
}

static void
damage_is_judged_as_by_the_library(void **state)
{
	(void)state;
	for (int i = 0; i < 3000; i++) {
		struct file file = encode_any(i);

		switch (draw(4)) {
		case 0:
			file.size = 4 + (unsigned long)draw((int)file.size - 4);
			break;
		case 1:
			memcpy(file.bytes + draw((int)file.size - 2),
			       (const uint8_t[]){0xff, (uint8_t)(0xd0 + draw(10))}, 2);
			break;
		default:
			for (int k = draw(4); k >= 0; k--)
				file.bytes[draw((int)file.size)] ^= (unsigned char)(1 << draw(8));
		}
		if (file.bytes[0] == 0xff && file.bytes[1] == 0xd8 && file.bytes[2] == 0xff)
			assert_same_verdict(&file,
			                    &(struct leat_decoding){(const int[]){0, 1, 3, 4}[i % 4], i / 4 % 2});
		free(file.bytes);
	}
}

/* 4:1:1, and luma coarser than chroma. */
static void
rare_samplings_are_left_to_the_library(void **state)
{
	static const int sampling[][2] = {{4, 1}, {1, 4}, {4, 2}, {3, 1}};

	(void)state;
	for (int i = 0; i < 40; i++) {
		struct file file =
			encode(1 + draw(MAX_SIDE), 1 + draw(MAX_SIDE), false, sampling[i % 4][0], sampling[i % 4][1]);
		struct leat_jpeg_header header;

		assert_false(leat_jpeg_header_read(&header, file.bytes, file.size));
		assert_same_verdict(&file, &color);
		assert_same_verdict(&file, &slow_color);
		free(file.bytes);
	}
}

static void
a_header_of_any_size_is_read_within_its_bounds(void **state)
{
	struct file file = encode(40, 30, false, 2, 2);

	(void)state;
	for (unsigned long cut = 0; cut < file.size; cut++) {
		unsigned char *copy = malloc(cut + 1);
		struct leat_jpeg_header header;

		memcpy(copy, file.bytes, cut);
		leat_jpeg_header_read(&header, copy, cut);
		free(copy);
	}
	free(file.bytes);
}

/* Rows of MCUs below the region are not looked at. */
static void
a_region_does_not_read_what_is_below(void **state)
{
	struct file file = encode(64, 160, false, 2, 2);
	const struct leat_window top = {.height = 32, .width = 64};
	struct leat_decode image;
	uint8_t *want = by_library(&file, &color, &image);

	(void)state;
	assert_non_null(want);
	file.size -= file.size / 4;
	assert_part(&file, &color, want, top, leat_jpeg_fastest());
	free(want);
	free(file.bytes);
}

/* Between restart markers, what lies above or beside it is not even decoded: it may be anything. */
static void
a_region_passes_by_intervals_that_it_does_not_need(void **state)
{
	const struct leat_window bottom = {.top = 100, .left = 3, .height = 60, .width = 50};
	struct leat_jpeg_header header = {0};
	struct leat_decode image;
	struct file file = {0};
	uint8_t *want;

	(void)state;
	do {
		free(file.bytes);
		file = encode(64, 160, false, 2, 2);
		assert_true(leat_jpeg_header_read(&header, file.bytes, file.size));
	} while (!header.interval || header.interval > 6);
	want = by_library(&file, &color, &image);
	assert_non_null(want);
	for (unsigned char *at = (unsigned char *)header.scan; *at != 0xff; at++)
		*at = 0x55;
	assert_part(&file, &color, want, bottom, leat_jpeg_fastest());
	free(want);
	free(file.bytes);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(pixels_are_those_of_the_library),
		TEST(wide_and_high_images_too),
		TEST(wild_coefficients_wrap_around_as_in_the_library),
		TEST(rows_that_are_asked_for_are_those_of_the_whole),
		TEST(damage_is_judged_as_by_the_library),
		TEST(rare_samplings_are_left_to_the_library),
		TEST(a_header_of_any_size_is_read_within_its_bounds),
		TEST(a_region_does_not_read_what_is_below),
		TEST(a_region_passes_by_intervals_that_it_does_not_need),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
