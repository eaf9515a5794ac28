/* rows_write.c - see rows_write.h: a table function that asks for rows, and COPY to Parquet */
#include "table/rows_write.h"

#include "base/mem.h"
#include "table/duckdb_api.h"

/* What the callbacks share. It outlives the statement. */
struct rows {
	const struct leat_duckdb *api;
	const struct leat_declared_columns *columns;
	const struct leat_row_maker *maker;
	struct leat_cells *cells;
	size_t count;        /* of cells */
	struct leat_err why; /* of a failure of the maker */
	bool ended;
};

static const int type_numbers[] = {
	[LEAT_COLUMN_BOOL] = LEAT_DUCKDB_BOOLEAN,     [LEAT_COLUMN_INT8] = LEAT_DUCKDB_TINYINT,
	[LEAT_COLUMN_INT16] = LEAT_DUCKDB_SMALLINT,   [LEAT_COLUMN_INT32] = LEAT_DUCKDB_INTEGER,
	[LEAT_COLUMN_INT64] = LEAT_DUCKDB_BIGINT,     [LEAT_COLUMN_UINT8] = LEAT_DUCKDB_UTINYINT,
	[LEAT_COLUMN_UINT16] = LEAT_DUCKDB_USMALLINT, [LEAT_COLUMN_UINT32] = LEAT_DUCKDB_UINTEGER,
	[LEAT_COLUMN_UINT64] = LEAT_DUCKDB_UBIGINT,   [LEAT_COLUMN_FLOAT] = LEAT_DUCKDB_FLOAT,
	[LEAT_COLUMN_DOUBLE] = LEAT_DUCKDB_DOUBLE,    [LEAT_COLUMN_TEXT] = LEAT_DUCKDB_VARCHAR,
	[LEAT_COLUMN_DATE] = LEAT_DUCKDB_DATE,        [LEAT_COLUMN_TIMESTAMP] = LEAT_DUCKDB_TIMESTAMP,
	[LEAT_COLUMN_BLOB] = LEAT_DUCKDB_BLOB,        [LEAT_COLUMN_TIME] = LEAT_DUCKDB_TIME,
	[LEAT_COLUMN_INT128] = LEAT_DUCKDB_HUGEINT,
};

static void
set_text(const struct leat_row_chunk *chunk, size_t column, size_t row, const char *text, size_t len)
{
	const struct leat_duckdb *api = chunk->arg;

	api->vector_assign_string_element_len(chunk->cells[column].vector, row, text, len);
}

void *
leat_cell_set_list(struct leat_row_chunk *chunk, size_t column, size_t row, size_t count, size_t size, size_t *first)
{
	const struct leat_duckdb *api = chunk->arg;
	struct leat_cells *cells = &chunk->cells[column];
	uint64_t *entry = (uint64_t *)cells->values + 2 * row;

	*first = cells->elements;
	cells->elements += count;
	api->list_vector_reserve(cells->vector, cells->elements);
	api->list_vector_set_size(cells->vector, cells->elements);
	entry[0] = *first;
	entry[1] = count;
	return (char *)api->vector_get_data(api->list_vector_get_child(cells->vector)) + *first * size;
}

void
leat_cell_set_element(const struct leat_row_chunk *chunk, size_t column, size_t element, const char *text, size_t len)
{
	const struct leat_duckdb *api = chunk->arg;

	api->vector_assign_string_element_len(api->list_vector_get_child(chunk->cells[column].vector), element, text,
	                                      len);
}

/* ---- callbacks ---- */

static void *
type_of(const struct leat_duckdb *api, const struct leat_declared *column)
{
	void *type, *list;

	if (column->kind == LEAT_COLUMN_DECIMAL)
		type = api->create_decimal_type((uint8_t)column->width, (uint8_t)column->scale);
	else
		type = api->create_logical_type(type_numbers[column->kind]);
	if (!column->is_list)
		return type;
	list = api->create_list_type(type);
	api->destroy_logical_type(&type);
	return list;
}

static void
bind(void *info)
{
	/* The API has no other way to reach one's own data than extra_info. */
	const struct leat_duckdb *api = leat_duckdb_find(NULL);
	const struct rows *rows = api->bind_get_extra_info(info);

	for (size_t i = 0; i < rows->columns->count; i++) {
		const struct leat_declared *column = &rows->columns->column[i];
		void *type;

		if (column->skip)
			continue;
		type = type_of(api, column);
		api->bind_add_result_column(info, column->name, type);
		api->destroy_logical_type(&type);
	}
}

