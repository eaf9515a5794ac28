/* test_index.c - an index is what was saved for exactly this data, or it is not used */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <pthread.h>

#include "base/hash.h"
#include "format/index.h"
#include "support/logged.h"
#include "support/temp.h"

static const struct leat_index_kind kind = {"testkind", 16};
static struct leat_mem mem;
static struct temp temp;

static char uri[512];
static struct leat_object file = {.uri = uri, .name = "data", .mtime_ns = 123456789};
static struct leat_stores stores;
static struct leat_mem store_mem;

static int
set_up(void **state)
{
	(void)state;
	leat_mem_init(&mem, SIZE_MAX);
	leat_mem_init(&store_mem, SIZE_MAX);
	leat_stores_init(&stores, &store_mem);
	assert_int_equal(leat_stores_find(&stores, "/", &file.store, NULL, NULL), LEAT_OK);
	temp_make(&temp);
	setenv("XDG_CACHE_HOME", temp_path(&temp, "cache"), 1);
	memset(&logged, 0, sizeof(logged));
	return 0;
}

static int
tear_down(void **state)
{
	(void)state;
	temp_remove(&temp);
	leat_stores_close(&stores);
	return mem.used != 0;
}

/* Samples of 20, 21, 22, ... bytes, each `every`-th damaged. */
static void
build(struct leat_index *index, uint64_t count, uint64_t every)
{
	uint64_t offset = 0;

	leat_index_init(index, &mem);
	for (uint64_t i = 0; i < count; i++) {
		assert_int_equal(leat_index_add(index, offset, every && i % every == every - 1, NULL), LEAT_OK);
		offset += 20 + i;
	}
	file.size = offset;
	snprintf(uri, sizeof(uri), "%s/data", temp.folder);
	assert_int_equal(leat_index_end(index, offset, NULL), LEAT_OK);
}

static void
save(uint64_t count, uint64_t every)
{
	struct leat_index index;
	struct leat_err err;

	leat_err_clear(&err);
	build(&index, count, every);
	if (leat_index_save(&index, &kind, &file, &mem, &err) != LEAT_OK)
		fail_msg("%s", err.text);
	leat_index_free(&index);
}

static enum leat_status
load(struct leat_index *index)
{
	struct leat_err err;
	enum leat_status status;

	leat_err_clear(&err);
	status = leat_index_load(index, &kind, &file, &mem, &log_all, &err);
	assert_int_equal(err.status, LEAT_OK);
	return status;
}

static void
check_loads(uint64_t count, uint64_t every)
{
	struct leat_index index;
	uint64_t offset = 0, longest = 0, damaged = 0;

	assert_int_equal(load(&index), LEAT_OK);
	assert_int_equal(index.count, count);
	for (uint64_t i = 0; i < count; i++) {
		bool bad = every && i % every == every - 1;

		assert_int_equal(leat_index_offset(&index, i), offset);
		assert_int_equal(leat_index_length(&index, i), 20 + i);
		assert_int_equal(leat_index_is_damaged(&index, i), bad);
		offset += 20 + i;
		damaged += bad;
		if (!bad)
			longest = 20 + i;
	}
	assert_int_equal(index.max_length, longest);
	assert_int_equal(index.damaged, damaged);
	leat_index_free(&index);
}

static void
check_refused(const char *part)
{
	struct leat_index index;

	assert_int_equal(load(&index), LEAT_AGAIN);
	if (!strstr(logged.text, part))
		fail_msg("'%s' does not say '%s'", logged.text, part);
	assert_int_equal(mem.used, 0);
}

static void
what_is_saved_is_loaded(void **state)
{
	static const uint64_t counts[] = {0, 1, 7, 1000, 100000};

	(void)state;
	for (int i = 0; i < 5; i++) {
		save(counts[i], 0);
		check_loads(counts[i], 0);
		save(counts[i], 3);
		check_loads(counts[i], 3);
	}
	assert_int_equal(logged.info + logged.warn, 0);
}

