/* test_folder.c - the source folder: images in one folder for each class */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "feed/feed.h"
#include "format/folder.h"
#include "support/logged.h"
#include "support/source.h"
#include "support/trace.h"
#include "support/temp.h"

static struct temp temp;
static char text[1000];
static struct leat_options options; /* with the log */

/* "folder('TEMP/data'REST" */
static const char *
spec(const char *rest)
{
	snprintf(text, sizeof text, "folder('%s/data'%s", temp.folder, rest);
	return text;
}

static void
make_folder(const char *name)
{
	assert_int_equal(mkdir(temp_path(&temp, name), 0777), 0);
}

/* A file below the data, with the folders it takes; what it holds is its name. */
static void
put(const char *name)
{
	char path[400];

	snprintf(path, sizeof path, "data/%s", name);
	for (char *slash = strchr(path, '/'); slash; slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		mkdir(temp_path(&temp, path), 0777);
		*slash = '/';
	}
	temp_write(&temp, path, name, strlen(name));
}

static int
age_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	struct timespec past[2] = {{st->st_mtim.tv_sec - 5, 0}, {st->st_mtim.tv_sec - 5, st->st_mtim.tv_nsec}};

	(void)ftw;
	return type == FTW_DP ? utimensat(AT_FDCWD, path, past, 0) : 0;
}

/* As if all folders had been changed some seconds ago: what was changed just now is not kept. */
static void
age(void)
{
	assert_int_equal(nftw(temp_path(&temp, "data"), age_one, 16, FTW_DEPTH | FTW_PHYS), 0);
}

static void
make_small(void)
{
	put("cat/2.jpg");
	put("cat/1.jpg");
	put("cat/more/3.png");
	put("dog/1.jpg");
	age();
}

static int
setup(void **state)
{
	(void)state;
	temp_make(&temp);
	setenv("XDG_CACHE_HOME", temp_path(&temp, "cache"), 1);
	trace_options(&options);
	options.log = write_log;
	memset(&logged, 0, sizeof logged);
	return 0;
}

static int
teardown(void **state)
{
	(void)state;
	temp_remove(&temp);
	return 0;
}

/* The paths of all samples, in order, with their labels; each holds its own name. */
static void
expect_samples(const char *const *paths, const int64_t *labels, int64_t count)
{
	const int64_t *label;
	struct whole whole;

	whole_open(&whole, spec(", path=true)"), &options);
	assert_int_equal(whole.count, count);
	label = whole_field(&whole, "label").data;
	for (int64_t i = 0; i < count; i++) {
		whole_expect_text(&whole, "path", i, paths[i]);
		whole_expect_text(&whole, "image", i, paths[i]);
		assert_int_equal(label[i], labels[i]);
	}
	whole_close(&whole);
}

static void
expect_small(void)
{
	static const char *const paths[] = {"cat/1.jpg", "cat/2.jpg", "cat/more/3.png", "dog/1.jpg"};

	expect_samples(paths, (const int64_t[]){0, 0, 0, 1}, 4);
}

/* ---- what comes out ---- */

/* The lines of a file that make_folder.py wrote, to be freed with the first. */
static size_t
read_lines(const char *name, char **line, size_t max)
{
	char path[1000];
	unsigned char *bytes;
	size_t len, count = 0;

	snprintf(path, sizeof path, GOLDEN "folder/%s", name);
	bytes = temp_read(path, &len);
	bytes[len] = '\0';
	for (char *at = strtok((char *)bytes, "\n"); at; at = strtok(NULL, "\n")) {
		assert_true(count < max);
		line[count++] = at;
	}
	return count;
}

static void
files_come_in_the_order_of_imagefolder(void **state)
{
	char *line[100];
	const char *path[100];
	int64_t label[100];
	size_t count = read_lines("tree.txt", line, 100);

	(void)state;
	for (size_t i = 0; i < count; i++)
		put(line[i]);
	free(line[0]);
	count = read_lines("order.txt", line, 100);
	for (size_t i = 0; i < count; i++) {
		char *end;

		label[i] = strtoll(line[i], &end, 10);
		path[i] = end + 1;
	}
	for (int again = 0; again < 2; again++) { /* walked over, and from the index */
		age();
		expect_samples(path, label, (int64_t)count);
		assert_int_equal(temp_exists(&temp, ".data.leatidx"), true);
	}
	free(line[0]);
}

