/* feature_window.c - earlier rows of a row's group: lag, rolling
 *
 * `by` says which rows are a group, `order` how they follow each other. A row whose by or order is missing has no
 * earlier rows, and is none itself. Where rows are counted, two of the same order have no defined result and are an
 * error, raised by the SQL itself; an interval ends before the row's time, so it takes all of them or none.
 *
 * Sums of doubles depend on the order in which they are added, and DuckDB's on threads. So values are added as whole
 * numbers, multiples of a fitted unit (transform.h), and the sum is rounded at the end. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "table/transform.h"

enum { MAX_SQL = 1 << 20 };

#define GROUP_OPTIONS(T)                                                                                               \
	LEAT_STRINGS(T, by, "[]", "columns whose values say which rows are a group; []: all rows are one",             \
	             LEAT_OPT_NAMED),                                                                                  \
		LEAT_STRINGS(T, order, LEAT_REQUIRED, "columns that say how the rows of a group follow each other",    \
	                     LEAT_OPT_NAMED)

static void
find_names(const struct leat_strings *by, const struct leat_strings *order, enum leat_role role,
           const char *const **names, size_t *count)
{
	const struct leat_strings *found = role == LEAT_ROLE_BY ? by : role == LEAT_ROLE_ORDER ? order : NULL;

	*names = found ? found->value : NULL;
	*count = found ? found->count : 0;
}

static enum leat_status
check_order(const char *name, const struct leat_strings *order, struct leat_err *err)
{
	if (!order->count)
		return leat_fail(err, LEAT_SPEC, "'%s' needs order=COLUMN, such as a time", name);
	return LEAT_OK;
}

/* ---- SQL of groups ---- */

/* "x1 IS NULL OR x2 IS NULL" */
static void
add_missing(const struct leat_role_columns *columns, struct leat_str *sql)
{
	for (size_t i = 0; i < columns->count; i++)
		leat_str_addf(sql, "%s%s IS NULL", i ? " OR " : "", columns->sql[i]);
}

static void
add_list(const struct leat_role_columns *columns, struct leat_str *sql)
{
	for (size_t i = 0; i < columns->count; i++)
		leat_str_addf(sql, "%s%s", i ? ", " : "", columns->sql[i]);
}

/* Rows without an order are apart from the others. */
static void
add_over(const struct leat_emitting *e, const char *frame, struct leat_str *sql)
{
	leat_str_add(sql, " OVER (PARTITION BY ");
	add_list(&e->role[LEAT_ROLE_BY], sql);
	leat_str_add(sql, e->role[LEAT_ROLE_BY].count ? ", (" : "(");
	add_missing(&e->role[LEAT_ROLE_ORDER], sql);
	leat_str_add(sql, ") ORDER BY ");
	add_list(&e->role[LEAT_ROLE_ORDER], sql);
	leat_str_addf(sql, "%s)", frame);
}

/* "CASE WHEN the row has no group THEN NULL" */
static void
begin_case(const struct leat_emitting *e, struct leat_str *sql)
{
	leat_str_add(sql, "CASE WHEN ");
	add_missing(&e->role[LEAT_ROLE_BY], sql);
	leat_str_add(sql, e->role[LEAT_ROLE_BY].count ? " OR " : "");
	add_missing(&e->role[LEAT_ROLE_ORDER], sql);
	leat_str_add(sql, " THEN NULL");
}

static void
add_tie_text(const struct leat_emitting *e, struct leat_str *sql)
{
	struct leat_str text;

	leat_str_init(&text, sql->mem, MAX_SQL);
	leat_str_addf(&text,
	              "feature '%s': '%s' needs rows of a group in an order, but two have the same; add a column to "
	              "'order' that tells them apart. One is at ",
	              e->feature, e->transform->name);
	leat_sql_quote(sql, leat_str_text(&text), '\'');
	leat_str_add(sql, " || concat_ws(', '");
	for (size_t role = LEAT_ROLE_BY; role <= LEAT_ROLE_ORDER; role++)
		for (size_t i = 0; i < e->role[role].count; i++)
			leat_str_addf(sql, ", CAST(%s AS VARCHAR)", e->role[role].sql[i]);
	leat_str_add(sql, ")");
	sql->failed |= text.failed;
	leat_str_free(&text);
}

/* " WHEN the row has the order of the one before it THEN error(...)" */
static void
add_tie(const struct leat_emitting *e, struct leat_str *sql)
{
	const struct leat_role_columns *order = &e->role[LEAT_ROLE_ORDER];

	for (size_t i = 0; i < order->count; i++) {
		leat_str_addf(sql, "%s%s = lag(%s)", i ? " AND " : " WHEN ", order->sql[i], order->sql[i]);
		add_over(e, "", sql);
	}
	leat_str_add(sql, " THEN error(");
	add_tie_text(e, sql);
	leat_str_add(sql, ")");
}

