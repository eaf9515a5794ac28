/* resize.c - resize an image
 *
 * mode=tf matches tf.image.resize: float32, not rounded, even if the size does not change (TensorFlow's Python then
 * returns the image and its type unchanged); nearest keeps the type. mode=torch matches torchvision: with
 * antialias, uint8 is bit-identical to Pillow; without, it matches torchvision on tensors (bilinear, rounded) or
 * Pillow (nearest). Channels are independent, alpha included.
 *
 * shorter and longer keep the aspect ratio, so the other side depends on the image. mode=torch truncates it, as
 * torchvision's Resize(256) and Resize(None, max_size=256) do. mode=tf rounds it, ties to even, in float32, as
 * tf.image.resize(image, [256, 256], preserve_aspect_ratio=True) does for longer=256. It is at least 1. */
#include "op/op.h"
#include "op/resampling.h"

#include <inttypes.h>
#include <math.h>

enum { MAX_SIDE = 65500 };

struct resize {
	int64_t height, width;   /* 0: see the next two */
	int64_t shorter, longer; /* one of them is not 0, or neither */
	struct leat_resampling how;
};

static const struct leat_opt options[] = {
	LEAT_OPT_(struct resize, height, LEAT_OPT_INT, "0", 0, MAX_SIDE, NULL,
                  "output height; 0: see shorter and longer", LEAT_OPT_NEW),
	LEAT_OPT_(struct resize, width, LEAT_OPT_INT, "0", 0, MAX_SIDE, NULL, "output width", LEAT_OPT_NEW),
	LEAT_RESAMPLING_OPTIONS(struct resize, how),
	LEAT_OPT_(struct resize, shorter, LEAT_OPT_INT, "0", 0, MAX_SIDE, NULL,
                  "instead of height and width: output length of the shorter side; keeps the aspect ratio",
                  LEAT_OPT_NAMED | LEAT_OPT_NEW),
	LEAT_OPT_(struct resize, longer, LEAT_OPT_INT, "0", 0, MAX_SIDE, NULL,
                  "instead of height and width: output length of the longer side; keeps the aspect ratio",
                  LEAT_OPT_NAMED | LEAT_OPT_NEW),
	LEAT_OPT_END,
};

static enum leat_status
check(void *params, struct leat_err *err)
{
	const struct resize *resize = params;
	const bool sides = resize->height || resize->width;

	if (sides + (resize->shorter > 0) + (resize->longer > 0) > 1)
		return leat_fail(err, LEAT_SPEC, "write either height and width, or shorter, or longer");
	if (!resize->shorter && !resize->longer && (!resize->height || !resize->width))
		return leat_fail(err, LEAT_SPEC,
		                 "needs height and width, both above 0; to keep the aspect ratio, use shorter=%" PRId64
		                 " or longer=%" PRId64,
		                 resize->height ? resize->height : 256, resize->height ? resize->height : 256);
	return leat_resampling_check(&resize->how, err);
}

/* `side` of the image, when another one of length `from` becomes `to`. */
static int64_t
scale_side(const struct resize *resize, int64_t side, int64_t from, int64_t to)
{
	int64_t scaled = side * to / from;

	if (resize->how.mode == LEAT_RESIZE_TF)
		scaled = (int64_t)rintf((float)to / (float)from * (float)side);
	return scaled > 0 ? scaled : 1;
}

/* The size of the result for an image of in[0] x in[1], or -1 if it depends on sides that are not known. */
static void
output_size(const struct resize *resize, const int64_t *in, int64_t *out)
{
	const int64_t to = resize->shorter ? resize->shorter : resize->longer;

	out[0] = resize->height;
	out[1] = resize->width;
	if (!to)
		return;
	if (in[0] < 0 || in[1] < 0) {
		out[0] = out[1] = -1;
	} else if ((in[0] <= in[1]) == (resize->shorter > 0)) {
		out[0] = to;
		out[1] = scale_side(resize, in[1], in[0], to);
	} else {
		out[0] = scale_side(resize, in[0], in[1], to);
		out[1] = to;
	}
}

static enum leat_status
infer(void *params, struct leat_field *field, enum leat_layout *layout, struct leat_err *err)
{
	const struct resize *resize = params;

	enum leat_status status = leat_check_resampled(&resize->how, field, err);

	(void)layout;
	field->dtype = leat_resize_dtype(&resize->how, field->dtype);
	output_size(resize, (const int64_t[]){field->shape[0], field->shape[1]}, field->shape);
	return status;
}

static size_t
scratch_bytes(const void *params, const struct leat_field *field)
{
	const struct resize *resize = params;
	int64_t out[2];

	output_size(resize, field->shape, out);
	return out[0] < 0 ? 0 : leat_resize_scratch(&resize->how, field->shape, out);
}

static enum leat_status
move(const void *params, struct leat_rng *rng, const int64_t *shape, struct leat_move *move, struct leat_err *err)
{
	const struct resize *resize = params;
	int64_t out[2];

	(void)rng;
	output_size(resize, shape, out);
	if (out[0] > MAX_SIDE || out[1] > MAX_SIDE)
		return leat_fail(err, LEAT_DATA,
		                 "an image of %" PRId64 " x %" PRId64 " pixels would become %" PRId64 " x %" PRId64
		                 "; a side may have %d",
		                 shape[1], shape[0], out[1], out[0], MAX_SIDE);
	*move = (struct leat_move){
		.kind = LEAT_MOVE_RESIZE,
		.part = {0, 0, shape[0], shape[1]},
		.height = out[0],
		.width = out[1],
		.by_aspect = resize->shorter > 0 || resize->longer > 0,
		.how = resize->how,
	};
	return LEAT_OK;
}

const struct leat_op leat_op_resize = {
	.name = "resize",
	.doc = "Resize an image to height x width, or keep its aspect ratio with shorter or longer.",
	.example = "resize(224, 224)",
	.kind = LEAT_OP_GEOMETRY,
	.version = 1,
	.opts = options,
	.params_size = sizeof(struct resize),
	.check = check,
	.on_field.accepts = leat_accepts_pixels,
	.on_field.wants = "an image (height x width x channels, uint8, uint16 or float32)",
	.on_field.infer = infer,
	.on_field.scratch_bytes = scratch_bytes,
	.on_field.fuse.move = move,
};
