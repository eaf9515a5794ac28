/* wire_link.c - one connection of the wire: connecting, sending a request, reading the answer
 *
 * libcurl makes the connection (CURLOPT_CONNECT_ONLY): names, proxies, TLS. Without TLS the
 * socket is then duplicated and libcurl is done with it, so bodies are read with readv straight
 * into the caller's memory. With TLS, bytes come from curl_easy_recv. */
#include "store/wire_loop.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
	FIRST_READ = 2048,     /* a head, and as little of the body as possible */
	SMALL_BODY = 8 * 1024, /* copying it is cheaper than another system call */
	MAX_REQUEST = 64 * 1024,
	OTHER_BODY = 16 * 1024, /* of a body that nobody wants */
	SLOWEST = 4 * 1024,     /* bytes per second */
	ONE_TURN = 1024 * 1024, /* bytes read or sent before others get their turn */
	ONE_SEND = 128 * 1024,  /* bytes sent at once: with TLS, no less is progress */
	SLOW_FACTOR = 15,       /* for exchanges that are `slow` */
	CONNECT_MS = 10 * 1000,
	HOLD_OFF_NS = 1000 * 1000 * 1000, /* after a failed connection, if others work */
	MAX_SPARED = 16,                  /* attempts that do not count */
};

/* ---- the list of idle connections ---- */

static void
enter_idle(struct leat_link *link)
{
	struct leat_wire_loop *loop = link->loop;

	link->state = LEAT_LINK_IDLE;
	link->newer = NULL;
	link->older = loop->newest_idle;
	if (link->older)
		link->older->newer = link;
	loop->newest_idle = link;
}

static void
leave_idle(struct leat_link *link)
{
	*(link->newer ? &link->newer->older : &link->loop->newest_idle) = link->older;
	if (link->older)
		link->older->newer = link->newer;
}

/* ---- connecting ---- */

/* libcurl's own sockets would be inherited by the programs that we and others start. */
static curl_socket_t
open_socket(void *arg, curlsocktype purpose, struct curl_sockaddr *address)
{
	(void)arg;
	(void)purpose;
	return socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
}

static void
set_up(struct leat_link *link, const char *url)
{
	const struct leat_wire *wire = link->loop->wire;
	const struct leat_curl *curl = wire->curl;
	CURL *easy = link->easy;
	uint64_t ms = wire->settings.timeout_ns / 1000000;

	curl->easy_setopt(easy, CURLOPT_URL, url);
	curl->easy_setopt(easy, CURLOPT_CONNECT_ONLY, 1L);
	curl->easy_setopt(easy, CURLOPT_PRIVATE, (void *)link);
	curl->easy_setopt(easy, CURLOPT_ERRORBUFFER, link->error);
	curl->easy_setopt(easy, CURLOPT_OPENSOCKETFUNCTION, open_socket);
	curl->easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
	curl->easy_setopt(easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
	curl->easy_setopt(easy, CURLOPT_SSL_ENABLE_ALPN, 0L);
	curl->easy_setopt(easy, CURLOPT_HTTPPROXYTUNNEL, 1L);
	curl->easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, (long)(ms < CONNECT_MS ? ms : CONNECT_MS));
	curl->easy_setopt(easy, CURLOPT_TCP_KEEPALIVE, 1L);
	curl->easy_setopt(easy, CURLOPT_BUFFERSIZE, 1024L);
	curl->easy_setopt(easy, CURLOPT_DNS_SHUFFLE_ADDRESSES, 1L);
	/* Otherwise it closes connections that it has not used for two minutes. */
	curl->easy_setopt(easy, CURLOPT_MAXAGE_CONN, 1000000000L);
#if LIBCURL_VERSION_NUM >= 0x075700
	curl->easy_setopt(easy, CURLOPT_QUICK_EXIT, 1L); /* do not wait for a resolver that takes long */
#endif
	leat_curl_set_way(curl, easy, wire->settings.storage);
}

