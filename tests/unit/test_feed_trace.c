/* test_feed_trace.c - a feed with a recorder gives the same batches, and its trace says what its threads did */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "feed/feed.h"
#include "feed/spans.h"
#include "support/chrome.h"
#include "support/data.h"
#include "support/temp.h"
#include "support/trace.h"

#define DECODED                                                                                                        \
	" | example(image=bytes, label=int64) | decode | resize(32, 32) | random_flip | scale(1/255) | shuffle | "     \
	"batch(8)"

static const size_t counts[] = {40, 24};
static struct data data;
static struct temp temp;

static int
setup(void **state)
{
	(void)state;
	data_make(&data, 2, counts, NULL);
	temp_make(&temp);
	return 0;
}

static int
teardown(void **state)
{
	(void)state;
	data_remove(&data);
	temp_remove(&temp);
	return 0;
}

static const char *
spec_of(const char *rest)
{
	static char spec[800];

	snprintf(spec, sizeof spec, "%s%s", data_source(&data), rest);
	return spec;
}

static struct leat_recorder *
open_recorder(void)
{
	struct leat_recorder_options options;
	struct leat_recorder *recorder;
	struct leat_err err;

	leat_recorder_options_init(&options);
	options.trace = temp_path(&temp, "run.json");
	if (leat_recorder_open(&options, &recorder, &err) != LEAT_OK)
		fail_msg("%s", err.text);
	return recorder;
}

/* Runs a spec with a recorder. The trace, which the caller frees, was checked. */
static json_t *
record(const char *rest, const struct leat_options *options, struct trace *got)
{
	struct leat_options o = *options;

	o.recorder = open_recorder();
	trace_run(got, spec_of(rest), &o);
	assert_int_equal(leat_recorder_dropped(o.recorder), 0);
	assert_int_equal(leat_recorder_close(o.recorder, NULL), LEAT_OK);
	return chrome_read(temp_path(&temp, "run.json"));
}

static void
recording_changes_no_byte(void **state)
{
	static const char *const rests[] = {
		DECODED,
		" | shuffle | batch(8)",
		" | example(image=bytes, label=int64) | decode | resize(16, 16) | cache | random_flip | batch(8)",
		" | example(image=bytes, label=int64) | decode | resize(16, 16) | scale(1/255) | one_hot(64, "
		"field=label)"
		" | batch(8) | mixup(0.2)",
		" | example(label=int64) | cache | batch(7) | prefetch(0)",
	};
	struct leat_options options;

	(void)state;
	trace_options(&options);
	options.epochs = 3;
	for (size_t i = 0; i < sizeof rests / sizeof *rests; i++)
		for (options.threads = 1; options.threads <= 3; options.threads += 2) {
			struct trace plain = {0}, recorded = {0};

			trace_run(&plain, spec_of(rests[i]), &options);
			json_decref(record(rests[i], &options, &recorded));
			trace_compare(&plain, &recorded, rests[i]);
			trace_free(&plain);
			trace_free(&recorded);
		}
}

static void
the_trace_has_each_batch_and_each_decoded_sample(void **state)
{
	struct leat_options options;
	struct trace got = {0};
	json_t *trace;

	(void)state;
	trace_options(&options);
	options.epochs = 2;
	options.threads = 2;
	trace = record(DECODED, &options, &got);
	assert_int_equal(chrome_spans(trace, "get batch", NULL), 16);
	assert_int_equal(chrome_spans(trace, "run batch", NULL), 16);
	/* An image takes more than 5 us anywhere, so none is left out. */
	assert_int_equal(chrome_spans(trace, "decode", "decode + resize + random_flip + scale"), 128);
	assert_true(chrome_has_lane(trace, "consumer"));
	assert_true(chrome_has_lane(trace, "worker 0"));
	assert_true(chrome_has_lane(trace, "worker 1"));
	assert_true(chrome_values(trace, "batches ready", NULL) > 0);
	json_decref(trace);
	trace_free(&got);
}

/* Items are positions, each once per epoch. */
static void
items_are_positions(void **state)
{
	int seen[64] = {0};
	struct leat_options options;
	struct trace got = {0};
	json_t *trace, *event;
	size_t i;

	(void)state;
	trace_options(&options);
	options.epochs = 2;
	options.threads = 2;
	trace = record(DECODED, &options, &got);
	json_array_foreach(trace, i, event)
	{
		const char *tag = json_string_value(json_object_get(event, "cat"));
		const char *name = json_string_value(json_object_get(event, "name"));
		json_int_t item = json_integer_value(json_object_get(json_object_get(event, "args"), "item"));

		if (tag && strcmp(tag, "decode") == 0 && strcmp(name, "unpack") != 0) {
			assert_in_range(item, 0, 63);
			seen[item]++;
		}
	}
	for (i = 0; i < 64; i++)
		assert_int_equal(seen[i], 2);
	json_decref(trace);
	trace_free(&got);
}

