/* test_recorder.c - rings lose nothing unnoticed, and a recorder hands all that it gets to its trace */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "support/chrome.h"
#include "support/logged.h"
#include "support/temp.h"
#include "support/trace.h"
#include "trace/recorder.h"
#include "trace/texts.h"
#include "trace/trace_event.h"

static struct temp temp;

static int
setup(void **state)
{
	(void)state;
	memset(&logged, 0, sizeof logged);
	temp_make(&temp);
	return 0;
}

static int
teardown(void **state)
{
	(void)state;
	temp_remove(&temp);
	return 0;
}

/* ---- rings ---- */

enum { PUSHES = TEST_SLOW ? 200000 : 2000000 };

static void *
push_all(void *arg)
{
	struct leat_ring *ring = arg;

	for (uint64_t i = 0; i < PUSHES; i++) {
		struct leat_span span = {.begin = i, .end = i + 1, .item = i, .tag = (uint16_t)(i % 8), .every = 1};

		leat_ring_push(ring, &span);
	}
	return NULL;
}

static void
a_ring_keeps_the_order_and_counts_what_it_drops(void **state)
{
	struct leat_ring ring;
	struct leat_alarm alarm;
	struct leat_mem mem;
	pthread_t thread;
	uint64_t taken = 0, next = 0;

	(void)state;
	leat_mem_init(&mem, SIZE_MAX);
	assert_int_equal(leat_alarm_open(&alarm, NULL), LEAT_OK);
	assert_true(leat_ring_open(&ring, 256, &alarm, &mem));
	assert_int_equal(pthread_create(&thread, NULL, push_all, &ring), 0);
	while (taken + leat_counted(&ring.dropped) < PUSHES) {
		const struct leat_span *span;
		uint64_t count = leat_ring_peek(&ring, &span);

		for (uint64_t i = 0; i < count; i++) {
			assert_true(span[i].item >= next);
			assert_int_equal(span[i].begin, span[i].item);
			assert_int_equal(span[i].tag, span[i].item % 8);
			next = span[i].item + 1;
		}
		leat_ring_taken(&ring, count);
		taken += count;
		if (count == 0)
			leat_alarm_wait(&alarm, 1000000);
	}
	pthread_join(thread, NULL);
	assert_int_equal(taken + leat_counted(&ring.dropped), PUSHES);
	assert_true(taken >= 256);
	leat_ring_close(&ring, &mem);
	leat_alarm_close(&alarm);
	assert_int_equal(atomic_load(&mem.used), 0);
}

static void
a_full_ring_drops_the_new_ones(void **state)
{
	struct leat_ring ring;
	struct leat_alarm alarm;
	struct leat_mem mem;
	const struct leat_span *span;

	(void)state;
	leat_mem_init(&mem, SIZE_MAX);
	assert_int_equal(leat_alarm_open(&alarm, NULL), LEAT_OK);
	assert_true(leat_ring_open(&ring, 8, &alarm, &mem));
	for (uint64_t i = 0; i < 11; i++) {
		struct leat_span one = {.item = i, .every = 1};

		assert_int_equal(leat_ring_push(&ring, &one), i < 8);
	}
	assert_true(atomic_load(&alarm.set));
	assert_int_equal(leat_counted(&ring.dropped), 3);
	assert_int_equal(leat_ring_peek(&ring, &span), 8);
	assert_int_equal(span[7].item, 7);
	leat_ring_taken(&ring, 8);
	assert_int_equal(leat_ring_peek(&ring, &span), 0);
	leat_ring_close(&ring, &mem);
	leat_alarm_close(&alarm);
}

/* ---- names ---- */

