/* project_check.c - what only the whole file shows: edges, order, names that meet in one command */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/names.h"
#include "step/kind.h"
#include "step/project_read.h"

/* ---- steps by name ---- */

static int
by_name(const void *a, const void *b, void *arg)
{
	const struct leat_project *project = arg;

	return strcmp(project->step[*(const size_t *)a].name, project->step[*(const size_t *)b].name);
}

const struct leat_step *
leat_project_step(const struct leat_project *project, const char *name)
{
	size_t low = 0, high = project->steps;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		const struct leat_step *step = &project->step[project->by_name[middle]];
		int order = strcmp(name, step->name);

		if (!order)
			return step;
		if (order < 0)
			high = middle;
		else
			low = middle + 1;
	}
	return NULL;
}

static enum leat_status
sort_names(struct leat_reading *r)
{
	struct leat_project *project = r->project;

	project->by_name = leat_text_array(r->text, project->steps, sizeof(*project->by_name));
	if (!project->by_name)
		return r->err->status;
	for (size_t i = 0; i < project->steps; i++)
		project->by_name[i] = i;
	qsort_r(project->by_name, project->steps, sizeof(*project->by_name), by_name, project);
	return LEAT_OK;
}

static int
by_source_name(const void *a, const void *b, void *arg)
{
	const struct leat_project *project = arg;

	return strcmp(project->source[*(const size_t *)a].name, project->source[*(const size_t *)b].name);
}

static enum leat_status
sort_sources(struct leat_reading *r)
{
	struct leat_project *project = r->project;

	r->source_by_name = leat_text_array(r->text, project->sources, sizeof(*r->source_by_name));
	if (!r->source_by_name)
		return r->err->status;
	for (size_t i = 0; i < project->sources; i++)
		r->source_by_name[i] = i;
	qsort_r(r->source_by_name, project->sources, sizeof(*r->source_by_name), by_source_name, project);
	return LEAT_OK;
}

enum leat_status
leat_project_find(const struct leat_project *project, const char *name, const struct leat_step **step,
                  struct leat_err *err)
{
	size_t count = project->steps;
	const char **known;
	enum leat_status status;

	*step = leat_project_step(project, name);
	if (*step)
		return LEAT_OK;
	known = leat_alloc_array(project->mem, count, sizeof(*known));
	for (size_t i = 0; known && i < count; i++)
		known[i] = project->step[i].name;
	status = leat_fail_unknown(
		err, LEAT_INVALID,
		&(struct leat_unknown){.what = "step", .name = name, .known = known, .count = known ? count : 0});
	leat_free(project->mem, known);
	return status;
}

/* ---- edges ---- */

static size_t
find_source(const struct leat_reading *r, const char *name)
{
	size_t low = 0, high = r->project->sources;

	while (low < high) {
		size_t middle = low + (high - low) / 2, i = r->source_by_name[middle];
		int order = strcmp(name, r->project->source[i].name);

		if (!order)
			return i;
		if (order < 0)
			high = middle;
		else
			low = middle + 1;
	}
	return SIZE_MAX;
}

const char *
leat_step_known_name(const struct leat_step_names *names, const char *name)
{
	const struct leat_reading *r = names->reading;
	const struct leat_project *project = r->project;
	const struct leat_step *step = leat_project_step(project, name);
	size_t source = find_source(r, name);

	if (step)
		return step->name;
	if (source != SIZE_MAX)
		return project->source[source].name;
	for (size_t i = 0; i < project->sources; i++)
		if (!strcasecmp(project->source[i].name, name))
			return project->source[i].name;
	for (size_t i = 0; i < project->steps; i++)
		if (!strcasecmp(project->step[i].name, name))
			return project->step[i].name;
	return NULL;
}

enum leat_status
leat_step_add_edge(struct leat_step *step, const struct leat_step_names *names, const char *name, struct leat_err *err)
{
	struct leat_edge *edge;

	for (size_t i = 0; i < step->edges; i++)
		if (!strcmp(step->edge[i].name, name))
			return LEAT_OK;
	edge = leat_text_array(names->text, step->edges + 1, sizeof(*edge));
	if (!edge)
		return leat_fail_mem(err, names->mem, (step->edges + 1) * sizeof(*edge), "what a step reads");
	if (step->edges)
		memcpy(edge, step->edge, step->edges * sizeof(*edge));
	edge[step->edges++] = (struct leat_edge){.name = name, .step = SIZE_MAX, .source = SIZE_MAX};
	step->edge = edge;
	return LEAT_OK;
}

