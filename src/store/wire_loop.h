/* wire_loop.h - internals of the wire
 *
 * wire.c takes exchanges and decides about failures, wire_loop.c runs the threads and assigns
 * exchanges to connections, wire_link.c is one connection, wire_hedge.c sends second requests,
 * wire_origin.c holds requests back as wire_pace.h says, wire_hosts.c chooses addresses. */
#ifndef LEAT_STORE_WIRE_LOOP_H
#define LEAT_STORE_WIRE_LOOP_H

#include "base/clock.h"
#include "base/threads.h"
#include "store/curl.h"
#include "store/wire.h"

enum leat_way { LEAT_WAY_UNKNOWN, LEAT_WAY_DIRECT, LEAT_WAY_OTHER }; /* other: by a proxy, or nothing to resolve */
enum { LEAT_LINK_ERROR = CURL_ERROR_SIZE };

/* A connection. */
struct leat_link {
	struct leat_wire_loop *loop;
	struct leat_origin *origin;
	struct leat_exchange *exchange; /* NULL: connecting, or idle */
	struct leat_link *twin;         /* carries the same exchange, until one of them has a complete head */
	enum { LEAT_LINK_CONNECTING, LEAT_LINK_IDLE, LEAT_LINK_SENDING, LEAT_LINK_HEAD, LEAT_LINK_BODY } state;
	enum { LEAT_BODY_LENGTH, LEAT_BODY_CHUNKS, LEAT_BODY_TO_END } body;
	bool to_iov;        /* the body is what was asked for */
	bool used;          /* it has carried an exchange, so the server may close it at any time */
	bool heard;         /* the server has begun to answer */
	bool is_stuck;      /* connecting takes long; it no longer counts as connecting */
	bool is_looked_up;  /* its address was looked for */
	bool is_lost;       /* its request got no answer */
	bool is_hedge;      /* it carries the second request of its exchange */
	bool wants_hedge;   /* a second request is to be sent as soon as there is a connection */
	bool given_up;      /* its request took too long */
	bool watches_write; /* epoll tells when it can be written to */
	int fd;             /* -1: none yet. Without TLS, our own; else libcurl's */
	CURL *easy;         /* NULL without TLS, once connected */
	uint64_t left;      /* LEAT_BODY_LENGTH */
	size_t sent;
	struct leat_str request;
	uint64_t begin_ns, progress_ns;
	enum leat_pace_result result; /* of its request, when it is closed */
	uint64_t head_start_ns;       /* how long before this hedge the first request was sent */
	struct leat_chunks chunks;
	struct leat_http_head head;
	size_t index;                    /* in loop->link */
	struct leat_link *newer, *older; /* idle */
	struct leat_address *address;    /* NULL: unknown, or there is no choice */
	struct curl_slist *list;         /* of libcurl's, for the address */
	char error[LEAT_LINK_ERROR];
};

/* A thread. Everything but what is under the lock belongs to it. */
struct leat_wire_loop {
	struct leat_wire *wire;
	unsigned index;
	int epoll, event;
	CURLM *multi;
	uint64_t multi_due_ns;         /* when libcurl wants to be called; UINT64_MAX: never */
	struct leat_origin *origins;   /* that it has had exchanges for, with their queues */
	struct leat_exchange *delayed; /* waiting for a pause to end */
	struct leat_link **link;
	size_t room; /* for links */
	size_t links, connecting, busy;
	size_t closed; /* connections so far */
	struct leat_link *newest_idle;
	uint64_t random;
	uint64_t refused_ns; /* `checked_ns` when an idle connection to a slow address was last closed */
	uint64_t checked_ns; /* when timeouts were last looked at */
	uint64_t stalled_ns; /* when it had not run for a while; answers may be waiting unread */
	char *scratch;

	atomic_uint load; /* exchanges given to it and not over */
	pthread_mutex_t lock;
	/* Under the lock: */
	struct leat_exchange *incoming, **incoming_end;
	bool awake, cancels, stop;
};

