/* test_spec.c - the grammar of specs, and what every mistake is told */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "base/mem.h"
#include "base/opt.h"
#include "feed/spec.h"

static struct leat_mem mem;
static struct leat_spec spec;

static int
setup(void **state)
{
	(void)state;
	leat_mem_init(&mem, SIZE_MAX);
	return 0;
}

static int
teardown(void **state)
{
	(void)state;
	leat_spec_free(&spec);
	assert_int_equal(mem.used, 0);
	return 0;
}

static void
parse(const char *text)
{
	struct leat_err err;

	leat_spec_free(&spec);
	leat_err_clear(&err);
	if (leat_spec_parse(&spec, text, &mem, &err) != LEAT_OK)
		fail_msg("%s", err.text);
	assert_string_equal(spec.text, text);
}

/* The only argument of the only call. */
static const struct leat_arg *
value(const char *text)
{
	char whole[256];

	snprintf(whole, sizeof(whole), "op(%s)", text);
	parse(whole);
	assert_int_equal(spec.calls, 1);
	assert_int_equal(spec.call[0].args, 1);
	return &spec.call[0].arg[0];
}

static void
refused(const char *text, const char *expected)
{
	struct leat_err err;

	leat_err_clear(&err);
	assert_int_equal(leat_spec_parse(&spec, text, &mem, &err), LEAT_SPEC);
	assert_int_equal(err.status, LEAT_SPEC);
	assert_string_equal(err.text, expected);
	assert_int_equal(mem.used, 0);
	/* Without a leat_err it is refused just the same. */
	assert_int_equal(leat_spec_parse(&spec, text, &mem, NULL), LEAT_SPEC);
}

static void
a_spec_is_calls_between_pipes(void **state)
{
	(void)state;
	parse("folder('a') | decode|resize( 100 , 90, method=nearest,) | batch()");
	assert_int_equal(spec.calls, 4);
	assert_string_equal(spec.call[0].name, "folder");
	assert_string_equal(spec.call[1].name, "decode");
	assert_int_equal(spec.call[1].args, 0);
	assert_string_equal(spec.call[2].name, "resize");
	assert_int_equal(spec.call[2].args, 3);
	assert_null(spec.call[2].arg[1].name);
	assert_string_equal(spec.call[2].arg[2].name, "method");
	assert_string_equal(spec.call[2].arg[2].text, "nearest");
	assert_int_equal(spec.call[3].args, 0);
}

static void
places_in_the_text_are_kept(void **state)
{
	const struct leat_call *call;

	(void)state;
	parse("a | crop( size = 'x y' )|b");
	call = &spec.call[1];
	assert_int_equal(call->at, 4);
	assert_int_equal(call->len, 4);
	assert_int_equal(call->end, 24);
	assert_int_equal(call->arg[0].name_at, 10);
	assert_int_equal(call->arg[0].at, 17);
	assert_int_equal(call->arg[0].len, 5);
}

static void
white_space_and_comments_stand_anywhere_between(void **state)
{
	(void)state;
	parse("# cells\n\ta # the source | not an op\r\n  | b( # rows\n 1\n , name\n =\n x # last\n )\n# end");
	assert_int_equal(spec.calls, 2);
	assert_int_equal(spec.call[1].args, 2);
	assert_string_equal(spec.call[1].arg[1].name, "name");
	assert_string_equal(spec.call[1].arg[1].text, "x");
	assert_string_equal(value("'# no comment'")->text, "# no comment");
}

static void
numbers_are_exact_integers_or_doubles(void **state)
{
	(void)state;
	assert_true(value("42")->integer);
	assert_int_equal(spec.call[0].arg[0].whole, 42);
	assert_int_equal(value("-7")->whole, -7);
	assert_int_equal(value("+7")->whole, 7);
	assert_int_equal(value("9007199254740993")->whole, 9007199254740993);
	assert_int_equal(value("-9223372036854775808")->whole, INT64_MIN);
	assert_false(value("9223372036854775808")->integer);
	assert_true(value("9223372036854775808")->number == 0x1p63);
	assert_false(value("1.0")->integer);
	assert_false(value("1e3")->integer);
	assert_true(value(".5")->number == .5);
	assert_true(value("5.")->number == 5);
	assert_true(value("-1.5E-2")->number == -1.5E-2);
	assert_true(value("1/255")->number == 1.0 / 255);
	assert_true(value("-1 / 4 / 2")->number == -.125);
	assert_false(value("4/2")->integer);
	assert_true(value("1e-999")->number == 0);
}

