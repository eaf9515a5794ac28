/* test_files.c - patterns become sorted files, which are read by range from any thread */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <dirent.h>
#include <limits.h>
#include <locale.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "store/file.h"
#include "support/temp.h"

#define TEST(name) cmocka_unit_test(name)

static struct leat_mem mem;
static struct leat_stores stores;

static struct leat_files *
open_files(struct leat_err *err, size_t count, const char *const *patterns)
{
	struct leat_files *files = NULL;
	enum leat_status status;

	leat_mem_init(&mem, SIZE_MAX);
	leat_stores_init(&stores, &mem);
	leat_err_clear(err);
	status = leat_files_open(&files, &stores, patterns, count, &mem, err);
	assert_int_equal(status, err->status);
	assert_true((status == LEAT_OK) == (files != NULL));
	if (!files)
		leat_stores_close(&stores);
	return files;
}

static struct leat_files *
open_in(struct temp *temp, const char *pattern)
{
	const char *path = temp_path(temp, pattern);
	struct leat_files *files;
	struct leat_err err;

	files = open_files(&err, 1, &path);
	if (!files)
		fail_msg("%s", err.text);
	return files;
}

static void
close_files(struct leat_files *files)
{
	leat_files_close(files);
	leat_stores_close(&stores);
	assert_int_equal(mem.used, 0);
}

static void
check_names(const struct leat_files *files, const char *const *names, size_t count)
{
	assert_int_equal(leat_files_count(files), count);
	for (size_t i = 0; i < count; i++)
		assert_string_equal(leat_files_at(files, i)->name, names[i]);
}

static void
check_refused(const char *pattern, enum leat_status status, const char *part)
{
	struct leat_err err;

	assert_null(open_files(&err, 1, &pattern));
	assert_int_equal(err.status, status);
	if (!strstr(err.text, part))
		fail_msg("'%s' does not say '%s'", err.text, part);
	assert_int_equal(mem.used, 0);
}

/* ---- names ---- */

static void
files_are_sorted_by_their_bytes(void **state)
{
	static const char *const names[] = {"B", "Z9", "a10", "a2", "b", "\xc3\xa9"};
	struct temp temp;
	struct leat_files *files;

	(void)state;
	setlocale(LC_ALL, "C.UTF-8");
	temp_make(&temp);
	for (size_t i = 6; i--;)
		temp_write(&temp, names[i], "12345", i);
	files = open_in(&temp, "*");
	check_names(files, names, 6);
	for (size_t i = 0; i < 6; i++)
		assert_int_equal(leat_files_at(files, i)->size, i);
	close_files(files);
	temp_remove(&temp);
}

static void
patterns_keep_the_order_they_are_given_in(void **state)
{
	static const char *const names[] = {"b1", "b2", "a", "b1"};
	struct temp temp;
	struct leat_files *files;
	char b[128], a[128], again[128];
	const char *patterns[] = {b, a, again};
	struct leat_err err;

	(void)state;
	temp_make(&temp);
	temp_write(&temp, "a", "", 0);
	temp_write(&temp, "b1", "", 0);
	temp_write(&temp, "b2", "", 0);
	snprintf(b, sizeof(b), "%s/b?", temp.folder);
	snprintf(a, sizeof(a), "%s/[ac]", temp.folder);
	snprintf(again, sizeof(again), "%s/b1", temp.folder);
	files = open_files(&err, 3, patterns);
	check_names(files, names, 4);
	close_files(files);
	temp_remove(&temp);
}

static void
a_path_that_exists_is_taken_literally(void **state)
{
	static const char *const odd[] = {"[1]*?.rec", "back\\slash", "100%", "s3:", "a b"};
	struct temp temp;

	(void)state;
	temp_make(&temp);
	temp_write(&temp, "1x.rec", "", 0);
	for (size_t i = 0; i < 5; i++) {
		struct leat_files *files;

		temp_write(&temp, odd[i], "x", 1);
		files = open_in(&temp, odd[i]);
		check_names(files, &odd[i], 1);
		close_files(files);
	}
	temp_remove(&temp);
}

static void
hidden_files_never_match(void **state)
{
	static const char *const names[] = {"x.tfrecord"};
	struct temp temp;
	struct leat_files *files;

	(void)state;
	temp_make(&temp);
	temp_write(&temp, "x.tfrecord", "", 0);
	temp_write(&temp, ".x.tfrecord.leatidx", "", 0);
	files = open_in(&temp, "*");
	check_names(files, names, 1);
	close_files(files);
	temp_remove(&temp);
}

static void
names_are_relative_to_the_folder_all_share(void **state)
{
	static const char *const nested[] = {"train-1/x", "train-2/x"};
	static const char *const deep[] = {"train-1/x", "y"};
	static const char *const single[] = {"x"};
	struct temp temp;
	struct leat_files *files;
	char one[128], two[128];
	const char *patterns[] = {one, two};
	struct leat_err err;

	(void)state;
	temp_make(&temp);
	assert_int_equal(mkdir(temp_path(&temp, "train-1"), 0777), 0);
	assert_int_equal(mkdir(temp_path(&temp, "train-2"), 0777), 0);
	temp_write(&temp, "train-1/x", "", 0);
	temp_write(&temp, "train-2/x", "", 0);
	temp_write(&temp, "y", "", 0);
	files = open_in(&temp, "train-*/x");
	check_names(files, nested, 2);
	close_files(files);
	files = open_in(&temp, "train-1/x");
	check_names(files, single, 1);
	close_files(files);
	snprintf(one, sizeof(one), "%s/train-1/*", temp.folder);
	snprintf(two, sizeof(two), "%s/y", temp.folder);
	files = open_files(&err, 2, patterns);
	check_names(files, deep, 2);
	close_files(files);
	temp_remove(&temp);
}

