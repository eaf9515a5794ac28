/* index.c - the offset of each sample in one data file, saved next to the data
 *
 * An index file is used only if it is exactly what leat_index_save wrote for this data:
 * magic, version, kind, the data's size and version, the index's length and CRC, and finally
 * every offset are checked. */
#include "format/index.h"

#include <stddef.h>
#include <string.h>

#include "base/array.h"
#include "base/hash.h"
#include "format/beside.h"

enum { FIRST_SAMPLES = 64, CRC_AT = offsetof(struct leat_index_head, crc) };

_Static_assert(sizeof(struct leat_index_head) == 64, "the layout of the file");

/* Checks that offsets ascend to `size` (from 0 if gaps are not allowed), and that no sample overlaps the next or is too
 * short. Computes the longest length and the number of damaged regions. */
static bool
sum_up(const uint64_t *offset, const uint64_t *ends, bool gaps, uint64_t count, uint64_t size, uint64_t min_length,
       uint64_t *max_length, uint64_t *damaged)
{
	uint64_t next = offset[0] & ~LEAT_INDEX_DAMAGED, longest = 0, bad = 0;
	bool wrong = false;

	if ((!gaps && next != 0) || offset[count] != size)
		return false;
	for (uint64_t i = 0; i < count; i++) { /* branch-free: there may be millions */
		uint64_t damage = offset[i] >> 63, begin = next, end, length;

		next = offset[i + 1] & ~LEAT_INDEX_DAMAGED;
		end = ends ? ends[i] : next;
		length = end - begin;
		wrong |= (end <= begin) | (end > next) | (!damage & (length < min_length));
		bad += damage;
		length = damage ? 0 : length;
		longest = length > longest ? length : longest;
	}
	*max_length = longest;
	*damaged = bad;
	return !wrong;
}

static uint32_t
checksum(const struct leat_index_head *head, const uint64_t *offset, const uint64_t *ends,
         const struct leat_points *points)
{
	const unsigned char *bytes = (const unsigned char *)head;
	uint32_t crc = leat_crc32c(0, bytes, CRC_AT);

	crc = leat_crc32c(crc, bytes + CRC_AT + sizeof(head->crc), sizeof(*head) - CRC_AT - sizeof(head->crc));
	crc = leat_crc32c(crc, offset, (size_t)(head->count + 1) * sizeof(*offset));
	if (ends)
		crc = leat_crc32c(crc, ends, (size_t)head->count * sizeof(*ends));
	if (points) {
		crc = leat_crc32c(crc, &points->head, sizeof(points->head));
		crc = leat_crc32c(crc, points->point, (size_t)points->head.count * sizeof(*points->point));
		crc = leat_crc32c(crc, points->window, (size_t)points->head.windows);
	}
	return crc;
}

static void
set_kind(char field[8], const char *name)
{
	size_t len = strlen(name);

	memset(field, 0, 8);
	memcpy(field, name, len < 8 ? len : 8);
}

static bool
is_kind(const struct leat_index_head *head, const char *name)
{
	char field[8];

	set_kind(field, name);
	return memcmp(head->kind, field, sizeof(field)) == 0;
}

/* Finds the parts after the offsets. False: the file is too short or too long for them. `len`: of everything after the
 * head. */
static bool
find_parts(struct leat_index *index, const struct leat_index_head *head, size_t len, bool gaps)
{
	const uint64_t *offset = (const uint64_t *)(head + 1);
	uint64_t numbers = len / sizeof(*offset) - 1, rest;

	if (head->count > numbers)
		return false;
	rest = len - (head->count + 1) * sizeof(*offset);
	index->offset = offset;
	index->count = head->count;
	if (index->packed) {
		uint64_t end = offset[head->count];

		return !(end & LEAT_INDEX_DAMAGED) &&
		       leat_points_take(&index->points, offset + head->count + 1, (size_t)rest, head->size, end);
	}
	index->end = gaps ? offset + head->count + 1 : NULL;
	return rest == (gaps ? head->count * sizeof(*offset) : 0);
}

