/* wire_loop.c - a thread of the wire: its epoll loop, and which exchange gets which connection
 *
 * Connections without TLS are watched by us alone. libcurl watches those it is connecting, by
 * way of the same epoll, and its descriptors are told from ours by the lowest bit. */
#include "store/wire_loop.h"

#include <errno.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

enum {
	CONNECTS_AT_FIRST = 4, /* at a time, until the server has answered */
	CONNECTS = 128,
	EVENTS = 64,
	TICK_MS = 20,   /* how exactly pauses and timeouts are kept */
	STALL_MS = 250, /* without a turn, because the machine is busy */
	LEARN_MS = 250, /* how often timeouts are learned */
};

static const uint64_t millisecond = 1000000;

/* ---- libcurl's descriptors and timer ---- */

static int
watch_socket(CURL *easy, curl_socket_t fd, int what, void *arg, void *known)
{
	struct leat_wire_loop *loop = arg;
	struct epoll_event event = {.data.u64 = (uint64_t)fd << 1 | 1};

	(void)easy;
	(void)known;
	if (what == CURL_POLL_REMOVE) {
		epoll_ctl(loop->epoll, EPOLL_CTL_DEL, fd, NULL);
		return 0;
	}
	if (what & CURL_POLL_IN)
		event.events |= EPOLLIN;
	if (what & CURL_POLL_OUT)
		event.events |= EPOLLOUT;
	if (epoll_ctl(loop->epoll, EPOLL_CTL_ADD, fd, &event) != 0 && errno == EEXIST)
		epoll_ctl(loop->epoll, EPOLL_CTL_MOD, fd, &event);
	return 0;
}

static int
set_timer(CURLM *multi, long ms, void *arg)
{
	struct leat_wire_loop *loop = arg;

	(void)multi;
	loop->multi_due_ns = ms < 0 ? UINT64_MAX : leat_now() + (uint64_t)ms * millisecond;
	return 0;
}

static void
take_connected(struct leat_wire_loop *loop)
{
	const struct leat_curl *curl = loop->wire->curl;
	CURLMsg *message;
	int left;

	while ((message = curl->multi_info_read(loop->multi, &left)) != NULL) {
		CURLcode code = message->data.result;
		char *link = NULL;

		if (message->msg != CURLMSG_DONE)
			continue;
		curl->easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &link);
		leat_link_connected((struct leat_link *)(void *)link, code);
	}
}

static void
drive_libcurl(struct leat_wire_loop *loop, curl_socket_t fd, unsigned events)
{
	int running, what = 0;

	if (events & EPOLLIN)
		what |= CURL_CSELECT_IN;
	if (events & EPOLLOUT)
		what |= CURL_CSELECT_OUT;
	if (events & (EPOLLERR | EPOLLHUP))
		what |= CURL_CSELECT_ERR;
	loop->wire->curl->multi_socket_action(loop->multi, fd, what, &running);
	take_connected(loop);
}

/* ---- opening and closing ---- */

enum leat_status
leat_loop_open(struct leat_wire_loop *loop, struct leat_wire *wire, unsigned index, struct leat_err *err)
{
	struct epoll_event event = {.events = EPOLLIN};
	const struct leat_curl *curl = wire->curl;

	*loop = (struct leat_wire_loop){.wire = wire, .index = index, .epoll = -1, .event = -1};
	pthread_mutex_init(&loop->lock, NULL);
	loop->incoming_end = &loop->incoming;
	loop->multi_due_ns = UINT64_MAX;
	loop->random = leat_now() * 2 + 1;
	loop->room = wire->most_links / wire->loops + (index < wire->most_links % wire->loops);
	loop->link = leat_alloc_array(wire->mem, loop->room, sizeof(*loop->link));
	loop->scratch = leat_alloc(wire->mem, LEAT_WIRE_SCRATCH);
	if (!loop->link || !loop->scratch)
		return leat_fail_mem(err, wire->mem, LEAT_WIRE_SCRATCH, "network connections");
	loop->epoll = epoll_create1(EPOLL_CLOEXEC);
	loop->event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (loop->epoll < 0 || loop->event < 0 || epoll_ctl(loop->epoll, EPOLL_CTL_ADD, loop->event, &event) != 0)
		return leat_fail_errno(err, errno, "cannot wait for the network");
	loop->multi = curl->multi_init();
	if (!loop->multi)
		return leat_fail(err, LEAT_NOMEM, "out of memory for network connections");
	curl->multi_setopt(loop->multi, CURLMOPT_SOCKETFUNCTION, watch_socket);
	curl->multi_setopt(loop->multi, CURLMOPT_SOCKETDATA, loop);
	curl->multi_setopt(loop->multi, CURLMOPT_TIMERFUNCTION, set_timer);
	curl->multi_setopt(loop->multi, CURLMOPT_TIMERDATA, loop);
	/* libcurl closes connections beyond this number, even those in use. */
	curl->multi_setopt(loop->multi, CURLMOPT_MAXCONNECTS, (long)(2 * loop->room));
	return LEAT_OK;
}

