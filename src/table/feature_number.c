/* feature_number.c - numbers: clip, log1p, bucketize */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "table/transform.h"

/* A number, or a quantile of training rows. */
static bool
is_bound(const struct leat_opt_value *value)
{
	double share;

	return value->type == LEAT_ARG_NUMBER || leat_quantile_of(value, &share);
}

/* Bounds as numbers: those that are given, and quantiles in one query. */
static enum leat_status
fit_bounds(const struct leat_fitting *f, const struct leat_opt_value *const *bound, size_t count, struct leat_err *err)
{
	double *share = leat_alloc_array(f->mem, count, 2 * sizeof(*share)), *quantile = share + count;
	enum leat_status status = leat_fit_numbers(f, count, err);
	size_t n = 0;

	if (!share)
		return leat_fail_mem(err, f->mem, count * sizeof(*share), "quantiles");
	for (size_t i = 0; i < count; i++)
		n += leat_quantile_of(bound[i], &share[n]);
	if (status == LEAT_OK && n)
		status = leat_fit_quantiles(f, share, n, quantile, err);
	n = 0;
	for (size_t i = 0; i < count && status == LEAT_OK; i++)
		f->fitted->number[i] = bound[i]->type == LEAT_ARG_NUMBER ? bound[i]->number : quantile[n++];
	leat_free(f->mem, share);
	return status;
}

/* ---- clip ---- */

struct clip {
	struct leat_values low, high;
};

static const struct leat_opt clip_options[] = {
	LEAT_VALUES(struct clip, low, "[]", "lower bound: a number, or a quantile such as p01; []: none"),
	LEAT_VALUES(struct clip, high, "[]", "upper bound: a number, or a quantile such as p99.5; []: none"),
	LEAT_OPT_END,
};

static enum leat_status
check_clip(const void *params, struct leat_err *err)
{
	const struct clip *clip = params;
	const struct leat_values *bounds[] = {&clip->low, &clip->high};
	double low, high;

	if (!clip->low.count && !clip->high.count)
		return leat_fail(err, LEAT_SPEC, "'clip' needs a bound, such as clip(p01, p99) or clip(low=0)");
	for (size_t i = 0; i < 2; i++)
		if (bounds[i]->count > 1 || (bounds[i]->count && !is_bound(bounds[i]->value)))
			return leat_fail(err, LEAT_SPEC,
			                 "'clip' needs a number or a quantile such as p99 as its %s bound",
			                 i ? "upper" : "lower");
	if (!clip->low.count || !clip->high.count || clip->low.value->type != clip->high.value->type)
		return LEAT_OK;
	low = clip->low.value->number;
	high = clip->high.value->number;
	leat_quantile_of(clip->low.value, &low);
	leat_quantile_of(clip->high.value, &high);
	return low <= high ? LEAT_OK : leat_fail(err, LEAT_SPEC, "the lower bound of 'clip' is above the upper one");
}

static enum leat_status
fit_clip(const struct leat_fitting *f, struct leat_err *err)
{
	const struct clip *clip = f->params;
	const struct leat_opt_value *bound[2];
	size_t n = 0;

	if (clip->low.count)
		bound[n++] = clip->low.value;
	if (clip->high.count)
		bound[n++] = clip->high.value;
	return fit_bounds(f, bound, n, err);
}

static bool
clip_suits(const void *params, const struct leat_fitted *fitted)
{
	const struct clip *clip = params;

	return fitted->numbers == clip->low.count + clip->high.count;
}

/* greatest() and least() ignore NULL, so they would turn a missing value into a bound. */
static enum leat_status
emit_clip(struct leat_emitting *e, struct leat_err *err)
{
	const struct clip *clip = e->params;
	size_t n = 0;

	(void)err;
	leat_str_add(e->sql, "CASE");
	for (int high = 0; high < 2; high++) {
		if (!(high ? clip->high.count : clip->low.count))
			continue;
		leat_str_addf(e->sql, " WHEN %s %c ", e->value, high ? '>' : '<');
		leat_sql_add_number(e->sql, e->fitted->number[n]);
		leat_str_add(e->sql, " THEN ");
		leat_sql_add_number(e->sql, e->fitted->number[n++]);
	}
	leat_str_addf(e->sql, " ELSE %s END", e->value);
	e->to = LEAT_VALUE_NUMBER;
	return LEAT_OK;
}

const struct leat_transform leat_transform_clip = {
	.name = "clip",
	.doc = "Replace what is beyond a bound by the bound.",
	.version = 1,
	.opts = clip_options,
	.params_size = sizeof(struct clip),
	.accepts = LEAT_VALUE_NUMBER,
	.fits_numbers = SIZE_MAX,
	.check = check_clip,
	.fit = fit_clip,
	.suits = clip_suits,
	.emit = emit_clip,
};

/* ---- log1p ---- */

/* ln(1 + x) loses the digits of a small x; the factor x / ((1 + x) - 1) puts them back. */
static enum leat_status
emit_log1p(struct leat_emitting *e, struct leat_err *err)
{
	const char *x = e->value;

	(void)err;
	leat_str_addf(e->sql,
	              "CASE WHEN %s <= -1e0 THEN NULL WHEN 1e0 + %s = 1e0 OR isinf(%s) THEN %s "
	              "ELSE ln(1e0 + %s) * (%s / ((1e0 + %s) - 1e0)) END",
	              x, x, x, x, x, x, x);
	e->to = LEAT_VALUE_NUMBER;
	return LEAT_OK;
}

const struct leat_transform leat_transform_log1p = {
	.name = "log1p",
	.doc = "Take the natural logarithm of 1 + x; -1 and below become missing.",
	.version = 1,
	.accepts = LEAT_VALUE_NUMBER,
	.emit = emit_log1p,
};

