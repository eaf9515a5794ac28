/* test_image_decode.c - decoding: limits, damage and memory (tests/unit/test_golden.c has the pixels) */
#include "support/bench.h"

#include <jpeglib.h>
#include <pthread.h>

#include "image/image.h"
#include "support/image.h"

#define FOLDER GOLDEN "tf/"

enum { SCRATCH = 4 << 20, MAX_PIXELS = 1 << 16 };

static struct leat_mem mem;
static struct leat_scratch scratch;
static struct leat_err err;
static uint8_t *pixels; /* of the last decode */
static size_t pixels_size;
static int64_t last_shape[3];

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
	return 0;
}

static const struct leat_decoding color = {.channels = 3};

/* A copy of exactly `size` bytes, so that a sanitizer sees a read behind them; pixels likewise. */
static enum leat_status
decode(const void *bytes, size_t size, int channels)
{
	uint8_t *copy = malloc(size ? size : 1);
	struct leat_decode image;
	enum leat_status status;

	memcpy(copy, bytes, size);
	leat_err_clear(&err);
	leat_scratch_reset(&scratch);
	status = leat_decode_begin(&image, copy, size, &(struct leat_decoding){.channels = channels}, MAX_PIXELS,
	                           &scratch, &err);
	if (status == LEAT_OK) {
		size_t used = scratch.used;

		memcpy(last_shape, (const int64_t[]){image.height, image.width, image.channels}, sizeof(last_shape));
		free(pixels);
		pixels_size = (size_t)(image.height * image.width * image.channels);
		pixels = malloc(pixels_size);
		status = decode_image(&image, pixels, &err);
		assert_int_equal(scratch.used, used);
		leat_decode_end(&image);
	}
	assert_int_equal(status, err.status);
	assert_true(status == LEAT_OK || err.text[0] != '\0');
	free(copy);
	return status;
}

static void
assert_says(const char *words)
{
	if (strstr(err.text, words) == NULL)
		fail_msg("expected '%s' in: %s", words, err.text);
}

static const char *const files[] = {
	"420.jpg", "progressive.jpg", "restart.jpg", "gray.jpg",  "cmyk.jpg",           "pixel.jpg",
	"rgb.png", "rgba16.png",      "gray1.png",   "pixel.png", "rgb-interlaced.png", "palette2.png",
};
enum { FILES = sizeof(files) / sizeof(*files) };

static unsigned char *
read_file(const char *name, size_t *size)
{
	char path[1000];

	snprintf(path, sizeof(path), FOLDER "%s", name);
	return bench_read(path, size);
}

static void
a_file_cut_off_anywhere_is_an_error(void **state)
{
	(void)state;
	for (int i = 0; i < FILES; i++) {
		size_t size;
		unsigned char *bytes = read_file(files[i], &size);

		for (size_t cut = 0; cut < size; cut++)
			if (decode(bytes, cut, 3) != LEAT_DATA)
				fail_msg("%s decodes when only %zu of its %zu bytes are there", files[i], cut, size);
		assert_int_equal(decode(bytes, size, 3), LEAT_OK);
		free(bytes);
	}
}

/* Gray, too: it takes other paths in both libraries. What a damaged file gives is not defined. */
static void
a_flipped_bit_anywhere_does_no_harm(void **state)
{
	(void)state;
	for (int i = 0; i < FILES; i++) {
		size_t size;
		unsigned char *bytes = read_file(files[i], &size);

		for (size_t bit = 0; bit<8 * size; bit += size> 1000 ? 3 : 1) {
			bytes[bit / 8] ^= (unsigned char)(1u << bit % 8);
			decode(bytes, size, (const int[]){1, 3, 4}[bit % 3]);
			bytes[bit / 8] ^= (unsigned char)(1u << bit % 8);
		}
		free(bytes);
	}
}

