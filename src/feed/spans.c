/* spans.c - see spans.h */
#include "feed/spans.h"

#include <stdio.h>
#include <string.h>

enum { TRACK_NS = 20 * 1000 * 1000, MAX_EVERY = 1024 };

/* ---- opening ---- */

void
leat_stage_describe(const struct leat_stage *stage, struct leat_stage_label *label)
{
	size_t len = 0;

	label->tag = LEAT_TAG_TRANSFORM;
	label->name[0] = '\0';
	for (int k = 0; k < stage->ops; k++) {
		const struct leat_op *op = stage->op[k]->op;

		if (op->kind == LEAT_OP_DECODE)
			label->tag = LEAT_TAG_DECODE;
		if (len + strlen(op->name) + 8 < sizeof label->name)
			len += (size_t)snprintf(label->name + len, sizeof label->name - len, "%s%s", k > 0 ? " + " : "",
			                        op->name);
	}
}

static void
name_stages(struct leat_spans *spans, const struct leat_pipeline *p)
{
	struct leat_stage_label label;

	for (int s = 0; s < p->stages; s++) {
		leat_stage_describe(&p->stage[s], &label);
		spans->stage[s].name = leat_recorder_name(spans->recorder, label.name);
		spans->stage[s].tag = label.tag;
	}
	if (p->mixes > 0)
		spans->mix = leat_recorder_name(spans->recorder, p->mix[0]->op->name);
	spans->unpack = leat_recorder_name(spans->recorder, "unpack");
	spans->copy = leat_recorder_name(spans->recorder, "copy");
	spans->unit = leat_recorder_name(spans->recorder, "unit");
	spans->stretch = leat_recorder_name(spans->recorder, "stretch");
	spans->block = leat_recorder_name(spans->recorder, "block");
}

/* Lanes for which there is no memory are left out. */
static void
add_lanes(struct leat_spans *spans, const struct leat_trace *trace)
{
	struct leat_recorder *r = spans->recorder;

	spans->consumer_lane = leat_recorder_lane(r, trace->consumer->name);
	spans->consumer = leat_recorder_ring(r, spans->consumer_lane);
	for (unsigned i = 0; i < spans->workers; i++) {
		spans->worker[i].lane = leat_recorder_lane(r, trace->worker[i].name);
		spans->worker[i].ring = leat_recorder_ring(r, spans->worker[i].lane);
	}
	spans->reads_lane = leat_recorder_add_lane(r, "reads", true);
	spans->reads = leat_recorder_ring(r, spans->reads_lane);
}

enum leat_status
leat_spans_check(const struct leat_options *options, struct leat_err *err)
{
	if (!options->recorder || leat_recorder_is_ours(options->recorder))
		return LEAT_OK;
	return leat_fail(err, LEAT_INVALID,
	                 "the recorder was opened in another process; open it after the fork, in the process that uses "
	                 "it");
}

enum leat_status
leat_spans_open(struct leat_feed *feed, struct leat_err *err)
{
	struct leat_recorder *r = feed->options.recorder;
	size_t bytes = sizeof(struct leat_spans) + feed->budget.threads * sizeof(struct leat_worker_spans);
	struct leat_spans *spans;

	if (!r)
		return LEAT_OK;
	spans = leat_alloc(leat_recorder_mem(r), bytes);
	if (!spans)
		return leat_fail(err, LEAT_NOMEM, "the recorder has no memory for one more feed");
	leat_recorder_hold(r);
	spans->recorder = r;
	spans->workers = feed->budget.threads;
	spans->batch = UINT64_MAX;
	spans->device_lane = -1;
	name_stages(spans, &feed->pipeline);
	add_lanes(spans, &feed->trace);
	feed->spans = spans;
	return LEAT_OK;
}

void
leat_spans_close(struct leat_feed *feed)
{
	struct leat_spans *spans = feed->spans;
	struct leat_recorder *r;

	if (!spans)
		return;
	r = spans->recorder;
	leat_recorder_lane_end(r, spans->consumer_lane);
	leat_recorder_lane_end(r, spans->reads_lane);
	leat_recorder_lane_end(r, spans->device_lane);
	for (unsigned i = 0; i < spans->workers; i++)
		leat_recorder_lane_end(r, spans->worker[i].lane);
	leat_free(leat_recorder_mem(r), spans);
	leat_recorder_let_go(r);
	feed->spans = NULL;
}

