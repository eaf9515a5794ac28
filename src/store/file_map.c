/* file_map.c - memory-mapped local files
 *
 * Touching a page that is not in memory blocks. Workers must not block, so they check first
 * and leave missing pages to the I/O threads. A mincore call per row would cost more than
 * reading a small row, so a bitmap remembers which pages were resident. It is cleared each
 * time a quarter of the RAM has been marked, because the kernel may have evicted the first
 * pages by then.
 *
 * If a mapped file is truncated, touching the missing part raises SIGBUS. The file's version
 * is checked before batches and whenever pages are brought in, but that leaves a race:
 * replace files by renaming, never in place.
 *
 * Threads: map and unmap by one; the bits and `next` are atomic hints. */
#include "store/file.h"

#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22
#endif

enum { READ_AHEAD = 1 << 20 }; /* extra bytes to prefetch when access is sequential */

struct leat_file_map {
	unsigned char *bytes;
	size_t size, page;
	int page_shift;          /* page is 1 << page_shift */
	_Atomic uint64_t *known; /* one bit per page: it was in memory */
	atomic_size_t known_pages;
	size_t known_limit;
	atomic_size_t next;  /* page after the last request */
	atomic_bool changed; /* the file has changed: ignore `known` */
};

struct pages {
	size_t first, end;
};

static size_t
words(const struct leat_file_map *map)
{
	return map->size / map->page / 64 + 1;
}

void
leat_file_unmap(struct leat_store *store, struct leat_file_map *map)
{
	if (!map)
		return;
	if (map->bytes)
		munmap(map->bytes, map->size);
	leat_free(store->mem, (void *)map->known);
	leat_free(store->mem, map);
}

static enum leat_status
map_descriptor(struct leat_file_store *store, struct leat_file_map *map, int fd, const char *path, struct leat_err *err)
{
	int tried = 0;

	do {
		map->bytes = mmap(NULL, map->size, PROT_READ, MAP_SHARED, fd, 0);
		if (map->bytes != MAP_FAILED)
			return LEAT_OK;
	} while (leat_file_try_again(store, &tried, errno));
	map->bytes = NULL;
	return leat_fail_errno(err, errno, "cannot map '%s'", path);
}

enum leat_status
leat_file_map(struct leat_object *object, const unsigned char **bytes, struct leat_err *err)
{
	struct leat_mem *mem = object->store->mem;
	struct leat_file_map *map = leat_alloc(mem, sizeof(*map));
	enum leat_status status;
	int fd;

	if (!map)
		return leat_fail_mem(err, mem, sizeof(*map), "a mapped file");
	object->open->map = map; /* `forget` frees it, even if mapping fails */
	map->size = (size_t)object->size;
	map->page = (size_t)sysconf(_SC_PAGESIZE);
	map->page_shift = __builtin_ctzl(map->page);
	map->known_limit = leat_ram("") / 4 / map->page;
	map->known = leat_alloc_array(mem, words(map), sizeof(*map->known));
	if (!map->known)
		return leat_fail_mem(err, mem, words(map) * sizeof(*map->known), "the pages of a mapped file");
	status = leat_file_open(object, &fd, err);
	if (status != LEAT_OK)
		return status;
	status = map_descriptor(leat_file_store_of(object->store), map, fd, object->uri, err);
	close(fd);
	*bytes = map->bytes;
	return status;
}

enum leat_status
leat_file_check_map(const struct leat_object *object, struct leat_err *err)
{
	enum leat_status status;

	if (!object->open->map) /* it was read as a whole */
		return LEAT_OK;
	status = leat_file_check(object, err);
	if (status != LEAT_OK)
		atomic_store_explicit(&object->open->map->changed, true, memory_order_relaxed);
	return status;
}

/* ---- resident pages ---- */

static bool
are_known(const struct leat_file_map *map, struct pages pages)
{
	for (size_t i = pages.first; i < pages.end; i++)
		if (!(atomic_load_explicit(&map->known[i / 64], memory_order_relaxed) >> i % 64 & 1))
			return false;
	return true;
}

