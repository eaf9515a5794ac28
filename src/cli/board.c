/* board.c - `leat board`: a web page over the content store */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include "board/board.h"
#include "cli/command.h"

struct params {
	int64_t port;
	const char *address;
	bool private;
};

static const struct leat_opt options[] = {
	LEAT_INT(struct params, port, "8642", 0, 65535, "port to listen on; 0: any free one"),
	LEAT_STRING(struct params, address, "127.0.0.1", "address to listen on"),
	LEAT_BOOL(struct params, private, "false", "ask for a token on this machine, too"),
	LEAT_OPT_END,
};

/* ^C and SIGTERM are blocked in all threads, so this one can wait for them. */
static void
wait_for_signal(const sigset_t *set)
{
	int got;

	while (sigwait(set, &got) != 0)
		;
}

static enum leat_status
run_board(const struct leat_invocation *run, struct leat_err *err)
{
	const struct params *p = run->params;
	const char *token = getenv("LEAT_BOARD_TOKEN"); /* not an option: other users can read those */
	struct leat_board_options o = {
		.address = p->address, .port = (unsigned)p->port, .token = token ? token : "", .private = p->private};
	struct leat_board *board;
	enum leat_status status;
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	status = leat_board_open(&board, run->mem, run->operands ? run->operand[0] : ".", &o, err);
	if (status != LEAT_OK)
		return status;
	printf("%s\n", leat_board_url(board));
	fflush(stdout);
	fprintf(stderr, "The board shows what is built here until you press ^C.\n");
	wait_for_signal(&set);
	leat_board_close(board);
	return LEAT_OK;
}

const struct leat_command leat_command_board = {
	.name = "board",
	.summary = "Show builds, steps, logs and results in a browser",
	.operands = "[FOLDER]",
	.max_operands = 1,
	.help = "Prints the page's URL, and serves it until ^C. FOLDER (default: the current one)\n"
		"holds leat.yaml and .leat. The page shows the steps with their states, live\n"
		"while a build runs; each action's inputs, outputs, pictures and log; and the\n"
		"params and metrics of two runs side by side.\n"
		"\n"
		"The board never writes. It answers only to this machine, unless --address says\n"
		"otherwise: then, or with --private, the URL has a token, without which nothing\n"
		"is shown. Set LEAT_BOARD_TOKEN to choose it; else it is another one each time.\n",
	.example = "leat board\n"
		   "leat board --port 0 ~/eeg\n"
		   "leat board --address 0.0.0.0",
	.opts = options,
	.params_size = sizeof(struct params),
	.run = run_board,
};
