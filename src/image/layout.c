/* layout.c - HWC <-> CHW
 *
 * Only the size of an element matters, not its type. With AVX2, three channels of 1 or 4 bytes are split and joined in
 * registers, 16 or 8 pixels at a time. Splitting can mirror a row on the way. Any thread. */
#include "image/plain.h"

#include <string.h>

#include "image/cpu.h"
#include "image/pixel.h"

/* Elements by the type of their size: one loop, in instances that the compiler can vectorize. */
#define TRANSPOSE(type)                                                                                                \
	do {                                                                                                           \
		const type *from = in;                                                                                 \
		type *to = out;                                                                                        \
                                                                                                                       \
		for (size_t r = 0; r < rows; r++)                                                                      \
			for (size_t c = 0; c < columns; c++)                                                           \
				to[c * stride + r] = from[r * columns + c];                                            \
	} while (0)

/* {rows, columns} to {columns, rows}; the rows of the result are `stride` elements apart. */
static void
transpose(const void *restrict in, void *restrict out, size_t rows, size_t columns, size_t stride, size_t size)
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
	transpose(in, out, pixels, channels, pixels, size);
}

void
leat_to_interleaved_plain(const void *in, void *out, size_t pixels, size_t channels, size_t size)
{
	transpose(in, out, channels, pixels, channels, size);
}

#if LEAT_X86
/* ---- bytes: 16 pixels are three vectors, interleaved or planar; each vector of the result takes bytes of all three
 * vectors of the input ---- */

/* Which byte of vector `from` becomes byte i of vector `to`, NONE: of another one. Byte k of channel c is byte
 * 3 * k + c of the 48 interleaved ones. */
enum { NONE = 0x80 };
#define IN_VECTOR(at) ((uint8_t)((at) >= 0 && (at) < 16 ? (at) : NONE))
#define PLANAR_FROM(i, to, from) IN_VECTOR(3 * (i) + (to)-16 * (from))
#define MIRRORED_FROM(i, to, from) PLANAR_FROM(15 - (i), to, from)
#define INTERLEAVED_FROM(i, to, from)                                                                                  \
	((uint8_t)((16 * (to) + (i) - (from)) % 3 == 0 ? (16 * (to) + (i) - (from)) / 3 : NONE))
#define VECTOR(F, to, from)                                                                                            \
	{                                                                                                              \
		F(0, to, from), F(1, to, from), F(2, to, from), F(3, to, from), F(4, to, from), F(5, to, from),        \
			F(6, to, from), F(7, to, from), F(8, to, from), F(9, to, from), F(10, to, from),               \
			F(11, to, from), F(12, to, from), F(13, to, from), F(14, to, from), F(15, to, from)            \
	}
#define ORDER(F)                                                                                                       \
	{                                                                                                              \
		{VECTOR(F, 0, 0), VECTOR(F, 0, 1), VECTOR(F, 0, 2)},                                                   \
			{VECTOR(F, 1, 0), VECTOR(F, 1, 1), VECTOR(F, 1, 2)},                                           \
		{                                                                                                      \
			VECTOR(F, 2, 0), VECTOR(F, 2, 1), VECTOR(F, 2, 2)                                              \
		}                                                                                                      \
	}

struct orders {
	uint8_t order[3][3][16];
};
static const struct orders planar_orders = {ORDER(PLANAR_FROM)}, mirrored_orders = {ORDER(MIRRORED_FROM)},
			   interleaved_orders = {ORDER(INTERLEAVED_FROM)};

LEAT_AVX2_INLINE __m128i
shuffled(const uint8_t orders[3][16], const __m128i *in)
{
	__m128i x = _mm_shuffle_epi8(in[0], _mm_loadu_si128((const __m128i *)orders[0]));
	__m128i y = _mm_shuffle_epi8(in[1], _mm_loadu_si128((const __m128i *)orders[1]));
	__m128i z = _mm_shuffle_epi8(in[2], _mm_loadu_si128((const __m128i *)orders[2]));

	return _mm_or_si128(_mm_or_si128(x, y), z);
}

/* The three vectors of 16 pixels are `in_step` and `out_step` bytes apart; the next 16 pixels begin `in_move` and
 * `out_move` bytes further on. Returns how many pixels are done, as all of these do. */
LEAT_AVX2_INLINE size_t
shuffle_bytes(const struct orders *orders, const uint8_t *in, size_t in_step, ptrdiff_t in_move, uint8_t *out,
              size_t out_step, ptrdiff_t out_move, size_t pixels)
{
	size_t done = 0;

	for (; done + 16 <= pixels; done += 16, in += in_move, out += out_move) {
		__m128i x[3];

		for (size_t v = 0; v < 3; v++)
			x[v] = _mm_loadu_si128((const __m128i *)(in + v * in_step));
		for (size_t v = 0; v < 3; v++)
			_mm_storeu_si128((__m128i *)(out + v * out_step), shuffled(orders->order[v], x));
	}
	return done;
}

