/* mutate.c - see mutate.h
 *
 * What a checksum protects is changed together with the checksum where the format is known, because otherwise the
 * checksum alone would be tested. */
#include "mutate.h"

#include <ctype.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/hash.h"
#include "format/index.h"
#include "format/sidecar.h"
#include "support/png.h"

enum { MAX_FILE = 1 << 20, MAX_BLOCK = 600 };

struct file {
	unsigned char bytes[MAX_FILE];
	size_t len;
};

static struct file file;

static size_t
below(struct torture *t, size_t n)
{
	return n ? (size_t)leat_rng_below(&t->rng, n) : 0;
}

/* Of the numbers that length fields are wrong with. */
static uint64_t
extreme(struct torture *t)
{
	const uint64_t some[] = {0,
	                         1,
	                         0x7f,
	                         0xff,
	                         0x7fff,
	                         0xffff,
	                         0x7fffffff,
	                         0x80000000,
	                         0xffffffff,
	                         0x100000000,
	                         INT64_MAX,
	                         UINT64_MAX,
	                         file.len,
	                         file.len + 1,
	                         file.len - 1,
	                         UINT64_MAX - 7,
	                         (uint64_t)1 << 40,
	                         100000000};

	return some[below(t, sizeof some / sizeof *some)];
}

/* Replaces [at, at + gone) by other bytes. */
static void
splice(size_t at, size_t gone, const void *bytes, size_t len)
{
	if (file.len - gone + len > MAX_FILE)
		return;
	memmove(file.bytes + at + len, file.bytes + at + gone, file.len - at - gone);
	if (len)
		memcpy(file.bytes + at, bytes, len);
	file.len += len - gone;
}

/* ---- any bytes ---- */

static bool
flip_bits(struct torture *t)
{
	for (size_t i = 0, count = 1 + below(t, 8); i < count; i++)
		file.bytes[below(t, file.len)] ^= (unsigned char)(1u << below(t, 8));
	return true;
}

static bool
cut_off(struct torture *t)
{
	file.len = below(t, file.len);
	return true;
}

static bool
double_block(struct torture *t)
{
	unsigned char block[MAX_BLOCK];
	size_t at = below(t, file.len), len = 1 + below(t, MAX_BLOCK);

	len = len < file.len - at ? len : file.len - at;
	memcpy(block, file.bytes + at, len);
	splice(below(t, file.len), 0, block, len);
	return true;
}

static bool
drop_block(struct torture *t)
{
	size_t at = below(t, file.len), len = 1 + below(t, MAX_BLOCK);

	splice(at, len < file.len - at ? len : file.len - at, NULL, 0);
	return true;
}

static bool
swap_blocks(struct torture *t)
{
	unsigned char block[MAX_BLOCK];
	size_t len = 1 + below(t, file.len / 2 < MAX_BLOCK ? file.len / 2 : MAX_BLOCK), a, b;

	if (2 * len > file.len)
		return false;
	a = below(t, file.len - 2 * len + 1);
	b = a + len + below(t, file.len - a - 2 * len + 1);
	memcpy(block, file.bytes + a, len);
	memcpy(file.bytes + a, file.bytes + b, len);
	memcpy(file.bytes + b, block, len);
	return true;
}

static bool
fill_block(struct torture *t)
{
	size_t at = below(t, file.len), len = 1 + below(t, MAX_BLOCK);

	memset(file.bytes + at, (int)below(t, 2) * 255, len < file.len - at ? len : file.len - at);
	return true;
}

/* A number of 2, 4 or 8 bytes, mostly near the start, where headers are. */
static bool
put_number(struct torture *t)
{
	size_t size = (size_t)2 << below(t, 3), room = torture_one_in(t, 2) && file.len > 128 ? 128 : file.len, at;
	uint64_t value = extreme(t);

	if (room < size)
		return false;
	at = below(t, room - size + 1);
	if (torture_one_in(t, 2))
		value = __builtin_bswap64(value << (64 - 8 * size));
	memcpy(file.bytes + at, &value, size);
	return true;
}

static bool
append_garbage(struct torture *t)
{
	unsigned char block[MAX_BLOCK];
	size_t len = 1 + below(t, MAX_BLOCK);

	for (size_t i = 0; i < len; i++)
		block[i] = (unsigned char)leat_rng_u32(&t->rng);
	splice(torture_one_in(t, 2) ? file.len : below(t, file.len), 0, block, len);
	return true;
}

/* ---- text ---- */

static bool
is_text(void)
{
	for (size_t i = 0; i < file.len; i++)
		if (file.bytes[i] < ' ' && !isspace(file.bytes[i]))
			return false;
	return true;
}

static bool
change_digits(struct torture *t)
{
	size_t at = below(t, file.len), end;
	char text[40];

	while (at < file.len && !isdigit(file.bytes[at]))
		at++;
	for (end = at; end < file.len && isdigit(file.bytes[end]); end++)
		;
	if (at == end)
		return false;
	splice(at, end - at, text,
	       (size_t)snprintf(text, sizeof text, torture_one_in(t, 3) ? "-%llu" : "%llu",
	                        (unsigned long long)extreme(t)));
	return true;
}

static bool
insert_text(struct torture *t)
{
	static const char *const some[] = {
		"../",      "/etc/passwd", "\"",   "\\", "{", "}",       "[[[[[[[[[[[[", ",", "\n", "\x1b[31m",
		"\xff\xfe", "1e999",       "null", "-",  ":", "\\ud800", "NaN",          "'", "\r", "http://"};
	const char *text = some[below(t, sizeof some / sizeof *some)];

	if (!is_text())
		return false;
	splice(below(t, file.len), 0, text, strlen(text));
	return true;
}

