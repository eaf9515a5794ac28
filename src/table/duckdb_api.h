/* duckdb_api.h - the functions of DuckDB's C API that Leat calls, as found in the library that was loaded
 *
 * The prototypes are written here instead of taken from duckdb.h, so building Leat needs no DuckDB. The API is stable
 * since 1.0. Handles are pointers to things nobody looks into; what is passed by value has the layout of duckdb.h.
 *
 * Included by the files of this room only. */
#ifndef LEAT_TABLE_DUCKDB_API_H
#define LEAT_TABLE_DUCKDB_API_H

#include "table/duckdb.h"

struct leat_duckdb_result {
	uint64_t counts[3];
	void *columns;
	char *error;
	void *inside;
};

struct leat_duckdb_progress {
	double percentage;
	uint64_t rows, total;
};

enum { LEAT_DUCKDB_OK = 0, LEAT_DUCKDB_SELECT = 1 };

/* Numbers of duckdb_type; they never change. */
enum leat_duckdb_type {
	LEAT_DUCKDB_BOOLEAN = 1,
	LEAT_DUCKDB_TINYINT,
	LEAT_DUCKDB_SMALLINT,
	LEAT_DUCKDB_INTEGER,
	LEAT_DUCKDB_BIGINT,
	LEAT_DUCKDB_UTINYINT,
	LEAT_DUCKDB_USMALLINT,
	LEAT_DUCKDB_UINTEGER,
	LEAT_DUCKDB_UBIGINT,
	LEAT_DUCKDB_FLOAT,
	LEAT_DUCKDB_DOUBLE,
	LEAT_DUCKDB_TIMESTAMP,
	LEAT_DUCKDB_DATE,
	LEAT_DUCKDB_TIME,
	LEAT_DUCKDB_INTERVAL,
	LEAT_DUCKDB_HUGEINT,
	LEAT_DUCKDB_VARCHAR,
	LEAT_DUCKDB_BLOB,
	LEAT_DUCKDB_DECIMAL,
	LEAT_DUCKDB_LIST = 24,
	LEAT_DUCKDB_STRUCT = 25,
	LEAT_DUCKDB_TIMESTAMP_TZ = 31,
	LEAT_DUCKDB_ARRAY = 33,
};

