/* indexed.h - a set of files with one index each, shared by all sources that need indexes
 *
 * Indexes are loaded or, the first time, built in parallel over the files. A damaged region
 * counts as one sample, so that on_error handles it like any bad sample.
 *
 * One thread, unless stated otherwise. */
#ifndef LEAT_FORMAT_INDEXED_H
#define LEAT_FORMAT_INDEXED_H

#include "base/opt.h"
#include "format/data_index.h"
#include "format/index.h"

enum leat_index_state {
	LEAT_INDEX_FRESH,   /* up to date, or the file is empty and needs none */
	LEAT_INDEX_BUILT,   /* built and saved */
	LEAT_INDEX_UNSAVED, /* built, but could not be saved */
	LEAT_INDEX_FAILED,  /* the file cannot be read, or has another format */
};

struct leat_indexed {
	struct leat_mem *mem;
	struct leat_files *files; /* borrowed */
	struct leat_index *index; /* per file */
	uint64_t *first;          /* file i holds samples [first[i], first[i + 1]) */
	uint64_t damaged;
	uint64_t max_length;         /* of undamaged samples */
	struct leat_data_index data; /* if the indexes come from it */
	size_t last;                 /* file of the last lookup; neighbours are mostly in the same one */
};

/* Opens the files that match the patterns, by the index of the data set if there is one, and their indexes.
 * Initializes *indexed; frees everything on failure, but *files are the caller's if they are not NULL. Warns of
 * damage. */
enum leat_status leat_indexed_open(struct leat_indexed *indexed, const struct leat_index_kind *kind,
                                   struct leat_stores *stores, const struct leat_strings *patterns,
                                   struct leat_files **files, unsigned threads, struct leat_mem *mem,
                                   const struct leat_log *log, struct leat_err *err);
/* The same for files that are open. */
enum leat_status leat_indexed_open_files(struct leat_indexed *indexed, const struct leat_index_kind *kind,
                                         struct leat_files *files, unsigned threads, struct leat_mem *mem,
                                         const struct leat_log *log, struct leat_err *err);
void leat_indexed_close(struct leat_indexed *indexed); /* accepts a zeroed one */
/* The first file that has a sample, good or damaged. The sample count must not be 0. */
size_t leat_indexed_first_file(const struct leat_indexed *indexed);

/* ---- indexing ahead of the first open ---- */

/* Result for one file. */
struct leat_index_report {
	const char *uri;
	uint64_t bytes;
	uint64_t samples;                /* readable ones */
	uint64_t damaged, damaged_bytes; /* regions that hold no readable sample */
	enum leat_index_state state;
	const char *reason; /* UNSAVED, FAILED: one sentence; otherwise NULL */
};

/* Builds the indexes of all files matching `patterns`, as the first open would, and calls `tell` for each file in
 * order. For files on servers, it then saves the index of the data set; *saved is its name, freed by the caller; NULL:
 * none. `saved` may be NULL. `kind_of` selects the index of a file. Fails only if the files cannot be listed, the index
 * of the data set cannot be saved, or memory runs out. */
enum leat_status leat_index_files(const char *const *patterns, size_t count,
                                  const struct leat_index_kind *(*kind_of)(const char *uri), unsigned threads,
                                  const struct leat_storage *storage, struct leat_mem *mem, const struct leat_log *log,
                                  void (*tell)(void *arg, const struct leat_index_report *report), void *arg,
                                  char **saved, struct leat_err *err);

#endif
