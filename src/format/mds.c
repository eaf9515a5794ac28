/* mds.c - the source of MosaicML MDS folders: one field per column
 *
 * index.json lists the shards, their sample counts and columns. The offsets at the beginning of
 * each shard are read at open and kept. A sample with invalid offsets, or in a shard with an
 * invalid header, is damaged but still counts, so that sample numbers follow index.json.
 * Whole-file hashes in index.json are not verified. */
#include "format/mds.h"

#include <stdio.h>
#include <string.h>

#include "base/hash.h"
#include "base/names.h"
#include "base/threads.h"
#include "format/catalog.h"
#include "format/source.h"

enum { MAX_COLUMNS = 4096, LEARN_TRIES = 16 };

static const struct leat_opt options[] = {
	LEAT_OPT_(struct leat_mds_params, folder, LEAT_OPT_STRING, LEAT_REQUIRED, 0, 0, NULL,
                  "folder with index.json and the shards", LEAT_OPT_LOCATION),
	LEAT_STRINGS(struct leat_mds_params, fields, "[]", "columns to read as fields; []: all", LEAT_OPT_NAMED),
	LEAT_OPT_END,
};

struct state {
	struct leat_mds_columns columns;
	size_t shards;
	uint64_t *first;   /* backs source->first */
	uint32_t **offset; /* by shard: samples + 1; NULL: its header is invalid */
	size_t last;       /* shard of the last locate */
};

static void
close_source(struct leat_source *source)
{
	struct state *state = source->state;

	for (size_t i = 0; state && state->offset && i < state->shards; i++)
		leat_free(source->mem, state->offset[i]);
	if (state) {
		leat_free(source->mem, state->offset);
		leat_free(source->mem, state->first);
		leat_free(source->mem, state->columns.column);
		leat_free(source->mem, state);
	}
	leat_files_close(source->files);
}

/* ---- index.json ---- */

/* A shard as described in index.json. */
struct shard {
	const json_t *names, *encodings, *sizes; /* of its columns; equal lengths */
	const char *file;
	uint64_t samples;
};

static enum leat_status
read_shard(const json_t *json, size_t number, struct shard *shard, struct leat_err *err)
{
	const json_t *data = json_object_get(json, "raw_data");
	uint64_t version, bytes = UINT32_MAX; /* limit of the offsets */
	size_t columns;

	*shard = (struct shard){
		.names = json_object_get(json, "column_names"),
		.encodings = json_object_get(json, "column_encodings"),
		.sizes = json_object_get(json, "column_sizes"),
		.file = leat_json_text(data, "basename", NULL),
	};
	if (!leat_json_count(json_object_get(json, "version"), UINT32_MAX, &version) || version != 2)
		return leat_fail(err, LEAT_UNSUPPORTED, "index.json: shard %zu is not version 2", number);
	if (strcmp(leat_json_text(json, "format", ""), "mds") != 0)
		return leat_fail(err, LEAT_UNSUPPORTED, "index.json: shard %zu has format '%.40s', expected mds",
		                 number, leat_json_text(json, "format", ""));
	columns = json_array_size(shard->names);
	if (columns == 0 || columns > MAX_COLUMNS || json_array_size(shard->encodings) != columns ||
	    json_array_size(shard->sizes) != columns)
		return leat_fail(err, LEAT_DATA,
		                 "index.json: shard %zu lists different numbers of column names, encodings and sizes",
		                 number);
	if (!shard->file || !leat_json_count(json_object_get(json, "samples"), UINT32_MAX, &shard->samples) ||
	    (json_object_get(data, "bytes") && !leat_json_count(json_object_get(data, "bytes"), UINT32_MAX, &bytes)))
		return leat_fail(err, LEAT_DATA, "index.json: shard %zu lacks a valid file name, sample count or size",
		                 number);
	if (shard->samples > bytes / 4)
		return leat_fail(err, LEAT_DATA, "index.json: shard %zu cannot have %llu samples in %llu bytes", number,
		                 (unsigned long long)shard->samples, (unsigned long long)bytes);
	return LEAT_OK;
}

