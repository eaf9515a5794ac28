/* addresses.c - see addresses.h */
#include "store/addresses.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum {
	PROBES = 2,                /* connections at a time to an address that is not known to work */
	LOST = 3,                  /* requests in a row, after which an address is left alone */
	MEASURED = 8,              /* requests, before an address is called slow */
	UNMEASURED = 4,            /* requests at a time until then, if another address is measured */
	LONGEST_PAUSE = 16,        /* seconds between tries of a slow address, before the last doubling */
	SMOOTHING = 16,            /* answers that the moving average remembers */
	REQUEST_BYTES = 64 * 1024, /* what a request costs, besides its bytes */
	MANY = 1000000,            /* connections */
	LONGEST_HOLD = 6,          /* doublings of a second */
};

static const uint64_t second = 1000000000, patience = 500 * 1000000ull, forget_ns = 10 * 1000000000ull,
		      settle_ns = 300 * 1000000ull;
static const double is_slow = 2, is_losing = 0.25;

void
leat_addresses_init(struct leat_addresses *set)
{
	memset(set, 0, sizeof(*set));
	pthread_mutex_init(&set->lock, NULL);
}

void
leat_addresses_free(struct leat_addresses *set)
{
	pthread_mutex_destroy(&set->lock);
}

/* ---- under the lock ---- */

static struct leat_address *
find(struct leat_addresses *set, const char *text)
{
	for (size_t i = 0; i < LEAT_ADDRESSES; i++)
		if (strcmp(set->address[i].text, text) == 0)
			return &set->address[i];
	return NULL;
}

static bool
is_in_use(const struct leat_address *address)
{
	return address->connecting || address->links;
}

static struct leat_address *
free_place(struct leat_addresses *set)
{
	struct leat_address *place = find(set, "");

	for (size_t i = 0; i < LEAT_ADDRESSES && !place; i++)
		if (!set->address[i].listed && !is_in_use(&set->address[i]))
			place = &set->address[i];
	return place;
}

/* It should carry requests like any other. */
static bool
is_healthy(const struct leat_address *address, uint64_t now)
{
	return address->text[0] && address->works && address->lost < LOST && now >= address->hold_until_ns;
}

static double
cost(const struct leat_address *address)
{
	return address->ns / (address->bytes + REQUEST_BYTES);
}

/* Of requests, compared with the fastest. 1: it is not slow, or nobody knows. */
static double
weight(const struct leat_addresses *set, const struct leat_address *address, uint64_t now)
{
	double least = 0, ratio;

	for (size_t i = 0; i < LEAT_ADDRESSES; i++) {
		const struct leat_address *other = &set->address[i];

		if (is_healthy(other, now) && other->measured >= MEASURED && other->losing <= is_losing &&
		    (least == 0 || cost(other) < least))
			least = cost(other);
	}
	if (least == 0 || address->measured < MEASURED)
		return 1;
	if (address->losing > is_losing)
		return 0;
	ratio = cost(address) / least;
	return ratio < is_slow ? 1 : 1 / (ratio * ratio);
}

static bool
another_is_healthy(const struct leat_addresses *set, const struct leat_address *address, uint64_t now)
{
	for (size_t i = 0; i < LEAT_ADDRESSES; i++)
		if (&set->address[i] != address && is_healthy(&set->address[i], now))
			return true;
	return false;
}

static void
hold(struct leat_address *address, uint64_t now)
{
	unsigned doublings = address->failures < LONGEST_HOLD ? address->failures : LONGEST_HOLD;

	address->hold_until_ns = now + (second << doublings);
	address->failures++;
}

/* ---- resolving ---- */

void
leat_addresses_set(struct leat_addresses *set, const leat_address_text *text, unsigned count)
{
	pthread_mutex_lock(&set->lock);
	for (size_t i = 0; i < LEAT_ADDRESSES; i++)
		set->address[i].listed = false;
	set->count = 0;
	for (unsigned i = 0; i < count; i++) {
		struct leat_address *address = find(set, text[i]);

		if (!address && (address = free_place(set)) != NULL) {
			*address = (struct leat_address){0};
			snprintf(address->text, sizeof(address->text), "%s", text[i]);
		}
		if (!address || address->listed)
			continue;
		address->listed = true;
		set->count++;
	}
	pthread_mutex_unlock(&set->lock);
}

