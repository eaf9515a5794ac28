/* test_cas.c - the content store keeps what it was given, and gives it back */
#include "support/cas.h"

#include <errno.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/un.h>

static char path[PATH_MAX];

static void
write_file(const char *name, const char *bytes, mode_t mode)
{
	FILE *file = fopen(name, "w");

	assert_non_null(file);
	fputs(bytes, file);
	fclose(file);
	chmod(name, mode);
}

static void
read_back(struct store *store, const struct leat_digest *digest, const char *expected)
{
	char *bytes;
	size_t len;

	must(leat_cas_read(store->cas, digest, 1000, &bytes, &len, err));
	assert_string_equal(bytes, expected);
	assert_int_equal(len, strlen(expected));
	leat_free(&store->mem, bytes);
}

static void
bytes_are_kept_once(void **state)
{
	struct store *store = *state;
	struct leat_digest first, second;

	store_open(store, LEAT_CAS_WRITE);
	must(leat_cas_put_bytes(store->cas, "hello", 5, &first, err));
	must(leat_cas_put_bytes(store->cas, "hello", 5, &second, err));
	assert_true(leat_digest_equal(&first, &second));
	assert_int_equal(store_count(store, "cas"), 1);
	read_back(store, &first, "hello");
	store_close(store);
	assert_int_equal(store_count(store, "tmp"), 0);
	assert_int_equal(store_count(store, "runs"), 0);
}

static void
a_taken_file_is_renamed_and_protected(void **state)
{
	struct store *store = *state;
	struct leat_content content;
	struct stat made, kept;

	store_open(store, LEAT_CAS_WRITE);
	store_make(store, "output", path);
	stat(path, &made);
	must(leat_cas_take(store->cas, path, &content, err));
	assert_int_equal(access(path, F_OK), -1);
	leat_cas_blob_path(store->cas, &content.digest, path);
	assert_int_equal(stat(path, &kept), 0);
	assert_int_equal(kept.st_ino, made.st_ino);
	assert_int_equal(kept.st_mode & 0777, 0444);
	assert_int_equal(content.bytes, 6);
	assert_int_equal(content.kind, LEAT_CONTENT_FILE);
	assert_true(leat_cas_has(store->cas, &content));
}

static void
a_file_with_a_second_name_is_copied(void **state)
{
	struct store *store = *state;
	const char *mine = temp_write(&store->temp, "mine", "precious", 8);
	struct leat_content content;
	char blob[PATH_MAX];
	struct stat file;

	store_open(store, LEAT_CAS_WRITE);
	leat_cas_temp_path(store->cas, path);
	assert_int_equal(link(mine, path), 0);
	must(leat_cas_take(store->cas, path, &content, err));
	read_back(store, &content.digest, "precious");
	assert_int_equal(stat(mine, &file), 0);
	assert_int_equal(file.st_nlink, 1);
	assert_true(file.st_mode & S_IWUSR);

	/* A blob that was cut is replaced. */
	leat_cas_blob_path(store->cas, &content.digest, blob);
	chmod(blob, 0600);
	assert_int_equal(truncate(blob, 3), 0);
	assert_int_equal(link(mine, path), 0);
	must(leat_cas_take(store->cas, path, &content, err));
	read_back(store, &content.digest, "precious");
}

/* A folder with all that may be in one. */
static struct leat_content
take_folder(struct store *store)
{
	struct leat_content content;
	char name[PATH_MAX + 50];

	leat_cas_temp_path(store->cas, path);
	mkdir(path, 0777);
	snprintf(name, sizeof name, "%s/data", path);
	write_file(name, "12345", 0600);
	snprintf(name, sizeof name, "%s/run me", path);
	write_file(name, "#!/bin/sh\n", 0755);
	snprintf(name, sizeof name, "%s/.hidden", path);
	write_file(name, "h", 0);
	snprintf(name, sizeof name, "%s/sub", path);
	mkdir(name, 0755);
	snprintf(name, sizeof name, "%s/sub/empty", path);
	mkdir(name, 0755);
	snprintf(name, sizeof name, "%s/sub/same", path);
	write_file(name, "12345", 0644);
	snprintf(name, sizeof name, "%s/sub/link", path);
	assert_int_equal(symlink("../data", name), 0);
	snprintf(name, sizeof name, "%s/sub", path);
	chmod(name, 0555);
	must(leat_cas_take(store->cas, path, &content, err));
	return content;
}

