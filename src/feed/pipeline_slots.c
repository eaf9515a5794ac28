/* pipeline_slots.c - decide which stage writes which field straight into the batch
 *
 * The last stage that writes a field to new memory writes it into the batch; earlier results go to scratch. */
#include <string.h>

#include "feed/pipeline_compile.h"

int
leat_stage_carries(const struct leat_stage *stage, int i)
{
	const struct leat_bound *bound = stage->op[0];

	if (bound->op->kind != LEAT_OP_FIELDS)
		return i;
	return bound->op->on_fields.carries && i < stage->count ? bound->op->on_fields.carries(bound->params, i) : -1;
}

bool
leat_stage_writes_anew(const struct leat_stage *stage, int i)
{
	const struct leat_op *op = stage->op[0]->op;

	if (op->kind == LEAT_OP_FIELDS)
		return leat_stage_carries(stage, i) < 0;
	for (int k = 0; k < stage->fields; k++)
		if (stage->field[k].number == i)
			return op->kind == LEAT_OP_POINTWISE ? stage->field[k].dtype != LEAT_F32
			                                     : !op->on_field.in_place;
	return false;
}

/* Walks back from the finished sample. Stages after the last one that writes a field to new memory work in place; they
 * get the slot too, for the copy they make of memory borrowed from a cache. */
void
leat_assign_output_slots(struct leat_pipeline *p)
{
	int final[LEAT_MAX_FIELDS];  /* maps fields after the current stage to batch fields, or -1 */
	int before[LEAT_MAX_FIELDS]; /* same, before the current stage */
	bool placed[LEAT_MAX_FIELDS] = {false};

	for (int i = 0; i < LEAT_MAX_FIELDS; i++)
		final[i] = i < p->schema.count ? i : -1;
	for (int s = p->stages - 1; s >= 0; s--) {
		struct leat_stage *stage = &p->stage[s];

		for (int i = 0; i < LEAT_MAX_FIELDS; i++)
			before[i] = -1;
		for (int i = 0; i < stage->count; i++) {
			stage->output_slot[i] = -1;
			if (final[i] < 0 || placed[final[i]])
				continue;
			stage->output_slot[i] = final[i];
			placed[final[i]] = leat_stage_writes_anew(stage, i);
		}
		for (int i = 0; i < stage->count; i++)
			if (leat_stage_carries(stage, i) >= 0)
				before[leat_stage_carries(stage, i)] = final[i];
		memcpy(final, before, sizeof final);
	}
}
