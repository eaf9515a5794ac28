/* batch.c - see batch.h */
#include "feed/batch.h"

#include <stdio.h>
#include <string.h>

#include "base/copy.h"
#include "feed/pin.h"

/* Two batches of this size, one being filled and one in use, exceed a core's private caches. */
enum { LARGE_BATCH = 2 * 1024 * 1024 };

/* ---- form ---- */

static size_t
reserve(size_t *end, size_t bytes)
{
	size_t at = *end;

	*end = (at + bytes + 63) & ~(size_t)63;
	return at;
}

/* Size of a dense column. Saturates, so that sums cannot overflow. */
static size_t
dense_bytes(const struct leat_field *field, int64_t rows, size_t *row_bytes)
{
	int64_t elements = leat_field_elements(field);
	size_t bytes;

	if (elements < 0 || __builtin_mul_overflow((size_t)elements, leat_dtype_size(field->dtype), row_bytes) ||
	    __builtin_mul_overflow(*row_bytes, (size_t)rows, &bytes) || bytes > LEAT_MOST_BYTES)
		return LEAT_MOST_BYTES;
	return bytes;
}

static void
form_ragged(struct leat_batch_form *form, struct leat_column_form *column, size_t *end)
{
	size_t rows = (size_t)form->rows;

	column->offsets_at = reserve(end, (rows + 1) * sizeof(int64_t));
	if (column->field.ndim > 1)
		column->shapes_at = reserve(end, rows * (size_t)column->field.ndim * sizeof(int64_t));
	if (!form->direct)
		column->rows_at = reserve(end, rows * sizeof(struct leat_ragged_row));
}

static void
reserve_values(const struct leat_batch_form *form, struct leat_column_form *column, size_t capacity, size_t *end)
{
	column->capacity = capacity;
	column->values_at = reserve(end, capacity);
	if (!form->direct)
		column->arena_at = reserve(end, capacity);
}

/* The first field that shares reserves the room, the others refer to it. */
static void
form_shared(struct leat_batch_form *form, int i, int *first, const struct leat_batch_room *room, size_t *end)
{
	struct leat_column_form *column = &form->column[i];

	column->shares = true;
	if (*first < 0) {
		*first = i;
		form->shares = true;
		form->shared_row = room->shared_row;
		if (form->shared_row)
			form->row_used_at = reserve(end, (size_t)form->rows * sizeof(size_t));
		reserve_values(form, column, room->shared, end);
	}
	column->arena = *first;
	column->capacity = form->column[*first].capacity;
	column->values_at = form->column[*first].values_at;
	column->arena_at = form->column[*first].arena_at;
}

void
leat_batch_form_make(struct leat_batch_form *form, const struct leat_schema *schema, int64_t rows, bool direct,
                     const struct leat_batch_room *room)
{
	size_t end = 0, delivered = 0;
	int shared = -1;

	*form = (struct leat_batch_form){
		.rows = rows, .columns = schema->count, .direct = direct, .column = form->column};
	form->valid_at = reserve(&end, (size_t)rows);
	form->state_at = reserve(&end, (size_t)rows);
	form->position_at = reserve(&end, (size_t)rows * sizeof(uint64_t));
	for (int i = 0; i < schema->count; i++) {
		struct leat_column_form *column = &form->column[i];

		*column = (struct leat_column_form){.field = schema->entry[i].field, .arena = i};
		if (leat_field_is_static(&column->field)) {
			column->capacity = dense_bytes(&column->field, rows, &column->row_bytes);
			column->values_at = reserve(&end, column->capacity);
		} else {
			form->ragged = true;
			form_ragged(form, column, &end);
			if (room->shares[i])
				form_shared(form, i, &shared, room, &end);
			else
				reserve_values(form, column, room->capacity[i], &end);
		}
		delivered += column->arena == i ? column->capacity : 0;
	}
	form->bytes = end;
	form->large = delivered > LARGE_BATCH;
}

void
leat_batch_form_add_faults(struct leat_batch_form *form)
{
	form->notes = form->rows < LEAT_BAD_REASONS ? (int)form->rows : LEAT_BAD_REASONS;
	form->faults_at = reserve(&form->bytes, (size_t)form->rows * sizeof(struct leat_fault));
	form->notes_at = reserve(&form->bytes, (size_t)form->notes * sizeof(struct leat_bad_note));
}

/* ---- buffers ---- */

size_t
leat_batch_bytes(const struct leat_batch_form *form)
{
	return sizeof(struct leat_batch) + (size_t)form->columns * sizeof(struct leat_batch_column);
}

