/* windows.c - the source of windows over long recordings in .npy files
 *
 *	windows('eeg-*.npy', length=500, stride=125, axis=1, labels='stage-*.npy', label=last)
 *	windows('audio.npy', length=16000, events='words.csv', offset=-800)
 *
 * Sample i of a recording is its steps [i * stride, i * stride + length) along `axis`, in the field `x`.
 * Windows overlap if stride < length; that takes no additional space, because where a window is is
 * computed, not stored. Windows don't cross recordings, unless `across` says that they are one series;
 * leftover steps at the end are dropped.
 *
 * The field `label` comes from an array per recording with a label for each step, or from a list of
 * events per recording: then there is one window per event, wherever its start plus `offset` is.
 * An event whose window is not within its recording is a bad sample, and so is a window that a
 * truncated file lacks.
 *
 * Local files are mapped, and a window is one range or, for axis > 0, one per channel. Of remote
 * files, the engine fetches the windows that are one range, and workers read the others, piece by
 * piece; labels are kept in memory. Threads: all workers call touch and unpack. series.h has the
 * arithmetic. */
#include "format/series.h"

#include <string.h>

enum { MOST = 1 << 28 }; /* steps per window */

#define NAMED(member, type, def, min, max, choices, doc, flags)                                                        \
	LEAT_OPT_(struct leat_windows, member, type, def, min, max, choices, doc, LEAT_OPT_NAMED | (flags))

static const struct leat_opt options[] = {
	LEAT_STRINGS(struct leat_windows, x, LEAT_REQUIRED,
                     ".npy files or glob patterns (*, ?, [..]), one recording each; the matches of a pattern are "
                     "sorted by name",
                     LEAT_OPT_LOCATION),
	NAMED(length, LEAT_OPT_INT, LEAT_REQUIRED, 1, MOST, NULL, "steps per window", 0),
	NAMED(stride, LEAT_OPT_INT, "0", 0, 9e18, NULL,
              "steps from the start of one window to the next; 0: same as length", 0),
	NAMED(axis, LEAT_OPT_INT, "0", 0, LEAT_MAX_DIMS - 1, NULL,
              "axis of time: 0 for time x channels, 1 for channels x time", 0),
	NAMED(labels, LEAT_OPT_STRINGS, "[]", 0, 0, NULL,
              "adds the field `label`: .npy files, one per recording, with a label for each step", LEAT_OPT_LOCATION),
	NAMED(label, LEAT_OPT_ENUM, "last", 0, 0, "last|first|center|majority|all",
              "the label of which step: of one, the most frequent (of several, the smallest), or a label for each "
              "step",
              0),
	NAMED(events, LEAT_OPT_STRINGS, "[]", 0, 0, NULL,
              "one window per event: .npy or CSV files, one per recording, with the step where each event starts and, "
              "optionally, an integer for the field `label`",
              LEAT_OPT_LOCATION),
	NAMED(offset, LEAT_OPT_INT, "0", -9e15, 9e15, NULL, "steps from an event to the start of its window", 0),
	NAMED(across, LEAT_OPT_BOOL, "false", 0, 1, NULL,
              "treat all recordings as one series: windows may cross from one file to the next", 0),
	LEAT_OPT_END,
};

/* ---- opening ---- */

static void
close_source(struct leat_source *source)
{
	struct leat_series *series = source->state;

	if (series && series->array)
		leat_npy_files_free(source, series->files, series->array);
	if (series && series->labels)
		leat_npy_files_free(source, series->files, series->labels);
	if (series) {
		leat_free(source->mem, series->array);
		leat_free(source->mem, series->labels);
		leat_free(source->mem, series->events.event);
		leat_free(source->mem, series->first);
		leat_free(source->mem, series->step);
	}
	leat_free(source->mem, series);
	leat_files_close(source->files);
}

