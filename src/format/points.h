/* points.h - restart points: positions in a compressed file where inflating can start
 *
 * A point marks the beginning of a deflate block: its offset in the file, the leftover bits of the
 * byte before, its offset in the inflated data, and the preceding inflated bytes the block may refer
 * to (at most 32 KiB). If a file could not be inflated to its end, the reason is stored too.
 * Points are part of an index (format/index.h), in memory or in its file:
 * struct leat_points_head, the points, their windows.
 *
 * Any thread, on different objects. */
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
	uint64_t in, out;   /* offset of the next byte in the file; in the inflated data */
	uint64_t window_at; /* among the windows */
	uint32_t window;    /* its length in bytes */
	uint32_t bits;      /* 0 to 7: unused high bits of the byte before */
	uint64_t in_end;    /* end of the file bytes needed by samples that begin before the next point */
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
	/* Only while building: */
	struct leat_mem *mem;
	struct leat_point *points;
	unsigned char *windows;
	size_t cap, windows_cap;
};

void leat_points_init(struct leat_points *points, struct leat_mem *mem); /* packing: LEAT_PACKED_NOT */
/* Sets `window_at` itself. */
enum leat_status leat_points_add(struct leat_points *points, const struct leat_point *point, const void *window,
                                 struct leat_err *err);
void leat_points_drop(struct leat_points *points); /* removes the last point */
void leat_points_fail(struct leat_points *points, uint64_t at, const char *fault);
void leat_points_free(struct leat_points *points); /* accepts a zeroed one */

/* Borrows the points from the bytes of an index file, 8-byte aligned. False: invalid for a file of `size` bytes that
 * inflates to `end` bytes. */
bool leat_points_take(struct leat_points *points, const void *bytes, size_t len, uint64_t size, uint64_t end);

/* The bytes of the file needed to inflate the samples that begin between point `i` and the next. */
void leat_points_span(const struct leat_points *points, uint64_t i, uint64_t *offset, uint64_t *length);
/* The last point at or before inflated byte `out`. There must be points. */
uint64_t leat_points_find(const struct leat_points *points, uint64_t out);

#endif