static void
names_are_kept_once_and_only_so_many(void **state)
{
	static struct leat_texts texts;
	struct leat_mem mem;
	char name[300];
	uint32_t first;

	(void)state;
	leat_mem_init(&mem, SIZE_MAX);
	first = leat_texts_add(&texts, "decode", &mem);
	assert_true(first > 0);
	assert_int_equal(leat_texts_add(&texts, "decode", &mem), first);
	assert_int_equal(leat_texts_find(&texts, "decode"), first);
	assert_int_equal(leat_texts_find(&texts, "decod"), 0);
	assert_int_equal(leat_texts_find(&texts, "decoder"), 0);
	assert_string_equal(leat_texts_at(&texts, first), "decode");
	memset(name, 'x', sizeof name);
	name[sizeof name - 1] = '\0';
	memcpy(name + LEAT_TEXT_BYTES - 2, "\xc3\xa4", 2); /* would be cut in half */
	assert_int_equal(strlen(leat_texts_at(&texts, leat_texts_add(&texts, name, &mem))), LEAT_TEXT_BYTES - 2);
	for (int i = 2; i < LEAT_MAX_TEXTS; i++) {
		snprintf(name, sizeof name, "name %d", i);
		assert_true(leat_texts_add(&texts, name, &mem) > 0);
	}
	assert_int_equal(leat_texts_add(&texts, "one more", &mem), 0);
	assert_int_equal(leat_texts_find(&texts, "decode"), first);
	leat_texts_free(&texts, &mem);
	assert_int_equal(atomic_load(&mem.used), 0);
}

/* ---- recorders ---- */

static struct leat_recorder *
open_with(struct leat_recorder_options *options, const char *name)
{
	struct leat_recorder *recorder;
	struct leat_err err;

	leat_recorder_options_init(options);
	options->trace = name ? temp_path(&temp, name) : NULL;
	options->rank = 0;
	options->world = 1;
	options->log = write_log;
	if (leat_recorder_open(options, &recorder, &err) != LEAT_OK)
		fail_msg("%s", err.text);
	return recorder;
}

static struct leat_recorder *
open_trace(const char *name)
{
	struct leat_recorder_options options;

	return open_with(&options, name);
}

static void
close_well(struct leat_recorder *recorder)
{
	struct leat_err err;

	if (leat_recorder_close(recorder, &err) != LEAT_OK)
		fail_msg("%s", err.text);
}

static void
what_is_recorded_is_in_the_trace(void **state)
{
	struct leat_recorder *r = open_trace("run.json");
	int lane = leat_recorder_lane(r, "device \"0\"");
	uint64_t now = leat_now();
	double last = 0;
	json_t *trace;

	(void)state;
	leat_recorder_span(r, lane, LEAT_TAG_DECODE, "tiny \xff \\ \"op\"", now + 100, now + 200, 7);
	leat_recorder_span(r, lane, LEAT_TAG_RUN_BATCH, NULL, now, now + 1234567, 3);
	leat_recorder_span(r, lane, LEAT_TAG_TO_DEVICE, NULL, now + 2000000, now + 1000000,
	                   4);                                         /* ends before it begins */
	leat_recorder_span(r, -1, LEAT_TAG_DECODE, NULL, now, now, 1); /* dropped */
	leat_recorder_count(r, "queue", now, 1.5);
	leat_recorder_count(r, "queue", now + 1, -2);
	assert_int_equal(leat_recorder_spans(r), 3);
	assert_int_equal(leat_recorder_dropped(r), 1);
	close_well(r);
	trace = chrome_read(temp_path(&temp, "run.json"));
	assert_int_equal(chrome_spans(trace, NULL, NULL), 3);
	assert_int_equal(chrome_spans(trace, "run batch", "run batch"), 1);
	assert_int_equal(chrome_spans(trace, "decode", "tiny \\xff \\ \"op\""), 1);
	assert_true(chrome_has_lane(trace, "device \"0\""));
	assert_int_equal(chrome_values(trace, "queue", &last), 2);
	assert_true(last == -2);
	assert_int_equal(chrome_values(trace, "dropped spans", &last), 1);
	assert_true(last == 1);
	assert_string_equal(chrome_text(trace, "process_labels", "labels"), "3 spans, 1 dropped");
	json_decref(trace);
}

