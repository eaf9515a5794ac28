/* sql_checks.c - the checks of a step's result; see sql.h
 *
 * The result is written already, so that checks read rows that stay the same. All rows that fail are listed in
 * rejects.jsonl, as those that loading a source rejects: `leat show STEP --rejects` prints both. If the step fails, the
 * build keeps that file and nothing else of the folder (cas/gc.h); the first rows are in its log, too. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/print.h"
#include "cli/sql.h"
#include "table/checks.h"

enum { LOGGED = 100 }; /* rows */

struct judging {
	struct leat_sql_job *job;
	const struct leat_columns *columns;
	struct leat_checks checks;
	struct leat_checked checked;
	struct leat_check_run run;
	struct leat_check_table *other;
	char **name;
	struct leat_str table, numbered, *other_sql;
};

/* ---- what is needed ---- */

static enum leat_status
read_checks(struct judging *j, struct leat_err *err)
{
	const struct leat_sql_params *p = j->job->params;
	enum leat_status status = leat_checks_set_action(&j->checks, p->action, err);

	for (size_t i = 0; i < p->check.count && status == LEAT_OK; i++)
		status = leat_checks_add_line(&j->checks, p->check.value[i], err);
	return status;
}

/* The tables of the step are views of the database. */
static enum leat_status
name_tables(struct judging *j, struct leat_err *err)
{
	const struct leat_strings *table = &j->job->params->table;
	struct leat_mem *mem = j->job->mem;

	j->other = leat_alloc_array(mem, table->count, sizeof(*j->other));
	j->other_sql = leat_alloc_array(mem, table->count, sizeof(*j->other_sql));
	j->name = leat_alloc_array(mem, table->count, sizeof(*j->name));
	if (!j->other || !j->other_sql || !j->name)
		return leat_fail_mem(err, mem, table->count * sizeof(*j->other_sql), "the tables");
	for (size_t i = 0; i < table->count; i++) {
		j->name[i] = leat_strndup(mem, table->value[i], strcspn(table->value[i], "="));
		leat_str_init(&j->other_sql[i], mem, SIZE_MAX);
		if (j->name[i])
			leat_sql_quote(&j->other_sql[i], j->name[i], '"');
		if (!j->name[i] || j->other_sql[i].failed)
			return leat_fail_mem(err, mem, strlen(table->value[i]), "the tables");
		j->other[i] = (struct leat_check_table){j->name[i], leat_str_text(&j->other_sql[i])};
	}
	leat_str_add(&j->table, "read_parquet(");
	leat_sql_quote(&j->table, j->job->result, '\'');
	leat_str_add(&j->table, ")");
	leat_str_addf(&j->numbered, "(SELECT *, row_number() OVER () AS leat_row FROM %s)", leat_str_text(&j->table));
	j->run = (struct leat_check_run){
		.tables = j->job->tables, .sql = leat_str_text(&j->table), .other = j->other, .others = table->count};
	return j->table.failed || j->numbered.failed ? leat_fail_mem(err, mem, j->numbered.len, "the tables") : LEAT_OK;
}

static void
end(struct judging *j)
{
	struct leat_mem *mem = j->job->mem;

	for (size_t i = 0; i < j->job->params->table.count; i++) {
		if (j->name)
			leat_free(mem, j->name[i]);
		if (j->other_sql)
			leat_str_free(&j->other_sql[i]);
	}
	leat_free(mem, j->name);
	leat_free(mem, j->other_sql);
	leat_free(mem, j->other);
	leat_str_free(&j->table);
	leat_str_free(&j->numbered);
	leat_checked_free(&j->checked);
	leat_checks_free(&j->checks);
}

/* ---- rows ---- */

static enum leat_status
run_sql(struct judging *j, struct leat_str *sql, struct leat_err *err)
{
	enum leat_status status = sql->failed ? leat_fail_mem(err, j->job->mem, sql->len, "a query")
	                                      : leat_tables_run(j->job->tables, leat_str_text(sql), err);

	leat_str_free(sql);
	return status;
}

