/* meter.c - see meter.h */
#include "trace/meter.h"

#include <math.h>
#include <stdio.h>

void
leat_meter_add(struct leat_meter *meter, const struct leat_meter_mark *mark)
{
	meter->mark[meter->count++ % LEAT_METER_MARKS] = *mark;
}

static const struct leat_meter_mark *
at(const struct leat_meter *meter, size_t i)
{
	return &meter->mark[i % LEAT_METER_MARKS];
}

/* The latest mark that is at least `ns` before the last one, or the oldest that is kept. */
static const struct leat_meter_mark *
mark_before(const struct leat_meter *meter, uint64_t ns)
{
	size_t oldest = meter->count > LEAT_METER_MARKS ? meter->count - LEAT_METER_MARKS : 0, i = meter->count - 1;

	while (i > oldest && at(meter, meter->count - 1)->ns - at(meter, i)->ns < ns)
		i--;
	return at(meter, i);
}

void
leat_meter_rate(const struct leat_meter *meter, double *samples, double *bytes)
{
	const struct leat_meter_mark *last, *first;
	double seconds;

	*samples = *bytes = 0;
	if (meter->count < 2)
		return;
	last = at(meter, meter->count - 1);
	first = mark_before(meter, 1000000000);
	seconds = (double)(last->ns - first->ns) / 1e9;
	if (seconds <= 0)
		return;
	*samples = (last->samples - first->samples) / seconds;
	*bytes = (last->bytes - first->bytes) / seconds;
}

double
leat_meter_left(const struct leat_meter *meter)
{
	const struct leat_meter_mark *last, *first;

	if (meter->count < 2)
		return -1;
	last = at(meter, meter->count - 1);
	first = mark_before(meter, UINT64_MAX);
	if (last->done <= first->done)
		return -1;
	return (double)(last->ns - first->ns) / 1e9 * (1 - last->done) / (last->done - first->done);
}

char *
leat_meter_text(char *buf, size_t cap, double seconds)
{
	unsigned long long all = seconds < 1e12 ? (unsigned long long)ceil(seconds) : 0;

	if (all < 60)
		snprintf(buf, cap, "%llu s", all);
	else if (all < 3600)
		snprintf(buf, cap, "%llu:%02llu", all / 60, all % 60);
	else
		snprintf(buf, cap, "%llu:%02llu:%02llu", all / 3600, all / 60 % 60, all % 60);
	return buf;
}