/* A PNG's chunks carry checksums: no damage within them stays unseen. */
static void
a_flipped_bit_of_a_png_is_an_error(void **state)
{
	size_t size;
	unsigned char *bytes = read_file("rgb.png", &size);

	(void)state;
	for (size_t bit = 0; bit < 8 * size; bit++) {
		bytes[bit / 8] ^= (unsigned char)(1u << bit % 8);
		if (decode(bytes, size, 3) == LEAT_OK)
			fail_msg("bit %zu of %zu can be flipped", bit, 8 * size);
		bytes[bit / 8] ^= (unsigned char)(1u << bit % 8);
	}
	free(bytes);
}

static void
what_is_no_image_is_shown(void **state)
{
	(void)state;
	assert_int_equal(decode("", 0, 3), LEAT_DATA);
	assert_says("empty");
	assert_int_equal(decode("GIF89a\x01", 7, 3), LEAT_DATA);
	assert_says("the 7 bytes start with 47 49 46 38 39 61 01 (\"GIF89a.\")");
	assert_int_equal(decode("\xff", 1, 3), LEAT_DATA);
	assert_says("start with ff (\".\")");
}

/* The frame header of a baseline or progressive JPEG: ff c0..c2, length, depth, height, width. */
static void
set_jpeg_size(unsigned char *bytes, size_t size, unsigned height, unsigned width)
{
	for (size_t i = 2; i + 9 < size; i += 2u + 256u * bytes[i + 2] + bytes[i + 3]) {
		if (bytes[i + 1] < 0xc0 || bytes[i + 1] > 0xc2)
			continue;
		bytes[i + 5] = (unsigned char)(height >> 8);
		bytes[i + 6] = (unsigned char)height;
		bytes[i + 7] = (unsigned char)(width >> 8);
		bytes[i + 8] = (unsigned char)width;
		return;
	}
	fail_msg("no frame header");
}

static void
set_be32(unsigned char *bytes, uint32_t value)
{
	for (int i = 0; i < 4; i++)
		bytes[i] = (unsigned char)(value >> (24 - 8 * i));
}

static uint32_t
crc32_of(const unsigned char *bytes, size_t size)
{
	uint32_t crc = ~0u;

	for (size_t i = 0; i < size; i++) {
		crc ^= bytes[i];
		for (int bit = 0; bit < 8; bit++)
			crc = crc >> 1 ^ (crc & 1 ? 0xedb88320u : 0);
	}
	return ~crc;
}

static void
set_png_size(unsigned char *bytes, uint32_t height, uint32_t width)
{
	set_be32(bytes + 16, width);
	set_be32(bytes + 20, height);
	set_be32(bytes + 29, crc32_of(bytes + 12, 17));
}

static void
a_header_with_too_many_pixels_is_refused_before_memory_is_taken(void **state)
{
	static const char *const jpegs[] = {"420.jpg", "progressive.jpg"};
	size_t size;
	unsigned char *bytes;

	(void)state;
	for (int i = 0; i < 2; i++) {
		bytes = read_file(jpegs[i], &size);
		set_jpeg_size(bytes, size, 65500, 65500);
		scratch.peak = 0;
		assert_int_equal(decode(bytes, size, 3), LEAT_DATA);
		assert_says("65500 x 65500 = 4290250000 pixels, more than max_pixels=65536 allows");
		assert_true(scratch.peak < 65536);
		set_jpeg_size(bytes, size, 1, 20000); /* allowed, though not there */
		assert_int_equal(decode(bytes, size, 3), LEAT_DATA);
		set_jpeg_size(bytes, size, 20000, 1);
		assert_int_equal(decode(bytes, size, 3), LEAT_DATA);
		free(bytes);
	}
	bytes = read_file("rgb.png", &size);
	set_png_size(bytes, 65500, 65500);
	scratch.peak = 0;
	assert_int_equal(decode(bytes, size, 3), LEAT_DATA);
	assert_says("65500 x 65500 = 4290250000 pixels, more than max_pixels=65536 allows");
	set_png_size(bytes, 0x7fffffff, 0x7fffffff); /* a row would have more bytes than libspng counts */
	assert_int_equal(decode(bytes, size, 3), LEAT_DATA);
	assert_true(scratch.peak < 65536);
	set_png_size(bytes, 1, 65536);
	assert_int_equal(decode(bytes, size, 3), LEAT_DATA);
	free(bytes);
}

