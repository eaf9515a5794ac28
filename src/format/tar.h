/* tar.h - tar files in WebDataset's layout: headers, names, and the sample index
 *
 * A tar file is a sequence of entries, each a 512-byte header and its data padded to a multiple
 * of 512, ended by two zero blocks. We read ustar, GNU long names ('L') and pax extended headers
 * (path and size). An entry's *key* is its path up to the first dot in the file name; its *field*
 * is the rest after that dot, in lower case. Consecutive entries with the same key form one
 * sample. Skipped are entries other than regular files, names that have no dot or begin with one,
 * and everything below folders named __LIKE_THIS__.
 *
 * All state is the caller's: any thread. */
#ifndef LEAT_FORMAT_TAR_H
#define LEAT_FORMAT_TAR_H

#include "base/opt.h"
#include "format/indexed.h"
#include "format/sample.h"

/* Parameters of the source. */
struct leat_tar_params {
	struct leat_strings patterns, fields;
};

enum {
	LEAT_TAR_BLOCK = 512,
	LEAT_TAR_NAME = 4096,                /* longest path including the NUL, as on Linux */
	LEAT_TAR_MAX_EXTENSION = 128 * 1024, /* longest extended header */
};

enum leat_tar_kind {
	LEAT_TAR_FILE,
	LEAT_TAR_SPARSE,    /* a file with holes; not stored verbatim */
	LEAT_TAR_OTHER,     /* a folder or link */
	LEAT_TAR_EXTENSION, /* describes the next entry; see leat_tar_extension */
	LEAT_TAR_ZERO,      /* a zero block */
};

/* One entry, from its header and the extended headers before it. Zero it once, then reuse it for each entry. */
struct leat_tar {
	enum leat_tar_kind kind;
	char type;
	uint64_t size; /* of the data */
	size_t len;    /* of the name */
	char name[LEAT_TAR_NAME];
	/* From extended headers, for the next entry: */
	bool has_name, has_size, sparse;
	uint64_t next_size;
};

/* Parses a header block. Returns what is wrong in a few words, NULL if valid. */
const char *leat_tar_header(struct leat_tar *tar, const unsigned char *block);
/* Parses the tar->size bytes (at most LEAT_TAR_MAX_EXTENSION) of an extended header. */
const char *leat_tar_extension(struct leat_tar *tar, const unsigned char *data);

/* Size of the data in the file, including padding. */
static inline uint64_t
leat_tar_padded(const struct leat_tar *tar)
{
	return (tar->size + LEAT_TAR_BLOCK - 1) / LEAT_TAR_BLOCK * LEAT_TAR_BLOCK;
}

/* Whether the name is that of a sample's file. If so, name[0..*key) is the key, name[*key] the dot, the rest the
 * field. */
bool leat_tar_split(const char *name, size_t len, size_t *key);

/* ---- arrays (tar_array.c) ---- */

/* Parses a type such as "float32[8, ?]", or "float32" for a scalar, into the field. False: not a type. */
bool leat_tar_type(const char *text, struct leat_field *field);
/* Copies the array of a .npy file to scratch; it must match `field`. Errors don't name the file. LEAT_LIMIT: scratch is
 * full. */
enum leat_status leat_tar_array(const struct leat_field *field, const unsigned char *bytes, size_t len,
                                struct leat_scratch *scratch, struct leat_datum *datum, struct leat_err *err);

/* Built by scanning the headers (tar_index.c). A sample spans all its entries. */
extern const struct leat_index_kind leat_tar_index;

#endif
