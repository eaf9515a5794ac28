/* batch.c - options of `batch`, which ends the sample chain; the engine reads its params */
#include <inttypes.h>

#include "op/batch.h"
#include "op/op.h"

static const struct leat_opt options[] = {
	LEAT_INT(struct leat_batch_params, size, "0", 0, 1e9, "samples per batch, over all ranks"),
	LEAT_OPT_(struct leat_batch_params, per_rank, LEAT_OPT_INT, "0", 0, 1e9, NULL,
                  "samples per rank; use instead of size", LEAT_OPT_NAMED),
	LEAT_OPT_(struct leat_batch_params, tail, LEAT_OPT_ENUM, "auto", 0, 0, "auto|short|drop|pad|wrap|exact",
                  "what to do with an incomplete last batch: deliver it short (one rank only), drop it, pad it with "
                  "zeros, wrap around to the epoch's first samples, or split exactly its samples among the ranks; "
                  "auto: short with one rank, wrap with more",
                  LEAT_OPT_NAMED),
	LEAT_OPT_END,
};

static enum leat_status
check(void *params, struct leat_err *err)
{
	const struct leat_batch_params *batch = params;

	if (batch->size == 0 && batch->per_rank == 0)
		return leat_fail(err, LEAT_SPEC, "give a size of 1 or more: batch(32), or batch(per_rank=32)");
	if (batch->size != 0 && batch->per_rank != 0)
		return leat_fail(err, LEAT_SPEC,
		                 "give a size or per_rank, not both: batch(%" PRId64
		                 ") for all ranks together, or batch(per_rank=%" PRId64 ") for each",
		                 batch->size, batch->per_rank);
	return LEAT_OK;
}

const struct leat_op leat_op_batch = {
	.name = "batch",
	.doc = "Group samples into batches.",
	.example = "batch(32)",
	.kind = LEAT_OP_BATCH,
	.version = 1,
	.opts = options,
	.params_size = sizeof(struct leat_batch_params),
	.check = check,
};
