/* explain_reads.c - how many requests an epoch takes, and how many bytes, see explain.h
 *
 * Walks the plan of the first epoch and groups samples as fetch.c, units.c, stretch.c and blocks.c do, without reading.
 * Long epochs are estimated from their first positions. What depends on timing is left out: requests that end early
 * because too many are in flight, retries, and units that are fetched again because slots ran out while others were in
 * use. */
#include "feed/explain.h"

#include "feed/blocks.h"
#include "feed/stretch.h"

enum { LOOKS = 1 << 18, LOOKS_UNITS = 1 << 16 };

/* A stretch that samples planned later are in. */
struct spread {
	uint32_t file;
	uint64_t begin, end;
	uint64_t left; /* samples; 0: the slot is free */
};

/* The walk, and what was read last. */
struct walk {
	struct leat_feed *feed;
	struct leat_reads *reads;
	uint64_t looked, all;           /* samples */
	struct leat_extent last;        /* of the run or the stretch */
	int items, requests;            /* of the run; items also of the stretch */
	uint64_t bytes;                 /* of the run */
	uint64_t begin, end;            /* of the stretch; end 0: none */
	uint64_t *unit, *used;          /* by slot: its unit and when it was used; used 0: free */
	struct spread *open;            /* budget.stretches, if samples are spread */
	struct leat_near *near;         /* LEAT_STRETCH_LOOK */
	struct leat_block_group blocks; /* of the last sample; end 0: none yet */
};

static void
add_request(struct walk *w, uint64_t bytes)
{
	w->reads->requests++;
	w->reads->bytes += bytes;
}

/* ---- runs ---- */

static bool
follows(const struct leat_extent *b, const struct leat_extent *a)
{
	return a->length && a->file == b->file && a->offset + a->length == b->offset;
}

static void
add_to_run(struct walk *w, const struct leat_extent *e, bool first_of_batch)
{
	const struct leat_budget *b = &w->feed->budget;
	bool merged = w->items > 0 && follows(e, &w->last);

	if (first_of_batch || w->items == b->run_rows || w->bytes >= LEAT_RUN_BYTES ||
	    (w->items > 0 && e->length > LEAT_RUN_BYTES - w->bytes) ||
	    (e->length && !merged && w->requests == b->run_reads)) {
		w->items = w->requests = 0;
		w->bytes = 0;
		merged = false;
	}
	w->items++;
	w->bytes += e->length;
	w->last = *e;
	if (!e->length)
		return;
	w->requests += !merged;
	w->reads->requests += !merged;
	w->reads->bytes += e->length;
}

/* ---- units ---- */

static void
add_to_unit(struct walk *w, const struct leat_extent *e)
{
	const struct leat_source *source = &w->feed->pipeline.source;
	struct leat_extent unit;
	int oldest = 0;

	for (int i = 0; i < w->feed->budget.units; i++) {
		if (w->used[i] && w->unit[i] == e->unit) {
			w->used[i] = w->looked;
			return;
		}
		if (w->used[i] < w->used[oldest])
			oldest = i;
	}
	w->unit[oldest] = e->unit;
	w->used[oldest] = w->looked;
	source->kind->unit(source, e->unit, &unit);
	if (unit.length)
		add_request(w, unit.length);
}

/* ---- stretches ---- */

static uint64_t
request_cost(const struct walk *w, uint32_t file)
{
	return leat_files_at(w->feed->pipeline.source.files, file)->store->kind->request_cost;
}

static void
end_stretch(struct walk *w)
{
	if (w->end)
		add_request(w, w->end - w->begin);
	w->end = 0;
	w->items = 0;
}

static void
add_to_stretch(struct walk *w, const struct leat_extent *e)
{
	uint64_t from = w->feed->pipeline.source.kind->copies ? w->last.offset : w->end;

	if (e->length > w->feed->budget.stretch_bytes / 2) {
		add_request(w, e->length);
		return;
	}
	if (!w->end || e->file != w->last.file || e->offset < from ||
	    (e->offset > w->end && e->offset - w->end > request_cost(w, e->file)) ||
	    e->offset + e->length - w->begin > w->feed->budget.stretch_bytes || w->items > LEAT_STRETCH_LOOK) {
		end_stretch(w);
		w->begin = e->offset;
	}
	w->items++;
	if (e->offset + e->length > w->end)
		w->end = e->offset + e->length;
	w->last = *e;
}

