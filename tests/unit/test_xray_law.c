/* test_xray_law.c - from figures to a limit, a sentence and remedies: planted bottlenecks are found, balanced pipelines
 * get no advice */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "xray/remedy.h"

/* decode on 2 threads gives 1,000 samples/s and uses both CPUs; everything else is faster. */
static struct leat_measures
usual(void)
{
	return (struct leat_measures){
		.cpus = 2,
		.cores = 2,
		.threads = 2,
		.storage = 4000,
		.read_bytes = 1e5,
		.now = {2, 1000, 0.002},
		.op = "decode",
		.op_share = 0.9,
		.delivery = 50000,
		.consumer = INFINITY,
		.depth = 16,
		.epoch_samples = 1e6,
	};
}

static struct leat_alternatives
usual_alternatives(void)
{
	return (struct leat_alternatives){
		.pace = {{1, 500, 0.002}, {2, 1000, 0.002}},
		.paces = 2,
		.place = {{.after = "folder", .pace = {2, 1000, 0.002}, .bytes = 1e5, .raw = true},
	                  {.after = "resize", .at = 2, .pace = {2, 20000, 0.0001}, .bytes = 1.5e5}},
		.places = 2,
		.room = 1e9,
		.samples = 1e6,
		.batch = 32,
	};
}

static struct leat_remedy found[LEAT_REMEDIES];

/* The number of remedies that help. */
static int
judge(struct leat_measures *f, const struct leat_alternatives *a, struct leat_finding *v)
{
	int count, helping = 0;

	if (f->whole == 0) {
		struct leat_case now = leat_case_now(f);

		f->whole = leat_predict(f, &now).whole;
	}
	leat_judge(f, v);
	count = leat_remedies(f, a, v, found);
	assert_in_range(count, 1, LEAT_REMEDIES);
	for (int i = 0; i < count; i++) {
		assert_int_equal(found[i].helps, i < helping + 1 && found[i].helps);
		helping += found[i].helps;
		assert_true(found[i].what[0] != '\0');
		if (!found[i].helps && found[i].why[0] == '\0')
			fail_msg("%s: no reason why it would not help", found[i].what);
	}
	memset(&found[count], 0, sizeof *found * (size_t)(LEAT_REMEDIES - count));
	return helping;
}

static const struct leat_remedy *
remedy(enum leat_remedy_kind kind)
{
	for (int i = 0; i < LEAT_REMEDIES && found[i].what[0]; i++)
		if (found[i].kind == kind)
			return &found[i];
	fail_msg("%s was not considered", leat_remedy_name(kind));
	return NULL;
}

/* ---- the law ---- */

static void
the_slowest_part_sets_the_rate(void **state)
{
	struct leat_measures f = usual();
	struct leat_case c = leat_case_now(&f);

	(void)state;
	assert_float_equal(leat_predict(&f, &c).whole, 1000, 0.1);
	c.storage = 300;
	assert_float_equal(leat_predict(&f, &c).whole, 300, 0.1);
	f.consumer = 100;
	assert_float_equal(leat_predict(&f, &c).whole, 100, 0.1);
}

/* A worker that reads does not decode meanwhile. */
static void
reading_and_ops_add_up_on_a_worker(void **state)
{
	struct leat_measures f = usual();
	struct leat_case c;

	(void)state;
	f.read_s = f.read_cpu_s = 0.002;
	c = leat_case_now(&f);
	assert_float_equal(leat_predict(&f, &c).workers, 500, 0.1);
}

static void
threads_that_wait_are_not_bounded_by_cpus_but_those_that_compute_are(void **state)
{
	struct leat_measures f = usual();
	struct leat_case c;

	(void)state;
	f.threads = 8;
	f.now = (struct leat_tempo){8, 4000, 0.0001};
	f.storage = INFINITY;
	c = leat_case_now(&f);
	assert_float_equal(leat_predict(&f, &c).workers, 4000, 1);
	assert_false(leat_predict(&f, &c).by_cpu);
	c.ops.cpu_s = 0.002;
	assert_float_equal(leat_predict(&f, &c).workers, 1000, 1);
	assert_true(leat_predict(&f, &c).by_cpu);
}

