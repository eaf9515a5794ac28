/* spans.h - what a feed records, if leat_options.recorder is set
 *
 * Lanes: the consumer (get batch, run batch), each worker (fetch, decode, transform, cache, collate), one for reads in
 * flight, whose spans overlap, and one for copies to the device. The item of a span is the position of a sample in its
 * epoch, or the number of a batch, counted over all epochs, which is the same on every rank. A span for a run of
 * samples has the position of the first.
 *
 * Whether to record is decided once per run of samples. If a sample takes less than LEAT_SPAN_LEAST_NS, only one run in
 * so many is recorded that recording costs little. Samples that are only copied get one span for the whole run, if that
 * takes LEAT_SPAN_LEAST_RUN_NS; else likewise. Parts
 * of a sample that take less than LEAT_SPAN_SHORT_NS get none.
 *
 * Threads: each function says which. Without a recorder, feed->spans is NULL and none of them is called. */
#ifndef LEAT_FEED_SPANS_H
#define LEAT_FEED_SPANS_H

#include "base/clock.h"
#include "feed/feed.h"
#include "trace/recorder.h"

enum { LEAT_SPAN_LEAST_NS = 5000, LEAT_SPAN_LEAST_RUN_NS = 50000, LEAT_SPAN_SHORT_NS = 1000 };

/* What a stage does, for the names and tags of spans. */
struct leat_stage_label {
	char name[64]; /* "decode + resize" */
	enum leat_tag tag;
};

struct leat_worker_spans {
	struct leat_ring *ring; /* NULL: no memory for a lane */
	int lane;
	uint64_t cost; /* of a sample, or of a run that gets one span; ns, smoothed */
	uint64_t runs;
};

struct leat_spans {
	struct leat_recorder *recorder;
	struct leat_ring *consumer, *reads; /* may be NULL */
	int consumer_lane, reads_lane;
	int device_lane;    /* -1: none yet, because nothing was copied to a device */
	uint64_t copies;    /* to the device */
	uint64_t copied_ns; /* when the last of them ended */
	uint64_t asked_ns;  /* when the consumer began to ask for the batch that it does not have yet; 0: it does not */
	uint64_t got_ns;    /* when it got its batch */
	uint64_t tracked_ns; /* when the tracks got values */
	uint64_t batch;      /* number of the batch that the consumer has; UINT64_MAX: none */
	uint32_t unpack, copy, unit, stretch, block, mix; /* names */
	struct {
		uint32_t name;
		enum leat_tag tag;
	} stage[LEAT_MAX_OPS];
	unsigned workers;
	struct leat_worker_spans worker[];
};

void leat_stage_describe(const struct leat_stage *stage, struct leat_stage_label *label);

/* Before anything is opened: can this process use the recorder? */
enum leat_status leat_spans_check(const struct leat_options *options, struct leat_err *err);
/* After the pipeline and the budget are made, and after all threads have stopped. */
enum leat_status leat_spans_open(struct leat_feed *feed, struct leat_err *err);
void leat_spans_close(struct leat_feed *feed);

/* One run in how many is recorded, so that recording costs little: if `cost` ns, 0 if not known yet, were at least
 * `least`, it would be each. */
uint64_t leat_spans_every(uint64_t cost, uint64_t least);

/* ---- workers ---- */

/* Sets worker->ring, to record this run, or NULL. */
void leat_spans_begin_run(struct leat_worker *worker, const struct leat_run *run);
/* `begin` to `middle`: reading; then until worker->run_ended: the samples. */
void leat_spans_end_run(struct leat_worker *worker, const struct leat_run *run, uint64_t begin, uint64_t middle);
/* Records a span if worker->ring is set and the span is long enough. Returns its end, now. */
uint64_t leat_spans_add(const struct leat_worker *worker, enum leat_tag tag, uint32_t name, uint64_t begin,
                        uint64_t item);
/* The stages of a sample, which followed one another. Returns the end of the last one. */
uint64_t leat_spans_add_stages(const struct leat_worker *worker, int from, int to, const uint64_t *stage_ns,
                               uint64_t begin, uint64_t item);

/* Spans of whole batches and units, which are always recorded. */
uint64_t leat_spans_add_batch(const struct leat_worker *worker, enum leat_tag tag, uint32_t name, uint64_t begin,
                              const struct leat_batch *batch);
void leat_spans_add_unit(const struct leat_worker *worker, uint64_t begin, uint64_t number);

/* ---- reads: under the feed's lock ---- */

/* A read that was submitted has completed at `end`. */
void leat_spans_add_read(struct leat_feed *feed, const struct leat_request *request, uint32_t name, uint64_t item,
                         uint64_t end);

/* ---- the consumer ---- */

/* leat_next returns `status` and, if that is LEAT_OK, `batch`. */
void leat_spans_next(struct leat_feed *feed, uint64_t begin, uint64_t end, enum leat_status status,
                     const struct leat_batch *batch);
/* A batch was copied to the device. The first one adds the lane. */
void leat_spans_to_device(struct leat_feed *feed, uint64_t begin, uint64_t end);

#endif
