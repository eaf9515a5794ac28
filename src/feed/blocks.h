/* blocks.h - blocks that are shuffled: read whole, before samples are taken from them
 *
 * shuffle(block=B, window=G) takes all samples of G blocks, in any order, before those of the next G. A
 * small sample that is read alone costs a system call, several times as much as its bytes. So a *group* of
 * G blocks is read in long reads, and its samples are unpacked from there. What is in a group is
 * arithmetic (leat_plan_group_at), so nothing is looked for: planning is in one group at a time, and the
 * *next* one is read meanwhile. Workers read what the page cache has, a little for each run, so that
 * the next group is there in time; all that has to wait is submitted at once.
 *
 * A block is one *piece*, or several if it is in several files. Each group has the same memory. What does not
 * fit there, because its samples are longer than most, and rows that repeat others (tail=wrap) are read
 * by their runs, as all samples are where blocks are not used at all (blocks_fit in budget.c).
 *
 * A group's memory is free again when planning has left it and its runs are done. A run has samples of one
 * group only.
 *
 * Threads: see fetch.h. Groups are under the feed's lock, except their bytes. */
#ifndef LEAT_FEED_BLOCKS_H
#define LEAT_FEED_BLOCKS_H

#include "feed/feed.h"

enum {
	LEAT_BLOCKS_READ = 256 * 1024, /* bytes per read */
	LEAT_BLOCKS_LEAST = 128,       /* samples of a group: with fewer, runs would be short */
	LEAT_BLOCKS_LONGEST = 1 << 16, /* mean bytes of a sample: longer ones are worth a read each */
	LEAT_BLOCKS_PIECES = 8192,     /* most pieces of a group */
	LEAT_BLOCKS_GROUPS = 3,        /* in memory at a time: being used up, in use, being read */
	LEAT_BLOCKS_WASTE = 8 * 1024,  /* bytes that take as long as another read from the page cache */
};

/* Samples of a block that are in one file. */
struct leat_block_piece {
	uint64_t first, end;  /* samples */
	uint64_t begin, stop; /* their bytes in the file */
	size_t at;            /* in the group's memory */
	uint32_t file;
	bool lost; /* could not be read: each sample is read again, for its own error */
};

struct leat_block_read {
	struct leat_request request;
	struct leat_block_group *group;
	struct leat_block_piece *piece;
};

struct leat_block_group {
	enum leat_block_state {
		LEAT_BLOCKS_NONE,
		LEAT_BLOCKS_READING,
		LEAT_BLOCKS_THERE,
	} state;
	uint64_t epoch, position, end;  /* positions of the plan, from the first that was asked for */
	bool open;                      /* samples that are planned later may be in it */
	bool lost;                      /* some piece is */
	unsigned users;                 /* runs */
	unsigned char *bytes;           /* budget.block_bytes */
	struct leat_block_piece *piece; /* budget.block_pieces; by sample */
	size_t pieces;
	size_t next; /* piece to read next, from this byte of the file on */
	uint64_t next_at;
	struct leat_block_read *read; /* budget.block_reads */
	int reads, unfinished;        /* begun; not complete */
	struct leat_waits waiting;
};

enum leat_status leat_blocks_open(struct leat_feed *feed, struct leat_err *err);
void leat_blocks_close(struct leat_feed *feed);
void leat_blocks_reset(struct leat_feed *feed);

/* ---- under the lock ---- */

/* Finds the next item of a run in its group. */
enum leat_shared leat_blocks_plan(struct leat_feed *feed, struct leat_run *run, struct leat_run_item *item,
                                  int64_t row);
void leat_blocks_unpin(struct leat_feed *feed, struct leat_run *run);
void leat_blocks_cancel(struct leat_feed *feed);

/* Lists the pieces of the group that a position is in: all but what does not fit. Reads nothing. */
void leat_blocks_list(struct leat_feed *feed, struct leat_block_group *group, uint64_t epoch, uint64_t position);
/* The piece that has these bytes of a sample; NULL: none. */
const struct leat_block_piece *leat_blocks_find(const struct leat_block_group *group, uint64_t sample,
                                                const struct leat_extent *extent);

/* ---- without the lock ---- */

/* Reads the run's group, as far as nobody does yet, and some of the next one. True: reads are in flight. */
bool leat_blocks_start(struct leat_feed *feed, const struct leat_run *run);
/* Are the item's bytes in the run's group? If not, the run reads them by itself. */
bool leat_blocks_has(const struct leat_feed *feed, const struct leat_run *run, const struct leat_run_item *item);
/* A worker, before it takes the items of a run whose group has lost pieces. */
void leat_blocks_mark_lost(const struct leat_feed *feed, struct leat_run *run);

#endif
