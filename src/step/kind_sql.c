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
 *	by: {events: user, users: id}
 *	partitions: 64
 *
 * With `by`, the step is sliced: each partition of these tables (kind_partition.c) is a slice, if the query gives
 * the same rows then (table/partition.h).
 *
 * With checks (table/checks.h), $out is a folder: kept.parquet, and rejects.jsonl with all rows that fail. */
#include <stdio.h>
#include <string.h>

#include "step/kind.h"
#include "step/project_read.h"
#include "table/checks.h"
#include "table/duckdb.h"
#include "table/partition.h"
#include "table/sql.h"

enum { MAX_FILE = 1 << 20, DEFAULT_PARTITIONS = 64 };

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

/* The tables that checks name are read, too. */
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
		const struct leat_sql_table table = {.name = one->table, .line = 1};

		if (one->table)
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

/* ---- partitions ---- */

/* Tables by the names of what the step reads. */
static enum leat_status
name_tables(struct leat_step *step, const struct leat_step_names *names, const struct leat_sql *sql,
            struct leat_err *err)
{
	for (size_t i = 0; i < step->bys; i++) {
		const char *known = leat_step_known_name(names, step->by[i].name);
		bool is_read = false;

		for (size_t k = 0; known && k < sql->tables; k++)
			is_read |= !strcasecmp(sql->table[k].name, known);
		if (!is_read)
			return leat_fail(err, LEAT_SPEC, "'by' names the table '%s', but the query does not read it",
			                 step->by[i].name);
		for (size_t k = 0; k < i; k++)
			if (!strcmp(step->by[k].name, known))
				return leat_fail(err, LEAT_SPEC, "'by' names the table '%s' twice", known);
		step->by[i].name = known;
	}
	return LEAT_OK;
}

static enum leat_status
keep_carried(struct leat_step *step, const struct leat_step_names *names, const struct leat_carried *carried,
             struct leat_err *err)
{
	const char **kept = leat_text_array(names->text, carried->count + 1, sizeof(*kept));

	for (size_t i = 0; kept && i < carried->count; i++)
		if (!(kept[i] = leat_text_keep(names->text, carried->name[i], strlen(carried->name[i]))))
			kept = NULL;
	step->carried = kept;
	return kept ? LEAT_OK : leat_fail_mem(err, names->mem, carried->count, "the columns of a query");
}

/* As many digits for all, so that their names are in order: 00, 01, ... 63. */
static const char **
name_partitions(unsigned partitions, struct leat_project_text *text)
{
	const char **value = leat_text_array(text, partitions, sizeof(*value));
	char name[16];
	int digits = snprintf(name, sizeof(name), "%u", partitions - 1);

	for (unsigned i = 0; value && i < partitions; i++) {
		snprintf(name, sizeof(name), "%0*u", digits, i);
		value[i] = leat_text_keep(text, name, strlen(name));
		if (!value[i])
			return NULL;
	}
	return value;
}

/* The partitions are slices. */
static enum leat_status
slice_partitions(struct leat_step *step, const struct leat_step_names *names, struct leat_err *err)
{
	unsigned count = step->partitions ? step->partitions : DEFAULT_PARTITIONS;
	struct leat_variable *variable;
	size_t *length;

	if (step->slices.variables)
		return leat_fail(err, LEAT_SPEC, "step '%s' has both 'by' and 'slices'; its slices are its partitions",
		                 step->name);
	variable = leat_text_array(names->text, 1, sizeof(*variable));
	length = leat_text_array(names->text, 1, sizeof(*length));
	if (variable)
		*variable = (struct leat_variable){
			.name = "partition", .value = name_partitions(count, names->text), .values = count};
	if (!variable || !variable->value || !length)
		return leat_fail_mem(err, names->mem, count * sizeof(*variable->value), "the partitions of a step");
	*length = step->partitions = count;
	step->slices =
		(struct leat_slices){.variable = variable, .variables = 1, .length = length, .axes = 1, .count = count};
	return LEAT_OK;
}

