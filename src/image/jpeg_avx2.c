/* jpeg_avx2.c - IDCT, upsampling and color conversion with AVX2
 *
 * Returns the same bytes as jpeg_idct.c, jpeg_reduced.c and jpeg_rows.c, which define the results. Selected at run
 * time.
 *
 * Any thread. */
#include "image/jpeg.h"

#include <string.h>

#include "image/cpu.h"

#if LEAT_X86

/* ---- IDCT: one block in each 128-bit lane ---- */

LEAT_AVX2_INLINE __m256i
times(__m256i value, int factor)
{
	return _mm256_mulhi_epi16(_mm256_slli_epi16(value, LEAT_JPEG_IN_BITS),
	                          _mm256_set1_epi16((int16_t)(factor * (1 << (16 - 8 - LEAT_JPEG_IN_BITS)))));
}

LEAT_AVX2_INLINE void
transform_fast(__m256i v[8])
{
	__m256i even0 = _mm256_add_epi16(v[0], v[4]), even1 = _mm256_sub_epi16(v[0], v[4]);
	__m256i even3 = _mm256_add_epi16(v[2], v[6]);
	__m256i even2 = _mm256_sub_epi16(times(_mm256_sub_epi16(v[2], v[6]), LEAT_JPEG_1_414), even3);
	__m256i a0 = _mm256_add_epi16(even0, even3), a3 = _mm256_sub_epi16(even0, even3);
	__m256i a1 = _mm256_add_epi16(even1, even2), a2 = _mm256_sub_epi16(even1, even2);
	__m256i z13 = _mm256_add_epi16(v[5], v[3]), z10 = _mm256_sub_epi16(v[5], v[3]);
	__m256i z11 = _mm256_add_epi16(v[1], v[7]), z12 = _mm256_sub_epi16(v[1], v[7]);
	__m256i b7 = _mm256_add_epi16(z11, z13), odd1 = times(_mm256_sub_epi16(z11, z13), LEAT_JPEG_1_414);
	__m256i z5 = times(_mm256_add_epi16(z10, z12), LEAT_JPEG_1_847);
	__m256i b6 = _mm256_sub_epi16(_mm256_add_epi16(_mm256_sub_epi16(times(z10, -LEAT_JPEG_1_613), z10), z5), b7);
	__m256i b5 = _mm256_sub_epi16(odd1, b6);
	__m256i b4 = _mm256_add_epi16(_mm256_sub_epi16(times(z12, LEAT_JPEG_1_082), z5), b5);

	v[0] = _mm256_add_epi16(a0, b7);
	v[7] = _mm256_sub_epi16(a0, b7);
	v[1] = _mm256_add_epi16(a1, b6);
	v[6] = _mm256_sub_epi16(a1, b6);
	v[2] = _mm256_add_epi16(a2, b5);
	v[5] = _mm256_sub_epi16(a2, b5);
	v[4] = _mm256_add_epi16(a3, b4);
	v[3] = _mm256_sub_epi16(a3, b4);
}

LEAT_AVX2_INLINE void
transpose(__m256i v[8])
{
	__m256i a[8], b[8];

	for (int i = 0; i < 4; i++) {
		a[2 * i] = _mm256_unpacklo_epi16(v[2 * i], v[2 * i + 1]);
		a[2 * i + 1] = _mm256_unpackhi_epi16(v[2 * i], v[2 * i + 1]);
	}
	for (int i = 0; i < 2; i++) {
		b[4 * i] = _mm256_unpacklo_epi32(a[4 * i], a[4 * i + 2]);
		b[4 * i + 1] = _mm256_unpackhi_epi32(a[4 * i], a[4 * i + 2]);
		b[4 * i + 2] = _mm256_unpacklo_epi32(a[4 * i + 1], a[4 * i + 3]);
		b[4 * i + 3] = _mm256_unpackhi_epi32(a[4 * i + 1], a[4 * i + 3]);
	}
	for (int i = 0; i < 4; i++) {
		v[2 * i] = _mm256_unpacklo_epi64(b[i], b[i + 4]);
		v[2 * i + 1] = _mm256_unpackhi_epi64(b[i], b[i + 4]);
	}
}

