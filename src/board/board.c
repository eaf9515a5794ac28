/* board.c - see board.h; the address, the token, the daemon */
#include "board/board.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include "board/inside.h"
#include "board/page.h"

enum { TOKEN_BYTES = 16, LEAST_TOKEN = 16, PAGE_BYTES = 4 << 20, STACK_BYTES = 1 << 20, BACKLOG = 64 };

/* ---- the store ---- */

/* Stores that were deleted stay open until the board is closed: threads may read them. */
static enum leat_status
open_store(struct leat_board *board, const char *path, struct leat_err *err)
{
	enum leat_status status;

	if (board->stores == LEAT_BOARD_STORES)
		return leat_fail(err, LEAT_LIMIT, "%s was deleted too often; start the board again", path);
	status = leat_cas_open(&board->store[board->stores], board->mem, path, LEAT_CAS_READ, err);
	board->stores += status == LEAT_OK;
	return status;
}

enum leat_status
leat_board_store(struct leat_board *board, struct leat_cas **cas, struct leat_err *err)
{
	enum leat_status status = LEAT_OK;
	char path[PATH_MAX];

	*cas = NULL;
	if (snprintf(path, sizeof(path), "%s/.leat", board->folder) >= (int)sizeof(path))
		return leat_fail(err, LEAT_INVALID, "the path of %s is too long", board->folder);
	pthread_mutex_lock(&board->lock);
	if (!board->stores || !leat_cas_is_current(board->store[board->stores - 1]))
		status = open_store(board, path, err);
	if (status == LEAT_OK)
		*cas = board->store[board->stores - 1];
	pthread_mutex_unlock(&board->lock);
	return status;
}

bool
leat_board_wait(struct leat_board *board, unsigned milliseconds)
{
	struct timespec until;
	bool stopping;

	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_nsec += (long)milliseconds * 1000000;
	until.tv_sec += until.tv_nsec / 1000000000;
	until.tv_nsec %= 1000000000;
	pthread_mutex_lock(&board->lock);
	while (!board->stopping && pthread_cond_timedwait(&board->wake, &board->lock, &until) == 0)
		;
	stopping = board->stopping;
	pthread_mutex_unlock(&board->lock);
	return stopping;
}

/* ---- the address ---- */

static bool
is_loopback(const struct sockaddr *address)
{
	if (address->sa_family == AF_INET)
		return ntohl(((const struct sockaddr_in *)(const void *)address)->sin_addr.s_addr) >> 24 == 127;
	return IN6_IS_ADDR_LOOPBACK(&((const struct sockaddr_in6 *)(const void *)address)->sin6_addr);
}

static bool
is_any(const struct sockaddr *address)
{
	if (address->sa_family == AF_INET)
		return ((const struct sockaddr_in *)(const void *)address)->sin_addr.s_addr == htonl(INADDR_ANY);
	return IN6_IS_ADDR_UNSPECIFIED(&((const struct sockaddr_in6 *)(const void *)address)->sin6_addr);
}

static enum leat_status
resolve(const struct leat_board_options *options, struct addrinfo **found, struct leat_err *err)
{
	struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE | AI_NUMERICSERV};
	char port[16];
	int failed;

	snprintf(port, sizeof(port), "%u", options->port);
	failed = getaddrinfo(options->address, port, &hints, found);
	if (!failed && ((*found)->ai_family == AF_INET || (*found)->ai_family == AF_INET6))
		return LEAT_OK;
	return leat_fail(err, LEAT_INVALID, "--address %s: %s", options->address,
	                 failed ? gai_strerror(failed) : "is no IP address");
}

/* A socket that listens; *port is set to its port. */
static enum leat_status
listen_at(const struct addrinfo *at, const struct leat_board_options *options, int *fd, unsigned *port,
          struct leat_err *err)
{
	struct sockaddr_storage bound;
	socklen_t len = sizeof(bound);
	int one = 1;

