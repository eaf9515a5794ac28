/* figures.c - see figures.h
 *
 * Stages are timed for one sample in LEAT_TRACE_EVERY; what workers spend on all samples of a run is measured as a
 * whole. The former divides the latter, so the parts add up. What is left of the workers' time is planning, and waiting
 * for locks. */
#include "feed/figures.h"

#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "feed/feed.h"
#include "op/map.h"
#include "store/remote.h"
#include "trace/limit.h"

double
leat_process_seconds(void)
{
	struct timespec t;

	if (clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t) != 0)
		return 0;
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static double
seconds(uint64_t ns)
{
	return (double)ns / 1e9;
}

/* Counters are not read all at once: a part may exceed the whole for a moment. */
static uint64_t
rest(uint64_t all, uint64_t part)
{
	return all > part ? all - part : 0;
}

/* ---- queues ---- */

void
leat_feed_note_depths(struct leat_feed *feed)
{
	int free_batches = feed->slots - feed->held - feed->flight_count;

	leat_count(&feed->depths.times, 1);
	leat_count(&feed->depths.sum[LEAT_QUEUE_BATCHES], (uint64_t)feed->complete);
	leat_count(&feed->depths.sum[LEAT_QUEUE_FREE], free_batches > 0 ? (uint64_t)free_batches : 0);
	leat_count(&feed->depths.sum[LEAT_QUEUE_RUNS], (uint64_t)feed->ready_count);
	leat_count(&feed->depths.sum[LEAT_QUEUE_REQUESTS], (uint64_t)feed->fetch.in_flight);
}

static void
read_depths(struct leat_feed *feed, struct leat_figures *f)
{
	struct leat_queue_figures *queue = f->queue;
	uint64_t times = leat_counted(&feed->depths.times);

	queue[LEAT_QUEUE_BATCHES] =
		(struct leat_queue_figures){.name = "batches ready", .capacity = feed->budget.depth};
	queue[LEAT_QUEUE_FREE] = (struct leat_queue_figures){.name = "free batches", .capacity = feed->budget.buffers};
	queue[LEAT_QUEUE_RUNS] = (struct leat_queue_figures){.name = "ready runs", .capacity = feed->budget.runs};
	queue[LEAT_QUEUE_REQUESTS] =
		(struct leat_queue_figures){.name = "requests in flight", .capacity = feed->budget.requests};
	for (int i = 0; i < LEAT_QUEUES && times > 0; i++)
		queue[i].mean = (double)leat_counted(&feed->depths.sum[i]) / (double)times;
	if (feed->pid != getpid()) /* the lock may be held for ever */
		return;
	pthread_mutex_lock(&feed->lock);
	queue[LEAT_QUEUE_BATCHES].depth = feed->complete;
	queue[LEAT_QUEUE_FREE].depth = feed->slots - feed->held - feed->flight_count;
	queue[LEAT_QUEUE_RUNS].depth = feed->ready_count;
	queue[LEAT_QUEUE_REQUESTS].depth = feed->fetch.in_flight;
	pthread_mutex_unlock(&feed->lock);
}

/* ---- stages ---- */

static struct leat_stage_figures *
add_stage(struct leat_stage_list *list, enum leat_stage_kind kind, const char *name, const char *tag)
{
	struct leat_stage_figures *stage = &list->one[list->count++];

	*stage = (struct leat_stage_figures){.kind = kind, .tag = tag, .waits_for = "", .threads = list->threads};
	snprintf(stage->name, sizeof stage->name, "%s", name);
	return stage;
}

/* "decode+resize+flip"; what does not fit is left out. */
static void
name_stage(struct leat_stage_figures *to, const struct leat_stage *stage)
{
	size_t used = 0;

	for (int k = 0; k < stage->ops; k++) {
		const char *name = stage->op[k]->op->name;
		bool last = k + 1 == stage->ops;

		if (used + 1 + strlen(name) + (last ? 0 : strlen("+...")) >= sizeof to->name) {
			snprintf(to->name + used, sizeof to->name - used, "+...");
			return;
		}
		used += (size_t)snprintf(to->name + used, sizeof to->name - used, "%s%s", k ? "+" : "", name);
	}
}

