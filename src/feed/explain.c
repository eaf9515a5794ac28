/* explain.c - see explain.h
 *
 * To show which fused ops share a pass, the ops run dry on an image without pixels. That way the rules exist only once.
 */
#include "feed/explain.h"

#include <string.h>

/* Large enough for any usual crop. */
enum { NOMINAL_SIDE = 4096, COLUMN = 48 };

/* A line of output under construction: ops that share a pass. */
struct line {
	struct leat_str *out;
	size_t begin; /* start of the line in `out` */
	int ops;
	bool cropped, reduced;
};

static void
begin_line(struct line *line, struct leat_str *out)
{
	leat_str_add(out, "  ");
	*line = (struct line){.out = out, .begin = out->len};
}

static void
add_op(struct line *line, const struct leat_bound *bound)
{
	leat_str_addf(line->out, "%s%s", line->ops++ ? " + " : "", bound->op->name);
}

static void
end_line(struct line *line, bool final)
{
	size_t used = line->out->len - line->begin;
	const char *comma = "";

	leat_str_addf(line->out, "%*s", used < COLUMN ? (int)(COLUMN - used) : 1, "");
	if (line->ops > 1) {
		leat_str_add(line->out, "one pass");
		comma = ", ";
	}
	if (line->cropped || line->reduced) {
		leat_str_addf(line->out, "%sdecodes%s%s", comma, line->cropped ? " only the crop" : "",
		              line->reduced ? " at 1/2 to 1/8 size if enough" : "");
		comma = ", ";
	}
	if (final)
		leat_str_addf(line->out, "%sinto the batch", comma);
	while (line->out->len > line->begin && !line->out->failed && line->out->text[line->out->len - 1] == ' ')
		line->out->text[--line->out->len] = '\0';
	leat_str_add(line->out, "\n");
}

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
explain_fused(const struct leat_stage *stage, bool final, struct leat_str *out)
{
	struct leat_work work = {.max_pixels = UINT64_MAX};
	struct leat_pass pass;
	struct leat_err ignored;
	struct line line;
	bool accepted; /* until an op refuses the nominal image */

	leat_rng_init(&work.rng, 0, 0, 0, stage->op[0]->stream);
	begin_line(&line, out);
	add_op(&line, stage->op[0]);
	accepted = begin_dry(stage, &work, &pass);
	for (int k = 1; k < stage->ops; k++) {
		const struct leat_bound *bound = stage->op[k];
		const unsigned before = pass.passes;
		const bool cropped = is_cropped(&pass), reduced = leat_pass_may_reduce(&pass);

		leat_rng_init(&work.rng, 0, 0, 0, bound->stream);
		accepted = accepted && leat_fuse_add(bound->op, bound->params, &work, &pass, &ignored) == LEAT_OK;
		if (pass.passes != before) {
			line.cropped = cropped;
			line.reduced = reduced;
			end_line(&line, false);
			begin_line(&line, out);
		}
		add_op(&line, bound);
	}
	line.cropped = is_cropped(&pass);
	line.reduced = leat_pass_may_reduce(&pass);
	end_line(&line, final);
}

/* Does it write a field into the batch? */
static bool
is_final(const struct leat_stage *stage)
{
	for (int k = 0; k < stage->fields; k++)
		if (stage->output_slot[stage->field[k].number] >= 0)
			return true;
	return false;
}

static void
explain_stage(const struct leat_stage *stage, bool final, struct leat_str *out)
{
	struct line line;

	if (stage->fused && stage->ops > 1) {
		explain_fused(stage, final, out);
		return;
	}
	begin_line(&line, out);
	for (int k = 0; k < stage->ops; k++)
		add_op(&line, stage->op[k]);
	end_line(&line, final);
}

void
leat_explain(const struct leat_pipeline *p, struct leat_str *out)
{
	bool placed = false;

	leat_str_addf(out, "%s: %llu samples, %llu per epoch\n", p->source.kind->name,
	              (unsigned long long)p->source.count, (unsigned long long)p->plan.size);
	if (p->stages == 0)
		leat_str_add(out, "  samples are copied into the batch unchanged\n");
	for (int s = 0; s < p->stages; s++) {
		bool final = is_final(&p->stage[s]) && (!p->cache || s >= p->cached);

		if (p->cache && p->cached == s)
			leat_str_add(out, "  cache: the ops above run once per sample\n");
		/* Later stages work in place, in the batch. */
		explain_stage(&p->stage[s], final && !placed, out);
		placed |= final;
	}
	if (p->cache && p->cached == p->stages)
		leat_str_add(out, "  cache: the ops above run once per sample\n");
	for (int m = 0; m < p->mixes; m++)
		leat_str_addf(out, "  %s, on whole batches\n", p->mix[m]->op->name);
}
