/* profile.h - what is in a table: figures and a histogram of each column, and how two tables differ
 *
 * All rows are read unless a sample is asked for. Memory is bounded by the database's limit: distinct values are
 * counted exactly up to `exact_distinct` of them, and quantiles are exact up to `exact_rows` rows; beyond, both are
 * approximate and say so. Everything else is exact, up to the rounding of sums of doubles.
 *
 * NaN and infinite values are counted, and left out of the figures. Times are numbers, too: microseconds since 1970.
 *
 * The table becomes a view or a temporary table `relation` of the database, which stays: leat_drift_make needs it. One
 * thread; leat_tables_interrupt ends the query that runs. */
#ifndef LEAT_TABLE_PROFILE_H
#define LEAT_TABLE_PROFILE_H

#include <jansson.h>

#include "base/err.h"
#include "base/mem.h"
#include "table/duckdb.h"

enum {
	LEAT_PROFILE_BINS = 40,
	LEAT_PROFILE_TOP = 10,   /* most frequent values */
	LEAT_PROFILE_TEXT = 100, /* characters of a value that are kept */
	LEAT_PROFILE_QUANTILES = 5,
};

extern const double leat_profile_quantiles[LEAT_PROFILE_QUANTILES]; /* 0.05, 0.25, 0.5, 0.75, 0.95 */

enum leat_profile_class {
	LEAT_PROFILE_NUMBER,
	LEAT_PROFILE_TIME,  /* dates and timestamps */
	LEAT_PROFILE_WORDS, /* texts, and what is best shown as one: booleans, UUIDs, enumerations */
	LEAT_PROFILE_BYTES, /* blobs */
	LEAT_PROFILE_LIST,
	LEAT_PROFILE_OTHER, /* structs, maps, ... : only NULLs are counted */
};

/* A text of the table: any bytes, cut after LEAT_PROFILE_TEXT characters. */
struct leat_profile_text {
	char *bytes; /* NULL: none */
	size_t len;
	bool cut;
};

struct leat_profile_top {
	struct leat_profile_text value;
	uint64_t rows;
};

struct leat_profile_column {
	char *name;
	char type[64]; /* as SQL writes it */
	enum leat_profile_class class;
	uint64_t nulls;
	uint64_t distinct; /* not counting NULL */
	bool has_distinct, approximate_distinct;
	struct leat_profile_text min, max;

	/* NUMBER, TIME: of the values that are neither NaN nor infinite */
	uint64_t nan, infinite, finite;
	double low, high;
	double mean, deviation; /* deviation: of the population; of TIME, in microseconds */
	double quantile[LEAT_PROFILE_QUANTILES];
	bool approximate_quantiles;
	size_t bins; /* of equal width from bins_low to bins_high */
	double bins_low, bins_high;
	bool clipped; /* a few values are far away: the outer bins hold those beyond, too */
	uint64_t bin[LEAT_PROFILE_BINS];

	/* WORDS, BYTES, LIST: characters, bytes, elements */
	bool has_length;
	uint64_t shortest, longest;
	/* WORDS: most frequent first */
	size_t tops;
	struct leat_profile_top top[LEAT_PROFILE_TOP];
};

struct leat_profile {
	struct leat_mem *mem;
	char relation[32];
	uint64_t rows;    /* that were read */
	uint64_t of_rows; /* that the table has: more than `rows` if this is a sample */
	size_t columns;
	struct leat_profile_column *column;
};

struct leat_profile_options {
	uint64_t sample;         /* rows to draw; 0: read all */
	uint64_t exact_distinct; /* 0: a million */
	uint64_t exact_rows;     /* 0: 20 million */
	bool copy; /* read the source once: for texts, which are slow to read. Else once for each column, and less of it
	            */
};

/* `sql` is the table, to follow FROM. `relation` is a name for SQL. Free it even after a failure. */
enum leat_status leat_profile_make(struct leat_profile *profile, struct leat_tables *tables, const char *sql,
                                   const char *relation, const struct leat_profile_options *options,
                                   struct leat_mem *mem, struct leat_err *err);
void leat_profile_free(struct leat_profile *profile);

/* ---- drift ---- */

enum leat_drift_size {
	LEAT_DRIFT_NONE,
	LEAT_DRIFT_UNSURE, /* there are too few rows to tell it from chance */
	LEAT_DRIFT_SOME,   /* PSI of 0.1 or more */
	LEAT_DRIFT_LARGE,  /* PSI of 0.25 or more */
	LEAT_DRIFT_TYPE,   /* another type: not compared */
	LEAT_DRIFT_ADDED,
	LEAT_DRIFT_REMOVED,
};

struct leat_drift_column {
	const char *name; /* of a profile */
	enum leat_drift_size size;
	bool compared;
	double psi; /* population stability index, by natural logarithm; shares below 0.0001 count as that */
	double js;  /* Jensen-Shannon divergence in bits: 0 the same, 1 nothing in common */
	size_t bins;
	char sentence[512]; /* what moved, for people; visible text */
};

struct leat_drift {
	struct leat_mem *mem;
	size_t columns, moved;
	struct leat_drift_column *column; /* as in `now`, then those that were removed */
};

/* How `now` differs from `then`. Both must be profiles of the same database and outlive the drift. */
enum leat_status leat_drift_make(struct leat_drift *drift, struct leat_tables *tables, const struct leat_profile *now,
                                 const struct leat_profile *then, struct leat_err *err);
void leat_drift_free(struct leat_drift *drift);
/* Of two distributions over the same bins, from counts. */
double leat_drift_psi(const double *then, const double *now, size_t bins);
double leat_drift_js(const double *then, const double *now, size_t bins);
/* Both, and what they mean for this many rows. */
enum leat_drift_size leat_drift_judge(const double *then, const double *now, size_t bins, double *psi, double *js);

/* ---- for people and programs ---- */

/* "12,345", "0.0123", "1.2e+20"; of a TIME "2026-11-18 12:30:00". Returns buf. */
enum { LEAT_PROFILE_NUMBER_TEXT = 48 };
char *leat_profile_number(double x, char buf[LEAT_PROFILE_NUMBER_TEXT]);
char *leat_profile_time(double microseconds, char buf[LEAT_PROFILE_NUMBER_TEXT]);
char *leat_profile_value(const struct leat_profile_column *column, double x, char buf[LEAT_PROFILE_NUMBER_TEXT]);

/* NULL: out of memory. `drift` may be NULL. */
json_t *leat_profile_json(const struct leat_profile *profile, const struct leat_drift *drift);

#endif
