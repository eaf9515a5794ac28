/* make_report.c - make_report PAGE RUN_JSON BATCHES: a report with a made-up timeline, for tests of the page
 *
 * Batch b begins at b * 10 ms. The consumer (lane 0) waits 2 ms for it, copies it for 1 ms and runs it for 6 ms. Four
 * workers (lanes 1 to 4) fetch (0.25 ms), decode (1 ms), transform (0.5 ms) and collate (0.25 ms) four samples each,
 * one after the other. A batch has 67 spans. Every 500th is 4 ms late. Names are hostile. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "trace/timeline.h"
#include "xray/report.h"

#define US ((uint64_t)1000)
#define MS ((uint64_t)1000000)

static const char hostile[] = "</script><img src=x onerror=alert(1)> \xe2\x80\xa8 <b>bold</b>";

static uint64_t
add(struct leat_timeline *timeline, int lane, enum leat_tag tag, const char *name, uint64_t begin, uint64_t length,
    uint64_t item)
{
	struct leat_span span = {.begin = begin, .end = begin + length, .item = item, .tag = (uint16_t)tag, .every = 1};

	leat_timeline_span(timeline, lane, &span, name);
	return begin + length;
}

static void
add_batch(struct leat_timeline *timeline, uint64_t batch)
{
	uint64_t begin = batch * 10 * MS, late = batch % 500 == 499 ? 4 * MS : 0, at;

	at = add(timeline, 0, LEAT_TAG_GET_BATCH, NULL, begin, 2 * MS + late, batch);
	at = add(timeline, 0, LEAT_TAG_TO_DEVICE, NULL, at, MS, batch);
	add(timeline, 0, LEAT_TAG_RUN_BATCH, NULL, at, 6 * MS - late, batch);
	for (int lane = 1; lane <= 4; lane++) {
		at = begin;
		for (uint64_t i = 0; i < 4; i++) {
			uint64_t item = 16 * batch + 4 * (uint64_t)lane + i;

			at = add(timeline, lane, LEAT_TAG_FETCH, "read", at, 250 * US, item);
			at = add(timeline, lane, LEAT_TAG_DECODE, "decode + resize", at, MS, item);
			at = add(timeline, lane, LEAT_TAG_TRANSFORM, i % 2 ? "flip" : hostile, at, 500 * US, item);
			at = add(timeline, lane, LEAT_TAG_COLLATE, NULL, at, 250 * US, item);
		}
	}
}

static void
add_tracks(struct leat_timeline *timeline, uint64_t at)
{
	double wave = (double)(at / MS % 4000) / 4000;

	leat_timeline_count(timeline, "cpu consumer %", at, 20 + 5 * wave);
	leat_timeline_count(timeline, "cpu worker 0 %", at, 75 + 20 * wave);
	leat_timeline_count(timeline, "cpu worker 1 %", at, 70 + 20 * wave);
	leat_timeline_count(timeline, "rss MB", at, 300 + 40 * wave);
	leat_timeline_count(timeline, "gpu %", at, 62 + 10 * wave);
	leat_timeline_count(timeline, "disk MB/s", at, 180 * wave);
	leat_timeline_count(timeline, "network MB/s", at, 0);
}

static void
fill(struct leat_timeline *timeline, uint64_t batches)
{
	char name[100];

	leat_timeline_lane(timeline, 0, "consumer", false);
	for (int lane = 1; lane <= 4; lane++) {
		snprintf(name, sizeof name, lane == 4 ? "worker %d %s" : "worker %d", lane - 1, hostile);
		leat_timeline_lane(timeline, lane, name, false);
	}
	for (uint64_t batch = 0; batch < batches; batch++) {
		add_batch(timeline, batch);
		if (batch % 50 == 0)
			add_tracks(timeline, batch * 10 * MS);
		if (batch % 20 == 19)
			leat_timeline_tick(timeline, (batch + 1) * 10 * MS);
	}
}

static int
write_page(struct leat_timeline *timeline, const char *run_json, const char *path, struct leat_mem *mem)
{
	struct leat_str json, page;
	FILE *file = fopen(path, "wb");
	int failed;

	leat_str_init(&json, mem, LEAT_REPORT_MOST);
	leat_str_init(&page, mem, LEAT_REPORT_MOST);
	leat_timeline_add_json(timeline, &json);
	leat_page_open(&page);
	leat_page_add_text(&page, "leat-run", run_json);
	leat_page_add_text(&page, "leat-timeline", leat_str_text(&json));
	leat_page_close(&page);
	failed = json.failed || page.failed || !file || fwrite(page.text, 1, page.len, file) != page.len;
	failed |= file && fclose(file) != 0;
	printf("%zu bytes, %zu of them the timeline, made with %zu bytes of memory\n", page.len, json.len,
	       (size_t)mem->peak);
	leat_str_free(&json);
	leat_str_free(&page);
	return failed;
}

int
main(int argc, char **argv)
{
	struct leat_timeline *timeline;
	struct leat_mem mem;
	int failed;

	if (argc != 4) {
		fprintf(stderr, "usage: make_report PAGE RUN_JSON BATCHES\n");
		return 2;
	}
	leat_mem_init(&mem, SIZE_MAX);
	if (leat_timeline_open(&timeline, &mem, 0, 0, NULL) != LEAT_OK)
		return 1;
	fill(timeline, strtoull(argv[3], NULL, 10));
	failed = write_page(timeline, argv[2], argv[1], &mem);
	leat_timeline_close(timeline);
	return failed;
}
