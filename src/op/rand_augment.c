/* rand_augment.c - a few changes at random, all of one magnitude, as torchvision's RandAugment on PIL images
 *
 * Each of `ops` times one of the 14 changes of image/augment.h is drawn, the same one perhaps twice, and
 * whether it goes the other way where there is one. Pixels come from the nearest place. */
#include "image/augment.h"
#include "op/op.h"

struct rand_augment {
	int64_t ops, magnitude, bins, fill;
};

static const struct leat_opt options[] = {
	LEAT_INT(struct rand_augment, ops, "2", 1, 16, "how many changes, one after the other"),
	LEAT_INT(struct rand_augment, magnitude, "9", 0, 999, "of all changes: 0 is none, bins - 1 the most"),
	LEAT_INT(struct rand_augment, bins, "31", 2, 1000, "how many magnitudes there are"),
	LEAT_INT(struct rand_augment, fill, "0", 0, 255, "what stands where there was no pixel, in every channel"),
	LEAT_OPT_END,
};

static enum leat_status
check(void *params, struct leat_err *err)
{
	const struct rand_augment *augment = params;

	if (augment->magnitude >= augment->bins)
		return leat_fail(err, LEAT_SPEC, "magnitude=%d is beyond the last of %d bins, which is %d",
		                 (int)augment->magnitude, (int)augment->bins, (int)augment->bins - 1);
	return LEAT_OK;
}

static bool
accepts(const struct leat_field *field, enum leat_layout layout)
{
	return field->dtype == LEAT_U8 && leat_accepts_color(field, layout);
}

/* From the second change on they work in place. */
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
		bool other_way = leat_rng_coin(&work->rng) && leat_augment_is_signed(kind);
		double magnitude = leat_augment_magnitude(kind, &most, augment->magnitude, augment->bins);

		status = leat_augment(&in, &work->sample->field[field], kind, other_way ? -magnitude : magnitude,
		                      (uint8_t)augment->fill, work->scratch, err);
		in = work->sample->field[field];
	}
	return status;
}

const struct leat_op leat_op_rand_augment = {
	.name = "rand_augment",
	.doc = "Make a few random changes of shape and color, all of one magnitude: torchvision's RandAugment.",
	.example = "rand_augment(ops=2, magnitude=9)",
	.kind = LEAT_OP_COLOR,
	.version = 1,
	.opts = options,
	.params_size = sizeof(struct rand_augment),
	.random = true,
	.check = check,
	.on_field.accepts = accepts,
	.on_field.wants = "a gray or RGB image in uint8 (height x width x 1 or 3; put it before what makes "
			  "float32)",
	.on_field.scratch_bytes = scratch_bytes,
	.on_field.run = run,
};