static void
fields_are_image_and_label_and_if_asked_for_path(void **state)
{
	struct whole whole;

	(void)state;
	make_small();
	whole_open(&whole, spec(")"), NULL);
	assert_int_equal(leat_field_count(whole.feed), 2);
	assert_string_equal(leat_field_at(whole.feed, 0)->name, "image");
	assert_string_equal(leat_field_at(whole.feed, 1)->name, "label");
	assert_int_equal(leat_field_at(whole.feed, 1)->dtype, LEAT_I64);
	assert_int_equal(leat_field_at(whole.feed, 1)->ndim, 0);
	whole_close(&whole);
}

static void
files_that_cannot_be_decoded_are_skipped_with_one_warning(void **state)
{
	(void)state;
	make_small();
	put("dog/2.gif");
	put("readme.txt");
	for (int again = 0; again < 2; again++) {
		age();
		memset(&logged, 0, sizeof logged);
		expect_small();
		assert_int_equal(logged.warn, 1);
		assert_non_null(strstr(logged.text, "2 files in"));
		assert_non_null(
			strstr(logged.text,
		               "are skipped, such as 'readme.txt': images that can be decoded end in .jpg, .jpeg"));
	}
}

static void
empty_files_are_samples_without_bytes(void **state)
{
	struct whole whole;
	size_t len;

	(void)state;
	make_small();
	assert_int_equal(truncate(temp_path(&temp, "data/cat/2.jpg"), 0), 0);
	whole_open(&whole, spec(")"), NULL);
	assert_int_equal(whole.count, 4);
	whole_row(&whole, "image", 1, &len);
	assert_int_equal(len, 0);
	whole_expect_text(&whole, "image", 2, "cat/more/3.png");
	whole_close(&whole);
}

/* interleave takes turns with the classes. */
static void
classes_are_the_parts_of_the_source(void **state)
{
	static const char *const paths[] = {"cat/1.jpg", "dog/1.jpg", "cat/2.jpg", "cat/more/3.png"};
	struct whole whole;

	(void)state;
	make_small();
	whole_open(&whole, spec(", path=true) | interleave(2)"), NULL);
	for (int i = 0; i < 4; i++)
		whole_expect_text(&whole, "path", i, paths[i]);
	whole_close(&whole);
}

static void
a_folder_may_be_written_in_several_ways(void **state)
{
	char *here = getcwd(NULL, 0);

	(void)state;
	make_small();
	snprintf(text, sizeof text, "folder('%s/data/')", temp.folder);
	promise_same(text);
	snprintf(text, sizeof text, "folder('file://%s/%%64ata')", temp.folder);
	promise_same(text);
	assert_int_equal(chdir(temp_path(&temp, "data")), 0);
	promise_same("folder('.')");
	promise_same("folder('../data')");
	assert_int_equal(chdir(here), 0);
	free(here);
	assert_false(temp_exists(&temp, "data/.leatidx"));
	assert_true(temp_exists(&temp, ".data.leatidx"));
}

static void
what_is_no_such_folder_is_refused(void **state)
{
	(void)state;
	expect_refused(spec(")"), LEAT_IO, "No such file");
	temp_write(&temp, "data", "x", 1);
	expect_refused(spec(")"), LEAT_IO, "Not a directory");
	unlink(temp_path(&temp, "data"));
	make_folder("data");
	expect_refused(spec(")"), LEAT_DATA, "has no subfolders; expected one per class, as in '");
	put("1.jpg");
	expect_refused(spec(")"), LEAT_DATA, "data/cat/1.jpg'");
	put("cat/1.jpg");
	make_folder("data/dog");
	expect_refused(spec(")"), LEAT_DATA, "data/dog' has no files; remove it");
	put("dog/more/1.gif");
	put("dog/more/2.gif");
	expect_refused(
		spec(")"), LEAT_DATA,
		"data/dog' has no images that can be decoded (.jpg, .jpeg, .png, .webp), only 2 other files, such as "
		"'dog/more/1.gif'");
	expect_refused("folder", LEAT_SPEC, "needs the option 'dir'");
}

/* ---- the index ---- */

