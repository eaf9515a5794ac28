/* contract.c - contract s3 URI | web URL ROOT: the contract of store/store.h against a real server
 *
 * s3: objects are put by tests/s3.py, a client of its own. web: they are files below ROOT, which
 * the server has as URL. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "store/store.h"
#include "support/store.h"

static struct store_bed bed;
static const char *root;
static FILE *to, *from;

/* ---- S3 ---- */

static void
start_client(void)
{
	int in[2], out[2];

	assert_true(pipe2(in, O_CLOEXEC) == 0 && pipe2(out, O_CLOEXEC) == 0);
	if (fork() == 0) {
		dup2(in[0], 0);
		dup2(out[1], 1);
		execlp("python3", "python3", "tests/s3.py", "serve", (char *)NULL);
		_exit(127);
	}
	to = fdopen(in[1], "w");
	from = fdopen(out[0], "r");
	close(in[0]);
	close(out[1]);
	assert_true(to && from);
}

static void
must_succeed(void)
{
	int status = 0;

	fflush(to);
	assert_int_equal(fscanf(from, "%d", &status), 1);
	assert_in_range(status, 200, 299);
}

static void
put_object(const char *uri, const void *bytes, size_t len)
{
	fprintf(to, "put %s %zu\n", uri, len);
	fwrite(bytes, 1, len, to);
	must_succeed();
}

static void
remove_object(const char *uri)
{
	fprintf(to, "remove %s\n", uri);
	must_succeed();
}

/* ---- files of a web server ---- */

static const char *
path_of(const char *uri)
{
	static char path[512];

	snprintf(path, sizeof(path), "%s%s", root, uri + strlen(bed.folder));
	return path;
}

/* nginx makes its ETags from size and time in seconds, so every put is a second later than the one before. */
static void
put_file(const char *uri, const void *bytes, size_t len)
{
	static time_t second = 1700000000;
	struct timespec times[2] = {{.tv_sec = second}, {.tv_sec = second}};
	char fresh[600];
	FILE *file;

	second++;
	snprintf(fresh, sizeof(fresh), "%s.new", path_of(uri));
	file = fopen(fresh, "w");
	assert_non_null(file);
	assert_int_equal(fwrite(bytes, 1, len, file), len);
	assert_int_equal(fclose(file), 0);
	assert_int_equal(utimensat(AT_FDCWD, fresh, times, 0), 0);
	assert_int_equal(rename(fresh, path_of(uri)), 0);
}

static void
remove_file(const char *uri)
{
	assert_int_equal(unlink(path_of(uri)), 0);
}

/* ---- the contract ---- */

static void
lists_give_what_patterns_and_folders_hold(void **state)
{
	(void)state;
	promise_store_lists(&bed);
}

static void
reads_give_any_range_in_any_pieces(void **state)
{
	(void)state;
	promise_store_reads(&bed);
}

static void
thousands_of_reads_are_in_flight_and_each_is_done_once(void **state)
{
	(void)state;
	promise_store_submits(&bed);
}

static void
a_cancelled_read_is_done_once_too(void **state)
{
	(void)state;
	promise_store_cancels(&bed);
}

static void
an_object_that_changed_is_an_error_that_names_it(void **state)
{
	(void)state;
	promise_store_versions(&bed);
}

static void
new_objects_appear_whole_or_not_at_all(void **state)
{
	(void)state;
	promise_store_writes(&bed);
}

static void
every_failing_allocation_is_survived(void **state)
{
	(void)state;
	promise_store_memory_errors(&bed);
}

/* ---- S3's own ---- */

static enum leat_status
count_object(void *arg, const struct leat_object *object, struct leat_err *err)
{
	(void)object;
	(void)err;
	++*(int *)arg;
	return LEAT_OK;
}

