/* wire_pace.c - see wire_pace.h */
#include "store/wire_pace.h"

enum {
	REQUEST_WORK = 64 * 1024, /* a request counts as many bytes, so that small ones count too */
	MIN_DONE = 32,            /* in a leg */
	MIN_SLOT = 8,             /* answers in a slot */
	LATENCY_LEAST = 64,       /* answers until timeouts are learned */
};

static const uint64_t millisecond = 1000000, second = 1000000000;

static const double full = 0.85;       /* of the window in flight, on average: it limits us */
static const double start_pays = 0.2;  /* growth of the rate by growth of the window */
static const double trial_pays = 0.07; /* the same in trials, which are more exact */
static const double leaps = 0.4;       /* pays enough to double again */
static const double no_loss = 0.985;   /* of the rate, with a smaller window */
static const double small_loss = 0.95, clear_loss = 0.9, clear_gain = 1.1;
static const double in_step = 0.75;                   /* of the rate, with half of the window: it limits us */
static const double queues = 1.15, queues_long = 2.5; /* latency, compared with the lowest */

/* ---- legs ---- */

static void
begin_leg(struct leat_pace *pace, uint64_t now)
{
	pace->leg = (struct leat_pace_leg){.changed_ns = now, .from_above = pace->flight > pace->window};
}

static void
set_window(struct leat_pace *pace, unsigned window, uint64_t now)
{
	if (window < LEAT_PACE_LEAST)
		window = LEAT_PACE_LEAST;
	pace->window = window < pace->cap ? window : pace->cap;
	begin_leg(pace, now);
}

static void
hold(struct leat_pace *pace, unsigned window, uint64_t now)
{
	pace->mode = LEAT_PACE_HOLD;
	pace->rate_held = 0;
	pace->trial_ns = now + pace->rest_ns;
	set_window(pace, window, now);
}

static void
start(struct leat_pace *pace, uint64_t now)
{
	pace->mode = LEAT_PACE_START;
	pace->rate_before = 0;
	pace->wanted_less = false;
	pace->rest_ns = second / 2;
	set_window(pace, pace->window, now);
}

static unsigned
larger(const struct leat_pace *pace, unsigned window)
{
	unsigned more = window + window / 2 + 1;

	return more < pace->cap ? more : pace->cap;
}

static void
try(struct leat_pace *pace, bool up, uint64_t now)
{
	unsigned base = pace->window, other = up ? larger(pace, base) : base - base / 4;

	pace->went_up = up;
	if (other == base || other < LEAT_PACE_LEAST) {
		hold(pace, base, now);
		return;
	}
	pace->mode = LEAT_PACE_TRIAL;
	pace->base = base;
	pace->other = other;
	pace->legs = 0;
	pace->rate[0] = pace->rate[1] = 0;
	begin_leg(pace, now);
}

static void
fall(struct leat_pace *pace, unsigned from, double rate, uint64_t now)
{
	pace->mode = LEAT_PACE_FALL;
	pace->before = from;
	pace->rate_before = rate;
	set_window(pace, from / 2, now);
}

/* ---- what a leg says ---- */

static double
lowest_latency(const struct leat_pace *pace)
{
	return pace->lowest_ns < pace->lowest_then_ns ? pace->lowest_ns : pace->lowest_then_ns;
}

/* If they do not, a larger window brings more. */
static bool
queues_up(const struct leat_pace *pace, double latency)
{
	return !pace->knows_latency || latency > queues * lowest_latency(pace);
}

/* Four times as many at once, while more bring as much more, and no answer takes much longer than the quickest. */
static unsigned
next_window(const struct leat_pace *pace, double grown, double added, double latency)
{
	return (grown >= leaps * added && latency < 2 * pace->quickest_ns ? 4 : 2) * pace->window;
}

