/* test_feed_bad.c - bad samples never hang, never hide, and never move the others
 *
 * Of 400 samples eleven are bad: four have a flipped bit in the payload, three a damaged
 * header, four an image that is cut off. The same data without damage says what the
 * others have to be. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "format/example.h"
#include "support/data.h"
#include "support/specs.h"
#include "support/trace.h"

#define DIRECT " | batch(16)"
#define DECODED                                                                                                        \
	" | example(image=bytes, label=int64, tokens=int64[]) | decode | resize(20, 20) | random_flip | batch(16)"
#define RAGGED " | example(image=bytes, label=int64, tokens=int64[]) | decode | batch(16)"
#define SHUFFLED " | shuffle" DECODED

enum { RECORDS = 400, SPECS = TEST_SLOW ? 40 : 300 };

static const size_t counts[] = {150, 100, 0, 150};
static const size_t flipped[] = {17, 57, 58, 301}, headless[] = {90, 149, 330}, cut[] = {31, 120, 121, 255};
static struct data clean, undecoded, damaged; /* undecoded: clean, to those who do not look at images */

static bool
has(const size_t *list, size_t count, size_t sample)
{
	for (size_t i = 0; i < count; i++)
		if (list[i] == sample)
			return true;
	return false;
}

static enum data_kind
kind(size_t sample)
{
	return has(cut, 4, sample) ? DATA_CUT : DATA_GOOD;
}

static enum data_kind
all_cut(size_t sample)
{
	(void)sample;
	return DATA_CUT;
}

static int
setup(void **state)
{
	(void)state;
	data_make(&clean, 4, counts, NULL);
	data_make(&undecoded, 4, counts, kind);
	data_copy(&damaged, &undecoded);
	for (size_t i = 0; i < 4; i++)
		data_flip_payload(&damaged, flipped[i]);
	for (size_t i = 0; i < 3; i++)
		data_flip_header(&damaged, headless[i]);
	return 0;
}

static int
teardown(void **state)
{
	(void)state;
	data_remove(&clean);
	data_remove(&undecoded);
	data_remove(&damaged);
	return 0;
}

/* An image that is cut off is bad only where images are decoded. */
static bool
is_bad(size_t sample, bool decodes)
{
	return has(flipped, 4, sample) || has(headless, 3, sample) || (decodes && has(cut, 4, sample));
}

static const char *
spec_on(const struct data *data, const char *rest)
{
	static char spec[2][800];
	static int turn;

	turn = !turn;
	snprintf(spec[turn], sizeof spec[turn], "%s%s", data_source(data), rest);
	return spec[turn];
}

/* ---- fail ---- */

static void
fails_with(const char *rest, size_t batches_before, const char *expected)
{
	static const unsigned threads[] = {1, 2, 3, 7, 2, 7};
	struct leat_options options;
	char text[1024] = "";

	trace_options(&options);
	for (size_t i = 0; i < sizeof threads / sizeof *threads; i++) {
		struct trace trace;
		struct leat_feed *feed;

		options.threads = threads[i];
		feed = trace_open(spec_on(&damaged, rest), &options);
		trace = (struct trace){0};
		trace_take(&trace, feed, 0);
		assert_int_equal(trace.status, LEAT_DATA);
		if (strncmp(trace.err.text, expected, strlen(expected)) != 0)
			fail_msg("%s\n%s", trace.err.text, expected);
		if (i > 0)
			assert_string_equal(trace.err.text, text);
		strcpy(text, trace.err.text);
		assert_int_equal(trace.batches, batches_before);
		trace_take(&trace, feed, 0); /* again and again the same */
		assert_string_equal(trace.err.text, text);
		assert_int_equal(trace.batches, batches_before);
		leat_close(feed);
		trace_free(&trace);
	}
}

/* How an error begins. Only one of an op names the sample: the others know the file's bytes, not samples. */
static const char *
place(size_t sample, bool of_op)
{
	static char text[400];

	snprintf(text, sizeof text, "%s at offset %" PRIu64, data_path(&damaged, damaged.place[sample].file),
	         damaged.place[sample].offset);
	if (of_op)
		snprintf(text + strlen(text), sizeof text - strlen(text), " (sample %zu)", sample);
	return text;
}

