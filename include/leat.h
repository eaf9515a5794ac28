/* leat.h - the public interface of Leat, and the only public header
 *
 * A *spec* is the text of a pipeline; a *feed* is an open spec, giving batches.
 *
 *	struct leat_options opt;
 *	struct leat_feed *feed = NULL;
 *	struct leat_batch *batch = NULL;
 *	struct leat_err err;
 *
 *	leat_options_init(&opt);
 *	if (leat_open("tfrecord('cells-*.tfrecord') | example(image=bytes, label=int64)"
 *	              " | decode | resize(100, 100) | scale(1/255) | shuffle | batch(32)",
 *	              &opt, &feed, &err) != LEAT_OK)
 *		errx(1, "%s", err.text);
 *	while (leat_next(feed, &batch, &err) == LEAT_OK) {
 *		struct leat_tensor image;
 *		leat_batch_field(batch, "image", &image, &err);
 *		...
 *		leat_release(batch);
 *	}
 *	leat_close(feed);
 *
 * Rules
 *  1. Every function that can fail returns a status and fills the caller's
 *     leat_err with one sentence. NULL may be passed for the error.
 *  2. A handle returned by an _open is given back with its _close; _close and
 *     leat_release take NULL.
 *  3. Strings and pointers handed out stay valid as long as the handle they were
 *     asked of, unless the function says otherwise.
 *  4. One thread at a time calls functions of one feed; leat_cancel, leat_stats,
 *     leat_stats_json, leat_release and the deleters of tensors may be called from any thread
 *     at any time (the first three: until leat_close begins).
 *  5. A batch stays valid until it is released, also after leat_close.
 *  6. The library never prints, exits or aborts, and keeps no global state. */
#ifndef LEAT_H
#define LEAT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define LEAT_VERSION_MAJOR 0
#define LEAT_VERSION_MINOR 1
#define LEAT_VERSION_PATCH 0

#if defined(__GNUC__)
#define LEAT_API __attribute__((visibility("default")))
#else
#define LEAT_API
#endif

/* Every status with its meaning: the one list behind the enum, its names and texts. */
#define LEAT_STATUSES(X)                                                                                               \
	X(OK, "success")                                                                                               \
	X(END, "the epoch ended; the next call begins the next one")                                                   \
	X(DONE, "all epochs that were asked for were delivered")                                                       \
	X(AGAIN, "cannot be done without waiting")                                                                     \
	X(INVALID, "an argument or option is not valid")                                                               \
	X(SPEC, "the spec is not valid")                                                                               \
	X(DATA, "the data is damaged or does not fit the spec")                                                        \
	X(IO, "the operating system refused to read or write")                                                         \
	X(MISMATCH, "the checkpoint belongs to another pipeline or other data")                                        \
	X(NOMEM, "the system has no more memory")                                                                      \
	X(LIMIT, "a limit that was set would be exceeded")                                                             \
	X(CANCELLED, "the feed was cancelled")                                                                         \
	X(UNSUPPORTED, "this build or machine cannot do that")                                                         \
	X(INTERNAL, "a bug in leat")                                                                                   \
	X(TIMEOUT, "the time given for it is over")

enum leat_status {
#define LEAT_STATUS_ENUM(name, text) LEAT_##name,
	LEAT_STATUSES(LEAT_STATUS_ENUM)
#undef LEAT_STATUS_ENUM
};

struct leat_err {
	enum leat_status status;
	char text[1020]; /* one sentence without a newline at its end */
};

LEAT_API const char *leat_version(void);
LEAT_API const char *leat_status_name(enum leat_status status); /* "DATA" */
LEAT_API const char *leat_status_text(enum leat_status status); /* "the data is damaged ..." */

/* ---- options ---- */

enum leat_on_error {
	LEAT_ON_ERROR_FAIL,    /* the first bad sample ends the feed */
	LEAT_ON_ERROR_SKIP,    /* its place stays empty, the batch comes shorter */
	LEAT_ON_ERROR_REPLACE, /* another sample, chosen by the seed, takes its place */
};

