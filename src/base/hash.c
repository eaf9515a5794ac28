/* hash.c - SHA-256 by way of OpenSSL, and hashes of names (the CRC is in crc32c.c)
 *
 * A leat_sha256 belongs to one thread; everything else is stateless. */
#include "base/hash.h"

#include <openssl/evp.h>
#include <string.h>

/* A leat_sha256 is an EVP_MD_CTX under a different name. */
static EVP_MD_CTX *
context(struct leat_sha256 *sha)
{
	return (EVP_MD_CTX *)sha;
}

struct leat_sha256 *
leat_sha256_new(void)
{
	EVP_MD_CTX *ctx = EVP_MD_CTX_new();

	if (ctx != NULL && EVP_DigestInit_ex(ctx, EVP_sha256(), NULL) != 1) {
		EVP_MD_CTX_free(ctx);
		ctx = NULL;
	}
	return (struct leat_sha256 *)ctx;
}

void
leat_sha256_free(struct leat_sha256 *sha)
{
	EVP_MD_CTX_free(context(sha));
}

/* leat_sha256_new sets the digest, so the next three functions neither allocate nor fail. */
void
leat_sha256_reset(struct leat_sha256 *sha)
{
	EVP_DigestInit_ex(context(sha), NULL, NULL);
}

void
leat_sha256_add(struct leat_sha256 *sha, const void *bytes, size_t len)
{
	EVP_DigestUpdate(context(sha), bytes, len);
}

void
leat_sha256_end(struct leat_sha256 *sha, uint8_t digest[LEAT_SHA256_BYTES])
{
	EVP_DigestFinal_ex(context(sha), digest, NULL);
}

int
leat_sha256(const void *bytes, size_t len, uint8_t digest[LEAT_SHA256_BYTES])
{
	return EVP_Digest(bytes, len, digest, NULL, EVP_sha256(), NULL) == 1 ? 0 : -1;
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
