/* wire_hosts.c - spread the connections of the wire over all addresses of a host
 *
 * The first connection is libcurl's own choice, with all it knows: IPv6 and IPv4 tried at nearly
 * the same time, proxies, the setting `resolve`. If it leads straight to the server, not to a
 * proxy, the host is resolved by us as well, and from then on each connection is given one address
 * (CURLOPT_CONNECT_TO; the names in the certificate and in the request stay the host's). Which one,
 * addresses.c says. The host is resolved again after a minute, or when an address fails. */
#include "store/wire_loop.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "store/lookup.h"
#include "store/settings.h"

enum { PINNED_CONNECT_MS = 3000, LINKS_AT_FIRST = 4 };

static const uint64_t again_ns = 60 * 1000000000ull, again_soon_ns = 5 * 1000000000ull, stuck_ns = 500 * 1000000ull,
		      settle_ns = 300 * 1000000ull;

static bool
has_choice(struct leat_origin *origin)
{
	return atomic_load_explicit(&origin->hosts.count, memory_order_acquire) > 1;
}

void
leat_hosts_init(struct leat_origin *origin)
{
	unsigned char bytes[16];
	bool is_address = inet_pton(AF_INET, origin->host, bytes) == 1 || inet_pton(AF_INET6, origin->host, bytes) == 1;

	leat_addresses_init(&origin->hosts.set);
	pthread_mutex_init(&origin->hosts.lock, NULL);
	atomic_init(&origin->hosts.way, is_address ? LEAT_WAY_OTHER : LEAT_WAY_UNKNOWN);
}

void
leat_hosts_free(struct leat_origin *origin)
{
	leat_lookup_drop(origin->hosts.lookup);
	pthread_mutex_destroy(&origin->hosts.lock);
	leat_addresses_free(&origin->hosts.set);
}

/* ---- resolving ---- */

/* Under the lock. */
static void
take_addresses(struct leat_hosts *hosts, const leat_address_text *text, unsigned count, uint64_t now)
{
	hosts->resolved_ns = now;
	hosts->failed = false;
	if (count == 0)
		return;
	leat_addresses_set(&hosts->set, text, count);
	atomic_store_explicit(&hosts->count, hosts->set.count, memory_order_release);
}

/* Takes the result of a lookup, or starts one if it is time. Under the lock. */
static void
refresh(const struct leat_wire *wire, struct leat_origin *origin, uint64_t now)
{
	struct leat_hosts *hosts = &origin->hosts;
	leat_address_text text[LEAT_ADDRESSES];
	unsigned count;

	if (hosts->lookup) {
		if (!leat_lookup_done(hosts->lookup, text, &count))
			return;
		take_addresses(hosts, text, count, now);
		leat_lookup_drop(hosts->lookup);
		hosts->lookup = NULL;
	}
	if (hosts->resolved_ns && now - hosts->resolved_ns < (hosts->failed ? again_soon_ns : again_ns))
		return;
	hosts->resolved_ns = now;
	count = leat_lookup_in(wire->settings.storage->resolve, origin->host, origin->port, text);
	if (count)
		take_addresses(hosts, text, count, now);
	else
		hosts->lookup = leat_lookup_start(origin->host, origin->port);
}

static void
refresh_if_direct(const struct leat_wire *wire, struct leat_origin *origin, uint64_t now)
{
	if (atomic_load(&origin->hosts.way) != LEAT_WAY_DIRECT)
		return;
	pthread_mutex_lock(&origin->hosts.lock);
	refresh(wire, origin, now);
	pthread_mutex_unlock(&origin->hosts.lock);
}

/* A connection that takes long must not keep others from being opened. */
void
leat_hosts_tick(struct leat_wire_loop *loop, uint64_t now)
{
	for (struct leat_origin *origin = loop->origins; origin; origin = origin->loop[loop->index].next)
		refresh_if_direct(loop->wire, origin, now);
	for (size_t i = 0; i < loop->links; i++) {
		struct leat_link *link = loop->link[i];

		if (link->state != LEAT_LINK_CONNECTING || link->is_stuck || !link->address ||
		    now - link->begin_ns < stuck_ns)
			continue;
		link->is_stuck = true;
		loop->connecting--;
		link->origin->loop[loop->index].connecting--;
	}
}

