/* build_inputs.c - what a command reads, with paths; called by workers */
#include <ftw.h>
#include <stdio.h>
#include <string.h>

#include "step/build_core.h"

static enum leat_status
alloc_inputs(struct leat_inputs *inputs, size_t count, struct leat_mem *mem, struct leat_err *err)
{
	*inputs = (struct leat_inputs){.mem = mem, .count = count};
	inputs->input = leat_alloc_array(mem, count, sizeof(*inputs->input));
	inputs->path = leat_alloc_array(mem, count, sizeof(*inputs->path));
	inputs->made = leat_alloc_array(mem, count, sizeof(*inputs->made));
	inputs->alone = leat_alloc_array(mem, count, sizeof(*inputs->alone));
	if (inputs->input && inputs->path && inputs->made && inputs->alone)
		return LEAT_OK;
	return leat_fail_mem(err, mem, count * sizeof(*inputs->path), "the inputs of an action");
}

static void
fill_slices(struct leat_inputs *inputs, size_t i, const struct leat_plan *plan, const struct leat_plan_edge *edge,
            uint32_t group)
{
	struct leat_input *input = &inputs->input[i];

	inputs->alone[i] = group;
	input->step = plan->step[edge->up].step;
	input->slices = leat_members_count(&edge->members, group);
	input->slice = edge->members.start ? edge->members.slice + edge->members.start[group] : &inputs->alone[i];
	input->use = edge->entry;
}

enum leat_status
leat_inputs_open(struct leat_inputs *inputs, const struct leat_plan *plan, size_t step, size_t slice,
                 struct leat_err *err)
{
	const struct leat_plan_step *s = &plan->step[step];
	enum leat_status status = alloc_inputs(inputs, s->edges, plan->mem, err);

	for (size_t i = 0; status == LEAT_OK && i < s->edges; i++) {
		const struct leat_plan_edge *edge = &s->edge[i];
		struct leat_input *input = &inputs->input[i];
		uint32_t group = leat_group_of(edge->groups.down, slice);

		*input = (struct leat_input){.name = edge->name, .content = *leat_plan_content(plan, edge, slice)};
		if (edge->how == LEAT_EDGE_ENTRY) /* a folder, which is known by its content alone */
			continue;
		if (edge->up != SIZE_MAX) {
			fill_slices(inputs, i, plan, edge, group);
			continue;
		}
		status = leat_files_path(plan, s, edge, slice, inputs->path[i], &inputs->made[i], err);
		if (leat_files_are_remote(plan, s, edge)) {
			input->suffix = inputs->path[i];
			continue;
		}
		input->path = inputs->path[i];
		input->stamp = edge->stamp[group];
	}
	if (status != LEAT_OK)
		leat_inputs_close(inputs);
	return status;
}

static int
remove_one(const char *path, const struct stat *st, int type, struct FTW *walk)
{
	(void)st;
	(void)type;
	(void)walk;
	remove(path);
	return 0;
}

void
leat_inputs_close(struct leat_inputs *inputs)
{
	for (size_t i = 0; inputs->made && i < inputs->count; i++)
		if (inputs->made[i])
			nftw(inputs->path[i], remove_one, 16, FTW_DEPTH | FTW_PHYS);
	leat_free(inputs->mem, inputs->input);
	leat_free(inputs->mem, inputs->path);
	leat_free(inputs->mem, inputs->made);
	leat_free(inputs->mem, inputs->alone);
	*inputs = (struct leat_inputs){.mem = inputs->mem};
}