void
leat_loop_close(struct leat_wire_loop *loop)
{
	if (!loop->wire)
		return;
	if (loop->multi)
		loop->wire->curl->multi_cleanup(loop->multi);
	if (loop->epoll >= 0)
		close(loop->epoll);
	if (loop->event >= 0)
		close(loop->event);
	leat_free(loop->wire->mem, loop->link);
	leat_free(loop->wire->mem, loop->scratch);
	pthread_mutex_destroy(&loop->lock);
}

void
leat_loop_wake(struct leat_wire_loop *loop, bool cancels, bool stop)
{
	uint64_t one = 1;
	bool awake;

	pthread_mutex_lock(&loop->lock);
	awake = loop->awake;
	loop->awake = true;
	loop->cancels |= cancels;
	loop->stop |= stop;
	pthread_mutex_unlock(&loop->lock);
	if (!awake && write(loop->event, &one, sizeof(one)) < 0)
		return; /* the counter is full: it is awake */
}

/* ---- the queues ---- */

static struct leat_origin_loop *
own_part(const struct leat_wire_loop *loop, struct leat_origin *origin)
{
	return &origin->loop[loop->index];
}

void
leat_loop_put(struct leat_wire_loop *loop, struct leat_exchange *exchange)
{
	struct leat_origin_loop *own = own_part(loop, exchange->origin);

	if (!own->queue_end) {
		own->queue_end = &own->queue;
		own->next = loop->origins;
		loop->origins = exchange->origin;
	}
	exchange->next = NULL;
	*own->queue_end = exchange;
	own->queue_end = &exchange->next;
	own->waiting++;
}

static struct leat_exchange *
take_first(struct leat_origin_loop *own)
{
	struct leat_exchange *exchange = own->queue;

	own->queue = exchange->next;
	if (!own->queue)
		own->queue_end = &own->queue;
	own->waiting--;
	return exchange;
}

struct leat_exchange *
leat_loop_take_all(struct leat_wire_loop *loop, struct leat_origin *origin)
{
	struct leat_origin_loop *own = own_part(loop, origin);
	struct leat_exchange *all = own->queue;

	own->queue = NULL;
	if (own->queue_end)
		own->queue_end = &own->queue;
	own->waiting = 0;
	return all;
}

struct leat_link *
leat_loop_find_idle(struct leat_wire_loop *loop, const struct leat_origin *origin, const struct leat_link *other)
{
	struct leat_link *spare = NULL;
	uint32_t refused = 0;

	for (struct leat_link *link = loop->newest_idle; link; link = link->older) {
		if (link->origin != origin || !leat_hosts_may_take(link, &refused))
			continue;
		if (!other || !link->address || link->address != other->address)
			return link;
		if (!spare)
			spare = link;
	}
	return spare;
}

/* After a connection failed while others work, there are no new ones for a while. */
static bool
is_held(const struct leat_origin_loop *own)
{
	return own->hold_until_ns && leat_now() < own->hold_until_ns;
}

static bool
may_connect(const struct leat_wire_loop *loop, struct leat_origin *origin)
{
	size_t most = atomic_load_explicit(&origin->answered, memory_order_relaxed) ? CONNECTS : CONNECTS_AT_FIRST;
	const struct leat_origin_loop *own = &origin->loop[loop->index];

	return loop->connecting < most && own->connecting < own->waiting + own->hedge.wanted && !is_held(own) &&
	       leat_origin_may_connect(loop, origin) && leat_hosts_may_connect(loop, origin);
}

/* A connection to another place makes room. The one unused longest is at the end. */
static bool
make_room(struct leat_wire_loop *loop)
{
	struct leat_link *link = loop->newest_idle;

	if (loop->links < loop->room)
		return true;
	while (link && link->older)
		link = link->older;
	if (link)
		leat_link_close(link);
	return link != NULL;
}

