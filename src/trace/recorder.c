/* recorder.c - see recorder.h
 *
 * Locks: `lock` guards the list of lanes, new names and values on their way to tracks; `rounds` is held while sinks are
 * called. Nobody who holds one of them takes the other, except that a round takes `lock` for moments. */
#include "trace/recorder.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/launcher.h"
#include "base/threads.h"
#include "trace/sampler.h"
#include "trace/texts.h"
#include "trace/timeline.h"
#include "trace/trace_file.h"

enum {
	ROUND_NS = 200 * 1000 * 1000,
	RING_SPANS = 8192, /* 256 KiB */
	LEAST_SPANS = 128, /* a page: if there is no memory for more */
	MAX_VALUES = 4096, /* of tracks, between two rounds */
	LANE_NAME = 64,
	LEAST_MEMORY = 1 << 20,
	LEAST_TRACE = 1 << 20,
};

struct row {
	struct leat_ring ring;
	char name[LANE_NAME];
	bool overlaps;
	bool ended; /* under `lock`: nobody writes to it, so a new lane of that name continues it */
};

struct value {
	uint64_t at;
	double value;
	uint32_t track;
};

struct leat_recorder {
	struct leat_mem mem;
	pid_t pid; /* of the process that opened it; a forked child has its memory, but not its thread */
	struct leat_recorder_options options;
	struct leat_log log;
	char process[256];
	struct leat_alarm alarm;
	atomic_int users;        /* feeds */
	atomic_bool stop;        /* the last round is due */
	_Atomic uint64_t lost;   /* spans without a lane, and values that had no room */
	_Atomic uint64_t handed; /* spans that sinks have got */

	pthread_mutex_t lock;
	_Atomic(struct row *) row[LEAT_MAX_LANES];
	atomic_int rows;
	struct leat_texts texts;
	struct value *value;
	int values;

	pthread_mutex_t rounds;
	pthread_cond_t done;       /* a round is over */
	uint64_t wanted, finished; /* rounds asked for by leat_recorder_pause, and those of them that are over */
	int paused;
	struct value *taken; /* of the round */
	int rows_shown;
	struct {
		const struct leat_span_sink *sink;
		void *arg;
	} sink[LEAT_MAX_SINKS];
	int sinks;
	enum leat_status status; /* of finishing the sinks */
	struct leat_err err;

	struct leat_threads thread;
};

const char *
leat_tag_name(enum leat_tag tag)
{
	static const char *const name[] = {
#define NAME(tag, name, doc) name,
		LEAT_TAGS(NAME)
#undef NAME
	};

	return (size_t)tag < sizeof name / sizeof *name ? name[tag] : "unknown";
}

/* ---- lanes: any thread ---- */

static bool
is_forked(const struct leat_recorder *r)
{
	return getpid() != r->pid;
}

static struct row *
row_at(struct leat_recorder *r, int lane)
{
	return lane < 0 || lane >= LEAT_MAX_LANES ? NULL : atomic_load_explicit(&r->row[lane], memory_order_acquire);
}

/* Under the lock. -1: there is none. */
static int
lane_named(struct leat_recorder *r, const char *name)
{
	int rows = atomic_load_explicit(&r->rows, memory_order_relaxed);

	for (int i = 0; i < rows; i++) {
		const struct row *row = row_at(r, i);

		if (row && strcmp(row->name, name) == 0)
			return i;
	}
	return -1;
}

/* The spans of a new ring: fewer if many lanes have left little memory. 0: the rest is for sinks and feeds. */
static uint64_t
ring_spans(const struct leat_recorder *r)
{
	size_t used = atomic_load(&r->mem.used), left = r->mem.limit > used ? r->mem.limit - used : 0;
	uint64_t spans = RING_SPANS;

	if (left < r->mem.limit / 16)
		return 0;
	while (spans > LEAST_SPANS && spans * sizeof(struct leat_span) > left / 64)
		spans /= 2;
	return spans;
}