static enum leat_status
read_columns(struct leat_source *source, struct state *state, const struct shard *shard, struct leat_err *err)
{
	struct leat_mds_columns *columns = &state->columns;
	size_t count = json_array_size(shard->names);

	columns->column = leat_alloc_array(source->mem, count, sizeof(*columns->column));
	if (!columns->column)
		return leat_fail_mem(err, source->mem, count * sizeof(*columns->column), "the columns");
	columns->count = count;
	for (size_t i = 0; i < count; i++) {
		const char *name = json_string_value(json_array_get(shard->names, i));
		const char *encoding = json_string_value(json_array_get(shard->encodings, i));
		const json_t *size = json_array_get(shard->sizes, i);
		uint64_t bytes = 0;

		if (!name || !encoding || (!json_is_null(size) && !leat_json_count(size, UINT32_MAX, &bytes)))
			return leat_fail(err, LEAT_DATA, "index.json: column %zu has no valid name, encoding or size",
			                 i);
		if (!leat_mds_parse(&columns->column[i], encoding, (uint32_t)bytes))
			return leat_fail(err, LEAT_DATA,
			                 "index.json: column '%.63s' has encoding '%.100s', which contradicts its size "
			                 "of %llu bytes",
			                 name, encoding, (unsigned long long)bytes);
		columns->variable += bytes == 0;
	}
	return LEAT_OK;
}

/* If opening fails because the shards are compressed, say so. */
static enum leat_status
open_files(struct leat_source *source, const struct leat_catalog *folder, const json_t *shards, struct leat_err *err)
{
	const char *compression = leat_json_text(json_array_get(shards, 0), "compression", NULL);
	struct leat_err why;
	enum leat_status status;

	leat_err_clear(&why);
	status = leat_catalog_open(folder, &source->files, &why);
	if (status == LEAT_IO && compression)
		return leat_fail(
			err, LEAT_UNSUPPORTED,
			"the shards in '%s' are compressed (%.40s), which is not supported; decompress them first",
			folder->base, compression);
	return status == LEAT_OK ? status : leat_fail_as(err, &why);
}

static bool
same_columns(const struct shard *a, const struct shard *b)
{
	return json_equal(a->names, b->names) && json_equal(a->encodings, b->encodings) &&
	       json_equal(a->sizes, b->sizes);
}

static enum leat_status
read_shards(struct leat_source *source, struct state *state, struct leat_catalog *folder, const json_t *shards,
            struct leat_err *err)
{
	struct shard first, shard;
	enum leat_status status;

	state->shards = json_array_size(shards);
	if (state->shards == 0)
		return leat_fail(err, LEAT_DATA, "index.json lists no shards");
	state->first = leat_alloc_array(source->mem, state->shards + 1, sizeof(*state->first));
	state->offset = leat_alloc_array(source->mem, state->shards, sizeof(*state->offset));
	if (!state->first || !state->offset)
		return leat_fail_mem(err, source->mem, state->shards * sizeof(*state->first), "the list of shards");
	status = read_shard(json_array_get(shards, 0), 0, &first, err);
	if (status == LEAT_OK)
		status = read_columns(source, state, &first, err);
	for (size_t i = 0; i < state->shards && status == LEAT_OK; i++) {
		status = read_shard(json_array_get(shards, i), i, &shard, err);
		if (status != LEAT_OK)
			break;
		if (!same_columns(&shard, &first))
			return leat_fail(err, LEAT_DATA,
			                 "index.json: the columns of shard %zu differ from those of the first", i);
		state->first[i + 1] = state->first[i] + shard.samples;
		status = leat_catalog_add(folder, shard.file, err);
	}
	return status == LEAT_OK ? open_files(source, folder, shards, err) : status;
}

