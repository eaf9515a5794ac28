/* test_limit.c - what limits a run, and the sentence that says what to try */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "trace/limit.h"

static struct leat_stage_figures *
add(struct leat_stage_list *list, enum leat_stage_kind kind, const char *name, double busy_s)
{
	struct leat_stage_figures *stage = &list->one[list->count++];

	*stage = (struct leat_stage_figures){.kind = kind,
	                                     .op = kind == LEAT_STAGE_OPS ? name : NULL,
	                                     .tag = "",
	                                     .waits_for = "",
	                                     .threads = list->threads,
	                                     .busy_s = busy_s,
	                                     .items = 1000};
	snprintf(stage->name, sizeof stage->name, "%s", name);
	return stage;
}

enum { READ, UNPACK, DECODE, FLIP, COLLATE };

/* Two threads decode 1000 samples in a second of which the consumer waits `wait_s`; nothing else takes long. */
static struct leat_stage_list
decoding(double wait_s, double run_s)
{
	struct leat_stage_list list = {.threads = 2, .cpus = 8, .cpus_used = 2, .ahead = true, .samples = 1000};

	add(&list, LEAT_STAGE_READ, "read", 0.02);
	add(&list, LEAT_STAGE_UNPACK, "unpack", 0.02);
	add(&list, LEAT_STAGE_OPS, "decode", 1.8)->decodes = true;
	add(&list, LEAT_STAGE_OPS, "flip", 0.1)->random = true;
	add(&list, LEAT_STAGE_COLLATE, "collate", 0.02);
	list.wait_s = wait_s;
	list.run_s = run_s;
	list.work_s = 1.96;
	list.idle_s = 0.04;
	list.running_s = wait_s + run_s;
	list.samples_per_s = 1000 / (wait_s + run_s);
	list.mb_read_per_s = 80;
	return list;
}

static void
expect(struct leat_stage_list *list, const char *name, const char *sentence)
{
	struct leat_limit limit;

	leat_stages_relate(list, list->idle_s, 0);
	leat_limit_find(list, &limit);
	assert_string_equal(limit.name, name);
	assert_string_equal(limit.sentence, sentence);
}

/* ---- which one it is ---- */

static void
a_consumer_that_rarely_waits_sets_the_pace(void **state)
{
	struct leat_stage_list list = decoding(0.04, 0.96);

	(void)state;
	list.one[DECODE].busy_s = 0.7;
	expect(&list, "step", "the step is the limit; the loader could give 2.3 times as much.");
	list.wait_s = 0.06;
	list.run_s = 0.94;
	list.one[DECODE].busy_s = 1.8;
	expect(&list, "decode",
	       "decode on 2 threads gives 1,000 samples/s; the step could take 1,064. Try more threads (up to 8), a "
	       "cache after decode or decode(fast=true).");
}

static void
a_loader_that_is_just_as_fast_is_not_praised(void **state)
{
	struct leat_stage_list list = decoding(0.01, 0.99);

	(void)state;
	expect(&list, "step", "the step is the limit; the loader could give hardly more.");
	list.one[DECODE].busy_s = 0.1;
	add(&list, LEAT_STAGE_STORAGE, "network", 0.9)->threads = 1;
	list.one[list.count - 1].blocked_s = 0.1;
	list.remote = true;
	expect(&list, "step", "the step is the limit; the loader keeps up.");
}

static void
a_loop_without_a_step_is_not_called_one(void **state)
{
	struct leat_stage_list list = decoding(0.04, 0.96);

	(void)state;
	list.stepless = true;
	list.one[DECODE].busy_s = 0.04;
	expect(&list, "step", "taking the batches is the limit; the loader could give 10 times as much.");
	list.wait_s = 0.9;
	list.run_s = 0.1;
	list.one[DECODE].busy_s = 1.8;
	expect(&list, "decode",
	       "decode on 2 threads gives 1,000 samples/s. Try more threads (up to 8), a cache after decode or "
	       "decode(fast=true).");
}

static void
nothing_is_said_before_there_is_anything(void **state)
{
	struct leat_stage_list list = {.threads = 2, .cpus = 2, .ahead = true};

	(void)state;
	expect(&list, "step", "nothing was delivered yet.");
}

static void
a_feed_that_makes_nothing_ahead_lacks_prefetch(void **state)
{
	struct leat_stage_list list = decoding(0.5, 0.5);

	(void)state;
	list.ahead = false;
	list.one[DECODE].busy_s = 0.84;
	expect(&list, "prefetch",
	       "no batch is made ahead, so making batches and using them take turns; the loader could give 2.0 times "
	       "as "
	       "much. Remove prefetch(0).");
}

