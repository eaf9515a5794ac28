/* test_timeline.c - a timeline loses no time, needs little memory, and says which spans it has */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/rng.h"
#include "trace/timeline.h"

#define MS ((uint64_t)1000000)
#define SECOND ((uint64_t)1000000000)
#define BEGIN ((uint64_t)77777 * SECOND)

static struct leat_mem mem;

static struct leat_timeline *
open_timeline(size_t memory)
{
	struct leat_timeline *timeline;

	leat_mem_init(&mem, SIZE_MAX);
	assert_int_equal(leat_timeline_open(&timeline, &mem, memory, BEGIN, NULL), LEAT_OK);
	return timeline;
}

static void
add(struct leat_timeline *timeline, int lane, enum leat_tag tag, uint64_t begin, uint64_t length, uint64_t item)
{
	struct leat_span span = {
		.begin = BEGIN + begin, .end = BEGIN + begin + length, .item = item, .tag = (uint16_t)tag, .every = 1};

	leat_timeline_span(timeline, lane, &span, NULL);
}

/* The timeline as JSON, which it must be; *size is its length. */
static json_t *
as_json(struct leat_timeline *timeline, size_t *size)
{
	struct leat_str text;
	json_error_t why;
	json_t *root;

	leat_str_init(&text, &mem, (size_t)1 << 30);
	leat_timeline_add_json(timeline, &text);
	assert_false(text.failed);
	root = json_loads(leat_str_text(&text), JSON_REJECT_DUPLICATES, &why);
	if (!root)
		print_error("%s at %d\n", why.text, why.position);
	assert_non_null(root);
	if (size)
		*size = text.len;
	leat_str_free(&text);
	return root;
}

static void
close_timeline(struct leat_timeline *timeline)
{
	leat_timeline_close(timeline);
	assert_int_equal(mem.used, 0);
}

static json_int_t
whole(const json_t *object, const char *name)
{
	assert_true(json_is_integer(json_object_get(object, name)));
	return json_integer_value(json_object_get(object, name));
}

/* ---- bins ---- */

static void
busy_time_and_counts_survive_every_doubling(void **state)
{
	struct leat_timeline *timeline = open_timeline(0);
	struct leat_timeline_sums sums;
	uint64_t busy = 0, count = 0, at = 0, last_bin = 0, doublings = 0;
	struct leat_rng rng;

	(void)state;
	leat_rng_init(&rng, 1, 2, 3, 4);
	while (at < 100000 * SECOND) {
		uint64_t length = leat_rng_u64(&rng) % (1 + (at / 16));

		add(timeline, 0, LEAT_TAG_DECODE, at, length, count);
		busy += length;
		count++;
		at += length + leat_rng_u64(&rng) % (1 + at / 64 + 1000);
		leat_timeline_sum(timeline, 0, LEAT_TAG_DECODE, &sums);
		doublings += sums.bin_ns != last_bin;
		last_bin = sums.bin_ns;
		assert_int_equal(sums.busy_ns, busy);
		assert_int_equal(sums.bin_busy_ns, busy);
		assert_int_equal(sums.bin_count, count);
	}
	assert_true(doublings > 10);
	assert_true(sums.bin_ns * sums.bins > 100000 * SECOND);
	assert_true(sums.bin_ns * sums.bins < 400000 * SECOND);
	close_timeline(timeline);
}

static void
rows_share_the_memory_and_lose_nothing_by_it(void **state)
{
	struct leat_timeline *timeline = open_timeline(512 << 10);
	struct leat_timeline_sums sums;

	(void)state;
	for (int lane = 0; lane < 100; lane++)
		for (uint64_t i = 0; i < 100; i++)
			add(timeline, lane, (enum leat_tag)(lane % 3), i * 10 * MS, (uint64_t)(lane + 1) * 1000, i);
	for (int lane = 0; lane < 100; lane++) {
		leat_timeline_sum(timeline, lane, (enum leat_tag)(lane % 3), &sums);
		assert_int_equal(sums.bin_busy_ns, 100 * (lane + 1) * 1000);
		assert_int_equal(sums.bin_count, 100);
		assert_true(sums.bins < 2048);
	}
	close_timeline(timeline);
}

