/* same.c - a random spec gives the same samples, however it is run
 *
 * The first run has one thread and much memory. The others differ in threads, memory, prefetch, ranks, where they were
 * interrupted, and where a cache keeps its samples. The data of some is damaged: then errors and bad samples have to be
 * the same, too. Data that is changed in place gives what it would without a cache. */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support/specs.h"
#include "support/trace.h"
#include "torture.h"

enum { MAX_SPEC = 6000, WAYS = 3, EPOCHS = 2, MAX_EPOCH = 120 /* samples */ };

static const size_t enough = (size_t)1 << 30; /* bytes: only what is used is taken */

/* A pipeline whose cache, if any, is yet to be chosen. */
struct pipeline {
	char before[MAX_SPEC], after[MAX_SPEC]; /* a cache */
	bool cached, damaged, unbounded;
	unsigned batch;
	struct sources data;
	size_t source;
	struct leat_options options;
};

struct outcome {
	bool opened;
	struct trace trace;
	char *bad; /* samples, one a line */
	size_t bad_len;
};

/* ---- running ---- */

static void
list_bad(struct outcome *outcome, const struct leat_feed *feed)
{
	FILE *out = open_memstream(&outcome->bad, &outcome->bad_len);

	assert_non_null(out);
	for (uint64_t i = 0; i < leat_bad_count(feed); i++) {
		const struct leat_bad *bad = leat_bad_at(feed, i);

		fprintf(out, "%" PRIu64 ":%" PRIu64 " sample %" PRIu64 " in %s at %" PRIu64 "%s: %s\n", bad->epoch,
		        bad->position, bad->sample, bad->uri, bad->offset, bad->replaced ? " replaced" : "",
		        bad->reason);
	}
	fclose(out);
}

static struct leat_feed *
open_feed(struct outcome *outcome, const char *spec, const struct leat_options *options)
{
	struct leat_feed *feed;

	*outcome = (struct outcome){0};
	outcome->trace.status = leat_open(spec, options, &feed, &outcome->trace.err);
	outcome->opened = outcome->trace.status == LEAT_OK;
	return outcome->opened ? feed : NULL;
}

static void
run(struct outcome *outcome, const char *spec, const struct leat_options *options)
{
	struct leat_feed *feed = open_feed(outcome, spec, options);

	if (!feed)
		return;
	trace_take(&outcome->trace, feed, 0);
	list_bad(outcome, feed);
	leat_close(feed);
}

static void
run_ranks(struct outcome *outcome, const char *spec, const struct leat_options *options, int world)
{
	struct leat_options o = *options;

	*outcome = (struct outcome){.opened = true, .trace.status = LEAT_DONE};
	for (o.rank = 0, o.world = world; o.rank < world; o.rank++) {
		struct trace trace;

		trace_run(&trace, spec, &o);
		trace_join(&outcome->trace, &trace);
		if (outcome->trace.status == LEAT_DONE) {
			outcome->trace.status = trace.status;
			outcome->trace.err = trace.err;
		}
		trace_free(&trace);
	}
}

/* Stops after `batches`; another feed with other threads goes on. */
static void
run_resumed(struct outcome *outcome, const char *spec, const struct leat_options *options, size_t batches,
            unsigned threads)
{
	struct leat_feed *feed = open_feed(outcome, spec, options);
	struct leat_options o = *options;
	struct leat_err err;
	struct trace rest = {0};
	char *json;

	if (!feed)
		return;
	if (batches > 0)
		trace_take(&outcome->trace, feed, batches);
	assert_int_equal(leat_save(feed, &json, &err), LEAT_OK);
	leat_close(feed);
	o.seed ^= 1; /* the checkpoint's counts */
	o.threads = threads;
	o.memory = enough;
	feed = trace_open(spec, &o);
	if (leat_restore(feed, json, &err) != LEAT_OK)
		fail_msg("%s\n%s", spec, err.text);
	free(json);
	trace_take(&rest, feed, 0);
	trace_append(&outcome->trace, &rest);
	trace_free(&rest);
	leat_close(feed);
}

static void
outcome_free(struct outcome *outcome)
{
	trace_free(&outcome->trace);
	free(outcome->bad);
}

/* ---- comparing ---- */

