/* show_rejects.h - records that loading a source has rejected, for `leat show NAME --rejects` */
#ifndef LEAT_CLI_SHOW_REJECTS_H
#define LEAT_CLI_SHOW_REJECTS_H

#include "cli/steps.h"

/* Prints what the last actions of a loaded source rejected: of NAME those of all its files, of NAME:SLICE or an id
 * those of one. With `json`, the lines as they are stored. */
enum leat_status leat_show_rejects(const struct leat_steps *steps, const char *what, bool json, struct leat_err *err);

#endif