/* Without a limit on pixels: what the file cannot hold is refused by its bytes, and sizes do not overflow. */
static enum leat_status
begin_unlimited(const unsigned char *bytes, size_t size, const struct leat_decoding *how)
{
	struct leat_decode image;
	enum leat_status status;

	leat_err_clear(&err);
	leat_scratch_reset(&scratch);
	scratch.peak = 0;
	status = leat_decode_begin(&image, bytes, size, how, UINT64_MAX, &scratch, &err);
	assert_true(scratch.peak < 65536);
	if (status == LEAT_OK)
		leat_decode_end(&image);
	return status;
}

static void
pixels_that_the_bytes_cannot_hold_are_refused_before_memory_is_taken(void **state)
{
	static const char *const jpegs[] = {"420.jpg", "gray.jpg", "cmyk.jpg", "progressive.jpg"};
	static const struct leat_decoding hows[] = {{.channels = 3}, {.channels = 4}, {.wide = true}};
	size_t size;
	unsigned char *bytes;

	(void)state;
	for (int i = 0; i < 4; i++) {
		bytes = read_file(jpegs[i], &size);
		set_jpeg_size(bytes, size, 65500, 65500);
		assert_int_equal(begin_unlimited(bytes, size, &color), LEAT_DATA);
		assert_says("the JPEG image is cut off");
		assert_says("can't hold 65500 x 65500 pixels");
		/* A bit for each 32 x 32 pixels is not ruled out. */
		set_jpeg_size(bytes, size, (unsigned)size / 8 * 32, 8 * 8 * 32);
		assert_int_equal(begin_unlimited(bytes, size, &color), LEAT_OK);
		free(bytes);
	}
	bytes = read_file("rgba16.png", &size);
	for (int i = 0; i < 3; i++) {
		set_png_size(bytes, 0x7fffffff, 1 << 16);
		assert_int_equal(begin_unlimited(bytes, size, &hows[i]), LEAT_DATA);
		assert_says("the PNG image is cut off");
		assert_says("can't hold 65536 x 2147483647 pixels");
		set_png_size(bytes, 0x7fffffff, 1 << 24);
		assert_int_equal(begin_unlimited(bytes, size, &hows[i]), LEAT_DATA);
		assert_says("= 36028797002186752 pixels, more than max_pixels=281474976710656 allows");
		set_png_size(bytes, 0x7fffffff, 0x7fffffff);
		assert_int_equal(begin_unlimited(bytes, size, &hows[i]), LEAT_DATA);
		set_png_size(bytes, 100, (uint32_t)(size / 2 * 1032 / 8 / 100)); /* half of it is image data */
		assert_int_equal(begin_unlimited(bytes, size, &hows[i]), LEAT_OK);
	}
	free(bytes);
}

static void
an_image_without_pixels_is_an_error(void **state)
{
	static const unsigned sides[][2] = {{0, 29}, {19, 0}, {0, 0}};
	size_t size;
	unsigned char *jpeg = read_file("420.jpg", &size), *png;

	(void)state;
	for (int i = 0; i < 3; i++) {
		set_jpeg_size(jpeg, size, sides[i][0], sides[i][1]);
		assert_int_equal(decode(jpeg, size, 3), LEAT_DATA);
	}
	free(jpeg);
	png = read_file("rgb.png", &size);
	for (int i = 0; i < 3; i++) {
		set_png_size(png, sides[i][0], sides[i][1]);
		assert_int_equal(decode(png, size, 3), LEAT_DATA);
	}
	free(png);
}

