/* fuzz_checkpoint.c - any text is refused with a reason, or is a place the feed can go to
 *
 * One feed over a small file, made at the first call, is restored again and again. In the
 * input @P, @D and @O stand for the feed's own pipeline hash, data hash and ops, so that the
 * seeds stay good when these change. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/str.h"
#include "feed/feed.h"
#include "format/record.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { RECORDS = 23, BATCH = 4 };

static struct leat_feed *feed;
static char folder[] = "/tmp/leat-fuzz-XXXXXX";

static void
must(int truth, const char *what)
{
	if (truth)
		return;
	fprintf(stderr, "fuzz_checkpoint: %s\n", what);
	abort();
}

static void
clean_up(void)
{
	char path[100];

	leat_close(feed);
	snprintf(path, sizeof path, "%s/data", folder);
	unlink(path);
	snprintf(path, sizeof path, "%s/.data.leatidx", folder);
	unlink(path);
	rmdir(folder);
}

static void
make_feed(void)
{
	struct leat_tfrecord_writer writer;
	struct leat_options options;
	struct leat_mem mem;
	char path[100], spec[300];

	must(mkdtemp(folder) != NULL, "no folder");
	atexit(clean_up);
	snprintf(path, sizeof path, "%s/data", folder);
	leat_mem_init(&mem, SIZE_MAX);
	must(leat_tfrecord_writer_open(&writer, path, &mem, NULL) == LEAT_OK, "no file");
	for (int i = 0; i < RECORDS; i++)
		must(leat_tfrecord_writer_append(&writer, &i, sizeof i, NULL) == LEAT_OK, "no record");
	must(leat_tfrecord_writer_close(&writer, NULL) == LEAT_OK, "no file");
	leat_options_init(&options);
	options.rank = 0;
	options.world = 1;
	options.threads = 1;
	options.memory = 4 << 20;
	snprintf(spec, sizeof spec, "tfrecord('%s') | shuffle(5) | repeat(2) | batch(%d) | prefetch(1)", path, BATCH);
	must(leat_open(spec, &options, &feed, NULL) == LEAT_OK, "the feed does not open");
}

/* The input as text, without NUL, its names filled in. To be freed. */
static char *
fill_in(const uint8_t *data, size_t size)
{
	struct leat_mem mem;
	struct leat_str out;
	char *text = NULL;

	leat_mem_init(&mem, SIZE_MAX);
	leat_str_init(&out, &mem, 2 << 20);
	for (size_t i = 0; i < size && data[i]; i++) {
		char next = i + 1 < size ? (char)data[i + 1] : '\0';

		if (data[i] != '@' || !next || !strchr("PDO", next)) {
			leat_str_addn(&out, &data[i], 1);
			continue;
		}
		leat_str_add(&out, next == 'P'   ? feed->pipeline.hash
		                   : next == 'D' ? feed->pipeline.data
		                                 : feed->pipeline.identity);
		i++;
	}
	if (!out.failed)
		text = strdup(leat_str_text(&out));
	leat_str_free(&out);
	return text;
}

/* Two batches from there on, and what they say of themselves. */
static void
look_around(void)
{
	for (int i = 0; i < 2; i++) {
		uint64_t epoch = leat_epoch(feed), position = leat_position(feed);
		struct leat_batch *batch;
		enum leat_status status = leat_next(feed, &batch, NULL);

		must(status == LEAT_OK || status == LEAT_END, "no batch");
		if (status == LEAT_END)
			continue;
		must(leat_batch_epoch(batch) == epoch && leat_batch_position(batch, 0) == position, "another place");
		must(leat_batch_count(batch) >= 1 && leat_batch_count(batch) <= BATCH, "another number of samples");
		leat_release(batch);
	}
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct leat_err err;
	enum leat_status status, loose;
	char *text, *changes;

	if (!feed)
		make_feed();
	text = fill_in(data, size);
	if (!text)
		return 0;
	status = leat_restore(feed, text, &err);
	if (status == LEAT_OK)
		look_around();
	else
		must((status == LEAT_DATA || status == LEAT_MISMATCH) && err.text[0], "refused without a reason");
	loose = leat_restore_loose(feed, text, &changes, &err);
	must(status != LEAT_OK || (loose == LEAT_OK && !changes), "refused although it matches");
	if (loose == LEAT_OK)
		look_around();
	else
		must((loose == LEAT_DATA || loose == LEAT_MISMATCH) && err.text[0], "refused without a reason");
	free(changes);
	free(text);
	return 0;
}
