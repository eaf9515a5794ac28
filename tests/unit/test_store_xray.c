/* test_store_xray.c - bottlenecks planted in real feeds are named; what is measured of them is about right
 *
 * All of them sleep: a store with latency, a function that waits, a slow step. So the names do not depend on how busy
 * the machine is, and rates only have a lower bound on times. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <jansson.h>
#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/data.h"
#include "support/planted.h"
#include "support/record.h"
#include "support/store_mem.h"
#include "support/trace.h"

/* ---- planted ---- */

static void
a_slow_store(void **state)
{
	struct leat_options o;

	(void)state;
	trace_options(&o);
	o.threads = 2;
	o.memory = 0;
	store_mem_set(&(struct store_mem_settings){.latency_ns = 100000000, .shuffle = 1});
	planted_examine(PLANTED " | shuffle | batch(16)", &o, 0, 4);
	planted_expect_limit("disk");
	if (strncmp(planted.verdict.sentence, "storage gives ", 14) != 0)
		fail_msg("%s", planted.verdict.sentence);
	assert_false(planted.figures.warm);
	planted_expect_help(LEAT_REMEDY_CACHE);
	assert_null(planted_helping(LEAT_REMEDY_THREADS));
}

static void
a_slow_op(void **state)
{
	struct leat_function f;
	unsigned us = 4000;
	struct leat_options o = planted_options(&f, planted_wait, &us);
	const struct leat_remedy *threads;

	(void)state;
	planted_examine(PLANTED " | shuffle | map(f, random=true) | batch(16)", &o, 0, 3);
	planted_expect_limit("map");
	planted_expect_limit_of_run("map");
	assert_non_null(strstr(planted.verdict.sentence, "map on 2 threads gives "));
	assert_true(planted.figures.now.rate < 1000); /* 2 threads, 4 ms each: 500, measured in a moment */
	planted_expect_help(LEAT_REMEDY_THREADS);
	threads = planted_helping(LEAT_REMEDY_THREADS);
	assert_int_equal(threads->threads, 8);
	assert_true(threads->measured > 0); /* how much depends on the machine */
}

static void
a_slow_consumer(void **state)
{
	struct leat_options o;

	(void)state;
	trace_options(&o);
	o.threads = 2;
	planted_examine(PLANTED " | shuffle | batch(16)", &o, 40, 2);
	planted_expect_limit("step");
	planted_expect_limit_of_run("step");
	planted_expect_no_advice();
	assert_true(planted.figures.whole <= 405);
	assert_non_null(strstr(planted.verdict.sentence, "the loader could give "));
}

static void
a_tiny_window(void **state)
{
	struct leat_options o;

	(void)state;
	trace_options(&o);
	o.threads = 2;
	store_mem_set(&(struct store_mem_settings){.latency_ns = 20000000});
	planted_examine(PLANTED " | shuffle | batch(4) | prefetch(1)", &o, 0, 4);
	planted_expect_limit("window");
	planted_expect_help(LEAT_REMEDY_MEMORY);
	assert_true(planted_helping(LEAT_REMEDY_MEMORY)->predicted > 3 * planted.figures.storage);
}

static void
no_prefetch(void **state)
{
	struct leat_function f;
	unsigned us = 4000;
	struct leat_options o = planted_options(&f, planted_wait, &us);

	(void)state;
	/* A batch takes 32 ms, as the step does. */
	planted_examine(PLANTED " | shuffle | map(f, random=true) | batch(16) | prefetch(0)", &o, 32, 4);
	planted_expect_limit("prefetch");
	planted_expect_help(LEAT_REMEDY_PREFETCH);
}

static void
a_cache_that_is_too_small(void **state)
{
	struct leat_function f;
	unsigned us = 2000;
	struct leat_options o = planted_options(&f, planted_wait, &us);

	(void)state;
	/* 4,000 samples of 256 bytes, and what the cache needs for each. */
	planted_examine(PLANTED " | shuffle | map(f, version='1') | cache(memory, size=400kB) | batch(16)", &o, 0, 3);
	planted_expect_limit("cache");
	planted_expect_help(LEAT_REMEDY_CACHE_SIZE);
	assert_true(planted.figures.cached > 0.05 && planted.figures.cached < 0.8);
}

/* Samples that are computed while a remedy is tried. */
static struct {
	pthread_mutex_t lock;
	bool trying;
	uint64_t first, step, calls; /* all of them are first + n * step */
} computed = {.lock = PTHREAD_MUTEX_INITIALIZER};

