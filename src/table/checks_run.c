/* checks_run.c - judges a table by its checks: one query counts for all of them, others look for examples */
#include <inttypes.h>
#include <string.h>
#include <strings.h>

#include "base/opt.h"
#include "table/checks_inside.h"

enum { EXAMPLES = 3, EXAMPLE_LENGTH = 40, MAX_SQL = 64 << 20 };

static enum leat_status
sql_status(const struct leat_str *sql, struct leat_err *err)
{
	return sql->failed ? leat_fail_mem(err, sql->mem, sql->len, "the SQL of the checks") : LEAT_OK;
}

/* ---- conditions ---- */

/* Appends "CONDITION AS c0, ... FROM table AS t". */
static enum leat_status
add_conditions(const struct leat_checks *checks, const struct leat_check_columns *columns,
               const struct leat_check_run *run, struct leat_str *sql, struct leat_err *err)
{
	enum leat_status status = LEAT_OK;

	for (size_t i = 0; i < checks->count && status == LEAT_OK; i++) {
		leat_str_add(sql, i ? ", " : "");
		status = leat_check_add_condition(&checks->check[i], columns, run, sql, err);
		leat_str_addf(sql, " AS c%zu", i);
	}
	if (!checks->count)
		leat_str_add(sql, "false AS c0");
	leat_str_addf(sql, " FROM %s AS t", run->sql);
	return status;
}

/* "(c0 OR c2)": of the checks of rows. */
static void
add_any(const struct leat_checks *checks, struct leat_str *sql)
{
	leat_str_add(sql, "(false");
	for (size_t i = 0; i < checks->count; i++)
		if (leat_check_is_of_rows(&checks->check[i]))
			leat_str_addf(sql, " OR c%zu", i);
	leat_str_add(sql, ")");
}

/* Reads one row of whole numbers. */
static enum leat_status
read_counts(struct leat_tables *tables, const char *sql, uint64_t *count, size_t n, struct leat_err *err)
{
	struct leat_query *query = NULL;
	struct leat_chunk chunk = {0};
	enum leat_status status = leat_query_open(&query, tables, sql, err);

	if (status == LEAT_OK)
		status = leat_query_next(query, &chunk, err);
	if (status == LEAT_OK && (chunk.rows != 1 || leat_query_columns(query) != n))
		status = leat_fail(err, LEAT_INTERNAL, "a query of counts has %zu rows", chunk.rows);
	for (size_t i = 0; status == LEAT_OK && i < n; i++)
		count[i] = (uint64_t)((const int64_t *)chunk.columns[i].values)[0];
	leat_query_close(query);
	return status;
}

/* After a failure: which check does DuckDB not accept? It says why, but not where. */
static void
name_culprit(const struct leat_checks *checks, const struct leat_check_columns *columns,
             const struct leat_check_run *run, struct leat_err *err)
{
	bool found = false;

	for (size_t i = 0; i < checks->count && !found; i++) {
		struct leat_str sql;
		int64_t n;

		leat_str_init(&sql, checks->mem, MAX_SQL);
		leat_str_addf(&sql, "SELECT count(*) FROM (SELECT 1 FROM %s AS t WHERE ", run->sql);
		leat_check_add_condition(&checks->check[i], columns, run, &sql, NULL);
		leat_str_add(&sql, " LIMIT 1)");
		found = !sql.failed && leat_query_int64(run->tables, leat_str_text(&sql), &n, NULL) != LEAT_OK;
		leat_str_free(&sql);
		if (found)
			leat_err_in(err, "check '%s'", checks->check[i].name);
	}
}

static enum leat_status
count_rows(const struct leat_checks *checks, const struct leat_check_columns *columns, const struct leat_check_run *run,
           struct leat_checked *checked, struct leat_err *err)
{
	uint64_t *count = leat_alloc_array(checks->mem, checks->count + 2, sizeof(*count));
	enum leat_status status;
	struct leat_str sql;