/* ---- lag ---- */

struct lag {
	int64_t n;
	struct leat_strings by, order;
};

static const struct leat_opt lag_options[] = {
	LEAT_INT(struct lag, n, "1", 1, 1e9, "how many rows before"),
	GROUP_OPTIONS(struct lag),
	LEAT_OPT_END,
};

static enum leat_status
check_lag(const void *params, struct leat_err *err)
{
	return check_order("lag", &((const struct lag *)params)->order, err);
}

static void
lag_reads(const void *params, enum leat_role role, const char *const **names, size_t *count)
{
	const struct lag *lag = params;

	find_names(&lag->by, &lag->order, role, names, count);
}

static enum leat_status
emit_lag(struct leat_emitting *e, struct leat_err *err)
{
	const struct lag *lag = e->params;

	(void)err;
	begin_case(e, e->sql);
	add_tie(e, e->sql);
	leat_str_addf(e->sql, " ELSE lag(%s, %lld)", e->value, (long long)lag->n);
	add_over(e, "", e->sql);
	leat_str_add(e->sql, " END");
	return LEAT_OK;
}

const struct leat_transform leat_transform_lag = {
	.name = "lag",
	.doc = "The value of an earlier row of the group; missing if there is none.",
	.version = 1,
	.opts = lag_options,
	.params_size = sizeof(struct lag),
	.accepts = LEAT_VALUE_NUMBER | LEAT_VALUE_WHOLE | LEAT_VALUE_TEXT | LEAT_VALUE_TIME,
	.check = check_lag,
	.reads = lag_reads,
	.emit = emit_lag,
};

/* ---- rolling ---- */

struct rolling {
	int what;
	struct leat_values window;
	bool current;
	struct leat_strings by, order;
};

enum { MEAN, SUM, MIN, MAX, COUNT, STD };
enum { CENTER, SCALE };
enum { SQUARE_MAX = 450, SQUARE_MIN = -400 }; /* exponents whose squares are in range */

static const struct leat_opt rolling_options[] = {
	LEAT_ENUM(struct rolling, what, LEAT_REQUIRED, "mean|sum|min|max|count|std",
                  "what to compute; std is of the population"),
	LEAT_OPT_(struct rolling, window, LEAT_OPT_VALUES, LEAT_REQUIRED, 0, 0, NULL,
                  "over how many rows, such as 10, or how much time, such as 7d (units: s, m, h, d, w)",
                  LEAT_OPT_UNITS),
	GROUP_OPTIONS(struct rolling),
	LEAT_OPT_(struct rolling, current, LEAT_OPT_BOOL, "false", 0, 1, NULL,
                  "also count the row itself, which leaks if the value is not known in time", LEAT_OPT_NAMED),
	LEAT_OPT_END,
};

/* Microseconds; 0: not an interval. */
static double
interval_of(const struct leat_opt_value *window)
{
	static const struct {
		const char *unit;
		double seconds;
	} units[] = {{"s", 1}, {"m", 60}, {"h", 3600}, {"d", 86400}, {"w", 7 * 86400}};

	for (size_t i = 0; i < sizeof(units) / sizeof(*units) && window->unit; i++)
		if (!strcmp(units[i].unit, window->unit))
			return rint(window->number * units[i].seconds * 1e6);
	return 0;
}

static enum leat_status
check_rolling(const void *params, struct leat_err *err)
{
	const struct rolling *rolling = params;
	const struct leat_opt_value *window = rolling->window.value;
	bool is_number = rolling->window.count == 1 && window->type == LEAT_ARG_NUMBER;
	double time = is_number ? interval_of(window) : 0;

	if (is_number && window->unit && !(time >= 1 && time <= 1e17))
		return leat_fail(
			err, LEAT_SPEC,
			"the time of 'rolling' is a number with s, m, h, d or w, such as 7d, of at most 3000 years");
	if (!is_number || (!window->unit &&
	                   !(window->number >= 1 && window->number <= 1e9 && window->number == rint(window->number))))
		return leat_fail(err, LEAT_SPEC,
		                 "'rolling' needs a number of rows or a time, such as rolling(mean, 10, ...) or "
		                 "rolling(mean, 7d, ...)");
	if (window->unit && rolling->order.count > 1)
		return leat_fail(err, LEAT_SPEC, "'rolling' over a time needs one column in 'order', not %zu",
		                 rolling->order.count);
	return check_order("rolling", &rolling->order, err);
}

