/* digest.h - a checksum over delivered samples that does not depend on who delivered them
 *
 * Each sample is hashed with its place: SHA-256 over epoch, position and the bytes of
 * all fields (ragged ones with their shape), padding left out. The checksum is the sum
 * of these numbers modulo 2^256. So it covers the order, and yet the checksums of all
 * ranks, or of a run and its resumed rest, add up to that of the whole. */
#ifndef LEAT_CLI_DIGEST_H
#define LEAT_CLI_DIGEST_H

#include "base/hash.h"
#include "store/store.h"

struct leat_digest {
	struct leat_sha256 *sha;
	uint8_t sum[LEAT_SHA256_BYTES]; /* least significant byte first */
	struct leat_writer *list;       /* NULL, or gets a line per sample: epoch, position, hash */
};

int leat_digest_open(struct leat_digest *digest); /* -1: no memory */
void leat_digest_close(struct leat_digest *digest);
enum leat_status leat_digest_add(struct leat_digest *digest, const struct leat_feed *feed,
                                 const struct leat_batch *batch, struct leat_err *err);
void leat_digest_hex(const struct leat_digest *digest, char hex[LEAT_SHA256_HEX]); /* most significant digit first */

#endif
