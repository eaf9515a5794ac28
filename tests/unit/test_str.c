/* test_str.c - growing texts, quoting and cutting */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"

struct fixture {
	struct leat_mem mem;
	struct leat_str str;
};

static int
set_up(void **state)
{
	static struct fixture fixture;

	leat_mem_init(&fixture.mem, SIZE_MAX);
	leat_str_init(&fixture.str, &fixture.mem, 1000);
	*state = &fixture;
	return 0;
}

static int
tear_down(void **state)
{
	struct fixture *f = *state;

	leat_str_free(&f->str);
	return f->mem.used == 0 ? 0 : -1;
}

static void
text_grows_by_every_kind_of_addition(void **state)
{
	struct fixture *f = *state;

	assert_string_equal(leat_str_text(&f->str), "");
	leat_str_add(&f->str, "feed");
	leat_str_addn(&f->str, "ing...", 3);
	leat_str_addf(&f->str, " %d of %s", 3, "4");
	assert_string_equal(leat_str_text(&f->str), "feeding 3 of 4");
	assert_int_equal(f->str.len, 14);
	assert_false(f->str.failed);
	for (int i = 0; i < 900; i++)
		leat_str_addn(&f->str, "x", 1);
	assert_int_equal(strlen(f->str.text), 914);
}

static void
bytes_may_hold_a_nul(void **state)
{
	struct fixture *f = *state;

	leat_str_addn(&f->str, "a\0b", 3);
	assert_int_equal(f->str.len, 3);
	assert_memory_equal(f->str.text, "a\0b", 4);
}

static void
the_maximum_holds_and_failure_stays(void **state)
{
	struct fixture *f = *state;

	leat_str_init(&f->str, &f->mem, 5);
	leat_str_add(&f->str, "12345");
	assert_false(f->str.failed);
	leat_str_add(&f->str, "");
	assert_false(f->str.failed);
	leat_str_add(&f->str, "6");
	assert_true(f->str.failed);
	leat_str_free(&f->str);
	leat_str_add(&f->str, "123");
	leat_str_addf(&f->str, "%d", 456);
	assert_true(f->str.failed);
	leat_str_add(&f->str, "x"); /* would fit, but something before it is missing */
	assert_string_equal(leat_str_text(&f->str), "123");
	assert_null(leat_str_take(&f->str));
}

static void
no_memory_is_a_failure(void **state)
{
	struct fixture *f = *state;

	f->mem.fail_after = 1;
	leat_str_add(&f->str, "brook");
	assert_false(f->str.failed);
	leat_str_addf(&f->str, "%0500d", 1);
	assert_true(f->str.failed);
	assert_string_equal(leat_str_text(&f->str), "brook");
	f->mem.fail_after = 0;
	leat_str_free(&f->str);
	assert_null(leat_str_take(&f->str));
}

static void
taken_text_belongs_to_the_taker(void **state)
{
	struct fixture *f = *state;
	char *text;

	leat_str_add(&f->str, "brook");
	text = leat_str_take(&f->str);
	assert_string_equal(text, "brook");
	leat_free(&f->mem, text);
	text = leat_str_take(&f->str);
	assert_string_equal(text, "");
	leat_free(&f->mem, text);
}

static void
quoted_text_is_what_a_spec_reads(void **state)
{
	struct fixture *f = *state;

	leat_str_add_quoted(&f->str, "it's a\\b\n\t\x01\x7f \xc3\xa9\"");
	assert_string_equal(leat_str_text(&f->str), "'it\\'s a\\\\b\\n\\t\\x01\\x7f \xc3\xa9\"'");
}

/* A real shell reads it. */
static void
a_word_is_what_a_shell_reads(void **state)
{
	static const char text[] = "'it''s' $HOME `x` \\ \"y\" * ; # \xff'";
	struct fixture *f = *state;
	char got[sizeof(text) + 8] = "";
	FILE *shell;

	leat_str_add(&f->str, "printf %s ");
	leat_str_add_word(&f->str, text);
	shell = popen(leat_str_text(&f->str), "re");
	assert_non_null(shell);
	assert_int_equal(fread(got, 1, sizeof(got) - 1, shell), strlen(text));
	assert_int_equal(pclose(shell), 0);
	assert_string_equal(got, text);
}

static void
json_escapes_what_it_must(void **state)
{
	struct fixture *f = *state;

	leat_str_add_json(&f->str, "\"a\\b/\" \b\f\n\r\t\x01\x7f \xc3\xa9 \xe2\x82\xac \xf0\x9f\x8c\x8a");
	assert_string_equal(leat_str_text(&f->str),
	                    "\"\\\"a\\\\b/\\\" \\b\\f\\n\\r\\t\\u0001\\u007f \xc3\xa9 \xe2\x82\xac \xf0\x9f\x8c\x8a\"");
}

#define REPLACED "\xef\xbf\xbd"