/* ---- connections ---- */

static bool
may_connect(const struct leat_address *address, uint64_t now)
{
	if (!address->listed || now < address->hold_until_ns)
		return false;
	if (address->connecting && now - address->connecting_ns > patience)
		return false;
	return address->works || address->connecting < PROBES;
}

/* One that has not been tried is a better hope than one that has just lost a request. */
static unsigned
doubts(const struct leat_address *address)
{
	return address->works && !address->lost ? 0 : address->works ? 2 : 1;
}

struct leat_address *
leat_addresses_choose(struct leat_addresses *set, bool only, uint64_t now)
{
	struct leat_address *best = NULL;
	double least = 0;

	pthread_mutex_lock(&set->lock);
	for (size_t i = 0; i < LEAT_ADDRESSES; i++) {
		struct leat_address *address = &set->address[i];
		double share;

		if (!may_connect(address, now))
			continue;
		share = (address->links + address->connecting + 1) / fmax(weight(set, address, now), 1.0 / MANY);
		if (!is_in_use(address) && now - address->taken_ns > forget_ns)
			share = 1;
		if (only)
			share += doubts(address) * MANY;
		if (!best || share < least) {
			best = address;
			least = share;
		}
	}
	if (best) {
		if (!best->connecting++)
			best->connecting_ns = now;
		best->attempts++;
	}
	pthread_mutex_unlock(&set->lock);
	return best;
}

bool
leat_addresses_is_settling(struct leat_addresses *set, uint64_t now)
{
	bool tried = false, untried = false;

	pthread_mutex_lock(&set->lock);
	for (size_t i = 0; i < LEAT_ADDRESSES; i++) {
		const struct leat_address *address = &set->address[i];

		if (!address->listed || address->works || now < address->hold_until_ns)
			continue;
		untried |= address->connecting < PROBES;
		tried |= address->connecting == PROBES && now - address->connecting_ns < settle_ns;
	}
	pthread_mutex_unlock(&set->lock);
	return tried && !untried;
}

void
leat_addresses_connected(struct leat_addresses *set, struct leat_address *address, uint64_t now)
{
	pthread_mutex_lock(&set->lock);
	address->connecting--;
	address->links++;
	address->connecting_ns = now;
	address->works = true;
	if (address->lost < LOST)
		address->failures = 0;
	pthread_mutex_unlock(&set->lock);
}

bool
leat_addresses_failed(struct leat_addresses *set, struct leat_address *address, uint64_t now)
{
	bool others = false;

	pthread_mutex_lock(&set->lock);
	/* A host that has connections may just want no more. */
	if (address->links == 0) {
		address->works = false;
		if (now >= address->hold_until_ns)
			hold(address, now);
	} else {
		address->hold_until_ns = now + second;
	}
	for (size_t i = 0; i < LEAT_ADDRESSES; i++)
		others |= &set->address[i] != address && may_connect(&set->address[i], now);
	pthread_mutex_unlock(&set->lock);
	return others;
}

struct leat_address *
leat_addresses_find(struct leat_addresses *set, const char *text)
{
	struct leat_address *address;

	pthread_mutex_lock(&set->lock);
	address = *text ? find(set, text) : NULL;
	if (address) {
		address->links++;
		address->works = true;
	}
	pthread_mutex_unlock(&set->lock);
	return address;
}

void
leat_addresses_closed(struct leat_addresses *set, struct leat_address *address, bool was_connecting)
{
	pthread_mutex_lock(&set->lock);
	if (was_connecting)
		address->connecting--;
	else
		address->links--;
	pthread_mutex_unlock(&set->lock);
}

bool
leat_addresses_is_last(struct leat_addresses *set, const struct leat_address *address)
{
	bool last;

	pthread_mutex_lock(&set->lock);
	last = address->links < 2;
	pthread_mutex_unlock(&set->lock);
	return last;
}

/* ---- requests ---- */