/* 64 samples in batches of 9: only the first rank has a part of the last batch. */
static void
batches_have_the_same_numbers_on_all_ranks(void **state)
{
	struct leat_options options;
	json_t *trace, *event;
	size_t i;

	(void)state;
	trace_options(&options);
	options.epochs = 2;
	options.world = 3;
	for (options.rank = 0; options.rank < 3; options.rank++) {
		uint64_t seen = 0;
		struct trace got = {0};

		trace = record(" | batch(9, tail=exact)", &options, &got);
		json_array_foreach(trace, i, event)
		{
			const char *tag = json_string_value(json_object_get(event, "cat"));

			if (tag && strcmp(tag, "get batch") == 0)
				seen |= (uint64_t)1
				        << json_integer_value(json_object_get(json_object_get(event, "args"), "item"));
		}
		assert_int_equal(seen, options.rank == 0 ? 0xffff : 0x7f7f);
		json_decref(trace);
		trace_free(&got);
	}
}

/* What comes from the disk and not from the page cache is a read in flight. */
static void
reads_that_wait_are_in_the_trace(void **state)
{
	struct leat_options options;
	struct trace got = {0};
	json_t *trace;

	(void)state;
	trace_options(&options);
	options.epochs = 1;
	trace_run(&got, spec_of(" | batch(8)"), &options); /* makes the index */
	trace_free(&got);
	memset(&got, 0, sizeof got);
	if (!data_drop_cache(&data))
		skip();
	trace = record(" | batch(8)", &options, &got);
	assert_true(chrome_spans(trace, "fetch", NULL) > 0);
	json_decref(trace);
	trace_free(&got);
}

static double
begin_of_wait(json_t *trace)
{
	json_t *event;
	size_t i;

	json_array_foreach(trace, i, event)
	{
		const char *tag = json_string_value(json_object_get(event, "cat"));

		if (tag && strcmp(tag, "get batch") == 0)
			return json_number_value(json_object_get(event, "ts"));
	}
	return 0;
}

/* With prefetch(0), a call that does not wait never finds a batch. */
static void
a_wait_with_timeouts_is_one_span(void **state)
{
	struct leat_options options;
	struct leat_batch *batch;
	struct leat_feed *feed;
	uint64_t asked;
	json_t *trace;

	(void)state;
	trace_options(&options);
	options.epochs = 1;
	options.recorder = open_recorder();
	feed = trace_open(spec_of(DECODED " | prefetch(0)"), &options);
	assert_int_equal(leat_next_within(feed, 0, &batch, NULL), LEAT_TIMEOUT);
	asked = leat_now();
	assert_int_equal(leat_next_within(feed, 0, &batch, NULL), LEAT_TIMEOUT);
	assert_int_equal(leat_next(feed, &batch, NULL), LEAT_OK);
	leat_release(batch);
	leat_close(feed);
	assert_int_equal(leat_recorder_close(options.recorder, NULL), LEAT_OK);
	trace = chrome_read(temp_path(&temp, "run.json"));
	assert_int_equal(chrome_spans(trace, "get batch", NULL), 1);
	assert_true(begin_of_wait(trace) * 1000 <= (double)asked);
	json_decref(trace);
}

static void
a_recorder_outlives_its_feeds(void **state)
{
	struct leat_recorder *recorder = open_recorder();
	struct leat_options options;
	struct leat_feed *first, *second;
	struct trace got = {0};
	struct leat_err err;
	json_t *trace;

	(void)state;
	trace_options(&options);
	options.epochs = 1;
	options.threads = 1;
	options.recorder = recorder;
	first = trace_open(spec_of(DECODED), &options);
	second = trace_open(spec_of(DECODED), &options);
	trace_take(&got, second, 0);
	leat_close(first);
	assert_int_equal(leat_recorder_close(recorder, &err), LEAT_INVALID);
	assert_non_null(strstr(err.text, "close the feed first"));
	leat_close(second);
	/* The next feed continues the lanes. */
	first = trace_open(spec_of(DECODED), &options);
	trace_take(&got, first, 0);
	leat_close(first);
	assert_int_equal(leat_recorder_close(recorder, &err), LEAT_OK);
	trace = chrome_read(temp_path(&temp, "run.json"));
	assert_true(chrome_has_lane(trace, "worker 0 #2"));
	assert_false(chrome_has_lane(trace, "worker 0 #3"));
	assert_int_equal(chrome_spans(trace, "get batch", NULL), 16);
	json_decref(trace);
	trace_free(&got);
}