struct leat_link *
leat_link_open(struct leat_wire_loop *loop, struct leat_origin *origin)
{
	struct leat_wire *wire = loop->wire;
	struct leat_link *link = leat_alloc(wire->mem, sizeof(*link));
	bool bracketed = strchr(origin->host, ':') != NULL;
	char url[LEAT_HOST + 32];

	if (!link)
		return NULL;
	link->easy = wire->curl->easy_init();
	if (!link->easy) {
		leat_free(wire->mem, link);
		return NULL;
	}
	link->loop = loop;
	link->origin = origin;
	link->fd = -1;
	link->state = LEAT_LINK_CONNECTING;
	leat_str_init(&link->request, wire->mem, MAX_REQUEST);
	link->request.secret = true; /* the token of a session is in it */
	snprintf(url, sizeof(url), "http%s://%s%s%s:%u/", origin->tls ? "s" : "", bracketed ? "[" : "", origin->host,
	         bracketed ? "]" : "", origin->port);
	set_up(link, url);
	link->index = loop->links;
	loop->link[loop->links++] = link;
	leat_hosts_open(link);
	loop->connecting++;
	origin->loop[loop->index].connecting++;
	wire->curl->multi_add_handle(loop->multi, link->easy);
	return link;
}

static void
end_connecting(struct leat_link *link)
{
	if (link->state != LEAT_LINK_CONNECTING || link->is_stuck)
		return;
	link->loop->connecting--;
	link->origin->loop[link->loop->index].connecting--;
}

static void
let_go_of_libcurl(struct leat_link *link)
{
	const struct leat_curl *curl = link->loop->wire->curl;

	if (!link->easy)
		return;
	curl->multi_remove_handle(link->loop->multi, link->easy);
	curl->easy_cleanup(link->easy);
	link->easy = NULL;
}

void
leat_link_close(struct leat_link *link)
{
	struct leat_wire_loop *loop = link->loop;

	end_connecting(link);
	if (link->twin)
		link->twin->twin = NULL;
	if (link->wants_hedge)
		leat_hedge_unwant(link);
	if (link->state == LEAT_LINK_IDLE)
		leave_idle(link);
	if (link->state != LEAT_LINK_CONNECTING) {
		link->origin->loop[loop->index].links--;
		atomic_fetch_sub_explicit(&link->origin->open, 1, memory_order_relaxed);
	}
	if (link->exchange) {
		loop->busy--;
		leat_origin_ended(link, link->result);
		leat_hosts_end(link, false);
	}
	if (link->fd >= 0)
		epoll_ctl(loop->epoll, EPOLL_CTL_DEL, link->fd, NULL);
	if (link->fd >= 0 && !link->easy)
		close(link->fd);
	let_go_of_libcurl(link);
	leat_hosts_closed(link);
	loop->link[link->index] = loop->link[--loop->links];
	loop->link[link->index]->index = link->index;
	loop->closed++;
	leat_str_free(&link->request);
	leat_free(loop->wire->mem, link);
}

/* No connection can be made. What waits for one waits on, for a probe to succeed; unless this is final, or it may be
 * tried once only. */
static void
fail_waiting(struct leat_wire_loop *loop, struct leat_origin *origin, const char *why, bool final)
{
	struct leat_exchange *waiting = leat_loop_take_all(loop, origin), *next;

	if (!final)
		leat_origin_unreachable(origin, why);
	for (; waiting; waiting = next) {
		next = waiting->next;
		waiting->once |= final;
		if (waiting->once)
			leat_exchange_failed(loop, waiting, why, false, 0);
		else
			leat_loop_put(loop, waiting);
	}
}

/* Other connections to the same place work, so this may be one more than the server wants: no new ones for a while.
 * False: there are no others. */
static bool
hold_off(struct leat_wire_loop *loop, struct leat_origin *origin)
{
	struct leat_origin_loop *own = &origin->loop[loop->index];

	if (atomic_load_explicit(&origin->open, memory_order_relaxed) == 0)
		return false;
	own->hold_until_ns = leat_now() + HOLD_OFF_NS;
	return true;
}

