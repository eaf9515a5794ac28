/* equalize.c - all values come about equally often, as torchvision's RandomEqualize on PIL images
 *
 * Each channel by itself, by the counts of its 256 values. Floats have too many, and torchvision
 * refuses them too. */
#include "image/color.h"
#include "op/op.h"

struct equalize {
	float probability;
};

static const struct leat_opt options[] = {
	LEAT_FLOAT(struct equalize, probability, "1", 0, 1, "share of the images that are changed"),
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
	.doc = "Spread the values of each channel so that all come about equally often, as torchvision does.",
	.example = "equalize(probability=0.5)",
	.kind = LEAT_OP_STATISTICS,
	.version = 1,
	.opts = options,
	.params_size = sizeof(struct equalize),
	.random = true,
	.on_field.accepts = accepts,
	.on_field.wants = "a uint8 image (height x width x channels; put it before what makes float32)",
	.on_field.in_place = true,
	.on_field.run = run,
};
