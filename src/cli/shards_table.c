/* shards_table.c - the table that `leat shards` reads: its files, columns and parts */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/names.h"
#include "cli/shards.h"
#include "store/set.h"

enum { MAX_SQL = 256 << 20, MAGIC = 4, MIN_PARQUET = 12, MAX_PARTS = 1000 };

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

static enum leat_status
add_file(void *arg, const char *path, struct leat_err *err)
{
	return add_pattern(arg, path, true, err);
}

static enum leat_status
add_folder(struct patterns *p, const char *folder, struct leat_err *err)
{
	size_t before = p->count;
	enum leat_status status = leat_table_files(folder, add_file, p, err);

	if (status == LEAT_OK && p->count == before)
		status = leat_fail(err, LEAT_DATA, "there is no file NAME.parquet in the folder '%s'", folder);
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
	if (leat_what_is(store, uri) == LEAT_IS_FOLDER) {
		char path[PATH_MAX];

		table->is_features |= leat_is_features_folder(uri, path);
		status = add_folder(p, uri, err);
	} else {
		status = add_pattern(p, operand, leat_what_is(store, uri) == LEAT_IS_OBJECT, err);
	}
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
		leat_free(table->mem, table->column[i].type);
	}
	leat_free(table->mem, table->column);
	leat_free(table->mem, table->part_column);
	leat_str_free(&table->from);
	leat_files_close(table->files);
	leat_stores_close(&table->stores);
	*table = (struct leat_shard_table){0};
}

/* ---- columns ---- */

/* Types that only exact formats have. */
static void
convert_type(struct leat_shard_column *column, enum leat_column_kind kind, const char *cast)
{
	column->kind = kind;
	column->cast = cast;
}

/* Types without a layout of ours that have an obvious other one. */
static void
choose_other(struct leat_shard_column *column)
{
	if (!strncmp(column->type, "UUID", strlen("UUID")) || !strncmp(column->type, "ENUM", strlen("ENUM")))
		convert_type(column, LEAT_COLUMN_TEXT, "VARCHAR");
	else if (!strncmp(column->type, "TIMESTAMP", strlen("TIMESTAMP"))) /* of seconds, or nanoseconds */
		convert_type(column, LEAT_COLUMN_TIMESTAMP, "TIMESTAMP");
}

static enum leat_feature_kind
feature_of(enum leat_column_kind kind)
{
	switch (kind) {
	case LEAT_COLUMN_FLOAT:
	case LEAT_COLUMN_DOUBLE:
		return LEAT_FEATURE_FLOAT;
	case LEAT_COLUMN_TEXT:
	case LEAT_COLUMN_BLOB:
		return LEAT_FEATURE_BYTES;
	default:
		return LEAT_FEATURE_INT64;
	}
}

/* Bytes of a value in DuckDB's layout; 0: text. */
static size_t
size_of(const struct leat_shard_column *column)
{
	switch (column->kind) {
	case LEAT_COLUMN_BOOL:
	case LEAT_COLUMN_INT8:
	case LEAT_COLUMN_UINT8:
		return 1;
	case LEAT_COLUMN_INT16:
	case LEAT_COLUMN_UINT16:
		return 2;
	case LEAT_COLUMN_INT32:
	case LEAT_COLUMN_UINT32:
	case LEAT_COLUMN_FLOAT:
	case LEAT_COLUMN_DATE:
		return 4;
	case LEAT_COLUMN_INT128:
		return 16;
	case LEAT_COLUMN_DECIMAL:
		return column->width <= 4 ? 2 : column->width <= 9 ? 4 : column->width <= 18 ? 8 : 16;
	case LEAT_COLUMN_TEXT:
	case LEAT_COLUMN_BLOB:
		return 0;
	default:
		return 8;
	}
}

/* The layout of its numbers in records. */
static void
choose_size(const struct leat_shard_format *format, struct leat_shard_column *column)
{
	column->size = size_of(column);
	if (format == &leat_shard_tfrecord && column->size)
		column->size = feature_of(column->kind) == LEAT_FEATURE_FLOAT ? sizeof(float) : sizeof(int64_t);
	else if (!format->exact && column->kind == LEAT_COLUMN_DATE)
		column->size = sizeof(int64_t); /* microseconds, as of other times */
}

static bool
has_layout(enum leat_column_kind kind)
{
	return kind != LEAT_COLUMN_OTHER && kind != LEAT_COLUMN_LIST && kind != LEAT_COLUMN_ARRAY &&
	       kind != LEAT_COLUMN_STRUCT;
}