static void
waiting_while_every_worker_waits_for_storage_is_the_disk(void **state)
{
	struct leat_stage_list list = decoding(0.5, 0.5);

	(void)state;
	list.disk_wait_s = 0.3;
	expect(&list, "disk",
	       "the disk gives 1,000 samples/s (80 MB/s); the step could take 2,000. Try packing small files (leat "
	       "pack), "
	       "a faster disk or a cache.");
	list.remote = true;
	expect(&list, "network",
	       "the network gives 1,000 samples/s (80 MB/s); the step could take 2,000. Try larger objects (leat "
	       "pack), a "
	       "disk cache (storage disk_cache=FOLDER) or more memory= for more requests in flight.");
	list.refused = 12;
	expect(&list, "network",
	       "the network gives 1,000 samples/s (80 MB/s); the step could take 2,000. The server refused 12 "
	       "requests. Try "
	       "larger objects (leat pack), a disk cache (storage disk_cache=FOLDER) or fewer ranks on one server.");
	list.disk_wait_s = 0.2;
	list.remote = false;
	list.refused = 0;
	expect(&list, "decode",
	       "decode on 2 threads gives 1,000 samples/s; the step could take 2,000. Try more threads (up to 8), a "
	       "cache "
	       "after decode or decode(fast=true).");
}

static void
workers_idle_for_a_quarter_of_the_time_wait_for_the_network(void **state)
{
	struct leat_stage_list list = decoding(0.5, 0.5);
	struct leat_limit limit;

	(void)state;
	list.idle_s = list.work_s / 3 + 0.01;
	leat_limit_find(&list, &limit);
	assert_int_equal(limit.kind, LEAT_LIMIT_STAGE);
	list.remote = true;
	leat_limit_find(&list, &limit);
	assert_int_equal(limit.kind, LEAT_LIMIT_NETWORK);
	list.idle_s = list.work_s / 4;
	leat_limit_find(&list, &limit);
	assert_int_equal(limit.kind, LEAT_LIMIT_STAGE);
	assert_int_equal(limit.stage, DECODE);
}

static void
reading_is_it_if_it_takes_longer_than_all_ops(void **state)
{
	struct leat_stage_list list = decoding(1, 0), plain = decoding(1, 0);

	(void)state;
	list.one[UNPACK].busy_s = 1.95;
	expect(&list, "read",
	       "reading and unpacking on 2 threads gives 1,000 samples/s. Try more threads (up to 8) or data in its "
	       "final "
	       "form (leat convert).");
	for (int i = 0; i < plain.count; i++)
		if (plain.one[i].kind == LEAT_STAGE_OPS)
			plain.one[i--] = plain.one[--plain.count];
	plain.cpus = 2;
	plain.cpus_used = 1.95;
	expect(&plain, "read", "reading and unpacking on 2 threads gives 1,000 samples/s. All 2 CPUs are busy.");
}

/* ---- what to try ---- */

