/* batch_copy.c - copies of batches, for consumers that keep them
 *
 * A copy outlives leat_close and does not count against memory=. Its fields are separate blocks, sized to what the
 * batch contains. Consumer thread, except that any thread may drop references. */
#include <string.h>

#include "feed/batch.h"

enum {
	ALIGN = 64,
	/* From here on a block is a mapping: freeing it returns its pages, whatever else is still allocated. */
	MAP_FROM = 128 * 1024,
};

static size_t
round_up(size_t n)
{
	return (n + ALIGN - 1) & ~(size_t)(ALIGN - 1);
}

static bool
block_open(struct leat_block *block, struct leat_mem *mem)
{
	block->mapped = block->bytes >= MAP_FROM;
	block->memory = block->mapped ? leat_map(mem, block->bytes) : leat_alloc(mem, block->bytes + ALIGN);
	if (!block->memory)
		return false;
	block->at = (unsigned char *)block->memory + -(uintptr_t)block->memory % ALIGN;
	return true;
}

static void
block_close(struct leat_block *block, struct leat_mem *mem)
{
	if (block->mapped)
		leat_unmap(mem, block->memory, block->bytes);
	else
		leat_free(mem, block->memory);
}

static bool
copy_column(const struct leat_batch *from, struct leat_batch *to, int column)
{
	const struct leat_column_form *form = &from->form->column[column];
	struct leat_block *block = &to->block[column];
	size_t values = leat_batch_value_bytes(from, column), rows = (size_t)from->count;
	size_t offsets = leat_batch_is_dense(form) ? 0 : (rows + 1) * sizeof(int64_t);
	size_t shapes = form->shapes_at ? rows * (size_t)form->field.ndim * sizeof(int64_t) : 0;

	block->offsets_at = round_up(values);
	block->shapes_at = block->offsets_at + round_up(offsets);
	block->bytes = block->shapes_at + shapes;
	if (!block_open(block, to->mem))
		return false;
	memcpy(block->at, leat_batch_values(from, column), values);
	memcpy(block->at + block->offsets_at, from->base + form->offsets_at, offsets);
	memcpy(block->at + block->shapes_at, from->base + form->shapes_at, shapes);
	atomic_store_explicit(&block->refs, 1, memory_order_relaxed);
	return true;
}

static void
free_columns(struct leat_batch *copy, int columns)
{
	while (columns-- > 0)
		block_close(&copy->block[columns], copy->mem);
}

static struct leat_batch *
copy_rows(const struct leat_batch *from, struct leat_mem *mem)
{
	size_t columns = (size_t)from->form->columns;
	/* valid, state and position come first in every layout. */
	size_t rows = from->form->position_at + (size_t)from->count * sizeof(uint64_t);
	struct leat_batch *to = leat_alloc(mem, sizeof *to);

	if (!to)
		return NULL;
	to->mem = mem;
	to->base = leat_alloc(mem, rows);
	to->block = leat_alloc_array(mem, columns, sizeof *to->block);
	if (!to->base || !to->block) {
		leat_batch_free_copy(to);
		return NULL;
	}
	memcpy(to->base, from->base, rows);
	return to;
}

struct leat_batch *
leat_batch_copy(const struct leat_batch *from, struct leat_mem *mem)
{
	struct leat_batch *to = copy_rows(from, mem);
	int columns = from->form->columns;

	for (int i = 0; to && i < columns; i++) {
		if (!copy_column(from, to, i)) {
			free_columns(to, i);
			leat_batch_free_copy(to);
			return NULL;
		}
	}
	if (!to)
		return NULL;
	to->feed = from->feed;
	to->form = from->form;
	to->epoch = from->epoch;
	to->begin = from->begin;
	to->first = from->first;
	to->end = from->end;
	to->last = from->last;
	to->rows = from->rows;
	to->own_rows = from->own_rows;
	to->good_rows = from->good_rows;
	to->count = from->count;
	to->samples = from->samples;
	to->err_row = -1;
	to->complete = true;
	atomic_store_explicit(&to->refs, 1 + columns, memory_order_relaxed);
	return to;
}

void
leat_batch_drop_block(struct leat_batch *copy, int column)
{
	if (atomic_fetch_sub(&copy->block[column].refs, 1) == 1)
		block_close(&copy->block[column], copy->mem);
}

void
leat_batch_free_copy(struct leat_batch *copy)
{
	leat_free(copy->mem, copy->base);
	leat_free(copy->mem, copy->block);
	leat_free(copy->mem, copy);
}
