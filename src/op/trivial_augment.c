/* trivial_augment.c - one random augmentation of random magnitude, like torchvision's TrivialAugmentWide on PIL
 * images
 *
 * Draws one of the 14 augmentations of image/augment.h, its magnitude, and a random sign if it has one.
 * Interpolation is nearest. */
#include "image/augment.h"
#include "op/op.h"

struct trivial_augment {
	int64_t bins, fill;
};

static const struct leat_opt options[] = {
	LEAT_INT(struct trivial_augment, bins, "31", 2, 1000, "number of magnitude levels"),
	LEAT_INT(struct trivial_augment, fill, "0", 0, 255,
                 "fill value for pixels outside the image, for every channel"),
	LEAT_OPT_END,
};

static const struct leat_augment_most most = {
	.shear = 0.99,
	.translate_x = 32,
	.translate_y = 32,
	.rotate = 135,
	.adjust = 0.99,
	.posterize = 6,
};

static bool
accepts(const struct leat_field *field, enum leat_layout layout)
{
	return field->dtype == LEAT_U8 && leat_accepts_color(field, layout);
}

static size_t
scratch_bytes(const void *params, const struct leat_field *field)
{
	(void)params;
	return leat_augment_scratch(field->shape, false);
}

static enum leat_status
run(const void *params, struct leat_work *work, int field, struct leat_err *err)
{
	const struct trivial_augment *augment = params;
	const struct leat_datum in = work->sample->field[field];
	enum leat_augment kind = (enum leat_augment)leat_rng_below(&work->rng, LEAT_AUGMENTS);
	int64_t bin = (int64_t)leat_rng_below(&work->rng, (uint64_t)augment->bins);
	bool negate = leat_rng_coin(&work->rng) && leat_augment_is_signed(kind);
	double magnitude = leat_augment_magnitude(kind, &most, bin, augment->bins);
	enum leat_status status = leat_check_color(&in, err);

	if (status == LEAT_OK)
		status = leat_work_out(work, field, LEAT_U8, 3, in.shape, err);
	if (status == LEAT_OK)
		status = leat_augment(&in, &work->sample->field[field], kind, negate ? -magnitude : magnitude,
		                      (uint8_t)augment->fill, work->scratch, err);
	return status;
}

const struct leat_op leat_op_trivial_augment = {
	.name = "trivial_augment",
	.doc = "Apply one random change of geometry or color, of random magnitude, like torchvision's "
	       "TrivialAugmentWide.",
	.example = "trivial_augment",
	.kind = LEAT_OP_COLOR,
	.version = 1,
	.opts = options,
	.params_size = sizeof(struct trivial_augment),
	.random = true,
	.on_field.accepts = accepts,
	.on_field.wants =
		"a gray or RGB image in uint8 (height x width x 1 or 3; put it before ops that output float32)",
	.on_field.scratch_bytes = scratch_bytes,
	.on_field.run = run,
};
