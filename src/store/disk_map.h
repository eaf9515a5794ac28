/* disk_map.h - internals of the disk cache's table: its layout in the file
 *
 *	header | segments | claims | heads of chains | entries
 *
 * All in the machine's byte order: a folder is used on one machine. Entries are chained by object
 * and granule. The file grows with the entries; its blocks are allocated before they are written,
 * since a full disk would otherwise be a SIGBUS.
 *
 * disk_folder.c opens and locks, disk_table.c has the entries, disk_segment.c the segments,
 * disk_claim.c the claims. */
#ifndef LEAT_STORE_DISK_MAP_H
#define LEAT_STORE_DISK_MAP_H

#include "store/disk_table.h"

#define LEAT_DISK_MAGIC 0x3168636163746165ull

enum {
	LEAT_DISK_GROWTH = 256,    /* entries by which the table grows */
	LEAT_DISK_MAX_WALK = 4096, /* entries of a chain that are looked at */
	LEAT_DISK_MIN_HEADS = 1024,
	LEAT_DISK_MAX_HEADS = 1 << 26,
};

struct leat_disk_header {
	uint64_t magic, id; /* `id` is part of the names of segments */
	uint32_t heads, segments, claims, granule;
	_Atomic uint64_t capacity, entries; /* entries that there is room for; those used so far */
	_Atomic uint32_t free;              /* first of the chain of free entries, plus one */
	_Atomic uint32_t last_segment;
	_Atomic uint64_t used; /* bytes of the folder */
	_Atomic uint64_t last_ticket;
	_Atomic uint32_t released; /* changes when a claim is released; a futex */
	_Atomic uint32_t hand;     /* entry that is looked at next for being outdated */
	_Atomic uint32_t open;     /* 1 until it is closed in order */
};

struct leat_disk_segment {
	_Atomic uint32_t id; /* 0: none. The segment `id` is at index id % LEAT_DISK_SEGMENTS */
	_Atomic uint32_t used_at;
	_Atomic uint64_t bytes;
	_Atomic uint64_t recent, before; /* slots that have used it in their current and previous epoch */
};

struct leat_disk_claim {
	_Atomic uint64_t number; /* 0: free */
	struct leat_disk_key key;
	uint64_t begin, end;
	_Atomic uint32_t slot;
	uint32_t unused;
};

/* Words, since others may change it while it is read. */
struct leat_disk_entry {
	_Atomic uint64_t key[2];
	_Atomic uint64_t offset, position;
	_Atomic uint64_t place; /* segment << 32 | length; 0: free */
	_Atomic uint64_t check; /* checksum of the bytes << 32 | checksum of all before */
	_Atomic uint32_t next;  /* index, plus one; 0: end */
	uint32_t unused;
	uint64_t unused_too;
};

enum { LEAT_DISK_HEADER = 4096 };

#define leat_relaxed_load(p) atomic_load_explicit(p, memory_order_relaxed)
#define leat_relaxed_store(p, v) atomic_store_explicit(p, v, memory_order_relaxed)

static inline size_t
leat_disk_entries_at(uint32_t heads)
{
	return LEAT_DISK_HEADER + LEAT_DISK_SEGMENTS * sizeof(struct leat_disk_segment) +
	       LEAT_DISK_CLAIMS * sizeof(struct leat_disk_claim) + heads * sizeof(uint32_t);
}

uint32_t leat_disk_now(void); /* seconds since 1970 */

/* disk_folder.c */
bool leat_disk_is_alive(const struct leat_disk_table *table, unsigned slot);
bool leat_disk_grow(struct leat_disk_table *table);   /* locked */
void leat_disk_shrink(struct leat_disk_table *table); /* locked, alone: removes all entries */

/* disk_segment.c */
void leat_disk_segment_name(const struct leat_disk_table *table, uint32_t segment, char name[40]);
/* Of an entry; NULL: it is gone. */
struct leat_disk_segment *leat_disk_segment_of(const struct leat_disk_table *table, uint32_t segment);
/* Locked: this process's slot is new. */
void leat_disk_segments_enter(struct leat_disk_table *table);
/* Locked, alone: forgets segments without a file, removes files without a segment, and returns the sum of bytes. */
uint64_t leat_disk_segments_repair(struct leat_disk_table *table);

/* disk_claim.c, locked: removes what a former owner of our slot left */
void leat_disk_claims_enter(struct leat_disk_table *table);

#endif
