/* feature_target.c - the mean label of training rows with the same value: target
 *
 * With a row's own label in the mean, a model would read the label off the feature. So training rows are dealt to folds
 *by the hash of a key, and get the mean of rows in other folds. All other rows, and new data, get the mean of all
 *training rows. Means are drawn to the mean of all values as if there were `smoothing` more rows with it:
 *
 *	(sum of labels + smoothing * prior) / (rows + smoothing)
 *
 * Sums are of whole numbers (transform.h), so they do not depend on the order of rows. */
#include <math.h>
#include <stdio.h>

#include "table/transform.h"

struct target {
	const char *label;
	int64_t folds;
	struct leat_values smoothing;
	struct leat_strings key;
};

enum { PRIOR, MISSING };
enum { MAX_SQL = 1 << 20 };

static const struct leat_opt options[] = {
	LEAT_STRING(struct target, label, LEAT_REQUIRED, "column with the label: a number, or true and false"),
	LEAT_INT(struct target, folds, "5", 2, 1000, "number of folds that training rows are dealt to"),
	LEAT_VALUES(struct target, smoothing, "20", "how many rows with the mean label to add to each value"),
	LEAT_STRINGS(struct target, key, "[]", "columns by whose hash rows are dealt to folds; []: those of the split",
                     LEAT_OPT_NAMED),
	LEAT_OPT_END,
};

static enum leat_status
check(const void *params, struct leat_err *err)
{
	const struct target *target = params;
	const struct leat_opt_value *smoothing = target->smoothing.value;

	if (target->smoothing.count != 1 || smoothing->type != LEAT_ARG_NUMBER || !(smoothing->number >= 0) ||
	    !(smoothing->number <= 1e12))
		return leat_fail(err, LEAT_SPEC,
		                 "the smoothing of 'target' is a number of rows, 0 or more, such as 20");
	return LEAT_OK;
}

static void
reads(const void *params, enum leat_role role, const char *const **names, size_t *count)
{
	const struct target *target = params;

	*names = role == LEAT_ROLE_LABEL ? &target->label : target->key.value;
	*count = role == LEAT_ROLE_LABEL ? 1 : role == LEAT_ROLE_KEY ? target->key.count : 0;
}

/* The number of a row's fold. Not of those bits that a split by hash uses: all its training rows have similar ones. */
static void
add_fold(const struct leat_role_columns *key, int64_t folds, struct leat_str *sql)
{
	char text[LEAT_MAX_CROSSED][64];
	const char *texts[LEAT_MAX_CROSSED];

	for (size_t i = 0; i < key->count; i++) {
		snprintf(text[i], sizeof(text[i]), "coalesce(CAST(%s AS VARCHAR), '')", key->sql[i]);
		texts[i] = text[i];
	}
	leat_str_add(sql, "CAST('0x' || right(md5(");
	leat_sql_add_joined(sql, texts, key->count);
	leat_str_addf(sql, "), 15) AS BIGINT) %% %lld", (long long)folds);
}

/* ---- fitting ---- */

struct sums {
	const struct leat_fitting *f;
	const struct target *target;
	int exponent;
	double prior;
};

static enum leat_status
run(const struct leat_fitting *f, struct leat_str *sql, struct leat_err *err)
{
	enum leat_status status = sql->failed ? leat_fail_mem(err, f->mem, sql->len, "a query")
	                                      : leat_tables_run(f->tables, leat_str_text(sql), err);

	leat_str_free(sql);
	return status;
}

/* The sums of labels by value and fold, as a temporary table. */
static enum leat_status
make_sums(const struct sums *s, struct leat_err *err)
{
	const struct leat_fitting *f = s->f;
	struct leat_str sql;

	leat_str_init(&sql, f->mem, SIZE_MAX / 4);
	leat_str_add(&sql, "CREATE OR REPLACE TEMP TABLE leat_sums AS SELECT value, fold, sum(");
	leat_sql_add_high(&sql, "y", s->exponent);
	leat_str_add(&sql, ") AS high, sum(");
	leat_sql_add_low(&sql, "y", s->exponent);
	leat_str_addf(&sql, ") AS low, count(*) AS n FROM (SELECT %s AS value, ", f->value);
	add_fold(&f->role[LEAT_ROLE_KEY], s->target->folds, &sql);
	leat_str_addf(&sql, " AS fold, CAST(%s AS DOUBLE) AS y FROM %s) WHERE isfinite(y) GROUP BY value, fold",
	              f->role[LEAT_ROLE_LABEL].sql[0], f->from);
	return run(f, &sql, err);
}

/* (sum + smoothing * prior) / (n + smoothing); the prior if that is nothing by nothing. */
static void
add_mean(const struct sums *s, const char *high, const char *low, const char *n, const char *prior,
         struct leat_str *sql)
{
	double smoothing = s->target->smoothing.value->number;

	leat_str_addf(sql, "CASE WHEN %s + ", n);
	leat_sql_add_number(sql, smoothing);
	leat_str_addf(sql, " > 0 THEN (");
	leat_sql_add_whole(sql, high, low, s->exponent);
	leat_str_add(sql, " + ");
	leat_sql_add_number(sql, smoothing);
	leat_str_addf(sql, " * %s) / (%s + ", prior, n);
	leat_sql_add_number(sql, smoothing);
	leat_str_addf(sql, ") ELSE %s END", prior);
}

