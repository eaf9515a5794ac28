/* law.h - the bottleneck law: from the rates of the parts to the rate of the whole, and what limits it
 *
 * A feed is a closed line of parts that work at the same time: storage, workers (read, decode, ops), delivery, the
 * consumer. Its rate is that of the slowest part. Workers are the only part that does several kinds of work, so there
 * times add up: a sample costs a worker `read_s` and its ops. Two resources bound them: threads, which also pass while
 * an op sleeps, and CPUs, which other threads use too.
 *
 * All functions are pure: figures in, words and predictions out. */
#ifndef LEAT_XRAY_LAW_H
#define LEAT_XRAY_LAW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { LEAT_PACES = 8, LEAT_XRAY_NAME = 64, LEAT_XRAY_TEXT = 400 };

/* Ops on samples that are in memory, alone. */
struct leat_tempo {
	unsigned threads;
	double rate;  /* samples/s; INFINITY: there are none */
	double cpu_s; /* CPU seconds per sample, of all threads */
};

/* What was measured. Rates are samples per second; 0: not measured, INFINITY: no limit. */
struct leat_measures {
	double cpus;      /* that this process may use; a quota may be a fraction */
	unsigned cores;   /* that these CPUs share; fewer with hyperthreads */
	bool quota;       /* `cpus` is set by a cgroup */
	unsigned threads; /* workers */

	double storage;            /* same order, ops removed */
	double read_s, read_cpu_s; /* per sample: time of a worker, and CPU time of all threads */
	double read_bytes;         /* per sample */
	bool remote, warm;         /* warm: the data was in memory */
	unsigned requests;         /* most reads in flight */
	double window;             /* storage with more memory and batches ahead; 0: not measured */
	bool short_queue;          /* the spec limits the batches ahead */

	struct leat_tempo now; /* ops from memory with `threads` */
	char op[LEAT_XRAY_NAME];
	double op_share; /* of the time of all ops; the slowest op */

	double cached;                /* share of the samples that the spec's cache holds; 0: no cache */
	struct leat_tempo from_cache; /* ops after the cache */
	double cache_size, cache_all; /* bytes: what it has, and what all samples take */

	double delivery;                /* finished samples from memory */
	double consumer;                /* INFINITY: as fast as possible */
	unsigned step_threads;          /* CPUs the step uses */
	double step_ms, step_loaded_ms; /* alone, and while the loader runs; 0: not measured */
	int depth;                      /* batches made ahead */

	double whole;         /* everything, as given */
	double open_s;        /* until leat_open returned: listing and indexes */
	double first_s;       /* from then to the first batch */
	double epoch_samples; /* 0: unknown */
	double stalled;       /* share of the time of the whole that few slow batches took */
	double stall_s;       /* the longest of them */
	double slow_batches;  /* their share of all batches */
	double idle;          /* share of the workers' time meanwhile */
	double latency_s;     /* time that reads waited for storage, per sample */
};

/* The figures of one way to run the pipeline; leat_case_now and then changed. */
struct leat_case {
	unsigned threads;
	struct leat_tempo ops, from_cache;
	double storage, read_s, read_cpu_s;
	double cached;
	int depth;
};

/* The parts' rates in a case. */
struct leat_rates {
	double storage, workers, delivery, consumer;
	double loader; /* without the consumer */
	double whole;
	bool by_cpu; /* workers are bounded by CPUs, not by threads */
};

struct leat_case leat_case_now(const struct leat_measures *f);
struct leat_rates leat_predict(const struct leat_measures *f, const struct leat_case *c);

enum leat_finding_kind {
	LEAT_FINDING_STEP,
	LEAT_FINDING_STORAGE,
	LEAT_FINDING_OPS,
	LEAT_FINDING_READ,
	LEAT_FINDING_DELIVERY,
	LEAT_FINDING_PREFETCH, /* loading and the step take turns */
	LEAT_FINDING_WINDOW,   /* too little memory for reads in flight */
	LEAT_FINDING_CACHE,    /* it holds too few samples */
	LEAT_FINDING_STALLS,   /* few slow reads hold all others up */
	LEAT_FINDING_START,    /* listing and indexing take longer than they should */
	LEAT_FINDING_SLOWED,   /* the loader slows the step down */
};

struct leat_finding {
	enum leat_finding_kind kind;
	char limit[LEAT_XRAY_NAME];    /* "step", "disk", "network", "read", an op, ...: as leat_stats.limit */
	char also[LEAT_XRAY_NAME];     /* a second limit within a tenth of the first; "": none */
	char sentence[LEAT_XRAY_TEXT]; /* without a full stop */
	struct leat_rates rates;
};

void leat_judge(const struct leat_measures *f, struct leat_finding *verdict);

#endif