static void
a_jpeg_that_lost_a_piece_in_its_middle_is_an_error(void **state)
{
	size_t size, gap = 60;
	unsigned char *bytes = read_file("420.jpg", &size);

	(void)state;
	memmove(bytes + size - 2 - gap, bytes + size - 2, 2); /* the end marker stays */
	assert_int_equal(decode(bytes, size - gap, 3), LEAT_DATA);
	assert_says("premature end of data segment");
	free(bytes);
}

static void
a_jpeg_whose_restart_markers_are_out_of_order_is_an_error(void **state)
{
	size_t size, found = 0;
	unsigned char *bytes = read_file("restart.jpg", &size);

	(void)state;
	for (size_t i = size - 3; i > 0 && !found; i--)
		if (bytes[i] == 0xff && bytes[i + 1] >= 0xd0 && bytes[i + 1] <= 0xd7)
			found = i;
	assert_true(found > 0);
	bytes[found + 1] ^= 4;
	assert_int_equal(decode(bytes, size, 3), LEAT_DATA);
	free(bytes);
}

/* All ones are no code of any table; a zero behind each keeps them from being markers. */
static void
a_jpeg_with_codes_that_do_not_exist_is_an_error(void **state)
{
	size_t size, first = 0;
	unsigned char *bytes = read_file("420.jpg", &size);

	(void)state;
	for (size_t i = 0; i + 1 < size && !first; i++)
		if (bytes[i] == 0xff && bytes[i + 1] == 0xda)
			first = i + 2 + bytes[i + 3];
	assert_true(first > 0 && first + 300 < size);
	for (size_t i = first + 200; i < first + 240; i += 2)
		memcpy(bytes + i, "\xff", 2);
	assert_int_equal(decode(bytes, size, 3), LEAT_DATA);
	assert_says("bad Huffman code");
	free(bytes);
}

/* The last scan of a progressive file adds the last bit of coefficients; a second time there is none left. */
static void
a_progressive_jpeg_that_refines_twice_is_an_error(void **state)
{
	size_t size, at, scan;
	unsigned char *bytes = read_file("progressive.jpg", &size), *longer = malloc(2 * size);

	(void)state;
	for (at = size - 2; memcmp(bytes + at, "\xff\xda", 2) != 0; at--)
		assert_true(at > 0);
	scan = size - 2 - at;
	memcpy(longer, bytes, size - 2);
	memcpy(longer + size - 2, bytes + at, scan + 2); /* with the end marker */
	assert_int_equal(decode(longer, size + scan, 3), LEAT_DATA);
	assert_says("progression");
	free(longer);
	free(bytes);
}

/* Some cameras and editors leave bytes before the end marker. No pixel is lost: TensorFlow reads them too. */
static void
bytes_too_many_at_the_end_of_a_jpeg_are_no_error(void **state)
{
	size_t size;
	unsigned char *bytes = read_file("420.jpg", &size), *longer = malloc(size + 40);
	uint8_t *before;

	(void)state;
	assert_int_equal(decode(bytes, size, 3), LEAT_OK);
	before = malloc(pixels_size);
	memcpy(before, pixels, pixels_size);
	memcpy(longer, bytes, size - 2);
	memset(longer + size - 2, 0x55, 20); /* before the end marker */
	memcpy(longer + size + 18, "\xff\xd9", 2);
	memset(longer + size + 20, 0, 20); /* and behind it */
	assert_int_equal(decode(longer, size + 40, 3), LEAT_OK);
	assert_memory_equal(pixels, before, pixels_size);
	free(before);
	free(longer);
	free(bytes);
}

static void
inks_cannot_become_gray(void **state)
{
	size_t size;
	unsigned char *bytes = read_file("cmyk.jpg", &size);

	(void)state;
	assert_int_equal(decode(bytes, size, 1), LEAT_DATA);
	assert_says("use 3 channels");
	assert_int_equal(decode(bytes, size, 0), LEAT_OK);
	assert_int_equal(last_shape[2], 3);
	free(bytes);
}

