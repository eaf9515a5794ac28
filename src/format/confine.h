/* confine.h - keep what data names within its folder
 *
 * Lists and folders are often downloaded, and must not make a program read other files of the
 * machine. A list may name files in its own folder, and a link in a folder may lead to files in
 * that folder. With `root`, both may also lead to files in that folder. What counts is where a
 * name leads: links are followed, also in the middle of a path. Folders of stores without
 * links are compared by name.
 *
 * Names are checked when files are listed. A file that is swapped later is another version of
 * it, which reads refuse.
 *
 * leat_confine_link: any thread. Everything else: one thread. */
#ifndef LEAT_FORMAT_CONFINE_H
#define LEAT_FORMAT_CONFINE_H

#include "base/str.h"
#include "store/store.h"

/* Names that lead outside. Zero it before use. */
struct leat_outside {
	char *name;   /* the first; NULL: none */
	char *target; /* where it leads */
	char *common; /* folder that has all of them: the value for `root` */
	uint64_t line;
};

struct leat_confine {
	struct leat_mem *mem;
	struct leat_stores *stores;
	const char *source, *data; /* for messages: list('data'); without a source, a command's --root */
	const char *folder;        /* names are relative to it */

	struct leat_bound_folder {
		struct leat_store *store;
		char *real; /* absolute, without links */
	} own, root;        /* root.real is NULL if not given */

	/* Found by leat_confine_rows and leat_confine_accepts: */
	struct leat_store *files; /* store of the listed files */
	bool has_uris;            /* some names are URIs, not relative to the folder */
	struct leat_outside outside;

	/* Hash set of the parents of names that were checked lately: rows of a folder mostly follow each other. */
	struct leat_parent {
		size_t at, len; /* in parent_text */
		bool used;
	} * parent;
	size_t parents;
	struct leat_str parent_text;
	uint64_t seed;
};

/* Borrows `folder`. `root`: as given by the user, "" if not. Set `source` and `data` afterwards. */
enum leat_status leat_confine_open(struct leat_confine *confine, struct leat_stores *stores, struct leat_store *store,
                                   const char *folder, const char *root, struct leat_mem *mem, struct leat_err *err);
void leat_confine_close(struct leat_confine *confine); /* accepts a zeroed one */

/* Checks the names in rows of a list, and replaces URIs by what they resolve to, in place. Call begin, rows as often as
 * needed, end. Names that lead outside are noted in `outside`; the error of `end` names the first one's line and the
 * option that allows all of them. */
void leat_confine_begin(struct leat_confine *confine);
enum leat_status leat_confine_rows(struct leat_confine *confine, const char *const *names, const uint64_t *line,
                                   size_t count, struct leat_err *err);
enum leat_status leat_confine_end(struct leat_confine *confine, struct leat_err *err);
/* Whether names could be a result of leat_confine_rows: name i is at [name_at[i], name_at[i + 1]). */
bool leat_confine_accepts(struct leat_confine *confine, const char *names, const uint64_t *name_at, size_t count);

/* Checks where a link leads, and adds it to `outside` if not allowed. Links to nothing are allowed. */
enum leat_status leat_confine_link(const struct leat_confine *confine, const char *uri, struct leat_outside *outside,
                                   struct leat_err *err);
/* The error for a link that was added, if any. Frees `outside`. */
enum leat_status leat_confine_end_links(const struct leat_confine *confine, struct leat_outside *outside,
                                        struct leat_err *err);

/* Whether all components are names: not empty, "." or "..". Such a name needs no check against a folder, except for
 * links. */
bool leat_is_plain_name(const char *name, size_t len);

#endif