/* Says why the format cannot hold the column. */
static enum leat_status
check_type(const struct leat_shard_format *format, const struct leat_shard_column *column, struct leat_err *err)
{
	bool text = has_layout(column->kind) && !column->size;

	if (!has_layout(column->kind))
		return leat_fail(err, LEAT_DATA,
		                 "column '%s' is %s, which %s cannot hold; CAST it in SQL, or leave it out",
		                 column->name, column->type, format->holder);
	if (text && format->no_texts)
		return leat_fail(err, LEAT_DATA,
		                 "column '%s' is %s, and %s holds numbers only; number its values with the feature "
		                 "'vocab' or in SQL, leave it out, or choose another --format",
		                 column->name, column->type, format->holder);
	if (text && column->is_list && format->no_text_lists)
		return leat_fail(err, LEAT_DATA,
		                 "column '%s' is %s, and %s has no lists of text; join them with array_to_string in "
		                 "SQL, leave it out, or choose another --format",
		                 column->name, column->type, format->holder);
	return LEAT_OK;
}

static enum leat_status
choose_column(const struct leat_shard_format *format, struct leat_shard_column *column, struct leat_err *err)
{
	struct leat_row_feature before = column->feature;
	enum leat_status status;

	if (column->kind == LEAT_COLUMN_INT128 && !format->exact)
		convert_type(column, LEAT_COLUMN_INT64, "BIGINT");
	else if (column->kind == LEAT_COLUMN_DECIMAL && !format->exact)
		convert_type(column, LEAT_COLUMN_DOUBLE, "DOUBLE");
	else if (column->kind == LEAT_COLUMN_OTHER)
		choose_other(column);
	column->is_double = column->kind == LEAT_COLUMN_DOUBLE;
	choose_size(format, column);
	status = check_type(format, column, err);
	if (status != LEAT_OK)
		return status;
	status = leat_row_feature_init(&column->feature, before.key, feature_of(column->kind), before.mem, err);
	leat_row_feature_free(&before);
	column->name = column->feature.key;
	return status;
}

static enum leat_status
set_column(struct leat_shard_table *table, struct leat_shard_column *column, const struct leat_column_type *type,
           const char *name, struct leat_err *err)
{
	enum leat_status status;

	*column = (struct leat_shard_column){.length = SIZE_MAX};
	column->is_array = type->kind == LEAT_COLUMN_ARRAY;
	column->is_list = type->kind == LEAT_COLUMN_LIST || column->is_array;
	if (column->is_array && table->format->dense)
		column->length = (size_t)type->size;
	if (column->is_list)
		type = &type->children[0];
	column->kind = type->kind;
	column->width = type->width;
	column->scale = type->scale;
	status = leat_row_feature_init(&column->feature, name, LEAT_FEATURE_BYTES, table->mem, err);
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
		const char *name = leat_query_name(query, i);

		if (!*name) {
			status = leat_fail(err, LEAT_DATA, "column %zu has no name, which a feature needs", i + 1);
			break;
		}
		table->columns = i + 1;
		status = set_column(table, &table->column[i], leat_query_type(query, i), name, err);
	}
	leat_query_close(query);
	return status;
}

/* Texts of the one column of a query. */
static enum leat_status
each_text(struct leat_tables *tables, const char *sql,
          enum leat_status (*visit)(void *arg, size_t row, const char *text, struct leat_err *err), void *arg,
          struct leat_mem *mem, struct leat_err *err)
{
	struct leat_query *query = NULL;
	enum leat_status status = leat_query_open(&query, tables, sql, err);
	struct leat_chunk chunk;

	for (size_t first = 0; status == LEAT_OK; first += chunk.rows) {
		status = leat_query_next(query, &chunk, err);
		if (status != LEAT_OK || !chunk.rows)
			break;
		for (size_t row = 0; row < chunk.rows && status == LEAT_OK; row++) {
			bool null = leat_vector_is_null(&chunk.columns[0], row);
			size_t len = 0;
			const char *at = null ? NULL : leat_vector_text(&chunk.columns[0], row, &len);
			char *text = at ? leat_asprintf(mem, "%.*s", (int)len, at) : NULL;

			if (at && !text)
				status = leat_fail_mem(err, mem, len, "a text");
			else
				status = visit(arg, first + row, text, err);
			leat_free(mem, text);
		}
	}
	leat_query_close(query);
	return status;
}

