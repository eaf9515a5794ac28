/* s3.c - the store s3:, for Amazon S3 and servers that speak its protocol
 *
 * s3://BUCKET/KEY, where KEY is the key itself, byte for byte, nothing encoded. Where requests go
 * and how they are signed follows from the settings (settings.h) and the usual variables and files
 * (credentials.h). Amazon gets the bucket in the host name, other servers in the path, unless
 * `style` says otherwise.
 *
 * Learned while running: the region of a bucket, from x-amz-bucket-region, and how far the
 * server's clock is ahead of ours. Requests are signed anew for each attempt.
 *
 * Threads: any. The lock guards the regions of buckets; each of the wire's threads has its own
 * signing key. */
#include <errno.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/hash.h"
#include "store/credentials_keeper.h"
#include "store/remote.h"
#include "store/s3.h"
#include "store/s3_list.h"
#include "store/sigv4.h"

enum {
	MAX_PAGE = 16 << 20,   /* bytes of a page of a list: 1,000 keys of 1,024 bytes, encoded */
	MAX_EMPTY_PAGES = 100, /* in a row */
	MAX_SKEW = 60,         /* seconds that our clock may be wrong without being noticed */
	MAX_BUCKET = 255,
	REFRESHES = 2, /* of credentials or the clock, for one request */
};

struct bucket {
	struct bucket *next;
	char region[LEAT_SETTING];
	char name[MAX_BUCKET + 1];
};

struct s3_store {
	struct leat_remote remote;
	struct leat_url endpoint; /* if it is not Amazon's */
	bool custom, in_path;     /* the endpoint; the bucket */
	_Atomic int64_t skew;     /* seconds that the server's clock is ahead */
	atomic_size_t kept;       /* leat_s3_kept */
	struct leat_sigv4_key key[LEAT_WIRE_THREADS];
	struct leat_keeper *keeper;
	pthread_rwlock_t lock;
	struct bucket *bucket; /* under the lock */
};

/* A URI taken apart. */
struct place {
	char bucket[MAX_BUCKET + 1];
	const char *key; /* "": the bucket itself */
};

static struct s3_store *
s3_of(struct leat_remote *remote)
{
	return (struct s3_store *)remote;
}

bool
leat_s3_has_tls(struct leat_store *store)
{
	const struct s3_store *s3 = s3_of(leat_remote_of(store));

	return !s3->custom || s3->endpoint.tls;
}

atomic_size_t *
leat_s3_kept(struct leat_store *store)
{
	return &s3_of(leat_remote_of(store))->kept;
}

/* ---- names ---- */

