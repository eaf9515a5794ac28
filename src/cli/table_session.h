/* table_session.h - what commands on tables share: a database that ^C interrupts, and tables by file or step
 *
 * The database may spill to a new folder below $TMPDIR, which is removed at the end. */
#ifndef LEAT_CLI_TABLE_SESSION_H
#define LEAT_CLI_TABLE_SESSION_H

#include "cli/interrupt.h"
#include "table/duckdb.h"

struct leat_mem;

/* Options of these commands, for members `int64_t threads, memory`. */
#define LEAT_TABLE_OPTIONS(T)                                                                                          \
	LEAT_INT(T, threads, "0", 0, 1024, "worker threads; 0: one per available CPU"),                                \
		LEAT_SIZE(T, memory, "0", 0, 1e18, "memory limit; 0: a quarter of the RAM")

struct leat_table_session {
	struct leat_tables *tables;
	struct leat_interrupt interrupt;
	pthread_mutex_t lock; /* of `tables` and `stopped` while it is opened */
	bool stopped;
	char spill[256];
};

/* Close it after success only. */
enum leat_status leat_table_session_open(struct leat_table_session *session, int64_t threads, int64_t memory,
                                         struct leat_err *err);
/* Returns `status`, or after ^C LEAT_CANCELLED. */
enum leat_status leat_table_session_close(struct leat_table_session *session, enum leat_status status,
                                          struct leat_err *err);

/* Appends what FROM needs to read `name`: a Parquet, CSV or JSON file, a folder or pattern of them, or else the last
 * result of a step of `project`, which is also given as STEP:SLICE or ID. */
enum leat_status leat_table_add(struct leat_str *sql, const char *name, const char *project, struct leat_err *err);

/* In a step of a build, writes profile.json: a sketch (table/sketch.h) of this Parquet file, compared with the one of
 * the last run, which $LEAT_STEP has. Elsewhere, does nothing. The result is the same with and without it, so a failure
 * is only printed. */
void leat_record_profile(struct leat_tables *tables, const char *path, struct leat_mem *mem);

#endif
