/* events.c - lists of events, around which the source `windows` cuts its windows
 *
 * An .npy file holds integers: starts, or rows of (start, ..., label), such as the (start, previous,
 * id) of MNE. Any other file is CSV: a header that names the columns `start` and, if there are labels,
 * `label`; or no header, and the first column is the start and the last one the label. One thread. */
#include "format/series.h"

#include <string.h>

#include "base/array.h"
#include "format/csv.h"
#include "format/csv_table.h"

static enum leat_status
add_event(struct leat_source *source, struct leat_event_list *list, int64_t start, int64_t label, struct leat_err *err)
{
	enum leat_status status =
		LEAT_GROW(source->mem, list->event, list->cap, list->count + 1, SIZE_MAX, "the events", err);

	if (status == LEAT_OK)
		list->event[list->count++] = (struct leat_event){start, label};
	return status;
}

/* All files have labels, or none has. */
static enum leat_status
set_labeled(struct leat_event_list *list, bool labeled, struct leat_err *err)
{
	if (list->count > 0 && list->labeled != labeled)
		return leat_fail(err, LEAT_DATA, "it has %s, unlike the files before it",
		                 labeled ? "labels" : "no labels");
	list->labeled = labeled;
	return LEAT_OK;
}

/* ---- arrays ---- */

static bool
is_integer(enum leat_dtype dtype)
{
	return dtype == LEAT_I32 || dtype == LEAT_I64 || dtype == LEAT_U32 || dtype == LEAT_I16 || dtype == LEAT_U16;
}

static int64_t
number_at(const unsigned char *at, enum leat_dtype dtype)
{
	switch (dtype) {
	case LEAT_I16:
		return (int16_t)(at[0] | at[1] << 8);
	case LEAT_U16:
		return at[0] | at[1] << 8;
	case LEAT_I32:
		return (int32_t)leat_load32(at);
	case LEAT_U32:
		return leat_load32(at);
	default:
		return (int64_t)leat_load64(at);
	}
}

static enum leat_status
add_rows(struct leat_source *source, const unsigned char *bytes, const struct leat_npy *npy,
         struct leat_event_list *list, struct leat_err *err)
{
	size_t size = leat_dtype_size(npy->dtype), columns = npy->ndim == 2 ? (size_t)npy->shape[1] : 1;
	enum leat_status status = LEAT_OK;

	if (!is_integer(npy->dtype) || npy->ndim > 2 || npy->is_complex || columns == 0)
		return leat_fail(err, LEAT_DATA,
		                 "events are starts, or rows of start and label: save an int64 array of one or two "
		                 "dimensions");
	status = set_labeled(list, columns > 1, err);
	for (int64_t i = 0; i < npy->shape[0] && status == LEAT_OK; i++) {
		const unsigned char *row = bytes + npy->data_at + (size_t)i * columns * size;

		status = add_event(source, list, number_at(row, npy->dtype),
		                   number_at(row + (columns - 1) * size, npy->dtype), err);
	}
	return status;
}

static enum leat_status
add_array(struct leat_source *source, const unsigned char *bytes, size_t len, struct leat_event_list *list,
          struct leat_err *err)
{
	struct leat_npy npy;
	enum leat_status status = leat_npy_parse(bytes, len < LEAT_NPY_HEADER ? len : LEAT_NPY_HEADER, len, &npy, err);

	if (status == LEAT_OK && npy.ndim == 0)
		status = leat_fail(err, LEAT_DATA, "it is a scalar; expected an array of events");
	return status == LEAT_OK ? add_rows(source, bytes, &npy, list, err) : status;
}

/* ---- CSV ---- */

struct columns {
	size_t start, label;
	bool labeled;
};

static bool
find_column(const struct leat_csv_row *row, const char *name, size_t *column)
{
	for (*column = 0; *column < row->cells; ++*column)
		if (strcmp(row->cell[*column], name) == 0)
			return true;
	return false;
}

/* From the first row; `is_header` tells whether it is one. */
static enum leat_status
find_columns(const struct leat_csv_row *row, struct columns *columns, bool *is_header, struct leat_err *err)
{
	int64_t number;

	*is_header = !leat_csv_read_int(row->cell[0], &number);
	if (!*is_header) {
		*columns = (struct columns){.label = row->cells - 1, .labeled = row->cells > 1};
		return LEAT_OK;
	}
	columns->labeled = find_column(row, "label", &columns->label);
	if (!find_column(row, "start", &columns->start))
		return leat_fail(err, LEAT_DATA,
		                 "line %llu has no column 'start'; name the columns start and label, or leave out the "
		                 "header",
		                 (unsigned long long)row->line);
	return LEAT_OK;
}

static enum leat_status
add_line(struct leat_source *source, const struct leat_csv_row *row, const struct columns *columns,
         struct leat_event_list *list, struct leat_err *err)
{
	int64_t start, label = 0;

	if (columns->start >= row->cells || !leat_csv_read_int(row->cell[columns->start], &start))
		return leat_fail(err, LEAT_DATA, "line %llu: the start of an event is an integer, a number of steps",
		                 (unsigned long long)row->line);
	if (columns->labeled && (columns->label >= row->cells || !leat_csv_read_int(row->cell[columns->label], &label)))
		return leat_fail(err, LEAT_DATA, "line %llu: the label of an event is an integer",
		                 (unsigned long long)row->line);
	return add_event(source, list, start, label, err);
}

static enum leat_status
add_csv(struct leat_source *source, char *text, size_t len, struct leat_event_list *list, struct leat_err *err)
{
	struct columns columns = {0};
	struct leat_csv_row row;
	struct leat_csv csv;
	bool is_header = false;
	enum leat_status status;

	leat_csv_begin(&csv, text, len);
	status = leat_csv_next(&csv, &row, err);
	if (status == LEAT_OK)
		status = find_columns(&row, &columns, &is_header, err);
	if (status == LEAT_OK)
		status = set_labeled(list, columns.labeled, err);
	if (status == LEAT_OK && is_header)
		status = leat_csv_next(&csv, &row, err);
	while (status == LEAT_OK) {
		status = add_line(source, &row, &columns, list, err);
		if (status == LEAT_OK)
			status = leat_csv_next(&csv, &row, err);
	}
	return status == LEAT_END ? LEAT_OK : status;
}

/* ---- both ---- */

enum leat_status
leat_events_load(struct leat_source *source, size_t file, struct leat_event_list *list, struct leat_err *err)
{
	const struct leat_object *object = leat_files_at(source->files, file);
	size_t len = (size_t)object->size, name = strlen(object->uri), got;
	struct iovec iov = {.iov_base = leat_alloc(source->mem, len + 1), .iov_len = len};
	bool is_array = name > 4 && strcmp(object->uri + name - 4, ".npy") == 0;
	enum leat_status status = LEAT_OK;

	if (!iov.iov_base)
		return leat_fail_mem(err, source->mem, len + 1, "a list of events");
	if (len)
		status = leat_object_read(object, 0, &iov, 1, 0, &got, err);
	if (status == LEAT_OK) {
		status = is_array ? add_array(source, iov.iov_base, len, list, err)
		                  : add_csv(source, iov.iov_base, len, list, err);
		if (status == LEAT_DATA || status == LEAT_UNSUPPORTED)
			leat_err_in(err, "'%s'", object->uri);
	}
	leat_free(source->mem, iov.iov_base);
	return status;
}