	if (!count)
		return leat_fail_mem(err, checks->mem, checks->count, "the counts of checks");
	leat_str_init(&sql, checks->mem, MAX_SQL);
	leat_str_add(&sql, "SELECT count(*), count(*) FILTER (WHERE ");
	add_any(checks, &sql);
	leat_str_add(&sql, ")");
	for (size_t i = 0; i < checks->count; i++)
		leat_str_addf(&sql, ", count(*) FILTER (WHERE c%zu)", i);
	leat_str_add(&sql, " FROM (SELECT ");
	status = add_conditions(checks, columns, run, &sql, err);
	leat_str_add(&sql, ")");
	if (status == LEAT_OK)
		status = sql_status(&sql, err);
	if (status == LEAT_OK) {
		status = read_counts(run->tables, leat_str_text(&sql), count, checks->count + 2, err);
		if (status == LEAT_INVALID || status == LEAT_DATA)
			name_culprit(checks, columns, run, err);
	}
	checked->rows = count[0];
	checked->failed = count[1];
	for (size_t i = 0; i < checks->count; i++)
		checked->of[i].rows = count[i + 2];
	leat_str_free(&sql);
	leat_free(checks->mem, count);
	return status;
}

/* ---- examples ---- */

/* Appends the values of a query of one text column: "-3, 2000000". */
static enum leat_status
add_examples(struct leat_tables *tables, const char *sql, struct leat_str *out, struct leat_err *err)
{
	struct leat_query *query = NULL;
	struct leat_chunk chunk = {0};
	enum leat_status status = leat_query_open(&query, tables, sql, err);
	char shown[4 * EXAMPLE_LENGTH * 4 + 1];

	while (status == LEAT_OK && (status = leat_query_next(query, &chunk, err)) == LEAT_OK && chunk.rows)
		for (size_t row = 0; row < chunk.rows; row++) {
			const struct leat_vector *values = &chunk.columns[0];
			size_t len = 4;
			const char *text =
				leat_vector_is_null(values, row) ? "NULL" : leat_vector_text(values, row, &len);

			leat_str_addf(out, "%s%s", out->len ? ", " : "", leat_show(shown, sizeof(shown), text, len));
		}
	leat_query_close(query);
	return status;
}

static enum leat_status
find_examples(const struct leat_check *check, const struct leat_check_columns *columns,
              const struct leat_check_run *run, struct leat_str *out, struct leat_err *err)
{
	size_t column = 0;
	struct leat_str sql;
	enum leat_status status = leat_check_column_find(columns, check->column, &column, err);

	if (status != LEAT_OK)
		return status;
	leat_str_init(&sql, out->mem, MAX_SQL);
	leat_str_add(&sql, "SELECT substr(CAST(t.");
	leat_sql_quote(&sql, columns->name[column], '"');
	leat_str_addf(&sql, " AS VARCHAR), 1, %d) FROM %s AS t WHERE ", EXAMPLE_LENGTH, run->sql);
	status = leat_check_add_condition(check, columns, run, &sql, err);
	leat_str_addf(&sql, " GROUP BY 1 ORDER BY count(*) DESC, 1 LIMIT %d", EXAMPLES);
	if (status == LEAT_OK)
		status = sql_status(&sql, err);
	if (status == LEAT_OK)
		status = add_examples(run->tables, leat_str_text(&sql), out, err);
	leat_str_free(&sql);
	return status;
}

/* ---- judging ---- */

static bool
is_outside(uint64_t count, const struct leat_check *check)
{
	uint64_t low = 0, high = UINT64_MAX;

	/* The parser let only whole numbers of up to 18 digits pass. */
	for (const char *c = check->low ? check->low : ""; *c; c++)
		low = low * 10 + (uint64_t)(*c - '0');
	if (check->high)
		high = 0;
	for (const char *c = check->high ? check->high : ""; *c; c++)
		high = high * 10 + (uint64_t)(*c - '0');
	return count < low || count > high;
}

static enum leat_status
count_table(const struct leat_check *check, const struct leat_check_run *run, struct leat_mem *mem, uint64_t *rows,
            struct leat_err *err)
{
	const char *table = leat_check_table_sql(check, run, err);
	int64_t count = 0;
	struct leat_str sql;
	enum leat_status status;

	if (!table)
		return LEAT_INVALID;
	leat_str_init(&sql, mem, MAX_SQL);
	leat_str_addf(&sql, "SELECT count(*) FROM %s", table);
	status = sql_status(&sql, err);
	if (status == LEAT_OK)
		status = leat_query_int64(run->tables, leat_str_text(&sql), &count, err);
	*rows = (uint64_t)count;
	leat_str_free(&sql);
	return status;
}

