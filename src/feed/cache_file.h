/* cache_file.h - cache file format, and space management in a folder of several caches; private to cache_*.c */
#ifndef LEAT_FEED_CACHE_FILE_H
#define LEAT_FEED_CACHE_FILE_H

#include <sys/stat.h>

#include "feed/cache_store.h"

#define LEAT_CACHE_SUFFIX ".leatcache"
#define LEAT_CACHE_NEW ".leatcache-new" /* under construction */
#define LEAT_CACHE_MAGIC "LEATCACH"

enum { LEAT_CACHE_VERSION = 1, LEAT_CACHE_PAGE = 4096, LEAT_CACHE_NAME = 256 };

/* Followed, each at a page boundary, by a table with an 8-byte place per sample and by the data area. */
struct leat_cache_header {
	char magic[8];
	uint32_t version, reserved;
	uint64_t samples, capacity; /* capacity: bytes of the data area */
	char key[LEAT_SHA256_HEX + 7];
	_Atomic uint64_t used; /* bytes of the data area reserved so far */
};

/* File size a cache asks for: `wanted`, or at least `enough`. */
struct leat_cache_wish {
	uint64_t wanted, enough;
};

/* The file's name in its folder. */
void leat_cache_name(const struct leat_cache_options *options, char name[LEAT_CACHE_NAME]);
/* May we use a file? */
bool leat_cache_trusts(const struct leat_cache_options *options, const struct stat *st);

/* Under the folder's lock: returns the file size a cache may use. If that is less than `wanted`, trims unused files; if
 * still less than `enough`, deletes unused files, least recently used first. Files of others count and are touched only
 * if they are trusted. */
uint64_t leat_cache_make_room(int dir, const struct leat_cache_options *options, const struct leat_cache_wish *wish);

#endif
