/* test_merge.c - the figures of several ranks as those of one run */
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

#include "trace/figures.h"
#include "trace/merge.h"

/* ---- which rank is slow ---- */

static void
the_rank_that_waits_while_others_do_not_is_slow(void **state)
{
	static const struct {
		struct {
			double wait, rate;
		} rank[4];
		size_t count;
		int slow;
	} cases[] = {
		{{{0.5, 100}}, 1, -1},
		{{{0.02, 100}, {0.31, 100}}, 2, 1},
		{{{0.02, 100}, {0.03, 100}, {0.31, 100}, {0.01, 100}}, 4, 2},
		{{{0.30, 100}, {0.31, 100}, {0.29, 100}}, 3, -1}, /* all wait alike */
		{{{0.02, 100}, {0.06, 100}, {0.02, 100}}, 3, -1}, /* a little more */
		{{{0.99, 100}, {0.99, 80}, {0.99, 101}}, 3, 1},   /* by themselves, without a step */
		{{{0.99, 100}, {0.99, 95}, {0.99, 101}}, 3, -1},
		{{{0.6, 50}, {0.1, 100}, {0.1, 100}}, 3, 0}, /* both */
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct leat_rank_figures rank[4] = {0};

		for (size_t k = 0; k < cases[i].count; k++) {
			rank[k].wait_share = cases[i].rank[k].wait;
			rank[k].samples_per_s = cases[i].rank[k].rate;
		}
		assert_int_equal(leat_slow_rank(rank, cases[i].count), cases[i].slow);
	}
}

/* ---- sums ---- */

static const char *const runs[] = {
	"{\"rank\": 0, \"samples\": 100, \"batches\": 10, \"seconds\": 2.0, \"samples_per_s\": 50, \"wait_share\": 0.1,"
	" \"limit\": \"step\", \"sentence\": \"the step is the limit.\", \"bad_count\": 1,"
	" \"batch_ms\": {\"mean\": 2, \"max\": 8, \"count\": 4, \"histogram\": [[2.0, 3], [8.0, 1]]},"
	" \"epochs\": [{\"epoch\": 0, \"samples\": 60, \"seconds\": 1.0, \"wait_share\": 0.2},"
	"  {\"epoch\": 1, \"samples\": 40, \"seconds\": 1.0, \"wait_share\": 0}],"
	" \"stages\": [{\"name\": \"decode\", \"tag\": \"decode\", \"threads\": 2, \"busy_s\": 3, \"starved_s\": 1,"
	"  \"blocked_s\": 0, \"items\": 100, \"errors\": 1, \"rate_alone\": 66.0, \"waits_for\": \"step\"}],"
	" \"endpoints\": [{\"host\": \"a:80\", \"requests\": 7, \"latency_ms\": {\"count\": 1, \"max\": 4,"
	"  \"mean\": 4, \"histogram\": [[4.5, 1]]}}]}",
	"{\"rank\": 1, \"samples\": 300, \"batches\": 30, \"seconds\": 4.0, \"samples_per_s\": 75, \"wait_share\": 0.5,"
	" \"limit\": \"decode\", \"sentence\": \"decode on 2 threads gives 75 samples/s.\","
	" \"batch_ms\": {\"mean\": 4, \"max\": 16, \"count\": 4, \"histogram\": [[2.0, 1], [4.0, 1], [16.0, 2]]},"
	" \"epochs\": [{\"epoch\": 0, \"samples\": 60, \"seconds\": 3.0, \"wait_share\": 0.6}],"
	" \"stages\": [{\"name\": \"network\", \"tag\": \"fetch\", \"threads\": 1, \"busy_s\": 1, \"items\": 300},"
	"  {\"name\": \"decode\", \"tag\": \"decode\", \"threads\": 2, \"busy_s\": 1, \"starved_s\": 2,"
	"  \"blocked_s\": 1, \"items\": 300, \"errors\": 0, \"rate_alone\": 600.0}],"
	" \"endpoints\": [{\"host\": \"a:80\", \"requests\": 5, \"latency_ms\": {\"count\": 1, \"max\": 2,"
	"  \"mean\": 2, \"histogram\": [[2.25, 1]]}}, {\"host\": \"b:80\", \"requests\": 1}]}",
};

static json_t *
merge(void)
{
	struct leat_err err;
	char *text = NULL;
	json_t *merged;

	if (leat_stats_merge(runs, 2, &text, &err) != LEAT_OK)
		fail_msg("%s", err.text);
	merged = json_loads(text, 0, NULL);
	assert_non_null(merged);
	free(text);
	return merged;
}

static json_t *
find(json_t *merged, const char *list, size_t i)
{
	return json_array_get(json_object_get(merged, list), i);
}

static void
is(json_t *object, const char *key, double value)
{
	double found = json_number_value(json_object_get(object, key));

	if (fabs(found - value) > 1e-6)
		fail_msg("%s is %g, not %g", key, found, value);
}