/* What the kind finds in the text. */
static enum leat_status
read_text(struct leat_reading *r, struct leat_step *step, const struct leat_step_nodes *at)
{
	const struct leat_step_names names = {
		.mem = r->mem, .text = r->text, .folder = r->files ? r->project->folder : NULL, .reading = r};
	struct leat_err why;
	enum leat_status status;

	if (!step->kind->read)
		return LEAT_OK;
	leat_err_clear(&why);
	status = step->kind->read(step, &names, &why);
	if (status == LEAT_OK || status == LEAT_NOMEM)
		return status == LEAT_OK ? LEAT_OK : leat_fail_as(r->err, &why);
	return leat_yaml_fail(&r->file, at->text, "%s", why.text);
}

/* The `n`-th name of `in`, or after those what the kind reads. */
static const struct leat_yaml *
edge_node(const struct leat_step_nodes *at, size_t n)
{
	const struct leat_yaml *node = at->in;

	if (node && node->kind == LEAT_YAML_LIST)
		for (node = node->first; node && n > 0; n--)
			node = node->next;
	else if (n > 0)
		node = NULL;
	return node ? node : at->text;
}

static enum leat_status
unknown_input(struct leat_reading *r, const struct leat_yaml *at, const char *name)
{
	const struct leat_project *project = r->project;
	size_t count = project->sources + project->steps, n = 0;
	const char **known = leat_alloc_array(r->mem, count, sizeof(*known));
	char text[LEAT_UNKNOWN_TEXT];
	enum leat_status status;

	if (!known)
		return leat_fail_mem(r->err, r->mem, count * sizeof(*known), "names");
	for (size_t i = 0; i < project->sources; i++)
		known[n++] = project->source[i].name;
	for (size_t i = 0; i < project->steps; i++)
		known[n++] = project->step[i].name;
	leat_unknown_text(
		&(struct leat_unknown){.what = "source or step", .name = name, .known = known, .count = count}, text);
	status = leat_yaml_fail(&r->file, at, "%s%s", text,
	                        strpbrk(name, "/.") ? "; name a file under 'sources:' first" : "");
	leat_free(r->mem, known);
	return status;
}

static enum leat_status
unknown_variable(struct leat_reading *r, const struct leat_step *step, const struct leat_yaml *at,
                 const struct leat_raw_source *source, const char *name)
{
	const char *known[LEAT_MAX_VARIABLES], *near;

	for (size_t i = 0; i < step->slices.variables; i++)
		known[i] = step->slices.variable[i].name;
	near = leat_nearest(name, known, step->slices.variables);
	if (near)
		return leat_yaml_fail(&r->file, at,
		                      "source '%s' needs {%s}, but step '%s' has no such slice variable, did "
		                      "you mean '%s'?",
		                      source->name, name, step->name, near);
	return leat_yaml_fail(
		&r->file, at,
		"source '%s' needs {%s}, but step '%s' has no such slice variable; add it to 'slices', or "
		"write * in line %zu",
		source->name, name, step->name, source->line);
}

/* The variables of a source are slice variables of each step that reads it. */
static enum leat_status
check_variables(struct leat_reading *r, const struct leat_step *step, const struct leat_yaml *at,
                const struct leat_raw_source *source)
{
	for (const char *open = strchr(source->pattern, '{'); open; open = strchr(open + 1, '{')) {
		size_t len = strcspn(open, "}") - 1;
		char name[128];

		if (memchr(open + 1, ',', len))
			continue;
		snprintf(name, sizeof(name), "%.*s", (int)len, open + 1);
		if (leat_slice_variable(&step->slices, name) == SIZE_MAX)
			return unknown_variable(r, step, at, source, name);
	}
	return LEAT_OK;
}

