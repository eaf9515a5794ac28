/* build_plan.c - see build_plan.h */
#include "step/build_plan.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/threads.h"

enum { REMOTE_THREADS = 16 }; /* that wait for servers */

/* ---- edges ---- */

static bool
names_variable(const char *pattern, const char *name)
{
	size_t len = strlen(name);

	for (const char *p = pattern; (p = strchr(p, '{')) != NULL; p++)
		if (strncmp(p + 1, name, len) == 0 && p[1 + len] == '}')
			return true;
	return false;
}

/* Which variables of `step` decide about what it gets by the edge. */
static bool *
grouping_variables(const struct leat_plan *plan, const struct leat_step *step, const struct leat_plan_edge *edge)
{
	const struct leat_slices *slices = &step->slices;
	bool *by = leat_alloc_array(plan->mem, slices->variables + 1, sizeof(*by));

	for (size_t i = 0; by && i < slices->variables; i++) {
		const char *name = slices->variable[i].name;

		if (edge->up != SIZE_MAX && edge->how != LEAT_EDGE_SHARES)
			by[i] = false; /* one group, of all slices */
		else if (edge->up != SIZE_MAX)
			by[i] = leat_slice_variable(&plan->project->step[edge->up].slices, name) != SIZE_MAX;
		else
			by[i] = edge->source ? names_variable(edge->source->pattern, name) : i == edge->variable;
	}
	return by;
}

/* Variables of the upstream step that this one does not have: they name entries. */
static enum leat_status
set_entry_variables(const struct leat_plan *plan, const struct leat_step *step, struct leat_plan_edge *edge,
                    struct leat_err *err)
{
	const struct leat_slices *up = &plan->project->step[edge->up].slices;
	bool any = false;

	edge->entry = leat_alloc_array(plan->mem, up->variables + 1, sizeof(*edge->entry));
	if (!edge->entry)
		return leat_fail_mem(err, plan->mem, up->variables, "the plan");
	for (size_t i = 0; i < up->variables; i++)
		any |= edge->entry[i] = edge->how != LEAT_EDGE_SHARES ||
		                        leat_slice_variable(&step->slices, up->variable[i].name) == SIZE_MAX;
	if (!any) {
		leat_free(plan->mem, edge->entry);
		edge->entry = NULL;
	}
	return LEAT_OK;
}

static enum leat_status
fail_without_input(const struct leat_plan *plan, const struct leat_step *step, const struct leat_plan_edge *edge,
                   size_t slice, struct leat_err *err)
{
	struct leat_str text;
	enum leat_status status;

	leat_str_init(&text, plan->mem, 4096);
	leat_slice_text(&step->slices, slice, &text);
	status = leat_fail(err, LEAT_SPEC,
	                   "line %zu: slice %s of step '%s' has no input: step '%s' has no slice with these values",
	                   step->line, leat_str_text(&text), step->name, edge->name);
	leat_str_free(&text);
	return status;
}

/* Every group that a slice reads has something in it. */
static enum leat_status
check_members(const struct leat_plan *plan, const struct leat_step *step, const struct leat_plan_edge *edge,
              struct leat_err *err)
{
	for (uint32_t g = 0; g < edge->groups.count; g++)
		if (leat_members_count(&edge->members, g) == 0)
			return fail_without_input(plan, step, edge, leat_members_at(&edge->users, g, 0), err);
	return LEAT_OK;
}

static enum leat_status
alloc_groups(const struct leat_plan *plan, const struct leat_step *step, struct leat_plan_edge *edge,
             struct leat_err *err)
{
	bool is_entry = edge->how == LEAT_EDGE_ENTRY;
	size_t count = is_entry ? step->slices.count : edge->groups.count;
	bool is_step = edge->up != SIZE_MAX, fits = true;

	if (is_step)
		fits &= (edge->pending = leat_alloc_array(plan->mem, count, sizeof(*edge->pending))) != NULL;
	if (!is_step)
		fits &= (edge->stamp = leat_alloc_array(plan->mem, count, sizeof(*edge->stamp))) != NULL;
	if (!is_step || is_entry || edge->entry)
		fits &= (edge->content = leat_alloc_array(plan->mem, count, sizeof(*edge->content))) != NULL;
	if (!fits)
		return leat_fail_mem(err, plan->mem, count * sizeof(*edge->content), "the plan");
	if (is_step)
		memset(edge->pending, 0xff, count * sizeof(*edge->pending));
	return LEAT_OK;
}