static void
what_has_no_room_is_counted(void **state)
{
	struct leat_timeline *timeline = open_timeline(64 << 10);
	json_t *root;

	(void)state;
	for (int lane = -1; lane < 5000; lane++)
		add(timeline, lane, LEAT_TAG_FETCH, MS, MS, 0);
	add(timeline, 0, (enum leat_tag)99, MS, MS, 0);
	add(timeline, 0, LEAT_TAG_FETCH, MS, UINT64_MAX - BEGIN - MS, 0);
	add(timeline, 0, LEAT_TAG_FETCH, 2 * MS, UINT64_MAX - MS + 1, 0); /* ends before it begins */
	root = as_json(timeline, NULL);
	assert_int_equal(whole(root, "spans"), 5004);
	assert_in_range(whole(root, "left_out"), 4000, 5003);
	assert_true(mem.peak < 4 << 20);
	json_decref(root);
	close_timeline(timeline);
}

static void
a_span_for_many_is_as_busy_as_all_of_them(void **state)
{
	struct leat_timeline *timeline = open_timeline(0);
	struct leat_timeline_sums sums;
	struct leat_span span = {.begin = BEGIN, .end = BEGIN + 1000, .tag = LEAT_TAG_DECODE, .every = 64};

	(void)state;
	leat_timeline_span(timeline, 0, &span, NULL);
	leat_timeline_sum(timeline, 0, LEAT_TAG_DECODE, &sums);
	assert_int_equal(sums.busy_ns, 64000);
	assert_int_equal(sums.bin_busy_ns, 64000);
	assert_int_equal(sums.bin_count, 64);
	assert_int_equal(sums.longest_ns, 1000);
	close_timeline(timeline);
}

/* ---- a long run ---- */

enum { WORKERS = 4 };

/* A batch of 16 samples on one of the workers, and what the consumer does with it. Every 1,000th is slow. */
static void
run_batch(struct leat_timeline *timeline, uint64_t batch)
{
	uint64_t begin = batch * 10 * MS;

	for (uint64_t i = 0; i < 16; i++) {
		int lane = 1 + (int)(i % WORKERS);
		uint64_t at = begin + i / WORKERS * 2 * MS;

		add(timeline, lane, LEAT_TAG_FETCH, at, MS / 4, 16 * batch + i);
		add(timeline, lane, LEAT_TAG_DECODE, at + MS / 4, MS, 16 * batch + i);
		add(timeline, lane, LEAT_TAG_COLLATE, at + MS / 4 + MS, MS / 8, 16 * batch + i);
	}
	add(timeline, 0, LEAT_TAG_GET_BATCH, begin, batch % 1000 == 999 ? 8 * MS + batch : MS, batch);
	add(timeline, 0, LEAT_TAG_RUN_BATCH, begin + 8 * MS + 5 * MS / 4, MS / 2, batch);
	if (batch % 20 == 0)
		leat_timeline_tick(timeline, BEGIN + begin);
	if (batch % 50 == 0)
		leat_timeline_count(timeline, "rss MB", BEGIN + begin, 100 + (double)(batch % 1000));
}

static void
ten_million_spans_take_a_few_megabytes(void **state)
{
	struct leat_timeline *timeline = open_timeline(0);
	uint64_t batches = 200000;
	struct leat_timeline_sums sums;
	json_t *root;
	size_t size;

	(void)state;
	for (uint64_t batch = 0; batch < batches; batch++)
		run_batch(timeline, batch);
	assert_true(mem.peak < 8 << 20);
	for (int lane = 1; lane <= WORKERS; lane++) {
		leat_timeline_sum(timeline, lane, LEAT_TAG_DECODE, &sums);
		assert_int_equal(sums.bin_busy_ns, batches * 4 * MS);
	}
	root = as_json(timeline, &size);
	assert_int_equal(whole(root, "spans"), 50 * batches);
	assert_int_equal(whole(root, "left_out"), 0);
	print_message("%zu bytes of JSON, peak %zu bytes of memory\n", size, (size_t)mem.peak);
	assert_true(size < 3 << 20);
	json_decref(root);
	close_timeline(timeline);
}

/* How many spans of a lane and tag are kept that begin in [begin, end), which are units of the JSON. */
static size_t
kept_between(const json_t *root, int lane, int tag, json_int_t begin, json_int_t end)
{
	size_t i, found = 0;
	json_t *group;

	json_array_foreach(json_object_get(root, "kept"), i, group)
	{
		const json_t *at = json_object_get(group, "at");
		json_int_t from = 0;

		if (whole(group, "lane") != lane || whole(group, "tag") != tag)
			continue;
		for (size_t k = 0; k + 4 < json_array_size(at); k += 5) {
			from += json_integer_value(json_array_get(at, k));
			found += from >= begin && from < end;
		}
	}
	return found;
}

static json_int_t
known_edge(const json_t *root, size_t i, size_t edge)
{
	return json_integer_value(json_array_get(json_array_get(json_object_get(root, "known"), i), edge));
}

