/* status.c - `leat status`: what `leat build` would do; it never writes */
#include <stdio.h>

#include "cli/command.h"
#include "cli/print.h"
#include "cli/progress.h"
#include "cli/steps.h"

struct status {
	const char *project;
	bool json;
};

static const struct leat_opt options[] = {
	LEAT_PROJECT_OPTION(struct status),
	LEAT_BOOL(struct status, json, "false", "print one JSON object per step"),
	LEAT_OPT_END,
};

enum { COUNTS = 4 }; /* columns without the time, which is there if it is known */

static void
add_count(struct leat_table *table, size_t count)
{
	struct leat_str *cell = leat_table_cell(table);

	if (count)
		leat_str_addf(cell, "%zu", count);
}

static void
add_row(struct leat_table *table, const struct leat_step *step, const struct leat_step_status *s)
{
	struct leat_str *cell;

	leat_str_add(leat_table_cell(table), step->name);
	leat_str_addf(leat_table_cell(table), "%zu of %zu", s->done, step->slices.count);
	add_count(table, s->stale);
	add_count(table, s->waits);
	if (table->columns <= COUNTS)
		return;
	cell = leat_table_cell(table);
	if (s->expected_s > 0)
		leat_add_duration(cell, s->expected_s);
}

static enum leat_status
print_table(const struct leat_project *project, const struct leat_step_status *s, struct leat_mem *mem,
            struct leat_err *err)
{
	static const char *const head[] = {"step", "made", "to run", "waiting", "took last time"};
	struct leat_table table;
	enum leat_status status;
	bool timed = false;

	for (size_t i = 0; i < project->steps; i++)
		timed |= s[i].expected_s > 0;
	leat_table_init(&table, mem, timed ? COUNTS + 1 : COUNTS);
	for (size_t i = 0; i < table.columns; i++) {
		table.right[i] = i > 0;
		leat_str_add(leat_table_cell(&table), head[i]);
	}
	for (size_t i = 0; i < project->steps; i++)
		add_row(&table, &project->step[project->order[i]], &s[project->order[i]]);
	status = leat_table_print(&table, stdout, err);
	for (size_t i = 0; status == LEAT_OK && i < project->steps; i++) {
		const struct leat_step_status *one = &s[project->order[i]];

		if (*one->why)
			leat_print_line(stdout, "%s", one->why);
		if (*one->failed)
			leat_print_line(stdout, "failed last: %s", one->failed);
	}
	return status;
}

static enum leat_status
print_json(const struct leat_project *project, const struct leat_step_status *s, struct leat_mem *mem,
           struct leat_err *err)
{
	struct leat_str line;
	bool failed;

	leat_str_init(&line, mem, 1 << 20);
	for (size_t i = 0; i < project->steps; i++) {
		const struct leat_step_status *one = &s[project->order[i]];
		char seconds[32];

		leat_str_add(&line, "{\"step\":");
		leat_str_add_json(&line, project->step[project->order[i]].name);
		leat_str_addf(&line,
		              ",\"actions\":%zu,\"done\":%zu,\"stale\":%zu,\"waits\":%zu,\"expected_s\":%s,\"why\":",
		              project->step[project->order[i]].slices.count, one->done, one->stale, one->waits,
		              leat_format_digits(seconds, sizeof(seconds), one->expected_s, 6));
		leat_str_add_json(&line, one->why);
		leat_str_add(&line, ",\"failed\":");
		leat_str_add_json(&line, one->failed);
		leat_str_add(&line, "}\n");
	}
	failed = line.failed;
	fputs(leat_str_text(&line), stdout);
	leat_str_free(&line);
	return failed ? leat_fail_mem(err, mem, line.len, "the status") : LEAT_OK;
}

static enum leat_status
run_status(const struct leat_invocation *run, struct leat_err *err)
{
	const struct status *params = run->params;
	struct leat_step_status *s = NULL;
	struct leat_steps steps;
	enum leat_status status = leat_steps_open(&steps, run->mem, params->project, LEAT_CAS_READ, LEAT_LOOK_TRY, err);

	if (status != LEAT_OK)
		return status;
	s = leat_alloc_array(run->mem, steps.project->steps, sizeof(*s));
	if (!s)
		status = leat_fail_mem(err, run->mem, steps.project->steps * sizeof(*s), "the status");
	if (status == LEAT_OK)
		status = leat_build_status(steps.project, steps.cas, s, err);
	if (status == LEAT_OK)
		status = (params->json ? print_json : print_table)(steps.project, s, run->mem, err);
	leat_steps_say_doubt(&steps);
	leat_free(run->mem, s);
	leat_steps_close(&steps);
	return status;
}

const struct leat_command leat_command_status = {
	.name = "status",
	.summary = "show which steps of leat.yaml would run",
	.operands = "",
	.help = "For each step: how many of its actions are made, how many would run now, how many wait\n"
		"for those, and how long they took the last time. Names what failed last, until it is made.\n"
		"Asks servers which versions of remote sources there are. Writes and fetches nothing.",
	.example = "leat status",
	.opts = options,
	.params_size = sizeof(struct status),
	.run = run_status,
};