static void
describe_stage(struct leat_stage_figures *to, const struct leat_stage *stage)
{
	name_stage(to, stage);
	to->op = stage->op[0]->op->name;
	for (int k = 0; k < stage->ops; k++) {
		const struct leat_op *op = stage->op[k]->op;

		to->decodes |= op->kind == LEAT_OP_DECODE;
		to->random |= op->random;
		to->python |=
			op == &leat_op_map && !((const struct leat_map_params *)stage->op[k]->params)->function->run;
	}
	to->tag = to->decodes ? "decode" : "transform";
}

/* Divides what workers spent on samples by the times of the samples that were timed. */
struct parts {
	double each; /* seconds for a nanosecond that was timed */
	uint64_t made, from_cache;
};

static struct parts
divide(const struct leat_feed *feed, const struct leat_totals *t)
{
	uint64_t timed = t->unpack_ns + t->cache_ns + t->store_ns;

	for (int s = 0; s < feed->pipeline.stages; s++)
		timed += t->stage_ns[s];
	return (struct parts){
		.each = timed ? seconds(t->made_ns) / (double)timed : 0, .made = t->made, .from_cache = t->from_cache};
}

static void
add_ops(const struct leat_feed *feed, const struct leat_totals *t, const struct parts *parts,
        struct leat_stage_list *list)
{
	const struct leat_pipeline *p = &feed->pipeline;
	struct leat_stage_figures *stage;

	for (int s = 0; s <= p->stages; s++) {
		if (p->cache && s == p->cached) {
			stage = add_stage(list, LEAT_STAGE_CACHE, "cache", "cache");
			stage->busy_s = parts->each * (double)t->cache_ns;
			stage->items = parts->made;
		}
		if (s == p->stages)
			break;
		stage = add_stage(list, LEAT_STAGE_OPS, "", "transform");
		describe_stage(stage, &p->stage[s]);
		stage->before_cache = p->cache && s < p->cached;
		stage->busy_s = parts->each * (double)t->stage_ns[s];
		stage->items = rest(parts->made, stage->before_cache ? parts->from_cache : 0);
		stage->errors = leat_counted(&feed->errors[LEAT_ERRORS_STAGE + s]);
	}
}

/* The consumer's thread, as two stages. */
static void
add_consumer(const struct leat_totals *t, struct leat_stage_list *list)
{
	struct leat_stage_figures *deliver = add_stage(list, LEAT_STAGE_DELIVER, "deliver", "get batch");
	struct leat_stage_figures *step = add_stage(list, LEAT_STAGE_STEP, "step", "run batch");
	uint64_t asleep = t->asleep_ns < t->wait_ns ? t->asleep_ns : t->wait_ns;

	deliver->threads = step->threads = 1;
	deliver->items = step->items = t->samples;
	deliver->bytes = step->bytes = t->bytes;
	deliver->errors = t->bad;
	deliver->busy_s = seconds(t->wait_ns - asleep);
	deliver->starved_s = seconds(asleep);
	deliver->blocked_s = step->busy_s = seconds(t->run_ns);
	step->starved_s = seconds(t->wait_ns);
	deliver->waits_for = asleep > t->run_ns ? "collate" : "step";
	step->waits_for = t->wait_ns ? "deliver" : "";
}

static void
add_storage(const struct leat_feed *feed, const struct leat_totals *t, struct leat_stage_list *list)
{
	uint64_t since = leat_counted(&feed->fetch.busy_since), busy = leat_counted(&feed->fetch.busy_ns);
	struct leat_stage_figures *stage;

	if (since)
		busy += rest(leat_now(), since);
	if (!list->remote && busy == 0)
		return; /* all was in the page cache */
	stage = add_stage(list, LEAT_STAGE_STORAGE, list->remote ? "network" : "disk", "fetch");
	stage->threads = 1;
	stage->items = rest(t->made, t->from_cache);
	stage->bytes = t->bytes_read;
	stage->busy_s = seconds(busy);
	stage->blocked_s = list->running_s > stage->busy_s ? list->running_s - stage->busy_s : 0;
	stage->waits_for = "read";
}