/* ---- connections ---- */

/* A loop opens all its connections within milliseconds. They would all lead to the address that was known first. */
bool
leat_hosts_may_connect(const struct leat_wire_loop *loop, struct leat_origin *origin)
{
	const struct leat_origin_loop *own = &origin->loop[loop->index];
	struct leat_hosts *hosts = &origin->hosts;
	int way = atomic_load(&hosts->way);
	uint64_t now;
	bool may;

	if (own->links + own->connecting < LINKS_AT_FIRST || way == LEAT_WAY_OTHER)
		return true;
	if (way == LEAT_WAY_UNKNOWN)
		return own->links == 0;
	now = leat_now();
	pthread_mutex_lock(&hosts->lock);
	refresh(loop->wire, origin, now);
	may = !hosts->lookup || hosts->set.count || now - hosts->resolved_ns > settle_ns;
	pthread_mutex_unlock(&hosts->lock);
	return may && !leat_addresses_is_settling(&hosts->set, now);
}

static bool
set_list(struct leat_link *link, CURLoption option, const char *text)
{
	const struct leat_curl *curl = link->loop->wire->curl;

	link->list = curl->slist_append(NULL, text);
	return link->list && curl->easy_setopt(link->easy, option, link->list) == CURLE_OK;
}

/* The host as the setting `resolve` has it, for libcurl. */
static void
set_resolve(struct leat_link *link)
{
	const struct leat_origin *origin = link->origin;
	leat_address_text text[LEAT_ADDRESSES];
	char list[LEAT_HOST + 16 + LEAT_ADDRESSES * (LEAT_ADDRESS_TEXT + 3)];
	unsigned count = leat_lookup_in(link->loop->wire->settings.storage->resolve, origin->host, origin->port, text);
	int used = snprintf(list, sizeof(list), "%s:%u:", origin->host, origin->port);

	for (unsigned i = 0; i < count; i++)
		used += snprintf(list + used, sizeof(list) - (size_t)used, "%s[%s]", i ? "," : "", text[i]);
	if (count)
		set_list(link, CURLOPT_RESOLVE, list);
}

void
leat_hosts_open(struct leat_link *link)
{
	struct leat_origin *origin = link->origin;
	const struct leat_curl *curl = link->loop->wire->curl;
	uint64_t now = leat_now();
	char way[LEAT_ADDRESS_TEXT + 16];

	link->begin_ns = now;
	refresh_if_direct(link->loop->wire, origin, now);
	if (has_choice(origin))
		link->address =
			leat_addresses_choose(&origin->hosts.set, origin->loop[link->loop->index].links == 0, now);
	if (!link->address) {
		set_resolve(link);
		return;
	}
	snprintf(way, sizeof(way), strchr(link->address->text, ':') ? "::[%s]:%u" : "::%s:%u", link->address->text,
	         origin->port);
	set_list(link, CURLOPT_CONNECT_TO, way);
	curl->easy_setopt(link->easy, CURLOPT_CONNECTTIMEOUT_MS, (long)PINNED_CONNECT_MS);
}

/* The address that a connection leads to, if it is one of the host's. */
static void
find_address(struct leat_link *link)
{
	struct sockaddr_storage peer;
	socklen_t len = sizeof(peer);
	leat_address_text text;

	link->is_looked_up = true;
	if (getpeername(link->fd, (struct sockaddr *)&peer, &len) == 0 &&
	    getnameinfo((struct sockaddr *)&peer, len, text, sizeof(text), NULL, 0, NI_NUMERICHOST) == 0)
		link->address = leat_addresses_find(&link->origin->hosts.set, text);
}