static void
times_are_exact_to_the_nanosecond(void **state)
{
	struct leat_str out;
	struct leat_mem mem;
	struct leat_span span = {
		.begin = 1234567890123, .end = 1234567890130, .item = UINT64_MAX, .tag = 4, .every = 8};

	(void)state;
	leat_mem_init(&mem, SIZE_MAX);
	leat_str_init(&out, &mem, 10000);
	leat_event_span(&out, 12, 34, &span, "decode");
	assert_string_equal(leat_str_text(&out),
	                    "{\"ph\":\"X\",\"cat\":\"decode\",\"args\":{\"item\":9223372036854775807,\"every\":8},"
	                    "\"ts\":1234567890.123,\"dur\":0.007,\"pid\":12,\"tid\":34,\"name\":\"decode\"}");
	leat_str_free(&out);
}

static void
lanes_of_the_same_name_are_told_apart_and_ended_ones_go_on(void **state)
{
	struct leat_recorder *r = open_trace("run.json");
	int first = leat_recorder_lane(r, "worker 0"), second = leat_recorder_lane(r, "worker 0");
	json_t *trace;

	(void)state;
	assert_int_not_equal(first, second);
	leat_recorder_lane_end(r, first);
	assert_int_equal(leat_recorder_lane(r, "worker 0"), first);
	leat_recorder_lane_end(r, second);
	assert_int_equal(leat_recorder_lane(r, "worker 0"), second);
	leat_recorder_lane_end(r, -1);
	leat_recorder_lane_end(r, 100000);
	close_well(r);
	trace = chrome_read(temp_path(&temp, "run.json"));
	assert_true(chrome_has_lane(trace, "worker 0"));
	assert_true(chrome_has_lane(trace, "worker 0 #2"));
	json_decref(trace);
}

static void
spans_that_overlap_get_rows(void **state)
{
	struct leat_recorder *r = open_trace("run.json");
	struct leat_ring *ring = leat_recorder_ring(r, leat_recorder_add_lane(r, "reads", true));
	json_t *trace;

	(void)state;
	for (uint64_t i = 0; i < 100; i++) { /* five at a time */
		struct leat_span span = {.begin = 1000000 + i * 1000,
		                         .end = 1004500 + i * 1000,
		                         .item = i,
		                         .tag = LEAT_TAG_FETCH,
		                         .every = 1};

		leat_ring_push(ring, &span);
	}
	close_well(r);
	trace = chrome_read(temp_path(&temp, "run.json")); /* checks that none overlap */
	assert_int_equal(chrome_spans(trace, "fetch", NULL), 100);
	assert_true(chrome_has_lane(trace, "reads 5"));
	assert_false(chrome_has_lane(trace, "reads 6"));
	json_decref(trace);
}

struct writer {
	struct leat_recorder *recorder;
	int number;
	uint64_t pushed;
};

enum { WRITERS = 4, SPANS = TEST_SLOW ? 10000 : 30000 };

static void *
record_all(void *arg)
{
	struct writer *w = arg;
	char name[32];
	int lane;

	snprintf(name, sizeof name, "thread %d", w->number);
	lane = leat_recorder_lane(w->recorder, name);
	for (uint64_t i = 0; i < SPANS; i++) {
		leat_recorder_span(w->recorder, lane, LEAT_TAG_TRANSFORM, i % 3 ? "resize" : NULL, 1000 + 10 * i,
		                   1005 + 10 * i, i);
		if (i % 1000 == 0)
			leat_recorder_count(w->recorder, name, 1000 + 10 * i, (double)i);
	}
	return NULL;
}

