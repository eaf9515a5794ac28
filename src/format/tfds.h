/* tfds.h - folders prepared by TensorFlow Datasets: splits and features
 *
 * A version's folder holds dataset_info.json (splits, and the sample count of each shard),
 * features.json (the features of a sample) and TFRecord files of tf.train.Examples. Both JSON
 * files are protobuf messages, so integers may be written as text. */
#ifndef LEAT_FORMAT_TFDS_H
#define LEAT_FORMAT_TFDS_H

#include <jansson.h>

#include "base/opt.h"
#include "format/example.h"
#include "format/sample.h"
#include "format/stored.h"

/* Parameters of the source. */
struct leat_tfds_params {
	const char *folder, *split;
	struct leat_strings fields;
	bool crc;
};

/* ---- splits (tfds_split.c) ---- */

struct leat_tfds_split {
	const char *name, *template; /* borrowed from the JSON; template: of file names, NULL: default */
	size_t shards;
	uint64_t *length; /* samples per shard */
	uint64_t samples; /* of all shards */
};

struct leat_tfds_splits {
	struct leat_mem *mem;
	size_t count;
	struct leat_tfds_split *split;
};

/* Reads dataset_info.json. Keeps pointers into the JSON. */
enum leat_status leat_tfds_splits_read(struct leat_tfds_splits *splits, const json_t *info, struct leat_mem *mem,
                                       struct leat_err *err);
void leat_tfds_splits_free(struct leat_tfds_splits *splits); /* accepts a zeroed one */

/* Samples [from, to) of a split. */
struct leat_tfds_part {
	size_t split;
	uint64_t from, to;
};

struct leat_tfds_parts {
	struct leat_mem *mem;
	size_t count, cap;
	struct leat_tfds_part *part;
};

/* Parses "train", "train[:80%]", "train[100:200]+test", "train[1shard:]" or "all" as TFDS does: percentages round to
 * the nearest sample, halves to even. */
enum leat_status leat_tfds_choose(struct leat_tfds_parts *parts, const char *text,
                                  const struct leat_tfds_splits *splits, struct leat_mem *mem, struct leat_err *err);
void leat_tfds_parts_free(struct leat_tfds_parts *parts); /* accepts a zeroed one */

/* ---- features (tfds_features.c) ---- */

struct leat_tfds_feature {
	char *name;                     /* "objects/bbox": the field and the key in the Example */
	const char *why;                /* why it cannot be a field; NULL: it can */
	enum leat_feature_kind kind;    /* in the Example */
	const struct leat_stored *type; /* NULL: one byte string */
	bool is_class;                  /* a class label, whose names may be in name.labels.txt */
	bool encoded;                   /* numbers stored as one byte string */
	bool dynamic;                   /* encoded, at name/value, with a shape at name/shape */
	int ndim;                       /* of numbers */
	int64_t shape[LEAT_MAX_DIMS];   /* -1: variable; at most one, unless dynamic */
};

struct leat_tfds_features {
	struct leat_mem *mem;
	size_t count, cap;
	struct leat_tfds_feature *feature;
};

/* Reads features.json. Nested features have names with slashes. */
enum leat_status leat_tfds_features_read(struct leat_tfds_features *features, const json_t *root, struct leat_mem *mem,
                                         struct leat_err *err);
void leat_tfds_features_free(struct leat_tfds_features *features); /* accepts a zeroed one */

/* Worker threads. Reads the value of a feature found in a record; `shape` is the stored shape if dynamic. Errors don't
 * name the file. LEAT_LIMIT: scratch is full. */
enum leat_status leat_tfds_value(const struct leat_tfds_feature *feature, const struct leat_feature *found,
                                 const struct leat_feature *shape, struct leat_scratch *scratch,
                                 struct leat_datum *datum, struct leat_err *err);
/* Upper bound on the scratch for one value in a record of `record` bytes. */
uint64_t leat_tfds_scratch(const struct leat_tfds_feature *feature, uint64_t record);

#endif
