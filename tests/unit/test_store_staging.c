/* test_store_staging.c - remote sources of a project: lists, copies in the content store, versions */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dirent.h>
#include <pthread.h>

#include "base/hash.h"
#include "step/staging.h"
#include "support/store_mem.h"
#include "support/temp.h"

static struct temp temp;
static struct leat_mem mem;
static struct leat_cas *cas;
static struct leat_staging *staging;
static struct leat_storage storage;
static const char uri[] = "mem://bucket/raw/a.csv";

/* ---- helpers ---- */

static void
open_staging(enum leat_looks looks)
{
	struct leat_err err;

	leat_err_clear(&err);
	leat_staging_close(staging);
	assert_int_equal(leat_staging_open(&staging, &mem, &storage, temp_path(&temp, ".leat/remote"), looks, &err),
	                 LEAT_OK);
}

static int
setup(void **state)
{
	(void)state;
	temp_make(&temp);
	store_mem_reset();
	leat_mem_init(&mem, SIZE_MAX);
	leat_storage_init(&storage);
	staging = NULL;
	assert_int_equal(leat_cas_open(&cas, &mem, temp_path(&temp, ".leat"), LEAT_CAS_WRITE, NULL), LEAT_OK);
	assert_int_equal(leat_cas_begin(cas, NULL), LEAT_OK);
	open_staging(LEAT_LOOK_NOW);
	return 0;
}

static int
teardown(void **state)
{
	(void)state;
	leat_staging_close(staging);
	leat_cas_close(cas);
	temp_remove(&temp);
	assert_int_equal(atomic_load(&mem.used), 0);
	return 0;
}

static struct leat_remote_file *
find(const char *name)
{
	struct leat_remote_file *file = NULL;
	struct leat_err err;

	leat_err_clear(&err);
	if (leat_staging_find(staging, name, &file, &err) != LEAT_OK)
		fail_msg("%s", err.text);
	return file;
}

static struct leat_content
hash(const char *name, bool fetch)
{
	struct leat_content content;
	struct leat_err err;

	leat_err_clear(&err);
	if (leat_staging_hash(staging, cas, find(name), fetch, &content, &err) != LEAT_OK)
		fail_msg("%s", err.text);
	return content;
}

static unsigned char *
make_bytes(size_t len, unsigned seed)
{
	unsigned char *bytes = malloc(len + 1);

	assert_non_null(bytes);
	for (size_t i = 0; i < len; i++)
		bytes[i] = (unsigned char)((i * 2654435761u + seed) >> 13);
	return bytes;
}

static void
assert_content(const struct leat_content *content, const void *bytes, size_t len)
{
	struct leat_digest digest;
	char path[PATH_MAX];
	size_t stored;
	unsigned char *copy;

	leat_sha256(bytes, len, digest.byte);
	assert_memory_equal(content->digest.byte, digest.byte, sizeof(digest.byte));
	assert_int_equal(content->bytes, len);
	leat_cas_blob_path(cas, &digest, path);
	copy = temp_read(path, &stored);
	assert_int_equal(stored, len);
	assert_memory_equal(copy, bytes, len);
	free(copy);
}

/* Files below tmp/RUN. */
static size_t
count_temps(void)
{
	char path[PATH_MAX];
	size_t count = 0;
	DIR *dir;

	snprintf(path, sizeof(path), "%s/tmp/%s", leat_cas_folder(cas), leat_cas_run(cas));
	dir = opendir(path);
	assert_non_null(dir);
	for (struct dirent *entry; (entry = readdir(dir)) != NULL;)
		count += entry->d_name[0] != '.';
	closedir(dir);
	return count;
}

/* A fetch on another thread. */
struct fetching {
	pthread_t thread;
	struct leat_remote_file *file;
	struct leat_content content;
	struct leat_err err;
	enum leat_status status;
};

static void *
fetch_there(void *arg)
{
	struct fetching *f = arg;

	f->status = leat_staging_hash(staging, cas, f->file, true, &f->content, &f->err);
	return NULL;
}

static void
begin_fetching(struct fetching *f, const char *name)
{
	*f = (struct fetching){.file = find(name)};
	leat_err_clear(&f->err);
	assert_int_equal(pthread_create(&f->thread, NULL, fetch_there, f), 0);
	while (store_mem_counts().in_flight == 0)
		usleep(1000);
}

/* ---- tests ---- */

