/* code_inside.h - what the files code*.c, imports*.c and action*.c share */
#ifndef LEAT_STEP_CODE_INSIDE_H
#define LEAT_STEP_CODE_INSIDE_H

#include <pthread.h>

#include "step/code.h"

struct leat_code_file {
	char *path; /* relative to the project's folder */
	struct leat_content content;
	/* Of its text, since the first look at it: the files that it names, and whether it starts Python unseen. */
	size_t *names, name_count;
	bool is_read, hides_python;
};

/* What the keys of all slices of a step have in common, and what else is in them. */
struct leat_step_key {
	struct leat_key_fields common;
	struct leat_sha256 *sha; /* of `common` */
	struct leat_key_part {
		char *name;   /* "slice.bin", "input.epochs" */
		size_t index; /* of the variable or the input */
		bool is_input;
	} * part;
	size_t parts;
};

struct leat_still; /* answers of leat_code_still */
struct leat_pythons;

struct leat_code {
	struct leat_mem *mem;
	const struct leat_project *project;
	struct leat_cas *cas;
	const char *const *pattern;
	struct leat_code_file *file; /* sorted by leat_code_compare */
	size_t files, cap;
	size_t *by_name;      /* indexes into `file`, sorted by the last part of the path */
	pthread_mutex_t lock; /* guards what follows */
	char *snapshot;
	struct leat_content content;    /* of the snapshot */
	struct leat_step_key *step_key; /* one per step of the project; `sha` NULL: not made yet */
	struct leat_still *still;
	struct leat_pythons *pythons;
};

/* Compares paths name by name, as trees are sorted: "a" before "a.py". */
int leat_code_compare(const char *a, const char *b);
const struct leat_code_file *leat_code_find(const struct leat_code *code, const char *path); /* NULL: none */
bool leat_code_is_python(const char *path);                                                  /* by its suffix */
/* Adds the paths that match, in no order. */
enum leat_status leat_code_walk(struct leat_code *code, struct leat_err *err);
/* The bytes of a file when the code was opened, NUL-terminated; freed with leat_free. At most 4 MiB of it. */
enum leat_status leat_code_text(struct leat_code *code, const struct leat_code_file *file, char **text, size_t *len,
                                struct leat_err *err);

/* Marks the files that a text names. With `from_python` those that are Python are left out: the hook sees them. */
void leat_code_mark(const struct leat_code *code, const char *text, size_t len, bool from_python, bool *marked);
/* Does a text start Python so that the hook is not loaded: -I, -E, -S, PYTHONPATH without the old one, env -i? */
bool leat_code_hides_python(const char *text);
/* Marks the files that marked ones name, until there are no more. With the lock held. */
enum leat_status leat_code_mark_all(struct leat_code *code, bool *marked, struct leat_err *err);

/* Called with the lock held. */
void leat_step_key_free(struct leat_step_key *key, struct leat_mem *mem);
void leat_still_free(struct leat_still *still, struct leat_mem *mem);       /* accepts NULL */
void leat_pythons_free(struct leat_pythons *pythons, struct leat_mem *mem); /* accepts NULL */

/* Appends PREFIX + PATH and a content. */
enum leat_status leat_key_fields_add_content(struct leat_key_fields *fields, const char *prefix, const char *path,
                                             const struct leat_content *content, struct leat_err *err);

#endif