	*fd = socket(at->ai_family, at->ai_socktype | SOCK_CLOEXEC, at->ai_protocol);
	if (*fd < 0)
		return leat_fail_errno(err, errno, "cannot open a socket");
	setsockopt(*fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)); /* without it, only a restart takes longer */
	if (bind(*fd, at->ai_addr, at->ai_addrlen) != 0 || listen(*fd, BACKLOG) != 0)
		return leat_fail_errno(err, errno, "cannot listen at %s port %u; --port 0 takes any free port",
		                       options->address, options->port);
	if (getsockname(*fd, (struct sockaddr *)&bound, &len) != 0)
		return leat_fail_errno(err, errno, "cannot ask for the port of a socket");
	*port = ntohs(at->ai_family == AF_INET ? ((struct sockaddr_in *)(void *)&bound)->sin_port
	                                       : ((struct sockaddr_in6 *)(void *)&bound)->sin6_port);
	return LEAT_OK;
}

/* ---- the token ---- */

static enum leat_status
make_token(struct leat_board *board, struct leat_err *err)
{
	uint8_t random[TOKEN_BYTES];

	if (getrandom(random, sizeof(random), 0) != (ssize_t)sizeof(random))
		return leat_fail_errno(err, errno, "cannot make a token");
	leat_hex(random, sizeof(random), board->secret);
	return LEAT_OK;
}

/* A token must fit into a URL and a cookie as it is. */
static enum leat_status
set_token(struct leat_board *board, const char *given, struct leat_err *err)
{
	size_t len = strlen(given);

	if (len && (len < LEAST_TOKEN || len >= sizeof(board->secret) ||
	            strspn(given, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-") != len))
		return leat_fail(err, LEAT_INVALID,
		                 "LEAT_BOARD_TOKEN must have %d to %d characters, only letters, digits, '_' and '-'",
		                 LEAST_TOKEN, (int)sizeof(board->secret) - 1);
	if (!len && make_token(board, err) != LEAT_OK)
		return LEAT_IO;
	if (len)
		memcpy(board->secret, given, len + 1);
	leat_sha256(board->secret, strlen(board->secret), board->token);
	board->needs_token = true;
	return LEAT_OK;
}

/* ---- open and close ---- */

static void
set_url(struct leat_board *board, const struct addrinfo *at, unsigned port)
{
	char host[256] = "localhost";

	if (is_any(at->ai_addr))
		gethostname(host, sizeof(host) - 1);
	else
		getnameinfo(at->ai_addr, at->ai_addrlen, host, sizeof(host), NULL, 0, NI_NUMERICHOST);
	snprintf(board->url, sizeof(board->url), strchr(host, ':') ? "http://[%s]:%u/%s%s" : "http://%s:%u/%s%s", host,
	         port, board->needs_token ? "?token=" : "", board->needs_token ? board->secret : "");
	snprintf(board->cookie, sizeof(board->cookie), "leat_board_%u", port);
}

/* The page knows the version and the folder's name. */
static enum leat_status
make_page(struct leat_board *board, struct leat_err *err)
{
	struct leat_str *page = &board->page;

	leat_str_init(page, board->mem, PAGE_BYTES);
	leat_str_addn(page, leat_board_page_begin, leat_board_page_begin_size);
	leat_str_addf(page, "<script type=\"application/json\" id=\"leat-about\">{\"version\":\"%s\"}</script>\n",
	              leat_version());
	leat_str_addn(page, leat_board_page_end, leat_board_page_end_size);
	return page->failed ? leat_fail_mem(err, board->mem, PAGE_BYTES, "the board's page") : LEAT_OK;
}

/* Paths contain no escapes: a request with one is refused. */
static size_t
keep_escapes(void *arg, struct MHD_Connection *connection, char *text)
{
	(void)arg;
	(void)connection;
	return strlen(text);
}

/* MHD_USE_ITC: a connection that ends wakes the thread that accepts. Without it, that thread sleeps for ever if all
 * connections there may be end together. */
static enum leat_status
start(struct leat_board *board, int fd, struct leat_err *err)
{
	board->daemon = board->mhd->start_daemon(
		MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_THREAD_PER_CONNECTION | MHD_USE_POLL | MHD_USE_ITC, 0, NULL,
		NULL, leat_board_answer, board, MHD_OPTION_LISTEN_SOCKET, fd, MHD_OPTION_CONNECTION_LIMIT,
		(unsigned)LEAT_BOARD_CONNECTIONS, MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)LEAT_BOARD_IDLE_S,
		MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)LEAT_BOARD_REQUEST_BYTES, MHD_OPTION_THREAD_STACK_SIZE,
		(size_t)STACK_BYTES, MHD_OPTION_STRICT_FOR_CLIENT, 1, MHD_OPTION_UNESCAPE_CALLBACK, keep_escapes, NULL,
		MHD_OPTION_END);
	if (board->daemon)
		return LEAT_OK;
	close(fd);
	return leat_fail(err, LEAT_IO, "cannot start the web server: the system allows no more threads or files");
}

static enum leat_status
open_at(struct leat_board *board, const struct leat_board_options *options, const struct addrinfo *at,
        struct leat_err *err)
{
	enum leat_status status = LEAT_OK;
	unsigned port;
	int fd = -1;

	if (!is_loopback(at->ai_addr) || *options->token || options->private)
		status = set_token(board, options->token, err);
	if (status == LEAT_OK)
		status = listen_at(at, options, &fd, &port, err);
	if (status != LEAT_OK) {
		if (fd >= 0)
			close(fd);
		return status;
	}
	set_url(board, at, port);
	return start(board, fd, err);
}

static enum leat_status
init(struct leat_board *board, struct leat_mem *mem, const char *folder, struct leat_err *err)
{
	pthread_condattr_t monotonic;
	char path[PATH_MAX];

	board->mem = mem;
	leat_mem_init(&board->answers, LEAT_BOARD_MEMORY_BYTES);
	pthread_mutex_init(&board->lock, NULL);
	pthread_mutex_init(&board->planning, NULL);
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&board->wake, &monotonic);
	pthread_condattr_destroy(&monotonic);
	if (!realpath(folder, path))
		return leat_fail_errno_as(err, LEAT_INVALID, errno, "%s", folder);
	board->folder = leat_strdup(mem, path);
	if (!board->folder)
		return leat_fail_mem(err, mem, strlen(path), "the board");
	board->mhd = leat_mhd_load(err);
	return board->mhd ? make_page(board, err) : LEAT_UNSUPPORTED;
}