/* ---- workers ---- */

/* Do the samples of this run get spans, or only the run? */
static bool
times_samples(const struct leat_feed *feed, const struct leat_run *run)
{
	const struct leat_pipeline *p = &feed->pipeline;

	return p->stages > 0 && !run->bulk && !(run->item[0].cached && p->cached == p->stages);
}

uint64_t
leat_spans_every(uint64_t cost, uint64_t least)
{
	uint64_t n = 1;

	while (cost > 0 && n * cost < least && n < MAX_EVERY)
		n *= 2;
	return n;
}

static uint64_t
position_of(const struct leat_run *run, int item)
{
	return leat_batch_positions(run->batch)[run->first_row + item];
}

void
leat_spans_begin_run(struct leat_worker *w, const struct leat_run *run)
{
	struct leat_worker_spans *own = &w->feed->spans->worker[w->work.thread];

	w->every = (uint16_t)leat_spans_every(
		own->cost, run->items > 0 && times_samples(w->feed, run) ? LEAT_SPAN_LEAST_NS : LEAT_SPAN_LEAST_RUN_NS);
	w->ring = run->items > 0 && own->runs++ % w->every == 0 ? own->ring : NULL;
	w->untimed = w->ring && times_samples(w->feed, run) ? 0 : leat_feed_untimed(w->feed);
}

static void
push(const struct leat_worker *w, enum leat_tag tag, uint32_t name, uint64_t begin, uint64_t end, uint64_t item)
{
	struct leat_span span = {
		.begin = begin,
		.end = end,
		.item = item,
		.name = name,
		.tag = (uint16_t)tag,
		.every = w->every,
	};

	if (w->ring && end - begin >= LEAT_SPAN_SHORT_NS)
		leat_ring_push(w->ring, &span);
}

void
leat_spans_end_run(struct leat_worker *w, const struct leat_run *run, uint64_t begin, uint64_t middle)
{
	struct leat_spans *spans = w->feed->spans;
	struct leat_worker_spans *own = &spans->worker[w->work.thread];
	bool samples;
	uint64_t cost;

	if (run->items == 0)
		return;
	samples = times_samples(w->feed, run);
	cost = (w->run_ended - begin) / (samples ? (uint64_t)run->items : 1);
	own->cost = own->cost ? (3 * own->cost + cost) / 4 : cost;
	push(w, LEAT_TAG_FETCH, 0, begin, middle, position_of(run, 0));
	if (!samples && run->item[0].cached)
		push(w, LEAT_TAG_CACHE, 0, middle, w->run_ended, position_of(run, 0));
	else if (!samples)
		push(w, LEAT_TAG_COLLATE, spans->copy, middle, w->run_ended, position_of(run, 0));
}

uint64_t
leat_spans_add(const struct leat_worker *w, enum leat_tag tag, uint32_t name, uint64_t begin, uint64_t item)
{
	uint64_t end = leat_now();

	push(w, tag, name, begin, end, item);
	return end;
}

uint64_t
leat_spans_add_stages(const struct leat_worker *w, int from, int to, const uint64_t *stage_ns, uint64_t begin,
                      uint64_t item)
{
	const struct leat_spans *spans = w->feed->spans;

	for (int s = from; s < to; s++) {
		push(w, spans->stage[s].tag, spans->stage[s].name, begin, begin + stage_ns[s], item);
		begin += stage_ns[s];
	}
	return begin;
}

/* The same on all ranks, also on those that have no part of an epoch's last batch. */
static uint64_t
number_of(const struct leat_feed *feed, const struct leat_batch *batch)
{
	return batch->epoch * leat_ranks_batches(feed) + batch->begin / (uint64_t)feed->global_rows;
}

/* Runs may be left out; batches and units are not. */
static void
push_always(const struct leat_worker *w, const struct leat_span *span)
{
	const struct leat_worker_spans *own = &w->feed->spans->worker[w->work.thread];

	if (own->ring && span->end - span->begin >= LEAT_SPAN_SHORT_NS)
		leat_ring_push(own->ring, span);
}

