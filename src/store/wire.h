/* wire.h - HTTP/1.1 requests, many at a time
 *
 * An *exchange* is one request and its answer, repeated as long as failures may pass. A *wire*
 * carries exchanges: it has a few threads, each with an epoll loop and its own connections, of
 * which each carries one exchange at a time. The wire knows HTTP; what is asked for, and what an
 * answer means, is said by the exchange's kind.
 *
 * A body that was asked for goes straight into the caller's memory. Everything else is bounded:
 * heads, the bodies of errors, connections, and time. A server that sends nothing, or less than
 * 4 KiB/s, for `timeout` is given up and asked again; for reads, much earlier if answers usually
 * come earlier.
 *
 * What is repeated: connections that fail, are reset or time out, and the statuses 429, 500, 502,
 * 503 and 504, after a random pause that doubles (full jitter), until `patience` has passed since
 * the first failure. A server that has never answered gets 5 s. A connection that the server
 * closed while it was idle costs no pause. If new connections fail while others work, the server
 * wants no more of them: those that there are carry everything, and new ones are tried later.
 *
 * How many requests a server gets at a time is found out (wire_pace.h). While it is down, a few
 * probe it and all others wait, which neither counts as an attempt nor uses up their patience;
 * after `patience` without an answer, all of them fail.
 *
 * Threads: open and close by one; submit, call and cancel by any. The functions of an exchange's
 * kind are called by the wire's threads, one at a time for each exchange, without locks. */
#ifndef LEAT_STORE_WIRE_H
#define LEAT_STORE_WIRE_H

#include "base/str.h"
#include "store/addresses.h"
#include "store/http_head.h"
#include "store/latency.h"
#include "store/store.h"
#include "store/url.h"
#include "store/wire_pace.h"
#include "trace/histogram.h"

enum {
	LEAT_WIRE_THREADS = 4,     /* at most */
	LEAT_WIRE_IN_FLIGHT = 512, /* connections, at most; half of the open files that the process may have */
	LEAT_WIRE_WHY = 200,
};

struct leat_wire;
struct leat_exchange;

/* Second requests for reads whose answer does not come (wire_hedge.c). */
struct leat_hedging {
	atomic_int spent;                    /* of the budget; a request earns one, a hedge costs 50 */
	atomic_uint_least64_t calm_until_ns; /* none before: the server asked us to slow down */
	atomic_ullong requests;              /* all but hedges */
	atomic_ullong sent, won;             /* hedges, and those that were answered first */
	atomic_ullong timeouts;              /* requests that were given up for taking too long */
};

/* Of one thread and origin. */
struct leat_hedge_counts {
	unsigned wanted;     /* hedges that wait for a connection */
	unsigned answers;    /* since the last check */
	unsigned recent;     /* answers of the last few checks */
	unsigned busy, late; /* requests at the last check; those without an answer in time */
	unsigned under_way;  /* hedges, with those wanted, at the last check */
	uint64_t wait_ns;    /* after which a request without an answer is late */
	uint64_t checked_ns;
};

/* What an origin has cost so far. Requests include repeated and second ones. */
struct leat_origin_counts {
	uint64_t requests, retries;
	uint64_t throttled;          /* answers 429 and 503 */
	uint64_t failures, timeouts; /* the latter are among the former */
	uint64_t hedges, connections, bytes;
	unsigned window, most_window; /* requests that may be in flight, now and at most */
	unsigned most_in_flight;
};

/* The addresses of a server (wire_hosts.c). */
struct leat_hosts {
	atomic_int way;    /* enum leat_way */
	atomic_uint count; /* of addresses; below 2 there is no choice */
	struct leat_addresses set;
	pthread_mutex_t lock;
	/* Under the lock: */
	struct leat_lookup *lookup; /* under way */
	uint64_t resolved_ns;
	bool failed; /* an address has, since */
};

/* A server, as the connections to it know it. Belongs to the wire; never moves. */
struct leat_origin {
	bool tls;
	char host[LEAT_HOST];
	unsigned port;
	atomic_bool answered;          /* at least once */
	struct leat_latency latency;   /* of the first byte of reads */
	struct leat_histogram answers; /* the same since the wire was opened, for people */
	struct leat_hedging hedging;
	struct leat_hosts hosts;
	atomic_uint window;  /* pace.window */
	atomic_bool is_held; /* requests may have to wait for a time to come */
	atomic_uint open;    /* connections */
	atomic_uint wider;   /* how often timeouts were doubled, because too many requests were given up */
	pthread_mutex_t lock;
	/* Under the lock: */
	struct leat_pace pace;
	struct leat_origin_counts counts;
	uint64_t connected_ns, connecting_ns; /* when the first connection was there, and how long it had taken */
	unsigned late, calm;     /* grows with requests that are given up; answers since the last of them */
	char why[LEAT_WIRE_WHY]; /* no connection could be made; printable */
	/* Under the wire's lock: */
	struct leat_origin *next;
	struct leat_origin_loop {
		struct leat_origin *next;                 /* that the thread knows */
		struct leat_exchange *queue, **queue_end; /* waiting for a connection; the latter NULL: not yet known */
		unsigned waiting, flight;                 /* their number, and that of requests in flight */
		atomic_uint demand;                       /* both, for other threads to see */
		uint64_t timeout_ns, learned_ns;          /* for answers, and when that was computed */
		atomic_uint links;                        /* connections that are open; other threads see it, too */
		unsigned connecting;                      /* those to be */
		uint64_t hold_until_ns;                   /* no new connections before */
		struct leat_hedge_counts hedge;
	} loop[LEAT_WIRE_THREADS]; /* each belongs to one thread */
};

