/* arrow_rows.c - rows of a table in memory as samples, one field per column; see arrow.h
 *
 * Threads: workers call rows_at and unpack on what open made, which does not change. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/names.h"
#include "format/arrow.h"

/* What can be wrong with a row: the column's number times FAULTS plus one of these, or BAD. 0: nothing. */
enum { IS_NULL = 1, HAS_NULL, RANGE, FAULTS, BAD = UINT16_MAX };

/* The rows of a column in one record batch. */
struct piece {
	const unsigned char *values; /* of number columns: where row 0 is; of text and lists: what offsets refer to */
	const struct ArrowArray *array;
	int64_t from;               /* row 0 in the array's buffers */
	const unsigned char *valid; /* NULL: no row is null */
	unsigned char *filled;      /* elements of lists without their nulls; owned */
};

struct column {
	char name[LEAT_MAX_NAME + 1];
	struct leat_arrow_type type;
	int64_t child;    /* of a batch */
	size_t row_bytes; /* 0: ragged */
	struct piece *piece;
	unsigned char *dense; /* converted rows; NULL: they are in the pieces */
};

struct leat_arrow_rows {
	struct leat_arrow *table;
	struct leat_arrow_wish wish;
	size_t columns, ragged;
	struct column *column;
	uint64_t *first;   /* row of each batch, and of all */
	uint64_t whole[2]; /* backs source->first: batches are no parts, so the order does not depend on them */
	uint64_t dense_bytes, longest;
	uint16_t *fault; /* of each row; NULL: none has one */
	size_t last;     /* batch of the last locate */
};

/* ---- values ---- */

static bool
is_null(const struct piece *piece, int64_t row)
{
	int64_t at = piece->from + row;

	return piece->valid && !(piece->valid[at / 8] >> at % 8 & 1);
}

static int64_t
offset_at(const struct ArrowArray *array, bool wide, int64_t at)
{
	return wide ? ((const int64_t *)array->buffers[1])[at] : ((const int32_t *)array->buffers[1])[at];
}

/* Row `row` of a coded column is this one of its dictionary. */
static int64_t
code_at(const struct column *column, const struct piece *piece, int64_t row)
{
	uint64_t code = 0;

	memcpy(&code, (const unsigned char *)piece->array->buffers[1] + (size_t)(piece->from + row) * column->type.code,
	       column->type.code);
	return (int64_t)code;
}

static const unsigned char *
view_at(const struct ArrowArray *array, int64_t at, size_t *len)
{
	const unsigned char *view = (const unsigned char *)array->buffers[1] + 16 * at;
	int32_t word[4];

	memcpy(word, view, sizeof(word));
	*len = (size_t)word[0];
	return word[0] <= 12 ? view + 4 : (const unsigned char *)array->buffers[2 + word[2]] + word[3];
}

/* Bytes of a row of text, or the elements of a list. */
static const unsigned char *
ragged_at(const struct column *column, const struct piece *piece, int64_t row, size_t *len)
{
	static const uint64_t none;
	const struct ArrowArray *array = piece->array;
	int64_t at = piece->from + row, begin, end;

	*len = 0;
	if (is_null(piece, row))
		return (const unsigned char *)&none;
	if (column->type.coded) {
		array = array->dictionary;
		at = array->offset + code_at(column, piece, row);
	}
	if (column->type.form == LEAT_ARROW_VIEW)
		return view_at(array, at, len);
	begin = offset_at(array, column->type.wide, at);
	end = offset_at(array, column->type.wide, at + 1);
	*len = (size_t)(end - begin) * column->type.width;
	return *len ? piece->values + (size_t)begin * column->type.width : (const unsigned char *)&none;
}

static double
decimal_at(const unsigned char *at, const struct leat_arrow_type *type)
{
	__int128 wide;
	int64_t words;
	int32_t half;

	if (type->width == 16) {
		memcpy(&wide, at, sizeof(wide));
		return (double)wide / type->unit;
	}
	if (type->width == 8) {
		memcpy(&words, at, sizeof(words));
		return (double)words / type->unit;
	}
	memcpy(&half, at, sizeof(half));
	return half / type->unit;
}

