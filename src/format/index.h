/* index.h - the offset of each sample in one data file, saved next to the data
 *
 * Samples are contiguous and fill the file: sample i spans the bytes from its offset to
 * the next one's. A region without a readable sample counts as one sample, its offset
 * marked with LEAT_INDEX_DAMAGED, so that no part of a file is ever dropped silently.
 * Formats with bytes that belong to no sample (folders in a tar file, its end) have
 * `gaps`: the index then also stores where each sample ends.
 *
 * The index file is `.NAME.leatidx` in the data's folder or, if that cannot be
 * written, in ${XDG_CACHE_HOME:-~/.cache}/leat/index under the SHA-256 of the data's
 * absolute path. It is valid for one version of the data; numbers are in native
 * byte order. Layout: struct leat_index_head, then count + 1 offsets of 8 bytes, the
 * last one the size of the data, and for kinds with gaps count ends.
 *
 * For a compressed file, offsets and size are those of the inflated data, and the restart
 * points for inflating follow (format/points.h).
 *
 * All functions: any thread, on different indexes. */
#ifndef LEAT_FORMAT_INDEX_H
#define LEAT_FORMAT_INDEX_H

#include "base/err.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "format/points.h"
#include "store/store.h"

#define LEAT_INDEX_MAGIC "LEATIDX\n"
#define LEAT_INDEX_DAMAGED ((uint64_t)1 << 63)

enum { LEAT_INDEX_VERSION = 2 };

struct leat_index_head {
	char magic[8];
	uint32_t version;
	uint32_t crc;   /* CRC-32C of all other bytes */
	char kind[8];   /* of the format, padded with NUL */
	uint64_t size;  /* of the data */
	uint64_t token; /* of the data: leat_object_token */
	uint64_t count;
	uint64_t max_length; /* of a sample that is not damaged */
	uint64_t damaged;    /* regions */
};

struct leat_index;

/* How a format is indexed. */
struct leat_index_kind {
	const char *name;    /* at most 8 characters; change it when the meaning of samples changes */
	uint64_t min_length; /* of a sample that is not damaged, at least 1 */
	bool gaps;           /* samples need not fill the file */
	const char *packed;  /* the name for compressed files; NULL: not supported. Excludes gaps */
	/* Finds the samples of file `i`: init, add..., end. Frees everything on failure. Any thread. */
	enum leat_status (*make)(struct leat_files *files, size_t i, struct leat_mem *mem, const struct leat_log *log,
	                         struct leat_index *index, struct leat_err *err);
};

struct leat_index {
	const uint64_t *offset; /* count + 1 */
	const uint64_t *end;    /* count, for kinds with gaps; NULL: each sample ends where the next begins */
	uint64_t count, max_length, damaged;
	bool packed;               /* the file is compressed: offsets are inflated ones */
	struct leat_points points; /* if packed */
	struct leat_mem *mem;
	uint64_t *block, *ends; /* memory of the above; block may hold a whole index file */
	size_t cap, ends_cap;
};

static inline uint64_t
leat_index_offset(const struct leat_index *index, uint64_t i)
{
	return index->offset[i] & ~LEAT_INDEX_DAMAGED;
}

static inline bool
leat_index_is_damaged(const struct leat_index *index, uint64_t i)
{
	return index->offset[i] & LEAT_INDEX_DAMAGED;
}

static inline uint64_t
leat_index_length(const struct leat_index *index, uint64_t i)
{
	return (index->end ? index->end[i] : leat_index_offset(index, i + 1)) - leat_index_offset(index, i);
}

/* Loads and checks the index of `file`. LEAT_AGAIN (no error text): no valid index, build one; the reason is
 * logged. */
enum leat_status leat_index_load(struct leat_index *index, const struct leat_index_kind *kind,
                                 const struct leat_object *file, struct leat_mem *mem, const struct leat_log *log,
                                 struct leat_err *err);

/* Building: init, add each sample in order, end with the size of the data. For a compressed file, set `packed` and add
 * points in between. */
void leat_index_init(struct leat_index *index, struct leat_mem *mem);
enum leat_status leat_index_grow(struct leat_index *index, struct leat_err *err); /* makes room for one more */

static inline enum leat_status
leat_index_add(struct leat_index *index, uint64_t offset, bool damaged, struct leat_err *err)
{
	if (index->count == index->cap) {
		enum leat_status status = leat_index_grow(index, err);

		if (status != LEAT_OK)
			return status;
	}
	index->block[index->count++] = offset | (damaged ? LEAT_INDEX_DAMAGED : 0);
	return LEAT_OK;
}

/* The same for kinds with gaps, which must not use leat_index_add. */
enum leat_status leat_index_add_span(struct leat_index *index, uint64_t offset, uint64_t end, bool damaged,
                                     struct leat_err *err);
void leat_index_drop(struct leat_index *index); /* removes the last sample */
enum leat_status leat_index_end(struct leat_index *index, uint64_t size, struct leat_err *err);

/* Saves a finished index. */
enum leat_status leat_index_save(const struct leat_index *index, const struct leat_index_kind *kind,
                                 const struct leat_object *file, struct leat_mem *mem, struct leat_err *err);

/* Appends the bytes of its file; the text fails if there is no memory. */
void leat_index_add_bytes(const struct leat_index *index, const struct leat_index_kind *kind,
                          const struct leat_object *file, struct leat_str *out);

void leat_index_free(struct leat_index *index); /* accepts a zeroed one */

/* Points the index into bytes that have passed leat_index_fault. */
void leat_index_borrow(struct leat_index *index, const void *bytes, size_t len, const struct leat_index_kind *kind,
                       const struct leat_object *file, struct leat_mem *mem);

/* Checks the bytes of an index file for `file`: returns what is wrong in a few words, NULL if valid. `bytes` is 8-byte
 * aligned. *stale: the index was valid for an earlier version of the data. */
const char *leat_index_fault(const void *bytes, size_t len, const struct leat_index_kind *kind,
                             const struct leat_object *file, bool *stale);

#endif