LEAT_AVX2_INLINE void
store(__m256i two_rows, uint8_t *a, size_t a_stride, uint8_t *b, size_t b_stride)
{
	__m128i first = _mm256_castsi256_si128(two_rows), second = _mm256_extracti128_si256(two_rows, 1);

	_mm_storel_epi64((__m128i *)(void *)a, first);
	_mm_storeh_pd((double *)(void *)(a + a_stride), _mm_castsi128_pd(first));
	_mm_storel_epi64((__m128i *)(void *)b, second);
	_mm_storeh_pd((double *)(void *)(b + b_stride), _mm_castsi128_pd(second));
}

/* v[i] is column i of the samples: converts to bytes and transposes. */
LEAT_AVX2_INLINE void
store_columns(const __m256i v[8], uint8_t *a, size_t a_stride, uint8_t *b, size_t b_stride)
{
	__m256i bytes[4], lower, upper;

	for (int i = 0; i < 4; i++) {
		int column = i / 2 * 4 + i % 2;

		bytes[i] = _mm256_xor_si256(_mm256_packs_epi16(v[column], v[column + 2]), _mm256_set1_epi8(-128));
	}
	for (int i = 0; i < 4; i += 2) {
		lower = _mm256_unpacklo_epi8(bytes[i], bytes[i + 1]);
		upper = _mm256_unpackhi_epi8(bytes[i], bytes[i + 1]);
		bytes[i] = _mm256_unpacklo_epi16(lower, upper);
		bytes[i + 1] = _mm256_unpackhi_epi16(lower, upper);
	}
	for (int i = 0; i < 2; i++) {
		size_t row = 4 * (size_t)i;

		lower = _mm256_unpacklo_epi32(bytes[i], bytes[i + 2]);
		upper = _mm256_unpackhi_epi32(bytes[i], bytes[i + 2]);
		store(lower, a + row * a_stride, a_stride, b + row * b_stride, b_stride);
		store(upper, a + (row + 2) * a_stride, a_stride, b + (row + 2) * b_stride, b_stride);
	}
}

LEAT_AVX2 static void
idct_fast(const int16_t *pair, const int16_t *quant, uint8_t *a, size_t a_stride, uint8_t *b, size_t b_stride)
{
	const __m256i *from = (const __m256i *)(const void *)pair, *by = (const __m256i *)(const void *)quant;
	__m256i v[8];

	for (int i = 0; i < 8; i++)
		v[i] = _mm256_mullo_epi16(_mm256_load_si256(from + i), _mm256_load_si256(by + i));
	transform_fast(v);
	transpose(v);
	transform_fast(v);
	for (int i = 0; i < 8; i++)
		v[i] = _mm256_srai_epi16(v[i], LEAT_JPEG_OUT_BITS);
	store_columns(v, a, a_stride, b, b_stride);
}

/* 16 values of 32 bits, or 16 pairs of 16 bits, in the order of unpack and pack. */
struct wide {
	__m256i low, high;
};

LEAT_AVX2_INLINE struct wide
pair_up(__m256i a, __m256i b)
{
	return (struct wide){_mm256_unpacklo_epi16(a, b), _mm256_unpackhi_epi16(a, b)};
}

LEAT_AVX2_INLINE struct wide
add(struct wide a, struct wide b)
{
	return (struct wide){_mm256_add_epi32(a.low, b.low), _mm256_add_epi32(a.high, b.high)};
}

LEAT_AVX2_INLINE struct wide
subtract(struct wide a, struct wide b)
{
	return (struct wide){_mm256_sub_epi32(a.low, b.low), _mm256_sub_epi32(a.high, b.high)};
}

/* first * x + second * y of each pair. */
LEAT_AVX2_INLINE struct wide
products(struct wide pairs, int x, int y)
{
	const __m256i factors = _mm256_set1_epi32((int)((uint32_t)y << 16 | (uint16_t)x));

	return (struct wide){_mm256_madd_epi16(pairs.low, factors), _mm256_madd_epi16(pairs.high, factors)};
}

/* To LEAT_JPEG_FACTOR_BITS fraction bits, plus `half` for rounding. */
LEAT_AVX2_INLINE struct wide
widened(__m256i value, __m256i half)
{
	struct wide upper = pair_up(_mm256_setzero_si256(), value);

	upper.low = _mm256_srai_epi32(upper.low, 16 - LEAT_JPEG_FACTOR_BITS);
	upper.high = _mm256_srai_epi32(upper.high, 16 - LEAT_JPEG_FACTOR_BITS);
	return add(upper, (struct wide){half, half});
}

