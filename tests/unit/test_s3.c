/* test_s3.c - the store s3: against a server that checks each signature, and against hostile ones */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <arpa/inet.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/hash.h"
#include "store/store.h"
#include "support/temp.h"
#include "support/web.h"

#define SECRET "sEcReT/KEY+1"
#define TOKEN "a/session+token=that-is-hushed"
#define URI "s3://bucket/a key+=*()//\xc3\xa9"
#define TARGET "/bucket/a%20key%2B%3D%2A%28%29//%C3%A9"

static struct temp temp;
static struct leat_mem mem;
static struct leat_stores stores;
static struct leat_storage storage;
static struct leat_err err;

/* What the server does, and what it has seen. Its threads run while the test waits. */
static struct {
	const char *_Atomic region; /* that it wants; NULL: any */
	const char *_Atomic target; /* of the object */
	const char *_Atomic list;   /* body of lists */
	const char *_Atomic fault;  /* for all requests: status and fields, with their line ends */
	_Atomic int64_t ahead;      /* of its clock, in seconds */
	atomic_int bad, expired, asked_credentials, lists;
	atomic_bool unsigned_ok, rotates, echoes, endless;
} server;

/* ---- an independent check of signatures ---- */

/* The value of a field, in `value`; false: there is none. */
static bool
field(const char *request, const char *name, char *value, size_t cap)
{
	size_t len = strlen(name);

	for (const char *at = strstr(request, "\r\n"); at && at[2] != '\r'; at = strstr(at + 2, "\r\n")) {
		if (strncasecmp(at + 2, name, len) != 0 || at[2 + len] != ':')
			continue;
		at += 2 + len + 1;
		at += strspn(at, " ");
		snprintf(value, cap, "%.*s", (int)strcspn(at, "\r"), at);
		return true;
	}
	return false;
}

static void
hmac(const void *key, int key_len, const char *text, unsigned char out[32])
{
	HMAC(EVP_sha256(), key, key_len, (const unsigned char *)text, strlen(text), out, NULL);
}

/* The request as it is signed: method, path, query, fields, their names, the hash of the body. */
static void
make_canonical(const char *request, const char *names, char *out, size_t cap)
{
	char method[16], target[4096], value[4096], name[64];
	char *query;
	size_t used;

	assert_int_equal(sscanf(request, "%15s %4095s", method, target), 2);
	query = strchr(target, '?');
	if (query)
		*query++ = '\0';
	used = (size_t)snprintf(out, cap, "%s\n%s\n%s\n", method, target, query ? query : "");
	for (const char *at = names; *at;) {
		size_t len = strcspn(at, ";");

		snprintf(name, sizeof(name), "%.*s", (int)len, at);
		assert_true(field(request, name, value, sizeof(value)));
		used += (size_t)snprintf(out + used, cap - used, "%s:%s\n", name, value);
		at += len + (at[len] == ';');
	}
	assert_true(field(request, "x-amz-content-sha256", value, sizeof(value)));
	snprintf(out + used, cap - used, "\n%s\n%s", names, value);
}

/* True: the signature is right. `region`: that it was made for. */
static bool
is_signed(const char *request, char region[64], char names[512])
{
	char line[1024], date[16], given[80], time[32], canonical[16384], text[1024], hex[LEAT_SHA256_HEX];
	unsigned char digest[32], key[32];

	if (!field(request, "authorization", line, sizeof(line)) || !field(request, "x-amz-date", time, sizeof(time)) ||
	    sscanf(line,
	           "AWS4-HMAC-SHA256 Credential=ID/%15[^/]/%63[^/]/s3/aws4_request, SignedHeaders=%511[^,], "
	           "Signature=%79s",
	           date, region, names, given) != 4)
		return false;
	make_canonical(request, names, canonical, sizeof(canonical));
	leat_sha256(canonical, strlen(canonical), digest);
	leat_hex(digest, sizeof(digest), hex);
	snprintf(text, sizeof(text), "AWS4-HMAC-SHA256\n%s\n%s/%s/s3/aws4_request\n%s", time, date, region, hex);
	hmac("AWS4" SECRET, (int)strlen("AWS4" SECRET), date, key);
	hmac(key, 32, region, key);
	hmac(key, 32, "s3", key);
	hmac(key, 32, "aws4_request", key);
	hmac(key, 32, text, digest);
	leat_hex(digest, sizeof(digest), hex);
	return strcmp(hex, given) == 0 && strncmp(time, date, 8) == 0;
}

