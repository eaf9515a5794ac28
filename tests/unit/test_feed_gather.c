/* test_feed_gather.c - small samples far apart are copied with one call for many, and give what reads give
 *
 * process_vm_writev and getrusage are this program's: it counts the calls, forbids them, ends them early, or says that
 * they had to wait. The reference is the same feed on a system that forbids the call. */
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
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "feed/gather.h"
#include "format/example.h"
#include "store/file.h"
#include "support/data.h"
#include "support/source.h"
#include "support/temp.h"
#include "support/trace.h"

static const size_t counts[] = {300, 7, 0, 500, 1, 260};
enum { RECORDS = 1068 };

static struct data data;

DATA_FIXTURE(NULL)

/* ---- the system ---- */

static enum how { WORKS, FORBIDDEN, SHORT, FAULTY, SLOW } system_is;
static atomic_uint calls, pieces;

ssize_t
process_vm_writev(pid_t pid, const struct iovec *from, unsigned long count, const struct iovec *to, unsigned long tos,
                  unsigned long flags)
{
	atomic_fetch_add(&calls, 1);
	atomic_fetch_add(&pieces, (unsigned)count);
	if (system_is == FORBIDDEN || system_is == FAULTY) {
		errno = system_is == FORBIDDEN ? EPERM : EFAULT;
		return -1;
	}
	if (system_is == SLOW)
		nanosleep(&(struct timespec){.tv_nsec = LEAT_GATHER_GRACE + 1000 * 1000}, NULL);
	return syscall(SYS_process_vm_writev, pid, from, system_is == SHORT ? (count + 1) / 2 : count, to, tos, flags);
}

/* Each look finds another major fault if the system is slow. */
int
getrusage(__rusage_who_t who, struct rusage *usage)
{
	static atomic_long faults;
	long result = syscall(SYS_getrusage, who, usage);

	if (system_is == SLOW && (int)who == RUSAGE_THREAD)
		usage->ru_majflt = atomic_fetch_add(&faults, 1);
	return (int)result;
}

static void
set_system(enum how how)
{
	system_is = how;
	atomic_store(&calls, 0);
	atomic_store(&pieces, 0);
}

/* ---- feeds ---- */

static const char *
spec_of(const struct data *of, const char *rest)
{
	static char spec[1000];

	snprintf(spec, sizeof spec, "%s | %s", data_source(of), rest);
	return spec;
}

static uint64_t
gathered(const struct leat_feed *feed)
{
	struct leat_totals totals;

	leat_trace_total(&feed->trace, &totals);
	return totals.gathered;
}

/* Returns how many samples were gathered. */
static uint64_t
run(const char *spec, const struct leat_options *options, enum how how, struct trace *trace)
{
	struct leat_feed *feed;
	uint64_t count;

	set_system(how);
	feed = trace_open(spec, options);
	*trace = (struct trace){0};
	trace_take(trace, feed, 0);
	count = gathered(feed);
	leat_close(feed);
	set_system(WORKS);
	return count;
}

static void
compare(const char *spec, const struct leat_options *options, enum how how)
{
	struct trace a, b;
	uint64_t some = run(spec, options, how, &a);

	if ((some > 0) != (how == WORKS || how == SLOW))
		fail_msg("%llu samples were gathered: %s", (unsigned long long)some, spec);
	assert_int_equal(run(spec, options, FORBIDDEN, &b), 0);
	assert_int_equal(a.status, b.status);
	assert_string_equal(a.err.text, b.err.text);
	trace_compare(&a, &b, spec);
	trace_free(&a);
	trace_free(&b);
}

/* ---- the same samples ---- */

static void
gathered_samples_are_those_that_are_read(void **state)
{
	static const char *const orders[] = {
		"shuffle",
		"shuffle(window=50)",
		"interleave(3)",
		"skip(33) | shuffle | take(800) | repeat(2)",
		"shuffle | shard(2, 1)",
	};
	static const char *const rests[] = {
		"batch(9)",
		"batch(300)",
		"batch(64, tail=wrap)",
		"example(image=bytes, label=int64) | batch(100)",
		"example(image=bytes, label=int64) | decode | resize(8, 8) | batch(256) | prefetch(0)",
		"cache(memory) | batch(200)",
	};
	struct leat_options options;
	char rest[400];

	(void)state;
	trace_options(&options);
	options.epochs = 2;
	for (size_t i = 0; i < sizeof orders / sizeof *orders; i++)
		for (size_t k = 0; k < sizeof rests / sizeof *rests; k++) {
			if (TEST_SLOW && (i + k) % 3 > 0)
				continue;
			options.threads = 1 + (unsigned)(i + k) % 3;
			options.seed = i;
			snprintf(rest, sizeof rest, "%s | %s", orders[i], rests[k]);
			compare(spec_of(&data, rest), &options, WORKS);
		}
}

