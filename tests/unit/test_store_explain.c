/* test_store_explain.c - leat_explain says what a feed then does: fields, memory and reads */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "feed/explain.h"
#include "support/data.h"
#include "support/specs.h"
#include "support/store_mem.h"
#include "support/temp.h"
#include "support/trace.h"

enum { SPECS = TEST_SLOW ? 40 : 300 };

static const size_t counts[] = {60, 1, 139};
static struct data data;

DATA_FIXTURE(NULL)

static json_t *
explain(const char *spec, const struct leat_options *options)
{
	struct leat_err err;
	json_error_t error;
	char *text;
	json_t *json;

	if (leat_explain(spec, options, true, &text, &err) != LEAT_OK)
		fail_msg("%s\n%s", spec, err.text);
	json = json_loads(text, 0, &error);
	if (!json)
		fail_msg("%s\nline %d: %s\n%s", spec, error.line, error.text, text);
	free(text);
	return json;
}

static json_int_t
number(const json_t *json, const char *object, const char *key)
{
	const json_t *value = json_object_get(json_object_get(json, object), key);

	if (!json_is_integer(value))
		fail_msg("%s.%s is no number", object, key);
	return json_integer_value(value);
}

/* ---- what a feed has ---- */

static void
check_fields(const json_t *fields, const struct leat_feed *feed, const char *spec)
{
	if ((int)json_array_size(fields) != leat_field_count(feed))
		fail_msg("%s: %zu fields, not %d", spec, json_array_size(fields), leat_field_count(feed));
	for (int i = 0; i < leat_field_count(feed); i++) {
		const struct leat_field *field = leat_field_at(feed, i);
		const json_t *told = json_array_get(fields, (size_t)i), *shape = json_object_get(told, "shape");

		assert_string_equal(json_string_value(json_object_get(told, "name")), field->name);
		assert_string_equal(json_string_value(json_object_get(told, "dtype")), leat_dtype_name(field->dtype));
		assert_int_equal(json_array_size(shape), field->ndim);
		for (int d = 0; d < field->ndim; d++) {
			const json_t *n = json_array_get(shape, (size_t)d);

			assert_true(field->shape[d] < 0 ? json_is_null(n) : json_integer_value(n) == field->shape[d]);
		}
	}
}

/* The fields after the last stage, the batches, and the memory are those of the feed. */
static void
check_against_feed(const char *spec, const struct leat_options *options)
{
	json_t *json = explain(spec, options), *stages = json_object_get(json, "stages");
	size_t last = json_array_size(stages);
	struct leat_feed *feed;
	struct leat_stats stats;
	struct leat_err err;
	char *text;

	if (leat_open(spec, options, &feed, &err) != LEAT_OK)
		fail_msg("%s\n%s", spec, err.text);
	check_fields(
		json_object_get(last ? json_array_get(stages, last - 1) : json_object_get(json, "source"), "fields"),
		feed, spec);
	assert_int_equal(number(json, "epoch", "samples"), leat_samples(feed));
	assert_int_equal(number(json, "epoch", "batches"), leat_batches(feed));
	assert_int_equal(number(json, "epoch", "batch_size"), leat_batch_size(feed));
	assert_string_equal(json_string_value(json_object_get(json, "spec")), leat_canonical(feed));
	leat_stats(feed, &stats);
	assert_in_range(number(json, "memory", "reserved"), 1, number(json, "memory", "limit"));
	assert_true(stats.memory_peak <= (size_t)number(json, "memory", "limit"));
	leat_close(feed);
	json_decref(json);
	assert_int_equal(leat_explain(spec, options, false, &text, &err), LEAT_OK);
	assert_non_null(strstr(text, "\nmemory "));
	free(text);
}

static void
drawn_pipelines_are_explained_as_they_run(void **state)
{
	static struct sources sources;
	static struct specs specs;
	struct leat_options options;

	(void)state;
	sources_make(&sources);
	sources_leave_local(&sources);
	trace_options(&options);
	options.epochs = 1;
	specs_init(&specs, &sources, 77, 200);
	for (int i = 0; i < SPECS; i++) {
		specs_draw(&specs);
		specs_batch(&specs, 1 + specs_below(&specs, 13));
		options.threads = 1 + (unsigned)i % 3;
		check_against_feed(specs.text, &options);
	}
	sources_remove(&sources);
}

static void
nothing_is_read_or_written(void **state)
{
	struct leat_options options;
	struct store_mem_counts before;
	char here[600], there[600], folder[300];
	json_t *json;

	(void)state;
	trace_options(&options);
	options.threads = 1;
	store_mem_reset();
	store_mem_mirror(data.folder);
	snprintf(folder, sizeof folder, "%s/kept", data.folder);
	snprintf(here, sizeof here,
	         "%s | example(image=bytes) | decode | resize(4, 4) | cache(disk, dir='%s') | batch(4)",
	         data_source(&data), folder);
	store_mem_spec(data.folder, here, there, sizeof there);
	json_decref(explain(there, &options)); /* makes the index */
	before = store_mem_counts();
	json = explain(there, &options);
	assert_true(store_mem_counts().submitted - before.submitted <= 2 * sizeof counts / sizeof *counts);
	assert_string_equal(json_string_value(json_object_get(json_object_get(json, "cache"), "where")), "disk");
	json_decref(json);
	assert_int_not_equal(access(folder, F_OK), 0);
	store_mem_reset();
}

