/* tune_feed.c - tuning of a feed: apply what tune.h decides, and say why
 *
 * The consumer decides, once per batch, under the feed's lock. Workers beyond tune.threads sleep on
 * `parked`; nothing is allocated or freed, and the plan does not know. */
#include "feed/feed.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/size.h"
#include "base/str.h"

static int64_t
greatest(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

/* Batches ahead to begin with: a few, enough to give each thread two runs, and enough to keep a cold disk busy. */
static int
first_depth(const struct leat_budget *b)
{
	int64_t runs = greatest(b->form.rows / b->run_rows, 1);
	int64_t depth = 2 + greatest((2 * (int64_t)b->threads + runs - 1) / runs, b->requests / b->form.rows);

	depth = greatest(depth, LEAT_TUNE_DEPTH);
	return depth < b->depth ? (int)depth : b->depth;
}

void
leat_tuning_open(struct leat_feed *feed)
{
	const struct leat_budget *b = &feed->budget;
	struct leat_tune_limits limits = {
		.threads = b->threads,
		.depth = b->depth,
		.first_depth = first_depth(b),
		.threads_set = b->threads_set,
		.depth_set = feed->pipeline.prefetch >= 0,
		.fixed = !feed->options.tune,
		/* Rows to read for: with fewer, servers would be asked for less at a time. */
		.fixed_depth = feed->pipeline.source.stores.in_flight > 0,
	};

	leat_tune_open(&feed->tune, &limits);
}

/* Something has grown. */
static void
wake_more(struct leat_feed *feed)
{
	pthread_cond_broadcast(&feed->parked);
	leat_feed_wake(feed);
}

void
leat_tuning_waits(struct leat_feed *feed)
{
	if (leat_tune_waits(&feed->tune))
		wake_more(feed);
}

/* What workers have done so far, in ns. */
static uint64_t
busy_ns(const struct leat_feed *feed)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < feed->trace.workers; i++) {
		const struct leat_counters *count = &feed->trace.worker[i].count;

		sum += leat_counted(&count->read_ns) + leat_counted(&count->op_ns);
	}
	return sum;
}

void
leat_tuning_takes(struct leat_feed *feed)
{
	struct leat_tune *tune = &feed->tune;
	uint64_t now = feed->last_out_ns; /* when the last batch was taken: good enough, and costs nothing */

	if (leat_tune_takes(tune, feed->complete))
		wake_more(feed);
	if (now && leat_tune_is_due(tune, now) && leat_tune_considers(tune, now, busy_ns(feed)))
		pthread_cond_broadcast(&feed->work); /* those that are too many go to sleep */
}

void
leat_tuning_set(struct leat_feed *feed, unsigned threads, int depth)
{
	pthread_mutex_lock(&feed->lock);
	feed->tune.threads = threads < 1 ? 1 : threads > feed->tune.most_threads ? feed->tune.most_threads : threads;
	if (feed->tune.most_depth > 0)
		feed->tune.depth = depth < 1 ? 1 : depth > feed->tune.most_depth ? feed->tune.most_depth : depth;
	wake_more(feed);
	pthread_cond_broadcast(&feed->work);
	pthread_mutex_unlock(&feed->lock);
}

/* ---- what was chosen, and why ---- */

static struct leat_tune
copy(const struct leat_feed *feed)
{
	pthread_mutex_t *lock = (pthread_mutex_t *)&feed->lock;
	struct leat_tune tune;

	pthread_mutex_lock(lock);
	tune = feed->tune;
	pthread_mutex_unlock(lock);
	return tune;
}

static bool
requests_are_set(const struct leat_feed *feed)
{
	return feed->pipeline.source.stores.in_flight > 0 && feed->storage.requests > 0;
}

/* What follows from the store and the samples at open, and is not tuned here. */
static int
list_reads(const struct leat_feed *feed, struct leat_tuning_choice *choice)
{
	const struct leat_budget *b = &feed->budget;
	bool far = feed->pipeline.source.stores.in_flight > 0, set = requests_are_set(feed);

	choice[0] = (struct leat_tuning_choice){"requests", (uint64_t)b->requests, set, ""};
	strcpy(choice[0].why, set   ? "set"
	                      : far ? "at most; how many each server gets is found by experiment"
	                            : "at most; local reads that have to wait");
	choice[1] = (struct leat_tuning_choice){"window", b->window, false, ""};
	strcpy(choice[1].why, b->stretches ? "room for the stretches that are read ahead"
	                      : far        ? "room for the requests, by the mean length of samples"
	                                   : "a run for each thread that works or reads");
	if (!b->stretches)
		return 2;
	choice[2] = (struct leat_tuning_choice){"stretch", b->stretch_bytes, false, ""};
	strcpy(choice[2].why, "samples follow one another, so that long requests pay");
	return 3;
}

int
leat_tuning_list(const struct leat_feed *feed, struct leat_tuning_choice choice[LEAT_TUNING_CHOICES])
{
	struct leat_tune tune = copy(feed);

	choice[0] = (struct leat_tuning_choice){"threads", tune.threads, tune.threads_why == LEAT_TUNE_SET, ""};
	leat_tune_threads_text(&tune, choice[0].why);
	choice[1] = (struct leat_tuning_choice){"prefetch", (uint64_t)tune.depth, tune.depth_why == LEAT_TUNE_SET, ""};
	leat_tune_depth_text(&tune, choice[1].why);
	return 2 + list_reads(feed, choice + 2);
}

void
leat_tuning_read(const struct leat_feed *feed, struct leat_figures *f)
{
	struct leat_tuning_choice choice[LEAT_TUNING_CHOICES];

	f->tunings = leat_tuning_list(feed, choice);
	for (int i = 0; i < f->tunings; i++) {
		struct leat_tuning_figures *to = &f->tuning[i];
		bool bytes = strcmp(choice[i].what, "window") == 0 || strcmp(choice[i].what, "stretch") == 0;

		strcpy(to->what, choice[i].what);
		if (bytes)
			leat_format_size(to->value, sizeof to->value, choice[i].value);
		else
			snprintf(to->value, sizeof to->value, "%" PRIu64, choice[i].value);
		strcpy(to->why, choice[i].why);
		to->set = choice[i].set;
	}
}

void
leat_tuning_add_text(const struct leat_feed *feed, struct leat_str *out)
{
	struct leat_tune tune = copy(feed);
	char why[LEAT_TUNE_TEXT];

	if (tune.threads == tune.most_threads)
		leat_str_addf(out, "%u thread%s", tune.threads, leat_plural(tune.threads));
	else
		leat_str_addf(out, "%u of %u threads", tune.threads, tune.most_threads);
	leat_str_addf(out, " (%s), ", leat_tune_threads_text(&tune, why));
	leat_str_addf(out, "%d batch%s ahead (%s)", tune.depth, tune.depth == 1 ? "" : "es",
	              leat_tune_depth_text(&tune, why));
}
