/* ahead.h - read an object from start to end, many blocks in flight
 *
 * For scans of objects on servers, which would otherwise wait for one answer after another. Reading
 * begins with one block and doubles the number in flight as long as the reader moves forward, up to
 * LEAT_AHEAD_BLOCKS, and to what all readers of a feed or command may have together. Memory that is not
 * there, or is more than half of the limit, is done without.
 *
 * One thread. */
#ifndef LEAT_STORE_AHEAD_H
#define LEAT_STORE_AHEAD_H

#include "store/store.h"

enum {
	LEAT_AHEAD_BLOCK = 1 << 20,
	LEAT_AHEAD_BLOCKS = 32, /* of one reader */
	LEAT_AHEAD_ALL = 64,    /* of all readers together; each has one more */
};

struct leat_ahead {
	const struct leat_object *object;
	struct leat_mem *mem;
	struct leat_ahead_block {
		unsigned char *bytes;
		uint64_t at;
		size_t len;
		bool flying;
		enum leat_status status; /* once it is not */
		struct leat_err err;
		struct leat_waiter waiter;
	} * block[LEAT_AHEAD_BLOCKS];          /* a ring: `first` has the lowest offset */
	unsigned first, count, blocks, wanted; /* in use, allocated, to be in use */
	uint64_t next;                         /* where the next block begins */
};

/* Borrows the object. */
void leat_ahead_open(struct leat_ahead *ahead, const struct leat_object *object, struct leat_mem *mem);
void leat_ahead_close(struct leat_ahead *ahead); /* accepts a zeroed one */
/* Reads bytes that the object has. LEAT_AGAIN (no error text): there is no memory for a block. */
enum leat_status leat_ahead_read(struct leat_ahead *ahead, uint64_t offset, void *bytes, size_t len,
                                 struct leat_err *err);

#endif