/* ---- reads ---- */

/* Each with requests of its own kind. */
static const struct {
	const char *rest, *way;
} orders[] = {
	{"batch(10)", "streaming"},
	{"skip(3) | batch(7)", "streaming"},
	{"shuffle | batch(10)", "ranges"},
	{"shuffle(window=4) | batch(10)", "ranges"},
	{"shuffle(block=20, window=2) | batch(10)", "merged ranges"},
	{"repeat(2) | batch(16)", "streaming"},
	{"interleave(3) | batch(9)", "ranges"},
};

static void
reads_of_an_epoch_are_as_expected(void **state)
{
	struct leat_options options;
	char here[600], there[600];

	(void)state;
	trace_options(&options);
	options.epochs = 1;
	options.threads = 2;
	store_mem_reset();
	store_mem_mirror(data.folder);
	snprintf(here, sizeof here, "%s | batch(1)", data_source(&data));
	store_mem_spec(data.folder, here, there, sizeof there);
	json_decref(explain(there, &options)); /* makes the index */
	for (size_t i = 0; i < sizeof orders / sizeof *orders; i++) {
		struct store_mem_counts before, after;
		struct trace trace;
		json_int_t requests, bytes, opening;
		json_t *json;

		snprintf(here, sizeof here, "%s | %s", data_source(&data), orders[i].rest);
		store_mem_spec(data.folder, here, there, sizeof there);
		before = store_mem_counts();
		json = explain(there, &options);
		opening = (json_int_t)(store_mem_counts().submitted - before.submitted);
		requests = number(json, "reads", "requests");
		bytes = number(json, "reads", "bytes");
		assert_string_equal(json_string_value(json_object_get(json_object_get(json, "reads"), "way")),
		                    orders[i].way);
		json_decref(json);
		before = store_mem_counts();
		trace_run(&trace, there, &options);
		after = store_mem_counts();
		assert_int_equal(trace.status, LEAT_DONE);
		trace_free(&trace);
		/* A tenth, and a few: what the order of completion decides is left out. */
		if (llabs((json_int_t)(after.submitted - before.submitted) - opening - requests) > requests / 10 + 2)
			fail_msg("%s: %lld requests expected, %lld made, %lld to open", orders[i].rest,
			         (long long)requests, (long long)(after.submitted - before.submitted),
			         (long long)opening);
		if (bytes > (json_int_t)(after.bytes - before.bytes) || bytes == 0)
			fail_msg("%s: %lld bytes expected, %lld read", orders[i].rest, (long long)bytes,
			         (long long)(after.bytes - before.bytes));
	}
	store_mem_reset();
}

static void
a_long_epoch_is_estimated(void **state)
{
	struct leat_options options;
	char spec[600];
	json_t *json, *once;

	(void)state;
	trace_options(&options);
	options.threads = 1;
	snprintf(spec, sizeof spec, "%s | batch(100)", data_source(&data));
	once = explain(spec, &options);
	snprintf(spec, sizeof spec, "%s | repeat(1M) | batch(100)", data_source(&data));
	json = explain(spec, &options);
	assert_true(json_is_true(json_object_get(json_object_get(json, "reads"), "estimated")));
	assert_true(json_is_false(json_object_get(json_object_get(once, "reads"), "estimated")));
	assert_in_range(number(json, "reads", "bytes"), 990000 * number(once, "reads", "bytes"),
	                1010000 * number(once, "reads", "bytes"));
	json_decref(json);
	json_decref(once);
}

/* ---- errors ---- */

static void
errors_are_those_of_open(void **state)
{
	struct leat_options options;
	struct leat_err err;
	char spec[600], *text;

	(void)state;
	trace_options(&options);
	options.threads = 1;
	options.memory = 1000;
	snprintf(spec, sizeof spec, "%s | batch(4)", data_source(&data));
	assert_int_equal(leat_explain(spec, &options, false, &text, &err), LEAT_LIMIT);
	assert_non_null(strstr(err.text, "too little"));
	assert_null(text);
	assert_int_equal(leat_explain("nothing(", NULL, false, &text, &err), LEAT_SPEC);
	assert_null(text);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(drawn_pipelines_are_explained_as_they_run),
		cmocka_unit_test(nothing_is_read_or_written),
		cmocka_unit_test(reads_of_an_epoch_are_as_expected),
		cmocka_unit_test(a_long_epoch_is_estimated),
		cmocka_unit_test(errors_are_those_of_open),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
