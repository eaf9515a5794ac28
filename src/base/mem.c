/* mem.c - memory allocation with a limit, and with failures for tests
 *
 * Each block has a header with its size. An allocation counts as its size plus the header; a
 * mapping counts whole pages. Bytes are reserved against the limit before they are allocated,
 * so concurrent requests cannot exceed it together. */
#include "base/mem.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/temp_pages.h"

enum where { ON_HEAP, IN_PAGES, IN_FILE, COUNTED, NOWHERE };

struct header {
	_Alignas(16) size_t size; /* excluding this header */
	enum where where;
};

_Static_assert(sizeof(struct header) == 16, "blocks keep malloc's alignment of 16");
_Static_assert(_Alignof(max_align_t) >= 16, "malloc aligns to 16");

enum { SCRATCH_ALIGN = 64, HUGE_PAGE = 2 * 1024 * 1024, HUGE_FROM = 2 * HUGE_PAGE };

void
leat_mem_init(struct leat_mem *mem, size_t limit)
{
	mem->limit = limit;
	mem->lends = false;
	atomic_init(&mem->used, 0);
	atomic_init(&mem->lent, 0);
	atomic_init(&mem->peak, 0);
	atomic_init(&mem->fail_after, -1);
}

size_t
leat_mem_counted(const struct leat_mem *mem)
{
	return atomic_load_explicit(&mem->used, memory_order_relaxed) +
	       atomic_load_explicit(&mem->lent, memory_order_relaxed);
}

bool
leat_mem_is_exceeded(const struct leat_mem *mem)
{
	return leat_mem_counted(mem) > mem->limit;
}

static bool
must_fail(struct leat_mem *mem)
{
	long left = atomic_load_explicit(&mem->fail_after, memory_order_relaxed);

	while (left > 0)
		if (atomic_compare_exchange_weak(&mem->fail_after, &left, left - 1))
			return false;
	return left == 0;
}

static void
raise_peak(struct leat_mem *mem, size_t used)
{
	size_t peak = atomic_load_explicit(&mem->peak, memory_order_relaxed);

	while (used > peak)
		if (atomic_compare_exchange_weak(&mem->peak, &peak, used))
			return;
}

static bool
take(struct leat_mem *mem, size_t size, size_t limit)
{
	size_t used = atomic_load_explicit(&mem->used, memory_order_relaxed);

	do {
		if (used > limit || size > limit - used)
			return false;
	} while (!atomic_compare_exchange_weak(&mem->used, &used, used + size));
	raise_peak(mem, used + size + atomic_load_explicit(&mem->lent, memory_order_relaxed));
	return true;
}

static bool
lend(struct leat_mem *mem, size_t size)
{
	size_t lent = atomic_load_explicit(&mem->lent, memory_order_relaxed);

	do {
		if (!mem->lends || size > PTRDIFF_MAX - lent)
			return false;
	} while (!atomic_compare_exchange_weak(&mem->lent, &lent, lent + size));
	raise_peak(mem, lent + size + atomic_load_explicit(&mem->used, memory_order_relaxed));
	return true;
}

static size_t
limit_with(const struct leat_mem *mem, size_t allowance)
{
	if (!mem->lends || mem->limit > SIZE_MAX - allowance)
		return mem->limit;
	return mem->limit + allowance;
}

static bool
reserve(struct leat_mem *mem, size_t size)
{
	return !must_fail(mem) && take(mem, size, mem->limit);
}

static void
give_back(struct leat_mem *mem, size_t size)
{
	atomic_fetch_sub(&mem->used, size);
}

/* Rounds up to whole pages, at least one; 0 on overflow. */
static size_t
whole_pages(size_t size)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);

	if (size == 0)
		return page;
	return size > PTRDIFF_MAX - page ? 0 : (size + page - 1) / page * page;
}

/* ---- blocks ---- */

/* What a block counts, with its header. */
static size_t
cost(enum where where, size_t size)
{
	return where == ON_HEAP ? sizeof(struct header) + size : whole_pages(sizeof(struct header) + size);
}