static void
note_known(struct leat_file_map *map, struct pages pages)
{
	size_t count = pages.end - pages.first;

	if (atomic_fetch_add_explicit(&map->known_pages, count, memory_order_relaxed) + count > map->known_limit) {
		atomic_store_explicit(&map->known_pages, 0, memory_order_relaxed);
		for (size_t i = 0; i < words(map); i++)
			atomic_store_explicit(&map->known[i], 0, memory_order_relaxed);
	}
	for (size_t i = pages.first; i < pages.end; i++)
		atomic_fetch_or_explicit(&map->known[i / 64], UINT64_C(1) << i % 64, memory_order_relaxed);
}

static bool
are_in_memory(const struct leat_file_map *map, struct pages pages)
{
	unsigned char in[64];

	while (pages.first < pages.end) {
		size_t count = pages.end - pages.first < sizeof(in) ? pages.end - pages.first : sizeof(in);

		if (mincore(map->bytes + pages.first * map->page, count * map->page, in) != 0)
			return false;
		for (size_t i = 0; i < count; i++)
			if (!(in[i] & 1))
				return false;
		pages.first += count;
	}
	return true;
}

/* Asks the kernel to read the pages, without waiting; reads ahead if access is sequential. */
static void
read_ahead(struct leat_file_map *map, struct pages pages)
{
	size_t last = atomic_exchange_explicit(&map->next, pages.end, memory_order_relaxed);
	size_t begin = pages.first * map->page, len = (pages.end - pages.first) * map->page;

	if (pages.first <= last + 1 && pages.end >= last)
		len += READ_AHEAD;
	if (len > map->size - begin)
		len = map->size - begin;
	(void)madvise(map->bytes + begin, len, MADV_WILLNEED);
}

/* Waits for the pages. An error reported here would be a SIGBUS later: EFAULT means that there is no such page, or that
 * it cannot be read. */
static enum leat_status
wait_for(const struct leat_object *object, struct pages pages, struct leat_err *err)
{
	const struct leat_file_map *map = object->open->map;
	const volatile unsigned char *byte = map->bytes + pages.first * map->page;
	size_t len = (pages.end - pages.first) * map->page;
	enum leat_status status = leat_file_check(object, err);
	int failure, tried = 0;

	do {
		if (status != LEAT_OK || madvise(map->bytes + pages.first * map->page, len, MADV_POPULATE_READ) == 0)
			return status;
		failure = errno == EFAULT ? EIO : errno;
		status = leat_file_check(object, err); /* was it truncated? */
	} while (leat_file_try_again(leat_file_store_of(object->store), &tried, failure));
	if (status != LEAT_OK)
		return status;
	if (failure != EINVAL)
		return leat_fail_errno(err, failure, "cannot read '%s' at offset %llu", object->uri,
		                       (unsigned long long)(pages.first * map->page));
	for (size_t at = 0; at < len; at += map->page) /* kernels without MADV_POPULATE_READ */
		(void)byte[at];
	return LEAT_OK;
}

static enum leat_status
bring_pages(const struct leat_object *object, struct pages pages, bool wait, struct leat_err *err)
{
	struct leat_file_map *map = object->open->map;
	enum leat_status status = LEAT_OK;

	if (!are_in_memory(map, pages)) {
		read_ahead(map, pages);
		if (!wait)
			return LEAT_AGAIN;
		status = wait_for(object, pages, err);
	}
	if (status == LEAT_OK)
		note_known(map, pages);
	return status;
}

enum leat_status
leat_file_map_bring(const struct leat_object *object, const uint64_t *offset, size_t count, size_t len, bool wait,
                    struct leat_err *err)
{
	struct leat_file_map *map = object->open->map;
	enum leat_status status = LEAT_OK;

	if (atomic_load_explicit(&map->changed, memory_order_relaxed))
		return leat_file_check(object, err);
	for (size_t i = 0; i < count && (status == LEAT_OK || status == LEAT_AGAIN); i++) {
		struct pages pages = {(size_t)offset[i] >> map->page_shift,
		                      (((size_t)offset[i] + len - 1) >> map->page_shift) + 1};

		enum leat_status one = are_known(map, pages) ? LEAT_OK : bring_pages(object, pages, wait, err);

		if (one != LEAT_OK)
			status = one; /* with LEAT_AGAIN, go on and ask for the others, too */
	}
	return status;
}