static void
judge_start(struct leat_pace *pace, double rate, double latency, uint64_t now)
{
	double grown = pace->rate_before > 0 ? rate / pace->rate_before - 1 : 1;
	double added = pace->before ? (double)pace->window / pace->before - 1 : 1;

	if (pace->rate_before > 0 && grown < start_pays * added) {
		if (grown >= trial_pays * added)
			hold(pace, pace->window, now);
		else
			fall(pace, pace->before, pace->rate_before, now);
	} else if (pace->window == pace->cap) {
		hold(pace, pace->window, now);
	} else {
		pace->before = pace->window;
		pace->rate_before = rate;
		set_window(pace, next_window(pace, grown, added, latency), now);
	}
}

/* Requests take longer than ever, and half of them at a time bring half as much: so they do not queue. Others are asked
 * for than before, larger ones maybe, or the server is farther away. */
static void
learn_latency(struct leat_pace *pace, double latency, uint64_t now)
{
	pace->lowest_ns = pace->lowest_then_ns = latency;
	pace->period_ns = now;
	pace->knows_latency = true;
	pace->window = pace->before;
	start(pace, now);
}

static void
judge_fall(struct leat_pace *pace, double rate, double latency, uint64_t now)
{
	bool doubts = pace->doubts;

	pace->doubts = false;
	if ((doubts || !pace->knows_latency) && rate < in_step * pace->rate_before) {
		learn_latency(pace, latency, now);
		return;
	}
	if (rate >= small_loss * pace->rate_before && pace->window > LEAT_PACE_LEAST) {
		fall(pace, pace->window, rate, now);
		return;
	}
	set_window(pace, rate >= small_loss * pace->rate_before ? pace->window : pace->before, now);
	try(pace, false, now);
}

static void
reject(struct leat_pace *pace, uint64_t now)
{
	double rate = pace->rate[0] / ((pace->legs + 1) / 2);

	if (pace->rest_ns < 4 * second)
		pace->rest_ns *= 2;
	hold(pace, pace->base, now);
	pace->rate_held = rate;
}

static void
end_trial_up(struct leat_pace *pace, double ratio, uint64_t now)
{
	double added = (double)pace->other / pace->base - 1, grown = ratio - 1;

	if (grown < trial_pays * added) {
		reject(pace, now);
		return;
	}
	set_window(pace, pace->other, now);
	if (grown >= leaps * added)
		start(pace, now);
	else
		try(pace, true, now);
}

static void
judge_trial(struct leat_pace *pace, double rate, uint64_t now)
{
	bool up = pace->other > pace->base;
	double ratio;

	pace->rate[pace->legs & 1] += rate;
	ratio = pace->rate[0] > 0 ? pace->rate[1] / pace->rate[0] : 1;
	if (++pace->legs == 2 && ratio < clear_loss) {
		reject(pace, now);
	} else if (pace->legs == 2 && !up && ratio > clear_gain) {
		fall(pace, pace->other, pace->rate[1], now);
	} else if (pace->legs < 4) {
		set_window(pace, pace->legs & 1 ? pace->other : pace->base, now);
	} else if (up) {
		end_trial_up(pace, ratio, now);
	} else if (ratio < no_loss) {
		reject(pace, now);
	} else {
		pace->rest_ns = second / 2;
		set_window(pace, pace->other, now);
		try(pace, false, now);
	}
}

