/* wire_pace.h - how many requests one server gets at a time
 *
 * The *window* is the number of requests that may be in flight. Too few, and latency is all we see; too many, and they
 * queue at a server that may even become slower for it. The best window is at the knee, and it moves. So the window is
 * found by experiment, and by what the throughput says:
 *
 *  - start: it doubles while the rate grows by at least a fifth of what was added, and grows fourfold while the rate
 * does almost the same and nothing queues;
 *  - fall: it halves while the rate does not fall. If it does fall as much, at once, the latency is not that of a
 * queue, and the window starts again from where it was;
 *  - trial: the rate with another window is compared with the present one, in turns (A B A B), so that what changes
 * meanwhile does not count for one of them. A larger window stays if the rate grows, a smaller one if it does not fall;
 *  - hold: nothing changes. Trials come every half second at first, and every 4 s if they change nothing. A smaller
 * window is tried only while requests take longer than they could.
 *
 * A measurement counts only if the window was full: a slow consumer, or one with few requests, says nothing about the
 * server.
 *
 * A server that answers 503 or 429 to some requests gets a *ceiling*, in requests per second, below what it has just
 * served; the window shrinks, too. Both grow again, slowly at first, then ever faster. Few such answers among many
 * change nothing.
 *
 * A server that fails 8 times in a row, or cannot be connected to, is *down*: all requests wait, and single ones probe,
 * with pauses that double up to 2 s. The first answer ends that; the window grows by one for each answer up to where it
 * was.
 *
 * Pure: time is an argument, and nothing is allocated. Threads: the caller locks. */
#ifndef LEAT_STORE_WIRE_PACE_H
#define LEAT_STORE_WIRE_PACE_H

#include <stdbool.h>
#include <stdint.h>

#include "store/latency.h"

enum {
	LEAT_PACE_FIRST = 32, /* window, before anything is known */
	LEAT_PACE_LEAST = 4,  /* window of a server that works */
	LEAT_PACE_STREAK = 8, /* failures in a row, until a server is down */
};

enum leat_pace_result {
	LEAT_PACE_ANSWERED,
	LEAT_PACE_THROTTLED, /* 503, 429 */
	LEAT_PACE_FAILED,    /* any other failure that may pass, or no answer in time */
	LEAT_PACE_VOID,      /* cancelled, or the connection was closed while it was idle */
};

/* The measurement of one window. */
struct leat_pace_leg {
	uint64_t changed_ns; /* the window is the present one since then */
	bool from_above;     /* more were in flight then */
	uint64_t reached_ns; /* as many requests were in flight; 0: not yet */
	uint64_t since_ns;   /* measured since; 0: not yet */
	double area;         /* requests in flight, summed over ns */
	double work, latency_ns;
	unsigned done, refused;
};

struct leat_pace {
	unsigned cap;            /* never more in flight */
	unsigned window, flight; /* requests that may be in flight, and that are */
	enum {
		LEAT_PACE_START,
		LEAT_PACE_FALL,
		LEAT_PACE_HOLD,
		LEAT_PACE_TRIAL,
		LEAT_PACE_RESUME,
		LEAT_PACE_DOWN
	} mode;
	uint64_t last_ns;   /* the latest event */
	double latency_ns;  /* of requests, smoothed; 0: unknown */
	double quickest_ns; /* of all requests; 0: none yet */
	struct leat_pace_leg leg;
	uint64_t random;

	/* Start and fall: the window before this one, and its rate. */
	unsigned before;
	double rate_before;
	bool doubts; /* fall: because requests take long, which may have other reasons than a queue */

	/* Trial: */
	unsigned base, other; /* windows that are compared */
	unsigned legs;        /* measured; the odd ones are the other's */
	double rate[2];       /* sums */
	bool went_up;         /* the latest trial */

	/* Hold: */
	double rate_held;
	uint64_t rest_ns, trial_ns;       /* the pause between trials, and when the next one is due */
	double lowest_ns, lowest_then_ns; /* least latency of a leg, now and in the period before */
	uint64_t period_ns;               /* when it began */
	bool wanted_less;                 /* the window was not full, lately */
	bool knows_latency;               /* that was without a queue: with half of the window, the rate was half */

	/* 503s: */
	uint64_t slot_ns;             /* when counting began */
	uint64_t idle_ns;             /* when nothing was in flight any more */
	unsigned answered, throttled; /* since then */
	unsigned begun, free;         /* requests, and those that the ceiling did not delay */
	double ceiling;               /* requests per second; 0: none */
	double level;                 /* what the server served when it refused many */
	uint64_t throttled_ns;        /* when the ceiling was last lowered */
	uint64_t start_ns;            /* when the next request may begin */
	unsigned goal;                /* the window to grow back to */

	/* Down: */
	unsigned streak;     /* failures in a row */
	uint64_t failing_ns; /* when it began */
	uint64_t down_ns;    /* since when it is down */
	uint64_t held_ns;    /* how long it was down in all, without the present time */
	uint64_t probe_ns, pause_ns;
};

void leat_pace_init(struct leat_pace *pace, unsigned cap, uint64_t now);

static inline bool
leat_pace_is_down(const struct leat_pace *pace)
{
	return pace->mode == LEAT_PACE_DOWN;
}

/* May a request begin now? leat_pace_begin must follow, or the answer is void. */
bool leat_pace_may_begin(const struct leat_pace *pace, uint64_t now);
void leat_pace_begin(struct leat_pace *pace, uint64_t now);
/* A request is over. `took_ns` and `bytes` matter if it was answered. */
void leat_pace_end(struct leat_pace *pace, enum leat_pace_result result, uint64_t took_ns, uint64_t bytes,
                   uint64_t now);
/* When a request may begin that may not now, if that is but a matter of time; else UINT64_MAX. */
uint64_t leat_pace_due(const struct leat_pace *pace, uint64_t now);

/* While a server is down: may a connection be made, as a probe? leat_pace_probe must follow. */
bool leat_pace_may_probe(const struct leat_pace *pace, uint64_t now);
void leat_pace_probe(struct leat_pace *pace, uint64_t now);
/* There are no connections, and a new one has failed: the server is down. */
void leat_pace_unreachable(struct leat_pace *pace, uint64_t now);
/* A new connection works: if it was a probe, a request may follow at once. */
void leat_pace_connected(struct leat_pace *pace, uint64_t now);
/* The server asks for a pause. */
void leat_pace_wait(struct leat_pace *pace, uint64_t ns, uint64_t now);
/* How long the server has been down, in all. */
uint64_t leat_pace_held(const struct leat_pace *pace, uint64_t now);

/* How long to wait for the first byte of an answer, and between bytes. Eight times what most answers took lately, at
 * least 2 s, at most `longest`, and twice as long for each time that this request was given up before. Requests
 * that are given up must be added to `latency`, too: if many are, the server has become slow, and we wait longer. A
 * few, such as one in a hundred that hang, do not count. */
uint64_t leat_pace_timeout(const struct leat_latency *latency, unsigned given_up, uint64_t longest);

#endif
