/* feature_time.c - parts of times, and numbers that go round: hour, weekday, ..., cyclic
 *
 * Times are in UTC. */
#include <math.h>

#include "table/transform.h"

/* ---- parts ---- */

static enum leat_status
emit_part(struct leat_emitting *e, struct leat_err *err)
{
	(void)err;
	leat_str_addf(e->sql, "CAST(%s(%s) AS BIGINT)", e->transform->part, e->value);
	e->to = LEAT_VALUE_WHOLE;
	return LEAT_OK;
}

#define PART(NAME, FUNCTION, DOC)                                                                                      \
	.name = NAME, .doc = DOC, .version = 1, .accepts = LEAT_VALUE_TIME, .part = FUNCTION, .emit = emit_part

const struct leat_transform leat_transform_hour = {
	PART("hour", "hour", "Hour of the day, 0 to 23."),
};
const struct leat_transform leat_transform_minute = {
	PART("minute", "minute", "Minute of the hour, 0 to 59."),
};
const struct leat_transform leat_transform_second = {
	PART("second", "second", "Second of the minute, 0 to 59."),
};
const struct leat_transform leat_transform_day = {
	PART("day", "day", "Day of the month, from 1."),
};
const struct leat_transform leat_transform_weekday = {
	PART("weekday", "isodow", "Day of the week, 1 (Monday) to 7 (Sunday)."),
};
const struct leat_transform leat_transform_yearday = {
	PART("yearday", "dayofyear", "Day of the year, from 1."),
};
const struct leat_transform leat_transform_week = {
	PART("week", "week", "Week of the year by ISO 8601, 1 to 53."),
};
const struct leat_transform leat_transform_month = {
	PART("month", "month", "Month, 1 to 12."),
};
const struct leat_transform leat_transform_quarter = {
	PART("quarter", "quarter", "Quarter of the year, 1 to 4."),
};
const struct leat_transform leat_transform_year = {
	PART("year", "year", "Year."),
};

static enum leat_status
emit_epoch(struct leat_emitting *e, struct leat_err *err)
{
	(void)err;
	leat_str_addf(e->sql, "CAST(epoch_us(%s) AS DOUBLE) / 1e6", e->value);
	e->to = LEAT_VALUE_NUMBER;
	return LEAT_OK;
}

const struct leat_transform leat_transform_epoch = {
	.name = "epoch",
	.doc = "Seconds since 1970.",
	.version = 1,
	.accepts = LEAT_VALUE_TIME,
	.emit = emit_epoch,
};

/* ---- cyclic ---- */

struct cyclic {
	struct leat_values period;
};

static const struct leat_opt cyclic_options[] = {
	LEAT_VALUES(struct cyclic, period, LEAT_REQUIRED, "after how much the values come round, such as 24 for hours"),
	LEAT_OPT_END,
};

static enum leat_status
check_cyclic(const void *params, struct leat_err *err)
{
	const struct cyclic *cyclic = params;

	if (cyclic->period.count != 1 || cyclic->period.value->type != LEAT_ARG_NUMBER ||
	    !(cyclic->period.value->number > 1e-300))
		return leat_fail(err, LEAT_SPEC, "'cyclic' needs a period above 0, such as cyclic(24)");
	return LEAT_OK;
}

/* The sine of infinity is an error in SQL. */
static enum leat_status
emit_cyclic(struct leat_emitting *e, struct leat_err *err)
{
	static const char *const functions[] = {"sin", "cos"};
	const struct cyclic *cyclic = e->params;

	(void)err;
	for (; e->sides < 2; e->sides++) {
		struct leat_str *sql = e->side[e->sides].sql;

		e->side[e->sides].suffix = functions[e->sides];
		leat_str_addf(sql, "CASE WHEN isfinite(%s) THEN %s(%s * ", e->value, functions[e->sides], e->value);
		leat_sql_add_number(sql, 2 * M_PI / cyclic->period.value->number);
		leat_str_add(sql, ") END");
	}
	e->only_sides = true;
	e->to = LEAT_VALUE_NUMBER;
	return LEAT_OK;
}

const struct leat_transform leat_transform_cyclic = {
	.name = "cyclic",
	.doc = "Two columns, NAME_sin and NAME_cos: where the value is on a circle, so that 23 h is near 0 h.",
	.version = 1,
	.opts = cyclic_options,
	.params_size = sizeof(struct cyclic),
	.accepts = LEAT_VALUE_NUMBER,
	.last = true,
	.check = check_cyclic,
	.emit = emit_cyclic,
};