static void
judge_hold(struct leat_pace *pace, double rate, double latency, uint64_t now)
{
	double lowest = lowest_latency(pace);
	bool up = pace->window < pace->cap && latency<queues_long * lowest, down = latency> queues * lowest;

	if (pace->wanted_less && !queues_up(pace, latency) && pace->window < pace->cap) {
		start(pace, now);
		return;
	}
	pace->wanted_less = false;
	if (latency > queues_long * lowest &&
	    (now >= pace->trial_ns || (pace->rate_held > 0 && rate < 0.7 * pace->rate_held))) {
		pace->doubts = true;
		fall(pace, pace->window, rate, now);
		return;
	}
	if (pace->rate_held > 0 && (rate > 1.3 * pace->rate_held || rate < 0.7 * pace->rate_held)) {
		pace->rest_ns = second / 2; /* the server has changed */
		if (pace->trial_ns > now + pace->rest_ns)
			pace->trial_ns = now + pace->rest_ns;
	}
	pace->rate_held = pace->rate_held > 0 ? 0.7 * pace->rate_held + 0.3 * rate : rate;
	if (now >= pace->trial_ns && (up || down))
		try(pace, up && (!down || !pace->went_up), now);
	else
		begin_leg(pace, now);
}

static void
note_latency(struct leat_pace *pace, double latency, uint64_t now)
{
	if (now >= pace->period_ns + 15 * second) {
		pace->lowest_then_ns = pace->lowest_ns;
		pace->lowest_ns = 1e18;
		pace->period_ns = now;
	}
	if (latency < pace->lowest_ns)
		pace->lowest_ns = latency;
}

/* The window was not full, so nothing is known about it. */
static void
judge_nothing(struct leat_pace *pace, uint64_t now)
{
	pace->wanted_less = true;
	if (pace->mode == LEAT_PACE_TRIAL)
		hold(pace, pace->base, now);
	else if (pace->mode == LEAT_PACE_FALL)
		hold(pace, pace->before, now);
	else
		begin_leg(pace, now);
}

/* More than is wanted. If what there was of it did not pay, less may do, unless nothing queues. */
static void
judge_unfilled_start(struct leat_pace *pace, double flight, double rate, double latency, uint64_t now)
{
	double added = pace->rate_before > 0 ? flight / pace->before - 1 : 0;

	if (!queues_up(pace, latency) || flight < LEAT_PACE_FIRST / 2)
		begin_leg(pace, now);
	else if (pace->rate_before <= 0)
		fall(pace, (unsigned)flight, rate, now);
	else if (added < 0.1 || rate / pace->rate_before - 1 < start_pays * added)
		fall(pace, pace->before, pace->rate_before, now);
	else
		begin_leg(pace, now);
}

static void
judge_leg(struct leat_pace *pace, uint64_t now)
{
	const struct leat_pace_leg *leg = &pace->leg;
	double elapsed = (double)(now - leg->since_ns), rate = leg->work / elapsed, flight = leg->area / elapsed;
	double latency = leg->done ? leg->latency_ns / leg->done : 0;

	if (!leg->done || leg->refused * 50 > leg->done || pace->ceiling > 0) {
		judge_nothing(pace, now);
		return;
	}
	if (flight < full * pace->window) {
		if (pace->mode == LEAT_PACE_START && (pace->rate_before <= 0 || flight > full * pace->before))
			judge_unfilled_start(pace, flight, rate, latency, now);
		else
			judge_nothing(pace, now);
		return;
	}
	note_latency(pace, latency, now);
	if (pace->mode == LEAT_PACE_START)
		judge_start(pace, rate, latency, now);
	else if (pace->mode == LEAT_PACE_FALL)
		judge_fall(pace, rate, latency, now);
	else if (pace->mode == LEAT_PACE_TRIAL)
		judge_trial(pace, rate, now);
	else
		judge_hold(pace, rate, latency, now);
}

/* Nothing comes that would end a leg: the window is not full, or the server is stuck. */
static bool
takes_too_long(const struct leat_pace *pace, uint64_t since, uint64_t now)
{
	return now >= since + second + 8 * (uint64_t)pace->latency_ns;
}

/* After a change, connections have to be made, and requests of the window before are on their way. */
static bool
has_settled(struct leat_pace *pace, uint64_t now)
{
	struct leat_pace_leg *leg = &pace->leg;
	bool reached =
		leg->from_above ? pace->flight <= pace->window : pace->flight + pace->window / 16 >= pace->window;

	if (!leg->reached_ns && reached) {
		leg->reached_ns = now;
		leg->done = 0;
	}
	return (leg->reached_ns && leg->done >= (pace->mode == LEAT_PACE_START ? 0 : pace->window)) ||
	       takes_too_long(pace, leg->changed_ns, now);
}