/* Recordings, then labels, then events. */
static enum leat_status
open_files(struct leat_source *source, struct leat_err *err)
{
	const struct leat_windows *windows = source->params;
	const struct leat_strings *list[] = {&windows->x, &windows->labels, &windows->events};
	size_t count = windows->x.count + windows->labels.count + windows->events.count, n = 0;
	const char **pattern = leat_alloc_array(source->mem, count ? count : 1, sizeof(*pattern));
	enum leat_status status;

	if (!pattern)
		return leat_fail_mem(err, source->mem, count * sizeof(*pattern), "the list of files");
	for (int i = 0; i < 3; i++)
		for (size_t k = 0; k < list[i]->count; k++)
			pattern[n++] = list[i]->value[k];
	status = leat_files_open(&source->files, &source->stores, pattern, count, source->mem, err);
	leat_free(source->mem, pattern);
	return status;
}

/* What the option table cannot say. */
static enum leat_status
check_options(const struct leat_source *source, const struct leat_series *series, struct leat_err *err)
{
	const struct leat_windows *windows = source->params;
	size_t others = leat_files_count(source->files) - series->files;

	if (windows->labels.count && windows->events.count)
		return leat_fail(err, LEAT_INVALID, "'windows' takes labels or events, not both: events have labels");
	if (windows->events.count && windows->across)
		return leat_fail(err, LEAT_INVALID, "windows of events don't cross files: leave out across=true");
	if (windows->events.count && windows->stride)
		return leat_fail(err, LEAT_INVALID, "with events, there is no stride: each event has one window");
	if (!windows->events.count && windows->offset)
		return leat_fail(err, LEAT_INVALID, "offset is for windows of events: give events='...'");
	if ((windows->labels.count || windows->events.count) && others != series->files)
		return leat_fail(err, LEAT_INVALID,
		                 "there are %zu recordings and %zu files of %s; each recording needs one, in the same "
		                 "order",
		                 series->files, others, windows->labels.count ? "labels" : "events");
	return LEAT_OK;
}

static enum leat_status
make_series(struct leat_source *source, struct leat_err *err)
{
	const struct leat_windows *windows = source->params;
	struct leat_series *series = source->state = leat_alloc(source->mem, sizeof(*series));
	size_t files = leat_files_begin(source->files, windows->x.count);

	if (series) {
		series->files = files;
		series->array = leat_alloc_array(source->mem, files, sizeof(*series->array));
		series->step = leat_alloc_array(source->mem, files + 1, sizeof(*series->step));
		series->first = leat_alloc_array(source->mem, files + 1, sizeof(*series->first));
		if (windows->labels.count)
			series->labels = leat_alloc_array(source->mem, files, sizeof(*series->labels));
	}
	if (!series || !series->array || !series->step || !series->first || (windows->labels.count && !series->labels))
		return leat_fail_mem(err, source->mem, files * sizeof(*series->array), "the recordings");
	return check_options(source, series, err);
}

/* Do two arrays differ at most along `axis`? */
static bool
agree(const struct leat_npy *a, const struct leat_npy *b, int axis)
{
	bool same = a->dtype == b->dtype && a->ndim == b->ndim;

	for (int d = 0; d < a->ndim && same; d++)
		same = d == axis || a->shape[d] == b->shape[d];
	return same;
}

/* An array as a field, of which dimension `axis` is free. */
static struct leat_field
field_of(const struct leat_npy *npy, int axis)
{
	struct leat_field field = {.dtype = npy->dtype, .ndim = npy->ndim};

	for (int d = 0; d < npy->ndim && d < LEAT_MAX_DIMS; d++)
		field.shape[d] = d == axis ? -1 : npy->shape[d];
	return field;
}

static enum leat_status
check_alike(const struct leat_source *source, size_t begin, const struct leat_npy_file *array, int axis,
            struct leat_err *err)
{
	const struct leat_series *series = source->state;
	char is[100], wanted[100];