static void
ranks_gather_their_own_samples(void **state)
{
	struct leat_options options;

	(void)state;
	trace_options(&options);
	options.epochs = 2;
	options.world = 2;
	for (options.rank = 0; options.rank < options.world; options.rank++)
		compare(spec_of(&data, "shuffle | batch(100, tail=exact)"), &options, WORKS);
}

static void
gathering_keeps_the_promises_of_sources(void **state)
{
	char source[400];

	(void)state;
	snprintf(source, sizeof source, "%s | skip(7) | take(400)", data_source(&data));
	promise_same_with(source, "shuffle");
	snprintf(source, sizeof source, "%s | shuffle | batch(9)", data_source(&data));
	promise_memory_errors(source, NULL);
}

/* Of the last 300, some are longer than the window of a run. */
static void
make_uneven(struct leat_example *example, size_t i)
{
	static unsigned char bytes[400000];

	bytes[0] = (unsigned char)i;
	leat_example_add_bytes(example, "image", bytes, i >= 1700 && i % 100 == 50 ? sizeof bytes : i % 60);
}

static void
long_samples_among_small_ones_are_the_same(void **state)
{
	static const char *const rests[] = {"shuffle | batch(11)", "shuffle | example(image=bytes) | batch(100)",
	                                    "shuffle | batch(300)"};
	struct leat_options options;
	struct data uneven;

	(void)state;
	data_make_file(&uneven, 2000, make_uneven);
	trace_options(&options);
	options.epochs = 2;
	for (size_t i = 0; i < sizeof rests / sizeof *rests; i++) {
		options.threads = 1 + (unsigned)i;
		compare(spec_of(&uneven, rests[i]), &options, WORKS);
	}
	data_remove(&uneven);
}

static void
other_feeds_read(void **state)
{
	static const char *const rests[] = {
		"batch(100)",         /* in order */
		"shuffle | batch(4)", /* few at a time */
		"shuffle(block=64, window=4) | batch(100)",
	};
	struct leat_options options;

	(void)state;
	trace_options(&options);
	options.epochs = 1;
	for (size_t i = 0; i < sizeof rests / sizeof *rests; i++) {
		struct trace trace;

		assert_int_equal(run(spec_of(&data, rests[i]), &options, WORKS, &trace), 0);
		assert_int_equal(trace.samples, RECORDS);
		trace_free(&trace);
	}
}

/* ---- calls ---- */

/* One sample, then two, four and so on; all of them, unless the page cache was emptied meanwhile. */
static void
a_run_takes_one_call(void **state)
{
	struct leat_options options;
	struct leat_feed *feed;
	struct trace trace = {0};

	(void)state;
	trace_options(&options);
	options.epochs = 10;
	options.threads = 2;
	feed = trace_open(spec_of(&data, "shuffle | batch(200)"), &options);
	set_system(WORKS);
	trace_take(&trace, feed, 0);
	assert_int_equal(trace.samples, 10 * RECORDS);
	assert_in_range(gathered(feed), RECORDS, 10 * RECORDS);
	assert_true(atomic_load(&pieces) <= gathered(feed));
	assert_in_range(atomic_load(&calls), 1, 10 * RECORDS / 16);
	trace_free(&trace);
	leat_close(feed);
}

static void
a_system_that_forbids_it_is_asked_once(void **state)
{
	struct leat_options options;
	struct leat_feed *feed;
	struct trace trace = {0};

	(void)state;
	trace_options(&options);
	options.epochs = 3;
	options.threads = 1;
	feed = trace_open(spec_of(&data, "shuffle | batch(200)"), &options);
	set_system(FORBIDDEN);
	trace_take(&trace, feed, 0);
	assert_int_equal(trace.status, LEAT_DONE);
	assert_int_equal(trace.samples, 3 * RECORDS);
	assert_int_equal(gathered(feed), 0);
	/* Batches ahead may have been begun before its answer was known. */
	assert_in_range(atomic_load(&calls), 1, 2);
	set_system(WORKS);
	trace_free(&trace);
	leat_close(feed);
}

