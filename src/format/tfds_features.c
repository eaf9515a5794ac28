/* tfds_features.c - features of TFDS datasets: parse features.json, and read values from Examples
 *
 * Nested features have names with slashes, in the Example and as fields. A sequence adds a
 * dimension to its contents. Features that cannot be a field (lists of text or images, sequences
 * of sequences, compressed tensors, audio, video) are listed with the reason.
 *
 * TFDS stores integers as int64 and all floats as float32. Integer fields are converted to the
 * type in features.json; float fields stay float32. Tensors encoded as bytes keep their type. */
#include "format/tfds.h"

#include <string.h>

#include "base/array.h"
#include "base/hash.h"

enum { MAX_DEPTH = 16, MAX_FEATURES = 4096 };

void
leat_tfds_features_free(struct leat_tfds_features *features)
{
	for (size_t i = 0; i < features->count; i++)
		leat_free(features->mem, features->feature[i].name);
	if (features->mem)
		leat_free(features->mem, features->feature);
	*features = (struct leat_tfds_features){0};
}

/* Position in the tree: the enclosing features and sequence. */
struct place {
	const char *path;
	int depth;
	bool in_sequence;
	int64_t length; /* of that sequence; -1: variable */
};

static enum leat_status
add(struct leat_tfds_features *features, const struct leat_tfds_feature *feature, const char *name,
    struct leat_err *err)
{
	enum leat_status status;

	if (features->count == MAX_FEATURES)
		return leat_fail(err, LEAT_DATA, "features.json has more than %d features", MAX_FEATURES);
	status = LEAT_GROW(features->mem, features->feature, features->cap, features->count + 1, MAX_FEATURES,
	                   "the features", err);
	if (status != LEAT_OK)
		return status;
	features->feature[features->count] = *feature;
	features->feature[features->count].name = leat_strdup(features->mem, name);
	if (!features->feature[features->count].name)
		return leat_fail_mem(err, features->mem, strlen(name) + 1, "the features");
	features->count++;
	return LEAT_OK;
}

/* ---- features.json ---- */

/* "-1" or "28", as text or as a number. */
static bool
read_dimension(const json_t *value, int64_t *dim)
{
	const char *text = json_string_value(value);
	uint64_t count = 0;

	*dim = -1;
	if ((text && strcmp(text, "-1") == 0) || (json_is_integer(value) && json_integer_value(value) == -1))
		return true;
	if (json_is_integer(value) && json_integer_value(value) >= 0)
		count = (uint64_t)json_integer_value(value);
	else if (!text || !*text || strlen(text) > 10 || strspn(text, "0123456789") != strlen(text))
		return false;
	for (; text && *text; text++)
		count = count * 10 + (uint64_t)(*text - '0');
	*dim = (int64_t)count;
	return count <= INT32_MAX;
}

/* Reads {"dimensions": [...]}, prefixed by the sequence's length. Returns what is wrong, or NULL. */
static const char *
read_shape(struct leat_tfds_feature *feature, const struct place *place, const json_t *json)
{
	const json_t *dims = json_object_get(json_object_get(json, "shape"), "dimensions");
	uint64_t count = 1;

	if (place->in_sequence)
		feature->shape[feature->ndim++] = place->length;
	for (size_t i = 0; i < json_array_size(dims); i++) {
		if (feature->ndim == LEAT_MAX_DIMS)
			return "it has more than 4 dimensions";
		if (!read_dimension(json_array_get(dims, i), &feature->shape[feature->ndim++]))
			return "its shape is invalid";
	}
	for (int d = 0; d < feature->ndim; d++)
		if (feature->shape[d] > 0 && __builtin_mul_overflow(count, (uint64_t)feature->shape[d], &count))
			return "its shape has too many values";
	return count > INT32_MAX ? "its shape has too many values" : NULL;
}

static int
unknown_dims(const struct leat_tfds_feature *feature)
{
	int unknown = 0;

	for (int d = 0; d < feature->ndim; d++)
		unknown += feature->shape[d] < 0;
	return unknown;
}

static const char *
read_bytes(struct leat_tfds_feature *feature, const struct place *place)
{
	feature->kind = LEAT_FEATURE_BYTES;
	return place->in_sequence ? "it is a list of text or images" : NULL;
}