LEAT_AVX2_INLINE __m256i
narrowed(struct wide value, int shift)
{
	return _mm256_packs_epi32(_mm256_srai_epi32(value.low, shift), _mm256_srai_epi32(value.high, shift));
}

LEAT_AVX2_INLINE void
transform_slow(__m256i v[8], int shift)
{
	const __m256i half = _mm256_set1_epi32(1 << (shift - 1));
	struct wide in26 = pair_up(v[2], v[6]), in71 = pair_up(v[7], v[1]), in53 = pair_up(v[5], v[3]);
	struct wide sums = pair_up(_mm256_add_epi16(v[7], v[3]), _mm256_add_epi16(v[5], v[1]));
	struct wide even0 = widened(_mm256_add_epi16(v[0], v[4]), half);
	struct wide even1 = widened(_mm256_sub_epi16(v[0], v[4]), half);
	struct wide even2 = products(in26, LEAT_JPEG_0_541, LEAT_JPEG_0_541 - LEAT_JPEG_1_848);
	struct wide even3 = products(in26, LEAT_JPEG_0_541 + LEAT_JPEG_0_765, LEAT_JPEG_0_541);
	struct wide z3 = products(sums, LEAT_JPEG_1_175 - LEAT_JPEG_1_961, LEAT_JPEG_1_175);
	struct wide z4 = products(sums, LEAT_JPEG_1_175, LEAT_JPEG_1_175 - LEAT_JPEG_0_390);
	struct wide odd0 = add(products(in71, LEAT_JPEG_0_298 - LEAT_JPEG_0_899, -LEAT_JPEG_0_899), z3);
	struct wide odd1 = add(products(in53, LEAT_JPEG_2_053 - LEAT_JPEG_2_563, -LEAT_JPEG_2_563), z4);
	struct wide odd2 = add(products(in53, -LEAT_JPEG_2_563, LEAT_JPEG_3_073 - LEAT_JPEG_2_563), z3);
	struct wide odd3 = add(products(in71, -LEAT_JPEG_0_899, LEAT_JPEG_1_501 - LEAT_JPEG_0_899), z4);
	struct wide a0 = add(even0, even3), a1 = add(even1, even2);
	struct wide a2 = subtract(even1, even2), a3 = subtract(even0, even3);

	v[0] = narrowed(add(a0, odd3), shift);
	v[7] = narrowed(subtract(a0, odd3), shift);
	v[1] = narrowed(add(a1, odd2), shift);
	v[6] = narrowed(subtract(a1, odd2), shift);
	v[2] = narrowed(add(a2, odd1), shift);
	v[5] = narrowed(subtract(a2, odd1), shift);
	v[3] = narrowed(add(a3, odd0), shift);
	v[4] = narrowed(subtract(a3, odd0), shift);
}

/* Blocks with coefficients in the first row only wrap around instead of saturating; `rest` is the OR of other rows. */
LEAT_AVX2_INLINE void
columns_slow(__m256i v[8], __m256i rest)
{
	const __m256i row = _mm256_slli_epi16(v[0], LEAT_JPEG_PASS_BITS);
	const __m128i a = _mm256_castsi256_si128(rest), b = _mm256_extracti128_si256(rest, 1);
	const bool one_a = _mm_testz_si128(a, a), one_b = _mm_testz_si128(b, b);
	__m256i ones;

	transform_slow(v, LEAT_JPEG_FACTOR_BITS - LEAT_JPEG_PASS_BITS);
	if (!one_a && !one_b)
		return;
	ones = _mm256_set_m128i(_mm_set1_epi8(one_b ? -1 : 0), _mm_set1_epi8(one_a ? -1 : 0));
	for (int i = 0; i < 8; i++)
		v[i] = _mm256_blendv_epi8(v[i], row, ones);
}

