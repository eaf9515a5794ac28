/* test_feed_malloc.c - when malloc fails, in Leat, the C library or any other, a feed ends with a status, never a
 * signal
 *
 * test_feed_alloc.c does so for what Leat counts. Here every request of the process may fail, among them those of the C
 * library, each in a process of its own: one request alone, and all from one on. Those of libjansson never fail,
 * because its parser overruns a buffer then (leat.h says so). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <jansson.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/hash.h"
#include "support/sources.h"
#include "support/trace.h"

/* ---- a malloc that fails ---- */

static atomic_long left = -1; /* requests until one fails; negative: none does */
static atomic_bool from_then; /* and all after it */
static atomic_long requests;

#if !TEST_SLOW /* sanitizers have their own */

#define VISIBLE __attribute__((visibility("default"))) /* to shared libraries */

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *ptr, size_t size);
void *__libc_memalign(size_t align, size_t size);
void __libc_free(void *ptr);

static bool
fails(void)
{
	long n = atomic_load(&left);

	if (n < 0)
		return false;
	atomic_fetch_add(&requests, 1);
	while (n > 0 && !atomic_compare_exchange_weak(&left, &n, n - 1))
		;
	if (n != 0)
		return false;
	if (!atomic_load(&from_then))
		atomic_store(&left, -1);
	errno = ENOMEM;
	return true;
}

VISIBLE void *
malloc(size_t size)
{
	return fails() ? NULL : __libc_malloc(size);
}

VISIBLE void *
calloc(size_t count, size_t size)
{
	return fails() ? NULL : __libc_calloc(count, size);
}

VISIBLE void *
realloc(void *ptr, size_t size)
{
	return fails() ? NULL : __libc_realloc(ptr, size);
}

VISIBLE void *
aligned_alloc(size_t align, size_t size)
{
	return fails() ? NULL : __libc_memalign(align, size);
}

VISIBLE int
posix_memalign(void **ptr, size_t align, size_t size)
{
	*ptr = fails() ? NULL : __libc_memalign(align, size);
	return *ptr ? 0 : ENOMEM;
}

#endif

/* ---- one feed in a process of its own ---- */

static struct sources sources;

enum outcome { WENT_WELL, FAILED_WELL, BROKE_PROMISE };

static enum outcome
judge(enum leat_status status, const struct leat_err *err)
{
	if (status == LEAT_OK)
		return WENT_WELL;
	return err->status == status && err->text[0] ? FAILED_WELL : BROKE_PROMISE;
}

static enum outcome
run_feed(const char *spec)
{
	struct leat_options options;
	struct leat_batch *batch;
	struct leat_feed *feed;
	enum leat_status status;
	struct leat_err err;
	char *text;

	trace_options(&options);
	options.threads = 2;
	status = leat_open(spec, &options, &feed, &err);
	if (status != LEAT_OK)
		return judge(status, &err);
	status = leat_next(feed, &batch, &err);
	if (status == LEAT_OK)
		leat_release(batch);
	if (status == LEAT_OK) {
		status = leat_save(feed, &text, &err);
		free(status == LEAT_OK ? text : NULL);
	}
	leat_close(feed);
	return judge(status, &err);
}

/* *all: fewer than n requests were made. */
static enum outcome
run_child(enum outcome (*run)(const char *arg), const char *arg, long n, bool all_after)
{
	int status;
	pid_t child = fork();

	assert_true(child >= 0);
	if (child == 0) {
		enum outcome outcome;

		for (int i = 1; i < 32; i++)
			signal(i, SIG_DFL); /* cmocka catches some */
		alarm(60);
		sources_forget_indexes(&sources);
		atomic_store(&from_then, all_after);
		atomic_store(&requests, 0);
		atomic_store(&left, n);
		outcome = run(arg);
		atomic_store(&left, -1);
		_exit((int)outcome | (atomic_load(&requests) <= n ? 4 : 0));
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	if (!WIFEXITED(status))
		fail_msg("%s: signal %d when request %ld%s fails", arg, WTERMSIG(status), n,
		         all_after ? " and all after it" : "");
	return (enum outcome)WEXITSTATUS(status);
}

static void
promise(enum outcome (*run)(const char *arg), const char *arg)
{
	for (int all_after = 0; all_after < 2; all_after++) {
		for (long n = 0;; n++) {
			int outcome = (int)run_child(run, arg, n, all_after);

			if ((outcome & 3) == BROKE_PROMISE)
				fail_msg("%s: no error when request %ld fails", arg, n);
			if (outcome & 4) {
				assert_int_equal(outcome & 3, WENT_WELL);
				assert_true(n > 0);
				break;
			}
			assert_true(n < 20000);
		}
	}
}

static int
setup(void **state)
{
	(void)state;
#if !TEST_SLOW
	json_set_alloc_funcs(__libc_malloc, __libc_free);
#endif
	sources_make(&sources);
	return 0;
}

static int
teardown(void **state)
{
	(void)state;
	sources_remove(&sources);
	return 0;
}

static void
every_source_ends_with_a_status(void **state)
{
	(void)state;
	for (size_t i = 0; i < sources.count; i++) {
		char spec[2000];

		if (strncmp(sources.one[i].name, "parquet", 7) == 0)
			continue; /* DuckDB ends the process */
		snprintf(spec, sizeof spec, "%s | batch(2)", sources.one[i].spec);
		promise(run_feed, spec);
	}
}

/* JPEG, PNG and WebP images, and a cache. */
static void
every_library_ends_with_a_status(void **state)
{
	char path[400], spec[2000];
	FILE *csv;

	(void)state;
	snprintf(path, sizeof path, "%s/images.csv", sources.folder);
	csv = fopen(path, "w");
	assert_non_null(csv);
	fprintf(csv, "path\n%stf/420.jpg\n%stf/rgb.png\n%swebp/best.webp\n", GOLDEN, GOLDEN, GOLDEN);
	assert_int_equal(fclose(csv), 0);
	snprintf(spec, sizeof spec,
	         "list('%s', root='%s') | decode(channels=3) | resize(8, 8) | cache(memory) | batch(3)", path, GOLDEN);
	promise(run_feed, spec);
}

/* ---- hashes ---- */

static const char expected[] = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"; /* of "abc" */

static enum outcome
run_hash(const char *arg)
{
	struct leat_sha256 *sha = leat_sha256_new();
	uint8_t digest[LEAT_SHA256_BYTES], whole[LEAT_SHA256_BYTES];
	char hex[LEAT_SHA256_HEX];
	bool same = true;

	for (int i = 0; sha && i < 3; i++) {
		leat_sha256_add(sha, arg, 1);
		leat_sha256_add(sha, arg + 1, 2);
		leat_sha256_end(sha, digest);
		leat_sha256_reset(sha);
		leat_hex(digest, sizeof digest, hex);
		same = same && strcmp(hex, expected) == 0;
	}
	leat_sha256_free(sha);
	if (leat_sha256(arg, 3, whole) != 0)
		return FAILED_WELL;
	leat_hex(whole, sizeof whole, hex);
	if (!same || strcmp(hex, expected) != 0)
		return BROKE_PROMISE;
	return sha ? WENT_WELL : FAILED_WELL;
}

static void
a_hash_is_right_or_not_made(void **state)
{
	(void)state;
	promise(run_hash, "abc");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_hash_is_right_or_not_made),
		cmocka_unit_test(every_source_ends_with_a_status),
		cmocka_unit_test(every_library_ends_with_a_status),
	};

	if (TEST_SLOW)
		return 0;
	return cmocka_run_group_tests(tests, setup, teardown);
}