static const char *
read_numbers(struct leat_tfds_feature *feature, const struct place *place, const json_t *json, const char *dtype)
{
	const char *encoding = json_string_value(json_object_get(json, "encoding"));
	const char *why = read_shape(feature, place, json);

	if (why)
		return why;
	if (strcmp(dtype, "string") == 0 || strcmp(dtype, "object") == 0) {
		feature->kind = LEAT_FEATURE_BYTES;
		return feature->ndim ? "it is a list of text" : NULL;
	}
	feature->type = leat_stored_find(dtype, strlen(dtype));
	if (!feature->type)
		return "its type is unknown";
	feature->encoded = encoding && *encoding && strcmp(encoding, "none") != 0;
	if (feature->encoded && strcmp(encoding, "bytes") != 0)
		return "it is compressed";
	if (feature->encoded && place->in_sequence)
		return "it is a list of encoded tensors";
	feature->dynamic = unknown_dims(feature) > 1;
	if (feature->dynamic && !feature->encoded)
		return "more than one of its dimensions is variable";
	if (feature->encoded) {
		feature->kind = LEAT_FEATURE_BYTES;
	} else if (feature->type->max == 0) {
		feature->kind = LEAT_FEATURE_FLOAT;
		feature->type = leat_stored_find("float32", 7); /* all floats are stored as such */
	} else {
		feature->kind = LEAT_FEATURE_INT64;
	}
	return NULL;
}

/* A feature that is not a container. */
static const char *
read_leaf(struct leat_tfds_feature *feature, const struct place *place, const json_t *node)
{
	const json_t *json;
	const char *dtype;

	if (json_object_get(node, "image") || json_object_get(node, "text"))
		return read_bytes(feature, place);
	feature->is_class = json_object_get(node, "classLabel") != NULL;
	if (feature->is_class)
		return read_numbers(feature, place, NULL, "int64");
	json = json_object_get(node, "boundingBox");
	if (!json)
		json = json_object_get(node, "tensor");
	dtype = json_string_value(json_object_get(json, "dtype"));
	return dtype ? read_numbers(feature, place, json, dtype) : "features of its kind are not supported";
}

static enum leat_status walk(struct leat_tfds_features *features, const struct place *place, const json_t *node,
                             struct leat_err *err);

static enum leat_status
walk_members(struct leat_tfds_features *features, const struct place *place, json_t *members, struct leat_err *err)
{
	enum leat_status status = LEAT_OK;
	const char *name;
	json_t *member;

	json_object_foreach(members, name, member)
	{
		struct place inner = *place;
		char *path = *place->path ? leat_asprintf(features->mem, "%s/%s", place->path, name)
		                          : leat_strdup(features->mem, name);

		if (!path)
			return leat_fail_mem(err, features->mem, strlen(place->path) + strlen(name) + 2,
			                     "the features");
		inner.path = path;
		inner.depth++;
		status = walk(features, &inner, member, err);
		leat_free(features->mem, path);
		if (status != LEAT_OK)
			break;
	}
	return status;
}

static enum leat_status
walk(struct leat_tfds_features *features, const struct place *place, const json_t *node, struct leat_err *err)
{
	json_t *members = json_object_get(json_object_get(node, "featuresDict"), "features");
	const json_t *sequence = json_object_get(node, "sequence");
	struct leat_tfds_feature feature = {0};
	struct place inner = *place;

	if (place->depth > MAX_DEPTH)
		return leat_fail(err, LEAT_DATA, "features.json is nested more than %d deep", MAX_DEPTH);
	if (json_is_object(members))
		return walk_members(features, place, members, err);
	if (sequence && !place->in_sequence) {
		inner.depth++;
		inner.in_sequence = true;
		if (!json_object_get(sequence, "length"))
			inner.length = -1;
		else if (!read_dimension(json_object_get(sequence, "length"), &inner.length))
			return leat_fail(err, LEAT_DATA, "features.json: sequence '%.100s' has an invalid length",
			                 place->path);
		return walk(features, &inner, json_object_get(sequence, "feature"), err);
	}
	feature.why = sequence ? "it is a sequence of sequences" : read_leaf(&feature, place, node);
	return add(features, &feature, place->path, err);
}

enum leat_status
leat_tfds_features_read(struct leat_tfds_features *features, const json_t *root, struct leat_mem *mem,
                        struct leat_err *err)
{
	struct place place = {.path = ""};