LEAT_AVX2 static void
idct_slow(const int16_t *pair, const int16_t *quant, uint8_t *a, size_t a_stride, uint8_t *b, size_t b_stride)
{
	const __m256i *from = (const __m256i *)(const void *)pair, *by = (const __m256i *)(const void *)quant;
	__m256i v[8], rest = _mm256_setzero_si256();

	for (int i = 0; i < 8; i++) {
		__m256i row = _mm256_load_si256(from + i);

		if (i > 0)
			rest = _mm256_or_si256(rest, row);
		v[i] = _mm256_mullo_epi16(row, _mm256_load_si256(by + i));
	}
	columns_slow(v, rest);
	transpose(v);
	transform_slow(v, LEAT_JPEG_FACTOR_BITS + LEAT_JPEG_PASS_BITS + LEAT_JPEG_GAIN_BITS);
	store_columns(v, a, a_stride, b, b_stride);
}

/* As transform_slow, on the first `points` vectors. */
LEAT_AVX2_INLINE void
transform_few(__m256i v[8], int points, int shift)
{
	const __m256i half = _mm256_set1_epi32(1 << (shift - 1));

	if (points == 8) {
		transform_slow(v, shift);
	} else if (points == 4) {
		struct wide in13 = pair_up(v[1], v[3]);
		struct wide even0 = widened(_mm256_add_epi16(v[0], v[2]), half);
		struct wide even1 = widened(_mm256_sub_epi16(v[0], v[2]), half);
		struct wide odd0 = products(in13, LEAT_JPEG_0_541 + LEAT_JPEG_0_765, LEAT_JPEG_0_541);
		struct wide odd1 = products(in13, LEAT_JPEG_0_541, LEAT_JPEG_0_541 - LEAT_JPEG_1_848);

		v[0] = narrowed(add(even0, odd0), shift);
		v[1] = narrowed(add(even1, odd1), shift);
		v[2] = narrowed(subtract(even1, odd1), shift);
		v[3] = narrowed(subtract(even0, odd0), shift);
	} else {
		struct wide sum = widened(_mm256_add_epi16(v[0], v[1]), half);
		struct wide difference = widened(_mm256_sub_epi16(v[0], v[1]), half);

		v[0] = narrowed(sum, shift);
		v[1] = narrowed(difference, shift);
	}
}

LEAT_AVX2_INLINE void
store_few(__m128i bytes, uint8_t *out, size_t count)
{
	int64_t word = _mm_cvtsi128_si64(bytes);

	memcpy(out, &word, count);
}

/* Also computes some values that are not needed, where that is cheaper than not to. */
LEAT_AVX2_INLINE void
reduce(const int16_t *pair, const int16_t *quant, uint8_t *a, size_t a_stride, uint8_t *b, size_t b_stride, int rows,
       int columns)
{
	const __m256i *from = (const __m256i *)(const void *)pair, *by = (const __m256i *)(const void *)quant;
	__m256i v[8];

	for (int i = 0; i < 8; i++)
		v[i] = i < rows ? _mm256_mullo_epi16(_mm256_load_si256(from + i), _mm256_load_si256(by + i))
		                : _mm256_setzero_si256();
	transform_few(v, rows, LEAT_JPEG_FACTOR_BITS - LEAT_JPEG_PASS_BITS);
	transpose(v);
	transform_few(v, columns, LEAT_JPEG_FACTOR_BITS + LEAT_JPEG_PASS_BITS + LEAT_JPEG_GAIN_BITS);
	transpose(v);
	for (int i = 0; i < rows; i++, a += a_stride, b += b_stride) {
		__m256i bytes = _mm256_xor_si256(_mm256_packs_epi16(v[i], v[i]), _mm256_set1_epi8(-128));

		store_few(_mm256_castsi256_si128(bytes), a, (size_t)columns);
		store_few(_mm256_extracti128_si256(bytes, 1), b, (size_t)columns);
	}
}

#define REDUCED(rows, columns)                                                                                         \
	LEAT_AVX2 static void idct_##rows##x##columns(const int16_t *pair, const int16_t *quant, uint8_t *a,           \
	                                              size_t a_stride, uint8_t *b, size_t b_stride)                    \
	{                                                                                                              \
		reduce(pair, quant, a, a_stride, b, b_stride, rows, columns);                                          \
	}

REDUCED(2, 4)
REDUCED(4, 2)
REDUCED(4, 4)
REDUCED(4, 8)
REDUCED(8, 4)

/* ---- upsampling ---- */

