/* convert_run.h - run a spec and save the result; shared by `leat convert` and `leat pack` */
#ifndef LEAT_CLI_CONVERT_RUN_H
#define LEAT_CLI_CONVERT_RUN_H

#include "cli/command.h"

/* Choices of option `format`, in the order of enum leat_convert_to. */
#define LEAT_CONVERT_FORMATS "tfrecord|tar|npy"
enum leat_convert_to { LEAT_CONVERT_TFRECORD, LEAT_CONVERT_TAR, LEAT_CONVERT_NPY };

struct leat_convert_request {
	const char *output;
	int format;                                                 /* enum leat_convert_to */
	int64_t shards, shard_size, seed, threads, memory, max_bad; /* 0: as leat_options_init; max_bad -1: no limit */
	int64_t max_pixels, max_bytes;
	int on_error;
	const char *bad; /* file for bad samples; NULL or "": none */
	bool overwrite, quiet;
	struct leat_strings storage;
	const struct leat_invocation *run; /* not an option */
};

/* Writes the files and prints a summary. */
enum leat_status leat_convert_run(const struct leat_convert_request *request, const char *spec, struct leat_err *err);

#endif
