/* resample.h - resize.c's sums over several pixels; private to src/image */
#ifndef LEAT_IMAGE_RESAMPLE_H
#define LEAT_IMAGE_RESAMPLE_H

#include "image/image.h"

/* Pixels to read: an image or a part of one. */
struct leat_view {
	const unsigned char *data;
	size_t stride; /* bytes from row to row */
	int64_t height, width;
	size_t channels;
	enum leat_dtype dtype;
};

/* Every method but NEAREST and BILINEAR without antialias. `out` is u8 if `in` is and the mode is torch, else f32.
 * Leaves what it takes from scratch to the caller. */
enum leat_status leat_resample(const struct leat_view *in, const struct leat_datum *out,
                               const struct leat_resampling *how, struct leat_scratch *scratch, struct leat_err *err);
size_t leat_resample_scratch(const struct leat_resampling *how, const int64_t *in, const int64_t *out);

/* Scratch that is full, as an error. */
enum leat_status leat_resize_full(const struct leat_scratch *scratch, struct leat_err *err);

#endif
