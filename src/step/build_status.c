/* build_status.c - what a build would do, without running or writing anything */
#include <stdio.h>
#include <string.h>

#include "base/threads.h"
#include "step/budget.h"
#include "step/build_core.h"
#include "step/listings.h"
#include "step/tune_threads.h"

/* ---- leat_build_status ---- */

static enum leat_status
hash(struct leat_plan *plan, struct leat_err *err)
{
	struct leat_listings listings;
	enum leat_status status;

	leat_listings_init(&listings, plan->mem);
	plan->listings = &listings;
	status = leat_plan_hash(plan, leat_budget_cpus(0), true, err);
	plan->listings = NULL;
	leat_listings_free(&listings);
	return status;
}

static enum leat_status
open_plan(struct leat_plan **plan, const struct leat_project *project, struct leat_cas *cas,
          const struct leat_plan_targets *targets, bool fetches, struct leat_err *err)
{
	enum leat_status status = leat_plan_open(plan, project, cas, targets, err);

	if (status == LEAT_OK)
		(*plan)->fetches = fetches;
	if (status == LEAT_OK)
		status = hash(*plan, err);
	if (status == LEAT_OK && cas)
		status = leat_plan_code(*plan, err);
	return status;
}

/* Finds all that is made. `totals` and events go nowhere. */
static enum leat_status
find_all(struct leat_plan *plan, struct leat_err *err)
{
	struct leat_build_options options = {.dry = true};
	struct leat_build_totals totals = {0};
	struct leat_builder b = {
		.plan = plan, .cas = plan->cas, .mem = plan->mem, .options = &options, .totals = &totals};
	enum leat_status status;

	pthread_mutex_init(&b.lock, NULL);
	pthread_mutex_init(&b.event_lock, NULL);
	pthread_cond_init(&b.work, NULL);
	status = leat_advance_begin(&b, err);
	leat_free(b.mem, b.next);
	pthread_cond_destroy(&b.work);
	pthread_mutex_destroy(&b.lock);
	pthread_mutex_destroy(&b.event_lock);
	return status;
}

static void
count_states(const struct leat_plan_step *s, bool has_store, struct leat_step_status *status)
{
	*status = (struct leat_step_status){.expected_s = s->expected_s};
	for (size_t i = 0; i < s->step->slices.count; i++) {
		const struct leat_plan_action *action = &s->action[i];

		status->done += action->state == LEAT_ACTION_MADE;
		status->stale += action->state == LEAT_ACTION_STALE || (!has_store && action->waits == 0);
		status->waits += action->state == LEAT_ACTION_WAITS && (has_store || action->waits > 0);
	}
	if (s->missing)
		leat_show(status->why, sizeof(status->why), s->missing->text, strlen(s->missing->text));
}

enum leat_status
leat_build_status(const struct leat_project *project, struct leat_cas *cas, struct leat_step_status *status,
                  struct leat_err *err)
{
	struct leat_plan_targets all = {0};
	struct leat_plan *plan = NULL;
	enum leat_status s = open_plan(&plan, project, cas, &all, false, err);

	if (s == LEAT_OK && cas)
		s = find_all(plan, err);
	for (size_t i = 0; s == LEAT_OK && i < project->steps; i++)
		count_states(&plan->step[i], cas != NULL, &status[i]);
	if (s == LEAT_OK && cas)
		s = leat_plan_failures(plan, status, err);
	leat_plan_close(plan);
	return s;
}

/* ---- leat_build_fields ---- */

/* Which input is not made yet. */
static void
name_missing(const struct leat_plan *plan, const struct leat_plan_step *s, size_t slice, char *buf, size_t cap)
{
	if (leat_plan_lacks_file(s, slice)) {
		snprintf(buf, cap, "%s", s->missing->text);
		return;
	}
	for (size_t e = 0; e < s->edges; e++) {
		const struct leat_plan_edge *edge = &s->edge[e];

		if (edge->up == SIZE_MAX || edge->pending[leat_group_of(edge->groups.down, slice)] == 0)
			continue;
		if (plan->step[edge->up].missing)
			snprintf(buf, cap, "%s", plan->step[edge->up].missing->text);
		else
			snprintf(buf, cap, "its input '%s' is not made yet; run 'leat build %s' first", edge->name,
			         edge->name);
		return;
	}
}

