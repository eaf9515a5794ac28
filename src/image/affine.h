/* affine.h - pointwise steps: each element x becomes mul * x + add; several steps run in one pass */
#ifndef LEAT_IMAGE_AFFINE_H
#define LEAT_IMAGE_AFFINE_H

#include <stdbool.h>
#include <stddef.h>

#include "format/sample.h"

/* An element x of channel c becomes mul[c] * x + add[c], rounded after the product and after the sum. The channel is
 * the last dimension of HWC and the first of CHW; without a layout all elements belong to channel 0. */
enum { LEAT_MAX_CHANNELS = 4 };
struct leat_affine {
	float mul[LEAT_MAX_CHANNELS], add[LEAT_MAX_CHANNELS];
};

/* The same step for every channel. */
struct leat_affine leat_affine_uniform(float mul, float add);

/* Applies step[0], then step[1], ... to each element of `in` (u8 or f32) in one pass over memory, with the result of
 * one pass per step. `out` is f32 of the same shape and layout, and may be `in`. */
void leat_affine_apply(const struct leat_datum *in, const struct leat_datum *out, enum leat_layout layout,
                       const struct leat_affine *step, int steps);

/* ---- one row at a time; private to src/image ---- */

/* A step repeated for a run of neighboring elements. The length is a multiple of 1 to 4 channels and of the 8 floats of
 * a vector. */
enum { LEAT_AFFINE_RUN = 24 };
struct leat_affine_spread {
	float mul[LEAT_AFFINE_RUN], add[LEAT_AFFINE_RUN];
};

/* For interleaved channels, of which `first` is the first. */
void leat_affine_spread(struct leat_affine_spread *spread, const struct leat_affine *step, int steps, size_t first,
                        size_t channels);
/* `count` elements of u8 or f32, starting with the first channel. `out` may be `in`. */
void leat_affine_row(const void *in, enum leat_dtype dtype, float *out, size_t count,
                     const struct leat_affine_spread *spread, int steps, bool avx2);

#endif