struct leat_batch *
leat_batch_new(struct leat_feed *feed, const struct leat_batch_form *form, struct leat_mem *mem)
{
	struct leat_batch *batch = leat_alloc(mem, leat_batch_bytes(form));

	if (!batch)
		return NULL;
	batch->feed = feed;
	batch->form = form;
	batch->mem = mem;
	batch->base = leat_map(mem, form->bytes);
	if (!batch->base) {
		leat_free(mem, batch);
		return NULL;
	}
	for (int i = 0; i < form->columns; i++)
		batch->column[i].values_at = form->column[i].values_at;
	return batch;
}

void
leat_batch_free(struct leat_batch *batch)
{
	if (!batch)
		return;
	leat_unpin_slot(batch);
	leat_unmap(batch->mem, batch->base, batch->form->bytes);
	leat_free(batch->mem, batch);
}

static struct leat_ragged_row *
ragged_rows(const struct leat_batch *batch, int column)
{
	return (struct leat_ragged_row *)(void *)(batch->base + batch->form->column[column].rows_at);
}

static size_t *
row_used(const struct leat_batch *batch, int64_t row)
{
	return (size_t *)(void *)(batch->base + batch->form->row_used_at) + row;
}

void
leat_batch_clear_row(struct leat_batch *batch, int64_t row)
{
	if (!batch->form->shared_row)
		return;
	*row_used(batch, row) = 0;
	for (int i = 0; i < batch->form->columns; i++)
		if (batch->form->column[i].shares)
			ragged_rows(batch, i)[row] = (struct leat_ragged_row){0};
}

void
leat_batch_reset(struct leat_batch *batch)
{
	leat_bad_forget(batch);
	batch->chosen = batch->planned = batch->done = batch->count = batch->samples = 0;
	batch->complete = false;
	atomic_store_explicit(&batch->checked, false, memory_order_relaxed);
	batch->err_row = -1;
	leat_err_clear(&batch->err);
	if (batch->form->shared_row)
		memset(row_used(batch, 0), 0, (size_t)batch->form->rows * sizeof(size_t));
	for (int i = 0; i < batch->form->columns; i++) {
		atomic_store_explicit(&batch->column[i].arena_used, 0, memory_order_relaxed);
		if (leat_batch_is_dense(&batch->form->column[i]))
			continue;
		leat_batch_offsets(batch, i)[0] = 0;
		if (!batch->form->direct)
			memset(ragged_rows(batch, i), 0, (size_t)batch->form->rows * sizeof(struct leat_ragged_row));
	}
}

/* ---- rows ---- */

static int64_t *
ragged_shapes(const struct leat_batch *batch, int column)
{
	return (int64_t *)(void *)(batch->base + batch->form->column[column].shapes_at);
}

static size_t
round_up(size_t n)
{
	return (n + 63) & ~(size_t)63;
}

void
leat_batch_stop_assigning(struct leat_batch *batch)
{
	batch->assigning = false;
	for (int i = 0; i < batch->form->columns; i++) {
		size_t assigned = atomic_load_explicit(&batch->column[i].arena_used, memory_order_relaxed);

		atomic_store_explicit(&batch->column[i].arena_used, round_up(assigned), memory_order_relaxed);
	}
}

void
leat_batch_assign_ragged_row(struct leat_batch *batch, int64_t row, const struct leat_sample *sample)
{
	for (int i = 0; i < batch->form->columns; i++) {
		const struct leat_column_form *form = &batch->form->column[i];
		size_t bytes = leat_datum_bytes(&sample->field[i]), at;

		if (leat_batch_is_dense(form))
			continue;
		at = atomic_load_explicit(&batch->column[i].arena_used, memory_order_relaxed);
		if (bytes > form->capacity - at) /* does not fit in the arena either */
			return leat_batch_stop_assigning(batch);
		ragged_rows(batch, i)[row] = (struct leat_ragged_row){leat_batch_values(batch, i) + at, bytes};
		atomic_store_explicit(&batch->column[i].arena_used, at + bytes, memory_order_relaxed);
	}
}

static bool
is_assigned(const struct leat_batch *batch, int column, const void *at)
{
	const unsigned char *begin = batch->base + batch->form->column[column].values_at, *byte = at;

	return byte >= begin && byte < begin + batch->form->column[column].capacity;
}

/* Takes `room` bytes of the arena. False: it is full. */
static bool
arena_reserve(struct leat_batch *batch, const struct leat_column_form *form, int64_t row, size_t room, size_t *at)
{
	if (form->shares && batch->form->shared_row) {
		size_t *used = row_used(batch, row);

		if (room > batch->form->shared_row - *used)
			return false;
		*at = (size_t)row * batch->form->shared_row + *used;
		*used += room;
		return true;
	}
	*at = atomic_fetch_add_explicit(&batch->column[form->arena].arena_used, room, memory_order_relaxed);
	return *at <= form->capacity - room;
}

