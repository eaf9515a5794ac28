/* names.h - what to say about a name that does not exist
 *
 *	there is no op 'resise', did you mean 'resize'?
 *	there is no column 'path'; the columns here are image, label
 *	'resize' has no option 'colour'; it has height, width, method, mode
 *
 * Names may come from files: control characters are shown as '?', long names and lists are cut. */
#ifndef LEAT_BASE_NAMES_H
#define LEAT_BASE_NAMES_H

#include <stddef.h>

#include "base/err.h"

/* The known name nearest to `name` by edit distance, or NULL when none is near enough to be a typing error. */
const char *leat_nearest(const char *name, const char *const *known, size_t count);

struct leat_unknown {
	const char *what;         /* "op", "column"; with an s it is the plural */
	const char *name;         /* the one that does not exist */
	const char *owner;        /* "'resize'": what should have it; NULL: "there is no" */
	const char *prefix;       /* of every name when it is shown, "--"; NULL: none */
	const char *const *known; /* names that do exist */
	size_t count, more;       /* how many of them, and how many are not in `known` */
	const char *hint;         /* said instead of the list of known names: "'leat ops' lists all" */
};

enum { LEAT_UNKNOWN_TEXT = 700 };

/* The sentence, into buf. Returns buf. */
char *leat_unknown_text(const struct leat_unknown *unknown, char buf[LEAT_UNKNOWN_TEXT]);
enum leat_status leat_fail_unknown(struct leat_err *err, enum leat_status status, const struct leat_unknown *unknown);

#endif