/* Time of the workers that is counted nowhere else. */
static double
unaccounted(const struct leat_totals *t, const struct leat_stage_list *list)
{
	double all = list->running_s * list->threads;
	double known = seconds(t->read_ns + t->op_ns + t->idle_ns + t->collate_ns);

	return all > known ? all - known : 0;
}

static void
add_workers(const struct leat_feed *feed, const struct leat_totals *t, struct leat_stage_list *list)
{
	struct parts parts = divide(feed, t);
	struct leat_stage_figures *plan = add_stage(list, LEAT_STAGE_PLAN, "plan", "fetch");
	struct leat_stage_figures *read = add_stage(list, LEAT_STAGE_READ, "read", "fetch");
	struct leat_stage_figures *unpack = add_stage(list, LEAT_STAGE_UNPACK, "unpack", "fetch"), *collate;
	uint64_t read_ns = rest(t->read_ns, t->units_ns + (feed->pipeline.stages ? 0 : t->made_ns));

	plan->items = t->made;
	plan->busy_s = unaccounted(t, list);
	read->items = unpack->items = rest(t->made, t->from_cache);
	read->bytes = unpack->bytes = t->bytes_read;
	read->busy_s = seconds(read_ns);
	unpack->errors = leat_counted(&feed->errors[LEAT_ERRORS_READ]);
	unpack->busy_s = seconds(t->units_ns) + parts.each * (double)t->unpack_ns;
	if (parts.each == 0) /* payloads are copied straight to the batch while they are checked */
		unpack->busy_s += seconds(t->made_ns);
	add_ops(feed, t, &parts, list);
	collate = add_stage(list, LEAT_STAGE_COLLATE, "collate", "collate");
	collate->items = t->made;
	collate->bytes = t->bytes;
	collate->busy_s = seconds(t->collate_ns) + parts.each * (double)t->store_ns;
}

static void
add_requests(void *arg, const struct leat_origin *origin, const struct leat_origin_counts *counts)
{
	struct leat_stage_list *list = arg;

	(void)origin;
	list->refused += counts->throttled;
}

static void
visit_wires(const struct leat_feed *feed,
            void (*visit)(void *arg, const struct leat_origin *origin, const struct leat_origin_counts *counts),
            void *arg)
{
	const struct leat_stores *stores = &feed->pipeline.source.stores;

	if (feed->pid != getpid()) /* locks may be held for ever */
		return;
	for (size_t i = 0; i < sizeof(stores->store) / sizeof(*stores->store); i++)
		if (stores->store[i] && leat_remote_wire(stores->store[i]))
			leat_wire_visit(leat_remote_wire(stores->store[i]), visit, arg);
}

static bool
is_remote(const struct leat_feed *feed)
{
	const struct leat_stores *stores = &feed->pipeline.source.stores;

	for (size_t i = 0; i < sizeof(stores->store) / sizeof(*stores->store); i++)
		if (stores->store[i] && leat_remote_wire(stores->store[i]))
			return true;
	return false;
}

void
leat_feed_stages(const struct leat_feed *feed, const struct leat_totals *t, struct leat_stage_list *list)
{
	uint64_t now = leat_now(), started = leat_counted(&feed->started_ns);
	double wall = seconds(now - feed->opened_ns), consumer = seconds(t->wait_ns + t->run_ns), work;
	uint64_t blocked = t->blocked_ns < t->idle_ns ? t->blocked_ns : t->idle_ns;

	list->count = 0;
	list->threads = feed->budget.threads;
	list->cpus = feed->cpus;
	list->cpus_used = wall > 0 ? (leat_process_seconds() - feed->cpu_opened) / wall : 0;
	list->run_s = seconds(t->run_ns);
	list->wait_s = seconds(t->wait_ns);
	list->disk_wait_s = seconds(t->disk_ns);
	list->idle_s = seconds(t->idle_ns - blocked);
	work = seconds(t->read_ns + t->op_ns + t->collate_ns);
	list->work_s = work;
	list->running_s = seconds(leat_counted(&feed->ran_ns) + (started ? rest(now, started) : 0));
	list->samples = t->samples;
	list->samples_per_s = consumer > 0 ? (double)t->samples / consumer : 0;
	list->mb_read_per_s = consumer > 0 ? (double)t->bytes_read / 1e6 / consumer : 0;
	list->ahead = feed->budget.depth > 0;
	list->caches = feed->cache != NULL;
	list->stepless = false;
	list->refused = 0;
	list->remote = is_remote(feed);
	visit_wires(feed, add_requests, list);
	add_storage(feed, t, list);
	add_workers(feed, t, list);
	add_consumer(t, list);
	leat_stages_relate(list, seconds(t->idle_ns - blocked), seconds(blocked));
}

