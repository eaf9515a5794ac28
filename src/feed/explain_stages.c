/* explain_stages.c - which ops of a stage share a pass, see explain.h
 *
 * To find out, the ops run dry on an image without pixels. That way the rules exist only once. */
#include "feed/explain.h"

/* Large enough for any usual crop. */
enum { NOMINAL_SIDE = 4096 };

/* Starts the pass with the first op, on a nominal image. */
static bool
begin_dry(const struct leat_stage *stage, struct leat_work *work, struct leat_pass *pass)
{
	const struct leat_bound *bound = stage->op[0];
	struct leat_datum image = {
		.data = pass, .dtype = stage->field[0].dtype, .ndim = 3, .shape = {NOMINAL_SIDE, NOMINAL_SIDE, 3}};
	struct leat_err ignored;

	if (bound->op->on_field.fuse.decode) {
		pass->decode = (struct leat_decode){
			.height = NOMINAL_SIDE,
			.width = NOMINAL_SIDE,
			.channels = 3,
			.reducible =
				bound->op->on_field.fuse.reduces && bound->op->on_field.fuse.reduces(bound->params),
		};
		leat_pass_encoded(pass, NULL);
		pass->dry = true;
		return true;
	}
	leat_pass_image(pass, &image, NULL);
	pass->dry = true;
	return leat_fuse_add(bound->op, bound->params, work, pass, &ignored) == LEAT_OK;
}

static bool
is_cropped(const struct leat_pass *pass)
{
	return pass->decoding && (pass->part.height < pass->in.height || pass->part.width < pass->in.width);
}

static void
explain_fused(const struct leat_stage *stage, void (*visit)(void *arg, const struct leat_explained_pass *pass),
              void *arg)
{
	struct leat_explained_pass found = {.op = stage->op};
	struct leat_work work = {.max_pixels = UINT64_MAX};
	struct leat_pass pass;
	struct leat_err ignored;
	bool accepted; /* until an op refuses the nominal image */

	leat_rng_init(&work.rng, 0, 0, 0, stage->op[0]->stream);
	accepted = begin_dry(stage, &work, &pass);
	found.ops = 1;
	for (int k = 1; k < stage->ops; k++) {
		const struct leat_bound *bound = stage->op[k];
		const unsigned before = pass.passes;

		found.cropped = is_cropped(&pass);
		found.reduced = leat_pass_may_reduce(&pass);
		leat_rng_init(&work.rng, 0, 0, 0, bound->stream);
		accepted = accepted && leat_fuse_add(bound->op, bound->params, &work, &pass, &ignored) == LEAT_OK;
		if (pass.passes != before) {
			visit(arg, &found);
			found = (struct leat_explained_pass){.op = stage->op + k};
		}
		found.ops++;
	}
	found.cropped = is_cropped(&pass);
	found.reduced = leat_pass_may_reduce(&pass);
	visit(arg, &found);
}

void
leat_explain_passes(const struct leat_stage *stage, void (*visit)(void *arg, const struct leat_explained_pass *pass),
                    void *arg)
{
	if (stage->fused && stage->ops > 1)
		explain_fused(stage, visit, arg);
	else
		visit(arg, &(struct leat_explained_pass){.op = stage->op, .ops = stage->ops});
}
