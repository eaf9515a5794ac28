/* opt.h - option tables: the one description of the options of an op, source or command
 *
 * The spec parser uses a table to fill a params struct. The reference page, `leat ops`
 * and the Python builder are generated from it. The pipeline's hash covers the values.
 *
 *	static const struct leat_opt options[] = {
 *		LEAT_INT(struct resize, height, LEAT_REQUIRED, 1, 65500, "rows of the result"),
 *		LEAT_ENUM(struct resize, method, "bilinear", "bilinear|nearest", "interpolation"),
 *		LEAT_OPT_END,
 *	};
 *
 * An option with the default LEAT_REQUIRED must be given.
 * Positional arguments fill the options in table order. A list option (FLOATS, STRINGS, VALUES) takes a list or a
 * single item; if it is the last positional option, it takes all remaining positional arguments. */
#ifndef LEAT_BASE_OPT_H
#define LEAT_BASE_OPT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arg.h"
#include "base/err.h"
#include "base/str.h"

enum leat_opt_type {
	LEAT_OPT_NONE,    /* end of table */
	LEAT_OPT_INT,     /* int64_t; 10k is 10000, 2M is 2000000 */
	LEAT_OPT_FLOAT,   /* float; `1/255` is computed in double and rounded once */
	LEAT_OPT_BOOL,    /* bool: true, false */
	LEAT_OPT_STRING,  /* const char *, never NULL; a word or a string */
	LEAT_OPT_ENUM,    /* int: index into `choices` */
	LEAT_OPT_SIZE,    /* int64_t bytes: 4MiB, 512kB, 100; see base/size.h */
	LEAT_OPT_ANGLE,   /* float, in radians; needs a unit, deg or rad */
	LEAT_OPT_FLOATS,  /* struct leat_floats */
	LEAT_OPT_STRINGS, /* struct leat_strings */
	LEAT_OPT_VALUES,  /* struct leat_values: numbers, words and strings, for the owner to tell apart */
};

enum { LEAT_MAX_LIST = 16, LEAT_MAX_OPTS = 64 };

struct leat_floats {
	int count;
	float value[LEAT_MAX_LIST];
};

struct leat_strings { /* the strings live in the spec's memory */
	size_t count;
	const char **value;
};

struct leat_opt_value {
	enum leat_arg_type type; /* NUMBER, WORD or STRING */
	double number;
	const char *text; /* of a word or string */
	const char *unit; /* of a number, with LEAT_OPT_UNITS; NULL: none */
};

struct leat_values { /* the strings live in the spec's memory */
	size_t count;
	struct leat_opt_value *value;
};

enum leat_opt_flag {
	LEAT_OPT_LOCATION = 1, /* where the data is, not what it is: not part of the pipeline's hash */
	LEAT_OPT_NAMED = 2,    /* never positional */
	LEAT_OPT_NEW = 4,    /* added after others: canonical text and the pipeline's hash leave it out while it has its
	                      * default, so old checkpoints stay valid */
	LEAT_OPT_UNITS = 16, /* VALUES: numbers may have a unit, for the owner to interpret */
	LEAT_OPT_REPEATS = 8, /* STRINGS on a command line: each use adds one item, verbatim */
};

struct leat_opt {
	const char *name;
	enum leat_opt_type type;
	size_t offset;       /* in the params struct */
	const char *def;     /* default as spec text: "0.1", "bilinear", "[0, 0]"; STRING: without quotes;
	                      * NULL: required */
	double min, max;     /* range of a number, or of each number in a list; -INFINITY and INFINITY: unlimited */
	const char *choices; /* ENUM: "bilinear|nearest" */
	const char *doc;
	int flags;
	const char *was; /* former name, still accepted; NULL: none. Canonical text and the pipeline's hash keep using
	                  * it, so old checkpoints stay valid */
};

#define LEAT_REQUIRED NULL

#define LEAT_OPT_(T, member, type, def, min, max, choices, doc, flags)                                                 \
	{                                                                                                              \
#member, type, offsetof(T, member), def, min, max, choices, doc, flags                                 \
	}
#define LEAT_INT(T, member, def, min, max, doc) LEAT_OPT_(T, member, LEAT_OPT_INT, def, min, max, NULL, doc, 0)
#define LEAT_FLOAT(T, member, def, min, max, doc) LEAT_OPT_(T, member, LEAT_OPT_FLOAT, def, min, max, NULL, doc, 0)
#define LEAT_FLOAT_WAS(T, member, was, def, min, max, doc)                                                             \
	{                                                                                                              \
#member, LEAT_OPT_FLOAT, offsetof(T, member), def, min, max, NULL, doc, 0, was                         \
	}
