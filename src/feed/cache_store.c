/* cache_store.c - see cache_store.h; cache_file.c creates and opens shared files */
#include "feed/cache_store.h"

#include <errno.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

enum { PAGE = 4096 };

uint64_t
leat_cache_store_overhead(uint64_t samples)
{
	uint64_t table = samples * sizeof(uint64_t);

	return PAGE + ((table + PAGE - 1) & ~(uint64_t)(PAGE - 1));
}

enum leat_status
leat_cache_store_memory(struct leat_cache_store *store, const struct leat_cache_options *o, uint64_t wanted,
                        struct leat_mem *mem, struct leat_err *err)
{
	uint64_t overhead = leat_cache_store_overhead(o->samples);

	*store = (struct leat_cache_store){.fd = -1, .samples = o->samples};
	if (wanted <= overhead)
		return leat_fail(err, LEAT_LIMIT, "a cache of %llu bytes is too small for the table of %llu samples",
		                 (unsigned long long)o->size, (unsigned long long)o->samples);
	store->mapped = leat_map(mem, (size_t)wanted);
	if (!store->mapped)
		return leat_fail_mem(err, mem, (size_t)wanted, "the cache");
	store->mem = mem;
	store->mapped_bytes = wanted;
	store->table = (_Atomic uint64_t *)(void *)(store->mapped + PAGE);
	store->used = &store->own_used;
	store->room = store->mapped + overhead;
	store->capacity = wanted - overhead;
	return LEAT_OK;
}

void
leat_cache_store_close(struct leat_cache_store *store)
{
	if (!store->mem)
		return;
	if (store->fd >= 0)
		leat_cache_store_close_file(store);
	else
		leat_unmap(store->mem, store->mapped, (size_t)store->mapped_bytes);
	store->mem = NULL;
}

uint64_t
leat_cache_store_take(struct leat_cache_store *store, uint64_t bytes)
{
	uint64_t at;

	if (!store->mem || atomic_load_explicit(&store->full, memory_order_relaxed) || bytes > store->capacity)
		return 0;
	/* Checking first keeps `used` from growing without bound once the cache is full. */
	if (atomic_load_explicit(store->used, memory_order_relaxed) > store->capacity - bytes)
		return 0;
	at = atomic_fetch_add_explicit(store->used, bytes, memory_order_relaxed);
	return at <= store->capacity - bytes ? at + 1 : 0;
}

uint64_t
leat_cache_store_last(const struct leat_cache_store *store)
{
	uint64_t last = 0, room;

	for (uint64_t i = 0; store->mem && i < store->samples; i++) {
		uint64_t place = atomic_load_explicit(&store->table[i], memory_order_acquire);

		if (place > last && leat_cache_store_at(store, place, &room))
			last = place;
	}
	return last;
}

void
leat_cache_store_reserve(struct leat_cache_store *store, uint64_t offset)
{
	uint64_t used = atomic_load_explicit(store->used, memory_order_relaxed);

	while (used < offset && !atomic_compare_exchange_weak(store->used, &used, offset))
		;
}

static bool
write_all(int fd, struct iovec *piece, int pieces, uint64_t offset)
{
	while (pieces > 0) {
		ssize_t n = pwritev(fd, piece, pieces < IOV_MAX ? pieces : IOV_MAX, (off_t)offset);

		if (n < 0 && errno == EINTR)
			continue;
		if (n == 0)
			errno = ENOSPC;
		if (n <= 0)
			return false;
		offset += (uint64_t)n;
		for (; pieces > 0 && (size_t)n >= piece->iov_len; piece++, pieces--)
			n -= (ssize_t)piece->iov_len;
		if (pieces > 0) {
			piece->iov_base = (char *)piece->iov_base + n;
			piece->iov_len -= (size_t)n;
		}
	}
	return true;
}

bool
leat_cache_store_write(struct leat_cache_store *store, uint64_t place, struct iovec *piece, int pieces)
{
	unsigned char *to = store->room + (place - 1);

	if (store->fd >= 0) {
		bool written = write_all(store->fd, piece, pieces, store->room_at + (place - 1));

		if (!written) /* a full disk stays full: don't retry for every sample */
			atomic_store_explicit(&store->full, true, memory_order_relaxed);
		return written;
	}
	for (int i = 0; i < pieces; i++) {
		memcpy(to, piece[i].iov_base, piece[i].iov_len);
		to += piece[i].iov_len;
	}
	return true;
}

bool
leat_cache_store_publish(struct leat_cache_store *store, uint64_t sample, uint64_t place)
{
	uint64_t none = 0;

	return sample < store->samples &&
	       atomic_compare_exchange_strong_explicit(&store->table[sample], &none, place, memory_order_release,
	                                               memory_order_relaxed);
}

void
leat_cache_store_forget(struct leat_cache_store *store, uint64_t sample, uint64_t place)
{
	if (sample < store->samples)
		atomic_compare_exchange_strong(&store->table[sample], &place, 0);
}

void
leat_cache_store_fill(const struct leat_cache_store *store, uint64_t *bytes, uint64_t *capacity)
{
	uint64_t used = store->mem ? atomic_load_explicit(store->used, memory_order_relaxed) : 0;

	*capacity = store->capacity;
	*bytes = used < store->capacity ? used : store->capacity;
}