static void
counts_are_added_up(void **state)
{
	json_t *merged = merge(), *stage = find(merged, "stages", 0);

	(void)state;
	is(merged, "samples", 400);
	is(merged, "batches", 40);
	is(merged, "bad_count", 1);
	is(merged, "seconds", 4);
	is(merged, "samples_per_s", 100);
	is(merged, "wait_share", 2.2 / 6);
	assert_string_equal(json_string_value(json_object_get(stage, "name")), "decode");
	is(stage, "threads", 4);
	is(stage, "busy_s", 4);
	is(stage, "items", 400);
	is(stage, "share", 0.5);
	is(stage, "rate_alone", 666);
	assert_string_equal(json_string_value(json_object_get(stage, "tag")), "decode");
	is(find(merged, "stages", 1), "items", 300);
	is(find(merged, "epochs", 0), "samples", 120);
	is(find(merged, "epochs", 0), "seconds", 3);
	is(find(merged, "epochs", 0), "wait_share", 0.5);
	assert_int_equal(json_object_size(find(merged, "epochs", 0)), 4);
	is(find(merged, "endpoints", 0), "requests", 12);
	is(find(merged, "endpoints", 1), "requests", 1);
	json_decref(merged);
}

static void
histograms_are_added_bucket_by_bucket(void **state)
{
	static const double want[][2] = {{2, 4}, {4, 1}, {8, 1}, {16, 2}};
	json_t *merged = merge(), *times = json_object_get(merged, "batch_ms"),
	       *list = json_object_get(times, "histogram");

	(void)state;
	assert_int_equal(json_array_size(list), 4);
	for (size_t i = 0; i < 4; i++)
		for (size_t k = 0; k < 2; k++)
			assert_true(json_number_value(json_array_get(json_array_get(list, i), k)) == want[i][k]);
	is(times, "count", 8);
	is(times, "mean", 3);
	is(times, "max", 16);
	is(times, "p50", 2);
	is(times, "p99", 16);
	json_decref(merged);
}

static char *
long_run(int epochs, int buckets)
{
	json_t *run = json_loads(runs[0], 0, NULL), *list = json_array(), *histogram = json_array();
	char *text;

	for (int i = 0; i < epochs; i++)
		json_array_append_new(list, json_pack("{s:i, s:i, s:f, s:f}", "epoch", i, "samples", 10, "seconds", 1.0,
		                                      "wait_share", 0.5));
	for (int i = 0; i < buckets; i++)
		json_array_append_new(histogram, json_pack("[f, I]", 2.0, (json_int_t)1 << 48));
	json_object_set_new(run, "epochs", list);
	json_object_set_new(json_object_get(run, "batch_ms"), "histogram", histogram);
	text = json_dumps(run, 0);
	json_decref(run);
	assert_non_null(text);
	return text;
}

static void
all_epochs_have_all_ranks_and_no_sum_overflows(void **state)
{
	char *one = long_run(LEAT_FIGURE_EPOCHS, 40000), *text;
	const char *const three[] = {one, one, one};
	json_t *merged, *bucket;

	(void)state;
	assert_int_equal(leat_stats_merge(three, 3, &text, NULL), LEAT_OK);
	merged = json_loads(text, 0, NULL);
	assert_int_equal(json_array_size(json_object_get(merged, "epochs")), LEAT_FIGURE_EPOCHS);
	for (size_t i = 0; i < LEAT_FIGURE_EPOCHS; i++)
		is(find(merged, "epochs", i), "samples", 30);
	bucket = json_array_get(json_object_get(json_object_get(merged, "batch_ms"), "histogram"), 0);
	assert_true(json_integer_value(json_array_get(bucket, 1)) == (json_int_t)1 << 62);
	json_decref(merged);
	free(text);
	free(one);
}

static void
the_sentence_names_the_slow_rank_and_its_limit(void **state)
{
	json_t *merged = merge();

	(void)state;
	is(merged, "slow_rank", 1);
	assert_string_equal(json_string_value(json_object_get(merged, "limit")), "decode");
	assert_string_equal(
		json_string_value(json_object_get(merged, "sentence")),
		"rank 1 is the slow one, limited by decode: it waited 50 % of the time, the others 10 %. There, "
		"decode on 2 threads gives 75 samples/s.");
	assert_true(json_is_true(json_object_get(find(merged, "ranks", 1), "slow")));
	assert_true(json_is_false(json_object_get(find(merged, "ranks", 0), "slow")));
	json_decref(merged);
}

static void
what_is_no_run_is_refused(void **state)
{
	static const char *const bad[] = {
		"",
		"{",
		"[]",
		"{}",
		"{\"samples\": 1}",
		"{\"samples\": \"1\", \"seconds\": 1, \"samples_per_s\": 1, \"wait_share\": 0}"};
	struct leat_err err;
	char *text;

	(void)state;
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		const char *two[] = {runs[0], bad[i]};

		assert_int_equal(leat_stats_merge(two, 2, &text, &err), LEAT_DATA);
		assert_null(text);
		assert_non_null(strstr(err.text, "not the figures of a run"));
	}
	assert_int_equal(leat_stats_merge(runs, 0, &text, &err), LEAT_INVALID);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_rank_that_waits_while_others_do_not_is_slow),
		cmocka_unit_test(counts_are_added_up),
		cmocka_unit_test(histograms_are_added_bucket_by_bucket),
		cmocka_unit_test(all_epochs_have_all_ranks_and_no_sum_overflows),
		cmocka_unit_test(the_sentence_names_the_slow_rank_and_its_limit),
		cmocka_unit_test(what_is_no_run_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
