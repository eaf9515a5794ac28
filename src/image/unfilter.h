/* unfilter.h - undo the row filters of PNG; private to src/image */
#ifndef LEAT_IMAGE_UNFILTER_H
#define LEAT_IMAGE_UNFILTER_H

#include <stddef.h>
#include <stdint.h>

enum { LEAT_FILTER_NONE, LEAT_FILTER_SUB, LEAT_FILTER_UP, LEAT_FILTER_AVERAGE, LEAT_FILTER_PAETH, LEAT_FILTERS };

/* Undoes `filter` (below LEAT_FILTERS) on a row of `count` bytes. `out` may be `in`. `above`: the row above, zeros for
 * the first row. `step`: bytes per pixel, at least 1; divides `count`. */
void leat_unfilter(unsigned filter, size_t step, const uint8_t *in, const uint8_t *above, uint8_t *out, size_t count);

/* Two consecutive rows, both filtered by LEAT_FILTER_PAETH: faster than one by one. */
void leat_unfilter_two(size_t step, const uint8_t *const in[2], const uint8_t *above, uint8_t *const out[2],
                       size_t count);

#endif
