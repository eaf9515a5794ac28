/* project_read.c - sources and steps, from the tree of the file */
#include "step/project_read.h"

#include <stdio.h>
#include <string.h>

#include "base/names.h"
#include "step/kind.h"

enum { MAX_NAMES = 64 };

enum leat_status
leat_unknown_key(struct leat_reading *r, const struct leat_yaml *key, const char *owner, const char *const *known,
                 size_t n)
{
	char text[LEAT_UNKNOWN_TEXT];

	if (!strcmp(key->text, "<<"))
		return leat_yaml_fail(&r->file, key, "merging maps (<<) is not supported; write the keys again");
	if (strchr(key->text, ':'))
		return leat_yaml_fail(&r->file, key, "there is no key '%s'; is a space missing after ':'?", key->text);
	return leat_yaml_fail(
		&r->file, key, "%s",
		leat_unknown_text(
			&(struct leat_unknown){
				.what = "key", .name = key->text, .owner = owner, .known = known, .count = n},
			text));
}

/* ---- sources ---- */

/* What a source's pattern must not be. NULL: nothing is wrong. */
static const char *
fault_of_pattern(const char *pattern)
{
	while (!strncmp(pattern, "./", 2))
		pattern += 2;
	if (!*pattern)
		return "has no path";
	if (!strncmp(pattern, "out/", 4) || !strcmp(pattern, "out"))
		return "is below out/, where results appear; name the step under 'in' instead";
	if (!strncmp(pattern, ".leat/", 6) || !strcmp(pattern, ".leat"))
		return "is below .leat/, which belongs to Leat";
	return NULL;
}

/* {subject}: names in braces, or alternatives {a,b}; nothing else. */
static enum leat_status
check_braces(struct leat_reading *r, const struct leat_yaml *node)
{
	for (const char *open = strpbrk(node->text, "{}"); open;) {
		const char *close = *open == '{' ? strchr(open, '}') : NULL;
		size_t len = close ? (size_t)(close - open - 1) : 0, n = 0;

		if (!close)
			return leat_yaml_fail(&r->file, node, "'%s' has a brace without its pair", node->text);
		while (n < len && leat_is_name_character(open[1 + n]))
			n++;
		if (!len || memchr(open + 1, '{', len) || (n < len && !memchr(open + 1, ',', len)))
			return leat_yaml_fail(
				&r->file, node,
				"'%.*s' is neither a slice variable, such as {subject}, nor alternatives, "
				"such as {a,b}",
				(int)(len > 60 ? 60 : len + 2), open);
		open = strpbrk(close + 1, "{}");
	}
	return LEAT_OK;
}

enum leat_status
leat_pattern_check(struct leat_reading *r, const struct leat_yaml *name, const struct leat_yaml *value,
                   const char **path)
{
	const char *fault;
	char text[200];

	if (value->kind != LEAT_YAML_TEXT || !*value->text)
		return leat_yaml_fail(&r->file, value->kind == LEAT_YAML_TEXT ? name : value,
		                      "source '%s' must be a path or pattern", name->text);
	if (leat_local_path(r, value, path) != LEAT_OK)
		return r->err->status;
	fault = leat_is_remote(*path) ? leat_remote_fault(*path, text) : fault_of_pattern(*path);
	if (fault)
		return leat_yaml_fail(&r->file, value, "source '%s' %s", name->text, fault);
	while (!strncmp(*path, "./", 2))
		*path += 2;
	if (leat_is_remote(*path) && leat_remote_need(r) != LEAT_OK)
		return r->err->status;
	return check_braces(r, value);
}

static enum leat_status
read_source(struct leat_reading *r, const struct leat_yaml *name)
{
	struct leat_project *project = r->project;
	struct leat_raw_source *source = &project->source[project->sources];
	enum leat_status status = leat_name_check(r, name, "a source");
	bool loads = false;

	*source = (struct leat_raw_source){.name = name->text, .line = name->line};
	if (status == LEAT_OK && name->value->kind == LEAT_YAML_MAP)
		status = leat_source_read(r, name, source, &project->step[project->steps], &r->at[project->steps],
		                          &loads);
	else if (status == LEAT_OK)
		status = leat_pattern_check(r, name, name->value, &source->pattern);
	if (status != LEAT_OK)
		return status;
	if (loads) {
		project->steps++;
		return LEAT_OK;
	}
	r->source_at[project->sources++] = name;
	return LEAT_OK;
}

