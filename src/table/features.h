/* features.h - a set of features: chains of transforms that turn a table into model inputs
 *
 *	amount: clip(p01, p99) | log1p | standardize; product: vocab(min_count=5); ts: hour | cyclic(24)
 *
 *	features = name ':' chain { ';' name ':' chain } [ ';' ]
 *	chain    = call { '|' call }               calls as in specs; transform.h
 *	split    = column { ',' column } ':' part { ',' part }
 *	part     = name ( number '%' | before 'time' | rest )
 *
 *	dedupe   = options of dedupe(...), such as "user, item, order=ts, keep=last"
 *
 * A name is a word, or a string in quotes. A feature starts with the column that has its name, unless its first call is
 * column(...) or cross(...).
 *
 * Most transforms compute a row from itself alone. lag and rolling read earlier rows of its group, and dedupe drops
 *rows; then rows are numbered as they are read, and the result is put into that order again.
 *
 * The order of calls: parse (or load, from a saved state), bind to a table, fit, then select and save. What is loaded
 *is hostile: everything that becomes SQL is checked or quoted. One thread. */
#ifndef LEAT_TABLE_FEATURES_H
#define LEAT_TABLE_FEATURES_H

#include "table/transform.h"

enum {
	LEAT_MAX_FEATURES = 4096,
	LEAT_MAX_CHAIN = 16, /* calls */
	LEAT_MAX_SPLITS = 16,
	LEAT_MAX_STATE = 64 << 20, /* bytes of JSON */
};

struct leat_feature_call {
	const struct leat_transform *transform;
	void *params;
	struct leat_fitted fitted;
	uint32_t column[LEAT_ROLES][LEAT_MAX_CROSSED]; /* indexes of inputs */
	size_t columns[LEAT_ROLES];
};

/* A column of the table that features read. */
struct leat_feature_input {
	const char *name;
	char type[32];             /* SQL type that it is cast to; "": it is taken as it is */
	enum leat_value_kind kind; /* what transforms get */
	bool can_be_nan;
	bool absent;    /* the table lacks it */
	bool is_needed; /* by more than keep and fitting */
	bool in_group;  /* transforms name it: layers pass it on, as x<index> */
	bool in_fold;   /* the same, while fitting */
};

struct leat_feature {
	const char *name;
	struct leat_feature_call call[LEAT_MAX_CHAIN];
	size_t calls;
	size_t input[LEAT_MAX_CROSSED], inputs; /* indexes */
	bool is_kept;                           /* the column as it is */

	/* Set while SQL is written (features_sql.c). */
	enum leat_value_kind kind;
	const char *side[LEAT_MAX_CHAIN]; /* suffixes of further columns */
	size_t sides;
	bool only_sides;
};

/* How rows are divided. By hash, each row's place is its key's MD5; by time, it is before a limit. */
struct leat_split {
	const char *column[LEAT_MAX_CROSSED];
	size_t columns; /* 0: all rows are training rows */
	struct leat_split_part {
		const char *name;
		const char *before; /* time; NULL: by hash, or the rest */
		int64_t millionths; /* by hash */
		bool is_rest;
	} part[LEAT_MAX_SPLITS];
	size_t parts;
};

/* Of the rows with equal values in `by`, one is kept: the first or last by `order`, or else as they are in the table.
 * Rows with a missing value in `by` are all kept. */
struct leat_dedupe {
	struct leat_strings by, order;
	int keep; /* 0: first, 1: last */
};

struct leat_features_text {
	const char *columns, *split, *dedupe; /* the last two: NULL or "" if there is none */
};

struct leat_features {
	struct leat_mem *mem;
	char *text, *split_text, *dedupe_text; /* as parsed */
	void *blocks, *split_blocks, *dedupe_blocks;
	struct leat_feature *feature;
	size_t features, cap;
	struct leat_feature_input *input;
	size_t inputs, inputs_cap;
	struct leat_split split;
	struct leat_dedupe dedupe; /* by.count is 0: none */
	bool is_ordered;           /* rows are numbered: there is a group, or dedupe */
	struct leat_str *layer;    /* lists of SELECT, from the table outwards; the last one gives the result */
	size_t layers;
	struct leat_str qualify; /* condition of dedupe; empty: none */
	size_t made;             /* while fitting: so many layers are a temporary table */
	char duckdb[32];         /* version that fitted it */
};

