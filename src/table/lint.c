/* lint.c - see lint.h
 *
 * json_serialize_plan gives the plan with all functions and types, before anything is optimized away. Columns of an
 * operator are referred to by their number in the one below it: of an aggregate, groups come first. */
#include "table/lint.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "table/duckdb_api.h"

/* An operator, with those above it. */
struct level {
	const struct level *above;
	json_t *operator;
};

/* ---- what is unstable, and what settles it ---- */

enum trouble { STABLE, FLOATS, ORDER, CLOCK };

static const struct {
	const char *name;
	enum trouble trouble;
	const char *instead;
} functions[] = {
	{"sum", FLOATS, "sum(x::DECIMAL(38, 6)), or round(sum(x), 6)"},
	{"avg", FLOATS, "avg(x::DECIMAL(18, 6)), or round(avg(x), 6)"},
	{"mean", FLOATS, "avg(x::DECIMAL(18, 6)), or round(avg(x), 6)"},
	{"fsum", FLOATS, "sum(x::DECIMAL(38, 6)), or round(fsum(x), 6)"},
	{"kahan_sum", FLOATS, "sum(x::DECIMAL(38, 6)), or round(kahan_sum(x), 6)"},
	{"sumkahan", FLOATS, "sum(x::DECIMAL(38, 6)), or round(sumkahan(x), 6)"},
	{"favg", FLOATS, "avg(x::DECIMAL(18, 6)), or round(favg(x), 6)"},
	{"stddev", FLOATS, "round(stddev(x), 6)"},
	{"stddev_samp", FLOATS, "round(stddev_samp(x), 6)"},
	{"stddev_pop", FLOATS, "round(stddev_pop(x), 6)"},
	{"variance", FLOATS, "round(variance(x), 6)"},
	{"var_samp", FLOATS, "round(var_samp(x), 6)"},
	{"var_pop", FLOATS, "round(var_pop(x), 6)"},
	{"sem", FLOATS, "round(sem(x), 6)"},
	{"corr", FLOATS, "round(corr(x, y), 6)"},
	{"covar_samp", FLOATS, "round(covar_samp(x, y), 6)"},
	{"covar_pop", FLOATS, "round(covar_pop(x, y), 6)"},
	{"regr_slope", FLOATS, "round(regr_slope(y, x), 6)"},
	{"regr_intercept", FLOATS, "round(regr_intercept(y, x), 6)"},
	{"regr_r2", FLOATS, "round(regr_r2(y, x), 6)"},
	{"regr_avgx", FLOATS, "round(regr_avgx(y, x), 6)"},
	{"regr_avgy", FLOATS, "round(regr_avgy(y, x), 6)"},
	{"regr_sxx", FLOATS, "round(regr_sxx(y, x), 6)"},
	{"regr_sxy", FLOATS, "round(regr_sxy(y, x), 6)"},
	{"regr_syy", FLOATS, "round(regr_syy(y, x), 6)"},
	{"skewness", FLOATS, "round(skewness(x), 6)"},
	{"kurtosis", FLOATS, "round(kurtosis(x), 6)"},
	{"kurtosis_pop", FLOATS, "round(kurtosis_pop(x), 6)"},
	{"product", FLOATS, "round(product(x), 6)"},
	{"geomean", FLOATS, "round(geomean(x), 6)"},
	{"geometric_mean", FLOATS, "round(geometric_mean(x), 6)"},
	{"approx_quantile", ORDER, "quantile_cont(x, 0.5)"},
	{"reservoir_quantile", ORDER, "quantile_cont(x, 0.5)"},
	{"first", ORDER, "first(x ORDER BY y), or min(x)"},
	{"arbitrary", ORDER, "first(x ORDER BY y), or min(x)"},
	{"last", ORDER, "last(x ORDER BY y), or max(x)"},
	{"any_value", ORDER, "any_value(x ORDER BY y), or min(x)"},
	{"list", ORDER, "list(x ORDER BY y)"},
	{"array_agg", ORDER, "array_agg(x ORDER BY y)"},
	{"string_agg", ORDER, "string_agg(x, ',' ORDER BY y)"},
	{"group_concat", ORDER, "group_concat(x, ',' ORDER BY y)"},
	{"listagg", ORDER, "listagg(x, ',' ORDER BY y)"},
	{"mode", ORDER, "the value with the largest count(*), ORDER BY count(*) DESC, x"},
	{"random", CLOCK, "md5(key::VARCHAR), which is as good as random and always the same"},
	{"uuid", CLOCK, "md5(key::VARCHAR)"},
	{"uuidv4", CLOCK, "md5(key::VARCHAR)"},
	{"uuidv7", CLOCK, "md5(key::VARCHAR)"},
	{"gen_random_uuid", CLOCK, "md5(key::VARCHAR)"},
	{"now", CLOCK, "the time as a literal"},
	{"get_current_timestamp", CLOCK, "the time as a literal"},
	{"transaction_timestamp", CLOCK, "the time as a literal"},
	{"current_localtimestamp", CLOCK, "the time as a literal"},
	{"current_localtime", CLOCK, "the time as a literal"},
	{"get_current_time", CLOCK, "the time as a literal"},
	{"today", CLOCK, "the date as a literal"},
	{"current_date", CLOCK, "the date as a literal"},
};

