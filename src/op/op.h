/* op.h - what an op is
 *
 * An op adds one file, src/op/NAME.c, that defines `const struct leat_op leat_op_NAME`;
 * the build collects the table. Nothing else is edited. Two kinds (docs/PLAN.md):
 *
 *  - a *sample op* turns a sample into a sample. It is a pure function of its params,
 *    the sample and its random stream, called by all workers at once.
 *  - a *plan op* maps output positions to input positions. Called by one thread at a time.
 *
 * `version` is part of the pipeline's hash: bump it whenever the output changes. */
#ifndef LEAT_OP_OP_H
#define LEAT_OP_OP_H

#include "base/opt.h"
#include "base/rng.h"
#include "format/sample.h"
#include "image/affine.h"
#include "image/pass.h"

enum leat_op_kind {
	LEAT_OP_DECODE,     /* bytes -> image */
	LEAT_OP_GEOMETRY,   /* moves or resamples pixels */
	LEAT_OP_POINTWISE,  /* each element x becomes mul * x + add */
	LEAT_OP_STATISTICS, /* looks at the whole image first */
	LEAT_OP_COLOR,      /* changes what pixels look like, in more ways than POINTWISE can */
	LEAT_OP_FIELDS,     /* works on the set of fields: `on_fields` */
	LEAT_OP_CONVERT,    /* same values, other type or order: cast, layout */
	LEAT_OP_PLAN,       /* maps positions: `on_plan` */
	LEAT_OP_BATCH,      /* ends the sample chain; the engine reads its params (op/batch.h) */
	LEAT_OP_MIX,        /* works on whole batches, after `batch`: `on_batch` */
	LEAT_OP_CACHE,      /* keeps samples as they are here; the engine reads its params (op/cache.h) */
	LEAT_OP_HINT,       /* changes speed only: stays out of the pipeline's hash */
};

/* The steps that one pointwise op may take. */
enum { LEAT_MAX_AFFINE = 2 };

/* What a sample op has while it runs: one per worker thread. */
struct leat_work {
	struct leat_sample *sample;
	struct leat_scratch *scratch; /* memory until the sample is finished */
	struct leat_rng rng;          /* this op's stream for this sample; the same for each of its fields */
	size_t max_pixels;            /* that decode may produce */
	enum leat_layout layout;      /* of the field that `run` gets */
	/* The engine's: */
	void *(*output_slot)(struct leat_work *work, int field,
	                     size_t bytes); /* where a final result goes; NULL: scratch */
	void *output_slot_arg;
	int stage; /* of the chain that runs */
	int op;    /* of the stage's ops, the one that runs */
};

/* A new buffer for field `field`, described by dtype and shape: the batch's slot when this op is the
 * last to write the field anew, else scratch. The datum then points to it; the old memory stays
 * readable until the sample is finished, so keep a copy of the old datum to read from. */
enum leat_status leat_work_out(struct leat_work *work, int field, enum leat_dtype dtype, int ndim, const int64_t *shape,
                               struct leat_err *err);
/* Scratch for the op's own use, 64-byte aligned. */
void *leat_work_scratch(struct leat_work *work, size_t bytes, struct leat_err *err); /* NULL: err is filled */

/* What an op on whole batches has: the rows of this rank, one behind the other in each field's memory. */
struct leat_rows {
	const struct leat_schema *schema;
	void *column[LEAT_MAX_FIELDS]; /* of each field, dense: row i is at i * row_bytes */
	size_t row_bytes[LEAT_MAX_FIELDS];
	int64_t count;
	const uint64_t *position; /* of each row in the epoch; UINT64_MAX: padding */
	uint64_t begin;           /* position of the global batch's first row */
	uint64_t seed, epoch, stream;
};

/* Ops that mix neighbours: row i and i + 1 make a pair when they stand at 2k and 2k + 1 of the global batch. False: row
 * i has no partner after it (it is the second of a pair, padding, or the other one was bad). */
bool leat_rows_pair(const struct leat_rows *rows, int64_t i);
/* The pair's random numbers, the same for any number of ranks. */
void leat_rows_stream(const struct leat_rows *rows, int64_t i, struct leat_rng *rng);
/* Checks that `name` is a dense field and, with `floats`, of float32; gives its number. */
enum leat_status leat_rows_field(const struct leat_schema *schema, const char *name, bool floats, int *field,
                                 struct leat_err *err);
