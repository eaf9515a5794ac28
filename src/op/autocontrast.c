/* autocontrast.c - stretch each channel to the full range, like torchvision's RandomAutocontrast
 *
 * uint8 matches torchvision on PIL images; float32 in 0..1 matches it on tensors. A channel with a single value is
 * left unchanged. */
#include "image/color.h"
#include "op/op.h"

struct autocontrast {
	float probability;
};

static const struct leat_opt options[] = {
	LEAT_FLOAT(struct autocontrast, probability, "1", 0, 1, "fraction of images to change"),
	LEAT_OPT_END,
};

static enum leat_status
run(const void *params, struct leat_work *work, int field, struct leat_err *err)
{
	const struct autocontrast *autocontrast = params;
	const struct leat_datum *image = &work->sample->field[field];
	bool changes = leat_rng_uniform(&work->rng, 0, 1) < autocontrast->probability;
	enum leat_status status = leat_check_image(image, LEAT_HWC, err);

	if (status == LEAT_OK)
		status = leat_check_scale(image, err);
	if (status == LEAT_OK && changes)
		leat_autocontrast(image);
	return status;
}

const struct leat_op leat_op_autocontrast = {
	.name = "autocontrast",
	.doc = "Stretch each channel to the full range, black to white, like torchvision.",
	.example = "autocontrast(probability=0.5)",
	.kind = LEAT_OP_STATISTICS,
	.version = 1,
	.opts = options,
	.params_size = sizeof(struct autocontrast),
	.random = true,
	.on_field.accepts = leat_accepts_image,
	.on_field.wants = "an image (height x width x channels; uint8, or float32 from 0 to 1)",
	.on_field.in_place = true,
	.on_field.run = run,
};
