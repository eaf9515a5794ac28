/* sources.h - files by pattern (glob.h) */
#ifndef LEAT_STEP_SOURCES_H
#define LEAT_STEP_SOURCES_H

#include "step/project.h"

bool leat_glob_is_pattern(const char *text); /* has one of * ? [ { \ */
size_t leat_glob_fixed(const char *pattern); /* characters up to the last slash before the first of these */

/* Adds what matches below `folder`, which must be absolute, or anywhere if the pattern is absolute: files, and folders
 * too unless the pattern has **. Paths are relative to `folder`, or absolute as the pattern is; the caller sorts.
 * Skipped are hidden files, and out/ at the top of `folder`. Nothing that matches is no error. With `listings`, folders
 * that were read before are not read again. */
enum leat_status leat_glob_paths(const char *folder, const char *pattern, struct leat_listings *listings,
                                 struct leat_mem *mem, struct leat_paths *paths, struct leat_err *err);
/* Adds the URIs of the remote objects that match: `pattern` is that of `source` with the values of a slice. None is
 * LEAT_DATA. */
enum leat_status leat_remote_paths(const struct leat_project *project, const struct leat_raw_source *source,
                                   const char *pattern, struct leat_paths *paths, struct leat_err *err);
/* By bytes, each once. */
void leat_paths_sort(struct leat_paths *paths, struct leat_mem *mem);

#endif
