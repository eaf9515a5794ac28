/* color.h - gray, brightness, contrast, color, tone and sharpness
 *
 * Kernels match torchvision, which has two sets of functions with different results:
 *  - uint8 images get the bytes of its functions on PIL images (which are Pillow's), bit for bit.
 *  - float32 images, on a scale of 0 to 1, get the values of its functions on tensors. Sums run in a different order,
 * so the last bits may differ. Results of adjusting are clamped to [0, 1].
 *
 * All work in place unless noted. Kernels that mix channels take 1 (gray) or 3 (RGB). NaN stays NaN or becomes some
 * number in the range of the result. */
#ifndef LEAT_IMAGE_COLOR_H
#define LEAT_IMAGE_COLOR_H

#include "format/sample.h"

/* ITU-R 601-2 luma, of 1 or 3 channels to 1 or 3 equal ones. `out` may be `in` if the number of channels is the same.
 */
void leat_grayscale(const struct leat_datum *in, const struct leat_datum *out);

/* Each blends the image with another one: factor 0 gives the other one, 1 the image, more than 1 exaggerates it. */
void leat_adjust_brightness(const struct leat_datum *image, float factor); /* with black */
void leat_adjust_contrast(const struct leat_datum *image, float factor);   /* with its mean gray */
void leat_adjust_saturation(const struct leat_datum *image, float factor); /* with its gray */
/* With the image smoothed by a 3 x 3 filter. Pixels at the border do not change. Takes two rows of scratch. */
enum leat_status leat_adjust_sharpness(const struct leat_datum *image, float factor, struct leat_scratch *scratch,
                                       struct leat_err *err);
size_t leat_adjust_sharpness_scratch(const int64_t *shape, enum leat_dtype dtype); /* 0: a dimension is -1 */

/* Shifts hues by `turn` of the color circle, -0.5 to 0.5. For uint8, hue and saturation are rounded to 8 bits on the
 * way, so even 0 may change pixels. Gray images do not change. */
void leat_adjust_hue(const struct leat_datum *image, float turn);

/* Tone: each channel on its own, any number of channels. White is 255 for uint8, 1 for float32. */
void leat_invert(const struct leat_datum *image);                    /* white - x */
void leat_solarize(const struct leat_datum *image, float threshold); /* white - x where x >= threshold */
void leat_posterize(const struct leat_datum *image, int bits);       /* uint8: keep the upper `bits` bits */
void leat_equalize(const struct leat_datum *image);                  /* uint8: flatten the histogram */
void leat_autocontrast(const struct leat_datum *image);              /* stretch values to 0 ... white */

#endif
