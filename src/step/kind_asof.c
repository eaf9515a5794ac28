/* kind_asof.c - rows with what was known at their time: a point-in-time join
 *
 *	asof: labels
 *	at: ts
 *	key: [user, ts]
 *	take:
 *	  prices: {at: valid_from, by: product, columns: [price], max_age: 30d}
 *	  scores: {at: day, by: [user = id], columns: [score as last_score], known: loaded, strict: true}
 *
 * Each row of `labels` gets, from each table of `take`, the columns of the last row of the same `by` that is not later
 * than its own time, or NULL. Nobody writes the join, so nobody can turn it around: it becomes one query, which runs as
 * a step of the kind sql does, with its key and checks.
 *
 * A row of a table can be used from its *effective* time on, the later one of `at` and `known`. Of those that can be
 * used, the one with the latest `at` is. A row that comes in after a later one is therefore never used, and is left
 * out; what remains has both times ascending, so that DuckDB's ASOF JOIN by the effective time finds the right one. Of
 * equal `at`, the one that was known last is a correction. If that does not tell two rows apart, the step fails.
 *
 * Rows of `take` without a time or `by` are not used. */
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/names.h"
#include "step/kind.h"
#include "step/project_read.h"
#include "table/duckdb.h"

enum { MAX_QUERY = 1 << 20 };

struct leat_take {
	const char *table, *at, *known;         /* known: NULL if it has none */
	const char *const *left, *const *right; /* columns of `by`, in the rows and in the table */
	size_t bys;
	const char *const *column, *const *name; /* of the table, and what it is called in the result */
	size_t columns;
	char max_age[64]; /* as SQL; "" if there is none */
	bool strict;
};

/* ---- leat.yaml ---- */

static const char *const keys[] = {"at", "by", "columns", "known", "max_age", "strict"};
enum { AT, BY, COLUMNS, KNOWN, MAX_AGE_KEY, STRICT, KEYS };

static const struct leat_yaml *
first_of(const struct leat_yaml *value)
{
	return value->kind == LEAT_YAML_LIST ? value->first : value;
}

static const struct leat_yaml *
next_of(const struct leat_yaml *value, const struct leat_yaml *item)
{
	return value->kind == LEAT_YAML_LIST ? item->next : NULL;
}

static size_t
count_of(const struct leat_yaml *value)
{
	return value->kind == LEAT_YAML_LIST ? value->count : 1;
}

/* A copy of the text from `from` to `to` without spaces around it. */
static const char *
keep_trimmed(struct leat_reading *r, const char *from, const char *to)
{
	while (from < to && *from == ' ')
		from++;
	while (to > from && to[-1] == ' ')
		to--;
	return leat_text_keep(r->text, from, (size_t)(to - from));
}

/* "price", or "price as last_price"; "user", or "user = id". Without the separator, both are the same. */
static enum leat_status
read_pair(struct leat_reading *r, const struct leat_yaml *item, const char *separator, const char **first,
          const char **second)
{
	const char *found, *end;

	if (item->kind != LEAT_YAML_TEXT || !*item->text)
		return leat_yaml_fail(&r->file, item, "this must be the name of a column, such as user");
	end = item->text + strlen(item->text);
	found = strcasestr(item->text, separator);
	*first = keep_trimmed(r, item->text, found ? found : end);
	*second = *first && found ? keep_trimmed(r, found + strlen(separator), end) : *first;
	if (!*first || !*second)
		return r->err->status;
	return **first && **second
	               ? LEAT_OK
	               : leat_yaml_fail(&r->file, item, "a name of a column is missing beside '%s'", separator);
}

