/* test_wire_pace.c - the window of requests in flight, against simulated servers in simulated time */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "store/wire_pace.h"

enum { MOST = 1024 };

static const uint64_t ms = 1000000, second = 1000000000;

/* A server, and a client that wants `demand` requests per second (0: as many as it can). */
struct sim {
	/* The server: */
	double latency_ms, jitter; /* of an answer, if there is no queue; the share of it that is random */
	double rate;               /* requests per second, served one after the other; 0: any number */
	double knee, slope;        /* from `knee` requests on, the rate falls as (knee / requests) ^ slope */
	double limit;              /* requests per second, others get 503 at once; 0: none */
	unsigned crowd;            /* requests at a time, others get 503 at once; 0: any number */
	uint64_t bad_from, bad_to; /* answers 503 to all then */
	bool gone;                 /* then no connection can be made, instead */
	/* The client: */
	double demand;
	unsigned wants; /* requests at a time; 0: any number */
	unsigned fixed; /* window; 0: adaptive */
	unsigned cap;

	/* Results: */
	uint64_t requests, answers, refused, most;

	struct leat_pace pace;
	uint64_t now, random, free_ns, tokens_ns, asked_ns;
	double tokens;
	unsigned flight, queue;
	struct {
		uint64_t begin, end;
		enum leat_pace_result result;
	} open[MOST];
};

static double
random_share(struct sim *s)
{
	s->random = s->random * 6364136223846793005u + 1442695040888963407u;
	return (double)(s->random >> 40) / (1 << 24);
}

/* ---- the server ---- */

static bool
is_bad(const struct sim *s)
{
	return s->now >= s->bad_from && s->now < s->bad_to;
}

static bool
is_refused(struct sim *s)
{
	if (is_bad(s) || (s->crowd && s->flight >= s->crowd))
		return true;
	if (s->limit <= 0)
		return false;
	s->tokens += (double)(s->now - s->tokens_ns) / 1e9 * s->limit;
	s->tokens = s->tokens > s->limit / 20 + 1 ? s->limit / 20 + 1 : s->tokens;
	s->tokens_ns = s->now;
	if (s->tokens < 1)
		return true;
	s->tokens -= 1;
	return false;
}

static double
power(double x, double y) /* for y in quarters */
{
	double result = 1, root = x;

	for (; y >= 1; y--)
		result *= x;
	for (int i = 0; i < 40; i++)
		root = (root + x / root) / 2;
	for (; y >= 0.5; y -= 0.5)
		result *= root;
	return result;
}

static uint64_t
time_of_answer(struct sim *s)
{
	double latency = s->latency_ms * (1 - s->jitter + 2 * s->jitter * random_share(s)), over;

	if (s->knee > 0 && s->flight + 1 > s->knee) {
		over = (s->flight + 1) / s->knee;
		latency *= over * power(over, s->slope);
	}
	if (s->rate > 0) {
		s->free_ns = (s->free_ns > s->now ? s->free_ns : s->now) + (uint64_t)(1e9 / s->rate);
		return s->free_ns + (uint64_t)(latency * 1e6);
	}
	return s->now + (uint64_t)(latency * 1e6);
}

static void
begin_request(struct sim *s)
{
	bool refused = is_refused(s);

	assert_true(s->flight < MOST);
	s->open[s->flight].begin = s->now;
	s->open[s->flight].result = refused ? LEAT_PACE_THROTTLED : LEAT_PACE_ANSWERED;
	s->open[s->flight].end = refused ? s->now + ms : time_of_answer(s);
	s->flight++;
	s->requests++;
	s->most = s->flight > s->most ? s->flight : s->most;
	leat_pace_begin(&s->pace, s->now);
}

/* ---- the client ---- */

static bool
may_begin(struct sim *s)
{
	if (s->fixed)
		return s->flight < s->fixed;
	if (s->gone && is_bad(s)) {
		if (leat_pace_may_probe(&s->pace, s->now)) {
			leat_pace_probe(&s->pace, s->now);
			leat_pace_unreachable(&s->pace, s->now);
		}
		return false;
	}
	return leat_pace_may_begin(&s->pace, s->now);
}

