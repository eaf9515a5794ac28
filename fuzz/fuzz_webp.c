/* fuzz_webp.c - any bytes as a WebP file: libwebp's heap stays within what the decoder reserves
 *
 * The functions by which libwebp allocates are replaced by ones that count. A lossless image that webp_lossless.c finds
 * damaged must be damaged for libwebp too. Blocks of their own for input and pixels, as in fuzz_image.c. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <webp/decode.h>

#include "image/codec.h"
#include "image/webp_lossless.h"

enum { MAX_PIXELS = 1 << 14, SCRATCH = 64 << 20, MAX_SIZE = 1 << 16, HEAD = 16 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
__attribute__((visibility("default"))) void *WebPSafeMalloc(uint64_t count, size_t size);
__attribute__((visibility("default"))) void *WebPSafeCalloc(uint64_t count, size_t size);
__attribute__((visibility("default"))) void WebPSafeFree(void *block);

/* ---- libwebp's memory ---- */

static size_t heap, heap_peak;

void *
WebPSafeMalloc(uint64_t count, size_t size)
{
	size_t bytes = (size_t)count * size;
	unsigned char *block = malloc(bytes + HEAD);

	if (!block)
		return NULL;
	memcpy(block, &bytes, sizeof(bytes));
	heap += bytes;
	heap_peak = heap > heap_peak ? heap : heap_peak;
	return block + HEAD;
}

void *
WebPSafeCalloc(uint64_t count, size_t size)
{
	void *block = WebPSafeMalloc(count, size);

	return block ? memset(block, 0, (size_t)count * size) : NULL;
}

void
WebPSafeFree(void *block)
{
	size_t bytes;

	if (!block)
		return;
	memcpy(&bytes, (unsigned char *)block - HEAD, sizeof(bytes));
	heap -= bytes;
	free((unsigned char *)block - HEAD);
}

/* ---- one file ---- */

static void
decode(const uint8_t *data, size_t size, int channels, struct leat_scratch *scratch)
{
	const struct leat_decoding how = {.channels = channels};
	struct leat_decode image;
	struct leat_window all;
	struct leat_err err;
	uint8_t *pixels;
	size_t mark;

	leat_err_clear(&err);
	leat_scratch_reset(scratch);
	if (leat_decode_begin(&image, data, size, &how, MAX_PIXELS, scratch, &err) != LEAT_OK)
		return;
	all = (struct leat_window){.height = image.height, .width = image.width};
	pixels = malloc((size_t)(image.height * image.width * image.channels));
	if (!pixels)
		abort();
	mark = scratch->peak = scratch->used;
	heap = heap_peak = 0;
	if (leat_decode_region(&image, &all, pixels, (size_t)(image.width * image.channels), &err) == LEAT_OK &&
	    heap_peak == 0 && image.height * image.width > 1)
		fprintf(stderr, "libwebp's memory is not counted\n"), abort();
	if (heap || heap_peak > scratch->peak - mark) {
		fprintf(stderr, "channels %d: libwebp took %zu bytes, %zu are reserved\n", channels, heap_peak,
		        scratch->peak - mark);
		abort();
	}
	leat_decode_end(&image);
	free(pixels);
}

/* The bytes as a lossless image, so that the fuzzer need not find its way through the container. */
static void
check_lossless(const uint8_t *data, size_t size)
{
	uint8_t pixels[64 * 64 * 4];
	WebPBitstreamFeatures found;
	size_t memory;

	if (WebPGetFeatures(data, size, &found) != VP8_STATUS_OK || found.format != 2 || size < 5 || data[0] != 0x2f ||
	    found.width > 64 || found.height > 64)
		return;
	heap = heap_peak = 0;
	if (leat_webp_lossless_memory(data + 5, size - 5, (uint32_t)found.width, (uint32_t)found.height, &memory)) {
		WebPDecodeRGBAInto(data, size, pixels, sizeof(pixels), 4 * found.width);
		if (heap_peak > memory)
			fprintf(stderr, "libwebp took %zu bytes, not %zu\n", heap_peak, memory), abort();
	} else if (WebPDecodeRGBAInto(data, size, pixels, sizeof(pixels), 4 * found.width)) {
		fprintf(stderr, "libwebp can decode it\n"), abort();
	}
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct leat_mem mem;
	struct leat_scratch scratch;
	uint8_t *bytes;

	if (size > MAX_SIZE || size == 0)
		return 0;
	bytes = malloc(size);
	leat_mem_init(&mem, SIZE_MAX);
	if (!bytes || leat_scratch_open(&scratch, &mem, SCRATCH) != 0)
		abort();
	memcpy(bytes, data, size);
	check_lossless(bytes, size);
	if (leat_codec_webp.recognize(bytes, size))
		for (int channels = 0; channels <= 4; channels++)
			if (channels != 2)
				decode(bytes, size, channels, &scratch);
	leat_scratch_close(&scratch, &mem);
	free(bytes);
	return 0;
}
