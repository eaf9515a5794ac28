/* fuzz_project.c - any text is a project or refused; what was accepted hangs together, and can be drawn */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "step/kind.h"
#include "step/project.h"
#include "step/project_graph.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
must(int truth, const char *what)
{
	if (truth)
		return;
	fprintf(stderr, "fuzz_project: %s\n", what);
	abort();
}

static void
check_slices(const struct leat_slices *slices, struct leat_mem *mem)
{
	size_t last = slices->count - 1, found;
	struct leat_str text;
	struct leat_err err;

	must(slices->count >= 1, "no slices");
	leat_str_init(&text, mem, 1 << 20);
	leat_slice_text(slices, last, &text);
	leat_err_clear(&err);
	must(leat_slice_find(slices, leat_str_text(&text), &found, &err) == LEAT_OK && found == last,
	     "a slice is not found by its text");
	leat_str_free(&text);
}

static void
check_project(const struct leat_project *project, struct leat_mem *mem)
{
	struct leat_str text;
	struct leat_err err;
	size_t *place = calloc(project->steps, sizeof(*place));

	if (!place)
		return;
	for (size_t i = 0; i < project->steps; i++)
		place[project->order[i]] = i;
	for (size_t i = 0; i < project->steps; i++) {
		const struct leat_step *step = &project->step[i];

		must(step->kind && *step->text && leat_project_step(project, step->name) == step, "half a step");
		check_slices(&step->slices, mem);
		for (size_t e = 0; e < step->edges; e++) {
			const struct leat_edge *edge = &step->edge[e];

			must((edge->step == SIZE_MAX) != (edge->source == SIZE_MAX), "an edge from nowhere");
			must(edge->step == SIZE_MAX || place[edge->step] < place[i], "a step comes before its input");
		}
	}
	leat_err_clear(&err);
	leat_str_init(&text, mem, SIZE_MAX);
	if (project->steps + project->sources <= 200)
		must(leat_graph_svg(project, NULL, &text, &err) == LEAT_OK || err.status == LEAT_LIMIT, "no drawing");
	leat_str_free(&text);
	free(place);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct leat_project *project;
	struct leat_err err;
	struct leat_mem mem;

	leat_mem_init(&mem, SIZE_MAX);
	leat_err_clear(&err);
	if (leat_project_parse(&project, &mem, NULL, (const char *)data, size, &err) == LEAT_OK) {
		check_project(project, &mem);
		leat_project_close(project);
	} else {
		must(!project && err.status == LEAT_SPEC && err.text[0], "refused without a reason");
	}
	must(mem.used == 0, "memory is left over");
	return 0;
}
