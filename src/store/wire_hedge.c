/* wire_hedge.c - a second request for a read whose answer does not come
 *
 * A read (or a look at an object) that has waited longer for its first byte than 99 % of the recent ones is sent again
 * on another connection. Both connections then carry the same exchange and know each other as twins. Nothing is written
 * to the exchange before a head is complete, and the first complete head *claims* the exchange: the other connection is
 * closed at once, so two answers never write to the same memory, and the exchange ends once. Until then, a twin that
 * fails is closed quietly. If the second request is late too, the first one is given up, and a third may follow.
 *
 * Hedges must not burden a server that is merely slow. So each request earns 2 % of a hedge, and
 * with few saved up a read waits twice as long. When much is late at once, hedges go one at a time:
 * if the server is slow, that one is late as well, and no other follows. For some seconds after
 * the server asked us to slow down, there are none.
 *
 * Latencies of requests that were given up are not recorded: if they counted, one hanging request
 * in fifty would move the percentile up, and every hedge would come later than the one before. */
#include "store/wire_loop.h"

enum {
	COST = 50,         /* requests that earn a hedge */
	AT_FIRST = 4,      /* hedges of a new origin */
	SAVED = 16,        /* hedges, at most */
	LEAST_KNOWN = 100, /* latencies */
	UNSURE = 8,        /* times the longest, with fewer */
	FEW_LATE = 3,      /* is not much */
	HOPELESS = 8,      /* half waits after which a hedge that hangs, too, does not keep others back */
};

static const uint64_t shortest_wait_ns = 20 * 1000 * 1000, first_wait_ns = 3 * 1000000000ull,
		      calm_ns = 10 * 1000000000ull;

static struct leat_hedge_counts *
counts_of(const struct leat_wire_loop *loop, struct leat_origin *origin)
{
	return &origin->loop[loop->index].hedge;
}

/* ---- the budget ---- */

static bool
pay(struct leat_hedging *hedging)
{
	int had = atomic_load_explicit(&hedging->spent, memory_order_relaxed);

	do
		if (had > (AT_FIRST - 1) * COST)
			return false;
	while (!atomic_compare_exchange_weak(&hedging->spent, &had, had + COST));
	return true;
}

/* `spent` falls with each request: zero is what a new origin has, negative is more. */
static void
earn(struct leat_hedging *hedging)
{
	if (atomic_load_explicit(&hedging->spent, memory_order_relaxed) > -(SAVED - AT_FIRST) * COST)
		atomic_fetch_sub_explicit(&hedging->spent, 1, memory_order_relaxed);
}

/* ---- which requests are late ---- */

static bool
is_read(const struct leat_exchange *exchange)
{
	return (exchange->head_only || (exchange->kind->wants && exchange->want)) && !exchange->body_len &&
	       !exchange->once;
}

static bool
is_unanswered(const struct leat_link *link)
{
	return link->exchange && !link->heard && is_read(link->exchange);
}

/* While few latencies are known, only what is very late counts: the first address of a host may be dead. */
static uint64_t
usual_wait(const struct leat_latency *latency)
{
	uint64_t wait = leat_latency_percentile(latency, 99, LEAST_KNOWN);

	if (wait)
		return wait < shortest_wait_ns ? shortest_wait_ns : wait;
	wait = UNSURE * leat_latency_percentile(latency, 100, 1);
	return wait < first_wait_ns ? first_wait_ns : wait;
}

/* How long a read to this origin waits before it is hedged; UINT64_MAX: none is. */
static uint64_t
wait_for(struct leat_origin *origin, uint64_t now)
{
	struct leat_hedging *hedging = &origin->hedging;
	int spent = atomic_load_explicit(&hedging->spent, memory_order_relaxed);
	uint64_t wait = usual_wait(&origin->latency);

	if (now < atomic_load_explicit(&hedging->calm_until_ns, memory_order_relaxed))
		return UINT64_MAX;
	return spent > 0 ? 2 * wait : wait;
}

static bool
is_late(const struct leat_link *link, uint64_t now)
{
	return is_unanswered(link) && now - link->begin_ns > counts_of(link->loop, link->origin)->wait_ns;
}

/* Fills in the counts of each origin that has connections here. */
static void
count_late(struct leat_wire_loop *loop, uint64_t now)
{
	for (size_t i = 0; i < loop->links; i++) {
		struct leat_origin *origin = loop->link[i]->origin;
		struct leat_hedge_counts *own = counts_of(loop, origin);

		if (own->checked_ns != now) {
			own->wait_ns = wait_for(origin, now);
			own->recent += own->answers - own->recent / 4;
			own->answers = 0;
		}
		own->checked_ns = now;
		own->late = own->busy = own->under_way = 0;
	}
	for (size_t i = 0; i < loop->links; i++) {
		const struct leat_link *link = loop->link[i];
		struct leat_hedge_counts *own = counts_of(loop, link->origin);

		own->busy += link->exchange && !link->is_hedge;
		own->late += !link->is_hedge && is_late(link, now);
		own->under_way += link->wants_hedge || (link->is_hedge && link->twin &&
		                                        now - link->begin_ns < HOPELESS * (own->wait_ns / 2));
	}
}

