/* delay.c - a proxy that makes a server far away: delay SERVER_PORT ADDRESS:PORT[,KEY=VALUE]...
 *
 * Each address has its own settings: latency (ms), rate (bytes per second and connection), hang
 * (share of requests that are never answered), max (connections beyond these are reset), knee
 * (see delay.h). One thread, so it costs little and its counts need no locks.
 *
 * Commands come on standard input, a line each; every one is answered by a line:
 *
 *	set KEY VALUE [NUMBER]   change a setting of all addresses, or of one (0 is the first)
 *	busy SECONDS             answer 503 for so long
 *	stats                    counts since the last `reset`, as JSON
 *	reset                    count from zero
 *	trace FILE               write "ms in_flight connections answers" every 5 ms; "trace -": stop
 *
 * It ends when standard input does. */
#include <arpa/inet.h>
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "delay.h"

enum { EVENTS = 256, HEAP = 1 << 16, TRACE_NS = 5 * 1000 * 1000 };

struct counts counts;

static struct listener listener[LISTENERS];
static int listeners, epoll;
static struct sockaddr_in server;
static struct link *heap[HEAP]; /* from 1, by `wake` */
static size_t heap_size;
static struct link *dead;
static FILE *trace;
static uint64_t trace_next, trace_begin;
static double cpu_before;

uint64_t
now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* Spread evenly: of 100 requests in a row, one draws a lot of 0.01, not three. */
bool
draws(double share)
{
	static double sum;

	sum += share;
	if (sum < 1)
		return false;
	sum -= 1;
	return true;
}

/* ---- timers ---- */

static void
place(struct link *link, size_t at)
{
	heap[at] = link;
	link->heap_at = at;
}

static void
sift(size_t at)
{
	struct link *link = heap[at];

	while (at > 1 && heap[at / 2]->wake > link->wake) {
		place(heap[at / 2], at);
		at /= 2;
	}
	for (size_t child; (child = 2 * at) <= heap_size; at = child) {
		child += child < heap_size && heap[child + 1]->wake < heap[child]->wake;
		if (heap[child]->wake >= link->wake)
			break;
		place(heap[child], at);
	}
	place(link, at);
}

void
forget_wake(struct link *link)
{
	size_t at = link->heap_at;

	if (!at)
		return;
	link->heap_at = 0;
	link->wake = 0;
	if (at == heap_size--)
		return;
	place(heap[heap_size + 1], at);
	sift(at);
}

void
wake_at(struct link *link, uint64_t when)
{
	if (link->heap_at && link->wake <= when)
		return;
	if (!link->heap_at && heap_size + 1 == HEAP)
		errx(1, "too many connections");
	if (!link->heap_at)
		place(link, ++heap_size);
	link->wake = when;
	sift(link->heap_at);
}

static void
run_timers(void)
{
	while (heap_size && heap[1]->wake <= now_ns()) {
		struct link *link = heap[1];

		forget_wake(link);
		link_timer(link);
		if (link->dead) {
			link->next = dead;
			dead = link;
		}
	}
}

/* ---- connections ---- */

static void
reset(int fd)
{
	struct linger now = {1, 0};

	setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
	close(fd);
	counts.refused_links++;
}

static void
watch(int fd, void *what, unsigned events)
{
	struct epoll_event event = {.events = events, .data.ptr = what};

	if (epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) != 0)
		err(1, "epoll_ctl");
}

static int
connect_server(void)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), one = 1;

	if (fd < 0 || connect(fd, (struct sockaddr *)&server, sizeof(server)) != 0) {
		if (fd >= 0)
			close(fd);
		return -1;
	}
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	fcntl(fd, F_SETFL, O_NONBLOCK);
	return fd;
}

