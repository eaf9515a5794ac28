/* test_store_confine.c - lists, folders and their indexes name only what is in their folder, unless `root` allows more
 *
 * Has the store mem:, because URLs are confined, too. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "format/confine.h"
#include "format/sidecar.h"
#include "support/logged.h"
#include "support/source.h"
#include "support/store_mem.h"
#include "support/temp.h"
#include "support/trace.h"

static struct temp temp;
static struct leat_options options; /* with the log */
static char text[8000];

/* What `form` says, with TEMP for the temporary folder; valid until the next call but one. */
static const char *
with_temp(const char *form)
{
	static char buf[2][8000];
	static int turn;
	char *out = buf[turn ^= 1];
	const char *at;

	*out = '\0';
	while ((at = strstr(form, "TEMP"))) {
		sprintf(out + strlen(out), "%.*s%s", (int)(at - form), form, temp.folder);
		form = at + 4;
	}
	return strcat(out, form);
}

static void
put(const char *name, const char *content)
{
	char path[500];

	snprintf(path, sizeof path, "%s", name);
	for (char *slash = strchr(path, '/'); slash; slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		mkdir(temp_path(&temp, path), 0777);
		*slash = '/';
	}
	temp_write(&temp, name, content, strlen(content));
}

/* As if it had been changed some seconds ago: what was changed just now is not kept in an index. */
static void
age(const char *name)
{
	struct timespec past[2] = {{1000000000, 0}, {1000000000, 0}};

	assert_int_equal(utimensat(AT_FDCWD, temp_path(&temp, name), past, 0), 0);
}

static void
put_list(const char *rows)
{
	snprintf(text, sizeof text, "path\n%s\n", with_temp(rows));
	put("data/list.csv", text);
	age("data/list.csv");
}

static void
link_to(const char *target, const char *name)
{
	char where[600];

	snprintf(where, sizeof where, "%s", with_temp(target));
	assert_int_equal(symlink(where, temp_path(&temp, name)), 0);
}

static int
setup(void **state)
{
	(void)state;
	temp_make(&temp);
	setenv("XDG_CACHE_HOME", temp_path(&temp, "cache"), 1);
	put("data/1.jpg", "one");
	put("data/in/2.jpg", "two");
	put("other/deep/secret.jpg", "secret");
	put("other/secret2.jpg", "secret2");
	trace_options(&options);
	options.log = write_log;
	memset(&logged, 0, sizeof logged);
	return 0;
}

static int
teardown(void **state)
{
	(void)state;
	store_mem_reset();
	temp_remove(&temp);
	return 0;
}

static void
expect_images(const char *spec, const char *const *images, int64_t count)
{
	struct whole whole;

	whole_open(&whole, with_temp(spec), &options);
	assert_int_equal(whole.count, count);
	for (int64_t i = 0; i < count; i++)
		whole_expect_text(&whole, "image", i, images[i]);
	whole_close(&whole);
}

/* The error names the parts; used as it says, the spec opens. */
static void
expect_remedy(const char *spec, const char *part, const char *remedy)
{
	struct leat_feed *feed;
	struct leat_err err;
	char batched[9000];

	snprintf(batched, sizeof batched, "%s | batch(1)", with_temp(spec));
	assert_int_equal(leat_open(batched, NULL, &feed, &err), LEAT_INVALID);
	if (!strstr(err.text, with_temp(part)))
		fail_msg("%s\nexpected %s", err.text, with_temp(part));
	if (!strstr(err.text, with_temp(remedy)))
		fail_msg("%s\nexpected %s", err.text, with_temp(remedy));
	snprintf(batched, sizeof batched, "%s | batch(1)", strstr(err.text, "; if it may be read, use ") + 25);
	if (leat_open(batched, NULL, &feed, &err) != LEAT_OK)
		fail_msg("%s", err.text);
	leat_close(feed);
}

/* ---- lists ---- */

static void
a_list_may_name_what_is_in_its_folder(void **state)
{
	(void)state;
	put_list("1.jpg\nTEMP/data/in/2.jpg\nin/../1.jpg\nin/../../data/in/2.jpg\nfile://TEMP/data/%31.jpg");
	for (int again = 0; again < 2; again++) {
		expect_images("list('TEMP/data/list.csv')", (const char *[]){"one", "two", "one", "two", "one"}, 5);
		assert_true(temp_exists(&temp, "data/.list.csv.leatidx"));
	}
	assert_int_equal(logged.warn, 0);
	assert_int_equal(logged.info, 1); /* indexed, once */
}

