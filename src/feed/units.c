/* units.c - units, such as compressed blocks, that several samples share: read and decoded once
 *
 * A unit keeps its slot while a run needs it, and longer if nothing else needs the slot.
 * Planning a run pins the units of its samples; if no slot is free for one, the run ends before
 * that sample. So only planning ever waits for a slot: a planned run can always finish and
 * unpin its units.
 *
 * A unit's bytes go through the window like those of samples. Any free worker decodes it, which
 * makes the waiting runs ready. When units are used in order, the next ones are read and decoded
 * ahead, one per worker.
 *
 * Threads: see fetch.h. A slot's unit is written by the thread that decodes it and is read-only
 * while pinned. */
#include <string.h>

#include "feed/spans.h"

/* ---- slots ---- */

enum leat_status
leat_units_open(struct leat_feed *feed, struct leat_err *err)
{
	struct leat_fetch *fetch = &feed->fetch;

	fetch->fetched_tail = &fetch->fetched;
	if (!feed->budget.units)
		return LEAT_OK;
	fetch->slot = leat_alloc_array(&feed->mem, (size_t)feed->budget.units, sizeof(*fetch->slot));
	if (!fetch->slot)
		return leat_fail_mem(err, &feed->mem, (size_t)feed->budget.units * sizeof(*fetch->slot),
		                     "shared units");
	for (int i = 0; i < feed->budget.units; i++) {
		fetch->slot[i].request.feed = feed;
		fetch->slot[i].unit.bytes = leat_map(&feed->mem, feed->pipeline.source.max_unit);
		if (!fetch->slot[i].unit.bytes)
			return leat_fail_mem(err, &feed->mem, feed->pipeline.source.max_unit, "shared units");
	}
	return LEAT_OK;
}

void
leat_units_close(struct leat_feed *feed)
{
	for (int i = 0; feed->fetch.slot && i < feed->budget.units; i++)
		leat_unmap(&feed->mem, feed->fetch.slot[i].unit.bytes, feed->pipeline.source.max_unit);
	leat_free(&feed->mem, feed->fetch.slot);
	feed->fetch.slot = NULL;
}

/* Decoded units stay valid at any position. */
void
leat_units_reset(struct leat_feed *feed)
{
	struct leat_fetch *fetch = &feed->fetch;

	for (int i = 0; fetch->slot && i < feed->budget.units; i++) {
		struct leat_unit_slot *slot = &fetch->slot[i];

		if (slot->state != LEAT_UNIT_THERE)
			slot->state = LEAT_UNIT_NONE;
		slot->users = 0;
		slot->waiting.first = NULL;
	}
	fetch->planned = fetch->fetched = NULL;
	fetch->fetched_tail = &fetch->fetched;
}

static struct leat_unit_slot *
find(const struct leat_feed *feed, uint64_t number)
{
	for (int i = 0; i < feed->budget.units; i++) {
		struct leat_unit_slot *slot = &feed->fetch.slot[i];

		if (slot->state != LEAT_UNIT_NONE && slot->unit.number == number)
			return slot;
	}
	return NULL;
}

static bool
is_free(const struct leat_unit_slot *slot)
{
	return !slot->users &&
	       (slot->state == LEAT_UNIT_NONE || slot->state == LEAT_UNIT_THERE || slot->state == LEAT_UNIT_LOST);
}

/* The least recently used free slot that is empty or holds one of units [from, to); NULL: none. */
static struct leat_unit_slot *
oldest(const struct leat_feed *feed, uint64_t from, uint64_t to)
{
	struct leat_unit_slot *found = NULL;

	for (int i = 0; i < feed->budget.units; i++) {
		struct leat_unit_slot *slot = &feed->fetch.slot[i];
		bool among = slot->state == LEAT_UNIT_NONE || (slot->unit.number >= from && slot->unit.number < to);

		if (among && is_free(slot) && (!found || slot->last < found->last))
			found = slot;
	}
	return found;
}

/* Schedules a unit for reading into a slot. False: the window has no room. */
static bool
plan_unit(struct leat_feed *feed, struct leat_unit_slot *slot, uint64_t number)
{
	const struct leat_source *source = &feed->pipeline.source;
	struct leat_extent extent;

	source->kind->unit(source, number, &extent);
	if (!leat_window_take(&feed->fetch, &slot->part, (size_t)extent.length))
		return false;
	slot->extent = extent;
	slot->unit.number = number;
	slot->state = LEAT_UNIT_PLANNED;
	slot->unread = false;
	slot->waiting.first = NULL;
	slot->next = feed->fetch.planned;
	feed->fetch.planned = slot;
	return true;
}