/* Each name is found by itself and by a pattern, and holds its bytes. */
static void
keys_may_hold_any_characters(void **state)
{
	static const char *const names[] = {"a b",  "a+b",  "a=b",         "a(b)",  "a'b",          "a&b", "a%20b",
	                                    "a%b",  "a#b",  "a;b",         "a,b",   "a:b",          "a@b", "a~b",
	                                    "a!b",  "a$b",  "a\xc3\xa9.b", "a\"b",  "a<b>",         "a|b", "a\\b",
	                                    "a^b`", "a{b}", "a//b",        "a/./b", "a\xe6\x97\xa5"};
	struct leat_stores stores;
	struct leat_mem mem;
	char uri[LEAT_URI];

	(void)state;
	leat_mem_init(&mem, SIZE_MAX);
	leat_stores_init(&stores, &mem);
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		struct leat_store *store;
		struct leat_err err;
		int count = 0;
		void *bytes;
		size_t len;
		char *name;

		snprintf(uri, sizeof(uri), "%s/%s", bed.folder, names[i]);
		put_object(uri, names[i], strlen(names[i]));
		leat_err_clear(&err);
		assert_int_equal(leat_stores_find(&stores, uri, &store, &name, &err), LEAT_OK);
		if (leat_object_load(store, name, 100, &mem, &bytes, &len, &err) != LEAT_OK)
			fail_msg("%s: %s", uri, err.text);
		assert_string_equal(bytes, names[i]);
		leat_free(&mem, bytes);
		leat_free(&mem, name);
		snprintf(uri, sizeof(uri), "%s/%s", bed.folder, strchr(names[i], '/') ? "a/./?" : "a*");
		if (strcmp(names[i], "a//b") != 0 &&
		    store->kind->list(store, uri, count_object, &count, &err) != LEAT_OK)
			fail_msg("%s: %s", uri, err.text);
		assert_int_equal(count, strcmp(names[i], "a//b") != 0);
		snprintf(uri, sizeof(uri), "%s/%s", bed.folder, names[i]);
		remove_object(uri);
	}
	leat_stores_close(&stores);
	assert_int_equal(mem.used, 0);
}

/* A page has 1,000 keys. */
static void
lists_have_several_pages(void **state)
{
	enum { KEYS = 2100 };
	struct leat_stores stores;
	struct leat_store *store;
	struct leat_mem mem;
	struct leat_err err;
	char uri[LEAT_URI];
	int count = 0;

	(void)state;
	leat_mem_init(&mem, SIZE_MAX);
	leat_stores_init(&stores, &mem);
	leat_err_clear(&err);
	for (int i = 0; i < KEYS; i++) {
		snprintf(uri, sizeof(uri), "%s/pages/ %04d+", bed.folder, i);
		put_object(uri, "x", 1);
	}
	snprintf(uri, sizeof(uri), "%s/pages/*", bed.folder);
	assert_int_equal(leat_stores_find(&stores, uri, &store, NULL, &err), LEAT_OK);
	if (store->kind->list(store, uri, count_object, &count, &err) != LEAT_OK)
		fail_msg("%s", err.text);
	assert_int_equal(count, KEYS);
	for (int i = 0; i < KEYS; i++) {
		snprintf(uri, sizeof(uri), "%s/pages/ %04d+", bed.folder, i);
		remove_object(uri);
	}
	leat_stores_close(&stores);
}

int
main(int argc, char **argv)
{
	const struct CMUnitTest s3[] = {
		cmocka_unit_test(lists_give_what_patterns_and_folders_hold),
		cmocka_unit_test(reads_give_any_range_in_any_pieces),
		cmocka_unit_test(thousands_of_reads_are_in_flight_and_each_is_done_once),
		cmocka_unit_test(a_cancelled_read_is_done_once_too),
		cmocka_unit_test(an_object_that_changed_is_an_error_that_names_it),
		cmocka_unit_test(new_objects_appear_whole_or_not_at_all),
		cmocka_unit_test(every_failing_allocation_is_survived),
		cmocka_unit_test(keys_may_hold_any_characters),
		cmocka_unit_test(lists_have_several_pages),
	};
	const struct CMUnitTest web[] = {
		cmocka_unit_test(reads_give_any_range_in_any_pieces),
		cmocka_unit_test(thousands_of_reads_are_in_flight_and_each_is_done_once),
		cmocka_unit_test(a_cancelled_read_is_done_once_too),
		cmocka_unit_test(an_object_that_changed_is_an_error_that_names_it),
	};

	if (argc == 3 && strcmp(argv[1], "s3") == 0) {
		start_client();
		bed = (struct store_bed){argv[2], put_object, remove_object, true};
		return cmocka_run_group_tests_name("s3", s3, NULL, NULL);
	}
	if (argc == 4 && strcmp(argv[1], "web") == 0) {
		root = argv[3];
		bed = (struct store_bed){argv[2], put_file, remove_file, false};
		return cmocka_run_group_tests_name("web", web, NULL, NULL);
	}
	fprintf(stderr, "usage: contract s3 URI | web URL ROOT\n");
	return 2;
}