static void
units_follow_numbers(void **state)
{
	(void)state;
	assert_null(value("4")->unit);
	assert_string_equal(value("4MiB")->unit, "MiB");
	assert_string_equal(value("4 MiB")->unit, "MiB");
	assert_string_equal(value("1/8 rad")->unit, "rad");
	assert_string_equal(value("2e")->unit, "e"); /* no exponent without digits */
	assert_true(value("2e3k")->number == 2000);
	assert_string_equal(value("2e3k")->unit, "k");
}

static void
strings_take_both_quotes_and_escapes(void **state)
{
	(void)state;
	assert_int_equal(value("'it'")->type, LEAT_ARG_STRING);
	assert_string_equal(value("''")->text, "");
	assert_string_equal(value("\"it's\"")->text, "it's");
	assert_string_equal(value("'say \"hi\"'")->text, "say \"hi\"");
	assert_string_equal(value("'\\\\ \\' \\\" \\n \\t \\x41\\xfF'")->text, "\\ ' \" \n \t A\xff");
	assert_string_equal(value("'Zellkörper-日本.png'")->text, "Zellkörper-日本.png");
}

static void
words_have_dimensions_and_arguments(void **state)
{
	const struct leat_arg *v;

	(void)state;
	v = value("box=float[4, 2](default=-1, 'x')");
	assert_string_equal(v->name, "box");
	assert_int_equal(v->type, LEAT_ARG_WORD);
	assert_string_equal(v->text, "float");
	assert_true(v->has_dims);
	assert_int_equal(v->dims, 2);
	assert_int_equal(v->dim[1].whole, 2);
	assert_int_equal(v->items, 2);
	assert_string_equal(v->item[0].name, "default");
	assert_int_equal(v->item[0].whole, -1);
	v = value("int64[]");
	assert_true(v->has_dims);
	assert_int_equal(v->dims, 0);
	v = value("a.b-c_d9");
	assert_string_equal(v->text, "a.b-c_d9");
	assert_false(v->has_dims);
}

static void
lists_nest(void **state)
{
	const struct leat_arg *v;

	(void)state;
	v = value("[1, [a, 'b'], [],]");
	assert_int_equal(v->type, LEAT_ARG_LIST);
	assert_int_equal(v->items, 3);
	assert_string_equal(v->item[1].item[1].text, "b");
	assert_int_equal(v->item[2].items, 0);
	assert_int_equal(value("[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]")->items, 1);
}

static void
long_lists_are_kept_whole(void **state)
{
	static char text[LEAT_MAX_SPEC + 1];
	size_t n = 2;

	(void)state;
	strcpy(text, "a(");
	for (int i = 0; i < 10000; i++)
		n += (size_t)snprintf(text + n, sizeof(text) - n, "%d,", i);
	strcpy(text + n, ")");
	parse(text);
	assert_int_equal(spec.call[0].args, 10000);
	for (int i = 0; i < 10000; i++)
		assert_int_equal(spec.call[0].arg[i].whole, i);
}

