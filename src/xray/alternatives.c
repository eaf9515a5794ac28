/* alternatives.c - other ways to run the pipeline: caches, fast decoding, more reads; see session.h */
#include <string.h>

#include "base/threads.h"
#include "xray/session.h"

enum { MORE_MEMORY = 4 }; /* times */

static enum leat_status
measure_place(struct leat_session *s, int at, struct leat_err *err)
{
	struct leat_alternatives *a = &s->x->alternatives;
	struct leat_cache_place *place = &a->place[a->places];
	struct leat_variant v = leat_from_memory(s, at);
	struct leat_probed out;
	enum leat_status status = LEAT_OK;

	*place = (struct leat_cache_place){.at = at, .raw = at == 0};
	strncpy(place->after, leat_outline_before(&s->outline, at), sizeof place->after - 1);
	if (at == 0) {
		place->pace = s->x->figures.now;
		place->bytes = s->raw_bytes > 0 ? s->raw_bytes : s->x->figures.read_bytes;
		/* Without ops, what is left is filling batches. */
		if (s->outline.ops == 0)
			place->pace = (struct leat_tempo){s->x->figures.threads, s->x->figures.delivery, 0};
	} else {
		leat_session_progress(s, "a cache");
		status = leat_measure_pace(s, &v, s->x->figures.threads, &place->pace, &out, err);
		place->bytes = out.cache_kept > 0 ? out.cache_bytes / out.cache_kept : 0;
	}
	if (status == LEAT_OK && place->bytes > 0 && place->pace.rate > 0)
		a->places++;
	return status;
}

/* Raw, after the last op that is not random, and before ops at its end that only make samples larger. */
static enum leat_status
measure_places(struct leat_session *s, struct leat_err *err)
{
	const struct leat_outline *o = &s->outline;
	int last = o->fixed, before = last;
	enum leat_status status = measure_place(s, 0, err);

	while (before > 0 && leat_outline_is_pointwise(o, before - 1))
		before--;
	if (status == LEAT_OK && before > 0 && before < last)
		status = measure_place(s, before, err);
	if (status == LEAT_OK && last > 0)
		status = measure_place(s, last, err);
	return status;
}

static enum leat_status
measure_fast(struct leat_session *s, struct leat_err *err)
{
	struct leat_variant v = leat_from_memory(s, 0);
	struct leat_probed out;
	enum leat_status status;

	if (s->outline.decode < 0 || s->outline.fast)
		return LEAT_OK;
	leat_session_progress(s, "fast decoding");
	v.fast = true;
	status = leat_measure_pace(s, &v, s->x->figures.threads, &s->x->alternatives.fast, &out, err);
	s->x->alternatives.jpeg = s->x->alternatives.fast.rate > 0;
	return status;
}

struct leat_variant
leat_more_reads(const struct leat_session *s, struct leat_options *o)
{
	struct leat_variant v;

	leat_variant_init(&v);
	if (s->whole.prefetch > 0)
		v.prefetch = LEAT_PREFETCH_AUTO;
	*o = s->options;
	if (o->memory)
		o->memory = o->memory < leat_ram("") / 2 / MORE_MEMORY ? o->memory * MORE_MEMORY : leat_ram("") / 2;
	return v;
}

static enum leat_status
measure_reads(struct leat_session *s, struct leat_err *err)
{
	struct leat_options o;
	struct leat_probe probe = {
		.options = &o, .seconds = leat_storage_seconds(s, LEAT_FOR_STORAGE / 2), .seek = 0.25};
	struct leat_measures *f = &s->x->figures;
	struct leat_variant v = leat_more_reads(s, &o);
	struct leat_probed out;
	enum leat_status status = LEAT_OK;

	if (f->warm)
		return LEAT_OK;
	v.no_ops = true;
	v.cache = LEAT_CACHE_NONE;
	if (s->options.memory || s->whole.prefetch > 0) {
		leat_session_progress(s, "storage with more reads in flight");
		status = leat_session_measure(s, &v, &probe, &out, err);
		f->window = out.rate;
		f->short_queue = s->whole.prefetch > 0;
	}
	if (status == LEAT_OK && s->outline.shuffles) {
		leat_session_progress(s, "storage in blocks");
		leat_variant_init(&v);
		v.no_ops = true;
		v.cache = LEAT_CACHE_NONE;
		v.order = LEAT_ORDER_BLOCKS;
		o = s->options;
		leat_scale_batch(s, &v);
		status = leat_session_measure(s, &v, &probe, &out, err);
		s->x->alternatives.blocks = out.rate;
	}
	return status;
}

enum leat_status
leat_measure_alternatives(struct leat_session *s, struct leat_err *err)
{
	struct leat_alternatives *a = &s->x->alternatives;
	const char *source = leat_outline_before(&s->outline, 0);
	enum leat_status status;

	strncpy(a->source, source, sizeof a->source - 1);
	a->small_files = strcmp(source, "folder") == 0 || strcmp(source, "list") == 0;
	a->has_cache = s->outline.cache >= 0;
	a->samples = s->distinct;
	a->room = s->whole.memory_left * 0.75;
	a->batch = leat_per_rank_batch(s);
	leat_judge(&s->x->figures, &s->x->verdict);
	if (s->x->verdict.kind == LEAT_FINDING_STEP)
		return LEAT_OK;
	status = measure_reads(s, err);
	if (status == LEAT_OK && !a->has_cache)
		status = measure_places(s, err);
	if (status == LEAT_OK)
		status = measure_fast(s, err);
	return status;
}
