/* leat.h - the public API of Leat, all of it in this header
 *
 * A *spec* describes a pipeline as text. A *feed* is an open spec that delivers batches.
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
 *     leat_err with one sentence. The error pointer may be NULL.
 *  2. Close what you open and release every batch. leat_close and leat_release
 *     accept NULL.
 *  3. A returned string or pointer is valid as long as the handle it came from,
 *     unless the function says otherwise.
 *  4. A feed may be used by one thread at a time. leat_release and DLPack deleters may be
 *     called from any thread at any time; leat_cancel, leat_stats and leat_stats_json too,
 *     until leat_close is called.
 *  5. A batch stays valid until it is released, even after leat_close. You may hold as many as you like: those
 *     that memory= has no room for are copies, which count in the statistics as `held`.
 *  6. The library never prints, exits or aborts, and keeps no global state. If malloc fails, calls return LEAT_NOMEM
 *     or do without. One exception: libjansson 2.14, which reads the JSON of checkpoints, mds and tfds, may crash if
 *     malloc fails inside of it. */
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

/* Every status with its meaning. The enum, leat_status_name and leat_status_text are generated from this list. */
#define LEAT_STATUSES(X)                                                                                               \
	X(OK, "success")                                                                                               \
	X(END, "end of epoch; the next call starts the next one")                                                      \
	X(DONE, "all epochs are done")                                                                                 \
	X(AGAIN, "not possible without waiting")                                                                       \
	X(INVALID, "invalid argument or option")                                                                       \
	X(SPEC, "invalid spec")                                                                                        \
	X(DATA, "the data is damaged or does not match the spec")                                                      \
	X(IO, "a read or write failed")                                                                                \
	X(MISMATCH, "the checkpoint is from a different pipeline or different data")                                   \
	X(NOMEM, "out of memory")                                                                                      \
	X(LIMIT, "a configured limit was reached")                                                                     \
	X(CANCELLED, "the feed was cancelled")                                                                         \
	X(UNSUPPORTED, "not supported by this build or machine")                                                       \
	X(INTERNAL, "a bug in leat")                                                                                   \
	X(TIMEOUT, "timed out")                                                                                        \
	X(FUNCTION, "a function called by the pipeline failed")                                                        \
	X(WORKER, "a worker process ended unexpectedly")

enum leat_status {
#define LEAT_STATUS_ENUM(name, text) LEAT_##name,
	LEAT_STATUSES(LEAT_STATUS_ENUM)
#undef LEAT_STATUS_ENUM
};

struct leat_err {
	enum leat_status status;
	char text[1020]; /* one sentence, no trailing newline */
};

LEAT_API const char *leat_version(void);
LEAT_API const char *leat_status_name(enum leat_status status); /* "DATA" */
LEAT_API const char *leat_status_text(enum leat_status status); /* "the data is damaged ..." */

/* ---- options ---- */

enum leat_on_error {
	LEAT_ON_ERROR_FAIL, /* the first bad sample fails the feed */
	LEAT_ON_ERROR_SKIP, /* leave it out; the batch gets shorter or, if world > 1 or tail=wrap or pad, is padded */
	LEAT_ON_ERROR_REPLACE, /* use another sample, chosen by the seed */
};

/* How checkpoints recognize the data. */
enum leat_fingerprint {
	LEAT_FINGERPRINT_NAMES, /* names and sizes of files, sample counts, CSV lists: reads nothing */
	LEAT_FINGERPRINT_FULL,  /* also all bytes: the first leat_save and every leat_restore read all files once */
};

struct leat_function;
struct leat_process;

enum leat_log_level { LEAT_LOG_DEBUG, LEAT_LOG_INFO, LEAT_LOG_WARN };

