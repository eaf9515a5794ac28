/* graph.c - `leat graph`: the steps and what each reads, as text, SVG or JSON */
#include <stdio.h>
#include <string.h>

#include "cli/command.h"
#include "cli/print.h"
#include "cli/steps.h"
#include "step/build.h"
#include "step/project_graph.h"

enum { MAX_OUTPUT = 256 << 20 };

struct graph {
	const char *project;
	bool svg, json;
};

static const struct leat_opt options[] = {
	LEAT_PROJECT_OPTION(struct graph),
	LEAT_BOOL(struct graph, svg, "false", "print a drawing as SVG"),
	LEAT_BOOL(struct graph, json, "false", "print JSON"),
	LEAT_OPT_END,
};

static void
add_inputs(const struct leat_step *step, struct leat_str *cell)
{
	if (step->loads) {
		leat_str_add(cell, "loads ");
		leat_str_add_shown(cell, step->loads);
		return;
	}
	leat_str_add(cell, step->edges ? "reads " : "reads nothing");
	for (size_t i = 0; i < step->edges; i++)
		leat_str_addf(cell, "%s%s", i ? ", " : "", step->edge[i].name);
}

static enum leat_status
print_text(const struct leat_invocation *run, const struct leat_project *project, const struct leat_step_status *status,
           struct leat_err *err)
{
	struct leat_table table;

	leat_table_init(&table, run->mem, 4);
	for (size_t i = 0; i < project->sources; i++) {
		leat_str_add(leat_table_cell(&table), project->source[i].name);
		leat_str_add(leat_table_cell(&table), "source");
		leat_str_add(leat_table_cell(&table), "");
		leat_str_add_shown(leat_table_cell(&table), project->source[i].pattern);
	}
	for (size_t i = 0; i < project->steps; i++) {
		const struct leat_step *step = &project->step[project->order[i]];

		leat_str_add(leat_table_cell(&table), step->name);
		leat_graph_slices_text(&step->slices, leat_table_cell(&table));
		leat_graph_state_text(step, status ? &status[project->order[i]] : NULL, leat_table_cell(&table));
		add_inputs(step, leat_table_cell(&table));
	}
	return leat_table_print(&table, stdout, err);
}

static enum leat_status
print_text_of(const struct leat_invocation *run, const struct leat_project *project,
              const struct leat_step_status *status, struct leat_err *err)
{
	const struct graph *graph = run->params;
	enum leat_status result;
	struct leat_str text;

	leat_str_init(&text, run->mem, MAX_OUTPUT);
	result =
		graph->svg ? leat_graph_svg(project, status, &text, err) : leat_graph_json(project, status, &text, err);
	if (result == LEAT_OK)
		fputs(leat_str_text(&text), stdout);
	leat_str_free(&text);
	return result;
}

static enum leat_status
run_graph(const struct leat_invocation *run, struct leat_err *err)
{
	const struct graph *graph = run->params;
	struct leat_step_status *states = NULL;
	struct leat_steps steps;
	enum leat_status status;

	if (graph->svg && graph->json)
		return leat_fail(err, LEAT_INVALID, "give only one of --svg and --json");
	status = leat_steps_open(&steps, run->mem, graph->project, LEAT_CAS_READ, LEAT_LOOK_BACK, err);
	if (status != LEAT_OK)
		return status;
	if (steps.cas) {
		states = leat_alloc_array(run->mem, steps.project->steps, sizeof(*states));
		status = states ? leat_build_status(steps.project, steps.cas, states, err)
		                : leat_fail_mem(err, run->mem, steps.project->steps * sizeof(*states), "states");
	}
	if (status == LEAT_OK && (graph->svg || graph->json))
		status = print_text_of(run, steps.project, states, err);
	else if (status == LEAT_OK)
		status = print_text(run, steps.project, states, err);
	leat_free(run->mem, states);
	leat_steps_close(&steps);
	return status;
}

const struct leat_command leat_command_graph = {
	.name = "graph",
	.summary = "Show the steps of a project and what each reads",
	.operands = "",
	.help = "As text, as a drawing (--svg), or as JSON. If something was built before, also how much of each step "
		"is\n"
		"made. Nothing is run or written.",
	.example = "leat graph\nleat graph --svg > steps.svg",
	.opts = options,
	.params_size = sizeof(struct graph),
	.run = run_graph,
};
