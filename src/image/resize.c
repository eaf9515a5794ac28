/* resize.c - resize an image: choose the algorithm; nearest neighbor
 *
 * Half-pixel centers: output pixel i is at input coordinate x = (i + 0.5) * in/out - 0.5, all in float; for a
 * fractional box, relative to where it begins. Nearest: pixel floor((i + 0.5) * in/out). mode=torch adds up steps of
 * in/out in double, as Pillow does. bilinear.c and resample.c have the other methods. */
#include "image/resample.h"

#include <math.h>
#include <string.h>

#include "image/cpu.h"
#include "image/pixel.h"
#include "image/plain.h"
#include "image/scratch.h"

static void
find_nearest(size_t *offset, const struct leat_axis *axis, size_t stride)
{
	float scale = (float)axis->in / (float)axis->out;

	for (int64_t i = 0; i < axis->count; i++) {
		int64_t at = (int64_t)floorf(((float)(axis->first + i) + 0.5f) * scale);

		offset[i] = (size_t)(at >= axis->in ? axis->in - 1 : at) * stride;
	}
}

static void
find_nearest_torch(size_t *offset, const struct leat_axis *axis, size_t stride)
{
	double step = (double)axis->in / (double)axis->out, x = step / 2;

	/* Starts at 0 even if `first` is not: the rounding of the running sum matters. */
	for (int64_t i = -axis->first; i < axis->count; i++, x += step) {
		int64_t at = (int64_t)x;

		if (i >= 0)
			offset[i] = (size_t)(at >= axis->in ? axis->in - 1 : at) * stride;
	}
}

static struct leat_axis
rows_of(const struct leat_view *in, int64_t height, const struct leat_sink *sink)
{
	const double length = in->box.height > 0 ? in->box.height : (double)in->height;

	return (struct leat_axis){in->height, height, sink->part.top, sink->part.height, in->box.top, length};
}

static struct leat_axis
columns_of(const struct leat_view *in, int64_t width, const struct leat_sink *sink)
{
	const double length = in->box.height > 0 ? in->box.width : (double)in->width;

	return (struct leat_axis){in->width, width, sink->part.left, sink->part.width, in->box.left, length};
}

static inline void
pick_pixels(const unsigned char *restrict row, unsigned char *restrict out, const size_t *restrict offset, size_t width,
            size_t pixel)
{
	for (size_t x = 0; x < width; x++)
		memcpy(out + x * pixel, row + offset[x], pixel);
}

static enum leat_status
nearest(const struct leat_view *in, const struct leat_axis *y_axis, const struct leat_axis *x_axis,
        enum leat_resize_mode mode, const struct leat_sink *sink, struct leat_scratch *scratch, struct leat_err *err)
{
	void (*find)(size_t *, const struct leat_axis *, size_t) =
		mode == LEAT_RESIZE_TF ? find_nearest : find_nearest_torch;
	const size_t pixel = in->channels * leat_dtype_size(in->dtype);
	const size_t count = (size_t)x_axis->count;
	size_t *xs = leat_scratch_alloc(scratch, count * sizeof(*xs));
	size_t *ys = leat_scratch_alloc(scratch, (size_t)y_axis->count * sizeof(*ys));

	if (!xs || !ys)
		return leat_fail_image(err, "resizing", scratch);
	if (scratch->counting)
		return LEAT_OK;
	find(xs, x_axis, pixel);
	find(ys, y_axis, 1);
	for (int64_t y = 0; y < y_axis->count; y++) {
		const unsigned char *row = leat_view_row(in, ys[y]);
		unsigned char *to = leat_sink_row(sink, y);

		if (pixel == 3)
			pick_pixels(row, to, xs, count, 3);
		else if (pixel == 12)
			pick_pixels(row, to, xs, count, 12);
		else
			pick_pixels(row, to, xs, count, pixel);
		leat_sink_commit(sink, y);
	}
	return LEAT_OK;
}

/* ---- dispatch ---- */

static bool
is_bilinear(const struct leat_resampling *how)
{
	return how->method == LEAT_RESIZE_BILINEAR && !how->antialias;
}

