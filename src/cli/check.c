/* check.c - `leat check`: does a table hold what is expected of it? */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "cli/command.h"
#include "cli/print.h"
#include "cli/steps.h"
#include "cli/table_session.h"
#include "table/checks.h"

struct params {
	struct leat_strings check, table;
	const char *action, *rejects, *output, *project;
	int64_t threads, memory;
	bool json;
};

static const struct leat_opt options[] = {
	LEAT_OPT_(struct params, check, LEAT_OPT_STRINGS, "", 0, 0, NULL,
                  "a check, such as 'amount: 0..1e6'; repeat it for more", LEAT_OPT_REPEATS),
	LEAT_STRING(struct params, action, "fail",
                    "on rows that fail: fail, quarantine or warn; 'quarantine up to 0.1%' fails above that share"),
	LEAT_OPT_(struct params, table, LEAT_OPT_STRINGS, "", 0, 0, NULL,
                  "NAME=TABLE: another table, for checks such as 'in NAME.column'; repeat it for more",
                  LEAT_OPT_REPEATS),
	LEAT_STRING(struct params, rejects, "",
                    "write the rows that fail to this Parquet file, with the names of the checks"),
	LEAT_STRING(struct params, output, "", "write the rows that pass to this Parquet file"),
	LEAT_BOOL(struct params, json, "false", "print the result as JSON"),
	LEAT_TABLE_OPTIONS(struct params),
	LEAT_PROJECT_OPTION(struct params),
	LEAT_OPT_END,
};

enum { MAX_TABLES = 64, MAX_SQL = 64 << 20 };

struct job {
	const struct leat_invocation *run;
	const struct params *params;
	struct leat_checks checks;
	struct leat_check_table table[MAX_TABLES];
	struct leat_str table_sql[MAX_TABLES], sql;
	size_t tables;
	struct leat_checked checked;
};

static enum leat_status
read_checks(struct job *job, struct leat_err *err)
{
	enum leat_status status = leat_checks_set_action(&job->checks, job->params->action, err);

	for (size_t i = 0; i < job->params->check.count && status == LEAT_OK; i++)
		status = leat_checks_add_line(&job->checks, job->params->check.value[i], err);
	if (status == LEAT_OK && !job->checks.count)
		status = leat_fail(err, LEAT_INVALID, "what should be checked? Use --check 'COLUMN: not null'");
	return status;
}

/* "users=raw/users.parquet" */
static enum leat_status
read_table(struct job *job, const char *text, struct leat_err *err)
{
	const char *equals = strchr(text, '=');
	struct leat_check_table *table = &job->table[job->tables];
	struct leat_str *sql = &job->table_sql[job->tables];
	enum leat_status status;

	if (!equals || equals == text)
		return leat_fail(err, LEAT_INVALID, "--table is NAME=TABLE, such as users=users.parquet, not '%s'",
		                 text);
	if (job->tables == MAX_TABLES)
		return leat_fail(err, LEAT_INVALID, "there are more than %d tables", MAX_TABLES);
	leat_str_init(sql, job->run->mem, MAX_SQL);
	job->tables++;
	status = leat_table_add(sql, equals + 1, job->params->project, err);
	table->name = leat_strndup(job->run->mem, text, (size_t)(equals - text));
	table->sql = leat_str_text(sql);
	if (status == LEAT_OK && (!table->name || sql->failed))
		status = leat_fail_mem(err, job->run->mem, strlen(text), "a table");
	return status;
}

/* ---- the result ---- */

static void
add_share(struct leat_str *cell, uint64_t part, uint64_t all)
{
	double percent = all ? 100 * (double)part / (double)all : 0;

	if (part)
		leat_str_addf(cell, percent >= 0.01 ? "%.3g %%" : "< 0.01 %%", percent);
}

static void
add_found(struct leat_str *cell, const struct leat_check_result *result)
{
	leat_str_add(cell, result->found);
	if (result->lost)
		leat_str_addf(cell, "%s%" PRIu64 " lost: %s%s", *result->found ? "; " : "", result->lost,
		              result->lost_found, result->lost > 3 ? ", ..." : "");
}

static enum leat_status
print_result(const struct job *job, struct leat_err *err)
{
	struct leat_table table;

	leat_table_init(&table, job->run->mem, 5);
	table.right[2] = table.right[3] = true;
	leat_str_add(leat_table_cell(&table), "check");
	leat_table_cell(&table);
	leat_str_add(leat_table_cell(&table), "rows");
	leat_table_cell(&table);
	leat_str_add(leat_table_cell(&table), "found");
	for (size_t i = 0; i < job->checked.count; i++) {
		const struct leat_check_result *result = &job->checked.of[i];

		leat_str_add(leat_table_cell(&table), job->checks.check[i].name);
		leat_str_add(leat_table_cell(&table), result->broken ? "FAILS" : "holds");
		if (result->rows)
			leat_str_addf(leat_table_cell(&table), "%" PRIu64, result->rows);
		else
			leat_table_cell(&table);
		add_share(leat_table_cell(&table), result->rows, job->checked.rows);
		add_found(leat_table_cell(&table), result);
	}
	return leat_table_print(&table, stdout, err);
}

static void
print_summary(const struct job *job)
{
	const char *where = job->params->rejects;

	printf("%" PRIu64 " row%s: %" PRIu64 " pass%s, %" PRIu64 " fail%s\n", job->checked.rows,
	       leat_plural(job->checked.rows), job->checked.rows - job->checked.failed,
	       job->checked.rows - job->checked.failed == 1 ? "es" : "", job->checked.failed,
	       job->checked.failed == 1 ? "s" : "");
	if (*where && job->checked.failed)
		leat_print_line(stdout, "rows that fail are in '%s'", where);
}