	*features = (struct leat_tfds_features){.mem = mem};
	if (json_object_get(root, "type"))
		return leat_fail(err, LEAT_UNSUPPORTED,
		                 "features.json was written by an old version of TFDS: prepare the dataset again, or "
		                 "read its files with tfrecord and example");
	if (!json_is_object(json_object_get(json_object_get(root, "featuresDict"), "features")))
		return leat_fail(err, LEAT_DATA, "features.json does not describe the features of a dataset");
	return walk(features, &place, root, err);
}

/* ---- values ---- */

uint64_t
leat_tfds_scratch(const struct leat_tfds_feature *feature, uint64_t record)
{
	uint64_t elements = 1, each;

	if (!feature->type || (feature->encoded && feature->type->dtype == LEAT_U8))
		return 0;
	each = leat_dtype_size(feature->type->dtype);
	if (feature->kind == LEAT_FEATURE_INT64 && each < sizeof(int64_t))
		each += sizeof(int64_t); /* read as int64 first */
	for (int d = 0; d < feature->ndim; d++)
		elements *= feature->shape[d] < 0 ? 1 : (uint64_t)feature->shape[d];
	/* Every value takes at least one byte of the record. */
	if (unknown_dims(feature) || elements > record)
		elements = record;
	return elements * each + 128;
}

/* Sets the datum's shape for `count` values. False: they don't fit the shape. */
static bool
set_shape(const struct leat_tfds_feature *feature, size_t count, struct leat_datum *datum)
{
	uint64_t known = 1;
	int unknown = -1;

	*datum = (struct leat_datum){.dtype = feature->type->dtype, .ndim = feature->ndim};
	memcpy(datum->shape, feature->shape, sizeof(datum->shape));
	for (int d = 0; d < feature->ndim; d++) {
		if (feature->shape[d] < 0)
			unknown = d;
		else
			known *= (uint64_t)feature->shape[d];
	}
	if (unknown < 0)
		return count == known;
	datum->shape[unknown] = known ? (int64_t)(count / known) : 0;
	return known ? count % known == 0 : count == 0;
}

static enum leat_status
fail_shape(const struct leat_tfds_feature *feature, size_t count, struct leat_err *err)
{
	struct leat_field field = {.dtype = feature->type->dtype, .ndim = feature->ndim};
	char text[128];

	memcpy(field.shape, feature->shape, sizeof(field.shape));
	return leat_fail(err, LEAT_DATA, "feature '%.100s' has %zu values, which do not fit %s", feature->name, count,
	                 leat_field_format(&field, text, sizeof(text)));
}

static void *
take(struct leat_scratch *scratch, size_t bytes, struct leat_err *err)
{
	void *memory = leat_scratch_alloc(scratch, bytes);

	if (!memory)
		leat_fail(err, LEAT_LIMIT, "%zu bytes of a sample's numbers do not fit in memory", bytes);
	return memory;
}

static enum leat_status
put_ints(const struct leat_tfds_feature *feature, const struct leat_feature *found, size_t count,
         struct leat_scratch *scratch, struct leat_datum *datum, struct leat_err *err)
{
	int64_t *wide = take(scratch, count * sizeof(*wide), err);
	enum leat_status status;

	if (!wide)
		return LEAT_LIMIT;
	status = leat_feature_int64s(found, wide, count, err);
	if (status != LEAT_OK)
		return status;
	datum->data = wide;
	if (datum->dtype != LEAT_I64)
		datum->data = take(scratch, count * leat_dtype_size(datum->dtype), err);
	if (!datum->data)
		return LEAT_LIMIT;
	if (!leat_stored_narrow(feature->type, datum->data, wide, count))
		return leat_fail(err, LEAT_DATA, "feature '%.100s' has a value out of range for %s", feature->name,
		                 feature->type->name);
	return LEAT_OK;
}

static enum leat_status
put_numbers(const struct leat_tfds_feature *feature, const struct leat_feature *found, struct leat_scratch *scratch,
            struct leat_datum *datum, struct leat_err *err)
{
	enum leat_status status;
	size_t count;

	status = leat_feature_count(found, &count, err);
	if (status != LEAT_OK)
		return status;
	if (!set_shape(feature, count, datum))
		return fail_shape(feature, count, err);
	if (feature->kind == LEAT_FEATURE_INT64)
		return put_ints(feature, found, count, scratch, datum, err);
	datum->data = take(scratch, count * sizeof(float), err);
	return datum->data ? leat_feature_floats(found, datum->data, count, err) : LEAT_LIMIT;
}

