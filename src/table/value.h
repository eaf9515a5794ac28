/* value.h - columns with declared types, and their values from text
 *
 *	user int64, ts timestamp, amount double, note text, price decimal(10,2), junk skip
 *
 * Values are read by these rules and no engine's: what is not exactly a value of its type is refused with a reason.
 * Whole numbers have digits and a sign, and fit. Numbers have a decimal point or exponent or none; inf and nan are
 * words; what is too large for the type is refused, not made infinite. bool is true, false, t, f, 1 or 0 in any case.
 * date is 2026-11-18. timestamp is a date, or 2026-11-18T12:30 or with a blank for the T, with :SS and up to six digits
 * after the point, and Z or an offset such as +02:00, which is added up to UTC. decimal(p,s) has at most s digits after
 * the point that are not 0. There are no blanks around values. */
#ifndef LEAT_TABLE_VALUE_H
#define LEAT_TABLE_VALUE_H

#include "table/duckdb.h"

struct leat_mem;

enum { LEAT_MAX_COLUMNS = 4096, LEAT_MAX_COLUMN_NAME = 255 };

struct leat_declared {
	char *name;
	enum leat_column_kind kind;
	unsigned width, scale; /* of decimal */
	bool skip;             /* in the file, but not wanted */
	bool is_list;          /* of values of this kind; only for rows that a program makes */
};

struct leat_declared_columns {
	struct leat_mem *mem;
	struct leat_declared *column;
	size_t count, cap;
};

/* Adds a column; LEAT_INVALID: no such type, or a name that is not one. */
enum leat_status leat_declared_add(struct leat_declared_columns *columns, const char *name, const char *type,
                                   struct leat_err *err);
/* Reads "user int64, ts timestamp". Names with blanks, commas or quotes are in double quotes, doubled inside. */
enum leat_status leat_declared_read(struct leat_declared_columns *columns, const char *text, struct leat_err *err);
/* The same text, in its shortest form. */
void leat_declared_print(const struct leat_declared_columns *columns, struct leat_str *text);
void leat_declared_free(struct leat_declared_columns *columns);
/* "int64", "decimal(10,2)", "skip"; valid while `column` is, or static. */
const char *leat_declared_type(const struct leat_declared *column, char buffer[32]);

/* Reads a value into `to`, in the layout of enum leat_column_kind; TEXT is checked by nobody. NULL: it is one. Else why
 * not, as in "'12x' is WHY": "no int64". */
const char *leat_value_parse(const struct leat_declared *column, const char *text, size_t len, void *to);
/* Bytes of a value; 16 for TEXT. */
size_t leat_value_size(const struct leat_declared *column);

#endif
