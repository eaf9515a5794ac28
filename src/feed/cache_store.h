/* cache_store.h - storage of a cache: a table of places and a data area, in memory or in a file; private to cache*.c
 *
 * A place is an offset into the data area plus 1; 0 means none. */
#ifndef LEAT_FEED_CACHE_STORE_H
#define LEAT_FEED_CACHE_STORE_H

#include <stdatomic.h>
#include <sys/uio.h>

#include "feed/cache.h"

enum { LEAT_CACHE_ALIGN = 64 }; /* of entries and their fields */

struct leat_cache_store {
	struct leat_mem *mem; /* NULL: nothing can be cached */
	_Atomic uint64_t *table;
	_Atomic uint64_t *used; /* bytes reserved */
	unsigned char *room;    /* data area */
	uint64_t samples, capacity;

	/* In a file: */
	int fd; /* -1: in memory */
	unsigned char *mapped;
	uint64_t mapped_bytes, room_at;
	atomic_bool full;          /* the disk is full: stop writing */
	_Atomic uint64_t own_used; /* in memory */
};

/* `wanted`, at most options->size: bytes needed for all samples, if known. */
enum leat_status leat_cache_store_memory(struct leat_cache_store *store, const struct leat_cache_options *options,
                                         uint64_t wanted, struct leat_mem *mem, struct leat_err *err);
/* cache_file.c. `exact`: `wanted` is not a guess. */
enum leat_status leat_cache_store_file(struct leat_cache_store *store, const struct leat_cache_options *options,
                                       uint64_t wanted, bool exact, struct leat_mem *mem, const struct leat_log *log,
                                       struct leat_err *err);
void leat_cache_store_close_file(struct leat_cache_store *store);

void leat_cache_store_close(struct leat_cache_store *store); /* a zeroed one is allowed */

uint64_t leat_cache_store_overhead(uint64_t samples);
uint64_t leat_cache_store_take(struct leat_cache_store *store, uint64_t bytes); /* 0: full */
/* Largest place in the table; 0: none. Scans the whole table. */
uint64_t leat_cache_store_last(const struct leat_cache_store *store);
/* Makes sure that nothing before `offset` is reserved again. */
void leat_cache_store_reserve(struct leat_cache_store *store, uint64_t offset);
/* Writes the pieces in sequence; modifies the array. False: see errno. */
bool leat_cache_store_write(struct leat_cache_store *store, uint64_t place, struct iovec *piece, int pieces);
/* False: another writer was first. */
bool leat_cache_store_publish(struct leat_cache_store *store, uint64_t sample, uint64_t place);
/* Removes a corrupt sample from the table, unless it was replaced meanwhile. */
void leat_cache_store_forget(struct leat_cache_store *store, uint64_t sample, uint64_t place);
void leat_cache_store_fill(const struct leat_cache_store *store, uint64_t *bytes, uint64_t *capacity);

/* ---- inline: called for every sample ---- */

/* The sample's place; 0: none. */
static inline uint64_t
leat_cache_store_find(const struct leat_cache_store *store, uint64_t sample)
{
	if (!store->mem || sample >= store->samples)
		return 0;
	return atomic_load_explicit(&store->table[sample], memory_order_acquire);
}

/* NULL: invalid place. *room: bytes from there to the end of the data area. */
static inline unsigned char *
leat_cache_store_at(const struct leat_cache_store *store, uint64_t place, uint64_t *room)
{
	/* Don't trust files. */
	if (place - 1 >= store->capacity || (place - 1) % LEAT_CACHE_ALIGN != 0)
		return NULL;
	*room = store->capacity - (place - 1);
	return store->room + (place - 1);
}

#endif