static bool
much_is_late(const struct leat_hedge_counts *own)
{
	return own->late > FEW_LATE && own->late * 4 > own->busy + own->recent;
}

/* Whether this request, which is late, gets a hedge now. */
static bool
is_granted(const struct leat_link *link)
{
	struct leat_hedge_counts *own = counts_of(link->loop, link->origin);

	if (link->wants_hedge || (link->twin && !link->is_hedge))
		return false;
	if (much_is_late(own) && own->under_way > 0)
		return false;
	if (!pay(&link->origin->hedging))
		return false;
	own->under_way++;
	return true;
}

void
leat_hedge_check(struct leat_wire_loop *loop, uint64_t now)
{
	count_late(loop, now);
	for (size_t i = loop->links; i-- > 0;) {
		struct leat_link *link = i < loop->links ? loop->link[i] : NULL;

		if (!link || !is_late(link, now) || !is_granted(link))
			continue;
		if (link->twin) {
			link->twin->is_lost = true;
			leat_link_close(link->twin);
		} /* both hang: this one takes the place of the first */
		link->wants_hedge = true;
		counts_of(loop, link->origin)->wanted++;
	}
}

/* ---- sending ---- */

static void
stop_wanting(struct leat_link *link)
{
	link->wants_hedge = false;
	counts_of(link->loop, link->origin)->wanted--;
}

void
leat_hedge_unwant(struct leat_link *link)
{
	stop_wanting(link);
	atomic_fetch_sub(&link->origin->hedging.spent, COST);
}

/* The same bytes: the signature of a request that was just sent is still good. */
static void
send_again(struct leat_link *link, struct leat_link *spare)
{
	spare->request.len = 0;
	spare->request.failed = false;
	leat_str_addn(&spare->request, link->request.text, link->request.len);
	if (spare->request.failed) {
		leat_hedge_unwant(link);
		return;
	}
	stop_wanting(link);
	spare->twin = link;
	link->twin = spare;
	link->is_hedge = false;
	spare->is_hedge = true;
	atomic_fetch_add_explicit(&link->origin->hedging.sent, 1, memory_order_relaxed);
	spare->head_start_ns = link->head_start_ns + (leat_now() - link->begin_ns);
	leat_link_send(spare, link->exchange);
}

void
leat_hedge_assign(struct leat_wire_loop *loop, struct leat_origin *origin)
{
	for (size_t i = loop->links; i-- > 0 && counts_of(loop, origin)->wanted;) {
		struct leat_link *link = i < loop->links ? loop->link[i] : NULL, *spare;

		if (!link || !link->wants_hedge || link->origin != origin)
			continue;
		spare = leat_loop_find_idle(loop, origin, link);
		if (!spare)
			return;
		send_again(link, spare);
	}
}

/* ---- what connections report ---- */

void
leat_hedge_begin(struct leat_link *link)
{
	link->is_hedge = false;
	link->head_start_ns = 0;
	if (is_read(link->exchange))
		earn(&link->origin->hedging);
	atomic_fetch_add_explicit(&link->origin->hedging.requests, 1, memory_order_relaxed);
}

static void
hear(struct leat_link *link, uint64_t now)
{
	leat_latency_add(&link->origin->latency, now - link->begin_ns);
	leat_histogram_add(&link->origin->answers, now - link->begin_ns);
}

void
leat_hedge_heard(struct leat_link *link, uint64_t now)
{
	counts_of(link->loop, link->origin)->answers++;
	if (is_read(link->exchange))
		hear(link, now);
	if (link->wants_hedge)
		leat_hedge_unwant(link);
}

void
leat_hedge_calm(struct leat_origin *origin)
{
	atomic_store_explicit(&origin->hedging.calm_until_ns, leat_now() + calm_ns, memory_order_relaxed);
}

bool
leat_hedge_claim(struct leat_link *link)
{
	if (link->twin && leat_status_may_pass(link->head.status)) {
		leat_hedge_calm(link->origin);
		leat_link_close(link); /* the other may fare better */
		return false;
	}
	if (link->twin) {
		link->twin->is_lost = link->is_hedge;
		leat_link_close(link->twin);
	}
	link->exchange->took_ns += link->head_start_ns;
	if (link->is_hedge)
		atomic_fetch_add_explicit(&link->origin->hedging.won, 1, memory_order_relaxed);
	return true;
}
