/* checks.h - what must hold for the rows of a table, and which rows break it
 *
 *	amount: not null            no NULL
 *	amount: nulls up to 5%      at most this share of the rows is NULL
 *	amount: 0..1e6              both ends belong to the range; "0.." and "..1e6" have one. Also dates and times
 *	amount: finite              neither NaN nor infinite
 *	code: matches [A-Z]{3}      all of the text matches the regular expression (RE2)
 *	code: length 1..20          characters of a text, elements of a list
 *	code: one of A | B | C
 *	code: unique                rows that share a value fail, all of them
 *	code: unique with day, city the same for several columns together
 *	user: in users.id           there is a row of the table `users` with this id
 *	user: count 1..10           each value is in so many rows
 *	id: count as events.id      each value is in as many rows as in `events`: a join multiplied and lost none
 *	id: count up to events.id   or in fewer
 *	amount: type double         the column's type, by Leat's or by DuckDB's name
 *	amount: drift up to 0.25    PSI of the column since the last run of the step
 *	rows: 1..                   number of rows
 *	rows: as events             as many rows as the table `events` has; "up to events": or fewer
 *	rows: drift up to 0.25      PSI of every column
 *
 * As in SQL, NULL passes all checks but `not null` and `nulls`. `nulls`, `type` and `rows` are checks of the whole
 * table: they hold or not, and no row can be taken out to mend it. All others are checks of rows. `count as` is both:
 * values that are lost have no row. `drift` is about runs, not about a table: builds judge it (step/drift.h), and
 * leat_checks_run lets it pass.
 *
 * A column's name is written as it is, or in double quotes, doubled inside of it: "a: b", "rows".
 *
 * leat_checks_run judges a table, leat_checks_write writes the rows that fail and those that do not. Both read the
 * table, so it must not change meanwhile, nor be a query whose rows depend on chance.
 *
 * One thread. Checks are hostile input; so are names and values of the table. */
#ifndef LEAT_TABLE_CHECKS_H
#define LEAT_TABLE_CHECKS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"
#include "table/duckdb.h"

enum { LEAT_MAX_CHECKS = 1000, LEAT_CHECK_BYTES = 4096 }; /* of one table; of one check's text */

enum leat_check_kind {
	LEAT_CHECK_NOT_NULL,
	LEAT_CHECK_NULLS,
	LEAT_CHECK_UNIQUE,
	LEAT_CHECK_RANGE,
	LEAT_CHECK_FINITE,
	LEAT_CHECK_LENGTH,
	LEAT_CHECK_ONE_OF,
	LEAT_CHECK_IN,
	LEAT_CHECK_MATCHES,
	LEAT_CHECK_TYPE,
	LEAT_CHECK_COUNT,
	LEAT_CHECK_DRIFT,
	LEAT_CHECK_ROWS,
};

struct leat_check {
	enum leat_check_kind kind;
	char *name;       /* "amount: 0..1e6": reads back as the same check */
	char *column;     /* NULL: ROWS */
	char *low, *high; /* RANGE, LENGTH, COUNT, ROWS: numbers, or times as SQL writes them; NULL: no such end */
	bool times;       /* RANGE: of times */
	double share;     /* NULLS: of all rows; DRIFT: the largest PSI */
	char *text;       /* MATCHES: the pattern; TYPE: DuckDB's name */
	char *table;      /* IN; COUNT and ROWS unless they have a range: the other table */
	char *other;      /* IN, COUNT: its column */
	bool up_to;       /* COUNT, ROWS: the other table may have more */
	char **value;     /* ONE_OF: texts; UNIQUE: further columns */
	size_t values;
};

/* What to do with rows that fail. */
enum leat_checks_do {
	LEAT_CHECKS_FAIL,       /* one is an error */
	LEAT_CHECKS_QUARANTINE, /* take them out of the table */
	LEAT_CHECKS_WARN,       /* leave them in */
};

struct leat_checks {
	struct leat_mem *mem;
	struct leat_check *check;
	size_t count, cap;
	enum leat_checks_do what;
	double most; /* share of rows that may fail before QUARANTINE and WARN are errors, too; 1: any */
};

