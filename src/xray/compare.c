/* compare.c - see compare.h */
#include "xray/compare.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/str.h"

#define SMALLEST 0.05        /* a smaller change of the rate is none */
#define SMALLEST_POINTS 0.05 /* the same for shares */
#define UNKNOWN_NOISE 0.20

enum { FEWEST_EPOCHS = 4, FEWEST_BATCHES = 20, ALIKE = 4, MOST_EPOCHS = 100000 };

/* A mean with its standard error. */
struct estimate {
	double mean, error, freedom;
};

static double
number(const json_t *object, const char *name)
{
	const json_t *value = json_object_get(object, name);

	return json_is_number(value) ? json_number_value(value) : NAN;
}

/* Student's t for 99 %, two-sided. */
static double
student(double freedom)
{
	static const double few[] = {63.66, 9.925, 5.841, 4.604, 4.032, 3.707, 3.499, 3.355, 3.250, 3.169};

	if (!(freedom >= 1))
		return few[0];
	if (freedom < 10) {
		size_t i = (size_t)freedom - 1;
		double part = freedom - floor(freedom);

		return few[i] + part * (few[i + 1] - few[i]);
	}
	return 2.576 + 4.92 / freedom + 10.0 / (freedom * freedom);
}

/* Half the width of the interval of the difference of two means. */
static double
interval(const struct estimate *a, const struct estimate *b)
{
	double va = a->error * a->error, vb = b->error * b->error, sum = va + vb;

	if (sum <= 0)
		return 0;
	return student(sum * sum / (va * va / a->freedom + vb * vb / b->freedom)) * sqrt(sum);
}

/* ---- estimates ---- */

/* The mean and its error over the epochs after the first. False: too few. */
static bool
from_epochs(const json_t *run, double (*value)(const json_t *epoch), struct estimate *e)
{
	const json_t *epochs = json_object_get(run, "epochs");
	size_t count = json_array_size(epochs), used = 0;
	double sum = 0, squares = 0;

	if (count < FEWEST_EPOCHS || count > MOST_EPOCHS)
		return false;
	for (size_t i = 1; i < count; i++) {
		double x = value(json_array_get(epochs, i));

		if (!isfinite(x))
			continue;
		used++;
		sum += x;
		squares += x * x;
	}
	if (used < FEWEST_EPOCHS - 1)
		return false;
	e->mean = sum / (double)used;
	e->freedom = (double)used - 1;
	e->error = sqrt(fmax(squares - sum * e->mean, 0) / e->freedom / (double)used);
	return true;
}

static double
log_rate(const json_t *epoch)
{
	double rate = number(epoch, "samples") / number(epoch, "seconds");

	return rate > 0 ? log(rate) : NAN;
}

static double
wait_share(const json_t *epoch)
{
	return number(epoch, "wait_share");
}

static bool
bucket_at(const json_t *buckets, size_t i, double *upper, double *count)
{
	const json_t *bucket = json_array_get(buckets, i);

	*upper = json_number_value(json_array_get(bucket, 0));
	*count = json_number_value(json_array_get(bucket, 1));
	return *upper > 0 && *count >= 0;
}

/* The relative error of a rate, from the histogram of batch times. Empty buckets are left out; one is at most an eighth
 * of its lower bound wide (trace/histogram.h), and its batches are spread evenly over it. */
static bool
from_batches(const json_t *run, struct estimate *e)
{
	const json_t *buckets = json_object_get(json_object_get(run, "batch_ms"), "histogram");
	double count = 0, sum = 0, squares = 0, before = 0, upper, n, mean, variance;

	for (size_t i = 0; i < json_array_size(buckets); i++) {
		double lower, middle;

		if (!bucket_at(buckets, i, &upper, &n) || upper <= before)
			return false;
		lower = fmax(before, upper * 8 / 9);
		middle = (lower + upper) / 2;
		count += n;
		sum += n * middle;
		squares += n * (middle * middle + (upper - lower) * (upper - lower) / 12);
		before = upper;
	}
	if (!(count >= FEWEST_BATCHES) || !(sum > 0))
		return false;
	mean = sum / count;
	variance = fmax(squares / count - mean * mean, 0) / (mean * mean);
	e->mean = log(number(run, "samples_per_s"));
	e->error = sqrt(variance / (count / ALIKE));
	e->freedom = count / ALIKE - 1;
	return isfinite(e->mean) && isfinite(e->error);
}

/* ---- the verdict ---- */

static void
estimate_rates(const json_t *a, const json_t *b, struct leat_comparison *c, struct estimate *x, struct estimate *y)
{
	if (from_epochs(a, log_rate, x) && from_epochs(b, log_rate, y)) {
		c->basis = "the epochs after the first";
		c->noise = expm1(interval(x, y));
	} else if (from_batches(a, x) && from_batches(b, y)) {
		c->basis = "the times of batches";
		c->noise = expm1(interval(x, y));
	} else {
		*x = (struct estimate){.mean = log(number(a, "samples_per_s"))};
		*y = (struct estimate){.mean = log(number(b, "samples_per_s"))};
		c->basis = NULL;
		c->noise = UNKNOWN_NOISE;
	}
}

