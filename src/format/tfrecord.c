/* tfrecord.c - the TFRecord source: one sample per record, its bytes in the field `record`
 *
 * The first open indexes the files in parallel (record_index.c); later opens load the indexes.
 * Records of compressed files share units. A unit is the inflated data from one restart point of
 * the index to the end of the last record that begins before the next point, without the records
 * that exceed max_bytes: those are holes (format/holes.h), which are never in memory. */
#include "format/tfrecord.h"

#include "format/holes.h"
#include "format/inflater.h"
#include "format/record.h"
#include "format/source.h"

static const struct leat_opt options[] = {
	LEAT_STRINGS(
		struct leat_tfrecord_params, patterns, LEAT_REQUIRED,
		"files, glob patterns (*, ?, [..]) or folders, such as Spark writes; the matches of each are sorted by "
		"name",
		LEAT_OPT_LOCATION),
	LEAT_OPT_(struct leat_tfrecord_params, crc, LEAT_OPT_BOOL, "true", 0, 1, NULL,
                  "verify the checksums of each record", LEAT_OPT_NAMED), /* all positional arguments are patterns */
	LEAT_OPT_END,
};

struct state {
	struct leat_indexed indexed;
	uint64_t *first_unit;     /* first unit of each file, then the total; NULL: no file is compressed */
	struct leat_holes *holes; /* of each file; likewise */
};

static void
close_source(struct leat_source *source)
{
	struct state *state = source->state;

	if (state) {
		for (size_t i = 0; state->holes && i < leat_files_count(source->files); i++)
			leat_holes_free(&state->holes[i], source->mem);
		leat_free(source->mem, state->holes);
		leat_free(source->mem, state->first_unit);
		leat_indexed_close(&state->indexed);
	}
	leat_free(source->mem, state);
	leat_files_close(source->files);
}

/* ---- units ---- */

/* Inflated offset where the last good sample that begins in [begin, limit) ends; `begin` if there is none. */
static uint64_t
end_before(const struct leat_index *index, uint64_t begin, uint64_t limit)
{
	uint64_t low = 0, high = index->count;

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
	return low && leat_index_offset(index, low - 1) >= begin ? leat_index_offset(index, low) : begin;
}

/* A unit: what it inflates, of which it keeps all but the holes, and the bytes of the file that this takes. */
struct bounds {
	uint64_t begin, end;     /* inflated */
	uint64_t kept, kept_end; /* the same, without all holes before */
	uint64_t offset, length; /* in the file */
};

/* A hole at the end of a unit is not inflated. The first point in the hole says which bytes of the file come before. */
static void
trim(const struct leat_points *points, uint64_t point, uint64_t end, struct bounds *b)
{
	if (end == b->end)
		return;
	b->end = end;
	do
		point++;
	while (point < points->head.count && points->point[point].out < end);
	if (point < points->head.count && points->point[point].in < b->offset + b->length)
		b->length = points->point[point].in - b->offset;
}

static struct bounds
unit_bounds(const struct state *state, size_t file, uint64_t point)
{
	const struct leat_index *index = &state->indexed.index[file];
	const struct leat_points *points = &index->points;
	const struct leat_holes *holes = &state->holes[file];
	struct bounds b = {.begin = points->point[point].out};

	b.end = end_before(index, b.begin, point + 1 < points->head.count ? points->point[point + 1].out : UINT64_MAX);
	b.kept = leat_holes_kept(holes, b.begin);
	b.kept_end = leat_holes_kept(holes, b.end);
	leat_points_span(points, point, &b.offset, &b.length);
	if (b.kept_end == b.kept)
		b.length = 0;
	if (b.length && holes->count)
		trim(points, point, leat_holes_trim(holes, b.end), &b);
	return b;
}

