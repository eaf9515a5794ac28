/* project_features.c - the keys `columns`, `split` and `dedupe` of a features step, as the texts that table/features.h
 * reads */
#include <string.h>

#include "base/str.h"
#include "step/project_read.h"
#include "table/features.h"

/* Keeps the normal form of what was read, or fails at `at`. */
static enum leat_status
keep_normal(struct leat_reading *r, const struct leat_yaml *at, const struct leat_features_text *given,
            const char **out)
{
	struct leat_features *features = NULL;
	struct leat_err why;
	struct leat_str text;
	enum leat_status status;

	leat_err_clear(&why);
	status = leat_features_parse(&features, r->mem, given, &why);
	if (status == LEAT_SPEC || status == LEAT_LIMIT) {
		leat_without_caret(&why, status);
		return leat_yaml_fail(&r->file, at, "%s", why.text);
	}
	if (status != LEAT_OK)
		return leat_fail_as(r->err, &why);
	leat_str_init(&text, r->mem, LEAT_YAML_BYTES);
	if (given->split)
		leat_split_print(&features->split, &text);
	else if (given->dedupe)
		leat_dedupe_print(features, &text);
	else
		leat_features_print(features, &text);
	leat_features_close(features);
	if (text.failed)
		status = leat_fail_mem(r->err, r->mem, text.len, "features");
	else if (!(*out = leat_text_keep(r->text, leat_str_text(&text), text.len)))
		status = r->err->status;
	leat_str_free(&text);
	return status;
}

/* "'amount': clip(p01, p99) | log1p" */
static void
add_feature(struct leat_str *text, const struct leat_yaml *name)
{
	leat_str_add_quoted(text, name->text);
	leat_str_addf(text, ": %s", name->value->text);
}

/* Each feature alone, so that an error is where its text is. */
static enum leat_status
check_feature(struct leat_reading *r, const struct leat_yaml *name, const char *step)
{
	const char *unused;
	struct leat_str text;
	enum leat_status status;

	if (name->value->kind != LEAT_YAML_TEXT || leat_yaml_is_empty(name->value))
		return leat_yaml_fail(&r->file, name->value->kind == LEAT_YAML_TEXT ? name : name->value,
		                      "feature '%s' of step '%s' must be a text, such as 'log1p | standardize'",
		                      name->text, step);
	leat_str_init(&text, r->mem, LEAT_YAML_BYTES);
	add_feature(&text, name);
	status = text.failed ? leat_fail_mem(r->err, r->mem, text.len, "features")
	                     : keep_normal(r, name->value,
	                                   &(struct leat_features_text){leat_str_text(&text), NULL, NULL}, &unused);
	leat_str_free(&text);
	return status;
}

enum leat_status
leat_columns_read(struct leat_reading *r, const struct leat_yaml *map, struct leat_step *step)
{
	enum leat_status status = LEAT_OK;
	struct leat_str text;

	leat_str_init(&text, r->mem, LEAT_YAML_BYTES);
	for (const struct leat_yaml *k = map->first; k && status == LEAT_OK; k = k->next) {
		status = check_feature(r, k, step->name);
		if (status != LEAT_OK)
			break;
		leat_str_add(&text, text.len ? "\n; " : ""); /* a comment ends with its line */
		add_feature(&text, k);
	}
	if (status == LEAT_OK && text.failed)
		status = leat_fail_mem(r->err, r->mem, text.len, "features");
	if (status == LEAT_OK)
		status = keep_normal(r, map, &(struct leat_features_text){leat_str_text(&text), NULL, NULL},
		                     &step->columns);
	leat_str_free(&text);
	return status;
}

/* ---- split ---- */

static enum leat_status
add_keys(struct leat_reading *r, const struct leat_yaml *by, struct leat_str *text)
{
	const struct leat_yaml *first = by->kind == LEAT_YAML_LIST ? by->first : by;

	if (!first)
		return leat_yaml_fail(&r->file, by, "'by' must be the name of a column, or a list of names");
	for (const struct leat_yaml *i = first; i; i = by->kind == LEAT_YAML_LIST ? i->next : NULL) {
		if (i->kind != LEAT_YAML_TEXT || !*i->text)
			return leat_yaml_fail(&r->file, by, "'by' must be the name of a column, or a list of names");
		leat_str_add(text, i == first ? "" : ", ");
		leat_str_add_quoted(text, i->text);
	}
	return LEAT_OK;
}