/* Reads the shape stored in a record; it must match the known dimensions. */
static enum leat_status
read_told_shape(const struct leat_tfds_feature *feature, const struct leat_feature *told, int64_t *shape,
                struct leat_err *err)
{
	enum leat_status status;
	size_t count = 0;

	if (told->kind == LEAT_FEATURE_INT64) {
		status = leat_feature_count(told, &count, err);
		if (status != LEAT_OK)
			return status;
	}
	if (count != (size_t)feature->ndim)
		return leat_fail(err, LEAT_DATA, "feature '%.100s/shape' has %zu values, expected %d", feature->name,
		                 count, feature->ndim);
	status = leat_feature_int64s(told, shape, count, err);
	for (int d = 0; d < feature->ndim && status == LEAT_OK; d++)
		if (shape[d] < 0 || (feature->shape[d] >= 0 && feature->shape[d] != shape[d]))
			status =
				leat_fail(err, LEAT_DATA, "feature '%.100s' has a shape that contradicts features.json",
			                  feature->name);
	return status;
}

static enum leat_status
put_encoded(const struct leat_tfds_feature *feature, const unsigned char *bytes, size_t len,
            const struct leat_feature *told, struct leat_scratch *scratch, struct leat_datum *datum,
            struct leat_err *err)
{
	size_t count = len / feature->type->width;
	enum leat_status status;

	if (feature->dynamic) {
		*datum = (struct leat_datum){.dtype = feature->type->dtype, .ndim = feature->ndim};
		status = read_told_shape(feature, told, datum->shape, err);
		if (status != LEAT_OK)
			return status;
		if (leat_datum_elements(datum) != (int64_t)count || len % feature->type->width)
			return fail_shape(feature, count, err);
	} else if (!set_shape(feature, count, datum) || len % feature->type->width) {
		return fail_shape(feature, count, err);
	}
	if (feature->type->dtype == LEAT_U8) {
		datum->data = (void *)bytes; /* in the fetched record; not shared */
		return LEAT_OK;
	}
	datum->data = take(scratch, count * leat_dtype_size(datum->dtype), err);
	if (!datum->data)
		return LEAT_LIMIT;
	if (!leat_stored_copy(feature->type, datum->data, bytes, count))
		return leat_fail(err, LEAT_DATA, "feature '%.100s' has a value that does not fit int64", feature->name);
	return LEAT_OK;
}

static enum leat_status
put_bytes(const struct leat_tfds_feature *feature, const struct leat_feature *found, const struct leat_feature *told,
          struct leat_scratch *scratch, struct leat_datum *datum, struct leat_err *err)
{
	const unsigned char *bytes;
	enum leat_status status;
	size_t count, len;

	status = leat_feature_count(found, &count, err);
	if (status != LEAT_OK)
		return status;
	if (count != 1)
		return leat_fail(err, LEAT_DATA, "feature '%.100s' has %zu byte strings, expected 1", feature->name,
		                 count);
	status = leat_feature_bytes(found, &bytes, &len, err);
	if (status != LEAT_OK)
		return status;
	if (feature->type)
		return put_encoded(feature, bytes, len, told, scratch, datum, err);
	*datum = (struct leat_datum){.data = (void *)bytes, .dtype = LEAT_U8, .ndim = 1, .shape = {(int64_t)len}};
	return LEAT_OK;
}

enum leat_status
leat_tfds_value(const struct leat_tfds_feature *feature, const struct leat_feature *found,
                const struct leat_feature *shape, struct leat_scratch *scratch, struct leat_datum *datum,
                struct leat_err *err)
{
	/* A list of variable length may be omitted if empty. */
	if (found->kind == LEAT_FEATURE_NONE && !feature->encoded && feature->type && unknown_dims(feature)) {
		if (!set_shape(feature, 0, datum))
			return fail_shape(feature, 0, err);
		datum->data = take(scratch, 0, err);
		return datum->data ? LEAT_OK : LEAT_LIMIT;
	}
	if (found->kind == LEAT_FEATURE_NONE)
		return leat_fail(err, LEAT_DATA, "the record has no feature '%.100s'", feature->name);
	if (found->kind != feature->kind)
		return leat_fail(err, LEAT_DATA, "feature '%.100s' is %s, expected %s", feature->name,
		                 leat_feature_kind_name(found->kind), leat_feature_kind_name(feature->kind));
	if (feature->kind == LEAT_FEATURE_BYTES)
		return put_bytes(feature, found, shape, scratch, datum, err);
	return put_numbers(feature, found, scratch, datum, err);
}
