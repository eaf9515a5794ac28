/* ranks.c - divide global batches among the ranks
 *
 * Pure arithmetic on the size of an epoch, the size of a global batch, and where the batch begins:
 * which of its rows this rank gets, and which position each row has. docs/PLAN.md defines it.
 * Set at open; then any thread. */
#include "feed/feed.h"

#include <string.h>

#include "base/str.h"

/* ---- open ---- */

static enum leat_status
fail_batch_size(int64_t size, int world, struct leat_err *err)
{
	int64_t below = size / world * world, above = below + world;

	if (below == 0)
		return leat_fail(err, LEAT_INVALID, "batch(%lld) cannot be split over %d ranks; use %lld",
		                 (long long)size, world, (long long)above);
	return leat_fail(err, LEAT_INVALID, "batch(%lld) cannot be split over %d ranks; use %lld or %lld",
	                 (long long)size, world, (long long)below, (long long)above);
}

/* Ranks must not split a group of rows. With tail=wrap, repeats start with a new group. */
static enum leat_status
check_groups(const struct leat_feed *feed, int64_t rows, struct leat_err *err)
{
	int world = feed->options.world, group = feed->pipeline.row_group;

	if ((world == 1 && feed->tail != LEAT_TAIL_WRAP) || rows % group == 0)
		return LEAT_OK;
	if (world == 1)
		return leat_fail(err, LEAT_INVALID,
		                 "%s works on groups of %d samples, which tail=wrap repeats whole; batch(%lld) must be "
		                 "a multiple of %d",
		                 feed->pipeline.mix[0]->op->name, group, (long long)feed->global_rows, group);
	return leat_fail(err, LEAT_INVALID,
	                 "%s works on groups of %d samples, but batch(%lld) gives each of %d ranks %lld; use "
	                 "a multiple of %d",
	                 feed->pipeline.mix[0]->op->name, group, (long long)feed->global_rows, world, (long long)rows,
	                 group * world);
}

static void
warn_empty(const struct leat_feed *feed)
{
	uint64_t size = feed->pipeline.plan.size;

	if (size == 0)
		leat_log(&feed->log, LEAT_LOG_WARN, "no batches: there are no samples");
	else if (feed->tail == LEAT_TAIL_DROP && size < (uint64_t)feed->global_rows)
		leat_log(&feed->log, LEAT_LOG_WARN,
		         "no batches: the epoch has %llu sample%s, and tail=drop drops a batch of less than %lld",
		         (unsigned long long)size, leat_plural(size), (long long)feed->global_rows);
}

enum leat_status
leat_ranks_open(struct leat_feed *feed, int64_t *rows, struct leat_err *err)
{
	const struct leat_batch_params *batch = &feed->pipeline.batch;
	int world = feed->options.world;

	feed->global_rows = batch->per_rank > 0 ? batch->per_rank * world : batch->size;
	if (feed->global_rows % world != 0)
		return fail_batch_size(feed->global_rows, world, err);
	*rows = feed->global_rows / world;
	feed->tail = batch->tail;
	if (feed->tail == LEAT_TAIL_AUTO)
		feed->tail = world == 1 ? LEAT_TAIL_SHORT : LEAT_TAIL_WRAP;
	if (feed->tail == LEAT_TAIL_SHORT && world > 1)
		return leat_fail(err, LEAT_INVALID,
		                 "tail=short works with one rank only; use tail=wrap (batches of equal size), or "
		                 "tail=exact (every sample exactly once)");
	warn_empty(feed);
	return check_groups(feed, *rows, err);
}

/* ---- which rows ---- */

/* Do all batches have the same number of rows? */
static bool
fills_up(const struct leat_feed *feed)
{
	return feed->tail == LEAT_TAIL_WRAP || feed->tail == LEAT_TAIL_PAD;
}

bool
leat_ranks_keep_bad(const struct leat_feed *feed)
{
	return fills_up(feed) || feed->options.world > 1;
}

static uint64_t
least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static uint64_t
round_up(uint64_t n, uint64_t multiple)
{
	return (n + multiple - 1) / multiple * multiple;
}

/* This rank's rows of a global batch of `samples`: how many, and its first one. */
static uint64_t
share(const struct leat_feed *feed, uint64_t samples, uint64_t *first)
{
	uint64_t rank = (uint64_t)feed->options.rank, world = (uint64_t)feed->options.world;
	uint64_t group = (uint64_t)feed->pipeline.row_group, rows = (uint64_t)feed->global_rows / world;

	*first = rank * rows;
	if (feed->tail == LEAT_TAIL_EXACT && samples < (uint64_t)feed->global_rows) {
		uint64_t groups = round_up(samples, group) / group, more = groups % world;

		rows = (groups / world + (rank < more)) * group;
		*first = (groups / world * rank + least(rank, more)) * group;
	}
	return *first < samples ? least(samples - *first, rows) : 0;
}