/* "80%", "rest" or "before 2024-05-01" */
static enum leat_status
add_part(struct leat_reading *r, const struct leat_yaml *name, struct leat_str *text)
{
	static const char before[] = "before ";
	const struct leat_yaml *value = name->value;
	const char *rule = value->kind == LEAT_YAML_TEXT ? value->text : "";

	leat_str_add_quoted(text, name->text);
	if (!strncmp(rule, before, strlen(before))) {
		leat_str_addf(text, " %s", before);
		leat_str_add_quoted(text, rule + strlen(before));
		return LEAT_OK;
	}
	if (strcmp(rule, "rest") != 0 && (!*rule || rule[strspn(rule, "0123456789.%")]))
		return leat_yaml_fail(&r->file, value->kind == LEAT_YAML_TEXT ? name : value,
		                      "part '%s' must be a percentage such as 80%%, 'before' and a time, or 'rest'",
		                      name->text);
	leat_str_addf(text, " %s", rule);
	return LEAT_OK;
}

static enum leat_status
write_split(struct leat_reading *r, const struct leat_yaml *map, struct leat_str *text)
{
	enum leat_status status = LEAT_OK;
	bool first = true;

	for (const struct leat_yaml *k = map->first; k && status == LEAT_OK; k = k->next)
		if (!strcmp(k->text, "by"))
			status = add_keys(r, k->value, text);
	if (status == LEAT_OK && !text->len)
		return leat_yaml_fail(&r->file, map, "a split needs 'by', the name of a column");
	for (const struct leat_yaml *k = map->first; k && status == LEAT_OK; k = k->next) {
		if (!strcmp(k->text, "by"))
			continue;
		leat_str_add(text, first ? ": " : ", ");
		first = false;
		status = add_part(r, k, text);
	}
	if (status == LEAT_OK && first)
		status = leat_yaml_fail(&r->file, map, "a split needs parts, such as 'train: 80%%'");
	return status;
}

enum leat_status
leat_split_read(struct leat_reading *r, const struct leat_yaml *map, struct leat_step *step)
{
	enum leat_status status;
	struct leat_str text;

	leat_str_init(&text, r->mem, LEAT_YAML_BYTES);
	status = write_split(r, map, &text);
	if (status == LEAT_OK && text.failed)
		status = leat_fail_mem(r->err, r->mem, text.len, "a split");
	if (status == LEAT_OK)
		status = keep_normal(r, map, &(struct leat_features_text){"x: keep", leat_str_text(&text), NULL},
		                     &step->split);
	leat_str_free(&text);
	return status;
}

/* ---- dedupe ---- */

static enum leat_status
add_rule(struct leat_reading *r, const struct leat_yaml *key, struct leat_str *text)
{
	enum leat_status status = LEAT_OK;

	leat_str_addf(text, "%s%s=", text->len ? ", " : "", key->text);
	if (!strcmp(key->text, "by") || !strcmp(key->text, "order")) {
		leat_str_add(text, "[");
		status = add_keys(r, key->value, text);
		leat_str_add(text, "]");
		return status;
	}
	if (strcmp(key->text, "keep") != 0)
		return leat_yaml_fail(&r->file, key, "dedupe has no key '%s'; it has by, order and keep", key->text);
	if (key->value->kind != LEAT_YAML_TEXT ||
	    (strcmp(key->value->text, "first") != 0 && strcmp(key->value->text, "last") != 0))
		return leat_yaml_fail(&r->file, key->value->kind == LEAT_YAML_TEXT ? key : key->value,
		                      "'keep' must be first or last");
	leat_str_add(text, key->value->text);
	return LEAT_OK;
}

enum leat_status
leat_dedupe_read(struct leat_reading *r, const struct leat_yaml *map, struct leat_step *step)
{
	enum leat_status status = LEAT_OK;
	bool has_key = false;
	struct leat_str text;

	leat_str_init(&text, r->mem, LEAT_YAML_BYTES);
	for (const struct leat_yaml *k = map->first; k && status == LEAT_OK; k = k->next) {
		has_key |= !strcmp(k->text, "by");
		status = add_rule(r, k, &text);
	}
	if (status == LEAT_OK && !has_key)
		status = leat_yaml_fail(&r->file, map, "dedupe needs 'by', the columns that are equal in duplicates");
	if (status == LEAT_OK && text.failed)
		status = leat_fail_mem(r->err, r->mem, text.len, "dedupe");
	if (status == LEAT_OK)
		status = keep_normal(r, map, &(struct leat_features_text){"x: keep", NULL, leat_str_text(&text)},
		                     &step->dedupe);
	leat_str_free(&text);
	return status;
}
