/* project_source.c - a source that is a map: its files, and how they are loaded
 *
 * With columns, it becomes a step with its name and the kind `load` (kind_load.c), sliced by file. */
#include <stdio.h>
#include <string.h>

#include "step/kind.h"
#include "step/project_read.h"
#include "table/load.h"

enum { MAX_OPTIONS = 1 << 20 };

struct reading {
	struct leat_reading *r;
	const struct leat_yaml *name;
	const struct leat_yaml *files, *columns; /* NULL: not given */
	const char *path;                        /* of `files` */
	const struct leat_yaml *other;           /* a key that only loading needs */
	struct leat_str options;                 /* of `leat load` */
};

extern const struct leat_step_kind leat_step_kind_load;

static void
add_option(struct leat_str *out, const char *option, const char *text)
{
	leat_str_addf(out, "%s--%s=", out->len ? " " : "", option);
	leat_str_add_word(out, text);
}

/* An error that a function of the room table found, told with the place in leat.yaml. */
static enum leat_status
fail_at(const struct reading *s, const struct leat_yaml *at, const struct leat_err *why)
{
	if (why->status == LEAT_NOMEM)
		return leat_fail_as(s->r->err, why);
	return leat_yaml_fail(&s->r->file, at, "source '%s': %s", s->name->text, why->text);
}

static enum leat_status
refuse(const struct reading *s, const struct leat_yaml *key, const struct leat_yaml *at)
{
	const struct leat_key *known = leat_key_find(leat_source_keys, key->text);
	struct leat_str values;
	enum leat_status status;

	leat_str_init(&values, s->r->mem, 200);
	leat_key_values(known, &values);
	status = leat_yaml_fail(&s->r->file, at, "'%s' of source '%s' must be %s", key->text, s->name->text,
	                        leat_str_text(&values));
	leat_str_free(&values);
	return status;
}

/* ---- keys ---- */

static enum leat_status
read_columns(struct reading *s, const struct leat_yaml *key)
{
	struct leat_declared_columns columns = {.mem = s->r->mem};
	enum leat_status status = LEAT_OK;
	struct leat_str text;

	if (key->value->kind != LEAT_YAML_MAP || !key->value->count)
		return refuse(s, key, key->value->kind == LEAT_YAML_MAP ? key : key->value);
	leat_str_init(&text, s->r->mem, MAX_OPTIONS);
	for (const struct leat_yaml *c = key->value->first; c && status == LEAT_OK; c = c->next) {
		struct leat_err why;

		leat_err_clear(&why);
		if (c->value->kind != LEAT_YAML_TEXT || !*c->value->text)
			status = leat_yaml_fail(&s->r->file, c, "column '%s' has no type, such as int64 or text",
			                        c->text);
		else if (leat_declared_add(&columns, c->text, c->value->text, &why) != LEAT_OK)
			status = fail_at(s, c->value, &why);
	}
	leat_declared_print(&columns, &text);
	if (status == LEAT_OK && text.failed)
		status = leat_fail_mem(s->r->err, s->r->mem, MAX_OPTIONS, "the columns of a source");
	if (status == LEAT_OK)
		add_option(&s->options, "columns", leat_str_text(&text));
	leat_str_free(&text);
	leat_declared_free(&columns);
	s->columns = key;
	return status;
}

static enum leat_status
read_rejects(struct reading *s, const struct leat_yaml *key)
{
	struct leat_reject_limit limit;
	struct leat_err why;

	leat_err_clear(&why);
	if (key->value->kind != LEAT_YAML_TEXT)
		return refuse(s, key, key->value);
	if (leat_reject_limit_read(&limit, key->value->text, &why) != LEAT_OK)
		return fail_at(s, key->value, &why);
	add_option(&s->options, "rejects", key->value->text);
	return LEAT_OK;
}

static enum leat_status
read_delimiter(struct reading *s, const struct leat_yaml *key)
{
	struct leat_err why;
	char delimiter;

	leat_err_clear(&why);
	if (key->value->kind != LEAT_YAML_TEXT)
		return refuse(s, key, key->value);
	if (leat_delimiter_read(key->value->text, &delimiter, &why) != LEAT_OK)
		return fail_at(s, key->value, &why);
	add_option(&s->options, "delimiter", key->value->text);
	return LEAT_OK;
}

static enum leat_status
read_header(struct reading *s, const struct leat_yaml *key)
{
	bool no = key->value->kind == LEAT_YAML_TEXT && !strcmp(key->value->text, "false");

	if (!no && (key->value->kind != LEAT_YAML_TEXT || strcmp(key->value->text, "true") != 0))
		return refuse(s, key, key->value);
	if (no)
		leat_str_addf(&s->options, "%s--no-header", s->options.len ? " " : "");
	return LEAT_OK;
}

