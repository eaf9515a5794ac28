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

struct header {
	_Alignas(16) size_t size; /* excluding this header */
};

_Static_assert(sizeof(struct header) == 16, "blocks keep malloc's alignment of 16");
_Static_assert(_Alignof(max_align_t) >= 16, "malloc aligns to 16");

enum { SCRATCH_ALIGN = 64, HUGE_PAGE = 2 * 1024 * 1024, HUGE_FROM = 2 * HUGE_PAGE };

void
leat_mem_init(struct leat_mem *mem, size_t limit)
{
	mem->limit = limit;
	atomic_init(&mem->used, 0);
	atomic_init(&mem->peak, 0);
	atomic_init(&mem->fail_after, -1);
}

bool
leat_mem_spares(const struct leat_mem *mem, size_t size, size_t keep)
{
	size_t used = atomic_load_explicit(&mem->used, memory_order_relaxed);

	return used <= mem->limit && keep <= mem->limit - used && size <= mem->limit - used - keep;
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
reserve(struct leat_mem *mem, size_t size)
{
	size_t used = atomic_load_explicit(&mem->used, memory_order_relaxed);

	if (must_fail(mem))
		return false;
	do {
		if (used > mem->limit || size > mem->limit - used)
			return false;
	} while (!atomic_compare_exchange_weak(&mem->used, &used, used + size));
	raise_peak(mem, used + size);
	return true;
}

static void
give_back(struct leat_mem *mem, size_t size)
{
	atomic_fetch_sub(&mem->used, size);
}

void *
leat_alloc(struct leat_mem *mem, size_t size)
{
	struct header *block;

	if (size > PTRDIFF_MAX - sizeof(*block) || !reserve(mem, sizeof(*block) + size))
		return NULL;
	block = calloc(1, sizeof(*block) + size);
	if (block == NULL) {
		give_back(mem, sizeof(*block) + size);
		return NULL;
	}
	block->size = size;
	return block + 1;
}

void *
leat_alloc_array(struct leat_mem *mem, size_t count, size_t size)
{
	if (size != 0 && count > SIZE_MAX / size)
		return NULL;
	return leat_alloc(mem, count * size);
}

void *
leat_realloc_raw(struct leat_mem *mem, void *ptr, size_t size)
{
	struct header *block = ptr == NULL ? NULL : (struct header *)ptr - 1;
	size_t old, more;

	if (block == NULL)
		return leat_alloc(mem, size);
	old = block->size;
	more = size > old ? size - old : 0;
	if (size > PTRDIFF_MAX - sizeof(*block) || !reserve(mem, more))
		return NULL;
	block = realloc(block, sizeof(*block) + size);
	if (block == NULL) {
		give_back(mem, more);
		return NULL;
	}
	block->size = size;
	if (size < old)
		give_back(mem, old - size);
	return block + 1;
}

void *
leat_realloc(struct leat_mem *mem, void *ptr, size_t size)
{
	size_t old = ptr ? ((struct header *)ptr - 1)->size : 0;
	void *grown = leat_realloc_raw(mem, ptr, size);

	if (grown && ptr && size > old)
		memset((unsigned char *)grown + old, 0, size - old);
	return grown;
}

void
leat_free(struct leat_mem *mem, void *ptr)
{
	struct header *block;

	if (ptr == NULL)
		return;
	block = (struct header *)ptr - 1;
	give_back(mem, sizeof(*block) + block->size);
	free(block);
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

/* Rounds up to whole pages, at least one; 0 on overflow. */
static size_t
whole_pages(size_t size)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);

	if (size == 0)
		return page;
	return size > PTRDIFF_MAX - page ? 0 : (size + page - 1) / page * page;
}

static void *
map_anonymous(size_t size)
{
	return mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

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

void *
leat_map(struct leat_mem *mem, size_t size)
{
	size_t pages = whole_pages(size);
	void *ptr;

	if (pages == 0 || !reserve(mem, pages))
		return NULL;
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
	memset(block, 0, size);
	if (leat_scratch_keep(scratch, block, end))
		return block;
	leat_free(scratch->mem, block);
	return NULL;
}
