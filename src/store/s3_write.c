/* s3_write.c - write objects to S3
 *
 * Bytes are collected in memory. An object that fits into one part is sent when it is committed, with one PUT. A larger
 * one is a multipart upload: each part is sent as soon as it is full, up to LEAT_S3_FLIGHT at a time, while the caller
 * fills the next one. The first part stays until `finish`, because its beginning may be patched. Nobody sees anything
 * before the last request, which makes all of the object visible at once.
 *
 * An upload has its final name from the start. An object that gets its name at the end (LEAT_BEGIN_UNNAMED) is
 * uploaded as `.NAME.<pid>-<time>.leattmp`, which patterns do not match; commit has the server copy it, and removes it.
 *
 * `finish` frees all memory, so that thousands of finished objects can wait for their commit: small ones
 * are uploaded too, unless the store keeps less than KEPT_BYTES of them.
 *
 * The server compares what it gets: with the SHA-256 that is signed, or with TLS, where the signature leaves the body
 * out, with Content-MD5. An answer may get lost after the server has done what it was asked. That matters for the last
 * request only: if the upload is not there any more, the object must be.
 *
 * Threads: a writer belongs to one thread. Parts end on threads of the wire; the lock guards part[].over. */
#include "store/s3_write.h"

#include <openssl/evp.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "base/array.h"
#include "base/clock.h"
#include "store/s3_list.h"

enum {
	UPLOAD_ID = 1024,
	ANSWER = 8 * 1024,
	KEPT_BYTES = 32 * 1024 * 1024, /* finished objects of a store, in memory */
	FIRST_CAP = 64 * 1024,
	WAKE_MS = 200, /* how soon an interrupt is noticed */
};

static const uint64_t most_copied = (uint64_t)5 << 30; /* what a server copies at once */

/* ---- sizes ---- */

/* 10,000 parts make 5 TiB. All but a few objects have equal parts, which some servers want. */
static size_t
part_size(unsigned number)
{
	static const unsigned mib[] = {8, 64, 256, 1152};
	unsigned step = (number - 1) / 2000;

	return (size_t)mib[step < 3 ? step : 3] << 20;
}

static enum leat_status
fail_memory(const struct leat_s3_writer *w, size_t size, struct leat_err *err)
{
	return leat_fail_mem(err, w->base.store->mem, size, "a part of an object that is written");
}

/* Room for at least one more byte, in steps, because most objects are small. */
static bool
grow(struct leat_s3_writer *w, struct leat_s3_bytes *bytes, size_t most)
{
	size_t cap = bytes->cap ? 2 * bytes->cap : FIRST_CAP;
	unsigned char *data;

	if (cap > most || w->upload)
		cap = most;
	data = leat_realloc_raw(w->base.store->mem, bytes->data, cap);
	if (!data)
		return false;
	bytes->data = data;
	bytes->cap = cap;
	return true;
}

static void
drop(struct leat_s3_writer *w, struct leat_s3_bytes *bytes)
{
	leat_free(w->base.store->mem, bytes->data);
	*bytes = (struct leat_s3_bytes){0};
}

/* ---- asking ---- */

void
leat_s3_set_body(const struct leat_s3_writer *w, struct leat_ask *ask, const void *bytes, size_t len,
                 struct leat_s3_digest *digest)
{
	uint8_t sum[EVP_MAX_MD_SIZE];
	unsigned md5_len = 0;

	digest->md5[0] = '\0';
	if (!leat_s3_has_tls(w->base.store)) {
		leat_sha256(bytes, len, sum);
		leat_hex(sum, LEAT_SHA256_BYTES, digest->hash);
	} else {
		strcpy(digest->hash, "UNSIGNED-PAYLOAD");
		if (EVP_Digest(bytes, len, sum, &md5_len, EVP_md5(), NULL) == 1 && md5_len == LEAT_MD5_BYTES)
			EVP_EncodeBlock((unsigned char *)digest->md5, sum, LEAT_MD5_BYTES);
	}
	ask->body = bytes;
	ask->body_len = len;
	ask->body_hash = digest->hash;
	ask->body_md5 = *digest->md5 ? digest->md5 : NULL;
}

