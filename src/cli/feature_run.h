/* feature_run.h - what `leat features` and `leat apply` share: a database over one table, and writing Parquet */
#ifndef LEAT_CLI_FEATURE_RUN_H
#define LEAT_CLI_FEATURE_RUN_H

#include <pthread.h>

#include "base/str.h"
#include "cli/interrupt.h"
#include "table/features.h"

struct leat_feature_run {
	struct leat_mem *mem;
	struct leat_tables *tables;
	struct leat_str table; /* SQL of the input, to put after FROM */
	char *spill;           /* folder for temporary files */
	struct leat_interrupt interrupt;
	bool begun;           /* the lock is there, and signals are watched */
	pthread_mutex_t lock; /* protects the members below */
	bool is_open, stopped;
};

/* Opens a database for `path`. Temporary files go to a folder `spill`, which is made. ^C stops what runs. */
enum leat_status leat_feature_run_open(struct leat_feature_run *run, const char *path, const char *spill,
                                       int64_t threads, int64_t memory, struct leat_mem *mem, struct leat_err *err);
void leat_feature_run_close(struct leat_feature_run *run); /* accepts a zeroed one */

/* Writes a SELECT as one Parquet file, rows in order. */
enum leat_status leat_feature_run_write(struct leat_feature_run *run, const char *select, const char *path,
                                        struct leat_err *err);

/* "FOLDER/.NAME.tmp", hidden, for "FOLDER/NAME". NULL: out of memory. */
char *leat_temporary_name(const char *path, struct leat_mem *mem);

#endif
