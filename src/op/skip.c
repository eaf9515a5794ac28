/* skip.c - skip the first n samples: position p reads n + p */
#include "op/op.h"

struct skip {
	int64_t count;
};

static const struct leat_opt options[] = {
	LEAT_INT(struct skip, count, LEAT_REQUIRED, 0, 1e18, "number of samples to skip"),
	LEAT_OPT_END,
};

static enum leat_status
plan_open(const void *params, const struct leat_plan_in *in, uint64_t *size, void **state, struct leat_err *err)
{
	const struct skip *skip = params;

	(void)state;
	(void)err;
	*size = in->size > (uint64_t)skip->count ? in->size - (uint64_t)skip->count : 0;
	return LEAT_OK;
}

static void
plan_map(const void *params, const struct leat_plan_in *in, void *state, struct leat_at *at)
{
	const struct skip *skip = params;

	(void)in;
	(void)state;
	at->pos += (uint64_t)skip->count;
}

const struct leat_op leat_op_skip = {
	.name = "skip",
	.doc = "Skip the first samples of each epoch.",
	.example = "skip(1000)",
	.kind = LEAT_OP_PLAN,
	.version = 1,
	.opts = options,
	.params_size = sizeof(struct skip),
	.on_plan.open = plan_open,
	.on_plan.in_order = true,
	.on_plan.map = plan_map,
	.on_plan.fixed = true,
};
