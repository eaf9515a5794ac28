/* build_run.c - workers: each takes an action from its inputs to its manifest
 *
 * A worker takes the first job of the queue once enough cpus are free. It does not overtake: an action that needs all
 * cpus would wait for ever otherwise. */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "cas/gc.h"
#include "step/build_core.h"
#include "step/drift.h"
#include "step/kind.h"

enum { MAX_SLICE_TEXT = 1 << 16 };

/* One job in work. */
struct work {
	struct leat_builder *b;
	const struct leat_plan_step *s;
	const struct leat_job *job;
	struct leat_finished *finished;
	struct leat_inputs inputs;
	struct leat_action action;
	struct leat_key_fields fields;
	struct leat_order order;
	struct leat_str slice;
	struct leat_running running;
	struct leat_made last; /* of this step and slice */
	bool has_last;
	struct leat_manifest *last_made; /* of steps that make tables; NULL: none */
	char last_id[300];
	uint64_t number;
	unsigned attempts;
	double begun_s;
};

unsigned
leat_job_cpus(const struct leat_builder *b, const struct leat_job *job)
{
	unsigned cpus = b->plan->step[job->step].step->cpus;

	return cpus == 0 || cpus > b->jobs ? b->jobs : cpus;
}

static double
wall_clock(void)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* ---- events ---- */

static struct leat_event
event_of(struct work *w, enum leat_event_kind kind)
{
	return (struct leat_event){.kind = kind,
	                           .step = w->s->step,
	                           .slice = w->job->slice,
	                           .number = w->number,
	                           .count = 1,
	                           .running = &w->running,
	                           .expected_s = (double)w->s->action[w->job->slice].expected_s};
}

static struct leat_event
event_after(struct work *w, enum leat_event_kind kind, const struct leat_ran *ran)
{
	struct leat_event event = event_of(w, kind);

	event.seconds = ran->seconds;
	event.cpu_s = ran->cpu_s;
	event.log = ran->log;
	return event;
}

static void
warn(struct work *w, const char *why)
{
	struct leat_event event = event_of(w, LEAT_EVENT_WARNING);

	event.why = why;
	leat_builder_tell(w->b, &event);
}

/* "step 'decode', slice subject=3,bin=7, exited with 2; ...; see 'leat log decode-42'" */
static void
fail_action(struct work *w, const struct leat_ran *ran, const char *why)
{
	bool sliced = w->slice.len > 0;
	struct leat_event event = event_after(w, LEAT_EVENT_FAILED, ran);

	leat_err_clear(&w->finished->why);
	leat_err_set(&w->finished->why, LEAT_FUNCTION, "step '%s'%s%s: %s; see 'leat log %s-%llu'", w->s->step->name,
	             sliced ? ", slice " : "", leat_str_text(&w->slice), why, w->s->step->name,
	             (unsigned long long)w->number);
	w->finished->end = LEAT_JOB_FAILED;
	event.why = w->finished->why.text;
	leat_builder_tell(w->b, &event);
}

/* Of a command that failed because of rows that it lists in $out/rejects.jsonl, that list is kept until the next
 * attempt; nothing else of $out is. */
static bool
keep_rejects(struct work *w, const struct leat_ran *ran)
{
	const char *step = w->s->step->name, *slice = leat_str_text(&w->slice);
	struct leat_content rows = ran->rejects;
	struct leat_err why;
	enum leat_status status = LEAT_OK;

	leat_err_clear(&why);
	if (rows.kind == LEAT_CONTENT_NONE)
		status = leat_ran_take_rejects(ran, w->b->cas, &rows, &why);
	if (status == LEAT_OK && rows.kind == LEAT_CONTENT_NONE) {
		leat_rejects_drop(w->b->cas, step, slice);
		return false;
	}
	if (status == LEAT_OK)
		status = leat_rejects_keep(w->b->cas, step, slice, w->number, &rows, &why);
	if (status == LEAT_OK)
		return true;
	warn(w, why.text); /* of a full disk; the failure itself is what counts */
	return false;
}

static void
fail_attempt(struct work *w, const struct leat_ran *ran)
{
	char why[sizeof(ran->why) + 400];

	snprintf(why, sizeof(why), "%s", ran->why);
	if (keep_rejects(w, ran))
		snprintf(why + strlen(why), sizeof(why) - strlen(why),
		         "; 'leat show %.200s --rejects' lists all of them", w->s->step->name);
	fail_action(w, ran, why);
}

/* ---- before ---- */

