/* shards_table.c - the table that `leat shards` reads: its files, columns and number of rows */
#include <fts.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "cli/shards.h"
#include "store/set.h"

enum { MAX_SQL = 256 << 20, MAGIC = 4, MIN_PARQUET = 12 };

/* ---- files ---- */

/* Patterns as leat_files_open takes them. */
struct patterns {
	struct leat_mem *mem;
	char **text;
	size_t count, cap;
};

static void
free_patterns(struct patterns *p)
{
	for (size_t i = 0; i < p->count; i++)
		leat_free(p->mem, p->text[i]);
	leat_free(p->mem, p->text);
}

/* `literal`: a name that stands for itself. */
static enum leat_status
add_pattern(struct patterns *p, const char *name, bool literal, struct leat_err *err)
{
	enum leat_status status = LEAT_GROW(p->mem, p->text, p->cap, p->count + 1, SIZE_MAX, "the list of files", err);
	struct leat_str text;

	if (status != LEAT_OK)
		return status;
	leat_str_init(&text, p->mem, SIZE_MAX / 4);
	if (literal)
		leat_add_literal(&text, name);
	else
		leat_str_add(&text, name);
	p->text[p->count] = leat_str_take(&text);
	if (!p->text[p->count])
		return leat_fail_mem(err, p->mem, strlen(name), "the list of files");
	p->count++;
	return LEAT_OK;
}

static bool
is_parquet_name(const char *name)
{
	static const char ending[] = ".parquet";
	size_t len = strlen(name);

	return *name != '.' && *name != '_' && len >= sizeof(ending) && !strcmp(name + len - strlen(ending), ending);
}

static int
by_name(const FTSENT **a, const FTSENT **b)
{
	return strcmp((*a)->fts_name, (*b)->fts_name);
}

static enum leat_status
walk(struct patterns *p, FTS *tree, struct leat_err *err)
{
	enum leat_status status = LEAT_OK;

	for (FTSENT *entry = fts_read(tree); entry && status == LEAT_OK; entry = fts_read(tree)) {
		bool hidden = entry->fts_level > 0 && strchr("._", *entry->fts_name);

		if (entry->fts_info == FTS_D && hidden)
			fts_set(tree, entry, FTS_SKIP);
		else if (entry->fts_info == FTS_DNR || entry->fts_info == FTS_ERR || entry->fts_info == FTS_NS)
			status = leat_fail_errno(err, entry->fts_errno, "cannot read '%s'", entry->fts_path);
		else if (entry->fts_info != FTS_D && entry->fts_info != FTS_DP && is_parquet_name(entry->fts_name))
			status = add_pattern(p, entry->fts_path, true, err);
	}
	return status;
}

/* All that end in .parquet, also in folders below, by name. */
static enum leat_status
add_folder(struct patterns *p, const char *folder, struct leat_err *err)
{
	char *path = leat_strdup(p->mem, folder), *const roots[] = {path, NULL};
	FTS *tree = path ? fts_open(roots, FTS_LOGICAL | FTS_NOCHDIR, by_name) : NULL;
	size_t before = p->count;
	enum leat_status status;

	if (!tree)
		status = leat_fail_mem(err, p->mem, strlen(folder), "a list of files");
	else
		status = walk(p, tree, err);
	if (status == LEAT_OK && p->count == before)
		status = leat_fail(err, LEAT_DATA, "there is no file NAME.parquet in the folder '%s'", folder);
	if (tree)
		fts_close(tree);
	leat_free(p->mem, path);
	return status;
}

static enum leat_status
add_operand(struct leat_shard_table *table, struct patterns *p, const char *operand, struct leat_err *err)
{
	struct leat_store *store;
	enum leat_status status;
	char *uri;

	if (leat_is_uri(operand, strlen(operand)))
		return leat_fail(err, LEAT_INVALID,
		                 "'%s': tables are read from local files only; copy it to this machine first", operand);
	status = leat_stores_find(&table->stores, operand, &store, &uri, err);
	if (status != LEAT_OK)
		return status;
	if (leat_what_is(store, uri) == LEAT_IS_FOLDER)
		status = add_folder(p, uri, err);
	else
		status = add_pattern(p, operand, leat_what_is(store, uri) == LEAT_IS_OBJECT, err);
	leat_free(store->mem, uri);
	return status;
}

