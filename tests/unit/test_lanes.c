/* test_lanes.c - each thread counts in its own lane, and one list makes all forms of the stats */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <jansson.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "feed/feed.h"
#include "store/file.h"
#include "support/data.h"
#include "support/trace.h"
#include "trace/stats.h"

/* ---- lanes ---- */

static void
every_thread_has_a_lane_apart_from_the_others(void **state)
{
	struct leat_trace trace = {0};
	struct leat_mem mem;

	(void)state;
	leat_mem_init(&mem, SIZE_MAX);
	assert_int_equal(leat_trace_open(&trace, 3, 2, &mem, NULL), LEAT_OK);
	assert_true(atomic_load(&mem.used) >= leat_trace_bytes(3, 2));
	assert_string_equal(trace.consumer->name, "consumer");
	assert_string_equal(trace.worker[2].name, "worker 2");
	assert_string_equal(trace.io[1].name, "I/O 1");
	assert_int_equal(trace.consumer->kind, LEAT_LANE_CONSUMER);
	assert_int_equal(trace.worker[2].kind, LEAT_LANE_WORKER);
	assert_int_equal(trace.worker[2].index, 2);
	assert_int_equal(trace.io[1].kind, LEAT_LANE_IO);
	assert_int_equal(trace.io[1].index, 1);
	for (unsigned i = 0; i < 6; i++)
		assert_int_equal((uintptr_t)&trace.consumer[i] % LEAT_APART, 0);
	assert_ptr_equal(&trace.io[2], &trace.consumer[6]);
	leat_trace_close(&trace, &mem);
	leat_trace_close(&trace, &mem);
	assert_int_equal(atomic_load(&mem.used), 0);
}

static void
lanes_without_memory_are_an_error(void **state)
{
	struct leat_trace trace = {0};
	struct leat_mem mem;
	struct leat_err err;

	(void)state;
	leat_mem_init(&mem, 100);
	leat_err_clear(&err);
	assert_int_equal(leat_trace_open(&trace, 3, 2, &mem, &err), LEAT_LIMIT);
	leat_trace_close(&trace, &mem);
	assert_int_equal(atomic_load(&mem.used), 0);
}

enum { LANES = 6, ROUNDS = 20000 };

/* One writer: adds 1, 2, 3, ... to the counters in the order of the list, over and over. */
static void *
count_all(void *arg)
{
	struct leat_lane *lane = arg;

	for (int round = 0; round < ROUNDS; round++) {
		uint64_t n = 0;

#define COUNT(name, unit, doc) leat_count(&lane->count.name, ++n);
		LEAT_COUNTERS(COUNT)
#undef COUNT
		leat_count(&lane->stage_ns[round % LEAT_TRACE_STAGES], 1);
	}
	return NULL;
}

static void
totals_lose_nothing_that_threads_count_at_once(void **state)
{
	struct leat_trace trace = {0};
	struct leat_totals totals, before = {0};
	struct leat_mem mem;
	pthread_t thread[LANES];
	uint64_t n = 0, stages = 0;

	(void)state;
	leat_mem_init(&mem, SIZE_MAX);
	assert_int_equal(leat_trace_open(&trace, 3, 2, &mem, NULL), LEAT_OK);
	for (int i = 0; i < LANES; i++)
		assert_int_equal(pthread_create(&thread[i], NULL, count_all, &trace.consumer[i]), 0);
	for (int i = 0; i < 100; i++) {
		leat_trace_total(&trace, &totals);
#define GROWS(name, unit, doc) assert_true(totals.name >= before.name);
		LEAT_COUNTERS(GROWS)
#undef GROWS
		before = totals;
	}
	for (int i = 0; i < LANES; i++)
		pthread_join(thread[i], NULL);
	leat_trace_total(&trace, &totals);
#define IS_SUM(name, unit, doc) assert_int_equal(totals.name, ++n *LANES *ROUNDS);
	LEAT_COUNTERS(IS_SUM)
#undef IS_SUM
	for (int s = 0; s < LEAT_TRACE_STAGES; s++)
		stages += totals.stage_ns[s];
	assert_int_equal(stages, LANES * ROUNDS);
	leat_trace_close(&trace, &mem);
}

