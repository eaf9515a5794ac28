/* op.h - what an op is
 *
 * To add an op, add one file, src/op/NAME.c, that defines `const struct leat_op leat_op_NAME`; the build collects
 * the table. There are two kinds (docs/PLAN.md):
 *
 * - A *sample op* turns a sample into a sample. It is a pure function of its params, the sample and its random
 *   stream, and all workers call it concurrently.
 * - A *plan op* maps output positions to input positions. One thread calls it at a time.
 *
 * `version` is part of the pipeline's hash: bump it whenever the output changes. */
#ifndef LEAT_OP_OP_H
#define LEAT_OP_OP_H

#include <stdatomic.h>

#include "base/log.h"
#include "base/opt.h"
#include "base/rng.h"
#include "format/sample.h"
#include "image/affine.h"
#include "image/pass.h"

enum leat_op_kind {
	LEAT_OP_DECODE,     /* bytes -> image */
	LEAT_OP_GEOMETRY,   /* moves or resamples pixels */
	LEAT_OP_POINTWISE,  /* each element x becomes mul * x + add */
	LEAT_OP_STATISTICS, /* needs statistics of the whole image */
	LEAT_OP_COLOR,      /* changes colors in ways POINTWISE cannot express */
	LEAT_OP_FIELDS,     /* adds, drops or renames fields: `on_fields` */
	LEAT_OP_CONVERT,    /* same values, different type or layout */
	LEAT_OP_PLAN,       /* maps positions: `on_plan` */
	LEAT_OP_BATCH,      /* ends the sample chain; the engine reads its params (op/batch.h) */
	LEAT_OP_MIX,        /* works on whole batches, after `batch`: `on_batch` */
	LEAT_OP_CACHE,      /* caches samples; the engine reads its params (op/cache.h) */
	LEAT_OP_HINT,       /* affects speed only; not part of the pipeline's hash */
};

/* Most steps of one pointwise op. */
enum { LEAT_MAX_AFFINE = 2 };

/* Warnings that each feed logs once. */
enum leat_warning { LEAT_WARN_LOW_BYTES = 1, LEAT_WARN_INDICES = 2 };
struct leat_warnings {
	const struct leat_log *log;
	atomic_uint given; /* enum leat_warning */
};

/* Identifies a sample, for its random numbers. */
struct leat_sample_id {
	uint64_t seed, epoch, position;
	uint64_t sample; /* its number in the source */
};

struct leat_map_call;

/* Context of a running sample op; one per worker thread. */
struct leat_work {
	struct leat_sample *sample;
	struct leat_scratch *scratch;   /* valid until the sample is finished */
	struct leat_rng rng;            /* this op's stream for this sample; every field gets the same one */
	uint64_t max_pixels;            /* of images whose size the data decides */
	enum leat_layout layout;        /* of the field passed to `run` */
	struct leat_warnings *warnings; /* shared by the workers of a feed; NULL: none */
	const struct leat_sample_id *id;
	unsigned thread; /* number of the worker */
	bool large;      /* scratch is the shared one for large samples: one thread at a time */
	/* Runs a function in the worker's process (feed/process.h). */
	enum leat_status (*run_in_process)(struct leat_work *work, const struct leat_map_call *call,
	                                   struct leat_err *err);
	/* Private to the engine: */
	void *(*output_slot)(struct leat_work *work, int field,
	                     size_t bytes); /* destination of a final result; NULL: scratch */
	void *output_slot_arg;
	int stage; /* current stage of the chain */
	int op;    /* current op within the stage */
};

/* Gives field `field` a new buffer of this dtype and shape: the batch's slot if no later op allocates the field again,
 * otherwise scratch. The old memory stays readable until the sample is finished; copy the old datum first to read from
 * it. */
enum leat_status leat_work_out(struct leat_work *work, int field, enum leat_dtype dtype, int ndim, const int64_t *shape,
                               struct leat_err *err);
