/* query.c - results: types of columns, and chunks as they are in DuckDB's memory; see duckdb.h */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "table/duckdb_api.h"

enum { MAX_DEPTH = 32 }; /* of lists in lists: deeper ones are of no kind */

struct leat_query {
	struct leat_tables *tables;
	struct leat_duckdb_result result;
	void *chunk; /* the last one */
	size_t columns;
	struct leat_column_type *type;
	struct leat_vector *vector;
};

/* ---- types ---- */

static const struct {
	int id;
	enum leat_column_kind kind;
	const char *name;
} kinds[] = {
	{LEAT_DUCKDB_BOOLEAN, LEAT_COLUMN_BOOL, "BOOLEAN"},
	{LEAT_DUCKDB_TINYINT, LEAT_COLUMN_INT8, "TINYINT"},
	{LEAT_DUCKDB_SMALLINT, LEAT_COLUMN_INT16, "SMALLINT"},
	{LEAT_DUCKDB_INTEGER, LEAT_COLUMN_INT32, "INTEGER"},
	{LEAT_DUCKDB_BIGINT, LEAT_COLUMN_INT64, "BIGINT"},
	{LEAT_DUCKDB_UTINYINT, LEAT_COLUMN_UINT8, "UTINYINT"},
	{LEAT_DUCKDB_USMALLINT, LEAT_COLUMN_UINT16, "USMALLINT"},
	{LEAT_DUCKDB_UINTEGER, LEAT_COLUMN_UINT32, "UINTEGER"},
	{LEAT_DUCKDB_UBIGINT, LEAT_COLUMN_UINT64, "UBIGINT"},
	{LEAT_DUCKDB_HUGEINT, LEAT_COLUMN_INT128, "HUGEINT"},
	{LEAT_DUCKDB_FLOAT, LEAT_COLUMN_FLOAT, "FLOAT"},
	{LEAT_DUCKDB_DOUBLE, LEAT_COLUMN_DOUBLE, "DOUBLE"},
	{LEAT_DUCKDB_DECIMAL, LEAT_COLUMN_DECIMAL, "DECIMAL"},
	{LEAT_DUCKDB_VARCHAR, LEAT_COLUMN_TEXT, "VARCHAR"},
	{LEAT_DUCKDB_BLOB, LEAT_COLUMN_BLOB, "BLOB"},
	{LEAT_DUCKDB_DATE, LEAT_COLUMN_DATE, "DATE"},
	{LEAT_DUCKDB_TIME, LEAT_COLUMN_TIME, "TIME"},
	{LEAT_DUCKDB_TIMESTAMP, LEAT_COLUMN_TIMESTAMP, "TIMESTAMP"},
	{LEAT_DUCKDB_TIMESTAMP_TZ, LEAT_COLUMN_TIMESTAMP, "TIMESTAMP WITH TIME ZONE"},
	{LEAT_DUCKDB_LIST, LEAT_COLUMN_LIST, "LIST"},
	{LEAT_DUCKDB_ARRAY, LEAT_COLUMN_ARRAY, "ARRAY"},
	{LEAT_DUCKDB_STRUCT, LEAT_COLUMN_STRUCT, "STRUCT"},
};

static void
free_type(struct leat_column_type *type)
{
	for (size_t i = 0; i < type->n_children; i++)
		free_type(&type->children[i]);
	free(type->children);
	free(type->member);
}

static bool read_type(const struct leat_duckdb *api, void *logical, struct leat_column_type *type, int depth);

/* Takes `logical`. */
static bool
read_child(const struct leat_duckdb *api, void *logical, struct leat_column_type *type, int depth)
{
	bool ok = logical && read_type(api, logical, type, depth + 1);

	api->destroy_logical_type(&logical);
	return ok;
}

static bool
read_member(const struct leat_duckdb *api, void *logical, uint64_t i, struct leat_column_type *type, int depth)
{
	char *name = api->struct_type_child_name(logical, i);

	type->member = name ? strdup(name) : NULL;
	api->free(name);
	return type->member && read_child(api, api->struct_type_child_type(logical, i), type, depth);
}

static bool
read_members(const struct leat_duckdb *api, void *logical, struct leat_column_type *type, int depth)
{
	uint64_t n = api->struct_type_child_count(logical);

	type->children = calloc(n ? n : 1, sizeof(*type->children));
	if (!type->children)
		return false;
	for (uint64_t i = 0; i < n; i++) {
		type->n_children++;
		if (!read_member(api, logical, i, &type->children[i], depth))
			return false;
	}
	return true;
}

static bool
read_elements(const struct leat_duckdb *api, void *logical, struct leat_column_type *type, int depth)
{
	bool list = type->kind == LEAT_COLUMN_LIST;

	type->children = calloc(1, sizeof(*type->children));
	if (!type->children)
		return false;
	type->n_children = 1;
	type->size = list ? 0 : api->array_type_array_size(logical);
	return read_child(api, list ? api->list_type_child_type(logical) : api->array_type_child_type(logical),
	                  type->children, depth);
}

