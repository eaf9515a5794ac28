/* test_feed_opening.c - memory= holds from the first byte: opening takes no more, even if the feed is refused
 *
 * A child opens the feed with RLIMIT_DATA, which counts all private memory of a process, at memory= and an allowance.
 * An allocation beyond fails, so that the outcome depends on no timing. LEAT_LARGE=1 in the environment makes the data
 * ten times as large. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/size.h"
#include "format/record.h"
#include "leat.h"
#include "support/temp.h"
#include "support/trace.h"

enum { ALLOWANCE = 16 << 20, STACK = 1 << 20, MAX_SPEC = 800 };

static struct temp temp;

static size_t
scaled(size_t n)
{
	return getenv("LEAT_LARGE") ? 10 * n : n;
}

static int
set_up(void **state)
{
	(void)state;
	temp_make(&temp);
	return 0;
}

static int
tear_down(void **state)
{
	(void)state;
	temp_remove(&temp);
	return 0;
}

/* ---- a child with a limit ---- */

struct outcome {
	enum leat_status status;
	struct leat_err err;
};

static size_t
private_bytes(void)
{
	FILE *file = fopen("/proc/self/status", "r");
	char line[200];
	size_t kib = 0;

	while (file && fgets(line, sizeof line, file))
		if (sscanf(line, "VmData: %zu", &kib) == 1)
			break;
	if (file)
		fclose(file);
	return kib * 1024;
}

static void
limit_private_bytes(size_t more)
{
	struct rlimit limit;
	pthread_attr_t attr;

	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, STACK); /* a stack counts whole */
	pthread_setattr_default_np(&attr);
	getrlimit(RLIMIT_DATA, &limit);
	limit.rlim_cur = private_bytes() + more;
	if (!TEST_SLOW) /* a sanitizer has memory of its own */
		setrlimit(RLIMIT_DATA, &limit);
}

/* Opens the feed and takes a batch. */
static void
run_in_child(const char *spec, const struct leat_options *options, struct outcome *outcome)
{
	struct leat_batch *batch = NULL;
	struct leat_feed *feed;

	limit_private_bytes(options->memory + ALLOWANCE);
	outcome->status = leat_open(spec, options, &feed, &outcome->err);
	if (outcome->status == LEAT_OK)
		outcome->status = leat_next(feed, &batch, &outcome->err);
}

static struct outcome
open_with(const char *spec, size_t memory)
{
	struct leat_options options;
	struct outcome outcome;
	int pipes[2], status;
	pid_t child;

	trace_options(&options);
	options.threads = 1;
	options.memory = memory;
	options.on_error = LEAT_ON_ERROR_SKIP;
	assert_int_equal(pipe(pipes), 0);
	child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		memset(&outcome, 0, sizeof outcome);
		run_in_child(spec, &options, &outcome);
		_exit(write(pipes[1], &outcome, sizeof outcome) == sizeof outcome ? 0 : 1);
	}
	close(pipes[1]);
	assert_int_equal(read(pipes[0], &outcome, sizeof outcome), sizeof outcome);
	close(pipes[0]);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	return outcome;
}

static void
forget_index(const char *name)
{
	char index[300];

	snprintf(index, sizeof index, ".%s.leatidx", name);
	unlink(temp_path(&temp, index));
}

/* The minimum that an error names. */
static size_t
least_of(const struct outcome *outcome)
{
	const char *number = strstr(outcome->err.text, "needs at least ");
	uint64_t least;
	char size[64];

	if (outcome->status != LEAT_LIMIT || !number)
		fail_msg("expected a minimum, not %d: %s", (int)outcome->status, outcome->err.text);
	number = strchr(number, '(') + 1;
	snprintf(size, sizeof size, "%.*s", (int)strcspn(number, ")"), number);
	assert_int_equal(leat_parse_size(size, &least, NULL), LEAT_OK);
	return (size_t)least;
}

/* Little memory is refused, the memory named then is enough, and less than that is not: with the index of `name` still
 * to be made. With ten times the data, small blocks alone exceed what 1 MiB lets opening take, and no minimum is known.
 */
static void
check_opening(const char *spec, const char *name, size_t most)
{
	struct outcome outcome;
	size_t least;

	outcome = open_with(spec, scaled(1) > 1 ? most / 8 : 1 << 20);
	least = least_of(&outcome);
	assert_in_range(least, most / 2, most);
	forget_index(name);
	outcome = open_with(spec, least);
	if (outcome.status != LEAT_OK)
		fail_msg("%s\nwith the %zu bytes that were named: %s", spec, least, outcome.err.text);
	forget_index(name);
	outcome = open_with(spec, least - 4096);
	assert_int_equal(least_of(&outcome), least);
	/* The index is kept, though the feed was refused, and takes no more than to make it. */
	outcome = open_with(spec, least);
	assert_int_equal(outcome.status, LEAT_OK);
}

/* ---- what is large ---- */

