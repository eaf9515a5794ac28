/* features_parse.c - read the text of features, and write it in a normal form */
#include <string.h>
#include <strings.h>

#include "base/array.h"
#include "base/names.h"
#include "table/features.h"

enum { MAX_KNOWN = 256 };

/* ---- calls ---- */

static enum leat_status
find_transform(const char *text, const struct leat_call *call, const struct leat_transform **found,
               struct leat_err *err)
{
	const char *known[MAX_KNOWN];
	char sentence[LEAT_UNKNOWN_TEXT];
	size_t n = 0;

	for (; leat_transforms[n] && n < MAX_KNOWN; n++) {
		*found = leat_transforms[n];
		if (!strcmp((*found)->name, call->name))
			return LEAT_OK;
		known[n] = (*found)->name;
	}
	return leat_fail_at(err, text, call->at, call->len, "%s",
	                    leat_unknown_text(&(struct leat_unknown){.what = "transform",
	                                                             .name = call->name,
	                                                             .known = known,
	                                                             .count = n,
	                                                             .hint = "'leat features --list' lists all"},
	                                      sentence));
}

static enum leat_status
check_place(const char *text, const struct leat_call *call, const struct leat_feature *feature,
            const struct leat_transform *transform, struct leat_err *err)
{
	size_t n = feature->calls;

	if (n == LEAT_MAX_CHAIN)
		return leat_fail_at(err, text, call->at, call->len, "a feature has at most %d transforms",
		                    LEAT_MAX_CHAIN);
	if (transform->first && n)
		return leat_fail_at(err, text, call->at, call->len, "'%s' can only be the first transform of a feature",
		                    transform->name);
	if (n && feature->call[n - 1].transform->last)
		return leat_fail_at(err, text, call->at, call->len, "nothing can follow '%s'",
		                    feature->call[n - 1].transform->name);
	return LEAT_OK;
}

static enum leat_status
add_call(struct leat_features *f, struct leat_feature *feature, const struct leat_call *call, struct leat_err *err)
{
	const struct leat_transform *transform;
	struct leat_feature_call *added;
	struct leat_err why;
	enum leat_status status = find_transform(f->text, call, &transform, err);

	if (status == LEAT_OK)
		status = check_place(f->text, call, feature, transform, err);
	if (status != LEAT_OK)
		return status;
	added = &feature->call[feature->calls];
	added->params = leat_alloc(f->mem, transform->params_size);
	if (!added->params)
		return leat_fail_mem(err, f->mem, transform->params_size, "options");
	added->transform = transform;
	added->fitted.entries = -1;
	feature->calls++;
	status = leat_opts_set(transform->opts, added->params, call, f->text, f->mem, err);
	leat_err_clear(&why);
	if (status == LEAT_OK && transform->check && transform->check(added->params, &why) != LEAT_OK)
		status = leat_fail_at(err, f->text, call->at, call->end - call->at, "%s", why.text);
	return status;
}

/* ---- features ---- */

static bool
is_plain(const struct leat_arg *name)
{
	return (name->type == LEAT_ARG_STRING && *name->text) ||
	       (name->type == LEAT_ARG_WORD && !name->has_dims && !name->items);
}

static enum leat_status
parse_name(struct leat_parse *p, const char *what, const char **name)
{
	struct leat_arg value = {0};
	enum leat_status status = leat_parse_value(p, &value);

	if (status == LEAT_OK && !is_plain(&value))
		status = leat_fail_at(p->err, p->text, value.at, value.len, "expected %s: a word or a text in quotes",
		                      what);
	*name = value.text;
	return status;
}

/* SQL does not tell names apart by case. */
static enum leat_status
check_name(const struct leat_features *f, const char *name, size_t at, size_t len, struct leat_err *err)
{
	if (!strcasecmp(name, "split"))
		return leat_fail_at(err, f->text, at, len,
		                    "a feature cannot be called 'split': that column says which part "
		                    "a row belongs to");
	for (size_t i = 0; i < f->features; i++)
		if (!strcasecmp(f->feature[i].name, name))
			return leat_fail_at(err, f->text, at, len, "there are two features called '%s'", name);
	return LEAT_OK;
}

