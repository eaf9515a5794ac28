/* solarize.c - invert bright values, like torchvision's RandomSolarize
 *
 * x at or above the threshold becomes 255 - x for uint8, 1 - x for float32. */
#include "image/color.h"
#include "op/op.h"

struct solarize {
	float threshold, probability;
};

static const struct leat_opt options[] = {
	LEAT_FLOAT(struct solarize, threshold, LEAT_REQUIRED, 0, 256,
                   "invert values at or above this; on the image's scale, 0..255 or 0..1"),
	LEAT_FLOAT(struct solarize, probability, "1", 0, 1, "fraction of images to change"),
	LEAT_OPT_END,
};

static enum leat_status
infer(void *params, struct leat_field *field, enum leat_layout *layout, struct leat_err *err)
{
	const struct solarize *solarize = params;

	(void)layout;
	if (field->dtype == LEAT_F32 && solarize->threshold > 1)
		return leat_fail(err, LEAT_SPEC,
		                 "threshold=%g is above 1, the maximum of float32 images: write %g/255, or put it "
		                 "before ops that output float32",
		                 (double)solarize->threshold, (double)solarize->threshold);
	return LEAT_OK;
}

static enum leat_status
run(const void *params, struct leat_work *work, int field, struct leat_err *err)
{
	const struct solarize *solarize = params;
	const struct leat_datum *image = &work->sample->field[field];
	enum leat_status status = leat_check_scale(image, err);

	if (status == LEAT_OK && leat_rng_uniform(&work->rng, 0, 1) < solarize->probability)
		leat_solarize(image, solarize->threshold);
	return status;
}

const struct leat_op leat_op_solarize = {
	.name = "solarize",
	.doc = "Invert the values of an image that reach a threshold, like torchvision.",
	.example = "solarize(128, probability=0.5)",
	.kind = LEAT_OP_COLOR,
	.version = 1,
	.opts = options,
	.params_size = sizeof(struct solarize),
	.random = true,
	.on_field.accepts = leat_accepts_image,
	.on_field.wants = "an image (height x width x channels; uint8, or float32 from 0 to 1)",
	.on_field.infer = infer,
	.on_field.in_place = true,
	.on_field.run = run,
};