static void
a_cache_divides_samples_between_two_ways(void **state)
{
	struct leat_measures f = usual();
	struct leat_case c = leat_case_now(&f);

	(void)state;
	c.cached = 0.5;
	c.from_cache = (struct leat_tempo){2, 1e9, 0};
	assert_float_equal(leat_predict(&f, &c).whole, 2000, 1);
	assert_float_equal(leat_predict(&f, &c).storage, 8000, 1);
	c.cached = 1;
	assert_true(leat_predict(&f, &c).whole >= 49999);
}

static void
without_prefetch_loading_and_the_step_take_turns(void **state)
{
	struct leat_measures f = usual();
	struct leat_case c;

	(void)state;
	f.consumer = 1000;
	f.depth = 0;
	c = leat_case_now(&f);
	assert_float_equal(leat_predict(&f, &c).whole, 500, 0.1);
}

/* ---- planted bottlenecks ---- */

static void
a_slow_store_is_named(void **state)
{
	struct leat_measures f = usual();
	struct leat_alternatives a = usual_alternatives();
	struct leat_finding v;

	(void)state;
	f.storage = 300;
	f.remote = true;
	f.consumer = 1900;
	assert_true(judge(&f, &a, &v) > 0);
	assert_string_equal(v.limit, "network");
	assert_string_equal(v.sentence,
	                    "storage gives 300 samples/s (30.0 MB/s); decode on 2 threads could give 1,000");
	assert_false(remedy(LEAT_REMEDY_THREADS)->helps);
	f.remote = false;
	judge(&f, &a, &v);
	assert_string_equal(v.limit, "disk");
	f.warm = true; /* as the limit of a feed is called */
	judge(&f, &a, &v);
	assert_string_equal(v.limit, "read");
}

static void
a_slow_op_is_named_with_its_threads(void **state)
{
	struct leat_measures f = usual();
	struct leat_alternatives a = usual_alternatives();
	struct leat_finding v;

	(void)state;
	f.now = (struct leat_tempo){2, 610, 0.0032};
	f.consumer = 1900;
	judge(&f, &a, &v);
	assert_string_equal(v.limit, "decode");
	assert_string_equal(v.sentence, "decode on 2 threads gives 610 samples/s; your step could take 1,900");
}

static void
a_slow_consumer_leaves_nothing_to_do(void **state)
{
	struct leat_measures f = usual();
	struct leat_alternatives a = usual_alternatives();
	struct leat_finding v;

	(void)state;
	f.consumer = 435;
	assert_int_equal(judge(&f, &a, &v), 0);
	assert_string_equal(v.limit, "step");
	assert_string_equal(v.sentence, "the step is the limit; the loader could give 2.3 times as much");
}

static void
a_tiny_window_is_told_from_slow_storage(void **state)
{
	struct leat_measures f = usual();
	struct leat_alternatives a = usual_alternatives();
	struct leat_finding v;

	(void)state;
	f.storage = 100;
	f.window = 900;
	a.places = 0;
	assert_int_equal(judge(&f, &a, &v), 1);
	assert_string_equal(v.limit, "window");
	assert_true(remedy(LEAT_REMEDY_MEMORY)->helps);
	assert_float_equal(remedy(LEAT_REMEDY_MEMORY)->predicted, 900, 0.1);
	f.window = 105; /* more memory brings nothing: storage it is */
	judge(&f, &a, &v);
	assert_string_equal(v.limit, "disk");
	assert_false(remedy(LEAT_REMEDY_MEMORY)->helps);
}

static void
a_cache_that_is_too_small_is_named(void **state)
{
	struct leat_measures f = usual();
	struct leat_alternatives a = usual_alternatives();
	struct leat_finding v;

	(void)state;
	a.has_cache = true;
	f.cached = 0.3;
	f.from_cache = (struct leat_tempo){2, 20000, 0.0001};
	f.cache_all = 1e8;
	f.cache_size = 3e7;
	assert_true(judge(&f, &a, &v) >= 1);
	assert_string_equal(v.limit, "cache");
	assert_int_equal(found[0].kind, LEAT_REMEDY_CACHE_SIZE);
	assert_true(found[0].predicted > 15000);
}

