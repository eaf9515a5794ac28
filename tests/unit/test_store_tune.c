/* test_store_tune.c - threads and batches ahead that change while a feed runs change nothing that it delivers */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "feed/feed.h"
#include "support/data.h"
#include "support/store_mem.h"
#include "support/trace.h"

enum { ROUNDS = TEST_SLOW ? 3 : 12, THREADS = 6 };

static const size_t counts[] = {90, 3, 107};
static struct data data;

DATA_FIXTURE(NULL)

static const char *const rests[] = {
	"shuffle | example(image=bytes, label=int64) | decode | resize(24, 24) | random_flip | batch(7)",
	"batch(3)",
	"example(image=bytes, tokens=int64[]) | cache(memory) | shuffle(window=9) | batch(11)",
	"shuffle(block=8, window=2) | example(label=int64) | batch(1)",
	"example(image=bytes) | decode | batch(16) | prefetch(2)",
	"example(label=int64) | batch(5) | prefetch(0)",
};

/* ---- set points that change at random ---- */

struct setter {
	struct leat_feed *feed;
	atomic_bool stop;
	pthread_t thread;
	uint64_t seed;
};

static void *
set_at_random(void *arg)
{
	struct setter *s = arg;
	struct leat_rng rng;

	leat_rng_init(&rng, s->seed, 0, 0, 0);
	while (!atomic_load(&s->stop)) {
		leat_tuning_set(s->feed, 1 + (unsigned)leat_rng_below(&rng, THREADS),
		                1 + (int)leat_rng_below(&rng, LEAT_MAX_PREFETCH));
		sched_yield();
	}
	return NULL;
}

static void
begin_setting(struct setter *s, struct leat_feed *feed, uint64_t seed)
{
	s->feed = feed;
	s->seed = seed;
	atomic_store(&s->stop, false);
	assert_int_equal(pthread_create(&s->thread, NULL, set_at_random, s), 0);
}

static void
end_setting(struct setter *s)
{
	atomic_store(&s->stop, true);
	pthread_join(s->thread, NULL);
}

/* Runs `spec` with set points that change, in two parts with a seek between them that drops what is under way. */
static void
check_under_changes(const char *spec, const struct trace *expected, const struct leat_options *options, uint64_t seed)
{
	struct leat_feed *feed = trace_open(spec, options);
	struct trace first = {0}, rest = {0};
	struct setter setter;
	struct leat_err err;
	char *json;

	begin_setting(&setter, feed, seed);
	trace_take(&first, feed, 1 + seed % 9);
	assert_int_equal(leat_save(feed, &json, &err), LEAT_OK);
	trace_take(&rest, feed, 3);
	trace_free(&rest);
	memset(&rest, 0, sizeof rest);
	assert_int_equal(leat_restore(feed, json, &err), LEAT_OK);
	free(json);
	trace_take(&rest, feed, 0);
	end_setting(&setter);
	leat_close(feed);
	assert_int_equal(rest.status, LEAT_DONE);
	trace_append(&first, &rest);
	trace_compare_samples(expected, &first, spec);
	trace_free(&first);
	trace_free(&rest);
}

static void
figures_that_change_at_random_change_no_sample(void **state)
{
	struct leat_options options;
	char spec[600];

	(void)state;
	trace_options(&options);
	options.epochs = 2;
	for (size_t i = 0; i < sizeof rests / sizeof *rests; i++) {
		struct trace expected;

		snprintf(spec, sizeof spec, "%s | %s", data_source(&data), rests[i]);
		options.threads = 1;
		trace_run(&expected, spec, &options);
		options.threads = THREADS;
		for (uint64_t round = 0; round < ROUNDS; round++)
			check_under_changes(spec, &expected, &options, round);
		trace_free(&expected);
	}
}