static void
a_path_out_of_the_folder_is_refused_with_the_option_that_allows_it(void **state)
{
	static const char *const rows[] = {
		"1.jpg\n../other/deep/secret.jpg",
		"1.jpg\nTEMP/other/deep/secret.jpg",
		"1.jpg\nfile://TEMP/other/deep/secret.jpg",
		"1.jpg\nin/%2e%2e/../../../other/deep/secret.jpg",
	};

	(void)state;
	mkdir(temp_path(&temp, "data/in/%2e%2e"), 0777);
	for (size_t i = 0; i < 4; i++) {
		put_list(rows[i]);
		expect_remedy("list('TEMP/data/list.csv')", "line 3: '",
		              "secret.jpg' is in 'TEMP/other/deep', outside 'TEMP/data'; if it may be read, use "
		              "list('TEMP/data/list.csv', root='TEMP/other/deep')");
	}
	put_list("/etc/passwd");
	expect_refused(with_temp("list('TEMP/data/list.csv')"), LEAT_INVALID, "line 2: '/etc/passwd' is in '/etc'");
}

static void
one_root_is_named_for_all_rows(void **state)
{
	(void)state;
	put_list("../other/deep/secret.jpg\n1.jpg\n../other/secret2.jpg");
	expect_remedy("list('TEMP/data/list.csv')", "line 2: '../other/deep/secret.jpg'",
	              "list('TEMP/data/list.csv', root='TEMP/other')");
	expect_remedy("list('TEMP/data/list.csv', root='TEMP/other/deep')", "outside 'TEMP/data' and 'TEMP/other/deep'",
	              "list('TEMP/data/list.csv', root='TEMP/other')");
	expect_images("list('TEMP/data/list.csv', root='/')", (const char *[]){"secret", "one", "secret2"}, 3);
	/* What was allowed once is not allowed by the index of that time. */
	expect_refused(with_temp("list('TEMP/data/list.csv')"), LEAT_INVALID, "outside");
	expect_refused(with_temp("list('TEMP/data/list.csv', root='TEMP/none')"), LEAT_IO, "root: there is no folder");
}

static void
names_that_only_begin_alike_are_outside(void **state)
{
	(void)state;
	put("data2/1.jpg", "no");
	put_list("../data2/1.jpg");
	expect_refused(with_temp("list('TEMP/data/list.csv')"), LEAT_INVALID, "is in");
}

static void
links_in_a_path_count(void **state)
{
	(void)state;
	link_to("TEMP/other", "data/away");
	put_list("away/secret2.jpg");
	expect_remedy("list('TEMP/data/list.csv')", "'away/secret2.jpg' is in 'TEMP/other', outside 'TEMP/data'",
	              "root='TEMP/other'");
	link_to("../../other/deep/secret.jpg", "data/in/away.jpg");
	put_list("in/away.jpg");
	expect_remedy("list('TEMP/data/list.csv')", "'TEMP/data/in/away.jpg' is a link to 'TEMP/other/deep/secret.jpg'",
	              "root='TEMP/other/deep'");
	link_to("../1.jpg", "data/in/near.jpg");
	link_to("TEMP/data", "same");
	put_list("in/near.jpg\nTEMP/same/1.jpg");
	expect_images("list('TEMP/same/list.csv')", (const char *[]){"one", "one"}, 2);
}

static void
a_missing_file_is_a_bad_sample_only_inside(void **state)
{
	struct whole whole;

	(void)state;
	put_list("1.jpg\nnone/../none.jpg");
	options.on_error = LEAT_ON_ERROR_SKIP;
	whole_open(&whole, with_temp("list('TEMP/data/list.csv')"), &options);
	assert_int_equal(whole.count, 1);
	whole_close(&whole);
	put_list("1.jpg\nnone/../../none.jpg");
	expect_refused(with_temp("list('TEMP/data/list.csv')"), LEAT_INVALID, "'none/../../none.jpg' is in");
}