/* 16 samples as 16-bit integers. */
LEAT_AVX2_INLINE __m256i
widen(const uint8_t *from)
{
	return _mm256_cvtepu8_epi16(_mm_loadu_si128((const __m128i *)(const void *)from));
}

LEAT_AVX2_INLINE __m256i
thrice(__m256i v)
{
	return _mm256_add_epi16(v, _mm256_add_epi16(v, v));
}

/* Interleaves the left and right samples, each 0..255 in 16 bits. */
LEAT_AVX2_INLINE void
store_alternating(__m256i left, __m256i right, uint8_t *out)
{
	_mm256_storeu_si256((__m256i *)(void *)out, _mm256_or_si256(left, _mm256_slli_epi16(right, 8)));
}

LEAT_AVX2 static void
h2v1(const uint8_t *near, const uint8_t *far, uint8_t *out, size_t count, bool below)
{
	(void)far, (void)below;
	for (size_t i = 0; i < count; i += 16) {
		__m256i here = thrice(widen(near + i));
		__m256i left = _mm256_add_epi16(here, _mm256_add_epi16(widen(near + i - 1), _mm256_set1_epi16(1)));
		__m256i right = _mm256_add_epi16(here, _mm256_add_epi16(widen(near + i + 1), _mm256_set1_epi16(2)));

		store_alternating(_mm256_srli_epi16(left, 2), _mm256_srli_epi16(right, 2), out + 2 * i);
	}
}

LEAT_AVX2 static void
h2v2(const uint8_t *near, const uint8_t *far, uint8_t *out, size_t count, bool below)
{
	(void)below;
	for (size_t i = 0; i < count; i += 16) {
		__m256i before = _mm256_add_epi16(thrice(widen(near + i - 1)), widen(far + i - 1));
		__m256i here = thrice(_mm256_add_epi16(thrice(widen(near + i)), widen(far + i)));
		__m256i after = _mm256_add_epi16(thrice(widen(near + i + 1)), widen(far + i + 1));
		__m256i left = _mm256_add_epi16(here, _mm256_add_epi16(before, _mm256_set1_epi16(8)));
		__m256i right = _mm256_add_epi16(here, _mm256_add_epi16(after, _mm256_set1_epi16(7)));

		store_alternating(_mm256_srli_epi16(left, 4), _mm256_srli_epi16(right, 4), out + 2 * i);
	}
}

LEAT_AVX2 static void
h1v2(const uint8_t *near, const uint8_t *far, uint8_t *out, size_t count, bool below)
{
	__m256i round = _mm256_set1_epi16(below ? 2 : 1);

	for (size_t i = 0; i < count; i += 16) {
		__m256i sum = _mm256_add_epi16(thrice(widen(near + i)), _mm256_add_epi16(widen(far + i), round));
		__m256i bytes = _mm256_srli_epi16(sum, 2);

		bytes = _mm256_permute4x64_epi64(_mm256_packus_epi16(bytes, bytes), 0x08);
		_mm_storeu_si128((__m128i *)(void *)(out + i), _mm256_castsi256_si128(bytes));
	}
}

/* ---- colors ---- */

struct colors {
	__m256i r, g, b; /* 32 pixels, in order */
};

/* (v * factor + half) >> 16. */
LEAT_AVX2_INLINE __m256i
times_rounded(__m256i v, int factor)
{
	__m256i twice = _mm256_mulhi_epi16(_mm256_add_epi16(v, v), _mm256_set1_epi16((int16_t)factor));

	return _mm256_srai_epi16(_mm256_add_epi16(twice, _mm256_set1_epi16(1)), 1);
}

/* What is added to luma, for 16 pixels with chroma of -128..127. The factors of jpeg_rows.c exceed 16 bits, so their
 * integer parts are added separately. */
LEAT_AVX2_INLINE struct colors
color_parts(__m256i cb, __m256i cr)
{
	const __m256i weights = _mm256_set1_epi32((int)((uint32_t)(65536 - 46802) << 16 | (uint16_t)-22554));
	const __m256i half = _mm256_set1_epi32(1 << 15);
	__m256i low = _mm256_madd_epi16(_mm256_unpacklo_epi16(cb, cr), weights);
	__m256i high = _mm256_madd_epi16(_mm256_unpackhi_epi16(cb, cr), weights);
	__m256i both = _mm256_packs_epi32(_mm256_srai_epi32(_mm256_add_epi32(low, half), 16),
	                                  _mm256_srai_epi32(_mm256_add_epi32(high, half), 16));

	return (struct colors){
		.r = _mm256_add_epi16(cr, times_rounded(cr, 91881 - 65536)),
		.g = _mm256_sub_epi16(both, cr),
		.b = _mm256_add_epi16(_mm256_add_epi16(cb, cb), times_rounded(cb, 116130 - 2 * 65536)),
	};
}

