/* png.c - decode PNG to 8 or 16 bits and 1, 3 or 4 channels, as tf.io.decode_png does, or as the file stores it
 *
 * png_fast.c decodes most files. libspng decodes the others, and reports errors.
 *
 * Alpha, from an alpha channel or a transparent color (tRNS), becomes the fourth channel or is dropped; it is never
 * blended. Without alpha the fourth channel is 255 (TensorFlow writes 1, 3 or 15 for files of 1, 2 or 4 bits). 16 bits
 * become 8 by dropping the lower byte, fewer become 16 by scaling. Color becomes gray with the weights of libpng's
 * fixed-point conversion (but gAMA, which libpng would apply, is ignored).
 *
 * libspng sees only critical chunks, and tRNS if alpha is requested. No other chunk changes a pixel, so none should be
 * able to use up memory (compressed text) or fail an intact image (libspng is stricter than libpng).
 *
 * libspng's allocator functions get no context argument, so the image they serve is in a thread-local variable, set
 * only while a function of libspng runs.
 *
 * Any thread; a struct png belongs to one. */
#include "image/plain.h"

#include <string.h>

#include <spng.h>

#include "image/png_fast.h"
#include "image/png_rows.h"
#include "image/scratch.h"

enum { SIGNATURE = 8, CHUNK_EXTRA = 12, ANCILLARY = 0x20 };

static const uint8_t signature[SIGNATURE] = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n'};

struct png {
	spng_ctx *ctx; /* NULL: libspng is not used so far */
	struct leat_scratch *scratch;
	bool alpha; /* requested */
	bool raw;   /* likewise, values as they are stored */
	bool fast;  /* png_fast.c has read the header */
	bool full;  /* ran out of scratch, which libspng may report as some other error */
	struct spng_ihdr header;
	const uint8_t *bytes;
	size_t size;
	size_t at, segment_end; /* offsets of the next byte for libspng, and of the end of its chunk */
};

/* ---- memory ---- */

static _Thread_local struct png *current;

/* The size of a block is stored in front of it, for realloc. */
enum { BLOCK_HEAD = 64 };

static void *
scratch_malloc(size_t size)
{
	unsigned char *block = NULL;

	if (size <= SIZE_MAX - BLOCK_HEAD)
		block = leat_scratch_alloc(current->scratch, size + BLOCK_HEAD);
	if (!block) {
		current->full = true;
		return NULL;
	}
	memcpy(block, &size, sizeof(size));
	return block + BLOCK_HEAD;
}

static void *
scratch_calloc(size_t count, size_t size)
{
	void *block = !size || count <= SIZE_MAX / size ? scratch_malloc(count * size) : NULL;

	if (block)
		memset(block, 0, count * size);
	return block;
}

static void *
scratch_realloc(void *old, size_t size)
{
	void *block = scratch_malloc(size);
	size_t old_size;

	if (block && old) {
		memcpy(&old_size, (unsigned char *)old - BLOCK_HEAD, sizeof(old_size));
		memcpy(block, old, old_size < size ? old_size : size);
	}
	return block;
}

/* The scratch is reset when the image is done. */
static void
scratch_free(void *block)
{
	(void)block;
}

/* ---- input ---- */

static bool
is_wanted(const struct png *png, const uint8_t *kind)
{
	return !(kind[0] & ANCILLARY) || (png->alpha && !memcmp(kind, "tRNS", 4));
}

/* Advances to the next chunk for libspng; false: end of file. */
static bool
next_segment(struct png *png)
{
	while (png->size - png->at >= CHUNK_EXTRA) {
		const uint8_t *chunk = png->bytes + png->at;
		size_t length = (size_t)chunk[0] << 24 | (size_t)chunk[1] << 16 | (size_t)chunk[2] << 8 | chunk[3];

		if (length > png->size - png->at - CHUNK_EXTRA)
			return false;
		if (is_wanted(png, chunk + 4)) {
			png->segment_end = png->at + length + CHUNK_EXTRA;
			return true;
		}
		png->at += length + CHUNK_EXTRA;
	}
	return false;
}

static int
read_wanted(spng_ctx *ctx, void *user, void *to, size_t length)
{
	struct png *png = user;
	uint8_t *out = to;

	(void)ctx;
	if (leat_scratch_stopped(png->scratch))
		return SPNG_IO_ERROR;
	while (length) {
		size_t part;

		if (png->at == png->segment_end && !next_segment(png))
			return SPNG_IO_EOF;
		part = png->segment_end - png->at;
		if (part > length)
			part = length;
		memcpy(out, png->bytes + png->at, part);
		png->at += part;
		out += part;
		length -= part;
	}
	return 0;
}