/* Under the lock. A smaller ring is better than none. */
static struct row *
new_row(struct leat_recorder *r, const char *name, bool overlaps)
{
	uint64_t spans = ring_spans(r);
	struct row *row = spans > 0 ? leat_map(&r->mem, sizeof *row) : NULL;

	if (!row)
		return NULL;
	snprintf(row->name, sizeof row->name, "%s", name);
	row->overlaps = overlaps;
	while (!leat_ring_open(&row->ring, spans, &r->alarm, &r->mem)) {
		spans /= 2;
		if (spans < LEAST_SPANS) {
			leat_unmap(&r->mem, row, sizeof *row);
			return NULL;
		}
	}
	return row;
}

/* Under the lock. */
static int
add_row(struct leat_recorder *r, const char *name, bool overlaps)
{
	int lane = atomic_load_explicit(&r->rows, memory_order_relaxed);
	struct row *row = lane < LEAT_MAX_LANES ? new_row(r, name, overlaps) : NULL;

	if (!row)
		return -1;
	atomic_store_explicit(&r->row[lane], row, memory_order_release);
	atomic_store_explicit(&r->rows, lane + 1, memory_order_release);
	return lane;
}

int
leat_recorder_add_lane(struct leat_recorder *r, const char *name, bool overlaps)
{
	char unique[LANE_NAME];
	int lane = -1;

	if (is_forked(r))
		return -1;
	pthread_mutex_lock(&r->lock);
	for (int n = 1; n <= LEAT_MAX_LANES; n++) {
		if (n == 1)
			snprintf(unique, sizeof unique, "%s", name);
		else
			snprintf(unique, sizeof unique, "%.50s #%d", name, n);
		lane = lane_named(r, unique);
		if (lane < 0) {
			lane = add_row(r, unique, overlaps);
			break;
		}
		if (row_at(r, lane)->ended && row_at(r, lane)->overlaps == overlaps) {
			row_at(r, lane)->ended = false;
			break;
		}
	}
	pthread_mutex_unlock(&r->lock);
	return lane;
}

int
leat_recorder_lane(struct leat_recorder *r, const char *name)
{
	return leat_recorder_add_lane(r, name, false);
}

void
leat_recorder_lane_end(struct leat_recorder *r, int lane)
{
	struct row *row = row_at(r, lane);

	if (!row || is_forked(r))
		return;
	pthread_mutex_lock(&r->lock);
	row->ended = true;
	pthread_mutex_unlock(&r->lock);
}

struct leat_ring *
leat_recorder_ring(struct leat_recorder *r, int lane)
{
	struct row *row = row_at(r, lane);

	return row ? &row->ring : NULL;
}

uint32_t
leat_recorder_name(struct leat_recorder *r, const char *name)
{
	uint32_t number = name ? leat_texts_find(&r->texts, name) : 0;

	if (number > 0 || !name || is_forked(r))
		return number;
	pthread_mutex_lock(&r->lock);
	number = leat_texts_add(&r->texts, name, &r->mem);
	pthread_mutex_unlock(&r->lock);
	return number;
}

void
leat_recorder_span(struct leat_recorder *r, int lane, enum leat_tag tag, const char *name, uint64_t begin_ns,
                   uint64_t end_ns, uint64_t item)
{
	struct row *row = row_at(r, lane);
	struct leat_span span = {
		.begin = begin_ns,
		.end = end_ns < begin_ns ? begin_ns : end_ns,
		.item = item,
		.name = leat_recorder_name(r, name),
		.tag = (uint16_t)tag,
		.every = 1,
	};

	if (row && (unsigned)tag < LEAT_TAG_COUNT)
		leat_ring_push(&row->ring, &span);
	else
		atomic_fetch_add_explicit(&r->lost, 1, memory_order_relaxed);
}

void
leat_recorder_count(struct leat_recorder *r, const char *track, uint64_t at_ns, double value)
{
	int values = 0;
	uint32_t number;

	if (is_forked(r))
		return;
	pthread_mutex_lock(&r->lock);
	number = leat_texts_add(&r->texts, track, &r->mem);
	if (number > 0 && r->values < MAX_VALUES) {
		r->value[r->values++] = (struct value){at_ns, value, number};
		values = r->values;
	} else {
		atomic_fetch_add_explicit(&r->lost, 1, memory_order_relaxed);
	}
	pthread_mutex_unlock(&r->lock);
	if (values == MAX_VALUES / 2)
		leat_alarm_ring(&r->alarm);
}

