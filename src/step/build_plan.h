/* build_plan.h - the actions of a build: which are wanted, what they wait for, what they read
 *
 * Nothing is stored for an action but its state and output, and for an edge but the groups of slices that it joins
 * (step/groups.h): about 100 bytes for each action with a separate input. An edge's group is complete when all its
 * upstream slices are made; then its content is computed once, for all slices that read it.
 *
 * Threads: the planner's thread changes a plan. Others may read what belongs to an action that was handed to them. */
#ifndef LEAT_STEP_BUILD_PLAN_H
#define LEAT_STEP_BUILD_PLAN_H

#include "step/action.h"
#include "step/groups.h"

enum leat_action_state {
	LEAT_ACTION_UNWANTED, /* no target needs it */
	LEAT_ACTION_WAITS,    /* for inputs */
	LEAT_ACTION_STALE,    /* has to run */
	LEAT_ACTION_MADE,
	LEAT_ACTION_FAILED,
	LEAT_ACTION_SKIPPED, /* an input failed */
};

struct leat_plan_action {
	struct leat_content output; /* once it is made */
	float expected_s;           /* from earlier runs; 0: unknown */
	uint16_t waits;             /* edges whose group is not complete */
	uint8_t state;              /* enum leat_action_state */
	bool target;                /* named by the user, not only needed by others */
};

/* An edge, or a variable whose values are files. */
struct leat_plan_edge {
	const char *name;
	size_t up;                            /* index of the upstream step; SIZE_MAX: files of the user */
	const struct leat_raw_source *source; /* NULL: a step, or files that a variable names */
	size_t variable;                      /* of the slice, if it names the file */
	enum leat_edge_how how;               /* LEAT_EDGE_ENTRY: `content` is by slice of this step, not by group */
	bool *entry;                          /* upstream variables that name entries of a folder; NULL: no folder */
	struct leat_groups groups;
	struct leat_members users, members; /* slices of this step, and of the upstream step, by group */
	uint32_t *pending;            /* by group: upstream slices that are not made yet; LEAT_NO_GROUP: unwanted */
	struct leat_content *content; /* by group; NULL: it is the output of the one member */
	struct leat_stamp *stamp;     /* by group, of files */
};

struct leat_plan_out { /* an edge, seen from upstream */
	size_t step, edge;
};

struct leat_plan_step {
	const struct leat_step *step;
	struct leat_plan_edge *edge;
	size_t edges;
	struct leat_plan_out *out;
	size_t outs, outs_cap;
	struct leat_plan_action *action; /* by slice */
	size_t wanted;
	struct leat_code *code;     /* shared by steps with the same globs */
	size_t cached, known;       /* actions that were made before; that were not, but ran some time */
	double saved_s, expected_s; /* of those made before; of those that are not, when they ran */
	double tail_s;              /* expected time of what depends on it */
	struct leat_err *missing;   /* why a source cannot be read; NULL: it can */
};

struct leat_plan {
	const struct leat_project *project;
	struct leat_cas *cas; /* NULL: there is no store yet */
	struct leat_mem *mem;
	bool writes;  /* trees of groups are put into the store */
	bool fetches; /* remote files that were never fetched are; else stand-ins take the place of their contents */
	struct leat_listings
		*listings; /* while sources are hashed: all slices see the same folders. NULL: read them now */
	struct leat_plan_step *step;
	struct leat_code **code;
	size_t codes;
	struct leat_input *input; /* room for the inputs of one action */
	size_t most_inputs;
};

struct leat_plan_targets {
	const char *const *name; /* STEP or STEP:SLICE */
	size_t count;            /* 0: all steps */
};

/* Makes the plan: edges, groups, what is wanted. LEAT_INVALID: no such target; LEAT_SPEC: slices without input. */
enum leat_status leat_plan_open(struct leat_plan **plan, const struct leat_project *project, struct leat_cas *cas,
                                const struct leat_plan_targets *targets, struct leat_err *err);
void leat_plan_close(struct leat_plan *plan); /* accepts NULL */

