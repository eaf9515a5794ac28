/* record.h - records of TFRecord files: their layout, indexing, reading and writing
 *
 * A file is a row of records, each
 *	u64 length | u32 masked CRC-32C of those 8 bytes | data | u32 masked CRC-32C of the data
 * little-endian. The file may be compressed as a whole (gzip or zlib): then all of this is
 * what it inflates to. The sources tfrecord and tfds share it. */
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
	LEAT_TFRECORD_SPACING = 4 * 1024 * 1024, /* inflated bytes from point to point, at least */
};

/* The masked CRC of `len` bytes. */
static inline uint32_t
leat_tfrecord_crc(const void *bytes, size_t len)
{
	return leat_crc32c_mask(leat_crc32c(0, bytes, len));
}

/* What is wrong with the record header at `head`, `left` bytes before the file's end (with fewer than
 * LEAT_TFRECORD_HEAD, head is not read); NULL: nothing, and *length is the data's. */
const char *leat_tfrecord_header_fault(const unsigned char *head, uint64_t left, uint64_t *length);

/* Made by walking over the record headers (record_index.c). */
extern const struct leat_index_kind leat_tfrecord_index;

/* How a file of `size` bytes is compressed that begins with these, which are no record header. ZLIB's two bytes are
 * also those of some record lengths, but with what follows in a compressed file, the length is beyond the file. */
enum leat_packing leat_tfrecord_packing(const unsigned char *bytes, size_t have, uint64_t size);
/* The index of a compressed file (record_packed.c). */
enum leat_status leat_tfrecord_index_packed(struct leat_files *files, size_t i, enum leat_packing packing,
                                            struct leat_mem *mem, struct leat_index *index, struct leat_err *err);

/* ---- reading (record.c) ---- */

/* Is the record, head and tail included, what the extent says? With `crc` its checksums are looked at. */
enum leat_status leat_tfrecord_check(const struct leat_files *files, const struct leat_raw *raw, bool crc,
                                     struct leat_err *err);
/* The same, and copies the data to `to`, past the caches of the CPU if that is worth it. */
enum leat_status leat_tfrecord_check_copy(const struct leat_files *files, const struct leat_raw *raw, bool crc,
                                          unsigned char *to, bool past_cache, struct leat_err *err);
/* LEAT_DATA: what is wrong at the begin of a damaged region, by reading its header again, or by the index of a
 * compressed file. */
enum leat_status leat_tfrecord_damage(const struct leat_indexed *indexed, const struct leat_extent *extent,
                                      struct leat_err *err);
/* LEAT_DATA: the same for a compressed file, at offset `at` of it; `out` is that of the first record that is lost. */
enum leat_status leat_tfrecord_fail_packed(const char *uri, uint64_t at, const char *fault, uint64_t out,
                                           struct leat_err *err);
/* Where sample `i` of file `file` lies. */
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

/* Adds a record to a file that someone else opens and ends. */
enum leat_status leat_tfrecord_write(struct leat_writer *out, const void *data, size_t len, struct leat_err *err);

/* One thread. The file appears under its name when it is closed, whole. */
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
void leat_tfrecord_writer_abort(struct leat_tfrecord_writer *writer); /* instead of close; takes a zeroed one */

#endif
