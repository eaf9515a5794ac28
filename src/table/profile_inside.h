/* profile_inside.h - what the files of profiles share: columns as SQL, and results of one row */
#ifndef LEAT_TABLE_PROFILE_INSIDE_H
#define LEAT_TABLE_PROFILE_INSIDE_H

#include "table/profile.h"

/* Columns are c0, c1, ... in SQL: their names are hostile, and may differ in case only. */

enum leat_profile_class leat_profile_class_of(const struct leat_column_type *type);
/* Appends column `i` as a number: NULL if it is NaN or infinite; times in microseconds. */
void leat_profile_add_number(struct leat_str *sql, const struct leat_profile_column *column, size_t i);
/* Appends a column as text. */
void leat_profile_add_words(struct leat_str *sql, size_t i);
/* Appends a double as it is. */
void leat_profile_add_double(struct leat_str *sql, double x);

/* A result, row by row. */
struct leat_rows {
	struct leat_query *query;
	struct leat_chunk chunk;
	size_t row;
};

/* Frees `sql`, which may have failed. */
enum leat_status leat_rows_open(struct leat_rows *rows, struct leat_tables *tables, struct leat_str *sql,
                                struct leat_err *err);
/* LEAT_END: there are no more. */
enum leat_status leat_rows_next(struct leat_rows *rows, struct leat_err *err);
void leat_rows_close(struct leat_rows *rows);

uint64_t leat_rows_count(const struct leat_rows *rows, size_t column); /* BIGINT; NULL is 0 */
double leat_rows_double(const struct leat_rows *rows, size_t column);  /* DOUBLE; NULL is NaN */
/* DOUBLE[]: up to `n`; missing ones are NaN. */
void leat_rows_doubles(const struct leat_rows *rows, size_t column, double *x, size_t n);
/* A copy of a VARCHAR; NULL gives none. False: out of memory. */
bool leat_rows_text(const struct leat_rows *rows, size_t column, struct leat_profile_text *text, struct leat_mem *mem);

#endif
