/* plan.c - a chain of plan ops, evaluated from its end back to the source
 *
 * Each op maps a (pass, position) of its output to one of its input. The pass starts as the
 * epoch; only repeat changes it. */
#include <inttypes.h>

#include "feed/plan.h"

enum { AT_ONCE = 64 }; /* positions that go through all ops together, and stay in the CPU's cache meanwhile */

void
leat_plan_init(struct leat_plan *plan, uint64_t count, const uint64_t *first, size_t files, uint64_t seed,
               struct leat_mem *mem)
{
	*plan = (struct leat_plan){
		.size = count,
		.seed = seed,
		.mem = mem,
		.files = files,
		.first = first,
	};
}

static enum leat_status
check_input(const struct leat_plan *plan, const struct leat_op *op, struct leat_err *err)
{
	if (plan->ops == LEAT_MAX_PLAN_OPS)
		return leat_fail(err, LEAT_SPEC,
		                 "%s is one too many: a spec can have at most %d ops that change the order", op->name,
		                 LEAT_MAX_PLAN_OPS);
	if (plan->size > LEAT_MAX_POSITIONS)
		return leat_fail(err, LEAT_DATA,
		                 "the source has %" PRIu64 " samples, more than an epoch can hold (2^62)", plan->size);
	return LEAT_OK;
}

static void
close_step(const struct leat_plan_step *step)
{
	if (step->op->on_plan.close)
		step->op->on_plan.close(step->state, step->in.mem);
}

enum leat_status
leat_plan_add(struct leat_plan *plan, const struct leat_op *op, const void *params, uint64_t stream,
              struct leat_err *err)
{
	struct leat_plan_step *step = &plan->op[plan->ops];
	enum leat_status status = check_input(plan, op, err);
	uint64_t size = 0;

	if (status != LEAT_OK || plan->size == 0) /* an empty epoch stays empty, and no position is ever asked for */
		return status;
	*step = (struct leat_plan_step){
		.op = op,
		.params = params,
		.in = {.size = plan->size, .seed = plan->seed, .stream = stream, .mem = plan->mem},
	};
	step->in.fixed = plan->ops == 0 || (step[-1].in.fixed && step[-1].op->on_plan.fixed);
	if (plan->ops == 0) {
		step->in.first = plan->first;
		step->in.files = plan->files;
	}
	status = op->on_plan.open(params, &step->in, &size, &step->state, err);
	if (status != LEAT_OK)
		return status;
	plan->size = size;
	plan->ops++;
	return LEAT_OK;
}

void
leat_plan_free(struct leat_plan *plan)
{
	while (plan->ops > 0)
		close_step(&plan->op[--plan->ops]);
}

void
leat_plan_reseed(struct leat_plan *plan, uint64_t seed)
{
	plan->seed = seed;
	for (int i = 0; i < plan->ops; i++)
		plan->op[i].in.seed = seed;
}

/* An op with more outputs than inputs repeats samples, even if a later op shrinks the plan again. */
bool
leat_plan_repeats(const struct leat_plan *plan)
{
	for (int i = 0; i < plan->ops; i++)
		if ((i + 1 < plan->ops ? plan->op[i + 1].in.size : plan->size) > plan->op[i].in.size)
			return true;
	return false;
}

uint64_t
leat_plan_spread(const struct leat_plan *plan)
{
	uint64_t spread = 1;

	for (int i = 0; i < plan->ops; i++) {
		const struct leat_plan_step *step = &plan->op[i];

		if (step->op->on_plan.in_order)
			continue;
		if (!step->op->on_plan.spread || spread > 1)
			return 0;
		spread = step->op->on_plan.spread(step->params, &step->in);
	}
	return spread;
}

/* Maps an output of op `last` back to an input of op `first`. */
static void
map_back(const struct leat_plan *plan, int first, int last, struct leat_at *at)
{
	for (int i = last; i >= first; i--) {
		const struct leat_plan_step *step = &plan->op[i];

		if (step->op->on_plan.map)
			step->op->on_plan.map(step->params, &step->in, step->state, at);
	}
}

uint64_t
leat_plan_at(struct leat_plan *plan, uint64_t epoch, uint64_t position)
{
	struct leat_at at = {.pass = epoch, .pos = position};

	map_back(plan, 0, plan->ops - 1, &at);
	return at.pos;
}

/* ---- groups of blocks ---- */

/* The op that shuffles blocks, if those before and after it keep the order, and those before it repeat nothing; -1. */
static int
find_block_op(const struct leat_plan *plan)
{
	struct leat_plan_group group;
	int found = -1;

	for (int i = 0; i < plan->ops; i++) {
		const struct leat_plan_step *step = &plan->op[i];
		bool repeats = i + 1 < plan->ops && plan->op[i + 1].in.size > step->in.size;

		if (step->op->on_plan.in_order && (found >= 0 || !repeats))
			continue;
		if (found >= 0 || !step->op->on_plan.group ||
		    !step->op->on_plan.group(step->params, &step->in, step->state, &(struct leat_at){0}, &group))
			return -1;
		found = i;
	}
	return found;
}