/* ---- pixels ---- */

static enum leat_status
fail(const struct leat_decode *decode, int error, struct leat_err *err)
{
	const struct png *png = decode->state;

	if (png->full || error == SPNG_EMEM)
		return leat_fail_image(err, "decoding", decode->scratch);
	if (error == SPNG_IO_EOF)
		return leat_fail(err, LEAT_DATA, "the PNG image is cut off after %zu bytes", png->size);
	return leat_fail(err, LEAT_DATA, "can't decode the PNG image (%zu bytes): %s", png->size, spng_strerror(error));
}

/* The format libspng decodes to when it cannot produce the result directly. */
struct native {
	int format;
	unsigned channels, sample_bytes;
};

static bool
has_color(const struct spng_ihdr *header)
{
	return header->color_type != SPNG_COLOR_TYPE_GRAYSCALE && header->color_type != SPNG_COLOR_TYPE_GRAYSCALE_ALPHA;
}

/* False: libspng can decode to `channels` directly, with `native->format`. */
static bool
needs_conversion(const struct spng_ihdr *header, int64_t channels, struct native *native)
{
	*native = (struct native){.format = SPNG_FMT_PNG, .sample_bytes = header->bit_depth / 8u};
	if (channels >= 3) {
		native->format = channels == 4 ? SPNG_FMT_RGBA8 : SPNG_FMT_RGB8;
		return false;
	}
	switch (header->color_type) {
	case SPNG_COLOR_TYPE_GRAYSCALE:
		native->channels = 1;
		if (header->bit_depth == 16)
			return true;
		native->format = SPNG_FMT_G8;
		return false;
	case SPNG_COLOR_TYPE_GRAYSCALE_ALPHA:
		native->channels = 2;
		return true;
	case SPNG_COLOR_TYPE_INDEXED:
		*native = (struct native){.format = SPNG_FMT_RGB8, .channels = 3, .sample_bytes = 1};
		return true;
	case SPNG_COLOR_TYPE_TRUECOLOR:
		native->channels = 3;
		return true;
	default:
		native->channels = 4;
		return true;
	}
}

/* libspng returns 16-bit samples in host order, png_rows.c expects big-endian. */
static void
swap_16(uint16_t *numbers, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		const uint8_t high_first[2] = {(uint8_t)(numbers[i] >> 8), (uint8_t)numbers[i]};

		memcpy(&numbers[i], high_first, sizeof(high_first));
	}
}

/* By way of 16-bit RGBA, which libspng makes of any file. */
static int
decode_wide(struct leat_decode *decode, uint16_t *out)
{
	struct png *png = decode->state;
	const size_t pixels = (size_t)decode->height * (size_t)decode->width;
	uint16_t *copy = leat_scratch_alloc(decode->scratch, pixels * 8);
	int error;

	if (!copy)
		return SPNG_EMEM;
	error = spng_decode_image(png->ctx, copy, pixels * 8, SPNG_FMT_RGBA16, png->alpha ? SPNG_DECODE_TRNS : 0);
	if (!error)
		leat_png_row_wide(copy, has_color(&png->header), out, (size_t)decode->channels, pixels);
	return error;
}

/* Palette indices or gray of at most 8 bits. */
static int
decode_raw(struct leat_decode *decode, uint8_t *out)
{
	struct png *png = decode->state;
	const size_t width = (size_t)decode->width, row = (width * png->header.bit_depth + 7) / 8;
	uint8_t *packed = leat_scratch_alloc(decode->scratch, row * (size_t)decode->height);
	int error;

	if (!packed)
		return SPNG_EMEM;
	memset(packed, 0, row * (size_t)decode->height); /* libspng ORs the passes of an interlaced image together */
	error = spng_decode_image(png->ctx, packed, row * (size_t)decode->height, SPNG_FMT_PNG, 0);
	for (size_t y = 0; !error && y < (size_t)decode->height; y++)
		leat_png_unpack(packed + y * row, png->header.bit_depth, out + y * width, width);
	return error;
}

