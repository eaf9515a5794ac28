/* cache_file.h - the form of a cache's file, and room for one in a folder that several share; private to cache_*.c */
#ifndef LEAT_FEED_CACHE_FILE_H
#define LEAT_FEED_CACHE_FILE_H

#include "feed/cache_store.h"

#define LEAT_CACHE_SUFFIX ".leatcache"
#define LEAT_CACHE_NEW ".leatcache-new" /* while it is prepared */
#define LEAT_CACHE_MAGIC "LEATCACH"

enum { LEAT_CACHE_VERSION = 1, LEAT_CACHE_PAGE = 4096 };

/* Behind it, at the next page: a table with a place of 8 bytes for each sample; at the next page: the room. */
struct leat_cache_header {
	char magic[8];
	uint32_t version, reserved;
	uint64_t samples, capacity; /* capacity: of the room */
	char key[LEAT_SHA256_HEX + 7];
	_Atomic uint64_t used; /* of the room */
};

/* What a cache would like to have of a folder, in bytes of its file: all of `wanted`, and at least `enough`. */
struct leat_cache_wish {
	uint64_t wanted, enough;
};

/* Under the folder's lock: what a cache may take. Where that is less than it wants, files that nobody uses are cut to
 * what they hold; where it is not enough, they are deleted, those that were used last at last. */
uint64_t leat_cache_make_room(int dir, const struct leat_cache_options *options, const struct leat_cache_wish *wish);

#endif
