/* random_contrast.c - scale pixels about their channel's mean, like tf.image.random_contrast
 *
 * x becomes (x - mean) * f + mean, rounded after each of the three operations, with one random f per image and the
 * mean of each of its channels. uint8 is refused, because TensorFlow would round and clip it again. */
#include "op/op.h"

#include <math.h>

struct random_contrast {
	float lower, upper;
};

static const struct leat_opt options[] = {
	LEAT_FLOAT(struct random_contrast, lower, LEAT_REQUIRED, 0, INFINITY, "factor is uniform in [lower, upper)"),
	LEAT_FLOAT(struct random_contrast, upper, LEAT_REQUIRED, 0, INFINITY, "upper bound; at least lower"),
	LEAT_OPT_END,
};

static enum leat_status
check(void *params, struct leat_err *err)
{
	const struct random_contrast *contrast = params;

	if (contrast->lower > contrast->upper)
		return leat_fail(err, LEAT_SPEC, "lower=%g is above upper=%g", (double)contrast->lower,
		                 (double)contrast->upper);
	return LEAT_OK;
}

static bool
accepts(const struct leat_field *field, enum leat_layout layout)
{
	return field->dtype == LEAT_F32 && leat_accepts_image(field, layout);
}

static int
affine_about(const void *params, struct leat_rng *rng, const float *mean, int channels, struct leat_affine *step)
{
	const struct random_contrast *contrast = params;
	float factor = leat_rng_uniform(rng, contrast->lower, contrast->upper);

	step[0] = leat_affine_uniform(1, 0);
	step[1] = leat_affine_uniform(factor, 0);
	for (int c = 0; c < channels; c++) {
		step[0].add[c] = -mean[c];
		step[1].add[c] = mean[c];
	}
	return 2;
}

const struct leat_op leat_op_random_contrast = {
	.name = "random_contrast",
	.doc = "Multiply each pixel's distance from its channel's mean by one random factor.",
	.example = "random_contrast(0.8, 1.2)",
	.kind = LEAT_OP_STATISTICS,
	.version = 1,
	.opts = options,
	.params_size = sizeof(struct random_contrast),
	.random = true,
	.check = check,
	.on_field.accepts = accepts,
	.on_field.wants = "a float32 image (height x width x channels; put scale(1/255) before it)",
	.on_field.in_place = true,
	.on_field.fuse.affine_about = affine_about,
};