static void
set_name(struct leat_column_type *type, const char *name)
{
	char text[sizeof(type->name) + 32];
	int len;

	if (type->kind == LEAT_COLUMN_DECIMAL)
		len = snprintf(text, sizeof(text), "DECIMAL(%u,%u)", type->width, type->scale);
	else if (type->kind == LEAT_COLUMN_LIST)
		len = snprintf(text, sizeof(text), "%s[]", type->children[0].name);
	else if (type->kind == LEAT_COLUMN_ARRAY)
		len = snprintf(text, sizeof(text), "%s[%llu]", type->children[0].name, (unsigned long long)type->size);
	else
		len = snprintf(text, sizeof(text), "%s", name);
	if (len >= (int)sizeof(type->name))
		memcpy(text + sizeof(type->name) - 4, "...", 4);
	memcpy(type->name, text, sizeof(type->name));
	type->name[sizeof(type->name) - 1] = '\0';
}

/* False: out of memory. */
static bool
read_type(const struct leat_duckdb *api, void *logical, struct leat_column_type *type, int depth)
{
	int id = api->get_type_id(logical);
	const char *name = "of another type";
	bool ok = true;

	for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds) && depth < MAX_DEPTH; i++)
		if (kinds[i].id == id) {
			type->kind = kinds[i].kind;
			name = kinds[i].name;
		}
	if (type->kind == LEAT_COLUMN_DECIMAL) {
		type->width = api->decimal_width(logical);
		type->scale = api->decimal_scale(logical);
	} else if (type->kind == LEAT_COLUMN_LIST || type->kind == LEAT_COLUMN_ARRAY) {
		ok = read_elements(api, logical, type, depth);
	} else if (type->kind == LEAT_COLUMN_STRUCT) {
		ok = read_members(api, logical, type, depth);
	}
	if (ok)
		set_name(type, name);
	return ok;
}

/* ---- vectors ---- */

static void
free_vector(struct leat_vector *vector)
{
	for (size_t i = 0; vector->children && i < vector->type->n_children; i++)
		free_vector(&vector->children[i]);
	free(vector->children);
}

static bool
make_vector(struct leat_vector *vector, const struct leat_column_type *type)
{
	vector->type = type;
	if (!type->n_children)
		return true;
	vector->children = calloc(type->n_children, sizeof(*vector->children));
	if (!vector->children)
		return false;
	for (size_t i = 0; i < type->n_children; i++)
		vector->children[i].type = &type->children[i];
	for (size_t i = 0; i < type->n_children; i++)
		if (!make_vector(&vector->children[i], &type->children[i]))
			return false;
	return true;
}

static void
point_at(const struct leat_duckdb *api, struct leat_vector *vector, void *from, size_t count)
{
	const struct leat_column_type *type = vector->type;

	vector->count = count;
	vector->valid = api->vector_get_validity(from);
	vector->values =
		type->kind == LEAT_COLUMN_STRUCT || type->kind == LEAT_COLUMN_ARRAY ? NULL : api->vector_get_data(from);
	if (type->kind == LEAT_COLUMN_LIST)
		point_at(api, &vector->children[0], api->list_vector_get_child(from), api->list_vector_get_size(from));
	else if (type->kind == LEAT_COLUMN_ARRAY)
		point_at(api, &vector->children[0], api->array_vector_get_child(from), count * type->size);
	else if (type->kind == LEAT_COLUMN_STRUCT)
		for (size_t i = 0; i < type->n_children; i++)
			point_at(api, &vector->children[i], api->struct_vector_get_child(from, i), count);
}

/* ---- queries ---- */

static enum leat_status
read_columns(struct leat_query *query, struct leat_err *err)
{
	const struct leat_duckdb *api = query->tables->api;
	size_t n = api->column_count(&query->result);
	bool ok;

	query->type = calloc(n + 1, sizeof(*query->type));
	query->vector = calloc(n + 1, sizeof(*query->vector));
	ok = query->type && query->vector;
	for (size_t i = 0; ok && i < n; i++) {
		void *logical = api->column_logical_type(&query->result, i);

		query->columns++;
		query->vector[i].type = &query->type[i];
		ok = logical && read_type(api, logical, &query->type[i], 0) &&
		     make_vector(&query->vector[i], &query->type[i]);
		api->destroy_logical_type(&logical);
	}
	return ok ? LEAT_OK : leat_fail(err, LEAT_NOMEM, "out of memory for the columns of a query");
}

