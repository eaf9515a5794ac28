/* ready.h - runs whose bytes are there, oldest in the plan first
 *
 * Reads complete in any order. If runs were processed in that order, batches would be finished several at a time, and a
 * late read would come after all that was read meanwhile. A binary heap by the order of planning; its slots are in the
 * runs, so it needs no memory besides theirs. All under the feed's lock. */
#ifndef LEAT_FEED_READY_H
#define LEAT_FEED_READY_H

#include "feed/feed.h"

void leat_ready_clear(struct leat_feed *feed);
void leat_ready_push(struct leat_feed *feed, struct leat_run *run);
struct leat_run *leat_ready_pop(struct leat_feed *feed); /* NULL: none */

#endif