	for (size_t i = 1; i < series->files; i++) {
		struct leat_field first = field_of(&array[0].npy, axis), other = field_of(&array[i].npy, axis);

		if (!agree(&array[0].npy, &array[i].npy, axis))
			return leat_fail(err, LEAT_DATA,
			                 "'%s' is %s, but '%s' is %s; all need the same type, and the same shape "
			                 "except along the axis",
			                 leat_files_at(source->files, begin + i)->uri,
			                 leat_field_format(&other, is, sizeof(is)),
			                 leat_files_at(source->files, begin)->uri,
			                 leat_field_format(&first, wanted, sizeof(wanted)));
	}
	return LEAT_OK;
}

/* The field `x`, and how many bytes a window has. */
static enum leat_status
measure(const struct leat_source *source, struct leat_series *series, struct leat_err *err)
{
	const struct leat_windows *windows = source->params;
	const struct leat_npy *npy = &series->array[0].npy;
	const char *uri = leat_files_at(source->files, 0)->uri;
	int axis = (int)windows->axis, dims = npy->ndim - npy->is_complex;
	bool large = false;

	if (axis >= dims)
		return leat_fail(err, LEAT_INVALID, "'%s' has %d dimension%s, so axis is at most %d", uri, dims,
		                 dims == 1 ? "" : "s", dims - 1);
	if (npy->ndim > LEAT_MAX_DIMS)
		return leat_fail(err, LEAT_UNSUPPORTED, "'%s' has more than %d dimensions", uri, LEAT_MAX_DIMS);
	series->outer = 1;
	series->inner = leat_dtype_size(npy->dtype);
	for (int d = 0; d < npy->ndim; d++) {
		uint64_t *side = d < axis ? &series->outer : &series->inner;

		large |= d != axis && __builtin_mul_overflow(*side, (uint64_t)npy->shape[d], side);
	}
	if (series->outer == 0 || series->inner == 0)
		return leat_fail(err, LEAT_DATA, "'%s' has no samples: it has no elements", uri);
	large |= __builtin_mul_overflow(series->outer, series->inner, &series->window_bytes);
	large |= __builtin_mul_overflow(series->window_bytes, leat_series_length(windows), &series->window_bytes);
	if (large || series->window_bytes > INT64_MAX)
		return leat_fail(err, LEAT_DATA, "'%s': a window of its shape is too large", uri);
	series->x = field_of(npy, axis);
	series->x.shape[axis] = windows->length;
	return LEAT_OK;
}

/* Where each recording begins; which files are truncated. */
static enum leat_status
count_steps(const struct leat_source *source, struct leat_series *series, struct leat_err *err)
{
	const struct leat_windows *windows = source->params;

	for (size_t i = 0; i < series->files; i++) {
		const struct leat_npy *npy = &series->array[i].npy;
		const struct leat_object *file = leat_files_at(source->files, i);

		if (__builtin_add_overflow(series->step[i], (uint64_t)npy->shape[windows->axis],
		                           &series->step[i + 1]) ||
		    series->step[i + 1] > INT64_MAX)
			return leat_fail(err, LEAT_DATA, "'%s': the recordings have too many steps", file->uri);
		series->cut |= npy->bytes > file->size - npy->data_at;
	}
	return LEAT_OK;
}

static enum leat_status
load_events(struct leat_source *source, struct leat_series *series, struct leat_err *err)
{
	enum leat_status status = LEAT_OK;

	for (size_t i = 0; i < series->files && status == LEAT_OK; i++) {
		status = leat_events_load(source, series->files + i, &series->events, err);
		series->first[i + 1] = series->events.count;
	}
	if (status == LEAT_OK && series->events.count == 0)
		status = leat_fail(err, LEAT_DATA, "there are no events; the first list of them is '%s'",
		                   leat_files_at(source->files, series->files)->uri);
	return status;
}