static enum leat_status
set_type(void *arg, size_t row, const char *text, struct leat_err *err)
{
	struct leat_shard_table *table = arg;

	if (row >= table->columns)
		return LEAT_OK;
	table->column[row].type = leat_strdup(table->mem, text ? text : "");
	return table->column[row].type ? LEAT_OK : leat_fail_mem(err, table->mem, 64, "the columns of a table");
}

static struct leat_shard_column *
find_column(struct leat_shard_table *table, const char *name)
{
	for (size_t i = 0; i < table->columns; i++)
		if (!strcmp(table->column[i].name, name))
			return &table->column[i];
	return NULL;
}

static enum leat_status
fail_unknown(const struct leat_shard_table *table, const char *name, const char *option, struct leat_err *err)
{
	const char **known = leat_alloc_array(table->mem, table->columns, sizeof(*known));
	enum leat_status status;

	for (size_t i = 0; known && i < table->columns; i++)
		known[i] = table->column[i].name;
	status = leat_fail_unknown(err, LEAT_INVALID,
	                           &(struct leat_unknown){.what = "column",
	                                                  .name = name,
	                                                  .owner = option,
	                                                  .known = known,
	                                                  .count = known ? table->columns : 0});
	leat_free(table->mem, known);
	return status;
}

/* Its values name the parts, so it is not one of the columns any more. */
static enum leat_status
take_part_column(struct leat_shard_table *table, const char *name, struct leat_err *err)
{
	bool usual = !*name;
	struct leat_shard_column *column = find_column(table, usual ? "split" : name);

	if (!strcmp(name, "none") || (usual && (!table->is_features || !column)))
		return LEAT_OK;
	if (!column)
		return fail_unknown(table, name, "the table", err);
	if (column->is_list)
		return leat_fail(err, LEAT_INVALID, "column '%s' is a list, and parts are values", name);
	if (table->columns == 1)
		return leat_fail(err, LEAT_DATA, "the table has no other column than '%s'", column->name);
	table->part_column = leat_strdup(table->mem, column->name);
	if (!table->part_column)
		return leat_fail_mem(err, table->mem, strlen(column->name), "the name of a column");
	leat_row_feature_free(&column->feature);
	leat_free(table->mem, column->type);
	table->columns--;
	memmove(column, column + 1, (size_t)(&table->column[table->columns] - column) * sizeof(*column));
	return LEAT_OK;
}

static enum leat_status
mark_images(struct leat_shard_table *table, const char *name, struct leat_err *err)
{
	struct leat_shard_column *column = *name ? find_column(table, name) : NULL;

	if (!*name)
		return LEAT_OK;
	if (!column)
		return fail_unknown(table, name, "the table", err);
	if (column->kind != LEAT_COLUMN_TEXT || column->is_list)
		return leat_fail(err, LEAT_INVALID, "column '%s' is %s, but --images needs one with names of files",
		                 name, column->type);
	if (table->format->no_texts)
		return leat_fail(err, LEAT_INVALID,
		                 "images vary in size, and %s needs values of one size; choose another --format",
		                 table->format->holder);
	column->is_image = table->has_images = true;
	return LEAT_OK;
}

enum leat_status
leat_shard_table_read(struct leat_shard_job *job, struct leat_err *err)
{
	struct leat_shard_table *table = &job->table;
	const char *from = leat_str_text(&table->from);
	char *columns = leat_asprintf(table->mem, "SELECT * FROM %s LIMIT 0", from);
	char *types = leat_asprintf(table->mem, "SELECT column_type FROM (DESCRIBE SELECT * FROM %s)", from);
	enum leat_status status = columns && types ? LEAT_OK : leat_fail_mem(err, table->mem, strlen(from), "a query");

	if (status == LEAT_OK)
		status = set_columns(table, job->tables, columns, err);
	if (status == LEAT_OK)
		status = each_text(job->tables, types, set_type, table, table->mem, err);
	if (status == LEAT_OK)
		status = take_part_column(table, job->p->parts, err);
	if (status == LEAT_OK)
		status = mark_images(table, job->p->images, err);
	for (size_t i = 0; i < table->columns && status == LEAT_OK; i++)
		status = choose_column(table->format, &table->column[i], err);
	leat_free(table->mem, columns);
	leat_free(table->mem, types);
	return status;
}

/* ---- parts ---- */

