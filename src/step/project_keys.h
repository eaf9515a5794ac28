/* project_keys.h - the keys of leat.yaml: one table
 *
 * It drives reading (names, types, ranges, defaults), errors with the nearest key, the JSON Schema and the reference in
 * docs/STEPS.md. A kind of step (kind.h) is a key too, with its `doc`. */
#ifndef LEAT_STEP_PROJECT_KEYS_H
#define LEAT_STEP_PROJECT_KEYS_H

#include <stddef.h>

#include "base/str.h"
#include "step/project.h"

enum leat_key_type {
	LEAT_KEY_TEXT,    /* const char * */
	LEAT_KEY_SUFFIX,  /* const char *: ".npy" */
	LEAT_KEY_CHOICE,  /* const char *: one of `choices` */
	LEAT_KEY_COUNT,   /* unsigned */
	LEAT_KEY_SEED,    /* uint64_t */
	LEAT_KEY_TIME,    /* double, in seconds: 90s, 15m, 2h, 1d */
	LEAT_KEY_SIZE,    /* uint64_t, in bytes: 4GiB */
	LEAT_KEY_FLAG,    /* bool: true, false */
	LEAT_KEY_NAMES,   /* edges: a name, or a list of names */
	LEAT_KEY_SLICES,  /* struct leat_slices */
	LEAT_KEY_PARAMS,  /* leat_named: a map of texts */
	LEAT_KEY_ENV,     /* leat_named: a list of names, or a map of texts */
	LEAT_KEY_GLOBS,   /* a glob, or a list of globs */
	LEAT_KEY_CHECKS,  /* const char *const *, NULL-terminated: a map of columns and checks */
	LEAT_KEY_ACTION,  /* const char *: what to do with rows that fail checks */
	LEAT_KEY_TEXTS,   /* const char *const *, NULL-terminated: a text, or a list of texts */
	LEAT_KEY_COLUMNS, /* of a source: a map of names and types */
	LEAT_KEY_REJECTS, /* of a source: 0.1%, 12 */
	LEAT_KEY_NULLS,   /* of a source: a text, or a list of texts */
	LEAT_KEY_BY,      /* leat_named: a map of tables and columns */
	LEAT_KEY_CHAINS,  /* of features: a map of names and transforms */
	LEAT_KEY_SPLIT,   /* of features: a map of a column and shares */
	LEAT_KEY_DEDUPE,  /* of features: a map of columns and what to keep */
	LEAT_KEY_TAKE,    /* of asof: a map of tables */
	LEAT_KEY_SOURCES, /* of the file: a map of patterns, or maps */
	LEAT_KEY_STEPS,   /* of the file: a map of steps */
	LEAT_KEY_STORAGE, /* of the file: a map of settings of remote stores */
};

struct leat_key {
	const char *name;
	enum leat_key_type type;
	size_t offset;       /* in struct leat_step, of types that are one value */
	double min, max;     /* of numbers */
	const char *choices; /* "tfrecord|npy" */
	const char *def;     /* "": none */
	const char *doc;     /* a sentence */
	const char *example;
	const char *kind; /* the kinds of step that have it, with | between them; NULL: all have */
};

extern const struct leat_key leat_file_keys[], leat_source_keys[], leat_step_keys[]; /* name is NULL at the end */

const struct leat_key *leat_key_find(const struct leat_key *keys, const char *name); /* NULL: none */
bool leat_key_is_of(const struct leat_key *key, const char *kind);
/* "a whole number between 1 and 4096", for errors and the reference. */
void leat_key_values(const struct leat_key *key, struct leat_str *out);

/* The reference of all keys, as Markdown: part of docs/STEPS.md. */
void leat_project_reference(struct leat_str *markdown);

#endif
