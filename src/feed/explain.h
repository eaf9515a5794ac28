/* explain.h - what the engine makes of a spec: which ops it joins, and where results go */
#ifndef LEAT_FEED_EXPLAIN_H
#define LEAT_FEED_EXPLAIN_H

#include "base/str.h"
#include "feed/pipeline.h"

/* A few lines: the ops that a sample goes through, those of one pass over memory on one line. Where it depends on an
 * image's size, it is what becomes of a large one. */
void leat_explain(const struct leat_pipeline *p, struct leat_str *out);

#endif
