/* resample.c - an image at another size, every pixel a weighted sum of those around its place
 *
 * Output place i lies at x = (i + 0.5) * in/out. A filter says how much each input pixel counts by its distance from x;
 * with antialias the filter is as much wider as the image becomes smaller. Weights are made to add up to 1, over the
 * pixels that there are. First each row is resampled along itself, then the rows are added up. Only as many resampled
 * rows are kept as one row of the result needs, in a ring.
 *
 * mode=tf: TensorFlow's ScaleAndTranslate, ResizeBicubic and ResizeArea. Places are computed in float as there, sums
 * are floats. mode=torch: Pillow, which torchvision uses for images and imitates for tensors. Places and weights are
 * computed in double; bytes are summed in integers with 22 bits behind the point and rounded after each direction.
 * Which direction comes first shows in some bytes, by 1: here it is rows, as in Pillow before 13 and for tensors; 13
 * takes columns first where the height shrinks much more than the width. */
#include "image/resample.h"

#include <math.h>
#include <string.h>

#include "image/affine.h"

enum { FIXED_BITS = 22 }; /* 8 bits for the value, and 2 for filters that reach beyond 0 and 1 */

/* ---- weights ---- */

struct span {
	uint32_t first, count;
};

/* For each output place the input places that count, and how much: `most` weights each, float or fixed-point. */
struct taps {
	struct span *span;
	union {
		float *f32;
		int32_t *fixed;
	} weight;
	size_t most;
};

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

/* What counts at distance x >= 0, and up to where. */
static const struct filter {
	double (*at)(double x);
	int reach;
} filters[] = {
	[LEAT_RESIZE_BILINEAR] = {triangle, 1},
	[LEAT_RESIZE_BICUBIC] = {cubic, 2},
	[LEAT_RESIZE_LANCZOS] = {lanczos, 3},
};

/* How many times wider than at its own size a filter is. */
static double
widening(const struct leat_resampling *how, int64_t in, int64_t out)
{
	if (!how->antialias || in <= out)
		return 1;
	if (how->mode == LEAT_RESIZE_TF)
		return (double)(float)(1.0 / (double)((float)out / (float)in));
	return (double)in / (double)out;
}

static size_t
most_taps(const struct leat_resampling *how, int64_t in, int64_t out)
{
	int64_t most;

	if (how->method == LEAT_RESIZE_AREA)
		most = in / out + 3;
	else
		most = 2 * (int64_t)ceil(filters[how->method].reach * widening(how, in, out)) + 1;
	return (size_t)(most < in ? most : in);
}

/* Where output place i lies between the input's edges, 0 and `in`. */
static double
centre_of(const struct leat_resampling *how, int64_t i, int64_t in, int64_t out)
{
	float at = (float)i + 0.5f;

	if (how->mode == LEAT_RESIZE_TORCH)
		return ((double)i + 0.5) * ((double)in / (double)out);
	if (how->method == LEAT_RESIZE_BICUBIC && !how->antialias) {
		/* TensorFlow has a table of this filter in steps of 1/1024. */
		float x = at * ((float)in / (float)out) - 0.5f, below = floorf(x);

		return (double)below + (double)rintf((x - below) * 1024) / 1024 + 0.5;
	}
	return (double)(at * (float)(1.0 / (double)((float)out / (float)in)));
}

static struct span
span_between(double from, double to, int64_t in)
{
	int64_t first = (int64_t)from, end = (int64_t)to;

	first = first < 0 ? 0 : first < in ? first : in - 1;
	end = end > in ? in : end > first ? end : first + 1;
	return (struct span){(uint32_t)first, (uint32_t)(end - first)};
}

/* Weights of output place i, and by what to divide them. */
static struct span
weigh_filter(const struct leat_resampling *how, int64_t i, int64_t in, int64_t out, double *weight, double *whole)
{
	const struct filter *filter = &filters[how->method];
	double centre = centre_of(how, i, in, out), wide = widening(how, in, out), inverse = 1 / wide;
	struct span span = span_between(centre - filter->reach * wide + 0.5, centre + filter->reach * wide + 0.5, in);

	*whole = 0;
	for (uint32_t t = 0; t < span.count; t++) {
		weight[t] = filter->at(fabs(((double)(t + span.first) - centre + 0.5) * inverse));
		*whole += weight[t];
	}
	return span;
}

