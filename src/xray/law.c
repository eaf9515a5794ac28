/* law.c - see law.h */
#include "xray/law.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "trace/limit.h"

/* A second part this close to the slowest one is a limit as well. */
static const double both = 1.1;
/* Below this, a figure that could be better is not worth a sentence. */
static const double worth = 1.25;

/* ---- the law ---- */

struct leat_case
leat_case_now(const struct leat_measures *f)
{
	return (struct leat_case){
		.threads = f->threads,
		.ops = f->now,
		.from_cache = f->from_cache,
		.storage = f->storage,
		.read_s = f->read_s,
		.read_cpu_s = f->read_cpu_s,
		.cached = f->cached,
		.depth = f->depth,
	};
}

/* Time of a worker per sample. A pace measured with fewer threads, such as that of a cache, is assumed to scale. */
static double
thread_s(const struct leat_tempo *pace)
{
	return pace->rate > 0 && pace->threads ? pace->threads / pace->rate : 0;
}

static double
least(double a, double b)
{
	return a < b ? a : b;
}

static double
per(double amount, double cost)
{
	return cost > 0 ? amount / cost : INFINITY;
}

static double
or_any(double rate)
{
	return rate > 0 ? rate : INFINITY;
}

struct leat_rates
leat_predict(const struct leat_measures *f, const struct leat_case *c)
{
	const double missed = 1 - c->cached;
	const double consumer = or_any(f->consumer);
	/* The step's CPUs are taken for as long as a sample's share of it. */
	const double step_cpu = f->step_threads / consumer;
	const double busy = missed * (thread_s(&c->ops) + c->read_s) + c->cached * thread_s(&c->from_cache);
	const double cpu = missed * (c->ops.cpu_s + c->read_cpu_s) + c->cached * c->from_cache.cpu_s + step_cpu;
	const double by_threads = per(c->threads, busy), by_cpus = per(f->cpus, cpu);
	struct leat_rates r = {
		.storage = missed > 0 ? or_any(c->storage) / missed : INFINITY,
		.workers = least(by_threads, by_cpus),
		.delivery = or_any(f->delivery),
		.consumer = consumer,
		.by_cpu = by_cpus < by_threads,
	};

	r.loader = least(least(r.storage, r.workers), r.delivery);
	r.whole = least(r.loader, r.consumer);
	if (c->depth == 0)
		r.whole = per(1, 1 / r.loader + 1 / r.consumer);
	return r;
}

/* ---- the verdict ---- */

/* A part with its rate, to sort. */
struct part {
	enum leat_finding_kind kind;
	double rate;
};

static enum leat_finding_kind
kind_of_work(const struct leat_measures *f)
{
	return !f->op[0] || f->read_s > thread_s(&f->now) ? LEAT_FINDING_READ : LEAT_FINDING_OPS;
}

static void
sort_parts(struct part *part, int count)
{
	for (int i = 1; i < count; i++)
		for (int k = i; k > 0 && part[k].rate < part[k - 1].rate; k--) {
			struct part swap = part[k];

			part[k] = part[k - 1];
			part[k - 1] = swap;
		}
}

static const char *
name_of(const struct leat_measures *f, enum leat_finding_kind kind)
{
	switch (kind) {
	case LEAT_FINDING_STEP:
	case LEAT_FINDING_SLOWED:
		return "step";
	case LEAT_FINDING_STORAGE:
		return f->remote ? "network" : f->warm ? "read" : "disk";
	case LEAT_FINDING_STALLS:
		return f->remote ? "network" : "disk";
	case LEAT_FINDING_OPS:
		return f->op;
	case LEAT_FINDING_READ:
		return "read";
	case LEAT_FINDING_DELIVERY:
		return "delivery";
	case LEAT_FINDING_PREFETCH:
		return "prefetch";
	case LEAT_FINDING_WINDOW:
		return "window";
	case LEAT_FINDING_CACHE:
		return "cache";
	case LEAT_FINDING_START:
		return "first batch";
	}
	return "";
}

/* "decode on 2 threads", as the subject of a sentence. */
static const char *
subject(const struct leat_measures *f, enum leat_finding_kind kind, char *buf, size_t cap)
{
	const char *s = f->threads == 1 ? "" : "s";

	if (kind == LEAT_FINDING_OPS)
		snprintf(buf, cap, "%s on %u thread%s", f->op, f->threads, s);
	else if (kind == LEAT_FINDING_READ)
		snprintf(buf, cap, "reading on %u thread%s", f->threads, s);
	else if (kind == LEAT_FINDING_STORAGE)
		snprintf(buf, cap, "storage");
	else if (kind == LEAT_FINDING_DELIVERY)
		snprintf(buf, cap, "making batches");
	else
		snprintf(buf, cap, "your step");
	return buf;
}