static bool
nest_deeply(struct torture *t)
{
	static char deep[20000];

	if (!is_text())
		return false;
	memset(deep, torture_one_in(t, 2) ? '[' : '{', sizeof deep);
	splice(below(t, file.len), 0, deep, sizeof deep);
	return true;
}

/* ---- formats ---- */

/* TFRecord: a length with the checksum that fits it. */
static bool
change_record_length(struct torture *t)
{
	size_t at = 0, skip = below(t, 8);
	uint64_t len;

	for (; at + 12 <= file.len; skip--) {
		if (leat_load32(file.bytes + at + 8) != leat_crc32c_mask(leat_crc32c(0, file.bytes + at, 8)))
			return false;
		if (skip == 0)
			break;
		len = leat_load64(file.bytes + at);
		if (len > file.len - at)
			return false;
		at += 16 + (size_t)len;
	}
	if (at + 12 > file.len)
		return false;
	len = extreme(t);
	memcpy(file.bytes + at, &len, 8);
	len = leat_crc32c_mask(leat_crc32c(0, file.bytes + at, 8));
	memcpy(file.bytes + at + 8, &len, 4);
	return true;
}

/* TFRecord: another payload with the checksum that fits it. */
static bool
change_record(struct torture *t)
{
	uint64_t len;
	uint32_t crc;

	if (file.len < 16)
		return false;
	len = leat_load64(file.bytes);
	if (len == 0 || len > file.len - 16)
		return false;
	for (size_t i = 0, count = 1 + below(t, 8); i < count; i++)
		file.bytes[12 + below(t, (size_t)len < 64 || torture_one_in(t, 2) ? (size_t)len : 64)] =
			(unsigned char)leat_rng_u32(&t->rng);
	crc = leat_crc32c_mask(leat_crc32c(0, file.bytes + 12, (size_t)len));
	memcpy(file.bytes + 12 + len, &crc, 4);
	return true;
}

/* An index or a sidecar: some numbers, and then its checksum, so that it is believed. */
static bool
change_index(struct torture *t)
{
	enum { CRC_AT = offsetof(struct leat_index_head, crc), AFTER = CRC_AT + 4 };
	bool index = file.len > 64 && memcmp(file.bytes, LEAT_INDEX_MAGIC, 8) == 0;
	uint32_t crc;

	_Static_assert(offsetof(struct leat_sidecar_head, crc) == CRC_AT, "one place for both");
	if (!index && (file.len <= 64 || memcmp(file.bytes, LEAT_SIDECAR_MAGIC, 8) != 0))
		return false;
	for (size_t i = 0, count = 1 + below(t, 3); i < count; i++) {
		size_t at = AFTER + 8 * below(t, (file.len - AFTER) / 8);
		uint64_t value = torture_one_in(t, 2) ? extreme(t) : leat_load64(file.bytes + at) + below(t, 64) - 32;

		memcpy(file.bytes + at, &value, 8);
	}
	crc = index ? leat_crc32c(0, file.bytes, CRC_AT) : 0;
	crc = leat_crc32c(crc, file.bytes + AFTER, file.len - AFTER);
	memcpy(file.bytes + CRC_AT, &crc, 4);
	return true;
}

/* PNG: a number or a bit of any chunk, and then its checksum. */
static bool
change_chunk(struct torture *t)
{
	if (file.len < 40 || memcmp(file.bytes, "\x89PNG", 4) != 0)
		return false;
	if (torture_one_in(t, 2)) {
		uint32_t side = __builtin_bswap32((uint32_t)extreme(t));

		memcpy(file.bytes + 16 + 4 * below(t, 2), &side, 4);
	} else {
		file.bytes[16 + below(t, file.len - 16)] ^= (unsigned char)(1u << below(t, 8));
	}
	png_mend(file.bytes, file.len);
	return true;
}

/* JPEG, anywhere: the sides in the frame header. */
static bool
change_frame(struct torture *t)
{
	size_t at = below(t, file.len);

	for (; at + 9 < file.len; at++)
		if (file.bytes[at] == 0xff && (file.bytes[at + 1] == 0xc0 || file.bytes[at + 1] == 0xc2)) {
			uint16_t side = (uint16_t)extreme(t);

			memcpy(file.bytes + at + 5 + 2 * below(t, 2), &side, 2);
			return true;
		}
	return false;
}

/* ---- all ---- */

static const struct way {
	const char *name;
	bool (*change)(struct torture *t); /* false: it does not fit this file */
} ways[] = {
	{"flip bits", flip_bits},           {"cut off", cut_off},
	{"double a block", double_block},   {"drop a block", drop_block},
	{"swap blocks", swap_blocks},       {"fill a block", fill_block},
	{"put a number", put_number},       {"add garbage", append_garbage},
	{"change digits", change_digits},   {"insert text", insert_text},
	{"nest deeply", nest_deeply},       {"change a record's length", change_record_length},
	{"change a record", change_record}, {TORTURE_PLANTED, change_index},
	{"change a chunk", change_chunk},   {"change a frame", change_frame},
};

const char *
torture_mutate(struct torture *t, const char *path)
{
	FILE *f = fopen(path, "r+b");
	const struct way *way;

	assert_non_null(f);
	file.len = fread(file.bytes, 1, sizeof file.bytes, f);
	assert_true(file.len < sizeof file.bytes);
	if (file.len == 0)
		splice(0, 0, "x", 1);
	do
		way = &ways[below(t, sizeof ways / sizeof *ways)];
	while (!way->change(t));
	rewind(f);
	assert_int_equal(fwrite(file.bytes, 1, file.len, f), file.len);
	assert_int_equal(fclose(f), 0);
	assert_int_equal(truncate(path, (off_t)file.len), 0);
	return way->name;
}
