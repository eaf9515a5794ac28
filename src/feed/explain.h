/* explain.h - what the engine makes of a spec: stages and passes, order, reads, threads and memory
 *
 * The public call is leat_explain in leat.h. It opens the source and divides the memory as leat_open does, but
 * allocates no buffers, starts no threads and reads no samples. One thread. */
#ifndef LEAT_FEED_EXPLAIN_H
#define LEAT_FEED_EXPLAIN_H

#include "base/str.h"
#include "feed/feed.h"

/* ---- passes (explain_stages.c) ---- */

/* Ops of a stage that share one pass over the elements. */
struct leat_explained_pass {
	const struct leat_bound *const *op;
	int ops;
	bool cropped; /* decodes only the part that a crop needs */
	bool reduced; /* may decode at reduced size */
};

/* Calls `visit` for each pass of a stage, in order. Choices that depend on the image size are shown for a large image.
 */
void leat_explain_passes(const struct leat_stage *stage,
                         void (*visit)(void *arg, const struct leat_explained_pass *pass), void *arg);

/* ---- reads (explain_reads.c) ---- */

/* What one epoch reads on this rank, with nothing cached and no read failing. */
struct leat_reads {
	const char *way; /* as in leat_stats.reads, or "mapped" or "none" */
	uint64_t requests, bytes;
	bool estimated; /* from the first positions: the epoch is long */
};

enum leat_status leat_explain_reads(struct leat_feed *feed, struct leat_reads *reads, struct leat_err *err);

/* ---- all of it (explain.c) ---- */

/* `feed` was opened with LEAT_BATCH_EXPLAINED. */
void leat_explain_add_text(struct leat_feed *feed, const struct leat_reads *reads, struct leat_str *out);
void leat_explain_add_json(struct leat_feed *feed, const struct leat_reads *reads, struct leat_str *out);

#endif