/* ---- bucketize ---- */

struct bucketize {
	struct leat_values edges;
	int64_t quantiles;
};

static const struct leat_opt bucketize_options[] = {
	LEAT_VALUES(struct bucketize, edges, "[]",
                    "edges between buckets, ascending: numbers, or quantiles such as p50"),
	LEAT_OPT_(struct bucketize, quantiles, LEAT_OPT_INT, "0", 0, LEAT_MAX_EDGES + 1, NULL,
                  "instead of edges, this many buckets with about equally many training rows each", LEAT_OPT_NAMED),
	LEAT_OPT_END,
};

static enum leat_status
check_bucketize(const void *params, struct leat_err *err)
{
	const struct bucketize *b = params;

	if ((b->edges.count > 0) == (b->quantiles > 0))
		return leat_fail(err, LEAT_SPEC,
		                 "'bucketize' needs either edges or quantiles, such as bucketize(0, 10, 100) or "
		                 "bucketize(quantiles=10)");
	if (b->quantiles == 1)
		return leat_fail(err, LEAT_SPEC, "'bucketize' needs at least 2 quantiles");
	if (b->edges.count > LEAT_MAX_EDGES)
		return leat_fail(err, LEAT_SPEC, "'bucketize' takes at most %d edges", LEAT_MAX_EDGES);
	for (size_t i = 0; i < b->edges.count; i++)
		if (!is_bound(&b->edges.value[i]))
			return leat_fail(err, LEAT_SPEC,
			                 "an edge of 'bucketize' is a number or a quantile such as "
			                 "p50, not '%s'",
			                 b->edges.value[i].text);
	return LEAT_OK;
}

static int
compare_numbers(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* Ascending, each once: quantiles of few values coincide. */
static void
sort_edges(struct leat_fitted *fitted)
{
	size_t n = 0;

	qsort(fitted->number, fitted->numbers, sizeof(*fitted->number), compare_numbers);
	for (size_t i = 0; i < fitted->numbers; i++)
		if (!n || fitted->number[i] > fitted->number[n - 1])
			fitted->number[n++] = fitted->number[i];
	fitted->numbers = n;
}

static enum leat_status
fit_edges(const struct leat_fitting *f, const struct leat_values *edges, struct leat_err *err)
{
	const struct leat_opt_value **bound = leat_alloc_array(f->mem, edges->count, sizeof(*bound));
	enum leat_status status;

	if (!bound)
		return leat_fail_mem(err, f->mem, edges->count * sizeof(*bound), "edges");
	for (size_t i = 0; i < edges->count; i++)
		bound[i] = &edges->value[i];
	status = fit_bounds(f, bound, edges->count, err);
	leat_free(f->mem, bound);
	return status;
}

static enum leat_status
fit_bucketize(const struct leat_fitting *f, struct leat_err *err)
{
	const struct bucketize *b = f->params;
	double share[LEAT_MAX_EDGES];
	size_t edges = b->quantiles ? (size_t)b->quantiles - 1 : 0;
	enum leat_status status;

	if (!edges) {
		status = fit_edges(f, &b->edges, err);
	} else {
		for (size_t i = 0; i < edges; i++)
			share[i] = (double)(i + 1) / (double)b->quantiles;
		status = leat_fit_numbers(f, edges, err);
		if (status == LEAT_OK)
			status = leat_fit_quantiles(f, share, edges, f->fitted->number, err);
	}
	if (status == LEAT_OK)
		sort_edges(f->fitted);
	return status;
}

static bool
bucketize_suits(const void *params, const struct leat_fitted *fitted)
{
	(void)params;
	for (size_t i = 1; i < fitted->numbers; i++)
		if (fitted->number[i] <= fitted->number[i - 1])
			return false;
	return fitted->numbers > 0 && fitted->numbers <= LEAT_MAX_EDGES;
}

/* How many of edges low..high-1 are at or below the value, plus `low`: a binary search, log2 comparisons per row. The
 * recursion is as deep as the search. */
static void
add_search(struct leat_emitting *e, size_t low, size_t high)
{
	size_t middle = low + (high - low) / 2;

	if (low == high) {
		leat_str_addf(e->sql, "%zu", low);
		return;
	}
	leat_str_addf(e->sql, "CASE WHEN %s < ", e->value);
	leat_sql_add_number(e->sql, e->fitted->number[middle]);
	leat_str_add(e->sql, " THEN ");
	add_search(e, low, middle);
	leat_str_add(e->sql, " ELSE ");
	add_search(e, middle + 1, high);
	leat_str_add(e->sql, " END");
}

static enum leat_status
emit_bucketize(struct leat_emitting *e, struct leat_err *err)
{
	(void)err;
	leat_str_addf(e->sql, "CAST(CASE WHEN %s IS NULL THEN NULL ELSE ", e->value);
	add_search(e, 0, e->fitted->numbers);
	leat_str_add(e->sql, " END AS BIGINT)");
	e->to = LEAT_VALUE_WHOLE;
	return LEAT_OK;
}

const struct leat_transform leat_transform_bucketize = {
	.name = "bucketize",
	.doc = "Number the bucket: how many edges are at or below the value, from 0.",
	.version = 1,
	.opts = bucketize_options,
	.params_size = sizeof(struct bucketize),
	.accepts = LEAT_VALUE_NUMBER,
	.fits_numbers = SIZE_MAX,
	.check = check_bucketize,
	.fit = fit_bucketize,
	.suits = bucketize_suits,
	.emit = emit_bucketize,
};
