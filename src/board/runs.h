/* runs.h - logs of runs: finding and opening them */
#ifndef LEAT_BOARD_RUNS_H
#define LEAT_BOARD_RUNS_H

#include "board/inside.h"

/* Opens the log of a run, which must be one that leat_runs_list names; "": the newest. `name` is set to its name,
 * *cas to the store it is in. LEAT_DATA: there is none. */
enum leat_status leat_board_open_run(struct leat_board *board, const char *run, char name[LEAT_BOARD_WORD],
                                     struct leat_cas **cas, int *fd, struct leat_err *err);

#endif