/* ---- fields ---- */

static enum leat_status
fail_column(const struct leat_mds_params *params, const char *name, const char *why, struct leat_err *err)
{
	return leat_fail(err, params->fields.count ? LEAT_SPEC : LEAT_UNSUPPORTED,
	                 "mds: column '%.80s' cannot be a field: %s; choose others with fields=[...]", name, why);
}

static enum leat_status
add_field(struct leat_source *source, struct leat_mds_column *column, const char *name, const char *encoding,
          struct leat_err *err)
{
	const struct leat_mds_params *params = source->params;
	struct leat_field *field;
	char why[160];

	if (column->encoding == LEAT_MDS_UNKNOWN && !params->fields.count) {
		leat_log(source->log, LEAT_LOG_WARN, "skipping column '%.80s': unknown encoding '%.40s'", name,
		         encoding);
		return LEAT_OK;
	}
	if (column->encoding == LEAT_MDS_UNKNOWN) {
		snprintf(why, sizeof(why), "unknown encoding '%.100s'", encoding);
		return fail_column(params, name, why, err);
	}
	column->field = source->schema.count;
	field = leat_schema_add(&source->schema, name, LEAT_U8);
	if (field)
		return LEAT_OK;
	return fail_column(params, name,
	                   strlen(name) == 0 || strlen(name) > LEAT_MAX_NAME ? "a name has 1 to 63 bytes"
	                   : leat_schema_find(&source->schema, name) >= 0    ? "the name is a duplicate"
	                                                                     : "there are too many fields",
	                   err);
}

static enum leat_status
fail_unknown(const json_t *names, const char *name, struct leat_err *err)
{
	struct leat_unknown unknown = {.what = "column", .name = name};
	const char *known[256];

	for (; unknown.count < json_array_size(names) && unknown.count < sizeof(known) / sizeof(known[0]);
	     unknown.count++)
		known[unknown.count] = json_string_value(json_array_get(names, unknown.count));
	unknown.known = known;
	leat_fail_unknown(err, LEAT_SPEC, &unknown);
	leat_err_in(err, "mds");
	return LEAT_SPEC;
}

/* Selects the columns in `fields`, in that order, or all. Types are filled in later. */
static enum leat_status
choose_fields(struct leat_source *source, struct state *state, const json_t *names, const json_t *encodings,
              struct leat_err *err)
{
	const struct leat_mds_params *params = source->params;
	size_t wanted = params->fields.count ? params->fields.count : state->columns.count;
	enum leat_status status = LEAT_OK;

	for (size_t k = 0; k < wanted && status == LEAT_OK; k++) {
		const char *name = params->fields.count ? params->fields.value[k] : NULL;
		size_t i = name ? 0 : k;

		while (name && i < state->columns.count &&
		       strcmp(json_string_value(json_array_get(names, i)), name) != 0)
			i++;
		if (i == state->columns.count)
			return fail_unknown(names, name, err);
		status = add_field(source, &state->columns.column[i], json_string_value(json_array_get(names, i)),
		                   json_string_value(json_array_get(encodings, i)), err);
	}
	if (status == LEAT_OK && !source->schema.count)
		return leat_fail(err, LEAT_UNSUPPORTED, "mds: no column can be a field");
	return status;
}

/* ---- shards ---- */