static void
the_first_bad_sample_of_the_plan_ends_the_feed(void **state)
{
	char expected[1000];

	(void)state;
	snprintf(expected, sizeof expected, "%s: record's checksum does not match (%" PRIu64 " bytes)",
	         place(17, false), damaged.place[17].length - 16);
	fails_with(DIRECT, 1, expected);
	fails_with(DECODED, 1, expected);
	snprintf(expected, sizeof expected, "%s: record header's checksum does not match (%" PRIu64 " bytes damaged)",
	         place(90, false), damaged.place[90].length);
	fails_with(" | skip(59)" DIRECT, 1, expected);
	snprintf(expected, sizeof expected, "%s: decode: the JPEG image is cut off after ", place(31, true));
	fails_with(" | skip(18)" DECODED, 0, expected);
}

static void
shuffled_the_first_bad_sample_is_the_same_for_all_threads(void **state)
{
	struct leat_options options;
	char text[1200] = "";

	(void)state;
	trace_options(&options);
	options.seed = 3;
	for (unsigned i = 0; i < 12; i++) {
		struct trace trace;

		options.threads = 1 + i % 7;
		trace_run(&trace, spec_on(&damaged, " | shuffle" RAGGED " | prefetch(7)"), &options);
		assert_int_equal(trace.status, LEAT_DATA);
		if (i > 0)
			assert_string_equal(trace.err.text, text);
		strcpy(text, trace.err.text);
		trace_free(&trace);
	}
}

/* ---- skip ---- */

/* The clean samples without the bad ones, found by the list of the feed itself. */
static void
drop_listed(struct trace *trace, const struct leat_feed *feed)
{
	size_t kept = 0;

	for (size_t i = 0; i < trace->samples; i++) {
		bool listed = false;

		for (uint64_t b = 0; b < leat_bad_count(feed); b++)
			listed |= leat_bad_at(feed, b)->epoch == trace->sample[i].epoch &&
			          leat_bad_at(feed, b)->position == trace->sample[i].position;
		if (!listed)
			trace->sample[kept++] = trace->sample[i];
	}
	trace->samples = kept;
}

/* The list is in plan order and holds every bad sample once an epoch. */
static void
check_list(const struct leat_feed *feed, uint64_t epochs, bool decodes, bool replaced)
{
	uint64_t expected = 0;

	for (size_t i = 0; i < RECORDS; i++)
		expected += is_bad(i, decodes);
	assert_int_equal(leat_bad_count(feed), expected * epochs);
	assert_null(leat_bad_at(feed, expected * epochs));
	for (uint64_t i = 0; i < expected * epochs; i++) {
		const struct leat_bad *bad = leat_bad_at(feed, i), *last = i ? leat_bad_at(feed, i - 1) : NULL;
		const struct data_place *at = &damaged.place[bad->sample];

		assert_true(is_bad(bad->sample, decodes));
		assert_int_equal(bad->epoch, i / expected);
		if (last && last->epoch == bad->epoch)
			assert_true(last->position < bad->position);
		assert_string_equal(bad->uri, data_path(&damaged, at->file));
		assert_int_equal(bad->offset, at->offset);
		assert_int_equal(bad->replaced, replaced);
		assert_non_null(strstr(bad->reason, has(cut, 4, bad->sample)        ? "cut off"
		                                    : has(headless, 3, bad->sample) ? "record header's checksum"
		                                                                    : "record's checksum"));
	}
}

static void
skips(const char *rest, bool decodes)
{
	struct leat_options options;

	trace_options(&options);
	options.epochs = 2;
	options.seed = 4;
	for (unsigned threads = 1; threads <= 7; threads += 3) {
		struct trace whole, trace = {0};
		struct leat_stats stats;
		struct leat_feed *feed;

		options.threads = threads;
		options.on_error = LEAT_ON_ERROR_FAIL;
		trace_run(&whole, spec_on(decodes ? &clean : &undecoded, rest), &options);
		options.on_error = LEAT_ON_ERROR_SKIP;
		feed = trace_open(spec_on(&damaged, rest), &options);
		trace_take(&trace, feed, 0);
		assert_int_equal(trace.status, LEAT_DONE);
		assert_int_equal(trace.batches, whole.batches);
		check_list(feed, 2, decodes, false);
		drop_listed(&whole, feed);
		trace_compare_samples(&whole, &trace, rest);
		leat_stats(feed, &stats);
		assert_int_equal(stats.bad, leat_bad_count(feed));
		assert_int_equal(stats.samples, 2 * RECORDS - stats.bad);
		leat_close(feed);
		trace_free(&whole);
		trace_free(&trace);
	}
}

