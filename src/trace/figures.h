/* figures.h - the figures of a run: what each stage did, where it waited, and what limits
 *
 * Plain data. feed/figures.c fills it from a feed; the JSON of a run, Prometheus text and the table of `leat feed`
 * are made from it (docs/XRAY.md describes every figure).
 *
 * The workers of a feed run all stages of a sample one after the other, so no threads belong to a stage alone. Its
 * times are those of the pool, seen from the stage: *busy* while its own code runs; *starved* while a worker is busy
 * with earlier stages, or idle because no data is there; *blocked* while a worker is busy with later stages, or idle
 * because all batches ahead are made. So busy, starved and blocked add up to threads x time for every stage. Storage
 * counts as one thread that is busy while a read is in flight; deliver and step share the consumer's. */
#ifndef LEAT_TRACE_FIGURES_H
#define LEAT_TRACE_FIGURES_H

#include "base/str.h"
#include "trace/histogram.h"
#include "trace/lane.h"

enum {
	LEAT_FIGURE_STAGES = LEAT_TRACE_STAGES + 8,
	LEAT_FIGURE_EPOCHS = 128, /* the latest ones */
	LEAT_FIGURE_ENDPOINTS = 16,
	LEAT_FIGURE_TUNING = 16,
	LEAT_SENTENCE = 512,
};

/* ---- counted while the feed runs: written by the consumer, read by any thread ---- */

struct leat_epochs {
	_Atomic uint64_t count; /* epochs begun; number i is in one[i % LEAT_FIGURE_EPOCHS] */
	struct leat_epoch_counts {
		_Atomic uint64_t epoch, samples, wait_ns, run_ns;
	} one[LEAT_FIGURE_EPOCHS];
};

/* Adds one call of leat_next. `samples` 0: it gave no batch, and begins no epoch. */
void leat_epochs_add(struct leat_epochs *epochs, uint64_t epoch, uint64_t samples, uint64_t wait_ns, uint64_t run_ns);

enum leat_queue_kind { LEAT_QUEUE_BATCHES, LEAT_QUEUE_FREE, LEAT_QUEUE_RUNS, LEAT_QUEUE_REQUESTS, LEAT_QUEUES };

/* How full the queues were, each time the consumer asked for a batch. */
struct leat_depths {
	_Atomic uint64_t times, sum[LEAT_QUEUES];
};

/* ---- figures ---- */

enum leat_stage_kind {
	LEAT_STAGE_STORAGE, /* reads in flight */
	LEAT_STAGE_PLAN,    /* planning, and waiting for locks */
	LEAT_STAGE_READ,    /* starting reads, and copying what is in the page cache */
	LEAT_STAGE_UNPACK,
	LEAT_STAGE_OPS, /* a stage of the pipeline */
	LEAT_STAGE_CACHE,
	LEAT_STAGE_COLLATE,
	LEAT_STAGE_DELIVER, /* the consumer inside leat_next, awake */
	LEAT_STAGE_STEP,    /* the consumer between two calls */
};

struct leat_stage_figures {
	enum leat_stage_kind kind;
	char name[LEAT_MAX_NAME + 1]; /* "decode+resize+flip" */
	const char *op;               /* LEAT_STAGE_OPS: its first op; else NULL */
	const char *tag;              /* as in a trace */
	const char *waits_for;        /* stage, or what it waits for most; "": it hardly waits */
	unsigned threads;
	double busy_s, starved_s, blocked_s;
	uint64_t items, bytes, errors;
	double share;      /* busy, of all its time */
	double rate_alone; /* samples/s if its threads did nothing else; 0: unknown */
	bool decodes, random, python;
	bool before_cache; /* its results are cached */
};

struct leat_endpoint_figures {
	char host[280];
	uint64_t requests, retries, hedges, refused, failures, bytes;
	struct leat_distribution latency; /* until the first byte */
};

/* What was chosen for a knob, and why. */
struct leat_tuning_figures {
	char what[40], value[40], why[160];
	bool set; /* by the user */
};

enum leat_limit_kind {
	LEAT_LIMIT_STEP,
	LEAT_LIMIT_DISK,
	LEAT_LIMIT_NETWORK,
	LEAT_LIMIT_READ,
	LEAT_LIMIT_PREFETCH,
	LEAT_LIMIT_STAGE,
};

struct leat_limit {
	enum leat_limit_kind kind;
	int stage;                    /* LEAT_LIMIT_STAGE: its number in the list */
	char name[LEAT_MAX_NAME + 1]; /* "step", "disk", "network", "read", "prefetch", or an op */
	char sentence[LEAT_SENTENCE];
};

/* What the stages did, without the parts that need much memory. */
struct leat_stage_list {
	struct leat_stage_figures one[LEAT_FIGURE_STAGES];
	int count;
	unsigned threads;
	double cpus;      /* that the process may use: 1.5 with a quota of one and a half */
	double cpus_used; /* on average since the feed was opened; 0: unknown */
	double run_s;     /* the consumer's step */
	double wait_s, disk_wait_s;
	double idle_s, work_s; /* of the workers: idle for want of data, and busy */
	double running_s;      /* since the workers were started */
	double samples_per_s, mb_read_per_s;
	uint64_t samples, refused;
	bool ahead, remote, caches;
	bool stepless; /* it is known that the consumer does nothing with the batches */
};

struct leat_figures {
	struct leat_stats stats;
	struct leat_stage_list stages;
	struct leat_limit limit;
	struct leat_distribution batch_times;
	struct leat_epoch_figures {
		uint64_t epoch, samples;
		double seconds, wait_share;
	} epoch[LEAT_FIGURE_EPOCHS];
	int epochs;
	struct leat_first_batch {
		double list_ms, index_ms, connect_ms, first_byte_ms, decode_ms;
	} first;
	struct leat_queue_figures {
		const char *name;
		int depth, capacity;
		double mean;
	} queue[LEAT_QUEUES];
	struct leat_endpoint_figures endpoint[LEAT_FIGURE_ENDPOINTS];
	int endpoints;
	struct leat_tuning_figures tuning[LEAT_FIGURE_TUNING];
	int tunings;
	int rank, world;
	struct leat_device device; /* no samples: there is no GPU, or no recorder with samplers */
};

/* Reads what the consumer has counted. */
void leat_epochs_read(const struct leat_epochs *epochs, struct leat_figures *figures);

/* Fills in share, rate_alone, starved and blocked time and waits_for of all stages, from their kind, threads, items and
 * busy time, in the order in which samples pass them. `starved_s` and `blocked_s`: idle time of the workers. */
void leat_stages_relate(struct leat_stage_list *list, double starved_s, double blocked_s);

/* Appends the members of the run's JSON, without braces, each but the first after a comma: sentence, batch_ms,
 * first_batch, epochs, stages, queues, endpoints, tuning, rank, world, cpus, and device if it has samples. */
void leat_figures_add_json(const struct leat_figures *figures, struct leat_str *out);
/* Appends a number that is finite; others as null. Rounded to `digits` after the point, in any locale. */
void leat_figures_add_number(struct leat_str *out, double value, int digits);

/* prometheus.c: all figures as text for Prometheus. */
void leat_figures_add_prometheus(const struct leat_figures *figures, struct leat_str *out);

#endif
