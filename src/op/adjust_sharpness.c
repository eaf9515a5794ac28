/* adjust_sharpness.c - blur or sharpen, like torchvision's RandomAdjustSharpness
 *
 * Blends the image with a smoothed copy: factor 0 is fully smoothed, 1 leaves the image unchanged, 2 sharpens.
 * uint8 matches torchvision on PIL images; float32 in 0..1 matches it on tensors. */
#include "image/color.h"
#include "op/op.h"

#include <math.h>

struct adjust_sharpness {
	float factor, probability;
};

static const struct leat_opt options[] = {
	LEAT_FLOAT(struct adjust_sharpness, factor, LEAT_REQUIRED, 0, INFINITY,
                   "0: smoothed, 1: unchanged, 2: sharpened"),
	LEAT_FLOAT(struct adjust_sharpness, probability, "1", 0, 1, "fraction of images to change"),
	LEAT_OPT_END,
};

static size_t
scratch_bytes(const void *params, const struct leat_field *field)
{
	(void)params;
	return leat_adjust_sharpness_scratch(field->shape, field->dtype);
}

static enum leat_status
run(const void *params, struct leat_work *work, int field, struct leat_err *err)
{
	const struct adjust_sharpness *adjust = params;
	const struct leat_datum *image = &work->sample->field[field];
	bool changes = leat_rng_uniform(&work->rng, 0, 1) < adjust->probability;
	enum leat_status status = leat_check_image(image, LEAT_HWC, err);

	if (status == LEAT_OK)
		status = leat_check_scale(image, err);
	if (status == LEAT_OK && changes)
		status = leat_adjust_sharpness(image, adjust->factor, work->scratch, err);
	return status;
}

const struct leat_op leat_op_adjust_sharpness = {
	.name = "adjust_sharpness",
	.doc = "Blur or sharpen an image, like torchvision.",
	.example = "adjust_sharpness(2, probability=0.5)",
	.kind = LEAT_OP_COLOR,
	.version = 1,
	.opts = options,
	.params_size = sizeof(struct adjust_sharpness),
	.random = true,
	.on_field.accepts = leat_accepts_image,
	.on_field.wants = "an image (height x width x channels; uint8, or float32 from 0 to 1)",
	.on_field.in_place = true,
	.on_field.scratch_bytes = scratch_bytes,
	.on_field.run = run,
};
