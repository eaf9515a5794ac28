/* pipeline.h - a compiled spec: source, plan, chain of stages, batch
 *
 * Compiling (pipeline_compile.h) opens the source, which may index it, binds every op to the
 * fields it works on and decides which stage writes its result straight into the batch.
 * Afterwards only the plan's caches change: workers share a pipeline without locks. */
#ifndef LEAT_FEED_PIPELINE_H
#define LEAT_FEED_PIPELINE_H

#include "feed/plan.h"
#include "feed/spec.h"
#include "format/source.h"
#include "op/batch.h"
#include "op/cache.h"
#include "op/op.h"

enum { LEAT_MAX_OPS = 64, LEAT_MAX_FUSED = 16 };

/* One op of the spec with its options. */
struct leat_bound {
	const struct leat_op *op;
	void *params;
	uint64_t stream;
	struct leat_strings fields; /* that `field=` names; none: the op's own choice */
};

/* A field that a stage works on, as it is when the stage begins. */
struct leat_stage_field {
	int number; /* in the sample */
	enum leat_layout layout;
	enum leat_dtype dtype;
};

/* One step of the chain: a single sample op, neighbouring pointwise ops applied in one pass, or fused ops on an image
 * (op.h), run in as few passes as possible. */
struct leat_stage {
	const struct leat_bound *op[LEAT_MAX_FUSED];
	int ops;
	bool fused; /* of the last kind: more ops may be fused */
	int fields; /* it works on */
	struct leat_stage_field *field;
	int count;        /* fields of the sample when it is done */
	int *output_slot; /* by field when it is done: the final field whose slot new memory is, because no later
	                     stage writes it anew; or -1: scratch */
};

/* Scratch for results of which the size can be bounded. */
struct leat_needs {
	size_t bytes;   /* of fixed shapes */
	unsigned times; /* lists: so many times the payload */
};

struct leat_pipeline {
	struct leat_mem *mem;
	struct leat_spec spec; /* params point into it */
	struct leat_source source;
	const struct leat_source_kind *source_kind;
	void *source_params;
	bool source_open;
	struct leat_plan plan;

	struct leat_bound op[LEAT_MAX_OPS]; /* all ops, in spec order */
	int ops;
	struct leat_stage stage[LEAT_MAX_OPS];
	int stages;
	struct leat_schema schema; /* of a finished sample */
	int max_fields;            /* that a sample has before or after any stage */
	bool decodes;              /* has a stage whose result's size is not known beforehand */
	bool converts;             /* has a stage that may change the size of an element */

	struct leat_needs scratch; /* for results that are not the last of their field */
	size_t op_scratch;         /* the most that one op needs for itself while it runs */
	size_t row_scratch;        /* the most that rows between fused ops need */

	const struct leat_bound *cache;  /* NULL: none */
	int cached;                      /* stages that come before it, their results are what is kept */
	struct leat_schema cache_schema; /* of what is kept */
	bool cache_frozen;               /* random ops come before it */
	char cache_key[LEAT_SHA256_HEX];

	const struct leat_bound *mix[LEAT_MAX_OPS]; /* ops on whole batches, after `batch` */
	int mixes;
	int row_group; /* ranks take multiples of as many rows */

	struct leat_batch_params batch;
	int64_t prefetch; /* -1: chosen by the engine */

	char *canonical;            /* with locations, for people */
	char *identity;             /* without locations and hints, with versions: what the hash covers */
	char hash[LEAT_SHA256_HEX]; /* of identity */
	char data[LEAT_SHA256_HEX]; /* the source's fingerprint */
};

/* Has a spec to say `batch`? Commands that look at single samples do without: they get batches of 1. */
enum leat_batching { LEAT_BATCH_REQUIRED, LEAT_BATCH_OPTIONAL };

/* Zeroes and fills `p`; frees what it took when it fails. */
enum leat_status leat_pipeline_open(struct leat_pipeline *p, const char *spec, enum leat_batching batching,
                                    uint64_t seed, unsigned threads, struct leat_mem *mem, const struct leat_log *log,
                                    struct leat_err *err);
void leat_pipeline_close(struct leat_pipeline *p); /* takes a zeroed pipeline */

/* Sets cache_key. */
enum leat_status leat_pipeline_cache_key(struct leat_pipeline *p, uint64_t seed, struct leat_err *err);

/* What the chain needs to know of the sample it runs on. */
struct leat_sample_id {
	uint64_t seed, epoch, position;
	uint64_t sample; /* its number in the source */
};

/* Runs stages `from` up to, not including, `to` on work->sample, which the source, or a cache, has filled. Worker
 * threads. With `stage_ns` the time of each stage is added to it. */
enum leat_status leat_chain_run(const struct leat_pipeline *p, int from, int to, struct leat_work *work,
                                const struct leat_sample_id *id, uint64_t *stage_ns, struct leat_err *err);

#endif