/* By how much of each pixel the result's covers. Places are rounded to float, so that the sum may be a little off the
 * whole, and the last may end beyond the image; that counts for the last pixel. */
static struct span
weigh_area(int64_t i, int64_t in, int64_t out, double *weight, double *whole)
{
	float scale = (float)in / (float)out;
	double from = (double)((float)i * scale), to = (double)((float)(i + 1) * scale);
	struct span span = span_between(from, ceil(to), in);

	*whole = (double)scale;
	for (uint32_t t = 0; t < span.count; t++) {
		double left = (double)(span.first + t), right = left + 1 < (double)in ? left + 1 : fmax(left + 1, to);

		weight[t] = left < from && right > to ? (double)scale : fmin(right, to) - fmax(left, from);
	}
	return span;
}

static void
find_taps(struct taps *taps, const struct leat_resampling *how, int64_t in, int64_t out, bool fixed, double *weight)
{
	for (int64_t i = 0; i < out; i++) {
		const size_t first = (size_t)i * taps->most;
		double whole;

		taps->span[i] = how->method == LEAT_RESIZE_AREA ? weigh_area(i, in, out, weight, &whole)
		                                                : weigh_filter(how, i, in, out, weight, &whole);
		for (uint32_t t = 0; t < taps->span[i].count; t++) {
			double w = weight[t] / whole;

			if (fixed)
				taps->weight.fixed[first + t] = (int32_t)(w * (1 << FIXED_BITS) + (w < 0 ? -0.5 : 0.5));
			else
				taps->weight.f32[first + t] = (float)w;
		}
	}
}

/* ---- one row, along itself ---- */

static inline uint8_t
fixed_to_byte(int32_t x)
{
	x >>= FIXED_BITS;
	return (uint8_t)(x < 0 ? 0 : x > 255 ? 255 : x);
}

/* Instances for what the compiler should know. */
#define GATHER(name, IN, OUT, SUM, START, WEIGHT, FINISH)                                                              \
	static inline void name(const IN *restrict row, OUT *restrict out, const struct taps *taps, size_t width,      \
	                        size_t channels)                                                                       \
	{                                                                                                              \
		for (size_t x = 0; x < width; x++) {                                                                   \
			const struct span span = taps->span[x];                                                        \
			const SUM *weight = taps->weight.WEIGHT + x * taps->most;                                      \
			const IN *from = row + span.first * channels;                                                  \
			SUM sum[LEAT_MAX_CHANNELS] = {START, START, START, START};                                     \
                                                                                                                       \
			for (uint32_t t = 0; t < span.count; t++, from += channels)                                    \
				for (size_t c = 0; c < channels; c++)                                                  \
					sum[c] += weight[t] * (SUM)from[c];                                            \
			for (size_t c = 0; c < channels; c++)                                                          \
				out[x * channels + c] = FINISH(sum[c]);                                                \
		}                                                                                                      \
	}
#define AS_IT_IS(x) (x)
GATHER(gather_f32, float, float, float, 0, f32, AS_IT_IS)
GATHER(gather_u8, uint8_t, float, float, 0, f32, AS_IT_IS)
GATHER(gather_fixed, uint8_t, uint8_t, int32_t, 1 << (FIXED_BITS - 1), fixed, fixed_to_byte)

#define GATHER_KNOWN(name)                                                                                             \
	(in->channels == 3   ? name((const void *)row, line, taps, width, 3)                                           \
	 : in->channels == 1 ? name((const void *)row, line, taps, width, 1)                                           \
	                     : name((const void *)row, line, taps, width, in->channels))

static void
gather(const struct leat_view *in, int64_t y, void *line, const struct taps *taps, size_t width, bool fixed)
{
	const unsigned char *row = in->data + (size_t)y * in->stride;

	if (fixed)
		GATHER_KNOWN(gather_fixed);
	else if (in->dtype == LEAT_U8)
		GATHER_KNOWN(gather_u8);
	else
		GATHER_KNOWN(gather_f32);
}

/* ---- rows added up ---- */

/* Rows of the input, resampled along themselves: row y lies in line y % lines. */
struct ring {
	unsigned char *line;
	size_t bytes; /* of a line */
	size_t lines;
	int64_t next; /* row that is made next; those before it are there or no longer needed */
};

