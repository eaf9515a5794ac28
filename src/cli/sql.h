/* sql.h - what the files of `leat sql` share
 *
 * One thread runs the query; a second one shows progress, and the watcher of interrupt.h may end the query. */
#ifndef LEAT_CLI_SQL_H
#define LEAT_CLI_SQL_H

#include <pthread.h>

#include "base/opt.h"
#include "cli/interrupt.h"
#include "table/duckdb.h"
#include "table/sql.h"

struct leat_sql_params {
	const char *output, *project, *duckdb;
	struct leat_strings table, key, check;
	const char *action;
	bool step, json, csv;
	int64_t rows, threads, memory;
};

struct leat_sql_job {
	const struct leat_sql_params *params;
	struct leat_mem *mem;
	struct leat_sql sql;
	struct leat_tables *tables;
	uint64_t rejected; /* rows of a step's result that fail checks */
	char *result;      /* of a step: the Parquet file */
	char *spill;       /* folder of temporary files, removed at the end */
	struct leat_interrupt interrupt;
	pthread_mutex_t lock; /* guards the members below */
	pthread_cond_t wake;
	bool is_open; /* `tables` may be interrupted */
	bool stopped; /* by ^C */
	bool ended;   /* the progress thread has to end */
	pthread_t progress;
	bool shows_progress;
};

/* sql_tables.c: makes what the query names known, from --table, and from leat.yaml if there is one. */
enum leat_status leat_sql_define_tables(struct leat_sql_job *job, struct leat_err *err);
/* The path of a --table option by its name; NULL: it has none. */
const char *leat_sql_table_path(const struct leat_sql_params *params, const char *name);

/* sql_print.c: runs the query, and prints its rows. */
enum leat_status leat_sql_print(struct leat_sql_job *job, struct leat_err *err);

/* sql_step.c: runs the query as a step of a build. */
enum leat_status leat_sql_run_step(struct leat_sql_job *job, struct leat_err *err);

/* sql_checks.c: judges the result of a step, writes the rows that fail to rejects.jsonl, and takes them out if the
 * checks say so. */
enum leat_status leat_sql_check_result(struct leat_sql_job *job, const struct leat_columns *columns,
                                       struct leat_err *err);

#endif
