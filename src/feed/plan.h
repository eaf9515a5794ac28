/* plan.h - map positions to samples: a chain of plan ops over a source
 *
 * A pure function of (seed, epoch, position); op state only caches intermediate results.
 * Not thread-safe. */
#ifndef LEAT_FEED_PLAN_H
#define LEAT_FEED_PLAN_H

#include "op/op.h"

enum { LEAT_MAX_PLAN_OPS = 32 };

struct leat_plan {
	uint64_t size; /* positions per epoch; may be 0 */
	uint64_t seed;
	struct leat_mem *mem;
	int ops;
	struct leat_plan_step {
		const struct leat_op *op;
		const void *params; /* borrowed */
		struct leat_plan_in in;
		void *state;
	} op[LEAT_MAX_PLAN_OPS];
	size_t files;
	const uint64_t *first; /* borrowed from the source */
};

/* A plan without ops: position i is sample i. `first` as in struct leat_source, borrowed. */
void leat_plan_init(struct leat_plan *plan, uint64_t count, const uint64_t *first, size_t files, uint64_t seed,
                    struct leat_mem *mem);
/* Appends an op. `stream` selects its random stream. */
enum leat_status leat_plan_add(struct leat_plan *plan, const struct leat_op *op, const void *params, uint64_t stream,
                               struct leat_err *err);
void leat_plan_free(struct leat_plan *plan);
void leat_plan_reseed(struct leat_plan *plan, uint64_t seed);

/* Can a sample occur more than once per epoch? */
bool leat_plan_repeats(const struct leat_plan *plan);

/* How many positions in a row have most neighbours of a sample. 1: the order of the source is kept, though samples may
 * be left out or repeated. 0: neighbours are anywhere. */
uint64_t leat_plan_spread(const struct leat_plan *plan);

/* If the last op that changes the order shuffles blocks, and samples come before it in the order of the source, each at
 * most once: how they are grouped. */
struct leat_plan_blocks {
	uint64_t block, blocks; /* samples of a block, and blocks of a group, at most */
	uint64_t samples;       /* of a group, at most */
	double span; /* samples of the source from the first to the last of a block, for each that is in it */
	double used; /* share of a group that the plan has: the rest is skipped */
	const struct leat_plan_step *step;
};
/* False: it is another plan. */
bool leat_plan_find_blocks(const struct leat_plan *plan, struct leat_plan_blocks *blocks);
/* The group of a position, and in *end the first position after it that is in another one, or the size of the plan. */
void leat_plan_group_at(const struct leat_plan *plan, const struct leat_plan_blocks *blocks, uint64_t epoch,
                        uint64_t position, struct leat_plan_group *group, uint64_t *end);
/* The first and the last sample of a group's block `k`. */
void leat_plan_block(const struct leat_plan *plan, const struct leat_plan_blocks *blocks,
                     const struct leat_plan_group *group, uint64_t k, uint64_t *first, uint64_t *last);

/* The sample at `position` (< size) of `epoch`. */
uint64_t leat_plan_at(struct leat_plan *plan, uint64_t epoch, uint64_t position);
/* The same for many: each of `at`, a position, becomes its sample. */
void leat_plan_many(struct leat_plan *plan, uint64_t epoch, uint64_t *at, size_t count);

#endif
