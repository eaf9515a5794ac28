/* action.h - one step, or one slice of it, with all its inputs known: its fields, its stem, and whether it was made
 * before */
#ifndef LEAT_STEP_ACTION_H
#define LEAT_STEP_ACTION_H

#include "step/code.h"

/* What an action reads by the name of an edge: a content, or a file of the user (`path`), which stays where it is. */
struct leat_input {
	const char *name;
	struct leat_content content;
	const char *path;        /* absolute; NULL: in the store */
	const char *suffix;      /* of a remote file in the store: the end of its name; NULL: the step's, or none */
	struct leat_stamp stamp; /* of `path` */
	/* Of a sliced step: which slices. With `use`, the content is a folder with an entry for each, named by
	 * leat_slice_entry(&step->slices, slice, use) and the step's suffix, in the order of the names. */
	const struct leat_step *step; /* NULL: a source, or the file of a slice's variable */
	const uint32_t *slice;
	size_t slices;
	const bool *use; /* by variable of `step`; NULL: the content is the output of the one slice */
};

struct leat_action {
	const struct leat_project *project;
	const struct leat_step *step;
	size_t slice;
	/* One for each edge, in their order; then one for each variable of the slice that is a file, by its name. */
	const struct leat_input *input;
	size_t inputs;
	struct leat_code *code;
};

/* Many programs look at it to know what a file holds: ".npy", ".csv.gz"; "" if there is none. */
const char *leat_path_extension(const char *path);

/* The fields that are known before the run, sorted within each group, in the order that manifest.h gives. What differs
 * between slices of a step is small: callers keep `fields` and call again for the next slice. */
enum leat_status leat_action_fields(const struct leat_action *action, struct leat_key_fields *fields,
                                    struct leat_err *err);

/* Was it made before, with learned fields that still hold and an output that is still there? LEAT_OK and *made;
 * LEAT_END: no. Fast: about two microseconds and a half, and no system call, after the first slice of a step. */
enum leat_status leat_action_find(const struct leat_action *action, struct leat_cas *cas, struct leat_digest *stem,
                                  struct leat_made *made, struct leat_err *err);

/* The same by its stem. */
enum leat_status leat_made_find(struct leat_code *code, struct leat_cas *cas, const struct leat_digest *stem,
                                struct leat_made *made, struct leat_err *err);

/* Why it is not the same as the last time: which fields changed, appeared or went. `now` has the learned fields, too
 * (leat_code_now). A new module that hides another one is a change of absent./FOLDER/NAME. Free with leat_changes_free.
 */
struct leat_change {
	char *field, *was, *now; /* NULL: was not there, is not there */
};
enum leat_status leat_action_changes(const struct leat_key_fields *now, const struct leat_manifest *last,
                                     struct leat_change **change, size_t *changes, struct leat_mem *mem,
                                     struct leat_err *err);
void leat_changes_free(struct leat_change *change, size_t changes, struct leat_mem *mem); /* accepts NULL */

/* A unified diff of two texts, as `diff -u` writes it, without the names of files; "" if they are equal. */
enum leat_status leat_text_diff(const char *was, const char *now, struct leat_str *diff, struct leat_err *err);

#endif
