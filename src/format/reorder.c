/* reorder.c - see reorder.h
 *
 * In a block, each record follows its position, relative to the bucket's first, and its length: 4 bytes each. No record
 * spans blocks; one that is larger than a block gets its own block, in the file. */
#include "format/reorder.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/array.h"
#include "base/hash.h"

enum {
	ENTRY = 8, /* a position and a length */
	MIN_BLOCK = 4096,
	MAX_BLOCK = 256 * 1024,
	SLAB = 8 * 1024 * 1024, /* blocks are cut from mappings: the number of those is limited */
	AHEAD = 8,              /* records are touched before their turn */
};

struct block {
	unsigned char *memory; /* NULL: in the file */
	uint64_t offset;       /* in the file */
	size_t used;
};

struct bucket {
	uint64_t first; /* position */
	struct block *block;
	size_t blocks, cap;
	uint64_t spilled; /* bytes in the file */
};

struct leat_reorder {
	struct leat_mem *mem;
	uint64_t count;
	size_t groups, per_group, buckets;
	size_t block_size;
	size_t blocks_left; /* that memory has room for */
	size_t load_most;   /* bytes of a bucket that are loaded at once */
	struct bucket *bucket;
	void **slab;
	size_t slabs, slab_cap, slab_size, slab_used;
	char *folder;
	int fd;       /* -1: nothing was spilled */
	uint64_t end; /* of the file */
};

uint64_t
leat_group_begin(uint64_t count, size_t groups, size_t i)
{
	return (uint64_t)((unsigned __int128)count * i / groups);
}

/* The bucket whose range has the position: the last b with leat_group_begin(b) <= position. */
static inline size_t
bucket_of(const struct leat_reorder *r, uint64_t position)
{
	uint64_t product;

	if (!__builtin_mul_overflow(position + 1, (uint64_t)r->buckets, &product))
		return (size_t)((product - 1) / r->count);
	return (size_t)(((unsigned __int128)(position + 1) * r->buckets - 1) / r->count);
}

/* ---- opening ---- */

static size_t
clamp(uint64_t value, size_t min, size_t max)
{
	return value < min ? min : value > max ? max : (size_t)value;
}

/* Buckets of half the size that can be loaded, as sizes are estimates; but every bucket has a block in memory. */
static void
choose_sizes(struct leat_reorder *r, const struct leat_reorder_options *o)
{
	uint64_t bytes = o->bytes + o->count * ENTRY, per_group = bytes / r->groups + 1;
	uint64_t most_rows = r->count / r->groups / (UINT32_MAX / 2) + 1; /* relative positions have 32 bits */
	size_t threads = o->threads ? o->threads : 1, most_buckets = o->memory / 2 / MIN_BLOCK;
	uint64_t most = most_buckets / r->groups > 0 ? most_buckets / r->groups : 1;

	r->load_most = o->read_memory / threads;
	r->per_group = clamp(2 * per_group / (r->load_most + 1) + 1, 1, most);
	if (r->per_group < most_rows)
		r->per_group = (size_t)most_rows;
	if (r->per_group > r->count / r->groups)
		r->per_group = (size_t)(r->count / r->groups);
	r->buckets = r->per_group * r->groups;
	r->block_size = clamp(o->memory / 2 / r->buckets, MIN_BLOCK, MAX_BLOCK) / MIN_BLOCK * MIN_BLOCK;
	/* Small data needs no large blocks. */
	if (r->block_size > bytes / r->buckets)
		r->block_size = clamp(bytes / r->buckets + MIN_BLOCK, MIN_BLOCK, MAX_BLOCK) / MIN_BLOCK * MIN_BLOCK;
	r->blocks_left = o->memory / r->block_size;
	if (r->blocks_left < r->buckets)
		r->blocks_left = r->buckets;
	r->blocks_left -= r->buckets; /* each gets one whenever it needs it */
	r->slab_size = SLAB / r->block_size * r->block_size;
}