static void
file_uris_are_paths(void **state)
{
	static const char *const forms[] = {"file://%s/a%%20b.rec", "file:%s/a%%20b.rec", "file://localhost%s/a b.rec",
	                                    "file://%s/*%%20b.rec"};
	struct temp temp;

	(void)state;
	temp_make(&temp);
	temp_write(&temp, "a b.rec", "12345", 5);
	for (size_t i = 0; i < 4; i++) {
		char uri[128];
		const char *pattern = uri;
		struct leat_files *files;
		struct leat_err err;

		snprintf(uri, sizeof(uri), forms[i], temp.folder);
		files = open_files(&err, 1, &pattern);
		assert_non_null(files);
		assert_string_equal(leat_files_at(files, 0)->uri, temp_path(&temp, "a b.rec"));
		assert_int_equal(leat_files_at(files, 0)->size, 5);
		close_files(files);
	}
	temp_remove(&temp);
}

static void
what_cannot_be_listed_is_refused_with_the_reason(void **state)
{
	struct temp temp;
	struct leat_err err;

	(void)state;
	temp_make(&temp);
	temp_write(&temp, "x", "", 0);
	assert_int_equal(mkfifo(temp_path(&temp, "pipe"), 0666), 0);
	check_refused(temp_path(&temp, "none*"), LEAT_IO, "no file matches");
	check_refused(temp_path(&temp, "none/*"), LEAT_IO, "no file matches");
	check_refused(temp_path(&temp, "x/*"), LEAT_IO, "no file matches");
	check_refused(temp_path(&temp, "none"), LEAT_IO, "No such file");
	check_refused(temp_path(&temp, "pipe"), LEAT_INVALID, "not a regular file");
	check_refused(temp.folder, LEAT_INVALID, "is a folder");
	check_refused("", LEAT_INVALID, "empty");
	check_refused("ftp://host/x", LEAT_UNSUPPORTED, "unsupported scheme 'ftp:'");
	check_refused("file://host/x", LEAT_INVALID, "another host");
	check_refused("file:///a%0", LEAT_INVALID, "not a valid file: URI");
	check_refused("file:///a%00b", LEAT_INVALID, "not a valid file: URI");
	check_refused("file:", LEAT_INVALID, "not a valid file: URI");
	assert_null(open_files(&err, 0, NULL));
	assert_int_equal(err.status, LEAT_INVALID);
	temp_remove(&temp);
}

/* ---- reads ---- */

static void
fill(unsigned char *bytes, size_t len, unsigned seed)
{
	for (size_t i = 0; i < len; i++)
		bytes[i] = (unsigned char)((i * 7 + seed * 31 + (i >> 8)) & 0xff);
}

static void
reads_scatter_in_order(void **state)
{
	enum { SIZE = 10000, PIECE = 3, PIECES = 3000 }; /* more than the kernel takes at once */
	static unsigned char data[SIZE], into[SIZE];
	static struct iovec iov[PIECES], before[PIECES];
	struct leat_files *files;
	struct temp temp;
	struct leat_err err;
	size_t got;

	(void)state;
	assert_true(PIECES > IOV_MAX);
	temp_make(&temp);
	fill(data, SIZE, 1);
	temp_write(&temp, "x", data, SIZE);
	files = open_in(&temp, "x");
	for (size_t i = 0; i < PIECES; i++)
		iov[i] = (struct iovec){into + PIECE * i, i < 100 || i % 5 ? PIECE : 0};
	memcpy(before, iov, sizeof(iov));
	for (int flags = 0; flags <= LEAT_READ_NOWAIT; flags++) {
		size_t at = 11;

		memset(into, 0, SIZE);
		assert_int_equal(leat_files_read(files, 0, 11, iov, PIECES, flags, &got, &err), LEAT_OK);
		assert_memory_equal(iov, before, sizeof(iov));
		for (size_t i = 0; i < PIECES; at += iov[i++].iov_len)
			assert_memory_equal(iov[i].iov_base, data + at, iov[i].iov_len);
		assert_int_equal(got, at - 11);
	}
	/* Any number of empty pieces in front, and nothing at all. */
	for (size_t i = 0; i < PIECES; i++)
		iov[i].iov_len = i + 1 == PIECES;
	assert_int_equal(leat_files_read(files, 0, 42, iov, PIECES, 0, &got, &err), LEAT_OK);
	assert_int_equal(*(unsigned char *)iov[PIECES - 1].iov_base, data[42]);
	assert_int_equal(leat_files_read(files, 0, SIZE, NULL, 0, 0, &got, &err), LEAT_OK);
	assert_int_equal(got, 0);
	close_files(files);
	temp_remove(&temp);
}

