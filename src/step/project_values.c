/* project_values.c - the value of one key of a step, read by its type */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "leat.h"
#include "base/opt.h"
#include "step/project_read.h"
#include "table/checks.h"

struct setting {
	struct leat_reading *r;
	const struct leat_key *key;
	const struct leat_yaml *value;
	struct leat_step *step;
};

static void *
target(const struct setting *s)
{
	return (char *)s->step + s->key->offset;
}

/* "'cpus' of step 'decode' must be ..., not 'x'". */
static enum leat_status
refuse(const struct setting *s, const struct leat_yaml *at)
{
	struct leat_str values;
	enum leat_status status;
	char not [80] = "";

	leat_str_init(&values, s->r->mem, 200);
	leat_key_values(s->key, &values);
	if (at->kind == LEAT_YAML_TEXT)
		leat_show(not, sizeof(not ), at->text, strlen(at->text));
	status = leat_yaml_fail(&s->r->file, at, "'%s' of step '%s' must be %s%s%s%s", s->key->name, s->step->name,
	                        leat_str_text(&values), *not ? ", not '" : "", not, *not ? "'" : "");
	leat_str_free(&values);
	return status;
}

/* ---- one value ---- */

static enum leat_status
read_text(const struct setting *s)
{
	*(const char **)target(s) = s->value->text;
	return LEAT_OK;
}

static enum leat_status
read_suffix(const struct setting *s)
{
	const char *text = s->value->text;

	if (*text != '.' || strlen(text) < 2 || strlen(text) > 32)
		return refuse(s, s->value);
	for (const char *c = text; *c; c++)
		if (!leat_is_name_character(*c) && *c != '-' && (*c != '.' || c[1] == '.' || !c[1]))
			return refuse(s, s->value);
	return read_text(s);
}

static enum leat_status
read_choice(const struct setting *s)
{
	size_t len = strlen(s->value->text), n;

	for (const char *choice = s->key->choices; *choice; choice += n + (choice[n] == '|')) {
		n = strcspn(choice, "|");
		if (n == len && !strncmp(choice, s->value->text, n))
			return read_text(s);
	}
	return refuse(s, s->value);
}

/* Digits only: no sign, base or exponent. */
static bool
parse_whole(const char *text, uint64_t *number)
{
	char *end;

	if (!*text || strspn(text, "0123456789") != strlen(text))
		return false;
	errno = 0;
	*number = strtoull(text, &end, 10);
	return !errno;
}

static enum leat_status
read_count(const struct setting *s)
{
	uint64_t number;

	if (!parse_whole(s->value->text, &number) || (double)number < s->key->min || (double)number > s->key->max)
		return refuse(s, s->value);
	*(unsigned *)target(s) = (unsigned)number;
	return LEAT_OK;
}

static enum leat_status
read_seed(const struct setting *s)
{
	s->step->has_seed = true;
	return parse_whole(s->value->text, target(s)) ? LEAT_OK : refuse(s, s->value);
}

/* Digits with a decimal point, and s, m, h or d: in any locale. */
static bool
parse_time(const char *text, double *seconds)
{
	static const struct {
		char unit;
		double seconds;
	} units[] = {{'s', 1}, {'m', 60}, {'h', 3600}, {'d', 86400}};
	size_t digits = strspn(text, "0123456789"), fraction = 0;
	double number = 0;

	if (!digits || digits > 9)
		return false;
	for (size_t i = 0; i < digits; i++)
		number = number * 10 + (text[i] - '0');
	text += digits;
	if (*text == '.') {
		fraction = strspn(++text, "0123456789");
		if (!fraction || fraction > 9)
			return false;
		for (size_t i = 0; i < fraction; i++)
			number += (text[i] - '0') * pow(10, -(double)(i + 1));
		text += fraction;
	}
	for (size_t i = 0; i < sizeof(units) / sizeof(*units); i++)
		if (*text == units[i].unit && !text[1]) {
			*seconds = number * units[i].seconds;
			return true;
		}
	return false;
}

static enum leat_status
read_time(const struct setting *s)
{
	double seconds;

	if (!parse_time(s->value->text, &seconds) || seconds < s->key->min || seconds > s->key->max)
		return refuse(s, s->value);
	*(double *)target(s) = seconds;
	return LEAT_OK;
}

