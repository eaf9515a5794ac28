/* s3_commit.c - make objects visible on S3, and remove them
 *
 * The last request of an object is repeated like all others, and its answer may get lost after the server has done
 * what it was asked. For a PUT or a copy that makes no difference. An upload that was completed is not there any
 * more when it is completed again: then the object must be. */
#include "store/s3_write.h"

#include <openssl/evp.h>
#include <stdio.h>

enum { ERROR_TEXT = 4096 };

static enum leat_status
fail_memory(const struct leat_s3_writer *w, size_t size, struct leat_err *err)
{
	return leat_fail_mem(err, w->base.store->mem, size, "a request that writes an object");
}

/* ---- uploads ---- */

/* Adds the ETag that the whole object will have, as all servers make it from MD5s; nothing if these are not MD5s. */
static void
add_expected_etag(const struct leat_s3_writer *w, struct leat_str *etag)
{
	EVP_MD_CTX *md5 = EVP_MD_CTX_new();
	bool good = md5 && EVP_DigestInit_ex(md5, EVP_md5(), NULL) == 1;
	uint8_t sum[EVP_MAX_MD_SIZE];
	char hex[2 * LEAT_MD5_BYTES + 1];

	for (unsigned i = 0; i < w->parts && good; i++) {
		const char *text = w->etag[i] + 1;

		good = strlen(w->etag[i]) == 2 * LEAT_MD5_BYTES + 2;
		for (size_t k = 0; k < LEAT_MD5_BYTES && good; k++) {
			int high = leat_hex_digit(text[2 * k]), low = leat_hex_digit(text[2 * k + 1]);

			good = high >= 0 && low >= 0;
			sum[k] = (uint8_t)((unsigned)high << 4 | (unsigned)low);
		}
		good = good && EVP_DigestUpdate(md5, sum, LEAT_MD5_BYTES) == 1;
	}
	if (good && EVP_DigestFinal_ex(md5, sum, NULL) == 1) {
		leat_hex(sum, LEAT_MD5_BYTES, hex);
		leat_str_addf(etag, "\"%s-%u\"", hex, w->parts);
	}
	EVP_MD_CTX_free(md5);
}

/* Is the object there, as it was to be written? Servers that encrypt have ETags that only tell the number of parts. */
static bool
is_there(const struct leat_s3_writer *w)
{
	struct leat_version expected = {0};
	struct leat_object object;
	char ending[16];
	struct leat_str etag;
	bool same;
	int len = snprintf(ending, sizeof(ending), "-%u\"", w->parts);

	if (leat_remote_look(w->base.store, leat_s3_upload_uri(w), &object, NULL) != LEAT_OK ||
	    object.size != w->base.size)
		return false;
	leat_str_init(&etag, w->base.store->mem, LEAT_ETAG);
	add_expected_etag(w, &etag);
	leat_remote_version(leat_str_text(&etag), 0, &expected);
	same = leat_version_equal(&object.version, &expected) ||
	       (object.version.len > len &&
	        memcmp(object.version.bytes + object.version.len - len, ending, (size_t)len) == 0);
	leat_str_free(&etag);
	return same;
}

static void
add_parts(const struct leat_s3_writer *w, struct leat_str *body)
{
	leat_str_add(body, "<CompleteMultipartUpload>");
	for (unsigned i = 0; i < w->parts; i++) {
		leat_str_addf(body, "<Part><PartNumber>%u</PartNumber><ETag>", i + 1);
		for (const char *at = w->etag[i]; *at; at++)
			leat_str_addf(body, *at == '&' || *at == '<' || *at == '>' ? "&#%d;" : "%c", *at);
		leat_str_add(body, "</ETag></Part>");
	}
	leat_str_add(body, "</CompleteMultipartUpload>");
}

/* What the answer to the last request means. It may have been repeated because the first answer was lost. */
static enum leat_status
settle(const struct leat_s3_writer *w, const struct leat_remote_call *call, struct leat_err *err)
{
	if (call->status >= 200 && call->status < 300)
		return LEAT_OK;
	if (call->attempts > 1 && is_there(w))
		return LEAT_OK;
	if (call->status == 412)
		return LEAT_AGAIN;
	return leat_fail(err, LEAT_IO, "cannot write '%s': its upload is gone; a rule of the bucket may have ended it",
	                 w->uri);
}

static const char *
condition(int flags)
{
	return flags & LEAT_COMMIT_IF_ABSENT ? "If-None-Match: *\r\n" : NULL;
}

