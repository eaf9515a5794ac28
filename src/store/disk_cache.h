/* disk_cache.h - keep remote bytes on disk, for the next epoch and for other processes
 *
 * Sits between a remote store and its wire. A read is looked up first; what is missing is fetched
 * by `send`, then written to the cache, and then the read is done. Of a read that is there in part,
 * only the middle is fetched. Reads and writes of the cache happen on separate threads, which may
 * block; the wire's never do.
 *
 * The cache never fails a read. Damaged or vanished bytes are fetched again; if writing fails, or
 * the disk is full, it pauses and says so once.
 *
 * Threads: open and close by one; everything else by any. */
#ifndef LEAT_STORE_DISK_CACHE_H
#define LEAT_STORE_DISK_CACHE_H

#include "store/store.h"

enum { LEAT_DISK_THREADS = 8 };

struct leat_disk;

struct leat_disk_wire {
	void *arg;
	/* Starts a read; may be called by any thread. `cancelled` is to be used instead of the read's own. */
	enum leat_status (*send)(void *arg, struct leat_read *read, atomic_bool *cancelled);
	const char *place;     /* the server, if URIs do not say it; outlives the cache */
	unsigned first_thread; /* read->thread of the first of the LEAT_DISK_THREADS threads that call `done` */
};

/* *disk is NULL if the settings name no folder. */
enum leat_status leat_disk_open(struct leat_disk **disk, const struct leat_storage *storage,
                                const struct leat_disk_wire *wire, struct leat_mem *mem, struct leat_err *err);
void leat_disk_close(struct leat_disk *disk); /* when no read is in progress; accepts NULL */
/* Takes over a read. False: this cannot be cached; send it. */
bool leat_disk_submit(struct leat_disk *disk, struct leat_read *read, const char *uri);
/* Looks for reads that have been cancelled. */
void leat_disk_cancel(struct leat_disk *disk);
/* A request for this object has succeeded with our credentials. */
void leat_disk_prove(struct leat_disk *disk, const char *uri, uint64_t size);
void leat_disk_stats(struct leat_disk *disk, struct leat_disk_stats *stats); /* all zero for NULL */

#endif