static bool
leg_is_over(const struct leat_pace *pace, uint64_t now)
{
	const struct leat_pace_leg *leg = &pace->leg;
	unsigned enough =
		pace->mode == LEAT_PACE_START || pace->mode == LEAT_PACE_FALL ? pace->window : 2 * pace->window;

	return (now >= leg->since_ns + 50 * millisecond && leg->done >= (enough > MIN_DONE ? enough : MIN_DONE)) ||
	       takes_too_long(pace, leg->since_ns, now);
}

static void
step(struct leat_pace *pace, uint64_t now)
{
	struct leat_pace_leg *leg = &pace->leg;

	if (pace->mode == LEAT_PACE_DOWN || pace->mode == LEAT_PACE_RESUME)
		return;
	if (leg->since_ns && leg_is_over(pace, now)) {
		judge_leg(pace, now);
	} else if (!leg->since_ns && has_settled(pace, now)) {
		*leg = (struct leat_pace_leg){.changed_ns = leg->changed_ns, .since_ns = now};
	}
}

/* ---- 503s ---- */

static void
lower_ceiling(struct leat_pace *pace, double rate, bool few, uint64_t now)
{
	if (pace->ceiling <= 0 && pace->goal < pace->window)
		pace->goal = pace->window;
	if (pace->ceiling <= 0 || rate < pace->ceiling)
		pace->ceiling = rate;
	if (!few)
		pace->level = rate;
	pace->ceiling *= few ? 0.97 : 0.9;
	pace->throttled_ns = now;
	if (!few && pace->mode != LEAT_PACE_DOWN && pace->mode != LEAT_PACE_RESUME)
		hold(pace, pace->window - pace->window / 4, now);
}

/* Not in the first half second, then by 1 % a slot, and by more each half second. */
static void
raise_ceiling(struct leat_pace *pace, uint64_t now)
{
	uint64_t calm = (now - pace->throttled_ns) / (second / 2);
	double factor = calm ? 1 + 0.01 * (double)(calm < 50 ? calm * calm : 2500) : 1;

	pace->ceiling *= factor;
	if (pace->window < pace->goal && pace->mode == LEAT_PACE_HOLD)
		set_window(pace, 1 + (unsigned)(pace->window * factor), now);
	if (calm < 4 || 2 * pace->free < pace->begun)
		return;
	pace->ceiling = pace->level = 0; /* it does not limit us */
	pace->goal = 0;
	if (pace->mode == LEAT_PACE_HOLD)
		start(pace, now);
}

static void
begin_slot(struct leat_pace *pace, uint64_t now)
{
	pace->slot_ns = now;
	pace->answered = pace->throttled = pace->begun = pace->free = 0;
}

static void
count_in_slot(struct leat_pace *pace, enum leat_pace_result result, uint64_t now)
{
	uint64_t elapsed = now - pace->slot_ns;
	unsigned all;
	bool few;

	pace->answered += result == LEAT_PACE_ANSWERED;
	pace->throttled += result == LEAT_PACE_THROTTLED;
	all = pace->answered + pace->throttled;
	if (pace->mode == LEAT_PACE_DOWN || elapsed < second / 10 || (all < MIN_SLOT && elapsed < second))
		return;
	few = pace->throttled < 2 || pace->throttled * 50 <= all;
	/* A few among many may have other reasons than the rate: they do not lower it far. */
	if (pace->throttled && pace->answered && (!few || (pace->ceiling > 0 && pace->ceiling > 0.9 * pace->level)))
		lower_ceiling(pace, pace->answered * 1e9 / (double)elapsed, few, now);
	else if (pace->ceiling > 0 && few)
		raise_ceiling(pace, now);
	begin_slot(pace, now);
}

