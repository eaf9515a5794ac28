/* delay_link.c - one connection of the delaying proxy
 *
 * It understands as much of HTTP/1.1 as it takes to know where requests and answers begin:
 * requests without a body, answers with a Content-Length. Each request is held back until it is
 * due, on its own clock, and then sent; its answer passes as it comes, by splice, so a body costs
 * the proxy no copy. */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include "delay.h"

static const char busy[] = "HTTP/1.1 503 Slow Down\r\nContent-Length: 0\r\n\r\n";

struct link *
link_new(struct listener *from, int client, int server)
{
	struct link *link = calloc(1, sizeof(*link));

	if (!link || pipe2(link->pipe, O_NONBLOCK | O_CLOEXEC) != 0) {
		free(link);
		return NULL;
	}
	link->from = from;
	link->client = client;
	link->server = server;
	link->end[0] = (struct end){link, false};
	link->end[1] = (struct end){link, true};
	return link;
}

void
link_close(struct link *link)
{
	unsigned unanswered = link->waits + link->sents;

	if (link->dead)
		return;
	link->dead = true;
	forget_wake(link);
	counts.in_flight -= unanswered;
	link->from->in_flight -= unanswered;
	counts.links--;
	link->from->links--;
	close(link->client);
	close(link->server);
	close(link->pipe[0]);
	close(link->pipe[1]);
}

/* ---- requests ---- */

static uint64_t
latency_of(const struct listener *from)
{
	double n = from->in_flight, knee = from->knee, slower = knee > 0 && n > knee ? n / knee * (n / knee) : 1;

	return (uint64_t)(from->latency_ms * 1e6 * slower);
}

static void
take_request(struct link *link, const char *head, size_t length)
{
	struct request *request = &link->waiting[link->waits++];
	uint64_t now = now_ns();

	counts.requests++;
	counts.in_flight++;
	link->from->in_flight++;
	if (counts.in_flight > counts.most_in_flight)
		counts.most_in_flight = counts.in_flight;
	*request = (struct request){.due = now + latency_of(link->from),
	                            .length = length,
	                            .head_only = strncmp(head, "HEAD ", 5) == 0,
	                            .refused = now < link->from->busy_until,
	                            .hangs = draws(link->from->hang)};
	counts.hung += request->hangs;
	counts.refused_requests += request->refused;
}

static void
drop_waiting(struct link *link)
{
	size_t length = link->waiting[0].length;

	memmove(link->asked, link->asked + length, link->have - length);
	link->have -= length;
	link->parsed -= length;
	memmove(link->waiting, link->waiting + 1, --link->waits * sizeof(*link->waiting));
}

static void
answered(struct link *link)
{
	counts.answers++;
	link->from->answers++;
	counts.in_flight--;
	link->from->in_flight--;
}

/* A local answer, once those before it are through. False: the connection is gone. */
static bool
refuse(struct link *link)
{
	drop_waiting(link);
	answered(link);
	if (send(link->client, busy, sizeof(busy) - 1, MSG_NOSIGNAL) == (ssize_t)sizeof(busy) - 1)
		return true;
	link_close(link);
	return false;
}

static void
count_lateness(uint64_t late)
{
	counts.late_ns += late;
	if (late > counts.most_late_ns)
		counts.most_late_ns = late;
}

/* Sends what is due, in order. */
static void
send_due(struct link *link)
{
	while (link->waits) {
		struct request *request = &link->waiting[0];
		uint64_t now = now_ns();

		if (request->hangs)
			return;
		if (request->due > now) {
			wake_at(link, request->due);
			return;
		}
		if (request->refused) {
			if (link->sents || !refuse(link))
				return;
			continue;
		}
		/* A request is far smaller than the buffer of a socket. */
		if (send(link->server, link->asked, request->length, MSG_NOSIGNAL) != (ssize_t)request->length) {
			link_close(link);
			return;
		}
		count_lateness(now - request->due);
		link->sent[link->sents++] = *request;
		drop_waiting(link);
	}
}

void
link_from_client(struct link *link)
{
	for (;;) {
		ssize_t got = recv(link->client, link->asked + link->have, HEAD_MAX - link->have, 0);

		if (got < 0 && errno == EAGAIN)
			break;
		if (got <= 0 || link->waits + link->sents >= PIPELINED - 1) {
			link_close(link);
			return;
		}
		link->have += (size_t)got;
		for (;;) {
			char *from = link->asked + link->parsed;
			char *end = memmem(from, link->have - link->parsed, "\r\n\r\n", 4);

			if (!end || link->waits >= PIPELINED)
				break;
			take_request(link, from, (size_t)(end + 4 - from));
			link->parsed += (size_t)(end + 4 - from);
		}
		if (link->have == HEAD_MAX) {
			link_close(link);
			return;
		}
	}
	send_due(link);
}