static void
fail_connecting(struct leat_link *link, CURLcode code)
{
	struct leat_wire_loop *loop = link->loop;
	struct leat_origin *origin = link->origin;
	bool final = code == CURLE_PEER_FAILED_VERIFICATION || code == CURLE_SSL_CACERT_BADFILE;
	bool others = leat_hosts_failed(link);
	char why[LEAT_LINK_ERROR];

	snprintf(why, sizeof(why), "%s", link->error[0] ? link->error : loop->wire->curl->easy_strerror(code));
	if (strstr(why, "proxy") && strchr(why, '@')) /* libcurl quotes the setting, which may have a password */
		strcpy(why, "the proxy is not a URL that makes sense; check https_proxy, http_proxy and all_proxy");
	leat_link_close(link);
	if (others)
		return;
	if (final || !hold_off(loop, origin))
		fail_waiting(loop, origin, why, final);
}

void
leat_link_connected(struct leat_link *link, CURLcode code)
{
	struct leat_wire_loop *loop = link->loop;
	struct epoll_event event = {.events = EPOLLIN, .data.ptr = link};
	curl_socket_t fd = CURL_SOCKET_BAD;

	if (code == CURLE_OK)
		code = loop->wire->curl->easy_getinfo(link->easy, CURLINFO_ACTIVESOCKET, &fd);
	if (code == CURLE_OK && fd == CURL_SOCKET_BAD)
		code = CURLE_COULDNT_CONNECT;
	if (code != CURLE_OK) {
		fail_connecting(link, code);
		return;
	}
	end_connecting(link);
	leat_hosts_connected(link, fd);
	link->origin->loop[loop->index].links++;
	leat_origin_connected(link->origin, link->begin_ns);
	link->fd = link->origin->tls ? fd : fcntl(fd, F_DUPFD_CLOEXEC, 0);
	enter_idle(link);
	if (!link->origin->tls)
		let_go_of_libcurl(link);
	if (link->fd < 0 || epoll_ctl(loop->epoll, EPOLL_CTL_ADD, link->fd, &event) != 0)
		leat_link_fail(link, strerror(errno), false);
}

static bool
others_work(const struct leat_link *link)
{
	return atomic_load_explicit(&link->origin->open, memory_order_relaxed) > 1;
}

void
leat_link_fail(struct leat_link *link, const char *why, bool closed)
{
	struct leat_wire_loop *loop = link->loop;
	struct leat_exchange *exchange = link->exchange;
	struct leat_origin *origin = link->origin;
	bool unheard = closed && !link->heard, has_twin = link->twin != NULL, used = link->used;
	bool spared = unheard && exchange && exchange->spared < MAX_SPARED && (used || others_work(link));
	char text[LEAT_WIRE_WHY];

	snprintf(text, sizeof(text), "%s", why);
	if (!spared && !has_twin)
		link->result = LEAT_PACE_FAILED;
	link->is_lost = !used || !unheard;
	leat_link_close(link);
	/* The server may close an idle connection just when we use it: that is nobody's fault. Nor is it the request's
	 * if a new connection is one too many. But a request that servers always answer so must not go on for ever. */
	if (has_twin)
		return;
	if (spared && !used)
		hold_off(loop, origin);
	if (exchange) {
		exchange->spared += spared;
		leat_exchange_failed(loop, exchange, text, spared, 0);
	} else if (!hold_off(loop, origin))
		fail_waiting(loop, origin, text, false);
}

/* The answer makes no sense. That will hardly pass. */
static void
refuse(struct leat_link *link, const char *why)
{
	char text[LEAT_WIRE_WHY];

	snprintf(text, sizeof(text), "the answer of the server makes no sense: %s", why);
	link->exchange->once |= ++link->exchange->refused > 2;
	leat_link_fail(link, text, false);
}

/* ---- bytes in and out ---- */

enum { WOULD_WAIT = -1, BROKEN = -2 };

static ssize_t
broken(struct leat_link *link, const char *why)
{
	snprintf(link->error, sizeof(link->error), "%s", why);
	return BROKEN;
}

