/* digest.h - checksum of delivered samples, independent of how they were delivered
 *
 * Each sample is hashed with its position: SHA-256 over epoch, position and the bytes of all fields (ragged ones
 * with their shape), ignoring padding. The checksum is the sum of these hashes modulo 2^256. It thus covers the
 * order, and the checksums of all ranks, or of a run and its resumed part, add up to the checksum of the whole. */
#ifndef LEAT_CLI_DIGEST_H
#define LEAT_CLI_DIGEST_H

#include "base/hash.h"
#include "store/store.h"

struct leat_digest {
	struct leat_sha256 *sha;
	uint8_t sum[LEAT_SHA256_BYTES]; /* least significant byte first */
	struct leat_writer *list;       /* optional: gets one line per sample: epoch, position, hash */
};

int leat_digest_open(struct leat_digest *digest); /* -1: no memory */
void leat_digest_close(struct leat_digest *digest);
enum leat_status leat_digest_add(struct leat_digest *digest, const struct leat_feed *feed,
                                 const struct leat_batch *batch, struct leat_err *err);
void leat_digest_hex(const struct leat_digest *digest, char hex[LEAT_SHA256_HEX]); /* most significant digit first */

#endif
