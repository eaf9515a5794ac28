/* test_s3_list.c - lists and errors as S3 servers send them */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "store/s3_list.h"

#define HEAD                                                                                                           \
	"<?xml version=\"1.0\" encoding=\"UTF-8\"?><ListBucketResult "                                                 \
	"xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">"

static char seen[4096];

static enum leat_status
note(void *arg, const struct leat_s3_entry *entry, struct leat_err *err)
{
	size_t used = strlen(seen);

	(void)arg;
	(void)err;
	snprintf(seen + used, sizeof(seen) - used, "%s%s %llu %s %lld|", entry->is_prefix ? "/" : "", entry->key,
	         (unsigned long long)entry->size, entry->etag, (long long)entry->modified);
	return LEAT_OK;
}

static enum leat_status
parse(const char *text, const char **next)
{
	static char copy[4096];
	struct leat_err err;

	seen[0] = '\0';
	leat_err_clear(&err);
	strcpy(copy, text);
	return leat_s3_list_parse(copy, strlen(copy), note, NULL, next, &err);
}

static void
a_page_has_keys_prefixes_and_a_token(void **state)
{
	const char *next;

	(void)state;
	assert_int_equal(
		parse(HEAD "<Name>b</Name><Prefix></Prefix><Marker/><IsTruncated>true</IsTruncated>"
	                   "<NextContinuationToken> a&amp;b </NextContinuationToken><EncodingType>url</EncodingType>\n"
	                   "<Contents><Key>x%2F%C3%A9+%2B&apos;</Key>"
	                   "<LastModified>1970-01-02T00:00:00.123Z</LastModified>"
	                   "<ETag>&quot;0f-2&quot;</ETag><Size>12</Size>"
	                   "<Owner><ID>1</ID><DisplayName/></Owner></Contents>"
	                   "<CommonPrefixes><Prefix>in%2F</Prefix></CommonPrefixes></ListBucketResult>",
	              &next),
		LEAT_OK);
	assert_string_equal(seen, "x/\xc3\xa9 +' 12 \"0f-2\" 86400|/in/ 0  0|");
	assert_string_equal(next, " a&b ");
}

static void
keys_are_decoded_only_if_the_answer_says_so(void **state)
{
	const char *next;

	(void)state;
	assert_int_equal(parse(HEAD
	                       "<IsTruncated>false</IsTruncated><NextContinuationToken>x</NextContinuationToken>"
	                       "<Contents><Size>0</Size><Key>a%2Fb+&#x41;&#233;</Key></Contents></ListBucketResult>",
	                       &next),
	                 LEAT_OK);
	assert_string_equal(seen, "a%2Fb+A\xc3\xa9 0  0|");
	assert_null(next);
	assert_int_equal(parse("<ListBucketResult/>", &next), LEAT_OK);
	assert_string_equal(seen, "");
}

static void
what_makes_no_sense_is_refused(void **state)
{
	static const char *const texts[] = {
		"",
		"<",
		"<html></html>",
		HEAD,
		HEAD "<Contents>",
		HEAD "<Contents></Contents></ListBucketResult>",
		HEAD "<Contents/></ListBucketResult>",
		HEAD "<Contents><Key>a</Key><Key>b</Key></Contents></ListBucketResult>",
		HEAD "<Contents><Key>a<b/></Key></Contents></ListBucketResult>",
		HEAD "<Contents><Key>&bomb;</Key></Contents></ListBucketResult>",
		HEAD "<Contents><Key>a&#0;</Key></Contents></ListBucketResult>",
		HEAD "<Contents><Key>a&#x110000;</Key></Contents></ListBucketResult>",
		HEAD "<Contents><Key>a</Key><Size>-1</Size></Contents></ListBucketResult>",
		HEAD "<Contents><Key>a</Key><Size>99999999999999999999</Size></Contents></ListBucketResult>",
		HEAD "<EncodingType>url</EncodingType><Contents><Key>a%00b</Key></Contents></ListBucketResult>",
		HEAD "<IsTruncated>true</IsTruncated></ListBucketResult>",
		"<!DOCTYPE x [<!ENTITY a \"b\">]>" HEAD "</ListBucketResult>",
		HEAD "<!-- --></ListBucketResult>",
		HEAD "<></ListBucketResult>",
	};
	const char *next;

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++)
		if (parse(texts[i], &next) != LEAT_IO)
			fail_msg("%s", texts[i]);
}

static void
errors_have_a_code_and_a_message(void **state)
{
	static const char text[] =
		"<?xml version=\"1.0\"?><Error><Code>NoSuchKey</Code><Message>It is\ngone</Message></Error>";
	char code[32], message[32];

	(void)state;
	leat_s3_error_parse(text, strlen(text), code, sizeof(code), message, sizeof(message));
	assert_string_equal(code, "NoSuchKey");
	assert_string_equal(message, "It is\\ngone");
	leat_s3_error_parse("<Code>x", 7, code, sizeof(code), message, sizeof(message));
	assert_string_equal(code, "");
	leat_s3_error_parse("", 0, code, sizeof(code), message, sizeof(message));
	assert_string_equal(message, "");
}

static bool
upload(const char *text, char id[16])
{
	return leat_s3_upload_parse(text, strlen(text), id, 16);
}

static void
an_upload_has_a_plain_id(void **state)
{
	char id[16];

	(void)state;
	assert_true(upload(
		"<?xml?>\n<InitiateMultipartUploadResult xmlns=\"x\"><Key>k</Key><UploadId>2~a.b_-c</UploadId>", id));
	assert_string_equal(id, "2~a.b_-c");
	assert_false(upload("<InitiateMultipartUploadResult><UploadId></UploadId>", id));
	assert_false(upload("<InitiateMultipartUploadResult><UploadId>x", id));
	assert_false(upload("<InitiateMultipartUploadResult><UploadId>a&amp;b</UploadId>", id));
	assert_false(upload("<InitiateMultipartUploadResult><UploadId>a\nb</UploadId>", id));
	assert_false(upload("<InitiateMultipartUploadResult><UploadId>longer than the buffer</UploadId>", id));
	assert_false(upload("<html><UploadId>x</UploadId>", id));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_page_has_keys_prefixes_and_a_token),
		cmocka_unit_test(keys_are_decoded_only_if_the_answer_says_so),
		cmocka_unit_test(what_makes_no_sense_is_refused),
		cmocka_unit_test(errors_have_a_code_and_a_message),
		cmocka_unit_test(an_upload_has_a_plain_id),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
