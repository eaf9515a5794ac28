/* sql.h - what the files of `leat sql` share
 *
 * One thread runs the query; a second one shows progress, and the watcher of interrupt.h may end the query. */
#ifndef LEAT_CLI_SQL_H
#define LEAT_CLI_SQL_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/opt.h"
#include "cli/interrupt.h"
#include "step/project.h"
#include "table/duckdb.h"
#include "table/partition.h"
#include "table/sql.h"

struct leat_sql_params {
	const char *output, *project, *duckdb;
	struct leat_strings table, key, check, by;
	const char *action, *split;
	bool step, json, csv;
	int64_t rows, threads, memory, partitions;
};

struct leat_sql_job {
	const struct leat_sql_params *params;
	struct leat_mem *mem;
	struct leat_sql sql;
	struct leat_tables *tables;
	uint64_t rejected;       /* rows of a step's result that fail checks */
	char *result;            /* of a step: the Parquet file */
	char *spill;             /* folder of temporary files, removed at the end */
	struct leat_cas *cas;    /* open while copies of remote sources in it are read; NULL: none is */
	size_t links;            /* to such copies, in `spill` */
	atomic_bool stops_fetch; /* ^C */
	struct leat_interrupt interrupt;
	pthread_mutex_t lock; /* guards the members below */
	pthread_cond_t wake;
	bool is_open; /* `tables` may be interrupted */
	bool stopped; /* by ^C */
	bool ended;   /* the progress thread has to end */
	pthread_t progress;
	bool shows_progress;
	_Atomic(const char *) phase; /* of a step: what it does now */
};

/* sql_tables.c: makes what the query names known, from --table, and from leat.yaml if there is one. */
enum leat_status leat_sql_define_tables(struct leat_sql_job *job, struct leat_err *err);
/* The path of a --table option by its name; NULL: it has none. */
const char *leat_sql_table_path(const struct leat_sql_params *params, const char *name);

/* sql_remote.c: fetches the remote objects of a list that are not in the project's store yet. `path` gets links to
 * them, which end as their names do; they and the array are freed by the caller. */
enum leat_status leat_sql_stage(struct leat_sql_job *job, const struct leat_project *project, struct leat_paths *path,
                                struct leat_err *err);

/* sql_print.c: runs the query, and prints its rows. */
enum leat_status leat_sql_print(struct leat_sql_job *job, struct leat_err *err);

/* sql_step.c: runs the query as a step of a build. */
enum leat_status leat_sql_run_step(struct leat_sql_job *job, struct leat_err *err);

/* sql_split.c: writes the result as one Parquet file for each partition. Settings come before leat_tables_confine. */
enum leat_status leat_sql_begin_split(struct leat_sql_job *job, struct leat_err *err);
enum leat_status leat_sql_split_result(struct leat_sql_job *job, struct leat_err *err);
/* The columns of --by can be split by, and values that are equal in a join have the same hash. */
enum leat_status leat_sql_check_by(struct leat_sql_job *job, struct leat_err *err);

/* sql_checks.c: judges the result of a step, writes the rows that fail to rejects.jsonl, and takes them out if the
 * checks say so. */
enum leat_status leat_sql_check_result(struct leat_sql_job *job, const struct leat_columns *columns,
                                       struct leat_err *err);
/* Of a key that is NULL or not unique: replaces the result by a folder with rejects.jsonl, which lists the rows of
 * `rows`, a SELECT of all columns and `leat_row`. */
enum leat_status leat_sql_reject_rows(struct leat_sql_job *job, const struct leat_columns *columns,
                                      const struct leat_str *rows, const char *reason, struct leat_err *err);

#endif
