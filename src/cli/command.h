/* command.h - what a command of `leat` is
 *
 * To add a command, add one file, src/cli/NAME.c, that defines `const struct leat_command leat_command_NAME`; the
 * build collects the table. The argument parser and `leat help` use its option table: option `shard_size` is
 * written --shard-size. A command writes its result to standard output and everything else to standard error. It
 * never exits; main.c prints the error of a failed run. */
#ifndef LEAT_CLI_COMMAND_H
#define LEAT_CLI_COMMAND_H

#include "base/err.h"
#include "base/mem.h"
#include "base/opt.h"
#include "store/settings.h"

/* Options of commands that read samples, as in struct leat_options. */
#define LEAT_SAMPLE_LIMITS(T)                                                                                          \
	LEAT_INT(T, max_pixels, "89478485", 1, 9e18, "images with more pixels are bad"),                               \
		LEAT_SIZE(T, max_bytes, "256MiB", 1, 1e18,                                                             \
	                  "samples with more bytes, as stored or once decompressed, are bad")

/* Option of commands that open URIs, for a member `struct leat_strings storage`. main.c parses it. */
#define LEAT_STORAGE_OPTION(T)                                                                                         \
	LEAT_OPT_(T, storage, LEAT_OPT_STRINGS, "", 0, 0, NULL,                                                        \
	          "setting of remote storage, such as endpoint=URL; repeat it for more; see 'leat help storage'",      \
	          LEAT_OPT_REPEATS)

/* One run of a command. */
struct leat_invocation {
	const void *params;         /* set from the command's options */
	const char *const *operand; /* non-option arguments, in order */
	size_t operands;
	const char *const *arguments;       /* the command's name and all that follows it, as given; ends with NULL */
	const char *const *settings;        /* of --storage, for leat_options; ends with NULL; NULL: none */
	const struct leat_storage *storage; /* the same, for leat_stores */
	struct leat_mem *mem;
};

struct leat_command {
	const char *name;
	const char *summary;  /* line in `leat help` */
	const char *operands; /* for the usage line: "PATTERN...", "[NAME]"; "": none */
	size_t min_operands, max_operands;
	const char *help;    /* details; lines of at most 80 columns */
	const char *example; /* one command per line */
	const struct leat_opt *opts;
	size_t params_size;

	/* LEAT_INVALID and LEAT_SPEC are usage errors (exit status 2); every other failure exits with 1. */
	enum leat_status (*run)(const struct leat_invocation *run, struct leat_err *err);
};

extern const struct leat_command *const leat_commands[]; /* sorted by name, NULL at the end */

#endif
