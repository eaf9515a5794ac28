/* test_sets.c - files that a command wrote together are opened together, at any moment, and cheaply */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "store/set.h"
#include "support/temp.h"

enum { SHARDS = 3 };

static struct leat_mem mem;
static struct leat_stores stores;
static struct leat_store *store;
static struct temp temp;

/* The local files, watched: `before` runs before the n-th list or look, counted from 1. */
static struct leat_store_kind watched;
static const struct leat_store_kind *files_kind;
static void (*before)(unsigned call);
static unsigned calls, looks;

static enum leat_status
watch_list(struct leat_store *of, const char *pattern, leat_object_visit *visit, void *arg, struct leat_err *err)
{
	calls++;
	if (before)
		before(calls);
	return files_kind->list(of, pattern, visit, arg, err);
}

static enum leat_status
watch_look(struct leat_store *of, const char *uri, struct leat_object *object, struct leat_err *err)
{
	calls++;
	looks++;
	if (before)
		before(calls);
	return files_kind->look(of, uri, object, err);
}

static int
setup(void **state)
{
	(void)state;
	leat_mem_init(&mem, SIZE_MAX);
	leat_stores_init(&stores, &mem);
	temp_make(&temp);
	assert_int_equal(leat_stores_find(&stores, temp.folder, &store, NULL, NULL), LEAT_OK);
	files_kind = store->kind;
	watched = *files_kind;
	watched.list = watch_list;
	watched.look = watch_look;
	store->kind = &watched;
	before = NULL;
	calls = looks = 0;
	return 0;
}

static int
teardown(void **state)
{
	(void)state;
	store->kind = files_kind;
	leat_stores_close(&stores);
	temp_remove(&temp);
	assert_int_equal(mem.used, 0);
	return 0;
}

static const char *
shard_name(size_t i, size_t count)
{
	static char name[32];

	snprintf(name, sizeof(name), "p-%05zu-of-%05zu.tar", i, count);
	return name;
}

/* Writes the manifest of `count` shards of `size` bytes. */
static void
put_manifest(size_t count, size_t size, bool complete)
{
	const struct leat_store_kind *kind = store->kind;
	struct leat_set set;
	size_t run;

	store->kind = files_kind;
	leat_set_init(&set, &mem);
	assert_int_equal(leat_set_add_run(&set, (const char *const[]){"pack", "a b", NULL}, &run, NULL), LEAT_OK);
	set.run[run].complete = complete;
	for (size_t i = 0; i < count; i++)
		assert_int_equal(leat_set_add_file(&set, shard_name(i, count), size, 0, run, NULL), LEAT_OK);
	leat_set_sort(&set);
	assert_int_equal(leat_set_save(&set, store, temp_path(&temp, ".p.tar.leatset"), NULL), LEAT_OK);
	leat_set_free(&set);
	store->kind = kind;
}

static void
put_shards(size_t count, size_t size)
{
	static const char bytes[100];

	for (size_t i = 0; i < count; i++) {
		char other[sizeof(temp.path)];

		snprintf(other, sizeof(other), ".new-%zu", i);
		temp_write(&temp, other, bytes, size);
		snprintf(other, sizeof(other), "%s", temp.path);
		assert_int_equal(rename(other, temp_path(&temp, shard_name(i, count))), 0);
	}
}

/* As a command would. */
static void
put_set(size_t count, size_t size)
{
	put_manifest(count, size, false);
	put_shards(count, size);
	put_manifest(count, size, true);
}

static enum leat_status
open_shards(const char *pattern, struct leat_files **files, struct leat_err *err)
{
	char path[512];
	const char *one = path;

	snprintf(path, sizeof(path), "%s", temp_path(&temp, pattern));
	leat_err_clear(err);
	return leat_files_open(files, &stores, &one, 1, &mem, err);
}

static void
opens(const char *pattern, size_t count, size_t size)
{
	struct leat_files *files;
	struct leat_err err;

	if (open_shards(pattern, &files, &err) != LEAT_OK)
		fail_msg("%s", err.text);
	assert_int_equal(leat_files_count(files), count);
	for (size_t i = 0; i < count; i++)
		assert_int_equal(leat_files_at(files, i)->size, size);
	leat_files_close(files);
}

