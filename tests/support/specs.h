/* specs.h - pipelines drawn at random from all sources and the op tables
 *
 * Ops are taken from leat_ops[] and their options from their own tables, so that a new op
 * is drawn without a change here; sources.h has the sources. One thread. */
#ifndef TEST_SPECS_H
#define TEST_SPECS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/rng.h"
#include "op/op.h"
#include "sources.h"

enum { SPECS_MAX_OPS = 256 };

struct specs {
	struct leat_rng rng;
	struct sources *sources;      /* that specs begin with; borrowed */
	size_t source;                /* of the last spec */
	uint64_t max_size;            /* of an epoch */
	unsigned used[SPECS_MAX_OPS]; /* by place in leat_ops: in how many specs */
	uint64_t size;                /* of the last spec's epoch */
	bool unbounded;               /* it gives images of any size: no memory is known to be enough */
	char text[4096];              /* the last spec, without prefetch */
};

void specs_init(struct specs *specs, struct sources *sources, uint64_t seed, uint64_t max_size);
/* Draws a pipeline into specs->text. */
void specs_draw(struct specs *specs);
/* Ends what was drawn with batch(size) and ops that work on batches, where some fit. */
void specs_batch(struct specs *specs, unsigned size);
/* Every source, and every op that works on samples or their order, was drawn; prints how often. */
void specs_check_drawn(const struct specs *specs);
unsigned specs_below(struct specs *specs, unsigned n);

#endif