static void *
arena_take(struct leat_batch *batch, int column, int64_t row, size_t bytes)
{
	const struct leat_column_form *form = &batch->form->column[column];
	struct leat_ragged_row *slot = &ragged_rows(batch, column)[row];
	size_t room = round_up(bytes), at;

	if (slot->at && bytes <= slot->room)
		return slot->at;
	/* An assigned row cannot grow: the next row starts right after it. */
	if (room < bytes || room > form->capacity || is_assigned(batch, column, slot->at))
		return NULL;
	if (!arena_reserve(batch, form, row, room, &at))
		return NULL;
	*slot = (struct leat_ragged_row){batch->base + form->arena_at + at, room};
	return slot->at;
}

void *
leat_batch_output_slot(struct leat_batch *batch, int column, int64_t row, size_t bytes)
{
	const struct leat_column_form *form = &batch->form->column[column];

	if (!leat_batch_is_dense(form))
		return arena_take(batch, column, row, bytes);
	return bytes == form->row_bytes ? leat_batch_values(batch, column) + (size_t)row * form->row_bytes : NULL;
}

static bool
shape_fits(const struct leat_field *field, const struct leat_datum *datum)
{
	if (field->dtype != datum->dtype || field->ndim != datum->ndim)
		return false;
	for (int d = 0; d < field->ndim; d++)
		if (field->shape[d] >= 0 && field->shape[d] != datum->shape[d])
			return false;
	return true;
}

static enum leat_status
fail_no_room(const struct leat_batch *batch, int column, int64_t row, struct leat_err *err)
{
	const struct leat_column_form *form = &batch->form->column[column];

	if (is_assigned(batch, column, ragged_rows(batch, column)[row].at))
		return leat_fail(err, LEAT_DATA, "field '%s' is longer than its cached copy: the file has changed",
		                 form->field.name);
	return leat_fail(err, LEAT_LIMIT,
	                 "field '%s' of a batch needs more than its %zu MiB share of memory=", form->field.name,
	                 form->capacity >> 20);
}

static enum leat_status
store_ragged(struct leat_batch *batch, int column, int64_t row, const struct leat_datum *datum, struct leat_err *err)
{
	const struct leat_column_form *form = &batch->form->column[column];
	size_t bytes = leat_datum_bytes(datum);

	if (bytes > 0 && datum->data != ragged_rows(batch, column)[row].at) {
		void *to = arena_take(batch, column, row, bytes);

		if (!to)
			return fail_no_room(batch, column, row, err);
		leat_copy(to, datum->data, bytes, batch->form->large && is_assigned(batch, column, to));
	}
	leat_batch_offsets(batch, column)[row + 1] = leat_datum_elements(datum);
	if (form->field.ndim > 1)
		memcpy(ragged_shapes(batch, column) + row * form->field.ndim, datum->shape,
		       (size_t)form->field.ndim * sizeof(int64_t));
	return LEAT_OK;
}

enum leat_status
leat_batch_store(struct leat_batch *batch, int64_t row, const struct leat_sample *sample, struct leat_err *err)
{
	for (int i = 0; i < batch->form->columns; i++) {
		const struct leat_column_form *form = &batch->form->column[i];
		const struct leat_datum *datum = &sample->field[i];
		unsigned char *slot;

		if (!shape_fits(&form->field, datum))
			return leat_fail(err, LEAT_INTERNAL, "field '%s' does not have its declared shape",
			                 form->field.name);
		if (!leat_batch_is_dense(form)) {
			enum leat_status status = store_ragged(batch, i, row, datum, err);

			if (status != LEAT_OK)
				return status;
			continue;
		}
		slot = leat_batch_values(batch, i) + (size_t)row * form->row_bytes;
		if (slot != datum->data)
			leat_copy(slot, datum->data, form->row_bytes, batch->form->large);
	}
	return LEAT_OK;
}

/* ---- completion ---- */

static bool
row_stays(const struct leat_batch *batch, int64_t row, bool keep_bad)
{
	return keep_bad || leat_batch_states(batch)[row] != LEAT_ROW_BAD;
}

static void
complete_dense(struct leat_batch *batch, int column, bool keep_bad)
{
	const struct leat_column_form *form = &batch->form->column[column];
	const uint8_t *state = leat_batch_states(batch);
	unsigned char *to = leat_batch_values(batch, column);

	for (int64_t row = 0; row < batch->rows; row++) {
		unsigned char *from = leat_batch_values(batch, column) + (size_t)row * form->row_bytes;

		if (!row_stays(batch, row, keep_bad))
			continue;
		if (state[row] != LEAT_ROW_GOOD)
			memset(to, 0, form->row_bytes);
		else if (to != from)
			memmove(to, from, form->row_bytes);
		to += form->row_bytes;
	}
}

