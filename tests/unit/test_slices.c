/* test_slices.c - the values that a step is run for: products, texts and names of slices, and finding them again */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "step/project.h"
#include "support/temp.h"

static struct leat_mem mem;
static struct leat_project *project;
static struct temp temp;

static int
setup(void **state)
{
	(void)state;
	leat_mem_init(&mem, SIZE_MAX);
	temp_make(&temp);
	return 0;
}

static int
teardown(void **state)
{
	(void)state;
	leat_project_close(project);
	project = NULL;
	temp_remove(&temp);
	assert_int_equal(mem.used, 0);
	return 0;
}

static const struct leat_slices *
slices_of(const char *slices)
{
	struct leat_err err;
	char text[1000];

	leat_project_close(project);
	leat_err_clear(&err);
	snprintf(text, sizeof(text), "steps: {a: {run: x, slices: %s}}", slices);
	if (leat_project_parse(&project, &mem, temp.folder, text, strlen(text), &err) != LEAT_OK)
		fail_msg("%s", err.text);
	return &project->step[0].slices;
}

static void
refused(const char *slices, const char *expected)
{
	struct leat_project *none;
	struct leat_err err;
	char text[1000];

	leat_err_clear(&err);
	snprintf(text, sizeof(text), "steps: {a: {run: x, slices: %s}}", slices);
	assert_int_equal(leat_project_parse(&none, &mem, temp.folder, text, strlen(text), &err), LEAT_SPEC);
	assert_null(none);
	err.text[strcspn(err.text, "\n")] = '\0';
	if (!strstr(err.text, expected))
		fail_msg("expected '%s', not '%s'", expected, err.text);
}

static void
write_file(const char *name, const char *text)
{
	temp_write(&temp, name, text, strlen(text));
}

/* All values of a variable, joined. */
static void
has_values(const struct leat_slices *slices, size_t variable, const char *expected)
{
	const struct leat_variable *v = &slices->variable[variable];
	char joined[400] = "";

	for (size_t i = 0; i < v->values; i++)
		snprintf(joined + strlen(joined), sizeof(joined) - strlen(joined), "%s%s", i ? " " : "", v->value[i]);
	assert_string_equal(joined, expected);
}

static void
a_range_counts_up_or_down_with_its_step_and_zeros(void **state)
{
	(void)state;
	has_values(slices_of("{s: 1..4}"), 0, "1 2 3 4");
	has_values(slices_of("{s: 0..10..5}"), 0, "0 5 10");
	has_values(slices_of("{s: 0..9..4}"), 0, "0 4 8");
	has_values(slices_of("{s: 3..1..-1}"), 0, "3 2 1");
	has_values(slices_of("{s: -2..1}"), 0, "-2 -1 0 1");
	has_values(slices_of("{s: 08..11}"), 0, "08 09 10 11");
	has_values(slices_of("{s: 7..7}"), 0, "7");
	assert_int_equal(slices_of("{s: 1..1000000}")->count, 1000000);
}

static void
slices_are_the_product_with_the_last_variable_fastest(void **state)
{
	const struct leat_slices *s = slices_of("{subject: 1..3, bin: [early, late]}");

	(void)state;
	assert_int_equal(s->count, 6);
	assert_int_equal(s->axes, 2);
	assert_string_equal(leat_slice_value(s, 0, 0), "1");
	assert_string_equal(leat_slice_value(s, 1, 0), "1");
	assert_string_equal(leat_slice_value(s, 1, 1), "late");
	assert_string_equal(leat_slice_value(s, 5, 0), "3");
	assert_string_equal(leat_slice_value(s, 5, 1), "late");
	assert_int_equal(leat_slice_variable(s, "bin"), 1);
	assert_int_equal(leat_slice_variable(s, "b"), SIZE_MAX);
}

static void
values_are_texts_that_nobody_guesses_at(void **state)
{
	(void)state;
	has_values(slices_of("{s: [no, 1e3, 12:30, 010, 'a b', null]}"), 0, "no 1e3 12:30 010 a b null");
}

