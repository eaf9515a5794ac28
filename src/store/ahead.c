/* ahead.c - see ahead.h */
#include "store/ahead.h"

#include <string.h>

void
leat_ahead_open(struct leat_ahead *ahead, const struct leat_object *object, struct leat_mem *mem)
{
	*ahead = (struct leat_ahead){.object = object, .mem = mem};
}

/* Waits for a block that is still read. */
static void
land(struct leat_ahead_block *block)
{
	if (block->flying)
		block->status = leat_wait_end(&block->waiter, &block->err);
	block->flying = false;
}

static void
drop_first(struct leat_ahead *ahead)
{
	land(ahead->block[ahead->first]);
	ahead->first = (ahead->first + 1) % LEAT_AHEAD_BLOCKS;
	ahead->count--;
}

static void
free_block(struct leat_ahead *ahead, struct leat_ahead_block *block)
{
	if (!block)
		return;
	leat_free(ahead->mem, block->bytes);
	leat_free(ahead->mem, block);
}

void
leat_ahead_close(struct leat_ahead *ahead)
{
	if (!ahead->mem)
		return;
	while (ahead->count)
		drop_first(ahead);
	if (ahead->blocks > 1)
		atomic_fetch_sub(&ahead->object->store->stores->ahead, (int)ahead->blocks - 1);
	for (size_t i = 0; i < LEAT_AHEAD_BLOCKS; i++)
		free_block(ahead, ahead->block[i]);
	*ahead = (struct leat_ahead){0};
}

/* The first block is needed; more are only taken if there is plenty. */
static bool
may_have_more(const struct leat_ahead *ahead)
{
	const struct leat_mem *mem = ahead->mem;
	atomic_int *all = &ahead->object->store->stores->ahead;

	if (!ahead->blocks)
		return true;
	if (mem->limit != SIZE_MAX && leat_mem_counted(mem) + LEAT_AHEAD_BLOCK > mem->limit / 2)
		return false;
	if (atomic_fetch_add(all, 1) < LEAT_AHEAD_ALL)
		return true;
	atomic_fetch_sub(all, 1);
	return false;
}

static size_t
block_size(const struct leat_ahead *ahead)
{
	return ahead->object->size < LEAT_AHEAD_BLOCK ? (size_t)ahead->object->size : LEAT_AHEAD_BLOCK;
}

/* A block to read into next. NULL: there is no memory for another one now. */
static struct leat_ahead_block *
unused_block(struct leat_ahead *ahead)
{
	struct leat_ahead_block **place = &ahead->block[(ahead->first + ahead->count) % LEAT_AHEAD_BLOCKS];
	struct leat_ahead_block *block;

	for (size_t i = 0; i < LEAT_AHEAD_BLOCKS && !*place && ahead->blocks > ahead->count; i++) {
		size_t used = (i + LEAT_AHEAD_BLOCKS - ahead->first) % LEAT_AHEAD_BLOCKS;

		if (ahead->block[i] && used >= ahead->count) {
			*place = ahead->block[i];
			ahead->block[i] = NULL;
		}
	}
	if (*place || !may_have_more(ahead))
		return *place;
	block = leat_alloc(ahead->mem, sizeof(*block));
	if (block)
		block->bytes = leat_realloc_raw(ahead->mem, NULL, block_size(ahead));
	if (block && block->bytes) {
		ahead->blocks++;
		return *place = block;
	}
	free_block(ahead, block);
	if (ahead->blocks)
		atomic_fetch_sub(&ahead->object->store->stores->ahead, 1);
	return NULL;
}

static void
fill(struct leat_ahead *ahead)
{
	while (ahead->count < ahead->wanted && ahead->next < ahead->object->size) {
		struct leat_ahead_block *block = unused_block(ahead);
		uint64_t left = ahead->object->size - ahead->next;

		if (!block)
			return;
		block->at = ahead->next;
		block->len = left < LEAT_AHEAD_BLOCK ? (size_t)left : LEAT_AHEAD_BLOCK;
		leat_err_clear(&block->err);
		block->status = leat_wait_start(&block->waiter, ahead->object, block->at, block->bytes, block->len,
		                                &block->err);
		block->flying = block->status == LEAT_OK;
		ahead->next += block->len;
		ahead->count++;
	}
}

/* Moves to the block that has `offset`, and keeps those behind it in flight. */
static void
move(struct leat_ahead *ahead, uint64_t offset)
{
	bool forward = ahead->count && offset >= ahead->block[ahead->first]->at && offset <= ahead->next;

	if (!forward) {
		while (ahead->count)
			drop_first(ahead);
		ahead->next = offset;
		ahead->wanted = 1;
	}
	while (ahead->count && offset >= ahead->block[ahead->first]->at + ahead->block[ahead->first]->len) {
		drop_first(ahead);
		if (ahead->wanted < LEAT_AHEAD_BLOCKS)
			ahead->wanted *= 2;
	}
	fill(ahead);
}

enum leat_status
leat_ahead_read(struct leat_ahead *ahead, uint64_t offset, void *bytes, size_t len, struct leat_err *err)
{
	while (len) {
		struct leat_ahead_block *block;
		size_t skip, some;

		move(ahead, offset);
		if (!ahead->count)
			return LEAT_AGAIN;
		block = ahead->block[ahead->first];
		land(block);
		if (block->status != LEAT_OK)
			return leat_fail_as(err, &block->err);
		skip = (size_t)(offset - block->at);
		some = block->len - skip < len ? block->len - skip : len;
		memcpy(bytes, block->bytes + skip, some);
		bytes = (unsigned char *)bytes + some;
		offset += some;
		len -= some;
	}
	return LEAT_OK;
}