static void
ask(struct sim *s)
{
	if (s->demand <= 0)
		s->queue = s->wants ? s->wants - (s->flight < s->wants ? s->flight : s->wants) : 1000;
	for (; s->demand > 0 && s->asked_ns <= s->now; s->asked_ns += (uint64_t)(1e9 / s->demand))
		s->queue += s->queue < 1000;
	while (s->queue && may_begin(s)) {
		s->queue--;
		begin_request(s);
	}
}

static void
end_request(struct sim *s, unsigned i)
{
	enum leat_pace_result result = s->open[i].result;
	uint64_t took = s->open[i].end - s->open[i].begin;

	s->open[i] = s->open[--s->flight];
	s->answers += result == LEAT_PACE_ANSWERED;
	s->refused += result == LEAT_PACE_THROTTLED;
	s->queue += result == LEAT_PACE_THROTTLED;
	leat_pace_end(&s->pace, result, took, 75000, s->now);
}

/* Runs for a time, and returns the answers per second. */
static double
run(struct sim *s, double seconds)
{
	uint64_t end = s->now + (uint64_t)(seconds * 1e9), before = s->answers;

	while (s->now < end) {
		uint64_t next = end, due;
		unsigned first = MOST;

		ask(s);
		for (unsigned i = 0; i < s->flight; i++)
			if (s->open[i].end < next) {
				next = s->open[i].end;
				first = i;
			}
		due = s->queue ? leat_pace_due(&s->pace, s->now) : UINT64_MAX;
		if (due <= s->now) /* not a matter of the window: a connection is probed for later */
			due = s->now + ms;
		if (s->demand > 0 && s->asked_ns < due)
			due = s->asked_ns;
		if (due < next) {
			s->now = due;
			continue;
		}
		s->now = next;
		if (first < MOST)
			end_request(s, first);
	}
	return (double)(s->answers - before) / seconds;
}

static void
begin(struct sim *s)
{
	if (!s->cap)
		s->cap = 256;
	s->now = second;
	s->asked_ns = s->tokens_ns = s->now;
	s->random = 42;
	leat_pace_init(&s->pace, s->cap, s->now);
}

/* The best rate of any fixed window. */
static double
best_rate(const struct sim *server)
{
	double best = 0;

	for (unsigned window = 2; window <= (server->cap ? server->cap : 256); window += 1 + window / 8) {
		struct sim s = *server;
		double rate;

		s.fixed = window;
		begin(&s);
		run(&s, 2);
		rate = run(&s, 5);
		best = rate > best ? rate : best;
	}
	return best;
}

static void
finds(const char *name, struct sim server, double share)
{
	double best = best_rate(&server), soon, later;

	begin(&server);
	run(&server, 2);
	soon = run(&server, 4);
	run(&server, 4);
	later = run(&server, 20);
	printf("%-40s best %7.1f/s, after 2 s %.3f, then %.3f, window %u\n", name, best, soon / best, later / best,
	       server.pace.window);
	assert_true(later >= share * best);
	assert_true(server.most <= server.cap);
}

/* ---- the knee ---- */

static void
latency_is_hidden_up_to_the_cap(void **state)
{
	(void)state;
	finds("100 ms", (struct sim){.latency_ms = 100, .jitter = 0.3}, 0.95);
	finds("10 ms", (struct sim){.latency_ms = 10, .jitter = 0.3}, 0.95);
	finds("200 ms, up to 1000 in flight", (struct sim){.latency_ms = 200, .jitter = 0.3, .cap = 1000}, 0.9);
	finds("100 ms, up to 3 in flight", (struct sim){.latency_ms = 100, .jitter = 0.3, .cap = 3}, 0.95);
}

static void
a_rate_is_reached_without_a_long_queue(void **state)
{
	struct sim s = {.latency_ms = 50, .jitter = 0.3, .rate = 1000};

	(void)state;
	finds("1000/s, 50 ms", s, 0.9);
	finds("5000/s, 200 ms, up to 1000 in flight",
	      (struct sim){.latency_ms = 200, .jitter = 0.3, .rate = 4000, .cap = 1000}, 0.9);
	finds("2000/s, 1 ms", (struct sim){.latency_ms = 1, .jitter = 0.5, .rate = 2000}, 0.9);
	begin(&s);
	run(&s, 30);
	assert_in_range(s.pace.window, 40, 120); /* the knee is at 50 */
}