/* Does a connection that libcurl has made lead straight to the server? */
static bool
is_direct(struct leat_link *link, curl_socket_t fd)
{
	struct sockaddr_storage peer;
	socklen_t len = sizeof(peer);
	char port[8];
	long answered = 0;

	return link->loop->wire->curl->easy_getinfo(link->easy, CURLINFO_HTTP_CONNECTCODE, &answered) == CURLE_OK &&
	       answered == 0 && getpeername(fd, (struct sockaddr *)&peer, &len) == 0 &&
	       getnameinfo((struct sockaddr *)&peer, len, NULL, 0, port, sizeof(port), NI_NUMERICSERV) == 0 &&
	       (unsigned)atoi(port) == link->origin->port;
}

void
leat_hosts_connected(struct leat_link *link, curl_socket_t fd)
{
	struct leat_origin *origin = link->origin;
	int unknown = LEAT_WAY_UNKNOWN;

	if (link->address)
		leat_addresses_connected(&origin->hosts.set, link->address, leat_now());
	else if (atomic_load(&origin->hosts.way) == LEAT_WAY_UNKNOWN)
		atomic_compare_exchange_strong(&origin->hosts.way, &unknown,
		                               is_direct(link, fd) ? LEAT_WAY_DIRECT : LEAT_WAY_OTHER);
}

bool
leat_hosts_failed(struct leat_link *link)
{
	struct leat_hosts *hosts = &link->origin->hosts;

	if (!link->address)
		return false;
	pthread_mutex_lock(&hosts->lock);
	hosts->failed = true;
	pthread_mutex_unlock(&hosts->lock);
	return leat_addresses_failed(&hosts->set, link->address, leat_now());
}

void
leat_hosts_closed(struct leat_link *link)
{
	if (link->address)
		leat_addresses_closed(&link->origin->hosts.set, link->address, link->state == LEAT_LINK_CONNECTING);
	link->loop->wire->curl->slist_free_all(link->list);
}

/* ---- requests ---- */

bool
leat_hosts_may_take(struct leat_link *link, uint32_t *refused)
{
	struct leat_addresses *set = &link->origin->hosts.set;
	uint32_t bit;

	if (!link->address)
		return true;
	bit = UINT32_C(1) << (link->address - set->address);
	if (!(*refused & bit) && !leat_addresses_may_take(set, link->address, leat_now()))
		*refused |= bit;
	return !(*refused & bit);
}

void
leat_hosts_close_refused(struct leat_wire_loop *loop, const struct leat_origin *origin)
{
	uint32_t refused = 0;

	if (loop->refused_ns == loop->checked_ns)
		return;
	for (struct leat_link *link = loop->newest_idle; link; link = link->older)
		if (link->origin == origin && !leat_hosts_may_take(link, &refused) &&
		    !leat_addresses_is_last(&link->origin->hosts.set, link->address)) {
			leat_link_close(link);
			loop->refused_ns = loop->checked_ns;
			return;
		}
}

void
leat_hosts_begin(struct leat_link *link)
{
	if (!link->address && !link->is_looked_up && has_choice(link->origin))
		find_address(link);
	if (link->address)
		leat_addresses_begin(&link->origin->hosts.set, link->address, link->begin_ns);
}

void
leat_hosts_end(struct leat_link *link, bool answered)
{
	const struct leat_exchange *exchange = link->exchange;
	bool says_nothing = answered && !link->to_iov && !exchange->head_only; /* such as 503 */
	uint64_t now;

	if (!link->address)
		return;
	now = leat_now();
	leat_addresses_end(&link->origin->hosts.set, link->address,
	                   answered        ? LEAT_ADDRESS_ANSWERED
	                   : link->is_lost ? LEAT_ADDRESS_LOST
	                                   : LEAT_ADDRESS_DROPPED,
	                   says_nothing ? 0 : now - link->begin_ns, exchange->head_only ? 0 : exchange->want, now);
}
