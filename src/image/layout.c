/* layout.c - HWC <-> CHW
 *
 * The element type matters by its size alone. With AVX2, three channels of 1 or 4 bytes are taken apart and put
 * together in registers, 16 or 8 pixels at a time. Any thread. */
#include "image/plain.h"

#include <string.h>

#include "image/cpu.h"

/* Elements by the type of their size: the one loop, in instances the compiler can vectorize. */
#define TRANSPOSE(type)                                                                                                \
	do {                                                                                                           \
		const type *from = in;                                                                                 \
		type *to = out;                                                                                        \
                                                                                                                       \
		for (size_t r = 0; r < rows; r++)                                                                      \
			for (size_t c = 0; c < columns; c++)                                                           \
				to[c * rows + r] = from[r * columns + c];                                              \
	} while (0)

/* {rows, columns} to {columns, rows}. */
static void
transpose(const void *restrict in, void *restrict out, size_t rows, size_t columns, size_t size)
{
	if (size == 1)
		TRANSPOSE(uint8_t);
	else if (size == 2)
		TRANSPOSE(uint16_t);
	else if (size == 4)
		TRANSPOSE(uint32_t);
	else
		TRANSPOSE(uint64_t);
}

void
leat_to_planar_plain(const void *in, void *out, size_t pixels, size_t channels, size_t size)
{
	transpose(in, out, pixels, channels, size);
}

void
leat_to_interleaved_plain(const void *in, void *out, size_t pixels, size_t channels, size_t size)
{
	transpose(in, out, channels, pixels, size);
}

#if LEAT_X86
/* ---- bytes: 48 of them, as three vectors, both ways; each vector of the result has a part in each of the others ----
 */

/* [result][part]: the order of bytes that makes the part. */
struct orders {
	uint8_t order[3][3][16];
};

/* Byte k of channel c is byte 3 * k + c of the 48. */
static void
set_orders(struct orders *planar, struct orders *interleaved)
{
	for (int channel = 0; channel < 3; channel++) {
		for (int vector = 0; vector < 3; vector++) {
			uint8_t *apart = planar->order[channel][vector],
				*together = interleaved->order[vector][channel];

			for (int i = 0; i < 16; i++) {
				int at = 3 * i + channel - 16 * vector, from = 16 * vector + i - channel;

				apart[i] = (uint8_t)(at >= 0 && at < 16 ? at : 0x80);
				together[i] = (uint8_t)(from >= 0 && from % 3 == 0 ? from / 3 : 0x80);
			}
		}
	}
}

LEAT_AVX2_INLINE __m128i
mixed(const uint8_t orders[3][16], const __m128i *in)
{
	__m128i x = _mm_shuffle_epi8(in[0], _mm_loadu_si128((const __m128i *)orders[0]));
	__m128i y = _mm_shuffle_epi8(in[1], _mm_loadu_si128((const __m128i *)orders[1]));
	__m128i z = _mm_shuffle_epi8(in[2], _mm_loadu_si128((const __m128i *)orders[2]));

	return _mm_or_si128(_mm_or_si128(x, y), z);
}

/* Vectors are `in_step` and `out_step` apart: 16 when interleaved, then `move` is 48 for each, or a plane, then 16. */
LEAT_AVX2_INLINE size_t
mix_bytes(const struct orders *orders, const uint8_t *in, size_t in_step, size_t in_move, uint8_t *out, size_t out_step,
          size_t out_move, size_t pixels)
{
	size_t done = 0;

	for (; done + 16 <= pixels; done += 16, in += in_move, out += out_move) {
		__m128i x[3];

		for (size_t v = 0; v < 3; v++)
			x[v] = _mm_loadu_si128((const __m128i *)(in + v * in_step));
		for (size_t v = 0; v < 3; v++)
			_mm_storeu_si128((__m128i *)(out + v * out_step), mixed(orders->order[v], x));
	}
	return done;
}

/* All of these return how many pixels they have done. */
LEAT_AVX2 static size_t
bytes_avx2(const uint8_t *in, uint8_t *out, size_t pixels, bool to_planar)
{
	struct orders planar, interleaved;

	set_orders(&planar, &interleaved);
	if (to_planar)
		return mix_bytes(&planar, in, 16, 48, out, pixels, 16, pixels);
	return mix_bytes(&interleaved, in, pixels, 16, out, 16, 48, pixels);
}

/* ---- 4 bytes: in each half of a vector four pixels' worth, a third of it; they are only moved, whatever they mean
 * ---- */

