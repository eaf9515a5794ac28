/* opt.c - set a params struct from a call's arguments (opt_text.c does the reverse)
 *
 * number_of applies the unit and checks the range of every number, so the same mistake gives
 * the same message for all options. Defaults are parsed like given values. Stateless. */
#include "base/opt.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/names.h"
#include "base/size.h"

/* One option being set. */
struct setting {
	const struct leat_opt *opt;
	void *at; /* in the params struct */
	const char *text, *whose;
	struct leat_mem *mem;
	struct leat_err *err;
};

static size_t
count_opts(const struct leat_opt *opts)
{
	size_t n = 0;

	while (opts && opts[n].type != LEAT_OPT_NONE)
		n++;
	return n;
}

const struct leat_opt *
leat_opt_find(const struct leat_opt *opts, const char *name)
{
	for (; opts && opts->type != LEAT_OPT_NONE; opts++)
		if (strcmp(opts->name, name) == 0 || (opts->was && strcmp(opts->was, name) == 0))
			return opts;
	return NULL;
}

/* ---- errors ---- */

/* Fails with "option 'NAME' of 'OP' ..." and a caret under `value`. */
static enum leat_status __attribute__((format(printf, 3, 4)))
refuse(const struct setting *s, const struct leat_arg *value, const char *fmt, ...)
{
	char rest[400];
	va_list ap;

	va_start(ap, fmt);
	leat_vformat(rest, sizeof(rest), fmt, ap);
	va_end(ap);
	if (!s->whose)
		return leat_fail_at(s->err, s->text, value->at, value->len, "option '%s' %s", s->opt->name, rest);
	return leat_fail_at(s->err, s->text, value->at, value->len, "option '%s' of '%s' %s", s->opt->name, s->whose,
	                    rest);
}

/* "must be WHAT, not VALUE", quoting the value from the spec. */
static enum leat_status
refuse_value(const struct setting *s, const struct leat_arg *value, const char *what)
{
	int len = value->len > 40 ? 40 : (int)value->len;

	return refuse(s, value, "must be %s, not %.*s%s", what, len, s->text + value->at, value->len > 40 ? "..." : "");
}

/* Appends a word to "a, b or c". */
static void
add_word(char *list, size_t cap, const char *word, bool last)
{
	size_t used = strlen(list);
	const char *between = !used ? "" : last ? " or " : ", ";

	snprintf(list + used, cap - used, "%s%s", between, word);
}

/* ---- numbers ---- */

struct unit {
	const char *name;
	double factor;
};

static const struct unit no_units[] = {{NULL, 0}};
static const struct unit count_units[] = {{"k", 1e3}, {"M", 1e6}, {NULL, 0}};
static const struct unit angle_units[] = {{"deg", 3.14159265358979323846 / 180}, {"rad", 1}, {NULL, 0}};

static const struct unit *
units_of(enum leat_opt_type type)
{
	switch (type) {
	case LEAT_OPT_INT:
		return count_units;
	case LEAT_OPT_ANGLE:
		return angle_units;
	default:
		return no_units;
	}
}

static enum leat_status
check_range(const struct setting *s, const struct leat_arg *value, double x)
{
	char range[100], bound[32];

	if (x >= s->opt->min && x <= s->opt->max)
		return LEAT_OK;
	leat_opt_range(s->opt, range, sizeof(range));
	if (!range[0] || (x > s->opt->max && !leat_opt_is_limit(s->opt->max))) /* the range names only the other end */
		snprintf(range, sizeof(range), "%s %s", x < s->opt->min ? "at least" : "at most",
		         leat_format_number(bound, sizeof(bound), x < s->opt->min ? s->opt->min : s->opt->max));
	return refuse_value(s, value, range);
}

static enum leat_status
unit_factor(const struct setting *s, const struct leat_arg *value, double *factor)
{
	const struct unit *units = units_of(s->opt->type);
	char names[80] = "";

	*factor = 1;
	if (!value->unit)
		return LEAT_OK;
	if (s->opt->type == LEAT_OPT_SIZE)
		return leat_size_unit(value->unit, factor)
		               ? LEAT_OK
		               : refuse(s, value,
		                        "does not accept the unit '%.20s'; use kB, MB, GB, TB, KiB, MiB, GiB or TiB",
		                        value->unit);
	if (!units->name)
		return refuse(s, value, "takes a number without a unit, not '%.20s'", value->unit);
	for (const struct unit *u = units; u->name; u++) {
		if (strcmp(u->name, value->unit) == 0) {
			*factor = u->factor;
			return LEAT_OK;
		}
		add_word(names, sizeof(names), u->name, !u[1].name);
	}
	return refuse(s, value, "does not accept the unit '%.20s'; use %s", value->unit, names);
}

