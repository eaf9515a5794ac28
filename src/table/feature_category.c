/* feature_category.c - values by their frequency in training rows: vocab, onehot, multihot, count, rare
 *
 * All look a text up in a dictionary: an ENUM of DuckDB, whose casts are hash lookups, so rows keep their order
 * and nothing is joined. Numbers and times are looked up by their text. */
#include "table/transform.h"

void
leat_sql_add_code(struct leat_str *sql, const char *text, const struct leat_fitted *fitted)
{
	if (fitted->entries)
		leat_str_addf(sql, "CAST(enum_code(TRY_CAST(%s AS \"%s\")) AS BIGINT)", text, fitted->dictionary);
	else
		leat_str_add(sql, "CAST(NULL AS BIGINT)"); /* an ENUM has at least one entry */
}

static void
add_code(struct leat_emitting *e)
{
	leat_sql_add_code(e->sql, e->value, e->fitted);
}

static bool
suits(const void *params, const struct leat_fitted *fitted)
{
	(void)params;
	return fitted->entries >= 0;
}

struct sized {
	int64_t min_count, max_size;
};

static enum leat_status
fit_sized(const struct leat_fitting *f, struct leat_err *err)
{
	const struct sized *sized = f->params;

	return leat_fit_dictionary(f, sized->min_count, sized->max_size, err);
}

/* ---- vocab ---- */

static const struct leat_opt vocab_options[] = {
	LEAT_INT(struct sized, min_count, "1", 1, 9e18, "training rows that a value needs to get its own number"),
	LEAT_INT(struct sized, max_size, "1M", 1, 1e9, "most values to number; the most frequent are kept"),
	LEAT_OPT_END,
};

static void
add_number(struct leat_emitting *e, const char *text)
{
	leat_str_addf(e->sql, "CASE WHEN %s IS NULL THEN CAST(1 AS BIGINT) ELSE coalesce(", text);
	leat_sql_add_code(e->sql, text, e->fitted);
	leat_str_add(e->sql, " + 3, 2) END");
}

static enum leat_status
emit_vocab(struct leat_emitting *e, struct leat_err *err)
{
	(void)err;
	if (e->kind == LEAT_VALUE_LIST) {
		leat_str_addf(e->sql, "coalesce(list_transform(%s, lambda x: ", e->value);
		add_number(e, "x");
		leat_str_add(e->sql, "), [CAST(1 AS BIGINT)])");
		e->to = LEAT_VALUE_IDS;
		return LEAT_OK;
	}
	add_number(e, e->value);
	e->to = LEAT_VALUE_WHOLE;
	return LEAT_OK;
}

const struct leat_transform leat_transform_vocab = {
	.name = "vocab",
	.doc = "Number the values: 0 is left for padding, 1 is missing, 2 any other value, 3 the most frequent one and "
	       "so on; equally frequent ones by name. Of a list, each item.",
	.version = 1,
	.opts = vocab_options,
	.params_size = sizeof(struct sized),
	.accepts = LEAT_VALUE_TEXT | LEAT_VALUE_LIST,
	.fit = fit_sized,
	.suits = suits,
	.emit = emit_vocab,
};

/* ---- onehot ---- */

static const struct leat_opt onehot_options[] = {
	LEAT_INT(struct sized, min_count, "1", 1, 9e18, "training rows that a value needs to get its own place"),
	LEAT_INT(struct sized, max_size, "100", 1, LEAT_MAX_ONEHOT,
                 "most values with a place; the most frequent are kept"),
	LEAT_OPT_END,
};

static bool
onehot_suits(const void *params, const struct leat_fitted *fitted)
{
	(void)params;
	return fitted->entries >= 0 && fitted->entries <= LEAT_MAX_ONEHOT;
}

/* A window over n zeros, a one and n - 1 zeros: its place says where the one is. That of a value without a place ends
 * before the one. */
static enum leat_status
emit_onehot(struct leat_emitting *e, struct leat_err *err)
{
	int64_t n = e->fitted->entries;

	(void)err;
	if (!n) {
		leat_str_add(e->sql, "CAST([] AS UTINYINT[])");
	} else {
		leat_str_add(e->sql, "list_slice(CAST([0");
		for (int64_t i = 1; i < 2 * n; i++)
			leat_str_add(e->sql, i == n ? ",1" : ",0");
		leat_str_addf(e->sql, "] AS UTINYINT[]), %lld - coalesce(", (long long)n + 1);
		add_code(e);
		leat_str_addf(e->sql, ", %lld), %lld - coalesce(", (long long)n, 2 * (long long)n);
		add_code(e);
		leat_str_addf(e->sql, ", %lld))", (long long)n);
	}
	e->to = LEAT_VALUE_OTHER;
	return LEAT_OK;
}