LEAT_AVX2_INLINE __m256
load_halves(const float *low, const float *high)
{
	return _mm256_insertf128_ps(_mm256_castps128_ps256(_mm_loadu_ps(low)), _mm_loadu_ps(high), 1);
}

LEAT_AVX2_INLINE void
store_halves(float *low, float *high, __m256 x)
{
	_mm_storeu_ps(low, _mm256_castps256_ps128(x));
	_mm_storeu_ps(high, _mm256_extractf128_ps(x, 1));
}

/* Two of x, then two of y. */
#define TAKE(x, i, j, y, k, l) _mm256_shuffle_ps(x, y, _MM_SHUFFLE(l, k, j, i))

LEAT_AVX2 static size_t
words_to_planar_avx2(const float *in, float *out, size_t pixels)
{
	size_t done = 0;

	for (; done + 8 <= pixels; done += 8, in += 24) {
		/* r g b r | g b r g | b r g b */
		__m256 x = load_halves(in, in + 12), y = load_halves(in + 4, in + 16), z = load_halves(in + 8, in + 20);
		__m256 red = TAKE(x, 0, 3, TAKE(y, 2, 2, z, 1, 1), 0, 2);
		__m256 green = TAKE(TAKE(x, 1, 1, y, 0, 0), 0, 2, TAKE(y, 3, 3, z, 2, 2), 0, 2);
		__m256 blue = TAKE(TAKE(x, 2, 2, y, 1, 1), 0, 2, z, 0, 3);

		_mm256_storeu_ps(out + done, red);
		_mm256_storeu_ps(out + pixels + done, green);
		_mm256_storeu_ps(out + 2 * pixels + done, blue);
	}
	return done;
}

LEAT_AVX2 static size_t
words_to_interleaved_avx2(const float *in, float *out, size_t pixels)
{
	size_t done = 0;

	for (; done + 8 <= pixels; done += 8, out += 24) {
		__m256 red = _mm256_loadu_ps(in + done), green = _mm256_loadu_ps(in + pixels + done);
		__m256 blue = _mm256_loadu_ps(in + 2 * pixels + done);

		store_halves(out, out + 12,
		             TAKE(TAKE(red, 0, 0, green, 0, 0), 0, 2, TAKE(blue, 0, 0, red, 1, 1), 0, 2));
		store_halves(out + 4, out + 16,
		             TAKE(TAKE(green, 1, 1, blue, 1, 1), 0, 2, TAKE(red, 2, 2, green, 2, 2), 0, 2));
		store_halves(out + 8, out + 20,
		             TAKE(TAKE(blue, 2, 2, red, 3, 3), 0, 2, TAKE(green, 3, 3, blue, 3, 3), 0, 2));
	}
	return done;
}

static size_t
three_channels_avx2(const void *in, void *out, size_t pixels, size_t size, bool to_planar)
{
	if (size == 1)
		return bytes_avx2(in, out, pixels, to_planar);
	if (size == 4)
		return to_planar ? words_to_planar_avx2(in, out, pixels) : words_to_interleaved_avx2(in, out, pixels);
	return 0;
}
#else
static size_t
three_channels_avx2(const void *in, void *out, size_t pixels, size_t size, bool to_planar)
{
	(void)in, (void)out, (void)pixels, (void)size, (void)to_planar;
	return 0;
}
#endif

/* Elements behind the pixels that were done. */
static void
finish(const uint8_t *in, uint8_t *out, size_t pixels, size_t done, size_t size, bool to_planar)
{
	for (size_t i = done; i < pixels; i++) {
		for (size_t c = 0; c < 3; c++) {
			size_t together = (3 * i + c) * size, apart = (c * pixels + i) * size;

			memcpy(out + (to_planar ? apart : together), in + (to_planar ? together : apart), size);
		}
	}
}

void
leat_to_planar(const void *in, void *out, size_t pixels, size_t channels, size_t size)
{
	size_t done = channels == 3 && leat_cpu_has_avx2() ? three_channels_avx2(in, out, pixels, size, true) : 0;

	if (done)
		finish(in, out, pixels, done, size, true);
	else
		leat_to_planar_plain(in, out, pixels, channels, size);
}

void
leat_to_interleaved(const void *in, void *out, size_t pixels, size_t channels, size_t size)
{
	size_t done = channels == 3 && leat_cpu_has_avx2() ? three_channels_avx2(in, out, pixels, size, false) : 0;

	if (done)
		finish(in, out, pixels, done, size, false);
	else
		leat_to_interleaved_plain(in, out, pixels, channels, size);
}
