/* jpeg_huffman.c - the bits of a baseline scan become coefficients
 *
 * Decoding is a chain: only the length of one code tells where the next begins. It is kept short: the highest bits of
 * the buffer are looked up, the entry has the length of up to two coefficients, codes and magnitudes, and the buffer
 * moves on by it. What the magnitudes are is worked out beside the chain, without a branch. The end of a block, codes
 * longer than the table is wide, and places beyond the last coefficient are found by one comparison.
 *
 * A block that is not wanted goes the same way without its magnitudes.
 *
 * Any thread. */
#include "image/jpeg.h"

#include <string.h>

enum {
	DC_BITS = LEAT_JPEG_DC_BITS,
	AC_BITS = LEAT_JPEG_AC_BITS,
	/* What baseline files may have: with codes of 16 bits a coefficient takes 27 at most, and two look-ups of AC
	 * coefficients, even if one is too long for the table, 21 + 26. */
	MAX_DC_SIZE = 11,
	MAX_AC_SIZE = 10,
	LAST = 63,
	ADVANCE_END = 64, /* beyond the last, from anywhere */
	RUN_OF_16 = 0xf0,
};

#define likely(x) __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)
#define INLINE static inline __attribute__((always_inline))

/* ---- tables ---- */

/* The canonical codes: of each length, one after the other. All ones is none of them. */
static bool
list_codes(struct leat_jpeg_codes *codes, const uint8_t *counts)
{
	uint32_t code = 0;
	int32_t symbols = 0;

	codes->symbol = counts + 16;
	codes->limit[0] = 0;
	for (unsigned bits = 1; bits <= 16; bits++) {
		code <<= 1;
		codes->offset[bits] = symbols - (int32_t)code;
		code += counts[bits - 1];
		symbols += counts[bits - 1];
		if (counts[bits - 1] && code >= 1u << bits)
			return false;
		codes->limit[bits] = code << (16 - bits);
	}
	codes->limit[17] = UINT32_MAX;
	return true;
}

