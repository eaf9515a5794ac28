/* random_resized_crop.c - resize a random part of an image, like torchvision's RandomResizedCrop
 *
 * Draws a fraction of the area and a width/height ratio (uniform on a log scale), up to ten times, and uses the
 * first rectangle that fits, at a random position. If none fits, it uses the largest centred rectangle with an
 * allowed ratio. No cropped copy is made: the part is resampled straight from the image.
 *
 * Pixels are those of `resize`. The part does not depend on the mode. */
#include "op/op.h"
#include "op/resampling.h"

#include <math.h>

struct random_resized_crop {
	int64_t height, width;
	struct leat_floats scale, ratio;
	struct leat_resampling how;
};

enum { TRIES = 10 };

static const struct leat_opt options[] = {
	LEAT_INT(struct random_resized_crop, height, LEAT_REQUIRED, 1, 65500, "output height"),
	LEAT_INT(struct random_resized_crop, width, LEAT_REQUIRED, 1, 65500, "output width"),
	LEAT_FLOATS(struct random_resized_crop, scale, "[0.08, 1]", 0, 1,
                    "fraction of the image's area to use, [min, max]"),
	LEAT_FLOATS(struct random_resized_crop, ratio, "[3/4, 4/3]", 1e-3, 1e3,
                    "width/height ratio of that area, [min, max]"),
	LEAT_RESAMPLING_OPTIONS(struct random_resized_crop, how),
	LEAT_OPT_END,
};

static enum leat_status
check(void *params, struct leat_err *err)
{
	const struct random_resized_crop *crop = params;
	enum leat_status status = leat_check_range(&crop->scale, "scale", err);

	if (status == LEAT_OK)
		status = leat_check_range(&crop->ratio, "ratio", err);
	if (status == LEAT_OK)
		status = leat_resampling_check(&crop->how, err);
	return status;
}

static enum leat_status
infer(void *params, struct leat_field *field, enum leat_layout *layout, struct leat_err *err)
{
	const struct random_resized_crop *crop = params;

	enum leat_status status = leat_check_resampled(&crop->how, field, err);

	(void)layout;
	field->dtype = leat_resize_dtype(&crop->how, field->dtype);
	field->shape[0] = crop->height;
	field->shape[1] = crop->width;
	return status;
}

static size_t
scratch_bytes(const void *params, const struct leat_field *field)
{
	const struct random_resized_crop *crop = params;

	return leat_resize_scratch(&crop->how, field->shape, (const int64_t[]){crop->height, crop->width});
}

/* The largest centred rectangle with an allowed ratio. */
static struct leat_window
middle(const struct leat_floats *ratio, int64_t height, int64_t width)
{
	double own = (double)width / (double)height, least = (double)ratio->value[0], most = (double)ratio->value[1];
	struct leat_window part = {.height = height, .width = width};

	if (own < least)
		part.height = (int64_t)fmax(rint((double)width / least), 1);
	else if (own > most)
		part.width = (int64_t)fmax(rint((double)height * most), 1);
	part.top = (height - part.height) / 2;
	part.left = (width - part.width) / 2;
	return part;
}

static struct leat_window
draw_part(const struct random_resized_crop *crop, struct leat_rng *rng, int64_t height, int64_t width)
{
	const float *scale = crop->scale.value, *ratio = crop->ratio.value;

	for (int i = 0; i < TRIES; i++) {
		double area = (double)height * (double)width * (double)leat_rng_uniform(rng, scale[0], scale[1]);
		double shape = exp((double)leat_rng_uniform(rng, logf(ratio[0]), logf(ratio[1])));
		double w = rint(sqrt(area * shape)), h = rint(sqrt(area / shape));

		if (w >= 1 && w <= (double)width && h >= 1 && h <= (double)height) {
			struct leat_window part = {.height = (int64_t)h, .width = (int64_t)w};

			part.top = (int64_t)leat_rng_below(rng, (uint64_t)(height - part.height + 1));
			part.left = (int64_t)leat_rng_below(rng, (uint64_t)(width - part.width + 1));
			return part;
		}
	}
	return middle(&crop->ratio, height, width);
}

static enum leat_status
move(const void *params, struct leat_rng *rng, const int64_t *shape, struct leat_move *move, struct leat_err *err)
{
	const struct random_resized_crop *crop = params;

	(void)err;
	*move = (struct leat_move){
		.kind = LEAT_MOVE_RESIZE,
		.part = draw_part(crop, rng, shape[0], shape[1]),
		.height = crop->height,
		.width = crop->width,
		.how = crop->how,
	};
	return LEAT_OK;
}

const struct leat_op leat_op_random_resized_crop = {
	.name = "random_resized_crop",
	.doc = "Resize a random part of an image to height x width.",
	.example = "random_resized_crop(224, 224, mode=torch, antialias=true)",
	.kind = LEAT_OP_GEOMETRY,
	.version = 1,
	.opts = options,
	.params_size = sizeof(struct random_resized_crop),
	.random = true,
	.check = check,
	.on_field.accepts = leat_accepts_pixels,
	.on_field.wants = "an image (height x width x channels, uint8, uint16 or float32)",
	.on_field.infer = infer,
	.on_field.scratch_bytes = scratch_bytes,
	.on_field.fuse.move = move,
};