static void
measure_units(struct leat_source *source, size_t file)
{
	const struct state *state = source->state;

	for (uint64_t point = 0; point < state->indexed.index[file].points.head.count; point++) {
		struct bounds b = unit_bounds(state, file, point);

		if (b.kept_end - b.kept > source->max_unit)
			source->max_unit = (size_t)(b.kept_end - b.kept);
		if (b.length > source->max_unit_length)
			source->max_unit_length = (size_t)b.length;
	}
}

static enum leat_status
open_units(struct leat_source *source, struct leat_err *err)
{
	struct state *state = source->state;
	size_t files = leat_files_count(source->files);
	enum leat_status status = LEAT_OK;

	for (size_t i = 0; i < files; i++)
		source->units += state->indexed.index[i].points.head.count;
	if (!source->units)
		return LEAT_OK;
	state->first_unit = leat_alloc_array(source->mem, files + 1, sizeof(*state->first_unit));
	state->holes = leat_alloc_array(source->mem, files, sizeof(*state->holes));
	if (!state->first_unit || !state->holes)
		return leat_fail_mem(err, source->mem, (files + 1) * sizeof(*state->first_unit), "compressed files");
	source->max_unit = 1;
	source->decode_memory = LEAT_INFLATER_BYTES + sizeof(struct leat_inflater);
	for (size_t i = 0; i < files && status == LEAT_OK; i++) {
		const struct leat_index *index = &state->indexed.index[i];

		state->first_unit[i + 1] = state->first_unit[i] + index->points.head.count;
		if (!index->packed)
			continue;
		status = leat_holes_find(&state->holes[i], index, source->max_bytes, source->mem, err);
		if (status == LEAT_OK)
			measure_units(source, i);
	}
	return status;
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

	struct bounds b = unit_bounds(state, file, number - state->first_unit[file]);

	*extent = (struct leat_extent){.file = (uint32_t)file, .offset = b.offset, .length = b.length};
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

/* Inflates a unit, and through its holes without keeping them. */
static enum leat_status
inflate_unit(struct leat_inflater *inflater, const struct bounds *b, const struct leat_holes *holes,
             struct leat_unit *to, struct leat_err *err)
{
	unsigned char nowhere[16 * 1024];
	const size_t size = (size_t)(b->kept_end - b->kept);
	enum leat_status status = LEAT_OK;
	uint64_t at = b->begin;
	size_t want = 0, got = 0;

	while (status == LEAT_OK && to->len < size && got == want) {
		const struct leat_hole *hole = leat_holes_next(holes, at);
		const bool keep = !hole || at < hole->begin;
		const uint64_t left = keep ? (hole ? hole->begin - at : UINT64_MAX) : hole->end - at;
		const size_t most = keep ? size - to->len : sizeof(nowhere);

		want = left < most ? (size_t)left : most;
		status = leat_inflater_read(inflater, keep ? to->bytes + to->len : nowhere, want, false, &got, err);
		to->len += keep ? got : 0;
		at += got;
	}
	return status;
}

/* Worker threads. */
static enum leat_status
decode(const struct leat_source *source, const struct leat_extent *extent, const unsigned char *bytes,
       struct leat_unit *to, struct leat_scratch *scratch, struct leat_err *err)
{
	const struct state *state = source->state;
	const struct leat_index *index = &state->indexed.index[extent->file];
	const uint64_t point = to->number - state->first_unit[extent->file];
	const struct bounds b = unit_bounds(state, extent->file, point);
	struct leat_inflater *inflater;
	enum leat_status status;

	to->begin = b.kept;
	if (b.kept_end == b.kept)
		return LEAT_OK;
	inflater = inflater_of(scratch, err);
	if (!inflater)
		return LEAT_NOMEM;
	if (!leat_inflater_resume(inflater, &index->points, point, bytes, extent->length))
		return leat_fail(err, LEAT_DATA, "the index of '%s' is invalid",
		                 leat_files_at(source->files, extent->file)->uri);
	status = inflate_unit(inflater, &b, &state->holes[extent->file], to, err);
	if (to->len < b.kept_end - b.kept) {
		to->fault = inflater->fault ? inflater->fault : "it inflates to fewer bytes than when it was indexed";
		to->fault_at = inflater->fault ? inflater->fault_at : inflater->size;
	}
	return status;
}

/* Servers are asked about folders only if a name looks like one: each question takes a request. */
static bool
may_have_folder(const struct leat_strings *patterns)
{
	for (size_t i = 0; i < patterns->count; i++) {
		const char *pattern = patterns->value[i], *slash = strrchr(pattern, '/');

		if (!strpbrk(pattern, "*?[") && (!strstr(pattern, "://") || !strchr(slash, '.')))
			return true;
	}
	return false;
}

static enum leat_status
open_indexed(struct leat_source *source, unsigned threads, struct leat_err *err)
{
	const struct leat_tfrecord_params *params = source->params;
	static const char *const inside[] = {"*.tfrecord", "*.tfrecord.gz", "part-*", NULL};
	struct state *state = source->state = leat_alloc(source->mem, sizeof(*state));
	struct leat_strings patterns = params->patterns;
	enum leat_status status = LEAT_OK;
	struct leat_indexed *indexed;
	char **name = NULL;

	if (!state)
		return leat_fail_mem(err, source->mem, sizeof(*state), "the indexes of the files");
	indexed = &state->indexed;
	if (may_have_folder(&patterns)) {
		status = leat_files_expand(&source->stores, patterns.value, patterns.count, inside, &name, source->mem,
		                           err);
		patterns.value = (const char **)name;
	}
	if (status == LEAT_OK)
		status = leat_indexed_open(indexed, &leat_tfrecord_index, &source->stores, &patterns, &source->files,
		                           threads, source->mem, source->log, err);
	leat_files_expand_free(name, patterns.count, source->mem);
	if (status == LEAT_OK)
		status = leat_tfrecord_readable(indexed, err);
	if (status != LEAT_OK)
		return status;
	source->first = indexed->first;
	source->count = indexed->first[leat_files_count(source->files)];
	status = open_units(source, err);
	if (status == LEAT_OK && source->count > 0)
		leat_source_longest(source, indexed->max_length, indexed->max_length - LEAT_TFRECORD_FRAME);
	return status;
}

static enum leat_status
open_source(struct leat_source *source, unsigned threads, struct leat_err *err)
{
	struct leat_field *record = leat_schema_add(&source->schema, "record", LEAT_U8);
	enum leat_status status;

	record->ndim = 1;
	record->shape[0] = -1;
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

/* Large indexes are not in the CPU's cache, and a miss takes longer than planning a sample does. */
static void
prefetch(const struct leat_source *source, const uint64_t *sample, size_t count)
{
	struct leat_indexed *indexed = &((struct state *)source->state)->indexed;

	for (size_t i = 0; i < count; i++) {
		size_t file = leat_source_part(source, sample[i], &indexed->last);

		__builtin_prefetch(&indexed->index[file].offset[sample[i] - indexed->first[file]]);
	}
}

/* Finds a record in its unit and checks it. */
static enum leat_status
find_record(const struct leat_source *source, const struct leat_raw *raw, unsigned char **payload, struct leat_err *err)
{
	const struct leat_tfrecord_params *params = source->params;
	const struct state *state = source->state;
	const struct leat_unit *in = raw->unit;
	uint64_t kept = leat_holes_kept(&state->holes[raw->extent.file], raw->extent.offset);
	uint64_t at = kept - in->begin, length = raw->extent.lent + LEAT_TFRECORD_FRAME;
	struct leat_raw record = *raw;
	unsigned char *head;

	if (kept < in->begin || at > in->len || length > in->len - at)
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
	.prefetch = prefetch,
	.unpack = unpack,
	.unit = unit,
	.decode = decode,
	.unpack_to = unpack_to,
};
