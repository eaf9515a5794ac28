/* sql_step.c - a query as a step of a build: `leat sql --step`
 *
 * Equal inputs give equal bytes, whatever the threads and the memory: what depends on the order of work is refused
 * (table/lint.h), rows are sorted by a key that tells them apart, and SQL reads the given tables and nothing else. */
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/array.h"
#include "base/names.h"
#include "cli/sql.h"
#include "cli/table_session.h"
#include "table/lint.h"

enum { SHOWN = 3 };

/* ---- tables ---- */

struct allowed {
	struct leat_mem *mem;
	char **path;
	size_t count, cap;
};

static enum leat_status
allow(struct allowed *allowed, const char *path, const char *end, struct leat_err *err)
{
	enum leat_status status =
		LEAT_GROW(allowed->mem, allowed->path, allowed->cap, allowed->count + 1, SIZE_MAX, "paths", err);

	if (status != LEAT_OK)
		return status;
	allowed->path[allowed->count] = leat_asprintf(allowed->mem, "%s%s", path, end);
	return allowed->path[allowed->count++] ? LEAT_OK : leat_fail_mem(err, allowed->mem, strlen(path), "a path");
}

/* DuckDB looks at where links lead to, so links in a folder have to be allowed one by one. Folders in it are slices. */
static enum leat_status
allow_folder(struct allowed *allowed, const char *path, int depth, struct leat_err *err)
{
	enum leat_status status = allow(allowed, path, "/", err);
	DIR *folder = status == LEAT_OK ? opendir(path) : NULL;
	struct dirent *entry;
	char inside[PATH_MAX];
	struct stat st;

	if (status == LEAT_OK && !folder)
		status = leat_fail_errno(err, errno, "cannot read the folder '%s'", path);
	while (status == LEAT_OK && (entry = readdir(folder)) != NULL) {
		if (*entry->d_name == '.' ||
		    snprintf(inside, sizeof(inside), "%s/%s", path, entry->d_name) >= (int)sizeof(inside) ||
		    stat(inside, &st))
			continue;
		if (S_ISDIR(st.st_mode) && depth > 0)
			status = allow_folder(allowed, inside, depth - 1, err);
		else if (entry->d_type == DT_LNK)
			status = allow(allowed, inside, "", err);
	}
	if (folder)
		closedir(folder);
	return status;
}

static enum leat_status
allow_tables(struct leat_sql_job *job, struct allowed *allowed, struct leat_err *err)
{
	const struct leat_strings *table = &job->params->table;
	enum leat_status status = LEAT_OK;
	struct stat st;

	for (size_t i = 0; i < table->count && status == LEAT_OK; i++) {
		const char *path = strchr(table->value[i], '=') + 1;

		if (!stat(path, &st) && S_ISDIR(st.st_mode))
			status = allow_folder(allowed, path, 1, err);
		else
			status = allow(allowed, path, "", err);
	}
	return status;
}

/* Is --output a folder? */
static bool
has_folder(const struct leat_sql_job *job)
{
	return job->params->check.count || *job->params->split;
}

static enum leat_status
confine(struct leat_sql_job *job, struct leat_err *err)
{
	struct allowed allowed = {.mem = job->mem};
	enum leat_status status = allow_tables(job, &allowed, err);

	if (status == LEAT_OK)
		status = allow(&allowed, job->params->output, has_folder(job) ? "/" : "", err);
	if (status == LEAT_OK)
		status = allow(&allowed, job->spill, "/", err);
	if (status == LEAT_OK)
		status = leat_tables_confine(job->tables, (const char *const *)allowed.path, allowed.count, err);
	for (size_t i = 0; i < allowed.count; i++)
		leat_free(job->mem, allowed.path[i]);
	leat_free(job->mem, allowed.path);
	return status;
}

