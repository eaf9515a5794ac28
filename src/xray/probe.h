/* probe.h - run a feed for a moment and measure it
 *
 * A probe opens a spec, takes batches as a training loop would until its time is over, and closes it. Rates are those
 * between the first batch and the last one; what comes before, such as listing, is measured apart. One thread. */
#ifndef LEAT_XRAY_PROBE_H
#define LEAT_XRAY_PROBE_H

#include "base/mem.h"
#include "leat.h"
#include "xray/burn.h"
#include "xray/law.h"

struct leat_probe {
	const char *spec;
	const struct leat_options *options;
	double seconds;         /* to measure; at most three times as long for at least two batches */
	double step_ms;         /* of the consumer, per batch; 0: as fast as possible */
	struct leat_burn *burn; /* the step computes; NULL: it sleeps */
	uint64_t fill;          /* samples to take before, to fill a cache; 0: none */
	double seek;            /* where to begin, as a share of the epoch */
	bool keep_json;         /* leat_stats_json of the feed */
};

struct leat_probed {
	double rate;              /* samples/s; 0: no batch came in time */
	double seconds, samples;  /* of the measurement */
	double cpu_s;             /* per sample, of the process without the step */
	double sleeps;            /* per sample: how often a thread of the process gave up its CPU */
	double read_s, op_s;      /* per sample: time of workers */
	double read_bytes, bytes; /* per sample: read from storage, and delivered */
	double waited;            /* share of the consumer's time */
	double io_wait;           /* seconds in which I/O threads waited for storage, per second */
	double idle;              /* share of the workers' time */
	double open_s, first_s;
	double step_ms; /* mean, as it took */
	double stalled, slow_batches, stall_s;
	unsigned threads, requests;
	int depth;
	int world;
	bool remote;
	double prefetch, batch, epoch_samples, source_samples; /* prefetch: as the spec says, or -1 */
	double cache_bytes, cache_kept, cache_size;            /* kept: samples */
	double memory_left;                                    /* of memory=, beyond the minimum */
	char op[LEAT_XRAY_NAME];                               /* the slowest */
	double op_share;
	char *json; /* free with free() */
};

enum leat_status leat_probe(const struct leat_probe *probe, struct leat_probed *probed, struct leat_err *err);

#endif
