/* slices.c - see slices.h: arithmetic on the values of variables */
#include "step/slices.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/names.h"

/* The index along an axis: the last axis changes fastest. */
static size_t
index_on(const struct leat_slices *slices, size_t slice, size_t axis)
{
	for (size_t a = slices->axes - 1; a > axis; a--)
		slice /= slices->length[a];
	return slice % slices->length[axis];
}

const char *
leat_slice_value(const struct leat_slices *slices, size_t slice, size_t variable)
{
	const struct leat_variable *v = &slices->variable[variable];

	return v->value[index_on(slices, slice, v->axis)];
}

size_t
leat_slice_variable(const struct leat_slices *slices, const char *name)
{
	for (size_t i = 0; i < slices->variables; i++)
		if (!strcmp(slices->variable[i].name, name))
			return i;
	return SIZE_MAX;
}

/* ---- as text ---- */

static void
add_escaped(const char *value, const char *special, struct leat_str *out)
{
	for (; *value; value++) {
		unsigned char c = (unsigned char)*value;

		if (c < 0x20 || c == 0x7f || strchr(special, *value))
			leat_str_addf(out, "%%%02X", c);
		else
			leat_str_addn(out, value, 1);
	}
}

void
leat_slice_text(const struct leat_slices *slices, size_t slice, struct leat_str *out)
{
	for (size_t i = 0; i < slices->variables; i++) {
		leat_str_addf(out, "%s%s=", i ? "," : "", slices->variable[i].name);
		add_escaped(leat_slice_value(slices, slice, i), ",=%", out);
	}
}

/* Hidden names would be overlooked by globs, and "." and ".." are folders. */
static void
add_file_name(const char *value, struct leat_str *out)
{
	if (*value == '.') {
		leat_str_add(out, "%2E");
		value++;
	}
	add_escaped(value, "/,%", out);
}

void
leat_slice_entry(const struct leat_slices *slices, size_t slice, const bool *use, struct leat_str *out)
{
	bool any = false;

	for (size_t i = 0; i < slices->variables; i++) {
		if (!use[i])
			continue;
		leat_str_add(out, any ? "," : "");
		add_file_name(leat_slice_value(slices, slice, i), out);
		any = true;
	}
}

/* ---- from text ---- */

enum { SHOWN = 16, LONGEST = 16384 };

/* Which value of each variable the text asks for. */
struct wanted {
	const struct leat_slices *slices;
	char **value; /* by variable; NULL: not given */
	struct leat_err *err;
};

static void
unescape(char *text)
{
	char *to = text;

	for (; *text; text++) {
		int high = *text == '%' ? leat_hex_digit(text[1]) : -1;
		int low = high >= 0 ? leat_hex_digit(text[2]) : -1;

		*to++ = low < 0 ? *text : (char)((unsigned)high << 4 | (unsigned)low);
		text += low >= 0 ? 2 : 0;
	}
	*to = '\0';
}

static enum leat_status
unknown_variable(const struct wanted *w, const char *name)
{
	const char *known[SHOWN];
	size_t n = 0;

	for (; n < w->slices->variables && n < SHOWN; n++)
		known[n] = w->slices->variable[n].name;
	return leat_fail_unknown(w->err, LEAT_INVALID,
	                         &(struct leat_unknown){.what = "slice variable",
	                                                .name = name,
	                                                .known = known,
	                                                .count = n,
	                                                .more = w->slices->variables - n});
}

static bool
has_value(const struct leat_variable *variable, const char *value)
{
	for (size_t i = 0; i < variable->values; i++)
		if (!strcmp(variable->value[i], value))
			return true;
	return false;
}

/* 7 finds 07, unless there is a 7. */
static void
find_number(const struct leat_variable *variable, char **value)
{
	size_t zeros = strspn(*value, "0");

	if (!**value || (*value)[strspn(*value, "0123456789")] || has_value(variable, *value))
		return;
	for (size_t i = 0; i < variable->values; i++) {
		const char *other = variable->value[i];

		if (*other && !other[strspn(other, "0123456789")] &&
		    !strcmp(other + strspn(other, "0"), *value + zeros)) {
			*value = (char *)other; /* it is only read */
			return;
		}
	}
}

