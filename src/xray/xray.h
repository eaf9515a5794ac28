/* xray.h - measure the parts of a pipeline one by one, say what limits it, and try what would help
 *
 * In this order, each for its share of the time:
 *
 *	whole      the spec as it is, with the step
 *	storage    the same order of samples, ops removed: bytes only
 *	cpu        decode and ops on samples kept in memory, with 1 .. n threads
 *	delivery   finished samples kept in memory: batches are only filled
 *
 * then, unless the step is the limit, other places for a cache, fast decoding, more memory for reads. The law (law.h)
 * names the limit, remedies (remedy.h) are predicted, and the best of them are run.
 *
 * "In memory" is the engine's own cache, placed right after the source: what a few samples from all over the data go
 * through is exactly what a feed does with them, minus reading. One thread. */
#ifndef LEAT_XRAY_XRAY_H
#define LEAT_XRAY_XRAY_H

#include "base/str.h"
#include "xray/machine.h"
#include "xray/probe.h"
#include "xray/remedy.h"
#include "xray/variant.h"

enum { LEAT_XRAY_PARTS = 24, LEAT_XRAY_TRIES = 3 };

struct leat_xray_part {
	const char *name;
	unsigned threads; /* 0: does not matter */
	double rate;      /* samples/s; 0: not measured; INFINITY: no limit */
	double mb;        /* MB/s; 0: unknown */
	char note[LEAT_XRAY_TEXT];
};

struct leat_xray {
	struct leat_machine machine;
	struct leat_measures figures;
	struct leat_alternatives alternatives;
	struct leat_finding verdict;
	struct leat_xray_part part[LEAT_XRAY_PARTS];
	int parts;
	struct leat_remedy remedy[LEAT_REMEDIES];
	int remedies;
	double seconds; /* it took */
	double step_ms; /* of the consumer; 0: it had none */
	char *run;      /* statistics of the whole, as JSON; free with free() */
};

/* `options` and `how` may be NULL. On failure nothing is left to close. */
enum leat_status leat_xray_open(struct leat_xray *x, const char *spec, const struct leat_options *options,
                                const struct leat_xray_options *how, struct leat_err *err);
void leat_xray_close(struct leat_xray *x);

/* xray_json.c */
void leat_xray_add_json(const struct leat_xray *x, struct leat_str *out);

/* report.c: leat_report_write with settings for storage, for paths that are URIs; NULL: the defaults. */
struct leat_storage;
enum leat_status leat_report_store(struct leat_recorder *recorder, const char *run_json, const char *path,
                                   const struct leat_storage *storage, struct leat_err *err);

#endif