static enum leat_status
count_samples(struct leat_source *source, struct leat_series *series, struct leat_err *err)
{
	const struct leat_windows *windows = source->params;

	leat_series_count(windows, series);
	if (windows->events.count) {
		enum leat_status status = load_events(source, series, err);

		if (status != LEAT_OK)
			return status;
	}
	source->first = series->first;
	source->parts = series->parts;
	source->count = series->first[series->parts];
	if (source->count == 0)
		return leat_fail(
			err, LEAT_DATA,
			"no recording has the %lld steps of a window; the first, '%s', has %llu along axis %lld",
			(long long)windows->length, leat_files_at(source->files, 0)->uri,
			(unsigned long long)series->step[1], (long long)windows->axis);
	return LEAT_OK;
}

/* ---- labels ---- */

static bool
can_count(const struct leat_npy *npy)
{
	return npy->ndim == 1 && npy->dtype != LEAT_F16 && npy->dtype != LEAT_F32 && npy->dtype != LEAT_F64 &&
	       npy->dtype != LEAT_U64;
}

static enum leat_status
check_labels(const struct leat_source *source, struct leat_series *series, struct leat_err *err)
{
	const struct leat_windows *windows = source->params;
	const struct leat_npy *npy = &series->labels[0].npy;
	const char *uri = leat_files_at(source->files, series->files)->uri;

	if (windows->label == LEAT_LABEL_MAJORITY && !can_count(npy))
		return leat_fail(err, LEAT_DATA, "'%s': label=majority needs one integer, up to int64, for each step",
		                 uri);
	if (npy->ndim - (windows->label != LEAT_LABEL_ALL) > LEAT_MAX_DIMS)
		return leat_fail(err, LEAT_UNSUPPORTED, "'%s' has more than %d dimensions", uri, LEAT_MAX_DIMS);
	if (npy->row_bytes == 0)
		return leat_fail(err, LEAT_DATA, "'%s' has no elements", uri);
	for (size_t i = 0; i < series->files; i++) {
		uint64_t steps = series->step[i + 1] - series->step[i];

		if ((uint64_t)series->labels[i].npy.shape[0] != steps)
			return leat_fail(
				err, LEAT_DATA, "'%s' has %lld labels, but '%s' has %llu steps along axis %lld",
				leat_files_at(source->files, series->files + i)->uri,
				(long long)series->labels[i].npy.shape[0], leat_files_at(source->files, i)->uri,
				(unsigned long long)steps, (long long)windows->axis);
	}
	series->label_bytes = npy->row_bytes;
	return LEAT_OK;
}

static void
set_label_field(const struct leat_windows *windows, struct leat_series *series)
{
	const struct leat_npy *npy = &series->labels[0].npy;
	struct leat_field *field = &series->label;

	field->dtype = npy->dtype;
	if (windows->label == LEAT_LABEL_ALL)
		field->shape[field->ndim++] = windows->length;
	for (int d = 1; d < npy->ndim; d++)
		field->shape[field->ndim++] = npy->shape[d];
}

static enum leat_status
open_labels(struct leat_source *source, struct leat_series *series, unsigned threads, struct leat_err *err)
{
	enum leat_status status = leat_npy_files_read_headers(source, series->files, series->files, "label", false,
	                                                      threads, series->labels, err);

	if (status == LEAT_OK)
		status = check_alike(source, series->files, series->labels, 0, err);
	if (status == LEAT_OK)
		status = check_labels(source, series, err);
	if (status == LEAT_OK)
		set_label_field(source->params, series);
	if (status == LEAT_OK)
		status = leat_npy_files_bring(source, series->files, series->files, threads, series->labels, err);
	return status;
}

/* ---- reading ---- */

/* Decides for all recordings together, since the engine either fetches the samples of a source or not. */
static enum leat_series_way
choose_way(const struct leat_source *source, const struct leat_series *series)
{
	const struct leat_windows *windows = source->params;
	bool mappable = true;

	for (size_t i = 0; i < series->files; i++)
		mappable &= leat_files_at(source->files, i)->store->kind->map != NULL;
	if (mappable)
		return LEAT_SERIES_LENT;
	return series->outer == 1 && !windows->across ? LEAT_SERIES_FETCHED : LEAT_SERIES_READ;
}