/* The same from a store whose reads end in any order, on its own threads. */
static void
figures_that_change_at_random_change_no_sample_read_from_afar(void **state)
{
	struct leat_options options;
	char here[600], there[600];

	(void)state;
	trace_options(&options);
	options.epochs = 2;
	store_mem_reset();
	store_mem_mirror(data.folder);
	for (size_t i = 0; i < sizeof rests / sizeof *rests; i++) {
		struct trace expected;

		snprintf(here, sizeof here, "%s | %s", data_source(&data), rests[i]);
		store_mem_spec(data.folder, here, there, sizeof there);
		store_mem_set(&(struct store_mem_settings){.shuffle = 1 + i});
		options.threads = 1;
		trace_run(&expected, there, &options);
		options.threads = THREADS;
		for (uint64_t round = 0; round < ROUNDS; round++)
			check_under_changes(there, &expected, &options, round);
		trace_free(&expected);
	}
	store_mem_reset();
}

static void
a_feed_closes_whatever_sleeps(void **state)
{
	struct leat_options options;
	char spec[600];

	(void)state;
	trace_options(&options);
	options.threads = THREADS;
	for (uint64_t round = 0; round < 10 * ROUNDS; round++) {
		struct leat_feed *feed;
		struct trace trace = {0};

		snprintf(spec, sizeof spec, "%s | %s", data_source(&data),
		         rests[round % (sizeof rests / sizeof *rests)]);
		feed = trace_open(spec, &options);
		leat_tuning_set(feed, 1 + (unsigned)round % 3, 1 + (int)round % 5);
		trace_take(&trace, feed, round % 4);
		leat_tuning_set(feed, 1 + (unsigned)round % 5, 1);
		leat_close(feed);
		trace_free(&trace);
	}
}

/* ---- a feed tunes itself ---- */

static void
sleep_ms(long ms)
{
	struct timespec t = {0, ms * 1000000};

	nanosleep(&t, NULL);
}

static struct leat_tuning_choice
choice(const struct leat_feed *feed, const char *what)
{
	struct leat_tuning_choice all[LEAT_TUNING_CHOICES];
	int count = leat_tuning_list(feed, all);

	for (int i = 0; i < count; i++)
		if (strcmp(all[i].what, what) == 0) {
			assert_true(*all[i].why);
			return all[i];
		}
	fail_msg("nothing is said of %s", what);
	return all[0];
}

/* However busy the machine is, workers of a pipeline with hardly anything to do are idle while the consumer sleeps. */
static void
a_slow_consumer_lets_threads_sleep_and_gets_the_same(void **state)
{
	struct leat_options options;
	struct leat_batch *batch;
	struct leat_feed *feed;
	struct leat_err err;
	char spec[600];
	unsigned least = THREADS;

	(void)state;
	trace_options(&options);
	options.threads = THREADS;
	snprintf(spec, sizeof spec, "%s | example(label=int64) | batch(4)", data_source(&data));
	feed = trace_open(spec, &options);
	feed->tune.tunes_threads = true; /* as if threads were the default, which depends on the machine */
	for (int i = 0; i < 5000 && least == THREADS; i++) {
		enum leat_status status = leat_next(feed, &batch, &err);

		if (status == LEAT_END)
			continue;
		assert_int_equal(status, LEAT_OK);
		sleep_ms(4);
		leat_release(batch);
		least = feed->tune.threads < least ? feed->tune.threads : least;
	}
	assert_true(least < THREADS);
	assert_int_equal(choice(feed, "threads").value, feed->tune.threads);
	assert_int_equal(choice(feed, "prefetch").value, feed->tune.depth);
	assert_int_equal(choice(feed, "window").value, feed->budget.window);
	assert_false(choice(feed, "prefetch").set);
	leat_close(feed);
}

