/* example_rows.h - write many tf.train.Examples with the same features
 *
 * What precedes a value in an Example depends on the feature's name and the encoded length of the value only. A
 * struct leat_row_feature has these bytes ready for single numbers, which most columns of tables are, so writing one is
 *two small copies. The bytes are those of leat_example_add_... (example.h).
 *
 *	unsigned char *to = leat_row_begin(buffer);
 *	to = leat_row_put_int64(&user, to, 42);
 *	to = leat_row_put_float(&amount, to, 9.5f);
 *	record = leat_row_end(buffer, to, &len);
 *
 * The caller provides room: LEAT_ROW_ROOM and, for each feature, leat_row_feature_room. An entry is read-only once it
 *is initialized: any thread. */
#ifndef LEAT_FORMAT_EXAMPLE_ROWS_H
#define LEAT_FORMAT_EXAMPLE_ROWS_H

#include "base/mem.h"
#include "format/example.h"

enum {
	LEAT_MAX_VARINT = 10,
	LEAT_ROW_GAP = 12 + 1 + LEAT_MAX_VARINT, /* before the features: TFRecord's header, a tag and a length */
	LEAT_ROW_ROOM = LEAT_ROW_GAP + 4,
};

/* A feature of every row. */
struct leat_row_feature {
	struct leat_mem *mem;
	enum leat_feature_kind kind;
	char *key;
	size_t key_len;
	struct {
		unsigned char *bytes;
		size_t len;
	} head[LEAT_MAX_VARINT + 1]; /* what precedes one number, by its encoded length; 0: an empty text */
	size_t short_text;           /* length of a text from which on head[0] has other varints than of 1 byte */
	unsigned char *heads;        /* memory of all */
};

enum leat_status leat_row_feature_init(struct leat_row_feature *feature, const char *key, enum leat_feature_kind kind,
                                       struct leat_mem *mem, struct leat_err *err);
void leat_row_feature_free(struct leat_row_feature *feature); /* accepts a zeroed one */

/* Upper bound for a feature with `count` values that have `len` bytes together. */
size_t leat_row_feature_room(const struct leat_row_feature *feature, size_t count, size_t len);

/* Each returns the end of what it wrote. Numbers are those of the entry's kind. */
unsigned char *leat_row_put_float(const struct leat_row_feature *feature, unsigned char *to, float value);
unsigned char *leat_row_put_int64(const struct leat_row_feature *feature, unsigned char *to, int64_t value);
unsigned char *leat_row_put_floats(const struct leat_row_feature *feature, unsigned char *to, const float *values,
                                   size_t count);
unsigned char *leat_row_put_int64s(const struct leat_row_feature *feature, unsigned char *to, const int64_t *values,
                                   size_t count);
unsigned char *leat_row_put_bytes(const struct leat_row_feature *feature, unsigned char *to, const void *bytes,
                                  size_t len);
/* `len` is an array. */
unsigned char *leat_row_put_texts(const struct leat_row_feature *feature, unsigned char *to, const void *const *bytes,
                                  const size_t *len, size_t count);

/* A record of a TFRecord file, with its frame and checksums. */
static inline unsigned char *
leat_row_begin(unsigned char *buffer)
{
	return buffer + LEAT_ROW_GAP;
}
unsigned char *leat_row_end(unsigned char *buffer, unsigned char *to, size_t *len);

/* The same without a gap before the record, which begins at `begin`. How many bytes its length takes is known at the
 * end, so `digits` is a guess, from 1 to LEAT_MAX_VARINT: that of the record before. If it is wrong, the features are
 * moved. */
static inline unsigned char *
leat_row_begin_at(unsigned char *begin, size_t digits)
{
	return begin + LEAT_ROW_GAP - LEAT_MAX_VARINT + digits;
}
/* Returns the end of the record. */
unsigned char *leat_row_end_at(unsigned char *begin, unsigned char *to, size_t *digits);

#endif