static enum leat_status
prepare_reads(struct leat_source *source, struct leat_series *series, unsigned threads, struct leat_err *err)
{
	enum leat_status status = LEAT_OK;

	series->way = choose_way(source, series);
	if (series->way == LEAT_SERIES_LENT)
		status = leat_npy_files_bring(source, 0, series->files, threads, series->array, err);
	if (status != LEAT_OK)
		return status;
	if (series->way == LEAT_SERIES_FETCHED)
		leat_source_longest(source, series->window_bytes, series->window_bytes);
	else
		source->all_fit = series->window_bytes <= source->max_bytes;
	if (source->all_fit) /* else no window is read */
		source->max_scratch = leat_series_scratch(source->params, series);
	return LEAT_OK;
}

static enum leat_status
add_field(struct leat_source *source, const char *name, const struct leat_field *of, struct leat_err *err)
{
	struct leat_field *field = leat_schema_add(&source->schema, name, of->dtype);

	if (!field)
		return leat_fail(err, LEAT_INTERNAL, "the field '%s' cannot be added", name);
	field->ndim = of->ndim;
	memcpy(field->shape, of->shape, sizeof(field->shape));
	return LEAT_OK;
}

static enum leat_status
open_series(struct leat_source *source, unsigned threads, struct leat_err *err)
{
	const struct leat_windows *windows = source->params;
	enum leat_status status = make_series(source, err);
	struct leat_series *series = source->state;

	if (status == LEAT_OK)
		status = leat_npy_files_read_headers(source, 0, series->files, "x", true, threads, series->array, err);
	if (status == LEAT_OK)
		status = measure(source, series, err);
	if (status == LEAT_OK)
		status = check_alike(source, 0, series->array, (int)windows->axis, err);
	if (status == LEAT_OK)
		status = count_steps(source, series, err);
	if (status == LEAT_OK)
		status = count_samples(source, series, err);
	if (status == LEAT_OK && series->labels)
		status = open_labels(source, series, threads, err);
	if (status == LEAT_OK)
		status = prepare_reads(source, series, threads, err);
	if (status == LEAT_OK)
		status = add_field(source, "x", &series->x, err);
	if (series && series->events.labeled)
		series->label.dtype = LEAT_I64;
	if (status == LEAT_OK && (series->labels || series->events.labeled))
		status = add_field(source, "label", &series->label, err);
	return status;
}

static enum leat_status
open_source(struct leat_source *source, unsigned threads, struct leat_err *err)
{
	enum leat_status status = open_files(source, err);

	if (status != LEAT_OK)
		return status;
	status = open_series(source, threads, err);
	if (status != LEAT_OK)
		close_source(source);
	return status;
}

static void
fingerprint(const struct leat_source *source, struct leat_sha256 *sha)
{
	const struct leat_series *series = source->state;

	for (size_t i = 0; i < series->files; i++)
		leat_npy_file_fingerprint(source, i, &series->array[i], "x", sha);
	for (size_t i = 0; series->labels && i < series->files; i++)
		leat_npy_file_fingerprint(source, series->files + i, &series->labels[i], "label", sha);
	for (size_t i = 0; series->events.event && i < series->files; i++) {
		const struct leat_object *file = leat_files_at(source->files, series->files + i);

		leat_fingerprint_text(sha, "events", 6);
		leat_fingerprint_text(sha, file->name, strlen(file->name));
		leat_fingerprint_number(sha, file->size);
		leat_fingerprint_number(sha, series->first[i + 1] - series->first[i]);
	}
}

/* ---- samples ---- */

