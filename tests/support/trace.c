/* trace.c - see trace.h */
#include "trace.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

void
trace_options(struct leat_options *options)
{
	leat_options_init(options);
	options->rank = 0;
	options->world = 1;
	options->epochs = 1;
	options->threads = 2;
	options->memory = (size_t)64 << 20;
}

static void *
grow(void *array, size_t *cap, size_t count, size_t size)
{
	if (count < *cap)
		return array;
	*cap = *cap ? 2 * *cap : 64;
	array = realloc(array, *cap * size);
	assert_non_null(array);
	return array;
}

/* ---- taking ---- */

/* Of one field of one row: what it is and where its bytes lie. */
struct row {
	int64_t header[2 + LEAT_MAX_DIMS];
	const unsigned char *bytes;
	size_t len;
};

static void
find_row(const struct leat_field *field, const struct leat_tensor *tensor, int64_t i, struct row *row)
{
	size_t element = leat_dtype_size(tensor->dtype);

	memset(row, 0, sizeof *row);
	row->header[0] = (int64_t)tensor->dtype;
	if (tensor->offsets) {
		assert_true(tensor->offsets[i] <= tensor->offsets[i + 1]);
		row->bytes = (const unsigned char *)tensor->data + (size_t)tensor->offsets[i] * element;
		row->len = (size_t)(tensor->offsets[i + 1] - tensor->offsets[i]) * element;
		for (int d = 0; tensor->sample_shapes && d < field->ndim; d++)
			row->header[2 + d] = tensor->sample_shapes[i * field->ndim + d];
	} else {
		row->len = tensor->shape[0] ? tensor->bytes / (size_t)tensor->shape[0] : 0;
		row->bytes = (const unsigned char *)tensor->data + (size_t)i * row->len;
		for (int d = 0; d < field->ndim; d++)
			row->header[2 + d] = field->shape[d];
	}
	row->header[1] = (int64_t)row->len;
}

/* Dense padding is zeros, ragged padding has no values. */
static void
check_padding(const struct leat_tensor *tensor, const struct row *row)
{
	if (tensor->offsets)
		assert_int_equal(row->len, 0);
	for (size_t k = 0; k < row->len; k++)
		assert_int_equal(row->bytes[k], 0);
	for (size_t d = 0; tensor->sample_shapes && d < LEAT_MAX_DIMS; d++)
		assert_int_equal(row->header[2 + d], 0);
}

static void
check_tensor(const struct leat_tensor *tensor, int64_t count)
{
	assert_int_equal((uintptr_t)tensor->data % 64, 0);
	if (!tensor->offsets) {
		assert_int_equal(tensor->shape[0], count);
		return;
	}
	assert_int_equal(tensor->offsets[0], 0);
	assert_int_equal(tensor->offsets[count], tensor->shape[0]);
}

static void
add_sample(struct trace_sample **samples, size_t *count, size_t *cap, const struct trace_sample *sample)
{
	*samples = grow(*samples, cap, *count, sizeof **samples);
	(*samples)[(*count)++] = *sample;
}

void
trace_add(struct trace *trace, const struct leat_feed *feed, const struct leat_batch *batch)
{
	int64_t count = leat_batch_count(batch), valid = 0;
	int fields = leat_field_count(feed);
	struct leat_sha256 *sha = leat_sha256_new();
	struct leat_tensor tensor[LEAT_MAX_FIELDS];
	struct row row;

	assert_non_null(sha);
	for (int f = 0; f < fields; f++) {
		assert_int_equal(leat_batch_field(batch, leat_field_at(feed, f)->name, &tensor[f], NULL), LEAT_OK);
		check_tensor(&tensor[f], count);
	}
	for (int64_t i = 0; i < count; i++) {
		struct trace_sample sample = {leat_batch_epoch(batch), leat_batch_position(batch, i), {0}};
		bool padding = sample.position == UINT64_MAX, good = leat_batch_valid(batch)[i];

		assert_true(leat_has_fill(feed) || good);
		assert_false(padding && good);
		leat_sha256_reset(sha);
		for (int f = 0; f < fields; f++) {
			find_row(leat_field_at(feed, f), &tensor[f], i, &row);
			if (padding)
				check_padding(&tensor[f], &row);
			leat_sha256_add(sha, row.header, sizeof row.header);
			leat_sha256_add(sha, row.bytes, row.len);
		}
		leat_sha256_end(sha, sample.hash);
		if (good)
			add_sample(&trace->sample, &trace->samples, &trace->samples_cap, &sample);
		else if (!padding)
			add_sample(&trace->repeat, &trace->repeats, &trace->repeats_cap, &sample);
		valid += good;
	}
	leat_sha256_free(sha);
	trace->batch = grow(trace->batch, &trace->batches_cap, trace->batches, sizeof *trace->batch);
	trace->batch[trace->batches++] = (struct trace_batch){leat_batch_epoch(batch), count, valid};
}

void
trace_take(struct trace *trace, struct leat_feed *feed, size_t batches)
{
	size_t until = trace->batches + batches;

	do {
		struct leat_batch *batch;

		trace->status = leat_next(feed, &batch, &trace->err);
		if (trace->status == LEAT_OK) {
			trace_add(trace, feed, batch);
			leat_release(batch);
		} else {
			assert_null(batch);
			assert_int_equal(trace->err.status, trace->status);
		}
		trace->ends += trace->status == LEAT_END;
	} while ((trace->status == LEAT_OK || trace->status == LEAT_END) && (batches == 0 || trace->batches < until));
}

