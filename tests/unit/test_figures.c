/* test_figures.c - the figures of a run: they add up, and are the same in all forms */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "feed/feed.h"
#include "support/data.h"
#include "support/trace.h"

static const size_t counts[] = {100, 3, 150};
static struct data data;

/* Every tenth image is cut off. */
static enum data_kind
some_cut(size_t sample)
{
	return sample % 10 == 9 ? DATA_CUT : DATA_GOOD;
}

DATA_FIXTURE(some_cut)

enum { SAMPLES = 253, BAD = 25 };

static struct leat_feed *
open_feed(const char *ops, unsigned threads, uint64_t epochs)
{
	struct leat_options options;
	char spec[800];

	trace_options(&options);
	options.threads = threads;
	options.epochs = epochs;
	options.on_error = LEAT_ON_ERROR_SKIP;
	snprintf(spec, sizeof spec, "%s | example(image=bytes, label=int64) | %s", data_source(&data), ops);
	return trace_open(spec, &options);
}

static void
take_all(struct leat_feed *feed)
{
	struct trace trace = {0};

	trace_take(&trace, feed, 0);
	trace_free(&trace);
}

/* The figures as they are once nothing moves any more. */
static json_t *
figures_of(struct leat_feed *feed)
{
	json_error_t error;
	json_t *run;
	char *text;

	leat_engine_stop(feed);
	text = leat_stats_json(feed);
	run = json_loads(text, JSON_REJECT_DUPLICATES, &error);
	if (!run)
		fail_msg("%s: %s", error.text, text);
	free(text);
	return run;
}

static json_t *
stage(json_t *run, const char *name)
{
	json_t *one;
	size_t i;

	json_array_foreach(json_object_get(run, "stages"), i,
	                   one) if (strcmp(json_string_value(json_object_get(one, "name")), name) == 0) return one;
	fail_msg("there is no stage %s", name);
	return NULL;
}

static double
number(json_t *object, const char *key)
{
	json_t *value = json_object_get(object, key);

	if (!json_is_number(value))
		fail_msg("%s is not a number", key);
	return json_number_value(value);
}

static const char *
text(json_t *object, const char *key)
{
	const char *value = json_string_value(json_object_get(object, key));

	if (!value)
		fail_msg("%s is not a text", key);
	return value;
}

static bool
is_one_of(const char *word, const char *const *list)
{
	for (; *list; list++)
		if (strcmp(word, *list) == 0)
			return true;
	return false;
}

static void
the_times_of_every_stage_add_up(void **state)
{
	static const char *const consumers[] = {"deliver", "step", NULL};
	static const char *const storages[] = {"disk", "network", NULL};
	static const char *const tags[] = {"get batch", "to device", "run batch", "fetch", "decode",
	                                   "transform", "cache",     "collate",   NULL};

	(void)state;
	for (unsigned threads = 1; threads <= 3; threads += 2) {
		struct leat_feed *feed = open_feed("decode | resize(20, 20) | cast(uint8) | batch(16)", threads, 2);
		double running, consumer, shares = 0;
		json_t *run, *one;
		size_t i;

		take_all(feed);
		run = figures_of(feed);
		running = (double)leat_counted(&feed->ran_ns) / 1e9;
		consumer = (number(run, "wait_ns") + number(run, "run_ns")) / 1e9;
		json_array_foreach(json_object_get(run, "stages"), i, one)
		{
			double all = number(one, "busy_s") + number(one, "starved_s") + number(one, "blocked_s");
			double want = is_one_of(text(one, "name"), consumers)  ? consumer
			              : is_one_of(text(one, "name"), storages) ? running
			                                                       : running * threads;

			if (fabs(all - want) > 1e-5 + 1e-3 * want)
				fail_msg("%s: %g s of %g s", text(one, "name"), all, want);
			assert_true(is_one_of(text(one, "tag"), tags));
			assert_true(number(one, "share") >= 0 && number(one, "share") <= 1);
			if (!is_one_of(text(one, "name"), consumers) && !is_one_of(text(one, "name"), storages))
				shares += number(one, "share");
			if (number(one, "busy_s") > 0.001)
				assert_true(fabs(number(one, "rate_alone") * number(one, "busy_s") /
				                         (number(one, "threads") * number(one, "items")) -
				                 1) < 0.01);
			text(one, "waits_for");
		}
		assert_true(shares <= 1.001);
		json_decref(run);
		leat_close(feed);
	}
}

