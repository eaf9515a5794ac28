/* convert_run.h - storing what comes out of a spec: what `leat convert` and `leat pack` share */
#ifndef LEAT_CLI_CONVERT_RUN_H
#define LEAT_CLI_CONVERT_RUN_H

#include "base/err.h"
#include "base/mem.h"

/* The choices of the option `format`, in the order of leat_convert_request. */
#define LEAT_CONVERT_FORMATS "tfrecord|tar|npy"
enum leat_convert_to { LEAT_CONVERT_TFRECORD, LEAT_CONVERT_TAR, LEAT_CONVERT_NPY };

struct leat_convert_request {
	const char *output;
	int format;                                                 /* enum leat_convert_to */
	int64_t shards, shard_size, seed, threads, memory, max_bad; /* 0: as leat_options_init; max_bad -1: no limit */
	int on_error;
	bool overwrite, quiet;
};

/* Writes the files and prints what came of it. */
enum leat_status leat_convert_run(const struct leat_convert_request *request, const char *spec, struct leat_mem *mem,
                                  struct leat_err *err);

#endif
