/* pixel.h - helpers of the kernels that move pixels; private to src/image */
#ifndef LEAT_IMAGE_PIXEL_H
#define LEAT_IMAGE_PIXEL_H

#include "image/affine.h"
#include "image/image.h"

static inline size_t
leat_pixel_bytes(const struct leat_datum *image)
{
	return (size_t)image->shape[2] * leat_dtype_size(image->dtype);
}

/* A pixel with `fill` in every channel, in the type of the image; clamped to 0..255 for u8. */
struct leat_pixel {
	_Alignas(float) unsigned char bytes[LEAT_MAX_CHANNELS * sizeof(float)];
};

static inline struct leat_pixel
leat_pixel_of(float fill, enum leat_dtype dtype)
{
	float all[LEAT_MAX_CHANNELS];
	struct leat_pixel pixel;

	for (int c = 0; c < LEAT_MAX_CHANNELS; c++)
		all[c] = fill;
	leat_cast(all, LEAT_F32, pixel.bytes, dtype, LEAT_MAX_CHANNELS);
	return pixel;
}

/* Rounds to the nearest byte, ties to even. x is in 0..255 but for rounding errors. Adding 2^23 drops the fraction. */
static inline uint8_t
leat_round_byte(float x)
{
	return (uint8_t)(int32_t)(x + 0x1p23f - 0x1p23f);
}

/* The index in 0..n-1 that index `at` of a line of n elements, extended by `border`, repeats; -1: the fill value. */
static inline int64_t
leat_border_index(int64_t at, int64_t n, enum leat_border border)
{
	int64_t period;

	if (at >= 0 && at < n)
		return at;
	switch (border) {
	case LEAT_BORDER_EDGE:
		return at < 0 ? 0 : n - 1;
	case LEAT_BORDER_REFLECT:
		period = n > 1 ? 2 * (n - 1) : 1;
		at = (at % period + period) % period;
		return at < n ? at : period - at;
	case LEAT_BORDER_SYMMETRIC:
		period = 2 * n;
		at = (at % period + period) % period;
		return at < n ? at : period - 1 - at;
	case LEAT_BORDER_CONSTANT:
		break;
	}
	return -1;
}

/* A row of `width` pixels, `pixel` bytes each (at most 32), mirrored left to right. `to` may be `from`. */
void leat_mirror_row(const void *from, void *to, size_t width, size_t pixel);

/* As leat_to_planar, of a row: the planes of `out` begin `plane` elements apart. `mirror`: left to right, in each. */
void leat_split_channels(const void *in, void *out, size_t plane, size_t pixels, size_t channels, size_t size,
                         bool mirror);

#endif