/* CREATE VIEW name AS SELECT * FROM its files; `before` and `after` are around it. */
static enum leat_status
define(struct leat_sql_job *job, const char *text, const char *before, const char *after, struct leat_err *err)
{
	char *name = leat_strndup(job->mem, text, strcspn(text, "="));
	struct leat_str sql;
	enum leat_status status;

	if (!name)
		return leat_fail_mem(err, job->mem, strlen(text), "a name");
	leat_str_init(&sql, job->mem, SIZE_MAX);
	leat_str_add(&sql, before);
	leat_sql_quote(&sql, name, '"');
	leat_str_add(&sql, " AS SELECT * FROM ");
	status = leat_sql_add_file(&sql, text + strlen(name) + 1, err);
	leat_str_add(&sql, after);
	if (status == LEAT_OK && sql.failed)
		status = leat_fail_mem(err, job->mem, sql.len, "a query");
	if (status == LEAT_OK)
		status = leat_tables_run(job->tables, leat_str_text(&sql), err);
	if (status != LEAT_OK)
		leat_err_in(err, "table '%s'", name);
	leat_str_free(&sql);
	leat_free(job->mem, name);
	return status;
}

static enum leat_status
drop(struct leat_sql_job *job, const char *text, struct leat_err *err)
{
	char *name = leat_strndup(job->mem, text, strcspn(text, "="));
	struct leat_str sql;
	enum leat_status status;

	leat_str_init(&sql, job->mem, SIZE_MAX);
	leat_str_add(&sql, "DROP TABLE ");
	leat_sql_quote(&sql, name ? name : "", '"');
	status = name && !sql.failed ? leat_tables_run(job->tables, leat_str_text(&sql), err)
	                             : leat_fail_mem(err, job->mem, strlen(text), "a name");
	leat_str_free(&sql);
	leat_free(job->mem, name);
	return status;
}

/* The plan is looked at with empty tables: that of a CSV file cannot be written as JSON. */
static enum leat_status
define_tables(struct leat_sql_job *job, struct leat_err *err)
{
	const struct leat_strings *table = &job->params->table;
	enum leat_status status = LEAT_OK;

	for (size_t i = 0; i < table->count && status == LEAT_OK; i++)
		status = define(job, table->value[i], "CREATE TABLE ", " LIMIT 0", err);
	if (status == LEAT_OK)
		status = leat_sql_lint(job->tables, job->sql.text, err);
	for (size_t i = 0; i < table->count && status == LEAT_OK; i++)
		status = drop(job, table->value[i], err);
	for (size_t i = 0; i < table->count && status == LEAT_OK; i++)
		status = define(job, table->value[i], "CREATE VIEW ", "", err);
	return status;
}

/* ---- columns ---- */

static enum leat_status
check_key(const struct leat_columns *columns, const char *key, struct leat_err *err)
{
	for (size_t i = 0; i < columns->count; i++)
		if (!strcasecmp(columns->name[i], key))
			return LEAT_OK;
	return leat_fail_unknown(err, LEAT_INVALID,
	                         &(struct leat_unknown){.what = "column",
	                                                .name = key,
	                                                .owner = "the result",
	                                                .known = (const char *const *)columns->name,
	                                                .count = columns->count});
}

static enum leat_status
check_columns(const struct leat_columns *columns, const struct leat_strings *key, struct leat_err *err)
{
	enum leat_status status = LEAT_OK;

	for (size_t i = 0; i < columns->count; i++)
		for (size_t k = 0; k < i; k++)
			if (!strcasecmp(columns->name[i], columns->name[k]))
				return leat_fail(err, LEAT_INVALID,
				                 "two columns are called '%s'; rename one with AS, or name the "
				                 "columns you want",
				                 columns->name[i]);
	for (size_t i = 0; i < key->count && status == LEAT_OK; i++)
		status = check_key(columns, key->value[i], err);
	return status;
}

/* ---- the result ---- */

/* "a", "b" */
static void
add_keys(struct leat_str *sql, const struct leat_strings *key, const char *before, const char *after)
{
	for (size_t i = 0; i < key->count; i++) {
		leat_str_add(sql, i ? ", " : "");
		leat_str_add(sql, before);
		leat_sql_quote(sql, key->value[i], '"');
		leat_str_add(sql, after);
	}
}

