/* command.h - what a command of `leat` is
 *
 * A command adds one file, src/cli/NAME.c, that defines `const struct leat_command
 * leat_command_NAME`; the build collects the table. Its option table is read by the
 * argument parser and by `leat help`: an option `shard_size` is written --shard-size.
 * A command writes its result to standard output, everything else to standard error,
 * and never exits: main.c prints the error of a run that failed. */
#ifndef LEAT_CLI_COMMAND_H
#define LEAT_CLI_COMMAND_H

#include "base/err.h"
#include "base/mem.h"
#include "base/opt.h"

/* One run of a command. */
struct leat_invocation {
	const void *params;         /* set from the command's options */
	const char *const *operand; /* what is no option, in order */
	size_t operands;
	struct leat_mem *mem;
};

struct leat_command {
	const char *name;
	const char *summary;  /* one line of the overview */
	const char *operands; /* of the usage line: "PATTERN...", "[NAME]"; "": none */
	size_t min_operands, max_operands;
	const char *help;    /* more than the summary says; lines of at most 80 columns */
	const char *example; /* one command a line */
	const struct leat_opt *opts;
	size_t params_size;

	/* LEAT_INVALID and LEAT_SPEC mean that the user asked for something wrong (exit status 2), every
	 * other failure that it could not be done (1). */
	enum leat_status (*run)(const struct leat_invocation *run, struct leat_err *err);
};

extern const struct leat_command *const leat_commands[]; /* sorted by name, NULL at the end */

#endif
