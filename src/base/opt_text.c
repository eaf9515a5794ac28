/* opt_text.c - print a params struct as canonical spec text, and an option table as JSON
 *
 * leat_opts_set reads back exactly the values that leat_opts_print wrote; the pipeline's
 * hash depends on it. */
#include "base/opt.h"

#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The fewest digits that parse back to the same float (or double), in the C locale. */
static char *
format_shortest(char *buf, size_t cap, double x, bool single)
{
	locale_t c = newlocale(LC_ALL_MASK, "C", (locale_t)0);
	locale_t old = c ? uselocale(c) : (locale_t)0;

	for (int digits = 6; digits <= (single ? 9 : 17); digits++) {
		double back;

		snprintf(buf, cap, "%.*g", digits, x);
		back = strtod(buf, NULL);
		if (single ? (float)back == (float)x : back == x)
			break;
	}
	if (c) {
		uselocale(old);
		freelocale(c);
	}
	return buf;
}

char *
leat_format_number(char *buf, size_t cap, double x)
{
	if (fabs(x) < 1e15 && x == rint(x)) {
		snprintf(buf, cap, "%lld", (long long)x);
		return buf;
	}
	return format_shortest(buf, cap, x, false);
}

char *
leat_format_digits(char *buf, size_t cap, double x, int digits)
{
	locale_t c = newlocale(LC_ALL_MASK, "C", (locale_t)0);
	locale_t old = c ? uselocale(c) : (locale_t)0;

	snprintf(buf, cap, "%.*g", digits, x);
	if (c) {
		uselocale(old);
		freelocale(c);
	}
	return buf;
}

char *
leat_format_float(char *buf, size_t cap, float x)
{
	return format_shortest(buf, cap, (double)x, true);
}

const char *
leat_opt_choice(const char *choices, int i, size_t *len)
{
	for (; choices; i--) {
		*len = strcspn(choices, "|");
		if (i == 0)
			return choices;
		choices = choices[*len] ? choices + *len + 1 : NULL;
	}
	return NULL;
}

static void
print_values(const struct leat_values *values, struct leat_str *out)
{
	char buf[40];

	leat_str_add(out, "[");
	for (size_t i = 0; i < values->count; i++) {
		const struct leat_opt_value *value = &values->value[i];

		leat_str_add(out, i ? ", " : "");
		if (value->type == LEAT_ARG_NUMBER)
			leat_str_addf(out, "%s%s", leat_format_number(buf, sizeof(buf), value->number),
			              value->unit ? value->unit : "");
		else if (value->type == LEAT_ARG_WORD)
			leat_str_add(out, value->text);
		else
			leat_str_add_quoted(out, value->text);
	}
	leat_str_add(out, "]");
}

static void
print_value(const struct leat_opt *opt, const void *at, struct leat_str *out)
{
	const struct leat_floats *floats = at;
	const struct leat_strings *strings = at;
	const char *choice;
	size_t len;
	char buf[40];

	switch (opt->type) {
	case LEAT_OPT_INT:
	case LEAT_OPT_SIZE:
		leat_str_addf(out, "%lld", (long long)*(const int64_t *)at);
		break;
	case LEAT_OPT_FLOAT:
		leat_str_add(out, leat_format_float(buf, sizeof(buf), *(const float *)at));
		break;
	case LEAT_OPT_ANGLE:
		leat_str_addf(out, "%srad", leat_format_float(buf, sizeof(buf), *(const float *)at));
		break;
	case LEAT_OPT_BOOL:
		leat_str_add(out, *(const bool *)at ? "true" : "false");
		break;
	case LEAT_OPT_STRING:
		leat_str_add_quoted(out, *(const char *const *)at);
		break;
	case LEAT_OPT_ENUM:
		choice = leat_opt_choice(opt->choices, *(const int *)at, &len);
		leat_str_addn(out, choice ? choice : "?", choice ? len : 1);
		break;
	case LEAT_OPT_FLOATS:
		leat_str_add(out, "[");
		for (int i = 0; i < floats->count; i++)
			leat_str_addf(out, "%s%s", i ? ", " : "",
			              leat_format_float(buf, sizeof(buf), floats->value[i]));
		leat_str_add(out, "]");
		break;
	case LEAT_OPT_STRINGS:
		leat_str_add(out, "[");
		for (size_t i = 0; i < strings->count; i++) {
			leat_str_add(out, i ? ", " : "");
			leat_str_add_quoted(out, strings->value[i]);
		}
		leat_str_add(out, "]");
		break;
	case LEAT_OPT_VALUES:
		print_values(at, out);
		break;
	case LEAT_OPT_NONE:
		break;
	}
}

/* For options with LEAT_OPT_NEW, whose types are the simple ones. */
static bool
is_default(const struct leat_opt *opt, const void *at)
{
	const char *choice;
	size_t len;

	switch (opt->type) {
	case LEAT_OPT_INT:
		return *(const int64_t *)at == strtoll(opt->def, NULL, 10);
	case LEAT_OPT_STRING:
		return strcmp(*(const char *const *)at, opt->def) == 0;
	case LEAT_OPT_BOOL:
		return *(const bool *)at == !strcmp(opt->def, "true");
	case LEAT_OPT_ENUM:
		choice = leat_opt_choice(opt->choices, *(const int *)at, &len);
		return choice && strlen(opt->def) == len && !strncmp(choice, opt->def, len);
	default:
		return false;
	}
}