/* Damage can make a sample larger than the memory of this way. It may end there, but not have given anything else. */
static bool
ended_by_its_memory(const struct pipeline *p, const struct outcome *expected, const struct outcome *got)
{
	struct trace begin = expected->trace;

	if (!p->damaged || got->trace.status != LEAT_LIMIT || expected->trace.status == LEAT_LIMIT)
		return false;
	assert_true(got->trace.samples <= begin.samples);
	begin.samples = got->trace.samples;
	trace_compare_samples(&begin, &got->trace, "until the memory limit");
	return true;
}

static void
compare_bad(const struct outcome *expected, const struct outcome *got, const char *way)
{
	if (strcmp(expected->bad, got->bad) != 0)
		fail_msg("%s\nother bad samples:\n%sand:\n%s", way, expected->bad, got->bad);
}

/* Without the lines that point into the spec, which may go on differently. */
static bool
is_same_error(const struct leat_err *a, const struct leat_err *b)
{
	size_t len = strcspn(a->text, "\n");

	return strcspn(b->text, "\n") == len && memcmp(a->text, b->text, len) == 0;
}

static void
compare(const struct pipeline *p, const struct outcome *expected, const struct outcome *got, bool in_order,
        const char *way)
{
	if (ended_by_its_memory(p, expected, got))
		return;
	if (expected->trace.status != got->trace.status || !is_same_error(&expected->trace.err, &got->trace.err))
		fail_msg("%s\n%s: %s\nand\n%s: %s", way, leat_status_name(expected->trace.status),
		         expected->trace.err.text, leat_status_name(got->trace.status), got->trace.err.text);
	if (in_order)
		trace_compare(&expected->trace, &got->trace, way);
	else
		trace_compare_samples(&expected->trace, &got->trace, way);
	if (expected->bad && got->bad)
		compare_bad(expected, got, way);
}

/* ---- drawing ---- */

/* Cuts the spec at a place before the batch, where a cache can be. */
static void
choose_place(struct torture *t, const char *spec, struct pipeline *p)
{
	const char *batch = strstr(spec, " | batch("), *at = strstr(spec, " | "), *places[64];
	unsigned count = 0;

	p->cached = !strstr(spec, " | cache(") && torture_one_in(t, 3);
	for (; at && at <= batch && count < 64; at = strstr(at + 1, " | "))
		places[count++] = at;
	assert_true(count > 0);
	at = p->cached ? places[torture_below(t, count)] : batch;
	snprintf(p->before, sizeof p->before, "%.*s", (int)(at - spec), spec);
	snprintf(p->after, sizeof p->after, "%s", at);
}

static void
spoil(struct torture *t, struct pipeline *p)
{
	for (unsigned i = 0, times = 1 + torture_below(t, 4); i < times; i++)
		sources_spoil_one(&p->data, p->source, &t->rng);
}

static void
draw(struct torture *t, struct pipeline *p)
{
	static struct specs specs;
	char spec[MAX_SPEC];

	specs_init(&specs, t->sources, leat_rng_u64(&t->rng), MAX_EPOCH);
	specs_draw(&specs);
	p->batch = 4 * (1 + torture_below(t, 4)); /* for ranks, and pairs in them */
	specs_batch(&specs, p->batch);
	p->source = specs.source;
	torture_copy_source(t, p->source, "data", &p->data);
	p->unbounded = specs.unbounded;
	p->damaged = torture_one_in(t, 2);
	if (p->damaged)
		spoil(t, p);
	sources_elsewhere(t->sources, &p->data, specs.text, spec, sizeof spec);
	choose_place(t, spec, p);
	trace_options(&p->options);
	p->options.epochs = EPOCHS;
	p->options.seed = leat_rng_u64(&t->rng);
	p->options.on_error = (enum leat_on_error)torture_below(t, 3);
}

static void
choose_cache(struct torture *t, char *cache, size_t cap)
{
	switch (torture_below(t, 4)) {
	case 0:
		snprintf(cache, cap, " | cache(memory)");
		break;
	case 1:
		snprintf(cache, cap, " | cache(memory, size=%uKiB)", 40 + torture_below(t, 200));
		break;
	default: /* a folder that the other ways use as well */
		snprintf(cache, cap, " | cache(dir='%s', size=%s)", torture_path(t, "cache"),
		         torture_one_in(t, 3) ? "96KiB" : "64MiB");
	}
}

