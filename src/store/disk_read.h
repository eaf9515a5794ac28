/* disk_read.h - internals of the disk cache: a read on its way
 *
 * disk_cache.c decides what happens next, disk_io.c moves bytes. */
#ifndef LEAT_STORE_DISK_READ_H
#define LEAT_STORE_DISK_READ_H

#include "base/threads.h"
#include "store/disk_cache.h"
#include "store/disk_key.h"
#include "store/disk_table.h"

enum { LEAT_DISK_PROOFS = 8192 };

struct leat_disk_read {
	struct leat_read sub;   /* for the wire: what is missing */
	struct leat_read *read; /* the caller's */
	struct leat_disk *disk;
	struct leat_disk_key key;
	uint64_t proof;
	uint64_t begin, end;            /* what is missing */
	struct leat_disk_ticket ticket; /* our claim, or the one we wait for */
	uint64_t waiting_since;         /* 0: it has not waited */
	bool fetched;                   /* the wire is done with it */
	bool impatient;                 /* fetch it, whoever else does */
	struct leat_disk_read *next;
};

struct leat_disk {
	struct leat_disk_table table;
	struct leat_disk_wire wire;
	struct leat_mem *mem;
	int pid;
	bool is_off; /* there is no room for the table */
	struct leat_threads threads;
	_Atomic uint64_t epoch; /* of the newest read; 0: none has told it */
	_Atomic uint64_t paused_until_ns, full_until_ns;
	atomic_bool said; /* that it is paused */
	atomic_ullong hits, misses, hit_bytes, fetched, waits;
	_Atomic uint64_t *proof; /* LEAT_DISK_PROOFS, by hash; NULL: all bytes are this user's */
	unsigned char *scratch;  /* a granule for each thread */

	pthread_mutex_t lock;
	pthread_cond_t work, parked_work;
	/* Under the lock: */
	struct leat_disk_read *first, **last; /* to be worked on */
	struct leat_disk_read *parked;        /* waiting for another's claim */
	struct leat_disk_read *unused;
	bool started, stop;
};

/* Reads from the cache what is there at both ends of [begin, end), which it narrows. */
void leat_disk_serve(struct leat_disk_read *read, unsigned thread);
/* Writes [begin, end), which has been fetched. */
void leat_disk_keep(struct leat_disk_read *read);
bool leat_disk_is_paused(struct leat_disk *disk);
void leat_disk_pause(struct leat_disk *disk); /* for a while, nothing is written or claimed */
/* Says once that nothing is written, and why. */
void leat_disk_say(struct leat_disk *disk, const struct leat_read *read, int error);
bool leat_disk_is_proven(const struct leat_disk *disk, uint64_t proof);

#endif
