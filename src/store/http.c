/* http.c - the stores http: and https:, which are only read
 *
 * A name is a URL, as a browser takes it. Servers cannot list, so every file is named; a pattern
 * is an error that says so. Redirects are followed for each request, never from https to http.
 * No credentials are sent: a URL that carries its own (a signed query) works, and errors show it
 * without its query.
 *
 * Threads: any. */
#include "store/remote.h"

#include <stdio.h>

struct http_store {
	struct leat_remote remote;
};

/* ---- names ---- */

static enum leat_status
resolve(struct leat_store *store, const char *text, char **uri, struct leat_err *err)
{
	struct leat_url url;
	const char *why = leat_url_parse(text, &url);
	char buf[LEAT_URI];

	if (why)
		return leat_fail(err, LEAT_INVALID, "'%s' is not a URL: %s",
		                 leat_remote_shown(leat_remote_of(store), text, buf), why);
	return leat_remote_copy_uri(store, text, uri, err);
}

static enum leat_status
locate(struct leat_remote_call *call, const char *uri, struct leat_err *err)
{
	struct leat_mem *mem = call->remote->base.mem;
	struct leat_url url;
	const char *why = leat_url_parse(call->moved ? call->moved : uri, &url);
	char buf[LEAT_URI];

	if (why)
		return leat_fail(err, LEAT_INVALID, "'%s' is not a URL: %s", leat_remote_shown(call->remote, uri, buf),
		                 why);
	call->exchange.origin = leat_wire_origin(call->remote->wire, url.tls, url.host, url.port);
	return call->exchange.origin ? LEAT_OK
	                             : leat_fail_mem(err, mem, sizeof(struct leat_origin), "network connections");
}

/* ---- requests and answers ---- */

static enum leat_status
compose(struct leat_remote_call *call, const struct leat_ask *ask, struct leat_str *out)
{
	struct leat_url url;

	leat_url_parse(call->moved ? call->moved : ask->uri, &url);
	leat_str_add(out, ask->method);
	leat_str_add(out, " ");
	leat_url_add_target(out, &url);
	leat_str_add(out, " HTTP/1.1\r\nHost: ");
	leat_url_add_host(out, url.tls, url.host, url.port);
	leat_str_add(out, "\r\nUser-Agent: leat\r\nAccept: */*\r\nAccept-Encoding: identity\r\n");
	leat_str_add(out, ask->fields ? ask->fields : "");
	leat_str_add(out, "\r\n");
	return LEAT_OK;
}

static enum leat_verdict
fail_redirect(struct leat_remote_call *call, const char *why)
{
	snprintf(call->exchange.why, sizeof(call->exchange.why), "the server sends us to %s", why);
	return LEAT_VERDICT_OVER;
}

static enum leat_verdict
follow(struct leat_remote_call *call, const struct leat_http_head *head)
{
	struct leat_mem *mem = call->remote->base.mem;
	bool was_tls = call->exchange.origin->tls;
	char buf[LEAT_URI];
	const char *uri = leat_remote_uri(call, buf);
	struct leat_str to;

	leat_str_init(&to, mem, 2 * LEAT_URI);
	leat_url_join(&to, call->moved ? call->moved : uri, head->location);
	leat_free(mem, call->moved);
	call->moved = leat_str_take(&to);
	leat_str_free(&to);
	if (!call->moved)
		return fail_redirect(call, "a place whose name is too long");
	if (locate(call, uri, NULL) != LEAT_OK)
		return fail_redirect(call, "a place that is not a URL");
	if (was_tls && !call->exchange.origin->tls)
		return fail_redirect(call, "a place without TLS");
	return LEAT_VERDICT_NOW;
}

/* Servers that refuse HEAD, and URLs signed for GET only, are asked for the first byte. */
static enum leat_verdict
judge(struct leat_remote_call *call, const struct leat_http_head *head)
{
	int status = head->status;

	if ((status >= 301 && status <= 303) || status == 307 || status == 308)
		return *head->location ? follow(call, head) : fail_redirect(call, "no place at all");
	if (call->asks == LEAT_CALL_HEAD && (status == 403 || status == 405 || status == 501)) {
		call->asks = LEAT_CALL_FIRST_BYTE;
		return LEAT_VERDICT_NOW;
	}
	if (status == 401 || status == 403)
		snprintf(call->exchange.why, sizeof(call->exchange.why), "the server does not allow it (%d)", status);
	return LEAT_VERDICT_OVER;
}

/* ---- lists ---- */

static enum leat_status
list(struct leat_store *store, const char *pattern, leat_object_visit *visit, void *arg, struct leat_err *err)
{
	struct leat_object object;
	struct leat_err why;
	enum leat_status status;
	char buf[LEAT_URI];

	leat_err_clear(&why);
	status = leat_remote_look(store, pattern, &object, &why);
	if (status == LEAT_OK)
		return visit(arg, &object, err);
	if (status == LEAT_DATA && strpbrk(pattern, "*{"))
		return leat_fail(err, LEAT_IO, "'%s' does not exist, and web servers cannot list: name every file",
		                 leat_remote_shown(leat_remote_of(store), pattern, buf));
	return leat_remote_fail_list(&why, err);
}

static enum leat_status
list_folder(struct leat_store *store, const char *folder, leat_entry_visit *visit, void *arg, struct leat_folder_id *id,
            struct leat_err *err)
{
	char buf[LEAT_URI];

	(void)visit;
	(void)arg;
	*id = (struct leat_folder_id){0};
	return leat_fail(err, LEAT_IO, "cannot list '%s': web servers cannot list folders",
	                 leat_remote_shown(leat_remote_of(store), folder, buf));
}

/* ---- the stores ---- */

static void
close_store(struct leat_store *store)
{
	leat_remote_close(leat_remote_of(store));
	leat_free(store->mem, store);
}

static const struct leat_remote_kind remote_kind = {
	.hides_query = true,
	.locate = locate,
	.compose = compose,
	.judge = judge,
};

static enum leat_status
open_store(const struct leat_store_kind *kind, const struct leat_storage *given, struct leat_mem *mem,
           struct leat_store **result, struct leat_err *err)
{
	struct http_store *store;
	struct leat_storage storage = *given;
	enum leat_status status = leat_storage_complete(&storage, false, mem, err);

	*result = NULL;
	if (status != LEAT_OK)
		return status;
	store = leat_alloc(mem, sizeof(*store));
	if (!store)
		return leat_fail_mem(err, mem, sizeof(*store), "access to web servers");
	status = leat_remote_open(&store->remote, kind, &remote_kind, &storage, mem, err);
	if (status != LEAT_OK)
		close_store(&store->remote.base);
	else
		*result = &store->remote.base;
	return status;
}

#define HTTP_STORE(name, text)                                                                                         \
	.scheme = name, .doc = text, .remote = true, .hides = true, .threads = LEAT_REMOTE_THREADS,                    \
	.in_flight = LEAT_WIRE_IN_FLIGHT, .request_cost = LEAT_REMOTE_REQUEST_COST, .open = open_store,                \
	.close = close_store, .resolve = resolve, .list = list, .list_folder = list_folder, .look = leat_remote_look,  \
	.load = leat_remote_load, .submit = leat_remote_submit, .cancel = leat_remote_cancel,                          \
	.interrupt = leat_remote_interrupt, .disk_stats = leat_remote_disk_stats

const struct leat_store_kind leat_store_http = {
	HTTP_STORE("http", "Files on a web server: http://HOST/PATH; read-only."),
};

const struct leat_store_kind leat_store_https = {
	HTTP_STORE("https", "Files on a web server, encrypted: https://HOST/PATH; read-only."),
};