static void
a_window_of_shuffle_is_refused_before_it_is_filled(void **state)
{
	struct outcome outcome;
	char spec[MAX_SPEC];
	size_t least;

	(void)state;
	temp_write(&temp, "one.csv", "path\none.csv\n", 13);
	snprintf(spec, sizeof spec, "list('%s') | repeat(100000000) | shuffle(window=20000000) | batch(2)",
	         temp_path(&temp, "one.csv"));
	outcome = open_with(spec, 64 << 20);
	least = least_of(&outcome);
	assert_in_range(least, 160000000, 170000000);
	outcome = open_with(spec, least);
	assert_int_equal(outcome.status, LEAT_OK);
	/* Beyond any memory. */
	snprintf(spec, sizeof spec,
	         "list('%s') | repeat(1000000000000000000) | shuffle(window=900000000000000000) | batch(2)",
	         temp_path(&temp, "one.csv"));
	outcome = open_with(spec, 64 << 20);
	assert_int_equal(outcome.status, LEAT_LIMIT);
	/* A window larger than the data takes nothing. */
	snprintf(spec, sizeof spec, "list('%s') | repeat(1000000) | shuffle(window=20000000) | batch(2)",
	         temp_path(&temp, "one.csv"));
	outcome = open_with(spec, 4 << 20);
	assert_int_equal(outcome.status, LEAT_OK);
}

static void
a_cache_of_a_size_is_refused_too(void **state)
{
	struct outcome outcome;
	char spec[MAX_SPEC];

	(void)state;
	temp_write(&temp, "one.csv", "path\none.csv\n", 13);
	snprintf(spec, sizeof spec, "list('%s') | cache(size=64GiB) | batch(2)", temp_path(&temp, "one.csv"));
	outcome = open_with(spec, 64 << 20);
	assert_in_range(least_of(&outcome), (size_t)64 << 30, ((size_t)64 << 30) + (16 << 20));
}

/* Rows of a list whose files are missing, but for the first. */
static void
a_long_list(void **state)
{
	size_t rows = scaled(250000);
	char spec[MAX_SPEC];
	FILE *file;

	(void)state;
	temp_write(&temp, "first", "1", 1);
	file = fopen(temp_path(&temp, "long.csv"), "w");
	assert_non_null(file);
	fprintf(file, "path,label,name\nfirst,1,long\n");
	for (size_t i = 1; i < rows; i++)
		fprintf(file, "%07zu.jpg,%zu,\"n%zu\"\n", i, i % 1000, i % 10);
	assert_int_equal(fclose(file), 0);
	snprintf(spec, sizeof spec, "list('%s', content=bytes) | select(label) | batch(2)",
	         temp_path(&temp, "long.csv"));
	check_opening(spec, "long.csv", rows * 72 + (2 << 20));
}

/* Long names make up for few files. */
static void
a_large_folder(void **state)
{
	size_t files = scaled(25000);
	char spec[MAX_SPEC], path[500], name[200];

	(void)state;
	memset(name, 'n', sizeof name - 1);
	name[sizeof name - 1] = '\0';
	assert_int_equal(mkdir(temp_path(&temp, "folder"), 0700), 0);
	for (size_t i = 0; i < files; i++) {
		int fd;

		if (i % 10000 == 0) {
			snprintf(path, sizeof path, "folder/c%zu", i / 10000);
			assert_int_equal(mkdir(temp_path(&temp, path), 0700), 0);
		}
		snprintf(path, sizeof path, "folder/c%zu/%zu%s.jpg", i / 10000, i * 7919 % files, name);
		fd = open(temp_path(&temp, path), O_CREAT | O_WRONLY | O_EXCL, 0600);
		assert_true(fd >= 0);
		close(fd);
	}
	snprintf(spec, sizeof spec, "folder('%s') | select(label) | batch(2)", temp_path(&temp, "folder"));
	check_opening(spec, "folder", files * (sizeof name * 2 + 100));
}

/* Records without data: 16 bytes each. */
static void
many_tiny_records(void **state)
{
	unsigned char record[LEAT_TFRECORD_FRAME] = {0};
	uint32_t crc = leat_tfrecord_crc(record, 8), empty = leat_crc32c_mask(0);
	size_t records = scaled(2200000);
	char spec[MAX_SPEC];
	FILE *file;

	(void)state;
	memcpy(record + 8, &crc, 4);
	memcpy(record + 12, &empty, 4);
	file = fopen(temp_path(&temp, "tiny.tfrecord"), "w");
	assert_non_null(file);
	for (size_t i = 0; i < records; i++)
		fwrite(record, sizeof record, 1, file);
	assert_int_equal(fclose(file), 0);
	snprintf(spec, sizeof spec, "tfrecord('%s') | batch(2)", temp_path(&temp, "tiny.tfrecord"));
	check_opening(spec, "tiny.tfrecord", records * 9 + (2 << 20));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_window_of_shuffle_is_refused_before_it_is_filled, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_cache_of_a_size_is_refused_too, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_long_list, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_large_folder, set_up, tear_down),
		cmocka_unit_test_setup_teardown(many_tiny_records, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