static enum leat_status
read_size(const struct setting *s)
{
	uint64_t bytes;

	if (leat_parse_size(s->value->text, &bytes, NULL) != LEAT_OK || (double)bytes < s->key->min ||
	    (double)bytes > s->key->max)
		return refuse(s, s->value);
	*(uint64_t *)target(s) = bytes;
	return LEAT_OK;
}

static enum leat_status
read_flag(const struct setting *s)
{
	const char *text = s->value->text;

	if (strcmp(text, "true") && strcmp(text, "false"))
		return refuse(s, s->value);
	*(bool *)target(s) = *text == 't';
	return LEAT_OK;
}

/* ---- several ---- */

/* A single text is a list of one. */
static const struct leat_yaml *
first_of(const struct leat_yaml *value)
{
	return value->kind == LEAT_YAML_LIST ? value->first : value;
}

static const struct leat_yaml *
next_of(const struct leat_yaml *value, const struct leat_yaml *item)
{
	return value->kind == LEAT_YAML_LIST ? item->next : NULL;
}

static size_t
count_of(const struct leat_yaml *value)
{
	return value->kind == LEAT_YAML_TEXT ? 1 : value->count;
}

/* Before each is compared with all others. */
static enum leat_status
check_count(const struct setting *s)
{
	if (count_of(s->value) <= LEAT_MAX_NAMES)
		return LEAT_OK;
	return leat_yaml_fail(&s->r->file, s->value, "'%s' of step '%s' has more than %d entries%s", s->key->name,
	                      s->step->name, LEAT_MAX_NAMES,
	                      s->key->type == LEAT_KEY_NAMES ? "; slice a step, or use a pattern" : "");
}

static enum leat_status
read_names(const struct setting *s)
{
	enum leat_status status = check_count(s);
	struct leat_edge *edge;

	if (status != LEAT_OK)
		return status;
	edge = leat_text_array(s->r->text, count_of(s->value), sizeof(*edge));
	if (!edge)
		return s->r->err->status;
	s->step->edge = edge;
	for (const struct leat_yaml *i = first_of(s->value); i; i = next_of(s->value, i)) {
		if (i->kind != LEAT_YAML_TEXT || !*i->text)
			return refuse(s, i);
		for (size_t k = 0; k < s->step->edges; k++)
			if (!strcmp(edge[k].name, i->text))
				return leat_yaml_fail(&s->r->file, i, "step '%s' reads '%s' twice", s->step->name,
				                      i->text);
		edge[s->step->edges++] = (struct leat_edge){.name = i->text, .step = SIZE_MAX, .source = SIZE_MAX};
	}
	return LEAT_OK;
}

static enum leat_status
read_globs(const struct setting *s)
{
	const char **glob = leat_text_array(s->r->text, count_of(s->value) + 1, sizeof(*glob));
	size_t n = 0;

	if (!glob)
		return s->r->err->status;
	for (const struct leat_yaml *i = first_of(s->value); i; i = next_of(s->value, i)) {
		if (i->kind != LEAT_YAML_TEXT || !*i->text)
			return refuse(s, i);
		if (*i->text == '/' || *i->text == '~' || !strncmp(i->text, "../", 3) || strstr(i->text, "/../"))
			return leat_yaml_fail(&s->r->file, i,
			                      "code is below the project's folder, and '%s' is not; make it a source",
			                      i->text);
		glob[n++] = i->text;
	}
	s->step->code = glob;
	return LEAT_OK;
}

static enum leat_status
read_texts(const struct setting *s)
{
	enum leat_status status = check_count(s);
	const char **text;
	size_t n = 0;

	if (status != LEAT_OK)
		return status;
	text = leat_text_array(s->r->text, count_of(s->value) + 1, sizeof(*text));
	if (!text)
		return s->r->err->status;
	for (const struct leat_yaml *i = first_of(s->value); i; i = next_of(s->value, i)) {
		if (i->kind != LEAT_YAML_TEXT || !*i->text)
			return refuse(s, i);
		for (size_t k = 0; k < n; k++)
			if (!strcmp(text[k], i->text))
				return leat_yaml_fail(&s->r->file, i, "'%s' is here twice", i->text);
		text[n++] = i->text;
	}
	*(const char *const **)target(s) = text;
	return LEAT_OK;
}

/* ---- checks ---- */

/* The sentence of a failure without the text that is quoted below it. */
static enum leat_status
refuse_check(const struct setting *s, const struct leat_yaml *at, struct leat_err *why)
{
	leat_without_caret(why, LEAT_SPEC);
	return leat_yaml_fail(&s->r->file, at, "%s", why->text);
}

