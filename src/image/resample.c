/* resample.c - resize an image with a filter: every pixel is a weighted sum of its neighbors
 *
 * Output pixel i is at x = (i + 0.5) * in/out. The filter gives the weight of each input pixel by its distance from x;
 * with antialias the filter is stretched by the factor by which the image shrinks. Weights are normalized to a sum of 1
 * over the pixels inside the image. The two directions are resampled one after the other. `in` may be fractional, when
 * it is the length of a box.
 *
 * mode=tf: TensorFlow's ScaleAndTranslate, ResizeBicubic and ResizeArea. Coordinates are float as there, sums are
 * float, columns are resampled first. mode=torch: Pillow, which torchvision uses for PIL images and imitates for
 * tensors. Coordinates and weights are double; resample_u8.c sums bytes, floats are summed as for tf. */
#include "image/resample.h"

#include <math.h>
#include <string.h>

#include "image/affine.h"
#include "image/scratch.h"

/* ---- weights ---- */

static double
triangle(double x)
{
	return x < 1 ? 1 - x : 0;
}

/* Keys' cubic convolution with a = -1/2. */
static double
cubic(double x)
{
	if (x < 1)
		return (1.5 * x - 2.5) * x * x + 1;
	return x < 2 ? (((x - 5) * x + 8) * x - 4) * -0.5 : 0;
}

static double
sinc(double x)
{
	x *= 3.14159265358979323846;
	return x == 0 ? 1 : sin(x) / x;
}

static double
lanczos(double x)
{
	return x < 3 ? sinc(x) * sinc(x / 3) : 0;
}

/* Weight at distance x >= 0, and the distance where it becomes 0. */
static const struct filter {
	double (*at)(double x);
	int reach;
} filters[] = {
	[LEAT_RESIZE_BILINEAR] = {triangle, 1},
	[LEAT_RESIZE_BICUBIC] = {cubic, 2},
	[LEAT_RESIZE_LANCZOS] = {lanczos, 3},
};

/* By how much the filter is stretched. */
static double
stretch_factor(const struct leat_resampling *how, double in, int64_t out)
{
	if (!how->antialias || in <= (double)out)
		return 1;
	if (how->mode == LEAT_RESIZE_TF)
		return (double)(float)(1.0 / (double)((float)out / (float)in));
	return in / (double)out;
}

static size_t
max_taps(const struct leat_resampling *how, int64_t in, int64_t out)
{
	int64_t max;

	if (how->method == LEAT_RESIZE_AREA)
		max = in / out + 3;
	else
		max = 2 * (int64_t)ceil(filters[how->method].reach * stretch_factor(how, (double)in, out)) + 1;
	max = max < in ? max : in;
	return (size_t)(max + max % 2);
}

/* The coordinate of output pixel i between the edges of the input, 0 and `in`. */
static double
center_of(const struct leat_resampling *how, int64_t i, double in, int64_t out)
{
	float at = (float)i + 0.5f;

	if (how->mode == LEAT_RESIZE_TORCH)
		return ((double)i + 0.5) * (in / (double)out);
	if (how->method == LEAT_RESIZE_BICUBIC && !how->antialias) {
		/* TensorFlow tabulates this filter in steps of 1/1024. */
		float x = at * ((float)in / (float)out) - 0.5f, below = floorf(x);

		return (double)below + (double)rintf((x - below) * 1024) / 1024 + 0.5;
	}
	return (double)(at * (float)(1.0 / (double)((float)out / (float)in)));
}

static struct leat_span
span_between(double from, double to, int64_t in)
{
	int64_t first = (int64_t)from, end = (int64_t)to;

	first = first < 0 ? 0 : first < in ? first : in - 1;
	end = end > in ? in : end > first ? end : first + 1;
	return (struct leat_span){(uint32_t)first, (uint32_t)(end - first)};
}

/* The weights of output pixel i, and their sum, to divide them by. */
static struct leat_span
weigh_filter(const struct leat_resampling *how, int64_t i, const struct leat_axis *axis, double *weight, double *total)
{
	const struct filter *filter = &filters[how->method];
	double center = axis->from + center_of(how, i, axis->length, axis->out);
	double wide = stretch_factor(how, axis->length, axis->out), inverse = 1 / wide;
	struct leat_span span =
		span_between(center - filter->reach * wide + 0.5, center + filter->reach * wide + 0.5, axis->in);

	*total = 0;
	for (uint32_t t = 0; t < span.count; t++) {
		weight[t] = filter->at(fabs(((double)(t + span.first) - center + 0.5) * inverse));
		*total += weight[t];
	}
	return span;
}