enum leat_status
leat_resampling_check(const struct leat_resampling *how, struct leat_err *err)
{
	if (how->mode == LEAT_RESIZE_TF)
		return LEAT_OK;
	if (how->method == LEAT_RESIZE_AREA)
		return leat_fail(err, LEAT_SPEC, "mode=torch has no method=area; use mode=tf");
	if ((how->method == LEAT_RESIZE_BICUBIC || how->method == LEAT_RESIZE_LANCZOS) && !how->antialias)
		return leat_fail(err, LEAT_SPEC, "mode=torch supports bicubic and lanczos with antialias=true only");
	return LEAT_OK;
}

enum leat_dtype
leat_resize_dtype(const struct leat_resampling *how, enum leat_dtype in)
{
	return how->mode == LEAT_RESIZE_TF && how->method != LEAT_RESIZE_NEAREST ? LEAT_F32 : in;
}

struct leat_view
leat_view_of(const struct leat_datum *image, const struct leat_window *part)
{
	const struct leat_window all = {0, 0, image->shape[0], image->shape[1]};
	size_t channels = (size_t)image->shape[2], pixel = channels * leat_dtype_size(image->dtype);
	size_t stride = (size_t)image->shape[1] * pixel;

	part = part ? part : &all;
	return (struct leat_view){
		.data = (const unsigned char *)image->data + (size_t)part->top * stride + (size_t)part->left * pixel,
		.stride = stride,
		.height = part->height,
		.width = part->width,
		.channels = channels,
		.dtype = image->dtype,
	};
}

static enum leat_status
resize(const struct leat_view *in, int64_t height, int64_t width, const struct leat_resampling *how, bool avx2,
       const struct leat_sink *sink, struct leat_scratch *scratch, struct leat_err *err)
{
	const struct leat_axis y_axis = rows_of(in, height, sink), x_axis = columns_of(in, width, sink);
	const size_t mark = scratch->used;
	enum leat_status status;

	if (how->method == LEAT_RESIZE_NEAREST)
		status = nearest(in, &y_axis, &x_axis, (enum leat_resize_mode)how->mode, sink, scratch, err);
	else if (is_bilinear(how))
		status = leat_resize_bilinear(in, &y_axis, &x_axis, avx2, sink, scratch, err);
	else
		status = leat_resample(in, &y_axis, &x_axis, how, avx2, sink, scratch, err);
	scratch->used = mark;
	return status;
}

struct leat_row_needs
leat_resize_needs(const struct leat_view *in, int64_t height, int64_t width, const struct leat_resampling *how,
                  enum leat_dtype row_dtype)
{
	if (how->method == LEAT_RESIZE_NEAREST || is_bilinear(how))
		return (struct leat_row_needs){1, 0};
	return leat_resample_needs(in, height, width, how, row_dtype);
}

enum leat_status
leat_resize_to(const struct leat_view *in, int64_t height, int64_t width, const struct leat_resampling *how,
               const struct leat_sink *sink, struct leat_scratch *scratch, struct leat_err *err)
{
	return resize(in, height, width, how, leat_cpu_has_avx2(), sink, scratch, err);
}

enum leat_status
leat_resize_to_plain(const struct leat_view *in, int64_t height, int64_t width, const struct leat_resampling *how,
                     const struct leat_sink *sink, struct leat_scratch *scratch, struct leat_err *err)
{
	return resize(in, height, width, how, false, sink, scratch, err);
}

size_t
leat_resize_scratch(const struct leat_resampling *how, const int64_t *in, const int64_t *out)
{
	static const enum leat_dtype types[] = {LEAT_U8, LEAT_F32};
	struct leat_scratch count;

	leat_scratch_count(&count);
	for (size_t i = 0; i < sizeof(types) / sizeof(*types); i++) {
		const struct leat_view view = {
			.height = in[0] > 0 ? in[0] : 0,
			.width = in[1] > 0 ? in[1] : 0,
			.channels = LEAT_MAX_CHANNELS,
			.dtype = types[i],
		};
		const struct leat_sink sink = {
			.part = {0, 0, out[0], out[1]},
			.channels = LEAT_MAX_CHANNELS,
			.row_dtype = leat_resize_dtype(how, types[i]),
		};

		resize(&view, out[0], out[1], how, true, &sink, &count, NULL);
	}
	return count.peak;
}