static size_t
choose_memory(struct torture *t, const struct pipeline *p, const char *spec, const struct leat_options *o)
{
	size_t least = trace_least_memory(spec, o), more = (size_t)1 << (10 + torture_below(t, 17));

	return least + (torture_one_in(t, 3) && !p->damaged ? 0 : more) + (p->unbounded ? (size_t)256 << 20 : 0);
}

static void
try_way(struct torture *t, const struct pipeline *p, const struct outcome *expected)
{
	static const unsigned threads[] = {1, 2, 3, 7};
	static const char *const prefetch[] = {"", " | prefetch(0)", " | prefetch(1)", " | prefetch(5)"};
	static char spec[2 * MAX_SPEC + 600], way[2 * MAX_SPEC + 900];
	struct leat_options o = p->options;
	struct outcome got;
	unsigned how = torture_below(t, 4);
	char cache[500] = "";

	if (p->cached)
		choose_cache(t, cache, sizeof cache);
	o.threads = threads[torture_below(t, 4)];
	snprintf(spec, sizeof spec, "%s%s%s%s", p->before, cache, p->after, prefetch[torture_below(t, 4)]);
	o.memory = expected->opened && torture_one_in(t, 2) ? choose_memory(t, p, spec, &o) : enough;
	snprintf(way, sizeof way, "%s\nwith %u threads, %zu bytes, seed %" PRIu64 ", on_error %d, %s", spec, o.threads,
	         o.memory, o.seed, o.on_error,
	         how == 0   ? "on ranks"
	         : how == 1 ? "resumed"
	                    : "at once");
	print_message("%s\n", way);
	if (how == 0 && expected->trace.status == LEAT_DONE)
		run_ranks(&got, spec, &o, p->batch % 8 == 0 && torture_one_in(t, 2) ? 4 : 2);
	else if (how == 1 && expected->opened)
		run_resumed(&got, spec, &o, torture_below(t, 1 + (unsigned)expected->trace.batches),
		            threads[torture_below(t, 4)]);
	else
		run(&got, spec, &o);
	compare(p, expected, &got, how != 0, way);
	outcome_free(&got);
}

/* As `cache` would be without a cache. */
static void
run_uncached(const struct pipeline *p, struct outcome *outcome)
{
	static char spec[2 * MAX_SPEC + 64];
	struct leat_options o = p->options;

	o.threads = 1;
	o.memory = enough;
	snprintf(spec, sizeof spec, "%s%s%s", p->before, p->cached ? " | cache(memory, size=1)" : "", p->after);
	print_message("%s\n", spec);
	run(outcome, spec, &o);
}

/* The data is changed in place; some keep its times, as cp -p does. */
static void
check_fresh(struct torture *t, struct pipeline *p)
{
	struct outcome expected, got;
	static char spec[2 * MAX_SPEC + 600];
	struct leat_options o = p->options;

	snprintf(spec, sizeof spec, "%s | cache(dir='%s', size=64MiB)%s", p->before, torture_path(t, "fresh"),
	         p->after);
	o.memory = enough;
	run(&got, spec, &o);
	outcome_free(&got);
	spoil(t, p);
	p->damaged = true;
	if (torture_one_in(t, 2))
		torture_age(p->data.one[p->source].folder);
	print_message("%s\n", spec);
	run(&got, spec, &o);
	sources_forget_indexes(&p->data);
	run_uncached(p, &expected);
	compare(p, &expected, &got, true, "after the data was changed in place");
	outcome_free(&expected);
	outcome_free(&got);
}

void
torture_same(struct torture *t)
{
	static struct pipeline p;
	struct outcome expected;

	draw(t, &p);
	run_uncached(&p, &expected);
	/* Drawn ops may make pixels that others, rightly, do not take. */
	if (!p.damaged && expected.trace.status != LEAT_DONE &&
	    !strstr(expected.trace.err.text, "expected float32 pixels from 0 to 1"))
		fail_msg("%s%s\n%s", p.before, p.after, expected.trace.err.text);
	for (int i = 0; i < WAYS; i++)
		try_way(t, &p, &expected);
	outcome_free(&expected);
	if (p.cached)
		check_fresh(t, &p);
}