/* Logs a warning, unless one of its kind was logged before. */
void leat_work_warn(const struct leat_work *work, enum leat_warning kind, const char *text);
/* Scratch for the op's own use, 64-byte aligned. */
void *leat_work_scratch(struct leat_work *work, size_t bytes, struct leat_err *err); /* NULL: see err */

/* Input of an op on whole batches: this rank's rows, contiguous for each field. */
struct leat_rows {
	const struct leat_schema *schema;
	void *column[LEAT_MAX_FIELDS]; /* by field: row i is at i * row_bytes */
	size_t row_bytes[LEAT_MAX_FIELDS];
	int64_t count;
	const uint64_t *position; /* of each row in the epoch; UINT64_MAX: padding */
	uint64_t batch;           /* rows of a full global batch */
	uint64_t seed, epoch, stream;
};

/* For ops that mix neighbours: do rows i and i + 1 form a pair, that is, are they rows 2k and 2k + 1 of a global batch,
 * counted from the start of the epoch wherever the feed began, and neighbours? False if row i is the second of a pair
 * or padding, or if its partner was a bad sample. */
bool leat_rows_pair(const struct leat_rows *rows, int64_t i);
/* The pair's random stream; it does not depend on the number of ranks. */
void leat_rows_stream(const struct leat_rows *rows, int64_t i, struct leat_rng *rng);
/* Finds field `name` and checks that it is dense and, with `floats`, float32. */
enum leat_status leat_rows_field(const struct leat_schema *schema, const char *name, bool floats, int *field,
                                 struct leat_err *err);
/* Blends both rows of a pair: a becomes share * a + (1 - share) * b, and b vice versa. */
void leat_rows_blend(const struct leat_rows *rows, int64_t i, int field, float share);

/* A position within a pass over the data. */
struct leat_at {
	uint64_t pass, pos;
};

/* Limit on the positions of a pass, so that the sum of two sizes never overflows. */
#define LEAT_MAX_POSITIONS ((uint64_t)1 << 62)

/* The input of a plan op. `seed` may change between calls of `map`. */
struct leat_plan_in {
	uint64_t size;         /* positions per pass, at least 1 */
	uint64_t seed, stream; /* for its random numbers */
	const uint64_t
		*first; /* right after a source: file i holds positions [first[i], first[i + 1]); otherwise NULL */
	size_t files;
	bool fixed; /* each sample comes at most once, and in the same order in every pass */
	struct leat_mem *mem;
};

/* An op that can be fused describes its effect, and the engine applies a sequence of such ops in one pass over the
 * pixels (image/pass.h). Set one of these, and no `run`, except with `convert`, which also works on fields that are not
 * images. */
struct leat_fusion {
	enum leat_status (*decode)(const void *params, const struct leat_datum *bytes, const struct leat_work *work,
	                           struct leat_decode *decode, struct leat_err *err);
	bool (*reduces)(const void *params); /* optional, with `decode`: may images be decoded at reduced size? */
	/* shape: height, width, channels */
	enum leat_status (*move)(const void *params, struct leat_rng *rng, const int64_t *shape, struct leat_move *move,
	                         struct leat_err *err);
	void (*convert)(const void *params, enum leat_dtype *dtype, enum leat_layout *layout);
	/* POINTWISE: works on f32 (u8 is converted first). Fills 1 to LEAT_MAX_AFFINE steps, each with `channels` (at
	 * most LEAT_MAX_CHANNELS) entries, and returns the number of steps. Adjacent ops are fused on any field, image
	 * or not. */
	int (*affine)(const void *params, struct leat_rng *rng, int channels, struct leat_affine *step);
	/* Same, but also given the mean of each channel. */
	int (*affine_about)(const void *params, struct leat_rng *rng, const float *mean, int channels,
	                    struct leat_affine *step);
};

/* A sample op on one field. The spec's `field=NAME` (or a list) chooses the field; the default is `image`, or else the
 * only field that the op accepts. */
