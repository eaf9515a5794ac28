/* build.c - `leat build`: run the steps of leat.yaml whose inputs, code or parameters changed */
#include <stdio.h>

#include "cli/command.h"
#include "cli/print.h"
#include "cli/progress.h"
#include "cli/steps.h"
#include "step/budget.h"
#include "step/tune_threads.h"

struct build {
	const char *project, *tune_threads, *on;
	int64_t jobs;
	bool keep_going, again, accept_drift, dry_run, json, quiet;
};

static const struct leat_opt options[] = {
	LEAT_PROJECT_OPTION(struct build),
	LEAT_INT(struct build, jobs, "0", 0, 65536, "cpus to use at a time (0: all)"),
	LEAT_STRING(struct build, on, "local",
                    "where to run actions: local, ray://HOST:PORT, spark://HOST:PORT or another executor; see "
                    "SCALING.md"),
	LEAT_BOOL(struct build, keep_going, "false", "after a failure, run all that does not depend on it"),
	LEAT_BOOL(struct build, again, "false", "run the targets although they were made before, and compare"),
	LEAT_BOOL(struct build, accept_drift, "false", "keep tables that drifted more than a check allows"),
	LEAT_BOOL(struct build, dry_run, "false", "only count what would run"),
	LEAT_BOOL(struct build, json, "false", "print events as JSON, one per line"),
	LEAT_BOOL(struct build, quiet, "false", "print only failures and warnings"),
	LEAT_STRING(struct build, tune_threads, "",
                    "measure a step with 1, 2, 4, ... threads, and say which number is fastest"),
	LEAT_OPT_END,
};

static enum leat_progress_mode
mode_of(const struct build *build)
{
	if (build->json)
		return LEAT_PROGRESS_JSON;
	if (build->quiet)
		return LEAT_PROGRESS_QUIET;
	return leat_is_terminal(stderr) ? LEAT_PROGRESS_LIVE : LEAT_PROGRESS_LINES;
}

static void
print_summary(const struct build *build, const struct leat_build_totals *totals, struct leat_mem *mem)
{
	struct leat_str line;

	if (build->json || build->quiet)
		return;
	leat_str_init(&line, mem, 4096);
	leat_progress_summary(&line, totals, build->dry_run);
	printf("%s\n", leat_str_text(&line));
	leat_str_free(&line);
}

/* What went wrong was said when it happened; the last line says how much. */
static enum leat_status
judge(const struct build *build, enum leat_status status, const struct leat_build_totals *totals, struct leat_err *err)
{
	if (status == LEAT_END)
		return leat_fail(err, LEAT_CANCELLED, "stopped; what is finished is kept, and 'leat build' goes on");
	if (status == LEAT_FUNCTION && !build->json) {
		leat_err_clear(err);
		return leat_fail(err, LEAT_FUNCTION, "%zu of %zu action%s failed; what is finished is kept",
		                 totals->failed, totals->actions, leat_plural(totals->actions));
	}
	if (status == LEAT_OK && build->again && totals->differ)
		return leat_fail(err, LEAT_FUNCTION, "%zu of %zu action%s %s not deterministic", totals->differ,
		                 totals->ran, leat_plural(totals->ran), totals->differ == 1 ? "is" : "are");
	return status;
}

static enum leat_status
run_steps(const struct leat_steps *steps, const struct leat_invocation *run, struct leat_err *err)
{
	const struct build *build = run->params;
	struct leat_build_options o = {.target = run->operand,
	                               .targets = run->operands,
	                               .jobs = (unsigned)build->jobs,
	                               .on = build->on,
	                               .keep_going = build->keep_going,
	                               .again = build->again,
	                               .accept_drift = build->accept_drift,
	                               .dry = build->dry_run};
	struct leat_build_progress progress;
	struct leat_build_totals totals;
	enum leat_status status = leat_progress_open(&progress, steps->project, &o, mode_of(build), stderr, err);

	if (status != LEAT_OK)
		return status;
	status = leat_build(steps->project, steps->cas, &o, &totals, err);
	leat_progress_close(&progress);
	if (status == LEAT_OK || status == LEAT_FUNCTION || status == LEAT_END)
		print_summary(build, &totals, run->mem);
	return judge(build, status, &totals, err);
}

