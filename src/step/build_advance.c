/* build_advance.c - what is ready, what was made before, what cannot run
 *
 * An action is ready when the groups of all its edges are complete. Then it is looked up: if it was made before, its
 * output completes its readers' groups at once, without a process or a file. So a build in which nothing changed
 * ends here, and an action whose output is the old one cuts off what follows. What is ready, or cannot
 * run, waits in a list, not on the stack: chains of steps may be long. Called by the planner's thread. */
#include <math.h>

#include "base/array.h"
#include "step/build_core.h"

enum { LISTED_ACTIONS = 1000 }; /* of a step with more, cached actions are counted, not listed */

static enum leat_status
look_at_next(struct leat_builder *b, size_t step, size_t slice, struct leat_err *err)
{
	enum leat_status status =
		LEAT_GROW(b->mem, b->next, b->next_cap, b->nexts + 1, SIZE_MAX, "the actions that are ready", err);

	if (status == LEAT_OK)
		b->next[b->nexts++] = (struct leat_job){.step = (uint32_t)step, .slice = (uint32_t)slice};
	return status;
}

/* ---- made ---- */

static enum leat_status
complete_group(struct leat_builder *b, const struct leat_plan_out *out, uint32_t group, struct leat_err *err)
{
	struct leat_plan_step *s = &b->plan->step[out->step];
	struct leat_plan_edge *edge = &s->edge[out->edge];
	enum leat_status status = leat_plan_gather(b->plan, s, edge, group, err);

	for (uint32_t i = leat_members_count(&edge->users, group); status == LEAT_OK && i-- > 0;) {
		uint32_t user = leat_members_at(&edge->users, group, i);

		if (s->action[user].state == LEAT_ACTION_WAITS && --s->action[user].waits == 0)
			status = look_at_next(b, out->step, user, err);
	}
	return status;
}

static enum leat_status
made(struct leat_builder *b, size_t step, size_t slice, const struct leat_content *output, struct leat_err *err)
{
	struct leat_plan_step *s = &b->plan->step[step];
	enum leat_status status = LEAT_OK;

	s->action[slice].state = LEAT_ACTION_MADE;
	s->action[slice].output = *output;
	for (size_t i = s->outs; status == LEAT_OK && i-- > 0;) {
		struct leat_plan_edge *edge = &b->plan->step[s->out[i].step].edge[s->out[i].edge];
		uint32_t group = leat_group_of(edge->groups.up, slice);

		if (group == LEAT_NO_GROUP || edge->pending[group] == LEAT_NO_GROUP)
			continue;
		if (--edge->pending[group] == 0)
			status = complete_group(b, &s->out[i], group, err);
	}
	return status;
}

/* ---- ready ---- */

static enum leat_status
cached(struct leat_builder *b, size_t step, size_t slice, const struct leat_made *was, struct leat_err *err)
{
	struct leat_plan_step *s = &b->plan->step[step];

	b->totals->cached++;
	b->totals->saved_s += was->seconds;
	if (s->step->slices.count <= LISTED_ACTIONS) {
		leat_builder_tell(b, &(struct leat_event){.kind = LEAT_EVENT_CACHED,
		                                          .step = s->step,
		                                          .slice = slice,
		                                          .number = was->number,
		                                          .count = 1,
		                                          .key = was->key,
		                                          .output = was->output,
		                                          .seconds = was->seconds});
	} else {
		s->cached++;
		s->saved_s += was->seconds;
	}
	return made(b, step, slice, &was->output, err);
}

/* One line for the actions of each large step that were found since the last call. */
static void
tell_cached(struct leat_builder *b)
{
	for (size_t i = 0; i < b->plan->project->steps; i++) {
		struct leat_plan_step *s = &b->plan->step[i];

		if (s->cached)
			leat_builder_tell(b, &(struct leat_event){.kind = LEAT_EVENT_CACHED,
			                                          .step = s->step,
			                                          .slice = SIZE_MAX,
			                                          .count = s->cached,
			                                          .seconds = s->saved_s});
		s->cached = 0;
		s->saved_s = 0;
	}
}