static enum leat_status
has_magic(const struct leat_shard_table *table, size_t i, uint64_t offset, bool *has, struct leat_err *err)
{
	char magic[MAGIC + 1] = "";
	struct iovec iov = {magic, MAGIC};
	size_t got;
	enum leat_status status = leat_files_read(table->files, i, offset, &iov, 1, 0, &got, err);

	*has = status == LEAT_OK && !strcmp(magic, "PAR1");
	return status;
}

/* DuckDB's errors for other formats and parts of files are not what a user can act on. */
static enum leat_status
check_magic(const struct leat_shard_table *table, size_t i, struct leat_err *err)
{
	const struct leat_object *file = leat_files_at(table->files, i);
	bool begins = false, ends = false;
	enum leat_status status = LEAT_OK;

	if (file->size >= MIN_PARQUET)
		status = has_magic(table, i, 0, &begins, err);
	if (status == LEAT_OK && !begins)
		return leat_fail(err, LEAT_DATA, "'%s' is not a Parquet file; 'leat sql' makes one from CSV or JSON",
		                 file->uri);
	if (status == LEAT_OK)
		status = has_magic(table, i, file->size - MAGIC, &ends, err);
	if (status == LEAT_OK && !ends)
		return leat_fail(err, LEAT_DATA, "'%s' is not complete: it does not end as a Parquet file does",
		                 file->uri);
	return status;
}

/* Columns do not depend on where the files are: hive_partitioning would make some from the names of folders. */
static enum leat_status
name_files(struct leat_shard_table *table, struct leat_err *err)
{
	struct leat_str *from = &table->from;
	enum leat_status status = LEAT_OK;

	leat_str_add(from, "read_parquet([");
	for (size_t i = 0; i < leat_files_count(table->files) && status == LEAT_OK; i++) {
		leat_str_add(from, i ? ", " : "");
		leat_sql_quote(from, leat_files_at(table->files, i)->uri, '\'');
		status = check_magic(table, i, err);
	}
	leat_str_add(from, "], hive_partitioning = false, union_by_name = false)");
	if (status == LEAT_OK && from->failed)
		status = leat_fail_mem(err, table->mem, from->len, "the names of files");
	return status;
}

enum leat_status
leat_shard_table_find(struct leat_shard_table *table, const char *const *operand, size_t operands,
                      const struct leat_storage *storage, struct leat_mem *mem, struct leat_err *err)
{
	struct patterns p = {.mem = mem};
	enum leat_status status = LEAT_OK;

	*table = (struct leat_shard_table){.mem = mem};
	leat_stores_init(&table->stores, mem);
	table->stores.storage = storage;
	leat_str_init(&table->from, mem, MAX_SQL);
	for (size_t i = 0; i < operands && status == LEAT_OK; i++)
		status = add_operand(table, &p, operand[i], err);
	if (status == LEAT_OK)
		status = leat_files_open(&table->files, &table->stores, (const char *const *)p.text, p.count, mem, err);
	if (status == LEAT_OK)
		status = name_files(table, err);
	free_patterns(&p);
	return status;
}

enum leat_status
leat_shard_table_check(const struct leat_shard_table *table, struct leat_err *err)
{
	enum leat_status status = LEAT_OK;

	for (size_t i = 0; i < leat_files_count(table->files) && status == LEAT_OK; i++) {
		const struct leat_object *file = leat_files_at(table->files, i);
		struct leat_object now;

		status = file->store->kind->look(file->store, file->uri, &now, err);
		if (status == LEAT_OK && !leat_version_equal(&now.version, &file->version))
			status = leat_fail(err, LEAT_DATA, "'%s' has changed while it was read; run the command again",
			                   file->uri);
	}
	return status;
}