static void
many_folders_are_all_checked(void **state)
{
	FILE *csv;

	(void)state;
	put("data/list.csv", "");
	csv = fopen(temp_path(&temp, "data/list.csv"), "w");
	assert_non_null(csv);
	fprintf(csv, "path\n");
	for (int i = 0; i < 3000; i++)
		fprintf(csv, "none%d/in/1.jpg\nnone%d/1.jpg\n", i, i / 2);
	fprintf(csv, "none7/../../other/secret2.jpg\n");
	fclose(csv);
	expect_refused(with_temp("list('TEMP/data/list.csv')"), LEAT_INVALID, "line 6002: 'none7/../../other/secret2");
}

/* ---- folders ---- */

static void
a_link_in_a_folder_may_lead_only_into_it(void **state)
{
	(void)state;
	put("data/dog/3.jpg", "three");
	link_to("../1.jpg", "data/dog/1.jpg");
	link_to("../in", "data/dog/more");
	link_to("TEMP/data", "same");
	expect_images("folder('TEMP/same')", (const char *[]){"one", "three", "two", "two"}, 4);
	link_to("TEMP/other/deep/secret.jpg", "data/dog/9.jpg");
	expect_remedy("folder('TEMP/same')",
	              "'TEMP/same/dog/9.jpg' is a link to 'TEMP/other/deep/secret.jpg', outside 'TEMP/data'",
	              "folder('TEMP/same', root='TEMP/other/deep')");
	link_to("TEMP/other/secret2.jpg", "data/dog/8.jpg");
	expect_remedy("folder('TEMP/data')", "'TEMP/data/dog/8.jpg' is a link", "root='TEMP/other'");
	/* What is not read may lead anywhere. */
	unlink(temp_path(&temp, "data/dog/8.jpg"));
	unlink(temp_path(&temp, "data/dog/9.jpg"));
	link_to("/etc/passwd", "data/in/notes.txt");
	link_to("/etc/no such file", "data/in/9.txt");
	expect_images("folder('TEMP/data')", (const char *[]){"one", "three", "two", "two"}, 4);
}

static void
a_linked_class_is_followed_only_with_root(void **state)
{
	(void)state;
	link_to("TEMP/other", "data/zebra");
	expect_remedy("folder('TEMP/data')", "'TEMP/data/zebra' is a link to 'TEMP/other', outside 'TEMP/data'",
	              "folder('TEMP/data', root='TEMP/other')");
	age("data");
	age("data/in");
	age("other");
	age("other/deep");
	expect_images("folder('TEMP/data', root='TEMP/other')", (const char *[]){"two", "secret2", "secret"}, 3);
	assert_true(temp_exists(&temp, ".data.leatidx"));
	expect_refused(with_temp("folder('TEMP/data')"), LEAT_INVALID, "zebra' is a link");
}

/* ---- root is a location ---- */

static void
root_is_not_part_of_what_a_checkpoint_compares(void **state)
{
	struct leat_feed *feed;
	char *checkpoint;
	struct leat_err err;

	(void)state;
	put_list("1.jpg\nin/2.jpg");
	for (int i = 0; i < 2; i++) {
		const char *const spec[2][2] = {
			{"list('TEMP/data/list.csv') | batch(1)", "list('TEMP/data/list.csv', root='/') | batch(1)"},
			{"folder('TEMP/data') | batch(1)", "folder('TEMP/data', root='TEMP') | batch(1)"},
		};

		feed = trace_open(with_temp(spec[i][0]), &options);
		assert_int_equal(leat_save(feed, &checkpoint, &err), LEAT_OK);
		assert_null(strstr(checkpoint, "root"));
		leat_close(feed);
		feed = trace_open(with_temp(spec[i][1]), &options);
		if (leat_restore(feed, checkpoint, &err) != LEAT_OK)
			fail_msg("%s", err.text);
		free(checkpoint);
		leat_close(feed);
	}
}

/* ---- URLs ---- */

