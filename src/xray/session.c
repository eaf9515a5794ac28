/* session.c - run variants of the spec; see session.h */
#include "xray/session.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>

#include "feed/cache.h"

enum {
	BATCH = 64,         /* of parts, if the pipeline's batches are larger: more of them come in a short time */
	SPEC_MAX = 1 << 17, /* text of a variant */
	MANY = 100,         /* batches of the spec's size in the time of a part: enough of them to measure those */
};

void
leat_session_progress(const struct leat_session *s, const char *what)
{
	if (s->how.progress)
		s->how.progress(s->how.progress_arg, what);
}

struct leat_xray_part *
leat_session_add_part(struct leat_session *s, const char *name, double rate, const char *fmt, ...)
{
	struct leat_xray_part *part = &s->x->part[s->x->parts];
	va_list ap;

	*part = (struct leat_xray_part){.name = name, .rate = rate};
	va_start(ap, fmt);
	vsnprintf(part->note, sizeof part->note, fmt, ap);
	va_end(ap);
	if (s->x->parts < LEAT_XRAY_PARTS - 1)
		s->x->parts++;
	return part;
}

enum leat_status
leat_session_probe(struct leat_session *s, const struct leat_variant *v, struct leat_probe *probe,
                   struct leat_probed *out, struct leat_err *err)
{
	struct leat_options o = *probe->options;
	enum leat_status status = LEAT_OK;
	struct leat_str text;

	*out = (struct leat_probed){0};
	leat_str_init(&text, s->mem, SPEC_MAX);
	leat_variant_text(&s->outline, v, &text);
	probe->spec = leat_str_text(&text);
	probe->options = &o;
	if (text.failed)
		status = leat_fail(err, LEAT_NOMEM, "no memory for a spec");
	if (o.threads == 0)
		o.threads = leat_default_threads();
	if (status == LEAT_OK && s->how.prepare)
		status = s->how.prepare(s->how.prepare_arg, &o, err);
	if (status == LEAT_OK)
		status = leat_probe(probe, out, err);
	leat_str_free(&text);
	return status;
}

enum leat_status
leat_session_measure(struct leat_session *s, const struct leat_variant *v, struct leat_probe *probe,
                     struct leat_probed *out, struct leat_err *err)
{
	enum leat_status status = leat_session_probe(s, v, probe, out, err);

	if (status == LEAT_OK || status == LEAT_NOMEM || status == LEAT_CANCELLED || status == LEAT_FUNCTION)
		return status;
	leat_err_clear(err);
	*out = (struct leat_probed){0};
	return LEAT_OK;
}

double
leat_per_rank_batch(const struct leat_session *s)
{
	return s->whole.batch > 0 ? s->whole.batch : 1;
}

double
leat_storage_seconds(const struct leat_session *s, double share)
{
	return fmin(fmax(share * s->time, 10 * s->x->figures.latency_s), s->time);
}

void
leat_scale_batch(const struct leat_session *s, struct leat_variant *v)
{
	double batch = leat_per_rank_batch(s);

	if (batch <= BATCH || s->whole.world > 1)
		return;
	v->batch = BATCH;
	if (s->whole.prefetch >= 0)
		v->prefetch = (int64_t)ceil(s->whole.prefetch * batch / BATCH);
}

struct leat_variant
leat_from_memory(const struct leat_session *s, int cache)
{
	double batch = leat_per_rank_batch(s);
	struct leat_variant v;

	leat_variant_init(&v);
	v.order = LEAT_ORDER_SUBSET;
	v.of = (uint64_t)s->distinct;
	v.subset = s->subset;
	v.cache = cache;
	v.prefetch = LEAT_PREFETCH_AUTO;
	v.batch = (uint64_t)fmin(batch, BATCH / 4);
	return v;
}

struct leat_options
leat_alone(const struct leat_session *s, unsigned threads)
{
	struct leat_options o = s->options;

	o.rank = 0;
	o.world = 1;
	o.threads = threads;
	return o;
}

uint64_t
leat_scaled_cache(const struct leat_session *s, double share, double bytes)
{
	if (share >= 1)
		return 0;
	return leat_cache_min_size((uint64_t)s->whole.source_samples) + (uint64_t)(share * (double)s->subset * bytes);
}

struct leat_variant
leat_second_epoch(const struct leat_session *s, struct leat_options *o)
{
	const struct leat_measures *f = &s->x->figures;
	struct leat_variant v = leat_from_memory(s, s->outline.cached);

	v.batch = (uint64_t)leat_per_rank_batch(s);
	v.prefetch = s->whole.prefetch >= 0 ? (int64_t)s->whole.prefetch : LEAT_PREFETCH_AUTO;
	v.cache_bytes = leat_scaled_cache(s, f->cached, f->cache_all / s->distinct);
	*o = leat_alone(s, f->threads);
	return v;
}

enum leat_status
leat_measure_pace(struct leat_session *s, const struct leat_variant *v, unsigned threads, struct leat_tempo *pace,
                  struct leat_probed *out, struct leat_err *err)
{
	struct leat_options o = leat_alone(s, threads);
	struct leat_probe probe = {.options = &o, .seconds = LEAT_FOR_PART * s->time, .fill = s->subset};
	enum leat_status status = leat_session_measure(s, v, &probe, out, err);
	struct leat_variant whole = *v;
	struct leat_probed again;

	/* Where samples take next to no time, making a batch does: then its size counts. */
	whole.batch = (uint64_t)leat_per_rank_batch(s);
	if (status == LEAT_OK && whole.batch > v->batch && out->rate * probe.seconds > (double)(MANY * whole.batch)) {
		probe.options = &o;
		status = leat_session_measure(s, &whole, &probe, &again, err);
		if (again.rate > 0)
			*out = again;
	}
	*pace = (struct leat_tempo){threads, out->rate, out->cpu_s};
	return status;
}
