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
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "support/data.h"
#include "support/store_mem.h"
#include "support/trace.h"
#include "xray/xray.h"

enum { TOKENS = 64, SAMPLES = 4000 };

#define SOURCE "tokens('mem://tokens', length=64)"

static struct leat_xray x;

static int
setup(void **state)
{
	static uint16_t tokens[SAMPLES * TOKENS];

	(void)state;
	store_mem_reset();
	store_mem_put("mem://tokens", tokens, sizeof tokens);
	return 0;
}

static int
teardown(void **state)
{
	(void)state;
	leat_xray_close(&x);
	store_mem_reset();
	return 0;
}

/* ---- functions ---- */

static const struct leat_field tokens_field = {.name = "tokens", .dtype = LEAT_I32, .ndim = 1, .shape = {TOKENS}};

static enum leat_status
copy_through(const struct leat_map_call *call, struct leat_err *err)
{
	void *out = leat_map_output(call, 0, tokens_field.shape, err);

	if (!out)
		return err->status;
	memcpy(out, call->value[0].data, TOKENS * sizeof(int32_t));
	return LEAT_OK;
}

/* `arg`: milliseconds. */
static enum leat_status
wait_a_while(void *arg, const struct leat_map_call *call, struct leat_err *err)
{
	struct timespec t = {.tv_nsec = *(const int *)arg * 1000000};

	nanosleep(&t, NULL);
	return copy_through(call, err);
}

/* Computes for `arg` milliseconds of CPU time. */
static enum leat_status
compute(void *arg, const struct leat_map_call *call, struct leat_err *err)
{
	struct timespec begin, now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &begin);
	do
		clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	while ((now.tv_sec - begin.tv_sec) * 1000000000 + now.tv_nsec - begin.tv_nsec < *(const int *)arg * 1000000);
	return copy_through(call, err);
}

/* ---- running ---- */

static struct leat_options
options_with(struct leat_function *function,
             enum leat_status (*run)(void *, const struct leat_map_call *, struct leat_err *), int *ms)
{
	struct leat_options o;

	trace_options(&o);
	o.threads = 2;
	*function = (struct leat_function){.name = "f", .run = run, .arg = ms, .gives = &tokens_field, .give_count = 1};
	o.functions = function;
	o.function_count = 1;
	return o;
}

static void
examine(const char *spec, const struct leat_options *o, double step_ms, double seconds)
{
	struct leat_xray_options how;
	struct leat_err err;

	leat_xray_options_init(&how);
	how.step_ms = step_ms;
	how.seconds = seconds;
	if (leat_xray_open(&x, spec, o, &how, &err) != LEAT_OK)
		fail_msg("%s: %s", spec, err.text);
}

static void
expect_limit(const char *limit)
{
	if (strcmp(x.verdict.limit, limit) != 0)
		fail_msg("the limit is %s, not %s: %s", x.verdict.limit, limit, x.verdict.sentence);
}

static const struct leat_remedy *
helping(enum leat_remedy_kind kind)
{
	for (int i = 0; i < x.remedies; i++)
		if (x.remedy[i].kind == kind && x.remedy[i].helps)
			return &x.remedy[i];
	return NULL;
}

static void
expect_help(enum leat_remedy_kind kind)
{
	if (!helping(kind))
		fail_msg("%s should help: %s", leat_remedy_name(kind), x.verdict.sentence);
}

static void
expect_no_advice(void)
{
	for (int i = 0; i < x.remedies; i++)
		if (x.remedy[i].helps)
			fail_msg("useless advice: %s (%s)", x.remedy[i].what, x.verdict.sentence);
}

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
	examine(SOURCE " | shuffle | batch(16)", &o, 0, 4);
	expect_limit("disk");
	if (strncmp(x.verdict.sentence, "storage gives ", 14) != 0)
		fail_msg("%s", x.verdict.sentence);
	assert_false(x.figures.warm);
	expect_help(LEAT_REMEDY_CACHE);
	assert_null(helping(LEAT_REMEDY_THREADS));
}

static void
a_slow_op(void **state)
{
	struct leat_function f;
	int ms = 4;
	struct leat_options o = options_with(&f, wait_a_while, &ms);
	const struct leat_remedy *threads;

	(void)state;
	examine(SOURCE " | shuffle | map(f, random=true) | batch(16)", &o, 0, 3);
	expect_limit("map");
	assert_non_null(strstr(x.verdict.sentence, "map on 2 threads gives "));
	assert_true(x.figures.now.rate < 1000); /* 2 threads, 4 ms each: 500, measured in a moment */
	expect_help(LEAT_REMEDY_THREADS);
	threads = helping(LEAT_REMEDY_THREADS);
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
	examine(SOURCE " | shuffle | batch(16)", &o, 40, 2);
	expect_limit("step");
	expect_no_advice();
	assert_true(x.figures.whole <= 405);
	assert_non_null(strstr(x.verdict.sentence, "the loader could give "));
}