static void
decide(struct leat_comparison *c)
{
	double size = fabs(log1p(c->change));

	if (size > fmax(log1p(c->noise), log1p(SMALLEST)))
		c->verdict = LEAT_VERDICT_DIFFERENT;
	else
		c->verdict = c->noise <= SMALLEST ? LEAT_VERDICT_SAME : LEAT_VERDICT_UNCLEAR;
}

static void
add_row(struct leat_comparison *c, const char *name, const char *unit, double a, double b, bool more_is_better)
{
	if (!isnan(a) || !isnan(b))
		c->row[c->rows++] = (struct leat_compare_row){
			.name = name, .unit = unit, .a = a, .b = b, .more_is_better = more_is_better};
}

static void
add_rows(const json_t *a, const json_t *b, struct leat_comparison *c)
{
	const json_t *times_a = json_object_get(a, "batch_ms"), *times_b = json_object_get(b, "batch_ms");

	add_row(c, "MB/s", "", number(a, "mb_per_s"), number(b, "mb_per_s"), true);
	add_row(c, "batch time, p50", "ms", number(times_a, "p50"), number(times_b, "p50"), false);
	add_row(c, "batch time, p99", "ms", number(times_a, "p99"), number(times_b, "p99"), false);
	add_row(c, "first batch after", "ms", number(a, "first_batch_ms"), number(b, "first_batch_ms"), false);
	add_row(c, "peak memory", "MiB", number(a, "peak_rss_mib"), number(b, "peak_rss_mib"), false);
	add_row(c, "bad samples", "", number(a, "bad_count"), number(b, "bad_count"), false);
}

/* Shares of time are compared in points. Without epochs the spread is not known, so a small change decides nothing. */
static void
add_waited(const json_t *a, const json_t *b, struct leat_comparison *c)
{
	double x = number(a, "wait_share"), y = number(b, "wait_share"), noise = 2 * SMALLEST_POINTS;
	struct estimate in_a, in_b;
	struct leat_compare_row *row;

	if (isnan(x) && isnan(y))
		return;
	add_row(c, "waited", "share", x, y, false);
	row = &c->row[c->rows - 1];
	if (from_epochs(a, wait_share, &in_a) && from_epochs(b, wait_share, &in_b)) {
		noise = interval(&in_a, &in_b);
		x = in_a.mean;
		y = in_b.mean;
	}
	row->differs = fabs(y - x) > fmax(noise, SMALLEST_POINTS);
	row->decided = row->differs || noise <= SMALLEST_POINTS;
}

static void
write_sentence(struct leat_comparison *c, double a, double b)
{
	const struct leat_compare_row *waited = &c->row[1];
	char also[100] = "";

	if (c->rows > 1 && waited->differs && strcmp(waited->name, "waited") == 0)
		snprintf(also, sizeof also, "; waited %.0f %% and %.0f %% of the time", 100 * waited->a,
		         100 * waited->b);
	if (c->verdict == LEAT_VERDICT_DIFFERENT)
		snprintf(c->sentence, sizeof c->sentence,
		         "B is %.0f %% %s than A: %.0f instead of %.0f samples/s (noise: %.1f %%)%s.",
		         100 * fabs(c->change), c->change > 0 ? "faster" : "slower", b, a, 100 * c->noise, also);
	else if (c->verdict == LEAT_VERDICT_SAME)
		snprintf(c->sentence, sizeof c->sentence,
		         "No difference: %.0f and %.0f samples/s are within %.0f %% (noise: %.1f %%)%s.", a, b,
		         100 * SMALLEST, 100 * c->noise, also);
	else if (c->basis)
		snprintf(c->sentence, sizeof c->sentence,
		         "Too short to tell: %.0f and %.0f samples/s, but the runs vary by %.0f %%; run more epochs%s.",
		         a, b, 100 * c->noise, also);
	else
		snprintf(c->sentence, sizeof c->sentence,
		         "Too short to tell: %.0f and %.0f samples/s, with too few epochs and batches to know how much "
		         "the "
		         "runs vary%s.",
		         a, b, also);
}

static bool
is_rate(double x)
{
	return x > 0 && x < 1e15;
}

enum leat_status
leat_compare(const json_t *a, const json_t *b, struct leat_comparison *c, struct leat_err *err)
{
	double total_a = number(a, "samples_per_s"), total_b = number(b, "samples_per_s");
	struct estimate x, y;

	*c = (struct leat_comparison){0};
	if (!is_rate(total_a) || !is_rate(total_b))
		return leat_fail(err, LEAT_DATA, "%s has no rate: 'samples_per_s' must be a positive number below 1e15",
		                 is_rate(total_a) ? "the second run" : "the first run");
	estimate_rates(a, b, c, &x, &y);
	c->change = expm1(y.mean - x.mean);
	decide(c);
	add_row(c, c->basis && strstr(c->basis, "epochs") ? "samples/s after the first epoch" : "samples/s", "",
	        exp(x.mean), exp(y.mean), true);
	c->row[0].decided = c->verdict != LEAT_VERDICT_UNCLEAR;
	c->row[0].differs = c->verdict == LEAT_VERDICT_DIFFERENT;
	add_waited(a, b, c);
	if (c->basis && strstr(c->basis, "epochs"))
		add_row(c, "samples/s, all epochs", "", total_a, total_b, true);
	add_rows(a, b, c);
	write_sentence(c, exp(x.mean), exp(y.mean));
	return LEAT_OK;
}
