/* flip.c - mirror every image */
#include "op/op.h"

struct flip {
	int direction; /* enum leat_flip */
};

static const struct leat_opt options[] = {
	LEAT_ENUM(struct flip, direction, "horizontal", "horizontal|vertical",
                  "swap left and right, or top and bottom"),
	LEAT_OPT_END,
};

static enum leat_status
move(const void *params, struct leat_rng *rng, const int64_t *shape, struct leat_move *move, struct leat_err *err)
{
	const struct flip *flip = params;

	(void)rng, (void)shape, (void)err;
	*move = (struct leat_move){.kind = LEAT_MOVE_FLIP, .flip = (enum leat_flip)flip->direction};
	return LEAT_OK;
}

const struct leat_op leat_op_flip = {
	.name = "flip",
	.doc = "Mirror an image.",
	.example = "flip(vertical)",
	.kind = LEAT_OP_GEOMETRY,
	.version = 1,
	.opts = options,
	.params_size = sizeof(struct flip),
	.on_field.accepts = leat_accepts_pixels,
	.on_field.wants = "an image (height x width x channels, uint8, uint16 or float32)",
	.on_field.in_place = true,
	.on_field.fuse.move = move,
};