/* Its share of the requests that are under way, and of one more. */
static unsigned
share_of(const struct leat_addresses *set, const struct leat_address *address, uint64_t now)
{
	double all = 0, own = weight(set, address, now);
	unsigned busy = 1;

	if (own == 1)
		return UINT32_MAX;
	for (size_t i = 0; i < LEAT_ADDRESSES; i++) {
		busy += set->address[i].busy;
		all += is_healthy(&set->address[i], now) ? weight(set, &set->address[i], now) : 0;
	}
	return (unsigned)(busy * own / all);
}

static bool
another_is_measured(const struct leat_addresses *set, const struct leat_address *address, uint64_t now)
{
	for (size_t i = 0; i < LEAT_ADDRESSES; i++)
		if (&set->address[i] != address && is_healthy(&set->address[i], now) &&
		    set->address[i].measured >= MEASURED)
			return true;
	return false;
}

/* The next try of a slow address comes later each time. */
static void
set_pause(const struct leat_addresses *set, struct leat_address *address, uint64_t now)
{
	if (weight(set, address, now) == 1)
		address->probe_ns = 0;
	else if (address->is_tried && address->probe_ns < LONGEST_PAUSE * second)
		address->probe_ns = address->probe_ns ? 2 * address->probe_ns : second;
}

static bool
is_due(const struct leat_address *address, uint64_t now)
{
	return address->busy == 0 && now - address->taken_ns > (address->probe_ns ? address->probe_ns : second);
}

bool
leat_addresses_may_take(struct leat_addresses *set, const struct leat_address *address, uint64_t now)
{
	bool may = true;

	pthread_mutex_lock(&set->lock);
	if (another_is_healthy(set, address, now)) {
		bool probe = is_due(address, now);

		if (address->lost >= LOST)
			may = probe && now >= address->hold_until_ns;
		else if (address->measured < MEASURED && another_is_measured(set, address, now))
			may = address->busy < UNMEASURED;
		else
			may = address->busy < share_of(set, address, now) || probe;
	}
	pthread_mutex_unlock(&set->lock);
	return may;
}

void
leat_addresses_begin(struct leat_addresses *set, struct leat_address *address, uint64_t now)
{
	pthread_mutex_lock(&set->lock);
	address->is_tried = is_due(address, now);
	address->busy++;
	address->taken_ns = now;
	pthread_mutex_unlock(&set->lock);
}

/* One that takes unusually long says more about this machine than about the address: it counts as four times the
 * average at most. Faster ones count double, so that an address that has recovered is soon found out. */
static void
measure_time(struct leat_address *address, double part, uint64_t ns, uint64_t bytes)
{
	bool few = address->measured < MEASURED;
	double time = few || (double)ns < 4 * address->ns ? (double)ns : 4 * address->ns;

	address->ns += (time - address->ns) * (!few && time < address->ns ? 2 * part : part);
	address->bytes += ((double)bytes - address->bytes) * part;
}

/* How long a lost request would have taken is not known: a second one, sent elsewhere, was faster, or there was never
 * an answer. Its time would make a slow address look faster the sooner it is given up. */
static void
measure(struct leat_address *address, bool lost, uint64_t ns, uint64_t bytes)
{
	bool few = address->measured < MEASURED;
	double part = few ? 1.0 / (address->measured + 1) : 1.0 / SMOOTHING;

	address->losing += (lost - address->losing) * part;
	if (!lost || address->ns == 0)
		measure_time(address, part, ns, bytes);
	address->measured += few;
}

void
leat_addresses_end(struct leat_addresses *set, struct leat_address *address, enum leat_address_result result,
                   uint64_t ns, uint64_t bytes, uint64_t now)
{
	pthread_mutex_lock(&set->lock);
	address->busy--;
	if (result == LEAT_ADDRESS_ANSWERED) {
		if (address->lost >= LOST)
			address->failures = 0;
		address->lost = 0;
		address->answers++;
	} else if (result == LEAT_ADDRESS_LOST && ++address->lost >= LOST && now >= address->hold_until_ns) {
		hold(address, now);
	}
	if (ns && result != LEAT_ADDRESS_DROPPED)
		measure(address, result == LEAT_ADDRESS_LOST, ns, bytes);
	if (address->busy == 0)
		set_pause(set, address, now);
	pthread_mutex_unlock(&set->lock);
}