/* Copies values from the arena, or closes the gap that dropped rows left before an assigned row. */
static void
move_values(const struct leat_batch *batch, int column, unsigned char *to, const unsigned char *from, size_t bytes)
{
	if (!is_assigned(batch, column, from))
		leat_copy(to, from, bytes, batch->form->large);
	else if (to != from)
		memmove(to, from, bytes);
}

/* Moves values into row order and turns the lengths in offsets[row + 1] (direct: already sums) into offsets. Returns
 * the number of values. */
static int64_t
complete_ragged(struct leat_batch *batch, int column, bool keep_bad)
{
	const struct leat_column_form *form = &batch->form->column[column];
	const uint8_t *state = leat_batch_states(batch);
	int64_t *offsets = leat_batch_offsets(batch, column), *shapes = ragged_shapes(batch, column);
	size_t element = leat_dtype_size(form->field.dtype), dims = (size_t)form->field.ndim;
	int64_t sum = 0, from = 0, out = 0;

	for (int64_t row = 0; row < batch->rows; row++) {
		int64_t length = state[row] == LEAT_ROW_PADDING ? 0 : offsets[row + 1];
		const unsigned char *data;

		if (batch->form->direct) {
			int64_t to = state[row] == LEAT_ROW_PADDING ? from : offsets[row + 1];

			length = to - from;
			data = leat_batch_values(batch, column) + (size_t)from * element;
			from = to;
		} else {
			data = ragged_rows(batch, column)[row].at;
		}
		if (!row_stays(batch, row, keep_bad))
			continue;
		if (state[row] != LEAT_ROW_GOOD)
			length = 0;
		if (length > 0)
			move_values(batch, column, leat_batch_values(batch, column) + (size_t)sum * element, data,
			            (size_t)length * element);
		if (dims > 1 && state[row] != LEAT_ROW_GOOD)
			memset(shapes + (size_t)out * dims, 0, dims * sizeof *shapes);
		else if (dims > 1)
			memmove(shapes + (size_t)out * dims, shapes + (size_t)row * dims, dims * sizeof *shapes);
		sum += length;
		offsets[++out] = sum; /* out <= row: only entries already read are overwritten */
	}
	return sum;
}

/* Fields that share follow each other. They fit: rows in the arena were rounded up, too, one by one. */
static void
complete_shared(struct leat_batch *batch, bool keep_bad)
{
	size_t bytes = 0;

	for (int i = 0; i < batch->form->columns; i++) {
		const struct leat_column_form *form = &batch->form->column[i];

		if (!form->shares)
			continue;
		batch->column[i].values_at = form->values_at + bytes;
		bytes += round_up((size_t)complete_ragged(batch, i, keep_bad) * leat_dtype_size(form->field.dtype));
	}
}

static void
complete_rows(struct leat_batch *batch, bool all_good, bool keep_bad)
{
	uint8_t *state = leat_batch_states(batch), *valid = batch->base + batch->form->valid_at;
	uint64_t *position = leat_batch_positions(batch);
	int64_t out = 0;

	if (all_good) {
		memset(valid, 1, (size_t)batch->own_rows);
		memset(valid + batch->own_rows, 0, (size_t)(batch->rows - batch->own_rows));
		batch->count = batch->rows;
		batch->samples = batch->own_rows;
		return;
	}
	batch->samples = 0;
	for (int64_t row = 0; row < batch->rows; row++) {
		bool good = state[row] == LEAT_ROW_GOOD;

		if (!row_stays(batch, row, keep_bad))
			continue;
		valid[out] = good && row < batch->own_rows;
		batch->samples += valid[out];
		position[out] = good ? position[row] : UINT64_MAX;
		out++;
	}
	batch->count = out;
}

void
leat_batch_complete(struct leat_batch *batch, bool keep_bad)
{
	const uint8_t *state = leat_batch_states(batch);
	bool all_good = true;

	for (int64_t row = 0; row < batch->rows; row++)
		all_good &= state[row] == LEAT_ROW_GOOD;
	for (int i = 0; i < batch->form->columns; i++) {
		if (batch->form->column[i].shares)
			continue;
		if (!leat_batch_is_dense(&batch->form->column[i])) {
			if (!all_good || !batch->form->direct)
				complete_ragged(batch, i, keep_bad);
		} else if (!all_good) {
			complete_dense(batch, i, keep_bad);
		}
	}
	if (batch->form->shares)
		complete_shared(batch, keep_bad);
	complete_rows(batch, all_good, keep_bad);
	if (batch->form->large)
		leat_copy_fence();
}
