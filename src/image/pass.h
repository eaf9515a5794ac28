/* pass.h - run several image ops in as few passes over the pixels as possible
 *
 * Adding an op to a pass only records what to do. Pixels are touched at the end, or earlier when an op needs them
 * (random_contrast needs the channel means). A pass decodes just the region it needs, resamples it, and crops, flips,
 * scales and converts each row while it is still in cache. The result is bit-identical to running the ops one by one.
 * The exception is decode(fast=true): when a resize other than NEAREST shrinks both sides to half or less, the JPEG is
 * decoded at 1/2, 1/4 or 1/8 size, the smallest that is not below the size of the result. That choice depends only on
 * the image size and the ops, never on timing or threads.
 *
 * Not thread-safe: one pass belongs to one worker. Buffers come from its scratch, and intermediate images stay there
 * until the sample is done. */
#ifndef LEAT_IMAGE_PASS_H
#define LEAT_IMAGE_PASS_H

#include "image/move.h"
#include "image/view.h"

struct leat_pass {
	struct leat_scratch *scratch;
	struct leat_decode decode;
	bool decoding;           /* the source is still encoded */
	bool undecodable;        /* decoding failed */
	struct leat_view in;     /* the source; no `data` while it is encoded */
	struct leat_window part; /* region of the source to read */
	struct leat_move move;   /* how rows are made of it: NONE, CROP, RESIZE or ROTATE */
	struct leat_sink sink;   /* how rows become the result */
	unsigned passes;         /* so far */
	bool dry;                /* only record, there are no pixels; set after leat_pass_image or _encoded */
};

/* Starts with interleaved pixels, which are not modified. */
void leat_pass_image(struct leat_pass *pass, const struct leat_datum *image, struct leat_scratch *scratch);
/* Starts with an encoded image. The caller has called leat_decode_begin on pass->decode; the pass ends it. */
void leat_pass_encoded(struct leat_pass *pass, struct leat_scratch *scratch);

/* Type and shape of the image after the ops so far. */
enum leat_dtype leat_pass_dtype(const struct leat_pass *pass);
void leat_pass_shape(const struct leat_pass *pass, int64_t *shape); /* 3 dims, in the order of the layout */

/* Add an op. A move is relative to the image after the ops so far, which has to be interleaved. */
enum leat_status leat_pass_move(struct leat_pass *pass, const struct leat_move *move, struct leat_err *err);
enum leat_status leat_pass_step(struct leat_pass *pass, const struct leat_affine *step, int steps,
                                struct leat_err *err);
enum leat_status leat_pass_cast(struct leat_pass *pass, enum leat_dtype dtype, struct leat_err *err);
void leat_pass_layout(struct leat_pass *pass, enum leat_layout layout);
/* As leat_channel_means, after the ops so far. Runs a pass. */
enum leat_status leat_pass_means(struct leat_pass *pass, float *mean, struct leat_err *err);

/* Will a large image be decoded at reduced size? */
bool leat_pass_may_reduce(const struct leat_pass *pass);

/* Runs what is left and writes the image to `out`. */
enum leat_status leat_pass_end(struct leat_pass *pass, void *out, struct leat_err *err);
void leat_pass_drop(struct leat_pass *pass); /* after a failure, instead of leat_pass_end */

#endif
