/* changes.h - what differs between the pipeline of a checkpoint and this one
 *
 * Both are given as identity texts (pipeline_identity.c). A position means the same sample in both if the source and
 * all plan ops are the same; other ops, `batch` included, change what is made of it. */
#ifndef LEAT_FEED_CHANGES_H
#define LEAT_FEED_CHANGES_H

#include "base/err.h"
#include "base/str.h"

/* Appends what has changed to `text`, as in "batch(32) became batch(64)"; nothing if nothing has. LEAT_MISMATCH: the
 * order of samples differs, and the error names the first op that does. */
enum leat_status leat_changes(const char *then, const char *now, struct leat_str *text, struct leat_err *err);

#endif
