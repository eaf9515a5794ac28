/* stretch.c - see stretch.h */
#include "feed/stretch.h"
#include "feed/feed.h"

enum leat_status
leat_stretches_open(struct leat_feed *feed, struct leat_err *err)
{
	struct leat_fetch *fetch = &feed->fetch;
	size_t count = (size_t)feed->budget.stretches;

	if (!count)
		return LEAT_OK;
	fetch->stretch = leat_alloc_array(&feed->mem, count, sizeof(*fetch->stretch));
	if (!fetch->stretch)
		return leat_fail_mem(err, &feed->mem, count * sizeof(*fetch->stretch), "the reads in flight");
	for (size_t i = 0; i < count; i++)
		fetch->stretch[i].request.feed = feed;
	return LEAT_OK;
}

void
leat_stretches_close(struct leat_feed *feed)
{
	leat_free(&feed->mem, feed->fetch.stretch);
	feed->fetch.stretch = NULL;
}

void
leat_stretches_reset(struct leat_feed *feed)
{
	struct leat_fetch *fetch = &feed->fetch;

	for (int i = 0; fetch->stretch && i < feed->budget.stretches; i++) {
		fetch->stretch[i].state = LEAT_STRETCH_NONE;
		fetch->stretch[i].users = 0;
		fetch->stretch[i].waiting = NULL;
	}
	fetch->current = fetch->unstarted = NULL;
}

/* ---- planning: under the lock ---- */

static bool
fits(const struct leat_feed *feed, size_t bytes)
{
	return bytes <= feed->budget.stretch_bytes / 2;
}

static void
free_unused(struct leat_feed *feed, struct leat_stretch *stretch)
{
	bool read = stretch->state == LEAT_STRETCH_THERE || stretch->state == LEAT_STRETCH_LOST;

	if (!read || stretch->users > 0 || stretch == feed->fetch.current)
		return;
	leat_window_give(&feed->fetch, &stretch->part);
	stretch->state = LEAT_STRETCH_NONE;
}

/* No sample planned from now on uses the current stretch. */
static void
leave_current(struct leat_feed *feed)
{
	struct leat_stretch *stretch = feed->fetch.current;

	feed->fetch.current = NULL;
	if (stretch)
		free_unused(feed, stretch);
}

/* Does it have these bytes, and does no other sample use them? Ops may change a sample in place. */
static bool
contains(const struct leat_stretch *stretch, const struct leat_extent *extent, uint64_t epoch)
{
	return stretch->state != LEAT_STRETCH_LOST && stretch->epoch == epoch && stretch->file == extent->file &&
	       extent->offset >= stretch->next && extent->offset < stretch->end &&
	       extent->length <= stretch->end - extent->offset;
}

/* Positions of this rank, from one on, to the end of the epoch. */
struct walk {
	uint64_t epoch, begin; /* of the global batch */
	uint64_t at, end;      /* this rank's rows of it */
};

static bool
step(const struct leat_feed *feed, struct walk *walk)
{
	uint64_t epoch = walk->epoch;

	if (++walk->at < walk->end)
		return true;
	walk->begin += (uint64_t)feed->global_rows;
	if (walk->begin >= feed->pipeline.plan.size || !leat_plan_next_batch(feed, &epoch, &walk->begin) ||
	    epoch != walk->epoch)
		return false;
	walk->end = leat_ranks_share(feed, walk->begin, &walk->at);
	return walk->at < walk->end;
}

/* Can the stretch, which ends at `end` so far, go on to this sample? */
static bool
reaches(const struct leat_feed *feed, const struct leat_stretch *stretch, uint64_t last, uint64_t end,
        const struct leat_extent *extent)
{
	const struct leat_source *source = &feed->pipeline.source;
	struct leat_object entry;
	uint64_t cost = leat_source_object(source, stretch->file, &entry)->store->kind->request_cost;

	if (extent->file != stretch->file || extent->offset < (source->kind->copies ? last : end) ||
	    !fits(feed, (size_t)extent->length))
		return false;
	return (extent->offset < end || extent->offset - end <= cost) &&
	       extent->offset + extent->length - stretch->begin <= feed->budget.stretch_bytes;
}