static void
add_prior(const struct sums *s, struct leat_str *sql)
{
	leat_sql_add_number(sql, s->prior);
}

static enum leat_status
write_dictionary(const struct sums *s, struct leat_err *err)
{
	const struct leat_fitting *f = s->f;
	struct leat_str sql, path, prior;

	leat_str_init(&sql, f->mem, SIZE_MAX / 4);
	leat_str_init(&path, f->mem, SIZE_MAX / 4);
	leat_str_init(&prior, f->mem, MAX_SQL);
	add_prior(s, &prior);
	leat_dictionary_path(f, &path);
	leat_str_add(&sql, "COPY (SELECT row_number() OVER (ORDER BY count DESC, value) - 1 AS id, value, count, ");
	add_mean(s, "high", "low", "count", leat_str_text(&prior), &sql);
	leat_str_add(&sql,
	             " AS mean FROM (SELECT value, CAST(sum(n) AS BIGINT) AS count, sum(high) AS high, sum(low) AS "
	             "low FROM leat_sums WHERE value IS NOT NULL GROUP BY value) ORDER BY count DESC, value) TO ");
	leat_sql_quote(&sql, leat_str_text(&path), '\'');
	leat_str_add(&sql, " (FORMAT parquet, COMPRESSION zstd, ROW_GROUP_SIZE 122880)");
	sql.failed |= path.failed || prior.failed;
	leat_str_free(&path);
	leat_str_free(&prior);
	return run(f, &sql, err);
}

/* What rows without a value get. */
static enum leat_status
fit_missing(const struct sums *s, double *mean, struct leat_err *err)
{
	struct leat_fitting of = *s->f;
	struct leat_str columns, prior;
	enum leat_status status;

	of.value = "1e0"; /* the one column of one row */
	of.from = "(SELECT 1)";
	leat_str_init(&columns, of.mem, MAX_SQL);
	leat_str_init(&prior, of.mem, MAX_SQL);
	add_prior(s, &prior);
	leat_str_add(&columns, "(SELECT ");
	add_mean(s, "coalesce(sum(high), 0)", "coalesce(sum(low), 0)", "coalesce(sum(n), 0)", leat_str_text(&prior),
	         &columns);
	leat_str_add(&columns, " FROM leat_sums WHERE value IS NULL)");
	status = columns.failed || prior.failed ? leat_fail_mem(err, of.mem, columns.len, "a query")
	                                        : leat_fit_row(&of, leat_str_text(&columns), mean, 1, err);
	leat_str_free(&columns);
	leat_str_free(&prior);
	return status;
}

static enum leat_status
check_folds(const struct leat_fitting *f, struct leat_err *err)
{
	int64_t folds = 0;
	enum leat_status status =
		leat_query_int64(f->tables, "SELECT count(DISTINCT fold) FROM leat_sums", &folds, err);

	if (status == LEAT_OK && folds < 2)
		status = leat_fail(err, LEAT_DATA,
		                   "all training rows with a label are in one fold; give key=COLUMN with more values");
	return status;
}

/* Out-of-fold means as a variable: a list with `folds` numbers for each entry, then for rows without a value, then for
 * values that no labelled row has. */
static enum leat_status
make_folds(const struct sums *s, struct leat_err *err)
{
	const struct leat_fitting *f = s->f;
	long long entries = (long long)f->fitted->entries;
	struct leat_str sql, path;

	leat_str_init(&sql, f->mem, SIZE_MAX / 4);
	leat_str_init(&path, f->mem, SIZE_MAX / 4);
	leat_dictionary_path(f, &path);
	leat_str_addf(&sql,
	              "SET VARIABLE %s_folds = (WITH t AS (SELECT coalesce(d.id, %lld) AS id, fold, high, low, n FROM "
	              "leat_sums AS s LEFT JOIN read_parquet(",
	              f->fitted->dictionary, entries);
	leat_sql_quote(&sql, leat_str_text(&path), '\'');
	leat_str_addf(
		&sql,
		") AS d ON d.value = s.value), whole AS (SELECT id, sum(high) AS high, sum(low) AS low, sum(n) AS n "
		"FROM t GROUP BY id), apart AS (SELECT k.fold, (SELECT sum(high) FROM t) - coalesce(sum(high), 0) AS "
		"high, (SELECT sum(low) FROM t) - coalesce(sum(low), 0) AS low, (SELECT sum(n) FROM t) - "
		"coalesce(sum(n), 0) AS n FROM (SELECT unnest(range(%lld)) AS fold) AS k LEFT JOIN t ON t.fold = "
		"k.fold GROUP BY k.fold), priors AS (SELECT fold, ",
		(long long)s->target->folds);
	leat_sql_add_whole(&sql, "high", "low", s->exponent);
	leat_str_addf(
		&sql,
		" / n AS prior FROM apart), others AS (SELECT k.id, p.fold, p.prior, coalesce(w.high, 0) - "
		"coalesce(t.high, 0) AS high, coalesce(w.low, 0) - coalesce(t.low, 0) AS low, coalesce(w.n, 0) - "
		"coalesce(t.n, 0) AS n FROM (SELECT unnest(range(%lld)) AS id) AS k CROSS JOIN priors AS p LEFT JOIN "
		"whole AS w ON w.id = k.id LEFT JOIN t ON t.id = k.id AND t.fold = p.fold) SELECT list(",
		entries + 2);
	add_mean(s, "high", "low", "n", "prior", &sql);
	leat_str_add(&sql, " ORDER BY id, fold) FROM others); DROP TABLE leat_sums");
	sql.failed |= path.failed;
	leat_str_free(&path);
	return run(f, &sql, err);
}

