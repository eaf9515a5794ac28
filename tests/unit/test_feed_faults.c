/* test_feed_faults.c - a system that fails is not bad data: the same bytes come, or an error
 *
 * The system calls of the file store are this program's: it says which of them fail. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "feed/feed.h"
#include "store/file.h"
#include "support/data.h"
#include "support/temp.h"
#include "support/trace.h"

/* ---- system calls that fail ---- */

enum call { READ, OPEN, STAT, CALLS };

/* The next `times` calls fail (-1: all of them); for OPEN and STAT: those of a path that ends with `path`. */
static struct fault {
	atomic_int times;
	int failure;
	const char *path;
	atomic_uint failed;
} fault[CALLS];
static atomic_bool short_reads;

static bool
fails(enum call call, const char *path)
{
	struct fault *f = &fault[call];
	size_t len = path ? strlen(path) : 0, end = f->path ? strlen(f->path) : 0;
	int times = atomic_load(&f->times);

	if (len < end || (end && strcmp(path + len - end, f->path) != 0))
		return false;
	while (times > 0 && !atomic_compare_exchange_weak(&f->times, &times, times - 1))
		;
	if (times == 0)
		return false;
	atomic_fetch_add(&f->failed, 1);
	errno = f->failure;
	return true;
}

static void
make_fail(enum call call, int times, int failure, const char *path)
{
	fault[call].failure = failure;
	fault[call].path = path;
	atomic_store(&fault[call].failed, 0);
	atomic_store(&fault[call].times, times);
}

ssize_t
preadv2(int fd, const struct iovec *iov, int iovs, off_t offset, int flags)
{
	struct iovec some = iovs ? iov[0] : (struct iovec){0};

	if (fails(READ, NULL))
		return -1;
	if (atomic_load(&short_reads) && some.iov_len > 3) {
		some.iov_len = some.iov_len / 2 + 1;
		return syscall(SYS_preadv2, fd, &some, 1, (long)offset, 0L, flags);
	}
	return syscall(SYS_preadv2, fd, iov, iovs, (long)offset, 0L, flags);
}

int
openat(int folder, const char *path, int flags, ...)
{
	if (fails(OPEN, path))
		return -1;
	return (int)syscall(SYS_openat, folder, path, flags, 0666);
}

int
fstatat(int folder, const char *path, struct stat *st, int flags)
{
	if (fails(STAT, path))
		return -1;
	return (int)syscall(SYS_newfstatat, folder, path, st, flags);
}

/* ---- a folder of many files, and records ---- */

enum { FILES = 300 };

static const size_t counts[] = {60, 60};
static struct data data;
static struct temp temp;
static struct leat_options options;
static char text[1000];

static const char *
folder(const char *rest)
{
	snprintf(text, sizeof text, "folder('%s/data')%s", temp.folder, rest);
	return text;
}

static const char *
records(const char *rest)
{
	snprintf(text, sizeof text, "%s%s", data_source(&data), rest);
	return text;
}

static int
setup(void **state)
{
	char name[40], bytes[400];

	(void)state;
	data_make(&data, 2, counts, NULL);
	temp_make(&temp);
	setenv("XDG_CACHE_HOME", temp_path(&temp, "cache"), 1);
	assert_int_equal(mkdir(temp_path(&temp, "data"), 0777), 0);
	assert_int_equal(mkdir(temp_path(&temp, "data/a"), 0777), 0);
	for (int i = 0; i < FILES; i++) {
		snprintf(name, sizeof name, "data/a/%03d.jpg", i);
		memset(bytes, i, sizeof bytes);
		temp_write(&temp, name, bytes, (size_t)(100 + i));
	}
	return 0;
}

static int
teardown(void **state)
{
	(void)state;
	temp_remove(&temp);
	data_remove(&data);
	return 0;
}

