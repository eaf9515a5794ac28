/* latency.c - see latency.h */
#include "store/latency.h"

enum { SHORTEST_LOG = 14, STEPS_LOG = 3, STEPS = 1 << STEPS_LOG }; /* 2^14 ns: 16 us */

static unsigned
bucket_of(uint64_t ns)
{
	unsigned log, bucket;

	if (ns < (uint64_t)1 << SHORTEST_LOG)
		return 0;
	log = 63 - (unsigned)__builtin_clzll(ns);
	bucket = (log - SHORTEST_LOG) * STEPS + (unsigned)(ns >> (log - STEPS_LOG) & (STEPS - 1));
	return bucket < LEAT_LATENCY_BUCKETS ? bucket : LEAT_LATENCY_BUCKETS - 1;
}

static uint64_t
end_of(unsigned bucket)
{
	unsigned log = SHORTEST_LOG + bucket / STEPS;

	return (uint64_t)(STEPS + bucket % STEPS + 1) << (log - STEPS_LOG);
}

static void
halve(struct leat_latency *latency)
{
	unsigned left = 0;

	for (unsigned i = 0; i < LEAT_LATENCY_BUCKETS; i++) {
		unsigned count = atomic_load_explicit(&latency->bucket[i], memory_order_relaxed);

		if (count)
			atomic_fetch_sub_explicit(&latency->bucket[i], count - count / 2, memory_order_relaxed);
		left += count / 2;
	}
	atomic_store_explicit(&latency->count, left, memory_order_relaxed);
}

void
leat_latency_add(struct leat_latency *latency, uint64_t ns)
{
	atomic_fetch_add_explicit(&latency->bucket[bucket_of(ns)], 1, memory_order_relaxed);
	/* Only the thread that reaches the limit halves. */
	if (atomic_fetch_add_explicit(&latency->count, 1, memory_order_relaxed) + 1 == LEAT_LATENCY_WINDOW)
		halve(latency);
}

uint64_t
leat_latency_percentile(const struct leat_latency *latency, unsigned percent, unsigned least)
{
	uint64_t total = 0, seen = 0;
	unsigned last = 0;

	if (atomic_load_explicit(&latency->count, memory_order_relaxed) < least)
		return 0;
	for (unsigned i = 0; i < LEAT_LATENCY_BUCKETS; i++)
		total += atomic_load_explicit(&latency->bucket[i], memory_order_relaxed);
	if (!total)
		return 0;
	for (unsigned i = 0; i < LEAT_LATENCY_BUCKETS && seen * 100 < total * percent; i++) {
		unsigned count = atomic_load_explicit(&latency->bucket[i], memory_order_relaxed);

		seen += count;
		last = count ? i : last;
	}
	return end_of(last);
}
