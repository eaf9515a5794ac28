/* pipeline.h - a compiled spec: source, plan, chain of stages, batch
 *
 * Compiling (pipeline_compile.h) opens the source (and may index it), binds every op to its
 * fields, and decides which stage writes its result straight into the batch. Afterwards only
 * the plan's internal caches change, so workers share a pipeline without locks. */
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
	struct leat_strings fields; /* from `field=`; none: chosen by rule (pipeline_stages.c) */
};

/* A field that a stage works on, as it is before the stage. */
struct leat_stage_field {
	int number; /* in the sample */
	enum leat_layout layout;
	enum leat_dtype dtype;
};

/* One step of the chain: a single sample op, adjacent pointwise ops applied in one pass, or fused image ops (op.h), run
 * in as few passes as possible. */
struct leat_stage {
	const struct leat_bound *op[LEAT_MAX_FUSED];
	int ops;
	bool fused; /* fused image ops; more may be added */
	int fields; /* number of fields it works on */
	struct leat_stage_field *field;
	int count;                /* fields of the sample after this stage */
	int *output_slot;         /* by field after this stage: the batch field to write results to, if no later stage
	                             writes it to new memory; -1: scratch */
	struct leat_schema after; /* of samples after this stage; empty unless LEAT_BATCH_EXPLAINED */
};

/* Scratch for results of bounded size. */
struct leat_needs {
	size_t bytes;   /* for fixed shapes */
	unsigned times; /* for lists: multiple of the payload size */
};

/* Samples beyond these are bad. */
struct leat_limits {
	uint64_t pixels, bytes;
};

struct leat_pipeline {
	struct leat_mem *mem;
	struct leat_limits limits;
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
	int max_fields;            /* most fields that a sample has at any point */
	bool decodes;              /* some result sizes are not known in advance */
	bool converts;             /* some stage may change the element size */

	struct leat_needs scratch; /* for intermediate results */
	size_t op_scratch;         /* most that any op needs while it runs */
	size_t row_scratch;        /* most for rows between fused ops */

	bool in_processes;          /* some function runs in a process: samples are copied to it and back */
	struct leat_needs exchange; /* for the largest such copy */

	const struct leat_bound *cache;  /* NULL: none */
	int cached;                      /* number of stages before the cache */
	struct leat_schema cache_schema; /* of cached samples */
	bool cache_frozen;               /* random ops come before the cache */
	char cache_key[LEAT_SHA256_HEX];

	const struct leat_bound *mix[LEAT_MAX_OPS]; /* ops on whole batches, after `batch` */
	int mixes;
	int row_group; /* a rank's rows must be a multiple of this */

	struct leat_bulk *bulk; /* NULL: samples are made one by one (bulk.h) */
	struct leat_batch_params batch;
	int64_t prefetch; /* -1: chosen by the engine */

	char *canonical;            /* readable, with locations */
	char *identity;             /* for `hash`: without locations and hints, with versions */
	char hash[LEAT_SHA256_HEX]; /* of identity */
	char data[LEAT_SHA256_HEX]; /* the source's fingerprint */
	bool explained;             /* stages keep their schemas */
};

/* What the program gives: functions, for `map`, and a table, for `arrow`. */
struct leat_functions {
	const struct leat_function *one;
	size_t count;
	struct leat_arrow *arrow;
};

/* Must the spec have `batch`? Commands that look at single samples don't need it and get batches of 1. EXPLAINED:
 * optional, for explain.h, and stages keep the schema of samples after them. */
enum leat_batching { LEAT_BATCH_REQUIRED, LEAT_BATCH_OPTIONAL, LEAT_BATCH_EXPLAINED };

/* Initializes `p`. Frees everything on failure. `limits` NULL: none. `functions`, for `map`, may be NULL; `storage`
 * too, and outlives `p`. */
enum leat_status leat_pipeline_open(struct leat_pipeline *p, const char *spec, enum leat_batching batching,
                                    uint64_t seed, unsigned threads, const struct leat_limits *limits,
                                    const struct leat_functions *functions, const struct leat_storage *storage,
                                    struct leat_mem *mem, const struct leat_log *log, struct leat_err *err);
void leat_pipeline_close(struct leat_pipeline *p); /* a zeroed pipeline is allowed */

/* Appends an op with the value of every option: "resize(height=100, width=100, ...)". */
void leat_bound_print(const struct leat_bound *bound, struct leat_str *out);

/* Sets cache_key. */
enum leat_status leat_pipeline_cache_key(struct leat_pipeline *p, uint64_t seed, struct leat_err *err);

/* Runs stages [from, to) on work->sample, filled by the source or the cache. Worker threads. `stage_ns`, if not NULL,
 * adds up the time per stage. */
enum leat_status leat_chain_run(const struct leat_pipeline *p, int from, int to, struct leat_work *work,
                                const struct leat_sample_id *id, uint64_t *stage_ns, struct leat_err *err);

#endif
