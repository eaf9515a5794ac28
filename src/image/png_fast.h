/* png_fast.h - PNG files without surprises, decoded at once; private to src/image
 *
 * These functions say true only of files that libspng reads, too, and with the same pixels. False says nothing about
 * the file: libspng is to be asked. */
#ifndef LEAT_IMAGE_PNG_FAST_H
#define LEAT_IMAGE_PNG_FAST_H

#include <stdbool.h>

#include <spng.h>

#include "base/mem.h"

/* The header of a file that begins with the signature. Sides are above 0. */
bool leat_png_fast_header(const uint8_t *bytes, size_t size, struct spng_ihdr *header);

/* All of the file becomes height x width x channels (1, 3 or 4) bytes as image.h says; they may have been written to
 * when this is false. Takes the size of the image and of the file from the scratch at most, and leaves it used. */
bool leat_png_fast_pixels(const uint8_t *bytes, size_t size, const struct spng_ihdr *header, size_t channels,
                          struct leat_scratch *scratch, uint8_t *out);

#endif