enum leat_verdict {
	LEAT_VERDICT_OVER,  /* the exchange is over, for good or bad: `status` is set */
	LEAT_VERDICT_NOW,   /* ask again at once: another place, or another signature */
	LEAT_VERDICT_LATER, /* ask again after a pause: `why` is set */
};

struct leat_exchange_kind {
	/* Writes the request, up to and including the empty line. Called for each attempt. LEAT_DONE: there is nothing
	 * to ask, and the exchange is over. LEAT_AGAIN: it cannot be written yet, and `why` is set; called again soon,
	 * until patience is over. Any other failure ends the exchange. */
	enum leat_status (*compose)(struct leat_exchange *exchange, struct leat_str *request);
	/* Is this the head of what was asked for, so that a body of `want` bytes goes to the iovs? NULL: never. */
	bool (*wants)(struct leat_exchange *exchange, const struct leat_http_head *head);
	/* Decides about an answer that is complete. */
	enum leat_verdict (*judge)(struct leat_exchange *exchange, const struct leat_http_head *head);
	/* Writes the error when the wire gives up; `why` is part of a sentence. */
	void (*fail)(struct leat_exchange *exchange, enum leat_status status, const char *why);
	/* The exchange is over; the wire does not touch it any more. */
	void (*done)(struct leat_exchange *exchange);
};

struct leat_exchange {
	const struct leat_exchange_kind *kind;
	struct leat_origin *origin; /* who is asked */
	atomic_bool *cancelled;     /* set by leat_wire_cancel; NULL: cannot be cancelled */
	const char *extra_name;     /* of a field of the head */
	bool head_only;             /* the request is HEAD: no body follows */
	bool once;                  /* do not repeat: for servers that may not be there at all */
	bool slow;                  /* the server may take minutes, such as to put the parts of an object together */
	const void *body;           /* to be sent after the request, for each attempt */
	size_t body_len;
	struct iovec iov[LEAT_READ_PARTS]; /* where the body goes that was asked for */
	int iovs;
	uint64_t want;        /* its length */
	struct leat_str text; /* other bodies, up to its maximum; what exceeds it is an error if the status is 200 */
	struct leat_err *err; /* may be NULL */

	/* Set by the wire, and by the kind's functions: */
	enum leat_status status; /* LEAT_AGAIN: cancelled */
	uint64_t got;            /* bytes of the body so far */
	bool cut;                /* the body was longer than `text` may be; the rest was not read */
	uint64_t took_ns;
	unsigned thread;         /* of the wire; set before `compose` */
	char why[LEAT_WIRE_WHY]; /* what failed last; printable */

	/* Private: */
	struct leat_exchange *next;
	unsigned attempts, turns, refused, spared, given_up;
	uint64_t due_ns, failing_since_ns, postponed_since_ns;
	uint64_t held_before_ns; /* how long the origin had been down when this began to fail */
};

struct leat_wire_settings {
	uint64_t timeout_ns, patience_ns;
	const struct leat_storage *storage; /* where they come from */
};

/* Loads libcurl and starts the threads. `storage` is complete and outlives the wire. */
enum leat_status leat_wire_open(struct leat_wire **wire, const struct leat_storage *storage, struct leat_mem *mem,
                                struct leat_err *err);
void leat_wire_close(struct leat_wire *wire); /* when no exchange is under way; accepts NULL */
/* NULL: out of memory. */
struct leat_origin *leat_wire_origin(struct leat_wire *wire, bool tls, const char *host, unsigned port);

/* Requests in flight, at most. */
unsigned leat_wire_most(const struct leat_wire *wire);
/* Calls `visit` for each origin, with its counts. */
void leat_wire_visit(struct leat_wire *wire,
                     void (*visit)(void *arg, const struct leat_origin *origin,
                                   const struct leat_origin_counts *counts),
                     void *arg);
/* The sum over all origins. */
void leat_wire_counts(struct leat_wire *wire, struct leat_origin_counts *total);

/* Starts an exchange. LEAT_INVALID: this is another process than the one that opened the wire. */
enum leat_status leat_wire_submit(struct leat_wire *wire, struct leat_exchange *exchange, struct leat_err *err);
/* Looks for exchanges whose `cancelled` is set: they are over soon, with LEAT_AGAIN. */
void leat_wire_cancel(struct leat_wire *wire);
/* Runs an exchange and waits for it; `done` of its kind is not called. Returns its status. */
enum leat_status leat_wire_call(struct leat_wire *wire, struct leat_exchange *exchange);

#endif
