/* png_rows.h - convert rows of a PNG file to 8-bit pixels of 1, 3 or 4 channels; private to src/image
 *
 * image/png.c explains the conversions. */
#ifndef LEAT_IMAGE_PNG_ROWS_H
#define LEAT_IMAGE_PNG_ROWS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* libpng's weights: 0.299 and 0.587 times 2^15, truncated; blue is the rest. libpng rounds 16-bit sums and truncates
 * 8-bit ones. */
enum { LEAT_PNG_RED = 9797, LEAT_PNG_GREEN = 19234, LEAT_PNG_BLUE = 32768 - LEAT_PNG_RED - LEAT_PNG_GREEN };

/* From 1 to 4 channels of 1 or 2 (big-endian) `bytes` each, to 1, 3 or 4 channels. Not in place. */
void leat_png_row(const uint8_t *in, size_t from, size_t bytes, uint8_t *out, size_t to, size_t pixels);
void leat_png_row_plain(const uint8_t *in, size_t from, size_t bytes, uint8_t *out, size_t to, size_t pixels);

/* The same for numbers of 16 bits in host order, from 4 channels to 1, 3 or 4. `color`: the first three may differ. */
void leat_png_row_wide(const uint16_t *in, bool color, uint16_t *out, size_t to, size_t pixels);

/* Unpacks samples of 1, 2, 4 or 8 bits, most significant first, to bytes. */
void leat_png_unpack(const uint8_t *in, unsigned bits, uint8_t *out, size_t count);

/* The color of each sample value: a gray level or a palette index. */
struct leat_png_colors {
	uint8_t color[256][4];
	unsigned count; /* valid values are below this */
};
/* False: a value is not valid. */
bool leat_png_map_colors(const struct leat_png_colors *colors, const uint8_t *in, uint8_t *out, size_t to,
                         size_t pixels);

#endif
