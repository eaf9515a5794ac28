/* fuzz_png.c - any bytes as a PNG file, read at once and by libspng alone: the same pixels, the same verdict
 *
 * Checksums are made right first, or no input would get past them: those of chunks, and zlib's, if all the data is in
 * one chunk. Blocks of their own for input and pixels, as in fuzz_image.c. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <zlib.h>

#include "image/plain.h"

enum { MAX_PIXELS = 1 << 12, SCRATCH = 1 << 20, MAX_SIZE = 1 << 16, MAX_INFLATED = 1 << 16 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
put_number(uint8_t *at, uint32_t number)
{
	for (int i = 0; i < 4; i++)
		at[i] = (uint8_t)(number >> (24 - 8 * i));
}

/* Behind the two bytes of a header and a whole stream of deflate stands the sum of what it becomes. */
static void
mend_zlib(uint8_t *data, size_t size)
{
	static uint8_t out[MAX_INFLATED];
	z_stream z = {.next_out = out, .avail_out = sizeof(out)};

	if (size < 6 || inflateInit2(&z, -15) != Z_OK)
		return;
	z.next_in = data + 2;
	z.avail_in = (uInt)size - 2;
	if (inflate(&z, Z_FINISH) == Z_STREAM_END && z.avail_in >= 4)
		put_number(data + 2 + z.total_in, (uint32_t)adler32(1, out, (uInt)z.total_out));
	inflateEnd(&z);
}

static void
mend(uint8_t *bytes, size_t size)
{
	size_t at = 8, length;

	for (; size >= 12 && at <= size - 12; at += length + 12) {
		length = (size_t)bytes[at] << 24 | (size_t)bytes[at + 1] << 16 | (size_t)bytes[at + 2] << 8 |
		         bytes[at + 3];
		if (length > size - 12 - at)
			return;
		if (!memcmp(bytes + at + 4, "IDAT", 4))
			mend_zlib(bytes + at + 8, length);
		put_number(bytes + at + 8 + length, (uint32_t)crc32(0, bytes + at + 4, (uInt)length + 4));
	}
}

struct result {
	enum leat_status status;
	struct leat_err err;
	size_t count;
	uint8_t *pixels;
};

static struct result
decode(const struct leat_codec *codec, const uint8_t *bytes, size_t size, const struct leat_decoding *how,
       struct leat_scratch *scratch)
{
	struct leat_decode image = {.scratch = scratch, .max_pixels = MAX_PIXELS, .codec = codec};
	struct result result = {0};

	leat_err_clear(&result.err);
	leat_scratch_reset(scratch);
	result.status = codec->begin(&image, bytes, size, how, &result.err);
	if (result.status != LEAT_OK)
		return result;
	result.count = (size_t)(image.height * image.width) * leat_decode_pixel(&image);
	result.pixels = calloc(1, result.count);
	if (!result.pixels)
		abort();
	result.status = codec->pixels(&image, result.pixels, &result.err);
	codec->end(&image);
	return result;
}

static void
compare(const uint8_t *bytes, size_t size, const struct leat_decoding *how, struct leat_scratch *scratch)
{
	struct result own = decode(&leat_codec_png, bytes, size, how, scratch);
	struct result want = decode(&leat_codec_png_plain, bytes, size, how, scratch);

	if (own.status != want.status || strcmp(own.err.text, want.err.text) != 0 || own.count != want.count ||
	    (own.status == LEAT_OK && memcmp(own.pixels, want.pixels, own.count) != 0)) {
		fprintf(stderr, "channels %d, wide %d, raw %d: own %d '%s', libspng %d '%s'\n", how->channels,
		        how->wide, how->raw, own.status, own.err.text, want.status, want.err.text);
		abort();
	}
	free(own.pixels);
	free(want.pixels);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct leat_mem mem;
	struct leat_scratch scratch;
	uint8_t *bytes;

	if (size > MAX_SIZE || !leat_codec_png.recognize(data, size))
		return 0;
	bytes = malloc(size);
	leat_mem_init(&mem, SIZE_MAX);
	if (!bytes || leat_scratch_open(&scratch, &mem, SCRATCH) != 0)
		abort();
	memcpy(bytes, data, size);
	mend(bytes, size);
	for (int channels = 0; channels <= 4; channels++)
		for (int wide = 0; channels != 2 && wide < 2; wide++)
			compare(bytes, size, &(struct leat_decoding){.channels = channels, .wide = wide}, &scratch);
	for (int wide = 0; wide < 2; wide++)
		compare(bytes, size, &(struct leat_decoding){.channels = 1, .wide = wide, .raw = true}, &scratch);
	leat_scratch_close(&scratch, &mem);
	free(bytes);
	return 0;
}
