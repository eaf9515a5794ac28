/* test_webp.c - WebP: damage, limits, regions and gray (tests/unit/test_golden.c has the pixels, fuzz/fuzz_webp.c
 * libwebp's memory) */
#include "support/bench.h"

#include "image/image.h"
#include "image/png_rows.h"

#define FOLDER GOLDEN "webp/"

enum { SCRATCH = 4 << 20, MAX_PIXELS = 1 << 14 };

static const char *const files[] = {"lossy.webp",          "lossless.webp",  "groups.webp", "few.webp", "alpha.webp",
                                    "alpha-lossless.webp", "alpha-raw.webp", "frames.webp", "part.webp"};
enum { FILES = sizeof(files) / sizeof(*files) };

static struct leat_mem mem;
static struct leat_scratch scratch;
static struct leat_err err;
static uint8_t *pixels; /* of the last decode */
static int64_t height, width;

static int
set_up(void **state)
{
	(void)state;
	leat_mem_init(&mem, SIZE_MAX);
	pixels = NULL;
	return leat_scratch_open(&scratch, &mem, SCRATCH);
}

static int
tear_down(void **state)
{
	(void)state;
	free(pixels);
	leat_scratch_close(&scratch, &mem);
	return mem.used != 0;
}

static unsigned char *
read_file(const char *name, size_t *size)
{
	char path[1000];

	snprintf(path, sizeof(path), FOLDER "%s", name);
	return bench_read(path, size);
}

/* `part` NULL: all of it. From a copy of exactly `size` bytes, so that a sanitizer sees a read behind them. */
static enum leat_status
decode(const void *bytes, size_t size, int channels, size_t max_pixels, const struct leat_window *part)
{
	uint8_t *copy = malloc(size ? size : 1);
	struct leat_decode image;
	struct leat_window all;
	enum leat_status status;

	memcpy(copy, bytes, size);
	leat_err_clear(&err);
	leat_scratch_reset(&scratch);
	status = leat_decode_begin(&image, copy, size, &(struct leat_decoding){.channels = channels}, max_pixels,
	                           &scratch, &err);
	if (status == LEAT_OK) {
		all = (struct leat_window){0, 0, image.height, image.width};
		height = image.height;
		width = image.width;
		part = part ? part : &all;
		free(pixels);
		pixels = malloc((size_t)(part->height * part->width * image.channels));
		status = leat_decode_region(&image, part, pixels, (size_t)(part->width * image.channels), &err);
		leat_decode_end(&image);
	}
	free(copy);
	return status;
}

static void
a_file_that_is_cut_off_anywhere_is_a_bad_sample(void **state)
{
	(void)state;
	for (int f = 0; f < FILES; f++) {
		size_t size;
		unsigned char *bytes = read_file(files[f], &size);

		for (size_t cut = 0; cut < size; cut += 1 + cut / 40)
			assert_int_equal(decode(bytes, cut, 3, MAX_PIXELS, NULL), LEAT_DATA);
		assert_int_equal(decode(bytes, size - 1, 3, MAX_PIXELS, NULL), LEAT_DATA);
		assert_non_null(strstr(err.text, "the WebP image is cut off after"));
		assert_int_equal(decode(bytes, size, 3, MAX_PIXELS, NULL), LEAT_OK);
		free(bytes);
	}
}

static void
put_size(unsigned char *at, size_t size)
{
	for (int i = 0; i < 4; i++)
		at[i] = (unsigned char)(size >> 8 * i);
}

/* The container fits, but the data of the image ends early. */
static void
pixels_that_are_cut_off_are_a_bad_sample(void **state)
{
	static const char *const simple[] = {"lossy.webp", "lossless.webp", "groups.webp"};

	(void)state;
	for (int f = 0; f < 3; f++) {
		size_t size;
		unsigned char *bytes = read_file(simple[f], &size);

		for (size_t cut = 30; cut < size - 8; cut += 1 + cut / 10) {
			put_size(bytes + 4, cut - 8);
			put_size(bytes + 16, cut - 20);
			assert_int_equal(decode(bytes, cut, 3, MAX_PIXELS, NULL), LEAT_DATA);
		}
		free(bytes);
	}
}

static void
damage_never_does_more_than_fail_the_sample(void **state)
{
	struct leat_rng rng;

	(void)state;
	leat_rng_init(&rng, 7, 0, 0, 0);
	for (int i = 0; i < 3000; i++) {
		size_t size;
		unsigned char *bytes = read_file(files[i % FILES], &size);
		enum leat_status status;

		for (int k = 0; k < 1 + i % 3; k++)
			bytes[leat_rng_below(&rng, i % 2 ? 64 : size)] ^= (unsigned char)(1 << leat_rng_below(&rng, 8));
		status = decode(bytes, size, i % 5 == 0 ? 4 : 3, MAX_PIXELS, NULL);
		if (status != LEAT_OK && status != LEAT_DATA && status != LEAT_LIMIT)
			fail_msg("status %d: %s", status, err.text);
		free(bytes);
	}
}

