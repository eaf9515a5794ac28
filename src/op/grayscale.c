/* grayscale.c - convert color to gray, like torchvision's Grayscale and RandomGrayscale
 *
 * uint8: ITU-R 601-2 luma, rounded, as Pillow's convert("L"). float32: 0.2989 R + 0.587 G + 0.114 B. */
#include "image/color.h"
#include "op/op.h"

#include <string.h>

struct grayscale {
	int64_t channels;
	float probability;
};

static const struct leat_opt options[] = {
	LEAT_INT(struct grayscale, channels, "1", 1, 3, "output channels, 1 or 3; with 3, all are equal"),
	LEAT_FLOAT(struct grayscale, probability, "1", 0, 1, "fraction of images to convert"),
	LEAT_OPT_END,
};

static enum leat_status
check(void *params, struct leat_err *err)
{
	const struct grayscale *grayscale = params;

	if (grayscale->channels == 2)
		return leat_fail(err, LEAT_SPEC, "channels=2 is not supported: expected 1 or 3");
	return LEAT_OK;
}

/* Unconverted images must have the same shape as converted ones. */
static enum leat_status
infer(void *params, struct leat_field *field, enum leat_layout *layout, struct leat_err *err)
{
	const struct grayscale *grayscale = params;

	(void)layout;
	if (grayscale->probability < 1 && field->shape[2] != grayscale->channels)
		return leat_fail(err, LEAT_SPEC,
		                 "with a probability below 1, input and output need the same number of channels: write "
		                 "decode(channels=3) and grayscale(channels=3, probability=%g)",
		                 (double)grayscale->probability);
	field->shape[2] = grayscale->channels;
	return LEAT_OK;
}

static enum leat_status
run(const void *params, struct leat_work *work, int field, struct leat_err *err)
{
	const struct grayscale *grayscale = params;
	const struct leat_datum in = work->sample->field[field], *out = &work->sample->field[field];
	bool stays = leat_rng_uniform(&work->rng, 0, 1) >= grayscale->probability;
	enum leat_status status = leat_check_color(&in, err);

	if (status == LEAT_OK)
		status = leat_work_out(work, field, in.dtype, 3,
		                       (const int64_t[]){in.shape[0], in.shape[1], grayscale->channels}, err);
	if (status != LEAT_OK)
		return status;
	if (stays)
		memcpy(out->data, in.data, leat_datum_bytes(&in));
	else
		leat_grayscale(&in, out);
	return LEAT_OK;
}

const struct leat_op leat_op_grayscale = {
	.name = "grayscale",
	.doc = "Convert an image to gray, like torchvision.",
	.example = "grayscale(channels=3, probability=0.1)",
	.kind = LEAT_OP_COLOR,
	.version = 1,
	.opts = options,
	.params_size = sizeof(struct grayscale),
	.random = true,
	.check = check,
	.on_field.accepts = leat_accepts_color,
	.on_field.wants = "a gray or RGB image (height x width x 1 or 3, uint8 or float32)",
	.on_field.infer = infer,
	.on_field.run = run,
};