/* Of the whole table: how many rows it has. */
static enum leat_status
judge_rows(const struct leat_check *check, const struct leat_check_run *run, const struct leat_checked *checked,
           struct leat_check_result *result, struct leat_str *found, struct leat_err *err)
{
	enum leat_status status = LEAT_OK;
	uint64_t rows;

	leat_str_addf(found, "%" PRIu64 " row%s", checked->rows, leat_plural(checked->rows));
	if (!check->table) {
		result->broken = is_outside(checked->rows, check);
		return LEAT_OK;
	}
	status = count_table(check, run, checked->mem, &rows, err);
	if (status != LEAT_OK)
		return status;
	result->broken = check->up_to ? checked->rows > rows : checked->rows != rows;
	leat_str_addf(found, ", and '%s' has %" PRIu64, check->table, rows);
	return LEAT_OK;
}

/* Values of the other table that no row has. */
static enum leat_status
find_lost(const struct leat_check *check, const struct leat_check_columns *columns, const struct leat_check_run *run,
          struct leat_checked *checked, struct leat_check_result *result, struct leat_err *err)
{
	struct leat_str lost, sql, found;
	int64_t count = 0;
	enum leat_status status;

	leat_str_init(&lost, checked->mem, MAX_SQL);
	leat_str_init(&sql, checked->mem, MAX_SQL);
	leat_str_init(&found, checked->mem, 4096);
	status = leat_check_add_lost(check, columns, run, &lost, err);
	leat_str_addf(&sql, "SELECT count(*) FROM (%s)", leat_str_text(&lost));
	if (status == LEAT_OK)
		status = sql_status(&sql, err);
	if (status == LEAT_OK)
		status = leat_query_int64(run->tables, leat_str_text(&sql), &count, err);
	result->lost = (uint64_t)count;
	leat_str_free(&sql);
	leat_str_init(&sql, checked->mem, MAX_SQL);
	leat_str_addf(&sql, "SELECT substr(CAST(lost AS VARCHAR), 1, %d) FROM (%s) ORDER BY lost LIMIT %d",
	              EXAMPLE_LENGTH, leat_str_text(&lost), EXAMPLES);
	if (status == LEAT_OK && count)
		status = sql_status(&sql, err);
	if (status == LEAT_OK && count)
		status = add_examples(run->tables, leat_str_text(&sql), &found, err);
	result->lost_found = leat_str_take(&found);
	leat_str_free(&found);
	leat_str_free(&lost);
	leat_str_free(&sql);
	return status;
}

/* Fills `found` with what is there instead, if the check is broken. */
static enum leat_status
judge(const struct leat_check *check, const struct leat_check_columns *columns, const struct leat_check_run *run,
      struct leat_checked *checked, struct leat_check_result *result, struct leat_err *err)
{
	enum leat_status status = LEAT_OK;
	struct leat_str found;
	size_t column = 0;

	if (check->column && (status = leat_check_column_find(columns, check->column, &column, err)) != LEAT_OK)
		return status;
	leat_str_init(&found, checked->mem, 4096);
	if (check->kind == LEAT_CHECK_ROWS) {
		status = judge_rows(check, run, checked, result, &found, err);
	} else if (check->kind == LEAT_CHECK_DRIFT) {
		result->broken = false;
	} else if (check->kind == LEAT_CHECK_TYPE) {
		result->broken = strcasecmp(columns->type[column].name, check->text) != 0;
		leat_str_add(&found, columns->type[column].name);
	} else if (check->kind == LEAT_CHECK_NULLS) {
		result->broken = (double)result->rows > check->share * (double)checked->rows;
		leat_str_addf(&found, "%.3g%% NULL",
		              checked->rows ? 100 * (double)result->rows / (double)checked->rows : 0);
	} else {
		result->broken = result->rows > 0;
		if (result->broken && check->kind != LEAT_CHECK_NOT_NULL)
			status = find_examples(check, columns, run, &found, err);
		if (status == LEAT_OK && check->kind == LEAT_CHECK_COUNT && check->table && !check->up_to)
			status = find_lost(check, columns, run, checked, result, err);
		result->broken |= result->lost > 0;
	}
	if (!leat_check_is_of_rows(check) || result->lost)
		checked->broken |= result->broken;
	if (!result->broken)
		leat_str_free(&found);
	result->found = leat_str_take(&found);
	leat_str_free(&found);
	if (status == LEAT_OK && !result->found)
		status = leat_fail_mem(err, checked->mem, 1, "an example");
	return status;
}

