/* test_feed_cache.c - a cache changes the speed and nothing else: in memory or on disk, full, damaged, shared or old */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "feed/feed.h"
#include "support/data.h"
#include "support/trace.h"

#define BEFORE " | shuffle | example(image=bytes, label=int64, tokens=int64[]) | decode | resize(9, 9)"
#define AFTER " | random_flip | scale(1/255) | random_brightness(0.1) | batch(8)"

static const size_t counts[] = {30, 0, 41};
static struct data data;
static char folder[300];

static int
setup(void **state)
{
	(void)state;
	data_make(&data, 3, counts, NULL);
	snprintf(folder, sizeof folder, "%s/cache", data.folder);
	return 0;
}

static int
teardown(void **state)
{
	(void)state;
	data_remove(&data);
	return 0;
}

/* Calls `use` with the path of each file in the cache's folder; gives their number. */
static int
for_each_file(void (*use)(const char *path))
{
	DIR *dir = opendir(folder);
	struct dirent *entry;
	char path[600];
	int files = 0;

	while (dir && (entry = readdir(dir)) != NULL) {
		if (entry->d_name[0] == '.')
			continue;
		snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
		if (use)
			use(path);
		files++;
	}
	if (dir)
		closedir(dir);
	return files;
}

static void
remove_file(const char *path)
{
	unlink(path);
}

static int
empty_folder(void **state)
{
	(void)state;
	for_each_file(remove_file);
	return 0;
}

static void
options_for(struct leat_options *options)
{
	trace_options(options);
	options->epochs = 3;
	options->seed = 5;
}

/* `cache` may be "": the spec then has none. */
static const char *
spec_with(const char *before, const char *cache, const char *after)
{
	static char spec[1500];

	snprintf(spec, sizeof spec, "%s%s%s%s", data_source(&data), before, cache, after);
	return spec;
}

static const char *
on_disk(const char *more)
{
	static char cache[400];

	snprintf(cache, sizeof cache, " | cache(dir='%s'%s)", folder, more);
	return cache;
}

static void
same_with(const char *before, const char *cache, const char *after)
{
	struct leat_options options;
	struct trace without, with;

	options_for(&options);
	trace_run(&without, spec_with(before, "", after), &options);
	assert_int_equal(without.status, LEAT_DONE);
	for (options.threads = 1; options.threads <= 7; options.threads += 3) {
		trace_run(&with, spec_with(before, cache, after), &options);
		trace_compare(&without, &with, spec_with(before, cache, after));
		trace_free(&with);
	}
	trace_free(&without);
}

static void
a_cache_changes_no_byte(void **state)
{
	(void)state;
	same_with(BEFORE, " | cache", AFTER);
	same_with(BEFORE, on_disk(""), AFTER);
	same_with(" | shuffle | example(image=bytes, tokens=int64[])", " | cache", " | decode | batch(8)");
	same_with(" | shuffle", " | cache", " | batch(8)");
	same_with(" | shuffle", on_disk(""), " | batch(8)");
	same_with(" | shuffle | example(image=bytes, tokens=int64[]) | decode", on_disk(""), " | flip | batch(8)");
}

static void
a_full_cache_changes_no_byte(void **state)
{
	(void)state;
	same_with(BEFORE, " | cache(size=75KB)", AFTER);
	same_with(BEFORE, on_disk(", size=90KB"), AFTER);
}

#define FINISHED " | shuffle | example(image=bytes, label=int64, tokens=int64[], box=float[])"

/* ---- finished samples: ragged rows have their places before they are copied ---- */

static void
finished_samples_are_the_same_from_any_cache(void **state)
{
	(void)state;
	same_with(FINISHED, " | cache", " | batch(8)");
	same_with(FINISHED, " | cache(size=100KB)", " | batch(8)"); /* some are not kept */
	same_with(FINISHED, on_disk(""), " | batch(8)");
	for_each_file(remove_file);
	same_with(FINISHED, on_disk(", size=100KB"), " | batch(8)");
	same_with(FINISHED " | decode", " | cache", " | batch(8, tail=pad)"); /* shapes of three dims */
	same_with(FINISHED " | decode", " | cache(size=300KB)", " | batch(8)");
	same_with(FINISHED " | repeat(2)", " | cache", " | batch(8, tail=pad)");
}

