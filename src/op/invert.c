/* invert.c - invert pixel values, like torchvision's RandomInvert: 255 - x for uint8, 1 - x for float32 */
#include "image/color.h"
#include "op/op.h"

struct invert {
	float probability;
};

static const struct leat_opt options[] = {
	LEAT_FLOAT(struct invert, probability, "1", 0, 1, "fraction of images to change"),
	LEAT_OPT_END,
};

static enum leat_status
run(const void *params, struct leat_work *work, int field, struct leat_err *err)
{
	const struct invert *invert = params;
	const struct leat_datum *image = &work->sample->field[field];
	enum leat_status status = leat_check_scale(image, err);

	if (status == LEAT_OK && leat_rng_uniform(&work->rng, 0, 1) < invert->probability)
		leat_invert(image);
	return status;
}

const struct leat_op leat_op_invert = {
	.name = "invert",
	.doc = "Invert the pixel values of an image, like torchvision.",
	.example = "invert(probability=0.5)",
	.kind = LEAT_OP_COLOR,
	.version = 1,
	.opts = options,
	.params_size = sizeof(struct invert),
	.random = true,
	.on_field.accepts = leat_accepts_image,
	.on_field.wants = "an image (height x width x channels; uint8, or float32 from 0 to 1)",
	.on_field.in_place = true,
	.on_field.run = run,
};
