/* crop.c - a rectangle of an image, as tf.image.crop_to_bounding_box
 *
 * A rectangle that reaches beyond the image is an error, where the size is known when the feed is opened, or else of
 * the sample. To be lenient, put `pad` before it. */
#include "image/image.h"
#include "op/op.h"

#include <inttypes.h>

struct crop {
	int64_t top, left, height, width;
};

static const struct leat_opt options[] = {
	LEAT_INT(struct crop, top, LEAT_REQUIRED, 0, 65500, "first row of the image that is kept"),
	LEAT_INT(struct crop, left, LEAT_REQUIRED, 0, 65500, "first column that is kept"),
	LEAT_INT(struct crop, height, LEAT_REQUIRED, 1, 65500, "rows of the result"),
	LEAT_INT(struct crop, width, LEAT_REQUIRED, 1, 65500, "columns of the result"),
	LEAT_OPT_END,
};

/* A side of -1 is not known. */
static enum leat_status
check_inside(const struct crop *crop, const int64_t *shape, enum leat_status status, struct leat_err *err)
{
	if (shape[0] >= 0 && crop->top + crop->height > shape[0])
		return leat_fail(err, status,
		                 "rows %" PRId64 " to %" PRId64 " are wanted, but the image has only %" PRId64,
		                 crop->top, crop->top + crop->height - 1, shape[0]);
	if (shape[1] >= 0 && crop->left + crop->width > shape[1])
		return leat_fail(err, status,
		                 "columns %" PRId64 " to %" PRId64 " are wanted, but the image has only %" PRId64,
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
run(const void *params, struct leat_work *work, int field, struct leat_err *err)
{
	const struct crop *crop = params;
	const struct leat_datum in = work->sample->field[field];
	enum leat_status status = leat_check_image(&in, LEAT_HWC, err);

	if (status == LEAT_OK)
		status = check_inside(crop, in.shape, LEAT_DATA, err);
	if (status == LEAT_OK)
		status = leat_work_out(work, field, in.dtype, 3,
		                       (const int64_t[]){crop->height, crop->width, in.shape[2]}, err);
	if (status == LEAT_OK)
		leat_crop(&in, &work->sample->field[field], crop->top, crop->left, LEAT_BORDER_CONSTANT, 0);
	return status;
}

const struct leat_op leat_op_crop = {
	.name = "crop",
	.doc = "Keep a rectangle of an image, which has to lie within it.",
	.example = "crop(2, 0, 20, 24)",
	.kind = LEAT_OP_GEOMETRY,
	.version = 1,
	.opts = options,
	.params_size = sizeof(struct crop),
	.accepts = leat_accepts_image,
	.wants = "an image (height x width x channels, uint8 or float32)",
	.infer = infer,
	.run = run,
};
