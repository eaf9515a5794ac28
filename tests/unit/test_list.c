/* test_list.c - the source list: files that a CSV file names, with values for each */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <locale.h>
#include <math.h>

#include "format/csv_table.h"
#include "format/sidecar.h"
#include "support/logged.h"
#include "support/source.h"
#include "support/trace.h"
#include "support/temp.h"

static struct temp temp;
static char text[8000];
static struct leat_options options; /* with the log */

/* "list('TEMP/data.csv'REST" */
static const char *
spec(const char *rest)
{
	snprintf(text, sizeof text, "list('%s/data.csv'%s", temp.folder, rest);
	return text;
}

/* As if it had been written some seconds ago: what was written just now is not kept. */
static void
write_csv(const char *csv)
{
	struct timespec past[2] = {{0, UTIME_OMIT}, {0, 0}};
	static long seconds = 1000000000;

	past[1].tv_sec = seconds++;
	temp_write(&temp, "data.csv", csv, strlen(csv));
	assert_int_equal(utimensat(AT_FDCWD, temp_path(&temp, "data.csv"), past, 0), 0);
}

static int
setup(void **state)
{
	(void)state;
	temp_make(&temp);
	setenv("XDG_CACHE_HOME", temp_path(&temp, "cache"), 1);
	assert_int_equal(mkdir(temp_path(&temp, "in"), 0777), 0);
	temp_write(&temp, "1.jpg", "one", 3);
	temp_write(&temp, "in/2.jpg", "two", 3);
	temp_write(&temp, "in/3, 4.jpg", "three", 5);
	trace_options(&options);
	options.log = write_log;
	memset(&logged, 0, sizeof logged);
	return 0;
}

static int
teardown(void **state)
{
	(void)state;
	temp_remove(&temp);
	return 0;
}

static const char three_rows[] = "path,label,weight,name\r\n"
				 "1.jpg,7,0.5,a\r\n"
				 "in/2.jpg,-8,1,\"b, \"\"c\"\"\"\r\n"
				 "\"in/3, 4.jpg\",9,1e-3,\r\n";

static void
expect_three_rows(void)
{
	struct leat_tensor label, weight;
	struct whole whole;

	whole_open(&whole, spec(")"), &options);
	assert_int_equal(whole.count, 3);
	assert_int_equal(leat_field_count(whole.feed), 4);
	whole_expect_text(&whole, "image", 0, "one");
	whole_expect_text(&whole, "image", 1, "two");
	whole_expect_text(&whole, "image", 2, "three");
	whole_expect_text(&whole, "name", 0, "a");
	whole_expect_text(&whole, "name", 1, "b, \"c\"");
	whole_expect_text(&whole, "name", 2, "");
	label = whole_field(&whole, "label");
	weight = whole_field(&whole, "weight");
	assert_int_equal(label.dtype, LEAT_I64);
	assert_int_equal(label.ndim, 1);
	assert_memory_equal(label.data, ((int64_t[]){7, -8, 9}), 24);
	assert_int_equal(weight.dtype, LEAT_F32);
	assert_memory_equal(weight.data, ((float[]){0.5f, 1, 1e-3f}), 12);
	whole_close(&whole);
}

/* ---- what comes out ---- */

static void
columns_become_fields_of_the_type_their_cells_have(void **state)
{
	(void)state;
	write_csv(three_rows);
	expect_three_rows();
	assert_true(temp_exists(&temp, ".data.csv.leatidx"));
	expect_three_rows();
	assert_int_equal(logged.warn, 0);
}

static void
options_choose_columns_names_and_types(void **state)
{
	struct leat_tensor tensor;
	struct whole whole;

	(void)state;
	write_csv("id,file,n,x\n01,1.jpg,5,2\n02,in/2.jpg,6,3\n");
	whole_open(&whole, spec(", path=file, content=audio, columns=[x, id], types=[float, bytes])"), NULL);
	assert_int_equal(leat_field_count(whole.feed), 3);
	assert_string_equal(leat_field_at(whole.feed, 1)->name, "x");
	whole_expect_text(&whole, "audio", 1, "two");
	whole_expect_text(&whole, "id", 1, "02");
	tensor = whole_field(&whole, "x");
	assert_int_equal(tensor.dtype, LEAT_F32);
	assert_memory_equal(tensor.data, ((float[]){2, 3}), 8);
	whole_close(&whole);
	/* The index of other options is not used for these. */
	whole_open(&whole, spec(", path=file)"), NULL);
	assert_int_equal(leat_field_count(whole.feed), 4);
	assert_int_equal(whole_field(&whole, "id").dtype, LEAT_I64);
	whole_close(&whole);
	/* The column of names may be a field, too. */
	whole_open(&whole, spec(", path=file, columns=file)"), NULL);
	whole_expect_text(&whole, "file", 1, "in/2.jpg");
	whole_close(&whole);
}