static void
fail_memory(struct leat_wire_loop *loop, struct leat_exchange *exchange)
{
	exchange->kind->fail(exchange, LEAT_NOMEM, "there is no memory for a connection");
	leat_exchange_over(loop, exchange, LEAT_NOMEM);
}

static void
serve(struct leat_wire_loop *loop, struct leat_origin *origin)
{
	struct leat_origin_loop *own = own_part(loop, origin);
	struct leat_link *link = NULL;

	if (own->hedge.wanted)
		leat_hedge_assign(loop, origin);
	while (own->queue && (link = leat_loop_find_idle(loop, origin, NULL)) != NULL &&
	       leat_origin_may_begin(loop, origin))
		leat_link_begin(link, take_first(own));
	if (own->queue && !link)
		leat_hosts_close_refused(loop, origin);
	while ((own->queue || own->hedge.wanted) && may_connect(loop, origin) && make_room(loop))
		if (!leat_link_open(loop, origin)) {
			if (!loop->links && own->queue) /* none will ever come */
				fail_memory(loop, take_first(own));
			return;
		}
	/* The server wants no more connections than other threads have. */
	if (own->queue && is_held(own) && !own->links && !own->connecting)
		leat_wire_hand_over(loop, origin);
}

static void
serve_all(struct leat_wire_loop *loop)
{
	for (struct leat_origin *origin = loop->origins; origin; origin = own_part(loop, origin)->next) {
		leat_origin_demand(loop, origin);
		if (own_part(loop, origin)->queue || own_part(loop, origin)->hedge.wanted)
			serve(loop, origin);
	}
}

/* Ends those of a list that are cancelled; returns the others. */
static struct leat_exchange *
end_cancelled(struct leat_wire_loop *loop, struct leat_exchange *list)
{
	struct leat_exchange *left = NULL, **end = &left;

	while (list) {
		struct leat_exchange *exchange = list;

		list = exchange->next;
		exchange->next = NULL;
		if (leat_exchange_cancelled(exchange)) {
			leat_exchange_over(loop, exchange, LEAT_AGAIN);
		} else {
			*end = exchange;
			end = &exchange->next;
		}
	}
	return left;
}

static void
cancel_waiting(struct leat_wire_loop *loop)
{
	loop->delayed = end_cancelled(loop, loop->delayed);
	for (struct leat_origin *origin = loop->origins; origin; origin = own_part(loop, origin)->next) {
		struct leat_exchange *left = end_cancelled(loop, leat_loop_take_all(loop, origin));

		while (left) {
			struct leat_exchange *exchange = left;

			left = exchange->next;
			leat_loop_put(loop, exchange);
		}
	}
}

/* Bytes of an answer that nobody wants would have to be read before the connection is free, so it is closed. */
static void
cancel_all(struct leat_wire_loop *loop)
{
	cancel_waiting(loop);
	for (size_t i = loop->links; i-- > 0;) {
		struct leat_link *link = i < loop->links ? loop->link[i] : NULL;
		struct leat_exchange *exchange = link ? link->exchange : NULL;

		if (exchange && leat_exchange_cancelled(exchange)) {
			if (link->twin)
				leat_link_close(link->twin);
			leat_link_close(link);
			leat_exchange_over(loop, exchange, LEAT_AGAIN);
		}
	}
}

/* What other threads want. True: stop. */
static bool
take_incoming(struct leat_wire_loop *loop)
{
	struct leat_exchange *incoming;
	bool cancels, stop;
	uint64_t count;

	if (read(loop->event, &count, sizeof(count)) < 0)
		return false;
	pthread_mutex_lock(&loop->lock);
	incoming = loop->incoming;
	loop->incoming = NULL;
	loop->incoming_end = &loop->incoming;
	cancels = loop->cancels;
	stop = loop->stop;
	loop->awake = loop->cancels = false;
	pthread_mutex_unlock(&loop->lock);
	while (incoming) {
		struct leat_exchange *exchange = incoming;

		incoming = exchange->next;
		if (leat_exchange_cancelled(exchange))
			leat_exchange_over(loop, exchange, LEAT_AGAIN);
		else
			leat_loop_put(loop, exchange);
	}
	if (cancels)
		cancel_all(loop);
	return stop;
}

/* ---- time ---- */

static void
end_pauses(struct leat_wire_loop *loop, uint64_t now)
{
	for (struct leat_exchange **at = &loop->delayed; *at;)
		if ((*at)->due_ns <= now) {
			struct leat_exchange *exchange = *at;

			*at = exchange->next;
			leat_loop_put(loop, exchange);
		} else {
			at = &(*at)->next;
		}
}

