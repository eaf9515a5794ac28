/* checks_sql.c - each check as a condition in SQL that is true for the rows that fail
 *
 * Names and values of users become quoted names and literals, never bare SQL. Types are looked at first, because SQL
 * would compare a text with a number by way of a cast that fails in the middle of the table. */
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/names.h"
#include "table/checks_inside.h"

/* ---- columns ---- */

void
leat_check_columns_free(struct leat_check_columns *columns)
{
	for (size_t i = 0; columns->name && i < columns->count; i++)
		leat_free(columns->mem, columns->name[i]);
	leat_free(columns->mem, columns->name);
	leat_free(columns->mem, columns->type);
	*columns = (struct leat_check_columns){.mem = columns->mem};
}

static enum leat_status
copy_columns(struct leat_check_columns *columns, const struct leat_query *query, struct leat_err *err)
{
	size_t count = leat_query_columns(query);

	columns->name = leat_alloc_array(columns->mem, count, sizeof(*columns->name));
	columns->type = leat_alloc_array(columns->mem, count, sizeof(*columns->type));
	if (!columns->name || !columns->type)
		return leat_fail_mem(err, columns->mem, count * sizeof(*columns->type), "the columns of a table");
	columns->count = count;
	for (size_t i = 0; i < count; i++) {
		columns->type[i] = *leat_query_type(query, i);
		columns->type[i].children = NULL;
		columns->type[i].member = NULL;
		columns->name[i] = leat_strdup(columns->mem, leat_query_name(query, i));
		if (!columns->name[i])
			return leat_fail_mem(err, columns->mem, 1, "the columns of a table");
	}
	return LEAT_OK;
}

enum leat_status
leat_check_columns_read(struct leat_check_columns *columns, struct leat_tables *tables, const char *table,
                        struct leat_mem *mem, struct leat_err *err)
{
	struct leat_query *query = NULL;
	struct leat_str sql;
	enum leat_status status;

	*columns = (struct leat_check_columns){.mem = mem};
	leat_str_init(&sql, mem, SIZE_MAX);
	leat_str_addf(&sql, "SELECT * FROM %s LIMIT 0", table);
	status = sql.failed ? leat_fail_mem(err, mem, sql.len, "a query")
	                    : leat_query_open(&query, tables, leat_str_text(&sql), err);
	if (status == LEAT_OK)
		status = copy_columns(columns, query, err);
	leat_query_close(query);
	leat_str_free(&sql);
	return status;
}

enum leat_status
leat_check_column_find(const struct leat_check_columns *columns, const char *name, size_t *found, struct leat_err *err)
{
	char owner[100] = "the table";

	for (size_t i = 0; i < columns->count; i++)
		if (strcmp(columns->name[i], name) == 0) {
			*found = i;
			return LEAT_OK;
		}
	for (size_t i = 0; i < columns->count; i++)
		if (strcasecmp(columns->name[i], name) == 0) {
			*found = i;
			return LEAT_OK;
		}
	if (columns->table)
		snprintf(owner, sizeof(owner), "table '%.80s'", columns->table);
	return leat_fail_unknown(err, LEAT_INVALID,
	                         &(struct leat_unknown){.what = "column",
	                                                .name = name,
	                                                .owner = owner,
	                                                .known = (const char *const *)columns->name,
	                                                .count = columns->count});
}

/* ---- types ---- */

static bool
is_float(const struct leat_column_type *type)
{
	return type->kind == LEAT_COLUMN_FLOAT || type->kind == LEAT_COLUMN_DOUBLE;
}

static bool
is_number(const struct leat_column_type *type)
{
	return (type->kind >= LEAT_COLUMN_INT8 && type->kind <= LEAT_COLUMN_DECIMAL) ||
	       strcmp(type->name, "UHUGEINT") == 0;
}

static bool
is_time(const struct leat_column_type *type)
{
	return type->kind == LEAT_COLUMN_DATE || strncmp(type->name, "TIMESTAMP", 9) == 0;
}

static bool
is_nested(const struct leat_column_type *type)
{
	return type->kind == LEAT_COLUMN_LIST || type->kind == LEAT_COLUMN_ARRAY || type->kind == LEAT_COLUMN_STRUCT;
}

/* ---- conditions ---- */

struct condition {
	const struct leat_check *check;
	const struct leat_check_columns *columns;
	const struct leat_check_run *run;
	const char *name; /* of the column, as the table has it */
	const struct leat_column_type *type;
	struct leat_str *sql;
	struct leat_err *err;
};

static void
add_column(const struct condition *c)
{
	leat_str_add(c->sql, "t.");
	leat_sql_quote(c->sql, c->name, '"');
}