/* All columns of `r` as a text of JSON. */
static void
add_raw(struct leat_str *sql, const struct leat_columns *columns)
{
	leat_str_add(sql, "CAST(to_json(struct_pack(");
	for (size_t i = 0; i < columns->count; i++) {
		leat_str_add(sql, i ? ", " : "");
		leat_sql_quote(sql, columns->name[i], '"');
		leat_str_add(sql, " := r.");
		leat_sql_quote(sql, columns->name[i], '"');
	}
	leat_str_add(sql, ")) AS VARCHAR) AS raw");
}

/* Values that a join lost are of no row: {"file": "events", "line": null, "reason": "lost: fails id: count as
 * events.id", "raw": "{\"id\":7}"} */
static enum leat_status
add_lost(struct judging *j, struct leat_str *sql, struct leat_err *err)
{
	enum leat_status status = LEAT_OK;

	for (size_t i = 0; i < j->checked.count && status == LEAT_OK; i++) {
		const struct leat_check *check = &j->checks.check[i];

		if (!j->checked.of[i].lost)
			continue;
		leat_str_add(sql, " UNION ALL SELECT ");
		leat_sql_quote(sql, check->table, '\'');
		leat_str_add(sql, ", NULL, 'lost: fails ' || ");
		leat_sql_quote(sql, check->name, '\'');
		leat_str_add(sql, ", CAST(to_json(struct_pack(");
		leat_sql_quote(sql, check->other, '"');
		leat_str_add(sql, " := lost)) AS VARCHAR) FROM (");
		status = leat_checks_add_lost(&j->checks, &j->run, i, sql, err);
		leat_str_add(sql, ")");
	}
	return status;
}

/* {"file": "result", "line": 17, "reason": "fails amount: 0..1e6", "raw": "{...}"}, in the order of rows. */
static enum leat_status
write_rejects(struct judging *j, const char *path, struct leat_err *err)
{
	struct leat_check_run numbered = j->run;
	struct leat_str sql;
	enum leat_status status;

	numbered.sql = leat_str_text(&j->numbered);
	leat_str_init(&sql, j->job->mem, SIZE_MAX);
	leat_str_add(&sql, "COPY (SELECT 'result' AS file, leat_row AS line, 'fails ' || leat_failed AS reason, ");
	add_raw(&sql, j->columns);
	leat_str_add(&sql, " FROM (");
	status = leat_checks_add_failing(&j->checks, &numbered, &j->checked, "leat_failed", &sql, err);
	leat_str_add(&sql, ") AS r");
	if (status == LEAT_OK)
		status = add_lost(j, &sql, err);
	leat_str_add(&sql, " ORDER BY line NULLS LAST, file, reason, raw) TO ");
	leat_sql_quote(&sql, path, '\'');
	leat_str_add(&sql, " (FORMAT json)");
	if (status == LEAT_OK)
		return run_sql(j, &sql, err);
	leat_str_free(&sql);
	return status;
}

/* The file of all rows is replaced by one of those that pass. */
static enum leat_status
take_out(struct judging *j, const char *path, struct leat_err *err)
{
	const struct leat_strings *key = &j->job->params->key;
	struct leat_str sql;
	enum leat_status status;

	leat_str_init(&sql, j->job->mem, SIZE_MAX);
	leat_str_add(&sql, "COPY (SELECT * FROM (");
	status = leat_checks_add_passing(&j->checks, &j->run, &sql, err);
	leat_str_add(&sql, ") ORDER BY ");
	for (size_t i = 0; i < key->count; i++) {
		leat_str_add(&sql, i ? ", " : "");
		leat_sql_quote(&sql, key->value[i], '"');
	}
	leat_str_add(&sql, ") TO ");
	leat_sql_quote(&sql, path, '\'');
	leat_str_add(&sql, " (FORMAT parquet, COMPRESSION zstd, ROW_GROUP_SIZE 122880)");
	if (status == LEAT_OK)
		status = run_sql(j, &sql, err);
	else
		leat_str_free(&sql);
	if (status == LEAT_OK && rename(path, j->job->result) != 0)
		status = leat_fail_errno(err, errno, "cannot replace '%s'", j->job->result);
	return status;
}