struct leat_wire {
	struct leat_mem *mem;
	const struct leat_curl *curl;
	struct leat_wire_settings settings;
	int pid;
	unsigned loops;
	size_t most_links;
	struct leat_threads threads;
	pthread_mutex_t lock;
	struct leat_origin *origin; /* under the lock */
	struct leat_wire_loop loop[LEAT_WIRE_THREADS];
};

/* An origin that has been down for longer than we are patient. */
struct leat_lost {
	char why[LEAT_WIRE_WHY];
	unsigned tries;
	uint64_t since_ns;
};

enum { LEAT_WIRE_SCRATCH = 16 * 1024 };

/* wire_loop.c */
enum leat_status leat_loop_open(struct leat_wire_loop *loop, struct leat_wire *wire, unsigned index,
                                struct leat_err *err);
void leat_loop_close(struct leat_wire_loop *loop); /* accepts a zeroed one */
void leat_loop_run(struct leat_wire_loop *loop);
void leat_loop_wake(struct leat_wire_loop *loop, bool cancels, bool stop);
/* At the end of the queue of its origin. */
void leat_loop_put(struct leat_wire_loop *loop, struct leat_exchange *exchange);
/* Takes all exchanges from the queue of an origin. */
struct leat_exchange *leat_loop_take_all(struct leat_wire_loop *loop, struct leat_origin *origin);

/* An idle connection to the same place, if possible not to the address of `other`, which may be NULL. */
struct leat_link *leat_loop_find_idle(struct leat_wire_loop *loop, const struct leat_origin *origin,
                                      const struct leat_link *other);

/* wire.c: decide about exchanges, which are not in any list */
void leat_exchange_over(struct leat_wire_loop *loop, struct leat_exchange *exchange, enum leat_status status);
/* An attempt failed: repeats it, `now` or later, or ends the exchange. */
void leat_exchange_failed(struct leat_wire_loop *loop, struct leat_exchange *exchange, const char *why, bool now,
                          unsigned wait_seconds);
/* Its origin is lost. */
void leat_exchange_lost(struct leat_wire_loop *loop, struct leat_exchange *exchange, const struct leat_lost *lost);
/* How long failures of an origin are put up with. */
uint64_t leat_wire_patience(const struct leat_wire *wire, const struct leat_origin *origin);
/* Gives what waits here for an origin to a thread that has connections to it. */
void leat_wire_hand_over(struct leat_wire_loop *loop, struct leat_origin *origin);
/* It cannot be sent yet: tried again soon. */
void leat_exchange_postpone(struct leat_wire_loop *loop, struct leat_exchange *exchange);
void leat_exchange_answered(struct leat_wire_loop *loop, struct leat_exchange *exchange,
                            const struct leat_http_head *head);
/* May a repeated request be answered better? */
bool leat_status_may_pass(int status);
static inline bool
leat_exchange_cancelled(const struct leat_exchange *exchange)
{
	return exchange->cancelled && atomic_load(exchange->cancelled);
}

/* wire_link.c */
/* Begins to connect. NULL: out of memory. */
struct leat_link *leat_link_open(struct leat_wire_loop *loop, struct leat_origin *origin);
/* Closes and frees it. Its exchange, if any, is the caller's. */
void leat_link_close(struct leat_link *link);
/* libcurl has connected it, or not. */
void leat_link_connected(struct leat_link *link, CURLcode code);
/* Sends the request of an exchange on an idle connection. */
void leat_link_begin(struct leat_link *link, struct leat_exchange *exchange);
/* The same for a request that is composed already; leaves the exchange as it is. */
void leat_link_send(struct leat_link *link, struct leat_exchange *exchange);
/* epoll says that something has happened. */
void leat_link_event(struct leat_link *link, unsigned events);
/* Is the server too slow? NULL: no. */
const char *leat_link_overdue(const struct leat_link *link, uint64_t now);
/* Closes it and fails its exchange, or those that wait for a connection to the same place. `closed`: the server has
 * closed or reset it. */