static enum leat_status
add_checks(const struct setting *s, const struct leat_yaml *column, struct leat_checks *checks)
{
	const struct leat_yaml *value = column->value;

	if (value->kind == LEAT_YAML_MAP || leat_yaml_is_empty(value))
		return leat_yaml_fail(&s->r->file, column,
		                      "'%s' needs a check or a list of them, such as [not null, 0..100]", column->text);
	for (const struct leat_yaml *i = first_of(value); i; i = next_of(value, i)) {
		struct leat_err why;

		leat_err_clear(&why);
		if (i->kind != LEAT_YAML_TEXT)
			return leat_yaml_fail(&s->r->file, i, "a check is a text; put quotes around it");
		if (leat_checks_add(checks, column->text, i->text, &why) != LEAT_OK)
			return refuse_check(s, i, &why);
	}
	return LEAT_OK;
}

/* Those of drift, or all others. NULL: there are none. */
static enum leat_status
keep_checks(const struct setting *s, const struct leat_checks *checks, bool drift, const char *const **kept)
{
	const char **line = leat_text_array(s->r->text, checks->count + 1, sizeof(*line));
	size_t n = 0;

	for (size_t i = 0; line && i < checks->count; i++) {
		const char *name = checks->check[i].name;

		if ((checks->check[i].kind == LEAT_CHECK_DRIFT) != drift)
			continue;
		line[n] = leat_text_keep(s->r->text, name, strlen(name));
		if (!line[n++])
			return s->r->err->status;
	}
	*kept = n ? line : NULL;
	return line ? LEAT_OK : s->r->err->status;
}

static enum leat_status
read_checks(const struct setting *s)
{
	struct leat_checks checks;
	enum leat_status status = LEAT_OK;

	leat_checks_init(&checks, s->r->mem);
	for (const struct leat_yaml *k = s->value->first; k && status == LEAT_OK; k = k->next)
		status = add_checks(s, k, &checks);
	if (status == LEAT_OK)
		status = keep_checks(s, &checks, false, target(s));
	if (status == LEAT_OK)
		status = keep_checks(s, &checks, true, &s->step->drift);
	leat_checks_free(&checks);
	return status;
}

static enum leat_status
read_action(const struct setting *s)
{
	struct leat_checks checks;
	struct leat_err why;

	leat_err_clear(&why);
	leat_checks_init(&checks, s->r->mem);
	if (leat_checks_set_action(&checks, s->value->text, &why) != LEAT_OK)
		return refuse_check(s, s->value, &why);
	return read_text(s);
}

/* ---- maps of texts ---- */

static enum leat_status
read_params(const struct setting *s)
{
	struct leat_named *param = leat_text_array(s->r->text, s->value->count, sizeof(*param));
	enum leat_status status = param ? LEAT_OK : s->r->err->status;

	s->step->param = param;
	for (const struct leat_yaml *k = s->value->first; k && status == LEAT_OK; k = k->next) {
		status = leat_name_check(s->r, k, "a parameter");
		if (status != LEAT_OK)
			break;
		if (k->value->kind != LEAT_YAML_TEXT)
			return leat_yaml_fail(&s->r->file, k->value,
			                      "parameter '%s' must be one text; put quotes around it", k->text);
		if (leat_yaml_is_empty(k->value))
			return leat_yaml_fail(&s->r->file, k, "parameter '%s' has no value; write '' for an empty text",
			                      k->text);
		param[s->step->params++] = (struct leat_named){k->text, k->value->text};
	}
	return status;
}

static enum leat_status
read_by(const struct setting *s)
{
	enum leat_status status = check_count(s);

	if (status != LEAT_OK)
		return status;
	s->step->by = leat_text_array(s->r->text, s->value->count, sizeof(*s->step->by));
	if (!s->step->by)
		return s->r->err->status;
	for (const struct leat_yaml *k = s->value->first; k; k = k->next) {
		if (k->value->kind != LEAT_YAML_TEXT || leat_yaml_is_empty(k->value) || !*k->value->text)
			return leat_yaml_fail(&s->r->file, k,
			                      "table '%s' needs one column to be split by, such as '%s: user'", k->text,
			                      k->text);
		s->step->by[s->step->bys++] = (struct leat_named){k->text, k->value->text};
	}
	return LEAT_OK;
}