/* Makes the value of row `at` of an array's buffers. False: it is out of range. */
static bool
convert(const struct column *column, const struct ArrowArray *array, int64_t at, unsigned char *to)
{
	const struct leat_arrow_type *type = &column->type;
	const unsigned char *values = array->buffers[1];
	int64_t number = 0;
	double decimal;
	int32_t half;

	switch (type->form) {
	case LEAT_ARROW_BITS:
		*to = values[at / 8] >> at % 8 & 1;
		return true;
	case LEAT_ARROW_SCALED:
		if (type->width == 4) {
			memcpy(&half, values + 4 * at, 4);
			number = half;
		} else {
			memcpy(&number, values + 8 * at, 8);
		}
		if (__builtin_mul_overflow(number, type->num, &number))
			return false;
		number /= type->den;
		memcpy(to, &number, sizeof(number));
		return true;
	case LEAT_ARROW_DECIMAL:
		decimal = decimal_at(values + type->width * (size_t)at, type);
		memcpy(to, &decimal, sizeof(decimal));
		return true;
	default:
		memcpy(to, values + column->row_bytes * (size_t)at, column->row_bytes);
		return true;
	}
}

/* ---- nulls ---- */

static enum leat_status
mark(struct leat_source *source, struct leat_arrow_rows *rows, uint64_t row, unsigned fault, struct leat_err *err)
{
	if (!rows->fault)
		rows->fault = leat_alloc_array(source->mem, source->count, sizeof(*rows->fault));
	if (!rows->fault)
		return leat_fail_mem(err, source->mem, source->count * sizeof(*rows->fault), "the rows of a table");
	if (!rows->fault[row])
		rows->fault[row] = (uint16_t)fault;
	return LEAT_OK;
}

/* What stands for a null. False: nothing does, so the row is bad. */
static bool
fill_null(enum leat_arrow_null null, enum leat_dtype dtype, unsigned char *to, size_t bytes)
{
	memset(to, 0, bytes);
	if (null == LEAT_ARROW_NULL_NAN && dtype == LEAT_F32)
		for (size_t i = 0; i < bytes / 4; i++)
			memcpy(to + 4 * i, &(float){NAN}, 4);
	else if (null == LEAT_ARROW_NULL_NAN && dtype == LEAT_F64)
		for (size_t i = 0; i < bytes / 8; i++)
			memcpy(to + 8 * i, &(double){NAN}, 8);
	else
		return null == LEAT_ARROW_NULL_ZERO;
	return true;
}

static const unsigned char *
valid_of(const struct ArrowArray *array)
{
	return array->null_count != 0 && array->n_buffers > 0 ? array->buffers[0] : NULL;
}

/* ---- pieces ---- */

/* The array that holds the numbers of lists of a fixed size, and where those of row 0 begin there. */
static const struct ArrowArray *
innermost(const struct column *column, const struct ArrowArray *array, int64_t *from)
{
	for (int i = 0; i < column->type.ndim && array->n_children == 1; i++) {
		array = array->children[0];
		*from = *from * column->type.shape[i] + array->offset;
	}
	return array;
}

static void
set_piece(const struct column *column, const struct ArrowArray *batch, struct piece *piece)
{
	const struct ArrowArray *array = batch->children[column->child], *inner;
	int64_t from = array->offset + batch->offset;
	const struct leat_arrow_type *type = &column->type;

	*piece = (struct piece){.array = array, .from = from, .valid = valid_of(array)};
	if (type->coded)
		array = array->dictionary;
	if (type->form == LEAT_ARROW_TEXT)
		piece->values = array->buffers[2];
	else if (type->form == LEAT_ARROW_LIST)
		piece->values = (const unsigned char *)array->children[0]->buffers[1] +
		                (size_t)array->children[0]->offset * type->width;
	else if (type->form == LEAT_ARROW_NUMBER && !type->coded) {
		inner = innermost(column, array, &from);
		/* Bytes of a fixed length have no array inside: a value is all of them. */
		piece->values = (const unsigned char *)inner->buffers[1] +
		                (size_t)from * (inner == array ? column->row_bytes : type->width);
	}
}

/* Marks rows whose elements are null, or makes a copy of the elements that has none. */
static enum leat_status
fill_elements(struct leat_source *source, struct leat_arrow_rows *rows, const struct column *column,
              struct piece *piece, uint64_t first, uint64_t count, struct leat_err *err)
{
	const struct ArrowArray *child = piece->array->children[0];
	const unsigned char *valid = valid_of(child);
	unsigned number = (unsigned)(column - rows->column);
	size_t width = column->type.width;
	enum leat_status status = LEAT_OK;