/* What the table of this run is compared with. If it cannot be read, there is no drift. */
static void
find_last_profile(struct work *w)
{
	if (leat_cas_manifest(w->b->cas, &w->last.key, &w->last_made, NULL) != LEAT_OK || !*w->last_made->profile)
		return;
	snprintf(w->last_id, sizeof(w->last_id), "%.200s-%llu", w->s->step->name,
	         (unsigned long long)w->last_made->number);
	w->order.last_id = w->last_id;
	w->order.last_profile = w->last_made->profile;
}

static enum leat_status
prepare(struct work *w, struct leat_err *err)
{
	const struct leat_step *step = w->s->step;
	enum leat_status status = leat_inputs_open(&w->inputs, w->b->plan, w->job->step, w->job->slice, err);

	if (status != LEAT_OK)
		return status;
	w->action = (struct leat_action){.project = w->b->plan->project,
	                                 .step = step,
	                                 .slice = w->job->slice,
	                                 .input = w->inputs.input,
	                                 .inputs = w->inputs.count,
	                                 .code = w->s->code};
	status = leat_action_fields(&w->action, &w->fields, err);
	if (status == LEAT_OK)
		status = leat_order_make(&w->order, &w->action, leat_job_cpus(w->b, w->job), err);
	if (status == LEAT_OK)
		status = leat_index_next_number(w->b->cas, step->name, &w->number, err);
	leat_slice_text(&step->slices, w->job->slice, &w->slice);
	if (status == LEAT_OK && w->slice.failed)
		status = leat_fail_mem(err, w->b->mem, w->slice.len, "the values of a slice");
	if (status == LEAT_OK)
		w->has_last = leat_index_last(w->b->cas, step->name, leat_str_text(&w->slice), &w->last);
	if (status == LEAT_OK && w->has_last && step->kind->table)
		find_last_profile(w);
	w->begun_s = wall_clock();
	return status;
}

/* ---- after ---- */

/* Files that changed while it ran: nobody knows which bytes it read. */
static enum leat_status
check_inputs(struct work *w, struct leat_err *err)
{
	enum leat_status status = LEAT_OK;

	for (size_t i = 0; status == LEAT_OK && i < w->s->edges; i++)
		if (w->s->edge[i].up == SIZE_MAX)
			status = leat_files_check(w->b->plan, w->s, &w->s->edge[i], w->job->slice,
			                          &w->inputs.input[i].stamp, err);
	return status;
}

static enum leat_status
learn(struct work *w, const struct leat_ran *ran, struct leat_err *err)
{
	char folder[PATH_MAX] = "";
	enum leat_status status = LEAT_OK;

	if (ran->imports.kind != LEAT_CONTENT_NONE)
		status = leat_cas_view(w->b->cas, &ran->imports, folder, err);
	else if (*ran->sandbox && snprintf(folder, sizeof(folder), "%s/imports", ran->sandbox) >= (int)sizeof(folder))
		status = leat_fail(err, LEAT_IO, "the path '%s/imports' is too long", ran->sandbox);
	return status == LEAT_OK ? leat_code_learned(w->s->code, folder, ran->work, w->order.command, &w->fields, err)
	                         : status;
}

/* The same key gave other bytes before. */
static void
tell_difference(struct work *w, const struct leat_content *other)
{
	char was[LEAT_CONTENT_TEXT], now[LEAT_CONTENT_TEXT], why[400];

	snprintf(why, sizeof(why),
	         "is not deterministic: nothing in its key changed, but its output did (was %s, now %s); set its seed, "
	         "or "
	         "remove dates and random order from its output",
	         leat_content_text(other, was), leat_content_text(&w->finished->output, now));
	w->finished->differs = true;
	warn(w, why);
}

/* `learned`: how many of the fields are learned. */
static enum leat_status
record(struct work *w, const struct leat_ran *ran, size_t learned, struct leat_err *err)
{
	struct leat_content other = {.kind = LEAT_CONTENT_NONE};
	struct leat_manifest m = {.step = w->s->step->name,
	                          .slice = leat_str_text(&w->slice),
	                          .number = w->number,
	                          .output = w->finished->output,
	                          .log = ran->log,
	                          .run = leat_cas_run(w->b->cas),
	                          .begun_s = w->begun_s,
	                          .seconds = ran->seconds,
	                          .cpu_s = ran->cpu_s,
	                          .peak_bytes = ran->peak_bytes,
	                          .cpus = leat_job_cpus(w->b, w->job),
	                          .threads = ran->threads,
	                          .attempts = w->attempts,
	                          .metrics = ran->metrics ? ran->metrics : "",
	                          .warning = ran->warning,
	                          .profile = ran->profile ? ran->profile : ""};
	enum leat_status status;

