/* record.h - records of TFRecord files: their layout, indexing, reading and writing
 *
 * A file is a sequence of records, each
 *	u64 length | u32 masked CRC-32C of those 8 bytes | data | u32 masked CRC-32C of the data
 * little-endian. The whole file may be compressed (gzip or zlib). Shared by the sources tfrecord
 * and tfds. */
#ifndef LEAT_FORMAT_RECORD_H
#define LEAT_FORMAT_RECORD_H

#include "base/hash.h"
#include "format/indexed.h"
#include "format/source.h"
#include "store/store.h"

enum {
	LEAT_TFRECORD_HEAD = 12,
	LEAT_TFRECORD_TAIL = 4,
	LEAT_TFRECORD_FRAME = LEAT_TFRECORD_HEAD + LEAT_TFRECORD_TAIL,
	LEAT_TFRECORD_SPACING = 4 * 1024 * 1024, /* minimum of inflated bytes between restart points */
};

/* The masked CRC of `len` bytes. */
static inline uint32_t
leat_tfrecord_crc(const void *bytes, size_t len)
{
	return leat_crc32c_mask(leat_crc32c(0, bytes, len));
}

/* Checks the record header at `head`, `left` bytes before the end of the file (if less than LEAT_TFRECORD_HEAD, head
 * is not read). Returns what is wrong; NULL if valid, and sets *length to the length of the data. */
const char *leat_tfrecord_header_fault(const unsigned char *head, uint64_t left, uint64_t *length);

/* Built by scanning the record headers (record_index.c). */
extern const struct leat_index_kind leat_tfrecord_index;

/* Detects the compression of a file of `size` bytes from its first bytes, which are not a valid record header. zlib's
 * two magic bytes may also begin a record length, but then the length read from a compressed file exceeds the file. */
enum leat_packing leat_tfrecord_packing(const unsigned char *bytes, size_t have, uint64_t size);
/* Builds the index of a compressed file (record_packed.c). */
enum leat_status leat_tfrecord_index_packed(struct leat_files *files, size_t i, enum leat_packing packing,
                                            struct leat_mem *mem, struct leat_index *index, struct leat_err *err);

/* ---- reading (record.c) ---- */

/* Checks that the record, including head and tail, matches the extent; with `crc`, also its checksums. */
enum leat_status leat_tfrecord_check(const struct leat_files *files, const struct leat_raw *raw, bool crc,
                                     struct leat_err *err);
/* The same, and copies the data to `to` (past_cache as in base/copy.h). */
enum leat_status leat_tfrecord_check_copy(const struct leat_files *files, const struct leat_raw *raw, bool crc,
                                          unsigned char *to, bool past_cache, struct leat_err *err);
/* LEAT_DATA: describes the damage at the beginning of a damaged region, by rereading its header or, in a compressed
 * file, from the index. */
enum leat_status leat_tfrecord_damage(const struct leat_indexed *indexed, const struct leat_extent *extent,
                                      struct leat_err *err);
/* LEAT_DATA: the same for a compressed file, damaged at offset `at`; `out` is the inflated offset of the first lost
 * record. */
enum leat_status leat_tfrecord_fail_packed(const char *uri, uint64_t at, const char *fault, uint64_t out,
                                           struct leat_err *err);
/* Locates sample `i` of file `file`. */
static inline void
leat_tfrecord_extent(const struct leat_indexed *indexed, size_t file, uint64_t i, struct leat_extent *extent)
{
	const struct leat_index *index = &indexed->index[file];

	*extent = (struct leat_extent){
		.file = (uint32_t)file,
		.head = LEAT_TFRECORD_HEAD,
		.tail = LEAT_TFRECORD_TAIL,
		.damaged = leat_index_is_damaged(index, i),
		.offset = leat_index_offset(index, i),
		.length = leat_index_length(index, i),
	};
	if (extent->damaged) {
		extent->head = extent->tail = 0;
	} else if (index->packed) {
		extent->lent = extent->length - LEAT_TFRECORD_FRAME;
		extent->head = extent->tail = 0;
		extent->length = 0;
	}
}

/* No sample at all, or none that can be read, is an error. */
enum leat_status leat_tfrecord_readable(const struct leat_indexed *indexed, struct leat_err *err);

/* ---- writing (record_write.c) ---- */

/* Appends a record to a file that the caller opens and closes. */
enum leat_status leat_tfrecord_write(struct leat_writer *out, const void *data, size_t len, struct leat_err *err);

/* One thread. The file appears under its name, complete, on close. */
struct leat_tfrecord_writer {
	struct leat_stores stores;
	struct leat_writer *out;
	uint64_t records;
};

enum leat_status leat_tfrecord_writer_open(struct leat_tfrecord_writer *writer, const char *path, struct leat_mem *mem,
                                           struct leat_err *err);
enum leat_status leat_tfrecord_writer_append(struct leat_tfrecord_writer *writer, const void *data, size_t len,
                                             struct leat_err *err);
enum leat_status leat_tfrecord_writer_close(struct leat_tfrecord_writer *writer, struct leat_err *err);
void leat_tfrecord_writer_abort(struct leat_tfrecord_writer *writer); /* instead of close; accepts a zeroed one */

#endif
