/* test_names.c - the nearest name, and sentences about names that do not exist */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>

#include "base/names.h"

static void
the_nearest_name_is_found_when_it_is_near(void **state)
{
	static const char *const names[] = {"resize", "random_flip", "normalize", "batch", "take"};
	static const struct {
		const char *name, *nearest;
	} cases[] = {
		{"resise", "resize"},
		{"rezise", "resize"},
		{"RESIZE", "resize"},
		{"resize", "resize"},
		{"ersize", "resize"}, /* two letters swapped are one slip */
		{"random_flop", "random_flip"},
		{"randomflip", "random_flip"},
		{"normalise", "normalize"},
		{"bacth", "batch"},
		{"batches", "batch"},
		{"tale", "take"},
		{"decode", NULL},
		{"cake", "take"},
		{"bar", NULL}, /* two of four letters: another word */
		{"tk", NULL},
		{"x", NULL},
		{"", NULL},
		{"a_name_that_is_much_longer_than_any_name_of_an_op_or_option_can_be", NULL},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const char *nearest = leat_nearest(cases[i].name, names, 5);

		if (cases[i].nearest == NULL)
			assert_null(nearest);
		else
			assert_string_equal(nearest, cases[i].nearest);
	}
	assert_null(leat_nearest("resize", names, 0));
}

static void
the_nearest_of_several_is_chosen(void **state)
{
	static const char *const names[] = {"crop_box", "crops", "crop", "drop"};

	(void)state;
	assert_string_equal(leat_nearest("cropx", names, 4), "crops");
	assert_string_equal(leat_nearest("crap", names, 4), "crop");
	assert_string_equal(leat_nearest("crop", names, 4), "crop");
}

static void
another_word_is_not_a_typing_error(void **state)
{
	static const char *const columns[] = {"cat", "label"};

	(void)state;
	assert_null(leat_nearest("path", columns, 2));
	assert_null(leat_nearest("hat", (const char *const[]){"cot"}, 1));
	assert_string_equal(leat_nearest("lable", columns, 2), "label");
	assert_string_equal(leat_nearest("cta", columns, 2), "cat");
}

static void
says(struct leat_unknown unknown, const char *text)
{
	static const char *const columns[] = {"image", "label"};
	char buf[LEAT_UNKNOWN_TEXT];

	unknown.known = columns;
	unknown.count = 2;
	assert_string_equal(leat_unknown_text(&unknown, buf), text);
}

static void
the_sentence_suggests_or_lists(void **state)
{
	char buf[LEAT_UNKNOWN_TEXT];

	(void)state;
	says((struct leat_unknown){.what = "column", .name = "lable"},
	     "there is no column 'lable', did you mean 'label'?");
	says((struct leat_unknown){.what = "column", .name = "path"},
	     "there is no column 'path'; the columns here are image, label");
	says((struct leat_unknown){.what = "option", .name = "size", .owner = "'op'"},
	     "'op' has no option 'size'; it has image, label");
	says((struct leat_unknown){.what = "option", .name = "imag", .prefix = "--"},
	     "there is no option '--imag', did you mean '--image'?");
	says((struct leat_unknown){.what = "option", .name = "x", .prefix = "--"},
	     "there is no option '--x'; the options here are --image, --label");
	says((struct leat_unknown){.what = "op", .name = "x", .hint = "see elsewhere"},
	     "there is no op 'x'; see elsewhere");
	assert_string_equal(leat_unknown_text(&(struct leat_unknown){.what = "op", .name = "x"}, buf),
	                    "there is no op 'x'");
}

static void
names_from_outside_are_shown_safely_and_lists_are_cut(void **state)
{
	const char *known[60];
	char name[300], buf[LEAT_UNKNOWN_TEXT];

	(void)state;
	memset(name, 'n', sizeof(name));
	name[sizeof(name) - 1] = '\0';
	name[1] = '\n';
	for (int i = 0; i < 60; i++)
		known[i] = "a column with quite a long name";
	leat_unknown_text(&(struct leat_unknown){.what = "column", .name = name, .known = known, .count = 60}, buf);
	assert_true(strlen(buf) < LEAT_UNKNOWN_TEXT);
	assert_null(strchr(buf, '\n'));
	assert_string_equal(buf + strlen(buf) - strlen("long name and 45 more"), "long name and 45 more");
}

int
main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_nearest_name_is_found_when_it_is_near),
		cmocka_unit_test(the_nearest_of_several_is_chosen),
		cmocka_unit_test(another_word_is_not_a_typing_error),
		cmocka_unit_test(the_sentence_suggests_or_lists),
		cmocka_unit_test(names_from_outside_are_shown_safely_and_lists_are_cut),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
