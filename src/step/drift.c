/* drift.c - see drift.h */
#include "step/drift.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "table/checks.h"
#include "table/sketch.h"

static json_t *
rounded(double x)
{
	return json_real(round(x * 1e4) / 1e4);
}

void
leat_drift_add_metrics(const char *profile, json_t *metrics, struct leat_mem *mem)
{
	struct leat_sketch sketch;
	bool good = leat_sketch_read(&sketch, profile, strlen(profile), mem, NULL) == LEAT_OK;

	if (good && leat_sketch_drift(&sketch) >= 0)
		json_object_set_new(metrics, "drift", rounded(leat_sketch_drift(&sketch)));
	for (size_t i = 0; good && i < sketch.columns; i++) {
		const struct leat_sketch_column *c = &sketch.column[i];
		char name[300];

		if (!c->compared || (c->moved != LEAT_DRIFT_SOME && c->moved != LEAT_DRIFT_LARGE))
			continue;
		snprintf(name, sizeof(name), "psi.%.200s", c->name);
		json_object_set_new(metrics, name, rounded(c->psi));
		snprintf(name, sizeof(name), "js.%.200s", c->name);
		json_object_set_new(metrics, name, rounded(c->js));
	}
	leat_sketch_free(&sketch);
}

/* Chance is not drift: a column with too few rows to tell passes. */
static bool
exceeds(const struct leat_sketch_column *column, const struct leat_check *check)
{
	return (!check->column || strcasecmp(column->name, check->column) == 0) && column->compared &&
	       column->moved != LEAT_DRIFT_UNSURE && column->psi > check->share;
}

static void
add_column(const struct leat_sketch *sketch, const struct leat_sketch_column *column, const struct leat_check *check,
           char *why, size_t cap)
{
	size_t used = strlen(why);

	if (used == 0)
		used = (size_t)snprintf(why, cap,
		                        "its table drifted since %.60s: ", sketch->since ? sketch->since : "");
	else if (used + 2 < cap)
		used += (size_t)snprintf(why + used, cap - used, ", ");
	if (used < cap)
		snprintf(why + used, cap - used, "'%.60s' has a PSI of %.3g, more than %.3g", column->name, column->psi,
		         check->share);
}

static bool
is_known(const struct leat_sketch *sketch, const struct leat_check *check)
{
	for (size_t i = 0; i < sketch->columns; i++)
		if (!check->column || strcasecmp(sketch->column[i].name, check->column) == 0)
			return true;
	return false;
}

static void
judge(const struct leat_sketch *sketch, const struct leat_check *check, char *why, size_t cap)
{
	if (!is_known(sketch, check) && *why == '\0')
		snprintf(why, cap, "its table has no column '%.60s', which a check of drift names", check->column);
	for (size_t i = 0; i < sketch->columns; i++)
		if (exceeds(&sketch->column[i], check))
			add_column(sketch, &sketch->column[i], check, why, cap);
}

enum leat_drift_verdict
leat_drift_check(const struct leat_step *step, const char *profile, struct leat_mem *mem, char *why, size_t cap)
{
	struct leat_sketch sketch = {0};
	struct leat_checks checks;
	bool good;

	*why = '\0';
	if (!step->drift || !profile)
		return LEAT_DRIFT_HOLDS;
	leat_checks_init(&checks, mem);
	good = leat_sketch_read(&sketch, profile, strlen(profile), mem, NULL) == LEAT_OK;
	for (size_t i = 0; good && step->drift[i]; i++)
		good = leat_checks_add_line(&checks, step->drift[i], NULL) == LEAT_OK;
	if (good && *step->checks)
		good = leat_checks_set_action(&checks, step->checks, NULL) == LEAT_OK;
	for (size_t i = 0; good && i < checks.count; i++)
		judge(&sketch, &checks.check[i], why, cap);
	good = checks.what == LEAT_CHECKS_WARN;
	leat_checks_free(&checks);
	leat_sketch_free(&sketch);
	return *why == '\0' ? LEAT_DRIFT_HOLDS : good ? LEAT_DRIFT_WARNS : LEAT_DRIFT_FAILS;
}