static void
a_server_that_slows_down_gets_no_more_than_it_likes(void **state)
{
	static const double knees[] = {8, 32, 100}, slopes[] = {0, 0.5, 1};

	(void)state;
	for (size_t i = 0; i < 3; i++)
		for (size_t j = 0; j < 3; j++) {
			char name[64];

			snprintf(name, sizeof(name), "slower beyond %.0f, slope %.1f", knees[i], slopes[j]);
			finds(name, (struct sim){.latency_ms = 40, .jitter = 0.3, .knee = knees[i], .slope = slopes[j]},
			      0.9);
		}
}

static void
a_consumer_that_wants_few_is_served_well_too(void **state)
{
	(void)state;
	finds("32 wanted, slower beyond 16",
	      (struct sim){.latency_ms = 40, .jitter = 0.3, .knee = 16, .slope = 1, .wants = 32}, 0.9);
	finds("40 wanted, 100 ms", (struct sim){.latency_ms = 100, .jitter = 0.3, .wants = 40}, 0.95);
	finds("200 wanted, 100 ms", (struct sim){.latency_ms = 100, .jitter = 0.3, .wants = 200}, 0.95);
	finds("33 wanted, 100 ms", (struct sim){.latency_ms = 100, .jitter = 0.3, .wants = 33}, 0.95);
}

/* The knee moves while we are there. */
static void
a_knee_that_moves_is_followed(void **state)
{
	static const double knees[] = {100, 20, 100};
	struct sim s = {.latency_ms = 40, .jitter = 0.3, .knee = 100, .slope = 1};

	(void)state;
	begin(&s);
	for (int i = 0; i < 3; i++) {
		struct sim server = {.latency_ms = 40, .jitter = 0.3, .knee = knees[i], .slope = 1};
		double best = best_rate(&server), rate;

		s.knee = knees[i];
		run(&s, 20);
		rate = run(&s, 10);
		printf("a knee that moves to %.0f: %.3f of the best rate\n", knees[i], rate / best);
		assert_true(rate >= 0.85 * best);
	}
}

/* What is asked for at first may be quick, such as sizes, and then come the data. */
static void
answers_that_take_longer_from_now_on_do_not_shrink_the_window(void **state)
{
	struct sim s = {.latency_ms = 1, .jitter = 0.3, .rate = 8000};
	double rate;

	(void)state;
	begin(&s);
	run(&s, 5);
	s.latency_ms = 100;
	run(&s, 3);
	rate = run(&s, 5);
	printf("from 1 ms to 100 ms: %.3f of the best rate after 3 s, window %u\n", rate / 2560, s.pace.window);
	assert_true(rate >= 0.9 * 2560);
}

/* ---- consumers ---- */

static void
a_slow_consumer_does_not_shrink_the_window(void **state)
{
	struct sim s = {.latency_ms = 100, .jitter = 0.3};
	unsigned window;
	double rate;

	(void)state;
	begin(&s);
	run(&s, 5);
	window = s.pace.window;
	s.demand = 50;
	s.asked_ns = s.now;
	s.queue = 0;
	run(&s, 60);
	printf("consumer-limited: window %u, then %u\n", window, s.pace.window);
	assert_true(s.pace.window >= window);
	s.demand = 0;
	rate = run(&s, 1);
	assert_true(rate >= 0.9 * 2560);
}

static void
few_requests_do_not_grow_the_window(void **state)
{
	struct sim s = {.latency_ms = 100, .jitter = 0.3, .demand = 100};

	(void)state;
	begin(&s);
	run(&s, 60);
	assert_int_equal(s.pace.window, LEAT_PACE_FIRST);
	assert_int_equal(s.answers + s.flight, s.requests);
}

/* ---- 503s ---- */

