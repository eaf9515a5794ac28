/* indexed.h - many files with an index each: what the sources that need one share
 *
 * Indexes are loaded or, once, made in parallel over the files. A damaged region counts
 * as one sample, so that on_error decides about it like about any bad sample.
 *
 * One thread, but where it says otherwise. */
#ifndef LEAT_FORMAT_INDEXED_H
#define LEAT_FORMAT_INDEXED_H

#include "format/index.h"

enum leat_index_state {
	LEAT_INDEX_FRESH,   /* the one that was there is right, or the file is empty and needs none */
	LEAT_INDEX_BUILT,   /* made and saved */
	LEAT_INDEX_UNSAVED, /* made, but it could not be saved */
	LEAT_INDEX_FAILED,  /* the file cannot be read, or is none of its format */
};

struct leat_indexed {
	struct leat_mem *mem;
	struct leat_files *files; /* borrowed */
	struct leat_index *index; /* per file */
	uint64_t *first;          /* file i holds samples [first[i], first[i + 1]) */
	uint64_t damaged;
	uint64_t max_length; /* of a sample that is not damaged */
	size_t last;         /* the file that was found last: neighbours are mostly in the same one */
};

/* Zeroes and fills it; frees what it took when it fails. Warns of damage. */
enum leat_status leat_indexed_open(struct leat_indexed *indexed, const struct leat_index_kind *kind,
                                   struct leat_files *files, unsigned threads, struct leat_mem *mem,
                                   const struct leat_log *log, struct leat_err *err);
void leat_indexed_close(struct leat_indexed *indexed); /* takes a zeroed one */
/* The first file that has a sample, good or damaged. There is one when the count is not 0. */
size_t leat_indexed_first_file(const struct leat_indexed *indexed);

/* ---- ahead of the first open ---- */

/* What became of one file. */
struct leat_index_report {
	const char *uri;
	uint64_t bytes;
	uint64_t samples;                /* readable ones */
	uint64_t damaged, damaged_bytes; /* regions that hold no readable sample */
	enum leat_index_state state;
	const char *reason; /* UNSAVED, FAILED: a sentence; else NULL */
};

/* Makes the indexes of all files that `patterns` name, as the first open would, and tells of each in
 * order. `kind_of` says which index a file gets. Fails only when the files cannot be listed or memory is short. */
enum leat_status leat_index_files(const char *const *patterns, size_t count,
                                  const struct leat_index_kind *(*kind_of)(const char *uri), unsigned threads,
                                  struct leat_mem *mem, const struct leat_log *log,
                                  void (*tell)(void *arg, const struct leat_index_report *report), void *arg,
                                  struct leat_err *err);

#endif
