/* test_bulk.c - rows that are filled in bulk are those that are made one by one
 *
 * The reference is the same pipeline with one more cast, to the type that a field has already: with two stages on a
 * field, samples are made one by one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "feed/bulk.h"
#include "feed/feed.h"
#include "support/source.h"
#include "support/temp.h"
#include "support/trace.h"

enum { ROWS = 700, SIDE = 28, PER_ROW = SIDE * SIDE };

static struct temp temp;

/* An array of any bytes; of more than 1 MiB, it is mapped. */
static void
write_npy(const char *name, const char *dtype, size_t size, const char *shape, size_t elements)
{
	size_t len = 128 + elements * size;
	unsigned char *bytes = calloc(1, len);
	int head;

	assert_non_null(bytes);
	memcpy(bytes, "\x93NUMPY\1\0\x76\0", 10);
	memset(bytes + 10, ' ', 118);
	head = snprintf((char *)bytes + 10, 117, "{'descr': '%s', 'fortran_order': False, 'shape': %s, }", dtype,
	                shape);
	bytes[10 + head] = ' ';
	bytes[127] = '\n';
	for (size_t i = 128; i < len; i++)
		bytes[i] = (unsigned char)((i * 2654435761u) >> 13);
	/* Numbers that floats can be compared by: no NaN. */
	for (size_t i = 128; strcmp(dtype, "<f4") == 0 && i < len; i += 4)
		bytes[i + 3] &= 0x3f;
	temp_write(&temp, name, bytes, len);
	free(bytes);
}

static int
setup(void **state)
{
	static uint16_t tokens[1 << 20];

	(void)state;
	temp_make(&temp);
	write_npy("u8.npy", "|u1", 1, "(700, 28, 28)", (size_t)ROWS * PER_ROW);
	write_npy("large.npy", "|u1", 1, "(700, 56, 56)", (size_t)ROWS * PER_ROW * 4);
	write_npy("rgb.npy", "|u1", 1, "(700, 16, 49, 1)", (size_t)ROWS * PER_ROW);
	write_npy("rgb3.npy", "|u1", 1, "(700, 9, 7, 3)", (size_t)ROWS * 9 * 7 * 3);
	write_npy("f32.npy", "<f4", 4, "(700, 33)", (size_t)ROWS * 33);
	write_npy("y.npy", "<i8", 8, "(700,)", ROWS);
	write_npy("class.npy", "|u1", 1, "(700,)", ROWS);
	write_npy("u8b.npy", "|u1", 1, "(0, 28, 28)", 0);
	write_npy("long-1.npy", "<f4", 4, "(90000, 3)", (size_t)90000 * 3);
	write_npy("long-2.npy", "<f4", 4, "(5000, 3)", (size_t)5000 * 3);
	write_npy("steps-1.npy", "<i8", 8, "(90000,)", 90000);
	write_npy("steps-2.npy", "<i8", 8, "(5000,)", 5000);
	temp_write(&temp, "events.csv", "2,7\n9,8\n300,9\n89952,3\n", 22);
	for (size_t i = 0; i < 1 << 20; i++)
		tokens[i] = (uint16_t)(i * 40503u >> 3);
	temp_write(&temp, "a.bin", tokens, 300001 * 2);
	temp_write(&temp, "b.bin", tokens + 5, 70 * 2);
	temp_write(&temp, "c.bin", tokens + 9, sizeof tokens - 18);
	temp_write(&temp, "wide.tok", tokens, sizeof tokens / 8);
	temp_write(&temp, "odd.tok", (const char *)tokens + 1, sizeof tokens / 8 - 1);
	return 0;
}

static int
teardown(void **state)
{
	(void)state;
	temp_remove(&temp);
	return 0;
}

/* Each `@` of the text is the folder of the data. */
static const char *
in_folder(const char *text, char out[2000])
{
	size_t len = 0;

	for (; *text; text++)
		if (*text == '@')
			len += (size_t)snprintf(out + len, 2000 - len, "%s/", temp.folder);
		else
			out[len++] = *text;
	out[len] = '\0';
	return out;
}

static void
run(const char *spec, const struct leat_options *options, bool in_bulk, struct trace *trace)
{
	struct leat_feed *feed = trace_open(spec, options);

	if ((feed->pipeline.bulk != NULL) != in_bulk)
		fail_msg("made %s: %s", in_bulk ? "one by one" : "in bulk", spec);
	trace_take(trace, feed, 0);
	leat_close(feed);
}

