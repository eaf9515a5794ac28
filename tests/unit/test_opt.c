/* test_opt.c - option tables: every type, its mistakes, and the way back to text */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <jansson.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/opt.h"
#include "feed/spec.h"

struct all {
	int64_t count;
	float share;
	bool on;
	const char *name;
	int method;
	int64_t size;
	float angle;
	struct leat_floats mean;
	struct leat_strings files;
};

static const struct leat_opt options[] = {
	LEAT_INT(struct all, count, LEAT_REQUIRED, 1, 65500, "how many"),
	LEAT_FLOAT(struct all, share, "1/255", 0, 1, "how much"),
	LEAT_BOOL(struct all, on, "true", "whether"),
	LEAT_STRING(struct all, name, "it's", "who"),
	LEAT_ENUM(struct all, method, "bilinear", "nearest|bilinear|area", "how"),
	LEAT_SIZE(struct all, size, "4MiB", 0, INFINITY, "bytes"),
	LEAT_ANGLE(struct all, angle, "10deg", -4, 4, "how far"),
	LEAT_FLOATS(struct all, mean, "[0.5, 1/4]", -INFINITY, 10, "of each channel"),
	LEAT_STRINGS(struct all, files, "[a, 'b c']", "where", LEAT_OPT_LOCATION),
	LEAT_OPT_END,
};

struct few {
	int64_t any;
	struct leat_floats list;
	bool flag;
};

static const struct leat_opt few_options[] = {
	LEAT_INT(struct few, any, "-1", -INFINITY, INFINITY, "any number"),
	LEAT_FLOATS(struct few, list, "[]", -INFINITY, INFINITY, "the last positional one"),
	LEAT_OPT_(struct few, flag, LEAT_OPT_BOOL, "false", 0, 1, NULL, "by name only", LEAT_OPT_NAMED),
	LEAT_OPT_END,
};

static struct leat_mem mem;
static struct leat_spec spec;
static struct all p;
static struct few few;
static struct leat_err err;

static int
setup(void **state)
{
	(void)state;
	leat_mem_init(&mem, SIZE_MAX);
	memset(&p, 0xee, sizeof(p));
	leat_opts_clear(options, &p);
	return 0;
}

static int
teardown(void **state)
{
	(void)state;
	leat_opts_free(options, &p, &mem);
	leat_spec_free(&spec);
	assert_int_equal(mem.used, 0);
	return 0;
}

static enum leat_status
set(const struct leat_opt *opts, void *params, const char *text)
{
	leat_opts_free(options, &p, &mem);
	leat_spec_free(&spec);
	leat_err_clear(&err);
	assert_int_equal(leat_spec_parse(&spec, text, &mem, &err), LEAT_OK);
	return leat_opts_set(opts, params, &spec.call[0], spec.text, &mem, &err);
}

static void
take(const char *text)
{
	if (set(options, &p, text) != LEAT_OK)
		fail_msg("%s", err.text);
}

static void
refused(const char *text, const char *expected)
{
	assert_int_equal(set(options, &p, text), LEAT_SPEC);
	assert_string_equal(err.text, expected);
}

static void
refused_few(const char *text, const char *expected)
{
	assert_int_equal(set(few_options, &few, text), LEAT_SPEC);
	assert_string_equal(err.text, expected);
}

static void
print(char *out, size_t cap, bool locations)
{
	struct leat_str str;

	leat_str_init(&str, &mem, 4096);
	leat_opts_print(options, &p, locations, &str);
	assert_false(str.failed);
	snprintf(out, cap, "%s", leat_str_text(&str));
	leat_str_free(&str);
}

static void
what_is_not_given_has_its_default(void **state)
{
	(void)state;
	take("op(7)");
	assert_int_equal(p.count, 7);
	assert_true(p.share == (float)(1.0 / 255));
	assert_true(p.on);
	assert_string_equal(p.name, "it's");
	assert_int_equal(p.method, 1);
	assert_int_equal(p.size, 4 << 20);
	assert_true(p.angle == (float)(10 * M_PI / 180));
	assert_int_equal(p.mean.count, 2);
	assert_true(p.mean.value[1] == .25f);
	assert_int_equal(p.files.count, 2);
	assert_string_equal(p.files.value[1], "b c");
}

