/* repeat.c - several passes over the input form one pass of the output
 *
 * Output pass p reads input passes p * times, p * times + 1, and so on, so an upstream shuffle gives a new order
 * each time, and one epoch of repeat(2) has the same order as two epochs without it. */
#include <inttypes.h>

#include "op/op.h"

struct repeat {
	int64_t times;
};

static const struct leat_opt options[] = {
	LEAT_INT(struct repeat, times, LEAT_REQUIRED, 1, 1e18, "passes over the input per epoch"),
	LEAT_OPT_END,
};

static enum leat_status
plan_open(const void *params, const struct leat_plan_in *in, uint64_t *size, void **state, struct leat_err *err)
{
	const struct repeat *repeat = params;

	(void)state;
	if (__builtin_mul_overflow(in->size, (uint64_t)repeat->times, size) || *size > LEAT_MAX_POSITIONS)
		return leat_fail(err, LEAT_SPEC,
		                 "repeat(%" PRId64 ") of %" PRIu64
		                 " samples is more than an epoch can hold (2^62); repeat at "
		                 "most %" PRIu64 " times, or ask for more epochs",
		                 repeat->times, in->size, (uint64_t)LEAT_MAX_POSITIONS / in->size);
	return LEAT_OK;
}

static void
plan_map(const void *params, const struct leat_plan_in *in, void *state, struct leat_at *at)
{
	const struct repeat *repeat = params;

	(void)state;
	at->pass = at->pass * (uint64_t)repeat->times + at->pos / in->size;
	at->pos %= in->size;
}

const struct leat_op leat_op_repeat = {
	.name = "repeat",
	.doc = "Repeat the samples several times per epoch; an upstream shuffle reshuffles each time.",
	.example = "repeat(2)",
	.kind = LEAT_OP_PLAN,
	.version = 1,
	.opts = options,
	.params_size = sizeof(struct repeat),
	.on_plan.open = plan_open,
	.on_plan.in_order = true,
	.on_plan.map = plan_map,
};
