/* profile_drift.c - how a table differs from an earlier one, column by column
 *
 * Both tables are counted over the same bins. Numbers and times: the deciles of the earlier table, each with a bin for
 * values equal to it, because constants and frequent values are deciles themselves; NULL; NaN and infinite. Words: the
 * most frequent ones of the earlier table, all others that it has, those that it has not, NULL. */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/str.h"
#include "table/profile_inside.h"

enum { EDGES = 9, WORDS = 50, BINS = 2 * EDGES + 3 > WORDS + 3 ? 2 * EDGES + 3 : WORDS + 3, MAX_SQL = 4 << 20 };

#define FLOOR 1e-4 /* share that an empty bin counts as in the PSI */
#define SOME 0.1
#define LARGE 0.25

/* ---- figures ---- */

static double
sum(const double *x, size_t n)
{
	double total = 0;

	for (size_t i = 0; i < n; i++)
		total += x[i];
	return total;
}

double
leat_drift_psi(const double *then, const double *now, size_t bins)
{
	double p_all = sum(then, bins), q_all = sum(now, bins), psi = 0;

	if (p_all <= 0 || q_all <= 0)
		return 0;
	for (size_t i = 0; i < bins; i++) {
		double p = fmax(then[i] / p_all, FLOOR), q = fmax(now[i] / q_all, FLOOR);

		psi += (q - p) * log(q / p);
	}
	return psi;
}

double
leat_drift_js(const double *then, const double *now, size_t bins)
{
	double p_all = sum(then, bins), q_all = sum(now, bins), js = 0;

	if (p_all <= 0 || q_all <= 0)
		return 0;
	for (size_t i = 0; i < bins; i++) {
		double p = then[i] / p_all, q = now[i] / q_all, middle = (p + q) / 2;

		js += (p > 0 ? p * log2(p / middle) : 0) / 2 + (q > 0 ? q * log2(q / middle) : 0) / 2;
	}
	return js > 0 ? js : 0;
}

/* What the PSI of two samples of the same source stays below, but for one time in a thousand or so: scaled by the rows,
 * it is chi-squared distributed with a degree of freedom less than there are bins. */
static double
chance(const double *then, const double *now, size_t bins)
{
	double n = sum(then, bins), m = sum(now, bins), used = 0;

	for (size_t i = 0; i < bins; i++)
		used += then[i] > 0 || now[i] > 0;
	return used > 1 ? (used - 1 + 4 * sqrt(2 * (used - 1))) * (1 / n + 1 / m) : 0;
}

/* ---- counting ---- */

struct counts {
	size_t bins;
	double then[BINS], now[BINS];
	struct leat_profile_text word[WORDS]; /* of the first bins of words */
	size_t words;
};

struct comparing {
	struct leat_tables *tables;
	const struct leat_profile *now, *then;
	size_t at_now, at_then; /* the column's place in each */
	struct leat_mem *mem;
	struct leat_err *err;
};

/* Runs a query of bins and their rows, which has a bin -1 or less for none that is listed. */
static enum leat_status
count_bins(const struct comparing *c, struct leat_str *sql, double *count, size_t bins)
{
	struct leat_rows rows = {0};
	enum leat_status status = leat_rows_open(&rows, c->tables, sql, c->err);

	while (status == LEAT_OK && (status = leat_rows_next(&rows, c->err)) == LEAT_OK) {
		uint64_t bin = leat_rows_count(&rows, 0);

		if (bin < bins)
			count[bin] += (double)leat_rows_count(&rows, 1);
	}
	leat_rows_close(&rows);
	return status == LEAT_END ? LEAT_OK : status;
}