static void
positional_arguments_fill_the_table_in_order(void **state)
{
	(void)state;
	take("op(1, 0.5, false, x, area, 1KB, 1rad, 3, ['f', g])");
	assert_int_equal(p.count, 1);
	assert_true(p.share == .5f);
	assert_false(p.on);
	assert_string_equal(p.name, "x");
	assert_int_equal(p.method, 2);
	assert_int_equal(p.size, 1000);
	assert_true(p.angle == 1);
	assert_int_equal(p.mean.count, 1);
	assert_int_equal(p.files.count, 2);
	assert_string_equal(p.files.value[0], "f");
	assert_string_equal(p.files.value[1], "g");
}

static void
named_arguments_come_in_any_order(void **state)
{
	(void)state;
	take("op(method=\"nearest\", count=3, files=x)");
	assert_int_equal(p.method, 0);
	assert_int_equal(p.count, 3);
	assert_int_equal(p.files.count, 1);
}

static void
the_last_positional_list_takes_the_rest(void **state)
{
	(void)state;
	assert_int_equal(set(few_options, &few, "op(1, 2, 3, 4, flag=true)"), LEAT_OK);
	assert_int_equal(few.list.count, 3);
	assert_true(few.list.value[2] == 4);
	assert_true(few.flag);
	assert_int_equal(set(few_options, &few, "op"), LEAT_OK);
	assert_int_equal(few.any, -1);
	assert_int_equal(few.list.count, 0);
	assert_false(few.flag);
	take("op(1, 1, true, a, area, 1, 1rad, 1, 'x', 'y', z)");
	assert_int_equal(p.files.count, 3);
	assert_string_equal(p.files.value[2], "z");
}

struct bounds {
	struct leat_values low, rest;
};

static const struct leat_opt bounds_options[] = {
	LEAT_VALUES(struct bounds, low, "[none, 'a b', 0.1]", "a bound"),
	LEAT_VALUES(struct bounds, rest, "[]", "more of them"),
	LEAT_OPT_END,
};

static void
values_are_numbers_words_and_strings(void **state)
{
	struct bounds b;
	struct leat_str str;

	(void)state;
	assert_int_equal(set(bounds_options, &b, "op(p99.5, 1, 0.1, 'x', y)"), LEAT_OK);
	assert_int_equal(b.low.count, 1);
	assert_int_equal(b.low.value[0].type, LEAT_ARG_WORD);
	assert_string_equal(b.low.value[0].text, "p99.5");
	assert_int_equal(b.rest.count, 4);
	assert_true(b.rest.value[1].number == 0.1); /* a double */
	assert_int_equal(b.rest.value[2].type, LEAT_ARG_STRING);
	leat_str_init(&str, &mem, 4096);
	leat_opts_print(bounds_options, &b, true, &str);
	assert_string_equal(leat_str_text(&str), "low=[p99.5], rest=[1, 0.1, 'x', y]");
	leat_str_free(&str);
	leat_opts_free(bounds_options, &b, &mem);
	assert_int_equal(set(bounds_options, &b, "op"), LEAT_OK);
	assert_int_equal(b.low.count, 3);
	assert_string_equal(b.low.value[0].text, "none");
	assert_string_equal(b.low.value[1].text, "a b");
	leat_opts_free(bounds_options, &b, &mem);
	assert_int_equal(set(bounds_options, &b, "op(1, 3MiB)"), LEAT_SPEC);
	assert_non_null(strstr(err.text, "takes a number without a unit, not 'MiB'"));
	assert_int_equal(set(bounds_options, &b, "op(1, [[2]])"), LEAT_SPEC);
	assert_non_null(strstr(err.text, "must be a number, a word or a string in quotes, not [2]"));
}