static void
locate(const struct leat_source *source, uint64_t sample, struct leat_extent *extent)
{
	const struct leat_windows *windows = source->params;
	struct leat_series *series = source->state;
	size_t part = leat_source_part(source, sample, &series->last);
	struct leat_series_piece piece = {.file = part};
	struct leat_series_walk walk;
	uint64_t begin;
	bool good = leat_series_begin(windows, series, sample, part, &begin);

	if (good) {
		leat_series_walk(&walk, series, begin, leat_series_length(windows));
		leat_series_next(&walk, &piece);
		good = !series->cut || leat_series_is_whole(source, series, begin, leat_series_length(windows));
	}
	*extent = (struct leat_extent){
		.file = (uint32_t)piece.file,
		.offset = series->array[piece.file].npy.data_at + piece.offset,
		.length = good && series->way == LEAT_SERIES_FETCHED ? series->window_bytes : 0,
		.lent = series->way == LEAT_SERIES_FETCHED ? 0 : series->window_bytes,
		.damaged = !good,
	};
}

static enum leat_status
touch_window(const struct leat_source *source, uint64_t sample, int flags, struct leat_err *err)
{
	const struct leat_windows *windows = source->params;
	const struct leat_series *series = source->state;
	enum leat_status status = LEAT_OK;
	struct leat_series_piece piece;
	struct leat_series_walk walk;
	uint64_t begin;

	if (!source->mapped || !leat_series_begin(windows, series, sample, leat_series_part(series, sample), &begin))
		return LEAT_OK;
	leat_series_walk(&walk, series, begin, leat_series_length(windows));
	while ((status == LEAT_OK || status == LEAT_AGAIN) && leat_series_next(&walk, &piece)) {
		const struct leat_npy_file *array = &series->array[piece.file];
		uint64_t offset = array->npy.data_at + piece.offset;
		enum leat_status one =
			leat_npy_file_touch(source, piece.file, array, &offset, 1, piece.bytes, flags, err);

		if (one != LEAT_OK)
			status = one; /* continue, to start loading the other pieces too */
	}
	if (series->labels && (status == LEAT_OK || status == LEAT_AGAIN)) {
		enum leat_status one = leat_series_touch_labels(source, begin, flags, err);

		status = one == LEAT_OK ? status : one;
	}
	return status;
}

/* Workers and I/O threads. */
static enum leat_status
touch(const struct leat_source *source, const uint64_t *sample, size_t count, int flags, struct leat_err *err)
{
	enum leat_status status = LEAT_OK;

	for (size_t i = 0; i < count && (status == LEAT_OK || status == LEAT_AGAIN); i++) {
		enum leat_status one = touch_window(source, sample[i], flags, err);

		if (one != LEAT_OK)
			status = one; /* continue, to start loading the other windows too */
	}
	return status;
}

/* Is every window one good range of an array in memory? */
static bool
are_ranges(const struct leat_windows *windows, const struct leat_series *series)
{
	uint64_t begin;

	if (series->way != LEAT_SERIES_LENT || series->outer > 1 || windows->across || series->cut)
		return false;
	for (size_t i = 0; i < series->events.count; i++)
		if (!leat_series_begin(windows, series, i, leat_series_part(series, i), &begin))
			return false;
	return true;
}

static bool
are_aligned(const struct leat_npy_file *array, size_t files)
{
	for (size_t i = 0; i < files; i++)
		if (!array[i].aligned)
			return false;
	return true;
}

static bool
rows(const struct leat_source *source, int field, struct leat_row_form *form)
{
	const struct leat_windows *windows = source->params;
	const struct leat_series *series = source->state;

	if (field == 0) {
		size_t size = leat_dtype_size(series->x.dtype);

		*form = (struct leat_row_form){series->x.dtype, (size_t)series->window_bytes / size};
		return are_ranges(windows, series) && are_aligned(series->array, series->files);
	}
	*form = (struct leat_row_form){series->label.dtype, 1};
	if (!series->labels)
		return true; /* the labels of events */
	form->elements = (size_t)(leat_series_labels(windows) * series->label_bytes) / leat_dtype_size(form->dtype);
	return form->elements > 0 && are_aligned(series->labels, series->files);
}

