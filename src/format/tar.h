/* tar.h - tar files as WebDataset lays them out: headers, names, and the index of samples
 *
 * A file is a row of entries, each a header of 512 bytes and its data padded to a multiple
 * of 512; two blocks of zeros end it. Read are ustar, GNU's long names ('L') and pax's
 * extended headers (path and size). The *key* of a file is its path up to the first dot
 * of its last part, its *field* what follows that dot, in lower case: neighbours with equal
 * keys are one sample. No samples are in entries that are not regular files, in names
 * without a dot or that begin with one, and below folders named __LIKE_THIS__.
 *
 * No state but the caller's: any thread. */
#ifndef LEAT_FORMAT_TAR_H
#define LEAT_FORMAT_TAR_H

#include "base/opt.h"
#include "format/indexed.h"
#include "format/sample.h"

/* The params of the source. */
struct leat_tar_params {
	struct leat_strings patterns, fields;
};

enum {
	LEAT_TAR_BLOCK = 512,
	LEAT_TAR_NAME = 4096,                /* longest path, with a NUL: what Linux has */
	LEAT_TAR_MAX_EXTENSION = 128 * 1024, /* of data that describes the next entry */
};

enum leat_tar_kind {
	LEAT_TAR_FILE,
	LEAT_TAR_SPARSE,    /* a file with holes, whose data is not as it lies there */
	LEAT_TAR_OTHER,     /* a folder, a link: no file */
	LEAT_TAR_EXTENSION, /* its data describes the entry that follows: leat_tar_extension */
	LEAT_TAR_ZERO,      /* no header but zeros */
};

/* One entry, as its header and the extensions before it say. Zeroed at first, then used from entry to entry. */
struct leat_tar {
	enum leat_tar_kind kind;
	char type;
	uint64_t size; /* of the data */
	size_t len;    /* of the name */
	char name[LEAT_TAR_NAME];
	/* Of the next entry, by extensions: */
	bool has_name, has_size, sparse;
	uint64_t next_size;
};

/* Reads a header block. What is wrong with it, in a few words; NULL: nothing. */
const char *leat_tar_header(struct leat_tar *tar, const unsigned char *block);
/* Reads the tar->size bytes behind the header of an extension, LEAT_TAR_MAX_EXTENSION at most. */
const char *leat_tar_extension(struct leat_tar *tar, const unsigned char *data);

/* What the data takes in the file, padding included. */
static inline uint64_t
leat_tar_padded(const struct leat_tar *tar)
{
	return (tar->size + LEAT_TAR_BLOCK - 1) / LEAT_TAR_BLOCK * LEAT_TAR_BLOCK;
}

/* Is this the name of a sample's file? Then name[0..*key) is the key, and behind the dot at name[*key] the field. */
bool leat_tar_split(const char *name, size_t len, size_t *key);

/* ---- arrays (tar_array.c) ---- */

/* Reads "float32[8, ?]", or of a single value "float32", into the field's type and shape; false: it is none. */
bool leat_tar_type(const char *text, struct leat_field *field);
/* The array of a .npy file that is as `field` says, copied to scratch. An error does not say where. LEAT_LIMIT: scratch
 * is full. */
enum leat_status leat_tar_array(const struct leat_field *field, const unsigned char *bytes, size_t len,
                                struct leat_scratch *scratch, struct leat_datum *datum, struct leat_err *err);

/* Made by walking over the headers (tar_index.c). A sample's bytes are those of all its entries. */
extern const struct leat_index_kind leat_tar_index;

#endif