static void
a_file_that_shrank_is_damaged_data(void **state)
{
	unsigned char data[100] = {0};
	struct iovec iov = {data, 50};
	struct leat_files *files;
	struct temp temp;
	struct leat_err err;
	size_t got;

	(void)state;
	temp_make(&temp);
	temp_write(&temp, "x", data, 100);
	files = open_in(&temp, "x");
	assert_int_equal(leat_files_read(files, 0, 40, &iov, 1, 0, &got, &err), LEAT_OK);
	assert_int_equal(truncate(temp_path(&temp, "x"), 70), 0); /* before it is looked at again */
	leat_err_clear(&err);
	assert_int_equal(leat_files_read(files, 0, 40, &iov, 1, LEAT_READ_NOWAIT, &got, &err), LEAT_AGAIN);
	assert_int_equal(err.status, LEAT_OK);
	assert_int_equal(leat_files_read(files, 0, 40, &iov, 1, 0, &got, &err), LEAT_DATA);
	assert_int_equal(got, 30);
	assert_non_null(strstr(err.text, temp_path(&temp, "x")));
	assert_non_null(strstr(err.text, "offset 90"));
	leat_err_clear(&err);
	assert_int_equal(leat_files_read(files, 0, UINT64_MAX - 10, &iov, 1, 0, &got, &err), LEAT_INVALID);
	close_files(files);
	temp_remove(&temp);
}

static void
a_file_that_vanished_is_an_error_with_its_name(void **state)
{
	struct leat_files *files;
	struct temp temp;
	struct leat_err err;
	char byte;
	struct iovec iov = {&byte, 1};
	size_t got;

	(void)state;
	temp_make(&temp);
	temp_write(&temp, "x", "x", 1);
	files = open_in(&temp, "x");
	unlink(temp_path(&temp, "x"));
	leat_err_clear(&err);
	assert_int_equal(leat_files_read(files, 0, 0, &iov, 1, 0, &got, &err), LEAT_DATA);
	assert_non_null(strstr(err.text, temp_path(&temp, "x")));
	close_files(files);
	temp_remove(&temp);
}

/* What is not in the page cache is not waited for, and what was got is right. */
static void
nowait_gives_what_is_there(void **state)
{
	enum { SIZE = 1 << 20 };
	static unsigned char data[SIZE], into[SIZE];
	struct iovec iov = {into, SIZE};
	enum leat_status status;
	struct leat_files *files;
	struct temp temp;
	size_t got;
	int fd;

	(void)state;
	temp_make(&temp);
	fill(data, SIZE, 2);
	fd = open(temp_write(&temp, "x", data, SIZE), O_RDONLY);
	fsync(fd);
	posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
	files = open_in(&temp, "x");
	status = leat_files_read(files, 0, 0, &iov, 1, LEAT_READ_NOWAIT, &got, NULL);
	assert_true(status == LEAT_AGAIN ? got < SIZE : status == LEAT_OK && got == SIZE);
	assert_memory_equal(into, data, got);
	assert_int_equal(leat_files_read(files, 0, 0, &iov, 1, 0, &got, NULL), LEAT_OK);
	assert_memory_equal(into, data, SIZE);
	memset(into, 0, SIZE);
	assert_int_equal(leat_files_read(files, 0, 0, &iov, 1, LEAT_READ_NOWAIT, &got, NULL), LEAT_OK);
	assert_memory_equal(into, data, SIZE);
	close(fd);
	close_files(files);
	temp_remove(&temp);
}

/* /proc cannot read without waiting, and says so. */
static void
a_file_system_without_nowait_is_left_to_reads_that_wait(void **state)
{
	const char *path = "/proc/self/status";
	char start[5];
	struct iovec iov = {start, sizeof(start)};
	struct leat_files *files;
	struct leat_err err;
	size_t got;

	(void)state;
	files = open_files(&err, 1, &path);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(leat_files_read(files, 0, 0, &iov, 1, LEAT_READ_NOWAIT, &got, &err), LEAT_AGAIN);
		assert_int_equal(got, 0);
		assert_int_equal(err.status, LEAT_OK);
	}
	assert_int_equal(leat_files_read(files, 0, 0, &iov, 1, 0, &got, &err), LEAT_OK);
	assert_memory_equal(start, "Name:", 5);
	close_files(files);
}

/* ---- descriptors ---- */

static size_t
count_descriptors(void)
{
	DIR *folder = opendir("/proc/self/fd");
	size_t count = 0;

	assert_non_null(folder);
	while (readdir(folder))
		count++;
	closedir(folder);
	return count - 3; /* ".", ".." and the folder itself */
}

enum { MANY = 700, READERS = 8, READS = 3000 }; /* more readers than descriptors with the low limit */

struct reader {
	struct leat_files *files;
	unsigned seed;
	size_t wrong;
	pthread_t thread;
};

static void *
read_at_random(void *arg)
{
	struct reader *reader = arg;
	uint32_t x = reader->seed;

	for (int i = 0; i < READS; i++) {
		uint32_t value = 0;
		struct iovec iov = {&value, sizeof(value)};
		size_t file, got;

		x = x * 1664525 + 1013904223;
		file = i % 3 ? (x >> 16) % MANY : (x >> 16) % 8; /* some are wanted all the time */
		if (leat_files_read(reader->files, file, 0, &iov, 1, i % 2 ? LEAT_READ_NOWAIT : 0, &got, NULL) ==
		    LEAT_OK)
			reader->wrong += value != file;
		else
			reader->wrong += i % 2 == 0;
	}
	return NULL;
}

static void
read_many_files(struct temp *temp, size_t max_descriptors)
{
	struct reader reader[READERS];
	struct leat_files *files = open_in(temp, "f*");
	size_t before = count_descriptors() - 1; /* the store has one from the beginning */

	assert_int_equal(leat_files_count(files), MANY);
	for (unsigned i = 0; i < READERS; i++) {
		reader[i] = (struct reader){.files = files, .seed = i};
		assert_int_equal(pthread_create(&reader[i].thread, NULL, read_at_random, &reader[i]), 0);
	}
	for (unsigned i = 0; i < READERS; i++) {
		pthread_join(reader[i].thread, NULL);
		assert_int_equal(reader[i].wrong, 0);
	}
	assert_true(count_descriptors() - before <= max_descriptors + 1);
	close_files(files);
	assert_int_equal(count_descriptors(), before);
}

