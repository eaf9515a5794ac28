/* sigv4.c - see sigv4.h */
#include "store/sigv4.h"

#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/str.h"

const char leat_sigv4_no_body[LEAT_SHA256_HEX] = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

void
leat_sigv4_time(int64_t seconds, char text[LEAT_SIGV4_TIME])
{
	time_t time = (time_t)seconds;
	struct tm tm;

	if (!gmtime_r(&time, &tm) || strftime(text, LEAT_SIGV4_TIME, "%Y%m%dT%H%M%SZ", &tm) == 0)
		strcpy(text, "19700101T000000Z");
}

static bool
hmac(const void *key, size_t key_len, const char *text, size_t len, uint8_t digest[LEAT_SHA256_BYTES])
{
	return HMAC(EVP_sha256(), key, (int)key_len, (const unsigned char *)text, len, digest, NULL) != NULL;
}

/* "20130524/us-east-1/s3/aws4_request" */
static void
add_scope(struct leat_str *out, const struct leat_sigv4 *what)
{
	leat_str_addf(out, "%.8s/%s/%s/aws4_request", what->time, what->region, what->service);
}

static bool
make_key(const struct leat_sigv4 *what, struct leat_str *work, struct leat_sigv4_key *key)
{
	uint8_t scope[LEAT_SHA256_BYTES], *k = key->key;
	bool made;

	work->len = 0;
	add_scope(work, what);
	leat_str_addf(work, "/AWS4%s", what->secret);
	if (work->failed || leat_sha256(work->text, work->len, scope) != 0)
		return false;
	if (memcmp(scope, key->scope, sizeof(scope)) == 0)
		return true;
	work->len = 0;
	leat_str_addf(work, "AWS4%s", what->secret);
	made = hmac(work->text, work->len, what->time, 8, k) && hmac(k, 32, what->region, strlen(what->region), k) &&
	       hmac(k, 32, what->service, strlen(what->service), k) && hmac(k, 32, "aws4_request", 12, k);
	memcpy(key->scope, scope, sizeof(scope));
	if (!made)
		explicit_bzero(key, sizeof(*key));
	return made;
}

/* "host;range;x-amz-date" */
static void
add_names(struct leat_str *out, const char *fields)
{
	for (const char *at = fields; *at;) {
		size_t name = strcspn(at, ":");

		leat_str_add(out, at == fields ? "" : ";");
		leat_str_addn(out, at, name);
		at += strcspn(at, "\n");
		at += *at == '\n';
	}
}

static bool
hash_request(const struct leat_sigv4 *what, struct leat_str *work, char hex[LEAT_SHA256_HEX])
{
	uint8_t digest[LEAT_SHA256_BYTES];

	work->len = 0;
	leat_str_addf(work, "%s\n", what->method);
	leat_str_add(work, what->path);
	leat_str_add(work, "\n");
	leat_str_add(work, what->query);
	leat_str_add(work, "\n");
	leat_str_add(work, what->fields);
	leat_str_add(work, "\n");
	add_names(work, what->fields);
	leat_str_addf(work, "\n%s", what->body);
	if (work->failed || leat_sha256(work->text, work->len, digest) != 0)
		return false;
	leat_hex(digest, sizeof(digest), hex);
	return true;
}

bool
leat_sigv4_add(struct leat_str *out, const struct leat_sigv4 *what, struct leat_sigv4_key *key)
{
	uint8_t digest[LEAT_SHA256_BYTES];
	char request[LEAT_SHA256_HEX], signature[LEAT_SHA256_HEX];
	struct leat_str work;
	bool made;

	leat_str_init(&work, out->mem, 64 * 1024);
	work.secret = true;
	made = make_key(what, &work, key) && hash_request(what, &work, request);
	work.len = 0;
	leat_str_addf(&work, "AWS4-HMAC-SHA256\n%s\n", what->time);
	add_scope(&work, what);
	leat_str_addf(&work, "\n%s", request);
	made = made && !work.failed && hmac(key->key, sizeof(key->key), work.text, work.len, digest);
	leat_str_free(&work);
	if (!made)
		return false;
	leat_hex(digest, sizeof(digest), signature);
	leat_str_addf(out, "AWS4-HMAC-SHA256 Credential=%s/", what->key_id);
	add_scope(out, what);
	leat_str_add(out, ", SignedHeaders=");
	add_names(out, what->fields);
	leat_str_addf(out, ", Signature=%s", signature);
	return !out->failed;
}
