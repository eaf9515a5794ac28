/* latency.h - how long a server recently took to answer, as a histogram that forgets
 *
 * Eight buckets for each doubling, from 16 us to about 70 s, so a percentile is at most 12.5 %
 * too high. After LEAT_LATENCY_WINDOW values all counts are halved: what was measured some thousand
 * requests ago no longer counts.
 *
 * Threads: any, concurrently. Values that are added during a halving may count twice or half; no
 * percentile depends on one value. */
#ifndef LEAT_STORE_LATENCY_H
#define LEAT_STORE_LATENCY_H

#include <stdatomic.h>
#include <stdint.h>

enum { LEAT_LATENCY_BUCKETS = 8 * 22, LEAT_LATENCY_WINDOW = 2048 };

/* All zero: nothing is known. */
struct leat_latency {
	atomic_uint count; /* sum of the buckets */
	atomic_uint bucket[LEAT_LATENCY_BUCKETS];
};

void leat_latency_add(struct leat_latency *latency, uint64_t ns);
/* The time that `percent` of the answers did not exceed. 0: fewer than `least` values are known. */
uint64_t leat_latency_percentile(const struct leat_latency *latency, unsigned percent, unsigned least);

#endif
