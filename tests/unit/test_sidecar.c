/* test_sidecar.c - arrays kept beside the data are what was saved, or are not used */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "format/sidecar.h"
#include "support/logged.h"
#include "support/temp.h"

static struct temp temp;
static struct leat_mem mem;
static char data[600];
static const char *verdict; /* of its maker */

static const char *
fault(void *arg, const struct leat_sidecar *sidecar, bool *stale)
{
	(void)arg, (void)sidecar;
	*stale = verdict != NULL;
	return verdict;
}

static struct leat_stores stores;
static struct leat_sidecar_of of = {.kind = "test", .data = data, .key = {1, 2, 3}, .fault = fault};

static int
setup(void **state)
{
	(void)state;
	temp_make(&temp);
	setenv("XDG_CACHE_HOME", temp_path(&temp, "cache"), 1);
	snprintf(data, sizeof data, "%s", temp_write(&temp, "data", "x", 1));
	leat_mem_init(&mem, SIZE_MAX);
	leat_stores_init(&stores, &mem);
	assert_int_equal(leat_stores_find(&stores, "/", &of.store, NULL, NULL), LEAT_OK);
	memset(&logged, 0, sizeof logged);
	verdict = NULL;
	return 0;
}

static int
teardown(void **state)
{
	(void)state;
	leat_stores_close(&stores);
	assert_int_equal(mem.used, 0);
	temp_remove(&temp);
	return 0;
}

/* Three sections: "abc", nothing, and 1000 numbers. */
static void
make(struct leat_sidecar *sidecar)
{
	uint64_t *numbers = leat_alloc_array(&mem, 1000, sizeof *numbers);

	for (uint64_t i = 0; i < 1000; i++)
		numbers[i] = i * i;
	leat_sidecar_init(sidecar, &mem);
	leat_sidecar_add_take(sidecar, leat_strdup(&mem, "abc"), 3);
	leat_sidecar_add_take(sidecar, leat_alloc(&mem, 0), 0);
	leat_sidecar_add_take(sidecar, numbers, 1000 * sizeof *numbers);
}

static void
check(const struct leat_sidecar *sidecar)
{
	const uint64_t *numbers = sidecar->section[2].data;

	assert_int_equal(sidecar->sections, 3);
	assert_int_equal(sidecar->section[0].bytes, 3);
	assert_memory_equal(sidecar->section[0].data, "abc", 3);
	assert_int_equal(sidecar->section[1].bytes, 0);
	assert_int_equal(sidecar->section[2].bytes, 8000);
	for (uint64_t i = 0; i < 1000; i++)
		assert_int_equal(numbers[i], i * i);
}

static void
save(void)
{
	struct leat_sidecar sidecar;
	struct leat_err err;

	leat_err_clear(&err);
	make(&sidecar);
	if (leat_sidecar_save(&sidecar, &of, &err) != LEAT_OK)
		fail_msg("%s", err.text);
	check(&sidecar);
	assert_non_null(sidecar.path);
	leat_sidecar_free(&sidecar);
}

/* How often the log was warned, or -1: it is loaded. */
static int
load(void)
{
	struct leat_sidecar sidecar;
	enum leat_status status;

	logged.warn = logged.info = 0;
	status = leat_sidecar_load(&sidecar, &of, &mem, &log_all, NULL);
	if (status == LEAT_OK)
		check(&sidecar);
	else
		assert_int_equal(status, LEAT_AGAIN);
	leat_sidecar_free(&sidecar);
	return status == LEAT_OK ? -1 : logged.warn;
}

static void
what_was_saved_is_loaded(void **state)
{
	(void)state;
	assert_int_equal(load(), 0);
	save();
	assert_true(temp_exists(&temp, ".data.leatidx"));
	assert_int_equal(load(), -1);
}

static void
another_key_kind_or_verdict_is_not_used(void **state)
{
	(void)state;
	save();
	of.key[0]++;
	assert_int_equal(load(), 0);
	assert_int_equal(logged.info, 1);
	assert_non_null(strstr(logged.text, "the data or the options have changed"));
	of.key[0]--;
	of.kind = "other";
	assert_int_equal(load(), 1);
	assert_non_null(strstr(logged.text, "belongs to another source"));
	of.kind = "test";
	verdict = "something is wrong";
	assert_int_equal(load(), 0);
	assert_non_null(strstr(logged.text, "something is wrong"));
	verdict = NULL;
	assert_int_equal(load(), -1);
}

