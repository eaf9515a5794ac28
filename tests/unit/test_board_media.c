/* test_board_media.c - kinds of files by their bytes, and that none of them can run with the board's rights */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "board/media.h"

static const char *
name_of(const char *bytes)
{
	return leat_media_of(bytes, strlen(bytes))->name;
}

static void
files_are_known_by_their_bytes(void **state)
{
	(void)state;
	assert_string_equal(name_of("\x89PNG\r\n\x1a\n...."), "png");
	assert_string_equal(name_of("\xff\xd8\xff\xe0"), "jpeg");
	assert_string_equal(name_of("GIF89a"), "gif");
	assert_string_equal(leat_media_of("RIFF\0\0\0\0WEBPVP8 ", 16)->name, "webp");
	assert_string_equal(name_of("<svg xmlns='http://www.w3.org/2000/svg'/>"), "svg");
	assert_string_equal(name_of("<?xml version='1.0'?>\n<!-- made by -->\n<!DOCTYPE svg PUBLIC 'x' 'y'>\n<svg>"),
	                    "svg");
	assert_string_equal(name_of("\xef\xbb\xbf <SVG>"), "svg");
	assert_string_equal(name_of("\n<!doctype HTML><title>"), "html");
	assert_string_equal(name_of("<!-- a --><html>"), "html");
	assert_string_equal(name_of("a,b\n1,2\n"), "text");
	assert_string_equal(name_of("\x1b[31mred\x1b[0m na\xc3\xafve"), "text");
	assert_string_equal(name_of(""), "text");
	assert_string_equal(name_of("<?xml never ends"), "text");
	assert_string_equal(leat_media_of("a\0b", 3)->name, "binary");
	assert_string_equal(name_of("\x93NUMPY\x01"), "binary");
	assert_string_equal(name_of("caf\xe9 au lait"), "binary");
}

static void
a_character_that_is_cut_off_is_still_text(void **state)
{
	char text[LEAT_MEDIA_BYTES + 8];

	(void)state;
	memset(text, 'a', sizeof(text));
	memcpy(text + LEAT_MEDIA_BYTES - 2, "\xf0\x9f\x8c\x8a", 4);
	assert_string_equal(leat_media_of(text, sizeof(text))->name, "text");
	text[LEAT_MEDIA_BYTES - 1] = 'x';
	assert_string_equal(leat_media_of(text, sizeof(text))->name, "binary");
}

static void
documents_are_in_a_sandbox_without_network(void **state)
{
	static const char *const all[] = {"\x89PNG\r\n\x1a\n", "<svg>", "<html>", "text", "\x01"};

	(void)state;
	for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++) {
		const char *policy = leat_media_of(all[i], strlen(all[i]))->policy;

		assert_memory_equal(policy, "sandbox", 7);
		assert_non_null(strstr(policy, "default-src 'none'"));
		assert_null(strstr(policy, "allow-same-origin"));
		assert_null(strstr(policy, "connect-src"));
		assert_int_equal(strstr(policy, "allow-scripts") != NULL, strcmp(all[i], "<html>") == 0);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(files_are_known_by_their_bytes),
		cmocka_unit_test(a_character_that_is_cut_off_is_still_text),
		cmocka_unit_test(documents_are_in_a_sandbox_without_network),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
