/* probe.c - see probe.h */
#include "xray/probe.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "base/clock.h"
#include "feed/feed.h"
#include "store/remote.h"

enum { GAPS = 4096 };

#define PATIENCE_NS ((uint64_t)30 * 1000000000)

/* A probe under way. */
struct run {
	const struct leat_probe *probe;
	struct leat_probed *out;
	struct leat_feed *feed;
	uint64_t deadline, cap; /* the time to stop, and to give up */
	uint64_t first, last;   /* arrival of the first and the last batch */
	uint64_t samples, batches;
	double cpu_begin, step_cpu, step_total;
	long sleeps;
	struct leat_totals before;
	float gap[GAPS]; /* seconds of the loader between arrivals; the step is not in them */
	unsigned gaps;
};

static double
read_clock(clockid_t clock)
{
	struct timespec t;

	return clock_gettime(clock, &t) == 0 ? (double)t.tv_sec + (double)t.tv_nsec / 1e9 : 0;
}

/* CPU seconds of this process and of those that run functions. */
static double
process_cpu(const struct leat_probe *p)
{
	double cpu = read_clock(CLOCK_PROCESS_CPUTIME_ID);
	clockid_t clock;

	for (size_t i = 0; i < p->options->process_count; i++)
		if (clock_getcpuclockid(p->options->processes[i].pid, &clock) == 0)
			cpu += read_clock(clock);
	return cpu;
}

static long
count_sleeps(void)
{
	struct rusage usage;

	getrusage(RUSAGE_SELF, &usage);
	return usage.ru_nvcsw;
}

static uint64_t
count_valid(const struct leat_batch *batch)
{
	const uint8_t *valid = leat_batch_valid(batch);
	uint64_t count = 0;

	for (int64_t i = 0; i < leat_batch_count(batch); i++)
		count += valid[i];
	return count;
}

/* LEAT_TIMEOUT: not by `until`. Ends of epochs are passed over. */
static enum leat_status
next(struct run *r, uint64_t until, struct leat_batch **batch, struct leat_err *err)
{
	enum leat_status status;

	do {
		uint64_t now = leat_now();

		leat_err_clear(err);
		status = leat_next_within(r->feed, until > now ? until - now : 0, batch, err);
	} while (status == LEAT_END && leat_batches(r->feed) > 0);
	if (status != LEAT_END)
		return status;
	leat_err_clear(err);
	return leat_fail(err, LEAT_DATA, "the spec gives no batches: there is nothing to measure");
}

/* The simulated step starts when the batch arrives. */
static void
step(struct run *r, uint64_t arrived)
{
	const struct leat_probe *p = r->probe;
	uint64_t until = arrived + (uint64_t)(p->step_ms * 1e6);
	struct timespec t = {(time_t)(until / 1000000000), (long)(until % 1000000000)};
	double took = p->step_ms;

	if (p->step_ms <= 0)
		return;
	if (p->burn) {
		took = leat_burn(p->burn);
		r->step_cpu += p->burn->threads * p->step_ms / 1e3;
	} else {
		while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL) == EINTR)
			;
	}
	r->step_total += took;
}

static void
note_arrival(struct run *r, uint64_t asked, uint64_t arrived)
{
	if (r->gaps < GAPS)
		r->gap[r->gaps++] = (float)((double)(arrived - asked) / 1e9);
	r->last = arrived;
}

/* Takes samples until the cache has seen them all, then starts over, without what was prefetched meanwhile. */
static enum leat_status
fill(struct run *r, struct leat_err *err)
{
	enum leat_status status = LEAT_OK;
	uint64_t until = leat_now() + (uint64_t)(r->probe->seconds * 8e9), seen = 0;

	while (seen < r->probe->fill && status == LEAT_OK) {
		struct leat_batch *batch;

		status = next(r, until, &batch, err);
		if (status != LEAT_OK)
			break;
		seen += count_valid(batch);
		leat_release(batch);
	}
	if (status == LEAT_TIMEOUT)
		leat_err_clear(err);
	else if (status != LEAT_OK)
		return status;
	return leat_seek(r->feed, 1, 0, err);
}

static enum leat_status
seek(struct run *r, struct leat_err *err)
{
	uint64_t global = (uint64_t)r->feed->global_rows, size = r->feed->pipeline.plan.size;
	uint64_t position = (uint64_t)((double)size * r->probe->seek);

	position -= global ? position % global : 0;
	return leat_seek(r->feed, 0, position, err);
}

