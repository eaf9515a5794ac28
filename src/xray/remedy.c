/* remedy.c - see remedy.h */
#include "xray/remedy.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/size.h"
#include "base/str.h"
#include "trace/limit.h"

/* What a remedy has to bring. Less is within what runs differ by. */
static const double least_gain = 1.1;

static const char *const names[] = {"prefetch",   "threads",     "leave_cpus", "memory", "cache_size",
                                    "cache",      "fast_decode", "index",      "order",  "ahead",
                                    "disk_cache", "convert",     "pack"};

const char *
leat_remedy_name(enum leat_remedy_kind kind)
{
	return names[kind];
}

/* Remedies under construction. */
struct list {
	const struct leat_measures *f;
	const struct leat_alternatives *a;
	const struct leat_finding *v;
	struct leat_remedy *one;
	int count;
};

static struct leat_remedy *add(struct list *list, enum leat_remedy_kind kind, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

static struct leat_remedy *
add(struct list *list, enum leat_remedy_kind kind, const char *fmt, ...)
{
	struct leat_remedy *r = &list->one[list->count++];
	va_list ap;

	*r = (struct leat_remedy){.kind = kind, .then = leat_case_now(list->f), .now = list->v->rates.whole};
	va_start(ap, fmt);
	vsnprintf(r->what, sizeof r->what, fmt, ap);
	va_end(ap);
	return r;
}

static void refuse(struct leat_remedy *r, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

static void
refuse(struct leat_remedy *r, const char *fmt, ...)
{
	va_list ap;

	r->impossible = true;
	va_start(ap, fmt);
	vsnprintf(r->why, sizeof r->why, fmt, ap);
	va_end(ap);
}

/* ---- threads ---- */

static double
rate_with(const struct list *list, const struct leat_tempo *pace)
{
	struct leat_case c = leat_case_now(list->f);

	c.threads = pace->threads;
	c.ops = *pace;
	return leat_predict(list->f, &c).whole;
}

/* The fewest threads above the present ones that give nearly all there is to gain. NULL: none were measured. */
static const struct leat_tempo *
best_pace(const struct list *list)
{
	const struct leat_tempo *best = NULL;
	double most = 0;

	for (int i = 0; i < list->a->paces; i++)
		if (list->a->pace[i].threads > list->f->threads && rate_with(list, &list->a->pace[i]) > most)
			most = rate_with(list, &list->a->pace[i]);
	for (int i = 0; i < list->a->paces; i++) {
		const struct leat_tempo *pace = &list->a->pace[i];

		if (pace->threads > list->f->threads && rate_with(list, pace) >= 0.95 * most &&
		    (!best || pace->threads < best->threads))
			best = pace;
	}
	return best;
}

static void
refuse_threads(const struct leat_measures *f, struct leat_remedy *r)
{
	if (f->quota)
		refuse(r, "the quota of %.3g CPUs is used up by %u thread%s", f->cpus, f->threads,
		       leat_plural(f->threads));
	else if (f->cores && f->cores < f->cpus)
		refuse(r, "each of the %.0f CPUs has a thread, and they share %u core%s", f->cpus, f->cores,
		       leat_plural(f->cores));
	else if (f->cpus < 2)
		refuse(r, "there is one CPU, and it has a thread");
	else
		refuse(r, "each of the %.0f CPUs has a thread", f->cpus);
}

static void
consider_threads(struct list *list)
{
	const struct leat_measures *f = list->f;
	const struct leat_tempo *pace = best_pace(list);
	struct leat_remedy *r;

	if (!pace) {
		r = add(list, LEAT_REMEDY_THREADS, "use more threads");
		refuse_threads(f, r);
		return;
	}
	if (pace->threads > f->cpus + 0.999)
		r = add(list, LEAT_REMEDY_THREADS, "use %u threads, more than CPUs: %s waits more than it computes",
		        pace->threads, f->op[0] ? f->op : "an op");
	else
		r = add(list, LEAT_REMEDY_THREADS, "use %u threads", pace->threads);
	r->threads = r->then.threads = pace->threads;
	r->then.ops = *pace;
	if (r->then.from_cache.threads)
		r->then.from_cache.rate *= (double)pace->threads / r->then.from_cache.threads;
	r->then.from_cache.threads = pace->threads;
}

/* ---- for a step that the loader slows down ---- */

static void
consider_leaving_cpus(struct list *list)
{
	const struct leat_measures *f = list->f;
	double left = floor(f->cpus) - f->step_threads;
	struct leat_remedy *r;

	if (list->v->kind != LEAT_FINDING_SLOWED)
		return;
	r = add(list, LEAT_REMEDY_LEAVE_CPUS, "use %.0f thread%s, so that the step has its CPUs", left > 1 ? left : 1,
	        left > 1 ? "s" : "");
	r->threads = r->then.threads = left > 1 ? (unsigned)left : 1;
	r->now = f->consumer * f->step_ms / f->step_loaded_ms;
	if (r->threads >= f->threads)
		refuse(r, "there are not enough CPUs for both: the step uses %u of %.3g", f->step_threads, f->cpus);
	else if (r->then.ops.rate < INFINITY)
		r->then.ops.rate *= (double)r->threads / r->then.ops.threads;
	r->then.ops.threads = r->threads;
}

/* ---- caches ---- */

/* What `bytes` of a cache bring at this place. */
static void
set_cached(const struct leat_measures *f, const struct leat_cache_place *place, double share, struct leat_case *c)
{
	c->cached = share;
	c->from_cache = place->pace;
	c->threads = f->threads;
}

static void
consider_cache(struct list *list, int i)
{
	const struct leat_cache_place *place = &list->a->place[i];
	double bytes = place->bytes * list->a->samples, share = bytes > 0 ? list->a->room / bytes : 1;
	char size[32], room[32];
	struct leat_remedy *r;

	leat_format_size_up(size, sizeof size, (unsigned long long)bytes);
	leat_format_size(room, sizeof room, (unsigned long long)list->a->room);
	r = add(list, LEAT_REMEDY_CACHE, "cache after %s, in memory: %s", place->after, size);
	r->place = i;
	if (share >= 1) {
		set_cached(list->f, place, 1, &r->then);
		return;
	}
	/* A cache never evicts, so one that is too small still helps with what it holds. */
	snprintf(r->what, sizeof r->what, "cache after %s, in memory: %s of %s", place->after, room, size);
	set_cached(list->f, place, share, &r->then);
	if (leat_predict(list->f, &r->then).whole < least_gain * list->v->rates.whole)
		refuse(r, "%s do not fit: memory= has %s for a cache", size, room);
}

/* The best place of those in memory. */
static double
best_cached(const struct list *list)
{
	double best = 0;

	for (int k = 0; k < list->count; k++)
		if (list->one[k].kind == LEAT_REMEDY_CACHE && !list->one[k].impossible)
			best = fmax(best, leat_predict(list->f, &list->one[k].then).whole);
	return best;
}

/* Outside of memory: on disk, or as files made once. */
static void
consider_copies(struct list *list)
{
	const struct leat_alternatives *a = list->a;
	const struct leat_cache_place *last = a->places ? &a->place[a->places - 1] : NULL;
	char size[32];
	struct leat_remedy *r;

	if (!last || list->v->kind == LEAT_FINDING_STEP)
		return;
	leat_format_size_up(size, sizeof size, (unsigned long long)(last->bytes * a->samples));
	r = add(list, LEAT_REMEDY_CACHE_DISK, "cache after %s, on a fast disk (dir=): %s", last->after, size);
	set_cached(list->f, last, 1, &r->then);
	r->at_most = true;
	if (last->raw)
		return;
	r = add(list, LEAT_REMEDY_CONVERT, "convert offline up to %s (leat convert): %s", last->after, size);
	r->then.ops = last->pace;
	r->at_most = true;
	if (list->f->read_bytes > 0 && last->bytes > 0) {
		r->then.storage *= list->f->read_bytes / last->bytes;
		r->then.read_s *= last->bytes / list->f->read_bytes;
		r->then.read_cpu_s *= last->bytes / list->f->read_bytes;
	}
}

static void
consider_caches(struct list *list)
{
	const struct leat_measures *f = list->f;
	char size[32];

	if (list->a->has_cache) {
		struct leat_remedy *r;

		if (f->cached >= 0.999)
			return;
		leat_format_size_up(size, sizeof size, (unsigned long long)f->cache_all);
		r = add(list, LEAT_REMEDY_CACHE_SIZE, "give the cache room for all samples: %s", size);
		r->then.cached = 1;
		if (f->cache_all > list->a->room + f->cache_size) {
			r->then.cached = fmax(f->cached, (list->a->room + f->cache_size) / f->cache_all);
			snprintf(r->what, sizeof r->what,
			         "give the cache all that memory= leaves, for %.0f %% of the samples",
			         100 * r->then.cached);
		}
		return;
	}
	for (int i = 0; i < list->a->places; i++)
		consider_cache(list, i);
	if (best_cached(list) < least_gain * list->v->rates.whole)
		consider_copies(list);
}

/* ---- the rest ---- */

static void
consider_prefetch(struct list *list)
{
	struct leat_remedy *r;

	if (list->f->depth == 0) {
		r = add(list, LEAT_REMEDY_PREFETCH, "remove prefetch(0), so that batches are made ahead");
		r->then.depth = 1;
	} else if (list->v->kind != LEAT_FINDING_STALLS && !list->f->short_queue) {
		r = add(list, LEAT_REMEDY_PREFETCH, "prefetch more batches");
		refuse(r, "%d are made ahead; a longer queue evens out hiccups, but fills no faster", list->f->depth);
	}
}

static void
consider_memory(struct list *list)
{
	struct leat_remedy *r;

	if (list->f->window <= 0)
		return;
	r = add(list, LEAT_REMEDY_MEMORY, "%s, for more reads in flight",
	        list->f->short_queue ? "prefetch more batches" : "raise memory=");
	r->then.storage = list->f->window;
}

static void
consider_order(struct list *list)
{
	struct leat_remedy *r;

	if (list->a->blocks <= 0)
		return;
	r = add(list, LEAT_REMEDY_ORDER,
	        "shuffle in blocks, so that neighbours are read together: "
	        "shuffle(window=64, block=64)");
	r->then.storage = list->a->blocks;
}

static void
consider_decode(struct list *list)
{
	struct leat_remedy *r;

	if (!list->a->jpeg)
		return;
	r = add(list, LEAT_REMEDY_FAST_DECODE, "decode(fast=true): JPEGs at reduced size, pixels differ slightly");
	r->then.ops = list->a->fast;
}

static void
consider_pack(struct list *list)
{
	struct leat_remedy *r;

	if (!list->a->small_files)
		return;
	r = add(list, LEAT_REMEDY_PACK, "pack the files into shards (leat pack)");
	r->at_most = true;
	/* Opening each file is what costs; of shards, only the bytes are read. */
	r->then.storage = INFINITY;
	r->then.read_s /= 2;
	r->then.read_cpu_s /= 2;
}

static void
consider_start(struct list *list)
{
	const struct leat_measures *f = list->f;
	struct leat_remedy *r;

	if (list->v->kind != LEAT_FINDING_START)
		return;
	r = add(list, LEAT_REMEDY_INDEX, "index the data once, where every run can read it (leat index)");
	r->at_most = true;
	r->now = f->epoch_samples / (f->open_s + f->epoch_samples / list->v->rates.whole);
}

static void
consider_stalls(struct list *list)
{
	const struct leat_measures *f = list->f;
	struct leat_remedy *r;

	if (list->v->kind != LEAT_FINDING_STALLS)
		return;
	r = add(list, LEAT_REMEDY_AHEAD, "prefetch %.0f batches or more, to sit out slow reads; find the slow object",
	        ceil(f->stall_s * list->v->rates.whole / fmax(1, list->a->batch)));
	r->at_most = true;
	r->now = f->whole;
	/* The parts alone were slowed down in the same way. */
	r->then.storage = fmax(f->storage, f->whole / (1 - f->stalled));
}

/* ---- judging ---- */

/* What would limit then. */
static void
explain(const struct list *list, const struct leat_rates *then, struct leat_remedy *r)
{
	char rate[32];

	if (list->v->kind == LEAT_FINDING_STEP || then->consumer <= then->loader * 1.001)
		snprintf(r->why, sizeof r->why, "the step is the limit");
	else if (then->storage <= then->workers && then->storage <= then->delivery)
		snprintf(r->why, sizeof r->why, "storage would still give %s samples/s",
		         leat_rate_text(rate, then->storage));
	else if (then->delivery <= then->workers)
		snprintf(r->why, sizeof r->why, "making batches would still give %s samples/s",
		         leat_rate_text(rate, then->delivery));
	else
		snprintf(r->why, sizeof r->why, "%s would still give %s samples/s",
		         list->f->op[0] ? list->f->op : "reading", leat_rate_text(rate, then->workers));
}

static void
judge(const struct list *list, struct leat_remedy *r)
{
	struct leat_rates then = leat_predict(list->f, &r->then);

	r->predicted = then.whole;
	r->helps = !r->impossible && then.whole >= least_gain * r->now;
	if (list->v->kind == LEAT_FINDING_STEP)
		r->helps = false;
	if (!r->helps && (!r->impossible || list->v->kind == LEAT_FINDING_STEP))
		explain(list, &then, r);
}

/* Of two that bring nearly the same, the cheaper. */
static bool
is_better(const struct leat_remedy *a, const struct leat_remedy *b)
{
	if (a->helps != b->helps)
		return a->helps;
	if (!a->helps)
		return a->kind < b->kind;
	if (a->at_most != b->at_most)
		return b->at_most;
	if (a->predicted > 1.05 * b->predicted || b->predicted > 1.05 * a->predicted)
		return a->predicted > b->predicted;
	return a->kind < b->kind;
}

int
leat_remedies(const struct leat_measures *f, const struct leat_alternatives *a, const struct leat_finding *v,
              struct leat_remedy remedy[LEAT_REMEDIES])
{
	struct list list = {f, a, v, remedy, 0};

	consider_prefetch(&list);
	consider_threads(&list);
	consider_leaving_cpus(&list);
	consider_memory(&list);
	consider_caches(&list);
	consider_decode(&list);
	consider_order(&list);
	consider_pack(&list);
	consider_start(&list);
	consider_stalls(&list);
	for (int i = 0; i < list.count; i++)
		judge(&list, &remedy[i]);
	for (int i = 1; i < list.count; i++)
		for (int k = i; k > 0 && is_better(&remedy[k], &remedy[k - 1]); k--) {
			struct leat_remedy swap = remedy[k];

			remedy[k] = remedy[k - 1];
			remedy[k - 1] = swap;
		}
	return list.count;
}