static void say(struct leat_finding *v, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

static void
say(struct leat_finding *v, const char *fmt, ...)
{
	size_t used = strlen(v->sentence);
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(v->sentence + used, sizeof v->sentence - used, fmt, ap);
	va_end(ap);
}

static void
say_times(struct leat_finding *v, double times)
{
	if (times < 1.1)
		say(v, "the step and the loader are balanced");
	else if (times < 1e6)
		say(v, "the step is the limit; the loader could give %.*f times as much", times < 9.95 ? 1 : 0, times);
	else
		say(v, "the step is the limit");
}

static void
say_limit(const struct leat_measures *f, struct leat_finding *v, const struct part *slow, const struct part *next)
{
	char who[LEAT_XRAY_NAME + 32], rate[32], mb[48] = "";

	if (slow->kind == LEAT_FINDING_STEP) {
		say_times(v, v->rates.loader / v->rates.consumer);
		return;
	}
	if (slow->kind == LEAT_FINDING_STORAGE && f->read_bytes > 0)
		snprintf(mb, sizeof mb, " (%.1f MB/s)", slow->rate * f->read_bytes / 1e6);
	say(v, "%s gives %s samples/s%s", subject(f, slow->kind, who, sizeof who), leat_rate_text(rate, slow->rate),
	    mb);
	if (next->rate > 1e12)
		return;
	leat_rate_text(rate, next->rate);
	subject(f, next->kind, who, sizeof who);
	if (v->also[0])
		say(v, " and %s %s: both are limits", who, rate);
	else
		say(v, "; %s could %s %s", who, next->kind == LEAT_FINDING_STEP ? "take" : "give", rate);
}

/* What the parts alone don't show: reasons why the whole is slower than the slowest of them, or why that part is
 * slower than it has to be. In order of precedence. */
static bool
judge_special(const struct leat_measures *f, struct leat_finding *v)
{
	const struct leat_case now = leat_case_now(f);
	const double whole = f->whole > 0 ? f->whole : v->rates.whole;
	struct leat_case other = now;
	char rate[32], could[32];

	if (f->epoch_samples > 0 && f->open_s > 1 && f->open_s > 0.25 * f->epoch_samples / whole) {
		v->kind = LEAT_FINDING_START;
		say(v, "listing and indexing take %.1f s, and all samples of an epoch %.1f s", f->open_s,
		    f->epoch_samples / whole);
		return true;
	}
	/* Batches are delivered in order, so that from any distant store they come in bursts. A slow read is one that
	 * takes far longer than others do, and leaves workers nothing to do. */
	if (f->stalled > 0.3 && f->slow_batches < 0.2 && f->latency_s > 0 && f->stall_s > 10 * f->latency_s &&
	    f->idle > f->stalled / 2) {
		v->kind = LEAT_FINDING_STALLS;
		say(v,
		    "few slow reads hold up all others: %.0f %% of the time was spent on %.1f %% of the batches, the "
		    "longest wait was %.2f s",
		    100 * f->stalled, 100 * f->slow_batches, f->stall_s);
		return true;
	}
	if (f->step_ms > 0 && f->step_loaded_ms > 1.15 * f->step_ms && v->rates.loader > v->rates.consumer) {
		v->kind = LEAT_FINDING_SLOWED;
		say(v, "the loader slows the step down: it takes %.1f ms alone and %.1f ms while the loader runs",
		    f->step_ms, f->step_loaded_ms);
		return true;
	}
	other.depth = 1;
	if (f->depth == 0 && leat_predict(f, &other).whole > 1.05 * v->rates.whole) {
		v->kind = LEAT_FINDING_PREFETCH;
		say(v, "no batch is made ahead, so loading and the step take turns: %s samples/s instead of %s",
		    leat_rate_text(rate, whole), leat_rate_text(could, leat_predict(f, &other).whole));
		return true;
	}
	other = now;
	other.cached = 1;
	if (f->cached > 0 && f->cached < 0.9 && leat_predict(f, &other).whole > worth * v->rates.whole) {
		v->kind = LEAT_FINDING_CACHE;
		say(v,
		    "the cache holds %.0f %% of the samples and gives %s samples/s; with all of them it could give %s",
		    100 * f->cached, leat_rate_text(rate, whole), leat_rate_text(could, leat_predict(f, &other).whole));
		return true;
	}
	other = now;
	other.storage = f->window;
	if (f->window > 0 && leat_predict(f, &other).whole > worth * v->rates.whole) {
		v->kind = LEAT_FINDING_WINDOW;
		say(v, "too few reads are in flight: storage gives %s samples/s, and with more %s",
		    leat_rate_text(rate, f->storage), leat_rate_text(could, f->window));
		return true;
	}
	return false;
}

void
leat_judge(const struct leat_measures *f, struct leat_finding *v)
{
	const struct leat_case now = leat_case_now(f);
	struct part part[4];

	*v = (struct leat_finding){.rates = leat_predict(f, &now)};
	part[0] = (struct part){LEAT_FINDING_STEP, v->rates.consumer};
	part[1] = (struct part){kind_of_work(f), v->rates.workers};
	part[2] = (struct part){LEAT_FINDING_STORAGE, v->rates.storage};
	part[3] = (struct part){LEAT_FINDING_DELIVERY, v->rates.delivery};
	sort_parts(part, 4);
	if (!judge_special(f, v)) {
		v->kind = part[0].kind;
		/* Workers that read from memory are no second limit to storage that is memory. */
		if (part[1].rate < both * part[0].rate && part[0].kind != LEAT_FINDING_STEP &&
		    part[1].kind != LEAT_FINDING_STEP &&
		    !(f->warm && (part[0].kind == LEAT_FINDING_READ || part[1].kind == LEAT_FINDING_READ)))
			snprintf(v->also, sizeof v->also, "%s", name_of(f, part[1].kind));
		say_limit(f, v, &part[0], &part[1]);
	}
	snprintf(v->limit, sizeof v->limit, "%s", name_of(f, v->kind));
}
