/* mds.h - MosaicML's MDS shards: their columns, and a sample's values
 *
 * A folder's index.json lists the shards, each a file
 *	u32 n | u32 offset[n + 1] | JSON, the same as in index.json | samples
 * little-endian; sample i lies at [offset[i], offset[i + 1]): the u32 lengths of its columns of
 * variable length, then the bytes of all columns, in the order of their names. */
#ifndef LEAT_FORMAT_MDS_H
#define LEAT_FORMAT_MDS_H

#include "base/opt.h"
#include "format/sample.h"
#include "format/stored.h"

/* The params of the source. */
struct leat_mds_params {
	const char *folder;
	struct leat_strings fields;
};

/* How a column's bytes are to be taken. */
enum leat_mds_encoding {
	LEAT_MDS_BYTES,   /* as they are */
	LEAT_MDS_NUMBER,  /* one number */
	LEAT_MDS_ARRAY,   /* numbers of a shape that is known */
	LEAT_MDS_SHAPED,  /* u8 (dimensions << 2 | log2 of a dimension's bytes), dimensions, numbers */
	LEAT_MDS_TYPED,   /* u8 of a type, then the same */
	LEAT_MDS_UNKNOWN, /* nothing is known but where they are */
};

struct leat_mds_column {
	enum leat_mds_encoding encoding;
	uint32_t size;                  /* in bytes, of every sample; 0: it differs */
	const struct leat_stored *type; /* of numbers; NULL: not known yet */
	int ndim;                       /* -1: not known yet */
	int64_t shape[LEAT_MAX_DIMS];
	int field; /* of the sample; -1: left out */
};

struct leat_mds_columns {
	size_t count;
	struct leat_mds_column *column;
	size_t variable; /* those whose size differs */
};

/* What "ndarray:float32:3,4" means. `size`: that index.json tells, 0 for none. Encodings that nobody knows are
 * LEAT_MDS_UNKNOWN; false: size and encoding contradict each other. */
bool leat_mds_parse(struct leat_mds_column *column, const char *encoding, uint32_t size);

/* The type and number of dimensions that index.json does not tell, as a sample's bytes tell them. What is wrong
 * with them; NULL: nothing. */
const char *leat_mds_learn(struct leat_mds_column *column, const unsigned char *bytes, size_t len);

/* What a column becomes. */
void leat_mds_field(const struct leat_mds_column *column, struct leat_field *field);
/* How many times larger its numbers are in memory. */
unsigned leat_mds_growth(const struct leat_mds_column *column);

/* Worker threads. The value in a column's bytes; numbers are copied to scratch, because they are not aligned. What
 * is wrong; NULL: nothing, unless scratch is full: then datum->data is NULL. */
const char *leat_mds_value(const struct leat_mds_column *column, unsigned char *bytes, size_t len,
                           struct leat_scratch *scratch, struct leat_datum *datum);

/* Where the columns of a sample lie, one after the other. */
struct leat_mds_cut {
	const struct leat_mds_columns *columns;
	unsigned char *bytes;
	size_t len;
	size_t next, lengths, at; /* column, place of the next length, place of the next bytes */
	const char *fault;
};

void leat_mds_cut_begin(struct leat_mds_cut *cut, const struct leat_mds_columns *columns, unsigned char *bytes,
                        size_t len);
/* The next column's bytes; false: there is none, or `fault` says what is wrong. */
bool leat_mds_cut_next(struct leat_mds_cut *cut, size_t *column, unsigned char **bytes, size_t *len);

#endif