/* It becomes a folder. */
static enum leat_status
check_part_name(const struct leat_shard_table *table, const char *name, struct leat_err *err)
{
	if (!name)
		return leat_fail(err, LEAT_DATA,
		                 "column '%s', which names the parts, is NULL in some rows; leave them out in SQL, or "
		                 "use --parts none",
		                 table->part_column);
	if (!*name || *name == '.' || strchr(name, '/') || strlen(name) > 100)
		return leat_fail(err, LEAT_DATA,
		                 "column '%s' has the value '%.100s', which cannot be the name of a folder",
		                 table->part_column, name);
	return LEAT_OK;
}

static enum leat_status
add_part(void *arg, size_t row, const char *name, struct leat_err *err)
{
	struct leat_shard_job *job = arg;
	enum leat_status status = check_part_name(&job->table, name, err);

	if (status != LEAT_OK)
		return status;
	if (row == MAX_PARTS)
		return leat_fail(err, LEAT_LIMIT, "column '%s' has more than %d values, which are too many parts",
		                 job->table.part_column, MAX_PARTS);
	job->part[row].name = leat_strdup(job->mem, name);
	job->parts = row + 1;
	return job->part[row].name ? LEAT_OK : leat_fail_mem(err, job->mem, strlen(name), "the name of a part");
}

static enum leat_status
find_parts(struct leat_shard_job *job, struct leat_err *err)
{
	enum leat_status status;
	struct leat_str sql;

	job->part = leat_alloc_array(job->mem, job->table.part_column ? MAX_PARTS : 1, sizeof(*job->part));
	if (!job->part)
		return leat_fail_mem(err, job->mem, MAX_PARTS * sizeof(*job->part), "the parts of a table");
	if (!job->table.part_column) {
		job->parts = 1;
		return LEAT_OK;
	}
	leat_str_init(&sql, job->mem, MAX_SQL);
	leat_str_add(&sql, "SELECT DISTINCT CAST(");
	leat_sql_quote(&sql, job->table.part_column, '"');
	leat_str_addf(&sql, " AS VARCHAR) AS part FROM %s ORDER BY part NULLS FIRST LIMIT %d",
	              leat_str_text(&job->table.from), MAX_PARTS + 1);
	status = sql.failed ? leat_fail_mem(err, job->mem, sql.len, "a query")
	                    : each_text(job->tables, leat_str_text(&sql), add_part, job, job->mem, err);
	leat_str_free(&sql);
	return status;
}

static void
add_source(const struct leat_shard_table *table, const struct leat_shard_part *part, struct leat_str *sql)
{
	leat_str_addf(sql, " FROM %s", leat_str_text(&table->from));
	if (!part->name)
		return;
	leat_str_add(sql, " WHERE CAST(");
	leat_sql_quote(sql, table->part_column, '"');
	leat_str_add(sql, " AS VARCHAR) = ");
	leat_sql_quote(sql, part->name, '\'');
}

static enum leat_status
count_part(struct leat_shard_job *job, struct leat_shard_part *part, struct leat_err *err)
{
	enum leat_status status;
	struct leat_str sql;
	int64_t rows = 0;

	leat_str_init(&sql, job->mem, MAX_SQL);
	leat_str_add(&sql, "SELECT count(*)");
	add_source(&job->table, part, &sql);
	status = sql.failed ? leat_fail_mem(err, job->mem, sql.len, "a query")
	                    : leat_query_int64(job->tables, leat_str_text(&sql), &rows, err);
	leat_str_free(&sql);
	part->read = part->rows = (uint64_t)rows;
	return status;
}

enum leat_status
leat_shard_table_divide(struct leat_shard_job *job, struct leat_err *err)
{
	enum leat_status status = find_parts(job, err);

	for (size_t i = 0; i < job->parts && status == LEAT_OK; i++)
		status = count_part(job, &job->part[i], err);
	return status;
}

void
leat_shard_table_query(const struct leat_shard_table *table, const struct leat_shard_part *part,
                       const struct leat_shard_column *only, struct leat_str *sql)
{
	leat_str_add(sql, "SELECT ");
	for (size_t i = 0, n = 0; i < table->columns; i++) {
		const struct leat_shard_column *column = &table->column[i];

		if (only && column != only)
			continue;
		leat_str_add(sql, n++ ? ", " : "");
		leat_str_add(sql, column->cast ? "CAST(" : "");
		leat_sql_quote(sql, column->name, '"');
		if (column->cast)
			leat_str_addf(sql, " AS %s%s)", column->cast, column->is_list ? "[]" : "");
	}
	add_source(table, part, sql);
}
