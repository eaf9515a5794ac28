/* blocks.c - see blocks.h
 *
 * Who holds a block waits for nothing, and who inflates one neither: so every wait ends. */
#include "format/blocks.h"

#include <string.h>

/* Inflated offset of the end of the last good sample that begins before `limit`; `begin` when there is none. */
static uint64_t
end_before(const struct leat_index *index, uint64_t begin, uint64_t limit)
{
	uint64_t low = 0, high = index->count, end;

	while (low < high) {
		uint64_t middle = low + (high - low) / 2;

		if (leat_index_offset(index, middle) < limit)
			low = middle + 1;
		else
			high = middle;
	}
	/* Only the last one of a compressed file can be damaged. */
	if (low && leat_index_is_damaged(index, low - 1))
		low--;
	end = leat_index_offset(index, low);
	return low && end > begin ? end : begin;
}

static void
bounds(const struct leat_index *index, uint64_t point, uint64_t *begin, uint64_t *end)
{
	const struct leat_points *points = &index->points;

	*begin = points->point[point].out;
	*end = end_before(index, *begin, point + 1 < points->head.count ? points->point[point + 1].out : UINT64_MAX);
}

/* How many blocks there are, and how long the longest is. */
static void
measure(struct leat_blocks *blocks)
{
	for (size_t i = 0; i < leat_files_count(blocks->indexed->files); i++) {
		const struct leat_index *index = &blocks->indexed->index[i];

		for (uint64_t point = 0; point < index->points.head.count; point++) {
			uint64_t begin, end;

			bounds(index, point, &begin, &end);
			if (end - begin > blocks->block_bytes)
				blocks->block_bytes = (size_t)(end - begin);
		}
		blocks->total += index->points.head.count;
	}
}

static enum leat_status
add_blocks(struct leat_blocks *blocks, size_t more, struct leat_err *err)
{
	struct leat_block *grown = leat_realloc(blocks->mem, blocks->block, (blocks->count + more) * sizeof(*grown));

	if (!grown)
		return leat_fail_mem(err, blocks->mem, (blocks->count + more) * sizeof(*grown), "inflated blocks");
	blocks->block = grown;
	for (; more; more--) {
		grown[blocks->count] = (struct leat_block){.bytes = leat_map(blocks->mem, blocks->block_bytes)};
		if (!grown[blocks->count].bytes)
			return leat_fail_mem(err, blocks->mem, blocks->block_bytes,
			                     "a part of a compressed file, inflated");
		blocks->count++;
	}
	return LEAT_OK;
}

static enum leat_status
add_inflaters(struct leat_blocks *blocks, unsigned count, struct leat_err *err)
{
	enum leat_status status = LEAT_OK;

	blocks->inflater = leat_alloc_array(blocks->mem, count, sizeof(*blocks->inflater));
	blocks->idle = leat_alloc_array(blocks->mem, count, sizeof(*blocks->idle));
	if (!blocks->inflater || !blocks->idle)
		return leat_fail_mem(err, blocks->mem, count * sizeof(*blocks->inflater), "inflating compressed files");
	while (status == LEAT_OK && blocks->inflaters < count) {
		status = leat_inflater_open(&blocks->inflater[blocks->inflaters], blocks->mem, err);
		if (status == LEAT_OK)
			blocks->idle[blocks->idles++] = blocks->inflaters++;
	}
	return status;
}

void
leat_blocks_close(struct leat_blocks *blocks)
{
	if (!blocks->mem)
		return;
	for (size_t i = 0; i < blocks->count; i++)
		leat_unmap(blocks->mem, blocks->block[i].bytes, blocks->block_bytes);
	for (unsigned i = 0; i < blocks->inflaters; i++)
		leat_inflater_close(&blocks->inflater[i]);
	leat_free(blocks->mem, blocks->block);
	leat_free(blocks->mem, blocks->inflater);
	leat_free(blocks->mem, blocks->idle);
	pthread_cond_destroy(&blocks->changed);
	pthread_mutex_destroy(&blocks->lock);
	*blocks = (struct leat_blocks){0};
}

enum leat_status
leat_blocks_open(struct leat_blocks *blocks, const struct leat_indexed *indexed, unsigned threads, struct leat_mem *mem,
                 struct leat_err *err)
{
	enum leat_status status;
	size_t count;

	*blocks = (struct leat_blocks){.mem = mem, .indexed = indexed, .block_bytes = 1};
	pthread_mutex_init(&blocks->lock, NULL);
	pthread_cond_init(&blocks->changed, NULL);
	measure(blocks);
	threads = threads ? threads : 1;
	count = (size_t)threads + 1;
	status = add_blocks(blocks, count < blocks->total ? count : (size_t)blocks->total, err);
	if (status == LEAT_OK)
		status = add_inflaters(blocks, threads < blocks->count ? threads : (unsigned)blocks->count, err);
	if (status != LEAT_OK)
		leat_blocks_close(blocks);
	return status;
}

