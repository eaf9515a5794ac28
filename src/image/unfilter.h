/* unfilter.h - what PNG does to a row before it is compressed, undone; private to src/image */
#ifndef LEAT_IMAGE_UNFILTER_H
#define LEAT_IMAGE_UNFILTER_H

#include <stddef.h>
#include <stdint.h>

enum { LEAT_FILTER_NONE, LEAT_FILTER_SUB, LEAT_FILTER_UP, LEAT_FILTER_AVERAGE, LEAT_FILTER_PAETH, LEAT_FILTERS };

/* The row `in` of `count` bytes, filtered as `filter` (below LEAT_FILTERS) says, becomes `out`, which may be `in`.
 * `above`: the row above it, zeros for the first. `step`: the bytes of a pixel, 1 for less than one; divides count. */
void leat_unfilter(unsigned filter, size_t step, const uint8_t *in, const uint8_t *above, uint8_t *out, size_t count);

/* The same of two rows, the second below the first, both filtered by LEAT_FILTER_PAETH: takes less time together. */
void leat_unfilter_two(size_t step, const uint8_t *const in[2], const uint8_t *above, uint8_t *const out[2],
                       size_t count);

#endif
