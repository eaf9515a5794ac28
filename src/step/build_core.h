/* build_core.h - the parts of a build, which build.c puts together
 *
 * The caller's thread (the planner) owns the plan: it looks up what was made before and decides what is ready. Worker
 * threads take jobs from the queue, run them, and hand them back as finished. `lock` guards the queue, the finished
 * jobs and the free cpus; `event_lock` lets one listener be called at a time. No thread holds both. */
#ifndef LEAT_STEP_BUILD_CORE_H
#define LEAT_STEP_BUILD_CORE_H

#include <pthread.h>

#include "step/build.h"
#include "step/build_plan.h"
#include "step/executor.h"
#include "step/run_log.h"

/* An action that has to run. */
struct leat_job {
	uint32_t step, slice;
	float priority_s; /* expected time of it and of what depends on it */
};

/* Jobs that wait for a worker, longest first; equal ones in the order of steps and slices. */
struct leat_job_queue {
	struct leat_job *job;
	size_t count, cap;
};

enum leat_status leat_job_push(struct leat_job_queue *queue, struct leat_job job, struct leat_mem *mem,
                               struct leat_err *err);
struct leat_job leat_job_pop(struct leat_job_queue *queue); /* of a queue that is not empty */

/* A job that a worker is through with. */
enum leat_job_end { LEAT_JOB_MADE, LEAT_JOB_FAILED, LEAT_JOB_STOPPED, LEAT_JOB_BROKEN /* Leat itself failed */ };
struct leat_finished {
	struct leat_job job;
	enum leat_job_end end;
	bool same, differs; /* as the last output; from an earlier one with the same key */
	struct leat_digest key;
	struct leat_content output;
	struct leat_err why;
	struct leat_finished *next;
};

struct leat_builder {
	struct leat_plan *plan;
	struct leat_cas *cas;
	struct leat_mem *mem;
	const struct leat_build_options *options;
	struct leat_build_totals *totals;
	struct leat_run_log *log;            /* NULL: a dry run */
	unsigned jobs;                       /* cpus to use at a time */
	struct leat_executor *executor;      /* NULL: actions run here */
	struct leat_sandbox_pool *sandboxes; /* while workers run */
	bool is_watching;                    /* leat_staging_watch */
	size_t dry_runs;                     /* actions that would run */
	struct leat_err why;                 /* the first failure of an action */
	struct leat_job *next;               /* actions the planner looks at next, the last one first */
	size_t nexts, next_cap;

	pthread_mutex_t lock;
	pthread_cond_t work, news; /* for workers: there may be a job; for the planner: a job is finished */
	struct leat_job_queue queue;
	unsigned free_cpus, running;
	bool closed;  /* workers start nothing more */
	bool starved; /* a worker has no memory for its next job */
	struct leat_finished *first, **last;

	pthread_mutex_t event_lock;
};

/* ---- build_advance.c: the planner ---- */

/* Looks up all wanted actions whose inputs are there, and queues what has to run. */
enum leat_status leat_advance_begin(struct leat_builder *b, struct leat_err *err);
/* Goes on from a job that is finished: groups that are complete now, actions that are ready now or cannot run. */
enum leat_status leat_advance(struct leat_builder *b, const struct leat_finished *finished, struct leat_err *err);

/* ---- build_hash.c ---- */

enum leat_status leat_build_hash(struct leat_builder *b, struct leat_err *err); /* leat_plan_hash, watched */

/* ---- build_failures.c ---- */

/* Sets `failed` of each step whose last failure still counts; `done` is set. Only reads. */
enum leat_status leat_plan_failures(struct leat_plan *plan, struct leat_step_status *status, struct leat_err *err);

/* ---- build_run.c: workers ---- */

void leat_worker(void *builder, unsigned number);
unsigned leat_job_cpus(const struct leat_builder *b, const struct leat_job *job);

/* The inputs of an action with their paths. Those that had to be made are removed by leat_inputs_close. */
struct leat_inputs {
	struct leat_mem *mem;
	struct leat_input *input;
	char (*path)[PATH_MAX]; /* of files of the user */
	bool *made;
	uint32_t *alone; /* the one slice of a group without a list */
	size_t count;
};
enum leat_status leat_inputs_open(struct leat_inputs *inputs, const struct leat_plan *plan, size_t step, size_t slice,
                                  struct leat_err *err);
void leat_inputs_close(struct leat_inputs *inputs);

/* ---- build_links.c ---- */

/* Lets out/STEP show the results of all steps that are complete. */
enum leat_status leat_links_update(struct leat_builder *b, struct leat_err *err);

/* ---- events ---- */

void leat_builder_tell(struct leat_builder *b, struct leat_event *event); /* sets the time */

#endif
