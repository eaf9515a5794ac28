/* augment.h - the transforms of RandAugment and TrivialAugment, as torchvision applies them to PIL images
 *
 * Each transform has a magnitude: one of `bins` steps between no change and the maximum. Some also work in the opposite
 * direction, with a negative magnitude. Images are uint8 with 1 or 3 channels. */
#ifndef LEAT_IMAGE_AUGMENT_H
#define LEAT_IMAGE_AUGMENT_H

#include "format/sample.h"

enum leat_augment {
	LEAT_AUGMENT_IDENTITY,
	LEAT_AUGMENT_SHEAR_X, /* pixels to the left, per row below the first */
	LEAT_AUGMENT_SHEAR_Y,
	LEAT_AUGMENT_TRANSLATE_X, /* pixels to the right */
	LEAT_AUGMENT_TRANSLATE_Y, /* pixels down */
	LEAT_AUGMENT_ROTATE,      /* degrees counter-clockwise */
	LEAT_AUGMENT_BRIGHTNESS,  /* the factor of leat_adjust_brightness, ... is 1 + magnitude */
	LEAT_AUGMENT_SATURATION,
	LEAT_AUGMENT_CONTRAST,
	LEAT_AUGMENT_SHARPNESS,
	LEAT_AUGMENT_POSTERIZE, /* bits to keep */
	LEAT_AUGMENT_SOLARIZE,  /* threshold */
	LEAT_AUGMENT_AUTOCONTRAST,
	LEAT_AUGMENT_EQUALIZE,
	LEAT_AUGMENTS,
};

/* Maximum magnitudes. */
struct leat_augment_most {
	double shear, translate_x, translate_y, rotate, adjust;
	int posterize; /* bits to drop */
};

bool leat_augment_is_signed(enum leat_augment kind);
/* `bin` is 0 to bins - 1; at least 2 bins. */
double leat_augment_magnitude(enum leat_augment kind, const struct leat_augment_most *most, int64_t bin, int64_t bins);

/* `out` has the shape of `in`, or is `in`; transforms that move pixels then work on a copy in scratch. Pixels that come
 * from outside the image get `fill` in every channel. */
enum leat_status leat_augment(const struct leat_datum *in, const struct leat_datum *out, enum leat_augment kind,
                              double magnitude, uint8_t fill, struct leat_scratch *scratch, struct leat_err *err);
/* Scratch for an image of this shape, whatever the transform; 0 if a dimension is -1. In place: `out` is `in`. */
size_t leat_augment_scratch(const int64_t *shape, bool in_place);

#endif