static enum leat_status
join_edge(const struct leat_plan *plan, const struct leat_step *step, struct leat_plan_edge *edge, struct leat_err *err)
{
	const struct leat_slices *up = edge->up == SIZE_MAX ? NULL : &plan->project->step[edge->up].slices;
	bool *by = grouping_variables(plan, step, edge);
	enum leat_status status;

	if (!by)
		return leat_fail_mem(err, plan->mem, step->slices.variables, "the plan");
	status = leat_groups_open(&edge->groups, plan->mem, &step->slices, by, up, err);
	leat_free(plan->mem, by);
	if (status == LEAT_OK)
		status = leat_members_open(&edge->users, plan->mem, edge->groups.down, step->slices.count,
		                           edge->groups.count, err);
	if (status == LEAT_OK && up)
		status = leat_members_open(&edge->members, plan->mem, edge->groups.up, up->count, edge->groups.count,
		                           err);
	if (status == LEAT_OK && up)
		status = check_members(plan, step, edge, err);
	if (status == LEAT_OK && up)
		status = set_entry_variables(plan, step, edge, err);
	return status == LEAT_OK ? alloc_groups(plan, step, edge, err) : status;
}

static enum leat_status
add_out(struct leat_plan *plan, size_t up, size_t step, size_t edge, struct leat_err *err)
{
	struct leat_plan_step *from = &plan->step[up];

	if (LEAT_GROW(plan->mem, from->out, from->outs_cap, from->outs + 1, SIZE_MAX, "the plan", err) != LEAT_OK)
		return LEAT_NOMEM;
	from->out[from->outs++] = (struct leat_plan_out){step, edge};
	return LEAT_OK;
}

static size_t
count_edges(const struct leat_step *step)
{
	size_t count = step->edges;

	for (size_t i = 0; i < step->slices.variables; i++)
		count += step->slices.variable[i].is_file;
	return count;
}

static void
name_edges(struct leat_plan *plan, struct leat_plan_step *s)
{
	const struct leat_step *step = s->step;
	size_t n = 0;

	for (; n < step->edges; n++) {
		const struct leat_edge *from = &step->edge[n];

		s->edge[n].name = from->name;
		s->edge[n].up = from->step;
		s->edge[n].how = from->how;
		if (from->step == SIZE_MAX)
			s->edge[n].source = &plan->project->source[from->source];
	}
	for (size_t i = 0; i < step->slices.variables; i++)
		if (step->slices.variable[i].is_file)
			s->edge[n++] = (struct leat_plan_edge){
				.name = step->slices.variable[i].name, .up = SIZE_MAX, .variable = i};
}

static enum leat_status
join_step(struct leat_plan *plan, size_t i, struct leat_err *err)
{
	struct leat_plan_step *s = &plan->step[i];
	enum leat_status status = LEAT_OK;

	s->step = &plan->project->step[i];
	s->edges = count_edges(s->step);
	s->edge = leat_alloc_array(plan->mem, s->edges, sizeof(*s->edge));
	s->action = leat_alloc_array(plan->mem, s->step->slices.count, sizeof(*s->action));
	if (!s->edge || !s->action)
		return leat_fail_mem(err, plan->mem, s->step->slices.count * sizeof(*s->action), "the plan");
	name_edges(plan, s);
	if (s->edges > plan->most_inputs)
		plan->most_inputs = s->edges;
	for (size_t e = 0; status == LEAT_OK && e < s->edges; e++) {
		status = join_edge(plan, s->step, &s->edge[e], err);
		if (status == LEAT_OK && s->edge[e].up != SIZE_MAX)
			status = add_out(plan, s->edge[e].up, i, e, err);
	}
	return status;
}

/* ---- what is wanted ---- */

static void
want(struct leat_plan_step *s, size_t slice, bool target)
{
	struct leat_plan_action *action = &s->action[slice];

	s->wanted += action->state == LEAT_ACTION_UNWANTED;
	action->state = LEAT_ACTION_WAITS;
	action->target |= target;
}

static void
want_all(struct leat_plan_step *s)
{
	for (size_t i = 0; i < s->step->slices.count; i++)
		want(s, i, true);
}

