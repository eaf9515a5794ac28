/* code_glob.h - the patterns of code (glob.h), matched together
 *
 * What matches a folder matches all in it, but for what is hidden. */
#ifndef LEAT_STEP_CODE_GLOB_H
#define LEAT_STEP_CODE_GLOB_H

#include "step/glob.h"

struct leat_globs {
	struct leat_mem *mem;
	struct leat_code_glob {
		struct leat_glob glob;
		char *text;
	} * glob;
	size_t count, cap;
};

/* LEAT_SPEC: a pattern is absolute, leaves the folder, is too long, or has too many alternatives. */
enum leat_status leat_globs_open(struct leat_globs *globs, struct leat_mem *mem, const char *const *pattern,
                                 struct leat_err *err);
void leat_globs_close(struct leat_globs *globs);

/* Which names of each glob may come next: one word per glob. */
void leat_globs_begin(const struct leat_globs *globs, uint64_t *state);
/* Of an entry in a folder with `state`. `next` is the state in it, if it is a folder. True: the entry matches. */
bool leat_globs_step(const struct leat_globs *globs, const uint64_t *state, const char *name, uint64_t *next);
bool leat_globs_may_match(const struct leat_globs *globs, const uint64_t *state); /* something below */

#endif