	if (!valid)
		return LEAT_OK;
	if (rows->wish.null != LEAT_ARROW_NULL_ERROR) {
		piece->filled = leat_realloc_raw(source->mem, NULL, (size_t)child->length * width + 1);
		if (!piece->filled)
			return leat_fail_mem(err, source->mem, (size_t)child->length * width, "the elements of lists");
		memcpy(piece->filled, piece->values, (size_t)child->length * width);
	}
	for (uint64_t row = 0; row < count && status == LEAT_OK; row++) {
		int64_t at = piece->from + (int64_t)row, end = offset_at(piece->array, column->type.wide, at + 1);

		if (is_null(piece, (int64_t)row))
			continue;
		for (int64_t i = offset_at(piece->array, column->type.wide, at); i < end && status == LEAT_OK; i++) {
			int64_t bit = child->offset + i;

			if (valid[bit / 8] >> bit % 8 & 1)
				continue;
			if (!piece->filled ||
			    !fill_null(rows->wish.null, column->type.dtype, piece->filled + (size_t)i * width, width))
				status = mark(source, rows, first + row, number * FAULTS + HAS_NULL, err);
		}
	}
	if (piece->filled)
		piece->values = piece->filled;
	return status;
}

/* Do lists of a fixed size have null elements? Then their rows are looked at one by one. */
static bool
element_is_null(const struct column *column, const struct piece *piece, int64_t row, size_t element)
{
	int64_t from = piece->from;
	const struct ArrowArray *inner = innermost(column, piece->array, &from);
	const unsigned char *valid = inner == piece->array ? NULL : valid_of(inner);
	int64_t at = from + row * (int64_t)(column->row_bytes / column->type.width) + (int64_t)element;

	return valid && !(valid[at / 8] >> at % 8 & 1);
}

static bool
has_null_elements(const struct column *column, const struct piece *piece)
{
	int64_t from = piece->from;
	const struct ArrowArray *inner = innermost(column, piece->array, &from);

	return column->type.ndim && inner != piece->array && valid_of(inner);
}

/* Must rows be copied? */
static bool
needs_copy(const struct leat_arrow_rows *rows, const struct column *column)
{
	if (column->type.form != LEAT_ARROW_NUMBER || column->type.coded)
		return true;
	for (size_t b = 0; b < rows->table->batches; b++) {
		const struct piece *piece = &column->piece[b];
		bool nulls = piece->valid || has_null_elements(column, piece);

		if ((uintptr_t)piece->values % column->type.width ||
		    (nulls && rows->wish.null != LEAT_ARROW_NULL_ERROR))
			return true;
	}
	return false;
}

/* A row of numbers, with nulls filled or marked; `to` NULL: only marked. */
static enum leat_status
take_row(struct leat_source *source, struct leat_arrow_rows *rows, const struct column *column,
         const struct piece *piece, int64_t row, uint64_t number, unsigned char *to, struct leat_err *err)
{
	unsigned fault = (unsigned)(column - rows->column) * FAULTS;
	enum leat_arrow_null null = rows->wish.null;
	size_t width = column->type.width;
	enum leat_status status = LEAT_OK;
	unsigned char none[8];

	if (is_null(piece, row)) {
		if (to ? fill_null(null, column->type.dtype, to, column->row_bytes)
		       : fill_null(null, column->type.dtype, none, 8) /* the same answer */)
			return LEAT_OK;
		return mark(source, rows, number, fault + IS_NULL, err);
	}
	if (to && column->type.coded &&
	    !convert(column, piece->array->dictionary, piece->array->dictionary->offset + code_at(column, piece, row),
	             to))
		status = mark(source, rows, number, fault + RANGE, err);
	else if (to && !column->type.coded && column->type.form == LEAT_ARROW_NUMBER)
		memcpy(to, piece->values + (size_t)row * column->row_bytes, column->row_bytes);
	else if (to && !column->type.coded && !convert(column, piece->array, piece->from + row, to))
		status = mark(source, rows, number, fault + RANGE, err);
	if (!column->type.ndim)
		return status;
	for (size_t i = 0; i < column->row_bytes / width && status == LEAT_OK; i++)
		if (element_is_null(column, piece, row, i) &&
		    !fill_null(null, column->type.dtype, to ? to + i * width : none, width))
			status = mark(source, rows, number, fault + HAS_NULL, err);
	return status;
}

