/* blend.h - blend two pixels; private to src/image
 *
 * uint8 is rounded as in Pillow: computed in float, truncated, clamped. */
#ifndef LEAT_IMAGE_BLEND_H
#define LEAT_IMAGE_BLEND_H

#include <stdint.h>

static inline uint8_t
leat_gray_u8(const uint8_t *rgb)
{
	return (uint8_t)((19595u * rgb[0] + 38470u * rgb[1] + 7471u * rgb[2] + 0x8000u) >> 16);
}

static inline float
leat_gray_f32(const float *rgb)
{
	return 0.2989f * rgb[0] + 0.587f * rgb[1] + 0.114f * rgb[2];
}

/* Factor 0 gives `dull`, 1 gives `x`; more extrapolates. */
static inline uint8_t
leat_blend_u8(int dull, int x, float factor)
{
	float mixed = (float)dull + factor * (float)(x - dull);

	return mixed <= 0 ? 0 : mixed >= 255 ? 255 : (uint8_t)mixed;
}

static inline float
leat_blend_f32(float dull, float x, float factor)
{
	float mixed = factor * x + (1 - factor) * dull;

	return mixed < 0 ? 0 : mixed > 1 ? 1 : mixed;
}

#endif
