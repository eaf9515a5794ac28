/* limit.c - see limit.h */
#include "trace/limit.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* ---- words ---- */

char *
leat_rate_text(char buf[LEAT_RATE_TEXT], double rate)
{
	char digits[LEAT_RATE_TEXT];
	size_t len, to = 0;

	if (!(rate < 1e15)) {
		snprintf(buf, LEAT_RATE_TEXT, "any number of");
		return buf;
	}
	if (!(rate > 0))
		rate = 0;
	len = (size_t)snprintf(digits, sizeof digits, rate < 9.95 ? "%.1f" : "%.0f", rate);
	for (size_t i = 0; i < len; i++) {
		if (i > 0 && rate >= 9.95 && (len - i) % 3 == 0)
			buf[to++] = ',';
		buf[to++] = digits[i];
	}
	buf[to] = '\0';
	return buf;
}

char *
leat_times_text(char buf[LEAT_RATE_TEXT], double times)
{
	unsigned long long tenths = times > 0 && times < 1e6 ? (unsigned long long)llrint(times * 10) : 0;

	if (tenths < 100)
		snprintf(buf, LEAT_RATE_TEXT, "%llu.%llu", tenths / 10, tenths % 10);
	else
		snprintf(buf, LEAT_RATE_TEXT, "%llu", (tenths + 5) / 10);
	return buf;
}

