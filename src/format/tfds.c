/* tfds.c - the source of TFDS folders: the samples of a split, with the fields described in features.json
 *
 * Records come from TFRecord files (record.h). Each is a tf.train.Example; unpacking turns its
 * features into fields: images and text as bytes, numbers as numbers. Part of a split is a range
 * of samples [skip, skip + take) in each file.
 *
 * Threads: workers share the state and write only the order hint, which is atomic. */
#include "format/tfds.h"

#include <stdio.h>
#include <string.h>

#include "base/array.h"
#include "base/names.h"
#include "format/catalog.h"
#include "format/record.h"
#include "format/source.h"

enum { MAX_FILE_NAME = 1024, MAX_LABELS = 64 << 20 };

#define USUAL_TEMPLATE "{DATASET}-{SPLIT}.{FILEFORMAT}-{SHARD_X_OF_Y}"

static const struct leat_opt options[] = {
	LEAT_OPT_(struct leat_tfds_params, folder, LEAT_OPT_STRING, LEAT_REQUIRED, 0, 0, NULL,
                  "folder of one version of a dataset, with dataset_info.json", LEAT_OPT_LOCATION),
	LEAT_STRING(struct leat_tfds_params, split, "train",
                    "samples to read, in TFDS syntax: train, train[:80%], train[100:200]+test"),
	LEAT_STRINGS(struct leat_tfds_params, fields, "[]",
                     "features to read as fields, nested ones as objects/bbox; []: all", LEAT_OPT_NAMED),
	LEAT_OPT_(struct leat_tfds_params, crc, LEAT_OPT_BOOL, "true", 0, 1, NULL,
                  "verify the checksums of each record", LEAT_OPT_NAMED),
	LEAT_OPT_END,
};

/* The samples used from one file. */
struct slice {
	uint64_t skip, take, length; /* length: of the file, from dataset_info.json */
};

struct state {
	struct leat_indexed indexed;
	size_t files, cap;
	struct slice *slice; /* by file */
	uint64_t *first;     /* backs source->first */
	size_t last;         /* file of the last locate */
	struct leat_tfds_features features;
	struct leat_tfds_feature *of[LEAT_MAX_FIELDS]; /* by field */
	size_t keys;
	struct leat_feature_key key[LEAT_MAX_FIELDS]; /* keys of the fields, then of the shapes */
	int shape_key[LEAT_MAX_FIELDS];               /* by field: index of its shape's key, or -1 */
	char *text[LEAT_MAX_FIELDS];                  /* keys that are not just a feature's name */
	size_t texts;
	struct leat_example_order order;
};

static void
close_source(struct leat_source *source)
{
	struct state *state = source->state;

	if (state) {
		leat_indexed_close(&state->indexed);
		for (size_t i = 0; i < state->texts; i++)
			leat_free(source->mem, state->text[i]);
		leat_tfds_features_free(&state->features);
		leat_free(source->mem, state->slice);
		leat_free(source->mem, state->first);
		leat_free(source->mem, state);
	}
	leat_files_close(source->files);
}

/* ---- files ---- */

/* Expands a variable of a template. False: unknown variable. */
static bool
expand(const char *variable, size_t len, const char *dataset, const struct leat_tfds_split *split, size_t shard,
       char *text, size_t cap)
{
	char most[24];
	int digits = snprintf(most, sizeof(most), "%zu", split->shards);

	digits = digits < 5 ? 5 : digits;
	if (len == 7 && memcmp(variable, "DATASET", 7) == 0)
		return (size_t)snprintf(text, cap, "%s", dataset) < cap;
	if (len == 5 && memcmp(variable, "SPLIT", 5) == 0)
		return (size_t)snprintf(text, cap, "%s", split->name) < cap;
	if (len == 10 && memcmp(variable, "FILEFORMAT", 10) == 0)
		return (size_t)snprintf(text, cap, "tfrecord") < cap;
	if (len == 11 && memcmp(variable, "SHARD_INDEX", 11) == 0)
		return (size_t)snprintf(text, cap, "%0*zu", digits, shard) < cap;
	if (len == 10 && memcmp(variable, "NUM_SHARDS", 10) == 0)
		return (size_t)snprintf(text, cap, "%0*zu", digits, split->shards) < cap;
	if (len == 12 && memcmp(variable, "SHARD_X_OF_Y", 12) == 0)
		return (size_t)snprintf(text, cap, "%0*zu-of-%0*zu", digits, shard, digits, split->shards) < cap;
	return false;
}