static void
log_rejects(const char *path)
{
	FILE *file = fopen(path, "re");
	char *line = NULL;
	size_t cap = 0;

	for (int i = 0; file && i < LOGGED && getline(&line, &cap, file) > 0; i++)
		fputs(line, stdout);
	free(line);
	if (file)
		fclose(file);
}

/* ---- keys ---- */

enum leat_status
leat_sql_reject_rows(struct leat_sql_job *job, const struct leat_columns *columns, const struct leat_str *rows,
                     const char *reason, struct leat_err *err)
{
	char *temp = leat_asprintf(job->mem, "%s/rejects.jsonl", job->spill);
	char *path = leat_asprintf(job->mem, "%s/rejects.jsonl", job->params->output);
	struct leat_str sql;
	enum leat_status status = LEAT_OK;

	leat_str_init(&sql, job->mem, SIZE_MAX);
	leat_str_add(&sql, "COPY (SELECT 'result' AS file, leat_row AS line, ");
	leat_sql_quote(&sql, reason, '\'');
	leat_str_add(&sql, " AS reason, ");
	add_raw(&sql, columns);
	leat_str_addf(&sql, " FROM (%s) AS r ORDER BY line) TO ", leat_str_text(rows));
	leat_sql_quote(&sql, temp ? temp : "", '\'');
	leat_str_add(&sql, " (FORMAT json)");
	if (!temp || !path || rows->failed || sql.failed)
		status = leat_fail_mem(err, job->mem, sql.len, "a query");
	if (status == LEAT_OK)
		status = leat_tables_run(job->tables, leat_str_text(&sql), err);
	if (status == LEAT_OK &&
	    (unlink(job->result) != 0 || (mkdir(job->params->output, 0777) != 0 && errno != EEXIST) ||
	     rename(temp, path) != 0))
		status = leat_fail_errno(err, errno, "cannot write '%s'", path);
	leat_str_free(&sql);
	leat_free(job->mem, temp);
	leat_free(job->mem, path);
	return status;
}

/* ---- all of it ---- */

static void
print_sentence(const struct judging *j)
{
	struct leat_str sentence;

	leat_str_init(&sentence, j->job->mem, 1 << 16);
	leat_checks_sentence(&j->checks, &j->checked, &sentence);
	if (sentence.len)
		leat_print_line(stdout, "%s", leat_str_text(&sentence));
	leat_str_free(&sentence);
}

static enum leat_status
judge(struct judging *j, const char *rejects, const char *kept, struct leat_err *err)
{
	enum leat_status status = leat_checks_run(&j->checks, &j->run, &j->checked, err);

	if (status == LEAT_OK)
		status = write_rejects(j, rejects, err);
	if (status != LEAT_OK)
		return status;
	status = leat_checks_verdict(&j->checks, &j->checked, err);
	if (status != LEAT_OK) {
		log_rejects(rejects);
		return status;
	}
	j->job->rejected = j->checked.failed;
	print_sentence(j);
	if (j->checks.what == LEAT_CHECKS_QUARANTINE && j->checked.failed)
		status = take_out(j, kept, err);
	return status;
}

enum leat_status
leat_sql_check_result(struct leat_sql_job *job, const struct leat_columns *columns, struct leat_err *err)
{
	struct judging j = {.job = job, .columns = columns};
	char *rejects = leat_asprintf(job->mem, "%s/rejects.jsonl", job->params->output);
	char *kept = leat_asprintf(job->mem, "%s/passing.parquet", job->params->output);
	enum leat_status status;

	leat_checks_init(&j.checks, job->mem);
	leat_str_init(&j.table, job->mem, SIZE_MAX);
	leat_str_init(&j.numbered, job->mem, SIZE_MAX);
	status = rejects && kept ? read_checks(&j, err) : leat_fail_mem(err, job->mem, 64, "a path");
	if (status == LEAT_OK)
		status = name_tables(&j, err);
	if (status == LEAT_OK)
		status = judge(&j, rejects, kept, err);
	end(&j);
	leat_free(job->mem, rejects);
	leat_free(job->mem, kept);
	return status;
}
