/* fetch.c - see fetch.h */
#include <string.h>

#include "base/clock.h"
#include "feed/blocks.h"
#include "feed/gather.h"
#include "feed/ready.h"
#include "feed/spans.h"
#include "feed/stretch.h"

/* Mapped files are checked before each batch, but not more often than this, in ns; many of them for at most a hundredth
 * of the time. */
enum { CHECK_EVERY = 100 * 1000, FEW_FILES = 8 };

/* ---- the window ---- */

/* First fit, lowest address first: with a warm page cache few runs are active, and they keep reusing the same bytes,
 * which stay in the CPU cache. */
bool
leat_window_take(struct leat_fetch *fetch, struct leat_window_part *part, size_t bytes)
{
	struct leat_window_part *below = NULL, *above = fetch->lowest;
	unsigned char *at = fetch->window;

	/* Two runs must not share a cache line. */
	bytes = (bytes + LEAT_APART - 1) & ~(size_t)(LEAT_APART - 1);
	while (above && (size_t)(above->bytes - at) < bytes) {
		at = above->bytes + above->size;
		below = above;
		above = above->above;
	}
	if (!above && (size_t)(fetch->window + fetch->size - at) < bytes)
		return false;
	*part = (struct leat_window_part){at, bytes, below, above};
	*(below ? &below->above : &fetch->lowest) = part;
	if (above)
		above->below = part;
	return true;
}

void
leat_window_give(struct leat_fetch *fetch, struct leat_window_part *part)
{
	*(part->below ? &part->below->above : &fetch->lowest) = part->above;
	if (part->above)
		part->above->below = part->below;
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
		for (int k = 0; k < each; k++) {
			feed->run[i].request[k].run = &feed->run[i];
			feed->run[i].request[k].feed = feed;
		}
	}
	if (feed->budget.block_groups)
		return leat_blocks_open(feed, err);
	return feed->budget.stretches ? leat_stretches_open(feed, err) : leat_units_open(feed, err);
}

enum leat_status
leat_fetch_open(struct leat_feed *feed, struct leat_err *err)
{
	struct leat_fetch *fetch = &feed->fetch;

	fetch->limit = feed->budget.requests;
	fetch->shares = feed->budget.stretches > 0 || feed->budget.block_groups > 0;
	fetch->size = feed->budget.window;
	fetch->window = leat_map(&feed->mem, fetch->size);
	if (!fetch->window)
		return leat_fail_mem(err, &feed->mem, fetch->size, "the read window");
	return open_requests(feed, err);
}

void
leat_fetch_close(struct leat_feed *feed)
{
	leat_unmap(&feed->mem, feed->fetch.window, feed->fetch.size);
	leat_free(&feed->mem, feed->fetch.request);
	leat_units_close(feed);
	leat_stretches_close(feed);
	leat_blocks_close(feed);
	feed->fetch.window = NULL;
	feed->fetch.request = NULL;
}

void
leat_fetch_reset(struct leat_feed *feed)
{
	feed->fetch.lowest = NULL;
	feed->fetch.requests = 0;
	leat_units_reset(feed);
	leat_stretches_reset(feed);
	leat_blocks_reset(feed);
	atomic_store(&feed->fetch.waiting, 0);
	atomic_store(&feed->fetch.cold, false);
}

/* ---- planning: under the lock ---- */

/* Marks samples that outgrew their reserved space as damaged: the file changed after the feed was opened. */
static void
check_room(const struct leat_feed *feed, const struct leat_run *run, struct leat_extent *e, int64_t row)
{
	const struct leat_batch_form *form = &feed->budget.form;
	uint64_t frame = (uint64_t)e->head + e->tail, payload = e->length - frame;
	size_t room = run->part.size - run->bytes;

	if (!e->damaged && form->direct)
		e->damaged = payload > form->column[0].capacity - (uint64_t)leat_batch_offsets(run->batch, 0)[row] ||
		             (e->length > room && (run->bytes > 0 || frame > room));
	else if (!e->damaged)
		e->damaged = e->length > room;
	if (e->damaged)
		e->head = e->tail = 0;
}

/* Assigns an item the next bytes of the run's part of the window. Direct payloads are copied from there to the batch
 * while they are checked: one long read into a cached buffer plus a copy beats reading in pieces. A payload longer than
 * the part is read straight into the batch. */
