/* feature_missing.c - keep a column as it is, or fill what is missing: keep, impute */
#include <math.h>
#include <string.h>

#include "table/transform.h"

/* ---- keep ---- */

static enum leat_status
emit_keep(struct leat_emitting *e, struct leat_err *err)
{
	(void)err;
	leat_str_add(e->sql, e->value);
	return LEAT_OK;
}

const struct leat_transform leat_transform_keep = {
	.name = "keep",
	.doc = "Keep the column as it is, such as a label. New data may lack it.",
	.version = 1,
	.accepts = LEAT_VALUE_NUMBER | LEAT_VALUE_WHOLE | LEAT_VALUE_TEXT | LEAT_VALUE_TIME | LEAT_VALUE_OTHER |
                   LEAT_VALUE_LIST | LEAT_VALUE_IDS,
	.emit = emit_keep,
};

/* ---- impute ---- */

struct impute {
	struct leat_values value;
	bool indicator;
};

static const struct leat_opt impute_options[] = {
	LEAT_VALUES(struct impute, value, LEAT_REQUIRED, "what to fill in: a number, a text, mean, median or mode"),
	LEAT_BOOL(struct impute, indicator, "false",
                  "add a column NAME_missing that is 1 where something was filled in"),
	LEAT_OPT_END,
};

static bool
is_word(const struct leat_opt_value *value, const char *word)
{
	return value->type == LEAT_ARG_WORD && !strcmp(value->text, word);
}

/* Is it a number that a column of whole numbers can hold without becoming one of fractions? */
static bool
is_whole(const struct leat_opt_value *value)
{
	if (value->type == LEAT_ARG_NUMBER)
		return value->number == rint(value->number) && fabs(value->number) < 0x1p53;
	return is_word(value, "mode");
}

static enum leat_status
check_impute(const void *params, struct leat_err *err)
{
	const struct impute *impute = params;

	if (impute->value.count != 1)
		return leat_fail(err, LEAT_SPEC, "'impute' takes one value, not %zu", impute->value.count);
	return LEAT_OK;
}

/* The most frequent value; of several, the smallest. */
static enum leat_status
fit_mode(const struct leat_fitting *f, char **text, double *number, struct leat_err *err)
{
	struct leat_query *query = NULL;
	struct leat_chunk chunk = {0};
	struct leat_str sql;
	enum leat_status status;

	leat_str_init(&sql, f->mem, SIZE_MAX / 4);
	leat_str_addf(&sql,
	              "SELECT CAST(x AS %s) FROM (SELECT %s AS x FROM %s) WHERE x IS NOT NULL GROUP BY x "
	              "ORDER BY count(*) DESC, x LIMIT 1",
	              text ? "VARCHAR" : "DOUBLE", f->value, f->from);
	status = sql.failed ? leat_fail_mem(err, f->mem, sql.len, "a query")
	                    : leat_query_open(&query, f->tables, leat_str_text(&sql), err);
	if (status == LEAT_OK)
		status = leat_query_next(query, &chunk, err);
	if (status == LEAT_OK && !chunk.rows)
		status = leat_fail(err, LEAT_DATA, "no training row has a value");
	if (status == LEAT_OK && text) {
		size_t len;
		const char *value = leat_vector_text(&chunk.columns[0], 0, &len);

		*text = memchr(value, '\0', len) ? NULL : leat_strndup(f->mem, value, len);
		if (!*text)
			status = leat_fail(err, LEAT_DATA, "the most frequent text cannot be filled in");
	} else if (status == LEAT_OK) {
		*number = *(const double *)chunk.columns[0].values;
	}
	leat_query_close(query);
	leat_str_free(&sql);
	return status;
}

static enum leat_status
fit_text(const struct leat_fitting *f, const struct leat_opt_value *value, struct leat_err *err)
{
	if (is_word(value, "mode"))
		return fit_mode(f, &f->fitted->text, NULL, err);
	if (value->type == LEAT_ARG_NUMBER)
		return leat_fail(err, LEAT_INVALID, "it is a text, so 'impute' needs a text in quotes or 'mode'");
	f->fitted->text = leat_strdup(f->mem, value->text);
	return f->fitted->text ? LEAT_OK : leat_fail_mem(err, f->mem, strlen(value->text), "a text");
}

static enum leat_status
fit_impute(const struct leat_fitting *f, struct leat_err *err)
{
	static const double half = 0.5;
	const struct leat_opt_value *value = ((const struct impute *)f->params)->value.value;
	enum leat_status status;
	double *number;

	if (f->kind == LEAT_VALUE_TEXT)
		return fit_text(f, value, err);
	status = leat_fit_numbers(f, 1, err);
	if (status != LEAT_OK)
		return status;
	number = f->fitted->number;
	if (value->type == LEAT_ARG_NUMBER)
		*number = value->number;
	else if (is_word(value, "mean"))
		return leat_fit_mean(f, number, err);
	else if (is_word(value, "median"))
		return leat_fit_quantiles(f, &half, 1, number, err);
	else if (is_word(value, "mode"))
		return fit_mode(f, NULL, number, err);
	else
		return leat_fail(err, LEAT_INVALID,
		                 "it is a number, so 'impute' needs a number, mean, median or mode, not "
		                 "'%s'",
		                 value->text);
	return LEAT_OK;
}

static bool
impute_suits(const void *params, const struct leat_fitted *fitted)
{
	(void)params;
	return fitted->text ? fitted->numbers == 0 : fitted->numbers == 1;
}

static enum leat_status
emit_impute(struct leat_emitting *e, struct leat_err *err)
{
	const struct impute *impute = e->params;
	bool whole = e->kind == LEAT_VALUE_WHOLE && is_whole(impute->value.value);

	if ((e->kind == LEAT_VALUE_TEXT) != (e->fitted->text != NULL))
		return leat_fail(err, LEAT_DATA, "what was fitted for 'impute' does not suit the column's type");
	leat_str_add(e->sql, "coalesce(");
	leat_str_addf(e->sql, e->kind == LEAT_VALUE_WHOLE && !whole ? "CAST(%s AS DOUBLE), " : "%s, ", e->value);
	if (e->kind == LEAT_VALUE_TEXT)
		leat_sql_quote(e->sql, e->fitted->text, '\'');
	else if (whole)
		leat_str_addf(e->sql, "CAST(%.0f AS BIGINT)", e->fitted->number[0]);
	else
		leat_sql_add_number(e->sql, e->fitted->number[0]);
	leat_str_add(e->sql, ")");
	if (e->kind == LEAT_VALUE_WHOLE && !whole)
		e->to = LEAT_VALUE_NUMBER;
	if (impute->indicator) {
		e->side[e->sides].suffix = "missing";
		leat_str_addf(e->side[e->sides++].sql, "CAST(%s IS NULL AS BIGINT)", e->value);
	}
	return LEAT_OK;
}

const struct leat_transform leat_transform_impute = {
	.name = "impute",
	.doc = "Fill in what is missing.",
	.version = 1,
	.opts = impute_options,
	.params_size = sizeof(struct impute),
	.accepts = LEAT_VALUE_NUMBER | LEAT_VALUE_WHOLE | LEAT_VALUE_TEXT,
	.fits_numbers = SIZE_MAX,
	.check = check_impute,
	.fit = fit_impute,
	.suits = impute_suits,
	.emit = emit_impute,
};
