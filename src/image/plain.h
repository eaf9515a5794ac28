/* plain.h - kernels without vector instructions; private to src/image and its tests
 *
 * These define what the kernels of the same name return: with AVX2 (see cpu.h) the bytes have to be the same, and tests
 * compare the two. Only the files that define them and tests include this header. */
#ifndef LEAT_IMAGE_PLAIN_H
#define LEAT_IMAGE_PLAIN_H

#include "image/affine.h"
#include "image/codec.h"
#include "image/view.h"

void leat_cast_plain(const void *in, enum leat_dtype from, void *out, enum leat_dtype to, size_t count);
/* The same where one of the types is bool, int8, int16, uint16, uint32 or uint64. */
void leat_cast_narrow(const void *in, enum leat_dtype from, void *out, enum leat_dtype to, size_t count);
void leat_affine_apply_plain(const struct leat_datum *in, const struct leat_datum *out, enum leat_layout layout,
                             const struct leat_affine *step, int steps);
void leat_to_planar_plain(const void *in, void *out, size_t pixels, size_t channels, size_t size);
void leat_to_interleaved_plain(const void *in, void *out, size_t pixels, size_t channels, size_t size);
void leat_channel_means_plain(const struct leat_datum *image, float *mean);
void leat_flip_plain(const struct leat_datum *image); /* left and right */
void leat_rotate_to_plain(const struct leat_view *in, float radians, float fill, const struct leat_sink *sink);
enum leat_status leat_resize_to_plain(const struct leat_view *in, int64_t height, int64_t width,
                                      const struct leat_resampling *how, const struct leat_sink *sink,
                                      struct leat_scratch *scratch, struct leat_err *err);
void leat_unfilter_plain(unsigned filter, size_t step, const uint8_t *in, const uint8_t *above, uint8_t *out,
                         size_t count);

/* PNG by libspng alone. */
extern const struct leat_codec leat_codec_png_plain;

#endif