static void
every_stage_is_listed_in_order_with_its_items_and_errors(void **state)
{
	static const char *const names[] = {"plan",          "read",    "unpack",  "example",
	                                    "decode+resize", "collate", "deliver", "step"};
	struct leat_feed *feed = open_feed("decode | resize(20, 20) | batch(16)", 2, 2);
	json_t *run, *one;
	size_t i, n = 0;

	(void)state;
	take_all(feed);
	run = figures_of(feed);
	json_array_foreach(json_object_get(run, "stages"), i, one)
	{
		bool consumed =
			strcmp(text(one, "tag"), "get batch") == 0 || strcmp(text(one, "tag"), "run batch") == 0;

		if (strcmp(text(one, "name"), "disk") == 0)
			continue; /* the page cache may have lost a file */
		assert_string_equal(text(one, "name"), names[n++]);
		assert_int_equal(number(one, "items"), consumed ? 2 * (SAMPLES - BAD) : 2 * SAMPLES);
	}
	assert_int_equal(n, 8);
	assert_int_equal(number(stage(run, "decode+resize"), "errors"), 2 * BAD);
	assert_int_equal(number(stage(run, "unpack"), "errors"), 0);
	assert_int_equal(number(stage(run, "read"), "bytes"), number(run, "bytes_read"));
	assert_int_equal(number(stage(run, "step"), "bytes"), number(run, "bytes"));
	assert_true(number(stage(run, "decode+resize"), "busy_s") > 0);
	json_decref(run);
	leat_close(feed);
}

static void
what_is_cached_does_not_pass_the_stages_before(void **state)
{
	struct leat_feed *feed = open_feed("decode | resize(20, 20) | cache | cast(uint8) | batch(16)", 1, 3);
	json_t *run;

	(void)state;
	take_all(feed);
	run = figures_of(feed);
	assert_int_equal(number(stage(run, "cache"), "items"), 3 * SAMPLES);
	assert_int_equal(number(stage(run, "cast"), "items"), 3 * SAMPLES);
	/* Bad samples are made, and fail, in each epoch. */
	assert_int_equal(number(stage(run, "decode+resize"), "items"), SAMPLES + 2 * BAD);
	assert_int_equal(number(stage(run, "unpack"), "items"), SAMPLES + 2 * BAD);
	assert_true(number(stage(run, "cache"), "busy_s") > 0);
	json_decref(run);
	leat_close(feed);
}

static void
epochs_are_counted_one_by_one(void **state)
{
	struct leat_feed *feed = open_feed("batch(16)", 2, 3);
	double seconds = 0;
	json_t *run, *one;
	size_t i;

	(void)state;
	take_all(feed);
	run = figures_of(feed);
	assert_int_equal(json_array_size(json_object_get(run, "epochs")), 3);
	json_array_foreach(json_object_get(run, "epochs"), i, one)
	{
		assert_int_equal(number(one, "epoch"), i);
		assert_int_equal(number(one, "samples"), SAMPLES);
		assert_true(number(one, "wait_share") >= 0 && number(one, "wait_share") <= 1);
		seconds += number(one, "seconds");
	}
	assert_true(fabs(seconds - number(run, "seconds")) < 1e-4 + 0.01 * seconds);
	json_decref(run);
	leat_close(feed);
}