static const char *
text_of(json_t *object, const char *key)
{
	const char *text = json_string_value(json_object_get(object, key));

	return text ? text : "";
}

static bool
has_floats(json_t *expression)
{
	json_t *types = json_object_get(expression, "arguments"), *type;
	size_t i;

	json_array_foreach(types, i, type)
	{
		const char *id = text_of(type, "id");

		if (!strcmp(id, "DOUBLE") || !strcmp(id, "FLOAT"))
			return true;
	}
	return false;
}

/* ORDER BY inside the brackets of an aggregate. */
static bool
is_ordered(json_t *expression)
{
	json_t *orders = json_object_get(expression, "order_bys");

	if (!json_is_object(orders))
		orders = expression;
	return json_array_size(json_object_get(orders, "orders")) > 0 ||
	       json_array_size(json_object_get(orders, "arg_orders")) > 0;
}

static size_t
find_function(const char *name)
{
	size_t i = 0, n = sizeof(functions) / sizeof(*functions);

	while (i < n && strcmp(functions[i].name, name))
		i++;
	return i < n ? i : SIZE_MAX;
}

/* What is wrong with an aggregate or window function; SIZE_MAX: nothing. */
static size_t
unstable_function(json_t *expression)
{
	size_t i = find_function(text_of(expression, "name"));

	if (i == SIZE_MAX || functions[i].trouble == CLOCK)
		return SIZE_MAX;
	if (functions[i].trouble == FLOATS)
		return has_floats(expression) ? i : SIZE_MAX;
	return is_ordered(expression) ? SIZE_MAX : i;
}

/* Does the expression around an unstable value give the same for all of its values? */
static bool
settles(json_t *outer, enum trouble trouble)
{
	const char *name = text_of(outer, "name");

	if (trouble == FLOATS)
		return !strcmp(name, "round") ||
		       (!strcmp(text_of(outer, "expression_class"), "BOUND_CAST") &&
		        !strcmp(text_of(json_object_get(outer, "return_type"), "id"), "DECIMAL"));
	return !strcmp(name, "list_sort") || !strcmp(name, "list_reverse_sort") || !strcmp(name, "len");
}

/* Is column `index` of the operator below used in a way that does not settle it? */
static bool
uses(json_t *value, json_t *outer, size_t index, enum trouble trouble)
{
	const char *key;
	json_t *part;
	size_t i;

	if (json_is_object(value)) {
		if (!strcmp(text_of(value, "expression_class"), "BOUND_REF") &&
		    (size_t)json_number_value(json_object_get(value, "index")) == index)
			return !outer || !settles(outer, trouble);
		if (*text_of(value, "expression_class"))
			outer = value;
		json_object_foreach(value, key, part) if (uses(part, outer, index, trouble)) return true;
	}
	json_array_foreach(value, i, part) if (uses(part, outer, index, trouble)) return true;
	return false;
}

/* ---- operators ---- */

