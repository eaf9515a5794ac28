/* view.h - kernels that read a region of an image and write rows to a sink; private to src/image
 *
 * A kernel makes only the part of its result that the sink asks for. */
#ifndef LEAT_IMAGE_VIEW_H
#define LEAT_IMAGE_VIEW_H

#include "image/image.h"
#include "image/sink.h"

/* A rectangle with fractional coordinates. */
struct leat_box {
	double top, left, height, width;
};

/* Pixels to read: an image or a region of one. */
struct leat_view {
	const unsigned char *data;
	size_t stride; /* bytes from row to row */
	/* Not NULL: rows are decoded on demand, in place of the two above. For kernels that read rows in order. */
	struct leat_scan *rows;
	int64_t height, width;
	size_t channels;
	enum leat_dtype dtype;
	/* What leat_resize_to resizes, but for NEAREST; filters still read pixels outside it. Height 0: everything. */
	struct leat_box box;
};

struct leat_view leat_view_of(const struct leat_datum *image, const struct leat_window *part); /* NULL: the image */

static inline const unsigned char *
leat_view_row(const struct leat_view *in, size_t row)
{
	return in->rows ? leat_scan_row(in->rows, (int64_t)row) : in->data + row * in->stride;
}

/* The arguments of leat_decode_scan for leat_resize_to. `row_dtype`: see struct leat_sink. */
struct leat_row_needs {
	int64_t keep;
	size_t padding;
};
struct leat_row_needs leat_resize_needs(const struct leat_view *in, int64_t height, int64_t width,
                                        const struct leat_resampling *how, enum leat_dtype row_dtype);

enum leat_status leat_resize_to(const struct leat_view *in, int64_t height, int64_t width,
                                const struct leat_resampling *how, const struct leat_sink *sink,
                                struct leat_scratch *scratch, struct leat_err *err);
/* As tfa.image.rotate with nearest: counter-clockwise by `radians` about the center, the size stays. Pixels that come
 * from outside `in` become `fill`. u8 or f32. The scratch keeps where pixels come from, for images of one size that are
 * rotated by one angle; NULL: nothing is kept. */
void leat_rotate_to(const struct leat_view *in, float radians, float fill, const struct leat_sink *sink,
                    struct leat_scratch *scratch);
/* The rectangle whose top left corner is (top, left) of `in`, which may be negative, and whose size is that of the
 * sink's part; where that part begins does not matter. u8 or f32. */
void leat_crop_to(const struct leat_view *in, int64_t top, int64_t left, enum leat_border border, float fill,
                  const struct leat_sink *sink);

#endif