uint64_t
leat_recorder_dropped(const struct leat_recorder *r)
{
	uint64_t dropped = atomic_load_explicit(&r->lost, memory_order_relaxed);
	int rows = atomic_load_explicit(&r->rows, memory_order_acquire);

	for (int i = 0; i < rows; i++)
		dropped += leat_counted(&atomic_load_explicit(&r->row[i], memory_order_acquire)->ring.dropped);
	return dropped;
}

uint64_t
leat_recorder_spans(const struct leat_recorder *r)
{
	uint64_t spans = 0;
	int rows = atomic_load_explicit(&r->rows, memory_order_acquire);

	for (int i = 0; i < rows; i++)
		spans += leat_counted(&atomic_load_explicit(&r->row[i], memory_order_acquire)->ring.head);
	return spans;
}

bool
leat_recorder_is_ours(const struct leat_recorder *r)
{
	return !is_forked(r);
}

bool
leat_recorder_hold(struct leat_recorder *r)
{
	if (is_forked(r))
		return false;
	atomic_fetch_add(&r->users, 1);
	return true;
}

void
leat_recorder_let_go(struct leat_recorder *r)
{
	atomic_fetch_sub(&r->users, 1);
}

/* ---- rounds: the recorder's thread, holding `rounds` ---- */

static void
hand_lanes(struct leat_recorder *r, int rows)
{
	for (; r->rows_shown < rows; r->rows_shown++)
		for (int i = 0; i < r->sinks; i++)
			if (r->sink[i].sink->lane)
				r->sink[i].sink->lane(r->sink[i].arg, r->rows_shown, row_at(r, r->rows_shown)->name,
				                      row_at(r, r->rows_shown)->overlaps);
}

static void
hand_span(struct leat_recorder *r, int lane, const struct leat_span *span)
{
	const char *name = leat_texts_at(&r->texts, span->name);

	if (!name)
		name = leat_tag_name((enum leat_tag)span->tag);
	for (int i = 0; i < r->sinks; i++)
		if (r->sink[i].sink->span)
			r->sink[i].sink->span(r->sink[i].arg, lane, span, name);
}

/* What is there at the beginning, and no more: a fast producer must not keep the round from ending. */
static void
hand_spans(struct leat_recorder *r, int lane)
{
	struct leat_ring *ring = &row_at(r, lane)->ring;

	for (int piece = 0; piece < 2; piece++) {
		const struct leat_span *span;
		uint64_t count = leat_ring_peek(ring, &span);

		for (uint64_t i = 0; i < count; i++)
			hand_span(r, lane, &span[i]);
		leat_ring_taken(ring, count);
		atomic_fetch_add_explicit(&r->handed, count, memory_order_relaxed);
	}
}

static void
hand_values(struct leat_recorder *r)
{
	struct value *values;
	int count;

	pthread_mutex_lock(&r->lock);
	values = r->value;
	count = r->values;
	r->value = r->taken;
	r->taken = values;
	r->values = 0;
	pthread_mutex_unlock(&r->lock);
	for (int k = 0; k < count; k++)
		for (int i = 0; i < r->sinks; i++)
			if (r->sink[i].sink->count)
				r->sink[i].sink->count(r->sink[i].arg, leat_texts_at(&r->texts, values[k].track),
				                       values[k].at, values[k].value);
}

static struct leat_recorded
recorded(const struct leat_recorder *r)
{
	return (struct leat_recorded){
		.spans = atomic_load_explicit(&r->handed, memory_order_relaxed),
		.dropped = leat_recorder_dropped(r),
	};
}

static void
do_round(struct leat_recorder *r)
{
	int rows = atomic_load_explicit(&r->rows, memory_order_acquire);
	struct leat_recorded now;

	hand_lanes(r, rows);
	for (int i = 0; i < rows; i++)
		hand_spans(r, i);
	hand_values(r);
	now = recorded(r);
	for (int i = 0; i < r->sinks; i++)
		if (r->sink[i].sink->tick)
			r->sink[i].sink->tick(r->sink[i].arg, leat_now(), &now);
}

static void
finish_sinks(struct leat_recorder *r)
{
	struct leat_recorded all = recorded(r);

	for (int i = 0; i < r->sinks; i++) {
		enum leat_status status = LEAT_OK;

		if (r->sink[i].sink->finish)
			status = r->sink[i].sink->finish(r->sink[i].arg, &all, &r->err);
		if (r->status == LEAT_OK)
			r->status = status;
	}
}

