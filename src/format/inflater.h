/* inflater.h - the bytes that a gzip or zlib file inflates to, from its begin or from a point on
 *
 * Members (gzip) or streams (zlib) that follow one another are read as one. Checksums of a
 * member are looked at when it is read from its begin. All memory is taken at open: an
 * inflater is used again for any file. One thread at a time. */
#ifndef LEAT_FORMAT_INFLATER_H
#define LEAT_FORMAT_INFLATER_H

#include <zlib.h>

#include "format/points.h"
#include "store/store.h"

/* More than one that does not read files takes of memory. */
enum { LEAT_INFLATER_BYTES = 64 * 1024 };

struct leat_inflater {
	struct leat_mem *mem;
	z_stream z;
	bool ready; /* z has its memory */
	unsigned char *input;

	struct leat_files *files;
	size_t file;
	const unsigned char *from; /* bytes of the file from `from_at` on, which are all there is; NULL: it is read */
	uint64_t from_at;
	enum leat_packing packing;
	uint64_t size, read; /* of the file; how much of it has been brought */
	bool inside;         /* a member, not between two */
	bool raw;            /* begun at a point: the member's trailer is left to us */
	unsigned trailer;    /* bytes of it still to come */

	bool at_block; /* a point could be here */
	bool ended;    /* all members were read to their ends */
	const char *fault;
	uint64_t fault_at;
};

/* `files`: it will read files, and not only resume from bytes that are there. */
enum leat_status leat_inflater_open(struct leat_inflater *inflater, bool files, struct leat_mem *mem,
                                    struct leat_err *err);
void leat_inflater_close(struct leat_inflater *inflater); /* takes a zeroed one */

/* From the begin of a file. */
void leat_inflater_begin(struct leat_inflater *inflater, struct leat_files *files, size_t file,
                         enum leat_packing packing);
/* From point `i` on, out of the bytes of the file that it needs: leat_points_span. False: the point makes no sense. */
bool leat_inflater_resume(struct leat_inflater *inflater, const struct leat_points *points, uint64_t i,
                          const unsigned char *bytes);

/* The next `len` bytes. Less, with LEAT_OK, at the end, before a fault, and with `blocks` also where a point
 * could be. */
enum leat_status leat_inflater_read(struct leat_inflater *inflater, void *to, size_t len, bool blocks, size_t *got,
                                    struct leat_err *err);
/* Where it stands; `window` has room for LEAT_POINT_WINDOW bytes. For at_block. */
void leat_inflater_point(struct leat_inflater *inflater, uint64_t out, struct leat_point *point, void *window);

#endif