/* Reads a shard's offsets, and keeps them if its header matches index.json. */
static enum leat_status
read_offsets(void *arg, size_t i, struct leat_err *err)
{
	const struct leat_source *source = arg;
	const struct leat_object *file = leat_files_at(source->files, i);
	struct state *state = source->state;
	uint64_t samples = state->first[i + 1] - state->first[i], bytes = 4 * (samples + 1);
	unsigned char count[4];
	struct iovec iov = {count, sizeof(count)};
	enum leat_status status;
	uint32_t *offset;
	size_t got;

	if (samples == 0 || file->size < 4 + bytes)
		return LEAT_OK;
	status = leat_files_read(source->files, i, 0, &iov, 1, 0, &got, err);
	if (status != LEAT_OK || leat_load32(count) != samples)
		return status;
	offset = leat_alloc(source->mem, (size_t)bytes);
	if (!offset)
		return leat_fail_mem(err, source->mem, (size_t)bytes, "the offsets of a shard");
	iov = (struct iovec){offset, (size_t)bytes};
	status = leat_files_read(source->files, i, 4, &iov, 1, 0, &got, err);
	for (uint64_t k = 0; k <= samples; k++)
		offset[k] = LEAT_LITTLE32(offset[k]);
	state->offset[i] = offset;
	return status;
}

static void
locate_in(const struct leat_source *source, size_t shard, uint64_t i, struct leat_extent *extent)
{
	const struct state *state = source->state;
	const uint32_t *offset = state->offset[shard];
	uint64_t samples = state->first[shard + 1] - state->first[shard];

	*extent = (struct leat_extent){.file = (uint32_t)shard, .damaged = true};
	if (!offset)
		return;
	extent->offset = offset[i];
	if (offset[i] < 4 * (samples + 2) || offset[i] >= offset[i + 1] ||
	    offset[i + 1] > leat_files_at(source->files, shard)->size)
		return;
	extent->length = offset[i + 1] - offset[i];
	extent->damaged = false;
}

static void
locate(const struct leat_source *source, uint64_t sample, struct leat_extent *extent)
{
	struct state *state = source->state;
	size_t shard = leat_source_part(source, sample, &state->last);

	locate_in(source, shard, sample - state->first[shard], extent);
}

/* Finds the longest sample and warns of damage. Returns the number of good samples. */
static uint64_t
look_over(struct leat_source *source)
{
	const struct state *state = source->state;
	uint64_t all = 0;

	for (size_t i = 0; i < state->shards; i++) {
		uint64_t samples = state->first[i + 1] - state->first[i], good = 0;

		for (uint64_t k = 0; state->offset[i] && k < samples; k++) {
			struct leat_extent extent;

			locate_in(source, i, k, &extent);
			good += !extent.damaged;
			leat_source_check_size(source, &extent);
			if (!extent.damaged && extent.length > source->max_length)
				source->max_length = source->max_payload = extent.length;
		}
		if (good < samples)
			leat_log(source->log, LEAT_LOG_WARN, "'%s' is damaged: %llu of %llu samples cannot be read",
			         leat_files_at(source->files, i)->uri, (unsigned long long)(samples - good),
			         (unsigned long long)samples);
		all += good;
	}
	return all;
}

static enum leat_status
describe_damage(const struct leat_source *source, const struct leat_extent *extent, struct leat_err *err)
{
	const struct state *state = source->state;
	const struct leat_object *file = leat_files_at(source->files, extent->file);
	uint64_t samples = state->first[extent->file + 1] - state->first[extent->file];

	if (!state->offset[extent->file])
		return leat_fail(err, LEAT_DATA,
		                 "%s at offset 0: the shard does not begin with its sample count, %llu, and the "
		                 "samples' offsets",
		                 file->uri, (unsigned long long)samples);
	return leat_fail(err, LEAT_DATA, "%s at offset %llu: a sample that begins or ends here is outside the file",
	                 file->uri, (unsigned long long)extent->offset);
}

/* ---- unpack ---- */

static enum leat_status
fail_sample(const struct leat_source *source, const struct leat_extent *extent, const char *column, const char *fault,
            struct leat_err *err)
{
	return leat_fail(err, LEAT_DATA, "%s at offset %llu: the sample%s%s%s %s (%llu bytes)",
	                 leat_files_at(source->files, extent->file)->uri, (unsigned long long)extent->offset,
	                 column ? "'s column '" : "", column ? column : "", column ? "'" : "", fault,
	                 (unsigned long long)extent->length);
}

