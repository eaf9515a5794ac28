/* jpeg_huffman.c - decode the entropy-coded data of a baseline scan to coefficients
 *
 * Huffman decoding is a dependency chain: the next code starts where this one ends. The chain is kept short. The top
 * bits of the buffer index a table whose entry has the length of up to two coefficients, codes and magnitudes included,
 * and the buffer advances by it. The magnitude of the first coefficient is in the table; the second is computed off the
 * chain, without a branch. A single comparison detects the end of the block, codes too long for the table, and invalid
 * positions.
 *
 * Blocks that are not wanted take the same path without computing magnitudes.
 *
 * Any thread. */
#include "image/jpeg.h"

#include <endian.h>
#include <string.h>

enum {
	DC_BITS = LEAT_JPEG_DC_BITS,
	AC_BITS = LEAT_JPEG_AC_BITS,
	/* Limits of baseline files: with a code of 16 bits, a coefficient has at most 27. */
	MAX_DC_SIZE = 11,
	MAX_AC_SIZE = 10,
	MAX_SECOND_SIZE = 7, /* three lookups fit into 56 bits */
	RUN_OF_16 = 0xf0,

	/* The last position of a block, and states after it. */
	LAST = 63,
	END,    /* of a block */
	END_DC, /* of a block that has only a DC */
	BAD,
};

_Static_assert(3 * (LEAT_JPEG_AC_BITS + MAX_SECOND_SIZE) <= 56, "a refill is good for three look-ups");
_Static_assert(sizeof(struct leat_jpeg_two) == sizeof(uint64_t), "entries are added as numbers");

#define unlikely(x) __builtin_expect(!!(x), 0)
#define INLINE static inline __attribute__((always_inline))

/* ---- tables ---- */

/* Canonical codes: consecutive within each length. The code of all ones is not allowed. */
static bool
list_codes(struct leat_jpeg_codes *codes, const uint8_t *counts)
{
	uint32_t code = 0;
	int32_t symbols = 0;

	codes->symbol = counts + 16;
	for (unsigned bits = 1; bits <= 16; bits++) {
		code <<= 1;
		codes->offset[bits] = symbols - (int32_t)code;
		code += counts[bits - 1];
		symbols += counts[bits - 1];
		if (counts[bits - 1] && code >= 1u << bits)
			return false;
		codes->limit[bits] = code << (16 - bits);
	}
	return true;
}

/* The length of the code at the start of the 16 bits; 17: invalid. Branch-free: the length is unpredictable. */
static inline unsigned
code_length(const struct leat_jpeg_codes *codes, uint32_t next)
{
	unsigned bits = 1;

	for (int i = 1; i <= 16; i++)
		bits += next >= codes->limit[i];
	return bits;
}

static uint8_t
code_symbol(const struct leat_jpeg_codes *codes, uint32_t next, unsigned bits)
{
	return codes->symbol[(int32_t)(next >> (16 - bits)) + codes->offset[bits]];
}

bool
leat_jpeg_dc_build(struct leat_jpeg_dc *dc, const uint8_t *counts)
{
	struct leat_jpeg_codes *codes = &dc->codes;

	if (!list_codes(codes, counts))
		return false;
	memset(dc->entry, 0, sizeof(dc->entry));
	for (uint32_t bits = 1, i = 0; bits <= 16; bits++)
		for (int k = 0; k < counts[bits - 1]; k++) {
			uint8_t size = codes->symbol[(int32_t)i];
			uint32_t code = (uint32_t)((int32_t)i++ - codes->offset[bits]);

			if (size > MAX_DC_SIZE)
				return false;
			if (bits > DC_BITS)
				continue;
			for (uint32_t fill = 0; fill < 1u << (DC_BITS - bits); fill++) {
				uint32_t at = (code << (DC_BITS - bits)) + fill;

				dc->entry[at].code = (uint8_t)bits;
				dc->entry[at].size = size;
			}
		}
	return true;
}

static int
to_number(uint32_t bits, unsigned size)
{
	return size && !(bits >> (size - 1)) ? (int)bits - (1 << size) + 1 : (int)bits;
}

/* Entries are added as integers: no member of a sum overflows into the next one. */
static uint64_t
packed(struct leat_jpeg_two two)
{
	uint64_t number;

	memcpy(&number, &two, sizeof(number));
	return number;
}

static bool
ends_block(uint8_t symbol)
{
	return !(symbol & 15) && symbol != RUN_OF_16;
}