static double
expected(struct leat_builder *b, const struct leat_step *step, size_t slice)
{
	struct leat_made last;
	struct leat_str text;
	bool found;

	leat_str_init(&text, b->mem, 1 << 16);
	leat_slice_text(&step->slices, slice, &text);
	found = leat_index_last(b->cas, step->name, leat_str_text(&text), &last);
	leat_str_free(&text);
	return found ? (double)last.seconds : 0;
}

static void
expect(struct leat_builder *b, struct leat_plan_step *s, size_t slice)
{
	double seconds = expected(b, s->step, slice);

	s->action[slice].expected_s = (float)seconds;
	s->expected_s += seconds;
	s->known += seconds > 0;
}

static double
mean_s(const struct leat_plan_step *s)
{
	return s->known ? s->expected_s / (double)s->known : 0;
}

/* An action that never ran is expected to take as long as the others of its step. */
static float
priority(const struct leat_plan_step *s, size_t slice)
{
	double seconds = (double)s->action[slice].expected_s;

	return (float)((seconds > 0 ? seconds : mean_s(s)) + s->tail_s);
}

static enum leat_status
queue(struct leat_builder *b, size_t step, size_t slice, struct leat_err *err)
{
	struct leat_plan_step *s = &b->plan->step[step];
	enum leat_status status;

	s->action[slice].state = LEAT_ACTION_STALE;
	if (b->options->dry) {
		b->dry_runs++;
		return LEAT_OK;
	}
	pthread_mutex_lock(&b->lock);
	status = leat_job_push(&b->queue, (struct leat_job){(uint32_t)step, (uint32_t)slice, priority(s, slice)},
	                       b->mem, err);
	pthread_cond_signal(&b->work);
	pthread_mutex_unlock(&b->lock);
	return status;
}

static enum leat_status
ready(struct leat_builder *b, size_t step, size_t slice, struct leat_err *err)
{
	struct leat_plan_step *s = &b->plan->step[step];
	struct leat_action action;
	struct leat_digest stem;
	struct leat_made was;
	enum leat_status status = LEAT_END;

	if (leat_plan_lacks_file(s, slice))
		return LEAT_OK;
	if (!(b->options->again && s->action[slice].target)) {
		leat_plan_action(b->plan, step, slice, &action);
		status = leat_action_find(&action, b->cas, &stem, &was, err);
	}
	if (status == LEAT_OK)
		return cached(b, step, slice, &was, err);
	return status == LEAT_END ? queue(b, step, slice, err) : status;
}

static enum leat_status
ready_all(struct leat_builder *b, struct leat_err *err)
{
	enum leat_status status = LEAT_OK;

	while (status == LEAT_OK && b->nexts > 0) {
		struct leat_job job = b->next[--b->nexts];

		status = ready(b, job.step, job.slice, err);
	}
	return status;
}

/* ---- failed ---- */

/* What reads this group cannot run, nor can its readers: they are looked at next. */
static enum leat_status
skip_users(struct leat_builder *b, const struct leat_plan_out *out, uint32_t group, struct leat_err *err)
{
	struct leat_plan_step *reader = &b->plan->step[out->step];
	const struct leat_members *users = &reader->edge[out->edge].users;
	enum leat_status status = LEAT_OK;
	size_t count = 0;

	for (uint32_t i = 0; status == LEAT_OK && i < leat_members_count(users, group); i++) {
		uint32_t user = leat_members_at(users, group, i);

		if (reader->action[user].state != LEAT_ACTION_WAITS)
			continue;
		reader->action[user].state = LEAT_ACTION_SKIPPED;
		count++;
		status = look_at_next(b, out->step, user, err);
	}
	b->totals->skipped += count;
	if (count)
		leat_builder_tell(b, &(struct leat_event){.kind = LEAT_EVENT_SKIPPED,
		                                          .step = reader->step,
		                                          .slice = SIZE_MAX,
		                                          .count = count});
	return status;
}

static enum leat_status
skip_readers(struct leat_builder *b, const struct leat_job *failed, struct leat_err *err)
{
	enum leat_status status = look_at_next(b, failed->step, failed->slice, err);

	while (status == LEAT_OK && b->nexts > 0) {
		struct leat_job job = b->next[--b->nexts];
		const struct leat_plan_step *s = &b->plan->step[job.step];

		for (size_t i = 0; status == LEAT_OK && i < s->outs; i++) {
			const struct leat_plan_edge *edge = &b->plan->step[s->out[i].step].edge[s->out[i].edge];
			uint32_t group = leat_group_of(edge->groups.up, job.slice);

			if (group != LEAT_NO_GROUP)
				status = skip_users(b, &s->out[i], group, err);
		}
	}
	return status;
}

