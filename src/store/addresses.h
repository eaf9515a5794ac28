/* addresses.h - the addresses of one host: which of them to use, and how much
 *
 * Connections are spread over all addresses that work. An address that refuses connections, or
 * where three requests in a row were lost, is left alone for a second, then twice as long, up to
 * a minute; a single attempt shows whether it works again. An address that takes longer than twice
 * the fastest gets fewer requests: at a third of the speed, a ninth. One that loses more than a quarter
 * of its requests, to second ones sent elsewhere, gets none. One that gets none is
 * tried after a second, then twice as long, up to half a minute.
 *
 * When all have failed, there is no choice: NULL, and libcurl tries them all.
 *
 * Threads: any. An address with connections stays where it is; others may be replaced when the
 * host is resolved again. */
#ifndef LEAT_STORE_ADDRESSES_H
#define LEAT_STORE_ADDRESSES_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { LEAT_ADDRESSES = 16, LEAT_ADDRESS_TEXT = 48 };

typedef char leat_address_text[LEAT_ADDRESS_TEXT]; /* numeric */

struct leat_address {
	leat_address_text text; /* "": a free place */
	bool listed;            /* among what the host was last resolved to */
	bool works;             /* connected to, and not failed since */
	unsigned connecting, links, busy;
	unsigned failures;          /* to connect, in a row */
	unsigned lost;              /* requests, in a row */
	uint64_t hold_until_ns;     /* left alone until then */
	uint64_t connecting_ns;     /* since when connections are tried without success */
	uint64_t taken_ns;          /* when the last request began */
	uint64_t probe_ns;          /* how long after that the next one may, if it is slow; 0: a second */
	bool is_tried;              /* the request under way is such a one */
	unsigned measured;          /* requests */
	double losing;              /* share of requests that were lost, a moving average */
	double ns, bytes;           /* of an answer, a moving average */
	unsigned attempts, answers; /* connections tried, and requests answered, so far */
};

struct leat_addresses {
	pthread_mutex_t lock;
	unsigned count; /* listed */
	struct leat_address address[LEAT_ADDRESSES];
};

void leat_addresses_init(struct leat_addresses *set);
void leat_addresses_free(struct leat_addresses *set);
/* What the host was resolved to. Those that are not in it keep the connections they have, and get no new ones. */
void leat_addresses_set(struct leat_addresses *set, const leat_address_text *text, unsigned count);

/* ---- connections ---- */

/* The address for a new connection, which counts as connecting. `only`: there is no other connection, so it is one that
 * works, if there is any. NULL: none is better than what libcurl would choose. */
struct leat_address *leat_addresses_choose(struct leat_addresses *set, bool only, uint64_t now);
/* Will it soon be known of another address whether it works? */
bool leat_addresses_is_settling(struct leat_addresses *set, uint64_t now);
void leat_addresses_connected(struct leat_addresses *set, struct leat_address *address, uint64_t now);
/* True: there are others. */
bool leat_addresses_failed(struct leat_addresses *set, struct leat_address *address, uint64_t now);
/* A connection that libcurl has made. NULL: not one of them. */
struct leat_address *leat_addresses_find(struct leat_addresses *set, const char *text);
void leat_addresses_closed(struct leat_addresses *set, struct leat_address *address, bool was_connecting);

/* Has it no more than one connection? That shows now and then how it does. */
bool leat_addresses_is_last(struct leat_addresses *set, const struct leat_address *address);

/* ---- requests ---- */

enum leat_address_result { LEAT_ADDRESS_ANSWERED, LEAT_ADDRESS_LOST, LEAT_ADDRESS_DROPPED };

/* Should a connection to it carry the next request? False: another one should. */
bool leat_addresses_may_take(struct leat_addresses *set, const struct leat_address *address, uint64_t now);
void leat_addresses_begin(struct leat_addresses *set, struct leat_address *address, uint64_t now);
/* `bytes` of the body, after `ns`; ns 0: the time says nothing about how fast the address is. */
void leat_addresses_end(struct leat_addresses *set, struct leat_address *address, enum leat_address_result result,
                        uint64_t ns, uint64_t bytes, uint64_t now);

#endif
