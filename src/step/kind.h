/* kind.h - what a kind of step is
 *
 * To add a kind, add one file, src/step/kind_NAME.c, that defines `const struct leat_step_kind leat_step_kind_NAME`;
 * the build collects the table. The key of a step in leat.yaml that has a kind's name says what the step does. */
#ifndef LEAT_STEP_KIND_H
#define LEAT_STEP_KIND_H

#include "step/project.h"

struct leat_step_kind {
	const char *name; /* "run" */
	unsigned version; /* in the key of every action: bump it when the same text would give other bytes */
	const char *doc;  /* one sentence, for the schema and the reference */
	const char *value; /* what `text` is, for the reference: "the name of a step"; NULL: a text */
	bool shell;       /* `text` is run by /bin/sh -c in the sandbox */
	bool reads;       /* `text` is the name of a source or step, which the step reads as if it were in `in` */
	/* Checks the text when the project is opened; NULL: any text. LEAT_SPEC. */
	enum leat_status (*check)(const struct leat_step *step, struct leat_err *err);
	/* The command to run, if `text` is not one; NULL: it is. It is part of the key, so it has no paths: "$LEAT_COMMAND" is
	 * this program, "$LEAT_MEMORY" the limit in bytes, if there is one. */
	enum leat_status (*command)(const struct leat_step *step, struct leat_str *command, struct leat_err *err);
};

extern const struct leat_step_kind *const leat_step_kinds[]; /* sorted by name, NULL at the end */

#endif
