/* pass.h - one image on its way through several ops, in as few passes over memory as there can be
 *
 * An op's part is not done when it is told, but when it has to be: at the end, or when what follows needs the pixels.
 * One pass reads a part of the source (of an encoded image only that part is decoded), resizes, turns or pads it, and,
 * while rows are at hand, cuts and mirrors the result, takes pointwise steps and converts it. Values are those of one
 * op after the other, in every bit; but for an encoded image that may be reduced (struct leat_decoding, `fast`): when a
 * part of it is resized, not by NEAREST, to half or less in both directions, it is decoded at 1/2, 1/4 or 1/8, the
 * smallest that leaves the part as large as the result. That depends on the size of the image and what was told, and on
 * nothing else.
 *
 * One thread. What it needs is taken from scratch; images on their way stay there until the sample is finished. */
#ifndef LEAT_IMAGE_PASS_H
#define LEAT_IMAGE_PASS_H

#include "image/move.h"
#include "image/view.h"

struct leat_pass {
	struct leat_scratch *scratch;
	struct leat_decode decode;
	bool decoding;           /* the source is encoded: no pixels yet */
	bool undecodable;        /* what failed was decoding */
	struct leat_view in;     /* the source; without `data` while it is encoded */
	struct leat_window part; /* of the source that counts */
	struct leat_move move;   /* what makes rows of it: NONE, CROP, RESIZE or ROTATE, */
	struct leat_sink sink;   /* and what becomes of the rows */
	unsigned passes;         /* over memory, so far */
	bool dry;                /* there are no pixels: told is all that it is; set after it began */
};

/* Begins with pixels, interleaved, which stay as they are. */
void leat_pass_image(struct leat_pass *pass, const struct leat_datum *image, struct leat_scratch *scratch);
/* Begins with an encoded image whose header was read; pass->decode was begun by the caller and is ended here. */
void leat_pass_encoded(struct leat_pass *pass, struct leat_scratch *scratch);

/* What the image is now. */
enum leat_dtype leat_pass_dtype(const struct leat_pass *pass);
void leat_pass_shape(const struct leat_pass *pass, int64_t *shape); /* three dims, in the order of its layout */

/* Parts of moves have to fit the image as it is now, which is interleaved. */
enum leat_status leat_pass_move(struct leat_pass *pass, const struct leat_move *move, struct leat_err *err);
enum leat_status leat_pass_step(struct leat_pass *pass, const struct leat_affine *step, int steps,
                                struct leat_err *err);
enum leat_status leat_pass_cast(struct leat_pass *pass, enum leat_dtype dtype, struct leat_err *err);
void leat_pass_layout(struct leat_pass *pass, enum leat_layout layout);
/* As leat_channel_means, of the image as it is now. */
enum leat_status leat_pass_means(struct leat_pass *pass, float *mean, struct leat_err *err);

/* Will a reduced image be decoded, if it is large enough? */
bool leat_pass_may_reduce(const struct leat_pass *pass);

/* Puts the image, as it is now, to `out`. */
enum leat_status leat_pass_end(struct leat_pass *pass, void *out, struct leat_err *err);
void leat_pass_drop(struct leat_pass *pass); /* instead, after a failure */

#endif