static void
whole_numbers_are_exact(void **state)
{
	(void)state;
	assert_int_equal(set(few_options, &few, "op(9007199254740993)"), LEAT_OK);
	assert_int_equal(few.any, 9007199254740993);
	assert_int_equal(set(few_options, &few, "op(-9223372036854775808)"), LEAT_OK);
	assert_int_equal(few.any, INT64_MIN);
	assert_int_equal(set(few_options, &few, "op(10k)"), LEAT_OK);
	assert_int_equal(few.any, 10000);
	assert_int_equal(set(few_options, &few, "op(1.5M)"), LEAT_OK);
	assert_int_equal(few.any, 1500000);
	assert_int_equal(set(few_options, &few, "op(1e6)"), LEAT_OK);
	assert_int_equal(few.any, 1000000);
	refused_few("op(9223372036854775808)", "option 'any' of 'op' must be a whole number below 2^63, not "
	                                       "9223372036854775808\n"
	                                       "op(9223372036854775808)\n"
	                                       "   ^^^^^^^^^^^^^^^^^^^");
	refused_few("op(9223372036854775807k)", "option 'any' of 'op' must be a whole number below 2^63, not "
	                                        "9223372036854775807k\n"
	                                        "op(9223372036854775807k)\n"
	                                        "   ^^^^^^^^^^^^^^^^^^^^");
	refused_few("op(1e300)", "option 'any' of 'op' must be a whole number below 2^63, not 1e300\n"
	                         "op(1e300)\n"
	                         "   ^^^^^");
}

static void
sizes_have_units_of_1000_and_1024(void **state)
{
	static const struct {
		const char *text;
		int64_t bytes;
	} sizes[] = {
		{"op(1, size=7)", 7},
		{"op(1, size=7B)", 7},
		{"op(1, size=1.5 KB)", 1500},
		{"op(1, size=3MB)", 3000000},
		{"op(1, size=2GB)", 2000000000},
		{"op(1, size=2TB)", 2000000000000},
		{"op(1, size=1KiB)", 1024},
		{"op(1, size=0.1MiB)", 104858}, /* to the nearest byte */
		{"op(1, size=2GiB)", INT64_C(2) << 30},
		{"op(1, size=2TiB)", INT64_C(2) << 40},
		{"op(1, size=1/2GiB)", INT64_C(1) << 29},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		take(sizes[i].text);
		assert_int_equal(p.size, sizes[i].bytes);
	}
}

static void
values_out_of_range_are_refused_with_the_range(void **state)
{
	(void)state;
	refused("op(0)", "option 'count' of 'op' must be between 1 and 65500, not 0\n"
	                 "op(0)\n"
	                 "   ^");
	refused("op(66k)", "option 'count' of 'op' must be between 1 and 65500, not 66k\n"
	                   "op(66k)\n"
	                   "   ^^^");
	refused("op(1, share=1.01)", "option 'share' of 'op' must be between 0 and 1, not 1.01\n"
	                             "op(1, share=1.01)\n"
	                             "            ^^^^");
	refused("op(1, size=-1)", "option 'size' of 'op' must be at least 0 bytes, not -1\n"
	                          "op(1, size=-1)\n"
	                          "           ^^");
	refused("op(1, angle=360deg)", "option 'angle' of 'op' must be between -4 and 4rad, not 360deg\n"
	                               "op(1, angle=360deg)\n"
	                               "            ^^^^^^");
	refused("op(1, mean=[1, 11])", "option 'mean' of 'op' must be at most 10, not 11\n"
	                               "op(1, mean=[1, 11])\n"
	                               "               ^^");
	refused_few("op(1, 1e39)", "option 'list' of 'op' must be a number that a float can hold, not 1e39\n"
	                           "op(1, 1e39)\n"
	                           "      ^^^^");
}

