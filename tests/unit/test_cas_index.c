/* test_cas_index.c - the index finds what was made, also after it was lost */
#include "support/cas.h"

#include <errno.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "cas/index_inside.h"

/* Instead of the C library's. */
static unsigned syncs;
static bool sync_fails;

int
syncfs(int fd)
{
	syncs++;
	errno = EIO;
	return sync_fails ? -1 : (int)syscall(SYS_syncfs, fd);
}

static void
record(struct store *store, const char *command, const char *import, const char *bytes, struct action *action)
{
	struct leat_content content = store_take(store, bytes);

	store_action(action, command, import, &content);
	store_record(store, action);
}

struct seen {
	uint64_t number[100];
	size_t count, stop;
};

static bool
see(void *arg, const struct leat_made *made)
{
	struct seen *seen = arg;

	seen->number[seen->count++] = made->number;
	return seen->count == seen->stop;
}

static void
the_newest_comes_first(void **state)
{
	struct store *store = *state;
	struct seen seen = {.stop = 100};
	struct action action;
	char import[20];

	store_open(store, LEAT_CAS_WRITE);
	for (int i = 0; i < 50; i++) { /* more than are read at once */
		snprintf(import, sizeof import, "%d", i);
		record(store, "run", import, import, &action);
	}
	must(leat_index_find(store->cas, &action.stem, see, &seen, err));
	assert_int_equal(seen.count, 50);
	for (size_t i = 0; i < 50; i++)
		assert_int_equal(seen.number[i], 50 - i);
	seen = (struct seen){.stop = 3};
	must(leat_index_find(store->cas, &action.stem, see, &seen, err));
	assert_int_equal(seen.count, 3);
	action.stem.byte[31] ^= 1;
	seen = (struct seen){.stop = 1};
	must(leat_index_find(store->cas, &action.stem, see, &seen, err));
	assert_int_equal(seen.count, 0);
}

static void
learned_fields_come_back(void **state)
{
	struct store *store = *state;
	struct leat_key_field *field;
	struct leat_made made;
	struct action action;
	size_t fields;

	store_open(store, LEAT_CAS_WRITE);
	record(store, "run", "file 3 abc", "x", &action);
	assert_true(store_find(store, &action.stem, &made));
	must(leat_index_learned(store->cas, &made.learned, &field, &fields, err));
	assert_int_equal(fields, 1);
	assert_string_equal(field[0].name, "import.x");
	assert_string_equal(field[0].value, "file 3 abc");
	leat_key_fields_free(field, fields, &store->mem);
	record(store, "plain", NULL, "y", &action);
	assert_true(store_find(store, &action.stem, &made));
	must(leat_index_learned(store->cas, &made.learned, &field, &fields, err));
	assert_int_equal(fields, 0);
	made.learned.byte[0] = 1;
	assert_int_equal(leat_index_learned(store->cas, &made.learned, &field, &fields, NULL), LEAT_DATA);
}

/* What the index should answer after three actions. */
static struct action first, second, third;
static struct leat_content folder;
static char long_slice[2000];

static void
make_three(struct store *store)
{
	struct leat_content content;
	struct leat_str tree;

	memset(long_slice, 'x', sizeof long_slice - 1);
	record(store, "run 1", "i", "one", &first);
	record(store, "run 2", "i", "two", &second);
	content = store_take(store, "one"); /* made before, by the first */
	leat_str_init(&tree, &store->mem, SIZE_MAX);
	must(leat_tree_add(&tree, "a", &content, err));
	content = store_take(store, "three");
	must(leat_tree_add(&tree, "b", &content, err));
	must(leat_cas_put_tree(store->cas, &tree, &folder, err));
	leat_str_free(&tree);
	assert_int_equal(folder.bytes, 8);
	store_action(&third, "run 3", NULL, &folder);
	third.manifest.step = "other";
	third.manifest.slice = long_slice;
	third.manifest.begun_s++;
	store_record(store, &third);
}