/* The number with its unit applied, checked against the option's range. */
static enum leat_status
number_of(const struct setting *s, const struct leat_arg *value, double *x)
{
	enum leat_status status;
	double factor;

	if (value->type != LEAT_ARG_NUMBER)
		return refuse_value(s, value, s->opt->type == LEAT_OPT_INT ? "a whole number" : "a number");
	if (s->opt->type == LEAT_OPT_ANGLE && !value->unit)
		return refuse(s, value, "needs a unit: deg or rad");
	status = unit_factor(s, value, &factor);
	if (status != LEAT_OK)
		return status;
	*x = value->number * factor;
	return check_range(s, value, *x);
}

static enum leat_status
float_of(const struct setting *s, const struct leat_arg *value, float *out)
{
	double x;
	enum leat_status status = number_of(s, value, &x);

	if (status != LEAT_OK)
		return status;
	if (fabs(x) > (double)3.4028234e38f)
		return refuse_value(s, value, "a number that a float can hold");
	*out = (float)x;
	return LEAT_OK;
}

static enum leat_status
whole_of(const struct setting *s, const struct leat_arg *value, int64_t *out)
{
	double x, factor = 1;
	enum leat_status status = number_of(s, value, &x);

	if (status != LEAT_OK)
		return status;
	unit_factor(s, value, &factor);
	if (value->integer && !__builtin_mul_overflow(value->whole, (int64_t)factor, out))
		return LEAT_OK;
	x = s->opt->type == LEAT_OPT_SIZE ? rint(x) : x;
	if (x != rint(x))
		return refuse_value(s, value, "a whole number");
	if (fabs(x) >= 0x1p63)
		return refuse_value(s, value, "a whole number below 2^63");
	*out = (int64_t)x;
	return LEAT_OK;
}

/* ---- words, strings, lists ---- */

/* The text of a plain word or string; NULL for anything else. */
static const char *
text_of(const struct leat_arg *value)
{
	if (value->type == LEAT_ARG_STRING)
		return value->text;
	if (value->type == LEAT_ARG_WORD && !value->has_dims && !value->items)
		return value->text;
	return NULL;
}

static enum leat_status
bool_of(const struct setting *s, const struct leat_arg *value, bool *out)
{
	const char *word = text_of(value);

	if (word && strcmp(word, "true") == 0)
		*out = true;
	else if (word && strcmp(word, "false") == 0)
		*out = false;
	else
		return refuse_value(s, value, "true or false");
	return LEAT_OK;
}

static enum leat_status
choice_of(const struct setting *s, const struct leat_arg *value, int *out)
{
	const char *word = text_of(value), *choice, *near, *names[32];
	char all[512], listed[600] = "";
	size_t len, n = 0, at = 0;

	for (int i = 0; (choice = leat_opt_choice(s->opt->choices, i, &len)); i++) {
		if (word && strlen(word) == len && memcmp(word, choice, len) == 0) {
			*out = i;
			return LEAT_OK;
		}
		if (n == sizeof(names) / sizeof(*names) || at + len + 1 > sizeof(all))
			continue;
		names[n++] = memcpy(all + at, choice, len);
		all[at + len] = '\0';
		at += len + 1;
	}
	near = word ? leat_nearest(word, names, n) : NULL;
	if (near)
		return refuse(s, value, "cannot be '%.40s', did you mean '%s'?", word, near);
	for (size_t i = 0; i < n; i++)
		add_word(listed, sizeof(listed), names[i], i + 1 == n);
	return refuse_value(s, value, listed);
}

static enum leat_status
string_of(const struct setting *s, const struct leat_arg *value, const char **out)
{
	const char *word = text_of(value);

	if (!word)
		return refuse_value(s, value, "a word or a string in quotes");
	*out = word;
	return LEAT_OK;
}

static enum leat_status
floats_of(const struct setting *s, const struct leat_arg *value, const struct leat_arg *items, size_t count,
          struct leat_floats *out)
{
	enum leat_status status = LEAT_OK;

	if (count > LEAT_MAX_LIST)
		return refuse(s, value, "takes at most %d numbers", LEAT_MAX_LIST);
	for (size_t i = 0; i < count && status == LEAT_OK; i++)
		status = float_of(s, &items[i], &out->value[i]);
	out->count = (int)count;
	return status;
}

