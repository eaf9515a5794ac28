/* test_data_index.c - one index for a data set on a server: opening takes no other request, and what changed is told */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "format/indexed.h"
#include "format/record.h"
#include "support/data.h"
#include "support/logged.h"
#include "support/temp.h"
#include "support/web.h"

enum { FILES = 3, SAMPLES = 9 };

static struct leat_mem mem;
static struct leat_err err;
static struct temp temp;
static struct data data;
static char name[FILES][128];
static const char *names[FILES] = {name[0], name[1], name[2]};
static struct leat_stores stores;

static void
put_file(int i)
{
	size_t len;
	unsigned char *bytes = temp_read(data_path(&data, (size_t)i), &len);

	web_put(name[i], bytes, len);
	free(bytes);
}

static int
set_up(void **state)
{
	const size_t counts[FILES] = {4, 3, 2};

	(void)state;
	leat_mem_init(&mem, SIZE_MAX);
	leat_err_clear(&err);
	temp_make(&temp);
	setenv("XDG_CACHE_HOME", temp_path(&temp, "cache"), 1);
	memset(&logged, 0, sizeof(logged));
	data_make(&data, FILES, counts, NULL);
	web_start();
	for (int i = 0; i < FILES; i++) {
		snprintf(name[i], sizeof(name[i]), "%s/data/part-%d", web_address(), i);
		put_file(i);
	}
	leat_stores_init(&stores, &mem);
	return 0;
}

static int
tear_down(void **state)
{
	(void)state;
	leat_stores_close(&stores);
	web_stop();
	data_remove(&data);
	temp_remove(&temp);
	return mem.used != 0;
}

static const struct leat_index_kind *
kind_of(const char *uri)
{
	(void)uri;
	return &leat_tfrecord_index;
}

static void
tell(void *arg, const struct leat_index_report *report)
{
	assert_true(report->state == LEAT_INDEX_BUILT || report->state == LEAT_INDEX_FRESH);
	*(uint64_t *)arg += report->samples;
}

/* What `leat index` does; the name of the index. */
static const char *
make_index(uint64_t expected)
{
	static char path[512];
	uint64_t samples = 0;
	char *saved;

	assert_int_equal(leat_index_files(names, FILES, kind_of, 2, NULL, &mem, &log_all, tell, &samples, &saved, &err),
	                 LEAT_OK);
	assert_int_equal(samples, expected);
	assert_non_null(saved);
	snprintf(path, sizeof(path), "%s", saved);
	leat_free(&mem, saved);
	return path;
}

static enum leat_status
open_names(struct leat_indexed *indexed, struct leat_files **files, const char **list, size_t count)
{
	const struct leat_strings patterns = {count, list};
	enum leat_status status;

	*files = NULL;
	status = leat_indexed_open(indexed, &leat_tfrecord_index, &stores, &patterns, files, 2, &mem, &log_all, &err);
	return status;
}

static void
close_names(struct leat_indexed *indexed, struct leat_files *files)
{
	leat_indexed_close(indexed);
	leat_files_close(files);
}

static void
opening_takes_no_request(void **state)
{
	struct leat_indexed indexed;
	struct leat_files *files;
	int before;

	(void)state;
	make_index(SAMPLES);
	before = web_counts().requests;
	assert_int_equal(open_names(&indexed, &files, names, FILES), LEAT_OK);
	assert_int_equal(web_counts().requests, before);
	assert_int_equal(leat_files_count(files), FILES);
	assert_int_equal(indexed.first[FILES], SAMPLES);
	for (size_t i = 0; i < FILES; i++)
		assert_string_equal(leat_files_at(files, i)->uri, names[i]);
	close_names(&indexed, files);
	assert_int_equal(logged.warn, 0);
}

static enum leat_status
read_first(struct leat_files *files, size_t i)
{
	char bytes[100];
	struct iovec iov = {bytes, sizeof(bytes)};
	size_t got;

	leat_err_clear(&err);
	return leat_files_read(files, i, 0, &iov, 1, 0, &got, &err);
}