static void
check_three(struct store *store)
{
	struct leat_digest key, digest;
	struct leat_made made;
	uint64_t number;

	assert_true(store_find(store, &first.stem, &made));
	assert_true(leat_digest_equal(&made.key, &first.manifest.key));
	assert_true(made.seconds == 1.5f);
	assert_true(leat_index_last(store->cas, "step", "", &made));
	assert_true(leat_digest_equal(&made.key, &second.manifest.key));
	assert_true(leat_index_last(store->cas, "other", long_slice, &made));
	assert_true(leat_digest_equal(&made.key, &third.manifest.key));
	assert_false(leat_index_last(store->cas, "other", "", &made));
	assert_false(leat_index_last(store->cas, "step", "x", &made));
	leat_sha256("one", 3, digest.byte);
	assert_true(leat_index_maker(store->cas, &digest, &key));
	assert_true(leat_digest_equal(&key, &first.manifest.key)); /* an output, not something in a folder */
	leat_sha256("three", 5, digest.byte);
	assert_true(leat_index_maker(store->cas, &digest, &key));
	assert_true(leat_digest_equal(&key, &third.manifest.key));
	assert_true(leat_index_maker(store->cas, &folder.digest, &key));
	assert_true(leat_digest_equal(&key, &third.manifest.key));
	assert_true(leat_index_number(store->cas, "step", 2, &key));
	assert_true(leat_digest_equal(&key, &second.manifest.key));
	assert_false(leat_index_number(store->cas, "step", 3, &key));
	assert_true(leat_cas_has(store->cas, &folder));
	if (leat_cas_run(store->cas)) {
		must(leat_index_next_number(store->cas, "step", &number, err));
		assert_true(number >= 3);
	}
}

static void
questions_are_answered_in_every_state_of_the_index(void **state)
{
	struct store *store = *state;

	store_open(store, LEAT_CAS_WRITE);
	make_three(store);
	check_three(store);
	must(leat_index_rebuild(store->cas, err));
	check_three(store);
	store_close(store);
	store_open(store, LEAT_CAS_READ);
	check_three(store);
	store_close(store);

	leat_remove_tree(store_path(store, "index")); /* a reader makes one elsewhere */
	store_open(store, LEAT_CAS_READ);
	check_three(store);
	store_close(store);
	assert_int_equal(access(store_path(store, "index"), F_OK), -1);
	store_open(store, LEAT_CAS_WRITE);
	check_three(store);
	store_close(store);
}

static void
overwrite(struct store *store, size_t keep, const char *bytes, size_t len)
{
	FILE *file = fopen(store_path(store, "index/data.mdb"), keep ? "r+" : "w");

	assert_non_null(file);
	assert_int_equal(ftruncate(fileno(file), (off_t)keep), 0);
	fwrite(bytes, 1, len, file);
	fclose(file);
}

static void
a_damaged_index_is_made_again(void **state)
{
	static const size_t keep[] = {0, 100, 4096, 8192, 12288};
	struct store *store = *state;

	store_open(store, LEAT_CAS_WRITE);
	make_three(store);
	store_close(store);
	for (size_t i = 0; i < sizeof keep / sizeof *keep; i++)
		for (int mode = LEAT_CAS_READ; mode <= LEAT_CAS_WRITE; mode++) {
			overwrite(store, keep[i], "garbage", i % 2 ? 7 : 0);
			store_open(store, (enum leat_cas_mode)mode);
			check_three(store);
			store_close(store);
		}
}

static void
two_processes_see_what_the_other_records(void **state)
{
	struct store *store = *state;
	struct leat_made made;
	struct action action;
	uint64_t number;
	int to_child[2], to_parent[2], status;
	char byte;
	pid_t child;

	assert_int_equal(pipe(to_child) | pipe(to_parent), 0);
	child = fork();
	if (child == 0) {
		alarm(60);
		store_open(store, LEAT_CAS_WRITE);
		record(store, "child", NULL, "c", &action);
		must(leat_index_next_number(store->cas, "both", &number, err));
		_exit(write(to_parent[1], "x", 1) == 1 && number == 1 && read(to_child[0], &byte, 1) == 1 ? 0 : 1);
	}
	store_open(store, LEAT_CAS_WRITE);
	store_stem("child", &action.stem);
	assert_int_equal(read(to_parent[0], &byte, 1), 1);
	assert_true(store_find(store, &action.stem, &made));
	assert_true(leat_cas_has(store->cas, &made.output));
	must(leat_index_next_number(store->cas, "both", &number, err));
	assert_int_equal(number, 2);
	assert_int_equal(write(to_child[1], "x", 1), 1);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	for (int i = 0; i < 2; i++)
		close(to_child[i]), close(to_parent[i]);
}

