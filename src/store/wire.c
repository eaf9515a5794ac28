/* wire.c - see wire.h: exchanges, and what happens when they fail */
#include "store/wire_loop.h"

#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

enum { MAX_TURNS = 10 }; /* answers that send us elsewhere */

static const uint64_t second = 1000000000;
static const uint64_t first_pause = 100 * 1000 * 1000ull, longest_pause = 5 * 1000000000ull;
static const uint64_t postponed_pause = 20 * 1000 * 1000ull;
static const uint64_t patience_with_strangers = 5 * 1000000000ull;

/* ---- the end of an exchange ---- */

void
leat_exchange_over(struct leat_wire_loop *loop, struct leat_exchange *exchange, enum leat_status status)
{
	exchange->status = status;
	exchange->thread = loop->index;
	atomic_fetch_sub(&loop->load, 1);
	exchange->kind->done(exchange);
}

/* In [0, limit). xorshift64: pauses need no better one. */
static uint64_t
random_below(struct leat_wire_loop *loop, uint64_t limit)
{
	loop->random ^= loop->random << 13;
	loop->random ^= loop->random >> 7;
	loop->random ^= loop->random << 17;
	return limit ? loop->random % limit : 0;
}

/* As the server says, within reason. */
static uint64_t
told(unsigned wait_seconds)
{
	return (wait_seconds < 30 ? wait_seconds : 30) * second;
}

uint64_t
leat_wire_patience(const struct leat_wire *wire, const struct leat_origin *origin)
{
	uint64_t patience = wire->settings.patience_ns;
	bool stranger = !atomic_load_explicit(&origin->answered, memory_order_relaxed);

	return stranger && patience > patience_with_strangers ? patience_with_strangers : patience;
}

static uint64_t
pause_for(struct leat_wire_loop *loop, const struct leat_exchange *exchange, unsigned wait_seconds)
{
	uint64_t longest = exchange->attempts < 6 ? first_pause << exchange->attempts : longest_pause;

	return told(wait_seconds) + random_below(loop, longest < longest_pause ? longest : longest_pause);
}

/* LEAT_IO, with how long it was tried. */
static void
give_up(struct leat_wire_loop *loop, struct leat_exchange *exchange, uint64_t now)
{
	char why[LEAT_WIRE_WHY + 64];

	if (exchange->attempts > 1)
		snprintf(why, sizeof(why), "%s (tried %u times in %.1f s)", exchange->why, exchange->attempts,
		         (double)(now - exchange->failing_since_ns) / 1e9);
	else
		snprintf(why, sizeof(why), "%s", exchange->why);
	exchange->kind->fail(exchange, LEAT_IO, why);
	leat_exchange_over(loop, exchange, LEAT_IO);
}

void
leat_exchange_failed(struct leat_wire_loop *loop, struct leat_exchange *exchange, const char *why, bool now,
                     unsigned wait_seconds)
{
	uint64_t time = leat_now(), held, failing;
	bool down;

	if (why != exchange->why)
		leat_show(exchange->why, sizeof(exchange->why), why, strlen(why));
	if (leat_exchange_cancelled(exchange)) {
		leat_exchange_over(loop, exchange, LEAT_AGAIN);
		return;
	}
	if (now) {
		leat_loop_put(loop, exchange);
		return;
	}
	down = leat_origin_failed(exchange->origin, exchange->why, told(wait_seconds), &held);
	if (!exchange->attempts++) {
		exchange->failing_since_ns = time;
		exchange->held_before_ns = held;
	}
	exchange->due_ns = down ? time : time + pause_for(loop, exchange, wait_seconds);
	failing = exchange->due_ns - exchange->failing_since_ns - (held - exchange->held_before_ns);
	if (exchange->once || failing > leat_wire_patience(loop->wire, exchange->origin)) {
		give_up(loop, exchange, time);
	} else if (down) {
		leat_loop_put(loop, exchange);
	} else {
		exchange->next = loop->delayed;
		loop->delayed = exchange;
	}
}

void
leat_exchange_lost(struct leat_wire_loop *loop, struct leat_exchange *exchange, const struct leat_lost *lost)
{
	if (leat_exchange_cancelled(exchange)) {
		leat_exchange_over(loop, exchange, LEAT_AGAIN);
		return;
	}
	if (!*exchange->why)
		memcpy(exchange->why, lost->why, sizeof(exchange->why));
	if (exchange->attempts < lost->tries)
		exchange->attempts = lost->tries;
	if (!exchange->failing_since_ns || exchange->failing_since_ns > lost->since_ns)
		exchange->failing_since_ns = lost->since_ns;
	give_up(loop, exchange, leat_now());
}

