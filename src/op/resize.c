/* resize.c - resize an image
 *
 * mode=tf matches tf.image.resize: float32, not rounded, even if the size does not change (TensorFlow's Python then
 * returns the image and its type unchanged); nearest keeps the type. mode=torch matches torchvision: with
 * antialias, uint8 is bit-identical to Pillow; without, it matches torchvision on tensors (bilinear, rounded) or
 * Pillow (nearest). Channels are independent, alpha included. */
#include "op/op.h"
#include "op/resampling.h"

struct resize {
	int64_t height, width;
	struct leat_resampling how;
};

static const struct leat_opt options[] = {
	LEAT_INT(struct resize, height, LEAT_REQUIRED, 1, 65500, "output height"),
	LEAT_INT(struct resize, width, LEAT_REQUIRED, 1, 65500, "output width"),
	LEAT_RESAMPLING_OPTIONS(struct resize, how),
	LEAT_OPT_END,
};

static enum leat_status
check(void *params, struct leat_err *err)
{
	const struct resize *resize = params;

	return leat_resampling_check(&resize->how, err);
}

static enum leat_status
infer(void *params, struct leat_field *field, enum leat_layout *layout, struct leat_err *err)
{
	const struct resize *resize = params;

	(void)layout, (void)err;
	field->dtype = leat_resize_dtype(&resize->how, field->dtype);
	field->shape[0] = resize->height;
	field->shape[1] = resize->width;
	return LEAT_OK;
}

static size_t
scratch_bytes(const void *params, const struct leat_field *field)
{
	const struct resize *resize = params;

	return leat_resize_scratch(&resize->how, field->shape, (const int64_t[]){resize->height, resize->width});
}

static enum leat_status
move(const void *params, struct leat_rng *rng, const int64_t *shape, struct leat_move *move, struct leat_err *err)
{
	const struct resize *resize = params;

	(void)rng, (void)err;
	*move = (struct leat_move){
		.kind = LEAT_MOVE_RESIZE,
		.part = {0, 0, shape[0], shape[1]},
		.height = resize->height,
		.width = resize->width,
		.how = resize->how,
	};
	return LEAT_OK;
}

const struct leat_op leat_op_resize = {
	.name = "resize",
	.doc = "Resize an image to height x width.",
	.example = "resize(224, 224)",
	.kind = LEAT_OP_GEOMETRY,
	.version = 1,
	.opts = options,
	.params_size = sizeof(struct resize),
	.check = check,
	.on_field.accepts = leat_accepts_image,
	.on_field.wants = "an image (height x width x channels, uint8 or float32)",
	.on_field.infer = infer,
	.on_field.scratch_bytes = scratch_bytes,
	.on_field.fuse.move = move,
};
