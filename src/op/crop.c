/* crop.c - keep a rectangle of an image, like tf.image.crop_to_bounding_box
 *
 * A rectangle that extends beyond the image is an error: at open if the image size is known, otherwise for that
 * sample. To allow it, use `pad` first. */
#include "op/op.h"

#include <inttypes.h>

struct crop {
	int64_t top, left, height, width;
};

static const struct leat_opt options[] = {
	LEAT_INT(struct crop, top, LEAT_REQUIRED, 0, 65500, "first row to keep"),
	LEAT_INT(struct crop, left, LEAT_REQUIRED, 0, 65500, "first column to keep"),
	LEAT_INT(struct crop, height, LEAT_REQUIRED, 1, 65500, "output height"),
	LEAT_INT(struct crop, width, LEAT_REQUIRED, 1, 65500, "output width"),
	LEAT_OPT_END,
};

/* A side of -1 is unknown. */
static enum leat_status
check_inside(const struct crop *crop, const int64_t *shape, enum leat_status status, struct leat_err *err)
{
	if (shape[0] >= 0 && crop->top + crop->height > shape[0])
		return leat_fail(err, status,
		                 "rows %" PRId64 " to %" PRId64 " requested, but the image has only %" PRId64,
		                 crop->top, crop->top + crop->height - 1, shape[0]);
	if (shape[1] >= 0 && crop->left + crop->width > shape[1])
		return leat_fail(err, status,
		                 "columns %" PRId64 " to %" PRId64 " requested, but the image has only %" PRId64,
		                 crop->left, crop->left + crop->width - 1, shape[1]);
	return LEAT_OK;
}

static enum leat_status
infer(void *params, struct leat_field *field, enum leat_layout *layout, struct leat_err *err)
{
	const struct crop *crop = params;
	enum leat_status status = check_inside(crop, field->shape, LEAT_SPEC, err);

	(void)layout;
	field->shape[0] = crop->height;
	field->shape[1] = crop->width;
	return status;
}

static enum leat_status
move(const void *params, struct leat_rng *rng, const int64_t *shape, struct leat_move *move, struct leat_err *err)
{
	const struct crop *crop = params;

	(void)rng;
	*move = (struct leat_move){
		.kind = LEAT_MOVE_CROP,
		.part = {crop->top, crop->left, crop->height, crop->width},
	};
	return check_inside(crop, shape, LEAT_DATA, err);
}

const struct leat_op leat_op_crop = {
	.name = "crop",
	.doc = "Crop a rectangle, which must be inside the image.",
	.example = "crop(2, 0, 20, 24)",
	.kind = LEAT_OP_GEOMETRY,
	.version = 1,
	.opts = options,
	.params_size = sizeof(struct crop),
	.on_field.accepts = leat_accepts_pixels,
	.on_field.wants = "an image (height x width x channels, uint8, uint16 or float32)",
	.on_field.infer = infer,
	.on_field.fuse.move = move,
};
