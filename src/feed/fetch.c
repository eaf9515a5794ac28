/* fetch.c - see fetch.h */
#include <string.h>

#include "base/clock.h"
#include "feed/feed.h"

/* ---- the window ---- */

/* First fit, lowest address first: while everything is in the page cache, few runs are under way and use the same
 * bytes again and again, which stay in the CPU's cache. */
static bool
take_part(struct leat_fetch *fetch, struct leat_run *run, size_t bytes)
{
	struct leat_run *below = NULL, *above = fetch->lowest;
	unsigned char *at = fetch->window;

	while (above && (size_t)(above->buffer - at) < bytes) {
		at = above->buffer + above->room;
		below = above;
		above = above->above;
	}
	if (!above && (size_t)(fetch->window + fetch->size - at) < bytes)
		return false;
	run->buffer = at;
	run->room = bytes;
	run->below = below;
	run->above = above;
	*(below ? &below->above : &fetch->lowest) = run;
	if (above)
		above->below = run;
	return true;
}

static void
give_part(struct leat_fetch *fetch, struct leat_run *run)
{
	*(run->below ? &run->below->above : &fetch->lowest) = run->above;
	if (run->above)
		run->above->below = run->below;
}

/* Parts begin at multiples of this, so that two runs never share a cache line. */
static size_t
aligned(size_t bytes)
{
	return (bytes + LEAT_APART - 1) & ~(size_t)(LEAT_APART - 1);
}

static enum leat_status
open_requests(struct leat_feed *feed, struct leat_err *err)
{
	int runs = feed->budget.runs, each = feed->budget.run_reads;

	feed->fetch.request = leat_alloc_array(&feed->mem, (size_t)(runs * each), sizeof *feed->fetch.request);
	if (!feed->fetch.request)
		return leat_fail_mem(err, &feed->mem, (size_t)(runs * each) * sizeof *feed->fetch.request,
		                     "the reads in flight");
	for (int i = 0; i < runs; i++) {
		feed->run[i].request = feed->fetch.request + i * each;
		for (int k = 0; k < each; k++)
			feed->run[i].request[k].run = &feed->run[i];
	}
	return LEAT_OK;
}

enum leat_status
leat_fetch_open(struct leat_feed *feed, struct leat_err *err)
{
	struct leat_fetch *fetch = &feed->fetch;

	fetch->limit = feed->budget.requests;
	fetch->size = feed->budget.window;
	fetch->window = leat_map(&feed->mem, fetch->size);
	if (!fetch->window)
		return leat_fail_mem(err, &feed->mem, fetch->size, "the window of reads");
	return open_requests(feed, err);
}

void
leat_fetch_close(struct leat_feed *feed)
{
	leat_unmap(&feed->mem, feed->fetch.window, feed->fetch.size);
	leat_free(&feed->mem, feed->fetch.request);
	feed->fetch.window = NULL;
	feed->fetch.request = NULL;
}

void
leat_fetch_reset(struct leat_feed *feed)
{
	feed->fetch.lowest = NULL;
	feed->fetch.requests = 0;
	atomic_store(&feed->fetch.waiting, 0);
	atomic_store(&feed->fetch.cold, false);
}

/* ---- planning: under the lock ---- */

/* What has outgrown the room that was made for it is damage: files can change between two opens of a feed. */
static void
check_room(const struct leat_feed *feed, const struct leat_run *run, struct leat_extent *e, int64_t row)
{
	const struct leat_batch_form *form = &feed->budget.form;
	uint64_t frame = (uint64_t)e->head + e->tail, payload = e->length - frame;
	size_t room = run->room - run->bytes;

	if (!e->damaged && form->direct)
		e->damaged = payload > form->column[0].capacity - (uint64_t)leat_batch_offsets(run->batch, 0)[row] ||
		             (e->length > room && (run->bytes > 0 || frame > room));
	else if (!e->damaged)
		e->damaged = e->length > room;
	if (e->damaged)
		e->head = e->tail = 0;
}

/* Assigns memory to an item: of the run's part of the window, one behind the other. When that is all, bytes go from
 * there to the batch as they are checked: one long read into a buffer that stays in the cache, and a copy, are
 * faster than a read in pieces. A payload longer than the part is read straight into the batch. */