static ssize_t
send_bytes(struct leat_link *link, const char *bytes, size_t len)
{
	if (link->easy) {
		size_t sent = 0;
		CURLcode code = link->loop->wire->curl->easy_send(link->easy, bytes, len, &sent);

		if (code != CURLE_OK && code != CURLE_AGAIN)
			return broken(link, "the connection was lost");
		return code == CURLE_OK ? (ssize_t)sent : WOULD_WAIT;
	}
	ssize_t sent = send(link->fd, bytes, len, MSG_NOSIGNAL);

	if (sent >= 0)
		return sent;
	return errno == EAGAIN || errno == EINTR ? WOULD_WAIT : broken(link, strerror(errno));
}

/* 0: the server has closed the connection. */
static ssize_t
receive(struct leat_link *link, struct iovec *iov, int iovs)
{
	if (link->easy) {
		size_t got = 0;
		CURLcode code = link->loop->wire->curl->easy_recv(link->easy, iov->iov_base, iov->iov_len, &got);

		if (code != CURLE_OK && code != CURLE_AGAIN)
			return broken(link, "the connection was lost");
		return code == CURLE_OK ? (ssize_t)got : WOULD_WAIT;
	}
	ssize_t got = readv(link->fd, iov, iovs);

	if (got >= 0)
		return got;
	return errno == EAGAIN || errno == EINTR ? WOULD_WAIT : broken(link, strerror(errno));
}

/* ---- sending ---- */

static void
watch_write(struct leat_link *link, bool on)
{
	struct epoll_event event = {.events = EPOLLIN | (on ? EPOLLOUT : 0), .data.ptr = link};

	if (link->watches_write != on)
		epoll_ctl(link->loop->epoll, EPOLL_CTL_MOD, link->fd, &event);
	link->watches_write = on;
}

static void read_early_answer(struct leat_link *link);

static bool
is_sent(const struct leat_link *link)
{
	return link->sent == link->request.len + link->exchange->body_len;
}

/* The request, then its body. False: the connection is gone. */
static bool
send_more(struct leat_link *link)
{
	const struct leat_exchange *exchange = link->exchange;
	size_t head = link->request.len, total = head + exchange->body_len, begin = link->sent;
	ssize_t sent = 0;

	while (link->sent < total && link->sent - begin < ONE_TURN) {
		bool in_head = link->sent < head;
		size_t len = (in_head ? head : total) - link->sent;
		const char *from =
			in_head ? link->request.text + link->sent : (const char *)exchange->body + (link->sent - head);

		sent = send_bytes(link, from, len < ONE_SEND ? len : ONE_SEND);
		if (sent < 0)
			break;
		link->sent += (size_t)sent;
		link->progress_ns = leat_now();
	}
	if (sent == BROKEN) {
		read_early_answer(link);
		return false;
	}
	watch_write(link, link->sent < total);
	if (link->sent == total)
		link->state = LEAT_LINK_HEAD;
	return true;
}

void
leat_link_begin(struct leat_link *link, struct leat_exchange *exchange)
{
	struct leat_wire_loop *loop = link->loop;
	enum leat_status status;

	link->request.len = 0;
	link->request.failed = false;
	exchange->text.len = 0;
	exchange->text.failed = exchange->cut = false;
	exchange->got = 0;
	exchange->thread = loop->index;
	status = exchange->kind->compose(exchange, &link->request);
	if (status == LEAT_OK && link->request.failed) {
		exchange->kind->fail(exchange, LEAT_NOMEM, "there is no memory for a request");
		status = LEAT_NOMEM;
	}
	if (status == LEAT_AGAIN) {
		leat_exchange_postpone(loop, exchange);
		return;
	}
	if (status != LEAT_OK) {
		leat_exchange_over(loop, exchange, status == LEAT_DONE ? LEAT_OK : status);
		return;
	}
	exchange->postponed_since_ns = 0;
	link->exchange = exchange;
	leat_hedge_begin(link);
	leat_link_send(link, exchange);
}

