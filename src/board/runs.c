/* runs.c - /api/runs and /api/run/RUN */
#include "board/runs.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "board/tally.h"

enum { MOST_RUNS = 200 };

static enum leat_status
open_log(struct leat_cas *cas, const char *run, int *fd, struct leat_err *err)
{
	char path[PATH_MAX];

	if (snprintf(path, sizeof(path), "%s/runs/%s.jsonl", leat_cas_folder(cas), run) >= (int)sizeof(path))
		return leat_fail(err, LEAT_DATA, "the path of the store is too long");
	*fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	return *fd >= 0 ? LEAT_OK : leat_fail_errno_as(err, LEAT_DATA, errno, "cannot read the log of run %s", run);
}

enum leat_status
leat_board_open_run(struct leat_board *board, const char *run, char name[LEAT_BOARD_WORD], struct leat_cas **cas,
                    int *fd, struct leat_err *err)
{
	struct leat_paths runs = {0};
	enum leat_status status = leat_board_store(board, cas, err);
	size_t i = 0;

	*fd = -1;
	if (status != LEAT_OK)
		return status;
	status = leat_runs_list(*cas, &board->answers, &runs, err);
	while (status == LEAT_OK && *run && i < runs.count && strcmp(runs.path[i], run) != 0)
		i++;
	if (status == LEAT_OK && (i == runs.count || strlen(runs.path[i]) >= LEAT_BOARD_WORD))
		status = *run ? leat_fail(err, LEAT_DATA, "there is no run %s", run)
		              : leat_fail(err, LEAT_DATA, "nothing was built here yet");
	if (status == LEAT_OK) {
		strcpy(name, runs.path[i]);
		status = open_log(*cas, runs.path[i], fd, err);
	}
	leat_paths_free(&runs, &board->answers);
	return status;
}

/* ---- one run ---- */

enum leat_status
leat_board_run(struct leat_board *board, const struct leat_board_request *request, struct leat_str *json,
               struct leat_err *err)
{
	struct leat_tally tally;
	char name[LEAT_BOARD_WORD];
	struct leat_cas *cas;
	enum leat_status status;
	uint64_t at = 0;
	bool alive;
	int fd;

	leat_tally_init(&tally, &board->answers);
	status = leat_board_open_run(board, request->word[0], name, &cas, &fd, err);
	if (status != LEAT_OK)
		return status;
	alive = leat_run_is_alive(cas, name); /* before reading: a run that ends now is read to its end */
	status = leat_tally_read(&tally, fd, &at, SIZE_MAX / 2, NULL, NULL, err);
	if (status == LEAT_OK)
		leat_tally_json(&tally, name, alive, json);
	leat_tally_free(&tally);
	close(fd);
	return status;
}

/* ---- all runs: the first and the last line of each ---- */

static int
append(const char *text, size_t len, void *out)
{
	leat_str_addn(out, text, len);
	return 0;
}

/* Appends a line that must be this event, without the list of steps; "null" if it is another. */
static void
add_event(const char *text, size_t len, const char *event, struct leat_str *json)
{
	struct leat_run_line line;

	if (leat_run_line_parse(text, len, &line, NULL) != LEAT_OK) {
		leat_str_add(json, "null");
		return;
	}
	if (strcmp(line.event, event) == 0) {
		json_object_del(line.json, "steps");
		if (json_dump_callback(line.json, append, json, JSON_COMPACT) != 0)
			json->failed = true;
	} else {
		leat_str_add(json, "null");
	}
	leat_run_line_free(&line);
}

static void
add_first_line(int fd, char *buf, struct leat_str *json)
{
	ssize_t got = pread(fd, buf, LEAT_BOARD_LINE_BYTES, 0);
	const char *end = got > 0 ? memchr(buf, '\n', (size_t)got) : NULL;

	add_event(buf, end ? (size_t)(end - buf) : 0, "begin", json);
}

static void
add_last_line(int fd, char *buf, struct leat_str *json)
{
	struct stat st;
	off_t from = fstat(fd, &st) == 0 && st.st_size > LEAT_BOARD_LINE_BYTES ? st.st_size - LEAT_BOARD_LINE_BYTES : 0;
	ssize_t got = pread(fd, buf, LEAT_BOARD_LINE_BYTES, from);
	const char *end = got > 0 ? memrchr(buf, '\n', (size_t)got) : NULL;
	const char *begin = end ? memrchr(buf, '\n', (size_t)(end - buf)) : NULL;

	begin = begin ? begin + 1 : buf;
	add_event(begin, end ? (size_t)(end - begin) : 0, "end", json);
}

static void
add_run(struct leat_cas *cas, const char *run, char *buf, size_t *listed, struct leat_str *json)
{
	int fd;

	if (open_log(cas, run, &fd, NULL) != LEAT_OK)
		return; /* removed since */
	leat_str_add(json, (*listed)++ ? ",{\"run\":" : "{\"run\":");
	leat_str_add_json(json, run);
	leat_str_addf(json, ",\"alive\":%s,\"begin\":", leat_run_is_alive(cas, run) ? "true" : "false");
	add_first_line(fd, buf, json);
	leat_str_add(json, ",\"end\":");
	add_last_line(fd, buf, json);
	leat_str_add(json, "}");
	close(fd);
}

enum leat_status
leat_board_runs(struct leat_board *board, const struct leat_board_request *request, struct leat_str *json,
                struct leat_err *err)
{
	struct leat_paths runs = {0};
	struct leat_cas *cas;
	enum leat_status status = leat_board_store(board, &cas, NULL);
	char *buf = leat_alloc(&board->answers, LEAT_BOARD_LINE_BYTES);
	size_t listed = 0;

	(void)request;
	leat_str_add(json, "{\"runs\":[");
	if (!buf)
		return leat_fail_mem(err, &board->answers, LEAT_BOARD_LINE_BYTES, "the list of runs");
	if (status == LEAT_OK) {
		status = leat_runs_list(cas, &board->answers, &runs, err);
		for (size_t i = 0; i < runs.count && i < MOST_RUNS && status == LEAT_OK && !json->failed; i++)
			add_run(cas, runs.path[i], buf, &listed, json);
		leat_paths_free(&runs, &board->answers);
	} else {
		status = LEAT_OK; /* no store: no runs */
	}
	leat_str_addf(json, "],\"count\":%zu}", runs.count);
	leat_free(&board->answers, buf);
	return status;
}
