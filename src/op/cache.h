/* cache.h - options of `cache`; the engine reads them */
#ifndef LEAT_OP_CACHE_H
#define LEAT_OP_CACHE_H

#include <stdint.h>

enum leat_cache_where { LEAT_CACHE_MEMORY, LEAT_CACHE_DISK };
enum leat_cache_trust { LEAT_CACHE_OWN, LEAT_CACHE_SHARED };

struct leat_cache_params {
	int where;       /* enum leat_cache_where */
	const char *dir; /* DISK */
	int64_t size;    /* 0: memory: what memory= leaves; disk: 10 GiB */
	int trust;       /* DISK: enum leat_cache_trust */
};

#endif
