/* test_report.c - pages hold their data, whatever is in it, and give it back; other people's pages are checked */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "support/temp.h"
#include "trace/recorder.h"
#include "xray/report.h"

static struct temp temp;

static int
setup(void **state)
{
	(void)state;
	temp_make(&temp);
	return 0;
}

static int
teardown(void **state)
{
	(void)state;
	temp_remove(&temp);
	return 0;
}

static size_t
occurrences(const char *text, const char *what)
{
	size_t count = 0;

	for (; (text = strstr(text, what)) != NULL; text++)
		count++;
	return count;
}

/* Writes a report and reads it, NUL-terminated; to be freed. */
static char *
write_report(struct leat_recorder *recorder, const char *json, size_t *size)
{
	const char *path = temp_path(&temp, "run.html");
	struct leat_err err;
	unsigned char *bytes;
	char *text;
	size_t len;

	if (leat_report_write(recorder, json, path, &err) != LEAT_OK)
		fail_msg("%s", err.text);
	bytes = temp_read(path, &len);
	text = strndup((char *)bytes, len);
	assert_non_null(text);
	assert_int_equal(strlen(text), len);
	free(bytes);
	if (size)
		*size = len;
	return text;
}

static void
a_page_gives_its_run_back(void **state)
{
	const char *json = "{\"samples_per_s\": 1234.5, \"sentence\": \"d\\u00e9code\", \"epochs\": [{\"epoch\": 0}]}";
	char *page = write_report(NULL, json, NULL);
	struct leat_run run;
	json_t *expected = json_loads(json, 0, NULL);

	(void)state;
	assert_int_equal(leat_run_read(page, strlen(page), &run, NULL), LEAT_OK);
	assert_true(json_equal(run.run, expected));
	assert_null(run.timeline);
	leat_run_close(&run);
	json_decref(expected);
	free(page);
}

static void
no_text_of_a_run_becomes_markup(void **state)
{
	static const char hostile[] = "</script><script>alert(1)</script><!--<script>\xe2\x80\xa8\xe2\x80\xa9 ]]>";
	json_t *run =
		json_pack("{s:s, s:{s:i}, s:[{s:s}]}", "sentence", hostile, hostile, "x", 1, "bad", "reason", hostile);
	char *json = json_dumps(run, 0), *plain = write_report(NULL, "{}", NULL),
	     *page = write_report(NULL, json, NULL);
	struct leat_run back;

	(void)state;
	assert_non_null(json);
	assert_int_equal(occurrences(page, "<script"), occurrences(plain, "<script"));
	assert_int_equal(occurrences(page, "</script"), occurrences(plain, "</script"));
	assert_int_equal(occurrences(page, "<!--"), 0);
	assert_null(strstr(page, "\xe2\x80\xa8"));
	assert_int_equal(leat_run_read(page, strlen(page), &back, NULL), LEAT_OK);
	assert_true(json_equal(back.run, run));
	leat_run_close(&back);
	json_decref(run);
	free(json);
	free(plain);
	free(page);
}

static void
the_page_needs_no_network(void **state)
{
	char *page = write_report(NULL, "{}", NULL);

	(void)state;
	assert_non_null(strstr(page, "default-src 'none'"));
	assert_null(strstr(page, "unsafe-inline"));
	assert_null(strstr(page, "https:"));
	assert_null(strstr(page, "src=\""));
	assert_null(strstr(page, "@import"));
	free(page);
}

