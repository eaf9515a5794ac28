/* prefetch.c - the table of `prefetch`; the engine reads its params */
#include "op/batch.h"
#include "op/op.h"

static const struct leat_opt options[] = {
	LEAT_INT(struct leat_prefetch_params, batches, "-1", -1, 65536,
                 "batches kept ready ahead of the consumer; -1: as many as pay, which is also what happens without "
                 "prefetch"),
	LEAT_OPT_END,
};

const struct leat_op leat_op_prefetch = {
	.name = "prefetch",
	.doc = "Say how many batches are made ahead; changes speed and memory, never the batches.",
	.example = "prefetch(4)",
	.kind = LEAT_OP_HINT,
	.version = 1,
	.opts = options,
	.params_size = sizeof(struct leat_prefetch_params),
};
