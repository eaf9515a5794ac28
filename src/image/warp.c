/* warp.c - rotate, shift, scale and shear in one go, nearest neighbor: Pillow's affine transform with torchvision's
 * matrix
 *
 * The matrix maps the center of each output pixel to the input. Pillow steps through the input in fixed point with 16
 * fraction bits or, where the matrix is diagonal or coordinates are too large for that, in double. This does the same,
 * to pick the same pixels. */
#include "image/pixel.h"

#include <math.h>
#include <string.h>

static double
radians(double degrees)
{
	return degrees * (3.14159265358979323846 / 180);
}

/* The inverse of: shear along x, then y, scale and rotate about the center, then shift. */
static struct leat_map
inverse(const struct leat_warp *warp, double center_x, double center_y)
{
	double turn = radians(warp->degrees), shear_x = radians(warp->shear_x), shear_y = radians(warp->shear_y);
	double a = cos(turn - shear_y) / cos(shear_y), b = -(a * tan(shear_x) + sin(turn));
	double c = sin(turn - shear_y) / cos(shear_y), d = cos(turn) - c * tan(shear_x);
	struct leat_map map = {
		.xx = d / warp->scale, .xy = -b / warp->scale, .yx = -c / warp->scale, .yy = a / warp->scale};

	map.x0 = center_x - map.xx * (center_x + warp->dx) - map.xy * (center_y + warp->dy);
	map.y0 = center_y - map.yx * (center_x + warp->dx) - map.yy * (center_y + warp->dy);
	return map;
}

static bool
is_near(const struct leat_map *map, double x, double y)
{
	return fabs(map->xx * x + map->xy * y + map->x0) < 32768 && fabs(map->yx * x + map->yy * y + map->y0) < 32768;
}

static bool
fits_fixed(const struct leat_map *map, double width, double height)
{
	return is_near(map, 0, 0) && is_near(map, width, 0) && is_near(map, 0, height) && is_near(map, width, height);
}

static int64_t
fixed(double x)
{
	return (int64_t)floor(x * 65536 + 0.5);
}

static inline void
warp_fixed(const struct leat_datum *in, unsigned char *out, const struct leat_map *map, const void *fill, size_t pixel)
{
	const int64_t height = in->shape[0], width = in->shape[1];
	const int64_t xx = fixed(map->xx), xy = fixed(map->xy), yx = fixed(map->yx), yy = fixed(map->yy);
	const int64_t x0 = fixed(map->x0 + map->xx * 0.5 + map->xy * 0.5);
	const int64_t y0 = fixed(map->y0 + map->yx * 0.5 + map->yy * 0.5);
	const unsigned char *data = in->data;

	for (int64_t i = 0; i < height; i++) {
		for (int64_t j = 0; j < width; j++, out += pixel) {
			int64_t x = (x0 + i * xy + j * xx) >> 16, y = (y0 + i * yy + j * yx) >> 16;
			bool inside = x >= 0 && x < width && y >= 0 && y < height;

			memcpy(out, inside ? data + (size_t)(y * width + x) * pixel : fill, pixel);
		}
	}
}

/* Running sums, not products: their rounding decides ties between two pixels. */
static inline void
warp_double(const struct leat_datum *in, unsigned char *out, const struct leat_map *map, const void *fill, size_t pixel)
{
	const int64_t height = in->shape[0], width = in->shape[1];
	double x0 = map->x0 + map->xy * 0.5 + map->xx * 0.5, y0 = map->y0 + map->yy * 0.5 + map->yx * 0.5;
	const unsigned char *data = in->data;

	for (int64_t i = 0; i < height; i++, x0 += map->xy, y0 += map->yy) {
		double x = x0, y = y0;

		for (int64_t j = 0; j < width; j++, out += pixel, x += map->xx, y += map->yx) {
			bool inside = x >= 0 && x < (double)width && y >= 0 && y < (double)height;

			memcpy(out, inside ? data + (size_t)((int64_t)y * width + (int64_t)x) * pixel : fill, pixel);
		}
	}
}

void
leat_warp_by(const struct leat_datum *in, const struct leat_datum *out, const struct leat_map *map, float fill)
{
	const struct leat_pixel pixel = leat_pixel_of(fill, in->dtype);
	const bool straight = map->xy == 0 && map->yx == 0;

	if (straight || !fits_fixed(map, (double)in->shape[1], (double)in->shape[0]))
		warp_double(in, out->data, map, pixel.bytes, leat_pixel_bytes(in));
	else if (leat_pixel_bytes(in) == 3)
		warp_fixed(in, out->data, map, pixel.bytes, 3);
	else if (leat_pixel_bytes(in) == 12)
		warp_fixed(in, out->data, map, pixel.bytes, 12);
	else
		warp_fixed(in, out->data, map, pixel.bytes, leat_pixel_bytes(in));
}

void
leat_warp(const struct leat_datum *in, const struct leat_datum *out, const struct leat_warp *warp, float fill)
{
	const struct leat_map map = inverse(warp, (double)in->shape[1] * 0.5, (double)in->shape[0] * 0.5);

	leat_warp_by(in, out, &map, fill);
}

/* Pillow rounds to 15 digits, so quarter turns are exact. */
static double
rounded(double x)
{
	return rint(x * 1e15) / 1e15;
}

struct leat_map
leat_map_rotation(double degrees, int64_t height, int64_t width)
{
	double turn = fmod(degrees, 360), angle = -radians(turn < 0 ? turn + 360 : turn);
	double c = rounded(cos(angle)), s = rounded(sin(angle)), x = (double)width / 2, y = (double)height / 2;

	return (struct leat_map){
		.xx = c,
		.xy = s,
		.x0 = c * -x + s * -y + x,
		.yx = -s,
		.yy = c,
		.y0 = -s * -x + c * -y + y,
	};
}