enum leat_log_level { LEAT_LOG_DEBUG, LEAT_LOG_INFO, LEAT_LOG_WARN };

struct leat_options {
	size_t size;      /* set by leat_options_init; tells which version of this struct the caller knows */
	uint64_t seed;    /* default 0 */
	uint64_t epochs;  /* 0 (default): endless */
	unsigned threads; /* 0 (default): the CPUs this process may use */
	size_t memory;    /* bytes the feed may hold; 0 (default): a quarter of the RAM, 1 GiB at most */
	int rank;         /* -1 (default): as RANK, OMPI_COMM_WORLD_RANK or SLURM_PROCID says, else 0 of 1 */
	int world;        /* 0 (default): as WORLD_SIZE, OMPI_COMM_WORLD_SIZE or SLURM_NTASKS says, else 1 */
	enum leat_on_error on_error;
	uint64_t max_bad; /* bad samples per epoch before the feed fails; default UINT64_MAX: no budget */
	void (*log)(void *log_arg, enum leat_log_level level, const char *text); /* may be called from any thread */
	void *log_arg;
};

/* The two structs that callers own, options and stats, may grow at their ends in later versions: the library
 * is told how large the caller's is, and never touches what lies behind it. */
LEAT_API void leat_options_init_sized(struct leat_options *options, size_t size);
static inline void
leat_options_init(struct leat_options *options)
{
	leat_options_init_sized(options, sizeof *options);
}

/* The bytes that a text such as "512MiB", "1.5 GB" or "4096" stands for. k, M, G and T count in thousands, Ki, Mi, Gi
 * and Ti in 1024s; a B may follow, and case does not matter. */
LEAT_API enum leat_status leat_parse_size(const char *text, uint64_t *bytes, struct leat_err *err);

/* ---- a feed ---- */

struct leat_feed;
struct leat_batch;

/* Opens `spec`, which has to have a `batch`. `options` may be NULL. Work begins at once, in the background. */
LEAT_API enum leat_status leat_open(const char *spec, const struct leat_options *options, struct leat_feed **feed,
                                    struct leat_err *err);

/* Stops all work, within milliseconds, whatever it is doing, and frees the feed. Takes NULL. */
LEAT_API void leat_close(struct leat_feed *feed);

/* The next batch, waiting for it if need be. LEAT_END: the epoch is over, the next call gives the
 * first batch of the next epoch. LEAT_DONE: the last epoch asked for is over. LEAT_AGAIN: the caller
 * holds all batches there is memory for; release one. After any other error every further call gives
 * the same error. */
LEAT_API enum leat_status leat_next(struct leat_feed *feed, struct leat_batch **batch, struct leat_err *err);

/* The same, waiting for so many nanoseconds at most: LEAT_TIMEOUT when there is nothing to return by
 * then, and the next call goes on waiting. For programs that have to look at something else now and
 * then, such as an interpreter at its signals. 0: does not wait. UINT64_MAX: as leat_next. */
LEAT_API enum leat_status leat_next_within(struct leat_feed *feed, uint64_t timeout_ns, struct leat_batch **batch,
                                           struct leat_err *err);

/* Gives a batch's memory back to its feed. Takes NULL. */
LEAT_API void leat_release(struct leat_batch *batch);

/* From any thread: leat_next returns LEAT_CANCELLED, now and ever after. */
LEAT_API void leat_cancel(struct leat_feed *feed);

LEAT_API uint64_t leat_samples(const struct leat_feed *feed);   /* per epoch, over all ranks */
LEAT_API uint64_t leat_batches(const struct leat_feed *feed);   /* per epoch, of this rank */
LEAT_API int64_t leat_batch_size(const struct leat_feed *feed); /* samples of a full batch, of this rank */
LEAT_API uint64_t leat_epoch(const struct leat_feed *feed);     /* that the next batch belongs to */
LEAT_API uint64_t leat_position(const struct leat_feed *feed);  /* samples of that epoch delivered, over all ranks */