static void
what_a_call_does_not_copy_is_read(void **state)
{
	struct leat_options options;

	(void)state;
	trace_options(&options);
	options.epochs = 2;
	for (options.threads = 1; options.threads <= 3; options.threads++) {
		struct trace part, read;
		const char *spec = spec_of(&data, "shuffle | batch(100)");

		compare(spec, &options, FAULTY);
		run(spec, &options, SHORT, &part); /* a call for one sample is not short */
		run(spec, &options, FORBIDDEN, &read);
		trace_compare(&part, &read, spec);
		trace_free(&part);
		trace_free(&read);
	}
}

/* The first call takes longer than reads would: the next one comes after a pause of a second or more. */
static void
a_system_that_waits_is_left_alone_for_a_while(void **state)
{
	const char *spec = spec_of(&data, "shuffle | batch(200)");
	struct leat_options options;
	struct trace trace = {0};
	struct leat_feed *feed;
	time_t begin;

	(void)state;
	trace_options(&options);
	options.epochs = 3;
	options.threads = 1;
	compare(spec, &options, SLOW);
	feed = trace_open(spec, &options);
	begin = time(NULL);
	set_system(SLOW);
	trace_take(&trace, feed, 0);
	assert_int_equal(trace.samples, 3 * RECORDS);
	assert_in_range(atomic_load(&calls), 1, 2 + time(NULL) - begin);
	set_system(WORKS);
	trace_free(&trace);
	leat_close(feed);
}

static void
pauses_grow_while_it_does_not_help(void **state)
{
	struct leat_feed *feed;
	struct leat_options options;
	struct leat_run bad = {.items = 1, .waited_ns = UINT64_C(1) << 40};
	struct leat_gathering *g;
	uint64_t last = 0;

	(void)state;
	trace_options(&options);
	feed = trace_open(spec_of(&data, "shuffle | batch(200)"), &options);
	leat_engine_stop(feed);
	g = &feed->fetch.gathering;
	*g = (struct leat_gathering){0};
	for (int i = 0; i < 10; i++) {
		g->until_ns = 0;
		assert_int_equal(leat_gather_most(feed), 1);
		leat_gather_note(feed, &bad);
		assert_int_equal(leat_gather_most(feed), 0);
		assert_in_range(g->pause_ns, last, (uint64_t)LEAT_GATHER_PAUSES * LEAT_GATHER_PAUSE);
		last = g->pause_ns;
	}
	assert_int_equal(last, (uint64_t)LEAT_GATHER_PAUSES * LEAT_GATHER_PAUSE);
	g->until_ns = 0;
	assert_int_equal(leat_gather_most(feed), 1);
	g->opened_ns -= last; /* it went well for long */
	leat_gather_note(feed, &bad);
	assert_int_equal(g->pause_ns, LEAT_GATHER_PAUSE);
	leat_close(feed);
}

/* A few waits are paid for by what was saved. */
static void
rare_waits_do_not_pause_it(void **state)
{
	struct leat_feed *feed;
	struct leat_options options;
	struct leat_run run_of_many = {.items = 256, .gathered = true};

	(void)state;
	trace_options(&options);
	feed = trace_open(spec_of(&data, "shuffle | batch(200)"), &options);
	leat_engine_stop(feed);
	feed->fetch.gathering = (struct leat_gathering){0};
	for (int i = 0; i < 1000; i++) {
		assert_true(leat_gather_most(feed) > 0);
		run_of_many.waited_ns = i % 50 == 0 ? 4 * 1000 * 1000 : 0;
		leat_gather_note(feed, &run_of_many);
	}
	leat_close(feed);
}

/* ---- files that change ---- */

/* A file that loses its end in the middle of a page: what is gone is bad, one by one, and nothing raises SIGBUS. */
static void
a_truncated_file_costs_only_its_own_samples(void **state)
{
	struct leat_options options;

	(void)state;
	trace_options(&options);
	options.epochs = 3;
	options.on_error = LEAT_ON_ERROR_SKIP;
	options.max_bad = UINT64_MAX;
	for (options.threads = 1; options.threads <= 3; options.threads++) {
		struct trace trace = {0};
		struct leat_stats stats;
		struct leat_feed *feed;
		struct data cut;

		data_copy(&cut, &data);
		feed = trace_open(spec_of(&cut, "shuffle | batch(16)"), &options);
		trace_take(&trace, feed, 5);
		assert_true(gathered(feed) > 0);
		assert_int_equal(truncate(data_path(&cut, 3), (off_t)cut.place[500].offset + 20), 0);
		trace_take(&trace, feed, 0);
		assert_int_equal(trace.status, LEAT_DONE);
		leat_stats(feed, &stats);
		assert_int_equal(trace.samples + stats.bad, 3 * RECORDS);
		assert_true(stats.bad > 0);
		for (uint64_t i = 0; i < leat_bad_count(feed); i++)
			assert_in_range(leat_bad_at(feed, i)->sample, 307, 806);
		leat_close(feed);
		trace_free(&trace);
		data_remove(&cut);
	}
}