static enum leat_status
parse_feature(struct leat_features *f, struct leat_parse *p)
{
	struct leat_feature *feature;
	struct leat_call call;
	size_t at = p->pos;
	const char *name;
	enum leat_status status = parse_name(p, "the name of a feature", &name);

	if (status == LEAT_OK)
		status = check_name(f, name, at, p->end - at, p->err);
	if (status == LEAT_OK && !leat_parse_accept(p, ':'))
		status = leat_parse_expected(p, "':'");
	if (status == LEAT_OK)
		status = LEAT_GROW(f->mem, f->feature, f->cap, f->features + 1, LEAT_MAX_FEATURES, "features", p->err);
	if (status != LEAT_OK)
		return status;
	feature = &f->feature[f->features++];
	feature->name = name;
	do {
		status = leat_parse_call(p, &call);
		if (status == LEAT_OK)
			status = add_call(f, feature, &call, p->err);
	} while (status == LEAT_OK && leat_parse_accept(p, '|'));
	return status;
}

/* ---- inputs ---- */

static enum leat_status
find_input(struct leat_features *f, const char *name, size_t *index, struct leat_err *err)
{
	size_t i = 0;
	enum leat_status status;

	while (i < f->inputs && strcmp(f->input[i].name, name) != 0)
		i++;
	if (i == f->inputs) {
		status = LEAT_GROW(f->mem, f->input, f->inputs_cap, i + 1, UINT32_MAX, "columns", err);
		if (status != LEAT_OK)
			return status;
		f->input[f->inputs++].name = name;
	}
	*index = i;
	return LEAT_OK;
}

static enum leat_status
add_input(struct leat_features *f, struct leat_feature *feature, const char *name, struct leat_err *err)
{
	size_t i = 0;
	enum leat_status status = find_input(f, name, &i, err);

	if (status != LEAT_OK)
		return status;
	f->input[i].is_needed |= !feature->is_kept;
	feature->input[feature->inputs++] = i;
	return LEAT_OK;
}

static bool
keeps(const struct leat_feature *feature)
{
	for (size_t i = 0; i < feature->calls; i++)
		if (strcmp(feature->call[i].transform->name, "keep") &&
		    strcmp(feature->call[i].transform->name, "column"))
			return false;
	return true;
}

static enum leat_status
add_inputs(struct leat_features *f, struct leat_feature *feature, struct leat_err *err)
{
	const struct leat_feature_call *first = &feature->call[0];
	const char *const *names = &feature->name;
	size_t count = 1;
	enum leat_status status = LEAT_OK;

	feature->is_kept = keeps(feature);
	if (first->transform->inputs)
		first->transform->inputs(first->params, &names, &count);
	for (size_t i = 0; i < count && status == LEAT_OK; i++)
		status = add_input(f, feature, names[i], err);
	return status;
}

/* Rows that are split by hash are dealt to folds by the same columns, unless a transform names others. */
static void
find_names(const struct leat_features *f, const struct leat_feature_call *call, enum leat_role role,
           const char *const **names, size_t *count)
{
	*count = 0;
	if (!call->transform->reads)
		return;
	call->transform->reads(call->params, role, names, count);
	if (role == LEAT_ROLE_KEY && call->columns[LEAT_ROLE_LABEL] && !*count && f->split.columns &&
	    f->split.part[0].millionths) {
		*names = f->split.column;
		*count = f->split.columns;
	}
}

static enum leat_status
add_named(struct leat_features *f, struct leat_feature *feature, struct leat_feature_call *call, enum leat_role role,
          struct leat_err *err)
{
	bool is_group = role == LEAT_ROLE_BY || role == LEAT_ROLE_ORDER;
	const char *const *names = NULL;
	enum leat_status status = LEAT_OK;
	size_t count, input = 0;

	find_names(f, call, role, &names, &count);
	if (count > LEAT_MAX_CROSSED)
		return leat_fail(err, LEAT_SPEC, "feature '%s': '%s' takes at most %d columns, not %zu", feature->name,
		                 call->transform->name, LEAT_MAX_CROSSED, count);
	for (size_t i = 0; i < count && status == LEAT_OK; i++) {
		status = find_input(f, names[i], &input, err);
		if (status != LEAT_OK)
			break;
		f->input[input].is_needed |= is_group;
		f->input[input].in_group |= is_group;
		f->input[input].in_fold |= !is_group;
		call->column[role][call->columns[role]++] = (uint32_t)input;
	}
	f->is_ordered |= call->columns[LEAT_ROLE_ORDER] > 0;
	return status;
}

/* Columns that options name, after those of all chains. */
static enum leat_status
add_all_named(struct leat_features *f, struct leat_err *err)
{
	enum leat_status status = LEAT_OK;
	size_t input;

	for (size_t i = 0; i < f->features; i++)
		for (size_t k = 0; k < f->feature[i].calls; k++)
			for (enum leat_role role = 0; role < LEAT_ROLES && status == LEAT_OK; role++)
				status = add_named(f, &f->feature[i], &f->feature[i].call[k], role, err);
	for (size_t i = 0; i < f->dedupe.by.count + f->dedupe.order.count && status == LEAT_OK; i++) {
		bool is_key = i < f->dedupe.by.count;

		status = find_input(f, is_key ? f->dedupe.by.value[i] : f->dedupe.order.value[i - f->dedupe.by.count],
		                    &input, err);
		if (status == LEAT_OK)
			f->input[input].is_needed = true;
	}
	f->is_ordered |= f->dedupe.by.count > 0;
	return status;
}

