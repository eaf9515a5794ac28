/* remap.c - pixels that move without changing: flips, rotation to the nearest pixel
 *
 * The element type matters by its size alone. */
#include "image/cpu.h"
#include "image/pixel.h"
#include "image/view.h"

#include <math.h>
#include <string.h>

static void
swap_bytes(unsigned char *restrict a, unsigned char *restrict b, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		unsigned char kept = a[i];

		a[i] = b[i];
		b[i] = kept;
	}
}

static inline void
mirror_row(unsigned char *row, size_t width, size_t pixel)
{
	unsigned char *left = row, *right = row + (width - 1) * pixel;

	for (; left < right; left += pixel, right -= pixel)
		swap_bytes(left, right, pixel);
}

static void
flip_horizontal(const struct leat_datum *image)
{
	size_t height = (size_t)image->shape[0], width = (size_t)image->shape[1], pixel = leat_pixel_bytes(image);
	unsigned char *row = image->data;

	for (size_t y = 0; width && y < height; y++, row += width * pixel) {
		if (pixel == 3) /* lets the compiler unroll the usual ones */
			mirror_row(row, width, 3);
		else if (pixel == 12)
			mirror_row(row, width, 12);
		else
			mirror_row(row, width, pixel);
	}
}

static void
flip_vertical(const struct leat_datum *image)
{
	size_t height = (size_t)image->shape[0], stride = (size_t)image->shape[1] * leat_pixel_bytes(image);
	unsigned char *data = image->data;

	for (size_t y = 0; y < height / 2; y++)
		swap_bytes(data + y * stride, data + (height - 1 - y) * stride, stride);
}

void
leat_flip(const struct leat_datum *image, enum leat_flip direction)
{
	if (direction == LEAT_FLIP_HORIZONTAL)
		flip_horizontal(image);
	else
		flip_vertical(image);
}

/* Where an output place comes from: x = xx * X + xy * Y + x0, the same for y. In float, in the order
 * that TensorFlow computes it. */
struct rotation {
	float xx, xy, x0, yx, yy, y0;
};

static struct rotation
rotation_about_centre(float radians, int64_t height, int64_t width)
{
	float c = cosf(radians), s = sinf(radians), right = (float)(width - 1), bottom = (float)(height - 1);

	return (struct rotation){
		.xx = c,
		.xy = -s,
		.x0 = (right - (c * right - s * bottom)) / 2,
		.yx = s,
		.yy = c,
		.y0 = (bottom - (s * right + c * bottom)) / 2,
	};
}

/* Half away from zero. Numbers too large for an int64_t cannot come up: |x| is at most the sum of the sides. */
static int64_t
nearest_place(float x)
{
	int64_t towards_zero = (int64_t)x;
	float rest = x - (float)towards_zero;

	return towards_zero + (rest >= 0.5f) - (rest <= -0.5f);
}

/* Part of row `i` of the result. */
LEAT_KERNEL void
rotate_row(const struct leat_view *in, unsigned char *out, const struct rotation *r, const void *fill, size_t pixel,
           int64_t i, const struct leat_window *part)
{
	const float x0 = r->xy * (float)i, y0 = r->yy * (float)i;

	for (int64_t j = part->left; j < part->left + part->width; j++, out += pixel) {
		int64_t x = nearest_place(r->xx * (float)j + x0 + r->x0);
		int64_t y = nearest_place(r->yx * (float)j + y0 + r->y0);

		if (x >= 0 && x < in->width && y >= 0 && y < in->height)
			memcpy(out, in->data + (size_t)y * in->stride + (size_t)x * pixel, pixel);
		else
			memcpy(out, fill, pixel);
	}
}

void
leat_rotate_to(const struct leat_view *in, float radians, float fill, const struct leat_sink *sink)
{
	const struct rotation r = rotation_about_centre(radians, in->height, in->width);
	const struct leat_pixel color = leat_pixel_of(fill, in->dtype);
	const size_t pixel = in->channels * leat_dtype_size(in->dtype);

	for (int64_t y = 0; y < sink->part.height; y++) {
		unsigned char *to = leat_sink_line(sink, y);

		if (pixel == 3)
			rotate_row(in, to, &r, color.bytes, 3, y + sink->part.top, &sink->part);
		else if (pixel == 12)
			rotate_row(in, to, &r, color.bytes, 12, y + sink->part.top, &sink->part);
		else
			rotate_row(in, to, &r, color.bytes, pixel, y + sink->part.top, &sink->part);
		leat_sink_take(sink, y);
	}
}

void
leat_rotate(const struct leat_datum *in, const struct leat_datum *out, float radians, float fill)
{
	const struct leat_view view = leat_view_of(in, NULL);
	const struct leat_sink sink = leat_sink_for(out);

	leat_rotate_to(&view, radians, fill, &sink);
}
