/* one_hot.c - turn a class number into a one-hot vector, like tf.one_hot
 *
 * With smoothing s and k classes, a fraction s of the distance between `off` and `on` is spread evenly over all
 * classes, as label_smoothing in Keras and PyTorch: for on=1, off=0 the class gets 1 - s + s/k, the others s/k. A
 * number outside the classes is bad data (tf.one_hot would give a vector of `off`). */
#include "op/op.h"

#include <inttypes.h>
#include <math.h>

struct one_hot {
	int64_t classes;
	float on, off, smoothing;
};

static const struct leat_opt options[] = {
	LEAT_INT(struct one_hot, classes, LEAT_REQUIRED, 1, 1 << 24, "number of classes; labels are 0 to classes - 1"),
	LEAT_FLOAT(struct one_hot, on, "1", -INFINITY, INFINITY, "value for the labelled class"),
	LEAT_FLOAT(struct one_hot, off, "0", -INFINITY, INFINITY, "value for all other classes"),
	LEAT_FLOAT(struct one_hot, smoothing, "0", 0, 1, "label smoothing: fraction spread evenly over all classes"),
	LEAT_OPT_END,
};

static bool
accepts(const struct leat_field *field, enum leat_layout layout)
{
	(void)layout;
	return field->ndim == 0 && (field->dtype == LEAT_I64 || field->dtype == LEAT_I32);
}

static enum leat_status
infer(void *params, struct leat_field *field, enum leat_layout *layout, struct leat_err *err)
{
	const struct one_hot *one_hot = params;

	(void)layout, (void)err;
	field->dtype = LEAT_F32;
	field->ndim = 1;
	field->shape[0] = one_hot->classes;
	return LEAT_OK;
}

static enum leat_status
run(const void *params, struct leat_work *work, int field, struct leat_err *err)
{
	const struct one_hot *one_hot = params;
	const struct leat_datum in = work->sample->field[field];
	int64_t label = in.dtype == LEAT_I64 ? *(const int64_t *)in.data : *(const int32_t *)in.data;
	double step = (double)one_hot->on - (double)one_hot->off;
	double low = (double)one_hot->off + step * (double)one_hot->smoothing / (double)one_hot->classes;
	enum leat_status status;
	float *out;

	if (label < 0 || label >= one_hot->classes)
		return leat_fail(err, LEAT_DATA, "the class is %" PRId64 ", expected 0 to %" PRId64, label,
		                 one_hot->classes - 1);
	status = leat_work_out(work, field, LEAT_F32, 1, &one_hot->classes, err);
	if (status != LEAT_OK)
		return status;
	out = work->sample->field[field].data;
	for (int64_t i = 0; i < one_hot->classes; i++)
		out[i] = (float)low;
	out[label] = (float)(low + step * (1 - (double)one_hot->smoothing));
	return LEAT_OK;
}

const struct leat_op leat_op_one_hot = {
	.name = "one_hot",
	.doc = "Turn a class number into a one-hot float32 vector.",
	.example = "one_hot(1000, smoothing=0.1)",
	.kind = LEAT_OP_CONVERT,
	.version = 1,
	.opts = options,
	.params_size = sizeof(struct one_hot),
	.on_field.accepts = accepts,
	.on_field.wants = "one int64 or int32 number, such as a label",
	.on_field.infer = infer,
	.on_field.run = run,
};
