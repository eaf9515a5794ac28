/* mixup.c - blend pairs of samples and their labels (Zhang et al., 2018)
 *
 * Neighbours in the batch form a pair (use shuffle to make pairs random): x becomes s x + (1 - s) y and y becomes s
 * y + (1 - s) x, with s drawn from Beta(alpha, alpha) per pair. A sample without a partner is left unchanged. */
#include "op/op.h"

struct mixup {
	float alpha;
	const char *image, *label;
	int field[2]; /* found at open */
};

static const struct leat_opt options[] = {
	LEAT_FLOAT(struct mixup, alpha, "0.2", 0.001, 1000,
                   "parameter of the Beta distribution; smaller values mix less"),
	LEAT_STRING(struct mixup, image, "image", "image field, float32"),
	LEAT_STRING(struct mixup, label, "label", "label field, float32; use one_hot before batch"),
	LEAT_OPT_END,
};

static enum leat_status
infer(void *params, struct leat_schema *schema, struct leat_err *err)
{
	struct mixup *mixup = params;
	enum leat_status status = leat_rows_field(schema, mixup->image, true, &mixup->field[0], err);

	return status == LEAT_OK ? leat_rows_field(schema, mixup->label, true, &mixup->field[1], err) : status;
}

static void
run(const void *params, const struct leat_rows *rows)
{
	const struct mixup *mixup = params;

	for (int64_t i = 0; i < rows->count; i++) {
		struct leat_rng rng;
		float share;

		if (!leat_rows_pair(rows, i))
			continue;
		leat_rows_stream(rows, i, &rng);
		share = (float)leat_rng_beta(&rng, (double)mixup->alpha);
		leat_rows_blend(rows, i, mixup->field[0], share);
		leat_rows_blend(rows, i, mixup->field[1], share);
	}
}

const struct leat_op leat_op_mixup = {
	.name = "mixup",
	.doc = "Blend neighbouring samples of a batch, and their labels.",
	.example = "mixup(0.2)",
	.kind = LEAT_OP_MIX,
	.version = 1,
	.opts = options,
	.params_size = sizeof(struct mixup),
	.random = true,
	.on_batch.infer = infer,
	.on_batch.run = run,
	.on_batch.row_group = 2,
};
