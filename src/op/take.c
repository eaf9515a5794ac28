/* take.c - keep the first n samples; positions do not change */
#include "op/op.h"

struct take {
	int64_t count;
};

static const struct leat_opt options[] = {
	LEAT_INT(struct take, count, LEAT_REQUIRED, 0, 1e18, "number of samples to keep; all if there are fewer"),
	LEAT_OPT_END,
};

static enum leat_status
plan_open(const void *params, const struct leat_plan_in *in, uint64_t *size, void **state, struct leat_err *err)
{
	const struct take *take = params;

	(void)state;
	(void)err;
	*size = in->size < (uint64_t)take->count ? in->size : (uint64_t)take->count;
	return LEAT_OK;
}

const struct leat_op leat_op_take = {
	.name = "take",
	.doc = "Keep the first samples of each epoch.",
	.example = "take(1000)",
	.kind = LEAT_OP_PLAN,
	.version = 1,
	.opts = options,
	.params_size = sizeof(struct take),
	.on_plan.open = plan_open,
	.on_plan.in_order = true,
	.on_plan.fixed = true,
};
