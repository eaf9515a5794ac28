/* tune.h - how many threads work and how many batches are made ahead: found while the feed runs
 *
 * A feed reserves `most_threads` and `most_depth` when it opens (budget.c). How many of them it uses
 * is decided here, from what the consumer sees, and never changes what is delivered:
 *
 *  - depth, the batches made ahead, starts low and doubles when the consumer has to wait soon after
 *    the engine paused because it was that far ahead: a deeper buffer would have bridged the gap. It
 *    never shrinks, because pages once used would stay.
 *  - threads start with all. When the consumer has not waited for a while and the batches ahead stayed
 *    there, those beyond one and a half times the number busy on average sleep, which leaves CPUs to
 *    the training step. As soon as the consumer waits or the batches ahead dwindle, all work again, and
 *    that number is not tried again.
 *
 * What the user set stays. Every figure has a reason in words. Pure: time is an argument and nothing is
 * allocated. Threads: the caller locks. */
#ifndef LEAT_FEED_TUNE_H
#define LEAT_FEED_TUNE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	LEAT_TUNE_DEPTH = 4,                   /* batches ahead at first */
	LEAT_TUNE_BATCHES = 16,                /* least batches between two decisions to use fewer threads */
	LEAT_TUNE_SPAN_NS = 100 * 1000 * 1000, /* least time between them */
};

enum leat_tune_why {
	LEAT_TUNE_START,    /* nothing has happened yet that says otherwise */
	LEAT_TUNE_SET,      /* by the user */
	LEAT_TUNE_FIXED,    /* by the engine, for good: tuning is off, or the depth keeps servers busy */
	LEAT_TUNE_ENOUGH,   /* the consumer does not wait */
	LEAT_TUNE_MORE,     /* the consumer waited */
	LEAT_TUNE_DWINDLED, /* threads: the batches ahead became few */
};

/* What is known when a feed opens. */
struct leat_tune_limits {
	unsigned threads; /* reserved */
	int depth;        /* reserved; 0: no batches ahead */
	int first_depth;  /* to start with, at most `depth` */
	bool threads_set, depth_set;
	bool fixed;       /* use all from the start */
	bool fixed_depth; /* the same for the depth alone */
};

struct leat_tune {
	unsigned threads, most_threads; /* that work; there are */
	int depth, most_depth;          /* batches ahead, allowed now and at most */
	bool tunes_threads, tunes_depth;
	enum leat_tune_why threads_why, depth_why;
	unsigned tried; /* threads, or batches ahead, that turned out to be too few */
	int shallow;
	double busy; /* threads busy on average when their number was last reduced */

	uint64_t delivered;  /* batches */
	uint64_t waited_for; /* 1 + `delivered` when the consumer last waited */
	uint64_t held_back;  /* 1 + `delivered` when the engine last paused because of `depth`; 0: never */
	unsigned floor;      /* least threads */
	unsigned rest;       /* periods until fewer threads are tried */
	unsigned patience;   /* the same, after the next failure */

	/* This period: */
	uint64_t since_ns, busy_ns; /* when it began, and what workers had done until then; since_ns 0: not begun */
	unsigned batches;
	bool waited;
	int low; /* fewest batches that were ready when the consumer asked for one */
};

void leat_tune_open(struct leat_tune *tune, const struct leat_tune_limits *limits);
/* The engine starts, at any position: what follows first is not typical. */
void leat_tune_start(struct leat_tune *tune);

/* The engine pauses because it is `depth` batches ahead. */
static inline void
leat_tune_holds_back(struct leat_tune *tune)
{
	tune->held_back = 1 + tune->delivered;
}

/* The consumer begins to wait for a batch. True: `threads` or `depth` has grown. */
bool leat_tune_waits(struct leat_tune *tune);
/* The consumer takes a batch; `ready` were complete, with this one. True: `threads` has grown. */
bool leat_tune_takes(struct leat_tune *tune, int ready);
/* Is it time to consider fewer threads? Then call leat_tune_considers with what all workers have done since the feed
 * opened, in ns. True: `threads` is less. */
bool leat_tune_is_due(struct leat_tune *tune, uint64_t now_ns);
bool leat_tune_considers(struct leat_tune *tune, uint64_t now_ns, uint64_t busy_ns);

enum { LEAT_TUNE_TEXT = 160 };
/* Why `threads` and `depth` are what they are, as a clause without a full stop. Return buf. */
const char *leat_tune_threads_text(const struct leat_tune *tune, char buf[LEAT_TUNE_TEXT]);
const char *leat_tune_depth_text(const struct leat_tune *tune, char buf[LEAT_TUNE_TEXT]);

#endif
