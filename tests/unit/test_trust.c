/* test_trust.c - indexes and caches that other users could have written are not used
 *
 * Only root can give files to others and become another user; these tests are skipped for everyone else. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <dirent.h>
#include <grp.h>
#include <sys/file.h>
#include <sys/wait.h>

#include "feed/feed.h"
#include "support/data.h"
#include "support/logged.h"
#include "support/temp.h"
#include "support/trace.h"

enum { NOBODY = 65534, STRANGER = 65533 };

static const size_t counts[] = {20};
static struct temp temp;
static struct data data;
static struct leat_options options;
static struct trace expected;
static char text[1000];

static int
setup(void **state)
{
	(void)state;
	umask(022);
	temp_make(&temp);
	chmod(temp.folder, 0755);
	data_make(&data, 1, counts, NULL);
	chmod(data.folder, 0755);
	setenv("XDG_CACHE_HOME", temp_path(&temp, "user"), 1);
	trace_options(&options);
	options.epochs = 1;
	options.log = write_log;
	memset(&logged, 0, sizeof logged);
	return 0;
}

static int
teardown(void **state)
{
	(void)state;
	trace_free(&expected);
	temp_remove(&temp);
	data_remove(&data);
	return 0;
}

static void
needs_root(void)
{
	if (geteuid() != 0)
		skip();
}

static const char *
index_path(void)
{
	static char path[300];

	snprintf(path, sizeof path, "%s/.part-00.tfrecord.leatidx", data.folder);
	return path;
}

/* "TFRECORD REST | batch(8)" */
static const char *
spec(const char *rest)
{
	snprintf(text, sizeof text, "%s%s | batch(8)", data_source(&data), rest);
	return text;
}

static const char *
with_cache(const char *more)
{
	static char cache[600];

	snprintf(cache, sizeof cache, " | cache(dir='%s/c'%s)", temp.folder, more);
	return spec(cache);
}

static void
run(const char *of)
{
	struct trace trace;

	trace_run(&trace, of, &options);
	assert_int_equal(trace.status, LEAT_DONE);
	if (!expected.samples)
		trace_run(&expected, spec(""), &options);
	trace_compare(&expected, &trace, of);
	trace_free(&trace);
}

