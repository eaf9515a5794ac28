/* kind.h - what a kind of step is
 *
 * To add a kind, add one file, src/step/kind_NAME.c, that defines `const struct leat_step_kind leat_step_kind_NAME`;
 * the build collects the table. The key of a step in leat.yaml that has a kind's name says what the step does. */
#ifndef LEAT_STEP_KIND_H
#define LEAT_STEP_KIND_H

#include "step/project.h"

/* While a project is read: what a kind may ask and use. */
struct leat_step_names {
	struct leat_mem *mem;
	struct leat_project_text *text; /* what it keeps */
	const char *folder;             /* of the project; NULL: there is none, and no file may be read */
	const void *reading;
};
/* The name of a source or step that is `name` but for the case of its letters; NULL: there is none. */
const char *leat_step_known_name(const struct leat_step_names *names, const char *name);
/* Adds what the step reads, unless `in` has it. `name` must outlive the project. */
enum leat_status leat_step_add_edge(struct leat_step *step, const struct leat_step_names *names, const char *name,
                                    struct leat_err *err);

struct leat_step_kind {
	const char *name;  /* "run" */
	unsigned version;  /* in the key of every action: bump it when the same text would give other bytes */
	const char *doc;   /* one sentence, for the schema and the reference */
	const char *value; /* what `text` is, for the reference: "the name of a step"; NULL: a text */
	bool shell;        /* `text` is run by /bin/sh -c in the sandbox */
	bool source;       /* of sources that are loaded: no key of a step */
	bool table;        /* its command leaves a sketch of its table (table/sketch.h) in profile.json */
	bool reads;        /* `text` is the name of a source or step, which the step reads as if it were in `in` */
	/* Finds out what the step reads, once all names are known (`names`); may replace the text, and adds edges with
	 * leat_step_add_edge. NULL: `in` says all. LEAT_SPEC: `err` is about the text. */
	enum leat_status (*read)(struct leat_step *step, const struct leat_step_names *names, struct leat_err *err);
	/* Checks the text when the project is opened; NULL: any text. LEAT_SPEC. */
	enum leat_status (*check)(const struct leat_step *step, struct leat_err *err);
	/* The command to run, if `text` is not one; NULL: it is. It is part of the key, so it has no paths:
	 * "$LEAT_COMMAND" is this program, "$LEAT_MEMORY" the limit in bytes, if there is one. */
	enum leat_status (*command)(const struct leat_step *step, struct leat_str *command, struct leat_err *err);
};

/* kind_sql.c, for kinds that become a query: makes it the step's, with its tables and those of its checks. */
enum leat_status leat_sql_step_read(struct leat_step *step, const struct leat_step_names *names, const char *query,
                                    size_t len, struct leat_err *err);
enum leat_status leat_sql_step_check(const struct leat_step *step, struct leat_err *err);
enum leat_status leat_sql_step_command(const struct leat_step *step, struct leat_str *text, struct leat_err *err);

extern const struct leat_step_kind *const leat_step_kinds[]; /* sorted by name, NULL at the end */

#endif
