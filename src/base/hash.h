/* hash.h - SHA-256 for identity, CRC-32C to detect damage, a 64-bit mix for tables and keys
 *
 * All results depend only on the input. CRC-32C uses the CPU's instruction if available, with
 * three interleaved streams for long inputs, and falls back to tables. */
#ifndef LEAT_BASE_HASH_H
#define LEAT_BASE_HASH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum { LEAT_SHA256_BYTES = 32, LEAT_SHA256_HEX = 65 };

struct leat_sha256;                             /* incremental; only `new` allocates */
struct leat_sha256 *leat_sha256_new(void);      /* NULL: out of memory */
void leat_sha256_free(struct leat_sha256 *sha); /* accepts NULL */
void leat_sha256_reset(struct leat_sha256 *sha);
void leat_sha256_add(struct leat_sha256 *sha, const void *bytes, size_t len);
void leat_sha256_copy(struct leat_sha256 *to, const struct leat_sha256 *from);    /* all that was added so far */
void leat_sha256_end(struct leat_sha256 *sha, uint8_t digest[LEAT_SHA256_BYTES]); /* then reset or free */

int leat_sha256(const void *bytes, size_t len, uint8_t digest[LEAT_SHA256_BYTES]); /* 0: cannot fail */
void leat_hex(const uint8_t *bytes, size_t len, char *hex); /* 2 len + 1 characters, lower case */

uint32_t leat_crc32c(uint32_t crc, const void *bytes, size_t len); /* start with 0 */
/* leat_crc32c and leat_copy in one pass. */
uint32_t leat_crc32c_copy(uint32_t crc, void *to, const void *from, size_t len, bool past_cache);
uint32_t leat_crc32c_portable(uint32_t crc, const void *bytes, size_t len);
/* The checksum of bytes of which `len` are replaced: `was` by `now`, with `following` bytes after them. */
uint32_t leat_crc32c_replace(uint32_t crc, const void *was, const void *now, size_t len, uint64_t following);
uint32_t leat_crc32c_mask(uint32_t crc); /* TFRecord's ((c >> 15) | (c << 17)) + 0xa282ead8 */

/* A bijective 64-bit mix: splitmix64's finalizer. Inline because permutations spend their time here. */
static inline uint64_t
leat_mix64(uint64_t x)
{
	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
	x = (x ^ x >> 27) * 0x94d049bb133111ebu;
	return x ^ x >> 31;
}

uint64_t leat_hash64(const char *text); /* FNV-1a, then mixed: ids for names */

#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
#define LEAT_LITTLE32(v) __builtin_bswap32(v)
#define LEAT_LITTLE64(v) __builtin_bswap64(v)
#else
#define LEAT_LITTLE32(v) (v)
#define LEAT_LITTLE64(v) (v)
#endif

/* Little-endian loads and stores, unaligned. */
static inline uint32_t
leat_load32(const void *p)
{
	uint32_t v;

	memcpy(&v, p, sizeof(v));
	return LEAT_LITTLE32(v);
}

static inline uint64_t
leat_load64(const void *p)
{
	uint64_t v;

	memcpy(&v, p, sizeof(v));
	return LEAT_LITTLE64(v);
}

static inline void
leat_store32(void *p, uint32_t v)
{
	v = LEAT_LITTLE32(v);
	memcpy(p, &v, sizeof(v));
}

static inline void
leat_store64(void *p, uint64_t v)
{
	v = LEAT_LITTLE64(v);
	memcpy(p, &v, sizeof(v));
}

#endif
