/* augment.h - the changes that RandAugment and TrivialAugment choose from, as torchvision makes them of PIL images
 *
 * Each has a magnitude, which is one of `bins` between none and its most; for some of them the opposite
 * exists too, with a negative magnitude. Images are uint8 with 1 or 3 channels. */
#ifndef LEAT_IMAGE_AUGMENT_H
#define LEAT_IMAGE_AUGMENT_H

#include "format/sample.h"

enum leat_augment {
	LEAT_AUGMENT_IDENTITY,
	LEAT_AUGMENT_SHEAR_X, /* pixels a row moves to the left, per row below the first */
	LEAT_AUGMENT_SHEAR_Y,
	LEAT_AUGMENT_TRANSLATE_X, /* pixels to the right */
	LEAT_AUGMENT_TRANSLATE_Y, /* pixels down */
	LEAT_AUGMENT_ROTATE,      /* degrees counter-clockwise */
	LEAT_AUGMENT_BRIGHTNESS,  /* 1 + magnitude is the factor of leat_adjust_... */
	LEAT_AUGMENT_SATURATION,
	LEAT_AUGMENT_CONTRAST,
	LEAT_AUGMENT_SHARPNESS,
	LEAT_AUGMENT_POSTERIZE, /* bits that stay */
	LEAT_AUGMENT_SOLARIZE,  /* threshold */
	LEAT_AUGMENT_AUTOCONTRAST,
	LEAT_AUGMENT_EQUALIZE,
	LEAT_AUGMENTS,
};

/* The largest magnitudes. */
struct leat_augment_most {
	double shear, translate_x, translate_y, rotate, adjust;
	int posterize; /* bits that go */
};

bool leat_augment_is_signed(enum leat_augment kind);
/* Bin 0 to bins - 1; there are at least 2. */
double leat_augment_magnitude(enum leat_augment kind, const struct leat_augment_most *most, int64_t bin, int64_t bins);

/* `out` has the shape of `in`, or is `in`; then what moves pixels takes a copy from scratch. Places that
 * no pixel covers get `fill` in every channel. */
enum leat_status leat_augment(const struct leat_datum *in, const struct leat_datum *out, enum leat_augment kind,
                              double magnitude, uint8_t fill, struct leat_scratch *scratch, struct leat_err *err);
/* Scratch that any of them takes, at most, for an image of this shape; 0: a side is -1. In place: `out` is `in`. */
size_t leat_augment_scratch(const int64_t *shape, bool in_place);

#endif