static void
compare(const char *source, const char *ops, const char *again, const char *order)
{
	static const unsigned threads[] = {1, 3};
	char one[2000], text[2000];

	for (int t = 0; t < 2; t++) {
		struct trace bulk = {0}, each = {0};
		struct leat_options options;

		trace_options(&options);
		options.threads = threads[t];
		options.epochs = 2;
		snprintf(text, sizeof text, "%s%s%s", source, ops, order);
		run(in_folder(text, one), &options, true, &bulk);
		snprintf(text, sizeof text, "%s%s%s%s", source, again, ops, order);
		run(in_folder(text, one), &options, false, &each);
		assert_int_equal(bulk.status, LEAT_DONE);
		trace_compare(&bulk, &each, one);
		trace_free(&bulk);
		trace_free(&each);
	}
}

static void
rows_are_the_same_as_one_by_one(void **state)
{
	static const struct {
		const char *source, *ops, *again;
	} of[] = {
		{"npy(x='@u8.npy', y='@y.npy')", "", " | cast(uint8, field=x) | cast(uint8, field=x)"},
		{"npy(x='@u8.npy', y='@y.npy')", " | scale(0.0039, field=x)", " | cast(uint8, field=x)"},
		{"npy(x='@u8.npy', y='@y.npy')", " | cast(float32, field=x)", " | cast(uint8, field=x)"},
		{"npy(x='@large.npy', y='@y.npy')", " | cast(float16, field=x)", " | cast(uint8, field=x)"},
		{"npy(image='@rgb.npy')", " | scale(1/255) | normalize(mean=[0.5], std=[0.25])", " | cast(uint8)"},
		{"npy(image='@rgb3.npy')", " | scale(1/255) | normalize(mean=[0.1, 0.2, 0.3], std=[0.4, 0.5, 0.6])",
	         " | cast(uint8)"},
		{"npy(x='@f32.npy', y='@y.npy')", " | scale(3, field=x)", " | cast(float32, field=x)"},
		{"npy(x='@f32.npy', y='@y.npy', z='@u8.npy')", " | select(z, y) | cast(int32, field=y)",
	         " | cast(int64, field=y)"},
		{"npy(x='@f32.npy', y='@y.npy')", " | rename(label=y) | drop(x)",
	         " | cast(int64, field=y) | cast(int64, field=y)"},
		{"tokens('@*.bin', length=64)", "", " | cast(int32) | cast(int32)"},
		{"tokens('@*.bin', length=61, stride=17, shift=3)", "",
	         " | cast(int32, field=tokens) | cast(int32, field=tokens)"},
		{"npy(x='@u8*.npy', y='@y.npy')", "", " | cast(uint8, field=x) | cast(uint8, field=x)"},
		{"windows('@long-*.npy', length=100, stride=7)", "", " | cast(float32) | cast(float32)"},
		{"windows('@long-*.npy', length=100, stride=7, labels='@steps-*.npy')", " | scale(0.5, field=x)",
	         " | cast(float32, field=x)"},
		{"windows('@long-*.npy', length=9, stride=31, labels='@steps-*.npy', label=all)", "",
	         " | cast(float32, field=x) | cast(float32, field=x)"},
		{"windows('@long-1.npy', length=50, events='@events.csv', offset=-2)", "",
	         " | cast(float32, field=x) | cast(float32, field=x)"},
		{"tokens('@wide.tok', dtype=int32, length=33, header_bytes=4)", "", " | cast(int32) | cast(int32)"},
	};
	static const char *const order[] = {
		" | batch(1)",
		" | batch(32)",
		" | shuffle | batch(100)",
		" | shuffle(window=50) | batch(33)",
		" | shuffle(block=16, window=4) | skip(3) | batch(64)",
		" | repeat(2) | shard(3, 1) | shuffle | batch(300)",
	};

	(void)state;
	for (size_t i = 0; i < sizeof of / sizeof of[0]; i++)
		for (size_t k = 0; k < sizeof order / sizeof order[0]; k++)
			compare(of[i].source, of[i].ops, of[i].again, order[k]);
}

static bool
ended_in_bulk(const struct leat_feed *feed)
{
	for (int i = 0; i < feed->budget.runs; i++)
		if (feed->run[i].bulk)
			return true;
	return false;
}

/* Three epochs. Returns ended_in_bulk. */
static bool
take(const char *text, enum leat_on_error on_error, struct trace *trace)
{
	struct leat_options options;
	struct leat_feed *feed;
	char one[2000];
	bool in_bulk;

	trace_options(&options);
	options.epochs = 3;
	options.threads = 2;
	options.on_error = on_error;
	feed = trace_open(in_folder(text, one), &options);
	trace_take(trace, feed, 0);
	in_bulk = ended_in_bulk(feed);
	leat_close(feed);
	return in_bulk;
}