struct leat_bad;
struct leat_recorder;
struct leat_arrow;
struct leat_options {
	size_t size;      /* sizeof the caller's struct; set by leat_options_init */
	uint64_t seed;    /* random seed; default 0 */
	uint64_t epochs;  /* 0 (default): endless */
	unsigned threads; /* worker threads; 0 (default): one per CPU this process may use */
	size_t memory;    /* memory limit in bytes; 0 (default): a quarter of the RAM, divided by the local ranks */
	int rank;         /* -1 (default): from RANK, OMPI_COMM_WORLD_RANK or SLURM_PROCID; 0 if none is set */
	int world;        /* 0 (default): from WORLD_SIZE, OMPI_COMM_WORLD_SIZE or SLURM_NTASKS; 1 if none is set */
	enum leat_on_error on_error;
	uint64_t max_bad; /* bad samples allowed per epoch; default UINT64_MAX: no limit */
	void (*log)(void *log_arg, enum leat_log_level level, const char *text); /* may be called from any thread */
	void *log_arg;
	enum leat_fingerprint fingerprint;
	/* For the op map, see "functions" below. What these point to must stay valid until leat_close. */
	const struct leat_function *functions;
	size_t function_count;
	const struct leat_process *processes; /* one per thread, so set `threads` too */
	size_t process_count;
	/* A sample beyond one of these is bad, whatever `memory` is, and takes none. Within them, a sample that does
	 * not fit in `memory` fails the feed. UINT64_MAX: no limit. */
	uint64_t max_pixels; /* of an encoded image; default LEAT_MAX_PIXELS */
	uint64_t max_bytes;  /* of a sample as stored, or of a record once decompressed; default LEAT_MAX_BYTES */
	/* Called for each bad sample, in plan order, by leat_next when it delivers the sample's batch. What it points
	 * to is valid until it returns; it must not use the feed. */
	void (*bad)(void *bad_arg, const struct leat_bad *bad);
	void *bad_arg;
	/* How to reach remote data: "NAME=VALUE" texts, the last of which is NULL. docs/REMOTE.md lists the names. Not
	 * part of checkpoints, and not used after leat_open. NULL: from the environment.
	 *	const char *storage[] = {"endpoint=https://minio.lab:9000", "profile=lab", NULL};
	 *	options.storage = storage; */
	const char *const *storage;
	/* Where the feed records what its threads do and when; see "recorder" below. NULL (default): nowhere. Must stay
	 * open until leat_close. Not part of checkpoints. */
	struct leat_recorder *recorder;
	/* Default true: use only as many of the threads and batches ahead as keep the consumer from waiting, found
	 * while the feed runs; see `tuning` in leat_stats_json. False: all from the start. Never changes what is
	 * delivered. Values that you set, by `threads` or prefetch(n), are not tuned. */
	bool tune;
	/* The table that the source `arrow` reads; see "Arrow" below. NULL (default): none. */
	struct leat_arrow *arrow;
};

#define LEAT_MAX_PIXELS ((uint64_t)89478485) /* as Pillow: a quarter of a gibibyte of RGB */
#define LEAT_MAX_BYTES ((uint64_t)256 << 20)

/* Later versions may add members at the end of options, leat_stats and leat_device, which callers own. So callers pass
 * the size of theirs, and the library never writes past it. */
LEAT_API void leat_options_init_sized(struct leat_options *options, size_t size);
static inline void
leat_options_init(struct leat_options *options)
{
	leat_options_init_sized(options, sizeof *options);
}

/* Number of CPUs this process may use, and so of worker threads if `threads` is 0. */
LEAT_API unsigned leat_default_threads(void);
/* The same before rounding up: 1.5 in a container with a quota of one and a half CPUs. */
LEAT_API double leat_available_cpus(void);

/* Parses a size such as "512MiB", "1.5 GB" or "4096". k, M, G and T are powers of 1000; Ki, Mi, Gi and Ti are powers
 * of 1024. A trailing B is optional, and case does not matter. */
LEAT_API enum leat_status leat_parse_size(const char *text, uint64_t *bytes, struct leat_err *err);

/* ---- a feed ---- */

struct leat_feed;
struct leat_batch;

/* Opens `spec`, which must contain a `batch`, and starts prefetching. `options` may be NULL. */
LEAT_API enum leat_status leat_open(const char *spec, const struct leat_options *options, struct leat_feed **feed,
                                    struct leat_err *err);

/* Stops all work within milliseconds and frees the feed. Accepts NULL. In a process forked from the one that opened it,
 * does nothing; leat_next fails there. */
LEAT_API void leat_close(struct leat_feed *feed);

/* Waits for the next batch. LEAT_END: end of epoch; the next call returns the first batch of the next
 * epoch, or LEAT_END again if epochs have no batches (leat_batches is 0). LEAT_DONE: all epochs are done.
 * LEAT_AGAIN: the system has no memory for one more batch; release some that you hold, and the next call
 * returns this one. Any other error is returned again by every further call. */
LEAT_API enum leat_status leat_next(struct leat_feed *feed, struct leat_batch **batch, struct leat_err *err);

