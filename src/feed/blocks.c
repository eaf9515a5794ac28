/* blocks.c - see blocks.h */
#include "feed/blocks.h"

#include <stdlib.h>

#include "base/clock.h"
#include "feed/spans.h"

/* ---- open and close ---- */

static enum leat_status
open_group(struct leat_feed *feed, struct leat_block_group *group, struct leat_err *err)
{
	const struct leat_budget *b = &feed->budget;

	group->bytes = leat_map(&feed->mem, b->block_bytes);
	group->piece = leat_alloc_array(&feed->mem, b->block_pieces, sizeof(*group->piece));
	group->read = leat_alloc_array(&feed->mem, b->block_reads, sizeof(*group->read));
	if (!group->bytes || !group->piece || !group->read)
		return leat_fail_mem(err, &feed->mem, b->block_bytes, "the blocks of shuffle");
	for (size_t i = 0; i < b->block_reads; i++) {
		group->read[i].request.feed = feed;
		group->read[i].group = group;
	}
	return LEAT_OK;
}

enum leat_status
leat_blocks_open(struct leat_feed *feed, struct leat_err *err)
{
	size_t count = (size_t)feed->budget.block_groups;
	enum leat_status status = LEAT_OK;

	if (!count)
		return LEAT_OK;
	feed->fetch.group = leat_alloc_array(&feed->mem, count, sizeof(*feed->fetch.group));
	if (!feed->fetch.group)
		return leat_fail_mem(err, &feed->mem, count * sizeof(*feed->fetch.group), "the blocks of shuffle");
	for (size_t i = 0; i < count && status == LEAT_OK; i++)
		status = open_group(feed, &feed->fetch.group[i], err);
	return status;
}

void
leat_blocks_close(struct leat_feed *feed)
{
	for (int i = 0; feed->fetch.group && i < feed->budget.block_groups; i++) {
		struct leat_block_group *group = &feed->fetch.group[i];

		leat_unmap(&feed->mem, group->bytes, feed->budget.block_bytes);
		leat_free(&feed->mem, group->piece);
		leat_free(&feed->mem, group->read);
	}
	leat_free(&feed->mem, feed->fetch.group);
	feed->fetch.group = NULL;
}

void
leat_blocks_reset(struct leat_feed *feed)
{
	struct leat_fetch *fetch = &feed->fetch;

	for (int i = 0; fetch->group && i < feed->budget.block_groups; i++) {
		fetch->group[i].state = LEAT_BLOCKS_NONE;
		fetch->group[i].users = 0;
		fetch->group[i].open = false;
		fetch->group[i].waiting.first = NULL;
	}
	fetch->group_now = fetch->group_next = NULL;
	fetch->group_owed = 0;
}

/* ---- what is in a group ---- */

static int
by_sample(const void *a, const void *b)
{
	uint64_t x = ((const struct leat_block_piece *)a)->first, y = ((const struct leat_block_piece *)b)->first;

	return (x > y) - (x < y);
}

/* The last sample from `first` to `last` that is in this file, in which `first` is. */
static uint64_t
last_in_file(const struct leat_source *source, uint32_t file, uint64_t first, uint64_t last)
{
	struct leat_extent e;

	leat_source_locate(source, last, &e);
	if (e.file == file)
		return last;
	while (last - first > 1) {
		uint64_t middle = first + (last - first) / 2;

		leat_source_locate(source, middle, &e);
		if (e.file == file)
			first = middle;
		else
			last = middle;
	}
	return first;
}

/* Moves `sample` to the next one with bytes, up to `last` or down to it. False: there is none. */
static bool
find_good(const struct leat_source *source, uint64_t *sample, uint64_t last, struct leat_extent *extent)
{
	for (;;) {
		leat_source_locate(source, *sample, extent);
		if (!extent->damaged && extent->length)
			return true;
		if (*sample == last)
			return false;
		*sample += *sample < last ? 1 : UINT64_MAX;
	}
}

static void
add_piece(const struct leat_feed *feed, struct leat_block_group *group, struct leat_block_piece piece, size_t *used)
{
	size_t room = feed->budget.block_bytes - *used;

	if (group->pieces == feed->budget.block_pieces || piece.stop < piece.begin || piece.stop - piece.begin > room)
		return;
	piece.at = *used;
	group->piece[group->pieces++] = piece;
	*used += ((size_t)(piece.stop - piece.begin) + LEAT_APART - 1) & ~(size_t)(LEAT_APART - 1);
	if (*used > feed->budget.block_bytes)
		*used = feed->budget.block_bytes;
}