static void
skipped_samples_leave_all_others_where_they_are(void **state)
{
	(void)state;
	skips(DIRECT, false);
	skips(DECODED, true);
	skips(RAGGED, true);
	skips(SHUFFLED, true);
	skips(" | shuffle" DIRECT, false);
}

static void
a_batch_with_skipped_samples_comes_shorter(void **state)
{
	struct leat_options options;
	struct trace trace;

	(void)state;
	trace_options(&options);
	options.on_error = LEAT_ON_ERROR_SKIP;
	trace_run(&trace, spec_on(&damaged, DECODED), &options);
	for (size_t b = 0; b < trace.batches; b++) {
		int64_t good = 0;

		for (size_t i = 16 * b; i < 16 * (b + 1); i++)
			good += !is_bad(i, true);
		assert_int_equal(trace.batch[b].count, good);
		assert_int_equal(trace.batch[b].valid, good);
	}
	trace_free(&trace);
}

/* Ranks must never get batches of unequal size. */
static void
skips_over_ranks(const char *rest)
{
	struct leat_options options;
	struct trace joined = {0}, one;
	uint64_t bad = 0;

	trace_options(&options);
	options.on_error = LEAT_ON_ERROR_SKIP;
	trace_run(&one, spec_on(&damaged, rest), &options);
	options.world = 2;
	for (options.rank = 0; options.rank < 2; options.rank++) {
		struct leat_feed *feed = trace_open(spec_on(&damaged, rest), &options);
		struct trace trace = {0};

		trace_take(&trace, feed, 0);
		for (size_t b = 0; b < trace.batches; b++) {
			int64_t good = 0;

			for (size_t i = 0; i < 8; i++)
				good += !is_bad(16 * b + 8 * (size_t)options.rank + i, true);
			assert_int_equal(trace.batch[b].count, 8);
			assert_int_equal(trace.batch[b].valid, good);
		}
		bad += leat_bad_count(feed);
		trace_join(&joined, &trace);
		trace_free(&trace);
		leat_close(feed);
	}
	assert_int_equal(bad, 11);
	trace_compare_samples(&one, &joined, rest);
	trace_free(&joined);
	trace_free(&one);
}

static void
with_ranks_a_skipped_sample_becomes_padding(void **state)
{
	(void)state;
	skips_over_ranks(DECODED);
	skips_over_ranks(RAGGED);
	skips_over_ranks(" | example(label=int64, image=bytes) | decode | batch(16, tail=drop)");
}

/* ---- replace ---- */

static bool
is_listed(const struct leat_feed *feed, const struct trace_sample *sample)
{
	for (uint64_t b = 0; b < leat_bad_count(feed); b++)
		if (leat_bad_at(feed, b)->epoch == sample->epoch && leat_bad_at(feed, b)->position == sample->position)
			return true;
	return false;
}

static void
replaces(const char *rest, bool decodes)
{
	struct leat_options options;
	struct trace whole, first = {0};

	trace_options(&options);
	options.epochs = 2;
	options.seed = 4;
	trace_run(&whole, spec_on(decodes ? &clean : &undecoded, rest), &options);
	options.on_error = LEAT_ON_ERROR_REPLACE;
	for (unsigned threads = 1; threads <= 7; threads += 3) {
		struct trace trace = {0};
		struct leat_feed *feed;

		options.threads = threads;
		feed = trace_open(spec_on(&damaged, rest), &options);
		trace_take(&trace, feed, 0);
		if (trace.status != LEAT_DONE)
			fail_msg("%s: %s", rest, trace.err.text);
		assert_int_equal(trace.samples, whole.samples);
		check_list(feed, 2, decodes, true);
		for (size_t i = 0; i < trace.samples; i++) {
			bool same = memcmp(trace.sample[i].hash, whole.sample[i].hash, LEAT_SHA256_BYTES) == 0;

			assert_int_equal(trace.sample[i].position, whole.sample[i].position);
			assert_int_equal(same, !is_listed(feed, &whole.sample[i]));
		}
		if (first.samples)
			trace_compare(&first, &trace, rest);
		leat_close(feed);
		trace_free(&first);
		first = trace;
	}
	trace_free(&first);
	trace_free(&whole);
}