static enum leat_status
add_env(const struct setting *s, const struct leat_yaml *name, const struct leat_yaml *value)
{
	enum leat_status status = leat_env_name_check(s->r, name);
	bool passed = !value || leat_yaml_is_empty(value);

	if (status != LEAT_OK)
		return status;
	if (value && value->kind != LEAT_YAML_TEXT)
		return leat_yaml_fail(&s->r->file, value, "environment variable '%s' must be one text", name->text);
	for (size_t i = 0; i < s->step->envs; i++)
		if (!strcmp(s->step->env[i].name, name->text))
			return leat_yaml_fail(&s->r->file, name, "'%s' is here twice", name->text);
	s->step->env[s->step->envs++] = (struct leat_named){name->text, passed ? NULL : value->text};
	return LEAT_OK;
}

static enum leat_status
read_env(const struct setting *s)
{
	enum leat_status status = check_count(s);

	if (status != LEAT_OK)
		return status;
	s->step->env = leat_text_array(s->r->text, count_of(s->value), sizeof(*s->step->env));
	if (!s->step->env)
		return s->r->err->status;
	if (s->value->kind == LEAT_YAML_MAP)
		for (const struct leat_yaml *k = s->value->first; k && status == LEAT_OK; k = k->next)
			status = add_env(s, k, k->value);
	else
		for (const struct leat_yaml *i = first_of(s->value); i && status == LEAT_OK; i = next_of(s->value, i))
			status = add_env(s, i, NULL);
	return status;
}

static enum leat_status
read_slices(const struct setting *s)
{
	return leat_slices_read(s->r, s->value, s->step->name, &s->step->slices);
}

static enum leat_status
read_columns(const struct setting *s)
{
	return leat_columns_read(s->r, s->value, s->step);
}

static enum leat_status
read_split(const struct setting *s)
{
	return leat_split_read(s->r, s->value, s->step);
}

static enum leat_status
read_dedupe(const struct setting *s)
{
	return leat_dedupe_read(s->r, s->value, s->step);
}

static enum leat_status
read_take(const struct setting *s)
{
	return leat_take_read(s->r, s->value, s->step);
}

/* ---- by type ---- */

enum { TEXT = 1 << LEAT_YAML_TEXT, LIST = 1 << LEAT_YAML_LIST, MAP = 1 << LEAT_YAML_MAP };

static const struct {
	int kinds; /* of nodes that are accepted */
	enum leat_status (*read)(const struct setting *s);
} types[] = {
	[LEAT_KEY_TEXT] = {TEXT, read_text},
	[LEAT_KEY_SUFFIX] = {TEXT, read_suffix},
	[LEAT_KEY_CHOICE] = {TEXT, read_choice},
	[LEAT_KEY_COUNT] = {TEXT, read_count},
	[LEAT_KEY_SEED] = {TEXT, read_seed},
	[LEAT_KEY_TIME] = {TEXT, read_time},
	[LEAT_KEY_SIZE] = {TEXT, read_size},
	[LEAT_KEY_FLAG] = {TEXT, read_flag},
	[LEAT_KEY_NAMES] = {TEXT | LIST, read_names},
	[LEAT_KEY_SLICES] = {MAP, read_slices},
	[LEAT_KEY_PARAMS] = {MAP, read_params},
	[LEAT_KEY_ENV] = {TEXT | LIST | MAP, read_env},
	[LEAT_KEY_GLOBS] = {TEXT | LIST, read_globs},
	[LEAT_KEY_ACTION] = {TEXT, read_action},
	[LEAT_KEY_CHECKS] = {MAP, read_checks},
	[LEAT_KEY_TEXTS] = {TEXT | LIST, read_texts},
	[LEAT_KEY_CHAINS] = {MAP, read_columns},
	[LEAT_KEY_SPLIT] = {MAP, read_split},
	[LEAT_KEY_BY] = {MAP, read_by},
	[LEAT_KEY_DEDUPE] = {MAP, read_dedupe},
	[LEAT_KEY_TAKE] = {MAP, read_take},
};

enum leat_status
leat_value_read(struct leat_reading *r, const struct leat_key *key, const struct leat_yaml *value,
                struct leat_step *step)
{
	struct setting s = {r, key, value, step};

	if (leat_yaml_is_empty(value))
		return leat_yaml_fail(&r->file, value, "'%s' of step '%s' has no value; remove it, or write one",
		                      key->name, step->name);
	if (!(types[key->type].kinds & 1 << value->kind))
		return refuse(&s, value);
	return types[key->type].read(&s);
}
