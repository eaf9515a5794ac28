/* kind_sql.c - a table from other tables: one SELECT, run by `leat sql --step`
 *
 *	sql: clean.sql            # or the query itself
 *	key: [user, ts]
 *
 * The sources and steps that the query names as tables are what the step reads. $out is one Parquet file, sorted by
 * `key`. The text of the step becomes the normal form of the query (table/sql.h), which is what the key of an action
 * holds: an edit of comments or white space runs nothing.
 *
 *	check: {amount: [not null, 0..1e6], user: in users.id}
 *	checks: quarantine up to 0.1%
 *
 * With checks (table/checks.h), $out is a folder: kept.parquet, and rejects.jsonl with all rows that fail. */
#include <stdio.h>
#include <string.h>

#include "step/kind.h"
#include "step/project_read.h"
#include "table/checks.h"
#include "table/duckdb.h"
#include "table/sql.h"

enum { MAX_FILE = 1 << 20 };

static bool
is_file(const char *text)
{
	size_t len = strlen(text);

	return len > 4 && !strcmp(text + len - 4, ".sql") && !strpbrk(text, " \t\r\n");
}

/* *query is the text of the file, or NULL if the text is the query itself. */
static enum leat_status
load_file(const struct leat_step *step, const struct leat_step_names *names, char **query, size_t *len,
          struct leat_err *err)
{
	enum leat_status status;
	char *path;

	*query = NULL;
	if (!is_file(step->text))
		return LEAT_OK;
	if (!names->folder)
		return leat_fail(err, LEAT_SPEC, "there is no folder to look for '%s' in", step->text);
	path = *step->text == '/' ? leat_strdup(names->mem, step->text)
	                          : leat_asprintf(names->mem, "%s/%s", names->folder, step->text);
	if (!path)
		return leat_fail_mem(err, names->mem, strlen(step->text), "a path");
	status = leat_project_load(names->mem, path, MAX_FILE, query, len, err);
	leat_free(names->mem, path);
	if (status == LEAT_OK && memchr(*query, '\0', *len))
		status = leat_fail(err, LEAT_SPEC, "'%s' is not a text", step->text);
	return status;
}

/* ---- tables ---- */

static enum leat_status
add_table(struct leat_step *step, const struct leat_step_names *names, const struct leat_sql_table *table,
          struct leat_err *err)
{
	const char *known = table->is_qualified ? NULL : leat_step_known_name(names, table->name);

	if (known && !strcmp(known, step->name))
		return table->is_with ? LEAT_OK : leat_fail(err, LEAT_SPEC, "step '%s' reads itself", step->name);
	if (!known && table->is_with)
		return LEAT_OK;
	if (table->is_qualified)
		return leat_fail(err, LEAT_SPEC,
		                 "line %zu: tables have no schema here; write the name of a source or step "
		                 "instead of %s",
		                 table->line, table->name);
	if (!known) /* fails later, with the nearest name */
		known = leat_text_keep(names->text, table->name, strlen(table->name));
	return known ? leat_step_add_edge(step, names, known, err)
	             : leat_fail_mem(err, names->mem, strlen(table->name), "the name of a table");
}

/* The tables of `in TABLE.column` are read, too. */
static enum leat_status
read_checks(struct leat_step *step, const struct leat_step_names *names, struct leat_err *err)
{
	enum leat_status status = LEAT_OK;
	struct leat_checks checks;

	leat_checks_init(&checks, names->mem);
	for (size_t i = 0; step->check && step->check[i] && status == LEAT_OK; i++)
		status = leat_checks_add_line(&checks, step->check[i], err);
	for (size_t i = 0; i < checks.count && status == LEAT_OK; i++) {
		const struct leat_check *one = &checks.check[i];
		const struct leat_sql_table table = {.name = one->text, .line = 1};

		if (one->kind == LEAT_CHECK_IN)
			status = add_table(step, names, &table, err);
	}
	leat_checks_free(&checks);
	return status;
}

static enum leat_status
take_query(struct leat_step *step, const struct leat_step_names *names, const struct leat_sql *sql,
           struct leat_err *err)
{
	static const char *const no_code[] = {NULL};
	enum leat_status status = LEAT_OK;