enum leat_status
leat_blocks_grow(struct leat_blocks *blocks, size_t room, struct leat_err *err)
{
	enum { PAGE = 64 * 1024 }; /* no machine has larger ones */
	size_t more = room / (blocks->block_bytes + PAGE + 2 * sizeof(struct leat_block));
	uint64_t most = blocks->total - blocks->count;

	return more ? add_blocks(blocks, more < most ? more : (size_t)most, err) : LEAT_OK;
}

/* ---- inflating ---- */

/* Without the lock: the block is ours. */
static enum leat_status
load(const struct leat_blocks *blocks, struct leat_block *block, struct leat_inflater *inflater, struct leat_err *err)
{
	const struct leat_index *index = &blocks->indexed->index[block->file];
	struct leat_files *files = blocks->indexed->files;
	enum leat_status status;
	uint64_t end;
	size_t want;

	bounds(index, block->point, &block->begin, &end);
	/* The index may be a mapped file, which others could write to. */
	want = end >= block->begin && end - block->begin <= blocks->block_bytes ? (size_t)(end - block->begin) : 0;
	block->len = 0;
	status = leat_inflater_resume(inflater, files, block->file, &index->points, block->point, err);
	if (status == LEAT_OK)
		status = leat_inflater_read(inflater, block->bytes, want, false, &block->len, err);
	block->fault = NULL;
	if (block->len < want) {
		block->fault = inflater->fault ? inflater->fault : "it inflates to less than before";
		block->fault_at = inflater->fault ? inflater->fault_at : inflater->size;
	}
	return status;
}

/* ---- under the lock ---- */

static struct leat_block *
find(const struct leat_blocks *blocks, size_t file, uint64_t point)
{
	for (size_t i = 0; i < blocks->count; i++) {
		struct leat_block *block = &blocks->block[i];

		if (block->taken && block->point == point && block->file == file)
			return block;
	}
	return NULL;
}

/* One that may be used anew; NULL: all are in use. */
static struct leat_block *
oldest(const struct leat_blocks *blocks)
{
	struct leat_block *found = NULL;

	for (size_t i = 0; i < blocks->count; i++) {
		struct leat_block *block = &blocks->block[i];

		if (!block->loading && !block->users && (!found || block->last < found->last))
			found = block;
	}
	return found;
}

/* Inflates a block that is not there, letting go of the lock meanwhile. LEAT_AGAIN: nothing is free for it. */
static enum leat_status
bring(struct leat_blocks *blocks, size_t file, uint64_t point, struct leat_err *err)
{
	struct leat_block *block = oldest(blocks);
	enum leat_status status;
	unsigned inflater;

	if (!block || !blocks->idles)
		return LEAT_AGAIN;
	inflater = blocks->idle[--blocks->idles];
	block->taken = block->loading = true;
	block->file = file;
	block->point = point;
	block->last = ++blocks->clock;
	pthread_mutex_unlock(&blocks->lock);
	status = load(blocks, block, &blocks->inflater[inflater], err);
	pthread_mutex_lock(&blocks->lock);
	block->loading = false;
	block->taken = status == LEAT_OK;
	if (!block->taken)
		block->last = 0;
	blocks->idle[blocks->idles++] = inflater;
	pthread_cond_broadcast(&blocks->changed);
	return status;
}

/* Someone inflates the block that is needed: makes use of the time. LEAT_AGAIN: there is nothing to do but to wait. */
static enum leat_status
read_ahead(struct leat_blocks *blocks, size_t file, uint64_t point)
{
	uint64_t next = point + 1, left = blocks->indexed->index[file].points.head.count - next;
	uint64_t end = next + (left < blocks->inflaters ? left : blocks->inflaters);

	if (point > 0 && !find(blocks, file, point - 1))
		return LEAT_AGAIN; /* samples do not come in order */
	while (next < end && find(blocks, file, next))
		next++;
	if (next == end || bring(blocks, file, next, NULL) == LEAT_AGAIN)
		return LEAT_AGAIN;
	return LEAT_OK; /* an error comes again when it is needed */
}

enum leat_status
leat_blocks_get(struct leat_blocks *blocks, size_t file, uint64_t offset, struct leat_block **found,
                struct leat_err *err)
{
	uint64_t point = leat_points_find(&blocks->indexed->index[file].points, offset);
	enum leat_status status = LEAT_OK;
	struct leat_block *block;

	pthread_mutex_lock(&blocks->lock);
	while (status == LEAT_OK) {
		block = find(blocks, file, point);
		if (block && !block->loading) {
			block->users++;
			block->last = ++blocks->clock;
			*found = block;
			break;
		}
		status = block ? read_ahead(blocks, file, point) : bring(blocks, file, point, err);
		if (status == LEAT_AGAIN) {
			pthread_cond_wait(&blocks->changed, &blocks->lock);
			status = LEAT_OK;
		}
	}
	pthread_mutex_unlock(&blocks->lock);
	return status;
}

void
leat_blocks_put(struct leat_blocks *blocks, struct leat_block *block)
{
	pthread_mutex_lock(&blocks->lock);
	if (--block->users == 0)
		pthread_cond_broadcast(&blocks->changed);
	pthread_mutex_unlock(&blocks->lock);
}
