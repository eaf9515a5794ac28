/* test_feed_fresh.c - data that has changed is never taken from a cache on disk, nor hidden by a saved index */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "feed/feed.h"
#include "format/file_table.h"
#include "support/source.h"
#include "support/sources.h"
#include "support/temp.h"
#include "support/trace.h"

static struct temp temp;
static struct leat_options options;
static char text[2000];

static int
setup(void **state)
{
	(void)state;
	temp_make(&temp);
	setenv("XDG_CACHE_HOME", temp_path(&temp, "user"), 1);
	trace_options(&options);
	options.on_error = LEAT_ON_ERROR_SKIP;
	options.max_bad = UINT64_MAX;
	options.epochs = 1;
	return 0;
}

static int
teardown(void **state)
{
	(void)state;
	temp_remove(&temp);
	return 0;
}

/* ---- changing files ---- */

static void
set_mtime(const char *path, const struct stat *st)
{
	const struct timespec times[2] = {st->st_atim, st->st_mtim};

	assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
}

static void
write_file(const char *path, int flags, const void *bytes, size_t len)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC | flags, 0666);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, bytes, len), len);
	close(fd);
}

/* Writes over a file and sets its mtime back. Again if the change time stayed the same: its clock ticks every few
 * milliseconds only. */
static void
write_over(const char *path, const void *bytes, size_t len)
{
	struct stat before, after;

	assert_int_equal(stat(path, &before), 0);
	do {
		write_file(path, O_TRUNC, bytes, len);
		set_mtime(path, &before);
		assert_int_equal(stat(path, &after), 0);
	} while (after.st_ctim.tv_sec == before.st_ctim.tv_sec && after.st_ctim.tv_nsec == before.st_ctim.tv_nsec);
}

/* As `cp -p` to a new file and `mv` do: only inode and change time tell. */
static void
put_in_place(const char *path, const void *bytes, size_t len)
{
	struct stat before;
	char new[600];

	assert_int_equal(stat(path, &before), 0);
	snprintf(new, sizeof new, "%s.new", path);
	write_file(new, O_EXCL, bytes, len);
	set_mtime(new, &before);
	assert_int_equal(rename(new, path), 0);
}

/* nftw hands no argument on. */
static void (*change)(const char *path, const void *bytes, size_t len);
static unsigned changed_files;
static bool reads_csv; /* the source: to others, a CSV file names files */

/* Of tables as text: the last digit of each number with decimals, so that all records stay what they should be. */
static void
change_digits(unsigned char *bytes, size_t len)
{
	for (size_t i = 1; i < len; i++)
		if (bytes[i - 1] == '.' && (bytes[i] == '5' || bytes[i] == '4'))
			bytes[i] ^= 1;
}

/* Flips a bit in the middle of a data file. */
static int
change_file(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	unsigned char *bytes;
	size_t len;

	if (type != FTW_F || path[ftw->base] == '.' || st->st_size == 0 || strstr(path, ".json") ||
	    (strstr(path, ".csv") && !reads_csv) || strstr(path, ".txt"))
		return 0;
	bytes = temp_read(path, &len);
	if (reads_csv)
		change_digits(bytes, len);
	else
		bytes[len / 2] ^= 1;
	change(path, bytes, len);
	free(bytes);
	changed_files++;
	return 0;
}

static int
age_folder(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	const struct timespec times[2] = {{1, 0}, {1000000, 0}};

	(void)st, (void)ftw;
	return type == FTW_D || strstr(path, ".csv") ? utimensat(AT_FDCWD, path, times, 0) : 0;
}

/* As if all folders and lists had changed long ago: otherwise their indexes are not saved. */
static void
age(const char *folder)
{
	assert_int_equal(nftw(folder, age_folder, 16, FTW_PHYS), 0);
}

/* ---- every source ---- */

static void
run(struct trace *trace, const char *spec, const char *cache)
{
	snprintf(text, sizeof text, "%s%s | batch(5)", spec, cache);
	trace_run(trace, text, &options);
	assert_int_equal(trace->status, LEAT_DONE);
}