static void
recovers(const char *name, struct sim s, double seconds, uint64_t most_extra)
{
	double before, after;
	uint64_t refused, requests;

	begin(&s);
	run(&s, 10);
	before = run(&s, 5);
	s.bad_from = s.now;
	s.bad_to = s.now + (uint64_t)(seconds * 1e9);
	refused = s.refused;
	requests = s.requests;
	run(&s, seconds);
	requests = s.requests - requests;
	run(&s, 2);
	after = run(&s, 3);
	printf("%-40s %.0f/s, 2 s later %.0f/s; %" PRIu64 " requests meanwhile, %" PRIu64 " refused\n", name, before,
	       after, requests, s.refused - refused);
	assert_true(after >= 0.9 * before);
	assert_true(s.refused - refused <= most_extra);
}

static void
the_rate_is_back_soon_after_an_outage(void **state)
{
	struct sim s = {.latency_ms = 100, .jitter = 0.3}, slow = {.latency_ms = 20, .jitter = 0.3, .rate = 500};

	(void)state;
	recovers("10 s of 503s, 100 ms", s, 10, 256 + 40);
	recovers("60 s of 503s, 100 ms", s, 60, 256 + 80);
	recovers("10 s of 503s, 500/s", slow, 10, 256 + 40);
	s.gone = slow.gone = true;
	recovers("60 s without connections, 100 ms", s, 60, 0);
	recovers("10 s without connections, 500/s", slow, 10, 0);
}

/* The client wants only a few requests as long as none was answered, and those pause when they are refused. */
static void
starts_in_an_outage(double seconds, unsigned wants)
{
	struct sim s = {.latency_ms = 20, .jitter = 0.3, .rate = 1000, .wants = wants};
	double after;

	begin(&s);
	s.bad_from = s.now;
	s.bad_to = s.now + (uint64_t)(seconds * 1e9);
	while (s.now < s.bad_to) {
		run(&s, 0.002);
		s.wants = 0;
		s.demand = 1e-9; /* a pause */
		s.queue = 0;
		s.asked_ns = UINT64_MAX;
		run(&s, 0.25);
		s.demand = 0;
		s.wants = wants;
	}
	s.wants = 0;
	run(&s, 2);
	after = run(&s, 3);
	printf("%.1f s of 503s at the start, %u wanted: 2 s later %.0f/s\n", seconds, wants, after);
	assert_true(after >= 900);
}

static void
a_server_that_refuses_at_first_is_soon_used_in_full(void **state)
{
	(void)state;
	starts_in_an_outage(0.3, 3);
	starts_in_an_outage(1, 3);
	starts_in_an_outage(1, 32);
	starts_in_an_outage(0.5, 32);
	starts_in_an_outage(5, 3);
	starts_in_an_outage(5, 32);
}

static void
serves(const char *name, struct sim s, double best, double share, double extra)
{
	double rate;

	begin(&s);
	run(&s, 10);
	s.requests = s.refused = 0;
	rate = run(&s, 30);
	printf("%-40s %.0f/s of %.0f/s, %.2f %% refused, window %u\n", name, rate, best,
	       100.0 * (double)s.refused / (double)s.requests, s.pace.window);
	assert_true(rate >= share * best);
	assert_true((double)s.refused <= extra * (double)s.requests);
}

static void
a_server_with_a_limit_refuses_few(void **state)
{
	(void)state;
	serves("limit of 1000/s, 20 ms", (struct sim){.latency_ms = 20, .jitter = 0.3, .limit = 1000}, 1000, 0.8, 0.03);
	serves("limit of 1000/s, 1 ms", (struct sim){.latency_ms = 1, .jitter = 0.3, .limit = 1000}, 1000, 0.8, 0.03);
	serves("limit of 100/s, 1 ms", (struct sim){.latency_ms = 1, .jitter = 0.3, .limit = 100}, 100, 0.75, 0.05);
	serves("limit of 20 at a time, 50 ms", (struct sim){.latency_ms = 50, .jitter = 0.3, .crowd = 20}, 400, 0.7,
	       0.05);
}

static void
a_limit_that_ends_is_forgotten(void **state)
{
	struct sim s = {.latency_ms = 20, .jitter = 0.3};
	double before, limited, after;

	(void)state;
	begin(&s);
	run(&s, 10);
	before = run(&s, 5);
	s.limit = 100;
	s.tokens_ns = s.now;
	run(&s, 5);
	limited = run(&s, 5);
	s.limit = 0;
	run(&s, 7);
	after = run(&s, 3);
	printf("a limit of 100/s for 10 s: %.0f/s, %.0f/s, 7 s later %.0f/s\n", before, limited, after);
	assert_true(limited >= 60 && after >= 0.9 * before);
}