static void
threads_are_proposed_only_where_there_are_cpus(void **state)
{
	static const struct {
		unsigned threads;
		double cpus, used;
		const char *words;
	} cases[] = {
		{2, 8, 2.0, "Try more threads (up to 8), a cache"},
		{2, 3, 2.0, "Try more threads (up to 3), a cache"},
		{2, 2.5, 1.9, "2,000. Try a cache"},
		{2, 2, 1.9, "2,000. All 2 CPUs are busy. Try a cache"},
		{2, 1.5, 1.5, "2,000. All 1.5 CPUs are busy. Try a cache"},
		{1, 1, 1, "2,000. The CPU is busy. Try a cache"},
		{2, 8, 7.5, "2,000. All 8 CPUs are busy. Try a cache"}, /* by the step, or others in the process */
		{4, 4, 2.0, "2,000. Try a cache"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct leat_stage_list list = decoding(0.5, 0.5);
		struct leat_limit limit;

		list.threads = cases[i].threads;
		list.cpus = cases[i].cpus;
		list.cpus_used = cases[i].used;
		leat_limit_find(&list, &limit);
		if (!strstr(limit.sentence, cases[i].words))
			fail_msg("case %zu: %s", i, limit.sentence);
	}
}

static void
no_second_cache_is_proposed_and_none_of_what_is_random(void **state)
{
	struct leat_stage_list list = decoding(1, 0);

	(void)state;
	list.cpus = list.cpus_used = 2;
	list.caches = true;
	expect(&list, "decode",
	       "decode on 2 threads gives 1,000 samples/s. All 2 CPUs are busy. Try decode(fast=true) or smaller "
	       "images "
	       "(leat convert).");
	list.one[DECODE].before_cache = true;
	expect(&list, "decode",
	       "decode on 2 threads gives 1,000 samples/s. Its results are cached: later epochs need it less. All 2 "
	       "CPUs "
	       "are busy. Try decode(fast=true) or smaller images (leat convert).");
	list = decoding(1, 0);
	list.cpus = list.cpus_used = 2;
	list.one[DECODE].busy_s = 0.1;
	list.one[FLIP].busy_s = 1.8;
	expect(&list, "flip",
	       "flip on 2 threads gives 1,000 samples/s. All 2 CPUs are busy. Try cheaper options of flip (leat ops "
	       "flip).");
}

static void
functions_in_processes_get_other_advice(void **state)
{
	struct leat_stage_list list = decoding(1, 0);

	(void)state;
	snprintf(list.one[DECODE].name, sizeof list.one[DECODE].name, "map");
	list.one[DECODE].op = "map";
	list.one[DECODE].decodes = false;
	list.one[DECODE].python = true;
	list.cpus = 2;
	list.cpus_used = 0.2; /* the processes have the rest */
	expect(&list, "map",
	       "map on 2 processes gives 1,000 samples/s. Try NumPy on whole batches (map_batch), a cache after map or "
	       "an op "
	       "in its place.");
}

static void
a_stage_with_part_of_the_work_says_so(void **state)
{
	struct leat_stage_list list = decoding(1, 0);

	(void)state;
	list.one[DECODE].busy_s = 1.0;
	list.one[FLIP].busy_s = 0.9;
	list.cpus = list.cpus_used = 2;
	list.samples_per_s = 3.46;
	expect(&list, "decode",
	       "decode, 51 % of the work of 2 threads, allows 3.5 samples/s. All 2 CPUs are busy. Try a cache after "
	       "decode, "
	       "decode(fast=true) or smaller images (leat convert).");
}

/* ---- words, and relations between stages ---- */

static void
rates_are_rounded_for_people(void **state)
{
	static const struct {
		double rate;
		const char *text;
	} cases[] = {{0, "0.0"},
	             {3.46, "3.5"},
	             {9.99, "10"},
	             {61.4, "61"},
	             {999.4, "999"},
	             {999.6, "1,000"},
	             {1900.2, "1,900"},
	             {999999.7, "1,000,000"},
	             {2e7, "20,000,000"},
	             {-1, "0.0"},
	             {INFINITY, "any number of"}};
	char buf[LEAT_RATE_TEXT];

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
		assert_string_equal(leat_rate_text(buf, cases[i].rate), cases[i].text);
	assert_string_equal(leat_times_text(buf, 2.34), "2.3");
	assert_string_equal(leat_times_text(buf, 12.3), "12");
}

static void
busy_starved_and_blocked_add_up_for_every_stage_of_the_pool(void **state)
{
	struct leat_stage_list list = decoding(1, 0);
	double busy = 0;

	(void)state;
	for (int i = 0; i < list.count; i++)
		busy += list.one[i].busy_s;
	leat_stages_relate(&list, 0.3, 0.2);
	for (int i = 0; i < list.count; i++) {
		const struct leat_stage_figures *s = &list.one[i];

		assert_true(s->busy_s + s->starved_s + s->blocked_s > busy + 0.5 - 1e-9);
		assert_true(s->busy_s + s->starved_s + s->blocked_s < busy + 0.5 + 1e-9);
		assert_true(s->rate_alone > 1000 * 2 / s->busy_s - 1e-6 && s->rate_alone < 1000 * 2 / s->busy_s + 1e-6);
	}
	assert_string_equal(list.one[READ].waits_for, "decode");
	assert_string_equal(list.one[COLLATE].waits_for, "decode");
	assert_string_equal(list.one[DECODE].waits_for,
	                    "data"); /* idle for want of data, more than for anything else */
	leat_stages_relate(&list, 0.1, 0.2);
	assert_string_equal(list.one[DECODE].waits_for, "step");
	assert_true(list.one[READ].starved_s > 0.09 && list.one[READ].starved_s < 0.11);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_consumer_that_rarely_waits_sets_the_pace),
		cmocka_unit_test(a_loader_that_is_just_as_fast_is_not_praised),
		cmocka_unit_test(a_loop_without_a_step_is_not_called_one),
		cmocka_unit_test(nothing_is_said_before_there_is_anything),
		cmocka_unit_test(a_feed_that_makes_nothing_ahead_lacks_prefetch),
		cmocka_unit_test(waiting_while_every_worker_waits_for_storage_is_the_disk),
		cmocka_unit_test(workers_idle_for_a_quarter_of_the_time_wait_for_the_network),
		cmocka_unit_test(reading_is_it_if_it_takes_longer_than_all_ops),
		cmocka_unit_test(threads_are_proposed_only_where_there_are_cpus),
		cmocka_unit_test(no_second_cache_is_proposed_and_none_of_what_is_random),
		cmocka_unit_test(functions_in_processes_get_other_advice),
		cmocka_unit_test(a_stage_with_part_of_the_work_says_so),
		cmocka_unit_test(rates_are_rounded_for_people),
		cmocka_unit_test(busy_starved_and_blocked_add_up_for_every_stage_of_the_pool),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