void
leat_exchange_postpone(struct leat_wire_loop *loop, struct leat_exchange *exchange)
{
	uint64_t now = leat_now();

	if (!exchange->postponed_since_ns)
		exchange->postponed_since_ns = now;
	if (now - exchange->postponed_since_ns >= loop->wire->settings.patience_ns) {
		exchange->kind->fail(exchange, LEAT_IO, exchange->why);
		leat_exchange_over(loop, exchange, LEAT_IO);
		return;
	}
	exchange->due_ns = now + postponed_pause;
	exchange->next = loop->delayed;
	loop->delayed = exchange;
}

bool
leat_status_may_pass(int status)
{
	return status == 429 || status == 500 || (status >= 502 && status <= 504);
}

void
leat_exchange_answered(struct leat_wire_loop *loop, struct leat_exchange *exchange, const struct leat_http_head *head)
{
	char why[64];

	if (leat_origin_result(head->status) == LEAT_PACE_THROTTLED) /* it is there, and wants less */
		atomic_store_explicit(&exchange->origin->answered, true, memory_order_relaxed);
	if (leat_status_may_pass(head->status)) {
		leat_hedge_calm(exchange->origin);
		snprintf(why, sizeof(why), "the server answered %d", head->status);
		leat_exchange_failed(loop, exchange, why, false, head->retry_after);
		return;
	}
	atomic_store_explicit(&exchange->origin->answered, true, memory_order_relaxed);
	switch (exchange->kind->judge(exchange, head)) {
	case LEAT_VERDICT_OVER:
		leat_exchange_over(loop, exchange, exchange->status);
		return;
	case LEAT_VERDICT_LATER:
		leat_exchange_failed(loop, exchange, exchange->why, false, 0);
		return;
	case LEAT_VERDICT_NOW:
		break;
	}
	if (++exchange->turns <= MAX_TURNS) {
		leat_loop_put(loop, exchange);
		return;
	}
	exchange->kind->fail(exchange, LEAT_IO, "the server keeps sending us elsewhere");
	leat_exchange_over(loop, exchange, LEAT_IO);
}

/* ---- the wire ---- */

/* The user's word counts, but a process must keep files for other things. */
static size_t
most_links(const struct leat_storage *storage)
{
	struct rlimit limit;
	size_t most = storage->requests ? (size_t)storage->requests : LEAT_WIRE_IN_FLIGHT;

	if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur / 2 < most)
		most = (size_t)limit.rlim_cur / 2;
	return most ? most : 1;
}

static void
thread_body(void *arg, unsigned i)
{
	struct leat_wire *wire = arg;

	leat_loop_run(&wire->loop[i]);
}

static unsigned
wanted_loops(const struct leat_storage *storage, size_t links)
{
	unsigned loops = storage->threads ? (unsigned)storage->threads : (leat_cpus("") + 1) / 2;

	if (loops > links)
		loops = (unsigned)links;
	return loops < LEAT_WIRE_THREADS ? loops : LEAT_WIRE_THREADS;
}

enum leat_status
leat_wire_open(struct leat_wire **result, const struct leat_storage *storage, struct leat_mem *mem,
               struct leat_err *err)
{
	const struct leat_curl *curl = leat_curl_load(err);
	struct leat_wire *wire;
	enum leat_status status = LEAT_OK;

	*result = NULL;
	if (!curl)
		return LEAT_UNSUPPORTED;
	wire = leat_alloc(mem, sizeof(*wire));
	if (!wire)
		return leat_fail_mem(err, mem, sizeof(*wire), "network connections");
	wire->mem = mem;
	wire->curl = curl;
	wire->pid = getpid();
	wire->settings = (struct leat_wire_settings){(uint64_t)((double)storage->timeout * 1e9),
	                                             (uint64_t)((double)storage->patience * 1e9), storage};
	pthread_mutex_init(&wire->lock, NULL);
	wire->most_links = most_links(storage);
	wire->loops = wanted_loops(storage, wire->most_links);
	for (unsigned i = 0; i < wire->loops && status == LEAT_OK; i++)
		status = leat_loop_open(&wire->loop[i], wire, i, err);
	if (status == LEAT_OK)
		status = leat_threads_start(&wire->threads, mem, wire->loops, "leat-net", thread_body, wire, err);
	if (status != LEAT_OK)
		leat_wire_close(wire);
	else
		*result = wire;
	return status;
}

void
leat_wire_close(struct leat_wire *wire)
{
	if (!wire)
		return;
	for (unsigned i = 0; i < wire->threads.count; i++)
		leat_loop_wake(&wire->loop[i], false, true);
	leat_threads_join(&wire->threads);
	for (unsigned i = 0; i < wire->loops; i++)
		leat_loop_close(&wire->loop[i]);
	while (wire->origin) {
		struct leat_origin *origin = wire->origin;

		wire->origin = origin->next;
		leat_origin_destroy(origin);
		leat_hosts_free(origin);
		leat_free(wire->mem, origin);
	}
	pthread_mutex_destroy(&wire->lock);
	leat_free(wire->mem, wire);
}

unsigned
leat_wire_most(const struct leat_wire *wire)
{
	return (unsigned)wire->most_links;
}

