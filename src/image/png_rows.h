/* png_rows.h - a row of a PNG file as pixels of 8 bits and 1, 3 or 4 channels; private to src/image
 *
 * Which pixels these are: image/png.c. */
#ifndef LEAT_IMAGE_PNG_ROWS_H
#define LEAT_IMAGE_PNG_ROWS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* libpng's integers for 0.299 and 0.587 of 2^15, cut off, and what is left of the whole for blue. It
 * rounds for 16 bits and cuts for 8. */
enum { LEAT_PNG_RED = 9797, LEAT_PNG_GREEN = 19234, LEAT_PNG_BLUE = 32768 - LEAT_PNG_RED - LEAT_PNG_GREEN };

/* Of 1, 2, 3 (color) or 4 channels, `bytes` (1 or 2, the higher first) for each, to 1, 3 or 4. Not in place. */
void leat_png_row(const uint8_t *in, size_t from, size_t bytes, uint8_t *out, size_t to, size_t pixels);
void leat_png_row_plain(const uint8_t *in, size_t from, size_t bytes, uint8_t *out, size_t to, size_t pixels);

/* Numbers of 1, 2, 4 or 8 bits, the first ones highest, as bytes. */
void leat_png_unpack(const uint8_t *in, unsigned bits, uint8_t *out, size_t count);

/* What a number, gray or a place in a palette, looks like. */
struct leat_png_look {
	uint8_t color[256][4];
	unsigned count; /* numbers from here on mean nothing */
};
/* False: there is a number that means nothing. */
bool leat_png_look_up(const struct leat_png_look *look, const uint8_t *in, uint8_t *out, size_t to, size_t pixels);

#endif