/* Can the query run in partitions, and which columns of its result tell them apart? */
static enum leat_status
read_partitions(struct leat_step *step, const struct leat_step_names *names, const char *query, struct leat_err *err)
{
	struct leat_split_table *split = leat_alloc_array(names->mem, step->bys, sizeof(*split));
	struct leat_carried carried = {0};
	enum leat_status status;

	if (!split)
		return leat_fail_mem(err, names->mem, step->bys * sizeof(*split), "the tables of a query");
	for (size_t i = 0; i < step->bys; i++)
		split[i] = (struct leat_split_table){step->by[i].name, step->by[i].value};
	status = leat_sql_partition(query, split, step->bys, &carried, names->mem, err);
	if (status == LEAT_OK)
		status = keep_carried(step, names, &carried, err);
	leat_carried_free(&carried);
	leat_free(names->mem, split);
	return status;
}

enum leat_status
leat_sql_step_read(struct leat_step *step, const struct leat_step_names *names, const char *query, size_t len,
                   struct leat_err *err)
{
	struct leat_sql sql = {0};
	enum leat_status status = leat_sql_read(&sql, names->mem, query, len, err);

	if (status == LEAT_OK)
		status = take_query(step, names, &sql, err);
	if (status == LEAT_OK && step->bys && (status = name_tables(step, names, &sql, err)) == LEAT_OK)
		status = read_partitions(step, names, query, err);
	leat_sql_free(&sql);
	return status;
}

static enum leat_status
read_query(struct leat_step *step, const struct leat_step_names *names, struct leat_err *err)
{
	size_t len = strlen(step->text);
	const char *file = step->text;
	char *query;
	enum leat_status status = load_file(step, names, &query, &len, err);

	if (status == LEAT_OK)
		status = leat_sql_step_read(step, names, query ? query : step->text, len, err);
	if (status != LEAT_OK && query)
		leat_err_in(err, "%s", file);
	if (status == LEAT_OK && step->bys)
		status = slice_partitions(step, names, err);
	leat_free(names->mem, query);
	return status;
}

/* ---- what does not fit together ---- */

static bool
is_carried(const struct leat_step *step, const char *column)
{
	for (size_t i = 0; step->carried[i]; i++)
		if (!strcasecmp(step->carried[i], column))
			return true;
	return false;
}

/* Each partition checks its own rows, so equal keys must be in one. */
static enum leat_status
check_key(const struct leat_step *step, struct leat_err *err)
{
	for (size_t i = 0; step->key && step->key[i]; i++)
		if (is_carried(step, step->key[i]))
			return LEAT_OK;
	if (step->carried[0])
		return leat_fail(
			err, LEAT_SPEC,
			"'key' of step '%s' must have the column that partitions differ by, '%s': each of them "
			"checks its own rows, and rows with the same key might be in two",
			step->name, step->carried[0]);
	return leat_fail(err, LEAT_SPEC,
	                 "the result of step '%s' has no column that its tables are split by; SELECT %s.%s as it is, "
	                 "and add it to 'key'",
	                 step->name, step->by[0].name, step->by[0].value);
}

static const char *
split_column(const struct leat_step *step, const char *table)
{
	for (size_t i = 0; table && i < step->bys; i++)
		if (!strcasecmp(step->by[i].name, table))
			return step->by[i].value;
	return NULL;
}

/* What is checked row by row, or in one partition, is the same for all of the table. */
static enum leat_status
check_check(const struct leat_step *step, const struct leat_check *check, struct leat_err *err)
{
	const char *split = split_column(step, check->table);
	bool carried = check->column && is_carried(step, check->column);

	if (check->kind == LEAT_CHECK_ROWS || check->kind == LEAT_CHECK_NULLS ||
	    (check->kind == LEAT_CHECK_COUNT && check->table && !split))
		return leat_fail(
			err, LEAT_SPEC,
			"'%s' is about all rows, and each partition sees its own; check it in a step without 'by' "
			"that reads '%s'",
			check->name, step->name);
	if (split && !(carried && !strcasecmp(split, check->other)))
		return leat_fail(err, LEAT_SPEC,
		                 "'%s' cannot be checked: a partition has only its own rows of '%s', split by '%s'; "
		                 "leave the table out of 'by', or check it in a step without 'by'",
		                 check->name, check->table, split);
	for (size_t i = 0; check->kind == LEAT_CHECK_UNIQUE && i < check->values; i++)
		carried |= is_carried(step, check->value[i]);
	if ((check->kind == LEAT_CHECK_UNIQUE || check->kind == LEAT_CHECK_COUNT) && !carried)
		return leat_fail(
			err, LEAT_SPEC,
			"'%s' cannot be checked in partitions: equal values may be in two; %s%s%scheck it in a step "
			"without 'by'",
			check->name, check->kind == LEAT_CHECK_UNIQUE ? "add 'with " : "",
			check->kind == LEAT_CHECK_UNIQUE ? step->carried[0] : "",
			check->kind == LEAT_CHECK_UNIQUE ? "', or " : "");
	return LEAT_OK;
}