/* Takes what was made before anybody asked, which says nothing about the rate. */
static enum leat_status
drain(struct run *r, struct leat_err *err)
{
	enum leat_status status = LEAT_OK;

	for (int i = 0; i <= r->feed->budget.depth && status == LEAT_OK; i++) {
		struct leat_batch *batch;

		status = next(r, 0, &batch, err);
		if (status == LEAT_OK)
			leat_release(batch);
	}
	if (status == LEAT_TIMEOUT) {
		leat_err_clear(err);
		status = LEAT_OK;
	}
	return status;
}

/* The measurement begins with a batch that had to be waited for, if there is one. */
static enum leat_status
take_first(struct run *r, struct leat_err *err)
{
	/* It may take long on a busy machine or from a slow store, and without it there is nothing. */
	uint64_t asked = leat_now(), until = asked + (uint64_t)(r->probe->seconds * 4e9) + PATIENCE_NS;
	struct leat_batch *batch;
	enum leat_status status = next(r, until, &batch, err);

	if (status != LEAT_OK)
		return status;
	leat_release(batch);
	r->out->first_s = (double)(leat_now() - asked) / 1e9;
	status = drain(r, err);
	if (status == LEAT_OK)
		status = next(r, until, &batch, err);
	if (status != LEAT_OK)
		return status;
	r->first = r->last = leat_now();
	r->cpu_begin = process_cpu(r->probe);
	r->sleeps = count_sleeps();
	leat_trace_total(&r->feed->trace, &r->before);
	step(r, r->first);
	leat_release(batch);
	r->deadline = r->first + (uint64_t)(r->probe->seconds * 1e9);
	r->cap = r->first + (uint64_t)(r->probe->seconds * 3e9);
	return LEAT_OK;
}

/* The time is over before the next batch has come. If that takes longer than the others took, half of it is counted as
 * done. */
static void
count_last_wait(struct run *r)
{
	uint64_t now = leat_now();

	if (r->batches > 0 && now - r->last < (r->last - r->first) / r->batches)
		return;
	r->samples += (uint64_t)leat_batch_size(r->feed) / 2;
	r->batches++;
	r->last = now;
}

static enum leat_status
take_all(struct run *r, struct leat_err *err)
{
	enum leat_status status = LEAT_OK;

	while (status == LEAT_OK && (r->last < r->deadline || r->batches < 2)) {
		uint64_t asked = leat_now(), arrived;
		struct leat_batch *batch;

		if (asked > r->cap)
			break;
		status = next(r, r->batches < 2 ? r->cap : r->deadline, &batch, err);
		if (status != LEAT_OK)
			break;
		arrived = leat_now();
		note_arrival(r, asked, arrived);
		r->batches++;
		r->samples += count_valid(batch);
		step(r, arrived);
		leat_release(batch);
	}
	if (status == LEAT_TIMEOUT) {
		count_last_wait(r);
		leat_err_clear(err);
		status = LEAT_OK;
	}
	return status;
}

static int
by_length(const void *a, const void *b)
{
	float x = *(const float *)a, y = *(const float *)b;

	return (x > y) - (x < y);
}

/* Slow batches: those that waited ten times as long as the middle one, and longer than 20 ms. */
static void
find_stalls(struct run *r, double seconds)
{
	double median, slow = 0;
	unsigned count = 0;

	if (r->gaps < 8)
		return;
	qsort(r->gap, r->gaps, sizeof *r->gap, by_length);
	median = (double)r->gap[r->gaps / 2];
	for (unsigned i = 0; i < r->gaps; i++)
		if ((double)r->gap[i] > 10 * median && (double)r->gap[i] > 0.02) {
			slow += (double)r->gap[i];
			count++;
		}
	r->out->stalled = slow / seconds;
	r->out->slow_batches = (double)count / r->gaps;
	r->out->stall_s = (double)r->gap[r->gaps - 1];
}

static void
name_op(const struct leat_feed *feed, const struct leat_totals *now, const struct leat_totals *before,
        struct leat_probed *out)
{
	uint64_t most = 0, all = 0;

	for (int s = 0; s < feed->pipeline.stages; s++) {
		uint64_t ns = now->stage_ns[s] - before->stage_ns[s];

		all += ns;
		if (ns < most || (s > 0 && ns == most))
			continue;
		most = ns;
		strncpy(out->op, feed->pipeline.stage[s].op[0]->op->name, sizeof out->op - 1);
	}
	out->op_share = all ? (double)most / (double)all : 0;
}

