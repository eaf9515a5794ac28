/* figures.c - see figures.h */
#include "trace/figures.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/opt.h"
#include "trace/sampler.h"

/* ---- epochs ---- */

void
leat_epochs_add(struct leat_epochs *epochs, uint64_t epoch, uint64_t samples, uint64_t wait_ns, uint64_t run_ns)
{
	uint64_t count = leat_counted(&epochs->count);
	struct leat_epoch_counts *last = &epochs->one[(count + LEAT_FIGURE_EPOCHS - 1) % LEAT_FIGURE_EPOCHS];

	if (count == 0 || leat_counted(&last->epoch) != epoch) {
		if (samples == 0)
			return;
		last = &epochs->one[count % LEAT_FIGURE_EPOCHS];
		atomic_store_explicit(&last->epoch, epoch, memory_order_relaxed);
		atomic_store_explicit(&last->samples, 0, memory_order_relaxed);
		atomic_store_explicit(&last->wait_ns, 0, memory_order_relaxed);
		atomic_store_explicit(&last->run_ns, 0, memory_order_relaxed);
		atomic_store_explicit(&epochs->count, count + 1, memory_order_release);
	}
	leat_count(&last->samples, samples);
	leat_count(&last->wait_ns, wait_ns);
	leat_count(&last->run_ns, run_ns);
}

void
leat_epochs_read(const struct leat_epochs *epochs, struct leat_figures *figures)
{
	uint64_t count = atomic_load_explicit(&epochs->count, memory_order_acquire);
	uint64_t first = count > LEAT_FIGURE_EPOCHS ? count - LEAT_FIGURE_EPOCHS : 0;

	figures->epochs = 0;
	for (uint64_t i = first; i < count; i++) {
		const struct leat_epoch_counts *from = &epochs->one[i % LEAT_FIGURE_EPOCHS];
		struct leat_epoch_figures *to = &figures->epoch[figures->epochs++];
		double wait = (double)leat_counted(&from->wait_ns), all = wait + (double)leat_counted(&from->run_ns);

		to->epoch = leat_counted(&from->epoch);
		to->samples = leat_counted(&from->samples);
		to->seconds = all / 1e9;
		to->wait_share = all > 0 ? wait / all : 0;
	}
}

/* ---- stages ---- */

static bool
is_of_workers(const struct leat_stage_figures *stage)
{
	return stage->kind != LEAT_STAGE_STORAGE && stage->kind != LEAT_STAGE_DELIVER && stage->kind != LEAT_STAGE_STEP;
}

/* The stage of the pool that is busy longest, among [from, to). */
static const struct leat_stage_figures *
busiest(const struct leat_stage_list *list, int from, int to)
{
	const struct leat_stage_figures *most = NULL;

	for (int i = from; i < to; i++)
		if (is_of_workers(&list->one[i]) && (!most || list->one[i].busy_s > most->busy_s))
			most = &list->one[i];
	return most;
}

/* The stages before and after it, and the idle time, tell what a stage of the pool waits for most. */
static const char *
waits_for(const struct leat_stage_list *list, int i, double starved_s, double blocked_s)
{
	const struct leat_stage_figures *before = busiest(list, 0, i), *after = busiest(list, i + 1, list->count);
	double most = starved_s;
	const char *name = list->one[0].kind == LEAT_STAGE_STORAGE ? list->one[0].name : "data";

	if (blocked_s > most) {
		most = blocked_s;
		name = "step";
	}
	if (before && before->busy_s > most) {
		most = before->busy_s;
		name = before->name;
	}
	if (after && after->busy_s > most) {
		most = after->busy_s;
		name = after->name;
	}
	return most > 0 ? name : "";
}

static void
relate_workers(struct leat_stage_list *list, double starved_s, double blocked_s)
{
	double before = starved_s, after = blocked_s;

	for (int i = 0; i < list->count; i++)
		after += is_of_workers(&list->one[i]) ? list->one[i].busy_s : 0;
	for (int i = 0; i < list->count; i++) {
		struct leat_stage_figures *stage = &list->one[i];

		if (!is_of_workers(stage))
			continue;
		after -= stage->busy_s;
		stage->starved_s = before;
		stage->blocked_s = after > 0 ? after : 0;
		stage->waits_for = waits_for(list, i, starved_s, blocked_s);
		before += stage->busy_s;
	}
}