static enum leat_status
print_json(const struct job *job, struct leat_err *err)
{
	struct leat_str out;
	enum leat_status status = LEAT_OK;

	leat_str_init(&out, job->run->mem, SIZE_MAX);
	leat_str_addf(&out, "{\"rows\": %" PRIu64 ", \"failed\": %" PRIu64 ", \"checks\": [", job->checked.rows,
	              job->checked.failed);
	for (size_t i = 0; i < job->checked.count; i++) {
		leat_str_addf(&out, "%s\n {\"check\": ", i ? "," : "");
		leat_str_add_json(&out, job->checks.check[i].name);
		leat_str_addf(&out, ", \"holds\": %s, \"rows\": %" PRIu64 ", \"found\": ",
		              job->checked.of[i].broken ? "false" : "true", job->checked.of[i].rows);
		leat_str_add_json(&out, job->checked.of[i].found);
		if (job->checked.of[i].lost)
			leat_str_addf(&out, ", \"lost\": %" PRIu64, job->checked.of[i].lost);
		leat_str_add(&out, "}");
	}
	leat_str_add(&out, "]}");
	if (out.failed)
		status = leat_fail_mem(err, job->run->mem, out.len, "the result");
	else if (puts(leat_str_text(&out)) < 0)
		status = leat_fail(err, LEAT_IO, "cannot write the result");
	leat_str_free(&out);
	return status;
}

/* ---- running ---- */

static enum leat_status
write_rows(struct job *job, const struct leat_check_run *run, bool failing, const char *path, struct leat_err *err)
{
	struct leat_str select;
	enum leat_status status;

	if (!*path)
		return LEAT_OK;
	leat_str_init(&select, job->run->mem, MAX_SQL);
	status = failing ? leat_checks_add_failing(&job->checks, run, &job->checked, "failed", &select, err)
	                 : leat_checks_add_passing(&job->checks, run, &select, err);
	if (status == LEAT_OK)
		status = leat_checks_copy(run->tables, &select, path, err);
	leat_str_free(&select);
	return status;
}

static enum leat_status
check_table(struct job *job, struct leat_tables *tables, struct leat_err *err)
{
	struct leat_check_run run = {
		.tables = tables, .sql = leat_str_text(&job->sql), .other = job->table, .others = job->tables};
	enum leat_status status = leat_checks_run(&job->checks, &run, &job->checked, err);

	if (status == LEAT_OK)
		status = write_rows(job, &run, true, job->params->rejects, err);
	if (status == LEAT_OK && leat_checks_verdict(&job->checks, &job->checked, NULL) == LEAT_OK)
		status = write_rows(job, &run, false, job->params->output, err);
	return status;
}

static enum leat_status
run_job(struct job *job, struct leat_err *err)
{
	struct leat_table_session session;
	enum leat_status status = read_checks(job, err);

	if (status == LEAT_OK)
		status = leat_table_add(&job->sql, job->run->operand[0], job->params->project, err);
	for (size_t i = 0; i < job->params->table.count && status == LEAT_OK; i++)
		status = read_table(job, job->params->table.value[i], err);
	if (status == LEAT_OK)
		status = leat_table_session_open(&session, job->params->threads, job->params->memory, err);
	if (status != LEAT_OK)
		return status;
	status = check_table(job, session.tables, err);
	status = leat_table_session_close(&session, status, err);
	if (status == LEAT_OK)
		status = job->params->json ? print_json(job, err) : print_result(job, err);
	if (status == LEAT_OK && !job->params->json)
		print_summary(job);
	return status == LEAT_OK ? leat_checks_verdict(&job->checks, &job->checked, err) : status;
}

static enum leat_status
run_check(const struct leat_invocation *run, struct leat_err *err)
{
	struct job *job = leat_alloc(run->mem, sizeof(*job));
	enum leat_status status;

	if (!job)
		return leat_fail_mem(err, run->mem, sizeof(*job), "the checks");
	job->run = run;
	job->params = run->params;
	leat_checks_init(&job->checks, run->mem);
	leat_str_init(&job->sql, run->mem, MAX_SQL);
	status = run_job(job, err);
	leat_checked_free(&job->checked);
	leat_checks_free(&job->checks);
	for (size_t i = 0; i < job->tables; i++) {
		leat_free(run->mem, (char *)(uintptr_t)job->table[i].name);
		leat_str_free(&job->table_sql[i]);
	}
	leat_str_free(&job->sql);
	leat_free(run->mem, job);
	return status;
}

const struct leat_command leat_command_check = {
	.name = "check",
	.summary = "Check the rows of a table: ranges, NULLs, keys, patterns",
	.operands = "TABLE",
	.min_operands = 1,
	.max_operands = 1,
	.help = "TABLE is a Parquet, CSV or JSON file, a pattern such as 'raw/*.parquet', or a step of\n"
		"leat.yaml. A check is a column and what must hold for it:\n\n"
		"  not null                nulls up to 5%       unique, unique with COLUMN, COLUMN\n"
		"  0..1e6, 0.., ..1e6      finite               2026-01-01..2026-12-31\n"
		"  one of A | B | C        matches [A-Z]{3}     length 1..20\n"
		"  in users.id             type double          count 1..10, count as events.id\n\n"
		"and for all rows: 'rows: 1..', 'rows: as events'.\n\n"
		"All rows are checked, and all that fail are counted. Exit status 1: the checks fail.",
	.example = "leat check events.parquet --check 'amount: 0..1e6' --check 'id: unique'\n"
		   "leat check clean --check 'user: in users.id' --table users=users.parquet\n"
		   "leat check raw.csv --check 'amount: not null' --action quarantine --rejects bad.parquet -o "
		   "good.parquet",
	.opts = options,
	.params_size = sizeof(struct params),
	.run = run_check,
};