static void
channels_0_gives_what_the_file_has_without_alpha(void **state)
{
	static const struct {
		const char *name;
		int64_t channels;
	} cases[] = {{"gray.jpg", 1},         {"420.jpg", 3},  {"gray.png", 1},     {"gray-alpha.png", 1},
	             {"gray-alpha16.png", 1}, {"rgba.png", 3}, {"palette8.png", 3}, {"gray1.png", 1}};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		size_t size;
		unsigned char *bytes = read_file(cases[i].name, &size);

		assert_int_equal(decode(bytes, size, 0), LEAT_OK);
		assert_int_equal(last_shape[2], cases[i].channels);
		free(bytes);
	}
}

/* Whatever the file has: a fourth channel, a transparent color, or nothing. */
static void
alpha_is_kept_when_asked_for_and_changes_no_color(void **state)
{
	static const char *const names[] = {"rgb.png",         "rgba.png",     "rgba16.png", "gray1.png",
	                                    "gray-alpha.png",  "palette2.png", "420.jpg",    "gray.jpg",
	                                    "progressive.jpg", "cmyk.jpg"};

	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		bool has_alpha = strstr(names[i], "rgba") || strstr(names[i], "alpha");
		size_t size, opaque = 0, count;
		unsigned char *bytes = read_file(names[i], &size);
		uint8_t *rgb;

		assert_int_equal(decode(bytes, size, 3), LEAT_OK);
		count = pixels_size / 3;
		rgb = malloc(pixels_size);
		memcpy(rgb, pixels, pixels_size);
		assert_int_equal(decode(bytes, size, 4), LEAT_OK);
		assert_int_equal(last_shape[2], 4);
		for (size_t k = 0; k < count; k++) {
			assert_memory_equal(rgb + 3 * k, pixels + 4 * k, 3);
			opaque += pixels[4 * k + 3] == 255;
		}
		assert_int_equal(opaque == count, !has_alpha);
		free(rgb);
		free(bytes);
	}
}

/* A chunk with transparent colors is only looked at when alpha is asked for. */
static void
a_damaged_transparency_fails_only_those_who_want_it(void **state)
{
	size_t size, at;
	unsigned char *bytes = bench_read(GOLDEN "geometry/palette-key.png", &size);

	(void)state;
	assert_int_equal(decode(bytes, size, 4), LEAT_OK);
	for (at = 8; memcmp(bytes + at, "tRNS", 4) != 0; at++)
		assert_true(at + 4 < size);
	bytes[at + 4] ^= 1; /* the checksum no longer fits */
	assert_int_equal(decode(bytes, size, 4), LEAT_DATA);
	assert_int_equal(decode(bytes, size, 3), LEAT_OK);
	assert_int_equal(decode(bytes, size, 1), LEAT_OK);
	bytes[at + 4] ^= 1;
	memcpy(bytes + at, "tEXt", 4); /* none: opaque */
	assert_int_equal(decode(bytes, size, 4), LEAT_OK);
	for (size_t i = 3; i < pixels_size; i += 4)
		assert_int_equal(pixels[i], 255);
	free(bytes);
}

