/* test_file_match.c - a pattern matches the files that glob(3) finds */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "store/file.h"
#include "support/temp.h"

static struct temp temp;
static struct leat_mem mem;
static struct leat_stores stores;
static struct leat_store *store;

static int
setup(void **state)
{
	static const char *const folders[] = {"a", "a/b", "a/b2", "a/.hidden", "a2", "[x]", "a*"};
	static const char *const files[] = {"1.rec",      "2.rec",     ".3.rec",     "a/1.rec",     "a/10.rec",
	                                    "a/b/1.rec",  "a/b/x",     "a/b2/1.rec", "a/.hidden/1", "a2/1.rec",
	                                    "a2/\\q.rec", "[x]/1.rec", "a*/1.rec",   "a/[1].rec"};

	(void)state;
	temp_make(&temp);
	for (size_t i = 0; i < sizeof folders / sizeof *folders; i++)
		assert_int_equal(mkdir(temp_path(&temp, folders[i]), 0777), 0);
	for (size_t i = 0; i < sizeof files / sizeof *files; i++)
		temp_write(&temp, files[i], "x", 1);
	assert_int_equal(symlink("nowhere", temp_path(&temp, "a/4.rec")), 0);
	assert_int_equal(symlink("b", temp_path(&temp, "a/link")), 0);
	leat_mem_init(&mem, SIZE_MAX);
	leat_stores_init(&stores, &mem);
	assert_int_equal(leat_stores_find(&stores, "/", &store, NULL, NULL), LEAT_OK);
	return 0;
}

static int
teardown(void **state)
{
	(void)state;
	leat_stores_close(&stores);
	assert_int_equal(mem.used, 0);
	temp_remove(&temp);
	return 0;
}

struct found {
	char path[64][400];
	size_t count;
};

static enum leat_status
take(void *arg, const char *path, struct leat_err *err)
{
	struct found *found = arg;

	(void)err;
	assert_true(found->count < 64);
	snprintf(found->path[found->count++], 400, "%s", path);
	return LEAT_OK;
}

static int
compare(const void *a, const void *b)
{
	return strcmp(a, b);
}

/* Returns the number of matches. */
static size_t
expect_same(const char *pattern)
{
	struct found found = {.count = 0};
	enum leat_status status = leat_file_match(store, pattern, take, &found, NULL);
	glob_t expected = {0};
	int failed = glob(pattern, GLOB_ERR, NULL, &expected);

	assert_int_equal(status, found.count ? LEAT_OK : LEAT_AGAIN);
	qsort(found.path, found.count, sizeof *found.path, compare);
	if (failed)
		assert_int_equal(found.count, 0);
	if (!failed && found.count != expected.gl_pathc)
		fail_msg("%s: %zu matches, not %zu", pattern, found.count, expected.gl_pathc);
	for (size_t i = 0; !failed && i < found.count; i++) {
		size_t k = 0;

		while (k < found.count && strcmp(found.path[k], expected.gl_pathv[i]) != 0)
			k++;
		if (k == found.count)
			fail_msg("%s: %s is missing", pattern, expected.gl_pathv[i]);
	}
	globfree(&expected);
	return found.count;
}

static void
a_pattern_matches_what_glob_finds(void **state)
{
	static const char *const pieces[] = {"*",  "?",   "[12]", "[!a]", "a",   "b",   "1",  ".rec",  "/",
	                                     "//", "/*/", ".",    "..",   "\\*", "\\",  "[x", "[[]x]", "]",
	                                     "q",  "a*",  "/.",   "link", "/a/", "*.r", "10", ".*"};
	uint32_t random = 1;
	size_t matches = 0, patterns = 0;

	(void)state;
	for (int i = 0; i < 20000; i++) {
		char pattern[600];
		size_t parts;

		snprintf(pattern, sizeof pattern, "%s/", temp.folder);
		random = random * 1664525 + 1013904223;
		parts = 1 + (random >> 16) % 5;
		for (size_t k = 0; k < parts; k++) {
			random = random * 1664525 + 1013904223;
			strcat(pattern, pieces[(random >> 16) % (sizeof pieces / sizeof *pieces)]);
		}
		/* Only patterns get here. Left out: "." and "..", which are no files, and what glob makes of "//" and
		 * "\\/". */
		if (!strpbrk(pattern, "*?[") || strstr(pattern, "/.") || strstr(pattern, "//") ||
		    strstr(pattern, "\\/") || strstr(pattern, "\\."))
			continue;
		matches += expect_same(pattern);
		patterns++;
	}
	assert_true(patterns > 1000 && matches > 500);
}

static void
relative_patterns_give_relative_names(void **state)
{
	char before[4000];

	(void)state;
	assert_non_null(getcwd(before, sizeof before));
	assert_int_equal(chdir(temp.folder), 0);
	assert_int_equal(expect_same("*.rec"), 2);
	assert_int_equal(expect_same("a/*.rec"), 4);
	assert_int_equal(expect_same("./a*/1.rec"), 3);
	assert_int_equal(expect_same("none/*"), 0);
	assert_int_equal(expect_same("1.rec/*"), 0);
	assert_int_equal(expect_same("*/none"), 0);
	assert_int_equal(expect_same(".?*.rec"), 1);
	assert_int_equal(chdir(before), 0);
}

static void
a_folder_that_cannot_be_read_is_an_error(void **state)
{
	char pattern[500], deep[LEAT_URI + 100];
	struct found found = {.count = 0};
	struct leat_err err;

	(void)state;
	leat_err_clear(&err);
	memset(deep, 'x', sizeof deep);
	memcpy(deep, "*/", 2);
	deep[sizeof deep - 1] = '\0';
	snprintf(pattern, sizeof pattern, "%s/a2/*", temp.folder);
	if (geteuid() != 0) {
		assert_int_equal(chmod(temp_path(&temp, "a2"), 0), 0);
		assert_int_equal(leat_file_match(store, pattern, take, &found, &err), LEAT_IO);
		assert_non_null(strstr(err.text, "Permission denied"));
		assert_int_equal(chmod(temp_path(&temp, "a2"), 0777), 0);
	}
	leat_err_clear(&err);
	assert_int_equal(leat_file_match(store, deep, take, &found, &err), LEAT_IO);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_pattern_matches_what_glob_finds),
		cmocka_unit_test(relative_patterns_give_relative_names),
		cmocka_unit_test(a_folder_that_cannot_be_read_is_an_error),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
