/* affine.h - pointwise steps: each element x becomes mul * x + add, several in one pass */
#ifndef LEAT_IMAGE_AFFINE_H
#define LEAT_IMAGE_AFFINE_H

#include <stdbool.h>
#include <stddef.h>

#include "format/sample.h"

/* Per channel c (the last dimension of HWC, the first of CHW; all elements share channel 0
 * otherwise): x becomes mul[c] * x + add[c], rounded after each of the two. */
enum { LEAT_MAX_CHANNELS = 4 };
struct leat_affine {
	float mul[LEAT_MAX_CHANNELS], add[LEAT_MAX_CHANNELS];
};

/* The same numbers for every channel. */
struct leat_affine leat_affine_uniform(float mul, float add);

/* Applies step[0], then step[1], ... to each element of `in` (u8 or f32), one pass over memory: the
 * result is that of one pass per step. `out` is f32 with the same shape and layout, and may be `in`.
 * An image has 1 to LEAT_MAX_CHANNELS channels. */
void leat_affine_apply(const struct leat_datum *in, const struct leat_datum *out, enum leat_layout layout,
                       const struct leat_affine *step, int steps);

/* ---- row by row, for those who have more to do with a row; private to src/image ---- */

/* A step's numbers for so many neighbouring elements: a multiple of 1, 2, 3 and 4 channels and of a vector's 8 floats.
 */
enum { LEAT_AFFINE_RUN = 24 };
struct leat_affine_spread {
	float mul[LEAT_AFFINE_RUN], add[LEAT_AFFINE_RUN];
};

/* For elements whose channels are interleaved and begin with channel `first`. */
void leat_affine_spread(struct leat_affine_spread *spread, const struct leat_affine *step, int steps, size_t first,
                        size_t channels);
/* `count` elements of u8 or f32, the first of them of the first channel. `out` may be `in`. */
void leat_affine_row(const void *in, enum leat_dtype dtype, float *out, size_t count,
                     const struct leat_affine_spread *spread, int steps, bool avx2);

#endif
