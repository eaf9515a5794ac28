/* shards_pack.c - rows as packed values, for formats whose writers have work to do
 *
 * A value is a byte that tells if it is there, and then: a number in its own layout; the length (4 bytes) and bytes of
 * a text; the count (4 bytes) and numbers of a list; the count and total length (4 bytes each) of a list of texts, and
 * each of them as above. Records stay in this process, so numbers have its byte order. */
#include <inttypes.h>
#include <string.h>

#include "base/array.h"
#include "cli/shards.h"

static const size_t max_row = INT32_MAX;

/* ---- packing ---- */

static unsigned char *
put_u32(unsigned char *to, size_t value)
{
	uint32_t number = (uint32_t)value;

	memcpy(to, &number, sizeof(number));
	return to + sizeof(number);
}

static unsigned char *
put_bytes(unsigned char *to, const void *bytes, size_t len)
{
	if (len)
		memcpy(to, bytes, len);
	return to + len;
}

/* Bytes of the texts of a list, with their lengths. */
static size_t
texts_size(const struct leat_shard_span *span)
{
	size_t total = 0, len;

	for (size_t i = 0; i < span->count; i++) {
		leat_vector_text(span->elements, span->first + i, &len);
		total += sizeof(uint32_t) + len;
	}
	return total;
}

static size_t
room_of(const struct leat_shard_column *column, const struct leat_vector *vector, size_t row)
{
	struct leat_shard_span span;
	size_t len = 0;

	if (leat_vector_is_null(vector, row))
		return 1;
	if (column->is_list) {
		span = leat_shard_span(vector, row);
		return 1 + 2 * sizeof(uint32_t) + (column->size ? span.count * column->size : texts_size(&span));
	}
	if (column->size)
		return 1 + column->size;
	leat_vector_text(vector, row, &len);
	return 1 + sizeof(uint32_t) + len;
}

static unsigned char *
put_list(const struct leat_shard_column *column, const struct leat_shard_span *span, unsigned char *to)
{
	size_t len;

	to = put_u32(to, span->count);
	if (column->size)
		return put_bytes(to, (const char *)column->values + span->first * column->size,
		                 span->count * column->size);
	to = put_u32(to, texts_size(span));
	for (size_t i = 0; i < span->count; i++) {
		const char *text = leat_vector_text(span->elements, span->first + i, &len);

		to = put_bytes(put_u32(to, len), text, len);
	}
	return to;
}

static unsigned char *
put_value(const struct leat_shard_column *column, const struct leat_vector *vector, size_t row, unsigned char *to)
{
	struct leat_shard_span span;
	const char *text;
	size_t len;

	*to++ = !leat_vector_is_null(vector, row);
	if (leat_vector_is_null(vector, row))
		return to;
	if (column->is_list) {
		span = leat_shard_span(vector, row);
		return put_list(column, &span, to);
	}
	if (column->size)
		return put_bytes(to, (const char *)column->values + row * column->size, column->size);
	text = leat_vector_text(vector, row, &len);
	return put_bytes(put_u32(to, len), text, len);
}

/* ---- what a format cannot hold ---- */

static enum leat_status
check_length(struct leat_shard_column *column, size_t count, uint64_t row, const char *holder, struct leat_err *err)
{
	if (column->length == SIZE_MAX)
		column->length = count;
	if (column->length == count)
		return LEAT_OK;
	return leat_fail(err, LEAT_DATA,
	                 "column '%s' has a list of %zu values in row %" PRIu64
	                 " and of %zu before, and %s needs lists "
	                 "of one length; pad them in SQL with list_resize, or choose another --format",
	                 column->name, count, row + 1, column->length, holder);
}

