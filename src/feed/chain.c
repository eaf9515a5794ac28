/* chain.c - run a pipeline's stages on one sample
 *
 * Worker threads. Stages use only their read-only params and the worker's scratch: no locks,
 * no allocations. */
#include <string.h>

#include "base/clock.h"
#include "feed/pipeline.h"

static void
start_stream(struct leat_work *work, const struct leat_bound *bound, const struct leat_sample_id *id)
{
	if (bound->op->random)
		leat_rng_init(&work->rng, id->seed, id->epoch, id->position, bound->stream);
}

/* Copies borrowed memory before an op changes it in place. */
static enum leat_status
own(struct leat_work *work, int field, struct leat_err *err)
{
	struct leat_datum shared = work->sample->field[field];
	enum leat_status status;

	if (!shared.borrowed)
		return LEAT_OK;
	status = leat_work_out(work, field, shared.dtype, shared.ndim, shared.shape, err);
	if (status == LEAT_OK)
		memcpy(work->sample->field[field].data, shared.data, leat_datum_bytes(&shared));
	return status;
}

static int
channels_of(const struct leat_datum *datum, enum leat_layout layout)
{
	if (layout == LEAT_LAYOUT_NONE)
		return 1;
	return (int)(layout == LEAT_HWC ? datum->shape[datum->ndim - 1] : datum->shape[0]);
}

/* Adjacent pointwise ops on one field: each draws its random numbers, then one pass applies all of them in order. */
static enum leat_status
run_pointwise(const struct leat_stage *stage, struct leat_work *work, int field, enum leat_layout layout,
              const struct leat_sample_id *id, struct leat_err *err)
{
	struct leat_datum in = work->sample->field[field];
	struct leat_affine step[LEAT_MAX_FUSED * LEAT_MAX_AFFINE];
	enum leat_status status = LEAT_OK;
	int steps = 0;

	if (layout != LEAT_LAYOUT_NONE)
		status = leat_check_image(&in, layout, err);
	if (status != LEAT_OK)
		return status;
	for (int k = 0; k < stage->ops; k++) {
		start_stream(work, stage->op[k], id);
		steps += stage->op[k]->op->on_field.fuse.affine(stage->op[k]->params, &work->rng,
		                                                channels_of(&in, layout), &step[steps]);
	}
	if (in.dtype != LEAT_F32 || in.borrowed) {
		status = leat_work_out(work, field, LEAT_F32, in.ndim, in.shape, err);
		if (status != LEAT_OK)
			return status;
	}
	leat_affine_apply(&in, &work->sample->field[field], layout, step, steps);
	return LEAT_OK;
}

/* Fused ops: each adds its part to the pass, which processes the pixels as late as possible. */
static enum leat_status
run_fused(const struct leat_stage *stage, struct leat_work *work, int field, const struct leat_sample_id *id,
          struct leat_err *err)
{
	struct leat_pass pass;
	enum leat_status status;

	start_stream(work, stage->op[0], id);
	status = leat_fuse_begin(stage->op[0]->op, stage->op[0]->params, work, field, &pass, err);
	for (int k = 1; k < stage->ops && status == LEAT_OK; k++) {
		const struct leat_bound *bound = stage->op[k];

		work->op = k;
		start_stream(work, bound, id);
		status = leat_fuse_add(bound->op, bound->params, work, &pass, err);
	}
	if (status == LEAT_OK)
		status = leat_fuse_finish(&pass, work, field, err);
	if (pass.undecodable)
		work->op = 0;
	leat_pass_drop(&pass);
	return status;
}

static enum leat_status
run_on_field(const struct leat_stage *stage, struct leat_work *work, int k, const struct leat_sample_id *id,
             struct leat_err *err)
{
	int field = stage->field[k].number;

	work->layout = stage->field[k].layout;
	work->op = 0;
	if (stage->fused && stage->ops > 1)
		return run_fused(stage, work, field, id, err);
	if (stage->op[0]->op->kind == LEAT_OP_POINTWISE)
		return run_pointwise(stage, work, field, work->layout, id, err);
	/* Restart the stream for each field, so that an image and its mask get the same transform. */
	start_stream(work, stage->op[0], id);
	if (stage->op[0]->op->on_field.in_place) {
		enum leat_status status = own(work, field, err);

		if (status != LEAT_OK)
			return status;
	}
	return leat_op_run(stage->op[0]->op, stage->op[0]->params, work, field, err);
}

static enum leat_status
run_stage(const struct leat_stage *stage, struct leat_work *work, const struct leat_sample_id *id, struct leat_err *err)
{
	enum leat_status status = LEAT_OK;

	work->op = 0;
	if (stage->op[0]->op->on_fields.run) {
		start_stream(work, stage->op[0], id);
		status = stage->op[0]->op->on_fields.run(stage->op[0]->params, work, err);
		work->sample->count = stage->count;
	}
	for (int k = 0; k < stage->fields && status == LEAT_OK; k++)
		status = run_on_field(stage, work, k, id, err);
	return status;
}

enum leat_status
leat_chain_run(const struct leat_pipeline *p, int from, int to, struct leat_work *work, const struct leat_sample_id *id,
               uint64_t *stage_ns, struct leat_err *err)
{
	/* Cached results must not depend on the epoch in which they were made. */
	struct leat_sample_id frozen = {.seed = id->seed, .epoch = 0, .position = id->sample, .sample = id->sample};
	uint64_t begin = stage_ns ? leat_now() : 0;

	for (int s = from; s < to; s++) {
		const struct leat_sample_id *stage_id = p->cache && s < p->cached ? &frozen : id;
		enum leat_status status;

		work->stage = s;
		work->id = stage_id;
		status = run_stage(&p->stage[s], work, stage_id, err);
		if (status != LEAT_OK) {
			if (status != LEAT_LIMIT)
				leat_err_in(err, "%s", p->stage[s].op[work->op]->op->name);
			return status;
		}
		if (stage_ns) {
			uint64_t now = leat_now();

			stage_ns[s] += now - begin;
			begin = now;
		}
	}
	return LEAT_OK;
}
