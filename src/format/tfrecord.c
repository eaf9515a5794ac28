/* tfrecord.c - the TFRecord source: one sample per record, its bytes in the field `record`
 *
 * The first open indexes the files in parallel (record_index.c); later opens load the indexes.
 * Records of compressed files share units. A unit is the inflated data from one restart point of
 * the index to the end of the last record that begins before the next point. */
#include "format/tfrecord.h"

#include "format/inflater.h"
#include "format/record.h"
#include "format/source.h"

static const struct leat_opt options[] = {
	LEAT_STRINGS(struct leat_tfrecord_params, patterns, LEAT_REQUIRED,
                     "files or glob patterns (*, ?, [..]); the matches of a pattern are sorted by name",
                     LEAT_OPT_LOCATION),
	LEAT_OPT_(struct leat_tfrecord_params, crc, LEAT_OPT_BOOL, "true", 0, 1, NULL,
                  "verify the checksums of each record", LEAT_OPT_NAMED), /* all positional arguments are patterns */
	LEAT_OPT_END,
};

struct state {
	struct leat_indexed indexed;
	uint64_t *first_unit; /* first unit of each file, then the total; NULL: no file is compressed */
};

static void
close_source(struct leat_source *source)
{
	struct state *state = source->state;

	if (state) {
		leat_free(source->mem, state->first_unit);
		leat_indexed_close(&state->indexed);
	}
	leat_free(source->mem, state);
	leat_files_close(source->files);
}

/* ---- units ---- */

/* Inflated offset where the last good sample that begins before `limit` ends; `begin` if there is none. */
static uint64_t
end_before(const struct leat_index *index, uint64_t begin, uint64_t limit)
{
	uint64_t low = 0, high = index->count, end;

	while (low < high) {
		uint64_t middle = low + (high - low) / 2;

		if (leat_index_offset(index, middle) < limit)
			low = middle + 1;
		else
			high = middle;
	}
	/* Only the last sample of a compressed file can be damaged. */
	if (low && leat_index_is_damaged(index, low - 1))
		low--;
	end = leat_index_offset(index, low);
	return low && end > begin ? end : begin;
}

/* The inflated range of the unit at point `point`. */
static void
unit_bounds(const struct leat_index *index, uint64_t point, uint64_t *begin, uint64_t *end)
{
	const struct leat_points *points = &index->points;

	*begin = points->point[point].out;
	*end = end_before(index, *begin, point + 1 < points->head.count ? points->point[point + 1].out : UINT64_MAX);
}

static void
measure_units(struct leat_source *source, const struct leat_index *index)
{
	for (uint64_t point = 0; point < index->points.head.count; point++) {
		uint64_t begin, end, offset, length;

		unit_bounds(index, point, &begin, &end);
		leat_points_span(&index->points, point, &offset, &length);
		if (end - begin > source->max_unit)
			source->max_unit = (size_t)(end - begin);
		if (length > source->max_unit_length)
			source->max_unit_length = (size_t)length;
	}
}

static enum leat_status
open_units(struct leat_source *source, struct leat_err *err)
{
	struct state *state = source->state;
	size_t files = leat_files_count(source->files);

	for (size_t i = 0; i < files; i++)
		source->units += state->indexed.index[i].points.head.count;
	if (!source->units)
		return LEAT_OK;
	state->first_unit = leat_alloc_array(source->mem, files + 1, sizeof(*state->first_unit));
	if (!state->first_unit)
		return leat_fail_mem(err, source->mem, (files + 1) * sizeof(*state->first_unit), "compressed files");
	source->max_unit = 1;
	source->decode_memory = LEAT_INFLATER_BYTES + sizeof(struct leat_inflater);
	for (size_t i = 0; i < files; i++) {
		const struct leat_index *index = &state->indexed.index[i];

		state->first_unit[i + 1] = state->first_unit[i] + index->points.head.count;
		measure_units(source, index);
	}
	return LEAT_OK;
}