static void
changes_of_folders_are_seen(void **state)
{
	static const char *const more[] = {"cat/0.jpg", "cat/1.jpg", "cat/2.jpg", "cat/more/3.png", "dog/1.jpg"};
	static const char *const class[] = {"ant/1.png", "cat/1.jpg", "cat/2.jpg", "cat/more/3.png", "dog/1.jpg"};
	static const char *const deep[] = {"cat/1.jpg", "cat/2.jpg", "cat/more/3.png", "cat/more/4.png", "dog/1.jpg"};

	(void)state;
	make_small();
	expect_small();
	put("cat/0.jpg");
	expect_samples(more, (const int64_t[]){0, 0, 0, 0, 1}, 5);
	unlink(temp_path(&temp, "data/cat/0.jpg"));
	expect_small();
	put("ant/1.png");
	expect_samples(class, (const int64_t[]){0, 1, 1, 1, 2}, 5);
	unlink(temp_path(&temp, "data/ant/1.png"));
	rmdir(temp_path(&temp, "data/ant"));
	expect_small();
	put("cat/more/4.png");
	expect_samples(deep, (const int64_t[]){0, 0, 0, 0, 1}, 5);
}

static size_t
inode(const char *name)
{
	struct stat st;

	return stat(temp_path(&temp, name), &st) == 0 ? (size_t)st.st_ino : 0;
}

static void
an_index_is_used_as_long_as_nothing_changes(void **state)
{
	size_t first;

	(void)state;
	make_small();
	expect_small();
	first = inode(".data.leatidx");
	assert_true(first != 0);
	expect_small();
	assert_int_equal(inode(".data.leatidx"), first);
	assert_int_equal(logged.warn, 0);
}

/* As written by a version of Leat that decodes other formats. */
static void
an_index_made_for_other_extensions_is_made_again(void **state)
{
	const size_t key = offsetof(struct leat_sidecar_head, key);
	unsigned char *before, *after;
	size_t len;

	(void)state;
	make_small();
	expect_small();
	before = temp_read(temp_path(&temp, ".data.leatidx"), &len);
	before[key] ^= 1;
	temp_write(&temp, ".data.leatidx", before, len);
	expect_small();
	after = temp_read(temp_path(&temp, ".data.leatidx"), &len);
	assert_int_equal(after[key], before[key] ^ 1);
	assert_int_equal(logged.warn, 0);
	free(before);
	free(after);
}

static void
what_was_changed_just_now_is_not_kept(void **state)
{
	(void)state;
	make_small();
	temp_change_now(&temp, "data/dog");
	expect_small();
	assert_false(temp_exists(&temp, ".data.leatidx"));
	put("dog/2.txt");
	age();
	expect_small();
	assert_true(temp_exists(&temp, ".data.leatidx"));
}

/* A name that leaves no room beside it stands for a folder that cannot be written. */
static void
an_index_lies_in_the_cache_folder_where_it_cannot_be_beside(void **state)
{
	char name[252], link[500], target[500];

	(void)state;
	make_small();
	memset(name, 'x', sizeof name - 1);
	name[sizeof name - 1] = '\0';
	snprintf(target, sizeof target, "%s/data", temp.folder);
	snprintf(link, sizeof link, "%s/%s", temp.folder, name);
	assert_int_equal(rename(target, link), 0);
	assert_int_equal(symlink(name, target), 0);
	for (int again = 0; again < 2; again++) {
		expect_small();
		assert_int_equal(logged.warn, 0);
		assert_true(temp_exists(&temp, "cache/leat/index"));
	}
	setenv("XDG_CACHE_HOME", "/proc/none", 1);
	expect_small();
	assert_int_equal(logged.warn, 1);
}

static void
a_damaged_index_is_made_again(void **state)
{
	unsigned char *bytes;
	size_t len;

	(void)state;
	make_small();
	expect_small();
	bytes = temp_read(temp_path(&temp, ".data.leatidx"), &len);
	for (size_t i = 0; i <= len; i += TEST_SLOW ? 7 : 1) {
		logged.warn = 0;
		if (i < len)
			bytes[i] ^= 0x10;
		temp_write(&temp, ".data.leatidx", bytes, i < len ? len : len - 8);
		expect_small();
		/* Another key is what other options would have. */
		if (logged.warn != 1 && !(i >= 32 && i < 64))
			fail_msg("byte %zu of %zu", i, len);
		if (i < len)
			bytes[i] ^= 0x10;
	}
	free(bytes);
}