/* What a symbol adds to an entry as the second of two; the bits of the first are added to code2 later. */
static uint64_t
as_second(uint32_t bits, uint8_t symbol)
{
	unsigned size = symbol & 15;

	if (ends_block(symbol))
		return packed((struct leat_jpeg_two){.total = (uint8_t)bits, .advance = END});
	if (!size || size > MAX_SECOND_SIZE)
		return 0;
	return packed((struct leat_jpeg_two){.total = (uint8_t)(bits + size),
	                                     .advance = (uint8_t)((symbol >> 4) + 1),
	                                     .code2 = (uint8_t)bits,
	                                     .shift2 = (uint8_t)(64 - size)});
}

/* What can follow a first symbol, by the number of bits it leaves: entries for `left` bits start at 1 << left. */
struct seconds {
	uint64_t adds[1 << AC_BITS];
};

static void
fill_seconds(struct seconds *seconds, const struct leat_jpeg_codes *codes, const uint8_t *counts)
{
	memset(seconds, 0, sizeof(*seconds));
	for (uint32_t bits = 1, i = 0; bits < AC_BITS; bits++)
		for (int k = 0; k < counts[bits - 1]; k++, i++) {
			uint64_t adds = as_second(bits, codes->symbol[i]);
			uint32_t code = (uint32_t)((int32_t)i - codes->offset[bits]);

			for (uint32_t left = bits; adds && left < AC_BITS; left++)
				for (uint32_t fill = 0; fill < 1u << (left - bits); fill++)
					seconds->adds[(1u << left) + (code << (left - bits)) + fill] = adds;
		}
}

/* All entries that start with one symbol: for each of its magnitudes, and each bit pattern that can follow. */
static void
fill_first(struct leat_jpeg_two *entry, uint32_t bits, uint8_t symbol, const struct seconds *seconds)
{
	const uint32_t size = symbol & 15, used = bits + size, left = AC_BITS - used;
	struct leat_jpeg_two first = {
		.total = (uint8_t)used,
		.advance = (uint8_t)((symbol >> 4) + 1),
		.first = (uint8_t)used,
		.advance1 = (uint8_t)((symbol >> 4) + 1),
		.code2 = (uint8_t)used,
	};

	for (uint32_t value = 0; value < 1u << size; value++) {
		uint64_t number;

		first.value1 = (int16_t)to_number(value, size);
		number = packed(first);
		for (uint32_t next = 0; next < 1u << left; next++, entry++) {
			uint64_t both = number + seconds->adds[(1u << left) + next];

			memcpy(entry, &both, sizeof(both));
		}
	}
}

static void
fill_same(struct leat_jpeg_two *entry, size_t count, struct leat_jpeg_two with)
{
	for (size_t i = 0; i < count; i++)
		entry[i] = with;
}

bool
leat_jpeg_ac_build(struct leat_jpeg_ac *ac, const uint8_t *counts)
{
	const struct leat_jpeg_two not_in_table = {.advance = END};
	struct leat_jpeg_codes *codes = &ac->codes;
	struct leat_jpeg_two *entry = ac->entry;
	struct seconds seconds;

	if (!list_codes(codes, counts))
		return false;
	fill_seconds(&seconds, codes, counts);
	for (uint32_t bits = 1, i = 0; bits <= 16; bits++)
		for (int k = 0; k < counts[bits - 1]; k++) {
			const uint8_t symbol = codes->symbol[i++], size = symbol & 15;
			const size_t count = bits <= AC_BITS ? (size_t)1 << (AC_BITS - bits) : 0;

			if (size > MAX_AC_SIZE)
				return false;
			if (bits + size > AC_BITS)
				fill_same(entry, count, not_in_table);
			else if (ends_block(symbol))
				fill_same(entry, count,
				          (struct leat_jpeg_two){
						  .total = (uint8_t)bits, .advance = END, .first = (uint8_t)bits});
			else
				fill_first(entry, bits, symbol, &seconds);
			entry += count;
		}
	fill_same(entry, (size_t)(ac->entry + (1 << AC_BITS) - entry), not_in_table);
	return true;
}

/* ---- bits ---- */

