/* feature_scale.c - numbers to a common scale: standardize, minmax, robust
 *
 * (x - center) / range. A constant column has no range: it becomes 0. */
#include <math.h>

#include "table/transform.h"

static enum leat_status
emit(struct leat_emitting *e, struct leat_err *err)
{
	double center = e->fitted->number[0], range = e->fitted->number[1];

	(void)err;
	leat_str_addf(e->sql, "(%s - ", e->value);
	leat_sql_add_number(e->sql, center);
	leat_str_add(e->sql, ")");
	if (range > 0) {
		leat_str_add(e->sql, " / ");
		leat_sql_add_number(e->sql, range);
	}
	e->to = LEAT_VALUE_NUMBER;
	return LEAT_OK;
}

/* ---- standardize ---- */

/* Two passes: the mean is known when deviations are squared, so nothing cancels. */
static enum leat_status
fit_standard(const struct leat_fitting *f, struct leat_err *err)
{
	enum leat_status status = leat_fit_numbers(f, 2, err);
	double squares = 0;
	int64_t count = 0;
	struct leat_str deviation;

	if (status == LEAT_OK)
		status = leat_fit_mean(f, &f->fitted->number[0], err);
	if (status != LEAT_OK)
		return status;
	leat_str_init(&deviation, f->mem, SIZE_MAX / 4);
	leat_str_addf(&deviation, "(%s - ", f->value);
	leat_sql_add_number(&deviation, f->fitted->number[0]);
	leat_str_addf(&deviation, ") * (%s - ", f->value);
	leat_sql_add_number(&deviation, f->fitted->number[0]);
	leat_str_add(&deviation, ")");
	status = deviation.failed ? leat_fail_mem(err, f->mem, deviation.len, "a query")
	                          : leat_fit_sum(f, leat_str_text(&deviation), &squares, &count, err);
	leat_str_free(&deviation);
	if (status == LEAT_OK)
		f->fitted->number[1] = count ? sqrt(squares / (double)count) : 0;
	return status;
}

static const char *const standard_names[] = {"mean", "stddev"};

const struct leat_transform leat_transform_standardize = {
	.name = "standardize",
	.doc = "Subtract the mean and divide by the standard deviation (of the population).",
	.version = 1,
	.accepts = LEAT_VALUE_NUMBER,
	.fits_numbers = 2,
	.fits = standard_names,
	.fit = fit_standard,
	.emit = emit,
};

/* ---- minmax ---- */

static enum leat_status
fit_minmax(const struct leat_fitting *f, struct leat_err *err)
{
	enum leat_status status = leat_fit_numbers(f, 2, err);
	double *number = f->fitted->number;

	if (status == LEAT_OK)
		status = leat_fit_row(f, "min(x), max(x)", number, 2, err);
	if (status == LEAT_OK)
		number[1] -= number[0];
	return status;
}

static const char *const minmax_names[] = {"min", "range"};

const struct leat_transform leat_transform_minmax = {
	.name = "minmax",
	.doc = "Map the range of training rows to 0..1; other rows may be outside of it, so clip first if that "
	       "matters.",
	.version = 1,
	.accepts = LEAT_VALUE_NUMBER,
	.fits_numbers = 2,
	.fits = minmax_names,
	.fit = fit_minmax,
	.emit = emit,
};

/* ---- robust ---- */

static enum leat_status
fit_robust(const struct leat_fitting *f, struct leat_err *err)
{
	static const double share[] = {0.5, 0.25, 0.75};
	enum leat_status status = leat_fit_numbers(f, 2, err);
	double quantile[3];

	if (status == LEAT_OK)
		status = leat_fit_quantiles(f, share, 3, quantile, err);
	if (status == LEAT_OK) {
		f->fitted->number[0] = quantile[0];
		f->fitted->number[1] = quantile[2] - quantile[1];
	}
	return status;
}

static const char *const robust_names[] = {"median", "range"};

const struct leat_transform leat_transform_robust = {
	.name = "robust",
	.doc = "Subtract the median and divide by the distance between the quartiles.",
	.version = 1,
	.accepts = LEAT_VALUE_NUMBER,
	.fits_numbers = 2,
	.fits = robust_names,
	.fit = fit_robust,
	.emit = emit,
};
