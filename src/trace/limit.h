/* limit.h - what limits a feed's throughput, judged by its totals */
#ifndef LEAT_TRACE_LIMIT_H
#define LEAT_TRACE_LIMIT_H

#include "trace/lane.h"

/* What limits: LEAT_LIMIT_STEP the consumer, _DISK storage, _READ reading and checking, _PREFETCH that no batch
 * is made ahead, 0 and up the stage with that number. */
enum { LEAT_LIMIT_STEP = -1, LEAT_LIMIT_DISK = -2, LEAT_LIMIT_READ = -3, LEAT_LIMIT_PREFETCH = -4 };

/* `ahead`: batches are made before the consumer asks for them. */
int leat_limit(const struct leat_totals *totals, int stages, bool ahead);

#endif