static enum leat_status
resolve(struct leat_reading *r, const struct leat_step *step, const struct leat_step_nodes *at)
{
	enum leat_status status = LEAT_OK;

	for (size_t i = 0; i < step->edges && status == LEAT_OK; i++) {
		struct leat_edge *edge = &step->edge[i];
		const struct leat_step *input = leat_project_step(r->project, edge->name);

		edge->source = find_source(r, edge->name);
		if (input)
			edge->step = (size_t)(input - r->project->step);
		if (edge->source != SIZE_MAX)
			status = check_variables(r, step, edge_node(at, i), &r->project->source[edge->source]);
		else if (!input)
			status = unknown_input(r, edge_node(at, i), edge->name);
	}
	return status;
}

/* ---- names that meet in one command ---- */

struct meeting {
	struct leat_reading *r;
	const struct leat_step *step;
	const struct leat_yaml *at;
	const char **name, **what;
	size_t names;
};

static enum leat_status
meet(struct meeting *m, const char *what, const char *name)
{
	for (size_t i = 0; i < m->names; i++)
		if (!strcmp(m->name[i], name))
			return leat_yaml_fail(&m->r->file, m->at,
			                      "step '%s' has two things called $%s: %s and %s; rename one",
			                      m->step->name, name, m->what[i], what);
	m->name[m->names] = name;
	m->what[m->names++] = what;
	return LEAT_OK;
}

static enum leat_status
meet_all(struct meeting *m)
{
	const struct leat_step *step = m->step;
	enum leat_status status = LEAT_OK;

	for (size_t i = 0; i < step->edges && status == LEAT_OK; i++)
		status = meet(m, "an input", step->edge[i].name);
	for (size_t i = 0; i < step->slices.variables && status == LEAT_OK; i++)
		status = meet(m, "a slice variable", step->slices.variable[i].name);
	for (size_t i = 0; i < step->params && status == LEAT_OK; i++)
		status = meet(m, "a parameter", step->param[i].name);
	for (size_t i = 0; i < step->envs && status == LEAT_OK; i++)
		status = meet(m, "an environment variable", step->env[i].name);
	return status;
}

static enum leat_status
check_names(struct leat_reading *r, const struct leat_step *step, const struct leat_step_nodes *at)
{
	size_t most = step->edges + step->slices.variables + step->params + step->envs;
	struct meeting m = {.r = r, .step = step, .at = at->name};
	enum leat_status status;

	if (most > LEAT_MAX_NAMES)
		return leat_yaml_fail(
			&r->file, at->name,
			"step '%s' has more than %d inputs and parameters; slice a step, or use a pattern", step->name,
			LEAT_MAX_NAMES);
	m.name = leat_alloc_array(r->mem, most, sizeof(*m.name));
	m.what = leat_alloc_array(r->mem, most, sizeof(*m.what));
	status = m.name && m.what ? meet_all(&m) : leat_fail_mem(r->err, r->mem, most * sizeof(*m.name), "names");
	leat_free(r->mem, m.name);
	leat_free(r->mem, m.what);
	return status;
}

/* ---- order ---- */

enum color { NEW, OPEN, DONE };

/* A depth-first search with its own stack: edges of a hostile file may be as deep as there are steps. */
struct search {
	struct leat_reading *r;
	unsigned char *color;
	size_t *stack, *next; /* steps being visited, and the next edge of each */
	size_t depth, ordered;
};

/* "a reads b, b reads c, c reads a" */
static enum leat_status
name_cycle(struct search *s, size_t step)
{
	const struct leat_project *project = s->r->project;
	size_t first = s->depth - 1;
	struct leat_str text;
	enum leat_status status;

	while (s->stack[first] != step)
		first--;
	leat_str_init(&text, s->r->mem, 300);
	for (size_t i = first; i < s->depth; i++) {
		size_t to = i + 1 < s->depth ? s->stack[i + 1] : step;

		leat_str_addf(&text, "%s%s reads %s", i > first ? ", " : "", project->step[s->stack[i]].name,
		              project->step[to].name);
	}
	status =
		leat_yaml_fail(&s->r->file, edge_node(&s->r->at[s->stack[s->depth - 1]], s->next[s->depth - 1] - 1),
	                       "the steps go round in a circle: %s%s", leat_str_text(&text), text.failed ? " ..." : "");
	leat_str_free(&text);
	return status;
}

static void
push(struct search *s, size_t step)
{
	s->color[step] = OPEN;
	s->next[s->depth] = 0;
	s->stack[s->depth++] = step;
}