static void
lines_of_a_file_are_values(void **state)
{
	(void)state;
	write_file("names.txt", "ann\r\n\nbob\n  c d\nlast");
	has_values(slices_of("{s: {lines: names.txt}}"), 0, "ann bob   c d last");
	write_file("empty.txt", "\n\n");
	refused("{s: {lines: empty.txt}}", "'empty.txt' has no lines, so step 'a' would never run");
	write_file("none.txt", "");
	refused("{s: {lines: none.txt}}", "there are no values here");
	refused("{s: {lines: missing.txt}}", "missing.txt': No such file or directory");
	refused("{s: {lines: .}}", "is not a file");
}

static void
rows_of_a_table_change_together(void **state)
{
	const struct leat_slices *s;

	(void)state;
	write_file("people.csv", "name,age\nann,31\n\"b, c\",7\n");
	s = slices_of("{person: {rows: people.csv}, run_: 1..2}");
	assert_int_equal(s->variables, 3);
	assert_int_equal(s->axes, 2);
	assert_int_equal(s->count, 4);
	has_values(s, 0, "ann b, c");
	has_values(s, 1, "31 7");
	assert_string_equal(leat_slice_value(s, 3, 0), "b, c");
	assert_string_equal(leat_slice_value(s, 3, 1), "7");
	assert_string_equal(leat_slice_value(s, 3, 2), "2");
}

static void
a_bad_table_is_told_with_its_line(void **state)
{
	(void)state;
	write_file("short.csv", "a,b\n1,2\n3\n");
	refused("{s: {rows: short.csv}}", "line 3 of 'short.csv' has 1 cells, but there are 2 columns");
	write_file("blank.csv", "c,b\n1,2\n3,\n");
	refused("{s: {rows: blank.csv}}", "line 3 of 'blank.csv' has no value for 'b'");
	write_file("name.csv", "c,a b\n1,2\n");
	refused("{s: {rows: name.csv}}", "column 'a b' of 'name.csv' cannot be a slice variable");
	write_file("out.csv", "c,out\n1,2\n");
	refused("{s: {rows: out.csv}}", "column 'out' of 'out.csv' cannot be a slice variable");
	write_file("head.csv", "c,b\n");
	refused("{s: {rows: head.csv}}", "'head.csv' has no rows, so step 'a' would never run");
	write_file("twice.csv", "c,c\n1,2\n");
	refused("{s: {rows: twice.csv}}", "slice variable 'c' is there twice");
	write_file("same.csv", "c,d\n1,2\n1,3\n1,2\n");
	refused("{s: {rows: same.csv}}", "the values of 's' contain '2' twice");
	write_file("quote.csv", "c,d\n\"1,2\n");
	refused("{s: {rows: quote.csv}}", "'quote.csv':");
}

static void
files_of_a_glob_are_values_and_inputs(void **state)
{
	const struct leat_slices *s;

	(void)state;
	mkdir(temp_path(&temp, "raw"), 0777);
	write_file("raw/b.csv", "");
	write_file("raw/a.csv", "");
	write_file("raw/.c.csv", "");
	write_file("raw/d.txt", "");
	s = slices_of("{f: {glob: raw/*.csv}}");
	has_values(s, 0, "raw/a.csv raw/b.csv");
	assert_true(s->variable[0].is_file);
	assert_false(slices_of("{f: 1..2}")->variable[0].is_file);
	refused("{f: {glob: '*.none'}}", "no file matches '*.none', so step 'a' would never run");
}