static int
no_faults(void **state)
{
	(void)state;
	for (int i = 0; i < CALLS; i++)
		make_fail((enum call)i, 0, 0, NULL);
	atomic_store(&short_reads, false);
	trace_options(&options);
	options.threads = 4;
	options.epochs = 1;
	options.on_error = LEAT_ON_ERROR_SKIP;
	return 0;
}

/* Every open goes through openat, which can be made to fail. */
static struct leat_feed *
open_feed(const char *spec)
{
	struct leat_feed *feed = trace_open(spec, &options);

	atomic_store(&leat_file_store_of(feed->pipeline.source.stores.store[0])->no_cached, true);
	return feed;
}

static void
take_all(struct trace *trace, const char *spec)
{
	struct leat_feed *feed = open_feed(spec);

	*trace = (struct trace){0};
	trace_take(trace, feed, 0);
	leat_close(feed);
}

static void
expect_error(const struct trace *trace, const char *says)
{
	if (trace->status != LEAT_IO || !strstr(trace->err.text, says))
		fail_msg("%s: '%s' does not say '%s'", leat_status_name(trace->status), trace->err.text, says);
}

/* ---- descriptors ---- */

struct outcome {
	enum leat_status status;
	uint64_t bad;
	size_t samples;
	uint8_t hash[LEAT_SHA256_BYTES];
	char text[sizeof((struct leat_err *)0)->text];
};

static void
sum_up(struct outcome *out, struct leat_feed *feed)
{
	struct trace trace = {0};
	struct leat_stats stats;

	memset(out, 0, sizeof *out);
	trace_take(&trace, feed, 0);
	leat_stats(feed, &stats);
	out->status = trace.status;
	out->bad = stats.bad;
	out->samples = trace.samples;
	assert_int_equal(leat_sha256(trace.sample, trace.samples * sizeof *trace.sample, out->hash), 0);
	memcpy(out->text, trace.err.text, sizeof out->text);
	trace_free(&trace);
}

/* Leaves this process `left` descriptors. */
static void
use_up_descriptors(int left)
{
	struct rlimit limit;
	int fd, last[200], used = 0;

	assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
	limit.rlim_cur = 150;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
	while ((fd = dup(2)) >= 0)
		last[used++] = fd;
	assert_int_equal(errno, EMFILE);
	while (left-- > 0)
		close(last[--used]);
}

/* In a process of its own. Negative: all that it wants. */
static void
run_with_descriptors(struct outcome *out, const char *spec, int left)
{
	int ends[2], status;
	pid_t child;

	assert_int_equal(pipe(ends), 0);
	child = fork();
	if (child == 0) {
		struct leat_feed *feed = trace_open(spec, &options);

		if (left >= 0)
			use_up_descriptors(left);
		sum_up(out, feed);
		if (write(ends[1], out, sizeof *out) != (ssize_t)sizeof *out)
			_exit(1);
		_exit(0);
	}
	close(ends[1]);
	assert_int_equal(read(ends[0], out, sizeof *out), sizeof *out);
	close(ends[0]);
	assert_int_equal(waitpid(child, &status, 0), child);
}

static void
without_descriptors_the_bytes_stay_or_the_feed_fails(void **state)
{
	static const int left[] = {0, 1, 2, 5, 50};
	const char *specs[] = {strdup(folder(" | shuffle | batch(16) | prefetch(0)")),
	                       strdup(records(" | shuffle | batch(16) | prefetch(0)"))};

	(void)state;
	for (size_t s = 0; s < 2; s++)
		for (int on_error = LEAT_ON_ERROR_SKIP; on_error <= LEAT_ON_ERROR_REPLACE; on_error++) {
			struct outcome all, some;

			options.on_error = (enum leat_on_error)on_error;
			run_with_descriptors(&all, specs[s], -1);
			assert_int_equal(all.status, LEAT_DONE);
			for (size_t i = 0; i < sizeof left / sizeof *left; i++) {
				run_with_descriptors(&some, specs[s], left[i]);
				assert_int_equal(some.bad, 0);
				if (left[i] == 0) {
					assert_int_equal(some.status, LEAT_IO);
					assert_int_equal(some.samples, 0);
					assert_non_null(strstr(some.text, "(limit 150); raise 'ulimit -n'"));
					continue;
				}
				if (some.status != LEAT_DONE)
					fail_msg("%d left: %s", left[i], some.text);
				assert_memory_equal(some.hash, all.hash, sizeof all.hash);
			}
		}
	free((char *)specs[0]);
	free((char *)specs[1]);
}