static enum leat_status
strings_of(const struct setting *s, const struct leat_arg *items, size_t count, struct leat_strings *out)
{
	const char **list = leat_alloc_array(s->mem, count, sizeof(*list));
	enum leat_status status = LEAT_OK;

	if (!list)
		return leat_fail_mem(s->err, s->mem, count * sizeof(*list), "a list of strings");
	for (size_t i = 0; i < count && status == LEAT_OK; i++)
		status = string_of(s, &items[i], &list[i]);
	if (status != LEAT_OK) {
		leat_free(s->mem, list);
		return status;
	}
	leat_free(s->mem, out->value);
	out->value = list;
	out->count = count;
	return LEAT_OK;
}

static enum leat_status
value_of(const struct setting *s, const struct leat_arg *arg, struct leat_opt_value *out)
{
	*out = (struct leat_opt_value){arg->type, arg->number, text_of(arg), NULL};
	if (arg->type == LEAT_ARG_NUMBER && s->opt->flags & LEAT_OPT_UNITS)
		out->unit = arg->unit;
	else if (arg->type == LEAT_ARG_NUMBER && arg->unit)
		return refuse(s, arg, "takes a number without a unit, not '%.20s'", arg->unit);
	return arg->type == LEAT_ARG_NUMBER || out->text
	               ? LEAT_OK
	               : refuse_value(s, arg, "a number, a word or a string in quotes");
}

static enum leat_status
values_of(const struct setting *s, const struct leat_arg *items, size_t count, struct leat_values *out)
{
	struct leat_opt_value *list = leat_alloc_array(s->mem, count, sizeof(*list));
	enum leat_status status = LEAT_OK;

	if (!list)
		return leat_fail_mem(s->err, s->mem, count * sizeof(*list), "a list of values");
	for (size_t i = 0; i < count && status == LEAT_OK; i++)
		status = value_of(s, &items[i], &list[i]);
	if (status != LEAT_OK) {
		leat_free(s->mem, list);
		return status;
	}
	leat_free(s->mem, out->value);
	*out = (struct leat_values){count, list};
	return LEAT_OK;
}

static bool
is_list(const struct leat_opt *opt)
{
	return opt->type == LEAT_OPT_FLOATS || opt->type == LEAT_OPT_STRINGS || opt->type == LEAT_OPT_VALUES;
}

/* Sets one option to `values[0]`, or a list option to all values. A single list is unpacked. */
static enum leat_status
put(const struct setting *s, const struct leat_arg *values, size_t count)
{
	const struct leat_arg *value = values;

	if (is_list(s->opt) && count == 1 && value->type == LEAT_ARG_LIST) {
		values = value->item;
		count = value->items;
	}
	switch (s->opt->type) {
	case LEAT_OPT_INT:
	case LEAT_OPT_SIZE:
		return whole_of(s, value, s->at);
	case LEAT_OPT_FLOAT:
	case LEAT_OPT_ANGLE:
		return float_of(s, value, s->at);
	case LEAT_OPT_BOOL:
		return bool_of(s, value, s->at);
	case LEAT_OPT_STRING:
		return string_of(s, value, s->at);
	case LEAT_OPT_ENUM:
		return choice_of(s, value, s->at);
	case LEAT_OPT_FLOATS:
		return floats_of(s, value, values, count, s->at);
	case LEAT_OPT_STRINGS:
		return strings_of(s, values, count, s->at);
	case LEAT_OPT_VALUES:
		return values_of(s, values, count, s->at);
	case LEAT_OPT_NONE:
		break;
	}
	return leat_fail(s->err, LEAT_INTERNAL, "option '%s' has an unknown type", s->opt->name);
}

static void *
member(const struct leat_opt *opt, void *params)
{
	return (char *)params + opt->offset;
}

enum leat_status
leat_opt_put(const struct leat_opt *opt, void *params, const struct leat_arg *value, const char *text,
             const char *whose, struct leat_mem *mem, struct leat_err *err)
{
	const struct setting s = {opt, member(opt, params), text, whose, mem, err};

	return put(&s, value, 1);
}

/* Copies the strings of a list out of the parser's blocks, which are about to be freed. They go into the same
 * allocation as the pointers, so one leat_free frees the list. */