/* leat_next with a timeout: returns LEAT_TIMEOUT if no batch is ready in time; call again to keep
 * waiting. Lets an interpreter check for signals, for example. 0: don't wait. UINT64_MAX: no timeout. */
LEAT_API enum leat_status leat_next_within(struct leat_feed *feed, uint64_t timeout_ns, struct leat_batch **batch,
                                           struct leat_err *err);

/* Returns a batch's memory to its feed. Accepts NULL. Does nothing in a process forked from the one that opened it. */
LEAT_API void leat_release(struct leat_batch *batch);

/* Makes leat_next return LEAT_CANCELLED, in a call under way and in all later ones. Any thread. */
LEAT_API void leat_cancel(struct leat_feed *feed);

LEAT_API uint64_t leat_samples(const struct leat_feed *feed);   /* per epoch, over all ranks; may be 0 */
LEAT_API uint64_t leat_batches(const struct leat_feed *feed);   /* per epoch, on this rank; may be 0 */
LEAT_API int64_t leat_batch_size(const struct leat_feed *feed); /* samples in a full batch, on this rank */
LEAT_API int leat_rank(const struct leat_feed *feed);           /* this process's rank: 0 .. world - 1 */
LEAT_API int leat_world(const struct leat_feed *feed);          /* number of ranks */
/* Samples of batch `number` of an epoch on this rank, without fill: how many, and the position of the first. */
LEAT_API uint64_t leat_batch_samples(const struct leat_feed *feed, uint64_t number, uint64_t *first);
LEAT_API uint64_t leat_epoch(const struct leat_feed *feed);    /* epoch of the next batch */
LEAT_API uint64_t leat_position(const struct leat_feed *feed); /* samples delivered in that epoch, over all ranks */

/* What happens to an incomplete last batch: the value of batch's option `tail`, with auto resolved, such as "wrap". */
LEAT_API const char *leat_tail_name(const struct leat_feed *feed);
/* Can batches hold rows with `valid` 0, which do not count for the epoch? True with tail=wrap or pad if the epoch is
 * not a multiple of the global batch, and with on_error=skip if skipped samples leave a row (world > 1, tail=wrap or
 * pad). Does not change, except that restoring a checkpoint in the middle of a batch makes it true for tail=wrap and
 * pad. */
LEAT_API bool leat_has_fill(const struct leat_feed *feed);

/* The spec in canonical form: every option with its value. */
LEAT_API const char *leat_canonical(const struct leat_feed *feed);

/* ---- fields ---- */

/* New types are added at the end, so existing values never change. LEAT_BOOL is one byte, 0 or 1. */
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
	LEAT_U64,
};

LEAT_API const char *leat_dtype_name(enum leat_dtype dtype); /* "uint8" */
LEAT_API size_t leat_dtype_size(enum leat_dtype dtype);

enum { LEAT_MAX_DIMS = 4, LEAT_MAX_FIELDS = 1024, LEAT_MAX_NAME = 63 };

struct leat_field {
	char name[LEAT_MAX_NAME + 1];
	enum leat_dtype dtype;
	int ndim;                     /* of one sample */
	int64_t shape[LEAT_MAX_DIMS]; /* of one sample; -1: varies */
};

LEAT_API int leat_field_count(const struct leat_feed *feed);
LEAT_API const struct leat_field *leat_field_at(const struct leat_feed *feed, int i); /* NULL when out of range */

/* Names of the classes, if the source knows them: label i is class i. Folders of `folder`, labels of `tfds`. */
LEAT_API size_t leat_class_count(const struct leat_feed *feed);                   /* 0: unknown */
LEAT_API const char *leat_class_name(const struct leat_feed *feed, size_t label); /* NULL when out of range */

/* ---- functions ---- */

/* The op map(NAME) calls a function of your program on every sample, at any place before batch. Worker threads call it
 * concurrently. To keep the promise that the same seed gives the same batches, its results may depend only on the
 * sample and on `random`. */

struct leat_value {
	const char *name;
	const void *data;
	enum leat_dtype dtype;
	int ndim;
	int64_t shape[LEAT_MAX_DIMS];
};

/* One call of a function. Valid until it returns. */
struct leat_map_call {
	uint64_t seed, epoch, position; /* position in the epoch; upstream of a cache: epoch 0 and the sample's index */
	uint64_t sample;                /* index of the sample in the source */
	uint64_t random[2];             /* to seed a generator: depends only on the members above and `number` */
	unsigned number;                /* of this map in the spec: 0 for the first */
	unsigned thread;                /* calls on the same thread never overlap */
	int count;                      /* values */
	const struct leat_value *value; /* the fields it takes */
};