/* Others let go of theirs after a while. */
static void
a_feed_waits_for_descriptors(void **state)
{
	static const int failures[] = {EMFILE, ENFILE, ENOMEM};
	struct trace whole, trace;

	(void)state;
	take_all(&whole, folder(" | batch(16) | prefetch(0)"));
	for (size_t i = 0; i < sizeof failures / sizeof *failures; i++) {
		make_fail(OPEN, 5, failures[i], ".jpg");
		take_all(&trace, folder(" | batch(16) | prefetch(0)"));
		assert_int_equal(atomic_load(&fault[OPEN].failed), 5);
		trace_compare(&whole, &trace, "after waiting");
		trace_free(&trace);
	}
	trace_free(&whole);
}

/* A batch of files that cannot be opened waits once, not once for each. */
static void
a_feed_waits_for_descriptors_once(void **state)
{
	struct trace trace;

	(void)state;
	make_fail(OPEN, -1, ENFILE, ".jpg");
	take_all(&trace, folder(" | batch(300) | prefetch(0)"));
	expect_error(&trace, "000.jpg': Too many open files in system");
	assert_in_range(atomic_load(&fault[OPEN].failed), 300, 300 * 6);
	trace_free(&trace);
}

static void
a_feed_that_waits_for_descriptors_is_closed_at_once(void **state)
{
	struct leat_feed *feed = open_feed(folder(" | batch(300) | prefetch(0)"));
	struct leat_batch *batch;
	unsigned failed;

	(void)state;
	make_fail(OPEN, -1, EMFILE, ".jpg");
	while (atomic_load(&fault[OPEN].failed) < 12)
		assert_int_equal(leat_next_within(feed, 1000000, &batch, NULL), LEAT_TIMEOUT);
	failed = atomic_load(&fault[OPEN].failed);
	leat_close(feed);
	/* Reads in the queue may still have their turn, but they don't wait. */
	assert_in_range(atomic_load(&fault[OPEN].failed), failed, failed + 2 * FILES);
}

static void
no_permission_fails_the_feed(void **state)
{
	struct trace trace;

	(void)state;
	make_fail(OPEN, -1, EACCES, "/017.jpg");
	take_all(&trace, folder(" | batch(16) | prefetch(0)"));
	expect_error(&trace, "017.jpg': Permission denied");
	trace_free(&trace);
}

/* ---- devices ---- */

static void
a_device_error_that_passes_costs_nothing(void **state)
{
	static const char *const rests[] = {
		" | shuffle | batch(16) | prefetch(0)",
		" | example(image=bytes) | decode | resize(8, 8) | batch(16) | prefetch(0)"};

	(void)state;
	for (size_t i = 0; i < 2; i++)
		for (int on_error = LEAT_ON_ERROR_SKIP; on_error <= LEAT_ON_ERROR_REPLACE; on_error++)
			for (int times = 1; times < 3; times++) {
				struct trace whole, trace;

				options.on_error = (enum leat_on_error)on_error;
				take_all(&whole, records(rests[i]));
				make_fail(READ, times, EIO, NULL);
				take_all(&trace, records(rests[i]));
				assert_int_equal(atomic_load(&fault[READ].failed), times);
				trace_compare(&whole, &trace, "after a device error");
				trace_free(&whole);
				trace_free(&trace);
			}
}

