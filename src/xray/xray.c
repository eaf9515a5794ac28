/* xray.c - see xray.h */
#include "xray/xray.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "xray/session.h"

/* A cache where there is none: the subset, with a cache that holds as large a part of it. */
static void
prepare_cache(const struct leat_session *s, const struct leat_remedy *r, struct leat_variant *v, struct leat_options *o)
{
	const struct leat_cache_place *place = &s->x->alternatives.place[r->place];

	*v = leat_second_epoch(s, o);
	v->cache = place->at;
	v->cache_bytes = leat_scaled_cache(s, r->then.cached, place->bytes);
}

/* The variant and options that a remedy is tried with. False: it cannot be tried in a moment. */
static bool
prepare(const struct leat_session *s, const struct leat_remedy *r, struct leat_variant *v, struct leat_options *o)
{
	const struct leat_measures *f = &s->x->figures;
	bool cached = s->outline.cache >= 0;

	leat_variant_init(v);
	*o = s->options;
	if (cached)
		*v = leat_second_epoch(s, o);
	switch (r->kind) {
	case LEAT_REMEDY_PREFETCH:
		v->prefetch = LEAT_PREFETCH_AUTO;
		return true;
	case LEAT_REMEDY_THREADS:
	case LEAT_REMEDY_LEAVE_CPUS:
		o->threads = r->threads;
		return true;
	case LEAT_REMEDY_MEMORY:
		if (!cached)
			*v = leat_more_reads(s, o);
		return !cached; /* reads of the few samples that a cache is filled with in a moment say nothing */
	case LEAT_REMEDY_FAST_DECODE:
		v->fast = true;
		return true;
	case LEAT_REMEDY_ORDER:
		v->order = LEAT_ORDER_BLOCKS;
		return !cached;
	case LEAT_REMEDY_CACHE:
		prepare_cache(s, r, v, o);
		return true;
	case LEAT_REMEDY_CACHE_SIZE:
		v->cache_bytes = leat_scaled_cache(s, r->then.cached, f->cache_all / s->distinct);
		return true;
	default:
		return false;
	}
}

static enum leat_status
try_remedy(struct leat_session *s, struct leat_remedy *r, bool *tried, struct leat_err *err)
{
	struct leat_options o;
	struct leat_probe probe = {
		.options = &o,
		.seconds = LEAT_FOR_TRY * s->time,
		.step_ms = s->how.step_ms,
		.burn = s->how.step_threads ? &s->burn : NULL,
	};
	struct leat_variant v;
	struct leat_probed out;
	enum leat_status status;

	*tried = prepare(s, r, &v, &o);
	if (!*tried)
		return LEAT_OK;
	leat_session_progress(s, r->what);
	if (v.order == LEAT_ORDER_SUBSET)
		probe.fill = s->subset;
	else
		probe.seek = 0.75;
	status = leat_session_measure(s, &v, &probe, &out, err);
	r->measured = out.rate;
	return status;
}

static enum leat_status
find_remedies(struct leat_session *s, struct leat_err *err)
{
	struct leat_xray *x = s->x;
	enum leat_status status = LEAT_OK;
	int tries = 0;

	leat_judge(&x->figures, &x->verdict);
	x->remedies = leat_remedies(&x->figures, &x->alternatives, &x->verdict, x->remedy);
	for (int i = 0; i < x->remedies && tries < LEAT_XRAY_TRIES && status == LEAT_OK && s->how.tries; i++) {
		bool tried = false;

		if (x->remedy[i].helps)
			status = try_remedy(s, &x->remedy[i], &tried, err);
		tries += tried;
	}
	return status;
}

static enum leat_status
check(const struct leat_options *options, const struct leat_xray_options *how, struct leat_err *err)
{
	if (how->step_threads && how->step_ms <= 0)
		return leat_fail(err, LEAT_INVALID, "a step that uses CPUs needs a time: set step_ms too");
	if (!(how->seconds > 0 && how->seconds <= 86400) || !(how->step_ms >= 0 && how->step_ms <= 1e6))
		return leat_fail(err, LEAT_INVALID, "seconds must be above 0 and at most 86400, step_ms 0 to 1000000");
	if (options->process_count > 0 && !how->prepare)
		return leat_fail(
			err, LEAT_INVALID,
			"functions run in processes, which feeds cannot share: set prepare, to start new ones");
	return LEAT_OK;
}

static void
copy_options(struct leat_session *s, const struct leat_options *options)
{
	leat_options_init(&s->options);
	if (options)
		memcpy(&s->options, options, options->size < sizeof s->options ? options->size : sizeof s->options);
	s->options.size = sizeof s->options;
	s->options.epochs = 0;
	s->options.log = NULL; /* variants would warn about what only they do */
	s->options.bad = NULL;
}

static enum leat_status
examine(struct leat_session *s, struct leat_err *err)
{
	enum leat_status status;

	if (s->how.step_threads) {
		s->burn = (struct leat_burn){.threads = s->how.step_threads, .mem = s->mem};
		leat_burn_calibrate(&s->burn, s->how.step_ms);
	}
	status = leat_measure_whole(s, err);
	if (status == LEAT_OK)
		status = leat_measure_storage(s, err);
	leat_choose_subset(s);
	if (status == LEAT_OK)
		status = leat_measure_cpu(s, err);
	if (status == LEAT_OK)
		status = leat_measure_delivery(s, err);
	if (status == LEAT_OK)
		status = leat_measure_cached(s, err);
	if (status == LEAT_OK)
		status = leat_measure_alternatives(s, err);
	if (status != LEAT_OK)
		return status;
	if (s->how.step_ms > 0)
		leat_session_add_part(s, "consumer", s->x->figures.consumer, "a step of %.4g ms per batch",
		                      s->how.step_ms);
	leat_session_add_part(s, "whole", s->x->figures.whole, "%s",
	                      s->outline.cache >= 0 ? "all parts together, after the first epoch"
	                                            : "all parts together");
	return find_remedies(s, err);
}

enum leat_status
leat_xray_open(struct leat_xray *x, const char *spec, const struct leat_options *options,
               const struct leat_xray_options *how, struct leat_err *err)
{
	struct leat_mem mem;
	struct leat_session s = {.x = x, .mem = &mem};
	uint64_t begin = leat_now();
	enum leat_status status;

	leat_err_clear(err);
	*x = (struct leat_xray){0};
	leat_xray_options_init(&s.how);
	if (how)
		memcpy(&s.how, how, how->size < sizeof s.how ? how->size : sizeof s.how);
	copy_options(&s, options);
	status = check(&s.options, &s.how, err);
	if (status != LEAT_OK)
		return status;
	leat_mem_init(&mem, SIZE_MAX);
	s.time = s.how.seconds;
	leat_machine("", &x->machine);
	x->figures.cpus = x->machine.cpus;
	x->figures.cores = x->machine.cores;
	x->figures.quota = x->machine.quota;
	status = leat_outline_open(&s.outline, spec, &mem, err);
	if (status == LEAT_OK)
		status = examine(&s, err);
	leat_outline_close(&s.outline);
	x->seconds = (double)(leat_now() - begin) / 1e9;
	x->step_ms = s.how.step_ms;
	if (status != LEAT_OK)
		leat_xray_close(x);
	return status;
}

void
leat_xray_close(struct leat_xray *x)
{
	free(x->run);
	*x = (struct leat_xray){0};
}
