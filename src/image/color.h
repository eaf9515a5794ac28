/* color.h - what pixels look like: gray, brightness, contrast, color, tone, sharpness
 *
 * Kernels give what torchvision gives. It has two sets of functions, whose results differ:
 *  - uint8 images get the bytes of its functions on PIL images (which are Pillow's), in every bit.
 *  - float32 images, on the scale of 0 to 1, get the values of its functions on tensors. Sums are
 *    made in another order, so that the last bits may differ. Results of adjusting are kept within [0, 1].
 *
 * All work in place unless they say otherwise. Where colors are mixed an image has 1 or 3 channels:
 * gray, or red, green, blue. NaN stays NaN or becomes any other number of the result's range. */
#ifndef LEAT_IMAGE_COLOR_H
#define LEAT_IMAGE_COLOR_H

#include "format/sample.h"

/* The luma of ITU-R 601-2. From 1 or 3 channels to 1 or 3 equal ones; `out` may be `in` when they have as many. */
void leat_grayscale(const struct leat_datum *in, const struct leat_datum *out);

/* Each blends the image with a duller one: 0 gives the duller one, 1 the image, more than 1 goes beyond it. */
void leat_adjust_brightness(const struct leat_datum *image, float factor); /* black */
void leat_adjust_contrast(const struct leat_datum *image, float factor);   /* the mean of its gray */
void leat_adjust_saturation(const struct leat_datum *image, float factor); /* its gray */
/* A smoothed one, by a 3 x 3 filter; the outermost pixels stay. Two rows are taken from scratch. */
enum leat_status leat_adjust_sharpness(const struct leat_datum *image, float factor, struct leat_scratch *scratch,
                                       struct leat_err *err);
size_t leat_adjust_sharpness_scratch(const int64_t *shape, enum leat_dtype dtype); /* bytes it takes; 0: a side is -1 */

/* Turns hues by `turn` of the circle, -0.5 to 0.5. Of uint8 images hue and saturation are rounded to
 * 8 bits on the way, so that 0 may change them too. Gray images stay. */
void leat_adjust_hue(const struct leat_datum *image, float turn);

/* Tone: each channel by itself, as many as an image may have. The white of uint8 is 255, that of float32 is 1. */
void leat_invert(const struct leat_datum *image);                    /* white - x */
void leat_solarize(const struct leat_datum *image, float threshold); /* white - x where x is not below it */
void leat_posterize(const struct leat_datum *image, int bits);       /* uint8: keeps the `bits` highest of 8 */
void leat_equalize(const struct leat_datum *image);     /* uint8: so that all values come about equally often */
void leat_autocontrast(const struct leat_datum *image); /* so that values go from 0 to white */

#endif
