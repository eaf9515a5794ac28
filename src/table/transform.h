/* transform.h - what a feature transform is: one option table, what it fits, and its SQL
 *
 * A feature is a chain of transforms, as in "clip(p01, p99) | log1p | standardize". Each transform turns one SQL value
 * into the next. Fitting measures statistics of training rows only; what was fitted becomes literals of the expression,
 * so the same text gives the same bits for a table and for a single row, in the command and in Python.
 *
 * To add a transform, define `const struct leat_transform leat_transform_NAME` in a file feature_*.c; the build
 * collects the table. The parser, `leat features --list` and docs/FEATURES.md use its option table.
 *
 * Missing values: NULL and NaN are both missing, and reach transforms as NULL. Statistics leave out what is missing or
 * infinite, and do not depend on the order of rows or the number of threads. */
#ifndef LEAT_TABLE_TRANSFORM_H
#define LEAT_TABLE_TRANSFORM_H

#include "base/mem.h"
#include "base/opt.h"
#include "table/duckdb.h"

/* What a value is. Transforms accept several; the caller casts to the SQL type of each. */
enum leat_value_kind {
	LEAT_VALUE_NUMBER = 1, /* DOUBLE */
	LEAT_VALUE_WHOLE = 2,  /* BIGINT */
	LEAT_VALUE_TEXT = 4,   /* VARCHAR */
	LEAT_VALUE_TIME = 8,   /* TIMESTAMP, in UTC */
	LEAT_VALUE_OTHER = 16, /* any other type, which can only be kept */
	LEAT_VALUE_LIST = 32,  /* VARCHAR[] */
	LEAT_VALUE_IDS = 64,   /* BIGINT[] */
};

enum { LEAT_MAX_EDGES = 1000, LEAT_MAX_ONEHOT = 1000, LEAT_MAX_SIDES = 2, LEAT_MAX_CROSSED = 16 };

/* Columns of the table that options name, besides those that a chain starts with, by what they are for. */
enum leat_role {
	LEAT_ROLE_BY,    /* which rows are a group */
	LEAT_ROLE_ORDER, /* the order of its rows */
	LEAT_ROLE_LABEL, /* this one and the next are only needed for fitting */
	LEAT_ROLE_KEY,   /* which rows are in one fold */
	LEAT_ROLES,
};

/* Their SQL. */
struct leat_role_columns {
	char sql[LEAT_MAX_CROSSED][16];
	enum leat_value_kind kind[LEAT_MAX_CROSSED];
	size_t count;
};

/* What a transform has learned. */
struct leat_fitted {
	double *number;
	size_t numbers;
	char *text;          /* NULL: none */
	int64_t entries;     /* of its dictionary; negative: it has none */
	char dictionary[64]; /* name of the dictionary: an ENUM type, a variable with counts and a Parquet file */
};

struct leat_transform;

/* One call of a transform while it is fitted. */
struct leat_fitting {
	const struct leat_transform *transform;
	struct leat_tables *tables;
	struct leat_mem *mem;
	const void *params;
	const char *value;         /* SQL of the value that comes in, cast to what the transform accepts */
	enum leat_value_kind kind; /* of it */
	const char *from;          /* SQL of the training rows, to put after FROM */
	const char *folder;        /* where dictionaries are written */
	struct leat_fitted *fitted;
	const struct leat_role_columns *role; /* LEAT_ROLES of them */
};

/* One call of a transform while its SQL is written. */
struct leat_emitting {
	const struct leat_transform *transform;
	const char *feature; /* its name, for errors */
	const void *params;
	const char *value; /* as above */
	enum leat_value_kind kind;
	const struct leat_fitted *fitted;
	const char *const *columns; /* of a transform with several inputs: their SQL, as texts */
	size_t n_columns;
	const struct leat_role_columns *role; /* LEAT_ROLES of them */
	bool fitting;                         /* rows have a column split, and those of the part 'train' were fitted */
	struct leat_str *sql;                 /* append an expression for the value that goes out */
	enum leat_value_kind to;              /* set it to what goes out; it is what came in */
	/* Further columns, named FEATURE_SUFFIX. With `only_sides`, there is no other. */
	struct {
		const char *suffix;
		struct leat_str *sql;
	} side[LEAT_MAX_SIDES];
	size_t sides; /* how many are used; each `sql` is there from the start */
	bool only_sides;
};

struct leat_transform {
	const char *name;
	const char *doc;  /* a sentence */
	unsigned version; /* in keys and states: bump it when the same text would give other values */
	const struct leat_opt *opts;
	size_t params_size;
	unsigned accepts;    /* leat_value_kind flags; what comes in as another kind is cast to the first that fits */
	bool first;          /* only at the beginning of a chain: its options name the columns it reads */
	bool last;           /* only at the end */
	size_t fits_numbers; /* how many it fits; SIZE_MAX: depends on its options and the data */
	const char *const *fits; /* their names, for the state; NULL if there is no fixed number */
	const char *part;        /* of times: SQL function that gives the part */
	const char *lookup;      /* column of its dictionary that becomes the variable; NULL: count */