static enum leat_status
want_target(struct leat_plan *plan, const char *target, struct leat_err *err)
{
	const char *colon = strchr(target, ':');
	char *name = leat_strndup(plan->mem, target, colon ? (size_t)(colon - target) : strlen(target));
	const struct leat_step *step;
	enum leat_status status;
	size_t slice;

	if (!name)
		return leat_fail_mem(err, plan->mem, strlen(target), "a target");
	status = leat_project_find(plan->project, name, &step, err);
	leat_free(plan->mem, name);
	if (status != LEAT_OK)
		return status;
	if (!colon) {
		want_all(&plan->step[step - plan->project->step]);
		return LEAT_OK;
	}
	status = leat_slice_find(&step->slices, colon + 1, &slice, err);
	if (status == LEAT_OK)
		want(&plan->step[step - plan->project->step], slice, true);
	return status;
}

/* All upstream slices of a group, once. */
static void
want_group(struct leat_plan *plan, struct leat_plan_edge *edge, uint32_t group)
{
	uint32_t count = leat_members_count(&edge->members, group);

	if (edge->pending[group] != LEAT_NO_GROUP)
		return;
	edge->pending[group] = count;
	for (uint32_t i = 0; i < count; i++)
		want(&plan->step[edge->up], leat_members_at(&edge->members, group, i), false);
}

/* Steps come downstream first, so when one is asked, all who need it have spoken. */
static void
want_inputs(struct leat_plan *plan, struct leat_plan_step *s)
{
	for (size_t e = 0; e < s->edges; e++) {
		struct leat_plan_edge *edge = &s->edge[e];

		if (edge->up == SIZE_MAX)
			continue;
		for (size_t i = 0; i < s->step->slices.count; i++) {
			if (s->action[i].state == LEAT_ACTION_UNWANTED)
				continue;
			want_group(plan, edge, leat_group_of(edge->groups.down, i));
			s->action[i].waits++;
		}
	}
}

static enum leat_status
want_targets(struct leat_plan *plan, const struct leat_plan_targets *targets, struct leat_err *err)
{
	enum leat_status status = LEAT_OK;

	for (size_t i = 0; status == LEAT_OK && i < targets->count; i++)
		status = want_target(plan, targets->name[i], err);
	for (size_t i = 0; targets->count == 0 && i < plan->project->steps; i++)
		want_all(&plan->step[i]);
	for (size_t i = plan->project->steps; status == LEAT_OK && i-- > 0;)
		want_inputs(plan, &plan->step[plan->project->order[i]]);
	return status;
}

/* ---- open and close ---- */

static enum leat_status
fill(struct leat_plan *plan, const struct leat_plan_targets *targets, struct leat_err *err)
{
	size_t steps = plan->project->steps;
	enum leat_status status = LEAT_OK;

	plan->step = leat_alloc_array(plan->mem, steps, sizeof(*plan->step));
	plan->code = leat_alloc_array(plan->mem, steps, sizeof(struct leat_code *));
	if (!plan->step || !plan->code)
		return leat_fail_mem(err, plan->mem, steps * sizeof(*plan->step), "the plan");
	for (size_t i = 0; status == LEAT_OK && i < steps; i++)
		status = join_step(plan, i, err);
	if (status != LEAT_OK)
		return status;
	plan->input = leat_alloc_array(plan->mem, plan->most_inputs, sizeof(*plan->input));
	if (!plan->input)
		return leat_fail_mem(err, plan->mem, plan->most_inputs * sizeof(*plan->input), "the plan");
	return want_targets(plan, targets, err);
}

enum leat_status
leat_plan_open(struct leat_plan **plan, const struct leat_project *project, struct leat_cas *cas,
               const struct leat_plan_targets *targets, struct leat_err *err)
{
	struct leat_plan *p = leat_alloc(project->mem, sizeof(*p));
	enum leat_status status;

	*plan = NULL;
	if (!p)
		return leat_fail_mem(err, project->mem, sizeof(*p), "the plan");
	*p = (struct leat_plan){.project = project, .cas = cas, .mem = project->mem};
	status = fill(p, targets, err);
	if (status != LEAT_OK)
		leat_plan_close(p);
	else
		*plan = p;
	return status;
}

static void
close_edge(struct leat_plan_edge *edge, struct leat_mem *mem)
{
	leat_groups_close(&edge->groups);
	leat_members_close(&edge->users, mem);
	leat_members_close(&edge->members, mem);
	leat_free(mem, edge->entry);
	leat_free(mem, edge->pending);
	leat_free(mem, edge->content);
	leat_free(mem, edge->stamp);
}

