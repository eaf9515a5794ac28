/* runs.h - find a build by its name */
#ifndef LEAT_CLI_RUNS_H
#define LEAT_CLI_RUNS_H

#include "step/run_log.h"

/* The name of a run: by its beginning, if it is the only one, or "latest". Free with leat_free. */
enum leat_status leat_run_find(struct leat_cas *cas, const char *text, struct leat_mem *mem, char **run,
                               struct leat_err *err);

#endif