/* ---- stretches of samples that are spread: as look_around in stretch.c ---- */

/* This rank's position number `i` of the epoch. All batches but the last are full. */
static uint64_t
position_at(const struct leat_feed *feed, uint64_t i)
{
	uint64_t first, rows = leat_batch_samples(feed, 0, &first), number = i / rows;

	leat_batch_samples(feed, number, &first);
	return first + i % rows;
}

static struct spread *
find_open(const struct walk *w, const struct leat_extent *e)
{
	for (int i = 0; i < w->feed->budget.stretches; i++) {
		struct spread *s = &w->open[i];

		if (s->left && s->file == e->file && e->offset >= s->begin && e->offset + e->length <= s->end)
			return s;
	}
	return NULL;
}

static void
locate_at(const struct walk *w, uint64_t i, struct leat_extent *e)
{
	struct leat_pipeline *p = &w->feed->pipeline;

	leat_source_locate(&p->source, leat_plan_at(&p->plan, 0, position_at(w->feed, i)), e);
	if (e->damaged)
		e->length = e->lent = 0;
}

/* Collects the samples that come soon and may be in the same stretch as number `at`. */
static size_t
collect_near(const struct walk *w, uint64_t at, const struct leat_extent *first)
{
	const struct leat_budget *b = &w->feed->budget;
	uint64_t misses = 0, most = b->stretch_bytes;
	size_t count = 0;

	for (uint64_t i = at + 1; i < w->all && i <= at + LEAT_STRETCH_LOOK && misses < b->spread; i++) {
		struct leat_extent e;

		locate_at(w, i, &e);
		misses++;
		if (!e.length || e.file != first->file || e.length > most / 2 || e.offset + most < first->offset ||
		    e.offset > first->offset + most || find_open(w, &e))
			continue;
		w->near[count++] = (struct leat_near){e.offset, e.offset + e.length};
		misses = 0;
	}
	return count;
}

static bool
extend(const struct walk *w, struct spread *s, const struct leat_near *near)
{
	uint64_t cost = request_cost(w, s->file);
	uint64_t begin = near->begin < s->begin ? near->begin : s->begin;
	uint64_t end = near->end > s->end ? near->end : s->end;

	if (near->begin > s->end + cost || near->end + cost < s->begin || end - begin > w->feed->budget.stretch_bytes)
		return false;
	s->begin = begin;
	s->end = end;
	s->left++;
	return true;
}

static void
begin_spread(struct walk *w, uint64_t at, const struct leat_extent *e)
{
	struct spread s = {e->file, e->offset, e->offset + e->length, 0};
	size_t count = collect_near(w, at, e), before = count + 1;
	int slot = 0;

	while (count < before) {
		before = count;
		for (size_t i = 0; i < count;)
			if (extend(w, &s, &w->near[i]))
				w->near[i] = w->near[--count];
			else
				i++;
	}
	add_request(w, s.end - s.begin);
	while (slot < w->feed->budget.stretches - 1 && w->open[slot].left)
		slot++;
	w->open[slot] = s;
}

static void
add_to_spread(struct walk *w, uint64_t at, const struct leat_extent *e)
{
	struct spread *s = find_open(w, e);

	if (s)
		s->left--;
	else if (e->length > w->feed->budget.stretch_bytes / 2)
		add_request(w, e->length);
	else
		begin_spread(w, at, e);
}

/* ---- blocks that are shuffled ---- */

static void
begin_blocks(struct walk *w, uint64_t position)
{
	leat_blocks_list(w->feed, &w->blocks, 0, position);
	for (size_t i = 0; i < w->blocks.pieces; i++) {
		uint64_t bytes = w->blocks.piece[i].stop - w->blocks.piece[i].begin;

		w->reads->requests += (bytes + LEAT_BLOCKS_READ - 1) / LEAT_BLOCKS_READ;
		w->reads->bytes += bytes;
	}
}

