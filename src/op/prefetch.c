/* prefetch.c - options of `prefetch`; the engine reads its params */
#include "op/batch.h"
#include "op/op.h"

static const struct leat_opt options[] = {
	LEAT_INT(struct leat_prefetch_params, batches, "-1", -1, 65536,
                 "batches to keep ready; -1: chosen automatically, which is also the default without prefetch"),
	LEAT_OPT_END,
};

const struct leat_op leat_op_prefetch = {
	.name = "prefetch",
	.doc = "Set how many batches to prepare ahead; affects speed and memory, never the batches.",
	.example = "prefetch(4)",
	.kind = LEAT_OP_HINT,
	.version = 1,
	.opts = options,
	.params_size = sizeof(struct leat_prefetch_params),
};
