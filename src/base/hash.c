/* hash.c - SHA-256 by OpenSSL, 64-bit mixing, and little-endian numbers (crc32c.c has the CRC)
 *
 * A leat_sha256 belongs to one thread; the rest is without state. */
#include "base/hash.h"

#include <openssl/evp.h>
#include <string.h>

/* A leat_sha256 is OpenSSL's context under another name. */
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

/* With the digest chosen by _new, none of the three below allocates or can fail. */
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