enum leat_status
leat_reorder_open(struct leat_reorder **reorder, const struct leat_reorder_options *o, struct leat_err *err)
{
	struct leat_reorder *r = *reorder = leat_alloc(o->mem, sizeof(*r));

	if (!r)
		return leat_fail_mem(err, o->mem, sizeof(*r), "the order of records");
	*r = (struct leat_reorder){.mem = o->mem, .count = o->count, .groups = o->groups, .fd = -1};
	if (!o->groups || o->groups > o->count)
		return leat_fail(err, LEAT_INTERNAL, "%zu groups of %llu records", o->groups,
		                 (unsigned long long)o->count);
	choose_sizes(r, o);
	r->folder = leat_strdup(o->mem, o->folder);
	r->bucket = leat_alloc_array(o->mem, r->buckets, sizeof(*r->bucket));
	if (!r->folder || !r->bucket)
		return leat_fail_mem(err, o->mem, r->buckets * sizeof(*r->bucket), "the order of records");
	for (size_t i = 0; i < r->buckets; i++)
		r->bucket[i].first = leat_group_begin(r->count, r->buckets, i);
	return LEAT_OK;
}

void
leat_reorder_close(struct leat_reorder *r)
{
	if (!r)
		return;
	for (size_t i = 0; r->bucket && i < r->buckets; i++)
		leat_free(r->mem, r->bucket[i].block);
	for (size_t i = 0; i < r->slabs; i++)
		leat_unmap(r->mem, r->slab[i], r->slab_size);
	if (r->fd >= 0)
		close(r->fd);
	leat_free(r->mem, r->slab);
	leat_free(r->mem, r->bucket);
	leat_free(r->mem, r->folder);
	leat_free(r->mem, r);
}

uint64_t
leat_reorder_spilled(const struct leat_reorder *r)
{
	return r->end;
}

/* ---- the file ---- */

/* Not all file systems have files without a name. */
int
leat_open_unlinked(const char *folder)
{
	int fd = open(folder, O_TMPFILE | O_RDWR | O_EXCL | O_CLOEXEC, 0600);
	char path[PATH_MAX];

	if (fd >= 0 || (errno != EOPNOTSUPP && errno != EISDIR && errno != ENOENT && errno != EINVAL))
		return fd;
	if (snprintf(path, sizeof(path), "%s/.leat-spill-XXXXXX", folder) >= (int)sizeof(path)) {
		errno = ENAMETOOLONG;
		return -1;
	}
	fd = mkostemp(path, O_CLOEXEC);
	if (fd >= 0)
		(void)unlink(path);
	return fd;
}

static enum leat_status
fail_file(const struct leat_reorder *r, struct leat_err *err)
{
	if (errno == ENOSPC || errno == EDQUOT)
		return leat_fail_errno(err, errno,
		                       "cannot shuffle in '%s', where data larger than --memory needs room twice",
		                       r->folder);
	return leat_fail_errno(err, errno, "cannot use a temporary file in '%s'", r->folder);
}

static enum leat_status
append(struct leat_reorder *r, const void *bytes, size_t len, struct leat_err *err)
{
	const char *from = bytes;

	if (r->fd < 0 && (r->fd = leat_open_unlinked(r->folder)) < 0)
		return fail_file(r, err);
	while (len) {
		ssize_t n = pwrite(r->fd, from, len, (off_t)r->end);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return fail_file(r, err);
		from += n;
		r->end += (uint64_t)n;
		len -= (size_t)n;
	}
	return LEAT_OK;
}

static enum leat_status
read_at(const struct leat_reorder *r, uint64_t offset, void *bytes, size_t len, struct leat_err *err)
{
	char *to = bytes;

	while (len) {
		ssize_t n = pread(r->fd, to, len, (off_t)offset);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0) {
			errno = n ? errno : EIO;
			return fail_file(r, err);
		}
		to += n;
		offset += (uint64_t)n;
		len -= (size_t)n;
	}
	return LEAT_OK;
}