/* Hashes the files that wanted actions read, with `threads` threads. A file that is missing is LEAT_DATA; with
 * `tolerant`, it is noted in its step, whose actions then stay as they are. LEAT_END: it was stopped
 * (leat_cas_watch_hashing). */
enum leat_status leat_plan_hash(struct leat_plan *plan, unsigned threads, bool tolerant, struct leat_err *err);
/* Lists the remote files that wanted actions read, and counts what has to be fetched. */
enum leat_status leat_plan_look(struct leat_plan *plan, struct leat_err *err);
/* Adds up what leat_plan_hash reads, without reading it; meanwhile, another thread may hash. */
void leat_plan_count(const struct leat_plan *plan, struct leat_hashing *hashing, const atomic_bool *stop);
bool leat_plan_lacks_file(const struct leat_plan_step *step, size_t slice); /* one that was noted as missing */
/* Computes the content of a group of slices that are all made. */
enum leat_status leat_plan_gather(struct leat_plan *plan, const struct leat_plan_step *step,
                                  struct leat_plan_edge *edge, uint32_t group, struct leat_err *err);
/* The same for LEAT_EDGE_ENTRY, for all slices of this step: entry i of each upstream folder, together in one folder.
 */
enum leat_status leat_plan_entries(struct leat_plan *plan, const struct leat_plan_step *step,
                                   struct leat_plan_edge *edge, struct leat_err *err);
/* The content of a folder with an entry for each of `count` slices. With `put` its tree goes into the store. */
enum leat_status leat_plan_folder(struct leat_plan *plan, const struct leat_plan_step *up, const bool *entry,
                                  const uint32_t *slice, size_t count, bool put, struct leat_content *content,
                                  struct leat_err *err);

/* Fills plan->input for a slice whose inputs are all made, without paths: what a key needs. */
void leat_plan_action(struct leat_plan *plan, size_t step, size_t slice, struct leat_action *action);
/* The content that a slice gets by an edge. */
const struct leat_content *leat_plan_content(const struct leat_plan *plan, const struct leat_plan_edge *edge,
                                             size_t slice);

/* Opens the code of all steps that have wanted actions. */
enum leat_status leat_plan_code(struct leat_plan *plan, struct leat_err *err);

/* ---- build_files.c: files of the user ---- */

/* The content of what a slice reads by an edge that has no upstream step. `stamp` recognizes changes. */
enum leat_status leat_files_hash(struct leat_plan *plan, const struct leat_plan_step *step,
                                 const struct leat_plan_edge *edge, size_t slice, struct leat_content *content,
                                 struct leat_stamp *stamp, struct leat_err *err);
/* Is it on a server? */
bool leat_files_are_remote(const struct leat_plan *plan, const struct leat_plan_step *step,
                           const struct leat_plan_edge *edge);
/* Lists what is on servers, and counts what has to be fetched. */
enum leat_status leat_files_look(struct leat_plan *plan, const struct leat_plan_step *step,
                                 const struct leat_plan_edge *edge, size_t slice, struct leat_err *err);
/* Adds up its files and bytes, without reading it. What is missing is left out. */
void leat_files_measure(const struct leat_plan *plan, const struct leat_plan_step *step,
                        const struct leat_plan_edge *edge, size_t slice, struct leat_hashing *hashing,
                        const atomic_bool *stop);
/* Is it still what was hashed? LEAT_DATA: no, and the error names the file. */
enum leat_status leat_files_check(const struct leat_plan *plan, const struct leat_plan_step *step,
                                  const struct leat_plan_edge *edge, size_t slice, const struct leat_stamp *stamp,
                                  struct leat_err *err);
/* Where a command can read it: the file or folder itself, or, if the source is a pattern, a new folder of links at
 * `path`, and *made is true. If it is on servers, it is in the store, and `path` is the end of its name. Any thread. */
enum leat_status leat_files_path(const struct leat_plan *plan, const struct leat_plan_step *step,
                                 const struct leat_plan_edge *edge, size_t slice, char path[PATH_MAX], bool *made,
                                 struct leat_err *err);

#endif
