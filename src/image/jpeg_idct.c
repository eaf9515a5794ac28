/* jpeg_idct.c - coefficients become samples, by the fast integer DCT
 *
 * The transform of Arai, Agui and Nakajima on 16-bit numbers that wrap around, columns first, then rows; products are
 * cut to their upper bits. Each step is that of libjpeg-turbo's SIMD code for JDCT_IFAST, so that even files whose
 * coefficients are out of all bounds give the same samples.
 *
 * Any thread. */
#include "image/jpeg.h"

/* What the transform leaves out, with 24 bits behind the point: 1 for 0, sqrt(2) * cos(k * pi / 16) for k. */
static const int64_t scale[8] = {16777216, 23270667, 21920489, 19727919, 16777216, 13181774, 9079764, 4628823};

static const uint8_t zigzag[64] = {0,  1,  8,  16, 9,  2,  3,  10, 17, 24, 32, 25, 18, 11, 4,  5,
                                   12, 19, 26, 33, 40, 48, 41, 34, 27, 20, 13, 6,  7,  14, 21, 28,
                                   35, 42, 49, 56, 57, 50, 43, 36, 29, 22, 15, 23, 30, 37, 44, 51,
                                   58, 59, 52, 45, 38, 31, 39, 46, 53, 60, 61, 54, 47, 55, 62, 63};

void
leat_jpeg_quant_build(int16_t *quant, const uint8_t *a, const uint8_t *b)
{
	for (int i = 0; i < 64; i++) {
		int row = zigzag[i] / 8, column = zigzag[i] % 8;
		/* Rounded twice, as libjpeg does: to 14 bits, then to LEAT_JPEG_IN_BITS. */
		int64_t both = (scale[row] * scale[column] + ((int64_t)1 << 33)) >> 34;

		quant[16 * row + column] = (int16_t)((a[i] * both + (1 << 11)) >> 12);
		quant[16 * row + column + 8] = (int16_t)((b[i] * both + (1 << 11)) >> 12);
	}
}

static int16_t
wrap(int value)
{
	return (int16_t)value;
}

/* Only here 16 bits are too few for a product. */
static int16_t
times(int16_t value, int factor)
{
	return wrap(wrap(value * (1 << LEAT_JPEG_IN_BITS)) * (factor * (1 << (16 - 8 - LEAT_JPEG_IN_BITS))) >> 16);
}

static void
transform(const int16_t *in, int16_t *out, size_t step)
{
	int16_t even0 = wrap(in[0] + in[4 * step]), even1 = wrap(in[0] - in[4 * step]);
	int16_t even3 = wrap(in[2 * step] + in[6 * step]);
	int16_t even2 = wrap(times(wrap(in[2 * step] - in[6 * step]), LEAT_JPEG_1_414) - even3);
	int16_t a0 = wrap(even0 + even3), a3 = wrap(even0 - even3), a1 = wrap(even1 + even2), a2 = wrap(even1 - even2);
	int16_t z13 = wrap(in[5 * step] + in[3 * step]), z10 = wrap(in[5 * step] - in[3 * step]);
	int16_t z11 = wrap(in[step] + in[7 * step]), z12 = wrap(in[step] - in[7 * step]);
	int16_t b7 = wrap(z11 + z13), odd1 = times(wrap(z11 - z13), LEAT_JPEG_1_414),
		z5 = times(wrap(z10 + z12), LEAT_JPEG_1_847);
	int16_t b6 = wrap(times(z10, -LEAT_JPEG_1_613) - z10 + z5 - b7), b5 = wrap(odd1 - b6);
	int16_t b4 = wrap(times(z12, LEAT_JPEG_1_082) - z5 + b5);

	out[0] = wrap(a0 + b7);
	out[7 * step] = wrap(a0 - b7);
	out[step] = wrap(a1 + b6);
	out[6 * step] = wrap(a1 - b6);
	out[2 * step] = wrap(a2 + b5);
	out[5 * step] = wrap(a2 - b5);
	out[4 * step] = wrap(a3 + b4);
	out[3 * step] = wrap(a3 - b4);
}

static void
idct(const int16_t *block, const int16_t *quant, uint8_t *out, size_t stride)
{
	int16_t work[64];

	for (size_t row = 0; row < 8; row++)
		for (size_t column = 0; column < 8; column++)
			work[8 * row + column] = wrap(block[16 * row + column] * quant[16 * row + column]);
	for (size_t column = 0; column < 8; column++)
		transform(work + column, work + column, 8);
	for (size_t row = 0; row < 8; row++) {
		transform(work + 8 * row, work + 8 * row, 1);
		for (size_t column = 0; column < 8; column++) {
			int sample = (work[8 * row + column] >> LEAT_JPEG_OUT_BITS) + 128;

			out[row * stride + column] = (uint8_t)(sample < 0 ? 0 : sample > 255 ? 255 : sample);
		}
	}
}

void
leat_jpeg_idct_plain(const int16_t *pair, const int16_t *quant, uint8_t *a, size_t a_stride, uint8_t *b,
                     size_t b_stride)
{
	idct(pair, quant, a, a_stride);
	idct(pair + 8, quant + 8, b, b_stride);
}