static void
replacements_are_the_same_for_all_threads(void **state)
{
	(void)state;
	replaces(DIRECT, false);
	replaces(DECODED, true);
	replaces(RAGGED, true);
	replaces(SHUFFLED, true);
}

/* A pipeline that keeps a part of the data (for training) must never see the rest (kept for a test). */
static void
replacements_come_from_the_plan(void **state)
{
	struct leat_options options;
	struct leat_batch *batch;
	struct leat_feed *feed;
	int seen = 0;

	(void)state;
	trace_options(&options);
	options.epochs = 30;
	options.on_error = LEAT_ON_ERROR_REPLACE;
	feed = trace_open(spec_on(&damaged, " | skip(50) | take(10) | example(label=int64) | batch(10)"), &options);
	for (;;) {
		enum leat_status status = leat_next(feed, &batch, NULL);
		struct leat_tensor label;

		if (status == LEAT_END)
			continue;
		if (status == LEAT_DONE)
			break;
		assert_int_equal(status, LEAT_OK);
		assert_int_equal(leat_batch_field(batch, "label", &label, NULL), LEAT_OK);
		for (int i = 0; i < 10; i++, seen++)
			assert_in_range(((int64_t *)label.data)[i], 50, 59);
		leat_release(batch);
	}
	assert_int_equal(seen, 300);
	assert_int_equal(leat_bad_count(feed), 60);
	leat_close(feed);
}

/* ---- how much is too much ---- */

static void
budget(enum leat_on_error on_error, uint64_t max_bad, size_t batches, const char *expected)
{
	for (unsigned threads = 1; threads <= 7; threads += 3) {
		struct leat_options options;
		struct trace trace;

		trace_options(&options);
		options.on_error = on_error;
		options.max_bad = max_bad;
		options.threads = threads;
		options.epochs = 2;
		trace_run(&trace, spec_on(&damaged, DECODED), &options);
		assert_int_equal(trace.batches, batches);
		assert_int_equal(trace.status, expected ? LEAT_LIMIT : LEAT_DONE);
		if (expected && strncmp(trace.err.text, expected, strlen(expected)) != 0)
			fail_msg("%s", trace.err.text);
		trace_free(&trace);
	}
}

static void
a_budget_of_bad_samples_counts_by_epoch(void **state)
{
	(void)state;
	budget(LEAT_ON_ERROR_SKIP, 11, 50, NULL);
	budget(LEAT_ON_ERROR_REPLACE, 11, 50, NULL);
	budget(LEAT_ON_ERROR_SKIP, 10, 20,
	       "epoch 0 has 11 bad samples so far, more than max_bad=10; raise it to at least 11, or ");
	budget(LEAT_ON_ERROR_SKIP, 0, 1,
	       "epoch 0 has 2 bad samples so far, more than max_bad=0; raise it to at least 2, or ");
	budget(LEAT_ON_ERROR_REPLACE, 3, 3,
	       "epoch 0 has 4 bad samples so far, more than max_bad=3; raise it to at least 4, or ");
}

static void
a_data_set_of_bad_samples_ends_all_the_same(void **state)
{
	static const size_t few[] = {40};
	struct leat_options options;
	struct data data;
	struct trace trace;

	(void)state;
	data_make(&data, 1, few, all_cut);
	trace_options(&options);
	options.epochs = 2;
	trace_run(&trace, spec_on(&data, DECODED), &options);
	assert_int_equal(trace.status, LEAT_DATA);
	assert_int_equal(trace.batches, 0);
	trace_free(&trace);

	options.on_error = LEAT_ON_ERROR_SKIP;
	trace_run(&trace, spec_on(&data, DECODED), &options);
	assert_int_equal(trace.status, LEAT_DONE);
	assert_int_equal(trace.batches, 6);
	assert_int_equal(trace.samples, 0);
	trace_free(&trace);

	options.on_error = LEAT_ON_ERROR_REPLACE;
	trace_run(&trace, spec_on(&data, DECODED), &options);
	assert_int_equal(trace.status, LEAT_DATA);
	assert_non_null(strstr(trace.err.text, "(sample 0): bad, and so were all 8 replacements tried; the last: "));
	trace_free(&trace);
	data_remove(&data);
}

