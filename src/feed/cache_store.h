/* cache_store.h - a cache's room: a table of places and bytes, in memory or in a shared file; private to cache*.c
 *
 * A place is an offset from the beginning of the room for samples, plus 1: 0 is none. */
#ifndef LEAT_FEED_CACHE_STORE_H
#define LEAT_FEED_CACHE_STORE_H

#include <stdatomic.h>
#include <sys/uio.h>

#include "feed/cache.h"

enum { LEAT_CACHE_ALIGN = 64 }; /* of entries, and of fields in them */

struct leat_cache_store {
	struct leat_mem *mem; /* NULL: nothing can be kept */
	_Atomic uint64_t *table;
	_Atomic uint64_t *used; /* of the room */
	unsigned char *room;
	uint64_t samples, capacity;

	/* In a file: */
	int fd; /* -1: in memory */
	unsigned char *mapped;
	uint64_t mapped_bytes, room_at;
	atomic_bool full;          /* the disk, too: nothing more is written */
	_Atomic uint64_t own_used; /* in memory */
};

/* `wanted`, at most options->size, is what all samples would take, as far as that is known. */
enum leat_status leat_cache_store_memory(struct leat_cache_store *store, const struct leat_cache_options *options,
                                         uint64_t wanted, struct leat_mem *mem, struct leat_err *err);
/* cache_file.c; not `exact`: `wanted` is only a guess. */
enum leat_status leat_cache_store_file(struct leat_cache_store *store, const struct leat_cache_options *options,
                                       uint64_t wanted, bool exact, struct leat_mem *mem, const struct leat_log *log,
                                       struct leat_err *err);
void leat_cache_store_close_file(struct leat_cache_store *store);

void leat_cache_store_close(struct leat_cache_store *store); /* takes a zeroed one */

uint64_t leat_cache_store_overhead(uint64_t samples);
uint64_t leat_cache_store_take(struct leat_cache_store *store, uint64_t bytes); /* 0: full */
/* The largest place in the table, 0: none. Walks over all of it. */
uint64_t leat_cache_store_last(const struct leat_cache_store *store);
/* Room is taken from this offset on only. */
void leat_cache_store_reserve(struct leat_cache_store *store, uint64_t offset);
/* Writes the pieces one behind the other, and changes them. False: errno says why. */
bool leat_cache_store_write(struct leat_cache_store *store, uint64_t place, struct iovec *piece, int pieces);
/* False: someone else was faster. */
bool leat_cache_store_publish(struct leat_cache_store *store, uint64_t sample, uint64_t place);
/* Takes a place that holds no whole sample out of the table, unless it was replaced meanwhile. */
void leat_cache_store_forget(struct leat_cache_store *store, uint64_t sample, uint64_t place);
void leat_cache_store_fill(const struct leat_cache_store *store, uint64_t *bytes, uint64_t *capacity);

/* ---- for every sample, so inline ---- */

/* The sample's place, 0: none. */
static inline uint64_t
leat_cache_store_find(const struct leat_cache_store *store, uint64_t sample)
{
	if (!store->mem || sample >= store->samples)
		return 0;
	return atomic_load_explicit(&store->table[sample], memory_order_acquire);
}

/* NULL: no such place. *room is what lies behind it. */
static inline unsigned char *
leat_cache_store_at(const struct leat_cache_store *store, uint64_t place, uint64_t *room)
{
	/* Of a file anything may be wrong. */
	if (place - 1 >= store->capacity || (place - 1) % LEAT_CACHE_ALIGN != 0)
		return NULL;
	*room = store->capacity - (place - 1);
	return store->room + (place - 1);
}

#endif
