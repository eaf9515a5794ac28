/* blur.c - Gaussian blur, as torchvision's gaussian_blur
 *
 * The image is reflected at its borders. Rows are blurred horizontally and kept in a ring while output rows need them,
 * then summed. Sums are float; bytes are rounded at the end, ties to even. torchvision sums over both directions at
 * once, which differs in the last bits of a float. */
#include "image/pixel.h"

#include <math.h>
#include <string.h>

#include "image/scratch.h"

struct blur {
	size_t radius, taps; /* taps = 2 * radius + 1 */
	float *weight;
	float *padded;      /* one row with `radius` extra pixels on either side */
	float *ring;        /* row y, blurred horizontally, is in line y % lines */
	size_t line, lines; /* floats per line, number of lines */
};

static void
find_weights(float *weight, size_t radius, double sigma)
{
	double sum = 0;

	for (size_t i = 0; i <= 2 * radius; i++) {
		double x = ((double)i - (double)radius) / sigma;

		sum += exp(-x * x / 2);
	}
	for (size_t i = 0; i <= 2 * radius; i++) {
		double x = ((double)i - (double)radius) / sigma;

		weight[i] = (float)(exp(-x * x / 2) / sum);
	}
}

/* Row y as floats, reflected at both ends. */
static void
pad_row(const struct blur *blur, const struct leat_datum *in, int64_t y)
{
	const int64_t width = in->shape[1], radius = (int64_t)blur->radius;
	const size_t channels = (size_t)in->shape[2], first = (size_t)y * blur->line;
	float *row = blur->padded + blur->radius * channels;

	if (in->dtype == LEAT_U8)
		leat_cast((const uint8_t *)in->data + first, LEAT_U8, row, LEAT_F32, blur->line);
	else
		memcpy(row, (const float *)in->data + first, blur->line * sizeof(*row));
	for (int64_t x = 1; x <= radius; x++) {
		int64_t left = leat_border_index(-x, width, LEAT_BORDER_REFLECT);
		int64_t right = leat_border_index(width - 1 + x, width, LEAT_BORDER_REFLECT);

		memcpy(row - (size_t)x * channels, row + (size_t)left * channels, channels * sizeof(*row));
		memcpy(row + (size_t)(width - 1 + x) * channels, row + (size_t)right * channels,
		       channels * sizeof(*row));
	}
}

static void
add(float *restrict sum, const float *restrict x, float weight, size_t count)
{
	for (size_t i = 0; i < count; i++)
		sum[i] += weight * x[i];
}

static float *
line_of(const struct blur *blur, int64_t y)
{
	return blur->ring + (size_t)y % blur->lines * blur->line;
}

static void
blur_row(const struct blur *blur, const struct leat_datum *in, int64_t y)
{
	float *line = line_of(blur, y);

	pad_row(blur, in, y);
	memset(line, 0, blur->line * sizeof(*line));
	for (size_t t = 0; t < blur->taps; t++)
		add(line, blur->padded + t * (size_t)in->shape[2], blur->weight[t], blur->line);
}

static void
add_rows(const struct blur *blur, float *sum, int64_t y, int64_t height)
{
	memset(sum, 0, blur->line * sizeof(*sum));
	for (size_t t = 0; t < blur->taps; t++) {
		int64_t from = leat_border_index(y + (int64_t)t - (int64_t)blur->radius, height, LEAT_BORDER_REFLECT);

		add(sum, line_of(blur, from), blur->weight[t], blur->line);
	}
}

static void
round_bytes(const float *restrict in, uint8_t *restrict out, size_t count)
{
	for (size_t i = 0; i < count; i++)
		out[i] = leat_round_byte(in[i]);
}

/* Lines needed at once; reflected rows need none of their own. */
static size_t
lines_for(size_t kernel, int64_t height)
{
	return height < (int64_t)kernel ? (size_t)height : kernel;
}

static bool
alloc_blur(struct blur *blur, struct leat_scratch *scratch, size_t channels, float **sum)
{
	size_t margins = 2 * blur->radius * channels;

	blur->weight = leat_scratch_alloc(scratch, blur->taps * sizeof(float));
	blur->padded = leat_scratch_alloc(scratch, (blur->line + margins) * sizeof(float));
	blur->ring = leat_scratch_alloc(scratch, blur->lines * blur->line * sizeof(float));
	*sum = leat_scratch_alloc(scratch, blur->line * sizeof(float));
	return blur->weight && blur->padded && blur->ring && *sum;
}

enum leat_status
leat_blur(const struct leat_datum *in, const struct leat_datum *out, size_t kernel, double sigma,
          struct leat_scratch *scratch, struct leat_err *err)
{
	const int64_t height = in->shape[0], radius = (int64_t)kernel / 2;
	const size_t mark = scratch->used, channels = (size_t)in->shape[2];
	struct blur blur = {
		.radius = kernel / 2,
		.taps = kernel,
		.line = (size_t)in->shape[1] * channels,
		.lines = lines_for(kernel, height),
	};
	enum leat_status status = LEAT_OK;
	float *sum;

	if (!alloc_blur(&blur, scratch, channels, &sum)) {
		status = leat_fail_image(err, "blurring", scratch);
		goto out;
	}
	if (scratch->counting)
		goto out;
	find_weights(blur.weight, blur.radius, sigma);
	for (int64_t y = 0, done = 0; y < height; y++) {
		const size_t first = (size_t)y * blur.line;

		for (; done < height && done <= y + radius; done++)
			blur_row(&blur, in, done);
		add_rows(&blur, out->dtype == LEAT_U8 ? sum : (float *)out->data + first, y, height);
		if (out->dtype == LEAT_U8)
			round_bytes(sum, (uint8_t *)out->data + first, blur.line);
	}
out:
	scratch->used = mark;
	return status;
}

size_t
leat_blur_scratch(size_t kernel, int64_t height, int64_t width)
{
	const struct leat_datum image = {.dtype = LEAT_F32, .ndim = 3, .shape = {height, width, LEAT_MAX_CHANNELS}};
	struct leat_scratch count;

	if (height < 0 || width < 0)
		return 0;
	leat_scratch_count(&count);
	leat_blur(&image, &image, kernel, 1, &count, NULL);
	return count.peak;
}