static enum leat_status
fail_function(size_t i, struct leat_err *err)
{
	static const char *const why[] = {
		[FLOATS] = "of floating-point numbers adds them up in an order that changes from run to run, and so do "
			   "its last "
			   "digits",
		[ORDER] = "depends on the order of rows, which changes from run to run",
		[CLOCK] = "gives something else in every run",
	};

	return leat_fail(err, LEAT_INVALID, "%s %s; write %s", functions[i].name, why[functions[i].trouble],
	                 functions[i].instead);
}

/* Column `index` of the operator is unstable: what reads it must settle it. */
static bool
is_settled(const struct level *level, size_t index, enum trouble trouble)
{
	const struct level *reader = level->above;

	while (reader && !strcmp(text_of(reader->operator, "type"), "LOGICAL_FILTER")) {
		if (uses(json_object_get(reader->operator, "expressions"), NULL, index, trouble))
			return false;
		reader = reader->above;
	}
	return reader && !strcmp(text_of(reader->operator, "type"), "LOGICAL_PROJECTION") &&
	       !uses(json_object_get(reader->operator, "expressions"), NULL, index, trouble);
}

static bool
calls_error(json_t *value)
{
	const char *key;
	json_t *part;
	size_t i;

	if (json_is_object(value)) {
		if (!strcmp(text_of(value, "name"), "error"))
			return true;
		json_object_foreach(value, key, part) if (calls_error(part)) return true;
	}
	json_array_foreach(value, i, part) if (calls_error(part)) return true;
	return false;
}

/* The plan of (SELECT x ...) as a value takes the first row, and fails if there is another. */
static bool
is_value_of_query(const struct level *level)
{
	json_t *expressions = json_object_get(level->operator, "expressions");

	return level->above && json_array_size(expressions) == 2 &&
	       !strcmp(text_of(json_array_get(expressions, 0), "name"), "first") &&
	       !strcmp(text_of(json_array_get(expressions, 1), "name"), "count_star") &&
	       !strcmp(text_of(level->above->operator, "type"), "LOGICAL_PROJECTION") &&
	       calls_error(json_object_get(level->above->operator, "expressions"));
}

static enum leat_status
check_aggregates(const struct level *level, struct leat_err *err)
{
	json_t *expressions = json_object_get(level->operator, "expressions"), *expression;
	size_t first = json_array_size(json_object_get(level->operator, "groups")), i;

	if (is_value_of_query(level))
		return LEAT_OK;
	json_array_foreach(expressions, i, expression)
	{
		size_t found = unstable_function(expression);

		if (found != SIZE_MAX && !is_settled(level, first + i, functions[found].trouble))
			return fail_function(found, err);
	}
	return LEAT_OK;
}

/* row_number() OVER (): numbers rows as they come. */
static enum leat_status
check_windows(json_t *operator, struct leat_err * err)
{
	json_t *expressions = json_object_get(operator, "expressions"), *expression;
	size_t i;

	json_array_foreach(expressions, i, expression)
	{
		size_t found = unstable_function(expression);
		bool ordered = json_array_size(json_object_get(expression, "orders")) > 0;

		if (found != SIZE_MAX && (functions[found].trouble == FLOATS || !ordered))
			return fail_function(found, err);
		if (strcmp(text_of(expression, "type"), "WINDOW_AGGREGATE") && !ordered)
			return leat_fail(
				err, LEAT_INVALID,
				"a window function without ORDER BY depends on the order of rows, which changes from "
				"run to run; write OVER (... ORDER BY key)");
	}
	return LEAT_OK;
}

static bool
is_below(json_t *operator, const char * type)
{
	json_t *below = json_array_get(json_object_get(operator, "children"), 0);

	while (below && !strcmp(text_of(below, "type"), "LOGICAL_PROJECTION"))
		below = json_array_get(json_object_get(below, "children"), 0);
	return below && !strcmp(text_of(below, "type"), type);
}

