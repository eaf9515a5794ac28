/* remote.c - see remote.h */
#include "store/remote.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/hash.h"

enum { ERROR_TEXT = 4096, FIELDS = 512 };

/* A read in flight. */
struct leat_remote_read {
	struct leat_remote_call call;
	struct leat_read *read;
	struct leat_remote_read *next; /* unused */
};

/* ---- names and errors ---- */

const char *
leat_remote_shown(const struct leat_remote *remote, const char *uri, char buf[LEAT_URI])
{
	bool hides = remote->kind->hides_query;
	size_t len = hides ? strcspn(uri, "?#") : strlen(uri), scheme = 0;
	const char *slashes = hides ? strstr(uri, "://") : NULL, *user = NULL;

	if (slashes) {
		scheme = (size_t)(slashes - uri) + 3;
		user = memrchr(uri + scheme, '@', strcspn(uri + scheme, "/?#"));
	}
	if (user)
		snprintf(buf, LEAT_URI, "%.*s...%.*s", (int)scheme, uri, (int)(len - (size_t)(user - uri)), user);
	else
		snprintf(buf, LEAT_URI, "%.*s", (int)(len < LEAT_URI ? len : LEAT_URI), uri);
	return buf;
}

enum leat_status
leat_remote_copy_uri(struct leat_store *store, const char *text, char **uri, struct leat_err *err)
{
	size_t len = strlen(text);

	while (len && text[len - 1] == '/')
		len--;
	if (len >= LEAT_URI)
		return leat_fail(err, LEAT_INVALID, "'%.60s...' is too long for a URI", text);
	*uri = leat_strndup(store->mem, text, len);
	return *uri ? LEAT_OK : leat_fail_mem(err, store->mem, len + 1, "the name of an object");
}

enum leat_status
leat_remote_fail_list(const struct leat_err *why, struct leat_err *err)
{
	struct leat_err listed = *why;

	if (listed.status == LEAT_DATA)
		listed.status = LEAT_IO;
	return leat_fail_as(err, &listed);
}

static struct leat_remote_read *
read_of(struct leat_remote_call *call)
{
	return call->uri ? NULL : (struct leat_remote_read *)call;
}

static struct leat_remote_call *
call_of(struct leat_exchange *exchange)
{
	return (struct leat_remote_call *)exchange;
}

const char *
leat_remote_uri(struct leat_remote_call *call, char buf[LEAT_URI])
{
	const char *uri = call->uri ? call->uri : leat_object_uri(&read_of(call)->read->object, buf);

	return uri ? uri : "?";
}

static void
fail(struct leat_exchange *exchange, enum leat_status status, const char *why)
{
	struct leat_remote_call *call = call_of(exchange);
	struct leat_remote_read *reading = read_of(call);
	char buf[LEAT_URI], shown[LEAT_URI];

	exchange->status = status;
	leat_remote_shown(call->remote, leat_remote_uri(call, buf), shown);
	if (reading)
		leat_fail(exchange->err, status, "cannot read '%s' at offset %" PRIu64 ": %s", shown,
		          reading->read->offset, why);
	else
		leat_fail(exchange->err, status, "cannot %s '%s': %s", call->ask.verb ? call->ask.verb : "open", shown,
		          why);
}

static enum leat_verdict
over(struct leat_exchange *exchange, enum leat_status status, const char *why)
{
	fail(exchange, status, why);
	return LEAT_VERDICT_OVER;
}

/* ---- versions ---- */

void
leat_remote_version(const char *etag, int64_t modified, struct leat_version *version)
{
	size_t len = strlen(etag);
	uint8_t *bytes = version->bytes;

	if (len && len < LEAT_VERSION_BYTES) {
		bytes[0] = 'E';
		memcpy(bytes + 1, etag, len);
		version->len = (uint8_t)(len + 1);
	} else if (len && leat_sha256(etag, len, bytes + 1) == 0) {
		bytes[0] = 'H';
		version->len = 1 + LEAT_SHA256_BYTES;
	} else {
		bytes[0] = 'M';
		memcpy(bytes + 1, &modified, sizeof(modified));
		version->len = 1 + sizeof(modified);
	}
}

