/* disk_key.c - see disk_key.h */
#include "store/disk_key.h"

#include <strings.h>

#include "base/hash.h"

enum { LARGE_OBJECT = 8 << 20 };

/* Parameters that come with `mark` and belong to a signature. A name that ends in - is a prefix. */
static const struct scheme {
	const char *mark;
	const char *names[24];
} schemes[] = {
	{"X-Amz-Signature", {"X-Amz-"}},
	{"X-Goog-Signature", {"X-Goog-"}},
	{"Signature", {"Signature", "Expires", "AWSAccessKeyId", "GoogleAccessId", "Key-Pair-Id", "Policy"}},
	{"sig", {"sig", "sv",  "se",  "st",  "sp",    "spr",   "sr",    "sip",   "ss",   "srt",
                 "sks", "skt", "ske", "skv", "skoid", "sktid", "saoid", "suoid", "scid", "sdd"}},
};

static size_t
parameter_length(const char *text)
{
	return strcspn(text, "&#");
}

static bool
is_named(const char *parameter, const char *name)
{
	size_t len = strlen(name);

	if (name[len - 1] == '-')
		return strncasecmp(parameter, name, len) == 0;
	return strncasecmp(parameter, name, len) == 0 && parameter[len] == '=';
}

static bool
has_parameter(const char *query, const char *name)
{
	for (;; query++) {
		if (is_named(query, name))
			return true;
		query += parameter_length(query);
		if (*query != '&')
			return false;
	}
}

static bool
is_signature(const char *query, const char *parameter)
{
	for (size_t i = 0; i < sizeof(schemes) / sizeof(*schemes); i++) {
		if (!has_parameter(query, schemes[i].mark))
			continue;
		for (const char *const *name = schemes[i].names; *name; name++)
			if (is_named(parameter, *name))
				return true;
	}
	return false;
}

size_t
leat_disk_plain_uri(const char *uri, char out[LEAT_URI])
{
	const char *query = strncmp(uri, "http", 4) == 0 ? strchr(uri, '?') : NULL, *at;
	size_t used = query ? (size_t)(query - uri) : strlen(uri);
	char between = '?';

	if (used >= LEAT_URI)
		used = LEAT_URI - 1;
	memcpy(out, uri, used);
	for (at = query ? query + 1 : ""; *at && *at != '#'; at += *at == '&') {
		size_t len = parameter_length(at);

		if (!is_signature(query + 1, at) && used + len + 2 < LEAT_URI) {
			out[used++] = between;
			memcpy(out + used, at, len);
			used += len;
			between = '&';
		}
		at += len;
	}
	out[used] = '\0';
	return used;
}

/* 0: it has none. */
static uint64_t
version_of(const struct leat_object *object)
{
	struct leat_object unknown = {.size = object->size, .version = {.len = 1 + sizeof(int64_t), .bytes = {'M'}}};
	uint64_t token = object->version.len ? leat_object_token(object) : object->token;

	return token == leat_object_token(&unknown) ? 0 : token;
}

static void
hash(const char *place, const char *text, size_t len, uint64_t size, uint64_t version, struct leat_disk_key *key)
{
	char bytes[LEAT_URI + 1024];
	uint8_t digest[LEAT_SHA256_BYTES];
	size_t used = strlen(place);

	used = used < 900 ? used : 900;
	memcpy(bytes, place, used);
	bytes[used++] = '\0';
	memcpy(bytes + used, text, len);
	used += len;
	bytes[used++] = '\0';
	memcpy(bytes + used, &size, sizeof(size));
	memcpy(bytes + used + sizeof(size), &version, sizeof(version));
	leat_sha256(bytes, used + sizeof(size) + sizeof(version), digest);
	memcpy(key->word, digest, sizeof(key->word));
}

bool
leat_disk_key(const char *place, const char *uri, const struct leat_object *object, struct leat_disk_key *key)
{
	uint64_t version = version_of(object);
	char plain[LEAT_URI];

	if (version)
		hash(place, plain, leat_disk_plain_uri(uri, plain), object->size, version, key);
	return version != 0;
}

uint64_t
leat_disk_proof(const char *place, const char *uri, uint64_t size)
{
	struct leat_disk_key key;
	char plain[LEAT_URI];
	size_t len = leat_disk_plain_uri(uri, plain);

	if (size < LARGE_OBJECT) {
		len = strcspn(plain, "?");
		while (len && plain[len - 1] != '/')
			len--;
	}
	hash(place, plain, len, 0, 0, &key);
	return key.word[0] | 1;
}