/* ---- one list ---- */

/* The struct as it was before the list made it. Programs compiled with it pass its size. */
struct first_stats {
	uint64_t samples, batches, bytes, bytes_read, bad, wait_ns, run_ns, first_batch_ns;
	uint64_t read_ns, read_wait_ns, op_ns, idle_ns;
	size_t memory, memory_peak;
	unsigned threads;
	char limit[LEAT_MAX_NAME + 1];
};

#define SAME_PLACE(member)                                                                                             \
	_Static_assert(offsetof(struct first_stats, member) == offsetof(struct leat_stats, member),                    \
	               "new stats go at the end of the list")
SAME_PLACE(samples);
SAME_PLACE(batches);
SAME_PLACE(bytes);
SAME_PLACE(bytes_read);
SAME_PLACE(bad);
SAME_PLACE(wait_ns);
SAME_PLACE(run_ns);
SAME_PLACE(first_batch_ns);
SAME_PLACE(read_ns);
SAME_PLACE(read_wait_ns);
SAME_PLACE(op_ns);
SAME_PLACE(idle_ns);
SAME_PLACE(memory);
SAME_PLACE(memory_peak);
SAME_PLACE(threads);
SAME_PLACE(limit);

static json_t *
parse(const char *text)
{
	json_error_t error;
	json_t *object = json_loads(text, 0, &error);

	if (!object)
		fail_msg("%s: %s", error.text, text);
	return object;
}

static size_t
list_length(void)
{
	size_t n = 0;

	while (leat_stat_list[n].name)
		n++;
	return n;
}

static void
the_json_of_stats_has_every_member_and_its_value(void **state)
{
	struct leat_stats stats = {.limit = "random_\"crop\""};
	struct leat_mem mem;
	struct leat_str out;
	json_t *object;
	unsigned n = 0;

	(void)state;
#define SET(name, unit, doc) stats.name = ++n;
#define SET_GAUGE(type, name, unit, doc) stats.name = ++n;
#define SKIP(name, doc)
	LEAT_STATS(SET, SET_GAUGE, SKIP)
	leat_mem_init(&mem, SIZE_MAX);
	leat_str_init(&out, &mem, 10000);
	leat_stats_add_json(&stats, &out);
	object = parse(leat_str_text(&out));
	n = 0;
#define IS(name, unit, doc) assert_int_equal(json_integer_value(json_object_get(object, #name)), ++n);
#define IS_GAUGE(type, name, unit, doc) IS(name, unit, doc)
#define IS_NAME(name, doc) assert_string_equal(json_string_value(json_object_get(object, #name)), stats.name);
	LEAT_STATS(IS, IS_GAUGE, IS_NAME)
	assert_int_equal(json_object_size(object), list_length());
	json_decref(object);
	leat_str_free(&out);
	assert_int_equal(atomic_load(&mem.used), 0);
}

static void
the_description_lists_every_stat_with_unit_and_meaning(void **state)
{
	char *text = leat_describe();
	json_t *all = parse(text), *list = json_object_get(all, "stats");

	(void)state;
	assert_int_equal(json_array_size(list), list_length());
	for (size_t i = 0; leat_stat_list[i].name; i++) {
		json_t *stat = json_array_get(list, i);

		assert_string_equal(json_string_value(json_object_get(stat, "name")), leat_stat_list[i].name);
		assert_string_equal(json_string_value(json_object_get(stat, "unit")), leat_stat_list[i].unit);
		assert_string_equal(json_string_value(json_object_get(stat, "doc")), leat_stat_list[i].doc);
		assert_true(*leat_stat_list[i].unit && *leat_stat_list[i].doc);
	}
	json_decref(all);
	free(text);
}

/* ---- a feed ---- */

static const size_t counts[] = {100, 3, 150};
static struct data data;