/* Where a stretch that begins with this sample, of the run's next row, should end. */
static uint64_t
look_ahead(struct leat_feed *feed, const struct leat_run *run, const struct leat_stretch *stretch,
           const struct leat_extent *first)
{
	const struct leat_batch *batch = run->batch;
	struct walk walk = {batch->epoch, batch->begin, batch->first + (uint64_t)batch->planned,
	                    batch->first + (uint64_t)batch->own_rows};
	uint64_t last = first->offset, end = first->offset + first->length;

	for (int i = 0; i < LEAT_STRETCH_LOOK && step(feed, &walk); i++) {
		uint64_t sample = leat_plan_at(&feed->pipeline.plan, walk.epoch, walk.at);
		struct leat_extent extent;

		if (feed->cache && leat_cache_has(feed->cache, sample))
			continue;
		leat_source_locate(&feed->pipeline.source, sample, &extent);
		if (extent.damaged || !extent.length)
			continue;
		if (!reaches(feed, stretch, last, end, &extent))
			break;
		last = extent.offset;
		if (extent.offset + extent.length > end)
			end = extent.offset + extent.length;
	}
	return end;
}

static struct leat_stretch *
unused(const struct leat_feed *feed)
{
	for (int i = 0; i < feed->budget.stretches; i++)
		if (feed->fetch.stretch[i].state == LEAT_STRETCH_NONE)
			return &feed->fetch.stretch[i];
	return NULL;
}

/* Plans a stretch that begins with the sample of the run's next row. NULL: no room now. */
static struct leat_stretch *
begin(struct leat_feed *feed, const struct leat_run *run, const struct leat_extent *first)
{
	struct leat_fetch *fetch = &feed->fetch;
	struct leat_stretch *stretch;

	leave_current(feed);
	stretch = unused(feed);
	/* Before looking ahead, which is in vain without room. */
	if (!stretch || fetch->requests >= fetch->limit ||
	    !leat_window_take(fetch, &stretch->part, feed->budget.stretch_bytes))
		return NULL;
	stretch->file = first->file;
	stretch->begin = stretch->next = first->offset;
	stretch->epoch = run->batch->epoch;
	stretch->end = look_ahead(feed, run, stretch, first);
	stretch->part.size = ((size_t)(stretch->end - stretch->begin) + LEAT_APART - 1) & ~(size_t)(LEAT_APART - 1);
	stretch->state = LEAT_STRETCH_PLANNED;
	stretch->waiting = NULL;
	stretch->after = fetch->unstarted;
	fetch->unstarted = stretch;
	fetch->requests++;
	fetch->current = stretch;
	return stretch;
}

static void
pin(struct leat_run *run, struct leat_stretch *stretch)
{
	struct leat_unit_wait *wait = &run->wait[run->stretches];

	if (run->stretches > 0 && run->stretch[run->stretches - 1] == stretch)
		return;
	run->stretch[run->stretches++] = stretch;
	stretch->users++;
	if (stretch->state == LEAT_STRETCH_THERE)
		return;
	*wait = (struct leat_unit_wait){run, stretch->waiting};
	stretch->waiting = wait;
	atomic_fetch_add(&run->pending, 1);
}

/* Finds or plans the stretch for an item, and sets where its bytes will be. */
static bool
take(struct leat_feed *feed, struct leat_run *run, struct leat_run_item *item)
{
	const struct leat_extent *extent = &item->raw.extent;
	struct leat_stretch *stretch = feed->fetch.current;

	if (!stretch || !contains(stretch, extent, run->batch->epoch)) {
		stretch = run->stretches < LEAT_RUN_UNITS ? begin(feed, run, extent) : NULL;
		if (!stretch)
			return false;
	} else if (run->stretches == LEAT_RUN_UNITS && run->stretch[LEAT_RUN_UNITS - 1] != stretch) {
		return false;
	}
	pin(run, stretch);
	stretch->next = feed->pipeline.source.kind->copies ? extent->offset : extent->offset + extent->length;
	item->raw.head = stretch->part.bytes + (extent->offset - stretch->begin);
	item->raw.payload = stretch->part.bytes + (extent->offset - stretch->begin) + extent->head;
	item->raw.tail = item->raw.head + extent->length - extent->tail;
	return true;
}

/* Gives a run that has nothing to read yet memory for one long item. */
static bool
take_alone(struct leat_feed *feed, struct leat_run *run, size_t bytes)
{
	size_t least = feed->budget.run_bytes;

	if (run->bytes > 0)
		return false;
	leave_current(feed);
	leat_window_give(&feed->fetch, &run->part);
	/* Long direct samples go straight to the batch. */
	if (leat_window_take(&feed->fetch, &run->part, bytes > least && !feed->budget.form.direct ? bytes : least))
		return true;
	leat_window_take(&feed->fetch, &run->part, 0);
	return false;
}