struct leat_function {
	const char *name; /* as in map(NAME) */
	/* LEAT_FUNCTION, LEAT_DATA, LEAT_IO (reported as LEAT_FUNCTION) and LEAT_UNSUPPORTED: the sample is bad, and
	 * on_error decides. Any other error ends the feed. NULL: the function runs in leat_options.processes. */
	enum leat_status (*run)(void *arg, const struct leat_map_call *call, struct leat_err *err);
	void *arg;
	const char *const *takes; /* names of the fields it is given; NULL: all */
	int take_count;
	const struct leat_field *gives; /* fields it makes: new ones, or in place of those with the same name */
	int give_count;
	bool drops; /* drop all other fields */
};

/* Inside a function: memory for field `i` of `gives`, which the function must fill. `shape` must match the declared
 * one. NULL: return err->status. */
LEAT_API void *leat_map_output(const struct leat_map_call *call, int i, const int64_t *shape, struct leat_err *err);

/* A process that runs functions for one worker thread; docs/C-API.md describes what is sent through the socket, which
 * must be of type SOCK_SEQPACKET. The caller starts and ends the process. */
struct leat_process {
	int pid;
	int socket;
};

/* ---- tensors ---- */

/* A field with a fixed shape is one dense tensor: `data` is [count, shape...].
 * A ragged field (a -1 in its shape) packs its samples into `data` back to back: sample i is elements
 * [offsets[i], offsets[i + 1]). If the field has two or more dimensions, the shape of sample i starts at
 * sample_shapes[i * field ndim]. All memory is 64-byte aligned and writable. */
struct leat_tensor {
	void *data;
	enum leat_dtype dtype;
	int ndim; /* dense: 1 + the field's ndim; ragged: 1 */
	int64_t shape[1 + LEAT_MAX_DIMS];
	const int64_t *offsets;       /* ragged: count + 1 numbers, in elements; else NULL */
	const int64_t *sample_shapes; /* ragged, field ndim >= 2: count x ndim numbers; else NULL */
	size_t bytes;                 /* of `data` in use */
	bool copied;                  /* part of a copied batch: the field has its own memory */
};

/* Rows of this batch, including repeats and padding. Less than a full batch at the end of an epoch or after skipped
 * samples. */
LEAT_API int64_t leat_batch_count(const struct leat_batch *batch);
/* One byte per row. 1: a sample that counts for this epoch; over all ranks, each position of the epoch has one such
 * row, except for skipped samples and with tail=drop. 0: fill, which is a repeat of an earlier sample of the epoch
 * (tail=wrap) or padding: zeros, or no values in a ragged field (tail=pad, or a skipped sample). See leat_has_fill. */
LEAT_API const uint8_t *leat_batch_valid(const struct leat_batch *batch);
/* Position of row i in the epoch, counted over all ranks; of a repeat, the position of the sample that it repeats;
 * UINT64_MAX for padding. */
LEAT_API uint64_t leat_batch_position(const struct leat_batch *batch, int64_t i);
LEAT_API uint64_t leat_batch_epoch(const struct leat_batch *batch);
LEAT_API uint64_t leat_batch_begin(const struct leat_batch *batch); /* leat_position before the batch was delivered */
/* Whether the batch is a copy, because the caller holds others. */
LEAT_API bool leat_batch_copied(const struct leat_batch *batch);
LEAT_API enum leat_status leat_batch_field(const struct leat_batch *batch, const char *name, struct leat_tensor *tensor,
                                           struct leat_err *err);

/* Shares a tensor with other frameworks through DLPack (ABI 0.x), without a copy. The tensor keeps the
 * batch's memory (of a copied batch, only that of the field) alive until its deleter is called, even if the batch is
 * released first. */
struct DLManagedTensor;
enum leat_part { LEAT_PART_DATA, LEAT_PART_OFFSETS, LEAT_PART_SHAPES };
LEAT_API enum leat_status leat_batch_dlpack(struct leat_batch *batch, const char *name, enum leat_part part,
                                            struct DLManagedTensor **tensor, struct leat_err *err);

/* ---- Arrow ---- */

/* Tables and batches by the Arrow C data interface, whose structs are those of Arrow's specification. */
struct ArrowSchema;
struct ArrowArray;
struct ArrowArrayStream;

/* Takes over all record batches of a stream, without copying them, and releases the stream, on failure too. The table
 * can be given to any number of feeds, by leat_options.arrow. */