struct leat_field_op {
	bool (*accepts)(const struct leat_field *field, enum leat_layout layout);
	const char *wants; /* describes accepted fields in errors: "an image (height x width x channels)" */
	/* Updates the field's type and shape; NULL: they do not change. */
	enum leat_status (*infer)(void *params, struct leat_field *field, enum leat_layout *layout,
	                          struct leat_err *err);
	bool in_place; /* `run` changes the data in place, keeping dtype and shape */
	/* Optional: an upper bound on the scratch the op needs besides its result, given the field before `infer`. Used
	 * to check the memory limit at open. */
	size_t (*scratch_bytes)(const void *params, const struct leat_field *field);
	enum leat_status (*run)(const void *params, struct leat_work *work, int field, struct leat_err *err);
	struct leat_fusion fuse;
};

/* A sample op that sees and changes all fields. */
struct leat_fields_op {
	enum leat_status (*infer)(void *params, struct leat_schema *schema, struct leat_err *err);
	enum leat_status (*run)(const void *params, struct leat_work *work,
	                        struct leat_err *err); /* NULL: samples do not change */
	/* The input field that output field `i` is, unchanged, or -1 if it is new; NULL: all are new. An unchanged
	 * field may already have been written to the batch. */
	int (*carries)(const void *params, int i);
	/* Optional, after `infer`: output field `i`, which is new, is the elements of these input fields, one after the
	 * other, converted to its type by leat_cast. Returns how many fields; 0: it is something else. */
	int (*joins)(const void *params, int i, const int **from);
};

/* An op on whole batches, for dense fields only (`infer` checks that, and must not change the schema). One thread runs
 * it on a batch, after bad samples are removed. The output must not depend on the number of ranks: a row may depend
 * only on rows of its own group of `row_group` rows, counted from the start of the global batch. Ranks never split a
 * group. */
struct leat_batch_op {
	enum leat_status (*infer)(void *params, struct leat_schema *schema, struct leat_err *err);
	void (*run)(const void *params, const struct leat_rows *rows);
	int row_group;
};

/* Outputs of a plan op that are some blocks of its input, in any order. */
struct leat_plan_group {
	uint64_t pass, begin, end;    /* outputs */
	uint64_t first_block, blocks; /* for the op's use; how many there are */
	uint64_t block, most_blocks;  /* inputs of a block, and blocks of a group, at most */
};

/* A plan op. `open` sets the output size, which may be 0, and optionally allocates a state from in->mem; it is not
 * called for an empty input. `map` turns an output position into an input position; NULL is the identity. The state is
 * only a cache: `map` must be a pure function of params, `in` and the position, so a cache has to check which seed and
 * pass it was built for. */
struct leat_plan_op {
	enum leat_status (*open)(const void *params, const struct leat_plan_in *in, uint64_t *size, void **state,
	                         struct leat_err *err);
	void (*map)(const void *params, const struct leat_plan_in *in, void *state, struct leat_at *at);
	/* Optional: the same for many positions at once, each in its pass. */
	void (*map_many)(const void *params, const struct leat_plan_in *in, void *state, uint64_t *pass, uint64_t *pos,
	                 size_t count);
	void (*close)(void *state, struct leat_mem *mem);
	bool (*scatters)(const void *params); /* optional: may adjacent outputs be far apart in the input? */
	bool in_order;                        /* keeps the order of its input in each pass */
	/* Optional, for other orders: how many outputs in a row have most neighbours of an input, if few do; else 0. */
	uint64_t (*spread)(const void *params, const struct leat_plan_in *in);
	/* Optional, both or none, for orders that mix a group of blocks at a time: the group of an output, and the
	 * inputs of its block `k`. False: not with these params. */
	bool (*group)(const void *params, const struct leat_plan_in *in, void *state, const struct leat_at *at,
	              struct leat_plan_group *group);
	void (*block)(const struct leat_plan_in *in, void *state, const struct leat_plan_group *group, uint64_t k,
	              uint64_t *begin, uint64_t *end);
	bool fixed; /* same choice and order in every pass, each input at most once */
};