/* An ancillary chunk behind the header: libspng alone would inflate, keep or refuse it. */
static void
other_chunks_of_a_png_neither_matter_nor_cost(void **state)
{
	static const char *const kinds[] = {"tEXt", "zTXt", "iCCP", "gAMA", "tRNS", "sRGB", "abcd"};
	enum { JUNK = 1 << 20 };
	size_t size, head = 33, peak;
	unsigned char *bytes = read_file("rgb.png", &size), *longer = malloc(size + 12 + JUNK);
	uint8_t *before;

	(void)state;
	scratch.peak = 0;
	assert_int_equal(decode(bytes, size, 3), LEAT_OK);
	peak = scratch.peak;
	before = malloc(pixels_size);
	memcpy(before, pixels, pixels_size);
	for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++) {
		memcpy(longer, bytes, head);
		set_be32(longer + head, JUNK);
		memcpy(longer + head + 4, kinds[i], 4);
		memset(longer + head + 8, 'x', JUNK + 4); /* the checksum is wrong, too */
		memcpy(longer + head + 12 + JUNK, bytes + head, size - head);
		assert_int_equal(decode(longer, size + 12 + JUNK, 3), LEAT_OK);
		assert_memory_equal(pixels, before, pixels_size);
		assert_int_equal(scratch.peak, peak);
	}
	memcpy(longer + head + 4, "ABCD", 4); /* critical, and unknown */
	assert_int_equal(decode(longer, size + 12 + JUNK, 3), LEAT_DATA);
	free(before);
	free(longer);
	free(bytes);
}

static unsigned char *
encode_jpeg(int width, int height, bool progressive, const jpeg_scan_info *scans, int scan_count, unsigned long *size)
{
	struct jpeg_compress_struct cinfo;
	struct jpeg_error_mgr errors;
	unsigned char *bytes = NULL;

	cinfo.err = jpeg_std_error(&errors);
	jpeg_create_compress(&cinfo);
	jpeg_mem_dest(&cinfo, &bytes, size);
	cinfo.image_width = (JDIMENSION)width;
	cinfo.image_height = (JDIMENSION)height;
	cinfo.input_components = 3;
	cinfo.in_color_space = JCS_RGB;
	jpeg_set_defaults(&cinfo);
	for (int c = 0; c < 3; c++) /* 4:4:4, the largest */
		cinfo.comp_info[c].h_samp_factor = cinfo.comp_info[c].v_samp_factor = 1;
	if (progressive)
		jpeg_simple_progression(&cinfo);
	if (scans != NULL) {
		cinfo.scan_info = scans;
		cinfo.num_scans = scan_count;
	}
	jpeg_start_compress(&cinfo, TRUE);
	for (int y = 0; y < height; y++) {
		JSAMPROW row = malloc((size_t)width * 3);

		for (int x = 0; x < 3 * width; x++)
			row[x] = (JSAMPLE)(x * y);
		jpeg_write_scanlines(&cinfo, &row, 1);
		free(row);
	}
	jpeg_finish_compress(&cinfo);
	jpeg_destroy_compress(&cinfo);
	return bytes;
}

static void
a_progressive_jpeg_keeps_its_coefficients_in_the_scratch(void **state)
{
	enum { SIDE = 240, COEFFICIENTS = SIDE * SIDE * 3 * 2 };
	unsigned long size = 0;
	unsigned char *bytes = encode_jpeg(SIDE, SIDE, true, NULL, 0, &size);
	size_t full = scratch.size;

	(void)state;
	scratch.peak = 0;
	assert_int_equal(decode(bytes, size, 3), LEAT_OK);
	assert_in_range(scratch.peak, COEFFICIENTS, COEFFICIENTS + (200 << 10));
	scratch.size = COEFFICIENTS;
	assert_int_equal(decode(bytes, size, 3), LEAT_LIMIT);
	assert_says("bytes a sample may use");
	scratch.size = full;
	free(bytes);
}

static void
decoding_works_or_says_so_in_any_amount_of_memory(void **state)
{
	size_t full = scratch.size;

	(void)state;
	for (int i = 0; i < FILES; i++) {
		size_t size, peak;
		unsigned char *bytes = read_file(files[i], &size);

		scratch.peak = 0;
		assert_int_equal(decode(bytes, size, 1 + 2 * (files[i][0] != 'r')), LEAT_OK);
		peak = scratch.peak;
		for (size_t room = 0; room < peak + 128; room += 192) {
			enum leat_status status;

			scratch.size = room;
			status = decode(bytes, size, 1 + 2 * (files[i][0] != 'r'));
			assert_int_equal(status, room < peak ? LEAT_LIMIT : LEAT_OK);
		}
		scratch.size = full;
		free(bytes);
	}
}

