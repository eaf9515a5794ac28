/* source.c - see source.h */
#include "source.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "feed/feed.h"
#include "trace.h"

/* ---- all samples at once ---- */

void
whole_open(struct whole *whole, const char *spec, const struct leat_options *options)
{
	struct leat_options o;
	struct leat_err err;
	char text[2000];

	trace_options(&o);
	snprintf(text, sizeof text, strstr(spec, "| batch(") ? "%s" : "%s | batch(1000)", spec);
	whole->feed = trace_open(text, options ? options : &o);
	if (leat_next(whole->feed, &whole->batch, &err) != LEAT_OK)
		fail_msg("%s: %s", spec, err.text);
	whole->count = leat_batch_count(whole->batch);
}

void
whole_close(struct whole *whole)
{
	leat_release(whole->batch);
	leat_close(whole->feed);
}

struct leat_tensor
whole_field(const struct whole *whole, const char *name)
{
	struct leat_tensor tensor;
	struct leat_err err;

	if (leat_batch_field(whole->batch, name, &tensor, &err) != LEAT_OK)
		fail_msg("%s", err.text);
	return tensor;
}

const void *
whole_row(const struct whole *whole, const char *name, int64_t i, size_t *len)
{
	struct leat_tensor tensor = whole_field(whole, name);
	size_t element = leat_dtype_size(tensor.dtype);

	assert_in_range(i, 0, whole->count - 1);
	if (tensor.offsets) {
		*len = (size_t)(tensor.offsets[i + 1] - tensor.offsets[i]) * element;
		return (const char *)tensor.data + (size_t)tensor.offsets[i] * element;
	}
	*len = tensor.bytes / (size_t)whole->count;
	return (const char *)tensor.data + (size_t)i * *len;
}

void
whole_expect_text(const struct whole *whole, const char *name, int64_t i, const char *text)
{
	size_t len;
	const char *row = whole_row(whole, name, i, &len);

	if (len != strlen(text) || memcmp(row, text, len) != 0)
		fail_msg("%s of sample %lld is '%.*s', expected '%s'", name, (long long)i, (int)len, row, text);
}

void
expect_refused(const char *spec, enum leat_status status, const char *part)
{
	struct leat_feed *feed;
	struct leat_err err;
	char batched[4200];

	snprintf(batched, sizeof batched, "%s | batch(1)", spec);
	if (leat_open(batched, NULL, &feed, &err) == LEAT_OK)
		fail_msg("%s opens", spec);
	if (err.status != status || !strstr(err.text, part))
		fail_msg("%s: %s: %s\nexpected %s: %s", spec, leat_status_name(err.status), err.text,
		         leat_status_name(status), part);
}

/* ---- the same samples ---- */

static void
run_ranks(const char *spec, const struct leat_options *options, int world, struct trace *joined)
{
	struct leat_options o = *options;

	*joined = (struct trace){0};
	for (o.rank = 0, o.world = world; o.rank < world; o.rank++) {
		struct trace trace;

		trace_run(&trace, spec, &o);
		assert_int_equal(trace.status, LEAT_DONE);
		trace_join(joined, &trace);
		trace_free(&trace);
	}
}

/* Stops after `batches`, and goes on in another feed with other threads. */
static void
stop_and_go_on(const char *spec, const struct leat_options *options, const struct trace *all, size_t batches)
{
	struct leat_options o = *options;
	struct trace trace = {0};
	struct leat_feed *feed = trace_open(spec, &o);
	struct leat_err err;
	char *json;

	if (batches > 0)
		trace_take(&trace, feed, batches);
	assert_int_equal(leat_save(feed, &json, &err), LEAT_OK);
	leat_close(feed);
	o.threads = 3;
	feed = trace_open(spec, &o);
	if (leat_restore(feed, json, &err) != LEAT_OK)
		fail_msg("%s: %s", spec, err.text);
	trace_take(&trace, feed, 0);
	trace_compare_samples(all, &trace, spec);
	leat_close(feed);
	trace_free(&trace);
	free(json);
}

void
promise_same(const char *spec)
{
	promise_same_with(spec, "shuffle");
}

void
promise_same_with(const char *spec, const char *shuffle)
{
	struct leat_options options;
	struct trace all, other;
	char text[2000];

	trace_options(&options);
	options.epochs = 2;
	options.seed = 5;
	options.threads = 1;
	snprintf(text, sizeof text, "%s | %s | batch(6)", spec, shuffle);
	trace_run(&all, text, &options);
	assert_int_equal(all.status, LEAT_DONE);
	assert_true(all.samples > 0);
	options.threads = 4;
	trace_run(&other, text, &options);
	trace_compare(&all, &other, spec);
	trace_free(&other);
	for (int world = 2; world <= 3; world++) {
		run_ranks(text, &options, world, &other);
		trace_compare_samples(&all, &other, spec);
		trace_free(&other);
	}
	for (size_t batches = 0; batches <= all.batches; batches += 1 + all.batches / 4)
		stop_and_go_on(text, &options, &all, batches);
	trace_free(&all);
}

/* ---- no memory ---- */

static void
check_error(const char *spec, enum leat_status status, const struct leat_err *err)
{
	if (status != LEAT_NOMEM && status != LEAT_LIMIT)
		fail_msg("%s: %s: %s", spec, leat_status_name(status), err->text);
	assert_int_equal(err->status, status);
	assert_true(err->text[0] != '\0');
}

/* True: nothing failed, because fewer than n requests were made. */
static bool
try_with(const char *spec, const struct leat_options *options, long n)
{
	struct leat_batch *batch;
	struct leat_feed *feed;
	struct leat_err err;
	enum leat_status status = leat_feed_open(spec, options, LEAT_BATCH_REQUIRED, n, &feed, &err);
	bool spared;

	if (status == LEAT_OK) {
		status = leat_next(feed, &batch, &err);
		if (status == LEAT_OK)
			leat_release(batch);
		leat_engine_stop(feed); /* nobody asks for memory any more */
		spared = atomic_load(&feed->mem.fail_after) > 0;
		leat_close(feed);
		if (status == LEAT_OK)
			return spared;
	}
	check_error(spec, status, &err);
	return false;
}

void
promise_memory_errors(const char *spec, void (*before)(void))
{
	struct leat_options options;
	long n = 0;

	trace_options(&options);
	do {
		if (before)
			before();
		assert_in_range(n, 0, 100000);
	} while (!try_with(spec, &options, n++));
	assert_true(n > 10);
}
