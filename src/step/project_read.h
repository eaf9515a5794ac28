/* project_read.h - what the files that read leat.yaml share while one is read */
#ifndef LEAT_STEP_PROJECT_READ_H
#define LEAT_STEP_PROJECT_READ_H

#include "step/project_keys.h"
#include "step/yaml.h"

/* Where a step's values are in the file, for errors found later. */
struct leat_step_nodes {
	const struct leat_yaml *name, *text, *in, *feed;
};

enum { LEAT_MAX_NAMES = 1000 }; /* inputs, parameters and variables of a step: each is compared with all others */

struct leat_reading {
	struct leat_yaml_file file;
	struct leat_project *project;
	struct leat_project_text *text; /* of the project */
	struct leat_mem *mem;
	struct leat_err *err; /* never NULL */
	struct leat_step_nodes *at;
	const struct leat_yaml **source_at;
	size_t *source_by_name; /* sorted, once all are read */
	size_t values;          /* of all slice variables so far */
	bool files;             /* slices may read files */
	enum leat_looks looks;  /* whether servers are asked about remote sources */
	struct leat_storage storage;
};

/* project_read.c: fills sources and steps; edges have names only. */
enum leat_status leat_project_read(struct leat_reading *r, const struct leat_yaml *root);
/* project_values.c: one key of a step. */
enum leat_status leat_value_read(struct leat_reading *r, const struct leat_key *key, const struct leat_yaml *value,
                                 struct leat_step *step);
/* slices_read.c */
enum leat_status leat_slices_read(struct leat_reading *r, const struct leat_yaml *value, const char *step,
                                  struct leat_slices *slices);
/* The slices of a source that is loaded: one for each file that matches, whose path is the variable `file`. */
enum leat_status leat_slices_of_files(struct leat_reading *r, const struct leat_yaml *pattern, const char *source,
                                      struct leat_slices *slices);
/* project_source.c: a source that is a map. *loads: it has columns, and `step` is filled; else `source` is. */
enum leat_status leat_source_read(struct leat_reading *r, const struct leat_yaml *name, struct leat_raw_source *source,
                                  struct leat_step *step, struct leat_step_nodes *at, bool *loads);
/* project_remote.c: the key `storage`; the project's staging, made for the first remote source; what is wrong with the
 * name of one (NULL: nothing). */
enum leat_status leat_storage_read(struct leat_reading *r, const struct leat_yaml *map);
enum leat_status leat_remote_need(struct leat_reading *r);
const char *leat_remote_fault(const char *pattern, char text[200]);
/* The path that a URI file:... stands for; others as they are. */
enum leat_status leat_local_path(struct leat_reading *r, const struct leat_yaml *node, const char **path);
/* project_read.c: a source's path or pattern. *path is it without file: and ./ */
enum leat_status leat_pattern_check(struct leat_reading *r, const struct leat_yaml *name, const struct leat_yaml *value,
                                    const char **path);
/* A key that does not exist. */
enum leat_status leat_unknown_key(struct leat_reading *r, const struct leat_yaml *key, const char *owner,
                                  const char *const *known, size_t n);
/* project_features.c */
enum leat_status leat_columns_read(struct leat_reading *r, const struct leat_yaml *map, struct leat_step *step);
enum leat_status leat_split_read(struct leat_reading *r, const struct leat_yaml *map, struct leat_step *step);
enum leat_status leat_dedupe_read(struct leat_reading *r, const struct leat_yaml *map, struct leat_step *step);
/* kind_asof.c */
enum leat_status leat_take_read(struct leat_reading *r, const struct leat_yaml *map, struct leat_step *step);
/* project_check.c: resolves edges, orders the steps, and checks what only the whole file shows. */
enum leat_status leat_project_check(struct leat_reading *r);
/* kind_partition.c: makes the steps that split tables for steps with `by`, once edges are resolved. */
enum leat_status leat_project_split(struct leat_reading *r);
/* project_command.c: variables that a command uses are declared. */
enum leat_status leat_shell_command_check(struct leat_reading *r, const struct leat_step *step,
                                          const struct leat_yaml *text);

/* The same for names in the spec of its feed. */
enum leat_status leat_feed_check(struct leat_reading *r, const struct leat_step *step, const struct leat_yaml *text);

/* project_names.c: names become shell variables. `what` is "a step", "a parameter". */
enum leat_status leat_name_check(struct leat_reading *r, const struct leat_yaml *node, const char *what);
enum leat_status leat_env_name_check(struct leat_reading *r, const struct leat_yaml *node);
bool leat_is_shell_name(const char *name);
bool leat_is_name_character(char c);
bool leat_is_given_name(const char *name, size_t len); /* to every command: PATH, seed, OMP_NUM_THREADS, ... */

/* project_file.c: a whole regular file, NUL-terminated; LEAT_LIMIT if it has more than `max` bytes. */
enum leat_status leat_project_load(struct leat_mem *mem, const char *path, size_t max, char **text, size_t *len,
                                   struct leat_err *err);

#endif