static void
values_of_the_wrong_type_are_refused(void **state)
{
	(void)state;
	refused("op(1.5)", "option 'count' of 'op' must be a whole number, not 1.5\n"
	                   "op(1.5)\n"
	                   "   ^^^");
	refused("op(many)", "option 'count' of 'op' must be a whole number, not many\n"
	                    "op(many)\n"
	                    "   ^^^^");
	refused("op(1, '0.5')", "option 'share' of 'op' must be a number, not '0.5'\n"
	                        "op(1, '0.5')\n"
	                        "      ^^^^^");
	refused("op(1, on=1)", "option 'on' of 'op' must be true or false, not 1\n"
	                       "op(1, on=1)\n"
	                       "         ^");
	refused("op(1, name=3)", "option 'name' of 'op' must be a word or a string in quotes, not 3\n"
	                         "op(1, name=3)\n"
	                         "           ^");
	refused("op(1, name=x[3])", "option 'name' of 'op' must be a word or a string in quotes, not x[3]\n"
	                            "op(1, name=x[3])\n"
	                            "           ^^^^");
	refused("op(1, mean=[[1]])", "option 'mean' of 'op' must be a number, not [1]\n"
	                             "op(1, mean=[[1]])\n"
	                             "            ^^^");
	refused("op(1, files=[a, 2])", "option 'files' of 'op' must be a word or a string in quotes, not 2\n"
	                               "op(1, files=[a, 2])\n"
	                               "                ^");
	refused("op(1, share=[1])", "option 'share' of 'op' must be a number, not [1]\n"
	                            "op(1, share=[1])\n"
	                            "            ^^^");
	refused("op(1, mean=[1,2,3,4,5,6,7,8,9,1,2,3,4,5,6,7,8])", "option 'mean' of 'op' takes at most 16 numbers\n"
	                                                           "op(1, mean=[1,2,3,4,5,6,7,8,9,1,2,3,4,5,6,7,8])\n"
	                                                           "           ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^");
	refused("op(1, on='a text far too long to be repeated in a sentence')",
	        "option 'on' of 'op' must be true or false, not 'a text far too long to be repeated in a...\n"
	        "op(1, on='a text far too long to be repeated in a sentence')\n"
	        "         ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^");
}

static void
units_are_checked(void **state)
{
	(void)state;
	refused("op(1, share=1deg)", "option 'share' of 'op' takes a number without a unit, not 'deg'\n"
	                             "op(1, share=1deg)\n"
	                             "            ^^^^");
	refused("op(1px)", "option 'count' of 'op' does not accept the unit 'px'; use k or M\n"
	                   "op(1px)\n"
	                   "   ^^^");
	refused("op(1, size=1xb)",
	        "option 'size' of 'op' does not accept the unit 'xb'; use kB, MB, GB, TB, KiB, MiB, GiB or TiB\n"
	        "op(1, size=1xb)\n"
	        "           ^^^");
	refused("op(1, angle=1)", "option 'angle' of 'op' needs a unit: deg or rad\n"
	                          "op(1, angle=1)\n"
	                          "            ^");
	refused("op(1, angle=1grad)", "option 'angle' of 'op' does not accept the unit 'grad'; use deg or rad\n"
	                              "op(1, angle=1grad)\n"
	                              "            ^^^^^");
}

static void
choices_are_listed_or_the_nearest_is_named(void **state)
{
	(void)state;
	refused("op(1, method=bilinera)", "option 'method' of 'op' cannot be 'bilinera', did you mean 'bilinear'?\n"
	                                  "op(1, method=bilinera)\n"
	                                  "             ^^^^^^^^");
	refused("op(1, method=cubic)", "option 'method' of 'op' must be nearest, bilinear or area, not cubic\n"
	                               "op(1, method=cubic)\n"
	                               "             ^^^^^");
	refused("op(1, method=2)", "option 'method' of 'op' must be nearest, bilinear or area, not 2\n"
	                           "op(1, method=2)\n"
	                           "             ^");
	refused("op(1, method=are)", "option 'method' of 'op' cannot be 'are', did you mean 'area'?\n"
	                             "op(1, method=are)\n"
	                             "             ^^^");
}