static void
a_folder_becomes_a_tree_and_a_view_gives_it_back(void **state)
{
	struct store *store = *state;
	struct leat_content content, again;
	char name[PATH_MAX + 50];
	struct stat file, blob;
	unsigned char *bytes;
	size_t len;

	store_open(store, LEAT_CAS_WRITE);
	content = take_folder(store);
	assert_int_equal(access(path, F_OK), -1);
	assert_int_equal(content.kind, LEAT_CONTENT_FOLDER);
	assert_int_equal(content.bytes, 5 + 10 + 1 + 5);
	assert_true(leat_cas_has(store->cas, &content));
	again = take_folder(store);
	assert_true(leat_content_equal(&content, &again));

	must(leat_cas_view(store->cas, &content, path, err));
	snprintf(name, sizeof name, "%s/sub/link", path);
	bytes = temp_read(name, &len);
	assert_memory_equal(bytes, "12345", 5);
	free(bytes);
	snprintf(name, sizeof name, "%s/sub/same", path);
	assert_int_equal(lstat(name, &file), 0);
	assert_true(S_ISREG(file.st_mode));
	snprintf(name, sizeof name, "%s/data", path);
	assert_int_equal(lstat(name, &blob), 0);
	assert_int_equal(file.st_ino, blob.st_ino); /* hard links */
	snprintf(name, sizeof name, "%s/run me", path);
	assert_int_equal(access(name, X_OK), 0);
	snprintf(name, sizeof name, "%s/sub/empty", path);
	assert_int_equal(rmdir(name), 0);
}

static void
a_view_that_a_command_wrote_to_is_made_again(void **state)
{
	struct store *store = *state;
	struct leat_content content;
	char name[PATH_MAX + 50], first[PATH_MAX];

	store_open(store, LEAT_CAS_WRITE);
	content = take_folder(store);
	must(leat_cas_view(store->cas, &content, first, err));
	snprintf(name, sizeof name, "%s/junk", first);
	write_file(name, "junk", 0644);
	must(leat_cas_view(store->cas, &content, path, err));
	assert_string_equal(path, first);
	assert_int_equal(access(name, F_OK), -1);
	snprintf(name, sizeof name, "%s/data", first);
	assert_int_equal(access(name, F_OK), 0);
}

static void
an_executable_is_shown_as_one(void **state)
{
	struct store *store = *state;
	struct leat_content content;

	store_open(store, LEAT_CAS_WRITE);
	store_make(store, "#!/bin/sh\nexit 3\n", path);
	chmod(path, 0755);
	must(leat_cas_take(store->cas, path, &content, err));
	assert_int_equal(content.kind, LEAT_CONTENT_EXECUTABLE);
	must(leat_cas_view(store->cas, &content, path, err));
	assert_int_equal(WEXITSTATUS(system(path)), 3);
}

static void
odd_outputs_are_refused(void **state)
{
	struct store *store = *state;
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	struct leat_content content;
	struct leat_err err;
	char name[PATH_MAX + 50];
	int fd;

	store_open(store, LEAT_CAS_WRITE);
	leat_cas_temp_path(store->cas, path);
	assert_int_equal(leat_cas_take(store->cas, path, &content, NULL), LEAT_DATA); /* nothing there */
	mkfifo(path, 0666);
	leat_err_clear(&err);
	assert_int_equal(leat_cas_take(store->cas, path, &content, &err), LEAT_DATA);
	assert_non_null(strstr(err.text, "fifo"));
	unlink(path);
	snprintf(address.sun_path, sizeof address.sun_path, "%s/socket", store->temp.folder);
	fd = socket(AF_UNIX, SOCK_STREAM, 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof address), 0);
	close(fd);
	assert_int_equal(leat_cas_take(store->cas, address.sun_path, &content, NULL), LEAT_DATA);
	assert_int_equal(symlink("/etc/passwd", path), 0);
	assert_int_equal(leat_cas_take(store->cas, path, &content, NULL), LEAT_DATA);
	unlink(path);
	mkdir(path, 0777);
	snprintf(name, sizeof name, "%s/link", path);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(symlink(i == 0 ? "/etc" : i == 1 ? "../x" : "a/../../x", name), 0);
		leat_err_clear(&err);
		assert_int_equal(leat_cas_take(store->cas, path, &content, &err), LEAT_DATA);
		assert_non_null(strstr(err.text, "outside"));
		unlink(name);
	}
}

static void
folders_too_deep_are_refused(void **state)
{
	struct store *store = *state;
	struct leat_content content;
	char name[PATH_MAX];

	store_open(store, LEAT_CAS_WRITE);
	leat_cas_temp_path(store->cas, path);
	snprintf(name, sizeof name, "%s", path);
	for (int i = 0; i < 200; i++) {
		mkdir(name, 0777);
		strcat(name, "/d");
	}
	assert_int_equal(leat_cas_take(store->cas, path, &content, NULL), LEAT_LIMIT);
}