static void
what_is_not_a_set_of_values_is_refused(void **state)
{
	(void)state;
	refused("{s: 1-18}", "the values of 's' must be a range such as 1..18, a list such as [a, b], or one of");
	refused("{s: 3}", "must be a range such as 1..18");
	refused("{s: }", "must be a range such as 1..18");
	refused("{s: 1..}", "must be a range such as 1..18");
	refused("{s: 1..2..}", "must be a range such as 1..18");
	refused("{s: 1..2..3..4}", "must be a range such as 1..18");
	refused("{s: 5..1}", "the range 5..1 has no values; a range that counts down has a negative step");
	refused("{s: 1..5..0}", "the range 1..5..0 has no values");
	refused("{s: 1..5..-1}", "the range 1..5..-1 has no values");
	refused("{s: 1..1000001}", "too many values: a variable has at most 1000000");
	refused("{s: 1..999999999999999}", "too many values");
	refused("{s: 1..9999, b: 1..9999}", "step 'a' has more than 10000000 slices");
	refused("{s: []}", "there are no values here, so step 'a' would never run");
	refused("{s: [[a]]}", "a value of 's' must be a text that is not empty");
	refused("{s: [a, '']}", "a value of 's' must be a text that is not empty");
	refused("{s: [a, b, a]}", "the values of 's' contain 'a' twice");
	refused("{s: {globs: x}}", "a slice variable has no key 'globs', did you mean 'glob'?");
	refused("{s: {glob: x, rows: y}}", "'s' must have one key here: glob, lines or rows");
	refused("{s: {glob: [x]}}", "'glob' must be a pattern");
	refused("{s: {rows: ''}}", "'rows' must be a file");
	refused("{}", "'slices' of step 'a' names no variable");
	refused("[a, b]", "'slices' of step 'a' must be a map of variables and their values");
	refused("{s-1: 1..2}", "'s-1' cannot be the name of a slice variable");
	refused("{s:1..2}", "'s:1..2' cannot be the name of a slice variable; is a space missing after ':'?");
	refused("{seed: 1..2}", "$seed means something else in every command");
}

static void
long_values_that_no_file_name_can_hold_are_refused(void **state)
{
	char text[400];

	(void)state;
	snprintf(text, sizeof(text), "{s: [%0220d], b: [%030d]}", 1, 1);
	refused(text, "the values of a slice are too long for a file name");
	snprintf(text, sizeof(text), "{s: [%0200d]}", 1);
	slices_of(text);
}

/* ---- texts ---- */

static void
has_text(const struct leat_slices *slices, size_t slice, const char *expected)
{
	struct leat_str text;
	struct leat_err err;
	size_t found = SIZE_MAX;

	leat_str_init(&text, &mem, SIZE_MAX);
	leat_err_clear(&err);
	leat_slice_text(slices, slice, &text);
	assert_string_equal(leat_str_text(&text), expected);
	if (leat_slice_find(slices, leat_str_text(&text), &found, &err) != LEAT_OK)
		fail_msg("%s", err.text);
	assert_int_equal(found, slice);
	leat_str_free(&text);
}

static void
texts_of_slices_escape_what_would_end_them(void **state)
{
	const struct leat_slices *s = slices_of("{subject: 1..3, what: ['a,b', 'c=%2C', \"d\\n\", 'e/f']}");

	(void)state;
	has_text(s, 0, "subject=1,what=a%2Cb");
	has_text(s, 5, "subject=2,what=c%3D%252C");
	has_text(s, 10, "subject=3,what=d%0A");
	has_text(s, 11, "subject=3,what=e/f");
	has_text(slices_of("{s: 1..100}"), 99, "s=100");
}

static void
a_step_without_slices_has_one_with_no_text(void **state)
{
	static const char yaml[] = "steps: {a: {run: x}}";
	const struct leat_slices *s;
	struct leat_err err;
	size_t slice;

	(void)state;
	assert_int_equal(leat_project_parse(&project, &mem, NULL, yaml, strlen(yaml), NULL), LEAT_OK);
	s = &project->step[0].slices;
	assert_int_equal(s->count, 1);
	has_text(s, 0, "");
	leat_err_clear(&err);
	assert_int_equal(leat_slice_find(s, "x=1", &slice, &err), LEAT_INVALID);
	assert_string_equal(err.text, "the step has no slices, so 'x=1' is none of them");
}

static void
has_entry(const struct leat_slices *slices, size_t slice, const bool *use, const char *expected)
{
	struct leat_str text;

	leat_str_init(&text, &mem, SIZE_MAX);
	leat_slice_entry(slices, slice, use, &text);
	assert_string_equal(leat_str_text(&text), expected);
	leat_str_free(&text);
}

