/* data_index.h - one index for a whole data set on a server: its files, their versions, and where their samples are
 *
 * Listing files on a server and looking for the index of each takes a request for every file, and
 * building indexes reads all of the data. `leat index` does both ahead of time and saves the result
 * as one object, so that opening the data set takes one request.
 *
 * It belongs to the names and patterns it was made for, in the same order. Its name: that of the
 * pattern, as in `.train-*.tfrecord.leatidx`; for several, or if more than the last part of the name
 * is a pattern, a hash of them. The place: next to the data, or in the user's cache folder
 * (beside.h).
 *
 * Files that were added later are not noticed: that would take a listing. A file that was replaced
 * or removed is: each read names the version that was indexed. The index may name only files that the
 * patterns could have matched.
 *
 * One thread. */
#ifndef LEAT_FORMAT_DATA_INDEX_H
#define LEAT_FORMAT_DATA_INDEX_H

#include "format/index.h"
#include "format/sidecar.h"

/* What to do about a file that is not as it was indexed. */
#define LEAT_INDEX_AGAIN "run 'leat index' again"

/* The sections of the sidecar. */
enum {
	LEAT_DATA_INDEX_OPERAND,  /* for each file, the pattern that matched it */
	LEAT_DATA_INDEX_NAME_AT,  /* count + 1 numbers */
	LEAT_DATA_INDEX_NAMES,    /* URIs with a NUL at their end; "": the same as the pattern */
	LEAT_DATA_INDEX_SIZES,    /* count numbers */
	LEAT_DATA_INDEX_TIMES,    /* count numbers: leat_object.mtime_ns */
	LEAT_DATA_INDEX_VERSIONS, /* count times struct leat_version */
	LEAT_DATA_INDEX_AT,       /* count numbers: where the index of each file (index.h) begins; multiples of 8 */
	LEAT_DATA_INDEX_LENGTHS,  /* count numbers: its length; 0: none, the file is empty */
	LEAT_DATA_INDEX_INDEXES,
	LEAT_DATA_INDEX_SECTIONS,
};

struct leat_data_index {
	struct leat_mem *mem;
	void *bytes;                 /* NULL: not loaded */
	const uint64_t *at, *length; /* the sections LEAT_DATA_INDEX_AT, LENGTHS and INDEXES */
	const char *indexes;
};

/* Loads the index of all files that match the patterns, and opens those files. LEAT_AGAIN (no error text): there is
 * none, or the data is local. */
enum leat_status leat_data_index_open(struct leat_data_index *data, struct leat_files **files,
                                      const struct leat_index_kind *kind, struct leat_stores *stores,
                                      const char *const *patterns, size_t count, struct leat_mem *mem,
                                      const struct leat_log *log, struct leat_err *err);
void leat_data_index_close(struct leat_data_index *data); /* accepts a zeroed one */

/* As leat_data_index_open, for bytes at hand, 8-byte aligned: returns what is wrong with them, NULL if valid. */
const char *leat_data_index_read(const void *bytes, size_t len, struct leat_files **files,
                                 const struct leat_index_kind *kind, struct leat_stores *stores,
                                 const char *const *patterns, size_t count, struct leat_mem *mem);

/* The index of file `i`; *len 0: it has none. */
const void *leat_data_index_at(const struct leat_data_index *data, size_t i, size_t *len);

/* A file to be saved, and its index. */
struct leat_data_index_file {
	const struct leat_index_kind *kind;
	struct leat_index *index;
};

/* Whether such an index can be made: all patterns are on servers, and no name is a secret. */
bool leat_data_index_is_for(struct leat_stores *stores, const char *const *patterns, size_t count,
                            struct leat_mem *mem);
/* Saves the index of `files`, the matches of the patterns; `file` has as many entries. *path: its name, freed by the
 * caller. */
enum leat_status leat_data_index_save(struct leat_stores *stores, const char *const *patterns, size_t count,
                                      struct leat_files *files, const struct leat_data_index_file *file,
                                      struct leat_mem *mem, char **path, struct leat_err *err);

#endif