static void
assign_buffers(const struct leat_feed *feed, struct leat_run *run, struct leat_run_item *item, int64_t row)
{
	const struct leat_extent *e = &item->raw.extent;
	size_t bytes = leat_item_bytes(item), payload = bytes ? bytes - e->head - e->tail : 0;
	unsigned char *at = run->part.bytes + run->bytes;

	item->raw.head = at;
	item->raw.payload = at + e->head;
	item->raw.tail = item->raw.payload + payload;
	if (feed->budget.form.direct)
		item->to = leat_batch_direct_row(run->batch, row, payload);
	if (bytes > run->part.size) {
		item->raw.payload = item->to;
		item->to = NULL;
		item->raw.tail = at + e->head;
	}
	run->bytes += bytes;
}

static bool
follows(const struct leat_run_item *b, const struct leat_run_item *a)
{
	return leat_item_bytes(a) && leat_item_bytes(b) && a->raw.extent.file == b->raw.extent.file &&
	       a->raw.extent.offset + a->raw.extent.length == b->raw.extent.offset;
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
	run->started = run->unread = false;
	run->units = run->stretches = 0;
	run->blocks = NULL;
	run->block_bytes = 0;
	run->gathers = feed->budget.gathers && !run->bulk ? leat_gather_most(feed) : 0;
	run->gathered = run->unsupported = false;
	run->waited_ns = 0;
	atomic_store_explicit(&run->pending, 1, memory_order_relaxed);
	if (!cached && !run->gathers && fetch->requests >= fetch->limit)
		return false;
	if (feed->budget.stretches || run->bulk)
		return leat_window_take(fetch, &run->part, 0);
	if (!cached && feed->budget.outliers) {
		leat_source_locate(source, sample, &extent);
		if (!extent.damaged && extent.length > bytes)
			bytes = (size_t)extent.length < source->max_length ? (size_t)extent.length
			                                                   : (size_t)source->max_length;
	}
	return leat_window_take(fetch, &run->part, bytes);
}