/* The deciles of the earlier table, without repetitions. */
static enum leat_status
find_edges(const struct comparing *c, double edge[EDGES], size_t *edges)
{
	const struct leat_profile_column *column = &c->then->column[c->at_then];
	double found[EDGES];
	struct leat_rows rows = {0};
	struct leat_str sql;
	enum leat_status status;

	leat_str_init(&sql, c->mem, MAX_SQL);
	/* Values of the table, not between them: a bin for values that are equal must be able to have some. */
	leat_str_addf(&sql, "SELECT %s(x, [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9]) FROM (SELECT ",
	              column->approximate_quantiles ? "approx_quantile" : "quantile_disc");
	leat_profile_add_number(&sql, column, c->at_then);
	leat_str_addf(&sql, " AS x FROM %s)", c->then->relation);
	status = leat_rows_open(&rows, c->tables, &sql, c->err);
	if (status == LEAT_OK)
		status = leat_rows_next(&rows, c->err);
	*edges = 0;
	if (status == LEAT_OK)
		leat_rows_doubles(&rows, 0, found, EDGES);
	for (size_t i = 0; status == LEAT_OK && i < EDGES; i++)
		if (isfinite(found[i]) && (!*edges || found[i] > edge[*edges - 1]))
			edge[(*edges)++] = found[i];
	leat_rows_close(&rows);
	return status == LEAT_END ? LEAT_OK : status;
}

static enum leat_status
count_numbers(const struct comparing *c, const struct leat_profile *profile, size_t at, const double *edge,
              size_t edges, double *count)
{
	struct leat_str sql;

	leat_str_init(&sql, c->mem, MAX_SQL);
	leat_str_addf(&sql, "SELECT CASE WHEN v IS NULL THEN %zu WHEN x IS NULL THEN %zu ELSE 0", 2 * edges + 1,
	              2 * edges + 2);
	for (size_t i = 0; i < edges; i++)
		for (int strict = 0; strict < 2; strict++) {
			leat_str_addf(&sql, " + CAST(x %s ", strict ? ">" : ">=");
			leat_profile_add_double(&sql, edge[i]);
			leat_str_add(&sql, " AS BIGINT)");
		}
	leat_str_addf(&sql, " END::BIGINT, count(*) FROM (SELECT c%zu AS v, ", at);
	leat_profile_add_number(&sql, &profile->column[at], at);
	leat_str_addf(&sql, " AS x FROM %s) GROUP BY 1", profile->relation);
	return count_bins(c, &sql, count, 2 * edges + 3);
}

static enum leat_status
compare_numbers(const struct comparing *c, struct counts *counts)
{
	double edge[EDGES];
	size_t edges = 0;
	enum leat_status status = find_edges(c, edge, &edges);

	counts->bins = 2 * edges + 3;
	if (status == LEAT_OK)
		status = count_numbers(c, c->then, c->at_then, edge, edges, counts->then);
	if (status == LEAT_OK)
		status = count_numbers(c, c->now, c->at_now, edge, edges, counts->now);
	return status;
}

/* The most frequent words of the earlier table become a table of their own, with their bins. */
static enum leat_status
make_words(const struct comparing *c)
{
	struct leat_str sql;
	enum leat_status status;

	leat_str_init(&sql, c->mem, MAX_SQL);
	leat_str_add(&sql,
	             "CREATE OR REPLACE TEMP TABLE leat_words AS SELECT v, n, row_number() OVER (ORDER BY n DESC, v) "
	             "- 1 AS bin FROM (SELECT ");
	leat_profile_add_words(&sql, c->at_then);
	leat_str_addf(&sql,
	              " AS v, count(*) AS n FROM %s WHERE c%zu IS NOT NULL GROUP BY 1 ORDER BY n DESC, v LIMIT %d)",
	              c->then->relation, c->at_then, WORDS);
	status = sql.failed ? leat_fail_mem(c->err, c->mem, sql.len, "a query")
	                    : leat_tables_run(c->tables, leat_str_text(&sql), c->err);
	leat_str_free(&sql);
	return status;
}