static enum leat_status
own_strings(struct leat_strings *list, struct leat_mem *mem, struct leat_err *err)
{
	size_t bytes = list->count * sizeof(*list->value);
	const char **copy;
	char *at;

	for (size_t i = 0; i < list->count; i++)
		bytes += strlen(list->value[i]) + 1;
	copy = leat_alloc(mem, bytes);
	if (!copy)
		return leat_fail_mem(err, mem, bytes, "a list of strings");
	at = (char *)(copy + list->count);
	for (size_t i = 0; i < list->count; i++) {
		copy[i] = at;
		at = stpcpy(at, list->value[i]) + 1;
	}
	leat_free(mem, list->value);
	list->value = copy;
	return LEAT_OK;
}

/* The same for values. */
static enum leat_status
own_values(struct leat_values *list, struct leat_mem *mem, struct leat_err *err)
{
	size_t bytes = list->count * sizeof(*list->value);
	struct leat_opt_value *copy;
	char *at;

	for (size_t i = 0; i < list->count; i++) {
		bytes += list->value[i].text ? strlen(list->value[i].text) + 1 : 0;
		bytes += list->value[i].unit ? strlen(list->value[i].unit) + 1 : 0;
	}
	copy = leat_alloc(mem, bytes);
	if (!copy)
		return leat_fail_mem(err, mem, bytes, "a list of values");
	at = (char *)(copy + list->count);
	for (size_t i = 0; i < list->count; i++) {
		copy[i] = list->value[i];
		if (copy[i].text) {
			copy[i].text = at;
			at = stpcpy(at, list->value[i].text) + 1;
		}
		if (copy[i].unit) {
			copy[i].unit = at;
			at = stpcpy(at, list->value[i].unit) + 1;
		}
	}
	leat_free(mem, list->value);
	list->value = copy;
	return LEAT_OK;
}

enum leat_status
leat_opt_put_text(const struct leat_opt *opt, void *params, const char *text, const char *whose, struct leat_mem *mem,
                  struct leat_err *err)
{
	struct leat_arg value = {0};
	struct leat_parse p;
	enum leat_status status = leat_parse_begin(&p, text, mem, err);

	if (status == LEAT_OK)
		status = leat_parse_value(&p, &value);
	if (status == LEAT_OK && !leat_parse_at_end(&p))
		status = leat_parse_expected(&p, "one value");
	if (status != LEAT_OK)
		leat_err_in(err, "option '%s'", opt->name);
	else
		status = leat_opt_put(opt, params, &value, text, whose, mem, err);
	if (status == LEAT_OK && opt->type == LEAT_OPT_STRINGS)
		status = own_strings(member(opt, params), mem, err);
	if (status == LEAT_OK && opt->type == LEAT_OPT_VALUES)
		status = own_values(member(opt, params), mem, err);
	leat_parse_free(mem, p.blocks);
	return status;
}

enum leat_status
leat_opt_put_default(const struct leat_opt *opt, void *params, const char *whose, struct leat_mem *mem,
                     struct leat_err *err)
{
	enum leat_status status;

	if (opt->type == LEAT_OPT_STRING) {
		*(const char **)member(opt, params) = opt->def;
		return LEAT_OK;
	}
	status = leat_opt_put_text(opt, params, opt->def, whose, mem, err);
	if (status == LEAT_SPEC) {
		if (err)
			err->status = LEAT_INTERNAL;
		leat_err_in(err, "default");
		status = LEAT_INTERNAL;
	}
	return status;
}

void
leat_opts_clear(const struct leat_opt *opts, void *params)
{
	for (; opts && opts->type != LEAT_OPT_NONE; opts++) {
		if (opts->type == LEAT_OPT_STRINGS)
			*(struct leat_strings *)member(opts, params) = (struct leat_strings){0};
		if (opts->type == LEAT_OPT_VALUES)
			*(struct leat_values *)member(opts, params) = (struct leat_values){0};
	}
}

void
leat_opts_free(const struct leat_opt *opts, void *params, struct leat_mem *mem)
{
	for (; opts && opts->type != LEAT_OPT_NONE; opts++) {
		if (opts->type == LEAT_OPT_STRINGS) {
			struct leat_strings *list = member(opts, params);

			leat_free(mem, list->value);
			*list = (struct leat_strings){0};
		}
		if (opts->type == LEAT_OPT_VALUES) {
			struct leat_values *list = member(opts, params);

			leat_free(mem, list->value);
			*list = (struct leat_values){0};
		}
	}
}

/* ---- a call's arguments ---- */

static enum leat_status
unknown_name(const struct leat_opt *opts, const struct leat_call *call, const struct leat_arg *arg, const char *text,
             struct leat_err *err)
{
	struct leat_unknown unknown = {.what = "option", .name = arg->name};
	char sentence[LEAT_UNKNOWN_TEXT], owner[100];
	const char *names[LEAT_MAX_OPTS];