static void
a_region_has_the_pixels_of_the_whole(void **state)
{
	(void)state;
	for (int f = 0; f < FILES; f++) {
		size_t size;
		unsigned char *bytes = read_file(files[f], &size);
		const struct leat_window part = {3, 2, 5, 7};
		uint8_t *whole;
		int64_t full;

		assert_int_equal(decode(bytes, size, 4, MAX_PIXELS, NULL), LEAT_OK);
		whole = pixels;
		full = width;
		pixels = NULL;
		assert_int_equal(decode(bytes, size, 4, MAX_PIXELS, &part), LEAT_OK);
		for (int64_t y = 0; y < part.height; y++)
			assert_memory_equal(pixels + 4 * y * part.width,
			                    whole + 4 * ((part.top + y) * full + part.left), (size_t)(4 * part.width));
		free(whole);
		free(bytes);
	}
}

static void
color_becomes_gray_as_in_a_png(void **state)
{
	(void)state;
	for (int f = 0; f < FILES; f++) {
		size_t size, count;
		unsigned char *bytes = read_file(files[f], &size);
		uint8_t *gray;

		assert_int_equal(decode(bytes, size, 0, MAX_PIXELS, NULL), LEAT_OK);
		count = (size_t)(height * width);
		gray = malloc(count);
		leat_png_row_plain(pixels, 3, 1, gray, 1, count);
		assert_int_equal(decode(bytes, size, 1, MAX_PIXELS, NULL), LEAT_OK);
		assert_memory_equal(pixels, gray, count);
		free(gray);
		free(bytes);
	}
}

static void
the_size_is_checked_before_any_memory_is_used(void **state)
{
	size_t size;
	unsigned char *bytes = read_file("lossy.webp", &size);

	(void)state;
	assert_int_equal(decode(bytes, size, 3, 33 * 47 - 1, NULL), LEAT_DATA);
	assert_string_equal(err.text, "the image has 47 x 33 = 1551 pixels, more than max_pixels=1550 allows");
	assert_true(scratch.used < 1000);
	free(bytes);
}

/* So that the engine tries again with more. */
static void
an_image_that_needs_more_than_the_scratch_says_so(void **state)
{
	size_t size;
	unsigned char *bytes = read_file("lossless.webp", &size);

	(void)state;
	leat_scratch_close(&scratch, &mem);
	assert_int_equal(leat_scratch_open(&scratch, &mem, 64 << 10), 0);
	assert_int_equal(decode(bytes, size, 3, MAX_PIXELS, NULL), LEAT_LIMIT);
	assert_non_null(strstr(err.text, "bytes a sample may use"));
	free(bytes);
}

static void
odd_containers_are_errors_that_say_what_is_wrong(void **state)
{
	size_t size;
	unsigned char *bytes = read_file("part.webp", &size);

	(void)state;
	bytes[24] = bytes[25] = bytes[26] = 3; /* the canvas's width: 197380 */
	assert_int_equal(decode(bytes, size, 3, MAX_PIXELS, NULL), LEAT_DATA);
	assert_non_null(strstr(err.text, "more than max_pixels=16384 allows"));
	bytes[24] = 9;
	bytes[25] = bytes[26] = 0;
	assert_int_equal(decode(bytes, size, 3, MAX_PIXELS, NULL), LEAT_DATA);
	assert_non_null(strstr(err.text, "its pixels do not fit on its canvas"));
	memcpy(bytes + 12, "JUNK", 4);
	assert_int_equal(decode(bytes, size, 3, MAX_PIXELS, NULL), LEAT_DATA);
	assert_non_null(strstr(err.text, "it holds no image"));
	free(bytes);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_file_that_is_cut_off_anywhere_is_a_bad_sample, set_up, tear_down),
		cmocka_unit_test_setup_teardown(pixels_that_are_cut_off_are_a_bad_sample, set_up, tear_down),
		cmocka_unit_test_setup_teardown(damage_never_does_more_than_fail_the_sample, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_region_has_the_pixels_of_the_whole, set_up, tear_down),
		cmocka_unit_test_setup_teardown(color_becomes_gray_as_in_a_png, set_up, tear_down),
		cmocka_unit_test_setup_teardown(the_size_is_checked_before_any_memory_is_used, set_up, tear_down),
		cmocka_unit_test_setup_teardown(an_image_that_needs_more_than_the_scratch_says_so, set_up, tear_down),
		cmocka_unit_test_setup_teardown(odd_containers_are_errors_that_say_what_is_wrong, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