static enum leat_status
read_pairs(struct leat_reading *r, const struct leat_yaml *value, const char *separator, const char *const **first,
           const char *const **second, size_t *count)
{
	const char **a, **b;
	enum leat_status status = LEAT_OK;

	if (value->kind == LEAT_YAML_MAP || (value->kind == LEAT_YAML_LIST && !value->count))
		return leat_yaml_fail(&r->file, value, "this must be the name of a column, or a list of names");
	a = leat_text_array(r->text, count_of(value), sizeof(*a));
	b = leat_text_array(r->text, count_of(value), sizeof(*b));
	if (!a || !b)
		return r->err->status;
	for (const struct leat_yaml *i = first_of(value); i && status == LEAT_OK; i = next_of(value, i), ++*count)
		status = read_pair(r, i, separator, &a[*count], &b[*count]);
	*first = a;
	*second = b;
	return status;
}

static enum leat_status
read_name(struct leat_reading *r, const struct leat_yaml *key, const char **name)
{
	if (key->value->kind != LEAT_YAML_TEXT || !*key->value->text)
		return leat_yaml_fail(&r->file, key, "'%s' must be the name of a column", key->text);
	*name = key->value->text;
	return LEAT_OK;
}

/* "30d" as an interval; "100" as a number, for times that are numbers. */
static enum leat_status
read_age(struct leat_reading *r, const struct leat_yaml *value, struct leat_take *take)
{
	static const char *const units[] = {"seconds", "minutes", "hours", "days"};
	const char *text = value->kind == LEAT_YAML_TEXT ? value->text : "";
	size_t digits = strspn(text, "0123456789");
	const char *unit = text[digits] ? strchr("smhd", text[digits]) : NULL;

	if (!digits || digits > 12 || (text[digits] && (!unit || text[digits + 1])))
		return leat_yaml_fail(&r->file, value, "'max_age' must be a time with its unit, such as 30d or 90s");
	if (unit)
		snprintf(take->max_age, sizeof(take->max_age), "INTERVAL '%.*s %s'", (int)digits, text,
		         units[unit - "smhd"]);
	else
		snprintf(take->max_age, sizeof(take->max_age), "%.*s", (int)digits, text);
	return LEAT_OK;
}

static enum leat_status
read_strict(struct leat_reading *r, const struct leat_yaml *value, struct leat_take *take)
{
	const char *text = value->kind == LEAT_YAML_TEXT ? value->text : "";

	if (strcmp(text, "true") != 0 && strcmp(text, "false") != 0)
		return leat_yaml_fail(&r->file, value, "'strict' must be true or false");
	take->strict = *text == 't';
	return LEAT_OK;
}

static enum leat_status
read_take_key(struct leat_reading *r, const struct leat_yaml *key, struct leat_take *take)
{
	char owner[100];
	size_t k = 0;

	while (k < KEYS && strcmp(keys[k], key->text) != 0)
		k++;
	switch (k) {
	case AT:
		return read_name(r, key, &take->at);
	case KNOWN:
		return read_name(r, key, &take->known);
	case BY:
		return read_pairs(r, key->value, "=", &take->left, &take->right, &take->bys);
	case COLUMNS:
		return read_pairs(r, key->value, " as ", &take->column, &take->name, &take->columns);
	case MAX_AGE_KEY:
		return read_age(r, key->value, take);
	case STRICT:
		return read_strict(r, key->value, take);
	default:
		snprintf(owner, sizeof(owner), "'%.80s' of 'take'", take->table);
		return leat_unknown_key(r, key, owner, keys, KEYS);
	}
}

static enum leat_status
read_table(struct leat_reading *r, const struct leat_yaml *name, struct leat_take *take)
{
	enum leat_status status = leat_name_check(r, name, "a table");

	take->table = name->text;
	if (status == LEAT_OK && name->value->kind != LEAT_YAML_MAP)
		return leat_yaml_fail(
			&r->file, name,
			"'%s' of 'take' needs keys, as in {at: valid_from, by: product, columns: [price]}", name->text);
	for (const struct leat_yaml *k = name->value->first; k && status == LEAT_OK; k = k->next)
		status = read_take_key(r, k, take);
	if (status == LEAT_OK && !take->at)
		return leat_yaml_fail(&r->file, name, "'%s' of 'take' needs 'at', the column of its rows' times",
		                      name->text);
	if (status == LEAT_OK && !take->columns)
		return leat_yaml_fail(&r->file, name, "'%s' of 'take' needs 'columns', those that rows get",
		                      name->text);
	return status;
}

