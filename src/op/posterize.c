/* posterize.c - keep only the highest bits of each value, like torchvision's RandomPosterize
 *
 * uint8 only: torchvision refuses floats, too. */
#include "image/color.h"
#include "op/op.h"

struct posterize {
	int64_t bits;
	float probability;
};

static const struct leat_opt options[] = {
	LEAT_INT(struct posterize, bits, LEAT_REQUIRED, 1, 8, "bits to keep of each 8-bit value"),
	LEAT_FLOAT(struct posterize, probability, "1", 0, 1, "fraction of images to change"),
	LEAT_OPT_END,
};

static bool
accepts(const struct leat_field *field, enum leat_layout layout)
{
	return field->dtype == LEAT_U8 && leat_accepts_image(field, layout);
}

static enum leat_status
run(const void *params, struct leat_work *work, int field, struct leat_err *err)
{
	const struct posterize *posterize = params;

	(void)err;
	if (leat_rng_uniform(&work->rng, 0, 1) < posterize->probability)
		leat_posterize(&work->sample->field[field], (int)posterize->bits);
	return LEAT_OK;
}

const struct leat_op leat_op_posterize = {
	.name = "posterize",
	.doc = "Reduce each value of an image to its highest bits, like torchvision.",
	.example = "posterize(4, probability=0.5)",
	.kind = LEAT_OP_COLOR,
	.version = 1,
	.opts = options,
	.params_size = sizeof(struct posterize),
	.random = true,
	.on_field.accepts = accepts,
	.on_field.wants = "a uint8 image (height x width x channels; put it before ops that output float32)",
	.on_field.in_place = true,
	.on_field.run = run,
};