static void
many_files_are_read_with_few_descriptors(void **state)
{
	struct rlimit limit, low;
	struct temp temp;

	(void)state;
	temp_make(&temp);
	for (uint32_t i = 0; i < MANY; i++) {
		char name[16];

		snprintf(name, sizeof(name), "f%04u", i);
		temp_write(&temp, name, &i, sizeof(i));
	}
	read_many_files(&temp, 256);
	/* And with almost none: opened files make room for one another. */
	getrlimit(RLIMIT_NOFILE, &limit);
	low = (struct rlimit){.rlim_cur = 16 + count_descriptors(), .rlim_max = limit.rlim_max};
	setrlimit(RLIMIT_NOFILE, &low);
	read_many_files(&temp, 16);
	setrlimit(RLIMIT_NOFILE, &limit);
	temp_remove(&temp);
}

static void
every_failing_allocation_is_survived(void **state)
{
	struct temp temp;
	const char *patterns[2];
	char all[128];
	long n = 0;

	(void)state;
	temp_make(&temp);
	temp_write(&temp, "a", "", 0);
	temp_write(&temp, "b", "", 0);
	snprintf(all, sizeof(all), "%s/*", temp.folder);
	patterns[0] = all;
	patterns[1] = temp_path(&temp, "a");
	for (;; n++) {
		struct leat_files *files = NULL;
		struct leat_err err;
		enum leat_status status;

		leat_mem_init(&mem, SIZE_MAX);
		atomic_store(&mem.fail_after, n);
		leat_err_clear(&err);
		leat_stores_init(&stores, &mem);
		status = leat_files_open(&files, &stores, patterns, 2, &mem, &err);
		if (status == LEAT_OK) {
			close_files(files);
			break;
		}
		assert_int_equal(status, LEAT_NOMEM);
		assert_int_equal(err.status, LEAT_NOMEM);
		leat_stores_close(&stores);
		assert_int_equal(mem.used, 0);
	}
	assert_true(n > 5);
	temp_remove(&temp);
}

/* ---- new files ---- */

static void
a_new_file_appears_whole_when_it_is_committed(void **state)
{
	enum { BIG = 700000 };
	static unsigned char big[BIG];
	struct leat_writer *out;
	struct temp temp;
	struct leat_err err;
	unsigned char *bytes;
	size_t len;

	(void)state;
	leat_mem_init(&mem, SIZE_MAX);
	leat_stores_init(&stores, &mem);
	leat_err_clear(&err);
	temp_make(&temp);
	fill(big, BIG, 3);
	temp_write(&temp, "x", "old", 3);
	assert_int_equal(leat_write_begin(&out, &stores, temp_path(&temp, "x"), &err), LEAT_OK);
	assert_int_equal(leat_write(out, big, 10, &err), LEAT_OK);
	assert_int_equal(leat_write(out, big + 10, BIG - 20, &err), LEAT_OK);
	assert_int_equal(leat_write(out, big + BIG - 10, 10, &err), LEAT_OK);
	bytes = temp_read(temp_path(&temp, "x"), &len);
	assert_int_equal(len, 3);
	free(bytes);
	assert_int_equal(leat_write_commit(out, NULL, LEAT_COMMIT_SYNC, &err), LEAT_OK);
	bytes = temp_read(temp_path(&temp, "x"), &len);
	assert_int_equal(len, BIG);
	assert_memory_equal(bytes, big, BIG);
	free(bytes);
	leat_stores_close(&stores);
	assert_int_equal(mem.used, 0);
	unlink(temp_path(&temp, "x"));
	assert_int_equal(rmdir(temp.folder), 0); /* nothing else was left behind */
}

static void
a_new_file_that_is_given_up_leaves_nothing(void **state)
{
	struct leat_writer *out;
	struct temp temp;
	struct leat_err err;

	(void)state;
	leat_mem_init(&mem, SIZE_MAX);
	leat_stores_init(&stores, &mem);
	leat_err_clear(&err);
	temp_make(&temp);
	assert_int_equal(leat_write_begin(&out, &stores, temp_path(&temp, "x"), &err), LEAT_OK);
	assert_int_equal(leat_write(out, "abc", 3, &err), LEAT_OK);
	leat_write_abort(out);
	leat_write_abort(NULL);
	assert_int_equal(mkdir(temp_path(&temp, "d"), 0777), 0);
	assert_int_equal(leat_write_begin(&out, &stores, temp_path(&temp, "d"), &err), LEAT_OK);
	assert_int_equal(leat_write_commit(out, NULL, LEAT_COMMIT_SYNC, &err), LEAT_IO); /* a folder is in its place */
	leat_err_clear(&err);
	assert_int_equal(leat_write_begin(&out, &stores, temp_path(&temp, "none/x"), &err), LEAT_IO);
	assert_non_null(strstr(err.text, "none/x"));
	leat_stores_close(&stores);
	assert_int_equal(mem.used, 0);
	assert_int_equal(rmdir(temp_path(&temp, "d")), 0);
	assert_int_equal(rmdir(temp.folder), 0);
}