static void
spans_of_a_recorder_reach_the_page(void **state)
{
	struct leat_recorder_options options;
	struct leat_recorder *recorder;
	uint64_t now = leat_now();
	struct leat_run run, copy;
	char *page, *again;
	int lane;

	(void)state;
	leat_recorder_options_init(&options);
	options.timeline = true;
	options.rank = 0;
	options.world = 1;
	assert_int_equal(leat_recorder_open(&options, &recorder, NULL), LEAT_OK);
	lane = leat_recorder_lane(recorder, "</script>\xe2\x80\xa8");
	for (uint64_t i = 0; i < 100; i++)
		leat_recorder_span(recorder, lane, LEAT_TAG_TRANSFORM, "<img onerror=x>", now + i * 1000,
		                   now + i * 1000 + 500, i);
	leat_recorder_count(recorder, "rss MB", now, 12);
	page = write_report(recorder, "{}", NULL);
	assert_null(strstr(page, "<img"));
	assert_null(strstr(page, "\xe2\x80\xa8"));
	assert_int_equal(leat_run_read(page, strlen(page), &run, NULL), LEAT_OK);
	assert_non_null(run.timeline);
	assert_int_equal(json_integer_value(json_object_get(run.timeline, "spans")), 100);
	assert_int_equal(json_array_size(json_object_get(run.timeline, "tracks")), 1);
	assert_string_equal(json_string_value(json_array_get(json_object_get(run.timeline, "names"), 1)),
	                    "<img onerror=x>");
	again = write_report(NULL, page, NULL); /* a copy of the page has all of it, too */
	assert_int_equal(leat_run_read(again, strlen(again), &copy, NULL), LEAT_OK);
	assert_true(json_equal(copy.timeline, run.timeline));
	leat_run_close(&copy);
	leat_run_close(&run);
	free(again);
	assert_int_equal(leat_recorder_close(recorder, NULL), LEAT_OK);
	free(page);
}

static void
refuse(const char *text, enum leat_status status, const char *why)
{
	struct leat_err err = {0};
	struct leat_run run;

	assert_int_equal(leat_run_read(text, strlen(text), &run, &err), status);
	if (!strstr(err.text, why))
		fail_msg("expected '%s' in '%s'", why, err.text);
	assert_null(run.run);
}

#define DATA(id, json) "<!doctype html><script type=\"application/json\" id=\"" id "\">" json "</script>"

static void
what_is_no_run_is_refused_with_a_reason(void **state)
{
	(void)state;
	refuse("", LEAT_DATA, "not JSON");
	refuse("nonsense", LEAT_DATA, "not JSON");
	refuse("[1, 2]", LEAT_DATA, "not a JSON object");
	refuse("{\"a\": 1, \"a\": 2}", LEAT_DATA, "duplicate");
	refuse("<html>", LEAT_DATA, "neither JSON of a run nor a report");
	refuse("<script type=\"application/json\" id=\"leat-run\">{}", LEAT_DATA, "neither");
	refuse(DATA("leat-run", "{"), LEAT_DATA, "the run in the report is not JSON");
	refuse(DATA("leat-compare", "{}"), LEAT_INVALID, "comparison");
	refuse(DATA("leat-run", "{}") DATA("leat-timeline", "{}"), LEAT_DATA, "not written by this version");
	refuse(DATA("leat-run", "{}")
	               DATA("leat-timeline", "{\"version\": 1, \"bins\": 99999999, \"unit_ns\": 1, \"bin_ns\": 1,"
	                                     " \"tags\": [], \"names\": [], \"lanes\": []}"),
	       LEAT_DATA, "not written by this version");
}

static void
json_that_is_no_run_writes_no_page(void **state)
{
	struct leat_err err;

	(void)state;
	assert_int_equal(leat_report_write(NULL, "{", temp_path(&temp, "none.html"), &err), LEAT_DATA);
	assert_false(temp_exists(&temp, "none.html"));
	assert_int_equal(leat_report_write(NULL, "{}", temp_path(&temp, "no/such/folder.html"), &err), LEAT_IO);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_page_gives_its_run_back),
		cmocka_unit_test(no_text_of_a_run_becomes_markup),
		cmocka_unit_test(the_page_needs_no_network),
		cmocka_unit_test(spans_of_a_recorder_reach_the_page),
		cmocka_unit_test(what_is_no_run_is_refused_with_a_reason),
		cmocka_unit_test(json_that_is_no_run_writes_no_page),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
