/* drift.h - what a build does with the drift that runs of table steps record (table/sketch.h)
 *
 * A check of drift is no part of a key, and is judged after the command has run: it decides whether a run is kept,
 * never what its bytes are. The previous run is the last one of the same step and slice that was kept. Any thread. */
#ifndef LEAT_STEP_DRIFT_H
#define LEAT_STEP_DRIFT_H

#include <jansson.h>

#include "step/project.h"

/* Adds "drift", the largest PSI of all columns, and "psi.NAME" and "js.NAME" of those that moved. */
void leat_drift_add_metrics(const char *profile, json_t *metrics, struct leat_mem *mem);

enum leat_drift_verdict { LEAT_DRIFT_HOLDS, LEAT_DRIFT_WARNS, LEAT_DRIFT_FAILS };
/* Judges the profile of a run by the checks of its step. `why` gets a sentence, unless it holds. */
enum leat_drift_verdict leat_drift_check(const struct leat_step *step, const char *profile, struct leat_mem *mem,
                                         char *why, size_t cap);

#endif