static enum leat_status
note_sample(void *arg, const struct leat_map_call *call, struct leat_err *err)
{
	(void)arg;
	pthread_mutex_lock(&computed.lock);
	if (computed.trying && computed.calls++ == 0)
		computed.first = call->sample;
	if (computed.trying) {
		uint64_t a = computed.step;
		uint64_t b =
			call->sample > computed.first ? call->sample - computed.first : computed.first - call->sample;

		while (b) {
			uint64_t rest = a % b;

			a = b;
			b = rest;
		}
		computed.step = a;
	}
	pthread_mutex_unlock(&computed.lock);
	return planted_copy(NULL, call, err);
}

static void
note_try(void *arg, const char *what)
{
	(void)arg;
	pthread_mutex_lock(&computed.lock);
	computed.trying = strstr(what, "use 8 threads") != NULL;
	pthread_mutex_unlock(&computed.lock);
}

/* The cache is full when it counts: it was filled with samples from all over the data, at equal distances. A run that
 * only begins computes any of them, because they are shuffled. */
static void
remedies_are_tried_with_a_full_cache(void **state)
{
	unsigned us = 4000;
	const struct leat_function functions[] = {
		{.name = "f", .run = note_sample, .gives = &planted_field, .give_count = 1},
		{.name = "g", .run = planted_wait, .arg = &us, .gives = &planted_field, .give_count = 1},
	};
	struct leat_xray_options how;
	struct leat_options o;
	struct leat_err err;

	(void)state;
	trace_options(&o);
	o.threads = 2;
	o.functions = functions;
	o.function_count = 2;
	leat_xray_options_init(&how);
	how.seconds = 3;
	how.progress = note_try;
	if (leat_xray_open(&planted,
	                   PLANTED " | shuffle | map(f, version='1') | cache(memory) | map(g, random=true) | batch(16)",
	                   &o, &how, &err) != LEAT_OK)
		fail_msg("%s", err.text);
	planted_expect_limit("map");
	planted_expect_help(LEAT_REMEDY_THREADS);
	assert_true(planted_helping(LEAT_REMEDY_THREADS)->measured > 0);
	assert_in_range(computed.calls, 8, 1024);
	assert_true(computed.step > 1);
}

static int small_batches, whole_batches; /* feeds of ops from memory */

static void
note_spec(const char *spec)
{
	if (!strstr(spec, "| cache(memory) | map(f"))
		return;
	small_batches += strstr(spec, "batch(16)") != NULL;
	whole_batches += strstr(spec, "batch(17)") != NULL;
}

/* Ops that do next to nothing, and some that take their time. */
static void
batches_have_their_size_where_samples_take_no_time(void **state)
{
	struct leat_function f;
	unsigned us = 4000;
	struct leat_options o = planted_options(&f, planted_copy, &us);

	(void)state;
	record_opened = note_spec;
	small_batches = whole_batches = 0;
	planted_examine(PLANTED " | shuffle | map(f, random=true) | batch(17)", &o, 0, 6);
	assert_true(small_batches > 0);
	assert_true(whole_batches >= small_batches); /* remedies have them anyway */
	f.run = planted_wait;
	small_batches = whole_batches = 0;
	planted_examine(PLANTED " | shuffle | map(f, random=true) | batch(17)", &o, 0, 3);
	record_opened = NULL;
	assert_true(small_batches > 1);
	assert_true(whole_batches < small_batches);
}

static void
one_slow_read_in_many(void **state)
{
	struct leat_options o;

	(void)state;
	trace_options(&o);
	o.threads = 2;
	o.memory = (size_t)4 << 20;
	store_mem_set(&(struct store_mem_settings){.latency_ns = 100000, .slow_every = 1000, .slow_ns = 300000000});
	planted_examine(PLANTED " | shuffle | batch(16) | prefetch(8)", &o, 0, 4);
	planted_expect_limit("disk");
	assert_int_equal(planted.verdict.kind, LEAT_FINDING_STALLS);
	planted_expect_help(LEAT_REMEDY_AHEAD);
}