static void
only_the_latest_of_many_epochs_are_kept(void **state)
{
	static struct leat_epochs epochs;
	struct leat_figures *f = calloc(1, sizeof *f);

	(void)state;
	for (uint64_t e = 0; e < LEAT_FIGURE_EPOCHS + 10; e++) {
		leat_epochs_add(&epochs, e, 5, 1000, 3000);
		leat_epochs_add(&epochs, e, 7, 1000, 3000);
		leat_epochs_add(&epochs, e, 0, 0, 0);
	}
	leat_epochs_add(&epochs, 1000, 0, 77, 77); /* a call that gives nothing begins no epoch */
	leat_epochs_read(&epochs, f);
	assert_int_equal(f->epochs, LEAT_FIGURE_EPOCHS);
	assert_int_equal(f->epoch[0].epoch, 10);
	assert_int_equal(f->epoch[LEAT_FIGURE_EPOCHS - 1].epoch, LEAT_FIGURE_EPOCHS + 9);
	assert_int_equal(f->epoch[5].samples, 12);
	assert_true(fabs(f->epoch[5].seconds - 8e-6) < 1e-12);
	assert_true(fabs(f->epoch[5].wait_share - 0.25) < 1e-12);
	free(f);
}

static void
batch_times_are_a_histogram_of_all_batches_but_the_first(void **state)
{
	struct leat_feed *feed = open_feed("batch(16)", 2, 2);
	double sum = 0, before = 0;
	json_t *run, *times, *bucket;
	size_t i;

	(void)state;
	take_all(feed);
	run = figures_of(feed);
	times = json_object_get(run, "batch_ms");
	json_array_foreach(json_object_get(times, "histogram"), i, bucket)
	{
		assert_true(json_number_value(json_array_get(bucket, 0)) > before);
		before = json_number_value(json_array_get(bucket, 0));
		sum += json_number_value(json_array_get(bucket, 1));
	}
	assert_int_equal(sum, number(run, "batches") - 1);
	assert_int_equal(sum, number(times, "count"));
	assert_true(number(times, "p50") <= number(times, "p99") && number(times, "p99") <= number(times, "max"));
	assert_true(number(times, "max") <= before);
	json_decref(run);
	leat_close(feed);
}

static void
the_first_batch_is_split_into_parts_that_fit_into_it(void **state)
{
	struct leat_feed *feed = open_feed("decode | resize(20, 20) | batch(16)", 2, 1);
	double sum = 0;
	json_t *run, *part;
	const char *name;

	(void)state;
	take_all(feed);
	run = figures_of(feed);
	json_object_foreach(json_object_get(run, "first_batch"), name, part)
	{
		assert_true(json_number_value(part) >= 0);
		sum += json_number_value(part);
	}
	assert_int_equal(json_object_size(json_object_get(run, "first_batch")), 5);
	assert_true(sum > 0 && sum <= number(run, "first_batch_ms") + 0.01);
	assert_true(number(json_object_get(run, "first_batch"), "connect_ms") == 0);
	assert_true(number(json_object_get(run, "first_batch"), "list_ms") > 0);
	assert_true(number(json_object_get(run, "first_batch"), "decode_ms") > 0);
	json_decref(run);
	leat_close(feed);
}

static void
wait(double seconds)
{
	struct timespec t = {(time_t)seconds, (long)((seconds - floor(seconds)) * 1e9)};

	nanosleep(&t, NULL);
}

static void
workers_that_have_made_all_batches_ahead_are_blocked(void **state)
{
	struct leat_feed *feed = open_feed("batch(16) | prefetch(2)", 2, 0);
	struct leat_totals totals;
	struct trace trace = {0};
	json_t *run, *queue;

	(void)state;
	trace_take(&trace, feed, 3);
	wait(0.2);
	leat_trace_total(&feed->trace, &totals); /* while they sleep */
	assert_true(totals.blocked_ns > 200000000 && totals.blocked_ns <= totals.idle_ns);
	trace_take(&trace, feed, 1);
	run = figures_of(feed);
	queue = json_array_get(json_object_get(run, "queues"), 0);
	assert_string_equal(text(queue, "name"), "batches ready");
	assert_int_equal(number(queue, "capacity"), 2);
	assert_true(number(queue, "mean") > 0 && number(queue, "mean") <= 2);
	assert_true(number(stage(run, "unpack"), "blocked_s") > 0.2);
	json_decref(run);
	trace_free(&trace);
	leat_close(feed);
}

/* ---- Prometheus ---- */