static enum leat_status
take_numbers(struct leat_source *source, struct leat_arrow_rows *rows, struct column *column, struct leat_err *err)
{
	enum leat_status status = LEAT_OK;

	if (needs_copy(rows, column)) {
		column->dense = leat_alloc_array(source->mem, source->count, column->row_bytes);
		if (!column->dense)
			return leat_fail_mem(err, source->mem, source->count * column->row_bytes,
			                     "the converted columns of a table");
	}
	for (size_t b = 0; b < rows->table->batches; b++) {
		const struct piece *piece = &column->piece[b];
		uint64_t first = rows->first[b], count = rows->first[b + 1] - first;

		if (!column->dense && !piece->valid && !has_null_elements(column, piece))
			continue;
		for (uint64_t row = 0; row < count && status == LEAT_OK; row++)
			status =
				take_row(source, rows, column, piece, (int64_t)row, first + row,
			                 column->dense ? column->dense + (first + row) * column->row_bytes : NULL, err);
	}
	return status;
}

static enum leat_status
take_ragged(struct leat_source *source, struct leat_arrow_rows *rows, struct column *column, struct leat_err *err)
{
	unsigned fault = (unsigned)(column - rows->column) * FAULTS + IS_NULL;
	enum leat_status status = LEAT_OK;

	for (size_t b = 0; b < rows->table->batches && status == LEAT_OK; b++) {
		struct piece *piece = &column->piece[b];
		uint64_t first = rows->first[b], count = rows->first[b + 1] - first;

		if (column->type.form == LEAT_ARROW_LIST)
			status = fill_elements(source, rows, column, piece, first, count, err);
		for (uint64_t row = 0; piece->valid && row < count && status == LEAT_OK; row++)
			if (is_null(piece, (int64_t)row) && rows->wish.null != LEAT_ARROW_NULL_ZERO)
				status = mark(source, rows, first + row, fault, err);
	}
	return status;
}

/* ---- columns ---- */

static enum leat_status
fail_column(const struct ArrowSchema *schema, const char *why, const struct leat_source *source, struct leat_err *err)
{
	return leat_fail(err, LEAT_SPEC, "%s: column '%.80s' cannot be a field: %s; choose others with columns=[...]",
	                 source->kind->name, schema->name ? schema->name : "", why);
}

static enum leat_status
add_column(struct leat_source *source, struct leat_arrow_rows *rows, int64_t child, struct leat_err *err)
{
	const struct ArrowSchema *schema = rows->table->schema.children[child];
	const char *name = schema->name ? schema->name : "";
	struct column *column = &rows->column[rows->columns];
	struct leat_field *field;
	char why[160];

	if (!leat_arrow_type_read(schema, &column->type)) {
		snprintf(why, sizeof(why), "its Arrow type '%.40s' is none of numbers, text, and lists of numbers",
		         schema->dictionary ? "dictionary" : schema->format);
		return fail_column(schema, why, source, err);
	}
	field = leat_schema_add(&source->schema, name, column->type.dtype);
	if (!field)
		return fail_column(schema,
		                   !*name || strlen(name) > LEAT_MAX_NAME         ? "a name has 1 to 63 bytes"
		                   : leat_schema_find(&source->schema, name) >= 0 ? "it is given twice"
		                                                                  : "there are too many fields",
		                   source, err);
	memcpy(column->name, field->name, sizeof(column->name));
	column->child = child;
	column->row_bytes = leat_dtype_size(column->type.dtype);
	field->ndim = column->type.ndim;
	for (int i = 0; i < field->ndim; i++) {
		field->shape[i] = column->type.shape[i];
		column->row_bytes *= (size_t)field->shape[i];
	}
	if (column->type.form == LEAT_ARROW_TEXT || column->type.form == LEAT_ARROW_VIEW ||
	    column->type.form == LEAT_ARROW_LIST) {
		field->ndim = 1;
		field->shape[0] = -1;
		column->row_bytes = 0;
		rows->ragged++;
	}
	rows->dense_bytes += column->row_bytes;
	rows->columns++;
	return LEAT_OK;
}

