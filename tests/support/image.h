/* image.h - kernels on whole images, as tests like to call them
 *
 * The library's kernels read a view and write to a sink; these take two images. */
#ifndef SUPPORT_IMAGE_H
#define SUPPORT_IMAGE_H

#include "image/view.h"

/* All pixels of an image whose decoding has begun. */
enum leat_status decode_image(struct leat_decode *decode, uint8_t *out, struct leat_err *err);

/* `part` of `in` (NULL: all of it) at the size of `out`; the same without AVX2. */
enum leat_status resize_image(const struct leat_datum *in, const struct leat_window *part, const struct leat_datum *out,
                              const struct leat_resampling *how, struct leat_scratch *scratch, struct leat_err *err);
enum leat_status resize_image_plain(const struct leat_datum *in, const struct leat_window *part,
                                    const struct leat_datum *out, const struct leat_resampling *how,
                                    struct leat_scratch *scratch, struct leat_err *err);

void rotate_image(const struct leat_datum *in, const struct leat_datum *out, float radians, float fill,
                  struct leat_scratch *scratch);
void rotate_image_plain(const struct leat_datum *in, const struct leat_datum *out, float radians, float fill);

#endif