static enum leat_status
fail_type(const struct condition *c, const char *needs)
{
	return leat_fail(c->err, LEAT_INVALID, "check '%s': column '%s' is %s; %s", c->check->name, c->name,
	                 c->type->name, needs);
}

static enum leat_status
add_not_null(const struct condition *c)
{
	add_column(c);
	leat_str_add(c->sql, " IS NULL");
	return LEAT_OK;
}

/* "t.a, t.b" of the column and the further ones of `unique with`, as the table spells them; `packed`: "k0 := t.a, ...".
 */
static enum leat_status
add_all_columns(const struct condition *c, const char *prefix, const char *separator, const char *suffix, bool packed)
{
	for (size_t i = 0; i <= c->check->values; i++) {
		const char *name = c->name;
		size_t found = 0;

		if (i) {
			enum leat_status status =
				leat_check_column_find(c->columns, c->check->value[i - 1], &found, c->err);

			if (status != LEAT_OK)
				return status;
			name = c->columns->name[found];
		}
		leat_str_add(c->sql, i ? separator : "");
		if (packed)
			leat_str_addf(c->sql, "k%zu := ", i);
		leat_str_add(c->sql, prefix);
		leat_sql_quote(c->sql, name, '"');
		leat_str_add(c->sql, suffix);
	}
	return LEAT_OK;
}

/* One column alone, or all in a struct. */
static enum leat_status
add_key(const struct condition *c, const char *prefix)
{
	bool packed = c->check->values > 0;
	enum leat_status status;

	leat_str_add(c->sql, packed ? "struct_pack(" : "(");
	status = add_all_columns(c, prefix, ", ", "", packed);
	leat_str_add(c->sql, ")");
	return status;
}

/* Rows with a NULL in one of the columns have no equal, as in SQL. */
static enum leat_status
add_unique(const struct condition *c)
{
	enum leat_status status = add_all_columns(c, "t.", " AND ", " IS NOT NULL", false);

	leat_str_add(c->sql, " AND ");
	if (status == LEAT_OK)
		status = add_key(c, "t.");
	leat_str_add(c->sql, " IN (SELECT ");
	if (status == LEAT_OK)
		status = add_key(c, "u.");
	leat_str_addf(c->sql, " FROM %s AS u WHERE ", c->run->sql);
	if (status == LEAT_OK)
		status = add_all_columns(c, "u.", " AND ", " IS NOT NULL", false);
	leat_str_add(c->sql, " GROUP BY ");
	if (status == LEAT_OK)
		status = add_all_columns(c, "u.", ", ", "", false);
	leat_str_add(c->sql, " HAVING count(*) > 1)");
	return status;
}

/* A date without a time is all of its day. */
static void
add_time_range(const struct condition *c)
{
	const char *low = c->check->low, *high = c->check->high;

	if (low) {
		add_column(c);
		leat_str_addf(c->sql, " < TIMESTAMP '%s'", low);
	}
	leat_str_add(c->sql, low && high ? " OR " : "");
	if (high && strlen(high) == 10) {
		add_column(c);
		leat_str_addf(c->sql, " >= TIMESTAMP '%s' + INTERVAL 1 DAY", high);
	} else if (high) {
		add_column(c);
		leat_str_addf(c->sql, " > TIMESTAMP '%s'", high);
	}
}

/* DuckDB takes NaN for larger than all numbers, so "0.." would let it pass. */
static void
add_number_range(const struct condition *c)
{
	if (c->check->low) {
		add_column(c);
		leat_str_addf(c->sql, " < %s", c->check->low);
	}
	leat_str_add(c->sql, c->check->low && c->check->high ? " OR " : "");
	if (c->check->high) {
		add_column(c);
		leat_str_addf(c->sql, " > %s", c->check->high);
	}
	if (is_float(c->type)) {
		leat_str_add(c->sql, " OR isnan(");
		add_column(c);
		leat_str_add(c->sql, ")");
	}
}

static enum leat_status
add_range(const struct condition *c)
{
	if (c->check->times && !is_time(c->type))
		return fail_type(c, "a range of dates needs a date or a timestamp");
	if (!c->check->times && !is_number(c->type))
		return fail_type(c, "a range of numbers needs a column of numbers");
	if (c->check->times)
		add_time_range(c);
	else
		add_number_range(c);
	return LEAT_OK;
}

static enum leat_status
add_finite(const struct condition *c)
{
	if (!is_number(c->type) && !is_time(c->type))
		return fail_type(c, "only numbers and times can be infinite");
	if (!is_float(c->type) && !is_time(c->type)) {
		leat_str_add(c->sql, "false");
		return LEAT_OK;
	}
	leat_str_add(c->sql, "NOT isfinite(");
	add_column(c);
	leat_str_add(c->sql, ")");
	return LEAT_OK;
}

