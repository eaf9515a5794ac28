/* contents.c - hash all bytes of a feed's data
 *
 * A file is divided into parts of 16 MiB, and the result is the SHA-256 of the parts' SHA-256s, in order. So large
 * files are hashed by many threads, and small ones too. Names and sizes are not included: the quick fingerprint has
 * them. Parts are taken in rounds, which bounds the memory for their hashes.
 *
 * Reads name the version that the source opened, so a file that changes meanwhile is an error. */
#include "feed/contents.h"

#include <stdlib.h>

#include "base/threads.h"

enum { PART = 16 << 20, CHUNK = 256 << 10, ROUND = 1024 };

struct part {
	size_t file;
	uint64_t offset, end;
	uint8_t digest[LEAT_SHA256_BYTES];
};

struct hashing {
	struct leat_feed *feed;
	bool was_cancelled;
	size_t file; /* where the next round begins */
	uint64_t offset;
	size_t parts;
	struct part part[ROUND];
};

static bool
is_cancelled(struct hashing *h)
{
	bool cancelled;

	pthread_mutex_lock(&h->feed->lock);
	cancelled = h->feed->cancelled && !h->was_cancelled;
	pthread_mutex_unlock(&h->feed->lock);
	return cancelled;
}

static enum leat_status
hash_bytes(struct hashing *h, struct part *part, struct leat_sha256 *sha, void *chunk, struct leat_err *err)
{
	struct leat_object entry;
	const struct leat_object *object = leat_source_object(&h->feed->pipeline.source, part->file, &entry);

	for (uint64_t at = part->offset; at < part->end; at += CHUNK) {
		struct iovec iov = {chunk, part->end - at < CHUNK ? (size_t)(part->end - at) : CHUNK};
		enum leat_status status;
		size_t got;

		if (is_cancelled(h))
			return leat_fail(err, LEAT_CANCELLED, "the feed was cancelled");
		status = leat_object_read(object, at, &iov, 1, 0, &got, err);
		if (status != LEAT_OK)
			return status;
		leat_sha256_add(sha, chunk, iov.iov_len);
	}
	leat_sha256_end(sha, part->digest);
	return LEAT_OK;
}

static enum leat_status
hash_part(void *arg, size_t i, struct leat_err *err)
{
	struct leat_sha256 *sha = leat_sha256_new();
	void *chunk = malloc(CHUNK);
	enum leat_status status;

	if (sha && chunk)
		status = hash_bytes(arg, &((struct hashing *)arg)->part[i], sha, chunk, err);
	else
		status = leat_fail(err, LEAT_NOMEM, "no memory for the fingerprint of the data");
	free(chunk);
	leat_sha256_free(sha);
	return status;
}

/* Collects the parts of the next round. */
static void
next_round(struct hashing *h)
{
	const struct leat_source *source = &h->feed->pipeline.source;

	h->parts = 0;
	while (h->parts < ROUND && h->file < source->file_count) {
		struct leat_object entry;
		const struct leat_object *object = leat_source_object(source, h->file, &entry);
		uint64_t size = object ? object->size : 0, end = size - h->offset < PART ? size : h->offset + PART;

		h->part[h->parts++] = (struct part){.file = h->file, .offset = h->offset, .end = end};
		h->offset = end;
		if (end == size) {
			h->file++;
			h->offset = 0;
		}
	}
}

static enum leat_status
hash_all(struct hashing *h, struct leat_sha256 *sha, struct leat_err *err)
{
	struct leat_mem mem;
	enum leat_status status = LEAT_OK;

	leat_mem_init(&mem, SIZE_MAX);
	while (status == LEAT_OK && (next_round(h), h->parts > 0)) {
		status = leat_parallel(&mem, h->feed->options.threads, h->parts, hash_part, h, err);
		for (size_t i = 0; i < h->parts && status == LEAT_OK; i++)
			leat_sha256_add(sha, h->part[i].digest, LEAT_SHA256_BYTES);
	}
	return status;
}

enum leat_status
leat_contents(const struct leat_feed *feed, char hex[LEAT_SHA256_HEX], struct leat_err *err)
{
	struct leat_sha256 *sha;
	uint8_t digest[LEAT_SHA256_BYTES];
	struct hashing *h;
	enum leat_status status;

	if (*hex)
		return LEAT_OK;
	sha = leat_sha256_new();
	h = calloc(1, sizeof *h);
	if (sha && h) {
		h->feed = (struct leat_feed *)feed; /* for its lock */
		pthread_mutex_lock(&h->feed->lock);
		h->was_cancelled = feed->cancelled;
		pthread_mutex_unlock(&h->feed->lock);
		status = hash_all(h, sha, err);
	} else {
		status = leat_fail(err, LEAT_NOMEM, "no memory for the fingerprint of the data");
	}
	if (status == LEAT_OK) {
		leat_sha256_end(sha, digest);
		leat_hex(digest, sizeof digest, hex);
	}
	free(h);
	leat_sha256_free(sha);
	return status;
}
