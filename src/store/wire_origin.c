/* wire_origin.c - what the threads of a wire share about a server: its pace, and counts
 *
 * wire_pace.h decides how many requests may be in flight; here is the lock around it, and the
 * division among threads: each gets a share of the window in proportion to the exchanges it has,
 * waiting or in flight, so one that has them all may use all of it. What threads ask at every turn
 * (the window, whether there is anything to wait for) is published without the lock. */
#include "store/wire_loop.h"

enum { LATE = 20, TOO_LATE = 100, CALM = 1000, MOST_WIDER = 5 };

/* ---- the shared state ---- */

void
leat_origin_init(struct leat_origin *origin, unsigned cap)
{
	pthread_mutex_init(&origin->lock, NULL);
	leat_pace_init(&origin->pace, cap, leat_now());
	atomic_store(&origin->window, origin->pace.window);
}

void
leat_origin_destroy(struct leat_origin *origin)
{
	pthread_mutex_destroy(&origin->lock);
}

/* Under the lock, after every change. */
static void
publish(struct leat_origin *origin)
{
	const struct leat_pace *pace = &origin->pace;

	atomic_store_explicit(&origin->window, pace->window, memory_order_relaxed);
	atomic_store_explicit(&origin->is_held, leat_pace_is_down(pace) || pace->ceiling > 0, memory_order_relaxed);
	if (pace->window > origin->counts.most_window)
		origin->counts.most_window = pace->window;
	if (pace->flight > origin->counts.most_in_flight)
		origin->counts.most_in_flight = pace->flight;
}

/* ---- the division among threads ---- */

void
leat_origin_demand(const struct leat_wire_loop *loop, struct leat_origin *origin)
{
	struct leat_origin_loop *own = &origin->loop[loop->index];
	unsigned demand = own->waiting + own->flight;

	if (atomic_load_explicit(&own->demand, memory_order_relaxed) != demand)
		atomic_store_explicit(&own->demand, demand, memory_order_relaxed);
}

/* The part of `window` that belongs to this thread. All parts together are the window, but each thread that has
 * exchanges gets at least one. */
static unsigned
share(const struct leat_wire_loop *loop, const struct leat_origin *origin, unsigned window)
{
	uint64_t all = 0, before = 0, own = 0;

	if (loop->wire->loops == 1)
		return window;
	for (unsigned i = 0; i < loop->wire->loops; i++) {
		unsigned demand = atomic_load_explicit(&origin->loop[i].demand, memory_order_relaxed);

		before += i < loop->index ? demand : 0;
		own = i == loop->index ? demand : own;
		all += demand;
	}
	if (all <= window)
		return window;
	own = (before + own) * window / all - before * window / all;
	return own ? (unsigned)own : 1;
}

bool
leat_origin_may_begin(const struct leat_wire_loop *loop, struct leat_origin *origin)
{
	const struct leat_origin_loop *own = &origin->loop[loop->index];
	unsigned window = atomic_load_explicit(&origin->window, memory_order_relaxed);
	bool may;

	if (own->queue && own->queue->once)
		return true;
	if (atomic_load_explicit(&origin->is_held, memory_order_relaxed)) {
		pthread_mutex_lock(&origin->lock);
		may = leat_pace_may_begin(&origin->pace, leat_now());
		pthread_mutex_unlock(&origin->lock);
		if (!may)
			return false;
	}
	return own->flight < share(loop, origin, window);
}

bool
leat_origin_may_connect(const struct leat_wire_loop *loop, struct leat_origin *origin)
{
	const struct leat_origin_loop *own = &origin->loop[loop->index];
	unsigned window = atomic_load_explicit(&origin->window, memory_order_relaxed);
	uint64_t now;
	bool may = true;

	if (own->links + own->connecting >= share(loop, origin, window) + own->hedge.wanted)
		return false;
	if (!atomic_load_explicit(&origin->is_held, memory_order_relaxed))
		return true;
	pthread_mutex_lock(&origin->lock);
	now = leat_now();
	if (leat_pace_is_down(&origin->pace)) {
		may = own->links == 0 && (leat_pace_may_probe(&origin->pace, now) || (own->queue && own->queue->once));
		if (may)
			leat_pace_probe(&origin->pace, now);
	}
	pthread_mutex_unlock(&origin->lock);
	return may;
}

uint64_t
leat_origin_due(struct leat_origin *origin)
{
	uint64_t due = UINT64_MAX;

	if (!atomic_load_explicit(&origin->is_held, memory_order_relaxed))
		return due;
	pthread_mutex_lock(&origin->lock);
	due = leat_pace_due(&origin->pace, leat_now());
	pthread_mutex_unlock(&origin->lock);
	return due;
}

/* ---- requests ---- */

void
leat_origin_began(struct leat_link *link)
{
	struct leat_origin *origin = link->origin;

	origin->loop[link->loop->index].flight++;
	link->result = LEAT_PACE_VOID;
	pthread_mutex_lock(&origin->lock);
	leat_pace_begin(&origin->pace, link->begin_ns);
	origin->counts.requests++;
	origin->counts.retries += link->exchange->attempts > 0 || link->exchange->spared > 0;
	publish(origin);
	pthread_mutex_unlock(&origin->lock);
}

/* A request that is given up costs 20 points, an answer earns one. If more than one in twenty is given up, the timeout
 * doubles; after a thousand answers without that, it is halved again. */
