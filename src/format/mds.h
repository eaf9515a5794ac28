/* mds.h - MosaicML's MDS shards: their columns, and a sample's values
 *
 * A folder's index.json lists the shards, each a file
 *	u32 n | u32 offset[n + 1] | JSON, the same as in index.json | samples
 * little-endian. Sample i is at [offset[i], offset[i + 1]): the u32 lengths of its variable-length
 * columns, then the bytes of all columns, sorted by name. */
#ifndef LEAT_FORMAT_MDS_H
#define LEAT_FORMAT_MDS_H

#include "base/opt.h"
#include "format/sample.h"
#include "format/stored.h"

/* Parameters of the source. */
struct leat_mds_params {
	const char *folder;
	struct leat_strings fields;
};

/* How a column's bytes are interpreted. */
enum leat_mds_encoding {
	LEAT_MDS_BYTES,   /* opaque bytes */
	LEAT_MDS_NUMBER,  /* one number */
	LEAT_MDS_ARRAY,   /* numbers of a known shape */
	LEAT_MDS_SHAPED,  /* u8 (dimensions << 2 | log2 of a dimension's bytes), dimensions, numbers */
	LEAT_MDS_TYPED,   /* u8 type code, then as SHAPED */
	LEAT_MDS_UNKNOWN, /* unknown encoding */
};

struct leat_mds_column {
	enum leat_mds_encoding encoding;
	uint32_t size;                  /* in bytes; 0: variable */
	const struct leat_stored *type; /* of numbers; NULL: not known yet */
	int ndim;                       /* -1: not known yet */
	int64_t shape[LEAT_MAX_DIMS];
	int field; /* of the sample; -1: left out */
};

struct leat_mds_columns {
	size_t count;
	struct leat_mds_column *column;
	size_t variable; /* columns of variable size */
};

/* Parses an encoding such as "ndarray:float32:3,4". `size` is that in index.json, 0 if none. Unknown encodings become
 * LEAT_MDS_UNKNOWN. False: size and encoding contradict each other. */
bool leat_mds_parse(struct leat_mds_column *column, const char *encoding, uint32_t size);

/* Reads type and number of dimensions, where index.json lacks them, from a sample's bytes. Returns what is wrong, NULL
 * if valid. */
const char *leat_mds_learn(struct leat_mds_column *column, const unsigned char *bytes, size_t len);

/* Sets the field for a column. */
void leat_mds_field(const struct leat_mds_column *column, struct leat_field *field);
/* Size of its numbers in memory over their size in the file. */
unsigned leat_mds_growth(const struct leat_mds_column *column);

/* Worker threads. Reads a column's value; numbers are copied to scratch, because they are unaligned. Returns what is
 * wrong, or NULL; NULL with datum->data == NULL means that scratch is full. */
const char *leat_mds_value(const struct leat_mds_column *column, unsigned char *bytes, size_t len,
                           struct leat_scratch *scratch, struct leat_datum *datum);

/* Iterates over the columns of a sample. */
struct leat_mds_cut {
	const struct leat_mds_columns *columns;
	unsigned char *bytes;
	size_t len;
	size_t next, lengths, at; /* column, offset of the next length, offset of the next bytes */
	const char *fault;
};

void leat_mds_cut_begin(struct leat_mds_cut *cut, const struct leat_mds_columns *columns, unsigned char *bytes,
                        size_t len);
/* Gets the next column's bytes. False: no more columns, or damage described by `fault`. */
bool leat_mds_cut_next(struct leat_mds_cut *cut, size_t *column, unsigned char **bytes, size_t *len);

#endif