#define LEAT_BOOL(T, member, def, doc) LEAT_OPT_(T, member, LEAT_OPT_BOOL, def, 0, 1, NULL, doc, 0)
#define LEAT_STRING(T, member, def, doc) LEAT_OPT_(T, member, LEAT_OPT_STRING, def, 0, 0, NULL, doc, 0)
#define LEAT_ENUM(T, member, def, choices, doc) LEAT_OPT_(T, member, LEAT_OPT_ENUM, def, 0, 0, choices, doc, 0)
#define LEAT_SIZE(T, member, def, min, max, doc) LEAT_OPT_(T, member, LEAT_OPT_SIZE, def, min, max, NULL, doc, 0)
#define LEAT_ANGLE(T, member, def, min, max, doc) LEAT_OPT_(T, member, LEAT_OPT_ANGLE, def, min, max, NULL, doc, 0)
#define LEAT_FLOATS(T, member, def, min, max, doc) LEAT_OPT_(T, member, LEAT_OPT_FLOATS, def, min, max, NULL, doc, 0)
#define LEAT_STRINGS(T, member, def, doc, flags) LEAT_OPT_(T, member, LEAT_OPT_STRINGS, def, 0, 0, NULL, doc, flags)
#define LEAT_VALUES(T, member, def, doc) LEAT_OPT_(T, member, LEAT_OPT_VALUES, def, 0, 0, NULL, doc, 0)
#define LEAT_OPT_END                                                                                                   \
	{                                                                                                              \
		NULL, LEAT_OPT_NONE, 0, NULL, 0, 0, NULL, NULL, 0                                                      \
	}

/* Fills `params` from a call's arguments, with defaults for the rest. `text` is the spec, for the caret.
 * Strings point into the parsed spec; lists are allocated from `mem` and freed by leat_opts_free. On
 * failure there is nothing to free. `opts` may be NULL: no options. */
struct leat_mem;
enum leat_status leat_opts_set(const struct leat_opt *opts, void *params, const struct leat_call *call,
                               const char *text, struct leat_mem *mem, struct leat_err *err);
void leat_opts_free(const struct leat_opt *opts, void *params, struct leat_mem *mem);

/* The steps of leat_opts_set, for callers that have no leat_call: clear all options (after which
 * leat_opts_free is safe), then set each from a value, from text, or to its default. `whose` is the
 * op's name for errors; NULL: none. */
void leat_opts_clear(const struct leat_opt *opts, void *params);
enum leat_status leat_opt_put(const struct leat_opt *opt, void *params, const struct leat_arg *value, const char *text,
                              const char *whose, struct leat_mem *mem, struct leat_err *err);
enum leat_status leat_opt_put_text(const struct leat_opt *opt, void *params, const char *text, const char *whose,
                                   struct leat_mem *mem, struct leat_err *err);
enum leat_status leat_opt_put_default(const struct leat_opt *opt, void *params, const char *whose, struct leat_mem *mem,
                                      struct leat_err *err);
const struct leat_opt *leat_opt_find(const struct leat_opt *opts, const char *name); /* or by `was`; NULL: none */

/* For messages and docs. leat_opt_range writes "between 0 and 1", "at least 1", or "" for no range.
 * leat_opt_choice finds choice `i` of "one|two|three": not NUL-terminated; NULL after the last. */
const char *leat_opt_type_name(enum leat_opt_type type); /* "int" */
bool leat_opt_is_number(const struct leat_opt *opt);     /* or a list of numbers: has a range */
void leat_opt_range(const struct leat_opt *opt, char *buf, size_t cap);
bool leat_opt_is_limit(double bound); /* worth naming? */
const char *leat_opt_choice(const char *choices, int i, size_t *len);

/* Formats a number for specs and JSON: as few digits (but at least 6 significant) as parse back to
 * the same value, in any locale. Both return buf; 32 bytes are enough. */
char *leat_format_float(char *buf, size_t cap, float x);
char *leat_format_number(char *buf, size_t cap, double x);
/* As "%.*g" does in the C locale, in any locale. */
char *leat_format_digits(char *buf, size_t cap, double x, int digits);

/* Appends "name=value, name=value" for all options; those that are locations only if `locations` is set. */
void leat_opts_print(const struct leat_opt *opts, const void *params, bool locations, struct leat_str *out);

/* Appends the table as JSON: [{"name":..., "type":..., "default":..., "min":..., "max":..., "choices":[...], "doc":...,
 * "positional":..., "location":...}]. The default is spec text; null: required. */
void leat_opts_json(const struct leat_opt *opts, struct leat_str *out);

/* Fails with LEAT_SPEC: the message, the affected line of the spec, and carets under `len` bytes at offset `at`. */
enum leat_status leat_fail_at(struct leat_err *err, const char *text, size_t at, size_t len, const char *fmt, ...)
	__attribute__((format(printf, 5, 6)));
/* Of an error by leat_fail_at, keeps only the message and makes it LEAT_INVALID, where there is no spec to point into.
 * Returns its status. */
enum leat_status leat_without_caret(struct leat_err *err, enum leat_status status);

#endif