uint64_t
leat_spans_add_batch(const struct leat_worker *w, enum leat_tag tag, uint32_t name, uint64_t begin,
                     const struct leat_batch *batch)
{
	struct leat_span span = {
		.begin = begin,
		.end = leat_now(),
		.item = number_of(w->feed, batch),
		.name = name,
		.tag = (uint16_t)tag,
		.every = 1,
	};

	push_always(w, &span);
	return span.end;
}

void
leat_spans_add_unit(const struct leat_worker *w, uint64_t begin, uint64_t number)
{
	struct leat_span span = {
		.begin = begin,
		.end = leat_now(),
		.item = number,
		.name = w->feed->spans->unit,
		.tag = LEAT_TAG_DECODE,
		.every = 1,
	};

	push_always(w, &span);
}

/* ---- reads ---- */

void
leat_spans_add_read(struct leat_feed *feed, const struct leat_request *request, uint32_t name, uint64_t item,
                    uint64_t end)
{
	struct leat_span span = {
		.begin = request->submitted_ns,
		.end = end,
		.item = item,
		.name = name,
		.tag = LEAT_TAG_FETCH,
		.every = 1,
	};

	if (feed->spans->reads && end >= span.begin)
		leat_ring_push(feed->spans->reads, &span);
}

/* ---- the consumer ---- */

static void
push_batch(const struct leat_spans *spans, enum leat_tag tag, uint64_t begin, uint64_t end, uint64_t batch)
{
	struct leat_span span = {.begin = begin, .end = end, .item = batch, .tag = (uint16_t)tag, .every = 1};

	leat_ring_push(spans->consumer, &span);
}

/* How far ahead the feed is. Not for every batch if they come fast. */
static void
add_tracks(struct leat_feed *feed, uint64_t now)
{
	struct leat_spans *spans = feed->spans;
	int complete = 0, requests;

	if (now - spans->tracked_ns < TRACK_NS)
		return;
	spans->tracked_ns = now;
	pthread_mutex_lock(&feed->lock);
	for (int i = 0; i < feed->flight_count; i++)
		complete += feed->flight[(feed->flight_head + i) % feed->budget.buffers]->complete;
	requests = feed->fetch.under_way;
	pthread_mutex_unlock(&feed->lock);
	leat_recorder_count(spans->recorder, "batches ready", now, complete);
	leat_recorder_count(spans->recorder, "reads in flight", now, requests);
}

void
leat_spans_next(struct leat_feed *feed, uint64_t begin, uint64_t end, enum leat_status status,
                const struct leat_batch *batch)
{
	struct leat_spans *spans = feed->spans;
	uint64_t asked = spans->asked_ns ? spans->asked_ns : begin;

	/* Who asks with a timeout, and again, waits from the first time on. */
	spans->asked_ns = status == LEAT_TIMEOUT ? asked : 0;
	if (status == LEAT_TIMEOUT || !spans->consumer)
		return;
	if (spans->batch != UINT64_MAX)
		push_batch(spans, LEAT_TAG_RUN_BATCH, spans->got_ns, asked, spans->batch);
	spans->batch = UINT64_MAX;
	if (status != LEAT_OK)
		return;
	spans->batch = number_of(feed, batch);
	spans->got_ns = end;
	push_batch(spans, LEAT_TAG_GET_BATCH, asked, end, spans->batch);
	add_tracks(feed, end);
}

/* Times come from the device's clock and may be a little off, but the spans of a lane must not overlap. */
void
leat_spans_to_device(struct leat_feed *feed, uint64_t begin, uint64_t end)
{
	struct leat_spans *spans = feed->spans;

	if (spans->copies == 0)
		spans->device_lane = leat_recorder_lane(spans->recorder, "device");
	if (begin < spans->copied_ns)
		begin = spans->copied_ns;
	if (end < begin)
		end = begin;
	leat_recorder_span(spans->recorder, spans->device_lane, LEAT_TAG_TO_DEVICE, NULL, begin, end, spans->copies++);
	spans->copied_ns = end;
}