/* "mnist-train.tfrecord-00000-of-00001" */
static enum leat_status
name_file(const char *dataset, const struct leat_tfds_split *split, size_t shard, char name[MAX_FILE_NAME],
          struct leat_err *err)
{
	const char *template = split->template && *split->template ? split->template : USUAL_TEMPLATE, *at = template;
	size_t used = 0;

	while (*at && used < MAX_FILE_NAME - 1) {
		size_t len = *at == '{' ? strcspn(at, "}") : 0;

		if (*at != '{') {
			name[used++] = *at++;
			continue;
		}
		if (!at[len] || !expand(at + 1, len - 1, dataset, split, shard, name + used, MAX_FILE_NAME - used))
			break;
		used += strlen(name + used);
		at += len + 1;
	}
	name[used] = '\0';
	if (!*at)
		return LEAT_OK;
	return leat_fail(err, LEAT_DATA, "dataset_info.json has the unsupported file name template '%.200s'", template);
}

static enum leat_status
add_file(struct leat_source *source, struct leat_catalog *folder, const char *name, const struct slice *slice,
         struct leat_err *err)
{
	struct state *state = source->state;
	enum leat_status status =
		LEAT_GROW(source->mem, state->slice, state->cap, state->files + 1, SIZE_MAX, "the list of files", err);

	if (status != LEAT_OK)
		return status;
	state->slice[state->files++] = *slice;
	return leat_catalog_add(folder, name, err);
}

/* Adds the files that hold samples [from, to) of a split. Empty ones need not exist. */
static enum leat_status
add_part(struct leat_source *source, struct leat_catalog *folder, const char *dataset,
         const struct leat_tfds_split *split, const struct leat_tfds_part *part, struct leat_err *err)
{
	enum leat_status status = LEAT_OK;
	uint64_t begin = 0;

	for (size_t i = 0; i < split->shards && status == LEAT_OK; i++) {
		uint64_t end = begin + split->length[i];
		uint64_t from = part->from > begin ? part->from : begin, to = part->to < end ? part->to : end;
		struct slice slice = {.skip = from - begin, .take = to - from, .length = split->length[i]};
		char name[MAX_FILE_NAME];

		begin = end;
		if (from >= to)
			continue;
		status = name_file(dataset, split, i, name, err);
		if (status == LEAT_OK)
			status = add_file(source, folder, name, &slice, err);
	}
	return status;
}

static enum leat_status
choose_files(struct leat_source *source, struct leat_catalog *folder, const json_t *info,
             const struct leat_tfds_splits *splits, struct leat_err *err)
{
	const struct leat_tfds_params *params = source->params;
	const struct state *state = source->state;
	const char *dataset = leat_json_text(info, "name", "");
	struct leat_tfds_parts parts;
	enum leat_status status = leat_tfds_choose(&parts, params->split, splits, source->mem, err);

	for (size_t i = 0; i < parts.count && status == LEAT_OK; i++)
		status = add_part(source, folder, dataset, &splits->split[parts.part[i].split], &parts.part[i], err);
	leat_tfds_parts_free(&parts);
	if (status == LEAT_OK && state->files == 0)
		return leat_fail(err, LEAT_DATA, "split '%s' has no samples", params->split);
	return status == LEAT_OK ? leat_catalog_open(folder, &source->files, err) : status;
}

static enum leat_status
open_info(struct leat_source *source, struct leat_catalog *folder, struct leat_err *err)
{
	const struct leat_tfds_params *params = source->params;
	struct leat_tfds_splits splits = {0};
	const char *format;
	json_t *info = NULL;
	enum leat_status status = leat_catalog_json(folder, params->folder, "dataset_info.json", &info, err);

	if (status == LEAT_IO && err)
		leat_err_in(err, "tfds reads the folder of one version, such as '%s/1.0.0'", params->folder);
	if (status != LEAT_OK)
		return status;
	format = leat_json_text(info, "fileFormat", "tfrecord");
	if (strcmp(format, "tfrecord") != 0)
		status = leat_fail(err, LEAT_UNSUPPORTED,
		                   "'%s' has files in %.40s format; only tfrecord is supported: prepare the "
		                   "dataset with file_format='tfrecord'",
		                   folder->base, format);
	if (status == LEAT_OK)
		status = leat_tfds_splits_read(&splits, info, source->mem, err);
	if (status == LEAT_OK)
		status = choose_files(source, folder, info, &splits, err);
	leat_tfds_splits_free(&splits);
	json_decref(info);
	return status;
}

/* ---- fields ---- */

/* Builds a key and keeps it with the state. */
static const char *
keep(struct leat_source *source, const char *name, const char *end)
{
	struct state *state = source->state;
	char *text = leat_asprintf(source->mem, "%s/%s", name, end);

	if (text)
		state->text[state->texts++] = text;
	return text;
}