static void
a_feed_in_a_forked_process_refuses_the_recorder(void **state)
{
	struct leat_recorder *recorder = open_recorder();
	int status;
	pid_t child;

	(void)state;
	child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		struct leat_options options;
		struct leat_feed *feed;

		trace_options(&options);
		options.recorder = recorder;
		_exit(leat_open(spec_of(DECODED), &options, &feed, NULL) == LEAT_INVALID ? 0 : 1);
	}
	waitpid(child, &status, 0);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	assert_int_equal(leat_recorder_close(recorder, NULL), LEAT_OK);
}

/* With every allocation failing in turn, the recorder is free to be closed. */
static void
a_feed_that_does_not_open_lets_go_of_the_recorder(void **state)
{
	struct leat_options options;
	struct leat_feed *feed;
	enum leat_status status = LEAT_NOMEM;

	(void)state;
	trace_options(&options);
	options.threads = 1;
	options.recorder = open_recorder();
	for (long n = 0; status != LEAT_OK; n += 7) {
		status = leat_feed_open(spec_of(DECODED), &options, LEAT_BATCH_REQUIRED, n, &feed, NULL);
		if (status == LEAT_OK)
			leat_close(feed);
	}
	assert_int_equal(leat_recorder_close(options.recorder, NULL), LEAT_OK);
}

static void
short_samples_are_sampled(void **state)
{
	(void)state;
	assert_int_equal(leat_spans_every(0, 5000), 1); /* not known yet */
	assert_int_equal(leat_spans_every(1, 5000), 1024);
	assert_int_equal(leat_spans_every(100, 5000), 64);
	assert_int_equal(leat_spans_every(2500, 5000), 2);
	assert_int_equal(leat_spans_every(4999, 5000), 2);
	assert_int_equal(leat_spans_every(5000, 5000), 1);
	assert_int_equal(leat_spans_every(UINT64_MAX / 2, 5000), 1);
}

/* Each span says for how many it stands; those of batches are never left out. */
static void
spans_of_short_samples_say_so(void **state)
{
	struct leat_options options;
	struct trace got = {0};
	json_t *trace, *event;
	size_t i;

	(void)state;
	trace_options(&options);
	options.epochs = 20;
	options.threads = 1;
	trace = record(" | example(label=int64) | one_hot(64, field=label) | batch(8)", &options, &got);
	assert_int_equal(chrome_spans(trace, "get batch", NULL), 160);
	json_array_foreach(trace, i, event)
	{
		json_t *args = json_object_get(event, "args");
		json_int_t every = json_integer_value(json_object_get(args, "every"));

		assert_int_equal(every & (every - 1), 0);
		assert_true(every == 0 || strcmp(json_string_value(json_object_get(event, "cat")), "get batch") != 0);
	}
	json_decref(trace);
	trace_free(&got);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(recording_changes_no_byte, setup, teardown),
		cmocka_unit_test_setup_teardown(the_trace_has_each_batch_and_each_decoded_sample, setup, teardown),
		cmocka_unit_test_setup_teardown(items_are_positions, setup, teardown),
		cmocka_unit_test_setup_teardown(batches_have_the_same_numbers_on_all_ranks, setup, teardown),
		cmocka_unit_test_setup_teardown(reads_that_wait_are_in_the_trace, setup, teardown),
		cmocka_unit_test_setup_teardown(a_wait_with_timeouts_is_one_span, setup, teardown),
		cmocka_unit_test_setup_teardown(a_recorder_outlives_its_feeds, setup, teardown),
		cmocka_unit_test_setup_teardown(a_feed_in_a_forked_process_refuses_the_recorder, setup, teardown),
		cmocka_unit_test_setup_teardown(a_feed_that_does_not_open_lets_go_of_the_recorder, setup, teardown),
		cmocka_unit_test(short_samples_are_sampled),
		cmocka_unit_test_setup_teardown(spans_of_short_samples_say_so, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