static void
add_block(const struct leat_feed *feed, struct leat_block_group *group, uint64_t first, uint64_t last, size_t *used)
{
	const struct leat_source *source = &feed->pipeline.source;
	struct leat_extent a, b;

	while (first <= last && find_good(source, &first, last, &a)) {
		uint64_t end = last_in_file(source, a.file, first, last), good = end;

		find_good(source, &good, first, &b);
		add_piece(feed, group,
		          (struct leat_block_piece){.first = first,
		                                    .end = good + 1,
		                                    .begin = a.offset,
		                                    .stop = b.offset + b.length,
		                                    .file = a.file},
		          used);
		first = end + 1;
	}
}

void
leat_blocks_list(struct leat_feed *feed, struct leat_block_group *group, uint64_t epoch, uint64_t position)
{
	const struct leat_plan *plan = &feed->pipeline.plan;
	struct leat_plan_group blocks;
	size_t used = 0;

	leat_plan_group_at(plan, &feed->budget.blocks, epoch, position, &blocks, &group->end);
	group->epoch = epoch;
	group->position = position;
	group->pieces = 0;
	for (uint64_t k = 0; k < blocks.blocks; k++) {
		uint64_t first, last;

		leat_plan_block(plan, &feed->budget.blocks, &blocks, k, &first, &last);
		add_block(feed, group, first, last, &used);
	}
	qsort(group->piece, group->pieces, sizeof(*group->piece), by_sample);
}

const struct leat_block_piece *
leat_blocks_find(const struct leat_block_group *group, uint64_t sample, const struct leat_extent *extent)
{
	const struct leat_block_piece *piece = group->piece;

	/* Without branches, which nobody could predict. */
	for (size_t n = group->pieces, half; n > 1; n -= half) {
		half = n / 2;
		piece += piece[half].first <= sample ? half : 0;
	}
	if (group->pieces == 0 || sample < piece->first || sample >= piece->end || extent->file != piece->file ||
	    extent->offset < piece->begin || extent->offset > piece->stop ||
	    extent->length > piece->stop - extent->offset)
		return NULL;
	return piece;
}

/* ---- planning: under the lock ---- */

static void
free_unused(struct leat_block_group *group)
{
	if (group->state == LEAT_BLOCKS_THERE && group->users == 0 && !group->open)
		group->state = LEAT_BLOCKS_NONE;
}

/* Wakes who waits for the group, if all of it was read. */
static void
finish_group(struct leat_feed *feed, struct leat_block_group *group)
{
	struct leat_run *run;

	if (group->state != LEAT_BLOCKS_READING || group->unfinished > 0 || group->next < group->pieces)
		return;
	group->state = LEAT_BLOCKS_THERE;
	while ((run = leat_waits_take(&group->waiting)) != NULL)
		leat_run_progress(feed, run);
	free_unused(group);
}

/* No sample planned from now on is in it. What no run needs is not read any more. */
static void
close_group(struct leat_feed *feed, struct leat_block_group *group)
{
	if (!group)
		return;
	group->open = false;
	if (group->users == 0)
		group->next = group->pieces;
	finish_group(feed, group);
	free_unused(group);
}

/* NULL: no memory is free now. */
static struct leat_block_group *
begin_group(struct leat_feed *feed, uint64_t epoch, uint64_t position)
{
	struct leat_block_group *group = feed->fetch.group;
	const struct leat_block_group *end = group + feed->budget.block_groups;

	while (group < end && group->state != LEAT_BLOCKS_NONE)
		group++;
	if (group == end)
		return NULL;
	leat_blocks_list(feed, group, epoch, position);
	group->state = LEAT_BLOCKS_READING;
	group->open = true;
	group->lost = false;
	group->next = 0;
	group->next_at = group->pieces ? group->piece[0].begin : 0;
	group->reads = group->unfinished = 0;
	group->waiting.first = NULL;
	finish_group(feed, group);
	return group;
}

/* Begins the group after the one that planning is in, if there is memory for it. */
static void
begin_next(struct leat_feed *feed)
{
	struct leat_fetch *fetch = &feed->fetch;
	uint64_t epoch, position;

	if (!fetch->group_now || fetch->group_next || feed->budget.block_groups == 1)
		return;
	epoch = fetch->group_now->epoch;
	position = fetch->group_now->end;
	if (position >= feed->pipeline.plan.size) {
		position = 0;
		epoch++;
	}
	if (feed->options.epochs == 0 || epoch < feed->options.epochs)
		fetch->group_next = begin_group(feed, epoch, position);
}

