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
	LEAT_MOVE_ROTATE, /* as leat_rotate */
	LEAT_MOVE_WARP,   /* as leat_warp */
};

struct leat_move {
	enum leat_move_kind kind;
	struct leat_window part;    /* CROP, RESIZE */
	int64_t height, width;      /* RESIZE */
	struct leat_resampling how; /* RESIZE */
	enum leat_flip flip;        /* FLIP */
	float radians;              /* ROTATE */
	struct leat_warp warp;      /* WARP */
	enum leat_border border;    /* CROP */
	float fill;                 /* CROP, ROTATE, WARP */
};

/* What an image of `height` x `width` becomes; for a crop the plane's part, for the others what they say. */
static inline void
leat_move_size(const struct leat_move *move, int64_t *height, int64_t *width)
{
	if (move->kind == LEAT_MOVE_CROP) {
		*height = move->part.height;
		*width = move->part.width;
	} else if (move->kind == LEAT_MOVE_RESIZE) {
		*height = move->height;
		*width = move->width;
	}
}

#endif
