/* answer.c - from a request to its response
 *
 * Threads: that of the connection. */
#include <stdio.h>
#include <string.h>

#include "board/inside.h"
#include "board/page.h"

enum { BLOCK = 32 * 1024 };

/* For everything but pages and files: it is no document. */
static const char no_document[] = "default-src 'none'; frame-ancestors 'none'; sandbox";

void
leat_board_headers(struct leat_board *board, struct MHD_Response *response, const char *type, const char *policy,
                   bool keep)
{
	__typeof__(MHD_add_response_header) *add = board->mhd->add_response_header;

	add(response, "Content-Type", type);
	add(response, "Content-Security-Policy", policy);
	add(response, "X-Content-Type-Options", "nosniff");
	add(response, "Referrer-Policy", "no-referrer");
	add(response, "Cross-Origin-Resource-Policy", "same-origin");
	add(response, "Cross-Origin-Opener-Policy", "same-origin");
	add(response, "Cache-Control", keep ? "private, max-age=31536000, immutable" : "no-store");
}

/* Text that is being sent. libmicrohttpd would copy it, which the memory limit of all answers would not see. */
struct sending {
	struct leat_mem *mem;
	char *text;
	size_t len;
};

static ssize_t
read_text(void *arg, uint64_t at, char *buf, size_t max)
{
	const struct sending *sending = arg;
	size_t left = at < sending->len ? sending->len - (size_t)at : 0, len = left < max ? left : max;

	if (!len)
		return MHD_CONTENT_READER_END_OF_STREAM;
	memcpy(buf, sending->text + at, len);
	return (ssize_t)len;
}

static void
free_text(void *arg)
{
	struct sending *sending = arg;

	leat_free(sending->mem, sending->text);
	leat_free(sending->mem, sending);
}

struct MHD_Response *
leat_board_text(struct leat_board *board, struct leat_str *text, const char *type)
{
	struct sending *sending = leat_alloc(&board->answers, sizeof(*sending));
	struct MHD_Response *response;

	if (!sending)
		return NULL;
	*sending = (struct sending){.mem = &board->answers, .len = text->len};
	sending->text = leat_str_take(text);
	response = sending->text ? board->mhd->create_response_from_callback(sending->len, BLOCK, read_text, sending,
	                                                                     free_text)
	                         : NULL;
	if (response)
		leat_board_headers(board, response, type, no_document, false);
	else
		free_text(sending);
	return response;
}

enum MHD_Result
leat_board_send(struct leat_board *board, struct MHD_Connection *connection, unsigned code,
                struct MHD_Response *response_take)
{
	enum MHD_Result sent;

	if (!response_take)
		return MHD_NO; /* closes the connection */
	sent = board->mhd->queue_response(connection, code, response_take);
	board->mhd->destroy_response(response_take);
	return sent;
}

enum MHD_Result
leat_board_send_error(struct leat_board *board, struct MHD_Connection *connection, unsigned code, const char *sentence)
{
	struct MHD_Response *response;
	struct leat_str json;

	leat_str_init(&json, &board->answers, LEAT_BOARD_REQUEST_BYTES);
	leat_str_add(&json, "{\"error\":");
	leat_str_add_json(&json, sentence);
	leat_str_add(&json, "}\n");
	response = json.failed ? NULL : leat_board_text(board, &json, "application/json");
	if (response && code == MHD_HTTP_METHOD_NOT_ALLOWED)
		board->mhd->add_response_header(response, "Allow", "GET, HEAD");
	leat_str_free(&json);
	return leat_board_send(board, connection, code, response);
}

static enum MHD_Result
send_page(struct leat_board *board, struct MHD_Connection *connection)
{
	struct MHD_Response *response =
		board->mhd->create_response_from_buffer(board->page.len, board->page.text, MHD_RESPMEM_PERSISTENT);
	char cookie[256], policy[1024];

	if (!response)
		return MHD_NO;
	snprintf(policy, sizeof(policy), "%s; frame-ancestors 'none'", (const char *)leat_board_page_policy);
	leat_board_headers(board, response, "text/html; charset=utf-8", policy, false);
	if (board->needs_token) {
		snprintf(cookie, sizeof(cookie), "%s=%s; Path=/; HttpOnly; SameSite=Strict", board->cookie,
		         board->secret);
		board->mhd->add_response_header(response, "Set-Cookie", cookie);
	}
	return leat_board_send(board, connection, MHD_HTTP_OK, response);
}

typedef enum leat_status api(struct leat_board *board, const struct leat_board_request *request, struct leat_str *json,
                             struct leat_err *err);

static api *const apis[] = {
	[LEAT_BOARD_RUNS] = leat_board_runs,     [LEAT_BOARD_RUN] = leat_board_run,
	[LEAT_BOARD_GRAPH] = leat_board_graph,   [LEAT_BOARD_STEP] = leat_board_step,
	[LEAT_BOARD_ACTION] = leat_board_action, [LEAT_BOARD_COMPARE] = leat_board_compare,
};

static unsigned
code_of(enum leat_status status)
{
	if (status == LEAT_DATA || status == LEAT_INVALID)
		return MHD_HTTP_NOT_FOUND;
	return status == LEAT_NOMEM || status == LEAT_LIMIT ? MHD_HTTP_SERVICE_UNAVAILABLE
	                                                    : MHD_HTTP_INTERNAL_SERVER_ERROR;
}

static enum MHD_Result
send_json(struct leat_board *board, struct MHD_Connection *connection, const struct leat_board_request *request)
{
	struct MHD_Response *response;
	struct leat_err err = {0};
	struct leat_str json;
	enum leat_status status;

	leat_str_init(&json, &board->answers, LEAT_BOARD_JSON_BYTES);
	status = apis[request->what](board, request, &json, &err);
	if (status == LEAT_OK && json.failed)
		status = leat_fail(&err, LEAT_LIMIT, "the answer is too large, or the board is answering too many");
	response = status == LEAT_OK ? leat_board_text(board, &json, "application/json") : NULL;
	leat_str_free(&json);
	if (status != LEAT_OK)
		return leat_board_send_error(board, connection, code_of(status), err.text);
	return leat_board_send(board, connection, MHD_HTTP_OK, response);
}

static enum MHD_Result
respond(struct leat_board *board, struct MHD_Connection *connection, const struct leat_board_request *request)
{
	switch (request->what) {
	case LEAT_BOARD_NOTHING:
		return leat_board_send_error(board, connection, MHD_HTTP_NOT_FOUND, "there is nothing at this path");
	case LEAT_BOARD_PAGE:
		return send_page(board, connection);
	case LEAT_BOARD_EVENTS:
		return leat_board_send_events(board, connection, request->word[0]);
	case LEAT_BOARD_BLOB:
		return leat_board_send_blob(board, connection, &request->digest);
	default:
		return send_json(board, connection, request);
	}
}

enum MHD_Result
leat_board_answer(void *board, struct MHD_Connection *connection, const char *url, const char *method,
                  const char *version, const char *upload, size_t *upload_size, void **context)
{
	static char seen; /* its address marks a request whose headers were seen */
	struct leat_board_request request;
	const char *why;
	unsigned code;

	(void)version;
	(void)upload;
	leat_board_parse(url, &request);
	why = leat_board_refuse(board, connection, method, &request, &code);
	if (why)
		return leat_board_send_error(board, connection, code, why);
	if (*upload_size)
		return MHD_NO; /* a GET with a body: close */
	if (!*context) {
		*context = &seen;
		return MHD_YES;
	}
	return respond(board, connection, &request);
}
