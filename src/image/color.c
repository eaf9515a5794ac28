/* color.c - gray, brightness, contrast, saturation
 *
 * Pure functions of their arguments: any thread. */
#include "image/color.h"

#include "image/blend.h"

static size_t
pixels_of(const struct leat_datum *image)
{
	return (size_t)image->shape[0] * (size_t)image->shape[1];
}

/* ---- gray ---- */

/* Works in place: reads a pixel before it writes it. */
#define GRAY(type, gray)                                                                                               \
	do {                                                                                                           \
		const type *x = in->data;                                                                              \
		type *to = out->data;                                                                                  \
                                                                                                                       \
		for (size_t i = 0; i < pixels; i++) {                                                                  \
			type y = from == 3 ? gray(x + 3 * i) : x[i];                                                   \
                                                                                                                       \
			if (channels == 1)                                                                             \
				to[i] = y;                                                                             \
			else                                                                                           \
				to[3 * i] = to[3 * i + 1] = to[3 * i + 2] = y;                                         \
		}                                                                                                      \
	} while (0)

void
leat_grayscale(const struct leat_datum *in, const struct leat_datum *out)
{
	size_t pixels = pixels_of(in);
	int64_t from = in->shape[2], channels = out->shape[2];

	if (in->dtype == LEAT_U8)
		GRAY(uint8_t, leat_gray_u8);
	else
		GRAY(float, leat_gray_f32);
}

/* ---- brightness and contrast: blend with one value ---- */

static void
blend_with_value_u8(const struct leat_datum *image, int value, float factor)
{
	size_t count = (size_t)leat_datum_elements(image);
	uint8_t table[256], *x = image->data;

	for (int i = 0; i < 256; i++)
		table[i] = leat_blend_u8(value, i, factor);
	for (size_t i = 0; i < count; i++)
		x[i] = table[x[i]];
}

static void
blend_with_value_f32(const struct leat_datum *image, float value, float factor)
{
	size_t count = (size_t)leat_datum_elements(image);
	float *x = image->data;

	for (size_t i = 0; i < count; i++)
		x[i] = leat_blend_f32(value, x[i], factor);
}

void
leat_adjust_brightness(const struct leat_datum *image, float factor)
{
	if (image->dtype == LEAT_U8)
		blend_with_value_u8(image, 0, factor);
	else
		blend_with_value_f32(image, 0, factor);
}

/* Rounded half up. */
static int
mean_gray_u8(const struct leat_datum *image)
{
	const uint8_t *x = image->data;
	uint64_t pixels = pixels_of(image), sum = 0;

	for (size_t i = 0; i < pixels; i++)
		sum += image->shape[2] == 3 ? leat_gray_u8(x + 3 * i) : x[i];
	return (int)((2 * sum + pixels) / (2 * pixels));
}

static float
mean_gray_f32(const struct leat_datum *image)
{
	const float *x = image->data;
	size_t pixels = pixels_of(image);
	double sum = 0;

	for (size_t i = 0; i < pixels; i++)
		sum += (double)(image->shape[2] == 3 ? leat_gray_f32(x + 3 * i) : x[i]);
	return (float)(sum / (double)pixels);
}

void
leat_adjust_contrast(const struct leat_datum *image, float factor)
{
	if (image->dtype == LEAT_U8)
		blend_with_value_u8(image, mean_gray_u8(image), factor);
	else
		blend_with_value_f32(image, mean_gray_f32(image), factor);
}

/* ---- saturation: blend with gray ---- */

#define SATURATE(type, gray, blend)                                                                                    \
	do {                                                                                                           \
		type *x = image->data;                                                                                 \
                                                                                                                       \
		for (size_t i = 0; i < pixels; i++, x += 3) {                                                          \
			type y = gray(x);                                                                              \
                                                                                                                       \
			for (int c = 0; c < 3; c++)                                                                    \
				x[c] = blend(y, x[c], factor);                                                         \
		}                                                                                                      \
	} while (0)

void
leat_adjust_saturation(const struct leat_datum *image, float factor)
{
	size_t pixels = pixels_of(image);

	if (image->shape[2] != 3)
		return;
	if (image->dtype == LEAT_U8)
		SATURATE(uint8_t, leat_gray_u8, leat_blend_u8);
	else
		SATURATE(float, leat_gray_f32, leat_blend_f32);
}
