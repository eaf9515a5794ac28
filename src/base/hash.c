/* hash.c - SHA-256 by way of OpenSSL, and hashes of names (the CRC is in crc32c.c)
 *
 * A leat_sha256 belongs to one thread; everything else is stateless. */
#define OPENSSL_SUPPRESS_DEPRECATED
#include "base/hash.h"

#include <openssl/sha.h>
#include <stdlib.h>
#include <string.h>

/* The plain functions, although OpenSSL 3 calls them deprecated: those that replace them allocate when a digest begins,
 * and crash or give a wrong digest if that fails. */
struct leat_sha256 {
	SHA256_CTX ctx;
};

struct leat_sha256 *
leat_sha256_new(void)
{
	struct leat_sha256 *sha = malloc(sizeof(*sha));

	if (sha)
		leat_sha256_reset(sha);
	return sha;
}

void
leat_sha256_free(struct leat_sha256 *sha)
{
	free(sha);
}

void
leat_sha256_reset(struct leat_sha256 *sha)
{
	SHA256_Init(&sha->ctx);
}

void
leat_sha256_add(struct leat_sha256 *sha, const void *bytes, size_t len)
{
	SHA256_Update(&sha->ctx, bytes, len);
}

void
leat_sha256_copy(struct leat_sha256 *to, const struct leat_sha256 *from)
{
	*to = *from;
}

void
leat_sha256_end(struct leat_sha256 *sha, uint8_t digest[LEAT_SHA256_BYTES])
{
	SHA256_Final(digest, &sha->ctx);
}

int
leat_sha256(const void *bytes, size_t len, uint8_t digest[LEAT_SHA256_BYTES])
{
	struct leat_sha256 sha;

	leat_sha256_reset(&sha);
	leat_sha256_add(&sha, bytes, len);
	leat_sha256_end(&sha, digest);
	return 0;
}

void
leat_hex(const uint8_t *bytes, size_t len, char *hex)
{
	static const char digits[] = "0123456789abcdef";

	for (size_t i = 0; i < len; i++) {
		*hex++ = digits[bytes[i] >> 4];
		*hex++ = digits[bytes[i] & 15];
	}
	*hex = '\0';
}

uint64_t
leat_hash64(const char *text)
{
	uint64_t hash = 0xcbf29ce484222325u;

	for (; *text != '\0'; text++)
		hash = (hash ^ (unsigned char)*text) * 0x100000001b3u;
	return leat_mix64(hash);
}
