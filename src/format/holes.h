/* holes.h - the samples of a compressed file that exceed max_bytes
 *
 * Units leave them out: a small file may inflate to a sample of any size, so it must cost time at
 * most, never memory. Offsets are inflated ones. Found once, when the source opens; then read-only. */
#ifndef LEAT_FORMAT_HOLES_H
#define LEAT_FORMAT_HOLES_H

#include "format/index.h"

struct leat_hole {
	uint64_t begin, end;
	uint64_t before; /* bytes of earlier holes */
};

struct leat_holes {
	struct leat_hole *hole; /* in order */
	size_t count, cap;
};

/* Finds the good samples whose payload exceeds max_bytes. */
enum leat_status leat_holes_find(struct leat_holes *holes, const struct leat_index *index, uint64_t max_bytes,
                                 struct leat_mem *mem, struct leat_err *err);
void leat_holes_free(struct leat_holes *holes, struct leat_mem *mem); /* accepts a zeroed one */

/* The first hole that ends after `offset`; NULL: none. */
const struct leat_hole *leat_holes_next(const struct leat_holes *holes, uint64_t offset);
/* Bytes before `offset` that are in no hole. */
uint64_t leat_holes_kept(const struct leat_holes *holes, uint64_t offset);
/* `end`, or where the holes that end there begin. */
uint64_t leat_holes_trim(const struct leat_holes *holes, uint64_t end);

#endif