static enum leat_status
visit(struct search *s, size_t root)
{
	const struct leat_project *project = s->r->project;

	push(s, root);
	while (s->depth) {
		size_t step = s->stack[s->depth - 1], input;

		if (s->next[s->depth - 1] == project->step[step].edges) {
			s->color[step] = DONE;
			project->order[s->ordered++] = step;
			s->depth--;
			continue;
		}
		input = project->step[step].edge[s->next[s->depth - 1]++].step;
		if (input == SIZE_MAX || s->color[input] == DONE)
			continue;
		if (s->color[input] == OPEN)
			return name_cycle(s, input);
		push(s, input);
	}
	return LEAT_OK;
}

static enum leat_status
sort_steps(struct leat_reading *r)
{
	size_t count = r->project->steps;
	struct search s = {.r = r,
	                   .color = leat_alloc(r->mem, count),
	                   .stack = leat_alloc_array(r->mem, count, sizeof(*s.stack)),
	                   .next = leat_alloc_array(r->mem, count, sizeof(*s.next))};
	enum leat_status status = LEAT_OK;

	r->project->order = leat_text_array(r->text, count, sizeof(*r->project->order));
	if (!s.color || !s.stack || !s.next || !r->project->order)
		status = leat_fail_mem(r->err, r->mem, count * sizeof(*s.stack), "the order of steps");
	for (size_t i = 0; i < count && status == LEAT_OK; i++)
		if (s.color[i] == NEW)
			status = visit(&s, i);
	leat_free(r->mem, s.color);
	leat_free(r->mem, s.stack);
	leat_free(r->mem, s.next);
	return status;
}

/* ---- all of it ---- */

static enum leat_status
fail_names(struct leat_reading *r, const struct leat_yaml *source, const struct leat_step *step)
{
	return leat_yaml_fail(&r->file, source, "'%s' is a source and, in line %zu, a step; rename one", step->name,
	                      step->line);
}

/* One name, one thing. */
static enum leat_status
check_sources(struct leat_reading *r)
{
	for (size_t i = 1; i < r->project->steps; i++) { /* one of two is loaded: keys of a map differ */
		size_t one = r->project->by_name[i - 1], other = r->project->by_name[i];

		if (!strcmp(r->project->step[one].name, r->project->step[other].name))
			return r->project->step[one].loads ? fail_names(r, r->at[one].name, &r->project->step[other])
			                                   : fail_names(r, r->at[other].name, &r->project->step[one]);
	}
	for (size_t i = 0; i < r->project->sources; i++) {
		const struct leat_step *step = leat_project_step(r->project, r->project->source[i].name);

		if (step)
			return fail_names(r, r->source_at[i], step);
	}
	return LEAT_OK;
}

static enum leat_status
check_step(struct leat_reading *r, const struct leat_step *step, const struct leat_step_nodes *at)
{
	enum leat_status status = check_names(r, step, at);

	if (status == LEAT_OK && step->kind->shell)
		status = leat_shell_command_check(r, step, at->text);
	if (status == LEAT_OK && at->feed)
		status = leat_feed_check(r, step, at->feed);
	if (status == LEAT_OK && step->kind->check) {
		struct leat_err why;

		leat_err_clear(&why);
		status = step->kind->check(step, &why);
		if (status != LEAT_OK)
			status = leat_yaml_fail(&r->file, at->text, "%s", why.text);
	}
	return status;
}

enum leat_status
leat_project_check(struct leat_reading *r)
{
	enum leat_status status = sort_names(r);

	if (status == LEAT_OK)
		status = sort_sources(r);
	if (status == LEAT_OK)
		status = check_sources(r);
	for (size_t i = 0; i < r->project->steps && status == LEAT_OK; i++)
		status = read_text(r, &r->project->step[i], &r->at[i]);
	for (size_t i = 0; i < r->project->steps && status == LEAT_OK; i++)
		status = resolve(r, &r->project->step[i], &r->at[i]);
	if (status == LEAT_OK)
		status = leat_project_split(r);
	if (status == LEAT_OK)
		status = sort_names(r);
	if (status == LEAT_OK)
		status = sort_steps(r);
	for (size_t i = 0; i < r->project->steps && status == LEAT_OK; i++)
		status = check_step(r, &r->project->step[i], &r->at[i]);
	return status;
}
