/* move.h - where an image's pixels come from: what a geometry op does, told before it is done
 *
 * An op that tells what it would do can be joined with its neighbours (image/pass.h): what is cut away is never
 * decoded, and a flip costs nothing. */
#ifndef LEAT_IMAGE_MOVE_H
#define LEAT_IMAGE_MOVE_H

#include "image/image.h"

enum leat_move_kind {
	LEAT_MOVE_NONE,   /* the image stays as it is */
	LEAT_MOVE_CROP,   /* `part` of the plane, which goes on beyond the image as `border` and `fill` say */
	LEAT_MOVE_RESIZE, /* `part`, which lies within the image, at the size of `height` and `width` */
	LEAT_MOVE_FLIP,
	LEAT_MOVE_ROTATE, /* as leat_rotate_to */
};

struct leat_move {
	enum leat_move_kind kind;
	struct leat_window part;    /* CROP, RESIZE */
	int64_t height, width;      /* RESIZE */
	struct leat_resampling how; /* RESIZE */
	enum leat_flip flip;        /* FLIP */
	float radians;              /* ROTATE */
	enum leat_border border;    /* CROP */
	float fill;                 /* CROP, ROTATE */
};

#endif
