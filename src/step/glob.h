/* glob.h - patterns of paths, as in a shell, matched name by name
 *
 * '*', '?' and '[]' match within a name and no leading dot; '**' is any number of folders, none of them hidden; '{a,b}'
 * are alternatives, which may be nested; a backslash quotes. Alternatives are expanded first. A walk carries a state
 * per folder, so each name is compared once. */
#ifndef LEAT_STEP_GLOB_H
#define LEAT_STEP_GLOB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

struct leat_mem;

enum { LEAT_GLOB_NAMES = 62, LEAT_GLOB_PATTERNS = 256 };

/* Calls `pattern` with each pattern without alternatives that `pattern` stands for. LEAT_INVALID: it is too long,
 * or stands for too many. */
struct leat_glob_reader {
	enum leat_status (*pattern)(void *arg, const char *pattern, struct leat_err *err);
	void *arg;
};
enum leat_status leat_glob_expand(const char *pattern, struct leat_mem *mem, const struct leat_glob_reader *reader,
                                  struct leat_err *err);

/* One pattern without alternatives. */
struct leat_glob {
	char *name[LEAT_GLOB_NAMES]; /* between the slashes */
	size_t names, stars;         /* stars: index of the first "**"; SIZE_MAX: none */
};

/* Splits `text` in place; it must outlive the glob. False: it has more than LEAT_GLOB_NAMES names. */
bool leat_glob_split(struct leat_glob *glob, char *text);

/* A state is a set of bits: bit i says that name i of the glob may match next, bit `names` that all have matched. */
uint64_t leat_glob_begin(const struct leat_glob *glob);
uint64_t leat_glob_next(const struct leat_glob *glob, uint64_t state, const char *name); /* 0: nothing matches */

static inline uint64_t
leat_glob_matched(const struct leat_glob *glob)
{
	return (uint64_t)1 << glob->names;
}

#endif
