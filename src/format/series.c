/* series.c - where windows are, and how their bytes become fields; see series.h */
#include "format/series.h"

#include <stdlib.h>
#include <string.h>

enum { AT_ONCE = 16 }; /* reads of one window in flight */

/* ---- positions ---- */

size_t
leat_series_part(const struct leat_series *series, uint64_t sample)
{
	return leat_npy_file_of(series->first, series->parts, sample);
}

static uint64_t
stride_of(const struct leat_windows *windows)
{
	return (uint64_t)(windows->stride ? windows->stride : windows->length);
}

static uint64_t
windows_in(const struct leat_windows *windows, uint64_t steps)
{
	uint64_t length = leat_series_length(windows);

	return steps < length ? 0 : (steps - length) / stride_of(windows) + 1;
}

void
leat_series_count(const struct leat_windows *windows, struct leat_series *series)
{
	if (windows->across) {
		series->parts = 1;
		series->first[1] = windows_in(windows, series->step[series->files]);
		return;
	}
	series->parts = series->files;
	for (size_t i = 0; i < series->files; i++)
		series->first[i + 1] = series->first[i] + windows_in(windows, series->step[i + 1] - series->step[i]);
}

bool
leat_series_begin(const struct leat_windows *windows, const struct leat_series *series, uint64_t sample, size_t part,
                  uint64_t *begin)
{
	int64_t start, steps;

	*begin = series->step[part];
	if (!series->events.event) {
		*begin += (sample - series->first[part]) * stride_of(windows);
		return true;
	}
	steps = (int64_t)(series->step[part + 1] - series->step[part]);
	if (__builtin_add_overflow(series->events.event[sample].start, windows->offset, &start) || start < 0 ||
	    start > steps || windows->length > steps - start)
		return false;
	*begin += (uint64_t)start;
	return true;
}

/* ---- pieces ---- */

void
leat_series_walk(struct leat_series_walk *walk, const struct leat_series *series, uint64_t begin, uint64_t length)
{
	size_t file = leat_series_file_of(series, begin);

	*walk = (struct leat_series_walk){
		.series = series, .begin = begin, .end = begin + length, .at = begin, .file = file, .first_file = file};
}

bool
leat_series_next(struct leat_series_walk *walk, struct leat_series_piece *piece)
{
	const struct leat_series *series = walk->series;
	const uint64_t *step = series->step;
	uint64_t end, steps;

	if (walk->at == walk->end) {
		walk->at = walk->begin;
		walk->file = walk->first_file;
		walk->row++;
	}
	if (walk->row == series->outer)
		return false;
	while (step[walk->file + 1] == walk->at) /* the last file ended, or this one is empty */
		walk->file++;
	end = step[walk->file + 1] < walk->end ? step[walk->file + 1] : walk->end;
	steps = step[walk->file + 1] - step[walk->file];
	*piece = (struct leat_series_piece){
		.file = walk->file,
		.offset = (walk->row * steps + (walk->at - step[walk->file])) * series->inner,
		.bytes = (end - walk->at) * series->inner,
	};
	walk->at = end;
	return true;
}

bool
leat_series_is_whole(const struct leat_source *source, const struct leat_series *series, uint64_t begin,
                     uint64_t length)
{
	struct leat_series_piece piece;
	struct leat_series_walk walk;

	leat_series_walk(&walk, series, begin, length);
	while (leat_series_next(&walk, &piece))
		if (piece.offset + piece.bytes >
		    leat_files_at(source->files, piece.file)->size - series->array[piece.file].npy.data_at)
			return false;
	return true;
}

/* ---- windows ---- */

/* Reads in flight. */
struct reads {
	int count;
	struct leat_waiter waiter[AT_ONCE];
	struct leat_err err[AT_ONCE]; /* each read has its own, because they end in any order */
};

/* Starts the next read of a window, to `to`. LEAT_END: there is none. */
static enum leat_status
start_read(const struct leat_source *source, struct reads *reads, struct leat_series_walk *walk, unsigned char **to)
{
	const struct leat_series *series = source->state;
	struct leat_err *err = &reads->err[reads->count];
	struct leat_series_piece piece;
	enum leat_status status;

	if (!leat_series_next(walk, &piece))
		return LEAT_END;
	leat_err_clear(err);
	status = leat_wait_start(&reads->waiter[reads->count], leat_files_at(source->files, piece.file),
	                         series->array[piece.file].npy.data_at + piece.offset, *to, (size_t)piece.bytes, err);
	*to += piece.bytes;
	reads->count += status == LEAT_OK;
	return status;
}

/* Waits for all reads, and reports the first that failed. */
static enum leat_status
end_reads(struct reads *reads, struct leat_err *err)
{
	enum leat_status status = LEAT_OK;

	for (int i = 0; i < reads->count; i++) {
		enum leat_status one = leat_wait_end(&reads->waiter[i], &reads->err[i]);

		if (one == LEAT_OK || status != LEAT_OK)
			continue;
		status = one;
		if (err)
			*err = reads->err[i];
	}
	reads->count = 0;
	return status;
}

