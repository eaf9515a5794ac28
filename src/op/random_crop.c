/* random_crop.c - crop at a random position, like torchvision's RandomCrop
 *
 * First, `padding` pixels of `fill` are added on every side. If the image is still too small, the sample is bad, or
 * with pad_if_needed the missing amount is added on both sides. Then every position of the rectangle is equally
 * likely. */
#include "op/op.h"

#include <inttypes.h>
#include <math.h>

struct random_crop {
	int64_t height, width, padding;
	bool pad_if_needed;
	float fill;
};

static const struct leat_opt options[] = {
	LEAT_INT(struct random_crop, height, LEAT_REQUIRED, 1, 65500, "output height"),
	LEAT_INT(struct random_crop, width, LEAT_REQUIRED, 1, 65500, "output width"),
	LEAT_INT(struct random_crop, padding, "0", 0, 65500, "pixels to add on every side first"),
	LEAT_BOOL(struct random_crop, pad_if_needed, "false",
                  "pad images that are too small on both sides; otherwise they are an error"),
	LEAT_FLOAT(struct random_crop, fill, "0", -INFINITY, INFINITY,
                   "fill value of padding; clipped to 0..255 for uint8"),
	LEAT_OPT_END,
};

/* A side of -1 is unknown. */
static enum leat_status
check_large_enough(const struct random_crop *crop, const int64_t *shape, enum leat_status status, struct leat_err *err)
{
	bool low = shape[0] >= 0 && shape[0] + 2 * crop->padding < crop->height;
	bool narrow = shape[1] >= 0 && shape[1] + 2 * crop->padding < crop->width;

	if (crop->pad_if_needed || !(low || narrow))
		return LEAT_OK;
	return leat_fail(err, status,
	                 "%" PRId64 " %s requested, but the image has only %" PRId64
	                 "; add padding, or write pad_if_needed=true",
	                 low ? crop->height : crop->width, low ? "rows" : "columns",
	                 shape[low ? 0 : 1] + 2 * crop->padding);
}

static enum leat_status
infer(void *params, struct leat_field *field, enum leat_layout *layout, struct leat_err *err)
{
	const struct random_crop *crop = params;
	enum leat_status status = check_large_enough(crop, field->shape, LEAT_SPEC, err);

	(void)layout;
	field->shape[0] = crop->height;
	field->shape[1] = crop->width;
	return status;
}

/* Random start of an interval of length `wanted` within [0, there) padded by `added` on both sides. */
static int64_t
draw_start(struct leat_rng *rng, int64_t there, int64_t wanted, int64_t added)
{
	int64_t padded = there + 2 * added;

	if (padded < wanted) {
		added += wanted - padded;
		padded += 2 * (wanted - padded);
	}
	return (int64_t)leat_rng_below(rng, (uint64_t)(padded - wanted + 1)) - added;
}

static enum leat_status
move(const void *params, struct leat_rng *rng, const int64_t *shape, struct leat_move *move, struct leat_err *err)
{
	const struct random_crop *crop = params;
	enum leat_status status = check_large_enough(crop, shape, LEAT_DATA, err);

	if (status != LEAT_OK)
		return status;
	*move = (struct leat_move){.kind = LEAT_MOVE_CROP, .fill = crop->fill};
	move->part.height = crop->height;
	move->part.width = crop->width;
	move->part.top = draw_start(rng, shape[0], crop->height, crop->padding);
	move->part.left = draw_start(rng, shape[1], crop->width, crop->padding);
	return LEAT_OK;
}

const struct leat_op leat_op_random_crop = {
	.name = "random_crop",
	.doc = "Crop an image at a random position.",
	.example = "random_crop(32, 32, padding=4)",
	.kind = LEAT_OP_GEOMETRY,
	.version = 1,
	.opts = options,
	.params_size = sizeof(struct random_crop),
	.random = true,
	.on_field.accepts = leat_accepts_pixels,
	.on_field.wants = "an image (height x width x channels, uint8, uint16 or float32)",
	.on_field.infer = infer,
	.on_field.fuse.move = move,
};
