/* args.h - command-line options: parsing and help text from an option table
 *
 *	--name VALUE   --name=VALUE   -n VALUE   -nVALUE   --flag   --no-flag   --
 *
 * Strings and choices are verbatim; numbers and lists are spec text (4MiB, 10k, [1, 2]). If an option is repeated,
 * the last one wins, unless the table says that it makes a list (LEAT_OPT_REPEATS). Some options have a short form, the
 *same in every command. */
#ifndef LEAT_CLI_ARGS_H
#define LEAT_CLI_ARGS_H

#include <stdio.h>

#include "base/opt.h"

/* Sets `params` from argv[0..argc), which must outlive it, and collects the other arguments in `operand`, which has
 * room for argc. With -h or --help it stops and sets *help. Free `params` with leat_opts_free, even after a failure. */
enum leat_status leat_args_read(const struct leat_opt *opts, void *params, int argc, char *const *argv,
                                const char **operand, size_t *operands, bool *help, struct leat_mem *mem,
                                struct leat_err *err);

/* Prints one line per option. */
enum leat_status leat_args_help(const struct leat_opt *opts, FILE *out, struct leat_mem *mem, struct leat_err *err);

#endif
