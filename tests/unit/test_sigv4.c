/* test_sigv4.c - signatures are those of the examples in Amazon's documentation */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "base/mem.h"
#include "base/str.h"
#include "store/sigv4.h"

#define HOST "host:examplebucket.s3.amazonaws.com\n"
#define BODY "x-amz-content-sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855\n"
#define DATE "x-amz-date:20130524T000000Z\n"

static const struct {
	const char *path, *query, *fields, *names, *signature;
} examples[] = {
	{"/test.txt", "", HOST "range:bytes=0-9\n" BODY DATE, "host;range;x-amz-content-sha256;x-amz-date",
         "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41"},
	{"/", "lifecycle=", HOST BODY DATE, "host;x-amz-content-sha256;x-amz-date",
         "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543"},
	{"/", "max-keys=2&prefix=J", HOST BODY DATE, "host;x-amz-content-sha256;x-amz-date",
         "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7"},
};

static void
signatures_are_those_of_the_examples(void **state)
{
	struct leat_sigv4_key key = {0};
	struct leat_mem mem;

	(void)state;
	leat_mem_init(&mem, SIZE_MAX);
	for (size_t i = 0; i < 2 * sizeof(examples) / sizeof(*examples); i++) {
		size_t k = i % (sizeof(examples) / sizeof(*examples)); /* the second time with a known key */
		struct leat_sigv4 what = {
			.method = "GET",
			.path = examples[k].path,
			.query = examples[k].query,
			.fields = examples[k].fields,
			.body = leat_sigv4_no_body,
			.time = "20130524T000000Z",
			.region = "us-east-1",
			.service = "s3",
			.key_id = "AKIAIOSFODNN7EXAMPLE",
			.secret = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
		};
		struct leat_str out;
		char expected[512];

		leat_str_init(&out, &mem, 4096);
		assert_true(leat_sigv4_add(&out, &what, &key));
		snprintf(expected, sizeof(expected),
		         "AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request, "
		         "SignedHeaders=%s, Signature=%s",
		         examples[k].names, examples[k].signature);
		assert_string_equal(out.text, expected);
		leat_str_free(&out);
		what.secret = "another"; /* is not signed with the key of the first */
		leat_str_init(&out, &mem, 4096);
		assert_true(leat_sigv4_add(&out, &what, &key));
		assert_null(strstr(out.text, examples[k].signature));
		leat_str_free(&out);
	}
	assert_int_equal(mem.used, 0);
}

static void
times_are_in_utc(void **state)
{
	char text[LEAT_SIGV4_TIME];

	(void)state;
	leat_sigv4_time(1369353600, text);
	assert_string_equal(text, "20130524T000000Z");
}

static void
every_failing_allocation_is_survived(void **state)
{
	struct leat_sigv4_key key = {0};
	struct leat_mem mem;
	bool made = false;

	(void)state;
	for (long n = 0; !made; n++) {
		struct leat_sigv4 what = {"GET", "/",  "",  HOST, leat_sigv4_no_body, "20130524T000000Z",
		                          "r",   "s3", "k", "s"};
		struct leat_str out;

		assert_in_range(n, 0, 100);
		leat_mem_init(&mem, SIZE_MAX);
		leat_str_init(&out, &mem, 4096);
		atomic_store(&mem.fail_after, n);
		made = leat_sigv4_add(&out, &what, &key);
		leat_str_free(&out);
		assert_int_equal(mem.used, 0);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(signatures_are_those_of_the_examples),
		cmocka_unit_test(times_are_in_utc),
		cmocka_unit_test(every_failing_allocation_is_survived),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
