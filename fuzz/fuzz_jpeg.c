/* fuzz_jpeg.c - any bytes as a JPEG image, by our decoder and by libjpeg-turbo: the same verdict and the same pixels
 *
 * In both modes. The last bytes choose a region, which has to be a piece of the whole. Reduced images have pixels of
 * their own: the same with and without AVX2, also in parts, and what is refused in full is refused at any size.
 * Input and pixels have blocks of their own, so that a sanitizer sees every step outside of them. */
#include <stdlib.h>
#include <string.h>

#include "image/jpeg.h"

enum { MAX_PIXELS = 1 << 13, SCRATCH = 1 << 20 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* All pixels, to be freed; NULL: the library fails. */
static uint8_t *
by_library(const uint8_t *data, size_t size, const struct leat_decoding *how, struct leat_scratch *scratch,
           struct leat_decode *image)
{
	struct leat_window all;
	uint8_t *out = NULL;

	*image = (struct leat_decode){.scratch = scratch, .max_pixels = MAX_PIXELS};
	leat_scratch_reset(scratch);
	if (leat_codec_jpeg_turbo.begin(image, data, size, how, NULL) != LEAT_OK)
		return NULL;
	all = (struct leat_window){.height = image->height, .width = image->width};
	out = malloc((size_t)(image->height * image->width * image->channels));
	if (leat_codec_jpeg_turbo.region(image, &all, out, (size_t)(image->width * image->channels), NULL) != LEAT_OK) {
		free(out);
		out = NULL;
	}
	leat_codec_jpeg_turbo.end(image);
	return out;
}

/* Pixels of a part (NULL: all of the image) by the codec; NULL: it fails. */
static uint8_t *
by_codec(const uint8_t *data, size_t size, const struct leat_decoding *how, const struct leat_window *part,
         struct leat_scratch *scratch)
{
	struct leat_decode image;
	struct leat_window all;
	enum leat_status status;
	uint8_t *out;

	leat_scratch_reset(scratch);
	if (leat_decode_begin(&image, data, size, how, MAX_PIXELS, scratch, NULL) != LEAT_OK)
		return NULL;
	all = (struct leat_window){.height = image.height, .width = image.width};
	part = part ? part : &all;
	out = malloc((size_t)(part->height * part->width * image.channels));
	status = leat_decode_region(&image, part, out, (size_t)(part->width * image.channels), NULL);
	leat_decode_end(&image);
	if (status == LEAT_OK)
		return out;
	free(out);
	return NULL;
}

static struct leat_window
draw_part(const uint8_t *last, int64_t height, int64_t width)
{
	struct leat_window part = {.top = last[0] % height, .left = last[-1] % width};

	part.height = 1 + last[-2] % (height - part.top);
	part.width = 1 + last[-3] % (width - part.left);
	return part;
}

static void
compare(const uint8_t *data, size_t size, const struct leat_decoding *how, struct leat_scratch *scratch)
{
	struct leat_decode image;
	uint8_t *want = by_library(data, size, how, scratch, &image);
	uint8_t *got = by_codec(data, size, how, NULL, scratch);
	struct leat_window part;

	if (!want != !got)
		abort();
	if (!want)
		return;
	if (memcmp(want, got, (size_t)(image.height * image.width * image.channels)) != 0)
		abort();
	free(got);
	part = draw_part(data + size - 1, image.height, image.width);
	got = by_codec(data, size, how, &part, scratch);
	for (int64_t y = 0; y < part.height; y++)
		if (!got || memcmp(want + ((part.top + y) * image.width + part.left) * image.channels,
		                   got + y * part.width * image.channels, (size_t)(part.width * image.channels)) != 0)
			abort();
	free(got);
	free(want);
}

/* By our decoder alone; NULL: it leaves it to the library. */
static uint8_t *
by_kernels(const uint8_t *data, size_t size, const struct leat_decoding *how, int halvings,
           const struct leat_window *part, const struct leat_jpeg_kernels *kernels, struct leat_scratch *scratch)
{
	const size_t stride = (size_t)(part->width * how->channels);
	struct leat_jpeg_header header;
	uint8_t *out;

	if (!leat_jpeg_header_read(&header, data, size))
		return NULL;
	leat_scratch_reset(scratch);
	out = malloc(stride * (size_t)part->height);
	if (leat_jpeg_baseline(&header, how, halvings, part, out, stride, kernels, scratch) == LEAT_JPEG_DONE)
		return out;
	free(out);
	return NULL;
}

static void
compare_kernels(const uint8_t *data, size_t size, const struct leat_decoding *how, int halvings,
                const struct leat_window *all, const uint8_t *whole, struct leat_scratch *scratch)
{
	const struct leat_window part = draw_part(data + size - 1, all->height, all->width);
	const size_t stride = (size_t)(part.width * how->channels);
	uint8_t *plain = by_kernels(data, size, how, halvings, all, &leat_jpeg_plain, scratch), *piece;

	if (!plain)
		return; /* by the library, then */
	if (!whole || memcmp(whole, plain, (size_t)(all->height * all->width * how->channels)) != 0)
		abort();
	piece = by_kernels(data, size, how, halvings, &part, leat_jpeg_fastest(), scratch);
	for (int64_t y = 0; y < part.height; y++)
		if (!piece || memcmp(whole + ((part.top + y) * all->width + part.left) * how->channels,
		                     piece + (size_t)y * stride, stride) != 0)
			abort();
	free(piece);
	free(plain);
}

static void
reduce(const uint8_t *data, size_t size, const struct leat_decoding *how, struct leat_scratch *scratch)
{
	const int halvings = 1 + data[size - 2] % LEAT_DECODE_HALVINGS;
	struct leat_decode image;
	struct leat_window all = {0};
	enum leat_status status;
	uint8_t *out, *full;

	leat_scratch_reset(scratch);
	if (leat_decode_begin(&image, data, size, how, MAX_PIXELS, scratch, NULL) != LEAT_OK)
		return;
	all.height = (image.height + (1 << halvings) - 1) >> halvings;
	all.width = (image.width + (1 << halvings) - 1) >> halvings;
	out = malloc((size_t)(all.height * all.width * image.channels));
	status = leat_decode_reduced(&image, halvings, &all, out, (size_t)(all.width * image.channels), NULL);
	leat_decode_end(&image);
	full = by_codec(data, size, how, NULL, scratch);
	if ((status == LEAT_OK) != (full != NULL))
		abort();
	compare_kernels(data, size, how, halvings, &all, status == LEAT_OK ? out : NULL, scratch);
	free(full);
	free(out);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct leat_mem mem;
	struct leat_scratch scratch;
	struct leat_decoding how = {0};

	if (size < 4 || !leat_codec_jpeg_turbo.recognize(data, size))
		return 0;
	leat_mem_init(&mem, SIZE_MAX);
	if (leat_scratch_open(&scratch, &mem, SCRATCH) != 0)
		return 0;
	how.channels = data[size - 1] % 2 ? 3 : data[size - 1] % 4 ? 1 : 4;
	for (how.mode = LEAT_DECODE_TF; how.mode <= LEAT_DECODE_TORCH; how.mode++)
		compare(data, size, &how, &scratch);
	how.fast = true;
	how.mode = LEAT_DECODE_TF;
	reduce(data, size, &how, &scratch);
	leat_scratch_close(&scratch, &mem);
	return 0;
}
