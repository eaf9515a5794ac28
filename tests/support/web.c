/* web.c - see web.h */
#include "web.h"

#include <arpa/inet.h>
#include <inttypes.h>
#include <limits.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { OBJECTS = 64, LINKS = 1024, PLACES = 4 };

/* Listens at 127.0.0.(1 + its index). */
struct place {
	int fd; /* 0: it does not */
	pthread_t accepts;
	unsigned delay_us;
	struct web_counts counts;
};

struct object {
	char path[256];
	char *bytes;
	size_t len;
	int version;
	char location[512];
};

static struct {
	pthread_mutex_t lock;
	pthread_cond_t left, came; /* of a connection, of a request */
	int port, versions;
	struct place place[PLACES];
	bool stops;
	struct object object[OBJECTS];
	int fd[LINKS]; /* 0: none */
	struct place *at[LINKS];
	struct web_counts counts;
	char path[256]; /* of the trouble; "": all */
	enum web_trouble trouble;
	int troubles, limit, crowd, delay_ms;
	int every, meant; /* only every so many-th has trouble; requests that it was meant for */
	bool (*answer)(int fd, const char *request); /* NULL: our own */
	char last[16384];                            /* request */
} web = {.lock = PTHREAD_MUTEX_INITIALIZER, .left = PTHREAD_COND_INITIALIZER, .came = PTHREAD_COND_INITIALIZER};

struct request {
	char method[8], path[256], if_match[64];
	char *text; /* all of it */
	bool ranged;
	size_t first, last;
	enum web_trouble trouble;
};

/* ---- objects ---- */

const char *
web_address(void)
{
	static char text[64];

	snprintf(text, sizeof(text), "http://127.0.0.1:%d", web.port);
	return text;
}

static const char *
path_of(const char *uri)
{
	return uri + strlen(web_address());
}

/* Under the lock. */
static struct object *
find(const char *path)
{
	for (size_t i = 0; i < OBJECTS; i++)
		if (strcmp(web.object[i].path, path) == 0)
			return &web.object[i];
	return NULL;
}

static struct object *
find_or_add(const char *path)
{
	struct object *object = find(path);

	if (!object)
		object = find("");
	if (!object)
		abort();
	snprintf(object->path, sizeof(object->path), "%s", path);
	return object;
}

void
web_put(const char *uri, const void *bytes, size_t len)
{
	struct object *object;

	pthread_mutex_lock(&web.lock);
	object = find_or_add(path_of(uri));
	free(object->bytes);
	object->bytes = malloc(len + 1);
	if (!object->bytes)
		abort();
	memcpy(object->bytes, bytes, len);
	object->len = len;
	object->version = ++web.versions;
	pthread_mutex_unlock(&web.lock);
}

void
web_put_data(char *uri, size_t cap, unsigned char *data, size_t len)
{
	for (size_t i = 0; i < len; i++)
		data[i] = (unsigned char)(i * 7 + (i >> 8));
	snprintf(uri, cap, "%s/data", web_address());
	web_put(uri, data, len);
}

static void
forget(struct object *object)
{
	free(object->bytes);
	*object = (struct object){0};
}

void
web_remove(const char *uri)
{
	struct object *object;

	pthread_mutex_lock(&web.lock);
	object = find(path_of(uri));
	if (!object)
		abort();
	forget(object);
	pthread_mutex_unlock(&web.lock);
}

void
web_redirect(const char *from, const char *location)
{
	pthread_mutex_lock(&web.lock);
	snprintf(find_or_add(path_of(from))->location, 512, "%s", location);
	pthread_mutex_unlock(&web.lock);
}

void
web_set_trouble(const char *uri, enum web_trouble trouble, int count)
{
	pthread_mutex_lock(&web.lock);
	snprintf(web.path, sizeof(web.path), "%s", uri ? path_of(uri) : "");
	web.trouble = trouble;
	web.troubles = count;
	pthread_mutex_unlock(&web.lock);
}

const char *
web_last(void)
{
	static char text[sizeof(web.last)];

	pthread_mutex_lock(&web.lock);
	strcpy(text, web.last);
	pthread_mutex_unlock(&web.lock);
	return text;
}

void
web_set_every(int n)
{
	pthread_mutex_lock(&web.lock);
	web.every = n;
	web.meant = 0;
	pthread_mutex_unlock(&web.lock);
}

void
web_set_answer(bool (*answer)(int fd, const char *request))
{
	pthread_mutex_lock(&web.lock);
	web.answer = answer;
	pthread_mutex_unlock(&web.lock);
}

void
web_set_limit(int connections)
{
	pthread_mutex_lock(&web.lock);
	web.limit = connections;
	pthread_mutex_unlock(&web.lock);
}

void
web_set_delay(int ms)
{
	pthread_mutex_lock(&web.lock);
	web.delay_ms = ms;
	pthread_mutex_unlock(&web.lock);
}

