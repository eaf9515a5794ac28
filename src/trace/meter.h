/* meter.h - how fast a run goes at the moment, and how long it will still take */
#ifndef LEAT_TRACE_METER_H
#define LEAT_TRACE_METER_H

#include <stddef.h>
#include <stdint.h>

enum { LEAT_METER_MARKS = 32 };

/* Marks of the last few seconds. All zero: none yet. */
struct leat_meter {
	struct leat_meter_mark {
		uint64_t ns;
		double samples, bytes, done; /* done: the share of the whole run, 0 to 1 */
	} mark[LEAT_METER_MARKS];
	size_t count; /* marks so far */
};

/* About five times a second. */
void leat_meter_add(struct leat_meter *meter, const struct leat_meter_mark *mark);
/* Samples and bytes per second over the last second, or since the first mark if that is shorter ago. */
void leat_meter_rate(const struct leat_meter *meter, double *samples, double *bytes);
/* Seconds left, at the pace of the last few seconds. Negative: unknown. */
double leat_meter_left(const struct leat_meter *meter);
/* "12 s", "2:31", "3:04:10". */
char *leat_meter_text(char *buf, size_t cap, double seconds);

#endif