void leat_link_fail(struct leat_link *link, const char *why, bool closed);

/* wire_origin.c */
void leat_origin_init(struct leat_origin *origin, unsigned cap);
void leat_origin_destroy(struct leat_origin *origin);
void leat_origin_demand(const struct leat_wire_loop *loop, struct leat_origin *origin); /* tells other threads */
/* May the first exchange of the queue begin, or a connection be opened? */
bool leat_origin_may_begin(const struct leat_wire_loop *loop, struct leat_origin *origin);
bool leat_origin_may_connect(const struct leat_wire_loop *loop, struct leat_origin *origin);
/* When it may, if that is but a matter of time; else UINT64_MAX. */
uint64_t leat_origin_due(struct leat_origin *origin);
/* A request was sent, or is over. */
void leat_origin_began(struct leat_link *link);
void leat_origin_ended(struct leat_link *link, enum leat_pace_result result);
enum leat_pace_result leat_origin_result(int status); /* of an answer */
void leat_origin_connected(struct leat_origin *origin, uint64_t begin_ns);
void leat_origin_unreachable(struct leat_origin *origin, const char *why); /* a connection failed, and there are none */
/* A request has failed; the server asks us to wait for `wait_ns`. True: it is down, so all wait for a probe. *held_ns
 * is how long they ever did. */
bool leat_origin_failed(struct leat_origin *origin, const char *why, uint64_t wait_ns, uint64_t *held_ns);
/* Has it been down for longer than we are patient? */
bool leat_origin_is_lost(struct leat_origin *origin, uint64_t patience, uint64_t now, struct leat_lost *lost);
/* How long to wait for an answer. */
uint64_t leat_origin_timeout(struct leat_origin *origin, uint64_t longest);

/* wire_hosts.c */
void leat_hosts_init(struct leat_origin *origin);
void leat_hosts_free(struct leat_origin *origin);
void leat_hosts_tick(struct leat_wire_loop *loop, uint64_t now);
/* False: it is not yet known which addresses there are and which of them work. */
bool leat_hosts_may_connect(const struct leat_wire_loop *loop, struct leat_origin *origin);
void leat_hosts_open(struct leat_link *link); /* tells libcurl where to connect to */
void leat_hosts_connected(struct leat_link *link, curl_socket_t fd);
bool leat_hosts_failed(struct leat_link *link); /* true: other addresses may do better */
void leat_hosts_closed(struct leat_link *link);
/* Should an idle connection be used? `refused` remembers the answers of one search, zero at first. */
bool leat_hosts_may_take(struct leat_link *link, uint32_t *refused);
/* Closes an idle connection that should not be used, to make room for one to a better address; one in 20 ms. */
void leat_hosts_close_refused(struct leat_wire_loop *loop, const struct leat_origin *origin);
void leat_hosts_begin(struct leat_link *link);
void leat_hosts_end(struct leat_link *link, bool answered); /* while it still has its exchange */

/* wire_hedge.c */
void leat_hedge_check(struct leat_wire_loop *loop, uint64_t now); /* now and then: which requests need a second one? */
/* Sends them, as far as there are idle connections. */
void leat_hedge_assign(struct leat_wire_loop *loop, struct leat_origin *origin);
void leat_hedge_unwant(struct leat_link *link);              /* there is no need for one any more */
void leat_hedge_begin(struct leat_link *link);               /* a first request is sent */
void leat_hedge_heard(struct leat_link *link, uint64_t now); /* the first byte of an answer */
void leat_hedge_calm(struct leat_origin *origin);            /* the server asks us to slow down */
/* The head of an answer is complete. False: it is none worth having while a twin is waiting; the connection is gone. */
bool leat_hedge_claim(struct leat_link *link);

#endif
