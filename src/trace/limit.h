/* limit.h - find a feed's bottleneck from its totals */
#ifndef LEAT_TRACE_LIMIT_H
#define LEAT_TRACE_LIMIT_H

#include "trace/lane.h"

/* The bottleneck. 0 and up: the stage with that number. */
enum {
	LEAT_LIMIT_STEP = -1,     /* the consumer */
	LEAT_LIMIT_DISK = -2,     /* storage */
	LEAT_LIMIT_READ = -3,     /* reading from the page cache and verifying */
	LEAT_LIMIT_PREFETCH = -4, /* no batches are prefetched */
	LEAT_LIMIT_NETWORK = -5,  /* servers, or the way to them */
};

/* `ahead`: batches are prefetched. `remote`: samples are read from servers. */
int leat_limit(const struct leat_totals *totals, int stages, bool ahead, bool remote);

#endif
