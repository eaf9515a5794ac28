/* resample.h - what the parts of resizing share; private to src/image */
#ifndef LEAT_IMAGE_RESAMPLE_H
#define LEAT_IMAGE_RESAMPLE_H

#include "image/view.h"

/* Along one side: of `in` places `length` from `from` on become `out`, of which `count` are wanted from `first` on. */
struct leat_side {
	int64_t in, out, first, count;
	double from, length;
};

/* BILINEAR without antialias. */
enum leat_status leat_resize_bilinear(const struct leat_view *in, const struct leat_side *down,
                                      const struct leat_side *along, bool avx2, const struct leat_sink *sink,
                                      struct leat_scratch *scratch, struct leat_err *err);

/* Every method but NEAREST and BILINEAR without antialias. Rows are u8 if `in` is and the mode is torch, else f32.
 * Both leave what they take from scratch to the caller. */
enum leat_status leat_resample(const struct leat_view *in, const struct leat_side *down, const struct leat_side *along,
                               const struct leat_resampling *how, bool avx2, const struct leat_sink *sink,
                               struct leat_scratch *scratch, struct leat_err *err);
struct leat_row_needs leat_resample_needs(const struct leat_view *in, int64_t height, int64_t width,
                                          const struct leat_resampling *how, enum leat_dtype made);

/* For each output place the input places that count, and how much: `most` (even) weights for each, floats or, for
 * bytes, whole numbers of 2^-LEAT_FIXED_BITS. Those come two by two and in two parts, w = high * 2^LEAT_LOW_BITS + low,
 * as the processor multiplies them; behind an odd number of them stands a 0. */
enum {
	LEAT_FIXED_BITS = 22, /* leaves 8 bits for a value, and 2 for filters that reach below 0 and beyond 1 */
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
	size_t most;
};

/* Bytes to bytes, in resample_u8.c. `row`, `ring` and `quads` are scratch of the sizes below; quads NULL: without
 * AVX2. */
void leat_resample_u8(const struct leat_view *in, const struct leat_sink *sink, const struct leat_taps *xs,
                      const struct leat_taps *ys, uint8_t *row, uint8_t *ring, void *quads);
size_t leat_resample_u8_behind(size_t channels, size_t most);              /* bytes read behind a row; xs->most */
size_t leat_resample_u8_row(size_t width, size_t channels, size_t most);   /* of the input; xs->most */
size_t leat_resample_u8_ring(size_t width, size_t channels, size_t lines); /* of the result; ys->most lines */
size_t leat_resample_u8_quads(size_t width, size_t most);                  /* of the result; xs->most */

/* Scratch that is full, as an error. */
enum leat_status leat_resize_full(const struct leat_scratch *scratch, struct leat_err *err);

#endif