void
web_set_crowd(int requests)
{
	pthread_mutex_lock(&web.lock);
	web.crowd = requests;
	pthread_mutex_unlock(&web.lock);
}

/* Under the lock: a request has come. How long to wait with the answer, in ms. */
static int
enter(struct request *request)
{
	if (++web.counts.busy > web.counts.most_busy)
		web.counts.most_busy = web.counts.busy;
	if (!web.crowd || web.counts.busy <= web.crowd)
		return web.delay_ms;
	web.counts.refused++;
	request->trouble = WEB_BUSY;
	return 0;
}

/* Before the answer is sent: then the client may send the next request. */
static void
leave(int wait_ms)
{
	usleep((unsigned)wait_ms * 1000);
	pthread_mutex_lock(&web.lock);
	web.counts.busy--;
	pthread_mutex_unlock(&web.lock);
}

struct web_counts
web_counts(void)
{
	struct web_counts counts;

	pthread_mutex_lock(&web.lock);
	counts = web.counts;
	pthread_mutex_unlock(&web.lock);
	return counts;
}

void
web_wait(int requests)
{
	pthread_mutex_lock(&web.lock);
	while (web.counts.requests < requests)
		pthread_cond_wait(&web.came, &web.lock);
	pthread_mutex_unlock(&web.lock);
}

struct web_counts
web_counts_at(int last)
{
	struct web_counts counts;

	pthread_mutex_lock(&web.lock);
	counts = web.place[last - 1].counts;
	pthread_mutex_unlock(&web.lock);
	return counts;
}

/* ---- a connection ---- */

static bool
say(int fd, const void *bytes, size_t len)
{
	for (size_t at = 0; at < len;) {
		ssize_t sent = send(fd, (const char *)bytes + at, len - at, MSG_NOSIGNAL);

		if (sent <= 0)
			return false;
		at += (size_t)sent;
	}
	return true;
}

bool
web_say(int fd, const void *bytes, size_t len)
{
	return say(fd, bytes, len);
}

static void
reset(int fd)
{
	struct linger now = {1, 0};

	setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
}

/* Head and body. */
static bool
is_complete(const char *text, size_t len)
{
	const char *end = strstr(text, "\r\n\r\n"), *field = strcasestr(text, "\r\nContent-Length: ");
	size_t body = 0;

	if (field && field < end)
		sscanf(field + 18, "%zu", &body);
	return end && len >= (size_t)(end - text) + 4 + body;
}

static bool
read_request(int fd, char text[sizeof(web.last)], struct request *request)
{
	char *field;
	size_t len = 0;

	while (len < sizeof(web.last) - 1) {
		ssize_t got = recv(fd, text + len, sizeof(web.last) - 1 - len, 0);

		if (got <= 0)
			return false;
		len += (size_t)got;
		text[len] = '\0';
		if (is_complete(text, len))
			break;
	}
	*request = (struct request){.text = text};
	pthread_mutex_lock(&web.lock);
	strcpy(web.last, text);
	pthread_mutex_unlock(&web.lock);
	if (sscanf(text, "%7s %255s", request->method, request->path) != 2)
		return false;
	field = strstr(text, "\r\nRange: bytes=");
	request->ranged = field && sscanf(field + 15, "%zu-%zu", &request->first, &request->last) == 2;
	field = strstr(text, "\r\nIf-Match: ");
	if (field)
		sscanf(field + 12, "%63[^\r]", request->if_match);
	return true;
}

/* What the server does for as long as nobody stops it. */
static void
go_on(int fd, const char *text, unsigned pause_us)
{
	while (say(fd, text, strlen(text)))
		usleep(pause_us);
}

/* Waits until the client goes away. */
static void
hang(int fd)
{
	char byte;

	while (recv(fd, &byte, 1, 0) > 0)
		;
}

/* A trouble that takes the place of the answer. True: done. */
static bool
misbehave(int fd, const struct request *request)
{
	char line[4097] = "";

	switch (request->trouble) {
	case WEB_RESET:
		reset(fd);
		return true;
	case WEB_ENDLESS_HEAD:
		say(fd, "HTTP/1.1 200 OK\r\n", 17);
		while (strlen(line) + 16 < sizeof(line))
			strcat(line, "X-More: more\r\n");
		go_on(fd, line, 0);
		return true;
	case WEB_ENDLESS_BODY:
		memset(line, 'x', sizeof(line) - 1);
		say(fd, "HTTP/1.1 200 OK\r\nContent-Length: 5000000000\r\n\r\n", 47);
		go_on(fd, line, 0);
		return true;
	case WEB_DRIP:
		say(fd, "HTTP/1.1 206 Partial\r\n", 22);
		go_on(fd, "X", 10000);
		return true;
	case WEB_LATE:
		usleep(40000);
		return false;
	case WEB_HANG:
		hang(fd);
		return true;
	case WEB_JUNK:
		say(fd, "SSH-2.0-OpenSSH_9.2\r\n", 21);
		return true;
	default:
		return false;
	}
}