/* ---- down ---- */

static void
go_down(struct leat_pace *pace, uint64_t now)
{
	if (pace->mode == LEAT_PACE_DOWN)
		return;
	if (pace->mode == LEAT_PACE_RESUME) /* it was up but for a moment */
		pace->goal -= pace->goal / 4;
	else if (pace->goal < pace->window)
		pace->goal = pace->mode == LEAT_PACE_TRIAL ? pace->base : pace->window;
	pace->mode = LEAT_PACE_DOWN;
	pace->down_ns = now;
	pace->pause_ns = second / 10;
	pace->probe_ns = now;
	leat_pace_probe(pace, now);
}

static void
come_up(struct leat_pace *pace, uint64_t now)
{
	pace->held_ns += now - pace->down_ns;
	if (now - pace->down_ns > second) /* what was before does not count */
		pace->ceiling = pace->level = 0;
	if (now - pace->down_ns > second / 4) /* a rate that includes the pause would be far too low */
		begin_slot(pace, now);
	pace->mode = LEAT_PACE_RESUME;
	set_window(pace, pace->goal / 8, now);
}

static void
resume(struct leat_pace *pace, uint64_t now)
{
	if (pace->window < pace->goal && pace->window < pace->cap) {
		pace->window++;
		return;
	}
	pace->goal = 0;
	start(pace, now);
}

static void
note_failure(struct leat_pace *pace, uint64_t now)
{
	if (!pace->streak++)
		pace->failing_ns = now;
	if (pace->streak >= LEAT_PACE_STREAK)
		go_down(pace, now);
}

static void
note_answer(struct leat_pace *pace, uint64_t took_ns, uint64_t bytes, uint64_t now)
{
	if (pace->mode != LEAT_PACE_DOWN || now - took_ns >= pace->down_ns)
		pace->streak = 0;
	pace->latency_ns = pace->latency_ns > 0 ? pace->latency_ns * 0.9 + (double)took_ns * 0.1 : (double)took_ns;
	if ((double)took_ns < pace->quickest_ns || pace->quickest_ns <= 0)
		pace->quickest_ns = (double)took_ns;
	pace->leg.done++;
	pace->leg.work += (double)bytes + REQUEST_WORK;
	pace->leg.latency_ns += (double)took_ns;
	if (pace->mode == LEAT_PACE_DOWN && now - took_ns < pace->down_ns)
		return; /* it is older than the failures */
	if (pace->mode == LEAT_PACE_DOWN)
		come_up(pace, now);
	else if (pace->mode == LEAT_PACE_RESUME)
		resume(pace, now);
}

bool
leat_pace_may_probe(const struct leat_pace *pace, uint64_t now)
{
	return pace->mode != LEAT_PACE_DOWN || (now >= pace->probe_ns && pace->flight < LEAT_PACE_LEAST);
}

/* The next one comes after a random pause, between half of `pause_ns` and one and a half. */
void
leat_pace_probe(struct leat_pace *pace, uint64_t now)
{
	if (pace->mode != LEAT_PACE_DOWN)
		return;
	pace->random = pace->random * 6364136223846793005u + 1442695040888963407u;
	pace->probe_ns = now + pace->pause_ns / 2 + (pace->random >> 33) % pace->pause_ns;
	pace->pause_ns = pace->pause_ns < second ? 2 * pace->pause_ns : 2 * second;
}

void
leat_pace_unreachable(struct leat_pace *pace, uint64_t now)
{
	if (!pace->streak++)
		pace->failing_ns = now;
	go_down(pace, now);
}

void
leat_pace_connected(struct leat_pace *pace, uint64_t now)
{
	if (pace->mode == LEAT_PACE_DOWN && pace->probe_ns > now)
		pace->probe_ns = now;
}