static void
rows_at(const struct leat_source *source, int field, const uint64_t *sample, size_t count, const unsigned char **at)
{
	const struct leat_series *series = source->state;

	for (size_t i = 0; i < count; i++) {
		size_t part = leat_series_part(series, sample[i]);
		uint64_t begin;

		(void)leat_series_begin(source->params, series, sample[i], part, &begin);
		if (field == 0)
			at[i] = series->array[part].data + (begin - series->step[part]) * series->inner;
		else if (series->labels)
			at[i] = leat_series_labels_at(source, begin);
		else
			at[i] = (const unsigned char *)&series->events.event[sample[i]].label;
	}
}

/* Why a window cannot be read. */
static enum leat_status
fail_damaged(const struct leat_source *source, uint64_t sample, size_t part, struct leat_err *err)
{
	const struct leat_windows *windows = source->params;
	const struct leat_series *series = source->state;
	size_t files = series->files;
	uint64_t begin;

	if (!leat_series_begin(windows, series, sample, part, &begin))
		return leat_fail(err, LEAT_DATA,
		                 "event %llu of '%s', at step %lld with offset %lld: its window is not within the %llu "
		                 "steps of '%s'",
		                 (unsigned long long)(sample - series->first[part]),
		                 leat_files_at(source->files, files + part)->uri,
		                 (long long)series->events.event[sample].start, (long long)windows->offset,
		                 (unsigned long long)(series->step[part + 1] - series->step[part]),
		                 leat_files_at(source->files, part)->uri);
	part = leat_series_file_of(series, begin);
	return leat_fail(err, LEAT_DATA, "'%s' is truncated: it lacks a part of the window at step %llu",
	                 leat_files_at(source->files, part)->uri, (unsigned long long)(begin - series->step[part]));
}

/* Worker threads. */
static enum leat_status
unpack(const struct leat_source *source, const struct leat_raw *raw, struct leat_scratch *scratch,
       struct leat_sample *sample, struct leat_err *err)
{
	const struct leat_windows *windows = source->params;
	struct leat_series *series = source->state;
	size_t part = leat_series_part(series, raw->index);
	enum leat_status status;
	uint64_t begin;

	if (raw->extent.damaged)
		return fail_damaged(source, raw->index, part, err);
	(void)leat_series_begin(windows, series, raw->index, part, &begin);
	sample->count = 1;
	status = leat_series_get_x(source, raw, begin, scratch, &sample->field[0], err);
	if (status == LEAT_OK && (series->labels || series->events.labeled))
		sample->count = 2;
	if (status == LEAT_OK && series->labels)
		status = leat_series_get_label(source, begin, scratch, &sample->field[1], err);
	else if (status == LEAT_OK && series->events.labeled)
		sample->field[1] = (struct leat_datum){
			.data = &series->events.event[raw->index].label, .dtype = LEAT_I64, .borrowed = true};
	return status;
}

const struct leat_source_kind leat_source_windows = {
	.name = "windows",
	.doc = "Read windows of a fixed length from long recordings in .npy files, such as EEG, audio or sensors, into "
	       "the field `x`. Windows may overlap and never cross files, unless across=true; leftover steps at the "
	       "end "
	       "are dropped. The field `label` comes from an array with a label for each step, or from a list of "
	       "events, which have one window each.",
	.example = "windows('eeg-*.npy', length=500, stride=125, axis=1, labels='stage-*.npy')",
	.version = 1,
	.opts = options,
	.params_size = sizeof(struct leat_windows),
	.open = open_source,
	.close = close_source,
	.locate = locate,
	.touch = touch,
	.rows = rows,
	.rows_at = rows_at,
	.unpack = unpack,
	.copies = true,
	.fingerprint = fingerprint,
};