/* A pipeline with a cache, and the same without it; `each` makes samples one by one. */
static void
compare_cached(const char *before, const char *cache, const char *after, const char *each, const char *order)
{
	struct trace cached = {0}, made = {0};
	char text[2000];

	snprintf(text, sizeof text, "%s%s%s%s", before, each, after, order);
	assert_false(take(text, LEAT_ON_ERROR_FAIL, &made));
	snprintf(text, sizeof text, "%s%s%s%s", before, cache, after, order);
	if (!take(text, LEAT_ON_ERROR_FAIL, &cached) && strstr(cache, "size") == NULL)
		fail_msg("made one by one: %s", text);
	assert_int_equal(cached.status, LEAT_DONE);
	trace_compare(&cached, &made, text);
	trace_free(&cached);
	trace_free(&made);
}

static void
cached_rows_are_the_same_as_one_by_one(void **state)
{
	static const struct {
		const char *before, *after, *each;
	} of[] = {
		{"npy(x='@u8.npy', y='@y.npy')", "", " | cast(uint8, field=x) | cast(uint8, field=x)"},
		{"npy(x='@u8.npy', y='@y.npy')", " | scale(0.0039, field=x)", " | cast(uint8, field=x)"},
		{"npy(image='@rgb3.npy', y='@y.npy') | resize(4, 5)",
	         " | scale(1/255) | normalize(mean=[0.1, 0.2, 0.3], "
	         "std=[0.4, 0.5, 0.6]) | cast(int32, field=y)",
	         ""},
		{"npy(image='@rgb3.npy') | random_crop(5, 4)", "", ""},
		{"npy(x='@f32.npy', y='@y.npy')", " | concat(z=[y, x])", " | cast(float32, field=x)"},
		{"windows('@long-*.npy', length=100, stride=70, labels='@steps-*.npy', label=majority)", "", ""},
	};
	/* Enough for all, and for some. */
	static const char *const cache[] = {" | cache(memory)", " | cache(memory, size=120KiB)"};
	static const char *const order[] = {
		" | batch(1)",
		" | batch(32)",
		" | shuffle | batch(100)",
		" | repeat(2) | shard(3, 1) | shuffle | batch(300)",
	};

	(void)state;
	for (size_t i = 0; i < sizeof of / sizeof of[0]; i++)
		for (size_t k = 0; k < sizeof order / sizeof order[0]; k++)
			for (size_t c = 0; c < sizeof cache / sizeof cache[0]; c++) {
				char frozen[100];

				/* Random ops before a cache draw by sample: a cache that takes none is the reference.
				 */
				snprintf(frozen, sizeof frozen, "%s%s",
				         strstr(of[i].before, "random") ? " | cache(memory, size=1)" : "", of[i].each);
				compare_cached(of[i].before, cache[c], of[i].after, frozen, order[k]);
			}
}

/* Bad samples are never cached: runs with some of them are made one by one, in every epoch. */
static void
bad_samples_beside_cached_rows_are_the_same(void **state)
{
	static const char *const order[] = {" | batch(1)", " | batch(32)", " | shuffle | batch(100)"};
	static const enum leat_on_error on_error[] = {LEAT_ON_ERROR_SKIP, LEAT_ON_ERROR_REPLACE};

	(void)state;
	for (size_t k = 0; k < sizeof order / sizeof order[0]; k++)
		for (size_t e = 0; e < sizeof on_error / sizeof on_error[0]; e++) {
			struct trace cached = {0}, made = {0};
			char text[2000];

			snprintf(text, sizeof text,
			         "npy(y='@class.npy') | cast(int32, field=y) | one_hot(250, field=y)%s", order[k]);
			assert_false(take(text, on_error[e], &made));
			snprintf(text, sizeof text,
			         "npy(y='@class.npy') | cast(int32, field=y) | one_hot(250, field=y) | cache(memory)%s",
			         order[k]);
			if (!take(text, on_error[e], &cached) && k == 0)
				fail_msg("made one by one: %s", text);
			assert_int_equal(cached.status, LEAT_DONE);
			assert_true(on_error[e] != LEAT_ON_ERROR_SKIP || made.samples < 3 * ROWS);
			trace_compare(&cached, &made, text);
			trace_free(&cached);
			trace_free(&made);
		}
}