static void
damage_is_seen(void **state)
{
	unsigned char *bytes;
	size_t len;

	(void)state;
	save();
	bytes = temp_read(temp_path(&temp, ".data.leatidx"), &len);
	for (size_t at = 0; at < len; at += at < 100 ? 1 : 97) {
		bytes[at] ^= 4;
		temp_write(&temp, ".data.leatidx", bytes, len);
		assert_int_equal(load(), at >= 32 && at < 64 ? 0 : 1); /* the key is another one */
		bytes[at] ^= 4;
	}
	for (size_t cut = 0; cut < len; cut += 1 + cut / 2) {
		temp_write(&temp, ".data.leatidx", bytes, cut);
		assert_int_equal(load(), 1);
	}
	free(bytes);
}

/* Lengths that do not fit, with a checksum that does. */
static void
sections_have_to_fill_the_file(void **state)
{
	static const uint64_t lengths[] = {UINT64_MAX, UINT64_MAX - 7, (uint64_t)1 << 63, 16, 9000};
	struct leat_sidecar_head *head;
	unsigned char *bytes;
	size_t len;

	(void)state;
	save();
	bytes = temp_read(temp_path(&temp, ".data.leatidx"), &len);
	head = (struct leat_sidecar_head *)(void *)bytes;
	for (size_t section = 0; section < 3; section++) {
		for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
			uint64_t *length = (uint64_t *)(void *)(head + 1) + section, was = *length;

			*length = lengths[i];
			head->crc = leat_sidecar_crc(bytes, len);
			temp_write(&temp, ".data.leatidx", bytes, len);
			assert_int_equal(load(), 1);
			*length = was;
		}
	}
	head->sections = LEAT_SIDECAR_SECTIONS + 1;
	head->crc = leat_sidecar_crc(bytes, len);
	temp_write(&temp, ".data.leatidx", bytes, len);
	assert_int_equal(load(), 1);
	head->sections = UINT64_MAX / 8 + 1;
	head->crc = leat_sidecar_crc(bytes, len);
	temp_write(&temp, ".data.leatidx", bytes, len);
	assert_int_equal(load(), 1);
	free(bytes);
}

/* A name that leaves no room beside it stands for a folder that cannot be written. */
static void
the_cache_folder_takes_what_cannot_be_beside(void **state)
{
	char name[252];
	struct leat_sidecar sidecar;
	struct leat_err err;

	(void)state;
	memset(name, 'x', sizeof name - 1);
	name[sizeof name - 1] = '\0';
	snprintf(data, sizeof data, "%s", temp_write(&temp, name, "x", 1));
	save();
	assert_true(temp_exists(&temp, "cache/leat/index"));
	assert_int_equal(load(), -1);
	setenv("XDG_CACHE_HOME", "/proc/none", 1);
	assert_int_equal(load(), 0);
	make(&sidecar);
	leat_err_clear(&err);
	assert_int_equal(leat_sidecar_save(&sidecar, &of, &err), LEAT_IO);
	assert_non_null(strstr(err.text, "File name too long, and in the cache folder: "));
	check(&sidecar); /* still there */
	leat_sidecar_free(&sidecar);
}

/* What lies beside the data may be old and not to be replaced: the cache folder's is newer. */
static void
an_old_one_beside_the_data_does_not_hide_that_in_the_cache_folder(void **state)
{
	(void)state;
	save();
	unlink(temp_path(&temp, ".data.leatidx"));
	assert_int_equal(mkdir(temp_path(&temp, ".data.leatidx"), 0777), 0); /* nothing can take its place */
	assert_int_equal(load(), 1);
	save();
	assert_int_equal(load(), -1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(what_was_saved_is_loaded),
		TEST(another_key_kind_or_verdict_is_not_used),
		TEST(damage_is_seen),
		TEST(sections_have_to_fill_the_file),
		TEST(the_cache_folder_takes_what_cannot_be_beside),
		TEST(an_old_one_beside_the_data_does_not_hide_that_in_the_cache_folder),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
