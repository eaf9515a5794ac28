/* shards_rows.c - the rows of a chunk as records: tf.train.Examples with TFRecord's frame
 *
 * Columns first: numbers become int64_t or float, column by column. Then row by row, each column writes its feature. */
#include <inttypes.h>
#include <string.h>

#include "base/array.h"
#include "cli/shards.h"

static const int64_t microseconds_of_day = INT64_C(86400000000);
static const size_t max_record = INT32_MAX; /* limit of protobuf */

void
leat_shard_rows_free(struct leat_shard_rows *rows)
{
	if (!rows->mem)
		return;
	leat_free(rows->mem, rows->bytes);
	leat_free(rows->mem, rows->offset);
	leat_free(rows->mem, rows->len);
	leat_free(rows->mem, rows->text);
	leat_free(rows->mem, rows->text_len);
	*rows = (struct leat_shard_rows){0};
}

/* ---- numbers ---- */

static enum leat_status
make_room(struct leat_shard_column *column, size_t count, struct leat_mem *mem, struct leat_err *err)
{
	enum leat_status status;
	int64_t *numbers = column->numbers;

	status = LEAT_GROW_RAW(mem, numbers, column->numbers_cap, count ? count : 1, SIZE_MAX, "a column", err);
	column->values = column->numbers = numbers;
	return status;
}

#define WIDEN(type)                                                                                                    \
	for (size_t i = 0; i < vector->count; i++)                                                                     \
	to[i] = ((const type *)vector->values)[i]

static enum leat_status
check_unsigned(const struct leat_shard_column *column, const struct leat_vector *vector, struct leat_err *err)
{
	const uint64_t *from = vector->values;

	for (size_t i = 0; i < vector->count; i++)
		if (from[i] > INT64_MAX && !leat_vector_is_null(vector, i))
			return leat_fail(err, LEAT_DATA,
			                 "column '%s' has the value %" PRIu64
			                 ", which does not fit int64, the only integer type of a tf.train.Example",
			                 column->name, from[i]);
	return LEAT_OK;
}

static enum leat_status
convert_dates(const struct leat_shard_column *column, const struct leat_vector *vector, int64_t *to,
              struct leat_err *err)
{
	const int32_t *days = vector->values;

	for (size_t i = 0; i < vector->count; i++)
		if (__builtin_mul_overflow((int64_t)days[i], microseconds_of_day, &to[i]) &&
		    !leat_vector_is_null(vector, i))
			return leat_fail(
				err, LEAT_DATA,
				"column '%s' has a date %d days after 1970, which has no number of microseconds "
				"in int64; infinite dates have none either",
				column->name, days[i]);
	return LEAT_OK;
}

static enum leat_status
convert_ints(struct leat_shard_column *column, const struct leat_vector *vector, struct leat_mem *mem,
             struct leat_err *err)
{
	enum leat_status status = make_room(column, vector->count, mem, err);
	int64_t *to = column->numbers;

	if (status != LEAT_OK)
		return status;
	switch (vector->type->kind) {
	case LEAT_COLUMN_INT8:
		WIDEN(int8_t);
		break;
	case LEAT_COLUMN_INT16:
		WIDEN(int16_t);
		break;
	case LEAT_COLUMN_INT32:
		WIDEN(int32_t);
		break;
	case LEAT_COLUMN_BOOL:
	case LEAT_COLUMN_UINT8:
		WIDEN(uint8_t);
		break;
	case LEAT_COLUMN_UINT16:
		WIDEN(uint16_t);
		break;
	case LEAT_COLUMN_UINT32:
		WIDEN(uint32_t);
		break;
	case LEAT_COLUMN_DATE:
		return convert_dates(column, vector, to, err);
	default:
		return leat_fail(err, LEAT_INTERNAL, "column '%s' is %s, not numbers", column->name,
		                 vector->type->name);
	}
	return LEAT_OK;
}

static enum leat_status
convert_doubles(struct leat_shard_column *column, const struct leat_vector *vector, struct leat_mem *mem,
                struct leat_err *err)
{
	enum leat_status status = make_room(column, vector->count, mem, err);
	const double *from = vector->values;
	float *to = column->numbers;

	for (size_t i = 0; status == LEAT_OK && i < vector->count; i++)
		to[i] = (float)from[i];
	return status;
}