/* ---- the server ---- */

static bool
reply(int fd, const char *status, const char *fields, const char *body, bool head)
{
	char text[4096], date[64];
	time_t now = time(NULL) + (time_t)server.ahead;
	struct tm tm;

	strftime(date, sizeof(date), "%a, %d %b %Y %H:%M:%S GMT", gmtime_r(&now, &tm));
	snprintf(text, sizeof(text), "HTTP/1.1 %s\r\nDate: %s\r\n%sContent-Length: %zu\r\n\r\n", status, date, fields,
	         strlen(body));
	return web_say(fd, text, strlen(text)) && (head || web_say(fd, body, strlen(body)));
}

static bool
refuse(int fd, bool head, const char *code)
{
	char body[512];

	snprintf(body, sizeof(body), "<Error><Code>%s</Code><Message>you sent %s</Message></Error>", code,
	         server.echoes ? TOKEN : "something");
	return reply(fd, "403 Forbidden", "", body, head);
}

static bool
send_credentials(int fd)
{
	char body[1024];
	int n = atomic_fetch_add(&server.asked_credentials, 1);

	snprintf(body, sizeof(body),
	         "{\"AccessKeyId\": \"ID\", \"SecretAccessKey\": \"" SECRET "\", \"Token\": \"%s-%d\", "
	         "\"Expiration\": \"2199-01-01T00:00:00Z\"}",
	         TOKEN, n);
	return reply(fd, "200 OK", "", body, false);
}

static bool
is_skewed(const char *request)
{
	char text[32] = "";
	struct tm tm = {0};
	int64_t off;

	if (!field(request, "x-amz-date", text, sizeof(text)) || !strptime(text, "%Y%m%dT%H%M%SZ", &tm))
		return true;
	off = (int64_t)timegm(&tm) - (int64_t)time(NULL) - server.ahead;
	return off > 900 || off < -900;
}

/* False: it was refused, and *stays is set. */
static bool
allows(int fd, const char *request, bool head, bool *stays)
{
	char region[64] = "", names[512] = "", token[256] = "", fields[128];

	if (server.unsigned_ok && !strcasestr(request, "\r\nauthorization:"))
		return true;
	field(request, "x-amz-security-token", token, sizeof(token));
	if (!is_signed(request, region, names)) {
		atomic_fetch_add(&server.bad, 1);
		*stays = refuse(fd, head, "SignatureDoesNotMatch");
	} else if (is_skewed(request)) {
		*stays = refuse(fd, head, "RequestTimeTooSkewed");
	} else if (server.rotates && strstr(token, "-0")) {
		atomic_fetch_add(&server.expired, 1);
		*stays = refuse(fd, head, "ExpiredToken");
	} else if (server.region && strcmp(region, server.region) != 0) {
		snprintf(fields, sizeof(fields), "x-amz-bucket-region: %s\r\nLocation: http://127.0.0.1:1/\r\n",
		         server.region);
		*stays = reply(fd, "301 Moved Permanently", fields, "", head);
	} else {
		return true;
	}
	return false;
}

static bool
answer_list(int fd, const char *request)
{
	char text[1024];
	int n = atomic_fetch_add(&server.lists, 1);

	(void)request;
	if (server.list)
		return reply(fd, "200 OK", "", server.list, false);
	/* The same token again, or a body that does not end. */
	snprintf(text, sizeof(text),
	         "<ListBucketResult><IsTruncated>true</IsTruncated><NextContinuationToken>next</NextContinuationToken>"
	         "<Contents><Key>f/%d</Key><Size>1</Size></Contents></ListBucketResult>",
	         n);
	if (!server.endless)
		return reply(fd, "200 OK", "", text, false);
	web_say(fd, "HTTP/1.1 200 OK\r\n\r\n<ListBucketResult>", 36);
	while (web_say(fd, "<Contents><Key>f/x</Key></Contents>", 35))
		;
	return false;
}

static bool
answer(int fd, const char *request)
{
	bool head = strncmp(request, "HEAD ", 5) == 0, stays = true;
	const char *target = strchr(request, ' ') + 1;
	size_t len = strlen(server.target);

	if (strncmp(target, "/creds ", 7) == 0)
		return send_credentials(fd);
	if (server.fault) {
		bool sent = web_say(fd, "HTTP/1.1 ", 9) && web_say(fd, server.fault, strlen(server.fault));

		return sent && web_say(fd, "Content-Length: 0\r\n\r\n", 21);
	}
	if (!allows(fd, request, head, &stays))
		return stays;
	if (strstr(request, "list-type=2"))
		return answer_list(fd, request);
	if (strncmp(target, server.target, len) != 0 || target[len] != ' ')
		return reply(fd, "404 Not Found", "", "<Error><Code>NoSuchKey</Code></Error>", head);
	if (head)
		return reply(fd, "200 OK", "ETag: \"e\"\r\n", "0123456789", true);
	return reply(fd, "206 Partial Content", "ETag: \"e\"\r\nContent-Range: bytes 0-9/10\r\n", "0123456789", false);
}

