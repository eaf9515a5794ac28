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

uint64_t
leat_plan_at(struct leat_plan *plan, uint64_t epoch, uint64_t position)
{
	struct leat_at at = {.pass = epoch, .pos = position};

	for (int i = plan->ops; i-- > 0;) {
		struct leat_plan_step *step = &plan->op[i];

		if (step->op->on_plan.map)
			step->op->on_plan.map(step->params, &step->in, step->state, &at);
	}
	return at.pos;
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