static bool
holds(const struct leat_block_group *group, uint64_t epoch, uint64_t position)
{
	return group && group->epoch == epoch && position >= group->position && position < group->end;
}

/* The group of a position, which planning enters. NULL: no memory is free now. */
static struct leat_block_group *
enter(struct leat_feed *feed, uint64_t epoch, uint64_t position)
{
	struct leat_fetch *fetch = &feed->fetch;

	close_group(feed, fetch->group_now);
	fetch->group_now = fetch->group_next;
	fetch->group_next = NULL;
	fetch->group_owed = 0;
	if (!holds(fetch->group_now, epoch, position)) { /* nothing of the next one is on this rank */
		close_group(feed, fetch->group_now);
		fetch->group_now = begin_group(feed, epoch, position);
	}
	begin_next(feed);
	return fetch->group_now;
}

static void
pin(struct leat_run *run, struct leat_block_group *group)
{
	run->blocks = group;
	group->users++;
	if (group->state == LEAT_BLOCKS_THERE)
		return;
	leat_waits_add(&group->waiting, &run->blocks_wait, run);
	atomic_fetch_add(&run->pending, 1);
}

enum leat_shared
leat_blocks_plan(struct leat_feed *feed, struct leat_run *run, struct leat_run_item *item, int64_t row)
{
	const struct leat_batch_form *form = &feed->budget.form;
	const struct leat_extent *e = &item->raw.extent;
	struct leat_block_group *group = feed->fetch.group_now;
	const struct leat_block_piece *piece;
	const struct leat_batch *batch = run->batch;
	size_t bytes = leat_item_bytes(item), payload = bytes - e->head - e->tail;

	if (!bytes || row >= batch->own_rows)
		return LEAT_SHARED_UNFIT;
	if (!holds(group, batch->epoch, batch->first + (uint64_t)row))
		group = enter(feed, batch->epoch, batch->first + (uint64_t)row);
	if (!group || (run->blocks && run->blocks != group) ||
	    (run->items > 0 && run->block_bytes + bytes > LEAT_RUN_BYTES))
		return LEAT_SHARED_FULL;
	piece = leat_blocks_find(group, item->raw.index, e);
	/* A file that changed may have samples that outgrew the batch. */
	if (!piece ||
	    (form->direct && payload > form->column[0].capacity - (uint64_t)leat_batch_offsets(batch, 0)[row]))
		return LEAT_SHARED_UNFIT;
	if (!run->blocks)
		pin(run, group);
	item->raw.head = group->bytes + piece->at + (e->offset - piece->begin);
	item->raw.payload = group->bytes + piece->at + (e->offset - piece->begin) + e->head;
	item->raw.tail = item->raw.payload + payload;
	if (form->direct)
		item->to = leat_batch_direct_row(batch, row, payload);
	run->block_bytes += bytes;
	return LEAT_SHARED_TAKEN;
}

void
leat_blocks_unpin(struct leat_feed *feed, struct leat_run *run)
{
	run->blocks->users--;
	free_unused(run->blocks);
	run->blocks = NULL;
	begin_next(feed);
}

/* ---- reading ---- */

/* Under the lock. */
static void
finish_read(struct leat_feed *feed, struct leat_block_read *read, bool there)
{
	struct leat_block_group *group = read->group;

	group->unfinished--;
	if (!there)
		read->piece->lost = group->lost = true;
	finish_group(feed, group);
}

static void
complete(struct leat_read *completed)
{
	struct leat_block_read *read = completed->arg;
	struct leat_feed *feed = read->request.feed;
	uint64_t end = feed->spans ? leat_now() : 0;

	leat_request_count(feed, completed);
	pthread_mutex_lock(&feed->lock);
	if (feed->spans)
		leat_spans_add_read(feed, &read->request, feed->spans->block, read->piece->first, end);
	leat_request_ended(feed, &read->request);
	finish_read(feed, read, completed->status == LEAT_OK);
	leat_feed_wake(feed); /* memory may be free again */
	pthread_mutex_unlock(&feed->lock);
	leat_fetch_refill(feed);
	leat_fetch_leave(feed); /* the feed may be freed after this */
}

