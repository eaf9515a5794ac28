/* runner.h - run an action's command: sandbox, process group, limits, what it used
 *
 * The command runs in a separate folder with the project's code, no other files, a small environment, and the
 * variables that leat.yaml declares (sandbox.h). It is the leader of a process group that is ended as a whole: on a
 * timeout, on too much memory, when the build is stopped, and when the command itself has ended. A command that daemons
 * survive, because they left the group, is ended with them: this process adopts them (PR_SET_CHILD_SUBREAPER), and
 * finds them by LEAT_STEP in their environment. If this process dies, the kernel kills the leader (PDEATHSIG), and the
 * guard kills the rest.
 *
 *	tmp/RUN/N/work          the working folder: links to the snapshot's entries; profile.json, if it made a table
 *	tmp/RUN/N/in/NAME       links to inputs: $NAME (and the extension of what they link to)
 *	tmp/RUN/N/out/NAME      $out: does not exist yet
 *	tmp/RUN/N/tmp/          $TMPDIR
 *	tmp/RUN/N/imports/      records of the Python hook
 *	tmp/RUN/N/log           what it printed, both streams; only if it printed something
 *	tmp/RUN/N/step.json     for leat.step in Python: $LEAT_STEP
 *	tmp/RUN/N/metrics.json  metrics it reports
 *	tmp/RUN/N/progress      {"done":3,"total":10,"text":"fold 3"}
 *	resume/HASH/            $checkpoint of a step with `resume: true`: stays until the action's result is kept
 *
 * Called by one thread per action, which must not end before the command does (PDEATHSIG is sent when a thread ends).
 */
#ifndef LEAT_STEP_RUNNER_H
#define LEAT_STEP_RUNNER_H

#include <pthread.h>
#include <stdatomic.h>

#include "step/order.h"

enum leat_outcome {
	LEAT_RAN,
	LEAT_EXITED,
	LEAT_SIGNALED,
	LEAT_TIMED_OUT,
	LEAT_TOO_LARGE,
	LEAT_NO_OUTPUT,
	LEAT_WROTE_INPUT, /* it changed what it read: a retry would read other bytes until the input is made again */
	LEAT_STOPPED
};

struct leat_running {                    /* read by others while it runs */
	atomic_int group;                /* process group; 0: not started */
	atomic_uint threads;             /* most seen at a time */
	atomic_ullong bytes, peak_bytes; /* resident, of the whole group */
	atomic_ullong done, total;       /* what leat.step reports; total 0: not known */
	pthread_mutex_t lock;            /* guards last_line */
	char last_line[160];             /* its progress, or else of its output; visible characters only */
};
void leat_running_init(struct leat_running *running);
void leat_running_end(struct leat_running *running);

struct leat_ran {
	enum leat_outcome outcome;
	int code; /* exit status or signal */
	char sandbox[PATH_MAX];
	struct leat_sandbox_pool *pool; /* where it goes afterwards; NULL: it is removed */
	char out[PATH_MAX];             /* what it made; unless LEAT_RAN, what is left of it, if anything */
	struct leat_content output;     /* the same, if another machine put it into the store; else LEAT_CONTENT_NONE */
	struct leat_content imports;    /* likewise: records of the Python hook */
	struct leat_content rejects;    /* likewise: see leat_ran_take_rejects */
	char work[PATH_MAX];            /* where it ran */
	struct leat_digest log;         /* all zero: it could not be kept */
	double seconds, cpu_s;
	uint64_t peak_bytes; /* 0: not known, because it ended too soon */
	unsigned threads;
	char *metrics;     /* "" if none */
	char *profile;     /* JSON of a sketch; NULL: none */
	char *checkpoint;  /* NULL: none */
	int checkpoint_fd; /* keeps it locked until leat_ran_end; -1: nobody else uses it */
	bool kept;         /* set by the caller: its result is in the store, so leat_ran_end removes the checkpoint */
	char warning[160]; /* "" if none, such as "5 threads on 1 cpu; set `cpus: 5`" */
	char why[400];     /* one sentence for people, unless LEAT_RAN: "exited with 2; its last lines: ..." */
};

/* Sandboxes that actions use one after the other, so short commands do not wait for the file system. Close it after all
 * leat_ran_end. */
struct leat_sandbox_pool;
enum leat_status leat_sandbox_pool_open(struct leat_sandbox_pool **pool, struct leat_mem *mem, unsigned sandboxes,
                                        struct leat_err *err);
void leat_sandbox_pool_close(struct leat_sandbox_pool *pool); /* accepts NULL */

/* Runs the command once. Fails only if Leat itself cannot (no disk, no processes); all that the command may do is an
 * outcome. */
struct leat_runner {
	struct leat_cas *cas;
	struct leat_sandbox_pool *pool; /* NULL: every action gets a new sandbox */
	const atomic_bool *stop;        /* set: end it */
	double grace_s;                 /* from SIGTERM to SIGKILL; 0: five seconds */
	bool trial;                     /* what it makes is thrown away, and so is its checkpoint */
};
enum leat_status leat_runner_run(const struct leat_runner *runner, const struct leat_order *order,
                                 struct leat_running *running, struct leat_ran *ran, struct leat_err *err);
void leat_ran_end(struct leat_ran *ran, struct leat_mem *mem); /* ends the sandbox; after a failed run, too */

/* Of a command that failed because of rows that it lists in $out/rejects.jsonl: puts that list into the store. *rows is
 * LEAT_CONTENT_NONE if there is none, or it may not be complete. */
enum leat_status leat_ran_take_rejects(const struct leat_ran *ran, struct leat_cas *cas, struct leat_content *rows,
                                       struct leat_err *err);

/* What came of a run, as JSON: from the machine that ran it to the build (ran_json.c). Hostile text is LEAT_DATA. */
void leat_ran_write(const struct leat_ran *ran, struct leat_str *json);
enum leat_status leat_ran_read(struct leat_ran *ran, struct leat_mem *mem, const char *json, size_t len,
                               struct leat_err *err);

/* Kills what is left of process groups whose sandbox is below `folder` (tmp of a dead run). */
void leat_runner_kill_left(const char *folder);

/* A process that outlives this one for a moment, if it is killed, to kill what runs in sandboxes below `folder`. Start
 * it before there are threads and much memory. */
struct leat_guard {
	int pid, socket;
};
enum leat_status leat_guard_start(struct leat_guard *guard, const char *folder, struct leat_err *err);
void leat_guard_end(struct leat_guard *guard); /* accepts a zeroed one */

#endif