static void
fails(const char *pattern, enum leat_status status, const char *why)
{
	struct leat_files *files;
	struct leat_err err;

	assert_int_equal(open_shards(pattern, &files, &err), status);
	assert_int_equal(err.status, status);
	if (!strstr(err.text, why))
		fail_msg("'%s' does not say '%s'", err.text, why);
}

/* ---- tests ---- */

static void
a_set_costs_a_few_looks_however_many_files_it_has(void **state)
{
	unsigned few;

	(void)state;
	put_shards(2, 5);
	opens("p-*", 2, 5);
	assert_int_equal(looks, 1); /* no manifest */
	put_set(2, 5);
	looks = 0;
	opens("p-*", 2, 5);
	few = looks;
	for (size_t i = 0; i < 2; i++)
		assert_int_equal(unlink(temp_path(&temp, shard_name(i, 2))), 0);
	put_set(300, 5);
	looks = 0;
	opens("p-*", 300, 5);
	assert_int_equal(looks, few);
}

static unsigned commit_at;

static void
commit_once(unsigned call)
{
	if (call == commit_at)
		put_set(SHARDS, 7);
}

/* Whenever it is that another command replaces the files, all of them are old or all are new. */
static void
a_commit_during_the_listing_is_noticed(void **state)
{
	unsigned olds = 0, news = 0;

	(void)state;
	for (commit_at = 1; !olds || commit_at < 20; commit_at++) {
		struct leat_files *files;
		struct leat_err err;

		before = NULL;
		put_set(SHARDS, 5);
		before = commit_once;
		calls = 0;
		if (open_shards("p-*", &files, &err) != LEAT_OK)
			fail_msg("%s", err.text);
		assert_int_equal(leat_files_count(files), SHARDS);
		for (size_t i = 0; i < SHARDS; i++)
			assert_int_equal(leat_files_at(files, i)->size, leat_files_at(files, 0)->size);
		olds += leat_files_at(files, 0)->size == 5;
		news += leat_files_at(files, 0)->size == 7;
		leat_files_close(files);
	}
	assert_true(olds && news);
}

/* The manifest is one of old data; the first file is already new. */
static void
begin_commit(unsigned call)
{
	if (call == 2) { /* the files have been listed */
		put_manifest(SHARDS, 7, false);
		temp_write(&temp, shard_name(0, SHARDS), "1234567", 7);
	}
}

static void
a_commit_that_has_begun_is_noticed(void **state)
{
	(void)state;
	put_shards(SHARDS, 5); /* of another program */
	before = begin_commit;
	fails("p-*", LEAT_DATA, "run it again: leat pack 'a b'");
	before = NULL;
	fails("p-00001-of-00003.tar", LEAT_DATA, "run it again: leat pack 'a b'");
}

static void
commit_always(unsigned call)
{
	put_set(SHARDS, call % 50);
}

static void
files_that_are_always_replaced_are_refused(void **state)
{
	(void)state;
	put_set(SHARDS, 5);
	before = commit_always;
	fails("p-*", LEAT_DATA, "");
	assert_true(calls < 100);
}

static void
a_manifest_that_is_not_valid_is_refused(void **state)
{
	static const char *const bad[] = {
		"",
		"[]",
		"{\"leat_set\": 1}",
		"{\"leat_set\": 1, \"commands\": [1]}",
		"{\"leat_set\": 1, \"commands\": [{\"complete\": true, \"arguments\": [1], \"files\": []}]}",
		"{\"leat_set\": 1, \"commands\": [{\"complete\": true, \"arguments\": [], \"files\": [{}]}]}",
		"{\"leat_set\": 1, \"commands\": [{\"complete\": true, \"arguments\": [], \"files\": [{\"name\": "
		"\"a/b\", \"size\": 1, \"crc32c\": \"0\"}]}]}",
		"{\"leat_set\": 1, \"commands\": [{\"complete\": true, \"arguments\": [], \"files\": [{\"name\": "
		"\"a%2\", \"size\": 1, \"crc32c\": \"0\"}]}]}",
		"{\"leat_set\": 1, \"commands\": [{\"complete\": true, \"arguments\": [], \"files\": [{\"name\": "
		"\"a\", \"size\": -1, \"crc32c\": \"0\"}]}]}",
	};

	(void)state;
	put_shards(SHARDS, 5);
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		temp_write(&temp, ".p.tar.leatset", bad[i], strlen(bad[i]));
		fails("p-*", LEAT_DATA, ".p.tar.leatset' is damaged");
	}
	temp_write(&temp, ".p.tar.leatset", "{\"leat_set\": 2}", 15);
	fails("p-*", LEAT_UNSUPPORTED, "newer");
}

