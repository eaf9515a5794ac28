/* build.c - see build.h */
#include "step/build.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/threads.h"
#include "step/budget.h"
#include "step/build_core.h"

enum { POLL_NS = 50 * 1000 * 1000 }; /* how soon a request to stop is seen */

/* ---- events ---- */

void
leat_builder_tell(struct leat_builder *b, struct leat_event *event)
{
	struct timespec t;

	pthread_mutex_lock(&b->event_lock);
	clock_gettime(CLOCK_REALTIME, &t);
	event->at_s = (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
	if (b->log)
		leat_run_log_event(b->log, event);
	if (b->options->listen)
		b->options->listen(b->options->arg, event);
	pthread_mutex_unlock(&b->event_lock);
}

/* ---- the planner's loop ---- */

static void
close_queue(struct leat_builder *b)
{
	pthread_mutex_lock(&b->lock);
	b->closed = true;
	pthread_cond_broadcast(&b->work);
	pthread_mutex_unlock(&b->lock);
}

/* With the lock. */
static void
wait_for_news(struct leat_builder *b)
{
	struct timespec until;

	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_nsec += POLL_NS;
	if (until.tv_nsec >= 1000000000) {
		until.tv_nsec -= 1000000000;
		until.tv_sec++;
	}
	pthread_cond_timedwait(&b->news, &b->lock, &until);
}

static bool
is_stopped(const struct leat_builder *b)
{
	return (b->options->stop && atomic_load(b->options->stop)) ||
	       (b->options->kill && atomic_load(b->options->kill));
}

/* The next job that is finished. NULL: none runs, and none will be started. */
static struct leat_finished *
next_finished(struct leat_builder *b)
{
	struct leat_finished *finished;

	pthread_mutex_lock(&b->lock);
	for (;;) {
		if (is_stopped(b) || b->starved)
			b->closed = true;
		finished = b->first;
		if (finished || (b->running == 0 && (b->closed || b->queue.count == 0)))
			break;
		wait_for_news(b);
	}
	if (finished) {
		b->first = finished->next;
		if (!b->first)
			b->last = &b->first;
	}
	pthread_mutex_unlock(&b->lock);
	return finished;
}

static enum leat_status
settle(struct leat_builder *b, const struct leat_finished *finished, struct leat_err *err)
{
	enum leat_status status = leat_advance(b, finished, err);

	if (finished->end == LEAT_JOB_FAILED && b->why.status == LEAT_OK)
		b->why = finished->why;
	if (status != LEAT_OK)
		close_queue(b);
	return status;
}

static enum leat_status
settle_all(struct leat_builder *b, struct leat_err *err)
{
	enum leat_status status = LEAT_OK;
	struct leat_finished *finished;

	while ((finished = next_finished(b)) != NULL) {
		enum leat_status s = settle(b, finished, err);

		if (status == LEAT_OK)
			status = s;
		leat_free(b->mem, finished);
	}
	if (status == LEAT_OK && b->starved)
		status = leat_fail_mem(err, b->mem, sizeof(*finished), "an action");
	return status;
}

static enum leat_status
start_guard(struct leat_builder *b, struct leat_guard *guard, struct leat_err *err)
{
	char folder[PATH_MAX];

	if (snprintf(folder, sizeof(folder), "%s/tmp/%s", leat_cas_folder(b->cas), leat_cas_run(b->cas)) >= PATH_MAX)
		return leat_fail(err, LEAT_IO, "the path '%s' is too long", leat_cas_folder(b->cas));
	return leat_guard_start(guard, folder, err);
}

/* Where the actions run: on a cluster, or here, under a guard and in sandboxes that are used again. */
static enum leat_status
open_place(struct leat_builder *b, struct leat_guard *guard, struct leat_err *err)
{
	const char *on = b->options->on;
	enum leat_status status;

	if (on && *on && strcmp(on, "local") != 0) {
		status = leat_executor_open(&b->executor, b->cas, b->mem, on, err);
		if (status == LEAT_OK && (b->options->jobs == 0 || leat_executor_cpus(b->executor) < b->options->jobs))
			b->jobs = leat_executor_cpus(b->executor);
		else if (status == LEAT_OK)
			b->jobs = b->options->jobs;
		b->free_cpus = b->jobs;
		return status;
	}
	status = start_guard(b, guard, err);
	return status == LEAT_OK ? leat_sandbox_pool_open(&b->sandboxes, b->mem, b->jobs, err) : status;
}

static enum leat_status
run_jobs(struct leat_builder *b, struct leat_err *err)
{
	size_t left = b->totals->actions - b->totals->cached;
	struct leat_threads workers = {0};
	struct leat_guard guard = {0};
	enum leat_status status;
	unsigned count;

	if (b->queue.count == 0)
		return LEAT_OK;
	status = open_place(b, &guard, err);
	count = left < b->jobs ? (unsigned)left : b->jobs;
	if (status == LEAT_OK)
		status = leat_threads_start(&workers, b->mem, count, "leat-step", leat_worker, b, err);
	if (status == LEAT_OK) {
		status = settle_all(b, err);
		close_queue(b);
		leat_threads_join(&workers);
	}
	leat_executor_close(b->executor);
	leat_sandbox_pool_close(b->sandboxes);
	b->executor = NULL;
	b->sandboxes = NULL;
	leat_guard_end(&guard);
	return status;
}

/* ---- a build ---- */

static void
builder_init(struct leat_builder *b, const struct leat_project *project, struct leat_cas *cas,
             const struct leat_build_options *options, struct leat_build_totals *totals)
{
	pthread_condattr_t monotonic;

	*b = (struct leat_builder){.cas = cas, .mem = project->mem, .options = options, .totals = totals};
	b->jobs = leat_budget_cpus(options->jobs);
	b->free_cpus = b->jobs;
	b->last = &b->first;
	pthread_mutex_init(&b->lock, NULL);
	pthread_mutex_init(&b->event_lock, NULL);
	pthread_cond_init(&b->work, NULL);
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&b->news, &monotonic);
	pthread_condattr_destroy(&monotonic);
}