enum leat_status
leat_s3_ask(const struct leat_s3_writer *w, struct leat_remote_call *call, const struct leat_ask *ask,
            struct leat_err *err)
{
	return leat_remote_ask(leat_remote_of(w->base.store), call, ask, ANSWER, err);
}

/* ---- failures, which are final ---- */

static enum leat_status
check_failed(const struct leat_s3_writer *w, struct leat_err *err)
{
	return w->why.status == LEAT_OK ? LEAT_OK : leat_fail_as(err, &w->why);
}

static enum leat_status
has_failed(struct leat_s3_writer *w, struct leat_err *err)
{
	if (w->why.status == LEAT_OK)
		leat_fail(&w->why, LEAT_IO, "cannot write '%s'", w->uri);
	return leat_fail_as(err, &w->why);
}

/* ---- parts in flight ---- */

/* Wire's thread. */
static void
land(struct leat_remote_call *call)
{
	struct leat_s3_part *part = (struct leat_s3_part *)call;
	struct leat_s3_writer *w = part->writer;

	pthread_mutex_lock(&w->lock);
	part->over = true;
	pthread_cond_signal(&w->landed);
	pthread_mutex_unlock(&w->lock);
}

static void
note_part(struct leat_s3_writer *w, const struct leat_s3_part *part)
{
	enum leat_status status = part->call.exchange.status;

	if (w->why.status != LEAT_OK)
		return;
	if (status == LEAT_AGAIN)
		leat_fail(&w->why, LEAT_CANCELLED, "cannot write '%s': interrupted", w->uri);
	else if (status != LEAT_OK)
		w->why = part->err;
	else if (!*part->etag || strlen(part->etag) >= LEAT_S3_PART_ETAG)
		leat_fail(&w->why, LEAT_IO, "cannot write '%s': the server gave a part of it no usable ETag", w->uri);
	else
		strcpy(w->etag[part->number - 1], part->etag);
}

/* A part is over: takes its result and frees its place. One buffer is kept for the next part. */
static void
collect(struct leat_s3_writer *w, struct leat_s3_part *part)
{
	note_part(w, part);
	leat_str_free(&part->call.exchange.text);
	leat_free(w->base.store->mem, part->query);
	if (w->spare.data || w->finished)
		drop(w, &part->bytes);
	else
		w->spare = part->bytes;
	w->spare.len = 0;
	part->bytes = (struct leat_s3_bytes){0};
	part->number = 0;
}

static bool
is_interrupted(const struct leat_s3_writer *w)
{
	const struct leat_stores *stores = w->base.store->stores;

	return stores && atomic_load(&stores->interrupted);
}

/* Waits until a part is over. */
static struct leat_s3_part *
wait_for_one(struct leat_s3_writer *w)
{
	struct leat_s3_part *over = NULL;

	pthread_mutex_lock(&w->lock);
	while (!over) {
		struct timespec until;

		for (size_t i = 0; i < LEAT_S3_FLIGHT && !over; i++)
			over = w->part[i].number && w->part[i].over ? &w->part[i] : NULL;
		if (over)
			break;
		if (is_interrupted(w) && !atomic_exchange(&w->cancelled, true))
			leat_wire_cancel(leat_remote_of(w->base.store)->wire);
		clock_gettime(CLOCK_REALTIME, &until);
		until.tv_nsec += WAKE_MS * 1000000;
		until.tv_sec += until.tv_nsec / 1000000000;
		until.tv_nsec %= 1000000000;
		pthread_cond_timedwait(&w->landed, &w->lock, &until);
	}
	pthread_mutex_unlock(&w->lock);
	return over;
}