LEAT_API enum leat_status leat_arrow_import(struct ArrowArrayStream *stream, struct leat_arrow **table,
                                            struct leat_err *err);
/* Drops the caller's reference. The arrays are released when all feeds that read them are closed too, by whichever
 * thread comes last. Accepts NULL. */
LEAT_API void leat_arrow_free(struct leat_arrow *table);

/* Shares a batch as a record batch, without copying it: an array of structs, and its schema. Dense fields become
 * numbers or lists of a fixed size; ragged ones large_binary (uint8) or large_list, and with two or more dimensions a
 * struct of `values` and `shape`; bools are packed into bits, and bfloat16 becomes uint16. If batches can have fill,
 * there is a bool column `valid`. The caller gives room for both structs and calls their release; until then, the
 * batch's memory stays alive, even if the batch is released first. */
LEAT_API enum leat_status leat_batch_arrow(struct leat_batch *batch, struct ArrowSchema *schema,
                                           struct ArrowArray *array, struct leat_err *err);
/* The same as a stream of one record batch. */
LEAT_API enum leat_status leat_batch_arrow_stream(struct leat_batch *batch, struct ArrowArrayStream *stream,
                                                  struct leat_err *err);

/* A PyCapsule_Destructor: releases the batch in a capsule named LEAT_CAPSULE, calls the deleter of a tensor in one
 * named "dltensor", releases and frees (by free) the struct in one named "arrow_schema", "arrow_array" or
 * "arrow_array_stream". Python code cannot do it safely: a signal may interrupt it. */
#define LEAT_CAPSULE "leat_batch"
LEAT_API void leat_capsule_free(void *capsule);

/* ---- to the device ---- */

/* While on, leat_next delivers batches in memory that is registered with the CUDA runtime ("pinned"), from which a GPU
 * copies without a buffer in between, while the CPU goes on. So release such a batch only when its copy is done. Each
 * slot is registered once, by the thread that calls leat_next and with its current device, and unregistered by the time
 * the feed is closed and its batches released. If CUDA refuses, a warning is logged and batches stay in ordinary
 * memory; so do copies of batches that you hold (leat_batch_copied). LEAT_UNSUPPORTED: there is no CUDA runtime. The
 * runtime is the one that the program has loaded, or else the system's; LEAT_CUDART in the environment names another.
 */
LEAT_API enum leat_status leat_pin(struct leat_feed *feed, bool on, struct leat_err *err);

/* Counts a copy of a batch to the device, and records it as a span. The program knows when it was: times are those of
 * CLOCK_MONOTONIC, in ns. `staged`: bytes that were copied into other memory on the way. */
LEAT_API void leat_to_device(struct leat_feed *feed, uint64_t begin_ns, uint64_t end_ns, uint64_t bytes,
                             uint64_t staged);

/* ---- checkpoints ---- */

/* Saves the feed's position as JSON; free it with free(). The position counts batches returned by leat_next,
 * not prefetched ones. A checkpoint can be restored with a different number of threads or ranks, and after
 * the data has moved. */
LEAT_API enum leat_status leat_save(const struct leat_feed *feed, char **json, struct leat_err *err);
/* Resumes from a checkpoint, without reading the samples before it. Takes seed and epoch from the checkpoint. */
LEAT_API enum leat_status leat_restore(struct leat_feed *feed, const char *json, struct leat_err *err);
/* Like leat_restore, but also accepts a checkpoint of another pipeline if its order of samples is the same: source,
 * data and the ops that order samples (shuffle, take, ...) must match; others, such as batch and augmentations, may
 * differ. Resumes at the same sample, even if that is inside a batch of the new size. *changes says what differs, as in
 * "batch(size=32) became batch(size=64)"; free it with free(). NULL: nothing differs. */
LEAT_API enum leat_status leat_restore_loose(struct leat_feed *feed, const char *json, char **changes,
                                             struct leat_err *err);

/* Jumps to a position of an epoch, without reading what comes before it. With mixup and cutmix, the position must not
 * separate a pair. */
LEAT_API enum leat_status leat_seek(struct leat_feed *feed, uint64_t epoch, uint64_t position, struct leat_err *err);

/* ---- statistics ---- */

/* All statistics of a feed. struct leat_stats, its JSON, Python's feed.stats() and the reference page are generated
 * from this list. A COUNTER(name, unit, meaning) only grows, a GAUGE(type, name, unit, meaning) is a current value,
 * and a NAME(name, meaning) is text. Add new entries at the end to keep the ABI. */