/* Under the lock: takes the next part of a group that is to be read. NULL: none is left. */
static struct leat_block_read *
take_read(struct leat_block_group *group)
{
	struct leat_block_piece *piece = &group->piece[group->next];
	struct leat_block_read *read;
	uint64_t left;

	if (group->state != LEAT_BLOCKS_READING || group->next == group->pieces)
		return NULL;
	left = piece->stop - group->next_at;
	read = &group->read[group->reads++];
	read->piece = piece;
	read->request.read = (struct leat_read){
		.offset = group->next_at,
		.iov = {{group->bytes + piece->at + (group->next_at - piece->begin),
	                 left < LEAT_BLOCKS_READ ? (size_t)left : LEAT_BLOCKS_READ}},
		.iovs = 1,
		.done = complete,
		.arg = read,
		.epoch = group->epoch + 1,
	};
	group->unfinished++;
	group->next_at += read->request.read.iov[0].iov_len;
	if (group->next_at == piece->stop && ++group->next < group->pieces)
		group->next_at = group->piece[group->next].begin;
	return read;
}

/* Under the lock: the run needs all of its group, and reads of the next one as much as it uses. */
static struct leat_block_read *
choose_read(struct leat_fetch *fetch, struct leat_block_group *group)
{
	struct leat_block_read *read = take_read(group);

	if (read || !fetch->group_next || fetch->group_owed <= 0)
		return read;
	read = take_read(fetch->group_next);
	if (read)
		fetch->group_owed -= (int64_t)read->request.read.iov[0].iov_len;
	return read;
}

/* Reads what the page cache has. False: the rest was submitted. */
static bool
start_read(struct leat_feed *feed, struct leat_block_read *read, bool *there)
{
	struct leat_read *r = &read->request.read;
	struct leat_object entry;
	const struct leat_object *object = leat_source_object(&feed->pipeline.source, read->piece->file, &entry);
	enum leat_status status;
	size_t got;

	status = object->store->kind->read_now(object, r->offset, r->iov, 1, &got, NULL);
	if (status == LEAT_AGAIN) {
		r->object = *object;
		r->offset += got;
		r->iov[0].iov_base = (unsigned char *)r->iov[0].iov_base + got;
		r->iov[0].iov_len -= got;
		status = leat_request_submit(feed, &read->request);
		if (status == LEAT_OK)
			return false;
		if (status == LEAT_AGAIN)
			status = leat_object_read(object, r->offset, r->iov, 1, 0, &got, NULL);
	}
	*there = status == LEAT_OK;
	return true;
}

bool
leat_blocks_start(struct leat_feed *feed, const struct leat_run *run)
{
	struct leat_fetch *fetch = &feed->fetch;
	struct leat_block_read *read;
	bool in_flight, there;

	pthread_mutex_lock(&feed->lock);
	fetch->group_owed += (int64_t)(run->block_bytes + run->block_bytes / 4);
	while ((read = choose_read(fetch, run->blocks)) != NULL) {
		int64_t bytes = (int64_t)read->request.read.iov[0].iov_len;
		bool next = read->group != run->blocks, done;

		pthread_mutex_unlock(&feed->lock);
		done = start_read(feed, read, &there);
		pthread_mutex_lock(&feed->lock);
		if (done)
			finish_read(feed, read, there);
		else if (next)
			fetch->group_owed += bytes; /* it cost nothing: all that has to wait is submitted at once */
	}
	in_flight = fetch->in_flight > 0;
	pthread_mutex_unlock(&feed->lock);
	return in_flight;
}

void
leat_blocks_cancel(struct leat_feed *feed)
{
	for (int i = 0; feed->fetch.group && i < feed->budget.block_groups; i++)
		for (int k = 0; k < feed->fetch.group[i].reads; k++) {
			struct leat_request *request = &feed->fetch.group[i].read[k].request;

			if (request->under_way)
				request->read.object.store->kind->cancel(request->read.object.store, &request->read);
		}
}

/* ---- items ---- */

bool
leat_blocks_has(const struct leat_feed *feed, const struct leat_run *run, const struct leat_run_item *item)
{
	uintptr_t from = (uintptr_t)run->blocks->bytes, at = (uintptr_t)item->raw.head;

	return at >= from && at - from < feed->budget.block_bytes;
}

void
leat_blocks_mark_lost(const struct leat_feed *feed, struct leat_run *run)
{
	for (int i = 0; i < run->items; i++) {
		struct leat_run_item *item = &run->item[i];
		const struct leat_block_piece *piece;

		if (!leat_item_bytes(item) || !leat_blocks_has(feed, run, item))
			continue;
		piece = leat_blocks_find(run->blocks, item->raw.index, &item->raw.extent);
		item->unread = piece && piece->lost;
	}
}