static void
mistakes_are_pointed_at(void **state)
{
	(void)state;
	refused("", "the spec is empty: start with a source, like tfrecord('*.tfrecord')");
	refused(" # nothing\n", "the spec is empty: start with a source, like tfrecord('*.tfrecord')");
	refused("a |", "expected the name of a source or op, but the spec ends\n"
	               "a |\n"
	               "   ^");
	refused("a || b", "expected the name of a source or op, not '|'\n"
	                  "a || b\n"
	                  "   ^");
	refused("a b", "expected '|' or '(', not 'b'\n"
	               "a b\n"
	               "  ^");
	refused("a(1) resize(2)", "expected '|', not 'resize'\n"
	                          "a(1) resize(2)\n"
	                          "     ^^^^^^");
	refused("a(1", "expected ',' or ')', but the spec ends\n"
	               "a(1\n"
	               "   ^");
	refused("a(1 2)", "expected ',' or ')', not '2'\n"
	                  "a(1 2)\n"
	                  "    ^");
	refused("a([1, 2)", "expected ',' or ']', not ')'\n"
	                    "a([1, 2)\n"
	                    "       ^");
	refused("a(,)", "expected a value, not ','\n"
	                "a(,)\n"
	                "  ^");
	refused("a(x=)", "expected a value, not ')'\n"
	                 "a(x=)\n"
	                 "    ^");
	refused("a([x=1])", "expected ',' or ']', not '='\n"
	                    "a([x=1])\n"
	                    "    ^");
	refused("a(-)", "expected a number, not '-'\n"
	                "a(-)\n"
	                "  ^");
	refused("a(1/x)", "expected a number, not 'x'; put a path in quotes: '1/x'\n"
	                  "a(1/x)\n"
	                  "    ^");
	refused("a(1/0)", "division by zero\n"
	                  "a(1/0)\n"
	                  "    ^");
	refused("a(1e300/1e-300)", "the quotient is too large\n"
	                           "a(1e300/1e-300)\n"
	                           "        ^^^^^^");
	refused("a(1e999)", "the number is too large\n"
	                    "a(1e999)\n"
	                    "  ^^^^^");
	refused("a('b)", "the string has no closing ' on its line\n"
	                 "a('b)\n"
	                 "  ^");
	refused("a(\"b\nc\")", "the string has no closing \" on its line\n"
	                       "a(\"b\n"
	                       "  ^");
	refused("a('b\\", "unknown escape in a string; use \\\\ \\' \\\" \\n \\t or \\x01 to \\xff\n"
	                  "a('b\\\n"
	                  "    ^");
	refused("a('\\x00')", "unknown escape in a string; use \\\\ \\' \\\" \\n \\t or \\x01 to \\xff\n"
	                      "a('\\x00')\n"
	                      "   ^^");
	refused("a('\\x4", "unknown escape in a string; use \\\\ \\' \\\" \\n \\t or \\x01 to \\xff\n"
	                   "a('\\x4\n"
	                   "   ^^");
	refused("a($)", "expected a value, not '$'\n"
	                "a($)\n"
	                "  ^");
	refused("a(é)", "expected a value, not 'é'\n"
	                "a(é)\n"
	                "  ^");
	refused("a([[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]])", "brackets are nested deeper than 16\n"
	                                                "a([[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]])\n"
	                                                "                 ^");
}

static void
a_path_without_quotes_is_shown_with_them(void **state)
{
	static const struct {
		const char *spec, *hint;
	} cases[] = {
		{"tfrecord(data/train.tfrecord) | batch(3)", "not '/'; put a path in quotes: 'data/train.tfrecord'"},
		{"tfrecord(/data/train.tfrecord)", "not '/'; put a path in quotes: '/data/train.tfrecord'"},
		{"tfrecord(train-*.tfrecord)", "not '*'; put a path in quotes: 'train-*.tfrecord'"},
		{"tfrecord([a, b/c])", "not '/'; put a path in quotes: 'b/c'"},
		{"list(x.csv, root=~/data)", "not '~'; put a path in quotes: '~/data'"},
		{"list(./x.csv)", "not '.'; put a path in quotes: './x.csv'"},
		{"list(../x.csv)", "not '..'; put a path in quotes: '../x.csv'"},
		{"list(file:///x.csv)", "not ':'; put a path in quotes: 'file:///x.csv'"},
		{"folder(2024/cells)", "not 'cells'; put a path in quotes: '2024/cells'"},
	};
	static const char *const others[] = {"a(b c)", "a(b) / c", "a(1/)", "/a(b)", "a(b"};
	struct leat_err err;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		leat_err_clear(&err);
		assert_int_equal(leat_spec_parse(&spec, cases[i].spec, &mem, &err), LEAT_SPEC);
		if (!strstr(err.text, cases[i].hint))
			fail_msg("%s", err.text);
	}
	for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++) {
		leat_err_clear(&err);
		assert_int_equal(leat_spec_parse(&spec, others[i], &mem, &err), LEAT_SPEC);
		if (strstr(err.text, "quotes"))
			fail_msg("%s", err.text);
	}
}

static void
only_printable_utf8_is_read(void **state)
{
	(void)state;
	refused("a('x\x01y')", "control character 0x01; write it \\x01 in a string\n"
	                       "a('x?y')\n"
	                       "    ^");
	refused("a('\x7f')", "control character 0x7f; write it \\x7f in a string\n"
	                     "a('?')\n"
	                     "   ^");
	refused("a('\xff')", "byte 0xff is not UTF-8; write it \\xff in a string\n"
	                     "a('?')\n"
	                     "   ^");
	refused("a('\xc0\x80')", /* overlong */
	        "byte 0xc0 is not UTF-8; write it \\xc0 in a string\n"
	        "a('?\?')\n"
	        "   ^");
	refused("a('\xe2\x82", /* cut short */
	        "byte 0xe2 is not UTF-8; write it \\xe2 in a string\n"
	        "a('??\n"
	        "   ^");
}

static void
only_the_line_concerned_is_shown(void **state)
{
	(void)state;
	refused("folder('é')\n\t| decode(,)\r\n| batch(3)", "expected a value, not ','\n"
	                                                    " | decode(,)\n"
	                                                    "          ^");
	refused("a(1,\n", "expected a value, but the spec ends\n"
	                  "a(1,\n"
	                  "    ^");
}

