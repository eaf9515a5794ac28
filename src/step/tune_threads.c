/* tune_threads.c - see tune_threads.h */
#include "step/tune_threads.h"

#include <stdio.h>
#include <string.h>

#include "base/threads.h"

/* A measurement that takes less is repeated, because its first one may have read files from disk. */
static const double short_s = 2;
/* Differences below are chance: the smaller number of threads is better, because it leaves room. */
static const double margin = 1.03;

struct copy {
	struct leat_ran ran;
	enum leat_status status;
	struct leat_err err;
};

struct round {
	const struct leat_tune *tune;
	struct leat_runner runner;
	struct leat_order order;
	struct copy *copy;
};

static void
run_copy(void *arg, unsigned i)
{
	const struct round *round = arg;
	struct copy *copy = &round->copy[i];
	struct leat_running running;

	leat_running_init(&running);
	copy->status = leat_runner_run(&round->runner, &round->order, &running, &copy->ran, &copy->err);
	leat_ran_end(&copy->ran, round->tune->action->project->mem);
	leat_running_end(&running);
}

/* The first failure, if there is one. */
static enum leat_status
check_copy(const struct leat_tune *tune, const struct copy *copy, unsigned threads, struct leat_err *err)
{
	if (copy->status != LEAT_OK)
		return leat_fail_as(err, &copy->err);
	if (copy->ran.outcome == LEAT_STOPPED)
		return leat_fail(err, LEAT_END, "stopped");
	if (copy->ran.outcome != LEAT_RAN)
		return leat_fail(err, LEAT_FUNCTION, "%s with %u thread%s %s", tune->action->step->name, threads,
		                 leat_plural(threads), copy->ran.why);
	return LEAT_OK;
}

static enum leat_status
measure_once(const struct round *round, struct leat_tune_row *row, struct leat_err *err)
{
	const struct leat_tune *tune = round->tune;
	struct leat_threads threads = {0};
	enum leat_status status;

	row->seconds = 0;
	status = leat_threads_start(&threads, tune->action->project->mem, row->copies, "tune", run_copy,
	                            (void *)(uintptr_t)round, err);
	if (status != LEAT_OK)
		return status;
	leat_threads_join(&threads);
	for (unsigned i = 0; status == LEAT_OK && i < row->copies; i++) {
		const struct copy *copy = &round->copy[i];

		status = check_copy(tune, copy, row->threads, err);
		if (copy->ran.seconds > row->seconds)
			row->seconds = copy->ran.seconds;
		if (copy->ran.threads > row->busiest)
			row->busiest = copy->ran.threads;
	}
	return status;
}

static enum leat_status
measure(struct leat_tune *tune, struct leat_tune_row *row, struct leat_err *err)
{
	struct leat_mem *mem = tune->action->project->mem;
	struct round round = {.tune = tune, .runner = *tune->runner};
	struct leat_tune_row again = *row;
	enum leat_status status;

	round.runner.trial = true;
	status = leat_order_make(&round.order, tune->action, row->threads, err);
	if (status != LEAT_OK)
		return status;
	round.copy = leat_alloc_array(mem, row->copies, sizeof(*round.copy));
	if (round.copy == NULL) {
		leat_order_free(&round.order);
		return leat_fail_mem(err, mem, row->copies * sizeof(*round.copy), "copies of an action");
	}
	if (tune->progress != NULL)
		tune->progress(tune->arg, row->threads, row->copies);
	status = measure_once(&round, row, err);
	if (status == LEAT_OK && row->seconds < short_s) {
		status = measure_once(&round, &again, err);
		if (again.seconds < row->seconds)
			*row = again;
	}
	row->per_action_s = row->seconds / row->copies;
	leat_free(mem, round.copy);
	leat_order_free(&round.order);
	return status;
}

/* 1, 2, 4, ... and all cpus. */
static void
choose_rows(struct leat_tune *tune)
{
	unsigned threads = 1;

	for (tune->rows = 0; tune->rows < LEAT_TUNE_ROWS; threads *= 2) {
		struct leat_tune_row *row = &tune->row[tune->rows++];

		*row = (struct leat_tune_row){.threads = threads < tune->cpus ? threads : tune->cpus};
		row->copies = tune->action->step->slices.count > 1 ? tune->cpus / row->threads : 1;
		if (threads >= tune->cpus)
			return;
	}
}

/* Three digits, but never an exponent. */
static int
decimals(double x)
{
	return x < 10 ? 2 : x < 100 ? 1 : 0;
}

static void
advise(struct leat_tune *tune)
{
	const struct leat_tune_row *best = &tune->row[0], *worst = best;
	double ratio;

	for (size_t i = 1; i < tune->rows; i++) {
		if (tune->row[i].per_action_s * margin < best->per_action_s)
			best = &tune->row[i];
		if (tune->row[i].per_action_s > worst->per_action_s)
			worst = &tune->row[i];
	}
	tune->best = (size_t)(best - tune->row);
	ratio = worst->per_action_s / best->per_action_s;
	if (best->per_action_s * margin >= worst->per_action_s)
		snprintf(tune->advice, sizeof(tune->advice),
		         "the number of threads makes no difference; `cpus: 1` leaves the most room for other actions");
	else
		snprintf(tune->advice, sizeof(tune->advice),
		         "`cpus: %u` is fastest: %.*f s per action, %.*f times as fast as `cpus: %u`", best->threads,
		         decimals(best->per_action_s), best->per_action_s, decimals(ratio) ? 1 : 0, ratio,
		         worst->threads);
}

enum leat_status
leat_tune_threads(struct leat_tune *tune, struct leat_err *err)
{
	enum leat_status status = LEAT_OK;

	choose_rows(tune);
	for (size_t i = 0; status == LEAT_OK && i < tune->rows; i++)
		status = measure(tune, &tune->row[i], err);
	if (status == LEAT_OK)
		advise(tune);
	return status;
}