static void
assign_buffers(const struct leat_feed *feed, struct leat_run *run, struct leat_run_item *item, int64_t row)
{
	const struct leat_extent *e = &item->extent;
	size_t bytes = leat_item_bytes(item), payload = bytes ? bytes - e->head - e->tail : 0;

	item->head = run->buffer + run->bytes;
	item->payload = item->head + e->head;
	item->tail = item->payload + payload;
	if (feed->budget.form.direct) {
		int64_t *offsets = leat_batch_offsets(run->batch, 0);

		item->to = run->batch->base + feed->budget.form.column[0].values_at + offsets[row];
		offsets[row + 1] = offsets[row] + (int64_t)payload;
	}
	if (bytes > run->room) {
		item->payload = item->to;
		item->to = NULL;
		item->tail = item->head + e->head;
	}
	run->bytes += bytes;
}

static bool
follows(const struct leat_run_item *b, const struct leat_run_item *a)
{
	return leat_item_bytes(a) && leat_item_bytes(b) && a->extent.file == b->extent.file &&
	       a->extent.offset + a->extent.length == b->extent.offset;
}

bool
leat_fetch_reserve(struct leat_feed *feed, struct leat_run *run, uint64_t sample, bool cached)
{
	const struct leat_source *source = &feed->pipeline.source;
	struct leat_fetch *fetch = &feed->fetch;
	size_t bytes = feed->budget.run_bytes;
	struct leat_extent extent;

	run->bytes = 0;
	run->requests = run->submitted = 0;
	run->started = false;
	if (!cached && fetch->requests >= fetch->limit)
		return false;
	if (!cached && !feed->budget.form.direct) {
		source->kind->locate(source, sample, &extent);
		if (!extent.damaged && extent.length > bytes)
			bytes = (size_t)extent.length < source->max_length ? (size_t)extent.length
			                                                   : (size_t)source->max_length;
	}
	return take_part(fetch, run, aligned(bytes));
}

bool
leat_fetch_plan(struct leat_feed *feed, struct leat_run *run, struct leat_run_item *item, int64_t row)
{
	const struct leat_source *source = &feed->pipeline.source;

	source->kind->locate(source, item->sample, &item->extent);
	if (run->items > 0 && leat_item_bytes(item) > LEAT_RUN_BYTES - run->bytes)
		return false;
	check_room(feed, run, &item->extent, row);
	item->merged = run->items > 0 && follows(item, item - 1);
	if (leat_item_bytes(item) && !item->merged) {
		if (run->requests > 0 && (run->requests == feed->budget.run_reads ||
		                          run->requests + feed->fetch.requests >= feed->fetch.limit))
			return false;
		run->requests++;
	}
	assign_buffers(feed, run, item, row);
	return true;
}

void
leat_fetch_planned(struct leat_feed *feed, struct leat_run *run)
{
	size_t used = aligned(run->bytes);

	feed->fetch.requests += run->requests;
	if (used < run->room)
		run->room = used;
}

void
leat_fetch_release(struct leat_feed *feed, struct leat_run *run)
{
	feed->fetch.requests -= run->requests;
	give_part(&feed->fetch, run);
}

/* ---- reading ---- */

/* Where items that follow one another go: together into the window, or one whose payload goes elsewhere. */
static int
scatter(const struct leat_run_item *item, int items, struct iovec iov[LEAT_READ_PARTS])
{
	const struct leat_extent *first = &item->extent, *last = &item[items - 1].extent;

	if (item->payload == item->head + first->head) {
		iov[0] = (struct iovec){item->head, (size_t)(last->offset + last->length - first->offset)};
		return 1;
	}
	iov[0] = (struct iovec){item->head, first->head};
	iov[1] = (struct iovec){item->payload, (size_t)(first->length - first->head - first->tail)};
	iov[2] = (struct iovec){item->tail, first->tail};
	return 3;
}

/* Items [first, end) are read together. */
static enum leat_status
read_items(struct leat_feed *feed, const struct leat_run_item *item, int items, int flags, struct leat_err *err)
{
	struct iovec iov[LEAT_READ_PARTS];
	int iovs = scatter(item, items, iov);
	struct leat_object object;
	size_t got;

	leat_source_object(&feed->pipeline.source, item->extent.file, &object);
	return leat_object_read(&object, item->extent.offset, iov, iovs, flags, &got, err);
}