/* With a checksum that is right, so that it is for the source to see. What makes sense may be used. */
static void
no_numbers_in_an_index_do_harm(void **state)
{
	unsigned char *bytes, *copy;
	size_t len;

	(void)state;
	make_small();
	expect_small();
	bytes = temp_read(temp_path(&temp, ".data.leatidx"), &len);
	copy = malloc(len);
	for (size_t at = 64; at < len; at += 8) {
		struct leat_sidecar_head *head = (struct leat_sidecar_head *)(void *)copy;
		struct leat_batch *batch;
		struct leat_feed *feed;
		uint64_t value;

		memcpy(copy, bytes, len);
		memcpy(&value, copy + at, 8);
		value = value == UINT64_MAX ? 0 : ~value;
		memcpy(copy + at, &value, 8);
		head->crc = leat_sidecar_crc(copy, len);
		temp_write(&temp, ".data.leatidx", copy, len);
		options.on_error = LEAT_ON_ERROR_SKIP;
		feed = trace_open(spec(", path=true) | batch(10)"), &options);
		if (leat_next(feed, &batch, NULL) == LEAT_OK)
			leat_release(batch);
		leat_close(feed);
	}
	free(bytes);
	free(copy);
}

/* ---- files that change ---- */

static void
a_file_that_changes_while_the_feed_is_open_is_a_bad_sample(void **state)
{
	struct leat_batch *batch;
	struct leat_feed *feed;
	struct whole whole;
	struct leat_err err;

	(void)state;
	make_small();
	options.on_error = LEAT_ON_ERROR_SKIP;
	for (int larger = 0; larger < 2; larger++) {
		feed = trace_open(spec(") | batch(4) | prefetch(0)"), &options);
		assert_true(temp_exists(&temp, ".data.leatidx"));
		assert_int_equal(truncate(temp_path(&temp, "data/cat/2.jpg"), larger ? 100 : 3), 0);
		assert_int_equal(leat_next(feed, &batch, &err), LEAT_OK);
		assert_int_equal(leat_batch_count(batch), 3);
		assert_int_equal(leat_bad_at(feed, 0)->sample, 1);
		assert_non_null(strstr(leat_bad_at(feed, 0)->reason,
		                       "/data/cat/2.jpg' has changed since it was indexed; the index was removed, "
		                       "open the feed again"));
		assert_false(temp_exists(&temp, ".data.leatidx"));
		leat_release(batch);
		leat_close(feed);
		whole_open(&whole, spec(")"), &options);
		assert_int_equal(whole.count, 4);
		whole_close(&whole);
	}
}

static void
a_file_that_vanishes_while_the_feed_is_open_is_a_bad_sample(void **state)
{
	struct leat_batch *batch;
	struct leat_feed *feed;
	struct leat_err err;

	(void)state;
	make_small();
	options.on_error = LEAT_ON_ERROR_SKIP;
	feed = trace_open(spec(") | batch(4) | prefetch(0)"), &options);
	unlink(temp_path(&temp, "data/dog/1.jpg"));
	assert_int_equal(leat_next(feed, &batch, &err), LEAT_OK);
	assert_int_equal(leat_batch_count(batch), 3);
	assert_non_null(strstr(leat_bad_at(feed, 0)->reason, "cannot open '"));
	assert_non_null(strstr(leat_bad_at(feed, 0)->reason, "/data/dog/1.jpg': No such file"));
	leat_release(batch);
	leat_close(feed);
}