static void
a_replaced_file_is_noticed(void **state)
{
	struct leat_options options;
	struct trace trace = {0};
	struct leat_feed *feed;
	struct data old, new;
	char path[300];

	(void)state;
	data_copy(&old, &data);
	data_copy(&new, &data);
	trace_options(&options);
	options.epochs = 100;
	options.threads = 2;
	feed = trace_open(spec_of(&old, "shuffle | batch(16)"), &options);
	leat_file_store_of(leat_files_at(feed->pipeline.source.files, 0)->store)->recheck_ns = 0;
	trace_take(&trace, feed, 5);
	assert_true(gathered(feed) > 0);
	snprintf(path, sizeof path, "%s", data_path(&old, 3));
	assert_int_equal(rename(data_path(&new, 3), path), 0);
	trace_take(&trace, feed, 0);
	assert_int_equal(trace.status, LEAT_DATA);
	assert_non_null(strstr(trace.err.text, "part-03.tfrecord"));
	leat_close(feed);
	trace_free(&trace);
	data_remove(&old);
	data_remove(&new);
}

/* ---- the store ---- */

enum { SIZE = 10000 };

static enum leat_status
gather_at(struct leat_files *files, uint64_t offset, size_t length, unsigned char *to)
{
	const struct leat_object *object = leat_files_at(files, 0);
	struct leat_piece piece[] = {{object, 1, 10}, {object, offset, length}};
	uint64_t waited;

	return object->store->kind->gather(piece, 2, to, &waited);
}

static void
pieces_are_of_the_file_as_it_was(void **state)
{
	unsigned char bytes[SIZE], to[SIZE];
	struct leat_stores stores;
	struct leat_files *files;
	struct temp temp;
	struct leat_mem mem;
	const char *path;

	(void)state;
	for (size_t i = 0; i < SIZE; i++)
		bytes[i] = (unsigned char)(i % 251);
	temp_make(&temp);
	temp_write(&temp, "x", (const char *)bytes, SIZE);
	path = temp_path(&temp, "x");
	leat_mem_init(&mem, SIZE_MAX);
	leat_stores_init(&stores, &mem);
	assert_int_equal(leat_files_open(&files, &stores, &path, 1, &mem, NULL), LEAT_OK);
	assert_int_equal(gather_at(files, 4090, 500, to), LEAT_OK);
	assert_memory_equal(to, bytes + 1, 10);
	assert_memory_equal(to + 10, bytes + 4090, 500);
	assert_int_equal(gather_at(files, SIZE - 20, 20, to), LEAT_OK);
	/* Never beyond the end, where other memory is. */
	assert_int_equal(gather_at(files, SIZE - 20, 21, to), LEAT_DATA);
	assert_int_equal(gather_at(files, UINT64_MAX - 5, 10, to), LEAT_DATA);
	assert_int_equal(gather_at(files, 5, SIZE_MAX - 2, to), LEAT_DATA);
	/* The rest of its last page would be zeros. */
	assert_int_equal(truncate(path, 5000), 0);
	assert_int_equal(gather_at(files, 4990, 20, to), LEAT_DATA);
	assert_int_equal(gather_at(files, 9000, 20, to), LEAT_DATA);
	leat_files_close(files);
	leat_stores_close(&stores);
	assert_int_equal(mem.used, 0);
	temp_remove(&temp);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(gathered_samples_are_those_that_are_read),
		cmocka_unit_test(ranks_gather_their_own_samples),
		cmocka_unit_test(gathering_keeps_the_promises_of_sources),
		cmocka_unit_test(long_samples_among_small_ones_are_the_same),
		cmocka_unit_test(other_feeds_read),
		cmocka_unit_test(a_run_takes_one_call),
		cmocka_unit_test(a_system_that_forbids_it_is_asked_once),
		cmocka_unit_test(what_a_call_does_not_copy_is_read),
		cmocka_unit_test(a_system_that_waits_is_left_alone_for_a_while),
		cmocka_unit_test(pauses_grow_while_it_does_not_help),
		cmocka_unit_test(rare_waits_do_not_pause_it),
		cmocka_unit_test(a_truncated_file_costs_only_its_own_samples),
		cmocka_unit_test(a_replaced_file_is_noticed),
		cmocka_unit_test(pieces_are_of_the_file_as_it_was),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