static void
take_connections(struct listener *from)
{
	int fd, to, one = 1;
	struct link *link;

	while ((fd = accept4(from->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0) {
		if ((from->max && from->links >= from->max) || (to = connect_server()) < 0) {
			reset(fd);
			continue;
		}
		link = link_new(from, fd, to);
		if (!link)
			err(1, "cannot take a connection");
		setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
		from->links++;
		counts.accepted++;
		if (++counts.links > counts.most_links)
			counts.most_links = counts.links;
		watch(fd, &link->end[0], EPOLLIN | EPOLLOUT | EPOLLET);
		watch(to, &link->end[1], EPOLLIN | EPOLLET);
	}
}

static void
link_event(const struct end *end, unsigned events)
{
	struct link *link = end->link;

	if (link->dead)
		return;
	if (!end->is_server && (events & (EPOLLIN | EPOLLERR | EPOLLHUP)))
		link_from_client(link);
	if (!link->dead && (end->is_server || (link->sents && (events & EPOLLOUT))))
		link_from_server(link);
	if (link->dead) {
		link->next = dead;
		dead = link;
	}
}

static void
free_dead(void)
{
	while (dead) {
		struct link *link = dead;

		dead = link->next;
		free(link);
	}
}

/* ---- settings and commands ---- */

static bool
set(struct listener *l, const char *key, double value)
{
	if (strcmp(key, "latency") == 0)
		l->latency_ms = value;
	else if (strcmp(key, "rate") == 0)
		l->rate = value;
	else if (strcmp(key, "hang") == 0)
		l->hang = value;
	else if (strcmp(key, "max") == 0)
		l->max = (unsigned)value;
	else if (strcmp(key, "knee") == 0)
		l->knee = (unsigned)value;
	else
		return false;
	return true;
}

static double
cpu_us(void)
{
	struct rusage use;

	getrusage(RUSAGE_SELF, &use);
	return (double)(use.ru_utime.tv_sec + use.ru_stime.tv_sec) * 1e6 +
	       (double)(use.ru_utime.tv_usec + use.ru_stime.tv_usec);
}

static void
print_stats(void)
{
	printf("{\"requests\": %llu, \"answers\": %llu, \"in_flight\": %u, \"most_in_flight\": %llu, "
	       "\"connections\": %u, \"most_connections\": %llu, \"accepted\": %llu, \"refused_connections\": %llu, "
	       "\"refused_requests\": %llu, \"hung\": %llu, \"late_us_mean\": %.1f, \"late_us_max\": %.1f, "
	       "\"cpu_us\": %.0f, \"answers_of\": [",
	       (unsigned long long)counts.requests, (unsigned long long)counts.answers, counts.in_flight,
	       (unsigned long long)counts.most_in_flight, counts.links, (unsigned long long)counts.most_links,
	       (unsigned long long)counts.accepted, (unsigned long long)counts.refused_links,
	       (unsigned long long)counts.refused_requests, (unsigned long long)counts.hung,
	       counts.requests ? (double)counts.late_ns / 1e3 / (double)counts.requests : 0,
	       (double)counts.most_late_ns / 1e3, cpu_us() - cpu_before);
	for (int i = 0; i < listeners; i++)
		printf("%s%llu", i ? ", " : "", (unsigned long long)listener[i].answers);
	puts("]}");
}

static bool
set_all(const char *key, double value, int number)
{
	for (int i = 0; i < listeners; i++)
		if ((number < 0 || number == i) && !set(&listener[i], key, value))
			return false;
	return number < listeners;
}

static bool
start_trace(const char *path)
{
	if (trace)
		fclose(trace);
	trace = strcmp(path, "-") == 0 ? NULL : fopen(path, "w");
	trace_begin = trace_next = now_ns();
	return trace || strcmp(path, "-") == 0;
}

static void
command(const char *line)
{
	char key[32], path[1024];
	double value;
	int number = -1;

	if (strcmp(line, "stats\n") == 0) {
		print_stats();
	} else if (strcmp(line, "reset\n") == 0) {
		counts = (struct counts){.links = counts.links,
		                         .in_flight = counts.in_flight,
		                         .most_links = counts.links,
		                         .most_in_flight = counts.in_flight};
		for (int i = 0; i < listeners; i++)
			listener[i].answers = 0;
		cpu_before = cpu_us();
		puts("ok");
	} else if (sscanf(line, "busy %lf", &value) == 1) {
		for (int i = 0; i < listeners; i++)
			listener[i].busy_until = now_ns() + (uint64_t)(value * 1e9);
		puts("ok");
	} else if (sscanf(line, "trace %1023s", path) == 1) {
		puts(start_trace(path) ? "ok" : "cannot write that file");
	} else if (sscanf(line, "set %31s %lf %d", key, &value, &number) >= 2 && set_all(key, value, number)) {
		puts("ok");
	} else {
		puts("unknown command");
	}
	fflush(stdout);
}

/* False: the end. A command comes whole, as one write of its sender. */
static bool
take_commands(void)
{
	char text[4096];
	ssize_t got = read(0, text, sizeof(text) - 1);

	if (got <= 0)
		return false;
	text[got] = '\0';
	for (char *line = text, *end; (end = strchr(line, '\n')) != NULL; line = end + 1) {
		char one[1100];

		snprintf(one, sizeof(one), "%.*s", (int)(end + 1 - line), line);
		command(one);
	}
	return true;
}

/* "ADDRESS:PORT,KEY=VALUE,..." */
static void
open_listener(char *text)
{
	struct listener *l = &listener[listeners++];
	struct sockaddr_in address = {.sin_family = AF_INET};
	char *colon = strchr(text, ':'), *option = strchr(text, ','), *save;
	int one = 1;

	if (!colon)
		errx(2, "'%s' is not ADDRESS:PORT", text);
	*colon = '\0';
	if (inet_pton(AF_INET, text, &address.sin_addr) != 1)
		errx(2, "'%s' is not an address", text);
	address.sin_port = htons((uint16_t)atoi(colon + 1));
	for (option = option ? strtok_r(option, ",", &save) : NULL; option; option = strtok_r(NULL, ",", &save)) {
		char *equals = strchr(option, '=');

		if (!equals)
			errx(2, "'%s' is not KEY=VALUE", option);
		*equals = '\0';
		if (!set(l, option, atof(equals + 1)))
			errx(2, "unknown setting '%s'", option);
	}
	l->fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	setsockopt(l->fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (bind(l->fd, (struct sockaddr *)&address, sizeof(address)) != 0 || listen(l->fd, 4096) != 0)
		err(1, "cannot listen on %s", text);
	watch(l->fd, l, EPOLLIN);
}

static void
write_trace(uint64_t now)
{
	if (!trace || now < trace_next)
		return;
	trace_next = now + TRACE_NS;
	fprintf(trace, "%.1f %u %u %llu\n", (double)(now - trace_begin) / 1e6, counts.in_flight, counts.links,
	        (unsigned long long)counts.answers);
}

/* Until the next timer. */
static int
wait_events(struct epoll_event *event)
{
	uint64_t now = now_ns(), until = heap_size ? heap[1]->wake : UINT64_MAX;
	struct timespec wait;

	if (trace && trace_next < until)
		until = trace_next;
	until = until > now ? until - now : 0;
	wait = (struct timespec){(time_t)(until / 1000000000), (long)(until % 1000000000)};
	return epoll_pwait2(epoll, event, EVENTS, heap_size || trace ? &wait : NULL, NULL);
}

static bool
handle(const struct epoll_event *event)
{
	void *what = event->data.ptr;

	if (!what)
		return take_commands();
	if (what >= (void *)listener && what < (void *)(listener + LISTENERS))
		take_connections(what);
	else
		link_event(what, event->events);
	return true;
}

int
main(int argc, char **argv)
{
	struct epoll_event event[EVENTS];
	bool more = true;

	if (argc < 3 || argc > 2 + LISTENERS)
		errx(2, "usage: delay SERVER_PORT ADDRESS:PORT[,KEY=VALUE]...");
	server = (struct sockaddr_in){.sin_family = AF_INET,
	                              .sin_port = htons((uint16_t)atoi(argv[1])),
	                              .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	signal(SIGPIPE, SIG_IGN); /* splice knows no MSG_NOSIGNAL */
	epoll = epoll_create1(EPOLL_CLOEXEC);
	for (int i = 2; i < argc; i++)
		open_listener(argv[i]);
	watch(0, NULL, EPOLLIN);
	puts("ready");
	fflush(stdout);
	while (more) {
		int count = wait_events(event);

		for (int i = 0; i < count && more; i++)
			more = handle(&event[i]);
		run_timers();
		write_trace(now_ns());
		free_dead();
	}
	return 0;
}