static unsigned
in_flight(const struct leat_s3_writer *w)
{
	unsigned count = 0;

	for (size_t i = 0; i < LEAT_S3_FLIGHT; i++)
		count += w->part[i].number != 0;
	return count;
}

static void
wait_until(struct leat_s3_writer *w, unsigned most)
{
	while (in_flight(w) > most)
		collect(w, wait_for_one(w));
}

/* Takes the bytes, unless it fails. */
static enum leat_status
start_part(struct leat_s3_writer *w, struct leat_s3_bytes *bytes, unsigned number)
{
	struct leat_mem *mem = w->base.store->mem;
	struct leat_ask ask = leat_s3_ask_to_write("PUT", leat_s3_upload_uri(w), NULL);
	struct leat_s3_part *part = w->part;
	enum leat_status status;

	wait_until(w, LEAT_S3_FLIGHT - 1);
	while (part->number)
		part++;
	*part = (struct leat_s3_part){.writer = w, .number = number};
	part->query = leat_asprintf(mem, "partNumber=%u&uploadId=%s", number, w->upload);
	if (!part->query) {
		part->number = 0;
		return fail_memory(w, strlen(w->upload) + 32, &w->why);
	}
	ask.query = part->query;
	leat_s3_set_body(w, &ask, bytes->data, bytes->len, &part->digest);
	part->call = (struct leat_remote_call){.exchange.cancelled = &w->cancelled, .etag = part->etag, .done = land};
	status = leat_remote_start(leat_remote_of(w->base.store), &part->call, &ask, ANSWER, &part->err);
	if (status == LEAT_OK) {
		part->bytes = *bytes;
		*bytes = (struct leat_s3_bytes){0};
		return LEAT_OK;
	}
	part->call.exchange.status = status;
	collect(w, part);
	return status;
}

/* ---- the upload ---- */

static enum leat_status
keep_upload_id(struct leat_s3_writer *w, const struct leat_str *answer, struct leat_err *err)
{
	char id[UPLOAD_ID];
	struct leat_str encoded;

	if (!leat_s3_upload_parse(leat_str_text(answer), answer->len, id, sizeof(id)))
		return leat_fail(err, LEAT_IO,
		                 "cannot write '%s': the server's answer to CreateMultipartUpload makes "
		                 "no sense",
		                 w->uri);
	leat_str_init(&encoded, w->base.store->mem, 3 * UPLOAD_ID + 1);
	leat_url_encode(&encoded, id, strlen(id), false);
	w->upload = leat_str_take(&encoded);
	leat_str_free(&encoded);
	return w->upload ? LEAT_OK : fail_memory(w, strlen(id), err);
}

static enum leat_status
create_upload(struct leat_s3_writer *w, struct leat_err *err)
{
	const struct leat_ask ask = leat_s3_ask_to_write("POST", leat_s3_upload_uri(w), "uploads=");
	struct leat_remote_call call = {0};
	enum leat_status status = leat_s3_ask(w, &call, &ask, err);

	if (status == LEAT_OK)
		status = keep_upload_id(w, &call.exchange.text, err);
	leat_str_free(&call.exchange.text);
	return status;
}

/* Counts the part that was filled; its ETag gets room. */
static enum leat_status
add_part(struct leat_s3_writer *w, struct leat_err *err)
{
	if (w->parts == LEAT_S3_PARTS)
		return leat_fail(err, LEAT_LIMIT, "cannot write '%s': it is larger than an object can be, 5 TiB",
		                 w->uri);
	return LEAT_GROW(w->base.store->mem, w->etag, w->etags, w->parts + 1, LEAT_S3_PARTS, "the parts of an object",
	                 err);
}