static enum leat_status
read_words(const struct comparing *c, struct counts *counts)
{
	struct leat_rows rows = {0};
	struct leat_str sql;
	enum leat_status status;

	leat_str_init(&sql, c->mem, MAX_SQL);
	leat_str_add(&sql, "SELECT substr(v, 1, 40) FROM leat_words ORDER BY bin");
	status = leat_rows_open(&rows, c->tables, &sql, c->err);
	while (status == LEAT_OK && counts->words < WORDS && (status = leat_rows_next(&rows, c->err)) == LEAT_OK)
		if (!leat_rows_text(&rows, 0, &counts->word[counts->words++], c->mem))
			status = leat_fail_mem(c->err, c->mem, 40, "a value of the table");
	leat_rows_close(&rows);
	return status == LEAT_END ? LEAT_OK : status;
}

static enum leat_status
count_words(const struct comparing *c, const struct leat_profile *profile, size_t at, size_t words, double *count)
{
	const struct leat_profile_column *then = &c->then->column[c->at_then];
	struct leat_str sql;

	leat_str_init(&sql, c->mem, MAX_SQL);
	leat_str_addf(&sql,
	              "SELECT CAST(CASE WHEN b.v IS NULL THEN %zu WHEN w.bin IS NOT NULL THEN w.bin "
	              "WHEN %s THEN %zu ELSE %zu END AS BIGINT), CAST(sum(b.n) AS BIGINT) FROM (SELECT ",
	              words + 2,
	              profile == c->then || then->approximate_distinct
	                      ? "true"
	                      : "EXISTS (SELECT 1 FROM leat_seen AS s WHERE s.v = b.v)",
	              words, words + 1);
	leat_profile_add_words(&sql, at);
	leat_str_addf(&sql,
	              " AS v, count(*) AS n FROM %s GROUP BY 1) AS b LEFT JOIN leat_words AS w ON w.v = b.v GROUP BY 1",
	              profile->relation);
	return count_bins(c, &sql, count, words + 3);
}

/* All words that the earlier table has, if they are not too many. */
static enum leat_status
make_seen(const struct comparing *c)
{
	struct leat_str sql;
	enum leat_status status;

	if (c->then->column[c->at_then].approximate_distinct)
		return LEAT_OK;
	leat_str_init(&sql, c->mem, MAX_SQL);
	leat_str_add(&sql, "CREATE OR REPLACE TEMP TABLE leat_seen AS SELECT DISTINCT ");
	leat_profile_add_words(&sql, c->at_then);
	leat_str_addf(&sql, " AS v FROM %s WHERE c%zu IS NOT NULL", c->then->relation, c->at_then);
	status = sql.failed ? leat_fail_mem(c->err, c->mem, sql.len, "a query")
	                    : leat_tables_run(c->tables, leat_str_text(&sql), c->err);
	leat_str_free(&sql);
	return status;
}

static enum leat_status
compare_words(const struct comparing *c, struct counts *counts)
{
	enum leat_status status = make_words(c);

	if (status == LEAT_OK)
		status = make_seen(c);
	if (status == LEAT_OK)
		status = read_words(c, counts);
	counts->bins = counts->words + 3;
	if (status == LEAT_OK)
		status = count_words(c, c->then, c->at_then, counts->words, counts->then);
	if (status == LEAT_OK)
		status = count_words(c, c->now, c->at_now, counts->words, counts->now);
	return status;
}

/* NULL or not. */
static void
compare_nulls(const struct comparing *c, struct counts *counts)
{
	counts->bins = 2;
	counts->then[0] = (double)c->then->column[c->at_then].nulls;
	counts->then[1] = (double)c->then->rows - counts->then[0];
	counts->now[0] = (double)c->now->column[c->at_now].nulls;
	counts->now[1] = (double)c->now->rows - counts->now[0];
}

/* ---- sentences ---- */

