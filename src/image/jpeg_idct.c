/* jpeg_idct.c - coefficients to samples, by the fast or the slow integer DCT
 *
 * The fast one is the transform of Arai, Agui and Nakajima in 16-bit integers that wrap around, with products truncated
 * to their upper bits. The slow one is that of Loeffler, Ligtenberg and Moschytz: sums before a product wrap around to
 * 16 bits too, but products and their sums have 32 bits and are rounded once per pass. Columns first, then rows.
 *
 * Every step matches libjpeg-turbo's SIMD code for JDCT_IFAST and JDCT_ISLOW, so even files with coefficients out of
 * range give the same samples.
 *
 * Any thread. */
#include "image/jpeg.h"

/* Scale factors that the fast transform leaves to dequantization, with 24 fraction bits: 1 for k = 0, else
 * sqrt(2) * cos(k * pi / 16). */
static const int64_t scale[8] = {16777216, 23270667, 21920489, 19727919, 16777216, 13181774, 9079764, 4628823};

static const uint8_t zigzag[64] = {0,  1,  8,  16, 9,  2,  3,  10, 17, 24, 32, 25, 18, 11, 4,  5,
                                   12, 19, 26, 33, 40, 48, 41, 34, 27, 20, 13, 6,  7,  14, 21, 28,
                                   35, 42, 49, 56, 57, 50, 43, 36, 29, 22, 15, 23, 30, 37, 44, 51,
                                   58, 59, 52, 45, 38, 31, 39, 46, 53, 60, 61, 54, 47, 55, 62, 63};

enum leat_jpeg_dct
leat_jpeg_dct_of(const struct leat_decoding *how)
{
	return how->mode == LEAT_DECODE_TORCH ? LEAT_JPEG_SLOW : LEAT_JPEG_FAST;
}

static int16_t
scaled(uint8_t quant, int row, int column)
{
	/* Rounded twice, as libjpeg does: to 14 bits, then to LEAT_JPEG_IN_BITS. */
	int64_t both = (scale[row] * scale[column] + ((int64_t)1 << 33)) >> 34;

	return (int16_t)((quant * both + (1 << 11)) >> 12);
}

void
leat_jpeg_quant_build(enum leat_jpeg_dct dct, int16_t *quant, const uint8_t *a, const uint8_t *b)
{
	for (int i = 0; i < 64; i++) {
		int row = zigzag[i] / 8, column = zigzag[i] % 8;

		quant[16 * row + column] = dct == LEAT_JPEG_SLOW ? a[i] : scaled(a[i], row, column);
		quant[16 * row + column + 8] = dct == LEAT_JPEG_SLOW ? b[i] : scaled(b[i], row, column);
	}
}

static void
dequantize(const int16_t *block, const int16_t *quant, int16_t *work)
{
	for (size_t row = 0; row < 8; row++)
		for (size_t column = 0; column < 8; column++)
			work[8 * row + column] = leat_jpeg_wrap(block[16 * row + column] * quant[16 * row + column]);
}

/* ---- fast ---- */

/* The upper bits of a product of more than 16 bits. */
static int16_t
times(int16_t value, int factor)
{
	return leat_jpeg_wrap(leat_jpeg_wrap(value * (1 << LEAT_JPEG_IN_BITS)) *
	                              (factor * (1 << (16 - 8 - LEAT_JPEG_IN_BITS))) >>
	                      16);
}

static void
transform_fast(const int16_t *in, int16_t *out, size_t step)
{
	int16_t even0 = leat_jpeg_wrap(in[0] + in[4 * step]), even1 = leat_jpeg_wrap(in[0] - in[4 * step]);
	int16_t even3 = leat_jpeg_wrap(in[2 * step] + in[6 * step]);
	int16_t even2 = leat_jpeg_wrap(times(leat_jpeg_wrap(in[2 * step] - in[6 * step]), LEAT_JPEG_1_414) - even3);
	int16_t a0 = leat_jpeg_wrap(even0 + even3), a3 = leat_jpeg_wrap(even0 - even3),
		a1 = leat_jpeg_wrap(even1 + even2), a2 = leat_jpeg_wrap(even1 - even2);
	int16_t z13 = leat_jpeg_wrap(in[5 * step] + in[3 * step]), z10 = leat_jpeg_wrap(in[5 * step] - in[3 * step]);
	int16_t z11 = leat_jpeg_wrap(in[step] + in[7 * step]), z12 = leat_jpeg_wrap(in[step] - in[7 * step]);
	int16_t b7 = leat_jpeg_wrap(z11 + z13), odd1 = times(leat_jpeg_wrap(z11 - z13), LEAT_JPEG_1_414),
		z5 = times(leat_jpeg_wrap(z10 + z12), LEAT_JPEG_1_847);
	int16_t b6 = leat_jpeg_wrap(times(z10, -LEAT_JPEG_1_613) - z10 + z5 - b7), b5 = leat_jpeg_wrap(odd1 - b6);
	int16_t b4 = leat_jpeg_wrap(times(z12, LEAT_JPEG_1_082) - z5 + b5);

	out[0] = leat_jpeg_wrap(a0 + b7);
	out[7 * step] = leat_jpeg_wrap(a0 - b7);
	out[step] = leat_jpeg_wrap(a1 + b6);
	out[6 * step] = leat_jpeg_wrap(a1 - b6);
	out[2 * step] = leat_jpeg_wrap(a2 + b5);
	out[5 * step] = leat_jpeg_wrap(a2 - b5);
	out[4 * step] = leat_jpeg_wrap(a3 + b4);
	out[3 * step] = leat_jpeg_wrap(a3 - b4);
}