#define LEAT_STATS(COUNTER, GAUGE, NAME)                                                                               \
	COUNTER(samples, "samples", "samples delivered, without repeats and padding")                                  \
	COUNTER(batches, "batches", "batches delivered")                                                               \
	COUNTER(bytes, "bytes", "size of the batches delivered")                                                       \
	COUNTER(bytes_read, "bytes", "bytes read from storage")                                                        \
	COUNTER(bad, "samples", "bad samples in the batches delivered")                                                \
	COUNTER(wait_ns, "ns", "consumer: time inside leat_next")                                                      \
	COUNTER(run_ns, "ns", "consumer: time between calls to leat_next")                                             \
	COUNTER(first_batch_ns, "ns", "time from open to the first batch; 0 until then")                               \
	COUNTER(read_ns, "ns", "workers: reading from the page cache and verifying")                                   \
	COUNTER(read_wait_ns, "ns", "I/O threads: waiting for storage")                                                \
	COUNTER(op_ns, "ns", "workers: running ops")                                                                   \
	COUNTER(idle_ns, "ns", "workers: idle")                                                                        \
	GAUGE(size_t, memory, "bytes", "memory in use")                                                                \
	GAUGE(size_t, memory_peak, "bytes", "peak memory use")                                                         \
	GAUGE(unsigned, threads, "threads", "worker threads")                                                          \
	NAME(limit, "what limits throughput: step (the consumer), disk, network, read, prefetch (none), or an op")     \
	COUNTER(disk_ns, "ns", "consumer: part of wait_ns during which all workers waited for storage")                \
	COUNTER(copied, "batches", "batches copied because the program held others")                                   \
	GAUGE(size_t, held, "bytes", "memory beyond memory=, for batches that the program holds")                      \
	GAUGE(uint64_t, requests, "requests", "requests sent to servers, retries included")                            \
	GAUGE(uint64_t, retries, "requests", "requests sent to servers again after a failure")                         \
	NAME(reads, "how servers are read: objects (one request per sample), ranges (the same), merged ranges, "       \
	            "streaming; or empty")                                                                             \
	COUNTER(to_device_ns, "ns", "copying batches to the device")                                                   \
	COUNTER(to_device_bytes, "bytes", "bytes copied to the device")                                                \
	COUNTER(staged, "bytes", "bytes copied into pinned memory on the way to the device")                           \
	GAUGE(size_t, pinned, "bytes", "memory of batches that is pinned: registered with the CUDA runtime")

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
LEAT_API size_t leat_held(const struct leat_feed *feed); /* the statistic `held` alone, for every batch */
/* The statistics as a JSON object; free it with free(). NULL: out of memory. Besides the members of struct leat_stats
 * it has the figures of each stage, epoch, queue and server, histograms, and a sentence that says what limits:
 * docs/XRAY.md describes all. */
LEAT_API char *leat_stats_json(const struct leat_feed *feed);
/* The same in the text format of Prometheus. */
LEAT_API char *leat_stats_prometheus(const struct leat_feed *feed);
/* Merges such JSON of several ranks, or what `leat feed --json` prints: counts are added up, and the sentence names the
 * rank that is slower than the others, if there is one, and its limit. Free it with free(). */
LEAT_API enum leat_status leat_stats_merge(const char *const *json, size_t count, char **merged, struct leat_err *err);

/* The bad samples of the batches delivered, in plan order. The list keeps the first 1,000, or fewer if their texts need
 * more than 160 KiB; leat_stats counts all, and leat_options.bad gets all. If more than 32 samples of a batch are bad,
 * only the first 32 have their own `reason`. None of it depends on threads or memory. */
struct leat_bad {
	uint64_t epoch, position; /* where it would have been delivered */
	uint64_t sample;          /* its index in the source */
	const char *uri;
	uint64_t offset;
	const char *reason;
	bool replaced;
	enum leat_status status; /* LEAT_DATA, LEAT_UNSUPPORTED or LEAT_FUNCTION */
};
LEAT_API uint64_t leat_bad_count(const struct leat_feed *feed);                        /* entries in the list */
LEAT_API const struct leat_bad *leat_bad_at(const struct leat_feed *feed, uint64_t i); /* NULL when out of range; valid
                                                                                          until the next leat_next */

/* ---- recorder ---- */