bool
leat_remote_describe(const struct leat_http_head *head, struct leat_object *object)
{
	object->size = head->has_range || head->status == 416 ? head->total : head->length;
	object->mtime_ns = head->modified * 1000000000;
	leat_remote_version(head->etag, head->modified, &object->version);
	return head->has_range || head->status == 416 ? head->total <= INT64_MAX
	                                              : head->has_length && head->length <= INT64_MAX;
}

/* Makes the server refuse another version. Only a strong ETag can. */
static void
add_condition(const struct leat_version *version, char fields[FIELDS], size_t *used)
{
	if (version->len > 1 && version->bytes[0] == 'E' && version->bytes[1] == '"')
		*used += (size_t)snprintf(fields + *used, FIELDS - *used, "If-Match: %.*s\r\n", version->len - 1,
		                          version->bytes + 1);
}

/* Is what the head describes the object that is meant? Its size is compared elsewhere. */
static bool
is_version(const struct leat_object *meant, const struct leat_http_head *head)
{
	struct leat_object now = {.size = meant->size};

	leat_remote_version(head->etag, head->modified, &now.version);
	if (meant->version.len)
		return leat_version_equal(&now.version, &meant->version);
	return !meant->token || leat_object_token(&now) == meant->token;
}

/* ---- asking ---- */

static enum leat_status
compose_range(struct leat_remote_call *call, struct leat_ask *ask, char fields[FIELDS])
{
	const struct leat_read *read = read_of(call)->read;
	uint64_t want = call->exchange.want;
	size_t used;

	if (read->offset > read->object.size || want > read->object.size - read->offset) {
		char why[96];

		snprintf(why, sizeof(why), "it ends at offset %" PRIu64 ", but %" PRIu64 " was expected",
		         read->object.size, read->offset + want);
		fail(&call->exchange, LEAT_DATA, why);
		return LEAT_DATA;
	}
	if (want == 0)
		return LEAT_DONE;
	used = (size_t)snprintf(fields, FIELDS, "Range: bytes=%" PRIu64 "-%" PRIu64 "\r\n", read->offset,
	                        read->offset + want - 1);
	add_condition(&read->object.version, fields, &used);
	ask->method = "GET";
	ask->fields = fields;
	return LEAT_OK;
}

static enum leat_status
compose(struct leat_exchange *exchange, struct leat_str *out)
{
	struct leat_remote_call *call = call_of(exchange);
	struct leat_ask ask = call->ask;
	char buf[LEAT_URI], fields[FIELDS];
	enum leat_status status = LEAT_OK;

	call->accepted = false;
	call->attempts++;
	ask.uri = leat_remote_uri(call, buf);
	exchange->head_only = call->asks == LEAT_CALL_HEAD;
	switch (call->asks) {
	case LEAT_CALL_HEAD:
		ask.method = "HEAD";
		break;
	case LEAT_CALL_FIRST_BYTE:
		ask.method = "GET";
		ask.fields = "Range: bytes=0-0\r\n";
		break;
	case LEAT_CALL_RANGE:
		status = compose_range(call, &ask, fields);
		break;
	case LEAT_CALL_WHOLE:
		ask.method = "GET";
		break;
	case LEAT_CALL_OTHER:
		break;
	}
	return status == LEAT_OK ? call->remote->kind->compose(call, &ask, out) : status;
}

/* ---- answers ---- */

static bool
wants(struct leat_exchange *exchange, const struct leat_http_head *head)
{
	struct leat_remote_call *call = call_of(exchange);
	const struct leat_read *read;

	if (call->asks != LEAT_CALL_RANGE)
		return false;
	read = read_of(call)->read;
	if (head->encoded && !call->remote->kind->any_coding)
		return false;
	if (head->status == 206)
		call->accepted = head->has_range && head->first == read->offset &&
		                 head->last == read->offset + exchange->want - 1 &&
		                 (head->total == read->object.size || head->total == UINT64_MAX);
	else if (head->status == 200)
		call->accepted = read->offset == 0 && exchange->want == read->object.size && head->has_length &&
		                 head->length == exchange->want;
	call->accepted &= is_version(&read->object, head);
	return call->accepted;
}

