/* get.c - get leat|multi URL COUNT IN_FLIGHT: the processor time of a GET
 *
 * leat: reads of the store for URL, by way of submit. multi: a loop of libcurl's multi interface
 * on epoll, as its documentation suggests, which copies bodies from its buffer. Both read the
 * whole object COUNT times, with up to IN_FLIGHT requests at a time, and check lengths. */
#include <curl/curl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>

#include "base/clock.h"
#include "store/store.h"

enum { MAX_FLIGHT = 1024, MAX_BYTES = 1 << 20 };

static int count, in_flight;
static unsigned char *bytes; /* MAX_BYTES for each in flight */

static void
fail(const char *why)
{
	fprintf(stderr, "get: %s\n", why);
	exit(1);
}

/* ---- leat ---- */

static struct {
	pthread_mutex_t lock;
	pthread_cond_t over;
	int started, done, failed;
	struct leat_object object;
	struct leat_read read[MAX_FLIGHT];
} flight = {.lock = PTHREAD_MUTEX_INITIALIZER, .over = PTHREAD_COND_INITIALIZER};

static void end_read(struct leat_read *read);

static void
begin_read(struct leat_read *read)
{
	size_t i = (size_t)(read - flight.read);
	struct leat_store *store = flight.object.store;

	*read = (struct leat_read){.object = flight.object,
	                           .iov = {{bytes + i * MAX_BYTES, (size_t)flight.object.size}},
	                           .iovs = 1,
	                           .done = end_read};
	if (store->kind->submit(store, read) != LEAT_OK)
		fail("cannot submit");
}

static void
end_read(struct leat_read *read)
{
	bool again;

	pthread_mutex_lock(&flight.lock);
	flight.failed += read->status != LEAT_OK;
	flight.done++;
	again = flight.started < count;
	flight.started += again;
	if (flight.done == count)
		pthread_cond_signal(&flight.over);
	pthread_mutex_unlock(&flight.lock);
	if (again)
		begin_read(read);
}

static void
run_leat(const char *url)
{
	struct leat_stores stores;
	struct leat_store *store;
	struct leat_mem mem;
	struct leat_err err;
	char *uri;

	leat_err_clear(&err);
	leat_mem_init(&mem, SIZE_MAX);
	leat_stores_init(&stores, &mem);
	if (leat_stores_find(&stores, url, &store, &uri, &err) != LEAT_OK ||
	    store->kind->look(store, uri, &flight.object, &err) != LEAT_OK)
		fail(err.text);
	if (flight.object.size > MAX_BYTES)
		fail("the object is too large");
	flight.started = in_flight;
	for (int i = 0; i < in_flight; i++)
		begin_read(&flight.read[i]);
	pthread_mutex_lock(&flight.lock);
	while (flight.done < count)
		pthread_cond_wait(&flight.over, &flight.lock);
	pthread_mutex_unlock(&flight.lock);
	if (flight.failed)
		fail("some reads failed");
	leat_free(&mem, uri);
	leat_stores_close(&stores);
}

/* ---- libcurl multi ---- */

static struct {
	CURLM *multi;
	int epoll;
	uint64_t due; /* when libcurl wants to be called; UINT64_MAX: never */
	size_t got[MAX_FLIGHT];
} loop;

static size_t
take_body(char *data, size_t size, size_t n, void *arg)
{
	size_t i = (size_t)((size_t *)arg - loop.got);

	if (loop.got[i] + size * n > MAX_BYTES)
		return 0;
	memcpy(bytes + i * MAX_BYTES + loop.got[i], data, size * n);
	loop.got[i] += size * n;
	return size * n;
}

static int
watch(CURL *easy, curl_socket_t fd, int what, void *arg, void *known)
{
	struct epoll_event event = {.data.fd = fd};

	(void)easy;
	(void)arg;
	if (what == CURL_POLL_REMOVE)
		return epoll_ctl(loop.epoll, EPOLL_CTL_DEL, fd, NULL), 0;
	event.events = (what & CURL_POLL_IN ? EPOLLIN : 0) | (what & CURL_POLL_OUT ? EPOLLOUT : 0);
	epoll_ctl(loop.epoll, known ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, fd, &event);
	curl_multi_assign(loop.multi, fd, &loop);
	return 0;
}

