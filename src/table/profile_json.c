/* profile_json.c - a profile as JSON, and its numbers as text */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/opt.h"
#include "base/utf8.h"
#include "table/profile.h"

/* ---- numbers as text ---- */

/* Puts commas between the digits before the point. */
static void
add_commas(char buf[LEAT_PROFILE_NUMBER_TEXT])
{
	size_t sign = *buf == '-', whole = strspn(buf + sign, "0123456789"), len = strlen(buf);

	for (size_t at = whole; at > 3; at -= 3) {
		if (len + 1 >= LEAT_PROFILE_NUMBER_TEXT)
			return;
		memmove(buf + sign + at - 2, buf + sign + at - 3, len + 1 - sign - (at - 3));
		buf[sign + at - 3] = ',';
		len++;
	}
}

char *
leat_profile_number(double x, char buf[LEAT_PROFILE_NUMBER_TEXT])
{
	double size = fabs(x);

	if (!isfinite(x)) {
		snprintf(buf, LEAT_PROFILE_NUMBER_TEXT, "-");
		return buf;
	}
	if (size < 1e15 && x == floor(x)) {
		snprintf(buf, LEAT_PROFILE_NUMBER_TEXT, "%.0f", x == 0 ? 0 : x);
		add_commas(buf);
	} else if (size >= 1e4 && size < 1e9) {
		snprintf(buf, LEAT_PROFILE_NUMBER_TEXT, "%.0f", x);
		add_commas(buf);
	} else {
		leat_format_digits(buf, LEAT_PROFILE_NUMBER_TEXT, x, size >= 1e3 && size < 1e4 ? 5 : 4);
	}
	return buf;
}

char *
leat_profile_time(double microseconds, char buf[LEAT_PROFILE_NUMBER_TEXT])
{
	double whole = floor(microseconds / 1e6);
	long rest = (long)(microseconds - whole * 1e6);
	time_t seconds = (time_t)whole;
	struct tm tm;
	size_t len;

	if (!isfinite(microseconds) || fabs(whole) > 1e13 || !gmtime_r(&seconds, &tm)) {
		snprintf(buf, LEAT_PROFILE_NUMBER_TEXT, "-");
		return buf;
	}
	len = strftime(buf, LEAT_PROFILE_NUMBER_TEXT - 8,
	               tm.tm_hour || tm.tm_min || tm.tm_sec || rest ? "%Y-%m-%d %H:%M:%S" : "%Y-%m-%d", &tm);
	if (rest >= 1000)
		snprintf(buf + len, 8, ".%03ld", rest / 1000 % 1000);
	return buf;
}

char *
leat_profile_value(const struct leat_profile_column *column, double x, char buf[LEAT_PROFILE_NUMBER_TEXT])
{
	return column->class == LEAT_PROFILE_TIME ? leat_profile_time(x, buf) : leat_profile_number(x, buf);
}

/* ---- JSON ---- */

/* A value of the table. DuckDB's texts are UTF-8; if not, it is shown. */
static json_t *
text_json(const struct leat_profile_text *text)
{
	json_t *json;
	char *shown;

	if (!text->bytes)
		return json_null();
	json = json_stringn(text->bytes, text->len);
	if (json)
		return json;
	shown = malloc(4 * text->len + 1);
	if (!shown)
		return NULL;
	json = json_string(leat_show(shown, 4 * text->len + 1, text->bytes, text->len));
	free(shown);
	return json;
}

static json_t *
real_json(double x)
{
	return isfinite(x) ? json_real(x) : json_null();
}

static json_t *
count_json(uint64_t n)
{
	return json_integer((json_int_t)n);
}

static json_t *
tops_json(const struct leat_profile_column *c)
{
	json_t *all = json_array();

	for (size_t i = 0; all && i < c->tops; i++) {
		json_t *one = json_object();

		json_object_set_new(one, "value", text_json(&c->top[i].value));
		json_object_set_new(one, "cut", json_boolean(c->top[i].value.cut));
		json_object_set_new(one, "rows", count_json(c->top[i].rows));
		json_array_append_new(all, one);
	}
	return all;
}

