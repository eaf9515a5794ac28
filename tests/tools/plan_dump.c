/* plan_dump.c - answers questions about plans, for tests/plan_oracle.py
 *
 * Reads lines of four fields with ';' between them and writes one line for each:
 *
 *	COUNTS; OPS; SEED; QUERIES
 *	3,0,5; interleave(2) | shuffle(window=4); 42; @0 1:7 =43 0:2-5
 *
 * COUNTS are the samples of each file. A query is `E:P` (position P of epoch E), `E:A-B`
 * (positions A to B - 1), `@E` (a whole epoch) or `=SEED` (other random numbers from here on);
 * one plan answers all of a line, in their order. The answer is the samples, or `error: ` and why not.
 *
 * A line of another kind asks for one batch:
 *
 *	rows SIZE BATCH TAIL GROUP RANK WORLD BEGIN
 *	rows 10 8 wrap 1 1 2 8
 *
 * SIZE is that of the epoch, BATCH over all ranks, GROUP that of ops on batches, BEGIN where the batch begins. The
 * answer is the position of each row, '-' before repeats, '.' for padding, and `end` if there is no such batch.
 *
 * A third kind asks where the windows of recordings are:
 *
 *	windows LENGTH STRIDE OUTER INNER ACROSS STEPS [OFFSET EVENTS]
 *	windows 3 2 2 4 0 7,0,9
 *	windows 3 0 1 4 0 7,9 -1 2,5,1 1,2
 *
 * STEPS are those of each recording; OUTER rows hold INNER bytes for each step. EVENTS are the counts of events of each
 * recording, then the start of each. The answer has a word for each window, FILE:BEGIN-END for each piece of it, with
 * '+' between them, and `out` for the window of an event that is not within its recording. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "feed/feed.h"
#include "format/series.h"
#include "support/plan_bench.h"

enum { MAX_FILES = 1 << 16, MAX_LINE = 1 << 22 };

/* "3,0,5" as 0 3 3 8. Returns how many files. */
static size_t
read_counts(const char *text, uint64_t first[MAX_FILES + 1])
{
	size_t files = 0;
	char *end;

	for (; *text && files < MAX_FILES; files++, text = *end == ',' ? end + 1 : end)
		first[files + 1] = first[files] + strtoull(text, &end, 10);
	return files;
}

/* Asked for one by one and all at once. */
static void
print_samples(struct leat_plan *plan, uint64_t epoch, uint64_t from, uint64_t to)
{
	uint64_t *sample = calloc(to - from + 1, sizeof(*sample));

	if (!sample)
		exit(2);
	for (uint64_t p = from; p < to; p++)
		sample[p - from] = p;
	leat_plan_many(plan, epoch, sample, to - from);
	for (uint64_t p = from; p < to; p++) {
		uint64_t one = leat_plan_at(plan, epoch, p);

		printf(" %" PRIu64, one);
		if (one != sample[p - from])
			printf(" error: but %" PRIu64 " with its neighbours", sample[p - from]);
	}
	free(sample);
}

static void
answer(struct leat_plan *plan, const char *query)
{
	bool whole = query[0] == '@';
	uint64_t epoch, from = 0, to;
	char *end;

	if (query[0] == '=') {
		leat_plan_reseed(plan, strtoull(query + 1, NULL, 10));
		return;
	}
	epoch = strtoull(whole ? query + 1 : query, &end, 10);
	if (*end == ':')
		from = strtoull(end + 1, &end, 10);
	to = whole ? plan->size : from + 1;
	if (*end == '-')
		to = strtoull(end + 1, &end, 10);
	if (*end != '\0' || to > plan->size) {
		printf(" error: bad query %s", query);
		return;
	}
	print_samples(plan, epoch, from, to);
}

