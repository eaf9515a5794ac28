/* figures.h - the figures of a feed's run (trace/figures.h). Any thread. */
#ifndef LEAT_FEED_FIGURES_H
#define LEAT_FEED_FIGURES_H

#include "trace/figures.h"

struct leat_feed;

/* What the stages did so far. */
void leat_feed_stages(const struct leat_feed *feed, const struct leat_totals *totals, struct leat_stage_list *list);
/* Everything. `stepless`: the consumer does nothing with the batches, so the sentence does not speak of a step. */
void leat_feed_figures(const struct leat_feed *feed, bool stepless, struct leat_figures *figures);
/* stats.c: struct leat_stats from the same totals. */
void leat_feed_stats(const struct leat_feed *feed, const struct leat_totals *totals, const char *limit,
                     struct leat_stats *stats);
/* CPU seconds of this process. */
double leat_process_seconds(void);

#endif