static void
links_to_nothing_and_pipes_are_bad_samples(void **state)
{
	static const char *const found[] = {"cat/0.jpg", "cat/1.jpg", "cat/2.jpg", "cat/more/3.png", "dog/1.jpg"};
	struct whole whole;
	struct stat before;

	(void)state;
	make_small();
	assert_int_equal(symlink("../aside", temp_path(&temp, "data/cat/0.jpg")), 0);
	assert_int_equal(mkfifo(temp_path(&temp, "data/dog/pipe.png"), 0666), 0);
	age();
	options.on_error = LEAT_ON_ERROR_SKIP;
	for (int again = 0; again < 2; again++) {
		whole_open(&whole, spec(")"), &options);
		assert_int_equal(whole.count, 4);
		assert_int_equal(leat_bad_count(whole.feed), 2);
		assert_non_null(strstr(leat_bad_at(whole.feed, 0)->reason, "data/cat/0.jpg': No such file"));
		assert_non_null(strstr(leat_bad_at(whole.feed, 1)->reason, "data/dog/pipe.png' is not a regular file"));
		whole_close(&whole);
	}
	/* What a link leads to may come without a change of any folder. */
	unlink(temp_path(&temp, "data/dog/pipe.png"));
	age();
	whole_open(&whole, spec(")"), &options);
	whole_close(&whole);
	assert_int_equal(stat(temp_path(&temp, "data"), &before), 0);
	temp_write(&temp, "data/aside", "cat/0.jpg", 9);
	assert_int_equal(
		utimensat(AT_FDCWD, temp_path(&temp, "data"), (struct timespec[]){before.st_atim, before.st_mtim}, 0),
		0);
	expect_samples(found, (const int64_t[]){0, 0, 0, 0, 1}, 5);
}

/* A file becomes a pipe behind the back of the index. */
static void
a_pipe_in_place_of_a_file_does_not_hang(void **state)
{
	struct leat_batch *batch;
	struct leat_feed *feed;
	struct leat_err err;

	(void)state;
	make_small();
	options.on_error = LEAT_ON_ERROR_SKIP;
	feed = trace_open(spec(") | batch(4) | prefetch(0)"), &options);
	unlink(temp_path(&temp, "data/dog/1.jpg"));
	assert_int_equal(mkfifo(temp_path(&temp, "data/dog/1.jpg"), 0666), 0);
	assert_int_equal(leat_next(feed, &batch, &err), LEAT_OK);
	assert_int_equal(leat_batch_count(batch), 3);
	assert_non_null(strstr(leat_bad_at(feed, 0)->reason, "is not a regular file"));
	leat_release(batch);
	leat_close(feed);
}

static void
links_to_folders_are_followed_but_not_for_ever(void **state)
{
	static const char *const paths[] = {"cat/1.jpg",        "cat/2.jpg",        "cat/more/3.png",       "dog/1.jpg",
	                                    "dog/friend/1.jpg", "dog/friend/2.jpg", "dog/friend/more/3.png"};
	struct whole whole;

	(void)state;
	make_small();
	assert_int_equal(symlink("../cat", temp_path(&temp, "data/dog/friend")), 0);
	whole_open(&whole, spec(", path=true)"), NULL);
	assert_int_equal(whole.count, 7);
	for (int i = 0; i < 7; i++)
		whole_expect_text(&whole, "path", i, paths[i]);
	whole_close(&whole);
	/* Two of them: to follow each of both would take 2, 4, 8, ... folders. */
	assert_int_equal(symlink("../dog", temp_path(&temp, "data/dog/self")), 0);
	assert_int_equal(symlink("..", temp_path(&temp, "data/dog/up")), 0);
	expect_refused(spec(")"), LEAT_DATA, "/data/dog/self' is a symlink to one of its parent folders");
	unlink(temp_path(&temp, "data/dog/self"));
	expect_refused(spec(")"), LEAT_DATA, "/data/dog/up' is a symlink to one of its parent folders");
}

static void
what_is_not_in_memory_is_read(void **state)
{
	static char big[200000];
	struct whole whole;
	int fd;

	(void)state;
	make_small();
	memset(big, 'x', sizeof big);
	fd = open(temp_write(&temp, "data/dog/1.jpg", big, sizeof big), O_RDONLY);
	assert_int_equal(fsync(fd), 0);
	assert_int_equal(posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED), 0);
	close(fd);
	whole_open(&whole, spec(") | batch(4)"), NULL);
	assert_int_equal(whole_field(&whole, "image").bytes, 9 + 9 + 14 + sizeof big);
	whole_close(&whole);
}

/* ---- promises ---- */

