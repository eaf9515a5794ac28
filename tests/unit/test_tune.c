/* test_tune.c - what the tuning decides from which figures, and that it settles on good ones in simulated pipelines */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "base/rng.h"
#include "feed/tune.h"

static const struct leat_tune_limits free_limits = {.threads = 8, .depth = 16, .first_depth = 4};

/* Takes `batches` of which `ready` are there each time, then considers: workers were busy with `busy` threads for 1 s.
 */
static bool
period(struct leat_tune *t, unsigned batches, int ready, double busy)
{
	static uint64_t now, done;
	bool fewer;

	if (!t->since_ns) {
		for (unsigned i = 0; i < LEAT_TUNE_BATCHES; i++)
			leat_tune_takes(t, ready);
		now += 1000000000;
		if (!leat_tune_is_due(t, now))
			return false;
		assert_false(leat_tune_considers(t, now, done));
	}
	for (unsigned i = 0; i < batches; i++)
		leat_tune_takes(t, ready);
	now += 1000000000;
	done += (uint64_t)(busy * 1e9);
	fewer = leat_tune_is_due(t, now) && leat_tune_considers(t, now, done);
	return fewer;
}

/* ---- single decisions ---- */

static void
what_the_user_set_stays(void **state)
{
	struct leat_tune_limits limits = free_limits;
	struct leat_tune t;
	char text[LEAT_TUNE_TEXT];

	(void)state;
	limits.threads_set = limits.depth_set = true;
	leat_tune_open(&t, &limits);
	assert_int_equal(t.threads, 8);
	assert_int_equal(t.depth, 16);
	for (int i = 0; i < 50; i++) {
		period(&t, 20, 16, 0.1);
		leat_tune_holds_back(&t);
		leat_tune_waits(&t);
	}
	assert_int_equal(t.threads, 8);
	assert_int_equal(t.depth, 16);
	assert_string_equal(leat_tune_threads_text(&t, text), "set");
	assert_string_equal(leat_tune_depth_text(&t, text), "set");
}

static void
prefetch_0_is_serial_with_all_threads(void **state)
{
	struct leat_tune_limits limits = {.threads = 8, .depth = 0, .depth_set = true};
	struct leat_tune t;

	(void)state;
	leat_tune_open(&t, &limits);
	for (int i = 0; i < 50; i++)
		period(&t, 20, 1, 0.1);
	assert_int_equal(t.threads, 8);
	assert_int_equal(t.depth, 0);
}

static void
without_tuning_all_is_used_from_the_start(void **state)
{
	struct leat_tune_limits limits = free_limits;
	struct leat_tune t;

	(void)state;
	limits.fixed = true;
	leat_tune_open(&t, &limits);
	assert_int_equal(t.depth, 16);
	for (int i = 0; i < 50; i++)
		period(&t, 20, 16, 0.1);
	assert_int_equal(t.threads, 8);
	limits.fixed = false;
	limits.fixed_depth = true;
	leat_tune_open(&t, &limits);
	assert_int_equal(t.depth, 16);
	assert_true(period(&t, 20, 16, 0.1));
}

#define LONG "tttttttttttttttttttttttttttttttttttttttt"

/* Rows: events in turn, and the depth afterwards. h: the engine is held back, w: the consumer waits, t: it takes. */
static void
depth_doubles_when_the_consumer_waits_soon_after_the_engine_paused(void **state)
{
	static const struct {
		const char *events;
		int depth;
	} rows[] = {
		{"w", 4},            /* the first batch */
		{"wtwtwtwt", 4},     /* waits, but the engine was never far enough ahead */
		{"wthththt", 4},     /* far ahead, and the consumer does not wait */
		{"wthw", 8},         /* both */
		{"wthwwww", 8},      /* one wait counts once */
		{"wthwtwtw", 8},     /* held back once */
		{"wthwthw", 16},     /* twice */
		{"wthwthwthw", 16},  /* not beyond what is reserved */
		{"wth" LONG "w", 4}, /* too long ago to matter */
		{"wthttttttttttttttttw", 8},
	};

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct leat_tune t;

		leat_tune_open(&t, &free_limits);
		for (const char *e = rows[i].events; *e; e++) {
			if (*e == 'h')
				leat_tune_holds_back(&t);
			else if (*e == 'w')
				leat_tune_waits(&t);
			else
				leat_tune_takes(&t, 4);
		}
		if (t.depth != rows[i].depth)
			fail_msg("%s: depth %d, not %d", rows[i].events, t.depth, rows[i].depth);
	}
}