DATA_FIXTURE(NULL)

static struct leat_feed *
run_to_the_end(unsigned threads)
{
	struct leat_options options;
	struct leat_feed *feed;
	struct trace trace = {0};
	char spec[800];

	trace_options(&options);
	options.threads = threads;
	snprintf(spec, sizeof spec, "%s | example(image=bytes, label=int64) | decode | resize(20, 20) | batch(16)",
	         data_source(&data));
	feed = trace_open(spec, &options);
	trace_take(&trace, feed, 0);
	trace_free(&trace);
	return feed;
}

static void
threads_count_in_lanes_of_their_kind(void **state)
{
	struct leat_feed *feed = run_to_the_end(3);
	const struct leat_trace *trace = &feed->trace;
	uint64_t read = 0;

	(void)state;
	assert_int_equal(trace->workers, 3);
	assert_int_equal(trace->io_threads, LEAT_FILE_IO_THREADS);
	assert_int_equal(leat_counted(&trace->consumer->count.samples), 253);
	assert_int_equal(leat_counted(&trace->consumer->count.batches), 16);
	assert_int_equal(leat_counted(&trace->consumer->count.bytes_read), 0);
	for (unsigned i = 0; i < trace->workers; i++) {
		read += leat_counted(&trace->worker[i].count.bytes_read);
		assert_int_equal(leat_counted(&trace->worker[i].count.samples), 0);
		assert_int_equal(leat_counted(&trace->worker[i].count.read_wait_ns), 0);
	}
	for (unsigned i = 0; i < trace->io_threads; i++)
		assert_int_equal(leat_counted(&trace->io[i].count.op_ns), 0);
	assert_true(read > 0);
	leat_close(feed);
}

static void
the_stats_of_a_feed_are_the_same_as_struct_and_as_json(void **state)
{
	struct leat_feed *feed = run_to_the_end(2);
	struct leat_stats stats;
	char *text;
	json_t *object;

	(void)state;
	leat_engine_stop(feed); /* so that no worker counts between the two */
	leat_stats(feed, &stats);
	text = leat_stats_json(feed);
	object = parse(text);
	assert_int_equal(stats.samples, 253);
	assert_int_equal(stats.threads, 2);
	assert_true(stats.bytes_read > 0 && stats.first_batch_ns > 0 && stats.memory > 0);
#define SAME(name, unit, doc) assert_int_equal(json_integer_value(json_object_get(object, #name)), stats.name);
#define SAME_GAUGE(type, name, unit, doc) SAME(name, unit, doc)
	LEAT_STATS(SAME, SAME_GAUGE, IS_NAME)
	json_decref(object);
	free(text);
	leat_close(feed);
}

static void
a_caller_with_an_older_struct_gets_what_it_knows(void **state)
{
	struct leat_feed *feed = run_to_the_end(1);
	struct {
		struct first_stats stats;
		unsigned char behind[64];
	} old;

	(void)state;
	memset(&old, 0xaa, sizeof old);
	leat_stats_sized(feed, (struct leat_stats *)&old, sizeof old.stats);
	assert_int_equal(old.stats.samples, 253);
	assert_int_equal(old.stats.threads, 1);
	assert_true(strlen(old.stats.limit) > 0);
	for (size_t i = 0; i < sizeof old.behind; i++)
		assert_int_equal(old.behind[i], 0xaa);
	leat_close(feed);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_thread_has_a_lane_apart_from_the_others),
		cmocka_unit_test(lanes_without_memory_are_an_error),
		cmocka_unit_test(totals_lose_nothing_that_threads_count_at_once),
		cmocka_unit_test(the_json_of_stats_has_every_member_and_its_value),
		cmocka_unit_test(the_description_lists_every_stat_with_unit_and_meaning),
		cmocka_unit_test(threads_count_in_lanes_of_their_kind),
		cmocka_unit_test(the_stats_of_a_feed_are_the_same_as_struct_and_as_json),
		cmocka_unit_test(a_caller_with_an_older_struct_gets_what_it_knows),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