/* A recorder collects *spans*, which say what a thread did from when to when, and *tracks*, values that change over
 * time, and writes them to a file that Perfetto (ui.perfetto.dev) and chrome://tracing show. Feeds record if
 * leat_options.recorder is set; programs add their own lanes, spans and tracks. Recording never waits: what comes
 * faster than it can be written is dropped and counted. Memory and the size of the file are limited, so a recorder may
 * stay open for days.
 *
 * A *lane* is a row of the timeline. Spans of a lane are recorded by one thread at a time, in the order in which they
 * end; they may be nested in each other, but must not overlap otherwise. Times are those of CLOCK_MONOTONIC, in ns. */

/* What a span is about: X(enumerator, name, meaning). New tags are added at the end. */
#define LEAT_TAGS(X)                                                                                                   \
	X(GET_BATCH, "get batch", "the consumer waits for a batch")                                                    \
	X(TO_DEVICE, "to device", "a batch is copied to the device")                                                   \
	X(RUN_BATCH, "run batch", "the consumer uses a batch")                                                         \
	X(FETCH, "fetch", "bytes are read from storage")                                                               \
	X(DECODE, "decode", "bytes are decompressed, parsed or decoded")                                               \
	X(TRANSFORM, "transform", "an op or a function runs")                                                          \
	X(CACHE, "cache", "a sample is put into or taken from the cache")                                              \
	X(COLLATE, "collate", "a sample goes to its row, or a batch is completed")

enum leat_tag {
#define LEAT_TAG_ENUM(tag, name, doc) LEAT_TAG_##tag,
	LEAT_TAGS(LEAT_TAG_ENUM)
#undef LEAT_TAG_ENUM
};
LEAT_API const char *leat_tag_name(enum leat_tag tag); /* "get batch" */

#define LEAT_RECORDER_MEMORY ((size_t)64 << 20)
#define LEAT_TRACE_BYTES ((uint64_t)256 << 20)

struct leat_recorder_options {
	size_t size;       /* sizeof the caller's struct; set by leat_recorder_options_init */
	const char *trace; /* file to write, in the Trace Event Format; NULL (default): none */
	/* Size limit of the file; default LEAT_TRACE_BYTES, at least 1 MiB. A file that gets there keeps every 2nd
	 * sample and batch, then every 4th, and so on, and says so. */
	uint64_t trace_bytes;
	size_t memory;    /* memory limit; default LEAT_RECORDER_MEMORY, at least 1 MiB */
	bool timeline;    /* keep a summary of all spans in memory, for a report */
	bool samplers;    /* record the use of CPU, memory, disk, network and GPU twice a second */
	const char *name; /* of the process, as the trace shows it; NULL (default): the program's */
	int rank, world;  /* shown with it; defaults as in leat_options */
	void (*log)(void *log_arg, enum leat_log_level level, const char *text); /* called by the recorder's thread */
	void *log_arg;
};
LEAT_API void leat_recorder_options_init_sized(struct leat_recorder_options *options, size_t size);
static inline void
leat_recorder_options_init(struct leat_recorder_options *options)
{
	leat_recorder_options_init_sized(options, sizeof *options);
}

/* `options` may be NULL. */
LEAT_API enum leat_status leat_recorder_open(const struct leat_recorder_options *options,
                                             struct leat_recorder **recorder, struct leat_err *err);

/* Finishes the trace file and frees the recorder. LEAT_INVALID: a feed still uses it; close the feed, then call again.
 * Any other failure is one of writing the file, and frees the recorder as well. Accepts NULL. In a process forked from
 * the one that opened it, does nothing. */
LEAT_API enum leat_status leat_recorder_close(struct leat_recorder *recorder, struct leat_err *err);

/* Adds a lane. If another one has the name, the lane's name gets a number. -1: no memory for it, or more than 4,096
 * lanes; spans of lane -1 are dropped. Any thread. */
LEAT_API int leat_recorder_lane(struct leat_recorder *recorder, const char *name);
/* The lane's thread will record no more spans. The next leat_recorder_lane with this name may continue the lane. */
LEAT_API void leat_recorder_lane_end(struct leat_recorder *recorder, int lane);
/* Records a span. `name` may be NULL: that of the tag. The recorder keeps a copy of the first 2,048 names that it sees;
 * spans with others get the name of their tag. `item`: the position of the sample or the number of the batch. */
LEAT_API void leat_recorder_span(struct leat_recorder *recorder, int lane, enum leat_tag tag, const char *name,
                                 uint64_t begin_ns, uint64_t end_ns, uint64_t item);
