/* tune_threads.h - how many threads per action make a step fastest: `leat build --tune-threads STEP`
 *
 * One action, whose inputs must be made, is run with 1, 2, 4, ... threads, up to all cpus. A sliced step keeps all cpus
 * busy, so as many copies run at a time as there is room for, and what counts is the time per action: seconds / copies.
 * Nothing is recorded. */
#ifndef LEAT_STEP_TUNE_THREADS_H
#define LEAT_STEP_TUNE_THREADS_H

#include "step/runner.h"

struct leat_tune_row {
	unsigned threads, copies; /* of each action, and how many ran at a time */
	unsigned busiest;         /* most threads seen in one of them */
	double seconds;           /* of the slowest copy; the best of two rounds if it is short */
	double per_action_s;
};

enum { LEAT_TUNE_ROWS = 16 };

struct leat_tune {
	/* in */
	const struct leat_runner *runner;
	const struct leat_action *action;
	unsigned cpus;                                                  /* of the machine: leat_budget_cpus */
	void (*progress)(void *arg, unsigned threads, unsigned copies); /* before each measurement; NULL: not at all */
	void *arg;
	/* out */
	struct leat_tune_row row[LEAT_TUNE_ROWS];
	size_t rows, best; /* best: index of the fastest row */
	char advice[300];  /* "`cpus: 1` is fastest: 2.1 s per action, 3.4 times as fast as `cpus: 8`" */
};

/* LEAT_FUNCTION: the command failed. LEAT_END: stopped. */
enum leat_status leat_tune_threads(struct leat_tune *tune, struct leat_err *err);

#endif