/* The pipeline in full: every option with its value. */
LEAT_API const char *leat_canonical(const struct leat_feed *feed);

/* ---- fields and tensors ---- */

/* New types are added at the end: a program keeps its meaning of those it knows. LEAT_BOOL is a byte, 0 or 1. */
enum leat_dtype {
	LEAT_U8,
	LEAT_I32,
	LEAT_I64,
	LEAT_F16,
	LEAT_BF16,
	LEAT_F32,
	LEAT_F64,
	LEAT_BOOL,
	LEAT_I8,
	LEAT_I16,
	LEAT_U16,
	LEAT_U32,
};

LEAT_API const char *leat_dtype_name(enum leat_dtype dtype); /* "uint8" */
LEAT_API size_t leat_dtype_size(enum leat_dtype dtype);

enum { LEAT_MAX_DIMS = 4, LEAT_MAX_FIELDS = 1024, LEAT_MAX_NAME = 63 };

struct leat_field {
	char name[LEAT_MAX_NAME + 1];
	enum leat_dtype dtype;
	int ndim;                     /* of one sample */
	int64_t shape[LEAT_MAX_DIMS]; /* of one sample; -1: differs from sample to sample */
};

LEAT_API int leat_field_count(const struct leat_feed *feed);
LEAT_API const struct leat_field *leat_field_at(const struct leat_feed *feed, int i); /* NULL when out of range */

/* A field whose every dimension is known is one dense tensor: `data` is [count, shape...].
 * A ragged one has its samples one after the other in `data`, sample i at elements
 * [offsets[i], offsets[i + 1]), and, with two dimensions or more, its shape at
 * sample_shapes[i * (ndim)]. All memory is 64-byte aligned and writable. */
struct leat_tensor {
	void *data;
	enum leat_dtype dtype;
	int ndim; /* dense: 1 + the field's ndim; ragged: 1 */
	int64_t shape[1 + LEAT_MAX_DIMS];
	const int64_t *offsets;       /* ragged: count + 1 numbers, in elements; else NULL */
	const int64_t *sample_shapes; /* ragged, field ndim >= 2: count x ndim numbers; else NULL */
	size_t bytes;                 /* of `data` in use */
};

/* Samples in this batch, padding included. Shorter than asked for at the end of an epoch and after skipped samples. */
LEAT_API int64_t leat_batch_count(const struct leat_batch *batch);
/* count bytes, 1 for a sample, 0 for padding (tail=pad, or a skipped sample when world > 1). */
LEAT_API const uint8_t *leat_batch_valid(const struct leat_batch *batch);
/* Of sample i: its global position in the epoch, which orders the samples of all ranks; UINT64_MAX for padding. */
LEAT_API uint64_t leat_batch_position(const struct leat_batch *batch, int64_t i);
LEAT_API uint64_t leat_batch_epoch(const struct leat_batch *batch);
LEAT_API enum leat_status leat_batch_field(const struct leat_batch *batch, const char *name, struct leat_tensor *tensor,
                                           struct leat_err *err);

/* DLPack: the same memory for other frameworks, without a copy. The result is a DLManagedTensor of
 * DLPack's ABI 0.x; its deleter releases its hold on the batch, which may be released before. */
struct DLManagedTensor;
enum leat_part { LEAT_PART_DATA, LEAT_PART_OFFSETS, LEAT_PART_SHAPES };
LEAT_API enum leat_status leat_batch_dlpack(struct leat_batch *batch, const char *name, enum leat_part part,
                                            struct DLManagedTensor **tensor, struct leat_err *err);

/* ---- checkpoints ---- */

/* Where the feed stands, as JSON, to be freed with free(). Counts what leat_next has returned, never
 * what was prefetched. Valid for another number of threads or ranks and another place of the same data. */