/* What threads record at once is in the trace or was counted as dropped. */
static void
counts_in_are_counts_out_and_dropped(void **state)
{
	struct leat_recorder *r = open_trace("run.json");
	struct writer writer[WRITERS];
	pthread_t thread[WRITERS];
	uint64_t dropped, spans;
	json_t *trace;
	char labels[128];

	(void)state;
	for (int i = 0; i < WRITERS; i++) {
		writer[i] = (struct writer){r, i, 0};
		assert_int_equal(pthread_create(&thread[i], NULL, record_all, &writer[i]), 0);
	}
	for (int i = 0; i < WRITERS; i++)
		pthread_join(thread[i], NULL);
	dropped = leat_recorder_dropped(r);
	spans = leat_recorder_spans(r);
	assert_int_equal(spans + dropped, (uint64_t)WRITERS * SPANS);
	assert_true(spans > 0);
	close_well(r);
	trace = chrome_read(temp_path(&temp, "run.json"));
	assert_int_equal(chrome_spans(trace, NULL, NULL), spans);
	snprintf(labels, sizeof labels, "%llu spans, %llu dropped", (unsigned long long)spans,
	         (unsigned long long)dropped);
	assert_string_equal(chrome_text(trace, "process_labels", "labels"), labels);
	json_decref(trace);
}

static void
without_memory_lanes_are_missing_and_their_spans_count_as_dropped(void **state)
{
	struct leat_recorder_options options;
	struct leat_recorder *r;
	struct leat_err err;
	int lane = 0, lanes = 0;

	(void)state;
	leat_recorder_options_init(&options);
	options.memory = 1 << 20;
	assert_int_equal(leat_recorder_open(&options, &r, &err), LEAT_OK);
	while (lane >= 0 && lanes < 4096) {
		char name[32];

		snprintf(name, sizeof name, "lane %d", lanes++);
		lane = leat_recorder_lane(r, name);
	}
	assert_true(lanes > 3 && lanes < 4096);
	assert_true(atomic_load(&leat_recorder_mem(r)->peak) <= options.memory);
	leat_recorder_span(r, lane, LEAT_TAG_DECODE, "x", 1, 2, 3);
	assert_int_equal(leat_recorder_dropped(r), 1);
	/* The rest is for sinks and for feeds, which fail without. */
	assert_true(options.memory - atomic_load(&leat_recorder_mem(r)->used) >= options.memory / 32);
	close_well(r);
}

static void
options_that_make_no_sense_are_refused(void **state)
{
	struct leat_recorder_options options;
	struct leat_recorder *r;
	struct leat_err err;

	(void)state;
	leat_recorder_options_init(&options);
	options.memory = 1000;
	assert_int_equal(leat_recorder_open(&options, &r, &err), LEAT_INVALID);
	assert_null(r);
	options.memory = 1 << 20;
	options.size = 1;
	assert_int_equal(leat_recorder_open(&options, &r, &err), LEAT_INVALID);
	leat_recorder_options_init(&options);
	options.trace_bytes = 1;
	assert_int_equal(leat_recorder_open(&options, &r, &err), LEAT_INVALID);
	options.trace_bytes = LEAT_TRACE_BYTES;
	options.trace = "/nonexistent/run.json";
	assert_int_equal(leat_recorder_open(&options, &r, &err), LEAT_IO);
	assert_non_null(strstr(err.text, "/nonexistent/run.json"));
	options.trace = "/dev/full";
	assert_int_equal(leat_recorder_open(&options, &r, &err), LEAT_INVALID);
	assert_int_equal(leat_recorder_close(NULL, &err), LEAT_OK);
}

static void
a_pause_hands_all_to_the_trace_and_lets_threads_record(void **state)
{
	struct leat_recorder *r = open_trace("run.json");
	int lane = leat_recorder_lane(r, "x");

	(void)state;
	for (int i = 0; i < 3; i++) {
		leat_recorder_span(r, lane, LEAT_TAG_CACHE, NULL, 100 * (uint64_t)i, 100 * (uint64_t)i + 1, 0);
		leat_recorder_pause(r);
		leat_recorder_span(r, lane, LEAT_TAG_CACHE, NULL, 100 * (uint64_t)i + 2, 100 * (uint64_t)i + 3, 0);
		leat_recorder_resume(r);
	}
	assert_int_equal(leat_recorder_spans(r), 6);
	close_well(r);
}