static enum leat_status
read_slice(struct leat_plan *plan, size_t step, size_t slice, const struct leat_fields_reader *reader,
           struct leat_err *err)
{
	struct leat_plan_step *s = &plan->step[step];
	struct leat_key_fields fields = {.mem = plan->mem};
	struct leat_action action;
	enum leat_status status;
	char missing[1100];

	if (leat_plan_lacks_file(s, slice) || s->action[slice].waits > 0) {
		name_missing(plan, s, slice, missing, sizeof(missing));
		return reader->slice(reader->arg, slice, NULL, missing, err);
	}
	leat_plan_action(plan, step, slice, &action);
	status = leat_action_fields(&action, &fields, err);
	if (status == LEAT_OK)
		status = reader->slice(reader->arg, slice, &fields, NULL, err);
	leat_key_fields_clear(&fields);
	leat_free(plan->mem, fields.field);
	return status;
}

enum leat_status
leat_build_fields(const struct leat_project *project, struct leat_cas *cas, const struct leat_step *step, size_t slice,
                  const struct leat_fields_reader *reader, struct leat_err *err)
{
	struct leat_plan_targets target = {&step->name, 1};
	size_t first = slice == SIZE_MAX ? 0 : slice, end = slice == SIZE_MAX ? step->slices.count : slice + 1;
	struct leat_plan *plan = NULL;
	enum leat_status status = open_plan(&plan, project, cas, &target, false, err);

	if (status == LEAT_OK)
		status = find_all(plan, err);
	for (size_t i = first; status == LEAT_OK && i < end; i++)
		status = read_slice(plan, (size_t)(step - project->step), i, reader, err);
	leat_plan_close(plan);
	return status;
}

/* ---- leat_build_tune ---- */

/* The first wanted slice whose inputs are all made. */
static enum leat_status
choose_slice(const struct leat_plan *plan, const struct leat_plan_step *s, size_t *slice, struct leat_err *err)
{
	char missing[1100] = "";

	for (*slice = 0; *slice < s->step->slices.count; ++*slice) {
		const struct leat_plan_action *action = &s->action[*slice];

		if (action->target && !leat_plan_lacks_file(s, *slice) && action->waits == 0)
			return LEAT_OK;
		if (action->target && !*missing)
			name_missing(plan, s, *slice, missing, sizeof(missing));
	}
	return leat_fail(err, LEAT_DATA, "step '%s' cannot be measured: %s", s->step->name, missing);
}

static enum leat_status
tune_slice(struct leat_plan *plan, size_t step, size_t slice, const atomic_bool *stop, struct leat_tune *tune,
           struct leat_err *err)
{
	struct leat_runner runner = {.cas = plan->cas, .stop = stop};
	struct leat_inputs inputs;
	struct leat_action action;
	enum leat_status status = leat_inputs_open(&inputs, plan, step, slice, err);

	if (status != LEAT_OK)
		return status;
	action = (struct leat_action){.project = plan->project,
	                              .step = plan->step[step].step,
	                              .slice = slice,
	                              .input = inputs.input,
	                              .inputs = inputs.count,
	                              .code = plan->step[step].code};
	tune->runner = &runner;
	tune->action = &action;
	status = leat_tune_threads(tune, err);
	leat_inputs_close(&inputs);
	return status;
}

enum leat_status
leat_build_tune(const struct leat_project *project, struct leat_cas *cas, const char *target, const atomic_bool *stop,
                struct leat_tune *tune, struct leat_err *err)
{
	struct leat_plan_targets targets = {&target, 1};
	struct leat_plan *plan = NULL;
	enum leat_status status = leat_cas_begin(cas, err);
	size_t step = 0, slice, len = strcspn(target, ":");

	if (status == LEAT_OK)
		status = open_plan(&plan, project, cas, &targets, true, err);
	if (status == LEAT_OK) {
		plan->writes = true;
		status = find_all(plan, err);
	}
	while (status == LEAT_OK &&
	       (strlen(project->step[step].name) != len || strncmp(project->step[step].name, target, len) != 0))
		step++;
	if (status == LEAT_OK)
		status = choose_slice(plan, &plan->step[step], &slice, err);
	if (status == LEAT_OK)
		status = tune_slice(plan, step, slice, stop, tune, err);
	leat_plan_close(plan);
	return status;
}