/* Worker threads. */
static enum leat_status
unpack(const struct leat_source *source, const struct leat_raw *raw, struct leat_scratch *scratch,
       struct leat_sample *sample, struct leat_err *err)
{
	const struct state *state = source->state;
	struct leat_mds_cut cut;
	unsigned char *bytes;
	size_t i, len;

	if (raw->extent.damaged)
		return describe_damage(source, &raw->extent, err);
	sample->count = source->schema.count;
	leat_mds_cut_begin(&cut, &state->columns, raw->payload, (size_t)raw->extent.length);
	while (leat_mds_cut_next(&cut, &i, &bytes, &len)) {
		const struct leat_mds_column *column = &state->columns.column[i];
		struct leat_datum *datum = column->field < 0 ? NULL : &sample->field[column->field];
		const char *fault = datum ? leat_mds_value(column, bytes, len, scratch, datum) : NULL;

		if (fault)
			return fail_sample(source, &raw->extent, source->schema.entry[column->field].field.name, fault,
			                   err);
		if (datum && !datum->data)
			return leat_fail(err, LEAT_LIMIT, "a sample's numbers do not fit in memory");
	}
	return cut.fault ? fail_sample(source, &raw->extent, NULL, cut.fault, err) : LEAT_OK;
}

/* ---- open ---- */

/* Learns from a sample what index.json does not say about arrays. */
static enum leat_status
learn_from(struct leat_source *source, const struct leat_extent *extent, unsigned char *sample, struct leat_err *err)
{
	struct state *state = source->state;
	struct leat_mds_cut cut;
	unsigned char *bytes;
	size_t i, len;

	leat_mds_cut_begin(&cut, &state->columns, sample, (size_t)extent->length);
	while (leat_mds_cut_next(&cut, &i, &bytes, &len)) {
		struct leat_mds_column *column = &state->columns.column[i];
		const char *fault = column->field < 0 ? NULL : leat_mds_learn(column, bytes, len);

		if (fault)
			return fail_sample(source, extent, source->schema.entry[column->field].field.name, fault, err);
	}
	return cut.fault ? fail_sample(source, extent, NULL, cut.fault, err) : LEAT_OK;
}

static enum leat_status
learn_from_sample(struct leat_source *source, const struct leat_extent *extent, struct leat_err *err)
{
	unsigned char *bytes = leat_alloc(source->mem, (size_t)extent->length);
	struct iovec iov = {bytes, (size_t)extent->length};
	enum leat_status status;
	size_t got;

	if (!bytes)
		return leat_fail_mem(err, source->mem, (size_t)extent->length, "the first sample");
	status = leat_files_read(source->files, extent->file, extent->offset, &iov, 1, 0, &got, err);
	if (status == LEAT_OK)
		status = learn_from(source, extent, bytes, err);
	leat_free(source->mem, bytes);
	return status;
}

static bool
is_known(const struct leat_mds_columns *columns)
{
	for (size_t i = 0; i < columns->count; i++)
		if (columns->column[i].field >= 0 && columns->column[i].ndim < 0)
			return false;
	return true;
}

/* Tries further samples if the first ones are bad. */
static enum leat_status
learn(struct leat_source *source, struct leat_err *err)
{
	const struct state *state = source->state;
	enum leat_status status = LEAT_DATA;
	struct leat_err first;
	int tries = 0;

	if (is_known(&state->columns))
		return LEAT_OK;
	leat_err_clear(&first);
	for (uint64_t i = 0; i < source->count && status == LEAT_DATA && tries < LEARN_TRIES; i++) {
		struct leat_extent extent;

		leat_source_locate(source, i, &extent);
		if (extent.oversized)
			leat_source_fail_oversized(source, &extent, &first);
		if (extent.damaged)
			continue;
		status = learn_from_sample(source, &extent, &first);
		tries++;
	}
	return status == LEAT_OK ? status : leat_fail_as(err, &first);
}

