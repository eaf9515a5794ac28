/* shard.c - keep every count-th sample: position p reads p * count + index
 *
 * For independent jobs that share a data set. The ranks of one training job do not need it: the engine splits every
 * batch among them. */
#include <inttypes.h>

#include "op/op.h"

struct shard {
	int64_t count, index;
};

static const struct leat_opt options[] = {
	LEAT_INT(struct shard, count, LEAT_REQUIRED, 1, 1e18, "number of shards"),
	LEAT_INT(struct shard, index, LEAT_REQUIRED, 0, 1e18, "shard to keep, from 0"),
	LEAT_OPT_END,
};

static enum leat_status
check(void *params, struct leat_err *err)
{
	const struct shard *shard = params;

	if (shard->index < shard->count)
		return LEAT_OK;
	return leat_fail(err, LEAT_SPEC,
	                 "index=%" PRId64 " is out of range for count=%" PRId64 ": expected 0 to %" PRId64,
	                 shard->index, shard->count, shard->count - 1);
}

static enum leat_status
plan_open(const void *params, const struct leat_plan_in *in, uint64_t *size, void **state, struct leat_err *err)
{
	const struct shard *shard = params;
	uint64_t count = (uint64_t)shard->count, index = (uint64_t)shard->index;

	(void)state;
	(void)err;
	*size = in->size > index ? (in->size - index - 1) / count + 1 : 0;
	return LEAT_OK;
}

static void
plan_map(const void *params, const struct leat_plan_in *in, void *state, struct leat_at *at)
{
	const struct shard *shard = params;

	(void)in;
	(void)state;
	at->pos = at->pos * (uint64_t)shard->count + (uint64_t)shard->index;
}

const struct leat_op leat_op_shard = {
	.name = "shard",
	.doc = "Keep every count-th sample, starting at sample index.",
	.example = "shard(4, 0)",
	.kind = LEAT_OP_PLAN,
	.version = 1,
	.opts = options,
	.params_size = sizeof(struct shard),
	.check = check,
	.on_plan.open = plan_open,
	.on_plan.in_order = true,
	.on_plan.map = plan_map,
	.on_plan.fixed = true,
};