	m.field = w->fields.field;
	m.fields = w->fields.count;
	m.learned = learned;
	status = leat_key_of(m.field, m.fields, &m.key, err);
	if (status == LEAT_OK)
		status = leat_cas_record(w->b->cas, &m, &other, err);
	if (status == LEAT_OK && other.kind != LEAT_CONTENT_NONE) {
		tell_difference(w, &other);
		if (leat_cas_has(w->b->cas, &other)) /* else it was lost, and the new one replaces it */
			w->finished->output = other; /* so that what follows stays as it is */
	}
	w->finished->key = m.key;
	return status;
}

static void
tell_made(struct work *w, const struct leat_ran *ran)
{
	struct leat_event event = event_after(w, w->finished->same ? LEAT_EVENT_SAME : LEAT_EVENT_RAN, ran);

	event.key = w->finished->key;
	event.output = w->finished->output;
	leat_builder_tell(w->b, &event);
}

/* False: the table drifted more than the checks allow, and the action failed. */
static bool
check_drift(struct work *w, const struct leat_ran *ran)
{
	char why[300], text[sizeof(why) + 300];
	enum leat_drift_verdict verdict = leat_drift_check(w->s->step, ran->profile, w->b->mem, why, sizeof(why));

	if (verdict == LEAT_DRIFT_FAILS && !w->b->options->accept_drift) {
		snprintf(text, sizeof(text),
		         "%s; its result is not kept. If it is right, run 'leat build %.200s --accept-drift'", why,
		         w->s->step->name);
		fail_action(w, ran, text);
		return false;
	}
	if (verdict != LEAT_DRIFT_HOLDS)
		warn(w, why);
	return true;
}

static enum leat_status
keep(struct work *w, const struct leat_ran *ran, struct leat_err *err)
{
	size_t known = w->fields.count;
	struct leat_err why;
	enum leat_status status;

	leat_err_clear(&why);
	status = check_inputs(w, &why) == LEAT_OK ? learn(w, ran, &why) : LEAT_DATA;
	if (status == LEAT_DATA) {
		char text[sizeof(why.text) + 80];

		snprintf(text, sizeof(text), "%s, so its result is not kept; run 'leat build' again", why.text);
		fail_action(w, ran, text);
		return LEAT_OK;
	}
	if (status == LEAT_OK && !check_drift(w, ran))
		return LEAT_OK;
	w->finished->output = ran->output;
	if (status == LEAT_OK && ran->output.kind == LEAT_CONTENT_NONE)
		status = leat_cas_take(w->b->cas, ran->out, &w->finished->output, &why);
	if (status == LEAT_DATA) { /* such as a socket, or a link that leaves the folder */
		fail_action(w, ran, why.text);
		return LEAT_OK;
	}
	if (status != LEAT_OK)
		return leat_fail_as(err, &why);
	status = record(w, ran, w->fields.count - known, err);
	if (status != LEAT_OK)
		return status;
	leat_rejects_drop(w->b->cas, w->s->step->name, leat_str_text(&w->slice));
	w->finished->end = LEAT_JOB_MADE;
	w->finished->same =
		!w->finished->differs && w->has_last && leat_content_equal(&w->last.output, &w->finished->output);
	if (*ran->warning)
		warn(w, ran->warning);
	tell_made(w, ran);
	return LEAT_OK;
}

/* ---- one job ---- */

/* Runs it once. *again: it failed, and may be tried once more. */
static enum leat_status
attempt(struct work *w, bool *again, struct leat_err *err)
{
	struct leat_runner runner = {.cas = w->b->cas, .pool = w->b->sandboxes, .stop = w->b->options->kill};
	struct leat_ran ran;
	enum leat_status status =
		w->b->executor ? leat_executor_run(w->b->executor, &w->order, runner.stop, &w->running, &ran, err)
			       : leat_runner_run(&runner, &w->order, &w->running, &ran, err);

	*again = false;
	w->attempts++;
	if (status == LEAT_OK && ran.outcome == LEAT_RAN) {
		status = keep(w, &ran, err);
		ran.kept = status == LEAT_OK && w->finished->end == LEAT_JOB_MADE;
	} else if (status == LEAT_OK && ran.outcome == LEAT_STOPPED) {
		w->finished->end = LEAT_JOB_STOPPED;
	} else if (status == LEAT_OK) {
		*again = ran.outcome != LEAT_WROTE_INPUT && w->attempts <= w->s->step->retries;
		if (*again) {
			struct leat_event event = event_after(w, LEAT_EVENT_RETRY, &ran);

			event.why = ran.why;
			leat_builder_tell(w->b, &event);
		} else {
			fail_attempt(w, &ran);
		}
	}
	leat_ran_end(&ran, w->b->mem);
	return status;
}