/* The file a unit belongs to. */
static size_t
file_of_unit(const struct leat_source *source, uint64_t number)
{
	const struct state *state = source->state;
	size_t low = 0, high = leat_files_count(source->files);

	while (high - low > 1) {
		size_t middle = low + (high - low) / 2;

		if (state->first_unit[middle] <= number)
			low = middle;
		else
			high = middle;
	}
	return low;
}

static void
unit(const struct leat_source *source, uint64_t number, struct leat_extent *extent)
{
	const struct state *state = source->state;
	size_t file = file_of_unit(source, number);

	*extent = (struct leat_extent){.file = (uint32_t)file};
	leat_points_span(&state->indexed.index[file].points, number - state->first_unit[file], &extent->offset,
	                 &extent->length);
}

static void
end_inflater(void *object, struct leat_mem *mem)
{
	leat_inflater_close(object);
	leat_free(mem, object);
}

/* The inflater kept with the scratch; NULL: out of memory. */
static struct leat_inflater *
inflater_of(struct leat_scratch *scratch, struct leat_err *err)
{
	struct leat_inflater *inflater = leat_scratch_kept(scratch, end_inflater);

	if (inflater)
		return inflater;
	inflater = leat_alloc(scratch->mem, sizeof(*inflater));
	if (inflater && leat_inflater_open(inflater, false, scratch->mem, err) == LEAT_OK) {
		if (leat_scratch_keep(scratch, inflater, end_inflater))
			return inflater;
		leat_inflater_close(inflater);
	}
	leat_free(scratch->mem, inflater);
	leat_fail_mem(err, scratch->mem, sizeof(*inflater), "inflating a compressed file");
	return NULL;
}

/* Worker threads. */
static enum leat_status
decode(const struct leat_source *source, const struct leat_extent *extent, const unsigned char *bytes,
       struct leat_unit *to, struct leat_scratch *scratch, struct leat_err *err)
{
	const struct state *state = source->state;
	const struct leat_index *index = &state->indexed.index[extent->file];
	uint64_t point = to->number - state->first_unit[extent->file], end;
	struct leat_inflater *inflater = inflater_of(scratch, err);
	enum leat_status status = LEAT_OK;

	if (!inflater)
		return LEAT_NOMEM;
	unit_bounds(index, point, &to->begin, &end);
	if (!leat_inflater_resume(inflater, &index->points, point, bytes))
		return leat_fail(err, LEAT_DATA, "the index of '%s' is invalid",
		                 leat_files_at(source->files, extent->file)->uri);
	status = leat_inflater_read(inflater, to->bytes, (size_t)(end - to->begin), false, &to->len, err);
	if (to->len < end - to->begin) {
		to->fault = inflater->fault ? inflater->fault : "it inflates to fewer bytes than when it was indexed";
		to->fault_at = inflater->fault ? inflater->fault_at : inflater->size;
	}
	return status;
}

static enum leat_status
open_indexed(struct leat_source *source, unsigned threads, struct leat_err *err)
{
	struct state *state = source->state = leat_alloc(source->mem, sizeof(*state));
	struct leat_indexed *indexed;
	enum leat_status status;

	if (!state)
		return leat_fail_mem(err, source->mem, sizeof(*state), "the indexes of the files");
	indexed = &state->indexed;
	status =
		leat_indexed_open(indexed, &leat_tfrecord_index, source->files, threads, source->mem, source->log, err);
	if (status == LEAT_OK)
		status = leat_tfrecord_readable(indexed, err);
	if (status != LEAT_OK)
		return status;
	source->first = indexed->first;
	source->count = indexed->first[leat_files_count(source->files)];
	source->max_length = indexed->max_length;
	if (source->count > 0)
		source->max_payload = indexed->max_length - LEAT_TFRECORD_FRAME;
	return open_units(source, err);
}

static enum leat_status
open_source(struct leat_source *source, unsigned threads, struct leat_err *err)
{
	const struct leat_tfrecord_params *params = source->params;
	struct leat_field *record = leat_schema_add(&source->schema, "record", LEAT_U8);
	enum leat_status status;

	record->ndim = 1;
	record->shape[0] = -1;
	status = leat_files_open(&source->files, &source->stores, params->patterns.value, params->patterns.count,
	                         source->mem, err);
	if (status != LEAT_OK)
		return status;
	status = open_indexed(source, threads, err);
	if (status != LEAT_OK)
		close_source(source);
	return status;
}