/* Reads the pieces of a window, a few at a time. */
static enum leat_status
read_pieces(const struct leat_source *source, struct leat_series_walk *walk, unsigned char *to, struct leat_err *err)
{
	struct reads reads = {.count = 0};
	enum leat_status started = LEAT_OK, status = LEAT_OK;

	while (started == LEAT_OK && status == LEAT_OK) {
		while (started == LEAT_OK && reads.count < AT_ONCE)
			started = start_read(source, &reads, walk, &to);
		if (started != LEAT_OK && started != LEAT_END && err)
			*err = reads.err[reads.count];
		status = end_reads(&reads, started == LEAT_OK || started == LEAT_END ? err : NULL);
	}
	return started == LEAT_END || started == LEAT_OK ? status : started;
}

static void
gather(const struct leat_series *series, struct leat_series_walk *walk, unsigned char *to)
{
	struct leat_series_piece piece;

	while (leat_series_next(walk, &piece)) {
		memcpy(to, series->array[piece.file].data + piece.offset, (size_t)piece.bytes);
		to += piece.bytes;
	}
}

/* The window where it is, if it is one piece that can be used in place. */
static const unsigned char *
lent_window(const struct leat_series *series, const struct leat_series_walk *walk)
{
	struct leat_series_walk first = *walk;
	struct leat_series_piece piece;

	if (series->way != LEAT_SERIES_LENT || !leat_series_next(&first, &piece) ||
	    piece.bytes != series->window_bytes || !series->array[piece.file].aligned)
		return NULL;
	return series->array[piece.file].data + piece.offset;
}

enum leat_status
leat_series_get_x(const struct leat_source *source, const struct leat_raw *raw, uint64_t begin,
                  struct leat_scratch *scratch, struct leat_datum *datum, struct leat_err *err)
{
	const struct leat_windows *windows = source->params;
	const struct leat_series *series = source->state;
	struct leat_series_walk walk;
	enum leat_status status = LEAT_OK;
	const unsigned char *lent;
	unsigned char *copy;

	*datum = (struct leat_datum){.dtype = series->x.dtype, .ndim = series->x.ndim};
	memcpy(datum->shape, series->x.shape, sizeof(datum->shape));
	leat_series_walk(&walk, series, begin, leat_series_length(windows));
	lent = lent_window(series, &walk);
	if (lent) {
		datum->data = (void *)lent;
		datum->borrowed = true;
		return LEAT_OK;
	}
	datum->data = copy = leat_scratch_alloc(scratch, (size_t)series->window_bytes);
	if (!copy)
		return leat_fail(err, LEAT_LIMIT, "a window of %llu bytes does not fit in memory",
		                 (unsigned long long)series->window_bytes);
	if (series->way == LEAT_SERIES_FETCHED)
		memcpy(copy, raw->payload, (size_t)series->window_bytes);
	else if (series->way == LEAT_SERIES_LENT)
		gather(series, &walk, copy);
	else
		status = read_pieces(source, &walk, copy, err);
	return status;
}

/* ---- labels ---- */

/* The steps whose labels a window needs. */
static uint64_t
labels_of(const struct leat_windows *windows, uint64_t *begin)
{
	switch ((enum leat_label)windows->label) {
	case LEAT_LABEL_FIRST:
		return 1;
	case LEAT_LABEL_LAST:
		*begin += (uint64_t)(windows->length - 1);
		return 1;
	case LEAT_LABEL_CENTER:
		*begin += (uint64_t)(windows->length / 2);
		return 1;
	case LEAT_LABEL_MAJORITY:
	case LEAT_LABEL_ALL:
		break;
	}
	return (uint64_t)windows->length;
}

/* Labels [begin, begin + count) as far as they are in one file; *count becomes how many. */
static const unsigned char *
labels_at(const struct leat_series *series, uint64_t begin, uint64_t *count, size_t *file)
{
	uint64_t left;

	*file = leat_series_file_of(series, begin);
	left = series->step[*file + 1] - begin;
	if (left < *count)
		*count = left;
	return series->labels[*file].data + (begin - series->step[*file]) * series->label_bytes;
}

const unsigned char *
leat_series_labels_at(const struct leat_source *source, uint64_t begin)
{
	uint64_t count = labels_of(source->params, &begin);
	size_t file;

	return labels_at(source->state, begin, &count, &file);
}

uint64_t
leat_series_labels(const struct leat_windows *windows)
{
	uint64_t begin = 0;

	return windows->label == LEAT_LABEL_MAJORITY ? 0 : labels_of(windows, &begin);
}

