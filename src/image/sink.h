/* sink.h - where a kernel writes rows of pixels; private to src/image
 *
 * A kernel makes one row after another, each in the buffer that leat_sink_row returns, and hands it over with
 * leat_sink_commit while it is in the L1 cache. The sink mirrors the row, runs the pointwise steps, and converts it to
 * the type and layout of the result. If there is nothing to do, the kernel writes straight to the result. */
#ifndef LEAT_IMAGE_SINK_H
#define LEAT_IMAGE_SINK_H

#include "image/affine.h"
#include "image/image.h"

enum { LEAT_SINK_STEPS = 16 };

struct leat_sink {
	/* Set by the caller: */
	struct leat_window part;  /* region of the kernel's result to make */
	bool mirror, upside_down; /* flip that region horizontally, vertically */
	size_t channels;
	enum leat_dtype row_dtype; /* of the rows the kernel makes, which are interleaved */
	bool floats;               /* convert to f32 before the cast to `dtype`; true with steps */
	int steps;
	struct leat_affine step[LEAT_SINK_STEPS];
	enum leat_dtype dtype; /* of the result */
	bool planar;           /* the result is CHW */
	unsigned char *out;
	/* Private: */
	bool direct; /* rows are the result as they are */
	unsigned char *row_buffer, *spare;
	struct leat_affine_spread *spread;
};

/* Takes row buffers from scratch, up to leat_sink_scratch bytes. */
enum leat_status leat_sink_open(struct leat_sink *sink, struct leat_scratch *scratch, struct leat_err *err);
size_t leat_sink_scratch(int64_t width);

/* The buffer for row `y` of the region, part.width pixels; then hand the row over. */
void *leat_sink_row(const struct leat_sink *sink, int64_t y);
void leat_sink_commit(const struct leat_sink *sink, int64_t y);
/* Hands over a row from other memory, which is not modified. */
void leat_sink_write(const struct leat_sink *sink, int64_t y, const void *row);

/* Hands over all rows, `stride` bytes apart. */
void leat_sink_write_all(const struct leat_sink *sink, const unsigned char *rows, size_t stride);

/* For a kernel that mirrors rows itself. */
void leat_sink_rows_are_mirrored(struct leat_sink *sink);

/* A sink that stores all rows in `image`, HWC, unchanged. */
struct leat_sink leat_sink_for(const struct leat_datum *image);

#endif
