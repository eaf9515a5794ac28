/* jpegs.h - JPEG files of all common kinds, drawn at random, for tests of the decoder */
#ifndef LEAT_TESTS_JPEGS_H
#define LEAT_TESTS_JPEGS_H

#include "bench.h"

#include <math.h>

#include <jpeglib.h>

#include "image/image.h"

enum { SCRATCH = 4 << 20, MAX_SIDE = 70 };

static struct leat_mem mem;
static struct leat_scratch scratch;
static struct leat_err err;
static uint32_t seed;

static inline int
set_up(void **state)
{
	(void)state;
	seed = 1;
	leat_mem_init(&mem, SIZE_MAX);
	return leat_scratch_open(&scratch, &mem, SCRATCH);
}

static inline int
tear_down(void **state)
{
	(void)state;
	leat_scratch_close(&scratch, &mem);
	return 0;
}

static inline int
draw(int below)
{
	seed = seed * 1664525u + 1013904223u;
	return (int)((seed >> 8) % (uint32_t)below);
}

struct file {
	unsigned char *bytes;
	unsigned long size;
	int width, height;
	bool gray;
};

struct style {
	int quality, noise;
	bool smooth; /* without noise, red grows along rows, green down columns, blue in waves */
	bool flat;   /* all of one color */
	bool progressive;
};

static const JSAMPLE flat_color[] = {200, 90, 30};

static inline void
draw_flat_row(JSAMPLE *row, const struct file *file)
{
	for (int x = 0; x < file->width; x++, row += 3)
		memcpy(row, flat_color, 3);
}

static inline void
draw_smooth_row(JSAMPLE *row, const struct file *file, int y)
{
	for (int x = 0; x < file->width; x++) {
		const double wave = 128 + 60 * sin(x / 15.0) * cos(y / 17.0);
		const double color[] = {30 + 190.0 * x / file->width, 30 + 190.0 * y / file->height, wave};

		for (int c = file->gray ? 2 : 0; c < 3; c++)
			*row++ = (JSAMPLE)lround(color[c]);
	}
}

/* How much two neighbours differ, from nothing to all there is. */
static inline void
draw_row(JSAMPLE *row, int count, int y, int noise)
{
	for (int x = 0; x < count; x++) {
		int value = 128 + (x * 3 + y * 5) % 100 - 50 + (noise ? draw(2 * noise) - noise : 0);

		row[x] = (JSAMPLE)(value < 0 ? 0 : value > 255 ? 255 : value);
	}
}

static inline void
set_options(struct jpeg_compress_struct *cinfo, const struct file *file, const struct style *style, int h, int v)
{
	cinfo->image_width = (JDIMENSION)file->width;
	cinfo->image_height = (JDIMENSION)file->height;
	cinfo->input_components = file->gray ? 1 : 3;
	cinfo->in_color_space = file->gray ? JCS_GRAYSCALE : JCS_RGB;
	jpeg_set_defaults(cinfo);
	jpeg_set_quality(cinfo, style->quality, TRUE);
	cinfo->comp_info[0].h_samp_factor = h;
	cinfo->comp_info[0].v_samp_factor = v;
	cinfo->optimize_coding = draw(2);
	cinfo->restart_interval = draw(3) ? 0 : (unsigned)(1 + draw(12));
	cinfo->write_JFIF_header = draw(2);
	cinfo->write_Adobe_marker = draw(2);
	if (style->progressive)
		jpeg_simple_progression(cinfo);
}

static inline struct file
encode_as(const struct style *style, int width, int height, bool gray, int h, int v)
{
	struct file file = {.width = width, .height = height, .gray = gray};
	struct jpeg_compress_struct cinfo;
	struct jpeg_error_mgr errors;
	JSAMPLE pixels[3 * 200];
	JSAMPROW row = pixels;

	assert_in_range(width, 1, sizeof(pixels) / 3);
	cinfo.err = jpeg_std_error(&errors);
	jpeg_create_compress(&cinfo);
	jpeg_mem_dest(&cinfo, &file.bytes, &file.size);
	set_options(&cinfo, &file, style, h, v);
	jpeg_start_compress(&cinfo, TRUE);
	for (int y = 0; y < height; y++) {
		if (style->smooth)
			draw_smooth_row(row, &file, y);
		else if (style->flat)
			draw_flat_row(row, &file);
		else
			draw_row(row, width * (gray ? 1 : 3), y, style->noise);
		jpeg_write_scanlines(&cinfo, &row, 1);
	}
	jpeg_finish_compress(&cinfo);
	jpeg_destroy_compress(&cinfo);
	return file;
}

static inline struct file
encode(int width, int height, bool gray, int h, int v)
{
	const int quality = 1 + draw(100), noise = draw(3) ? draw(200) : draw(3);

	return encode_as(&(struct style){.quality = quality, .noise = noise}, width, height, gray, h, v);
}

/* Gray, and all ratios of chroma that jpeg.h takes, by turns. */
static inline struct file
encode_any(int i)
{
	static const int sampling[][2] = {{1, 1}, {2, 1}, {1, 2}, {2, 2}, {2, 2}};
	int side = draw(4) ? MAX_SIDE : 12;

	return encode(1 + draw(side), 1 + draw(side), i % 6 == 5, sampling[i % 5][0], sampling[i % 5][1]);
}

static inline struct leat_window
draw_part(int height, int width)
{
	struct leat_window part = {.top = draw(height), .left = draw(width)};

	part.height = draw(4) ? 1 + draw(height - (int)part.top) : 1;
	part.width = draw(4) ? 1 + draw(width - (int)part.left) : 1;
	return part;
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

#endif
