/* test_store_feed.c - a feed over a store whose reads always wait: the promises are those of local files
 *
 * The data of every source is mirrored into mem:, and what comes out is compared with what the
 * local files give. Reads complete late, in any order, and fail when they are told to. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/data.h"
#include "support/source.h"
#include "support/specs.h"
#include "support/store_mem.h"
#include "support/trace.h"

enum { RECORDS = 400, SPECS = TEST_SLOW ? 20 : 150 };

#define DECODED " | example(image=bytes, label=int64) | decode | resize(20, 20) | random_flip | batch(16)"

static const size_t counts[] = {150, 100, 0, 150};
static struct sources sources;
static struct data data;

static int
setup(void **state)
{
	(void)state;
	sources_make(&sources);
	sources_leave_local(&sources);
	data_make(&data, 4, counts, NULL);
	return 0;
}

static int
teardown(void **state)
{
	(void)state;
	store_mem_reset();
	sources_remove(&sources);
	data_remove(&data);
	return 0;
}

/* Every test begins with the data as it was, without indexes. */
static int
mirror(void **state)
{
	(void)state;
	store_mem_reset();
	store_mem_mirror(sources.folder);
	store_mem_mirror(data.folder);
	return 0;
}

/* "tfrecord('mem://...')" and what follows; valid until the next call. */
static const char *
spec_on_data(const char *rest)
{
	static char spec[800];
	char local[800];

	snprintf(local, sizeof(local), "%s%s", data_source(&data), rest);
	store_mem_spec(data.folder, local, spec, sizeof(spec));
	return spec;
}

static const char *
uri_of(size_t file)
{
	static char uri[400];

	snprintf(uri, sizeof(uri), "mem://%s", data_path(&data, file));
	return uri;
}

/* Compressed files and tables that are not kept can't be shuffled in any order. */
static const char *
shuffle_for(const struct sources_one *one)
{
	return strstr(one->name, "compressed") || strstr(one->spec, "keep=never") ? "shuffle(13)" : "shuffle";
}

/* ---- the same bytes ---- */

static void
every_source_gives_the_bytes_of_local_files(void **state)
{
	static const struct store_mem_settings settings[] = {{0}, {.shuffle = 1}, {.latency_ns = 50000, .shuffle = 2}};
	static const char *const prefetch[] = {"", " | prefetch(0)", " | prefetch(3)"};
	struct leat_options options;

	(void)state;
	trace_options(&options);
	options.epochs = 2;
	options.seed = 5;
	for (size_t i = 0; i < sources.count; i++)
		for (size_t k = 0; k < 3; k++) {
			uint64_t before = store_mem_counts().submitted;
			struct trace local, remote;
			char here[800], there[800];

			snprintf(here, sizeof(here), "%s | %s | batch(7)%s", sources.one[i].spec,
			         shuffle_for(&sources.one[i]), prefetch[k]);
			store_mem_spec(sources.folder, here, there, sizeof(there));
			store_mem_set(&settings[k]);
			options.threads = 1 + 3 * (unsigned)k;
			trace_run(&local, here, &options);
			trace_run(&remote, there, &options);
			assert_int_equal(local.status, LEAT_DONE);
			trace_compare(&local, &remote, there);
			assert_true(store_mem_counts().submitted > before);
			trace_free(&local);
			trace_free(&remote);
		}
	assert_int_equal(store_mem_counts().in_flight, 0);
}

static void
every_source_keeps_its_promises(void **state)
{
	char spec[800];

	(void)state;
	store_mem_set(&(struct store_mem_settings){.shuffle = 3});
	for (size_t i = 0; i < sources.count; i++) {
		store_mem_spec(sources.folder, sources.one[i].spec, spec, sizeof(spec));
		promise_same_with(spec, shuffle_for(&sources.one[i]));
	}
}

