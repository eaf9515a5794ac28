/* explain.h - show how the engine runs a spec: which ops are fused, and where results go */
#ifndef LEAT_FEED_EXPLAIN_H
#define LEAT_FEED_EXPLAIN_H

#include "base/str.h"
#include "feed/pipeline.h"

/* Prints the ops in order, with ops that share a pass on one line. Choices that depend on the image size are shown for
 * a large image. */
void leat_explain(const struct leat_pipeline *p, struct leat_str *out);

#endif
