/* png.h - PNG files of every kind, with pixels drawn at random */
#ifndef SUPPORT_PNG_H
#define SUPPORT_PNG_H

#include <stddef.h>
#include <stdint.h>

#include "base/rng.h"

struct png_kind {
	uint32_t width, height;
	uint8_t color, depth;  /* as in the header */
	int filter;            /* of all rows; -1: drawn for each */
	size_t pieces;         /* IDAT chunks, some of them empty */
	size_t palette, alpha; /* entries of PLTE and of tRNS; 0: no such chunk */
	uint8_t highest;       /* of the bytes compressed */
	int window;            /* bits, 9 to 15; 0: 15 */
	long surplus;          /* bytes compressed behind the image; negative: too few */
	size_t behind;         /* bytes behind the compressed ones */
};

/* malloc'ed. */
uint8_t *png_make(const struct png_kind *kind, struct leat_rng *rng, size_t *size);
/* Makes all checksums of chunks right again. */
void png_mend(uint8_t *bytes, size_t size);

#endif
