/* pipeline_compile.h - the steps that make a pipeline of a spec, in the order leat_pipeline_open takes them
 *
 * The thread that opens the feed. Each fills its part of the pipeline; leat_pipeline_close frees what any of them took,
 * also when a later one fails. */
#ifndef LEAT_FEED_PIPELINE_COMPILE_H
#define LEAT_FEED_PIPELINE_COMPILE_H

#include "feed/pipeline.h"

/* Ops by name, each with its params filled from its arguments. */
enum leat_status leat_bind_ops(struct leat_pipeline *p, struct leat_err *err);
/* The source, likewise, without opening it. */
enum leat_status leat_bind_source(struct leat_pipeline *p, struct leat_err *err);
void leat_unbind(struct leat_pipeline *p); /* both */

enum leat_status leat_compile_stages(struct leat_pipeline *p, struct leat_err *err);

void leat_assign_output_slots(struct leat_pipeline *p);

enum leat_status leat_identify(struct leat_pipeline *p, struct leat_err *err);

/* The call in the spec that an op was made from. */
static inline const struct leat_call *
leat_bound_call(const struct leat_pipeline *p, const struct leat_bound *bound)
{
	return &p->spec.call[1 + (bound - p->op)];
}

/* Fails with what an op said, its name in front and a caret under its call. */
enum leat_status leat_fail_in_op(const struct leat_pipeline *p, const struct leat_bound *bound,
                                 const struct leat_err *why, struct leat_err *err);

/* Which field, as numbered before this stage, field `i` after it is; -1: it is new. */
int leat_stage_carries(const struct leat_stage *stage, int i);
/* Does this stage put field `i`, as numbered after it, into new memory? An op that works in place does not. */
bool leat_stage_writes_anew(const struct leat_stage *stage, int i);

#endif