static void
one_cpu_means_no_more_threads(void **state)
{
	struct leat_function f;
	unsigned us = 2000;
	struct leat_options o = planted_options(&f, planted_compute, &us);
	cpu_set_t before, one;

	(void)state;
	assert_int_equal(sched_getaffinity(0, sizeof before, &before), 0);
	CPU_ZERO(&one);
	for (unsigned i = 0; i < CPU_SETSIZE && CPU_COUNT(&one) == 0; i++)
		if (CPU_ISSET(i, &before))
			CPU_SET(i, &one);
	assert_int_equal(sched_setaffinity(0, sizeof one, &one), 0);
	o.threads = 0;
	planted_examine(PLANTED " | shuffle | map(f, random=true) | batch(16)", &o, 0, 2);
	assert_int_equal(sched_setaffinity(0, sizeof before, &before), 0);
	planted_expect_limit("map");
	assert_int_equal(planted.figures.threads, 1);
	assert_null(planted_helping(LEAT_REMEDY_THREADS));
}

static void
a_slow_first_batch(void **state)
{
	static const size_t counts[] = {8, 8};
	struct leat_options o;
	struct data data;
	char spec[800], local[800];

	(void)state;
	data_make(&data, 2, counts, NULL);
	store_mem_mirror(data.folder);
	snprintf(local, sizeof local, "%s | batch(4)", data_source(&data));
	store_mem_spec(data.folder, local, spec, sizeof spec);
	trace_options(&o);
	store_mem_set(&(struct store_mem_settings){.latency_ns = 600000000});
	planted_examine(spec, &o, 0, 8);
	data_remove(&data);
	planted_expect_limit("first batch");
	planted_expect_help(LEAT_REMEDY_INDEX);
}

static void
nothing_is_wrong(void **state)
{
	struct leat_function f;
	unsigned us = 2000;
	struct leat_options o = planted_options(&f, planted_wait, &us);

	(void)state;
	/* The loader could give about 1,000 samples/s, the step takes 200. */
	planted_examine(PLANTED " | map(f) | shuffle | batch(8)", &o, 40, 2);
	planted_expect_limit("step");
	planted_expect_no_advice();
}

/* ---- the public call ---- */

static void
the_result_is_json_with_the_promised_keys(void **state)
{
	static const char *const keys[] = {"limit", "sentence",      "parts",    "remedies",
	                                   "run",   "samples_per_s", "predicted"};
	struct leat_xray_options how;
	struct leat_err err;
	char *json;
	json_t *root;

	(void)state;
	leat_xray_options_init(&how);
	how.seconds = 0.5;
	assert_int_equal(leat_xray(PLANTED " | batch(16)", NULL, &how, &json, &err), LEAT_OK);
	root = json_loads(json, 0, NULL);
	assert_non_null(root);
	for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
		assert_non_null(json_object_get(root, keys[i]));
	assert_true(json_array_size(json_object_get(root, "parts")) >= 3);
	json_decref(root);
	free(json);
}

static void
errors_are_those_of_the_spec(void **state)
{
	struct leat_xray_options how;
	struct leat_err err;
	char *json;

	(void)state;
	assert_int_equal(leat_xray(PLANTED " | frobnicate | batch(16)", NULL, NULL, &json, &err), LEAT_SPEC);
	assert_null(json);
	assert_int_equal(leat_xray(PLANTED " | take(0) | batch(16)", NULL, NULL, &json, &err), LEAT_DATA);
	leat_xray_options_init(&how);
	how.step_threads = 1;
	assert_int_equal(leat_xray(PLANTED " | batch(16)", NULL, &how, &json, &err), LEAT_INVALID);
	leat_xray_options_init(&how);
	how.seconds = NAN;
	assert_int_equal(leat_xray(PLANTED " | batch(16)", NULL, &how, &json, &err), LEAT_INVALID);
}

/* ---- variants ---- */

static void
expect_variant(const char *spec, const struct leat_variant *v, const char *expected)
{
	struct leat_outline outline;
	struct leat_mem mem;
	struct leat_str text;
	struct leat_err err;

	leat_mem_init(&mem, SIZE_MAX);
	leat_str_init(&text, &mem, 4096);
	assert_int_equal(leat_outline_open(&outline, spec, &mem, &err), LEAT_OK);
	leat_variant_text(&outline, v, &text);
	assert_string_equal(leat_str_text(&text), expected);
	leat_str_free(&text);
	leat_outline_close(&outline);
	assert_int_equal(mem.used, 0);
}

