/* sql_split.c - rows into partitions, by a hash of a column; see sql.h
 *
 * One pass. With one thread, rows of a partition keep their order, and what is in one file does not depend on what is
 * in the others: so a file stays the same until its own rows change. DuckDB writes no file for a partition without
 * rows; those are written after it, with the columns and no rows. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/names.h"
#include "cli/sql.h"

/* Small, because each partition has one in memory. */
#define FORMAT "FORMAT parquet, COMPRESSION zstd, ROW_GROUP_SIZE 32768"

/* ---- types ---- */

/* Types whose values are equal if, and only if, their texts are. DOUBLE is none: 0.0 and -0.0 are equal. Two of one
 * class may be compared with each other. "": none. */
static const char *
class_of(const struct leat_column_type *type, char text[64])
{
	static const char *const texts[] = {"TIMESTAMP_S",
	                                    "TIMESTAMP_MS",
	                                    "TIMESTAMP_NS",
	                                    "VARCHAR",
	                                    "BLOB",
	                                    "BOOLEAN",
	                                    "DATE",
	                                    "TIME",
	                                    "TIMESTAMP",
	                                    "UUID",
	                                    "TIMESTAMP WITH TIME ZONE"};

	if ((type->kind >= LEAT_COLUMN_INT8 && type->kind <= LEAT_COLUMN_INT128) || !strcmp(type->name, "UHUGEINT"))
		return "whole numbers";
	if (type->kind == LEAT_COLUMN_DECIMAL) {
		snprintf(text, 64, "DECIMAL(..., %u)", type->scale);
		return text;
	}
	if (!strncmp(type->name, "ENUM", 4))
		return "VARCHAR";
	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++)
		if (!strcmp(type->name, texts[i]))
			return texts[i];
	return "";
}

static enum leat_status
read_class(const struct leat_columns *columns, const char *column, const char *table, char class[64],
           struct leat_err *err)
{
	for (size_t i = 0; i < columns->count; i++) {
		char text[64];
		const char *found;

		if (strcasecmp(columns->name[i], column) != 0)
			continue;
		found = class_of(&columns->type[i], text);
		snprintf(class, 64, "%s", found);
		if (*found)
			return LEAT_OK;
		return leat_fail(err, LEAT_INVALID,
		                 "%s cannot be split by '%s': it is %s, whose equal values may have two texts; CAST it "
		                 "to a whole number, text, DECIMAL, date or timestamp in a step before",
		                 table, column, columns->type[i].name);
	}
	return leat_fail_unknown(err, LEAT_INVALID,
	                         &(struct leat_unknown){.what = "column",
	                                                .name = column,
	                                                .owner = table,
	                                                .known = (const char *const *)columns->name,
	                                                .count = columns->count});
}

static enum leat_status
class_of_table(struct leat_sql_job *job, const char *table, const char *column, char class[64], struct leat_err *err)
{
	struct leat_columns columns = {0};
	struct leat_str sql;
	char owner[200];
	enum leat_status status;

	snprintf(owner, sizeof(owner), "table '%s'", table);
	leat_str_init(&sql, job->mem, SIZE_MAX);
	leat_str_add(&sql, "SELECT * FROM ");
	leat_sql_quote(&sql, table, '"');
	status = sql.failed ? leat_fail_mem(err, job->mem, sql.len, "a query")
	                    : leat_query_describe(job->tables, leat_str_text(&sql), &columns, err);
	leat_str_free(&sql);
	if (status == LEAT_OK)
		status = read_class(&columns, column, owner, class, err);
	leat_columns_free(&columns);
	return status;
}

enum leat_status
leat_sql_check_by(struct leat_sql_job *job, struct leat_err *err)
{
	const struct leat_strings *by = &job->params->by;
	char first[64] = "", class[64] = "";
	enum leat_status status = LEAT_OK;

	for (size_t i = 0; i < by->count && status == LEAT_OK; i++) {
		char *table = leat_strndup(job->mem, by->value[i], strcspn(by->value[i], "="));

		status = table ? class_of_table(job, table, strchr(by->value[i], '=') + 1, class, err)
		               : leat_fail_mem(err, job->mem, strlen(by->value[i]), "a name");
		leat_free(job->mem, table);
		if (i == 0)
			memcpy(first, class, sizeof(first));
		if (status == LEAT_OK && strcmp(first, class) != 0)
			status = leat_fail(
				err, LEAT_INVALID,
				"the columns of 'by' have values that are split in two ways: %s is of %s, %s of %s; "
				"CAST one of them in a step before",
				by->value[0], first, by->value[i], class);
	}
	return status;
}

/* ---- files ---- */

