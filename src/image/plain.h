/* plain.h - kernels of image.h as they are where there is no AVX2; the same bytes. Private to src/image and its tests
 *
 * See cpu.h. */
#ifndef LEAT_IMAGE_PLAIN_H
#define LEAT_IMAGE_PLAIN_H

#include "image/affine.h"
#include "image/image.h"

void leat_cast_plain(const void *in, enum leat_dtype from, void *out, enum leat_dtype to, size_t count);
void leat_affine_apply_plain(const struct leat_datum *in, const struct leat_datum *out, enum leat_layout layout,
                             const struct leat_affine *step, int steps);
void leat_to_planar_plain(const void *in, void *out, size_t pixels, size_t channels, size_t size);
void leat_to_interleaved_plain(const void *in, void *out, size_t pixels, size_t channels, size_t size);
void leat_channel_means_plain(const struct leat_datum *image, float *mean);
void leat_flip_plain(const struct leat_datum *image); /* left and right */
void leat_rotate_plain(const struct leat_datum *in, const struct leat_datum *out, float radians, float fill);
enum leat_status leat_resize_plain(const struct leat_datum *in, const struct leat_window *part,
                                   const struct leat_datum *out, const struct leat_resampling *how,
                                   struct leat_scratch *scratch, struct leat_err *err);

/* ---- the parts for AVX2 that have a file of their own; they are called where it is there ---- */

/* How many elements it has cast, from the first one on. */
size_t leat_cast_avx2(const void *in, enum leat_dtype from, void *out, enum leat_dtype to, size_t count);

#endif
