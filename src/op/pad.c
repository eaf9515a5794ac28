/* pad.c - pad an image, like torchvision's Pad and numpy.pad
 *
 * reflect and symmetric keep mirroring when the padding is larger than the image, as numpy does. */
#include "op/op.h"

#include <inttypes.h>
#include <math.h>

struct pad {
	int64_t all, top, left, bottom, right;
	float fill;
	int mode; /* enum leat_border; the choices are in its order */
};

/* pad(4) pads all sides. Sides are named-only because libraries disagree on their order. */
#define SIDE(name, doc) LEAT_OPT_(struct pad, name, LEAT_OPT_INT, "0", 0, 65500, NULL, doc, LEAT_OPT_NAMED)

static const struct leat_opt options[] = {
	LEAT_INT(struct pad, all, "0", 0, 65500, "rows and columns to add on every side"),
	SIDE(top, "rows to add at the top; use instead of all"),
	SIDE(left, "columns to add on the left"),
	SIDE(bottom, "rows to add at the bottom"),
	SIDE(right, "columns to add on the right"),
	LEAT_OPT_(struct pad, fill, LEAT_OPT_FLOAT, "0", -INFINITY, INFINITY, NULL,
                  "fill value for mode=constant; clipped to the range of uint8 or uint16", LEAT_OPT_NAMED),
	LEAT_OPT_(struct pad, mode, LEAT_OPT_ENUM, "constant", 0, 0, "constant|edge|reflect|symmetric",
                  "pad with fill, with the edge pixel, or with the mirrored image (reflect omits the edge pixel, "
                  "symmetric repeats it)",
                  LEAT_OPT_NAMED),
	LEAT_OPT_END,
};

static enum leat_status
check(void *params, struct leat_err *err)
{
	const struct pad *pad = params;

	if (pad->all && (pad->top || pad->left || pad->bottom || pad->right))
		return leat_fail(err, LEAT_SPEC,
		                 "all=%" PRId64 " pads every side: write either all, or top, left, bottom and right",
		                 pad->all);
	return LEAT_OK;
}

static int64_t
padded_height(const struct pad *pad, int64_t height)
{
	return height + pad->top + pad->bottom + 2 * pad->all;
}

static int64_t
padded_width(const struct pad *pad, int64_t width)
{
	return width + pad->left + pad->right + 2 * pad->all;
}

static enum leat_status
infer(void *params, struct leat_field *field, enum leat_layout *layout, struct leat_err *err)
{
	const struct pad *pad = params;

	(void)layout, (void)err;
	if (field->shape[0] >= 0)
		field->shape[0] = padded_height(pad, field->shape[0]);
	if (field->shape[1] >= 0)
		field->shape[1] = padded_width(pad, field->shape[1]);
	return LEAT_OK;
}

static enum leat_status
move(const void *params, struct leat_rng *rng, const int64_t *shape, struct leat_move *move, struct leat_err *err)
{
	const struct pad *pad = params;

	(void)rng, (void)err;
	*move = (struct leat_move){
		.kind = LEAT_MOVE_CROP,
		.part = {-(pad->top + pad->all), -(pad->left + pad->all), padded_height(pad, shape[0]),
	                 padded_width(pad, shape[1])},
		.border = (enum leat_border)pad->mode,
		.fill = pad->fill,
	};
	return LEAT_OK;
}

const struct leat_op leat_op_pad = {
	.name = "pad",
	.doc = "Pad an image.",
	.example = "pad(4, mode=reflect)",
	.kind = LEAT_OP_GEOMETRY,
	.version = 1,
	.opts = options,
	.params_size = sizeof(struct pad),
	.check = check,
	.on_field.accepts = leat_accepts_pixels,
	.on_field.wants = "an image (height x width x channels, uint8, uint16 or float32)",
	.on_field.infer = infer,
	.on_field.fuse.move = move,
};