/* In a process of another user. */
static void
run_as(uid_t user, const char *of)
{
	pid_t pid = fork();
	int status;

	if (pid == 0) {
		struct trace trace;
		bool same;

		if (setgroups(0, NULL) != 0 || setgid(user) != 0 || setuid(user) != 0)
			_exit(2);
		trace_run(&trace, of, &options);
		same = trace.status == LEAT_DONE && trace.samples == counts[0];
		for (size_t i = 0; same && i < trace.samples && expected.samples; i++)
			same = memcmp(trace.sample[i].hash, expected.sample[i].hash, sizeof trace.sample[i].hash) == 0;
		_exit(same ? 0 : 1);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

static struct stat
stat_of(const char *path)
{
	struct stat st;

	assert_int_equal(lstat(path, &st), 0);
	return st;
}

/* ---- indexes ---- */

static void
an_index_is_written_by_its_owner_only(void **state)
{
	(void)state;
	umask(0);
	run(spec(""));
	umask(022);
	assert_int_equal(stat_of(index_path()).st_mode & 07777, 0644);
}

static void
an_index_that_others_own_or_can_write_is_made_again(void **state)
{
	(void)state;
	needs_root();
	run(spec(""));
	for (int way = 0; way < 3; way++) {
		ino_t before = stat_of(index_path()).st_ino;

		if (way == 0)
			assert_int_equal(chown(index_path(), NOBODY, NOBODY), 0);
		else
			assert_int_equal(chmod(index_path(), way == 1 ? 0664 : 0646), 0);
		logged.warn = 0;
		run(spec(""));
		assert_int_equal(logged.warn, 1);
		assert_non_null(strstr(logged.warning,
		                       ".part-00.tfrecord.leatidx': it belongs to another user, or others "
		                       "can write it"));
		assert_true(stat_of(index_path()).st_ino != before);
		assert_int_equal(stat_of(index_path()).st_uid, 0);
	}
	logged.warn = 0;
	run(spec(""));
	assert_int_equal(logged.warn, 0);
}

static void
an_index_of_the_datas_owner_is_used(void **state)
{
	ino_t before;

	(void)state;
	needs_root();
	assert_int_equal(chown(data_path(&data, 0), NOBODY, NOBODY), 0);
	run(spec(""));
	assert_int_equal(chown(index_path(), NOBODY, NOBODY), 0);
	before = stat_of(index_path()).st_ino;
	run(spec(""));
	assert_int_equal(logged.warn, 0);
	assert_true(stat_of(index_path()).st_ino == before);
	assert_int_equal(chown(index_path(), STRANGER, STRANGER), 0);
	run(spec(""));
	assert_int_equal(logged.warn, 1);
}

/* The users of this process and of the child differ, so that the first one's index is of another user for both. */
static void
users_who_cannot_replace_an_index_have_one_of_their_own(void **state)
{
	(void)state;
	needs_root();
	run(spec(""));
	assert_int_equal(chown(index_path(), STRANGER, STRANGER), 0);
	assert_int_equal(chmod(data.folder, 01777), 0);
	assert_int_equal(mkdir(temp_path(&temp, "user"), 0755), 0);
	assert_int_equal(chown(temp.path, NOBODY, NOBODY), 0);
	run_as(NOBODY, spec(""));
	assert_int_equal(stat_of(index_path()).st_uid, STRANGER);
	assert_int_equal(stat_of(temp_path(&temp, "user/leat/index")).st_mode & 07777, 0700);
	assert_int_equal(stat_of(temp.path).st_uid, NOBODY);
}

static int
count_files(const char *folder, const char *part)
{
	DIR *dir = opendir(folder);
	struct dirent *entry;
	int files = 0;

	while (dir && (entry = readdir(dir)) != NULL)
		files += strstr(entry->d_name, part) != NULL;
	if (dir)
		closedir(dir);
	return files;
}

/* With something in the way beside the data, the index goes to the cache folder, if that is ours alone. */
static void
a_cache_folder_that_others_can_write_to_is_not_used(void **state)
{
	char folder[300];

	(void)state;
	needs_root();
	assert_int_equal(mkdir(index_path(), 0777), 0);
	run(spec(""));
	snprintf(folder, sizeof folder, "%s", temp_path(&temp, "user/leat/index"));
	assert_int_equal(count_files(folder, ".leatidx"), 1);
	for (int way = 0; way < 2; way++) {
		for (DIR *dir = opendir(folder); dir; dir = NULL) {
			struct dirent *entry;

			while ((entry = readdir(dir)) != NULL)
				unlinkat(dirfd(dir), entry->d_name, 0);
			closedir(dir);
		}
		assert_int_equal(way ? chmod(folder, 0770) : chown(folder, NOBODY, NOBODY), 0);
		run(spec(""));
		assert_int_equal(count_files(folder, ".leatidx"), 0);
		assert_non_null(
			strstr(logged.warning, "in the cache folder: there is none that only you can write to"));
		assert_int_equal(chown(folder, 0, 0), 0);
	}
}

/* A link, device or pipe in the index's place is replaced, not written to. */
static void
an_index_is_not_written_through_what_is_in_its_place(void **state)
{
	struct stat st;

	(void)state;
	for (int way = 0; way < 3; way++) {
		unlink(index_path());
		if (way == 0)
			assert_int_equal(mkfifo(index_path(), 0666), 0);
		else
			assert_int_equal(symlink(way == 1 ? "/dev/null" : "/proc/self/fd/2", index_path()), 0);
		run(spec(""));
		st = stat_of(index_path());
		assert_true(S_ISREG(st.st_mode) && st.st_size > 0);
	}
}

/* ---- caches ---- */

static const char *
cache_path(void)
{
	static char path[700];
	DIR *dir = opendir(temp_path(&temp, "c"));
	struct dirent *entry;

	*path = '\0';
	while (dir && (entry = readdir(dir)) != NULL)
		if (strstr(entry->d_name, ".leatcache"))
			snprintf(path, sizeof path, "%s/c/%s", temp.folder, entry->d_name);
	if (dir)
		closedir(dir);
	return path;
}

static void
a_cache_is_its_owners_alone(void **state)
{
	(void)state;
	umask(0);
	run(with_cache(""));
	umask(022);
	assert_int_equal(stat_of(temp_path(&temp, "c")).st_mode & 07777, 0700);
	assert_int_equal(stat_of(cache_path()).st_mode & 07777, 0600);
}

static void
a_cache_file_that_others_own_or_can_write_is_not_used(void **state)
{
	(void)state;
	needs_root();
	run(with_cache(""));
	for (int way = 0; way < 3; way++) {
		struct stat before = stat_of(cache_path());
		int fd = open(cache_path(), O_RDONLY); /* keeps the inode from being used again */

		assert_true(fd >= 0);
		if (way == 0)
			assert_int_equal(chown(cache_path(), NOBODY, NOBODY), 0);
		else
			assert_int_equal(chmod(cache_path(), way == 1 ? 0660 : 0602), 0);
		logged.warn = 0;
		run(with_cache(""));
		assert_int_equal(logged.warn, 1);
		assert_non_null(strstr(logged.warning, "ignoring cache file '"));
		assert_true(stat_of(cache_path()).st_ino != before.st_ino);
		assert_int_equal(stat_of(cache_path()).st_uid, 0);
		close(fd);
	}
}

static void
users_of_one_folder_have_a_cache_each(void **state)
{
	(void)state;
	needs_root();
	assert_int_equal(mkdir(temp_path(&temp, "c"), 0777), 0);
	assert_int_equal(chmod(temp.path, 01777), 0);
	run(with_cache(""));
	run_as(NOBODY, with_cache(""));
	run_as(STRANGER, with_cache(""));
	assert_int_equal(count_files(temp_path(&temp, "c"), ".leatcache"), 3);
	/* The size is each one's own: nobody removes what others have. */
	run_as(NOBODY, with_cache(", size=3000000"));
	assert_int_equal(count_files(temp_path(&temp, "c"), ".leatcache"), 3);
	run(with_cache(""));
	assert_int_equal(count_files(temp_path(&temp, "c"), ".leatcache"), 3);
	assert_int_equal(logged.warn, 0);
}

/* A file of another user at the very name of ours, in a folder where we may not remove it. */
static void
without_a_place_for_a_file_nothing_is_cached(void **state)
{
	char path[700];

	(void)state;
	needs_root();
	assert_int_equal(mkdir(temp_path(&temp, "c"), 0777), 0);
	assert_int_equal(chmod(temp.path, 01777), 0);
	run_as(NOBODY, with_cache(""));
	snprintf(path, sizeof path, "%s", cache_path());
	assert_int_equal(chown(path, STRANGER, STRANGER), 0);
	assert_int_equal(chmod(path, 0666), 0);
	run_as(NOBODY, with_cache(""));
	assert_int_equal(stat_of(path).st_uid, STRANGER);
	assert_int_equal(count_files(temp_path(&temp, "c"), ".leatcache"), 1);
}

static void
a_shared_folder_is_shared_when_asked(void **state)
{
	struct stat before;

	(void)state;
	needs_root();
	assert_int_equal(mkdir(temp_path(&temp, "c"), 0777), 0);
	assert_int_equal(chmod(temp.path, 0777), 0);
	umask(0);
	run_as(NOBODY, with_cache(", trust=shared"));
	umask(022);
	before = stat_of(cache_path());
	assert_int_equal(before.st_mode & 07777, 0660);
	run(with_cache(", trust=shared"));
	assert_int_equal(count_files(temp_path(&temp, "c"), ".leatcache"), 1);
	assert_true(stat_of(cache_path()).st_ino == before.st_ino);
	assert_int_equal(logged.warn, 0);
}

/* flock needs no right but to read the folder. */
static void
a_folder_that_others_lock_does_not_stop_us(void **state)
{
	int fd;

	(void)state;
	assert_int_equal(mkdir(temp_path(&temp, "c"), 0777), 0);
	fd = open(temp.path, O_RDONLY | O_DIRECTORY);
	assert_int_equal(flock(fd, LOCK_EX), 0);
	run(with_cache(""));
	assert_int_equal(count_files(temp_path(&temp, "c"), ".leatcache"), 1);
	close(fd);
}

int
main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(an_index_is_written_by_its_owner_only),
		TEST(an_index_that_others_own_or_can_write_is_made_again),
		TEST(an_index_of_the_datas_owner_is_used),
		TEST(users_who_cannot_replace_an_index_have_one_of_their_own),
		TEST(a_cache_folder_that_others_can_write_to_is_not_used),
		TEST(an_index_is_not_written_through_what_is_in_its_place),
		TEST(a_cache_is_its_owners_alone),
		TEST(a_cache_file_that_others_own_or_can_write_is_not_used),
		TEST(users_of_one_folder_have_a_cache_each),
		TEST(without_a_place_for_a_file_nothing_is_cached),
		TEST(a_shared_folder_is_shared_when_asked),
		TEST(a_folder_that_others_lock_does_not_stop_us),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