/* NULL: it is one; else why not. */
static const char *
take_apart(const char *uri, struct place *place)
{
	const char *name = uri + strlen("s3://");
	size_t len = strcspn(name, "/");

	if (len == 0)
		return "the name of the bucket is missing";
	if (len > MAX_BUCKET ||
	    len != strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_"))
		return "the name of the bucket has characters that are not allowed there";
	if (*name == '.' || *name == '-' || name[len - 1] == '.')
		return "the name of the bucket makes no sense";
	memcpy(place->bucket, name, len);
	place->bucket[len] = '\0';
	place->key = name[len] ? name + len + 1 : "";
	return NULL;
}

static enum leat_status
resolve(struct leat_store *store, const char *text, char **uri, struct leat_err *err)
{
	struct place place;
	const char *why = take_apart(text, &place);
	enum leat_status status;

	if (why)
		return leat_fail(err, LEAT_INVALID, "'%s' is not an S3 URI: %s; write s3://BUCKET/KEY", text, why);
	/* Here, so that a user without credentials is told so, not that an object cannot be opened. */
	status = leat_keeper_wait(s3_of(leat_remote_of(store))->keeper, &store->stores->interrupted, err);
	return status == LEAT_OK ? leat_remote_copy_uri(store, text, uri, err) : status;
}

/* Under the lock. NULL: not known. */
static struct bucket *
find_bucket(const struct s3_store *store, const char *name)
{
	struct bucket *bucket = store->bucket;

	while (bucket && strcmp(bucket->name, name) != 0)
		bucket = bucket->next;
	return bucket;
}

static void
region_of(struct s3_store *store, const char *name, char region[LEAT_SETTING])
{
	const struct bucket *bucket;

	pthread_rwlock_rdlock(&store->lock);
	bucket = find_bucket(store, name);
	strcpy(region, bucket ? bucket->region : store->remote.storage.region);
	pthread_rwlock_unlock(&store->lock);
}

/* From a server: it becomes part of a host, so it has to look like one. True: this is news. */
static bool
learn_region(struct s3_store *store, const char *name, const char *region)
{
	struct bucket *bucket;
	bool news = false;

	if (!*region || strlen(region) > 40 ||
	    strspn(region, "abcdefghijklmnopqrstuvwxyz0123456789-") != strlen(region))
		return false;
	pthread_rwlock_wrlock(&store->lock);
	bucket = find_bucket(store, name);
	if (!bucket && (bucket = leat_alloc(store->remote.base.mem, sizeof(*bucket))) != NULL) {
		strcpy(bucket->name, name);
		strcpy(bucket->region, store->remote.storage.region);
		bucket->next = store->bucket;
		store->bucket = bucket;
	}
	if (bucket) {
		news = strcmp(bucket->region, region) != 0;
		strcpy(bucket->region, region);
	}
	pthread_rwlock_unlock(&store->lock);
	return news;
}

static bool
is_in_path(const struct s3_store *store, const struct place *place)
{
	/* A dot in the bucket's name does not match the certificate of *.s3.amazonaws.com. */
	return store->in_path || (!store->custom && strchr(place->bucket, '.'));
}

static bool
make_host(const struct s3_store *store, const struct place *place, const char *region, char host[LEAT_HOST])
{
	bool in_path = is_in_path(store, place);
	int len;

	if (store->custom)
		len = snprintf(host, LEAT_HOST, "%s%s%s", in_path ? "" : place->bucket, in_path ? "" : ".",
		               store->endpoint.host);
	else
		len = snprintf(host, LEAT_HOST, "%s%ss3.%s.amazonaws.com%s", in_path ? "" : place->bucket,
		               in_path ? "" : ".", region, strncmp(region, "cn-", 3) == 0 ? ".cn" : "");
	return len < LEAT_HOST;
}

static enum leat_status
locate(struct leat_remote_call *call, const char *uri, struct leat_err *err)
{
	struct s3_store *store = s3_of(call->remote);
	char host[LEAT_HOST], region[LEAT_SETTING];
	struct place place;
	const char *why = take_apart(uri, &place);

	if (why)
		return leat_fail(err, LEAT_INVALID, "'%s' is not an S3 URI: %s", uri, why);
	region_of(store, place.bucket, region);
	if (!make_host(store, &place, region, host))
		return leat_fail(err, LEAT_INVALID, "'%s': the name of the bucket is too long", uri);
	call->exchange.extra_name = "x-amz-bucket-region";
	call->exchange.origin = leat_wire_origin(call->remote->wire, leat_s3_has_tls(&store->remote.base), host,
	                                         store->custom ? store->endpoint.port : 443);
	return call->exchange.origin
	               ? LEAT_OK
	               : leat_fail_mem(err, store->remote.base.mem, sizeof(struct leat_origin), "network connections");
}

/* ---- requests ---- */

static void
add_path(struct leat_str *out, const struct s3_store *store, const struct place *place, const char *key)
{
	leat_str_add(out, "/");
	if (is_in_path(store, place)) {
		leat_url_encode(out, place->bucket, strlen(place->bucket), false);
		leat_str_add(out, "/");
	}
	leat_url_encode(out, key, strlen(key), true);
}

static const char *
hash_of(const struct leat_ask *ask)
{
	return ask->body_hash ? ask->body_hash : leat_sigv4_no_body;
}

/* The fields that are signed, as the signature wants them. */
static void
add_signed(struct leat_str *out, const struct s3_store *store, const struct leat_credentials *credentials,
           const struct leat_origin *origin, const struct leat_ask *ask, const char *time)
{
	if (ask->body_md5)
		leat_str_addf(out, "content-md5:%s\n", ask->body_md5);
	leat_str_add(out, "host:");
	leat_url_add_host(out, origin->tls, origin->host, origin->port);
	leat_str_addf(out, "\nx-amz-content-sha256:%s\n", hash_of(ask));
	if (ask->copied_from) {
		leat_str_add(out, "x-amz-copy-source:");
		leat_str_add(out, ask->copied_from);
		leat_str_add(out, "\n");
	}
	leat_str_addf(out, "x-amz-date:%s\n", time);
	if (store->remote.storage.requester_pays)
		leat_str_add(out, "x-amz-request-payer:requester\n");
	if (*credentials->token)
		leat_str_addf(out, "x-amz-security-token:%s\n", credentials->token);
}

/* "name:value\n" as "name: value\r\n". */
static void
add_fields(struct leat_str *out, const char *fields)
{
	while (*fields) {
		size_t name = strcspn(fields, ":"), len = strcspn(fields, "\n");

		leat_str_addn(out, fields, name);
		leat_str_add(out, ": ");
		leat_str_addn(out, fields + name + 1, len - name - 1);
		leat_str_add(out, "\r\n");
		fields += len + 1;
	}
}

static bool
add_signature(struct leat_str *out, struct s3_store *store, const struct leat_sigv4 *what, unsigned thread)
{
	leat_str_add(out, "authorization: ");
	if (!leat_sigv4_add(out, what, &store->key[thread]))
		return false;
	leat_str_add(out, "\r\n");
	return true;
}

static bool
write_request(struct leat_remote_call *call, const struct leat_ask *ask, const struct place *place, const char *region,
              const struct leat_credentials *credentials, struct leat_str *out)
{
	struct s3_store *store = s3_of(call->remote);
	char now[LEAT_SIGV4_TIME];
	struct leat_str path, fields;
	bool written;

	leat_sigv4_time((int64_t)time(NULL) + atomic_load(&store->skew), now);
	leat_str_init(&path, out->mem, 3 * LEAT_URI + 1024);
	leat_str_init(&fields, out->mem, 2 * LEAT_TOKEN + 3 * LEAT_URI);
	fields.secret = true;
	add_path(&path, store, place, ask->of_bucket ? "" : place->key);
	add_signed(&fields, store, credentials, call->exchange.origin, ask, now);
	leat_str_addf(out, "%s ", ask->method);
	leat_str_add(out, leat_str_text(&path));
	if (ask->query) {
		leat_str_add(out, "?");
		leat_str_add(out, ask->query);
	}
	leat_str_add(out, " HTTP/1.1\r\nuser-agent: leat\r\naccept-encoding: identity\r\n");
	leat_str_add(out, ask->fields ? ask->fields : "");
	if (*ask->method == 'P') /* PUT and POST, even without a body */
		leat_str_addf(out, "content-length: %zu\r\n", ask->body_len);
	add_fields(out, leat_str_text(&fields));
	written = !path.failed && !fields.failed;
	if (written && !credentials->anonymous)
		written = add_signature(out, store,
		                        &(struct leat_sigv4){.method = ask->method,
		                                             .path = path.text,
		                                             .query = ask->query ? ask->query : "",
		                                             .fields = fields.text,
		                                             .body = hash_of(ask),
		                                             .time = now,
		                                             .region = region,
		                                             .service = "s3",
		                                             .key_id = credentials->key_id,
		                                             .secret = credentials->secret},
		                        call->exchange.thread);
	leat_str_add(out, "\r\n");
	leat_str_free(&path);
	leat_str_free(&fields);
	return written;
}

/* Without credentials a request waits, or fails if there never were any. That is not about the object. */
static enum leat_status
fail_credentials(struct leat_exchange *exchange, const struct leat_err *why)
{
	leat_show(exchange->why, sizeof(exchange->why), why->text, strlen(why->text));
	if (why->status == LEAT_AGAIN)
		return LEAT_AGAIN;
	exchange->status = LEAT_IO;
	return leat_fail(exchange->err, LEAT_IO, "%s", why->text);
}

static enum leat_status
compose(struct leat_remote_call *call, const struct leat_ask *ask, struct leat_str *out)
{
	struct s3_store *store = s3_of(call->remote);
	const struct leat_credentials *credentials;
	char region[LEAT_SETTING];
	struct leat_err why;
	struct place place;

	take_apart(ask->uri, &place);
	region_of(store, place.bucket, region);
	leat_err_clear(&why);
	if (leat_keeper_lock(store->keeper, &credentials, &call->credentials, &why) != LEAT_OK)
		return fail_credentials(&call->exchange, &why);
	if (!write_request(call, ask, &place, region, credentials, out))
		out->failed = true; /* the wire reports that there is no memory */
	leat_keeper_unlock(store->keeper);
	return LEAT_OK;
}

/* ---- answers ---- */

/* True: the clock was wrong, and is set now. */
static bool
learn_clock(struct s3_store *store, const struct leat_http_head *head)
{
	int64_t skew = head->date ? head->date - (int64_t)time(NULL) : 0, off = skew - atomic_load(&store->skew);

	if (!head->date || (off < MAX_SKEW && off > -MAX_SKEW))
		return false;
	atomic_store(&store->skew, skew);
	return true;
}

/* Servers quote what they were sent, but errors end up in logs. */
static bool
quotes_token(struct s3_store *store, const char *message)
{
	enum { PIECE = 12 };
	const struct leat_credentials *credentials;
	bool quotes = false;
	unsigned version;

	if (leat_keeper_lock(store->keeper, &credentials, &version, NULL) != LEAT_OK)
		return true;
	if (strlen(credentials->token) >= PIECE)
		quotes = memmem(message, strlen(message), credentials->token, PIECE) != NULL;
	leat_keeper_unlock(store->keeper);
	return quotes;
}

static enum leat_verdict
explain(struct leat_remote_call *call, const struct leat_http_head *head, const char *code, const char *message)
{
	struct leat_exchange *exchange = &call->exchange;

	if (quotes_token(s3_of(call->remote), message) || quotes_token(s3_of(call->remote), code))
		code = message = "";
	if (head->status == 403 && call->ask.permission)
		snprintf(exchange->why, sizeof(exchange->why),
		         "the server answered 403%s%.60s; the credentials need the permission %s for this bucket",
		         *code ? " " : "", code, call->ask.permission);
	else if (*code)
		snprintf(exchange->why, sizeof(exchange->why), "the server answered %d %.60s%s%.80s", head->status,
		         code, *message ? ": " : "", message);
	else if (head->status == 403)
		snprintf(exchange->why, sizeof(exchange->why),
		         "the server does not allow it (403); check the credentials, the bucket and the region");
	else if (head->status >= 301 && head->status <= 308)
		snprintf(exchange->why, sizeof(exchange->why),
		         "the server sends us to another place (%d); check the endpoint and the region", head->status);
	return LEAT_VERDICT_OVER;
}

/* Failures that come with other statuses than the usual ones. */
static bool
may_pass(const char *code)
{
	static const char *const codes[] = {"RequestTimeout",     "InternalError",    "SlowDown",
	                                    "ServiceUnavailable", "OperationAborted", "ConditionalRequestConflict"};

	for (size_t i = 0; i < sizeof(codes) / sizeof(*codes); i++)
		if (strcmp(code, codes[i]) == 0)
			return true;
	return false;
}

/* What takes long is answered with 200 before it is done, and the failure then follows in the body. */
static bool
is_error(const struct leat_remote_call *call)
{
	const struct leat_str *text = &call->exchange.text;

	return memmem(leat_str_text(text), text->len, "<Error>", 7) ||
	       memmem(leat_str_text(text), text->len, "<Error ", 7);
}

/* True: with another clock or other credentials, a request may be allowed. */
static bool
renews(struct leat_remote_call *call, const struct leat_http_head *head, const char *code)
{
	struct s3_store *store = s3_of(call->remote);

	if (head->status == 403 && learn_clock(store, head))
		return true;
	if (strcmp(code, "ExpiredToken") != 0 && strcmp(code, "TokenRefreshRequired") != 0)
		return false;
	leat_keeper_drop(store->keeper, call->credentials);
	return true;
}

static enum leat_verdict
judge(struct leat_remote_call *call, const struct leat_http_head *head)
{
	struct s3_store *store = s3_of(call->remote);
	struct leat_exchange *exchange = &call->exchange;
	char buf[LEAT_URI], code[64], message[128];
	const char *uri = leat_remote_uri(call, buf);
	struct place place;

	take_apart(uri, &place);
	leat_s3_error_parse(leat_str_text(&exchange->text), exchange->text.len, code, sizeof(code), message,
	                    sizeof(message));
	/* Of several requests at a time, only one brings news. */
	if (learn_region(store, place.bucket, head->extra) ||
	    (head->status >= 301 && head->status <= 308 && *head->extra && call->refreshed++ < REFRESHES))
		return locate(call, uri, NULL) == LEAT_OK ? LEAT_VERDICT_NOW : explain(call, head, code, message);
	if (may_pass(code)) {
		explain(call, head, code, message);
		return LEAT_VERDICT_LATER;
	}
	if (call->refreshed < REFRESHES && renews(call, head, code)) {
		call->refreshed++;
		return LEAT_VERDICT_NOW;
	}
	if (call->asks == LEAT_CALL_HEAD && call->uri && (head->status == 400 || head->status == 403)) {
		call->asks = LEAT_CALL_FIRST_BYTE; /* an answer to HEAD has no body to say why */
		return LEAT_VERDICT_NOW;
	}
	return explain(call, head, code, message);
}

/* ---- lists ---- */

struct listing {
	struct leat_store *store;
	const char *uri; /* as in errors */
	struct place place;
	size_t prefix; /* bytes of the key that all entries begin with */
	leat_object_visit *visit;
	leat_entry_visit *visit_entry;
	void *arg;
	size_t seen, matched; /* entries of this page; in all */
};

static void
make_query(struct leat_str *query, const struct listing *listing, const char *token, bool flat, int most)
{
	if (token) {
		leat_str_add(query, "continuation-token=");
		leat_url_encode(query, token, strlen(token), false);
		leat_str_add(query, "&");
	}
	leat_str_addf(query, "%sencoding-type=url&list-type=2&max-keys=%d&prefix=", flat ? "" : "delimiter=%2F&", most);
	leat_url_encode(query, listing->place.key, listing->prefix, false);
}

/* Visits all pages. */
static enum leat_status
list_pages(struct listing *listing, bool flat, int most, leat_s3_visit *visit, struct leat_err *err)
{
	struct leat_remote *remote = leat_remote_of(listing->store);
	char *token = NULL;
	enum leat_status status = LEAT_OK;
	int empty = 0;
	bool more = true;

	while (more && status == LEAT_OK) {
		struct leat_remote_call call = {0};
		struct leat_str query;
		const char *next = NULL;

		leat_str_init(&query, remote->base.mem, 8 * LEAT_URI);
		make_query(&query, listing, token, flat, most);
		listing->seen = 0;
		status = query.failed ? leat_fail_mem(err, remote->base.mem, query.len, "a list of objects")
		                      : leat_remote_ask(remote, &call,
		                                        &(struct leat_ask){.method = "GET",
		                                                           .uri = listing->uri,
		                                                           .query = query.text,
		                                                           .of_bucket = true},
		                                        MAX_PAGE, err);
		if (status == LEAT_OK)
			status = leat_s3_list_parse(call.exchange.text.text ? call.exchange.text.text : (char[]){""},
			                            call.exchange.text.len, visit, listing, &next, err);
		empty = listing->seen ? 0 : empty + 1;
		if (next && token && strcmp(next, token) == 0)
			empty = MAX_EMPTY_PAGES + 1; /* the same page again */
		leat_free(remote->base.mem, token);
		token = next && status == LEAT_OK ? leat_strdup(remote->base.mem, next) : NULL;
		if (next && status == LEAT_OK && !token)
			status = leat_fail_mem(err, remote->base.mem, strlen(next) + 1, "a list of objects");
		if (next && status == LEAT_OK && empty > MAX_EMPTY_PAGES)
			status = leat_fail(err, LEAT_IO, "the server's list of '%s' does not end", listing->uri);
		more = next && most > 1;
		leat_str_free(&query);
		leat_str_free(&call.exchange.text);
	}
	leat_free(remote->base.mem, token);
	return status;
}

/* A key that ends in a slash stands for a folder, and is no object's name here. */
static bool
is_folder_key(const char *key)
{
	size_t len = strlen(key);

	return len == 0 || key[len - 1] == '/';
}

static enum leat_status
visit_match(void *arg, const struct leat_s3_entry *entry, struct leat_err *err)
{
	struct listing *listing = arg;
	struct leat_object object = {
		.store = listing->store, .size = entry->size, .mtime_ns = entry->modified * 1000000000};
	char uri[LEAT_URI];
	int len;

	listing->seen++;
	if (entry->is_prefix || is_folder_key(entry->key) ||
	    fnmatch(listing->place.key, entry->key, FNM_PATHNAME | FNM_PERIOD) != 0)
		return LEAT_OK;
	len = snprintf(uri, sizeof(uri), "s3://%s/%s", listing->place.bucket, entry->key);
	if (len >= (int)sizeof(uri))
		return leat_fail(err, LEAT_DATA, "a key that matches '%s' is too long", listing->uri);
	leat_remote_version(entry->etag, entry->modified, &object.version);
	object.uri = uri;
	object.uri_len = (size_t)len;
	listing->matched++;
	return listing->visit(listing->arg, &object, err);
}

static enum leat_status
visit_entry(void *arg, const struct leat_s3_entry *found, struct leat_err *err)
{
	struct listing *listing = arg;
	struct leat_object object = {.size = found->size};
	struct leat_entry entry = {.is_folder = found->is_prefix, .size = found->size};
	char folder[LEAT_URI];
	const char *name;
	size_t len;

	if (strlen(found->key) < listing->prefix || memcmp(found->key, listing->place.key, listing->prefix) != 0)
		return leat_fail(err, LEAT_IO, "the server's list of '%s' has other keys", listing->uri);
	entry.name = name = found->key + listing->prefix;
	len = strlen(name);
	leat_remote_version(found->etag, found->modified, &object.version);
	entry.token = leat_object_token(&object);
	listing->seen++;
	listing->matched++;
	if (!listing->visit_entry || (!found->is_prefix && is_folder_key(name)) || len < (found->is_prefix ? 2 : 1))
		return LEAT_OK;
	if (found->is_prefix) {
		snprintf(folder, sizeof(folder), "%.*s", (int)len - 1, name);
		entry.name = folder;
	}
	return listing->visit_entry(listing->arg, &entry, err);
}

static enum leat_status
list_folder(struct leat_store *store, const char *folder, leat_entry_visit *visit, void *arg, struct leat_folder_id *id,
            struct leat_err *err)
{
	struct listing listing = {.store = store, .uri = folder, .visit_entry = visit, .arg = arg};
	const struct s3_store *s3 = s3_of(leat_remote_of(store));
	char prefix[LEAT_URI + 1] = "";
	enum leat_status status;

	take_apart(folder, &listing.place);
	if (*listing.place.key)
		snprintf(prefix, sizeof(prefix), "%s/", listing.place.key);
	listing.place.key = prefix;
	listing.prefix = strlen(prefix);
	*id = (struct leat_folder_id){{leat_hash64(s3->custom ? s3->endpoint.host : "amazon"), leat_hash64(folder)}, 0};
	status = list_pages(&listing, visit == NULL, visit ? 1000 : 1, visit_entry, err);
	if (status == LEAT_OK && !listing.matched && *prefix)
		return leat_fail(err, LEAT_IO, "cannot read the folder '%s': there is no such folder", folder);
	return status;
}

static enum leat_status
fail_folder(const char *uri, struct leat_err *err)
{
	return leat_fail(err, LEAT_INVALID, "'%s' is a folder: name its files, as in '%s/*'", uri, uri);
}

static enum leat_status
look(struct leat_store *store, const char *uri, struct leat_object *object, struct leat_err *err)
{
	struct leat_folder_id id;
	struct leat_err why;
	struct place place;
	enum leat_status status;

	leat_err_clear(&why);
	take_apart(uri, &place);
	if (!*place.key) {
		*object = (struct leat_object){.store = store, .uri = uri, .uri_len = strlen(uri)};
		return fail_folder(uri, err);
	}
	status = leat_remote_look(store, uri, object, &why);
	if (status == LEAT_OK)
		return status;
	if (status == LEAT_DATA && list_folder(store, uri, NULL, NULL, &id, NULL) == LEAT_OK)
		return fail_folder(uri, err);
	return leat_fail_as(err, &why);
}

/* With a wildcard in the last part of the name only, folders below need not be listed. */
static enum leat_status
list_matches(struct leat_store *store, const char *pattern, leat_object_visit *visit, void *arg, struct leat_err *err)
{
	struct listing listing = {.store = store, .uri = pattern, .visit = visit, .arg = arg};
	enum leat_status status;

	take_apart(pattern, &listing.place);
	listing.prefix = strcspn(listing.place.key, "*?[\\");
	status = list_pages(&listing, strchr(listing.place.key + listing.prefix, '/') != NULL, 1000, visit_match, err);
	if (status == LEAT_OK && !listing.matched)
		return LEAT_AGAIN;
	return status;
}

static enum leat_status
list(struct leat_store *store, const char *pattern, leat_object_visit *visit, void *arg, struct leat_err *err)
{
	bool is_pattern = strpbrk(pattern, "*?[") != NULL;
	struct leat_object object;
	struct leat_err why;
	enum leat_status status;

	leat_err_clear(&why);
	status = is_pattern ? leat_remote_look(store, pattern, &object, NULL) : look(store, pattern, &object, &why);
	if (status == LEAT_OK)
		return visit(arg, &object, err);
	return is_pattern ? list_matches(store, pattern, visit, arg, err) : leat_remote_fail_list(&why, err);
}

/* ---- the store ---- */

static void
close_store(struct leat_store *base)
{
	struct s3_store *store = s3_of(leat_remote_of(base));

	leat_remote_close(&store->remote);
	while (store->bucket) {
		struct bucket *bucket = store->bucket;

		store->bucket = bucket->next;
		leat_free(base->mem, bucket);
	}
	pthread_rwlock_destroy(&store->lock);
	explicit_bzero(store->key, sizeof(store->key));
	leat_keeper_close(store->keeper);
	leat_free(base->mem, store);
}

static void
set_endpoint(struct s3_store *store)
{
	struct leat_storage *storage = &store->remote.storage;

	if (!*storage->region)
		strcpy(storage->region, "us-east-1");
	store->custom = *storage->endpoint != '\0';
	store->in_path = storage->style == LEAT_STYLE_AUTO ? store->custom : storage->style == LEAT_STYLE_PATH;
	if (store->custom)
		leat_url_parse(storage->endpoint, &store->endpoint);
}

static const struct leat_remote_kind remote_kind = {
	.any_coding = true,
	.locate = locate,
	.compose = compose,
	.judge = judge,
	.is_error = is_error,
};

static enum leat_status
open_store(const struct leat_store_kind *kind, const struct leat_storage *given, struct leat_mem *mem,
           struct leat_store **result, struct leat_err *err)
{
	struct s3_store *store;
	struct leat_storage storage = *given;
	enum leat_status status = leat_storage_complete(&storage, true, mem, err);

	*result = NULL;
	if (status == LEAT_OK)
		status = leat_profile_settings(&storage, mem, err);
	if (status != LEAT_OK)
		return status;
	store = leat_alloc(mem, sizeof(*store));
	if (!store)
		return leat_fail_mem(err, mem, sizeof(*store), "access to S3");
	pthread_rwlock_init(&store->lock, NULL);
	status = leat_remote_open(&store->remote, kind, &remote_kind, &storage, mem, err);
	set_endpoint(store);
	if (status == LEAT_OK)
		status = leat_keeper_open(&store->keeper, &store->remote.storage, err);
	if (status != LEAT_OK)
		close_store(&store->remote.base);
	else
		*result = &store->remote.base;
	return status;
}

const struct leat_store_kind leat_store_s3 = {
	.scheme = "s3",
	.remote = true,
	.hides = true,
	.doc = "Amazon S3 and compatible object stores: s3://BUCKET/KEY.",
	.threads = LEAT_REMOTE_THREADS,
	.in_flight = LEAT_WIRE_IN_FLIGHT,
	.request_cost = LEAT_REMOTE_REQUEST_COST,
	.open = open_store,
	.close = close_store,
	.resolve = resolve,
	.list = list,
	.list_folder = list_folder,
	.look = look,
	.load = leat_remote_load,
	.submit = leat_remote_submit,
	.cancel = leat_remote_cancel,
	.interrupt = leat_remote_interrupt,
	.disk_stats = leat_remote_disk_stats,
	.begin = leat_s3_begin,
	.append = leat_s3_append,
	.patch = leat_s3_patch,
	.finish = leat_s3_finish,
	.commit = leat_s3_commit,
	.abort = leat_s3_abort,
	.remove = leat_s3_remove,
};