/* Both rows of a pair: a becomes share * a + (1 - share) * b, b the other way round. */
void leat_rows_blend(const struct leat_rows *rows, int64_t i, int field, float share);

/* Where a plan op stands: in which pass over its input, and at which position of it. */
struct leat_at {
	uint64_t pass, pos;
};

/* No pass has more positions than this, so that sums of two sizes never overflow. */
#define LEAT_MAX_POSITIONS ((uint64_t)1 << 62)

/* What a plan op can know of its input. `seed` may change between two calls of `map`. */
struct leat_plan_in {
	uint64_t size;         /* positions of one pass, at least 1 */
	uint64_t seed, stream; /* for its random numbers */
	const uint64_t *first; /* directly on a source: file i holds positions [first[i], first[i + 1]); else NULL */
	size_t files;
	struct leat_mem *mem;
};

/* An op that can be fused describes its effect instead of applying it, and the engine applies neighbours in one pass
 * over the pixels (image/pass.h). One of these; `run` is not needed then, except beside `convert`, which also works on
 * fields that are not images. */
struct leat_fusion {
	enum leat_status (*decode)(const void *params, const struct leat_datum *bytes, const struct leat_work *work,
	                           struct leat_decode *decode, struct leat_err *err);
	bool (*reduces)(const void *params); /* optional, beside `decode`: may images be decoded at reduced size? */
	/* shape: height, width, channels */
	enum leat_status (*move)(const void *params, struct leat_rng *rng, const int64_t *shape, struct leat_move *move,
	                         struct leat_err *err);
	void (*convert)(const void *params, enum leat_dtype *dtype, enum leat_layout *layout);
	/* POINTWISE: works on f32 (u8 is converted first). Fills 1 to LEAT_MAX_AFFINE steps, `channels` <=
	 * LEAT_MAX_CHANNELS of each, and returns how many. Neighbours are one pass on any field, image or not. */
	int (*affine)(const void *params, struct leat_rng *rng, int channels, struct leat_affine *step);
	/* The same, given the mean of each channel. */
	int (*affine_about)(const void *params, struct leat_rng *rng, const float *mean, int channels,
	                    struct leat_affine *step);
};

/* A sample op on one field. The spec's `field=NAME` (or a list) chooses it; without that it is the field called
 * `image`, else the only one accepted. */
struct leat_field_op {
	bool (*accepts)(const struct leat_field *field, enum leat_layout layout);
	const char *wants; /* what `accepts` accepts, for errors: "an image (height x width x channels)" */
	/* What the field becomes; NULL: it stays what it is. */
	enum leat_status (*infer)(void *params, struct leat_field *field, enum leat_layout *layout,
	                          struct leat_err *err);
	bool in_place; /* `run` changes the datum's memory and neither dtype nor shape */
	/* Optional: an upper bound of the scratch that the op needs besides its result, for a field as it is before
	 * `infer`. The memory limit is checked against it at open. */
	size_t (*scratch_bytes)(const void *params, const struct leat_field *field);
	enum leat_status (*run)(const void *params, struct leat_work *work, int field, struct leat_err *err);
	struct leat_fusion fuse;
};

/* A sample op that sees and changes all fields. */
struct leat_fields_op {
	enum leat_status (*infer)(void *params, struct leat_schema *schema, struct leat_err *err);
	enum leat_status (*run)(const void *params, struct leat_work *work,
	                        struct leat_err *err); /* NULL: the sample stays as it is */
	/* Which field, as numbered before, field `i` is unchanged, or -1: it is new; NULL: all are new. A field that is
	 * carried along can be in the batch already. */
	int (*carries)(const void *params, int i);
};

/* An op on whole batches, of dense fields only (`infer` checks that and may change nothing). One thread calls it for a
 * batch, after bad samples were removed. To give the same bytes for any number of ranks, rows may depend only on rows
 * of the same group of `row_group`, counted from the global batch's first; ranks never split a group. */
struct leat_batch_op {
	enum leat_status (*infer)(void *params, struct leat_schema *schema, struct leat_err *err);
	void (*run)(const void *params, const struct leat_rows *rows);
	int row_group;
};

/* A plan op. `open` gives the size of its output (0: nothing is left, which the plan refuses) and optionally a state,
 * with memory from in->mem; `map` (NULL: every position stays) turns an output position into an input position. The
 * state is only a cache: `map` is a pure function of params, `in` and the position, so a cache remembers which seed and
 * pass it belongs to. */