/* As leat_index_fault, and fills in the index. */
static const char *
take_index(struct leat_index *index, const void *bytes, size_t len, const struct leat_index_kind *kind,
           const struct leat_object *file, bool *stale)
{
	const struct leat_index_head *head = bytes;

	*stale = false;
	if (len < sizeof(*head) + sizeof(*index->offset))
		return "it is truncated";
	if (memcmp(head->magic, LEAT_INDEX_MAGIC, sizeof(head->magic)) != 0)
		return "it is not an index";
	if (head->version != LEAT_INDEX_VERSION)
		return "it has another version";
	index->packed = kind->packed && is_kind(head, kind->packed);
	if (!index->packed && !is_kind(head, kind->name))
		return "it belongs to another format";
	if (head->size != file->size || head->token != leat_object_token(file)) {
		*stale = true;
		return "the data has changed";
	}
	if (!find_parts(index, head, len - sizeof(*head), kind->gaps))
		return "its length is wrong";
	if (head->crc != checksum(head, index->offset, index->end, index->packed ? &index->points : NULL))
		return "its checksum does not match";
	if (!sum_up(index->offset, index->end, kind->gaps, head->count,
	            index->packed ? index->offset[head->count] : head->size, kind->min_length, &index->max_length,
	            &index->damaged) ||
	    index->max_length != head->max_length || index->damaged != head->damaged ||
	    (index->packed && index->damaged < index->count && !index->points.head.count))
		return "its offsets are invalid";
	return NULL;
}

const char *
leat_index_fault(const void *bytes, size_t len, const struct leat_index_kind *kind, const struct leat_object *file,
                 bool *stale)
{
	struct leat_index index = {0};

	return take_index(&index, bytes, len, kind, file, stale);
}

void
leat_index_free(struct leat_index *index)
{
	if (index->mem) {
		leat_free(index->mem, index->block);
		leat_free(index->mem, index->ends);
	}
	leat_points_free(&index->points);
	*index = (struct leat_index){0};
}

void
leat_index_borrow(struct leat_index *index, const void *bytes, size_t len, const struct leat_index_kind *kind,
                  const struct leat_object *file, struct leat_mem *mem)
{
	bool stale;

	leat_index_init(index, mem);
	take_index(index, bytes, len, kind, file, &stale);
}

/* Argument of leat_beside_load. */
struct load {
	struct leat_index *index;
	const struct leat_index_kind *kind;
	const struct leat_object *file;
};

static const char *
fault_of(void *arg, const void *bytes, size_t len, bool *stale)
{
	struct load *load = arg;

	leat_index_init(load->index, load->index->mem); /* a rejected file may have left something */
	return take_index(load->index, bytes, len, load->kind, load->file, stale);
}

enum leat_status
leat_index_load(struct leat_index *index, const struct leat_index_kind *kind, const struct leat_object *file,
                struct leat_mem *mem, const struct leat_log *log, struct leat_err *err)
{
	struct load load = {index, kind, file};
	enum leat_status status;
	void *bytes = NULL;
	char *path = NULL;

	leat_index_init(index, mem);
	status = leat_beside_load(file->store, file->uri, LEAT_BESIDE_OWN, fault_of, &load, mem, log, &bytes, &path,
	                          err);
	leat_free(mem, path);
	if (status == LEAT_OK)
		index->block = bytes;
	else
		leat_index_free(index);
	return status;
}

void
leat_index_init(struct leat_index *index, struct leat_mem *mem)
{
	*index = (struct leat_index){.mem = mem};
	leat_points_init(&index->points, mem);
}

enum leat_status
leat_index_grow(struct leat_index *index, struct leat_err *err)
{
	enum leat_status status =
		LEAT_GROW_RAW(index->mem, index->block, index->cap, index->cap ? index->cap + 1 : FIRST_SAMPLES,
	                      SIZE_MAX, "the index of a file", err);

	index->offset = index->block;
	return status;
}

enum leat_status
leat_index_add_span(struct leat_index *index, uint64_t offset, uint64_t end, bool damaged, struct leat_err *err)
{
	enum leat_status status = leat_index_add(index, offset, damaged, err);

	if (status == LEAT_OK)
		status = LEAT_GROW_RAW(index->mem, index->ends, index->ends_cap, index->cap, SIZE_MAX,
		                       "the index of a file", err);
	index->end = index->ends;
	if (status == LEAT_OK)
		index->ends[index->count - 1] = end;
	return status;
}

void
leat_index_drop(struct leat_index *index)
{
	index->count--;
}