static void
names_are_checked(void **state)
{
	(void)state;
	refused("op(cuont=1)", "'op' has no option 'cuont', did you mean 'count'?\n"
	                       "op(cuont=1)\n"
	                       "   ^^^^^");
	refused("op(1, colour=red)", "'op' has no option 'colour'; it has count, share, on, name, method, size, angle, "
	                             "mean, files\n"
	                             "op(1, colour=red)\n"
	                             "      ^^^^^^");
	refused("op(1, count=2)", "option 'count' of 'op' is given twice\n"
	                          "op(1, count=2)\n"
	                          "      ^^^^^");
	refused("op(count=1, on=true, on=false)", "option 'on' of 'op' is given twice\n"
	                                          "op(count=1, on=true, on=false)\n"
	                                          "                     ^^");
	refused("op(count=1, 2)", "a positional argument cannot follow a named one\n"
	                          "op(count=1, 2)\n"
	                          "            ^");
	refused("op", "'op' needs the option 'count': how many\n"
	              "op\n"
	              "^^");
}

static void
what_a_table_does_not_take_is_refused(void **state)
{
	static const struct leat_opt none[] = {LEAT_OPT_END};
	static const struct leat_opt named[] = {
		LEAT_OPT_(struct few, flag, LEAT_OPT_BOOL, "false", 0, 1, NULL, "", LEAT_OPT_NAMED),
		LEAT_OPT_END,
	};
	static const struct leat_opt two[] = {
		LEAT_INT(struct few, any, "1", 0, 9, ""),
		LEAT_BOOL(struct few, flag, "false", ""),
		LEAT_OPT_END,
	};

	(void)state;
	assert_int_equal(set(NULL, NULL, "op"), LEAT_OK);
	assert_int_equal(set(none, &few, "op()"), LEAT_OK);
	assert_int_equal(set(none, &few, "op(1)"), LEAT_SPEC);
	assert_string_equal(err.text, "'op' takes no options\nop(1)\n   ^");
	assert_int_equal(set(NULL, NULL, "op(x=1)"), LEAT_SPEC);
	assert_string_equal(err.text, "'op' takes no options\nop(x=1)\n   ^");
	assert_int_equal(set(named, &few, "op(true)"), LEAT_SPEC);
	assert_string_equal(err.text, "'op' takes only named options, such as flag=...\nop(true)\n   ^^^^");
	assert_int_equal(set(two, &few, "op(1, true, 3)"), LEAT_SPEC);
	assert_string_equal(err.text, "'op' takes at most 2 positional arguments\nop(1, true, 3)\n            ^");
}

static void
a_bad_default_is_a_bug_of_leat(void **state)
{
	static const struct leat_opt out_of_range[] = {LEAT_INT(struct few, any, "10", 0, 9, ""), LEAT_OPT_END};
	static const struct leat_opt two_values[] = {LEAT_INT(struct few, any, "1 2", 0, 9, ""), LEAT_OPT_END};

	(void)state;
	assert_int_equal(set(out_of_range, &few, "op"), LEAT_INTERNAL);
	assert_int_equal(err.status, LEAT_INTERNAL);
	assert_int_equal(set(two_values, &few, "op"), LEAT_INTERNAL);
}

static void
printed_options_read_back_as_the_same(void **state)
{
	static const char *const specs[] = {
		"op(7)",
		"op(65500, 0.1, false, 'it\\'s \\\\ \\n \\x01 \\xff \"é\"', area, 1TiB, -3rad, [], [])",
		"op(1, 1e-7, name='', angle=1/3rad, mean=[1/3, 1e-30, -123456.789, 1.17549435e-38], files='a|b')",
	};
	char first[1024], again[1024], text[1040];

	(void)state;
	for (size_t i = 0; i < sizeof(specs) / sizeof(*specs); i++) {
		struct all before;

		take(specs[i]);
		before = p;
		print(first, sizeof(first), true);
		snprintf(text, sizeof(text), "op(%s)", first);
		take(text);
		assert_true(before.share == p.share && before.angle == p.angle && before.size == p.size);
		assert_memory_equal(before.mean.value, p.mean.value, (size_t)p.mean.count * sizeof(float));
		print(again, sizeof(again), true);
		assert_string_equal(first, again);
	}
}

