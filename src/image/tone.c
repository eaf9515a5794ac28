/* tone.c - map each value of a channel to another, independent of its neighbors
 *
 * uint8 has only 256 values: where the mapping depends on all pixels, a histogram gives a lookup table. Any thread. */
#include "image/color.h"

#include <math.h>

#include "image/affine.h"

enum { VALUES = 256 };

/* For each channel, makes a table of its histogram and applies it. */
static void
look_up_by_histogram(const struct leat_datum *image, void (*make)(const uint64_t *count, uint8_t *table))
{
	size_t pixels = (size_t)image->shape[0] * (size_t)image->shape[1], channels = (size_t)image->shape[2];
	uint8_t *x = image->data, table[LEAT_MAX_CHANNELS][VALUES];
	uint64_t count[LEAT_MAX_CHANNELS][VALUES] = {{0}};

	for (size_t i = 0; i < pixels; i++)
		for (size_t c = 0; c < channels; c++)
			count[c][x[i * channels + c]]++;
	for (size_t c = 0; c < channels; c++)
		make(count[c], table[c]);
	for (size_t i = 0; i < pixels; i++)
		for (size_t c = 0; c < channels; c++)
			x[i * channels + c] = table[c][x[i * channels + c]];
}

/* For integers, x >= threshold is the same as x >= ceil(threshold). */
static void
solarize_u8(uint8_t *x, size_t count, float threshold)
{
	uint8_t from = (uint8_t)(threshold > 0 ? ceilf(threshold) : 0);

	for (size_t i = 0; i < count; i++)
		x[i] = (uint8_t)(x[i] < from ? x[i] : 255 - x[i]);
}

void
leat_solarize(const struct leat_datum *image, float threshold)
{
	size_t count = (size_t)leat_datum_elements(image);
	float *x = image->data;

	if (image->dtype == LEAT_U8 && threshold <= 255)
		solarize_u8(image->data, count, threshold);
	for (size_t i = 0; image->dtype == LEAT_F32 && i < count; i++)
		x[i] = x[i] >= threshold ? 1 - x[i] : x[i];
}

void
leat_invert(const struct leat_datum *image)
{
	leat_solarize(image, -INFINITY);
}

void
leat_posterize(const struct leat_datum *image, int bits)
{
	size_t count = (size_t)leat_datum_elements(image);
	uint8_t mask = (uint8_t)(0xff00 >> bits), *x = image->data;

	for (size_t i = 0; i < count; i++)
		x[i] &= mask;
}

static void
make_identity(uint8_t *table)
{
	for (int i = 0; i < VALUES; i++)
		table[i] = (uint8_t)i;
}

/* A value is mapped in proportion to the number of pixels below it, in steps of 1/255 of all pixels except those of the
 * largest value. If that is less than one pixel, nothing changes. */
static void
make_equal(const uint64_t *count, uint8_t *table)
{
	uint64_t all = 0, largest = 0, step, below;

	for (int i = 0; i < VALUES; i++) {
		all += count[i];
		largest = count[i] ? count[i] : largest;
	}
	step = (all - largest) / 255;
	make_identity(table);
	below = step / 2;
	for (int i = 0; step > 0 && i < VALUES; i++) {
		table[i] = (uint8_t)(below / step < 255 ? below / step : 255);
		below += count[i];
	}
}

void
leat_equalize(const struct leat_datum *image)
{
	look_up_by_histogram(image, make_equal);
}

static void
make_full_range(const uint64_t *count, uint8_t *table)
{
	int low = 0, high = 255;
	double scale, offset;

	while (low < 255 && !count[low])
		low++;
	while (high > 0 && !count[high])
		high--;
	make_identity(table);
	if (high <= low)
		return;
	scale = 255.0 / (high - low);
	offset = -low * scale;
	for (int i = low; i <= high; i++) /* there are no other values */
		table[i] = (uint8_t)(i * scale + offset);
}

static void
autocontrast_f32(float *x, size_t pixels, size_t channels)
{
	float min[LEAT_MAX_CHANNELS], max[LEAT_MAX_CHANNELS], scale[LEAT_MAX_CHANNELS];

	for (size_t c = 0; c < channels; c++)
		min[c] = max[c] = x[c];
	for (size_t i = 0; i < pixels; i++)
		for (size_t c = 0; c < channels; c++) {
			float v = x[i * channels + c];

			min[c] = v < min[c] ? v : min[c];
			max[c] = v > max[c] ? v : max[c];
		}
	for (size_t c = 0; c < channels; c++) {
		scale[c] = 1 / (max[c] - min[c]);
		if (!isfinite(scale[c])) {
			min[c] = 0;
			scale[c] = 1;
		}
	}
	for (size_t i = 0; i < pixels; i++)
		for (size_t c = 0; c < channels; c++) {
			float spread = (x[i * channels + c] - min[c]) * scale[c];

			x[i * channels + c] = spread < 0 ? 0 : spread > 1 ? 1 : spread;
		}
}

void
leat_autocontrast(const struct leat_datum *image)
{
	size_t pixels = (size_t)image->shape[0] * (size_t)image->shape[1];

	if (image->dtype == LEAT_U8)
		look_up_by_histogram(image, make_full_range);
	else
		autocontrast_f32(image->data, pixels, (size_t)image->shape[2]);
}
