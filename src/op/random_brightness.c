/* random_brightness.c - add one random offset to all pixels, like tf.image.random_brightness
 *
 * Like TensorFlow on float images, this neither rescales nor clips. uint8 is refused: on a scale of 0 to 255, a
 * change of `max` would be lost. */
#include "op/op.h"

#include <math.h>

struct random_brightness {
	float max;
};

static const struct leat_opt options[] = {
	LEAT_FLOAT(struct random_brightness, max, LEAT_REQUIRED, 0, INFINITY,
                   "offset is uniform in [-max, max); pixels are usually in [0, 1]"),
	LEAT_OPT_END,
};

static bool
accepts(const struct leat_field *field, enum leat_layout layout)
{
	return field->dtype == LEAT_F32 && leat_accepts_numbers(field, layout);
}

static int
affine(const void *params, struct leat_rng *rng, int channels, struct leat_affine *step)
{
	const struct random_brightness *brightness = params;

	(void)channels;
	*step = leat_affine_uniform(1, leat_rng_uniform(rng, -brightness->max, brightness->max));
	return 1;
}

const struct leat_op leat_op_random_brightness = {
	.name = "random_brightness",
	.doc = "Add one random offset to all pixels of an image.",
	.example = "random_brightness(0.1)",
	.kind = LEAT_OP_POINTWISE,
	.version = 1,
	.opts = options,
	.params_size = sizeof(struct random_brightness),
	.random = true,
	.on_field.accepts = accepts,
	.on_field.wants = "a float32 image (put scale(1/255) before it)",
	.on_field.infer = leat_infer_f32,
	.on_field.fuse.affine = affine,
};
