/* random_affine.c - rotate, shift, scale and shear an image at random, like torchvision's RandomAffine
 *
 * Nearest interpolation, the same pixels as Pillow's. Angles are in degrees, clockwise, as in torchvision. Random
 * numbers are drawn in this order: angle, shift along x and y in whole pixels, scale, shear along x and y. */
#include "image/image.h"
#include "op/op.h"

#include <math.h>

struct random_affine {
	struct leat_floats degrees, translate, scale, shear;
	float fill;
};

static const struct leat_opt options[] = {
	LEAT_FLOATS(struct random_affine, degrees, LEAT_REQUIRED, -360, 360,
                    "angle in degrees, clockwise: d for [-d, d], or [min, max]"),
	LEAT_FLOATS(struct random_affine, translate, "[0, 0]", 0, 1,
                    "largest shift either way, as fractions of width and height"),
	LEAT_FLOATS(struct random_affine, scale, "[1, 1]", 1e-3, 1e3, "scale factor, [min, max]"),
	LEAT_FLOATS(struct random_affine, shear, "0", -90, 90,
                    "shear angle along x in degrees: s for [-s, s], or [min, max]; a second pair is for y"),
	LEAT_FLOAT(struct random_affine, fill, "0", -INFINITY, INFINITY,
                   "fill value for pixels outside the image; clipped to 0..255 for uint8"),
	LEAT_OPT_END,
};

/* Expands d to [-d, d]. */
static enum leat_status
spread(struct leat_floats *range, const char *name, struct leat_err *err)
{
	float most = range->value[0];

	if (range->count != 1)
		return LEAT_OK;
	if (most < 0)
		return leat_fail(err, LEAT_SPEC, "%s=%g: a single number x means [-x, x] and must not be negative",
		                 name, (double)most);
	range->value[0] = most > 0 ? -most : 0;
	range->value[1] = most;
	range->count = 2;
	return LEAT_OK;
}

/* Two numbers for x alone (y gets 0), or four for x and y. */
static enum leat_status
check_shear(struct leat_floats *shear, struct leat_err *err)
{
	enum leat_status status = spread(shear, "shear", err);

	if (status != LEAT_OK)
		return status;
	if (shear->count == 2)
		shear->value[2] = shear->value[3] = 0;
	else if (shear->count != 4)
		return leat_fail(err, LEAT_SPEC, "shear takes one, two or four numbers, not %d", shear->count);
	shear->count = 4;
	for (int i = 0; i < 4 && status == LEAT_OK; i += 2)
		status = leat_check_range(&(struct leat_floats){2, {shear->value[i], shear->value[i + 1]}}, "shear",
		                          err);
	return status;
}

static enum leat_status
check(void *params, struct leat_err *err)
{
	struct random_affine *affine = params;
	enum leat_status status = spread(&affine->degrees, "degrees", err);

	if (status == LEAT_OK)
		status = leat_check_range(&affine->degrees, "degrees", err);
	if (status == LEAT_OK)
		status = leat_check_range(&affine->scale, "scale", err);
	if (status == LEAT_OK)
		status = check_shear(&affine->shear, err);
	if (status == LEAT_OK && affine->translate.count != 2)
		return leat_fail(err, LEAT_SPEC, "translate takes two numbers, fractions of width and height, not %d",
		                 affine->translate.count);
	return status;
}

static double
draw(struct leat_rng *rng, const float *range)
{
	return (double)leat_rng_uniform(rng, range[0], range[1]);
}

static double
draw_shift(struct leat_rng *rng, float share, int64_t side)
{
	float most = share * (float)side;

	return rint((double)leat_rng_uniform(rng, -most, most));
}

static enum leat_status
run(const void *params, struct leat_work *work, int field, struct leat_err *err)
{
	const struct random_affine *affine = params;
	const struct leat_datum in = work->sample->field[field];
	struct leat_rng *rng = &work->rng;
	enum leat_status status = leat_check_image(&in, LEAT_HWC, err);
	struct leat_warp warp;

	if (status == LEAT_OK)
		status = leat_work_out(work, field, in.dtype, 3, in.shape, err);
	if (status != LEAT_OK)
		return status;
	warp.degrees = draw(rng, affine->degrees.value);
	warp.dx = draw_shift(rng, affine->translate.value[0], in.shape[1]);
	warp.dy = draw_shift(rng, affine->translate.value[1], in.shape[0]);
	warp.scale = draw(rng, affine->scale.value);
	warp.shear_x = draw(rng, affine->shear.value);
	warp.shear_y = draw(rng, affine->shear.value + 2);
	leat_warp(&in, &work->sample->field[field], &warp, affine->fill);
	return LEAT_OK;
}

const struct leat_op leat_op_random_affine = {
	.name = "random_affine",
	.doc = "Rotate, shift, scale and shear an image at random about its centre, with nearest interpolation; the "
	       "size does not change.",
	.example = "random_affine(15, translate=[0.1, 0.1], scale=[0.8, 1.2], shear=5)",
	.kind = LEAT_OP_GEOMETRY,
	.version = 1,
	.opts = options,
	.params_size = sizeof(struct random_affine),
	.random = true,
	.check = check,
	.on_field.accepts = leat_accepts_image,
	.on_field.wants = "an image (height x width x channels, uint8 or float32)",
	.on_field.run = run,
};
