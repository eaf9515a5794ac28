/* runner.h - for tests of the runner: a store in a temporary folder, and one step whose command a test chooses */
#ifndef TEST_RUNNER_H
#define TEST_RUNNER_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "step/kind.h"
#include "step/runner_inside.h"
#include "temp.h"

struct trial {
	struct temp temp;
	struct leat_mem mem;
	struct leat_cas *cas;
	struct leat_project project;
	struct leat_step step;
	struct leat_input input[4];
	struct leat_action action;
	struct leat_runner runner;
	struct leat_order order; /* of the last run */
	unsigned cpus;
	struct leat_sandbox_pool *pool; /* tests choose to use it */
	struct leat_running running;
	struct leat_ran ran;
	struct leat_err err;
	atomic_bool stop;
};

/* cmocka's set-up and tear-down: *state is a struct trial. */
int trial_open(void **state);
int trial_close(void **state);

/* Runs a command; it must run, whatever comes of it. What the run before left is ended first. */
enum leat_outcome trial_run(struct trial *t, const char *command);
/* trial_run, and the outcome must be LEAT_RAN. Returns what is in $out, to be freed. */
char *trial_out(struct trial *t, const char *command);
/* What the last command printed, to be freed. */
char *trial_log(struct trial *t, size_t *len);

/* Adds an input: a file in the store with this text. */
struct leat_input *trial_store_text(struct trial *t, const char *name, const char *text);

/* Is there a process whose command line has this word? */
bool process_runs(const char *word);
/* Until there is none any more; fails after a minute. */
void wait_until_gone(const char *word);

#endif