/* Gives back the room for more samples. */
static void
trim(struct leat_index *index)
{
	uint64_t *block = leat_realloc_raw(index->mem, index->block, (index->count + 1) * sizeof(*block));
	uint64_t *ends = index->ends ? leat_realloc_raw(index->mem, index->ends, index->count * sizeof(*ends)) : NULL;

	if (block)
		index->offset = index->block = block;
	if (ends)
		index->end = index->ends = ends;
}

enum leat_status
leat_index_end(struct leat_index *index, uint64_t size, struct leat_err *err)
{
	enum leat_status status = leat_index_add(index, size, false, err);

	if (status != LEAT_OK)
		return status;
	index->count--; /* the end is not a sample */
	trim(index);
	/* Without samples we cannot tell whether gaps are allowed, so allow them. */
	if (!sum_up(index->block, index->end, index->end || !index->count, index->count, size, 1, &index->max_length,
	            &index->damaged))
		return leat_fail(err, LEAT_INTERNAL, "the index just built is invalid");
	return LEAT_OK;
}

/* Argument of leat_beside_save. */
struct save {
	struct leat_index_head head;
	const struct leat_index *index;
};

static void
save_init(struct save *save, const struct leat_index *index, const struct leat_index_kind *kind,
          const struct leat_object *file)
{
	*save = (struct save){
		.head =
			{
				.version = LEAT_INDEX_VERSION,
				.size = file->size,
				.token = leat_object_token(file),
				.count = index->count,
				.max_length = index->max_length,
				.damaged = index->damaged,
			},
		.index = index,
	};
	memcpy(save->head.magic, LEAT_INDEX_MAGIC, sizeof(save->head.magic));
	set_kind(save->head.kind, index->packed ? kind->packed : kind->name);
	save->head.crc = checksum(&save->head, index->offset, index->end, index->packed ? &index->points : NULL);
}

typedef enum leat_status put_piece(void *arg, const void *bytes, size_t len, struct leat_err *err);

static enum leat_status
put_points(const struct leat_points *points, put_piece *put, void *arg, struct leat_err *err)
{
	enum leat_status status = put(arg, &points->head, sizeof(points->head), err);

	if (status == LEAT_OK && points->head.count)
		status = put(arg, points->point, (size_t)points->head.count * sizeof(*points->point), err);
	if (status == LEAT_OK && points->head.windows)
		status = put(arg, points->window, (size_t)points->head.windows, err);
	return status;
}

/* Puts all bytes of the file, in order. */
static enum leat_status
put_index(const struct save *save, put_piece *put, void *arg, struct leat_err *err)
{
	const struct leat_index *index = save->index;
	enum leat_status status = put(arg, &save->head, sizeof(save->head), err);

	if (status == LEAT_OK)
		status = put(arg, index->offset, (size_t)(index->count + 1) * sizeof(*index->offset), err);
	if (status == LEAT_OK && index->end)
		status = put(arg, index->end, (size_t)index->count * sizeof(*index->end), err);
	return status == LEAT_OK && index->packed ? put_points(&index->points, put, arg, err) : status;
}

static enum leat_status
write_piece(void *arg, const void *bytes, size_t len, struct leat_err *err)
{
	return leat_write(arg, bytes, len, err);
}

static enum leat_status
write_index(void *arg, struct leat_writer *out, struct leat_err *err)
{
	return put_index(arg, write_piece, out, err);
}

enum leat_status
leat_index_save(const struct leat_index *index, const struct leat_index_kind *kind, const struct leat_object *file,
                struct leat_mem *mem, struct leat_err *err)
{
	struct save save;

	save_init(&save, index, kind, file);
	return leat_beside_save(file->store, file->uri, LEAT_BESIDE_OWN, write_index, &save, mem, NULL, err);
}

static enum leat_status
add_piece(void *arg, const void *bytes, size_t len, struct leat_err *err)
{
	(void)err;
	leat_str_addn(arg, bytes, len);
	return LEAT_OK;
}

void
leat_index_add_bytes(const struct leat_index *index, const struct leat_index_kind *kind, const struct leat_object *file,
                     struct leat_str *out)
{
	struct save save;

	save_init(&save, index, kind, file);
	put_index(&save, add_piece, out, NULL);
}