static int64_t
find_child(const struct ArrowSchema *schema, const char *name)
{
	int64_t i = 0;

	while (i < schema->n_children && strcmp(schema->children[i]->name ? schema->children[i]->name : "", name) != 0)
		i++;
	return i;
}

static enum leat_status
fail_unknown(const struct leat_source *source, const struct ArrowSchema *schema, const char *name, struct leat_err *err)
{
	struct leat_unknown unknown = {.what = "column", .name = name};
	const char *known[256];

	for (; unknown.count < (size_t)schema->n_children && unknown.count < sizeof(known) / sizeof(*known);
	     unknown.count++)
		known[unknown.count] = schema->children[unknown.count]->name;
	unknown.known = known;
	unknown.more = (size_t)schema->n_children - unknown.count;
	leat_fail_unknown(err, LEAT_SPEC, &unknown);
	leat_err_in(err, "%s", source->kind->name);
	return LEAT_SPEC;
}

static enum leat_status
choose_columns(struct leat_source *source, struct leat_arrow_rows *rows, struct leat_err *err)
{
	const struct ArrowSchema *schema = &rows->table->schema;
	const struct leat_strings *names = &rows->wish.columns;
	size_t count = names->count ? names->count : (size_t)schema->n_children;
	enum leat_status status = LEAT_OK;

	if (count < 1 || count > LEAT_MAX_FIELDS)
		return leat_fail(err, LEAT_SPEC,
		                 "%s: a sample has 1 to %d fields, but there are %zu columns; choose some with "
		                 "columns=[...]",
		                 source->kind->name, LEAT_MAX_FIELDS, count);
	rows->column = leat_alloc_array(source->mem, count, sizeof(*rows->column));
	if (!rows->column)
		return leat_fail_mem(err, source->mem, count * sizeof(*rows->column), "the columns");
	for (size_t i = 0; i < count && status == LEAT_OK; i++) {
		int64_t child = names->count ? find_child(schema, names->value[i]) : (int64_t)i;

		status = child < schema->n_children ? add_column(source, rows, child, err)
		                                    : fail_unknown(source, schema, names->value[i], err);
	}
	return status;
}

static enum leat_status
take_column(struct leat_source *source, struct leat_arrow_rows *rows, struct column *column, struct leat_err *err)
{
	const struct leat_arrow *table = rows->table;

	column->piece = leat_alloc_array(source->mem, table->batches, sizeof(*column->piece));
	if (!column->piece)
		return leat_fail_mem(err, source->mem, table->batches * sizeof(*column->piece), "the columns");
	for (size_t b = 0; b < table->batches; b++) {
		const struct ArrowArray *batch = &table->batch[b];
		const char *fault =
			leat_arrow_check(batch->children[column->child], &column->type, batch->offset, batch->length);

		if (fault)
			return leat_fail(err, LEAT_DATA, "%s: column '%s' is damaged: %s", source->kind->name,
			                 column->name, fault);
		set_piece(column, batch, &column->piece[b]);
	}
	return column->row_bytes ? take_numbers(source, rows, column, err) : take_ragged(source, rows, column, err);
}

/* ---- open and close ---- */

static const struct leat_arrow_rows *
rows_of(const struct leat_source *source)
{
	return *(struct leat_arrow_rows *const *)source->state;
}

static size_t
batch_of(const struct leat_arrow_rows *rows, uint64_t row)
{
	size_t low = 0, high = rows->table->batches;

	while (high - low > 1) {
		size_t middle = low + (high - low) / 2;

		if (rows->first[middle] <= row)
			low = middle;
		else
			high = middle;
	}
	return low;
}

static uint64_t
bytes_of(const struct leat_arrow_rows *rows, size_t batch, uint64_t row)
{
	uint64_t bytes = rows->dense_bytes;
	size_t len;

	for (size_t i = 0; rows->ragged && i < rows->columns; i++)
		if (!rows->column[i].row_bytes) {
			ragged_at(&rows->column[i], &rows->column[i].piece[batch], (int64_t)(row - rows->first[batch]),
			          &len);
			bytes += len;
		}
	return bytes;
}

