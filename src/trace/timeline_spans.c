/* timeline_spans.c - the spans that a timeline keeps: the first, the latest, and those around slow batches
 *
 * Spans arrive lane by lane, not in the order of time. What is complete follows from the ticks: when one says that all
 * spans before a time have come, the neighbourhood of a slow batch before it is copied from the ring of recent spans.
 */
#include "trace/timeline_inside.h"

#include <stdlib.h>
#include <string.h>

uint8_t
leat_timeline_name_id(struct leat_timeline *timeline, unsigned tag, const char *name)
{
	size_t i;

	if (!name || !*name || strcmp(name, leat_tag_name((enum leat_tag)tag)) == 0)
		return 0;
	for (i = 0; i < timeline->names; i++)
		if (strncmp(timeline->name[i], name, LEAT_TIMELINE_NAME) == 0)
			return (uint8_t)(i + 1);
	if (i + 1 >= LEAT_TIMELINE_NAMES || !(timeline->name[i] = leat_timeline_name(timeline, name)))
		return 0;
	timeline->names++;
	return (uint8_t)(i + 1);
}

static struct timeline_span *
room(struct leat_timeline *timeline, struct timeline_span **spans, size_t count)
{
	if (!*spans)
		*spans = leat_alloc_array(timeline->mem, count, sizeof **spans);
	return *spans;
}

/* Notes a batch that took longer than one of the slowest so far, in place of the shortest of them. */
static void
note_slow(struct leat_timeline *timeline, const struct timeline_span *span)
{
	struct timeline_slow *least = &timeline->slow[0];
	uint64_t length = span->end - span->begin, before = length / 4;

	for (size_t i = 1; i < LEAT_TIMELINE_SLOW; i++)
		if (timeline->slow[i].length < least->length)
			least = &timeline->slow[i];
	if (length <= least->length)
		return;
	*least = (struct timeline_slow){.begin = span->begin > before ? span->begin - before : 0,
	                                .end = span->end,
	                                .length = length,
	                                .span = least->span};
}

void
leat_timeline_keep(struct leat_timeline *timeline, struct timeline_span span)
{
	if (timeline->first_count < LEAT_TIMELINE_FIRST && room(timeline, &timeline->first, LEAT_TIMELINE_FIRST)) {
		timeline->first[timeline->first_count++] = span;
	} else if (room(timeline, &timeline->recent, LEAT_TIMELINE_RECENT)) {
		struct timeline_span *slot = &timeline->recent[timeline->recent_count % LEAT_TIMELINE_RECENT];

		if (timeline->recent_count++ >= LEAT_TIMELINE_RECENT && slot->end > timeline->recent_from)
			timeline->recent_from = slot->end;
		*slot = span;
		if (span.tag == LEAT_TAG_GET_BATCH)
			note_slow(timeline, &span);
	}
}

/* ---- settling ---- */

/* Spans that are in `first` stay there, so only the ring can lack some. */
static void
copy_around(struct leat_timeline *timeline, struct timeline_slow *slow)
{
	uint64_t count = timeline->recent_count;
	uint64_t oldest = count > LEAT_TIMELINE_RECENT ? count - LEAT_TIMELINE_RECENT : 0;

	slow->from = slow->begin > timeline->recent_from ? slow->begin : timeline->recent_from;
	slow->count = 0;
	for (uint64_t i = count; i-- > oldest;) {
		const struct timeline_span *span = &timeline->recent[i % LEAT_TIMELINE_RECENT];

		if (span->end <= slow->begin || span->begin >= slow->end)
			continue;
		if (slow->count < LEAT_TIMELINE_AROUND)
			slow->span[slow->count++] = *span;
		else if (span->end > slow->from)
			slow->from = span->end;
	}
}

void
leat_timeline_settle(struct leat_timeline *timeline)
{
	if (timeline->first_count < LEAT_TIMELINE_FIRST)
		timeline->first_until = timeline->ticked;
	for (size_t i = 0; i < LEAT_TIMELINE_SLOW; i++) {
		struct timeline_slow *slow = &timeline->slow[i];

		if (slow->length == 0 || slow->settled || slow->end > timeline->ticked)
			continue;
		if (room(timeline, &slow->span, LEAT_TIMELINE_AROUND))
			copy_around(timeline, slow);
		slow->settled = slow->span != NULL;
	}
}

/* ---- all of them ---- */

static int
compare(const void *a, const void *b)
{
	const struct timeline_span *x = a, *y = b;

	if (x->lane != y->lane)
		return x->lane < y->lane ? -1 : 1;
	if (x->tag != y->tag)
		return x->tag < y->tag ? -1 : 1;
	if (x->begin != y->begin)
		return x->begin < y->begin ? -1 : 1;
	if (x->end != y->end)
		return x->end < y->end ? -1 : 1;
	if (x->item != y->item)
		return x->item < y->item ? -1 : 1;
	return x->name < y->name ? -1 : x->name > y->name;
}

static size_t
collect(const struct leat_timeline *timeline, struct timeline_span *all)
{
	size_t n = timeline->first_count, recent = timeline->recent_count;

	if (n)
		memcpy(all, timeline->first, n * sizeof *all);
	if (recent > LEAT_TIMELINE_RECENT)
		recent = LEAT_TIMELINE_RECENT;
	if (recent)
		memcpy(&all[n], timeline->recent, recent * sizeof *all);
	n += recent;
	for (size_t i = 0; i < LEAT_TIMELINE_SLOW; i++)
		if (timeline->slow[i].settled) {
			memcpy(&all[n], timeline->slow[i].span, timeline->slow[i].count * sizeof *all);
			n += timeline->slow[i].count;
		}
	return n;
}

struct timeline_span *
leat_timeline_kept(const struct leat_timeline *timeline, size_t *count)
{
	size_t most = LEAT_TIMELINE_FIRST + LEAT_TIMELINE_RECENT + LEAT_TIMELINE_SLOW * LEAT_TIMELINE_AROUND, n,
	       kept = 0;
	struct timeline_span *all = leat_alloc_array(timeline->mem, most, sizeof *all);

	*count = 0;
	if (!all)
		return NULL;
	n = collect(timeline, all);
	if (n)
		qsort(all, n, sizeof *all, compare);
	for (size_t i = 0; i < n; i++)
		if (i == 0 || compare(&all[i], &all[kept - 1]) != 0)
			all[kept++] = all[i];
	*count = kept;
	return all;
}

void
leat_timeline_spans_close(struct leat_timeline *timeline)
{
	leat_free(timeline->mem, timeline->first);
	leat_free(timeline->mem, timeline->recent);
	for (size_t i = 0; i < LEAT_TIMELINE_SLOW; i++)
		leat_free(timeline->mem, timeline->slow[i].span);
	for (size_t i = 0; i < timeline->names; i++)
		leat_free(timeline->mem, timeline->name[i]);
}
