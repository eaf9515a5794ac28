/* tune.c - see tune.h */
#include "feed/tune.h"

#include <stdio.h>

enum { PATIENCE = 4, MOST_PATIENCE = 1024 };

void
leat_tune_open(struct leat_tune *t, const struct leat_tune_limits *l)
{
	*t = (struct leat_tune){
		.threads = l->threads,
		.most_threads = l->threads,
		.depth = l->depth,
		.most_depth = l->depth,
		.floor = 1,
		.patience = PATIENCE,
		.tunes_threads = !l->threads_set && !l->fixed && l->threads > 1 && l->depth > 0,
		.tunes_depth = !l->depth_set && !l->fixed && !l->fixed_depth && l->first_depth < l->depth,
		.threads_why = l->threads_set ? LEAT_TUNE_SET
	                       : l->fixed     ? LEAT_TUNE_FIXED
	                                      : LEAT_TUNE_START,
		.depth_why = l->depth_set                 ? LEAT_TUNE_SET
	                     : l->fixed || l->fixed_depth ? LEAT_TUNE_FIXED
	                                                  : LEAT_TUNE_START,
	};
	if (t->tunes_depth)
		t->depth = l->first_depth > 0 ? l->first_depth : 1;
	leat_tune_start(t);
}

static void
begin_period(struct leat_tune *t)
{
	t->since_ns = 0;
	t->batches = 0;
	t->waited = false;
	t->low = t->most_depth;
}

void
leat_tune_start(struct leat_tune *t)
{
	/* The first batch has to be waited for, whatever the figures are. */
	t->waited_for = 1 + t->delivered;
	t->held_back = 0;
	begin_period(t);
}

/* All threads work again, and as few as they were is not tried again. */
static bool
use_all_threads(struct leat_tune *t, enum leat_tune_why why)
{
	if (t->threads == t->most_threads)
		return false;
	t->tried = t->threads;
	t->floor = t->threads + t->threads / 2 + 1;
	t->threads = t->most_threads;
	t->threads_why = why;
	t->rest = t->patience;
	t->patience = t->patience < MOST_PATIENCE / 4 ? 4 * t->patience : MOST_PATIENCE;
	begin_period(t);
	return true;
}

/* Was the engine held back so recently that the batches it would have made would be there now? If both sides vary and
 * are equally fast, n batches ahead last for about n * n batches. */
static bool
was_held_back(const struct leat_tune *t)
{
	return t->held_back && 1 + t->delivered - t->held_back <= 2 * (uint64_t)t->depth * (uint64_t)t->depth;
}

bool
leat_tune_waits(struct leat_tune *t)
{
	if (t->waited_for == 1 + t->delivered)
		return false;
	t->waited_for = 1 + t->delivered;
	t->waited = true;
	if (use_all_threads(t, LEAT_TUNE_MORE))
		return true;
	if (!t->tunes_depth || t->depth == t->most_depth || !was_held_back(t))
		return false;
	t->shallow = t->depth;
	t->depth = t->depth < t->most_depth / 2 ? 2 * t->depth : t->most_depth;
	t->depth_why = LEAT_TUNE_MORE;
	t->held_back = 0;
	return true;
}

bool
leat_tune_takes(struct leat_tune *t, int ready)
{
	t->delivered++;
	t->batches++;
	if (ready < t->low)
		t->low = ready;
	return 4 * ready <= t->depth && use_all_threads(t, LEAT_TUNE_DWINDLED);
}

bool
leat_tune_is_due(struct leat_tune *t, uint64_t now_ns)
{
	if ((!t->tunes_threads && !t->tunes_depth) || t->batches < LEAT_TUNE_BATCHES)
		return false;
	return !t->since_ns || now_ns - t->since_ns >= LEAT_TUNE_SPAN_NS;
}

bool
leat_tune_considers(struct leat_tune *t, uint64_t now_ns, uint64_t busy_ns)
{
	bool calm = t->since_ns && !t->waited && 2 * t->low >= t->depth, fewer = false;
	double busy = t->since_ns ? (double)(busy_ns - t->busy_ns) / (double)(now_ns - t->since_ns) : 0;
	unsigned enough = (unsigned)(busy * 1.5) + 1;

	if (calm && t->depth_why == LEAT_TUNE_START)
		t->depth_why = LEAT_TUNE_ENOUGH;
	if (enough < t->floor)
		enough = t->floor;
	if (calm && t->rest > 0) {
		t->rest--;
	} else if (calm && t->tunes_threads && enough < t->threads) {
		t->threads = enough;
		t->threads_why = LEAT_TUNE_ENOUGH;
		t->busy = busy;
		fewer = true;
	}
	begin_period(t);
	t->since_ns = now_ns;
	t->busy_ns = busy_ns;
	return fewer;
}

/* ---- reasons ---- */

const char *
leat_tune_threads_text(const struct leat_tune *t, char buf[LEAT_TUNE_TEXT])
{
	switch (t->threads_why) {
	case LEAT_TUNE_START:
		snprintf(buf, LEAT_TUNE_TEXT, "one per CPU; nothing shows yet that fewer suffice");
		break;
	case LEAT_TUNE_SET:
		snprintf(buf, LEAT_TUNE_TEXT, "set");
		break;
	case LEAT_TUNE_FIXED:
		snprintf(buf, LEAT_TUNE_TEXT, "one per CPU; tuning is off");
		break;
	case LEAT_TUNE_ENOUGH:
		snprintf(buf, LEAT_TUNE_TEXT, "%.1f of %u are busy on average, and the consumer does not wait", t->busy,
		         t->most_threads);
		break;
	case LEAT_TUNE_MORE:
		snprintf(buf, LEAT_TUNE_TEXT, "with %u the consumer waited", t->tried);
		break;
	case LEAT_TUNE_DWINDLED:
		snprintf(buf, LEAT_TUNE_TEXT, "with %u the batches ahead became few", t->tried);
		break;
	}
	return buf;
}

const char *
leat_tune_depth_text(const struct leat_tune *t, char buf[LEAT_TUNE_TEXT])
{
	switch (t->depth_why) {
	case LEAT_TUNE_SET:
		snprintf(buf, LEAT_TUNE_TEXT, t->depth ? "set" : "set: a batch is made when it is asked for");
		break;
	case LEAT_TUNE_FIXED:
		snprintf(buf, LEAT_TUNE_TEXT, "as many as memory and reads in flight allow");
		break;
	case LEAT_TUNE_ENOUGH:
		snprintf(buf, LEAT_TUNE_TEXT, "enough: the consumer does not wait");
		break;
	case LEAT_TUNE_MORE:
		snprintf(buf, LEAT_TUNE_TEXT, "the consumer waited although the engine had paused %d ahead%s",
		         t->shallow, t->depth == t->most_depth ? "; this is the most" : "");
		break;
	default:
		snprintf(buf, LEAT_TUNE_TEXT,
		         t->tunes_depth ? "to begin with; the engine has not been held back by it"
		                        : "all that memory has room for");
		break;
	}
	return buf;
}