void
leat_shard_table_close(struct leat_shard_table *table)
{
	if (!table->mem)
		return;
	for (size_t i = 0; i < table->columns; i++) {
		leat_row_feature_free(&table->column[i].feature);
		leat_free(table->mem, table->column[i].numbers);
	}
	leat_free(table->mem, table->column);
	leat_str_free(&table->from);
	leat_files_close(table->files);
	leat_stores_close(&table->stores);
	*table = (struct leat_shard_table){0};
}

/* ---- columns ---- */

/* What a value becomes; `cast` as in struct leat_shard_column. */
static enum leat_feature_kind
feature_of(const struct leat_column_type *type, const char **cast)
{
	switch (type->kind) {
	case LEAT_COLUMN_BOOL:
	case LEAT_COLUMN_INT8:
	case LEAT_COLUMN_INT16:
	case LEAT_COLUMN_INT32:
	case LEAT_COLUMN_INT64:
	case LEAT_COLUMN_UINT8:
	case LEAT_COLUMN_UINT16:
	case LEAT_COLUMN_UINT32:
	case LEAT_COLUMN_UINT64:
	case LEAT_COLUMN_DATE:
	case LEAT_COLUMN_TIME:
	case LEAT_COLUMN_TIMESTAMP:
		return LEAT_FEATURE_INT64;
	case LEAT_COLUMN_INT128:
		*cast = "BIGINT";
		return LEAT_FEATURE_INT64;
	case LEAT_COLUMN_FLOAT:
	case LEAT_COLUMN_DOUBLE:
		return LEAT_FEATURE_FLOAT;
	case LEAT_COLUMN_DECIMAL:
		*cast = "DOUBLE";
		return LEAT_FEATURE_FLOAT;
	case LEAT_COLUMN_TEXT:
	case LEAT_COLUMN_BLOB:
		return LEAT_FEATURE_BYTES;
	default:
		return LEAT_FEATURE_NONE;
	}
}

/* Types without a layout of ours that have an obvious other one. `name` as DuckDB writes it: "UUID", "UUID[]". */
static enum leat_feature_kind
other_feature(const char *name, const char **cast)
{
	if (!strncmp(name, "UUID", strlen("UUID")) || !strncmp(name, "ENUM", strlen("ENUM"))) {
		*cast = "VARCHAR";
		return LEAT_FEATURE_BYTES;
	}
	if (!strncmp(name, "TIMESTAMP", strlen("TIMESTAMP"))) { /* of seconds, or nanoseconds */
		*cast = "TIMESTAMP";
		return LEAT_FEATURE_INT64;
	}
	return LEAT_FEATURE_NONE;
}

static enum leat_status
set_column(struct leat_shard_table *table, size_t i, const struct leat_column_type *type, const char *name,
           struct leat_err *err)
{
	struct leat_shard_column *column = &table->column[i];
	const struct leat_column_type *element = type;
	enum leat_status status;

	if (!*name)
		return leat_fail(err, LEAT_DATA, "column %zu has no name, which a feature needs", i + 1);
	column->is_list = type->kind == LEAT_COLUMN_LIST || type->kind == LEAT_COLUMN_ARRAY;
	if (column->is_list)
		element = &type->children[0];
	column->is_double = element->kind == LEAT_COLUMN_DOUBLE || element->kind == LEAT_COLUMN_DECIMAL;
	status = leat_row_feature_init(&column->feature, name, feature_of(element, &column->cast), table->mem, err);
	column->name = column->feature.key;
	return status;
}

static enum leat_status
set_columns(struct leat_shard_table *table, struct leat_tables *tables, const char *sql, struct leat_err *err)
{
	struct leat_query *query = NULL;
	enum leat_status status = leat_query_open(&query, tables, sql, err);
	size_t count = status == LEAT_OK ? leat_query_columns(query) : 0;

	if (status == LEAT_OK && !(table->column = leat_alloc_array(table->mem, count, sizeof(*table->column))))
		status = leat_fail_mem(err, table->mem, count * sizeof(*table->column), "the columns of a table");
	for (size_t i = 0; i < count && status == LEAT_OK; i++) {
		table->columns = i + 1;
		status = set_column(table, i, leat_query_type(query, i), leat_query_name(query, i), err);
	}
	leat_query_close(query);
	return status;
}

