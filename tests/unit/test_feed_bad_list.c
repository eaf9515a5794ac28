/* test_feed_bad_list.c - the list of bad samples is the same for any threads and memory, and its limits are those
 * stated
 *
 * All samples but the first are bad: more than the list holds, and more in a batch than it keeps reasons of. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "feed/feed.h"
#include "support/data.h"
#include "support/trace.h"

enum { RECORDS = 500, EPOCHS = 4, BAD = (RECORDS - 1) * EPOCHS };

static const size_t counts[] = {200, 300};
static struct data data;

/* What the callback got, and the list, as text. */
struct told {
	uint64_t count, own_reasons;
	char *all, *listed;
	size_t all_len;
	uint64_t list_count;
	FILE *out;
};

static int
setup(void **state)
{
	(void)state;
	data_make(&data, 2, counts, NULL);
	for (size_t i = 1; i < RECORDS; i++)
		data_flip_payload(&data, i);
	return 0;
}

static int
teardown(void **state)
{
	(void)state;
	data_remove(&data);
	return 0;
}

static void
print(FILE *out, const struct leat_bad *bad)
{
	fprintf(out, "%" PRIu64 " %" PRIu64 " %" PRIu64 " %s %" PRIu64 " %d %d %s\n", bad->epoch, bad->position,
	        bad->sample, bad->uri, bad->offset, bad->replaced, (int)bad->status, bad->reason);
}

static void
add(void *arg, const struct leat_bad *bad)
{
	struct told *told = arg;

	print(told->out, bad);
	told->count++;
	told->own_reasons += strstr(bad->reason, "checksum") != NULL;
	assert_int_equal(bad->status, LEAT_DATA);
}

static void
run(struct told *told, const char *rest, struct leat_options *options)
{
	struct trace trace = {0};
	struct leat_stats stats;
	struct leat_feed *feed;
	char spec[800];
	size_t len;
	FILE *list;

	*told = (struct told){0};
	told->out = open_memstream(&told->all, &told->all_len);
	options->bad = add;
	options->bad_arg = told;
	snprintf(spec, sizeof spec, "%s%s", data_source(&data), rest);
	feed = trace_open(spec, options);
	trace_take(&trace, feed, 0);
	if (trace.status != LEAT_DONE)
		fail_msg("%s", trace.err.text);
	leat_stats(feed, &stats);
	assert_int_equal(stats.bad, BAD);
	assert_int_equal(told->count, BAD);
	list = open_memstream(&told->listed, &len);
	told->list_count = leat_bad_count(feed);
	for (uint64_t i = 0; i < told->list_count; i++)
		print(list, leat_bad_at(feed, i));
	assert_null(leat_bad_at(feed, told->list_count));
	fclose(list);
	fclose(told->out);
	leat_close(feed);
	trace_free(&trace);
}

static void
told_free(struct told *told)
{
	free(told->all);
	free(told->listed);
}

static void
the_list_is_the_same_for_any_threads_and_memory(void **state)
{
	static const char *const rests[] = {" | shuffle | batch(10)", " | shuffle | batch(100)",
	                                    " | shuffle | example(image=bytes) | batch(100)"};

	(void)state;
	for (size_t i = 0; i < sizeof rests / sizeof *rests; i++) {
		struct told first = {0};
		struct leat_options options;
		char spec[800];

		snprintf(spec, sizeof spec, "%s%s", data_source(&data), rests[i]);
		for (unsigned n = 0; n < 16; n++) {
			struct told told;

			trace_options(&options);
			options.on_error = LEAT_ON_ERROR_SKIP;
			options.epochs = EPOCHS;
			options.threads = 1 + n % 4;
			options.memory = n % 8 < 4 ? trace_least_memory(spec, &options) : (size_t)256 << 20;
			run(&told, rests[i], &options);
			if (!n) {
				first = told;
				continue;
			}
			assert_string_equal(first.all, told.all);
			assert_string_equal(first.listed, told.listed);
			told_free(&told);
		}
		/* The first ones of the plan, as many as fit. */
		assert_in_range(first.list_count, 400, LEAT_BAD_LISTED);
		assert_memory_equal(first.listed, first.all, strlen(first.listed));
		assert_int_equal(first.own_reasons, i == 0 ? BAD : 5 * EPOCHS * LEAT_BAD_REASONS);
		told_free(&first);
	}
}

/* Lists are limited by their number, too: these share their texts. */
static void
a_list_holds_a_thousand(void **state)
{
	struct leat_options options;
	struct leat_feed *feed;
	struct trace trace = {0};
	struct leat_stats stats;
	char spec[800];

	(void)state;
	trace_options(&options);
	options.on_error = LEAT_ON_ERROR_SKIP;
	snprintf(spec, sizeof spec, "%s | take(2) | skip(1) | repeat(3000) | batch(10)", data_source(&data));
	feed = trace_open(spec, &options);
	trace_take(&trace, feed, 0);
	leat_stats(feed, &stats);
	assert_int_equal(stats.bad, 3000);
	assert_int_equal(leat_bad_count(feed), 1000);
	for (uint64_t i = 0; i < 1000; i++)
		assert_int_equal(leat_bad_at(feed, i)->position, i);
	leat_close(feed);
	trace_free(&trace);
}

/* Bad samples cost a feed that fails at the first one nothing. */
static void
the_least_memory_grows_little(void **state)
{
	struct leat_options options;
	char spec[800];
	size_t fail, skip;

	(void)state;
	trace_options(&options);
	options.threads = 1;
	snprintf(spec, sizeof spec, "%s | batch(32)", data_source(&data));
	fail = trace_least_memory(spec, &options);
	options.on_error = LEAT_ON_ERROR_SKIP;
	skip = trace_least_memory(spec, &options);
	assert_in_range(skip, fail, fail + 100 * 1024);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_list_is_the_same_for_any_threads_and_memory),
		cmocka_unit_test(a_list_holds_a_thousand),
		cmocka_unit_test(the_least_memory_grows_little),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