static void
one_slow_object_among_many_is_told_from_slow_storage(void **state)
{
	struct leat_measures f = usual();
	struct leat_alternatives a = usual_alternatives();
	struct leat_finding v;

	(void)state;
	f.whole = 300;
	f.stalled = 0.7;
	f.slow_batches = 0.01;
	f.stall_s = 2;
	f.latency_s = 0.1;
	f.idle = 0.7;
	judge(&f, &a, &v);
	assert_string_equal(v.limit, "disk");
	assert_int_equal(v.kind, LEAT_FINDING_STALLS);
	assert_non_null(strstr(v.sentence, "few slow reads"));
	assert_non_null(strstr(v.sentence, "2.00 s"));
	f.idle = 0.1; /* it was not the reads that took so long */
	judge(&f, &a, &v);
	assert_int_equal(v.kind, LEAT_FINDING_OPS);
	f.idle = 0.7;
	f.latency_s = 0.5; /* all reads are slow: batches come in bursts */
	judge(&f, &a, &v);
	assert_int_equal(v.kind, LEAT_FINDING_OPS);
}

static void
a_quota_forbids_more_threads(void **state)
{
	struct leat_measures f = usual();
	struct leat_alternatives a = usual_alternatives();
	struct leat_finding v;

	(void)state;
	f.cpus = 1.5;
	f.quota = true;
	f.now.rate = 750;
	judge(&f, &a, &v);
	assert_string_equal(v.limit, "decode");
	assert_false(remedy(LEAT_REMEDY_THREADS)->helps);
	assert_string_equal(remedy(LEAT_REMEDY_THREADS)->why, "the quota of 1.5 CPUs is used up by 2 threads");
}

static void
a_slow_first_batch_is_named(void **state)
{
	struct leat_measures f = usual();
	struct leat_alternatives a = usual_alternatives();
	struct leat_finding v;

	(void)state;
	f.open_s = 8;
	f.epoch_samples = 2000;
	judge(&f, &a, &v);
	assert_string_equal(v.limit, "first batch");
	assert_true(remedy(LEAT_REMEDY_INDEX)->helps);
	f.epoch_samples = 1e6; /* 8 s of 17 minutes */
	judge(&f, &a, &v);
	assert_string_equal(v.limit, "decode");
}

static void
a_function_in_processes_is_named_and_gets_more_of_them(void **state)
{
	struct leat_measures f = usual();
	struct leat_alternatives a = usual_alternatives();
	struct leat_finding v;

	(void)state;
	strcpy(f.op, "map");
	f.now = (struct leat_tempo){2, 100, 0.0001};             /* the processes' CPU time is not this one's */
	a.pace[a.paces++] = (struct leat_tempo){8, 130, 0.0001}; /* the CPUs are theirs, too */
	judge(&f, &a, &v);
	assert_string_equal(v.limit, "map");
	assert_float_equal(remedy(LEAT_REMEDY_THREADS)->predicted, 130, 0.1);
}

static void
two_limits_at_once_are_both_named(void **state)
{
	struct leat_measures f = usual();
	struct leat_alternatives a = usual_alternatives();
	struct leat_finding v;

	(void)state;
	f.storage = 1050;
	a.pace[a.paces++] = (struct leat_tempo){4, 2000, 0.001};
	a.places = 0;
	assert_int_equal(judge(&f, &a, &v), 0); /* neither helps alone */
	assert_string_equal(v.limit, "decode");
	assert_string_equal(v.also, "disk");
	assert_string_equal(v.sentence, "decode on 2 threads gives 1,000 samples/s and storage 1,050: both are limits");
	assert_string_equal(remedy(LEAT_REMEDY_THREADS)->why, "storage would still give 1,050 samples/s");
}

static void
where_nothing_is_wrong_nothing_is_advised(void **state)
{
	struct leat_measures f = usual();
	struct leat_alternatives a = usual_alternatives();
	struct leat_finding v;

	(void)state;
	f.consumer = 950;
	assert_int_equal(judge(&f, &a, &v), 0);
	assert_string_equal(v.limit, "step");
	assert_string_equal(v.sentence, "the step and the loader are balanced");
}