void leat_checks_init(struct leat_checks *checks, struct leat_mem *mem);
void leat_checks_free(struct leat_checks *checks);

/* Adds a check of a column, `amount` and `0..1e6`. LEAT_SPEC: a sentence, the text, and a caret. The same check twice
 * is one. */
enum leat_status leat_checks_add(struct leat_checks *checks, const char *column, const char *text,
                                 struct leat_err *err);
/* The same from one text, "amount: 0..1e6". */
enum leat_status leat_checks_add_line(struct leat_checks *checks, const char *line, struct leat_err *err);
/* "fail", "quarantine", "warn", the last two also with "up to 0.1%". */
enum leat_status leat_checks_set_action(struct leat_checks *checks, const char *text, struct leat_err *err);
/* Its inverse. */
void leat_checks_action_text(const struct leat_checks *checks, struct leat_str *out);

/* Can rows fail this check? Else it is one of the whole table. */
static inline bool
leat_check_is_of_rows(const struct leat_check *check)
{
	return check->kind != LEAT_CHECK_DRIFT && check->kind != LEAT_CHECK_NULLS && check->kind != LEAT_CHECK_TYPE &&
	       check->kind != LEAT_CHECK_ROWS;
}

/* ---- running them ---- */

/* A table that checks may name. */
struct leat_check_table {
	const char *name, *sql; /* sql: a name or a function, to follow FROM */
};

struct leat_check_run {
	struct leat_tables *tables;
	const char *sql; /* the table, to follow FROM */
	const struct leat_check_table *other;
	size_t others;
};

struct leat_check_result {
	uint64_t rows; /* that fail; NULLS: that are NULL */
	bool broken;
	char *found;   /* "-3, 2000000": some values that fail, or what the table has instead; visible text; "": none */
	uint64_t lost; /* COUNT: values of the other table that no row has */
	char *lost_found; /* some of them */
};

struct leat_checked {
	struct leat_mem *mem;
	uint64_t rows, failed; /* failed: rows that fail one check or more */
	bool broken;           /* a check of the whole table is, or values are lost */
	size_t count;          /* of results, in the order of the checks */
	struct leat_check_result *of;
};

/* Judges a table. LEAT_OK even if rows fail: leat_checks_verdict says what follows. LEAT_INVALID: a check does not fit
 * the table, such as a column that it does not have. Free *checked even after a failure. */
enum leat_status leat_checks_run(const struct leat_checks *checks, const struct leat_check_run *run,
                                 struct leat_checked *checked, struct leat_err *err);
void leat_checked_free(struct leat_checked *checked);

/* LEAT_DATA, with counts and examples, if the action of the checks says that this is an error. */
enum leat_status leat_checks_verdict(const struct leat_checks *checks, const struct leat_checked *checked,
                                     struct leat_err *err);
/* "3 of 100 rows fail 2 checks: 'amount: 0..1e6' 2 (such as -3), 'code: unique' 2". "": none does. */
void leat_checks_sentence(const struct leat_checks *checks, const struct leat_checked *checked, struct leat_str *out);

/* Appends a SELECT of the rows that fail, with one column more, `column`: the names of the checks, separated by "; ".
 * Of a broken `nulls`, the rows that are NULL are among them. If the table has such a column, it is `column_` and so
 * on. */
enum leat_status leat_checks_add_failing(const struct leat_checks *checks, const struct leat_check_run *run,
                                         const struct leat_checked *checked, const char *column, struct leat_str *sql,
                                         struct leat_err *err);
/* Appends a SELECT of the rows that fail no check of rows. */
enum leat_status leat_checks_add_passing(const struct leat_checks *checks, const struct leat_check_run *run,
                                         struct leat_str *sql, struct leat_err *err);
/* Appends a SELECT of the values that check `i` found to be lost, as the column `lost`. */
enum leat_status leat_checks_add_lost(const struct leat_checks *checks, const struct leat_check_run *run, size_t i,
                                      struct leat_str *sql, struct leat_err *err);
/* COPY of one of these to a Parquet file, zstd. */
enum leat_status leat_checks_copy(struct leat_tables *tables, const struct leat_str *select, const char *path,
                                  struct leat_err *err);

#endif
