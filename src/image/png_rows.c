/* png_rows.c - see png_rows.h
 *
 * Any thread. */
#include "image/png_rows.h"

#include <string.h>

#include "image/cpu.h"

static inline uint8_t
gray_8(const uint8_t *in)
{
	return (uint8_t)((LEAT_PNG_RED * in[0] + LEAT_PNG_GREEN * in[1] + LEAT_PNG_BLUE * in[2]) >> 15);
}

static inline uint32_t
be16(const uint8_t *in)
{
	return (uint32_t)in[0] << 8 | in[1];
}

static inline uint8_t
gray_16(const uint8_t *in)
{
	uint32_t sum = (uint32_t)LEAT_PNG_RED * be16(in) + (uint32_t)LEAT_PNG_GREEN * be16(in + 2) +
	               (uint32_t)LEAT_PNG_BLUE * be16(in + 4);

	return (uint8_t)((sum + 16384u) >> 15 >> 8);
}

static inline void
row(const uint8_t *in, size_t from, size_t bytes, uint8_t *out, size_t to, size_t pixels)
{
	for (size_t i = 0; i < pixels; i++, in += from * bytes, out += to) {
		const size_t green = from < 3 ? 0 : bytes, blue = from < 3 ? 0 : 2 * bytes;

		if (to == 1) {
			out[0] = from < 3 ? in[0] : bytes == 1 ? gray_8(in) : gray_16(in);
			continue;
		}
		out[0] = in[0];
		out[1] = in[green];
		out[2] = in[blue];
		if (to == 4)
			out[3] = from % 2 ? 255 : in[(from - 1) * bytes];
	}
}

#define ROW_TO(from, bytes)                                                                                            \
	do {                                                                                                           \
		if (to == 1)                                                                                           \
			row(in, from, bytes, out, 1, pixels);                                                          \
		else if (to == 3)                                                                                      \
			row(in, from, bytes, out, 3, pixels);                                                          \
		else                                                                                                   \
			row(in, from, bytes, out, 4, pixels);                                                          \
	} while (0)

void
leat_png_row_plain(const uint8_t *in, size_t from, size_t bytes, uint8_t *out, size_t to, size_t pixels)
{
	switch (from * 2 + bytes) { /* one instance each */
	case 3:
		ROW_TO(1, 1);
		break;
	case 4:
		ROW_TO(1, 2);
		break;
	case 5:
		ROW_TO(2, 1);
		break;
	case 6:
		ROW_TO(2, 2);
		break;
	case 7:
		ROW_TO(3, 1);
		break;
	case 8:
		ROW_TO(3, 2);
		break;
	case 9:
		ROW_TO(4, 1);
		break;
	default:
		ROW_TO(4, 2);
	}
}

#if LEAT_X86
/* Conversions that only move bytes, four pixels at a time: `order` is the shuffle, `opaque` is ORed in for alpha. Reads
 * and writes whole vectors; bytes past the four pixels are overwritten by the next step. The last pixels are left to
 * the plain loop. */
LEAT_AVX2 static size_t
row_avx2(const uint8_t *in, size_t from, uint8_t *out, size_t to, size_t pixels)
{
	uint8_t orders[16], opaques[16] = {0};
	__m128i order, opaque;
	size_t i = 0;

	memset(orders, 0x80, sizeof(orders));
	for (size_t k = 0; k < 4; k++) {
		for (size_t c = 0; c < 3; c++)
			orders[k * to + c] = (uint8_t)(k * from + (from < 3 ? 0 : c));
		if (to == 4 && from % 2)
			opaques[k * 4 + 3] = 255;
		else if (to == 4)
			orders[k * 4 + 3] = (uint8_t)(k * from + from - 1);
	}
	order = _mm_loadu_si128((const __m128i *)orders);
	opaque = _mm_loadu_si128((const __m128i *)opaques);
	for (; (pixels - i) * from >= 16 && (pixels - i) * to >= 16; i += 4) {
		__m128i x = _mm_loadu_si128((const __m128i *)(in + i * from));

		_mm_storeu_si128((__m128i *)(out + i * to), _mm_or_si128(_mm_shuffle_epi8(x, order), opaque));
	}
	return i;
}
#endif

void
leat_png_row(const uint8_t *in, size_t from, size_t bytes, uint8_t *out, size_t to, size_t pixels)
{
	size_t done = 0;

#if LEAT_X86
	if (bytes == 1 && to >= 3 && leat_cpu_has_avx2())
		done = row_avx2(in, from, out, to, pixels);
#endif
	leat_png_row_plain(in + done * from * bytes, from, bytes, out + done * to, to, pixels - done);
}

void
leat_png_row_wide(const uint16_t *in, bool color, uint16_t *out, size_t to, size_t pixels)
{
	for (size_t i = 0; i < pixels; i++, in += 4, out += to) {
		if (to > 1 || !color) {
			memcpy(out, in, to * sizeof(*out));
			continue;
		}
		out[0] = (uint16_t)(((uint32_t)LEAT_PNG_RED * in[0] + (uint32_t)LEAT_PNG_GREEN * in[1] +
		                     (uint32_t)LEAT_PNG_BLUE * in[2] + 16384u) >>
		                    15);
	}
}

void
leat_png_unpack(const uint8_t *in, unsigned bits, uint8_t *out, size_t count)
{
	const unsigned per_byte = 8 / bits, mask = (1u << bits) - 1;

	if (bits == 8) {
		memcpy(out, in, count);
		return;
	}
	for (size_t i = 0; i < count; i++)
		out[i] = (uint8_t)((unsigned)in[i / per_byte] >> (8 - bits - i % per_byte * bits) & mask);
}

static inline bool
map_colors(const struct leat_png_colors *colors, const uint8_t *in, uint8_t *out, size_t to, size_t pixels)
{
	unsigned highest = 0;

	for (size_t i = 0; i < pixels; i++, out += to) {
		const uint8_t *color = colors->color[in[i]];

		highest = in[i] > highest ? in[i] : highest;
		memcpy(out, color, to);
	}
	return highest < colors->count;
}

bool
leat_png_map_colors(const struct leat_png_colors *colors, const uint8_t *in, uint8_t *out, size_t to, size_t pixels)
{
	if (to == 1)
		return map_colors(colors, in, out, 1, pixels);
	if (to == 3)
		return map_colors(colors, in, out, 3, pixels);
	return map_colors(colors, in, out, 4, pixels);
}