static enum leat_status
add_field(struct leat_source *source, struct leat_tfds_feature *feature, struct leat_err *err)
{
	struct state *state = source->state;
	struct leat_field *field;
	const char *key = feature->name;
	int i = source->schema.count;

	if (state->texts + 2 > LEAT_MAX_FIELDS || strlen(feature->name) > LEAT_MAX_NAME ||
	    !(field = leat_schema_add(&source->schema, feature->name, LEAT_U8)))
		return leat_fail(err, LEAT_SPEC,
		                 "tfds: feature '%.100s' cannot be a field: %s; choose others with fields=[...]",
		                 feature->name,
		                 leat_schema_find(&source->schema, feature->name) >= 0 ? "the name is a duplicate"
		                 : strlen(feature->name) > LEAT_MAX_NAME ? "its name has more than 63 bytes"
		                                                         : "there are too many fields");
	if (feature->type) {
		field->dtype = feature->type->dtype;
		field->ndim = feature->ndim;
		memcpy(field->shape, feature->shape, sizeof(field->shape));
	} else {
		field->ndim = 1;
		field->shape[0] = -1;
	}
	if (feature->dynamic)
		key = keep(source, feature->name, "value");
	if (!key)
		return leat_fail_mem(err, source->mem, strlen(feature->name) + 8, "the features");
	state->of[i] = feature;
	state->key[i] = (struct leat_feature_key){key, strlen(key)};
	return LEAT_OK;
}

/* Keys of shapes stored in the records follow those of all fields. */
static enum leat_status
add_shape_keys(struct leat_source *source, struct leat_err *err)
{
	struct state *state = source->state;

	state->keys = (size_t)source->schema.count;
	for (int i = 0; i < source->schema.count; i++) {
		const char *key;

		state->shape_key[i] = -1;
		if (!state->of[i]->dynamic)
			continue;
		if (state->keys == LEAT_MAX_FIELDS)
			return leat_fail(err, LEAT_SPEC, "tfds: too many features; choose some with fields=[...]");
		key = keep(source, state->of[i]->name, "shape");
		if (!key)
			return leat_fail_mem(err, source->mem, strlen(state->of[i]->name) + 8, "the features");
		state->shape_key[i] = (int)state->keys;
		state->key[state->keys++] = (struct leat_feature_key){key, strlen(key)};
	}
	return LEAT_OK;
}

static enum leat_status
add_named_field(struct leat_source *source, const char *name, struct leat_err *err)
{
	struct leat_tfds_features *features = &((struct state *)source->state)->features;
	struct leat_unknown unknown = {.what = "feature", .name = name};
	const char *names[256];

	for (size_t i = 0; i < features->count; i++) {
		struct leat_tfds_feature *feature = &features->feature[i];

		if (strcmp(feature->name, name) == 0 && feature->why)
			return leat_fail(err, LEAT_SPEC, "tfds: feature '%s' cannot be a field: %s", name,
			                 feature->why);
		if (strcmp(feature->name, name) == 0)
			return add_field(source, feature, err);
		if (unknown.count < sizeof(names) / sizeof(names[0]))
			names[unknown.count++] = feature->name;
	}
	unknown.known = names;
	leat_fail_unknown(err, LEAT_SPEC, &unknown);
	leat_err_in(err, "tfds");
	return LEAT_SPEC;
}

/* "text: it is compressed; film: ..." */
static void
warn_of_left_out(const struct leat_source *source, const struct leat_tfds_features *features)
{
	char list[800];
	size_t used = 0;

	for (size_t i = 0; i < features->count; i++) {
		const struct leat_tfds_feature *feature = &features->feature[i];
		int n;

		if (!feature->why)
			continue;
		n = snprintf(list + used, sizeof(list) - used, "%s'%.60s' (%s)", used ? ", " : "", feature->name,
		             feature->why);
		if (n < 0 || (size_t)n >= sizeof(list) - used)
			break;
		used += (size_t)n;
	}
	if (used)
		leat_log(source->log, LEAT_LOG_WARN, "skipping features: %s", list);
}