static int
decode_image(struct leat_decode *decode, uint8_t *out)
{
	struct png *png = decode->state;
	size_t pixels = (size_t)decode->height * (size_t)decode->width, bytes;
	struct native native;
	void *copy;
	int error;

	if (png->raw && png->header.bit_depth <= 8)
		return decode_raw(decode, out);
	if (decode->dtype == LEAT_U16)
		return decode_wide(decode, (uint16_t *)(void *)out);
	if (!needs_conversion(&png->header, decode->channels, &native))
		return spng_decode_image(png->ctx, out, pixels * (size_t)decode->channels, native.format,
		                         png->alpha ? SPNG_DECODE_TRNS : 0);

	bytes = pixels * native.channels * native.sample_bytes;
	copy = leat_scratch_alloc(decode->scratch, bytes);
	if (!copy)
		return SPNG_EMEM;
	error = spng_decode_image(png->ctx, copy, bytes, native.format, 0);
	if (error)
		return error;
	if (native.sample_bytes == 2)
		swap_16(copy, pixels * native.channels);
	leat_png_row(copy, native.channels, native.sample_bytes, out, 1, pixels);
	return 0;
}

/* ---- the codec ---- */

static bool
png_recognize(const uint8_t *bytes, size_t size)
{
	return size >= SIGNATURE && !memcmp(bytes, signature, SIGNATURE);
}

static void
png_end(struct leat_decode *decode)
{
	struct png *png = decode->state;

	spng_ctx_free(png->ctx);
	png->ctx = NULL;
}

/* Opens the file with libspng and reads the header. */
static int
open_spng(struct png *png)
{
	struct spng_alloc functions = {scratch_malloc, scratch_realloc, scratch_calloc, scratch_free};
	int error;

	png->ctx = spng_ctx_new2(&functions, 0);
	if (!png->ctx)
		return SPNG_EMEM;
	/* By default it ignores a damaged tRNS. */
	error = spng_set_crc_action(png->ctx, SPNG_CRC_ERROR, SPNG_CRC_ERROR);
	if (!error)
		error = spng_set_png_stream(png->ctx, read_wanted, png);
	if (!error)
		error = spng_get_ihdr(png->ctx, &png->header);
	return error;
}

/* Values as they are stored need one channel, and as many bits as are wanted. */
static enum leat_status
check_raw(const struct leat_decode *decode, struct leat_err *err)
{
	static const char *const kinds[] = {[2] = "RGB", [4] = "gray with alpha", [6] = "RGB with alpha"};
	const struct spng_ihdr *header = &((const struct png *)decode->state)->header;

	if (header->color_type != SPNG_COLOR_TYPE_GRAYSCALE && header->color_type != SPNG_COLOR_TYPE_INDEXED)
		return leat_fail(err, LEAT_DATA, "raw=true is for PNG images with a palette or in gray; this one is %s",
		                 kinds[header->color_type]);
	if (header->bit_depth == 16 && decode->dtype == LEAT_U8)
		return leat_fail(err, LEAT_DATA, "the PNG image has 16 bits: use raw=true with dtype=uint16");
	return LEAT_OK;
}

static enum leat_decode_loss
loss(const struct leat_decode *decode)
{
	const struct png *png = decode->state;

	if (png->header.bit_depth == 16 && decode->dtype == LEAT_U8)
		return LEAT_LOSES_LOW_BYTES;
	return decode->channels == 1 && !png->raw && png->header.color_type == SPNG_COLOR_TYPE_INDEXED
	               ? LEAT_LOSES_INDICES
	               : LEAT_LOSES_NOTHING;
}

/* Bytes of image data in the file, as far as they are there. */
static size_t
data_bytes(const struct png *png)
{
	size_t sum = 0, at = SIGNATURE;

	while (png->size - at >= CHUNK_EXTRA) {
		const uint8_t *chunk = png->bytes + at;
		size_t length = (size_t)chunk[0] << 24 | (size_t)chunk[1] << 16 | (size_t)chunk[2] << 8 | chunk[3];

		length = length < png->size - at - CHUNK_EXTRA ? length : png->size - at - CHUNK_EXTRA;
		if (!memcmp(chunk + 4, "IDAT", 4))
			sum += length;
		at += length + CHUNK_EXTRA;
	}
	return sum;
}

/* Deflate's longest match takes 2 bits: it expands data 1032 times at most. Chunks are only counted if that is near. */
static enum leat_status
check_data(const struct leat_decode *decode, struct leat_err *err)
{
	enum { COMMON = 64, MOST = 1032 };
	static const uint8_t samples[] = {[0] = 1, [2] = 3, [3] = 1, [4] = 2, [6] = 4};
	const struct png *png = decode->state;
	const uint64_t pixels = (uint64_t)decode->width * (uint64_t)decode->height;
	const uint64_t bytes = pixels / 8 * samples[png->header.color_type] * png->header.bit_depth;
	size_t there;

	if (bytes / COMMON <= png->size)
		return LEAT_OK;
	there = data_bytes(png);
	return bytes / MOST <= there ? LEAT_OK : leat_decode_fail_short(decode, "PNG", there, err);
}