/* As features of an Example: int64_t or float. */
static enum leat_status
convert_feature(struct leat_shard_column *column, const struct leat_vector *vector, struct leat_mem *mem,
                struct leat_err *err)
{
	switch (vector->type->kind) {
	case LEAT_COLUMN_TEXT:
	case LEAT_COLUMN_BLOB:
		return LEAT_OK;
	case LEAT_COLUMN_DOUBLE:
		return convert_doubles(column, vector, mem, err);
	case LEAT_COLUMN_FLOAT:
	case LEAT_COLUMN_INT64:
	case LEAT_COLUMN_TIME:
	case LEAT_COLUMN_TIMESTAMP:
		column->values = vector->values;
		return LEAT_OK;
	case LEAT_COLUMN_UINT64:
		column->values = vector->values;
		return check_unsigned(column, vector, err);
	default:
		return convert_ints(column, vector, mem, err);
	}
}

/* From the vector that holds the numbers: of a list, that of all elements. */
static enum leat_status
convert(const struct leat_shard_table *table, struct leat_shard_column *column, const struct leat_vector *vector,
        struct leat_err *err)
{
	if (table->format == &leat_shard_tfrecord)
		return convert_feature(column, vector, table->mem, err);
	column->values = vector->values;
	return vector->type->kind == LEAT_COLUMN_DATE && !table->format->exact
	               ? convert_ints(column, vector, table->mem, err)
	               : LEAT_OK;
}

enum leat_status
leat_shard_convert(struct leat_shard_table *table, const struct leat_chunk *chunk, struct leat_err *err)
{
	enum leat_status status = LEAT_OK;

	for (size_t i = 0; i < table->columns && status == LEAT_OK; i++) {
		const struct leat_vector *vector = &chunk->columns[i];

		status = convert(table, &table->column[i], table->column[i].is_list ? &vector->children[0] : vector,
		                 err);
	}
	return status;
}

/* ---- lists ---- */

struct leat_shard_span
leat_shard_span(const struct leat_vector *vector, size_t row)
{
	struct leat_shard_span span = {.elements = &vector->children[0]};

	if (vector->type->kind == LEAT_COLUMN_LIST) {
		leat_vector_list(vector, row, &span.first, &span.count);
	} else {
		span.count = (size_t)vector->type->size;
		span.first = row * span.count;
	}
	return span;
}

enum leat_status
leat_shard_check_span(const struct leat_shard_table *table, const struct leat_shard_column *column,
                      const struct leat_shard_span *span, uint64_t row, struct leat_err *err)
{
	for (size_t i = 0; span->elements->valid && i < span->count; i++)
		if (leat_vector_is_null(span->elements, span->first + i))
			return leat_fail(err, LEAT_DATA,
			                 "column '%s' of row %" PRIu64
			                 " is a list with a NULL in it, which %s cannot hold; leave it out or "
			                 "replace it in SQL, for example with list_filter or coalesce",
			                 column->name, row + 1, table->format->holder);
	return LEAT_OK;
}

static size_t
room_of_span(const struct leat_shard_column *column, const struct leat_shard_span *span)
{
	size_t bytes = 0, len;

	for (size_t i = 0; column->feature.kind == LEAT_FEATURE_BYTES && i < span->count; i++) {
		leat_vector_text(span->elements, span->first + i, &len);
		bytes += len;
	}
	return leat_row_feature_room(&column->feature, span->count, bytes);
}

/* The list has room for its texts. */
static unsigned char *
put_texts(struct leat_shard_rows *rows, const struct leat_shard_column *column, const struct leat_shard_span *span,
          unsigned char *to)
{
	for (size_t i = 0; i < span->count; i++)
		rows->text[i] = leat_vector_text(span->elements, span->first + i, &rows->text_len[i]);
	return leat_row_put_texts(&column->feature, to, rows->text, rows->text_len, span->count);
}

static unsigned char *
put_span(struct leat_shard_rows *rows, const struct leat_shard_column *column, const struct leat_shard_span *span,
         unsigned char *to)
{
	switch (column->feature.kind) {
	case LEAT_FEATURE_INT64:
		return leat_row_put_int64s(&column->feature, to, (const int64_t *)column->values + span->first,
		                           span->count);
	case LEAT_FEATURE_FLOAT:
		return leat_row_put_floats(&column->feature, to, (const float *)column->values + span->first,
		                           span->count);
	default:
		return put_texts(rows, column, span, to);
	}
}

/* ---- rows ---- */