/* ---- balanced pipelines ---- */

static void
balanced_pipelines_get_no_advice(void **state)
{
	/* Differences from the usual figures; 0: none. */
	static const struct {
		const char *what;
		double consumer, storage, rate, cpu_s, delivery, cpus;
		unsigned threads;
	} balanced[] = {
		{"step just below the loader", .consumer = 980},
		{"step far below", .consumer = 20},
		{"step and storage alike", .consumer = 290, .storage = 300},
		{"step and delivery alike", .consumer = 40000, .rate = 1e6, .cpu_s = 1e-6, .storage = 1e6,
	         .delivery = 42000},
		{"all CPUs in use"},
		{"the only CPU in use", .rate = 500, .threads = 1, .cpus = 1},
		{"storage and ops alike", .storage = 1020},
		{"a step as fast as the loader", .consumer = 1000},
		{"batches are filled as fast as they can be", .rate = 1e6, .cpu_s = 1e-6, .storage = 1e6,
	         .delivery = 30000},
		{"a slow step and slow storage", .consumer = 5, .storage = 6},
	};

	(void)state;
	for (size_t i = 0; i < sizeof balanced / sizeof *balanced; i++) {
		struct leat_measures f = usual();
		struct leat_alternatives a = usual_alternatives();
		struct leat_finding v;

#define SET(to, member)                                                                                                \
	if (balanced[i].member > 0)                                                                                    \
	(to) = balanced[i].member
		SET(f.consumer, consumer);
		SET(f.storage, storage);
		SET(f.delivery, delivery);
		SET(f.cpus, cpus);
		SET(f.threads, threads);
		SET(f.now.threads, threads);
		SET(f.now.rate, rate);
		SET(f.now.cpu_s, cpu_s);
#undef SET
		a.pace[0] = f.now;
		a.paces = 1;
		/* The first op is random, so only bytes could be cached. */
		a.place[0].pace = f.now;
		a.places = 1;
		if (judge(&f, &a, &v) > 0)
			fail_msg("%s: %s (%s)", balanced[i].what, found[0].what, v.sentence);
	}
}

/* ---- remedies ---- */

static void
the_fewest_threads_that_give_nearly_all_are_proposed(void **state)
{
	struct leat_measures f = usual();
	struct leat_alternatives a = usual_alternatives();
	struct leat_finding v;

	(void)state;
	f.cpus = f.cores = 16;
	f.storage = 3900;
	a.places = 0;
	a.paces = 3;
	a.pace[0] = (struct leat_tempo){4, 2000, 0.002};
	a.pace[1] = (struct leat_tempo){8, 4000, 0.002};
	a.pace[2] = (struct leat_tempo){16, 8000, 0.002};
	assert_int_equal(judge(&f, &a, &v), 1);
	assert_int_equal(found[0].threads, 8);
	assert_string_equal(found[0].what, "use 8 threads");
	assert_float_equal(found[0].predicted, 3900, 1);
}

static void
ops_that_wait_get_more_threads_than_cpus(void **state)
{
	struct leat_measures f = usual();
	struct leat_alternatives a = usual_alternatives();
	struct leat_finding v;

	(void)state;
	strcpy(f.op, "map");
	f.now = (struct leat_tempo){2, 100, 0.0001};
	a.pace[a.paces++] = (struct leat_tempo){8, 400, 0.0001};
	a.places = 0;
	assert_int_equal(judge(&f, &a, &v), 1);
	assert_string_equal(found[0].what, "use 8 threads, more than CPUs: map waits more than it computes");
	assert_float_equal(found[0].predicted, 400, 1);
}