/* Whatever the list takes, there is enough left to go back. */
static void
the_list_of_bad_samples_leaves_memory_to_restore(void **state)
{
	static const size_t many[] = {500};
	struct leat_options options;
	struct leat_feed *feed;
	struct trace trace = {0};
	struct data data;
	char *json;

	(void)state;
	data_make(&data, 1, many, NULL);
	for (size_t i = 1; i < 500; i++)
		data_flip_payload(&data, i);
	trace_options(&options);
	options.on_error = LEAT_ON_ERROR_SKIP;
	options.epochs = 0;
	options.memory = trace_least_memory(spec_on(&data, " | batch(10)"), &options);
	feed = trace_open(spec_on(&data, " | batch(10)"), &options);
	assert_int_equal(leat_save(feed, &json, NULL), LEAT_OK);
	trace_take(&trace, feed, 50 * 20);
	assert_true(leat_bad_count(feed) > 0 && leat_bad_count(feed) < 499 * 20);
	trace_free(&trace);
	trace = (struct trace){0};
	if (leat_restore(feed, json, &trace.err) != LEAT_OK)
		fail_msg("%s", trace.err.text);
	trace_take(&trace, feed, 1);
	assert_int_equal(trace.samples, 1);
	free(json);
	trace_free(&trace);
	leat_close(feed);
	data_remove(&data);
}

static void
a_file_that_became_shorter_has_bad_samples(void **state)
{
	struct leat_options options;
	struct leat_feed *feed;
	struct data data;
	struct trace trace = {0};

	(void)state;
	data_copy(&data, &clean);
	trace_options(&options);
	options.on_error = LEAT_ON_ERROR_SKIP;
	feed = trace_open(spec_on(&data, " | batch(10) | prefetch(0)"), &options);
	assert_int_equal(truncate(data_path(&data, 3), (off_t)data.place[300].offset), 0);
	trace_take(&trace, feed, 0);
	assert_int_equal(trace.status, LEAT_DONE);
	assert_int_equal(trace.samples, 300);
	assert_int_equal(leat_bad_count(feed), 100);
	assert_non_null(strstr(leat_bad_at(feed, 99)->reason, "ends before offset"));
	leat_close(feed);
	trace_free(&trace);
	data_remove(&data);
}

static void
make_list_and_image(struct leat_example *example, size_t i)
{
	static float list[4000];
	size_t size;
	unsigned char *jpeg = data_jpeg(20, 20, (unsigned)i, &size);

	for (size_t k = 0; k < 4000; k++)
		list[k] = (float)(i * k);
	leat_example_add_floats(example, "list", list, 4000);
	leat_example_add_bytes(example, "image", jpeg, i % 3 == 0 ? size / 2 : size);
	free(jpeg);
}

/* The list has its place in the batch before the image is found to be bad: a row that is tried again, with
 * another sample or in the large scratch, uses that place again. */
static void
rows_tried_again_take_no_more_room(void **state)
{
	struct leat_options options;
	struct data data;
	struct trace trace;

	(void)state;
	data_make_file(&data, 60, make_list_and_image);
	trace_options(&options);
	options.on_error = LEAT_ON_ERROR_REPLACE;
	trace_run(&trace, spec_on(&data, " | example(list=float[], image=bytes) | decode | resize(9, 9) | batch(60)"),
	          &options);
	if (trace.status != LEAT_DONE)
		fail_msg("%s", trace.err.text);
	assert_int_equal(trace.samples, 60);
	trace_free(&trace);
	data_remove(&data);
}

static enum data_kind
one_boasts(size_t sample)
{
	return sample == 5 ? DATA_BOAST : DATA_GOOD;
}