static void
init(void *info)
{
	leat_duckdb_find(NULL)->init_set_max_threads(info, 1); /* rows have an order */
}

static void
make(void *info, void *output)
{
	const struct leat_duckdb *api = leat_duckdb_find(NULL);
	struct rows *rows = api->function_get_extra_info(info);
	struct leat_row_chunk chunk = {rows->cells, (size_t)api->vector_size(), set_text, (void *)(uintptr_t)api};
	size_t made = 0;

	for (size_t i = 0; i < rows->count; i++) {
		void *vector = api->data_chunk_get_vector(output, i);

		api->vector_ensure_validity_writable(vector);
		rows->cells[i] =
			(struct leat_cells){api->vector_get_data(vector), api->vector_get_validity(vector), vector, 0};
	}
	if (!rows->ended && rows->maker->make(rows->maker->arg, &chunk, &made, &rows->why) != LEAT_OK) {
		rows->ended = true;
		api->function_set_error(info, rows->why.text);
		return;
	}
	rows->ended |= made == 0;
	api->data_chunk_set_size(output, made);
}

/* ---- the statement ---- */

static enum leat_status
add_function(struct leat_tables *tables, struct rows *rows, struct leat_err *err)
{
	const struct leat_duckdb *api = tables->api;
	void *function = api->create_table_function();
	int failed;

	api->table_function_set_name(function, "leat_rows");
	api->table_function_set_extra_info(function, rows, NULL);
	api->table_function_set_bind(function, bind);
	api->table_function_set_init(function, init);
	api->table_function_set_function(function, make);
	failed = api->register_table_function(tables->connection, function);
	api->destroy_table_function(&function);
	return failed ? leat_fail(err, LEAT_INTERNAL, "DuckDB does not take a table function") : LEAT_OK;
}

static enum leat_status
copy_rows(struct leat_tables *tables, const char *select, const char *path, const char *options, struct leat_mem *mem,
          struct leat_err *err)
{
	enum leat_status status;
	struct leat_str sql;

	/* Row groups of limited bytes need the setting. One thread makes the rows, so their order is kept all the same.
	 */
	leat_str_init(&sql, mem, 1 << 24);
	leat_str_addf(&sql, "SET preserve_insertion_order=false; COPY (SELECT %s FROM leat_rows()) TO ", select);
	leat_sql_quote(&sql, path, '\'');
	leat_str_addf(&sql, " (FORMAT parquet, %s)", options);
	status = sql.failed ? leat_fail_mem(err, mem, sql.len, "a statement")
	                    : leat_tables_run(tables, leat_str_text(&sql), err);
	leat_str_free(&sql);
	return status;
}

enum leat_status
leat_rows_write(struct leat_tables *tables, const struct leat_declared_columns *columns,
                const struct leat_row_maker *maker, const char *path, struct leat_mem *mem, struct leat_err *err)
{
	return leat_rows_copy(tables, columns, maker, "*", path, "COMPRESSION zstd, ROW_GROUP_SIZE_BYTES '16MB'", mem,
	                      err);
}

enum leat_status
leat_rows_copy(struct leat_tables *tables, const struct leat_declared_columns *columns,
               const struct leat_row_maker *maker, const char *select, const char *path, const char *options,
               struct leat_mem *mem, struct leat_err *err)
{
	struct rows rows = {.api = tables->api, .columns = columns, .maker = maker};
	struct leat_err why;
	enum leat_status status;

	leat_err_clear(&rows.why);
	leat_err_clear(&why);
	for (size_t i = 0; i < columns->count; i++)
		rows.count += !columns->column[i].skip;
	if (rows.count == 0)
		return leat_fail(err, LEAT_INVALID, "all columns are skipped; keep at least one");
	rows.cells = leat_alloc_array(mem, rows.count, sizeof(*rows.cells));
	if (!rows.cells)
		return leat_fail_mem(err, mem, rows.count * sizeof(*rows.cells), "the columns of a table");
	status = add_function(tables, &rows, &why);
	if (status == LEAT_OK)
		status = copy_rows(tables, select, path, options, mem, &why);
	leat_free(mem, rows.cells);
	if (status == LEAT_OK)
		return LEAT_OK;
	return leat_fail_as(err, rows.why.status != LEAT_OK ? &rows.why : &why);
}
