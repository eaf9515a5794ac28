/* webp.c - decode WebP to 8 bits and 1, 3 or 4 channels, as Pillow and tf.io.decode_webp do
 *
 * libwebp decodes the pixels. This file reads the container (RFC 9649) and gives it only the chunks of one image, so
 * metadata and other frames cost nothing. Of an animation, the first frame is decoded; where it does not cover the
 * canvas, pixels are 0. Alpha becomes the fourth channel or is dropped, without blending. Without alpha, the fourth
 * channel is 255. Color becomes gray as in PNG files (image/png_rows.h). EXIF and color profiles are ignored.
 *
 * libwebp writes the pixels to the caller's memory but allocates what else it needs from the heap. An upper bound of
 * that is taken from the scratch for the time being, and not touched, so that the caller's memory limit holds.
 *
 * Any thread; a struct webp belongs to one. */
#include <string.h>

#include <webp/decode.h>

#include "image/codec.h"
#include "image/png_rows.h"
#include "image/scratch.h"
#include "image/webp_lossless.h"

enum {
	FILE_HEAD = 12,  /* "RIFF", size, "WEBP" */
	CHUNK_HEAD = 8,  /* kind, size */
	FRAME_HEAD = 16, /* of an ANMF chunk: place, size, duration, flags */
	CANVAS = 10,     /* least size of a VP8X chunk: flags, width, height */
	ANIMATED = 2,    /* flag in VP8X */
	LOSSLESS_HEAD = 5,
	LARGE = 4000 * 4000, /* pixels from which on it is decoded in steps */
	STEPS = 64,
	STEPS_MEMORY = 16 << 10, /* that takes more */
	/* libwebp's memory for a lossy image, above what it allocates: for each column, and in any case. */
	LOSSY_COLUMN = 160,
	LOSSY_REST = 64 * 1024,
};

struct piece {
	const uint8_t *bytes;
	size_t size;
};

struct webp {
	struct piece file, alpha, image; /* the last two: chunks with their heads; alpha: may be empty */
	bool lossless;
	uint32_t left, top, width, height; /* of the image on the canvas */
};

static uint32_t
le(const uint8_t *at, unsigned bytes)
{
	uint32_t value = 0;

	for (unsigned i = 0; i < bytes; i++)
		value |= (uint32_t)at[i] << 8 * i;
	return value;
}

/* ---- the container ---- */

static enum leat_status
fail_cut(const struct webp *webp, struct leat_err *err)
{
	return leat_fail(err, LEAT_DATA, "the WebP image is cut off after %zu bytes", webp->file.size);
}

static enum leat_status
fail_damaged(const struct webp *webp, const char *what, struct leat_err *err)
{
	return leat_fail(err, LEAT_DATA, "can't decode the WebP image (%zu bytes): %s", webp->file.size, what);
}

static bool
is_kind(const struct piece *chunk, const char *kind)
{
	return !memcmp(chunk->bytes, kind, 4);
}

/* Takes the next chunk, with its head, from `rest`. False: it is not complete. */
static bool
next_chunk(struct piece *rest, struct piece *chunk)
{
	size_t size;

	if (rest->size < CHUNK_HEAD)
		return false;
	size = le(rest->bytes + 4, 4);
	if (size > rest->size - CHUNK_HEAD)
		return false;
	*chunk = (struct piece){rest->bytes, CHUNK_HEAD + size};
	size = chunk->size + (size & 1 && chunk->size < rest->size);
	*rest = (struct piece){rest->bytes + size, rest->size - size};
	return true;
}

/* Finds the image and its alpha among the chunks; the first frame in place of `rest` if it is an animation. */
static enum leat_status
find_image(struct webp *webp, struct piece rest, bool animated, struct leat_err *err)
{
	struct piece chunk;

	while (next_chunk(&rest, &chunk)) {
		if (is_kind(&chunk, "VP8 ") || is_kind(&chunk, "VP8L")) {
			webp->image = chunk;
			webp->lossless = is_kind(&chunk, "VP8L");
			return LEAT_OK;
		}
		if (is_kind(&chunk, "ALPH")) {
			webp->alpha = chunk;
		} else if (animated && is_kind(&chunk, "ANMF")) {
			const uint8_t *head = chunk.bytes + CHUNK_HEAD;

			if (chunk.size < CHUNK_HEAD + FRAME_HEAD)
				return fail_damaged(webp, "its first frame has no header", err);
			webp->left = 2 * le(head, 3);
			webp->top = 2 * le(head + 3, 3);
			rest = (struct piece){head + FRAME_HEAD, chunk.size - CHUNK_HEAD - FRAME_HEAD};
			animated = false;
		}
	}
	return rest.size ? fail_cut(webp, err) : fail_damaged(webp, "it holds no image", err);
}

