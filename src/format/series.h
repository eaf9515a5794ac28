/* series.h - what the files of the source `windows` share; private to them
 *
 * A recording is one .npy file. Its axis is divided into steps; all steps of all recordings, in the
 * order of their files, are numbered from 0, and a window is a range of these numbers. An array is
 * `outer` rows, one after the other, that each hold all steps of `inner` bytes: 1 row for a series of
 * samples of sensors (axis=0), and a row for each channel of an EEG (axis=1). A window is as many
 * pieces as there are rows, or more where it crosses files.
 *
 * Threads: everything here is read-only once the source is open, and may be called by any. */
#ifndef LEAT_FORMAT_SERIES_H
#define LEAT_FORMAT_SERIES_H

#include "format/npy_file.h"

enum leat_label { LEAT_LABEL_LAST, LEAT_LABEL_FIRST, LEAT_LABEL_CENTER, LEAT_LABEL_MAJORITY, LEAT_LABEL_ALL };

struct leat_windows {
	struct leat_strings x, labels, events;
	int64_t length, stride, axis, offset;
	int label; /* enum leat_label */
	bool across;
};

struct leat_event {
	int64_t start, label;
};

struct leat_event_list {
	size_t count, cap;
	struct leat_event *event;
	bool labeled;
};

/* How windows get into memory: lent by arrays in memory, fetched by the engine as one range, or read by workers, piece
 * by piece. */
enum leat_series_way { LEAT_SERIES_LENT, LEAT_SERIES_FETCHED, LEAT_SERIES_READ };

struct leat_series {
	size_t files; /* recordings: the first of source->files */
	struct leat_npy_file *array;
	struct leat_npy_file *labels; /* of each recording; NULL: none */
	struct leat_event_list events;
	uint64_t *first; /* sample that each part begins with: a part is a recording, or with `across` all of them */
	size_t parts;
	uint64_t *step; /* step that each recording begins with; files + 1 numbers */
	uint64_t outer, inner;
	uint64_t window_bytes;
	uint64_t label_bytes; /* of one step */
	enum leat_series_way way;
	bool cut;    /* some recordings lack their end */
	size_t last; /* part of the last locate */
	struct leat_field x, label;
};

struct leat_series_piece {
	size_t file;
	uint64_t offset, bytes; /* in the file's array */
};

/* The pieces of a window, in the order of its bytes. */
struct leat_series_walk {
	const struct leat_series *series;
	uint64_t begin, end; /* steps */
	uint64_t row, at;
	size_t file, first_file;
};

static inline uint64_t
leat_series_length(const struct leat_windows *windows)
{
	return (uint64_t)windows->length;
}

/* Which recording holds a step. */
static inline size_t
leat_series_file_of(const struct leat_series *series, uint64_t step)
{
	return leat_npy_file_of(series->step, series->files, step);
}

/* Sets `first` and `parts` from the steps, where there are no events. */
void leat_series_count(const struct leat_windows *windows, struct leat_series *series);
/* The window of a sample that is in `part`: its first step. False: an event's window is not within its recording;
 * *begin is then the part's first step. */
bool leat_series_begin(const struct leat_windows *windows, const struct leat_series *series, uint64_t sample,
                       size_t part, uint64_t *begin);
size_t leat_series_part(const struct leat_series *series, uint64_t sample);

void leat_series_walk(struct leat_series_walk *walk, const struct leat_series *series, uint64_t begin, uint64_t length);
bool leat_series_next(struct leat_series_walk *walk, struct leat_series_piece *piece);
/* Are all pieces of a window within their files? */
bool leat_series_is_whole(const struct leat_source *source, const struct leat_series *series, uint64_t begin,
                          uint64_t length);

/* Worker threads: fill one field of a sample. */
enum leat_status leat_series_get_x(const struct leat_source *source, const struct leat_raw *raw, uint64_t begin,
                                   struct leat_scratch *scratch, struct leat_datum *datum, struct leat_err *err);
enum leat_status leat_series_get_label(const struct leat_source *source, uint64_t begin, struct leat_scratch *scratch,
                                       struct leat_datum *datum, struct leat_err *err);
/* What they take from the scratch. */
size_t leat_series_scratch(const struct leat_windows *windows, const struct leat_series *series);

/* For `rows_at`: where the labels of a window begin that is within its file. */
const unsigned char *leat_series_labels_at(const struct leat_source *source, uint64_t begin);
/* How many there are; 0: they have to be counted. */
uint64_t leat_series_labels(const struct leat_windows *windows);

/* For `touch`: brings the labels of a window into memory. */
enum leat_status leat_series_touch_labels(const struct leat_source *source, uint64_t begin, int flags,
                                          struct leat_err *err);

/* Appends the events of a file to a list: an .npy file of integers, or a CSV file. */
enum leat_status leat_events_load(struct leat_source *source, size_t file, struct leat_event_list *list,
                                  struct leat_err *err);

#endif