static void
long_lines_are_shown_around_the_mistake(void **state)
{
	char text[512], expected[1020], line[101];

	(void)state;
	/* In the middle: both sides are cut. */
	memset(text, ' ', 300);
	strcpy(text, "a(");
	text[2] = ' ';
	strcpy(text + 150, "$");
	memset(text + 151, ' ', 149);
	strcpy(text + 300, ")");
	memset(line, ' ', 100);
	line[100] = '\0';
	memcpy(line, "...", 3);
	memcpy(line + 97, "...", 3);
	line[50] = '$';
	snprintf(expected, sizeof(expected), "expected a value, not '$'\n%s\n%50s^", line, "");
	refused(text, expected);
	/* At the end: only the left side is, and the caret stands behind the line. */
	memset(text, '1', 200);
	memcpy(text, "a(", 2);
	text[200] = '\0';
	memset(line, '1', 100);
	memcpy(line, "...", 3);
	snprintf(expected, sizeof(expected), "expected ',' or ')', but the spec ends\n%s\n%100s^", line, "");
	refused(text, expected);
}

static void
the_length_of_a_spec_is_limited(void **state)
{
	static char text[LEAT_MAX_SPEC + 2];

	(void)state;
	memset(text, 'a', LEAT_MAX_SPEC);
	parse(text);
	text[LEAT_MAX_SPEC] = 'a';
	leat_spec_free(&spec);
	refused(text, "the spec is longer than 65536 bytes");
}

static void
every_failing_allocation_is_survived(void **state)
{
	static char text[9000]; /* more than one block */
	struct leat_err err;
	long n = -1;
	enum leat_status status;

	(void)state;
	strcpy(text, "folder('a', [1, 2, 3], b=[x, y[2](z=1)], c=4MiB) | decode | resize(");
	for (int i = 0; i < 1000; i++)
		strcat(text, "'abcd',");
	strcat(text, "x)");
	do {
		leat_err_clear(&err);
		atomic_store(&mem.fail_after, ++n);
		status = leat_spec_parse(&spec, text, &mem, &err);
		if (status != LEAT_OK) {
			assert_int_equal(status, LEAT_NOMEM);
			assert_int_equal(err.status, LEAT_NOMEM);
			assert_int_equal(mem.used, 0);
		}
	} while (status != LEAT_OK);
	assert_true(n > 4);
}

static void
a_memory_limit_is_named_as_such(void **state)
{
	struct leat_err err;

	(void)state;
	mem.limit = 1000;
	leat_err_clear(&err);
	assert_int_equal(leat_spec_parse(&spec, "a(1)", &mem, &err), LEAT_LIMIT);
	assert_int_equal(err.status, LEAT_LIMIT);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_spec_is_calls_between_pipes, setup, teardown),
		cmocka_unit_test_setup_teardown(places_in_the_text_are_kept, setup, teardown),
		cmocka_unit_test_setup_teardown(white_space_and_comments_stand_anywhere_between, setup, teardown),
		cmocka_unit_test_setup_teardown(numbers_are_exact_integers_or_doubles, setup, teardown),
		cmocka_unit_test_setup_teardown(units_follow_numbers, setup, teardown),
		cmocka_unit_test_setup_teardown(strings_take_both_quotes_and_escapes, setup, teardown),
		cmocka_unit_test_setup_teardown(words_have_dimensions_and_arguments, setup, teardown),
		cmocka_unit_test_setup_teardown(lists_nest, setup, teardown),
		cmocka_unit_test_setup_teardown(long_lists_are_kept_whole, setup, teardown),
		cmocka_unit_test_setup_teardown(mistakes_are_pointed_at, setup, teardown),
		cmocka_unit_test_setup_teardown(a_path_without_quotes_is_shown_with_them, setup, teardown),
		cmocka_unit_test_setup_teardown(only_printable_utf8_is_read, setup, teardown),
		cmocka_unit_test_setup_teardown(only_the_line_concerned_is_shown, setup, teardown),
		cmocka_unit_test_setup_teardown(long_lines_are_shown_around_the_mistake, setup, teardown),
		cmocka_unit_test_setup_teardown(the_length_of_a_spec_is_limited, setup, teardown),
		cmocka_unit_test_setup_teardown(every_failing_allocation_is_survived, setup, teardown),
		cmocka_unit_test_setup_teardown(a_memory_limit_is_named_as_such, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