/* The engine's own arithmetic, on a feed that was never opened. */
static void
print_rows(const char *line)
{
	static const char *const tails[] = {"auto", "short", "drop", "pad", "wrap", "exact"};
	static struct leat_feed feed;
	unsigned char states[1 << 12];
	struct leat_batch batch = {.form = &feed.budget.form, .base = states};
	uint64_t size, begin, epoch = 0;
	char tail[8];
	int64_t rows;

	memset(&feed, 0, sizeof feed);
	if (sscanf(line, "rows %" SCNu64 " %" SCNd64 " %7s %d %d %d %" SCNu64, &size, &feed.pipeline.batch.size, tail,
	           &feed.pipeline.row_group, &feed.options.rank, &feed.options.world, &begin) != 7 ||
	    feed.pipeline.batch.size > (int64_t)sizeof states) {
		printf("error: bad line %s", line);
		return;
	}
	while (strcmp(tails[feed.pipeline.batch.tail], tail) != 0)
		feed.pipeline.batch.tail++;
	feed.pipeline.plan.size = size;
	if (leat_ranks_open(&feed, &rows, NULL) != LEAT_OK) {
		printf("error\n");
		return;
	}
	feed.budget.form.rows = rows;
	leat_plan_next_batch(&feed, &epoch, &begin);
	if (epoch > 0) {
		printf("end\n");
		return;
	}
	leat_ranks_begin(&feed, &batch, epoch, begin);
	for (int64_t row = 0; row < batch.rows; row++)
		if (row < batch.good_rows)
			printf("%s%s%" PRIu64, row ? " " : "", row < batch.own_rows ? "" : "-",
			       leat_row_position(&feed, &batch, row));
		else
			printf("%s.", row ? " " : "");
	printf("\n");
}

static void
print_window(const struct leat_windows *windows, const struct leat_series *series, uint64_t sample)
{
	size_t part = leat_series_part(series, sample);
	struct leat_series_piece piece;
	struct leat_series_walk walk;
	const char *plus = "";
	uint64_t begin;

	if (!leat_series_begin(windows, series, sample, part, &begin)) {
		printf("out ");
		return;
	}
	leat_series_walk(&walk, series, begin, leat_series_length(windows));
	for (; leat_series_next(&walk, &piece); plus = "+")
		printf("%s%zu:%" PRIu64 "-%" PRIu64, plus, piece.file, piece.offset, piece.offset + piece.bytes);
	printf(" ");
}

static void
print_windows(char *line)
{
	static uint64_t step[MAX_FILES + 1], first[MAX_FILES + 1], starts[MAX_FILES + 1];
	static struct leat_event event[MAX_FILES];
	struct leat_series series = {.step = step, .first = first};
	struct leat_windows windows = {0};
	char *word[10] = {NULL};

	for (int i = 0; i < 10 && line; i++)
		word[i] = strsep(&line, " \n");
	windows.length = strtoll(word[1], NULL, 10);
	windows.stride = strtoll(word[2], NULL, 10);
	series.outer = strtoull(word[3], NULL, 10);
	series.inner = strtoull(word[4], NULL, 10);
	windows.across = *word[5] == '1';
	series.files = read_counts(word[6], step);
	leat_series_count(&windows, &series);
	if (word[7] && *word[7]) {
		windows.offset = strtoll(word[7], NULL, 10);
		read_counts(word[8], first);
		series.events.event = event;
		series.events.count = read_counts(word[9], starts);
		for (size_t i = 0; i < series.events.count; i++)
			event[i].start = (int64_t)(starts[i + 1] - starts[i]);
	}
	for (uint64_t i = 0; i < first[series.parts]; i++)
		print_window(&windows, &series, i);
	printf("\n");
}

int
main(void)
{
	static uint64_t first[MAX_FILES + 1];
	static char line[MAX_LINE];
	static struct plan_bench b;

	while (fgets(line, sizeof(line), stdin)) {
		char *rest = line, *counts, *ops, *seed, *query;
		struct leat_err err = {0};
		size_t files;

		if (strncmp(line, "rows ", 5) == 0) {
			print_rows(line);
			continue;
		}
		if (strncmp(line, "windows ", 8) == 0) {
			print_windows(line);
			continue;
		}
		counts = strsep(&rest, ";");
		ops = strsep(&rest, ";");
		seed = strsep(&rest, ";");
		if (!rest) {
			fprintf(stderr, "plan_dump: a line has four fields: COUNTS; OPS; SEED; QUERIES\n");
			return 2;
		}
		files = read_counts(counts, first);
		leat_mem_init(&b.mem, SIZE_MAX);
		if (bench_open(&b, first, files, ops, strtoull(seed, NULL, 10), &err) != LEAT_OK)
			printf("error: %.*s", (int)strcspn(err.text, "\n"), err.text);
		else
			while ((query = strsep(&rest, " \n")) != NULL)
				if (*query)
					answer(&b.plan, query);
		bench_close(&b);
		if (b.mem.used != 0)
			printf(" error: %zu bytes were not freed", b.mem.used);
		printf("\n");
	}
	return 0;
}