void
leat_link_send(struct leat_link *link, struct leat_exchange *exchange)
{
	leave_idle(link);
	link->state = LEAT_LINK_SENDING;
	link->exchange = exchange;
	link->loop->busy++;
	link->sent = 0;
	link->heard = false;
	link->begin_ns = link->progress_ns = leat_now();
	link->given_up = false;
	leat_origin_began(link);
	link->is_lost = false;
	leat_hosts_begin(link);
	leat_http_head_init(&link->head, exchange->extra_name);
	send_more(link);
}

/* ---- the answer ---- */

static void
end_answer(struct leat_link *link)
{
	struct leat_wire_loop *loop = link->loop;
	struct leat_exchange *exchange = link->exchange;
	/* A server may refuse a request before it has seen all of its body; the rest is not sent. */
	bool again = link->head.keep_alive && link->state == LEAT_LINK_BODY && link->body != LEAT_BODY_TO_END &&
	             !exchange->cut && is_sent(link);

	exchange->took_ns += leat_now() - link->begin_ns;
	leat_origin_ended(link, leat_origin_result(link->head.status));
	leat_hosts_end(link, true);
	link->exchange = NULL;
	loop->busy--;
	link->used = true;
	leat_exchange_answered(loop, exchange, &link->head);
	if (again)
		enter_idle(link);
	else
		leat_link_close(link);
}

/* The free part of the iovs, no longer than `most`. */
static int
rest_of_iov(const struct leat_exchange *exchange, uint64_t most, struct iovec rest[LEAT_READ_PARTS])
{
	uint64_t skip = exchange->got;
	int parts = 0;

	for (int i = 0; i < exchange->iovs && most; i++) {
		size_t len = exchange->iov[i].iov_len;

		if (skip >= len) {
			skip -= len;
			continue;
		}
		rest[parts].iov_base = (char *)exchange->iov[i].iov_base + skip;
		rest[parts].iov_len = len - skip < most ? (size_t)(len - skip) : (size_t)most;
		most -= rest[parts++].iov_len;
		skip = 0;
	}
	return parts;
}

/* Bytes of the body, at most as many as there is room for. */
static void
deliver(struct leat_link *link, const char *bytes, size_t len)
{
	struct leat_exchange *exchange = link->exchange;
	size_t limit = exchange->text.max ? exchange->text.max - 1 : 0, copied = 0, room;
	struct iovec rest[LEAT_READ_PARTS];

	if (link->to_iov) {
		int parts = rest_of_iov(exchange, len, rest);

		for (int i = 0; i < parts; copied += rest[i++].iov_len)
			memcpy(rest[i].iov_base, bytes + copied, rest[i].iov_len);
	} else {
		room = limit - exchange->text.len;
		leat_str_addn(&exchange->text, bytes, len < room ? len : room);
		exchange->cut |= exchange->got + len > (limit > OTHER_BODY ? limit : OTHER_BODY);
	}
	exchange->got += len;
}

/* False: the connection is gone. */
static bool
begin_body(struct leat_link *link)
{
	struct leat_exchange *exchange = link->exchange;
	const struct leat_http_head *head = &link->head;
	bool none = exchange->head_only || head->status == 204 || head->status == 304;

	if (!leat_hedge_claim(link))
		return false;
	link->state = LEAT_LINK_BODY;
	link->left = none ? 0 : head->length;
	link->body = head->chunked ? LEAT_BODY_CHUNKS : LEAT_BODY_LENGTH;
	if (!none && !head->chunked && !head->has_length)
		link->body = LEAT_BODY_TO_END;
	if (none)
		link->body = LEAT_BODY_LENGTH;
	link->to_iov = !none && exchange->kind->wants && exchange->kind->wants(exchange, head);
	leat_chunks_init(&link->chunks);
	if (!link->to_iov)
		return true;
	if (head->encoded)
		refuse(link, "the body is compressed, which was not asked for");
	else if (head->has_length && head->length != exchange->want)
		refuse(link, "the body is not as long as what was asked for");
	else
		return true;
	return false;
}