static enum leat_status
take_table(struct leat_source *source, struct leat_arrow_rows *rows, struct leat_err *err)
{
	const struct leat_arrow *table = rows->table;
	enum leat_status status = choose_columns(source, rows, err);

	source->count = table->rows;
	rows->first = leat_alloc_array(source->mem, table->batches + 1, sizeof(*rows->first));
	if (status == LEAT_OK && !rows->first)
		status = leat_fail_mem(err, source->mem, table->batches * sizeof(*rows->first), "the batches");
	for (size_t b = 0; status == LEAT_OK && b < table->batches; b++)
		rows->first[b + 1] = rows->first[b] + (uint64_t)table->batch[b].length;
	for (size_t i = 0; i < rows->columns && status == LEAT_OK; i++)
		status = take_column(source, rows, &rows->column[i], err);
	for (size_t i = 0; i < rows->wish.bads && status == LEAT_OK; i++) {
		status = mark(source, rows, rows->wish.bad[i].row, BAD, err);
		if (status == LEAT_OK)
			rows->fault[rows->wish.bad[i].row] = BAD;
	}
	for (size_t b = 0; status == LEAT_OK && rows->ragged && b < table->batches; b++)
		for (uint64_t row = rows->first[b]; row < rows->first[b + 1]; row++) {
			uint64_t bytes = bytes_of(rows, b, row);

			rows->longest = bytes > rows->longest ? bytes : rows->longest;
		}
	if (!rows->ragged)
		rows->longest = rows->dense_bytes;
	return status;
}

enum leat_status
leat_arrow_source_open(struct leat_source *source, struct leat_arrow *table, const struct leat_arrow_wish *wish,
                       struct leat_arrow_rows **out, struct leat_err *err)
{
	struct leat_arrow_rows *rows = leat_alloc(source->mem, sizeof(*rows));
	enum leat_status status;

	*out = NULL;
	if (!rows) {
		leat_arrow_free(table);
		return leat_fail_mem(err, source->mem, sizeof(*rows), "a table");
	}
	rows->table = table;
	rows->wish = *wish;
	status = take_table(source, rows, err);
	if (status != LEAT_OK) {
		leat_arrow_source_close(source, rows);
		return status;
	}
	*out = rows;
	rows->whole[1] = source->count;
	source->first = rows->whole;
	source->parts = 1;
	return LEAT_OK;
}

void
leat_arrow_source_close(struct leat_source *source, struct leat_arrow_rows *rows)
{
	if (!rows)
		return;
	for (size_t i = 0; i < rows->columns; i++) {
		for (size_t b = 0; rows->column[i].piece && b < rows->table->batches; b++)
			leat_free(source->mem, rows->column[i].piece[b].filled);
		leat_free(source->mem, rows->column[i].piece);
		leat_free(source->mem, rows->column[i].dense);
	}
	leat_free(source->mem, rows->column);
	leat_free(source->mem, rows->first);
	leat_free(source->mem, rows->fault);
	leat_arrow_free(rows->table);
	leat_free(source->mem, rows);
}

void
leat_arrow_longest(struct leat_source *source)
{
	leat_source_longest(source, 0, rows_of(source)->longest);
}

/* ---- samples ---- */

void
leat_arrow_locate(const struct leat_source *source, uint64_t sample, struct leat_extent *extent)
{
	struct leat_arrow_rows *rows = *(struct leat_arrow_rows **)source->state;

	*extent = (struct leat_extent){.lent = rows->dense_bytes};
	if (!rows->ragged)
		return;
	if (sample < rows->first[rows->last] || sample >= rows->first[rows->last + 1])
		rows->last = batch_of(rows, sample);
	extent->lent = bytes_of(rows, rows->last, sample);
}

enum leat_status
leat_arrow_touch(const struct leat_source *source, const uint64_t *sample, size_t count, int flags,
                 struct leat_err *err)
{
	(void)source, (void)sample, (void)count, (void)flags, (void)err;
	return LEAT_OK;
}

bool
leat_arrow_rows_form(const struct leat_source *source, int field, struct leat_row_form *form)
{
	const struct leat_arrow_rows *rows = rows_of(source);
	const struct column *column = &rows->column[field];

	if (rows->fault || !column->row_bytes)
		return false;
	*form = (struct leat_row_form){column->type.dtype, column->row_bytes / leat_dtype_size(column->type.dtype)};
	return true;
}