/* Weights are the overlap of the output pixel with each input pixel. Coordinates are rounded to float, so the sum may
 * be slightly off, and the last output pixel may end beyond the image; that excess goes to the last input pixel. */
static struct leat_span
weigh_area(int64_t i, const struct leat_axis *axis, double *weight, double *total)
{
	const int64_t in = axis->in;
	float scale = (float)axis->length / (float)axis->out;
	double from = axis->from + (double)((float)i * scale), to = axis->from + (double)((float)(i + 1) * scale);
	struct leat_span span = span_between(from, ceil(to), in);

	*total = (double)scale;
	for (uint32_t t = 0; t < span.count; t++) {
		double left = (double)(span.first + t), right = left + 1 < (double)in ? left + 1 : fmax(left + 1, to);

		weight[t] = left < from && right > to ? (double)scale : fmin(right, to) - fmax(left, from);
	}
	return span;
}

static void
put_pair(struct leat_weight_pair *pair, uint32_t t, double weight)
{
	int32_t w = (int32_t)(weight * (1 << LEAT_FIXED_BITS) + (weight < 0 ? -0.5 : 0.5));

	if (t % 2 == 0)
		pair[t / 2] = (struct leat_weight_pair){{0, 0}, {0, 0}};
	pair[t / 2].low[t % 2] = (int16_t)(w & ((1 << LEAT_LOW_BITS) - 1));
	pair[t / 2].high[t % 2] = (int16_t)(w >> LEAT_LOW_BITS);
}

static void
find_taps(struct leat_taps *taps, const struct leat_resampling *how, const struct leat_axis *axis, bool fixed,
          double *weight)
{
	for (int64_t i = 0; i < axis->count; i++) {
		const size_t first = (size_t)i * taps->max;
		const int64_t at = axis->first + i;
		double total;

		taps->span[i] = how->method == LEAT_RESIZE_AREA ? weigh_area(at, axis, weight, &total)
		                                                : weigh_filter(how, at, axis, weight, &total);
		for (uint32_t t = 0; t < taps->span[i].count; t++) {
			if (fixed)
				put_pair(taps->weight.pair + first / 2, t, weight[t] / total);
			else
				taps->weight.f32[first + t] = (float)(weight[t] / total);
		}
	}
}

/* ---- floats ---- */

/* Padding of a line, so that the last pixel can be read as four floats. */
enum { LINE_EXTRA = 4 };

#define ADD_ROW(type)                                                                                                  \
	do {                                                                                                           \
		const type *restrict x = row;                                                                          \
                                                                                                                       \
		for (size_t i = 0; i < count; i++)                                                                     \
			line[i] += weight * (float)x[i];                                                               \
	} while (0)

static void
add_row(float *restrict line, const void *row, enum leat_dtype dtype, float weight, size_t count)
{
	if (dtype == LEAT_U8)
		ADD_ROW(uint8_t);
	else
		ADD_ROW(float);
}

typedef float quad __attribute__((vector_size(16)));

/* Three or four channels. */
static inline void
resample_row_quads(const float *line, float *restrict out, const struct leat_taps *taps, size_t width, size_t channels)
{
	for (size_t x = 0; x < width; x++, out += channels) {
		const float *from = line + taps->span[x].first * channels, *weight = taps->weight.f32 + x * taps->max;
		quad sum = {0, 0, 0, 0}, pixel;

		for (uint32_t t = 0; t < taps->span[x].count; t++, from += channels) {
			memcpy(&pixel, from, sizeof(pixel));
			sum += (quad){weight[t], weight[t], weight[t], weight[t]} * pixel;
		}
		for (size_t c = 0; c < channels; c++)
			out[c] = sum[c];
	}
}

static void
resample_row(const float *line, float *restrict out, const struct leat_taps *taps, size_t width, size_t channels)
{
	for (size_t x = 0; x < width; x++)
		for (size_t c = 0; c < channels; c++) {
			const float *from = line + taps->span[x].first * channels + c;
			const float *weight = taps->weight.f32 + x * taps->max;
			float sum = 0;

			for (uint32_t t = 0; t < taps->span[x].count; t++)
				sum += weight[t] * from[t * channels];
			*out++ = sum;
		}
}