static bool
answer_short(int fd, const char *status, const char *fields)
{
	char text[2048];

	snprintf(text, sizeof(text), "HTTP/1.1 %s\r\n%sContent-Length: 0\r\n\r\n", status, fields);
	return say(fd, text, strlen(text));
}

static bool
send_body(int fd, const struct request *request, const char *bytes, size_t len)
{
	char size[32];

	switch (request->trouble) {
	case WEB_RESET_IN_BODY:
		say(fd, bytes, len / 2);
		reset(fd);
		return false;
	case WEB_SHORT:
		say(fd, bytes, len / 2);
		return false;
	case WEB_EXTRA:
		return say(fd, bytes, len) && say(fd, "and more", 8);
	case WEB_CHUNKS:
		for (size_t at = 0; at < len;) {
			size_t piece = len - at < 700 ? len - at : 700;

			snprintf(size, sizeof(size), "%zx;x=y\r\n", piece);
			if (!say(fd, size, strlen(size)) || !say(fd, bytes + at, piece) || !say(fd, "\r\n", 2))
				return false;
			at += piece;
		}
		return say(fd, "0\r\nX-T: 1\r\n\r\n", 13);
	default:
		return say(fd, bytes, len) && request->trouble != WEB_LEAVE && request->trouble != WEB_OLD;
	}
}

/* False: close the connection. */
static bool
answer_object(int fd, struct request *request, const char *bytes, size_t len, int version)
{
	bool partial = request->ranged && request->trouble != WEB_NO_RANGES,
	     head = strcmp(request->method, "HEAD") == 0;
	size_t first = partial ? request->first : 0, end = partial && request->last < len ? request->last + 1 : len;
	char text[1024];
	int used;

	if (partial && first >= len) {
		snprintf(text, sizeof(text), "Content-Range: bytes */%zu\r\n", len);
		return answer_short(fd, "416 Range Not Satisfiable", text);
	}
	if (partial && request->trouble == WEB_WRONG_RANGE) {
		first++;
		end++;
	}
	used = snprintf(text, sizeof(text), "HTTP/1.%d %s\r\nETag: \"v%d\"\r\n", request->trouble != WEB_OLD,
	                partial ? "206 Partial Content" : "200 OK", version);
	if (partial)
		used += snprintf(text + used, sizeof(text) - (size_t)used, "Content-Range: bytes %zu-%zu/%zu\r\n",
		                 first, end - 1, len);
	if (request->trouble == WEB_GZIP)
		used += snprintf(text + used, sizeof(text) - (size_t)used, "Content-Encoding: gzip\r\n");
	if (request->trouble == WEB_CHUNKS)
		used += snprintf(text + used, sizeof(text) - (size_t)used, "Transfer-Encoding: chunked\r\n\r\n");
	else if (request->trouble == WEB_OLD)
		used += snprintf(text + used, sizeof(text) - (size_t)used, "\r\n");
	else
		used += snprintf(text + used, sizeof(text) - (size_t)used, "Content-Length: %zu\r\n\r\n",
		                 end - first - (request->trouble == WEB_WRONG_LENGTH));
	if (end > len)
		end = len;
	if (!say(fd, text, (size_t)used))
		return false;
	return head ? request->trouble != WEB_OLD : send_body(fd, request, bytes + first, end - first);
}

static bool
answer(int fd, struct request *request)
{
	struct object object = {0}, *found;
	char *copy = NULL, etag[32], text[600];
	bool (*other)(int other_fd, const char *other_request);
	bool there, stays;
	int wait;

	pthread_mutex_lock(&web.lock);
	web.counts.requests++;
	pthread_cond_broadcast(&web.came);
	if (web.troubles && (!*web.path || strcmp(web.path, request->path) == 0) && ++web.meant % web.every == 0) {
		request->trouble = web.trouble;
		web.troubles -= web.troubles > 0;
	}
	request->path[strcspn(request->path, "?")] = '\0';
	found = find(request->path);
	there = found != NULL;
	if (there) {
		object = *found;
		copy = malloc(object.len + 1);
		if (copy && object.bytes)
			memcpy(copy, object.bytes, object.len);
	}
	other = web.answer;
	wait = enter(request);
	pthread_mutex_unlock(&web.lock);
	leave(wait);
	if (other) {
		free(copy);
		return other(fd, request->text);
	}
	snprintf(etag, sizeof(etag), "\"v%d\"", object.version);
	snprintf(text, sizeof(text), "Location: %s\r\n", *object.location ? object.location : request->path);
	if (misbehave(fd, request))
		stays = false;
	else if (request->trouble == WEB_BUSY)
		stays = answer_short(fd, "503 Slow Down", "");
	else if (request->trouble == WEB_FORBIDDEN)
		stays = answer_short(fd, "403 Forbidden", "");
	else if (request->trouble == WEB_NO_HEAD && strcmp(request->method, "HEAD") == 0)
		stays = answer_short(fd, "405 Not Allowed", "");
	else if (*object.location || request->trouble == WEB_MOVED)
		stays = answer_short(fd, "302 Found", text);
	else if (!there)
		stays = answer_short(fd, "404 Not Found", "");
	else if (*request->if_match && strcmp(request->if_match, etag) != 0)
		stays = answer_short(fd, "412 Precondition Failed", "");
	else
		stays = answer_object(fd, request, copy, object.len, object.version);
	free(copy);
	return stays;
}