/* X(result, name, parameters) */
#define LEAT_DUCKDB_FUNCTIONS(X)                                                                                       \
	X(const char *, library_version, (void))                                                                       \
	X(void, free, (void *))                                                                                        \
	X(int, create_config, (void **))                                                                               \
	X(int, set_config, (void *, const char *, const char *))                                                       \
	X(void, destroy_config, (void **))                                                                             \
	X(int, open_ext, (const char *, void **, void *, char **))                                                     \
	X(void, close, (void **))                                                                                      \
	X(int, connect, (void *, void **))                                                                             \
	X(void, disconnect, (void **))                                                                                 \
	X(void, interrupt, (void *))                                                                                   \
	X(struct leat_duckdb_progress, query_progress, (void *))                                                       \
	X(uint64_t, extract_statements, (void *, const char *, void **))                                               \
	X(const char *, extract_statements_error, (void *))                                                            \
	X(int, prepare_extracted_statement, (void *, void *, uint64_t, void **))                                       \
	X(void, destroy_extracted, (void **))                                                                          \
	X(const char *, prepare_error, (void *))                                                                       \
	X(void, destroy_prepare, (void **))                                                                            \
	X(int, prepared_statement_type, (void *))                                                                      \
	X(uint64_t, prepared_statement_column_count, (void *))                                                         \
	X(const char *, prepared_statement_column_name, (void *, uint64_t))                                            \
	X(void *, prepared_statement_column_logical_type, (void *, uint64_t))                                          \
	X(uint64_t, nparams, (void *))                                                                                 \
	X(int, pending_prepared, (void *, void **))                                                                    \
	X(int, pending_prepared_streaming, (void *, void **))                                                          \
	X(const char *, pending_error, (void *))                                                                       \
	X(int, execute_pending, (void *, struct leat_duckdb_result *))                                                 \
	X(void, destroy_pending, (void **))                                                                            \
	X(const char *, result_error, (struct leat_duckdb_result *))                                                   \
	X(void, destroy_result, (struct leat_duckdb_result *))                                                         \
	X(uint64_t, column_count, (struct leat_duckdb_result *))                                                       \
	X(const char *, column_name, (struct leat_duckdb_result *, uint64_t))                                          \
	X(void *, column_logical_type, (struct leat_duckdb_result *, uint64_t))                                        \
	X(void *, fetch_chunk, (struct leat_duckdb_result))                                                            \
	X(void, destroy_data_chunk, (void **))                                                                         \
	X(uint64_t, data_chunk_get_size, (void *))                                                                     \
	X(void *, data_chunk_get_vector, (void *, uint64_t))                                                           \
	X(void *, vector_get_data, (void *))                                                                           \
	X(uint64_t *, vector_get_validity, (void *))                                                                   \
	X(void *, list_vector_get_child, (void *))                                                                     \
	X(uint64_t, list_vector_get_size, (void *))                                                                    \
	X(int, list_vector_reserve, (void *, uint64_t))                                                                \
	X(int, list_vector_set_size, (void *, uint64_t))                                                               \
	X(void *, struct_vector_get_child, (void *, uint64_t))                                                         \
	X(void *, array_vector_get_child, (void *))                                                                    \
	X(int, get_type_id, (void *))                                                                                  \
	X(uint8_t, decimal_width, (void *))                                                                            \
	X(uint8_t, decimal_scale, (void *))                                                                            \
	X(void *, list_type_child_type, (void *))                                                                      \
	X(void *, array_type_child_type, (void *))                                                                     \
	X(uint64_t, array_type_array_size, (void *))                                                                   \
	X(uint64_t, struct_type_child_count, (void *))                                                                 \
	X(char *, struct_type_child_name, (void *, uint64_t))                                                          \
	X(void *, struct_type_child_type, (void *, uint64_t))                                                          \
	X(void *, create_table_function, (void))                                                                       \
	X(void, destroy_table_function, (void **))                                                                     \
	X(void, table_function_set_name, (void *, const char *))                                                       \
	X(void, table_function_set_extra_info, (void *, void *, void (*)(void *)))                                     \
	X(void, table_function_set_bind, (void *, void (*)(void *)))                                                   \
	X(void, table_function_set_init, (void *, void (*)(void *)))                                                   \
	X(void, table_function_set_function, (void *, void (*)(void *, void *)))                                       \
	X(int, register_table_function, (void *, void *))                                                              \
	X(void *, bind_get_extra_info, (void *))                                                                       \
	X(void, bind_add_result_column, (void *, const char *, void *))                                                \
	X(void, init_set_max_threads, (void *, uint64_t))                                                              \
	X(void *, function_get_extra_info, (void *))                                                                   \
	X(void, function_set_error, (void *, const char *))                                                            \
	X(void *, create_logical_type, (int))                                                                          \
	X(void *, create_decimal_type, (uint8_t, uint8_t))                                                             \
	X(void *, create_list_type, (void *))                                                                          \
	X(uint64_t, vector_size, (void))                                                                               \
	X(void, data_chunk_set_size, (void *, uint64_t))                                                               \
	X(void, vector_ensure_validity_writable, (void *))                                                             \
	X(void, vector_assign_string_element_len, (void *, uint64_t, const char *, uint64_t))                          \
	X(void, destroy_logical_type, (void **))

struct leat_duckdb {
#define LEAT_DUCKDB_MEMBER(result, name, parameters) result(*name) parameters;
	LEAT_DUCKDB_FUNCTIONS(LEAT_DUCKDB_MEMBER)
#undef LEAT_DUCKDB_MEMBER
};

/* NULL: `err` says why, and how to get it. */
const struct leat_duckdb *leat_duckdb_find(struct leat_err *err);

struct leat_tables {
	const struct leat_duckdb *api;
	void *database, *connection;
	void *reading; /* the open query */
	_Atomic bool stopped;
};

/* Fails as DuckDB says in `text`, a message of one or more lines; NULL: it said nothing. */
enum leat_status leat_duckdb_fail(struct leat_err *err, const char *text);
/* Prepares the only statement of `sql`; with `select`, it must be a SELECT. */
enum leat_status leat_tables_prepare(struct leat_tables *tables, const char *sql, bool select, void **prepared,
                                     struct leat_err *err);
/* Runs it and destroys it. The caller destroys the result, on success. */
enum leat_status leat_tables_execute(struct leat_tables *tables, void **prepared, bool streaming,
                                     struct leat_duckdb_result *result, struct leat_err *err);

#endif