static bool
is_stopped(const struct leat_builder *b)
{
	return b->options->stop && atomic_load(b->options->stop);
}

static enum leat_status
run_attempts(struct work *w, struct leat_err *err)
{
	enum leat_status status;
	bool again;

	do
		status = attempt(w, &again, err);
	while (status == LEAT_OK && again && !is_stopped(w->b));
	if (again)
		w->finished->end = LEAT_JOB_STOPPED;
	return status;
}

/* Every action that started has an event at its end. */
static void
tell_stopped(struct work *w, enum leat_status status, const struct leat_err *why)
{
	struct leat_event event = event_of(w, LEAT_EVENT_STOPPED);

	if (status == LEAT_OK && w->finished->end != LEAT_JOB_STOPPED)
		return;
	if (status != LEAT_OK)
		event.why = why->text;
	leat_builder_tell(w->b, &event);
}

static void
run_job(struct leat_builder *b, struct leat_finished *finished)
{
	struct work w = {.b = b,
	                 .s = &b->plan->step[finished->job.step],
	                 .job = &finished->job,
	                 .finished = finished,
	                 .fields = {.mem = b->mem}};
	struct leat_err err;
	enum leat_status status;

	leat_err_clear(&err);
	leat_str_init(&w.slice, b->mem, MAX_SLICE_TEXT);
	leat_running_init(&w.running);
	status = prepare(&w, &err);
	if (status == LEAT_OK) {
		struct leat_event start = event_of(&w, LEAT_EVENT_START);

		leat_builder_tell(b, &start);
		status = run_attempts(&w, &err);
		tell_stopped(&w, status, &err);
	}
	if (status == LEAT_END) { /* while an input was fetched */
		finished->end = LEAT_JOB_STOPPED;
	} else if (status != LEAT_OK) {
		finished->end = LEAT_JOB_BROKEN;
		finished->why = err;
		finished->why.status = status;
	}
	leat_running_end(&w.running);
	leat_manifest_free(w.last_made, b->mem);
	leat_key_fields_clear(&w.fields);
	leat_free(b->mem, w.fields.field);
	leat_inputs_close(&w.inputs);
	leat_str_free(&w.slice);
	leat_order_free(&w.order);
}

/* ---- workers ---- */

static bool
can_start(const struct leat_builder *b)
{
	return b->queue.count > 0 && leat_job_cpus(b, &b->queue.job[0]) <= b->free_cpus;
}

/* Waits for a job; NULL: the build ends. */
static struct leat_finished *
take_job(struct leat_builder *b)
{
	struct leat_finished *finished = leat_alloc(b->mem, sizeof(*finished));

	pthread_mutex_lock(&b->lock);
	if (!finished) {
		b->starved = true;
		pthread_cond_signal(&b->news);
	}
	while (finished && !b->closed && !can_start(b))
		pthread_cond_wait(&b->work, &b->lock);
	if (is_stopped(b)) /* the planner may not have seen it yet */
		b->closed = true;
	if (!finished || b->closed) {
		pthread_mutex_unlock(&b->lock);
		leat_free(b->mem, finished);
		return NULL;
	}
	finished->job = leat_job_pop(&b->queue);
	b->free_cpus -= leat_job_cpus(b, &finished->job);
	b->running++;
	pthread_mutex_unlock(&b->lock);
	return finished;
}

static void
hand_back(struct leat_builder *b, struct leat_finished *finished)
{
	pthread_mutex_lock(&b->lock);
	b->free_cpus += leat_job_cpus(b, &finished->job);
	b->running--;
	if (finished->end == LEAT_JOB_FAILED && !b->options->keep_going)
		b->closed = true; /* before anybody takes the next job */
	*b->last = finished;
	b->last = &finished->next;
	pthread_cond_signal(&b->news);
	pthread_cond_broadcast(&b->work);
	pthread_mutex_unlock(&b->lock);
}

void
leat_worker(void *builder, unsigned number)
{
	struct leat_builder *b = builder;
	struct leat_finished *finished;

	(void)number;
	while ((finished = take_job(b)) != NULL) {
		run_job(b, finished);
		hand_back(b, finished);
	}
}
