/* inflater.h - inflate a gzip or zlib file, from its beginning or from a restart point
 *
 * Consecutive members (gzip) or streams (zlib) are read as one. A member's checksum is
 * verified if the member is read from its beginning. All memory is allocated at open, and an
 * inflater can be reused for any file. One thread at a time. */
#ifndef LEAT_FORMAT_INFLATER_H
#define LEAT_FORMAT_INFLATER_H

#include <zlib.h>

#include "format/points.h"
#include "store/store.h"

/* Upper bound on the memory of an inflater that does not read files. */
enum { LEAT_INFLATER_BYTES = 64 * 1024 };

struct leat_inflater {
	struct leat_mem *mem;
	z_stream z;
	bool ready; /* z is initialized */
	unsigned char *input;

	struct leat_files *files;
	size_t file;
	const unsigned char *from; /* input in memory, from file offset `from_at` on; NULL: read the file */
	uint64_t from_at;
	enum leat_packing packing;
	uint64_t size, read; /* of the file; bytes of it loaded so far */
	bool inside;         /* inside a member, not between two */
	bool raw;            /* started at a point: we skip the member's trailer ourselves */
	unsigned trailer;    /* bytes of it still to skip */

	bool at_block; /* a point can be placed here */
	bool ended;    /* all members were read to the end */
	const char *fault;
	uint64_t fault_at;
};

/* `files`: the inflater will also read files, not only bytes in memory. */
enum leat_status leat_inflater_open(struct leat_inflater *inflater, bool files, struct leat_mem *mem,
                                    struct leat_err *err);
void leat_inflater_close(struct leat_inflater *inflater); /* accepts a zeroed one */

/* Starts at the beginning of a file. */
void leat_inflater_begin(struct leat_inflater *inflater, struct leat_files *files, size_t file,
                         enum leat_packing packing);
/* Starts at point `i`; `bytes` are the first `length` of leat_points_span. False: the point is invalid. */
bool leat_inflater_resume(struct leat_inflater *inflater, const struct leat_points *points, uint64_t i,
                          const unsigned char *bytes, uint64_t length);

/* Reads the next `len` bytes. Fewer, with LEAT_OK, at the end, before a fault and, with `blocks`, where a point can
 * be placed. */
enum leat_status leat_inflater_read(struct leat_inflater *inflater, void *to, size_t len, bool blocks, size_t *got,
                                    struct leat_err *err);
/* Fills a point for the current position; requires at_block. `window` has room for LEAT_POINT_WINDOW bytes. */
void leat_inflater_point(struct leat_inflater *inflater, uint64_t out, struct leat_point *point, void *window);

#endif
