/* stretch.c - see stretch.h */
#include "feed/stretch.h"
#include "feed/spans.h"

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
	if (feed->budget.spread == 1)
		return LEAT_OK;
	fetch->near = leat_alloc_array(&feed->mem, LEAT_STRETCH_LOOK, sizeof(*fetch->near));
	return fetch->near ? LEAT_OK
	                   : leat_fail_mem(err, &feed->mem, LEAT_STRETCH_LOOK * sizeof(*fetch->near),
	                                   "the reads in flight");
}

void
leat_stretches_close(struct leat_feed *feed)
{
	leat_free(&feed->mem, feed->fetch.stretch);
	leat_free(&feed->mem, feed->fetch.near);
	feed->fetch.stretch = NULL;
	feed->fetch.near = NULL;
}

void
leat_stretches_reset(struct leat_feed *feed)
{
	struct leat_fetch *fetch = &feed->fetch;

	for (int i = 0; fetch->stretch && i < feed->budget.stretches; i++) {
		fetch->stretch[i].state = LEAT_STRETCH_NONE;
		fetch->stretch[i].users = 0;
		fetch->stretch[i].open = false;
		fetch->stretch[i].waiting.first = NULL;
	}
	fetch->unstarted = fetch->open = NULL;
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

	if (!read || stretch->users > 0 || stretch->open)
		return;
	leat_window_give(&feed->fetch, &stretch->part);
	stretch->state = LEAT_STRETCH_NONE;
}

/* No sample planned from now on uses it. */
static void
close_one(struct leat_feed *feed, struct leat_stretch *stretch)
{
	struct leat_stretch **at = &feed->fetch.open;

	if (!stretch->open)
		return;
	while (*at != stretch)
		at = &(*at)->older;
	*at = stretch->older;
	stretch->open = false;
	free_unused(feed, stretch);
}

/* Closes the open stretch if samples come in order. Otherwise, if the window has nothing but open stretches that no run
 * uses, besides `run`, closes the oldest one. False: there is none to close. */
