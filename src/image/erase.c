/* erase.c - overwrite a rectangle of an image */
#include "image/pixel.h"

#include <string.h>

static unsigned char *
pixel_at(const struct leat_datum *image, int64_t y, int64_t x)
{
	return (unsigned char *)image->data + (size_t)(y * image->shape[1] + x) * leat_pixel_bytes(image);
}

void
leat_erase(const struct leat_datum *image, const struct leat_window *part, const float *value)
{
	const size_t bytes = leat_pixel_bytes(image);
	struct leat_pixel pixel;

	leat_cast(value, LEAT_F32, pixel.bytes, image->dtype, (size_t)image->shape[2]);
	for (int64_t y = 0; y < part->height; y++) {
		unsigned char *to = pixel_at(image, part->top + y, part->left);

		for (int64_t x = 0; x < part->width; x++, to += bytes)
			memcpy(to, pixel.bytes, bytes);
	}
}

void
leat_erase_noise(const struct leat_datum *image, const struct leat_window *part, struct leat_rng *rng)
{
	for (int64_t y = 0; y < part->height; y++)
		leat_rng_normals(rng, (void *)pixel_at(image, part->top + y, part->left),
		                 (size_t)(part->width * image->shape[2]));
}