static enum leat_verdict
is_gone(struct leat_exchange *exchange)
{
	const struct leat_remote_read *reading = read_of(call_of(exchange));
	char why[128];

	if (!reading || !reading->read->object.remedy)
		return over(exchange, LEAT_DATA, "there is no such object");
	snprintf(why, sizeof(why), "there is no such object any more; %s", reading->read->object.remedy);
	return over(exchange, LEAT_DATA, why);
}

static enum leat_verdict
has_changed(struct leat_remote_call *call, uint64_t size)
{
	const struct leat_object *object = &read_of(call)->read->object;
	const char *remedy = object->remedy ? object->remedy : "open the feed again";
	char buf[LEAT_URI], shown[LEAT_URI];

	leat_remote_shown(call->remote, leat_remote_uri(call, buf), shown);
	call->exchange.status = LEAT_DATA;
	if (size != object->size)
		leat_fail(call->exchange.err, LEAT_DATA,
		          "'%s' has changed: it had %" PRIu64 " bytes and now has %" PRIu64 "; %s", shown, object->size,
		          size, remedy);
	else
		leat_fail(call->exchange.err, LEAT_DATA, "'%s' has changed since it was opened; %s", shown, remedy);
	return LEAT_VERDICT_OVER;
}

/* The server says that the object has changed. To say how, ask for its size. */
static enum leat_verdict
ask_for_size(struct leat_remote_call *call)
{
	call->asks = LEAT_CALL_HEAD;
	return LEAT_VERDICT_NOW;
}

static enum leat_verdict
judge_other(struct leat_remote_call *call, const struct leat_http_head *head)
{
	struct leat_exchange *exchange = &call->exchange;
	enum leat_verdict verdict;

	snprintf(exchange->why, sizeof(exchange->why), "the server answered %d", head->status);
	verdict = call->remote->kind->judge(call, head);
	return verdict == LEAT_VERDICT_OVER ? over(exchange, LEAT_IO, exchange->why) : verdict;
}

/* A 200 or 206 that is not what was asked for. */
static enum leat_verdict
judge_wrong_range(struct leat_remote_call *call, const struct leat_http_head *head)
{
	const struct leat_object *object = &read_of(call)->read->object;
	uint64_t size = head->status == 200 && head->has_length ? head->length : head->total;

	if (head->encoded && !call->remote->kind->any_coding)
		return over(&call->exchange, LEAT_IO, "the server compresses it, which was not asked for");
	if ((head->status == 200 && !head->has_length) || size == object->size || size > INT64_MAX)
		size = object->size;
	if (size != object->size || !is_version(object, head))
		return has_changed(call, size);
	return over(&call->exchange, LEAT_IO,
	            head->status == 200 ? "the server ignores ranges, so parts of a file cannot be read"
	                                : "the server sent another range than was asked for");
}

static enum leat_verdict
judge_range(struct leat_remote_call *call, const struct leat_http_head *head)
{
	struct leat_exchange *exchange = &call->exchange;

	if (call->accepted) {
		exchange->status = LEAT_OK;
		return LEAT_VERDICT_OVER;
	}
	switch (head->status) {
	case 200:
	case 206:
		return judge_wrong_range(call, head);
	case 404:
	case 410:
		return is_gone(exchange);
	case 412:
	case 416:
		return ask_for_size(call);
	default:
		return judge_other(call, head);
	}
}

static enum leat_verdict
judge_look(struct leat_remote_call *call, const struct leat_http_head *head)
{
	struct leat_exchange *exchange = &call->exchange;
	bool first_byte = call->asks == LEAT_CALL_FIRST_BYTE;

	switch (head->status) {
	case 200:
	case 206:
		break;
	case 404:
	case 410:
		return is_gone(exchange);
	case 416: /* RGW does not tell the size of an empty object */
		if (!first_byte)
			return judge_other(call, head);
		if (head->total != UINT64_MAX && head->total != 0)
			return over(exchange, LEAT_IO, "the server does not send its first byte");
		break;
	default:
		return judge_other(call, head);
	}
	if (read_of(call))
		return has_changed(call, head->length);
	if (head->encoded && !call->remote->kind->any_coding)
		return over(exchange, LEAT_UNSUPPORTED, "the server compresses it, which was not asked for");
	if (!leat_remote_describe(head, call->object) && head->status != 416)
		return over(exchange, LEAT_UNSUPPORTED, "the server does not tell its size");
	if (head->status == 416)
		call->object->size = 0;
	exchange->status = LEAT_OK;
	return LEAT_VERDICT_OVER;
}