/* ---- adding ---- */

static enum leat_status
cut_block(struct leat_reorder *r, unsigned char **memory, struct leat_err *err)
{
	if (!r->slabs || r->slab_used == r->slab_size) {
		enum leat_status status =
			LEAT_GROW(r->mem, r->slab, r->slab_cap, r->slabs + 1, SIZE_MAX, "the order of records", err);

		if (status != LEAT_OK)
			return status;
		r->slab[r->slabs] = leat_map(r->mem, r->slab_size);
		if (!r->slab[r->slabs])
			return leat_fail_mem(err, r->mem, r->slab_size, "records to be shuffled");
		madvise(r->slab[r->slabs], r->slab_size, MADV_HUGEPAGE); /* records are read in random order */
		r->slabs++;
		r->slab_used = 0;
	}
	*memory = (unsigned char *)r->slab[r->slabs - 1] + r->slab_used;
	r->slab_used += r->block_size;
	return LEAT_OK;
}

static enum leat_status
add_block(struct leat_reorder *r, struct bucket *b, struct block block, struct leat_err *err)
{
	enum leat_status status =
		LEAT_GROW(r->mem, b->block, b->cap, b->blocks + 1, SIZE_MAX, "the order of records", err);

	if (status == LEAT_OK)
		b->block[b->blocks++] = block;
	return status;
}

static enum leat_status
spill(struct leat_reorder *r, struct bucket *b, struct block *block, struct leat_err *err)
{
	block->offset = r->end;
	b->spilled += block->used;
	return append(r, block->memory, block->used, err);
}

/* Makes the last block of the bucket one with room. */
static enum leat_status
next_block(struct leat_reorder *r, struct bucket *b, struct leat_err *err)
{
	struct block *last = b->blocks ? &b->block[b->blocks - 1] : NULL, next = {0};
	enum leat_status status;

	if (last && last->memory && !r->blocks_left) {
		status = spill(r, b, last, err);
		next.memory = last->memory;
		last->memory = NULL;
	} else {
		r->blocks_left -= last && last->memory; /* the first is not counted */
		status = cut_block(r, &next.memory, err);
	}
	return status == LEAT_OK ? add_block(r, b, next, err) : status;
}

static void
put_entry(unsigned char *to, uint32_t position, size_t len)
{
	leat_store32(to, position);
	leat_store32(to + 4, (uint32_t)len);
}

/* A record that no block has room for. It goes before the last block, which stays the one that is filled. */
static enum leat_status
add_large(struct leat_reorder *r, struct bucket *b, uint32_t position, const void *record, size_t len,
          struct leat_err *err)
{
	struct block block = {.offset = r->end, .used = ENTRY + len}, last;
	unsigned char head[ENTRY];
	enum leat_status status;

	put_entry(head, position, len);
	status = append(r, head, sizeof(head), err);
	if (status == LEAT_OK)
		status = append(r, record, len, err);
	if (status == LEAT_OK)
		status = add_block(r, b, block, err);
	if (status != LEAT_OK)
		return status;
	b->spilled += block.used;
	if (b->blocks > 1) {
		last = b->block[b->blocks - 2];
		b->block[b->blocks - 2] = block;
		b->block[b->blocks - 1] = last;
	}
	return LEAT_OK;
}

enum leat_status
leat_reorder_add(struct leat_reorder *r, uint64_t position, const void *record, size_t len, struct leat_err *err)
{
	struct bucket *b = &r->bucket[bucket_of(r, position)];
	uint32_t relative = (uint32_t)(position - b->first);
	struct block *block = b->blocks ? &b->block[b->blocks - 1] : NULL;
	enum leat_status status;

	if (len > UINT32_MAX)
		return leat_fail(err, LEAT_LIMIT, "a record of %zu bytes is too long", len);
	if (ENTRY + len > r->block_size)
		return add_large(r, b, relative, record, len, err);
	if (!block || !block->memory || ENTRY + len > r->block_size - block->used) {
		status = next_block(r, b, err);
		if (status != LEAT_OK)
			return status;
		block = &b->block[b->blocks - 1];
	}
	put_entry(block->memory + block->used, relative, len);
	memcpy(block->memory + block->used + ENTRY, record, len);
	block->used += ENTRY + len;
	return LEAT_OK;
}