static void
threads_beyond_those_needed_sleep(void **state)
{
	static const struct {
		double busy;
		int ready;
		unsigned threads;
	} rows[] = {
		{0.0, 4, 1}, {0.5, 4, 1}, {1.0, 4, 2}, {1.9, 4, 3}, {3.0, 4, 5},
		{5.0, 4, 8}, {8.0, 4, 8}, {0.5, 2, 1}, {0.5, 1, 8}, /* the batches ahead did not stay there */
	};
	char text[LEAT_TUNE_TEXT];

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct leat_tune t;

		leat_tune_open(&t, &free_limits);
		assert_int_equal(period(&t, 20, rows[i].ready, rows[i].busy), rows[i].threads < 8);
		if (t.threads != rows[i].threads)
			fail_msg("%.1f busy: %u threads, not %u", rows[i].busy, t.threads, rows[i].threads);
		if (i == 3)
			assert_string_equal(leat_tune_threads_text(&t, text),
			                    "1.9 of 8 are busy on average, and the consumer does not wait");
	}
}

static void
a_wait_or_few_batches_ahead_bring_all_threads_back(void **state)
{
	struct leat_tune t;
	char text[LEAT_TUNE_TEXT];

	(void)state;
	leat_tune_open(&t, &free_limits);
	assert_true(period(&t, 20, 4, 0.5));
	assert_int_equal(t.threads, 1);
	assert_true(leat_tune_waits(&t));
	assert_int_equal(t.threads, 8);
	assert_string_equal(leat_tune_threads_text(&t, text), "with 1 the consumer waited");
	/* Not at once again, and not as few again. */
	for (int i = 0; i < 4; i++)
		assert_false(period(&t, 20, 4, 0.5));
	assert_true(period(&t, 20, 4, 0.5));
	assert_int_equal(t.threads, 2);
	assert_true(leat_tune_takes(&t, 1));
	assert_int_equal(t.threads, 8);
	assert_string_equal(leat_tune_threads_text(&t, text), "with 2 the batches ahead became few");
	for (int i = 0; i < 16; i++)
		assert_false(period(&t, 20, 4, 0.5));
	assert_true(period(&t, 20, 4, 0.5));
	assert_int_equal(t.threads, 4);
}

static void
a_wait_in_the_period_keeps_the_threads(void **state)
{
	struct leat_tune t;

	(void)state;
	leat_tune_open(&t, &free_limits);
	period(&t, 0, 4, 0);
	leat_tune_takes(&t, 4);
	leat_tune_waits(&t);
	assert_false(period(&t, 20, 4, 0.5));
	assert_int_equal(t.threads, 8);
	assert_true(period(&t, 20, 4, 0.5));
}

/* ---- simulated pipelines ---- */

/* A loader that makes one batch after the other with all its threads, and a consumer with a step. Times in ms. */
struct pipe {
	const char *name;
	double step, step_varies; /* the step takes from step to step + step_varies */
	double work, work_varies; /* CPU time of a batch */
	int stall_every;          /* batches; 0: never */
	double stall;             /* storage is silent so long */
	double slowed;            /* the step's speed while all threads are busy; 1: not slowed */
	unsigned threads;
};

enum { BATCHES = 3000, DEPTH = 16 };

struct outcome {
	double ms;
	unsigned late_changes; /* in the second half */
	unsigned threads;
	int depth;
};

struct sim {
	const struct pipe *pipe;
	struct leat_tune tune;
	struct leat_rng rng;
	double now, busy;
	int ready;
	unsigned made;
	bool making;
	double stall, work; /* left of the batch being made */
};

static double
drawn(struct sim *s, double least, double varies)
{
	return least + varies * (double)leat_rng_below(&s->rng, 1000) / 1000;
}

/* The loader goes on for up to `ms`, or until a batch is complete with `until_ready`. Returns the time that the step
 * got done meanwhile. */
static double
advance(struct sim *s, double ms, bool until_ready)
{
	double end = s->now + ms, step = 0;

	while (s->now < end) {
		double dt = end - s->now, speed = 1;

		if (!s->making && s->ready < s->tune.depth) {
			s->making = true;
			s->made++;
			s->work = drawn(s, s->pipe->work, s->pipe->work_varies);
			s->stall = s->pipe->stall_every && s->made % (unsigned)s->pipe->stall_every == 0
			                   ? s->pipe->stall
			                   : 0;
		}
		if (!s->making)
			leat_tune_holds_back(&s->tune);
		if (s->making && s->stall > 0) {
			dt = s->stall < dt ? s->stall : dt;
			s->stall -= dt;
		} else if (s->making) {
			double left = s->work / s->tune.threads;

			dt = left < dt ? left : dt;
			s->work -= dt * s->tune.threads;
			s->busy += dt * s->tune.threads;
			speed = s->tune.threads == s->pipe->threads ? s->pipe->slowed : 1;
		}
		s->now += dt;
		step += dt * speed;
		if (s->making && s->stall <= 0 && s->work <= 1e-9) {
			s->making = false;
			s->ready++;
			if (until_ready)
				return step;
		}
	}
	return step;
}