/* The header of an image may promise anything: on_error decides about it like about other damage. */
static void
an_image_that_claims_too_many_pixels_is_a_bad_sample(void **state)
{
	static const size_t few[] = {20};
	struct leat_options options;
	struct data data;
	struct trace trace;

	(void)state;
	data_make(&data, 1, few, one_boasts);
	trace_options(&options);
	options.on_error = LEAT_ON_ERROR_SKIP;
	trace_run(&trace, spec_on(&data, DECODED), &options);
	if (trace.status != LEAT_DONE)
		fail_msg("%s", trace.err.text);
	assert_int_equal(trace.samples, 19);
	trace_free(&trace);
	data_remove(&data);
}

/* ---- any source, any damage ---- */

enum outcome { REFUSED, ENDED, DONE, OUTCOMES };

/* With one thread and with many: the same samples, or the same sentence. */
static enum outcome
check_spoilt(const char *spec, const struct leat_options *options)
{
	enum outcome outcome = DONE;
	struct leat_options o = *options;
	struct leat_feed *feed;
	struct leat_err err, again;
	struct trace one, many;

	if (leat_open(spec, &o, &feed, &err) != LEAT_OK) {
		assert_true(err.text[0]);
		o.threads = 1;
		assert_int_equal(leat_open(spec, &o, &feed, &again), err.status);
		assert_string_equal(err.text, again.text);
		return REFUSED;
	}
	leat_close(feed);
	o.threads = 1;
	trace_run(&one, spec, &o);
	o.threads = 5;
	trace_run(&many, spec, &o);
	trace_compare(&one, &many, spec);
	if (one.status != LEAT_DONE) {
		assert_true(one.err.text[0]);
		assert_string_equal(one.err.text, many.err.text);
		outcome = ENDED;
	}
	trace_free(&one);
	trace_free(&many);
	return outcome;
}

static void
damage_anywhere_is_the_same_in_every_way(void **state)
{
	static const enum leat_on_error choices[] = {LEAT_ON_ERROR_FAIL, LEAT_ON_ERROR_SKIP, LEAT_ON_ERROR_REPLACE};
	static struct sources whole, spoilt;
	static struct specs specs;
	unsigned seen[OUTCOMES] = {0};
	struct leat_options options;

	(void)state;
	sources_make(&whole);
	sources_make(&spoilt);
	trace_options(&options);
	specs_init(&specs, &whole, 77, 150);
	for (int i = 0; i < SPECS; i++) {
		char spec[sizeof specs.text + 400];

		specs_draw(&specs);
		specs_batch(&specs, 1 + specs_below(&specs, 13));
		sources_elsewhere(&whole, &spoilt, specs.text, spec, sizeof spec);
		options.seed = leat_rng_u64(&specs.rng);
		options.on_error = choices[specs_below(&specs, 3)];
		sources_make_one(&spoilt, specs.source);
		for (unsigned times = 1 + specs_below(&specs, 3); times > 0; times--)
			sources_spoil_one(&spoilt, specs.source, &specs.rng);
		seen[check_spoilt(spec, &options)]++;
	}
	print_message("%u were refused, %u ended early, %u went on\n", seen[REFUSED], seen[ENDED], seen[DONE]);
	assert_true(seen[REFUSED] && seen[ENDED] && seen[DONE]);
	sources_remove(&whole);
	sources_remove(&spoilt);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_first_bad_sample_of_the_plan_ends_the_feed),
		cmocka_unit_test(shuffled_the_first_bad_sample_is_the_same_for_all_threads),
		cmocka_unit_test(skipped_samples_leave_all_others_where_they_are),
		cmocka_unit_test(a_batch_with_skipped_samples_comes_shorter),
		cmocka_unit_test(with_ranks_a_skipped_sample_becomes_padding),
		cmocka_unit_test(replacements_are_the_same_for_all_threads),
		cmocka_unit_test(replacements_come_from_the_plan),
		cmocka_unit_test(a_budget_of_bad_samples_counts_by_epoch),
		cmocka_unit_test(a_data_set_of_bad_samples_ends_all_the_same),
		cmocka_unit_test(the_list_of_bad_samples_leaves_memory_to_restore),
		cmocka_unit_test(a_file_that_became_shorter_has_bad_samples),
		cmocka_unit_test(rows_tried_again_take_no_more_room),
		cmocka_unit_test(an_image_that_claims_too_many_pixels_is_a_bad_sample),
		cmocka_unit_test(damage_anywhere_is_the_same_in_every_way),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