static void
a_list_of_urls_stays_in_its_folder(void **state)
{
	static const char list[] = "path\n1.jpg\nmem://bucket/data/2.jpg\n";
	static const char *const outside[] = {"mem://other/1.jpg", "mem://bucket/secret.jpg", "../secret.jpg",
	                                      "mem://bucket/data/../secret.jpg", "%2e%2E/secret.jpg"};

	(void)state;
	store_mem_put("mem://bucket/data/1.jpg", "one", 3);
	store_mem_put("mem://bucket/data/2.jpg", "two", 3);
	store_mem_put("mem://bucket/secret.jpg", "secret", 6);
	store_mem_put("mem://other/1.jpg", "other", 5);
	store_mem_put("mem://bucket/data/list.csv", list, sizeof list - 1);
	for (int again = 0; again < 2; again++)
		expect_images("list('mem://bucket/data/list.csv')", (const char *[]){"one", "two"}, 2);
	for (size_t i = 0; i < 5; i++) {
		int len = snprintf(text, sizeof text, "path\n%s\n", outside[i]);

		store_mem_put("mem://bucket/data/list.csv", text, (size_t)len);
		expect_refused("list('mem://bucket/data/list.csv')", LEAT_INVALID, "outside 'mem://bucket/data'");
	}
	store_mem_put("mem://bucket/data/list.csv", "path\nmem://other/1.jpg\n", 23);
	expect_remedy("list('mem://bucket/data/list.csv')", "'mem://other/1.jpg' is in 'mem://other'",
	              "list('mem://bucket/data/list.csv', root='mem://other')");
	for (int again = 0; again < 2; again++)
		expect_images("list('mem://bucket/data/list.csv', root='mem://other')", (const char *[]){"other"}, 1);
	store_mem_put("mem://bucket/data/list.csv", "path\n/etc/passwd\n", 17);
	expect_refused("list('mem://bucket/data/list.csv', root='/')", LEAT_DATA, "write its whole URI");
	store_mem_put("mem://bucket/data/list.csv", "path\nfile:///etc/passwd\n", 24);
	expect_refused("list('mem://bucket/data/list.csv')", LEAT_INVALID, "'/etc/passwd' is in '/etc'");
}

static void
a_local_list_names_another_store_only_with_root(void **state)
{
	(void)state;
	store_mem_put("mem://other/a/1.jpg", "other", 5);
	put_list("mem://other/a/1.jpg");
	expect_remedy("list('TEMP/data/list.csv')", "'mem://other/a/1.jpg' is in 'mem://other/a', outside 'TEMP/data'",
	              "list('TEMP/data/list.csv', root='mem://other/a')");
	expect_images("list('TEMP/data/list.csv', root='mem://other')", (const char *[]){"other"}, 1);
	expect_images("list('TEMP/data/list.csv', root='mem://other')", (const char *[]){"other"}, 1);
	put_list("mem://other/a/1.jpg\n1.jpg");
	expect_refused(with_temp("list('TEMP/data/list.csv', root='mem://other')"), LEAT_DATA, "in another store");
	put_list("nosuch://x/1.jpg");
	expect_refused(with_temp("list('TEMP/data/list.csv')"), LEAT_UNSUPPORTED, "line 2: 'nosuch://x/1.jpg'");
}

/* ---- indexes ---- */

/* Writes `to` in place of each `from`, of the same length, into an index, whose checksum is then right. */
static void
forge(const char *index, const char *from, const char *to)
{
	size_t len, size = strlen(from), found = 0;
	unsigned char *bytes = temp_read(temp_path(&temp, index), &len);
	struct leat_sidecar_head *head = (struct leat_sidecar_head *)bytes;

	assert_int_equal(size, strlen(to));
	for (size_t i = 0; i + size <= len; i++) {
		if (memcmp(bytes + i, from, size) == 0) {
			memcpy(bytes + i, to, size);
			found++;
		}
	}
	assert_true(found > 0);
	head->crc = leat_sidecar_crc(bytes, len);
	temp_write(&temp, index, bytes, len);
	free(bytes);
}

