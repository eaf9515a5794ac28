/* parts.c - the whole pipeline, then its parts alone; see session.h */
#include <math.h>
#include <string.h>

#include "xray/session.h"

enum {
	MAX_SUBSET = 1024, /* samples kept in memory */
	MIN_SUBSET = 8,    /* fewer would not be typical */
	MAX_WAITING = 64,  /* threads to try for ops that wait */
};

static const double subset_bytes = 256 << 20;

enum leat_status
leat_measure_whole(struct leat_session *s, struct leat_err *err)
{
	struct leat_probe probe = {
		.options = &s->options,
		.seconds = LEAT_FOR_WHOLE * s->time,
		.step_ms = s->how.step_ms,
		.burn = s->how.step_threads ? &s->burn : NULL,
		.keep_json = true,
	};
	struct leat_measures *f = &s->x->figures;
	struct leat_variant v;
	enum leat_status status;

	leat_session_progress(s, "the whole pipeline");
	leat_variant_init(&v);
	status = leat_session_probe(s, &v, &probe, &s->whole, err);
	s->x->run = s->whole.json;
	s->whole.json = NULL;
	if (status == LEAT_OK && s->whole.rate <= 0)
		status = leat_fail(err, LEAT_TIMEOUT,
		                   "no batch came in time: give it more seconds, or make batches smaller");
	if (status != LEAT_OK)
		return status;
	f->threads = s->whole.threads;
	f->depth = s->whole.depth;
	f->requests = s->whole.requests;
	f->remote = s->whole.remote;
	f->whole = s->whole.rate;
	f->open_s = s->whole.open_s;
	f->first_s = s->whole.first_s;
	f->epoch_samples = s->whole.epoch_samples;
	f->stalled = s->whole.stalled;
	f->stall_s = s->whole.stall_s;
	f->slow_batches = s->whole.slow_batches;
	f->idle = s->whole.idle;
	f->latency_s = s->whole.rate > 0 ? s->whole.io_wait / s->whole.rate : 0;
	f->consumer = s->how.step_ms > 0 ? leat_per_rank_batch(s) * 1e3 / s->how.step_ms : INFINITY;
	f->step_threads = s->how.step_threads;
	if (s->how.step_threads) {
		f->step_ms = s->how.step_ms;
		f->step_loaded_ms = s->whole.step_ms;
	}
	s->distinct = s->whole.epoch_samples / s->outline.repeats;
	if (s->distinct > s->whole.source_samples)
		s->distinct = s->whole.source_samples;
	return LEAT_OK;
}

enum leat_status
leat_measure_storage(struct leat_session *s, struct leat_err *err)
{
	struct leat_probe probe = {
		.options = &s->options, .seconds = leat_storage_seconds(s, LEAT_FOR_STORAGE), .seek = 0.5};
	struct leat_measures *f = &s->x->figures;
	struct leat_xray_part *part;
	struct leat_variant v;
	enum leat_status status;

	leat_session_progress(s, "storage alone");
	leat_variant_init(&v);
	v.no_ops = true;
	v.cache = LEAT_CACHE_NONE;
	leat_scale_batch(s, &v);
	status = leat_session_measure(s, &v, &probe, &s->storage, err);
	if (status != LEAT_OK)
		return status;
	f->storage = s->storage.rate;
	f->read_s = s->storage.read_s;
	f->read_cpu_s = s->storage.cpu_s;
	f->read_bytes = s->storage.read_bytes > 0 ? s->storage.read_bytes : s->storage.bytes;
	f->warm = !f->remote && s->storage.io_wait < 0.01;
	part = leat_session_add_part(s, "storage", f->storage, "%s",
	                             f->remote  ? "from servers"
	                             : !f->warm ? "from disk"
	                             : s->whole.io_wait >= 0.01
	                                     ? "from memory: the run before it had read the data from disk"
	                                     : "from memory (page cache): a disk may be slower");
	part->mb = f->storage * f->read_bytes / 1e6;
	return LEAT_OK;
}

void
leat_choose_subset(struct leat_session *s)
{
	double count = MAX_SUBSET, op_s = s->whole.op_s;
	double bytes = s->x->figures.read_bytes;

	if (s->storage.rate > 0)
		count = fmin(count, s->storage.rate * LEAT_FOR_PART * s->time);
	if (op_s > 0)
		count = fmin(count, s->whole.threads / op_s * LEAT_FOR_PART * s->time);
	count = fmax(count, MIN_SUBSET);
	if (bytes > 0)
		count = fmin(count, fmin(subset_bytes, s->whole.memory_left / 4) / bytes);
	count = fmin(count, s->distinct);
	s->subset = count >= 1 ? (uint64_t)count : 1;
}

