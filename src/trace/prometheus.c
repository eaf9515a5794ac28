/* prometheus.c - the figures of a run in the text format of Prometheus
 *
 * Each metric has a HELP and a TYPE line, then its series. All series have the rank as a label. Histograms have one
 * bucket for each doubling, always the same ones, so that rates over time can be taken of each. */
#include <inttypes.h>
#include <math.h>

#include "trace/figures.h"

enum { STEPS = 8 }; /* buckets of a histogram that become one here */

struct page {
	struct leat_str *out;
	int rank;
	const char *name;
};

static void
begin(struct page *page, const char *name, const char *type, const char *help)
{
	page->name = name;
	leat_str_addf(page->out, "# HELP leat_%s %s\n# TYPE leat_%s %s\n", name, help, name, type);
}

static void
add_label(struct page *page, const char *label, const char *value)
{
	if (!label)
		return;
	leat_str_addf(page->out, ",%s=\"", label);
	for (; *value; value++) {
		if (*value == '\\' || *value == '"' || *value == '\n')
			leat_str_add(page->out, "\\");
		leat_str_addn(page->out, *value == '\n' ? "n" : value, 1);
	}
	leat_str_add(page->out, "\"");
}

static void
add_value(struct page *page, double value)
{
	if (isfinite(value))
		leat_figures_add_number(page->out, value, 9);
	else
		leat_str_add(page->out, value > 0 ? "+Inf" : "NaN");
	leat_str_add(page->out, "\n");
}

static void
series(struct page *page, const char *label, const char *text, double value)
{
	leat_str_addf(page->out, "leat_%s{rank=\"%d\"", page->name, page->rank);
	add_label(page, label, text);
	leat_str_add(page->out, "} ");
	add_value(page, value);
}

static void
single(struct page *page, const char *name, const char *type, const char *help, double value)
{
	begin(page, name, type, help);
	series(page, NULL, NULL, value);
}

static void
histogram(struct page *page, const char *label, const char *text, const struct leat_distribution *d)
{
	uint64_t seen = 0;

	for (unsigned i = 0; i < LEAT_HISTOGRAM_BUCKETS; i++) {
		seen += d->bucket[i];
		if (i % STEPS != STEPS - 1 || i + 1 == LEAT_HISTOGRAM_BUCKETS)
			continue;
		leat_str_addf(page->out, "leat_%s_bucket{rank=\"%d\"", page->name, page->rank);
		add_label(page, label, text);
		leat_str_add(page->out, ",le=\"");
		leat_figures_add_number(page->out, (double)leat_histogram_end(i) / 1e9, 9);
		leat_str_addf(page->out, "\"} %" PRIu64 "\n", seen);
	}
	leat_str_addf(page->out, "leat_%s_bucket{rank=\"%d\"", page->name, page->rank);
	add_label(page, label, text);
	leat_str_addf(page->out, ",le=\"+Inf\"} %" PRIu64 "\nleat_%s_sum{rank=\"%d\"", seen, page->name, page->rank);
	add_label(page, label, text);
	leat_str_add(page->out, "} ");
	add_value(page, (double)d->sum_ns / 1e9);
	leat_str_addf(page->out, "leat_%s_count{rank=\"%d\"", page->name, page->rank);
	add_label(page, label, text);
	leat_str_addf(page->out, "} %" PRIu64 "\n", seen);
}

/* ---- the whole run ---- */

static void
add_totals(struct page *page, const struct leat_figures *f)
{
	const struct leat_stats *st = &f->stats;

	single(page, "samples_total", "counter", "Samples delivered.", (double)st->samples);
	single(page, "batches_total", "counter", "Batches delivered.", (double)st->batches);
	single(page, "bytes_total", "counter", "Size of the batches delivered.", (double)st->bytes);
	single(page, "read_bytes_total", "counter", "Bytes read from storage.", (double)st->bytes_read);
	single(page, "bad_samples_total", "counter", "Bad samples in the batches delivered.", (double)st->bad);
	single(page, "wait_seconds_total", "counter", "Time the consumer waited for batches.",
	       (double)st->wait_ns / 1e9);
	single(page, "step_seconds_total", "counter", "Time the consumer spent between two batches.",
	       (double)st->run_ns / 1e9);
	single(page, "memory_bytes", "gauge", "Memory of the feed.", (double)st->memory);
	single(page, "memory_peak_bytes", "gauge", "Most memory of the feed so far.", (double)st->memory_peak);
	single(page, "held_bytes", "gauge", "Memory for batches that the program holds.", (double)st->held);
	single(page, "threads", "gauge", "Worker threads.", st->threads);
	single(page, "cpus", "gauge", "CPUs the process may use.", f->stages.cpus);
	begin(page, "batch_seconds", "histogram", "Time from one batch to the next.");
	histogram(page, NULL, NULL, &f->batch_times);
	begin(page, "first_batch_seconds", "gauge", "Time to the first batch, by what it was spent on.");
	series(page, "part", "list", f->first.list_ms / 1e3);
	series(page, "part", "index", f->first.index_ms / 1e3);
	series(page, "part", "connect", f->first.connect_ms / 1e3);
	series(page, "part", "first_byte", f->first.first_byte_ms / 1e3);
	series(page, "part", "decode", f->first.decode_ms / 1e3);
	begin(page, "limit_info", "gauge", "What limits throughput: 1 for the name of the limit.");
	series(page, "limit", f->limit.name, 1);
}

