/* rotate.c - turn an image about its centre, as tfa.image.rotate with interpolation="nearest"
 *
 * Pixels move without changing, so that uint8 stays uint8. Corners that come from outside get `fill`. */
#include "op/op.h"

#include <math.h>

struct rotate {
	float angle; /* radians */
	float fill;
};

static const struct leat_opt options[] = {
	LEAT_ANGLE(struct rotate, angle, LEAT_REQUIRED, -INFINITY, INFINITY,
                   "counter-clockwise, with its unit: 30deg, 0.5rad"),
	LEAT_FLOAT(struct rotate, fill, "0", -INFINITY, INFINITY,
                   "what stands where there was no pixel; cut to 0..255 for uint8"),
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
	.doc = "Turn an image counter-clockwise about its centre, to the nearest pixel; the size stays.",
	.example = "rotate(30deg)",
	.kind = LEAT_OP_GEOMETRY,
	.version = 1,
	.opts = options,
	.params_size = sizeof(struct rotate),
	.on_field.accepts = leat_accepts_image,
	.on_field.wants = "an image (height x width x channels, uint8 or float32)",
	.on_field.fuse.move = move,
};