/* ---- servers, and the first batch ---- */

struct endpoints {
	struct leat_figures *figures;
	uint64_t connected_ns, connecting_ns; /* of the first connection of all */
};

static void
add_endpoint(void *arg, const struct leat_origin *origin, const struct leat_origin_counts *counts)
{
	struct endpoints *all = arg;
	struct leat_endpoint_figures *to;

	if (counts->connections > 0 && (!all->connected_ns || origin->connected_ns < all->connected_ns)) {
		all->connected_ns = origin->connected_ns;
		all->connecting_ns = origin->connecting_ns;
	}
	if (all->figures->endpoints == LEAT_FIGURE_ENDPOINTS || counts->requests == 0)
		return;
	to = &all->figures->endpoint[all->figures->endpoints++];
	snprintf(to->host, sizeof to->host, "%s%s%s:%u", strchr(origin->host, ':') ? "[" : "", origin->host,
	         strchr(origin->host, ':') ? "]" : "", origin->port);
	to->requests = counts->requests;
	to->retries = counts->retries;
	to->hedges = counts->hedges;
	to->refused = counts->throttled;
	to->failures = counts->failures;
	to->bytes = counts->bytes;
	leat_histogram_read(&origin->answers, &to->latency);
}

/* The first connection is made while files are listed, the index is read, or for the first sample: its time counts
 * once, as connecting. */
static void
split_first_batch(const struct leat_feed *feed, const struct endpoints *servers, struct leat_first_batch *first)
{
	uint64_t list = atomic_load_explicit(&feed->pipeline.source.stores.list_ns, memory_order_relaxed);
	uint64_t there = leat_counted(&feed->first_run_ns), source = feed->source_ns - feed->opened_ns;
	uint64_t complete = leat_counted(&feed->first_complete_ns), connecting = servers->connecting_ns;
	uint64_t fetch = there > feed->source_ns ? there - feed->source_ns : 0;
	uint64_t index = source > list ? source - list : 0;
	uint64_t *phase = servers->connected_ns > feed->source_ns ? &fetch : list > connecting ? &list : &index;

	*phase -= connecting < *phase ? connecting : *phase;
	*first = (struct leat_first_batch){
		.list_ms = (double)list / 1e6,
		.index_ms = (double)index / 1e6,
		.connect_ms = (double)connecting / 1e6,
		.first_byte_ms = (double)fetch / 1e6,
		.decode_ms = there && complete > there ? (double)(complete - there) / 1e6 : 0,
	};
}

void
leat_feed_figures(const struct leat_feed *feed, bool stepless, struct leat_figures *f)
{
	struct endpoints servers = {.figures = f};
	struct leat_totals totals;

	memset(f, 0, sizeof *f);
	leat_trace_total(&feed->trace, &totals);
	leat_feed_stages(feed, &totals, &f->stages);
	f->stages.stepless = stepless;
	leat_limit_find(&f->stages, &f->limit);
	leat_feed_stats(feed, &totals, f->limit.name, &f->stats);
	leat_histogram_read(&feed->batch_times, &f->batch_times);
	leat_epochs_read(&feed->epochs, f);
	visit_wires(feed, add_endpoint, &servers);
	split_first_batch(feed, &servers, &f->first);
	read_depths((struct leat_feed *)feed, f);
	if (feed->pid == getpid()) /* elsewhere the lock may be held for ever */
		leat_tuning_read(feed, f);
	f->rank = feed->options.rank;
	f->world = feed->options.world;
	if (feed->options.recorder && feed->pid == getpid())
		leat_recorder_device(feed->options.recorder, &f->device);
}