static void
new_files_can_be_finished_first_and_shown_later(void **state)
{
	struct leat_writer *out[2];
	struct temp temp;
	struct leat_err err;
	unsigned char *bytes;
	size_t len;

	(void)state;
	leat_mem_init(&mem, SIZE_MAX);
	leat_stores_init(&stores, &mem);
	leat_err_clear(&err);
	temp_make(&temp);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(leat_write_begin(&out[i], &stores, temp_path(&temp, i ? "b" : "a"), &err), LEAT_OK);
		assert_int_equal(leat_write(out[i], "?bc", 3, &err), LEAT_OK);
		assert_int_equal(leat_write_patch(out[i], 0, "?", i ? "b" : "a", 1, &err), LEAT_OK);
		assert_int_equal(leat_write(out[i], "d", 1, &err), LEAT_OK); /* at the end, as before */
		assert_int_equal(leat_write_finish(out[i], LEAT_COMMIT_SYNC, &err), LEAT_OK);
		assert_int_equal(out[i]->size, 4);
	}
	assert_false(temp_exists(&temp, "a"));
	assert_int_equal(leat_write_commit(out[0], NULL, LEAT_COMMIT_SYNC, &err), LEAT_OK);
	assert_int_equal(leat_write_commit(out[1], temp_path(&temp, "other"), 0, &err), LEAT_OK);
	assert_false(temp_exists(&temp, "b"));
	for (int i = 0; i < 2; i++) {
		bytes = temp_read(temp_path(&temp, i ? "other" : "a"), &len);
		assert_int_equal(len, 4);
		assert_memory_equal(bytes, i ? "bbcd" : "abcd", 4);
		free(bytes);
		assert_int_equal(unlink(temp.path), 0);
	}
	assert_int_equal(leat_write_begin(&out[0], &stores, temp_path(&temp, "a"), &err), LEAT_OK);
	assert_int_equal(leat_write_finish(out[0], 0, &err), LEAT_OK);
	leat_write_abort(out[0]);
	leat_stores_close(&stores);
	assert_int_equal(mem.used, 0);
	assert_int_equal(rmdir(temp.folder), 0);
}

/* A limit on the size of files is a disk that is full. */
static void
a_new_file_on_a_full_disk_fails_at_every_later_step(void **state)
{
	struct rlimit before, none;
	struct leat_writer *out;
	struct temp temp;
	struct leat_err err;

	(void)state;
	leat_mem_init(&mem, SIZE_MAX);
	leat_stores_init(&stores, &mem);
	leat_err_clear(&err);
	temp_make(&temp);
	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
	none = (struct rlimit){0, before.rlim_max};
	assert_int_equal(leat_write_begin(&out, &stores, temp_path(&temp, "x"), &err), LEAT_OK);
	assert_int_equal(leat_write(out, "abc", 3, &err), LEAT_OK);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &none), 0); /* what is buffered finds no room */
	assert_int_equal(leat_write_finish(out, 0, &err), LEAT_IO);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
	assert_non_null(strstr(err.text, "File too large"));
	leat_err_clear(&err);
	assert_int_equal(leat_write(out, "abc", 3, &err), LEAT_IO);
	assert_int_equal(leat_write_commit(out, NULL, 0, NULL), LEAT_IO);
	assert_false(temp_exists(&temp, "x"));
	leat_stores_close(&stores);
	assert_int_equal(mem.used, 0);
	assert_int_equal(rmdir(temp.folder), 0);
}

static void
a_new_file_can_leave_the_one_that_is_there(void **state)
{
	struct leat_writer *out[2];
	struct temp temp;
	struct leat_err err;
	unsigned char *bytes;
	size_t len;

	(void)state;
	leat_mem_init(&mem, SIZE_MAX);
	leat_stores_init(&stores, &mem);
	leat_err_clear(&err);
	temp_make(&temp);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(leat_write_begin(&out[i], &stores, temp_path(&temp, "x"), &err), LEAT_OK);
		assert_int_equal(leat_write(out[i], i ? "b" : "a", 1, &err), LEAT_OK);
	}
	assert_int_equal(leat_write_commit(out[0], NULL, LEAT_COMMIT_IF_ABSENT | LEAT_COMMIT_SYNC, &err), LEAT_OK);
	assert_int_equal(leat_write_commit(out[1], NULL, LEAT_COMMIT_IF_ABSENT, &err), LEAT_AGAIN);
	assert_int_equal(err.status, LEAT_OK);
	bytes = temp_read(temp_path(&temp, "x"), &len);
	assert_int_equal(len, 1);
	assert_int_equal(bytes[0], 'a');
	free(bytes);
	leat_stores_close(&stores);
	assert_int_equal(mem.used, 0);
	assert_int_equal(unlink(temp.path), 0);
	assert_int_equal(rmdir(temp.folder), 0);
}

/* A process that dies while it writes leaves a hidden file. Whoever writes the same name next is rid of it, and leaves
 * alone what a living process is writing. */
