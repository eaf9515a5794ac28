/* delay.h - internals of the delaying proxy
 *
 * delay.c has the loop, the listeners and the commands, delay_link.c carries one connection. */
#ifndef LEAT_BENCH_REMOTE_DELAY_H
#define LEAT_BENCH_REMOTE_DELAY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { HEAD_MAX = 16 * 1024, PIPELINED = 64, LISTENERS = 8 };

/* What an address does to those who connect to it. */
struct listener {
	int fd;
	double latency_ms;   /* between a request and the first byte of its answer, on top of the server's own */
	double rate;         /* bytes per second of each connection; 0: unlimited */
	double hang;         /* share of requests that are never answered */
	unsigned max;        /* connections beyond these are reset; 0: unlimited */
	unsigned knee;       /* with n > knee requests in flight, latency grows by (n / knee)^2; 0: never */
	uint64_t busy_until; /* answers 503 until then, in ns */
	unsigned links, in_flight;
	uint64_t answers;
};

struct request {
	uint64_t due;  /* when it is sent to the server */
	size_t length; /* of its head, in link->asked */
	bool hangs, head_only, refused;
};

/* A client's connection, and the one to the server that belongs to it. */
struct link {
	struct listener *from;
	int client, server;
	struct end { /* what epoll knows */
		struct link *link;
		bool is_server;
	} end[2];
	bool dead;         /* freed after the events at hand */
	struct link *next; /* dead ones */
	uint64_t wake;     /* earliest timer; 0: none */
	size_t heap_at;    /* place in the heap; 0: not there */
	/* requests: those not sent yet begin at asked[0] */
	char asked[HEAD_MAX];
	size_t have, parsed; /* bytes in `asked`; of them, whole requests */
	struct request waiting[PIPELINED], sent[PIPELINED];
	unsigned waits, sents;
	/* the answer at hand */
	char head[HEAD_MAX];
	size_t head_have, head_out, head_len; /* read, written, whole (0: not yet) */
	uint64_t body_left, piped;
	int pipe[2];
	uint64_t rate_free; /* when the rate allows more */
};

struct counts {
	uint64_t requests, answers, refused_links, refused_requests, hung, accepted;
	uint64_t most_in_flight, most_links, late_ns, most_late_ns;
	unsigned links, in_flight;
};

extern struct counts counts;

uint64_t now_ns(void);
/* Calls link_timer at this time, or earlier. */
void wake_at(struct link *link, uint64_t when);
void forget_wake(struct link *link);

struct link *link_new(struct listener *from, int client, int server);
void link_close(struct link *link); /* leaves the memory to the loop */
void link_from_client(struct link *link);
void link_from_server(struct link *link);
void link_timer(struct link *link);
/* Has this request drawn the lot that it hangs? */
bool draws(double share);

#endif
