/* cast.c - convert numbers to another type
 *
 * Conversion to a float type rounds to nearest, ties to even. Conversion to an integer truncates, saturates, and
 * turns NaN into 0 (tf.cast leaves the last two undefined). Conversion to bool, as tf.cast: 0 is false, everything
 * else true. */
#include "image/image.h"
#include "op/op.h"

struct cast {
	int dtype; /* enum leat_dtype; the choices are in its order */
};

static const struct leat_opt options[] = {
	LEAT_ENUM(struct cast, dtype, LEAT_REQUIRED,
                  "uint8|int32|int64|float16|bfloat16|float32|float64|bool|int8|int16|uint16|uint32|uint64",
                  "output type"),
	LEAT_OPT_END,
};

static bool
accepts(const struct leat_field *field, enum leat_layout layout)
{
	(void)layout;
	return field->dtype != LEAT_U8 || field->ndim != 1 || field->shape[0] >= 0;
}

static enum leat_status
infer(void *params, struct leat_field *field, enum leat_layout *layout, struct leat_err *err)
{
	const struct cast *cast = params;

	(void)layout, (void)err;
	field->dtype = (enum leat_dtype)cast->dtype;
	return LEAT_OK;
}

static enum leat_status
run(const void *params, struct leat_work *work, int field, struct leat_err *err)
{
	const struct cast *cast = params;
	const struct leat_datum in = work->sample->field[field];
	enum leat_dtype dtype = (enum leat_dtype)cast->dtype;
	enum leat_status status = leat_work_out(work, field, dtype, in.ndim, in.shape, err);

	if (status == LEAT_OK)
		leat_cast(in.data, in.dtype, work->sample->field[field].data, dtype, (size_t)leat_datum_elements(&in));
	return status;
}

static void
convert(const void *params, enum leat_dtype *dtype, enum leat_layout *layout)
{
	(void)layout;
	*dtype = (enum leat_dtype)((const struct cast *)params)->dtype;
}

const struct leat_op leat_op_cast = {
	.name = "cast",
	.doc = "Convert numbers to another type.",
	.example = "cast(float16)",
	.kind = LEAT_OP_CONVERT,
	.version = 1,
	.opts = options,
	.params_size = sizeof(struct cast),
	.on_field.accepts = accepts,
	.on_field.wants = "numbers, such as a decoded image or a label",
	.on_field.infer = infer,
	.on_field.run = run,
	.on_field.fuse.convert = convert,
};
