/* events.c - /api/events: a run as it goes on, as server-sent events
 *
 *	event: run     {"run":..., "steps":[...], ...}: all of it (as /api/run), when a run is followed from now on,
 *	               and when its first line was written after that
 *	event: line    {"run":..., "line":{...}, "step":{...}}: one event more, and what its step adds up to
 *	event: over    {"run":..., "alive":false}: its process ended
 *
 * A stream reads on in the log only when its client has taken what was sent before, so it holds little, however slow
 * the client is. Silence is broken by a comment every few seconds, which notices clients that went away.
 *
 * Threads: that of the connection. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "board/runs.h"
#include "board/tally.h"

enum { POLL_MS = 200, QUIET_POLLS = 25, AT_ONCE = 128 * 1024, BLOCK = 32 * 1024 };

struct stream {
	struct leat_board *board;
	bool newest; /* follows the newest run, whichever it is; else only `run` */
	char run[LEAT_BOARD_WORD];
	struct leat_cas *cas; /* it is in this store */
	int fd;               /* of its log; -1: none yet */
	uint64_t at;
	bool alive, lost;
	unsigned quiet; /* polls without news */
	struct leat_tally tally;
	struct leat_str out;
	size_t sent;
};

/* All that the run did so far. */
static void
add_run(struct stream *stream)
{
	leat_str_add(&stream->out, "event: run\ndata: ");
	leat_tally_json(&stream->tally, stream->run, stream->alive, &stream->out);
	leat_str_add(&stream->out, "\n\n");
}

static void
add_line(void *arg, const struct leat_tally *tally)
{
	struct stream *stream = arg;
	struct leat_str *out = &stream->out;

	if (!tally->last)
		return;
	if (tally->begin && strcmp(tally->last, tally->begin) == 0) {
		add_run(stream); /* the page did not know its steps */
		return;
	}
	leat_str_add(out, "event: line\ndata: {\"run\":");
	leat_str_add_json(out, stream->run);
	leat_str_add(out, ",\"line\":");
	leat_str_add(out, tally->last);
	leat_str_add(out, ",\"step\":");
	if (tally->touched < tally->steps)
		leat_tally_step_json(&tally->step[tally->touched], out);
	else
		leat_str_add(out, "null");
	leat_str_add(out, "}\n\n");
}

/* Begins to follow a run: sends what it did so far. */
static void
follow(struct stream *stream, const char *name, struct leat_cas *cas, int fd_take)
{
	if (stream->fd >= 0)
		close(stream->fd);
	leat_tally_free(&stream->tally);
	leat_tally_init(&stream->tally, &stream->board->answers);
	stream->cas = cas;
	stream->fd = fd_take;
	stream->at = 0;
	strcpy(stream->run, name);
	stream->alive = leat_run_is_alive(stream->cas, name);
	stream->lost = leat_tally_read(&stream->tally, fd_take, &stream->at, SIZE_MAX / 2, NULL, NULL, NULL) != LEAT_OK;
	if (!stream->lost)
		add_run(stream);
}

/* Is there another run to follow? */
static void
look_for_run(struct stream *stream)
{
	char name[LEAT_BOARD_WORD];
	struct leat_cas *cas;
	int fd;

	if (!stream->newest && stream->fd >= 0)
		return;
	if (leat_board_open_run(stream->board, stream->newest ? "" : stream->run, name, &cas, &fd, NULL) != LEAT_OK)
		return;
	if (stream->fd < 0 || strcmp(name, stream->run) != 0)
		follow(stream, name, cas, fd);
	else
		close(fd);
}

static void
read_on(struct stream *stream)
{
	bool alive = leat_run_is_alive(stream->cas, stream->run); /* before its last line is read */

	if (leat_tally_read(&stream->tally, stream->fd, &stream->at, AT_ONCE, add_line, stream, NULL) != LEAT_OK)
		stream->lost = true;
	if (stream->alive && !alive && !stream->out.len) {
		stream->alive = false;
		leat_str_add(&stream->out, "event: over\ndata: {\"run\":");
		leat_str_add_json(&stream->out, stream->run);
		leat_str_add(&stream->out, ",\"alive\":false}\n\n");
	}
}

static void
poll_news(struct stream *stream)
{
	leat_str_free(&stream->out); /* it may have been large */
	leat_str_init(&stream->out, &stream->board->answers, LEAT_BOARD_JSON_BYTES);
	stream->sent = 0;
	if (stream->fd >= 0)
		read_on(stream);
	if (!stream->out.len)
		look_for_run(stream);
	if (!stream->out.len && ++stream->quiet >= QUIET_POLLS)
		leat_str_add(&stream->out, ": still here\n\n");
	if (stream->out.len)
		stream->quiet = 0;
}

/* Called by libmicrohttpd for more bytes; waits until there are some. */
static ssize_t
more(void *arg, uint64_t at, char *buf, size_t max)
{
	struct stream *stream = arg;
	size_t len;

	(void)at;
	while (stream->sent == stream->out.len) {
		if (stream->lost || stream->out.failed || leat_board_wait(stream->board, POLL_MS))
			return MHD_CONTENT_READER_END_OF_STREAM;
		poll_news(stream);
	}
	len = stream->out.len - stream->sent < max ? stream->out.len - stream->sent : max;
	memcpy(buf, stream->out.text + stream->sent, len);
	stream->sent += len;
	return (ssize_t)len;
}

static void
end_stream(void *arg)
{
	struct stream *stream = arg;
	struct leat_board *board = stream->board;

	if (stream->fd >= 0)
		close(stream->fd);
	leat_tally_free(&stream->tally);
	leat_str_free(&stream->out);
	leat_free(&board->answers, stream);
	pthread_mutex_lock(&board->lock);
	board->streams--;
	pthread_mutex_unlock(&board->lock);
}

static bool
may_begin(struct leat_board *board)
{
	bool may;

	pthread_mutex_lock(&board->lock);
	may = board->streams < LEAT_BOARD_STREAMS;
	board->streams += may;
	pthread_mutex_unlock(&board->lock);
	return may;
}

static struct stream *
new_stream(struct leat_board *board, const char *run)
{
	struct stream *stream = leat_alloc(&board->answers, sizeof(*stream));

	if (!stream)
		return NULL;
	stream->board = board;
	stream->newest = !*run;
	stream->fd = -1;
	strcpy(stream->run, run);
	leat_tally_init(&stream->tally, &board->answers);
	leat_str_init(&stream->out, &board->answers, LEAT_BOARD_JSON_BYTES);
	leat_str_add(&stream->out, "retry: 1000\n\n");
	return stream;
}

enum MHD_Result
leat_board_send_events(struct leat_board *board, struct MHD_Connection *connection, const char *run)
{
	struct MHD_Response *response;
	struct stream *stream;

	if (!may_begin(board))
		return leat_board_send_error(board, connection, MHD_HTTP_SERVICE_UNAVAILABLE,
		                             "too many pages follow this board; close some");
	stream = new_stream(board, run);
	if (!stream) {
		pthread_mutex_lock(&board->lock);
		board->streams--;
		pthread_mutex_unlock(&board->lock);
		return MHD_NO;
	}
	response = board->mhd->create_response_from_callback(MHD_SIZE_UNKNOWN, BLOCK, more, stream, end_stream);
	if (!response) {
		end_stream(stream);
		return MHD_NO;
	}
	leat_board_headers(board, response, "text/event-stream", "default-src 'none'", false);
	return leat_board_send(board, connection, MHD_HTTP_OK, response);
}
