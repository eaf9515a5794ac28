/* view.h - kernels that read a part of an image and make rows for a sink; private to src/image
 *
 * Those of image.h are these with a sink that keeps all of it as it is. What the sink wants of the whole result is
 * all that is made. */
#ifndef LEAT_IMAGE_VIEW_H
#define LEAT_IMAGE_VIEW_H

#include "image/image.h"
#include "image/sink.h"

/* A part of an image whose sides may lie within pixels. */
struct leat_box {
	double top, left, height, width;
};

/* Pixels to read: an image or a part of one. */
struct leat_view {
	const unsigned char *data;
	size_t stride; /* bytes from row to row */
	/* Instead of both, where rows are used in order: those that are decoded when asked for. NULL: all are there. */
	struct leat_scan *rows;
	int64_t height, width;
	size_t channels;
	enum leat_dtype dtype;
	/* What leat_resize_to takes of it, though all pixels count that are read; not by NEAREST. 0 high: all of it. */
	struct leat_box box;
};

struct leat_view leat_view_of(const struct leat_datum *image, const struct leat_window *part); /* NULL: all of it */

static inline const unsigned char *
leat_view_row(const struct leat_view *in, size_t row)
{
	return in->rows ? leat_scan_row(in->rows, (int64_t)row) : in->data + row * in->stride;
}

/* What leat_decode_scan has to keep for it. `made`: the type of the sink's rows. */
struct leat_row_needs {
	int64_t keep;
	size_t behind;
};
struct leat_row_needs leat_resize_needs(const struct leat_view *in, int64_t height, int64_t width,
                                        const struct leat_resampling *how, enum leat_dtype made);

enum leat_status leat_resize_to(const struct leat_view *in, int64_t height, int64_t width,
                                const struct leat_resampling *how, const struct leat_sink *sink,
                                struct leat_scratch *scratch, struct leat_err *err);
/* The scratch keeps where pixels come from, for images of one size that are turned by one angle. NULL: does not. */
void leat_rotate_to(const struct leat_view *in, float radians, float fill, const struct leat_sink *sink,
                    struct leat_scratch *scratch);
/* Here the sink's part begins at (top, left) of the plane, and its own place is not looked at. */
void leat_crop_to(const struct leat_view *in, int64_t top, int64_t left, enum leat_border border, float fill,
                  const struct leat_sink *sink);

#endif