LEAT_AVX2_INLINE __m256i
add_luma(__m256i even_y, __m256i odd_y, __m256i even, __m256i odd)
{
	return _mm256_packus_epi16(_mm256_add_epi16(even_y, even), _mm256_add_epi16(odd_y, odd));
}

/* Unpack and pack both work within 128-bit lanes, so the order is kept. */
LEAT_AVX2_INLINE struct colors
load_colors(const uint8_t *y, const uint8_t *cb, const uint8_t *cr)
{
	const __m256i zero = _mm256_setzero_si256(), middle = _mm256_set1_epi16(128);
	__m256i luma = _mm256_loadu_si256((const __m256i *)(const void *)y);
	__m256i blue = _mm256_loadu_si256((const __m256i *)(const void *)cb);
	__m256i red = _mm256_loadu_si256((const __m256i *)(const void *)cr);
	__m256i low_y = _mm256_unpacklo_epi8(luma, zero), high_y = _mm256_unpackhi_epi8(luma, zero);
	struct colors low = color_parts(_mm256_sub_epi16(_mm256_unpacklo_epi8(blue, zero), middle),
	                                _mm256_sub_epi16(_mm256_unpacklo_epi8(red, zero), middle));
	struct colors high = color_parts(_mm256_sub_epi16(_mm256_unpackhi_epi8(blue, zero), middle),
	                                 _mm256_sub_epi16(_mm256_unpackhi_epi8(red, zero), middle));

	return (struct colors){
		.r = add_luma(low_y, high_y, low.r, high.r),
		.g = add_luma(low_y, high_y, low.g, high.g),
		.b = add_luma(low_y, high_y, low.b, high.b),
	};
}

/* Shuffle masks for r0 g0 b0 r1 g1 b1 ...: which bytes come from color c; -1: from another one. */
#define FROM(i, c) ((char)(((i) - (c)) % 3 == 0 ? ((i) - (c)) / 3 : -1))
#define MASK(n, c)                                                                                                     \
	_mm256_broadcastsi128_si256(_mm_setr_epi8(FROM(n, c), FROM(n + 1, c), FROM(n + 2, c), FROM(n + 3, c),          \
	                                          FROM(n + 4, c), FROM(n + 5, c), FROM(n + 6, c), FROM(n + 7, c),      \
	                                          FROM(n + 8, c), FROM(n + 9, c), FROM(n + 10, c), FROM(n + 11, c),    \
	                                          FROM(n + 12, c), FROM(n + 13, c), FROM(n + 14, c), FROM(n + 15, c)))
#define THIRD(v, n)                                                                                                    \
	_mm256_or_si256(                                                                                               \
		_mm256_or_si256(_mm256_shuffle_epi8((v).r, MASK(n, 0)), _mm256_shuffle_epi8((v).g, MASK(n, 1))),       \
		_mm256_shuffle_epi8((v).b, MASK(n, 2)))

LEAT_AVX2_INLINE void
store_rgb(struct colors v, uint8_t *out)
{
	__m256i a = THIRD(v, 0), b = THIRD(v, 16), c = THIRD(v, 32);
	__m256i *to = (__m256i *)(void *)out;

	_mm256_storeu_si256(to, _mm256_permute2x128_si256(a, b, 0x20));
	_mm256_storeu_si256(to + 1, _mm256_permute2x128_si256(c, a, 0x30));
	_mm256_storeu_si256(to + 2, _mm256_permute2x128_si256(b, c, 0x31));
}