static bool
is_answer(const struct leat_remote_call *call, int status)
{
	const int *accepts = call->ask.accepts;

	if (status < 200 || status >= 300)
		return status == accepts[0] || status == accepts[1];
	return !call->remote->kind->is_error || !call->remote->kind->is_error(call);
}

static enum leat_verdict
judge_text(struct leat_remote_call *call, const struct leat_http_head *head)
{
	struct leat_exchange *exchange = &call->exchange;
	enum leat_verdict verdict;

	call->status = head->status;
	if (call->etag)
		strcpy(call->etag, head->etag);
	if (is_answer(call, head->status)) {
		if (exchange->text.failed)
			return over(exchange, LEAT_NOMEM, "there is no memory for the answer");
		if (exchange->cut)
			return over(exchange, LEAT_IO, "the answer of the server is too long");
		exchange->status = LEAT_OK;
		return LEAT_VERDICT_OVER;
	}
	snprintf(exchange->why, sizeof(exchange->why), "the server answered %d", head->status);
	verdict = call->remote->kind->judge(call, head);
	return verdict == LEAT_VERDICT_OVER ? over(exchange, LEAT_IO, exchange->why) : verdict;
}

static enum leat_verdict
judge_whole(struct leat_remote_call *call, const struct leat_http_head *head)
{
	struct leat_exchange *exchange = &call->exchange;

	if (head->status == 404 || head->status == 410)
		return is_gone(exchange);
	if (head->status != 200)
		return judge_other(call, head);
	if (head->encoded && !call->remote->kind->any_coding)
		return over(exchange, LEAT_IO, "the server compresses it, which was not asked for");
	if (exchange->text.failed)
		return over(exchange, LEAT_NOMEM, "there is no memory for it");
	if (exchange->cut || exchange->got > exchange->text.len)
		return over(exchange, LEAT_LIMIT, "it is too large");
	exchange->status = LEAT_OK;
	return LEAT_VERDICT_OVER;
}

static enum leat_verdict
judge(struct leat_exchange *exchange, const struct leat_http_head *head)
{
	struct leat_remote_call *call = call_of(exchange);

	if (call->asks == LEAT_CALL_RANGE)
		return judge_range(call, head);
	if (call->asks == LEAT_CALL_WHOLE)
		return judge_whole(call, head);
	return call->asks == LEAT_CALL_OTHER ? judge_text(call, head) : judge_look(call, head);
}

/* ---- waiting for an answer ---- */

static const struct leat_exchange_kind calls = {.compose = compose, .judge = judge, .fail = fail};

static enum leat_status
run(struct leat_remote *remote, struct leat_remote_call *call, struct leat_err *err)
{
	enum leat_status status;
	char shown[LEAT_URI];

	call->exchange.kind = &calls;
	call->exchange.err = err;
	call->exchange.cancelled = remote->base.stores ? &remote->base.stores->interrupted : NULL;
	call->remote = remote;
	status = remote->kind->locate(call, call->uri, err);
	if (status == LEAT_OK)
		status = leat_wire_call(remote->wire, &call->exchange);
	if (status == LEAT_AGAIN)
		status = leat_fail(err, LEAT_CANCELLED, "cannot open '%s': interrupted",
		                   leat_remote_shown(remote, call->uri, shown));
	leat_free(remote->base.mem, call->moved);
	call->moved = NULL;
	return status;
}

enum leat_status
leat_remote_look(struct leat_store *store, const char *uri, struct leat_object *object, struct leat_err *err)
{
	struct leat_remote_call call = {.uri = uri, .asks = LEAT_CALL_HEAD, .object = object};
	enum leat_status status;

	*object = (struct leat_object){.store = store, .uri = uri, .uri_len = strlen(uri)};
	leat_str_init(&call.exchange.text, store->mem, ERROR_TEXT);
	status = run(leat_remote_of(store), &call, err);
	leat_str_free(&call.exchange.text);
	if (status == LEAT_OK && leat_remote_of(store)->disk)
		leat_disk_prove(leat_remote_of(store)->disk, uri, object->size);
	return status;
}