static void
note_late(struct leat_origin *origin, bool given_up)
{
	unsigned wider = atomic_load_explicit(&origin->wider, memory_order_relaxed), was = wider;

	origin->counts.timeouts += given_up;
	origin->late = given_up ? origin->late + LATE : origin->late - (origin->late > 0);
	origin->calm = given_up ? 0 : origin->calm + 1;
	if (origin->late >= TOO_LATE) {
		wider += wider < MOST_WIDER;
		origin->late = 0;
	} else if (origin->calm >= CALM) {
		wider -= wider > 0;
		origin->calm = 0;
	}
	if (wider != was)
		atomic_store_explicit(&origin->wider, wider, memory_order_relaxed);
}

void
leat_origin_ended(struct leat_link *link, enum leat_pace_result result)
{
	struct leat_origin *origin = link->origin;
	struct leat_origin_counts *counts = &origin->counts;
	uint64_t now = leat_now();

	origin->loop[link->loop->index].flight--;
	pthread_mutex_lock(&origin->lock);
	leat_pace_end(&origin->pace, result, now - link->begin_ns, link->exchange->got, now);
	counts->throttled += result == LEAT_PACE_THROTTLED;
	counts->failures += result == LEAT_PACE_FAILED;
	if (result == LEAT_PACE_ANSWERED)
		counts->bytes += link->exchange->got;
	if (result == LEAT_PACE_ANSWERED || link->given_up)
		note_late(origin, link->given_up);
	publish(origin);
	pthread_mutex_unlock(&origin->lock);
}

enum leat_pace_result
leat_origin_result(int status)
{
	if (status == 429 || status == 503)
		return LEAT_PACE_THROTTLED;
	return leat_status_may_pass(status) ? LEAT_PACE_FAILED : LEAT_PACE_ANSWERED;
}

/* ---- connections, and servers that are down ---- */

void
leat_origin_connected(struct leat_origin *origin, uint64_t begin_ns)
{
	uint64_t now = leat_now();

	atomic_fetch_add_explicit(&origin->open, 1, memory_order_relaxed);
	pthread_mutex_lock(&origin->lock);
	if (origin->counts.connections++ == 0) {
		origin->connected_ns = now;
		origin->connecting_ns = now - begin_ns;
	}
	leat_pace_connected(&origin->pace, now);
	pthread_mutex_unlock(&origin->lock);
}

void
leat_origin_unreachable(struct leat_origin *origin, const char *why)
{
	pthread_mutex_lock(&origin->lock);
	leat_pace_unreachable(&origin->pace, leat_now());
	leat_show(origin->why, sizeof(origin->why), why, strlen(why));
	publish(origin);
	pthread_mutex_unlock(&origin->lock);
}

bool
leat_origin_failed(struct leat_origin *origin, const char *why, uint64_t wait_ns, uint64_t *held_ns)
{
	uint64_t now = leat_now();
	bool down;

	pthread_mutex_lock(&origin->lock);
	down = leat_pace_is_down(&origin->pace);
	leat_pace_wait(&origin->pace, wait_ns, now);
	leat_show(origin->why, sizeof(origin->why), why, strlen(why));
	*held_ns = leat_pace_held(&origin->pace, now);
	pthread_mutex_unlock(&origin->lock);
	return down;
}

bool
leat_origin_is_lost(struct leat_origin *origin, uint64_t patience, uint64_t now, struct leat_lost *lost)
{
	bool is_lost;

	if (!atomic_load_explicit(&origin->is_held, memory_order_relaxed))
		return false;
	pthread_mutex_lock(&origin->lock);
	is_lost = leat_pace_is_down(&origin->pace) && now > origin->pace.failing_ns + patience;
	if (is_lost) {
		*lost = (struct leat_lost){.tries = origin->pace.streak, .since_ns = origin->pace.failing_ns};
		memcpy(lost->why, origin->why, sizeof(lost->why));
	}
	pthread_mutex_unlock(&origin->lock);
	return is_lost;
}

/* ---- timeouts ---- */

uint64_t
leat_origin_timeout(struct leat_origin *origin, uint64_t longest)
{
	unsigned wider = atomic_load_explicit(&origin->wider, memory_order_relaxed);

	return leat_pace_timeout(&origin->latency, wider, longest);
}

/* ---- counts ---- */

void
leat_wire_visit(struct leat_wire *wire,
                void (*visit)(void *arg, const struct leat_origin *origin, const struct leat_origin_counts *counts),
                void *arg)
{
	pthread_mutex_lock(&wire->lock);
	for (struct leat_origin *origin = wire->origin; origin; origin = origin->next) {
		struct leat_origin_counts counts;

		pthread_mutex_lock(&origin->lock);
		counts = origin->counts;
		counts.window = origin->pace.window;
		counts.hedges = atomic_load_explicit(&origin->hedging.sent, memory_order_relaxed);
		visit(arg, origin, &counts);
		pthread_mutex_unlock(&origin->lock);
	}
	pthread_mutex_unlock(&wire->lock);
}

static void
add_counts(void *arg, const struct leat_origin *origin, const struct leat_origin_counts *counts)
{
	struct leat_origin_counts *total = arg;

	(void)origin;
	total->requests += counts->requests;
	total->retries += counts->retries;
	total->throttled += counts->throttled;
	total->failures += counts->failures;
	total->timeouts += counts->timeouts;
	total->connections += counts->connections;
	total->bytes += counts->bytes;
	total->window += counts->window;
	total->most_window += counts->most_window;
	total->most_in_flight += counts->most_in_flight;
	total->hedges += counts->hedges;
}

void
leat_wire_counts(struct leat_wire *wire, struct leat_origin_counts *total)
{
	*total = (struct leat_origin_counts){0};
	leat_wire_visit(wire, add_counts, total);
}