/* Upper bound for a row's list, after checking it. */
static enum leat_status
measure_list(struct leat_shard_rows *rows, const struct leat_shard_table *table, const struct leat_shard_column *column,
             const struct leat_vector *vector, size_t row, uint64_t number, size_t *room, struct leat_err *err)
{
	struct leat_shard_span span = leat_shard_span(vector, row);
	enum leat_status status = leat_shard_check_span(table, column, &span, number, err);

	if (status == LEAT_OK && column->feature.kind == LEAT_FEATURE_BYTES) {
		status = LEAT_GROW_RAW(rows->mem, rows->text, rows->text_cap, span.count, SIZE_MAX, "a list", err);
		if (status == LEAT_OK)
			status = LEAT_GROW_RAW(rows->mem, rows->text_len, rows->text_len_cap, span.count, SIZE_MAX,
			                       "a list", err);
	}
	if (status == LEAT_OK)
		*room += room_of_span(column, &span);
	return status;
}

/* Upper bound for the record of a row. */
static enum leat_status
measure(struct leat_shard_rows *rows, const struct leat_shard_table *table, const struct leat_chunk *chunk, size_t row,
        uint64_t number, size_t *room, struct leat_err *err)
{
	enum leat_status status = LEAT_OK;
	size_t len;

	*room = LEAT_ROW_ROOM;
	for (size_t i = 0; i < table->columns && status == LEAT_OK; i++) {
		const struct leat_shard_column *column = &table->column[i];
		const struct leat_vector *vector = &chunk->columns[i];

		if (leat_vector_is_null(vector, row))
			continue;
		if (column->is_list) {
			status = measure_list(rows, table, column, vector, row, number, room, err);
			continue;
		}
		len = 0;
		if (column->feature.kind == LEAT_FEATURE_BYTES)
			leat_vector_text(vector, row, &len);
		*room += leat_row_feature_room(&column->feature, 1, len);
	}
	if (status == LEAT_OK && *room > max_record)
		status = leat_fail(err, LEAT_DATA,
		                   "row %" PRIu64 " has about %zu bytes, and a tf.train.Example may have 2 GiB",
		                   number + 1, *room);
	return status;
}

static unsigned char *
put_column(struct leat_shard_rows *rows, const struct leat_shard_column *column, const struct leat_vector *vector,
           size_t row, unsigned char *to)
{
	struct leat_shard_span span;
	const char *text;
	size_t len;

	if (column->is_list) {
		span = leat_shard_span(vector, row);
		return put_span(rows, column, &span, to);
	}
	switch (column->feature.kind) {
	case LEAT_FEATURE_INT64:
		return leat_row_put_int64(&column->feature, to, ((const int64_t *)column->values)[row]);
	case LEAT_FEATURE_FLOAT:
		return leat_row_put_float(&column->feature, to, ((const float *)column->values)[row]);
	default:
		text = leat_vector_text(vector, row, &len);
		return leat_row_put_bytes(&column->feature, to, text, len);
	}
}

static enum leat_status
make_row(struct leat_shard_rows *rows, struct leat_shard_table *table, const struct leat_chunk *chunk, size_t row,
         uint64_t first, size_t *used, struct leat_err *err)
{
	unsigned char *begin, *to;
	enum leat_status status;
	size_t room;

	status = measure(rows, table, chunk, row, first + row, &room, err);
	if (status == LEAT_OK)
		status = LEAT_GROW_RAW(rows->mem, rows->bytes, rows->cap, *used + room, SIZE_MAX, "rows", err);
	if (status != LEAT_OK)
		return status;
	begin = rows->bytes + *used;
	to = leat_row_begin_at(begin, rows->digits);
	for (size_t i = 0; i < table->columns; i++) {
		if (leat_vector_is_null(&chunk->columns[i], row))
			table->column[i].nulls++;
		else
			to = put_column(rows, &table->column[i], &chunk->columns[i], row, to);
	}
	rows->offset[row] = *used;
	rows->len[row] = (size_t)(leat_row_end_at(begin, to, &rows->digits) - begin);
	rows->total = *used += rows->len[row];
	return LEAT_OK;
}

enum leat_status
leat_shard_rows_make(struct leat_shard_rows *rows, struct leat_shard_table *table, const struct leat_chunk *chunk,
                     uint64_t first, struct leat_err *err)
{
	enum leat_status status;
	size_t used = 0;

	rows->mem = table->mem;
	rows->rows = chunk->rows;
	rows->total = 0;
	rows->digits += !rows->digits;
	status = LEAT_GROW_RAW(rows->mem, rows->offset, rows->rows_cap, chunk->rows, SIZE_MAX, "rows", err);
	if (status == LEAT_OK)
		status = LEAT_GROW_RAW(rows->mem, rows->len, rows->len_cap, chunk->rows, SIZE_MAX, "rows", err);
	if (status == LEAT_OK)
		status = leat_shard_convert(table, chunk, err);
	for (size_t row = 0; row < chunk->rows && status == LEAT_OK; row++)
		status = make_row(rows, table, chunk, row, first, &used, err);
	return status;
}
