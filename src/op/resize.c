/* resize.c - an image at another size
 *
 * mode=tf is tf.image.resize with antialias=False: bilinear gives float32, not rounded, also where the size
 * stays as it is (there TensorFlow's Python leaves the image alone, type and all); nearest keeps the type. */
#include "image/image.h"
#include "op/op.h"

struct resize {
	int64_t height, width;
	int method; /* enum leat_resize_method */
	int mode;
};

static const struct leat_opt options[] = {
	LEAT_INT(struct resize, height, LEAT_REQUIRED, 1, 65500, "rows of the result"),
	LEAT_INT(struct resize, width, LEAT_REQUIRED, 1, 65500, "columns of the result"),
	LEAT_ENUM(struct resize, method, "bilinear", "bilinear|nearest",
                  "how pixels are made: bilinear gives float32, nearest keeps the type"),
	LEAT_ENUM(struct resize, mode, "tf", "tf", "whose pixels: tf is tf.image.resize without antialias"),
	LEAT_OPT_END,
};

static enum leat_dtype
result_dtype(const struct resize *resize, enum leat_dtype dtype)
{
	return resize->method == LEAT_RESIZE_BILINEAR ? LEAT_F32 : dtype;
}

static enum leat_status
infer(void *params, struct leat_field *field, enum leat_layout *layout, struct leat_err *err)
{
	const struct resize *resize = params;

	(void)layout, (void)err;
	field->dtype = result_dtype(resize, field->dtype);
	field->shape[0] = resize->height;
	field->shape[1] = resize->width;
	return LEAT_OK;
}

static enum leat_status
run(const void *params, struct leat_work *work, int field, struct leat_err *err)
{
	const struct resize *resize = params;
	const struct leat_datum in = work->sample->field[field];
	enum leat_status status;

	status = leat_check_image(&in, LEAT_HWC, err);
	if (status == LEAT_OK)
		status = leat_work_out(work, field, result_dtype(resize, in.dtype), 3,
		                       (const int64_t[]){resize->height, resize->width, in.shape[2]}, err);
	if (status == LEAT_OK)
		status = leat_resize(&in, &work->sample->field[field], (enum leat_resize_method)resize->method,
		                     work->scratch, err);
	return status;
}

const struct leat_op leat_op_resize = {
	.name = "resize",
	.doc = "Resample an image to height x width.",
	.example = "resize(224, 224)",
	.kind = LEAT_OP_GEOMETRY,
	.version = 1,
	.opts = options,
	.params_size = sizeof(struct resize),
	.accepts = leat_accepts_image,
	.wants = "an image (height x width x channels, uint8 or float32)",
	.infer = infer,
	.run = run,
};
