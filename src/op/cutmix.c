/* cutmix.c - swap a random box between paired images and blend labels by area (Yun et al., 2019)
 *
 * Pairs are formed as in mixup. The box covers 1 - s of the area, with s drawn from Beta(alpha, alpha). Its centre
 * is uniform over the image, and it is clipped at the borders; labels are blended by the area actually swapped. */
#include <math.h>
#include <string.h>

#include "op/op.h"

struct cutmix {
	float alpha;
	const char *image, *label;
	int field[2]; /* found at open */
};

static const struct leat_opt options[] = {
	LEAT_FLOAT(struct cutmix, alpha, "1", 0.001, 1000,
                   "parameter of the Beta distribution; 1: box area is uniform"),
	LEAT_STRING(struct cutmix, image, "image", "image field"),
	LEAT_STRING(struct cutmix, label, "label", "label field, float32; use one_hot before batch"),
	LEAT_OPT_END,
};

static enum leat_status
infer(void *params, struct leat_schema *schema, struct leat_err *err)
{
	struct cutmix *cutmix = params;
	enum leat_status status = leat_rows_field(schema, cutmix->image, false, &cutmix->field[0], err);

	if (status == LEAT_OK && schema->entry[cutmix->field[0]].layout == LEAT_LAYOUT_NONE)
		return leat_fail(err, LEAT_SPEC, "field '%s' is not an image", cutmix->image);
	return status == LEAT_OK ? leat_rows_field(schema, cutmix->label, true, &cutmix->field[1], err) : status;
}

struct box {
	int64_t top, left, bottom, right;
};

static int64_t
clip(int64_t x, int64_t most)
{
	return x < 0 ? 0 : x > most ? most : x;
}

static struct box
draw_box(struct leat_rng *rng, float alpha, int64_t height, int64_t width)
{
	double side = sqrt(1 - leat_rng_beta(rng, (double)alpha));
	int64_t h = (int64_t)((double)height * side), w = (int64_t)((double)width * side);
	int64_t y = (int64_t)leat_rng_below(rng, (uint64_t)height), x = (int64_t)leat_rng_below(rng, (uint64_t)width);

	return (struct box){clip(y - h / 2, height), clip(x - w / 2, width), clip(y - h / 2 + h, height),
	                    clip(x - w / 2 + w, width)};
}

static void
exchange(unsigned char *a, unsigned char *b, size_t bytes)
{
	unsigned char held[256];

	for (size_t n; bytes > 0; a += n, b += n, bytes -= n) {
		n = bytes < sizeof(held) ? bytes : sizeof(held);
		memcpy(held, a, n);
		memcpy(a, b, n);
		memcpy(b, held, n);
	}
}

/* One plane of `height` rows, `width` pixels of `pixel` bytes each. */
static void
exchange_box(unsigned char *a, unsigned char *b, const struct box *box, int64_t width, size_t pixel)
{
	for (int64_t y = box->top; y < box->bottom; y++) {
		size_t at = (size_t)(y * width + box->left) * pixel;

		exchange(a + at, b + at, (size_t)(box->right - box->left) * pixel);
	}
}

static void
mix_pair(const struct cutmix *cutmix, const struct leat_rows *rows, int64_t i)
{
	const struct leat_field *image = &rows->schema->entry[cutmix->field[0]].field;
	bool planar = rows->schema->entry[cutmix->field[0]].layout == LEAT_CHW;
	int64_t height = image->shape[planar ? 1 : 0], width = image->shape[planar ? 2 : 1];
	int64_t planes = planar ? image->shape[0] : 1;
	size_t pixel = leat_dtype_size(image->dtype) * (size_t)(planar ? 1 : image->shape[2]);
	size_t bytes = rows->row_bytes[cutmix->field[0]];
	unsigned char *a = (unsigned char *)rows->column[cutmix->field[0]] + (size_t)i * bytes;
	struct leat_rng rng;
	struct box box;

	leat_rows_stream(rows, i, &rng);
	box = draw_box(&rng, cutmix->alpha, height, width);
	for (int64_t p = 0; p < planes; p++) {
		size_t at = (size_t)(p * height * width) * pixel;

		exchange_box(a + at, a + bytes + at, &box, width, pixel);
	}
	leat_rows_blend(rows, i, cutmix->field[1],
	                1 - (float)((box.bottom - box.top) * (box.right - box.left)) / (float)(height * width));
}

static void
run(const void *params, const struct leat_rows *rows)
{
	for (int64_t i = 0; i < rows->count; i++)
		if (leat_rows_pair(rows, i))
			mix_pair(params, rows, i);
}

const struct leat_op leat_op_cutmix = {
	.name = "cutmix",
	.doc = "Swap a random box between neighbouring images of a batch and blend their labels by area.",
	.example = "cutmix",
	.kind = LEAT_OP_MIX,
	.version = 1,
	.opts = options,
	.params_size = sizeof(struct cutmix),
	.random = true,
	.on_batch.infer = infer,
	.on_batch.run = run,
	.on_batch.row_group = 2,
};