static enum leat_status
add_length(const struct condition *c)
{
	const char *function = c->type->kind == LEAT_COLUMN_TEXT   ? "length("
	                       : c->type->kind == LEAT_COLUMN_BLOB ? "octet_length("
	                       : c->type->kind == LEAT_COLUMN_LIST ? "len("
	                                                           : NULL;
	const char *low = c->check->low, *high = c->check->high;

	if (!function)
		return fail_type(c, "only texts, bytes and lists have a length");
	for (int i = 0; i < 2; i++) {
		const char *end = i ? high : low;

		if (!end)
			continue;
		leat_str_addf(c->sql, "%s%s", i && low ? " OR " : "", function);
		add_column(c);
		leat_str_addf(c->sql, ") %c %s", i ? '>' : '<', end);
	}
	return LEAT_OK;
}

/* Numbers are compared as numbers: 1.0 is one of 1 | 2. */
static enum leat_status
add_one_of(const struct condition *c)
{
	bool as_text = !is_number(c->type) && !is_time(c->type) && c->type->kind != LEAT_COLUMN_BOOL;

	if (is_nested(c->type) || c->type->kind == LEAT_COLUMN_BLOB)
		return fail_type(c, "'one of' needs texts, numbers or times");
	leat_str_add(c->sql, as_text ? "CAST(" : "");
	add_column(c);
	leat_str_add(c->sql, as_text ? " AS VARCHAR) NOT IN (" : " NOT IN (");
	for (size_t i = 0; i < c->check->values; i++) {
		leat_str_add(c->sql, i ? ", " : "");
		leat_str_add(c->sql, as_text ? "" : "CAST(");
		leat_sql_quote(c->sql, c->check->value[i], '\'');
		if (!as_text)
			leat_str_addf(c->sql, " AS %s)", c->type->name);
	}
	leat_str_add(c->sql, ")");
	return LEAT_OK;
}

static void
fail_table(const struct leat_check *check, const struct leat_check_run *run, struct leat_err *err)
{
	const char *known[16];
	struct leat_unknown unknown = {.what = "table", .name = check->table, .known = known};
	char text[LEAT_UNKNOWN_TEXT];

	for (; unknown.count < run->others && unknown.count < 16; unknown.count++)
		known[unknown.count] = run->other[unknown.count].name;
	unknown.more = run->others - unknown.count;
	leat_fail(err, LEAT_INVALID, "check '%s': %s", check->name, leat_unknown_text(&unknown, text));
}

const char *
leat_check_table_sql(const struct leat_check *check, const struct leat_check_run *run, struct leat_err *err)
{
	for (size_t i = 0; i < run->others; i++)
		if (strcmp(run->other[i].name, check->table) == 0)
			return run->other[i].sql;
	fail_table(check, run, err);
	return NULL;
}

/* The other column's name as its table spells it. SQL would compare a text with a number by a cast that may fail. */
static enum leat_status
add_other_column(const struct condition *c, const struct leat_check_columns *others)
{
	size_t found = 0;
	enum leat_status status = leat_check_column_find(others, c->check->other, &found, c->err);
	bool text = c->type->kind == LEAT_COLUMN_TEXT;

	if (status != LEAT_OK)
		return status;
	if (text != (others->type[found].kind == LEAT_COLUMN_TEXT))
		return leat_fail(c->err, LEAT_INVALID,
		                 "check '%s': column '%s' is %s, but the other one is %s; cast one", c->check->name,
		                 c->name, c->type->name, others->type[found].name);
	leat_str_add(c->sql, "o.");
	leat_sql_quote(c->sql, others->name[found], '"');
	return LEAT_OK;
}

/* "SELECT o.id FROM users AS o WHERE o.id IS NOT NULL", with `more` after the column. */
static enum leat_status
add_other_values(const struct condition *c, const char *more)
{
	struct leat_check_columns others;
	const char *table = leat_check_table_sql(c->check, c->run, c->err);
	enum leat_status status;

	if (!table)
		return LEAT_INVALID;
	status = leat_check_columns_read(&others, c->run->tables, table, c->columns->mem, c->err);
	others.table = c->check->table;
	leat_str_add(c->sql, "SELECT ");
	if (status == LEAT_OK)
		status = add_other_column(c, &others);
	leat_str_addf(c->sql, "%s FROM %s AS o WHERE ", more, table);
	if (status == LEAT_OK)
		status = add_other_column(c, &others);
	leat_str_add(c->sql, " IS NOT NULL");
	leat_check_columns_free(&others);
	return status;
}

static enum leat_status
add_in(const struct condition *c)
{
	enum leat_status status;

	add_column(c);
	leat_str_add(c->sql, " NOT IN (");
	status = add_other_values(c, "");
	leat_str_add(c->sql, ")");
	return status;
}