static void *
serve(void *arg)
{
	int *slot = arg, fd = *slot;
	struct place *place = web.at[slot - web.fd];
	char text[sizeof(web.last)];
	struct request request;

	while (read_request(fd, text, &request)) {
		pthread_mutex_lock(&web.lock);
		place->counts.requests++;
		pthread_mutex_unlock(&web.lock);
		if (place->delay_us == UINT_MAX)
			hang(fd);
		else if (place->delay_us)
			usleep(place->delay_us);
		if (!answer(fd, &request))
			break;
	}
	pthread_mutex_lock(&web.lock);
	close(fd);
	*slot = 0;
	web.counts.open--;
	pthread_cond_signal(&web.left);
	pthread_mutex_unlock(&web.lock);
	return NULL;
}

/* ---- the server ---- */

/* Under the lock. */
static void
begin_serving(int fd, struct place *place)
{
	pthread_attr_t attr;
	pthread_t thread;
	int *slot = web.fd;

	while (*slot)
		slot++;
	if (slot >= web.fd + LINKS)
		abort();
	*slot = fd;
	web.at[slot - web.fd] = place;
	place->counts.connections++;
	web.counts.connections++;
	if (++web.counts.open > web.counts.most_open)
		web.counts.most_open = web.counts.open;
	pthread_attr_init(&attr);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	pthread_attr_setstacksize(&attr, 128 * 1024);
	if (pthread_create(&thread, &attr, serve, slot) != 0)
		abort();
	pthread_attr_destroy(&attr);
}

static void *
accept_all(void *arg)
{
	struct place *place = arg;
	int fd, one = 1;

	while ((fd = accept(place->fd, NULL, NULL)) >= 0) {
		setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
		pthread_mutex_lock(&web.lock);
		if (web.stops || (web.limit && web.counts.open >= web.limit)) {
			reset(fd);
			close(fd);
		} else
			begin_serving(fd, place);
		pthread_mutex_unlock(&web.lock);
	}
	return NULL;
}

void
web_listen(int last, unsigned delay_us)
{
	struct sockaddr_in address = {.sin_family = AF_INET,
	                              .sin_port = htons((uint16_t)web.port),
	                              .sin_addr.s_addr = htonl(INADDR_LOOPBACK + (unsigned)last - 1)};
	socklen_t len = sizeof(address);
	struct place *place = &web.place[last - 1];
	int one = 1;

	if (place->fd) {
		place->delay_us = delay_us;
		return;
	}
	*place = (struct place){.fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), .delay_us = delay_us};
	setsockopt(place->fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (place->fd < 0 || bind(place->fd, (struct sockaddr *)&address, len) != 0 || listen(place->fd, 1024) != 0 ||
	    getsockname(place->fd, (struct sockaddr *)&address, &len) != 0)
		abort();
	web.port = ntohs(address.sin_port);
	if (pthread_create(&place->accepts, NULL, accept_all, place) != 0)
		abort();
}

void
web_start(void)
{
	web.port = 0;
	web.stops = false;
	web.counts = (struct web_counts){0};
	web.troubles = web.limit = web.crowd = web.delay_ms = 0;
	web.every = 1;
	web.answer = NULL;
	web_listen(1, 0);
}

void
web_stop(void)
{
	pthread_mutex_lock(&web.lock);
	web.stops = true;
	for (size_t i = 0; i < LINKS; i++)
		if (web.fd[i])
			shutdown(web.fd[i], SHUT_RDWR);
	while (web.counts.open)
		pthread_cond_wait(&web.left, &web.lock);
	for (size_t i = 0; i < OBJECTS; i++)
		forget(&web.object[i]);
	pthread_mutex_unlock(&web.lock);
	for (struct place *place = web.place; place < web.place + PLACES; place++)
		if (place->fd) {
			shutdown(place->fd, SHUT_RDWR);
			pthread_join(place->accepts, NULL);
			close(place->fd);
			place->fd = 0;
		}
}