static void
drawn_pipelines_give_the_bytes_of_local_files(void **state)
{
	static struct specs specs;
	struct leat_options options;

	(void)state;
	trace_options(&options);
	options.memory = (size_t)256 << 20; /* each of up to 7 threads may have a decoder of Parquet */
	specs_init(&specs, &sources, 7, 200);
	for (uint64_t i = 0; i < SPECS; i++) {
		char there[sizeof(specs.text) + 64];
		struct trace local, remote;

		specs_draw(&specs);
		specs_batch(&specs, 1 + specs_below(&specs, 13));
		store_mem_spec(sources.folder, specs.text, there, sizeof(there));
		store_mem_set(&(struct store_mem_settings){.shuffle = i % 3, .latency_ns = i % 2 * 20000});
		options.seed = i;
		options.threads = 1 + specs_below(&specs, 7);
		trace_run(&local, specs.text, &options);
		options.threads = 1 + specs_below(&specs, 7);
		trace_run(&remote, there, &options);
		trace_compare(&local, &remote, there);
		trace_free(&local);
		trace_free(&remote);
	}
}

/* The data is the same data, wherever it is. */
static void
a_checkpoint_of_local_files_is_resumed_elsewhere(void **state)
{
	struct leat_options options;

	(void)state;
	trace_options(&options);
	for (size_t i = 0; i < sources.count; i++) {
		struct trace all, resumed = {0};
		struct leat_feed *feed;
		struct leat_err err;
		char here[800], there[800], *json;

		snprintf(here, sizeof(here), "%s | %s | batch(5)", sources.one[i].spec, shuffle_for(&sources.one[i]));
		store_mem_spec(sources.folder, here, there, sizeof(there));
		trace_run(&all, here, &options);
		feed = trace_open(here, &options);
		trace_take(&resumed, feed, 3);
		assert_int_equal(leat_save(feed, &json, NULL), LEAT_OK);
		leat_close(feed);
		feed = trace_open(there, &options);
		if (leat_restore(feed, json, &err) != LEAT_OK)
			fail_msg("%s: %s", there, err.text);
		trace_take(&resumed, feed, 0);
		leat_close(feed);
		trace_compare_samples(&all, &resumed, there);
		trace_free(&all);
		trace_free(&resumed);
		free(json);
	}
}

/* ---- what is kept beside the data ---- */

static void
indexes_are_kept_in_the_store_and_belong_to_the_data(void **state)
{
	struct trace first, second, third;
	struct leat_options options;
	uint64_t bytes;

	(void)state;
	trace_options(&options);
	trace_run(&first, spec_on_data(" | batch(16)"), &options);
	assert_int_equal(store_mem_count(".leatidx"), 3); /* not of the file that is empty */
	bytes = store_mem_counts().bytes;
	trace_run(&second, spec_on_data(" | batch(16)"), &options);
	trace_compare(&first, &second, "with an index");
	assert_true(store_mem_counts().bytes - bytes < bytes); /* the files were not gone through again */
	store_mem_remove(uri_of(3));
	trace_run(&third, spec_on_data(" | batch(16)"), &options);
	assert_int_equal(third.samples, 250);
	trace_free(&first);
	trace_free(&second);
	trace_free(&third);
}

/* A store without times of folders is listed at each open. */
static void
a_new_file_in_a_folder_is_found(void **state)
{
	struct leat_options options;
	size_t folder = 0, size;
	unsigned char *jpeg = data_jpeg(8, 8, 1, &size);
	struct trace trace;
	char uri[400], spec[800], local[800];

	(void)state;
	trace_options(&options);
	while (strcmp(sources.one[folder].name, "folder") != 0)
		folder++;
	snprintf(local, sizeof(local), "%s | batch(7)", sources.one[folder].spec);
	store_mem_spec(sources.folder, local, spec, sizeof(spec));
	for (size_t i = 0; i < 3; i++) {
		trace_run(&trace, spec, &options);
		assert_int_equal(trace.samples, SOURCES_SAMPLES + i);
		trace_free(&trace);
		snprintf(uri, sizeof(uri), "mem://%s/class-3/new-%zu.jpg", sources.one[folder].folder, i);
		store_mem_put(uri, jpeg, size);
	}
	free(jpeg);
}

/* ---- memory ---- */