static bool
make_room(struct leat_feed *feed)
{
	struct leat_stretch *oldest = NULL;
	int parts = -1, idle = 0; /* the run that is planned has a part, too */

	for (struct leat_window_part *part = feed->fetch.lowest; part; part = part->above)
		parts++;
	for (struct leat_stretch *stretch = feed->fetch.open; stretch; stretch = stretch->older) {
		idle += stretch->users == 0;
		oldest = stretch;
	}
	if (!oldest || (feed->budget.spread > 1 && idle < parts))
		return false;
	close_one(feed, oldest);
	return true;
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

/* The open stretch that has these bytes; NULL: none. */
static struct leat_stretch *
find(const struct leat_feed *feed, const struct leat_extent *extent, uint64_t epoch)
{
	struct leat_stretch *stretch = feed->fetch.open;

	while (stretch && !contains(stretch, extent, epoch))
		stretch = stretch->older;
	return stretch;
}

/* Can the stretch, which ends at `end` so far, go on to this sample? */
static bool
reaches(const struct leat_feed *feed, const struct leat_stretch *stretch, uint64_t last, uint64_t end,
        const struct leat_extent *extent)
{
	const struct leat_source *source = &feed->pipeline.source;
	uint64_t cost = leat_files_at(source->files, stretch->file)->store->kind->request_cost;

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

/* Collects the samples of the same file that come soon and may be in the same stretch. */
static size_t
collect_near(struct leat_feed *feed, const struct leat_run *run, const struct leat_extent *first)
{
	const struct leat_batch *batch = run->batch;
	struct walk walk = {batch->epoch, batch->begin, batch->first + (uint64_t)batch->planned,
	                    batch->first + (uint64_t)batch->own_rows};
	uint64_t most = feed->budget.stretch_bytes, misses = 0;
	size_t count = 0;

	for (int i = 0; i < LEAT_STRETCH_LOOK && misses < feed->budget.spread && step(feed, &walk); i++) {
		struct leat_extent e;

		leat_source_locate(&feed->pipeline.source, leat_plan_at(&feed->pipeline.plan, walk.epoch, walk.at), &e);
		misses++;
		if (e.damaged || !e.length || e.file != first->file || !fits(feed, (size_t)e.length) ||
		    e.offset + most < first->offset || e.offset > first->offset + most || find(feed, &e, walk.epoch))
			continue;
		feed->fetch.near[count++] = (struct leat_near){e.offset, e.offset + e.length};
		misses = 0;
	}
	return count;
}

/* Adds a sample to a stretch if it is next to it. */
static bool
extend(const struct leat_feed *feed, struct leat_stretch *stretch, const struct leat_near *near)
{
	uint64_t cost = leat_files_at(feed->pipeline.source.files, stretch->file)->store->kind->request_cost;
	uint64_t begin = near->begin < stretch->begin ? near->begin : stretch->begin;
	uint64_t end = near->end > stretch->end ? near->end : stretch->end;

	if (near->begin > stretch->end + cost || near->end + cost < stretch->begin ||
	    end - begin > feed->budget.stretch_bytes)
		return false;
	stretch->begin = begin;
	stretch->end = end;
	return true;
}

/* Sets where a stretch around this sample begins and ends, and how many samples are in it. */
static void
look_around(struct leat_feed *feed, const struct leat_run *run, struct leat_stretch *stretch,
            const struct leat_extent *first)
{
	struct leat_near *near = feed->fetch.near;
	size_t count = collect_near(feed, run, first), before = count + 1;

	stretch->end = first->offset + first->length;
	stretch->left = 1;
	while (count < before) {
		before = count;
		for (size_t i = 0; i < count;) {
			if (!extend(feed, stretch, &near[i])) {
				i++;
				continue;
			}
			stretch->left++;
			near[i] = near[--count];
		}
	}
	stretch->next = stretch->begin;
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

	if (fetch->requests >= fetch->limit)
		return NULL;
	if (feed->budget.spread == 1)
		make_room(feed);
	/* Before looking ahead, which is in vain without room. */
	while (!(stretch = unused(feed)) || !leat_window_take(fetch, &stretch->part, feed->budget.stretch_bytes))
		if (!make_room(feed))
			return NULL;
	stretch->file = first->file;
	stretch->begin = stretch->next = first->offset;
	stretch->epoch = run->batch->epoch;
	if (feed->budget.spread == 1)
		stretch->end = look_ahead(feed, run, stretch, first);
	else
		look_around(feed, run, stretch, first);
	stretch->part.size = ((size_t)(stretch->end - stretch->begin) + LEAT_APART - 1) & ~(size_t)(LEAT_APART - 1);
	stretch->state = LEAT_STRETCH_PLANNED;
	stretch->waiting.first = NULL;
	stretch->after = fetch->unstarted;
	fetch->unstarted = stretch;
	fetch->requests++;
	stretch->open = true;
	stretch->older = fetch->open;
	fetch->open = stretch;
	return stretch;
}

static bool
is_pinned(const struct leat_run *run, const struct leat_stretch *stretch)
{
	for (int i = 0; i < run->stretches; i++)
		if (run->stretch[i] == stretch)
			return true;
	return false;
}

static void
pin(struct leat_run *run, struct leat_stretch *stretch)
{
	struct leat_wait *wait = &run->stretch_wait[run->stretches];

	run->stretch[run->stretches++] = stretch;
	stretch->users++;
	if (stretch->state == LEAT_STRETCH_THERE)
		return;
	leat_waits_add(&stretch->waiting, wait, run);
	atomic_fetch_add(&run->pending, 1);
}

/* Finds or plans the stretch for an item, and sets where its bytes will be. */
static bool
take(struct leat_feed *feed, struct leat_run *run, struct leat_run_item *item)
{
	const struct leat_extent *extent = &item->raw.extent;
	struct leat_stretch *stretch = find(feed, extent, run->batch->epoch);

	if (!stretch || !is_pinned(run, stretch)) {
		if (run->stretches == LEAT_RUN_STRETCHES || (!stretch && !(stretch = begin(feed, run, extent))))
			return false;
		pin(run, stretch);
	}
	item->raw.head = stretch->part.bytes + (extent->offset - stretch->begin);
	item->raw.payload = stretch->part.bytes + (extent->offset - stretch->begin) + extent->head;
	item->raw.tail = item->raw.head + extent->length - extent->tail;
	if (feed->budget.spread > 1 && --stretch->left == 0)
		close_one(feed, stretch);
	else if (feed->budget.spread == 1)
		stretch->next = feed->pipeline.source.kind->copies ? extent->offset : extent->offset + extent->length;
	return true;
}

/* Gives a run that has nothing to read yet memory for one long item. */
static bool
take_alone(struct leat_feed *feed, struct leat_run *run, size_t bytes)
{
	size_t least = feed->budget.run_bytes;

	if (run->bytes > 0)
		return false;
	if (feed->budget.spread == 1)
		make_room(feed);
	do {
		leat_window_give(&feed->fetch, &run->part);
		/* Long direct samples go straight to the batch. */
		if (leat_window_take(&feed->fetch, &run->part,
		                     bytes > least && !feed->budget.form.direct ? bytes : least))
			return true;
		leat_window_take(&feed->fetch, &run->part, 0);
	} while (make_room(feed));
	return false;
}

enum leat_shared
leat_stretch_plan(struct leat_feed *feed, struct leat_run *run, struct leat_run_item *item, int64_t row)
{
	const struct leat_batch_form *form = &feed->budget.form;
	size_t bytes = leat_item_bytes(item), payload = bytes - item->raw.extent.head - item->raw.extent.tail;

	if (!bytes)
		return LEAT_SHARED_UNFIT;
	if (run->requests > 0)
		return LEAT_SHARED_FULL;
	/* A file that changed may have samples that outgrew the batch. */
	if (!fits(feed, bytes) || (feed->budget.spread > 1 && row >= run->batch->own_rows) ||
	    (form->direct && payload > form->column[0].capacity - (uint64_t)leat_batch_offsets(run->batch, 0)[row]))
		return take_alone(feed, run, bytes) ? LEAT_SHARED_UNFIT : LEAT_SHARED_FULL;
	if (!take(feed, run, item))
		return LEAT_SHARED_FULL;
	if (form->direct)
		item->to = leat_batch_direct_row(run->batch, row, payload);
	run->bytes += bytes;
	return LEAT_SHARED_TAKEN;
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
	struct leat_run *run;

	feed->fetch.requests--;
	stretch->state = there ? LEAT_STRETCH_THERE : LEAT_STRETCH_LOST;
	while ((run = leat_waits_take(&stretch->waiting)) != NULL) {
		if (!there)
			mark_lost(stretch, run);
		leat_run_progress(feed, run);
	}
	if (!there)
		close_one(feed, stretch);
	free_unused(feed, stretch);
}

static void
complete(struct leat_read *read)
{
	struct leat_stretch *stretch = read->arg;
	struct leat_feed *feed = stretch->request.feed;
	uint64_t end = feed->spans ? leat_now() : 0;

	leat_request_count(feed, read);
	pthread_mutex_lock(&feed->lock);
	if (feed->spans)
		leat_spans_add_read(feed, &stretch->request, feed->spans->stretch, stretch->begin / LEAT_STRETCH_LEAST,
		                    end);
	leat_request_ended(feed, &stretch->request);
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