/* The part is full and more is coming. */
static enum leat_status
end_part(struct leat_s3_writer *w)
{
	enum leat_status status = add_part(w, &w->why);

	if (status != LEAT_OK)
		return status;
	if (++w->parts == 1) {
		status = create_upload(w, &w->why);
		w->first = w->filling;
		w->filling = (struct leat_s3_bytes){0};
	} else {
		status = start_part(w, &w->filling, w->parts);
	}
	if (!w->filling.data && w->spare.cap >= part_size(w->parts + 1)) {
		w->filling = w->spare;
		w->spare = (struct leat_s3_bytes){0};
	}
	return status;
}

/* Without memory for another part, one in flight gives its own. */
static enum leat_status
make_room(struct leat_s3_writer *w)
{
	size_t most = part_size(w->parts + 1);
	enum leat_status status = LEAT_OK;

	if (w->filling.len == most)
		status = end_part(w);
	most = part_size(w->parts + 1);
	while (status == LEAT_OK && w->filling.len == w->filling.cap && !grow(w, &w->filling, most)) {
		if (!in_flight(w))
			return fail_memory(w, most, &w->why);
		wait_until(w, in_flight(w) - 1);
		drop(w, &w->spare);
	}
	return status;
}

/* ---- appending ---- */

static enum leat_status
check_size(struct leat_s3_writer *w)
{
	if (!w->at || w->base.size <= most_copied)
		return LEAT_OK;
	return leat_fail(&w->why, LEAT_LIMIT,
	                 "cannot write '%s': a file whose name depends on how many there will be "
	                 "can have 5 GiB; make files smaller, or say how many there will be",
	                 w->uri);
}

enum leat_status
leat_s3_append(struct leat_writer *writer, const void *bytes, size_t len, struct leat_err *err)
{
	struct leat_s3_writer *w = leat_s3_writer_of(writer);
	const unsigned char *from = bytes;

	if (check_failed(w, err) != LEAT_OK || check_size(w) != LEAT_OK)
		return has_failed(w, err);
	while (len) {
		size_t room = w->filling.cap - w->filling.len, most = part_size(w->parts + 1) - w->filling.len;

		if (room > most)
			room = most;
		if (!room) {
			if (make_room(w) != LEAT_OK || w->why.status != LEAT_OK)
				return has_failed(w, err);
			continue;
		}
		if (room > len)
			room = len;
		memcpy(w->filling.data + w->filling.len, from, room);
		w->filling.len += room;
		from += room;
		len -= room;
	}
	return LEAT_OK;
}

enum leat_status
leat_s3_patch(struct leat_writer *writer, uint64_t offset, const void *bytes, size_t len, struct leat_err *err)
{
	struct leat_s3_writer *w = leat_s3_writer_of(writer);
	struct leat_s3_bytes *first = w->first.data ? &w->first : &w->filling;

	if (check_failed(w, err) != LEAT_OK)
		return has_failed(w, err);
	if (offset > first->len || len > first->len - offset)
		return leat_fail(err, LEAT_INVALID, "cannot change '%s' at offset %llu", w->uri,
		                 (unsigned long long)offset);
	memcpy(first->data + offset, bytes, len);
	return LEAT_OK;
}

/* ---- the end of appending ---- */

/* Sends what is not sent yet, and waits for all of it. */
static enum leat_status
send_rest(struct leat_s3_writer *w)
{
	enum leat_status status = add_part(w, &w->why);

	if (status == LEAT_OK && ++w->parts == 1)
		status = create_upload(w, &w->why);
	if (status == LEAT_OK)
		status = start_part(w, &w->filling, w->parts);
	if (status == LEAT_OK && w->first.data)
		status = start_part(w, &w->first, 1);
	wait_until(w, 0);
	return w->why.status;
}

/* True: it is small and stays in memory. */
static bool
keep(struct leat_s3_writer *w)
{
	atomic_size_t *kept = leat_s3_kept(w->base.store);
	unsigned char *data;

	if (w->upload)
		return false;
	if (atomic_fetch_add(kept, w->filling.len) + w->filling.len > KEPT_BYTES) {
		atomic_fetch_sub(kept, w->filling.len);
		return false;
	}
	w->kept = w->filling.len;
	data = w->filling.len ? leat_realloc_raw(w->base.store->mem, w->filling.data, w->filling.len) : NULL;
	if (data) {
		w->filling.data = data;
		w->filling.cap = w->filling.len;
	}
	return true;
}