static void
printing_is_canonical(void **state)
{
	char text[1024];

	(void)state;
	take("op(10k, 0.1, method=area, size=1KiB, angle=180deg, mean=[1/3,-100], files=[x])");
	print(text, sizeof(text), true);
	assert_string_equal(text, "count=10000, share=0.1, on=true, name='it\\'s', method=area, size=1024, "
	                          "angle=3.1415927rad, mean=[0.33333334, -100], files=['x']");
	print(text, sizeof(text), false);
	assert_null(strstr(text, "files"));
}

static void
floats_print_as_few_digits_as_they_need(void **state)
{
	static const struct {
		float x;
		const char *text;
	} floats[] = {
		{0, "0"},
		{-0.0f, "-0"},
		{1, "1"},
		{0.1f, "0.1"},
		{1.0f / 3, "0.33333334"},
		{16777216, "16777216"},
		{1e6f, "1e+06"},
		{1.5e-9f, "1.5e-09"},
		{3.4028235e38f, "3.4028235e+38"},
		{1e-45f, "1.4013e-45"},
	};
	char buf[32];

	(void)state;
	for (size_t i = 0; i < sizeof(floats) / sizeof(*floats); i++)
		assert_string_equal(leat_format_float(buf, sizeof(buf), floats[i].x), floats[i].text);
	assert_string_equal(leat_format_number(buf, sizeof(buf), 1.0 / 3), "0.3333333333333333");
	assert_string_equal(leat_format_number(buf, sizeof(buf), 1e12), "1000000000000");
	assert_string_equal(leat_format_number(buf, sizeof(buf), -0.5), "-0.5");
}

static void
the_language_of_the_user_changes_nothing(void **state)
{
	static const char *const with_comma[] = {"de_DE.UTF-8", "fr_FR.UTF-8", "de_DE", "nl_NL.UTF-8"};
	char text[1024];
	bool found = false;

	(void)state;
	for (size_t i = 0; i < 4 && !found; i++)
		found = setlocale(LC_ALL, with_comma[i]) != NULL;
	if (!found)
		skip();
	take("op(1, 0.25)");
	print(text, sizeof(text), false);
	setlocale(LC_ALL, "C");
	assert_true(p.share == .25f);
	assert_non_null(strstr(text, "share=0.25,"));
}

static void
a_table_is_described_in_json(void **state)
{
	struct leat_str str;
	json_t *table, *opt;

	(void)state;
	leat_str_init(&str, &mem, 1 << 16);
	leat_opts_json(options, &str);
	table = json_loads(leat_str_text(&str), 0, NULL);
	assert_int_equal(json_array_size(table), 9);
	opt = json_array_get(table, 0);
	assert_string_equal(json_string_value(json_object_get(opt, "name")), "count");
	assert_string_equal(json_string_value(json_object_get(opt, "type")), "int");
	assert_true(json_is_null(json_object_get(opt, "default")));
	assert_int_equal(json_integer_value(json_object_get(opt, "max")), 65500);
	assert_true(json_is_true(json_object_get(opt, "positional")));
	assert_true(json_is_false(json_object_get(opt, "location")));
	opt = json_array_get(table, 4);
	assert_string_equal(json_string_value(json_array_get(json_object_get(opt, "choices"), 2)), "area");
	opt = json_array_get(table, 5);
	assert_true(json_is_null(json_object_get(opt, "max")));
	assert_string_equal(json_string_value(json_object_get(opt, "default")), "4MiB");
	assert_true(json_is_true(json_object_get(json_array_get(table, 8), "location")));
	json_decref(table);
	leat_str_free(&str);
	leat_str_init(&str, &mem, 1 << 16);
	leat_opts_json(NULL, &str);
	assert_string_equal(leat_str_text(&str), "[]");
	leat_str_free(&str);
}