static void
an_index_names_only_what_its_folder_has(void **state)
{
	static const char *const forged[] = {"cat/../../x.jpg", "../a/b/c/x2.jpg", "/tmp/a/b/cc.jpg",
	                                     "cat//b/more.jpg", "cat/./b/mor.jpg", "mem://bb/mo.jpg",
	                                     "..//..//../.jpg", "cat/more/bbjpg/"};
	static const char *const folders[] = {"pets",        "pets/cat",      "pets/cat/a",   "pets/cat/a/b",
	                                      "pets/cat/.a", "pets/cat/.a/b", "pets/cat/more"};

	(void)state;
	put("x.jpg", "secret");
	put("pets/cat/a/b/m.jpg", "cat");
	put("pets/cat/.a/b/.jpg", "hidden");
	put("pets/cat/more/bb.jpg", "bb");
	for (size_t i = 0; i < sizeof forged / sizeof *forged; i++) {
		for (size_t k = 0; k < sizeof folders / sizeof *folders; k++)
			age(folders[k]);
		expect_images("folder('TEMP/pets')", (const char *[]){"hidden", "cat", "bb"}, 3);
		memset(&logged, 0, sizeof logged);
		forge(".pets.leatidx", "cat/more/bb.jpg", forged[i]);
		expect_images("folder('TEMP/pets')", (const char *[]){"hidden", "cat", "bb"}, 3);
		assert_int_equal(logged.warn, 1);
	}
}

static void
an_index_of_a_list_names_only_what_the_list_may(void **state)
{
	static const char *const forged[] = {"../other/secret2.jpg", "//etc//..////passwd0", "mem://bucket/dat.jpg",
	                                     "file:///etc//passwd0"};

	(void)state;
	put("data/in/deep/more/22.jpg", "much");
	put_list("in/deep/more//22.jpg");
	for (size_t i = 0; i < sizeof forged / sizeof *forged; i++) {
		expect_images("list('TEMP/data/list.csv')", (const char *[]){"much"}, 1);
		memset(&logged, 0, sizeof logged);
		forge("data/.list.csv.leatidx", "in/deep/more//22.jpg", forged[i]);
		expect_images("list('TEMP/data/list.csv')", (const char *[]){"much"}, 1);
		assert_int_equal(logged.warn, 1);
	}
}

static void
plain_names_have_no_dots_and_empty_parts(void **state)
{
	static const char *const plain[] = {"a", "...", "a/b", ".a", "a./..b", "a/.../b", "a b/\xff"};
	static const char *const others[] = {"", ".", "..", "/", "/a", "a/", "a//b", "a/./b", "a/..", "../a", "a/../b"};

	(void)state;
	for (size_t i = 0; i < sizeof plain / sizeof *plain; i++)
		assert_true(leat_is_plain_name(plain[i], strlen(plain[i])));
	for (size_t i = 0; i < sizeof others / sizeof *others; i++)
		assert_false(leat_is_plain_name(others[i], strlen(others[i])));
	assert_false(leat_is_plain_name("a\0b", 3));
}

static void
remove_indexes(void)
{
	unlink(temp_path(&temp, "data/.list.csv.leatidx"));
}

static void
no_memory_is_an_error(void **state)
{
	(void)state;
	link_to("../1.jpg", "data/in/1.jpg");
	put_list("TEMP/data/1.jpg\nin/../in/2.jpg\nin/1.jpg\n../other/secret2.jpg");
	promise_memory_errors(with_temp("list('TEMP/data/list.csv', root='TEMP/other') | batch(2)"), remove_indexes);
	promise_memory_errors(with_temp("list('TEMP/data/list.csv', root='TEMP/other') | batch(2)"), NULL);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_list_may_name_what_is_in_its_folder),
		TEST(a_path_out_of_the_folder_is_refused_with_the_option_that_allows_it),
		TEST(one_root_is_named_for_all_rows),
		TEST(names_that_only_begin_alike_are_outside),
		TEST(links_in_a_path_count),
		TEST(a_missing_file_is_a_bad_sample_only_inside),
		TEST(many_folders_are_all_checked),
		TEST(a_link_in_a_folder_may_lead_only_into_it),
		TEST(a_linked_class_is_followed_only_with_root),
		TEST(root_is_not_part_of_what_a_checkpoint_compares),
		TEST(a_list_of_urls_stays_in_its_folder),
		TEST(a_local_list_names_another_store_only_with_root),
		TEST(an_index_names_only_what_its_folder_has),
		TEST(an_index_of_a_list_names_only_what_the_list_may),
		TEST(plain_names_have_no_dots_and_empty_parts),
		TEST(no_memory_is_an_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
