/* args.h - the options of a command line, read and explained by an option table
 *
 *	--name VALUE   --name=VALUE   -n VALUE   -nVALUE   --flag   --no-flag   --
 *
 * Strings and choices are taken as they stand, numbers and lists are spec text (4MiB, 10k, [1, 2]).
 * The last one wins when an option is repeated. Some names have a letter, the same in every command. */
#ifndef LEAT_CLI_ARGS_H
#define LEAT_CLI_ARGS_H

#include <stdio.h>

#include "base/opt.h"

/* Sets `params` from argv[0..argc), which it borrows, and gathers what is no option in `operand`, which
 * has room for argc. *help is set, and nothing else done, when -h or --help is there. `params` is freed
 * with leat_opts_free, after a failure too. */
enum leat_status leat_args_read(const struct leat_opt *opts, void *params, int argc, char *const *argv,
                                const char **operand, size_t *operands, bool *help, struct leat_mem *mem,
                                struct leat_err *err);

/* One line for each option. */
enum leat_status leat_args_help(const struct leat_opt *opts, FILE *out, struct leat_mem *mem, struct leat_err *err);

#endif
