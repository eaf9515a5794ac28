/* cache.h - finished samples, kept in memory or in a file that processes share
 *
 * A cache keeps samples as they are at one point of the chain, by their number in the
 * source. It is as large as it was opened and does not grow: what comes when it is full is
 * not kept, and what was kept stays, so that it cannot thrash. A sample is the same
 * whether it comes from here or is made again, so nothing but speed depends on it.
 *
 * In a file: a header, a table with the place of each sample, and room for samples.
 * Writers of all processes take room with one atomic addition, write their sample and
 * then publish its place with one atomic store. A writer that dies in between loses
 * its room and nothing else. The checksum of a sample that another process wrote is
 * compared when it is first used, which finds what a machine that crashed did not write.
 * A file that nobody uses may be cut to what it holds, or deleted, when another needs room.
 *
 * Threads: open and close by one; has, get and put by all workers at once. */
#ifndef LEAT_FEED_CACHE_H
#define LEAT_FEED_CACHE_H

#include "base/hash.h"
#include "base/log.h"
#include "base/mem.h"
#include "format/sample.h"

struct leat_cache_options {
	const char *dir;                  /* NULL: in memory; borrowed */
	uint64_t size;                    /* bytes in all; of a folder: of all cache files in it */
	uint64_t samples;                 /* of the source */
	const char *key;                  /* of what makes the samples: a file is used only by those with the same */
	const struct leat_schema *schema; /* of what is kept; borrowed */
};

struct leat_cache;

/* A folder that is full of caches in use, or cannot be written, is not an error: nothing is kept then. */
enum leat_status leat_cache_open(struct leat_cache **cache, const struct leat_cache_options *options,
                                 struct leat_mem *mem, const struct leat_log *log, struct leat_err *err);
void leat_cache_close(struct leat_cache *cache); /* takes NULL */

/* Before `has`, by some samples: its answer is then not waited for. */
void leat_cache_prefetch_slot(const struct leat_cache *cache, uint64_t sample);
bool leat_cache_has(const struct leat_cache *cache, uint64_t sample);
/* Fills `out` with fields that lie in the cache: to be read, never written, until it is closed.
 * False: it is not there (any more). */
bool leat_cache_get(struct leat_cache *cache, uint64_t sample, struct leat_sample *out);
/* The same at once or not at all: false also where a checksum would have to be compared first. */
bool leat_cache_peek(const struct leat_cache *cache, uint64_t sample, struct leat_sample *out);
/* Before `get`, by a sample or two: what it gives is then in the CPU's cache, its beginning at least. */
void leat_cache_prefetch_sample(const struct leat_cache *cache, uint64_t sample);
/* Keeps a copy, if there is room. Tells the log once when there is none. */
void leat_cache_put(struct leat_cache *cache, uint64_t sample, const struct leat_sample *in);

struct leat_cache_stats {
	uint64_t kept, bytes, capacity; /* samples put in by this process; bytes of all */
};
void leat_cache_stats(const struct leat_cache *cache, struct leat_cache_stats *stats);

/* The least size that can keep anything for so many samples. */
uint64_t leat_cache_min_size(uint64_t samples);

#endif