enum leat_status
leat_take_read(struct leat_reading *r, const struct leat_yaml *map, struct leat_step *step)
{
	struct leat_take *take = leat_text_array(r->text, map->count, sizeof(*take));
	enum leat_status status = take ? LEAT_OK : r->err->status;

	step->take = take;
	for (const struct leat_yaml *k = map->first; k && status == LEAT_OK; k = k->next)
		status = read_table(r, k, &take[step->takes++]);
	return status;
}

/* ---- the query ---- */

static void
add_column(struct leat_str *sql, const char *table, const char *name)
{
	leat_str_addf(sql, "%s.", table);
	leat_sql_quote(sql, name, '"');
}

static void
add_partition(const struct leat_take *take, struct leat_str *sql)
{
	for (size_t i = 0; i < take->bys; i++)
		leat_str_addf(sql, "%sleat_by_%zu", i ? ", " : "PARTITION BY ", i);
	leat_str_add(sql, take->bys ? " ORDER BY leat_from, leat_at DESC, leat_known DESC"
	                            : "ORDER BY leat_from, leat_at DESC, leat_known DESC");
}

/* Names and times of the table's rows, without those that have none. */
static void
add_named(const struct leat_take *take, struct leat_str *sql)
{
	const char *known = take->known ? take->known : take->at;

	leat_str_add(sql, "SELECT ");
	for (size_t i = 0; i < take->bys; i++) {
		add_column(sql, "t", take->right[i]);
		leat_str_addf(sql, " AS leat_by_%zu, ", i);
	}
	for (size_t i = 0; i < take->columns; i++) {
		add_column(sql, "t", take->column[i]);
		leat_str_addf(sql, " AS leat_column_%zu, ", i);
	}
	add_column(sql, "t", take->at);
	leat_str_add(sql, " AS leat_at, ");
	add_column(sql, "t", known);
	leat_str_add(sql, " AS leat_known, greatest(");
	add_column(sql, "t", take->at);
	leat_str_add(sql, ", ");
	add_column(sql, "t", known);
	leat_str_addf(sql, ") AS leat_from FROM \"%s\" AS t WHERE ", take->table);
	add_column(sql, "t", take->at);
	leat_str_add(sql, " IS NOT NULL AND ");
	add_column(sql, "t", known);
	leat_str_add(sql, " IS NOT NULL");
	for (size_t i = 0; i < take->bys; i++) {
		leat_str_add(sql, " AND ");
		add_column(sql, "t", take->right[i]);
		leat_str_add(sql, " IS NOT NULL");
	}
}

/* error('two rows of prices have the same product, valid_from: 7, 2026-01-01') */
static void
add_error(const struct leat_take *take, struct leat_str *sql)
{
	struct leat_str text;

	leat_str_init(&text, sql->mem, MAX_QUERY);
	leat_str_addf(&text, "two rows of '%s' cannot be told apart by ", take->table);
	for (size_t i = 0; i < take->bys; i++)
		leat_str_addf(&text, "%s, ", take->right[i]);
	leat_str_addf(&text, "%s%s%s, such as ", take->at, take->known ? ", " : "", take->known ? take->known : "");
	leat_str_add(sql, "error(concat(");
	leat_sql_quote(sql, leat_str_text(&text), '\'');
	for (size_t i = 0; i < take->bys; i++)
		leat_str_addf(sql, ", leat_by_%zu, ' at '", i);
	leat_str_add(sql, ", leat_at, '; keep one of them'))");
	sql->failed |= text.failed;
	leat_str_free(&text);
}