static void
rolling_reads(const void *params, enum leat_role role, const char *const **names, size_t *count)
{
	const struct rolling *rolling = params;

	find_names(&rolling->by, &rolling->order, role, names, count);
}

static bool
adds(const struct rolling *rolling)
{
	return rolling->what == MEAN || rolling->what == SUM || rolling->what == STD;
}

/* Deviations from the mean of all rows, so that squares cancel less. */
static enum leat_status
fit_rolling(const struct leat_fitting *f, struct leat_err *err)
{
	const struct rolling *rolling = f->params;
	enum leat_status status = leat_fit_numbers(f, 2, err);
	int exponent = 0;

	if (status == LEAT_OK && rolling->what == STD)
		status = leat_fit_mean(f, &f->fitted->number[CENTER], err);
	if (status == LEAT_OK && adds(rolling))
		status = leat_fit_exponent(f, f->fitted->number[CENTER], &exponent, err);
	if (status != LEAT_OK)
		return status;
	if (rolling->what == STD)
		exponent = exponent < SQUARE_MIN ? SQUARE_MIN : exponent > SQUARE_MAX ? SQUARE_MAX : exponent;
	f->fitted->number[SCALE] = ldexp(1, exponent);
	return LEAT_OK;
}

static bool
rolling_suits(const void *params, const struct leat_fitted *fitted)
{
	bool is_std = ((const struct rolling *)params)->what == STD;
	int exponent;

	if (fitted->numbers != 2 || frexp(fitted->number[SCALE], &exponent) != 0.5)
		return false;
	return --exponent >= (is_std ? SQUARE_MIN : LEAT_EXACT_MIN) &&
	       exponent <= (is_std ? SQUARE_MAX : LEAT_EXACT_MAX);
}

/* Which rows, as SQL. */
static void
set_frame(const struct rolling *rolling, char *frame, size_t size)
{
	const struct leat_opt_value *window = rolling->window.value;
	long long n = (long long)(window->unit ? interval_of(window) : window->number);

	if (!window->unit)
		snprintf(frame, size, " ROWS BETWEEN %lld PRECEDING AND %s", n - rolling->current,
		         rolling->current ? "CURRENT ROW" : "1 PRECEDING");
	else
		snprintf(frame, size, " RANGE BETWEEN to_microseconds(CAST(%lld AS BIGINT)) PRECEDING AND %s",
		         n - rolling->current,
		         rolling->current ? "CURRENT ROW" : "to_microseconds(CAST(1 AS BIGINT)) PRECEDING");
}

/* One aggregate over the frame. */
static void
add_aggregate(const struct leat_emitting *e, const char *function, const char *value, const char *frame,
              struct leat_str *sql)
{
	leat_str_addf(sql, "%s(%s)", function, value);
	add_over(e, frame, sql);
}

/* The sum of `value`, below 2^(exponent + 30), over the frame; 0 for none. */
static void
add_sum(const struct leat_emitting *e, const char *value, int exponent, const char *frame, struct leat_str *sql)
{
	struct leat_str high, low, part;

	leat_str_init(&high, sql->mem, MAX_SQL);
	leat_str_init(&low, sql->mem, MAX_SQL);
	leat_str_init(&part, sql->mem, MAX_SQL);
	leat_sql_add_high(&part, value, exponent);
	leat_str_add(&high, "coalesce(");
	add_aggregate(e, "sum", leat_str_text(&part), frame, &high);
	leat_str_add(&high, ", 0)");
	sql->failed |= part.failed;
	leat_str_free(&part);
	leat_sql_add_low(&part, value, exponent);
	leat_str_add(&low, "coalesce(");
	add_aggregate(e, "sum", leat_str_text(&part), frame, &low);
	leat_str_add(&low, ", 0)");
	leat_sql_add_whole(sql, leat_str_text(&high), leat_str_text(&low), exponent);
	sql->failed |= part.failed || high.failed || low.failed;
	leat_str_free(&high);
	leat_str_free(&low);
	leat_str_free(&part);
}

/* sqrt(E(x^2) - E(x)^2), and 0 if all are the same, whatever was rounded. Of deviations up to M, the error is at most
 * some 2^-25 M. */