static void
the_least_memory_is_enough(void **state)
{
	static const char *const rests[] = {" | batch(16)", " | shuffle | batch(16)", DECODED};
	struct leat_options options;

	(void)state;
	trace_options(&options);
	store_mem_set(&(struct store_mem_settings){.shuffle = 4, .latency_ns = 20000});
	for (size_t i = 0; i < 3; i++)
		for (options.threads = 1; options.threads <= 7; options.threads += 3) {
			struct trace much, least;
			struct leat_stats stats;
			struct leat_feed *feed;

			options.memory = (size_t)64 << 20;
			trace_run(&much, spec_on_data(rests[i]), &options);
			options.memory = trace_least_memory(spec_on_data(rests[i]), &options);
			feed = trace_open(spec_on_data(rests[i]), &options);
			least = (struct trace){0};
			trace_take(&least, feed, 0);
			leat_stats(feed, &stats);
			assert_true(stats.memory_peak <= options.memory);
			leat_close(feed);
			trace_compare(&much, &least, rests[i]);
			trace_free(&much);
			trace_free(&least);
		}
}

static void
no_memory_is_an_error(void **state)
{
	(void)state;
	promise_memory_errors(spec_on_data(" | take(20) | batch(4)"), NULL);
}

/* ---- reads that fail ---- */

static const size_t failing[] = {0, 17, 18, 149, 150, 301, 399};

static bool
fails(size_t sample)
{
	for (size_t i = 0; i < sizeof(failing) / sizeof(*failing); i++)
		if (failing[i] == sample)
			return true;
	return false;
}

/* After the index was made, which reads everything. */
static void
make_reads_fail(int times, enum leat_status status)
{
	struct leat_options options;

	trace_options(&options);
	leat_close(trace_open(spec_on_data(" | batch(16)"), &options));
	for (size_t i = 0; i < sizeof(failing) / sizeof(*failing); i++) {
		const struct data_place *place = &data.place[failing[i]];

		store_mem_fail(uri_of(place->file), place->offset + 20, place->offset + 21, times, status);
	}
}

static void
samples_that_cannot_be_read_are_skipped_and_others_stay(void **state)
{
	struct leat_options options;

	(void)state;
	make_reads_fail(STORE_MEM_ALWAYS, LEAT_DATA);
	trace_options(&options);
	options.on_error = LEAT_ON_ERROR_SKIP;
	for (options.threads = 1; options.threads <= 7; options.threads += 3)
		for (int decode = 0; decode < 2; decode++) {
			const char *rest = decode ? DECODED : " | batch(16)";
			struct trace whole, trace = {0};
			struct leat_feed *feed;
			size_t kept = 0;
			char here[800];

			store_mem_set(&(struct store_mem_settings){.shuffle = options.threads});
			snprintf(here, sizeof(here), "%s%s", data_source(&data), rest);
			trace_run(&whole, here, &options);
			feed = trace_open(spec_on_data(rest), &options);
			trace_take(&trace, feed, 0);
			assert_int_equal(trace.status, LEAT_DONE);
			for (size_t i = 0; i < whole.samples; i++) /* in order: position i is sample i */
				if (!fails(i))
					whole.sample[kept++] = whole.sample[i];
			whole.samples = kept;
			trace_compare_samples(&whole, &trace, rest);
			assert_int_equal(leat_bad_count(feed), RECORDS - kept);
			for (uint64_t i = 0; i < leat_bad_count(feed); i++) {
				const struct leat_bad *bad = leat_bad_at(feed, i);

				assert_int_equal(bad->sample, failing[i]);
				assert_string_equal(bad->uri, uri_of(data.place[failing[i]].file));
				assert_non_null(strstr(bad->reason, "the connection was reset"));
			}
			leat_close(feed);
			trace_free(&whole);
			trace_free(&trace);
		}
}

static void
replacements_are_the_same_for_all_threads(void **state)
{
	struct leat_options options;
	struct trace first = {0};

	(void)state;
	make_reads_fail(STORE_MEM_ALWAYS, LEAT_DATA);
	trace_options(&options);
	options.on_error = LEAT_ON_ERROR_REPLACE;
	options.seed = 4;
	for (options.threads = 1; options.threads <= 7; options.threads += 3) {
		struct trace trace;

		store_mem_set(&(struct store_mem_settings){.shuffle = options.threads, .latency_ns = 20000});
		trace_run(&trace, spec_on_data(" | shuffle" DECODED), &options);
		assert_int_equal(trace.status, LEAT_DONE);
		assert_int_equal(trace.samples, RECORDS);
		if (first.samples)
			trace_compare(&first, &trace, "replaced");
		trace_free(&first);
		first = trace;
	}
	trace_free(&first);
}