/* Each further scan is a few hundred bytes and a pass over the whole image. */
static void
a_jpeg_of_endless_scans_is_refused(void **state)
{
	static const jpeg_scan_info scans[] = {{1, {0}, 0, 63, 0, 0}, {1, {1}, 0, 63, 0, 0}, {1, {2}, 0, 63, 0, 0}};
	enum { REPEAT = 300 };
	unsigned long size = 0, at;
	unsigned char *bytes = encode_jpeg(16, 16, false, scans, 3, &size), *longer;
	size_t scan, used;

	(void)state;
	for (at = size - 2; memcmp(bytes + at, "\xff\xda", 2) != 0; at--)
		assert_true(at > 0);
	scan = size - 2 - at;
	longer = malloc(size + REPEAT * scan);
	memcpy(longer, bytes, size - 2);
	for (used = size - 2; used < size - 2 + REPEAT * scan; used += scan)
		memcpy(longer + used, bytes + at, scan);
	memcpy(longer + used, "\xff\xd9", 2);
	assert_int_equal(decode(bytes, size, 3), LEAT_OK);
	assert_int_equal(decode(longer, used + 2, 3), LEAT_DATA);
	assert_says("more than 256 scans");
	free(longer);
	free(bytes);
}

/* Regions of all kinds, in rows further apart than they are long; what lies between stays as it was. */
static void
a_region_is_a_piece_of_the_whole(void **state)
{
	enum { GAP = 5 };

	(void)state;
	for (int i = 0; i < FILES; i++) {
		size_t size;
		unsigned char *bytes = read_file(files[i], &size);

		for (int n = 0; n < 200; n++) {
			const struct leat_decoding how = {.channels = (const int[]){0, 3, 4}[n % 3]};
			struct leat_decode image;
			struct leat_window part;
			size_t row, stride, used;
			uint8_t *got;

			assert_int_equal(decode(bytes, size, how.channels), LEAT_OK);
			leat_scratch_reset(&scratch);
			assert_int_equal(leat_decode_begin(&image, bytes, size, &how, MAX_PIXELS, &scratch, &err),
			                 LEAT_OK);
			part.top = n * 7 % image.height;
			part.left = n * 5 % image.width;
			part.height = 1 + n * 3 % (image.height - part.top);
			part.width = 1 + n * 11 % (image.width - part.left);
			row = (size_t)(part.width * image.channels);
			stride = row + GAP;
			used = scratch.used;
			got = malloc(stride * (size_t)part.height);
			memset(got, 0xa5, stride * (size_t)part.height);
			assert_int_equal(leat_decode_region(&image, &part, got, stride, &err), LEAT_OK);
			assert_int_equal(scratch.used, used);
			leat_decode_end(&image);
			for (int64_t y = 0; y < part.height; y++) {
				const uint8_t *want =
					pixels + ((part.top + y) * image.width + part.left) * image.channels;

				assert_memory_equal(got + (size_t)y * stride, want, row);
				for (size_t k = row; k < stride; k++)
					assert_int_equal(got[(size_t)y * stride + k], 0xa5);
			}
			free(got);
		}
		free(bytes);
	}
}

static void
giving_up_after_the_header_leaks_nothing(void **state)
{
	(void)state;
	for (int i = 0; i < FILES; i++) {
		size_t size;
		unsigned char *bytes = read_file(files[i], &size);
		struct leat_decode image;

		leat_scratch_reset(&scratch);
		assert_int_equal(leat_decode_begin(&image, bytes, size, &color, MAX_PIXELS, &scratch, &err), LEAT_OK);
		leat_decode_end(&image);
		free(bytes);
	}
}