enum leat_status
leat_checks_run(const struct leat_checks *checks, const struct leat_check_run *run, struct leat_checked *checked,
                struct leat_err *err)
{
	struct leat_check_columns columns = {.mem = checks->mem};
	enum leat_status status;

	*checked = (struct leat_checked){.mem = checks->mem};
	checked->of = leat_alloc_array(checks->mem, checks->count, sizeof(*checked->of));
	if (!checked->of)
		return leat_fail_mem(err, checks->mem, checks->count * sizeof(*checked->of), "the results of checks");
	checked->count = checks->count;
	status = leat_check_columns_read(&columns, run->tables, run->sql, checks->mem, err);
	if (status == LEAT_OK)
		status = count_rows(checks, &columns, run, checked, err);
	for (size_t i = 0; i < checks->count && status == LEAT_OK; i++)
		status = judge(&checks->check[i], &columns, run, checked, &checked->of[i], err);
	leat_check_columns_free(&columns);
	return status;
}

void
leat_checked_free(struct leat_checked *checked)
{
	for (size_t i = 0; checked->of && i < checked->count; i++) {
		leat_free(checked->mem, checked->of[i].found);
		leat_free(checked->mem, checked->of[i].lost_found);
	}
	if (checked->mem)
		leat_free(checked->mem, checked->of);
	*checked = (struct leat_checked){0};
}

/* ---- the verdict ---- */

/* "2 lost (such as 7, 9)" */
static void
add_count(struct leat_str *out, uint64_t count, const char *what, const char *found)
{
	found = found ? found : "";
	leat_str_addf(out, "%" PRIu64 "%s%s%s%s", count, what, *found ? " (such as " : "", found, *found ? ")" : "");
}

void
leat_checks_sentence(const struct leat_checks *checks, const struct leat_checked *checked, struct leat_str *out)
{
	const char *separator = "";

	if (checked->failed) {
		leat_str_addf(out, "%" PRIu64 " of %" PRIu64 " row%s fail%s", checked->failed, checked->rows,
		              leat_plural(checked->rows), checked->rows == 1 ? "s" : "");
		separator = ": ";
	}
	for (size_t i = 0; i < checked->count; i++) {
		const struct leat_check_result *result = &checked->of[i];

		if (!result->broken)
			continue;
		leat_str_addf(out, "%s'%s' ", separator, checks->check[i].name);
		separator = ", ";
		if (!leat_check_is_of_rows(&checks->check[i]))
			leat_str_addf(out, "does not hold: %s", result->found);
		else if (result->rows)
			add_count(out, result->rows, "", result->found);
		if (result->lost) {
			leat_str_add(out, result->rows ? " and " : "");
			add_count(out, result->lost, " lost", result->lost_found);
		}
	}
}

enum leat_status
leat_checks_verdict(const struct leat_checks *checks, const struct leat_checked *checked, struct leat_err *err)
{
	bool many = (double)checked->failed > checks->most * (double)checked->rows;
	struct leat_str text;
	enum leat_status status;

	if (checks->what == LEAT_CHECKS_FAIL)
		many = checked->failed > 0;
	if (!many && (!checked->broken || checks->what == LEAT_CHECKS_WARN))
		return LEAT_OK;
	leat_str_init(&text, checked->mem, 1 << 20);
	leat_checks_sentence(checks, checked, &text);
	if (many && checks->what != LEAT_CHECKS_FAIL) {
		leat_str_add(&text, "; more than the ");
		leat_check_print_share(&text, checks->most);
		leat_str_add(&text, " allowed");
	}
	status = leat_fail(err, LEAT_DATA, "%s", leat_str_text(&text));
	leat_str_free(&text);
	return status;
}

/* ---- rows that fail, and those that do not ---- */

static bool
has_column(const struct leat_check_columns *columns, const char *name)
{
	for (size_t i = 0; i < columns->count; i++)
		if (strcasecmp(columns->name[i], name) == 0)
			return true;
	return false;
}

/* A name beginning with `stem` that no column has. */
static void
free_name(const struct leat_check_columns *columns, const char *stem, struct leat_str *name)
{
	leat_str_add(name, stem);
	while (has_column(columns, leat_str_text(name)) && !name->failed)
		leat_str_add(name, "_");
}