static void
it_lies_hidden_beside_the_data(void **state)
{
	struct leat_index index;

	(void)state;
	assert_int_equal((save(5, 0), load(&index)), LEAT_OK);
	leat_index_free(&index);
	assert_true(temp_exists(&temp, ".data.leatidx"));
	assert_false(temp_exists(&temp, "cache"));
}

/* A name that leaves no room for the index beside the data stands for a folder that cannot be written
 * (the tests may run as root, who can write everywhere). */
static void
it_lies_in_the_cache_folder_where_it_cannot_be_beside(void **state)
{
	char name[252];
	struct leat_index index;
	struct leat_err err;

	(void)state;
	memset(name, 'x', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	build(&index, 5, 0);
	strcpy(uri, temp_write(&temp, name, "", 0));
	assert_int_equal(leat_index_save(&index, &kind, &file, &mem, NULL), LEAT_OK);
	assert_true(temp_exists(&temp, "cache/leat/index"));
	check_loads(5, 0);
	setenv("XDG_CACHE_HOME", "relative", 1); /* is to be ignored */
	setenv("HOME", temp_path(&temp, "home"), 1);
	assert_int_equal(mkdir(temp.path, 0777), 0);
	assert_int_equal(leat_index_save(&index, &kind, &file, &mem, NULL), LEAT_OK);
	assert_true(temp_exists(&temp, "home/.cache/leat/index"));
	unsetenv("XDG_CACHE_HOME");
	check_loads(5, 0);
	setenv("HOME", "/proc/none", 1);
	leat_err_clear(&err);
	assert_int_equal(leat_index_save(&index, &kind, &file, &mem, &err), LEAT_IO);
	assert_non_null(strstr(err.text, "File name too long"));
	assert_non_null(strstr(err.text, "/proc/none"));
	unsetenv("HOME");
	assert_int_equal(leat_index_save(&index, &kind, &file, &mem, NULL), LEAT_IO);
	leat_index_free(&index);
}

static void
it_is_not_used_when_the_data_changed(void **state)
{
	(void)state;
	save(5, 0);
	file.size++;
	check_refused("the data has changed");
	file.size--;
	file.mtime_ns++;
	check_refused("the data has changed");
	file.mtime_ns--;
	assert_int_equal(logged.info, 2);
	assert_int_equal(logged.warn, 0);
	check_loads(5, 0);
}

static void
damage_of_any_byte_is_noticed(void **state)
{
	unsigned char *bytes;
	size_t len;

	(void)state;
	save(9, 4);
	bytes = temp_read(temp_path(&temp, ".data.leatidx"), &len);
	assert_int_equal(len, 64 + 8 * 10);
	for (size_t bit = 0; bit < 8 * len; bit++) {
		bytes[bit / 8] ^= (unsigned char)(1 << bit % 8);
		temp_write(&temp, ".data.leatidx", bytes, len);
		check_refused("ignoring index");
		bytes[bit / 8] ^= (unsigned char)(1 << bit % 8);
	}
	for (size_t cut = 0; cut < len; cut++) {
		temp_write(&temp, ".data.leatidx", bytes, cut);
		check_refused("ignoring index");
	}
	bytes = realloc(bytes, len + 8);
	memset(bytes + len, 0, 8);
	for (size_t more = 1; more <= 8; more++) {
		temp_write(&temp, ".data.leatidx", bytes, len + more);
		check_refused("ignoring index");
	}
	temp_write(&temp, ".data.leatidx", bytes, len);
	check_loads(9, 4);
	free(bytes);
}

static void
damage_of_a_large_one_is_noticed(void **state)
{
	unsigned char *bytes;
	size_t len;

	(void)state;
	save(50000, 0);
	bytes = temp_read(temp_path(&temp, ".data.leatidx"), &len);
	for (size_t at = 0; at < len; at += 997) {
		bytes[at] ^= 0x10;
		temp_write(&temp, ".data.leatidx", bytes, len);
		check_refused("ignoring index");
		bytes[at] ^= 0x10;
	}
	temp_write(&temp, ".data.leatidx", bytes, len - 8);
	check_refused("its length is wrong");
	free(bytes);
}

static void
what_is_no_index_is_refused_with_the_reason(void **state)
{
	static const struct leat_index_kind other = {"otherkind", 16};
	static const char text[100] = "not an index, though it is long enough to be one";
	struct leat_index index;

	(void)state;
	save(5, 0);
	assert_int_equal(leat_index_load(&index, &other, &file, &mem, &log_all, NULL), LEAT_AGAIN);
	assert_non_null(strstr(logged.text, "another format"));
	temp_write(&temp, ".data.leatidx", text, sizeof(text));
	check_refused("it is not an index");
	temp_write(&temp, ".data.leatidx", "", 0);
	check_refused("it is truncated");
	unlink(temp.path);
	assert_int_equal(mkdir(temp_path(&temp, ".data.leatidx"), 0777), 0);
	check_refused("it cannot be read");
	rmdir(temp.path);
	assert_int_equal(mkfifo(temp.path, 0666), 0); /* nobody ever writes to it */
	check_refused("it cannot be read");
	logged.text[0] = '\0';
	unlink(temp.path);
	check_refused(""); /* none at all is nothing to talk about */
	assert_string_equal(logged.text, "");
}

/* Someone who can make the checksum right cannot make offsets that lead out of the data. */
static void
offsets_that_make_no_sense_are_refused(void **state)
{
	struct {
		struct leat_index_head head;
		uint64_t offset[5];
	} good, bad;
	const struct leat_object data = {.uri = "x", .name = "x", .size = 100, .mtime_ns = 5};
	bool stale;

	(void)state;
	good.head = (struct leat_index_head){.version = LEAT_INDEX_VERSION,
	                                     .size = 100,
	                                     .token = leat_object_token(&data),
	                                     .count = 4,
	                                     .max_length = 40,
	                                     .damaged = 1};
	memcpy(good.head.magic, LEAT_INDEX_MAGIC, 8);
	memcpy(good.head.kind, "testkind", 8);
	memcpy(good.offset, (uint64_t[]){0, 20, 60, 83 | LEAT_INDEX_DAMAGED, 100}, sizeof(good.offset));
	for (int change = 0; change < 12; change++) {
		bad = good;
		switch (change) {
		case 1:
			bad.offset[0] = 1;
			break;
		case 2:
			bad.offset[1] = 60;
			break;
		case 3:
			bad.offset[1] = 61;
			break;
		case 4:
			bad.offset[1] = 15;
			break;
		case 5:
			bad.offset[4] = 101;
			break;
		case 6:
			bad.offset[4] |= LEAT_INDEX_DAMAGED;
			break;
		case 7:
			bad.offset[3] = 83;
			break;
		case 8:
			bad.offset[2] = 1000;
			break;
		case 9:
			bad.head.max_length = 41;
			break;
		case 10:
			bad.head.damaged = 0;
			break;
		case 11:
			bad.offset[2] = UINT64_MAX;
			break;
		default:
			break;
		}
		bad.head.crc = leat_crc32c(0, &bad, 12);
		bad.head.crc = leat_crc32c(bad.head.crc, (char *)&bad + 16, sizeof(bad) - 16);
		if (change == 0)
			assert_null(leat_index_fault(&bad, sizeof(bad), &kind, &data, &stale));
		else
			assert_string_equal(leat_index_fault(&bad, sizeof(bad), &kind, &data, &stale),
			                    "its offsets are invalid");
	}
	bad = good;
	bad.head.count = UINT64_MAX;
	assert_string_equal(leat_index_fault(&bad, sizeof(bad), &kind, &data, &stale), "its length is wrong");
	bad.head.count = UINT64_MAX / 8;
	assert_string_equal(leat_index_fault(&bad, sizeof(bad), &kind, &data, &stale), "its length is wrong");
}

/* ---- samples with gaps between them ---- */

static const struct leat_index_kind with_gaps = {"gapskind", 16, .gaps = true};

/* Sample i lies at [100 i + 10, 100 i + 50 + i % 10), the last one damaged. */
static enum leat_status
build_with_gaps(struct leat_index *index, uint64_t count)
{
	enum leat_status status = LEAT_OK;

	leat_index_init(index, &mem);
	for (uint64_t i = 0; i < count && status == LEAT_OK; i++)
		status = leat_index_add_span(index, 100 * i + 10, 100 * i + 50 + i % 10, i == count - 1, NULL);
	file.size = 100 * count + 1000;
	snprintf(uri, sizeof(uri), "%s/data", temp.folder);
	return status == LEAT_OK ? leat_index_end(index, file.size, NULL) : status;
}

static void
samples_may_have_gaps_between_them(void **state)
{
	static const uint64_t counts[] = {0, 1, 2, 50, 20000};

	(void)state;
	for (size_t k = 0; k < sizeof(counts) / sizeof(counts[0]); k++) {
		uint64_t count = counts[k];
		struct leat_index index, loaded;

		assert_int_equal(build_with_gaps(&index, count), LEAT_OK);
		assert_int_equal(leat_index_save(&index, &with_gaps, &file, &mem, NULL), LEAT_OK);
		leat_index_free(&index);
		assert_int_equal(leat_index_load(&loaded, &with_gaps, &file, &mem, &log_all, NULL), LEAT_OK);
		assert_int_equal(loaded.count, count);
		assert_int_equal(loaded.damaged, count > 0);
		assert_int_equal(loaded.max_length, count > 10 ? 49 : count > 1 ? 40 : 0);
		for (uint64_t i = 0; i < count; i++) {
			assert_int_equal(leat_index_offset(&loaded, i), 100 * i + 10);
			assert_int_equal(leat_index_length(&loaded, i), 40 + i % 10);
			assert_int_equal(leat_index_is_damaged(&loaded, i), i == count - 1);
		}
		leat_index_free(&loaded);
		check_refused("it belongs to another format");
	}
}

static void
ends_that_make_no_sense_are_refused(void **state)
{
	struct {
		struct leat_index_head head;
		uint64_t offset[3], end[2];
	} good, bad;
	static const uint64_t ends[][2] = {{40, 100}, {10, 100}, {9, 100},         {41, 100},        {25, 100},
	                                   {40, 101}, {40, 40},  {40, UINT64_MAX}, {UINT64_MAX, 100}};
	const struct leat_object data = {.uri = "x", .name = "x", .size = 100, .mtime_ns = 5};
	bool stale;

	(void)state;
	good.head = (struct leat_index_head){.version = LEAT_INDEX_VERSION,
	                                     .size = 100,
	                                     .token = leat_object_token(&data),
	                                     .count = 2,
	                                     .max_length = 60};
	memcpy(good.head.magic, LEAT_INDEX_MAGIC, 8);
	memcpy(good.head.kind, "gapskind", 8);
	memcpy(good.offset, (uint64_t[]){10, 40, 100}, sizeof(good.offset));
	for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
		const char *fault;

		bad = good;
		memcpy(bad.end, ends[i], sizeof(bad.end));
		bad.head.crc = leat_crc32c(0, &bad, 12);
		bad.head.crc = leat_crc32c(bad.head.crc, (char *)&bad + 16, sizeof(bad) - 16);
		fault = leat_index_fault(&bad, sizeof(bad), &with_gaps, &data, &stale);
		if (i == 0)
			assert_null(fault);
		else
			assert_string_equal(fault, "its offsets are invalid");
		assert_string_equal(leat_index_fault(&bad, sizeof(bad) - 8, &with_gaps, &data, &stale),
		                    "its length is wrong");
	}
	bad.head.count = (uint64_t)1 << 63;
	assert_string_equal(leat_index_fault(&bad, sizeof(bad), &with_gaps, &data, &stale), "its length is wrong");
}

