/* checks_inside.h - what the files of checks share */
#ifndef LEAT_TABLE_CHECKS_INSIDE_H
#define LEAT_TABLE_CHECKS_INSIDE_H

#include "table/checks.h"

/* Parses `text`, which is NUL-terminated, into *check, whose column and kind ROWS are set. LEAT_SPEC with a caret. The
 * check has to be freed even after a failure. */
enum leat_status leat_check_parse(struct leat_check *check, const char *text, struct leat_mem *mem,
                                  struct leat_err *err);
/* A name or value at *at: bare up to one of `ends` without spaces around it, or in double quotes. Stops at the end or
 * at one of `ends`. NULL: it failed. */
char *leat_check_word(const char *text, size_t *at, const char *ends, const char *what, struct leat_mem *mem,
                      struct leat_err *err);
/* "5%", in all of the text from `at` on, as 0.05. */
enum leat_status leat_check_share(const char *text, size_t at, double *share, struct leat_err *err);
void leat_check_print_share(struct leat_str *out, double share);
/* Sets check->name. False: out of memory. */
bool leat_check_print(struct leat_check *check, struct leat_mem *mem);
void leat_check_free(struct leat_check *check, struct leat_mem *mem);

/* The columns of a table. */
struct leat_check_columns {
	struct leat_mem *mem;
	const char *table; /* its name, for errors; NULL: the one that is checked */
	size_t count;
	char **name;
	struct leat_column_type *type; /* without children */
};

enum leat_status leat_check_columns_read(struct leat_check_columns *columns, struct leat_tables *tables,
                                         const char *table, struct leat_mem *mem, struct leat_err *err);
void leat_check_columns_free(struct leat_check_columns *columns);
/* By exact name, else in another case, as SQL does. LEAT_INVALID: none, with the nearest name. */
enum leat_status leat_check_column_find(const struct leat_check_columns *columns, const char *name, size_t *found,
                                        struct leat_err *err);

/* Appends a condition that is true for rows that fail, and false for all others. The table is `t`. Of NULLS: true for
 * NULL. Of TYPE and ROWS: false. LEAT_INVALID: the check does not fit the column. */
enum leat_status leat_check_add_condition(const struct leat_check *check, const struct leat_check_columns *columns,
                                          const struct leat_check_run *run, struct leat_str *sql, struct leat_err *err);
/* Of COUNT: SELECT of the values of the other table that the checked one does not have, as `lost`. */
enum leat_status leat_check_add_lost(const struct leat_check *check, const struct leat_check_columns *columns,
                                     const struct leat_check_run *run, struct leat_str *sql, struct leat_err *err);
/* SQL of the other table, to follow FROM; NULL: `run` has none of that name, and *err says so. */
const char *leat_check_table_sql(const struct leat_check *check, const struct leat_check_run *run,
                                 struct leat_err *err);

#endif