static int
step_number(const struct leat_plan *plan, const struct leat_plan_blocks *blocks)
{
	return (int)(blocks->step - plan->op);
}

/* The group that a position of the plan is in. */
static void
group_of(const struct leat_plan *plan, const struct leat_plan_blocks *blocks, uint64_t epoch, uint64_t position,
         struct leat_plan_group *group)
{
	const struct leat_plan_step *step = blocks->step;
	struct leat_at at = {.pass = epoch, .pos = position};

	map_back(plan, step_number(plan, blocks) + 1, plan->ops - 1, &at);
	step->op->on_plan.group(step->params, &step->in, step->state, &at, group);
}

/* The share of its outputs that ops after the shuffle keep: every n-th, or fewer than a group has. */
static double
share_used(const struct leat_plan *plan, const struct leat_plan_blocks *blocks)
{
	struct leat_at a = {.pos = 0}, b = {.pos = 1};
	double share = 1;

	map_back(plan, step_number(plan, blocks) + 1, plan->ops - 1, &a);
	map_back(plan, step_number(plan, blocks) + 1, plan->ops - 1, &b);
	if (a.pass == b.pass && b.pos > a.pos)
		share = 1 / (double)(b.pos - a.pos);
	if ((double)plan->size < share * (double)blocks->samples)
		share = (double)plan->size / (double)blocks->samples;
	return share;
}

bool
leat_plan_find_blocks(const struct leat_plan *plan, struct leat_plan_blocks *blocks)
{
	int found = plan->size > 1 ? find_block_op(plan) : -1;
	struct leat_plan_group group;
	uint64_t first, last, end;

	if (found < 0)
		return false;
	*blocks = (struct leat_plan_blocks){.step = &plan->op[found]};
	leat_plan_group_at(plan, blocks, 0, 0, &group, &end);
	blocks->block = group.block;
	blocks->blocks = group.most_blocks;
	blocks->samples = blocks->step->in.size < group.block * group.most_blocks ? blocks->step->in.size
	                                                                          : group.block * group.most_blocks;
	leat_plan_block(plan, blocks, &group, 0, &first, &last);
	blocks->span = (double)(last - first + 1) / (double)group.block;
	if (blocks->span < 1) /* it is the short one */
		blocks->span = 1;
	blocks->used = share_used(plan, blocks);
	return true;
}

/* Ops after the shuffle keep the order, so the positions of a group are next to each other. */
void
leat_plan_group_at(const struct leat_plan *plan, const struct leat_plan_blocks *blocks, uint64_t epoch,
                   uint64_t position, struct leat_plan_group *group, uint64_t *end)
{
	struct leat_plan_group other;
	uint64_t in, out; /* positions of this group and of another one */

	group_of(plan, blocks, epoch, position, group);
	in = position;
	out = plan->size - position < group->end - group->begin ? plan->size : position + (group->end - group->begin);
	while (out - in > 1) {
		uint64_t middle = in + (out - in) / 2;

		group_of(plan, blocks, epoch, middle, &other);
		if (other.pass == group->pass && other.begin == group->begin)
			in = middle;
		else
			out = middle;
	}
	*end = out;
}

void
leat_plan_block(const struct leat_plan *plan, const struct leat_plan_blocks *blocks,
                const struct leat_plan_group *group, uint64_t k, uint64_t *first, uint64_t *last)
{
	const struct leat_plan_step *step = blocks->step;
	struct leat_at a = {.pass = group->pass}, b = {.pass = group->pass};

	step->op->on_plan.block(&step->in, step->state, group, k, &a.pos, &b.pos);
	b.pos--;
	map_back(plan, 0, step_number(plan, blocks) - 1, &a);
	map_back(plan, 0, step_number(plan, blocks) - 1, &b);
	*first = a.pos;
	*last = b.pos;
}

static void
map_each(const struct leat_plan_step *step, uint64_t *pass, uint64_t *pos, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		struct leat_at at = {pass[i], pos[i]};

		step->op->on_plan.map(step->params, &step->in, step->state, &at);
		pass[i] = at.pass;
		pos[i] = at.pos;
	}
}

static void
map_some(const struct leat_plan *plan, uint64_t epoch, uint64_t *pos, size_t count)
{
	uint64_t pass[AT_ONCE];

	for (size_t i = 0; i < count; i++)
		pass[i] = epoch;
	for (int i = plan->ops; i-- > 0;) {
		const struct leat_plan_step *step = &plan->op[i];

		if (step->op->on_plan.map_many)
			step->op->on_plan.map_many(step->params, &step->in, step->state, pass, pos, count);
		else if (step->op->on_plan.map)
			map_each(step, pass, pos, count);
	}
}

void
leat_plan_many(struct leat_plan *plan, uint64_t epoch, uint64_t *at, size_t count)
{
	for (size_t done = 0; plan->ops > 0 && done < count; done += AT_ONCE)
		map_some(plan, epoch, at + done, count - done < AT_ONCE ? count - done : AT_ONCE);
}