/* Few bytes that name 2^40 files. */
static void
a_tree_that_names_billions_of_files_takes_no_time(void **state)
{
	struct store *store = *state;
	struct leat_content content;
	struct leat_str tree;
	struct leat_digest digest;

	store_open(store, LEAT_CAS_WRITE);
	must(leat_cas_put_bytes(store->cas, "", 0, &digest, err));
	content = (struct leat_content){.digest = digest, .kind = LEAT_CONTENT_FILE};
	for (int depth = 0; depth < 40; depth++) {
		leat_str_init(&tree, &store->mem, SIZE_MAX);
		must(leat_tree_add(&tree, "a", &content, err));
		must(leat_tree_add(&tree, "b", &content, err));
		must(leat_cas_put_tree(store->cas, &tree, &content, err));
		leat_str_free(&tree);
	}
	assert_true(leat_cas_has(store->cas, &content)); /* folders that were found are not read again */
}

static void
what_is_gone_is_missed(void **state)
{
	struct store *store = *state;
	struct leat_content content, folder;
	char *bytes;
	size_t len;

	store_open(store, LEAT_CAS_WRITE);
	content = store_take(store, "x");
	folder = take_folder(store);
	store_close(store);
	store_open(store, LEAT_CAS_WRITE);
	leat_cas_blob_path(store->cas, &content.digest, path);
	assert_int_equal(unlink(path), 0);
	assert_false(leat_cas_has(store->cas, &content));
	assert_int_equal(leat_cas_view(store->cas, &content, path, NULL), LEAT_DATA);
	assert_int_equal(leat_cas_read(store->cas, &content.digest, 10, &bytes, &len, NULL), LEAT_DATA);
	assert_null(bytes);
	leat_sha256("12345", 5, content.digest.byte);
	leat_cas_blob_path(store->cas, &content.digest, path);
	assert_int_equal(unlink(path), 0);
	assert_false(leat_cas_has(store->cas, &folder));
	store_take(store, "12345");
	assert_true(leat_cas_has(store->cas, &folder));
}

/* More blobs than are looked up one by one. */
static void
all_of_many_blobs_are_found(void **state)
{
	struct store *store = *state;
	struct leat_content content = {.kind = LEAT_CONTENT_FILE};
	char text[20];

	store_open(store, LEAT_CAS_WRITE);
	for (int i = 0; i < 3000; i++) {
		snprintf(text, sizeof text, "%d", i);
		must(leat_cas_put_bytes(store->cas, text, strlen(text), &content.digest, err));
	}
	store_close(store);
	store_open(store, LEAT_CAS_READ);
	for (int i = 0; i < 6000; i++) {
		leat_sha256(text, (size_t)snprintf(text, sizeof text, "%d", i), content.digest.byte);
		assert_int_equal(leat_cas_has(store->cas, &content), i < 3000);
	}
}

static void
a_blob_of_the_wrong_size_is_replaced(void **state)
{
	struct store *store = *state;
	struct leat_digest digest;

	store_open(store, LEAT_CAS_WRITE);
	must(leat_cas_put_bytes(store->cas, "right", 5, &digest, err));
	leat_cas_blob_path(store->cas, &digest, path);
	unlink(path);
	write_file(path, "", 0444);
	must(leat_cas_put_bytes(store->cas, "right", 5, &digest, err));
	read_back(store, &digest, "right");
}

static void
what_is_forgotten_is_made_again(void **state)
{
	struct store *store = *state;
	struct leat_content content;

	store_open(store, LEAT_CAS_WRITE);
	content = store_take(store, "damaged");
	leat_cas_forget(store->cas, &content);
	assert_false(leat_cas_has(store->cas, &content));
	store_take(store, "damaged");
	assert_true(leat_cas_has(store->cas, &content));
}

static void
reading_a_store_changes_nothing(void **state)
{
	struct store *store = *state;
	struct leat_content content;
	struct leat_err err;

	leat_err_clear(&err);
	assert_int_equal(leat_cas_open(&store->cas, &store->mem, store->folder, LEAT_CAS_READ, &err), LEAT_DATA);
	assert_null(store->cas);
	assert_int_equal(access(store->folder, F_OK), -1);
	store_open(store, LEAT_CAS_WRITE);
	content = store_take(store, "x");
	store_close(store);
	store_open(store, LEAT_CAS_READ);
	assert_true(leat_cas_has(store->cas, &content));
	assert_int_equal(leat_cas_put_bytes(store->cas, "y", 1, &content.digest, NULL), LEAT_INVALID);
	assert_int_equal(leat_cas_begin(store->cas, NULL), LEAT_INVALID);
	assert_int_equal(leat_index_rebuild(store->cas, NULL), LEAT_INVALID);
}

