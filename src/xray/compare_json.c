/* compare_json.c - a comparison as JSON for the page; see compare.h */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "xray/compare.h"

enum { MOST_TUNED = 64 }; /* entries of `tuning` that are looked at: the JSON may be anybody's */

static json_t *
number_or_null(double x)
{
	return isfinite(x) ? json_real(x) : json_null();
}

static json_t *
row_json(const struct leat_compare_row *row)
{
	return json_pack("{s:s, s:s, s:o, s:o, s:b, s:b, s:b}", "name", row->name, "unit", row->unit, "a",
	                 number_or_null(row->a), "b", number_or_null(row->b), "more_is_better",
	                 (int)row->more_is_better, "decided", (int)row->decided, "differs", (int)row->differs);
}

/* A value as text: what is set, or found, may be a number, a word or a flag. */
static void
value_text(const json_t *value, char *text, size_t size)
{
	if (json_is_string(value))
		leat_show(text, size, json_string_value(value), json_string_length(value));
	else if (json_is_integer(value))
		snprintf(text, size, "%" JSON_INTEGER_FORMAT, json_integer_value(value));
	else if (json_is_number(value))
		snprintf(text, size, "%g", json_number_value(value));
	else
		snprintf(text, size, "%s", json_is_true(value) ? "yes" : json_is_false(value) ? "no" : "-");
}

static void
add_setting(json_t *settings, const char *name, const json_t *a, const json_t *b)
{
	char x[1000], y[1000];
	json_t *row;

	value_text(a, x, sizeof x);
	value_text(b, y, sizeof y);
	if (strcmp(x, y) == 0 || json_array_size(settings) >= LEAT_COMPARE_SETTINGS)
		return;
	row = json_pack("{s:s, s:s, s:s}", "setting", name, "a", x, "b", y);
	if (row)
		json_array_append_new(settings, row);
}

static const json_t *
tuned(const json_t *run, const char *what)
{
	const json_t *tuning = json_object_get(run, "tuning"), *item;

	for (size_t i = 0; i < MOST_TUNED && (item = json_array_get(tuning, i)); i++) {
		const char *name = json_string_value(json_object_get(item, "what"));

		if (name && strcmp(name, what) == 0)
			return json_object_get(item, "value");
	}
	return NULL;
}

static json_t *
settings_json(const json_t *a, const json_t *b)
{
	static const char *const known[] = {"spec", "seed", "threads", "memory", "step_ms", "limit", "leat"};
	const json_t *tuning = json_object_get(a, "tuning");
	json_t *settings = json_array(), *item;

	if (!settings)
		return NULL;
	for (size_t i = 0; i < sizeof known / sizeof *known; i++)
		add_setting(settings, known[i], json_object_get(a, known[i]), json_object_get(b, known[i]));
	for (size_t i = 0; i < MOST_TUNED && (item = json_array_get(tuning, i)); i++) {
		const char *what = json_string_value(json_object_get(item, "what"));

		if (what && strcmp(what, "threads") != 0 && strcmp(what, "memory") != 0)
			add_setting(settings, what, json_object_get(item, "value"), tuned(b, what));
	}
	return settings;
}

json_t *
leat_comparison_json(const struct leat_comparison *c, const json_t *a, const json_t *b)
{
	static const char *const verdict[] = {"same", "different", "unclear"};
	json_t *rows = json_array(), *out;
	char rule[300];

	for (size_t i = 0; rows && i < c->rows; i++)
		if (json_array_append_new(rows, row_json(&c->row[i])) != 0) {
			json_decref(rows);
			return NULL;
		}
	snprintf(rule, sizeof rule,
	         "A change counts if it is larger than 5 %% and larger than the noise, the half width of its 99 %% "
	         "interval, which comes from %s.",
	         c->basis ? c->basis : "a guess: the runs have too few epochs and batches");
	out = json_pack("{s:s, s:s, s:f, s:f, s:s, s:o, s:o, s:O, s:O}", "verdict", verdict[c->verdict], "sentence",
	                c->sentence, "change", c->change, "noise", c->noise, "rule", rule, "rows", rows, "settings",
	                settings_json(a, b), "a", a, "b", b);
	return out;
}