static void
recorder_body(void *arg, unsigned i)
{
	struct leat_recorder *r = arg;
	bool last = false;

	(void)i;
	while (!last) {
		uint64_t wanted;

		leat_alarm_wait(&r->alarm, ROUND_NS);
		last = atomic_load(&r->stop);
		pthread_mutex_lock(&r->rounds);
		wanted = r->wanted;
		if (r->paused == 0 || wanted > r->finished || last)
			do_round(r);
		if (last) {
			hand_values(r); /* those that came with the round's ticks */
			finish_sinks(r);
		}
		r->finished = wanted;
		pthread_cond_broadcast(&r->done);
		pthread_mutex_unlock(&r->rounds);
	}
}

void
leat_recorder_pause(struct leat_recorder *r)
{
	uint64_t mine;

	pthread_mutex_lock(&r->rounds);
	mine = ++r->wanted;
	r->paused++;
	while (r->finished < mine) {
		leat_alarm_ring(&r->alarm);
		pthread_cond_wait(&r->done, &r->rounds);
	}
	pthread_mutex_unlock(&r->rounds);
}

void
leat_recorder_resume(struct leat_recorder *r)
{
	pthread_mutex_lock(&r->rounds);
	r->paused--;
	pthread_mutex_unlock(&r->rounds);
}

/* ---- opening and closing ---- */

void
leat_recorder_options_init_sized(struct leat_recorder_options *options, size_t size)
{
	struct leat_recorder_options defaults = {
		.size = size,
		.trace_bytes = LEAT_TRACE_BYTES,
		.memory = LEAT_RECORDER_MEMORY,
		.rank = -1,
	};

	memset(options, 0, size);
	memcpy(options, &defaults, size < sizeof defaults ? size : sizeof defaults);
}

void
leat_recorder_attach(struct leat_recorder *r, const struct leat_span_sink *sink, void *arg)
{
	r->sink[r->sinks].sink = sink;
	r->sink[r->sinks++].arg = arg;
}

void *
leat_recorder_sink(const struct leat_recorder *r, const struct leat_span_sink *sink)
{
	for (int i = 0; i < r->sinks; i++)
		if (r->sink[i].sink == sink)
			return r->sink[i].arg;
	return NULL;
}

struct leat_mem *
leat_recorder_mem(struct leat_recorder *r)
{
	return &r->mem;
}

const struct leat_recorder_options *
leat_recorder_settings(const struct leat_recorder *r)
{
	return &r->options;
}

const struct leat_log *
leat_recorder_log(const struct leat_recorder *r)
{
	return &r->log;
}

const char *
leat_recorder_process(const struct leat_recorder *r)
{
	return r->process;
}

static enum leat_status
resolve_options(struct leat_recorder_options *to, const struct leat_recorder_options *from, struct leat_err *err)
{
	int rank, world;
	enum leat_status status;

	leat_recorder_options_init(to);
	if (from) {
		if (from->size < offsetof(struct leat_recorder_options, trace) || from->size > 4096)
			return leat_fail(err, LEAT_INVALID,
			                 "the options were not initialized with leat_recorder_options_init");
		memcpy(to, from, from->size < sizeof *to ? from->size : sizeof *to);
		to->size = sizeof *to;
	}
	if (to->memory < LEAST_MEMORY)
		return leat_fail(err, LEAT_INVALID, "memory=%zu is too little for a recorder: it needs %d", to->memory,
		                 LEAST_MEMORY);
	if (to->trace_bytes < LEAST_TRACE)
		return leat_fail(err, LEAT_INVALID, "trace_bytes=%llu is too little for a trace: it needs %d",
		                 (unsigned long long)to->trace_bytes, LEAST_TRACE);
	if (to->rank >= 0 && to->world > 0)
		return LEAT_OK;
	status = leat_launcher_rank(&rank, &world, err);
	if (to->rank < 0)
		to->rank = rank;
	if (to->world <= 0)
		to->world = world;
	return status;
}

