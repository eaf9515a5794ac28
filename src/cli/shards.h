/* shards.h - what the files of `leat shards` share
 *
 * shards_table.c opens the table, shards_rows.c makes records of its rows, shards_write.c brings them into order and
 * writes them. */
#ifndef LEAT_CLI_SHARDS_H
#define LEAT_CLI_SHARDS_H

#include <pthread.h>
#include <stdatomic.h>

#include "cli/command.h"
#include "cli/outputs.h"
#include "cli/print.h"
#include "format/example_rows.h"
#include "format/index.h"
#include "table/duckdb.h"

struct leat_shards {
	const char *output;
	int format;
	int64_t count, seed, memory, threads; /* seed -1: keep the order; memory, threads 0: see the options */
	bool overwrite, plain, quiet;
};

/* ---- the table (shards_table.c) ---- */

struct leat_shard_column {
	const char *name; /* owned by `feature` */
	const char *cast; /* SQL type that it is converted to first; NULL: none */
	bool is_list;
	bool is_double; /* its values lose digits */
	struct leat_row_feature feature;
	uint64_t nulls; /* rows without a value so far */
	void *numbers;  /* values of a chunk as int64_t or float, where DuckDB has others */
	size_t numbers_cap;
	const void *values; /* of the chunk: int64_t or float */
};

struct leat_shard_table {
	struct leat_mem *mem;
	struct leat_stores stores;
	struct leat_files *files;
	struct leat_str from; /* read_parquet([...]) */
	struct leat_shard_column *column;
	size_t columns;
	uint64_t rows;
};

/* Finds the files that the operands name, which are files, folders or patterns. Close it also after a failure. */
enum leat_status leat_shard_table_find(struct leat_shard_table *table, const char *const *operand, size_t operands,
                                       const struct leat_storage *storage, struct leat_mem *mem, struct leat_err *err);
/* Counts the rows and chooses a feature for each column. */
enum leat_status leat_shard_table_read(struct leat_shard_table *table, struct leat_tables *tables,
                                       struct leat_err *err);
/* The query for all rows. */
void leat_shard_table_query(const struct leat_shard_table *table, struct leat_str *sql);
/* Fails if a file has changed since it was found. */
enum leat_status leat_shard_table_check(const struct leat_shard_table *table, struct leat_err *err);
void leat_shard_table_close(struct leat_shard_table *table); /* accepts a zeroed one */

/* ---- rows (shards_rows.c) ---- */

/* The records of a chunk. One thread. */
struct leat_shard_rows {
	struct leat_mem *mem;
	unsigned char *bytes; /* of all records, with gaps */
	size_t cap;
	size_t *offset, *len; /* of each record */
	size_t rows, rows_cap, len_cap;
	size_t total;      /* bytes of all records */
	const void **text; /* elements of a list */
	size_t *text_len;
	size_t text_cap, text_len_cap;
};

/* `first` is the row of the table that the chunk begins with, for messages. */
enum leat_status leat_shard_rows_make(struct leat_shard_rows *rows, struct leat_shard_table *table,
                                      const struct leat_chunk *chunk, uint64_t first, struct leat_err *err);
void leat_shard_rows_free(struct leat_shard_rows *rows); /* accepts a zeroed one */

/* ---- writing (shards_write.c) ---- */

/* One run of the command. */
struct leat_shard_job {
	const struct leat_shards *p;
	struct leat_mem *mem;
	unsigned threads;
	size_t memory;
	struct leat_shard_table table;
	struct leat_outputs outputs; /* with room for all shards */
	struct leat_index *index;    /* of each shard; NULL: made from the files afterwards, or not at all */
	uint64_t spilled;            /* bytes that were shuffled in a file */
	atomic_bool stopped;         /* by ^C */

	pthread_mutex_t lock; /* protects the members below */
	struct leat_tables *tables;
	struct leat_progress progress;
	uint64_t done; /* rows, counted once for each time that they are copied */
};

/* Reads the table and writes all shards, up to their last byte, but not their names. Closes `tables`. */
enum leat_status leat_shards_write(struct leat_shard_job *job, struct leat_err *err);
/* Fails with LEAT_CANCELLED if the job was stopped. */
enum leat_status leat_shards_go_on(const struct leat_shard_job *job, struct leat_err *err);
void leat_shards_close_tables(struct leat_shard_job *job);

#endif