struct leat_plan_op {
	enum leat_status (*open)(const void *params, const struct leat_plan_in *in, uint64_t *size, void **state,
	                         struct leat_err *err);
	void (*map)(const void *params, const struct leat_plan_in *in, void *state, struct leat_at *at);
	void (*close)(void *state, struct leat_mem *mem);
	bool (*scatters)(const void *params); /* optional: can neighbours in the output be far apart in the input? */
};

struct leat_op {
	const char *name, *doc, *example;
	enum leat_op_kind kind;
	int version;
	const struct leat_opt *opts;
	size_t params_size;
	bool random; /* draws from work->rng */

	/* Optional: more checks between options, or arguments that no table can describe. Sentences of `check` and of
	 * `infer` below get the op's name in front. `parse`, when
	 * set, replaces the table; `print` then adds the canonical arguments; `params_free` what parse took. */
	enum leat_status (*check)(void *params, struct leat_err *err);
	enum leat_status (*parse)(void *params, const struct leat_call *call, const char *text, struct leat_mem *mem,
	                          struct leat_err *err);
	void (*print)(const void *params, struct leat_str *out);
	void (*params_free)(void *params, struct leat_mem *mem);

	/* One of these, by kind: what the op works on. BATCH, CACHE and HINT have none. */
	struct leat_field_op on_field;
	struct leat_fields_op on_fields;
	struct leat_batch_op on_batch;
	struct leat_plan_op on_plan;
};

static inline bool
leat_op_is_on_field(const struct leat_op *op)
{
	return op->on_field.accepts != NULL;
}

extern const struct leat_op *const leat_ops[]; /* sorted by name, NULL at the end */

/* ---- running (run.c) ---- */

/* A sample op that is not on all fields, by itself, on a field that may be changed if the op works in place. */
enum leat_status leat_op_run(const struct leat_op *op, const void *params, struct leat_work *work, int field,
                             struct leat_err *err);

/* Can the op be fused with others, and can it be the first of them? `dtype` and `layout`: of its input. */
bool leat_op_can_fuse(const struct leat_op *op);
bool leat_op_can_start_fusion(const struct leat_op *op, enum leat_dtype dtype, enum leat_layout layout);
/* Adds the op to the pass, which the first op begins; work->rng is its stream. */
enum leat_status leat_fuse_begin(const struct leat_op *op, const void *params, struct leat_work *work, int field,
                                 struct leat_pass *pass, struct leat_err *err);
enum leat_status leat_fuse_add(const struct leat_op *op, const void *params, struct leat_work *work,
                               struct leat_pass *pass, struct leat_err *err);
/* Runs the pass; the result becomes the field. */
enum leat_status leat_fuse_finish(struct leat_pass *pass, struct leat_work *work, int field, struct leat_err *err);

const struct leat_op *leat_op_find(const char *name);

/* For `accepts`: */
bool leat_accepts_image(const struct leat_field *field, enum leat_layout layout); /* u8 or f32, HWC, <= 4 channels */
bool leat_accepts_color(const struct leat_field *field, enum leat_layout layout); /* of those: gray, RGB or unknown */
bool leat_accepts_bytes(const struct leat_field *field, enum leat_layout layout); /* u8, 1 dim, any length */
bool leat_accepts_numbers(const struct leat_field *field,
                          enum leat_layout layout); /* u8 or f32, but bytes of unknown length */

/* For `check`: an option `name` that holds two numbers, the first not above the second. */
enum leat_status leat_check_range(const struct leat_floats *range, const char *name, struct leat_err *err);

/* For `infer`: */
int64_t leat_field_channels(const struct leat_field *field, enum leat_layout layout); /* 1 if no image; -1: unknown */
enum leat_status leat_infer_f32(void *params, struct leat_field *field, enum leat_layout *layout, struct leat_err *err);

/* For `run`: what a schema cannot promise of one sample's image, that it has pixels and 1 to
 * LEAT_MAX_CHANNELS channels. */
enum leat_status leat_check_image(const struct leat_datum *image, enum leat_layout layout, struct leat_err *err);
/* And that its channels, the last dim, are gray or RGB. */
enum leat_status leat_check_color(const struct leat_datum *image, struct leat_err *err);
/* For ops to which full scale is 1: that float32 pixels have it, and not 255. A little above, as after
 * random_brightness, is no mistake. LEAT_SPEC, because no sample would be right. */
enum leat_status leat_check_scale(const struct leat_datum *image, struct leat_err *err);

#endif