static void
locate(const struct leat_source *source, uint64_t sample, struct leat_extent *extent)
{
	struct state *state = source->state;
	struct leat_indexed *indexed = &state->indexed;
	size_t file = leat_source_part(source, sample, &indexed->last);

	leat_tfrecord_extent(indexed, file, sample - indexed->first[file], extent);
	if (!extent->damaged && indexed->index[file].packed) {
		extent->in_unit = true;
		extent->unit = state->first_unit[file] + leat_points_find(&indexed->index[file].points, extent->offset);
	}
}

/* Finds a record in its unit and checks it. */
static enum leat_status
find_record(const struct leat_source *source, const struct leat_raw *raw, unsigned char **payload, struct leat_err *err)
{
	const struct leat_tfrecord_params *params = source->params;
	const struct leat_unit *in = raw->unit;
	uint64_t at = raw->extent.offset - in->begin, length = raw->extent.lent + LEAT_TFRECORD_FRAME;
	struct leat_raw record = *raw;
	unsigned char *head;

	if (raw->extent.offset < in->begin || at > in->len || length > in->len - at)
		return leat_tfrecord_fail_packed(leat_files_at(source->files, raw->extent.file)->uri, in->fault_at,
		                                 in->fault ? in->fault : "its index is invalid", raw->extent.offset,
		                                 err);
	head = in->bytes + at;
	*payload = head + LEAT_TFRECORD_HEAD;
	record.extent.length = length;
	record.head = head;
	record.payload = *payload;
	record.tail = head + length - LEAT_TFRECORD_TAIL;
	return leat_tfrecord_check(source->files, &record, params->crc, err);
}

/* Worker threads. A record in a unit is borrowed: other workers may read it at the same time. */
static enum leat_status
unpack(const struct leat_source *source, const struct leat_raw *raw, struct leat_scratch *scratch,
       struct leat_sample *sample, struct leat_err *err)
{
	const struct leat_tfrecord_params *params = source->params;
	const struct leat_extent *extent = &raw->extent;
	const struct leat_indexed *indexed = &((struct state *)source->state)->indexed;
	unsigned char *payload = raw->payload;
	enum leat_status status;

	(void)scratch;
	if (extent->damaged)
		return leat_tfrecord_damage(indexed, extent, err);
	if (extent->in_unit)
		status = find_record(source, raw, &payload, err);
	else
		status = leat_tfrecord_check(source->files, raw, params->crc, err);
	if (status != LEAT_OK)
		return status;
	sample->count = 1;
	sample->field[0] = (struct leat_datum){
		.data = payload,
		.dtype = LEAT_U8,
		.ndim = 1,
		.shape = {(int64_t)(extent->in_unit ? extent->lent : extent->length - LEAT_TFRECORD_FRAME)},
		.borrowed = extent->in_unit,
	};
	return LEAT_OK;
}

static enum leat_status
unpack_to(const struct leat_source *source, const struct leat_raw *raw, unsigned char *to, bool past_cache,
          struct leat_err *err)
{
	const struct leat_tfrecord_params *params = source->params;
	const struct leat_indexed *indexed = &((struct state *)source->state)->indexed;

	if (raw->extent.damaged)
		return leat_tfrecord_damage(indexed, &raw->extent, err);
	return leat_tfrecord_check_copy(source->files, raw, params->crc, to, past_cache, err);
}

const struct leat_source_kind leat_source_tfrecord = {
	.name = "tfrecord",
	.doc = "Read TFRecord files, one record per sample, as bytes in the field `record`.",
	.example = "tfrecord('train-*.tfrecord')",
	.version = 1,
	.opts = options,
	.params_size = sizeof(struct leat_tfrecord_params),
	.open = open_source,
	.close = close_source,
	.locate = locate,
	.unpack = unpack,
	.unit = unit,
	.decode = decode,
	.unpack_to = unpack_to,
};
