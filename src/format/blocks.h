/* blocks.h - parts of compressed files, inflated, that all workers share
 *
 * A block begins at a point of a file's index and ends with the last sample that begins
 * before the next point. A few are kept, the one used longest ago goes first. Who needs a
 * block that is not there inflates it; others who need the same wait for it, or inflate the
 * one behind it meanwhile, which is the next to be wanted when samples come in order.
 *
 * open, grow and close: one thread. get and put: any, at the same time. */
#ifndef LEAT_FORMAT_BLOCKS_H
#define LEAT_FORMAT_BLOCKS_H

#include <pthread.h>

#include "format/indexed.h"
#include "format/inflater.h"

struct leat_block {
	size_t file;
	uint64_t point;
	bool taken;     /* it belongs to file and point */
	bool loading;   /* and is being inflated */
	unsigned users; /* between get and put */
	uint64_t last;  /* when it was asked for */
	uint64_t begin; /* inflated offset of its bytes */
	size_t len;
	const char *fault; /* why there are no more; NULL: there are enough */
	uint64_t fault_at;
	unsigned char *bytes;
};

struct leat_blocks {
	struct leat_mem *mem;
	const struct leat_indexed *indexed; /* borrowed */
	uint64_t total;                     /* blocks of all files */
	size_t block_bytes;                 /* the longest */

	pthread_mutex_t lock;
	pthread_cond_t changed;
	/* Under the lock: */
	struct leat_block *block;
	size_t count;
	uint64_t clock;
	struct leat_inflater *inflater;
	unsigned *idle; /* inflaters that nobody uses */
	unsigned inflaters, idles;
};

/* `threads`: that will ask at the same time. Zeroes and fills it; frees what it took when it fails. */
enum leat_status leat_blocks_open(struct leat_blocks *blocks, const struct leat_indexed *indexed, unsigned threads,
                                  struct leat_mem *mem, struct leat_err *err);
void leat_blocks_close(struct leat_blocks *blocks); /* takes a zeroed one */
/* Adds as many blocks as fit into `room`, but no more than there are in all files. */
enum leat_status leat_blocks_grow(struct leat_blocks *blocks, size_t room, struct leat_err *err);

/* The block in which the sample at inflated offset `offset` of a compressed file begins; it stays until put. */
enum leat_status leat_blocks_get(struct leat_blocks *blocks, size_t file, uint64_t offset, struct leat_block **block,
                                 struct leat_err *err);
void leat_blocks_put(struct leat_blocks *blocks, struct leat_block *block);

#endif
