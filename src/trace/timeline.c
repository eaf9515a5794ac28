/* timeline.c - see timeline.h
 *
 * Rows of bins are here; exact spans in timeline_spans.c, tracks in timeline_tracks.c, JSON in timeline_json.c. */
#include "trace/timeline_inside.h"

#include <string.h>

#include "base/clock.h"

enum { MEMORY = 4 << 20, FIRST_BIN_NS = 1 << 20 };

enum leat_status
leat_timeline_open(struct leat_timeline **timeline, struct leat_mem *mem, size_t memory, uint64_t begin_ns,
                   struct leat_err *err)
{
	struct leat_timeline *t = leat_alloc(mem, sizeof *t);

	*timeline = NULL;
	if (!t)
		return leat_fail_mem(err, mem, sizeof *t, "a timeline");
	t->mem = mem;
	t->memory = memory ? memory : MEMORY;
	t->begin_ns = begin_ns;
	t->bins = LEAT_TIMELINE_BINS;
	t->bin_ns = FIRST_BIN_NS;
	*timeline = t;
	return LEAT_OK;
}

void
leat_timeline_close(struct leat_timeline *timeline)
{
	if (!timeline)
		return;
	for (size_t i = 0; i < LEAT_TIMELINE_LANES; i++) {
		leat_free(timeline->mem, timeline->lane[i].name);
		for (size_t tag = 0; tag < LEAT_TIMELINE_TAGS; tag++)
			leat_free(timeline->mem, timeline->lane[i].row[tag].bin);
	}
	leat_timeline_spans_close(timeline);
	leat_timeline_tracks_close(timeline);
	leat_free(timeline->mem, timeline);
}

char *
leat_timeline_name(struct leat_timeline *timeline, const char *name)
{
	return leat_strndup(timeline->mem, name, strnlen(name, LEAT_TIMELINE_NAME));
}

void
leat_timeline_lane(struct leat_timeline *timeline, int lane, const char *name, bool overlaps)
{
	struct timeline_lane *l;

	if (lane < 0 || lane >= LEAT_TIMELINE_LANES)
		return;
	l = &timeline->lane[lane];
	leat_free(timeline->mem, l->name);
	l->name = leat_timeline_name(timeline, name);
	l->overlaps = overlaps;
}

/* ---- bins ---- */

static void
merge(struct timeline_bin *to, const struct timeline_bin *a, const struct timeline_bin *b)
{
	struct timeline_bin both = {.busy_ns = a->busy_ns + b->busy_ns,
	                            .count = a->count + b->count,
	                            .longest_ns = a->longest_ns > b->longest_ns ? a->longest_ns : b->longest_ns};

	*to = both;
}

/* Every bin covers twice the time; the second half of each row is free. */
static void
widen(struct leat_timeline *timeline)
{
	for (size_t i = 0; i < LEAT_TIMELINE_LANES; i++)
		for (size_t tag = 0; tag < LEAT_TIMELINE_TAGS; tag++) {
			struct timeline_bin *bin = timeline->lane[i].row[tag].bin;

			if (!bin)
				continue;
			for (size_t b = 0; b < timeline->bins / 2; b++)
				merge(&bin[b], &bin[2 * b], &bin[2 * b + 1]);
			memset(&bin[timeline->bins / 2], 0, timeline->bins / 2 * sizeof *bin);
		}
	timeline->bin_ns *= 2;
}

/* Fewer bins per row make room for more rows. */
static void
halve(struct leat_timeline *timeline)
{
	widen(timeline);
	timeline->bins /= 2;
	for (size_t i = 0; i < LEAT_TIMELINE_LANES; i++)
		for (size_t tag = 0; tag < LEAT_TIMELINE_TAGS; tag++) {
			struct timeline_row *row = &timeline->lane[i].row[tag];
			struct timeline_bin *less;

			if (!row->bin)
				continue;
			less = leat_realloc(timeline->mem, row->bin, timeline->bins * sizeof *row->bin);
			row->bin = less ? less : row->bin; /* a longer one does as well */
		}
}

static struct timeline_row *
row_of(struct leat_timeline *timeline, int lane, unsigned tag)
{
	struct timeline_row *row;

	if (lane < 0 || lane >= LEAT_TIMELINE_LANES || tag >= LEAT_TIMELINE_TAGS)
		return NULL;
	row = &timeline->lane[lane].row[tag];
	if (row->bin)
		return row;
	while ((timeline->rows + 1) * timeline->bins * sizeof *row->bin > timeline->memory) {
		if (timeline->bins <= LEAT_TIMELINE_FEWEST_BINS)
			return NULL;
		halve(timeline);
	}
	row->bin = leat_alloc_array(timeline->mem, timeline->bins, sizeof *row->bin);
	timeline->rows += row->bin != NULL;
	return row->bin ? row : NULL;
}