static void
json_replaces_bytes_that_are_not_utf8(void **state)
{
	static const struct {
		const char *text, *expected;
	} cases[] = {
		{"a\x80z", "\"a" REPLACED "z\""},                                     /* a lone continuation */
		{"a\xc3", "\"a" REPLACED "\""},                                       /* ends too early */
		{"a\xe2\x82", "\"a" REPLACED REPLACED "\""},                          /* ends too early */
		{"\xc0\xaf", "\"" REPLACED REPLACED "\""},                            /* overlong '/' */
		{"\xe0\x80\xaf", "\"" REPLACED REPLACED REPLACED "\""},               /* overlong '/' */
		{"\xf0\x80\x80\xaf", "\"" REPLACED REPLACED REPLACED REPLACED "\""},  /* overlong '/' */
		{"\xed\xa0\x80", "\"" REPLACED REPLACED REPLACED "\""},               /* a surrogate */
		{"\xf4\x90\x80\x80", "\"" REPLACED REPLACED REPLACED REPLACED "\""},  /* above U+10FFFF */
		{"\xff\xfe", "\"" REPLACED REPLACED "\""},                            /* never in UTF-8 */
		{"\xf4\x8f\xbf\xbf\xed\x9f\xbf", "\"\xf4\x8f\xbf\xbf\xed\x9f\xbf\""}, /* the last that are */
		{"\xe0\xa0\x80\xf0\x90\x80\x80\xc2\x80", "\"\xe0\xa0\x80\xf0\x90\x80\x80\xc2\x80\""}, /* the first */
	};
	struct fixture *f = *state;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		leat_str_free(&f->str);
		leat_str_add_json(&f->str, cases[i].text);
		assert_string_equal(leat_str_text(&f->str), cases[i].expected);
	}
}

static void
format_into(char *buf, size_t cap, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	leat_vformat(buf, cap, fmt, ap);
	va_end(ap);
}

static void
formatted_text_is_cut_with_dots(void **state)
{
	char buf[8];

	(void)state;
	format_into(buf, sizeof(buf), "%d", 1234567);
	assert_string_equal(buf, "1234567");
	format_into(buf, sizeof(buf), "%d", 12345678);
	assert_string_equal(buf, "1234...");
	format_into(buf, 2, "%d", 12);
	assert_string_equal(buf, "1");
}

/* What a terminal would obey, or what breaks or reorders lines, is escaped; other text is left alone. */
static void
invisible_characters_are_escaped(void **state)
{
	static const struct {
		const char *text, *shown;
	} cases[] = {
		{"plain \xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80", "plain \xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80"},
		{"a\nb\tc\rd", "a\\nb\\tc\\x0dd"},
		{"\x1b[31m\x7f", "\\x1b[31m\\x7f"},
		{"\xc2\x9b\xc2\xa0", "\\xc2\\x9b\xc2\xa0"}, /* CSI as C1 */
		{"\xe2\x80\xae\xe2\x81\xa7\xe2\x80\xa8",
	         "\\xe2\\x80\\xae\\xe2\\x81\\xa7\\xe2\\x80\\xa8"},        /* order, line */
		{"\xe2\x80\x8d\xe2\x81\xaa", "\xe2\x80\x8d\xe2\x81\xaa"}, /* joiners do no harm */
		{"\xff\xc3", "\\xff\\xc3"},
	};
	struct fixture *f = *state;
	char buf[64];

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		format_into(buf, sizeof(buf), "%s", cases[i].text);
		assert_string_equal(buf, cases[i].shown);
		assert_string_equal(leat_show(buf, sizeof(buf), cases[i].text, strlen(cases[i].text)), cases[i].shown);
		leat_str_free(&f->str);
		leat_str_add_shown(&f->str, cases[i].text);
		assert_string_equal(leat_str_text(&f->str), cases[i].shown);
	}
	assert_string_equal(leat_show(buf, sizeof(buf), "a\0b", 3), "a\\x00b");
	assert_string_equal(leat_show(buf, 6, "a\1\2", 3), "a\\x01"); /* whole or not at all */
	assert_string_equal(leat_show(buf, sizeof(buf), "\xe2\x82\xac", 2), "\\xe2\\x82");
	format_into(buf, 12, "%s", "\1\2\3\4");
	assert_string_equal(buf, "\\x01\\...");
}

int
main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(text_grows_by_every_kind_of_addition, set_up, tear_down),
		cmocka_unit_test_setup_teardown(bytes_may_hold_a_nul, set_up, tear_down),
		cmocka_unit_test_setup_teardown(the_maximum_holds_and_failure_stays, set_up, tear_down),
		cmocka_unit_test_setup_teardown(no_memory_is_a_failure, set_up, tear_down),
		cmocka_unit_test_setup_teardown(taken_text_belongs_to_the_taker, set_up, tear_down),
		cmocka_unit_test_setup_teardown(quoted_text_is_what_a_spec_reads, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_word_is_what_a_shell_reads, set_up, tear_down),
		cmocka_unit_test_setup_teardown(json_escapes_what_it_must, set_up, tear_down),
		cmocka_unit_test_setup_teardown(json_replaces_bytes_that_are_not_utf8, set_up, tear_down),
		cmocka_unit_test(formatted_text_is_cut_with_dots),
		cmocka_unit_test_setup_teardown(invisible_characters_are_escaped, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