static void
every_failing_allocation_is_survived(void **state)
{
	enum leat_status status;
	size_t used;
	long n = -1;

	(void)state;
	assert_int_equal(leat_spec_parse(&spec, "op(3, mean=[1, 2])", &mem, &err), LEAT_OK);
	used = mem.used;
	do {
		leat_err_clear(&err);
		atomic_store(&mem.fail_after, ++n);
		status = leat_opts_set(options, &p, &spec.call[0], spec.text, &mem, &err);
		if (status != LEAT_OK) {
			assert_int_equal(status, LEAT_NOMEM);
			assert_int_equal(err.status, LEAT_NOMEM);
			assert_int_equal(mem.used, used);
		}
	} while (status != LEAT_OK);
	assert_true(n > 5);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

/* A new name changes neither what was written before nor the hash of a pipeline. */
static void
an_option_is_also_known_by_its_earlier_name(void **state)
{
	struct renamed {
		float share;
	} params;
	static const struct leat_opt table[] = {
		LEAT_FLOAT_WAS(struct renamed, share, "s", "0.5", 0, 1, "share"),
		LEAT_OPT_END,
	};
	static const char *const specs[] = {"op(0.25)", "op(share=0.25)", "op(s=0.25)"};
	struct leat_str out;

	(void)state;
	for (size_t i = 0; i < sizeof(specs) / sizeof(*specs); i++) {
		assert_int_equal(leat_spec_parse(&spec, specs[i], &mem, &err), LEAT_OK);
		assert_int_equal(leat_opts_set(table, &params, spec.call, spec.text, &mem, &err), LEAT_OK);
		assert_true(params.share == 0.25f);
		leat_str_init(&out, &mem, 100);
		leat_opts_print(table, &params, true, &out);
		assert_string_equal(leat_str_text(&out), "s=0.25");
		leat_str_free(&out);
		leat_spec_free(&spec);
	}
	leat_err_clear(&err);
	assert_int_equal(leat_spec_parse(&spec, "op(s=0.25, share=1)", &mem, &err), LEAT_OK);
	assert_int_equal(leat_opts_set(table, &params, spec.call, spec.text, &mem, &err), LEAT_SPEC);
	assert_non_null(strstr(err.text, "option 'share' of 'op' is given twice"));
	leat_spec_free(&spec);
	leat_str_init(&out, &mem, 1000);
	leat_opts_json(table, &out);
	assert_non_null(strstr(leat_str_text(&out), "{\"name\":\"share\",\"was\":\"s\","));
	leat_str_free(&out);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(an_option_is_also_known_by_its_earlier_name),
		TEST(what_is_not_given_has_its_default),
		TEST(positional_arguments_fill_the_table_in_order),
		TEST(named_arguments_come_in_any_order),
		TEST(the_last_positional_list_takes_the_rest),
		TEST(values_are_numbers_words_and_strings),
		TEST(whole_numbers_are_exact),
		TEST(sizes_have_units_of_1000_and_1024),
		TEST(values_out_of_range_are_refused_with_the_range),
		TEST(values_of_the_wrong_type_are_refused),
		TEST(units_are_checked),
		TEST(choices_are_listed_or_the_nearest_is_named),
		TEST(names_are_checked),
		TEST(what_a_table_does_not_take_is_refused),
		TEST(a_bad_default_is_a_bug_of_leat),
		TEST(printed_options_read_back_as_the_same),
		TEST(printing_is_canonical),
		TEST(floats_print_as_few_digits_as_they_need),
		TEST(the_language_of_the_user_changes_nothing),
		TEST(a_table_is_described_in_json),
		TEST(every_failing_allocation_is_survived),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