static void
every_failing_allocation_with_gaps_is_survived(void **state)
{
	enum leat_status status = LEAT_NOMEM;
	long n = 0;

	(void)state;
	for (; status != LEAT_OK; n++) {
		struct leat_index index;

		atomic_store(&mem.fail_after, n);
		status = build_with_gaps(&index, 200);
		atomic_store(&mem.fail_after, -1);
		assert_true(status == LEAT_OK || status == LEAT_NOMEM);
		leat_index_free(&index);
		assert_int_equal(mem.used, 0);
	}
	assert_true(n > 4);
}

static void *
save_and_load(void *arg)
{
	struct leat_index index = *(struct leat_index *)arg, loaded;
	size_t wrong = 0;

	for (int i = 0; i < 30; i++) {
		wrong += leat_index_save(&index, &kind, &file, &mem, NULL) != LEAT_OK;
		if (leat_index_load(&loaded, &kind, &file, &mem, &log_all, NULL) != LEAT_OK ||
		    loaded.count != index.count)
			wrong++;
		else
			leat_index_free(&loaded);
	}
	return (void *)(uintptr_t)wrong;
}

static void
writers_at_the_same_time_do_not_disturb_one_another(void **state)
{
	pthread_t thread[4];
	struct leat_index index;

	(void)state;
	build(&index, 20000, 0);
	for (int i = 0; i < 4; i++)
		assert_int_equal(pthread_create(&thread[i], NULL, save_and_load, &index), 0);
	for (int i = 0; i < 4; i++) {
		void *wrong;

		pthread_join(thread[i], &wrong);
		assert_null(wrong);
	}
	leat_index_free(&index);
	assert_int_equal(logged.info + logged.warn, 0);
	unlink(temp_path(&temp, ".data.leatidx"));
	assert_int_equal(rmdir(temp.folder), 0); /* no temporary file is left */
}