static void
an_object_is_fetched_once_per_version(void **state)
{
	struct leat_content first, second;
	uint64_t bytes;

	(void)state;
	store_mem_put(uri, "1,2\n", 4);
	first = hash(uri, true);
	assert_content(&first, "1,2\n", 4);
	bytes = store_mem_counts().bytes;
	assert_int_equal(bytes, 4);
	open_staging(LEAT_LOOK_NOW); /* the next build */
	second = hash(uri, true);
	assert_true(leat_content_equal(&first, &second));
	assert_int_equal(store_mem_counts().bytes, bytes);
	store_mem_put(uri, "1,3\n", 4);
	open_staging(LEAT_LOOK_NOW);
	second = hash(uri, true);
	assert_content(&second, "1,3\n", 4);
	assert_int_equal(store_mem_counts().bytes, bytes + 4);
	assert_int_equal(count_temps(), 0);
}

static void
an_empty_object_has_the_empty_content(void **state)
{
	struct leat_content content;

	(void)state;
	store_mem_put(uri, "", 0);
	content = hash(uri, true);
	assert_content(&content, "", 0);
}

static void
without_leave_to_fetch_nothing_is_read(void **state)
{
	struct leat_content first, second;

	(void)state;
	store_mem_put(uri, "1,2\n", 4);
	first = hash(uri, false);
	assert_true(leat_digest_is_stand_in(&first.digest));
	assert_int_equal(store_mem_counts().submitted, 0);
	store_mem_put(uri, "1,3\n", 4);
	open_staging(LEAT_LOOK_NOW);
	second = hash(uri, false);
	assert_true(leat_digest_is_stand_in(&second.digest));
	assert_false(leat_content_equal(&first, &second));
	second = hash(uri, true);
	assert_false(leat_digest_is_stand_in(&second.digest));
	first = hash(uri, false);
	assert_true(leat_content_equal(&first, &second));
}

static void
parts_of_a_large_object_arrive_in_any_order(void **state)
{
	enum { LEN = (37 << 20) + 11 };
	unsigned char *bytes = make_bytes(LEN, 7);
	struct leat_content content;

	(void)state;
	store_mem_put(uri, bytes, LEN);
	store_mem_set(&(struct store_mem_settings){.latency_ns = 1000000, .shuffle = 3});
	content = hash(uri, true);
	assert_content(&content, bytes, LEN);
	assert_int_equal(store_mem_counts().submitted, 10);
	assert_int_equal(store_mem_counts().most_in_flight, 8);
	free(bytes);
}

static void
an_object_that_is_replaced_while_it_is_fetched_is_fetched_again(void **state)
{
	enum { LEN = 9 << 20 };
	unsigned char *old = make_bytes(LEN, 1), *new = make_bytes(LEN - 5, 2);
	struct fetching f;

	(void)state;
	store_mem_put(uri, old, LEN);
	store_mem_hold(true);
	begin_fetching(&f, uri);
	store_mem_put(uri, new, LEN - 5);
	store_mem_hold(false);
	pthread_join(f.thread, NULL);
	assert_int_equal(f.status, LEAT_OK);
	assert_content(&f.content, new, LEN - 5);
	assert_int_equal(count_temps(), 0);
	f.content = hash(uri, true); /* is known by its new version */
	assert_content(&f.content, new, LEN - 5);
	free(old);
	free(new);
}

static void
stopping_ends_a_fetch_and_leaves_nothing(void **state)
{
	enum { LEN = 9 << 20 };
	unsigned char *bytes = make_bytes(LEN, 1);
	atomic_bool stop = false;
	struct fetching f;

	(void)state;
	store_mem_put(uri, bytes, LEN);
	assert_int_equal(leat_staging_watch(staging, &stop, NULL, NULL), LEAT_OK);
	store_mem_hold(true); /* for ever, but for the stop */
	begin_fetching(&f, uri);
	atomic_store(&stop, true);
	pthread_join(f.thread, NULL);
	assert_int_equal(f.status, LEAT_END);
	assert_int_equal(count_temps(), 0);
	store_mem_hold(false);
	leat_staging_unwatch(staging);
	f.content = hash(uri, true);
	assert_content(&f.content, bytes, LEN);
	free(bytes);
}