/* ---- threads ---- */

static void
say_measuring(void *arg, unsigned threads, unsigned copies)
{
	(void)arg;
	fprintf(stderr, "measuring %u thread%s, %u at a time\n", threads, leat_plural(threads), copies);
}

static enum leat_status
print_rows(const struct leat_tune *tune, struct leat_mem *mem, struct leat_err *err)
{
	static const char *const head[] = {"cpus", "at a time", "threads seen", "seconds", "per action"};
	struct leat_table table;
	enum leat_status status;

	leat_table_init(&table, mem, 5);
	for (size_t i = 0; i < 5; i++) {
		table.right[i] = true;
		leat_str_add(leat_table_cell(&table), head[i]);
	}
	for (size_t i = 0; i < tune->rows; i++) {
		const struct leat_tune_row *row = &tune->row[i];

		leat_str_addf(leat_table_cell(&table), "%u", row->threads);
		leat_str_addf(leat_table_cell(&table), "%u", row->copies);
		leat_str_addf(leat_table_cell(&table), "%u", row->busiest);
		leat_str_addf(leat_table_cell(&table), "%.2f", row->seconds);
		leat_str_addf(leat_table_cell(&table), "%.2f", row->per_action_s);
	}
	status = leat_table_print(&table, stdout, err);
	if (status == LEAT_OK)
		printf("%s\n", tune->advice);
	return status;
}

static enum leat_status
measure_threads(const struct leat_steps *steps, const struct leat_invocation *run, struct leat_err *err)
{
	const struct build *build = run->params;
	struct leat_build_options o = {0};
	struct leat_build_progress progress;
	struct leat_tune tune = {.cpus = leat_budget_cpus((unsigned)build->jobs), .progress = say_measuring};
	enum leat_status status = leat_progress_open(&progress, steps->project, &o, LEAT_PROGRESS_QUIET, stderr, err);

	if (status == LEAT_OK)
		status = leat_build_tune(steps->project, steps->cas, build->tune_threads, &progress.stop, &tune, err);
	leat_progress_close(&progress);
	if (status == LEAT_END)
		return leat_fail(err, LEAT_CANCELLED, "stopped");
	return status == LEAT_OK ? print_rows(&tune, run->mem, err) : status;
}

static enum leat_status
run_build(const struct leat_invocation *run, struct leat_err *err)
{
	const struct build *build = run->params;
	struct leat_steps steps;
	enum leat_status status = leat_steps_open(&steps, run->mem, build->project, LEAT_CAS_WRITE, LEAT_LOOK_NOW, err);

	if (status != LEAT_OK)
		return status;
	if (*build->tune_threads)
		status = measure_threads(&steps, run, err);
	else
		status = run_steps(&steps, run, err);
	leat_steps_close(&steps);
	return status;
}

const struct leat_command leat_command_build = {
	.name = "build",
	.summary = "run the steps of leat.yaml that changed",
	.operands = "[STEP[:SLICE]...]",
	.max_operands = SIZE_MAX,
	.help = "Runs a step if its command, parameters, inputs or code changed since it last ran, and\n"
		"reuses what was made before otherwise. A step whose output is the same as before\n"
		"stops there: what depends on it is not run. Results are links under out/.\n\n"
		"^C finishes what runs and stops; ^C again kills. ^T or SIGUSR1 prints what runs.",
	.example = "leat build\n"
		   "leat build decode:subject=3,bin=7\n"
		   "leat build --keep-going -j 4",
	.opts = options,
	.params_size = sizeof(struct build),
	.run = run_build,
};
