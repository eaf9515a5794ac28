/* npy_file.h - the .npy files of a source: their headers, and arrays in memory
 *
 * `file` is a number in source->files. Arrays of up to 1 MiB, all files of a field together, are
 * read when the source opens. Larger ones are mapped where the store can: fields point into the page
 * cache and are first copied into the batch or by an op that works in place (store/file_map.c explains
 * what happens if a file changes meanwhile). Threads: opening by one; leat_npy_file_touch by any. */
#ifndef LEAT_FORMAT_NPY_FILE_H
#define LEAT_FORMAT_NPY_FILE_H

#include "format/npy_header.h"
#include "format/source.h"

struct leat_npy_file {
	struct leat_npy npy;
	const unsigned char *data; /* the array; NULL: not in memory */
	bool mapped;
	bool aligned; /* elements are aligned for their type, as in files written by NumPy */
	void *block;  /* the array, if it was read */
};

/* An open file without a name, such as memory that a program shares: only its field identifies it. */
bool leat_npy_file_is_descriptor(const struct leat_object *object);
/* For messages: 'x.npy', or the field if the file has no name. */
const char *leat_npy_file_shown(const struct leat_source *source, size_t file, const char *field, char buf[LEAT_URI]);

/* Reads the headers of files [begin, begin + count) into array[0..]. `cut`: a file may lack the end of its array.
 * Scalars are refused. `field`: for messages. */
enum leat_status leat_npy_files_read_headers(struct leat_source *source, size_t begin, size_t count, const char *field,
                                             bool cut, unsigned threads, struct leat_npy_file *array,
                                             struct leat_err *err);
/* Reads small arrays, and maps larger ones if the store can. Otherwise all of them must fit in memory. */
enum leat_status leat_npy_files_bring(struct leat_source *source, size_t begin, size_t count, unsigned threads,
                                      struct leat_npy_file *array, struct leat_err *err);
void leat_npy_files_free(struct leat_source *source, size_t count, struct leat_npy_file *array);

/* For a source's `touch`: pieces of `length` bytes, each at an offset in the file. */
enum leat_status leat_npy_file_touch(const struct leat_source *source, size_t file, const struct leat_npy_file *array,
                                     const uint64_t *offset, size_t count, uint64_t length, int flags,
                                     struct leat_err *err);

/* Which of `count` files holds `row`: file i has rows [first[i], first[i + 1]). */
static inline size_t
leat_npy_file_of(const uint64_t *first, size_t count, uint64_t row)
{
	size_t low = 0, high = count;

	while (high - low > 1) {
		size_t middle = low + (high - low) / 2;

		if (first[middle] <= row)
			low = middle;
		else
			high = middle;
	}
	return low;
}

/* For `fingerprint`: what identifies an array regardless of its location. */
void leat_npy_file_fingerprint(const struct leat_source *source, size_t file, const struct leat_npy_file *array,
                               const char *field, struct leat_sha256 *sha);

#endif