static enum leat_status
read_header(struct leat_decode *decode, const struct leat_decoding *how, bool fast, struct leat_err *err)
{
	struct png *png = decode->state;
	enum leat_status status;
	int error;

	png->fast = fast && leat_png_fast_header(png->bytes, png->size, &png->header);
	error = png->fast ? 0 : open_spng(png);
	if (error)
		return fail(decode, error, err);
	decode->channels = how->raw ? 1 : how->channels ? how->channels : has_color(&png->header) ? 3 : 1;
	decode->dtype = how->wide ? LEAT_U16 : LEAT_U8;
	decode->loss = loss(decode);
	status = how->raw ? check_raw(decode, err) : LEAT_OK;
	if (status == LEAT_OK)
		status = leat_decode_size(decode, png->header.width, png->header.height, err);
	return status == LEAT_OK ? check_data(decode, err) : status;
}

static enum leat_status
begin(struct leat_decode *decode, const uint8_t *bytes, size_t size, const struct leat_decoding *how, bool fast,
      struct leat_err *err)
{
	struct png *png = leat_scratch_alloc(decode->scratch, sizeof(*png));
	enum leat_status status;

	if (!png)
		return leat_fail_image(err, "decoding", decode->scratch);
	*png = (struct png){
		.scratch = decode->scratch,
		.alpha = how->channels == 4 && !how->raw,
		.raw = how->raw,
		.bytes = bytes,
		.size = size,
		.segment_end = SIGNATURE,
	};
	decode->state = png;
	current = png;
	status = read_header(decode, how, fast, err);
	if (status != LEAT_OK)
		png_end(decode);
	current = NULL;
	return status;
}

static enum leat_status
png_begin(struct leat_decode *decode, const uint8_t *bytes, size_t size, const struct leat_decoding *how,
          struct leat_err *err)
{
	return begin(decode, bytes, size, how, true, err);
}

static enum leat_status
png_begin_plain(struct leat_decode *decode, const uint8_t *bytes, size_t size, const struct leat_decoding *how,
                struct leat_err *err)
{
	return begin(decode, bytes, size, how, false, err);
}

/* Reads to the end of the file, to detect damage or truncation there too. */
static int
pixels_by_spng(struct leat_decode *decode, uint8_t *out)
{
	struct png *png = decode->state;
	int error = png->ctx ? 0 : open_spng(png);

	if (!error)
		error = decode_image(decode, out);
	if (!error)
		error = spng_decode_chunks(png->ctx);
	return error;
}

static enum leat_status
pixels(struct leat_decode *decode, uint8_t *out, struct leat_err *err)
{
	struct png *png = decode->state;
	const size_t mark = decode->scratch->used;
	enum leat_status status = LEAT_OK;
	const bool narrow = decode->dtype == LEAT_U8 || (png->raw && png->header.bit_depth <= 8);
	bool done = png->fast && narrow &&
	            leat_png_fast_pixels(png->bytes, png->size, &png->header, (size_t)decode->channels, png->raw,
	                                 decode->scratch, out);

	decode->scratch->used = mark;
	if (!done) {
		int error;

		current = png;
		error = pixels_by_spng(decode, out);
		if (error)
			status = fail(decode, error, err);
		png_end(decode); /* before its memory is reset */
		current = NULL;
		decode->scratch->used = mark;
	}
	return status;
}

/* Raw values of at most 8 bits are widened in place, from the last one on. */
static enum leat_status
png_pixels(struct leat_decode *decode, uint8_t *out, struct leat_err *err)
{
	const struct png *png = decode->state;
	enum leat_status status = pixels(decode, out, err);

	if (status == LEAT_OK && png->raw && png->header.bit_depth <= 8 && decode->dtype == LEAT_U16)
		for (size_t i = (size_t)decode->height * (size_t)decode->width; i-- > 0;) {
			const uint16_t value = out[i];

			memcpy(out + 2 * i, &value, sizeof(value));
		}
	return status;
}

const struct leat_codec leat_codec_png = {
	.takes_all_options = true,
	.recognize = png_recognize,
	.begin = png_begin,
	.pixels = png_pixels,
	.end = png_end,
};

const struct leat_codec leat_codec_png_plain = {
	.takes_all_options = true,
	.recognize = png_recognize,
	.begin = png_begin_plain,
	.pixels = png_pixels,
	.end = png_end,
};