/* ---- tables ---- */

static struct leat_mem mem;
static struct leat_csv_table table;
static struct leat_err err;
static char paths[200]; /* with a blank after each */

static enum leat_status
take_paths(void *arg, const char *const *path, const uint64_t *line, size_t count, struct leat_err *why)
{
	(void)arg;
	(void)line;
	(void)why;
	for (size_t i = 0; i < count; i++)
		snprintf(paths + strlen(paths), sizeof paths - strlen(paths), "%s ", path[i]);
	return LEAT_OK;
}

static enum leat_status
parse_as(const char *csv, const struct leat_csv_wish *wanted)
{
	const struct leat_csv_input input = leat_csv_text_input(csv, strlen(csv));
	struct leat_csv_wish wish = *wanted;

	wish.take_paths = take_paths;
	wish.lines = true;
	paths[0] = '\0';
	leat_mem_init(&mem, SIZE_MAX);
	leat_err_clear(&err);
	return leat_csv_table_parse(&table, &input, &wish, &mem, &err);
}

static enum leat_status
parse(const char *csv)
{
	return parse_as(csv, &(struct leat_csv_wish){.path = "path"});
}

static void
done(void)
{
	leat_csv_table_free(&table);
	assert_int_equal(mem.used, 0);
}

/* The type that a column of these two cells has. */
static void
expect_type(const char *first, const char *second, enum leat_csv_type type)
{
	char csv[300];

	snprintf(csv, sizeof csv, "path,x\n1,\"%s\"\n2,\"%s\"\n", first, second);
	if (parse(csv) != LEAT_OK)
		fail_msg("%s", err.text);
	if (table.column[0].type != type)
		fail_msg("'%s' and '%s' make type %d", first, second, table.column[0].type);
	done();
}

static void
types_are_decided_over_all_rows(void **state)
{
	static const char *const wholes[] = {
		"0", "-1", "+7", " 12\t", "007", "9223372036854775807", "-9223372036854775808"};
	static const char *const numbers[] = {"0.5", "-.5",  "5.",       "1e3",   "+1.5E-7",
	                                      "nan", "-Inf", "INFINITY", " 2.5 ", "1e-60"};
	static const char *const texts[] = {"",   "x",   "1x",  "0x10", "1 2", "--1",  ".",      "e5",
	                                    "1e", "1e+", "1,5", "nano", "+",   "1e39", "nan(7)", "9223372036854775808",
	                                    "١",  "1.5f"};

	(void)state;
	for (size_t i = 0; i < sizeof wholes / sizeof *wholes; i++)
		expect_type("1", wholes[i], LEAT_CSV_INT64);
	for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
		expect_type("1", numbers[i], LEAT_CSV_FLOAT);
		expect_type(numbers[i], "1", LEAT_CSV_FLOAT);
	}
	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
		expect_type("1", texts[i], LEAT_CSV_BYTES);
		expect_type(texts[i], "0.5", LEAT_CSV_BYTES);
	}
}

static void
numbers_are_exact(void **state)
{
	static const float values[] = {0.1f, -0.5f, 16777216, 3.4028235e38f, 1e-45f, 0};

	(void)state;
	setlocale(LC_ALL, "de_DE.UTF-8"); /* where a comma is the point, if this system knows it */
	if (parse("path,x,n\n1,0.1,-9223372036854775808\n2,-.5,9223372036854775807\n3,16777217,0\n4,3.4028235e38,1\n"
	          "5,1e-45,2\n6,1e-60,3\n") != LEAT_OK)
		fail_msg("%s", err.text);
	setlocale(LC_ALL, "C");
	assert_memory_equal(table.column[0].values, values, sizeof values);
	assert_true(((const int64_t *)table.column[1].values)[0] == INT64_MIN);
	assert_true(((const int64_t *)table.column[1].values)[1] == INT64_MAX);
	done();
}

