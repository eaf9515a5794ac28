/* runner_log.c - what a command prints: read from a pipe, so it is bounded and its last line is known at once */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/size.h"
#include "step/runner_inside.h"

enum { CHUNK = 65536 };

enum leat_status
leat_output_open(struct leat_output *o, struct leat_mem *mem, const char *folder, uint64_t limit, struct leat_err *err)
{
	int fd[2];

	memset(o, 0, sizeof(*o));
	o->mem = mem;
	o->limit = limit;
	o->read_fd = o->write_fd = o->file = -1;
	if (snprintf(o->path, sizeof(o->path), "%s/log", folder) >= PATH_MAX)
		return leat_fail(err, LEAT_LIMIT, "the path %s/log is too long; move the project to a shorter one",
		                 folder);
	if (pipe2(fd, O_CLOEXEC) != 0)
		return leat_fail_errno(err, errno, "cannot make a pipe for the output of a command");
	o->read_fd = fd[0];
	o->write_fd = fd[1];
	if (fcntl(fd[0], F_SETFL, O_NONBLOCK) != 0)
		return leat_fail_errno(err, errno, "cannot make a pipe for the output of a command");
	return LEAT_OK;
}

void
leat_output_close(struct leat_output *o)
{
	int *const fd[] = {&o->read_fd, &o->write_fd, &o->file};

	if (o->mem == NULL)
		return;
	for (size_t i = 0; i < sizeof(fd) / sizeof(*fd); i++) {
		if (*fd[i] >= 0)
			close(*fd[i]);
		*fd[i] = -1;
	}
	leat_free(o->mem, o->ring);
	o->ring = NULL;
}

static void
write_out(struct leat_output *o, const char *bytes, size_t len)
{
	if (o->file < 0 && o->failed == 0) {
		o->file = open(o->path, O_RDWR | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0666);
		o->failed = o->file < 0 ? errno : 0;
	}
	while (len > 0 && o->failed == 0) {
		ssize_t n = write(o->file, bytes, len);

		if (n < 0) {
			o->failed = errno == EINTR ? 0 : errno;
			continue;
		}
		bytes += n;
		len -= (size_t)n;
		o->written += (uint64_t)n;
	}
}

static void
fill_ring(struct leat_output *o, const char *bytes, size_t len)
{
	while (len > 0) {
		size_t room = o->ring_size - o->ring_at, n = len < room ? len : room;

		memcpy(o->ring + o->ring_at, bytes, n);
		o->ring_at += n;
		bytes += n;
		len -= n;
		if (o->ring_at == o->ring_size) {
			o->ring_full = true;
			o->ring_at = 0;
		}
	}
}

static void
keep_tail(struct leat_output *o, const char *bytes, size_t len)
{
	size_t keep = sizeof(o->tail) - len;

	if (len >= sizeof(o->tail)) {
		memcpy(o->tail, bytes + len - sizeof(o->tail), sizeof(o->tail));
		o->tail_len = sizeof(o->tail);
		return;
	}
	if (o->tail_len > keep) {
		memmove(o->tail, o->tail + o->tail_len - keep, keep);
		o->tail_len = keep;
	}
	memcpy(o->tail + o->tail_len, bytes, len);
	o->tail_len += len;
}

/* Half of the limit to the file, the rest to the ring. Without memory for one, the end is lost. */
static void
add(struct leat_output *o, const char *bytes, size_t len)
{
	uint64_t half = o->limit / 2;
	uint64_t room = o->bytes < half ? half - o->bytes : 0;
	size_t first = len < room ? len : (size_t)room;

	o->bytes += len;
	keep_tail(o, bytes, len);
	write_out(o, bytes, first);
	if (first == len)
		return;
	if (o->ring == NULL && o->ring_size == 0) {
		o->ring_size = (size_t)half;
		o->ring = leat_alloc(o->mem, o->ring_size);
	}
	if (o->ring != NULL)
		fill_ring(o, bytes + first, len - first);
}

bool
leat_output_read(struct leat_output *o)
{
	char chunk[CHUNK];
	ssize_t n;

	if (o->read_fd < 0)
		return false;
	n = read(o->read_fd, chunk, sizeof(chunk));
	if (n > 0)
		add(o, chunk, (size_t)n);
	if (n == 0) {
		close(o->read_fd);
		o->read_fd = -1;
	}
	return n > 0 || (n < 0 && errno == EINTR);
}

/* The ring after a note on what is missing. */
static void
write_ring(struct leat_output *o)
{
	uint64_t kept = o->ring_full ? o->ring_size : o->ring_at, left_out = o->bytes - o->limit / 2 - kept;
	char note[160], size[32];
	int len;

	if (o->ring_size == 0)
		return;
	len = snprintf(note, sizeof(note), "\n[leat: %s of output left out here: a log is at most %llu MiB]\n",
	               leat_format_size(size, sizeof(size), left_out), (unsigned long long)(o->limit >> 20));
	if (left_out > 0)
		write_out(o, note, (size_t)len);
	if (o->ring == NULL)
		return;
	if (o->ring_full)
		write_out(o, o->ring + o->ring_at, o->ring_size - o->ring_at);
	write_out(o, o->ring, o->ring_at);
}

enum leat_status
leat_output_keep(struct leat_output *o, struct leat_cas *cas, struct leat_digest *log, struct leat_err *err)
{
	struct leat_content content;
	enum leat_status status;

	if (o->bytes <= o->tail_len) /* nothing, or so little that no file has to be read */
		return leat_cas_put_bytes(cas, o->tail, o->tail_len, log, err);
	write_ring(o);
	if (o->failed != 0)
		return leat_fail_errno(err, o->failed, "cannot keep the output of a command in %s", o->path);
	close(o->file);
	o->file = -1;
	status = leat_cas_take(cas, o->path, &content, err);
	if (status == LEAT_OK)
		*log = content.digest;
	return status;
}
