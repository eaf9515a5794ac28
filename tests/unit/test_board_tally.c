/* test_board_tally.c - what lines of a run's log add up to */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <cmocka.h>

#include <jansson.h>

#include "board/tally.h"

static struct leat_mem mem;
static struct leat_tally tally;

static int
begin(void **state)
{
	(void)state;
	leat_mem_init(&mem, SIZE_MAX);
	mem.fail_after = -1;
	leat_tally_init(&tally, &mem);
	return 0;
}

static int
end(void **state)
{
	(void)state;
	leat_tally_free(&tally);
	assert_int_equal(mem.used, 0);
	return 0;
}

static void
add(const char *line)
{
	struct leat_err err = {0};

	assert_int_equal(leat_tally_add(&tally, line, strlen(line), &err), LEAT_OK);
}

static json_t *
as_json(void)
{
	struct leat_str text;
	json_t *json;

	leat_str_init(&text, &mem, SIZE_MAX);
	leat_tally_json(&tally, "RUN", true, &text);
	assert_false(text.failed);
	json = json_loads(leat_str_text(&text), JSON_REJECT_DUPLICATES, NULL);
	assert_non_null(json);
	leat_str_free(&text);
	return json;
}

#define BEGIN                                                                                                          \
	"{\"event\":\"begin\",\"at\":1.5,\"run\":\"RUN\",\"file\":\"leat.yaml\",\"targets\":[],\"jobs\":2,\"pid\":7,"  \
	"\"steps\":[{\"step\":\"decode\",\"actions\":4,\"in\":[\"epochs\"]},{\"step\":\"report\",\"actions\":0,"       \
	"\"in\":[]},{\"step\":\"group\",\"actions\":1,\"in\":"                                                         \
	"["                                                                                                            \
	"\"decode\"]}]}"
#define LINE(event, slice)                                                                                             \
	"{\"event\":\"" event "\",\"at\":2,\"step\":\"decode\",\"slice\":\"" slice "\",\"id\":\"decode-1\"}"

static const char *const lines[] = {
	BEGIN,
	"{\"event\":\"cached\",\"at\":2,\"step\":\"decode\",\"count\":2,\"saved_s\":3}",
	LINE("start", "s=3"),
	LINE("start", "s=4"),
	LINE("retry", "s=4"),
	LINE("start", "s=4"),
	LINE("ran", "s=3"),
	"{\"event\":\"failed\",\"at\":3,\"step\":\"decode\",\"slice\":\"s=4\",\"why\":\"exited with "
	"2\",\"log\":\"ab\"}",
	"{\"event\":\"skipped\",\"at\":3,\"step\":\"group\",\"count\":1}",
	"{\"event\":\"end\",\"at\":4,\"actions\":5,\"cached\":2,\"ran\":1,\"same\":0,\"failed\":1,\"skipped\":1,"
	"\"seconds\":2.5,\"saved_s\":3}",
};

enum { LINES = sizeof(lines) / sizeof(*lines) };

static void
counters_follow_each_line(void **state)
{
	(void)state;
	for (size_t i = 0; i < 4; i++)
		add(lines[i]);
	assert_int_equal(tally.steps, 2);
	assert_int_equal(tally.step[0].actions, 4);
	assert_int_equal(tally.step[0].cached, 2);
	assert_int_equal(tally.step[0].running, 2);
	assert_int_equal(tally.touched, 0);
	add(lines[4]);
	add(lines[5]);
	assert_int_equal(tally.step[0].running, 2); /* tried again, not twice */
	for (size_t i = 6; i < LINES; i++)
		add(lines[i]);
	assert_int_equal(tally.step[0].running, 0);
	assert_int_equal(tally.step[0].ran, 1);
	assert_int_equal(tally.step[0].failed, 1);
	assert_int_equal(tally.step[1].skipped, 1);
	assert_int_equal(tally.failed.count, 1);
	assert_int_equal(tally.finished.count, 2);
	assert_non_null(tally.end);
}

static void
a_stopped_action_runs_no_more(void **state)
{
	(void)state;
	for (size_t i = 0; i < 4; i++)
		add(lines[i]);
	add(LINE("stopped", "s=4"));
	assert_int_equal(tally.step[0].running, 1);
	assert_int_equal(tally.running.count, 1);
	assert_int_equal(tally.step[0].failed, 0);
}

static void
json_has_the_lines_of_failures(void **state)
{
	json_t *json;

	(void)state;
	for (size_t i = 0; i < LINES; i++)
		add(lines[i]);
	json = as_json();
	assert_string_equal(
		json_string_value(json_object_get(json_array_get(json_object_get(json, "failed"), 0), "why")),
		"exited with 2");
	assert_int_equal(json_array_size(json_object_get(json, "running")), 0);
	assert_string_equal(json_string_value(json_array_get(
				    json_object_get(json_array_get(json_object_get(json, "steps"), 1), "in"), 0)),
	                    "decode");
	json_decref(json);
}

