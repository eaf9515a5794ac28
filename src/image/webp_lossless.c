/* webp_lossless.c - see webp_lossless.h
 *
 * libwebp allocates from the heap. For most of it, the size of the image is enough to know how much: 4 bytes per pixel,
 * and some more for the transforms. But an image may use thousands of groups of Huffman codes, each with tables of
 * 12 to 20 KB, and how many is only known after the transforms, which are coded like small images. So this reads the
 * stream that far (RFC 9649), keeping nothing but the largest group number. It is a few percent of the work of
 * decoding.
 *
 * Any thread. */
#include "image/webp_lossless.h"

#include <string.h>

enum {
	MAX_LENGTH = 15, /* of a code */
	LITERALS = 256,
	LENGTHS = 24,
	DISTANCES = 40,
	MAX_CACHE_BITS = 11,
	MAX_ALPHABET = LITERALS + LENGTHS + (1 << MAX_CACHE_BITS),
	LENGTH_CODES = 19,
	CODES = 5, /* per group */
	/* Sizes in libwebp: table entries of a group without and with the largest color cache, a group's other data,
	 * and the numbers of groups, if they are renumbered. */
	TABLE_ENTRIES = 2300 + 2704,
	ENTRY = 4,
	GROUP = 640,
	NUMBERS = 65536 * 4,
	RENUMBERED = 1000, /* with more groups than this, unused ones are left out, of which there may be any number */
	ROWS = 17,         /* kept besides the image */
	REST = 64 * 1024,
};

struct bits {
	const uint8_t *at, *end;
	uint64_t value;
	unsigned count;
	bool over; /* more was read than there is */
};

static uint32_t
read_bits(struct bits *bits, unsigned count)
{
	uint32_t value;

	while (bits->count < count) {
		bits->over |= bits->at == bits->end;
		bits->value |= (uint64_t)(bits->at < bits->end ? *bits->at++ : 0) << bits->count;
		bits->count += 8;
	}
	value = (uint32_t)(bits->value & (((uint64_t)1 << count) - 1));
	bits->value >>= count;
	bits->count -= count;
	return value;
}

/* A canonical Huffman code: the number of codes of each length, and the symbols in order. */
struct code {
	uint16_t count[MAX_LENGTH + 1];
	uint16_t symbol[MAX_ALPHABET];
	bool single; /* one symbol, of no bits */
};

/* False: the lengths are not those of a complete code, or of one symbol. */
static bool
build_code(struct code *code, const uint8_t *length, unsigned alphabet)
{
	uint16_t at[MAX_LENGTH + 2] = {0};
	int left = 1;

	memset(code->count, 0, sizeof(code->count));
	for (unsigned i = 0; i < alphabet; i++)
		code->count[length[i]]++;
	code->count[0] = 0;
	for (int n = 1; n <= MAX_LENGTH; n++)
		at[n + 1] = (uint16_t)(at[n] + code->count[n]);
	for (unsigned i = 0; i < alphabet; i++)
		if (length[i])
			code->symbol[at[length[i]]++] = (uint16_t)i;
	code->single = at[MAX_LENGTH] == 1;
	for (int n = 1; n <= MAX_LENGTH && left >= 0; n++)
		left = 2 * left - code->count[n];
	return code->single || left == 0;
}

static unsigned
read_symbol(const struct code *code, struct bits *bits)
{
	int value = 0, first = 0, index = 0;

	if (code->single)
		return code->symbol[0];
	for (int n = 1; n <= MAX_LENGTH; n++) {
		value |= (int)read_bits(bits, 1);
		if (value - first < code->count[n])
			return code->symbol[index + value - first];
		index += code->count[n];
		first = (first + code->count[n]) << 1;
		value <<= 1;
	}
	return 0; /* not reached: the code is complete */
}

