/* test_json_line.c - the members of an object, as jansson reads them, and numbers as they are written */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <jansson.h>

#include "base/mem.h"
#include "base/rng.h"
#include "table/json_line.h"

static struct leat_mem mem;
static struct leat_json_line line;

/* "name=kind:text;" of each member, or why there are none. The text has nothing after it. */
static const char *
read_text(const char *text, size_t len)
{
	static char got[4096];
	char *exact = malloc(len ? len : 1);
	const char *why;
	size_t used = 0;

	assert_non_null(exact);
	memcpy(exact, text, len);
	assert_int_equal(leat_json_line_read(&line, exact, len, &why, NULL), LEAT_OK);
	got[0] = '\0';
	for (size_t i = 0; !why && i < line.members; i++)
		used += (size_t)snprintf(got + used, sizeof(got) - used, "%.*s=%c:%.*s;", (int)line.member[i].name_len,
		                         line.member[i].name, "zbntj"[line.member[i].kind], (int)line.member[i].len,
		                         line.member[i].text);
	free(exact);
	return why ? why : got;
}

#define IS(text, expected) assert_string_equal(read_text(text, strlen(text)), expected)

static void
members_are_read(void **state)
{
	(void)state;
	IS("{}", "");
	IS(" { } ", "");
	IS("{\"a\":1,\"b\":\"x\",\"c\":null,\"d\":true,\"e\":[1,{\"f\":\"]\"}]}",
	   "a=n:1;b=t:x;c=z:null;d=b:true;e=j:[1,{\"f\":\"]\"}];");
	IS("{ \"a\" : -12345678901234567890.5e+10 }", "a=n:-12345678901234567890.5e+10;");
	IS("{\"a\":\"\\\"\\\\\\/\\b\\f\\n\\r\\t\\u00e4\\ud83d\\ude00\"}",
	   "a=t:\"\\/\b\f\n\r\t\xc3\xa4\xf0\x9f\x98\x80;");
	IS("{\"\":\"\",\"\\u0061\":0}", "=t:;a=n:0;");
}

static void
everything_else_is_refused(void **state)
{
	static const char *const bad[] = {"{\"a\":}",
	                                  "{\"a\"}",
	                                  "{a:1}",
	                                  "{\"a\":1,}",
	                                  "{\"a\":1 \"b\":2}",
	                                  "{\"a\":01}",
	                                  "{\"a\":+1}",
	                                  "{\"a\":1.}",
	                                  "{\"a\":.5}",
	                                  "{\"a\":1e}",
	                                  "{\"a\":NaN}",
	                                  "{\"a\":'x'}",
	                                  "{\"a\":tru}",
	                                  "{\"a\":\"x}",
	                                  "{\"a\":\"\\x\"}",
	                                  "{\"a\":\"\\u12\"}",
	                                  "{\"a\":\"\t\"}",
	                                  "{\"a\":[1,]}",
	                                  "{\"a\":[1}",
	                                  "{\"a\":{1:2}}",
	                                  "{\"a\":1",
	                                  "{",
	                                  "{\"a\":-}",
	                                  "{\"a\":{\"b\" 1}}"};

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		IS(bad[i], "no JSON");
	IS("", "no JSON object");
	IS("[1]", "no JSON object");
	IS("7", "no JSON object");
	IS("{} {}", "more than one JSON object");
	IS("{\"a\":1} x", "more than one JSON object");
	IS("{\"a\":\"\\ud83d\"}", "half a character");
	IS("{\"a\":\"\\ud83d\\u0061\"}", "half a character");
	IS("{\"a\":\"\\ude00\"}", "half a character");
	IS("{\"a\":\"\\u0000\"}", "a NUL byte");
}

static void
depth_is_limited(void **state)
{
	char text[300] = "{\"a\":";

	(void)state;
	memset(text + 5, '[', 100);
	memset(text + 105, ']', 100);
	strcpy(text + 205, "}");
	IS(text, "nested too deeply");
	memset(text + 5, ' ', 50);
	memset(text + 155, ' ', 50);
	assert_string_not_equal(read_text(text, strlen(text)), "nested too deeply");
}

/* Random objects, damaged at random: jansson has to agree. */
static void
jansson_agrees(void **state)
{
	static const char *const parts[] = {"{", "}",           "\"a\"",    "\"b\"", ":",  ",",
	                                    "1", "-2.5",        "true",     "null",  "[",  "]",
	                                    " ", "\"\\u00e4\"", "\"x\\n\"", "0",     "\"", "\\"};
	unsigned accepted = 0;
	struct leat_rng rng;

	(void)state;
	leat_rng_init(&rng, 1, 0, 0, 0);
	for (int i = 0; i < 200000; i++) {
		char text[200] = "{\"k\":";
		size_t n = leat_rng_below(&rng, 7);
		const char *why;
		json_t *json;

		for (size_t k = 0; k < n; k++)
			strcat(text, parts[leat_rng_below(&rng, 18)]);
		strcat(text, leat_rng_below(&rng, 8) ? "}" : "");
		json = json_loads(text, 0, NULL);
		assert_int_equal(leat_json_line_read(&line, text, strlen(text), &why, NULL), LEAT_OK);
		if ((json && json_is_object(json)) != !why)
			fail_msg("%s: %s", text, why ? why : "accepted");
		accepted += !why;
		for (size_t k = 0; !why && k < line.members; k++) {
			const json_t *value;
			char name[64];

			snprintf(name, sizeof(name), "%.*s", (int)line.member[k].name_len, line.member[k].name);
			value = json_object_get(json, name);
			assert_non_null(value);
			if (line.members == 1 && line.member[k].kind == LEAT_JSON_TEXT) {
				assert_int_equal(line.member[k].len, json_string_length(value));
				assert_memory_equal(line.member[k].text, json_string_value(value), line.member[k].len);
			}
		}
		json_decref(json);
	}
	assert_true(accepted > 1000);
}

static int
teardown(void **state)
{
	(void)state;
	leat_json_line_free(&line);
	assert_int_equal(mem.used, 0);
	return 0;
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(members_are_read),
		cmocka_unit_test(everything_else_is_refused),
		cmocka_unit_test(depth_is_limited),
		cmocka_unit_test(jansson_agrees),
	};

	leat_mem_init(&mem, SIZE_MAX);
	line.mem = &mem;
	return cmocka_run_group_tests(tests, NULL, teardown);
}
