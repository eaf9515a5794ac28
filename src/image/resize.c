/* resize.c - an image at another size, as tf.image.resize with antialias=False
 *
 * Half-pixel centres: output place i looks at input place x = (i + 0.5) * in/out - 0.5, all in float.
 * Bilinear: between floor(x) and ceil(x), kept inside the image, first along the row, then between
 * rows, a + (b - a) * t each. A row of the input is interpolated once and kept as long as it is one of the two
 * needed; which changes nothing, as the order of the two directions is TensorFlow's.
 * Nearest: place floor((i + 0.5) * in/out). */
#include "image/image.h"

#include <math.h>
#include <string.h>

struct place {
	size_t lo, hi; /* input places, times the number of elements there */
	float t;       /* between them */
};

static void
find_places(struct place *place, int64_t in, int64_t out, size_t stride)
{
	float scale = (float)in / (float)out;

	for (int64_t i = 0; i < out; i++) {
		float x = ((float)i + 0.5f) * scale - 0.5f;
		float below = floorf(x);
		int64_t lo = (int64_t)below, hi = (int64_t)ceilf(x);

		place[i].lo = (size_t)(lo < 0 ? 0 : lo >= in ? in - 1 : lo) * stride;
		place[i].hi = (size_t)(hi < 0 ? 0 : hi >= in ? in - 1 : hi) * stride;
		place[i].t = x - below;
	}
}

static void
find_nearest(size_t *place, int64_t in, int64_t out, size_t stride)
{
	float scale = (float)in / (float)out;

	for (int64_t i = 0; i < out; i++) {
		int64_t at = (int64_t)floorf(((float)i + 0.5f) * scale);

		place[i] = (size_t)(at >= in ? in - 1 : at) * stride;
	}
}

/* One row of input, interpolated along itself. Instances for what the compiler should know. */
#define STRETCH(type, name)                                                                                            \
	static inline void name(const type *restrict row, float *restrict out, const struct place *restrict place,     \
	                        size_t width, size_t channels)                                                         \
	{                                                                                                              \
		for (size_t x = 0; x < width; x++) {                                                                   \
			const type *lo = row + place[x].lo, *hi = row + place[x].hi;                                   \
                                                                                                                       \
			for (size_t c = 0; c < channels; c++) {                                                        \
				float a = (float)lo[c], b = (float)hi[c];                                              \
                                                                                                                       \
				out[x * channels + c] = a + (b - a) * place[x].t;                                      \
			}                                                                                              \
		}                                                                                                      \
	}
STRETCH(uint8_t, stretch_u8)
STRETCH(float, stretch_f32)

static void
stretch(const struct leat_datum *in, size_t row, float *out, const struct place *place, size_t width)
{
	size_t channels = (size_t)in->shape[2], first = row * (size_t)in->shape[1] * channels;

	if (in->dtype == LEAT_U8) {
		const uint8_t *data = (const uint8_t *)in->data + first;

		if (channels == 3)
			stretch_u8(data, out, place, width, 3);
		else
			stretch_u8(data, out, place, width, channels);
	} else {
		const float *data = (const float *)in->data + first;

		if (channels == 3)
			stretch_f32(data, out, place, width, 3);
		else
			stretch_f32(data, out, place, width, channels);
	}
}

/* Two stretched rows of the input, and which rows they are. */
struct rows {
	float *line[2];
	size_t row[2];
};

static const float *
stretched(struct rows *rows, size_t row, size_t keep, const struct leat_datum *in, const struct place *place,
          size_t width)
{
	int victim = rows->row[0] == keep ? 1 : 0;

	for (int i = 0; i < 2; i++)
		if (rows->row[i] == row)
			return rows->line[i];
	stretch(in, row, rows->line[victim], place, width);
	rows->row[victim] = row;
	return rows->line[victim];
}

static enum leat_status
fail_full(const struct leat_scratch *scratch, struct leat_err *err)
{
	return leat_fail(err, LEAT_LIMIT,
	                 "resizing the image needs more memory than the %zu bytes there are for a sample; raise memory",
	                 scratch->size);
}

static enum leat_status
bilinear(const struct leat_datum *in, const struct leat_datum *out, struct leat_scratch *scratch, struct leat_err *err)
{
	size_t height = (size_t)out->shape[0], width = (size_t)out->shape[1], line = width * (size_t)out->shape[2];
	struct place *xs = leat_scratch_alloc(scratch, width * sizeof(*xs));
	struct place *ys = leat_scratch_alloc(scratch, height * sizeof(*ys));
	float *lines = leat_scratch_alloc(scratch, 2 * line * sizeof(*lines));
	struct rows rows = {.row = {SIZE_MAX, SIZE_MAX}};
	float *to = out->data;

	if (!xs || !ys || !lines)
		return fail_full(scratch, err);
	find_places(xs, in->shape[1], out->shape[1], (size_t)in->shape[2]);
	find_places(ys, in->shape[0], out->shape[0], 1);
	rows.line[0] = lines;
	rows.line[1] = lines + line;
	for (size_t y = 0; y < height; y++, to += line) {
		const float *top = stretched(&rows, ys[y].lo, ys[y].hi, in, xs, width);
		const float *bottom = stretched(&rows, ys[y].hi, ys[y].lo, in, xs, width);
		float t = ys[y].t;

		for (size_t i = 0; i < line; i++)
			to[i] = top[i] + (bottom[i] - top[i]) * t;
	}
	return LEAT_OK;
}

static inline void
pick(const unsigned char *restrict row, unsigned char *restrict out, const size_t *restrict place, size_t width,
     size_t pixel)
{
	for (size_t x = 0; x < width; x++)
		memcpy(out + x * pixel, row + place[x], pixel);
}

static enum leat_status
nearest(const struct leat_datum *in, const struct leat_datum *out, struct leat_scratch *scratch, struct leat_err *err)
{
	size_t pixel = (size_t)in->shape[2] * leat_dtype_size(in->dtype);
	size_t height = (size_t)out->shape[0], width = (size_t)out->shape[1], line = width * pixel;
	size_t *xs = leat_scratch_alloc(scratch, width * sizeof(*xs));
	size_t *ys = leat_scratch_alloc(scratch, height * sizeof(*ys));
	unsigned char *to = out->data;

	if (!xs || !ys)
		return fail_full(scratch, err);
	find_nearest(xs, in->shape[1], out->shape[1], pixel);
	find_nearest(ys, in->shape[0], out->shape[0], (size_t)in->shape[1] * pixel);
	for (size_t y = 0; y < height; y++, to += line) {
		const unsigned char *row = (const unsigned char *)in->data + ys[y];

		if (y && ys[y] == ys[y - 1])
			memcpy(to, to - line, line);
		else if (pixel == 3)
			pick(row, to, xs, width, 3);
		else if (pixel == 12)
			pick(row, to, xs, width, 12);
		else
			pick(row, to, xs, width, pixel);
	}
	return LEAT_OK;
}

enum leat_status
leat_resize(const struct leat_datum *in, const struct leat_datum *out, enum leat_resize_method method,
            struct leat_scratch *scratch, struct leat_err *err)
{
	const size_t mark = scratch->used;
	enum leat_status status =
		method == LEAT_RESIZE_BILINEAR ? bilinear(in, out, scratch, err) : nearest(in, out, scratch, err);

	scratch->used = mark;
	return status;
}
