/* jpeg_restart.h - restart markers for JPEG files that have none
 *
 * The bits of a JPEG image depend on all bits before them, except behind a restart marker. With markers, a decoder that
 * wants a part of an image passes by what lies before and beside it (jpeg_baseline.c). Coefficients stay as they are,
 * and with them every pixel; a file grows by about 0.4 % with a marker after every 6 MCUs. */
#ifndef LEAT_IMAGE_JPEG_RESTART_H
#define LEAT_IMAGE_JPEG_RESTART_H

#include <stdbool.h>
#include <stddef.h>

/* The same image with a marker after every `interval` MCUs (1 to 65535), in one scan, its other segments kept; *out is
 * freed with free(). False: nothing was made, because it is no JPEG file, or a damaged one, or there is no memory. Any
 * thread. */
bool leat_jpeg_add_restarts(const void *bytes, size_t size, unsigned interval, void **out, size_t *out_size);

#endif