void
leat_opts_print(const struct leat_opt *opts, const void *params, bool locations, struct leat_str *out)
{
	bool first = true;

	for (; opts && opts->type != LEAT_OPT_NONE; opts++) {
		if (((opts->flags & LEAT_OPT_LOCATION) && !locations) ||
		    ((opts->flags & LEAT_OPT_NEW) && is_default(opts, (const char *)params + opts->offset)))
			continue;
		leat_str_addf(out, "%s%s=", first ? "" : ", ", opts->was ? opts->was : opts->name);
		print_value(opts, (const char *)params + opts->offset, out);
		first = false;
	}
}

const char *
leat_opt_type_name(enum leat_opt_type type)
{
	static const char *const names[] = {
		[LEAT_OPT_NONE] = "none",       [LEAT_OPT_INT] = "int",       [LEAT_OPT_FLOAT] = "float",
		[LEAT_OPT_BOOL] = "bool",       [LEAT_OPT_STRING] = "string", [LEAT_OPT_ENUM] = "enum",
		[LEAT_OPT_SIZE] = "size",       [LEAT_OPT_ANGLE] = "angle",   [LEAT_OPT_FLOATS] = "floats",
		[LEAT_OPT_STRINGS] = "strings", [LEAT_OPT_VALUES] = "values",
	};

	return names[type];
}

bool
leat_opt_is_number(const struct leat_opt *opt)
{
	return opt->type == LEAT_OPT_INT || opt->type == LEAT_OPT_FLOAT || opt->type == LEAT_OPT_SIZE ||
	       opt->type == LEAT_OPT_ANGLE || opt->type == LEAT_OPT_FLOATS;
}

/* Tables use 1e18 or more for "unlimited". */
bool
leat_opt_is_limit(double bound)
{
	return fabs(bound) < 1e18;
}

void
leat_opt_range(const struct leat_opt *opt, char *buf, size_t cap)
{
	const char *unit = opt->type == LEAT_OPT_ANGLE ? "rad" : opt->type == LEAT_OPT_SIZE ? " bytes" : "";
	char min[32], max[32];

	leat_format_number(min, sizeof(min), opt->min);
	leat_format_number(max, sizeof(max), opt->max);
	if (leat_opt_is_limit(opt->min) && leat_opt_is_limit(opt->max))
		snprintf(buf, cap, "between %s and %s%s", min, max, unit);
	else if (leat_opt_is_limit(opt->min))
		snprintf(buf, cap, "at least %s%s", min, unit);
	else if (leat_opt_is_limit(opt->max))
		snprintf(buf, cap, "at most %s%s", max, unit);
	else
		buf[0] = '\0';
}

static void
json_bound(const char *name, double bound, struct leat_str *out)
{
	char buf[40];

	if (isfinite(bound))
		leat_str_addf(out, ",\"%s\":%s", name, leat_format_number(buf, sizeof(buf), bound));
	else
		leat_str_addf(out, ",\"%s\":null", name);
}

static void
json_option(const struct leat_opt *opt, struct leat_str *out)
{
	const char *choice;
	size_t len;

	leat_str_add(out, "{\"name\":");
	leat_str_add_json(out, opt->name);
	if (opt->was) {
		leat_str_add(out, ",\"was\":");
		leat_str_add_json(out, opt->was);
	}
	leat_str_addf(out, ",\"type\":\"%s\",\"default\":", leat_opt_type_name(opt->type));
	if (opt->def)
		leat_str_add_json(out, opt->def);
	else
		leat_str_add(out, "null");
	if (leat_opt_is_number(opt)) {
		json_bound("min", opt->min, out);
		json_bound("max", opt->max, out);
	}
	if (opt->type == LEAT_OPT_ENUM) {
		leat_str_add(out, ",\"choices\":[");
		for (int i = 0; (choice = leat_opt_choice(opt->choices, i, &len)); i++)
			leat_str_addf(out, "%s\"%.*s\"", i ? "," : "", (int)len, choice);
		leat_str_add(out, "]");
	}
	leat_str_add(out, ",\"doc\":");
	leat_str_add_json(out, opt->doc);
	leat_str_addf(out, ",\"positional\":%s,\"location\":%s}", opt->flags & LEAT_OPT_NAMED ? "false" : "true",
	              opt->flags & LEAT_OPT_LOCATION ? "true" : "false");
}

void
leat_opts_json(const struct leat_opt *opts, struct leat_str *out)
{
	leat_str_add(out, "[");
	for (const struct leat_opt *o = opts; o && o->type != LEAT_OPT_NONE; o++) {
		if (o != opts)
			leat_str_add(out, ",");
		json_option(o, out);
	}
	leat_str_add(out, "]");
}
