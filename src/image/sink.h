/* sink.h - where rows of pixels go that a kernel makes; private to src/image
 *
 * A kernel makes one row after the other, each in the memory that leat_sink_line gives, and hands it over with
 * leat_sink_take while it is in the first-level cache. On its way to the result the row is mirrored, goes through
 * pointwise steps and is converted to the type and the order of channels that are wanted. A row that needs nothing of
 * this is made where it stays. */
#ifndef LEAT_IMAGE_SINK_H
#define LEAT_IMAGE_SINK_H

#include "image/affine.h"
#include "image/image.h"

enum { LEAT_SINK_STEPS = 16 };

struct leat_sink {
	/* Set by the caller: */
	struct leat_window part;  /* of the image that the kernel would make: only this is made */
	bool mirror, upside_down; /* of that part, left and right, top and bottom change places */
	size_t channels;          /* interleaved */
	enum leat_dtype made;     /* type of the rows that come, u8 or f32 */
	bool floats;              /* they become f32; true with steps */
	int steps;
	struct leat_affine step[LEAT_SINK_STEPS];
	enum leat_dtype dtype; /* of the result */
	bool planar;           /* the result's channels come one behind the other */
	unsigned char *out;
	/* Private: */
	bool straight; /* rows need nothing */
	unsigned char *line, *other;
	struct leat_affine_spread *spread;
};

/* Takes its lines from scratch. */
enum leat_status leat_sink_open(struct leat_sink *sink, struct leat_scratch *scratch, struct leat_err *err);
size_t leat_sink_scratch(int64_t width); /* the most that takes */

/* Where to make row `y` of the part, part.width pixels and no more. */
void *leat_sink_line(const struct leat_sink *sink, int64_t y);
void leat_sink_take(const struct leat_sink *sink, int64_t y);
/* The same for a row that lies elsewhere and is not changed. */
void leat_sink_copy(const struct leat_sink *sink, int64_t y, const void *row);

/* The same for all rows, `stride` bytes apart. */
void leat_sink_copy_all(const struct leat_sink *sink, const unsigned char *rows, size_t stride);

/* For a kernel that makes rows mirrored by itself. */
void leat_sink_gets_mirrored(struct leat_sink *sink);

/* All of `image`, which is HWC, as it is. */
struct leat_sink leat_sink_for(const struct leat_datum *image);

#endif