/* Do the last `left` samples of an epoch give this rank a batch? */
static bool
has_batch(const struct leat_feed *feed, uint64_t left)
{
	uint64_t first;

	if (feed->tail == LEAT_TAIL_DROP)
		return left >= (uint64_t)feed->global_rows;
	return feed->tail == LEAT_TAIL_EXACT ? share(feed, least(left, (uint64_t)feed->global_rows), &first) > 0
	                                     : left > 0;
}

bool
leat_plan_next_batch(const struct leat_feed *feed, uint64_t *epoch, uint64_t *position)
{
	if (!has_batch(feed, feed->pipeline.plan.size - *position)) {
		*position = 0;
		++*epoch;
	}
	return leat_batches(feed) > 0 && (feed->options.epochs == 0 || *epoch < feed->options.epochs);
}

void
leat_ranks_begin(const struct leat_feed *feed, struct leat_batch *batch, uint64_t epoch, uint64_t begin)
{
	uint64_t samples = least(feed->pipeline.plan.size - begin, (uint64_t)feed->global_rows), first, next;
	int64_t rows = feed->budget.form.rows;

	batch->own_rows = (int64_t)share(feed, samples, &first);
	batch->good_rows = feed->tail == LEAT_TAIL_WRAP ? rows : batch->own_rows;
	batch->rows = fills_up(feed) ? rows : batch->own_rows;
	batch->epoch = epoch;
	batch->begin = begin;
	batch->first = begin + first;
	batch->end = next = begin + samples;
	leat_plan_next_batch(feed, &epoch, &next);
	batch->last = epoch != batch->epoch;
	memset(leat_batch_states(batch), LEAT_ROW_PADDING, (size_t)batch->rows);
}

uint64_t
leat_ranks_share(const struct leat_feed *feed, uint64_t begin, uint64_t *first)
{
	uint64_t rows = share(feed, least(feed->pipeline.plan.size - begin, (uint64_t)feed->global_rows), first);

	*first += begin;
	return *first + rows;
}

uint64_t
leat_ranks_repeated(const struct leat_feed *feed, const struct leat_batch *batch, int64_t row)
{
	uint64_t size = feed->pipeline.plan.size, group = (uint64_t)feed->pipeline.row_group;
	uint64_t at = batch->first - batch->begin + (uint64_t)row, samples = round_up(batch->end - batch->begin, group);
	uint64_t position = at < samples ? size : (at - samples) % round_up(size, group);

	return position < size ? position : size - 1; /* completes a group whose other rows are the epoch's last */
}

/* ---- properties ---- */

uint64_t
leat_ranks_batches(const struct leat_feed *feed)
{
	uint64_t rows = (uint64_t)feed->global_rows, size = feed->pipeline.plan.size;

	return size / rows + (size % rows > 0 && feed->tail != LEAT_TAIL_DROP);
}

uint64_t
leat_batches(const struct leat_feed *feed)
{
	uint64_t rows = (uint64_t)feed->global_rows, size = feed->pipeline.plan.size;

	return size / rows + (size % rows > 0 && has_batch(feed, size % rows));
}

uint64_t
leat_batch_samples(const struct leat_feed *feed, uint64_t number, uint64_t *first)
{
	uint64_t rows = (uint64_t)feed->global_rows, begin = number * rows, size = feed->pipeline.plan.size, count;

	count = begin < size ? share(feed, least(size - begin, rows), first) : 0;
	*first = begin < size ? begin + *first : size;
	return count;
}

int64_t
leat_batch_size(const struct leat_feed *feed)
{
	return feed->global_rows / feed->options.world;
}

const char *
leat_tail_name(const struct leat_feed *feed)
{
	static const char *const names[] = {
		[LEAT_TAIL_AUTO] = "auto", [LEAT_TAIL_SHORT] = "short", [LEAT_TAIL_DROP] = "drop",
		[LEAT_TAIL_PAD] = "pad",   [LEAT_TAIL_WRAP] = "wrap",   [LEAT_TAIL_EXACT] = "exact",
	};

	return names[feed->tail];
}

bool
leat_has_fill(const struct leat_feed *feed)
{
	uint64_t rows = (uint64_t)feed->global_rows;

	if (feed->options.on_error == LEAT_ON_ERROR_SKIP && leat_ranks_keep_bad(feed))
		return true;
	return fills_up(feed) && (feed->pipeline.plan.size % rows != 0 || feed->started_at % rows != 0);
}