static enum leat_status
read_null(struct reading *s, const struct leat_yaml *key)
{
	bool list = key->value->kind == LEAT_YAML_LIST;

	if (key->value->kind == LEAT_YAML_MAP)
		return refuse(s, key, key->value);
	for (const struct leat_yaml *t = list ? key->value->first : key->value; t; t = list ? t->next : NULL) {
		if (t->kind != LEAT_YAML_TEXT || !*t->text)
			return refuse(s, key, t);
		add_option(&s->options, "null", t->text);
	}
	return LEAT_OK;
}

static enum leat_status
read_files(struct reading *s, const struct leat_yaml *key)
{
	s->files = key->value;
	return leat_pattern_check(s->r, s->name, key->value, &s->path);
}

static enum leat_status
unknown(struct reading *s, const struct leat_yaml *key)
{
	const char *known[16];
	char owner[128];
	size_t n = 0;

	if (leat_yaml_is_empty(key->value)) /* {subject} without quotes */
		return leat_yaml_fail(&s->r->file, s->name->value,
		                      "source '%s' must be a path or pattern; put quotes around {...}", s->name->text);
	for (; leat_source_keys[n].name && n < 16; n++)
		known[n] = leat_source_keys[n].name;
	snprintf(owner, sizeof(owner), "source '%s'", s->name->text);
	return leat_unknown_key(s->r, key, owner, known, n);
}

static enum leat_status
read_key(struct reading *s, const struct leat_yaml *key)
{
	static const struct {
		const char *name;
		enum leat_status (*read)(struct reading *s, const struct leat_yaml *key);
	} keys[] = {{"files", read_files},         {"columns", read_columns}, {"rejects", read_rejects},
	            {"delimiter", read_delimiter}, {"header", read_header},   {"null", read_null}};

	for (size_t i = 0; i < sizeof(keys) / sizeof(*keys); i++) {
		if (strcmp(keys[i].name, key->text) != 0)
			continue;
		if (leat_yaml_is_empty(key->value))
			return leat_yaml_fail(&s->r->file, key, "'%s' of source '%s' has no value", key->text,
			                      s->name->text);
		s->other = i > 1 ? key : s->other;
		return keys[i].read(s, key);
	}
	return unknown(s, key);
}

/* ---- the step ---- */

/* {subject} has no meaning here: there is an action for each file. */
static enum leat_status
check_pattern(const struct reading *s)
{
	for (const char *open = strchr(s->files->text, '{'); open; open = strchr(open + 1, '{')) {
		size_t len = strcspn(open, "}");

		if (!memchr(open, ',', len))
			return leat_yaml_fail(
				&s->r->file, s->files,
				"source '%s' has columns, so each of its files is loaded; write * instead of "
				"%.*s}",
				s->name->text, (int)(len > 60 ? 60 : len), open);
	}
	return LEAT_OK;
}

static enum leat_status
make_step(struct reading *s, struct leat_step *step, struct leat_step_nodes *at)
{
	static const char *const no_code[] = {NULL};
	struct leat_yaml pattern = *s->files;
	enum leat_status status = check_pattern(s);

	pattern.text = s->path;
	*step = (struct leat_step){.name = s->name->text,
	                           .kind = &leat_step_kind_load,
	                           .text = leat_text_keep(s->r->text, leat_str_text(&s->options), s->options.len),
	                           .loads = pattern.text,
	                           .line = s->name->line,
	                           .slices = {.count = 1},
	                           .code = no_code,
	                           .suffix = "",
	                           .feed = "",
	                           .format = "",
	                           .cpus = 1};
	*at = (struct leat_step_nodes){.name = s->name, .text = s->files};
	if (status == LEAT_OK && !step->text)
		return s->r->err->status;
	return status == LEAT_OK ? leat_slices_of_files(s->r, &pattern, s->name->text, &step->slices) : status;
}

enum leat_status
leat_source_read(struct leat_reading *r, const struct leat_yaml *name, struct leat_raw_source *source,
                 struct leat_step *step, struct leat_step_nodes *at, bool *loads)
{
	struct reading s = {.r = r, .name = name};
	enum leat_status status = LEAT_OK;

	leat_str_init(&s.options, r->mem, MAX_OPTIONS);
	for (const struct leat_yaml *k = name->value->first; k && status == LEAT_OK; k = k->next)
		status = read_key(&s, k);
	if (status == LEAT_OK && !s.files)
		status = leat_yaml_fail(&r->file, name, "source '%s' has no 'files', such as 'files: raw/*.csv'",
		                        name->text);
	if (status == LEAT_OK && s.other && !s.columns)
		status = leat_yaml_fail(&r->file, s.other, "'%s' of source '%s' needs 'columns'", s.other->text,
		                        name->text);
	if (status == LEAT_OK && s.options.failed)
		status = leat_fail_mem(r->err, r->mem, MAX_OPTIONS, "the options of a source");
	*loads = s.columns != NULL;
	if (status == LEAT_OK && *loads)
		status = make_step(&s, step, at);
	else if (status == LEAT_OK)
		source->pattern = s.path;
	leat_str_free(&s.options);
	return status;
}
