/* normalize.c - (x - mean) / std per channel
 *
 * Two steps: x - mean, rounded, then times 1/std, rounded. A single step x * (1/std) - mean/std would be slightly
 * cheaper, but cancels badly when x is near the mean. Here each of the three roundings (1/std is the third) adds a
 * relative error of at most 2^-24, for any x. */
#include "op/op.h"

#include <math.h>

struct normalize {
	struct leat_floats mean, std;
};

static const struct leat_opt options[] = {
	LEAT_FLOATS(struct normalize, mean, LEAT_REQUIRED, -INFINITY, INFINITY,
                    "one number per channel, or one for all; same scale as the input"),
	LEAT_FLOATS(struct normalize, std, LEAT_REQUIRED, 1e-30, INFINITY,
                    "one number per channel, or one for all; above 0"),
	LEAT_OPT_END,
};

static enum leat_status
check_count(const struct leat_floats *list, const char *name, int64_t channels, struct leat_err *err)
{
	if (list->count == 1 || list->count == channels)
		return LEAT_OK;
	if (channels < 0)
		return leat_fail(err, LEAT_SPEC,
		                 "%s has %d numbers, but the number of channels is unknown until the files are read: "
		                 "write decode(channels=3)",
		                 name, list->count);
	return leat_fail(err, LEAT_SPEC, "%s has %d numbers, expected 1 or %d, one per channel", name, list->count,
	                 (int)channels);
}

static enum leat_status
infer(void *params, struct leat_field *field, enum leat_layout *layout, struct leat_err *err)
{
	const struct normalize *normalize = params;
	int64_t channels = leat_field_channels(field, *layout);
	enum leat_status status = check_count(&normalize->mean, "mean", channels, err);

	if (status == LEAT_OK)
		status = check_count(&normalize->std, "std", channels, err);
	field->dtype = LEAT_F32;
	return status;
}

static float
of_channel(const struct leat_floats *list, int channel)
{
	return list->value[list->count == 1 ? 0 : channel];
}

static int
affine(const void *params, struct leat_rng *rng, int channels, struct leat_affine *step)
{
	const struct normalize *normalize = params;

	(void)rng;
	for (int c = 0; c < channels; c++) {
		step[0].mul[c] = 1;
		step[0].add[c] = -of_channel(&normalize->mean, c);
		step[1].mul[c] = (float)(1 / (double)of_channel(&normalize->std, c));
		step[1].add[c] = 0;
	}
	return 2;
}

const struct leat_op leat_op_normalize = {
	.name = "normalize",
	.doc = "Subtract a mean and divide by a standard deviation, per channel; the result is float32.",
	.example = "normalize(mean=[0.485, 0.456, 0.406], std=[0.229, 0.224, 0.225])",
	.kind = LEAT_OP_POINTWISE,
	.version = 1,
	.opts = options,
	.params_size = sizeof(struct normalize),
	.on_field.accepts = leat_accepts_numbers,
	.on_field.wants = "uint8 or float32 numbers, such as a decoded image; cast(float32) converts others",
	.on_field.infer = infer,
	.on_field.fuse.affine = affine,
};