static void
few_batches_are_made_ahead_at_first(void **state)
{
	struct leat_options options;
	struct leat_batch *batch;
	struct leat_feed *feed;
	struct leat_err err;
	char spec[600];

	(void)state;
	trace_options(&options);
	options.threads = 1;
	snprintf(spec, sizeof spec, "%s | example(label=int64) | batch(64)", data_source(&data));
	feed = trace_open(spec, &options);
	assert_int_equal(leat_next(feed, &batch, &err), LEAT_OK);
	sleep_ms(50);
	pthread_mutex_lock(&feed->lock);
	assert_int_equal(feed->budget.depth, LEAT_MAX_PREFETCH);
	assert_true(feed->flight_count <= LEAT_TUNE_DEPTH);
	pthread_mutex_unlock(&feed->lock);
	leat_release(batch);
	leat_close(feed);
	/* More of small ones: there have to be reads for a cold disk. */
	snprintf(spec, sizeof spec, "%s | example(label=int64) | batch(2)", data_source(&data));
	feed = trace_open(spec, &options);
	assert_int_equal(feed->tune.depth, LEAT_MAX_PREFETCH);
	leat_close(feed);
	/* All, if it is not tuned. */
	snprintf(spec, sizeof spec, "%s | example(label=int64) | batch(64)", data_source(&data));
	options.tune = false;
	feed = trace_open(spec, &options);
	assert_int_equal(feed->tune.depth, LEAT_MAX_PREFETCH);
	leat_close(feed);
}

static void
a_given_prefetch_is_kept(void **state)
{
	static const int depths[] = {0, 1, 3, 9};
	struct leat_options options;
	char spec[600];

	(void)state;
	trace_options(&options);
	options.threads = 2;
	for (size_t i = 0; i < sizeof depths / sizeof *depths; i++) {
		struct leat_feed *feed;

		snprintf(spec, sizeof spec, "%s | batch(4) | prefetch(%d)", data_source(&data), depths[i]);
		feed = trace_open(spec, &options);
		assert_int_equal(choice(feed, "prefetch").value, depths[i]);
		assert_true(choice(feed, "prefetch").set);
		assert_true(choice(feed, "threads").set);
		assert_int_equal(feed->tune.depth, depths[i]);
		leat_close(feed);
	}
}

static int
complete(struct leat_feed *feed)
{
	int count;

	pthread_mutex_lock(&feed->lock);
	count = feed->complete;
	pthread_mutex_unlock(&feed->lock);
	return count;
}

/* Fails if the workers do not get there by themselves. */
static void
wait_for_batches(struct leat_feed *feed, int count)
{
	for (int i = 0; i < 10000 && complete(feed) < count; i++)
		nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
	assert_true(complete(feed) >= count);
}

/* There are more buffers than batches ahead: to take one makes room, though it is not released yet. */
static void
a_batch_that_is_taken_is_made_up_for_at_once(void **state)
{
	struct leat_options options;
	struct leat_batch *batch;
	struct leat_feed *feed;
	char spec[600];

	(void)state;
	trace_options(&options);
	options.threads = 2;
	options.tune = false;
	snprintf(spec, sizeof spec, "%s | example(label=int64) | batch(5) | prefetch(8)", data_source(&data));
	feed = trace_open(spec, &options);
	leat_tuning_set(feed, 2, 2);
	assert_int_equal(leat_next(feed, &batch, NULL), LEAT_OK);
	leat_release(batch);
	wait_for_batches(feed, 2);
	while (complete(feed) > 2) { /* made before the number was set */
		assert_int_equal(leat_next(feed, &batch, NULL), LEAT_OK);
		leat_release(batch);
	}
	nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL); /* the workers fall asleep */
	assert_int_equal(leat_next(feed, &batch, NULL), LEAT_OK);
	wait_for_batches(feed, 2);
	leat_release(batch);
	leat_close(feed);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_batch_that_is_taken_is_made_up_for_at_once),
		cmocka_unit_test(figures_that_change_at_random_change_no_sample),
		cmocka_unit_test(figures_that_change_at_random_change_no_sample_read_from_afar),
		cmocka_unit_test(a_feed_closes_whatever_sleeps),
		cmocka_unit_test(a_slow_consumer_lets_threads_sleep_and_gets_the_same),
		cmocka_unit_test(few_batches_are_made_ahead_at_first),
		cmocka_unit_test(a_given_prefetch_is_kept),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
