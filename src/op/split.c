/* split.c - keep the training or the validation part of the samples
 *
 * The input is cut into blocks of `folds` neighbours, and each block gives one sample, chosen at random, to the
 * validation part. Both parts keep the input's order, so reads stay sequential, and data sorted by class is split
 * evenly within each class. The choice depends on the op's own seed: a training and a validation feed agree on it
 * whatever their own seeds are. In every block, different values of `fold` choose different samples. */
#include <inttypes.h>

#include "op/op.h"

enum { TRAIN, VALIDATION };

struct split {
	int part;
	int64_t folds, fold, seed;
};

static const struct leat_opt options[] = {
	LEAT_ENUM(struct split, part, LEAT_REQUIRED, "train|validation", "part to keep"),
	LEAT_INT(struct split, folds, "10", 2, 1e9, "one sample in this many is for validation"),
	LEAT_INT(struct split, fold, "0", 0, 1e9, "which of the folds is for validation, from 0"),
	LEAT_OPT_(struct split, seed, LEAT_OPT_INT, "0", 0, 1e18, NULL,
                  "seed of the split, independent of the feed's: use the same one for both parts", LEAT_OPT_NAMED),
	LEAT_OPT_END,
};

static enum leat_status
check(void *params, struct leat_err *err)
{
	const struct split *split = params;

	if (split->fold < split->folds)
		return LEAT_OK;
	return leat_fail(err, LEAT_SPEC,
	                 "fold=%" PRId64 " is out of range for folds=%" PRId64 ": expected 0 to %" PRId64, split->fold,
	                 split->folds, split->folds - 1);
}

/* The sample of a block that is for validation. In a shorter last block there may be none at that place. */
static uint64_t
chosen(const struct split *split, const struct leat_plan_in *in, uint64_t block)
{
	uint64_t folds = (uint64_t)split->folds;
	struct leat_rng rng;

	leat_rng_init(&rng, (uint64_t)split->seed, 0, block, in->stream);
	return (leat_rng_below(&rng, folds) + (uint64_t)split->fold) % folds;
}

static enum leat_status
plan_open(const void *params, const struct leat_plan_in *in, uint64_t *size, void **state, struct leat_err *err)
{
	const struct split *split = params;
	uint64_t folds = (uint64_t)split->folds, blocks = in->size / folds, rest = in->size % folds, validation;

	(void)state;
	if (!in->fixed)
		return leat_fail(err, LEAT_SPEC,
		                 "split must come before shuffle and repeat: otherwise samples would move between "
		                 "training and validation");
	validation = blocks + (chosen(split, in, blocks) < rest);
	*size = split->part == VALIDATION ? validation : in->size - validation;
	return LEAT_OK;
}

static void
plan_map(const void *params, const struct leat_plan_in *in, void *state, struct leat_at *at)
{
	const struct split *split = params;
	uint64_t folds = (uint64_t)split->folds;

	(void)state;
	if (split->part == VALIDATION) {
		at->pos = at->pos * folds + chosen(split, in, at->pos);
	} else {
		uint64_t block = at->pos / (folds - 1), i = at->pos % (folds - 1);

		at->pos = block * folds + i + (i >= chosen(split, in, block));
	}
}

const struct leat_op leat_op_split = {
	.name = "split",
	.doc = "Keep the training or the validation part of the samples, chosen at random but the same in every epoch.",
	.example = "split(train, 10)",
	.kind = LEAT_OP_PLAN,
	.version = 1,
	.opts = options,
	.params_size = sizeof(struct split),
	.check = check,
	.on_plan.open = plan_open,
	.on_plan.in_order = true,
	.on_plan.map = plan_map,
	.on_plan.fixed = true,
};
