/* build_failures.c - what failed last: the newest failure of each step, from the logs of builds
 *
 * A failure counts as long as its slice is not made, and nothing newer was made of it. Numbers of a step's actions
 * grow, so the index tells which is newer, and only logs of builds in which something failed are read whole. Logs are
 * hostile: what names no slice of the project is left out. */
#include <stdlib.h>
#include <string.h>

#include "step/build_core.h"

enum { LOOK_BACK = 1000 }; /* builds */

struct failures {
	struct leat_plan *plan;
	struct leat_step_status *status;
	bool *settled; /* by step: a newer build tells, or nothing is left to make */
	size_t open;   /* steps that are not settled */
	bool *found;   /* by step: in this build */
};

/* The number of "decode-42"; 0: it is not an id. */
static uint64_t
number_of(const char *id)
{
	const char *dash = strrchr(id, '-');

	return dash ? strtoull(dash + 1, NULL, 10) : 0;
}

static bool
still_counts(const struct failures *f, size_t step, const struct leat_run_line *line)
{
	const struct leat_plan_step *s = &f->plan->step[step];
	struct leat_made last;
	size_t slice = 0;

	if (*line->slice && leat_slice_find(&s->step->slices, line->slice, &slice, NULL) != LEAT_OK)
		return false;
	if ((*line->slice == '\0') != (s->step->slices.variables == 0) || s->action[slice].state == LEAT_ACTION_MADE)
		return false;
	return !leat_index_last(f->plan->cas, s->step->name, line->slice, &last) || last.number < number_of(line->id);
}

static enum leat_status
look(void *arg, const struct leat_run_line *line, struct leat_err *err)
{
	struct failures *f = arg;
	const struct leat_step *step;
	size_t i;

	(void)err;
	if (strcmp(line->event, "failed") != 0 ||
	    leat_project_find(f->plan->project, line->step, &step, NULL) != LEAT_OK)
		return LEAT_OK;
	i = (size_t)(step - f->plan->project->step);
	if (f->settled[i] || !still_counts(f, i, line))
		return LEAT_OK;
	leat_show(f->status[i].failed, sizeof(f->status[i].failed), line->why, strlen(line->why));
	f->found[i] = true; /* the last one of this build is shown */
	return LEAT_OK;
}

static enum leat_status
is_clean(void *arg, const struct leat_run_line *line, struct leat_err *err)
{
	(void)err;
	*(bool *)arg = strcmp(line->event, "end") == 0 && line->failed == 0;
	return LEAT_OK;
}

static enum leat_status
search_run(struct failures *f, const char *run, struct leat_err *err)
{
	struct leat_cas *cas = f->plan->cas;
	bool clean = false;
	enum leat_status status = leat_run_last_line(cas, run, &(struct leat_run_lines_reader){is_clean, &clean}, err);

	if (status == LEAT_OK && !clean)
		status = leat_run_lines(cas, run, &(struct leat_run_lines_reader){look, f}, err);
	for (size_t i = 0; !clean && i < f->plan->project->steps; i++) {
		f->open -= f->found[i];
		f->settled[i] |= f->found[i];
		f->found[i] = false;
	}
	return status;
}

static enum leat_status
search_runs(struct failures *f, struct leat_err *err)
{
	struct leat_paths runs = {0};
	enum leat_status status = LEAT_OK;

	for (size_t i = 0; i < f->plan->project->steps; i++) {
		f->settled[i] = f->status[i].done == f->plan->step[i].step->slices.count;
		f->open += !f->settled[i];
	}
	if (f->open)
		status = leat_runs_list(f->plan->cas, f->plan->mem, &runs, err);
	for (size_t i = 0; i < runs.count && i < LOOK_BACK && f->open && status == LEAT_OK; i++)
		status = search_run(f, runs.path[i], err);
	leat_paths_free(&runs, f->plan->mem);
	return status;
}

enum leat_status
leat_plan_failures(struct leat_plan *plan, struct leat_step_status *status, struct leat_err *err)
{
	struct failures f = {.plan = plan, .status = status};
	enum leat_status s = LEAT_OK;

	f.settled = leat_alloc_array(plan->mem, plan->project->steps, sizeof(*f.settled));
	f.found = leat_alloc_array(plan->mem, plan->project->steps, sizeof(*f.found));
	if (!f.settled || !f.found)
		s = leat_fail_mem(err, plan->mem, 2 * plan->project->steps, "what failed last");
	if (s == LEAT_OK)
		s = search_runs(&f, err);
	leat_free(plan->mem, f.settled);
	leat_free(plan->mem, f.found);
	return s;
}
