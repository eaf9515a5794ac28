/* inside.h - a board inside, and what its files give each other
 *
 * Threads: libmicrohttpd has one thread for each connection, at most LEAT_BOARD_CONNECTIONS. All of them read a board;
 * what changes is behind `lock`, which is never held during I/O, but for `planning`. */
#ifndef LEAT_BOARD_INSIDE_H
#define LEAT_BOARD_INSIDE_H

#include <pthread.h>

#include "board/board.h"
#include "board/microhttpd.h"
#include "board/request.h"

enum {
	LEAT_BOARD_CONNECTIONS = 64,
	LEAT_BOARD_STREAMS = 24,              /* of events: the rest stays for pages and files */
	LEAT_BOARD_IDLE_S = 30,               /* then a silent connection is closed */
	LEAT_BOARD_REQUEST_BYTES = 32 * 1024, /* of a request with its headers */
	LEAT_BOARD_JSON_BYTES = 16 << 20,     /* of one answer */
	LEAT_BOARD_MEMORY_BYTES = 256 << 20,  /* of all answers */
	LEAT_BOARD_LINE_BYTES = 1 << 20,      /* of a line of a run's log */
	LEAT_BOARD_LISTED = 1000,             /* files, slices or inputs in one answer */
	LEAT_BOARD_STORES = 32,               /* opened one after the other, each when the last was deleted */
};

struct leat_board {
	struct leat_mem *mem;
	struct leat_mem answers; /* limited */
	const struct leat_mhd *mhd;
	struct MHD_Daemon *daemon;
	char *folder; /* absolute */
	char url[512];
	bool needs_token;
	uint8_t token[LEAT_SHA256_BYTES]; /* its digest */
	char secret[LEAT_BOARD_WORD];     /* the token: for the cookie and the URL */
	char cookie[24];                  /* its name: browsers do not tell ports apart */
	struct leat_str page;

	pthread_mutex_t lock;
	pthread_cond_t wake; /* signalled when it stops */
	bool stopping;
	unsigned streams;
	struct leat_cas *store[LEAT_BOARD_STORES]; /* the last one is current; others may still be read */
	size_t stores;

	pthread_mutex_t planning; /* one thread at a time works out states, for all */
	char *graph;              /* the last answer, worked out from `graph_at` on */
	uint64_t graph_at;
};

/* LEAT_DATA: nothing was built in this folder yet, or not since .leat was deleted. */
enum leat_status leat_board_store(struct leat_board *board, struct leat_cas **cas, struct leat_err *err);
/* Sleeps, and returns true if the board is to stop. */
bool leat_board_wait(struct leat_board *board, unsigned milliseconds);

/* The callback of libmicrohttpd for each request; `board` is a struct leat_board. */
enum MHD_Result leat_board_answer(void *board, struct MHD_Connection *connection, const char *url, const char *method,
                                  const char *version, const char *upload, size_t *upload_size, void **context);

/* Answers as JSON, appended to `json`. LEAT_DATA: there is no such thing (404). */
enum leat_status leat_board_runs(struct leat_board *board, const struct leat_board_request *request,
                                 struct leat_str *json, struct leat_err *err);
enum leat_status leat_board_run(struct leat_board *board, const struct leat_board_request *request,
                                struct leat_str *json, struct leat_err *err);
enum leat_status leat_board_graph(struct leat_board *board, const struct leat_board_request *request,
                                  struct leat_str *json, struct leat_err *err);
enum leat_status leat_board_step(struct leat_board *board, const struct leat_board_request *request,
                                 struct leat_str *json, struct leat_err *err);
enum leat_status leat_board_action(struct leat_board *board, const struct leat_board_request *request,
                                   struct leat_str *json, struct leat_err *err);
enum leat_status leat_board_compare(struct leat_board *board, const struct leat_board_request *request,
                                    struct leat_str *json, struct leat_err *err);

/* A response with the headers that all have, which takes the text over; NULL: out of memory. */
struct MHD_Response *leat_board_text(struct leat_board *board, struct leat_str *text, const char *type);
void leat_board_headers(struct leat_board *board, struct MHD_Response *response, const char *type, const char *policy,
                        bool keep);
enum MHD_Result leat_board_send(struct leat_board *board, struct MHD_Connection *connection, unsigned code,
                                struct MHD_Response *response_take);
enum MHD_Result leat_board_send_error(struct leat_board *board, struct MHD_Connection *connection, unsigned code,
                                      const char *sentence);
/* Sends a file of the store; ?first=N or ?last=N: only that many bytes; ?download=1: to be saved;
 * ?text=1: as plain text, whatever it is. */
enum MHD_Result leat_board_send_blob(struct leat_board *board, struct MHD_Connection *connection,
                                     const struct leat_digest *digest);
enum MHD_Result leat_board_send_events(struct leat_board *board, struct MHD_Connection *connection, const char *run);

/* NULL if the client may ask, else why not, and the code to answer with. */
const char *leat_board_refuse(const struct leat_board *board, struct MHD_Connection *connection, const char *method,
                              const struct leat_board_request *request, unsigned *code);

#endif