static void
a_variant_changes_only_what_it_should(void **state)
{
	static const char spec[] = "folder('a | b') | take(100) | decode(3, mode=torch) | resize(8, 8) | shuffle |"
				   " random_flip | scale(1/255) | batch(32) | prefetch(3)";
	struct leat_variant v;

	(void)state;
	leat_variant_init(&v);
	expect_variant(spec, &v,
	               "folder('a | b') | take(100) | decode(3, mode=torch) | resize(8, 8) | shuffle | random_flip | "
	               "scale(1/255) | batch(32) | prefetch(3)");
	v.no_ops = true;
	v.cache = LEAT_CACHE_NONE;
	expect_variant(spec, &v, "folder('a | b') | take(100) | shuffle | batch(32) | prefetch(3)");
	leat_variant_init(&v);
	v.order = LEAT_ORDER_SUBSET;
	v.of = 100;
	v.subset = 10;
	v.cache = 0;
	v.batch = 8;
	v.prefetch = LEAT_PREFETCH_AUTO;
	v.fast = true;
	expect_variant(
		spec, &v,
		"folder('a | b') | take(100) | cache(memory) | decode(3, mode=torch, fast=true) | resize(8, 8) | "
		"random_flip | scale(1/255) | shard(10, 5) | take(10) | repeat(1000000) | batch(8)");
	leat_variant_init(&v);
	v.cache = 4;
	v.cache_bytes = 1000;
	v.order = LEAT_ORDER_BLOCKS;
	expect_variant(spec, &v,
	               "folder('a | b') | take(100) | decode(3, mode=torch) | resize(8, 8) | shuffle(window=64, "
	               "block=64) | random_flip | scale(1/255) | cache(memory, size=1000) | batch(32) | prefetch(3)");
}

static void
an_outline_knows_where_a_cache_changes_nothing(void **state)
{
	struct leat_outline o;
	struct leat_mem mem;
	struct leat_err err;

	(void)state;
	leat_mem_init(&mem, SIZE_MAX);
	assert_int_equal(
		leat_outline_open(&o,
	                          "folder(a) | decode | resize(8, 8) | random_flip | scale(1/255) | repeat(3) | "
	                          "shuffle | batch(2)",
	                          &mem, &err),
		LEAT_OK);
	assert_int_equal(o.ops, 4);
	assert_int_equal(o.fixed, 2);
	assert_int_equal(o.decode, 0);
	assert_int_equal(o.cached, -1);
	assert_true(o.shuffles);
	assert_float_equal(o.repeats, 3, 1e-9);
	assert_string_equal(leat_outline_before(&o, 0), "folder");
	assert_string_equal(leat_outline_before(&o, 2), "resize");
	assert_true(leat_outline_is_pointwise(&o, 3));
	leat_outline_close(&o);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_variant_changes_only_what_it_should),
		cmocka_unit_test(an_outline_knows_where_a_cache_changes_nothing),
		cmocka_unit_test_setup_teardown(a_slow_store, planted_setup, planted_teardown),
		cmocka_unit_test_setup_teardown(a_slow_op, planted_setup, planted_teardown),
		cmocka_unit_test_setup_teardown(a_slow_consumer, planted_setup, planted_teardown),
		cmocka_unit_test_setup_teardown(a_tiny_window, planted_setup, planted_teardown),
		cmocka_unit_test_setup_teardown(no_prefetch, planted_setup, planted_teardown),
		cmocka_unit_test_setup_teardown(a_cache_that_is_too_small, planted_setup, planted_teardown),
		cmocka_unit_test_setup_teardown(remedies_are_tried_with_a_full_cache, planted_setup, planted_teardown),
		cmocka_unit_test_setup_teardown(batches_have_their_size_where_samples_take_no_time, planted_setup,
	                                        planted_teardown),
		cmocka_unit_test_setup_teardown(one_slow_read_in_many, planted_setup, planted_teardown),
		cmocka_unit_test_setup_teardown(one_cpu_means_no_more_threads, planted_setup, planted_teardown),
		cmocka_unit_test_setup_teardown(a_slow_first_batch, planted_setup, planted_teardown),
		cmocka_unit_test_setup_teardown(nothing_is_wrong, planted_setup, planted_teardown),
		cmocka_unit_test_setup_teardown(the_result_is_json_with_the_promised_keys, planted_setup,
	                                        planted_teardown),
		cmocka_unit_test_setup_teardown(errors_are_those_of_the_spec, planted_setup, planted_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