static struct outcome
simulate(const struct pipe *pipe, const struct leat_tune_limits *limits)
{
	struct sim s = {.pipe = pipe};
	struct outcome o = {0};

	leat_rng_init(&s.rng, 1, 2, 3, 4);
	leat_tune_open(&s.tune, limits);
	for (int i = 0; i < BATCHES; i++) {
		unsigned threads = s.tune.threads;
		int depth = s.tune.depth;
		double left;

		while (s.ready == 0) {
			leat_tune_waits(&s.tune);
			advance(&s, 1e9, true);
		}
		leat_tune_takes(&s.tune, s.ready);
		if (leat_tune_is_due(&s.tune, (uint64_t)(s.now * 1e6)))
			leat_tune_considers(&s.tune, (uint64_t)(s.now * 1e6), (uint64_t)(s.busy * 1e6));
		s.ready--;
		for (left = drawn(&s, pipe->step, pipe->step_varies); left > 1e-6;)
			left -= advance(&s, left, false);
		o.late_changes += i >= BATCHES / 2 && (s.tune.threads != threads || s.tune.depth != depth);
	}
	o.ms = s.now;
	o.threads = s.tune.threads;
	o.depth = s.tune.depth;
	return o;
}

static double
best_fixed(const struct pipe *pipe)
{
	double best = 1e300;

	for (unsigned threads = 1; threads <= pipe->threads; threads++)
		for (int depth = 1; depth <= DEPTH; depth *= 2) {
			struct leat_tune_limits fixed = {.threads = threads, .depth = depth, .fixed = true};
			struct outcome o = simulate(pipe, &fixed);

			best = o.ms < best ? o.ms : best;
		}
	return best;
}

static const struct pipe pipes[] = {
	{"the step is the limit", 20, 0, 10, 0, 0, 0, 1, 8},
	{"the step is the limit by far", 100, 10, 5, 5, 0, 0, 1, 16},
	{"the step needs the CPUs", 20, 0, 30, 0, 0, 0, 0.7, 8},
	{"the loader is the limit", 1, 0, 40, 0, 0, 0, 1, 8},
	{"the loader is the limit, and varies", 1, 1, 20, 40, 0, 0, 1, 4},
	{"balanced", 10, 0, 80, 0, 0, 0, 1, 8},
	{"balanced, and both vary", 5, 10, 40, 80, 0, 0, 1, 8},
	{"storage stalls now and then", 10, 0, 20, 0, 100, 60, 1, 8},
	{"storage stalls often", 10, 2, 20, 10, 10, 35, 1, 8},
	{"a single thread", 10, 0, 8, 2, 0, 0, 1, 1},
	{"tiny batches", 0.01, 0.01, 0.02, 0.04, 0, 0, 1, 8},
	{"nearly all threads are needed", 10, 0, 60, 10, 0, 0, 1, 8},
};

static void
simulated_pipelines_settle_within_5_percent_of_the_best_fixed_figures(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof pipes / sizeof *pipes; i++) {
		struct leat_tune_limits limits = {.threads = pipes[i].threads, .depth = DEPTH, .first_depth = 4};
		struct leat_tune_limits as_before = {.threads = pipes[i].threads, .depth = DEPTH, .fixed = true};
		struct outcome o = simulate(&pipes[i], &limits), before = simulate(&pipes[i], &as_before);
		double best = best_fixed(&pipes[i]);

		printf("%-40s %8.0f ms, best %8.0f, all %8.0f; %2u of %2u threads, %2d ahead, %u late changes\n",
		       pipes[i].name, o.ms, best, before.ms, o.threads, pipes[i].threads, o.depth, o.late_changes);
		if (o.ms > 1.05 * best)
			fail_msg("%s: %.0f ms, the best is %.0f", pipes[i].name, o.ms, best);
		if (o.ms > 1.01 * before.ms)
			fail_msg("%s: %.0f ms, with everything %.0f", pipes[i].name, o.ms, before.ms);
		if (o.late_changes > 2)
			fail_msg("%s: %u changes in the second half", pipes[i].name, o.late_changes);
	}
}

/* Less is used where less suffices. */
static void
a_slow_step_needs_few_threads_and_batches(void **state)
{
	struct leat_tune_limits limits = {.threads = 16, .depth = DEPTH, .first_depth = 4};
	struct outcome o = simulate(&pipes[1], &limits);

	(void)state;
	assert_int_equal(o.threads, 1);
	assert_int_equal(o.depth, 4);
	o = simulate(&pipes[0], &limits);
	assert_int_equal(o.threads, 1);
	assert_int_equal(o.depth, 4);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_the_user_set_stays),
		cmocka_unit_test(prefetch_0_is_serial_with_all_threads),
		cmocka_unit_test(without_tuning_all_is_used_from_the_start),
		cmocka_unit_test(depth_doubles_when_the_consumer_waits_soon_after_the_engine_paused),
		cmocka_unit_test(threads_beyond_those_needed_sleep),
		cmocka_unit_test(a_wait_or_few_batches_ahead_bring_all_threads_back),
		cmocka_unit_test(a_wait_in_the_period_keeps_the_threads),
		cmocka_unit_test(simulated_pipelines_settle_within_5_percent_of_the_best_fixed_figures),
		cmocka_unit_test(a_slow_step_needs_few_threads_and_batches),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
