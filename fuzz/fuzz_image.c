/* fuzz_image.c - any bytes as an image, decoded to each number of channels
 *
 * The input and the pixels have blocks of their own, so that a sanitizer sees every step outside of them. The limits
 * are low, so that no input takes long. */
#include <stdlib.h>
#include <string.h>

#include "image/image.h"

enum { MAX_PIXELS = 1 << 14, SCRATCH = 1 << 20 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Rows one by one, if they can be had and are right, are those of the whole. */
static void
compare_rows(const uint8_t *data, size_t size, const struct leat_decoding *how, const uint8_t *pixels,
             struct leat_scratch *scratch)
{
	const size_t mark = scratch->used;
	struct leat_decode image;
	struct leat_scan scan;
	struct leat_window all;
	struct leat_err err;
	bool same = true;

	leat_err_clear(&err);
	if (leat_decode_begin(&image, data, size, how, MAX_PIXELS, scratch, &err) != LEAT_OK)
		return;
	all = (struct leat_window){.height = image.height, .width = image.width};
	if (leat_decode_scan(&image, 0, &all, 1 + (int64_t)(size % 3), size % 5, &scan)) {
		const size_t row = (size_t)(image.width * image.channels);

		for (int64_t y = 0; y < image.height; y++)
			same = memcmp(leat_scan_row(&scan, y), pixels + (size_t)y * row, row) == 0 && same;
		if (leat_scan_end(&scan) && !same)
			abort();
	}
	leat_decode_end(&image);
	scratch->used = mark;
}

static void
decode(const uint8_t *data, size_t size, int channels, struct leat_scratch *scratch)
{
	const struct leat_decoding how = {.channels = channels, .mode = (int)(size % 2)};
	struct leat_decode image;
	struct leat_window all;
	struct leat_err err;
	uint8_t *pixels;

	leat_err_clear(&err);
	leat_scratch_reset(scratch);
	if (leat_decode_begin(&image, data, size, &how, MAX_PIXELS, scratch, &err) != LEAT_OK)
		return;
	if (image.height < 1 || image.width < 1 || image.height * image.width > MAX_PIXELS)
		abort();
	if (channels ? image.channels != channels : image.channels != 1 && image.channels != 3)
		abort();
	all = (struct leat_window){.height = image.height, .width = image.width};
	pixels = malloc((size_t)(image.height * image.width * image.channels));
	if (pixels != NULL &&
	    leat_decode_region(&image, &all, pixels, (size_t)(image.width * image.channels), &err) == LEAT_OK)
		compare_rows(data, size, &how, pixels, scratch);
	else if (pixels != NULL && err.text[0] == '\0')
		abort();
	leat_decode_end(&image);
	free(pixels);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct leat_mem mem;
	struct leat_scratch scratch;

	leat_mem_init(&mem, SIZE_MAX);
	if (leat_scratch_open(&scratch, &mem, SCRATCH) != 0)
		return 0;
	for (int channels = 0; channels <= 4; channels++)
		if (channels != 2)
			decode(data, size, channels, &scratch);
	leat_scratch_close(&scratch, &mem);
	return 0;
}
