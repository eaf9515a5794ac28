/* tfrecord.h - TFRecord files: their layout, indexing and writing
 *
 * A file is a row of records, each
 *	u64 length | u32 masked CRC-32C of those 8 bytes | data | u32 masked CRC-32C of the data
 * little-endian. The source (tfrecord.c) gives one sample per record. */
#ifndef LEAT_FORMAT_TFRECORD_H
#define LEAT_FORMAT_TFRECORD_H

#include "base/hash.h"
#include "base/opt.h"
#include "format/index.h"
#include "store/newfile.h"
#include "store/store.h"

enum {
	LEAT_TFRECORD_HEAD = 12,
	LEAT_TFRECORD_TAIL = 4,
	LEAT_TFRECORD_FRAME = LEAT_TFRECORD_HEAD + LEAT_TFRECORD_TAIL,
};

/* The masked CRC of `len` bytes. */
static inline uint32_t
leat_tfrecord_crc(const void *bytes, size_t len)
{
	return leat_crc32c_mask(leat_crc32c(0, bytes, len));
}

/* The params of the source. */
struct leat_tfrecord_params {
	struct leat_strings patterns;
	bool crc;
};

/* What is wrong with the record header at `head`, `left` bytes before the file's end (with fewer than
 * LEAT_TFRECORD_HEAD, head is not read); NULL: nothing, and *length is the data's. */
const char *leat_tfrecord_header_fault(const unsigned char *head, uint64_t left, uint64_t *length);

/* ---- indexing (tfrecord_index.c) ---- */

enum leat_index_state {
	LEAT_INDEX_FRESH,   /* the one that was there is right, or the file is empty and needs none */
	LEAT_INDEX_BUILT,   /* made and saved */
	LEAT_INDEX_UNSAVED, /* made, but it could not be saved */
	LEAT_INDEX_FAILED,  /* the file cannot be read, or is no file of records */
};

/* The index of file `i`: loaded, or made by walking over the record headers. `unsaved` says why it
 * could not be saved, which is no failure. Any thread. */
enum leat_status leat_tfrecord_prepare(struct leat_files *files, size_t i, struct leat_mem *mem,
                                       const struct leat_log *log, struct leat_index *index,
                                       enum leat_index_state *state, struct leat_err *unsaved, struct leat_err *err);

/* What became of one file. */
struct leat_tfrecord_report {
	const char *uri;
	uint64_t bytes;
	uint64_t samples;                /* readable ones */
	uint64_t damaged, damaged_bytes; /* regions that hold no readable record */
	enum leat_index_state state;
	const char *reason; /* UNSAVED, FAILED: a sentence; else NULL */
};

/* Makes the indexes of all files that `patterns` name, as the first open would, and tells of each in
 * order. Fails only when the files cannot be listed or memory is short. */
enum leat_status leat_tfrecord_index(const char *const *patterns, size_t count, unsigned threads, struct leat_mem *mem,
                                     const struct leat_log *log,
                                     void (*tell)(void *arg, const struct leat_tfrecord_report *report), void *arg,
                                     struct leat_err *err);

/* ---- writing (tfrecord_write.c) ---- */

/* Adds a record to a file that someone else opens and ends. */
enum leat_status leat_tfrecord_write(struct leat_newfile *out, const void *data, size_t len, struct leat_err *err);

/* One thread. The file appears under its name when it is closed, whole. */
struct leat_tfrecord_writer {
	struct leat_newfile out;
	uint64_t records;
};

enum leat_status leat_tfrecord_writer_open(struct leat_tfrecord_writer *writer, const char *path, struct leat_mem *mem,
                                           struct leat_err *err);
enum leat_status leat_tfrecord_writer_append(struct leat_tfrecord_writer *writer, const void *data, size_t len,
                                             struct leat_err *err);
enum leat_status leat_tfrecord_writer_close(struct leat_tfrecord_writer *writer, struct leat_err *err);
void leat_tfrecord_writer_abort(struct leat_tfrecord_writer *writer); /* instead of close; takes a zeroed one */

#endif
