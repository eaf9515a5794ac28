/* runs.h - read logs of builds */
#ifndef LEAT_CLI_RUNS_H
#define LEAT_CLI_RUNS_H

#include "step/run_log.h"

/* Calls `line` for each line of a run's log. Lines that cannot be read are skipped: the last one may be unfinished. */
struct leat_run_lines_reader {
	enum leat_status (*line)(void *arg, const struct leat_run_line *line, struct leat_err *err);
	void *arg;
};
enum leat_status leat_run_lines(struct leat_cas *cas, const char *run, const struct leat_run_lines_reader *reader,
                                struct leat_err *err);
/* Calls it for the last line only, without reading the others. */
enum leat_status leat_run_last_line(struct leat_cas *cas, const char *run, const struct leat_run_lines_reader *reader,
                                    struct leat_err *err);

/* The name of a run: by its beginning, if it is the only one, or "latest". Free with leat_free. */
enum leat_status leat_run_find(struct leat_cas *cas, const char *text, struct leat_mem *mem, char **run,
                               struct leat_err *err);

#endif