static void
a_tiny_window(void **state)
{
	struct leat_options o;

	(void)state;
	trace_options(&o);
	o.threads = 2;
	store_mem_set(&(struct store_mem_settings){.latency_ns = 20000000});
	examine(SOURCE " | shuffle | batch(4) | prefetch(1)", &o, 0, 4);
	expect_limit("window");
	expect_help(LEAT_REMEDY_MEMORY);
	assert_true(helping(LEAT_REMEDY_MEMORY)->predicted > 3 * x.figures.storage);
}

static void
no_prefetch(void **state)
{
	struct leat_function f;
	int ms = 4;
	struct leat_options o = options_with(&f, wait_a_while, &ms);

	(void)state;
	/* A batch takes 32 ms, as the step does. */
	examine(SOURCE " | shuffle | map(f, random=true) | batch(16) | prefetch(0)", &o, 32, 4);
	expect_limit("prefetch");
	expect_help(LEAT_REMEDY_PREFETCH);
}

static void
a_cache_that_is_too_small(void **state)
{
	struct leat_function f;
	int ms = 2;
	struct leat_options o = options_with(&f, wait_a_while, &ms);

	(void)state;
	/* 4,000 samples of 256 bytes, and what the cache needs for each. */
	examine(SOURCE " | shuffle | map(f, version='1') | cache(memory, size=400kB) | batch(16)", &o, 0, 3);
	expect_limit("cache");
	expect_help(LEAT_REMEDY_CACHE_SIZE);
	assert_true(x.figures.cached > 0.05 && x.figures.cached < 0.8);
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
	examine(SOURCE " | shuffle | batch(16) | prefetch(8)", &o, 0, 4);
	expect_limit("disk");
	assert_int_equal(x.verdict.kind, LEAT_FINDING_STALLS);
	expect_help(LEAT_REMEDY_AHEAD);
}

static void
one_cpu_means_no_more_threads(void **state)
{
	struct leat_function f;
	int ms = 2;
	struct leat_options o = options_with(&f, compute, &ms);
	cpu_set_t before, one;

	(void)state;
	assert_int_equal(sched_getaffinity(0, sizeof before, &before), 0);
	CPU_ZERO(&one);
	for (unsigned i = 0; i < CPU_SETSIZE && CPU_COUNT(&one) == 0; i++)
		if (CPU_ISSET(i, &before))
			CPU_SET(i, &one);
	assert_int_equal(sched_setaffinity(0, sizeof one, &one), 0);
	o.threads = 0;
	examine(SOURCE " | shuffle | map(f, random=true) | batch(16)", &o, 0, 2);
	assert_int_equal(sched_setaffinity(0, sizeof before, &before), 0);
	expect_limit("map");
	assert_int_equal(x.figures.threads, 1);
	assert_null(helping(LEAT_REMEDY_THREADS));
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
	examine(spec, &o, 0, 8);
	data_remove(&data);
	expect_limit("first batch");
	expect_help(LEAT_REMEDY_INDEX);
}

static void
nothing_is_wrong(void **state)
{
	struct leat_function f;
	int ms = 2;
	struct leat_options o = options_with(&f, wait_a_while, &ms);

	(void)state;
	/* The loader could give about 1,000 samples/s, the step takes 200. */
	examine(SOURCE " | map(f) | shuffle | batch(8)", &o, 40, 2);
	expect_limit("step");
	expect_no_advice();
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
	assert_int_equal(leat_xray(SOURCE " | batch(16)", NULL, &how, &json, &err), LEAT_OK);
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
	assert_int_equal(leat_xray(SOURCE " | frobnicate | batch(16)", NULL, NULL, &json, &err), LEAT_SPEC);
	assert_null(json);
	assert_int_equal(leat_xray(SOURCE " | take(0) | batch(16)", NULL, NULL, &json, &err), LEAT_DATA);
	leat_xray_options_init(&how);
	how.step_threads = 1;
	assert_int_equal(leat_xray(SOURCE " | batch(16)", NULL, &how, &json, &err), LEAT_INVALID);
	leat_xray_options_init(&how);
	how.seconds = NAN;
	assert_int_equal(leat_xray(SOURCE " | batch(16)", NULL, &how, &json, &err), LEAT_INVALID);
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
		cmocka_unit_test_setup_teardown(a_slow_store, setup, teardown),
		cmocka_unit_test_setup_teardown(a_slow_op, setup, teardown),
		cmocka_unit_test_setup_teardown(a_slow_consumer, setup, teardown),
		cmocka_unit_test_setup_teardown(a_tiny_window, setup, teardown),
		cmocka_unit_test_setup_teardown(no_prefetch, setup, teardown),
		cmocka_unit_test_setup_teardown(a_cache_that_is_too_small, setup, teardown),
		cmocka_unit_test_setup_teardown(one_slow_read_in_many, setup, teardown),
		cmocka_unit_test_setup_teardown(one_cpu_means_no_more_threads, setup, teardown),
		cmocka_unit_test_setup_teardown(a_slow_first_batch, setup, teardown),
		cmocka_unit_test_setup_teardown(nothing_is_wrong, setup, teardown),
		cmocka_unit_test_setup_teardown(the_result_is_json_with_the_promised_keys, setup, teardown),
		cmocka_unit_test_setup_teardown(errors_are_those_of_the_spec, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
