/* run.c - run a sample op, alone or fused with others into one pass over an image
 *
 * Worker threads: no locks, and no allocation except scratch. */
#include "op/op.h"

#include <inttypes.h>

bool
leat_op_can_fuse(const struct leat_op *op)
{
	const struct leat_fusion *fuse = &op->on_field.fuse;

	return fuse->decode || fuse->move || fuse->affine || fuse->affine_about || fuse->convert;
}

/* An in-place op is cheaper alone than as the start of a pass. */
bool
leat_op_can_start_fusion(const struct leat_op *op, enum leat_dtype dtype, enum leat_layout layout)
{
	const struct leat_fusion *fuse = &op->on_field.fuse;

	if (fuse->decode)
		return true;
	return layout == LEAT_HWC && ((fuse->move && !op->on_field.in_place) || (fuse->affine && dtype == LEAT_U8));
}

static enum leat_status
add_affine_about(const struct leat_fusion *fuse, const void *params, struct leat_work *work, struct leat_pass *pass,
                 struct leat_err *err)
{
	struct leat_affine step[LEAT_MAX_AFFINE];
	float mean[LEAT_MAX_CHANNELS];
	enum leat_status status = leat_pass_means(pass, mean, err);
	int channels = (int)pass->sink.channels;

	if (status != LEAT_OK)
		return status;
	return leat_pass_step(pass, step, fuse->affine_about(params, &work->rng, mean, channels, step), err);
}

static enum leat_status
add_conversion(const struct leat_fusion *fuse, const void *params, struct leat_pass *pass, struct leat_err *err)
{
	enum leat_dtype before = leat_pass_dtype(pass), dtype = before;
	enum leat_layout layout = pass->sink.planar ? LEAT_CHW : LEAT_HWC;

	fuse->convert(params, &dtype, &layout);
	leat_pass_layout(pass, layout);
	return dtype == before ? LEAT_OK : leat_pass_cast(pass, dtype, err);
}

/* An image of 1 x 1000 pixels may become a very large one. */
static enum leat_status
check_size(const struct leat_work *work, const int64_t *shape, const struct leat_move *move, struct leat_err *err)
{
	if ((uint64_t)move->height <= work->max_pixels / (uint64_t)move->width)
		return LEAT_OK;
	return leat_fail(err, LEAT_DATA,
	                 "an image of %" PRId64 " x %" PRId64 " pixels would become %" PRId64 " x %" PRId64
	                 ", more than max_pixels=%" PRIu64 " allows",
	                 shape[1], shape[0], move->width, move->height, work->max_pixels);
}

enum leat_status
leat_fuse_add(const struct leat_op *op, const void *params, struct leat_work *work, struct leat_pass *pass,
              struct leat_err *err)
{
	const struct leat_fusion *fuse = &op->on_field.fuse;
	struct leat_affine step[LEAT_MAX_AFFINE];
	struct leat_move move;
	enum leat_status status;
	int64_t shape[3];

	if (fuse->affine)
		return leat_pass_step(pass, step, fuse->affine(params, &work->rng, (int)pass->sink.channels, step),
		                      err);
	if (fuse->affine_about)
		return add_affine_about(fuse, params, work, pass, err);
	if (fuse->convert)
		return add_conversion(fuse, params, pass, err);
	leat_pass_shape(pass, shape);
	status = fuse->move(params, &work->rng, shape, &move, err);
	if (status == LEAT_OK && move.by_aspect)
		status = check_size(work, shape, &move, err);
	return status == LEAT_OK ? leat_pass_move(pass, &move, err) : status;
}

enum leat_status
leat_fuse_begin(const struct leat_op *op, const void *params, struct leat_work *work, int field, struct leat_pass *pass,
                struct leat_err *err)
{
	const struct leat_datum *datum = &work->sample->field[field];
	enum leat_status status;

	pass->decoding = pass->undecodable = false;
	if (op->on_field.fuse.decode) {
		status = op->on_field.fuse.decode(params, datum, work, &pass->decode, err);
		if (status == LEAT_OK)
			leat_pass_encoded(pass, work->scratch);
		return status;
	}
	status = leat_check_image(datum, LEAT_HWC, err);
	if (status != LEAT_OK)
		return status;
	leat_pass_image(pass, datum, work->scratch);
	return leat_fuse_add(op, params, work, pass, err);
}

enum leat_status
leat_fuse_finish(struct leat_pass *pass, struct leat_work *work, int field, struct leat_err *err)
{
	enum leat_status status;
	int64_t shape[3];

	leat_pass_shape(pass, shape);
	status = leat_work_out(work, field, leat_pass_dtype(pass), 3, shape, err);
	if (status == LEAT_OK)
		status = leat_pass_end(pass, work->sample->field[field].data, err);
	return status;
}

/* ---- unfused ---- */

static enum leat_status
run_move_in_place(const struct leat_op *op, const void *params, struct leat_work *work, struct leat_datum *image,
                  struct leat_err *err)
{
	struct leat_move move;
	enum leat_status status = op->on_field.fuse.move(params, &work->rng, image->shape, &move, err);

	if (status == LEAT_OK && move.kind == LEAT_MOVE_FLIP)
		leat_flip(image, move.flip);
	return status;
}

static enum leat_status
run_about_in_place(const struct leat_op *op, const void *params, struct leat_work *work, struct leat_datum *image,
                   struct leat_err *err)
{
	struct leat_affine step[LEAT_MAX_AFFINE];
	float mean[LEAT_MAX_CHANNELS];
	enum leat_status status = leat_check_image(image, LEAT_HWC, err);

	if (status != LEAT_OK)
		return status;
	leat_channel_means(image, mean);
	leat_affine_apply(image, image, LEAT_HWC, step,
	                  op->on_field.fuse.affine_about(params, &work->rng, mean, (int)image->shape[2], step));
	return LEAT_OK;
}

enum leat_status
leat_op_run(const struct leat_op *op, const void *params, struct leat_work *work, int field, struct leat_err *err)
{
	struct leat_datum *datum = &work->sample->field[field];
	struct leat_pass pass;
	enum leat_status status;

	if (op->on_field.run)
		return op->on_field.run(params, work, field, err);
	if (op->on_field.fuse.move && op->on_field.in_place)
		return run_move_in_place(op, params, work, datum, err);
	if (op->on_field.fuse.affine_about)
		return run_about_in_place(op, params, work, datum, err);
	status = leat_fuse_begin(op, params, work, field, &pass, err);
	if (status == LEAT_OK)
		status = leat_fuse_finish(&pass, work, field, err);
	leat_pass_drop(&pass);
	return status;
}