/* Byte by byte: removes stuffed zeros, and pads with zero bits after a marker or the end of the file. */
static __attribute__((noinline)) struct leat_jpeg_bits
refill_slowly(struct leat_jpeg_bits bits, const uint8_t *end)
{
	const uint8_t *ff;

	while (bits.count < 56) {
		uint64_t next = 0;

		if (bits.at < end && *bits.at != 0xff)
			next = *bits.at++;
		else if (end - bits.at >= 2 && !bits.at[1])
			next = 0xff, bits.at += 2;
		else
			bits.padding += 8;
		bits.buffer |= next << (56 - bits.count);
		bits.count += 8;
	}
	/* Does not point before the file: the header is longer than 8 bytes. */
	if (bits.at > bits.clear + 8) {
		ff = memchr(bits.at, 0xff, (size_t)(end - bits.at));
		bits.clear = (ff ? ff : end) - 8;
	}
	return bits;
}

/* To at least 56 bits. Bits after `count` may be set already, to the values they will get again. */
INLINE struct leat_jpeg_bits
refill(struct leat_jpeg_bits bits, const uint8_t *end)
{
	uint64_t word;

	if (unlikely(bits.at > bits.clear))
		return refill_slowly(bits, end);
	memcpy(&word, bits.at, 8);
	bits.buffer |= be64toh(word) >> bits.count;
	bits.at += (63 - bits.count) >> 3;
	bits.count |= 56;
	return bits;
}

INLINE struct leat_jpeg_bits
consume(struct leat_jpeg_bits bits, unsigned count)
{
	bits.buffer <<= count & 63;
	bits.count -= count;
	return bits;
}

/* The 64 - shift bits at `from` as a JPEG magnitude: negative if the first bit is 0. */
INLINE int16_t
magnitude(uint64_t buffer, unsigned from, unsigned shift)
{
	uint64_t bits = buffer << (from & 63), negative = ~(uint64_t)((int64_t)bits >> 63);

	if (shift > 63)
		__builtin_unreachable();
	return (int16_t)((bits >> shift) - (negative >> shift));
}

/* ---- blocks ---- */

/* Zigzag position to offset in a block of a pair. */
static const uint8_t zigzag[64] = {
#define P(row, column) (16 * (row) + (column))
	P(0, 0), P(0, 1), P(1, 0), P(2, 0), P(1, 1), P(0, 2), P(0, 3), P(1, 2), P(2, 1), P(3, 0), P(4, 0),
	P(3, 1), P(2, 2), P(1, 3), P(0, 4), P(0, 5), P(1, 4), P(2, 3), P(3, 2), P(4, 1), P(5, 0), P(6, 0),
	P(5, 1), P(4, 2), P(3, 3), P(2, 4), P(1, 5), P(0, 6), P(0, 7), P(1, 6), P(2, 5), P(3, 4), P(4, 3),
	P(5, 2), P(6, 1), P(7, 0), P(7, 1), P(6, 2), P(5, 3), P(4, 4), P(3, 5), P(2, 6), P(1, 7), P(2, 7),
	P(3, 6), P(4, 5), P(5, 4), P(6, 3), P(7, 2), P(7, 3), P(6, 4), P(5, 5), P(4, 6), P(3, 7), P(4, 7),
	P(5, 6), P(6, 5), P(7, 4), P(7, 5), P(6, 6), P(5, 7), P(6, 7), P(7, 6), P(7, 7),
#undef P
};

INLINE bool
read_dc(struct leat_jpeg_bits *bits, const struct leat_jpeg_dc *dc, int *value)
{
	unsigned at = (unsigned)(bits->buffer >> (64 - DC_BITS)), code = dc->entry[at].code, size = dc->entry[at].size;

	if (unlikely(!code)) {
		uint32_t next = (uint32_t)(bits->buffer >> 48);

		code = code_length(&dc->codes, next);
		if (code > 16)
			return false;
		size = code_symbol(&dc->codes, next, code);
	}
	if (size)
		*value += magnitude(bits->buffer, code, 64 - size);
	*bits = consume(*bits, code + size);
	return *value == (int16_t)*value;
}

/* A coefficient with too many bits for the table. Returns the new position. */
INLINE size_t
read_long(struct leat_jpeg_bits *bits, const struct leat_jpeg_ac *ac, size_t position, int16_t *out, bool wanted,
          const uint8_t *end)
{
	unsigned code, size;
	uint32_t next;
	uint8_t symbol;

	*bits = refill(*bits, end);
	next = (uint32_t)(bits->buffer >> 48);
	code = code_length(&ac->codes, next);
	if (code > 16)
		return BAD;
	symbol = code_symbol(&ac->codes, next, code);
	size = symbol & 15;
	if (ends_block(symbol)) {
		*bits = consume(*bits, code);
		return END;
	}
	position += (symbol >> 4) + 1u;
	if (position > LAST)
		return BAD;
	if (wanted && size)
		out[zigzag[position]] = magnitude(bits->buffer, code, 64 - size);
	*bits = consume(*bits, code + size);
	return position;
}

