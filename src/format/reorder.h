/* reorder.h - put records into another order, within a memory limit
 *
 * Records come in any order, each with its position in [0, count). Afterwards they are read back by position, in
 * *groups*: equal, consecutive ranges of positions, such as the shards of a data set. A group consists of *buckets*,
 * ranges of positions small enough for one of them to be loaded whole. Adding a record appends it to its bucket.
 * Buckets are lists of blocks; once `memory` is used up, full blocks go to a file, in the order in which they fill.
 *
 * So each byte is written and read once, in large pieces, however large the data is. The result depends on positions
 * and records only. The file has no name: it disappears with the process, also if that is killed.
 *
 * Threads: one thread adds. Then any thread reads, each another group. */
#ifndef LEAT_FORMAT_REORDER_H
#define LEAT_FORMAT_REORDER_H

#include "base/err.h"
#include "base/mem.h"

struct leat_reorder;

struct leat_reorder_options {
	uint64_t count;     /* positions; each gets one record */
	size_t groups;      /* at most `count` */
	uint64_t bytes;     /* expected, of all records: only for choosing the number of buckets */
	size_t memory;      /* for records, while they are added */
	size_t read_memory; /* for buckets that are loaded, of all threads together */
	unsigned threads;   /* that will read */
	const char *folder; /* for the file */
	struct leat_mem *mem;
};

/* The first position of group `i` of `groups`; of i == groups, `count`. */
uint64_t leat_group_begin(uint64_t count, size_t groups, size_t i);

/* Free with leat_reorder_close, also after failures. */
enum leat_status leat_reorder_open(struct leat_reorder **reorder, const struct leat_reorder_options *options,
                                   struct leat_err *err);
void leat_reorder_close(struct leat_reorder *reorder); /* accepts NULL */

enum leat_status leat_reorder_add(struct leat_reorder *reorder, uint64_t position, const void *record, size_t len,
                                  struct leat_err *err);

/* Visits the records of a group in order. A position without a record is LEAT_INTERNAL. */
typedef enum leat_status leat_record_visit(void *arg, const void *record, size_t len, struct leat_err *err);
enum leat_status leat_reorder_read(struct leat_reorder *reorder, size_t group, leat_record_visit *visit, void *arg,
                                   struct leat_err *err);

/* The same, one by one. End also after failures. LEAT_END: there are no more. A record is valid until the next call. */
struct leat_reorder_cursor;
enum leat_status leat_reorder_begin(struct leat_reorder *reorder, size_t group, struct leat_reorder_cursor **cursor,
                                    struct leat_err *err);
enum leat_status leat_reorder_next(struct leat_reorder_cursor *cursor, const void **record, size_t *len,
                                   struct leat_err *err);
void leat_reorder_end(struct leat_reorder_cursor *cursor); /* accepts NULL */

/* A file in `folder` without a name, which disappears with the process. -1: see errno. */
int leat_open_unlinked(const char *folder);

/* Bytes in the file. */
uint64_t leat_reorder_spilled(const struct leat_reorder *reorder);

#endif