LEAT_AVX2 static size_t
bytes_to_planar_avx2(const uint8_t *in, uint8_t *out, size_t plane, size_t pixels, bool mirror)
{
	if (mirror && pixels >= 16)
		return shuffle_bytes(&mirrored_orders, in, 16, 48, out + pixels - 16, plane, -16, pixels);
	return mirror ? 0 : shuffle_bytes(&planar_orders, in, 16, 48, out, plane, 16, pixels);
}

LEAT_AVX2 static size_t
bytes_to_interleaved_avx2(const uint8_t *in, uint8_t *out, size_t pixels)
{
	return shuffle_bytes(&interleaved_orders, in, pixels, 16, out, 16, 48, pixels);
}

/* ---- 4 bytes: each lane of a vector has a third of four pixels; elements are moved as floats, whatever they are ----
 */

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

/* Elements i and j of x, then k and l of y, in each lane. */
#define TAKE(x, i, j, y, k, l) _mm256_shuffle_ps(x, y, _MM_SHUFFLE(l, k, j, i))

LEAT_AVX2_INLINE size_t
split_words(const float *in, float *out, size_t plane, size_t pixels, bool mirror)
{
	const __m256i backwards = _mm256_setr_epi32(7, 6, 5, 4, 3, 2, 1, 0);
	size_t done = 0;

	for (; done + 8 <= pixels; done += 8, in += 24) {
		/* r g b r | g b r g | b r g b */
		__m256 x = load_halves(in, in + 12), y = load_halves(in + 4, in + 16), z = load_halves(in + 8, in + 20);
		__m256 red = TAKE(x, 0, 3, TAKE(y, 2, 2, z, 1, 1), 0, 2);
		__m256 green = TAKE(TAKE(x, 1, 1, y, 0, 0), 0, 2, TAKE(y, 3, 3, z, 2, 2), 0, 2);
		__m256 blue = TAKE(TAKE(x, 2, 2, y, 1, 1), 0, 2, z, 0, 3);
		float *to = mirror ? out + pixels - 8 - done : out + done;

		_mm256_storeu_ps(to, mirror ? _mm256_permutevar8x32_ps(red, backwards) : red);
		_mm256_storeu_ps(to + plane, mirror ? _mm256_permutevar8x32_ps(green, backwards) : green);
		_mm256_storeu_ps(to + 2 * plane, mirror ? _mm256_permutevar8x32_ps(blue, backwards) : blue);
	}
	return done;
}

LEAT_AVX2 static size_t
words_to_planar_avx2(const float *in, float *out, size_t plane, size_t pixels, bool mirror)
{
	return mirror ? split_words(in, out, plane, pixels, true) : split_words(in, out, plane, pixels, false);
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

#endif

static size_t
split_three_avx2(const void *in, void *out, size_t plane, size_t pixels, size_t size, bool mirror)
{
#if LEAT_X86
	if (size == 1)
		return bytes_to_planar_avx2(in, out, plane, pixels, mirror);
	if (size == 4)
		return words_to_planar_avx2(in, out, plane, pixels, mirror);
#endif
	(void)in, (void)out, (void)plane, (void)pixels, (void)size, (void)mirror;
	return 0;
}

static size_t
join_three_avx2(const void *in, void *out, size_t pixels, size_t size)
{
#if LEAT_X86
	if (size == 1)
		return bytes_to_interleaved_avx2(in, out, pixels);
	if (size == 4)
		return words_to_interleaved_avx2(in, out, pixels);
#endif
	(void)in, (void)out, (void)pixels, (void)size;
	return 0;
}

void
leat_split_channels(const void *in, void *out, size_t plane, size_t pixels, size_t channels, size_t size, bool mirror)
{
	size_t done = 0;

	if (channels == 3 && leat_cpu_has_avx2())
		done = split_three_avx2(in, out, plane, pixels, size, mirror);
	if (!done && !mirror) {
		transpose(in, out, pixels, channels, plane, size);
		return;
	}
	for (size_t i = done; i < pixels; i++) {
		const size_t to = mirror ? pixels - 1 - i : i;

		for (size_t c = 0; c < channels; c++)
			memcpy((uint8_t *)out + (c * plane + to) * size,
			       (const uint8_t *)in + (i * channels + c) * size, size);
	}
}

void
leat_to_planar(const void *in, void *out, size_t pixels, size_t channels, size_t size)
{
	leat_split_channels(in, out, pixels, pixels, channels, size, false);
}

void
leat_to_interleaved(const void *in, void *out, size_t pixels, size_t channels, size_t size)
{
	size_t done = 0;

	if (channels == 3 && leat_cpu_has_avx2())
		done = join_three_avx2(in, out, pixels, size);
	if (!done) {
		leat_to_interleaved_plain(in, out, pixels, channels, size);
		return;
	}
	for (size_t i = done; i < pixels; i++)
		for (size_t c = 0; c < channels; c++)
			memcpy((uint8_t *)out + (i * channels + c) * size,
			       (const uint8_t *)in + (c * pixels + i) * size, size);
}