enum leat_status
leat_remote_load(struct leat_store *store, const char *uri, size_t most, struct leat_mem *mem, void **bytes,
                 size_t *len, struct leat_err *err)
{
	struct leat_remote_call call = {.uri = uri, .asks = LEAT_CALL_WHOLE};
	enum leat_status status;

	leat_str_init(&call.exchange.text, mem, most < SIZE_MAX ? most + 1 : most);
	status = run(leat_remote_of(store), &call, err);
	*len = call.exchange.text.len;
	*bytes = status == LEAT_OK ? leat_str_take(&call.exchange.text) : NULL;
	leat_str_free(&call.exchange.text);
	return status == LEAT_OK && !*bytes ? leat_fail_mem(err, mem, 1, "a file") : status;
}

static void
set_ask(struct leat_remote *remote, struct leat_remote_call *call, const struct leat_ask *ask, size_t max_text)
{
	call->asks = LEAT_CALL_OTHER;
	call->ask = *ask;
	call->uri = ask->uri;
	call->exchange.body = ask->body;
	call->exchange.body_len = ask->body_len;
	leat_str_init(&call->exchange.text, remote->base.mem, max_text);
}

enum leat_status
leat_remote_ask(struct leat_remote *remote, struct leat_remote_call *call, const struct leat_ask *ask, size_t max_text,
                struct leat_err *err)
{
	set_ask(remote, call, ask, max_text);
	return run(remote, call, err);
}

static void
end_started(struct leat_exchange *exchange)
{
	struct leat_remote_call *call = call_of(exchange);

	leat_free(call->remote->base.mem, call->moved);
	call->moved = NULL;
	call->done(call);
}

enum leat_status
leat_remote_start(struct leat_remote *remote, struct leat_remote_call *call, const struct leat_ask *ask,
                  size_t max_text, struct leat_err *err)
{
	static const struct leat_exchange_kind started = {
		.compose = compose, .judge = judge, .fail = fail, .done = end_started};
	enum leat_status status;

	set_ask(remote, call, ask, max_text);
	call->exchange.kind = &started;
	call->exchange.err = err;
	call->remote = remote;
	status = remote->kind->locate(call, call->uri, err);
	return status == LEAT_OK ? leat_wire_submit(remote->wire, &call->exchange, err) : status;
}

/* ---- reads ---- */

static void
end_read(struct leat_exchange *exchange)
{
	struct leat_remote_read *reading = read_of(call_of(exchange));
	struct leat_remote *remote = reading->call.remote;
	struct leat_read *read = reading->read;

	read->status = exchange->status;
	read->took_ns = exchange->took_ns;
	read->thread = exchange->thread;
	leat_free(remote->base.mem, reading->call.moved);
	leat_str_free(&exchange->text);
	pthread_mutex_lock(&remote->lock);
	reading->next = remote->unused;
	remote->unused = reading;
	pthread_mutex_unlock(&remote->lock);
	read->done(read);
}

static const struct leat_exchange_kind reads = {
	.compose = compose, .wants = wants, .judge = judge, .fail = fail, .done = end_read};

static struct leat_remote_read *
take_unused(struct leat_remote *remote)
{
	struct leat_remote_read *reading;

	pthread_mutex_lock(&remote->lock);
	reading = remote->unused;
	if (reading)
		remote->unused = reading->next;
	pthread_mutex_unlock(&remote->lock);
	return reading ? reading : leat_alloc(remote->base.mem, sizeof(*reading));
}

static void
give_back(struct leat_remote *remote, struct leat_remote_read *reading)
{
	pthread_mutex_lock(&remote->lock);
	reading->next = remote->unused;
	remote->unused = reading;
	pthread_mutex_unlock(&remote->lock);
}