static void
idct_fast(const int16_t *block, const int16_t *quant, uint8_t *out, size_t stride)
{
	int16_t work[64];

	dequantize(block, quant, work);
	for (size_t column = 0; column < 8; column++)
		transform_fast(work + column, work + column, 8);
	for (size_t row = 0; row < 8; row++) {
		transform_fast(work + 8 * row, work + 8 * row, 1);
		for (size_t column = 0; column < 8; column++)
			out[row * stride + column] = leat_jpeg_to_sample(work[8 * row + column] >> LEAT_JPEG_OUT_BITS);
	}
}

void
leat_jpeg_idct_fast(const int16_t *pair, const int16_t *quant, uint8_t *a, size_t a_stride, uint8_t *b, size_t b_stride)
{
	idct_fast(pair, quant, a, a_stride);
	idct_fast(pair + 8, quant + 8, b, b_stride);
}

/* ---- slow ---- */

/* No sum overflows: 16-bit values times factors that add up to at most 64570. */
void
leat_jpeg_transform_slow(const int16_t *in, int *out, size_t step, int shift)
{
	const int in1 = in[step], in2 = in[2 * step], in3 = in[3 * step];
	const int in5 = in[5 * step], in6 = in[6 * step], in7 = in[7 * step];
	const int even0 = leat_jpeg_wrap(in[0] + in[4 * step]) * (1 << LEAT_JPEG_FACTOR_BITS);
	const int even1 = leat_jpeg_wrap(in[0] - in[4 * step]) * (1 << LEAT_JPEG_FACTOR_BITS);
	const int even2 = in2 * LEAT_JPEG_0_541 + in6 * (LEAT_JPEG_0_541 - LEAT_JPEG_1_848);
	const int even3 = in2 * (LEAT_JPEG_0_541 + LEAT_JPEG_0_765) + in6 * LEAT_JPEG_0_541;
	const int sum73 = leat_jpeg_wrap(in7 + in3), sum51 = leat_jpeg_wrap(in5 + in1);
	const int z3 = sum73 * (LEAT_JPEG_1_175 - LEAT_JPEG_1_961) + sum51 * LEAT_JPEG_1_175;
	const int z4 = sum73 * LEAT_JPEG_1_175 + sum51 * (LEAT_JPEG_1_175 - LEAT_JPEG_0_390);
	const int odd0 = in7 * (LEAT_JPEG_0_298 - LEAT_JPEG_0_899) - in1 * LEAT_JPEG_0_899 + z3;
	const int odd1 = in5 * (LEAT_JPEG_2_053 - LEAT_JPEG_2_563) - in3 * LEAT_JPEG_2_563 + z4;
	const int odd2 = in3 * (LEAT_JPEG_3_073 - LEAT_JPEG_2_563) - in5 * LEAT_JPEG_2_563 + z3;
	const int odd3 = in1 * (LEAT_JPEG_1_501 - LEAT_JPEG_0_899) - in7 * LEAT_JPEG_0_899 + z4;
	const int even[4] = {even0 + even3, even1 + even2, even1 - even2, even0 - even3};
	const int odd[4] = {odd3, odd2, odd1, odd0};

	for (int i = 0; i < 4; i++) {
		out[i] = (even[i] + odd[i] + (1 << (shift - 1))) >> shift;
		out[7 - i] = (even[i] - odd[i] + (1 << (shift - 1))) >> shift;
	}
}

/* Coefficients in the first row only? */
static bool
is_one_row(const int16_t *block)
{
	for (size_t i = 16; i < LEAT_JPEG_PAIR; i++)
		if (i % 16 < 8 && block[i])
			return false;
	return true;
}

/* In place. Saturates, except with one row, where libjpeg-turbo takes a shortcut that wraps around. */
static void
columns_slow(int16_t *work, bool one_row)
{
	int out[8];

	for (size_t column = 0; column < 8; column++) {
		leat_jpeg_transform_slow(work + column, out, 8, LEAT_JPEG_FACTOR_BITS - LEAT_JPEG_PASS_BITS);
		for (size_t row = 0; row < 8; row++)
			work[8 * row + column] = one_row ? leat_jpeg_wrap(out[row]) : leat_jpeg_saturate(out[row]);
	}
}

static void
idct_slow(const int16_t *block, const int16_t *quant, uint8_t *out, size_t stride)
{
	int16_t work[64];
	int samples[8];

	dequantize(block, quant, work);
	columns_slow(work, is_one_row(block));
	for (size_t row = 0; row < 8; row++) {
		leat_jpeg_transform_slow(work + 8 * row, samples, 1,
		                         LEAT_JPEG_FACTOR_BITS + LEAT_JPEG_PASS_BITS + LEAT_JPEG_GAIN_BITS);
		for (size_t column = 0; column < 8; column++)
			out[row * stride + column] = leat_jpeg_to_sample(samples[column]);
	}
}

void
leat_jpeg_idct_slow(const int16_t *pair, const int16_t *quant, uint8_t *a, size_t a_stride, uint8_t *b, size_t b_stride)
{
	idct_slow(pair, quant, a, a_stride);
	idct_slow(pair + 8, quant + 8, b, b_stride);
}

/* ---- both ---- */

uint8_t
leat_jpeg_flat(enum leat_jpeg_dct dct, int dc, int quant)
{
	const int bits = LEAT_JPEG_PASS_BITS + LEAT_JPEG_GAIN_BITS;

	if (dct == LEAT_JPEG_FAST)
		return leat_jpeg_to_sample(leat_jpeg_wrap(dc * quant) >> LEAT_JPEG_OUT_BITS);
	return leat_jpeg_to_sample((leat_jpeg_wrap(dc * quant * (1 << LEAT_JPEG_PASS_BITS)) + (1 << (bits - 1))) >>
	                           bits);
}