static void
what_a_killed_writer_left_goes_with_the_next_one(void **state)
{
	struct leat_writer *alive, *out;
	struct temp temp;
	int status;
	pid_t child;

	(void)state;
	leat_mem_init(&mem, SIZE_MAX);
	leat_stores_init(&stores, &mem);
	temp_make(&temp);
	assert_int_equal(leat_write_begin(&alive, &stores, temp_path(&temp, "x"), NULL), LEAT_OK);
	child = fork();
	if (child == 0) {
		leat_write_begin(&out, &stores, temp_path(&temp, "x"), NULL);
		_exit(temp_exists(&temp, ".x.1.tmp") ? 0 : 1);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	assert_true(temp_exists(&temp, ".x.tmp"));
	assert_true(temp_exists(&temp, ".x.1.tmp"));
	assert_int_equal(leat_write_begin(&out, &stores, temp_path(&temp, "x"), NULL), LEAT_OK);
	assert_int_equal(leat_write_commit(alive, NULL, 0, NULL), LEAT_OK);
	assert_int_equal(leat_write_commit(out, NULL, 0, NULL), LEAT_OK);
	leat_stores_close(&stores);
	assert_int_equal(mem.used, 0);
	assert_int_equal(unlink(temp_path(&temp, "x")), 0);
	assert_int_equal(rmdir(temp.folder), 0);
}

/* ---- tables ---- */

/* An entry of a table, with the size it has to have. */
static struct leat_object
entry_of(const char *folder, const char *name, uint64_t size)
{
	struct leat_object object = {
		.folder = folder, .uri = name, .uri_len = strlen(name), .size = size, .remedy = "look again"};

	assert_int_equal(leat_stores_find(&stores, folder, &object.store, NULL, NULL), LEAT_OK);
	return object;
}

/* Reads with and without waiting; the status that both have in the end. */
static enum leat_status
read_both(const struct leat_object *object, uint64_t offset, char *to, size_t len, struct leat_err *err)
{
	struct iovec iov = {to, len};
	enum leat_status at_once, status;
	size_t got;

	leat_err_clear(err);
	at_once = leat_object_read(object, offset, &iov, 1, LEAT_READ_NOWAIT, &got, err);
	assert_int_equal(err->status, at_once == LEAT_AGAIN ? LEAT_OK : at_once);
	leat_err_clear(err);
	status = leat_object_read(object, offset, &iov, 1, 0, &got, err);
	assert_true(at_once == LEAT_AGAIN || at_once == status);
	assert_int_equal(err->status, status);
	return status;
}

static void
files_of_a_table_are_read_below_their_folder(void **state)
{
	char *here = getcwd(NULL, 0), absolute[600], bytes[10], buf[LEAT_URI];
	struct leat_object object;
	struct leat_err err;
	struct temp temp;

	(void)state;
	leat_mem_init(&mem, SIZE_MAX);
	leat_stores_init(&stores, &mem);
	temp_make(&temp);
	assert_int_equal(mkdir(temp_path(&temp, "in"), 0777), 0);
	snprintf(absolute, sizeof(absolute), "%s", temp_write(&temp, "in/a", "first", 5));
	temp_write(&temp, "b", "second", 6);
	assert_int_equal(chdir(temp.folder), 0);
	object = entry_of(".", "in/a", 5);
	assert_int_equal(chdir(here), 0); /* where paths begin is known by its descriptor */
	assert_string_equal(leat_object_uri(&object, buf), "./in/a");
	assert_int_equal(read_both(&object, 0, bytes, 5, &err), LEAT_OK);
	assert_memory_equal(bytes, "first", 5);
	object = entry_of(".", "b", 6);
	assert_int_equal(read_both(&object, 3, bytes, 3, &err), LEAT_OK);
	assert_memory_equal(bytes, "ond", 3);
	object = entry_of(".", absolute, 5);
	assert_string_equal(leat_object_uri(&object, buf), absolute);
	assert_int_equal(read_both(&object, 0, bytes, 5, &err), LEAT_OK);
	assert_memory_equal(bytes, "first", 5);
	leat_stores_close(&stores);
	assert_int_equal(mem.used, 0);
	free(here);
	temp_remove(&temp);
}

static void
files_of_a_table_have_to_be_what_it_says(void **state)
{
	static char long_name[4200];
	const struct {
		const char *name;
		uint64_t size;
		enum leat_status status;
		const char *says;
	} cases[] = {
		{"a", 4, LEAT_DATA, "it had 4 bytes and now has 5; look again"},
		{"a", 6, LEAT_DATA, "it had 6 bytes and now has 5; look again"},
		{"none", 1, LEAT_DATA, "/none': No such file"},
		{"pipe", 0, LEAT_DATA, "is not a regular file"},
		{"", 1, LEAT_DATA, "is not a regular file"},
		{long_name, 1, LEAT_DATA, "too long"},
	};
	struct leat_object object;
	struct leat_err err;
	struct temp temp;
	char bytes[10];

	(void)state;
	leat_mem_init(&mem, SIZE_MAX);
	leat_stores_init(&stores, &mem);
	temp_make(&temp);
	memset(long_name, 'x', sizeof(long_name) - 1);
	temp_write(&temp, "a", "12345", 5);
	assert_int_equal(mkfifo(temp_path(&temp, "pipe"), 0666), 0);
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		object = entry_of(temp.folder, cases[i].name, cases[i].size);
		assert_int_equal(read_both(&object, 0, bytes, 1, &err), cases[i].status);
		if (!strstr(err.text, cases[i].says))
			fail_msg("'%s' does not say '%s'", err.text, cases[i].says);
	}
	object = entry_of(temp.folder, "a", 5);
	assert_int_equal(read_both(&object, 0, bytes, 5, &err), LEAT_OK);
	assert_int_equal(read_both(&object, 3, bytes, 5, &err), LEAT_DATA);
	object.uri_len = 2; /* with the NUL behind it */
	assert_int_equal(read_both(&object, 0, bytes, 1, &err), LEAT_DATA);
	object = entry_of(temp.folder, "a", 5);
	object.token = 1;
	assert_int_equal(read_both(&object, 0, bytes, 1, &err), LEAT_DATA);
	assert_non_null(strstr(err.text, "has changed since it was opened"));
	leat_stores_close(&stores);
	assert_int_equal(mem.used, 0);
	temp_remove(&temp);
}