static void
a_few_refusals_change_nothing(void **state)
{
	struct sim s = {.latency_ms = 20, .jitter = 0.3, .rate = 2000};
	double before, after;

	(void)state;
	begin(&s);
	run(&s, 10);
	before = run(&s, 5);
	for (int i = 0; i < 50; i++) {
		s.bad_from = s.now;
		s.bad_to = s.now + ms;
		run(&s, 0.2);
	}
	after = run(&s, 5);
	printf("%" PRIu64 " refused of %" PRIu64 ": %.0f/s, then %.0f/s, window %u\n", s.refused, s.requests, before,
	       after, s.pace.window);
	assert_true(s.refused > 20);
	assert_true(after >= 0.95 * before);
}

/* ---- down ---- */

static void
while_a_server_is_down_few_probes_go_out(void **state)
{
	struct sim s = {.latency_ms = 100, .jitter = 0.3};
	uint64_t before, held;

	(void)state;
	begin(&s);
	run(&s, 5);
	s.bad_from = s.now;
	s.bad_to = UINT64_MAX;
	run(&s, 1);
	assert_true(leat_pace_is_down(&s.pace));
	before = s.requests;
	held = leat_pace_held(&s.pace, s.now);
	run(&s, 60);
	assert_in_range(s.requests - before, 20, 60);
	assert_in_range(leat_pace_held(&s.pace, s.now) - held, 60 * second - ms, 60 * second + ms);
	assert_in_range(s.now - s.pace.failing_ns, 60 * second, 62 * second);
	leat_pace_wait(&s.pace, 30 * second, s.now);
	before = s.requests;
	run(&s, 29);
	assert_int_equal(s.requests, before);
}

/* ---- timeouts ---- */

static void
a_timeout_is_learned(void **state)
{
	struct leat_latency latency = {0};

	(void)state;
	assert_int_equal(leat_pace_timeout(&latency, 0, 20 * second), 20 * second);
	for (int i = 0; i < 1000; i++)
		leat_latency_add(&latency, 30 * ms);
	assert_int_equal(leat_pace_timeout(&latency, 0, 20 * second), 2 * second);
	assert_int_equal(leat_pace_timeout(&latency, 2, 20 * second), 8 * second);
	assert_int_equal(leat_pace_timeout(&latency, 40, 20 * second), 20 * second);
	assert_int_equal(leat_pace_timeout(&latency, 0, second / 5), second / 5);
	for (int i = 0; i < 20; i++) /* 2 % hang */
		leat_latency_add(&latency, second);
	assert_int_equal(leat_pace_timeout(&latency, 0, 20 * second), 2 * second);
	for (int i = 0; i < 60; i++) /* the server has become slow */
		leat_latency_add(&latency, second);
	assert_in_range(leat_pace_timeout(&latency, 0, 20 * second), 8 * second, 10 * second);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(latency_is_hidden_up_to_the_cap),
		cmocka_unit_test(a_rate_is_reached_without_a_long_queue),
		cmocka_unit_test(a_server_that_slows_down_gets_no_more_than_it_likes),
		cmocka_unit_test(a_consumer_that_wants_few_is_served_well_too),
		cmocka_unit_test(a_knee_that_moves_is_followed),
		cmocka_unit_test(answers_that_take_longer_from_now_on_do_not_shrink_the_window),
		cmocka_unit_test(a_slow_consumer_does_not_shrink_the_window),
		cmocka_unit_test(few_requests_do_not_grow_the_window),
		cmocka_unit_test(the_rate_is_back_soon_after_an_outage),
		cmocka_unit_test(a_server_that_refuses_at_first_is_soon_used_in_full),
		cmocka_unit_test(a_server_with_a_limit_refuses_few),
		cmocka_unit_test(a_limit_that_ends_is_forgotten),
		cmocka_unit_test(a_few_refusals_change_nothing),
		cmocka_unit_test(while_a_server_is_down_few_probes_go_out),
		cmocka_unit_test(a_timeout_is_learned),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