static enum leat_status
read_sources(struct leat_reading *r, const struct leat_yaml *map)
{
	enum leat_status status = LEAT_OK;

	r->project->source = leat_text_array(r->text, map->count, sizeof(*r->project->source));
	r->source_at = leat_text_array(r->file.nodes, map->count, sizeof(const struct leat_yaml *));
	if (!r->project->source || !r->source_at)
		return r->err->status;
	for (const struct leat_yaml *k = map->first; k && status == LEAT_OK; k = k->next)
		status = read_source(r, k);
	return status;
}

/* ---- steps ---- */

static const struct leat_step_kind *
find_kind(const char *name)
{
	for (size_t i = 0; leat_step_kinds[i]; i++)
		if (!strcmp(leat_step_kinds[i]->name, name) && !leat_step_kinds[i]->source)
			return leat_step_kinds[i];
	return NULL;
}

static enum leat_status
unknown_step_key(struct leat_reading *r, const struct leat_yaml *key, const char *step)
{
	const char *known[MAX_NAMES];
	char owner[128];
	size_t n = 0;

	for (size_t i = 0; leat_step_kinds[i] && n < MAX_NAMES; i++)
		if (!leat_step_kinds[i]->source)
			known[n++] = leat_step_kinds[i]->name;
	for (const struct leat_key *k = leat_step_keys; k->name && n < MAX_NAMES; k++)
		known[n++] = k->name;
	snprintf(owner, sizeof(owner), "step '%s'", step);
	return leat_unknown_key(r, key, owner, known, n);
}

static enum leat_status
read_kind(struct leat_reading *r, const struct leat_yaml *key, const struct leat_step_kind *kind,
          struct leat_step *step, struct leat_step_nodes *at)
{
	const struct leat_yaml *value = key->value;

	if (step->kind)
		return leat_yaml_fail(&r->file, key, "step '%s' has both '%s' and '%s'; make it two steps", step->name,
		                      step->kind->name, kind->name);
	if (value->kind == LEAT_YAML_LIST && kind->shell)
		return leat_yaml_fail(&r->file, value,
		                      "'%s' of step '%s' must be one text; write several lines after |, or join them "
		                      "with &&",
		                      kind->name, step->name);
	if (value->kind != LEAT_YAML_TEXT || !value->text[strspn(value->text, " \t\n")])
		return leat_yaml_fail(&r->file, value->kind == LEAT_YAML_TEXT ? key : value,
		                      "'%s' of step '%s' must be %s", kind->name, step->name,
		                      kind->value ? kind->value : "a text");
	step->kind = kind;
	step->text = value->text;
	at->text = value;
	return LEAT_OK;
}

static enum leat_status
read_key(struct leat_reading *r, const struct leat_yaml *key, struct leat_step *step, struct leat_step_nodes *at)
{
	const struct leat_step_kind *kind = find_kind(key->text);
	const struct leat_key *known = leat_key_find(leat_step_keys, key->text);

	if (kind)
		return read_kind(r, key, kind, step, at);
	if (!known)
		return unknown_step_key(r, key, step->name);
	if (known->type == LEAT_KEY_NAMES)
		at->in = key->value;
	if (!strcmp(known->name, "feed"))
		at->feed = key->value;
	return leat_value_read(r, known, key->value, step);
}

static enum leat_status
no_kind(struct leat_reading *r, const struct leat_yaml *name)
{
	char kinds[200] = "";
	size_t used = 0;

	for (size_t i = 0; leat_step_kinds[i] && used < sizeof(kinds); i++)
		if (!leat_step_kinds[i]->source)
			used += (size_t)snprintf(kinds + used, sizeof(kinds) - used, "%s%s", used ? ", " : "",
			                         leat_step_kinds[i]->name);
	return leat_yaml_fail(&r->file, name, "step '%s' does nothing; give it one of these keys: %s", name->text,
	                      kinds);
}

/* Keys may come before the one that is the kind. */
static enum leat_status
check_keys(struct leat_reading *r, const struct leat_yaml *name, const struct leat_step *step)
{
	for (const struct leat_yaml *k = name->value->first; k; k = k->next) {
		const struct leat_key *key = leat_key_find(leat_step_keys, k->text);

		if (key && !leat_key_is_of(key, step->kind->name))
			return leat_yaml_fail(&r->file, k, "'%s' is a key of '%.*s', and step '%s' has '%s'", key->name,
			                      (int)strcspn(key->kind, "|"), key->kind, step->name, step->kind->name);
	}
	return LEAT_OK;
}

/* What the kind reads comes after the names of `in`. */
static enum leat_status
add_read(struct leat_reading *r, struct leat_step *step)
{
	struct leat_edge *edge;

	for (size_t i = 0; i < step->edges; i++)
		if (!strcmp(step->edge[i].name, step->text))
			return LEAT_OK;
	edge = leat_text_array(r->text, step->edges + 1, sizeof(*edge));
	if (!edge)
		return r->err->status;
	if (step->edges)
		memcpy(edge, step->edge, step->edges * sizeof(*edge));
	edge[step->edges++] = (struct leat_edge){.name = step->text, .step = SIZE_MAX, .source = SIZE_MAX};
	step->edge = edge;
	return LEAT_OK;
}