/* ---- stages, queues and servers ---- */

static double
busy(const struct leat_stage_figures *s)
{
	return s->busy_s;
}

static double
starved(const struct leat_stage_figures *s)
{
	return s->starved_s;
}

static double
blocked(const struct leat_stage_figures *s)
{
	return s->blocked_s;
}

static double
items(const struct leat_stage_figures *s)
{
	return (double)s->items;
}

static double
bytes(const struct leat_stage_figures *s)
{
	return (double)s->bytes;
}

static double
errors(const struct leat_stage_figures *s)
{
	return (double)s->errors;
}

/* Times of stages are worked out anew each time, and may become less: they are no counters. */
static const struct {
	const char *name, *type, *help;
	double (*value)(const struct leat_stage_figures *stage);
} stage_metrics[] = {
	{"stage_busy_seconds", "gauge", "Time the stage was at work, over all its threads.", busy},
	{"stage_starved_seconds", "gauge", "Time the stage waited for what comes before it.", starved},
	{"stage_blocked_seconds", "gauge", "Time the stage waited for what comes after it.", blocked},
	{"stage_items_total", "counter", "Samples that passed the stage.", items},
	{"stage_bytes_total", "counter", "Bytes the stage read or wrote, where they are counted.", bytes},
	{"stage_errors_total", "counter", "Samples that failed in the stage.", errors},
};

static void
add_stages(struct page *page, const struct leat_stage_list *list)
{
	for (size_t m = 0; m < sizeof stage_metrics / sizeof *stage_metrics; m++) {
		begin(page, stage_metrics[m].name, stage_metrics[m].type, stage_metrics[m].help);
		for (int i = 0; i < list->count; i++) {
			/* A spec may have two stages of the same name. */
			leat_str_addf(page->out, "leat_%s{rank=\"%d\",number=\"%d\"", page->name, page->rank, i);
			add_label(page, "stage", list->one[i].name);
			leat_str_add(page->out, "} ");
			add_value(page, stage_metrics[m].value(&list->one[i]));
		}
	}
}

static void
add_queues(struct page *page, const struct leat_figures *f)
{
	begin(page, "queue_depth", "gauge", "Entries of a queue.");
	for (int i = 0; i < LEAT_QUEUES; i++)
		series(page, "queue", f->queue[i].name, f->queue[i].depth);
	begin(page, "queue_capacity", "gauge", "Most entries a queue can have.");
	for (int i = 0; i < LEAT_QUEUES; i++)
		series(page, "queue", f->queue[i].name, f->queue[i].capacity);
}

static void
add_endpoints(struct page *page, const struct leat_figures *f)
{
	static const struct {
		const char *name, *help;
		size_t at;
	} metrics[] = {
		{"endpoint_requests_total", "Requests sent, retries and hedges included.",
	         offsetof(struct leat_endpoint_figures, requests)},
		{"endpoint_retries_total", "Requests sent again after a failure.",
	         offsetof(struct leat_endpoint_figures, retries)},
		{"endpoint_hedges_total", "Second requests for reads whose answer did not come.",
	         offsetof(struct leat_endpoint_figures, hedges)},
		{"endpoint_refused_total", "Answers 503 and 429.", offsetof(struct leat_endpoint_figures, refused)},
		{"endpoint_bytes_total", "Bytes received.", offsetof(struct leat_endpoint_figures, bytes)},
	};

	for (size_t m = 0; f->endpoints > 0 && m < sizeof metrics / sizeof *metrics; m++) {
		begin(page, metrics[m].name, "counter", metrics[m].help);
		for (int i = 0; i < f->endpoints; i++)
			series(page, "host", f->endpoint[i].host,
			       (double)*(const uint64_t *)((const char *)&f->endpoint[i] + metrics[m].at));
	}
	if (f->endpoints > 0)
		begin(page, "endpoint_latency_seconds", "histogram", "Time to the first byte of an answer.");
	for (int i = 0; i < f->endpoints; i++)
		histogram(page, "host", f->endpoint[i].host, &f->endpoint[i].latency);
}

void
leat_figures_add_prometheus(const struct leat_figures *f, struct leat_str *out)
{
	struct page page = {.out = out, .rank = f->rank};

	add_totals(&page, f);
	add_stages(&page, &f->stages);
	add_queues(&page, f);
	add_endpoints(&page, f);
}
