/* jpeg_header.c - parse the segments of a baseline JPEG before its scan
 *
 * Accepts only what common files have. With any other marker, a doubtful value or a missing table, the file is left to
 * the library. Any thread. */
#include "image/jpeg.h"

#include <string.h>

enum {
	SOF0 = 0xc0, /* baseline */
	SOF1 = 0xc1, /* extended: the same as baseline with 8 bits */
	DHT = 0xc4,
	SOI = 0xd8,
	SOS = 0xda,
	DQT = 0xdb,
	DRI = 0xdd,
	APP0 = 0xe0,
	APP14 = 0xee,
	APP15 = 0xef,
	COM = 0xfe,
};

enum { MAX_SIDE = 65500, ADOBE_YCC = 1 }; /* libjpeg's limit */

struct reader {
	struct leat_jpeg_header *header;
	bool jfif, adobe;
	uint8_t transform; /* of the Adobe segment */
};

static uint32_t
be16(const uint8_t *bytes)
{
	return (uint32_t)bytes[0] << 8 | bytes[1];
}

static bool
read_frame(struct leat_jpeg_header *header, const uint8_t *body, size_t length)
{
	if (header->components || length < 6 || body[0] != 8)
		return false;
	header->height = be16(body + 1);
	header->width = be16(body + 3);
	if (!header->height || !header->width || header->height > MAX_SIDE || header->width > MAX_SIDE)
		return false;
	if ((body[5] != 1 && body[5] != 3) || length != 6 + 3u * body[5])
		return false;
	header->components = body[5];
	for (int i = 0; i < header->components; i++) {
		const uint8_t *from = body + 6 + 3 * i;

		header->component[i] = (struct leat_jpeg_component){
			.id = from[0], .h = from[1] >> 4, .v = from[1] & 15, .quant = from[2]};
		if (from[2] > 3)
			return false;
	}
	return true;
}

static bool
read_quant(struct leat_jpeg_header *header, const uint8_t *body, size_t length)
{
	if (!length || length % 65)
		return false;
	for (; length; body += 65, length -= 65) {
		if (body[0] > 3)
			return false; /* invalid table number, or 16-bit values */
		header->quant[body[0]] = body + 1;
	}
	return true;
}

static bool
read_codes(struct leat_jpeg_header *header, const uint8_t *body, size_t length)
{
	while (length) {
		size_t symbols = 0;

		if (length < 17 || (body[0] & 15) > 3 || body[0] >> 4 > 1)
			return false;
		for (int i = 1; i <= 16; i++)
			symbols += body[i];
		if (symbols > 256 || symbols > length - 17)
			return false;
		header->code[body[0] >> 4][body[0] & 15] = body + 1;
		body += 17 + symbols;
		length -= 17 + symbols;
	}
	return true;
}

/* One scan of all components in the order of the frame, with all tables defined. */
static bool
read_scan(struct leat_jpeg_header *header, const uint8_t *body, size_t length)
{
	const int count = header->components;

	if (!count || length != 4 + 2u * (unsigned)count || body[0] != count)
		return false;
	for (int i = 0; i < count; i++) {
		struct leat_jpeg_component *c = &header->component[i];

		if (body[1 + 2 * i] != c->id)
			return false;
		for (int before = 0; before < i; before++)
			if (header->component[before].id == c->id)
				return false;
		c->dc = body[2 + 2 * i] >> 4;
		c->ac = body[2 + 2 * i] & 15;
		if (c->dc > 3 || c->ac > 3 || !header->code[0][c->dc] || !header->code[1][c->ac] ||
		    !header->quant[c->quant])
			return false;
	}
	body += 1 + 2 * count;
	return body[0] == 0 && body[1] == 63 && body[2] == 0;
}

static void
read_app(struct reader *reader, int marker, const uint8_t *body, size_t length)
{
	if (marker == APP0 && length >= 14 && !memcmp(body, "JFIF", 5))
		reader->jfif = true;
	if (marker == APP14 && length >= 12 && !memcmp(body, "Adobe", 5)) {
		reader->adobe = true;
		reader->transform = body[11];
	}
}

/* What libjpeg takes for YCbCr, except where it guesses. */
static bool
is_ycc(const struct reader *reader)
{
	const struct leat_jpeg_component *c = reader->header->component;

	if (reader->jfif)
		return true;
	if (reader->adobe)
		return reader->transform == ADOBE_YCC;
	return c[0].id == 1 && c[1].id == 2 && c[2].id == 3;
}

/* Luma has one or two blocks per MCU in each direction, chroma one. */
static bool
is_common(struct leat_jpeg_header *header)
{
	struct leat_jpeg_component *c = header->component;

	if (header->components == 1) {
		/* With a single component an MCU is one block, whatever the sampling factors. */
		if (!c[0].h || !c[0].v || c[0].h > 4 || c[0].v > 4)
			return false;
		c[0].h = c[0].v = 1;
		return true;
	}
	if (c[0].h < 1 || c[0].h > 2 || c[0].v < 1 || c[0].v > 2)
		return false;
	if (c[1].h != 1 || c[1].v != 1 || c[2].h != 1 || c[2].v != 1)
		return false;
	/* libjpeg does not use smooth upsampling for narrower chroma. */
	return c[0].h == 1 || header->width > 4;
}

static bool
read_segment(struct reader *reader, int marker, const uint8_t *body, size_t length)
{
	switch (marker) {
	case SOF0:
	case SOF1:
		return read_frame(reader->header, body, length);
	case DHT:
		return read_codes(reader->header, body, length);
	case DQT:
		return read_quant(reader->header, body, length);
	case DRI:
		if (length != 2)
			return false;
		reader->header->interval = be16(body);
		return true;
	case SOS:
		return read_scan(reader->header, body, length);
	default:
		read_app(reader, marker, body, length);
		return marker == COM || (marker >= APP0 && marker <= APP15);
	}
}

bool
leat_jpeg_header_read(struct leat_jpeg_header *header, const uint8_t *bytes, size_t size)
{
	struct reader reader = {.header = header};
	size_t at = 2, length;
	int marker;

	*header = (struct leat_jpeg_header){0};
	if (size < 2 || bytes[0] != 0xff || bytes[1] != SOI)
		return false;
	do {
		if (size - at < 4 || bytes[at] != 0xff)
			return false;
		marker = bytes[at + 1];
		length = be16(bytes + at + 2);
		if (length < 2 || length > size - at - 2)
			return false;
		if (!read_segment(&reader, marker, bytes + at + 4, length - 2))
			return false;
		at += 2 + length;
	} while (marker != SOS);
	header->scan = bytes + at;
	header->end = bytes + size;
	return (header->components == 1 || is_ycc(&reader)) && is_common(header);
}
