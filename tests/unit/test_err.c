/* test_err.c - statuses, the one error type, and the log */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "base/log.h"
#include "base/mem.h"

static void
every_status_has_a_name_and_a_text(void **state)
{
	(void)state;
	assert_string_equal(leat_status_name(LEAT_OK), "OK");
	assert_string_equal(leat_status_name(LEAT_DATA), "DATA");
	assert_string_equal(leat_status_text(LEAT_DATA), "the data is damaged or does not match the spec");
	for (int s = LEAT_OK; s <= LEAT_TIMEOUT; s++) {
		assert_string_not_equal(leat_status_name((enum leat_status)s), "UNKNOWN");
		assert_true(strlen(leat_status_text((enum leat_status)s)) > 0);
	}
	assert_string_equal(leat_status_name((enum leat_status)999), "UNKNOWN");
	assert_string_equal(leat_status_text((enum leat_status)999), "unknown status");
}

static void
the_version_is_that_of_the_header(void **state)
{
	char expected[32];

	(void)state;
	snprintf(expected, sizeof(expected), "%d.%d.%d", LEAT_VERSION_MAJOR, LEAT_VERSION_MINOR, LEAT_VERSION_PATCH);
	assert_string_equal(leat_version(), expected);
}

static void
the_first_failure_wins(void **state)
{
	struct leat_err err;

	(void)state;
	leat_err_clear(&err);
	assert_int_equal(err.status, LEAT_OK);
	assert_string_equal(err.text, "");
	assert_int_equal(leat_fail(&err, LEAT_DATA, "record %d is short", 7), LEAT_DATA);
	assert_int_equal(leat_fail(&err, LEAT_IO, "another"), LEAT_IO);
	assert_int_equal(leat_fail_errno(&err, ENOENT, "another"), LEAT_IO);
	assert_int_equal(err.status, LEAT_DATA);
	assert_string_equal(err.text, "record 7 is short");
	leat_err_clear(&err);
	assert_int_equal(leat_fail(&err, LEAT_IO, "another"), LEAT_IO);
	assert_string_equal(err.text, "another");
}

static void
no_error_may_be_wanted(void **state)
{
	(void)state;
	leat_err_clear(NULL);
	assert_int_equal(leat_fail(NULL, LEAT_SPEC, "unseen"), LEAT_SPEC);
	assert_int_equal(leat_fail_errno(NULL, EIO, "unseen"), LEAT_IO);
	assert_int_equal(leat_fail_mem(NULL, NULL, 1, "unseen"), LEAT_NOMEM);
	assert_int_equal(leat_err_in(NULL, "unseen"), LEAT_INTERNAL);
}

static void
system_errors_say_what_the_system_says(void **state)
{
	struct leat_err err;

	(void)state;
	leat_err_clear(&err);
	assert_int_equal(leat_fail_errno(&err, ENOENT, "cannot open %s", "a.tar"), LEAT_IO);
	assert_string_equal(err.text, "cannot open a.tar: No such file or directory");
	leat_err_clear(&err);
	assert_int_equal(leat_fail_errno(&err, ENOMEM, "cannot map"), LEAT_NOMEM);
	assert_int_equal(err.status, LEAT_NOMEM);
}

static void
places_are_put_in_front_on_the_way_up(void **state)
{
	struct leat_err err;

	(void)state;
	leat_err_clear(&err);
	leat_fail(&err, LEAT_DATA, "checksum differs");
	assert_int_equal(leat_err_in(&err, "offset %d", 12), LEAT_DATA);
	assert_int_equal(leat_err_in(&err, "%s", "a.tfrecord"), LEAT_DATA);
	assert_string_equal(err.text, "a.tfrecord: offset 12: checksum differs");
}

static void
assert_cut(const struct leat_err *err)
{
	size_t len = strlen(err->text);

	assert_true(len < sizeof(err->text) && len > sizeof(err->text) - 8);
	assert_string_equal(err->text + len - 3, "...");
}

static void
long_sentences_are_cut_between_characters(void **state)
{
	char text[3000];
	struct leat_err err;

	(void)state;
	for (size_t shift = 0; shift < 3; shift++) {
		memset(text, 'x', shift);
		for (size_t i = shift; i + 3 < sizeof(text); i += 3) {
			memcpy(text + i, "\xe2\x82\xac", 3); /* a euro sign is three bytes */
			text[i + 3] = '\0';
		}
		leat_err_clear(&err);
		leat_fail(&err, LEAT_DATA, "%s", text);
		assert_cut(&err);
		assert_int_equal((strlen(err.text) - 3 - shift) % 3, 0);
		leat_err_in(&err, "%s", text);
		assert_cut(&err);
	}
}

static void
memory_errors_name_the_limit_that_was_hit(void **state)
{
	struct leat_err err;
	struct leat_mem mem;

	(void)state;
	leat_mem_init(&mem, 1024 * 1024);
	mem.used = 512 * 1024;
	leat_err_clear(&err);
	assert_int_equal(leat_fail_mem(&err, &mem, 3 * 1024 * 1024 / 2, "the index"), LEAT_LIMIT);
	assert_string_equal(
		err.text,
		"the index needs 1.5 MiB, but only 512 KiB of the memory limit of 1 MiB is left; raise memory= "
		"to at least 2 MiB");
	leat_err_clear(&err);
	assert_int_equal(leat_fail_mem(&err, &mem, 1000, "the index"), LEAT_NOMEM);
	assert_string_equal(err.text, "out of memory: cannot allocate 1000 B for the index");
	leat_mem_init(&mem, SIZE_MAX);
	assert_int_equal(leat_fail_mem(NULL, &mem, SIZE_MAX, "the index"), LEAT_NOMEM);
}

/* ---- log ---- */

struct heard {
	int count;
	enum leat_log_level level;
	char text[64];
};

static void
hear(void *arg, enum leat_log_level level, const char *text)
{
	struct heard *heard = arg;

	heard->count++;
	heard->level = level;
	snprintf(heard->text, sizeof(heard->text), "%s", text);
}

static void
log_calls_the_user_back_or_stays_silent(void **state)
{
	struct heard heard = {0};
	struct leat_log log = {hear, &heard}, silent = {NULL, NULL};

	(void)state;
	leat_log(NULL, LEAT_LOG_WARN, "unheard");
	leat_log(&silent, LEAT_LOG_WARN, "unheard");
	assert_int_equal(heard.count, 0);
	leat_log(&log, LEAT_LOG_INFO, "indexed %d files", 3);
	assert_int_equal(heard.count, 1);
	assert_int_equal(heard.level, LEAT_LOG_INFO);
	assert_string_equal(heard.text, "indexed 3 files");
}

int
main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_status_has_a_name_and_a_text),
		cmocka_unit_test(the_version_is_that_of_the_header),
		cmocka_unit_test(the_first_failure_wins),
		cmocka_unit_test(no_error_may_be_wanted),
		cmocka_unit_test(system_errors_say_what_the_system_says),
		cmocka_unit_test(places_are_put_in_front_on_the_way_up),
		cmocka_unit_test(long_sentences_are_cut_between_characters),
		cmocka_unit_test(memory_errors_name_the_limit_that_was_hit),
		cmocka_unit_test(log_calls_the_user_back_or_stays_silent),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