static void
where_spans_are_known_none_is_missing(void **state)
{
	struct leat_timeline *timeline = open_timeline(0);
	size_t intervals;
	json_t *root;

	(void)state;
	for (uint64_t batch = 0; batch < 20001; batch++)
		run_batch(timeline, batch);
	root = as_json(timeline, NULL);
	intervals = json_array_size(json_object_get(root, "known"));
	assert_int_equal(intervals, 2 + 16);
	for (size_t i = 0; i < intervals; i++) {
		/* In units of 0.1 us, a batch is 100,000 long: of those that begin inside, all is there. */
		json_int_t first = (known_edge(root, i, 0) + 99999) / 100000, end = known_edge(root, i, 1) / 100000;

		if (end <= first)
			continue;
		for (int lane = 1; lane <= WORKERS; lane++)
			assert_int_equal(kept_between(root, lane, LEAT_TAG_DECODE, first * 100000, end * 100000),
			                 4 * (end - first));
		assert_int_equal(kept_between(root, 0, LEAT_TAG_RUN_BATCH, first * 100000, end * 100000), end - first);
	}
	assert_int_equal(known_edge(root, 0, 0), 0);
	assert_true(known_edge(root, 0, 1) > 300 * 100000);
	assert_int_equal(known_edge(root, intervals - 1, 1), 20000 * 100000);
	json_decref(root);
	close_timeline(timeline);
}

static void
a_lane_that_comes_late_is_waited_for(void **state)
{
	struct leat_timeline *timeline = open_timeline(0);
	uint64_t half = SECOND / 2, i;
	json_t *root;

	(void)state;
	for (i = 0; i < 8000; i++)
		add(timeline, 1, LEAT_TAG_DECODE, i * (SECOND / 8000), 1000, i);
	for (i = 0; i < 4000; i++)
		add(timeline, 2, LEAT_TAG_DECODE, i * (half / 4000), 1000, i);
	leat_timeline_tick(timeline, BEGIN + half);
	/* What comes now does not fit in the spans from the beginning, and is soon gone from the latest. */
	for (i = 0; i < 8000; i++)
		add(timeline, 2, LEAT_TAG_DECODE, half + i * (half / 8000), 1000, i);
	for (i = 0; i < 40000; i++)
		add(timeline, 3, LEAT_TAG_DECODE, SECOND + i * 2000, 1000, i);
	leat_timeline_tick(timeline, BEGIN + 2 * SECOND);
	root = as_json(timeline, NULL);
	assert_int_equal(known_edge(root, 0, 1), half / 100);
	assert_int_equal(kept_between(root, 2, LEAT_TAG_DECODE, 0, known_edge(root, 0, 1)), 4000);
	assert_int_equal(json_array_size(json_object_get(root, "known")), 2);
	json_decref(root);
	close_timeline(timeline);
}

static void
the_slowest_batches_keep_their_neighbourhood(void **state)
{
	struct leat_timeline *timeline = open_timeline(0);
	json_t *root;

	(void)state;
	for (uint64_t batch = 0; batch < 20001; batch++)
		run_batch(timeline, batch);
	root = as_json(timeline, NULL);
	/* Batches 3999 .. 18999 are the 16 slowest, as each is slower than the one before, but 19999 is in the list
	 * too. */
	for (json_int_t batch = 4999; batch < 20000; batch += 1000) {
		json_int_t begin = batch * 100000;

		assert_int_equal(kept_between(root, 0, LEAT_TAG_GET_BATCH, begin, begin + 1), 1);
		assert_int_equal(kept_between(root, 1, LEAT_TAG_DECODE, begin, begin + 80000), 4);
	}
	assert_int_equal(kept_between(root, 0, LEAT_TAG_GET_BATCH, 9500 * 100000, 9600 * 100000), 0);
	json_decref(root);
	close_timeline(timeline);
}

static void
without_ticks_nothing_is_said_to_be_known(void **state)
{
	struct leat_timeline *timeline = open_timeline(0);
	json_t *root;

	(void)state;
	add(timeline, 0, LEAT_TAG_DECODE, MS, MS, 1);
	root = as_json(timeline, NULL);
	assert_int_equal(json_array_size(json_object_get(root, "known")), 0);
	json_decref(root);
	close_timeline(timeline);
}

/* ---- tracks ---- */

