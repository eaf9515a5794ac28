/* example.h - tf.train.Example: read in place from a record, and written
 *
 * As protobuf text:	message Example   { Features features = 1; }
 *			message Features  { map<string, Feature> feature = 1; }
 *			message Feature   { oneof { BytesList 1, FloatList 2, Int64List 3 } }
 *			each list         { repeated value = 1; }, numbers packed or not
 * Unknown fields are skipped. If a key appears twice, the last one counts. Encodings that no
 * writer produces (groups, two lists in one feature) are rejected as damage.
 *
 * Reading allocates nothing; its only state is the order hint: any thread. */
#ifndef LEAT_FORMAT_EXAMPLE_H
#define LEAT_FORMAT_EXAMPLE_H

#include <stdatomic.h>

#include "base/err.h"
#include "base/str.h"

enum leat_feature_kind {                    /* numbered as in the message */
	                 LEAT_FEATURE_NONE, /* the feature is missing or has no list */
	                 LEAT_FEATURE_BYTES,
	                 LEAT_FEATURE_FLOAT,
	                 LEAT_FEATURE_INT64,
};

const char *leat_feature_kind_name(enum leat_feature_kind kind); /* "int64" */

struct leat_feature {
	enum leat_feature_kind kind;
	const unsigned char *list; /* the list's message, in the record */
	size_t len;
};

struct leat_feature_key {
	const char *text;
	size_t len;
};

/* The records of a file mostly list their features in the same order. This remembers which wanted feature came at each
 * position in an earlier record. Only a hint, shared by all threads. Initially zero. */
enum { LEAT_EXAMPLE_PLACES = LEAT_MAX_FIELDS };
struct leat_example_order {
	atomic_ushort wanted[LEAT_EXAMPLE_PLACES];
};

/* Finds the wanted features: found[i] belongs to key[i]. At most LEAT_MAX_FIELDS keys. */
enum leat_status leat_example_find(const unsigned char *record, size_t len, const struct leat_feature_key *key,
                                   size_t count, struct leat_example_order *order, struct leat_feature *found,
                                   struct leat_err *err);

/* Counts the values of a feature. */
enum leat_status leat_feature_count(const struct leat_feature *feature, size_t *count, struct leat_err *err);
/* Reads the first `count` values of a feature of that kind. */
enum leat_status leat_feature_floats(const struct leat_feature *feature, float *values, size_t count,
                                     struct leat_err *err);
enum leat_status leat_feature_int64s(const struct leat_feature *feature, int64_t *values, size_t count,
                                     struct leat_err *err);
/* Gets the first byte string, in the record. Fails if there is none. */
enum leat_status leat_feature_bytes(const struct leat_feature *feature, const unsigned char **bytes, size_t *len,
                                    struct leat_err *err);

/* For messages: the feature names of a record, up to any damage; unprintable characters are replaced and long names
 * truncated. */
struct leat_example_names {
	size_t count, more; /* listed in name; omitted */
	char name[24][LEAT_MAX_NAME + 1];
};
void leat_example_list(const unsigned char *record, size_t len, struct leat_example_names *names);

/* ---- writing (example_write.c) ---- */

/* init, then for each record: begin, add..., finish; free. One thread. */
struct leat_example {
	struct leat_str bytes;
};

void leat_example_init(struct leat_example *example, struct leat_mem *mem, size_t max);
void leat_example_free(struct leat_example *example);
void leat_example_begin(struct leat_example *example);
void leat_example_add_bytes(struct leat_example *example, const char *key, const void *bytes, size_t len);
void leat_example_add_floats(struct leat_example *example, const char *key, const float *values, size_t count);
void leat_example_add_int64s(struct leat_example *example, const char *key, const int64_t *values, size_t count);
/* Gets the record, valid until the next call. Reports earlier allocation failures, too. */
enum leat_status leat_example_finish(struct leat_example *example, const void **record, size_t *len,
                                     struct leat_err *err);

#endif