static void
the_process_is_named_with_rank_and_pid(void **state)
{
	struct leat_recorder_options options;
	struct leat_recorder *r;
	struct leat_err err;
	char expected[64];
	json_t *trace;

	(void)state;
	leat_recorder_options_init(&options);
	options.trace = temp_path(&temp, "run.json");
	options.name = "train";
	setenv("RANK", "3", 1);
	setenv("WORLD_SIZE", "8", 1);
	assert_int_equal(leat_recorder_open(&options, &r, &err), LEAT_OK);
	unsetenv("RANK");
	unsetenv("WORLD_SIZE");
	snprintf(expected, sizeof expected, "train, rank 3 of 8, pid %ld", (long)getpid());
	assert_string_equal(leat_recorder_process(r), expected);
	close_well(r);
	trace = chrome_read(temp_path(&temp, "run.json"));
	assert_string_equal(chrome_text(trace, "process_name", "name"), expected);
	json_decref(trace);
}

/* ---- size ---- */

static uint64_t
size_of(const char *path)
{
	struct stat st;

	assert_int_equal(stat(path, &st), 0);
	return (uint64_t)st.st_size;
}

/* Waits for the recorder's thread, so that nothing is dropped. */
static void
record_paced(struct leat_recorder *r, int lane, uint64_t count, bool items)
{
	for (uint64_t i = 0; i < count; i++) {
		leat_recorder_span(r, lane, LEAT_TAG_DECODE, NULL, 1000 * i, 1000 * i + 400, items ? i : 0);
		leat_recorder_span(r, lane, LEAT_TAG_COLLATE, NULL, 1000 * i + 500, 1000 * i + 600, items ? i : 0);
		if (i % 100 == 0)
			leat_recorder_count(r, "rss MB", 1000 * i, (double)i);
		if (i % 1000 == 0)
			leat_recorder_pause(r), leat_recorder_resume(r);
	}
}

/* The items that have a span with the tag, in order. */
static size_t
items_with(json_t *trace, const char *tag, uint64_t *item, size_t cap)
{
	size_t count = 0, i;
	json_t *event;

	json_array_foreach(trace, i, event) if (strcmp(json_string_value(json_object_get(event, "ph")), "X") == 0 &&
	                                        strcmp(json_string_value(json_object_get(event, "cat")), tag) == 0 &&
	                                        count < cap) item[count++] =
		(uint64_t)json_integer_value(json_object_get(json_object_get(event, "args"), "item"));
	return count;
}

static void
a_trace_at_its_limit_keeps_every_nth_item_of_the_whole_run(void **state)
{
	static uint64_t decoded[200000], collated[200000];
	enum { ITEMS = 100000 };
	struct leat_recorder_options options;
	struct leat_recorder *r;
	struct leat_err err;
	size_t count;
	json_t *trace;

	(void)state;
	leat_recorder_options_init(&options);
	options.trace = temp_path(&temp, "run.json");
	options.trace_bytes = 1 << 20;
	assert_int_equal(leat_recorder_open(&options, &r, &err), LEAT_OK);
	record_paced(r, leat_recorder_lane(r, "worker 0"), ITEMS, true);
	assert_int_equal(leat_recorder_dropped(r), 0);
	close_well(r);
	assert_in_range(size_of(temp_path(&temp, "run.json")), 1 << 18, (1 << 20) + 4096);
	trace = chrome_read(temp_path(&temp, "run.json"));
	count = items_with(trace, "decode", decoded, ITEMS);
	assert_in_range(count, 1000, ITEMS / 2);
	assert_true(decoded[0] == 0 && decoded[count - 1] > ITEMS - ITEMS / 100);
	for (size_t i = 1; i < count; i++)
		assert_int_equal(decoded[i] - decoded[i - 1], decoded[1]);
	/* Whole samples: what is collated was decoded, as long as both are thinned alike. */
	assert_true(items_with(trace, "collate", collated, ITEMS) > 1000);
	assert_int_equal(collated[1] % decoded[1] == 0 || decoded[1] % collated[1] == 0, 1);
	assert_true(chrome_values(trace, "rss MB", NULL) > 100);
	assert_non_null(strstr(chrome_text(trace, "process_labels", "labels"), "decode: 1 in "));
	json_decref(trace);
	assert_false(temp_exists(&temp, "run.json.thin"));
}

