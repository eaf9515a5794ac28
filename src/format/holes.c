/* holes.c - see holes.h */
#include "format/holes.h"

#include "base/array.h"
#include "format/record.h"

static enum leat_status
add(struct leat_holes *holes, uint64_t begin, uint64_t end, struct leat_mem *mem, struct leat_err *err)
{
	const struct leat_hole *last = holes->count ? &holes->hole[holes->count - 1] : NULL;
	uint64_t before = last ? last->before + (last->end - last->begin) : 0;
	enum leat_status status = LEAT_GROW(mem, holes->hole, holes->cap, holes->count + 1, SIZE_MAX,
	                                    "the records beyond max_bytes", err);

	if (status == LEAT_OK)
		holes->hole[holes->count++] = (struct leat_hole){begin, end, before};
	return status;
}

enum leat_status
leat_holes_find(struct leat_holes *holes, const struct leat_index *index, uint64_t max_bytes, struct leat_mem *mem,
                struct leat_err *err)
{
	enum leat_status status = LEAT_OK;

	if (index->max_length < LEAT_TFRECORD_FRAME || index->max_length - LEAT_TFRECORD_FRAME <= max_bytes)
		return LEAT_OK;
	for (uint64_t i = 0; i < index->count && status == LEAT_OK; i++) {
		uint64_t begin = leat_index_offset(index, i), length = leat_index_length(index, i);

		if (!leat_index_is_damaged(index, i) && length - LEAT_TFRECORD_FRAME > max_bytes)
			status = add(holes, begin, begin + length, mem, err);
	}
	return status;
}

void
leat_holes_free(struct leat_holes *holes, struct leat_mem *mem)
{
	leat_free(mem, holes->hole);
	*holes = (struct leat_holes){0};
}

const struct leat_hole *
leat_holes_next(const struct leat_holes *holes, uint64_t offset)
{
	size_t low = 0, high = holes->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (holes->hole[middle].end <= offset)
			low = middle + 1;
		else
			high = middle;
	}
	return low < holes->count ? &holes->hole[low] : NULL;
}

uint64_t
leat_holes_kept(const struct leat_holes *holes, uint64_t offset)
{
	const struct leat_hole *next, *last;

	if (!holes->count)
		return offset;
	next = leat_holes_next(holes, offset);
	if (next)
		return (offset < next->begin ? offset : next->begin) - next->before;
	last = &holes->hole[holes->count - 1];
	return offset - last->before - (last->end - last->begin);
}

uint64_t
leat_holes_trim(const struct leat_holes *holes, uint64_t end)
{
	while (holes->count && end > 0) {
		const struct leat_hole *hole = leat_holes_next(holes, end - 1);

		if (!hole || hole->begin >= end)
			break;
		end = hole->begin;
	}
	return end;
}