static enum leat_status
choose_fields(struct leat_source *source, struct leat_err *err)
{
	const struct leat_tfds_params *params = source->params;
	struct leat_tfds_features *features = &((struct state *)source->state)->features;
	enum leat_status status = LEAT_OK;

	for (size_t i = 0; i < params->fields.count && status == LEAT_OK; i++)
		status = add_named_field(source, params->fields.value[i], err);
	for (size_t i = 0; !params->fields.count && i < features->count && status == LEAT_OK; i++)
		if (!features->feature[i].why)
			status = add_field(source, &features->feature[i], err);
	if (!params->fields.count)
		warn_of_left_out(source, features);
	if (status == LEAT_OK && !source->schema.count)
		return leat_fail(err, LEAT_UNSUPPORTED, "tfds: no feature can be a field");
	return status == LEAT_OK ? add_shape_keys(source, err) : status;
}

/* The field `label` if it is a class label, else the first field that is one; NULL: none. */
static const struct leat_tfds_feature *
find_class_label(const struct leat_source *source)
{
	const struct state *state = source->state;
	const struct leat_tfds_feature *found = NULL;

	for (int i = 0; i < source->schema.count; i++)
		if (state->of[i]->is_class && (!found || strcmp(state->of[i]->name, "label") == 0))
			found = state->of[i];
	return found;
}

/* One name per line. */
static enum leat_status
add_classes(struct leat_source *source, const char *text, struct leat_err *err)
{
	enum leat_status status = LEAT_OK;

	while (*text && status == LEAT_OK) {
		size_t len = strcspn(text, "\n");

		status = leat_source_add_class(source, text, len, err);
		text += len + (text[len] == '\n');
	}
	return status;
}

/* The names of the classes are in "label.labels.txt", or "objects-label.labels.txt" for a nested label; a dataset may
 * have none. */
static enum leat_status
name_classes(struct leat_source *source, const struct leat_catalog *folder, struct leat_err *err)
{
	const struct leat_tfds_feature *label = find_class_label(source);
	char *name, *uri = NULL;
	void *text = NULL;
	struct leat_store *store = NULL;
	enum leat_status status;
	size_t len;

	if (!label)
		return LEAT_OK;
	name = leat_asprintf(source->mem, "%s%s.labels.txt", folder->base, label->name);
	if (!name)
		return leat_fail_mem(err, source->mem, strlen(label->name) + LEAT_URI, "the name of a file");
	for (char *slash = name + strlen(folder->base); (slash = strchr(slash, '/')) != NULL;)
		*slash = '-';
	status = leat_stores_find(&source->stores, name, &store, &uri, err);
	if (status == LEAT_OK)
		status = leat_object_load(store, uri, MAX_LABELS, source->mem, &text, &len, err);
	if (status == LEAT_OK)
		status = add_classes(source, text, err);
	leat_free(source->mem, text);
	if (store)
		leat_free(store->mem, uri);
	leat_free(source->mem, name);
	return status == LEAT_AGAIN ? LEAT_OK : status;
}

static enum leat_status
open_features(struct leat_source *source, struct leat_catalog *folder, struct leat_err *err)
{
	const struct leat_tfds_params *params = source->params;
	struct state *state = source->state;
	json_t *root = NULL;
	enum leat_status status = leat_catalog_json(folder, params->folder, "features.json", &root, err);

	if (status == LEAT_OK)
		status = leat_tfds_features_read(&state->features, root, source->mem, err);
	json_decref(root);
	if (status == LEAT_OK)
		status = choose_fields(source, err);
	return status == LEAT_OK ? name_classes(source, folder, err) : status;
}

/* ---- open ---- */

/* An undamaged file must have as many records as dataset_info.json says; of a damaged one, use what is left. */
static enum leat_status
count_samples(struct leat_source *source, struct state *state, struct leat_err *err)
{
	for (size_t i = 0; i < state->files; i++) {
		struct slice *slice = &state->slice[i];
		const struct leat_index *index = &state->indexed.index[i];
		bool to_end = slice->skip + slice->take == slice->length;

		if (index->count != slice->length && !index->damaged)
			return leat_fail(err, LEAT_DATA, "'%s' has %llu records, but dataset_info.json says %llu",
			                 leat_files_at(source->files, i)->uri, (unsigned long long)index->count,
			                 (unsigned long long)slice->length);
		if (slice->skip > index->count)
			slice->skip = index->count;
		if (to_end || slice->take > index->count - slice->skip)
			slice->take = index->count - slice->skip;
		state->first[i + 1] = state->first[i] + slice->take;
	}
	source->first = state->first;
	source->count = state->first[state->files];
	if (source->count == 0)
		return leat_fail(err, LEAT_DATA, "the files have none of the requested samples");
	return LEAT_OK;
}

/* TFDS neither writes nor reads compressed files. */
static enum leat_status
refuse_packed(const struct leat_source *source, const struct leat_indexed *indexed, struct leat_err *err)
{
	for (size_t i = 0; i < leat_files_count(source->files); i++)
		if (indexed->index[i].packed)
			return leat_fail(err, LEAT_DATA,
			                 "'%s' is compressed, which TFDS does not support; read it with tfrecord(...)",
			                 leat_files_at(source->files, i)->uri);
	return LEAT_OK;
}

