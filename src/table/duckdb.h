/* duckdb.h - tables: SQL over Parquet, CSV and JSON files, by DuckDB
 *
 * DuckDB is a library that is loaded at run time (duckdb_load.c), so whatever does not touch tables works without it.
 * Each open `struct leat_tables` is a separate in-memory database with one connection, and with settings that make
 * results repeatable: the time zone is UTC, extensions are neither installed nor loaded, and rows of a result come in
 * the order that ORDER BY or the files give them, whatever the number of threads.
 *
 *	struct leat_tables *tables = NULL;
 *	struct leat_query *query = NULL;
 *	struct leat_chunk chunk;
 *
 *	leat_tables_open(&tables, &(struct leat_tables_options){.threads = 2, .memory = (size_t)1 << 30}, err);
 *	leat_query_open(&query, tables, "SELECT user, name FROM 'users.parquet' ORDER BY user", err);
 *	while ((status = leat_query_next(query, &chunk, err)) == LEAT_OK && chunk.rows) {
 *		const int64_t *users = chunk.columns[0].values;
 *		for (size_t row = 0; row < chunk.rows; row++)
 *			name = leat_vector_text(&chunk.columns[1], row, &len);
 *	}
 *	leat_query_close(query);
 *	leat_tables_close(tables);
 *
 * Threads: `struct leat_tables` and what was opened from it belong to one thread at a time. DuckDB runs threads of its
 * own inside the calls. leat_tables_interrupt and leat_tables_progress may be called from any thread until
 * leat_tables_close is called, but not from a signal handler. Functions without a handle may be called from any thread.
 *
 * Errors: LEAT_UNSUPPORTED: there is no DuckDB on this system, or none of a version that Leat knows. LEAT_CANCELLED:
 * interrupted. LEAT_LIMIT: more memory or temporary space needed than allowed. LEAT_IO: a file cannot be read or
 * written. LEAT_INVALID: the SQL is wrong. LEAT_DATA: everything else that DuckDB says while a query runs, such as a
 * failed cast. The text is one line, made from DuckDB's. */
#ifndef LEAT_TABLE_DUCKDB_H
#define LEAT_TABLE_DUCKDB_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/err.h"
#include "base/str.h"

/* ---- the library ---- */

/* Loads DuckDB once per process; it stays loaded. Other functions do it when needed; this one is for asking early.
 * Looks at $LEAT_DUCKDB, the dynamic linker's libduckdb.so, near the running program (build/duckdb of a source tree,
 * the duckdb package next to an installed leat package), and in $VIRTUAL_ENV. */
enum leat_status leat_duckdb_load(struct leat_err *err);
/* Such as "1.5.6". Part of the keys of actions. NULL: leat_duckdb_load fails. */
const char *leat_duckdb_version(void);
/* File that DuckDB was loaded from, to hand to other processes as $LEAT_DUCKDB. NULL: leat_duckdb_load fails. */
const char *leat_duckdb_path(void);

/* ---- a database ---- */

struct leat_tables;

struct leat_tables_options {
	unsigned threads; /* 0: one per CPU this process may use */
	size_t memory; /* limit of the whole process; DuckDB gets less, so that RSS stays below. 0: a quarter of RAM */
	const char *spill; /* existing folder for temporary files of large sorts and joins; NULL: none, LEAT_LIMIT
	                      instead */
};

/* On failure, *out is NULL. */
enum leat_status leat_tables_open(struct leat_tables **out, const struct leat_tables_options *options,
                                  struct leat_err *err);
void leat_tables_close(struct leat_tables *tables); /* accepts NULL */

/* Runs one or more statements and drops their results. */
enum leat_status leat_tables_run(struct leat_tables *tables, const char *sql, struct leat_err *err);

/* From now on, SQL reads and writes only these files and what is in these folders, and cannot change settings. For SQL
 * of users whose inputs have to be known. Paths as SQL will name them; folders end in '/'. */
enum leat_status leat_tables_confine(struct leat_tables *tables, const char *const *paths, size_t n,
                                     struct leat_err *err);

/* Ends the statement that is running, or the next one if none is: it fails with LEAT_CANCELLED, within a second, and so
 * do later ones. */
void leat_tables_interrupt(struct leat_tables *tables);
/* Percentage of the running statement as DuckDB estimates it. Rough; negative: unknown. */
double leat_tables_progress(struct leat_tables *tables);

/* ---- types ---- */

/* How values of a column are laid out in leat_vector.values. */
enum leat_column_kind {
	LEAT_COLUMN_OTHER,   /* a type that has no kind here, such as INTERVAL: CAST it in SQL */
	LEAT_COLUMN_BOOL,    /* uint8_t 0 or 1 */
	LEAT_COLUMN_INT8,    /* TINYINT */
	LEAT_COLUMN_INT16,   /* SMALLINT */
	LEAT_COLUMN_INT32,   /* INTEGER */
	LEAT_COLUMN_INT64,   /* BIGINT */
	LEAT_COLUMN_UINT8,   /* UTINYINT */
	LEAT_COLUMN_UINT16,  /* USMALLINT */
	LEAT_COLUMN_UINT32,  /* UINTEGER */
	LEAT_COLUMN_UINT64,  /* UBIGINT */
	LEAT_COLUMN_INT128,  /* HUGEINT: two words, lower one (unsigned) first; sum() of integers is one */
	LEAT_COLUMN_FLOAT,   /* float */
	LEAT_COLUMN_DOUBLE,  /* double */
	LEAT_COLUMN_DECIMAL, /* integer times 10^-scale: int16_t, int32_t, int64_t or two words, for a width up to 4, 9,
	                        18, 38 */
	LEAT_COLUMN_TEXT,    /* VARCHAR, UTF-8: leat_vector_text */
	LEAT_COLUMN_BLOB,    /* leat_vector_text */
	LEAT_COLUMN_DATE,    /* int32_t days since 1970-01-01 */
	LEAT_COLUMN_TIME,    /* int64_t microseconds since midnight */
	LEAT_COLUMN_TIMESTAMP, /* int64_t microseconds since 1970-01-01 UTC; with time zone, too */
	LEAT_COLUMN_LIST,      /* leat_vector_list; elements are children[0] */
	LEAT_COLUMN_ARRAY,     /* fixed `size`: elements of row i are children[0] from i * size on */
	LEAT_COLUMN_STRUCT,    /* a child per member, row by row; `values` is NULL */
};

