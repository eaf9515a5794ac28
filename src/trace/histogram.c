/* histogram.c - see histogram.h */
#include "trace/histogram.h"

enum { SHORTEST_LOG = 10, STEPS_LOG = 3, STEPS = 1 << STEPS_LOG }; /* 2^10 ns: 1 us */

/* Bucket i holds (end(i - 1), end(i)], so that its end is what Prometheus calls `le`. */
static unsigned
bucket_of(uint64_t ns)
{
	uint64_t before = ns ? ns - 1 : 0;
	unsigned log, bucket;

	if (before < (uint64_t)1 << SHORTEST_LOG)
		return 0;
	log = 63 - (unsigned)__builtin_clzll(before);
	bucket = (log - SHORTEST_LOG) * STEPS + (unsigned)(before >> (log - STEPS_LOG) & (STEPS - 1));
	return bucket < LEAT_HISTOGRAM_BUCKETS ? bucket : LEAT_HISTOGRAM_BUCKETS - 1;
}

uint64_t
leat_histogram_end(unsigned i)
{
	unsigned log = SHORTEST_LOG + i / STEPS;

	return (uint64_t)(STEPS + i % STEPS + 1) << (log - STEPS_LOG);
}

void
leat_histogram_add(struct leat_histogram *histogram, uint64_t ns)
{
	uint64_t max = atomic_load_explicit(&histogram->max_ns, memory_order_relaxed);

	atomic_fetch_add_explicit(&histogram->bucket[bucket_of(ns)], 1, memory_order_relaxed);
	atomic_fetch_add_explicit(&histogram->sum_ns, ns, memory_order_relaxed);
	while (ns > max && !atomic_compare_exchange_weak_explicit(&histogram->max_ns, &max, ns, memory_order_relaxed,
	                                                          memory_order_relaxed))
		;
}

void
leat_histogram_read(const struct leat_histogram *histogram, struct leat_distribution *distribution)
{
	distribution->count = 0;
	distribution->sum_ns = atomic_load_explicit(&histogram->sum_ns, memory_order_relaxed);
	distribution->max_ns = atomic_load_explicit(&histogram->max_ns, memory_order_relaxed);
	for (unsigned i = 0; i < LEAT_HISTOGRAM_BUCKETS; i++) {
		distribution->bucket[i] = atomic_load_explicit(&histogram->bucket[i], memory_order_relaxed);
		distribution->count += distribution->bucket[i];
	}
}

double
leat_distribution_quantile(const struct leat_distribution *distribution, double q)
{
	double wanted = q * (double)distribution->count, seen = 0, longest = (double)distribution->max_ns;

	for (unsigned i = 0; i < LEAT_HISTOGRAM_BUCKETS; i++) {
		double count = (double)distribution->bucket[i];
		double begin = i ? (double)leat_histogram_end(i - 1) : 0, end = (double)leat_histogram_end(i), at;

		if (count > 0 && seen + count >= wanted) {
			at = begin + (end - begin) * (wanted > seen ? (wanted - seen) / count : 0);
			return at < longest ? at : longest;
		}
		seen += count;
	}
	return distribution->count ? longest : 0;
}