static void
progress_is_told_in_files_and_bytes(void **state)
{
	struct leat_hashing hashing = {0};

	(void)state;
	store_mem_put(uri, "1,2\n", 4);
	store_mem_put("mem://bucket/raw/b.csv", "1,2,3\n", 6);
	hash(uri, true);
	assert_int_equal(leat_staging_watch(staging, NULL, &hashing, NULL), LEAT_OK);
	leat_staging_count(staging, cas, find(uri)); /* is there */
	leat_staging_count(staging, cas, find("mem://bucket/raw/b.csv"));
	leat_staging_count(staging, cas, find("mem://bucket/raw/b.csv"));
	assert_int_equal(atomic_load(&hashing.fetch_files), 1);
	assert_int_equal(atomic_load(&hashing.fetch_bytes), 6);
	hash("mem://bucket/raw/b.csv", true);
	assert_int_equal(atomic_load(&hashing.fetched_files), 1);
	assert_int_equal(atomic_load(&hashing.fetched_bytes), 6);
	leat_staging_unwatch(staging);
}

static void
a_copy_that_is_gone_is_fetched_when_it_is_needed(void **state)
{
	struct leat_content content;
	struct leat_err err;
	char path[PATH_MAX];

	(void)state;
	store_mem_put(uri, "1,2\n", 4);
	content = hash(uri, true);
	leat_cas_blob_path(cas, &content.digest, path);
	assert_int_equal(unlink(path), 0);
	leat_cas_close(cas); /* which remembers what it saw */
	assert_int_equal(leat_cas_open(&cas, &mem, temp_path(&temp, ".leat"), LEAT_CAS_WRITE, NULL), LEAT_OK);
	assert_int_equal(leat_cas_begin(cas, NULL), LEAT_OK);
	content = hash(uri, true); /* a key needs no copy */
	assert_int_equal(store_mem_counts().bytes, 4);
	assert_int_equal(leat_staging_bring(staging, cas, find(uri), &content, NULL), LEAT_OK);
	assert_content(&content, "1,2\n", 4);
	assert_int_equal(store_mem_counts().bytes, 8);
	assert_int_equal(leat_staging_bring(staging, cas, find(uri), &content, NULL), LEAT_OK);
	assert_int_equal(store_mem_counts().bytes, 8);

	assert_int_equal(unlink(path), 0);
	leat_cas_forget(cas, &content);
	store_mem_put(uri, "1,3\n", 4); /* and its version is gone, too */
	leat_err_clear(&err);
	assert_int_equal(leat_staging_bring(staging, cas, find(uri), &content, &err), LEAT_DATA);
	assert_non_null(strstr(err.text, uri));
}

static void
a_failure_names_the_object_and_leaves_nothing(void **state)
{
	struct leat_content content;
	struct leat_err err;

	(void)state;
	store_mem_put(uri, "1,2\n", 4);
	store_mem_fail(uri, 0, 4, STORE_MEM_ALWAYS, LEAT_IO);
	leat_err_clear(&err);
	assert_int_equal(leat_staging_hash(staging, cas, find(uri), true, &content, &err), LEAT_IO);
	assert_non_null(strstr(err.text, uri));
	store_mem_fail(uri, 0, 4, STORE_MEM_ALWAYS, LEAT_DATA); /* it changes each time it is read */
	leat_err_clear(&err);
	assert_int_not_equal(leat_staging_hash(staging, cas, find(uri), true, &content, &err), LEAT_OK);
	assert_non_null(strstr(err.text, uri));
	assert_int_equal(count_temps(), 0);
}

static void
patterns_are_listed_once_and_sorted(void **state)
{
	const struct leat_remote_list *list, *again;
	struct leat_err err;

	(void)state;
	store_mem_put("mem://bucket/b-2.csv", "2", 1);
	store_mem_put("mem://bucket/b-1.csv", "11", 2);
	store_mem_put("mem://bucket/c-1.csv", "3", 1);
	store_mem_put("mem://bucket/d.txt", "3", 1);
	assert_int_equal(leat_staging_list(staging, "mem://bucket/{b,c,b}-*.csv", false, &list, NULL), LEAT_OK);
	assert_int_equal(list->count, 3);
	assert_string_equal(list->file[0].uri, "mem://bucket/b-1.csv");
	assert_int_equal(list->file[0].size, 2);
	assert_string_equal(list->file[2].uri, "mem://bucket/c-1.csv");
	store_mem_put("mem://bucket/b-3.csv", "2", 1);
	assert_int_equal(leat_staging_list(staging, "mem://bucket/{b,c,b}-*.csv", false, &again, NULL), LEAT_OK);
	assert_ptr_equal(list, again);
	assert_ptr_equal(find("mem://bucket/b-2.csv"), &list->file[1]);
	leat_err_clear(&err);
	assert_int_equal(leat_staging_list(staging, "mem://bucket/x*", false, &list, &err), LEAT_DATA);
	assert_non_null(strstr(err.text, "mem://bucket/x*"));
	assert_int_equal(leat_staging_list(staging, "mem://bucket/none", true, &list, NULL), LEAT_DATA);
}

