/* posterize.c - fewer different values: only the highest bits stay, as torchvision's RandomPosterize
 *
 * Floats have no such bits, and torchvision refuses them too. */
#include "image/color.h"
#include "op/op.h"

struct posterize {
	int64_t bits;
	float probability;
};

static const struct leat_opt options[] = {
	LEAT_INT(struct posterize, bits, LEAT_REQUIRED, 1, 8, "of each value that stay, of 8"),
	LEAT_FLOAT(struct posterize, probability, "1", 0, 1, "share of the images that are changed"),
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
	.doc = "Keep the highest bits of each value of an image, as torchvision does.",
	.example = "posterize(4, probability=0.5)",
	.kind = LEAT_OP_COLOR,
	.version = 1,
	.opts = options,
	.params_size = sizeof(struct posterize),
	.random = true,
	.on_field.accepts = accepts,
	.on_field.wants = "a uint8 image (height x width x channels; put it before what makes float32)",
	.on_field.in_place = true,
	.on_field.run = run,
};