/* True: the body is complete. */
static bool
take_chunks(struct leat_link *link, const char *bytes, size_t len)
{
	enum leat_parsed part = LEAT_PARSED_MORE;

	while (len && part == LEAT_PARSED_MORE) {
		struct leat_exchange *exchange = link->exchange;
		size_t taken, body;

		part = leat_chunks_take(&link->chunks, bytes, len, &taken, &body);
		if (part == LEAT_PARSED_BAD || (link->to_iov && body > exchange->want - exchange->got)) {
			exchange->cut = true;
			link->head.fault = part == LEAT_PARSED_BAD ? "its chunks are damaged" : "the body is too long";
			return true;
		}
		deliver(link, bytes + taken, body);
		if (exchange->cut)
			return true;
		bytes += taken + body;
		len -= taken + body;
	}
	if (part == LEAT_PARSED_END && len)
		link->head.keep_alive = false;
	return part == LEAT_PARSED_END;
}

/* True: the body is complete. */
static bool
take_body(struct leat_link *link, const char *bytes, size_t len)
{
	if (link->body == LEAT_BODY_CHUNKS)
		return take_chunks(link, bytes, len);
	if (link->body == LEAT_BODY_LENGTH && len > link->left) {
		len = (size_t)link->left; /* the server sends more than it said */
		link->head.keep_alive = false;
	}
	if (link->body == LEAT_BODY_TO_END && link->to_iov && len > link->exchange->want - link->exchange->got) {
		link->head.fault = "the body is too long";
		return true;
	}
	deliver(link, bytes, len);
	link->left -= link->body == LEAT_BODY_LENGTH ? len : 0;
	return link->exchange->cut || (link->body == LEAT_BODY_LENGTH && link->left == 0);
}

/* Bytes have come; the exchange may be over afterwards. False: nothing more to read now. */
static bool
take_bytes(struct leat_link *link, const char *bytes, size_t len)
{
	size_t taken = 0;

	if (link->state != LEAT_LINK_BODY) {
		enum leat_parsed part = leat_http_head_take(&link->head, bytes, len, &taken);

		if (part == LEAT_PARSED_BAD) {
			refuse(link, link->head.fault);
			return false;
		}
		if (part == LEAT_PARSED_MORE)
			return true;
		if (!begin_body(link))
			return false;
	}
	if (!take_body(link, bytes + taken, len - taken))
		return true;
	if (link->head.fault)
		refuse(link, link->head.fault);
	else if (link->to_iov && link->exchange->got != link->exchange->want)
		refuse(link, "the body is too short");
	else
		end_answer(link);
	return false;
}

static void
end_of_stream(struct leat_link *link)
{
	const struct leat_exchange *exchange = link->exchange;

	if (link->state == LEAT_LINK_BODY && link->body == LEAT_BODY_TO_END &&
	    (!link->to_iov || exchange->got == exchange->want))
		end_answer(link);
	else
		leat_link_fail(link,
		               link->heard ? "the server closed the connection in the middle of its answer"
		                           : "the server closed the connection",
		               true);
}

/* What receive returned is not bytes: they are still to come, or the connection is gone. */
static void
receive_failed(struct leat_link *link, ssize_t got)
{
	if (got == 0)
		end_of_stream(link);
	else if (got != WOULD_WAIT)
		leat_link_fail(link, link->error, true);
}

/* Straight into the caller's memory. False: nothing more to read now. */
static bool
read_straight(struct leat_link *link, size_t *budget)
{
	struct leat_exchange *exchange = link->exchange;
	struct iovec rest[LEAT_READ_PARTS];
	ssize_t got = receive(link, rest, rest_of_iov(exchange, link->left, rest));

	if (got <= 0) {
		receive_failed(link, got);
		return false;
	}
	link->progress_ns = leat_now();
	exchange->got += (uint64_t)got;
	link->left -= (uint64_t)got;
	*budget -= (size_t)got < *budget ? (size_t)got : *budget;
	if (link->left > 0)
		return true;
	end_answer(link);
	return false;
}