bool
leat_fetch_plan(struct leat_feed *feed, struct leat_run *run, struct leat_run_item *item, int64_t row)
{
	const struct leat_source *source = &feed->pipeline.source;
	struct leat_extent *extent = &item->raw.extent;
	bool in_blocks = false;

	leat_source_locate(source, item->raw.index, extent);
	item->raw.unit = NULL;
	if (extent->in_unit && !extent->damaged)
		return leat_units_pin(feed, run, item);
	if (!extent->length && !feed->budget.form.direct)
		return true;
	if (run->items > 0 && leat_item_bytes(item) > LEAT_RUN_BYTES - run->bytes)
		return false;
	if (run->gathers && (run->items >= run->gathers || leat_item_bytes(item) > run->part.size)) {
		if (run->items > 0)
			return false;
		run->gathers = 0; /* too long for the window: it is read straight into the batch */
	}
	if (__builtin_expect(feed->fetch.shares, 0)) {
		enum leat_shared planned = feed->budget.block_groups ? leat_blocks_plan(feed, run, item, row)
		                                                     : leat_stretch_plan(feed, run, item, row);

		if (planned != LEAT_SHARED_UNFIT)
			return planned == LEAT_SHARED_TAKEN;
		in_blocks = run->blocks != NULL;
	}
	check_room(feed, run, extent, row);
	item->merged = run->items > 0 && !in_blocks && follows(item, item - 1);
	if (leat_item_bytes(item) && !item->merged && !run->gathers) {
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
	size_t used = (run->stretches ? 0 : run->bytes + LEAT_APART - 1) & ~(size_t)(LEAT_APART - 1);

	feed->fetch.requests += run->requests;
	if (used < run->part.size)
		run->part.size = used;
}

void
leat_fetch_release(struct leat_feed *feed, struct leat_run *run)
{
	feed->fetch.requests -= run->requests;
	if (run->gathers)
		leat_gather_note(feed, run);
	leat_units_unpin(feed, run);
	if (run->stretches > 0)
		leat_stretches_unpin(feed, run);
	if (run->blocks)
		leat_blocks_unpin(feed, run);
	leat_window_give(&feed->fetch, &run->part);
}

/* ---- reading ---- */

/* Fills iov for adjacent items: one piece of the window, or three pieces if a payload goes straight to the batch. */
static int
scatter(const struct leat_run_item *item, int items, struct iovec iov[LEAT_READ_PARTS])
{
	const struct leat_extent *first = &item->raw.extent, *last = &item[items - 1].raw.extent;

	if (item->raw.payload == item->raw.head + first->head) {
		iov[0] = (struct iovec){(void *)item->raw.head, (size_t)(last->offset + last->length - first->offset)};
		return 1;
	}
	iov[0] = (struct iovec){(void *)item->raw.head, first->head};
	iov[1] = (struct iovec){item->raw.payload, (size_t)(first->length - first->head - first->tail)};
	iov[2] = (struct iovec){(void *)item->raw.tail, first->tail};
	return 3;
}

/* Reads adjacent items with one request. */
static enum leat_status
read_items(struct leat_feed *feed, const struct leat_run_item *item, int items, int flags, struct leat_err *err)
{
	struct iovec iov[LEAT_READ_PARTS];
	int iovs = scatter(item, items, iov);
	struct leat_object entry;
	const struct leat_object *object = leat_source_object(&feed->pipeline.source, item->raw.extent.file, &entry);
	const struct leat_store_kind *kind = object->store->kind;
	size_t got;

	if (!(flags & LEAT_READ_NOWAIT))
		return leat_object_read(object, item->raw.extent.offset, iov, iovs, flags, &got, err);
	return kind->read_now ? kind->read_now(object, item->raw.extent.offset, iov, iovs, &got, err) : LEAT_AGAIN;
}

/* Brings an item into memory that the source lends from a mapping. */
static enum leat_status
touch(struct leat_feed *feed, const struct leat_run_item *item, int flags, struct leat_err *err)
{
	const struct leat_source *source = &feed->pipeline.source;

	if (item->cached || item->raw.extent.damaged || !source->mapped)
		return LEAT_OK;
	return source->kind->touch(source, &item->raw.index, 1, flags, err);
}

enum leat_status
leat_item_read(struct leat_feed *feed, const struct leat_run_item *item, struct leat_err *err)
{
	enum leat_status status;

	if (!leat_item_bytes(item))
		return touch(feed, item, 0, err);
	status = read_items(feed, item, 1, 0, err);
	if (status == LEAT_DATA)
		leat_source_report_change(&feed->pipeline.source, item->raw.extent.file, err);
	return status;
}

static int
group_end(const struct leat_run *run, int first)
{
	int end = first + 1;

	while (end < run->items && run->item[end].merged)
		end++;
	return end;
}

/* Workers retry these one by one, so that each gets its own error. */
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

static void
make_ready(struct leat_feed *feed, struct leat_run *run)
{
	run->started = true;
	leat_ready_push(feed, run);
	leat_feed_wake(feed);
}

void
leat_run_progress(struct leat_feed *feed, struct leat_run *run)
{
	if (atomic_fetch_sub(&run->pending, 1) != 1)
		return;
	atomic_fetch_sub(&feed->fetch.waiting, 1);
	make_ready(feed, run);
}

static void
complete(struct leat_read *read)
{
	struct leat_request *request = read->arg;
	struct leat_feed *feed = request->feed;
	struct leat_run *run = request->run;
	uint64_t end = feed->spans ? leat_now() : 0;

	leat_request_count(feed, read);
	if (read->status != LEAT_OK && run->bulk)
		run->unread = true;
	else if (read->status != LEAT_OK)
		mark_unread(run, request->first, request->end);
	pthread_mutex_lock(&feed->lock);
	if (feed->spans)
		leat_spans_add_read(feed, request, 0,
		                    leat_row_position(feed, run->batch, run->first_row + request->first), end);
	leat_request_ended(feed, request);
	feed->fetch.requests--;
	run->requests--;
	leat_run_progress(feed, run);
	pthread_mutex_unlock(&feed->lock);
	leat_fetch_refill(feed);
	leat_fetch_leave(feed); /* the feed may be freed after this */
}

/* Pages in what a source lends, on a thread of the store that maps it. */
static enum leat_status
touch_items(struct leat_read *read)
{
	struct leat_request *request = read->arg;
	struct leat_feed *feed = request->feed;

	for (int i = request->first; i < request->end && !atomic_load(&feed->stop); i++)
		if (!leat_item_bytes(&request->run->item[i]) && touch(feed, &request->run->item[i], 0, NULL) != LEAT_OK)
			mark_unread(request->run, i, i + 1);
	return LEAT_OK;
}

/* The rows of a run in bulk. Until they are filled, their positions are sample numbers. What is cached is in memory. */
static enum leat_status
touch_rows(struct leat_feed *feed, const struct leat_run *run, int flags)
{
	const struct leat_source *source = &feed->pipeline.source;

	if (!source->mapped || feed->cache || run->items == 0)
		return LEAT_OK;
	return source->kind->touch(source, leat_batch_positions(run->batch) + run->first_row, (size_t)run->items, flags,
	                           NULL);
}

static enum leat_status
touch_run(struct leat_read *read)
{
	struct leat_request *request = read->arg;

	request->run->unread = touch_rows(request->feed, request->run, 0) != LEAT_OK;
	return LEAT_OK;
}

/* ---- starting ---- */

void
leat_request_count(struct leat_feed *feed, const struct leat_read *read)
{
	leat_count(&feed->trace.io[read->object.store->first_thread + read->thread].count.read_wait_ns, read->took_ns);
}

static void
begin_request(struct leat_feed *feed, struct leat_request *request)
{
	request->under_way = true;
	feed->fetch.under_way++;
	if (feed->fetch.in_flight++ == 0)
		atomic_store_explicit(&feed->fetch.busy_since, leat_now(), memory_order_relaxed);
}

void
leat_request_ended(struct leat_feed *feed, struct leat_request *request)
{
	struct leat_fetch *fetch = &feed->fetch;

	request->under_way = false;
	if (--fetch->in_flight > 0)
		return;
	leat_count(&fetch->busy_ns, leat_now() - leat_counted(&fetch->busy_since));
	atomic_store_explicit(&fetch->busy_since, 0, memory_order_relaxed);
}

enum leat_status
leat_request_submit(struct leat_feed *feed, struct leat_request *request)
{
	struct leat_store *store = request->read.object.store;
	bool stop;

	pthread_mutex_lock(&feed->lock);
	stop = atomic_load(&feed->stop);
	if (!stop)
		begin_request(feed, request);
	pthread_mutex_unlock(&feed->lock);
	if (stop)
		return LEAT_CANCELLED;
	if (feed->spans)
		request->submitted_ns = leat_now();
	if (store->kind->submit(store, &request->read) == LEAT_OK)
		return LEAT_OK;
	pthread_mutex_lock(&feed->lock);
	leat_request_ended(feed, request);
	pthread_mutex_unlock(&feed->lock);
	leat_fetch_leave(feed);
	return LEAT_AGAIN;
}

/* Submits items to their store. False: it cannot take them, so the caller reads. */
static bool
submit(struct leat_feed *feed, struct leat_run *run, int first, int end,
       enum leat_status (*work)(struct leat_read *read))
{
	struct leat_request *request = &run->request[run->submitted];
	struct leat_read *read = &request->read;
	struct leat_object entry;
	enum leat_status status;

	request->first = first;
	request->end = end;
	*read = (struct leat_read){.offset = run->item[first].raw.extent.offset,
	                           .work = work,
	                           .done = complete,
	                           .arg = request,
	                           .epoch = run->batch->epoch + 1};
	if (!work)
		read->iovs = scatter(&run->item[first], end - first, read->iov);
	read->object = *leat_source_object(&feed->pipeline.source, run->item[first].raw.extent.file, &entry);
	atomic_fetch_add(&run->pending, 1);
	run->submitted++;
	status = leat_request_submit(feed, request);
	if (status == LEAT_OK)
		return true;
	atomic_fetch_sub(&run->pending, 1);
	run->submitted--;
	if (status == LEAT_CANCELLED && run->bulk)
		run->unread = true;
	else if (status == LEAT_CANCELLED)
		mark_unread(run, first, end);
	return status == LEAT_CANCELLED;
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

static void
start_groups(struct leat_feed *feed, struct leat_run *run)
{
	for (int i = 0; i < run->items;) {
		int end = group_end(run, i);

		if (leat_item_bytes(&run->item[i]) && (!run->blocks || !leat_blocks_has(feed, run, &run->item[i])))
			start_group(feed, run, i, end);
		i = end;
	}
}

static void
start_bulk(struct leat_feed *feed, struct leat_run *run)
{
	enum leat_status status = touch_rows(feed, run, LEAT_READ_NOWAIT);

	if (status == LEAT_AGAIN) {
		if (submit(feed, run, 0, run->items, touch_run))
			return;
		status = touch_rows(feed, run, 0);
	}
	run->unread = status != LEAT_OK;
}

/* For sources that lend all samples: the first item that would block is submitted with all that follow. */
static void
start_touching(struct leat_feed *feed, struct leat_run *run)
{
	for (int i = 0; i < run->items; i++) {
		enum leat_status status = touch(feed, &run->item[i], LEAT_READ_NOWAIT, NULL);

		if (status == LEAT_AGAIN) {
			for (int k = i + 1; k < run->items; k++) /* ask for them all, so that they come together */
				(void)touch(feed, &run->item[k], LEAT_READ_NOWAIT, NULL);
			if (submit(feed, run, i, run->items, touch_items))
				return;
			status = touch(feed, &run->item[i], 0, NULL);
		}
		if (status != LEAT_OK)
			mark_unread(run, i, i + 1);
	}
}

/* When to look at mapped files again. Small batches take microseconds, and so does the look at a file. */
static uint64_t
unchecked_until(const struct leat_feed *feed, uint64_t begin, uint64_t end)
{
	bool many = leat_files_count(feed->pipeline.source.files) > FEW_FILES;

	return many ? end + 99 * (end - begin) : begin + CHECK_EVERY;
}

/* Before anything of a batch is read. Runs that start at the same time may each check. */
static void
check_mapped(struct leat_feed *feed, struct leat_batch *batch)
{
	uint64_t begin;

	if (atomic_load_explicit(&batch->checked, memory_order_acquire))
		return;
	begin = leat_now();
	if (begin >= atomic_load_explicit(&feed->fetch.unchecked_until, memory_order_relaxed)) {
		leat_source_check(&feed->pipeline.source);
		atomic_store_explicit(&feed->fetch.unchecked_until, unchecked_until(feed, begin, leat_now()),
		                      memory_order_relaxed);
	}
	atomic_store_explicit(&batch->checked, true, memory_order_release);
}

/* Starts the reads that the run shares with others. True: it waits for some, or did when it was planned. */
static bool
start_shared(struct leat_feed *feed, const struct leat_run *run)
{
	if (run->blocks)
		return leat_blocks_start(feed, run);
	if (run->units > 0)
		return leat_units_start(feed);
	leat_stretches_start(feed);
	return true;
}

bool
leat_fetch_start(struct leat_feed *feed, struct leat_run *run)
{
	bool cold, waits = run->units + run->stretches > 0 || run->blocks;

	if (feed->pipeline.source.mapped)
		check_mapped(feed, run->batch);
	cold = waits && start_shared(feed, run);
	if (run->stretches > 0 || (run->blocks && run->requests == 0))
		;
	else if (run->bulk)
		start_bulk(feed, run);
	else if (run->gathers)
		leat_gather_start(feed, run);
	else if (leat_source_lends(&feed->pipeline.source))
		start_touching(feed, run);
	else
		start_groups(feed, run);
	cold |= run->submitted > 0;
	if (cold != atomic_load_explicit(&feed->fetch.cold, memory_order_relaxed))
		atomic_store_explicit(&feed->fetch.cold, cold, memory_order_relaxed);
	if (!cold && !waits)
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
	for (int i = 0; i < feed->budget.units; i++) {
		struct leat_read *read = &fetch->slot[i].request.read;

		if (fetch->slot[i].request.under_way)
			read->object.store->kind->cancel(read->object.store, read);
	}
	leat_stretches_cancel(feed);
	leat_blocks_cancel(feed);
	while (fetch->under_way > 0)
		pthread_cond_wait(&fetch->drained, &feed->lock);
	pthread_mutex_unlock(&feed->lock);
}
