/* recode.h - decode an image to see that it is sound, scale it down, and encode it as JPEG
 *
 * For programs that store images. Any thread, with its own scratch. */
#ifndef LEAT_IMAGE_RECODE_H
#define LEAT_IMAGE_RECODE_H

#include "image/image.h"

struct leat_recoding {
	int64_t shorter; /* images whose shorter side is longer are scaled down to it; 0: none */
	int quality;     /* of JPEG, 1 to 100; 0: images that are not scaled stay as they are, others get 90 */
	uint64_t max_pixels;
};

/* *jpeg is NULL if the image is to be stored as it is; else free it with free(). Gray stays gray, alpha is dropped, and
 * so is what else the file has, such as EXIF. */
enum leat_status leat_recode(const void *bytes, size_t size, const struct leat_recoding *how,
                             struct leat_scratch *scratch, struct leat_mem *mem, void **jpeg, size_t *jpeg_size,
                             struct leat_err *err);

#endif