static bool
read_by_way_of_scratch(struct leat_link *link)
{
	const struct leat_exchange *exchange = link->exchange;
	bool little = link->state != LEAT_LINK_BODY && exchange->want > SMALL_BODY;
	struct iovec iov = {link->loop->scratch, little ? FIRST_READ : LEAT_WIRE_SCRATCH};
	ssize_t got = receive(link, &iov, 1);

	if (got <= 0) {
		receive_failed(link, got);
		return false;
	}
	link->progress_ns = leat_now();
	if (!link->heard)
		leat_hedge_heard(link, link->progress_ns);
	link->heard = true;
	return take_bytes(link, link->loop->scratch, (size_t)got);
}

/* With TLS, all there is: what libcurl has decrypted already, epoll does not know of. */
static void
read_answer(struct leat_link *link)
{
	size_t budget = ONE_TURN;
	bool more = true, tls = link->easy != NULL;

	while (more && (budget || tls))
		more = link->state == LEAT_LINK_BODY && link->to_iov && link->body == LEAT_BODY_LENGTH
		               ? read_straight(link, &budget)
		               : read_by_way_of_scratch(link);
}

/* The server takes no more of the request. It may have said why before it closed the connection. */
static void
read_early_answer(struct leat_link *link)
{
	struct iovec iov = {link->loop->scratch, LEAT_WIRE_SCRATCH};
	char why[LEAT_LINK_ERROR];
	ssize_t got;

	snprintf(why, sizeof(why), "%s", link->error);
	got = receive(link, &iov, 1);
	if (got <= 0) {
		leat_link_fail(link, why, true);
		return;
	}
	watch_write(link, false);
	link->state = LEAT_LINK_HEAD;
	link->heard = true;
	if (take_bytes(link, link->loop->scratch, (size_t)got))
		read_answer(link);
}

void
leat_link_event(struct leat_link *link, unsigned events)
{
	if (link->state == LEAT_LINK_CONNECTING)
		return;
	if (link->state == LEAT_LINK_IDLE) {
		struct iovec iov = {link->loop->scratch, 1};

		/* Closed, or bytes that nobody asked for; unless they are TLS's own, such as a session ticket. */
		if (receive(link, &iov, 1) != WOULD_WAIT)
			leat_link_close(link);
		return;
	}
	if (link->state == LEAT_LINK_SENDING && (events & EPOLLOUT) && !send_more(link))
		return;
	if (events & (EPOLLIN | EPOLLERR | EPOLLHUP))
		read_answer(link);
}

/* How long the server may be silent. What was learned from answers to reads is for reads only. */
static uint64_t
longest_silence(const struct leat_link *link, uint64_t timeout)
{
	const struct leat_exchange *exchange = link->exchange;
	uint64_t learned = link->origin->loop[link->loop->index].timeout_ns;

	if (!learned || !exchange->want || exchange->body_len || exchange->slow)
		return timeout;
	learned <<= (exchange->given_up < 8 ? exchange->given_up : 8) + (link->heard ? 2 : 0);
	return learned < timeout ? learned : timeout;
}

const char *
leat_link_overdue(const struct leat_link *link, uint64_t now)
{
	const struct leat_exchange *exchange = link->exchange;
	uint64_t timeout = link->loop->wire->settings.timeout_ns;

	if (!exchange)
		return NULL;
	if (exchange->slow)
		timeout *= SLOW_FACTOR;
	if (now >= link->progress_ns + timeout && !is_sent(link))
		return "the server stopped taking what we send";
	if (now >= link->progress_ns + longest_silence(link, timeout))
		return link->heard ? "the server stopped sending" : "the server did not answer in time";
	if (!exchange->slow && now >= link->begin_ns + timeout &&
	    (double)(exchange->got + link->sent) < (double)(now - link->begin_ns - timeout) / 1e9 * SLOWEST)
		return is_sent(link) ? "the server sends too slowly" : "the server takes what we send too slowly";
	return NULL;
}
