/* rand_augment.c - a few random augmentations of one magnitude, like torchvision's RandAugment on PIL images
 *
 * Draws one of the 14 augmentations of image/augment.h `ops` times, with replacement, and a random sign for those
 * that have one. Interpolation is nearest. */
#include "image/augment.h"
#include "op/op.h"

struct rand_augment {
	int64_t ops, magnitude, bins, fill;
};

static const struct leat_opt options[] = {
	LEAT_INT(struct rand_augment, ops, "2", 1, 16, "number of augmentations to apply in sequence"),
	LEAT_INT(struct rand_augment, magnitude, "9", 0, 999,
                 "strength of every augmentation, from 0 (none) to bins - 1 (full)"),
	LEAT_INT(struct rand_augment, bins, "31", 2, 1000, "number of magnitude levels"),
	LEAT_INT(struct rand_augment, fill, "0", 0, 255, "fill value for pixels outside the image, for every channel"),
	LEAT_OPT_END,
};

static enum leat_status
check(void *params, struct leat_err *err)
{
	const struct rand_augment *augment = params;

	if (augment->magnitude >= augment->bins)
		return leat_fail(err, LEAT_SPEC, "magnitude=%d is out of range for bins=%d: expected 0 to %d",
		                 (int)augment->magnitude, (int)augment->bins, (int)augment->bins - 1);
	return LEAT_OK;
}

static bool
accepts(const struct leat_field *field, enum leat_layout layout)
{
	return field->dtype == LEAT_U8 && leat_accepts_color(field, layout);
}

/* From the second augmentation on, input and output are the same buffer. */
static size_t
scratch_bytes(const void *params, const struct leat_field *field)
{
	(void)params;
	return leat_augment_scratch(field->shape, true);
}

static enum leat_status
run(const void *params, struct leat_work *work, int field, struct leat_err *err)
{
	const struct rand_augment *augment = params;
	struct leat_datum in = work->sample->field[field];
	const struct leat_augment_most most = {
		.shear = 0.3,
		.translate_x = 150.0 / 331.0 * (double)in.shape[1],
		.translate_y = 150.0 / 331.0 * (double)in.shape[0],
		.rotate = 30,
		.adjust = 0.9,
		.posterize = 4,
	};
	enum leat_status status = leat_check_color(&in, err);

	if (status == LEAT_OK)
		status = leat_work_out(work, field, LEAT_U8, 3, in.shape, err);
	for (int64_t i = 0; i < augment->ops && status == LEAT_OK; i++) {
		enum leat_augment kind = (enum leat_augment)leat_rng_below(&work->rng, LEAT_AUGMENTS);
		bool negate = leat_rng_coin(&work->rng) && leat_augment_is_signed(kind);
		double magnitude = leat_augment_magnitude(kind, &most, augment->magnitude, augment->bins);

		status = leat_augment(&in, &work->sample->field[field], kind, negate ? -magnitude : magnitude,
		                      (uint8_t)augment->fill, work->scratch, err);
		in = work->sample->field[field];
	}
	return status;
}

const struct leat_op leat_op_rand_augment = {
	.name = "rand_augment",
	.doc = "Apply a few random changes of geometry and color, all of one magnitude, like torchvision's "
	       "RandAugment.",
	.example = "rand_augment(ops=2, magnitude=9)",
	.kind = LEAT_OP_COLOR,
	.version = 1,
	.opts = options,
	.params_size = sizeof(struct rand_augment),
	.random = true,
	.check = check,
	.on_field.accepts = accepts,
	.on_field.wants =
		"a gray or RGB image in uint8 (height x width x 1 or 3; put it before ops that output float32)",
	.on_field.scratch_bytes = scratch_bytes,
	.on_field.run = run,
};