/* When the second of two is invalid here, or is the end of the block. */
INLINE size_t
read_first(struct leat_jpeg_bits *bits, const struct leat_jpeg_two *two, size_t position, int16_t *out, bool wanted)
{
	size_t next = position + two->advance1;

	if (next > LAST)
		return BAD;
	if (wanted && two->advance1)
		out[zigzag[next]] = two->value1;
	if (two->advance < END || (next == LAST && two->advance1)) {
		*bits = consume(*bits, two->first);
		return next;
	}
	*bits = consume(*bits, two->total);
	return next ? END : END_DC;
}

/* Up to two coefficients. Returns the new position. */
INLINE size_t
read_two(struct leat_jpeg_bits *bits, const struct leat_jpeg_ac *ac, size_t position, int16_t *out, bool wanted,
         const uint8_t *end)
{
	const struct leat_jpeg_two *two = &ac->entry[bits->buffer >> (64 - AC_BITS)];
	const uint64_t buffer = bits->buffer;
	const size_t second = position + two->advance;

	if (unlikely(second > LAST)) {
		if (two->total)
			return read_first(bits, two, position, out, wanted);
		return read_long(bits, ac, position, out, wanted, end);
	}
	*bits = consume(*bits, two->total);
	if (wanted) {
		const size_t first = position + two->advance1;
		const int16_t value1 = two->value1;

		/* In this order: without a second one, its garbage is written where the first then goes. */
		out[zigzag[second]] = magnitude(buffer, two->code2, two->shift2);
		out[zigzag[first]] = value1;
	}
	return second;
}

/* Returns LAST or one of the states after it. */
INLINE size_t
read_block(struct leat_jpeg_bits *bits, const struct leat_jpeg_block *block, int *dc, int16_t *out, bool wanted,
           const uint8_t *end)
{
	size_t position = 0;

	*bits = refill(*bits, end);
	if (unlikely(!read_dc(bits, block->dc, dc)))
		return BAD;
	out[0] = (int16_t)*dc;
	do {
		*bits = refill(*bits, end);
		position = read_two(bits, block->ac, position, out, wanted, end);
		if (position >= LAST)
			break;
		position = read_two(bits, block->ac, position, out, wanted, end);
		if (position >= LAST)
			break;
		position = read_two(bits, block->ac, position, out, wanted, end);
	} while (position < LAST);
	return position;
}

INLINE int
read_mcu(struct leat_jpeg_bits *shared, const struct leat_jpeg_mcu *mcu, int *dc, int16_t *coefficients, bool wanted)
{
	struct leat_jpeg_bits bits = *shared; /* stays in registers */
	int has_ac = 0;

	if (wanted)
		memset(coefficients, 0, (size_t)(mcu->blocks + 1) / 2 * LEAT_JPEG_PAIR * sizeof(*coefficients));
	for (int i = 0; i < mcu->blocks; i++) {
		const struct leat_jpeg_block *block = &mcu->block[i];
		int16_t *out = coefficients + i / 2 * LEAT_JPEG_PAIR + i % 2 * 8;
		size_t last;

		if (wanted && block->wanted)
			last = read_block(&bits, block, &dc[block->component], out, true, mcu->end);
		else
			last = read_block(&bits, block, &dc[block->component], out, false, mcu->end);
		if (unlikely(last == BAD))
			return -1;
		has_ac |= (last != END_DC) << i;
	}
	*shared = bits;
	return has_ac;
}

int
leat_jpeg_read_mcu_plain(struct leat_jpeg_bits *bits, const struct leat_jpeg_mcu *mcu, int *dc, int16_t *coefficients,
                         bool wanted)
{
	return read_mcu(bits, mcu, dc, coefficients, wanted);
}

#if defined(__x86_64__)
/* The same, compiled with shifts that take the count from any register. */
__attribute__((target("bmi,bmi2"))) int
leat_jpeg_read_mcu_bmi2(struct leat_jpeg_bits *bits, const struct leat_jpeg_mcu *mcu, int *dc, int16_t *coefficients,
                        bool wanted)
{
	return read_mcu(bits, mcu, dc, coefficients, wanted);
}
#endif
