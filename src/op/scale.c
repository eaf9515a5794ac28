/* scale.c - x * factor + offset for every element
 *
 * scale(1/255) is tf.image.convert_image_dtype from uint8 to float32. */
#include "op/op.h"

#include <math.h>

struct scale {
	float factor, offset;
};

static const struct leat_opt options[] = {
	LEAT_FLOAT(struct scale, factor, LEAT_REQUIRED, -INFINITY, INFINITY,
                   "factor; fractions such as 1/255 are allowed"),
	LEAT_FLOAT(struct scale, offset, "0", -INFINITY, INFINITY, "offset added after multiplying"),
	LEAT_OPT_END,
};

static int
affine(const void *params, struct leat_rng *rng, int channels, struct leat_affine *step)
{
	const struct scale *scale = params;

	(void)rng, (void)channels;
	*step = leat_affine_uniform(scale->factor, scale->offset);
	return 1;
}

const struct leat_op leat_op_scale = {
	.name = "scale",
	.doc = "Multiply every element by a factor and add an offset; the result is float32.",
	.example = "scale(1/255)",
	.kind = LEAT_OP_POINTWISE,
	.version = 1,
	.opts = options,
	.params_size = sizeof(struct scale),
	.on_field.accepts = leat_accepts_numbers,
	.on_field.wants = "uint8 or float32 numbers, such as a decoded image; cast(float32) converts others",
	.on_field.infer = leat_infer_f32,
	.on_field.fuse.affine = affine,
};