static bool
is_too_large(size_t size)
{
	return size > PTRDIFF_MAX - sizeof(struct header) || cost(IN_PAGES, size) == 0;
}

/* Where a new block goes. Half of the allowance is for small ones alone, which cannot be in a file. */
static enum where
reserve_block(struct leat_mem *mem, size_t size, enum where beyond)
{
	bool large = size >= LEAT_MEM_LARGE;

	if (is_too_large(size) || must_fail(mem))
		return NOWHERE;
	if (take(mem, cost(large ? IN_PAGES : ON_HEAP, size),
	         limit_with(mem, large ? LEAT_MEM_ALLOWANCE / 2 : LEAT_MEM_ALLOWANCE)))
		return large ? IN_PAGES : ON_HEAP;
	return large && lend(mem, cost(beyond, size)) ? beyond : NOWHERE;
}

static void
give_back_block(struct leat_mem *mem, enum where where, size_t size)
{
	atomic_fetch_sub(where == ON_HEAP || where == IN_PAGES ? &mem->used : &mem->lent, cost(where, size));
}

static void *
pages(void *map)
{
	return map == MAP_FAILED ? NULL : map;
}

static void *
map_anonymous(size_t size)
{
	return mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

static void *
new_block(struct leat_mem *mem, size_t size, enum where beyond)
{
	enum where where = reserve_block(mem, size, beyond);
	struct header *block = NULL;

	if (where == NOWHERE)
		return NULL;
	if (where == ON_HEAP)
		block = calloc(1, sizeof(*block) + size);
	else if (where == IN_PAGES)
		block = pages(map_anonymous(cost(where, size)));
	else if (where == IN_FILE)
		block = leat_temp_pages(cost(where, size));
	else
		block = calloc(1, sizeof(*block));
	if (block == NULL) {
		give_back_block(mem, where, size);
		return NULL;
	}
	block->size = size;
	block->where = where;
	return block + 1;
}

void *
leat_alloc(struct leat_mem *mem, size_t size)
{
	return new_block(mem, size, IN_FILE);
}

void *
leat_alloc_later(struct leat_mem *mem, size_t size)
{
	return new_block(mem, size, COUNTED);
}

void
leat_free(struct leat_mem *mem, void *ptr)
{
	struct header *block;
	size_t size;

	if (ptr == NULL)
		return;
	block = (struct header *)ptr - 1;
	size = cost(block->where, block->size);
	give_back_block(mem, block->where, block->size);
	if (block->where == IN_PAGES || block->where == IN_FILE)
		munmap(block, size);
	else
		free(block);
}

void *
leat_alloc_array(struct leat_mem *mem, size_t count, size_t size)
{
	if (size != 0 && count > SIZE_MAX / size)
		return NULL;
	return leat_alloc(mem, count * size);
}

static void
count_again(struct leat_mem *mem, const struct header *block)
{
	atomic_fetch_add(block->where == IN_PAGES ? &mem->used : &mem->lent, cost(block->where, block->size));
}

/* A block that moves to a file counts once, as it would if there were memory for it to grow. */
static void *
move_block(struct leat_mem *mem, void *ptr, size_t size)
{
	struct header *block = (struct header *)ptr - 1;
	bool once = block->where != ON_HEAP;
	void *moved;

	if (once)
		give_back_block(mem, block->where, block->size);
	moved = leat_alloc(mem, size);
	if (once)
		count_again(mem, block);
	if (moved == NULL)
		return NULL;
	memcpy(moved, ptr, block->size < size ? block->size : size);
	leat_free(mem, ptr);
	return moved;
}

/* Changes the size of a block where it is: on the heap, or in pages that stay in memory. NULL: it does not fit. */
static struct header *
resize_block(struct leat_mem *mem, struct header *block, size_t size)
{
	size_t before = cost(block->where, block->size), after = cost(block->where, size);
	size_t more = after > before ? after - before : 0;
	struct header *resized;

	if (!take(mem, more, limit_with(mem, block->where == IN_PAGES ? LEAT_MEM_ALLOWANCE / 2 : LEAT_MEM_ALLOWANCE)))
		return NULL;
	if (block->where == ON_HEAP)
		resized = realloc(block, after);
	else
		resized = before == after ? block : pages(mremap(block, before, after, MREMAP_MAYMOVE));
	if (resized == NULL) {
		give_back(mem, more);
		return NULL;
	}
	resized->size = size;
	give_back(mem, before > after ? before - after : 0);
	return resized;
}

void *
leat_realloc_raw(struct leat_mem *mem, void *ptr, size_t size)
{
	struct header *block = ptr == NULL ? NULL : (struct header *)ptr - 1;
	bool stays;

	if (block == NULL)
		return leat_alloc(mem, size);
	if (is_too_large(size))
		return NULL;
	stays = block->where == ON_HEAP ? size < LEAT_MEM_LARGE : block->where == IN_PAGES;
	if (stays) {
		block = must_fail(mem) ? NULL : resize_block(mem, block, size);
		if (block != NULL)
			return block + 1;
		if (!mem->lends || size < LEAT_MEM_LARGE)
			return NULL;
	}
	return move_block(mem, ptr, size);
}

/* New pages of a mapping are zero, and stay untouched. */
static size_t
end_of_used_pages(const struct header *block, size_t size)
{
	return block->where == ON_HEAP ? SIZE_MAX : cost(block->where, size) - sizeof(*block);
}

void *
leat_realloc(struct leat_mem *mem, void *ptr, size_t size)
{
	size_t old = ptr ? ((struct header *)ptr - 1)->size : 0, end = size;
	void *grown = leat_realloc_raw(mem, ptr, size);

	if (grown && ptr && size > old) {
		size_t zeroed = end_of_used_pages((struct header *)grown - 1, old);

		memset((unsigned char *)grown + old, 0, (zeroed < end ? zeroed : end) - old);
	}
	return grown;
}

char *
leat_strdup(struct leat_mem *mem, const char *text)
{
	return leat_strndup(mem, text, strlen(text));
}

char *
leat_strndup(struct leat_mem *mem, const char *text, size_t len)
{
	size_t kept = strnlen(text, len);
	char *copy = leat_alloc(mem, kept + 1);

	if (copy != NULL)
		memcpy(copy, text, kept);
	return copy;
}

char *
leat_asprintf(struct leat_mem *mem, const char *fmt, ...)
{
	char *text = NULL;
	va_list ap, again;
	int len;

	va_start(ap, fmt);
	va_copy(again, ap);
	len = vsnprintf(NULL, 0, fmt, ap);
	if (len >= 0)
		text = leat_alloc(mem, (size_t)len + 1);
	if (text != NULL)
		vsnprintf(text, (size_t)len + 1, fmt, again);
	va_end(again);
	va_end(ap);
	return text;
}

/* ---- mappings ---- */

/* Large mappings use huge pages, which means fewer page faults and TLB misses. Huge pages must be aligned
 * to their size, so map more than needed and trim both ends. */
static void *
map_pages(size_t size)
{
	unsigned char *map;
	size_t before;

	if (size < HUGE_FROM)
		return map_anonymous(size);
	map = map_anonymous(size + HUGE_PAGE);
	if (map == MAP_FAILED)
		return map_anonymous(size); /* address space may be limited (ulimit -v) */
	before = -(uintptr_t)map % HUGE_PAGE;
	if (before > 0)
		munmap(map, before);
	munmap(map + before + size, HUGE_PAGE - before);
	madvise(map + before, size, MADV_HUGEPAGE); /* may fail: small pages work too */
	return map + before;
}

/* Counts a mapping that does not fit. Its pages cannot be touched: the feed will be refused. */
static void *
map_lent(struct leat_mem *mem, size_t size)
{
	void *ptr;

	if (!lend(mem, size))
		return NULL;
	ptr = mmap(NULL, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (ptr != MAP_FAILED)
		return ptr;
	atomic_fetch_sub(&mem->lent, size);
	return NULL;
}

void *
leat_map(struct leat_mem *mem, size_t size)
{
	size_t pages = whole_pages(size);
	void *ptr;

	if (pages == 0 || must_fail(mem))
		return NULL;
	if (!take(mem, pages, mem->limit))
		return map_lent(mem, pages);
	ptr = map_pages(pages);
	if (ptr == MAP_FAILED) {
		give_back(mem, pages);
		return NULL;
	}
	return ptr;
}

void *
leat_map_shared(struct leat_mem *mem, size_t size, int *fd)
{
	size_t pages = whole_pages(size);
	void *ptr = MAP_FAILED;

	*fd = -1;
	if (pages == 0 || !reserve(mem, pages))
		return NULL;
	*fd = memfd_create("leat", MFD_CLOEXEC);
	if (*fd >= 0 && ftruncate(*fd, (off_t)pages) == 0)
		ptr = mmap(NULL, pages, PROT_READ | PROT_WRITE, MAP_SHARED, *fd, 0);
	if (ptr != MAP_FAILED)
		return ptr;
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
	give_back(mem, pages);
	return NULL;
}

void
leat_unmap(struct leat_mem *mem, void *ptr, size_t size)
{
	size_t pages = whole_pages(size);

	if (ptr == NULL)
		return;
	munmap(ptr, pages);
	if (mem->lends && atomic_load(&mem->lent) >= pages) /* the two counts may get mixed up, their sum does not */
		atomic_fetch_sub(&mem->lent, pages);
	else
		give_back(mem, pages);
}

int
leat_scratch_open(struct leat_scratch *scratch, struct leat_mem *mem, size_t size)
{
	memset(scratch, 0, sizeof(*scratch));
	scratch->base = leat_map(mem, size);
	if (scratch->base == NULL)
		return -1;
	scratch->size = size;
	scratch->mem = mem;
	return 0;
}

void
leat_scratch_close(struct leat_scratch *scratch, struct leat_mem *mem)
{
	for (int i = 0; i < LEAT_KEPT; i++)
		if (scratch->kept[i].object)
			scratch->kept[i].end(scratch->kept[i].object, mem);
	leat_unmap(mem, scratch->base, scratch->size);
	memset(scratch, 0, sizeof(*scratch));
}

void *
leat_scratch_alloc(struct leat_scratch *scratch, size_t size)
{
	size_t at = (scratch->used + SCRATCH_ALIGN - 1) & ~(size_t)(SCRATCH_ALIGN - 1);

	if (at > scratch->size || size > scratch->size - at) {
		if (size > SIZE_MAX - at || at + size > scratch->wanted)
			scratch->wanted = size > SIZE_MAX - at ? SIZE_MAX : at + size;
		return NULL;
	}
	scratch->used = at + size;
	if (scratch->used > scratch->peak)
		scratch->peak = scratch->used;
	return scratch->base + at;
}

void
leat_scratch_count(struct leat_scratch *scratch)
{
	/* Start just past an alignment boundary, the worst case: the padding to the next one is counted. */
	*scratch = (struct leat_scratch){
		.base = (void *)(uintptr_t)SCRATCH_ALIGN, .size = SIZE_MAX / 2, .used = 1, .counting = true};
}

void
leat_scratch_reset(struct leat_scratch *scratch)
{
	scratch->used = scratch->wanted = 0;
}

void *
leat_scratch_kept(const struct leat_scratch *scratch, leat_end_kept *end)
{
	for (int i = 0; i < LEAT_KEPT; i++)
		if (scratch->kept[i].end == end)
			return scratch->kept[i].object;
	return NULL;
}

bool
leat_scratch_keep(struct leat_scratch *scratch, void *object, leat_end_kept *end)
{
	for (int i = 0; i < LEAT_KEPT; i++) {
		if (!scratch->kept[i].object) {
			scratch->kept[i] = (struct leat_kept){object, end};
			return true;
		}
	}
	return false;
}

void *
leat_scratch_keep_block(struct leat_scratch *scratch, size_t size, leat_end_kept *end)
{
	void *block = leat_scratch_kept(scratch, end);

	if (block || !scratch->mem)
		return block;
	block = leat_alloc(scratch->mem, size);
	if (!block)
		return NULL;
	if (leat_scratch_keep(scratch, block, end))
		return block;
	leat_free(scratch->mem, block);
	return NULL;
}