/* What has no bytes of its own may be lent by the source from memory that has to be brought. */
static enum leat_status
touch(struct leat_feed *feed, const struct leat_run_item *item, int flags, struct leat_err *err)
{
	const struct leat_source *source = &feed->pipeline.source;

	if (item->cached || item->extent.damaged || !source->kind->touch)
		return LEAT_OK;
	return source->kind->touch(source, item->sample, flags, err);
}

enum leat_status
leat_item_read(struct leat_feed *feed, const struct leat_run_item *item, struct leat_err *err)
{
	return leat_item_bytes(item) ? read_items(feed, item, 1, 0, err) : touch(feed, item, 0, err);
}

static int
group_end(const struct leat_run *run, int first)
{
	int end = first + 1;

	while (end < run->items && run->item[end].merged)
		end++;
	return end;
}

/* Each fails with its own error when its turn comes. */
static void
mark_unread(struct leat_run *run, int first, int end)
{
	for (int i = first; i < end; i++)
		run->item[i].unread = true;
}

/* ---- completion: the store's threads ---- */

bool
leat_fetch_enter(struct leat_feed *feed)
{
	bool needed = atomic_load_explicit(&feed->fetch.cold, memory_order_relaxed) && feed->running &&
	              !atomic_load(&feed->stop);

	feed->fetch.under_way += needed;
	return needed;
}

void
leat_fetch_leave(struct leat_feed *feed)
{
	pthread_mutex_lock(&feed->lock);
	if (--feed->fetch.under_way == 0)
		pthread_cond_broadcast(&feed->fetch.drained);
	pthread_mutex_unlock(&feed->lock);
}

/* Back to the workers. */
static void
make_ready(struct leat_feed *feed, struct leat_run *run)
{
	run->next = NULL;
	run->started = true;
	*feed->ready_tail = run;
	feed->ready_tail = &run->next;
	leat_feed_wake(feed);
}

static void
complete(struct leat_read *read)
{
	struct leat_request *request = read->arg;
	struct leat_run *run = request->run;
	struct leat_feed *feed = run->batch->feed;
	struct leat_fetch *fetch = &feed->fetch;

	leat_count(&feed->trace.io[read->object.store->first_thread + read->thread].count.read_wait_ns, read->took_ns);
	if (read->status != LEAT_OK)
		mark_unread(run, request->first, request->end);
	pthread_mutex_lock(&feed->lock);
	request->under_way = false;
	fetch->requests--;
	run->requests--;
	if (atomic_fetch_sub(&run->pending, 1) == 1) {
		atomic_fetch_sub(&fetch->waiting, 1);
		make_ready(feed, run);
	}
	pthread_mutex_unlock(&feed->lock);
	leat_fetch_refill(feed);
	leat_fetch_leave(feed); /* the feed may be gone from here on */
}

/* Waits for what a source lends, on a thread of the store that maps it. */
static enum leat_status
touch_items(struct leat_read *read)
{
	struct leat_request *request = read->arg;
	struct leat_feed *feed = request->run->batch->feed;

	for (int i = request->first; i < request->end && !atomic_load(&feed->stop); i++)
		if (!leat_item_bytes(&request->run->item[i]) && touch(feed, &request->run->item[i], 0, NULL) != LEAT_OK)
			mark_unread(request->run, i, i + 1);
	return LEAT_OK;
}

/* ---- starting ---- */

/* Hands items to the store; false: it has no threads for it, read them yourself. */
static bool
submit(struct leat_feed *feed, struct leat_run *run, int first, int end,
       enum leat_status (*work)(struct leat_read *read))
{
	struct leat_request *request = &run->request[run->submitted];
	struct leat_read *read = &request->read;
	struct leat_store *store;
	bool taken;