void
leat_arrow_rows_at(const struct leat_source *source, int field, const uint64_t *sample, size_t count,
                   const unsigned char **at)
{
	const struct leat_arrow_rows *rows = rows_of(source);
	const struct column *column = &rows->column[field];
	const unsigned char *all = column->dense || !rows->table->batches ? column->dense : column->piece[0].values;
	size_t batch = 0;

	if (column->dense || rows->table->batches <= 1) {
		for (size_t i = 0; i < count; i++)
			at[i] = all + sample[i] * column->row_bytes;
		return;
	}
	for (size_t i = 0; i < count; i++) {
		if (sample[i] < rows->first[batch] || sample[i] >= rows->first[batch + 1])
			batch = batch_of(rows, sample[i]);
		at[i] = column->piece[batch].values + (sample[i] - rows->first[batch]) * column->row_bytes;
	}
}

static enum leat_status
fail_row(const struct leat_source *source, uint64_t row, struct leat_err *err)
{
	const struct leat_arrow_rows *rows = rows_of(source);
	unsigned fault = rows->fault[row];
	const struct column *column = &rows->column[fault == BAD ? 0 : fault / FAULTS];
	bool floats = column->type.dtype == LEAT_F32 || column->type.dtype == LEAT_F64;
	size_t low = 0, high = rows->wish.bads;
	char where[LEAT_URI + 40];

	rows->wish.where(source, row, where, sizeof(where));
	if (fault == BAD) {
		while (high - low > 1) {
			size_t middle = low + (high - low) / 2;

			if (rows->wish.bad[middle].row <= row)
				low = middle;
			else
				high = middle;
		}
		return leat_fail(err, LEAT_DATA, "%s: %s", where, rows->wish.bad[low].why);
	}
	if (fault % FAULTS == RANGE)
		return leat_fail(err, LEAT_DATA, "%s: column '%s' is too large for int64 microseconds", where,
		                 column->name);
	return leat_fail(err, LEAT_DATA, "%s: column '%s' %s null; use null=zero%s, or replace nulls in the table",
	                 where, column->name, fault % FAULTS == HAS_NULL ? "has an element that is" : "is",
	                 floats ? " or null=nan" : "");
}

enum leat_status
leat_arrow_unpack(const struct leat_source *source, const struct leat_raw *raw, struct leat_scratch *scratch,
                  struct leat_sample *sample, struct leat_err *err)
{
	const struct leat_arrow_rows *rows = rows_of(source);
	size_t batch = batch_of(rows, raw->index);
	uint64_t row = raw->index - rows->first[batch];

	(void)scratch;
	if (rows->fault && rows->fault[raw->index])
		return fail_row(source, raw->index, err);
	sample->count = (int)rows->columns;
	for (size_t i = 0; i < rows->columns; i++) {
		const struct column *column = &rows->column[i];
		struct leat_datum *datum = &sample->field[i];
		const unsigned char *at;
		size_t len;

		*datum = (struct leat_datum){.dtype = column->type.dtype, .ndim = column->type.ndim, .borrowed = true};
		memcpy(datum->shape, column->type.shape, sizeof(datum->shape));
		if (column->dense) {
			at = column->dense + raw->index * column->row_bytes;
		} else if (column->row_bytes) {
			at = column->piece[batch].values + row * column->row_bytes;
		} else {
			at = ragged_at(column, &column->piece[batch], (int64_t)row, &len);
			datum->ndim = 1;
			datum->shape[0] = (int64_t)(len / leat_dtype_size(column->type.dtype));
		}
		datum->data = (void *)(uintptr_t)at; /* borrowed: read-only */
	}
	return LEAT_OK;
}

/* Names and types of the columns, and the number of rows: not how they are divided into batches. */
void
leat_arrow_fingerprint(const struct leat_source *source, struct leat_sha256 *sha)
{
	const struct leat_arrow_rows *rows = rows_of(source);

	leat_fingerprint_number(sha, source->count);
	for (size_t i = 0; i < rows->columns; i++) {
		leat_fingerprint_text(sha, rows->column[i].name, strlen(rows->column[i].name));
		leat_fingerprint_number(sha, rows->column[i].type.dtype);
		leat_fingerprint_number(sha, rows->column[i].row_bytes);
	}
}
