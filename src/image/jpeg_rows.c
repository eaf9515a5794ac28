/* jpeg_rows.c - upsample chroma and convert rows of samples to rows of pixels
 *
 * Smooth upsampling computes each new sample as 3/4 of the nearest sample plus 1/4 of the next one, in each direction;
 * ties are rounded up and down alternately. Color conversion is a fixed-point product with 16 fraction bits. Both match
 * libjpeg exactly.
 *
 * Any thread. */
#include "image/jpeg.h"

/* 1.402, 0.34414, 0.71414 and 1.772 with 16 fraction bits. */
enum { CR_R = 91881, CB_G = 22554, CR_G = 46802, CB_B = 116130, HALF = 1 << 15 };

static void
h2v1(const uint8_t *near, const uint8_t *far, uint8_t *out, size_t count, bool below)
{
	(void)far, (void)below;
	for (ptrdiff_t i = 0; i < (ptrdiff_t)count; i++) {
		out[2 * i] = (uint8_t)((3 * near[i] + near[i - 1] + 1) >> 2);
		out[2 * i + 1] = (uint8_t)((3 * near[i] + near[i + 1] + 2) >> 2);
	}
}

static void
h2v2(const uint8_t *near, const uint8_t *far, uint8_t *out, size_t count, bool below)
{
	int before = 3 * near[-1] + far[-1], here = 3 * near[0] + far[0];

	(void)below;
	for (size_t i = 0; i < count; i++) {
		int after = 3 * near[i + 1] + far[i + 1];

		out[2 * i] = (uint8_t)((3 * here + before + 8) >> 4);
		out[2 * i + 1] = (uint8_t)((3 * here + after + 7) >> 4);
		before = here;
		here = after;
	}
}

static void
h1v2(const uint8_t *near, const uint8_t *far, uint8_t *out, size_t count, bool below)
{
	for (size_t i = 0; i < count; i++)
		out[i] = (uint8_t)((3 * near[i] + far[i] + (below ? 2 : 1)) >> 2);
}

static uint8_t
clamp(int value)
{
	return (uint8_t)(value < 0 ? 0 : value > 255 ? 255 : value);
}

static inline void
to_colors(const uint8_t *y, const uint8_t *cb, const uint8_t *cr, uint8_t *out, size_t count, size_t channels)
{
	for (size_t i = 0; i < count; i++, out += channels) {
		int b = cb[i] - 128, r = cr[i] - 128;

		out[0] = clamp(y[i] + ((CR_R * r + HALF) >> 16));
		out[1] = clamp(y[i] + ((-CB_G * b - CR_G * r + HALF) >> 16));
		out[2] = clamp(y[i] + ((CB_B * b + HALF) >> 16));
		if (channels == 4)
			out[3] = 255;
	}
}

static void
rgb(const uint8_t *y, const uint8_t *cb, const uint8_t *cr, uint8_t *out, size_t count)
{
	to_colors(y, cb, cr, out, count, 3);
}

static void
rgba(const uint8_t *y, const uint8_t *cb, const uint8_t *cr, uint8_t *out, size_t count)
{
	to_colors(y, cb, cr, out, count, 4);
}

static void
gray_rgb(const uint8_t *y, const uint8_t *cb, const uint8_t *cr, uint8_t *out, size_t count)
{
	(void)cb, (void)cr;
	for (size_t i = 0; i < count; i++)
		out[3 * i] = out[3 * i + 1] = out[3 * i + 2] = y[i];
}

static void
gray_rgba(const uint8_t *y, const uint8_t *cb, const uint8_t *cr, uint8_t *out, size_t count)
{
	(void)cb, (void)cr;
	for (size_t i = 0; i < count; i++) {
		out[4 * i] = out[4 * i + 1] = out[4 * i + 2] = y[i];
		out[4 * i + 3] = 255;
	}
}

const struct leat_jpeg_kernels leat_jpeg_plain = {
	.read_mcu = leat_jpeg_read_mcu_plain,
	.idct = {leat_jpeg_idct_fast, leat_jpeg_idct_slow},
	.reduced = {{NULL, leat_jpeg_idct_1x2, NULL, NULL},
                    {leat_jpeg_idct_2x1, leat_jpeg_idct_2x2, leat_jpeg_idct_2x4, NULL},
                    {NULL, leat_jpeg_idct_4x2, leat_jpeg_idct_4x4, leat_jpeg_idct_4x8},
                    {NULL, NULL, leat_jpeg_idct_8x4, leat_jpeg_idct_slow}},
	.h2v1 = h2v1,
	.h2v2 = h2v2,
	.h1v2 = h1v2,
	.rgb = rgb,
	.rgba = rgba,
	.gray_rgb = gray_rgb,
	.gray_rgba = gray_rgba,
};
