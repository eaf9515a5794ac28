/* augment.c - see augment.h
 *
 * Any thread. Scratch is given back before these return. */
#include "image/augment.h"

#include <math.h>
#include <string.h>

#include "image/color.h"
#include "image/image.h"
#include "image/scratch.h"

/* ---- magnitudes ---- */

bool
leat_augment_is_signed(enum leat_augment kind)
{
	return kind >= LEAT_AUGMENT_SHEAR_X && kind <= LEAT_AUGMENT_SHARPNESS;
}

/* In float, from the nearer end, rounded once: like torch.linspace compiled for AVX2. */
static double
between(double first, double last, int64_t bin, int64_t bins)
{
	float from = (float)first, to = (float)last, step = (to - from) / (float)(bins - 1);

	return (double)(bin < bins / 2 ? fmaf(step, (float)bin, from) : fmaf(-step, (float)(bins - bin - 1), to));
}

/* Ties to even. */
static double
bits_left(int most, int64_t bin, int64_t bins)
{
	float bins_per_bit = (float)((double)(bins - 1) / most);

	return (double)(8 - rintf((float)bin / bins_per_bit));
}

double
leat_augment_magnitude(enum leat_augment kind, const struct leat_augment_most *most, int64_t bin, int64_t bins)
{
	switch (kind) {
	case LEAT_AUGMENT_SHEAR_X:
	case LEAT_AUGMENT_SHEAR_Y:
		return between(0, most->shear, bin, bins);
	case LEAT_AUGMENT_TRANSLATE_X:
		return between(0, most->translate_x, bin, bins);
	case LEAT_AUGMENT_TRANSLATE_Y:
		return between(0, most->translate_y, bin, bins);
	case LEAT_AUGMENT_ROTATE:
		return between(0, most->rotate, bin, bins);
	case LEAT_AUGMENT_BRIGHTNESS:
	case LEAT_AUGMENT_SATURATION:
	case LEAT_AUGMENT_CONTRAST:
	case LEAT_AUGMENT_SHARPNESS:
		return between(0, most->adjust, bin, bins);
	case LEAT_AUGMENT_POSTERIZE:
		return bits_left(most->posterize, bin, bins);
	case LEAT_AUGMENT_SOLARIZE:
		return between(255, 0, bin, bins);
	default:
		return 0;
	}
}

/* ---- transforms ---- */

static bool
moves_pixels(enum leat_augment kind)
{
	return kind >= LEAT_AUGMENT_SHEAR_X && kind <= LEAT_AUGMENT_ROTATE;
}

/* Shears keep the top left corner in place. */
static struct leat_map
map_of(enum leat_augment kind, double magnitude, const struct leat_datum *image)
{
	struct leat_map map = {.xx = 1, .yy = 1};

	if (kind == LEAT_AUGMENT_SHEAR_X)
		map.xy = magnitude;
	else if (kind == LEAT_AUGMENT_SHEAR_Y)
		map.yx = magnitude;
	else if (kind == LEAT_AUGMENT_TRANSLATE_X)
		map.x0 = -trunc(magnitude);
	else if (kind == LEAT_AUGMENT_TRANSLATE_Y)
		map.y0 = -trunc(magnitude);
	else
		map = leat_map_rotation(magnitude, image->shape[0], image->shape[1]);
	return map;
}

static enum leat_status
move(const struct leat_datum *in, const struct leat_datum *out, const struct leat_map *map, uint8_t fill,
     struct leat_scratch *scratch, struct leat_err *err)
{
	size_t bytes = leat_datum_bytes(in), mark = scratch->used;
	struct leat_datum from = *in;

	if (in->data == out->data) {
		from.data = leat_scratch_alloc(scratch, bytes);
		if (!from.data)
			return leat_fail_image(err, "copying", scratch);
	}
	if (!scratch->counting) {
		if (from.data != in->data)
			memcpy(from.data, in->data, bytes);
		leat_warp_by(&from, out, map, fill);
	}
	scratch->used = mark;
	return LEAT_OK;
}

static void
change_color(const struct leat_datum *image, enum leat_augment kind, double magnitude, float factor)
{
	if (kind == LEAT_AUGMENT_BRIGHTNESS)
		leat_adjust_brightness(image, factor);
	else if (kind == LEAT_AUGMENT_SATURATION)
		leat_adjust_saturation(image, factor);
	else if (kind == LEAT_AUGMENT_CONTRAST)
		leat_adjust_contrast(image, factor);
	else if (kind == LEAT_AUGMENT_POSTERIZE)
		leat_posterize(image, (int)magnitude);
	else if (kind == LEAT_AUGMENT_SOLARIZE)
		leat_solarize(image, (float)magnitude);
	else if (kind == LEAT_AUGMENT_AUTOCONTRAST)
		leat_autocontrast(image);
	else if (kind == LEAT_AUGMENT_EQUALIZE)
		leat_equalize(image);
}

enum leat_status
leat_augment(const struct leat_datum *in, const struct leat_datum *out, enum leat_augment kind, double magnitude,
             uint8_t fill, struct leat_scratch *scratch, struct leat_err *err)
{
	const float factor = (float)(1 + magnitude);

	if (moves_pixels(kind)) {
		const struct leat_map map = map_of(kind, magnitude, in);

		return move(in, out, &map, fill, scratch, err);
	}
	if (!scratch->counting && in->data != out->data)
		memcpy(out->data, in->data, leat_datum_bytes(in));
	if (kind == LEAT_AUGMENT_SHARPNESS)
		return leat_adjust_sharpness(out, factor, scratch, err);
	if (!scratch->counting)
		change_color(out, kind, magnitude, factor);
	return LEAT_OK;
}

size_t
leat_augment_scratch(const int64_t *shape, bool in_place)
{
	const struct leat_datum in = {.dtype = LEAT_U8, .ndim = 3, .shape = {shape[0], shape[1], shape[2]}};
	struct leat_datum out = in;
	struct leat_scratch count;

	if (shape[0] < 0 || shape[1] < 0 || shape[2] < 0)
		return 0;
	if (!in_place)
		out.data = &out; /* any other address */
	leat_scratch_count(&count);
	for (int kind = 0; kind < LEAT_AUGMENTS; kind++)
		leat_augment(&in, &out, (enum leat_augment)kind, 0, 0, &count, NULL);
	return count.peak;
}
