/* layout.c - order of an image's dimensions: channels last (hwc) or first (chw) */
#include "image/image.h"
#include "op/op.h"

#include <string.h>

enum order { HWC, CHW };

struct layout {
	int order;
};

static const struct leat_opt options[] = {
	LEAT_ENUM(struct layout, order, LEAT_REQUIRED, "hwc|chw",
                  "chw: channels x height x width, as in PyTorch; hwc: height x width x channels"),
	LEAT_OPT_END,
};

static enum leat_layout
wanted(const struct layout *layout)
{
	return layout->order == CHW ? LEAT_CHW : LEAT_HWC;
}

static bool
accepts(const struct leat_field *field, enum leat_layout layout)
{
	return field->ndim == 3 && layout != LEAT_LAYOUT_NONE;
}

/* Permutes the shape `in` from layout `from` to layout `to`. */
static void
reorder(const int64_t *in, enum leat_layout from, enum leat_layout to, int64_t *out)
{
	if (from == to)
		memcpy(out, in, 3 * sizeof(*out));
	else if (to == LEAT_CHW)
		memcpy(out, (const int64_t[]){in[2], in[0], in[1]}, 3 * sizeof(*out));
	else
		memcpy(out, (const int64_t[]){in[1], in[2], in[0]}, 3 * sizeof(*out));
}

static enum leat_status
infer(void *params, struct leat_field *field, enum leat_layout *layout, struct leat_err *err)
{
	enum leat_layout to = wanted(params);
	int64_t shape[3];

	(void)err;
	memcpy(shape, field->shape, sizeof(shape));
	reorder(shape, *layout, to, field->shape);
	*layout = to;
	return LEAT_OK;
}

static enum leat_status
run(const void *params, struct leat_work *work, int field, struct leat_err *err)
{
	const struct leat_datum in = work->sample->field[field];
	enum leat_layout to = wanted(params);
	int64_t shape[3];
	size_t size = leat_dtype_size(in.dtype);
	enum leat_status status;
	void *out;

	reorder(in.shape, work->layout, to, shape);
	status = leat_work_out(work, field, in.dtype, 3, shape, err);
	if (status != LEAT_OK)
		return status;
	out = work->sample->field[field].data;
	if (work->layout == to)
		memcpy(out, in.data, leat_datum_bytes(&in));
	else if (to == LEAT_CHW)
		leat_to_planar(in.data, out, (size_t)(shape[1] * shape[2]), (size_t)shape[0], size);
	else
		leat_to_interleaved(in.data, out, (size_t)(shape[0] * shape[1]), (size_t)shape[2], size);
	return LEAT_OK;
}

static void
convert(const void *params, enum leat_dtype *dtype, enum leat_layout *layout)
{
	(void)dtype;
	*layout = wanted(params);
}

const struct leat_op leat_op_layout = {
	.name = "layout",
	.doc = "Move an image's channels first (chw) or last (hwc).",
	.example = "layout(chw)",
	.kind = LEAT_OP_CONVERT,
	.version = 1,
	.opts = options,
	.params_size = sizeof(struct layout),
	.on_field.accepts = accepts,
	.on_field.wants = "an image",
	.on_field.infer = infer,
	.on_field.run = run,
	.on_field.fuse.convert = convert,
};