enum leat_status
leat_series_touch_labels(const struct leat_source *source, uint64_t begin, int flags, struct leat_err *err)
{
	const struct leat_windows *windows = source->params;
	const struct leat_series *series = source->state;
	uint64_t left = labels_of(windows, &begin);
	enum leat_status status = LEAT_OK;

	while (left > 0 && (status == LEAT_OK || status == LEAT_AGAIN)) {
		uint64_t count = left, offset;
		enum leat_status one;
		size_t file;

		(void)labels_at(series, begin, &count, &file);
		offset = series->labels[file].npy.data_at + (begin - series->step[file]) * series->label_bytes;
		one = leat_npy_file_touch(source, series->files + file, &series->labels[file], &offset, 1,
		                          count * series->label_bytes, flags, err);
		if (one != LEAT_OK)
			status = one;
		begin += count;
		left -= count;
	}
	return status;
}

/* One integer label as int64. */
static int64_t
label_value(const unsigned char *at, enum leat_dtype dtype)
{
	int64_t value = 0;

	switch (dtype) {
	case LEAT_U8:
	case LEAT_BOOL:
		return *at;
	case LEAT_I8:
		return (int8_t)*at;
	case LEAT_U16:
		return at[0] | at[1] << 8;
	case LEAT_I16:
		return (int16_t)(at[0] | at[1] << 8);
	case LEAT_U32:
		return leat_load32(at);
	case LEAT_I32:
		return (int32_t)leat_load32(at);
	default:
		memcpy(&value, at, sizeof(value));
		return value;
	}
}

static int
by_value(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return x < y ? -1 : x > y;
}

/* Index of a label that occurs most often; if several do, of the smallest. `value` has room for all. */
static size_t
most_frequent(const unsigned char *label, enum leat_dtype dtype, int64_t *value, size_t count)
{
	size_t bytes = leat_dtype_size(dtype), most = 0, i = 0;
	int64_t found = 0;

	for (size_t k = 0; k < count; k++)
		value[k] = label_value(label + k * bytes, dtype);
	qsort(value, count, sizeof(*value), by_value);
	for (size_t k = 0; k < count;) {
		size_t end = k;

		while (end < count && value[end] == value[k])
			end++;
		if (end - k > most) {
			most = end - k;
			found = value[k];
		}
		k = end;
	}
	while (label_value(label + i * bytes, dtype) != found)
		i++;
	return i;
}

enum leat_status
leat_series_get_label(const struct leat_source *source, uint64_t begin, struct leat_scratch *scratch,
                      struct leat_datum *datum, struct leat_err *err)
{
	const struct leat_windows *windows = source->params;
	const struct leat_series *series = source->state;
	uint64_t all = labels_of(windows, &begin), here = all;
	size_t bytes = (size_t)(all * series->label_bytes), used = 0, file;
	const unsigned char *labels = labels_at(series, begin, &here, &file);

	*datum = (struct leat_datum){.dtype = series->label.dtype, .ndim = series->label.ndim};
	memcpy(datum->shape, series->label.shape, sizeof(datum->shape));
	if (here < all || !series->labels[file].aligned) {
		unsigned char *copy = leat_scratch_alloc(scratch, bytes);

		if (!copy)
			return leat_fail(err, LEAT_LIMIT, "no memory for the labels of a window");
		for (uint64_t left = all; left > 0; left -= here, begin += here, here = left) {
			labels = labels_at(series, begin, &here, &file);
			memcpy(copy + used, labels, (size_t)(here * series->label_bytes));
			used += (size_t)(here * series->label_bytes);
		}
		labels = copy;
	}
	if (windows->label == LEAT_LABEL_MAJORITY) {
		int64_t *value = leat_scratch_alloc(scratch, (size_t)all * sizeof(*value));

		if (!value)
			return leat_fail(err, LEAT_LIMIT, "no memory for the labels of a window");
		labels += most_frequent(labels, series->label.dtype, value, (size_t)all) * series->label_bytes;
	}
	datum->data = (void *)labels;
	datum->borrowed = true;
	return LEAT_OK;
}

static size_t
padded(uint64_t bytes)
{
	return ((size_t)bytes + 63) & ~(size_t)63;
}

size_t
leat_series_scratch(const struct leat_windows *windows, const struct leat_series *series)
{
	bool copies = series->way != LEAT_SERIES_LENT || series->outer > 1 || windows->across, labels = windows->across;
	uint64_t begin = 0, count = labels_of(windows, &begin);
	size_t size = 0;

	for (size_t i = 0; i < series->files; i++) {
		copies |= !series->array[i].aligned;
		labels |= series->labels && !series->labels[i].aligned;
	}
	if (copies)
		size += padded(series->window_bytes);
	if (series->labels && labels)
		size += padded(count * series->label_bytes);
	if (series->labels && windows->label == LEAT_LABEL_MAJORITY)
		size += padded(count * sizeof(int64_t));
	return size;
}