void
leat_stages_relate(struct leat_stage_list *list, double starved_s, double blocked_s)
{
	relate_workers(list, starved_s, blocked_s);
	for (int i = 0; i < list->count; i++) {
		struct leat_stage_figures *stage = &list->one[i];
		double all = stage->busy_s + stage->starved_s + stage->blocked_s;

		stage->share = all > 0 ? stage->busy_s / all : 0;
		if (stage->share > 0.95)
			stage->waits_for = "";
		if (stage->busy_s > 0)
			stage->rate_alone = (double)stage->items * stage->threads / stage->busy_s;
	}
}

/* ---- JSON ---- */

void
leat_figures_add_number(struct leat_str *out, double value, int digits)
{
	double unit = pow(10, digits);
	char buf[40];

	if (!isfinite(value))
		leat_str_add(out, "null");
	else
		leat_str_add(out, leat_format_number(buf, sizeof buf,
		                                     fabs(value) < 1e12 ? rint(value * unit) / unit : value));
}

static void
add_member(struct leat_str *out, const char *name, double value, int digits)
{
	leat_str_addf(out, ", \"%s\": ", name);
	leat_figures_add_number(out, value, digits);
}

static void
add_count(struct leat_str *out, const char *name, uint64_t value)
{
	leat_str_addf(out, ", \"%s\": %" PRIu64, name, value);
}

static void
add_text(struct leat_str *out, const char *name, const char *text)
{
	leat_str_addf(out, ", \"%s\": ", name);
	leat_str_add_json(out, text);
}

static void
add_distribution(struct leat_str *out, const struct leat_distribution *d)
{
	bool any = false;

	leat_str_add(out, "{\"p50\": ");
	leat_figures_add_number(out, leat_distribution_quantile(d, 0.5) / 1e6, 4);
	add_member(out, "p99", leat_distribution_quantile(d, 0.99) / 1e6, 4);
	add_member(out, "max", (double)d->max_ns / 1e6, 4);
	add_member(out, "mean", d->count ? (double)d->sum_ns / (double)d->count / 1e6 : 0, 4);
	add_count(out, "count", d->count);
	leat_str_add(out, ", \"histogram\": [");
	for (unsigned i = 0; i < LEAT_HISTOGRAM_BUCKETS; i++) {
		if (!d->bucket[i])
			continue;
		leat_str_add(out, any ? ", [" : "[");
		leat_figures_add_number(out, (double)leat_histogram_end(i) / 1e6, 6);
		leat_str_addf(out, ", %" PRIu64 "]", d->bucket[i]);
		any = true;
	}
	leat_str_add(out, "]}");
}

static void
add_epochs(struct leat_str *out, const struct leat_figures *f)
{
	leat_str_add(out, ",\n \"epochs\": [");
	for (int i = 0; i < f->epochs; i++) {
		leat_str_addf(out, "%s{\"epoch\": %" PRIu64, i ? ",\n  " : "", f->epoch[i].epoch);
		add_count(out, "samples", f->epoch[i].samples);
		add_member(out, "seconds", f->epoch[i].seconds, 6);
		add_member(out, "wait_share", f->epoch[i].wait_share, 5);
		leat_str_add(out, "}");
	}
	leat_str_add(out, "]");
}