static enum leat_status
check_operator(const struct level *level, struct leat_err *err)
{
	const char *type = text_of(level->operator, "type");

	if (!strcmp(type, "LOGICAL_AGGREGATE_AND_GROUP_BY"))
		return check_aggregates(level, err);
	if (!strcmp(type, "LOGICAL_WINDOW"))
		return check_windows(level->operator, err);
	if (!strcmp(type, "LOGICAL_SAMPLE"))
		return leat_fail(
			err, LEAT_INVALID,
			"a sample has other rows in every run; write WHERE md5(key::VARCHAR) < '1999', which keeps a "
			"tenth");
	if (!strcmp(type, "LOGICAL_LIMIT") && !is_below(level->operator, "LOGICAL_ORDER_BY"))
		return leat_fail(err, LEAT_INVALID,
		                 "LIMIT without ORDER BY takes other rows in every run; write ORDER BY key LIMIT ...");
	if (!strcmp(type, "LOGICAL_DISTINCT") && !strcmp(text_of(level->operator, "distinct_type"), "DISTINCT_ON") &&
	    !json_is_object(json_object_get(level->operator, "order_by")))
		return leat_fail(
			err, LEAT_INVALID,
			"DISTINCT ON without ORDER BY takes other rows in every run; write ORDER BY what comes first");
	return LEAT_OK;
}

/* ---- all of the plan ---- */

/* Functions may be anywhere; operators are in each other's `children`. jansson limits the depth. */
static enum leat_status
check_value(json_t *value, const struct level *above, struct leat_err *err)
{
	const struct level level = {above, value};
	enum leat_status status = LEAT_OK;
	const char *key;
	json_t *part;
	size_t i;

	if (json_is_object(value)) {
		bool is_operator = !strncmp(text_of(value, "type"), "LOGICAL_", 8);

		if (is_operator)
			status = check_operator(&level, err);
		i = !strcmp(text_of(value, "expression_class"), "BOUND_FUNCTION")
		            ? find_function(text_of(value, "name"))
		            : SIZE_MAX;
		if (i != SIZE_MAX && functions[i].trouble == CLOCK)
			status = fail_function(i, err);
		json_object_foreach(value, key, part) if (status == LEAT_OK) status =
			check_value(part, is_operator ? &level : above, err);
	}
	json_array_foreach(value, i, part) if (status == LEAT_OK) status = check_value(part, above, err);
	return status;
}

static enum leat_status
check_plan(const char *text, size_t len, struct leat_err *err)
{
	json_error_t error;
	/* Some integers are 2^64 - 1, which jansson has no type for. */
	json_t *root = json_loadb(text, len, JSON_DECODE_INT_AS_REAL, &error);
	enum leat_status status;

	if (!root)
		return leat_fail(err, LEAT_UNSUPPORTED, "cannot read the plan of the query: %s", error.text);
	if (json_is_true(json_object_get(root, "error")))
		status = leat_fail(err, LEAT_INVALID, "%s", text_of(root, "error_message"));
	else
		status = check_value(json_object_get(root, "plans"), NULL, err);
	json_decref(root);
	return status;
}

enum leat_status
leat_sql_lint(struct leat_tables *tables, const char *sql, struct leat_err *err)
{
	struct leat_mem mem;
	struct leat_str ask;
	struct leat_query *query = NULL;
	struct leat_chunk chunk = {0};
	void *prepared;
	enum leat_status status = leat_tables_prepare(tables, sql, true, &prepared, err); /* its errors are better */

	if (status != LEAT_OK)
		return status;
	tables->api->destroy_prepare(&prepared);
	leat_mem_init(&mem, SIZE_MAX);
	leat_str_init(&ask, &mem, SIZE_MAX);
	leat_str_add(&ask, "SELECT json_serialize_plan(");
	leat_sql_quote(&ask, sql, '\'');
	leat_str_add(&ask, ")::VARCHAR");
	status = ask.failed ? leat_fail_mem(err, &mem, ask.len, "a query")
	                    : leat_query_open(&query, tables, leat_str_text(&ask), err);
	if (status == LEAT_OK)
		status = leat_query_next(query, &chunk, err);
	if (status == LEAT_OK && (chunk.rows != 1 || leat_vector_is_null(&chunk.columns[0], 0)))
		status = leat_fail(err, LEAT_INTERNAL, "DuckDB gave no plan of the query");
	if (status == LEAT_OK) {
		size_t len;
		const char *text = leat_vector_text(&chunk.columns[0], 0, &len);

		status = check_plan(text, len, err);
	}
	leat_query_close(query);
	leat_str_free(&ask);
	return status;
}