static void
rows_keep_the_promises_of_sources(void **state)
{
	char one[2000];

	(void)state;
	promise_same(in_folder("npy(x='@u8.npy', y='@y.npy') | take(150) | scale(0.5, field=x)", one));
	promise_same(in_folder("tokens('@*.bin', length=64, shift=1) | take(150)", one));
	promise_same(in_folder("npy(x='@u8.npy', y='@y.npy') | take(150) | cache(memory) | scale(0.5, field=x)", one));
	promise_memory_errors(in_folder("npy(x='@f32.npy') | take(20) | cache(memory) | batch(9)", one), NULL);
	promise_memory_errors(in_folder("tokens('@*.bin', length=64, shift=1) | batch(9)", one), NULL);
	promise_memory_errors(in_folder("npy(x='@u8.npy', y='@y.npy') | scale(0.5, field=x) | batch(9)", one), NULL);
}

static void
other_pipelines_are_made_one_by_one(void **state)
{
	static const char *const specs[] = {
		"npy(x='@f32.npy') | scale(2, field=x) | scale(2, field=x) | cast(float16, field=x) | batch(8)",
		"npy(image='@rgb.npy') | scale(1/255) | random_brightness(max=0.5) | batch(8)",
		"npy(image='@rgb3.npy') | scale(1/255) | layout(chw) | batch(8)",
		"npy(x='@f32.npy') | cache(dir='@kept', size=4MiB) | batch(8)",
		"npy(image='@rgb.npy') | cache(memory) | scale(1/255) | random_brightness(max=0.5) | batch(8)",
		"windows('@long-*.npy', length=100, across=true) | batch(8)",
		"windows('@long-1.npy', length=3, axis=1) | batch(8)",
		"windows('@long-1.npy', length=100, labels='@steps-1.npy', label=majority) | batch(8)",
		"windows('@long-1.npy', length=100, events='@events.csv', offset=-9) | batch(2)",
		"tokens('@wide.tok', dtype=uint32, length=16) | batch(8)",
		"tokens('@odd.tok', length=16, header_bytes=1) | batch(8)",
	};
	struct leat_options options;
	char one[2000];

	(void)state;
	trace_options(&options);
	for (size_t i = 0; i < sizeof specs / sizeof specs[0]; i++) {
		struct leat_feed *feed = trace_open(in_folder(specs[i], one), &options);

		if (feed->pipeline.bulk)
			fail_msg("made in bulk: %s", one);
		leat_close(feed);
	}
}

/* Tokens that are not aligned are those of the same file without its header of one byte. */
static void
tokens_at_odd_offsets_are_the_same(void **state)
{
	struct trace odd = {0}, even = {0};
	struct leat_options options;
	char one[2000];

	(void)state;
	trace_options(&options);
	options.epochs = 1;
	run(in_folder("tokens('@odd.tok', length=16, header_bytes=1) | shuffle | batch(8)", one), &options, false,
	    &odd);
	run(in_folder("tokens('@wide.tok', length=16, header_bytes=2) | shuffle | batch(8)", one), &options, true,
	    &even);
	assert_true(odd.samples > 0);
	trace_compare(&odd, &even, one);
	trace_free(&odd);
	trace_free(&even);
}

/* A file that changes while it is read is noticed before the next batch, as it is one by one. */
static void
changed_files_are_bad_samples(void **state)
{
	static uint16_t tokens[1 << 16];
	struct leat_options options;
	struct leat_feed *feed;
	struct trace trace = {0};
	char one[2000];

	(void)state;
	temp_write(&temp, "changes.tok", tokens, sizeof tokens);
	trace_options(&options);
	options.epochs = 1;
	options.on_error = LEAT_ON_ERROR_SKIP;
	options.max_bad = UINT64_MAX;
	feed = trace_open(in_folder("tokens('@changes.tok', length=64) | batch(64) | prefetch(0)", one), &options);
	assert_non_null(feed->pipeline.bulk);
	trace_take(&trace, feed, 3);
	assert_int_equal(trace.samples, 3 * 64);
	temp_change_now(&temp, "changes.tok");
	trace_take(&trace, feed, 0);
	assert_true(trace.samples < 16 * 64); /* the file has 16 batches */
	trace_free(&trace);
	leat_close(feed);
}

int
main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(rows_are_the_same_as_one_by_one),
		cmocka_unit_test(cached_rows_are_the_same_as_one_by_one),
		cmocka_unit_test(bad_samples_beside_cached_rows_are_the_same),
		cmocka_unit_test(rows_keep_the_promises_of_sources),
		cmocka_unit_test(other_pipelines_are_made_one_by_one),
		cmocka_unit_test(tokens_at_odd_offsets_are_the_same),
		cmocka_unit_test(changed_files_are_bad_samples),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