LEAT_AVX2_INLINE void
store_rgba(struct colors v, uint8_t *out)
{
	const __m256i opaque = _mm256_set1_epi8(-1);
	__m256i rg[2] = {_mm256_unpacklo_epi8(v.r, v.g), _mm256_unpackhi_epi8(v.r, v.g)};
	__m256i ba[2] = {_mm256_unpacklo_epi8(v.b, opaque), _mm256_unpackhi_epi8(v.b, opaque)};
	__m128i *to = (__m128i *)(void *)out;

	for (int i = 0; i < 2; i++) {
		__m256i low = _mm256_unpacklo_epi16(rg[i], ba[i]), high = _mm256_unpackhi_epi16(rg[i], ba[i]);

		_mm_storeu_si128(to + 2 * i, _mm256_castsi256_si128(low));
		_mm_storeu_si128(to + 2 * i + 1, _mm256_castsi256_si128(high));
		_mm_storeu_si128(to + 2 * i + 4, _mm256_extracti128_si256(low, 1));
		_mm_storeu_si128(to + 2 * i + 5, _mm256_extracti128_si256(high, 1));
	}
}

LEAT_AVX2_INLINE void
store_colors(struct colors v, uint8_t *out, size_t channels)
{
	if (channels == 3)
		store_rgb(v, out);
	else
		store_rgba(v, out);
}

/* The last 32 pixels may overlap the ones before; a row of less than 32 is made in `last` and copied. */
LEAT_AVX2_INLINE void
to_colors(const uint8_t *y, const uint8_t *cb, const uint8_t *cr, uint8_t *out, size_t count, size_t channels)
{
	uint8_t last[4 * 32];

	if (count < 32) {
		store_colors(load_colors(y, cb, cr), last, channels);
		memcpy(out, last, count * channels);
		return;
	}
	for (size_t i = 0, next = 0; next < count; next = i + 32) {
		i = next + 32 > count ? count - 32 : next;
		store_colors(load_colors(y + i, cb + i, cr + i), out + i * channels, channels);
	}
}

LEAT_AVX2_INLINE void
to_grays(const uint8_t *y, uint8_t *out, size_t count, size_t channels)
{
	uint8_t last[4 * 32];

	for (;; count -= 32, y += 32, out += 32 * channels) {
		__m256i gray = _mm256_loadu_si256((const __m256i *)(const void *)y);

		store_colors((struct colors){gray, gray, gray}, count < 32 ? last : out, channels);
		if (count <= 32)
			break;
	}
	if (count < 32)
		memcpy(out, last, count * channels);
}

LEAT_AVX2 static void
rgb(const uint8_t *y, const uint8_t *cb, const uint8_t *cr, uint8_t *out, size_t count)
{
	to_colors(y, cb, cr, out, count, 3);
}

LEAT_AVX2 static void
rgba(const uint8_t *y, const uint8_t *cb, const uint8_t *cr, uint8_t *out, size_t count)
{
	to_colors(y, cb, cr, out, count, 4);
}

LEAT_AVX2 static void
gray_rgb(const uint8_t *y, const uint8_t *cb, const uint8_t *cr, uint8_t *out, size_t count)
{
	(void)cb, (void)cr;
	to_grays(y, out, count, 3);
}

LEAT_AVX2 static void
gray_rgba(const uint8_t *y, const uint8_t *cb, const uint8_t *cr, uint8_t *out, size_t count)
{
	(void)cb, (void)cr;
	to_grays(y, out, count, 4);
}

static const struct leat_jpeg_kernels kernels = {
	.read_mcu = leat_jpeg_read_mcu_bmi2,
	.idct = {idct_fast, idct_slow},
	.reduced = {{NULL, leat_jpeg_idct_1x2, NULL, NULL},
                    {leat_jpeg_idct_2x1, leat_jpeg_idct_2x2, idct_2x4, NULL},
                    {NULL, idct_4x2, idct_4x4, idct_4x8},
                    {NULL, NULL, idct_8x4, idct_slow}},
	.h2v1 = h2v1,
	.h2v2 = h2v2,
	.h1v2 = h1v2,
	.rgb = rgb,
	.rgba = rgba,
	.gray_rgb = gray_rgb,
	.gray_rgba = gray_rgba,
};

const struct leat_jpeg_kernels *
leat_jpeg_fastest(void)
{
	if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2"))
		return &kernels;
	return &leat_jpeg_plain;
}

#else

const struct leat_jpeg_kernels *
leat_jpeg_fastest(void)
{
	return &leat_jpeg_plain;
}

#endif