static bool
is_remote(const struct leat_feed *feed)
{
	const struct leat_stores *stores = &feed->pipeline.source.stores;
	struct leat_origin_counts counts;

	for (size_t i = 0; i < sizeof stores->store / sizeof *stores->store; i++)
		if (stores->store[i] && leat_remote_counts(stores->store[i], &counts))
			return true;
	return false;
}

static void
describe(const struct leat_feed *feed, struct leat_probed *out)
{
	struct leat_cache_stats cache = {0};

	out->threads = feed->budget.threads;
	out->requests = (unsigned)feed->budget.requests;
	out->depth = feed->budget.depth;
	out->prefetch = (double)feed->pipeline.prefetch;
	out->batch = (double)leat_batch_size(feed);
	out->epoch_samples = (double)leat_samples(feed) / leat_world(feed);
	out->source_samples = (double)feed->pipeline.source.count;
	out->memory_left = (double)(feed->options.memory - feed->budget.least);
	out->world = leat_world(feed);
	out->remote = is_remote(feed);
	if (feed->cache)
		leat_cache_stats(feed->cache, &cache);
	out->cache_bytes = (double)cache.bytes;
	out->cache_kept = (double)cache.kept;
	out->cache_size = (double)cache.capacity;
}

static double
delta(uint64_t now, uint64_t before)
{
	return (double)(now - before) / 1e9;
}

static void
sum_up(struct run *r)
{
	struct leat_probed *out = r->out;
	struct leat_totals now, *was = &r->before;
	double cpu = process_cpu(r->probe) - r->cpu_begin - r->step_cpu, n = (double)r->samples;

	leat_trace_total(&r->feed->trace, &now);
	describe(r->feed, out);
	/* If nothing came after the first batch, the first one is all there is to go by. */
	out->seconds = r->batches ? delta(r->last, r->first) : out->first_s;
	if (!r->batches)
		n = out->batch;
	out->samples = n;
	out->rate = out->seconds > 0 ? n / out->seconds : 0;
	out->cpu_s = n > 0 && cpu > 0 ? cpu / n : 0;
	out->sleeps = n > 0 ? (double)(count_sleeps() - r->sleeps) / n : 0;
	out->read_s = n > 0 ? delta(now.read_ns, was->read_ns) / n : 0;
	out->op_s = n > 0 ? delta(now.op_ns, was->op_ns) / n : 0;
	out->read_bytes = n > 0 ? (double)(now.bytes_read - was->bytes_read) / n : 0;
	out->bytes = n > 0 ? (double)(now.bytes - was->bytes) / n : 0;
	out->io_wait = out->seconds > 0 ? delta(now.read_wait_ns, was->read_wait_ns) / out->seconds : 0;
	out->idle = out->seconds > 0 ? delta(now.idle_ns, was->idle_ns) / out->seconds / out->threads : 0;
	if (now.wait_ns + now.run_ns > was->wait_ns + was->run_ns)
		out->waited = (double)(now.wait_ns - was->wait_ns) /
		              (double)(now.wait_ns - was->wait_ns + now.run_ns - was->run_ns);
	out->step_ms = r->step_total / (double)(r->batches + 1);
	name_op(r->feed, &now, was, out);
	find_stalls(r, out->seconds);
}

enum leat_status
leat_probe(const struct leat_probe *probe, struct leat_probed *out, struct leat_err *err)
{
	struct run r = {.probe = probe, .out = out};
	uint64_t begin = leat_now();
	enum leat_status status;

	*out = (struct leat_probed){0};
	status = leat_open(probe->spec, probe->options, &r.feed, err);
	out->open_s = (double)(leat_now() - begin) / 1e9;
	if (status == LEAT_OK && probe->seek > 0)
		status = seek(&r, err);
	if (status == LEAT_OK && probe->fill)
		status = fill(&r, err);
	if (status == LEAT_OK)
		status = take_first(&r, err);
	if (status == LEAT_OK)
		status = take_all(&r, err);
	if (status == LEAT_OK)
		sum_up(&r);
	if (status == LEAT_TIMEOUT) {
		describe(r.feed, out); /* nothing came in time: a rate of 0 says so */
		leat_err_clear(err);
		status = LEAT_OK;
	}
	if (status == LEAT_OK && probe->keep_json && !(out->json = leat_stats_json(r.feed)))
		status = leat_fail(err, LEAT_NOMEM, "no memory for the statistics");
	leat_close(r.feed);
	return status;
}