enum leat_status
leat_s3_finish(struct leat_writer *writer, int flags, struct leat_err *err)
{
	struct leat_s3_writer *w = leat_s3_writer_of(writer);

	(void)flags;
	if (check_failed(w, err) != LEAT_OK)
		return has_failed(w, err);
	w->finished = true;
	if (!keep(w) && send_rest(w) != LEAT_OK)
		has_failed(w, err);
	drop(w, &w->spare);
	return w->why.status;
}

/* ---- begin and abort ---- */

/* "FOLDER/.NAME.<pid>-<time>.leattmp" */
static char *
hidden_uri(const char *uri, struct leat_mem *mem)
{
	const char *name = strrchr(uri, '/') + 1;

	return leat_asprintf(mem, "%.*s.%s.%ld-%llx.leattmp", (int)(name - uri), uri, name, (long)getpid(),
	                     (unsigned long long)leat_now());
}

enum leat_status
leat_s3_begin(struct leat_store *store, const char *uri, int flags, struct leat_writer **writer, struct leat_err *err)
{
	const char *key = strchr(uri + strlen("s3://"), '/');
	struct leat_s3_writer *w;

	*writer = NULL;
	if (!key || !key[1])
		return leat_fail(err, LEAT_INVALID, "cannot write '%s': name an object, as in '%s/NAME'", uri, uri);
	w = leat_alloc(store->mem, sizeof(*w));
	if (!w)
		return leat_fail_mem(err, store->mem, sizeof(*w), "a new object");
	w->base.store = store;
	leat_err_clear(&w->why);
	pthread_mutex_init(&w->lock, NULL);
	pthread_cond_init(&w->landed, NULL);
	w->uri = leat_strdup(store->mem, uri);
	if (flags & LEAT_BEGIN_UNNAMED)
		w->at = hidden_uri(uri, store->mem);
	if (w->uri && (w->at || !(flags & LEAT_BEGIN_UNNAMED))) {
		*writer = &w->base;
		return LEAT_OK;
	}
	leat_s3_abort(&w->base);
	return leat_fail_mem(err, store->mem, strlen(uri) + 64, "a new object");
}

/* Once: if that fails, the server keeps the parts until a rule of the bucket removes them. */
static void
end_upload(struct leat_s3_writer *w)
{
	struct leat_remote_call call = {.exchange.once = true};
	char *query = leat_asprintf(w->base.store->mem, "uploadId=%s", w->upload);
	struct leat_ask ask = leat_s3_ask_to_write("DELETE", leat_s3_upload_uri(w), query);

	if (query)
		(void)leat_s3_ask(w, &call, &ask, NULL);
	leat_str_free(&call.exchange.text);
	leat_free(w->base.store->mem, query);
}

void
leat_s3_abort(struct leat_writer *writer)
{
	struct leat_s3_writer *w = leat_s3_writer_of(writer);
	struct leat_mem *mem = writer->store->mem;

	if (in_flight(w)) {
		atomic_store(&w->cancelled, true);
		leat_wire_cancel(leat_remote_of(writer->store)->wire);
		wait_until(w, 0);
	}
	if (w->upload)
		end_upload(w);
	if (w->kept)
		atomic_fetch_sub(leat_s3_kept(writer->store), w->kept);
	drop(w, &w->first);
	drop(w, &w->filling);
	drop(w, &w->spare);
	pthread_cond_destroy(&w->landed);
	pthread_mutex_destroy(&w->lock);
	leat_free(mem, w->etag);
	leat_free(mem, w->upload);
	leat_free(mem, w->at);
	leat_free(mem, w->uri);
	leat_free(mem, w);
}
