/* webp_lossless.h - how much memory libwebp needs for a lossless image; private to src/image */
#ifndef LEAT_IMAGE_WEBP_LOSSLESS_H
#define LEAT_IMAGE_WEBP_LOSSLESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* `bytes`: a lossless image after its header (the 5 bytes with its size), of width x height pixels, at most 2^14 each.
 * False: it is damaged, and libwebp would refuse it too. */
bool leat_webp_lossless_memory(const uint8_t *bytes, size_t size, uint32_t width, uint32_t height, size_t *memory);

#endif
