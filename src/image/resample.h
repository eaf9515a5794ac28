/* resample.h - what the files that resize share; private to src/image */
#ifndef LEAT_IMAGE_RESAMPLE_H
#define LEAT_IMAGE_RESAMPLE_H

#include "image/view.h"

/* Resampling along one axis: `length` of the `in` input pixels, starting at `from`, become `out` pixels, of which
 * `count`, starting at `first`, are computed. */
struct leat_axis {
	int64_t in, out, first, count;
	double from, length;
};

/* BILINEAR without antialias. The caller gives back the scratch. */
enum leat_status leat_resize_bilinear(const struct leat_view *in, const struct leat_axis *y_axis,
                                      const struct leat_axis *x_axis, bool avx2, const struct leat_sink *sink,
                                      struct leat_scratch *scratch, struct leat_err *err);

/* All other methods but NEAREST. Rows are u8 if `in` is u8 and the mode is torch, else f32. The caller gives back the
 * scratch. */
enum leat_status leat_resample(const struct leat_view *in, const struct leat_axis *y_axis,
                               const struct leat_axis *x_axis, const struct leat_resampling *how, bool avx2,
                               const struct leat_sink *sink, struct leat_scratch *scratch, struct leat_err *err);
struct leat_row_needs leat_resample_needs(const struct leat_view *in, int64_t height, int64_t width,
                                          const struct leat_resampling *how, enum leat_dtype row_dtype);

/* For each output pixel the range of input pixels it depends on and their weights. Room for `max` (even) weights each:
 * floats or, for bytes, fixed-point integers with LEAT_FIXED_BITS fraction bits. Those are stored in pairs and split,
 * w = high * 2^LEAT_LOW_BITS + low, for 16-bit multiplication; an odd number of them is followed by a 0. */
enum {
	LEAT_FIXED_BITS = 22, /* leaves 8 bits for the value and 2 for filters that overshoot */
	LEAT_LOW_BITS = 14,
};

struct leat_span {
	uint32_t first, count;
};

struct leat_weight_pair {
	int16_t low[2], high[2];
};

struct leat_taps {
	struct leat_span *span;
	union {
		float *f32;
		struct leat_weight_pair *pair;
	} weight;
	size_t max;
};

/* Bytes to bytes (resample_u8.c). `row`, `ring` and `quads` are buffers of the sizes below; quads NULL: no AVX2. */
void leat_resample_u8(const struct leat_view *in, const struct leat_sink *sink, const struct leat_taps *xs,
                      const struct leat_taps *ys, uint8_t *row, uint8_t *ring, void *quads);
size_t leat_resample_u8_padding(size_t channels, size_t max); /* bytes that may be read past a row; max of xs */
size_t leat_resample_u8_row(size_t width, size_t channels, size_t max); /* width of the input; max of xs */
size_t leat_resample_u8_ring(size_t width, size_t channels,
                             size_t lines);              /* width of the result; `lines` is max of ys */
size_t leat_resample_u8_quads(size_t width, size_t max); /* width of the result; max of xs */

#endif