static enum leat_status
set_kind(struct leat_shard_column *column, enum leat_feature_kind kind, struct leat_err *err)
{
	struct leat_row_feature before = column->feature;
	enum leat_status status = leat_row_feature_init(&column->feature, before.key, kind, before.mem, err);

	leat_row_feature_free(&before);
	column->name = column->feature.key;
	return status;
}

/* The features of columns that have none yet, by the names of their types. */
static enum leat_status
name_types(struct leat_shard_table *table, const struct leat_chunk *chunk, size_t first, struct leat_err *err)
{
	enum leat_status status = LEAT_OK;

	for (size_t row = 0; row < chunk->rows && first + row < table->columns && status == LEAT_OK; row++) {
		struct leat_shard_column *column = &table->column[first + row];
		enum leat_feature_kind kind;
		char name[128];
		size_t len;
		const char *text = leat_vector_text(&chunk->columns[0], row, &len);

		if (column->feature.kind != LEAT_FEATURE_NONE)
			continue;
		leat_show(name, sizeof(name), text, len);
		kind = other_feature(name, &column->cast);
		if (kind == LEAT_FEATURE_NONE)
			return leat_fail(
				err, LEAT_DATA,
				"column '%s' is %s, which a tf.train.Example cannot hold; CAST it in SQL, or leave "
				"it out",
				column->name, name);
		status = set_kind(column, kind, err);
	}
	return status;
}

static enum leat_status
set_other_columns(struct leat_shard_table *table, struct leat_tables *tables, const char *sql, struct leat_err *err)
{
	struct leat_query *query = NULL;
	enum leat_status status = leat_query_open(&query, tables, sql, err);
	struct leat_chunk chunk;

	for (size_t first = 0; status == LEAT_OK; first += chunk.rows) {
		status = leat_query_next(query, &chunk, err);
		if (status != LEAT_OK || !chunk.rows)
			break;
		status = name_types(table, &chunk, first, err);
	}
	leat_query_close(query);
	return status;
}

enum leat_status
leat_shard_table_read(struct leat_shard_table *table, struct leat_tables *tables, struct leat_err *err)
{
	static const char *const forms[] = {"SELECT * FROM %s LIMIT 0",
	                                    "SELECT column_type FROM (DESCRIBE SELECT * FROM %s)",
	                                    "SELECT count(*) FROM %s"};
	enum leat_status status = LEAT_OK;
	int64_t rows = 0;

	for (size_t i = 0; i < sizeof(forms) / sizeof(*forms) && status == LEAT_OK; i++) {
		char *sql = leat_asprintf(table->mem, forms[i], leat_str_text(&table->from));

		if (!sql)
			status = leat_fail_mem(err, table->mem, table->from.len, "a query");
		else if (i == 0)
			status = set_columns(table, tables, sql, err);
		else if (i == 1)
			status = set_other_columns(table, tables, sql, err);
		else
			status = leat_query_int64(tables, sql, &rows, err);
		leat_free(table->mem, sql);
	}
	table->rows = (uint64_t)rows;
	return status;
}

void
leat_shard_table_query(const struct leat_shard_table *table, struct leat_str *sql)
{
	leat_str_add(sql, "SELECT ");
	for (size_t i = 0; i < table->columns; i++) {
		const struct leat_shard_column *column = &table->column[i];

		leat_str_add(sql, i ? ", " : "");
		leat_str_add(sql, column->cast ? "CAST(" : "");
		leat_sql_quote(sql, column->name, '"');
		if (column->cast)
			leat_str_addf(sql, " AS %s%s)", column->cast, column->is_list ? "[]" : "");
	}
	leat_str_addf(sql, " FROM %s", leat_str_text(&table->from));
}
