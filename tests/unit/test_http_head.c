/* test_http_head.c - heads and chunks of HTTP responses, in pieces of any length */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "store/http_head.h"

static struct leat_http_head head;

/* In pieces of `step` bytes; *taken counts what belongs to the head. */
static enum leat_parsed
take(const char *text, size_t step, size_t *taken)
{
	enum leat_parsed parsed = LEAT_PARSED_MORE;
	size_t len = strlen(text);

	*taken = 0;
	leat_http_head_init(&head, "x-amz-bucket-region");
	while (*taken < len && parsed == LEAT_PARSED_MORE) {
		size_t piece = len - *taken < step ? len - *taken : step, used;

		parsed = leat_http_head_take(&head, text + *taken, piece, &used);
		*taken += used;
	}
	return parsed;
}

static void
a_head_says_the_same_in_any_pieces(void **state)
{
	static const char text[] = "HTTP/1.1 100 Continue\r\n\r\n"
				   "HTTP/1.1 206 Partial Content\r\nDate: Sun, 06 Nov 1994 08:49:37 GMT\r\n"
				   "content-LENGTH:  100 \r\nContent-Range: bytes 5-104/1000\r\nETag: \"a-b\"\r\n"
				   "Last-Modified: Thu, 01 Jan 1970 00:00:01 GMT\nX-Amz-Bucket-Region: eu-west-1\r\n"
				   "Location: /x\r\nRetry-After: 7\r\nServer: any\r\n\r\n";
	size_t taken;
	char more[600];

	(void)state;
	snprintf(more, sizeof(more), "%sbody\r\n\r\n", text);
	for (size_t step = 1; step < sizeof(text) + 5; step++) {
		assert_int_equal(take(more, step, &taken), LEAT_PARSED_END);
		assert_int_equal(taken, strlen(text));
		assert_int_equal(head.status, 206);
		assert_true(head.keep_alive && head.has_length && head.has_range && !head.chunked && !head.encoded);
		assert_int_equal(head.length, 100);
		assert_int_equal(head.first, 5);
		assert_int_equal(head.last, 104);
		assert_int_equal(head.total, 1000);
		assert_int_equal(head.date, 784111777);
		assert_int_equal(head.modified, 1);
		assert_int_equal(head.retry_after, 7);
		assert_string_equal(head.etag, "\"a-b\"");
		assert_string_equal(head.extra, "eu-west-1");
		assert_string_equal(head.location, "/x");
	}
}

static void
connections_are_kept_unless_the_server_says_otherwise(void **state)
{
	size_t taken;

	(void)state;
	take("HTTP/1.1 200 OK\r\n\r\n", 99, &taken);
	assert_true(head.keep_alive);
	take("HTTP/1.1 200 OK\r\nConnection: Close\r\n\r\n", 99, &taken);
	assert_false(head.keep_alive);
	take("HTTP/1.0 200\r\n\r\n", 99, &taken);
	assert_false(head.keep_alive);
	take("HTTP/1.0 200\r\nConnection: keep-alive\r\n\r\n", 99, &taken);
	assert_true(head.keep_alive);
}

static void
what_makes_no_sense_is_refused(void **state)
{
	static const char *const texts[] = {
		"SSH-2.0-x\r\n\r\n",
		"HTTP/2 200\r\n\r\n",
		"HTTP/1.1 2000\r\n\r\n",
		"HTTP/1.1 2x0\r\n\r\n",
		"HTTP/1.1 000\r\n\r\n",
		"HTTP/1.1 101 Switching\r\n\r\n",
		"HTTP/1.1 200 OK\r\nno field\r\n\r\n",
		"HTTP/1.1 200 OK\r\n: none\r\n\r\n",
		"HTTP/1.1 200 OK\r\nA: b\r\n folded\r\n\r\n",
		"HTTP/1.1 200 OK\r\nA: b\rc\r\n\r\n",
		"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
		"HTTP/1.1 200 OK\r\nContent-Length: 1, 1\r\n\r\n",
		"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
		"HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\n",
		"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n",
		"HTTP/1.1 206 OK\r\nContent-Range: bytes 5-4/10\r\n\r\n",
		"HTTP/1.1 206 OK\r\nContent-Range: bytes 5-10/10\r\n\r\n",
		"HTTP/1.1 206 OK\r\nContent-Range: bytes */*\r\n\r\n",
		"HTTP/1.1 206 OK\r\nContent-Range: 0-1/2\r\n\r\n",
	};
	size_t taken;

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
		if (take(texts[i], 7, &taken) != LEAT_PARSED_BAD)
			fail_msg("%s", texts[i]);
		assert_non_null(head.fault);
	}
}

static void
long_fields_are_skipped_and_long_heads_refused(void **state)
{
	static char text[LEAT_HEAD_BYTES + 100];
	size_t taken;

	(void)state;
	strcpy(text, "HTTP/1.1 200 OK\r\nX: ");
	memset(text + strlen(text), 'x', 20000);
	strcat(text, "\r\nContent-Length: 3\r\n\r\n");
	assert_int_equal(take(text, 1000, &taken), LEAT_PARSED_END);
	assert_int_equal(head.length, 3);
	memcpy(strstr(text, "X: "), "E: ", 3);
	memcpy(strstr(text, "E: xxxxxxxx"), "Location: x", 11);
	assert_int_equal(take(text, 1000, &taken), LEAT_PARSED_BAD);
	memset(text, 0, sizeof(text));
	strcpy(text, "HTTP/1.1 200 OK\r\nX: ");
	memset(text + strlen(text), 'x', LEAT_HEAD_BYTES);
	assert_int_equal(take(text, 1000, &taken), LEAT_PARSED_BAD);
	assert_string_equal(head.fault, "its head is longer than 64 KiB");
}

/* The body in chunks, or NULL; in pieces of `step` bytes. */
static const char *
unchunk(const char *text, size_t step)
{
	static char out[256];
	enum leat_parsed parsed = LEAT_PARSED_MORE;
	size_t len = strlen(text), used = 0;
	struct leat_chunks chunks;

	leat_chunks_init(&chunks);
	for (size_t at = 0; at < len && parsed == LEAT_PARSED_MORE;) {
		size_t taken, body;

		parsed = leat_chunks_take(&chunks, text + at, len - at < step ? len - at : step, &taken, &body);
		assert_true(used + body < sizeof(out));
		memcpy(out + used, text + at + taken, body);
		used += body;
		at += taken + body;
	}
	out[used] = '\0';
	return parsed == LEAT_PARSED_END ? out : NULL;
}

static void
chunks_are_put_together(void **state)
{
	(void)state;
	for (size_t step = 1; step < 60; step++) {
		assert_string_equal(unchunk("3\r\nabc\r\n0A; x=\"y\"\r\n0123456789\r\n0\r\nT: 1\r\n\r\n", step),
		                    "abc0123456789");
		assert_string_equal(unchunk("0\r\n\r\n", step), "");
		assert_null(unchunk("\r\n", step));
		assert_null(unchunk("x\r\n", step));
		assert_null(unchunk("3\r\nabcd\r\n", step));
		assert_null(unchunk("1234567890123456\r\n", step));
		assert_null(unchunk("3\r\nabc\r\n", step)); /* not over */
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_head_says_the_same_in_any_pieces),
		cmocka_unit_test(connections_are_kept_unless_the_server_says_otherwise),
		cmocka_unit_test(what_makes_no_sense_is_refused),
		cmocka_unit_test(long_fields_are_skipped_and_long_heads_refused),
		cmocka_unit_test(chunks_are_put_together),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