static void
bad_samples_are_the_same_with_a_cache(void **state)
{
	static const char *const caches[] = {"", " | cache", " | cache(size=100KB)"};
	static const enum leat_on_error ways[] = {LEAT_ON_ERROR_SKIP, LEAT_ON_ERROR_REPLACE};
	struct leat_options options;
	struct data bad;

	(void)state;
	data_copy(&bad, &data);
	for (size_t i = 3; i < bad.records; i += 9)
		data_flip_payload(&bad, i);
	for (size_t way = 0; way < 2; way++) {
		struct trace trace[3];

		for (size_t i = 0; i < 3; i++) {
			char spec[1000];

			options_for(&options);
			options.on_error = ways[way];
			options.max_bad = 1000;
			options.threads = 1 + (unsigned)i;
			snprintf(spec, sizeof spec, "%s" FINISHED "%s | batch(8)", data_source(&bad), caches[i]);
			trace_run(&trace[i], spec, &options);
			assert_int_equal(trace[i].status, LEAT_DONE);
			trace_compare(&trace[0], &trace[i], spec);
		}
		for (size_t i = 0; i < 3; i++)
			trace_free(&trace[i]);
	}
	data_remove(&bad);
}

/* Whether each row of a ragged column was written where it stays. */
static bool
is_laid(const struct leat_batch *batch, int column)
{
	const struct leat_column_form *form = &batch->form->column[column];
	const struct leat_ragged_row *row = (const void *)(batch->base + form->rows_at);
	const unsigned char *values = batch->base + form->values_at;

	for (int64_t i = 0; i < batch->count; i++)
		if ((const unsigned char *)row[i].at !=
		    values + (size_t)leat_batch_offsets(batch, column)[i] * leat_dtype_size(form->field.dtype))
			return false;
	return true;
}

static void
ragged_rows_of_a_warm_cache_are_copied_once(void **state)
{
	struct leat_options options;
	struct leat_batch *batch;
	struct leat_feed *feed;
	int laid = 0, all = 0;

	(void)state;
	options_for(&options);
	feed = trace_open(spec_with(FINISHED, " | cache", " | batch(8)"), &options);
	for (enum leat_status status = LEAT_OK; status != LEAT_DONE;) {
		status = leat_next(feed, &batch, NULL);
		if (status == LEAT_OK && leat_epoch(feed) == 2 && !batch->last) {
			all++;
			laid += is_laid(batch, 0) && is_laid(batch, 2);
		}
		leat_release(batch);
	}
	assert_true(all > 0);
	assert_int_equal(laid, all);
	leat_close(feed);
}

/* What is drawn before a cache is drawn once; whether it comes from the cache or not does not matter. */
static void
random_ops_before_a_cache_give_the_same_warm_and_cold(void **state)
{
	struct leat_options options;
	struct trace large, small, warm, resumed = {0};
	struct leat_feed *feed;
	char spec[1500], *json;

	(void)state;
	options_for(&options);
	trace_run(&large, spec_with(BEFORE " | random_flip", " | cache", " | batch(8)"), &options);
	trace_run(&small, spec_with(BEFORE " | random_flip", " | cache(size=75KB)", " | batch(8)"), &options);
	trace_compare(&large, &small, "a cache with room for few");
	strcpy(spec, spec_with(BEFORE " | random_flip", on_disk(""), " | batch(8)"));
	trace_run(&warm, spec, &options);
	trace_compare(&large, &warm, "a cold cache on disk");
	trace_free(&warm);
	trace_run(&warm, spec, &options);
	trace_compare(&large, &warm, "a warm cache on disk");

	feed = trace_open(spec, &options);
	trace_take(&resumed, feed, 11);
	assert_int_equal(leat_save(feed, &json, NULL), LEAT_OK);
	leat_close(feed);
	options.seed = 1; /* another cache, until the checkpoint tells the seed */
	feed = trace_open(spec, &options);
	assert_int_equal(leat_restore(feed, json, NULL), LEAT_OK);
	trace_take(&resumed, feed, 0);
	trace_compare(&large, &resumed, "a feed that was resumed");
	leat_close(feed);
	free(json);
	trace_free(&large);
	trace_free(&small);
	trace_free(&warm);
	trace_free(&resumed);
}

static void
a_checkpoint_is_good_with_another_cache_or_none(void **state)
{
	static const char *const caches[] = {"", " | cache", " | cache(size=1MB)"};
	struct leat_options options;
	char *json = NULL;

	(void)state;
	options_for(&options);
	for (size_t i = 0; i < 3; i++) {
		struct leat_feed *feed = trace_open(spec_with(BEFORE, caches[i], AFTER), &options);
		struct leat_err err;
		struct trace trace = {0};

		if (json && leat_restore(feed, json, &err) != LEAT_OK)
			fail_msg("%s", err.text);
		free(json);
		trace_take(&trace, feed, 2);
		assert_int_equal(trace.sample[0].position, 16 * i);
		assert_int_equal(leat_save(feed, &json, NULL), LEAT_OK);
		leat_close(feed);
		trace_free(&trace);
	}
	free(json);
}

