/* timeline.h - a run over time in a few MB, however long it is
 *
 * A sink of the recorder. It holds what the timeline of a report shows:
 *
 *  - Per lane and tag, a row of bins: busy time, number of spans, longest span. When the run outgrows the bins, they
 * are merged in pairs and cover twice the time. Merging and dividing lose nothing: the bins of a row always add up to
 *    its busy time and its count.
 *  - Exact spans where zooming in is worthwhile: the first ones, those around the slowest batches, and the latest.
 *    `known` in the JSON lists the times during which no span is missing.
 *  - Per track, bins with minimum, mean and maximum.
 *
 * All memory is bounded. What does not fit, such as the thousandth lane, is counted as left out; nothing fails.
 *
 * Not thread-safe: the recorder's thread calls it. Others may while the recorder is paused. */
#ifndef LEAT_TRACE_TIMELINE_H
#define LEAT_TRACE_TIMELINE_H

#include "base/str.h"
#include "trace/recorder.h"

struct leat_timeline;

/* `memory` bounds the rows of bins; 0: 4 MiB. Spans and tracks take up to 3 MiB more. Time 0 is `begin_ns`. */
enum leat_status leat_timeline_open(struct leat_timeline **timeline, struct leat_mem *mem, size_t memory,
                                    uint64_t begin_ns, struct leat_err *err);
void leat_timeline_close(struct leat_timeline *timeline); /* accepts NULL */
/* Opens one as a sink of a recorder that is being opened. The recorder closes it. */
enum leat_status leat_timeline_attach(struct leat_recorder *recorder, struct leat_err *err);
struct leat_timeline *leat_timeline_of(const struct leat_recorder *recorder); /* NULL: it has none */

/* `overlaps`: spans of the lane may overlap each other. */
void leat_timeline_lane(struct leat_timeline *timeline, int lane, const char *name, bool overlaps);
/* A span that stands for several is as busy as all of them: its time in bins is that many times as long. `name` may be
 * NULL. */
void leat_timeline_span(struct leat_timeline *timeline, int lane, const struct leat_span *span, const char *name);
void leat_timeline_count(struct leat_timeline *timeline, const char *track, uint64_t at_ns, double value);
/* Says that all spans that ended before `at_ns` have been given. Without it, nothing but bins is known. */
void leat_timeline_tick(struct leat_timeline *timeline, uint64_t at_ns);

/* Appends it as a JSON object; src/xray/page/page.js says what is in it. */
void leat_timeline_add_json(const struct leat_timeline *timeline, struct leat_str *out);

/* For tests: the bins of a row add up to its totals. Returns the sums over the bins, and the totals. */
struct leat_timeline_sums {
	uint64_t busy_ns, count, bin_busy_ns, bin_count, longest_ns, bin_ns;
	size_t bins;
};
void leat_timeline_sum(const struct leat_timeline *timeline, int lane, enum leat_tag tag,
                       struct leat_timeline_sums *sums);

#endif