/* The size of the canvas, from its own chunk or from the image. */
static enum leat_status
read_container(struct leat_decode *decode, struct leat_err *err)
{
	struct webp *webp = decode->state;
	uint32_t size = le(webp->file.bytes + 4, 4), width = 0, height = 0;
	struct piece rest = {webp->file.bytes + FILE_HEAD, size - 4}, first = rest, chunk;
	WebPBitstreamFeatures found;
	enum leat_status status;

	if (size < 4 || size > webp->file.size - 8)
		return fail_cut(webp, err);
	if (!next_chunk(&first, &chunk))
		return fail_cut(webp, err);
	if (is_kind(&chunk, "VP8X")) {
		if (chunk.size < CHUNK_HEAD + CANVAS)
			return fail_damaged(webp, "its header is too short", err);
		width = 1 + le(chunk.bytes + CHUNK_HEAD + 4, 3);
		height = 1 + le(chunk.bytes + CHUNK_HEAD + 7, 3);
	}
	status = find_image(webp, rest, width && chunk.bytes[CHUNK_HEAD] & ANIMATED, err);
	if (status != LEAT_OK)
		return status;
	if (WebPGetFeatures(webp->image.bytes, webp->image.size, &found) != VP8_STATUS_OK)
		return fail_damaged(webp, "the header of its pixels is damaged", err);
	webp->width = (uint32_t)found.width;
	webp->height = (uint32_t)found.height;
	width = width ? width : webp->width;
	height = height ? height : webp->height;
	if (webp->left + webp->width > width || webp->top + webp->height > height)
		return fail_damaged(webp, "its pixels do not fit on its canvas", err);
	return leat_decode_size(decode, width, height, err);
}

/* ---- pixels ---- */

/* The chunks to decode. In a file, chunks between alpha and the image may only be unknown ones, which libwebp skips. */
static struct piece
wanted(const struct leat_decode *decode)
{
	const struct webp *webp = decode->state;
	const uint8_t *end = webp->image.bytes + webp->image.size;

	if (decode->channels != 4 || webp->lossless || !webp->alpha.size)
		return webp->image;
	return (struct piece){webp->alpha.bytes, (size_t)(end - webp->alpha.bytes)};
}

/* An upper bound of the memory that libwebp allocates. False: the image is damaged. */
static bool
memory_needed(const struct leat_decode *decode, size_t *memory)
{
	const struct webp *webp = decode->state;
	const struct piece *image = &webp->image, *alpha = &webp->alpha;
	size_t alpha_memory;

	if (webp->lossless)
		return image->size >= CHUNK_HEAD + LOSSLESS_HEAD &&
		       leat_webp_lossless_memory(image->bytes + CHUNK_HEAD + LOSSLESS_HEAD,
		                                 image->size - CHUNK_HEAD - LOSSLESS_HEAD, webp->width, webp->height,
		                                 memory);
	*memory = (size_t)LOSSY_COLUMN * webp->width + LOSSY_REST;
	if (decode->channels != 4 || !alpha->size)
		return true;
	*memory += (size_t)webp->width * webp->height;
	if (alpha->size == CHUNK_HEAD)
		return false;
	if ((alpha->bytes[CHUNK_HEAD] & 3) == 1) {
		if (!leat_webp_lossless_memory(alpha->bytes + CHUNK_HEAD + 1, alpha->size - CHUNK_HEAD - 1, webp->width,
		                               webp->height, &alpha_memory))
			return false;
		*memory += alpha_memory;
	}
	return true;
}

static enum leat_status
fail(const struct webp *webp, VP8StatusCode code, struct leat_err *err)
{
	switch (code) {
	case VP8_STATUS_OUT_OF_MEMORY:
		return leat_fail(err, LEAT_NOMEM, "out of memory while decoding a WebP image");
	case VP8_STATUS_NOT_ENOUGH_DATA:
	case VP8_STATUS_SUSPENDED:
		return fail_cut(webp, err);
	default:
		return fail_damaged(webp, "its data is damaged", err);
	}
}