struct leat_column_type {
	enum leat_column_kind kind;
	char name[64];         /* as SQL writes it, such as "DECIMAL(18,3)" or "BIGINT[]"; long ones end in "..." */
	unsigned width, scale; /* DECIMAL */
	uint64_t size;         /* ARRAY: elements per row */
	size_t n_children;     /* LIST and ARRAY: 1; STRUCT: members */
	struct leat_column_type *children;
	char *member; /* child of a STRUCT: its name; else NULL */
};

/* ---- a result ---- */

struct leat_query;

/* Values of a column of a chunk, in DuckDB's own memory. */
struct leat_vector {
	const struct leat_column_type *type;
	const void *values;    /* of rows that are not NULL; others hold anything */
	const uint64_t *valid; /* bit i % 64 of word i / 64: row i is not NULL. NULL: no row is */
	size_t count;          /* rows; of a list's child, all elements of the chunk */
	struct leat_vector *children;
};

/* Some rows of a result, usually 2048. Valid until the next leat_query_next or leat_query_close. */
struct leat_chunk {
	size_t rows; /* 0: the end */
	struct leat_vector *columns;
};

/* Starts one statement that has a result. Chunks are made while they are read, so a result may be larger than memory.
 * Only one query of `tables` may be open at a time, and leat_tables_run must wait until it is closed. Nothing may be
 * NULL; on failure, *out is. */
enum leat_status leat_query_open(struct leat_query **out, struct leat_tables *tables, const char *sql,
                                 struct leat_err *err);
size_t leat_query_columns(const struct leat_query *query);
const char *leat_query_name(const struct leat_query *query, size_t column);
const struct leat_column_type *leat_query_type(const struct leat_query *query, size_t column);
enum leat_status leat_query_next(struct leat_query *query, struct leat_chunk *chunk, struct leat_err *err);
void leat_query_close(struct leat_query *query); /* accepts NULL */

/* Columns of the result of one SELECT, without running it: of `sql` as it is, so two may have the same name. Anything
 * else than one SELECT is LEAT_INVALID. Free with leat_columns_free, also after a failure. */
struct leat_columns {
	size_t count;
	char **name;
	struct leat_column_type *type;
};
enum leat_status leat_query_describe(struct leat_tables *tables, const char *sql, struct leat_columns *columns,
                                     struct leat_err *err);
void leat_columns_free(struct leat_columns *columns);

/* For a query that gives one number, such as count(*). NULL gives 0. The column must be BIGINT. */
enum leat_status leat_query_int64(struct leat_tables *tables, const char *sql, int64_t *value, struct leat_err *err);

static inline bool
leat_vector_is_null(const struct leat_vector *vector, size_t row)
{
	return vector->valid && !(vector->valid[row / 64] >> (row % 64) & 1);
}

/* TEXT and BLOB of a row that is not NULL. Not NUL-terminated, and may hold NUL bytes. */
static inline const char *
leat_vector_text(const struct leat_vector *vector, size_t row, size_t *len)
{
	const unsigned char *entry = (const unsigned char *)vector->values + row * 16;
	uint32_t size;
	const char *text;

	memcpy(&size, entry, sizeof(size));
	memcpy(&text, entry + 8, sizeof(text));
	*len = size;
	return size <= 12 ? (const char *)entry + 4 : text;
}

/* LIST of a row that is not NULL: its elements are children[0] from *first on. */
static inline void
leat_vector_list(const struct leat_vector *vector, size_t row, size_t *first, size_t *count)
{
	const uint64_t *entry = (const uint64_t *)vector->values + row * 2;

	*first = (size_t)entry[0];
	*count = (size_t)entry[1];
}

/* ---- the table of a folder (result_files.c) ---- */

/* Visits the Parquet files that are the table of a folder, such as the result of a step: all whose names end in
 * .parquet, in order of their names, also in folders below; but not those that begin with '.' or '_'. Of the result of a
 * features step, features.parquet alone. */
typedef enum leat_status leat_table_file(void *arg, const char *path, struct leat_err *err);
enum leat_status leat_table_files(const char *folder, leat_table_file *visit, void *arg, struct leat_err *err);
/* Is it the result of a features step? Then `table` is the path of its table. */
bool leat_is_features_folder(const char *folder, char table[PATH_MAX]);

/* ---- SQL text ---- */

/* Appends `text` as a literal (quote is '\'') or as a name ('"'). */
void leat_sql_quote(struct leat_str *sql, const char *text, char quote);
/* Appends read_parquet(...), read_csv(...) or read_json(...) of `path`, which may be a glob, by its extension. A folder
 * is its Parquet files (leat_table_files), or files of one of the other formats. LEAT_INVALID: none of these. */
enum leat_status leat_sql_add_file(struct leat_str *sql, const char *path, struct leat_err *err);
/* The same for several files in this order, which all have the format of the first. */
enum leat_status leat_sql_add_files(struct leat_str *sql, char *const *path, size_t n, struct leat_err *err);

#endif