/* Completes the schema, and computes the scratch for its numbers. */
static void
fill_fields(struct leat_source *source)
{
	const struct state *state = source->state;
	uint64_t fixed = 0, growth = 0;

	for (size_t i = 0; i < state->columns.count; i++) {
		const struct leat_mds_column *column = &state->columns.column[i];

		if (column->field < 0)
			continue;
		leat_mds_field(column, &source->schema.entry[column->field].field);
		fixed += 64 + (uint64_t)column->size * leat_mds_growth(column);
		if (!column->size && leat_mds_growth(column) > growth)
			growth = leat_mds_growth(column);
	}
	source->max_scratch = (size_t)(fixed + growth * source->max_payload);
}

static enum leat_status
open_shards(struct leat_source *source, unsigned threads, struct leat_err *err)
{
	struct state *state = source->state;
	enum leat_status status;
	struct leat_extent first;

	source->first = state->first;
	source->parts = state->shards;
	source->count = state->first[state->shards];
	if (source->count == 0)
		return leat_fail(err, LEAT_DATA, "index.json lists no samples");
	status = leat_parallel(source->mem, threads, state->shards, read_offsets, source, err);
	if (status != LEAT_OK)
		return status;
	if (look_over(source) == 0) {
		locate(source, 0, &first);
		describe_damage(source, &first, err);
		if (err)
			leat_err_in(err, "no shard has a readable sample");
		return LEAT_DATA;
	}
	status = learn(source, err);
	if (status == LEAT_OK)
		fill_fields(source);
	return status;
}

static enum leat_status
open_index(struct leat_source *source, struct state *state, struct leat_catalog *folder, const json_t *root,
           struct leat_err *err)
{
	const json_t *shards = json_object_get(root, "shards"), *one = json_array_get(shards, 0);
	enum leat_status status;
	uint64_t version;

	if (!leat_json_count(json_object_get(root, "version"), UINT32_MAX, &version) || !json_is_array(shards))
		return leat_fail(err, LEAT_DATA, "'%sindex.json' does not describe MDS shards", folder->base);
	if (version != 2)
		return leat_fail(err, LEAT_UNSUPPORTED, "'%sindex.json' has version %llu; only 2 is supported",
		                 folder->base, (unsigned long long)version);
	status = read_shards(source, state, folder, shards, err);
	if (status == LEAT_OK)
		status = choose_fields(source, state, json_object_get(one, "column_names"),
		                       json_object_get(one, "column_encodings"), err);
	return status;
}

static enum leat_status
open_source(struct leat_source *source, unsigned threads, struct leat_err *err)
{
	const struct leat_mds_params *params = source->params;
	struct state *state = source->state = leat_alloc(source->mem, sizeof(*state));
	struct leat_catalog folder;
	enum leat_status status;
	json_t *root = NULL;

	if (!state)
		return leat_fail_mem(err, source->mem, sizeof(*state), "a source");
	leat_catalog_init(&folder, &source->stores, source->mem);
	status = leat_catalog_json(&folder, params->folder, "index.json", &root, err);
	if (status == LEAT_OK)
		status = open_index(source, state, &folder, root, err);
	json_decref(root);
	source->described = folder.token;
	leat_catalog_free(&folder);
	if (status == LEAT_OK)
		status = open_shards(source, threads, err);
	if (status != LEAT_OK)
		close_source(source);
	return status;
}

const struct leat_source_kind leat_source_mds = {
	.name = "mds",
	.doc = "Read a folder of MosaicML MDS shards, one field per column: numbers and arrays as such; text, images "
	       "and everything else as bytes. Arrays of height x width x channels (1 to 4), or channels first, are "
	       "images.",
	.example = "mds('train')",
	.version = 1,
	.opts = options,
	.params_size = sizeof(struct leat_mds_params),
	.open = open_source,
	.close = close_source,
	.locate = locate,
	.unpack = unpack,
};