static void
name_process(struct leat_recorder *r)
{
	const char *name = r->options.name && *r->options.name ? r->options.name : program_invocation_short_name;
	int len = snprintf(r->process, sizeof r->process, "%.160s", name);

	if (r->options.world > 1)
		len += snprintf(r->process + len, sizeof r->process - (size_t)len, ", rank %d of %d", r->options.rank,
		                r->options.world);
	snprintf(r->process + len, sizeof r->process - (size_t)len, ", pid %ld", (long)r->pid);
}

/* Sinks are opened here, each if an option asks for it. */
static enum leat_status
open_sinks(struct leat_recorder *r, struct leat_err *err)
{
	enum leat_status status = LEAT_OK;

	if (r->options.trace)
		status = leat_trace_file_open(r, err);
	if (status == LEAT_OK && r->options.timeline)
		status = leat_timeline_attach(r, err);
	if (status == LEAT_OK && r->options.samplers)
		status = leat_samplers_attach(r, err);
	return status;
}

static enum leat_status
open_parts(struct leat_recorder *r, struct leat_err *err)
{
	enum leat_status status;

	r->value = leat_alloc_array(&r->mem, MAX_VALUES, sizeof *r->value);
	r->taken = leat_alloc_array(&r->mem, MAX_VALUES, sizeof *r->taken);
	if (!r->value || !r->taken)
		return leat_fail_mem(err, &r->mem, MAX_VALUES * sizeof *r->value, "the recorder");
	status = open_sinks(r, err);
	r->options.trace = r->options.name = NULL; /* the caller's */
	if (status == LEAT_OK)
		status = leat_threads_start(&r->thread, &r->mem, 1, "leat-recorder", recorder_body, r, err);
	return status;
}

static void
free_recorder(struct leat_recorder *r)
{
	for (int i = 0; i < r->sinks; i++)
		if (r->sink[i].sink->free)
			r->sink[i].sink->free(r->sink[i].arg);
	for (int i = 0; i < LEAT_MAX_LANES && row_at(r, i); i++) {
		leat_ring_close(&row_at(r, i)->ring, &r->mem);
		leat_unmap(&r->mem, row_at(r, i), sizeof(struct row));
	}
	leat_texts_free(&r->texts, &r->mem);
	leat_free(&r->mem, r->value);
	leat_free(&r->mem, r->taken);
	leat_alarm_close(&r->alarm);
	pthread_cond_destroy(&r->done);
	pthread_mutex_destroy(&r->rounds);
	pthread_mutex_destroy(&r->lock);
	free(r);
}

enum leat_status
leat_recorder_open(const struct leat_recorder_options *options, struct leat_recorder **recorder, struct leat_err *err)
{
	struct leat_recorder *r = calloc(1, sizeof *r);
	enum leat_status status;

	*recorder = NULL;
	leat_err_clear(err);
	if (!r)
		return leat_fail(err, LEAT_NOMEM, "out of memory for a recorder");
	r->pid = getpid();
	leat_err_clear(&r->err);
	status = resolve_options(&r->options, options, err);
	if (status == LEAT_OK)
		status = leat_alarm_open(&r->alarm, err);
	if (status != LEAT_OK) {
		free(r);
		return status;
	}
	leat_mem_init(&r->mem, r->options.memory);
	r->log = (struct leat_log){r->options.log, r->options.log_arg};
	pthread_mutex_init(&r->lock, NULL);
	pthread_mutex_init(&r->rounds, NULL);
	pthread_cond_init(&r->done, NULL);
	name_process(r);
	status = open_parts(r, err);
	if (status != LEAT_OK)
		free_recorder(r);
	else
		*recorder = r;
	return status;
}

enum leat_status
leat_recorder_close(struct leat_recorder *r, struct leat_err *err)
{
	enum leat_status status;

	leat_err_clear(err);
	if (!r || is_forked(r))
		return LEAT_OK;
	if (atomic_load(&r->users) > 0)
		return leat_fail(err, LEAT_INVALID, "a feed still uses the recorder: close the feed first");
	atomic_store(&r->stop, true);
	leat_alarm_ring(&r->alarm);
	leat_threads_join(&r->thread);
	status = r->status;
	if (status != LEAT_OK)
		leat_fail_as(err, &r->err);
	free_recorder(r);
	return status;
}