static int
set_timer(CURLM *multi, long ms, void *arg)
{
	(void)multi;
	(void)arg;
	loop.due = ms < 0 ? UINT64_MAX : leat_now() + (uint64_t)ms * 1000000;
	return 0;
}

/* Waits for what libcurl waits for, and tells it. A timer fires once, unless libcurl sets it again. */
static void
drive_multi(void)
{
	struct epoll_event event[64];
	uint64_t now = leat_now(), wait = loop.due > now ? (loop.due - now + 999999) / 1000000 : 0;
	int running, n = epoll_wait(loop.epoll, event, 64, (int)(wait < 1000 ? wait : 1000));

	for (int i = 0; i < n; i++)
		curl_multi_socket_action(loop.multi, event[i].data.fd,
		                         (event[i].events & EPOLLIN ? CURL_CSELECT_IN : 0) |
		                                 (event[i].events & EPOLLOUT ? CURL_CSELECT_OUT : 0),
		                         &running);
	if (loop.due <= leat_now()) {
		loop.due = UINT64_MAX;
		curl_multi_socket_action(loop.multi, CURL_SOCKET_TIMEOUT, 0, &running);
	}
}

static void
run_multi(const char *url)
{
	int started = 0, done = 0, left;
	CURLMsg *message;

	curl_global_init(CURL_GLOBAL_DEFAULT);
	loop.multi = curl_multi_init();
	loop.epoll = epoll_create1(0);
	curl_multi_setopt(loop.multi, CURLMOPT_SOCKETFUNCTION, watch);
	curl_multi_setopt(loop.multi, CURLMOPT_TIMERFUNCTION, set_timer);
	curl_multi_setopt(loop.multi, CURLMOPT_MAXCONNECTS, (long)MAX_FLIGHT);
	for (; started < in_flight; started++) {
		CURL *easy = curl_easy_init();

		curl_easy_setopt(easy, CURLOPT_URL, url);
		curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
		curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
		curl_easy_setopt(easy, CURLOPT_BUFFERSIZE, 128 * 1024L);
		curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, take_body);
		curl_easy_setopt(easy, CURLOPT_WRITEDATA, (void *)&loop.got[started]);
		curl_easy_setopt(easy, CURLOPT_PRIVATE, (void *)&loop.got[started]);
		curl_multi_add_handle(loop.multi, easy);
	}
	while (done < count) {
		drive_multi();
		while ((message = curl_multi_info_read(loop.multi, &left)) != NULL) {
			CURL *easy = message->easy_handle;
			size_t *got;

			if (message->data.result != CURLE_OK)
				fail(curl_easy_strerror(message->data.result));
			curl_easy_getinfo(easy, CURLINFO_PRIVATE, &got);
			curl_multi_remove_handle(loop.multi, easy);
			done++;
			if (started < count) {
				*got = 0;
				started++;
				curl_multi_add_handle(loop.multi, easy);
			} else {
				curl_easy_cleanup(easy);
			}
		}
	}
	curl_multi_cleanup(loop.multi);
}

int
main(int argc, char **argv)
{
	struct rusage before, after;
	uint64_t begin = leat_now();
	double cpu;

	if (argc != 5)
		fail("usage: get leat|multi URL COUNT IN_FLIGHT");
	count = atoi(argv[3]);
	in_flight = atoi(argv[4]);
	if (in_flight < 1 || in_flight > MAX_FLIGHT || count < in_flight)
		fail("IN_FLIGHT is from 1 to 1024, and COUNT not less");
	bytes = calloc((size_t)in_flight, MAX_BYTES);
	if (!bytes)
		fail("out of memory");
	getrusage(RUSAGE_SELF, &before);
	if (strcmp(argv[1], "leat") == 0)
		run_leat(argv[2]);
	else
		run_multi(argv[2]);
	getrusage(RUSAGE_SELF, &after);
	cpu = (double)(after.ru_utime.tv_sec + after.ru_stime.tv_sec - before.ru_utime.tv_sec -
	               before.ru_stime.tv_sec) *
	              1e6 +
	      (double)(after.ru_utime.tv_usec + after.ru_stime.tv_usec - before.ru_utime.tv_usec -
	               before.ru_stime.tv_usec);
	printf("%-5s %8.1f us of processor time per GET, %8.0f GET/s\n", argv[1], cpu / count,
	       count / ((double)(leat_now() - begin) / 1e9));
	return 0;
}
