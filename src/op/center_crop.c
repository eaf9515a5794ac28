/* center_crop.c - keep the middle of an image, like torchvision's CenterCrop
 *
 * An odd margin is halved with ties to even, as Python's round() does. A smaller image is padded with zeros; if the
 * padding is odd, the right or bottom gets the extra pixel. */
#include "op/op.h"

#include <math.h>

struct center_crop {
	int64_t height, width;
};

static const struct leat_opt options[] = {
	LEAT_INT(struct center_crop, height, LEAT_REQUIRED, 1, 65500, "output height"),
	LEAT_OPT_(struct center_crop, width, LEAT_OPT_INT, "0", 0, 65500, NULL,
                  "output width; 0: the height, for a square", LEAT_OPT_NEW),
	LEAT_OPT_END,
};

static enum leat_status
check(void *params, struct leat_err *err)
{
	struct center_crop *crop = params;

	(void)err;
	if (!crop->width)
		crop->width = crop->height;
	return LEAT_OK;
}

/* Start of a centred interval of length `wanted` within [0, there); negative if it starts before 0. */
static int64_t
middle(int64_t there, int64_t wanted)
{
	return there < wanted ? -((wanted - there) / 2) : (int64_t)rint((double)(there - wanted) / 2);
}

static enum leat_status
infer(void *params, struct leat_field *field, enum leat_layout *layout, struct leat_err *err)
{
	const struct center_crop *crop = params;

	(void)layout, (void)err;
	field->shape[0] = crop->height;
	field->shape[1] = crop->width;
	return LEAT_OK;
}

static enum leat_status
move(const void *params, struct leat_rng *rng, const int64_t *shape, struct leat_move *move, struct leat_err *err)
{
	const struct center_crop *crop = params;

	(void)rng, (void)err;
	*move = (struct leat_move){
		.kind = LEAT_MOVE_CROP,
		.part = {middle(shape[0], crop->height), middle(shape[1], crop->width), crop->height, crop->width},
	};
	return LEAT_OK;
}

const struct leat_op leat_op_center_crop = {
	.name = "center_crop",
	.doc = "Keep the middle of an image; smaller images are padded with zeros.",
	.example = "center_crop(224)",
	.kind = LEAT_OP_GEOMETRY,
	.version = 1,
	.opts = options,
	.params_size = sizeof(struct center_crop),
	.check = check,
	.on_field.accepts = leat_accepts_pixels,
	.on_field.wants = "an image (height x width x channels, uint8, uint16 or float32)",
	.on_field.infer = infer,
	.on_field.fuse.move = move,
};