/* ---- answers ---- */

/* The length of the body that follows a head. */
static uint64_t
body_length(const struct link *link)
{
	const char *at = link->head, *end = link->head + link->head_len;
	int status = atoi(link->head + 9);

	if (link->sent[0].head_only || status == 204 || status == 304)
		return 0;
	while ((at = memchr(at, '\n', (size_t)(end - at))) != NULL && ++at < end)
		if (end - at > 15 && strncasecmp(at, "Content-Length:", 15) == 0)
			return strtoull(at + 15, NULL, 10);
	return 0;
}

/* False: not all of it is there yet, or the connection is gone. */
static bool
take_head(struct link *link)
{
	char *end;

	while (!link->head_len) {
		ssize_t got = recv(link->server, link->head + link->head_have, 4096 - link->head_have, 0);

		if (got < 0 && errno == EAGAIN)
			return false;
		if (got <= 0 || !link->sents) {
			link_close(link);
			return false;
		}
		link->head_have += (size_t)got;
		end = memmem(link->head, link->head_have, "\r\n\r\n", 4);
		if (!end && link->head_have == 4096) {
			link_close(link);
			return false;
		}
		if (end) {
			uint64_t body;

			link->head_len = (size_t)(end + 4 - link->head);
			body = body_length(link);
			if (link->head_have - link->head_len > body) { /* pipelined answers would have to be cut here */
				link_close(link);
				return false;
			}
			link->body_left = body - (link->head_have - link->head_len);
		}
	}
	return true;
}

/* False: the client takes no more now, or is gone. */
static bool
put_head(struct link *link)
{
	while (link->head_out < link->head_have) {
		ssize_t put = send(link->client, link->head + link->head_out, link->head_have - link->head_out,
		                   MSG_NOSIGNAL | (link->body_left ? MSG_MORE : 0));

		if (put < 0) {
			if (errno != EAGAIN)
				link_close(link);
			return false;
		}
		link->head_out += (size_t)put;
	}
	return true;
}

/* How much the rate allows now; 0: wait. */
static size_t
allowance(struct link *link, uint64_t now)
{
	if (link->from->rate <= 0)
		return 1 << 20;
	if (link->rate_free > now) {
		wake_at(link, link->rate_free);
		return 0;
	}
	return (size_t)(link->from->rate / 200) + 1; /* what passes in 5 ms */
}

static void
spend(struct link *link, size_t bytes, uint64_t now)
{
	if (link->from->rate > 0)
		link->rate_free = (link->rate_free > now ? link->rate_free : now) +
		                  (uint64_t)((double)bytes / link->from->rate * 1e9);
}

/* False: either side must wait, or is gone. */
static bool
move_body(struct link *link)
{
	while (link->body_left || link->piped) {
		uint64_t now = link->from->rate > 0 ? now_ns() : 0;
		size_t allowed = allowance(link, now);
		ssize_t moved;

		if (!allowed)
			return false;
		if (!link->piped) {
			moved = splice(link->server, NULL, link->pipe[1], NULL,
			               link->body_left < allowed ? (size_t)link->body_left : allowed,
			               SPLICE_F_NONBLOCK);
			if (moved <= 0)
				goto blocked;
			link->piped = (uint64_t)moved;
			link->body_left -= (uint64_t)moved;
		}
		moved = splice(link->pipe[0], NULL, link->client, NULL, (size_t)link->piped, SPLICE_F_NONBLOCK);
		if (moved <= 0)
			goto blocked;
		link->piped -= (uint64_t)moved;
		spend(link, (size_t)moved, now);
		continue;
	blocked:
		if (moved == 0 || errno != EAGAIN)
			link_close(link);
		return false;
	}
	return true;
}

void
link_from_server(struct link *link)
{
	while (!link->dead) {
		if (!take_head(link) || !put_head(link) || !move_body(link))
			return;
		link->head_have = link->head_out = link->head_len = 0;
		memmove(link->sent, link->sent + 1, --link->sents * sizeof(*link->sent));
		answered(link);
		send_due(link);
	}
}

void
link_timer(struct link *link)
{
	send_due(link);
	if (!link->dead && link->sents)
		link_from_server(link);
}