struct leat_feed *
trace_open(const char *spec, const struct leat_options *options)
{
	struct leat_feed *feed;
	struct leat_err err;

	if (leat_open(spec, options, &feed, &err) != LEAT_OK)
		fail_msg("%s\n%s", spec, err.text);
	return feed;
}

void
trace_run(struct trace *trace, const char *spec, const struct leat_options *options)
{
	struct leat_feed *feed = trace_open(spec, options);

	*trace = (struct trace){0};
	trace_take(trace, feed, 0);
	leat_close(feed);
}

void
trace_free(struct trace *trace)
{
	free(trace->sample);
	free(trace->repeat);
	free(trace->batch);
	*trace = (struct trace){0};
}

/* ---- comparing ---- */

static void
compare_each(const struct trace_sample *a, const struct trace_sample *b, size_t count, const char *what)
{
	for (size_t i = 0; i < count; i++) {
		const struct trace_sample *x = &a[i], *y = &b[i];

		if (x->epoch != y->epoch || x->position != y->position)
			fail_msg("%s: sample %zu stands at %" PRIu64 ":%" PRIu64 " and at %" PRIu64 ":%" PRIu64, what,
			         i, x->epoch, x->position, y->epoch, y->position);
		if (memcmp(x->hash, y->hash, sizeof x->hash) != 0)
			fail_msg("%s: other bytes at epoch %" PRIu64 ", position %" PRIu64, what, x->epoch,
			         x->position);
	}
}

void
trace_compare_samples(const struct trace *a, const struct trace *b, const char *what)
{
	compare_each(a->sample, b->sample, a->samples < b->samples ? a->samples : b->samples, what);
	if (a->samples != b->samples)
		fail_msg("%s: %zu samples and %zu (%s / %s)", what, a->samples, b->samples, a->err.text, b->err.text);
}

void
trace_compare(const struct trace *a, const struct trace *b, const char *what)
{
	trace_compare_samples(a, b, what);
	assert_int_equal(a->repeats, b->repeats);
	compare_each(a->repeat, b->repeat, a->repeats, what);
	if (a->batches != b->batches || a->status != b->status || a->ends != b->ends)
		fail_msg("%s: %zu batches, %zu ends, %s (%s) and %zu, %zu, %s (%s)", what, a->batches, a->ends,
		         leat_status_name(a->status), a->err.text, b->batches, b->ends, leat_status_name(b->status),
		         b->err.text);
	for (size_t i = 0; i < a->batches; i++)
		if (a->batch[i].epoch != b->batch[i].epoch || a->batch[i].count != b->batch[i].count ||
		    a->batch[i].valid != b->batch[i].valid)
			fail_msg("%s: batch %zu has %" PRId64 " rows and %" PRId64, what, i, a->batch[i].count,
			         b->batch[i].count);
}

static int
by_place(const void *a, const void *b)
{
	const struct trace_sample *x = a, *y = b;

	if (x->epoch != y->epoch)
		return x->epoch < y->epoch ? -1 : 1;
	return x->position < y->position ? -1 : x->position > y->position;
}

static void
add_samples(struct trace *to, const struct trace *from)
{
	for (size_t i = 0; i < from->samples; i++)
		add_sample(&to->sample, &to->samples, &to->samples_cap, &from->sample[i]);
	for (size_t i = 0; i < from->repeats; i++)
		add_sample(&to->repeat, &to->repeats, &to->repeats_cap, &from->repeat[i]);
}

void
trace_join(struct trace *to, const struct trace *rank)
{
	add_samples(to, rank);
	if (to->samples)
		qsort(to->sample, to->samples, sizeof *to->sample, by_place);
}

void
trace_append(struct trace *to, const struct trace *rest)
{
	add_samples(to, rest);
	for (size_t i = 0; i < rest->batches; i++) {
		to->batch = grow(to->batch, &to->batches_cap, to->batches, sizeof *to->batch);
		to->batch[to->batches++] = rest->batch[i];
	}
	to->ends += rest->ends;
	to->status = rest->status;
	to->err = rest->err;
}

size_t
trace_least_memory(const char *spec, const struct leat_options *options)
{
	static const char before[] = "needs at least ";
	char size[64];
	uint64_t least;
	struct leat_options o = *options;
	struct leat_feed *feed;
	struct leat_err err;
	const char *number;

	o.memory = 1;
	if (leat_open(spec, &o, &feed, &err) != LEAT_LIMIT)
		fail_msg("%s\nopens with one byte: %s", spec, err.text);
	number = strstr(err.text, before);
	if (!number)
		fail_msg("no minimum is named: %s", err.text);
	number += sizeof before - 1;
	if (number[strcspn(number, "(;")] == '(') /* "1.5 MiB (1530 KiB)": what it is exactly */
		number = strchr(number, '(') + 1;
	snprintf(size, sizeof size, "%.*s", (int)strcspn(number, ");"), number);
	assert_int_equal(leat_parse_size(size, &least, &err), LEAT_OK);
	return (size_t)least;
}
