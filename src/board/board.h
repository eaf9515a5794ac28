/* board.h - a web page over the content store: runs, steps, actions, logs, pictures
 *
 * libmicrohttpd, loaded when the board starts. GET and HEAD only; it never writes. Without a token it answers only on
 * loopback addresses, and only to requests whose Host is one (DNS rebinding). Bound elsewhere it needs a token, in a
 * cookie that the first URL sets. Paths are looked up in the store, never joined from what a client sends. */
#ifndef LEAT_BOARD_BOARD_H
#define LEAT_BOARD_BOARD_H

#include <stdatomic.h>

#include "step/run_log.h"

struct leat_board;
struct leat_board_options {
	const char *address; /* "127.0.0.1" */
	unsigned port;       /* 0: any */
	const char *token;   /* "": made when one is needed */
	bool private;        /* needs one on a loopback address, too */
};

/* `folder` holds .leat, and leat.yaml if there is one. */
enum leat_status leat_board_open(struct leat_board **board, struct leat_mem *mem, const char *folder,
                                 const struct leat_board_options *options, struct leat_err *err);
const char *leat_board_url(const struct leat_board *board); /* with the token, if it needs one */
void leat_board_close(struct leat_board *board);            /* accepts NULL */

#endif