static void
tracks_keep_extremes_and_means(void **state)
{
	struct leat_timeline *timeline = open_timeline(0);
	double lowest = INFINITY, highest = -INFINITY;
	const json_t *points;
	json_t *root, *point;
	size_t i;

	(void)state;
	for (uint64_t at = 0; at < 40000; at++)
		leat_timeline_count(timeline, "gpu %", BEGIN + at * SECOND / 2,
		                    at == 12345   ? 1000
		                    : at == 23456 ? -5
		                                  : 50);
	leat_timeline_count(timeline, "gpu %", BEGIN, NAN);
	root = as_json(timeline, NULL);
	points = json_object_get(json_array_get(json_object_get(root, "tracks"), 0), "points");
	assert_in_range(json_array_size(points), 512, 1024);
	json_array_foreach(points, i, point)
	{
		lowest = fmin(lowest, json_number_value(json_array_get(point, 1)));
		highest = fmax(highest, json_number_value(json_array_get(point, 3)));
		assert_in_range((int)json_number_value(json_array_get(point, 2)), 45, 75);
	}
	assert_true(lowest == -5 && highest == 1000);
	assert_int_equal(whole(root, "left_out"), 1);
	json_decref(root);
	close_timeline(timeline);
}

static void
tracks_beyond_the_limit_are_counted(void **state)
{
	struct leat_timeline *timeline = open_timeline(0);
	json_t *root;

	(void)state;
	for (int round = 0; round < 3; round++)
		for (int i = 0; i < 70; i++) {
			char name[16];

			snprintf(name, sizeof name, "track %d", i);
			leat_timeline_count(timeline, name, BEGIN + (uint64_t)round * SECOND, i);
		}
	root = as_json(timeline, NULL);
	assert_int_equal(json_array_size(json_object_get(root, "tracks")), 64);
	assert_int_equal(whole(root, "no_track"), 3 * 6);
	assert_int_equal(whole(root, "left_out"), 0);
	json_decref(root);
	close_timeline(timeline);
}

/* ---- hostile names, and little memory ---- */

static void
names_are_escaped_and_limited(void **state)
{
	struct leat_timeline *timeline = open_timeline(0);
	struct leat_span span = {.begin = BEGIN, .end = BEGIN + MS, .tag = LEAT_TAG_TRANSFORM, .every = 1};
	char name[1000];
	const json_t *names;
	json_t *root;

	(void)state;
	leat_timeline_lane(timeline, 0, "a\"\\\n\x01\xff", true);
	for (int i = 0; i < 1000; i++) {
		snprintf(name, sizeof name, "%d %0900d", i, i);
		leat_timeline_span(timeline, 0, &span, name);
	}
	root = as_json(timeline, NULL);
	names = json_object_get(root, "names");
	assert_int_equal(json_array_size(names), 256);
	assert_int_equal(json_string_length(json_array_get(names, 7)), 200);
	assert_true(json_is_true(json_object_get(json_array_get(json_object_get(root, "lanes"), 0), "overlaps")));
	json_decref(root);
	close_timeline(timeline);
}

static void
any_allocation_may_fail(void **state)
{
	(void)state;
	for (long n = 0; n < 40; n++) {
		struct leat_timeline *timeline;
		struct leat_str text;

		leat_mem_init(&mem, SIZE_MAX);
		mem.fail_after = n;
		if (leat_timeline_open(&timeline, &mem, 0, BEGIN, NULL) != LEAT_OK)
			continue;
		for (int lane = 0; lane < 3; lane++)
			leat_timeline_lane(timeline, lane, "lane", false);
		for (uint64_t batch = 0; batch < 900; batch++)
			run_batch(timeline, batch);
		leat_str_init(&text, &mem, (size_t)1 << 30);
		leat_timeline_add_json(timeline, &text);
		mem.fail_after = -1;
		leat_str_free(&text);
		close_timeline(timeline);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(busy_time_and_counts_survive_every_doubling),
		cmocka_unit_test(rows_share_the_memory_and_lose_nothing_by_it),
		cmocka_unit_test(what_has_no_room_is_counted),
		cmocka_unit_test(a_span_for_many_is_as_busy_as_all_of_them),
		cmocka_unit_test(ten_million_spans_take_a_few_megabytes),
		cmocka_unit_test(where_spans_are_known_none_is_missing),
		cmocka_unit_test(a_lane_that_comes_late_is_waited_for),
		cmocka_unit_test(the_slowest_batches_keep_their_neighbourhood),
		cmocka_unit_test(without_ticks_nothing_is_said_to_be_known),
		cmocka_unit_test(tracks_keep_extremes_and_means),
		cmocka_unit_test(tracks_beyond_the_limit_are_counted),
		cmocka_unit_test(names_are_escaped_and_limited),
		cmocka_unit_test(any_allocation_may_fail),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