/* LEAT_SPEC, with a caret. */
enum leat_status leat_features_parse(struct leat_features **out, struct leat_mem *mem,
                                     const struct leat_features_text *text, struct leat_err *err);
void leat_features_close(struct leat_features *features); /* accepts NULL */

/* The same in a normal form: equal texts give equal features. With the versions of the transforms. */
void leat_features_print(const struct leat_features *features, struct leat_str *columns);
void leat_split_print(const struct leat_split *split, struct leat_str *out);
void leat_dedupe_print(const struct leat_features *features, struct leat_str *out);

/* Finds the inputs among the columns of `table` (SQL, to put after FROM), for fitting. LEAT_INVALID: there is no such
 * column. */
enum leat_status leat_features_bind(struct leat_features *features, struct leat_tables *tables, const char *table,
                                    struct leat_err *err);
/* Fits all transforms on the training rows. Dictionaries are written to `folder` and made known to `tables`. */
enum leat_status leat_features_fit(struct leat_features *features, struct leat_tables *tables, const char *table,
                                   const char *folder, struct leat_err *err);
/* After the rows that were fitted are written: from here on, SQL is that of new rows, as states have it. */
enum leat_status leat_features_finish(struct leat_features *features, struct leat_err *err);
/* A feature that reads rows of other parts of the split, and the call that does; NULL: there is none. */
const struct leat_feature *leat_features_crossing(const struct leat_features *features,
                                                  const struct leat_transform **transform);
/* The SELECT that computes all features of `table`, with a column `split` or without. */
void leat_features_select(const struct leat_features *features, const char *table, bool split, struct leat_str *sql);

/* The fitted state, as JSON. */
void leat_features_save(const struct leat_features *features, struct leat_str *json);
/* LEAT_DATA: it is not a state, or it contradicts itself. */
enum leat_status leat_features_load(struct leat_features **out, struct leat_mem *mem, const char *json, size_t len,
                                    struct leat_err *err);
/* After loading: finds which inputs `table` has, and reads dictionaries from `folder`. Then select without a split. */
enum leat_status leat_features_attach(struct leat_features *features, struct leat_tables *tables, const char *table,
                                      const char *folder, struct leat_err *err);

/* ---- inside ---- */

/* features_parse.c */
enum leat_status leat_split_parse(struct leat_features *features, struct leat_err *err);
/* features_dedupe.c */
enum leat_status leat_dedupe_parse(struct leat_features *features, struct leat_err *err);
void leat_dedupe_free(struct leat_features *features);
/* The condition that a row is kept, over the table t with numbered rows. */
void leat_dedupe_sql(const struct leat_features *features, struct leat_str *sql);
/* features_sql.c: an input as layers pass it on, over the table t. */
void leat_input_sql(const struct leat_feature_input *input, struct leat_str *sql);
#define LEAT_ROW "leat_row" /* the number of a row */
/* features_split.c: the name of a row's part, as SQL over the table t. */
void leat_split_sql(const struct leat_split *split, struct leat_str *sql);
/* features_sql.c: writes the layers; with `fitting`, fits transforms on the way. */
enum leat_status leat_features_build(struct leat_features *features, const struct leat_fitting *fitting,
                                     const char *table, struct leat_err *err);
/* features_bind.c */
bool leat_input_set_type(struct leat_feature_input *input, const char *type); /* false: not one of those it may have */
/* The columns that a table has. */
enum leat_status leat_features_find_columns(struct leat_features *features, struct leat_tables *tables,
                                            const char *table, bool set_types, struct leat_err *err);
/* features_dictionary.c: the ENUM and the counts of a dictionary, from its file. */
enum leat_status leat_dictionary_open(struct leat_tables *tables, struct leat_mem *mem, const char *folder,
                                      const struct leat_fitted *fitted, const char *lookup, struct leat_err *err);

#endif