static void
save_and_restore(const char *from, const char *to, enum leat_status expected)
{
	struct leat_feed *feed;
	struct leat_err err;
	char *json;

	feed = trace_open(from, &options);
	assert_int_equal(leat_save(feed, &json, &err), LEAT_OK);
	leat_close(feed);
	feed = trace_open(to, &options);
	assert_int_equal(leat_restore(feed, json, &err), expected);
	leat_close(feed);
	free(json);
}

static void
a_checkpoint_goes_with_the_data_wherever_it_lies(void **state)
{
	char moved[300], from[300];

	(void)state;
	make_small();
	snprintf(moved, sizeof moved, "folder('%s/moved') | batch(1)", temp.folder);
	snprintf(from, sizeof from, "%s/data", temp.folder);
	snprintf(text, sizeof text, "cp -r '%s' '%s/moved'", from, temp.folder);
	assert_int_equal(system(text), 0);
	save_and_restore(spec(") | batch(1)"), moved, LEAT_OK);
	temp_write(&temp, "moved/dog/1.jpg", "another", 7);
	save_and_restore(spec(") | batch(1)"), moved, LEAT_MISMATCH);
}

/* What a cache keeps is known by the times of the files, too. */
static void
files_written_again_are_other_data_for_a_cache(void **state)
{
	char key[LEAT_SHA256_HEX], data[LEAT_SHA256_HEX];
	struct leat_feed *feed;

	(void)state;
	make_small();
	feed = trace_open(spec(") | cache | batch(2)"), &options);
	strcpy(key, feed->pipeline.cache_key);
	strcpy(data, feed->pipeline.data);
	leat_close(feed);
	feed = trace_open(spec(") | cache | batch(2)"), &options);
	assert_string_equal(feed->pipeline.cache_key, key);
	leat_close(feed);
	put("cat/1.jpg"); /* anew, which changes the folder's time */
	feed = trace_open(spec(") | cache | batch(2)"), &options);
	assert_string_equal(feed->pipeline.data, data);
	assert_string_not_equal(feed->pipeline.cache_key, key);
	leat_close(feed);
}

static void
the_same_for_any_threads_ranks_and_stops(void **state)
{
	char name[40];

	(void)state;
	make_small();
	for (int i = 0; i < 40; i++) {
		snprintf(name, sizeof name, "%s/n%d.png", i % 3 ? "cat" : "dog", i);
		put(name);
	}
	age();
	promise_same(spec(", path=true)"));
	promise_same(spec(") | cache"));
}

static void
forget_index(void)
{
	unlink(temp_path(&temp, ".data.leatidx"));
}

static void
no_memory_is_an_error(void **state)
{
	(void)state;
	make_small();
	promise_memory_errors(spec(", path=true) | batch(2)"), forget_index);
	promise_memory_errors(spec(", path=true) | batch(2)"), NULL);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(files_come_in_the_order_of_imagefolder),
		TEST(fields_are_image_and_label_and_if_asked_for_path),
		TEST(files_that_cannot_be_decoded_are_skipped_with_one_warning),
		TEST(empty_files_are_samples_without_bytes),
		TEST(classes_are_the_parts_of_the_source),
		TEST(a_folder_may_be_written_in_several_ways),
		TEST(what_is_no_such_folder_is_refused),
		TEST(changes_of_folders_are_seen),
		TEST(an_index_is_used_as_long_as_nothing_changes),
		TEST(an_index_made_for_other_extensions_is_made_again),
		TEST(what_was_changed_just_now_is_not_kept),
		TEST(an_index_lies_in_the_cache_folder_where_it_cannot_be_beside),
		TEST(a_damaged_index_is_made_again),
		TEST(no_numbers_in_an_index_do_harm),
		TEST(a_file_that_changes_while_the_feed_is_open_is_a_bad_sample),
		TEST(a_file_that_vanishes_while_the_feed_is_open_is_a_bad_sample),
		TEST(links_to_nothing_and_pipes_are_bad_samples),
		TEST(a_pipe_in_place_of_a_file_does_not_hang),
		TEST(links_to_folders_are_followed_but_not_for_ever),
		TEST(what_is_not_in_memory_is_read),
		TEST(a_checkpoint_goes_with_the_data_wherever_it_lies),
		TEST(files_written_again_are_other_data_for_a_cache),
		TEST(the_same_for_any_threads_ranks_and_stops),
		TEST(no_memory_is_an_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