void
leat_pace_wait(struct leat_pace *pace, uint64_t ns, uint64_t now)
{
	if (pace->mode == LEAT_PACE_DOWN && pace->probe_ns < now + ns)
		pace->probe_ns = now + ns;
}

uint64_t
leat_pace_held(const struct leat_pace *pace, uint64_t now)
{
	return pace->held_ns + (pace->mode == LEAT_PACE_DOWN ? now - pace->down_ns : 0);
}

/* ---- requests ---- */

void
leat_pace_init(struct leat_pace *pace, unsigned cap, uint64_t now)
{
	*pace = (struct leat_pace){.cap = cap ? cap : 1,
	                           .last_ns = now,
	                           .slot_ns = now,
	                           .period_ns = now,
	                           .lowest_ns = 1e18,
	                           .lowest_then_ns = 1e18,
	                           .random = now};
	pace->window = LEAT_PACE_FIRST;
	start(pace, now);
}

bool
leat_pace_may_begin(const struct leat_pace *pace, uint64_t now)
{
	if (pace->mode == LEAT_PACE_DOWN)
		return leat_pace_may_probe(pace, now);
	return pace->flight < pace->window && (pace->ceiling <= 0 || now >= pace->start_ns);
}

uint64_t
leat_pace_due(const struct leat_pace *pace, uint64_t now)
{
	if (pace->mode == LEAT_PACE_DOWN)
		return pace->flight < LEAT_PACE_LEAST ? pace->probe_ns : UINT64_MAX;
	if (pace->flight >= pace->window)
		return UINT64_MAX;
	return pace->ceiling > 0 ? pace->start_ns : now;
}

static void
advance(struct leat_pace *pace, uint64_t now)
{
	if (now > pace->last_ns) {
		pace->leg.area += (double)pace->flight * (double)(now - pace->last_ns);
		pace->last_ns = now;
	}
}

/* What was not used of the last 40 ms may be used at once: threads do not wake up for every request. */
static void
take_token(struct leat_pace *pace, uint64_t now)
{
	uint64_t burst = 40 * millisecond, from = now > burst ? now - burst : 0;

	pace->begun++;
	if (pace->start_ns < from) {
		pace->start_ns = from;
		pace->free++;
	}
	pace->start_ns += (uint64_t)(1e9 / pace->ceiling);
}

void
leat_pace_begin(struct leat_pace *pace, uint64_t now)
{
	advance(pace, now);
	/* Requests that were refused wait before they come again, and maybe nothing else was wanted meanwhile. */
	if (pace->flight == 0 && pace->ceiling <= 0 && now >= pace->idle_ns + second / 10)
		begin_slot(pace, now);
	pace->flight++;
	if (pace->mode == LEAT_PACE_DOWN)
		leat_pace_probe(pace, now);
	else if (pace->ceiling > 0)
		take_token(pace, now);
	step(pace, now);
}

void
leat_pace_end(struct leat_pace *pace, enum leat_pace_result result, uint64_t took_ns, uint64_t bytes, uint64_t now)
{
	advance(pace, now);
	if (--pace->flight == 0)
		pace->idle_ns = now;
	if (result == LEAT_PACE_ANSWERED)
		note_answer(pace, took_ns, bytes, now);
	else if (result != LEAT_PACE_VOID)
		note_failure(pace, now);
	pace->leg.refused += result == LEAT_PACE_THROTTLED;
	count_in_slot(pace, result, now);
	step(pace, now);
}

uint64_t
leat_pace_timeout(const struct leat_latency *latency, unsigned given_up, uint64_t longest)
{
	uint64_t usual = leat_latency_percentile(latency, 95, LATENCY_LEAST), timeout;

	if (!usual)
		return longest;
	timeout = usual > second / 4 ? 8 * usual : 2 * second;
	for (; given_up && timeout < longest; given_up--)
		timeout *= 2;
	return timeout < longest ? timeout : longest;
}
