/* decode.c - detect the format of an image, and enforce the limits that hold for all formats
 *
 * Any thread; a struct leat_decode belongs to one. */
#include "image/codec.h"

#include <stdio.h>
#include <string.h>

#include "image/scratch.h"

#define CODEC(name, title, extensions) &leat_codec_##name,
static const struct leat_codec *const codecs[] = {LEAT_IMAGE_FORMATS(CODEC)};

/* Shows the first bytes: they usually tell what the file is ("GIF89a", "<html>", zeros). */
static enum leat_status
fail_unknown(const uint8_t *bytes, size_t size, struct leat_err *err)
{
	char hex[3 * 8 + 1] = "", text[8 + 1] = "";
	size_t shown = size < 8 ? size : 8;

	if (!size)
		return leat_fail(err, LEAT_DATA, "no image to decode: the field is empty");
	for (size_t i = 0; i < shown; i++) {
		snprintf(hex + 3 * i, sizeof(hex) - 3 * i, " %02x", bytes[i]);
		text[i] = bytes[i] >= ' ' && bytes[i] <= '~' ? (char)bytes[i] : '.';
	}
	return leat_fail(err, LEAT_DATA, "not an image that can be decoded (%s): the %zu bytes start with%s (\"%s\")",
	                 leat_image_formats, size, hex, text);
}

enum leat_status
leat_decode_begin(struct leat_decode *decode, const void *bytes, size_t size, const struct leat_decoding *how,
                  uint64_t max_pixels, struct leat_scratch *scratch, struct leat_err *err)
{
	*decode = (struct leat_decode){.scratch = scratch, .max_pixels = max_pixels, .dtype = LEAT_U8};
	for (size_t i = 0; i < sizeof(codecs) / sizeof(*codecs); i++) {
		if (!codecs[i]->recognize(bytes, size))
			continue;
		if ((how->wide || how->raw) && !codecs[i]->takes_all_options)
			return leat_fail(err, LEAT_DATA, "%s is for PNG images; this is not one",
			                 how->raw ? "raw=true" : "dtype=uint16");
		decode->codec = codecs[i];
		decode->reducible = how->fast && codecs[i]->reduced;
		return decode->codec->begin(decode, bytes, size, how, err);
	}
	return fail_unknown(bytes, size, err);
}

/* For formats that can only decode a whole image. */
static enum leat_status
cut_region(struct leat_decode *decode, const struct leat_window *part, uint8_t *out, size_t stride,
           struct leat_err *err)
{
	const size_t mark = decode->scratch->used, pixel = leat_decode_pixel(decode);
	const size_t row = (size_t)decode->width * pixel, size = row * (size_t)decode->height;
	uint8_t *whole = leat_scratch_alloc(decode->scratch, size);
	enum leat_status status;

	if (!whole)
		return leat_fail_image(err, "decoding", decode->scratch);
	status = decode->codec->pixels(decode, whole, err);
	for (int64_t y = 0; status == LEAT_OK && y < part->height; y++)
		memcpy(out + (size_t)y * stride, whole + (size_t)(part->top + y) * row + (size_t)part->left * pixel,
		       (size_t)part->width * pixel);
	decode->scratch->used = mark;
	return status;
}

/* A codec that is stopped ends as if the file were damaged. */
static enum leat_status
unless_stopped(const struct leat_decode *decode, enum leat_status status, struct leat_err *err)
{
	if (status == LEAT_OK || !leat_scratch_stopped(decode->scratch))
		return status;
	leat_err_clear(err);
	return leat_fail(err, LEAT_CANCELLED, "the feed is closing");
}

static enum leat_status
decode_region(struct leat_decode *decode, const struct leat_window *part, uint8_t *out, size_t stride,
              struct leat_err *err)
{
	if (leat_scratch_stopped(decode->scratch))
		return LEAT_CANCELLED;
	if (decode->codec->region)
		return decode->codec->region(decode, part, out, stride, err);
	if (stride == (size_t)decode->width * leat_decode_pixel(decode) && part->width == decode->width &&
	    part->height == decode->height)
		return decode->codec->pixels(decode, out, err);
	return cut_region(decode, part, out, stride, err);
}

enum leat_status
leat_decode_region(struct leat_decode *decode, const struct leat_window *part, uint8_t *out, size_t stride,
                   struct leat_err *err)
{
	return unless_stopped(decode, decode_region(decode, part, out, stride, err), err);
}

enum leat_status
leat_decode_reduced(struct leat_decode *decode, int halvings, const struct leat_window *part, uint8_t *out,
                    size_t stride, struct leat_err *err)
{
	return unless_stopped(decode, decode->codec->reduced(decode, halvings, part, out, stride, err), err);
}

bool
leat_decode_scan(struct leat_decode *decode, int halvings, const struct leat_window *part, int64_t keep, size_t padding,
                 struct leat_scan *rows)
{
	const struct leat_codec *codec = decode->codec;
	const size_t stride = (size_t)(part->width * decode->channels) + padding;
	const int64_t lines = keep + codec->rows_at_once;

	if (!codec->start_rows)
		return false;
	*rows = (struct leat_scan){.decode = decode, .stride = stride, .height = part->height};
	rows->lines = lines < part->height ? lines : part->height;
	rows->line = leat_scratch_alloc(decode->scratch, (size_t)rows->lines * stride);
	return rows->line && codec->start_rows(decode, halvings, part, rows);
}

const uint8_t *
leat_scan_row(struct leat_scan *rows, int64_t y)
{
	if (rows->done <= y && rows->done >= 0)
		rows->done = leat_scratch_stopped(rows->decode->scratch)
		                     ? -1
		                     : rows->decode->codec->more_rows(rows->decode, y + 1);
	return rows->line + (size_t)(y % rows->lines) * rows->stride;
}

bool
leat_scan_end(struct leat_scan *rows)
{
	return rows->done >= 0 && rows->decode->codec->more_rows(rows->decode, rows->height) >= 0;
}

void
leat_decode_end(struct leat_decode *decode)
{
	decode->codec->end(decode);
}

/* Without a limit of the caller's: sizes in bytes must not overflow. */
static const uint64_t most_pixels = (uint64_t)1 << 48;

enum leat_status
leat_decode_size(struct leat_decode *decode, uint32_t width, uint32_t height, struct leat_err *err)
{
	const uint64_t pixels = (uint64_t)width * height;
	const uint64_t most = decode->max_pixels < most_pixels ? decode->max_pixels : most_pixels;

	if (!width || !height)
		return leat_fail(err, LEAT_DATA, "the image is empty: its header says %lu x %lu pixels",
		                 (unsigned long)width, (unsigned long)height);
	if (pixels > most)
		return leat_fail(err, LEAT_DATA,
		                 "the image has %lu x %lu = %llu pixels, more than max_pixels=%llu allows",
		                 (unsigned long)width, (unsigned long)height, (unsigned long long)pixels,
		                 (unsigned long long)most);
	decode->width = width;
	decode->height = height;
	return LEAT_OK;
}

enum leat_status
leat_decode_fail_short(const struct leat_decode *decode, const char *format, uint64_t bytes, struct leat_err *err)
{
	return leat_fail(err, LEAT_DATA, "the %s image is cut off: %llu bytes of data can't hold %lld x %lld pixels",
	                 format, (unsigned long long)bytes, (long long)decode->width, (long long)decode->height);
}