static void
resample_f32(const struct leat_view *in, const struct leat_sink *sink, const struct leat_taps *xs,
             const struct leat_taps *ys, float *line)
{
	const size_t count = (size_t)in->width * in->channels, width = (size_t)sink->part.width;

	memset(line + count, 0, LINE_EXTRA * sizeof(*line));
	for (int64_t y = 0; y < sink->part.height; y++) {
		const struct leat_span *span = &ys->span[y];
		float *to = leat_sink_row(sink, y);

		memset(line, 0, count * sizeof(*line));
		for (uint32_t t = 0; t < span->count; t++)
			add_row(line, leat_view_row(in, span->first + t), in->dtype,
			        ys->weight.f32[(size_t)y * ys->max + t], count);
		if (in->channels == 3)
			resample_row_quads(line, to, xs, width, 3);
		else if (in->channels == 4)
			resample_row_quads(line, to, xs, width, 4);
		else
			resample_row(line, to, xs, width, in->channels);
		leat_sink_commit(sink, y);
	}
}

/* ---- both ---- */

static bool
alloc_taps(struct leat_taps *taps, struct leat_scratch *scratch, int64_t out, size_t max)
{
	taps->max = max;
	taps->span = leat_scratch_alloc(scratch, (size_t)out * sizeof(*taps->span));
	taps->weight.f32 = leat_scratch_alloc(scratch, (size_t)out * max * sizeof(*taps->weight.f32));
	return taps->span && taps->weight.f32;
}

enum leat_status
leat_resample(const struct leat_view *in, const struct leat_axis *y_axis, const struct leat_axis *x_axis,
              const struct leat_resampling *how, bool avx2, const struct leat_sink *sink, struct leat_scratch *scratch,
              struct leat_err *err)
{
	const bool fixed = sink->row_dtype == LEAT_U8;
	const size_t max_y = max_taps(how, y_axis->in, y_axis->out), max_x = max_taps(how, x_axis->in, x_axis->out);
	const size_t floats = (size_t)in->width * in->channels + LINE_EXTRA;
	const size_t row_bytes =
		fixed ? leat_resample_u8_row((size_t)in->width, in->channels, max_x) : floats * sizeof(float);
	const size_t ring_bytes = fixed ? leat_resample_u8_ring((size_t)x_axis->count, in->channels, max_y) : 0;
	double *weight = leat_scratch_alloc(scratch, (max_x > max_y ? max_x : max_y) * sizeof(*weight));
	void *row = leat_scratch_alloc(scratch, row_bytes), *ring = leat_scratch_alloc(scratch, ring_bytes);
	void *quads = NULL;
	struct leat_taps xs, ys;

	if (!alloc_taps(&xs, scratch, x_axis->count, max_x) || !alloc_taps(&ys, scratch, y_axis->count, max_y) ||
	    !weight || !row || !ring)
		return leat_fail_image(err, "resizing", scratch);
	if (fixed && avx2) {
		quads = leat_scratch_alloc(scratch, leat_resample_u8_quads((size_t)x_axis->count, max_x));
		if (!quads)
			return leat_fail_image(err, "resizing", scratch);
	}
	if (scratch->counting)
		return LEAT_OK;
	find_taps(&xs, how, x_axis, fixed, weight);
	find_taps(&ys, how, y_axis, fixed, weight);
	if (fixed)
		leat_resample_u8(in, sink, &xs, &ys, row, ring, quads);
	else
		resample_f32(in, sink, &xs, &ys, row);
	return LEAT_OK;
}

/* Each row of bytes is read once, in order. For floats, all input rows of an output row are read, then some again for
 * the next one. */
struct leat_row_needs
leat_resample_needs(const struct leat_view *in, int64_t height, int64_t width, const struct leat_resampling *how,
                    enum leat_dtype row_dtype)
{
	if (row_dtype == LEAT_U8)
		return (struct leat_row_needs){1,
		                               leat_resample_u8_padding(in->channels, max_taps(how, in->width, width))};
	return (struct leat_row_needs){(int64_t)max_taps(how, in->height, height), 0};
}