static enum leat_status
measure_threads(struct leat_session *s, unsigned threads, struct leat_err *err)
{
	struct leat_alternatives *a = &s->x->alternatives;
	struct leat_measures *f = &s->x->figures;
	struct leat_variant v = leat_from_memory(s, 0);
	struct leat_probed out;
	struct leat_tempo pace;
	enum leat_status status;

	leat_session_progress(s, "decoding and ops, from memory");
	status = leat_measure_pace(s, &v, threads, &pace, &out, err);
	if (status != LEAT_OK || pace.rate <= 0)
		return status;
	if (a->paces < LEAT_PACES)
		a->pace[a->paces++] = pace;
	leat_session_add_part(s, "cpu", pace.rate, "%s %.0f %% of the ops", out.op, 100 * out.op_share)->threads =
		threads;
	if (threads != f->threads)
		return LEAT_OK;
	f->now = pace;
	f->op_share = out.op_share;
	s->sleeps = out.sleeps;
	memcpy(f->op, out.op, sizeof f->op);
	if (out.cache_kept > 0)
		s->raw_bytes = out.cache_bytes / out.cache_kept;
	return LEAT_OK;
}

/* Do ops sleep, and leave the CPUs they could have idle? On a busy machine they get less than that, but don't sleep. */
static bool
ops_wait(const struct leat_session *s)
{
	const struct leat_measures *f = &s->x->figures;

	return f->now.rate > 0 && f->now.rate * f->now.cpu_s < 0.5 * fmin(f->now.threads, f->cpus) && s->sleeps > 0.5;
}

enum leat_status
leat_measure_cpu(struct leat_session *s, struct leat_err *err)
{
	struct leat_measures *f = &s->x->figures;
	unsigned most = (unsigned)ceil(f->cpus);
	enum leat_status status = LEAT_OK;

	f->now = (struct leat_tempo){f->threads, INFINITY, 0};
	if (s->outline.ops == 0)
		return LEAT_OK;
	for (unsigned t = 1; t <= most && status == LEAT_OK; t = t * 2 < most || t == most ? t * 2 : most)
		if (t != f->threads)
			status = measure_threads(s, t, err);
	if (status == LEAT_OK)
		status = measure_threads(s, f->threads, err);
	if (status == LEAT_OK && f->now.rate == INFINITY && s->whole.op_s > 0) {
		/* There is no memory for it: what workers counted has to do. */
		f->now.rate = f->threads / s->whole.op_s;
		memcpy(f->op, s->whole.op, sizeof f->op);
	}
	if (status == LEAT_OK && ops_wait(s) && f->threads * 4 <= MAX_WAITING)
		status = measure_threads(s, f->threads * 4, err);
	return status;
}

enum leat_status
leat_measure_delivery(struct leat_session *s, struct leat_err *err)
{
	struct leat_variant v = leat_from_memory(s, s->outline.ops);
	struct leat_probed out;
	struct leat_tempo pace;
	enum leat_status status;

	leat_session_progress(s, "delivery");
	v.batch = (uint64_t)leat_per_rank_batch(s);
	status = leat_measure_pace(s, &v, s->x->figures.threads, &pace, &out, err);
	if (status != LEAT_OK || pace.rate <= 0)
		return status;
	s->x->figures.delivery = pace.rate;
	leat_session_add_part(s, "delivery", pace.rate, "finished samples from memory")->mb =
		pace.rate * out.bytes / 1e6;
	return LEAT_OK;
}

/* The run so far filled the cache. */
static enum leat_status
measure_second_epoch(struct leat_session *s, struct leat_err *err)
{
	struct leat_options o;
	struct leat_variant v = leat_second_epoch(s, &o);
	struct leat_probe probe = {
		.options = &o,
		.seconds = LEAT_FOR_TRY * s->time,
		.step_ms = s->how.step_ms,
		.burn = s->how.step_threads ? &s->burn : NULL,
		.fill = s->subset,
	};
	struct leat_probed out;
	enum leat_status status;

	status = leat_session_measure(s, &v, &probe, &out, err);
	if (status == LEAT_OK && out.rate > 0)
		s->x->figures.whole = out.rate;
	return status;
}

enum leat_status
leat_measure_cached(struct leat_session *s, struct leat_err *err)
{
	struct leat_measures *f = &s->x->figures;
	struct leat_variant v = leat_from_memory(s, s->outline.cached);
	struct leat_probed out;
	enum leat_status status;

	if (s->outline.cache < 0)
		return LEAT_OK;
	leat_session_progress(s, "the cache");
	status = leat_measure_pace(s, &v, f->threads, &f->from_cache, &out, err);
	if (status != LEAT_OK || out.cache_kept <= 0)
		return status;
	f->cache_all = out.cache_bytes / out.cache_kept * s->distinct;
	f->cache_size = s->whole.cache_size;
	f->cached = f->cache_all > 0 ? fmin(1, f->cache_size / f->cache_all) : 1;
	leat_session_add_part(s, "cache", f->from_cache.rate, "ops after the cache, which holds %.0f %% of the samples",
	                      100 * f->cached);
	return measure_second_epoch(s, err);
}