static void
a_cache_is_placed_where_it_brings_most_and_fits(void **state)
{
	struct leat_measures f = usual();
	struct leat_alternatives a = usual_alternatives();
	struct leat_finding v;

	(void)state;
	a.samples = 1000; /* 150 MB after resize */
	assert_int_equal(judge(&f, &a, &v), 1);
	assert_int_equal(found[0].kind, LEAT_REMEDY_CACHE);
	assert_int_equal(found[0].place, 1);
	assert_string_equal(found[0].what, "cache after resize, in memory: 143.1 MiB");
	assert_float_equal(found[0].predicted, 20000, 1);
	a.samples = 1e6; /* 150 GB: a cache of 1 GB would hold next to nothing */
	judge(&f, &a, &v);
	assert_true(remedy(LEAT_REMEDY_CACHE)->impossible);
	assert_non_null(strstr(remedy(LEAT_REMEDY_CACHE)->why, "do not fit"));
	assert_true(remedy(LEAT_REMEDY_CONVERT)->helps);
	assert_true(remedy(LEAT_REMEDY_CONVERT)->at_most);
}

static void
fast_decoding_is_advised_where_it_is_faster(void **state)
{
	struct leat_measures f = usual();
	struct leat_alternatives a = usual_alternatives();
	struct leat_finding v;

	(void)state;
	a.places = 0;
	a.jpeg = true;
	a.fast = (struct leat_tempo){2, 2500, 0.0008};
	assert_int_equal(judge(&f, &a, &v), 1);
	assert_int_equal(found[0].kind, LEAT_REMEDY_FAST_DECODE);
	a.fast = (struct leat_tempo){2, 1010, 0.00198};
	assert_int_equal(judge(&f, &a, &v), 0);
}

static void
a_loader_that_slows_the_step_is_told_to_leave_it_cpus(void **state)
{
	struct leat_measures f = usual();
	struct leat_alternatives a = usual_alternatives();
	struct leat_finding v;

	(void)state;
	f.cpus = f.cores = 4;
	f.threads = 4;
	f.now = (struct leat_tempo){4, 4000, 0.0005};
	f.consumer = 300;
	f.step_threads = 2;
	f.step_ms = 10;
	f.step_loaded_ms = 15;
	assert_true(judge(&f, &a, &v) >= 1);
	assert_int_equal(v.kind, LEAT_FINDING_SLOWED);
	assert_string_equal(v.limit, "step");
	assert_non_null(strstr(v.sentence, "10.0 ms alone and 15.0 ms"));
	assert_int_equal(found[0].kind, LEAT_REMEDY_LEAVE_CPUS);
	assert_int_equal(found[0].threads, 2);
	assert_float_equal(found[0].now, 200, 0.1);
	assert_float_equal(found[0].predicted, 300, 0.1);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_slowest_part_sets_the_rate),
		cmocka_unit_test(reading_and_ops_add_up_on_a_worker),
		cmocka_unit_test(threads_that_wait_are_not_bounded_by_cpus_but_those_that_compute_are),
		cmocka_unit_test(a_cache_divides_samples_between_two_ways),
		cmocka_unit_test(without_prefetch_loading_and_the_step_take_turns),
		cmocka_unit_test(a_slow_store_is_named),
		cmocka_unit_test(a_slow_op_is_named_with_its_threads),
		cmocka_unit_test(a_slow_consumer_leaves_nothing_to_do),
		cmocka_unit_test(a_tiny_window_is_told_from_slow_storage),
		cmocka_unit_test(a_cache_that_is_too_small_is_named),
		cmocka_unit_test(one_slow_object_among_many_is_told_from_slow_storage),
		cmocka_unit_test(a_quota_forbids_more_threads),
		cmocka_unit_test(a_slow_first_batch_is_named),
		cmocka_unit_test(a_function_in_processes_is_named_and_gets_more_of_them),
		cmocka_unit_test(two_limits_at_once_are_both_named),
		cmocka_unit_test(where_nothing_is_wrong_nothing_is_advised),
		cmocka_unit_test(balanced_pipelines_get_no_advice),
		cmocka_unit_test(the_fewest_threads_that_give_nearly_all_are_proposed),
		cmocka_unit_test(ops_that_wait_get_more_threads_than_cpus),
		cmocka_unit_test(a_cache_is_placed_where_it_brings_most_and_fits),
		cmocka_unit_test(fast_decoding_is_advised_where_it_is_faster),
		cmocka_unit_test(a_loader_that_slows_the_step_is_told_to_leave_it_cpus),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