static void
expect_new_samples(const struct sources_one *one, const char *cache)
{
	struct trace cold, warm, now, fresh;

	age(one->folder);
	run(&cold, one->spec, cache);
	run(&warm, one->spec, cache);
	trace_compare(&cold, &warm, one->name);
	changed_files = 0;
	reads_csv = strcmp(one->name, "csv") == 0;
	assert_int_equal(nftw(one->folder, change_file, 16, FTW_PHYS), 0);
	assert_true(changed_files > 0);
	age(one->folder);
	run(&now, one->spec, cache);
	run(&fresh, one->spec, "");
	trace_compare(&fresh, &now, one->name);
	if (now.samples == warm.samples && memcmp(now.sample, warm.sample, now.samples * sizeof *now.sample) == 0)
		fail_msg("%s: nothing has changed", one->name);
	trace_free(&cold);
	trace_free(&warm);
	trace_free(&now);
	trace_free(&fresh);
}

static void
samples_of_files_that_have_changed_never_come_from_a_cache(void **state)
{
	struct sources sources;
	char cache[300];

	(void)state;
	sources_make(&sources);
	snprintf(cache, sizeof cache, " | cache(dir='%s/cache')", temp.folder);
	for (size_t i = 0; i < sources.count; i++) {
		change = write_over;
		expect_new_samples(&sources.one[i], cache);
		change = put_in_place;
		expect_new_samples(&sources.one[i], cache);
	}
	sources_remove(&sources);
}

static int
replace_description(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	unsigned char *bytes;
	size_t len;

	(void)st, (void)ftw;
	if (type != FTW_F || !strstr(path, ".json"))
		return 0;
	bytes = temp_read(path, &len);
	put_in_place(path, bytes, len);
	free(bytes);
	changed_files++;
	return 0;
}

static int
count_cache_file(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st, (void)type, (void)ftw;
	changed_files += strstr(path, ".leatcache") != NULL;
	return 0;
}

/* index.json says what the bytes of a shard mean. */
static void
a_new_description_of_the_data_makes_a_new_cache(void **state)
{
	struct sources sources;
	unsigned described = 0;

	(void)state;
	sources_make(&sources);
	for (size_t i = 0; i < sources.count; i++) {
		struct trace trace[2];
		char cache[300];
		unsigned files;

		snprintf(cache, sizeof cache, " | cache(dir='%s/%zu')", temp.folder, i);
		run(&trace[0], sources.one[i].spec, cache);
		changed_files = 0;
		nftw(sources.one[i].folder, replace_description, 16, FTW_PHYS);
		files = changed_files ? 2 : 1;
		described += files - 1;
		run(&trace[1], sources.one[i].spec, cache);
		changed_files = 0;
		snprintf(cache, sizeof cache, "%s/%zu", temp.folder, i);
		nftw(cache, count_cache_file, 16, FTW_PHYS);
		assert_int_equal(changed_files, files);
		trace_free(&trace[0]);
		trace_free(&trace[1]);
	}
	assert_true(described >= 2);
	sources_remove(&sources);
}

/* ---- folders and lists ---- */

static void
make_folder(int files)
{
	char path[100], name[20];

	mkdir(temp_path(&temp, "f"), 0777);
	mkdir(temp_path(&temp, "f/a"), 0777);
	for (int i = 0; i < files; i++) {
		snprintf(path, sizeof path, "f/a/%06d.jpg", i);
		snprintf(name, sizeof name, "old-%06d", i);
		temp_write(&temp, path, name, strlen(name));
	}
	age(temp_path(&temp, "f"));
}

static void
make_list(int files)
{
	FILE *list = fopen(temp_path(&temp, "f/list.csv"), "w");

	assert_non_null(list);
	fprintf(list, "path\n");
	for (int i = 0; i < files; i++)
		fprintf(list, "a/%06d.jpg\n", i);
	fclose(list);
	age(temp_path(&temp, "f"));
}

/* "SOURCE | cache | skip(FIRST) | take(4) | batch(4)" */
static const char *
spec_of(bool list, bool cached, int first)
{
	int len = snprintf(text, sizeof text, list ? "list('%s/f/list.csv')" : "folder('%s/f')", temp.folder);

	if (cached)
		len += snprintf(text + len, sizeof text - (size_t)len, " | cache(dir='%s/cache')", temp.folder);
	snprintf(text + len, sizeof text - (size_t)len, " | skip(%d) | take(4) | batch(4)", first);
	return text;
}