static void
add_std(const struct leat_emitting *e, const char *value, int exponent, const char *frame, struct leat_str *sql)
{
	struct leat_str square;

	leat_str_init(&square, sql->mem, MAX_SQL);
	leat_str_addf(&square, "(%s * %s)", value, value);
	leat_str_add(sql, "CASE WHEN ");
	add_aggregate(e, "count", value, frame, sql);
	leat_str_add(sql, " = 0 THEN NULL WHEN ");
	add_aggregate(e, "min", value, frame, sql);
	leat_str_add(sql, " = ");
	add_aggregate(e, "max", value, frame, sql);
	leat_str_add(sql, " THEN 0e0 ELSE sqrt(greatest(0e0, ");
	add_sum(e, leat_str_text(&square), 2 * exponent, frame, sql);
	leat_str_add(sql, " / nullif(");
	add_aggregate(e, "count", value, frame, sql);
	leat_str_add(sql, ", 0) - pow(");
	add_sum(e, value, exponent, frame, sql);
	leat_str_add(sql, " / nullif(");
	add_aggregate(e, "count", value, frame, sql);
	leat_str_add(sql, ", 0), 2))) END");
	sql->failed |= square.failed;
	leat_str_free(&square);
}

/* The value if it counts: finite, and not so large that sums would overflow. */
static void
add_value(const struct leat_emitting *e, int exponent, struct leat_str *sql)
{
	const struct rolling *rolling = e->params;
	double center = e->fitted->number[CENTER];
	struct leat_str value;

	leat_str_init(&value, sql->mem, MAX_SQL);
	leat_str_addf(&value, center != 0 ? "(%s - " : "%s", e->value);
	if (center != 0) {
		leat_sql_add_number(&value, center);
		leat_str_add(&value, ")");
	}
	if (adds(rolling)) {
		leat_str_addf(sql, "CASE WHEN abs(%s) < ", leat_str_text(&value));
		leat_sql_add_number(sql, ldexp(1, exponent + (rolling->what == STD ? LEAT_EXACT_HEADROOM / 2
		                                                                   : LEAT_EXACT_HEADROOM)));
	} else {
		leat_str_addf(sql, "CASE WHEN isfinite(%s)", leat_str_text(&value));
	}
	leat_str_addf(sql, " THEN %s END", leat_str_text(&value));
	sql->failed |= value.failed;
	leat_str_free(&value);
}

static void
add_result(const struct leat_emitting *e, const char *value, int exponent, const char *frame)
{
	static const char *const functions[] = {[MIN] = "min", [MAX] = "max", [COUNT] = "count"};
	const struct rolling *rolling = e->params;

	if (rolling->what == STD) {
		add_std(e, value, exponent, frame, e->sql);
	} else if (!adds(rolling)) {
		add_aggregate(e, functions[rolling->what], value, frame, e->sql);
	} else {
		add_sum(e, value, exponent, frame, e->sql);
		if (rolling->what == MEAN) {
			leat_str_add(e->sql, " / nullif(");
			add_aggregate(e, "count", value, frame, e->sql);
			leat_str_add(e->sql, ", 0)");
		}
	}
}

static enum leat_status
emit_rolling(struct leat_emitting *e, struct leat_err *err)
{
	const struct rolling *rolling = e->params;
	bool is_time = rolling->window.value->unit != NULL;
	struct leat_str value;
	char frame[160];
	int exponent;

	if (is_time && e->role[LEAT_ROLE_ORDER].kind[0] != LEAT_VALUE_TIME)
		return leat_fail(
			err, LEAT_INVALID,
			"feature '%s': 'rolling' over a time needs a time as its order, but '%s' is none; CAST it "
			"in SQL, or give a number of rows",
			e->feature, rolling->order.value[0]);
	frexp(e->fitted->number[SCALE], &exponent);
	exponent--;
	set_frame(rolling, frame, sizeof(frame));
	leat_str_init(&value, e->sql->mem, MAX_SQL);
	add_value(e, exponent, &value);
	begin_case(e, e->sql);
	if (!is_time)
		add_tie(e, e->sql);
	leat_str_add(e->sql, " ELSE ");
	add_result(e, leat_str_text(&value), exponent, frame);
	leat_str_add(e->sql, " END");
	e->to = rolling->what == COUNT ? LEAT_VALUE_WHOLE : LEAT_VALUE_NUMBER;
	e->sql->failed |= value.failed;
	leat_str_free(&value);
	return LEAT_OK;
}

static const char *const rolling_names[] = {"center", "scale"};

const struct leat_transform leat_transform_rolling = {
	.name = "rolling",
	.doc = "A statistic of the values of earlier rows of the group: the last so many, or those of the last so much "
	       "time. Missing and infinite values do not count; of none, sum and count are 0 and others are missing.",
	.version = 1,
	.opts = rolling_options,
	.params_size = sizeof(struct rolling),
	.accepts = LEAT_VALUE_NUMBER,
	.fits_numbers = 2,
	.fits = rolling_names,
	.check = check_rolling,
	.reads = rolling_reads,
	.fit = fit_rolling,
	.suits = rolling_suits,
	.emit = emit_rolling,
};
