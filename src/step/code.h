/* code.h - the project's code: what a sandbox shows, and what an action's key knows of it
 *
 * When a build begins, the files that match a step's `code` globs are hashed and linked into a folder, the *snapshot*,
 * so edits during the build change nothing that runs. In the key of an action are: files that its command names, or
 * that such a file names if it is not Python; and what Python imported or opened (*.py), which a hook writes down while
 * it runs. Imported files of the project are keyed by content, packages outside by version, and a module that would be
 * found first by its absence.
 *
 * A step whose command runs Python, but from which no record came (killed by exec, -I, -S), is keyed by all its *.py.
 */
#ifndef LEAT_STEP_CODE_H
#define LEAT_STEP_CODE_H

#include "cas/index.h"
#include "step/project.h"

/* Of a project during one build. All functions may be called by any thread. */
struct leat_code;

/* Hashes the files that the step's globs match. If the store has a run, their bytes are put into it now: what is edited
 * later changes nothing that runs. */
enum leat_status leat_code_open(struct leat_code **code, const struct leat_project *project,
                                const struct leat_step *step, struct leat_cas *cas, struct leat_err *err);
void leat_code_close(struct leat_code *code); /* accepts NULL */
/* Has the step the same globs? Then it uses this one, too: opening walks through the project's folder. */
bool leat_code_serves(const struct leat_code *code, const struct leat_step *step);
const char *leat_code_snapshot(struct leat_code *code,
                               struct leat_err *err);                /* folder, made on the first call; NULL: err */
struct leat_content leat_code_content(const struct leat_code *code); /* of the snapshot, once it is made */

/* Appends "code.PATH" fields of the files that the command names, sorted. */
struct leat_key_fields {
	struct leat_mem *mem;
	struct leat_key_field *field; /* owned: name and value too */
	size_t count, cap;
};
enum leat_status leat_key_fields_add(struct leat_key_fields *fields, const char *name, const char *value,
                                     struct leat_err *err);
void leat_key_fields_clear(struct leat_key_fields *fields);
enum leat_status leat_code_named(struct leat_code *code, const char *command, struct leat_key_fields *fields,
                                 struct leat_err *err);

/* Reads what the hook wrote to `folder` (the sandbox's imports/) during a run in the folder `work`, and appends the
 * learned fields, sorted.
 * What `fields` has already as "code.PATH" is left out, unless an imported file names it. LEAT_DATA: a module
 * that is not in the snapshot changed while the command ran, so nobody knows which bytes it read. */
enum leat_status leat_code_learned(struct leat_code *code, const char *folder, const char *work, const char *command,
                                   struct leat_key_fields *fields, struct leat_err *err);
/* Are the learned fields of this set still true? Answers are remembered by `learned` for the time of the build. */
bool leat_code_still(struct leat_code *code, struct leat_cas *cas, const struct leat_digest *learned);
/* What the learned fields of an earlier action would be now. Those that are not there any more are left out; new files
 * that imported ones name are added at the end. */
enum leat_status leat_code_now(struct leat_code *code, const struct leat_key_field *field, size_t count,
                               struct leat_key_fields *now, struct leat_err *err);
/* The folder with the hook, to be first in PYTHONPATH. */
enum leat_status leat_code_hook(struct leat_cas *cas, char path[PATH_MAX], struct leat_err *err);

#endif
