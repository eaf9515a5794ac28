/* imports.h - what the files imports*.c share: records of the Python hook, and what is known of a Python
 *
 * leat_code's lock is held by the caller, unless a comment says otherwise. */
#ifndef LEAT_STEP_IMPORTS_H
#define LEAT_STEP_IMPORTS_H

#include "step/code_inside.h"

/* Reads a record file of the hook (imports_hook.py): calls `record` with its texts. Needs no lock. An unfinished record
 * at the end, of a killed process, is left out. */
struct leat_record_reader {
	enum leat_status (*record)(void *arg, const char *const *text, size_t texts, struct leat_err *err);
	void *arg;
};
enum leat_status leat_records_parse(const char *bytes, size_t len, const struct leat_record_reader *reader,
                                    struct leat_err *err);

/* A program that is Python, what it is called in keys, and where its packages are. */
struct leat_python {
	char *program; /* "python3", as found by PATH; else a path, relative to the project or absolute */
	char *version;
	struct leat_paths site; /* folders with packages */
};

/* What PATH or the project's folder make of a program. False: nothing. */
bool leat_python_path(const struct leat_code *code, const char *program, char path[PATH_MAX]);
/* The program that `executable` is called. */
void leat_python_program(const struct leat_code *code, const char *executable, char program[PATH_MAX]);
/* A Python that a record or a field names. From what an earlier action wrote, or by asking it. NULL: there is none. */
const struct leat_python *leat_python_find(struct leat_code *code, const char *program);
/* Remembers what a record says, in the store, too. */
enum leat_status leat_python_learn(struct leat_code *code, const char *executable, const char *version,
                                   const struct leat_paths *site, struct leat_err *err);

/* A list of Pythons, of one action. */
struct leat_python_set {
	const struct leat_python *python[8];
	size_t count;
};
/* The value of field package.NAME: "1.26.4"; several versions: "1.26.4, 2.0.1". */
enum leat_status leat_package_value(struct leat_code *code, const struct leat_python_set *set, const char *name,
                                    struct leat_str *value, struct leat_err *err);
/* "FOLDER/site-packages/REST": sets *rest, and returns how long the folder's path is; 0: it has none. */
size_t leat_split_site(const char *file, const char **rest);
/* The NAME of the package with a file below the folder `site`: its distribution, or the file if it has none. */
enum leat_status leat_package_name(struct leat_code *code, const char *site, const char *file, struct leat_str *name,
                                   struct leat_err *err);

/* Appends a copy of a text. */
enum leat_status leat_paths_add(struct leat_paths *texts, const char *text, struct leat_mem *mem, struct leat_err *err);

/* leat_code_now with the lock held. */
enum leat_status leat_learned_now(struct leat_code *code, const struct leat_key_field *field, size_t count,
                                  struct leat_key_fields *now, struct leat_err *err);

#endif