/* Code lengths, themselves coded. */
static bool
read_lengths(struct bits *bits, struct code *code, uint8_t *length, unsigned alphabet)
{
	static const uint8_t order[LENGTH_CODES] = {17, 18, 0, 1, 2, 3, 4, 5, 16, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
	uint8_t own[LENGTH_CODES] = {0}, previous = 8;
	unsigned count = read_bits(bits, 4) + 4, left = alphabet;

	for (unsigned i = 0; i < count; i++)
		own[order[i]] = (uint8_t)read_bits(bits, 3);
	if (!build_code(code, own, LENGTH_CODES))
		return false;
	if (read_bits(bits, 1)) {
		left = 2 + read_bits(bits, 2 + 2 * read_bits(bits, 3));
		if (left > alphabet)
			return false;
	}
	for (unsigned i = 0; i < alphabet && left-- && !bits->over;) {
		unsigned symbol = read_symbol(code, bits), repeat;

		if (symbol < 16) {
			length[i++] = (uint8_t)symbol;
			previous = symbol ? (uint8_t)symbol : previous;
			continue;
		}
		repeat = symbol == 16   ? 3 + read_bits(bits, 2)
		         : symbol == 17 ? 3 + read_bits(bits, 3)
		                        : 11 + read_bits(bits, 7);
		if (repeat > alphabet - i)
			return false;
		memset(length + i, symbol == 16 ? previous : 0, repeat);
		i += repeat;
	}
	return true;
}

static bool
read_code(struct bits *bits, struct code *code, unsigned alphabet)
{
	uint8_t length[MAX_ALPHABET] = {0};

	if (read_bits(bits, 1)) {
		bool two = read_bits(bits, 1);

		length[read_bits(bits, read_bits(bits, 1) ? 8 : 1)] = 1;
		if (two)
			length[read_bits(bits, 8)] = 1;
	} else if (!read_lengths(bits, code, length, alphabet)) {
		return false;
	}
	return build_code(code, length, alphabet) && !bits->over;
}

/* A length or a distance. */
static uint64_t
read_number(struct bits *bits, unsigned symbol)
{
	unsigned extra;

	if (symbol < 4)
		return symbol + 1;
	extra = (symbol - 2) >> 1;
	return ((uint64_t)(2 + (symbol & 1)) << extra) + read_bits(bits, extra) + 1;
}

/* Bits of the color cache; -1: damaged. */
static int
read_cache_bits(struct bits *bits)
{
	unsigned count;

	if (!read_bits(bits, 1))
		return 0;
	count = read_bits(bits, 4);
	return count >= 1 && count <= MAX_CACHE_BITS ? (int)count : -1;
}

/* Reads an image of one group. *largest: the largest number in red and green of a pixel, as in the image of groups. */
static bool
read_image(struct bits *bits, uint64_t pixels, unsigned *largest)
{
	int cache_bits = read_cache_bits(bits);
	struct code code[CODES]; /* green and lengths, red, blue, alpha, distances */

	if (cache_bits < 0)
		return false;
	for (int i = 0; i < CODES; i++) {
		unsigned green = LITERALS + LENGTHS + (cache_bits ? 1u << cache_bits : 0);

		if (!read_code(bits, &code[i], i == 0 ? green : i < 4 ? LITERALS : DISTANCES))
			return false;
	}
	*largest = 0;
	while (pixels && !bits->over) {
		unsigned green = read_symbol(&code[0], bits);
		uint64_t count = 1;

		if (green < LITERALS) {
			unsigned number = read_symbol(&code[1], bits) << 8 | green;

			read_symbol(&code[2], bits);
			read_symbol(&code[3], bits);
			*largest = number > *largest ? number : *largest;
		} else if (green < LITERALS + LENGTHS) {
			count = read_number(bits, green - LITERALS);
			read_number(bits, read_symbol(&code[4], bits));
		}
		if (count > pixels)
			return false;
		pixels -= count;
	}
	return !bits->over;
}

static uint64_t
tiles(uint32_t width, uint32_t height, unsigned shift)
{
	const uint64_t side = ((uint64_t)1 << shift) - 1;

	return ((width + side) >> shift) * ((height + side) >> shift);
}

/* Transforms change the width of the coded image if it has a palette. *pixels: those of all images so far. */
static bool
read_transforms(struct bits *bits, uint32_t *width, uint32_t height, uint64_t *pixels)
{
	unsigned seen = 0, unused;

	while (read_bits(bits, 1)) {
		unsigned kind = read_bits(bits, 2);
		uint64_t count = 0;

		if (seen & 1u << kind)
			return false;
		seen |= 1u << kind;
		if (kind <= 1) {
			count = tiles(*width, height, read_bits(bits, 3) + 2);
		} else if (kind == 3) {
			count = read_bits(bits, 8) + 1;
			*width = (uint32_t)tiles(*width, 1, count > 16 ? 0 : count > 4 ? 1 : count > 2 ? 2 : 3);
		}
		if (count && !read_image(bits, count, &unused))
			return false;
		*pixels += count;
	}
	return !bits->over;
}

bool
leat_webp_lossless_memory(const uint8_t *bytes, size_t size, uint32_t width, uint32_t height, size_t *memory)
{
	struct bits bits = {.at = bytes, .end = bytes + size};
	uint64_t pixels = 0, groups = 1, count = 0;
	uint32_t coded = width;
	unsigned largest = 0;

	if (!read_transforms(&bits, &coded, height, &pixels) || read_cache_bits(&bits) < 0)
		return false;
	if (read_bits(&bits, 1)) {
		count = tiles(coded, height, read_bits(&bits, 3) + 2);
		if (!read_image(&bits, count, &largest))
			return false;
		groups = largest + 1u;
		if (groups > RENUMBERED && groups > count)
			groups = count;
	}
	pixels += (uint64_t)width * height + (uint64_t)ROWS * width + count;
	*memory = (size_t)(4 * pixels + groups * (TABLE_ENTRIES * ENTRY + GROUP) + NUMBERS + REST);
	return !bits.over;
}