enum leat_stretch_plan
leat_stretch_plan(struct leat_feed *feed, struct leat_run *run, struct leat_run_item *item, int64_t row)
{
	const struct leat_batch_form *form = &feed->budget.form;
	size_t bytes = leat_item_bytes(item), payload = bytes - item->raw.extent.head - item->raw.extent.tail;

	if (!bytes)
		return LEAT_STRETCH_UNFIT;
	if (run->requests > 0)
		return LEAT_STRETCH_FULL;
	/* A file that changed may have samples that outgrew the batch. */
	if (!fits(feed, bytes) ||
	    (form->direct && payload > form->column[0].capacity - (uint64_t)leat_batch_offsets(run->batch, 0)[row]))
		return take_alone(feed, run, bytes) ? LEAT_STRETCH_UNFIT : LEAT_STRETCH_FULL;
	if (!take(feed, run, item))
		return LEAT_STRETCH_FULL;
	if (form->direct)
		item->to = leat_batch_direct_row(run->batch, row, payload);
	run->bytes += bytes;
	return LEAT_STRETCH_TAKEN;
}

void
leat_stretches_unpin(struct leat_feed *feed, struct leat_run *run)
{
	for (int i = 0; i < run->stretches; i++) {
		run->stretch[i]->users--;
		free_unused(feed, run->stretch[i]);
	}
	run->stretches = 0;
}

/* ---- reading ---- */

/* Workers read the samples of a lost stretch one by one, so that each gets its own error: into other memory, because
 * samples may overlap, or for direct ones, which don't, into the stretch. */
static void
mark_lost(const struct leat_stretch *stretch, struct leat_run *run)
{
	static const struct leat_unit lost = {.lost = true};

	for (int i = 0; i < run->items; i++) {
		struct leat_run_item *item = &run->item[i];

		if (!leat_item_bytes(item) || item->raw.head < stretch->part.bytes ||
		    item->raw.head >= stretch->part.bytes + stretch->part.size)
			continue;
		if (item->to)
			item->unread = true;
		else
			item->raw.unit = &lost;
	}
}

/* Under the lock. */
static void
finish(struct leat_feed *feed, struct leat_stretch *stretch, bool there)
{
	feed->fetch.requests--;
	stretch->state = there ? LEAT_STRETCH_THERE : LEAT_STRETCH_LOST;
	while (stretch->waiting) {
		struct leat_unit_wait *wait = stretch->waiting;

		stretch->waiting = wait->next;
		if (!there)
			mark_lost(stretch, wait->run);
		leat_run_progress(feed, wait->run);
	}
	free_unused(feed, stretch);
}

static void
complete(struct leat_read *read)
{
	struct leat_stretch *stretch = read->arg;
	struct leat_feed *feed = stretch->request.feed;

	leat_count(&feed->trace.io[read->object.store->first_thread + read->thread].count.read_wait_ns, read->took_ns);
	pthread_mutex_lock(&feed->lock);
	stretch->request.under_way = false;
	finish(feed, stretch, read->status == LEAT_OK);
	pthread_mutex_unlock(&feed->lock);
	leat_fetch_refill(feed);
	leat_fetch_leave(feed); /* the feed may be freed after this */
}

static void
start(struct leat_feed *feed, struct leat_stretch *stretch)
{
	struct leat_object entry;

	stretch->request.read = (struct leat_read){
		.offset = stretch->begin,
		.iov = {{stretch->part.bytes, (size_t)(stretch->end - stretch->begin)}},
		.iovs = 1,
		.done = complete,
		.arg = stretch,
		.epoch = stretch->epoch + 1,
	};
	stretch->request.read.object = *leat_source_object(&feed->pipeline.source, stretch->file, &entry);
	if (leat_request_submit(feed, &stretch->request) == LEAT_OK)
		return;
	pthread_mutex_lock(&feed->lock);
	finish(feed, stretch, false);
	pthread_mutex_unlock(&feed->lock);
}

void
leat_stretches_start(struct leat_feed *feed)
{
	for (;;) {
		struct leat_stretch *stretch;

		pthread_mutex_lock(&feed->lock);
		stretch = feed->fetch.unstarted;
		if (stretch) {
			feed->fetch.unstarted = stretch->after;
			stretch->state = LEAT_STRETCH_READING;
		}
		pthread_mutex_unlock(&feed->lock);
		if (!stretch)
			return;
		start(feed, stretch);
	}
}

void
leat_stretches_cancel(struct leat_feed *feed)
{
	for (int i = 0; i < feed->budget.stretches; i++) {
		struct leat_read *read = &feed->fetch.stretch[i].request.read;

		if (feed->fetch.stretch[i].request.under_way)
			read->object.store->kind->cancel(read->object.store, read);
	}
}