/* ---- begin, and go on ---- */

/* What has not been made yet, and how long it took the last time. */
static void
tell_planned(struct leat_builder *b, struct leat_plan_step *s)
{
	size_t count = 0;

	for (size_t i = 0; i < s->step->slices.count; i++)
		count += s->action[i].state == LEAT_ACTION_WAITS || s->action[i].state == LEAT_ACTION_STALE;
	if (count)
		leat_builder_tell(b, &(struct leat_event){.kind = LEAT_EVENT_PLANNED,
		                                          .step = s->step,
		                                          .slice = SIZE_MAX,
		                                          .count = count,
		                                          .expected_s = s->expected_s});
}

/* Times of earlier runs, of all actions that may have to run. Steps come downstream first: tail_s is what depends on a
 * step, on the longest way to the end. */
static void
expect_all(struct leat_builder *b)
{
	for (size_t i = b->plan->project->steps; i-- > 0;) {
		struct leat_plan_step *s = &b->plan->step[b->plan->project->order[i]];

		for (size_t slice = 0; slice < s->step->slices.count; slice++)
			if (s->action[slice].state == LEAT_ACTION_WAITS || s->action[slice].state == LEAT_ACTION_STALE)
				expect(b, s, slice);
		for (size_t o = 0; o < s->outs; o++) {
			const struct leat_plan_step *reader = &b->plan->step[s->out[o].step];

			s->tail_s = fmax(s->tail_s, mean_s(reader) + reader->tail_s);
		}
	}
}

/* Jobs were queued while the times were not known yet. */
static enum leat_status
order_queue(struct leat_builder *b, struct leat_err *err)
{
	struct leat_job_queue sorted = {0};
	enum leat_status status = LEAT_OK;

	pthread_mutex_lock(&b->lock);
	for (size_t i = 0; status == LEAT_OK && i < b->queue.count; i++) {
		struct leat_job job = b->queue.job[i];

		job.priority_s = priority(&b->plan->step[job.step], job.slice);
		status = leat_job_push(&sorted, job, b->mem, err);
	}
	leat_free(b->mem, b->queue.job);
	b->queue = sorted;
	pthread_mutex_unlock(&b->lock);
	return status;
}

enum leat_status
leat_advance_begin(struct leat_builder *b, struct leat_err *err)
{
	enum leat_status status = LEAT_OK;

	for (size_t i = 0; i < b->plan->project->steps; i++) {
		size_t step = b->plan->project->order[i];
		struct leat_plan_step *s = &b->plan->step[step];

		b->totals->actions += s->wanted;
		for (size_t slice = 0; status == LEAT_OK && slice < s->step->slices.count; slice++)
			if (s->action[slice].state == LEAT_ACTION_WAITS && s->action[slice].waits == 0)
				if ((status = ready(b, step, slice, err)) == LEAT_OK)
					status = ready_all(b, err);
	}
	tell_cached(b);
	if (status != LEAT_OK || b->totals->cached == b->totals->actions)
		return status;
	expect_all(b);
	for (size_t i = 0; i < b->plan->project->steps; i++)
		tell_planned(b, &b->plan->step[b->plan->project->order[i]]);
	return order_queue(b, err);
}

enum leat_status
leat_advance(struct leat_builder *b, const struct leat_finished *finished, struct leat_err *err)
{
	const struct leat_job *job = &finished->job;
	enum leat_status status = LEAT_OK;

	if (finished->end == LEAT_JOB_MADE) {
		b->totals->ran++;
		b->totals->same += finished->same;
		b->totals->differ += finished->differs;
		status = made(b, job->step, job->slice, &finished->output, err);
		if (status == LEAT_OK)
			status = ready_all(b, err);
	} else if (finished->end == LEAT_JOB_FAILED) {
		b->totals->failed++;
		b->plan->step[job->step].action[job->slice].state = LEAT_ACTION_FAILED;
		status = skip_readers(b, job, err);
	} else if (finished->end == LEAT_JOB_BROKEN) {
		status = leat_fail_as(err, &finished->why);
	}
	tell_cached(b);
	return status;
}