static enum leat_status
check_checks(const struct leat_step *step, struct leat_err *err)
{
	struct leat_checks checks;
	struct leat_mem mem;
	enum leat_status status;

	leat_mem_init(&mem, SIZE_MAX);
	leat_checks_init(&checks, &mem);
	status = *step->checks ? leat_checks_set_action(&checks, step->checks, err) : LEAT_OK;
	if (status == LEAT_OK && checks.what != LEAT_CHECKS_FAIL && checks.most < 1)
		status = leat_fail(
			err, LEAT_SPEC,
			"'%s' is a share of all rows, and each partition sees its own; write '%s', and check the "
			"share in a step without 'by'",
			step->checks, checks.what == LEAT_CHECKS_WARN ? "warn" : "quarantine");
	if (status == LEAT_OK && step->drift)
		status = leat_fail(
			err, LEAT_SPEC,
			"'%s' is about all rows, and each partition sees its own; check it in a step without 'by' "
			"that reads '%s'",
			step->drift[0], step->name);
	for (size_t i = 0; step->check && step->check[i] && status == LEAT_OK; i++)
		status = leat_checks_add_line(&checks, step->check[i], err);
	for (size_t i = 0; i < checks.count && status == LEAT_OK; i++)
		status = check_check(step, &checks.check[i], err);
	leat_checks_free(&checks);
	return status;
}

static enum leat_status
check_by(const struct leat_step *step, struct leat_err *err)
{
	enum leat_status status = check_key(step, err);

	return status == LEAT_OK ? check_checks(step, err) : status;
}

enum leat_status
leat_sql_step_check(const struct leat_step *step, struct leat_err *err)
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
		return leat_fail(err, LEAT_SPEC, "'%s' is for commands, and step '%s' has '%s'",
		                 *step->feed ? "feed" : "resume", step->name, step->kind->name);
	if (step->partitions && !step->bys)
		return leat_fail(err, LEAT_SPEC,
		                 "step '%s' has 'partitions', but no 'by: {TABLE: COLUMN}' that says of what",
		                 step->name);
	if (*step->checks && !step->check && !step->drift)
		return leat_fail(err, LEAT_SPEC, "step '%s' has 'checks', but no 'check' that says what must hold",
		                 step->name);
	return step->bys ? check_by(step, err) : LEAT_OK;
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
enum leat_status
leat_sql_step_command(const struct leat_step *step, struct leat_str *text, struct leat_err *err)
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
		leat_str_addf(text, " --table %s=\"$%s\"",
		              step->edge[i].table ? step->edge[i].table : step->edge[i].name, step->edge[i].name);
	for (size_t i = 0; i < step->bys; i++) {
		leat_str_addf(text, " --by %s=", step->by[i].name);
		leat_str_add_word(text, step->by[i].value);
	}
	leat_str_add(text, " --threads \"$cpus\" ${LEAT_MEMORY:+--memory $LEAT_MEMORY} --output \"$out\" -- \\\n");
	leat_str_add_word(text, step->text);
	return LEAT_OK;
}

const struct leat_step_kind leat_step_kind_sql = {
	.name = "sql",
	.version = 1,
	.table = true,
	.value = "a SELECT, or the name of a .sql file",
	.doc = "Make a Parquet table from the sources and steps that a query names, sorted by `key`.",
	.read = read_query,
	.check = leat_sql_step_check,
	.command = leat_sql_step_command,
};