/* If the previous unit is here too, units are used in order and the next ones will be needed soon. They only take slots
 * of recent earlier units, never those of another file being read at the same time. */
static void
plan_ahead(struct leat_feed *feed, uint64_t number)
{
	uint64_t slots = (uint64_t)feed->budget.units, passed = number > slots ? number - slots : 0;

	if (number > 0 && !find(feed, number - 1))
		return;
	for (uint64_t next = number + 1; next < feed->pipeline.source.units && next <= number + feed->budget.threads;
	     next++) {
		struct leat_unit_slot *slot = find(feed, next) ? NULL : oldest(feed, passed, number);

		if (slot && !plan_unit(feed, slot, next))
			return;
	}
}

static struct leat_unit_slot *
slot_for(struct leat_feed *feed, uint64_t number)
{
	struct leat_unit_slot *slot = find(feed, number);

	if (slot)
		return slot;
	slot = oldest(feed, 0, UINT64_MAX);
	if (!slot || !plan_unit(feed, slot, number))
		return NULL;
	return slot;
}

bool
leat_units_pin(struct leat_feed *feed, struct leat_run *run, struct leat_run_item *item)
{
	uint64_t number = item->raw.extent.unit;
	struct leat_unit_slot *slot;

	for (int i = 0; i < run->units; i++)
		if (run->unit[i]->unit.number == number) {
			item->raw.unit = &run->unit[i]->unit;
			return true;
		}
	slot = run->units < LEAT_RUN_UNITS ? slot_for(feed, number) : NULL;
	if (!slot)
		return false;
	slot->users++;
	slot->last = ++feed->fetch.clock;
	if (slot->state != LEAT_UNIT_THERE && slot->state != LEAT_UNIT_LOST) {
		leat_waits_add(&slot->waiting, &run->wait[run->units], run);
		atomic_fetch_add(&run->pending, 1);
	}
	run->unit[run->units++] = slot;
	item->raw.unit = &slot->unit;
	plan_ahead(feed, number);
	return true;
}

void
leat_units_unpin(struct leat_feed *feed, struct leat_run *run)
{
	(void)feed;
	for (int i = 0; i < run->units; i++)
		run->unit[i]->users--;
	run->units = 0;
}

/* ---- fetching ---- */

/* Under the lock: the read has completed or failed. */
static void
add_fetched(struct leat_feed *feed, struct leat_unit_slot *slot)
{
	slot->state = LEAT_UNIT_FETCHED;
	slot->next = NULL;
	*feed->fetch.fetched_tail = slot;
	feed->fetch.fetched_tail = &slot->next;
	leat_feed_wake(feed);
}

static void
complete(struct leat_read *read)
{
	struct leat_unit_slot *slot = read->arg;
	struct leat_feed *feed = slot->request.feed;
	uint64_t end = feed->spans ? leat_now() : 0;

	leat_request_count(feed, read);
	slot->unread = read->status != LEAT_OK;
	pthread_mutex_lock(&feed->lock);
	if (feed->spans)
		leat_spans_add_read(feed, &slot->request, feed->spans->unit, slot->unit.number, end);
	leat_request_ended(feed, &slot->request);
	feed->fetch.requests--;
	add_fetched(feed, slot);
	pthread_mutex_unlock(&feed->lock);
	leat_fetch_refill(feed);
	leat_fetch_leave(feed); /* the feed may be freed after this */
}

static enum leat_status
read_unit(struct leat_feed *feed, const struct leat_extent *extent, void *to, int flags, struct leat_err *err)
{
	struct iovec iov = {to, (size_t)extent->length};
	struct leat_object entry;
	const struct leat_object *object = leat_source_object(&feed->pipeline.source, extent->file, &entry);
	size_t got;

	if (!extent->length || !object)
		return LEAT_OK;
	return leat_object_read(object, extent->offset, &iov, 1, flags, &got, err);
}

