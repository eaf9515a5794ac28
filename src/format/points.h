/* points.h - places of a compressed file from which it can be inflated
 *
 * A point stands before a deflate block: where in the file, with which bits left over of
 * the byte before, at which inflated byte, and with the inflated bytes before it that the
 * block may refer to (32 KiB at most). Beside them is said why a file could not be
 * inflated to its end. Part of an index (format/index.h), in memory or in its file:
 * struct leat_points_head, the points, their windows one behind the other.
 *
 * Any thread, on different ones. */
#ifndef LEAT_FORMAT_POINTS_H
#define LEAT_FORMAT_POINTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/mem.h"

enum { LEAT_POINT_WINDOW = 32768 };

enum leat_packing { LEAT_PACKED_NOT, LEAT_PACKED_GZIP, LEAT_PACKED_ZLIB };

struct leat_point {
	uint64_t in, out;   /* the next byte of the file; of what it inflates to */
	uint64_t window_at; /* among the windows */
	uint32_t window;    /* bytes of it */
	uint32_t bits;      /* 0 to 7: high ones of the byte before that still count */
	uint64_t in_end; /* bytes of the file from here on are not needed for the samples that begin before the next */
};

struct leat_points_head {
	uint64_t count, windows; /* points; bytes of windows */
	uint64_t packing;        /* enum leat_packing */
	uint64_t fault_at;       /* offset in the file */
	char fault[64];          /* "": none */
};

struct leat_points {
	struct leat_points_head head;
	const struct leat_point *point;
	const unsigned char *window;
	/* While they are made: */
	struct leat_mem *mem;
	struct leat_point *points;
	unsigned char *windows;
	size_t cap, windows_cap;
};

void leat_points_init(struct leat_points *points, struct leat_mem *mem); /* without a packing */
/* `window_at` is set here. */
enum leat_status leat_points_add(struct leat_points *points, const struct leat_point *point, const void *window,
                                 struct leat_err *err);
void leat_points_drop(struct leat_points *points); /* takes the last one back */
void leat_points_fail(struct leat_points *points, uint64_t at, const char *fault);
void leat_points_free(struct leat_points *points); /* takes a zeroed one */

/* Borrows them from the bytes of an index file, 8-byte aligned. False: they make no sense for a file of `size`
 * bytes that inflate to `end`. */
bool leat_points_take(struct leat_points *points, const void *bytes, size_t len, uint64_t size, uint64_t end);

/* Which bytes of the file the samples that begin behind point `i`, and before the next, are inflated from. */
void leat_points_span(const struct leat_points *points, uint64_t i, uint64_t *offset, uint64_t *length);
/* The last point at or before inflated byte `out`. There is one when there are points. */
uint64_t leat_points_find(const struct leat_points *points, uint64_t out);

#endif