static enum leat_status
write_result(struct leat_sql_job *job, struct leat_err *err)
{
	struct leat_str sql;
	enum leat_status status;

	leat_str_init(&sql, job->mem, SIZE_MAX);
	leat_str_addf(&sql, "COPY (SELECT * FROM (%s\n) AS leat_result ORDER BY ", job->sql.text);
	add_keys(&sql, &job->params->key, "", " ASC NULLS LAST");
	leat_str_add(&sql, ") TO ");
	leat_sql_quote(&sql, job->result, '\'');
	leat_str_add(&sql, " (FORMAT parquet, COMPRESSION zstd, ROW_GROUP_SIZE 122880)");
	status = sql.failed ? leat_fail_mem(err, job->mem, sql.len, "a query")
	                    : leat_tables_run(job->tables, leat_str_text(&sql), err);
	leat_str_free(&sql);
	return status;
}

/* ---- the key ---- */

/* Rows are sorted, so equal keys are side by side. One pass, in the order of the file. */
static void
add_pairs(struct leat_str *sql, const struct leat_sql_job *job)
{
	const struct leat_sql_params *p = job->params;

	leat_str_add(sql, "(SELECT *, row_number() OVER () AS leat_row");
	for (size_t i = 0; i < p->key.count; i++) {
		leat_str_add(sql, ", lag(");
		leat_sql_quote(sql, p->key.value[i], '"');
		leat_str_addf(sql, ") OVER () AS leat_last_%zu", i);
	}
	leat_str_add(sql, " FROM (SELECT ");
	add_keys(sql, &p->key, "", "");
	leat_str_add(sql, " FROM read_parquet(");
	leat_sql_quote(sql, job->result, '\'');
	leat_str_add(sql, "))) WHERE ");
}

static void
add_condition(struct leat_str *sql, const struct leat_sql_params *p, bool nulls)
{
	leat_str_add(sql, nulls ? "false" : "leat_row > 1");
	for (size_t i = 0; i < p->key.count; i++) {
		leat_str_add(sql, nulls ? " OR " : " AND ");
		leat_sql_quote(sql, p->key.value[i], '"');
		if (nulls)
			leat_str_add(sql, " IS NULL");
		else
			leat_str_addf(sql, " IS NOT DISTINCT FROM leat_last_%zu", i);
	}
}

/* "user=7, ts=2026-01-01; user=..." of the first rows that break the rule. */
static enum leat_status
show_rows(struct leat_sql_job *job, bool nulls, struct leat_str *shown, struct leat_err *err)
{
	const struct leat_sql_params *p = job->params;
	struct leat_query *query = NULL;
	struct leat_chunk chunk = {0};
	struct leat_str sql;
	enum leat_status status;

	leat_str_init(&sql, job->mem, SIZE_MAX);
	leat_str_add(&sql, "SELECT DISTINCT ");
	add_keys(&sql, &p->key, "CAST(", " AS VARCHAR)");
	leat_str_add(&sql, " FROM ");
	add_pairs(&sql, job);
	add_condition(&sql, p, nulls);
	leat_str_addf(&sql, " ORDER BY ALL LIMIT %d", SHOWN);
	status = sql.failed ? leat_fail_mem(err, job->mem, sql.len, "a query")
	                    : leat_query_open(&query, job->tables, leat_str_text(&sql), err);
	leat_str_free(&sql);
	while (status == LEAT_OK && (status = leat_query_next(query, &chunk, err)) == LEAT_OK && chunk.rows)
		for (size_t row = 0; row < chunk.rows; row++)
			for (size_t i = 0; i < p->key.count; i++) {
				const char *text = "NULL";
				size_t len = 4;

				if (!leat_vector_is_null(&chunk.columns[i], row))
					text = leat_vector_text(&chunk.columns[i], row, &len);
				leat_str_addf(shown, "%s%s=%.*s",
				              i            ? ", "
				              : shown->len ? "; "
				                           : "",
				              p->key.value[i], (int)(len < 60 ? len : 60), text);
			}
	leat_query_close(query);
	return status;
}

