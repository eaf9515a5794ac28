/* gaussian_blur.c - blur an image by a random amount, like torchvision's GaussianBlur
 *
 * Borders are mirrored. An image smaller than half the kernel is mirrored repeatedly; torchvision refuses it. */
#include "image/image.h"
#include "op/op.h"

#include <inttypes.h>

struct gaussian_blur {
	int64_t kernel;
	struct leat_floats sigma;
};

static const struct leat_opt options[] = {
	LEAT_INT(struct gaussian_blur, kernel, LEAT_REQUIRED, 1, 1023, "kernel size in pixels; must be odd"),
	LEAT_FLOATS(struct gaussian_blur, sigma, "[0.1, 2]", 1e-3, 1e3,
                    "standard deviation in pixels, uniform in [min, max]"),
	LEAT_OPT_END,
};

static enum leat_status
check(void *params, struct leat_err *err)
{
	const struct gaussian_blur *blur = params;

	if (blur->kernel % 2 == 0)
		return leat_fail(err, LEAT_SPEC, "kernel=%" PRId64 " is even: use an odd size, such as %" PRId64,
		                 blur->kernel, blur->kernel + 1);
	return leat_check_range(&blur->sigma, "sigma", err);
}

static size_t
scratch_bytes(const void *params, const struct leat_field *field)
{
	const struct gaussian_blur *blur = params;

	return leat_blur_scratch((size_t)blur->kernel, field->shape[0], field->shape[1]);
}

static enum leat_status
run(const void *params, struct leat_work *work, int field, struct leat_err *err)
{
	const struct gaussian_blur *blur = params;
	const struct leat_datum in = work->sample->field[field];
	double sigma = (double)leat_rng_uniform(&work->rng, blur->sigma.value[0], blur->sigma.value[1]);
	enum leat_status status = leat_check_image(&in, LEAT_HWC, err);

	if (status == LEAT_OK)
		status = leat_work_out(work, field, in.dtype, 3, in.shape, err);
	if (status == LEAT_OK)
		status = leat_blur(&in, &work->sample->field[field], (size_t)blur->kernel, sigma, work->scratch, err);
	return status;
}

const struct leat_op leat_op_gaussian_blur = {
	.name = "gaussian_blur",
	.doc = "Blur an image with a Gaussian of random width.",
	.example = "gaussian_blur(5, sigma=[0.1, 2])",
	.kind = LEAT_OP_GEOMETRY,
	.version = 1,
	.opts = options,
	.params_size = sizeof(struct gaussian_blur),
	.random = true,
	.check = check,
	.on_field.accepts = leat_accepts_image,
	.on_field.wants = "an image (height x width x channels, uint8 or float32)",
	.on_field.scratch_bytes = scratch_bytes,
	.on_field.run = run,
};