static void
expect_image(const char *spec, int row, const char *image)
{
	struct whole whole;

	whole_open(&whole, spec, &options);
	assert_int_equal(leat_bad_count(whole.feed), 0);
	assert_int_equal(whole.count, 4);
	whole_expect_text(&whole, "image", row, image);
	whole_close(&whole);
}

static void
images_written_over_are_seen_at_once(void **state)
{
	static const char *const versions[] = {"new-000003", "a longer one", "short", "", "old-000003"};

	(void)state;
	make_folder(7);
	make_list(7);
	for (int list = 0; list < 2; list++)
		for (int cached = 0; cached < 2; cached++) {
			write_over(temp_path(&temp, "f/a/000003.jpg"), "old-000003", 10);
			expect_image(spec_of(list, cached, 2), 1, "old-000003");
			for (size_t i = 0; i < sizeof versions / sizeof *versions; i++) {
				write_over(temp_path(&temp, "f/a/000003.jpg"), versions[i], strlen(versions[i]));
				expect_image(spec_of(list, cached, 2), 1, versions[i]);
				expect_image(spec_of(list, cached, 2), 1, versions[i]);
			}
		}
}

/* Of a large folder only some files are looked at when it opens. One that is not is noticed before its sample is used,
 * and the next run lists the folder again. */
static void
a_change_in_a_large_folder_is_an_error_once_and_then_seen(void **state)
{
	enum { FILES = LEAT_FILE_TABLE_LOOKS + 10, ROW = 4321 };
	static const char *const index[] = {".f.leatidx", "f/.list.csv.leatidx"};
	struct whole whole;

	(void)state;
	make_folder(FILES);
	make_list(FILES);
	for (int list = 0; list < 2; list++)
		for (int cached = 0; cached < 2; cached++)
			for (int longer = 0; longer < 2; longer++) {
				write_over(temp_path(&temp, "f/a/004321.jpg"), "old-004321", 10);
				unlink(temp_path(&temp, index[list]));
				for (int again = 0; again < 2; again++)
					expect_image(spec_of(list, cached, ROW - 1), 1, "old-004321");
				assert_true(temp_exists(&temp, index[list]));
				write_over(temp_path(&temp, "f/a/004321.jpg"), "new-004321!", longer ? 11 : 10);
				whole_open(&whole, spec_of(list, cached, ROW - 1), &options);
				assert_int_equal(whole.count, 3);
				assert_int_equal(leat_bad_at(whole.feed, 0)->sample, ROW);
				assert_non_null(
					strstr(leat_bad_at(whole.feed, 0)->reason,
				               "/f/a/004321.jpg' has changed since it was indexed; the index was "
				               "removed, open the feed again"));
				whole_close(&whole);
				assert_false(temp_exists(&temp, index[list]));
				expect_image(spec_of(list, cached, ROW - 1), 1, longer ? "new-004321!" : "new-004321");
			}
}

/* chmod -R, or a new version of all images: one of the files that opening looks at shows it. */
static void
a_large_folder_that_has_changed_as_a_whole_is_listed_again(void **state)
{
	enum { FILES = LEAT_FILE_TABLE_LOOKS + 10 };
	char path[100];

	(void)state;
	make_folder(FILES);
	expect_image(spec_of(false, true, 0), 1, "old-000001");
	for (int i = 0; i < FILES; i++) {
		snprintf(path, sizeof path, "f/a/%06d.jpg", i);
		write_over(temp_path(&temp, path), "new", 3);
	}
	expect_image(spec_of(false, true, 0), 1, "new");
}

int
main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(samples_of_files_that_have_changed_never_come_from_a_cache),
		TEST(a_new_description_of_the_data_makes_a_new_cache),
		TEST(images_written_over_are_seen_at_once),
		TEST(a_change_in_a_large_folder_is_an_error_once_and_then_seen),
		TEST(a_large_folder_that_has_changed_as_a_whole_is_listed_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