static void
spans_without_items_are_thinned_by_count(void **state)
{
	struct leat_recorder_options options;
	struct leat_recorder *r;
	struct leat_err err;
	json_t *trace;

	(void)state;
	leat_recorder_options_init(&options);
	options.trace = temp_path(&temp, "run.json");
	options.trace_bytes = 1 << 20;
	assert_int_equal(leat_recorder_open(&options, &r, &err), LEAT_OK);
	record_paced(r, leat_recorder_lane(r, "worker 0"), 100000, false);
	close_well(r);
	assert_true(size_of(temp_path(&temp, "run.json")) < (1 << 20) + 4096);
	trace = chrome_read(temp_path(&temp, "run.json"));
	assert_true(chrome_spans(trace, "decode", NULL) > 1000);
	json_decref(trace);
}

static void
lines_are_classed_by_tag_and_item(void **state)
{
	uint64_t item = 0;
	const char *line = "{\"ph\":\"X\",\"cat\":\"run batch\",\"args\":{\"item\":12},\"ts\":";

	(void)state;
	assert_int_equal(leat_event_class(line, strlen(line), &item), LEAT_TAG_RUN_BATCH);
	assert_int_equal(item, 12);
	for (size_t len = 0; len < strlen("{\"ph\":\"X\",\"cat\":\"run batch\",\"args\":{\"item\":1"); len++)
		assert_int_equal(leat_event_class(line, len, &item), -1);
	line = "{\"ph\":\"C\",\"number\":5,";
	assert_int_equal(leat_event_class(line, strlen(line), &item), LEAT_TAG_COUNT);
	assert_int_equal(item, 5);
	line = "{\"ph\":\"M\",\"pid\":1";
	assert_int_equal(leat_event_class(line, strlen(line), &item), -1);
}

/* ---- trouble ---- */

static void
a_full_disk_warns_once_and_close_reports_it(void **state)
{
	struct rlimit old, small = {.rlim_cur = 300000};
	struct leat_recorder *r;
	struct leat_err err;
	json_t *trace;

	(void)state;
	getrlimit(RLIMIT_FSIZE, &old);
	small.rlim_max = old.rlim_max;
	r = open_trace("run.json");
	setrlimit(RLIMIT_FSIZE, &small); /* SIGXFSZ would kill any thread but the recorder's */
	record_paced(r, leat_recorder_lane(r, "worker 0"), 10000, true);
	assert_int_equal(leat_recorder_close(r, &err), LEAT_IO);
	setrlimit(RLIMIT_FSIZE, &old);
	assert_non_null(strstr(err.text, "run.json"));
	assert_int_equal(logged.warn, 1);
	assert_non_null(strstr(logged.warning, "the run goes on"));
	trace = chrome_read(temp_path(&temp, "run.json")); /* what was written before */
	assert_true(chrome_spans(trace, NULL, NULL) > 100);
	json_decref(trace);
}

/* Two seconds: the file is written once a second. */
static void
a_killed_process_leaves_a_readable_trace(void **state)
{
	pid_t child;
	json_t *trace;
	int status;

	(void)state;
	child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		struct leat_recorder *r = open_trace("run.json");
		int lane = leat_recorder_lane(r, "x");

		for (uint64_t i = 0;; i++) {
			uint64_t begin = leat_now();

			usleep(100);
			leat_recorder_span(r, lane, LEAT_TAG_RUN_BATCH, NULL, begin, leat_now(), i);
		}
	}
	for (int i = 0; i < 1000; i++) { /* until something was written, however busy the machine is */
		struct stat st;

		usleep(20000);
		if (stat(temp_path(&temp, "run.json"), &st) == 0 && st.st_size > 20000)
			break;
	}
	kill(child, SIGKILL);
	waitpid(child, &status, 0);
	assert_true(WIFSIGNALED(status));
	trace = chrome_read(temp_path(&temp, "run.json"));
	assert_true(chrome_spans(trace, "run batch", NULL) > 100);
	json_decref(trace);
}