struct leat_origin *
leat_wire_origin(struct leat_wire *wire, bool tls, const char *host, unsigned port)
{
	struct leat_origin *origin;

	pthread_mutex_lock(&wire->lock);
	for (origin = wire->origin; origin; origin = origin->next)
		if (origin->tls == tls && origin->port == port && strcmp(origin->host, host) == 0)
			break;
	if (!origin && strlen(host) < LEAT_HOST && (origin = leat_alloc(wire->mem, sizeof(*origin))) != NULL) {
		origin->tls = tls;
		origin->port = port;
		strcpy(origin->host, host);
		leat_origin_init(origin, leat_wire_most(wire));
		leat_hosts_init(origin);
		origin->next = wire->origin;
		wire->origin = origin;
	}
	pthread_mutex_unlock(&wire->lock);
	return origin;
}

/* ---- starting ---- */

static struct leat_wire_loop *
least_loaded(struct leat_wire *wire)
{
	struct leat_wire_loop *best = &wire->loop[0];

	for (unsigned i = 1; i < wire->loops; i++)
		if (atomic_load(&wire->loop[i].load) < atomic_load(&best->load))
			best = &wire->loop[i];
	return best;
}

static void
give(struct leat_wire_loop *loop, struct leat_exchange *exchange)
{
	exchange->next = NULL;
	atomic_fetch_add(&loop->load, 1);
	pthread_mutex_lock(&loop->lock);
	*loop->incoming_end = exchange;
	loop->incoming_end = &exchange->next;
	pthread_mutex_unlock(&loop->lock);
}

enum leat_status
leat_wire_submit(struct leat_wire *wire, struct leat_exchange *exchange, struct leat_err *err)
{
	struct leat_wire_loop *loop = least_loaded(wire);

	if (getpid() != wire->pid)
		return leat_fail(err, LEAT_INVALID,
		                 "remote data was opened in another process; open the feed after the fork");
	give(loop, exchange);
	leat_loop_wake(loop, false, false);
	return LEAT_OK;
}

/* The thread with connections that has the fewest exchanges. NULL: there is none but this one. */
static struct leat_wire_loop *
least_busy(struct leat_wire *wire, const struct leat_wire_loop *self, const struct leat_origin *origin)
{
	struct leat_wire_loop *best = NULL;
	unsigned least = 0;

	for (unsigned i = 0; i < wire->loops; i++) {
		unsigned demand = atomic_load_explicit(&origin->loop[i].demand, memory_order_relaxed);

		if (&wire->loop[i] == self || !atomic_load_explicit(&origin->loop[i].links, memory_order_relaxed))
			continue;
		if (!best || demand < least) {
			least = demand;
			best = &wire->loop[i];
		}
	}
	return best;
}

void
leat_wire_hand_over(struct leat_wire_loop *loop, struct leat_origin *origin)
{
	struct leat_wire_loop *other = least_busy(loop->wire, loop, origin);

	for (struct leat_exchange *list = other ? leat_loop_take_all(loop, origin) : NULL, *next; list; list = next) {
		next = list->next;
		atomic_fetch_sub(&loop->load, 1);
		give(other, list);
	}
	if (other)
		leat_loop_wake(other, false, false);
}

void
leat_wire_cancel(struct leat_wire *wire)
{
	for (unsigned i = 0; i < wire->loops; i++)
		leat_loop_wake(&wire->loop[i], true, false);
}

/* ---- waiting ---- */

struct call {
	struct leat_exchange_kind kind; /* the exchange's, but for `done` */
	const struct leat_exchange_kind *outer;
	struct leat_exchange *exchange;
	pthread_mutex_t lock;
	pthread_cond_t over;
	bool done;
};

static void
end_call(struct leat_exchange *exchange)
{
	struct call *call = (struct call *)(void *)(uintptr_t)exchange->kind;

	pthread_mutex_lock(&call->lock);
	call->done = true;
	pthread_cond_signal(&call->over);
	pthread_mutex_unlock(&call->lock);
}

enum leat_status
leat_wire_call(struct leat_wire *wire, struct leat_exchange *exchange)
{
	struct call call = {.kind = *exchange->kind, .outer = exchange->kind, .exchange = exchange};
	enum leat_status status;

	call.kind.done = end_call;
	exchange->kind = &call.kind;
	pthread_mutex_init(&call.lock, NULL);
	pthread_cond_init(&call.over, NULL);
	status = leat_wire_submit(wire, exchange, exchange->err);
	if (status == LEAT_OK) {
		pthread_mutex_lock(&call.lock);
		while (!call.done)
			pthread_cond_wait(&call.over, &call.lock);
		pthread_mutex_unlock(&call.lock);
		status = exchange->status;
	}
	pthread_cond_destroy(&call.over);
	pthread_mutex_destroy(&call.lock);
	exchange->kind = call.outer;
	return status;
}
