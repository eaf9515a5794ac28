/* png_write.h - encode pixels as a PNG file, for pictures that people look at */
#ifndef LEAT_IMAGE_PNG_WRITE_H
#define LEAT_IMAGE_PNG_WRITE_H

#include "base/err.h"

/* `rgb`: 8 bits, rows without padding. Free *png with free(). */
enum leat_status leat_png_write(const uint8_t *rgb, uint32_t width, uint32_t height, void **png, size_t *size,
                                struct leat_err *err);

#endif