/* ---- the client ---- */

static int
begin(void **state)
{
	(void)state;
	temp_make(&temp);
	web_start();
	memset(&server, 0, sizeof(server));
	server.target = TARGET;
	web_set_answer(answer);
	setenv("HOME", temp.folder, 1);
	setenv("AWS_ENDPOINT_URL", web_address(), 1);
	setenv("AWS_ACCESS_KEY_ID", "ID", 1);
	setenv("AWS_SECRET_ACCESS_KEY", SECRET, 1);
	setenv("LEAT_NET_PATIENCE", "100", 1);
	unsetenv("AWS_SESSION_TOKEN");
	leat_mem_init(&mem, SIZE_MAX);
	leat_stores_init(&stores, &mem);
	leat_storage_init(&storage);
	leat_err_clear(&err);
	stores.storage = &storage;
	return leat_storage_put(&storage, "hedge", "false", NULL, &mem, NULL) != LEAT_OK;
}

static int
end(void **state)
{
	(void)state;
	leat_stores_close(&stores);
	web_stop();
	temp_remove(&temp);
	assert_int_equal(mem.used, 0);
	return 0;
}

static void
set(const char *name, const char *value)
{
	if (leat_storage_put(&storage, name, value, NULL, &mem, &err) != LEAT_OK)
		fail_msg("%s", err.text);
}

static enum leat_status
look(struct leat_object *object)
{
	struct leat_store *store;
	char *uri;
	enum leat_status status;

	leat_err_clear(&err);
	status = leat_stores_find(&stores, URI, &store, &uri, &err);
	if (status != LEAT_OK)
		return status;
	leat_free(&mem, uri);
	return store->kind->look(store, URI, object, &err);
}

static void
must_read(void)
{
	struct leat_object object;
	char bytes[10];
	struct iovec iov = {bytes, sizeof(bytes)};
	size_t got;

	if (look(&object) != LEAT_OK || leat_object_read(&object, 0, &iov, 1, 0, &got, &err) != LEAT_OK)
		fail_msg("%s", err.text);
	assert_int_equal(object.size, 10);
	assert_memory_equal(bytes, "0123456789", 10);
}

static void
must_fail(const char *says)
{
	struct leat_object object;

	if (look(&object) == LEAT_OK)
		fail_msg("it is read, not refused with '%s'", says);
	if (!strstr(err.text, says))
		fail_msg("'%s' does not say '%s'", err.text, says);
	assert_null(strstr(err.text, "hushed"));
	assert_null(strstr(err.text, SECRET));
}

/* ---- signatures ---- */

static void
each_request_is_signed(void **state)
{
	(void)state;
	must_read();
	assert_int_equal(web_counts().requests, 2);
	assert_int_equal(server.bad, 0);
	setenv("AWS_SECRET_ACCESS_KEY", "wrong", 1);
	leat_stores_close(&stores);
	leat_stores_init(&stores, &mem);
	stores.storage = &storage;
	must_fail("403 SignatureDoesNotMatch: you sent something");
	assert_int_equal(server.bad, 2); /* HEAD, whose answer says nothing, and GET */
}

static void
a_session_token_and_who_pays_are_signed(void **state)
{
	char region[64], names[512];

	(void)state;
	setenv("AWS_SESSION_TOKEN", TOKEN, 1);
	set("requester_pays", "true");
	must_read();
	assert_true(is_signed(web_last(), region, names));
	assert_string_equal(names, "host;x-amz-content-sha256;x-amz-date;x-amz-request-payer;x-amz-security-token");
	assert_non_null(strstr(web_last(), "\r\nx-amz-request-payer: requester\r\n"));
}

static void
without_signing_nothing_is_sent_but_the_request(void **state)
{
	(void)state;
	server.unsigned_ok = true;
	set("anonymous", "true");
	must_read();
	assert_null(strcasestr(web_last(), "\r\nauthorization:"));
}