static void
a_file_that_was_replaced_or_removed_is_an_error_that_says_what_to_do(void **state)
{
	struct leat_indexed indexed;
	struct leat_files *files;

	(void)state;
	make_index(SAMPLES);
	put_file(1);
	web_remove(name[2]);
	assert_int_equal(open_names(&indexed, &files, names, FILES), LEAT_OK);
	assert_int_equal(read_first(files, 0), LEAT_OK);
	for (size_t i = 1; i < FILES; i++) {
		assert_int_equal(read_first(files, i), LEAT_DATA);
		assert_non_null(strstr(err.text, names[i]));
		assert_non_null(strstr(err.text, "run 'leat index' again"));
	}
	close_names(&indexed, files);
	web_put(name[2], "", 0);
	make_index(SAMPLES - 2);
	assert_int_equal(open_names(&indexed, &files, names, FILES), LEAT_OK);
	assert_int_equal(read_first(files, 1), LEAT_OK);
	close_names(&indexed, files);
}

static void
it_belongs_to_its_names_in_their_order(void **state)
{
	const char *other[FILES] = {names[1], names[0], names[2]};
	struct leat_data_index index;
	struct leat_files *files;

	(void)state;
	make_index(SAMPLES);
	assert_int_equal(
		leat_data_index_open(&index, &files, &leat_tfrecord_index, &stores, other, FILES, &mem, &log_all, &err),
		LEAT_AGAIN);
	assert_int_equal(
		leat_data_index_open(&index, &files, &leat_tfrecord_index, &stores, names, 2, &mem, &log_all, &err),
		LEAT_AGAIN);
	assert_int_equal(err.status, LEAT_OK);
}

/* Each byte of the index in turn. */
static void
a_damaged_index_is_not_used(void **state)
{
	const char *path = make_index(SAMPLES);
	size_t len, used = 0;
	unsigned char *bytes = temp_read(path, &len);

	(void)state;
	for (size_t i = 0; i < len; i += 1 + len / 300) {
		struct leat_data_index index;
		struct leat_files *files;
		FILE *file = fopen(path, "wb");

		bytes[i] ^= 0x10;
		assert_true(fwrite(bytes, 1, len, file) == len && fclose(file) == 0);
		bytes[i] ^= 0x10;
		if (leat_data_index_open(&index, &files, &leat_tfrecord_index, &stores, names, FILES, &mem, &log_all,
		                         &err) == LEAT_OK) {
			used++;
			leat_data_index_close(&index);
			leat_files_close(files);
		}
	}
	free(bytes);
	assert_int_equal(used, 0);
}

static void
signed_urls_are_not_written_down(void **state)
{
	const char *secret[] = {"https://host/a?signature=x"}, *user[] = {"https://me:pass@host/a"}, *local[] = {"a"};

	(void)state;
	assert_true(leat_data_index_is_for(&stores, names, FILES, &mem));
	assert_false(leat_data_index_is_for(&stores, secret, 1, &mem));
	assert_false(leat_data_index_is_for(&stores, user, 1, &mem));
	assert_false(leat_data_index_is_for(&stores, local, 1, &mem));
}

static void
every_failing_allocation_is_survived(void **state)
{
	enum leat_status status = LEAT_NOMEM;

	(void)state;
	make_index(SAMPLES);
	assert_true(leat_data_index_is_for(&stores, names, FILES, &mem)); /* opens the store */
	for (long n = 0; status != LEAT_OK; n++) {
		struct leat_indexed indexed;
		struct leat_files *files;

		assert_true(n < 10000);
		leat_err_clear(&err);
		atomic_store(&mem.fail_after, n);
		status = open_names(&indexed, &files, names, FILES);
		atomic_store(&mem.fail_after, -1);
		close_names(&indexed, files);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(opening_takes_no_request, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_file_that_was_replaced_or_removed_is_an_error_that_says_what_to_do,
	                                        set_up, tear_down),
		cmocka_unit_test_setup_teardown(it_belongs_to_its_names_in_their_order, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_damaged_index_is_not_used, set_up, tear_down),
		cmocka_unit_test_setup_teardown(signed_urls_are_not_written_down, set_up, tear_down),
		cmocka_unit_test_setup_teardown(every_failing_allocation_is_survived, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