static void
close_step(struct leat_plan_step *s, struct leat_mem *mem)
{
	for (size_t e = 0; s->edge && e < s->edges; e++)
		close_edge(&s->edge[e], mem);
	leat_free(mem, s->edge);
	leat_free(mem, s->out);
	leat_free(mem, s->action);
	leat_free(mem, s->missing);
}

void
leat_plan_close(struct leat_plan *plan)
{
	if (!plan)
		return;
	for (size_t i = 0; plan->step && i < plan->project->steps; i++)
		close_step(&plan->step[i], plan->mem);
	for (size_t i = 0; i < plan->codes; i++)
		leat_code_close(plan->code[i]);
	leat_free(plan->mem, plan->step);
	leat_free(plan->mem, plan->code);
	leat_free(plan->mem, plan->input);
	leat_free(plan->mem, plan);
}

/* ---- code ---- */

static enum leat_status
open_code(struct leat_plan *plan, struct leat_plan_step *s, struct leat_err *err)
{
	enum leat_status status;

	for (size_t i = 0; i < plan->codes; i++)
		if (leat_code_serves(plan->code[i], s->step)) {
			s->code = plan->code[i];
			return LEAT_OK;
		}
	status = leat_code_open(&s->code, plan->project, s->step, plan->cas, err);
	if (status == LEAT_OK)
		plan->code[plan->codes++] = s->code;
	return status;
}

enum leat_status
leat_plan_code(struct leat_plan *plan, struct leat_err *err)
{
	enum leat_status status = LEAT_OK;

	for (size_t i = 0; status == LEAT_OK && i < plan->project->steps; i++)
		if (plan->step[i].wanted)
			status = open_code(plan, &plan->step[i], err);
	return status;
}

/* ---- contents ---- */

struct hashing {
	struct leat_plan *plan;
	struct leat_plan_step *step;
	struct leat_plan_edge *edge;
	bool tolerant;
};

static bool
is_group_wanted(const struct leat_plan_step *s, const struct leat_plan_edge *edge, uint32_t group, size_t *slice)
{
	for (uint32_t i = 0; i < leat_members_count(&edge->users, group); i++) {
		*slice = leat_members_at(&edge->users, group, i);
		if (s->action[*slice].state != LEAT_ACTION_UNWANTED)
			return true;
	}
	return false;
}

static enum leat_status
hash_group(void *arg, size_t group, struct leat_err *err)
{
	const struct hashing *h = arg;
	struct leat_err why;
	enum leat_status status;
	size_t slice;

	if (!is_group_wanted(h->step, h->edge, (uint32_t)group, &slice))
		return LEAT_OK;
	leat_err_clear(&why);
	status = leat_files_hash(h->plan, h->step, h->edge, slice, &h->edge->content[group], &h->edge->stamp[group],
	                         &why);
	if (status == LEAT_DATA && h->tolerant) {
		h->edge->content[group].kind = LEAT_CONTENT_NONE; /* note_missing finds it */
		return LEAT_OK;
	}
	return status == LEAT_OK || status == LEAT_END ? status : leat_fail_as(err, &why);
}

/* Keeps why the first file that is missing cannot be read, for `leat status`. */
static enum leat_status
note_missing(const struct hashing *h, struct leat_err *err)
{
	struct leat_plan_step *s = h->step;
	struct leat_content content;
	struct leat_stamp stamp;
	struct leat_err why;
	size_t slice;

	for (uint32_t g = 0; g < h->edge->groups.count; g++) {
		leat_err_clear(&why);
		if (h->edge->content[g].kind != LEAT_CONTENT_NONE || !is_group_wanted(s, h->edge, g, &slice) ||
		    leat_files_hash(h->plan, s, h->edge, slice, &content, &stamp, &why) == LEAT_OK)
			continue;
		leat_err_in(&why, "step '%s', input '%s'", s->step->name, h->edge->name);
		s->missing = leat_alloc(h->plan->mem, sizeof(*s->missing));
		if (!s->missing)
			return leat_fail_mem(err, h->plan->mem, sizeof(*s->missing), "the plan");
		*s->missing = why;
		return LEAT_OK;
	}
	return LEAT_OK;
}

static enum leat_status
hash_edge(struct leat_plan *plan, struct leat_plan_step *s, struct leat_plan_edge *edge, unsigned threads,
          bool tolerant, struct leat_err *err)
{
	struct hashing hashing = {plan, s, edge, tolerant};
	struct leat_err why;
	enum leat_status status;

	leat_err_clear(&why);
	status = leat_parallel(plan->mem, threads, edge->groups.count, hash_group, &hashing, &why);
	if (status == LEAT_OK)
		return tolerant && !s->missing ? note_missing(&hashing, err) : LEAT_OK;
	if (status == LEAT_END)
		return status;
	leat_err_in(&why, "step '%s', input '%s'", s->step->name, edge->name);
	return leat_fail_as(err, &why);
}