LEAT_API enum leat_status leat_save(const struct leat_feed *feed, char **json, struct leat_err *err);
/* Goes to where `json` says. Nothing is read again to get there. Seed and epoch come from the checkpoint. */
LEAT_API enum leat_status leat_restore(struct leat_feed *feed, const char *json, struct leat_err *err);

/* ---- what happened ---- */

/* What a feed counts: the one list behind struct leat_stats, its JSON, Python's feed.stats() and the reference page.
 * A COUNTER(name, unit, meaning) only grows, a GAUGE(type, name, unit, meaning) is a value of the moment, and a
 * NAME(name, meaning) is text. New entries go at the end, so that the struct only grows there. */
#define LEAT_STATS(COUNTER, GAUGE, NAME)                                                                               \
	COUNTER(samples, "samples", "samples delivered")                                                               \
	COUNTER(batches, "batches", "batches delivered")                                                               \
	COUNTER(bytes, "bytes", "size of the values in the batches delivered")                                         \
	COUNTER(bytes_read, "bytes", "bytes read from storage")                                                        \
	COUNTER(bad, "samples", "bad samples in the batches delivered")                                                \
	COUNTER(wait_ns, "ns", "consumer: time inside leat_next")                                                      \
	COUNTER(run_ns, "ns", "consumer: time between two calls of leat_next")                                         \
	COUNTER(first_batch_ns, "ns", "time from open to the first batch; 0 before it")                                \
	COUNTER(read_ns, "ns", "workers: reading what is in the page cache, and checking it")                          \
	COUNTER(read_wait_ns, "ns", "I/O threads: waiting for storage")                                                \
	COUNTER(op_ns, "ns", "workers: running ops")                                                                   \
	COUNTER(idle_ns, "ns", "workers: nothing to do")                                                               \
	GAUGE(size_t, memory, "bytes", "memory held now")                                                              \
	GAUGE(size_t, memory_peak, "bytes", "most memory held so far")                                                 \
	GAUGE(unsigned, threads, "threads", "worker threads")                                                          \
	NAME(limit, "what limits throughput: step (the consumer), disk, read, prefetch (none), or the slowest op")     \
	COUNTER(disk_ns, "ns", "consumer: part of wait_ns in which every worker was waiting for storage")

struct leat_stats {
#define LEAT_STATS_COUNTER(name, unit, doc) uint64_t name;
#define LEAT_STATS_GAUGE(type, name, unit, doc) type name;
#define LEAT_STATS_NAME(name, doc) char name[LEAT_MAX_NAME + 1];
	LEAT_STATS(LEAT_STATS_COUNTER, LEAT_STATS_GAUGE, LEAT_STATS_NAME)
#undef LEAT_STATS_COUNTER
#undef LEAT_STATS_GAUGE
#undef LEAT_STATS_NAME
};
LEAT_API void leat_stats_sized(const struct leat_feed *feed, struct leat_stats *stats, size_t size);
static inline void
leat_stats(const struct leat_feed *feed, struct leat_stats *stats)
{
	leat_stats_sized(feed, stats, sizeof *stats);
}
/* The same as a JSON object, to be freed with free(); NULL when out of memory. */
LEAT_API char *leat_stats_json(const struct leat_feed *feed);

struct leat_bad {
	uint64_t epoch, position, sample; /* where it was wanted, and its number in the source */
	const char *uri;
	uint64_t offset;
	const char *reason;
	bool replaced;
};
LEAT_API uint64_t leat_bad_count(const struct leat_feed *feed);                        /* kept in the list */
LEAT_API const struct leat_bad *leat_bad_at(const struct leat_feed *feed, uint64_t i); /* NULL when out of range; valid
                                                                                          until the next leat_next */

/* ---- what there is ---- */

/* All sources and ops with their options, and what a feed counts, as JSON, to be freed with free(); NULL when out of
 * memory. */
LEAT_API char *leat_describe(void);

#ifdef __cplusplus
}
#endif
#endif