/* Sends a read to the server. */
static enum leat_status
send_read(void *arg, struct leat_read *read, atomic_bool *cancelled)
{
	struct leat_remote *remote = arg;
	struct leat_remote_read *reading = take_unused(remote);
	struct leat_exchange *exchange;
	char buf[LEAT_URI];
	const char *uri = leat_object_uri(&read->object, buf);
	enum leat_status status;

	if (!reading)
		return leat_fail_mem(read->err, remote->base.mem, sizeof(*reading), "the reads in flight");
	exchange = &reading->call.exchange;
	*reading = (struct leat_remote_read){
		.call = {.exchange = {.kind = &reads, .cancelled = cancelled, .iovs = read->iovs, .err = read->err},
	                 .remote = remote,
	                 .asks = LEAT_CALL_RANGE},
		.read = read};
	memcpy(exchange->iov, read->iov, sizeof(read->iov));
	for (int i = 0; i < read->iovs; i++)
		exchange->want += read->iov[i].iov_len;
	leat_str_init(&exchange->text, remote->base.mem, ERROR_TEXT);
	status = uri ? remote->kind->locate(&reading->call, uri, read->err)
	             : leat_fail(read->err, LEAT_DATA, "the name of an object below '%s' is too long",
	                         read->object.folder);
	if (status == LEAT_OK)
		status = leat_wire_submit(remote->wire, exchange, read->err);
	if (status != LEAT_OK)
		give_back(remote, reading);
	return status;
}

enum leat_status
leat_remote_submit(struct leat_store *store, struct leat_read *read)
{
	struct leat_remote *remote = leat_remote_of(store);
	char buf[LEAT_URI];
	const char *uri = remote->disk ? leat_object_uri(&read->object, buf) : NULL;

	if (uri && leat_disk_submit(remote->disk, read, uri))
		return LEAT_OK;
	return send_read(remote, read, &read->cancelled);
}

void
leat_remote_cancel(struct leat_store *store, struct leat_read *read)
{
	struct leat_remote *remote = leat_remote_of(store);

	atomic_store(&read->cancelled, true);
	leat_wire_cancel(remote->wire);
	if (remote->disk)
		leat_disk_cancel(remote->disk);
}

void
leat_remote_interrupt(struct leat_store *store)
{
	leat_wire_cancel(leat_remote_of(store)->wire);
}

void
leat_remote_disk_stats(struct leat_store *store, struct leat_disk_stats *stats)
{
	leat_disk_stats(leat_remote_of(store)->disk, stats);
}

/* ---- the store ---- */

enum leat_status
leat_remote_open(struct leat_remote *remote, const struct leat_store_kind *store, const struct leat_remote_kind *kind,
                 const struct leat_storage *storage, struct leat_mem *mem, struct leat_err *err)
{
	/* http: URIs name their server, s3: URIs only a bucket. */
	const struct leat_disk_wire wire = {.arg = remote,
	                                    .send = send_read,
	                                    .place = kind->hides_query ? "" : remote->storage.endpoint,
	                                    .first_thread = LEAT_WIRE_THREADS};
	enum leat_status status;

	remote->base = (struct leat_store){.kind = store, .mem = mem};
	remote->kind = kind;
	remote->storage = *storage;
	pthread_mutex_init(&remote->lock, NULL);
	status = leat_wire_open(&remote->wire, &remote->storage, mem, err);
	if (status != LEAT_OK)
		return status;
	remote->base.in_flight = leat_wire_most(remote->wire);
	return leat_disk_open(&remote->disk, &remote->storage, &wire, mem, err);
}

struct leat_wire *
leat_remote_wire(const struct leat_store *store)
{
	return store->kind->submit == leat_remote_submit ? ((const struct leat_remote *)store)->wire : NULL;
}

bool
leat_remote_counts(const struct leat_store *store, struct leat_origin_counts *counts)
{
	struct leat_wire *wire = leat_remote_wire(store);

	*counts = (struct leat_origin_counts){0};
	if (wire)
		leat_wire_counts(wire, counts);
	return wire != NULL;
}

void
leat_remote_close(struct leat_remote *remote)
{
	leat_disk_close(remote->disk);
	leat_wire_close(remote->wire);
	while (remote->unused) {
		struct leat_remote_read *reading = remote->unused;

		remote->unused = reading->next;
		leat_free(remote->base.mem, reading);
	}
	pthread_mutex_destroy(&remote->lock);
}
