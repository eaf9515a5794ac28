/* media.h - what kind of file a blob is, by its first bytes: names of files do not matter here
 *
 * A browser may run what it is sent. So each kind has a policy under which it is sent, and what is not known here is
 * only ever saved. */
#ifndef LEAT_BOARD_MEDIA_H
#define LEAT_BOARD_MEDIA_H

#include <stddef.h>

struct leat_media {
	const char *name; /* "png": for the page, which decides how to show it */
	const char *type; /* for the browser */
	const char *policy;
};

enum { LEAT_MEDIA_BYTES = 512 }; /* enough to tell */

extern const struct leat_media leat_media_text;
const struct leat_media *leat_media_of(const void *bytes, size_t len); /* never NULL */

#endif