static void
a_device_error_that_stays_fails_the_feed(void **state)
{
	(void)state;
	for (int on_error = LEAT_ON_ERROR_SKIP; on_error <= LEAT_ON_ERROR_REPLACE; on_error++)
		for (options.threads = 1; options.threads <= 4; options.threads += 3) {
			struct leat_feed *feed;
			struct trace trace = {0};
			struct leat_stats stats;

			options.on_error = (enum leat_on_error)on_error;
			make_fail(READ, 0, EIO, NULL);
			feed = open_feed(records(" | batch(8) | prefetch(0)"));
			trace_take(&trace, feed, 2);
			make_fail(READ, -1, EIO, NULL);
			trace_take(&trace, feed, 0);
			expect_error(&trace, "part-00.tfrecord' at offset");
			expect_error(&trace, "Input/output error");
			leat_stats(feed, &stats);
			assert_int_equal(stats.bad, 0);
			assert_int_equal(trace.samples, 16);
			leat_close(feed);
			trace_free(&trace);
		}
}

static void
short_reads_are_continued(void **state)
{
	struct trace whole, trace;

	(void)state;
	for (int s = 0; s < 2; s++) {
		atomic_store(&short_reads, false);
		take_all(&whole, s ? records(" | batch(16)") : folder(" | batch(16)"));
		atomic_store(&short_reads, true);
		take_all(&trace, s ? records(" | batch(16)") : folder(" | batch(16)"));
		trace_compare(&whole, &trace, "short reads");
		trace_free(&whole);
		trace_free(&trace);
	}
}

/* ---- looking at files ---- */

/* Only a file that is not there is missing. */
static void
a_look_that_fails_does_not_make_a_file_missing(void **state)
{
	static const int failures[] = {EIO, EACCES, ENOMEM};
	struct leat_feed *feed;
	struct leat_err err;
	struct trace trace;

	(void)state;
	temp_write(&temp, "list.csv", "path\ndata/a/000.jpg\ndata/a/001.jpg\n", 35);
	for (int list = 0; list < 2; list++) {
		snprintf(text, sizeof text,
		         list ? "list('%s/list.csv') | batch(300)" : "folder('%s/data') | batch(300)", temp.folder);
		for (size_t i = 0; i < sizeof failures / sizeof *failures; i++) {
			temp_change_now(&temp, list ? "list.csv" : "data/a");
			make_fail(STAT, -1, failures[i], "001.jpg");
			assert_int_equal(leat_open(text, &options, &feed, &err),
			                 failures[i] == ENOMEM ? LEAT_NOMEM : LEAT_IO);
			assert_non_null(strstr(err.text, "001.jpg': "));
		}
		make_fail(STAT, 2, EIO, "001.jpg"); /* passes */
		take_all(&trace, text);
		assert_int_equal(trace.samples, list ? 2 : FILES);
		trace_free(&trace);
		make_fail(STAT, -1, ENOENT, "001.jpg");
		temp_change_now(&temp, list ? "list.csv" : "data/a");
		take_all(&trace, text);
		assert_int_equal(trace.status, LEAT_DONE);
		assert_int_equal(trace.samples, (list ? 2 : FILES) - 1);
		trace_free(&trace);
		make_fail(STAT, 0, 0, NULL);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(without_descriptors_the_bytes_stay_or_the_feed_fails, no_faults),
		cmocka_unit_test_setup(a_feed_waits_for_descriptors, no_faults),
		cmocka_unit_test_setup(a_feed_waits_for_descriptors_once, no_faults),
		cmocka_unit_test_setup(a_feed_that_waits_for_descriptors_is_closed_at_once, no_faults),
		cmocka_unit_test_setup(no_permission_fails_the_feed, no_faults),
		cmocka_unit_test_setup(a_device_error_that_passes_costs_nothing, no_faults),
		cmocka_unit_test_setup(a_device_error_that_stays_fails_the_feed, no_faults),
		cmocka_unit_test_setup(short_reads_are_continued, no_faults),
		cmocka_unit_test_setup(a_look_that_fails_does_not_make_a_file_missing, no_faults),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
