/* random_flip.c - mirror images at random, like tf.image.random_flip_left_right and _up_down */
#include "op/op.h"

struct random_flip {
	int direction; /* enum leat_flip */
	float probability;
};

static const struct leat_opt options[] = {
	LEAT_ENUM(struct random_flip, direction, "horizontal", "horizontal|vertical",
                  "swap left and right, or top and bottom"),
	LEAT_FLOAT(struct random_flip, probability, "0.5", 0, 1, "fraction of images to mirror"),
	LEAT_OPT_END,
};

/* Always draws one number, so the rest of the stream does not depend on the outcome. */
static enum leat_status
move(const void *params, struct leat_rng *rng, const int64_t *shape, struct leat_move *move, struct leat_err *err)
{
	const struct random_flip *flip = params;
	bool flips = leat_rng_uniform(rng, 0, 1) < flip->probability;

	(void)shape, (void)err;
	*move = (struct leat_move){
		.kind = flips ? LEAT_MOVE_FLIP : LEAT_MOVE_NONE,
		.flip = (enum leat_flip)flip->direction,
	};
	return LEAT_OK;
}

const struct leat_op leat_op_random_flip = {
	.name = "random_flip",
	.doc = "Mirror an image with the given probability.",
	.example = "random_flip",
	.kind = LEAT_OP_GEOMETRY,
	.version = 1,
	.opts = options,
	.params_size = sizeof(struct random_flip),
	.random = true,
	.on_field.accepts = leat_accepts_pixels,
	.on_field.wants = "an image (height x width x channels, uint8, uint16 or float32)",
	.on_field.in_place = true,
	.on_field.fuse.move = move,
};