static void
lines_that_are_no_events_are_left_out(void **state)
{
	static const char *const bad[] = {
		"",
		"{",
		"[]",
		"null",
		"{}",
		"{\"event\":7}",
		"{\"event\":\"ran\"}",
		"\xff\xfe",
		"{\"event\":\"begin\",\"steps\":[{\"step\":9},3,{\"step\":\"x\",\"actions\":-4}]}"};

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		add(bad[i]);
	assert_int_equal(tally.steps, 0);
	json_decref(as_json());
}

static void
a_long_log_keeps_a_bounded_number_of_lines(void **state)
{
	enum { MANY = 9000 };
	char line[200];
	json_t *json;

	(void)state;
	for (int i = 0; i < MANY; i++) {
		snprintf(line, sizeof(line),
		         "{\"event\":\"%s\",\"at\":2,\"step\":\"decode\",\"slice\":\"s=%d\",\"id\":\"d-%d\"}",
		         i % 2 ? "ran" : "failed", i, i);
		add(line);
	}
	assert_int_equal(tally.step[0].ran + tally.step[0].failed, MANY);
	assert_int_equal(tally.finished.count + tally.failed.count + tally.left_out, MANY);
	assert_true(tally.finished.count < MANY / 2);
	json = as_json();
	json_t *kept = json_object_get(json, "lines");
	/* the last one is the newest */
	assert_string_equal(
		json_string_value(json_object_get(json_array_get(kept, json_array_size(kept) - 1), "slice")), "s=8999");
	json_decref(json);
}

static int
log_of(const char *const *line, size_t count, const char *rest)
{
	int fd = memfd_create("log", 0);

	for (size_t i = 0; i < count; i++)
		dprintf(fd, "%s\n", line[i]);
	dprintf(fd, "%s", rest);
	return fd;
}

static void
a_line_that_is_being_written_is_read_when_it_is_complete(void **state)
{
	const char *last = lines[LINES - 1];
	int fd = log_of(lines, LINES - 1, "");
	uint64_t at = 0, before;

	(void)state;
	assert_int_equal(write(fd, last, 20), 20);
	assert_int_equal(leat_tally_read(&tally, fd, &at, SIZE_MAX / 2, NULL, NULL, NULL), LEAT_OK);
	assert_null(tally.end);
	assert_int_equal(tally.step[0].failed, 1);
	before = at;
	assert_int_equal(leat_tally_read(&tally, fd, &at, SIZE_MAX / 2, NULL, NULL, NULL), LEAT_OK);
	assert_int_equal(at, before);
	dprintf(fd, "%s\n", last + 20);
	assert_int_equal(leat_tally_read(&tally, fd, &at, SIZE_MAX / 2, NULL, NULL, NULL), LEAT_OK);
	assert_non_null(tally.end);
	assert_int_equal(tally.step[0].failed, 1);
	assert_int_equal(at, lseek(fd, 0, SEEK_END));
	close(fd);
}

static void
a_line_without_end_does_not_stop_the_reader(void **state)
{
	enum { LONG = 3 << 20 };
	char *junk = malloc(LONG + 1);
	int fd;
	uint64_t at = 0;

	(void)state;
	memset(junk, 'x', LONG);
	junk[LONG] = '\0';
	fd = log_of(lines, 1, junk);
	dprintf(fd, "\n%s\n", lines[1]);
	assert_int_equal(leat_tally_read(&tally, fd, &at, SIZE_MAX / 2, NULL, NULL, NULL), LEAT_OK);
	assert_int_equal(tally.step[0].cached, 2);
	close(fd);
	free(junk);
}

static void
every_failed_allocation_is_an_error(void **state)
{
	bool whole = false;

	(void)state;
	for (long n = 0; !whole; n++) {
		struct leat_err err = {0};
		enum leat_status status = LEAT_OK;

		mem.fail_after = n;
		for (size_t i = 0; i < LINES && status == LEAT_OK; i++)
			status = leat_tally_add(&tally, lines[i], strlen(lines[i]), &err);
		mem.fail_after = -1;
		whole = status == LEAT_OK;
		if (!whole)
			assert_int_equal(status, LEAT_NOMEM);
		json_decref(as_json()); /* what was added before can be read */
		leat_tally_free(&tally);
		assert_int_equal(mem.used, 0);
		leat_tally_init(&tally, &mem);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)
		TEST(counters_follow_each_line),
		TEST(a_stopped_action_runs_no_more),
		TEST(json_has_the_lines_of_failures),
		TEST(lines_that_are_no_events_are_left_out),
		TEST(a_long_log_keeps_a_bounded_number_of_lines),
		TEST(a_line_that_is_being_written_is_read_when_it_is_complete),
		TEST(a_line_without_end_does_not_stop_the_reader),
		TEST(every_failed_allocation_is_an_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