static void
a_byte_order_mark_and_blanks_around_names_do_not_count(void **state)
{
	(void)state;
	assert_int_equal(parse("\xef\xbb\xbf path , x\r\n\r\n1, 2\r\n"), LEAT_OK);
	assert_int_equal(table.columns, 1);
	assert_string_equal(table.column[0].name, "x");
	assert_int_equal(table.column[0].type, LEAT_CSV_INT64);
	done();
}

static bool
names_a_file(struct leat_csv_row *first)
{
	if (strcmp(first->cell[0], "file") != 0)
		return false;
	first->cell[0] = "path";
	return true;
}

static void
the_first_row_may_hold_values_if_that_is_asked_for(void **state)
{
	static const char *columns[] = {"label"};
	const struct leat_csv_wish wish = {.path = "path", .columns = {1, columns}, .is_header = names_a_file};

	(void)state;
	for (int header = 0; header < 2; header++) {
		assert_int_equal(
			parse_as(header ? "file,other,label\n1.jpg,a,7\n\n2.jpg,b,8\n" : "1.jpg,7,a\n\n\n2.jpg,8,b\n",
		                 &wish),
			LEAT_OK);
		assert_int_equal(table.rows, 2);
		assert_string_equal(paths, "1.jpg 2.jpg ");
		assert_string_equal(table.column[0].name, "label");
		assert_memory_equal(table.column[0].values, ((int64_t[]){7, 8}), 16);
		assert_int_equal(table.line[0], header ? 2 : 1);
		assert_int_equal(table.line[1], 4);
		done();
	}
	assert_int_equal(parse_as("1.jpg\n", &wish), LEAT_DATA);
	assert_string_equal(err.text, "line 1 has 1 cell, expected 2");
	done();
}

