/* ready.c - see ready.h */
#include "feed/ready.h"

static struct leat_run **
slot(struct leat_feed *feed, int i)
{
	return &feed->run[i].heap_slot;
}

static bool
is_before(const struct leat_run *a, const struct leat_run *b)
{
	if (a->batch->epoch != b->batch->epoch)
		return a->batch->epoch < b->batch->epoch;
	if (a->batch->begin != b->batch->begin)
		return a->batch->begin < b->batch->begin;
	return a->first_row < b->first_row;
}

static bool
is_older(struct leat_feed *feed, int a, int b)
{
	return is_before(*slot(feed, a), *slot(feed, b));
}

static void
swap(struct leat_feed *feed, int a, int b)
{
	struct leat_run *run = *slot(feed, a);

	*slot(feed, a) = *slot(feed, b);
	*slot(feed, b) = run;
}

static int
older_child(struct leat_feed *feed, int i)
{
	int child = 2 * i + 1;

	return child + 1 < feed->ready_count && is_older(feed, child + 1, child) ? child + 1 : child;
}

void
leat_ready_clear(struct leat_feed *feed)
{
	feed->ready_count = 0;
}

void
leat_ready_push(struct leat_feed *feed, struct leat_run *run)
{
	int i = feed->ready_count++;

	*slot(feed, i) = run;
	for (; i > 0 && is_older(feed, i, (i - 1) / 2); i = (i - 1) / 2)
		swap(feed, i, (i - 1) / 2);
}

struct leat_run *
leat_ready_pop(struct leat_feed *feed)
{
	struct leat_run *oldest;
	int child;

	if (feed->ready_count == 0)
		return NULL;
	oldest = *slot(feed, 0);
	*slot(feed, 0) = *slot(feed, --feed->ready_count);
	for (int i = 0; (child = older_child(feed, i)) < feed->ready_count && is_older(feed, child, i); i = child)
		swap(feed, i, child);
	return oldest;
}
