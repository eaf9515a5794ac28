/* partition.h - can a query run on each part of its tables alone?
 *
 *	by: {events: user, users: id}
 *
 * Some tables of a query are split: rows go to partitions by a hash of one column. All other tables are whole in every
 * partition. The query may run on each partition alone if the results, put together, are the rows of the whole query.
 * That holds for filters and expressions; for GROUP BY, DISTINCT and windows that have the column; for joins of two
 * split tables on their columns. It does not hold for LIMIT, for totals, or for outer joins that keep the rows of a
 * whole table. What is not known to hold is refused, with the line and what to write instead.
 *
 * This looks at the query alone, as DuckDB parses it, and at no table: so it can be asked before anything is built. A
 * column *carries* the partition if all rows of a partition, and no others, have its values; NULLs are in one
 *partition.
 *
 * The text is hostile. One thread. */
#ifndef LEAT_TABLE_PARTITION_H
#define LEAT_TABLE_PARTITION_H

#include <stdbool.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"

enum { LEAT_MAX_PARTITIONS = 4096 };

/* Files of a table that was split: one without rows, and one for each partition that has rows, by its number. */
#define LEAT_SPLIT_COLUMNS "columns.parquet"
#define LEAT_SPLIT_ROWS "rows-%u.parquet"

/* A table that is split, by a column. */
struct leat_split_table {
	const char *table, *column;
};

/* Names of columns of the result that carry the partition. */
struct leat_carried {
	struct leat_mem *mem;
	char **name;
	size_t count, cap;
};

/* LEAT_INVALID: the query cannot be partitioned, or is no SQL; the sentence has the line. Zero *carried first, and free
 * it even after a failure. Loads DuckDB. */
enum leat_status leat_sql_partition(const char *sql, const struct leat_split_table *split, size_t splits,
                                    struct leat_carried *carried, struct leat_mem *mem, struct leat_err *err);
bool leat_carries(const struct leat_carried *carried, const char *column);
void leat_carried_free(struct leat_carried *carried);

/* Appends the SQL of the partition of a row, from 0: `column` of a table, by the MD5 of its text, which no version of
 * DuckDB changes. NULL is in partition 0. */
void leat_partition_sql(struct leat_str *sql, const char *column, unsigned partitions);

#endif