static enum leat_status
parse_features(struct leat_features *f, struct leat_err *err)
{
	struct leat_parse p;
	enum leat_status status = leat_parse_begin(&p, f->text, f->mem, err);

	p.calls = "a transform";
	if (status == LEAT_OK && leat_parse_at_end(&p))
		status = leat_fail(err, LEAT_SPEC, "there are no features; name at least one, such as 'amount: log1p'");
	while (status == LEAT_OK && !leat_parse_at_end(&p)) {
		status = parse_feature(f, &p);
		if (status == LEAT_OK && !leat_parse_accept(&p, ';') && !leat_parse_at_end(&p))
			status = leat_parse_expected(&p, "'|' or ';'");
	}
	f->blocks = p.blocks;
	for (size_t i = 0; i < f->features && status == LEAT_OK; i++)
		status = add_inputs(f, &f->feature[i], err);
	return status;
}

enum leat_status
leat_features_parse(struct leat_features **out, struct leat_mem *mem, const struct leat_features_text *text,
                    struct leat_err *err)
{
	const char *split = text->split ? text->split : "", *dedupe = text->dedupe ? text->dedupe : "";
	struct leat_features *f = leat_alloc(mem, sizeof(*f));
	enum leat_status status = LEAT_OK;

	*out = NULL;
	if (!f)
		return leat_fail_mem(err, mem, sizeof(*f), "features");
	f->mem = mem;
	leat_str_init(&f->qualify, mem, LEAT_MAX_STATE);
	f->text = leat_strdup(mem, text->columns);
	f->split_text = leat_strdup(mem, split);
	f->dedupe_text = *dedupe ? leat_asprintf(mem, "dedupe(%s)", dedupe) : leat_strdup(mem, "");
	if (!f->text || !f->split_text || !f->dedupe_text)
		status = leat_fail_mem(err, mem, strlen(text->columns) + strlen(split), "the text of features");
	if (status == LEAT_OK)
		status = parse_features(f, err);
	if (status == LEAT_OK)
		status = leat_split_parse(f, err);
	if (status == LEAT_OK)
		status = leat_dedupe_parse(f, err);
	if (status == LEAT_OK)
		status = add_all_named(f, err);
	if (status != LEAT_OK) {
		leat_features_close(f);
		return status;
	}
	*out = f;
	return LEAT_OK;
}

void
leat_features_close(struct leat_features *f)
{
	if (!f)
		return;
	for (size_t i = 0; i < f->features; i++)
		for (size_t k = 0; k < f->feature[i].calls; k++) {
			struct leat_feature_call *call = &f->feature[i].call[k];

			leat_opts_free(call->transform->opts, call->params, f->mem);
			leat_free(f->mem, call->params);
			leat_free(f->mem, call->fitted.number);
			leat_free(f->mem, call->fitted.text);
		}
	for (size_t i = 0; i < f->layers; i++)
		leat_str_free(&f->layer[i]);
	leat_parse_free(f->mem, f->blocks);
	leat_parse_free(f->mem, f->split_blocks);
	leat_dedupe_free(f);
	leat_str_free(&f->qualify);
	leat_free(f->mem, f->layer);
	leat_free(f->mem, f->feature);
	leat_free(f->mem, f->input);
	leat_free(f->mem, f->text);
	leat_free(f->mem, f->split_text);
	leat_free(f->mem, f->dedupe_text);
	leat_free(f->mem, f);
}

/* ---- a normal form ---- */

void
leat_features_print(const struct leat_features *f, struct leat_str *columns)
{
	for (size_t i = 0; i < f->features; i++) {
		const struct leat_feature *feature = &f->feature[i];

		leat_str_add(columns, i ? "; " : "");
		leat_str_add_quoted(columns, feature->name);
		for (size_t k = 0; k < feature->calls; k++) {
			const struct leat_feature_call *call = &feature->call[k];

			leat_str_addf(columns, "%s%s", k ? " | " : ": ", call->transform->name);
			if (!call->transform->opts)
				continue;
			leat_str_add(columns, "(");
			leat_opts_print(call->transform->opts, call->params, true, columns);
			leat_str_add(columns, ")");
		}
	}
}