static void say(struct leat_limit *limit, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

static void
say(struct leat_limit *limit, const char *fmt, ...)
{
	size_t used = strlen(limit->sentence);
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(limit->sentence + used, LEAT_SENTENCE - used, fmt, ap);
	va_end(ap);
}

/* At most three proposals: a reader tries one. They are collected first, to join them with commas and "or". */
enum { PROPOSALS = 3 };
struct proposals {
	char text[PROPOSALS][100];
	int count;
};

static void propose(struct proposals *p, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

static void
propose(struct proposals *p, const char *fmt, ...)
{
	va_list ap;

	if (p->count == PROPOSALS)
		return;
	va_start(ap, fmt);
	vsnprintf(p->text[p->count++], sizeof p->text[0], fmt, ap);
	va_end(ap);
}

static void
say_proposals(struct leat_limit *limit, const struct proposals *p)
{
	for (int i = 0; i < p->count; i++)
		say(limit, "%s%s", i == 0 ? " Try " : i + 1 == p->count ? " or " : ", ", p->text[i]);
	if (p->count)
		say(limit, ".");
}

static void
say_step(struct leat_limit *limit, const struct leat_stage_list *list)
{
	char rate[LEAT_RATE_TEXT];

	/* A loop that does next to nothing is not a step. */
	if (!list->stepless && list->run_s > 0.01 * (list->run_s + list->wait_s))
		say(limit, "; the step could take %s", leat_rate_text(rate, (double)list->samples / list->run_s));
	say(limit, ".");
}

/* ---- facts ---- */

bool
leat_limit_has_free_cpus(const struct leat_stage_list *list)
{
	return list->threads + 1 <= list->cpus + 1e-6 && list->cpus_used < 0.85 * list->cpus;
}

static const struct leat_stage_figures *
find(const struct leat_stage_list *list, enum leat_stage_kind kind)
{
	for (int i = 0; i < list->count; i++)
		if (list->one[i].kind == kind)
			return &list->one[i];
	return NULL;
}

static int
slowest_stage(const struct leat_stage_list *list)
{
	int slowest = -1;

	for (int i = 0; i < list->count; i++)
		if (list->one[i].kind == LEAT_STAGE_OPS &&
		    (slowest < 0 || list->one[i].busy_s > list->one[slowest].busy_s))
			slowest = i;
	return slowest;
}

/* Do workers spend more time reading, unpacking and copying than on ops? */
static bool
mostly_reads(const struct leat_stage_list *list)
{
	double ops = 0, rest = 0;

	for (int i = 0; i < list->count; i++)
		switch (list->one[i].kind) {
		case LEAT_STAGE_OPS:
			ops += list->one[i].busy_s;
			break;
		case LEAT_STAGE_READ:
		case LEAT_STAGE_UNPACK:
		case LEAT_STAGE_CACHE:
		case LEAT_STAGE_COLLATE:
			rest += list->one[i].busy_s;
			break;
		default:
			break;
		}
	return rest > ops;
}

static enum leat_limit_kind
kind_of(const struct leat_stage_list *list)
{
	/* The consumer waits less than 5 % of the time, so it is the bottleneck. */
	if (list->wait_s <= (list->wait_s + list->run_s) / 20)
		return LEAT_LIMIT_STEP;
	if (!list->ahead)
		return LEAT_LIMIT_PREFETCH;
	/* Reads from servers end one by one, so that hardly ever all workers wait at once. But workers that are idle
	 * for a quarter of the time are not the bottleneck. */
	if (list->remote && list->idle_s > list->work_s / 3)
		return LEAT_LIMIT_NETWORK;
	if (list->disk_wait_s > list->wait_s / 2)
		return list->remote ? LEAT_LIMIT_NETWORK : LEAT_LIMIT_DISK;
	return slowest_stage(list) < 0 || mostly_reads(list) ? LEAT_LIMIT_READ : LEAT_LIMIT_STAGE;
}

/* Samples/s of the workers if they never had to wait; 0: unknown. */
static double
rate_of_workers(const struct leat_stage_list *list)
{
	double busy = 0, items = 0;

	for (int i = 0; i < list->count; i++)
		if (list->one[i].kind >= LEAT_STAGE_PLAN && list->one[i].kind <= LEAT_STAGE_COLLATE) {
			busy += list->one[i].busy_s;
			if ((double)list->one[i].items > items)
				items = (double)list->one[i].items;
		}
	return busy > 0 ? items * list->threads / busy : 0;
}

/* How much more the loader could give; 0: unknown. Storage that has reads in flight most of the time may or may not
 * give more. */
static double
headroom(const struct leat_stage_list *list)
{
	const struct leat_stage_figures *storage = find(list, LEAT_STAGE_STORAGE);
	double rate = rate_of_workers(list);

	if (storage && storage->share > 0.5)
		return 0;
	if (storage && storage->rate_alone > 0 && storage->rate_alone < rate)
		rate = storage->rate_alone;
	return list->samples_per_s > 0 ? rate / list->samples_per_s : 0;
}

/* ---- sentences ---- */

static void
step_sentence(struct leat_limit *limit, const struct leat_stage_list *list)
{
	const char *who = list->stepless ? "taking the batches" : "the step";
	double times = headroom(list);
	char text[LEAT_RATE_TEXT];

	if (list->samples == 0)
		say(limit, "nothing was delivered yet.");
	else if (times >= 1.15)
		say(limit, "%s is the limit; the loader could give %s times as much.", who,
		    leat_times_text(text, times));
	else if (times > 0)
		say(limit, "%s is the limit; the loader could give hardly more.", who);
	else
		say(limit, "%s is the limit; the loader keeps up.", who);
}

static const char *
threads_text(char buf[40], unsigned threads)
{
	snprintf(buf, 40, "%u thread%s", threads, leat_plural(threads));
	return buf;
}

/* More threads, or why not. */
static void
propose_threads(struct leat_limit *limit, struct proposals *p, const struct leat_stage_list *list)
{
	char cpus[LEAT_RATE_TEXT];

	if (leat_limit_has_free_cpus(list))
		propose(p, "more threads (up to %u)", (unsigned)(list->cpus + 1e-6));
	else if (list->cpus_used < 0.85 * list->cpus)
		;
	else if (list->cpus < 1.05)
		say(limit, " The CPU is busy.");
	else if (rint(list->cpus) == list->cpus)
		say(limit, " All %.0f CPUs are busy.", list->cpus);
	else
		say(limit, " All %s CPUs are busy.", leat_times_text(cpus, list->cpus));
}

static void
propose_for_stage(struct proposals *p, const struct leat_stage_list *list, const struct leat_stage_figures *stage)
{
	const char *op = stage->op;

	if (stage->python) {
		propose(p, "NumPy on whole batches (map_batch)");
		if (!list->caches)
			propose(p, "a cache after %s", op);
		propose(p, "an op in its place");
		return;
	}
	/* A cache cannot keep what is random, but what is decoded before it. */
	if (!list->caches && (stage->decodes || !stage->random))
		propose(p, "a cache after %s", op);
	if (stage->decodes) {
		propose(p, "decode(fast=true)");
		propose(p, "smaller images (leat convert)");
	} else if (stage->random || list->caches) {
		propose(p, "cheaper options of %s (leat ops %s)", op, op);
	}
}

static void
stage_sentence(struct leat_limit *limit, const struct leat_stage_list *list, const struct leat_stage_figures *stage)
{
	char rate[LEAT_RATE_TEXT], threads[40];
	struct proposals p = {.count = 0};
	double part = list->work_s > 0 ? stage->busy_s / list->work_s : 1;

	leat_rate_text(rate, list->samples_per_s);
	threads_text(threads, list->threads);
	if (stage->python)
		snprintf(threads, sizeof threads, "%u process%s", list->threads, list->threads == 1 ? "" : "es");
	if (part >= 0.75)
		say(limit, "%s on %s gives %s samples/s", stage->name, threads, rate);
	else
		say(limit, "%s, %.0f %% of the work of %s, allows %s samples/s", stage->name, 100 * part, threads,
		    rate);
	say_step(limit, list);
	if (stage->before_cache)
		say(limit, " Its results are cached: later epochs need it less.");
	propose_threads(limit, &p, list);
	propose_for_stage(&p, list, stage);
	say_proposals(limit, &p);
}

static void
read_sentence(struct leat_limit *limit, const struct leat_stage_list *list)
{
	char rate[LEAT_RATE_TEXT], threads[40];
	struct proposals p = {.count = 0};

	say(limit, "reading and unpacking on %s gives %s samples/s", threads_text(threads, list->threads),
	    leat_rate_text(rate, list->samples_per_s));
	say_step(limit, list);
	propose_threads(limit, &p, list);
	if (slowest_stage(list) >= 0)
		propose(&p, "data in its final form (leat convert)");
	say_proposals(limit, &p);
}

static void
storage_sentence(struct leat_limit *limit, const struct leat_stage_list *list, const char *name)
{
	char rate[LEAT_RATE_TEXT], megabytes[LEAT_RATE_TEXT];
	struct proposals p = {.count = 0};

	say(limit, "the %s gives %s samples/s (%s MB/s)", name, leat_rate_text(rate, list->samples_per_s),
	    leat_rate_text(megabytes, list->mb_read_per_s));
	say_step(limit, list);
	if (list->refused > 0)
		say(limit, " The server refused %llu requests.", (unsigned long long)list->refused);
	if (list->remote) {
		propose(&p, "larger objects (leat pack)");
		propose(&p, "a disk cache (storage disk_cache=FOLDER)");
		propose(&p,
		        list->refused > 0 ? "fewer ranks on one server" : "more memory= for more requests in flight");
	} else {
		propose(&p, "packing small files (leat pack)");
		propose(&p, "a faster disk");
		if (!list->caches)
			propose(&p, "a cache");
	}
	say_proposals(limit, &p);
}

static void
prefetch_sentence(struct leat_limit *limit, const struct leat_stage_list *list)
{
	double times = headroom(list);
	char text[LEAT_RATE_TEXT];

	say(limit, "no batch is made ahead, so making batches and using them take turns");
	if (times >= 1.15)
		say(limit, "; the loader could give %s times as much", leat_times_text(text, times));
	say(limit, ". Remove prefetch(0).");
}

static const char *
name_of(const struct leat_stage_list *list, const struct leat_limit *limit)
{
	switch (limit->kind) {
	case LEAT_LIMIT_STEP:
		return "step";
	case LEAT_LIMIT_DISK:
		return "disk";
	case LEAT_LIMIT_NETWORK:
		return "network";
	case LEAT_LIMIT_READ:
		return "read";
	case LEAT_LIMIT_PREFETCH:
		return "prefetch";
	default:
		return list->one[limit->stage].op;
	}
}

void
leat_limit_find(const struct leat_stage_list *list, struct leat_limit *limit)
{
	*limit = (struct leat_limit){.kind = kind_of(list), .stage = -1};
	if (limit->kind == LEAT_LIMIT_STAGE)
		limit->stage = slowest_stage(list);
	snprintf(limit->name, sizeof limit->name, "%s", name_of(list, limit));
	switch (limit->kind) {
	case LEAT_LIMIT_STEP:
		step_sentence(limit, list);
		break;
	case LEAT_LIMIT_PREFETCH:
		prefetch_sentence(limit, list);
		break;
	case LEAT_LIMIT_READ:
		read_sentence(limit, list);
		break;
	case LEAT_LIMIT_STAGE:
		stage_sentence(limit, list, &list->one[limit->stage]);
		break;
	default:
		storage_sentence(limit, list, limit->name);
	}
}