static void
builder_end(struct leat_builder *b)
{
	if (b->is_watching)
		leat_staging_unwatch(b->plan->project->staging);
	leat_plan_close(b->plan);
	leat_run_log_close(b->log);
	leat_free(b->mem, b->queue.job);
	leat_free(b->mem, b->next);
	pthread_cond_destroy(&b->work);
	pthread_cond_destroy(&b->news);
	pthread_mutex_destroy(&b->lock);
	pthread_mutex_destroy(&b->event_lock);
}

/* Fetching needs the run's folder, and somebody who ends it. */
static enum leat_status
begin_fetching(struct leat_builder *b, struct leat_staging *staging, struct leat_err *err)
{
	const struct leat_build_options *o = b->options;
	enum leat_status status = o->dry ? LEAT_OK : leat_cas_begin(b->cas, err);

	if (status == LEAT_OK)
		status = leat_staging_watch(staging, o->stop, o->hashing, err);
	b->is_watching = status == LEAT_OK;
	b->plan->fetches = !o->dry;
	return status;
}

/* Errors of the user's come first: a run that cannot begin leaves no log. */
static enum leat_status
begin(struct leat_builder *b, const struct leat_project *project, struct leat_err *err)
{
	const struct leat_build_options *o = b->options;
	struct leat_plan_targets targets = {o->target, o->targets};
	enum leat_status status = leat_plan_open(&b->plan, project, b->cas, &targets, err);

	if (status == LEAT_OK && project->staging)
		status = begin_fetching(b, project->staging, err);
	if (status == LEAT_OK)
		status = leat_build_hash(b, err);
	if (status == LEAT_OK && !o->dry && !leat_cas_run(b->cas))
		status = leat_cas_begin(b->cas, err);
	if (status == LEAT_OK && !o->dry)
		status = leat_run_log_open(&b->log, b->cas, project, o, err);
	if (status != LEAT_OK)
		return status;
	b->plan->writes = !o->dry;
	leat_builder_tell(b, &(struct leat_event){.kind = LEAT_EVENT_BEGIN,
	                                          .count = b->jobs,
	                                          .plan = b->plan,
	                                          .run = o->dry ? NULL : leat_cas_run(b->cas)});
	return leat_plan_code(b->plan, err);
}

static enum leat_status
outcome(struct leat_builder *b, enum leat_status status, struct leat_err *err)
{
	const struct leat_build_totals *t = b->totals;

	if (status != LEAT_OK)
		return status;
	if (b->why.status != LEAT_OK)
		return leat_fail_as(err, &b->why);
	if (is_stopped(b) && t->cached + t->ran < t->actions)
		return LEAT_END;
	return LEAT_OK;
}

/* How a build ended, for its log. */
static const char *
end_state(const struct leat_builder *b, enum leat_status status)
{
	if (b->options->dry)
		return NULL;
	if (status == LEAT_OK)
		return "done";
	return b->why.status == status ? "failed" : status == LEAT_END ? "stopped" : "broken";
}

enum leat_status
leat_build(const struct leat_project *project, struct leat_cas *cas, const struct leat_build_options *options,
           struct leat_build_totals *totals, struct leat_err *err)
{
	uint64_t begun = leat_now();
	struct leat_builder b;
	enum leat_status status;
	bool told;

	*totals = (struct leat_build_totals){0};
	builder_init(&b, project, cas, options, totals);
	status = begin(&b, project, err);
	told = b.log || (status == LEAT_OK && options->dry);
	if (status == LEAT_OK)
		status = leat_advance_begin(&b, err);
	if (status == LEAT_OK && !options->dry)
		status = run_jobs(&b, err);
	if (status == LEAT_OK)
		status = leat_links_update(&b, err);
	totals->seconds = (double)(leat_now() - begun) * 1e-9;
	status = outcome(&b, status, err);
	if (told)
		leat_builder_tell(
			&b,
			&(struct leat_event){.kind = LEAT_EVENT_END, .totals = totals, .state = end_state(&b, status)});
	builder_end(&b);
	return status;
}
