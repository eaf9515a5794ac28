/* rows_write.h - write rows that a program makes to a Parquet file
 *
 * DuckDB asks for rows, a chunk at a time, and writes them in that order; so memory does not depend on their number,
 * and the same rows give the same bytes. */
#ifndef LEAT_TABLE_ROWS_WRITE_H
#define LEAT_TABLE_ROWS_WRITE_H

#include "table/value.h"

/* Room for the values of a column, in DuckDB's memory. */
struct leat_cells {
	void *values; /* in the layout of its kind */
	uint64_t *valid;
	void *vector;
	size_t elements; /* of lists so far */
};

/* A chunk to fill, row by row. */
struct leat_row_chunk {
	struct leat_cells *cells; /* of columns that are not skipped, in order */
	size_t room;              /* rows */
	/* Copies a text, which is UTF-8, to a TEXT cell. */
	void (*set_text)(const struct leat_row_chunk *chunk, size_t column, size_t row, const char *text, size_t len);
	void *arg; /* for set_text */
};

/* Makes up to chunk->room rows; *rows 0: there are no more. Called in a thread of DuckDB's, one call at a time. */
struct leat_row_maker {
	enum leat_status (*make)(void *arg, struct leat_row_chunk *chunk, size_t *rows, struct leat_err *err);
	void *arg;
};

static inline void
leat_cell_set_null(struct leat_cells *cells, size_t row)
{
	cells->valid[row / 64] &= ~((uint64_t)1 << row % 64);
}

static inline void
leat_cell_set_valid(struct leat_cells *cells, size_t row)
{
	cells->valid[row / 64] |= (uint64_t)1 << row % 64;
}

/* Copies a text, which must be UTF-8, to a TEXT cell, or bytes to a BLOB cell. */
static inline void
leat_cell_set_text(const struct leat_row_chunk *chunk, size_t column, size_t row, const char *text, size_t len)
{
	chunk->set_text(chunk, column, row, text, len);
}

/* Of chunks that DuckDB made: makes a list of `count` elements. Returns room for their values; of texts, *first is the
 * element to set with leat_cell_set_element. Rows come in order. */
void *leat_cell_set_list(struct leat_row_chunk *chunk, size_t column, size_t row, size_t count, size_t size,
                         size_t *first);
void leat_cell_set_element(const struct leat_row_chunk *chunk, size_t column, size_t element, const char *text,
                           size_t len);

/* Writes all rows to `path`, compressed with zstd. Columns that are skipped are not written. Fails as `maker` does. */
enum leat_status leat_rows_write(struct leat_tables *tables, const struct leat_declared_columns *columns,
                                 const struct leat_row_maker *maker, const char *path, struct leat_mem *mem,
                                 struct leat_err *err);
/* The same with another SELECT list than all columns, and with these options of COPY. */
enum leat_status leat_rows_copy(struct leat_tables *tables, const struct leat_declared_columns *columns,
                                const struct leat_row_maker *maker, const char *select, const char *path,
                                const char *options, struct leat_mem *mem, struct leat_err *err);

#endif
