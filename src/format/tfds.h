/* tfds.h - folders that TensorFlow Datasets prepared: splits, and features
 *
 * A version's folder holds dataset_info.json (splits, and how many samples each shard has),
 * features.json (what a sample is made of) and TFRecord files of tf.train.Examples. Both JSON
 * files are protobuf messages: whole numbers may be text. */
#ifndef LEAT_FORMAT_TFDS_H
#define LEAT_FORMAT_TFDS_H

#include <jansson.h>

#include "base/opt.h"
#include "format/example.h"
#include "format/sample.h"
#include "format/stored.h"

/* The params of the source. */
struct leat_tfds_params {
	const char *folder, *split;
	struct leat_strings fields;
	bool crc;
};

/* ---- splits (tfds_split.c) ---- */

struct leat_tfds_split {
	const char *name, *template; /* in the JSON; template: of file names, NULL: the usual one */
	size_t shards;
	uint64_t *length; /* samples, by shard */
	uint64_t samples; /* of all shards */
};

struct leat_tfds_splits {
	struct leat_mem *mem;
	size_t count;
	struct leat_tfds_split *split;
};

/* What dataset_info.json says. Keeps pointers into the JSON. */
enum leat_status leat_tfds_splits_read(struct leat_tfds_splits *splits, const json_t *info, struct leat_mem *mem,
                                       struct leat_err *err);
void leat_tfds_splits_free(struct leat_tfds_splits *splits); /* takes a zeroed one */

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

/* "train", "train[:80%]", "train[100:200]+test", "train[1shard:]", "all": as TFDS reads them, percents rounded to the
 * closest sample, halves to the even one. */
enum leat_status leat_tfds_choose(struct leat_tfds_parts *parts, const char *text,
                                  const struct leat_tfds_splits *splits, struct leat_mem *mem, struct leat_err *err);
void leat_tfds_parts_free(struct leat_tfds_parts *parts); /* takes a zeroed one */

/* ---- features (tfds_features.c) ---- */

struct leat_tfds_feature {
	char *name;                     /* "objects/bbox": the field's, and the key in the Example */
	const char *why;                /* it cannot be a field; NULL: it can */
	enum leat_feature_kind kind;    /* in the Example */
	const struct leat_stored *type; /* of numbers; NULL: one byte string */
	bool encoded;                   /* numbers as one byte string */
	bool dynamic;                   /* encoded, at name/value, with a shape at name/shape */
	int ndim;                       /* of numbers */
	int64_t shape[LEAT_MAX_DIMS];   /* -1: differs; once at most unless dynamic */
};

struct leat_tfds_features {
	struct leat_mem *mem;
	size_t count, cap;
	struct leat_tfds_feature *feature;
};

/* What features.json says, nested ones by names with slashes. */
enum leat_status leat_tfds_features_read(struct leat_tfds_features *features, const json_t *root, struct leat_mem *mem,
                                         struct leat_err *err);
void leat_tfds_features_free(struct leat_tfds_features *features); /* takes a zeroed one */

/* Worker threads. The value of a feature that was found in a record; `shape` is that of a dynamic one. An error
 * does not say where. LEAT_LIMIT: scratch is full. */
enum leat_status leat_tfds_value(const struct leat_tfds_feature *feature, const struct leat_feature *found,
                                 const struct leat_feature *shape, struct leat_scratch *scratch,
                                 struct leat_datum *datum, struct leat_err *err);
/* Scratch that one value takes at most, in a record of so many bytes. */
uint64_t leat_tfds_scratch(const struct leat_tfds_feature *feature, uint64_t record);

#endif