static enum leat_status
check_value(const struct leat_shard_table *table, struct leat_shard_column *column, const struct leat_vector *vector,
            size_t row, uint64_t number, struct leat_err *err)
{
	const struct leat_shard_format *format = table->format;
	struct leat_shard_span span;
	enum leat_status status;

	if (leat_vector_is_null(vector, row)) {
		column->nulls++;
		if (!format->dense && !column->is_image)
			return LEAT_OK;
		return leat_fail(err, LEAT_DATA,
		                 "column '%s' is NULL in row %" PRIu64
		                 ", which %s cannot hold; replace it in SQL with coalesce, or leave the row out",
		                 column->name, number + 1, column->is_image ? "an image" : format->holder);
	}
	if (!column->is_list)
		return LEAT_OK;
	span = leat_shard_span(vector, row);
	status = leat_shard_check_span(table, column, &span, number, err);
	return status == LEAT_OK && format->dense ? check_length(column, span.count, number, format->holder, err)
	                                          : status;
}

/* ---- rows ---- */

static enum leat_status
pack_row(struct leat_shard_rows *rows, struct leat_shard_table *table, const struct leat_chunk *chunk, size_t row,
         uint64_t number, struct leat_err *err)
{
	enum leat_status status = LEAT_OK;
	size_t room = sizeof(number), used = rows->total;
	unsigned char *to;

	for (size_t i = 0; i < table->columns && status == LEAT_OK; i++) {
		status = check_value(table, &table->column[i], &chunk->columns[i], row, number, err);
		if (status == LEAT_OK)
			room += room_of(&table->column[i], &chunk->columns[i], row);
	}
	if (status == LEAT_OK && room > max_row)
		status = leat_fail(err, LEAT_DATA, "row %" PRIu64 " has about %zu bytes, and may have 2 GiB",
		                   number + 1, room);
	if (status == LEAT_OK)
		status = LEAT_GROW_RAW(rows->mem, rows->bytes, rows->cap, used + room, SIZE_MAX, "rows", err);
	if (status != LEAT_OK)
		return status;
	to = rows->bytes + used;
	if (table->has_images)
		to = put_bytes(to, &number, sizeof(number));
	for (size_t i = 0; i < table->columns; i++)
		to = put_value(&table->column[i], &chunk->columns[i], row, to);
	rows->offset[row] = used;
	rows->len[row] = (size_t)(to - rows->bytes) - used;
	rows->total += rows->len[row];
	return LEAT_OK;
}

enum leat_status
leat_shard_rows_pack(struct leat_shard_rows *rows, struct leat_shard_table *table, const struct leat_chunk *chunk,
                     uint64_t first, struct leat_err *err)
{
	enum leat_status status;

	rows->mem = table->mem;
	rows->rows = chunk->rows;
	rows->total = 0;
	status = LEAT_GROW_RAW(rows->mem, rows->offset, rows->rows_cap, chunk->rows, SIZE_MAX, "rows", err);
	if (status == LEAT_OK)
		status = LEAT_GROW_RAW(rows->mem, rows->len, rows->len_cap, chunk->rows, SIZE_MAX, "rows", err);
	if (status == LEAT_OK)
		status = leat_shard_convert(table, chunk, err);
	for (size_t row = 0; row < chunk->rows && status == LEAT_OK; row++)
		status = pack_row(rows, table, chunk, row, first + row, err);
	return status;
}

/* ---- unpacking ---- */

static const unsigned char *
take_u32(const unsigned char *from, size_t *value)
{
	uint32_t number;

	memcpy(&number, from, sizeof(number));
	*value = number;
	return from + sizeof(number);
}

uint64_t
leat_shard_unpack(const struct leat_shard_table *table, const unsigned char *record, struct leat_shard_value *value)
{
	uint64_t number = 0;

	if (table->has_images) {
		memcpy(&number, record, sizeof(number));
		record += sizeof(number);
	}
	for (size_t i = 0; i < table->columns; i++, value++) {
		const struct leat_shard_column *column = &table->column[i];

		*value = (struct leat_shard_value){.null = !*record++, .count = 1};
		if (value->null)
			continue;
		if (column->is_list)
			record = take_u32(record, &value->count);
		if (column->size)
			value->len = value->count * column->size;
		else
			record = take_u32(record, &value->len);
		value->bytes = record;
		record += value->len;
	}
	return number;
}

const unsigned char *
leat_shard_next_text(const struct leat_shard_value *value, size_t *at, size_t *len)
{
	const unsigned char *text = take_u32(value->bytes + *at, len);

	*at += sizeof(uint32_t) + *len;
	return text;
}