static void
lists_are_remembered_for_those_who_do_not_ask(void **state)
{
	const struct leat_remote_list *list;

#define LONG_VERSION "0000000000000000000000000000000000000000000000000000000000000000000000000000000000"

	(void)state;
	store_mem_put("mem://bucket/b 1.csv", "11", 2);
	store_mem_put(uri, "1", 1);
	assert_int_equal(leat_staging_list(staging, "mem://bucket/b*", false, &list, NULL), LEAT_OK);
	find(uri);
	assert_int_equal(leat_staging_remember(staging, true, NULL), LEAT_OK);
	store_mem_remove("mem://bucket/b 1.csv");
	store_mem_remove(uri);
	open_staging(LEAT_LOOK_BACK);
	assert_int_equal(leat_staging_list(staging, "mem://bucket/b*", false, &list, NULL), LEAT_OK);
	assert_int_equal(list->count, 1);
	assert_string_equal(list->file[0].uri, "mem://bucket/b 1.csv");
	assert_int_equal(list->file[0].size, 2);
	assert_int_equal(find(uri)->size, 1);
	open_staging(LEAT_LOOK_NOW);
	assert_int_equal(leat_staging_list(staging, "mem://bucket/b*", false, &list, NULL), LEAT_DATA);
	open_staging(LEAT_LOOK_TRY); /* the server says that there is none: that is an answer */
	assert_int_equal(leat_staging_list(staging, "mem://bucket/b*", false, &list, NULL), LEAT_DATA);
	assert_null(leat_staging_doubt(staging));
}

static void
a_damaged_memory_is_as_good_as_none(void **state)
{
	static const char *const damaged[] = {
		"",
		"leat remote 2\n",
		"leat remote 1\n1 - mem://x\n",
		"leat remote 1\n? mem://bucket/b*\n",
		"leat remote 1\n? mem://bucket/b*\n1 - mem://bucket/b",
		"leat remote 1\n? mem://bucket/b*\n1 0 mem://bucket/b\n",
		"leat remote 1\n? mem://bucket/b*\nx - mem://bucket/b\n",
		"leat remote 1\n? mem://bucket/b*\n1 - \n",
		"leat remote 1\n? \n",
		"leat remote 1\n? mem://bucket/b*\n1 " LONG_VERSION " mem://bucket/b\n",
	};
	const struct leat_remote_list *list;

	(void)state;
	for (size_t i = 0; i < sizeof(damaged) / sizeof(*damaged); i++) {
		temp_write(&temp, ".leat/remote", damaged[i], strlen(damaged[i]));
		open_staging(LEAT_LOOK_BACK);
		assert_int_equal(leat_staging_list(staging, "mem://bucket/b*", false, &list, NULL), LEAT_DATA);
	}
	temp_write(&temp, ".leat/remote", "leat remote 1\n? mem://bucket/b*\n1 - mem://bucket/b\n", 51);
	open_staging(LEAT_LOOK_BACK); /* while this one holds */
	assert_int_equal(leat_staging_list(staging, "mem://bucket/b*", false, &list, NULL), LEAT_OK);
}

int
main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(an_object_is_fetched_once_per_version, setup, teardown),
		cmocka_unit_test_setup_teardown(an_empty_object_has_the_empty_content, setup, teardown),
		cmocka_unit_test_setup_teardown(without_leave_to_fetch_nothing_is_read, setup, teardown),
		cmocka_unit_test_setup_teardown(parts_of_a_large_object_arrive_in_any_order, setup, teardown),
		cmocka_unit_test_setup_teardown(an_object_that_is_replaced_while_it_is_fetched_is_fetched_again, setup,
	                                        teardown),
		cmocka_unit_test_setup_teardown(stopping_ends_a_fetch_and_leaves_nothing, setup, teardown),
		cmocka_unit_test_setup_teardown(progress_is_told_in_files_and_bytes, setup, teardown),
		cmocka_unit_test_setup_teardown(a_copy_that_is_gone_is_fetched_when_it_is_needed, setup, teardown),
		cmocka_unit_test_setup_teardown(a_failure_names_the_object_and_leaves_nothing, setup, teardown),
		cmocka_unit_test_setup_teardown(patterns_are_listed_once_and_sorted, setup, teardown),
		cmocka_unit_test_setup_teardown(lists_are_remembered_for_those_who_do_not_ask, setup, teardown),
		cmocka_unit_test_setup_teardown(a_damaged_memory_is_as_good_as_none, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