static enum leat_status
complete_upload(struct leat_s3_writer *w, int flags, struct leat_err *err)
{
	struct leat_remote_call call = {.exchange.slow = true};
	struct leat_mem *mem = w->base.store->mem;
	char *query = leat_asprintf(mem, "uploadId=%s", w->upload);
	struct leat_ask ask = leat_s3_ask_to_write("POST", leat_s3_upload_uri(w), query);
	enum leat_status status;
	struct leat_s3_digest digest;
	struct leat_str body;

	leat_str_init(&body, mem, (size_t)LEAT_S3_PARTS * (LEAT_S3_PART_ETAG + 128));
	add_parts(w, &body);
	if (!query || body.failed) {
		status = fail_memory(w, body.len, err);
	} else {
		leat_s3_set_body(w, &ask, body.text, body.len, &digest);
		ask.fields = condition(flags);
		ask.accepts[0] = 404;
		ask.accepts[1] = 412;
		status = leat_s3_ask(w, &call, &ask, err);
		if (status == LEAT_OK)
			status = settle(w, &call, err);
		leat_str_free(&call.exchange.text);
	}
	if (status == LEAT_OK) {
		leat_free(mem, w->upload);
		w->upload = NULL;
	}
	leat_str_free(&body);
	leat_free(mem, query);
	return status;
}

static enum leat_status
put(const struct leat_s3_writer *w, const char *uri, int flags, struct leat_err *err)
{
	struct leat_ask ask = leat_s3_ask_to_write("PUT", uri, NULL);
	struct leat_remote_call call = {0};
	enum leat_status status;
	struct leat_s3_digest digest;

	leat_s3_set_body(w, &ask, w->filling.data, w->filling.len, &digest);
	ask.fields = condition(flags);
	ask.accepts[0] = condition(flags) ? 412 : 0;
	status = leat_s3_ask(w, &call, &ask, err);
	leat_str_free(&call.exchange.text);
	return status == LEAT_OK && call.status == 412 ? LEAT_AGAIN : status;
}

/* The server copies an upload that is complete to its name. */
static enum leat_status
copy_to(const struct leat_s3_writer *w, const char *uri, struct leat_err *err)
{
	struct leat_remote_call call = {.exchange.slow = true};
	struct leat_ask ask = leat_s3_ask_to_write("PUT", uri, NULL);
	enum leat_status status;
	struct leat_str from;

	leat_str_init(&from, w->base.store->mem, 3 * LEAT_URI);
	leat_url_encode(&from, w->at + strlen("s3://"), strlen(w->at) - strlen("s3://"), true);
	ask.copied_from = leat_str_text(&from);
	status = from.failed ? fail_memory(w, from.len, err) : leat_s3_ask(w, &call, &ask, err);
	leat_str_free(&call.exchange.text);
	leat_str_free(&from);
	return status;
}

static enum leat_status
commit_upload(struct leat_s3_writer *w, const char *uri, int flags, struct leat_err *err)
{
	enum leat_status status;

	if (!w->at && strcmp(uri, w->uri) != 0)
		return leat_fail(err, LEAT_INVALID, "cannot rename '%s'", w->uri);
	status = complete_upload(w, w->at ? 0 : flags, err);
	if (status != LEAT_OK || !w->at)
		return status;
	status = copy_to(w, uri, err);
	(void)leat_s3_remove(w->base.store, w->at, NULL);
	return status;
}

/* Servers that do not know If-None-Match would replace the object. */
static bool
exists(struct leat_store *store, const char *uri)
{
	struct leat_object object;

	return leat_remote_look(store, uri, &object, NULL) == LEAT_OK;
}

enum leat_status
leat_s3_commit(struct leat_writer *writer, const char *uri, int flags, struct leat_err *err)
{
	struct leat_s3_writer *w = leat_s3_writer_of(writer);
	enum leat_status status = w->why.status == LEAT_OK ? LEAT_OK : leat_fail_as(err, &w->why);

	if (!uri)
		uri = w->uri;
	if (status == LEAT_OK && w->upload && !w->finished)
		status = leat_s3_finish(writer, flags, err);
	if (status == LEAT_OK && (flags & LEAT_COMMIT_IF_ABSENT) && exists(writer->store, uri))
		status = LEAT_AGAIN;
	if (status == LEAT_OK)
		status = w->upload ? commit_upload(w, uri, flags, err) : put(w, uri, flags, err);
	leat_s3_abort(writer);
	return status;
}

/* ---- removing ---- */

/* S3 does not tell whether there was anything to remove. */
enum leat_status
leat_s3_remove(struct leat_store *store, const char *uri, struct leat_err *err)
{
	struct leat_remote_call call = {0};
	const struct leat_ask ask = {
		.method = "DELETE", .uri = uri, .verb = "remove", .permission = "s3:DeleteObject", .accepts = {404}};
	enum leat_status status = leat_remote_ask(leat_remote_of(store), &call, &ask, ERROR_TEXT, err);

	leat_str_free(&call.exchange.text);
	return status;
}