/* The length of the code at the highest of 16 bits, when it has at least `bits`; 17: there is none. */
static unsigned
code_length(const struct leat_jpeg_codes *codes, uint32_t next, unsigned bits)
{
	while (next >= codes->limit[bits])
		bits++;
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

/* One symbol of an AC code: bits of the code, bits behind it, places it moves on by. */
struct step {
	uint8_t code, size, advance;
	bool ends;
};

static struct step
step_of(unsigned bits, uint8_t symbol)
{
	struct step step = {.code = (uint8_t)bits, .size = symbol & 15, .advance = (uint8_t)((symbol >> 4) + 1)};

	step.ends = !step.size && symbol != RUN_OF_16;
	return step;
}

static struct leat_jpeg_two
join(const struct step *first, const struct step *second)
{
	struct leat_jpeg_two two = {.total = (uint8_t)(first->code + first->size),
	                            .advance = first->advance,
	                            .code1 = first->code,
	                            .size1 = first->size,
	                            .advance1 = first->advance,
	                            .ends = first->ends};

	two.code2 = two.total;
	if (first->ends) {
		two.advance = ADVANCE_END;
		two.advance1 = 0;
	} else if (second) {
		two.code2 = (uint8_t)(two.total + second->code);
		two.size2 = second->size;
		two.total = (uint8_t)(two.code2 + second->size);
		two.ends = second->ends;
		two.advance = second->ends ? ADVANCE_END : (uint8_t)(first->advance + second->advance);
	}
	return two;
}

bool
leat_jpeg_ac_build(struct leat_jpeg_ac *ac, const uint8_t *counts)
{
	struct leat_jpeg_codes *codes = &ac->codes;
	struct step steps[1 << AC_BITS] = {{0}};

	if (!list_codes(codes, counts))
		return false;
	for (uint32_t bits = 1, i = 0; bits <= 16; bits++)
		for (int k = 0; k < counts[bits - 1]; k++) {
			struct step step = step_of(bits, codes->symbol[i]);
			uint32_t code = (uint32_t)((int32_t)i++ - codes->offset[bits]);

			if (step.size > MAX_AC_SIZE)
				return false;
			if (bits > AC_BITS)
				continue;
			for (uint32_t fill = 0; fill < 1u << (AC_BITS - bits); fill++)
				steps[(code << (AC_BITS - bits)) + fill] = step;
		}
	for (uint32_t i = 0; i < 1 << AC_BITS; i++) {
		const struct step *first = &steps[i], *second;
		unsigned bits = first->code + first->size;

		if (!first->code || bits > AC_BITS) {
			ac->entry[i] = (struct leat_jpeg_two){.advance = ADVANCE_END};
			continue;
		}
		second = &steps[i << bits & ((1 << AC_BITS) - 1)];
		ac->entry[i] = join(first, second->code && bits + second->code <= AC_BITS ? second : NULL);
	}
	return true;
}

/* ---- bits ---- */

INLINE bool
has_ff(uint64_t word)
{
	return (~word - 0x0101010101010101u) & word & 0x8080808080808080u;
}

/* Byte by byte: over stuffed zeros, and up to a marker or the end, behind which zeros are made up. */
static __attribute__((noinline)) struct leat_jpeg_bits
refill_slowly(struct leat_jpeg_bits bits)
{
	while (bits.count <= 56) {
		uint64_t next = 0;

		if (bits.at < bits.end && *bits.at != 0xff)
			next = *bits.at++;
		else if (bits.end - bits.at >= 2 && !bits.at[1])
			next = 0xff, bits.at += 2;
		else
			bits.padding += 8;
		bits.buffer |= next << (56 - bits.count);
		bits.count += 8;
	}
	return bits;
}

/* At least 56 bits. Bits behind `count` may be there already: the same will come again. */
INLINE struct leat_jpeg_bits
refill(struct leat_jpeg_bits bits)
{
	uint64_t word;

	if (unlikely(bits.end - bits.at < 8))
		return refill_slowly(bits);
	memcpy(&word, bits.at, 8);
	if (unlikely(has_ff(word)))
		return refill_slowly(bits);
	bits.buffer |= __builtin_bswap64(word) >> bits.count;
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

/* The `size` bits from bit `from` on as JPEG writes numbers: those that begin with 0 are negative. 0 bits: 0. */
INLINE int
magnitude(uint64_t buffer, unsigned from, unsigned size)
{
	uint64_t bits = buffer << (from & 63), negative = ~(uint64_t)((int64_t)bits >> 63);

	return (int)((((bits ^ negative) >> 1 >> ((63 - size) & 63)) ^ negative) - negative);
}

/* ---- blocks ---- */

/* Where the coefficients of a scan belong in a block of a pair. */
static const uint8_t places[64] = {
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

		code = code_length(&dc->codes, next, DC_BITS + 1);
		if (code > 16)
			return false;
		size = code_symbol(&dc->codes, next, code);
	}
	*value += magnitude(bits->buffer, code, size);
	*bits = consume(*bits, code + size);
	return *value == (int16_t)*value;
}

/* One symbol by its code, for what two cannot do. The new place, ADVANCE_END for the end of the block; -1. */
INLINE int
read_one(struct leat_jpeg_bits *bits, const struct leat_jpeg_ac *ac, int place, int16_t *out, bool wanted)
{
	uint32_t next = (uint32_t)(bits->buffer >> 48);
	unsigned code = code_length(&ac->codes, next, 1);
	struct step step;

	if (code > 16)
		return -1;
	step = step_of(code, code_symbol(&ac->codes, next, code));
	if (step.ends) {
		*bits = consume(*bits, code);
		return ADVANCE_END;
	}
	place += step.advance;
	if (place > LAST)
		return -1;
	if (wanted)
		out[places[place]] = (int16_t)magnitude(bits->buffer, code, step.size);
	*bits = consume(*bits, (unsigned)(step.code + step.size));
	return place;
}

/* Up to two, or what is left of the block. As read_one. */
INLINE int
read_two(struct leat_jpeg_bits *bits, const struct leat_jpeg_ac *ac, int place, int16_t *out, bool wanted)
{
	const struct leat_jpeg_two *two = &ac->entry[bits->buffer >> (64 - AC_BITS)];

	if (unlikely(place + two->advance >= LAST)) {
		if (!two->ends || place + two->advance1 >= LAST)
			return read_one(bits, ac, place, out, wanted);
		if (wanted && two->size1)
			out[places[place + two->advance1]] = (int16_t)magnitude(bits->buffer, two->code1, two->size1);
		*bits = consume(*bits, two->total);
		return ADVANCE_END;
	}
	if (wanted) {
		/* In this order: if there is no second one, its zero lands where the first belongs. */
		out[places[place + two->advance]] = (int16_t)magnitude(bits->buffer, two->code2, two->size2);
		out[places[place + two->advance1]] = (int16_t)magnitude(bits->buffer, two->code1, two->size1);
	}
	*bits = consume(*bits, two->total);
	return place + two->advance;
}

/* 0: the block is its DC alone; 1; -1. */
INLINE int
read_block(struct leat_jpeg_bits *bits, const struct leat_jpeg_block *block, int *dc, int16_t *out, bool wanted)
{
	const struct leat_jpeg_two *first;
	int place = 0;

	*bits = refill(*bits);
	if (unlikely(!read_dc(bits, block->dc, dc)))
		return -1;
	if (wanted)
		out[0] = (int16_t)*dc;
	first = &block->ac->entry[bits->buffer >> (64 - AC_BITS)];
	if (first->ends && !first->advance1) {
		*bits = consume(*bits, first->total);
		return 0;
	}
	do {
		*bits = refill(*bits);
		place = read_two(bits, block->ac, place, out, wanted);
		if ((unsigned)place >= LAST)
			break;
		place = read_two(bits, block->ac, place, out, wanted);
	} while ((unsigned)place < LAST);
	return place < 0 ? -1 : 1;
}

INLINE int
read_mcu(struct leat_jpeg_bits *shared, const struct leat_jpeg_mcu *mcu, int *dc, int16_t *coefficients, bool wanted)
{
	struct leat_jpeg_bits bits = *shared; /* kept in registers */
	int more = 0;

	if (wanted)
		memset(coefficients, 0, (size_t)(mcu->blocks + 1) / 2 * LEAT_JPEG_PAIR * sizeof(*coefficients));
	for (int i = 0; i < mcu->blocks; i++) {
		const struct leat_jpeg_block *block = &mcu->block[i];
		int16_t *out = coefficients + i / 2 * LEAT_JPEG_PAIR + i % 2 * 8;
		int result;

		if (wanted && block->wanted)
			result = read_block(&bits, block, &dc[block->component], out, true);
		else
			result = read_block(&bits, block, &dc[block->component], out, false);
		if (unlikely(result < 0))
			return -1;
		more |= result << i;
	}
	*shared = bits;
	return more;
}

int
leat_jpeg_read_mcu_plain(struct leat_jpeg_bits *bits, const struct leat_jpeg_mcu *mcu, int *dc, int16_t *coefficients,
                         bool wanted)
{
	return read_mcu(bits, mcu, dc, coefficients, wanted);
}

#if defined(__x86_64__)
/* The same with shifts that need no fixed register. */
__attribute__((target("avx2,bmi,bmi2"))) int
leat_jpeg_read_mcu_bmi2(struct leat_jpeg_bits *bits, const struct leat_jpeg_mcu *mcu, int *dc, int16_t *coefficients,
                        bool wanted)
{
	return read_mcu(bits, mcu, dc, coefficients, wanted);
}
#endif
