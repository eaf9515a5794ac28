/* test_url.c - URLs are taken apart and put together as servers expect */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/mem.h"
#include "base/str.h"
#include "store/url.h"

static struct leat_mem mem;

static void
is_taken_apart(const char *text, bool tls, const char *host, unsigned port, const char *target)
{
	struct leat_url url;
	struct leat_str out;

	assert_null(leat_url_parse(text, &url));
	assert_int_equal(url.tls, tls);
	assert_string_equal(url.host, host);
	assert_int_equal(url.port, port);
	leat_mem_init(&mem, SIZE_MAX);
	leat_str_init(&out, &mem, 4096);
	leat_url_add_target(&out, &url);
	assert_string_equal(out.text, target);
	leat_str_free(&out);
}

static void
a_url_has_a_host_a_port_and_a_target(void **state)
{
	(void)state;
	is_taken_apart("http://host", false, "host", 80, "/");
	is_taken_apart("HTTPS://Host.Example/", true, "host.example", 443, "/");
	is_taken_apart("http://127.0.0.1:8080/a//b?x=/y#part", false, "127.0.0.1", 8080, "/a//b?x=/y");
	is_taken_apart("https://[::1]:1/x", true, "::1", 1, "/x");
	is_taken_apart("http://[fe80::1]", false, "fe80::1", 80, "/");
	is_taken_apart("http://h?q", false, "h", 80, "/?q");
	is_taken_apart("http://h:/x", false, "h", 80, "/x");
}

static void
what_must_not_be_in_a_request_is_encoded(void **state)
{
	(void)state;
	is_taken_apart("http://h/a b\r\nX: y", false, "h", 80, "/a%20b%0D%0AX:%20y");
	is_taken_apart("http://h/\xc3\xa9<>\"{}|\\^`", false, "h", 80, "/%C3%A9%3C%3E%22%7B%7D%7C%5C%5E%60");
	is_taken_apart("http://h/%2B%zz+*()=", false, "h", 80, "/%2B%zz+*()=");
}

static void
what_is_no_url_is_refused_with_a_reason(void **state)
{
	static const char *const texts[] = {
		"",
		"h/x",
		"ftp://h/",
		"http://",
		"http:///x",
		"http://u@h/",
		"http://a b",
		"http://h:x/",
		"http://h:0",
		"http://h:65536",
		"http://h:123456789",
		"http://[::1",
		"http://[]/",
		"http://[::1]x/",
		"http://h\r\n/",
		"http://\xc3\xa9/",
	};
	char longest[600] = "http://";
	struct leat_url url;

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++)
		if (!leat_url_parse(texts[i], &url))
			fail_msg("'%s' is taken for a URL", texts[i]);
	memset(longest + 7, 'h', 256);
	assert_string_equal(leat_url_parse(longest, &url), "the host is too long");
}

static void
joins(const char *base, const char *location, const char *expected)
{
	struct leat_str out;

	leat_mem_init(&mem, SIZE_MAX);
	leat_str_init(&out, &mem, 4096);
	leat_url_join(&out, base, location);
	assert_string_equal(out.text, expected);
	leat_str_free(&out);
}

static void
a_location_is_relative_to_what_was_asked(void **state)
{
	(void)state;
	joins("http://h/a/b?q", "https://other/x", "https://other/x");
	joins("https://h/a/b?q", "//other/x", "https://other/x");
	joins("http://h:1/a/b?q", "/x?y", "http://h:1/x?y");
	joins("http://h/a/b?q/r", "x", "http://h/a/x");
	joins("http://h/a/b?q", "?z", "http://h/a/b?z");
	joins("http://h", "x", "http://h/x");
	joins("http://h", "?x", "http://h/?x");
}

static void
encoding_and_decoding_are_inverse(void **state)
{
	char all[257];
	struct leat_str out;

	(void)state;
	for (int i = 0; i < 256; i++)
		all[i] = (char)i;
	leat_mem_init(&mem, SIZE_MAX);
	leat_str_init(&out, &mem, 4096);
	leat_url_encode(&out, all, 256, false);
	assert_non_null(strstr(out.text, "%2B%2C-.%2F0123"));
	assert_int_equal(leat_url_decode(out.text, out.len), 256);
	assert_memory_equal(out.text, all, 256);
	leat_str_free(&out);
	leat_str_init(&out, &mem, 4096);
	leat_url_encode(&out, "a/b//c~d", 8, true);
	assert_string_equal(out.text, "a/b//c~d");
	leat_str_free(&out);
	strcpy(all, "%4%%41%2");
	assert_int_equal(leat_url_decode(all, 8), 6);
	assert_memory_equal(all, "%4%A%2", 6);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_url_has_a_host_a_port_and_a_target),
		cmocka_unit_test(what_must_not_be_in_a_request_is_encoded),
		cmocka_unit_test(what_is_no_url_is_refused_with_a_reason),
		cmocka_unit_test(a_location_is_relative_to_what_was_asked),
		cmocka_unit_test(encoding_and_decoding_are_inverse),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