/* ---- files ---- */

static void
cut_file(const char *path)
{
	struct stat st;

	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(truncate(path, st.st_size / 2), 0);
}

static void
flip_bits(const char *path)
{
	int fd = open(path, O_RDWR);
	struct stat st;

	assert_true(fd >= 0);
	assert_int_equal(fstat(fd, &st), 0);
	for (off_t at = 4096 + 40; at < st.st_size; at += 777) { /* behind the header: the table, entries */
		unsigned char byte;

		assert_int_equal(pread(fd, &byte, 1, at), 1);
		byte ^= (unsigned char)(1 << at % 8);
		assert_int_equal(pwrite(fd, &byte, 1, at), 1);
	}
	close(fd);
}

static void
flip_header(const char *path)
{
	int fd = open(path, O_RDWR);
	unsigned char byte;

	assert_true(fd >= 0);
	assert_int_equal(pread(fd, &byte, 1, 17), 1);
	byte ^= 1;
	assert_int_equal(pwrite(fd, &byte, 1, 17), 1);
	close(fd);
}

static void
fill_with_nonsense(const char *path)
{
	int fd = open(path, O_WRONLY);
	struct stat st;

	assert_true(fd >= 0);
	assert_int_equal(fstat(fd, &st), 0);
	for (off_t at = 4096; at + 8 <= st.st_size; at += 8) {
		uint64_t word = (uint64_t)at * 0x9e3779b97f4a7c15u;

		assert_int_equal(pwrite(fd, &word, sizeof word, at), sizeof word);
	}
	close(fd);
}

static void
damaged_files_change_no_byte(void **state)
{
	void (*const damage[])(const char *) = {cut_file, flip_bits, flip_header, fill_with_nonsense};

	(void)state;
	for (size_t i = 0; i < sizeof damage / sizeof *damage; i++) {
		same_with(BEFORE, on_disk(", size=1MB"), AFTER);
		assert_int_equal(for_each_file(damage[i]), 1);
		same_with(BEFORE, on_disk(", size=1MB"), AFTER);
		for_each_file(remove_file);
		same_with(FINISHED, on_disk(", size=1MB"), " | batch(8)");
		assert_int_equal(for_each_file(damage[i]), 1);
		same_with(FINISHED, on_disk(", size=1MB"), " | batch(8)");
		for_each_file(remove_file);
	}
}

/* Nobody may do that, and what comes is not promised then: but it lies in the memory there is. */
static void
files_that_change_while_they_are_used_do_no_harm(void **state)
{
	void (*const damage[])(const char *) = {flip_bits, fill_with_nonsense};
	struct leat_options options;

	(void)state;
	options_for(&options);
	options.epochs = 4;
	for (size_t i = 0; i < sizeof damage / sizeof *damage; i++) {
		struct leat_feed *feed =
			trace_open(spec_with(FINISHED, on_disk(", size=1MB"), " | batch(8)"), &options);
		struct trace trace = {0};

		trace_take(&trace, feed, 15);
		assert_int_equal(for_each_file(damage[i]), 1);
		trace_take(&trace, feed, 0);
		assert_true(trace.status == LEAT_DONE || trace.status == LEAT_DATA);
		leat_close(feed);
		trace_free(&trace);
		for_each_file(remove_file);
	}
}

/* Data of the same names, sizes and counts, but other bytes. */
static void
data_that_was_written_again_is_not_taken_from_the_cache(void **state)
{
	struct leat_options options;
	struct trace before, after, fresh;
	struct timespec later[2] = {{.tv_sec = 2000000000}, {.tv_sec = 2000000000}};
	struct data other;
	char spec[800];

	(void)state;
	data_copy(&other, &data);
	options_for(&options);
	snprintf(spec, sizeof spec, "%s%s | batch(8)", data_source(&other), on_disk(""));
	trace_run(&before, spec, &options);
	for (size_t i = 0; i < other.records; i++)
		data_swap_halves(&other, i);
	for (size_t i = 0; i < other.files; i++)
		assert_int_equal(utimensat(AT_FDCWD, data_path(&other, i), later, 0), 0);
	trace_run(&after, spec, &options);
	snprintf(spec, sizeof spec, "%s | batch(8)", data_source(&other));
	trace_run(&fresh, spec, &options);
	assert_int_equal(fresh.status, LEAT_DONE);
	trace_compare(&fresh, &after, "data that changed");
	assert_memory_not_equal(before.sample[0].hash, after.sample[0].hash, 32);
	trace_free(&before);
	trace_free(&after);
	trace_free(&fresh);
	data_remove(&other);
}

