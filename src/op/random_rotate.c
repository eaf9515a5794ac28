/* random_rotate.c - rotate an image about its centre by a random angle; pixels as in `rotate` */
#include "op/op.h"

#include <math.h>

struct random_rotate {
	float max; /* radians */
	float fill;
};

static const struct leat_opt options[] = {
	LEAT_ANGLE(struct random_rotate, max, LEAT_REQUIRED, 0, INFINITY,
                   "angle is uniform in [-max, max); with unit: 15deg, 0.2rad"),
	LEAT_FLOAT(struct random_rotate, fill, "0", -INFINITY, INFINITY,
                   "fill value for pixels outside the image; clipped to 0..255 for uint8"),
	LEAT_OPT_END,
};

static enum leat_status
check(void *params, struct leat_err *err)
{
	const struct random_rotate *rotate = params;

	if (rotate->max > 6.2831855f)
		return leat_fail(err, LEAT_SPEC, "max is more than a full turn: expected 360deg or less");
	return LEAT_OK;
}

static enum leat_status
move(const void *params, struct leat_rng *rng, const int64_t *shape, struct leat_move *move, struct leat_err *err)
{
	const struct random_rotate *rotate = params;

	(void)shape, (void)err;
	*move = (struct leat_move){
		.kind = LEAT_MOVE_ROTATE,
		.radians = leat_rng_uniform(rng, -rotate->max, rotate->max),
		.fill = rotate->fill,
	};
	return LEAT_OK;
}

const struct leat_op leat_op_random_rotate = {
	.name = "random_rotate",
	.doc = "Rotate an image about its centre by a random angle, with nearest interpolation; the size does not "
	       "change.",
	.example = "random_rotate(15deg)",
	.kind = LEAT_OP_GEOMETRY,
	.version = 1,
	.opts = options,
	.params_size = sizeof(struct random_rotate),
	.random = true,
	.check = check,
	.on_field.accepts = leat_accepts_image,
	.on_field.wants = "an image (height x width x channels, uint8 or float32)",
	.on_field.fuse.move = move,
};
