/* bad.c - bad samples: noted by workers, counted and listed when their batch is delivered
 *
 * What is listed must not depend on threads or memory, so everything has its room from the start:
 *  - a batch has a word for each row, and the reasons of LEAT_BAD_REASONS rows. Workers find bad
 *    samples in any order; the rows with the lowest numbers keep their reasons.
 *  - the feed lists the first bad samples of the plan, LEAT_BAD_LISTED of them or as many as
 *    LEAT_BAD_BYTES hold. Later ones are only counted, and passed to options.bad like all others.
 *
 * Feeds with on_error=fail have neither. */
#include <string.h>

#include "feed/feed.h"

/* ---- noting: workers ---- */

/* Room for a row's reason; NULL: those that have one come before it. */
static struct leat_bad_note *
room_for(struct leat_batch *batch, int64_t row)
{
	struct leat_bad_note *note = leat_batch_notes(batch), *last = note;

	if (batch->bad_notes < batch->form->notes)
		return &note[batch->bad_notes++];
	for (int i = 1; i < batch->bad_notes; i++)
		if (note[i].row > last->row)
			last = &note[i];
	return last->row > row ? last : NULL;
}

void
leat_bad_note(struct leat_batch *batch, int64_t row, uint64_t sample, const struct leat_err *err)
{
	struct leat_bad_note *note;

	pthread_mutex_lock(&batch->feed->lock);
	leat_batch_faults(batch)[row] = (struct leat_fault){sample, err->status};
	batch->bad_rows++;
	note = room_for(batch, row);
	if (note) {
		note->row = row;
		memcpy(note->reason, err->text, sizeof note->reason);
	}
	pthread_mutex_unlock(&batch->feed->lock);
}

void
leat_bad_forget(struct leat_batch *batch)
{
	if (batch->bad_rows)
		memset(leat_batch_faults(batch), 0, (size_t)batch->form->rows * sizeof(struct leat_fault));
	batch->bad_rows = 0;
	batch->bad_notes = 0;
}

/* ---- the list: the consumer ---- */

enum leat_status
leat_bad_open(struct leat_feed *feed, struct leat_err *err)
{
	if (feed->options.on_error == LEAT_ON_ERROR_FAIL)
		return LEAT_OK;
	feed->bad = leat_map(&feed->mem, LEAT_BAD_BYTES);
	feed->bad_room = LEAT_BAD_BYTES;
	return feed->bad ? LEAT_OK : leat_fail_mem(err, &feed->mem, LEAT_BAD_BYTES, "the list of bad samples");
}

void
leat_bad_close(struct leat_feed *feed)
{
	leat_unmap(&feed->mem, feed->bad, LEAT_BAD_BYTES);
	feed->bad = NULL;
}

/* Bytes to keep a text; neighbours often have the same one and share it. */
static size_t
text_bytes(const char *text, const char *previous)
{
	return previous && strcmp(text, previous) == 0 ? 0 : strlen(text) + 1;
}

/* Entries fill the memory from its start, texts from its end. */
static const char *
keep_text(struct leat_feed *feed, const char *text, const char *previous)
{
	size_t bytes = text_bytes(text, previous);

	if (!bytes)
		return previous;
	feed->bad_room -= bytes;
	return memcpy((char *)feed->bad + feed->bad_room, text, bytes);
}

static void
list(struct leat_feed *feed, const struct leat_bad *bad)
{
	struct leat_bad *entry = &feed->bad[feed->bad_listed];
	const char *uri = feed->bad_listed ? entry[-1].uri : NULL, *reason = feed->bad_listed ? entry[-1].reason : NULL;
	size_t bytes =
		(feed->bad_listed + 1) * sizeof *entry + text_bytes(bad->uri, uri) + text_bytes(bad->reason, reason);

	/* Once one had no room, none has: a short one must not follow a gap. */
	feed->bad_full = feed->bad_full || feed->bad_listed == LEAT_BAD_LISTED || bytes > feed->bad_room;
	if (feed->bad_full)
		return;
	*entry = *bad;
	entry->uri = keep_text(feed, bad->uri, uri);
	entry->reason = keep_text(feed, bad->reason, reason);
	feed->bad_listed++;
}

static const char *
reason_of(const struct leat_batch *batch, int64_t row)
{
	const struct leat_bad_note *note = leat_batch_notes(batch);

	for (int i = 0; i < batch->bad_notes; i++)
		if (note[i].row == row)
			return note[i].reason;
	return "bad, like many samples of its batch, of which only the first keep their reasons";
}

static void
tell(struct leat_feed *feed, const struct leat_batch *batch, int64_t row)
{
	const struct leat_fault *fault = &leat_batch_faults(batch)[row];
	const struct leat_source *source = &feed->pipeline.source;
	struct leat_extent extent;
	char buf[LEAT_URI];
	struct leat_bad bad;

	pthread_mutex_lock(&feed->lock); /* locate is not thread-safe */
	source->kind->locate(source, fault->sample, &extent);
	pthread_mutex_unlock(&feed->lock);
	bad = (struct leat_bad){
		.epoch = batch->epoch,
		.position = batch->first + (uint64_t)row,
		.sample = fault->sample,
		.uri = leat_source_uri(source, extent.file, buf),
		.offset = extent.offset,
		.reason = reason_of(batch, row),
		.replaced = feed->options.on_error == LEAT_ON_ERROR_REPLACE,
		.status = fault->status,
	};
	list(feed, &bad);
	if (feed->options.bad)
		feed->options.bad(feed->options.bad_arg, &bad);
}

enum leat_status
leat_bad_deliver(struct leat_feed *feed, const struct leat_batch *batch, struct leat_err *err)
{
	int64_t last = -1;

	if (!batch->bad_rows)
		return LEAT_OK;
	for (int64_t row = 0; row < batch->own_rows; row++)
		if (leat_batch_faults(batch)[row].status != LEAT_OK) {
			tell(feed, batch, row);
			last = row;
		}
	feed->bad_of_epoch += batch->bad_rows;
	leat_count(&feed->trace.consumer->count.bad, batch->bad_rows);
	if (feed->bad_of_epoch <= feed->options.max_bad)
		return LEAT_OK;
	return leat_fail(err, LEAT_LIMIT,
	                 "epoch %llu has %llu bad sample%s so far, more than max_bad=%llu; raise it to at least %llu, "
	                 "or repair the data; the last: %s",
	                 (unsigned long long)batch->epoch, (unsigned long long)feed->bad_of_epoch,
	                 leat_plural(feed->bad_of_epoch), (unsigned long long)feed->options.max_bad,
	                 (unsigned long long)feed->bad_of_epoch, reason_of(batch, last));
}

uint64_t
leat_bad_count(const struct leat_feed *feed)
{
	return feed->bad_listed;
}

const struct leat_bad *
leat_bad_at(const struct leat_feed *feed, uint64_t i)
{
	return i < feed->bad_listed ? &feed->bad[i] : NULL;
}