static enum leat_status
count_rows(struct leat_sql_job *job, bool nulls, int64_t *count, struct leat_err *err)
{
	struct leat_str sql;
	enum leat_status status;

	leat_str_init(&sql, job->mem, SIZE_MAX);
	leat_str_add(&sql, "SELECT count(*) FROM ");
	add_pairs(&sql, job);
	add_condition(&sql, job->params, nulls);
	status = sql.failed ? leat_fail_mem(err, job->mem, sql.len, "a query")
	                    : leat_query_int64(job->tables, leat_str_text(&sql), count, err);
	leat_str_free(&sql);
	return status;
}

/* Lists all rows whose key is NULL, or that share it with another row. */
static enum leat_status
reject(struct leat_sql_job *job, const struct leat_columns *columns, bool nulls, const char *keys, struct leat_err *err)
{
	const struct leat_sql_params *p = job->params;
	char *reason = leat_asprintf(job->mem, "the key (%s) is %s", keys, nulls ? "NULL" : "not unique");
	struct leat_str rows;
	enum leat_status status;

	if (!reason)
		return leat_fail_mem(err, job->mem, strlen(keys), "a reason");
	leat_str_init(&rows, job->mem, SIZE_MAX);
	leat_str_add(&rows, "SELECT * FROM (SELECT *, row_number() OVER () AS leat_row FROM read_parquet(");
	leat_sql_quote(&rows, job->result, '\'');
	leat_str_add(&rows, ")) WHERE ");
	if (nulls) {
		leat_str_add(&rows, "false");
		for (size_t i = 0; i < p->key.count; i++) {
			leat_str_add(&rows, " OR ");
			leat_sql_quote(&rows, p->key.value[i], '"');
			leat_str_add(&rows, " IS NULL");
		}
	} else {
		leat_str_add(&rows, "(");
		add_keys(&rows, &p->key, "", "");
		leat_str_add(&rows, ") IN (SELECT (");
		add_keys(&rows, &p->key, "", "");
		leat_str_add(&rows, ") FROM ");
		add_pairs(&rows, job);
		add_condition(&rows, p, false);
		leat_str_add(&rows, ")");
	}
	status = leat_sql_reject_rows(job, columns, &rows, reason, err);
	leat_str_free(&rows);
	leat_free(job->mem, reason);
	return status;
}

/* `nulls`: no column of the key may be NULL; else: no two rows may have the same. */
static enum leat_status
check_rows(struct leat_sql_job *job, const struct leat_columns *columns, bool nulls, struct leat_err *err)
{
	struct leat_str keys, shown;
	int64_t count = 0;
	enum leat_status status = count_rows(job, nulls, &count, err);

	if (status != LEAT_OK || count == 0)
		return status;
	leat_str_init(&keys, job->mem, 400);
	leat_str_init(&shown, job->mem, 1000);
	for (size_t i = 0; i < job->params->key.count; i++)
		leat_str_addf(&keys, "%s%s", i ? ", " : "", job->params->key.value[i]);
	status = show_rows(job, nulls, &shown, err);
	if (status == LEAT_OK)
		status = reject(job, columns, nulls, leat_str_text(&keys), err);
	if (status == LEAT_OK)
		status = leat_fail(
			err, LEAT_DATA,
			nulls ? "the key (%s) is NULL in %lld row%s, such as %s; filter them, or choose another key"
			      : "the key (%s) is not unique: %lld row%s have the same as another, such as %s; choose "
				"another key, or GROUP BY it",
			leat_str_text(&keys), (long long)count, leat_plural((unsigned long long)count),
			leat_str_text(&shown));
	leat_str_free(&keys);
	leat_str_free(&shown);
	return status;
}

/* ---- all of it ---- */