struct leat_op {
	const char *name, *doc, *example;
	enum leat_op_kind kind;
	int version;
	const struct leat_opt *opts;
	size_t params_size;
	bool random; /* draws from work->rng */

	/* Optional. `check` validates options together; the op's name is prepended to its errors and to those of
	 * `infer`. `parse` replaces the option table for arguments that no table can describe; `print` then writes the
	 * canonical arguments, and `params_free` frees what `parse` allocated. */
	enum leat_status (*check)(void *params, struct leat_err *err);
	enum leat_status (*parse)(void *params, const struct leat_call *call, const char *text, struct leat_mem *mem,
	                          struct leat_err *err);
	void (*print)(const void *params, struct leat_str *out);
	void (*params_free)(void *params, struct leat_mem *mem);

	/* Set one of these, by kind. BATCH, CACHE and HINT have none. */
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

/* Runs one op of kind `on_field`, unfused. If it works in place, the field's data must be writable. */
enum leat_status leat_op_run(const struct leat_op *op, const void *params, struct leat_work *work, int field,
                             struct leat_err *err);

/* Can the op be fused with others, and can it come first? `dtype` and `layout` describe its input. */
bool leat_op_can_fuse(const struct leat_op *op);
bool leat_op_can_start_fusion(const struct leat_op *op, enum leat_dtype dtype, enum leat_layout layout);
/* Start a pass with this op, or add the op to it. work->rng must be the op's stream. */
enum leat_status leat_fuse_begin(const struct leat_op *op, const void *params, struct leat_work *work, int field,
                                 struct leat_pass *pass, struct leat_err *err);
enum leat_status leat_fuse_add(const struct leat_op *op, const void *params, struct leat_work *work,
                               struct leat_pass *pass, struct leat_err *err);
/* Runs the pass and stores the result in the field. */
enum leat_status leat_fuse_finish(struct leat_pass *pass, struct leat_work *work, int field, struct leat_err *err);

const struct leat_op *leat_op_find(const char *name);

/* For `accepts`: */
bool leat_accepts_image(const struct leat_field *field, enum leat_layout layout); /* u8 or f32, HWC, <= 4 channels */
bool leat_accepts_pixels(const struct leat_field *field,
                         enum leat_layout layout); /* or u16: for ops that move pixels */
bool leat_accepts_color(const struct leat_field *field,
                        enum leat_layout layout); /* an image that is gray, RGB or unknown */
bool leat_accepts_bytes(const struct leat_field *field, enum leat_layout layout); /* u8, 1 dim, any length */
bool leat_accepts_numbers(const struct leat_field *field,
                          enum leat_layout layout); /* u8 or f32, except bytes of unknown length */

/* For `check`: option `name` must be two numbers in ascending order. */
enum leat_status leat_check_range(const struct leat_floats *range, const char *name, struct leat_err *err);

/* For `infer`: */
int64_t leat_field_channels(const struct leat_field *field,
                            enum leat_layout layout); /* 1 if not an image; -1: unknown */
enum leat_status leat_infer_f32(void *params, struct leat_field *field, enum leat_layout *layout, struct leat_err *err);

/* For `run`, since a schema cannot guarantee it: the image is not empty and has 1 to LEAT_MAX_CHANNELS channels. */
enum leat_status leat_check_image(const struct leat_datum *image, enum leat_layout layout, struct leat_err *err);
/* Also checks that it is gray or RGB; channels are the last dimension. */
enum leat_status leat_check_color(const struct leat_datum *image, struct leat_err *err);
/* For ops that expect float32 pixels in 0..1: fails if they look like 0..255. Values slightly above 1, as after
 * random_brightness, are fine. Fails with LEAT_SPEC, because every sample would be wrong. */
enum leat_status leat_check_scale(const struct leat_datum *image, struct leat_err *err);

#endif