/* Records a value of a track, such as "queue depth". Any thread. */
LEAT_API void leat_recorder_count(struct leat_recorder *recorder, const char *track, uint64_t at_ns, double value);

LEAT_API uint64_t leat_recorder_spans(const struct leat_recorder *recorder);   /* recorded so far */
LEAT_API uint64_t leat_recorder_dropped(const struct leat_recorder *recorder); /* spans and values dropped so far */

/* What samplers saw of the GPUs that this process uses; all are means over the samples, unless said otherwise. */
struct leat_device {
	unsigned devices;        /* GPUs */
	uint64_t samples;        /* two a second */
	double utilization;      /* %, mean of the GPUs */
	double utilization_used; /* the same over the samples with at least 1 % */
	double busy;             /* share of samples with at least 1 %: 0 to 1 */
	double memory;           /* bytes used, by all processes, sum of the GPUs */
	double memory_peak;      /* the most of it */
	double memory_total;     /* bytes they have */
};
/* False: the recorder has no samplers, there is no GPU, or it was open for less than a moment. Any thread. */
LEAT_API bool leat_recorder_device_sized(struct leat_recorder *recorder, struct leat_device *device, size_t size);
static inline bool
leat_recorder_device(struct leat_recorder *recorder, struct leat_device *device)
{
	return leat_recorder_device_sized(recorder, device, sizeof *device);
}

/* ---- reports ---- */

/* Writes a run as one HTML page that needs no network and no other file (docs/XRAY.md). `run_json` is an object with
 * the figures: what leat_stats_json gives, or `leat feed --json` prints; what it lacks, the page leaves out. It
 * may also be the text of such a page, which is written again. `recorder`, if not NULL, adds a timeline, instead of the
 * page's, if its option `timeline` is set; it may go on recording. The file appears whole or not at all. */
LEAT_API enum leat_status leat_report_write(struct leat_recorder *recorder, const char *run_json, const char *path,
                                            struct leat_err *err);

/* ---- xray ---- */

struct leat_xray_options {
	size_t size;    /* sizeof the caller's struct; set by leat_xray_options_init */
	double step_ms; /* time of a training step per batch; 0 (default): batches are taken as fast as they come */
	unsigned step_threads; /* threads that compute during the step; 0 (default): it sleeps, as with a GPU */
	double seconds;        /* time to take for everything, roughly; default 10 */
	bool tries;            /* run the best remedies; default true */
	/* Called before each measurement, with a few words on it. NULL: not at all. */
	void (*progress)(void *progress_arg, const char *what);
	void *progress_arg;
	/* Called before each feed is opened, which may have another number of threads. Needed for functions in
	 * processes: no two feeds can use the same process, so start `options->threads` new ones and set `processes`
	 * and `process_count`. Those of the feed before can be ended. NULL: nothing to prepare. */
	enum leat_status (*prepare)(void *prepare_arg, struct leat_options *options, struct leat_err *err);
	void *prepare_arg;
};
LEAT_API void leat_xray_options_init_sized(struct leat_xray_options *options, size_t size);
static inline void
leat_xray_options_init(struct leat_xray_options *options)
{
	leat_xray_options_init_sized(options, sizeof *options);
}

/* Measures the parts of a pipeline alone (storage, CPU from memory, delivery), then says what limits the whole and
 * which remedies would help, with predicted rates; the best are tried. Opens several feeds, one after the other, with
 * `options`, except for epochs, log and bad. `options` and `xray` may be NULL. *json: an object with the keys limit,
 * sentence, parts, remedies and run; docs/XRAY.md describes it. Free it with free(). */
LEAT_API enum leat_status leat_xray(const char *spec, const struct leat_options *options,
                                    const struct leat_xray_options *xray, char **json, struct leat_err *err);

/* ---- introspection ---- */

/* How the engine runs a spec: stages with their fields and what is fused, the order of samples, how memory is divided,
 * what an epoch reads, and threads; as text for people or as JSON. Free it with free(). Opens the source but reads no
 * samples, and starts no threads. `batch` may be missing. `options` as for leat_open. */
LEAT_API enum leat_status leat_explain(const char *spec, const struct leat_options *options, bool json, char **text,
                                       struct leat_err *err);

/* All sources, ops, options and statistics as JSON; free it with free(). NULL: out of memory. */
LEAT_API char *leat_describe(void);

#ifdef __cplusplus
}
#endif
#endif