/* In the log, and as a metric that `leat diff` and the board show. */
static enum leat_status
report(struct leat_sql_job *job, size_t columns, struct leat_err *err)
{
	struct leat_str sql;
	int64_t rows = 0;
	enum leat_status status;
	FILE *metrics;

	leat_str_init(&sql, job->mem, SIZE_MAX);
	leat_str_add(&sql, "SELECT count(*) FROM read_parquet(");
	leat_sql_quote(&sql, job->result, '\'');
	leat_str_add(&sql, ")");
	status = leat_query_int64(job->tables, leat_str_text(&sql), &rows, err);
	leat_str_free(&sql);
	if (status != LEAT_OK)
		return status;
	printf("%lld row%s, %zu column%s\n", (long long)rows, leat_plural((unsigned long long)rows), columns,
	       leat_plural(columns));
	metrics = fopen("metrics.json", "we");
	if (metrics) {
		fprintf(metrics, "{\"rows\": %lld", (long long)rows);
		if (job->params->check.count)
			fprintf(metrics, ", \"rejected\": %llu", (unsigned long long)job->rejected);
		fprintf(metrics, "}\n");
		fclose(metrics);
	}
	return LEAT_OK;
}

/* A file that is not whole, or whose key is not one, is removed. */
static enum leat_status
make_result(struct leat_sql_job *job, const struct leat_columns *columns, struct leat_err *err)
{
	enum leat_status status;

	atomic_store(&job->phase, "running the query");
	status = write_result(job, err);
	atomic_store(&job->phase, "checking the key");
	if (status == LEAT_OK)
		status = check_rows(job, columns, true, err);
	if (status == LEAT_OK)
		status = check_rows(job, columns, false, err);
	atomic_store(&job->phase, "checking rows");
	if (status == LEAT_OK && job->params->check.count)
		status = leat_sql_check_result(job, columns, err);
	if (status == LEAT_OK)
		status = report(job, columns->count, err);
	if (status == LEAT_OK)
		leat_record_profile(job->tables, job->result, job->mem);
	if (status != LEAT_OK)
		unlink(job->result);
	return status;
}

static enum leat_status
check_version(const struct leat_sql_params *p, struct leat_err *err)
{
	const char *version = leat_duckdb_version();

	if (!*p->duckdb || !strcmp(p->duckdb, version))
		return LEAT_OK;
	return leat_fail(err, LEAT_UNSUPPORTED, "this is DuckDB %s, but the build began with %s; build again", version,
	                 p->duckdb);
}

/* A file; with checks, one in a folder. */
static enum leat_status
choose_result(struct leat_sql_job *job, struct leat_err *err)
{
	const char *output = job->params->output;
	bool folder = has_folder(job);

	job->result = leat_asprintf(job->mem, "%s%s", output, folder ? "/kept.parquet" : "");
	if (!job->result)
		return leat_fail_mem(err, job->mem, strlen(output), "a path");
	if (folder && mkdir(output, 0777) != 0)
		return leat_fail_errno(err, errno, "cannot make the folder '%s'", output);
	return LEAT_OK;
}

enum leat_status
leat_sql_run_step(struct leat_sql_job *job, struct leat_err *err)
{
	struct leat_columns columns = {0};
	enum leat_status status = check_version(job->params, err);

	if (status == LEAT_OK && job->sql.file)
		status = leat_fail(err, LEAT_INVALID, "line %zu: %s reads what is not declared", job->sql.file_line,
		                   job->sql.file);
	if (status == LEAT_OK)
		status = choose_result(job, err);
	if (status == LEAT_OK && *job->params->split)
		status = leat_sql_begin_split(job, err);
	if (status == LEAT_OK)
		status = confine(job, err);
	if (status == LEAT_OK)
		status = define_tables(job, err);
	if (status == LEAT_OK && *job->params->split)
		return leat_sql_split_result(job, err);
	if (status == LEAT_OK)
		status = leat_sql_check_by(job, err);
	if (status == LEAT_OK)
		status = leat_query_describe(job->tables, job->sql.text, &columns, err);
	if (status == LEAT_OK)
		status = check_columns(&columns, &job->params->key, err);
	if (status == LEAT_OK)
		status = make_result(job, &columns, err);
	leat_columns_free(&columns);
	return status;
}