static void
without_memory_there_is_an_error(void **state)
{
	enum leat_status status = LEAT_NOMEM;

	(void)state;
	put_set(SHARDS, 5);
	for (long n = 0; status != LEAT_OK; n++) {
		struct leat_files *files;
		struct leat_err err;
		size_t used = mem.used;

		atomic_store(&mem.fail_after, n);
		status = open_shards("p-*", &files, &err);
		atomic_store(&mem.fail_after, -1);
		if (status == LEAT_OK)
			leat_files_close(files);
		else if (status != LEAT_NOMEM && status != LEAT_LIMIT)
			fail_msg("%ld: %s", n, err.text);
		assert_int_equal(mem.used, used);
		assert_true(n < 1000);
	}
}

/* What comes from a manifest is printed, but never as a command of another program. */
static void
a_command_is_quoted_for_a_shell(void **state)
{
	struct leat_set set;
	size_t run;

	(void)state;
	leat_set_init(&set, &mem);
	assert_int_equal(leat_set_add_run(&set,
	                                  (const char *const[]){"convert", "f('x') | batch(2)", "$(rm -r ~); rm",
	                                                        "--shards=2", "", NULL},
	                                  &run, NULL),
	                 LEAT_OK);
	assert_string_equal(set.run[run].command,
	                    "leat convert 'f('\\''x'\\'') | batch(2)' '$(rm -r ~); rm' --shards=2 ''");
	leat_set_free(&set);
}

/* Signed URLs and passwords are not for everyone who reads the data. */
static void
a_command_keeps_secrets_of_urls(void **state)
{
	struct leat_set set;
	size_t run;

	(void)state;
	leat_set_init(&set, &mem);
	assert_int_equal(leat_set_add_run(&set,
	                                  (const char *const[]){"convert",
	                                                        "tar(['https://h/a b?sig=SECRET&x=(1, 2)', "
	                                                        "'http://u:SECRET@h:1/x@y']) | take(2)",
	                                                        "--output", "https://h/x?SECRET", "s3://b/a?b@c", NULL},
	                                  &run, NULL),
	                 LEAT_OK);
	assert_null(strstr(set.run[run].command, "SECRET"));
	assert_null(strstr(set.run[run].arguments, "SECRET"));
	assert_string_equal(set.run[run].arguments,
	                    "[\"convert\", \"tar(['https://h/a b?...', 'http://...@h:1/x@y']) | take(2)\", "
	                    "\"--output\", \"https://h/x?...\", \"s3://b/a?b@c\"]");
	leat_set_free(&set);
}

static void
the_manifest_follows_from_the_name_of_any_file(void **state)
{
	static const struct {
		const char *file, *manifest;
		bool shards;
	} cases[] = {
		{"a/p-00001-of-00003.tar", "a/.p.tar.leatset", true},
		{"p-00001-of-00003", ".p.leatset", true},
		{"d-train.tfrecord-00001-of-00003", ".d-train.tfrecord.leatset", true},
		{"p-00000-of-00002-00001-of-00003.x", ".p-00000-of-00002.x.leatset", true},
		{"a-b/p-0001-of-00003.tar", "a-b/.tar.leatset", false},
		{"/x/y.npy", "/x/.npy.leatset", false},
		{"x.d/y", "x.d/.leatset", false},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		bool shards;
		char *uri = leat_set_uri(cases[i].file, &shards, &mem);

		assert_string_equal(uri, cases[i].manifest);
		assert_int_equal(shards, cases[i].shards);
		leat_free(&mem, uri);
	}
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_set_costs_a_few_looks_however_many_files_it_has),
		TEST(a_commit_during_the_listing_is_noticed),
		TEST(a_commit_that_has_begun_is_noticed),
		TEST(files_that_are_always_replaced_are_refused),
		TEST(a_manifest_that_is_not_valid_is_refused),
		TEST(without_memory_there_is_an_error),
		TEST(a_command_is_quoted_for_a_shell),
		TEST(a_command_keeps_secrets_of_urls),
		TEST(the_manifest_follows_from_the_name_of_any_file),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