/* ---- versions ---- */

static void
write_over(struct temp *temp)
{
	temp_write(temp, "x", "other", 5);
}

static void
replace(struct temp *temp)
{
	char from[600];

	snprintf(from, sizeof(from), "%s", temp_write(temp, "y", "other", 5));
	assert_int_equal(rename(from, temp_path(temp, "x")), 0);
}

/* As `cp -p` would. */
static void
replace_with_its_date(struct temp *temp)
{
	struct timespec times[2];
	struct stat st;

	assert_int_equal(stat(temp_path(temp, "x"), &st), 0);
	times[0] = times[1] = st.st_mtim;
	replace(temp);
	assert_int_equal(utimensat(AT_FDCWD, temp_path(temp, "x"), times, 0), 0);
}

static void
cut(struct temp *temp)
{
	assert_int_equal(truncate(temp_path(temp, "x"), 3), 0);
}

static void
take_away(struct temp *temp)
{
	assert_int_equal(unlink(temp_path(temp, "x")), 0);
}

/* Before the file is opened for the first time, and while it is open. */
static void
data_that_changes_is_an_error_that_names_it(void **state)
{
	static void (*const changes[])(struct temp * temp) = {write_over, replace, replace_with_its_date, cut,
	                                                      take_away};

	(void)state;
	for (size_t i = 0; i < 2 * (sizeof(changes) / sizeof(*changes)); i++) {
		struct leat_files *files;
		struct leat_err err;
		struct temp temp;
		char bytes[5];

		temp_make(&temp);
		temp_write(&temp, "x", "first", 5);
		usleep(20000); /* the kernel's clock for files has ticked */
		files = open_in(&temp, "x");
		leat_file_store_of(leat_files_at(files, 0)->store)->recheck_ns = 0;
		if (i % 2) {
			assert_int_equal(read_both(leat_files_at(files, 0), 0, bytes, 5, &err), LEAT_OK);
			assert_memory_equal(bytes, "first", 5);
		}
		changes[i / 2](&temp);
		assert_int_not_equal(read_both(leat_files_at(files, 0), 0, bytes, 3, &err), LEAT_OK);
		assert_non_null(strstr(err.text, "/x'"));
		assert_int_not_equal(read_both(leat_files_at(files, 0), 0, bytes, 3, &err), LEAT_OK); /* and again */
		close_files(files);
		temp_remove(&temp);
	}
}

/* ---- reads under way ---- */

enum { FLIGHT = 1000 };

struct flight {
	struct leat_read read[FLIGHT];
	unsigned char byte[FLIGHT];
	atomic_int done, cancelled;
};

static void
count_done(struct leat_read *read)
{
	struct flight *flight = read->arg;

	if (read->status == LEAT_AGAIN)
		atomic_fetch_add(&flight->cancelled, 1);
	else
		assert_int_equal(read->status, LEAT_OK);
	atomic_fetch_add(&flight->done, 1);
}

static void
many_reads_are_under_way_and_can_be_cancelled(void **state)
{
	static struct flight flight;
	unsigned char data[FLIGHT];
	struct leat_files *files;
	struct temp temp;

	(void)state;
	temp_make(&temp);
	fill(data, FLIGHT, 5);
	temp_write(&temp, "x", data, FLIGHT);
	files = open_in(&temp, "x");
	for (int cancel = 0; cancel < 2; cancel++) {
		struct leat_store *store = leat_files_at(files, 0)->store;

		memset(&flight, 0, sizeof(flight));
		for (size_t i = 0; i < FLIGHT; i++) {
			flight.read[i] = (struct leat_read){.object = *leat_files_at(files, 0),
			                                    .offset = i,
			                                    .iov = {{&flight.byte[i], 1}},
			                                    .iovs = 1,
			                                    .done = count_done,
			                                    .arg = &flight};
			assert_int_equal(store->kind->submit(store, &flight.read[i]), LEAT_OK);
		}
		for (size_t i = 0; i < FLIGHT && cancel; i++)
			store->kind->cancel(store, &flight.read[i]);
		while (atomic_load(&flight.done) < FLIGHT)
			sched_yield();
		if (!cancel)
			assert_memory_equal(flight.byte, data, FLIGHT);
		assert_true(cancel || !flight.cancelled);
	}
	close_files(files);
	temp_remove(&temp);
}

