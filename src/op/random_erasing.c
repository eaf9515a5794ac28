/* random_erasing.c - overwrite a random rectangle of some images, like torchvision's RandomErasing
 *
 * Draws a fraction of the area and a height/width ratio (uniform on a log scale), up to ten times, and uses the
 * first rectangle smaller than the image in both directions, at a random position. If there is none, the image is
 * left unchanged. */
#include "image/image.h"
#include "op/op.h"

#include <math.h>

struct random_erasing {
	float probability;
	struct leat_floats scale, ratio, value;
	bool random;
};

enum { TRIES = 10 };

static const struct leat_opt options[] = {
	LEAT_FLOAT_WAS(struct random_erasing, probability, "p", "0.5", 0, 1, "fraction of images to change"),
	LEAT_FLOATS(struct random_erasing, scale, "[0.02, 0.33]", 0, 1, "fraction of the area to erase, [min, max]"),
	LEAT_FLOATS(struct random_erasing, ratio, "[0.3, 3.3]", 1e-3, 1e3, "height/width ratio, [min, max]"),
	LEAT_FLOATS(struct random_erasing, value, "0", -INFINITY, INFINITY,
                    "fill value: one number per channel, or one for all; clipped to 0..255 for uint8"),
	LEAT_BOOL(struct random_erasing, random, "false",
                  "fill with Gaussian noise of mean 0 and standard deviation 1"),
	LEAT_OPT_END,
};

static enum leat_status
check(void *params, struct leat_err *err)
{
	const struct random_erasing *erasing = params;
	enum leat_status status = leat_check_range(&erasing->scale, "scale", err);

	return status == LEAT_OK ? leat_check_range(&erasing->ratio, "ratio", err) : status;
}

static enum leat_status
infer(void *params, struct leat_field *field, enum leat_layout *layout, struct leat_err *err)
{
	const struct random_erasing *erasing = params;
	int64_t channels = leat_field_channels(field, *layout);
	int count = erasing->value.count;

	if (erasing->random && field->dtype != LEAT_F32)
		return leat_fail(err, LEAT_SPEC, "random=true writes float32 noise: put scale or normalize before it");
	if (count == 1 || count == channels)
		return LEAT_OK;
	if (channels < 0)
		return leat_fail(err, LEAT_SPEC,
		                 "value has %d numbers, but the number of channels is unknown until the files are "
		                 "read: write decode(channels=3)",
		                 count);
	return leat_fail(err, LEAT_SPEC, "value has %d numbers, expected 1 or %d, one per channel", count,
	                 (int)channels);
}

static bool
draw_part(const struct random_erasing *erasing, struct leat_rng *rng, int64_t height, int64_t width,
          struct leat_window *part)
{
	const float *scale = erasing->scale.value, *ratio = erasing->ratio.value;

	for (int i = 0; i < TRIES; i++) {
		double area = (double)height * (double)width * (double)leat_rng_uniform(rng, scale[0], scale[1]);
		double shape = exp((double)leat_rng_uniform(rng, logf(ratio[0]), logf(ratio[1])));
		double h = rint(sqrt(area * shape)), w = rint(sqrt(area / shape));

		if (h < (double)height && w < (double)width) {
			*part = (struct leat_window){.height = (int64_t)h, .width = (int64_t)w};
			part->top = (int64_t)leat_rng_below(rng, (uint64_t)(height - part->height + 1));
			part->left = (int64_t)leat_rng_below(rng, (uint64_t)(width - part->width + 1));
			return true;
		}
	}
	return false;
}

static enum leat_status
run(const void *params, struct leat_work *work, int field, struct leat_err *err)
{
	const struct random_erasing *erasing = params;
	const struct leat_datum *image = &work->sample->field[field];
	enum leat_status status = leat_check_image(image, LEAT_HWC, err);
	float value[LEAT_MAX_CHANNELS];
	struct leat_window part;

	if (status != LEAT_OK || leat_rng_uniform(&work->rng, 0, 1) >= erasing->probability ||
	    !draw_part(erasing, &work->rng, image->shape[0], image->shape[1], &part))
		return status;
	for (int c = 0; c < LEAT_MAX_CHANNELS; c++)
		value[c] = erasing->value.value[erasing->value.count == 1 ? 0 : c];
	if (erasing->random)
		leat_erase_noise(image, &part, &work->rng);
	else
		leat_erase(image, &part, value);
	return LEAT_OK;
}

const struct leat_op leat_op_random_erasing = {
	.name = "random_erasing",
	.doc = "Overwrite a random rectangle of an image, with the given probability.",
	.example = "random_erasing(probability=0.25)",
	.kind = LEAT_OP_GEOMETRY,
	.version = 1,
	.opts = options,
	.params_size = sizeof(struct random_erasing),
	.random = true,
	.check = check,
	.on_field.accepts = leat_accepts_image,
	.on_field.wants = "an image (height x width x channels, uint8 or float32)",
	.on_field.infer = infer,
	.on_field.in_place = true,
	.on_field.run = run,
};