enum leat_status
leat_query_open(struct leat_query **out, struct leat_tables *tables, const char *sql, struct leat_err *err)
{
	struct leat_query *query = calloc(1, sizeof(*query));
	void *prepared;
	enum leat_status status;

	*out = NULL;
	if (!query)
		return leat_fail(err, LEAT_NOMEM, "out of memory for a query");
	query->tables = tables;
	if (tables->reading)
		status = leat_fail(err, LEAT_INTERNAL, "a query of these tables is open already");
	else
		status = leat_tables_prepare(tables, sql, false, &prepared, err);
	if (status == LEAT_OK)
		status = leat_tables_execute(tables, &prepared, true, &query->result, err);
	if (status != LEAT_OK) {
		free(query);
		return status;
	}
	tables->reading = query;
	status = read_columns(query, err);
	if (status == LEAT_OK)
		*out = query;
	else
		leat_query_close(query);
	return status;
}

size_t
leat_query_columns(const struct leat_query *query)
{
	return query->columns;
}

const char *
leat_query_name(const struct leat_query *query, size_t column)
{
	return query->tables->api->column_name((struct leat_duckdb_result *)(uintptr_t)&query->result, column);
}

const struct leat_column_type *
leat_query_type(const struct leat_query *query, size_t column)
{
	return &query->type[column];
}

enum leat_status
leat_query_next(struct leat_query *query, struct leat_chunk *chunk, struct leat_err *err)
{
	const struct leat_duckdb *api = query->tables->api;
	const char *text;

	*chunk = (struct leat_chunk){.columns = query->vector};
	api->destroy_data_chunk(&query->chunk);
	if (atomic_load(&query->tables->stopped))
		return leat_fail(err, LEAT_CANCELLED, "interrupted");
	query->chunk = api->fetch_chunk(query->result);
	if (!query->chunk) {
		text = api->result_error(&query->result);
		return text && *text ? leat_duckdb_fail(err, text) : LEAT_OK;
	}
	chunk->rows = api->data_chunk_get_size(query->chunk);
	for (size_t i = 0; i < query->columns; i++)
		point_at(api, &query->vector[i], api->data_chunk_get_vector(query->chunk, i), chunk->rows);
	return LEAT_OK;
}

void
leat_query_close(struct leat_query *query)
{
	if (!query)
		return;
	query->tables->api->destroy_data_chunk(&query->chunk);
	query->tables->api->destroy_result(&query->result);
	query->tables->reading = NULL;
	for (size_t i = 0; i < query->columns; i++) {
		free_vector(&query->vector[i]);
		free_type(&query->type[i]);
	}
	free(query->vector);
	free(query->type);
	free(query);
}

/* ---- columns ---- */

static enum leat_status
read_column(const struct leat_duckdb *api, void *prepared, struct leat_columns *columns, struct leat_err *err)
{
	size_t i = columns->count++;
	const char *name = api->prepared_statement_column_name(prepared, i);
	void *logical = api->prepared_statement_column_logical_type(prepared, i);
	bool ok;

	columns->name[i] = strdup(name ? name : "");
	ok = columns->name[i] && logical && read_type(api, logical, &columns->type[i], 0);
	api->free((void *)(uintptr_t)name);
	api->destroy_logical_type(&logical);
	return ok ? LEAT_OK : leat_fail(err, LEAT_NOMEM, "out of memory for the columns of a query");
}

enum leat_status
leat_query_describe(struct leat_tables *tables, const char *sql, struct leat_columns *columns, struct leat_err *err)
{
	void *prepared;
	enum leat_status status = leat_tables_prepare(tables, sql, true, &prepared, err);
	uint64_t n;

	*columns = (struct leat_columns){0};
	if (status != LEAT_OK)
		return status;
	n = tables->api->prepared_statement_column_count(prepared);
	columns->name = calloc(n + 1, sizeof(*columns->name));
	columns->type = calloc(n + 1, sizeof(*columns->type));
	if (!columns->name || !columns->type)
		status = leat_fail(err, LEAT_NOMEM, "out of memory for the columns of a query");
	for (uint64_t i = 0; i < n && status == LEAT_OK; i++)
		status = read_column(tables->api, prepared, columns, err);
	tables->api->destroy_prepare(&prepared);
	return status;
}

void
leat_columns_free(struct leat_columns *columns)
{
	for (size_t i = 0; i < columns->count; i++) {
		free(columns->name[i]);
		free_type(&columns->type[i]);
	}
	free(columns->name);
	free(columns->type);
	*columns = (struct leat_columns){0};
}

enum leat_status
leat_query_int64(struct leat_tables *tables, const char *sql, int64_t *value, struct leat_err *err)
{
	struct leat_query *query;
	struct leat_chunk chunk;
	enum leat_status status = leat_query_open(&query, tables, sql, err);

	*value = 0;
	if (status != LEAT_OK)
		return status;
	if (leat_query_columns(query) != 1 || query->type[0].kind != LEAT_COLUMN_INT64)
		status = leat_fail(err, LEAT_INTERNAL, "expected one BIGINT from: %s", sql);
	else
		status = leat_query_next(query, &chunk, err);
	if (status == LEAT_OK && chunk.rows && !leat_vector_is_null(&chunk.columns[0], 0))
		*value = *(const int64_t *)chunk.columns[0].values;
	leat_query_close(query);
	return status;
}
