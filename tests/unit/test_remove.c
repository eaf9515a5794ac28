/* test_remove.c - folders are removed with all in them, and nothing else is */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cas/cas.h"
#include "support/temp.h"

enum { DEPTH = 60, LONG_NAME = 120 };

static struct temp temp;

static int
setup(void **state)
{
	(void)state;
	temp_make(&temp);
	assert_int_equal(mkdir(temp_path(&temp, "top"), 0777), 0);
	return 0;
}

static int
teardown(void **state)
{
	(void)state;
	temp_remove(&temp);
	return 0;
}

static int
open_top(void)
{
	int fd = open(temp_path(&temp, "top"), O_RDONLY | O_DIRECTORY);

	assert_true(fd >= 0);
	return fd;
}

/* Folders below each other, with a file in each: a path that is longer than PATH_MAX. */
static void
make_deep(mode_t mode)
{
	int folder[DEPTH + 1];
	char name[LONG_NAME + 1];

	memset(name, 'd', LONG_NAME);
	name[LONG_NAME] = '\0';
	folder[0] = open_top();
	for (int i = 0; i < DEPTH; i++) {
		assert_int_equal(mkdirat(folder[i], name, 0777), 0);
		folder[i + 1] = openat(folder[i], name, O_RDONLY | O_DIRECTORY);
		assert_true(folder[i + 1] >= 0);
		close(openat(folder[i + 1], "file", O_WRONLY | O_CREAT, 0666));
	}
	for (int i = DEPTH; i > 0; i--) {
		assert_int_equal(fchmod(folder[i], mode), 0);
		close(folder[i]);
	}
	close(folder[0]);
}

static void
folders_deeper_than_a_path_are_removed(void **state)
{
	(void)state;
	make_deep(0777);
	leat_remove_tree(temp_path(&temp, "top"));
	assert_int_equal(access(temp_path(&temp, "top"), F_OK), -1);
}

static void
read_only_folders_are_removed(void **state)
{
	(void)state;
	make_deep(0500);
	leat_remove_tree(temp_path(&temp, "top"));
	assert_int_equal(access(temp_path(&temp, "top"), F_OK), -1);
}

static void
folders_are_emptied(void **state)
{
	int fd = open_top();

	(void)state;
	assert_true(leat_empty_folder(fd));
	make_deep(0500);
	assert_true(leat_empty_folder(fd));
	close(fd);
	assert_int_equal(rmdir(temp_path(&temp, "top")), 0);
}

static void
links_are_not_followed(void **state)
{
	int fd = open_top();

	(void)state;
	assert_int_equal(mkdir(temp_path(&temp, "kept"), 0777), 0);
	temp_write(&temp, "kept/file", "text", 4);
	assert_int_equal(symlinkat("../kept", fd, "folder"), 0);
	assert_int_equal(symlinkat("../kept/file", fd, "file"), 0);
	close(fd);
	assert_int_equal(symlink("kept", temp_path(&temp, "link")), 0);
	leat_remove_tree(temp_path(&temp, "top"));
	leat_remove_tree(temp_path(&temp, "link"));
	assert_int_equal(access(temp_path(&temp, "top"), F_OK), -1);
	assert_int_equal(access(temp_path(&temp, "link"), F_OK), -1);
	assert_int_equal(access(temp_path(&temp, "kept/file"), F_OK), 0);
}

static void
files_are_removed_and_missing_ones_do_no_harm(void **state)
{
	(void)state;
	temp_write(&temp, "one", "text", 4);
	leat_remove_tree(temp_path(&temp, "one"));
	assert_int_equal(access(temp_path(&temp, "one"), F_OK), -1);
	leat_remove_tree(temp_path(&temp, "one"));
}

int
main(void)
{
#define test(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		test(folders_deeper_than_a_path_are_removed),
		test(read_only_folders_are_removed),
		test(folders_are_emptied),
		test(links_are_not_followed),
		test(files_are_removed_and_missing_ones_do_no_harm),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
