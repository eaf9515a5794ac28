/* move.h - what a geometry op does to an image, as a description
 *
 * An op that describes its effect instead of applying it can be fused with its neighbors (image/pass.h): pixels outside
 * a crop are never decoded, and a flip is free. */
#ifndef LEAT_IMAGE_MOVE_H
#define LEAT_IMAGE_MOVE_H

#include "image/image.h"

enum leat_move_kind {
	LEAT_MOVE_NONE,   /* no change */
	LEAT_MOVE_CROP,   /* cut out `part`, which may reach outside the image: see `border` and `fill` */
	LEAT_MOVE_RESIZE, /* resize `part`, which is inside the image, to `height` and `width` */
	LEAT_MOVE_FLIP,
	LEAT_MOVE_ROTATE, /* as leat_rotate_to */
};

struct leat_move {
	enum leat_move_kind kind;
	struct leat_window part;    /* CROP, RESIZE */
	int64_t height, width;      /* RESIZE */
	bool by_aspect;             /* RESIZE: height and width follow from the image's, so the data decides them */
	struct leat_resampling how; /* RESIZE */
	enum leat_flip flip;        /* FLIP */
	float radians;              /* ROTATE */
	enum leat_border border;    /* CROP */
	float fill;                 /* CROP, ROTATE */
};

#endif