/* ---- reading ---- */

/* Reads the buckets of a group, one after the other. */
struct leat_reorder_cursor {
	struct leat_reorder *r;
	size_t next, end; /* buckets */
	size_t row;       /* the next one, of `rows` in the bucket that is loaded */
	/* The bucket: */
	const struct bucket *bucket;
	size_t rows;
	unsigned char *arena;     /* what was in the file; NULL: it is too much, and read piece by piece */
	const unsigned char **at; /* by position: the entry in memory; NULL: see `offset` */
	uint64_t *offset;         /* of the entry in the file, plus 1; 0: none */
	unsigned char *piece;     /* buffer for one that is read by itself */
	size_t piece_cap;
};

static void
unload(struct leat_reorder_cursor *l)
{
	leat_free(l->r->mem, l->arena);
	leat_free(l->r->mem, l->at);
	leat_free(l->r->mem, l->offset);
	leat_free(l->r->mem, l->piece);
	l->arena = NULL;
	l->at = NULL;
	l->offset = NULL;
	l->piece = NULL;
	l->piece_cap = 0;
}

static enum leat_status
fail_entry(struct leat_err *err)
{
	return leat_fail(err, LEAT_INTERNAL, "a record was shuffled to no place, or to that of another");
}

/* Notes where the entries of a block are. `offset`: of the block in the file, if entries are to be read later. */
static enum leat_status
note_entries(struct leat_reorder_cursor *l, const unsigned char *bytes, size_t used, const uint64_t *offset,
             struct leat_err *err)
{
	for (size_t at = 0; at < used;) {
		uint32_t position = leat_load32(bytes + at);

		if (position >= l->rows || l->at[position] || (l->offset && l->offset[position]))
			return fail_entry(err);
		if (offset)
			l->offset[position] = *offset + at + 1;
		else
			l->at[position] = bytes + at;
		at += ENTRY + leat_load32(bytes + at + 4);
	}
	return LEAT_OK;
}

/* Notes the entries of a block without keeping it. Of one that is a large record, its entry is enough. */
static enum leat_status
pass_block(struct leat_reorder_cursor *l, const struct block *block, struct leat_err *err)
{
	size_t len = block->used > l->r->block_size ? ENTRY : block->used;
	enum leat_status status =
		LEAT_GROW_RAW(l->r->mem, l->piece, l->piece_cap, l->r->block_size, SIZE_MAX, "a record", err);

	if (status == LEAT_OK)
		status = read_at(l->r, block->offset, l->piece, len, err);
	return status == LEAT_OK ? note_entries(l, l->piece, len, &block->offset, err) : status;
}

static enum leat_status
make_room(struct leat_reorder_cursor *l, struct leat_err *err)
{
	struct leat_mem *mem = l->r->mem;
	bool whole = l->bucket->spilled <= l->r->load_most;

	l->at = leat_alloc_array(mem, l->rows, sizeof(*l->at));
	if (whole && l->bucket->spilled)
		l->arena = leat_alloc(mem, (size_t)l->bucket->spilled);
	if (!whole)
		l->offset = leat_alloc_array(mem, l->rows, sizeof(*l->offset));
	if (!l->at || (whole && l->bucket->spilled && !l->arena) || (!whole && !l->offset))
		return leat_fail_mem(err, mem, (size_t)l->bucket->spilled, "records that are shuffled");
	return LEAT_OK;
}