static enum leat_status
fit(const struct leat_fitting *f, struct leat_err *err)
{
	struct sums s = {.f = f, .target = f->params};
	struct leat_fitting label = *f;
	enum leat_status status = leat_fit_numbers(f, 2, err);
	char y[64];

	snprintf(y, sizeof(y), "CAST(%s AS DOUBLE)", f->role[LEAT_ROLE_LABEL].sql[0]);
	label.value = y;
	if (!(f->role[LEAT_ROLE_LABEL].kind[0] & (LEAT_VALUE_NUMBER | LEAT_VALUE_WHOLE)))
		return leat_fail(err, LEAT_INVALID, "the label '%s' is not a number; CAST it in SQL", s.target->label);
	if (status == LEAT_OK)
		status = leat_fit_mean(&label, &s.prior, err);
	if (status == LEAT_DATA)
		return leat_fail(err, LEAT_DATA, "no training row has a label in '%s'", s.target->label);
	if (status == LEAT_OK)
		status = leat_fit_exponent(&label, 0, &s.exponent, err);
	if (status == LEAT_OK)
		status = make_sums(&s, err);
	if (status == LEAT_OK)
		status = check_folds(f, err);
	if (status == LEAT_OK)
		status = write_dictionary(&s, err);
	if (status == LEAT_OK)
		status = leat_fit_open_dictionary(f, err);
	f->fitted->number[PRIOR] = s.prior;
	if (status == LEAT_OK)
		status = fit_missing(&s, &f->fitted->number[MISSING], err);
	return status == LEAT_OK ? make_folds(&s, err) : status;
}

/* ---- SQL ---- */

static bool
suits(const void *params, const struct leat_fitted *fitted)
{
	(void)params;
	return fitted->entries >= 0;
}

static void
add_fitted(const struct leat_emitting *e)
{
	leat_str_addf(e->sql, "CASE WHEN %s IS NULL THEN ", e->value);
	leat_sql_add_number(e->sql, e->fitted->number[MISSING]);
	leat_str_add(e->sql, " ELSE ");
	if (e->fitted->entries) {
		leat_str_addf(e->sql, "coalesce(list_extract(CAST(getvariable('%s') AS DOUBLE[]), ",
		              e->fitted->dictionary);
		leat_sql_add_code(e->sql, e->value, e->fitted);
		leat_str_add(e->sql, " + 1), ");
	}
	leat_sql_add_number(e->sql, e->fitted->number[PRIOR]);
	leat_str_add(e->sql, e->fitted->entries ? ") END" : " END");
}

static void
add_out_of_fold(const struct leat_emitting *e)
{
	const struct target *target = e->params;
	long long entries = (long long)e->fitted->entries;

	leat_str_addf(
		e->sql,
		"list_extract(CAST(getvariable('%s_folds') AS DOUBLE[]), CASE WHEN %s IS NULL THEN %lld ELSE coalesce(",
		e->fitted->dictionary, e->value, entries);
	leat_sql_add_code(e->sql, e->value, e->fitted);
	leat_str_addf(e->sql, ", %lld) END * %lld + ", entries + 1, (long long)target->folds);
	add_fold(&e->role[LEAT_ROLE_KEY], target->folds, e->sql);
	leat_str_add(e->sql, " + 1)");
}

static enum leat_status
emit(struct leat_emitting *e, struct leat_err *err)
{
	(void)err;
	if (e->fitting) {
		leat_str_add(e->sql, "CASE WHEN split = 'train' THEN ");
		add_out_of_fold(e);
		leat_str_add(e->sql, " ELSE ");
	}
	add_fitted(e);
	leat_str_add(e->sql, e->fitting ? " END" : "");
	e->to = LEAT_VALUE_NUMBER;
	return LEAT_OK;
}

static const char *const names[] = {"prior", "missing"};

const struct leat_transform leat_transform_target = {
	.name = "target",
	.doc = "Mean label of the training rows with the same value, smoothed. Training rows get that of other folds, "
               "all "
	       "other rows and new data that of all training rows; missing counts as a value.",
	.version = 1,
	.opts = options,
	.params_size = sizeof(struct target),
	.accepts = LEAT_VALUE_TEXT,
	.fits_numbers = 2,
	.fits = names,
	.lookup = "mean",
	.check = check,
	.reads = reads,
	.fit = fit,
	.suits = suits,
	.emit = emit,
};
