/* digest.c - see digest.h */
#include "cli/digest.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

int
leat_digest_open(struct leat_digest *digest)
{
	memset(digest, 0, sizeof *digest);
	digest->sha = leat_sha256_new();
	return digest->sha ? 0 : -1;
}

void
leat_digest_close(struct leat_digest *digest)
{
	leat_sha256_free(digest->sha);
	digest->sha = NULL;
}

static void
add_number(struct leat_sha256 *sha, uint64_t n)
{
	uint8_t bytes[8];

	leat_store64(bytes, n);
	leat_sha256_add(sha, bytes, sizeof bytes);
}

static void
add_field(struct leat_sha256 *sha, const struct leat_field *field, const struct leat_tensor *tensor, int64_t i)
{
	size_t element = leat_dtype_size(tensor->dtype);
	size_t at, bytes;

	if (tensor->offsets) {
		at = (size_t)tensor->offsets[i] * element;
		bytes = (size_t)(tensor->offsets[i + 1] - tensor->offsets[i]) * element;
		add_number(sha, bytes);
		for (int d = 0; tensor->sample_shapes && d < field->ndim; d++)
			add_number(sha, (uint64_t)tensor->sample_shapes[i * field->ndim + d]);
	} else {
		bytes = tensor->shape[0] > 0 ? tensor->bytes / (size_t)tensor->shape[0] : 0;
		at = (size_t)i * bytes;
	}
	leat_sha256_add(sha, (const uint8_t *)tensor->data + at, bytes);
}

static void
add_to_sum(uint8_t sum[LEAT_SHA256_BYTES], const uint8_t n[LEAT_SHA256_BYTES])
{
	unsigned carry = 0;

	for (int i = 0; i < LEAT_SHA256_BYTES; i++) {
		carry += (unsigned)sum[i] + n[i];
		sum[i] = (uint8_t)carry;
		carry >>= 8;
	}
}

static enum leat_status
add_to_list(struct leat_writer *list, const struct leat_batch *batch, int64_t i, const uint8_t hash[LEAT_SHA256_BYTES],
            struct leat_err *err)
{
	char hex[LEAT_SHA256_HEX], line[LEAT_SHA256_HEX + 64];
	int len;

	leat_hex(hash, LEAT_SHA256_BYTES, hex);
	len = snprintf(line, sizeof line, "%" PRIu64 " %" PRIu64 " %s\n", leat_batch_epoch(batch),
	               leat_batch_position(batch, i), hex);
	return leat_write(list, line, (size_t)len, err);
}

enum leat_status
leat_digest_add(struct leat_digest *digest, const struct leat_feed *feed, const struct leat_batch *batch,
                struct leat_err *err)
{
	struct leat_tensor tensor[LEAT_MAX_FIELDS];
	int fields = leat_field_count(feed);
	enum leat_status status = LEAT_OK;

	for (int f = 0; f < fields && status == LEAT_OK; f++)
		status = leat_batch_field(batch, leat_field_at(feed, f)->name, &tensor[f], err);
	for (int64_t i = 0; i < leat_batch_count(batch) && status == LEAT_OK; i++) {
		uint8_t hash[LEAT_SHA256_BYTES];

		if (!leat_batch_valid(batch)[i])
			continue;
		leat_sha256_reset(digest->sha);
		add_number(digest->sha, leat_batch_epoch(batch));
		add_number(digest->sha, leat_batch_position(batch, i));
		for (int f = 0; f < fields; f++)
			add_field(digest->sha, leat_field_at(feed, f), &tensor[f], i);
		leat_sha256_end(digest->sha, hash);
		add_to_sum(digest->sum, hash);
		if (digest->list)
			status = add_to_list(digest->list, batch, i, hash, err);
	}
	return status;
}

void
leat_digest_hex(const struct leat_digest *digest, char hex[LEAT_SHA256_HEX])
{
	uint8_t reversed[LEAT_SHA256_BYTES];

	for (int i = 0; i < LEAT_SHA256_BYTES; i++)
		reversed[i] = digest->sum[LEAT_SHA256_BYTES - 1 - i];
	leat_hex(reversed, sizeof reversed, hex);
}