static void
a_folder_that_is_no_store_is_refused(void **state)
{
	struct store *store = *state;

	assert_int_equal(leat_cas_open(&store->cas, &store->mem, store->temp.folder, LEAT_CAS_READ, NULL), LEAT_DATA);
	mkdir(store->folder, 0777);
	write_file(store_path(store, "format"), "leat content store 2\n", 0644);
	assert_int_equal(leat_cas_open(&store->cas, &store->mem, store->folder, LEAT_CAS_READ, NULL), LEAT_UNSUPPORTED);
	assert_int_equal(leat_cas_open(&store->cas, &store->mem, store->folder, LEAT_CAS_WRITE, NULL),
	                 LEAT_UNSUPPORTED);
}

static void
names_of_runs_sort_although_the_clock_was_set_back(void **state)
{
	struct store *store = *state;
	char first[64];

	store_open(store, LEAT_CAS_WRITE);
	snprintf(first, sizeof first, "%s", leat_cas_run(store->cas));
	write_file(store_path(store, "runs/29991231T235959-1.jsonl"), "", 0644);
	store_close(store);
	store_open(store, LEAT_CAS_WRITE);
	assert_true(strcmp(leat_cas_run(store->cas), first) > 0);
	assert_true(strncmp(leat_cas_run(store->cas), "30000101T000000-", 16) == 0);
}

static void
a_run_is_locked_while_it_lives(void **state)
{
	struct store *store = *state;
	char file[PATH_MAX];
	int fd;

	store_open(store, LEAT_CAS_WRITE);
	snprintf(file, sizeof file, "%s", store_path(store, "runs/%s.open", leat_cas_run(store->cas)));
	fd = open(file, O_RDONLY);
	assert_true(fd >= 0);
	assert_int_equal(flock(fd, LOCK_SH | LOCK_NB), -1);
	assert_int_equal(errno, EWOULDBLOCK);
	store_close(store);
	assert_int_equal(flock(fd, LOCK_SH | LOCK_NB), 0);
	assert_int_equal(access(file, F_OK), -1);
	close(fd);
}

static void
each_failed_allocation_is_an_error(void **state)
{
	struct store *store = *state;
	struct leat_content content;
	enum leat_status status = LEAT_NOMEM;
	char name[PATH_MAX];
	int failures = 0;

	for (long n = 0; status != LEAT_OK; n++) {
		struct leat_cas *cas = NULL;

		assert_true(n < 1000);
		atomic_store(&store->mem.fail_after, n);
		status = leat_cas_open(&cas, &store->mem, store->folder, LEAT_CAS_WRITE, NULL);
		if (status == LEAT_OK)
			status = leat_cas_begin(cas, NULL);
		if (status == LEAT_OK) {
			leat_cas_temp_path(cas, path);
			mkdir(path, 0777);
			snprintf(name, sizeof name, "%.4000s/a", path);
			write_file(name, "a", 0755);
			status = leat_cas_take(cas, path, &content, NULL);
		}
		if (status == LEAT_OK)
			status = leat_cas_view(cas, &content, path, NULL);
		leat_cas_close(cas);
		atomic_store(&store->mem.fail_after, -1);
		assert_int_equal(store->mem.used, 0);
		assert_true(status == LEAT_OK || status == LEAT_NOMEM);
		failures += status != LEAT_OK;
	}
	assert_true(failures > 5);
}

#define test(name) cmocka_unit_test_setup_teardown(name, store_setup, store_teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		test(bytes_are_kept_once),
		test(a_taken_file_is_renamed_and_protected),
		test(a_file_with_a_second_name_is_copied),
		test(a_folder_becomes_a_tree_and_a_view_gives_it_back),
		test(a_view_that_a_command_wrote_to_is_made_again),
		test(an_executable_is_shown_as_one),
		test(odd_outputs_are_refused),
		test(folders_too_deep_are_refused),
		test(a_tree_that_names_billions_of_files_takes_no_time),
		test(what_is_gone_is_missed),
		test(all_of_many_blobs_are_found),
		test(a_blob_of_the_wrong_size_is_replaced),
		test(what_is_forgotten_is_made_again),
		test(reading_a_store_changes_nothing),
		test(a_folder_that_is_no_store_is_refused),
		test(names_of_runs_sort_although_the_clock_was_set_back),
		test(a_run_is_locked_while_it_lives),
		test(each_failed_allocation_is_an_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
