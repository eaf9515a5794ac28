/* build.h - run what changed
 *
 * Threads: the caller plans, finds what was made before, and hands what has to run to worker threads, each of which
 * takes one action from its sandbox to its manifest. The sum of the cpus of running actions never exceeds `jobs`.
 * Listeners are called by the caller's thread or a worker, one at a time. */
#ifndef LEAT_STEP_BUILD_H
#define LEAT_STEP_BUILD_H

#include "step/runner.h"

enum leat_event_kind {
	LEAT_EVENT_BEGIN,   /* the run has its name */
	LEAT_EVENT_PLANNED, /* `count` actions of `step` may have to run; `expected_s`: of those that ran before */
	LEAT_EVENT_CACHED,  /* `count` actions of `step` were made before (slice: SIZE_MAX if several) */
	LEAT_EVENT_START,   /* an action runs: `running` may be read until its end */
	LEAT_EVENT_RETRY,   /* it failed, and is tried again; `why` */
	LEAT_EVENT_RAN,     /* made, with another output than last time, or for the first time */
	LEAT_EVENT_SAME,    /* made, and its output is the old one: what follows is cut off */
	LEAT_EVENT_FAILED,  /* `why` */
	LEAT_EVENT_STOPPED, /* it was ended with the build; `why` if Leat itself failed */
	LEAT_EVENT_SKIPPED, /* `count` actions cannot run, because an input failed */
	LEAT_EVENT_WARNING, /* of an action: `why`, such as more threads than cpus, or nondeterministic */
	LEAT_EVENT_RESULT,  /* all slices of `step` are made: `output` is what out/STEP shows */
	LEAT_EVENT_END,     /* of the run: totals */
};

struct leat_build_totals {
	size_t actions, cached, ran, same, failed, skipped;
	size_t differ;           /* of those that ran: other output than an earlier run with the same key */
	double seconds, saved_s; /* saved: what the cached ones took when they ran */
};

struct leat_plan;
struct leat_event {
	enum leat_event_kind kind;
	double at_s; /* since 1970 */
	const struct leat_step *step;
	size_t slice;
	uint64_t number; /* the action's id, once it has one */
	size_t count;
	struct leat_digest key;
	struct leat_content output;
	struct leat_digest log; /* what it printed: of RAN, SAME, RETRY and FAILED; all zero: nothing is kept */
	double seconds, expected_s, cpu_s; /* expected: from earlier runs; 0: unknown */
	const char *why;
	struct leat_running *running;
	const char *run;                        /* of BEGIN: its name; NULL: a dry run */
	const struct leat_plan *plan;           /* of BEGIN: what is wanted of each step */
	const struct leat_build_totals *totals; /* of END */
	const char *state;                      /* of END: "done", "failed", "stopped" or "broken"; NULL: a dry run */
};

struct leat_build_options {
	const char *const *target; /* steps, or STEP:SLICE; none: all */
	size_t targets;
	unsigned jobs;           /* cpus to use at once; 0: all that this process may use, or all of the cluster */
	const char *on;          /* where actions run (step/executor.h); NULL or "local": here */
	bool keep_going;         /* go on with what does not depend on a failure */
	bool again;              /* run the targets although they were made before, and compare */
	bool accept_drift;       /* checks of drift only warn */
	bool dry;                /* plan only: counts what would run */
	const atomic_bool *stop; /* start nothing more; what runs is finished */
	const atomic_bool *kill; /* end what runs, too */
	struct leat_hashing
		*hashing; /* NULL, or how far hashing of sources is, until the first event; `stop` is set here */
	void (*listen)(void *arg, const struct leat_event *event);
	void *arg;
};

/* Opens the content store `folder` for a build, after ending the processes that killed builds left behind. */
enum leat_status leat_build_store(struct leat_cas **cas, struct leat_mem *mem, const char *folder,
                                  struct leat_err *err);
/* LEAT_FUNCTION: an action failed; LEAT_STOPPED is not a status: a stopped build returns LEAT_END. */
enum leat_status leat_build(const struct leat_project *project, struct leat_cas *cas,
                            const struct leat_build_options *options, struct leat_build_totals *totals,
                            struct leat_err *err);

/* Measures how many threads an action of `target` (STEP or STEP:SLICE) should have (tune_threads.h). `runner` and
 * `action` of `tune` are set here. LEAT_DATA: its inputs are not made yet. */
struct leat_tune;
enum leat_status leat_build_tune(const struct leat_project *project, struct leat_cas *cas, const char *target,
                                 const atomic_bool *stop, struct leat_tune *tune, struct leat_err *err);

/* Names of a run's state for `status`, `graph` and the board: what is planned without running or writing anything. */
enum leat_step_state { LEAT_STEP_DONE, LEAT_STEP_STALE, LEAT_STEP_WAITS, LEAT_STEP_FAILED, LEAT_STEP_MISSING_INPUT };
struct leat_step_status {
	size_t done, stale, waits; /* actions: made before; have to run; depend on those */
	double expected_s;
	char why[400];     /* of a missing input; "" if none */
	char failed[1020]; /* of the last failure, unless it was made since, and where its log is; "" if none */
};
enum leat_status leat_build_status(const struct leat_project *project, struct leat_cas *cas,
                                   struct leat_step_status *status /* one per step */, struct leat_err *err);
/* The fields of a slice's action, or of all of them (SIZE_MAX), as they would be planned now: for `why`. `missing` says
 * which input is not made yet; then there are no fields. The plan is made once for all. */
struct leat_fields_reader {
	enum leat_status (*slice)(void *arg, size_t slice, const struct leat_key_fields *fields, const char *missing,
	                          struct leat_err *err);
	void *arg;
};
enum leat_status leat_build_fields(const struct leat_project *project, struct leat_cas *cas,
                                   const struct leat_step *step, size_t slice, const struct leat_fields_reader *reader,
                                   struct leat_err *err);

#endif
