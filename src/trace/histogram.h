/* histogram.h - how long something took, in fixed memory and for ever
 *
 * Eight buckets for each doubling, from 1 us to about 70 minutes: a percentile is off by at most an eighth, whatever
 * was measured. Nothing is forgotten, so two histograms can be added or subtracted bucket by bucket.
 *
 * Threads: any may add and read, concurrently. A reader sees each value in full or not yet. */
#ifndef LEAT_TRACE_HISTOGRAM_H
#define LEAT_TRACE_HISTOGRAM_H

#include <stdatomic.h>
#include <stdint.h>

enum { LEAT_HISTOGRAM_BUCKETS = 8 * 32 };

/* All zero: empty. */
struct leat_histogram {
	_Atomic uint64_t sum_ns, max_ns;
	_Atomic uint64_t bucket[LEAT_HISTOGRAM_BUCKETS];
};

/* A histogram at one moment. */
struct leat_distribution {
	uint64_t count, sum_ns, max_ns;
	uint64_t bucket[LEAT_HISTOGRAM_BUCKETS];
};

void leat_histogram_add(struct leat_histogram *histogram, uint64_t ns);
void leat_histogram_read(const struct leat_histogram *histogram, struct leat_distribution *distribution);

/* Values of bucket `i` are at most this, in ns; the last one holds all longer ones, too. */
uint64_t leat_histogram_end(unsigned i);

/* The time that a share `q` (0 to 1) of the values did not exceed, in ns: found within its bucket as if values were
 * spread evenly there. 0: there are none. */
double leat_distribution_quantile(const struct leat_distribution *distribution, double q);

#endif
