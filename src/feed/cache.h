/* cache.h - cache of processed samples, in memory or in a file shared by processes
 *
 * A cache stores samples as they are at one point of the chain, keyed by their number in the
 * source. Its size is fixed. A full cache takes no more samples and evicts none, so it cannot
 * thrash. A cached sample equals a recomputed one: the cache affects speed, never output.
 *
 * A cache file has a header, a table with the place of each sample, and a data area. A writer,
 * in any process, reserves space with one atomic add, writes its sample, then publishes its
 * place with one atomic store. A writer that dies in between leaks its space and does no other
 * harm. A sample of an earlier process is checked on first use: its checksum, which catches writes
 * lost in a crash, and with `is_current` that its data has not changed. When another cache needs space, unused files
 * are trimmed or deleted.
 *
 * Whoever can write a cache file decides what a feed delivers. So each user has files of their own,
 * which nobody else can read or write, unless `shared` says that all who can write to the folder are
 * trusted.
 *
 * Threads: one thread opens and closes; any number of workers call has, get and put. */
#ifndef LEAT_FEED_CACHE_H
#define LEAT_FEED_CACHE_H

#include "base/hash.h"
#include "base/log.h"
#include "base/mem.h"
#include "format/sample.h"

struct leat_cache_options {
	const char *dir;                  /* NULL: in memory; borrowed */
	bool shared;                      /* trust files of all users who can write to `dir`; else only our own */
	uint64_t size;                    /* limit in bytes; on disk: for all our cache files in `dir` */
	uint64_t samples;                 /* number of samples in the source */
	const char *key;                  /* identifies the data and ops; a file is shared only by equal keys */
	const struct leat_schema *schema; /* of cached samples; borrowed */
	/* In a file only. Asked before this process uses a sample that another one stored: is the data it was made from
	 * what `key` says? May block; any thread. NULL: yes. */
	bool (*is_current)(void *arg, uint64_t sample);
	void *arg;
};

struct leat_cache;

/* A folder that is read-only or full of caches in use is not an error: nothing is cached then. */
enum leat_status leat_cache_open(struct leat_cache **cache, const struct leat_cache_options *options,
                                 struct leat_mem *mem, const struct leat_log *log, struct leat_err *err);
void leat_cache_close(struct leat_cache *cache); /* NULL is allowed */

/* Call some samples before `has`, so that its table lookup does not miss the CPU cache. */
void leat_cache_prefetch_slot(const struct leat_cache *cache, uint64_t sample);
bool leat_cache_has(const struct leat_cache *cache, uint64_t sample);
/* Points `out` at fields in the cache, which are read-only and valid until it is closed.
 * False: not, or no longer, in the cache. */
bool leat_cache_get(struct leat_cache *cache, uint64_t sample, struct leat_sample *out);
/* Like get, but also false if the checksum was not checked yet. Never slow. */
bool leat_cache_peek(const struct leat_cache *cache, uint64_t sample, struct leat_sample *out);
/* Of a cache in memory whose samples all have one size: where a field of these samples is. `has` was true for all. */
void leat_cache_rows(const struct leat_cache *cache, int field, const uint64_t *sample, size_t count,
                     const unsigned char **at);
/* Call a sample or two before `get`, to bring the start of the sample into the CPU cache. */
void leat_cache_prefetch_sample(const struct leat_cache *cache, uint64_t sample);
/* Stores a copy if there is room. Logs once when the cache is full. */
void leat_cache_put(struct leat_cache *cache, uint64_t sample, const struct leat_sample *in);

struct leat_cache_stats {
	uint64_t kept, bytes, capacity; /* kept: samples stored by this process; bytes: by all */
};
void leat_cache_stats(const struct leat_cache *cache, struct leat_cache_stats *stats);

/* Smallest useful size for a source with this many samples. */
uint64_t leat_cache_min_size(uint64_t samples);

#endif