static void
lists_that_make_no_sense_are_refused(void **state)
{
	static const struct {
		const char *csv, *part;
	} cases[] = {
		{"", "it is empty"},
		{"\n\n", "it is empty"},
		{"path,x\n", "it has no samples"},
		{"paht,x\n1,2\n", "no column 'path', did you mean 'paht'?"},
		{"a,b\n1,2\n", "no column 'path'; the columns here are a, b"},
		{"cat,b\n1,2\n", "no column 'path'; the columns here are cat, b"},
		{"path,x,x\n1,2,3\n", "there are two columns 'x'"},
		{"path,\n1,2\n", "skip column 2"},
		{"path,x\n1\n", "line 2 has 1 cell, but the first row has 2"},
		{"path,x\n1,2\n\n\"a\nb\",2,3\n", "line 4 has 3 cells, but the first row has 2"},
		{"path,x\n1,\"2\n", "line 2: a quoted cell is not closed"},
		{"path,x\n1,\"2\"3\n", "line 2: text follows a closing quote"},
		{"path,x1234567890123456789012345678901234567890123456789012345678901234\n1,2\n", "1 to 63 characters"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		if (parse(cases[i].csv) != LEAT_DATA || !strstr(err.text, cases[i].part))
			fail_msg("%s: %s, expected %s", cases[i].csv, err.text, cases[i].part);
		assert_int_equal(mem.used, 0);
	}
	strcpy(text, "path");
	for (int i = 0; i < LEAT_MAX_FIELDS; i++)
		snprintf(text + strlen(text), 16, ",c%d", i);
	strcat(text, "\n");
	assert_int_equal(parse(text), LEAT_DATA);
	assert_non_null(strstr(err.text, "more than 1023 columns"));
}

static void
specs_that_do_not_fit_the_list_are_refused(void **state)
{
	(void)state;
	expect_refused(spec(")"), LEAT_IO, "No such file");
	write_csv(three_rows);
	expect_refused(spec(", path=file)"), LEAT_DATA, "data.csv': there is no column 'file'");
	expect_refused(spec(", columns=[label, nam])"), LEAT_DATA, "no column 'nam', did you mean 'name'?");
	expect_refused(spec(", columns=[label, label])"), LEAT_INVALID, "'label' is listed twice");
	expect_refused(spec(", columns=[label], types=[int32])"), LEAT_INVALID,
	               "column 'label': there is no type 'int32'; the types here are auto, int64, float, bytes");
	expect_refused(spec(", columns=[label], types=[number])"), LEAT_INVALID, "no type 'number'");
	expect_refused(spec(", columns=[label], types=[int64, float])"), LEAT_INVALID, "2 types for 1 columns");
	expect_refused(spec(", columns=[name], types=[int64])"), LEAT_DATA,
	               "line 2: column 'name' is not an int64: 'a'");
	expect_refused(spec(", columns=[label, weight], types=[auto, int64])"), LEAT_DATA, "is not an int64: '0.5'");
	expect_refused(spec(", content=label)"), LEAT_INVALID, "rename that with content=NAME");
	expect_refused(spec(", content='')"), LEAT_INVALID, "content= must be a name");
	write_csv("path,image\n1.jpg,2\n");
	expect_refused(spec(")"), LEAT_INVALID, "column 'image' has the same name as the field");
	write_csv("");
	expect_refused(spec(")"), LEAT_DATA, "data.csv': it is empty");
	temp_write(&temp, "data.csv2", "", 0);
	snprintf(text, sizeof text, "list('%s/data.c*')", temp.folder);
	expect_refused(text, LEAT_INVALID, "matches 2 files");
}

/* ---- files ---- */

static void
names_are_relative_to_the_list_or_absolute(void **state)
{
	char csv[300];
	char *here = getcwd(NULL, 0);
	struct whole whole;

	(void)state;
	snprintf(csv, sizeof csv, "path\n%s/1.jpg\nin/../in/2.jpg\n", temp.folder);
	write_csv(csv);
	whole_open(&whole, spec(")"), NULL);
	whole_expect_text(&whole, "image", 0, "one");
	whole_expect_text(&whole, "image", 1, "two");
	whole_close(&whole);
	assert_int_equal(chdir(temp.folder), 0);
	whole_open(&whole, "list('data.csv')", NULL);
	whole_expect_text(&whole, "image", 1, "two");
	whole_close(&whole);
	assert_int_equal(chdir(here), 0);
	free(here);
}

static void
missing_files_are_bad_samples_until_they_are_there(void **state)
{
	static const char long_name[5000] = {[0 ... 4998] = 'x'};
	static char csv[6000];
	struct whole whole;

	(void)state;
	snprintf(csv, sizeof csv, "path,label\n1.jpg,1\nnone.jpg,2\n,3\nin,4\n%s,5\nin/2.jpg,6\n", long_name);
	write_csv(csv);
	options.on_error = LEAT_ON_ERROR_SKIP;
	for (int again = 0; again < 2; again++) {
		logged.warn = 0;
		whole_open(&whole, spec(")"), &options);
		assert_int_equal(logged.warn, 1);
		assert_non_null(strstr(logged.text, "4 of 6 files"));
		assert_non_null(strstr(logged.text, "/none.jpg'"));
		assert_int_equal(whole.count, 2);
		assert_memory_equal(whole_field(&whole, "label").data, ((int64_t[]){1, 6}), 16);
		assert_int_equal(leat_bad_count(whole.feed), 4);
		assert_non_null(strstr(leat_bad_at(whole.feed, 0)->uri, "/none.jpg"));
		assert_non_null(strstr(leat_bad_at(whole.feed, 0)->reason, "/none.jpg': No such file"));
		assert_non_null(strstr(leat_bad_at(whole.feed, 2)->reason, "/in' is not a regular file"));
		whole_close(&whole);
		assert_true(temp_exists(&temp, ".data.csv.leatidx"));
	}
	temp_write(&temp, "none.jpg", "here", 4);
	whole_open(&whole, spec(")"), &options);
	assert_int_equal(whole.count, 3);
	whole_expect_text(&whole, "image", 1, "here");
	whole_close(&whole);
	options.on_error = LEAT_ON_ERROR_REPLACE;
	whole_open(&whole, spec(")"), &options);
	assert_int_equal(whole.count, 6);
	whole_close(&whole);
	write_csv("path\na\nb\n");
	expect_refused(spec(")"), LEAT_DATA, "all files listed in '");
	expect_refused(spec(")"), LEAT_DATA, "the first is '");
}

/* ---- the index ---- */

static void
another_list_is_read_anew(void **state)
{
	struct whole whole;

	(void)state;
	write_csv(three_rows);
	expect_three_rows();
	write_csv("path,label,weight,name\r\n1.jpg,5,5,5\r\n");
	whole_open(&whole, spec(")"), NULL);
	assert_int_equal(whole.count, 1);
	whole_close(&whole);
	write_csv(three_rows);
	temp_change_now(&temp, "data.csv");
	expect_three_rows();
	unlink(temp_path(&temp, ".data.csv.leatidx"));
	expect_three_rows();
	assert_false(temp_exists(&temp, ".data.csv.leatidx"));
}

static void
a_damaged_index_is_made_again(void **state)
{
	unsigned char *bytes, *copy;
	size_t len;

	(void)state;
	write_csv(three_rows);
	expect_three_rows();
	bytes = temp_read(temp_path(&temp, ".data.csv.leatidx"), &len);
	copy = malloc(len);
	for (size_t at = 0; at < len; at += TEST_SLOW ? 8 : 1) {
		memcpy(copy, bytes, len);
		copy[at] ^= 0x40;
		temp_write(&temp, ".data.csv.leatidx", copy, len);
		expect_three_rows();
	}
	/* With a checksum that is right, so that it is for the source to see. What makes sense may be used. */
	options.on_error = LEAT_ON_ERROR_SKIP;
	for (size_t at = 64; at < len; at += 8) {
		struct leat_sidecar_head *head = (struct leat_sidecar_head *)(void *)copy;
		struct leat_batch *batch;
		struct leat_feed *feed;
		uint64_t value;

		memcpy(copy, bytes, len);
		memcpy(&value, copy + at, 8);
		value = ~value;
		memcpy(copy + at, &value, 8);
		head->crc = leat_sidecar_crc(copy, len);
		temp_write(&temp, ".data.csv.leatidx", copy, len);
		if (leat_open(spec(") | batch(10)"), &options, &feed, &err) != LEAT_OK)
			continue;
		if (leat_next(feed, &batch, NULL) == LEAT_OK)
			leat_release(batch);
		leat_close(feed);
	}
	free(bytes);
	free(copy);
}

/* ---- promises ---- */

static void
a_checkpoint_belongs_to_the_values_of_the_list(void **state)
{
	struct leat_feed *feed;
	char *json;

	(void)state;
	write_csv(three_rows);
	feed = trace_open(spec(") | batch(1)"), &options);
	assert_int_equal(leat_save(feed, &json, &err), LEAT_OK);
	leat_close(feed);
	unlink(temp_path(&temp, ".data.csv.leatidx"));
	feed = trace_open(spec(") | batch(1)"), &options);
	assert_int_equal(leat_restore(feed, json, &err), LEAT_OK);
	leat_close(feed);
	snprintf(text, sizeof text, "%s", three_rows);
	*strchr(text, '7') = '6';
	write_csv(text);
	feed = trace_open(spec(") | batch(1)"), &options);
	assert_int_equal(leat_restore(feed, json, &err), LEAT_MISMATCH);
	leat_close(feed);
	free(json);
}

static void
the_same_for_any_threads_ranks_and_stops(void **state)
{
	static char csv[2000] = "path,label,name\n";

	(void)state;
	for (int i = 0; i < 40; i++)
		snprintf(csv + strlen(csv), 60, "%s,%d,name %d\n", i % 3 ? "1.jpg" : "in/2.jpg", i, i * i);
	write_csv(csv);
	promise_same(spec(")"));
	promise_same(spec(", columns=label) | cache | interleave(3)"));
}

static void
forget_index(void)
{
	unlink(temp_path(&temp, ".data.csv.leatidx"));
}

static void
no_memory_is_an_error(void **state)
{
	(void)state;
	write_csv(three_rows);
	promise_memory_errors(spec(") | batch(2)"), forget_index);
	promise_memory_errors(spec(") | batch(2)"), NULL);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(columns_become_fields_of_the_type_their_cells_have),
		TEST(options_choose_columns_names_and_types),
		TEST(types_are_decided_over_all_rows),
		TEST(numbers_are_exact),
		TEST(a_byte_order_mark_and_blanks_around_names_do_not_count),
		TEST(the_first_row_may_hold_values_if_that_is_asked_for),
		TEST(lists_that_make_no_sense_are_refused),
		TEST(specs_that_do_not_fit_the_list_are_refused),
		TEST(names_are_relative_to_the_list_or_absolute),
		TEST(missing_files_are_bad_samples_until_they_are_there),
		TEST(another_list_is_read_anew),
		TEST(a_damaged_index_is_made_again),
		TEST(a_checkpoint_belongs_to_the_values_of_the_list),
		TEST(the_same_for_any_threads_ranks_and_stops),
		TEST(no_memory_is_an_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