static enum leat_status
open_records(struct leat_source *source, unsigned threads, struct leat_err *err)
{
	struct state *state = source->state;
	enum leat_status status;
	uint64_t fixed = 0, most = 0;

	state->first = leat_alloc_array(source->mem, state->files + 1, sizeof(*state->first));
	if (!state->first)
		return leat_fail_mem(err, source->mem, (state->files + 1) * sizeof(*state->first), "the list of files");
	status = leat_indexed_open_files(&state->indexed, &leat_tfrecord_index, source->files, threads, source->mem,
	                                 source->log, err);
	if (status == LEAT_OK)
		status = leat_tfrecord_readable(&state->indexed, err);
	if (status == LEAT_OK)
		status = refuse_packed(source, &state->indexed, err);
	if (status == LEAT_OK)
		status = count_samples(source, state, err);
	if (status != LEAT_OK)
		return status;
	leat_source_longest(source, state->indexed.max_length, state->indexed.max_length - LEAT_TFRECORD_FRAME);
	for (int i = 0; i < source->schema.count; i++) {
		uint64_t bytes = leat_tfds_scratch(state->of[i], source->max_payload);

		if (leat_field_is_static(&source->schema.entry[i].field))
			fixed += bytes;
		else
			most = bytes > most ? bytes : most; /* together they have the record's bytes */
	}
	source->max_scratch = (size_t)(fixed + most + 128 * (uint64_t)source->schema.count);
	return LEAT_OK;
}

static enum leat_status
open_source(struct leat_source *source, unsigned threads, struct leat_err *err)
{
	struct state *state = source->state = leat_alloc(source->mem, sizeof(*state));
	struct leat_catalog folder;
	enum leat_status status;

	if (!state)
		return leat_fail_mem(err, source->mem, sizeof(*state), "a source");
	leat_catalog_init(&folder, &source->stores, source->mem);
	status = open_info(source, &folder, err);
	if (status == LEAT_OK)
		status = open_features(source, &folder, err);
	source->described = folder.token;
	leat_catalog_free(&folder);
	if (status == LEAT_OK)
		status = open_records(source, threads, err);
	if (status != LEAT_OK)
		close_source(source);
	return status;
}

/* ---- samples ---- */

static void
locate(const struct leat_source *source, uint64_t sample, struct leat_extent *extent)
{
	struct state *state = source->state;
	size_t file = leat_source_part(source, sample, &state->last);

	leat_tfrecord_extent(&state->indexed, file, state->slice[file].skip + (sample - state->first[file]), extent);
}

/* Worker threads. */
static enum leat_status
unpack(const struct leat_source *source, const struct leat_raw *raw, struct leat_scratch *scratch,
       struct leat_sample *sample, struct leat_err *err)
{
	const struct leat_tfds_params *params = source->params;
	struct state *state = source->state;
	struct leat_feature found[LEAT_MAX_FIELDS];
	enum leat_status status;

	if (raw->extent.damaged)
		return leat_tfrecord_damage(&state->indexed, &raw->extent, err);
	status = leat_tfrecord_check(source->files, raw, params->crc, err);
	if (status != LEAT_OK)
		return status;
	sample->count = source->schema.count;
	status = leat_example_find(raw->payload, (size_t)(raw->extent.length - LEAT_TFRECORD_FRAME), state->key,
	                           state->keys, &state->order, found, err);
	for (int i = 0; i < sample->count && status == LEAT_OK; i++)
		status = leat_tfds_value(state->of[i], &found[i],
		                         state->shape_key[i] < 0 ? NULL : &found[state->shape_key[i]], scratch,
		                         &sample->field[i], err);
	if (status == LEAT_DATA && err)
		leat_err_in(err, "%s at offset %llu", leat_files_at(source->files, raw->extent.file)->uri,
		            (unsigned long long)raw->extent.offset);
	return status;
}

const struct leat_source_kind leat_source_tfds = {
	.name = "tfds",
	.doc = "Read a split of a dataset prepared by TensorFlow Datasets, one field per feature: images and text as "
	       "bytes, numbers as numbers.",
	.example = "tfds('mnist/3.0.1', split='train[:80%]')",
	.version = 1,
	.opts = options,
	.params_size = sizeof(struct leat_tfds_params),
	.open = open_source,
	.close = close_source,
	.locate = locate,
	.unpack = unpack,
};