/* Several processes fill and read one file at the same time. */
static void
processes_share_a_file(void **state)
{
	enum { PROCESSES = 4 };
	struct leat_options options;
	struct trace without;
	pid_t pid[PROCESSES];

	(void)state;
	options_for(&options);
	trace_run(&without, spec_with(BEFORE, "", AFTER), &options);
	for (int i = 0; i < PROCESSES; i++) {
		pid[i] = fork();
		if (pid[i] == 0) {
			struct trace with;
			bool same;

			trace_run(&with, spec_with(BEFORE, on_disk(""), AFTER), &options);
			same = with.samples == without.samples &&
			       memcmp(with.sample, without.sample, with.samples * sizeof *with.sample) == 0;
			_exit(same ? 0 : 1);
		}
		assert_true(pid[i] > 0);
	}
	for (int i = 0; i < PROCESSES; i++) {
		int status;

		assert_int_equal(waitpid(pid[i], &status, 0), pid[i]);
		assert_int_equal(status, 0);
	}
	assert_int_equal(for_each_file(NULL), 1);
	trace_free(&without);
}

/* ---- memory ---- */

static void
a_cache_stays_within_memory(void **state)
{
	static const char *const caches[] = {" | cache", " | cache(size=100KB)"};
	struct leat_options options;

	(void)state;
	options_for(&options);
	for (size_t i = 0; i < 2; i++)
		for (size_t more = 0; more <= 64 << 20; more = more ? 8 * more : 100000) {
			struct leat_stats stats;
			struct trace trace = {0};
			struct leat_feed *feed;

			options.memory = trace_least_memory(spec_with(BEFORE, caches[i], AFTER), &options) + more;
			feed = trace_open(spec_with(BEFORE, caches[i], AFTER), &options);
			trace_take(&trace, feed, 0);
			assert_int_equal(trace.status, LEAT_DONE);
			leat_stats(feed, &stats);
			assert_true(stats.memory_peak <= options.memory);
			leat_close(feed);
			trace_free(&trace);
		}
}

static void
every_request_may_fail(void **state)
{
	struct leat_options options;

	(void)state;
	options_for(&options);
	for (int disk = 0; disk < 2; disk++)
		for (long n = 0;; n++) {
			struct leat_feed *feed;
			struct leat_err err;
			struct trace trace = {0};
			bool spared;

			if (leat_feed_open(spec_with(BEFORE, disk ? on_disk("") : " | cache", AFTER), &options,
			                   LEAT_BATCH_REQUIRED, n, &feed, &err) != LEAT_OK) {
				assert_true(err.status == LEAT_NOMEM || err.status == LEAT_LIMIT);
				continue;
			}
			trace_take(&trace, feed, 3);
			assert_int_equal(trace.status, LEAT_OK);
			leat_engine_stop(feed);
			spared = atomic_load(&feed->mem.fail_after) > 0;
			leat_close(feed);
			trace_free(&trace);
			if (spared)
				break;
		}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(a_cache_changes_no_byte, empty_folder),
		cmocka_unit_test_teardown(a_full_cache_changes_no_byte, empty_folder),
		cmocka_unit_test_teardown(finished_samples_are_the_same_from_any_cache, empty_folder),
		cmocka_unit_test(bad_samples_are_the_same_with_a_cache),
		cmocka_unit_test(ragged_rows_of_a_warm_cache_are_copied_once),
		cmocka_unit_test_teardown(random_ops_before_a_cache_give_the_same_warm_and_cold, empty_folder),
		cmocka_unit_test_teardown(a_checkpoint_is_good_with_another_cache_or_none, empty_folder),
		cmocka_unit_test_teardown(damaged_files_change_no_byte, empty_folder),
		cmocka_unit_test_teardown(files_that_change_while_they_are_used_do_no_harm, empty_folder),
		cmocka_unit_test_teardown(data_that_was_written_again_is_not_taken_from_the_cache, empty_folder),
		cmocka_unit_test_teardown(processes_share_a_file, empty_folder),
		cmocka_unit_test_teardown(a_cache_stays_within_memory, empty_folder),
		cmocka_unit_test_teardown(every_request_may_fail, empty_folder),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