static void
the_bucket_may_be_in_the_host(void **state)
{
	char endpoint[64], host[128];

	(void)state;
	snprintf(endpoint, sizeof(endpoint), "http://localhost%s", strrchr(web_address(), ':'));
	snprintf(host, sizeof(host), "\r\nhost: bucket.localhost%s\r\n", strrchr(web_address(), ':'));
	server.target = strstr(TARGET, "/a%20key");
	set("endpoint", endpoint);
	set("style", "virtual");
	must_read();
	assert_non_null(strstr(web_last(), host));
	assert_int_equal(server.bad, 0);
}

/* The first request is for the wrong region; the second is signed for the right one, as are all others. */
static void
the_region_of_a_bucket_is_learned(void **state)
{
	(void)state;
	server.region = "eu-west-9";
	must_read();
	must_read();
	assert_int_equal(server.bad, 0);
	assert_int_equal(web_counts().requests, 1 + 4);
}

static void
regions_that_are_none_are_not_believed(void **state)
{
	static const char *const regions[] = {"evil.example/", "x:1@evil", "UPPER", ""};

	(void)state;
	for (size_t i = 0; i < sizeof(regions) / sizeof(*regions); i++) {
		server.region = regions[i];
		must_fail("the server sends us to another place (301)");
	}
}

static void
a_clock_that_is_wrong_is_noticed(void **state)
{
	(void)state;
	server.ahead = 3600;
	must_read();
	must_read();
	assert_int_equal(server.bad, 0);
	assert_int_equal(web_counts().requests, 1 + 4);
}

/* ---- secrets ---- */

/* Both the address where nobody must come, and what it would have got. */
static void
redirects_to_other_hosts_are_not_followed(void **state)
{
	static const char *const statuses[] = {"301 Moved", "302 Found", "307 Temporary Redirect",
	                                       "308 Permanent Redirect"};
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int other = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	socklen_t len = sizeof(address);
	static char fault[sizeof(statuses) / sizeof(*statuses)][256]; /* the server may still send the last one */

	(void)state;
	assert_true(other >= 0 && bind(other, (struct sockaddr *)&address, len) == 0 && listen(other, 8) == 0);
	assert_int_equal(getsockname(other, (struct sockaddr *)&address, &len), 0);
	setenv("AWS_SESSION_TOKEN", TOKEN, 1);
	for (size_t i = 0; i < sizeof(statuses) / sizeof(*statuses); i++) {
		snprintf(fault[i], sizeof(fault[i]), "%s\r\nLocation: http://127.0.0.1:%d/x\r\n", statuses[i],
		         ntohs(address.sin_port));
		server.fault = fault[i];
		must_fail("the server sends us to another place");
	}
	assert_int_equal(accept(other, NULL, NULL), -1); /* nobody came */
	close(other);
}

static void
tokens_that_a_server_quotes_are_not_in_errors(void **state)
{
	(void)state;
	setenv("AWS_SESSION_TOKEN", TOKEN, 1);
	setenv("AWS_SECRET_ACCESS_KEY", "wrong", 1);
	server.echoes = true;
	must_fail("the server does not allow it (403)");
}

/* From the service of a container, which has new ones whenever it is asked. */
static void
what_has_expired_is_replaced(void **state)
{
	char uri[128];

	(void)state;
	unsetenv("AWS_ACCESS_KEY_ID");
	unsetenv("AWS_SECRET_ACCESS_KEY");
	snprintf(uri, sizeof(uri), "%s/creds", web_address());
	setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", uri, 1);
	server.rotates = true;
	must_read();
	must_read();
	unsetenv("AWS_CONTAINER_CREDENTIALS_FULL_URI");
	assert_int_equal(server.asked_credentials, 2);
	assert_int_equal(server.expired, 2); /* HEAD, whose answer says nothing, and GET */
	assert_int_equal(server.bad, 0);
}

/* ---- lists ---- */

static enum leat_status
ignore(void *arg, const struct leat_entry *entry, struct leat_err *ignored)
{
	(void)arg;
	(void)entry;
	(void)ignored;
	return LEAT_OK;
}

static enum leat_status
list_folder(void)
{
	struct leat_folder_id id;
	struct leat_store *store;
	char *uri;
	enum leat_status status;

	leat_err_clear(&err);
	assert_int_equal(leat_stores_find(&stores, "s3://bucket/folder", &store, &uri, &err), LEAT_OK);
	status = store->kind->list_folder(store, uri, ignore, NULL, &id, &err);
	leat_free(&mem, uri);
	return status;
}