static void
add_busy(const struct leat_timeline *timeline, struct timeline_row *row, uint64_t begin, uint64_t end)
{
	uint64_t width = timeline->bin_ns, at = begin;

	while (at < end) {
		uint64_t next = (at / width + 1) * width, until = end < next ? end : next;

		row->bin[at / width].busy_ns += until - at;
		at = until;
	}
	row->busy_ns += end - begin;
}

/* A span counts in the bin in which it begins, and is busy in all that it covers. */
static void
add_to_bins(struct leat_timeline *timeline, struct timeline_row *row, uint64_t begin, uint64_t length, uint32_t every)
{
	uint64_t end = begin + length * every;
	struct timeline_bin *bin;

	while (end >= timeline->bin_ns * timeline->bins)
		widen(timeline);
	bin = &row->bin[begin / timeline->bin_ns];
	bin->count += every;
	if (length > bin->longest_ns)
		bin->longest_ns = length;
	add_busy(timeline, row, begin, end);
	row->count += every;
	if (length > row->longest_ns)
		row->longest_ns = length;
}

static uint64_t
since_begin(const struct leat_timeline *timeline, uint64_t at_ns)
{
	return at_ns > timeline->begin_ns ? at_ns - timeline->begin_ns : 0;
}

void
leat_timeline_span(struct leat_timeline *timeline, int lane, const struct leat_span *span, const char *name)
{
	uint64_t begin = since_begin(timeline, span->begin), end = since_begin(timeline, span->end);
	uint16_t every = span->every ? span->every : 1;
	struct timeline_row *row = NULL;

	if (end >= begin && end < LEAT_TIMELINE_MOST_NS && end - begin < LEAT_TIMELINE_MOST_NS / every)
		row = row_of(timeline, lane, span->tag);
	timeline->spans += every;
	if (!row) {
		timeline->left_out += every;
		return;
	}
	add_to_bins(timeline, row, begin, end - begin, every);
	if (end > timeline->end)
		timeline->end = end;
	leat_timeline_keep(timeline, (struct timeline_span){.begin = begin,
	                                                    .end = end,
	                                                    .item = span->item,
	                                                    .lane = (uint16_t)lane,
	                                                    .every = every,
	                                                    .tag = (uint8_t)span->tag,
	                                                    .name = leat_timeline_name_id(timeline, span->tag, name)});
}

void
leat_timeline_tick(struct leat_timeline *timeline, uint64_t at_ns)
{
	uint64_t at = since_begin(timeline, at_ns);

	if (at <= timeline->ticked || at >= LEAT_TIMELINE_MOST_NS)
		return;
	timeline->ticked = at;
	leat_timeline_settle(timeline);
}

void
leat_timeline_sum(const struct leat_timeline *timeline, int lane, enum leat_tag tag, struct leat_timeline_sums *sums)
{
	const struct timeline_row *row = &timeline->lane[lane].row[tag];

	*sums = (struct leat_timeline_sums){.busy_ns = row->busy_ns,
	                                    .count = row->count,
	                                    .longest_ns = row->longest_ns,
	                                    .bin_ns = timeline->bin_ns,
	                                    .bins = timeline->bins};
	for (size_t b = 0; row->bin && b < timeline->bins; b++) {
		sums->bin_busy_ns += row->bin[b].busy_ns;
		sums->bin_count += row->bin[b].count;
	}
}

/* ---- as a sink ---- */

static void
take_lane(void *arg, int lane, const char *name, bool overlaps)
{
	leat_timeline_lane(arg, lane, name, overlaps);
}

static void
take_span(void *arg, int lane, const struct leat_span *span, const char *name)
{
	leat_timeline_span(arg, lane, span, name);
}

static void
take_count(void *arg, const char *track, uint64_t at_ns, double value)
{
	leat_timeline_count(arg, track, at_ns, value);
}

/* While a round empties one ring, a span may end up in another that was emptied before. The next round has it. */
static void
take_tick(void *arg, uint64_t now_ns, const struct leat_recorded *recorded)
{
	struct leat_timeline *timeline = arg;

	leat_timeline_tick(timeline, timeline->last_round_ns);
	timeline->last_round_ns = now_ns;
	timeline->dropped = recorded->dropped;
}

static void
free_timeline(void *arg)
{
	leat_timeline_close(arg);
}

static const struct leat_span_sink sink = {
	.lane = take_lane,
	.span = take_span,
	.count = take_count,
	.tick = take_tick,
	.free = free_timeline,
};

enum leat_status
leat_timeline_attach(struct leat_recorder *recorder, struct leat_err *err)
{
	struct leat_timeline *timeline;
	enum leat_status status = leat_timeline_open(&timeline, leat_recorder_mem(recorder), 0, leat_now(), err);

	if (status == LEAT_OK)
		leat_recorder_attach(recorder, &sink, timeline);
	return status;
}

struct leat_timeline *
leat_timeline_of(const struct leat_recorder *recorder)
{
	return leat_recorder_sink(recorder, &sink);
}