static void __attribute__((format(printf, 2, 3))) say(struct leat_drift_column *d, const char *fmt, ...)
{
	size_t used = strlen(d->sentence);
	va_list ap;

	if (used + 8 > sizeof(d->sentence))
		return;
	va_start(ap, fmt);
	leat_vformat(d->sentence + used, sizeof(d->sentence) - used, fmt, ap);
	va_end(ap);
}

static void
say_shares(struct leat_drift_column *d, const char *what, double then, double now)
{
	say(d, "%s%s %.3g %% \xe2\x86\x92 %.3g %%", *d->sentence ? ", " : "", what, 100 * then, 100 * now);
}

static void
say_number(struct leat_drift_column *d, const char *what, const struct leat_profile_column *column, double then,
           double now)
{
	char was[LEAT_PROFILE_NUMBER_TEXT], is[LEAT_PROFILE_NUMBER_TEXT];

	leat_profile_value(column, then, was);
	leat_profile_value(column, now, is);
	if (strcmp(was, is) != 0)
		say(d, "%s%s %s \xe2\x86\x92 %s", *d->sentence ? ", " : "", what, was, is);
}

/* Half of what moved, or the largest three of it. */
static void
say_words(struct leat_drift_column *d, const struct counts *counts)
{
	double p = sum(counts->then, counts->bins), q = sum(counts->now, counts->bins);
	bool said[BINS] = {false};

	for (int n = 0; n < 3; n++) {
		size_t most = 0;
		double change = 0;
		char shown[4 * 160 + 1], what[4 * 160 + 3];

		for (size_t i = 0; i < counts->words + 2; i++) {
			double moved = fabs(counts->now[i] / q - counts->then[i] / p);

			if (said[i] || moved <= change)
				continue;
			change = moved;
			most = i;
		}
		if (change < 0.005)
			return;
		said[most] = true;
		if (most < counts->words) {
			leat_show(shown, sizeof(shown), counts->word[most].bytes, counts->word[most].len);
			snprintf(what, sizeof(what), "'%s'", shown);
		} else {
			snprintf(what, sizeof(what), "%s",
			         most == counts->words ? "rarer values" : "values not seen before");
		}
		say_shares(d, what, counts->then[most] / p, counts->now[most] / q);
	}
}

static void
say_what_moved(struct leat_drift_column *d, const struct comparing *c, const struct counts *counts)
{
	const struct leat_profile_column *then = &c->then->column[c->at_then], *now = &c->now->column[c->at_now];
	double was = (double)then->nulls / (double)c->then->rows, is = (double)now->nulls / (double)c->now->rows;
	enum { MEDIAN = 2 };

	if (then->finite && now->finite) {
		say_number(d, "median", now, then->quantile[MEDIAN], now->quantile[MEDIAN]);
		say_number(d, "mean", now, then->mean, now->mean);
		say_number(d, "5 % quantile", now, then->quantile[0], now->quantile[0]);
		say_number(d, "95 % quantile", now, then->quantile[MEDIAN + 2], now->quantile[MEDIAN + 2]);
	}
	if (counts->words)
		say_words(d, counts);
	if (fabs(is - was) >= 0.005)
		say_shares(d, "NULL", was, is);
	if (then->nan + then->infinite != now->nan + now->infinite)
		say_shares(d, "NaN or infinite", (double)(then->nan + then->infinite) / (double)c->then->rows,
		           (double)(now->nan + now->infinite) / (double)c->now->rows);
}

/* ---- all columns ---- */

static enum leat_drift_size
size_of(double psi, double noise)
{
	if (psi < SOME)
		return LEAT_DRIFT_NONE;
	if (psi <= noise)
		return LEAT_DRIFT_UNSURE;
	return psi < LARGE ? LEAT_DRIFT_SOME : LEAT_DRIFT_LARGE;
}

enum leat_drift_size
leat_drift_judge(const double *then, const double *now, size_t bins, double *psi, double *js)
{
	*psi = leat_drift_psi(then, now, bins);
	*js = leat_drift_js(then, now, bins);
	return size_of(*psi, chance(then, now, bins));
}