	/* Options that exclude each other, and the like; NULL: any are good. LEAT_SPEC. */
	enum leat_status (*check)(const void *params, struct leat_err *err);
	/* The columns that a transform with `first` reads; names live as long as params. */
	void (*inputs)(const void *params, const char *const **names, size_t *count);
	/* The columns that its options name for a role; none unless it sets *names. NULL: none at all. */
	void (*reads)(const void *params, enum leat_role role, const char *const **names, size_t *count);
	/* NULL: it has nothing to fit. LEAT_DATA: there is nothing to fit it on. */
	enum leat_status (*fit)(const struct leat_fitting *f, struct leat_err *err);
	/* Does `fitted`, which is from a file, suit the options? NULL: its count of numbers says it all. */
	bool (*suits)(const void *params, const struct leat_fitted *fitted);
	enum leat_status (*emit)(struct leat_emitting *e, struct leat_err *err);
};

extern const struct leat_transform *const leat_transforms[]; /* sorted by name, NULL at the end */

/* ---- feature_fit.c: statistics ---- */

/* The correctly rounded sum of an SQL expression over all rows where it is finite, and how many they are. */
enum leat_status leat_fit_sum(const struct leat_fitting *f, const char *expression, double *sum, int64_t *count,
                              struct leat_err *err);
/* The doubles that a SELECT of DOUBLE columns gives in its one row. LEAT_DATA: one is NULL, as of no rows. */
enum leat_status leat_fit_row(const struct leat_fitting *f, const char *columns, double *out, size_t count,
                              struct leat_err *err);
/* Exact quantiles, with linear interpolation; `share` between 0 and 1. */
enum leat_status leat_fit_quantiles(const struct leat_fitting *f, const double *share, size_t count, double *out,
                                    struct leat_err *err);
enum leat_status leat_fit_mean(const struct leat_fitting *f, double *mean, struct leat_err *err);
/* Room for `count` numbers in f->fitted. */
enum leat_status leat_fit_numbers(const struct leat_fitting *f, size_t count, struct leat_err *err);
/* Exponent of the smallest power of two above all |x - center|, within what exact sums can use. */
enum leat_status leat_fit_exponent(const struct leat_fitting *f, double center, int *exponent, struct leat_err *err);
/* Counts each value, and makes a dictionary of the most frequent ones: by count, then by text. */
enum leat_status leat_fit_dictionary(const struct leat_fitting *f, int64_t min_count, int64_t max_size,
                                     struct leat_err *err);

/* The name of the dictionary's file. */
void leat_dictionary_path(const struct leat_fitting *f, struct leat_str *path);
/* Counts the entries of the file, and makes it known. */
enum leat_status leat_fit_open_dictionary(const struct leat_fitting *f, struct leat_err *err);

/* The sum of numbers, as if computed exactly and rounded once. Changes `number`. */
double leat_exact_sum(double *number, size_t count);

/* ---- for options and SQL ---- */

/* A quantile such as p99 or p99.5: true, and its share. */
bool leat_quantile_of(const struct leat_opt_value *value, double *share);
/* A number as an SQL literal of type DOUBLE that reads back to the bit. */
void leat_sql_add_number(struct leat_str *sql, double number);
const char *leat_value_type(enum leat_value_kind kind); /* SQL type */
/* Sums that do not depend on the order of rows: a DOUBLE as two whole numbers, multiples of 2^(exponent - 60) and of
 * 2^(exponent - 150), which add up exactly. `value` is below 2^(exponent + LEAT_EXACT_HEADROOM). */
enum { LEAT_EXACT_HEADROOM = 30, LEAT_EXACT_MIN = -800, LEAT_EXACT_MAX = 990 };
void leat_sql_add_high(struct leat_str *sql, const char *value, int exponent);
void leat_sql_add_low(struct leat_str *sql, const char *value, int exponent);
/* Their sums, as SQL, put together. */
void leat_sql_add_whole(struct leat_str *sql, const char *high, const char *low, int exponent);
/* The number of a text's dictionary entry, from 0; NULL: it has none. */
void leat_sql_add_code(struct leat_str *sql, const char *text, const struct leat_fitted *fitted);
/* Each text with its length before it, so that no two rows with different texts become the same. */
void leat_sql_add_joined(struct leat_str *sql, const char *const *texts, size_t count);
/* The first 60 bits of an SQL text's MD5, modulo `buckets`. */
void leat_sql_add_bucket(struct leat_str *sql, const char *text, int64_t buckets);

#endif