/* What waits for servers that have been down for too long fails. */
static void
check_origins(struct leat_wire_loop *loop, uint64_t now)
{
	struct leat_lost lost;

	for (struct leat_origin *origin = loop->origins; origin; origin = own_part(loop, origin)->next) {
		struct leat_exchange *waiting = NULL, *next;
		struct leat_origin_loop *own = own_part(loop, origin);

		if (now - own->learned_ns >= LEARN_MS * millisecond) {
			own->timeout_ns = leat_origin_timeout(origin, loop->wire->settings.timeout_ns);
			own->learned_ns = now;
		}
		if (own->queue && leat_origin_is_lost(origin, leat_wire_patience(loop->wire, origin), now, &lost))
			waiting = leat_loop_take_all(loop, origin);
		for (; waiting; waiting = next) {
			next = waiting->next;
			leat_exchange_lost(loop, waiting, &lost);
		}
	}
}

static void
check_timeouts(struct leat_wire_loop *loop, uint64_t now)
{
	if (now - loop->stalled_ns < 2 * STALL_MS * millisecond)
		return;
	for (size_t i = loop->links; i-- > 0;) {
		struct leat_link *link = i < loop->links ? loop->link[i] : NULL;
		const char *why = link ? leat_link_overdue(link, now) : NULL;

		if (!why)
			continue;
		atomic_fetch_add_explicit(&link->origin->hedging.timeouts, 1, memory_order_relaxed);
		link->given_up = true;
		link->exchange->given_up++;
		leat_link_fail(link, why, false);
	}
}

static void
check_time(struct leat_wire_loop *loop)
{
	uint64_t now = leat_now();

	if (loop->multi_due_ns <= now) {
		loop->multi_due_ns = UINT64_MAX;
		drive_libcurl(loop, CURL_SOCKET_TIMEOUT, 0);
	}
	if (now - loop->checked_ns < TICK_MS * millisecond)
		return;
	if (now - loop->checked_ns > STALL_MS * millisecond)
		loop->stalled_ns = now;
	loop->checked_ns = now;
	end_pauses(loop, now);
	check_origins(loop, now);
	leat_hosts_tick(loop, now);
	check_timeouts(loop, now);
	if (loop->busy && loop->wire->settings.storage->hedge)
		leat_hedge_check(loop, now);
}

static bool
is_waited(const struct leat_wire_loop *loop)
{
	for (struct leat_origin *origin = loop->origins; origin; origin = own_part(loop, origin)->next)
		if (own_part(loop, origin)->queue)
			return true;
	return false;
}

/* How long epoll may wait, in ms. */
static int
time_to_wait(const struct leat_wire_loop *loop)
{
	uint64_t now = leat_now(), ms;
	int wait = loop->delayed || loop->busy || is_waited(loop) ? TICK_MS : -1;

	if (loop->multi_due_ns == UINT64_MAX)
		return wait;
	ms = loop->multi_due_ns > now ? (loop->multi_due_ns - now + millisecond - 1) / millisecond : 0;
	return wait < 0 || ms < (uint64_t)wait ? (int)(ms < 1000 ? ms : 1000) : wait;
}

/* ---- the loop ---- */

/* A connection may be closed by an event before its own: then its later events must not count. */
static bool
is_open(const struct leat_wire_loop *loop, const struct leat_link *link)
{
	for (size_t i = 0; i < loop->links; i++)
		if (loop->link[i] == link)
			return true;
	return false;
}

/* True: stop. */
static bool
handle_events(struct leat_wire_loop *loop, const struct epoll_event *event, int count)
{
	size_t closed = loop->closed;
	bool stop = false;

	for (int i = 0; i < count; i++) {
		struct leat_link *link = event[i].data.ptr;

		if (event[i].data.u64 == 0)
			stop = take_incoming(loop);
		else if (event[i].data.u64 & 1)
			drive_libcurl(loop, (curl_socket_t)(event[i].data.u64 >> 1), event[i].events);
		else if (closed == loop->closed || is_open(loop, link))
			leat_link_event(link, event[i].events);
	}
	return stop;
}

void
leat_loop_run(struct leat_wire_loop *loop)
{
	struct epoll_event event[EVENTS];
	bool stop = false;

	while (!stop) {
		int count = epoll_wait(loop->epoll, event, EVENTS, time_to_wait(loop));

		stop = count > 0 && handle_events(loop, event, count);
		check_time(loop);
		serve_all(loop);
	}
	while (loop->links)
		leat_link_close(loop->link[loop->links - 1]);
}