static enum leat_status
load(struct leat_reorder_cursor *l, struct leat_err *err)
{
	enum leat_status status = make_room(l, err);
	unsigned char *to = l->arena;

	for (size_t i = 0; i < l->bucket->blocks && status == LEAT_OK; i++) {
		const struct block *block = &l->bucket->block[i];

		if (block->memory) {
			status = note_entries(l, block->memory, block->used, NULL, err);
		} else if (l->offset) {
			status = pass_block(l, block, err);
		} else {
			status = read_at(l->r, block->offset, to, block->used, err);
			if (status == LEAT_OK)
				status = note_entries(l, to, block->used, NULL, err);
			to += block->used;
		}
	}
	return status;
}

static enum leat_status
read_entry(struct leat_reorder_cursor *l, uint64_t offset, const unsigned char **entry, struct leat_err *err)
{
	unsigned char head[ENTRY];
	enum leat_status status = read_at(l->r, offset, head, sizeof(head), err);
	size_t len = ENTRY + (size_t)leat_load32(head + 4);

	if (status == LEAT_OK)
		status = LEAT_GROW_RAW(l->r->mem, l->piece, l->piece_cap, len, SIZE_MAX, "a record", err);
	*entry = l->piece;
	return status == LEAT_OK ? read_at(l->r, offset, l->piece, len, err) : status;
}

enum leat_status
leat_reorder_begin(struct leat_reorder *r, size_t group, struct leat_reorder_cursor **cursor, struct leat_err *err)
{
	struct leat_reorder_cursor *l = *cursor = leat_alloc(r->mem, sizeof(*l));

	if (!l)
		return leat_fail_mem(err, r->mem, sizeof(*l), "the order of records");
	*l = (struct leat_reorder_cursor){.r = r, .next = group * r->per_group, .end = (group + 1) * r->per_group};
	return LEAT_OK;
}

static enum leat_status
next_bucket(struct leat_reorder_cursor *l, struct leat_err *err)
{
	struct leat_reorder *r = l->r;

	unload(l);
	l->bucket = &r->bucket[l->next];
	l->rows = (size_t)(leat_group_begin(r->count, r->buckets, l->next + 1) - l->bucket->first);
	l->row = 0;
	l->next++;
	return load(l, err);
}

enum leat_status
leat_reorder_next(struct leat_reorder_cursor *l, const void **record, size_t *len, struct leat_err *err)
{
	enum leat_status status = LEAT_OK;
	const unsigned char *entry;
	size_t i;

	while (l->row == l->rows && status == LEAT_OK) {
		if (l->next == l->end)
			return LEAT_END;
		status = next_bucket(l, err);
	}
	if (status != LEAT_OK)
		return status;
	i = l->row++;
	entry = l->at[i];
	if (i + AHEAD < l->rows)
		__builtin_prefetch(l->at[i + AHEAD]);
	if (!entry && !(l->offset && l->offset[i]))
		return fail_entry(err);
	if (!entry)
		status = read_entry(l, l->offset[i] - 1, &entry, err);
	if (status != LEAT_OK)
		return status;
	*record = entry + ENTRY;
	*len = leat_load32(entry + 4);
	return LEAT_OK;
}

void
leat_reorder_end(struct leat_reorder_cursor *l)
{
	if (!l)
		return;
	unload(l);
	leat_free(l->r->mem, l);
}

enum leat_status
leat_reorder_read(struct leat_reorder *r, size_t group, leat_record_visit *visit, void *arg, struct leat_err *err)
{
	struct leat_reorder_cursor *cursor = NULL;
	enum leat_status status = leat_reorder_begin(r, group, &cursor, err);
	const void *record;
	size_t len;

	while (status == LEAT_OK && (status = leat_reorder_next(cursor, &record, &len, err)) == LEAT_OK)
		status = visit(arg, record, len, err);
	leat_reorder_end(cursor);
	return status == LEAT_END ? LEAT_OK : status;
}