static void
the_first_failing_read_of_the_plan_ends_the_feed(void **state)
{
	struct leat_options options;
	char text[1024] = "";

	(void)state;
	make_reads_fail(STORE_MEM_ALWAYS, LEAT_IO);
	trace_options(&options);
	options.seed = 6;
	for (options.threads = 1; options.threads <= 9; options.threads++) {
		struct trace trace;

		options.on_error = (enum leat_on_error)(options.threads % 3); /* a connection is no sample */
		store_mem_set(&(struct store_mem_settings){.shuffle = options.threads});
		trace_run(&trace, spec_on_data(" | shuffle" DECODED " | prefetch(7)"), &options);
		assert_int_equal(trace.status, LEAT_IO);
		assert_non_null(strstr(trace.err.text, "the connection was reset"));
		if (*text)
			assert_string_equal(trace.err.text, text);
		strcpy(text, trace.err.text);
		trace_free(&trace);
	}
}

/* Each of these reads fails once: whoever asks again gets the bytes. */
static void
a_read_that_is_reset_once_costs_no_sample(void **state)
{
	struct leat_options options;

	(void)state;
	trace_options(&options);
	for (options.threads = 1; options.threads <= 7; options.threads += 3) {
		struct trace whole, trace;
		char here[800];

		make_reads_fail(1, LEAT_IO);
		snprintf(here, sizeof(here), "%s | shuffle | batch(16)", data_source(&data));
		trace_run(&whole, here, &options);
		trace_run(&trace, spec_on_data(" | shuffle | batch(16)"), &options);
		trace_compare(&whole, &trace, "after resets");
		trace_free(&whole);
		trace_free(&trace);
	}
	assert_true(store_mem_counts().failed >= 3 * sizeof(failing) / sizeof(*failing) - 3); /* neighbours share one */
}

/* What is open is cut off, replaced, taken away. */
static void
changes_below_an_open_feed_are_errors_that_name_the_object(void **state)
{
	static const char *const says[] = {"ends at offset 100,",
	                                   "has changed since it was opened; open the feed again",
	                                   "there is no such object"};
	struct leat_options options;

	(void)state;
	trace_options(&options);
	for (int change = 0; change < 3; change++) {
		struct trace trace = {0};
		struct leat_feed *feed;
		size_t len = (size_t)(data.place[399].offset + data.place[399].length);
		char *zeros = calloc(1, len);

		mirror(state);
		feed = trace_open(spec_on_data(" | skip(250) | batch(16) | prefetch(0)"), &options);
		if (change == 0)
			store_mem_truncate(uri_of(3), 100);
		else if (change == 1)
			store_mem_put(uri_of(3), zeros, len);
		else
			store_mem_remove(uri_of(3));
		trace_take(&trace, feed, 0);
		assert_int_equal(trace.status, LEAT_DATA);
		if (!strstr(trace.err.text, says[change]) || !strstr(trace.err.text, uri_of(3)))
			fail_msg("'%s' does not say '%s'", trace.err.text, says[change]);
		assert_int_equal(trace.batches, 0);
		leat_close(feed);
		trace_free(&trace);
		free(zeros);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(every_source_gives_the_bytes_of_local_files, mirror),
		cmocka_unit_test_setup(every_source_keeps_its_promises, mirror),
		cmocka_unit_test_setup(drawn_pipelines_give_the_bytes_of_local_files, mirror),
		cmocka_unit_test_setup(a_checkpoint_of_local_files_is_resumed_elsewhere, mirror),
		cmocka_unit_test_setup(indexes_are_kept_in_the_store_and_belong_to_the_data, mirror),
		cmocka_unit_test_setup(a_new_file_in_a_folder_is_found, mirror),
		cmocka_unit_test_setup(the_least_memory_is_enough, mirror),
		cmocka_unit_test_setup(no_memory_is_an_error, mirror),
		cmocka_unit_test_setup(samples_that_cannot_be_read_are_skipped_and_others_stay, mirror),
		cmocka_unit_test_setup(replacements_are_the_same_for_all_threads, mirror),
		cmocka_unit_test_setup(the_first_failing_read_of_the_plan_ends_the_feed, mirror),
		cmocka_unit_test_setup(a_read_that_is_reset_once_costs_no_sample, mirror),
		cmocka_unit_test_setup(changes_below_an_open_feed_are_errors_that_name_the_object, mirror),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
