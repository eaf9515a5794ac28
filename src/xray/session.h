/* session.h - an x-ray under way: what its files share
 *
 * xray.c runs the show, session.c opens variants of the spec, parts.c measures the parts and alternatives.c other ways
 * to run the pipeline. One thread. */
#ifndef LEAT_XRAY_SESSION_H
#define LEAT_XRAY_SESSION_H

#include "xray/xray.h"

/* Shares of the time. A pipeline with all parts and three remedies takes about all of it. */
#define LEAT_FOR_WHOLE 0.16
#define LEAT_FOR_STORAGE 0.12
#define LEAT_FOR_PART 0.05
#define LEAT_FOR_TRY 0.08

struct leat_session {
	struct leat_xray *x;
	struct leat_outline outline;
	struct leat_options options;
	struct leat_xray_options how;
	struct leat_burn burn;
	struct leat_probed whole, storage;
	uint64_t subset;  /* samples kept in memory */
	double distinct;  /* samples of an epoch, each once */
	double sleeps;    /* of ops from memory, per sample */
	double raw_bytes; /* of a sample in memory, before all ops */
	double time;      /* seconds for everything */
	struct leat_mem *mem;
};

/* session.c */
void leat_session_progress(const struct leat_session *s, const char *what);
struct leat_xray_part *leat_session_add_part(struct leat_session *s, const char *name, double rate, const char *fmt,
                                             ...) __attribute__((format(printf, 4, 5)));
/* Opens a variant of the spec and measures it. */
enum leat_status leat_session_probe(struct leat_session *s, const struct leat_variant *v, struct leat_probe *probe,
                                    struct leat_probed *out, struct leat_err *err);
/* The same for a part. One that cannot be run alone, for instance because there is no memory for it, is not measured.
 * A feed that was interrupted, a lack of memory or an exception in a function ends everything. */
enum leat_status leat_session_measure(struct leat_session *s, const struct leat_variant *v, struct leat_probe *probe,
                                      struct leat_probed *out, struct leat_err *err);
double leat_per_rank_batch(const struct leat_session *s);
/* Long enough for `share` of the time, and for reads to come and go several times. */
double leat_storage_seconds(const struct leat_session *s, double share);
/* Small batches, with as many samples ahead as the spec allows. */
void leat_scale_batch(const struct leat_session *s, struct leat_variant *v);
/* The subset, again and again, cached after `cache` ops. */
struct leat_variant leat_from_memory(const struct leat_session *s, int cache);
/* Ranks share nothing there: a part is measured as if there were one. */
struct leat_options leat_alone(const struct leat_session *s, unsigned threads);
/* Room for `share` of the subset, in a cache whose samples take `bytes` each. */
uint64_t leat_scaled_cache(const struct leat_session *s, double share, double bytes);
/* What counts of a spec with a cache: the epochs after the one that fills it. The subset, with a cache as much smaller.
 */
struct leat_variant leat_second_epoch(const struct leat_session *s, struct leat_options *o);
/* A variant of which the cache is filled first. */
enum leat_status leat_measure_pace(struct leat_session *s, const struct leat_variant *v, unsigned threads,
                                   struct leat_tempo *pace, struct leat_probed *out, struct leat_err *err);

/* parts.c, in this order */
enum leat_status leat_measure_whole(struct leat_session *s, struct leat_err *err);
enum leat_status leat_measure_storage(struct leat_session *s, struct leat_err *err);
void leat_choose_subset(struct leat_session *s);
enum leat_status leat_measure_cpu(struct leat_session *s, struct leat_err *err);
enum leat_status leat_measure_delivery(struct leat_session *s, struct leat_err *err);
enum leat_status leat_measure_cached(struct leat_session *s, struct leat_err *err);

/* alternatives.c */
enum leat_status leat_measure_alternatives(struct leat_session *s, struct leat_err *err);
/* The spec with more memory and no limit on batches ahead. */
struct leat_variant leat_more_reads(const struct leat_session *s, struct leat_options *o);

#endif