static enum leat_status
run(struct leat_sql_job *job, struct leat_str *sql, struct leat_err *err)
{
	enum leat_status status = sql->failed ? leat_fail_mem(err, job->mem, sql->len, "a query")
	                                      : leat_tables_run(job->tables, leat_str_text(sql), err);

	leat_str_free(sql);
	return status;
}

#define FOLDER "rows" /* inside of --output: DuckDB may write there, and removes nothing */

/* rows/leat_partition=7/data_0.parquet for each partition that has rows. */
static enum leat_status
write_partitions(struct leat_sql_job *job, struct leat_err *err)
{
	const struct leat_sql_params *p = job->params;
	struct leat_str sql;
	char folder[PATH_MAX];

	if (snprintf(folder, sizeof(folder), "%s/" FOLDER, p->output) >= PATH_MAX - 64)
		return leat_fail_errno(err, ENAMETOOLONG, "cannot write to '%s'", p->output);
	leat_str_init(&sql, job->mem, SIZE_MAX);
	leat_str_add(&sql, "COPY (SELECT *, ");
	leat_partition_sql(&sql, p->split, (unsigned)p->partitions);
	leat_str_addf(&sql, " AS leat_partition FROM (%s\n)) TO ", job->sql.text);
	leat_sql_quote(&sql, folder, '\'');
	leat_str_add(&sql, " (" FORMAT ", PARTITION_BY (leat_partition))");
	return run(job, &sql, err);
}

static enum leat_status
write_columns(struct leat_sql_job *job, struct leat_err *err)
{
	struct leat_str sql;
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/" LEAT_SPLIT_COLUMNS, job->params->output);
	leat_str_init(&sql, job->mem, SIZE_MAX);
	leat_str_addf(&sql, "COPY (SELECT * FROM (%s\n) LIMIT 0) TO ", job->sql.text);
	leat_sql_quote(&sql, path, '\'');
	leat_str_add(&sql, " (" FORMAT ")");
	return run(job, &sql, err);
}

static enum leat_status
name_partition(struct leat_sql_job *job, unsigned i, struct leat_err *err)
{
	const char *output = job->params->output;
	char from[PATH_MAX + 64], folder[PATH_MAX + 32], to[PATH_MAX];

	snprintf(folder, sizeof(folder), "%s/" FOLDER "/leat_partition=%u", output, i);
	snprintf(from, sizeof(from), "%s/data_0.parquet", folder);
	snprintf(to, sizeof(to), "%s/" LEAT_SPLIT_ROWS, output, i);
	if (access(folder, F_OK) != 0) /* it has no rows */
		return LEAT_OK;
	if (rename(from, to) != 0 || rmdir(folder) != 0)
		return leat_fail_errno(err, errno, "cannot write '%s'", to);
	return LEAT_OK;
}

/* Fails if DuckDB left a file there that is not known. */
static enum leat_status
remove_folder(struct leat_sql_job *job, struct leat_err *err)
{
	char folder[PATH_MAX];

	snprintf(folder, sizeof(folder), "%s/" FOLDER, job->params->output);
	if (rmdir(folder) == 0 || errno == ENOENT) /* no row at all */
		return LEAT_OK;
	return leat_fail_errno(err, errno, "cannot remove '%s'", folder);
}

/* Columns that could not be told from that of the partition, and types. */
static enum leat_status
check_columns(struct leat_sql_job *job, struct leat_err *err)
{
	struct leat_columns columns = {0};
	enum leat_status status = leat_query_describe(job->tables, job->sql.text, &columns, err);
	char class[64];

	if (status == LEAT_OK)
		status = read_class(&columns, job->params->split, "the table", class, err);
	for (size_t i = 0; i < columns.count && status == LEAT_OK; i++)
		if (!strcasecmp(columns.name[i], "leat_partition"))
			status = leat_fail(err, LEAT_INVALID, "a table with a column '%s' cannot be split; rename it",
			                   columns.name[i]);
	leat_columns_free(&columns);
	return status;
}

enum leat_status
leat_sql_begin_split(struct leat_sql_job *job, struct leat_err *err)
{
	char sql[200];

	snprintf(sql, sizeof(sql), "SET threads = 1; SET partitioned_write_max_open_files = %lld",
	         (long long)job->params->partitions + 1);
	return leat_tables_run(job->tables, sql, err);
}

enum leat_status
leat_sql_split_result(struct leat_sql_job *job, struct leat_err *err)
{
	enum leat_status status = check_columns(job, err);

	if (status == LEAT_OK)
		status = write_partitions(job, err);
	if (status == LEAT_OK)
		status = write_columns(job, err);
	for (unsigned i = 0; i < job->params->partitions && status == LEAT_OK; i++)
		status = name_partition(job, i, err);
	return status == LEAT_OK ? remove_folder(job, err) : status;
}