/* "SELECT u.id, count(*) AS n FROM result AS u WHERE u.id IS NOT NULL GROUP BY u.id" */
static void
add_counts(const struct condition *c)
{
	for (int i = 0; i < 3; i++) {
		leat_str_add(c->sql, i == 0 ? "SELECT u." : i == 1 ? " WHERE u." : " IS NOT NULL GROUP BY u.");
		leat_sql_quote(c->sql, c->name, '"');
		if (i == 0)
			leat_str_addf(c->sql, " AS k, count(*) AS n FROM %s AS u", c->run->sql);
	}
}

/* All rows of a value fail if they are too many or too few. Values that have no row at all: leat_check_add_lost. */
static enum leat_status
add_count(const struct condition *c)
{
	enum leat_status status = LEAT_OK;

	add_column(c);
	leat_str_add(c->sql, " IN (SELECT r.k FROM (");
	add_counts(c);
	leat_str_add(c->sql, ") AS r");
	if (c->check->table) {
		leat_str_add(c->sql, " LEFT JOIN (SELECT k, count(*) AS n FROM (");
		status = add_other_values(c, " AS k");
		leat_str_addf(c->sql, ") GROUP BY k) AS o ON o.k = r.k WHERE r.n %s coalesce(o.n, 0)",
		              c->check->up_to ? ">" : "<>");
	} else {
		leat_str_add(c->sql, " WHERE false");
		if (c->check->low)
			leat_str_addf(c->sql, " OR r.n < %s", c->check->low);
		if (c->check->high)
			leat_str_addf(c->sql, " OR r.n > %s", c->check->high);
	}
	leat_str_add(c->sql, ")");
	return status;
}

static enum leat_status
add_matches(const struct condition *c)
{
	if (is_nested(c->type) || c->type->kind == LEAT_COLUMN_BLOB)
		return fail_type(c, "'matches' needs a text");
	leat_str_add(c->sql, "NOT regexp_full_match(CAST(");
	add_column(c);
	leat_str_add(c->sql, " AS VARCHAR), ");
	leat_sql_quote(c->sql, c->check->text, '\'');
	leat_str_add(c->sql, ")");
	return LEAT_OK;
}

static enum leat_status
add_false(const struct condition *c)
{
	leat_str_add(c->sql, "false");
	return LEAT_OK;
}

static enum leat_status
find_column(struct condition *c)
{
	size_t found = 0;
	enum leat_status status;

	if (!c->check->column)
		return LEAT_OK;
	status = leat_check_column_find(c->columns, c->check->column, &found, c->err);
	if (status == LEAT_OK) {
		c->name = c->columns->name[found];
		c->type = &c->columns->type[found];
	}
	return status;
}

enum leat_status
leat_check_add_lost(const struct leat_check *check, const struct leat_check_columns *columns,
                    const struct leat_check_run *run, struct leat_str *sql, struct leat_err *err)
{
	struct condition c = {.check = check, .columns = columns, .run = run, .sql = sql, .err = err};
	enum leat_status status = find_column(&c);

	if (status != LEAT_OK)
		return status;
	leat_str_add(sql, "SELECT DISTINCT k AS lost FROM (");
	status = add_other_values(&c, " AS k");
	leat_str_add(sql, ") WHERE k NOT IN (SELECT ");
	add_column(&c);
	leat_str_addf(sql, " FROM %s AS t WHERE ", run->sql);
	add_column(&c);
	leat_str_add(sql, " IS NOT NULL)");
	return status;
}

enum leat_status
leat_check_add_condition(const struct leat_check *check, const struct leat_check_columns *columns,
                         const struct leat_check_run *run, struct leat_str *sql, struct leat_err *err)
{
	static enum leat_status (*const add[])(const struct condition *c) = {
		[LEAT_CHECK_NOT_NULL] = add_not_null, [LEAT_CHECK_NULLS] = add_not_null,
		[LEAT_CHECK_UNIQUE] = add_unique,     [LEAT_CHECK_RANGE] = add_range,
		[LEAT_CHECK_FINITE] = add_finite,     [LEAT_CHECK_LENGTH] = add_length,
		[LEAT_CHECK_ONE_OF] = add_one_of,     [LEAT_CHECK_IN] = add_in,
		[LEAT_CHECK_MATCHES] = add_matches,   [LEAT_CHECK_TYPE] = add_false,
		[LEAT_CHECK_ROWS] = add_false,        [LEAT_CHECK_COUNT] = add_count,
		[LEAT_CHECK_DRIFT] = add_false,
	};
	struct condition c = {.check = check, .columns = columns, .run = run, .sql = sql, .err = err};
	enum leat_status status = find_column(&c);

	if (status != LEAT_OK)
		return status;
	leat_str_add(sql, "coalesce(");
	status = add[check->kind](&c);
	leat_str_add(sql, ", false)");
	return status;
}