static void
samples_out_of_order_are_a_bug(void **state)
{
	struct leat_index index;

	(void)state;
	leat_index_init(&index, &mem);
	assert_int_equal(leat_index_add(&index, 0, false, NULL), LEAT_OK);
	assert_int_equal(leat_index_add(&index, 50, false, NULL), LEAT_OK);
	assert_int_equal(leat_index_end(&index, 40, NULL), LEAT_INTERNAL);
	leat_index_free(&index);
}

static void
every_failing_allocation_is_survived(void **state)
{
	long n = 0;

	(void)state;
	save(100, 0);
	for (;; n++) {
		struct leat_index index = {0}, loaded = {0};
		enum leat_status status = LEAT_OK;

		atomic_store(&mem.fail_after, n);
		leat_index_init(&index, &mem);
		for (uint64_t i = 0; i < 100 && status == LEAT_OK; i++)
			status = leat_index_add(&index, 20 * i, false, NULL);
		if (status == LEAT_OK)
			status = leat_index_end(&index, 2000, NULL);
		file.size = 2000;
		if (status == LEAT_OK)
			status = leat_index_save(&index, &kind, &file, &mem, NULL);
		if (status == LEAT_OK)
			status = leat_index_load(&loaded, &kind, &file, &mem, NULL, NULL);
		leat_index_free(&index);
		leat_index_free(&loaded);
		atomic_store(&mem.fail_after, -1);
		assert_int_equal(mem.used, 0);
		if (status == LEAT_OK)
			break;
		assert_true(status == LEAT_NOMEM || status == LEAT_AGAIN);
	}
	assert_true(n > 3);
}

int
main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		CASE(what_is_saved_is_loaded),
		CASE(it_lies_hidden_beside_the_data),
		CASE(it_lies_in_the_cache_folder_where_it_cannot_be_beside),
		CASE(it_is_not_used_when_the_data_changed),
		CASE(damage_of_any_byte_is_noticed),
		CASE(damage_of_a_large_one_is_noticed),
		CASE(what_is_no_index_is_refused_with_the_reason),
		CASE(offsets_that_make_no_sense_are_refused),
		CASE(writers_at_the_same_time_do_not_disturb_one_another),
		CASE(samples_out_of_order_are_a_bug),
		CASE(every_failing_allocation_is_survived),
		CASE(samples_may_have_gaps_between_them),
		CASE(ends_that_make_no_sense_are_refused),
		CASE(every_failing_allocation_with_gaps_is_survived),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
