/* jpeg_restart.h - add restart markers to a JPEG file
 *
 * Entropy-coded data can only be decoded from its start or from a restart marker. With markers, a decoder that needs a
 * region of an image skips most of what is before and beside it (jpeg_baseline.c). Coefficients, and so all pixels,
 * stay the same; a file grows by about 0.4 % with a marker after every 6 MCUs. */
#ifndef LEAT_IMAGE_JPEG_RESTART_H
#define LEAT_IMAGE_JPEG_RESTART_H

#include <stdbool.h>
#include <stddef.h>

/* Rewrites an image with a marker after every `interval` MCUs (1 to 65535), as one scan, with its other segments. Free
 * *out with free(). False: not a JPEG file, a damaged one, or out of memory; *out is not set. Any thread. */
bool leat_jpeg_add_restarts(const void *bytes, size_t size, unsigned interval, void **out, size_t *out_size);

#endif