/* In steps, between which it can be stopped. */
static VP8StatusCode
decode_in_steps(const struct piece *from, WebPDecoderConfig *config, const struct leat_scratch *scratch)
{
	WebPIDecoder *decoder = WebPIDecode(NULL, 0, config);
	VP8StatusCode code = decoder ? VP8_STATUS_SUSPENDED : VP8_STATUS_OUT_OF_MEMORY;

	for (size_t i = 1; i <= STEPS && code == VP8_STATUS_SUSPENDED && !leat_scratch_stopped(scratch); i++)
		code = WebPIUpdate(decoder, from->bytes, i == STEPS ? from->size : from->size / STEPS * i);
	WebPIDelete(decoder);
	return code;
}

/* To `channels` (3 or 4) bytes per pixel of the canvas. */
static enum leat_status
decode_to(struct leat_decode *decode, size_t channels, uint8_t *out, struct leat_err *err)
{
	const struct webp *webp = decode->state;
	const struct piece from = wanted(decode);
	const size_t stride = (size_t)decode->width * channels, mark = decode->scratch->used;
	const bool covered = webp->width == decode->width && webp->height == decode->height;
	const bool steps = decode->scratch->stop && (size_t)webp->width * webp->height > LARGE;
	WebPDecoderConfig config;
	VP8StatusCode code;
	size_t memory;

	if (!memory_needed(decode, &memory))
		return fail_damaged(webp, "its data is damaged", err);
	if (!leat_scratch_alloc(decode->scratch, memory + (steps ? STEPS_MEMORY : 0)))
		return leat_fail_image(err, "decoding", decode->scratch);
	if (!WebPInitDecoderConfig(&config))
		return leat_fail(err, LEAT_INTERNAL, "libwebp is older than its header");
	if (!covered)
		memset(out, 0, stride * (size_t)decode->height);
	config.output.colorspace = channels == 4 ? MODE_RGBA : MODE_RGB;
	config.output.is_external_memory = 1;
	config.output.u.RGBA.rgba = out + webp->top * stride + webp->left * channels;
	config.output.u.RGBA.stride = (int)stride;
	config.output.u.RGBA.size = stride * (webp->height - 1) + webp->width * channels;
	code = steps ? decode_in_steps(&from, &config, decode->scratch) : WebPDecode(from.bytes, from.size, &config);
	WebPFreeDecBuffer(&config.output);
	decode->scratch->used = mark;
	return code == VP8_STATUS_OK ? LEAT_OK : fail(webp, code, err);
}

/* ---- the codec ---- */

static bool
webp_recognize(const uint8_t *bytes, size_t size)
{
	return size >= FILE_HEAD && !memcmp(bytes, "RIFF", 4) && !memcmp(bytes + 8, "WEBP", 4);
}

static enum leat_status
webp_begin(struct leat_decode *decode, const uint8_t *bytes, size_t size, const struct leat_decoding *how,
           struct leat_err *err)
{
	struct webp *webp = leat_scratch_alloc(decode->scratch, sizeof(*webp));

	if (!webp)
		return leat_fail_image(err, "decoding", decode->scratch);
	*webp = (struct webp){.file = {bytes, size}};
	decode->state = webp;
	decode->channels = how->channels ? how->channels : 3;
	return read_container(decode, err);
}

static enum leat_status
webp_pixels(struct leat_decode *decode, uint8_t *out, struct leat_err *err)
{
	const size_t mark = decode->scratch->used, pixels = (size_t)decode->height * (size_t)decode->width;
	enum leat_status status;
	uint8_t *rgb;

	if (decode->channels != 1)
		return decode_to(decode, (size_t)decode->channels, out, err);
	rgb = leat_scratch_alloc(decode->scratch, 3 * pixels);
	if (!rgb)
		return leat_fail_image(err, "decoding", decode->scratch);
	status = decode_to(decode, 3, rgb, err);
	if (status == LEAT_OK)
		leat_png_row(rgb, 3, 1, out, 1, pixels);
	decode->scratch->used = mark;
	return status;
}

static void
webp_end(struct leat_decode *decode)
{
	(void)decode;
}

const struct leat_codec leat_codec_webp = {
	.recognize = webp_recognize,
	.begin = webp_begin,
	.pixels = webp_pixels,
	.end = webp_end,
};
