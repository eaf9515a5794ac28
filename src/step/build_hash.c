/* build_hash.c - fetch and hash the sources of a build, and say how far that is
 *
 * How much there is to hash is not known beforehand, and to count it costs a stat for each file. So a thread counts
 * only if hashing takes long; a build that finds all hashes in the index ends before. */
#include <time.h>

#include "base/threads.h"
#include "step/build_core.h"
#include "step/listings.h"

enum { COUNT_AFTER_NS = 400 * 1000 * 1000 };

struct counter {
	const struct leat_plan *plan;
	struct leat_hashing *hashing;
	atomic_bool ended;
	pthread_mutex_t lock;
	pthread_cond_t end;
};

/* False: hashing ended before. */
static bool
takes_long(struct counter *c)
{
	struct timespec until;
	int late = 0;

	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_nsec += COUNT_AFTER_NS;
	until.tv_sec += until.tv_nsec / 1000000000;
	until.tv_nsec %= 1000000000;
	pthread_mutex_lock(&c->lock);
	while (!atomic_load(&c->ended) && late == 0)
		late = pthread_cond_timedwait(&c->end, &c->lock, &until);
	pthread_mutex_unlock(&c->lock);
	return !atomic_load(&c->ended);
}

static void
count(void *arg, unsigned number)
{
	struct counter *c = arg;

	(void)number;
	if (takes_long(c))
		leat_plan_count(c->plan, c->hashing, &c->ended);
}

static void
end_counter(struct counter *c)
{
	pthread_mutex_lock(&c->lock);
	atomic_store(&c->ended, true);
	pthread_cond_signal(&c->end);
	pthread_mutex_unlock(&c->lock);
}

static void
counter_init(struct counter *c, const struct leat_plan *plan, struct leat_hashing *hashing)
{
	pthread_condattr_t monotonic;

	*c = (struct counter){.plan = plan, .hashing = hashing};
	pthread_mutex_init(&c->lock, NULL);
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&c->end, &monotonic);
	pthread_condattr_destroy(&monotonic);
}

enum leat_status
leat_build_hash(struct leat_builder *b, struct leat_err *err)
{
	struct leat_hashing own = {0}, *hashing = b->options->hashing ? b->options->hashing : &own;
	struct leat_listings listings;
	struct leat_threads thread = {0};
	struct counter counter;
	enum leat_status status;

	leat_listings_init(&listings, b->mem);
	b->plan->listings = &listings;
	hashing->stop = b->options->stop; /* large sources take long */
	counter_init(&counter, b->plan, hashing);
	if (b->options->hashing) /* without the thread, nobody learns how much there is: no failure */
		leat_threads_start(&thread, b->mem, 1, "leat-count", count, &counter, NULL);
	leat_cas_watch_hashing(b->cas, hashing);
	status = b->is_watching ? leat_plan_look(b->plan, err) : LEAT_OK;
	if (status == LEAT_OK)
		status = leat_plan_hash(b->plan, b->jobs, false, err);
	if (status == LEAT_OK && b->plan->fetches)
		status = leat_staging_remember(b->plan->project->staging, b->options->targets == 0, err);
	leat_cas_watch_hashing(b->cas, NULL); /* what is finished later is hashed to its end */
	end_counter(&counter);
	leat_threads_join(&thread);
	b->plan->listings = NULL;
	leat_listings_free(&listings);
	pthread_cond_destroy(&counter.end);
	pthread_mutex_destroy(&counter.lock);
	return status;
}