/* Each line is a comment or "name{labels} value", and no series comes twice. */
static void
check_exposition(const char *page)
{
	size_t lines = 0, cap = 4096;
	char **seen = calloc(cap, sizeof *seen);
	char *copy = strdup(page), *save = NULL;

	for (char *line = strtok_r(copy, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		char *space = strrchr(line, ' '), *end;

		if (strncmp(line, "# HELP leat_", 12) == 0 || strncmp(line, "# TYPE leat_", 12) == 0)
			continue;
		assert_true(strncmp(line, "leat_", 5) == 0 && space && space[-1] == '}');
		strtod(space + 1, &end);
		assert_true(*end == '\0' && end > space + 1);
		*space = '\0';
		for (size_t i = 0; i < lines; i++)
			assert_string_not_equal(seen[i], line);
		assert_true(lines < cap);
		seen[lines++] = line;
	}
	assert_true(lines > 50);
	free(seen);
	free(copy);
}

static void
the_text_for_prometheus_has_the_same_figures(void **state)
{
	struct leat_feed *feed = open_feed("decode | resize(20, 20) | batch(16)", 2, 1);
	char *page;

	(void)state;
	take_all(feed);
	page = leat_stats_prometheus(feed);
	check_exposition(page);
	assert_non_null(strstr(page, "\nleat_samples_total{rank=\"0\"} 228\n"));
	assert_non_null(strstr(page, "\n# TYPE leat_samples_total counter\n"));
	assert_non_null(strstr(page, "\n# TYPE leat_stage_items_total counter\n"));
	assert_non_null(strstr(page, "\n# TYPE leat_stage_busy_seconds gauge\n")); /* it may become less */
	assert_null(strstr(page, "leat_stage_busy_seconds_total"));
	assert_non_null(strstr(page, ",stage=\"decode+resize\"} 25\n"));
	assert_non_null(strstr(page, "leat_batch_seconds_bucket{rank=\"0\",le=\"+Inf\"} 15\n"));
	assert_non_null(strstr(page, "leat_batch_seconds_count{rank=\"0\"} 15\n"));
	free(page);
	leat_close(feed);
}

static void
labels_and_numbers_are_escaped(void **state)
{
	struct leat_figures *f = calloc(1, sizeof *f);
	struct leat_mem mem;
	struct leat_str out;

	(void)state;
	leat_mem_init(&mem, SIZE_MAX);
	leat_str_init(&out, &mem, 1 << 20);
	f->stages.count = 1;
	snprintf(f->stages.one[0].name, sizeof f->stages.one[0].name, "a\"b\\c\nd");
	f->stages.one[0].tag = f->stages.one[0].waits_for = "";
	f->stages.one[0].busy_s = NAN;
	for (int i = 0; i < LEAT_QUEUES; i++)
		f->queue[i].name = i == 0 ? "q" : i == 1 ? "r" : i == 2 ? "s" : "t";
	leat_figures_add_prometheus(f, &out);
	assert_non_null(strstr(leat_str_text(&out), "stage=\"a\\\"b\\\\c\\nd\"} NaN\n"));
	leat_str_free(&out);
	leat_figures_add_number(&out, INFINITY, 3);
	leat_str_add(&out, " ");
	leat_figures_add_number(&out, 1.23456, 3);
	assert_string_equal(leat_str_text(&out), "null 1.235");
	leat_str_free(&out);
	free(f);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_times_of_every_stage_add_up),
		cmocka_unit_test(every_stage_is_listed_in_order_with_its_items_and_errors),
		cmocka_unit_test(what_is_cached_does_not_pass_the_stages_before),
		cmocka_unit_test(epochs_are_counted_one_by_one),
		cmocka_unit_test(only_the_latest_of_many_epochs_are_kept),
		cmocka_unit_test(batch_times_are_a_histogram_of_all_batches_but_the_first),
		cmocka_unit_test(the_first_batch_is_split_into_parts_that_fit_into_it),
		cmocka_unit_test(workers_that_have_made_all_batches_ahead_are_blocked),
		cmocka_unit_test(the_text_for_prometheus_has_the_same_figures),
		cmocka_unit_test(labels_and_numbers_are_escaped),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
