/* equalize.c - equalize the histogram of each channel, like torchvision's RandomEqualize on PIL images
 *
 * uint8 only: the histogram has 256 bins. torchvision refuses floats, too. */
#include "image/color.h"
#include "op/op.h"

struct equalize {
	float probability;
};

static const struct leat_opt options[] = {
	LEAT_FLOAT(struct equalize, probability, "1", 0, 1, "fraction of images to change"),
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
	const struct equalize *equalize = params;
	const struct leat_datum *image = &work->sample->field[field];
	bool changes = leat_rng_uniform(&work->rng, 0, 1) < equalize->probability;
	enum leat_status status = leat_check_image(image, LEAT_HWC, err);

	if (status == LEAT_OK && changes)
		leat_equalize(image);
	return status;
}

const struct leat_op leat_op_equalize = {
	.name = "equalize",
	.doc = "Equalize the histogram of each channel, like torchvision.",
	.example = "equalize(probability=0.5)",
	.kind = LEAT_OP_STATISTICS,
	.version = 1,
	.opts = options,
	.params_size = sizeof(struct equalize),
	.random = true,
	.on_field.accepts = accepts,
	.on_field.wants = "a uint8 image (height x width x channels; put it before ops that output float32)",
	.on_field.in_place = true,
	.on_field.run = run,
};
