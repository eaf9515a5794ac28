/* gather.c - see gather.h */
#include "feed/gather.h"

#include "base/clock.h"

/* ---- when ---- */

bool
leat_gather_fits(const struct leat_pipeline *p, int run_rows)
{
	const struct leat_source *source = &p->source;
	size_t files = source->files ? leat_files_count(source->files) : 0;
	uint64_t bytes = 0;

	if (files == 0 || files > LEAT_GATHER_FILES || source->table || source->units || !source->max_length ||
	    !source->count || run_rows < LEAT_GATHER_LEAST || leat_plan_spread(&p->plan) == 1)
		return false;
	for (size_t i = 0; i < files; i++) {
		const struct leat_object *file = leat_files_at(source->files, i);

		if (!file->store->kind->gather || !file->open)
			return false;
		bytes += file->size;
	}
	/* Page tables take 0.2 % of what was ever gathered: no more than that of the RAM. The page cache does not have
	 * more either. */
	return bytes / source->count <= LEAT_GATHER_LONGEST && bytes <= leat_ram("");
}

int
leat_gather_most(struct leat_feed *feed)
{
	struct leat_gathering *g = &feed->fetch.gathering;
	uint64_t now;

	if (g->most > 0 || g->off)
		return g->off ? 0 : g->most;
	now = leat_now();
	if (now < g->until_ns)
		return 0;
	g->opened_ns = now;
	g->credit_ns = LEAT_GATHER_GRACE;
	g->most = 1;
	return g->most;
}

static void
pause_gathering(struct leat_gathering *g)
{
	uint64_t now = leat_now(), longest = (uint64_t)LEAT_GATHER_PAUSES * LEAT_GATHER_PAUSE;

	if (now - g->opened_ns >= g->pause_ns)
		g->pause_ns = LEAT_GATHER_PAUSE;
	else
		g->pause_ns = 2 * g->pause_ns < longest ? 2 * g->pause_ns : longest;
	g->until_ns = now + g->pause_ns;
	g->most = 0;
}

/* A worker may wait as long as gathering has saved. */
static void
settle(struct leat_gathering *g, const struct leat_run *run)
{
	g->credit_ns += (int64_t)run->items * LEAT_GATHER_SAVES - (int64_t)run->waited_ns;
	if (g->credit_ns > LEAT_GATHER_CREDIT)
		g->credit_ns = LEAT_GATHER_CREDIT;
	if (g->credit_ns < 0)
		pause_gathering(g);
}

void
leat_gather_note(struct leat_feed *feed, const struct leat_run *run)
{
	struct leat_gathering *g = &feed->fetch.gathering;

	if (run->unsupported)
		g->off = true;
	if (g->most == 0) /* another run has just paused it */
		return;
	settle(g, run);
	if (run->gathered && run->items >= g->most && g->most < LEAT_GATHER_PIECES)
		g->most *= 2;
}

/* ---- how ---- */

_Static_assert((int)LEAT_RUN_ROWS_DIRECT <= (int)LEAT_GATHER_PIECES, "a run is gathered by one call");

static size_t
list_pieces(const struct leat_feed *feed, const struct leat_run *run, struct leat_piece piece[LEAT_GATHER_PIECES])
{
	size_t count = 0;

	for (int i = 0; i < run->items; i++) {
		const struct leat_run_item *item = &run->item[i];
		size_t bytes = leat_item_bytes(item);

		if (item->merged)
			piece[count - 1].length += bytes;
		else if (bytes)
			piece[count++] =
				(struct leat_piece){leat_files_at(feed->pipeline.source.files, item->raw.extent.file),
			                            item->raw.extent.offset, bytes};
	}
	return count;
}

void
leat_gather_start(struct leat_feed *feed, struct leat_run *run)
{
	struct leat_piece piece[LEAT_GATHER_PIECES];
	size_t count = list_pieces(feed, run, piece);
	enum leat_status status = LEAT_OK;

	if (count > 0)
		status = piece[0].object->store->kind->gather(piece, count, run->part.bytes, &run->waited_ns);
	run->gathered = count > 0 && status == LEAT_OK;
	run->unsupported = status == LEAT_UNSUPPORTED;
	for (int i = 0; i < run->items && status != LEAT_OK; i++)
		run->item[i].unread = leat_item_bytes(&run->item[i]) > 0;
}
