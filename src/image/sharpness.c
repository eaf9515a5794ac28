/* sharpness.c - blend an image with a smoothed copy of itself
 *
 * Smoothing is a weighted mean of a pixel (5) and its eight neighbors (1 each). It works in place, with copies of the
 * original rows where needed. Any thread. */
#include "image/color.h"

#include <string.h>

#include "image/blend.h"
#include "image/scratch.h"

enum { WEIGHTS = 13 };

/* Rounded to nearest; 13 is odd, so there are no ties. */
static inline int
mean_u8(int sum)
{
	return (2 * sum + WEIGHTS) / (2 * WEIGHTS);
}

static inline float
mean_f32(float sum)
{
	return sum / WEIGHTS;
}

/* `row` is between `above` and `below`; `was` is a copy of it. Neighbors in a row are `c` elements apart. */
#define SHARPEN_ROW(type, sum_type, mean, blend)                                                                       \
	do {                                                                                                           \
		const type *a = above, *w = was, *b = below;                                                           \
		type *x = row;                                                                                         \
                                                                                                                       \
		for (size_t i = c; i + c < count; i++) {                                                               \
			sum_type sum = (sum_type)(a[i - c] + a[i] + a[i + c] + w[i - c] + 5 * w[i] + w[i + c] +        \
			                          b[i - c] + b[i] + b[i + c]);                                         \
                                                                                                                       \
			x[i] = blend(mean(sum), w[i], factor);                                                         \
		}                                                                                                      \
	} while (0)

static void
sharpen_row(const void *above, const void *was, const void *below, void *row, enum leat_dtype dtype, size_t count,
            size_t c, float factor)
{
	if (dtype == LEAT_U8)
		SHARPEN_ROW(uint8_t, int, mean_u8, leat_blend_u8);
	else
		SHARPEN_ROW(float, float, mean_f32, leat_blend_f32);
}

static void
sharpen(const struct leat_datum *image, float factor, unsigned char *above, unsigned char *was, size_t row_bytes)
{
	size_t height = (size_t)image->shape[0], channels = (size_t)image->shape[2];
	size_t count = (size_t)image->shape[1] * channels;
	unsigned char *row = (unsigned char *)image->data + row_bytes;

	memcpy(above, image->data, row_bytes);
	for (size_t y = 1; y + 1 < height; y++, row += row_bytes) {
		unsigned char *kept = above;

		memcpy(was, row, row_bytes);
		sharpen_row(above, was, row + row_bytes, row, image->dtype, count, channels, factor);
		above = was;
		was = kept;
	}
}

enum leat_status
leat_adjust_sharpness(const struct leat_datum *image, float factor, struct leat_scratch *scratch, struct leat_err *err)
{
	size_t bytes = (size_t)image->shape[1] * (size_t)image->shape[2] * leat_dtype_size(image->dtype);
	size_t mark = scratch->used;
	unsigned char *above = leat_scratch_alloc(scratch, bytes), *was = leat_scratch_alloc(scratch, bytes);
	enum leat_status status = LEAT_OK;

	if (!above || !was)
		status = leat_fail_image(err, "sharpening", scratch);
	else if (!scratch->counting)
		sharpen(image, factor, above, was, bytes);
	scratch->used = mark;
	return status;
}

size_t
leat_adjust_sharpness_scratch(const int64_t *shape, enum leat_dtype dtype)
{
	const struct leat_datum image = {.dtype = dtype, .ndim = 3, .shape = {shape[0], shape[1], shape[2]}};
	struct leat_scratch count;

	if (shape[0] < 0 || shape[1] < 0 || shape[2] < 0)
		return 0;
	leat_scratch_count(&count);
	leat_adjust_sharpness(&image, 1, &count, NULL);
	return count.peak;
}