enum leat_status
leat_board_open(struct leat_board **board, struct leat_mem *mem, const char *folder,
                const struct leat_board_options *options, struct leat_err *err)
{
	struct leat_board *b = leat_alloc(mem, sizeof(*b));
	struct addrinfo *at = NULL;
	enum leat_status status;

	*board = NULL;
	if (!b)
		return leat_fail_mem(err, mem, sizeof(*b), "the board");
	status = init(b, mem, folder, err);
	if (status == LEAT_OK)
		status = resolve(options, &at, err);
	if (status == LEAT_OK)
		status = open_at(b, options, at, err);
	if (at)
		freeaddrinfo(at);
	if (status == LEAT_OK)
		*board = b;
	else
		leat_board_close(b);
	return status;
}

const char *
leat_board_url(const struct leat_board *board)
{
	return board->url;
}

void
leat_board_close(struct leat_board *board)
{
	if (!board)
		return;
	pthread_mutex_lock(&board->lock);
	board->stopping = true;
	pthread_cond_broadcast(&board->wake);
	pthread_mutex_unlock(&board->lock);
	if (board->daemon)
		board->mhd->stop_daemon(board->daemon); /* waits for its threads */
	for (size_t i = 0; i < board->stores; i++)
		leat_cas_close(board->store[i]);
	leat_str_free(&board->page);
	leat_free(&board->answers, board->graph);
	leat_free(board->mem, board->folder);
	pthread_cond_destroy(&board->wake);
	pthread_mutex_destroy(&board->planning);
	pthread_mutex_destroy(&board->lock);
	leat_free(board->mem, board);
}