const struct leat_transform leat_transform_onehot = {
	.name = "onehot",
	.doc = "List of zeros with a one at the value's place, the most frequent value first; all zeros for missing "
	       "and "
	       "other values.",
	.version = 1,
	.opts = onehot_options,
	.params_size = sizeof(struct sized),
	.accepts = LEAT_VALUE_TEXT,
	.last = true,
	.fit = fit_sized,
	.suits = onehot_suits,
	.emit = emit_onehot,
};

/* ---- multihot ---- */

/* The list of numbers is the argument of a lambda, so that it is made once. */
static enum leat_status
emit_multihot(struct leat_emitting *e, struct leat_err *err)
{
	(void)err;
	if (!e->fitted->entries) {
		leat_str_add(e->sql, "CAST([] AS UTINYINT[])");
	} else {
		leat_str_addf(e->sql, "list_transform([list_transform(%s, lambda x: ", e->value);
		leat_sql_add_code(e->sql, "x", e->fitted);
		leat_str_addf(e->sql,
		              ")], lambda c: list_transform(range(%lld), lambda i: CAST(coalesce(list_contains(c, i), "
		              "false) AS UTINYINT)))[1]",
		              (long long)e->fitted->entries);
	}
	e->to = LEAT_VALUE_OTHER;
	return LEAT_OK;
}

const struct leat_transform leat_transform_multihot = {
	.name = "multihot",
	.doc = "List of zeros with a one at the place of each of a list's values, the most frequent value first; other "
	       "values have no place, and a missing list is all zeros.",
	.version = 1,
	.opts = onehot_options,
	.params_size = sizeof(struct sized),
	.accepts = LEAT_VALUE_LIST,
	.last = true,
	.fit = fit_sized,
	.suits = onehot_suits,
	.emit = emit_multihot,
};

/* ---- rare ---- */

struct rare {
	int64_t min_count;
	const char *other;
};

static const struct leat_opt rare_options[] = {
	LEAT_INT(struct rare, min_count, LEAT_REQUIRED, 1, 9e18, "training rows that a value needs to be kept"),
	LEAT_STRING(struct rare, other, "other", "what all other values become"),
	LEAT_OPT_END,
};

static enum leat_status
fit_rare(const struct leat_fitting *f, struct leat_err *err)
{
	const struct rare *rare = f->params;

	return leat_fit_dictionary(f, rare->min_count, INT64_MAX, err);
}

static enum leat_status
emit_rare(struct leat_emitting *e, struct leat_err *err)
{
	const struct rare *rare = e->params;

	(void)err;
	leat_str_addf(e->sql, "CASE WHEN %s IS NOT NULL AND ", e->value);
	add_code(e);
	leat_str_add(e->sql, " IS NULL THEN ");
	leat_sql_quote(e->sql, rare->other, '\'');
	leat_str_addf(e->sql, " ELSE %s END", e->value);
	return LEAT_OK;
}

const struct leat_transform leat_transform_rare = {
	.name = "rare",
	.doc = "Put values that few training rows have, or none, under one name. Missing stays missing.",
	.version = 1,
	.opts = rare_options,
	.params_size = sizeof(struct rare),
	.accepts = LEAT_VALUE_TEXT,
	.fit = fit_rare,
	.suits = suits,
	.emit = emit_rare,
};

/* ---- count ---- */

static enum leat_status
fit_count(const struct leat_fitting *f, struct leat_err *err)
{
	return leat_fit_dictionary(f, 1, INT64_MAX, err);
}

static enum leat_status
emit_count(struct leat_emitting *e, struct leat_err *err)
{
	(void)err;
	leat_str_addf(e->sql, "CASE WHEN %s IS NULL THEN NULL ELSE ", e->value);
	if (e->fitted->entries) {
		leat_str_addf(e->sql, "coalesce(list_extract(CAST(getvariable('%s') AS BIGINT[]), ",
		              e->fitted->dictionary);
		add_code(e);
		leat_str_add(e->sql, " + 1), 0)");
	} else {
		leat_str_add(e->sql, "CAST(0 AS BIGINT)");
	}
	leat_str_add(e->sql, " END");
	e->to = LEAT_VALUE_WHOLE;
	return LEAT_OK;
}

const struct leat_transform leat_transform_count = {
	.name = "count",
	.doc = "How many training rows have the value; 0 for one that none has.",
	.version = 1,
	.accepts = LEAT_VALUE_TEXT,
	.fit = fit_count,
	.suits = suits,
	.emit = emit_count,
};