static void
add_stages(struct leat_str *out, const struct leat_stage_list *list)
{
	leat_str_add(out, ",\n \"stages\": [");
	for (int i = 0; i < list->count; i++) {
		const struct leat_stage_figures *s = &list->one[i];

		leat_str_add(out, i ? ",\n  {\"name\": " : "\n  {\"name\": ");
		leat_str_add_json(out, s->name);
		add_text(out, "tag", s->tag);
		add_count(out, "threads", s->threads);
		add_member(out, "busy_s", s->busy_s, 6);
		add_member(out, "starved_s", s->starved_s, 6);
		add_member(out, "blocked_s", s->blocked_s, 6);
		add_count(out, "items", s->items);
		add_count(out, "bytes", s->bytes);
		add_count(out, "errors", s->errors);
		add_member(out, "share", s->share, 5);
		add_member(out, "rate_alone", s->rate_alone > 0 ? s->rate_alone : NAN, 1);
		add_text(out, "waits_for", s->waits_for);
		leat_str_add(out, "}");
	}
	leat_str_add(out, "]");
}

static void
add_queues(struct leat_str *out, const struct leat_figures *f)
{
	leat_str_add(out, ",\n \"queues\": [");
	for (int i = 0; i < LEAT_QUEUES; i++) {
		leat_str_add(out, i ? ", {\"name\": " : "{\"name\": ");
		leat_str_add_json(out, f->queue[i].name);
		add_count(out, "depth", (uint64_t)f->queue[i].depth);
		add_count(out, "capacity", (uint64_t)f->queue[i].capacity);
		add_member(out, "mean", f->queue[i].mean, 2);
		leat_str_add(out, "}");
	}
	leat_str_add(out, "]");
}

static void
add_endpoints(struct leat_str *out, const struct leat_figures *f)
{
	leat_str_add(out, ",\n \"endpoints\": [");
	for (int i = 0; i < f->endpoints; i++) {
		const struct leat_endpoint_figures *e = &f->endpoint[i];

		leat_str_add(out, i ? ",\n  {\"host\": " : "\n  {\"host\": ");
		leat_str_add_json(out, e->host);
		add_count(out, "requests", e->requests);
		add_count(out, "retries", e->retries);
		add_count(out, "hedges", e->hedges);
		add_count(out, "refused", e->refused);
		add_count(out, "failures", e->failures);
		add_count(out, "bytes", e->bytes);
		leat_str_add(out, ", \"latency_ms\": ");
		add_distribution(out, &e->latency);
		leat_str_add(out, "}");
	}
	leat_str_add(out, "]");
}

static void
add_tuning(struct leat_str *out, const struct leat_figures *f)
{
	leat_str_add(out, ",\n \"tuning\": [");
	for (int i = 0; i < f->tunings; i++) {
		leat_str_add(out, i ? ",\n  {\"what\": " : "\n  {\"what\": ");
		leat_str_add_json(out, f->tuning[i].what);
		add_text(out, "value", f->tuning[i].value);
		add_text(out, "why", f->tuning[i].why);
		leat_str_addf(out, ", \"set\": %s}", f->tuning[i].set ? "true" : "false");
	}
	leat_str_add(out, "]");
}

void
leat_figures_add_json(const struct leat_figures *f, struct leat_str *out)
{
	leat_str_add(out, "\"sentence\": ");
	leat_str_add_json(out, f->limit.sentence);
	leat_str_addf(out, ",\n \"rank\": %d, \"world\": %d", f->rank, f->world);
	add_member(out, "cpus", f->stages.cpus, 3);
	add_member(out, "cpus_used", f->stages.cpus_used, 3);
	leat_str_add(out, ",\n \"batch_ms\": ");
	add_distribution(out, &f->batch_times);
	leat_str_add(out, ",\n \"first_batch\": {\"list_ms\": ");
	leat_figures_add_number(out, f->first.list_ms, 3);
	add_member(out, "index_ms", f->first.index_ms, 3);
	add_member(out, "connect_ms", f->first.connect_ms, 3);
	add_member(out, "first_byte_ms", f->first.first_byte_ms, 3);
	add_member(out, "decode_ms", f->first.decode_ms, 3);
	leat_str_add(out, "}");
	add_epochs(out, f);
	add_stages(out, &f->stages);
	add_queues(out, f);
	add_endpoints(out, f);
	add_tuning(out, f);
	if (f->device.samples) {
		leat_str_add(out, ",\n \"device\": ");
		leat_device_add_json(&f->device, out);
	}
}
