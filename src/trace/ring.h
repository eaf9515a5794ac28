/* ring.h - spans on their way from the thread that records them to the recorder's thread
 *
 * One producer, one consumer, no locks. The producer never waits: if the ring is full, the span is dropped and
 * counted. Each time half a ring has been filled, it wakes the recorder's thread, which otherwise comes five times a
 * second; that is the only system call here.
 *
 * A ring may have several producers if a lock of theirs makes them take turns. */
#ifndef LEAT_TRACE_RING_H
#define LEAT_TRACE_RING_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "trace/lane.h"

#define LEAT_TAG_ONE(tag, name, doc) +1
enum { LEAT_TAG_COUNT = 0 LEAT_TAGS(LEAT_TAG_ONE) };
#undef LEAT_TAG_ONE

struct leat_span {
	uint64_t begin, end; /* ns */
	uint64_t item;       /* position of the sample, or number of the batch */
	uint32_t name;       /* leat_recorder_name; 0: the tag's */
	uint16_t tag;        /* enum leat_tag */
	uint16_t every;      /* it stands for so many: others were not recorded, because they are short; at least 1 */
};

/* Wakes the recorder's thread. An eventfd, because it needs no lock that a forked process could inherit locked. */
struct leat_alarm {
	int fd;
	atomic_bool set; /* rung, and not yet heard */
};

enum leat_status leat_alarm_open(struct leat_alarm *alarm, struct leat_err *err);
void leat_alarm_close(struct leat_alarm *alarm);
void leat_alarm_ring(struct leat_alarm *alarm);
/* Sleeps until it rings, at most `ns` nanoseconds. */
void leat_alarm_wait(struct leat_alarm *alarm, uint64_t ns);

struct leat_ring {
	struct leat_span *slot;
	uint64_t size; /* a power of 2 */
	struct leat_alarm *alarm;

	/* The producer's: */
	_Alignas(LEAT_APART) _Atomic uint64_t head; /* spans pushed */
	uint64_t tail_seen;
	_Atomic uint64_t dropped;

	/* The consumer's: */
	_Alignas(LEAT_APART) _Atomic uint64_t tail; /* spans taken */
};

/* The producer. False: dropped. */
static inline bool
leat_ring_push(struct leat_ring *ring, const struct leat_span *span)
{
	uint64_t head = atomic_load_explicit(&ring->head, memory_order_relaxed);

	if (head - ring->tail_seen >= ring->size) {
		ring->tail_seen = atomic_load_explicit(&ring->tail, memory_order_acquire);
		if (head - ring->tail_seen >= ring->size) {
			leat_count(&ring->dropped, 1);
			return false;
		}
	}
	ring->slot[head & (ring->size - 1)] = *span;
	atomic_store_explicit(&ring->head, ++head, memory_order_release);
	if ((head & (ring->size / 2 - 1)) == 0)
		leat_alarm_ring(ring->alarm);
	return true;
}

/* `size` spans, a power of 2, at least 2. False: no memory. */
bool leat_ring_open(struct leat_ring *ring, uint64_t size, struct leat_alarm *alarm, struct leat_mem *mem);
void leat_ring_close(struct leat_ring *ring, struct leat_mem *mem); /* accepts a zeroed ring */

/* The consumer: the spans that are there now, in at most two pieces; call again after leat_ring_taken for the second.
 * 0: none. */
static inline uint64_t
leat_ring_peek(const struct leat_ring *ring, const struct leat_span **first)
{
	uint64_t tail = atomic_load_explicit(&ring->tail, memory_order_relaxed);
	uint64_t count = atomic_load_explicit(&ring->head, memory_order_acquire) - tail;
	uint64_t at = tail & (ring->size - 1);

	*first = ring->slot + at;
	return count < ring->size - at ? count : ring->size - at;
}

static inline void
leat_ring_taken(struct leat_ring *ring, uint64_t count)
{
	uint64_t tail = atomic_load_explicit(&ring->tail, memory_order_relaxed);

	atomic_store_explicit(&ring->tail, tail + count, memory_order_release);
}

#endif
