/* sandbox.h - the folder and the environment that a command runs in (runner.h shows the folder)
 *
 * Used by the thread that runs the action. */
#ifndef LEAT_STEP_SANDBOX_H
#define LEAT_STEP_SANDBOX_H

#include "step/runner.h"

struct leat_sandbox {
	struct leat_mem *mem;
	const struct leat_runner *runner;
	const struct leat_order *order;
	char path[PATH_MAX], work[PATH_MAX], out[PATH_MAX];
	char *checkpoint;     /* NULL: the step does not resume */
	int checkpoint_fd;    /* holds a lock while the command runs; -1: none */
	char **link;          /* of each input: path of the link */
	struct leat_str feed; /* $feed */
	struct leat_str text; /* of the environment: "NAME=value", each with its NUL */
	size_t variables;
	char **environment;    /* into `text`, NULL at the end */
	struct timespec begun; /* by the clock of the file system: what has a later mtime was written since */
};

/* Zero the struct first. After a failure, leat_sandbox_free as after success; the folder is removed separately. */
enum leat_status leat_sandbox_make(struct leat_sandbox *sandbox, const struct leat_runner *runner,
                                   const struct leat_order *order, struct leat_err *err);
void leat_sandbox_free(struct leat_sandbox *sandbox);

/* The parts of leat_sandbox_make, in its order. */
enum leat_status leat_sandbox_link_inputs(struct leat_sandbox *sandbox, struct leat_err *err);
enum leat_status leat_sandbox_open_checkpoint(struct leat_sandbox *sandbox, struct leat_err *err);
enum leat_status leat_sandbox_set_environment(struct leat_sandbox *sandbox, struct leat_err *err);
enum leat_status leat_sandbox_write_json(struct leat_sandbox *sandbox, struct leat_err *err);

/* ---- sandboxes that are used again (runner.h opens the pool); any thread ---- */

enum { LEAT_SANDBOX_FOLDERS = 5 };
extern const char *const leat_sandbox_folders[LEAT_SANDBOX_FOLDERS];

/* A sandbox that is empty; *linked: except for links to the code of `snapshot`. False: there is none. */
bool leat_sandbox_pool_take(struct leat_sandbox_pool *pool, const char *snapshot, char path[PATH_MAX], bool *linked);
/* What a sandbox that is in use has in its working folder. */
void leat_sandbox_pool_note(struct leat_sandbox_pool *pool, const char *path, const char *work, const char *snapshot);
/* Gives it back; not `usable`: the pool just forgets it. False: it has to be removed. */
bool leat_sandbox_pool_give(struct leat_sandbox_pool *pool, const char *path, bool usable);

/* Did the command write to an input in the store? LEAT_OK: no. LEAT_DATA: `err` says which, and it was removed from
 * the store. */
enum leat_status leat_sandbox_check_inputs(const struct leat_sandbox *sandbox, struct leat_err *err);

/* Metrics that the command reported, as one line of JSON: an object of numbers and texts; with those of the drift in
 * `profile`, unless it is NULL. *json is "" if there are none. What is not valid is left out; `warning` then says why.
 */
enum leat_status leat_sandbox_metrics(const struct leat_sandbox *sandbox, const char *profile, char **json,
                                      char *warning, size_t cap, struct leat_err *err);
/* The sketch that a step with a table left. *json is NULL if there is none that can be read. */
enum leat_status leat_sandbox_profile(const struct leat_sandbox *sandbox, char **json, struct leat_err *err);
/* Why there may be no $out: "; it made decode.npy instead: add `suffix: .npy`". "" if nothing is known. */
void leat_sandbox_explain_missing(const struct leat_sandbox *sandbox, char *hint, size_t cap);

#endif
