/* request.h - what a client asks for, parsed from its path
 *
 *	/                          the page
 *	/api/runs                  all runs, newest first
 *	/api/run/RUN               one run
 *	/api/graph                 steps with their states
 *	/api/step/STEP             the slices of a step
 *	/api/action/STEP-NUMBER    one action
 *	/api/compare/RUN/RUN       params and metrics of two runs
 *	/api/events[/RUN]          server-sent events of the newest run, or of one
 *	/blob/HASH                 a file by its content
 *
 * Paths are hostile. A word is letters, digits, '_' and '-', so neither "..", nor escapes, nor absolute paths can be
 * written; what a word names is then looked up in the store. */
#ifndef LEAT_BOARD_REQUEST_H
#define LEAT_BOARD_REQUEST_H

#include "cas/content.h"

enum leat_board_what {
	LEAT_BOARD_NOTHING, /* there is no such path */
	LEAT_BOARD_PAGE,
	LEAT_BOARD_RUNS,
	LEAT_BOARD_RUN,
	LEAT_BOARD_GRAPH,
	LEAT_BOARD_STEP,
	LEAT_BOARD_ACTION,
	LEAT_BOARD_COMPARE,
	LEAT_BOARD_EVENTS,
	LEAT_BOARD_BLOB,
};

enum { LEAT_BOARD_WORD = 128 };

struct leat_board_request {
	enum leat_board_what what;
	char word[2][LEAT_BOARD_WORD]; /* runs or the step; "" if there is none */
	uint64_t number;               /* of the action */
	struct leat_digest digest;
};

/* `path` as it was sent, without the query. */
void leat_board_parse(const char *path, struct leat_board_request *request);

/* A Host header that names this machine's loopback interface, with any port: the only ones a browser sends for
 * a page that was not rebound by DNS. NULL: the client sent none. */
bool leat_board_host_is_local(const char *host);

#endif