	request->first = first;
	request->end = end;
	*read = (struct leat_read){
		.offset = run->item[first].extent.offset, .work = work, .done = complete, .arg = request};
	if (!work)
		read->iovs = scatter(&run->item[first], end - first, read->iov);
	leat_source_object(&feed->pipeline.source, run->item[first].extent.file, &read->object);
	store = read->object.store;
	pthread_mutex_lock(&feed->lock);
	if (atomic_load(&feed->stop)) { /* nobody wants it any more */
		pthread_mutex_unlock(&feed->lock);
		mark_unread(run, first, end);
		return true;
	}
	request->under_way = true;
	feed->fetch.under_way++;
	if (work) { /* it was not planned as a request */
		feed->fetch.requests++;
		run->requests++;
	}
	pthread_mutex_unlock(&feed->lock);
	atomic_fetch_add(&run->pending, 1);
	taken = store->kind->submit(store, read) == LEAT_OK;
	if (taken) {
		run->submitted++;
		return true;
	}
	atomic_fetch_sub(&run->pending, 1);
	pthread_mutex_lock(&feed->lock);
	request->under_way = false;
	feed->fetch.under_way--;
	if (work) {
		feed->fetch.requests--;
		run->requests--;
	}
	pthread_mutex_unlock(&feed->lock);
	return false;
}

/* Reads a group now or submits it. */
static void
start_group(struct leat_feed *feed, struct leat_run *run, int first, int end)
{
	const struct leat_run_item *item = &run->item[first];
	enum leat_status status = read_items(feed, item, end - first, LEAT_READ_NOWAIT, NULL);

	if (status == LEAT_AGAIN && !submit(feed, run, first, end, NULL))
		status = read_items(feed, item, end - first, 0, NULL);
	if (status != LEAT_OK && status != LEAT_AGAIN)
		mark_unread(run, first, end);
}

/* Of items without bytes, from `first` on: the first that would wait takes all others along. */
static void
start_touching(struct leat_feed *feed, struct leat_run *run, int first)
{
	for (int i = first; i < run->items; i++) {
		enum leat_status status = LEAT_OK;

		if (!leat_item_bytes(&run->item[i]))
			status = touch(feed, &run->item[i], LEAT_READ_NOWAIT, NULL);
		if (status == LEAT_AGAIN) {
			if (submit(feed, run, i, run->items, touch_items))
				return;
			status = touch(feed, &run->item[i], 0, NULL);
		}
		if (status != LEAT_OK)
			mark_unread(run, i, i + 1);
	}
}

bool
leat_fetch_start(struct leat_feed *feed, struct leat_run *run)
{
	bool cold;

	if (run->first_row == 0)
		leat_source_check(&feed->pipeline.source);
	atomic_store(&run->pending, 1);
	for (int i = 0; i < run->items;) {
		int end = group_end(run, i);

		if (leat_item_bytes(&run->item[i]))
			start_group(feed, run, i, end);
		i = end;
	}
	if (feed->pipeline.source.kind->touch)
		start_touching(feed, run, 0);
	cold = run->submitted > 0;
	if (cold != atomic_load_explicit(&feed->fetch.cold, memory_order_relaxed))
		atomic_store_explicit(&feed->fetch.cold, cold, memory_order_relaxed);
	if (!cold)
		return true;
	atomic_fetch_add(&feed->fetch.waiting, 1);
	if (atomic_fetch_sub(&run->pending, 1) > 1)
		return false;
	atomic_fetch_sub(&feed->fetch.waiting, 1);
	return true;
}

void
leat_fetch_refill(struct leat_feed *feed)
{
	while (atomic_load_explicit(&feed->fetch.cold, memory_order_relaxed) && !atomic_load(&feed->stop)) {
		struct leat_run *run;

		pthread_mutex_lock(&feed->lock);
		run = leat_plan_run(feed, NULL);
		pthread_mutex_unlock(&feed->lock);
		if (!run)
			return;
		if (leat_fetch_start(feed, run)) {
			pthread_mutex_lock(&feed->lock);
			make_ready(feed, run);
			pthread_mutex_unlock(&feed->lock);
		}
	}
}

/* ---- stopping ---- */

void
leat_fetch_drain(struct leat_feed *feed)
{
	struct leat_fetch *fetch = &feed->fetch;

	pthread_mutex_lock(&feed->lock);
	for (int i = 0; i < feed->budget.runs * feed->budget.run_reads; i++) {
		struct leat_read *read = &fetch->request[i].read;

		if (fetch->request[i].under_way)
			read->object.store->kind->cancel(read->object.store, read);
	}
	while (fetch->under_way > 0)
		pthread_cond_wait(&fetch->drained, &feed->lock);
	pthread_mutex_unlock(&feed->lock);
}