/* Rows that are the last known ones at some time. */
static void
add_usable(const struct leat_take *take, struct leat_str *sql)
{
	leat_str_add(sql,
	             "(SELECT * FROM (SELECT *, lag(leat_from) OVER leat_order AS leat_last_from, lag(leat_at) OVER "
	             "leat_order AS leat_last_at, lag(leat_known) OVER leat_order AS leat_last_known, "
	             "max(leat_at) OVER (");
	add_partition(take, sql);
	leat_str_add(sql, " ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS leat_latest FROM (");
	add_named(take, sql);
	leat_str_add(sql, ") WINDOW leat_order AS (");
	add_partition(take, sql);
	leat_str_add(sql, ")) WHERE CASE WHEN leat_from = leat_last_from AND leat_at = leat_last_at AND leat_known = "
	                  "leat_last_known THEN ");
	add_error(take, sql);
	leat_str_add(sql,
	             " ELSE leat_last_from IS NULL OR (leat_from > leat_last_from AND leat_at >= leat_latest) END)");
}

static void
add_join(const struct leat_step *step, size_t k, struct leat_str *sql)
{
	const struct leat_take *take = &step->take[k];
	char alias[32];

	snprintf(alias, sizeof(alias), "leat_take_%zu", k);
	leat_str_add(sql, " ASOF LEFT JOIN ");
	add_usable(take, sql);
	leat_str_addf(sql, " AS %s ON ", alias);
	for (size_t i = 0; i < take->bys; i++) {
		add_column(sql, "leat_rows", take->left[i]);
		leat_str_addf(sql, " = %s.leat_by_%zu AND ", alias, i);
	}
	add_column(sql, "leat_rows", step->at);
	leat_str_addf(sql, " %s %s.leat_from", take->strict ? ">" : ">=", alias);
}

/* Too old is the same as none. */
static void
add_taken(const struct leat_step *step, size_t k, struct leat_str *sql)
{
	const struct leat_take *take = &step->take[k];

	for (size_t i = 0; i < take->columns; i++) {
		leat_str_add(sql, ", ");
		if (*take->max_age) {
			leat_str_add(sql, "CASE WHEN ");
			add_column(sql, "leat_rows", step->at);
			leat_str_addf(sql, " - leat_take_%zu.leat_at <= %s THEN ", k, take->max_age);
		}
		leat_str_addf(sql, "leat_take_%zu.leat_column_%zu%s AS ", k, i, *take->max_age ? " END" : "");
		leat_sql_quote(sql, take->name[i], '"');
	}
}

static void
add_query(const struct leat_step *step, struct leat_str *sql)
{
	leat_str_add(sql, "SELECT leat_rows.*");
	for (size_t i = 0; i < step->takes; i++)
		add_taken(step, i, sql);
	leat_str_addf(sql, " FROM \"%s\" AS leat_rows", step->text);
	for (size_t i = 0; i < step->takes; i++)
		add_join(step, i, sql);
}

static enum leat_status
read_asof(struct leat_step *step, const struct leat_step_names *names, struct leat_err *err)
{
	struct leat_str sql;
	enum leat_status status;

	if (!*step->at)
		return leat_fail(err, LEAT_SPEC, "step '%s' needs 'at', the column of the time of each row",
		                 step->name);
	if (!step->takes)
		return leat_fail(err, LEAT_SPEC,
		                 "step '%s' needs 'take', the tables that rows get columns from, such as 'take: "
		                 "{prices: {at: valid_from, by: product, columns: [price]}}'",
		                 step->name);
	leat_str_init(&sql, names->mem, MAX_QUERY);
	add_query(step, &sql);
	status = sql.failed ? leat_fail(err, LEAT_SPEC, "step '%s' takes too many columns", step->name)
	                    : leat_sql_step_read(step, names, leat_str_text(&sql), sql.len, err);
	leat_str_free(&sql);
	return status;
}

const struct leat_step_kind leat_step_kind_asof = {
	.name = "asof",
	.version = 1,
	.table = true,
	.value = "the name of a source or step",
	.doc = "Give each row of a table what others had for it at the time `at`, and nothing later. The result is "
	       "sorted by "
	       "`key`, as that of `sql`.",
	.reads = true,
	.read = read_asof,
	.check = leat_sql_step_check,
	.command = leat_sql_step_command,
};
