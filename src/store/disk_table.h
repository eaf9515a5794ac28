/* disk_table.h - the disk cache's shared table: which bytes of which object are in which file
 *
 * A cache folder holds *segments*, files to which one process each appends, and a *table*, which
 * all processes that use the folder have mapped. The table maps an *extent*, a range of an object
 * within one granule of 32 KiB, to its place in a segment. There is no daemon: whoever changes the
 * table holds a lock that ends with its process.
 *
 * Nothing in the table has to be right for a read to be right. An entry has a checksum of itself,
 * and one of the bytes, the object and the offset, so a torn, damaged, forged or outdated entry is
 * a miss at worst. So finding takes no lock. Whatever a killed process or a flipped bit left is
 * repaired by the next one that opens the folder alone.
 *
 * Eviction drops whole segments, never one that a living process has used in its current or
 * previous epoch. A job reads each sample once per epoch, so no more than what the cache holds at
 * the end of an epoch can be a hit in the next one, and keeping what is there reaches that;
 * replacing it would only cost writes. What is left to decide is when another job's data may go:
 * once a process has seen a whole epoch, it knows what it needs, and the rest goes, least recently
 * used first. Before that, only segments that nobody has used for an hour go.
 *
 * *Claims* announce which bytes a process is about to fetch, so that others wait for them instead
 * of fetching them too.
 *
 * Threads: any. Functions marked "locked" need leat_disk_lock. */
#ifndef LEAT_STORE_DISK_TABLE_H
#define LEAT_STORE_DISK_TABLE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"

enum {
	LEAT_DISK_GRANULE = 32 * 1024,
	LEAT_DISK_SLOTS = 64,    /* processes that can use a folder at a time; more can only read */
	LEAT_DISK_CLAIMS = 512,  /* what exceeds it is fetched unannounced */
	LEAT_DISK_SEGMENTS = 256 /* most segments */
};

#define LEAT_DISK_MIN_SIZE ((uint64_t)1 << 20)

/* An object in one version; disk_key.h. */
struct leat_disk_key {
	uint64_t word[2];
};

struct leat_disk_extent {
	struct leat_disk_key key;
	uint64_t offset; /* in the object */
	uint32_t length;
	uint32_t segment;
	uint64_t position; /* in the segment */
	uint32_t crc;      /* leat_disk_crc_begin, continued with the bytes */
};

struct leat_disk_options {
	const char *folder;
	uint64_t size; /* most bytes in the folder */
	bool shared;   /* by users of a group, else one's own */
	bool existing; /* fail with LEAT_DATA if there is no cache yet */
};

struct leat_disk_table {
	struct leat_disk_options options; /* its folder is not valid after opening */
	int folder, file, lock_file;
	size_t mapped;
	struct leat_disk_header *header;
	struct leat_disk_segment *segment;
	struct leat_disk_claim *claim;
	_Atomic uint32_t *head;
	struct leat_disk_entry *entry;
	uint64_t id, max_entries, segment_size;
	uint32_t heads;
	int slot;   /* -1: none is left, so nothing can be written */
	bool alone; /* nobody else used the folder when it was opened */

	pthread_mutex_t lock;
	/* Under the lock: */
	uint32_t appending; /* segment; 0: none */
	unsigned epochs;    /* completed by this process */
	atomic_ullong evictions;
};

/* Opens a folder, creates it if needed. LEAT_LIMIT: there is no room on the disk. */
enum leat_status leat_disk_table_open(struct leat_disk_table *table, const struct leat_disk_options *options,
                                      struct leat_err *err);
void leat_disk_table_close(struct leat_disk_table *table);

/* False: another process has held the lock for a second (it may be stopped). Do without the cache. */
bool leat_disk_lock(struct leat_disk_table *table);
void leat_disk_unlock(struct leat_disk_table *table);

/* ---- reading ---- */

/* Finds an extent with the byte at `at`. */
bool leat_disk_find(struct leat_disk_table *table, const struct leat_disk_key *key, uint64_t at,
                    struct leat_disk_extent *extent);
/* Opens a segment. -1: it is gone. `others`: another user wrote it. */
int leat_disk_open_segment(const struct leat_disk_table *table, uint32_t segment, int flags, bool *others);
uint32_t leat_disk_crc_begin(const struct leat_disk_extent *extent);
/* Locked: removes an extent that turned out to be damaged. */
void leat_disk_forget(struct leat_disk_table *table, const struct leat_disk_extent *extent);
/* This process begins an epoch. */
void leat_disk_begin_epoch(struct leat_disk_table *table);

/* ---- writing, locked ---- */

/* Makes room for `bytes`, at most the size of a segment. False: there is none. Sets segment and position. */
bool leat_disk_reserve(struct leat_disk_table *table, uint64_t bytes, struct leat_disk_extent *extent);
/* Enters an extent whose bytes have been written. */
void leat_disk_record(struct leat_disk_table *table, const struct leat_disk_extent *extent);

/* ---- claims ---- */

struct leat_disk_ticket {
	uint32_t index;
	uint64_t number; /* 0: none */
};

enum leat_disk_claimed { LEAT_DISK_MINE, LEAT_DISK_WAIT, LEAT_DISK_FOUND };

/* Locked: claims [begin, end) of an object. MINE: fetch it; `ticket` is empty if it could not be announced. WAIT:
 * another's claim overlaps, which is `ticket`. FOUND: its first or last byte is there now; look again. */
enum leat_disk_claimed leat_disk_claim_range(struct leat_disk_table *table, const struct leat_disk_key *key,
                                             uint64_t begin, uint64_t end, struct leat_disk_ticket *ticket);
/* Locked. */
void leat_disk_release(struct leat_disk_table *table, const struct leat_disk_ticket *ticket);
/* Is this claim still there, and its owner alive? */
bool leat_disk_is_claimed(struct leat_disk_table *table, const struct leat_disk_ticket *ticket, bool check_owner);
/* Waits until any claim is released, or a time has passed. `seen` is what the last call returned, 0 at first. */
uint32_t leat_disk_wait(struct leat_disk_table *table, uint32_t seen, unsigned milliseconds);
/* Wakes those who wait, in this process and others. */
void leat_disk_wake(struct leat_disk_table *table);

/* ---- maintenance ---- */

struct leat_disk_usage {
	uint64_t bytes, extents, segments;
	unsigned users; /* processes that use it now */
};

/* Locked: whatever nobody refers to is freed, and counts are made anew. False: others use the folder. */
bool leat_disk_repair(struct leat_disk_table *table);
/* Locked: drops the segment that was unused longest, if it is older than `seconds` and nobody has used it lately. */
bool leat_disk_evict(struct leat_disk_table *table, uint32_t seconds);
/* Locked: drops everything. */
void leat_disk_clear(struct leat_disk_table *table);
uint64_t leat_disk_used(const struct leat_disk_table *table); /* bytes of the folder */
void leat_disk_usage(struct leat_disk_table *table, struct leat_disk_usage *usage);
/* Fills in what is known about the i-th segment; false: there is none. */
struct leat_disk_segment_info {
	uint32_t id, used_at; /* seconds since 1970 */
	uint64_t bytes;
	bool in_use;
	uid_t owner;
};
bool leat_disk_segment_info(struct leat_disk_table *table, unsigned i, struct leat_disk_segment_info *info);

#endif