	if (sql->file)
		return leat_fail(
			err, LEAT_SPEC,
			"line %zu: %s reads what is not declared; name the file under 'sources:', and read it by that "
			"name",
			sql->file_line, sql->file);
	for (size_t i = 0; i < sql->tables && status == LEAT_OK; i++)
		status = add_table(step, names, &sql->table[i], err);
	if (status == LEAT_OK && !(step->text = leat_text_keep(names->text, sql->text, strlen(sql->text))))
		status = leat_fail_mem(err, names->mem, strlen(sql->text), "a query");
	step->code = no_code; /* it sees tables and nothing else */
	if (status == LEAT_OK)
		status = read_checks(step, names, err);
	if (!*step->suffix && !step->check)
		step->suffix = ".parquet";
	return status;
}

static enum leat_status
read_query(struct leat_step *step, const struct leat_step_names *names, struct leat_err *err)
{
	struct leat_sql sql = {0};
	size_t len = strlen(step->text);
	const char *file = step->text;
	char *query;
	enum leat_status status = load_file(step, names, &query, &len, err);

	if (status == LEAT_OK)
		status = leat_sql_read(&sql, names->mem, query ? query : step->text, len, err);
	if (status == LEAT_OK)
		status = take_query(step, names, &sql, err);
	if (status != LEAT_OK && query)
		leat_err_in(err, "%s", file);
	leat_sql_free(&sql);
	leat_free(names->mem, query);
	return status;
}

static enum leat_status
check(const struct leat_step *step, struct leat_err *err)
{
	if (!step->key || !step->key[0])
		return leat_fail(
			err, LEAT_SPEC,
			"step '%s' needs 'key: [columns]', the columns that tell its rows apart; they are checked, and "
			"rows are sorted by them",
			step->name);
	if (step->check && *step->suffix)
		return leat_fail(err, LEAT_SPEC,
		                 "the result of step '%s' is a folder, because it has checks; it has no suffix",
		                 step->name);
	if (!step->check && strcmp(step->suffix, ".parquet"))
		return leat_fail(err, LEAT_SPEC, "the result of step '%s' is a Parquet file, so its suffix is .parquet",
		                 step->name);
	if (step->params)
		return leat_fail(err, LEAT_SPEC, "a query has no parameters; write the value of '%s' into it",
		                 step->param[0].name);
	if (*step->feed || step->resume)
		return leat_fail(err, LEAT_SPEC, "'%s' is for commands, and step '%s' has 'sql'",
		                 *step->feed ? "feed" : "resume", step->name);
	if (*step->checks && !step->check)
		return leat_fail(err, LEAT_SPEC, "step '%s' has 'checks', but no 'check' that says what must hold",
		                 step->name);
	return LEAT_OK;
}

/* ---- checks of the result ---- */

static void
add_checks(const struct leat_step *step, struct leat_str *command)
{
	for (size_t i = 0; step->check && step->check[i]; i++) {
		leat_str_add(command, " --check ");
		leat_str_add_word(command, step->check[i]);
	}
	if (!*step->checks)
		return;
	leat_str_add(command, " --action ");
	leat_str_add_word(command, step->checks);
}

/* ---- the command ---- */

/* The version of DuckDB is in the key; threads and memory are not: the result does not depend on them. */
static enum leat_status
command(const struct leat_step *step, struct leat_str *text, struct leat_err *err)
{
	enum leat_status status = leat_duckdb_load(err);

	if (status != LEAT_OK)
		return status;
	leat_str_addf(text, "exec \"$LEAT_COMMAND\" sql --step --duckdb %s", leat_duckdb_version());
	for (size_t i = 0; step->key[i]; i++) {
		leat_str_add(text, " --key ");
		leat_str_add_word(text, step->key[i]);
	}
	add_checks(step, text);
	for (size_t i = 0; i < step->edges; i++)
		leat_str_addf(text, " --table %s=\"$%s\"", step->edge[i].name, step->edge[i].name);
	leat_str_add(text, " --threads \"$cpus\" ${LEAT_MEMORY:+--memory $LEAT_MEMORY} --output \"$out\" -- \\\n");
	leat_str_add_word(text, step->text);
	return LEAT_OK;
}

const struct leat_step_kind leat_step_kind_sql = {
	.name = "sql",
	.version = 1,
	.value = "a SELECT, or the name of a .sql file",
	.doc = "Make a Parquet table from the sources and steps that a query names, sorted by `key`.",
	.read = read_query,
	.check = check,
	.command = command,
};
