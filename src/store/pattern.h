/* pattern.h - from a pattern or a file: URI to the sorted paths that it names */
#ifndef LEAT_STORE_PATTERN_H
#define LEAT_STORE_PATTERN_H

#include "base/err.h"
#include "base/mem.h"

struct leat_paths {
	char **path;
	size_t count, cap;
};

/* Appends the paths of `pattern`, sorted by their bytes. A path that exists is taken literally,
 * whatever its characters; else *, ? and [..] match within one folder, and never a leading dot.
 * Naming nothing is an error. */
enum leat_status leat_paths_add(struct leat_paths *paths, const char *pattern, struct leat_mem *mem,
                                struct leat_err *err);
void leat_paths_free(struct leat_paths *paths, struct leat_mem *mem);

#endif