static enum leat_status
split(struct wanted *w, char *text)
{
	while (*text) {
		char *next = text + strcspn(text, ","), *equals = memchr(text, '=', (size_t)(next - text));
		size_t variable;

		if (*next)
			*next++ = '\0';
		if (!equals)
			return leat_fail(w->err, LEAT_INVALID, "'%s' is not a slice; write it as NAME=VALUE", text);
		*equals = '\0';
		variable = leat_slice_variable(w->slices, text);
		if (variable == SIZE_MAX)
			return unknown_variable(w, text);
		if (w->value[variable])
			return leat_fail(w->err, LEAT_INVALID, "'%s' is given twice", text);
		unescape(equals + 1);
		w->value[variable] = equals + 1;
		find_number(&w->slices->variable[variable], &w->value[variable]);
		text = next;
	}
	return LEAT_OK;
}

static bool
is_wanted(const struct wanted *w, size_t axis, size_t index)
{
	for (size_t i = 0; i < w->slices->variables; i++)
		if (w->slices->variable[i].axis == axis && w->value[i] &&
		    strcmp(w->slices->variable[i].value[index], w->value[i]) != 0)
			return false;
	return true;
}

static enum leat_status
no_such_value(const struct wanted *w, size_t axis)
{
	for (size_t i = 0; i < w->slices->variables; i++) {
		const struct leat_variable *v = &w->slices->variable[i];
		size_t n = v->values < SHOWN ? v->values : SHOWN;
		char owner[128];

		if (v->axis != axis || !w->value[i] || has_value(v, w->value[i]))
			continue;
		snprintf(owner, sizeof(owner), "'%s'", v->name);
		return leat_fail_unknown(w->err, LEAT_INVALID,
		                         &(struct leat_unknown){.what = "value",
		                                                .name = w->value[i],
		                                                .owner = owner,
		                                                .known = v->value,
		                                                .count = n,
		                                                .more = v->values - n});
	}
	return leat_fail(w->err, LEAT_INVALID, "no slice has these values together");
}

static enum leat_status
not_unique(const struct wanted *w, size_t axis)
{
	for (size_t i = 0; i < w->slices->variables; i++)
		if (w->slices->variable[i].axis == axis && !w->value[i])
			return leat_fail(w->err, LEAT_INVALID, "several slices match; give a value for '%s' too",
			                 w->slices->variable[i].name);
	return leat_fail(w->err, LEAT_INTERNAL, "two slices have the same values");
}

static enum leat_status
find_on(const struct wanted *w, size_t axis, size_t *index)
{
	size_t found = 0;

	for (size_t i = 0; i < w->slices->length[axis]; i++)
		if (is_wanted(w, axis, i) && found++ == 0)
			*index = i;
	return found == 1 ? LEAT_OK : found ? not_unique(w, axis) : no_such_value(w, axis);
}

enum leat_status
leat_slice_find(const struct leat_slices *slices, const char *text, size_t *slice, struct leat_err *err)
{
	char *value[LEAT_MAX_VARIABLES] = {NULL}, copy[LONGEST];
	struct wanted w = {slices, value, err};
	enum leat_status status;
	size_t index = 0;

	*slice = 0;
	if (strlen(text) >= sizeof(copy))
		return leat_fail(err, LEAT_INVALID, "the name of a slice has at most %d characters", LONGEST - 1);
	if (*text && !slices->variables)
		return leat_fail(err, LEAT_INVALID, "the step has no slices, so '%s' is none of them", text);
	memcpy(copy, text, strlen(text) + 1);
	status = split(&w, copy);
	for (size_t a = 0; a < slices->axes && status == LEAT_OK; a++) {
		status = find_on(&w, a, &index);
		*slice = *slice * slices->length[a] + index;
	}
	return status;
}