/* The child ended without closing its store, as if killed. */
static void
a_killed_run_loses_nothing_that_it_recorded(void **state)
{
	struct store *store = *state;
	struct action action;
	struct leat_made made;
	int status;
	pid_t child = fork();

	if (child == 0) {
		store_open(store, LEAT_CAS_WRITE);
		for (int i = 0; i < 100; i++) {
			char command[20];

			snprintf(command, sizeof command, "run %d", i);
			record(store, command, NULL, command, &action);
		}
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	assert_int_equal(store_count(store, "runs"), 1);
	syncs = 0;
	must(leat_cas_open(&store->cas, &store->mem, store->folder, LEAT_CAS_WRITE, err));
	assert_int_equal(syncs, 1); /* what it wrote is on disk before its file goes */
	assert_int_equal(store_count(store, "runs"), 0);
	must(leat_cas_begin(store->cas, err));
	for (int i = 0; i < 100; i++) {
		char command[20];

		snprintf(command, sizeof command, "run %d", i);
		store_stem(command, &action.stem);
		assert_true(store_find(store, &action.stem, &made));
		assert_true(leat_cas_has(store->cas, &made.output));
	}
}

/* The file of a run that was killed stays while the disk fails, and makes the next build check what that run made. Its
 * time, from which on things are checked, stays as well. */
static void
a_killed_run_is_suspect_until_all_is_on_disk(void **state)
{
	static const char name[] = "runs/20200101T000000-1.open";
	const struct timespec begun[2] = {{.tv_sec = 1577836800}, {.tv_sec = 1577836800}};
	struct store *store = *state;
	struct stat file;
	char boot[64];
	FILE *run;

	store_open(store, LEAT_CAS_WRITE);
	store_close(store);
	run = fopen(store_path(store, name), "w");
	fprintf(run, "%s 1\n", leat_boot_id(boot));
	fclose(run);
	assert_int_equal(utimensat(AT_FDCWD, store_path(store, name), begun, 0), 0);
	sync_fails = true;
	must(leat_cas_open(&store->cas, &store->mem, store->folder, LEAT_CAS_WRITE, err));
	sync_fails = false;
	assert_int_equal(stat(store_path(store, name), &file), 0);
	assert_int_equal(file.st_mtime, begun[1].tv_sec);
	assert_true(leat_runs_suspect(store->cas));
	store_close(store);
	store_open(store, LEAT_CAS_WRITE);
	assert_int_equal(access(store_path(store, name), F_OK), -1);
}

static void
replace(const char *path, const char *bytes)
{
	FILE *file;

	unlink(path);
	file = fopen(path, "w");
	fputs(bytes, file);
	fclose(file);
}

/* As ext4 leaves files that were renamed a moment before: empty; or, elsewhere, full of zeros. */
static void
after_a_power_failure_damage_is_forgotten(void **state)
{
	struct store *store = *state;
	struct action action[3];
	struct leat_made made;
	char name[LEAT_CAS_NAME], path[PATH_MAX];

	store_open(store, LEAT_CAS_WRITE);
	record(store, "empty blob", NULL, "one", &action[0]);
	record(store, "other bytes", NULL, "two", &action[1]);
	record(store, "empty manifest", NULL, "six", &action[2]);
	leat_cas_blob_path(store->cas, &action[0].manifest.output.digest, path);
	replace(path, "");
	leat_cas_blob_path(store->cas, &action[1].manifest.output.digest, path);
	replace(path, "2wo");
	leat_cas_name("act", &action[2].manifest.key, name);
	replace(store_path(store, "%s", name), "");
	store_close(store);
	replace(store_path(store, "runs/20200101T000000-1.open"), "another-boot 1\n");
	overwrite(store, 4096, "", 0);

	store_open(store, LEAT_CAS_READ); /* a reader repairs nothing, and believes nothing */
	assert_true(store_find(store, &action[1].stem, &made));
	store_close(store);
	store_open(store, LEAT_CAS_WRITE);
	assert_int_equal(access(store_path(store, "runs/20200101T000000-1.open"), F_OK), -1);
	assert_true(store_find(store, &action[0].stem, &made));
	assert_false(leat_cas_has(store->cas, &made.output)); /* it is made again */
	assert_true(store_find(store, &action[1].stem, &made));
	assert_false(leat_cas_has(store->cas, &made.output));
	assert_false(store_find(store, &action[2].stem, &made));
	assert_true(leat_cas_has(store->cas, &action[2].manifest.output));
}

static struct leat_content
put_folder(struct store *store, const char *name, const struct leat_content *content)
{
	struct leat_content made;
	struct leat_str tree;

	leat_str_init(&tree, &store->mem, SIZE_MAX);
	must(leat_tree_add(&tree, name, content, err));
	must(leat_cas_put_tree(store->cas, &tree, &made, err));
	leat_str_free(&tree);
	return made;
}

static bool
has_row(struct store *store, const struct leat_digest *tree)
{
	bool found;

	return leat_index_holds(store->cas, tree, &found);
}

static void
a_folder_without_a_nested_folder_is_not_there(void **state)
{
	struct store *store = *state;
	struct leat_content file, inner, outer, other;
	struct action action;
	char path[PATH_MAX];

	store_open(store, LEAT_CAS_WRITE);
	file = store_take(store, "data");
	inner = put_folder(store, "file", &file);
	outer = put_folder(store, "b", &inner);
	store_action(&action, "nested", NULL, &outer);
	store_record(store, &action);
	assert_true(has_row(store, &outer.digest));

	leat_cas_blob_path(store->cas, &inner.digest, path);
	assert_int_equal(unlink(path), 0);
	leat_cas_unsee(store->cas);
	must(leat_index_rebuild(store->cas, err));
	assert_false(has_row(store, &outer.digest));
	assert_false(leat_cas_has(store->cas, &outer));

	put_folder(store, "file", &file);
	assert_true(leat_cas_has(store->cas, &outer));
	must(leat_cas_record(store->cas, &action.manifest, &other, err)); /* made again */
	assert_true(has_row(store, &outer.digest));
	assert_true(leat_cas_has(store->cas, &outer));
}

static void
files_are_read_once(void **state)
{
	struct store *store = *state;
	struct leat_content content, again;
	struct leat_stat_key key;
	struct leat_stat_value value;
	struct leat_stamp stamp, later;
	struct stat file;
	char path[PATH_MAX];

	store_open(store, LEAT_CAS_WRITE);
	snprintf(path, sizeof path, "%s", temp_write(&store->temp, "data", "hello", 5));
	must(leat_cas_hash(store->cas, path, &content, &stamp, err));
	assert_int_equal(content.bytes, 5);
	assert_int_equal(content.kind, LEAT_CONTENT_FILE);
	must(leat_cas_stamp(path, &later, err));
	assert_memory_equal(&stamp, &later, sizeof stamp);

	/* Too new to be remembered; a row for it counts only if all of it agrees. */
	stat(path, &file);
	key = (struct leat_stat_key){file.st_dev, file.st_ino};
	leat_index_flush(store->cas);
	assert_false(leat_index_stat(store->cas, &key, &value));
	value = (struct leat_stat_value){.size = 5,
	                                 .mtime_ns = file.st_mtim.tv_sec * 1000000000 + file.st_mtim.tv_nsec,
	                                 .ctime_ns = file.st_ctim.tv_sec * 1000000000 + file.st_ctim.tv_nsec,
	                                 .digest = {{42}}};
	leat_index_stat_set(store->cas, &key, &value);
	leat_index_flush(store->cas);
	must(leat_cas_hash(store->cas, path, &again, NULL, err));
	assert_int_equal(again.digest.byte[0], 42);
	value.ctime_ns--;
	leat_index_stat_set(store->cas, &key, &value);
	leat_index_flush(store->cas);
	must(leat_cas_hash(store->cas, path, &again, NULL, err));
	assert_true(leat_content_equal(&again, &content));

	temp_write(&store->temp, "data", "hallo", 5);
	must(leat_cas_stamp(path, &later, err));
	assert_memory_not_equal(&stamp, &later, sizeof stamp);
	must(leat_cas_hash(store->cas, path, &again, NULL, err));
	assert_false(leat_content_equal(&again, &content));
}

static void
a_folder_of_the_user_has_the_content_of_an_equal_output(void **state)
{
	struct store *store = *state;
	struct leat_content mine, made;
	struct leat_stamp stamp, later;
	char path[PATH_MAX], name[PATH_MAX + 20];

	store_open(store, LEAT_CAS_WRITE);
	for (int i = 0; i < 2; i++) {
		if (i == 0)
			snprintf(path, sizeof path, "%s", temp_path(&store->temp, "folder"));
		else
			leat_cas_temp_path(store->cas, path);
		mkdir(path, 0777);
		snprintf(name, sizeof name, "%s/sub", path);
		mkdir(name, 0777);
		snprintf(name, sizeof name, "%s/b", path);
		replace(name, "bytes");
		snprintf(name, sizeof name, "%s/sub/x", path);
		replace(name, "");
		if (i == 0) {
			snprintf(name, sizeof name, "%s/.hidden", path);
			replace(name, "not in it");
			must(leat_cas_hash(store->cas, path, &mine, &stamp, err));
			must(leat_cas_stamp(path, &later, err));
			assert_memory_equal(&stamp, &later, sizeof stamp);
		}
	}
	must(leat_cas_take(store->cas, path, &made, err));
	assert_true(leat_content_equal(&mine, &made));
	assert_int_equal(mine.bytes, made.bytes);
	snprintf(name, sizeof name, "%s/folder/c", store->temp.folder);
	replace(name, "");
	snprintf(path, sizeof path, "%s", temp_path(&store->temp, "folder"));
	must(leat_cas_stamp(path, &later, err));
	assert_memory_not_equal(&stamp, &later, sizeof stamp);
	snprintf(name, sizeof name, "%s/loop", path);
	assert_int_equal(symlink(".", name), 0);
	assert_int_equal(leat_cas_hash(store->cas, path, &mine, NULL, NULL), LEAT_DATA);
	unlink(name);
	mkfifo(name, 0666);
	assert_int_equal(leat_cas_hash(store->cas, path, &mine, NULL, NULL), LEAT_DATA);
	assert_int_equal(leat_cas_hash(store->cas, "/does/not/exist", &mine, NULL, NULL), LEAT_DATA);
}

struct made_by_thread {
	struct store *store;
	uint64_t number[200];
};

/* Not on the test's thread: failures are statuses. */
static enum leat_status
record_and_find(void *arg, size_t i, struct leat_err *err)
{
	struct made_by_thread *all = arg;
	struct leat_cas *cas = all->store->cas;
	struct leat_content content = {.kind = LEAT_CONTENT_FILE}, other;
	struct leat_made made = {.number = 0};
	struct action action;
	char text[20];
	enum leat_status status;

	snprintf(text, sizeof text, "thread %zu", i);
	status = leat_cas_put_bytes(cas, text, strlen(text), &content.digest, err);
	content.bytes = strlen(text);
	store_action(&action, text, "shared", &content);
	if (status == LEAT_OK)
		status = leat_index_next_number(cas, "step", &all->number[i], err);
	action.manifest.number = all->number[i];
	if (status == LEAT_OK)
		status = leat_cas_record(cas, &action.manifest, &other, err);
	if (status == LEAT_OK && (!store_find(all->store, &action.stem, &made) || made.number != all->number[i] ||
	                          !leat_cas_has(cas, &made.output)))
		status = leat_fail(err, LEAT_INTERNAL, "%s is not found", text);
	return status;
}

static void
threads_find_at_once_what_they_record(void **state)
{
	struct store *store = *state;
	struct made_by_thread all = {.store = store};
	bool given[201] = {false};

	store_open(store, LEAT_CAS_WRITE);
	must(leat_parallel(&store->mem, 4, 200, record_and_find, &all, err));
	for (size_t i = 0; i < 200; i++) {
		assert_in_range(all.number[i], 1, 200);
		assert_false(given[all.number[i]]); /* each number is given once */
		given[all.number[i]] = true;
	}
	assert_int_equal(store_count(store, "act"), 200);
}

#define test(name) cmocka_unit_test_setup_teardown(name, store_setup, store_teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		test(the_newest_comes_first),
		test(learned_fields_come_back),
		test(questions_are_answered_in_every_state_of_the_index),
		test(a_damaged_index_is_made_again),
		test(threads_find_at_once_what_they_record),
		test(two_processes_see_what_the_other_records),
		test(a_killed_run_loses_nothing_that_it_recorded),
		test(a_killed_run_is_suspect_until_all_is_on_disk),
		test(after_a_power_failure_damage_is_forgotten),
		test(a_folder_without_a_nested_folder_is_not_there),
		test(files_are_read_once),
		test(a_folder_of_the_user_has_the_content_of_an_equal_output),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