bool
leat_plan_lacks_file(const struct leat_plan_step *s, size_t slice)
{
	for (size_t e = 0; s->missing && e < s->edges; e++)
		if (s->edge[e].up == SIZE_MAX &&
		    s->edge[e].content[leat_group_of(s->edge[e].groups.down, slice)].kind == LEAT_CONTENT_NONE)
			return true;
	return false;
}

static enum leat_status
look_group(void *arg, size_t group, struct leat_err *err)
{
	const struct hashing *h = arg;
	size_t slice;

	if (!is_group_wanted(h->step, h->edge, (uint32_t)group, &slice))
		return LEAT_OK;
	return leat_files_look(h->plan, h->step, h->edge, slice, err);
}

enum leat_status
leat_plan_look(struct leat_plan *plan, struct leat_err *err)
{
	enum leat_status status = LEAT_OK;

	for (size_t i = 0; status == LEAT_OK && i < plan->project->steps; i++) {
		struct leat_plan_step *s = &plan->step[i];

		for (size_t e = 0; status == LEAT_OK && s->wanted && e < s->edges; e++) {
			struct hashing hashing = {plan, s, &s->edge[e], false};

			if (leat_files_are_remote(plan, s, &s->edge[e]))
				status = leat_parallel(plan->mem, REMOTE_THREADS, s->edge[e].groups.count, look_group,
				                       &hashing, err);
		}
	}
	return status;
}

enum leat_status
leat_plan_hash(struct leat_plan *plan, unsigned threads, bool tolerant, struct leat_err *err)
{
	enum leat_status status = LEAT_OK;

	for (size_t i = 0; status == LEAT_OK && i < plan->project->steps; i++) {
		struct leat_plan_step *s = &plan->step[i];

		for (size_t e = 0; status == LEAT_OK && s->wanted && e < s->edges; e++)
			if (s->edge[e].up == SIZE_MAX)
				status = hash_edge(plan, s, &s->edge[e],
				                   leat_files_are_remote(plan, s, &s->edge[e]) ? REMOTE_THREADS
				                                                               : threads,
				                   tolerant, err);
	}
	return status;
}

static void
count_edge(const struct leat_plan *plan, const struct leat_plan_step *s, const struct leat_plan_edge *edge,
           struct leat_hashing *hashing, const atomic_bool *stop)
{
	size_t slice;

	for (uint32_t g = 0; g < edge->groups.count && !atomic_load(stop); g++)
		if (is_group_wanted(s, edge, g, &slice))
			leat_files_measure(plan, s, edge, slice, hashing, stop);
}

void
leat_plan_count(const struct leat_plan *plan, struct leat_hashing *hashing, const atomic_bool *stop)
{
	for (size_t i = 0; i < plan->project->steps; i++) {
		const struct leat_plan_step *s = &plan->step[i];

		for (size_t e = 0; s->wanted && e < s->edges; e++)
			if (s->edge[e].up == SIZE_MAX)
				count_edge(plan, s, &s->edge[e], hashing, stop);
	}
	atomic_store(&hashing->is_counted, !atomic_load(stop));
}

/* ---- actions ---- */

const struct leat_content *
leat_plan_content(const struct leat_plan *plan, const struct leat_plan_edge *edge, size_t slice)
{
	uint32_t group = leat_group_of(edge->groups.down, slice);

	if (edge->how == LEAT_EDGE_ENTRY)
		return &edge->content[slice];
	if (edge->content)
		return &edge->content[group];
	return &plan->step[edge->up].action[leat_members_at(&edge->members, group, 0)].output;
}

void
leat_plan_action(struct leat_plan *plan, size_t step, size_t slice, struct leat_action *action)
{
	const struct leat_plan_step *s = &plan->step[step];

	for (size_t e = 0; e < s->edges; e++)
		plan->input[e] = (struct leat_input){.name = s->edge[e].name,
		                                     .content = *leat_plan_content(plan, &s->edge[e], slice)};
	*action = (struct leat_action){.project = plan->project,
	                               .step = s->step,
	                               .slice = slice,
	                               .input = plan->input,
	                               .inputs = s->edges,
	                               .code = s->code};
}