/* Decodes one file again and again in a scratch of its own. */
struct decoder {
	const unsigned char *bytes;
	size_t size;
	const uint8_t *want;
	size_t want_size;
	int wrong;
};

static void *
decode_often(void *arg)
{
	struct decoder *decoder = arg;
	struct leat_mem own_mem;
	struct leat_scratch own;
	uint8_t *got = malloc(decoder->want_size);

	leat_mem_init(&own_mem, SIZE_MAX);
	if (leat_scratch_open(&own, &own_mem, SCRATCH) != 0)
		return NULL;
	for (int i = 0; i < 200; i++) {
		struct leat_decode image;

		leat_scratch_reset(&own);
		if (leat_decode_begin(&image, decoder->bytes, decoder->size, &color, MAX_PIXELS, &own, NULL) !=
		    LEAT_OK) {
			decoder->wrong++;
			continue;
		}
		if (decode_image(&image, got, NULL) != LEAT_OK || memcmp(got, decoder->want, decoder->want_size) != 0)
			decoder->wrong++;
		leat_decode_end(&image);
	}
	leat_scratch_close(&own, &own_mem);
	free(got);
	return NULL;
}

static void
threads_decode_at_once_without_meeting(void **state)
{
	static const char *const names[] = {"rgb.png", "rgb-interlaced.png", "progressive.jpg", "420.jpg"};
	struct decoder decoders[4];
	pthread_t threads[4];

	(void)state;
	for (int i = 0; i < 4; i++) {
		struct decoder *d = &decoders[i];
		uint8_t *want;

		*d = (struct decoder){0};
		d->bytes = read_file(names[i], &d->size);
		assert_int_equal(decode(d->bytes, d->size, 3), LEAT_OK);
		want = malloc(pixels_size);
		memcpy(want, pixels, pixels_size);
		d->want = want;
		d->want_size = pixels_size;
	}
	for (int i = 0; i < 4; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, decode_often, &decoders[i]), 0);
	for (int i = 0; i < 4; i++) {
		pthread_join(threads[i], NULL);
		assert_int_equal(decoders[i].wrong, 0);
		free((void *)decoders[i].bytes);
		free((void *)decoders[i].want);
	}
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_file_cut_off_anywhere_is_an_error),
		TEST(a_flipped_bit_anywhere_does_no_harm),
		TEST(a_flipped_bit_of_a_png_is_an_error),
		TEST(what_is_no_image_is_shown),
		TEST(a_header_with_too_many_pixels_is_refused_before_memory_is_taken),
		TEST(pixels_that_the_bytes_cannot_hold_are_refused_before_memory_is_taken),
		TEST(an_image_without_pixels_is_an_error),
		TEST(a_jpeg_that_lost_a_piece_in_its_middle_is_an_error),
		TEST(a_jpeg_whose_restart_markers_are_out_of_order_is_an_error),
		TEST(a_jpeg_with_codes_that_do_not_exist_is_an_error),
		TEST(a_progressive_jpeg_that_refines_twice_is_an_error),
		TEST(bytes_too_many_at_the_end_of_a_jpeg_are_no_error),
		TEST(inks_cannot_become_gray),
		TEST(channels_0_gives_what_the_file_has_without_alpha),
		TEST(alpha_is_kept_when_asked_for_and_changes_no_color),
		TEST(a_damaged_transparency_fails_only_those_who_want_it),
		TEST(other_chunks_of_a_png_neither_matter_nor_cost),
		TEST(a_progressive_jpeg_keeps_its_coefficients_in_the_scratch),
		TEST(decoding_works_or_says_so_in_any_amount_of_memory),
		TEST(a_jpeg_of_endless_scans_is_refused),
		TEST(a_region_is_a_piece_of_the_whole),
		TEST(giving_up_after_the_header_leaks_nothing),
		TEST(threads_decode_at_once_without_meeting),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