	unknown.count = count_opts(opts);
	if (!unknown.count)
		return leat_fail_at(err, text, arg->name_at, strlen(arg->name), "'%s' takes no options", call->name);
	for (size_t i = 0; i < unknown.count; i++)
		names[i] = opts[i].name;
	unknown.known = names;
	snprintf(owner, sizeof(owner), "'%s'", call->name);
	unknown.owner = owner;
	return leat_fail_at(err, text, arg->name_at, strlen(arg->name), "%s", leat_unknown_text(&unknown, sentence));
}

static enum leat_status
too_many(const struct leat_opt *opts, const struct leat_call *call, const struct leat_arg *arg, const char *text,
         struct leat_err *err)
{
	size_t n = 0;

	for (const struct leat_opt *o = opts; o && o->type != LEAT_OPT_NONE; o++)
		n += !(o->flags & LEAT_OPT_NAMED);
	if (!count_opts(opts))
		return leat_fail_at(err, text, arg->at, arg->len, "'%s' takes no options", call->name);
	if (!n)
		return leat_fail_at(err, text, arg->at, arg->len, "'%s' takes only named options, such as %s=...",
		                    call->name, opts->name);
	return leat_fail_at(err, text, arg->at, arg->len, "'%s' takes at most %zu positional argument%s", call->name, n,
	                    leat_plural(n));
}

static const struct leat_opt *
next_positional(const struct leat_opt *opt)
{
	while (opt && opt->type != LEAT_OPT_NONE && (opt->flags & LEAT_OPT_NAMED))
		opt++;
	return opt && opt->type != LEAT_OPT_NONE ? opt : NULL;
}

/* Assigns every argument to its option. Bit i of `given` is set if option i was given. */
static enum leat_status
put_all(const struct leat_opt *opts, void *params, const struct leat_call *call, const char *text, struct leat_mem *mem,
        uint64_t *given, struct leat_err *err)
{
	const struct leat_opt *positional = next_positional(opts);

	for (size_t i = 0, used; i < call->args; i += used) {
		const struct leat_arg *arg = &call->arg[i];
		struct setting s = {.text = text, .whose = call->name, .mem = mem, .err = err};
		enum leat_status status;

		used = 1;
		if (arg->name) {
			s.opt = leat_opt_find(opts, arg->name);
			if (!s.opt)
				return unknown_name(opts, call, arg, text, err);
		} else {
			if (i > 0 && call->arg[i - 1].name)
				return leat_fail_at(err, text, arg->at, arg->len,
				                    "a positional argument cannot follow a named one");
			s.opt = positional;
			if (!s.opt)
				return too_many(opts, call, arg, text, err);
			positional = next_positional(positional + 1);
			if (is_list(s.opt) && !positional)
				while (i + used < call->args && !call->arg[i + used].name)
					used++;
		}
		if (*given & (UINT64_C(1) << (s.opt - opts)))
			return leat_fail_at(err, text, arg->name ? arg->name_at : arg->at,
			                    arg->name ? strlen(arg->name) : arg->len,
			                    "option '%s' of '%s' is given twice", s.opt->name, call->name);
		*given |= UINT64_C(1) << (s.opt - opts);
		s.at = member(s.opt, params);
		status = put(&s, arg, used);
		if (status != LEAT_OK)
			return status;
	}
	return LEAT_OK;
}

enum leat_status
leat_opts_set(const struct leat_opt *opts, void *params, const struct leat_call *call, const char *text,
              struct leat_mem *mem, struct leat_err *err)
{
	enum leat_status status;
	uint64_t given = 0;
	size_t count = count_opts(opts);

	if (count > LEAT_MAX_OPTS)
		return leat_fail(err, LEAT_INTERNAL, "'%s' has more than %d options", call->name, LEAT_MAX_OPTS);
	leat_opts_clear(opts, params);
	status = put_all(opts, params, call, text, mem, &given, err);
	for (size_t i = 0; i < count && status == LEAT_OK; i++) {
		if (given & (UINT64_C(1) << i))
			continue;
		if (opts[i].def)
			status = leat_opt_put_default(&opts[i], params, call->name, mem, err);
		else
			status = leat_fail_at(err, text, call->at, call->len, "'%s' needs the option '%s': %s",
			                      call->name, opts[i].name, opts[i].doc);
	}
	if (status != LEAT_OK)
		leat_opts_free(opts, params, mem);
	return status;
}