static void
a_trace_that_is_being_written_is_not_overwritten(void **state)
{
	struct leat_recorder *r = open_trace("run.json"), *other;
	struct leat_recorder_options options;
	struct leat_err err;
	pid_t child;
	int status;

	(void)state;
	leat_recorder_options_init(&options);
	options.trace = temp_path(&temp, "run.json");
	assert_int_equal(leat_recorder_open(&options, &other, &err), LEAT_INVALID);
	assert_non_null(strstr(err.text, "give each rank its own file"));
	child = fork();
	assert_true(child >= 0);
	if (child == 0) { /* has the file open as well, but does not write it */
		pause();
		_exit(0);
	}
	close_well(r);
	assert_int_equal(leat_recorder_open(&options, &other, &err), LEAT_OK);
	close_well(other);
	kill(child, SIGKILL);
	waitpid(child, &status, 0);
}

static void
a_forked_process_leaves_the_recorder_alone(void **state)
{
	struct leat_recorder *r = open_trace("run.json");
	int lane = leat_recorder_lane(r, "x"), status;
	json_t *trace;
	pid_t child;

	(void)state;
	leat_recorder_span(r, lane, LEAT_TAG_FETCH, NULL, 1, 2, 3);
	child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		for (uint64_t i = 0; i < 100000; i++)
			leat_recorder_span(r, lane, LEAT_TAG_FETCH, i % 2 ? "child" : NULL, i, i + 1, i);
		leat_recorder_count(r, "x", 1, 1);
		_exit(leat_recorder_lane(r, "y") == -1 && leat_recorder_close(r, NULL) == LEAT_OK ? 0 : 1);
	}
	waitpid(child, &status, 0);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	close_well(r);
	trace = chrome_read(temp_path(&temp, "run.json"));
	assert_int_equal(chrome_spans(trace, NULL, NULL), 1);
	json_decref(trace);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_ring_keeps_the_order_and_counts_what_it_drops),
		cmocka_unit_test(a_full_ring_drops_the_new_ones),
		cmocka_unit_test(names_are_kept_once_and_only_so_many),
		cmocka_unit_test_setup_teardown(what_is_recorded_is_in_the_trace, setup, teardown),
		cmocka_unit_test(times_are_exact_to_the_nanosecond),
		cmocka_unit_test_setup_teardown(lanes_of_the_same_name_are_told_apart_and_ended_ones_go_on, setup,
	                                        teardown),
		cmocka_unit_test_setup_teardown(spans_that_overlap_get_rows, setup, teardown),
		cmocka_unit_test_setup_teardown(counts_in_are_counts_out_and_dropped, setup, teardown),
		cmocka_unit_test(without_memory_lanes_are_missing_and_their_spans_count_as_dropped),
		cmocka_unit_test(options_that_make_no_sense_are_refused),
		cmocka_unit_test_setup_teardown(a_pause_hands_all_to_the_trace_and_lets_threads_record, setup,
	                                        teardown),
		cmocka_unit_test_setup_teardown(the_process_is_named_with_rank_and_pid, setup, teardown),
		cmocka_unit_test_setup_teardown(a_trace_at_its_limit_keeps_every_nth_item_of_the_whole_run, setup,
	                                        teardown),
		cmocka_unit_test_setup_teardown(spans_without_items_are_thinned_by_count, setup, teardown),
		cmocka_unit_test(lines_are_classed_by_tag_and_item),
		cmocka_unit_test_setup_teardown(a_full_disk_warns_once_and_close_reports_it, setup, teardown),
		cmocka_unit_test_setup_teardown(a_killed_process_leaves_a_readable_trace, setup, teardown),
		cmocka_unit_test_setup_teardown(a_trace_that_is_being_written_is_not_overwritten, setup, teardown),
		cmocka_unit_test_setup_teardown(a_forked_process_leaves_the_recorder_alone, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