static void
add_to_blocks(struct walk *w, uint64_t at, const struct leat_extent *e)
{
	uint64_t position = position_at(w->feed, at);

	if (position >= w->blocks.end)
		begin_blocks(w, position);
	if (!leat_blocks_find(&w->blocks, leat_plan_at(&w->feed->pipeline.plan, 0, position), e))
		add_request(w, e->length);
}

/* ---- the walk ---- */

static void
add_sample(struct walk *w, uint64_t at, bool first_of_batch)
{
	const struct leat_source *source = &w->feed->pipeline.source;
	struct leat_extent e;

	w->looked = at + 1;
	locate_at(w, at, &e);
	if (leat_source_lends(source))
		w->reads->bytes += e.lent;
	else if (e.in_unit && !e.damaged)
		add_to_unit(w, &e);
	else if (!w->feed->budget.stretches && !w->feed->budget.block_groups)
		add_to_run(w, &e, first_of_batch);
	else if (!e.length)
		;
	else if (w->feed->budget.block_groups)
		add_to_blocks(w, at, &e);
	else if (w->feed->budget.spread == 1)
		add_to_stretch(w, &e);
	else
		add_to_spread(w, at, &e);
}

static void
walk_epoch(struct walk *w, uint64_t looks)
{
	uint64_t first, rows = leat_batch_samples(w->feed, 0, &first);

	for (uint64_t i = 0; i < w->all && i < looks; i++)
		add_sample(w, i, i % rows == 0);
	end_stretch(w);
}

/* Samples of this rank in an epoch. */
static uint64_t
positions(const struct leat_feed *feed)
{
	uint64_t batches = leat_batches(feed), first;

	return batches ? (batches - 1) * leat_batch_samples(feed, 0, &first) +
	                         leat_batch_samples(feed, batches - 1, &first)
	               : 0;
}

static uint64_t
scaled(uint64_t n, uint64_t looked, uint64_t all)
{
	return looked ? (uint64_t)((double)n * ((double)all / (double)looked) + 0.5) : 0;
}

/* Allocates what the way of reading needs. */
static bool
prepare(struct walk *w, struct leat_mem *mem)
{
	size_t units = (size_t)w->feed->budget.units, stretches = (size_t)w->feed->budget.stretches;

	if (units) {
		w->unit = leat_alloc_array(mem, 2 * units, sizeof *w->unit);
		w->used = w->unit ? w->unit + units : NULL;
		return w->unit != NULL;
	}
	if (stretches && w->feed->budget.spread > 1) {
		w->open = leat_alloc_array(mem, stretches, sizeof *w->open);
		w->near = leat_alloc_array(mem, LEAT_STRETCH_LOOK, sizeof *w->near);
		return w->open && w->near;
	}
	if (w->feed->budget.block_groups) {
		w->blocks.piece = leat_alloc_array(mem, w->feed->budget.block_pieces, sizeof *w->blocks.piece);
		return w->blocks.piece != NULL;
	}
	return true;
}

enum leat_status
leat_explain_reads(struct leat_feed *feed, struct leat_reads *reads, struct leat_err *err)
{
	struct walk w = {.feed = feed, .reads = reads, .all = positions(feed)};
	enum leat_status status = LEAT_OK;
	struct leat_mem mem;

	leat_mem_init(&mem, SIZE_MAX);
	*reads = (struct leat_reads){.way = leat_way_of_reading(feed)};
	if (!prepare(&w, &mem)) {
		status = leat_fail(err, LEAT_NOMEM, "out of memory");
	} else {
		walk_epoch(&w, w.unit ? LOOKS_UNITS : LOOKS);
		reads->estimated = w.looked < w.all;
		if (reads->estimated) {
			reads->requests = scaled(reads->requests, w.looked, w.all);
			reads->bytes = scaled(reads->bytes, w.looked, w.all);
		}
		if (leat_source_lends(&feed->pipeline.source))
			reads->way = feed->pipeline.source.mapped ? "mapped" : "none"; /* or all is in memory */
		else if (reads->requests == 0)
			reads->way = "none";
	}
	leat_free(&mem, w.unit);
	leat_free(&mem, w.near);
	leat_free(&mem, w.open);
	leat_free(&mem, w.blocks.piece);
	return status;
}
