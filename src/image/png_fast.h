/* png_fast.h - a fast decoder for ordinary PNG files; private to src/image
 *
 * These functions return true only for files that libspng would decode to the same pixels. False says nothing about the
 * file: use libspng. */
#ifndef LEAT_IMAGE_PNG_FAST_H
#define LEAT_IMAGE_PNG_FAST_H

#include <stdbool.h>

#include <spng.h>

#include "base/mem.h"

/* Reads the header of a file that starts with the PNG signature. Width and height are above 0. */
bool leat_png_fast_header(const uint8_t *bytes, size_t size, struct spng_ihdr *header);

/* Decodes the file to height x width x channels (1, 3 or 4) bytes; `raw`: to one channel, the values as they are
 * stored, of a palette or gray image of at most 8 bits. May have written some of them if it returns false. Takes up to
 * the size of the image plus that of the file from the scratch, which the caller gives back. */
bool leat_png_fast_pixels(const uint8_t *bytes, size_t size, const struct spng_ihdr *header, size_t channels, bool raw,
                          struct leat_scratch *scratch, uint8_t *out);

#endif