static void
make_rows(struct ring *ring, const struct span *span, const struct leat_view *in, const struct taps *taps, size_t width,
          bool fixed)
{
	int64_t first = span->first, end = first + span->count;

	ring->next = ring->next < first ? first : ring->next;
	for (; ring->next < end; ring->next++)
		gather(in, ring->next, ring->line + (size_t)ring->next % ring->lines * ring->bytes, taps, width, fixed);
}

static const void *
line_of(const struct ring *ring, size_t row)
{
	return ring->line + row % ring->lines * ring->bytes;
}

static void
add_rows_f32(const struct ring *ring, const struct span *span, const float *weight, float *restrict out, size_t count)
{
	memset(out, 0, count * sizeof(*out));
	for (uint32_t t = 0; t < span->count; t++) {
		const float *restrict line = line_of(ring, span->first + t);
		float w = weight[t];

		for (size_t i = 0; i < count; i++)
			out[i] += w * line[i];
	}
}

static void
add_rows_fixed(const struct ring *ring, const struct span *span, const int32_t *weight, uint8_t *restrict out,
               int32_t *restrict sum, size_t count)
{
	for (size_t i = 0; i < count; i++)
		sum[i] = 1 << (FIXED_BITS - 1);
	for (uint32_t t = 0; t < span->count; t++) {
		const uint8_t *restrict line = line_of(ring, span->first + t);
		int32_t w = weight[t];

		for (size_t i = 0; i < count; i++)
			sum[i] += w * line[i];
	}
	for (size_t i = 0; i < count; i++)
		out[i] = fixed_to_byte(sum[i]);
}

/* ---- all of it ---- */

static bool
alloc_taps(struct taps *taps, struct leat_scratch *scratch, size_t out, size_t most)
{
	taps->most = most;
	taps->span = leat_scratch_alloc(scratch, out * sizeof(*taps->span));
	taps->weight.f32 = leat_scratch_alloc(scratch, out * most * sizeof(*taps->weight.f32));
	return taps->span && taps->weight.f32;
}

enum leat_status
leat_resample(const struct leat_view *in, const struct leat_datum *out, const struct leat_resampling *how,
              struct leat_scratch *scratch, struct leat_err *err)
{
	const bool fixed = out->dtype == LEAT_U8;
	const size_t height = (size_t)out->shape[0], width = (size_t)out->shape[1], count = width * in->channels;
	const size_t most_x = most_taps(how, in->width, out->shape[1]),
		     most_y = most_taps(how, in->height, out->shape[0]);
	struct ring ring = {.bytes = count * leat_dtype_size(out->dtype), .lines = most_y};
	double *weight = leat_scratch_alloc(scratch, (most_x > most_y ? most_x : most_y) * sizeof(*weight));
	int32_t *sum = leat_scratch_alloc(scratch, fixed ? count * sizeof(*sum) : 0);
	struct taps xs, ys;

	ring.line = leat_scratch_alloc(scratch, ring.lines * ring.bytes);
	if (!alloc_taps(&xs, scratch, width, most_x) || !alloc_taps(&ys, scratch, height, most_y) || !weight || !sum ||
	    !ring.line)
		return leat_resize_full(scratch, err);
	find_taps(&xs, how, in->width, out->shape[1], fixed, weight);
	find_taps(&ys, how, in->height, out->shape[0], fixed, weight);
	for (size_t y = 0; y < height; y++) {
		const size_t at = y * most_y;

		make_rows(&ring, &ys.span[y], in, &xs, width, fixed);
		if (fixed)
			add_rows_fixed(&ring, &ys.span[y], ys.weight.fixed + at, (uint8_t *)out->data + y * count, sum,
			               count);
		else
			add_rows_f32(&ring, &ys.span[y], ys.weight.f32 + at, (float *)out->data + y * count, count);
	}
	return LEAT_OK;
}

/* As leat_resample takes it; a side of -1 is not known and counts for nothing. */
size_t
leat_resample_scratch(const struct leat_resampling *how, const int64_t *in, const int64_t *out)
{
	const size_t height = (size_t)out[0], width = (size_t)out[1], count = width * LEAT_MAX_CHANNELS;
	const size_t most_y = in[0] > 0 ? most_taps(how, in[0], out[0]) : 0;
	const size_t most_x = in[1] > 0 ? most_taps(how, in[1], out[1]) : 0;
	const size_t tables =
		(height + width) * sizeof(struct span) + (height * most_y + width * most_x) * sizeof(float);

	return tables + (most_x + most_y) * sizeof(double) + (1 + most_y) * count * sizeof(float);
}
