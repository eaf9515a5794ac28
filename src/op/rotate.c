/* rotate.c - rotate an image about its centre, like tfa.image.rotate with interpolation="nearest"
 *
 * Pixels move but do not change, so uint8 stays uint8. Pixels from outside the image get `fill`. */
#include "op/op.h"

#include <math.h>

struct rotate {
	float angle; /* radians */
	float fill;
};

static const struct leat_opt options[] = {
	LEAT_ANGLE(struct rotate, angle, LEAT_REQUIRED, -INFINITY, INFINITY,
                   "angle, counter-clockwise, with unit: 30deg, 0.5rad"),
	LEAT_FLOAT(struct rotate, fill, "0", -INFINITY, INFINITY,
                   "fill value for pixels outside the image; clipped to 0..255 for uint8"),
	LEAT_OPT_END,
};

static enum leat_status
move(const void *params, struct leat_rng *rng, const int64_t *shape, struct leat_move *move, struct leat_err *err)
{
	const struct rotate *rotate = params;

	(void)rng, (void)shape, (void)err;
	*move = (struct leat_move){
		.kind = LEAT_MOVE_ROTATE,
		.radians = rotate->angle,
		.fill = rotate->fill,
	};
	return LEAT_OK;
}

const struct leat_op leat_op_rotate = {
	.name = "rotate",
	.doc = "Rotate an image counter-clockwise about its centre, with nearest interpolation; the size does not "
	       "change.",
	.example = "rotate(30deg)",
	.kind = LEAT_OP_GEOMETRY,
	.version = 1,
	.opts = options,
	.params_size = sizeof(struct rotate),
	.on_field.accepts = leat_accepts_image,
	.on_field.wants = "an image (height x width x channels, uint8 or float32)",
	.on_field.fuse.move = move,
};