static enum leat_status
count_both(const struct comparing *c, struct counts *counts)
{
	switch (c->now->column[c->at_now].class) {
	case LEAT_PROFILE_NUMBER:
	case LEAT_PROFILE_TIME:
		return compare_numbers(c, counts);
	case LEAT_PROFILE_WORDS:
		return compare_words(c, counts);
	case LEAT_PROFILE_BYTES:
	case LEAT_PROFILE_LIST:
	case LEAT_PROFILE_OTHER:
		break;
	}
	compare_nulls(c, counts);
	return LEAT_OK;
}

static enum leat_status
compare_column(const struct comparing *c, struct leat_drift_column *d)
{
	struct counts counts = {0};
	enum leat_status status = count_both(c, &counts);

	if (status == LEAT_OK) {
		d->compared = true;
		d->bins = counts.bins;
		d->size = leat_drift_judge(counts.then, counts.now, counts.bins, &d->psi, &d->js);
		if (d->size != LEAT_DRIFT_NONE)
			say_what_moved(d, c, &counts);
	}
	for (size_t i = 0; i < counts.words; i++)
		leat_free(c->mem, counts.word[i].bytes);
	return status;
}

/* Numbers of any type can be compared. */
static bool
has_other_type(const struct leat_profile_column *now, const struct leat_profile_column *then)
{
	return now->class != then->class || (now->class != LEAT_PROFILE_NUMBER && strcmp(now->type, then->type) != 0);
}

static size_t
find(const struct leat_profile *profile, const char *name)
{
	for (size_t i = 0; i < profile->columns; i++)
		if (strcasecmp(profile->column[i].name, name) == 0)
			return i;
	return SIZE_MAX;
}

static enum leat_status
fill(struct leat_drift *drift, struct comparing *c)
{
	enum leat_status status = LEAT_OK;

	for (size_t i = 0; i < c->now->columns && status == LEAT_OK; i++) {
		struct leat_drift_column *d = &drift->column[drift->columns++];

		d->name = c->now->column[i].name;
		c->at_now = i;
		c->at_then = find(c->then, d->name);
		if (c->at_then == SIZE_MAX) {
			d->size = LEAT_DRIFT_ADDED;
		} else if (has_other_type(&c->now->column[i], &c->then->column[c->at_then])) {
			d->size = LEAT_DRIFT_TYPE;
			say(d, "%s \xe2\x86\x92 %s", c->then->column[c->at_then].type, c->now->column[i].type);
		} else if (c->now->rows && c->then->rows) {
			status = compare_column(c, d);
		}
	}
	for (size_t i = 0; i < c->then->columns && status == LEAT_OK; i++)
		if (find(c->now, c->then->column[i].name) == SIZE_MAX)
			drift->column[drift->columns++] =
				(struct leat_drift_column){.name = c->then->column[i].name, .size = LEAT_DRIFT_REMOVED};
	return status;
}

enum leat_status
leat_drift_make(struct leat_drift *drift, struct leat_tables *tables, const struct leat_profile *now,
                const struct leat_profile *then, struct leat_err *err)
{
	struct comparing c = {.tables = tables, .now = now, .then = then, .mem = now->mem, .err = err};
	size_t most = now->columns + then->columns;
	enum leat_status status;

	*drift = (struct leat_drift){.mem = now->mem};
	drift->column = leat_alloc_array(now->mem, most, sizeof(*drift->column));
	if (!drift->column)
		return leat_fail_mem(err, now->mem, most * sizeof(*drift->column), "the comparison");
	status = fill(drift, &c);
	for (size_t i = 0; i < drift->columns; i++)
		drift->moved += drift->column[i].size >= LEAT_DRIFT_SOME;
	return status;
}

void
leat_drift_free(struct leat_drift *drift)
{
	if (drift->mem)
		leat_free(drift->mem, drift->column);
	*drift = (struct leat_drift){0};
}
