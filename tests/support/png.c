/* png.c - see png.h
 *
 * The rows compressed are random bytes: whatever they are, some image was filtered to them. */
#include "support/png.h"

#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <setjmp.h>
#include <cmocka.h>
#include <zlib.h>

struct file {
	uint8_t *bytes;
	size_t size, room;
};

static void
put_number(uint8_t *at, uint32_t number)
{
	for (int i = 0; i < 4; i++)
		at[i] = (uint8_t)(number >> (24 - 8 * i));
}

static void
put_chunk(struct file *file, const char *kind, const void *data, size_t size)
{
	uint8_t *at = file->bytes + file->size;

	assert_true(file->room - file->size >= size + 12);
	put_number(at, (uint32_t)size);
	memcpy(at + 4, kind, 4);
	if (size)
		memcpy(at + 8, data, size);
	put_number(at + 8 + size, (uint32_t)crc32(0, at + 4, (uInt)size + 4));
	file->size += size + 12;
}

static size_t
row_bytes(const struct png_kind *kind)
{
	static const uint8_t samples[] = {1, 0, 3, 1, 2, 0, 4};

	return ((size_t)kind->width * samples[kind->color] * kind->depth + 7) / 8;
}

static uint8_t *
compress_rows(const struct png_kind *kind, struct leat_rng *rng, size_t *size)
{
	const size_t row = row_bytes(kind) + 1, image = row * kind->height;
	const size_t count = (size_t)((long)image + kind->surplus);
	uint8_t *rows = malloc(image + count + 1), *packed;
	z_stream z = {.next_in = rows, .avail_in = (uInt)count};

	for (size_t i = 0; i < image + count; i++)
		rows[i] = (uint8_t)leat_rng_below(rng, kind->highest + 1u);
	for (size_t y = 0; y < kind->height; y++)
		rows[y * row] = (uint8_t)(kind->filter < 0 ? (int)leat_rng_below(rng, 5) : kind->filter);
	assert_int_equal(deflateInit2(&z, (int)leat_rng_below(rng, 10), Z_DEFLATED, kind->window ? kind->window : 15, 9,
	                              (int)leat_rng_below(rng, 5)),
	                 Z_OK);
	*size = 2 * deflateBound(&z, (uLong)count) + kind->behind; /* the bound fails for the smallest windows */
	packed = calloc(1, *size);
	z.next_out = packed;
	z.avail_out = (uInt)*size;
	assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
	*size = z.total_out + kind->behind;
	deflateEnd(&z);
	free(rows);
	return packed;
}

static void
put_data(struct file *file, const struct png_kind *kind, struct leat_rng *rng)
{
	size_t size, done = 0;
	uint8_t *packed = compress_rows(kind, rng, &size);

	file->room += size + 12 * kind->pieces;
	file->bytes = realloc(file->bytes, file->room);
	for (size_t i = 0; i < kind->pieces; i++) {
		size_t part = i + 1 < kind->pieces ? (size_t)leat_rng_below(rng, size - done + 1) : size - done;

		put_chunk(file, "IDAT", packed + done, part);
		done += part;
	}
	free(packed);
}

uint8_t *
png_make(const struct png_kind *kind, struct leat_rng *rng, size_t *size)
{
	uint8_t header[13] = {[8] = kind->depth, kind->color}, random[1024];
	struct file file = {.bytes = malloc(2048), .room = 2048, .size = 8};

	memcpy(file.bytes, "\x89PNG\r\n\x1a\n", 8);
	put_number(header, kind->width);
	put_number(header + 4, kind->height);
	put_chunk(&file, "IHDR", header, sizeof(header));
	for (size_t i = 0; i < sizeof(random); i++)
		random[i] = (uint8_t)leat_rng_below(rng, 256);
	if (kind->palette)
		put_chunk(&file, "PLTE", random, 3 * kind->palette);
	if (kind->alpha)
		put_chunk(&file, "tRNS", random + 768, kind->alpha);
	put_data(&file, kind, rng);
	put_chunk(&file, "IEND", NULL, 0);
	*size = file.size;
	return file.bytes;
}

void
png_mend(uint8_t *bytes, size_t size)
{
	size_t at = 8, length;

	for (; size >= 12 && at <= size - 12; at += length + 12) {
		length = (size_t)bytes[at] << 24 | (size_t)bytes[at + 1] << 16 | (size_t)bytes[at + 2] << 8 |
		         bytes[at + 3];
		if (length > size - 12 - at)
			return;
		put_number(bytes + at + 8 + length, (uint32_t)crc32(0, bytes + at + 4, (uInt)length + 4));
	}
}