static void
add_figures(json_t *json, const struct leat_profile_column *c)
{
	json_t *quantiles = json_object(), *histogram = json_object(), *bins = json_array();
	char name[8];

	for (size_t i = 0; i < LEAT_PROFILE_QUANTILES; i++) {
		snprintf(name, sizeof(name), "p%02d", (int)lround(100 * leat_profile_quantiles[i]));
		json_object_set_new(quantiles, name, real_json(c->quantile[i]));
	}
	for (size_t i = 0; i < c->bins; i++)
		json_array_append_new(bins, count_json(c->bin[i]));
	json_object_set_new(histogram, "low", real_json(c->bins_low));
	json_object_set_new(histogram, "high", real_json(c->bins_high));
	json_object_set_new(histogram, "clipped", json_boolean(c->clipped));
	json_object_set_new(histogram, "rows", bins);
	json_object_set_new(json, "low", real_json(c->low));
	json_object_set_new(json, "high", real_json(c->high));
	json_object_set_new(json, "mean", real_json(c->mean));
	json_object_set_new(json, "deviation", real_json(c->deviation));
	json_object_set_new(json, "approximate_quantiles", json_boolean(c->approximate_quantiles));
	json_object_set_new(json, "quantiles", quantiles);
	json_object_set_new(json, "histogram", histogram);
}

static json_t *
column_json(const struct leat_profile_column *c)
{
	static const char *const classes[] = {"number", "time", "words", "bytes", "list", "other"};
	struct leat_profile_text name = {.bytes = c->name, .len = strlen(c->name)};
	json_t *json = json_object();

	json_object_set_new(json, "name", text_json(&name));
	json_object_set_new(json, "type", json_string(c->type));
	json_object_set_new(json, "class", json_string(classes[c->class]));
	json_object_set_new(json, "nulls", count_json(c->nulls));
	if (c->has_distinct) {
		json_object_set_new(json, "distinct", count_json(c->distinct));
		json_object_set_new(json, "approximate_distinct", json_boolean(c->approximate_distinct));
	}
	if (c->min.bytes) {
		json_object_set_new(json, "min", text_json(&c->min));
		json_object_set_new(json, "max", text_json(&c->max));
	}
	if (c->class == LEAT_PROFILE_NUMBER || c->class == LEAT_PROFILE_TIME) {
		json_object_set_new(json, "nan", count_json(c->nan));
		json_object_set_new(json, "infinite", count_json(c->infinite));
	}
	if (c->finite)
		add_figures(json, c);
	if (c->has_length) {
		json_object_set_new(json, "shortest", count_json(c->shortest));
		json_object_set_new(json, "longest", count_json(c->longest));
	}
	if (c->class == LEAT_PROFILE_WORDS)
		json_object_set_new(json, "top", tops_json(c));
	return json;
}

static json_t *
drift_json(const struct leat_drift *drift)
{
	static const char *const sizes[] = {"none", "unsure", "some", "large", "type", "added", "removed"};
	json_t *columns = json_array(), *json = json_object();

	for (size_t i = 0; i < drift->columns; i++) {
		const struct leat_drift_column *d = &drift->column[i];
		struct leat_profile_text name = {.bytes = (char *)(uintptr_t)d->name, .len = strlen(d->name)};
		json_t *one = json_object();

		json_object_set_new(one, "name", text_json(&name));
		json_object_set_new(one, "drift", json_string(sizes[d->size]));
		if (d->compared) {
			json_object_set_new(one, "psi", real_json(d->psi));
			json_object_set_new(one, "js", real_json(d->js));
		}
		json_object_set_new(one, "what", json_string(d->sentence));
		json_array_append_new(columns, one);
	}
	json_object_set_new(json, "moved", count_json(drift->moved));
	json_object_set_new(json, "columns", columns);
	return json;
}

/* Counts what is missing: jansson's functions take NULL for an argument and fail, which is told apart by that. */
static bool
is_complete(json_t *json, const struct leat_profile *profile, const struct leat_drift *drift)
{
	json_t *columns = json_object_get(json, "columns"), *one;
	size_t i;

	if (json_array_size(columns) != profile->columns || (drift && !json_object_get(json, "drift")))
		return false;
	json_array_foreach(columns, i,
	                   one) if (!json_object_get(one, "name") ||
	                            (profile->column[i].finite && !json_object_get(one, "histogram"))) return false;
	return true;
}

json_t *
leat_profile_json(const struct leat_profile *profile, const struct leat_drift *drift)
{
	json_t *json = json_object(), *columns = json_array();

	for (size_t i = 0; i < profile->columns; i++)
		json_array_append_new(columns, column_json(&profile->column[i]));
	json_object_set_new(json, "rows", count_json(profile->rows));
	json_object_set_new(json, "of_rows", count_json(profile->of_rows));
	json_object_set_new(json, "columns", columns);
	if (drift)
		json_object_set_new(json, "drift", drift_json(drift));
	if (is_complete(json, profile, drift))
		return json;
	json_decref(json);
	return NULL;
}
