/* project.h - leat.yaml, read and checked
 *
 * The schema gives every value its type; YAML's own guesses (yes, 1e3, 12:30) do not exist. Errors name line, column
 * and the nearest key. A project is read-only once it is open, so any thread may read it. */
#ifndef LEAT_STEP_PROJECT_H
#define LEAT_STEP_PROJECT_H

#include "base/err.h"
#include "base/mem.h"
#include "step/slices.h"
#include "step/staging.h"

struct leat_step_kind;

struct leat_named {               /* a parameter or a variable of the environment */
	const char *name, *value; /* value NULL: an environment variable that is passed on */
};

/* Which slices of a step another one gets. */
enum leat_edge_how {
	LEAT_EDGE_SHARES, /* those with the same values of the variables that both steps have */
	LEAT_EDGE_WHOLE,  /* all of them, whatever the names of variables */
	LEAT_EDGE_ENTRY,  /* of each of them, the entry of its folder that has the number of the reading slice */
};

/* What a step reads: a source or another step. */
struct leat_edge {
	const char *name;  /* of the shell variable, and of the source or step */
	const char *table; /* of sql: its name in the query, if that is another one; else NULL */
	enum leat_edge_how how;
	size_t step;   /* index of the step; SIZE_MAX: a source */
	size_t source; /* index of the source; SIZE_MAX: a step */
};

/* A pattern below the project's folder, or absolute, or a URI of objects on a server. {subject} stands for a value of
 * that variable; * ? [] and ** match as in a shell, and then several files arrive as a folder of links. */
struct leat_raw_source {
	const char *name, *pattern;
	size_t line;
};

/* What is made: a step, or a source with declared columns, which is loaded file by file before steps read it. */
struct leat_step {
	const char *name;
	const struct leat_step_kind *kind;
	const char *text;  /* of the key that is the kind: the command, the query */
	const char *loads; /* of a source that is loaded: the pattern of its files; NULL: it is a step */
	size_t line;       /* of the step in leat.yaml */
	struct leat_edge *edge;
	size_t edges;
	struct leat_slices slices; /* count is 1 if there are none */
	struct leat_named *param, *env;
	size_t params, envs;
	const char *const *code; /* globs; NULL-terminated */
	const char *suffix;      /* of $out and of links to it: ".npy"; "" if none */
	const char *feed;        /* a spec, for $feed; "" if none */
	uint64_t seed;
	bool has_seed;                    /* it was given */
	const char *const *key;           /* of sql: columns that tell rows apart; NULL-terminated; NULL: not given */
	const char *format, *compression; /* of shards; "": not given */
	const char *parts, *images, *root, *rejects; /* of shards; "": not given */
	unsigned resize, quality;                    /* of shards; 0: not given */
	const char *const
		*check; /* of sql: checks of the result, as table/checks.h prints them; NULL-terminated, or NULL */
	const char *const *drift; /* checks of drift, which judge a run and not its result; NULL-terminated, or NULL */
	const char *checks;       /* of sql: what to do with rows that fail; "" if not given */
	unsigned count;           /* of shards; 0: not given */
	struct leat_named *by;    /* of sql: tables that are split, and the columns they are split by */
	size_t bys;
	unsigned partitions;        /* of sql with `by`, and of what splits its tables; 0: not given */
	const char *const *carried; /* of sql with `by`: columns of the result that tell partitions apart, or NULL */
	const char *columns, *split, *dedupe; /* of features, as table/features.h has them; "": not given */
	const char *at;                       /* of asof: column of the time of each row; "" if not given */
	struct leat_take *take;               /* of asof: tables that rows get columns from (kind_asof.c) */
	size_t takes;
	unsigned cpus, retries;
	double timeout_s;      /* 0: none */
	uint64_t memory_bytes; /* 0: no limit */
	bool resume;           /* the folder $checkpoint survives a retry */
};

struct leat_project {
	struct leat_mem *mem;
	char *file, *folder; /* absolute: leat.yaml, and where it is */
	struct leat_raw_source *source;
	struct leat_step *step; /* in the order of the file; edges may point either way */
	size_t sources, steps;
	size_t *order;                  /* indexes of steps, inputs first */
	size_t *by_name;                /* indexes of steps, sorted */
	struct leat_project_text *text; /* the strings */
	struct leat_staging *staging;   /* of remote sources; NULL: there are none */
};

/* `file` may be a folder, in which leat.yaml is looked for. LEAT_SPEC: the file has an error. */
enum leat_status leat_project_open(struct leat_project **project, struct leat_mem *mem, const char *file,
                                   struct leat_err *err);
/* Sources with columns are listed when the project is opened. leat_project_open asks servers only about those that no
 * build has listed; this one as `looks` says. */
enum leat_status leat_project_open_now(struct leat_project **project, struct leat_mem *mem, const char *file,
                                       enum leat_looks looks, struct leat_err *err);
/* The same from text, which is hostile: for tests and fuzzing. Without a `folder` (NULL), slices that read files are
 * refused. */
enum leat_status leat_project_parse(struct leat_project **project, struct leat_mem *mem, const char *folder,
                                    const char *text, size_t len, struct leat_err *err);
void leat_project_close(struct leat_project *project);                                           /* accepts NULL */
const struct leat_step *leat_project_step(const struct leat_project *project, const char *name); /* NULL: none */
/* Fails with the nearest name. */
enum leat_status leat_project_find(const struct leat_project *project, const char *name, const struct leat_step **step,
                                   struct leat_err *err);

/* The files of a source that a slice gets, sorted, with paths relative to the project's folder (or absolute, as the
 * pattern is). None is LEAT_DATA. Free with leat_paths_free. */
struct leat_paths {
	char **path;
	size_t count, cap;
	size_t fixed;    /* of a pattern: characters at the beginning of each path that do not name its link */
	bool is_pattern; /* several files, which arrive as a folder of links; else one path, a file or folder */
	bool is_remote;  /* paths are URIs */
};
struct leat_listings; /* of folders that were read before; NULL: they are read now */
enum leat_status leat_source_paths(const struct leat_project *project, const struct leat_raw_source *source,
                                   const struct leat_slices *slices, size_t slice, struct leat_listings *listings,
                                   struct leat_paths *paths, struct leat_err *err);
void leat_paths_free(struct leat_paths *paths, struct leat_mem *mem);

/* A JSON Schema of leat.yaml, for editors. */
void leat_project_schema(struct leat_str *json);

#endif
