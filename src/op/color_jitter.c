/* color_jitter.c - change brightness, contrast, saturation and hue at random, like torchvision's ColorJitter
 *
 * Each image gets its own factors, applied in a random order. uint8 matches torchvision on PIL images (Pillow
 * rounds after each of the four); float32 in 0..1 matches it on tensors. Adjustments whose range cannot change
 * anything are skipped, which matters for hue: on uint8, even a rotation by 0 rounds. */
#include "image/color.h"
#include "op/op.h"

#include <math.h>

enum { BRIGHTNESS, CONTRAST, SATURATION, HUE, CHANGES };

struct color_jitter {
	struct leat_floats brightness, contrast, saturation, hue;
	struct range {
		float low, high;
	} range[CHANGES]; /* set by check */
};

static const struct leat_opt options[] = {
	LEAT_FLOATS(struct color_jitter, brightness, "0", 0, INFINITY,
                    "x: factor uniform in [max(0, 1 - x), 1 + x]; [low, high]: uniform in that range"),
	LEAT_FLOATS(struct color_jitter, contrast, "0", 0, INFINITY, "same as brightness"),
	LEAT_FLOATS(struct color_jitter, saturation, "0", 0, INFINITY, "same as brightness"),
	LEAT_FLOATS(struct color_jitter, hue, "0", -0.5, 0.5,
                    "hue rotation in full turns (0.5 is 180 degrees). x: uniform in [-x, x]; [low, high]: uniform in "
                    "that range"),
	LEAT_OPT_END,
};

static enum leat_status
set_range(const struct leat_floats *given, const char *name, float centre, float least, struct range *range,
          struct leat_err *err)
{
	float low = given->value[0], high = given->value[given->count == 2];

	if (given->count != 1 && given->count != 2)
		return leat_fail(err, LEAT_SPEC, "%s has %d numbers: expected one, or two as in [low, high]", name,
		                 given->count);
	if (given->count == 1 && low < 0)
		return leat_fail(err, LEAT_SPEC, "%s=%g is below 0: write two numbers, as in %s=[%g, 0]", name,
		                 (double)low, name, (double)low);
	if (low > high)
		return leat_fail(err, LEAT_SPEC, "%s=[%g, %g]: the first number is above the second", name, (double)low,
		                 (double)high);
	*range = (struct range){low, high};
	if (given->count == 1)
		*range = (struct range){fmaxf(centre - low, least), centre + low};
	return LEAT_OK;
}

static enum leat_status
check(void *params, struct leat_err *err)
{
	struct color_jitter *jitter = params;
	enum leat_status status = set_range(&jitter->brightness, "brightness", 1, 0, &jitter->range[BRIGHTNESS], err);

	if (status == LEAT_OK)
		status = set_range(&jitter->contrast, "contrast", 1, 0, &jitter->range[CONTRAST], err);
	if (status == LEAT_OK)
		status = set_range(&jitter->saturation, "saturation", 1, 0, &jitter->range[SATURATION], err);
	if (status == LEAT_OK)
		status = set_range(&jitter->hue, "hue", 0, -0.5f, &jitter->range[HUE], err);
	return status;
}

static void
change(const struct leat_datum *image, int which, float amount)
{
	if (which == BRIGHTNESS)
		leat_adjust_brightness(image, amount);
	else if (which == CONTRAST)
		leat_adjust_contrast(image, amount);
	else if (which == SATURATION)
		leat_adjust_saturation(image, amount);
	else
		leat_adjust_hue(image, amount);
}

/* Fisher-Yates shuffle: all 24 orders are equally likely. */
static void
draw_order(struct leat_rng *rng, int *order)
{
	for (int i = 0; i < CHANGES; i++)
		order[i] = i;
	for (int i = 0; i < CHANGES - 1; i++) {
		int k = i + (int)leat_rng_below(rng, (uint64_t)(CHANGES - i)), kept = order[i];

		order[i] = order[k];
		order[k] = kept;
	}
}

/* Draws the same random numbers no matter which adjustments are skipped. */
static enum leat_status
run(const void *params, struct leat_work *work, int field, struct leat_err *err)
{
	const struct color_jitter *jitter = params;
	const struct leat_datum *image = &work->sample->field[field];
	enum leat_status status = leat_check_color(image, err);
	int order[CHANGES];
	float amount[CHANGES];

	if (status == LEAT_OK)
		status = leat_check_scale(image, err);
	draw_order(&work->rng, order);
	for (int i = 0; i < CHANGES; i++)
		amount[i] = leat_rng_uniform(&work->rng, jitter->range[i].low, jitter->range[i].high);
	for (int i = 0; i < CHANGES && status == LEAT_OK; i++) {
		const struct range *range = &jitter->range[order[i]];
		float nothing = order[i] == HUE ? 0 : 1;

		if (range->low != nothing || range->high != nothing)
			change(image, order[i], amount[order[i]]);
	}
	return status;
}

const struct leat_op leat_op_color_jitter = {
	.name = "color_jitter",
	.doc = "Change brightness, contrast, saturation and hue at random, in random order, like torchvision.",
	.example = "color_jitter(0.4, 0.4, 0.4, hue=0.1)",
	.kind = LEAT_OP_COLOR,
	.version = 1,
	.opts = options,
	.params_size = sizeof(struct color_jitter),
	.random = true,
	.check = check,
	.on_field.accepts = leat_accepts_color,
	.on_field.wants = "a gray or RGB image (height x width x 1 or 3; uint8, or float32 from 0 to 1)",
	.on_field.in_place = true,
	.on_field.run = run,
};
