/* fetch.c - bring the bytes of a run
 *
 * Neighbours in a file are read with one call. Workers ask without waiting: what is
 * in the page cache costs a copy and no detour. What is not goes to the I/O threads,
 * which exist only from the first such run on; they wait for the device and hand the
 * run back to the workers as ready. */
#include "base/clock.h"
#include "feed/feed.h"

/* One past the last item that is read together with item `first`. */
static int
group_end(const struct leat_run *run, int first)
{
	int end = first + 1;

	while (end < run->items && run->item[end].joins)
		end++;
	return end;
}

/* Items that lie one behind the other in their file and in the run's buffer, or one whose payload goes elsewhere. */
static enum leat_status
read_items(struct leat_feed *feed, const struct leat_run_item *item, int items, int flags, struct leat_err *err)
{
	const struct leat_extent *first = &item->extent, *last = &item[items - 1].extent;
	struct iovec iov[3] = {
		{.iov_base = item->head, .iov_len = (size_t)(last->offset + last->length - first->offset)}};
	int iovs = 1;
	struct leat_object object;
	size_t got;

	if (item->payload != item->head + first->head) {
		iov[0].iov_len = first->head;
		iov[1] = (struct iovec){item->payload, (size_t)(first->length - first->head - first->tail)};
		iov[2] = (struct iovec){item->tail, first->tail};
		iovs = 3;
	}
	leat_source_object(&feed->pipeline.source, first->file, &object);
	return leat_object_read(&object, first->offset, iov, iovs, flags, &got, err);
}

/* Reads items that are neighbours, or lets the source bring what it lends for one without bytes. */
static enum leat_status
bring(struct leat_feed *feed, const struct leat_run_item *item, int items, int flags, struct leat_err *err)
{
	const struct leat_source *source = &feed->pipeline.source;

	if (item->cached || item->extent.damaged)
		return LEAT_OK;
	if (item->extent.length > 0)
		return read_items(feed, item, items, flags, err);
	return source->kind->touch ? source->kind->touch(source, item->sample, flags, err) : LEAT_OK;
}

enum leat_status
leat_item_read(struct leat_feed *feed, struct leat_run_item *item, struct leat_err *err)
{
	return bring(feed, item, 1, 0, err);
}

/* Reads on from where the run stands. LEAT_AGAIN: the rest is not in memory. Anything else is LEAT_OK:
 * items that cannot be read are marked, and each fails with its own error when its turn comes. */
enum leat_status
leat_run_read(struct leat_feed *feed, struct leat_run *run, int flags)
{
	while (run->read < run->items) {
		int end = group_end(run, run->read);
		enum leat_status status = bring(feed, &run->item[run->read], end - run->read, flags, NULL);

		if (status == LEAT_AGAIN)
			return status;
		for (int i = run->read; i < end && status != LEAT_OK; i++)
			run->item[i].unread = true;
		run->read = end;
	}
	return LEAT_OK;
}

/* ---- I/O threads ---- */

/* Back to the workers. */
static void
hand_back(struct leat_feed *feed, struct leat_run *run)
{
	pthread_mutex_lock(&feed->lock);
	feed->at_disk--;
	*feed->ready_tail = run;
	feed->ready_tail = &run->next;
	leat_feed_wake(feed);
	pthread_mutex_unlock(&feed->lock);
}

static void
io_body(void *arg, unsigned i)
{
	struct leat_feed *feed = arg;
	struct leat_lane *lane = &feed->trace.io[i];
	struct leat_run *run;

	while ((run = leat_queue_pop(&feed->io)) != NULL) {
		uint64_t begin = leat_now();

		if (!atomic_load(&feed->stop))
			leat_run_read(feed, run, 0);
		leat_count(&lane->count.read_wait_ns, leat_now() - begin);
		hand_back(feed, run);
	}
}

/* There are none: workers read for themselves from now on, also what others have queued in the meantime. */
static void
do_without_io_threads(struct leat_feed *feed)
{
	struct leat_run *run;

	leat_queue_close(&feed->io);
	while ((run = leat_queue_pop(&feed->io)) != NULL)
		hand_back(feed, run);
}

/* The first run that would block brings the I/O threads into being. */
static void
start_io_threads(struct leat_feed *feed)
{
	bool first;

	pthread_mutex_lock(&feed->lock);
	first = !feed->io_started;
	feed->io_started = true;
	pthread_mutex_unlock(&feed->lock);
	if (first && leat_threads_start(&feed->io_threads, &feed->mem, feed->budget.io_threads, "leat-io", io_body,
	                                feed, NULL) != LEAT_OK)
		do_without_io_threads(feed);
}

bool
leat_run_send(struct leat_feed *feed, struct leat_run *run)
{
	run->next = NULL;
	start_io_threads(feed);
	return leat_queue_try_push(&feed->io, run);
}
