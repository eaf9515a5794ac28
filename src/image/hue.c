/* hue.c - shift the hues of an image
 *
 * By way of hue, saturation and value, each from 0 to 1. Value is the largest of red, green and blue; hue is divided
 * into six sextants. For uint8 the three are stored in 8 bits in between, and the mix of float and double is Pillow's:
 * every bit depends on it. Any thread. */
#include "image/color.h"

/* One channel of a color is its value, v; another is p, the smallest; the third is q or t, which falls or rises along
 * the sextant. Which of them red, green and blue are: */
enum { V, P, Q, T };
static const uint8_t sextants[7][3] = {{V, T, P}, {Q, V, P}, {P, V, T}, {P, Q, V}, {T, P, V}, {V, P, Q}, {V, T, P}};

/* ---- uint8 ---- */

/* The sextant of an 8-bit hue. 255 is the start of a seventh sextant, which is the first again. */
struct hue_position {
	double fraction; /* position in the sextant, 0 to 1 */
	const uint8_t *channels;
};

static void
find_positions(struct hue_position *position)
{
	for (int hue = 0; hue < 256; hue++) {
		double at = hue * 6.0 / 255.0;
		int sextant = (int)at;

		position[hue].fraction = (double)(float)(at - sextant);
		position[hue].channels = sextants[sextant];
	}
}

/* The color is not gray. */
static inline uint8_t
hue_of(const uint8_t *rgb, int max, float range)
{
	float r = (float)(max - rgb[0]) / range, g = (float)(max - rgb[1]) / range, b = (float)(max - rgb[2]) / range;
	float h;
	double turned;

	if (rgb[0] == max)
		h = b - g;
	else if (rgb[1] == max)
		h = (float)(2.0 + (double)r - (double)b);
	else
		h = (float)(4.0 + (double)g - (double)r);
	turned = (double)h / 6.0 + 1.0;
	return (uint8_t)((double)(float)(turned >= 1.0 ? turned - 1.0 : turned) * 255.0);
}

/* Ties up; x >= 0. */
static inline uint8_t
to_nearest(double x)
{
	return (uint8_t)(x + 0.5);
}

static inline void
put_color(const struct hue_position *position, uint8_t saturation, uint8_t value, uint8_t *rgb)
{
	double v = value, f = position->fraction, s = (double)(float)(saturation / 255.0);
	const uint8_t mix[] = {
		[V] = value,
		[P] = to_nearest(v * (1.0 - s)),
		[Q] = to_nearest(v * (1.0 - s * f)),
		[T] = to_nearest(v * (1.0 - s * (1.0 - f))),
	};

	for (int c = 0; c < 3; c++)
		rgb[c] = mix[position->channels[c]];
}

/* Gray does not change. A saturation that is rounded to 0 gives gray. */
static void
turn_u8(uint8_t *rgb, size_t pixels, uint8_t turn)
{
	struct hue_position position[256];

	find_positions(position);
	for (size_t i = 0; i < pixels; i++, rgb += 3) {
		int max = rgb[0] > rgb[1] ? rgb[0] : rgb[1], min = rgb[0] < rgb[1] ? rgb[0] : rgb[1];
		float range;
		uint8_t hue, saturation;

		max = rgb[2] > max ? rgb[2] : max;
		min = rgb[2] < min ? rgb[2] : min;
		if (max == min)
			continue;
		range = (float)(max - min);
		hue = (uint8_t)(hue_of(rgb, max, range) + turn);
		saturation = (uint8_t)((double)(range / (float)max) * 255.0);
		put_color(&position[hue], saturation, (uint8_t)max, rgb);
	}
}

/* ---- float32 ---- */

static inline float
within(float x)
{
	return x < 0 ? 0 : x > 1 ? 1 : x;
}

/* The hue of gray is 0. */
static inline float
hue_f32(const float *rgb, float max, float range)
{
	float divisor = range == 0 ? 1 : range, h;
	float r = (max - rgb[0]) / divisor, g = (max - rgb[1]) / divisor, b = (max - rgb[2]) / divisor;

	if (max == rgb[0])
		h = b - g;
	else if (max == rgb[1])
		h = 2 + r - b;
	else
		h = 4 + g - r;
	h = h / 6 + 1;
	return h >= 1 ? h - 1 : h;
}

static void
turn_f32(float *rgb, size_t pixels, float turn)
{
	for (size_t i = 0; i < pixels; i++, rgb += 3) {
		float max = rgb[0] > rgb[1] ? rgb[0] : rgb[1], min = rgb[0] < rgb[1] ? rgb[0] : rgb[1];
		float range, s, h, f, mix[4];
		int sextant;

		max = rgb[2] > max ? rgb[2] : max;
		min = rgb[2] < min ? rgb[2] : min;
		range = max - min;
		s = range == 0 ? 0 : range / max;
		h = hue_f32(rgb, max, range) + turn;
		h = (h < 0 ? h + 1 : h >= 1 ? h - 1 : h) * 6;
		/* Comparisons, because converting a NaN to int is undefined: it gets sextant 0. */
		sextant = (h >= 1) + (h >= 2) + (h >= 3) + (h >= 4) + (h >= 5) + (h >= 6);
		f = h - (float)sextant;
		mix[V] = max;
		mix[P] = within(max * (1 - s));
		mix[Q] = within(max * (1 - s * f));
		mix[T] = within(max * (1 - s * (1 - f)));
		for (int c = 0; c < 3; c++)
			rgb[c] = mix[sextants[sextant][c]];
	}
}

void
leat_adjust_hue(const struct leat_datum *image, float turn)
{
	size_t pixels = (size_t)image->shape[0] * (size_t)image->shape[1];

	if (image->shape[2] != 3)
		return;
	if (image->dtype == LEAT_U8)
		turn_u8(image->data, pixels, (uint8_t)(int)((double)turn * 255.0)); /* truncated, modulo 256 */
	else
		turn_f32(image->data, pixels, turn);
}