static enum leat_status
read_step(struct leat_reading *r, const struct leat_yaml *name)
{
	static const char *const usual_code[] = {"**/*.{py,sh,sql}", NULL};
	struct leat_step *step = &r->project->step[r->project->steps];
	struct leat_step_nodes *at = &r->at[r->project->steps];
	enum leat_status status = leat_name_check(r, name, "a step");

	if (status != LEAT_OK)
		return status;
	if (name->value->kind != LEAT_YAML_MAP)
		return leat_yaml_fail(&r->file, name, "step '%s' must have keys, such as 'run', in lines below it",
		                      name->text);
	*step = (struct leat_step){.name = name->text,
	                           .line = name->line,
	                           .slices = {.count = 1},
	                           .code = usual_code,
	                           .suffix = "",
	                           .feed = "",
	                           .format = "tfrecord",
	                           .compression = "",
	                           .parts = "",
	                           .images = "",
	                           .root = "",
	                           .rejects = "",
	                           .checks = "",
	                           .at = "",
	                           .columns = "",
	                           .split = "",
	                           .dedupe = "",
	                           .cpus = 1};
	*at = (struct leat_step_nodes){.name = name};
	r->project->steps++;
	for (const struct leat_yaml *k = name->value->first; k && status == LEAT_OK; k = k->next)
		status = read_key(r, k, step, at);
	if (status == LEAT_OK && !step->kind)
		status = no_kind(r, name);
	if (status == LEAT_OK)
		status = check_keys(r, name, step);
	return status == LEAT_OK && step->kind->reads ? add_read(r, step) : status;
}

static enum leat_status
read_steps(struct leat_reading *r, const struct leat_yaml *map)
{
	enum leat_status status = LEAT_OK;

	for (const struct leat_yaml *k = map->first; k && status == LEAT_OK; k = k->next)
		status = read_step(r, k);
	return status;
}

/* Room for all steps, and for sources that may be loaded. */
static enum leat_status
alloc_steps(struct leat_reading *r, const struct leat_yaml *root)
{
	size_t count = 0;

	for (const struct leat_yaml *k = root->first; k; k = k->next)
		if (k->value->kind == LEAT_YAML_MAP)
			count += k->value->count;
	r->project->step = leat_text_array(r->text, count, sizeof(*r->project->step));
	r->at = leat_text_array(r->file.nodes, count, sizeof(*r->at));
	return r->project->step && r->at ? LEAT_OK : r->err->status;
}

/* ---- the file ---- */

static enum leat_status
read_file_key(struct leat_reading *r, const struct leat_yaml *key)
{
	const struct leat_key *known = leat_key_find(leat_file_keys, key->text);
	const char *names[MAX_NAMES];
	size_t n = 0;

	for (; leat_file_keys[n].name; n++)
		names[n] = leat_file_keys[n].name;
	if (!known)
		return leat_unknown_key(r, key, r->file.name, names, n);
	if (key->value->kind != LEAT_YAML_MAP)
		return leat_yaml_fail(&r->file, key,
		                      "'%s' must be a map: a name, a colon and a value in each line below", key->text);
	if (known->type == LEAT_KEY_STORAGE) /* was read before */
		return LEAT_OK;
	return known->type == LEAT_KEY_SOURCES ? read_sources(r, key->value) : read_steps(r, key->value);
}

enum leat_status
leat_project_read(struct leat_reading *r, const struct leat_yaml *root)
{
	enum leat_status status;

	if (!root)
		return leat_fail(r->err, LEAT_SPEC, "%s is empty; 'leat init' in an empty folder writes an example",
		                 r->file.name);
	if (root->kind != LEAT_YAML_MAP)
		return leat_yaml_fail(&r->file, root, "expected 'sources:' and 'steps:'");
	status = alloc_steps(r, root);
	leat_storage_init(&r->storage);
	for (const struct leat_yaml *k = root->first; k && status == LEAT_OK; k = k->next)
		if (!strcmp(k->text, "storage")) /* sources need it */
			status = leat_storage_read(r, k);
	for (const struct leat_yaml *k = root->first; k && status == LEAT_OK; k = k->next)
		status = read_file_key(r, k);
	if (status == LEAT_OK && !r->project->steps)
		status = leat_fail(r->err, LEAT_SPEC, "%s has no steps; add one under 'steps:'", r->file.name);
	return status;
}
