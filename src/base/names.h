/* names.h - error messages for unknown names
 *
 *	there is no op 'resise', did you mean 'resize'?
 *	there is no column 'path'; the columns here are image, label
 *	'resize' has no option 'colour'; it has height, width, method, mode
 *
 * Names may come from files, so control characters become '?' and long names and lists are truncated. */
#ifndef LEAT_BASE_NAMES_H
#define LEAT_BASE_NAMES_H

#include <stddef.h>

#include "base/err.h"

/* The known name nearest to `name` by edit distance, or NULL if none is close enough to be a typo. */
const char *leat_nearest(const char *name, const char *const *known, size_t count);

struct leat_unknown {
	const char *what;         /* "op", "column"; must form its plural with an s */
	const char *name;         /* the unknown name */
	const char *owner;        /* "'resize'" for "'resize' has no ..."; NULL: "there is no ..." */
	const char *prefix;       /* printed before every name, such as "--"; NULL: none */
	const char *const *known; /* valid names */
	size_t count, more;       /* entries in `known`; further valid names that it does not list */
	const char *hint;         /* printed instead of the valid names: "'leat ops' lists all" */
};

enum { LEAT_UNKNOWN_TEXT = 700 };

/* Writes the message to buf. Returns buf. */
char *leat_unknown_text(const struct leat_unknown *unknown, char buf[LEAT_UNKNOWN_TEXT]);
enum leat_status leat_fail_unknown(struct leat_err *err, enum leat_status status, const struct leat_unknown *unknown);

#endif