static void
what_is_no_file_is_written_to_as_it_is(void **state)
{
	struct leat_writer *out;
	struct temp temp;
	struct stat st;
	char bytes[8];
	int fd;

	(void)state;
	leat_mem_init(&mem, SIZE_MAX);
	leat_stores_init(&stores, &mem);
	temp_make(&temp);
	assert_int_equal(mkfifo(temp_path(&temp, "pipe"), 0666), 0);
	fd = open(temp.path, O_RDWR);
	assert_true(fd >= 0);
	assert_int_equal(leat_write_begin(&out, &stores, temp.path, NULL), LEAT_OK);
	assert_int_equal(leat_write(out, "abc", 3, NULL), LEAT_OK);
	assert_int_equal(leat_write_commit(out, NULL, LEAT_COMMIT_SYNC, NULL), LEAT_OK);
	assert_int_equal(read(fd, bytes, sizeof(bytes)), 3);
	assert_memory_equal(bytes, "abc", 3);
	assert_int_equal(lstat(temp.path, &st), 0);
	assert_true(S_ISFIFO(st.st_mode));
	close(fd);

	/* As /dev/stdout is a link when a program's output goes to a file. */
	fd = open(temp_path(&temp, "file"), O_WRONLY | O_CREAT, 0666);
	assert_int_equal(symlinkat("/proc/self/fd/9", AT_FDCWD, temp_path(&temp, "link")), 0);
	assert_int_equal(dup2(fd, 9), 9);
	assert_int_equal(leat_write_begin(&out, &stores, temp_path(&temp, "link"), NULL), LEAT_OK);
	assert_int_equal(leat_write(out, "abc", 3, NULL), LEAT_OK);
	assert_int_equal(leat_write_commit(out, NULL, 0, NULL), LEAT_OK);
	assert_int_equal(lstat(temp_path(&temp, "link"), &st), 0);
	assert_true(S_ISLNK(st.st_mode));
	assert_int_equal(stat(temp_path(&temp, "file"), &st), 0);
	assert_int_equal(st.st_size, 3);
	close(fd);
	close(9);
	leat_stores_close(&stores);
	assert_int_equal(mem.used, 0);
	temp_remove(&temp);
}

static void
names_stand_for_files_folders_or_nothing(void **state)
{
	static const struct {
		const char *name, *folder;
	} cases[] = {{"x", "."}, {"/x", "/"}, {"a/b/x", "a/b"}, {"./x", "."}};
	struct leat_store *store;
	struct temp temp;

	(void)state;
	leat_mem_init(&mem, SIZE_MAX);
	leat_stores_init(&stores, &mem);
	temp_make(&temp);
	temp_write(&temp, "x", "abc", 3);
	assert_int_equal(mkfifo(temp_path(&temp, "pipe"), 0666), 0);
	assert_int_equal(leat_stores_find(&stores, temp.folder, &store, NULL, NULL), LEAT_OK);
	assert_int_equal(leat_what_is(store, temp_path(&temp, "x")), LEAT_IS_OBJECT);
	assert_int_equal(leat_what_is(store, temp_path(&temp, "y")), LEAT_IS_NOTHING);
	assert_int_equal(leat_what_is(store, temp_path(&temp, "x/y")), LEAT_IS_NOTHING);
	assert_int_equal(leat_what_is(store, temp_path(&temp, "pipe")), LEAT_IS_FOLDER);
	assert_int_equal(leat_what_is(store, temp.folder), LEAT_IS_FOLDER);
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		char *folder = leat_folder_of(cases[i].name, &mem);

		assert_string_equal(folder, cases[i].folder);
		leat_free(&mem, folder);
	}
	leat_stores_close(&stores);
	assert_int_equal(mem.used, 0);
	temp_remove(&temp);
}

static void
a_folder_is_made_with_those_above_it(void **state)
{
	struct leat_store *store;
	struct leat_err err;
	struct temp temp;

	(void)state;
	leat_mem_init(&mem, SIZE_MAX);
	leat_stores_init(&stores, &mem);
	leat_err_clear(&err);
	temp_make(&temp);
	temp_write(&temp, "x", "abc", 3);
	assert_int_equal(leat_stores_find(&stores, temp.folder, &store, NULL, NULL), LEAT_OK);
	for (int again = 0; again < 2; again++)
		assert_int_equal(store->kind->make_folder(store, temp_path(&temp, "a//b/c/"), &err), LEAT_OK);
	assert_int_equal(leat_what_is(store, temp_path(&temp, "a/b/c")), LEAT_IS_FOLDER);
	assert_int_equal(store->kind->make_folder(store, temp_path(&temp, "x/y"), &err), LEAT_IO);
	assert_non_null(strstr(err.text, "/x/y'"));
	leat_stores_close(&stores);
	assert_int_equal(mem.used, 0);
	temp_remove(&temp);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(files_are_sorted_by_their_bytes),
		TEST(patterns_keep_the_order_they_are_given_in),
		TEST(a_path_that_exists_is_taken_literally),
		TEST(hidden_files_never_match),
		TEST(names_are_relative_to_the_folder_all_share),
		TEST(file_uris_are_paths),
		TEST(what_cannot_be_listed_is_refused_with_the_reason),
		TEST(reads_scatter_in_order),
		TEST(a_file_that_shrank_is_damaged_data),
		TEST(a_file_that_vanished_is_an_error_with_its_name),
		TEST(nowait_gives_what_is_there),
		TEST(a_file_system_without_nowait_is_left_to_reads_that_wait),
		TEST(many_files_are_read_with_few_descriptors),
		TEST(every_failing_allocation_is_survived),
		TEST(files_of_a_table_are_read_below_their_folder),
		TEST(files_of_a_table_have_to_be_what_it_says),
		TEST(data_that_changes_is_an_error_that_names_it),
		TEST(many_reads_are_under_way_and_can_be_cancelled),
		TEST(a_new_file_appears_whole_when_it_is_committed),
		TEST(a_new_file_that_is_given_up_leaves_nothing),
		TEST(new_files_can_be_finished_first_and_shown_later),
		TEST(a_new_file_on_a_full_disk_fails_at_every_later_step),
		TEST(a_new_file_can_leave_the_one_that_is_there),
		TEST(what_a_killed_writer_left_goes_with_the_next_one),
		TEST(what_is_no_file_is_written_to_as_it_is),
		TEST(names_stand_for_files_folders_or_nothing),
		TEST(a_folder_is_made_with_those_above_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