static void
entries_of_folders_are_file_names(void **state)
{
	const struct leat_slices *s = slices_of("{subject: 1..2, what: ['a/b', '.', '..', '.x', 'c,d', '%']}");
	static const bool both[] = {true, true}, last[] = {false, true}, first[] = {true, false};

	(void)state;
	has_entry(s, 0, both, "1,a%2Fb");
	has_entry(s, 6, first, "2");
	has_entry(s, 1, last, "%2E");
	has_entry(s, 2, last, "%2E.");
	has_entry(s, 3, last, "%2Ex");
	has_entry(s, 4, last, "c%2Cd");
	has_entry(s, 5, last, "%25");
}

/* ---- finding ---- */

static void
not_found(const struct leat_slices *slices, const char *text, const char *expected)
{
	struct leat_err err;
	size_t slice;

	leat_err_clear(&err);
	assert_int_equal(leat_slice_find(slices, text, &slice, &err), LEAT_INVALID);
	assert_string_equal(err.text, expected);
}

static void
a_slice_that_does_not_exist_is_told_by_name(void **state)
{
	const struct leat_slices *s = slices_of("{subject: 1..3, bin: [early, late]}");
	char longest[20000];
	size_t slice;

	(void)state;
	assert_int_equal(leat_slice_find(s, "bin=late,subject=2", &slice, NULL), LEAT_OK);
	assert_int_equal(slice, 3);
	not_found(s, "subjct=1,bin=late", "there is no slice variable 'subjct', did you mean 'subject'?");
	not_found(s, "subject=4,bin=late", "'subject' has no value '4'; it has 1, 2, 3");
	not_found(s, "subject=1,bin=lat", "'bin' has no value 'lat', did you mean 'late'?");
	not_found(s, "subject=1", "several slices match; give a value for 'bin' too");
	not_found(s, "subject=1,subject=2", "'subject' is given twice");
	not_found(s, "3", "'3' is not a slice; write it as NAME=VALUE");
	not_found(s, "", "several slices match; give a value for 'subject' too");
	memset(longest, 'x', sizeof(longest) - 1);
	longest[sizeof(longest) - 1] = '\0';
	not_found(s, longest, "the name of a slice has at most 16383 characters");
}

static void
a_row_is_found_by_the_columns_that_tell_it_apart(void **state)
{
	const struct leat_slices *s;
	size_t slice;

	(void)state;
	write_file("people.csv", "name,age\nann,31\nbob,31\nbob,7\n");
	s = slices_of("{person: {rows: people.csv}}");
	assert_int_equal(leat_slice_find(s, "name=ann", &slice, NULL), LEAT_OK);
	assert_int_equal(slice, 0);
	assert_int_equal(leat_slice_find(s, "age=7", &slice, NULL), LEAT_OK);
	assert_int_equal(slice, 2);
	not_found(s, "name=bob", "several slices match; give a value for 'age' too");
	not_found(s, "name=ann,age=7", "no slice has these values together");
}

int
main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_range_counts_up_or_down_with_its_step_and_zeros, setup, teardown),
		cmocka_unit_test_setup_teardown(slices_are_the_product_with_the_last_variable_fastest, setup, teardown),
		cmocka_unit_test_setup_teardown(values_are_texts_that_nobody_guesses_at, setup, teardown),
		cmocka_unit_test_setup_teardown(lines_of_a_file_are_values, setup, teardown),
		cmocka_unit_test_setup_teardown(rows_of_a_table_change_together, setup, teardown),
		cmocka_unit_test_setup_teardown(a_bad_table_is_told_with_its_line, setup, teardown),
		cmocka_unit_test_setup_teardown(files_of_a_glob_are_values_and_inputs, setup, teardown),
		cmocka_unit_test_setup_teardown(what_is_not_a_set_of_values_is_refused, setup, teardown),
		cmocka_unit_test_setup_teardown(long_values_that_no_file_name_can_hold_are_refused, setup, teardown),
		cmocka_unit_test_setup_teardown(texts_of_slices_escape_what_would_end_them, setup, teardown),
		cmocka_unit_test_setup_teardown(a_step_without_slices_has_one_with_no_text, setup, teardown),
		cmocka_unit_test_setup_teardown(entries_of_folders_are_file_names, setup, teardown),
		cmocka_unit_test_setup_teardown(a_slice_that_does_not_exist_is_told_by_name, setup, teardown),
		cmocka_unit_test_setup_teardown(a_row_is_found_by_the_columns_that_tell_it_apart, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
