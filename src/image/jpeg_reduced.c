/* jpeg_reduced.c - transform the lowest coefficients of a block to a smaller block of samples
 *
 * The first n of 8 coefficients of a row or column are, up to a scale factor, the coefficients of n samples that show
 * the same at a lower resolution; the others are detail that n samples cannot show. A transform of n points therefore
 * gives samples that stand for 8 / n full ones each, close to their mean. n is 1, 2, 4 or 8, chosen for each direction:
 * where chroma is subsampled, it is reduced less, and needs no upsampling.
 *
 * Fraction bits are those of the slow transform (jpeg_idct.c), whose even half is the 4-point transform. Sums before a
 * product wrap around to 16 bits; between the passes values saturate. Columns first, then rows.
 *
 * Any thread. */
#include "image/jpeg.h"

static int
scaled_down(int value, int shift)
{
	return (value + (1 << (shift - 1))) >> shift;
}

/* Transforms `points` values, `step` apart in `in`. */
static inline void
transform(const int16_t *in, int *out, size_t step, int points, int shift)
{
	const int one = 1 << LEAT_JPEG_FACTOR_BITS;

	if (points == 8) {
		leat_jpeg_transform_slow(in, out, step, shift);
	} else if (points == 4) {
		const int even0 = leat_jpeg_wrap(in[0] + in[2 * step]) * one,
			  even1 = leat_jpeg_wrap(in[0] - in[2 * step]) * one;
		const int odd0 = in[step] * (LEAT_JPEG_0_541 + LEAT_JPEG_0_765) + in[3 * step] * LEAT_JPEG_0_541;
		const int odd1 = in[step] * LEAT_JPEG_0_541 + in[3 * step] * (LEAT_JPEG_0_541 - LEAT_JPEG_1_848);

		out[0] = scaled_down(even0 + odd0, shift);
		out[1] = scaled_down(even1 + odd1, shift);
		out[2] = scaled_down(even1 - odd1, shift);
		out[3] = scaled_down(even0 - odd0, shift);
	} else if (points == 2) {
		out[0] = scaled_down(leat_jpeg_wrap(in[0] + in[step]) * one, shift);
		out[1] = scaled_down(leat_jpeg_wrap(in[0] - in[step]) * one, shift);
	} else {
		out[0] = scaled_down(in[0] * one, shift);
	}
}

static inline void
reduce(const int16_t *block, const int16_t *quant, uint8_t *out, size_t stride, size_t rows, size_t columns)
{
	int16_t work[64];
	int numbers[8];

	for (size_t column = 0; column < columns; column++) {
		int16_t in[8];

		for (size_t row = 0; row < rows; row++)
			in[row] = leat_jpeg_wrap(block[16 * row + column] * quant[16 * row + column]);
		transform(in, numbers, 1, (int)rows, LEAT_JPEG_FACTOR_BITS - LEAT_JPEG_PASS_BITS);
		for (size_t row = 0; row < rows; row++)
			work[8 * row + column] = leat_jpeg_saturate(numbers[row]);
	}
	for (size_t row = 0; row < rows; row++) {
		transform(work + 8 * row, numbers, 1, (int)columns,
		          LEAT_JPEG_FACTOR_BITS + LEAT_JPEG_PASS_BITS + LEAT_JPEG_GAIN_BITS);
		for (size_t column = 0; column < columns; column++)
			out[row * stride + column] = leat_jpeg_to_sample(numbers[column]);
	}
}

/* The same as reduce() with 2 x 2, which needs only sums; none of them overflows. */
static inline void
reduce_2x2(const int16_t *block, const int16_t *quant, uint8_t *out, size_t stride)
{
	const int a = leat_jpeg_wrap(block[0] * quant[0]), b = leat_jpeg_wrap(block[1] * quant[1]);
	const int c = leat_jpeg_wrap(block[16] * quant[16]), d = leat_jpeg_wrap(block[17] * quant[17]);

	out[0] = leat_jpeg_to_sample(scaled_down(a + c + (b + d), LEAT_JPEG_GAIN_BITS));
	out[1] = leat_jpeg_to_sample(scaled_down(a + c - (b + d), LEAT_JPEG_GAIN_BITS));
	out[stride] = leat_jpeg_to_sample(scaled_down(a - c + (b - d), LEAT_JPEG_GAIN_BITS));
	out[stride + 1] = leat_jpeg_to_sample(scaled_down(a - c - (b - d), LEAT_JPEG_GAIN_BITS));
}

void
leat_jpeg_idct_2x2(const int16_t *pair, const int16_t *quant, uint8_t *a, size_t a_stride, uint8_t *b, size_t b_stride)
{
	reduce_2x2(pair, quant, a, a_stride);
	reduce_2x2(pair + 8, quant + 8, b, b_stride);
}

#define REDUCED(rows, columns)                                                                                         \
	void leat_jpeg_idct_##rows##x##columns(const int16_t *pair, const int16_t *quant, uint8_t *a, size_t a_stride, \
	                                       uint8_t *b, size_t b_stride)                                            \
	{                                                                                                              \
		reduce(pair, quant, a, a_stride, rows, columns);                                                       \
		reduce(pair + 8, quant + 8, b, b_stride, rows, columns);                                               \
	}

REDUCED(1, 2)
REDUCED(2, 1)
REDUCED(2, 4)
REDUCED(4, 2)
REDUCED(4, 4)
REDUCED(4, 8)
REDUCED(8, 4)
