/* lint.h - queries whose result changes from run to run
 *
 * DuckDB works on parts of a table in parallel, in an order that nobody controls. Sums of floating-point numbers then
 * differ in their last digits, and any_value or LIMIT pick other rows. A step must give equal bytes for equal inputs,
 * so it refuses such queries, and says what to write instead. */
#ifndef LEAT_TABLE_LINT_H
#define LEAT_TABLE_LINT_H

#include "table/duckdb.h"

/* Binds the query, with the tables that `tables` has, and looks at the types in its plan; runs nothing. LEAT_INVALID:
 * the result is not the same every time, or the query is wrong. Views on CSV files cannot be planned here: have empty
 * tables in their place. */
enum leat_status leat_sql_lint(struct leat_tables *tables, const char *sql, struct leat_err *err);

#endif
