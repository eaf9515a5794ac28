/* pipeline_compile.h - the steps of compiling a spec, in the order of leat_pipeline_open
 *
 * All run on the thread that opens the feed. Each step fills its part of the pipeline; leat_pipeline_close frees
 * everything, also after a failure. */
#ifndef LEAT_FEED_PIPELINE_COMPILE_H
#define LEAT_FEED_PIPELINE_COMPILE_H

#include "feed/pipeline.h"

/* Looks up the ops and sets their params. */
enum leat_status leat_bind_ops(struct leat_pipeline *p, struct leat_err *err);
/* Gives each `map` its function. */
enum leat_status leat_bind_functions(struct leat_pipeline *p, const struct leat_functions *functions,
                                     struct leat_err *err);
/* The same for the source. Does not open it. */
enum leat_status leat_bind_source(struct leat_pipeline *p, const struct leat_functions *functions,
                                  struct leat_err *err);
void leat_unbind(struct leat_pipeline *p); /* frees ops and source */

enum leat_status leat_compile_stages(struct leat_pipeline *p, struct leat_err *err);

void leat_assign_output_slots(struct leat_pipeline *p);

enum leat_status leat_identify(struct leat_pipeline *p, struct leat_err *err);

/* The op's call in the spec. */
static inline const struct leat_call *
leat_bound_call(const struct leat_pipeline *p, const struct leat_bound *bound)
{
	return &p->spec.call[1 + (bound - p->op)];
}

/* Fails with an op's error, prefixed with its name and with a caret under its call. */
enum leat_status leat_fail_in_op(const struct leat_pipeline *p, const struct leat_bound *bound,
                                 const struct leat_err *why, struct leat_err *err);

/* Maps field `i` after this stage to its number before it; -1: new field. */
int leat_stage_carries(const struct leat_stage *stage, int i);
/* Does this stage write field `i` (numbered after it) to new memory, rather than in place? */
bool leat_stage_writes_anew(const struct leat_stage *stage, int i);

#endif