/* True: the read is in flight. */
static bool
start_unit(struct leat_feed *feed, struct leat_unit_slot *slot)
{
	enum leat_status status = read_unit(feed, &slot->extent, slot->part.bytes, LEAT_READ_NOWAIT, NULL);
	struct leat_object entry;

	if (status == LEAT_AGAIN) {
		slot->request.read = (struct leat_read){
			.offset = slot->extent.offset,
			.iov = {{slot->part.bytes, (size_t)slot->extent.length}},
			.iovs = 1,
			.done = complete,
			.arg = slot,
		};
		slot->request.read.object = *leat_source_object(&feed->pipeline.source, slot->extent.file, &entry);
		if (leat_request_submit(feed, &slot->request) == LEAT_OK)
			return true;
	}
	slot->unread = status != LEAT_OK;
	pthread_mutex_lock(&feed->lock);
	feed->fetch.requests--;
	add_fetched(feed, slot);
	pthread_mutex_unlock(&feed->lock);
	return false;
}

bool
leat_units_start(struct leat_feed *feed)
{
	bool waits = false;

	for (;;) {
		struct leat_unit_slot *slot;

		pthread_mutex_lock(&feed->lock);
		slot = feed->fetch.planned;
		if (slot) {
			feed->fetch.planned = slot->next;
			slot->state = LEAT_UNIT_FETCHING;
			feed->fetch.requests++;
		}
		pthread_mutex_unlock(&feed->lock);
		if (!slot)
			return waits;
		waits |= start_unit(feed, slot);
	}
}

/* ---- decoding ---- */

struct leat_unit_slot *
leat_units_take(struct leat_feed *feed)
{
	struct leat_unit_slot *slot = feed->fetch.fetched;

	if (!slot)
		return NULL;
	feed->fetch.fetched = slot->next;
	if (!feed->fetch.fetched)
		feed->fetch.fetched_tail = &feed->fetch.fetched;
	slot->state = LEAT_UNIT_DECODING;
	return slot;
}

static enum leat_status
decode(struct leat_feed *feed, const struct leat_extent *extent, const unsigned char *bytes, struct leat_unit *unit,
       struct leat_scratch *scratch, struct leat_err *err)
{
	const struct leat_source *source = &feed->pipeline.source;

	unit->len = 0;
	unit->fault = NULL;
	return source->kind->decode(source, extent, bytes, unit, scratch, err);
}

void
leat_units_decode(struct leat_feed *feed, struct leat_unit_slot *slot, struct leat_scratch *scratch)
{
	enum leat_status status = slot->unread ? read_unit(feed, &slot->extent, slot->part.bytes, 0, NULL) : LEAT_OK;
	struct leat_run *run;

	if (status == LEAT_OK)
		status = decode(feed, &slot->extent, slot->part.bytes, &slot->unit, scratch, NULL);
	pthread_mutex_lock(&feed->lock);
	leat_window_give(&feed->fetch, &slot->part);
	slot->state = status == LEAT_OK ? LEAT_UNIT_THERE : LEAT_UNIT_LOST;
	slot->unit.lost = status != LEAT_OK;
	while ((run = leat_waits_take(&slot->waiting)) != NULL)
		leat_run_progress(feed, run);
	pthread_mutex_unlock(&feed->lock);
}

enum leat_status
leat_units_read(struct leat_feed *feed, struct leat_run_item *item, struct leat_unit *unit,
                struct leat_scratch *scratch, struct leat_err *err)
{
	const struct leat_source *source = &feed->pipeline.source;
	struct leat_extent extent;
	unsigned char *bytes;
	enum leat_status status;

	*unit = (struct leat_unit){.number = item->raw.extent.unit};
	pthread_mutex_lock(&feed->lock); /* kind->unit is not thread-safe */
	source->kind->unit(source, unit->number, &extent);
	pthread_mutex_unlock(&feed->lock);
	bytes = leat_scratch_alloc(scratch, (size_t)extent.length);
	unit->bytes = leat_scratch_alloc(scratch, source->max_unit);
	if (!bytes || !unit->bytes)
		return leat_fail(err, LEAT_INTERNAL, "a unit does not fit the memory reserved for it");
	status = read_unit(feed, &extent, bytes, 0, err);
	item->raw.unit = unit;
	return status == LEAT_OK ? decode(feed, &extent, bytes, unit, scratch, err) : status;
}
