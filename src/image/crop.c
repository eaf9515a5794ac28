/* crop.c - cut out a rectangle, which may reach beyond the image: crop and pad
 *
 * Each output row is up to three pieces: pixels left of the image, a copy of the image's row, pixels right of it. */
#include "image/pixel.h"
#include "image/view.h"

#include <string.h>

/* Copies what is already there, doubling it until there are `count` pixels. */
static void
repeat_pixel(unsigned char *to, const void *pixel, size_t bytes, size_t count)
{
	size_t total = bytes * count, done = bytes;

	if (!count)
		return;
	memcpy(to, pixel, bytes);
	while (done < total) {
		size_t part = done < total - done ? done : total - done;

		memcpy(to + done, to, part);
		done += part;
	}
}

/* Pixels [from, to) of an output row, all outside the image; output pixel x is pixel x + left of the row. */
static void
copy_outside(const unsigned char *row, unsigned char *out, int64_t from, int64_t to, int64_t left, int64_t width,
             size_t bytes, enum leat_border border)
{
	for (int64_t x = from; x < to; x++)
		memcpy(out + (size_t)x * bytes, row + (size_t)leat_border_index(x + left, width, border) * bytes,
		       bytes);
}

static int64_t
clamp(int64_t x, int64_t limit)
{
	return x < 0 ? 0 : x > limit ? limit : x;
}

void
leat_crop_to(const struct leat_view *in, int64_t top, int64_t left, enum leat_border border, float fill,
             const struct leat_sink *sink)
{
	const struct leat_pixel pixel = leat_pixel_of(fill, in->dtype);
	const int64_t width = sink->part.width;
	const int64_t begin = clamp(-left, width), end = begin + clamp(in->width - left - begin, width - begin);
	const size_t bytes = in->channels * leat_dtype_size(in->dtype);

	for (int64_t y = 0; y < sink->part.height; y++, leat_sink_commit(sink, y - 1)) {
		int64_t from = leat_border_index(y + top, in->height, border);
		const unsigned char *row = in->data + (size_t)(from < 0 ? 0 : from) * in->stride;
		unsigned char *to = leat_sink_row(sink, y);

		if (from < 0) {
			repeat_pixel(to, pixel.bytes, bytes, (size_t)width);
			continue;
		}
		if (begin < end)
			memcpy(to + (size_t)begin * bytes, row + (size_t)(begin + left) * bytes,
			       (size_t)(end - begin) * bytes);
		if (border == LEAT_BORDER_CONSTANT) {
			repeat_pixel(to, pixel.bytes, bytes, (size_t)begin);
			repeat_pixel(to + (size_t)end * bytes, pixel.bytes, bytes, (size_t)(width - end));
		} else {
			copy_outside(row, to, 0, begin, left, in->width, bytes, border);
			copy_outside(row, to, end, width, left, in->width, bytes, border);
		}
	}
}
