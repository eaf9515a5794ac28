/* test_board_request.c - what paths and hosts the board understands */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "board/request.h"

#define HASH "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

static struct leat_board_request request;

static enum leat_board_what
parse(const char *path)
{
	memset(&request, 0x55, sizeof(request));
	leat_board_parse(path, &request);
	return request.what;
}

static void
paths_name_what_they_show(void **state)
{
	(void)state;
	assert_int_equal(parse("/"), LEAT_BOARD_PAGE);
	assert_int_equal(parse("/api/runs"), LEAT_BOARD_RUNS);
	assert_int_equal(parse("/api/graph"), LEAT_BOARD_GRAPH);
	assert_int_equal(parse("/api/events"), LEAT_BOARD_EVENTS);
	assert_string_equal(request.word[0], "");
	assert_int_equal(parse("/api/events/20261117T201530-4711"), LEAT_BOARD_EVENTS);
	assert_string_equal(request.word[0], "20261117T201530-4711");
	assert_int_equal(parse("/api/run/20261117T201530-4711"), LEAT_BOARD_RUN);
	assert_string_equal(request.word[0], "20261117T201530-4711");
	assert_int_equal(parse("/api/step/decode_all"), LEAT_BOARD_STEP);
	assert_string_equal(request.word[0], "decode_all");
	assert_int_equal(parse("/api/compare/a-1/b-2"), LEAT_BOARD_COMPARE);
	assert_string_equal(request.word[0], "a-1");
	assert_string_equal(request.word[1], "b-2");
	assert_int_equal(parse("/blob/" HASH), LEAT_BOARD_BLOB);
	assert_int_equal(request.digest.byte[1], 0x23);
}

static void
an_action_is_a_step_and_a_number(void **state)
{
	(void)state;
	assert_int_equal(parse("/api/action/decode-42"), LEAT_BOARD_ACTION);
	assert_string_equal(request.word[0], "decode");
	assert_int_equal(request.number, 42);
	assert_int_equal(parse("/api/action/a-b-7"), LEAT_BOARD_ACTION);
	assert_string_equal(request.word[0], "a-b");
	assert_int_equal(request.number, 7);
	assert_int_equal(parse("/api/action/decode"), LEAT_BOARD_NOTHING);
	assert_int_equal(parse("/api/action/-42"), LEAT_BOARD_NOTHING);
	assert_int_equal(parse("/api/action/decode-"), LEAT_BOARD_NOTHING);
	assert_int_equal(parse("/api/action/decode-99999999999999999999"), LEAT_BOARD_NOTHING);
}

static void
nothing_leads_out_of_the_store(void **state)
{
	static const char *const paths[] = {"",
	                                    "//",
	                                    "/.",
	                                    "/..",
	                                    "/../etc/passwd",
	                                    "/blob/../../etc/passwd",
	                                    "/blob/%2e%2e%2fetc",
	                                    "/blob/" HASH "/..",
	                                    "/blob/" HASH ".png",
	                                    "/blob//" HASH,
	                                    "/blob/0123",
	                                    "/blob/" HASH "0",
	                                    "/api/run/../runs",
	                                    "/api/run/a%00",
	                                    "/api/run/.",
	                                    "/api/run/a/b",
	                                    "/api/run/",
	                                    "/api/run",
	                                    "/api/runs/",
	                                    "/api/compare/a",
	                                    "/api/compare/a/b/c",
	                                    "api/runs",
	                                    "\\api\\runs",
	                                    "/api/run/a b",
	                                    "/api/run/\xc3\xbc",
	                                    "/api/run/a\n",
	                                    "http://x/api/runs",
	                                    "/etc/passwd",
	                                    "/API/RUNS",
	                                    "/api",
	                                    "/blob"};

	(void)state;
	for (size_t i = 0; i < sizeof(paths) / sizeof(*paths); i++)
		assert_int_equal(parse(paths[i]), LEAT_BOARD_NOTHING);
}

static void
long_paths_are_nothing(void **state)
{
	size_t sizes[] = {LEAT_BOARD_WORD - 2, LEAT_BOARD_WORD - 1, LEAT_BOARD_WORD, 100000};

	(void)state;
	for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		char *path = malloc(sizes[i] + 10);

		strcpy(path, "/api/run/");
		memset(path + 9, 'a', sizes[i]);
		path[9 + sizes[i]] = '\0';
		assert_int_equal(parse(path), sizes[i] < LEAT_BOARD_WORD ? LEAT_BOARD_RUN : LEAT_BOARD_NOTHING);
		free(path);
	}
}

static void
only_loopback_names_are_local(void **state)
{
	static const char *const local[] = {"localhost",   "LOCALHOST:80", "127.0.0.1", "127.0.0.1:8642",
	                                    "127.1.2.3:1", "[::1]",        "[::1]:8642"};
	static const char *const other[] = {"",
	                                    "example.com",
	                                    "localhost.example.com",
	                                    "127.0.0.1.example.com",
	                                    "127.0.0.1:",
	                                    "127.0.0.1:x",
	                                    "127.0.0.1:99999",
	                                    "127.1",
	                                    "0.0.0.0",
	                                    "10.0.0.1",
	                                    "[::]",
	                                    "[::1",
	                                    "[::1]x",
	                                    "::1",
	                                    "localhost:80:80",
	                                    "[::ffff:127.0.0.1]",
	                                    " localhost"};

	(void)state;
	for (size_t i = 0; i < sizeof(local) / sizeof(*local); i++)
		assert_true(leat_board_host_is_local(local[i]));
	for (size_t i = 0; i < sizeof(other) / sizeof(*other); i++)
		assert_false(leat_board_host_is_local(other[i]));
	assert_false(leat_board_host_is_local(NULL));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(paths_name_what_they_show),      cmocka_unit_test(an_action_is_a_step_and_a_number),
		cmocka_unit_test(nothing_leads_out_of_the_store), cmocka_unit_test(long_paths_are_nothing),
		cmocka_unit_test(only_loopback_names_are_local),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