/* "CASE WHEN CONDITION THEN 'name' END, ...": of checks that `checked` says are broken. */
static enum leat_status
add_names(const struct leat_checks *checks, const struct leat_check_columns *columns, const struct leat_check_run *run,
          const struct leat_checked *checked, struct leat_str *sql, struct leat_err *err)
{
	enum leat_status status = LEAT_OK;
	bool any = false;

	leat_str_add(sql, "nullif(concat_ws('; '");
	for (size_t i = 0; i < checks->count && status == LEAT_OK; i++) {
		const enum leat_check_kind kind = checks->check[i].kind;

		if (!checked->of[i].broken || kind == LEAT_CHECK_TYPE || kind == LEAT_CHECK_ROWS ||
		    kind == LEAT_CHECK_DRIFT)
			continue;
		any = true;
		leat_str_add(sql, ", CASE WHEN ");
		status = leat_check_add_condition(&checks->check[i], columns, run, sql, err);
		leat_str_add(sql, " THEN ");
		leat_sql_quote(sql, checks->check[i].name, '\'');
		leat_str_add(sql, " END");
	}
	leat_str_add(sql, any ? "), '')" : ", NULL), '')");
	return status;
}

enum leat_status
leat_checks_add_failing(const struct leat_checks *checks, const struct leat_check_run *run,
                        const struct leat_checked *checked, const char *column, struct leat_str *sql,
                        struct leat_err *err)
{
	struct leat_check_columns columns;
	struct leat_str name;
	enum leat_status status = leat_check_columns_read(&columns, run->tables, run->sql, checks->mem, err);

	leat_str_init(&name, checks->mem, 4096);
	free_name(&columns, column, &name);
	leat_str_add(sql, "SELECT * FROM (SELECT t.*, ");
	if (status == LEAT_OK)
		status = add_names(checks, &columns, run, checked, sql, err);
	leat_str_addf(sql, " AS %s FROM %s AS t) WHERE %s IS NOT NULL", leat_str_text(&name), run->sql,
	              leat_str_text(&name));
	leat_str_free(&name);
	leat_check_columns_free(&columns);
	return status == LEAT_OK ? sql_status(sql, err) : status;
}

enum leat_status
leat_checks_add_passing(const struct leat_checks *checks, const struct leat_check_run *run, struct leat_str *sql,
                        struct leat_err *err)
{
	struct leat_check_columns columns;
	enum leat_status status = leat_check_columns_read(&columns, run->tables, run->sql, checks->mem, err);

	leat_str_addf(sql, "SELECT t.* FROM %s AS t WHERE NOT (false", run->sql);
	for (size_t i = 0; i < checks->count && status == LEAT_OK; i++) {
		if (!leat_check_is_of_rows(&checks->check[i]))
			continue;
		leat_str_add(sql, " OR ");
		status = leat_check_add_condition(&checks->check[i], &columns, run, sql, err);
	}
	leat_str_add(sql, ")");
	leat_check_columns_free(&columns);
	return status == LEAT_OK ? sql_status(sql, err) : status;
}

enum leat_status
leat_checks_add_lost(const struct leat_checks *checks, const struct leat_check_run *run, size_t i, struct leat_str *sql,
                     struct leat_err *err)
{
	struct leat_check_columns columns;
	enum leat_status status = leat_check_columns_read(&columns, run->tables, run->sql, checks->mem, err);

	if (status == LEAT_OK)
		status = leat_check_add_lost(&checks->check[i], &columns, run, sql, err);
	leat_check_columns_free(&columns);
	return status == LEAT_OK ? sql_status(sql, err) : status;
}

enum leat_status
leat_checks_copy(struct leat_tables *tables, const struct leat_str *select, const char *path, struct leat_err *err)
{
	struct leat_str sql;
	enum leat_status status;

	leat_str_init(&sql, select->mem, MAX_SQL);
	leat_str_addf(&sql, "COPY (%s) TO ", leat_str_text(select));
	leat_sql_quote(&sql, path, '\'');
	leat_str_add(&sql, " (FORMAT parquet, COMPRESSION zstd)");
	status = sql_status(&sql, err);
	if (status == LEAT_OK)
		status = leat_tables_run(tables, leat_str_text(&sql), err);
	leat_str_free(&sql);
	return status;
}