#define LAUGHS                                                                                                         \
	"<?xml version=\"1.0\"?><!DOCTYPE l [<!ENTITY a \"ha\"><!ENTITY b \"&a;&a;&a;&a;\"><!ENTITY c "                \
	"\"&b;&b;&b;&b;\">]>"
#define LIST(inside) "<ListBucketResult>" inside "</ListBucketResult>"

static void
lists_that_make_no_sense_are_errors(void **state)
{
	static const char *const lists[][2] = {
		{"", "makes no sense"},
		{"hello", "makes no sense"},
		{"<html><body>Welcome to the hotel's wifi</body></html>", "makes no sense"},
		{"<ListBucketResult><Contents><Key>folder/x</Key>", "makes no sense"},
		{LAUGHS LIST("<Contents><Key>&c;</Key><Size>1</Size></Contents>"), "makes no sense"},
		{LIST("<Contents><Key>folder/&c;</Key><Size>1</Size></Contents>"), "makes no sense"},
		{LIST("<Contents><Key>folder/x</Key><Size>-1</Size></Contents>"), "makes no sense"},
		{LIST("<Contents><Key>folder/x</Key><Size>99999999999999999999</Size></Contents>"), "makes no sense"},
		{LIST("<IsTruncated>true</IsTruncated>"), "makes no sense"},
		{LIST("<Contents><Key>f</Key><Size>1</Size></Contents>"), "has other keys"},
		{LIST("<Contents><Key></Key><Size>1</Size></Contents>"), "has other keys"},
		{LIST("<CommonPrefixes><Prefix>other/</Prefix></CommonPrefixes>"), "has other keys"},
		{LIST(""), "there is no such folder"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(lists) / sizeof(*lists); i++) {
		server.list = lists[i][0];
		assert_int_equal(list_folder(), LEAT_IO);
		if (!strstr(err.text, lists[i][1]))
			fail_msg("'%s': '%s' does not say '%s'", lists[i][0], err.text, lists[i][1]);
	}
	assert_in_range(mem.peak, 1, 1 << 20);
}

static void
lists_without_end_are_errors(void **state)
{
	(void)state;
	server.list = LIST("<IsTruncated>true</IsTruncated><NextContinuationToken>t</NextContinuationToken>"
	                   "<Contents><Key>folder/x</Key><Size>1</Size></Contents>");
	assert_int_equal(list_folder(), LEAT_IO);
	assert_non_null(strstr(err.text, "does not end"));
	assert_int_equal(server.lists, 2);
	server.list = NULL;
	server.endless = true;
	assert_int_equal(list_folder(), LEAT_IO);
	assert_non_null(strstr(err.text, "the answer of the server is too long"));
	assert_in_range(mem.peak, 1, 48 << 20);
}

#define WITH_SERVER(test) cmocka_unit_test_setup_teardown(test, begin, end)

int
main(void)
{
	static const char *const variables[] = {
		"AWS_PROFILE",         "AWS_CONFIG_FILE",    "AWS_SHARED_CREDENTIALS_FILE",
		"AWS_REGION",          "AWS_DEFAULT_REGION", "AWS_ENDPOINT_URL_S3",
		"AWS_NO_SIGN_REQUEST", "AWS_REQUEST_PAYER",  "http_proxy",
		"all_proxy",           "ALL_PROXY",          "AWS_CONTAINER_CREDENTIALS_FULL_URI",
	};
	const struct CMUnitTest tests[] = {
		WITH_SERVER(each_request_is_signed),
		WITH_SERVER(a_session_token_and_who_pays_are_signed),
		WITH_SERVER(without_signing_nothing_is_sent_but_the_request),
		WITH_SERVER(the_bucket_may_be_in_the_host),
		WITH_SERVER(the_region_of_a_bucket_is_learned),
		WITH_SERVER(regions_that_are_none_are_not_believed),
		WITH_SERVER(a_clock_that_is_wrong_is_noticed),
		WITH_SERVER(redirects_to_other_hosts_are_not_followed),
		WITH_SERVER(tokens_that_a_server_quotes_are_not_in_errors),
		WITH_SERVER(what_has_expired_is_replaced),
		WITH_SERVER(lists_that_make_no_sense_are_errors),
		WITH_SERVER(lists_without_end_are_errors),
	};

	for (size_t i = 0; i < sizeof(variables) / sizeof(*variables); i++)
		unsetenv(variables[i]);
	setenv("AWS_EC2_METADATA_DISABLED", "true", 1);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
